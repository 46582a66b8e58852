//! Repairing all at once what the mobile host is known to lack (MOD-1).
//!
//! What departed later and has arrived proves that an earlier departure is lost: the idea of RACK
//! (RFC 8985), with the departures as the clock, which makes a lost retransmission visible in the
//! same way.
//!
//! ```text
//!   departures   1    2    3    4    5    2'
//!   arrives      x         x    x         ?      SACK of 3 and 4: 1 and 2 departed before 3: lost
//! ```

use super::cache::{Copy, Entry};
use super::flow::Flow;
use super::resend::{Occasion, QUEUED_MAX, is_waiting, resend, was_dropped};
use super::restart::Phase;
use super::rtt::RoundTrip;
use super::sack::{Arrived, Evidence};
use super::timers::{DELAYED_ACK, Timer, arm_round_trip};
use super::{Context, aside, assist, disclosure, rule};
use sansio::{Duration, Instant, Sink};
use wire::tcp::Seq;

impl Evidence {
    /// When the newest copy of a segment counts as lost; `None` as long as nothing overtook it.
    ///
    /// Local retransmissions go ahead of the link's normal queue, part of which may lie behind the
    /// place where departures are seen. So what waits in line is overtaken by others in line, and
    /// by a retransmission only once the time is over that the line takes: the smoothed time, or
    /// that of the latest one in line, if the line has grown.
    fn lost_at(
        &self,
        entry: &Entry,
        (round_trip, acked_at): (&RoundTrip, Instant),
    ) -> Option<Instant> {
        if entry.copy == Copy::Elsewhere {
            return Some(self.lost_elsewhere_at(entry, (round_trip, acked_at)));
        }
        let overtook = |arrived: &Arrived| arrived.is_after(entry.departed_order);
        let alike = if entry.retransmissions > 0 { self.latest } else { self.latest_in_line };
        if overtook(&alike) {
            let allowance = self.allowance;
            let wait = if allowance.is_zero() { allowance } else { alike.round_trip() + allowance };
            return Some(entry.departed_at + wait);
        }
        if !overtook(&self.latest) || !round_trip.is_known() {
            return None;
        }
        // Without blocks it may have waited at the mobile host, behind a hole.
        let latest = match self.has_seen_sack() {
            true => self.latest_in_line.round_trip(),
            false => Duration::ZERO,
        };
        let in_line = round_trip.smoothed().max(latest);
        Some(entry.departed_at + in_line + round_trip.margin().max(self.allowance))
    }
}

/// Re-sends every segment that something overtook, if anything arrived since the last look.
#[inline]
pub(super) fn repair(flow: &mut Flow, context: &mut Context<'_, impl Sink>, now: Instant) {
    let news = core::mem::take(&mut flow.evidence.news);
    let lacks = flow.evidence.shows_a_hole() || flow.episode_end.is_some();
    if news && lacks && flow.aside.is_none() {
        repair_lost(flow, context, now);
    }
}

#[cold]
fn repair_lost(flow: &mut Flow, context: &mut Context<'_, impl Sink>, now: Instant) {
    if flow.evidence.shows_a_hole() {
        repair_holes(flow, Look::Arrival, context, now);
        aside::judge(flow, context, now);
    } else if !flow.evidence.has_seen_sack() {
        repair_lowest(flow, context, now);
    }
}

/// The same once more, after the allowance for reordering has passed.
pub(super) fn on_reordering(flow: &mut Flow, context: &mut Context<'_, impl Sink>, now: Instant) {
    if flow.evidence.has_seen_sack() {
        repair_holes(flow, Look::Timer, context, now);
    } else {
        repair_lowest(flow, context, now);
    }
}

/// The link layer has given up a frame with these sequence numbers (METP-LL-3): nobody has to wait
/// for what comes behind it to show the loss. Once for each segment, so that no outage is filled
/// with repetitions of repetitions. Not without SACK blocks: what departed behind it causes
/// duplicate ACKs, of which nobody then knows whether they show another loss.
pub(super) fn on_given_up(
    flow: &mut Flow,
    (start, end): (Seq, Seq),
    context: &mut Context<'_, impl Sink>,
    now: Instant,
) {
    let helps = flow.aside.is_none() && flow.phase == Phase::Steady;
    if !helps || !flow.evidence.has_seen_sack() {
        return;
    }
    let mut index = flow.cache.first_ending_after(start);
    let mut sent = false;
    while let Some(entry) = flow.cache.get(index).filter(|entry| entry.start.before(end)) {
        let first_repair = entry.copy == Copy::Departed && entry.retransmissions == 0;
        if first_repair && !is_left_to_the_sender(flow, entry) {
            let seq = entry.start.0.into();
            rule(context.sink, flow.key, None, ("METP-LL-3", "given up, re-sent", seq));
            sent |= resend(flow, index, Occasion::Loss, context, now);
        }
        index += 1;
    }
    if sent {
        flow.episode_end = Some(flow.last_seen);
        arm_round_trip(flow, context.config, now);
    }
}

