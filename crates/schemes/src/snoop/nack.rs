//! Data from the mobile host to the fixed host: negative acknowledgments (Snoop paper, section 3.2;
//! SNOOP-NACK-*).
//!
//! ```text
//!   mobile host ── RADIO ─▶ what is missing? ── WIRED ─▶ fixed host
//!               ◀─ NACK ──  (after 3 segments from beyond, or 40 ms of silence)
//! ```
//!
//! A NACK is an ACK in the fixed host's name: its newest cumulative ACK again, with SACK blocks of
//! what has passed here (RFC 2018). A stock sender with SACK takes it for news of a loss, and sends
//! again what is missing one wired round trip earlier than it would. Nothing is acknowledged but by
//! the fixed host (SNOOP-NACK-6), and nothing is told to have arrived that was not forwarded
//! (MOD-4). If that is lost beyond, the sender has to wait for its timer (RFC 2018, section 8);
//! *modern* then tells such a flow nothing any more.
//!
//! What a Linux sender makes of it: RACK takes for lost what was sent before the latest that it
//! knows to have arrived. So a NACK names all that has arrived below its highest block, or nothing
//! above. The segment at the cumulative ACK cannot be named: a block that begins there is none. It
//! is taken for lost, too, and sent again in vain, at most once for each NACK.
//!
//! We differ from the paper: SACK blocks instead of a bit vector, as its implementation; and only
//! if both SYNs permit SACK (SNOOP-NACK-5).

use super::config::{Config, Nack, StandAside};
use super::handshake::SackUse;
use super::hosts::Hosts;
use super::uplink::{Arrival, Fixed, Reason, Uplink};
use super::{Agent, Shared, limit, range, recall, rule};
use core::net::IpAddr;
use sansio::{
    Cause, Event, EventKind, FlowIndex, FlowKey, Instant, Notice, Packet, PacketId, Payload, Side,
    Sink, TimerQueue,
};
use wire::ip;
use wire::tcp::{self, Flags, Header, Options, Seq, TcpOption};

/// All flows from mobile hosts.
#[derive(Clone, Debug)]
pub(super) struct Uplinks {
    index: FlowIndex,
    flows: Vec<Option<Box<Uplink>>>,
    free: Vec<u32>,
    /// Which flows are of one mobile host.
    hosts: Hosts,
    timers: TimerQueue,
}

/// The name in a `Deadline`.
pub(super) const TIMER: &str = "snoop silence";

impl Agent {
    /// Data from the mobile host has been forwarded.
    #[inline(never)]
    pub(super) fn on_uplink_data(&mut self, packet: &Packet, sink: &mut impl Sink, now: Instant) {
        let Some(key) = FlowKey::of(packet) else { return };
        let sack_use = || self.handshakes.take_sack(&key.reversed());
        let context = (&*self.config, &mut self.shared, sink);
        self.uplinks.on_data((key, packet), sack_use, context, now);
    }

    /// A segment of the fixed host, which may acknowledge data from the mobile host.
    #[inline(never)]
    pub(super) fn on_uplink_ack(&mut self, packet: &Packet, sink: &mut impl Sink, now: Instant) {
        let Some(key) = FlowKey::of(packet) else { return };
        let context = (&*self.config, &mut self.shared, sink);
        self.uplinks.on_ack((key.reversed(), packet), context, now);
    }
}

