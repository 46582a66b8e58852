//! The mobile host's side of a registration (RFC 5944, 3.6): asks, repeats, renews, gives up.

use super::{Replay, end, high, identification, low};
use crate::clock::Clock;
use crate::post;
use crate::refusal::{Refusal, Refusals};
use crate::retry::Retry;
use core::net::{Ipv4Addr, SocketAddrV4};
use sansio::{Duration, Instant, Packet, Priority, Random, Side, Sink};
use wire::auth::Key;
use wire::mobile_ip::binding::Update;
use wire::mobile_ip::extension::PreviousForeignAgent;
use wire::mobile_ip::registration::{Code, Flags, Reply, Request};
use wire::mobile_ip::{Authenticator, Extension, Message, PORT};

/// Parameters of a mobile host's registrations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Its home address.
    pub home_address: Ipv4Addr,
    /// Its home agent.
    pub home_agent: Ipv4Addr,
    /// The key that both share.
    pub key: Key,
    /// For how long it registers, in seconds.
    pub lifetime_s: u16,
    /// How often it asks.
    pub retry: Retry,
    /// How replays are told; as the home agent has it.
    pub replay: Replay,
    /// For how long the previous agent shall tunnel, in seconds (PAR-15).
    pub previous_lifetime_s: u16,
}

impl Config {
    /// Registrations of 300 s by timestamps; the previous agent tunnels for 10 s (PAR-15).
    pub fn new(home_address: Ipv4Addr, home_agent: Ipv4Addr, key: Key) -> Self {
        Config {
            home_address,
            home_agent,
            key,
            lifetime_s: 300,
            retry: Retry::REGISTRATION,
            replay: Replay::Timestamps,
            previous_lifetime_s: 10,
        }
    }
}

/// The smallest difference for which the clock is set.
const CLOCK_STEP_MIN: Duration = Duration::from_secs(2);

/// Through whom to register.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Via {
    /// Where the request goes: the foreign agent, or the home agent from home.
    pub agent: Ipv4Addr,
    /// Where the tunnel shall end: the agent's care-of address, or the home address from home.
    pub care_of: Ipv4Addr,
    /// The longest registration the agent gives, in seconds.
    pub lifetime_max_s: u16,
    /// The key shared with the agent, if any.
    pub key: Option<Key>,
}

/// The agent before this one, which is to be told (WINC-BS-4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Previous {
    /// Its address.
    pub agent: Ipv4Addr,
    /// The key shared with it ([`crate::key_with`]).
    pub key: Key,
}

/// What became of a registration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It stands; after a deregistration: it is gone.
    Accepted,
    /// It was refused, and to ask again the same way is useless.
    Refused(Code),
    /// Nobody answered.
    GivenUp,
}

/// A question that waits for its answer.
#[derive(Clone, Debug)]
struct Question {
    via: Via,
    previous: Option<Previous>,
    lifetime_s: u16,
    /// The identification of the newest request.
    id: u64,
    asked: u32,
}

/// The registrations of one mobile host, one at a time.
#[derive(Clone, Debug)]
pub struct Registrar {
    config: Config,
    clock: Clock,
    random: Random,
    /// What the next request begins with ([`Replay::Nonces`]).
    nonce: u32,
    question: Option<Question>,
    /// The registration that stands, and when it ends.
    registered: Option<(Via, Option<Instant>)>,
    timer_at: Option<Instant>,
    refusals: Refusals,
}

impl Registrar {
    /// Not registered.
    pub fn new(config: Config, clock: Clock, random: Random) -> Self {
        Registrar {
            config,
            clock,
            random,
            nonce: 0,
            question: None,
            registered: None,
            timer_at: None,
            refusals: Refusals::default(),
        }
    }

    /// Registers through an agent; a question under way is given up.
    pub fn register(
        &mut self,
        via: Via,
        previous: Option<Previous>,
        sink: &mut impl Sink,
        now: Instant,
    ) {
        let lifetime_s = self.config.lifetime_s.min(via.lifetime_max_s);
        self.open(Question { via, previous, lifetime_s, id: 0, asked: 0 }, sink, now);
    }

    /// Gives the registration back: from home, or through the agent of a foreign network.
    pub fn deregister(&mut self, via: Via, sink: &mut impl Sink, now: Instant) {
        self.open(Question { via, previous: None, lifetime_s: 0, id: 0, asked: 0 }, sink, now);
    }

