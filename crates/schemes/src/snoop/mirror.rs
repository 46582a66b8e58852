//! Snoop across a handoff (Snoop paper, section 5; SNHO-*).
//!
//! ```text
//!              another base station               this one
//!              forwards                           forwards
//!   ┌─────────┐ ───────▶ Buffers ───────▶ Unsynchronised ───────▶ Forwards ─┐
//!   │ no state│          hears data,      its cache may hold      first ACK  │
//!   └─────────┘          is silent        what has arrived        (SNHO-5)   │
//!                           ▲                                                │
//!                           └──────────── another one forwards ──────────────┘
//! ```
//!
//! A base station that buffers for a mobile host hears the data of its multicast group, and no ACK.
//! It caches what it hears, the oldest making room, and sends nothing (SNHO-1 to 3). Once it
//! forwards, the first ACK frees what has arrived; what is missing in the cache is left to the
//! sender (SNHO-5, 6). No base station tells another what it has (SNHO-7).
//!
//! What it has heard and not sent itself is on the air of another base station, or past it
//! ([`Copy::Elsewhere`]): its loss shows as any other does, but it tells nothing of this last hop's
//! round trip.

use super::cache::{Copy, Entry};
use super::config::{Config, WhenMoved};
use super::data::{self, Age};
use super::flow::Flow;
use super::handshake::Origin;
use super::rtt::RoundTrip;
use super::sack::Evidence;
use super::timers::{DELAYED_ACK, Timer};
use super::{Agent, Context, ENDS_STATE, Fate, aside, follow, range, rule};
use core::net::IpAddr;
use sansio::{Instant, PacketRef, Sink};
use wire::tcp::{Flags, Header, Seq};

/// Who sends a flow's data to its mobile host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// This base station.
    Forwards,
    /// This one since a handoff; no ACK has passed here yet.
    Unsynchronised,
    /// Another one. This one is silent (SNHO-2).
    Buffers,
}

impl Agent {
    /// SNHO-1: a packet that another base station forwards.
    #[cold]
    pub(super) fn on_mirrored(&mut self, packet: PacketRef, sink: &mut impl Sink, now: Instant) {
        if let Some(tcp) = packet.as_tcp() {
            let range = range(tcp, &packet);
            if tcp.flags.intersects(ENDS_STATE) {
                self.on_syn_or_reset(&packet, tcp, Origin::Fixed);
            } else if range.0 != range.1 && self.find_or_begin(&packet, range.0, sink, now) {
                self.with_flow(self.recent, sink, |flow, context| {
                    stand_by(flow, context, now);
                    mirror(flow, (&packet, tcp), range, context, now);
                    Fate::Keep
                });
            }
        }
        sink.release(packet);
    }

    /// Another base station forwards from now on, and this one hears the data (SNHO-9).
    pub(super) fn on_buffering(&mut self, address: IpAddr, sink: &mut impl Sink, now: Instant) {
        self.uplinks.forget_host(address);
        for slot in self.hosts.set_away(address, None) {
            self.with_flow(slot, sink, |flow, context| {
                stand_by(flow, context, now);
                Fate::Keep
            });
        }
    }

    /// This base station forwards from now on.
    pub(super) fn on_registered(&mut self, address: IpAddr, sink: &mut impl Sink, now: Instant) {
        for slot in self.hosts.slots_of(address) {
            self.with_flow(slot, sink, |flow, context| {
                if flow.role == Role::Buffers {
                    forward(flow, context, now);
                }
                Fate::Keep
            });
        }
    }

    /// SNHO-9: a mobile host is with another base station; nothing is sent into the old air.
    pub(super) fn forget_host(
        &mut self,
        address: IpAddr,
        its_cache: WhenMoved,
        sink: &mut impl Sink,
    ) {
        self.uplinks.forget_host(address);
        for slot in self.hosts.set_away(address, None) {
            self.with_flow(slot, sink, |flow, context| {
                if its_cache == WhenMoved::Follow {
                    follow::send_after(flow, context);
                }
                Fate::Forget
            });
        }
    }
}

