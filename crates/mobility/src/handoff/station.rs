//! The base stations' side: who is here, who has gone where.

use crate::Keys;
use crate::agenda::Agenda;
use crate::clock::Clock;
use crate::post;
use crate::refusal::{Refusal, Refusals};
use crate::retry::Retry;
use core::net::Ipv4Addr;
use sansio::{Deadline, Duration, Instant, Notice, Priority, Side, Sink};
use std::collections::BTreeMap;
use wire::control::{Body, Header, Message, Previous, Status};

/// Parameters of a base station's handoffs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Its address.
    pub address: Ipv4Addr,
    /// From a greeting to the notice to the old base station: the time that the machine takes
    /// (PAR-2).
    pub notify_delay: Duration,
    /// How often it notifies.
    pub retry: Retry,
    /// Mobile hosts that it knows of, here or gone, at most.
    pub visitors_max: usize,
    /// The longest that it serves a mobile host without another greeting, in seconds.
    pub lifetime_max_s: u16,
    /// For how long the old base station shall tunnel, in seconds; it grants no more itself
    /// (PAR-15).
    pub forward_s: u16,
}

impl Config {
    /// The paper's machines: 100 ms (PAR-2).
    pub const fn strict(address: Ipv4Addr) -> Self {
        Config {
            address,
            notify_delay: Duration::from_millis(100),
            retry: Retry::CONTROL,
            visitors_max: 1_000,
            lifetime_max_s: 300,
            forward_s: 10,
        }
    }

    /// At once.
    pub const fn modern(address: Ipv4Addr) -> Self {
        Config { notify_delay: Duration::ZERO, ..Self::strict(address) }
    }
}

/// Where a mobile host is, as far as this base station knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In this cell.
    Here,
    /// At another base station, to which its packets go.
    Gone(Ipv4Addr),
}

/// What a message has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A mobile host has come (CI-HO-4).
    Arrived(Ipv4Addr),
    /// It has gone, and its kept packets are wanted or not (CI-HO-5, CI-SMOOTH-2).
    Moved {
        /// The mobile host.
        mobile: Ipv4Addr,
        /// To this base station.
        to: Ipv4Addr,
        /// What was kept is to be sent after it.
        wants_buffer: bool,
    },
}

/// What is known of a mobile host.
#[derive(Clone, Debug)]
struct Visit {
    generation: u64,
    place: Place,
    until: Instant,
    /// The mobile host's request, for the answers to it.
    request: u32,
    /// To the base stations that may take it for theirs.
    notices: Vec<MovedNotice>,
    wants_buffer: bool,
}

/// A notice to another base station.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct MovedNotice {
    to: Ipv4Addr,
    request: u32,
    /// How often it has left.
    times: u32,
    /// How it ended.
    done: Option<Status>,
}

impl Visit {
    /// How all notices ended, if they have: [`Status::TIMEOUT`] if one was not answered.
    fn done(&self) -> Option<Status> {
        let mut worst = Status::ACCEPTED;
        for notice in &self.notices {
            if notice.done? == Status::TIMEOUT {
                worst = Status::TIMEOUT;
            }
        }
        Some(worst)
    }
}

/// What is timed, per mobile host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    /// To a base station about a mobile host.
    Notice(Ipv4Addr, Ipv4Addr),
    End(Ipv4Addr),
}

/// The handoffs of one base station.
#[derive(Clone, Debug)]
pub struct Handover {
    config: Config,
    keys: Keys,
    clock: Clock,
    visits: BTreeMap<Ipv4Addr, Visit>,
    timers: Agenda<Timer>,
    requests: u32,
    refusals: Refusals,
}

impl Handover {
    /// Nobody is here yet.
    pub fn new(config: Config, keys: Keys, clock: Clock) -> Self {
        Handover {
            config,
            keys,
            clock,
            visits: BTreeMap::new(),
            timers: Agenda::new(),
            requests: 0,
            refusals: Refusals::default(),
        }
    }

    /// A mobile host that was here when the run began.
    pub fn begin(&mut self, mobile: Ipv4Addr, now: Instant) {
        let until = now + Duration::from_secs(self.config.lifetime_max_s.into());
        let (place, notices) = (Place::Here, Vec::new());
        let visit = Visit { generation: 0, place, until, request: 0, notices, wants_buffer: false };
        self.visits.insert(mobile, visit);
        self.timers.set(Timer::End(mobile), until);
    }