/// Without SACK blocks, an ACK that stops short shows one hole: it acknowledges a copy that
/// departed later than the segment at which it stops. So N losses cost N round trips of the
/// retransmissions, which wait in no line, and no timer. After an outage the restart sees to it.
fn repair_lowest(flow: &mut Flow, context: &mut Context<'_, impl Sink>, now: Instant) {
    let Some((ack, entry)) = flow.last_ack.zip(flow.cache.front()) else { return };
    let departed_order = entry.departed_order;
    let is_at_ack = entry.start.at_or_before(ack) && entry.copy.has_departed();
    if !is_at_ack || flow.phase != Phase::Steady || is_left_to_the_sender(flow, entry) {
        return;
    }
    if entry.retransmissions > 0 {
        // If it is lost again, others of its kind are, too; by itself it is the timer's.
        assist::on_hole(flow, context, now);
        return;
    }
    let last = (&flow.round_trip, flow.acked_at);
    let Some(mut lost_at) = flow.evidence.lost_at(entry, last) else { return };
    if flow.cache.get(1).is_none_or(|next| next.copy == Copy::Queued) {
        // Nothing behind it makes the mobile host answer at once.
        lost_at = lost_at.max(entry.departed_at + flow.round_trip.smoothed() + DELAYED_ACK);
    }
    if lost_at > now {
        return flow.timers.set(Timer::Reordering, lost_at);
    }
    disclosure::on_sign_of_loss(flow, context, now);
    if flow.cache.front().is_none_or(|entry| is_left_to_the_sender(flow, entry)) {
        return;
    }
    if assist::on_hole(flow, context, now) {
        return;
    }
    rule(context.sink, flow.key, None, ("MOD-1", "overtaken, re-sent", ack.0.into()));
    let after = flow.departures.wrapping_sub(departed_order);
    if resend(flow, 0, Occasion::Loss, context, now) {
        // What departed after it may cause a duplicate each (SNOOP-ACK-8).
        flow.expected_dupacks = after;
        arm_round_trip(flow, context.config, now);
    }
}

/// What makes the agent look at the holes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Look {
    /// An ACK. Others may have come with it, while the driver was late: that a time is over means
    /// nothing before all of them are read.
    Arrival,
    /// The timer.
    Timer,
}

/// Those that may be unanswered where nothing has been answered since the last look: the queue may
/// lie behind the place where departures are seen. Two more follow for each one answered.
const UNANSWERED_MAX: u32 = 64;

/// How many holes may be re-sent now.
fn room(flow: &mut Flow, now: Instant) -> u32 {
    let answered = flow.evidence.take_answered();
    let longest = flow.round_trip.smoothed() * 2;
    let (mut queued, mut unanswered) = (0, 0);
    for hole in &flow.evidence.holes {
        let Some(entry) = flow.cache.find(*hole).and_then(|index| flow.cache.get(index)) else {
            continue;
        };
        let is_queued = is_waiting(flow, entry);
        let is_away = entry.copy == Copy::Departed && entry.retransmissions > 0;
        queued += u32::from(is_queued);
        unanswered += u32::from(is_queued || is_away && now.since(entry.departed_at) < longest);
    }
    let clocked = UNANSWERED_MAX.saturating_sub(unanswered).max(answered.saturating_mul(2));
    clocked.min(QUEUED_MAX.saturating_sub(queued))
}

/// Re-sends the holes that SACK blocks show and that something overtook, lowest first, as many as
/// there is room for; the others follow as those are answered.
fn repair_holes(flow: &mut Flow, look: Look, context: &mut Context<'_, impl Sink>, now: Instant) {
    let (mut sent, mut again_at) = (0, None::<Instant>);
    let room = room(flow, now);
    let is_undecided = disclosure::is_undecided(flow, context.config);
    let mut at = 0;
    while sent < room
        && let Some(&hole) = flow.evidence.holes.get(at)
    {
        at += 1;
        let found = flow.cache.find(hole);
        let Some((index, entry)) =
            found.and_then(|index| flow.cache.get(index).map(|entry| (index, entry)))
        else {
            // The link's queue dropped it: for the sender to repair.
            at -= 1;
            flow.evidence.holes.remove(at);
            flow.evidence.gap_end =
                Some(flow.evidence.gap_end.map_or(hole + 1, |end| end.max(hole + 1)));
            continue;
        };
        let tried_out = entry.retransmissions >= context.config.retransmissions_max;
        let dropped = was_dropped(flow, entry);
        let is_away = !entry.copy.has_departed() && !dropped;
        if is_away || tried_out || is_left_to_the_sender(flow, entry) {
            continue;
        }
        let lost_at = match dropped {
            true => Some(entry.departed_at),
            false => flow.evidence.lost_at(entry, (&flow.round_trip, flow.acked_at)),
        };
        let Some(lost_at) = lost_at else { continue };
        let lost_at = match is_undecided {
            true => lost_at.max(entry.departed_at + flow.round_trip.answered_within()),
            false => lost_at,
        };
        let was_awaited = lost_at > entry.departed_at;
        if lost_at > now || was_awaited && look == Look::Arrival {
            let at = lost_at.max(now);
            again_at = Some(again_at.map_or(at, |again_at| again_at.min(at)));
            continue;
        }
        rule(context.sink, flow.key, None, ("MOD-1", "hole re-sent", hole.0.into()));
        if !resend(flow, index, Occasion::Loss, context, now) {
            break;
        }
        sent += 1;
    }
    match again_at {
        Some(at) => flow.timers.set(Timer::Reordering, at),
        None => flow.timers.stop(Timer::Reordering),
    }
    if sent > 0 {
        flow.episode_end = Some(flow.last_seen);
        arm_round_trip(flow, context.config, now);
    }
}

/// Index of the lowest cached segment that the mobile host is known to lack; what is cached above a
/// hole in the cache it probably has.
pub(super) fn lowest_lacking(flow: &Flow) -> Option<usize> {
    match flow.last_ack {
        None => (!flow.cache.is_empty()).then_some(0),
        Some(ack) => {
            flow.cache.find(ack).or_else(|| flow.cache.find(*flow.evidence.holes.front()?))
        }
    }
}

/// True in an episode of which the sender learns, but for what was sent again in it, by the sender
/// itself or to help it, and for what an outage took.
pub(super) fn is_left_to_the_sender(flow: &Flow, entry: &Entry) -> bool {
    flow.disclosure.leaves(entry.start) && !entry.was_repeated()
}
