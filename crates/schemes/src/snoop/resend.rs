//! Sending a cached segment again, and learning when copies went onto the air.
//!
//! A re-sent segment is the bytes that came from the sender, timestamps and ECN bits included
//! (MOD-3, MOD-12), but for a TSval that PAWS would discard ([`CopyTimestamps`]). What the mobile
//! host has acknowledged in the meantime is cut off, and a segment out of a super-packet is cut out
//! (MOD-7).

use super::cache::{Copy, Entry};
use super::config::{Config, Congestion, CopyTimestamps, Departures, Restart};
use super::flow::{Flow, Timed};
use super::{Context, disclosure, restart, rule};
use sansio::{Cause, Instant, Packet, PacketId, Side, Sink};
use wire::tcp::{Flags, Header, Options, Seq, Timestamps};

/// Why a segment is sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Occasion {
    /// A duplicate ACK or a SACK block shows its loss.
    Loss,
    /// A timer expired.
    Timer,
    /// The link is back.
    Restart,
}

/// Local retransmissions of a flow that may wait in their queue: an outage leaves hundreds of
/// holes, and the queue would drop what it cannot hold.
pub(super) const QUEUED_MAX: u32 = 32;

/// True if the newest copy is a local retransmission that waits in its queue.
pub(super) fn is_waiting(flow: &Flow, entry: &Entry) -> bool {
    entry.copy == Copy::Requeued && !was_dropped(flow, entry)
}

/// True if a copy queued after this one went onto the air: the queue dropped this one.
pub(super) fn was_dropped(flow: &Flow, entry: &Entry) -> bool {
    entry.copy == Copy::Requeued
        && flow.requeued_departed.is_some_and(|queued_at| entry.departed_at < queued_at)
}

/// Sends entry `index` again; false if a bound forbids it.
#[cold]
pub(super) fn resend(
    flow: &mut Flow,
    index: usize,
    occasion: Occasion,
    context: &mut Context<'_, impl Sink>,
    now: Instant,
) -> bool {
    let acknowledged = flow.last_ack;
    let departures = flow.departures;
    let oldest_timestamp = flow.oldest_timestamp();
    let Some(entry) = flow.cache.get_mut(index) else { return false };
    let start = acknowledged.map_or(entry.start, |ack| ack.max(entry.start));
    let bytes = u64::from(entry.end.since(start));
    let statistics = &mut context.shared.statistics;
    if bytes > flow.budget_bytes {
        statistics.retransmissions_refused += 1;
        rule(context.sink, flow.key, None, ("MOD-14", "retransmission budget used up", bytes));
        return false;
    }
    flow.budget_bytes -= bytes;
    entry.retransmissions = entry.retransmissions.saturating_add(1);
    (entry.copy, entry.departed_at) = (Copy::Requeued, now);
    if context.config.departures == Departures::AssumedWhenSent {
        entry.depart(departures, now);
    }
    let id = context.sink.new_id();
    let copy = cut(&entry.packet, (start, entry.end), id, Cause::LocalRetransmission);
    let copy = acceptable(copy, oldest_timestamp, context.config);
    // A round-trip sample would not know which copy was answered (SNOOP-ACK-2).
    flow.timed = Timed::Nothing;
    statistics.retransmissions += 1;
    statistics.retransmitted_bytes += bytes;
    match occasion {
        Occasion::Loss => flow.disclosure.on_repair(now),
        Occasion::Timer => statistics.timer_retransmissions += 1,
        Occasion::Restart => statistics.restart_retransmissions += 1,
    }
    let priority = context.config.retransmission_priority;
    context.sink.send(Side::RADIO, priority, copy.into());
    true
}

/// The bytes of `range` out of `packet`, which holds them, as a segment of their own; the packet
/// itself, frame included, if that is all of it.
pub(super) fn cut(packet: &Packet, range: (Seq, Seq), id: PacketId, cause: Cause) -> Packet {
    let (start, end) = range;
    let Some(tcp) = packet.as_tcp() else { return packet.repeat(id, cause) };
    let packet_end = tcp.seq + tcp.sequence_length(packet.payload.len());
    if start == tcp.seq && end == packet_end {
        return packet.repeat(id, cause);
    }
    let mut header = *tcp;
    header.seq = start;
    if end != packet_end {
        header.flags = header.flags.without(Flags::FIN.with(Flags::PSH));
    }
    if start != tcp.seq {
        header.flags = header.flags.without(Flags::CWR);
    }
    let length = packet.payload.len();
    let payload =
        packet.payload.slice(start.since(tcp.seq).min(length), end.since(tcp.seq).min(length));
    packet.rewrite(id, cause, |copy| {
        copy.transport = sansio::Transport::Tcp(header);
        copy.payload = payload;
        copy.segment_bytes = None;
    })
}

/// The copy with a TSval that the mobile host does not discard as too old, if the configuration
/// allows to raise it to the `oldest` one that is accepted. Copies with other options stay as they
/// are.
pub(super) fn acceptable(copy: Packet, oldest: Option<u32>, config: &Config) -> Packet {
    let Some((tcp, oldest)) = copy.as_tcp().zip(oldest) else { return copy };
    let Some(timestamps) = tcp.options.timestamps() else { return copy };
    let is_old = (timestamps.value.wrapping_sub(oldest) as i32) < 0;
    if !is_old || config.copy_timestamps == CopyTimestamps::AsSent {
        return copy;
    }
    let mut options = Options::default();
    let raised = Timestamps { value: oldest, ..timestamps };
    let only = options.push_timestamps(raised).is_ok()
        && options.as_bytes().len() == tcp.options.as_bytes().len();
    if !only {
        return copy;
    }
    let header = Header { options, ..*tcp };
    let mut raised = copy.rewrite(copy.id, copy.cause, |packet| {
        packet.transport = sansio::Transport::Tcp(header);
    });
    raised.parent = copy.parent;
    raised
}

