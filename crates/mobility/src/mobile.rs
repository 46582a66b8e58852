//! A mobile host: what it hears, where it goes, and whom it tells.
//!
//! It sits between the radio ([`Side::NETWORK`]) and the host's own TCP ([`MobileHost::HOST`]), and
//! tells the latter of handoffs by notices.

use crate::Keys;
use crate::agents::{AgentList, ListConfig};
use crate::beacon::{self, Listener, ListenerConfig, Sender};
use crate::choice::{self, Chooser};
use crate::clock::Clock;
use crate::handoff::mobile::{self as handoff, Greeter};
use crate::inbox::Inbox;
use crate::multicast::mobile::{self as multicast, Conductor};
use crate::post::{self, v4};
use crate::refusal::{Refusal, Refusals};
use crate::registration::foreign;
use crate::registration::mobile::{self as registration, Outcome, Previous, Registrar, Via};
use core::net::Ipv4Addr;
use sansio::{
    Deadline, DropReason, Engine, HandoffStage, Input, Instant, Notice, PacketRef, Priority,
    Random, Side, Sink,
};
use wire::auth::Key;
use wire::control;
use wire::mobile_ip;

/// How a mobile host changes cells.
#[derive(Clone, Debug)]
pub enum Roaming {
    /// By registrations alone (BASE-12).
    MobileIp,
    /// By greetings (CI-HO-3), beside registrations if there are any.
    Greeting(handoff::Config),
    /// By roles of base stations in a multicast group (MCAST-11).
    Multicast(multicast::Config),
}

/// Parameters of a mobile host.
#[derive(Clone, Debug)]
pub struct Config {
    /// Its home address.
    pub own: Ipv4Addr,
    /// Its key.
    pub key: Key,
    /// How it changes cells.
    pub roaming: Roaming,
    /// A registration waits for the end of the greeting's handoff, as where both are done by one
    /// daemon that takes its time.
    pub registers_after_greeting: bool,
    /// A registration names the agent before, which then sends after the mobile host what still
    /// comes to it (WINC-BS-4).
    pub names_previous: bool,
    /// Registrations with a home agent, and how agents are found; neither without.
    pub registration: Option<(registration::Config, ListConfig)>,
    /// The list of base stations.
    pub listener: ListenerConfig,
    /// The choice of a base station.
    pub choice: choice::Config,
}

/// The engine.
#[derive(Clone, Debug)]
pub struct MobileHost {
    own: Ipv4Addr,
    key: Key,
    clock: Clock,
    inbox: Inbox,
    listener: Listener,
    chooser: Chooser,
    /// The last strength that the driver told, and of whom.
    signal: Option<(Ipv4Addr, i16)>,
    greeter: Option<Greeter>,
    registers_after_greeting: bool,
    names_previous: bool,
    conductor: Option<Conductor>,
    registrar: Option<Registrar>,
    agents: Option<AgentList>,
    /// When the cell of the base station that is chosen was entered.
    entered_at: Instant,
    /// To be registered through as soon as its agent is known.
    waiting_for: Option<Ipv4Addr>,
    /// The agent of the last registration that was accepted.
    previous: Option<Ipv4Addr>,
    refusals: Refusals,
}

impl MobileHost {
    /// The side of the host's own TCP.
    pub const HOST: Side = Side(1);
    /// The side of what goes to a base station over the route, and not in that one's own cell.
    pub const ROUTE: Side = Side(2);

    /// Attached to nobody.
    pub fn new(config: Config, clock: Clock, random: Random) -> Self {
        let keys = Keys::new([(config.own, config.key.clone())].into_iter().collect());
        let (greeter, conductor) = match config.roaming {
            Roaming::MobileIp => (None, None),
            Roaming::Greeting(greeting) => {
                (Some(Greeter::new(greeting, config.own, config.key.clone())), None)
            }
            Roaming::Multicast(multicast) => (None, Some(Conductor::new(multicast))),
        };
        let (registrar, agents) = config.registration.map_or((None, None), |(config, list)| {
            let agents = AgentList::new(config.home_address, list);
            (Some(Registrar::new(config, clock, random)), Some(agents))
        });
        MobileHost {
            own: config.own,
            key: config.key,
            clock,
            inbox: Inbox::new(config.own, keys),
            listener: Listener::new(config.listener),
            chooser: Chooser::new(config.choice),
            signal: None,
            greeter,
            registers_after_greeting: config.registers_after_greeting,
            names_previous: config.names_previous,
            conductor,
            registrar,
            agents,
            entered_at: Instant::ZERO,
            waiting_for: None,
            previous: None,
            refusals: Refusals::default(),
        }
    }

