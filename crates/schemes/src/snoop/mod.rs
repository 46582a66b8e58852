//! Snoop: the base station caches what the fixed host sends and repairs losses on the last hop
//! before the fixed host learns of them ("Improving reliable transport and handoff performance in
//! cellular wireless networks", Balakrishnan, Seshan and Katz, sections 3 and 6).
//!
//! ```text
//!   fixed host ── WIRED ─▶ snoop_data() ─▶ RADIO ── mobile host
//!              ◀───────── snoop_ack()  ◀────────
//! ```
//!
//! Map, by the paper's words: `data` (`snoop_data()`), `ack` (`snoop_ack()`), `cache`,
//! `timers` (round-trip and persist timer), `rtt`, `flow` (the state of one connection),
//! `resend` (a local retransmission). What today adds: `sack` and `repair` (every hole at once),
//! `disclosure` (which losses the sender learns of) with `trial` (are they the queue's?) and
//! `indifference` (do they slow the sender?), `restart` and `ramp` (after an outage),
//! `hosts` (what the flows of one mobile host tell of each other), `assist` (senders without SACK),
//! `handshake` (window scale), `aside` (when to do nothing), `air` (the bound on probes), `view`
//! (what an operator sees), `mirror` (across a handoff), `follow` (what goes after a mobile host
//! that has moved). The other direction, from the mobile host: `nack`, `recall` (after an outage),
//! with `uplink` for the state of one connection. [`config`] has every parameter and the presets.
//!
//! What every packet passes through is kept short, and what is rare out of line (`#[cold]`,
//! `#[inline(never)]`): together with the rest of a simulation it has to fit the processor's first
//! instruction cache.
//!
//! We differ: byte ranges instead of packets, pure ACKs only, and departures onto the air are
//! counted instead of guessed. All state is soft and belongs to one flow or one link.

mod ack;
mod air;
mod aside;
mod assist;
mod cache;
pub mod config;
mod data;
mod disclosure;
mod flow;
mod follow;
mod handshake;
mod hosts;
mod indifference;
mod mirror;
mod nack;
mod ramp;
mod recall;
mod repair;
mod resend;
mod restart;
mod rtt;
mod sack;
mod statistics;
mod timers;
mod trial;
mod uplink;
mod view;
mod yielding;

pub use config::Config;
pub use statistics::Statistics;
pub use view::{FlowView, Heading};

use air::Air;
use flow::Flow;
use handshake::{Handshakes, Origin};
use hosts::Hosts;
use mirror::Role;
use nack::Uplinks;
use sansio::{
    BitRate, Cause, Deadline, DropReason, Engine, Event, EventKind, FlowIndex, FlowKey, Input,
    Instant, Notice, Packet, PacketId, PacketRef, Priority, Side, Sink, TimerQueue,
};
use std::rc::Rc;
use wire::tcp::{Flags, Header, Seq};
use yielding::flow_at;

/// The agent of one base station. What every packet needs comes first; `repr(C)` keeps the order.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Agent {
    /// Shared by the agents that are clones of one: many of them, one copy in the cache.
    config: Rc<Config>,
    flows: Vec<Option<Flow>>,
    /// The flow of the last packet: often that of the next one, too.
    recent: u32,
    timers: TimerQueue,
    shared: Shared,
    index: FlowIndex,
    free: Vec<u32>,
    /// Where the search for a flow that yields goes on.
    hand: usize,
    handshakes: Handshakes,
    uplinks: Uplinks,
    hosts: Hosts,
}

/// What all flows share.
#[derive(Clone, Debug)]
#[repr(C)]
struct Shared {
    /// Sequence numbers in all caches.
    held_bytes: u64,
    air: Air,
    statistics: Statistics,
}

impl Shared {
    /// Brings the total of cached bytes up to date after a flow's turn, at the beginning of which
    /// it held so many. True if one of its timers was touched, too.
    #[inline]
    fn settle(&mut self, flow: &mut Flow, held_before: u32) -> bool {
        self.held_bytes += u64::from(flow.cache.bytes());
        self.held_bytes -= u64::from(held_before);
        flow.timers.take_touched()
    }
}

/// What a procedure needs beside its flow.
struct Context<'a, S: Sink> {
    config: &'a Config,
    shared: &'a mut Shared,
    sink: &'a mut S,
}

/// Whether a flow's state is still of use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Keep,
    Forget,
    /// It is, and nothing is heard of the mobile host on this flow.
    Silent,
}

impl Agent {
    /// An agent without any state. A daemon gives a random key with [`Agent::with_key`].
    pub fn new(config: Config) -> Self {
        Agent::with_key(config, 0)
    }

