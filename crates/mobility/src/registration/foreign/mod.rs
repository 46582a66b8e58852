//! The foreign agent's side of a registration (RFC 5944, 3.7): relays requests and replies, keeps
//! the list of visitors, and tells the previous agent (WINC-BS-4, WINC-BS-5). As previous agent it
//! keeps where its visitor went (WINC-ST-7). Updates need identifications that are times
//! ([`super::Replay::Timestamps`]).

mod update;

use super::{end, low};
use crate::Keys;
use crate::agenda::Agenda;
use crate::binding::{Binding, Bindings};
use crate::clock::{Clock, Guard, NotTaken};
use crate::post::{self, v4};
use crate::refusal::{Refusal, Refusals};
use crate::retry::Retry;
use crate::tunnel::Encapsulation;
use core::net::{Ipv4Addr, SocketAddrV4};
use sansio::{Deadline, Duration, Instant, Notice, Packet, Priority, Side, Sink, Transport};
use std::collections::BTreeMap;
use wire::auth::Key;
use wire::mobile_ip::registration::{Code, Flags, Reply, Request};
use wire::mobile_ip::{Authenticator, Extension, Extensions, Message, PORT};

/// Parameters of a foreign agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Its address, which is its care-of address, too.
    pub address: Ipv4Addr,
    /// The longest registration it relays, in seconds.
    pub lifetime_max_s: u16,
    /// Mobile hosts that it serves or whose requests it relays, at most.
    pub visitors_max: usize,
    /// For how long it waits for the home agent (RFC 5944, 3.7.3).
    pub pending: Duration,
    /// How often it tells a previous agent.
    pub retry: Retry,
    /// The longest that it tunnels to a next agent, in seconds (PAR-15).
    pub forward_max_s: u16,
    /// How far a mobile host's clock may differ.
    pub tolerance: Duration,
    /// How it tunnels to the next agent.
    pub encapsulation: Encapsulation,
}

impl Config {
    /// A foreign agent at `address`: registrations up to 5 min, 1,000 visitors, 10 s of tunnelling
    /// to the next agent (PAR-15).
    pub fn new(address: Ipv4Addr) -> Self {
        Config {
            address,
            lifetime_max_s: 300,
            visitors_max: 1_000,
            pending: Duration::from_secs(7),
            retry: Retry::CONTROL,
            forward_max_s: 10,
            tolerance: Guard::TOLERANCE,
            encapsulation: Encapsulation::Ip,
        }
    }
}

/// What became known by a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A mobile host asks to be registered here (WINC-ST-2).
    Asked {
        /// The mobile host.
        mobile: Ipv4Addr,
        /// When it asked, by its own clock, if its key proves that.
        proved_at: Option<u64>,
    },
    /// A mobile host is registered here now.
    Arrived(Ipv4Addr),
    /// It has deregistered.
    Left(Ipv4Addr),
    /// Its previous agent has answered: what that one holds follows.
    Told(Ipv4Addr),
    /// It is at another agent now, and its packets go there (WINC-ST-5, WINC-ST-6).
    Moved {
        /// The mobile host.
        mobile: Ipv4Addr,
        /// When it registered there, by its own clock.
        registered_at: u64,
    },
}

/// A request that was relayed and not answered yet.
#[derive(Clone, Copy, Debug)]
struct Pending {
    low: u32,
    identification: u64,
    home_agent: Ipv4Addr,
    /// Where the mobile host asked from.
    port: u16,
    lifetime_s: u16,
    /// The mobile host's key proves that it asks now.
    is_proved: bool,
}

/// A binding update under way to a previous agent.
#[derive(Clone, Debug)]
struct Told {
    previous: Ipv4Addr,
    identification: u64,
    message: Vec<u8>,
    asked: u32,
}

/// What is timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    /// The home agent has not answered.
    Pending(Ipv4Addr),
    /// The previous agent has not answered.
    Told(Ipv4Addr),
}

/// A foreign agent's registrations. Visitors are on [`Side::RADIO`], home agents and other foreign
/// agents on [`Side::WIRED`].
#[derive(Clone, Debug)]
pub struct Relay {
    config: Config,
    clock: Clock,
    mobiles: Keys,
    home_agents: BTreeMap<Ipv4Addr, Key>,
    pending: BTreeMap<Ipv4Addr, Pending>,
    told: BTreeMap<Ipv4Addr, Told>,
    /// Registered here; the tunnel's other end is the home agent.
    visitors: Bindings,
    /// Where visitors went: the binding cache.
    cache: Bindings,
    /// The newest identification that is known of each mobile host with a key.
    guards: BTreeMap<Ipv4Addr, Guard>,
    timers: Agenda<Timer>,
    refusals: Refusals,
}

