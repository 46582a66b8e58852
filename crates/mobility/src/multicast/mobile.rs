//! The mobile host's side: which base station shall forward, which shall buffer (MCAST-11).

use super::Names;
use super::station::Newest;
use crate::clock::Clock;
use crate::mobile::MobileHost;
use crate::post;
use crate::refusal::{Refusal, Refusals};
use crate::retry::Retry;
use core::net::{IpAddr, Ipv4Addr};
use sansio::{Duration, HandoffStage, Instant, Notice, PacketRef, Priority, Side, Sink};
use std::collections::BTreeMap;
use wire::auth::Key;
use wire::control::{Body, Header, Message, Received, Role, Status};

/// Parameters of a mobile host with a multicast group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Its home address.
    pub own: Ipv4Addr,
    /// Its key.
    pub key: Key,
    /// Its group (MCAST-2).
    pub group: Ipv4Addr,
    /// How often it asks a base station.
    pub retry: Retry,
    /// Base stations that buffer, at most (PAR-10).
    pub buffering_max: usize,
    /// A role is asked for again after so long, before it ends by itself.
    pub renew: Duration,
    /// How packets are named.
    pub names: Names,
    /// A base station that does not answer has given up its role after so long: what it has for a
    /// role's lifetime, and what a message may be under way.
    pub forgotten: Duration,
}

impl Config {
    /// Four that buffer (PAR-10), asked again each second, packets named by digests (MOD-15).
    pub fn new(own: Ipv4Addr, key: Key, group: Ipv4Addr) -> Self {
        Config {
            own,
            key,
            group,
            retry: Retry::CONTROL,
            buffering_max: 4,
            renew: Duration::from_secs(1),
            names: Names::Digest,
            forgotten: Duration::from_millis(4_500),
        }
    }
}

/// What one base station shall do, and what it is known to do.
#[derive(Clone, Copy, Debug)]
struct Station {
    wanted: Role,
    /// What it has acknowledged; not known before it has answered.
    known: Option<Role>,
    /// The question under way: its number, and how often it was asked.
    asked: Option<(u32, u32)>,
    timer_at: Option<Instant>,
    renew_at: Instant,
}

/// The roles of all base stations near one mobile host.
#[derive(Clone, Debug)]
pub struct Conductor {
    config: Config,
    stations: BTreeMap<Ipv4Addr, Station>,
    /// Who shall forward.
    primary: Option<Ipv4Addr>,
    /// Who forwarded before, until the new one does (MCAST-12).
    outgoing: Option<Ipv4Addr>,
    /// Who else may still forward, and until when at most.
    ending: BTreeMap<Ipv4Addr, Instant>,
    /// A handoff is under way: neither complete nor failed.
    is_moving: bool,
    generation: u64,
    requests: u32,
    newest: Newest,
    refusals: Refusals,
}

impl Conductor {
    /// Base stations in the table, at most: those with a role, and those that are to lose theirs.
    pub const STATIONS_MAX: usize = 32;

    /// Nobody has a role.
    pub fn new(config: Config) -> Self {
        let newest = Newest::new(config.names);
        Conductor {
            config,
            stations: BTreeMap::new(),
            primary: None,
            outgoing: None,
            ending: BTreeMap::new(),
            is_moving: false,
            generation: 0,
            requests: 0,
            newest,
            refusals: Refusals::default(),
        }
    }

    /// The base station that forwarded when the run began.
    pub fn begin(&mut self, station: Ipv4Addr, now: Instant) {
        self.primary = Some(station);
        let known = Station {
            wanted: Role::Forward,
            known: Some(Role::Forward),
            asked: None,
            timer_at: None,
            renew_at: now + self.config.renew,
        };
        self.stations.insert(station, known);
    }

    /// Who shall forward.
    pub fn primary(&self) -> Option<Ipv4Addr> {
        self.primary
    }

    /// What was refused.
    pub fn refusals(&self) -> &Refusals {
        &self.refusals
    }

    /// True while a base station has not answered.
    pub fn is_under_way(&self) -> bool {
        self.is_moving || self.stations.values().any(|station| station.asked.is_some())
    }