    /// The same; `key` keeps strangers from choosing four-tuples that collide in the look-up.
    pub fn with_key(config: Config, key: u64) -> Self {
        Agent {
            config: Rc::new(config),
            index: FlowIndex::new(key),
            flows: Vec::new(),
            free: Vec::new(),
            hand: 0,
            timers: TimerQueue::new(),
            handshakes: Handshakes::default(),
            uplinks: Uplinks::with_key(key),
            hosts: Hosts::with_key(key),
            recent: 0,
            shared: Shared { statistics: Statistics::default(), held_bytes: 0, air: Air::new() },
        }
    }

    /// The parameters.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Tells the radio's rate, for the bound on probes.
    pub fn set_link_rate(&mut self, rate: BitRate) {
        if let config::Restart::Probe(probe) = &mut Rc::make_mut(&mut self.config).restart {
            probe.link_rate = Some(rate);
        }
    }

    /// What was done so far.
    pub fn statistics(&self) -> &Statistics {
        &self.shared.statistics
    }

    /// Sequence numbers in all caches: the bytes of payload held, and one for each FIN.
    pub fn held_bytes(&self) -> u64 {
        self.shared.held_bytes
    }

    /// Flows with state.
    pub fn flows(&self) -> usize {
        self.index.len()
    }

    /// True if the driver shall report departures onto the air.
    pub fn wants_departures(&self) -> bool {
        self.config.departures == config::Departures::Reported
    }

    /// True if the driver shall report verdicts of the link layer.
    pub fn wants_verdicts(&self) -> bool {
        self.config.verdicts == config::Verdicts::Repair
    }

    /// A packet from the fixed host's side.
    #[inline(never)]
    fn on_wired_arrival(&mut self, packet: PacketRef, sink: &mut impl Sink, now: Instant) {
        let Some(tcp) = packet.as_tcp() else {
            return sink.send(Side::RADIO, Priority::Normal, packet);
        };
        if tcp.flags.intersects(ENDS_STATE) {
            self.on_syn_or_reset(&packet, tcp, Origin::Fixed);
            return sink.send(Side::RADIO, Priority::Normal, packet);
        }
        if !self.uplinks.is_empty() {
            self.on_uplink_ack(&packet, sink, now);
        }
        let range = range(tcp, &packet);
        if range.0 == range.1 {
            return sink.send(Side::RADIO, Priority::Normal, packet);
        }
        let flow = loop {
            // Nearly always.
            if let Some(flow) = flow_at(&mut self.flows, self.recent)
                && flow.key.is_of(&packet)
            {
                break flow;
            }
            if !self.find_or_begin(&packet, range.0, sink, now) {
                return sink.send(Side::RADIO, Priority::Normal, packet);
            }
        };
        let held_before = flow.cache.bytes();
        let mut context = Context { config: &self.config, shared: &mut self.shared, sink };
        let verdict = data::snoop_data(flow, (&packet, tcp), range, &mut context, now);
        if self.shared.settle(flow, held_before) {
            self.requeue_or_forget(self.recent, Fate::Keep);
        }
        match verdict {
            data::Verdict::Forward => sink.send(Side::RADIO, Priority::Normal, packet),
            data::Verdict::Discard => sink.discard(packet, DropReason::Rule("SNOOP-DATA-4")),
        }
    }

    /// A packet from the mobile host's side.
    #[inline(never)]
    fn on_radio_arrival(&mut self, packet: PacketRef, sink: &mut impl Sink, now: Instant) {
        let is_ack_alone = |tcp: &Header| {
            !tcp.flags.intersects(ENDS_STATE.with(Flags::FIN)) && packet.payload.is_empty()
        };
        match packet.as_tcp().is_some_and(is_ack_alone) && !self.hosts.any_silent() {
            true => self.on_radio_segment(packet, sink, now),
            false => self.on_other_radio_arrival(packet, sink, now),
        }
    }

    /// A segment from the mobile host of a connection that goes on.
    #[inline(always)]
    fn on_radio_segment(&mut self, packet: PacketRef, sink: &mut impl Sink, now: Instant) {
        let flow = loop {
            if let Some(flow) = flow_at(&mut self.flows, self.recent)
                && flow.key.is_reverse_of(&packet)
            {
                break flow;
            }
            if !self.look_up(&packet, Origin::Mobile) {
                return sink.send(Side::WIRED, Priority::Normal, packet);
            }
        };
        let held_before = flow.cache.bytes();
        let mut context = Context { config: &self.config, shared: &mut self.shared, sink };
        let fate = ack::snoop_ack(flow, packet, &mut context, now);
        if self.shared.settle(flow, held_before) || fate == Fate::Forget {
            self.requeue_or_forget(self.recent, fate);
        }
    }

