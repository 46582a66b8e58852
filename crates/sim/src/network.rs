//! Hops and machines, and how they are joined.
//!
//! ```text
//!   fixed host 0 ──wired down──▶ base station 1 ──radio down──▶ mobile host 2
//!                ◀──wired up───                ◀──radio up────
//! ```
//!
//! Several such triples may stand side by side in one run, joined by nothing but time.

use link::{Hop, Outages};
use node::{Host, Plan};
use sansio::{Duration, PacketRef, Random, Side};
use schemes::Scheme;
use trace::{NodeId, Role};

/// A machine.
#[derive(Debug)]
pub(crate) enum Machine {
    /// Fixed or mobile host.
    Host(Box<Host>),
    /// Base station or gateway.
    Base(Box<Scheme>),
}

/// One direction of a link between two machines.
#[derive(Debug)]
pub(crate) struct Wire {
    pub(crate) hop: Hop<PacketRef>,
    pub(crate) from: (NodeId, Side),
    pub(crate) to: (NodeId, Side),
}

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
    pub(crate) machines: Vec<Machine>,
    pub(crate) wires: Vec<Wire>,
    pub(crate) away: Vec<Away>,
    pub(crate) forgetting: Vec<Forgetting>,
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
            machines: Vec::with_capacity((plan.triples * TRIPLE) as usize),
            wires: Vec::with_capacity((plan.triples * TRIPLE_WIRES) as usize),
            away: Vec::new(),
            forgetting: Vec::new(),
        };
        for triple in 0..plan.triples {
            network.add_triple(plan, triple, seed);
        }
        network
    }

    fn add_triple(&mut self, plan: &Plan, triple: u32, seed: u64) {
        let [fixed, base, mobile] = [0, 1, 2].map(|machine| NodeId(triple * TRIPLE + machine));
        let hosts = plan.hosts(triple, seed);
        self.machines.push(Machine::Host(Box::new(hosts.fixed)));
        self.machines.push(Machine::Base(Box::new(plan.base_station())));
        self.machines.push(Machine::Host(Box::new(hosts.mobile)));
        let name = |hop: &str| format!("{triple}.{hop}");
        let mut join = |config, name: String, from, to| {
            self.wires.push(Wire { hop: Hop::new(config, seed, &name), from, to });
        };
        let [host, wired, radio] = [Side::NETWORK, Side::WIRED, Side::RADIO];
        join(&plan.wired.down, name("wired.down"), (fixed, host), (base, wired));
        join(&plan.radio.down, name("radio.down"), (base, radio), (mobile, host));
        join(&plan.radio.up, name("radio.up"), (mobile, host), (base, radio));
        join(&plan.wired.up, name("wired.up"), (base, wired), (fixed, host));
        let outage = &plan.radio.down.outages;
        if !outage.is_never() {
            let outages = Outages::new(outage, seed);
            self.away.push(Away { outages, base, notified: outage.notified });
        }
        if let Some(every) = plan.forget_every {
            let random = Random::new(seed, &name("forget"));
            self.forgetting.push(Forgetting { base, every, random });
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