    /// In the cell of this base station, registered, since before the run began. `decibels_10`: how
    /// strong it is.
    pub fn begin(&mut self, (station, id): (Ipv4Addr, u32), decibels_10: i16, now: Instant) {
        let interval_ms = Sender::INTERVAL.as_millis() as u16;
        let beacon = control::Beacon { id, address: station, sent_at: 0, interval_ms, sequence: 0 };
        self.listener.hear(&beacon, decibels_10, now);
        self.chooser.take(station);
        self.previous = Some(station);
        let lifetime_max_s = foreign::Config::new(station).lifetime_max_s;
        if let Some(agents) = &mut self.agents {
            agents.begin(station, lifetime_max_s, now);
        }
        if let Some(registrar) = &mut self.registrar {
            let key = Some(self.key.clone());
            registrar.begin(Via { agent: station, care_of: station, lifetime_max_s, key }, now);
        }
        if let Some(greeter) = &mut self.greeter {
            greeter.begin(station);
        }
        if let Some(conductor) = &mut self.conductor {
            conductor.begin(station, now);
        }
    }

    /// The base station over which packets leave.
    pub fn route(&self) -> Option<Ipv4Addr> {
        match (&self.greeter, &self.conductor) {
            (Some(greeter), _) => greeter.route(),
            (None, Some(conductor)) => conductor.primary(),
            (None, None) => self.chooser.current(),
        }
    }

    /// Whether the next old base station shall send on what it kept: not while its cell still
    /// reaches.
    pub fn set_wants_buffer(&mut self, wants_buffer: bool) {
        if let Some(greeter) = &mut self.greeter {
            greeter.set_wants_buffer(wants_buffer);
        }
    }

    /// The base station that is chosen.
    pub fn current(&self) -> Option<Ipv4Addr> {
        self.chooser.current()
    }

    /// What is heard.
    pub fn listener(&self) -> &Listener {
        &self.listener
    }

    /// The handoffs by greetings.
    pub fn greeter(&self) -> Option<&Greeter> {
        self.greeter.as_ref()
    }

    /// The handoffs by roles.
    pub fn conductor(&self) -> Option<&Conductor> {
        self.conductor.as_ref()
    }

    /// The registrations.
    pub fn registrar(&self) -> Option<&Registrar> {
        self.registrar.as_ref()
    }

    /// All that was refused, whichever part did.
    pub fn refused(&self, reason: Refusal) -> u64 {
        let parts = [
            self.greeter.as_ref().map(Greeter::refusals),
            self.conductor.as_ref().map(Conductor::refusals),
            self.registrar.as_ref().map(Registrar::refusals),
        ];
        let parts = parts.into_iter().flatten().map(|part| part.of(reason));
        self.refusals.of(reason) + parts.sum::<u64>()
    }

    /// Goes to a base station whatever its signal: layer 2 decided (LINK-4), or a script
    /// (CI-MOD-3).
    pub fn attach(&mut self, station: Ipv4Addr, sink: &mut impl Sink, now: Instant) {
        self.chooser.take(station);
        self.go(station, sink, now);
    }

    fn go(&mut self, station: Ipv4Addr, sink: &mut impl Sink, now: Instant) {
        self.entered_at = now;
        if let Some(greeter) = &mut self.greeter {
            greeter.attach(station, &mut self.clock, sink, now);
        }
        self.conduct(sink, now);
        self.register(station, sink, now);
    }