    /// Where a mobile host is; `None` if nothing is known, or no more.
    pub fn place(&self, mobile: Ipv4Addr, now: Instant) -> Option<Place> {
        let visit = self.visits.get(&mobile)?;
        (now < visit.until).then_some(visit.place)
    }

    /// True if `station` was told that a mobile host has come here: what it tunnels to here it has
    /// kept, or has got for it since.
    pub fn has_told(&self, station: Ipv4Addr, mobile: Ipv4Addr) -> bool {
        let visit = self.visits.get(&mobile);
        visit.is_some_and(|visit| visit.notices.iter().any(|notice| notice.to == station))
    }

    /// True while another base station is told that a mobile host has come here, and has not
    /// answered.
    pub fn tells(&self, mobile: Ipv4Addr) -> bool {
        let visit = self.visits.get(&mobile);
        visit.is_some_and(|visit| visit.notices.iter().any(|notice| notice.done.is_none()))
    }

    /// True if a mobile host that has gone wants what was kept for it.
    pub fn wants_buffer(&self, mobile: Ipv4Addr) -> bool {
        self.visits.get(&mobile).is_some_and(|visit| visit.wants_buffer)
    }

    /// The generation of a mobile host's newest attachment that is known.
    pub fn generation(&self, mobile: Ipv4Addr) -> Option<u64> {
        self.visits.get(&mobile).map(|visit| visit.generation)
    }

    /// How many mobile hosts are known, here or gone.
    pub fn len(&self) -> usize {
        self.visits.len()
    }

    /// True if none is known.
    pub fn is_empty(&self) -> bool {
        self.visits.is_empty()
    }

    /// What was refused.
    pub fn refusals(&self) -> &Refusals {
        &self.refusals
    }

    /// The clock that stamps this base station's messages, all of them: a receiver takes them in
    /// the order of their stamps only.
    pub fn clock(&mut self) -> &mut Clock {
        &mut self.clock
    }

    /// The earliest timer.
    pub fn next_deadline(&self) -> Option<Deadline> {
        self.timers.next().map(|(timer, at)| {
            let timer = match timer {
                Timer::Notice(..) => "moved notice",
                Timer::End(_) => "visit",
            };
            Deadline { at, timer }
        })
    }

    /// Takes a proved message that arrived on a side. `kept`: how many packets are kept for a
    /// mobile host.
    pub fn on_message(
        &mut self,
        (side, message): (Side, &Message),
        kept: impl Fn(Ipv4Addr) -> usize,
        sink: &mut impl Sink,
        now: Instant,
    ) -> Option<Outcome> {
        let header = &message.header;
        let is_mobile_s = header.sender == header.mobile;
        match (message.body, side) {
            (Body::Greeting { previous, wants_buffer, lifetime_s }, Side::RADIO) if is_mobile_s => {
                self.on_greeting(header, (previous, wants_buffer, lifetime_s), sink, now)
            }
            (Body::MovedNotice { wants_buffer, lifetime_s }, Side::WIRED) if !is_mobile_s => {
                let kept = if wants_buffer { kept(header.mobile) } else { 0 };
                self.on_notice(header, (wants_buffer, lifetime_s), kept, sink, now)
            }
            (Body::HandoffAck { status, .. }, Side::WIRED) if !is_mobile_s => {
                self.on_ack(header, status, sink, now);
                None
            }
            _ => {
                self.refusals.count(Refusal::Misdirected, sink);
                None
            }
        }
    }