    /// Any other packet than an ACK alone, or from a mobile host that may have been silent.
    #[inline(never)]
    fn on_other_radio_arrival(&mut self, packet: PacketRef, sink: &mut impl Sink, now: Instant) {
        let data = has_data(&packet).then(|| packet.clone());
        let heard = self.hosts.any_silent().then_some(packet.ip.source);
        match packet.as_tcp() {
            Some(tcp) if tcp.flags.intersects(ENDS_STATE) => {
                self.on_syn_or_reset(&packet, tcp, Origin::Mobile);
                sink.send(Side::WIRED, Priority::Normal, packet);
            }
            Some(_) => self.on_radio_segment(packet, sink, now),
            None => sink.send(Side::WIRED, Priority::Normal, packet),
        }
        if let Some(data) = data {
            self.on_uplink_data(&data, sink, now);
        }
        if let Some(address) = heard {
            self.on_host_heard(address, sink, now);
        }
    }

    /// Any input but a packet from either side.
    #[inline(never)]
    fn on_other(&mut self, input: Input, sink: &mut impl Sink, now: Instant) {
        match input {
            Input::Timer => self.on_timer(sink, now),
            Input::Verdict { side: Side::RADIO, packet, acknowledged: false } => {
                self.on_given_up(&packet, sink, now);
            }
            Input::Verdict { .. } => {}
            Input::Notice(notice) => self.on_notice(notice, sink, now),
            Input::Arrival { side: Side::MIRROR, packet } => self.on_mirrored(packet, sink, now),
            Input::Arrival { packet, .. } => {
                sink.discard(packet, DropReason::Rule("no such side"));
            }
        }
    }

    /// A packet goes onto the air.
    #[inline(never)]
    fn on_radio_departure(&mut self, packet: &Packet, sink: &mut impl Sink, now: Instant) {
        if self.config.restart.asks_for_rate() && packet.cause != Cause::Probe {
            self.shared.air.on_departure(packet.bytes(), now);
        }
        let recent = flow_at(&mut self.flows, self.recent);
        if recent.is_none_or(|flow| !resend::on_next_departure(flow, packet, now)) {
            self.on_other_departure(packet, sink, now);
        }
    }

    /// The same of a packet that is not the next in line of the flow at hand.
    #[cold]
    fn on_other_departure(&mut self, packet: &Packet, sink: &mut impl Sink, now: Instant) {
        let Some(tcp) = packet.as_tcp() else { return };
        let range = range(tcp, packet);
        if range.0 == range.1 {
            return;
        }
        if self.look_up(packet, Origin::Fixed) {
            self.with_flow(self.recent, sink, |flow, context| {
                resend::on_departure(flow, packet, range, context, now);
                Fate::Keep
            });
        }
    }

    /// The link layer has given a frame up.
    #[cold]
    fn on_given_up(&mut self, packet: &Packet, sink: &mut impl Sink, now: Instant) {
        let Some(tcp) = packet.as_tcp().filter(|_| self.wants_verdicts()) else { return };
        let range = range(tcp, packet);
        if self.look_up(packet, Origin::Fixed) {
            self.with_flow(self.recent, sink, |flow, context| {
                repair::on_given_up(flow, range, context, now);
                Fate::Keep
            });
        }
    }

    #[inline]
    fn on_timer(&mut self, sink: &mut impl Sink, now: Instant) {
        while let Some((slot, _)) = self.timers.next().filter(|(_, at)| *at <= now) {
            // Whatever fires is over or set to a later time, and then so is the place in the queue.
            let fate = self.with_flow(slot, sink, |flow, context| timers::fire(flow, context, now));
            if fate == Fate::Silent {
                self.on_silence(slot, sink, now);
            }
        }
        let heard_at = |key: &FlowKey| {
            let slot = self.index.get(&key.reversed())?;
            Some(self.flows.get(slot as usize)?.as_ref()?.mobile_at)
        };
        self.uplinks.on_timer(heard_at, (&self.config, &mut self.shared, sink), now);
    }

