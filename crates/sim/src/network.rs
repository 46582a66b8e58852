//! Hops and machines, and how they are joined.
//!
//! ```text
//!   fixed host 0 ──wired down──▶ base station 1 ──radio down──▶ mobile host 2
//!                ◀──wired up───                ◀──radio up────
//! ```
//!
//! Several such triples may stand side by side in one run, joined by nothing but time; or one base
//! station has several mobile hosts (`cell`).

use crate::cell::{self, End};
use crate::roam::{Cellular, Layout, Leads, Roam};
use link::hop::half_duplex;
use link::{Hop, Outages, What};
use node::cell::{mobile_address, outage_seed, receiver, sender};
use node::plan::Way;
use node::roaming::{RoamingHost, Router};
use node::scenario::{Channel, Departures, Served};
use node::{Host, MobileHost, Plan};
use sansio::{Duration, Input, Instant, Notice, Packet, PacketRef, Random, Side};
use schemes::{MobileScheme, Scheme};
use std::rc::Rc;
use tcp::Config;
use trace::{NodeId, Role};

/// A machine.
#[derive(Debug)]
pub(crate) enum Machine {
    /// Fixed or mobile host.
    Host(Host),
    /// A mobile host with an engine of its own.
    Mobile(Box<MobileHost>),
    /// Base station or gateway.
    Base(Base),
    /// The router above several base stations.
    Router(Box<Router>),
    /// One of several base stations.
    Cellular(Box<Cellular>),
    /// A mobile host that changes cells.
    Roaming(Box<RoamingHost>),
}

impl Machine {
    /// Layer 2 of a mobile host: a cell reaches it from now on, or no more.
    pub(crate) fn set_reached(&mut self, cell: u16, is_reached: bool) {
        if let Machine::Roaming(host) = self {
            host.set_reached(cell, is_reached);
        }
    }
}

/// A base station: its scheme, and what that is told of departures onto the air, if it asks.
#[derive(Debug)]
pub(crate) struct Base {
    pub(crate) scheme: Scheme,
    pub(crate) departures: Option<Departures>,
    pub(crate) served: Served,
}

impl Base {
    /// True for a packet of a mobile host that the scheme does not serve.
    #[inline]
    pub(crate) fn bypasses(&self, input: &Input) -> bool {
        self.served == Served::First
            && match input {
                Input::Arrival { side: Side::WIRED, packet } => receiver(packet) > 0,
                Input::Arrival { packet, .. } => sender(packet) > 0,
                _ => false,
            }
    }
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

impl AsMut<Hop<PacketRef>> for Wire {
    fn as_mut(&mut self) -> &mut Hop<PacketRef> {
        &mut self.hop
    }
}

/// No entry; no run lasts 584 years.
pub(crate) const NEVER: Instant = Instant::from_nanos(u64::MAX);

/// The outages of one mobile host's last hop.
#[derive(Debug)]
pub(crate) struct Away {
    pub(crate) outages: Outages,
    /// Where they show: at the base station; at the mobile host where it is one of several.
    pub(crate) end: End,
    /// Who is told of begin and end, and what.
    pub(crate) notices: Option<(NodeId, [Notice; 2])>,
    /// The mobile host that is told, too, if it has an engine.
    pub(crate) mobile: Option<NodeId>,
    /// How long before an outage its signal gets weak.
    pub(crate) warned: Option<Duration>,
    pub(crate) stage: Stage,
}

/// How far an outage has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// None is near.
    Up,
    /// The mobile host has been warned of one.
    Warned,
    /// It is under way.
    Down,
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
    /// True if hops share the air: both directions of each radio, or all cells.
    shares_air: bool,
    shape: Shape,
    /// What stands at each mobile host.
    mobile: Option<MobileScheme>,
}

/// How machines and hops are joined.
#[derive(Debug)]
enum Shape {
    /// Triples side by side.
    Triples,
    /// Several mobile hosts share the radio of the one base station.
    Cell,
    /// Several cells.
    Roam(Box<Roam>),
}

/// A mobile host, behind its engine if there is one.
fn mobile_host(host: Host, engine: &Option<MobileScheme>) -> Machine {
    match engine {
        Some(engine) => Machine::Mobile(Box::new(MobileHost::new(host, engine.clone()))),
        None => Machine::Host(host),
    }
}

/// Machines of one triple: fixed host, base station, mobile host.
pub(crate) const TRIPLE: u32 = 3;
/// Hops of one triple: wired down, radio down, radio up, wired up.
pub(crate) const TRIPLE_WIRES: u32 = 4;

