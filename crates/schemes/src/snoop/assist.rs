//! Helping a sender without SACK through a recovery of many holes (*modern*; not the paper's).
//!
//! A queue that overflows takes a hundred segments at once, and a sender without SACK repairs one
//! of them per round trip (RFC 6582). It has learned of the losses and halved its window; what is
//! left is work that the base station does faster, since it holds the window.
//!
//! ```text
//!   sender sends    1  2  3  4  5  6  7  8     1'             2'
//!   lost            x  x     x     x     x
//!   mobile host           d     d     d  d        ack 1          ack 3 ...
//!   the agent                                      2 3    4 5 6 7
//! ```
//!
//! The ACK of the sender's repeat 1' stops at the next hole, 2: whatever departed before 1' has
//! arrived by now or is lost. Duplicates d tell how many arrived, not which. So all of it is sent
//! again in order, as fast as ACKs return ([`super::restart`]), if that takes less time than the
//! link would be idle while the sender repairs what is lost, one of them in each empty round trip.
//! A window takes the round trip that it fills, and one empty round trip for each time that what is
//! sent doubles. Duplicates of what the sender repeats in vain count as arrivals, too: many repairs
//! one after the other tell as much.

use super::Context;
use super::cache::Entry;
use super::config::{Config, Repair};
use super::flow::Flow;
use super::ramp::Pipe;
use super::restart::{self, Phase};
use super::timers::DELAYED_ACK;
use sansio::{Duration, Instant, Sink};
use wire::tcp::Seq;

/// What departed so long ago is left to the sender, if that is more than four round trips. It
/// measures the round trip of what it has not sent again itself: 20 s make a retransmission timeout
/// of a minute. But to send a hole in every round trip takes long pipes seconds, in which the link
/// is idle.
const TOO_LATE: Duration = Duration::from_secs(4);

/// Any path takes so many segments at once: a sender's initial window (RFC 6928).
const LEAST: u64 = 10;

/// A new ACK covers what the sender had sent again, last at `repeated_at`, and stops short.
#[cold]
pub(super) fn on_partial_ack(
    flow: &mut Flow,
    repeated_at: Instant,
    context: &mut Context<'_, impl Sink>,
    now: Instant,
) {
    let usual = flow.phase == Phase::Steady && flow.aside.is_none();
    if usual && !flow.evidence.has_seen_sack() {
        ramp_if_faster(flow, repeated_at, context, now);
    }
}

/// The segment at the ACK is lost (again). True if the agent sends it and what follows in order:
/// only if the sender knows of the losses and has done about them what it does.
pub(super) fn on_hole(flow: &mut Flow, context: &mut Context<'_, impl Sink>, now: Instant) -> bool {
    let is_repeated = flow.lowest_entry().is_some_and(|entry| entry.sender_retransmitted);
    let is_told = is_repeated || flow.disclosure.is_open();
    let settled_at = now - flow.round_trip.answered_within();
    is_told && !flow.evidence.has_seen_sack() && ramp_if_faster(flow, settled_at, context, now)
}

/// Sends again what departed until `settled_at`, in order, unless it takes less time to repair one
/// hole after the other. True if it does.
fn ramp_if_faster(
    flow: &mut Flow,
    settled_at: Instant,
    context: &mut Context<'_, impl Sink>,
    now: Instant,
) -> bool {
    let settled = |entry: &&Entry| entry.copy.has_departed() && entry.departed_at <= settled_at;
    let Some(lowest) = flow.lowest_entry().filter(settled) else { return false };
    let wired = flow.wired.shortest().unwrap_or_default();
    let too_late = TOO_LATE.max((flow.round_trip.smoothed() + wired) * 4);
    if !flow.round_trip.is_known() || now.since(lowest.departed_at) > too_late {
        return false;
    }
    let count = flow.cache.iter().filter(settled).count() as u64;
    let arrived = u64::from(flow.evidence.arrived());
    let many = flow.disclosure.has_repaired_many();
    let lost = if many { count } else { count.saturating_sub(arrived) };
    let empty_path = flow.round_trip.shortest() + wired;
    let rounds = u64::from(count.max(1).ilog2());
    // Of each of the sender's round trips the link is busy with a repair and a new segment.
    let window = flow.round_trip.smoothed();
    // A window that doubled is twice what fits at most.
    let fitted = arrived.max(count / 2).max(1);
    let busy = window * 2 / fitted;
    let is_faster = window + empty_path * rounds <= empty_path.saturating_sub(busy) * lost;
    if is_faster {
        let hop = flow.round_trip.shortest();
        // What fitted took the loaded round trip of the whole path.
        let segments = fitted * hop.as_nanos() / (window + wired).as_nanos().max(1);
        let pipe = Pipe::new(segments.max(LEAST), hop);
        restart::ramp(flow, (settled_at, pipe), context, now);
    }
    is_faster
}

/// The sender repeats the segment at `start`, of which the agent has sent a copy that is not
/// answered yet: one of the two will be answered by a duplicate.
pub(super) fn on_repeat(flow: &mut Flow, start: Seq, now: Instant) {
    let Phase::Ramping { .. } = flow.phase else { return };
    let entry = flow.cache.find(start).and_then(|index| flow.cache.get(index));
    if entry.is_some_and(|entry| entry.retransmissions > 0) {
        let until = now + flow.round_trip.twice_smoothed(DELAYED_ACK);
        flow.evidence.expect_own_duplicates(1, until, now);
    }
}

/// True if the last new ACK cannot have reached the sender before it repeated what that covers: it
/// needs no other.
pub(super) fn is_answered(flow: &Flow, config: &Config, now: Instant) -> bool {
    let modern = config.repair == Repair::Evidence;
    let helped = modern && flow.episode_end.is_some() && !flow.evidence.has_seen_sack();
    let under_way = flow.wired.shortest().is_some_and(|wired| now.since(flow.acked_at) < wired);
    helped && under_way
}
