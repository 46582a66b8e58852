//! Hops and machines, and how they are joined.
//!
//! ```text
//!   fixed host 0 ──wired down──▶ base station 1 ──radio down──▶ mobile host 2
//!                ◀──wired up───                ◀──radio up────
//! ```
//!
//! Several such triples may stand side by side in one run, joined by nothing but time.

use link::hop::half_duplex;
use link::{Hop, Outages};
use node::scenario::Departures;
use node::{Host, Plan};
use sansio::{Duration, Instant, PacketRef, Random, Side};
use schemes::Scheme;
use std::rc::Rc;
use tcp::Config;
use trace::{NodeId, Role};

/// A machine.
#[derive(Debug)]
pub(crate) enum Machine {
    /// Fixed or mobile host.
    Host(Host),
    /// Base station or gateway.
    Base(Base),
}

/// A base station: its scheme, and what that is told of departures onto the air, if it asks.
#[derive(Debug)]
pub(crate) struct Base {
    pub(crate) scheme: Scheme,
    pub(crate) departures: Option<Departures>,
}

/// A machine among others, and its valid entry in the queue: at its deadline or earlier.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) machine: Machine,
    pub(crate) armed: Instant,
}

/// One direction of a link, and its valid entry in the queue, at its next event; any other entry of
/// it is stale. In whole cache lines: the two that the hop's packets need begin here.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Wire {
    pub(crate) due: Instant,
    pub(crate) hop: Hop<PacketRef>,
}

/// No entry; no run lasts 584 years.
pub(crate) const NEVER: Instant = Instant::from_nanos(u64::MAX);

/// The outages of one triple's last hop.
#[derive(Debug)]
pub(crate) struct Away {
    pub(crate) outages: Outages,
    pub(crate) base: NodeId,
    pub(crate) notified: bool,
}

/// Random instants at which a base station forgets its soft state.
#[derive(Debug)]
pub(crate) struct Forgetting {
    pub(crate) base: NodeId,
    pub(crate) every: Duration,
    pub(crate) random: Random,
}

/// Everything of one run that is not an event.
#[derive(Debug)]
pub(crate) struct Network {
    pub(crate) nodes: Vec<Node>,
    /// One direction of a link each; [`Network::ends`] says whose.
    pub(crate) wires: Vec<Wire>,
    pub(crate) away: Vec<Away>,
    pub(crate) forgetting: Vec<Forgetting>,
    /// True if both directions of each radio share the air.
    half_duplex: bool,
}

/// Machines of one triple: fixed host, base station, mobile host.
pub(crate) const TRIPLE: u32 = 3;
/// Hops of one triple: wired down, radio down, radio up, wired up.
pub(crate) const TRIPLE_WIRES: u32 = 4;

/// The roles of all machines; a node's number is its index.
pub fn roles(triples: u32) -> Vec<Role> {
    let triple = [Role::FixedHost, Role::BaseStation, Role::MobileHost];
    triple.into_iter().cycle().take((triples * TRIPLE) as usize).collect()
}

impl Network {
    pub(crate) fn new(plan: &Plan, seed: u64) -> Network {
        let mut network = Network {
            nodes: Vec::with_capacity((plan.triples * TRIPLE) as usize),
            wires: Vec::with_capacity((plan.triples * TRIPLE_WIRES) as usize),
            away: Vec::new(),
            forgetting: Vec::new(),
            half_duplex: plan.radio.half_duplex,
        };
        let (scheme, tcp) = (plan.base_station(), Rc::new(plan.tcp));
        for triple in 0..plan.triples {
            network.add_triple(plan, (&scheme, &tcp), triple, seed);
        }
        network
    }

    fn add_triple(
        &mut self,
        plan: &Plan,
        (scheme, tcp): (&Scheme, &Rc<Config>),
        triple: u32,
        seed: u64,
    ) {
        let node = NodeId(triple * TRIPLE + 1);
        let hosts = plan.hosts(tcp, triple, seed);
        let departures = scheme.wants_departures().then_some(plan.departures);
        let base = Base { scheme: scheme.clone(), departures };
        let machines =
            [Machine::Host(hosts.fixed), Machine::Base(base), Machine::Host(hosts.mobile)];
        self.nodes.extend(machines.map(|machine| Node { machine, armed: NEVER }));
        let name = |hop: &str| format!("{triple}.{hop}");
        let hops = [
            Hop::new(&plan.wired.down, seed, &name("wired.down")),
            Hop::new(&plan.radio.down, seed, &name("radio.down")),
            Hop::new(&plan.radio.up, seed, &name("radio.up")),
            Hop::new(&plan.wired.up, seed, &name("wired.up")),
        ];
        self.wires.extend(hops.map(|hop| Wire { due: NEVER, hop }));
        let outage = &plan.radio.down.outages;
        if !outage.is_never() {
            let outages = Outages::new(outage, seed);
            self.away.push(Away { outages, base: node, notified: outage.notified });
        }
        if let Some(every) = plan.forget_every {
            let random = Random::new(seed, &name("forget"));
            self.forgetting.push(Forgetting { base: node, every, random });
        }
    }

    /// Decides who had the air up to `now`, if a hop shares it: before each call of a hop.
    #[inline]
    pub(crate) fn settle(&mut self, wire: usize, now: Instant) {
        if self.half_duplex {
            self.settle_air(wire, now);
        }
    }

    #[cold]
    fn settle_air(&mut self, wire: usize, now: Instant) {
        let first = wire - wire % TRIPLE_WIRES as usize;
        if let [_, down, up, _] = &mut self.wires[first..first + TRIPLE_WIRES as usize] {
            half_duplex::settle(&mut down.hop, &mut up.hop, now);
        }
    }

    /// From which machine and side to which a hop leads.
    #[inline]
    pub(crate) fn ends(wire: usize) -> ((NodeId, Side), (NodeId, Side)) {
        let (triple, wire) = (wire as u32 / TRIPLE_WIRES, wire as u32 % TRIPLE_WIRES);
        let end = |machine, side| (NodeId(triple * TRIPLE + machine), side);
        let (fixed, mobile) = (end(0, Side::NETWORK), end(2, Side::NETWORK));
        let (wired, radio) = (end(1, Side::WIRED), end(1, Side::RADIO));
        match wire {
            0 => (fixed, wired),
            1 => (radio, mobile),
            2 => (mobile, radio),
            _ => (wired, fixed),
        }
    }

    /// The hop on which a machine sends from a side.
    #[inline]
    pub(crate) fn wire_from(node: NodeId, side: Side) -> usize {
        let (triple, machine) = (node.0 / TRIPLE, node.0 % TRIPLE);
        let wire = match (machine, side) {
            (0, _) => 0,
            (1, Side::RADIO) => 1,
            (1, _) => 3,
            _ => 2,
        };
        (triple * TRIPLE_WIRES + wire) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Four of them are most of a flow's state: what only some hops have is apart.
    #[cfg(target_pointer_width = "64")]
    #[test]
    fn a_hop_fills_three_cache_lines() {
        assert_eq!(size_of::<Wire>(), 3 * 64);
    }

    #[test]
    fn a_hop_leads_from_where_packets_are_sent_on_it_to_the_machine_beside() {
        for wire in 0..3 * TRIPLE_WIRES as usize {
            let (from, to) = Network::ends(wire);
            assert_eq!(Network::wire_from(from.0, from.1), wire);
            let back = Network::wire_from(to.0, to.1);
            assert_eq!(Network::ends(back), (to, from), "the other direction of the same link");
        }
    }
}
