//! `snoop_data()`: packets from the fixed host (Snoop paper, section 3.1.1; SNOOP-DATA-*).
//!
//! ```text
//!                end at or below last ack ── AlreadyAcknowledged: answer, do not forward
//!   segment ──▶  at or after last seen ───── New: cache, forward
//!                all of it cached ────────── Cached: forward, it probably never arrived
//!                otherwise ───────────────── Uncached: forward, cache, mark
//! ```
//!
//! We differ in one thing: "cached earlier" is decided by bytes, and acknowledged data, which has
//! left the cache, is recognised by the last ACK before the cache is asked.

use super::cache::{Copy, Entry};
use super::config::{Config, CopyTimestamps, Departures, Mark};
use super::flow::{Flow, Timed};
use super::mirror::Role;
use super::timers::Timer;
use super::{Context, aside, assist, mirror, restart, rule};
use sansio::{Cause, Instant, Packet, PacketRef, Payload, Priority, Side, Sink};
use std::num::NonZeroU16;
use wire::ip;
use wire::tcp::{self, Flags, Header, Options, Seq, TcpOption, Timestamps};

/// The paper's cases, and one of today.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Case {
    /// In sequence, or beyond a gap (SNOOP-DATA-1).
    New,
    /// Out of sequence, every byte is cached (SNOOP-DATA-3).
    Cached,
    /// Out of sequence, not acknowledged, not cached (SNOOP-DATA-5).
    Uncached,
    /// All of it was acknowledged by the mobile host (SNOOP-DATA-4).
    AlreadyAcknowledged,
    /// One byte just below the last ACK: a keep-alive (RFC 9293, 3.8.4), which asks whether the
    /// mobile host is there and which only the mobile host may answer.
    KeepAlive,
}

/// The case of a segment that covers `range`.
#[inline]
pub(super) fn classify(flow: &Flow, range: (Seq, Seq)) -> Case {
    let (start, end) = range;
    let lowest = match flow.last_ack {
        Some(ack) if end.at_or_before(ack) => {
            let keep_alive = end == ack && end.since(start) <= 1;
            return if keep_alive { Case::KeepAlive } else { Case::AlreadyAcknowledged };
        }
        Some(ack) => ack.max(start),
        None => start,
    };
    if start.at_or_after(flow.last_seen) {
        Case::New
    } else if flow.cache.covers(lowest, end) {
        Case::Cached
    } else {
        Case::Uncached
    }
}

/// What becomes of a segment from the fixed host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Forward,
    /// The mobile host has it, and the fixed host was told.
    Discard,
}

/// A segment with data or FIN from the fixed host. `range` is its sequence range.
#[inline(always)]
pub(super) fn snoop_data(
    flow: &mut Flow,
    (packet, tcp): (&PacketRef, &Header),
    range: (Seq, Seq),
    context: &mut Context<'_, impl Sink>,
    now: Instant,
) -> Verdict {
    debug_assert!(!flow.is_quiet || flow.is_nothing_going_on(context.config));
    let is_next = flow.is_quiet && flow.is_next_data(range.0);
    if !is_next && flow.is_far(range.0) {
        start_anew(flow, range.0, context.config, now);
    }
    flow.active_at = now;
    flow.sender_at = now;
    if tcp.flags.contains(Flags::FIN) {
        (flow.fin, flow.is_quiet) = (Some(range.1), false);
    }
    match tcp.options.timestamps() {
        Some(timestamps) => note_timestamps(flow, timestamps, now),
        None => flow.sender_timestamp = None,
    }
    if !is_next && let Some(verdict) = on_any(flow, packet, range, context, now) {
        return verdict;
    }
    on_new(flow, (packet, tcp), range, context, now);
    Verdict::Forward
}

/// The flow's four-tuple belongs to another connection now.
#[cold]
pub(super) fn start_anew(flow: &mut Flow, start: Seq, config: &Config, now: Instant) {
    *flow = Flow::new(flow.key, start, config, now);
    flow.timers.set(Timer::Idle, now + config.flow_idle);
}

/// Any segment: what becomes of one that is not new.
#[cold]
fn on_any(
    flow: &mut Flow,
    packet: &PacketRef,
    range: (Seq, Seq),
    context: &mut Context<'_, impl Sink>,
    now: Instant,
) -> Option<Verdict> {
    if flow.role != Role::Forwards && mirror::on_kept(flow, packet, range, context, now) {
        return Some(Verdict::Forward);
    }
    let case = classify(flow, range);
    restart::on_sender(flow, (case, range.0), context, now);
    (case != Case::New).then(|| on_old(flow, (case, packet), range, context, now))
}