/// Becomes silent. What ACKs have told is of no use any more: they pass elsewhere. What is cached
/// stays.
fn stand_by(flow: &mut Flow, context: &mut Context<'_, impl Sink>, now: Instant) {
    if flow.role == Role::Buffers {
        return;
    }
    let config = context.config;
    let old = core::mem::replace(flow, Flow::new(flow.key, flow.last_seen, config, now));
    flow.role = Role::Buffers;
    flow.cache = old.cache;
    for entry in flow.cache.iter_mut() {
        (entry.copy, entry.sacked, entry.retransmissions) = (Copy::Elsewhere, false, 0);
    }
    (flow.start, flow.began_at, flow.fin) = (old.start, old.began_at, old.fin);
    (flow.sent, flow.next_departure, flow.departures) = (old.sent, old.sent, old.departures);
    (flow.scale, flow.right_edge, flow.mobile) = (old.scale, old.right_edge, old.mobile);
    (flow.sender_timestamp, flow.active_at) = (old.sender_timestamp, old.active_at);
    (flow.round_trip, flow.wired) = (old.round_trip, old.wired);
    (flow.budget_bytes, flow.agent_acks, flow.rest) = (old.budget_bytes, old.agent_acks, old.rest);
    flow.aside = old.aside.filter(|reason| *reason != aside::Reason::AcksElsewhere);
    flow.queued_deadline = old.queued_deadline;
    flow.timers.set(Timer::Idle, now + config.flow_idle);
    let cached = flow.cache.len() as u64;
    rule(context.sink, flow.key, None, ("SNHO-2", "buffers: silent from here on", cached));
}

/// SNHO-1: data that another base station forwards.
fn mirror(
    flow: &mut Flow,
    (packet, tcp): (&PacketRef, &Header),
    range: (Seq, Seq),
    context: &mut Context<'_, impl Sink>,
    now: Instant,
) {
    if flow.is_far(range.0) {
        data::start_anew(flow, range.0, context.config, now);
        flow.role = Role::Buffers;
    }
    (flow.active_at, flow.sender_at) = (now, now);
    flow.sender_timestamp = tcp.options.timestamps().map(|timestamps| timestamps.value);
    if tcp.flags.contains(Flags::FIN) {
        flow.fin = Some(range.1);
    }
    let age = if range.0.at_or_after(flow.last_seen) { Age::New } else { Age::Old };
    flow.last_seen = flow.last_seen.max(range.1);
    if flow.aside.is_some() || tcp.flags.contains(Flags::URG) {
        return;
    }
    if age == Age::Old && flow.cache.covers(range.0, range.1) {
        // As SNOOP-DATA-6: the sender repeats it.
        data::mark_repeated(flow, packet, range, context.config, now);
        return data::send_cached(flow, (range, Copy::Elsewhere), context.config, now);
    }
    if make_room(flow, packet, range, context) {
        context.shared.statistics.cached += u64::from(packet.segments());
        data::keep_segments(flow, (packet, age), range, (Copy::Elsewhere, now));
    }
}

/// SNHO-3: what came first goes first, as long as no ACK tells what has arrived; then SNOOP-CACHE-3
/// holds again. As far as the mark, so that old data finds room then. False if the packet is too
/// large for the cache.
pub(super) fn make_room(
    flow: &mut Flow,
    packet: &PacketRef,
    range: (Seq, Seq),
    context: &mut Context<'_, impl Sink>,
) -> bool {
    let config: &Config = context.config;
    let of_others = context.shared.held_bytes.saturating_sub(flow.cache.bytes().into());
    let percent = u64::from(config.cache_mark_percent);
    let exceeds = |count: u64, limit: u32| count * 100 > u64::from(limit) * percent;
    let is_full = |flow: &Flow| {
        let segments = flow.cache.len() as u64 + u64::from(packet.segments());
        let bytes = u64::from(flow.cache.bytes()) + u64::from(range.1.since(range.0));
        exceeds(segments, config.cache_segments_max)
            || exceeds(bytes, config.cache_bytes_max)
            || of_others + bytes > config.cache_bytes_total_max
    };
    let mut freed = 0;
    while is_full(flow) {
        let Some(packet) = flow.cache.pop_oldest() else {
            context.shared.statistics.uncached += u64::from(packet.segments());
            return false;
        };
        context.sink.release(packet);
        freed += 1;
    }
    if freed > 0 {
        rule(context.sink, flow.key, Some(packet.id), ("SNHO-3", "oldest freed", freed));
    }
    true
}