    /// When [`Conductor::on_timer`] is due.
    pub fn next_at(&self) -> Option<Instant> {
        let asked = self.stations.values().filter_map(|station| station.timer_at);
        asked.chain(self.ending.values().copied()).min()
    }

    /// A datagram reached the mobile host (MCAST-13).
    pub fn on_datagram(&mut self, packet: &PacketRef) {
        self.newest.add(packet);
    }

    /// A beacon was measured (MCAST-11): `primary` shall forward; of `others`, the strongest first,
    /// as many as may shall buffer; all else ends.
    pub fn decide(
        &mut self,
        primary: Ipv4Addr,
        others: impl IntoIterator<Item = Ipv4Addr>,
        clock: &mut Clock,
        sink: &mut impl Sink,
        now: Instant,
    ) {
        if self.primary != Some(primary) {
            self.generation = clock.stamp(now).max(self.generation + 1);
            if self.outgoing.is_some() {
                // Chosen and not heard of: it may forward all the same.
                let until = now + self.config.forgotten;
                self.ending.extend(self.primary.map(|unsure| (unsure, until)));
            }
            self.outgoing = self.outgoing.or(self.primary).filter(|old| *old != primary);
            self.ending.remove(&primary);
            self.primary = Some(primary);
            self.is_moving = true;
            self.tell(HandoffStage::Begun, sink);
        }
        let others = others.into_iter().filter(|station| *station != primary);
        let mut wanted: BTreeMap<Ipv4Addr, Role> =
            others.take(self.config.buffering_max).map(|station| (station, Role::Buffer)).collect();
        wanted.insert(primary, Role::Forward);
        for station in wanted.keys() {
            if self.stations.len() < Self::STATIONS_MAX {
                let new = Station {
                    wanted: Role::None,
                    known: None,
                    asked: None,
                    timer_at: None,
                    renew_at: now,
                };
                self.stations.entry(*station).or_insert(new);
            }
        }
        let stations: Vec<Ipv4Addr> = self.stations.keys().copied().collect();
        for address in stations {
            let role = wanted.get(&address).copied().unwrap_or_default();
            self.want(address, role, clock, sink, now);
        }
    }

    /// Asks a base station for a role if it has another one, or has it for long. The one that
    /// forwarded before keeps on until the new one has answered (MCAST-12).
    fn want(
        &mut self,
        address: Ipv4Addr,
        role: Role,
        clock: &mut Clock,
        sink: &mut impl Sink,
        now: Instant,
    ) {
        let Some(station) = self.stations.get_mut(&address) else { return };
        if self.outgoing == Some(address) {
            station.wanted = role;
            return;
        }
        let is_changed = station.wanted != role || station.known.is_none_or(|known| known != role);
        let is_asked = station.asked.is_some() && station.wanted == role;
        station.wanted = role;
        if is_asked || !(is_changed || now >= station.renew_at) {
            return;
        }
        if role == Role::None && station.known == Some(Role::None) {
            return;
        }
        self.requests = self.requests.wrapping_add(1);
        station.asked = Some((self.requests, 0));
        self.ask(address, clock, sink, now);
    }

    fn ask(&mut self, address: Ipv4Addr, clock: &mut Clock, sink: &mut impl Sink, now: Instant) {
        let Some(station) = self.stations.get_mut(&address) else { return };
        let Some((request, times)) = &mut station.asked else { return };
        *times += 1;
        station.timer_at = Some(now + self.config.retry.wait(*times));
        station.renew_at = now + self.config.renew;
        let header = Header {
            mobile: self.config.own,
            sender: self.config.own,
            receiver: address,
            generation: self.generation,
            sent_at: clock.stamp(now),
            request: *request,
        };
        let role = station.wanted;
        let is_beginning = role == Role::Forward;
        let received = if is_beginning { self.newest.received() } else { Received::NONE };
        let body = Body::SetRole { role, group: self.config.group, received };
        let packet = post::control(&Message { header, body }, &self.config.key, sink);
        sink.send(self.way_to(address), Priority::High, packet);
    }