    /// As new base station: a mobile host has come, or says so again (CI-HO-4).
    fn on_greeting(
        &mut self,
        header: &Header,
        (previous, wants_buffer, lifetime_s): (Previous, bool, u16),
        sink: &mut impl Sink,
        now: Instant,
    ) -> Option<Outcome> {
        let mobile = header.mobile;
        let is_full = self.visits.len() >= self.config.visitors_max;
        match self.visits.get_mut(&mobile) {
            Some(visit) if (header.generation, Place::Here) == (visit.generation, visit.place) => {
                let lifetime = u64::from(lifetime_s.min(self.config.lifetime_max_s));
                let until = now + Duration::from_secs(lifetime);
                self.timers.set(Timer::End(mobile), until);
                visit.until = until;
                self.answer(mobile, Body::GreetingAck { status: Status::ACCEPTED }, sink, now);
                self.complete_if_done(mobile, sink, now);
                return None;
            }
            Some(visit) if header.generation <= visit.generation => {
                self.refusals.count(Refusal::Stale, sink);
                return None;
            }
            None if is_full => {
                self.refusals.count(Refusal::Full, sink);
                let body = Body::GreetingAck { status: Status::FULL };
                self.send(header, mobile, body, sink, now);
                return None;
            }
            _ => {}
        }
        let lifetime = u64::from(lifetime_s.min(self.config.lifetime_max_s));
        let until = now + Duration::from_secs(lifetime);
        self.forget_notices(mobile);
        let mut notices: Vec<MovedNotice> = Vec::new();
        for to in previous.iter().filter(|to| *to != self.config.address) {
            self.requests = self.requests.wrapping_add(1);
            notices.push(MovedNotice { to, request: self.requests, times: 0, done: None });
            self.timers.set(Timer::Notice(mobile, to), now + self.config.notify_delay);
        }
        let (generation, place) = (header.generation, Place::Here);
        let request = header.request;
        let visit = Visit { generation, place, until, request, notices, wants_buffer };
        self.visits.insert(mobile, visit);
        self.timers.set(Timer::End(mobile), until);
        self.answer(mobile, Body::GreetingAck { status: Status::ACCEPTED }, sink, now);
        self.complete_if_done(mobile, sink, now);
        self.on_timer(sink, now);
        Some(Outcome::Arrived(mobile))
    }

    fn forget_notices(&mut self, mobile: Ipv4Addr) {
        let notices = self.visits.get_mut(&mobile).map(|visit| core::mem::take(&mut visit.notices));
        for notice in notices.into_iter().flatten() {
            self.timers.clear(Timer::Notice(mobile, notice.to));
        }
    }

    /// Answers the mobile host's newest greeting.
    fn answer(&mut self, mobile: Ipv4Addr, body: Body, sink: &mut impl Sink, now: Instant) {
        let Some(visit) = self.visits.get(&mobile) else { return };
        let header = Header {
            mobile,
            sender: mobile,
            receiver: self.config.address,
            generation: visit.generation,
            sent_at: 0,
            request: visit.request,
        };
        self.send(&header, mobile, body, sink, now);
    }

    /// Sends what answers `asked`, or goes on about it, to a receiver: the mobile host on the
    /// radio, other base stations by wire.
    fn send(
        &mut self,
        asked: &Header,
        receiver: Ipv4Addr,
        body: Body,
        sink: &mut impl Sink,
        now: Instant,
    ) {
        let (sender, sent_at) = (self.config.address, self.clock.stamp(now));
        let Some(key) = self.keys.get(&asked.mobile) else { return };
        let header = Header { sender, receiver, sent_at, ..*asked };
        let packet = post::control(&Message { header, body }, key, sink);
        let side = if receiver == asked.mobile { Side::RADIO } else { Side::WIRED };
        sink.send(side, Priority::High, packet);
    }

    fn complete_if_done(&mut self, mobile: Ipv4Addr, sink: &mut impl Sink, now: Instant) {
        if let Some(status) = self.visits.get(&mobile).and_then(Visit::done) {
            self.answer(mobile, Body::Completion { status }, sink, now);
        }
    }

