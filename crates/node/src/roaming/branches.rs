//! Base stations behind branches of a tree, as far as they lie behind any.
//!
//! ```text
//!   fixed hosts ── home agent ──┬── branch 0 ──┬── base station 0
//!                               │              └── base station 1
//!                               └── branch 1 ──┬── base station 2
//!                                              └── base station 3
//! ```
//!
//! The branches are within the router's machine: what passes one is held there for its delay, in
//! both directions, and keeps its order. Each has room for whatever comes.

use super::address::station_number;
use super::router::Router;
use sansio::{
    Deadline, Duration, Instant, Packet, PacketId, PacketRef, Payload, Priority, Side, Sink,
};
use std::collections::BTreeMap;

/// Behind which branch a base station lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Branch {
    /// Its number.
    pub number: u16,
    /// From the home agent to it, and back.
    pub delay: Duration,
}

/// What is between the home agent and the base stations.
#[derive(Clone, Debug)]
pub(super) struct Branches {
    of: Vec<Branch>,
    /// By the time at which it has passed, in the order in which it came.
    held: BTreeMap<(Instant, u64), Due>,
    count: u64,
}

/// What has passed a branch.
#[derive(Clone, Debug)]
pub(super) enum Due {
    /// From this side.
    Up(Side, PacketRef),
    /// To this side.
    Down(Side, Priority, PacketRef),
}

/// Where a packet of a base station goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// To this base station behind the same branch.
    Across(u16),
    /// To the home agent, after this time.
    Later(Duration),
}

impl Branches {
    pub(super) fn new(of: &[Branch]) -> Self {
        Branches { of: of.to_vec(), held: BTreeMap::new(), count: 0 }
    }

    fn of(&self, station: u16) -> Option<&Branch> {
        self.of.get(usize::from(station))
    }

    /// The way of a packet that a base station sends; none if it lies behind no branch.
    pub(super) fn way_up(&self, from: u16, packet: &Packet) -> Option<Way> {
        let branch = self.of(from)?;
        let to = station_number(packet.ip.destination);
        let beside = to.filter(|to| self.of(*to).is_some_and(|it| it.number == branch.number));
        Some(beside.map_or(Way::Later(branch.delay), Way::Across))
    }

    pub(super) fn hold_up(&mut self, side: Side, packet: PacketRef, until: Instant) {
        self.hold(Due::Up(side, packet), until);
    }

    /// Sends a packet from the home agent to a base station.
    pub(super) fn down(
        &mut self,
        station: u16,
        (priority, packet): (Priority, PacketRef),
        sink: &mut impl Sink,
        now: Instant,
    ) {
        let side = Router::side_of(station);
        match self.of(station).map(|branch| branch.delay) {
            Some(delay) => self.hold(Due::Down(side, priority, packet), now + delay),
            None => sink.send(side, priority, packet),
        }
    }

    fn hold(&mut self, due: Due, until: Instant) {
        self.count += 1;
        self.held.insert((until, self.count), due);
    }

    pub(super) fn pop_due(&mut self, now: Instant) -> Option<Due> {
        let entry = self.held.first_entry().filter(|entry| entry.key().0 <= now)?;
        Some(entry.remove())
    }

    /// What is held, what is inside of that, and what both were made from.
    pub(super) fn held(&self) -> impl Iterator<Item = PacketId> + '_ {
        let names = |packet: &Packet| core::iter::once(packet.id).chain(packet.parent);
        self.held.values().flat_map(move |due| {
            let (Due::Up(_, packet) | Due::Down(_, _, packet)) = due;
            let inner = match &packet.payload {
                Payload::Tunnel(inner) => Some(inner),
                _ => None,
            };
            names(packet).chain(inner.into_iter().flat_map(move |inner| names(inner)))
        })
    }

    pub(super) fn next_deadline(&self) -> Option<Deadline> {
        self.held.first_key_value().map(|((at, _), _)| Deadline { at: *at, timer: "branch" })
    }
}