    /// Who may still forward beside the primary is told to end by ordinary routing over that one:
    /// where cells do not overlap, it is heard no more, and would forward to nobody until its role
    /// ends by itself.
    fn way_to(&self, address: Ipv4Addr) -> Side {
        let is_ending = self.ending.contains_key(&address);
        if is_ending { MobileHost::ROUTE } else { Side::NETWORK }
    }

    fn tell(&self, stage: HandoffStage, sink: &mut impl Sink) {
        sink.notify(Notice::HandoffStage { mobile: IpAddr::V4(self.config.own), stage });
    }

    /// Takes a proved message; false if it is not about roles.
    pub fn on_message(
        &mut self,
        message: &Message,
        clock: &mut Clock,
        sink: &mut impl Sink,
        now: Instant,
    ) -> bool {
        let Body::RoleAck { status, role } = message.body else { return false };
        let address = message.header.sender;
        let station = self.stations.get_mut(&address);
        let asked = station.filter(|station| {
            station.asked.is_some_and(|(request, _)| request == message.header.request)
        });
        let Some(station) = asked else {
            self.refusals.count(Refusal::Unasked, sink);
            return true;
        };
        station.asked = None;
        station.timer_at = None;
        station.known = Some(role);
        if role != Role::Forward {
            self.ending.remove(&address);
        }
        if status != Status::ACCEPTED {
            self.give_up(address, sink, now);
        } else if role == Role::None {
            self.stations.remove(&address);
        } else if self.primary == Some(address) && role == Role::Forward {
            self.on_new_primary(clock, sink, now);
        }
        self.complete_if_alone(sink);
        true
    }

    /// The new primary forwards: the old one may end.
    fn on_new_primary(&mut self, clock: &mut Clock, sink: &mut impl Sink, now: Instant) {
        if self.is_moving {
            self.tell(HandoffStage::Greeted, sink);
        }
        let Some(old) = self.outgoing.take() else { return };
        self.ending.insert(old, now + self.config.forgotten);
        let role = self.stations.get(&old).map_or(Role::None, |station| station.wanted);
        if let Some(station) = self.stations.get_mut(&old) {
            station.known = None;
            station.asked = None;
        }
        self.want(old, role, clock, sink, now);
    }

    /// The handoff is complete when the new primary forwards and nobody else may.
    fn complete_if_alone(&mut self, sink: &mut impl Sink) {
        let primary = self.primary.and_then(|primary| self.stations.get(&primary));
        let forwards = primary.is_some_and(|station| station.known == Some(Role::Forward));
        if self.is_moving && forwards && self.outgoing.is_none() && self.ending.is_empty() {
            self.is_moving = false;
            self.tell(HandoffStage::Complete, sink);
        }
    }

    /// Nobody answers there, or it refuses. A primary that does not answer is none: the old one
    /// goes on, and the next beacon decides again.
    fn give_up(&mut self, address: Ipv4Addr, sink: &mut impl Sink, now: Instant) {
        if let Some(station) = self.stations.get_mut(&address) {
            station.asked = None;
            station.timer_at = None;
            station.known = None;
            if station.wanted == Role::None && !self.ending.contains_key(&address) {
                // Its role ends by itself.
                self.stations.remove(&address);
            }
        }
        if self.primary == Some(address) && self.outgoing.is_some() {
            self.ending.insert(address, now + self.config.forgotten);
            self.primary = self.outgoing.take();
            self.is_moving = false;
            self.tell(HandoffStage::Failed, sink);
        }
    }

    /// Asks again, or gives up.
    pub fn on_timer(&mut self, clock: &mut Clock, sink: &mut impl Sink, now: Instant) {
        let due: Vec<Ipv4Addr> = self
            .stations
            .iter()
            .filter(|(_, station)| station.timer_at.is_some_and(|at| at <= now))
            .map(|(address, _)| *address)
            .collect();
        for address in due {
            let times = self.stations.get(&address).and_then(|station| station.asked);
            match times {
                Some((_, times)) if self.config.retry.is_last(times) => {
                    self.give_up(address, sink, now);
                }
                Some(_) => self.ask(address, clock, sink, now),
                None => {}
            }
        }
        let before = self.ending.len();
        self.ending.retain(|_, until| *until > now);
        if self.ending.len() < before {
            self.complete_if_alone(sink);
        }
    }
}
