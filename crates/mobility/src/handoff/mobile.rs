//! The mobile host's side: greets, and tells the machine how far the handoff has gone.

use crate::clock::Clock;
use crate::post;
use crate::refusal::{Refusal, Refusals};
use crate::retry::Retry;
use core::net::{IpAddr, Ipv4Addr};
use sansio::{Duration, HandoffStage, Instant, Notice, Priority, Side, Sink};
use wire::control::{Body, Header, Message, Previous, Status};

/// Parameters of a mobile host's handoffs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// From the decision to the greeting and the change of the route: the time that the machine
    /// takes (PAR-2).
    pub greet_delay: Duration,
    /// How often it greets.
    pub retry: Retry,
    /// For how long a base station shall serve it, in seconds.
    pub lifetime_s: u16,
    /// The old base station shall send on what it kept (CI-SMOOTH-2).
    pub wants_buffer: bool,
}

impl Config {
    /// The paper's machines: 50 ms (PAR-2), nothing kept.
    pub const fn strict() -> Self {
        let greet_delay = Duration::from_millis(50);
        Config { greet_delay, retry: Retry::CONTROL, lifetime_s: 300, wants_buffer: false }
    }

    /// At once, and with what the old base station has kept.
    pub const fn modern() -> Self {
        Config { greet_delay: Duration::ZERO, wants_buffer: true, ..Self::strict() }
    }
}

/// How far the handoff is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// No handoff is under way.
    Idle,
    /// The decision has fallen; the greeting leaves at the timer.
    Deciding,
    /// Greeted so often without a completion; the base station has answered, or not yet.
    Greeting { asked: u32, is_greeted: bool },
    /// Attached, and greeted again so often because the base station's lifetime is about to end.
    Renewing { asked: u32 },
}

/// The handoffs of one mobile host.
#[derive(Clone, Debug)]
pub struct Greeter {
    config: Config,
    own: Ipv4Addr,
    key: wire::auth::Key,
    state: State,
    timer_at: Option<Instant>,
    generation: u64,
    request: u32,
    /// To whom the handoff under way leads.
    target: Option<Ipv4Addr>,
    /// The base station that has answered last.
    attached: Option<Ipv4Addr>,
    /// Base stations that may take the mobile host for theirs, the newest first.
    unsettled: Vec<Ipv4Addr>,
    refusals: Refusals,
}

impl Greeter {
    /// Base stations that are remembered until they are told, at most.
    pub const UNSETTLED_MAX: usize = 16;

    /// The mobile host of this home address and key is attached to nobody.
    pub fn new(config: Config, own: Ipv4Addr, key: wire::auth::Key) -> Self {
        Greeter {
            config,
            own,
            key,
            state: State::Idle,
            timer_at: None,
            generation: 0,
            request: 0,
            target: None,
            attached: None,
            unsettled: Vec::new(),
            refusals: Refusals::default(),
        }
    }

    /// The base station with which the run began.
    pub fn begin(&mut self, station: Ipv4Addr) {
        (self.attached, self.unsettled) = (Some(station), vec![station]);
    }

    /// Whether the next old base station shall send on what it kept.
    pub fn set_wants_buffer(&mut self, wants_buffer: bool) {
        self.config.wants_buffer = wants_buffer;
    }

    /// The base station that has answered last.
    pub fn attached(&self) -> Option<Ipv4Addr> {
        self.attached
    }

    /// The base station over which packets leave: from the greeting on the new one (CI-HO-3).
    pub fn route(&self) -> Option<Ipv4Addr> {
        match self.state {
            State::Greeting { .. } => self.target,
            State::Idle | State::Deciding | State::Renewing { .. } => self.attached,
        }
    }

    /// The generation of the newest attachment.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// True from the decision to completion or failure.
    pub fn is_under_way(&self) -> bool {
        matches!(self.state, State::Deciding | State::Greeting { .. })
    }

    /// What was refused.
    pub fn refusals(&self) -> &Refusals {
        &self.refusals
    }

    /// When [`Greeter::on_timer`] is due.
    pub fn next_at(&self) -> Option<Instant> {
        self.timer_at
    }

    /// The choice fell on a base station (CI-HO-2). A handoff under way is given up for it.
    pub fn attach(
        &mut self,
        target: Ipv4Addr,
        clock: &mut Clock,
        sink: &mut impl Sink,
        now: Instant,
    ) {
        self.generation = clock.stamp(now).max(self.generation + 1);
        self.request = self.request.wrapping_add(1);
        self.target = Some(target);
        self.state = State::Deciding;
        self.timer_at = Some(now + self.config.greet_delay);
        self.tell(HandoffStage::Begun, sink);
        self.on_timer(clock, sink, now);
    }

    fn tell(&self, stage: HandoffStage, sink: &mut impl Sink) {
        sink.notify(Notice::HandoffStage { mobile: IpAddr::V4(self.own), stage });
    }

