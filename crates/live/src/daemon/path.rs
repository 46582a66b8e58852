//! The data path: sockets on the devices, and the rules that leave them what they take.

use super::bridged::Bridged;
use super::choice::{self, Chosen};
use super::kernel::Kernel;
use super::neighbours::{Neighbours, Ways};
use super::rules::{self, Rules};
use super::selection::{Place, Selection, Share};
use super::{BackEnd, DaemonConfig, Forwarding, machine};
use crate::io::inline::Inline;
use crate::sys::Clock;
use crate::sys::poll::{Poll, Ready};
use anyhow::Result;
use sansio::Instant;
use std::net::IpAddr;

/// What a daemon will do on this machine as it is now.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The back end, and why.
    pub chosen: Chosen,
    /// Which packets it looks at and takes.
    pub selection: Selection,
    /// How they go on.
    pub ways: Ways,
}

impl Plan {
    /// Looks at the machine, and changes nothing.
    ///
    /// # Errors
    /// If the devices cannot be had, or the kernel does not forward between them as `config` says.
    pub fn of(config: &DaemonConfig) -> Result<Self> {
        let chosen = choice::choose(config)?;
        Self::with(config, chosen)
    }

    /// The same, with a back end that was chosen before.
    ///
    /// # Errors
    /// As [`Plan::of`].
    pub fn with(config: &DaemonConfig, chosen: Chosen) -> Result<Self> {
        let (wired, radio) = machine::devices(config)?;
        let kernel = Kernel::now()?;
        let (place, ways) = match config.forwarding {
            Forwarding::Routed => {
                let neighbours = Neighbours::configured(config.next_hops.iter().copied());
                let place = Place::Router { wired: wired.mac, radio: radio.mac };
                (place, Ways::Router(neighbours))
            }
            Forwarding::Bridge => {
                let ageing = kernel.bridge(&config.devices)?.ageing;
                let own = kernel.stations();
                (Place::Bridge { own }, Ways::Bridge(Bridged::new(ageing)))
            }
        };
        let share = match chosen.name {
            BackEnd::Fast => Share::Acks,
            _ => Share::Everything,
        };
        let own = kernel.addresses().into_iter().filter(|own| matters(config, own)).collect();
        let mobile = config.mobile.clone();
        Ok(Plan { chosen, selection: Selection { mobile, own, place, share }, ways })
    }

    /// Opens the sockets; nothing is taken from the kernel yet.
    ///
    /// # Errors
    /// If a device is gone or packet sockets are not allowed.
    pub fn sockets(&self, config: &DaemonConfig, clock: Clock) -> Result<Inline> {
        let mut io = match self.chosen.name {
            BackEnd::Fast => Inline::open_tapped(&config.devices, clock),
            _ => Inline::open(&config.devices, clock),
        }?;
        if let Some(rate) = config.radio_rate {
            io.limit_bursts(rate);
        }
        Ok(io)
    }

    /// Has the kernel leave to the daemon what it takes; `at_last` is called right before.
    ///
    /// # Errors
    /// If nft is missing or refuses, or another daemon's table is there.
    pub fn rules(&self, config: &DaemonConfig, at_last: impl FnOnce()) -> Result<Rules> {
        let (wired, radio) = (&config.devices.wired, &config.devices.radio);
        Rules::install(&self.selection.table(rules::TABLE, wired, radio)?, at_last)
    }
}

/// True if packets for this address of the machine's own could be taken: those of a family without
/// mobile hosts are not, and link-local ones nobody forwards.
fn matters(config: &DaemonConfig, own: &IpAddr) -> bool {
    let of_mobiles = config.mobile.iter().any(|prefix| prefix.network().is_ipv4() == own.is_ipv4());
    of_mobiles && !matches!(own, IpAddr::V6(own) if own.is_unicast_link_local())
}

/// Open sockets, with or without rules; dropping it leaves everything to the kernel.
#[derive(Debug)]
pub struct DataPath {
    /// First of all, so that they go before the sockets do.
    rules: Option<Rules>,
    /// Packets in and out.
    pub io: Inline,
    /// What was planned.
    pub plan: Plan,
}

/// Tokens of the poll.
const WIRED: u64 = 0;
const RADIO: u64 = 1;
const RULES: u64 = 2;
/// The first token that is not of the data path.
pub const TOKENS: u64 = 3;

impl DataPath {
    /// Opens the sockets, and takes nothing from the kernel.
    ///
    /// # Errors
    /// If the devices cannot be had, or the kernel does not forward between them as `config` says.
    pub fn open(config: &DaemonConfig, clock: Clock) -> Result<Self> {
        let plan = Plan::of(config)?;
        let io = plan.sockets(config, clock)?;
        Ok(DataPath { rules: None, io, plan })
    }

    /// Takes packets from the kernel, if it did not. `at_last` is called right before: whatever is
    /// in the sockets then, the kernel has forwarded.
    ///
    /// # Errors
    /// If the rules cannot be had.
    pub fn take(&mut self, config: &DaemonConfig, at_last: impl FnOnce(&mut Inline)) -> Result<()> {
        if self.rules.is_none() {
            self.rules = Some(self.plan.rules(config, || at_last(&mut self.io))?);
        }
        Ok(())
    }

    /// Takes nothing any more; true if it did. `meanwhile` is called until the kernel forwards, so
    /// that nothing waits that is older than what the kernel sends then.
    pub fn leave(&mut self, mut meanwhile: impl FnMut(&mut Inline)) -> bool {
        let Some(rules) = self.rules.take() else { return false };
        rules.withdraw(|| meanwhile(&mut self.io));
        true
    }

    /// Has `poll` wait for all of it; once for each time it was opened, or took.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn watch(&self, poll: &Poll) -> Result<()> {
        self.io.watch(poll, (WIRED, RADIO))?;
        self.rules.as_ref().map_or(Ok(()), |rules| poll.add(rules, RULES))
    }

    /// Ends what [`DataPath::watch`] began.
    pub fn unwatch(&self, poll: &Poll) {
        self.io.unwatch(poll);
        if let Some(rules) = &self.rules {
            // What is not watched need not be told.
            let _unknown = poll.remove(rules);
        }
    }

    /// When [`DataPath::attend`] is due though nothing wakes anybody.
    pub fn next_at(&self) -> Option<Instant> {
        self.io.next_at()
    }

    /// To be called after each wait, with what was ready.
    ///
    /// # Errors
    /// If a device is gone.
    pub fn attend(&mut self, poll: &Poll, ready: Ready) -> Result<()> {
        self.io.attend(poll, ready, (WIRED, RADIO))
    }
}

/// True if nft has ended, and the rules with it.
pub fn has_lost_its_rules(ready: Ready) -> bool {
    ready.contains(RULES)
}
