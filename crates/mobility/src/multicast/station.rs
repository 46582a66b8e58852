//! The base station's side: a role and a circular buffer for each mobile host.

use super::{Names, digest};
use crate::Keys;
use crate::agenda::Agenda;
use crate::clock::Clock;
use crate::post;
use crate::refusal::{Refusal, Refusals};
use core::net::{IpAddr, Ipv4Addr};
use sansio::{
    Deadline, DropReason, Duration, Event, EventKind, Instant, Notice, PacketRef, Priority, Side,
    Sink,
};
use std::collections::{BTreeMap, VecDeque};
use wire::control::{Body, Header, Message, Received, Role, Status};

/// Parameters of a base station in multicast groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Its address.
    pub address: Ipv4Addr,
    /// Packets kept for each mobile host (MCAST-6).
    pub packets_max: usize,
    /// Mobile hosts with a role here, at most.
    pub mobiles_max: usize,
    /// How long a role lasts unless it is renewed.
    pub lifetime: Duration,
    /// Free all packets up to the newest that the mobile host has, as the paper says, and not only
    /// those that it names and those older than all of them (MCAST-14).
    pub frees_up_to_newest: bool,
}

impl Config {
    /// Twelve packets (MCAST-6), as the paper frees them.
    pub const fn strict(address: Ipv4Addr) -> Self {
        Config {
            address,
            packets_max: 12,
            mobiles_max: 1_000,
            lifetime: Duration::from_millis(3_500),
            frees_up_to_newest: true,
        }
    }

    /// Frees nothing that may be missing (MCAST-14).
    pub const fn modern(address: Ipv4Addr) -> Self {
        Config { frees_up_to_newest: false, ..Self::strict(address) }
    }
}

/// Why packets are let go that were kept for a role that has ended.
const NO_ROLE: DropReason = DropReason::Rule("MCAST-11");

/// What is kept for a mobile host.
#[derive(Clone, Debug)]
struct Entry {
    generation: u64,
    role: Role,
    group: Ipv4Addr,
    /// The oldest first.
    ring: VecDeque<PacketRef>,
}

impl Entry {
    /// What is kept is for nobody any more (MCAST-11).
    fn let_go(&mut self, sink: &mut impl Sink) {
        for packet in self.ring.drain(..) {
            sink.discard(packet, NO_ROLE);
        }
    }
}

/// One base station's memberships.
#[derive(Clone, Debug)]
pub struct Member {
    config: Config,
    keys: Keys,
    entries: BTreeMap<Ipv4Addr, Entry>,
    ends: Agenda<Ipv4Addr>,
    refusals: Refusals,
}

impl Member {
    /// A member of no group.
    pub fn new(config: Config, keys: Keys) -> Self {
        let (entries, ends) = (BTreeMap::new(), Agenda::new());
        Member { config, keys, entries, ends, refusals: Refusals::default() }
    }

    /// A mobile host for which this base station forwarded when the run began.
    pub fn begin(&mut self, mobile: Ipv4Addr, group: Ipv4Addr, now: Instant) {
        let ring = VecDeque::with_capacity(self.config.packets_max);
        self.entries.insert(mobile, Entry { generation: 0, role: Role::Forward, group, ring });
        self.ends.set(mobile, now + self.config.lifetime);
    }

    /// What this base station does with the packets of a mobile host.
    pub fn role(&self, mobile: Ipv4Addr) -> Role {
        self.entries.get(&mobile).map_or(Role::None, |entry| entry.role)
    }

    /// The group of a mobile host with a role here.
    pub fn group(&self, mobile: Ipv4Addr) -> Option<Ipv4Addr> {
        self.entries.get(&mobile).map(|entry| entry.group)
    }

    /// All packets kept.
    pub fn packets(&self) -> impl Iterator<Item = &PacketRef> {
        self.entries.values().flat_map(|entry| &entry.ring)
    }

    /// Packets kept for a mobile host.
    pub fn kept(&self, mobile: Ipv4Addr) -> usize {
        self.entries.get(&mobile).map_or(0, |entry| entry.ring.len())
    }

    /// What was refused.
    pub fn refusals(&self) -> &Refusals {
        &self.refusals
    }