    /// As old base station: the mobile host has moved (CI-HO-5). Of one that is not known here,
    /// because this base station was restarted, what still comes is sent on, too.
    fn on_notice(
        &mut self,
        header: &Header,
        (wants_buffer, lifetime_s): (bool, u16),
        kept: usize,
        sink: &mut impl Sink,
        now: Instant,
    ) -> Option<Outcome> {
        let (mobile, to) = (header.mobile, header.sender);
        let place = Place::Gone(to);
        let (status, is_new) = match self.visits.get(&mobile) {
            Some(visit) if (header.generation, place) == (visit.generation, visit.place) => {
                (Status::ACCEPTED, false)
            }
            Some(visit) if header.generation <= visit.generation => {
                self.refusals.count(Refusal::Stale, sink);
                (Status::STALE, false)
            }
            Some(_) => (Status::ACCEPTED, true),
            None if self.visits.len() >= self.config.visitors_max => {
                self.refusals.count(Refusal::Full, sink);
                (Status::FULL, false)
            }
            None => (Status::UNKNOWN, true),
        };
        let buffered = if is_new { kept.min(usize::from(u16::MAX)) as u16 } else { 0 };
        self.send(header, to, Body::HandoffAck { status, buffered }, sink, now);
        if !is_new {
            return None;
        }
        let lifetime = u64::from(lifetime_s.min(self.config.forward_s));
        let until = now + Duration::from_secs(lifetime);
        self.forget_notices(mobile);
        let (generation, notices) = (header.generation, Vec::new());
        let visit = Visit { generation, place, until, request: 0, notices, wants_buffer };
        self.visits.insert(mobile, visit);
        self.timers.set(Timer::End(mobile), until);
        Some(Outcome::Moved { mobile, to, wants_buffer })
    }

    /// The old base station has answered (CI-HO-6).
    fn on_ack(&mut self, header: &Header, status: Status, sink: &mut impl Sink, now: Instant) {
        let mobile = header.mobile;
        let visit = self.visits.get_mut(&mobile);
        let visit = visit.filter(|visit| visit.generation == header.generation);
        let notice = visit.and_then(|visit| {
            visit.notices.iter_mut().find(|notice| {
                let is_open = notice.done.is_none();
                is_open && (notice.to, notice.request) == (header.sender, header.request)
            })
        });
        let Some(notice) = notice else { return self.refusals.count(Refusal::Unasked, sink) };
        notice.done = Some(status);
        self.timers.clear(Timer::Notice(mobile, header.sender));
        // What it holds follows its answer.
        sink.notify(Notice::TunnelOpened(mobile.into()));
        self.complete_if_done(mobile, sink, now);
    }

    /// A registration at a time later than the newest attachment that is known here shows that a
    /// mobile host is in this cell, or that it is not: what says otherwise is forgotten.
    pub fn learn(&mut self, mobile: Ipv4Addr, is_here: bool, registered_at: u64) {
        let visit = self.visits.get(&mobile);
        let contradicts = |visit: &Visit| !(is_here && visit.place == Place::Here);
        if visit.is_some_and(|visit| contradicts(visit) && visit.generation < registered_at) {
            self.forget(mobile);
        }
    }

    fn forget(&mut self, mobile: Ipv4Addr) {
        self.forget_notices(mobile);
        self.timers.clear(Timer::End(mobile));
        self.visits.remove(&mobile);
    }

    /// Notifies other base stations, again or for the last time, and forgets whose time is over.
    pub fn on_timer(&mut self, sink: &mut impl Sink, now: Instant) {
        while let Some(timer) = self.timers.pop_due(now) {
            match timer {
                Timer::Notice(mobile, to) => self.notify(mobile, to, sink, now),
                Timer::End(mobile) => {
                    let place = self.visits.get(&mobile).map(|visit| visit.place);
                    if matches!(place, Some(Place::Gone(_))) {
                        sink.notify(Notice::BindingExpired(mobile.into()));
                    }
                    self.forget(mobile);
                }
            }
        }
    }

    fn notify(&mut self, mobile: Ipv4Addr, to: Ipv4Addr, sink: &mut impl Sink, now: Instant) {
        let Some(visit) = self.visits.get_mut(&mobile) else { return };
        let (generation, wants_buffer) = (visit.generation, visit.wants_buffer);
        let Some(notice) = visit.notices.iter_mut().find(|notice| notice.to == to) else { return };
        if self.config.retry.is_last(notice.times) {
            notice.done = Some(Status::TIMEOUT);
            return self.complete_if_done(mobile, sink, now);
        }
        notice.times += 1;
        let (request, wait) = (notice.request, self.config.retry.wait(notice.times));
        self.timers.set(Timer::Notice(mobile, to), now + wait);
        let sender = self.config.address;
        let header = Header { mobile, sender, receiver: to, generation, sent_at: 0, request };
        let body = Body::MovedNotice { wants_buffer, lifetime_s: self.config.forward_s };
        self.send(&header, to, body, sink, now);
    }
}
