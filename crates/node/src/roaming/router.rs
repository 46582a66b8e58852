//! The router between fixed hosts and base stations, with the home agent of all mobile hosts.
//!
//! ```text
//!   fixed hosts ── FIXED ── home agent, routes, groups ── 1 + b ── base station b
//! ```
//!
//! Base stations may lie behind branches: what goes from one to another of the same branch does not
//! come up to the home agent (`branches`).
//!
//! Multicast is unicast here (MOD-22): a group's datagram leaves once for each base station that
//! has joined, on the side of that one.

use super::address::{HOME_AGENT, mobile_number, station_number};
use super::branches::{Branch, Branches, Due, Way};
use super::igmp;
use crate::divert::divert;
use core::net::{IpAddr, Ipv4Addr};
use mobility::registration::home::HomeAgent;
use sansio::{
    Deadline, DropReason, Engine, Input, Instant, Notice, PacketId, PacketRef, Payload, Priority,
    Side, Sink,
};
use std::collections::{BTreeMap, BTreeSet};

/// The engine.
#[derive(Clone, Debug)]
pub struct Router {
    home: HomeAgent,
    /// Who has joined.
    groups: BTreeMap<Ipv4Addr, BTreeSet<u16>>,
    branches: Branches,
    notices: Vec<Notice>,
}

impl Router {
    /// The side of the fixed hosts.
    pub const FIXED: Side = Side(0);

    /// The side of a base station.
    pub fn side_of(station: u16) -> Side {
        Side(station + 1)
    }

    /// A router without groups. `branches`: of each base station, as far as they lie behind any.
    pub fn new(home: HomeAgent, branches: &[Branch]) -> Self {
        let branches = Branches::new(branches);
        Router { home, groups: BTreeMap::new(), branches, notices: Vec::new() }
    }

    /// The home agent.
    pub fn home(&self) -> &HomeAgent {
        &self.home
    }

    /// What is on its way between the home agent and base stations behind branches.
    pub fn held(&self) -> impl Iterator<Item = PacketId> + '_ {
        self.branches.held()
    }

    /// A base station is a member of a group from now on, or no more.
    pub fn set_member(&mut self, group: Ipv4Addr, station: u16, is_member: bool) {
        let members = self.groups.entry(group).or_default();
        if is_member {
            members.insert(station);
        } else {
            members.remove(&station);
        }
        if members.is_empty() {
            self.groups.remove(&group);
        }
    }

    fn on_arrival(&mut self, side: Side, packet: PacketRef, sink: &mut impl Sink, now: Instant) {
        let to = packet.ip.destination;
        if let Some((group, is_member)) = igmp::read(&packet) {
            if let Some(station) = side.0.checked_sub(1) {
                self.set_member(group, station, is_member);
            }
            return sink.discard(packet, DropReason::Consumed);
        }
        if to != IpAddr::V4(HOME_AGENT) && mobile_number(to).is_none() {
            return route((&self.groups, &mut self.branches), Priority::Normal, packet, sink, now);
        }
        let (groups, branches) = (&self.groups, &mut self.branches);
        let notices = &mut self.notices;
        let mut outputs = divert(sink, notices, |sink, side, priority, packet| match side {
            HomeAgent::HOME => sink.discard(packet, DropReason::Rule("not registered")),
            _ => route((groups, branches), priority, packet, sink, now),
        });
        self.home.handle(Input::Arrival { side: Side::NETWORK, packet }, &mut outputs, now);
        self.notices.clear();
    }
}

/// Sends a packet toward its destination.
fn route(
    (groups, branches): (&BTreeMap<Ipv4Addr, BTreeSet<u16>>, &mut Branches),
    priority: Priority,
    packet: PacketRef,
    sink: &mut impl Sink,
    now: Instant,
) {
    match packet.ip.destination {
        IpAddr::V4(group) if group.is_multicast() => {
            let Some(members) = groups.get(&group) else {
                return sink.discard(packet, DropReason::Rule("no member"));
            };
            for station in members.iter().skip(1) {
                let copy = copy(&packet, sink);
                branches.down(*station, (priority, copy), sink, now);
            }
            if let Some(first) = members.first() {
                branches.down(*first, (priority, packet), sink, now);
            }
        }
        to => match station_number(to) {
            Some(station) => branches.down(station, (priority, packet), sink, now),
            None => sink.send(Router::FIXED, priority, packet),
        },
    }
}

/// A group's datagram once more, and what is inside: each is a packet of its own.
fn copy(packet: &PacketRef, sink: &mut impl Sink) -> PacketRef {
    let mut copy = packet.repeat(sink.new_id(), packet.cause);
    if let Payload::Tunnel(inner) = &packet.payload {
        let inner = inner.repeat(sink.new_id(), inner.cause);
        copy.payload = Payload::Tunnel(sink.place(inner));
    }
    sink.place(copy)
}

impl Engine for Router {
    fn handle(&mut self, input: Input, sink: &mut impl Sink, now: Instant) {
        match input {
            Input::Arrival { side, packet } => {
                let from = side.0.checked_sub(1);
                match from.and_then(|from| self.branches.way_up(from, &packet)) {
                    Some(Way::Across(to)) => {
                        sink.send(Router::side_of(to), Priority::Normal, packet);
                    }
                    Some(Way::Later(delay)) => self.branches.hold_up(side, packet, now + delay),
                    None => self.on_arrival(side, packet, sink, now),
                }
            }
            Input::Timer => {
                while let Some(due) = self.branches.pop_due(now) {
                    match due {
                        Due::Up(side, packet) => self.on_arrival(side, packet, sink, now),
                        Due::Down(side, priority, packet) => sink.send(side, priority, packet),
                    }
                }
                self.home.handle(input, sink, now);
            }
            _ => {}
        }
    }

    fn next_deadline(&self) -> Option<Deadline> {
        Deadline::earlier(self.home.next_deadline(), self.branches.next_deadline())
    }
}