    /// Registers through the agent of a base station at once if it is in the list (LINK-4), or as
    /// soon as it answers or advertises itself (PRE-7).
    fn register(&mut self, station: Ipv4Addr, sink: &mut impl Sink, now: Instant) {
        if self.registers_after_greeting && self.greeter.as_ref().is_some_and(Greeter::is_under_way)
        {
            self.waiting_for = Some(station);
            return;
        }
        let (Some(registrar), Some(agents)) = (&mut self.registrar, &mut self.agents) else {
            return;
        };
        let known = agents.agent_to_use(station, self.entered_at, now).copied();
        let Some(agent) = known.filter(|agent| !agent.is_busy) else {
            self.waiting_for = Some(station);
            agents.on_entered(station, sink, now);
            return;
        };
        self.waiting_for = None;
        let via = Via {
            agent: agent.address,
            care_of: agent.care_of,
            lifetime_max_s: agent.registration_lifetime_s,
            key: Some(self.key.clone()),
        };
        let previous = self.previous.filter(|previous| *previous != agent.address);
        let previous =
            previous.map(|agent| Previous { agent, key: crate::key_with(agent, &self.key) });
        if previous.is_some() && self.greeter.is_none() && self.conductor.is_none() {
            let (mobile, stage) = (self.own.into(), HandoffStage::Begun);
            sink.notify(Notice::HandoffStage { mobile, stage });
        }
        registrar.register(via, previous.filter(|_| self.names_previous), sink, now);
    }

    /// Says who forwards and who buffers (MCAST-11): the others by their strength.
    fn conduct(&mut self, sink: &mut impl Sink, now: Instant) {
        let (Some(conductor), Some(current)) = (&mut self.conductor, self.chooser.current()) else {
            return;
        };
        let mut others: Vec<_> = self.listener.audible(now).collect();
        others.sort_by_key(|heard| (core::cmp::Reverse(heard.decibels_10), heard.address));
        let others = others.into_iter().map(|heard| heard.address);
        conductor.decide(current, others, &mut self.clock, sink, now);
    }

    fn on_beacon(&mut self, beacon: &control::Beacon, sink: &mut impl Sink, now: Instant) {
        let station = beacon.address;
        let told = self.signal.filter(|(of, _)| *of == station).map_or(0, |(_, signal)| signal);
        let was_audible = self.listener.is_audible(station, now);
        if self.listener.hear(beacon, told, now).is_none() {
            return self.refusals.count(Refusal::Full, sink);
        }
        if let (Some(agents), Some(heard)) = (&mut self.agents, self.listener.get(station)) {
            if !was_audible {
                agents.forget_asked(station);
            }
            agents.on_beacon(heard, sink, now);
        }
        if self.chooser.on_beacon(station, &self.listener, now).is_some() {
            self.go(station, sink, now);
        } else {
            self.conduct(sink, now);
            self.register_again(station, sink, now);
        }
    }

    /// The own base station is heard, and no registration stands or is asked for: asked again.
    fn register_again(&mut self, station: Ipv4Addr, sink: &mut impl Sink, now: Instant) {
        let is_open = self.registrar.as_ref().is_some_and(|registrar| {
            let is_there = registrar.registered(now).is_some_and(|via| via.agent == station);
            !registrar.is_asking() && !is_there
        });
        if is_open && self.chooser.current() == Some(station) {
            self.register(station, sink, now);
        }
    }

    /// The handoff is over for which a registration has waited.
    fn register_after_greeting(&mut self, sink: &mut impl Sink, now: Instant) {
        if self.registers_after_greeting
            && let Some(station) = self
                .waiting_for
                .take_if(|_| self.greeter.as_ref().is_some_and(|greeter| !greeter.is_under_way()))
        {
            self.register(station, sink, now);
        }
    }

    /// After a failure: whoever serves is the choice, and the next beacon decides anew.
    fn settle(&mut self) {
        if let Some(greeter) = &self.greeter
            && !greeter.is_under_way()
            && greeter.attached() != self.chooser.current()
        {
            self.chooser.release();
        }
        if let Some(conductor) = &self.conductor
            && conductor.primary() != self.chooser.current()
            && let Some(primary) = conductor.primary()
        {
            self.chooser.take(primary);
        }
    }