impl Relay {
    /// Nobody visits yet. The requests of a mobile host that has one of the `keys`, and where it is
    /// said to have gone, have to be proved by that.
    pub fn new(config: Config, keys: Keys, clock: Clock) -> Self {
        Relay {
            clock,
            mobiles: keys,
            home_agents: BTreeMap::new(),
            pending: BTreeMap::new(),
            told: BTreeMap::new(),
            visitors: Bindings::new(config.visitors_max),
            cache: Bindings::new(config.visitors_max),
            guards: BTreeMap::new(),
            timers: Agenda::new(),
            refusals: Refusals::default(),
            config,
        }
    }

    /// Shares a key with a home agent.
    pub fn trust(&mut self, home_agent: Ipv4Addr, key: Key) {
        self.home_agents.insert(home_agent, key);
    }

    /// A mobile host that was registered here when the run began.
    pub fn begin(&mut self, mobile: Ipv4Addr, now: Instant) {
        let binding = Binding {
            care_of: self.config.address,
            encapsulation: self.config.encapsulation,
            until: end(self.config.lifetime_max_s, now),
        };
        if !self.visitors.set(mobile, binding) {
            debug_assert!(false, "room for all mobile hosts");
        }
    }

    /// True if a mobile host is here: registered, or about to be by a request that its key proves.
    pub fn has(&self, mobile: Ipv4Addr, now: Instant) -> bool {
        let is_pending = |pending: &Pending| pending.is_proved && pending.lifetime_s > 0;
        self.visitors.get(mobile, now).is_some()
            || self.pending.get(&mobile).is_some_and(is_pending)
    }

    /// The home agent of a mobile host that is registered here.
    pub fn home_agent(&self, mobile: Ipv4Addr, now: Instant) -> Option<Ipv4Addr> {
        self.visitors.get(mobile, now).map(|visitor| visitor.care_of)
    }

    /// Where a mobile host went that was here.
    pub fn next_agent(&self, mobile: Ipv4Addr, now: Instant) -> Option<&Binding> {
        self.cache.get(mobile, now)
    }

    /// True while a mobile host's previous agent is told where it is, and has not answered.
    pub fn tells(&self, mobile: Ipv4Addr) -> bool {
        self.told.contains_key(&mobile)
    }

    /// What was refused.
    pub fn refusals(&self) -> &Refusals {
        &self.refusals
    }

    /// A mobile host is known to have gone: its registration here is over.
    pub fn depart(&mut self, mobile: Ipv4Addr) {
        self.visitors.remove(mobile);
        self.pending.remove(&mobile);
        self.timers.clear(Timer::Pending(mobile));
    }

    /// The earliest timer.
    pub fn next_deadline(&self) -> Option<Deadline> {
        let timer = self.timers.next().map(|(timer, at)| Deadline {
            at,
            timer: match timer {
                Timer::Pending(_) => "registration",
                Timer::Told(_) => "binding update",
            },
        });
        let ends = [self.visitors.next_at(), self.cache.next_at()];
        let ends = ends.into_iter().flatten().min().map(|at| Deadline { at, timer: "binding" });
        Deadline::earlier(timer, ends)
    }

    /// Takes a packet to this agent's registration port that came from a side.
    pub fn on_packet(
        &mut self,
        side: Side,
        packet: &Packet,
        sink: &mut impl Sink,
        now: Instant,
    ) -> Option<Outcome> {
        let bytes = post::udp_to(packet, PORT)?;
        let (source, port) = match packet.transport {
            Transport::Udp { source_port, .. } => (v4(packet.ip.source)?, source_port),
            _ => return None,
        };
        let message = match Message::parse(&bytes) {
            Ok(message) => message,
            Err(_) => return self.refuse(Refusal::Malformed, sink),
        };
        match (side, message) {
            (Side::RADIO, Message::Request(request, extensions)) => {
                self.on_request(&request, (extensions, &bytes), (source, port), sink, now)
            }
            (Side::WIRED, Message::Reply(reply, extensions)) => {
                self.on_reply(&reply, (extensions, &bytes), source, sink, now)
            }
            (Side::WIRED, Message::Update(update, extensions)) => {
                let from = SocketAddrV4::new(source, port);
                self.on_update(&update, (extensions, &bytes), from, sink, now)
            }
            (Side::WIRED, Message::Acknowledge(acknowledge, _)) => {
                self.on_acknowledge(&acknowledge, source, sink)
            }
            _ => self.refuse(Refusal::Misdirected, sink),
        }
    }