    /// The registration that stood when the run began.
    pub fn begin(&mut self, via: Via, now: Instant) {
        let lifetime_s = self.config.lifetime_s.min(via.lifetime_max_s);
        self.stand(via, lifetime_s, now);
    }

    /// A registration stands, and is renewed when three quarters of it are over.
    fn stand(&mut self, via: Via, lifetime_s: u16, now: Instant) {
        self.registered = (lifetime_s > 0).then(|| (via, end(lifetime_s, now)));
        let renew = Duration::from_secs(u64::from(lifetime_s) * 3 / 4);
        let has_end = matches!(self.registered, Some((_, Some(_))));
        self.timer_at = has_end.then(|| now + renew.max(Duration::from_millis(500)));
    }

    /// The agent and care-of address of the registration that stands.
    pub fn registered(&self, now: Instant) -> Option<&Via> {
        let (via, until) = self.registered.as_ref()?;
        until.is_none_or(|until| now < until).then_some(via)
    }

    /// True while an answer is waited for.
    pub fn is_asking(&self) -> bool {
        self.question.is_some()
    }

    /// The clock, as the home agent may have set it.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// What was refused.
    pub fn refusals(&self) -> &Refusals {
        &self.refusals
    }

    /// When [`Registrar::on_timer`] is due.
    pub fn next_at(&self) -> Option<Instant> {
        self.timer_at
    }

    fn open(&mut self, question: Question, sink: &mut impl Sink, now: Instant) {
        if self.registered.as_ref().is_some_and(|(via, _)| via.agent != question.via.agent) {
            // Whatever comes of it, the home agent may tunnel elsewhere from now on.
            self.registered = None;
        }
        self.question = Some(question);
        self.ask(sink, now);
    }

    /// Sends the question with a new identification and arms the timer.
    fn ask(&mut self, sink: &mut impl Sink, now: Instant) {
        let stamp = Clock::to_ntp(self.clock.stamp(now));
        let random = self.random.bits() as u32;
        let Some(question) = &mut self.question else { return };
        let id = match self.config.replay {
            Replay::Timestamps => stamp,
            Replay::Nonces => identification(self.nonce, random),
        };
        question.id = id;
        question.asked += 1;
        self.timer_at = Some(now + self.config.retry.wait(question.asked));
        let via = question.via.clone();
        let request = Request {
            flags: Flags::default(),
            lifetime_s: question.lifetime_s,
            home_address: self.config.home_address,
            home_agent: self.config.home_agent,
            care_of_address: via.care_of,
            identification: id,
        };
        let mut bytes = Vec::with_capacity(160);
        request.emit(&mut bytes);
        if let Some(previous) = &question.previous {
            append_notification(&request, previous, self.config.previous_lifetime_s, &mut bytes);
        }
        Authenticator::MobileHome.append(&self.config.key, &mut bytes);
        if let Some(key) = &via.key {
            Authenticator::MobileForeign.append(key, &mut bytes);
        }
        let from = SocketAddrV4::new(self.config.home_address, PORT);
        let packet = post::udp(from, SocketAddrV4::new(via.agent, PORT), bytes, sink);
        sink.send(Side::NETWORK, Priority::Normal, packet);
    }

    /// Takes a packet that may be a reply. Says what became of the question, if it is over.
    pub fn on_packet(
        &mut self,
        packet: &Packet,
        sink: &mut impl Sink,
        now: Instant,
    ) -> Option<Outcome> {
        let bytes = post::udp_to(packet, PORT)?;
        let Ok(Message::Reply(reply, extensions)) = Message::parse(&bytes) else {
            self.refusals.count(Refusal::Malformed, sink);
            return None;
        };
        if extensions.not_understood().is_some() || reply.home_address != self.config.home_address {
            self.refusals.count(Refusal::Misdirected, sink);
            return None;
        }
        let Some(question) = self.question.as_ref() else {
            self.refusals.count(Refusal::Unasked, sink);
            return None;
        };
        if !self.answers(&reply, question) {
            self.refusals.count(Refusal::Replayed, sink);
            return None;
        }
        // RFC 5944, 3.6.2.1: a foreign agent's own refusal is proved by its key only, if any.
        let agent = question.via.key.as_ref().map(|key| (Authenticator::MobileForeign, key));
        let home = (Authenticator::MobileHome, &self.config.key);
        let home = (!reply.code.is_foreign_agents()).then_some(home);
        let is_proved = [agent, home]
            .into_iter()
            .flatten()
            .all(|(between, key)| extensions.verify(between, key, &bytes).is_ok());
        if !is_proved {
            self.refusals.count(Refusal::NotProved, sink);
            return None;
        }
        self.on_reply(&reply, sink, now)
    }

