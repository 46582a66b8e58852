//! Mobile hosts among several cells: the numbers of machines and hops, and who reaches whom.
//!
//! ```text
//!   fixed hosts ──wired── router 0 ──backhaul──┬── base station 1 ~ radio ~ mobile hosts
//!                                              └── base station 2 ~ radio ~
//! ```
//!
//! A cell's radio is one hop down and one up, shared by all who are in it in the order of arrival;
//! the hops of all cells may share one channel ([`link::hop::medium`]).
//! Whether a packet arrives is judged at the end of its time on the air: it is lost unless cell and
//! host reach each other then.

use crate::cell::End;
use crate::network::{Machine, NEVER, Node, Wire};
use link::Hop;
use link::hop::medium::Medium;
use node::movement::{Cell, Movement};
use node::plan::Way;
use node::roaming::address::mobile_number;
use node::roaming::{Agents, Roaming, Router, Station};
use node::scenario::{Channel, Departures};
use node::{Plan, movement};
use sansio::{Duration, Packet, Side};
use std::net::{IpAddr, Ipv4Addr};
use std::rc::Rc;
use trace::{NodeId, Role};

/// How machines and hops are numbered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    /// Base stations.
    pub(crate) cells: u16,
    /// Pairs of a fixed and a mobile host.
    pub(crate) pairs: u32,
}

/// A base station of several.
#[derive(Debug)]
pub(crate) struct Cellular {
    pub(crate) station: Station,
    pub(crate) departures: Option<Departures>,
}

/// Where mobile hosts are.
#[derive(Debug)]
pub(crate) struct Roam {
    pub(crate) layout: Layout,
    /// By mobile host.
    pub(crate) movements: Vec<Movement>,
    /// By cell: whom it reaches, in the order of their numbers.
    members: Vec<Vec<u32>>,
    /// The one channel of all cells, if they share one: down, and up, unless both are one.
    media: Vec<Medium>,
    /// From a crossing to its rendezvous nobody listens.
    pub(crate) has_rendezvous: bool,
    /// How often mobile hosts are told the signal, if they ask.
    pub(crate) signal_every: Option<Duration>,
}

/// What a hop joins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leads {
    /// Router to base station, and back.
    Backhaul(Way, u16),
    /// Base station to its cell, and back.
    Radio(Way, u16),
    /// Fixed host to router, and back.
    Wired(Way, u32),
}

/// The router.
pub(crate) const ROUTER: NodeId = NodeId(0);

/// A cell's base station.
pub(crate) const fn station(cell: u16) -> NodeId {
    NodeId(1 + cell as u32)
}

impl Layout {
    pub(crate) fn of(plan: &Plan, roaming: &Roaming) -> Self {
        Layout { cells: roaming.cells, pairs: plan.mobiles }
    }

    pub(crate) fn roles(self) -> Vec<Role> {
        let mut roles = vec![Role::Router];
        roles.resize(1 + usize::from(self.cells), Role::BaseStation);
        for _ in 0..self.pairs {
            roles.extend([Role::FixedHost, Role::MobileHost]);
        }
        roles
    }

    pub(crate) fn station(self, cell: u16) -> NodeId {
        station(cell)
    }

    pub(crate) fn fixed(self, pair: u32) -> NodeId {
        NodeId(1 + u32::from(self.cells) + 2 * pair)
    }

    pub(crate) fn mobile(self, pair: u32) -> NodeId {
        NodeId(2 + u32::from(self.cells) + 2 * pair)
    }

    /// What a hop joins, by its number.
    pub(crate) fn leads(self, wire: usize) -> Leads {
        let way = if wire.is_multiple_of(2) { Way::Down } else { Way::Up };
        let (pair, cells) = (wire / 2, usize::from(self.cells));
        match pair {
            station if station < cells => Leads::Backhaul(way, station as u16),
            cell if cell < 2 * cells => Leads::Radio(way, (cell - cells) as u16),
            host => Leads::Wired(way, (host - 2 * cells) as u32),
        }
    }

    /// The number of a hop.
    pub(crate) fn wire(self, leads: Leads) -> usize {
        let cells = usize::from(self.cells);
        let (pair, way) = match leads {
            Leads::Backhaul(way, station) => (usize::from(station), way),
            Leads::Radio(way, cell) => (cells + usize::from(cell), way),
            Leads::Wired(way, pair) => (2 * cells + pair as usize, way),
        };
        2 * pair + usize::from(way == Way::Up)
    }

    /// The hop on which a machine sends a packet from a side.
    pub(crate) fn wire_from(self, node: NodeId, side: Side, packet: &Packet) -> usize {
        let hosts = 1 + u32::from(self.cells);
        self.wire(match node {
            ROUTER if side == Router::FIXED => Leads::Wired(Way::Up, pair_of(packet)),
            ROUTER => Leads::Backhaul(Way::Down, side.0 - 1),
            NodeId(station) if station < hosts && side == Side::RADIO => {
                Leads::Radio(Way::Down, (station - 1) as u16)
            }
            NodeId(station) if station < hosts => Leads::Backhaul(Way::Up, (station - 1) as u16),
            NodeId(host) if (host - hosts).is_multiple_of(2) => {
                Leads::Wired(Way::Down, (host - hosts) / 2)
            }
            _ => Leads::Radio(Way::Up, side.0),
        })
    }