/// The roles of all machines; a node's number is its index.
pub fn roles(plan: &Plan) -> Vec<Role> {
    if let Some(roaming) = &plan.roaming {
        return Layout::of(plan, roaming).roles();
    }
    if plan.mobiles > 1 {
        return cell::roles(plan.mobiles);
    }
    let triple = [Role::FixedHost, Role::BaseStation, Role::MobileHost];
    triple.into_iter().cycle().take((plan.triples * TRIPLE) as usize).collect()
}

/// Fixed host, base station and mobile host of a pair of hosts.
pub(crate) fn machines(plan: &Plan, pair: u32) -> [NodeId; 3] {
    if let Some(roaming) = &plan.roaming {
        let (layout, first) = (Layout::of(plan, roaming), pair % u32::from(roaming.cells));
        return [layout.fixed(pair), layout.station(first as u16), layout.mobile(pair)];
    }
    if plan.mobiles > 1 {
        return [cell::fixed(pair), cell::BASE, cell::mobile(pair)];
    }
    [0, 1, 2].map(|machine| NodeId(pair * TRIPLE + machine))
}

impl Network {
    pub(crate) fn new(plan: &Plan, seed: u64) -> Network {
        let mut network = Network {
            nodes: Vec::with_capacity((plan.triples * TRIPLE) as usize),
            wires: Vec::with_capacity((plan.triples * TRIPLE_WIRES) as usize),
            away: Vec::new(),
            forgetting: Vec::new(),
            shares_air: plan.radio.half_duplex,
            shape: if plan.mobiles > 1 { Shape::Cell } else { Shape::Triples },
            mobile: plan.mobile_scheme(),
        };
        if let Some(roaming) = &plan.roaming {
            let (nodes, wires, roam) = Roam::new(plan, roaming, seed);
            (network.nodes, network.wires) = (nodes, wires);
            network.shape = Shape::Roam(Box::new(roam));
            network.shares_air |= plan.channel == Channel::Shared;
            return network;
        }
        let (scheme, tcp) = (plan.base_station(), Rc::new(plan.tcp));
        if plan.mobiles > 1 {
            network.add_cell(plan, (scheme, &tcp), seed);
            return network;
        }
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
        let base = Base { scheme: scheme.clone(), departures, served: plan.served };
        let mobile = mobile_host(hosts.mobile, &self.mobile);
        let machines = [Machine::Host(hosts.fixed), Machine::Base(base), mobile];
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
            let end = (node, Side::RADIO);
            let notices = [Notice::LinkDown(Side::RADIO), Notice::LinkUp(Side::RADIO)];
            let notices = outage.notified.then_some((node, notices));
            self.add_away(plan, (outages, end, notices), NodeId(node.0 + 1));
        }
        if let Some(every) = plan.forget_every {
            let random = Random::new(seed, &name("forget"));
            self.forgetting.push(Forgetting { base: node, every, random });
        }
    }

    /// One base station with all mobile hosts; see [`crate::cell`] for the order.
    fn add_cell(&mut self, plan: &Plan, (scheme, tcp): (Scheme, &Rc<Config>), seed: u64) {
        let departures = scheme.wants_departures().then_some(plan.departures);
        let mut base = Some(Machine::Base(Base { scheme, departures, served: plan.served }));
        let outage = &plan.radio.down.outages;
        for pair in 0..plan.mobiles {
            let hosts = plan.hosts(tcp, pair, seed);
            let mobile = mobile_host(hosts.mobile, &self.mobile);
            let machines = [Some(Machine::Host(hosts.fixed)), base.take(), Some(mobile)];
            let machines = machines.into_iter().flatten();
            self.nodes.extend(machines.map(|machine| Node { machine, armed: NEVER }));
            let hop = |config, name| Hop::new(config, seed, &format!("{pair}.wired.{name}"));
            let (down, up) = (hop(&plan.wired.down, "down"), hop(&plan.wired.up, "up"));
            let radio = [Way::Down, Way::Up].map(|way| plan.shared_hop(way, seed));
            let radio = radio.into_iter().filter(|_| pair == 0);
            let hops = [down].into_iter().chain(radio).chain([up]);
            self.wires.extend(hops.map(|hop| Wire { due: NEVER, hop }));
            if !outage.is_never() {
                let outages = Outages::new(outage, outage_seed(seed, pair));
                let end = (cell::mobile(pair), Side::NETWORK);
                let address = mobile_address(pair);
                let notices = [Notice::MobileDown(address), Notice::MobileUp(address)];
                let notices = outage.notified.then_some((cell::BASE, notices));
                self.add_away(plan, (outages, end, notices), cell::mobile(pair));
            }
        }
        if let Some(every) = plan.forget_every {
            let random = Random::new(seed, "0.forget");
            self.forgetting.push(Forgetting { base: cell::BASE, every, random });
        }
    }

    fn add_away(
        &mut self,
        plan: &Plan,
        (outages, end, notices): (Outages, End, Option<(NodeId, [Notice; 2])>),
        mobile: NodeId,
    ) {
        let mobile = notices.and(self.mobile.as_ref()).map(|_| mobile);
        let (warned, stage) = (plan.warned, Stage::Up);
        self.away.push(Away { outages, end, notices, mobile, warned, stage });
    }

    /// Decides who had the air up to `now`, if a hop shares it: before each call of a hop.
    #[inline]
    pub(crate) fn settle(&mut self, wire: usize, now: Instant) {
        if self.shares_air {
            self.settle_air(wire, now);
        }
    }

    #[cold]
    fn settle_air(&mut self, wire: usize, now: Instant) {
        let first = match &mut self.shape {
            Shape::Triples => wire - wire % TRIPLE_WIRES as usize,
            Shape::Cell => 0,
            Shape::Roam(roam) => {
                let Leads::Radio(way, _) = roam.layout.leads(wire) else { return };
                if let Some(medium) = roam.medium(way) {
                    return medium.settle(&mut self.wires, now);
                }
                let (before, at) = self.wires.split_at_mut(wire | 1);
                if let ([.., down], [up, ..]) = (before, at) {
                    half_duplex::settle(&mut down.hop, &mut up.hop, now);
                }
                return;
            }
        };
        if let [_, down, up, _] = &mut self.wires[first..first + TRIPLE_WIRES as usize] {
            half_duplex::settle(&mut down.hop, &mut up.hop, now);
        }
    }

    /// From which machine and side to which a hop leads, for what happened on it.
    #[inline]
    pub(crate) fn ends_of(&self, wire: usize, what: &What<PacketRef>) -> (End, End) {
        match &self.shape {
            Shape::Triples => Network::ends(wire),
            Shape::Cell => cell::ends_of(wire, cell::packet_of(what)),
            Shape::Roam(roam) => roam.layout.ends(wire, cell::packet_of(what)),
        }
    }

    /// The cells, if there are several.
    #[inline]
    pub(crate) fn roam(&self) -> Option<&Roam> {
        match &self.shape {
            Shape::Roam(roam) => Some(roam),
            _ => None,
        }
    }

    /// See [`Network::roam`].
    pub(crate) fn roam_mut(&mut self) -> Option<&mut Roam> {
        match &mut self.shape {
            Shape::Roam(roam) => Some(roam),
            _ => None,
        }
    }

    /// Where what waits for a hop waits; `None` if that is at several mobile hosts.
    pub(crate) fn queues_at(&self, wire: usize) -> Option<End> {
        match &self.shape {
            Shape::Triples => Some(Network::ends(wire).0),
            Shape::Cell => cell::queues_at(wire),
            Shape::Roam(roam) => roam.layout.queues_at(wire),
        }
    }

    /// The hop on which a machine sends a packet from a side.
    #[inline]
    pub(crate) fn wire_of(&self, node: NodeId, side: Side, packet: &Packet) -> usize {
        match &self.shape {
            Shape::Triples => Network::wire_from(node, side),
            Shape::Cell => cell::wire_from(node, side, packet),
            Shape::Roam(roam) => roam.layout.wire_from(node, side, packet),
        }
    }

    /// The hops of the radios.
    pub(crate) fn radio(&self) -> impl Iterator<Item = &Wire> {
        let is_radio = move |wire: usize| match &self.shape {
            Shape::Triples => cell::is_radio(wire % TRIPLE_WIRES as usize),
            Shape::Cell => cell::is_radio(wire),
            Shape::Roam(roam) => matches!(roam.layout.leads(wire), Leads::Radio(..)),
        };
        self.wires.iter().enumerate().filter(move |(wire, _)| is_radio(*wire)).map(|(_, wire)| wire)
    }

    /// From which machine and side to which a hop of a triple leads.
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

    /// The hop from a base station toward its mobile hosts.
    #[inline]
    pub(crate) fn radio_of(&self, base: NodeId) -> usize {
        match &self.shape {
            Shape::Roam(roam) => roam.layout.radio_of(base),
            _ => Network::radio_from(base),
        }
    }

    #[inline]
    fn radio_from(base: NodeId) -> usize {
        (base.0 / TRIPLE * TRIPLE_WIRES + 1) as usize
    }

    /// The hop on which a machine of a triple sends from a side.
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
            if from.1 == Side::RADIO {
                assert_eq!(Network::radio_from(from.0), wire);
            }
        }
    }
}
