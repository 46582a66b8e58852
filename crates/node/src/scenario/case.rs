//! One row of a scenario's table: a value on each axis.

use super::channel::{BitErrors, Loss, Outage};
use super::document::Scenario;
use super::handoff::Handoff;
use super::names::{Direction, Sender, Switch};

/// What distinguishes one row from the others.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// The scheme's name.
    pub scheme: String,
    /// The sender.
    pub sender: Sender,
    /// Whether the hosts use SACK.
    pub sack: Switch,
    /// Which way the data goes.
    pub direction: Direction,
    /// Bit errors of the last hop.
    pub ber: BitErrors,
    /// Losses of the last hop.
    pub loss: Loss,
    /// Outages of the last hop.
    pub outage: Outage,
    /// Changes of the cell.
    pub handoff: Handoff,
}

impl Scenario {
    /// All rows, schemes varying fastest, so that what is to be compared stands together. A sender
    /// that is defined by SACK has no row without it.
    pub fn cases(&self) -> Vec<Case> {
        let mut cases = Vec::new();
        for (sender, sack) in self.senders() {
            for &direction in &self.direction.0 {
                for (outage, handoff) in self.movements() {
                    for loss in &self.loss.0 {
                        for &ber in &self.ber.0 {
                            for scheme in &self.schemes.0 {
                                cases.push(Case {
                                    scheme: scheme.clone(),
                                    sender,
                                    sack,
                                    direction,
                                    ber,
                                    loss: loss.clone(),
                                    outage,
                                    handoff,
                                });
                            }
                        }
                    }
                }
            }
        }
        cases
    }

    /// Outages and handoffs, of which one at most is not `none`.
    fn movements(&self) -> impl Iterator<Item = (Outage, Handoff)> {
        let outages = self.outage.0.iter();
        outages.flat_map(|outage| self.handoff.0.iter().map(|handoff| (*outage, *handoff)))
    }

    fn senders(&self) -> Vec<(Sender, Switch)> {
        let mut senders = Vec::new();
        for &sender in &self.tcp.0 {
            match &self.sack {
                None => senders.push((sender, sender.sack_by_default())),
                Some(switches) => {
                    for &switch in &switches.0 {
                        if switch == Switch::On || !sender.needs_sack() {
                            senders.push((sender, switch));
                        }
                    }
                }
            }
        }
        senders
    }
}