    /// When the next role ends.
    pub fn next_deadline(&self) -> Option<Deadline> {
        self.ends.next().map(|(_, at)| Deadline { at, timer: "role" })
    }

    /// Ends the roles that were not renewed.
    pub fn on_timer(&mut self, sink: &mut impl Sink, now: Instant) {
        while let Some(mobile) = self.ends.pop_due(now) {
            self.forget(mobile, sink);
        }
    }

    fn forget(&mut self, mobile: Ipv4Addr, sink: &mut impl Sink) {
        self.ends.clear(mobile);
        if let Some(mut entry) = self.entries.remove(&mobile) {
            sink.notify(Notice::Group { group: IpAddr::V4(entry.group), is_member: false });
            entry.let_go(sink);
            tell(mobile, (entry.role, Role::None), sink);
        }
    }

    /// Takes a proved message that arrived on this side: a new role (MCAST-11). The answer leaves
    /// where it came from. Only who is heard on the radio is forwarded to; a base station that the
    /// mobile host has left is told by the wired network. Messages of an older generation change
    /// nothing; the answer says what is so.
    pub fn on_message(
        &mut self,
        (side, message): (Side, &Message),
        clock: &mut Clock,
        sink: &mut impl Sink,
        now: Instant,
    ) {
        let header = &message.header;
        let Body::SetRole { role, group, received } = message.body else {
            return self.refusals.count(Refusal::Misdirected, sink);
        };
        let is_afar = side != Side::RADIO && role == Role::Forward;
        if header.sender != header.mobile || !group.is_multicast() || is_afar {
            return self.refusals.count(Refusal::Misdirected, sink);
        }
        let status = self.set(header, role, group, sink, now);
        let role_now = self.role(header.mobile);
        let body = Body::RoleAck { status, role: role_now };
        let answer = Header {
            sender: self.config.address,
            receiver: header.mobile,
            sent_at: clock.stamp(now),
            ..*header
        };
        if let Some(key) = self.keys.get(&header.mobile) {
            let packet = post::control(&Message { header: answer, body }, key, sink);
            sink.send(side, Priority::High, packet);
        }
        if status == Status::ACCEPTED && role == Role::Forward {
            self.flush(header.mobile, &received, sink);
        }
    }

    fn set(
        &mut self,
        header: &Header,
        role: Role,
        group: Ipv4Addr,
        sink: &mut impl Sink,
        now: Instant,
    ) -> Status {
        let mobile = header.mobile;
        let is_full = self.entries.len() >= self.config.mobiles_max;
        match self.entries.get_mut(&mobile) {
            Some(entry) if header.generation < entry.generation => {
                self.refusals.count(Refusal::Stale, sink);
                return Status::STALE;
            }
            _ if role == Role::None => {
                self.forget(mobile, sink);
                return Status::ACCEPTED;
            }
            Some(entry) => {
                if entry.group != group {
                    sink.notify(Notice::Group { group: entry.group.into(), is_member: false });
                    sink.notify(Notice::Group { group: group.into(), is_member: true });
                    entry.let_go(sink);
                }
                tell(mobile, (entry.role, role), sink);
                (entry.generation, entry.role, entry.group) = (header.generation, role, group);
            }
            None if is_full => {
                self.refusals.count(Refusal::Full, sink);
                return Status::FULL;
            }
            None => {
                sink.notify(Notice::Group { group: group.into(), is_member: true });
                tell(mobile, (Role::None, role), sink);
                let ring = VecDeque::with_capacity(self.config.packets_max);
                let entry = Entry { generation: header.generation, role, group, ring };
                self.entries.insert(mobile, entry);
            }
        }
        self.ends.set(mobile, now + self.config.lifetime);
        Status::ACCEPTED
    }