impl Entry {
    /// The newest copy goes onto the air as the segment number `departures` of its flow.
    #[inline]
    fn depart(&mut self, departures: u32, now: Instant) {
        self.copy = Copy::Departed;
        self.departed_at = now;
        self.departed_order = departures;
    }
}

/// Takes note of a segment that went onto the air, if it is the next of those that the flow has in
/// the normal queue, as most are; false if not, and nothing is done. That it is the very packet in
/// the cache tells its flow.
#[inline]
pub(super) fn on_next_departure(flow: &mut Flow, packet: &Packet, now: Instant) -> bool {
    let Some(entry) = flow.cache.sent_as(flow.next_departure) else { return false };
    let is_next = core::ptr::eq(packet, &*entry.packet)
        && entry.is_whole
        && entry.sent_order == flow.next_departure
        && entry.copy == Copy::Queued;
    if !is_next || flow.expected_dupacks > 0 {
        return false;
    }
    flow.departures = flow.departures.wrapping_add(1);
    entry.depart(flow.departures, now);
    let end = entry.end;
    flow.next_departure = flow.next_departure.wrapping_add(1);
    note_departure(flow, end, now);
    true
}

/// What a flow remembers of everything that departs.
#[inline]
fn note_departure(flow: &mut Flow, end: Seq, now: Instant) {
    flow.unanswered_since.get_or_insert(now);
    flow.disclosure.on_departure(end);
    if let Timed::Chosen(chosen) = flow.timed
        && chosen.at_or_before(end)
    {
        flow.timed = Timed::Running(chosen, now);
    }
}

/// Takes note of any segment that went onto the air. `range` is its sequence range.
pub(super) fn on_departure(
    flow: &mut Flow,
    packet: &Packet,
    range: (Seq, Seq),
    context: &mut Context<'_, impl Sink>,
    now: Instant,
) {
    if packet.cause == Cause::Probe {
        return restart::on_probe_departure(flow);
    }
    let (start, end) = range;
    note_departure(flow, end, now);
    let before = flow.departures;
    let segments = packet.segments();
    flow.departures = before.wrapping_add(segments);
    if packet.cause == Cause::LocalRetransmission {
        return on_copy_departure(flow, range, before, now);
    }
    let mut last_order = None;
    let mut index = flow.cache.first_departing(start, flow.next_departure);
    let mut segment = 0;
    while let Some(entry) = flow.cache.get_mut(index)
        && entry.start.before(end)
    {
        segment += 1;
        if entry.copy == Copy::Queued {
            entry.depart(before.wrapping_add(segment), now);
            last_order = Some(entry.sent_order);
        }
        if entry.end.at_or_after(end) {
            break;
        }
        index += 1;
    }
    let Some(order) = last_order else { return };
    if flow.expected_dupacks > 0 && lowest_is_requeued(flow) {
        // It was queued before the re-sent segment and departs before it (SNOOP-ACK-8).
        flow.expected_dupacks += segments;
    }
    let ahead = order.wrapping_sub(flow.next_departure);
    if (ahead as i32) < 0 {
        return;
    }
    if ahead >= segment {
        on_queue_drop(flow, order, context, now);
    }
    flow.next_departure = order.wrapping_add(1);
}

/// A local retransmission went onto the air, after so many other departures of its flow.
#[cold]
fn on_copy_departure(flow: &mut Flow, (start, end): (Seq, Seq), before: u32, now: Instant) {
    let mut index = flow.cache.first_ending_after(start);
    let mut segment = 0;
    while let Some(entry) = flow.cache.get_mut(index)
        && entry.start.before(end)
    {
        segment += 1;
        if entry.copy == Copy::Requeued {
            flow.requeued_departed = flow.requeued_departed.max(Some(entry.departed_at));
            entry.depart(before.wrapping_add(segment), now);
        }
        index += 1;
    }
}

fn lowest_is_requeued(flow: &Flow) -> bool {
    flow.cache.front().is_some_and(|entry| entry.copy == Copy::Requeued)
}

/// Segments sent before the one of `order` are still marked as queued though it departed: the
/// link's queue dropped them. Strict treats that like a loss on the air. Modern lets go of them:
/// a full queue is congestion, which the sender has to learn of. Without SACK it keeps them: the
/// sender learns from duplicate ACKs, and is then helped ([`super::assist`]).
#[cold]
fn on_queue_drop(flow: &mut Flow, order: u32, context: &mut Context<'_, impl Sink>, now: Instant) {
    let dropped = |entry: &Entry| {
        entry.copy == Copy::Queued && (entry.sent_order.wrapping_sub(order) as i32) < 0
    };
    let departures = flow.departures;
    let is_kept = match context.config.restart {
        Restart::Persist => true,
        Restart::Probe(_) => !flow.evidence.has_seen_sack(),
    };
    let count = match is_kept {
        true => flow
            .cache
            .iter_mut()
            .filter(|entry| dropped(entry))
            .map(|entry| entry.depart(departures, now))
            .count(),
        false => flow.cache.retain(|entry| !dropped(entry)),
    };
    if count > 0 && is_kept && context.config.congestion != Congestion::Hide {
        disclosure::show(flow, context, now);
    }
    context.shared.statistics.queue_drops_seen += count as u64;
    if count > 0 {
        rule(context.sink, flow.key, None, ("SNOOP-ACK-8", "dropped by the queue", count as u64));
    }
}