    /// Greets, greets again, or gives up.
    pub fn on_timer(&mut self, clock: &mut Clock, sink: &mut impl Sink, now: Instant) {
        if self.timer_at.is_none_or(|at| at > now) {
            return;
        }
        match self.state {
            State::Idle => self.renew(0, clock.stamp(now), sink, now),
            State::Renewing { asked } if self.config.retry.is_last(asked) => {
                // Nobody serves any more; the next beacon decides.
                self.attached = None;
                self.state = State::Idle;
                self.timer_at = None;
                self.tell(HandoffStage::Failed, sink);
            }
            State::Renewing { asked } => self.renew(asked, clock.stamp(now), sink, now),
            State::Deciding => {
                self.greet(0, false, clock.stamp(now), sink, now);
                self.tell(HandoffStage::RouteChanged, sink);
            }
            State::Greeting { asked, .. } if self.config.retry.is_last(asked) => {
                self.end(HandoffStage::Failed, sink, now);
            }
            State::Greeting { asked, is_greeted } => {
                self.greet(asked, is_greeted, clock.stamp(now), sink, now);
            }
        }
    }

    fn greet(
        &mut self,
        asked: u32,
        is_greeted: bool,
        sent_at: u64,
        sink: &mut impl Sink,
        now: Instant,
    ) {
        let Some(receiver) = self.target else {
            return self.end(HandoffStage::Failed, sink, now);
        };
        let others = self.unsettled.iter().copied().filter(|other| *other != receiver);
        self.send(receiver, Previous::new(others), sent_at, sink);
        self.unsettled.retain(|other| *other != receiver);
        self.unsettled.insert(0, receiver);
        self.unsettled.truncate(Self::UNSETTLED_MAX);
        self.state = State::Greeting { asked: asked + 1, is_greeted };
        self.timer_at = Some(now + self.config.retry.wait(asked + 1));
    }

    /// Greets the base station again that serves, before it forgets.
    fn renew(&mut self, asked: u32, sent_at: u64, sink: &mut impl Sink, now: Instant) {
        let Some(receiver) = self.attached else { return self.timer_at = None };
        self.send(receiver, Previous::default(), sent_at, sink);
        self.state = State::Renewing { asked: asked + 1 };
        self.timer_at = Some(now + self.config.retry.wait(asked + 1));
    }

    fn send(&self, receiver: Ipv4Addr, previous: Previous, sent_at: u64, sink: &mut impl Sink) {
        let (mobile, sender) = (self.own, self.own);
        let (generation, request) = (self.generation, self.request);
        let header = Header { mobile, sender, receiver, generation, sent_at, request };
        let (wants_buffer, lifetime_s) = (self.config.wants_buffer, self.config.lifetime_s);
        let body = Body::Greeting { previous, wants_buffer, lifetime_s };
        let packet = post::control(&Message { header, body }, &self.key, sink);
        sink.send(Side::NETWORK, Priority::High, packet);
    }

    /// Three quarters of the lifetime from now.
    fn renew_at(&self, now: Instant) -> Instant {
        now + Duration::from_millis(u64::from(self.config.lifetime_s) * 750)
    }

    fn end(&mut self, stage: HandoffStage, sink: &mut impl Sink, now: Instant) {
        let is_greeted = matches!(self.state, State::Greeting { is_greeted: true, .. });
        if stage == HandoffStage::Complete || is_greeted {
            self.attached = self.target;
        }
        self.state = State::Idle;
        self.timer_at = self.attached.map(|_| self.renew_at(now));
        self.target = None;
        self.tell(stage, sink);
    }

    /// Takes a proved message; false if it is not one of a handoff.
    pub fn on_message(&mut self, message: &Message, sink: &mut impl Sink, now: Instant) -> bool {
        let (Body::GreetingAck { status } | Body::Completion { status }) = message.body else {
            return false;
        };
        let header = &message.header;
        if let State::Renewing { .. } = self.state
            && Some(header.sender) == self.attached
            && header.generation == self.generation
        {
            self.state = State::Idle;
            self.timer_at = Some(self.renew_at(now));
            return true;
        }
        let State::Greeting { asked, is_greeted } = self.state else {
            self.refusals.count(Refusal::Unasked, sink);
            return true;
        };
        let is_answer = Some(header.sender) == self.target && header.request == self.request;
        if !is_answer || header.generation != self.generation {
            self.refusals.count(Refusal::Stale, sink);
            return true;
        }
        match message.body {
            Body::GreetingAck { .. } if status == Status::FULL => {
                self.state = State::Idle;
                self.end(HandoffStage::Failed, sink, now);
            }
            Body::GreetingAck { .. } if is_greeted => {}
            Body::GreetingAck { .. } => {
                self.state = State::Greeting { asked, is_greeted: true };
                self.tell(HandoffStage::Greeted, sink);
            }
            _ => {
                if !is_greeted {
                    self.tell(HandoffStage::Greeted, sink);
                    self.state = State::Greeting { asked, is_greeted: true };
                }
                if status != Status::TIMEOUT {
                    // The target comes first; so many after it were named, and are told.
                    let told = 1..self.unsettled.len().min(1 + Previous::MAX);
                    self.unsettled.drain(told);
                }
                let is_alone = self.unsettled.len() == 1;
                let stage = if is_alone { HandoffStage::Complete } else { HandoffStage::Failed };
                self.end(stage, sink, now);
            }
        }
        true
    }
}