    fn refuse<T>(&mut self, reason: Refusal, sink: &mut impl Sink) -> Option<T> {
        self.refusals.count(reason, sink);
        None
    }

    fn on_request(
        &mut self,
        request: &Request,
        (extensions, message): (Extensions, &[u8]),
        (source, port): (Ipv4Addr, u16),
        sink: &mut impl Sink,
        now: Instant,
    ) -> Option<Outcome> {
        let mobile = request.home_address;
        // Any extension for the home agent passes; what it cannot read, it judges itself.
        if source != mobile {
            return self.refuse(Refusal::Misdirected, sink);
        }
        if let Err((reason, code)) = self.judge(request, extensions, message, now) {
            self.refusals.count(reason, sink);
            self.answer(request, code, port, sink);
            return None;
        }
        let time = self.time_of(request, now);
        let is_open = self.pending.contains_key(&mobile);
        match time {
            Some(Err(NotTaken::NotLater)) => return self.refuse(Refusal::Replayed, sink),
            Some(Err(NotTaken::TooFar)) if is_open => return self.refuse(Refusal::Clock, sink),
            // It is back (WINC-ST-8).
            Some(Ok(_)) => drop(self.cache.remove(mobile)),
            _ => {}
        }
        let proved_at = time.and_then(Result::ok);
        let pending = Pending {
            low: low(request.identification),
            identification: request.identification,
            home_agent: request.home_agent,
            port,
            lifetime_s: request.lifetime_s,
            is_proved: proved_at.is_some(),
        };
        self.pending.insert(mobile, pending);
        self.timers.set(Timer::Pending(mobile), now + self.config.pending);
        let mut relayed = message.to_vec();
        if let Some(key) = self.home_agents.get(&request.home_agent) {
            Authenticator::ForeignHome.append(key, &mut relayed);
        }
        self.send_wired(request.home_agent, relayed, sink);
        let notification = extensions.iter().find_map(|extension| match extension {
            Extension::PreviousForeignAgent(notification) => Some(notification),
            _ => None,
        });
        let is_old = matches!(time, Some(Err(_)));
        if let Some(notification) = notification.filter(|_| !is_old) {
            self.tell(request, &notification, sink, now);
        }
        Some(Outcome::Asked { mobile, proved_at })
    }

    /// When a mobile host asked, if its key proves that and it is new. One by a clock that is far
    /// off may be a replay as well: it is for the home agent to refuse, whose answer sets the
    /// clock, and changes nothing here. `None` without a key.
    fn time_of(&mut self, request: &Request, now: Instant) -> Option<Result<u64, NotTaken>> {
        if !self.mobiles.contains_key(&request.home_address) {
            return None;
        }
        let own = self.clock.read(now);
        if self.guards.len() > self.config.visitors_max {
            self.guards.retain(|_, guard| !guard.is_past(own, self.config.tolerance));
        }
        let sent_at = Clock::from_ntp(request.identification, own);
        let guard = self.guards.entry(request.home_address).or_default();
        Some(guard.take(sent_at, own, self.config.tolerance).map(|()| sent_at))
    }

    /// What a foreign agent checks (RFC 5944, 3.7.2.1).
    fn judge(
        &self,
        request: &Request,
        extensions: Extensions,
        message: &[u8],
        now: Instant,
    ) -> Result<(), (Refusal, Code)> {
        let mobile = request.home_address;
        if let Some(key) = self.mobiles.get(&mobile)
            && extensions.verify(Authenticator::MobileForeign, key, message).is_err()
        {
            return Err((Refusal::NotProved, Code::FOREIGN_MOBILE_FAILED_AUTHENTICATION));
        }
        let is_leaving = request.lifetime_s == 0;
        if !is_leaving && request.care_of_address != self.config.address {
            return Err((Refusal::Misdirected, Code::FOREIGN_INVALID_CARE_OF_ADDRESS));
        }
        if request.lifetime_s > self.config.lifetime_max_s {
            return Err((Refusal::Misdirected, Code::FOREIGN_LIFETIME_TOO_LONG));
        }
        if request.flags.0 & (Flags::MINIMAL_ENCAPSULATION.0 | Flags::GRE.0) != 0 {
            return Err((Refusal::Misdirected, Code::FOREIGN_ENCAPSULATION));
        }
        let is_known = self.pending.contains_key(&mobile) || self.has(mobile, now);
        if !is_known && self.pending.len() + self.visitors.len() >= self.config.visitors_max {
            return Err((Refusal::Full, Code::FOREIGN_INSUFFICIENT_RESOURCES));
        }
        Ok(())
    }