    /// True if a reply is that to the newest request: it has the lower half of its identification,
    /// and with times an acceptance has all of it (RFC 5944, 5.7.1). The lower half alone is a
    /// fraction of a second.
    fn answers(&self, reply: &Reply, question: &Question) -> bool {
        match self.config.replay {
            Replay::Timestamps if reply.code.is_accepted() => reply.identification == question.id,
            _ => low(reply.identification) == low(question.id),
        }
    }

    fn on_reply(&mut self, reply: &Reply, sink: &mut impl Sink, now: Instant) -> Option<Outcome> {
        if self.config.replay == Replay::Nonces && !reply.code.is_foreign_agents() {
            self.nonce = high(reply.identification);
        }
        let question = self.question.as_mut()?;
        if reply.code.is_accepted() {
            // No longer than what was asked for.
            let lifetime_s = reply.lifetime_s.min(question.lifetime_s);
            let via = question.via.clone();
            self.question = None;
            self.stand(via, lifetime_s, now);
            return Some(Outcome::Accepted);
        }
        let is_last = self.config.retry.is_last(question.asked);
        match reply.code {
            Code::HOME_IDENTIFICATION_MISMATCH if !is_last => {
                // The lower half of the answer is this host's own, so it is exact to a second only;
                // a smaller difference tells of requests that overtook each other, not of clocks.
                let own = self.clock.read(now);
                let told = Clock::from_ntp(reply.identification, own);
                let is_off = told.abs_diff(own) > CLOCK_STEP_MIN.as_nanos();
                if self.config.replay == Replay::Timestamps && is_off {
                    self.clock.set(told, now);
                }
                self.ask(sink, now);
                None
            }
            // RFC 5944, 3.6.2: the reply has the longest that is given.
            Code::FOREIGN_LIFETIME_TOO_LONG if !is_last && reply.lifetime_s > 0 => {
                question.lifetime_s = question.lifetime_s.min(reply.lifetime_s);
                self.ask(sink, now);
                None
            }
            // The relay lost patience, not the home agent: the timer asks again.
            Code::FOREIGN_REGISTRATION_TIMEOUT if !is_last => None,
            code => {
                self.question = None;
                self.registered = None;
                self.timer_at = None;
                Some(Outcome::Refused(code))
            }
        }
    }

    /// Repeats a question, gives it up, or renews the registration.
    pub fn on_timer(&mut self, sink: &mut impl Sink, now: Instant) -> Option<Outcome> {
        if self.timer_at.is_none_or(|at| at > now) {
            return None;
        }
        self.timer_at = None;
        match &self.question {
            Some(question) if self.config.retry.is_last(question.asked) => {
                self.question = None;
                self.registered = None;
                Some(Outcome::GivenUp)
            }
            Some(_) => {
                self.ask(sink, now);
                None
            }
            None => {
                if let Some(via) = self.registered(now).cloned() {
                    self.register(via, None, sink, now);
                }
                None
            }
        }
    }
}

/// Appends what makes the new agent tell the previous one. The code in it is that of the binding
/// update which the new agent will send.
fn append_notification(
    request: &Request,
    previous: &Previous,
    lifetime_s: u16,
    message: &mut Vec<u8>,
) {
    let notification = PreviousForeignAgent {
        lifetime_s,
        previous_agent: previous.agent,
        care_of_address: request.care_of_address,
        spi: previous.key.spi(),
        code: &[],
    };
    let mut update = Vec::with_capacity(64);
    Update::for_previous_agent(request, &notification).emit(&mut update);
    Authenticator::RouteOptimization.append(&previous.key, &mut update);
    let code = &update[update.len() - previous.key.algorithm().bytes()..];
    let notification = PreviousForeignAgent { code, ..notification };
    let emitted = Extension::PreviousForeignAgent(notification).emit(message);
    debug_assert_eq!(emitted, Ok(()), "a code of 32 bytes fits");
}