/// A segment that was seen before, in part at least.
fn on_old(
    flow: &mut Flow,
    (case, packet): (Case, &PacketRef),
    range: (Seq, Seq),
    context: &mut Context<'_, impl Sink>,
    now: Instant,
) -> Verdict {
    flow.is_quiet = false;
    match case {
        Case::New => {}
        Case::Cached => on_cached(flow, packet, range, context, now),
        Case::Uncached => on_uncached(flow, packet, range, context, now),
        Case::KeepAlive => {}
        Case::AlreadyAcknowledged if flow.aside.is_some() => {}
        Case::AlreadyAcknowledged => {
            if assist::is_answered(flow, context.config, now) || answer(flow, packet, context, now)
            {
                return Verdict::Discard;
            }
        }
    }
    Verdict::Forward
}

#[inline(never)]
fn note_timestamps(flow: &mut Flow, timestamps: Timestamps, now: Instant) {
    flow.sender_timestamp = Some(timestamps.value);
    flow.wired.on_data(timestamps.echo, now);
}

#[inline]
fn on_new(
    flow: &mut Flow,
    (packet, tcp): (&PacketRef, &Header),
    range: (Seq, Seq),
    context: &mut Context<'_, impl Sink>,
    now: Instant,
) {
    flow.last_seen = range.1;
    let segments = u16::try_from(packet.segments()).unwrap_or(u16::MAX);
    flow.segments_unanswered = flow.segments_unanswered.saturating_add(segments);
    let bounds = &context.config.bounds;
    let most =
        u64::from(bounds.retransmission_floor_bytes) + u64::from(context.config.cache_bytes_max);
    if flow.budget_bytes < most {
        let percent = u64::from(bounds.retransmission_percent);
        let earned = u64::from(packet.payload.len()) * percent / 100;
        flow.budget_bytes = (flow.budget_bytes + earned).min(most);
    }
    if aside::leaves_alone(flow, context, now) {
        return;
    }
    if !has_room(flow, (packet, tcp.flags, range), Age::New, context) {
        return;
    }
    if flow.timed == Timed::Nothing {
        flow.timed = match context.config.departures {
            Departures::Reported => Timed::Chosen(range.1),
            Departures::AssumedWhenSent => Timed::Running(range.1, now),
        };
    }
    keep(flow, (packet, Age::New), range, (context, now));
}

/// SNOOP-DATA-3: forwarded by the caller; its counter starts again (SNOOP-DATA-6).
#[cold]
fn on_cached(
    flow: &mut Flow,
    packet: &PacketRef,
    range: (Seq, Seq),
    context: &mut Context<'_, impl Sink>,
    now: Instant,
) {
    flow.timed = Timed::Nothing;
    assist::on_repeat(flow, range.0, now);
    context.shared.statistics.sender_retransmissions += 1;
    rule(context.sink, flow.key, None, ("SNOOP-DATA-3", "forwarded again", range.0.0.into()));
    mark_repeated(flow, packet, range, context.config, now);
    send_cached(flow, (range, Copy::Queued), context.config, now);
}

/// The sender has sent cached segments again, in this packet.
pub(super) fn mark_repeated(
    flow: &mut Flow,
    packet: &PacketRef,
    range: (Seq, Seq),
    config: &Config,
    now: Instant,
) {
    let mut index = flow.cache.first_ending_after(range.0);
    while let Some(entry) = flow.cache.get_mut(index)
        && entry.start.before(range.1)
    {
        entry.was_resent |= entry.retransmissions > 0;
        entry.retransmissions = 0;
        if config.copy_timestamps == CopyTimestamps::Acceptable {
            entry.renew(packet, range);
        }
        entry.sender_retransmitted |= config.mark == Mark::Both;
        entry.departed_at = now;
        index += 1;
    }
}

/// Cached segments are sent: by the caller into this base station's queue, or elsewhere.
pub(super) fn send_cached(
    flow: &mut Flow,
    (range, copy): ((Seq, Seq), Copy),
    config: &Config,
    now: Instant,
) {
    let departs = copy == Copy::Queued && config.departures == Departures::AssumedWhenSent;
    let mut index = flow.cache.first_ending_after(range.0);
    while let Some(entry) = flow.cache.get_mut(index)
        && entry.start.before(range.1)
    {
        (entry.copy, entry.sent_order) = (copy, flow.sent);
        flow.sent = flow.sent.wrapping_add(1);
        if departs {
            flow.departures = flow.departures.wrapping_add(1);
            (entry.copy, entry.departed_at) = (Copy::Departed, now);
            entry.departed_order = flow.departures;
        }
        index += 1;
    }
}