impl Uplinks {
    pub(super) fn with_key(key: u64) -> Self {
        Uplinks {
            index: FlowIndex::new(key),
            flows: Vec::new(),
            free: Vec::new(),
            hosts: Hosts::with_key(key),
            timers: TimerQueue::new(),
        }
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// Every flow, in no order.
    pub(super) fn places(&self) -> &[Option<Box<Uplink>>] {
        &self.flows
    }

    /// True if the flow has state. `key`: as the data travels.
    pub(super) fn knows(&self, key: &FlowKey) -> bool {
        self.index.get(key).is_some()
    }

    #[inline]
    pub(super) fn next_at(&self) -> Option<Instant> {
        self.timers.next_at()
    }

    /// SNOOP-GEN-3: all state is soft.
    pub(super) fn clear(&mut self) {
        self.index.clear();
        self.flows.clear();
        self.free.clear();
        self.hosts.clear();
        self.timers = TimerQueue::new();
    }

    /// Forgets a flow's state, if there is any. `key`: as the data travels.
    pub(super) fn forget(&mut self, key: &FlowKey) {
        let Some(slot) = self.index.remove(key) else { return };
        self.timers.clear(slot);
        self.hosts.leave(slot, key.source.address);
        self.flows[slot as usize] = None;
        self.free.push(slot);
    }

    /// Forgets all flows of a mobile host.
    pub(super) fn forget_host(&mut self, address: IpAddr) {
        for slot in self.hosts.slots_of(address) {
            if let Some(key) = self.flows[slot as usize].as_ref().map(|flow| flow.key) {
                self.forget(&key);
            }
        }
    }

    /// Data from the mobile host has been forwarded. `sack_use`: what the handshake says, asked
    /// for a new flow only.
    pub(super) fn on_data(
        &mut self,
        (key, packet): (FlowKey, &Packet),
        sack_use: impl FnOnce() -> Option<SackUse>,
        (config, shared, sink): (&Config, &mut Shared, &mut impl Sink),
        now: Instant,
    ) {
        let Some(tcp) = packet.as_tcp() else { return };
        let range = range(tcp, packet);
        let slot = match self.index.get(&key) {
            Some(slot) => slot,
            None if packet.payload.is_empty() => return,
            None => {
                let most = config.flows_max.min(TimerQueue::SLOTS_MAX) as usize;
                if self.index.len() >= most {
                    shared.statistics.flows_refused += 1;
                    return limit(sink, key, "snoop uplink flows", most as u64);
                }
                let slot = self.create(key, range.0, sack_use(), now);
                if let Some(Some(flow)) = self.flows.get(slot as usize) {
                    report_aside(flow, shared, sink);
                }
                slot
            }
        };
        let Some(flow) = self.flows.get_mut(slot as usize).and_then(Option::as_mut) else { return };
        flow.active_at = now;
        if flow.aside != Some(Reason::Unforgeable) && has_foreign_options(tcp) {
            stand_aside(flow, Reason::Unforgeable, shared, sink);
        }
        match flow.aside {
            None => note_data(flow, (packet, range), (config, shared, sink), now),
            Some(_) => flow.follow(range.1, now),
        }
        if range.1 == flow.highest() {
            flow.recall.is_written = tcp.flags.contains(Flags::PSH);
        }
        let is_back = flow.recall.on_heard(config, now);
        self.schedule(slot, config, now);
        if is_back {
            self.on_host_back(key.source.address, (config, shared, sink), now);
        }
    }

    /// The mobile host was silent, and is heard.
    #[cold]
    pub(super) fn on_host_back(
        &mut self,
        address: IpAddr,
        (config, shared, sink): (&Config, &mut Shared, &mut impl Sink),
        now: Instant,
    ) {
        for slot in self.hosts.slots_of(address) {
            if let Some(flow) = &mut self.flows[slot as usize] {
                recall::on_host_back(flow, (config, shared, sink), now);
            }
        }
    }

    /// A notice of mobile hosts that are out of reach, or back; any other is none of its business.
    pub(super) fn on_notice(
        &mut self,
        notice: &Notice,
        (config, shared, sink): (&Config, &mut Shared, &mut impl Sink),
        now: Instant,
    ) {
        let slots = match notice {
            Notice::MobileDown(address) | Notice::MobileUp(address) => {
                self.hosts.slots_of(*address)
            }
            _ => (0..self.flows.len() as u32).collect(),
        };
        for slot in slots {
            let Some(flow) = &mut self.flows[slot as usize] else { continue };
            match notice {
                Notice::LinkDown(Side::RADIO) | Notice::MobileDown(_) => {
                    recall::on_link_down(flow, now);
                }
                Notice::LinkUp(Side::RADIO) | Notice::MobileUp(_) => {
                    recall::on_link_up(flow, (config, shared, sink), now);
                }
                Notice::LinkMayBeUp(Side::RADIO) => {
                    recall::on_host_back(flow, (config, shared, sink), now);
                }
                _ => return,
            }
        }
    }

    fn create(&mut self, key: FlowKey, start: Seq, sack_use: Option<SackUse>, now: Instant) -> u32 {
        let aside = match sack_use {
            Some(SackUse::Agreed) => None,
            Some(SackUse::Refused) => Some(Reason::NoSack),
            None => Some(Reason::NoHandshake),
        };
        let mut flow = Box::new(Uplink::new(key, start, aside, now));
        flow.recall.has_sack = aside.is_none();
        let flow = Some(flow);
        let slot = match self.free.pop() {
            Some(slot) => {
                self.flows[slot as usize] = flow;
                slot
            }
            None => {
                self.flows.push(flow);
                self.flows.len() as u32 - 1
            }
        };
        self.index.insert(key, slot);
        self.hosts.join(slot, key.source.address);
        slot
    }

    /// A segment with an ACK from the fixed host is about to be forwarded. `key`: as the data
    /// travels that it acknowledges.
    pub(super) fn on_ack(
        &mut self,
        (key, packet): (FlowKey, &Packet),
        (config, shared, sink): (&Config, &mut Shared, &mut impl Sink),
        now: Instant,
    ) {
        let Some(slot) = self.index.get(&key) else { return };
        let Some(tcp) = packet.as_tcp().filter(|tcp| tcp.flags.contains(Flags::ACK)) else {
            return;
        };
        let Some(flow) = self.flows.get_mut(slot as usize).and_then(Option::as_mut) else { return };
        flow.active_at = now;
        let timestamps = tcp.options.timestamps();
        flow.air.on_ack_passed(timestamps, now);
        if let Some(timestamps) = timestamps {
            flow.wired.on_data(timestamps.echo, now);
        }
        let is_lost_beyond = flow.on_ack(packet, now);
        let is_modern = config.stand_aside == StandAside::IfUseless;
        if is_lost_beyond && flow.aside.is_none() && is_modern {
            stand_aside(flow, Reason::WiredLoss, shared, sink);
        }
        match flow.is_finished() {
            true => self.forget(&key),
            false => self.schedule(slot, config, now),
        }
    }

    /// `heard_at`: when an ACK of the other direction came last from a flow's mobile host.
    pub(super) fn on_timer(
        &mut self,
        heard_at: impl Fn(&FlowKey) -> Option<Instant>,
        (config, shared, sink): (&Config, &mut Shared, &mut impl Sink),
        now: Instant,
    ) {
        while let Some(slot) = self.timers.pop_due(now) {
            let Some(flow) = self.flows.get_mut(slot as usize).and_then(Option::as_mut) else {
                continue;
            };
            flow.queued_at = None;
            if flow.active_at + config.flow_idle <= now {
                let key = flow.key;
                self.forget(&key);
                continue;
            }
            if silence_ends_at(flow, &config.nack).is_some_and(|at| at <= now) {
                nack(flow, "silence", (config, shared, sink), now);
                // The next one only after as long a silence again.
                flow.heard_at = now;
            }
            if recall::next_at(flow, config).is_some_and(|at| at <= now) {
                flow.heard_at = flow.heard_at.max(heard_at(&flow.key).unwrap_or(Instant::ZERO));
            }
            let mut not_before = now;
            if recall::next_at(flow, config).is_some_and(|at| at <= now) {
                not_before = recall::on_due(flow, (config, shared, sink), now).unwrap_or(now);
            }
            self.schedule_not_before(slot, not_before, config);
        }
    }

    /// Sets the flow's place in the timer queue: earlier if need be, later when it fires.
    fn schedule(&mut self, slot: u32, config: &Config, now: Instant) {
        self.schedule_not_before(slot, now, config);
    }

    fn schedule_not_before(&mut self, slot: u32, not_before: Instant, config: &Config) {
        let Some(flow) = self.flows.get_mut(slot as usize).and_then(Option::as_mut) else { return };
        let idle = flow.active_at + config.flow_idle;
        let acts_at = [silence_ends_at(flow, &config.nack), recall::next_at(flow, config)];
        let at = acts_at.into_iter().flatten().fold(idle, Instant::min).max(not_before);
        if flow.queued_at.is_none_or(|queued| at < queued) {
            flow.queued_at = Some(at);
            self.timers.set(slot, at);
        }
    }
}

/// Takes note of data, and tells what is missing if it is time.
fn note_data(
    flow: &mut Uplink,
    (packet, range): (&Packet, (Seq, Seq)),
    (config, shared, sink): (&Config, &mut Shared, &mut impl Sink),
    now: Instant,
) {
    let Some(tcp) = packet.as_tcp() else { return };
    if tcp.flags.contains(Flags::FIN) {
        flow.note_fin(range.1);
    }
    let timestamps = tcp.options.timestamps();
    flow.wired.on_ack_passed(timestamps, now);
    if let Some(timestamps) = timestamps {
        flow.air.on_data(timestamps.echo, now);
    }
    if flow.on_data(range, packet.segments(), now) == Arrival::Again {
        let unneeded = flow.unneeded;
        flow.on_again(range);
        shared.statistics.nacks_unneeded += u64::from(flow.unneeded - unneeded);
        let is_useless = flow.judged >= JUDGED_BATCH && flow.unneeded * 2 > flow.judged;
        if is_useless && config.stand_aside == StandAside::IfUseless {
            return stand_aside(flow, Reason::Unneeded, shared, sink);
        }
    }
    if flow.is_due(&config.nack, now) && flow.has_to_tell(&config.nack) {
        nack(flow, "overtaken", (config, shared, sink), now);
    }
}

/// Told gaps to be looked back at before the agent may conclude that telling is of no use.
const JUDGED_BATCH: u32 = 16;

/// When silence shall make the agent tell what is missing: nothing came for so long, and something
/// is (SNOOP-NACK-2).
fn silence_ends_at(flow: &Uplink, nack: &Nack) -> Option<Instant> {
    let is_needed = flow.aside.is_none() && flow.has_to_tell(nack);
    is_needed.then(|| flow.heard_at + flow.repeat_after(nack))
}

/// Tells the mobile host what is missing (SNOOP-NACK-3): the fixed host's last ACK, with blocks.
fn nack(
    flow: &mut Uplink,
    why: &'static str,
    (config, shared, sink): (&Config, &mut Shared, &mut impl Sink),
    now: Instant,
) {
    let Some(fixed) = flow.fixed else { return };
    let mut options = fixed.options();
    let blocks = flow.tell(&config.nack, now);
    if blocks.is_empty() {
        return;
    }
    options.push_sack(&blocks);
    let ack = in_the_name_of_the_fixed_host(flow.key, &fixed, options, sink.new_id());
    shared.statistics.nacks += 1;
    rule(sink, flow.key, Some(ack.id), ("SNOOP-NACK-2", why, blocks.len() as u64));
    sink.send(Side::RADIO, config.retransmission_priority, ack.into());
}

/// What the fixed host last said, once more, with these options.
pub(super) fn in_the_name_of_the_fixed_host(
    key: FlowKey,
    fixed: &Fixed,
    options: Options,
    id: PacketId,
) -> Packet {
    let mut header = Header::new(key.destination.port, key.source.port);
    header.seq = fixed.next_seq;
    header.ack = fixed.ack;
    header.flags = Flags::ACK.with(fixed.ecn);
    header.window = fixed.window;
    header.options = options;
    let ip = ip::Header::new(key.destination.address, key.source.address, ip::Protocol::TCP);
    let mut ack = Packet::tcp(id, ip, header, Payload::EMPTY);
    ack.parent = Some(fixed.packet);
    ack.cause = Cause::AgentAck;
    ack
}

/// True if an answer needs what only the hosts can make (MOD-13, MOD-20).
fn has_foreign_options(header: &Header) -> bool {
    header.options.iter().any(|option| {
        matches!(
            option,
            TcpOption::Unknown {
                kind: tcp::kind::MD5 | tcp::kind::AUTHENTICATION | tcp::kind::MPTCP,
                ..
            }
        )
    })
}

fn stand_aside(flow: &mut Uplink, reason: Reason, shared: &mut Shared, sink: &mut impl Sink) {
    flow.stand_aside(reason);
    report_aside(flow, shared, sink);
}

fn report_aside(flow: &Uplink, shared: &mut Shared, sink: &mut impl Sink) {
    let (key, Some(reason)) = (flow.key, flow.aside) else { return };
    shared.statistics.flows_left_alone += 1;
    sink.report(|| Event {
        flow: Some(key),
        packet: None,
        kind: EventKind::StandAside { reason: reason.text() },
    });
}