    /// From which machine and side to which a packet crosses a hop. A broadcast in a cell goes to
    /// the cell's first host here.
    pub(crate) fn ends(self, wire: usize, packet: &Packet) -> (End, End) {
        let station = |number, side| (self.station(number), side);
        let router = |station| (ROUTER, Router::side_of(station));
        let mobile = |address, cell| {
            let number = mobile_number(address).filter(|number| *number < self.pairs);
            (self.mobile(number.unwrap_or_default()), Side(cell))
        };
        match self.leads(wire) {
            Leads::Backhaul(Way::Down, to) => (router(to), station(to, Side::WIRED)),
            Leads::Backhaul(Way::Up, from) => (station(from, Side::WIRED), router(from)),
            Leads::Radio(Way::Down, cell) => {
                (station(cell, Side::RADIO), mobile(packet.ip.destination, cell))
            }
            Leads::Radio(Way::Up, cell) => {
                (mobile(packet.ip.source, cell), station(cell, Side::RADIO))
            }
            Leads::Wired(Way::Down, pair) => {
                ((self.fixed(pair), Side::NETWORK), (ROUTER, Router::FIXED))
            }
            Leads::Wired(Way::Up, pair) => {
                ((ROUTER, Router::FIXED), (self.fixed(pair), Side::NETWORK))
            }
        }
    }

    /// Where what waits for a hop waits; `None` if that is at several mobile hosts.
    pub(crate) fn queues_at(self, wire: usize) -> Option<End> {
        match self.leads(wire) {
            Leads::Backhaul(Way::Down, to) => Some((ROUTER, Router::side_of(to))),
            Leads::Backhaul(Way::Up, from) => Some((self.station(from), Side::WIRED)),
            Leads::Radio(Way::Down, cell) => Some((self.station(cell), Side::RADIO)),
            Leads::Radio(Way::Up, _) => None,
            Leads::Wired(Way::Down, pair) => Some((self.fixed(pair), Side::NETWORK)),
            Leads::Wired(Way::Up, _) => Some((ROUTER, Router::FIXED)),
        }
    }

    /// The hop from a base station into its cell.
    pub(crate) fn radio_of(self, station: NodeId) -> usize {
        self.wire(Leads::Radio(Way::Down, (station.0 - 1) as u16))
    }
}

/// The pair of a packet to a fixed host.
fn pair_of(packet: &Packet) -> u32 {
    node::cell::receiver(packet) as u32
}

/// True for a packet that all in a cell hear.
pub(crate) fn is_broadcast(packet: &Packet) -> bool {
    packet.ip.destination == IpAddr::V4(Ipv4Addr::BROADCAST)
}

impl Roam {
    /// Machines, hops, and where everybody is when the run begins.
    pub(crate) fn new(plan: &Plan, roaming: &Roaming, seed: u64) -> (Vec<Node>, Vec<Wire>, Roam) {
        let layout = Layout::of(plan, roaming);
        let movements = plan.movements(seed);
        let mut members = vec![Vec::new(); usize::from(layout.cells)];
        let mut first = vec![Vec::new(); usize::from(layout.cells)];
        for (mobile, movement) in (0..).zip(&movements) {
            first[usize::from(movement.first().0)].push(mobile);
            movement.reached().for_each(|Cell(cell)| members[usize::from(cell)].push(mobile));
        }
        let machines = machines(plan, roaming, (&movements, &first), seed);
        let nodes = machines.into_iter().map(|machine| Node { machine, armed: NEVER }).collect();
        let hops = hops(plan, roaming, layout, seed);
        let wires = hops.into_iter().map(|hop| Wire { due: NEVER, hop }).collect();
        let has_rendezvous = match &roaming.movement {
            movement::Spec::Dwell(spec) => spec.rendezvous.is_some(),
            movement::Spec::Path(_) => false,
        };
        let signal_every = plan.mobile_scheme().map(|_| SIGNAL_EVERY);
        let media = media(plan, layout);
        let roam = Roam { layout, movements, members, media, has_rendezvous, signal_every };
        (nodes, wires, roam)
    }

    /// True if frames pass between a mobile host and a cell's base station now.
    pub(crate) fn reaches(&self, mobile: NodeId, cell: u16) -> bool {
        let number = self.number_of(mobile);
        let reaches = self.members(cell).binary_search(&(number as u32)).is_ok();
        debug_assert_eq!(reaches, self.movements[number].reaches(Cell(cell)), "members are true");
        reaches
    }