#[cold]
fn on_uncached(
    flow: &mut Flow,
    packet: &PacketRef,
    range: (Seq, Seq),
    context: &mut Context<'_, impl Sink>,
    now: Instant,
) {
    flow.last_seen = flow.last_seen.max(range.1);
    flow.timed = Timed::Nothing;
    context.shared.statistics.sender_retransmissions += 1;
    rule(context.sink, flow.key, Some(packet.id), ("SNOOP-DATA-5", "marked", range.0.0.into()));
    let flags = packet.as_tcp().map_or(Flags::default(), |tcp| tcp.flags);
    if flow.aside.is_some() || !has_room(flow, (packet, flags, range), Age::Old, context) {
        return;
    }
    keep(flow, (packet, Age::Old), range, (context, now));
    if let Some(ack) = flow.last_ack {
        // What it displaced, or the first segments of a super-packet, may be acknowledged.
        while flow.cache.pop_acknowledged(ack, |_| ()).is_some() {}
    }
}

/// Whether data was seen before.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Age {
    /// The newest: it may use the cache up to the high-water mark (SNOOP-CACHE-3).
    New,
    /// Older data, which matters more: all of the cache. The sender sent it more than once.
    Old,
}

/// True if the cache may take the packet; otherwise that is counted and reported.
#[inline]
fn has_room(
    flow: &mut Flow,
    (packet, flags, range): (&PacketRef, Flags, (Seq, Seq)),
    age: Age,
    context: &mut Context<'_, impl Sink>,
) -> bool {
    let config: &Config = context.config;
    let percent = match age {
        Age::New => u64::from(config.cache_mark_percent),
        Age::Old => 100,
    };
    let exceeds = |count: u64, limit: u32| count * 100 > u64::from(limit) * percent;
    let segments = flow.cache.len() as u64 + u64::from(packet.segments());
    // A FIN counts one, here as in the cache.
    let length = u64::from(range.1.since(range.0));
    let bytes = u64::from(flow.cache.bytes()) + length;
    let total = context.shared.held_bytes + length;
    let name = if exceeds(segments, config.cache_segments_max) {
        "snoop cache segments"
    } else if exceeds(bytes, config.cache_bytes_max) {
        "snoop cache bytes"
    } else if total > config.cache_bytes_total_max {
        "snoop cache bytes of all flows"
    } else if flags.contains(Flags::URG) {
        // The urgent pointer counts from the segment's start: such a segment is never cut.
        "snoop urgent data"
    } else {
        return true;
    };
    if flow.role == Role::Unsynchronised && !flags.contains(Flags::URG) {
        return mirror::make_room(flow, packet, range, context);
    }
    leave_uncached(flow, packet, (name, segments), context);
    false
}