    fn on_network(&mut self, packet: PacketRef, sink: &mut impl Sink, now: Instant) {
        if let Some(beacon) = beacon::read(&packet) {
            self.on_beacon(&beacon, sink, now);
            return sink.discard(packet, DropReason::Consumed);
        }
        if v4(packet.ip.destination) == Some(self.own) && self.on_message(&packet, sink, now) {
            return sink.discard(packet, DropReason::Consumed);
        }
        let heard = self.agents.as_mut().and_then(|agents| agents.on_packet(&packet, now));
        if let Some(station) = heard {
            if self.waiting_for == Some(station) {
                self.register(station, sink, now);
            }
            return sink.discard(packet, DropReason::Consumed);
        }
        if v4(packet.ip.destination) != Some(self.own) {
            return sink.discard(packet, DropReason::Rule("no such host"));
        }
        if let Some(conductor) = &mut self.conductor {
            conductor.on_datagram(&packet);
        }
        sink.send(Self::HOST, Priority::Normal, packet);
    }

    /// True for a message to the mobile host's own agents.
    fn on_message(&mut self, packet: &PacketRef, sink: &mut impl Sink, now: Instant) -> bool {
        if let Some(opened) = self.inbox.open(packet, self.clock.read(now)) {
            match opened {
                Err(reason) => self.refusals.count(reason, sink),
                Ok(message) => {
                    let greeter = self.greeter.as_mut();
                    let is_taken = greeter.is_some_and(|it| it.on_message(&message, sink, now))
                        || self
                            .conductor
                            .as_mut()
                            .is_some_and(|it| it.on_message(&message, &mut self.clock, sink, now));
                    if !is_taken {
                        self.refusals.count(Refusal::Unasked, sink);
                    }
                    self.settle();
                    self.register_after_greeting(sink, now);
                }
            }
            return true;
        }
        let is_registration = post::udp_to(packet, mobile_ip::PORT).is_some();
        match &mut self.registrar {
            Some(registrar) if is_registration => {
                let outcome = registrar.on_packet(packet, sink, now);
                self.clock.follow(registrar.clock());
                self.on_outcome(outcome, sink, now);
                true
            }
            _ => false,
        }
    }

    fn on_outcome(&mut self, outcome: Option<Outcome>, sink: &mut impl Sink, now: Instant) {
        if outcome == Some(Outcome::Accepted)
            && let Some(via) = self.registrar.as_ref().and_then(|it| it.registered(now))
        {
            let agent = via.agent;
            // An answer may come when the host is in another cell already: it is not there.
            let is_here = self.chooser.current() == Some(agent);
            let is_handoff = self.previous.replace(agent) != Some(agent) && is_here;
            let mobile = self.own.into();
            let mut tell = |stage| sink.notify(Notice::HandoffStage { mobile, stage });
            // Where there are greetings or roles, they say how far it is.
            if is_handoff && self.greeter.is_none() && self.conductor.is_none() {
                tell(HandoffStage::Greeted);
                tell(HandoffStage::Complete);
            }
            if is_handoff {
                tell(HandoffStage::Registered);
            }
        }
    }
}

impl Engine for MobileHost {
    fn handle(&mut self, input: Input, sink: &mut impl Sink, now: Instant) {
        match input {
            Input::Arrival { side: Side::NETWORK, packet } => self.on_network(packet, sink, now),
            Input::Arrival { packet, .. } => sink.send(Side::NETWORK, Priority::Normal, packet),
            Input::Notice(Notice::Heard { station, decibels_10 }) => {
                self.signal = v4(station).map(|station| (station, decibels_10));
            }
            Input::Timer => {
                if let Some(greeter) = &mut self.greeter {
                    greeter.on_timer(&mut self.clock, sink, now);
                }
                if let Some(conductor) = &mut self.conductor {
                    conductor.on_timer(&mut self.clock, sink, now);
                }
                let outcome = self.registrar.as_mut().and_then(|it| it.on_timer(sink, now));
                self.on_outcome(outcome, sink, now);
                self.settle();
            }
            _ => {}
        }
    }

    fn next_deadline(&self) -> Option<Deadline> {
        let named = |at: Option<Instant>, timer| at.map(|at| Deadline { at, timer });
        [
            named(self.greeter.as_ref().and_then(Greeter::next_at), "greeting"),
            named(self.conductor.as_ref().and_then(Conductor::next_at), "role"),
            named(self.registrar.as_ref().and_then(Registrar::next_at), "registration"),
        ]
        .into_iter()
        .fold(None, Deadline::earlier)
    }
}