    #[cold]
    fn on_notice(&mut self, notice: Notice, sink: &mut impl Sink, now: Instant) {
        let context = (&*self.config, &mut self.shared, &mut *sink);
        self.uplinks.on_notice(&notice, context, now);
        let (is_away, slots) = match notice {
            Notice::LinkDown(Side::RADIO) => (true, self.hosts.set_all_away(Some(now))),
            Notice::LinkUp(Side::RADIO) => (false, self.hosts.set_all_away(None)),
            Notice::MobileDown(address) => (true, self.hosts.set_away(address, Some(now))),
            Notice::MobileUp(address) => (false, self.hosts.set_away(address, None)),
            Notice::LinkMayBeUp(Side::RADIO) => return self.on_hint(sink, now),
            Notice::Registered(address) => return self.on_registered(address, sink, now),
            Notice::Buffering(address) => return self.on_buffering(address, sink, now),
            Notice::Moved(address) => {
                return self.forget_host(address, self.config.when_moved, sink);
            }
            Notice::Deregistered(address) => {
                return self.forget_host(address, config::WhenMoved::Forget, sink);
            }
            Notice::Forget => return self.forget_all(),
            Notice::ForgetFlow(key) => return self.forget_connection(&key),
            _ => return,
        };
        for slot in slots {
            self.with_flow(slot, sink, |flow, context| {
                match is_away {
                    _ if flow.role == Role::Buffers => {}
                    true => restart::on_link_down(flow, context.config, now),
                    false => restart::on_link_up(flow, context, now),
                }
                Fate::Keep
            });
        }
    }

    /// A SYN or RST passes: what was known of its flow is of another connection, or over.
    #[cold]
    fn on_syn_or_reset(&mut self, packet: &Packet, tcp: &Header, origin: Origin) {
        let Some(key) = origin.flow_of(packet) else { return };
        self.forget_connection(&key);
        self.handshakes.note(key, origin, tcp);
    }

    fn forget_connection(&mut self, key: &FlowKey) {
        self.forget(key);
        self.uplinks.forget(&key.reversed());
    }

    /// SNOOP-GEN-3: all state is soft.
    fn forget_all(&mut self) {
        self.index.clear();
        self.flows.clear();
        self.free.clear();
        self.timers = TimerQueue::new();
        self.handshakes.clear();
        self.uplinks.clear();
        self.hosts.clear();
        self.shared.held_bytes = 0;
    }
}

impl Engine for Agent {
    #[inline]
    fn handle(&mut self, input: Input, sink: &mut impl Sink, now: Instant) {
        match input {
            Input::Arrival { side: Side::WIRED, packet } => {
                self.on_wired_arrival(packet, sink, now);
            }
            Input::Arrival { side: Side::RADIO, packet } => {
                self.on_radio_arrival(packet, sink, now);
            }
            other => self.on_other(other, sink, now),
        }
    }

    #[inline]
    fn on_departure(&mut self, side: Side, packet: &Packet, sink: &mut impl Sink, now: Instant) {
        if side == Side::RADIO {
            self.on_radio_departure(packet, sink, now);
        }
    }

    #[inline]
    fn next_deadline(&self) -> Option<Deadline> {
        let up = self.uplinks.next_at().map(|at| Deadline { at, timer: nack::TIMER });
        let down = self.next_flow_deadline();
        up.into_iter().chain(down).min_by_key(|deadline| deadline.at)
    }

    #[inline]
    fn next_at(&self) -> Option<Instant> {
        match (self.timers.next_at(), self.uplinks.next_at()) {
            (Some(down), Some(up)) => Some(down.min(up)),
            (down, up) => down.or(up),
        }
    }
}

impl Agent {
    fn next_flow_deadline(&self) -> Option<Deadline> {
        let (slot, at) = self.timers.next()?;
        let flow = self.flows.get(slot as usize)?.as_ref()?;
        let (timer, _) = flow.timers.next()?;
        Some(Deadline { at, timer: timers::NAMES[timer] })
    }
}

/// A connection begins or breaks: what was known of the four-tuple is void (SNOOP-DATA-8).
const ENDS_STATE: Flags = Flags::SYN.with(Flags::RST);

/// True for data or FIN of a connection that goes on.
#[inline]
fn has_data(packet: &Packet) -> bool {
    let is_data = |tcp: &Header| !packet.payload.is_empty() || tcp.flags.contains(Flags::FIN);
    packet.as_tcp().is_some_and(|tcp| is_data(tcp) && !tcp.flags.intersects(ENDS_STATE))
}

/// The sequence range of a segment.
#[inline]
fn range(tcp: &Header, packet: &Packet) -> (Seq, Seq) {
    (tcp.seq, tcp.seq + tcp.sequence_length(packet.payload.len()))
}

/// Reports that a rule acted: its ID, what it did, and a number.
#[inline]
fn rule(
    sink: &mut impl Sink,
    flow: FlowKey,
    packet: Option<PacketId>,
    (id, did, value): (&'static str, &'static str, u64),
) {
    sink.report(|| Event { flow: Some(flow), packet, kind: EventKind::Rule { id, did, value } });
}

/// Reports that a limit was reached.
fn limit(sink: &mut impl Sink, flow: FlowKey, name: &'static str, value: u64) {
    sink.report(|| Event {
        flow: Some(flow),
        packet: None,
        kind: EventKind::Limit { name, value },
    });
}