    /// This agent's own reply.
    fn answer(&self, request: &Request, code: Code, port: u16, sink: &mut impl Sink) {
        let reply = Reply {
            code,
            lifetime_s: request.lifetime_s.min(self.config.lifetime_max_s),
            home_address: request.home_address,
            home_agent: request.home_agent,
            identification: request.identification,
        };
        let mut bytes = Vec::with_capacity(64);
        reply.emit(&mut bytes);
        if let Some(key) = self.mobiles.get(&request.home_address) {
            Authenticator::MobileForeign.append(key, &mut bytes);
        }
        self.send_radio(SocketAddrV4::new(request.home_address, port), bytes, sink);
    }

    fn send_radio(&self, to: SocketAddrV4, bytes: Vec<u8>, sink: &mut impl Sink) {
        let packet = post::udp(SocketAddrV4::new(self.config.address, PORT), to, bytes, sink);
        sink.send(Side::RADIO, Priority::Normal, packet);
    }

    fn send_wired(&self, to: Ipv4Addr, bytes: Vec<u8>, sink: &mut impl Sink) {
        let from = SocketAddrV4::new(self.config.address, PORT);
        let packet = post::udp(from, SocketAddrV4::new(to, PORT), bytes, sink);
        sink.send(Side::WIRED, Priority::Normal, packet);
    }

    fn on_reply(
        &mut self,
        reply: &Reply,
        (extensions, message): (Extensions, &[u8]),
        source: Ipv4Addr,
        sink: &mut impl Sink,
        now: Instant,
    ) -> Option<Outcome> {
        let mobile = reply.home_address;
        let Some(pending) = self.pending.get(&mobile).copied() else {
            return self.refuse(Refusal::Unasked, sink);
        };
        if source != pending.home_agent || low(reply.identification) != pending.low {
            return self.refuse(Refusal::Unasked, sink);
        }
        if let Some(key) = self.home_agents.get(&source)
            && extensions.verify(Authenticator::ForeignHome, key, message).is_err()
        {
            return self.refuse(Refusal::NotProved, sink);
        }
        self.pending.remove(&mobile);
        self.timers.clear(Timer::Pending(mobile));
        let mut relayed = message.to_vec();
        if let Some(key) = self.mobiles.get(&mobile) {
            Authenticator::MobileForeign.append(key, &mut relayed);
        }
        self.send_radio(SocketAddrV4::new(mobile, pending.port), relayed, sink);
        if !reply.code.is_accepted() {
            return None;
        }
        self.cache.remove(mobile);
        let lifetime_s = reply.lifetime_s.min(pending.lifetime_s);
        if lifetime_s == 0 {
            self.visitors.remove(mobile);
            return Some(Outcome::Left(mobile));
        }
        let encapsulation = self.config.encapsulation;
        let until = end(lifetime_s, now);
        let visitor = Binding { care_of: pending.home_agent, encapsulation, until };
        if !self.visitors.set(mobile, visitor) {
            return self.refuse(Refusal::Full, sink);
        }
        Some(Outcome::Arrived(mobile))
    }

    /// Repeats and gives up what is due, and forgets what has ended.
    pub fn on_timer(&mut self, sink: &mut impl Sink, now: Instant) {
        while let Some(timer) = self.timers.pop_due(now) {
            match timer {
                Timer::Told(mobile) => self.tell_again(mobile, sink, now),
                Timer::Pending(mobile) => {
                    let Some(pending) = self.pending.remove(&mobile) else { continue };
                    let request = Request {
                        flags: Flags::default(),
                        lifetime_s: pending.lifetime_s,
                        home_address: mobile,
                        home_agent: pending.home_agent,
                        care_of_address: self.config.address,
                        identification: pending.identification,
                    };
                    let code = Code::FOREIGN_REGISTRATION_TIMEOUT;
                    self.answer(&request, code, pending.port, sink);
                }
            }
        }
        while self.visitors.expire(now).is_some() {}
        while let Some(mobile) = self.cache.expire(now) {
            sink.notify(Notice::BindingExpired(mobile.into()));
        }
    }
}
