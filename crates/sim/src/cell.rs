//! Several mobile hosts at one base station: the numbers of its machines and hops.
//!
//! ```text
//!   fixed host 0 ──wired──┐                        ┌── mobile host 2
//!   fixed host 3 ──wired──┼── base station 1 ──radio┼── mobile host 4
//!   fixed host 5 ──wired──┘                        └── mobile host 6
//! ```
//!
//! The first three machines and four hops are those of a triple; the radio's two hops are shared by
//! all, and so it depends on the packet between whom one carries it.

use crate::network::{TRIPLE, TRIPLE_WIRES};
use link::What;
use node::cell::{receiver, sender};
use sansio::{Packet, PacketRef, Side};
use trace::{NodeId, Role};

/// Machine and side.
pub(crate) type End = (NodeId, Side);

pub(crate) const BASE: NodeId = NodeId(1);
const RADIO_DOWN: usize = 1;
const RADIO_UP: usize = 2;
/// The wires of the first pair; the other pairs' follow, two for each.
const FIRST: [usize; 2] = [0, 3];

/// The roles of all machines.
pub(crate) fn roles(mobiles: u32) -> Vec<Role> {
    let mut roles = vec![Role::FixedHost, Role::BaseStation, Role::MobileHost];
    for _ in 1..mobiles {
        roles.extend([Role::FixedHost, Role::MobileHost]);
    }
    roles
}

/// The fixed host of a pair.
pub(crate) fn fixed(pair: u32) -> NodeId {
    NodeId(if pair == 0 { 0 } else { TRIPLE + (pair - 1) * 2 })
}

/// The mobile host of a pair.
pub(crate) fn mobile(pair: u32) -> NodeId {
    NodeId(TRIPLE - 1 + pair * 2)
}

/// The hops of a pair's wired path: down, up.
fn wired(pair: usize) -> [usize; 2] {
    match pair {
        0 => FIRST,
        other => [0, 1].map(|way| TRIPLE_WIRES as usize + (other - 1) * 2 + way),
    }
}

/// To which packet something happened on a hop.
pub(crate) fn packet_of(what: &What<PacketRef>) -> &Packet {
    match what {
        What::Arrived(packet)
        | What::Departed(packet)
        | What::Lost(packet, _)
        | What::Verdict(packet, _) => packet,
        _ => unreachable!("all that happens on a hop happens to a packet"),
    }
}

/// From which machine and side to which a packet crosses a hop.
#[cold]
pub(crate) fn ends_of(wire: usize, packet: &Packet) -> (End, End) {
    let host = |node| (node, Side::NETWORK);
    match wire {
        RADIO_DOWN => ((BASE, Side::RADIO), host(mobile(receiver(packet) as u32))),
        RADIO_UP => (host(mobile(sender(packet) as u32)), (BASE, Side::RADIO)),
        _ => wired_ends(wire),
    }
}

/// The machine at which packets wait for a hop; `None` if each mobile host has its own queue.
pub(crate) fn queues_at(wire: usize) -> Option<End> {
    match wire {
        RADIO_DOWN => Some((BASE, Side::RADIO)),
        RADIO_UP => None,
        _ => Some(wired_ends(wire).0),
    }
}

/// True for the two hops of the radio.
pub(crate) fn is_radio(wire: usize) -> bool {
    matches!(wire, RADIO_DOWN | RADIO_UP)
}

fn wired_ends(wire: usize) -> (End, End) {
    let (pair, way) = match FIRST.iter().position(|first| *first == wire) {
        Some(way) => (0, way),
        None => ((wire - TRIPLE_WIRES as usize) / 2 + 1, wire % 2),
    };
    let (host, base) = ((fixed(pair as u32), Side::NETWORK), (BASE, Side::WIRED));
    if way == 0 { (host, base) } else { (base, host) }
}

/// The hop on which a machine sends a packet from a side.
#[cold]
pub(crate) fn wire_from(node: NodeId, side: Side, packet: &Packet) -> usize {
    match (node, side) {
        (BASE, Side::RADIO) => RADIO_DOWN,
        (BASE, _) => wired(receiver(packet))[1],
        (NodeId(0), _) => wired(0)[0],
        (NodeId(number), _) if number % 2 == 0 => RADIO_UP,
        (NodeId(number), _) => wired((number - TRIPLE) as usize / 2 + 1)[0],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_machine_has_a_number_and_every_wired_hop_leads_back() {
        let roles = roles(5);
        for pair in 0..5 {
            assert_eq!(roles[fixed(pair).0 as usize], Role::FixedHost);
            assert_eq!(roles[mobile(pair).0 as usize], Role::MobileHost);
        }
        assert_eq!(roles.len(), 11);
        let wires: Vec<usize> = (0..5).flat_map(wired).collect();
        let mut all: Vec<usize> = wires.into_iter().chain([RADIO_DOWN, RADIO_UP]).collect();
        all.sort_unstable();
        assert_eq!(all, (0..12).collect::<Vec<_>>());
        for pair in 0..5 {
            let [down, up] = wired(pair);
            let (host, base) = wired_ends(down);
            assert_eq!((host.0, base), (fixed(pair as u32), (BASE, Side::WIRED)));
            assert_eq!(wired_ends(up), (base, host), "the other direction of the same link");
        }
    }
}