/// Begins to forward. Any of what is cached may be lost, and each of it causes a duplicate ACK if
/// it overtakes what is lost (SNOOP-ACK-8).
fn forward(flow: &mut Flow, context: &mut Context<'_, impl Sink>, now: Instant) {
    flow.role = Role::Unsynchronised;
    for entry in flow.cache.iter_mut() {
        flow.departures = flow.departures.wrapping_add(1);
        (entry.departed_order, entry.departed_at) = (flow.departures, now);
    }
    flow.next_departure = flow.sent;
    (flow.active_at, flow.mobile_at, flow.acked_at) = (now, now, now);
    if !flow.cache.is_empty() {
        flow.unanswered_since = Some(now);
        flow.timers.set(Timer::Persist, now + context.config.persist);
    }
    let cached = flow.cache.len() as u64;
    rule(context.sink, flow.key, None, ("SNHO-1", "forwards: cache as heard", cached));
}

/// Data from the fixed host on a flow that no ACK has synchronised yet. True for what this base
/// station has kept for the mobile host since it was heard (MCAST-14): it is the very packet, sent
/// for the first time, and no repeat of the sender's.
pub(super) fn on_kept(
    flow: &mut Flow,
    packet: &PacketRef,
    range: (Seq, Seq),
    context: &mut Context<'_, impl Sink>,
    now: Instant,
) -> bool {
    if flow.role == Role::Buffers {
        forward(flow, context, now);
    }
    let index = flow.cache.first_ending_after(range.0);
    let is_kept = flow.cache.get(index).is_some_and(|entry| {
        entry.copy == Copy::Elsewhere && PacketRef::ptr_eq(&entry.packet, packet)
    });
    if is_kept {
        data::send_cached(flow, (range, Copy::Queued), context.config, now);
    }
    is_kept
}

/// SNHO-5: the first ACK since this base station forwards. Whatever it says is new.
pub(super) fn synchronise(flow: &mut Flow, ack: Seq, context: &mut Context<'_, impl Sink>) {
    if core::mem::replace(&mut flow.role, Role::Forwards) == Role::Forwards {
        return;
    }
    let arrived = flow.cache.iter().filter(|entry| entry.end.at_or_before(ack)).count();
    rule(context.sink, flow.key, None, ("SNHO-5", "first ACK: freed", arrived as u64));
}

/// True if a segment may still be in the queue of the base station that forwarded before; it is
/// looked at again when that is over.
pub(super) fn waits(flow: &mut Flow, index: usize, now: Instant) -> bool {
    let elsewhere = flow.cache.get(index).filter(|entry| entry.copy == Copy::Elsewhere);
    let last = (&flow.round_trip, flow.acked_at);
    let lost_at = elsewhere.map(|entry| flow.evidence.lost_elsewhere_at(entry, last));
    let lost_at = lost_at.filter(|at| *at > now);
    lost_at.into_iter().for_each(|at| flow.timers.set(Timer::Reordering, at));
    lost_at.is_some()
}

impl Evidence {
    /// What another base station has sent arrived. It is no sample of this last hop's round trip.
    pub(super) fn on_arrival_elsewhere(&mut self, entry: &Entry) -> Option<Instant> {
        let order = entry.departed_order;
        self.elsewhere = if self.elsewhere == 0 { order } else { later(self.elsewhere, order) };
        self.news = true;
        None
    }

    /// When a segment that another base station has sent counts as lost: at once if what that one
    /// sent later has arrived. Otherwise its queue may still hold it, as long as ACKs advance.
    pub(super) fn lost_elsewhere_at(
        &self,
        entry: &Entry,
        (round_trip, acked_at): (&RoundTrip, Instant),
    ) -> Instant {
        let order = entry.departed_order;
        if self.elsewhere != 0 && later(self.elsewhere, order) != order {
            return entry.departed_at;
        }
        acked_at.max(entry.departed_at) + DELAYED_ACK.max(round_trip.smoothed())
    }
}

/// The later of two places among the departures.
fn later(one: u32, other: u32) -> u32 {
    if (one.wrapping_sub(other) as i32) > 0 { one } else { other }
}

#[cfg(test)]
mod tests;