#[cold]
fn leave_uncached(
    flow: &Flow,
    packet: &Packet,
    (name, segments): (&'static str, u64),
    context: &mut Context<'_, impl Sink>,
) {
    context.shared.statistics.uncached += u64::from(packet.segments());
    super::limit(context.sink, flow.key, name, segments);
}

/// Puts a packet's segments into the cache and sees to the persist timer.
#[inline(always)]
fn keep(
    flow: &mut Flow,
    (packet, age): (&PacketRef, Age),
    range: (Seq, Seq),
    (context, now): (&mut Context<'_, impl Sink>, Instant),
) {
    let assumed = context.config.departures == Departures::AssumedWhenSent;
    context.shared.statistics.cached += u64::from(packet.segments());
    let copy = if assumed { Copy::Departed } else { Copy::Queued };
    keep_segments(flow, (packet, age), range, (copy, now));
    let waiting = flow.sent.wrapping_sub(flow.next_departure);
    flow.disclosure.on_new_data(range.1, waiting, flow.last_ack);
    if assumed {
        flow.unanswered_since.get_or_insert(now);
        flow.disclosure.on_departure(range.1);
    }
    if !flow.timers.is_armed(Timer::Persist) {
        // It waits for longer if it has to, by then.
        flow.timers.set(Timer::Persist, now + context.config.persist);
    }
}

/// Puts a packet's segments into the cache. `copy`: where they are.
#[inline(always)]
pub(super) fn keep_segments(
    flow: &mut Flow,
    (packet, age): (&PacketRef, Age),
    range: (Seq, Seq),
    (copy, now): (Copy, Instant),
) {
    let last = match packet.segment_bytes {
        None => range,
        Some(size) => keep_all_but_last(flow, (packet, age), (range, size), (copy, now)),
    };
    keep_segment(flow, (packet, age), last, (copy, now));
}

/// A super-packet is several segments, of `size` bytes but for the last, which is returned.
#[cold]
fn keep_all_but_last(
    flow: &mut Flow,
    (packet, age): (&PacketRef, Age),
    ((mut start, end), size): ((Seq, Seq), NonZeroU16),
    (copy, now): (Copy, Instant),
) -> (Seq, Seq) {
    for _ in 1..packet.segments() {
        let segment_end = start + u32::from(size.get());
        keep_segment(flow, (packet, age), (start, segment_end), (copy, now));
        start = segment_end;
    }
    (start, end)
}

/// Puts one segment of a packet into the cache.
#[inline(always)]
fn keep_segment(
    flow: &mut Flow,
    (packet, age): (&PacketRef, Age),
    (start, end): (Seq, Seq),
    (copy, now): (Copy, Instant),
) {
    let sent_order = flow.sent;
    flow.sent = flow.sent.wrapping_add(1);
    if copy == Copy::Departed {
        flow.departures = flow.departures.wrapping_add(1);
    }
    let is_whole = packet.segment_bytes.is_none() && packet.cause != Cause::LocalRetransmission;
    let (packet, departed_order) = (packet.clone(), flow.departures);
    let entry = || Entry {
        packet,
        departed_at: now,
        start,
        end,
        sent_order,
        departed_order,
        copy,
        retransmissions: 0,
        sender_retransmitted: age == Age::Old,
        was_resent: false,
        sacked: false,
        is_whole,
    };
    match age {
        Age::New => flow.cache.push(entry),
        Age::Old => {
            flow.cache.insert(entry());
            flow.evidence.on_filled(start);
        }
    }
}

/// SNOOP-DATA-4: the mobile host's last ACK once more, to the fixed host, which seems not to know
/// it. False if no valid ACK can be made; the segment is then forwarded.
#[cold]
fn answer(
    flow: &mut Flow,
    packet: &Packet,
    context: &mut Context<'_, impl Sink>,
    now: Instant,
) -> bool {
    let (Some(tcp), Some(last_ack)) = (packet.as_tcp(), flow.last_ack) else { return false };
    context.shared.statistics.sender_retransmissions += 1;
    let Some(options) = answer_options(tcp, flow.mobile.timestamps) else { return false };
    if !flow.agent_acks.admit(context.config.bounds.agent_acks_per_second, now) {
        super::limit(context.sink, flow.key, "snoop agent ACKs per second", 0);
        return false;
    }
    let mut header = Header::new(tcp.destination_port, tcp.source_port);
    header.seq = flow.mobile.next_seq;
    header.ack = last_ack;
    // The ECN flags are a counter's value with AccECN (RFC 9768): they repeat, too (MOD-12).
    header.flags = Flags::ACK.with(flow.mobile.ecn);
    header.window = flow.mobile.window;
    header.options = options;
    let ip = ip::Header::new(packet.ip.destination, packet.ip.source, packet.ip.protocol);
    let id = context.sink.new_id();
    let mut ack = Packet::tcp(id, ip, header, Payload::EMPTY);
    ack.parent = Some(packet.id);
    ack.cause = Cause::AgentAck;
    context.shared.statistics.agent_acks += 1;
    rule(context.sink, flow.key, Some(id), ("SNOOP-DATA-4", "last ACK again", last_ack.0.into()));
    context.sink.send(Side::WIRED, Priority::Normal, ack.into());
    true
}

/// The options of an ACK in the mobile host's name (MOD-3): the timestamps that PAWS and round-trip
/// measurement need. `None` if a valid ACK needs what only the mobile host can make: a signature
/// (MOD-13) or a Multipath TCP data ACK (MOD-20).
fn answer_options(repeat: &Header, mobile: Option<Timestamps>) -> Option<Options> {
    let mut options = Options::default();
    for option in repeat.options.iter() {
        match option {
            TcpOption::Timestamps(timestamps) => {
                let answer = Timestamps { value: mobile?.value, echo: timestamps.value };
                options.push_timestamps(answer).ok()?;
            }
            TcpOption::Unknown {
                kind: tcp::kind::MD5 | tcp::kind::AUTHENTICATION | tcp::kind::MPTCP,
                ..
            } => return None,
            _ => {}
        }
    }
    Some(options)
}