    /// The number of a mobile host.
    pub(crate) fn number_of(&self, mobile: NodeId) -> usize {
        (mobile.0 - 2 - u32::from(self.layout.cells)) as usize / 2
    }

    /// The one channel of all cells that way, if they share one.
    pub(crate) fn medium(&mut self, way: Way) -> Option<&mut Medium> {
        let last = self.media.len().checked_sub(1)?;
        self.media.get_mut(last.min(usize::from(way == Way::Up)))
    }

    /// Whom a cell reaches.
    pub(crate) fn members(&self, cell: u16) -> &[u32] {
        &self.members[usize::from(cell)]
    }

    /// A cell reaches a mobile host from now on, or no more.
    pub(crate) fn set_member(&mut self, cell: u16, mobile: u32, is_member: bool) {
        let members = &mut self.members[usize::from(cell)];
        match (members.binary_search(&mobile), is_member) {
            (Err(place), true) => members.insert(place, mobile),
            (Ok(place), false) => drop(members.remove(place)),
            _ => {}
        }
    }
}

/// Between samples of the signal (LINK-1).
const SIGNAL_EVERY: Duration = Duration::from_millis(100);

/// Each base station is a station of its own; what mobile hosts send goes in the order in which it
/// came, whatever the cell, as it does within a cell.
fn media(plan: &Plan, layout: Layout) -> Vec<Medium> {
    let radio = |way| move |cell| layout.wire(Leads::Radio(way, cell));
    let down = (0..layout.cells).map(radio(Way::Down)).map(|wire| vec![wire]);
    let up: Vec<usize> = (0..layout.cells).map(radio(Way::Up)).collect();
    match (plan.channel, plan.radio.half_duplex) {
        (Channel::PerCell, _) => Vec::new(),
        (Channel::Shared, true) => vec![Medium::new(down.chain([up]))],
        (Channel::Shared, false) => vec![Medium::new(down), Medium::new([up])],
    }
}

fn machines(
    plan: &Plan,
    roaming: &Roaming,
    (movements, first): (&[Movement], &[Vec<u32>]),
    seed: u64,
) -> Vec<Machine> {
    let agents = Agents::new(roaming, plan.mobiles, seed);
    let cells = (0..).zip(movements).map(|(mobile, movement)| (mobile, movement.first().0));
    let mut machines = vec![Machine::Router(Box::new(agents.router(cells)))];
    let scheme = plan.base_station();
    for (cell, begin) in (0..).zip(first) {
        let departures = scheme.wants_departures().then_some(plan.departures);
        let station = agents.station(cell, scheme.clone(), begin);
        machines.push(Machine::Cellular(Box::new(Cellular { station, departures })));
    }
    let is_driven = matches!(roaming.movement, movement::Spec::Dwell(_));
    let (tcp, engine) = (Rc::new(plan.tcp), plan.mobile_scheme());
    for (pair, movement) in (0..).zip(movements) {
        let hosts = plan.hosts(&tcp, pair, seed);
        let at = (pair, movement.first().0);
        let mobile = agents.mobile(at, (hosts.mobile, engine.clone()), is_driven);
        machines.extend([Machine::Host(hosts.fixed), Machine::Roaming(Box::new(mobile))]);
    }
    machines
}

fn hops(plan: &Plan, roaming: &Roaming, layout: Layout, seed: u64) -> Vec<Hop<sansio::PacketRef>> {
    let count = 4 * usize::from(layout.cells) + 2 * layout.pairs as usize;
    let hop = |wire| {
        let backhaul;
        let (pair, way, name) = match layout.leads(wire) {
            Leads::Backhaul(way, cell) => {
                backhaul = roaming.backhaul_of(cell);
                (&backhaul, way, format!("backhaul.{cell}"))
            }
            Leads::Radio(way, cell) => (&plan.radio, way, format!("cell.{cell}.radio")),
            Leads::Wired(way, pair) => (&plan.wired, way, format!("{pair}.wired")),
        };
        match way {
            Way::Down => Hop::new(&pair.down, seed, &format!("{name}.down")),
            Way::Up => Hop::new(&pair.up, seed, &format!("{name}.up")),
        }
    };
    (0..count).map(hop).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_hop_has_one_number_and_every_machine_one_role() {
        let layout = Layout { cells: 3, pairs: 4 };
        for wire in 0..4 * 3 + 2 * 4 {
            assert_eq!(layout.wire(layout.leads(wire)), wire);
        }
        let roles = layout.roles();
        assert_eq!(roles.len(), 1 + 3 + 2 * 4);
        for cell in 0..3 {
            assert_eq!(roles[layout.station(cell).0 as usize], Role::BaseStation);
            let radio = layout.radio_of(layout.station(cell));
            assert_eq!(layout.leads(radio), Leads::Radio(Way::Down, cell));
        }
        for pair in 0..4 {
            assert_eq!(roles[layout.fixed(pair).0 as usize], Role::FixedHost);
            assert_eq!(roles[layout.mobile(pair).0 as usize], Role::MobileHost);
        }
    }
}