    /// Sends what was kept and the mobile host has not (MCAST-14, MCAST-15), the oldest first.
    fn flush(&mut self, mobile: Ipv4Addr, received: &Received, sink: &mut impl Sink) {
        let frees_up_to_newest = self.config.frees_up_to_newest;
        let Some(entry) = self.entries.get_mut(&mobile) else { return };
        let is_named: Vec<bool> =
            entry.ring.iter().map(|packet| is_among(packet, received)).collect();
        let oldest = is_named.iter().position(|is_named| *is_named);
        let newest = is_named.iter().rposition(|is_named| *is_named);
        let mut sent = 0;
        for (place, packet) in entry.ring.drain(..).enumerate() {
            let bound = if frees_up_to_newest { newest } else { oldest };
            let is_old = bound.is_some_and(|bound| place <= bound);
            if is_old || is_named[place] {
                sink.discard(packet, DropReason::Rule("MCAST-14"));
            } else {
                sent += 1;
                sink.send(Side::RADIO, Priority::Normal, packet);
            }
        }
        let (id, did) = match newest {
            Some(_) => ("MCAST-14", "kept packets sent after those received"),
            None => ("MCAST-15", "all kept packets sent"),
        };
        let kind = EventKind::Rule { id, did, value: sent };
        sink.report(|| Event { flow: None, packet: None, kind });
    }

    /// A datagram for a mobile host came out of its group's tunnel: sent on (MCAST-4), or kept
    /// (MCAST-5, MCAST-6).
    pub fn on_datagram(&mut self, mobile: Ipv4Addr, packet: PacketRef, sink: &mut impl Sink) {
        let Some(entry) = self.entries.get_mut(&mobile) else {
            self.refusals.count(Refusal::UnknownMobile, sink);
            return sink.discard(packet, DropReason::Rule("MCAST-4"));
        };
        match entry.role {
            Role::Forward => sink.send(Side::RADIO, Priority::Normal, packet),
            Role::Buffer if self.config.packets_max > 0 => {
                if entry.ring.len() >= self.config.packets_max
                    && let Some(oldest) = entry.ring.pop_front()
                {
                    sink.discard(oldest, DropReason::Full("multicast buffer"));
                }
                entry.ring.push_back(packet.clone());
                // The engine beside this one has a structure of its own (SNHO-1).
                sink.send(Side::MIRROR, Priority::Normal, packet);
            }
            Role::Buffer | Role::None => sink.discard(packet, DropReason::Rule("MCAST-5")),
        }
    }
}

/// The other engines of the machine learn who forwards: a mobile host is here, or near, or neither.
fn tell(mobile: Ipv4Addr, (before, after): (Role, Role), sink: &mut impl Sink) {
    match (before, after) {
        (Role::Forward, Role::Forward) => {}
        (_, Role::Forward) => sink.notify(Notice::Registered(mobile.into())),
        (Role::Forward, Role::Buffer) => sink.notify(Notice::Buffering(mobile.into())),
        (Role::Forward | Role::Buffer, Role::None) => sink.notify(Notice::Moved(mobile.into())),
        (Role::Buffer | Role::None, _) => {}
    }
}

fn is_among(packet: &PacketRef, received: &Received) -> bool {
    match received {
        Received::Identifications { ids, count } => {
            ids[..usize::from(*count)].contains(&packet.ip.identification)
        }
        Received::Digests { ids, count } => ids[..usize::from(*count)].contains(&digest(packet)),
    }
}

/// The names of the packets that a mobile host received last, the newest first (MCAST-13).
#[derive(Clone, Copy, Debug, Default)]
pub struct Newest {
    names: Names,
    identifications: [u16; Received::MAX],
    digests: [u64; Received::MAX],
    count: usize,
}

impl Newest {
    /// None yet.
    pub fn new(names: Names) -> Self {
        Newest { names, ..Newest::default() }
    }

    /// One more was received.
    pub fn add(&mut self, packet: &PacketRef) {
        match self.names {
            Names::Identification => {
                self.identifications.rotate_right(1);
                self.identifications[0] = packet.ip.identification;
            }
            Names::Digest => {
                self.digests.rotate_right(1);
                self.digests[0] = digest(packet);
            }
        }
        self.count = (self.count + 1).min(Received::MAX);
    }

    /// As a message has them.
    pub fn received(&self) -> Received {
        match self.names {
            Names::Identification => {
                Received::identifications(self.identifications[..self.count].iter().copied())
            }
            Names::Digest => Received::digests(self.digests[..self.count].iter().copied()),
        }
    }
}
