//! When the mobile host falls silent, and when it is back (*modern*; ours, not the paper's).
//!
//! ```text
//!            silence               any packet of              the sender stays
//!            of the mobile         the mobile                 silent too
//!   Steady ─────────────▶ Probing ───────────────▶ Waiting ──────────────────▶ Ramping
//!     ▲                     │  long wired path:      │ data from the sender      │
//!     │◀────────────────────┘  flush the window      │                           │
//!     └──────────────────────────────────────────────┴───────────────────────────┘
//! ```
//!
//! Nobody needs to tell that the link is back: one byte of the lowest unacknowledged segment, every
//! 20 ms, finds out, for 53 bytes each time; the paper's persist timer re-sends a whole segment
//! every 200 ms. The answer acknowledges that byte, and the rest of the segment follows at once. If
//! the sender moves, everything else is left to it and to the normal repair; if it stays silent (a
//! backed-off timeout, or BBR with a lost window in flight), or goes on with new data and nothing
//! shows the holes below, 2, 4, 8 … segments follow per round trip, clocked by ACKs. A notice that
//! the link is back takes the place of the answer.

use super::cache::{Copy, Entry};
use super::config::{Config, Departures, Probe, Restart};
use super::data::Case;
use super::flow::Flow;
use super::mirror::Role;
use super::ramp::{Pipe, Window};
use super::resend::{Occasion, QUEUED_MAX, acceptable, cut, is_waiting, resend};
use super::timers::{DELAYED_ACK, Timer, arm_round_trip};
use super::{Context, disclosure, rule};
use sansio::{Cause, Duration, Instant, Priority, Side, Sink};
use wire::tcp::Seq;

/// Where a flow stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Normal traffic.
    Steady,
    /// The link may be gone.
    Probing {
        /// Since when.
        since: Instant,
        /// When the last probe was sent, if it has not departed.
        waiting_since: Option<Instant>,
    },
    /// The link answered; the sender has the next move.
    Waiting {
        /// What departed before this and is not acknowledged is lost.
        lost_before: Instant,
    },
    /// The sender did not move.
    Ramping {
        /// As above.
        lost_before: Instant,
        /// Where to go on.
        next: Seq,
        /// What may be under way.
        window: Box<Window>,
    },
}

/// How sure it is that what departed during the silence is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Proof {
    Certain,
    Likely,
}

impl Phase {
    pub(super) fn is_probing(&self) -> bool {
        matches!(self, Phase::Probing { .. })
    }
}

/// So many probes of one segment are answered, a byte each, and it does not arrive: more are of no
/// use. An answer to more bytes is one to the sender's.
const ANSWERED_MAX: u32 = 3;
/// A probe that did not depart for so long was dropped by its queue.
const PROBE_DROPPED_AFTER: Duration = Duration::from_secs(1);
/// The least time that the sender has to move after the link answered.
const SENDER_MOVES_WITHIN: Duration = Duration::from_millis(10);

/// Silence after which the persist timer acts. *Modern* waits 2 srtt if that is longer, deviation
/// included: a slow radio is not a silent one.
#[inline]
pub(super) fn patience(flow: &Flow, config: &Config) -> Duration {
    match config.restart {
        Restart::Persist => config.persist,
        Restart::Probe(_) => flow.round_trip.with_deviation(config.persist),
    }
}

/// When the persist timer acts, if silence goes on. Strict: counted from the last packet of either
/// host. Modern: from the last packet of the mobile host, or since it has had something to answer.
/// What is sent again makes no silence shorter, but may be answered first.
pub(super) fn acts_at(flow: &Flow, config: &Config, now: Instant) -> Instant {
    let patience = patience(flow, config);
    if config.restart == Restart::Persist {
        return flow.active_at + patience;
    }
    match flow.cache.front() {
        Some(entry) if entry.copy.has_departed() => {
            let answered_at = entry.departed_at + flow.round_trip.shortest() * 5 / 4;
            answered_at.max(flow.unanswered_since.unwrap_or(now) + patience)
        }
        // It waits in the link's queue: a radio that holds packets, or a long queue.
        Some(_) | None => now + patience,
    }
}

/// Takes a round-trip sample, except around an outage, where a delayed ACK would count the outage.
pub(super) fn sample(flow: &mut Flow, departed_at: Instant, config: &Config, now: Instant) {
    if flow.phase == Phase::Steady {
        steady_sample(flow, departed_at, config, now);
    }
}

/// The same if it is known that there is no outage.
#[inline(always)]
pub(super) fn steady_sample(flow: &mut Flow, departed_at: Instant, config: &Config, now: Instant) {
    let sample = now.since(departed_at);
    flow.round_trip.sample(sample, now);
    disclosure::on_sample(flow, sample, config, now);
}

/// The persist timer found silence. `others`: how long segments of the mobile host's other flows
/// take to be answered, if it was heard on one of them of late.
pub(super) fn on_silence(
    flow: &mut Flow,
    others: Option<Duration>,
    context: &mut Context<'_, impl Sink>,
    now: Instant,
) {
    let Some(entry) = flow.cache.front() else { return };
    if u64::from(entry.length()) > flow.budget_bytes {
        // Probes that nothing may follow would only keep the sender from its own timeout.
        return;
    }
    let answered = flow.last_ack.map_or(0, |ack| ack.max(entry.start).since(entry.start));
    if (ANSWERED_MAX..2 * ANSWERED_MAX).contains(&answered) {
        // The link is there, and this segment does not pass it: too long for a path that tells
        // nobody (RFC 4821). Each answer would keep the sender from noticing.
        let seq = entry.start.0.into();
        rule(context.sink, flow.key, None, ("MOD-9", "left to the sender: only probes pass", seq));
        return;
    }
    let answered_at = others.map_or(now, |others| entry.departed_at + others);
    if answered_at > now {
        // It may wait behind the others' data. If they fall silent meanwhile, it does not.
        let seq = entry.start.0.into();
        rule(context.sink, flow.key, None, ("RESTART", "waits: others are answered", seq));
        flow.timers.set(Timer::Persist, answered_at.min(now + context.config.persist));
        return;
    }
    let is_elsewhere = flow.lowest_entry().is_none() || flow.outgrows_cache();
    let has_arrived = flow.cache.iter().all(|entry| entry.sacked);
    if has_arrived || is_elsewhere && !flow.evidence.has_seen_sack() {
        // What is missing is not here, and what is here has arrived, surely or probably; or there
        // is so much else that the sender's timeout is the faster way: its move.
        let lacks = flow.last_seen.0.into();
        rule(context.sink, flow.key, None, ("MOD-14", "left to the sender: not cached", lacks));
        return;
    }
    flow.phase = Phase::Probing { since: now, waiting_since: None };
    for timer in [Timer::RoundTrip, Timer::Reordering, Timer::Persist] {
        flow.timers.stop(timer);
    }
    on_timer(flow, context, now);
}

/// The restart timer expired: the next probe, or the sender did not move.
pub(super) fn on_timer(flow: &mut Flow, context: &mut Context<'_, impl Sink>, now: Instant) {
    let Restart::Probe(config) = context.config.restart else { return };
    match flow.phase {
        Phase::Steady | Phase::Ramping { .. } => {}
        Phase::Probing { .. } => {
            if flow.cache.is_empty() {
                flow.phase = Phase::Steady;
                return;
            }
            probe(flow, &config, context, now);
            let interval = match flow.is_away {
                true => config.interval_while_down,
                false => config.interval,
            };
            let at = (now + interval).max(context.shared.air.admits_at());
            flow.timers.set(Timer::Restart, at);
        }
        Phase::Waiting { lost_before } => ramp(flow, (lost_before, Pipe::UNKNOWN), context, now),
    }
}

/// One byte of the lowest unacknowledged segment.
fn probe(flow: &mut Flow, config: &Probe, context: &mut Context<'_, impl Sink>, now: Instant) {
    let Phase::Probing { since, waiting_since } = flow.phase else { return };
    if waiting_since.is_some_and(|since| now.since(since) < PROBE_DROPPED_AFTER) {
        return;
    }
    let Some(entry) = flow.cache.front() else { return };
    let start = flow.last_ack.map_or(entry.start, |ack| ack.max(entry.start));
    let range = (start, entry.end.min(start + 1));
    let id = context.sink.new_id();
    let packet = cut(&entry.packet, range, id, Cause::Probe);
    let packet = acceptable(packet, flow.oldest_timestamp(), context.config);
    let rate = context.shared.air.rate(config);
    if !context.shared.air.admit(packet.bytes(), rate, config, now) {
        return;
    }
    flow.evidence.expect_own_duplicates(1, now + patience(flow, context.config), now);
    context.shared.statistics.probes += 1;
    context.shared.statistics.probe_bytes += u64::from(packet.bytes());
    if context.config.departures == Departures::Reported {
        flow.phase = Phase::Probing { since, waiting_since: Some(now) };
    }
    rule(context.sink, flow.key, Some(id), ("RESTART", "probe", start.0.into()));
    context.sink.send(Side::RADIO, Priority::High, packet.into());
}

/// A probe went onto the air.
#[cold]
pub(super) fn on_probe_departure(flow: &mut Flow) {
    if let Phase::Probing { waiting_since, .. } = &mut flow.phase {
        *waiting_since = None;
    }
}

/// For so long after a notice that the mobile host is out of reach, packets that it sent before may
/// come.
pub(super) fn still_under_way(config: &Config) -> Duration {
    config.persist * 2
}

/// A packet of the mobile host passed.
#[inline]
pub(super) fn on_mobile_heard(flow: &mut Flow, context: &mut Context<'_, impl Sink>, now: Instant) {
    if flow.phase != Phase::Steady {
        on_mobile_back(flow, context, now);
    }
}

/// The same, after silence of the mobile host.
#[cold]
fn on_mobile_back(flow: &mut Flow, context: &mut Context<'_, impl Sink>, now: Instant) {
    match flow.phase {
        Phase::Steady | Phase::Waiting { .. } => {}
        Phase::Probing { since, .. } => {
            if flow.is_away && now.since(since) < still_under_way(context.config) {
                return;
            }
            if now.since(since) > flow.round_trip.shortest() * 2 {
                // The first probe was lost, too: it was the link, not the sender.
                flow.disclosure.forgive();
                flow.withheld_since = None;
            }
            // What departed within the last round trip may yet be answered.
            let lost_before = now - flow.round_trip.shortest();
            // An ACK that ends within a segment acknowledges a probe: the segment is lost, and what
            // departed after it, too. Any other may be late, after a pause without any loss.
            let probe_answered = flow
                .last_ack
                .is_some_and(|ack| flow.cache.front().is_some_and(|entry| entry.start.before(ack)));
            let proof = if probe_answered { Proof::Certain } else { Proof::Likely };
            on_link_back(flow, (proof, lost_before), context, now);
        }
        Phase::Ramping { lost_before, next, ref window } => {
            let room = window.room(flow, now);
            if room > 0 {
                let window = window.clone();
                go_on(flow, (next, room), (lost_before, window), context, now);
            }
        }
    }
}

/// The link is back, by an answer or by a notice: the lowest segment at once, the rest by rule.
fn on_link_back(
    flow: &mut Flow,
    (proof, lost_before): (Proof, Instant),
    context: &mut Context<'_, impl Sink>,
    now: Instant,
) {
    let Restart::Probe(config) = context.config.restart else { return };
    flow.timers.stop(Timer::Restart);
    flow.phase = Phase::Steady;
    flow.timers.set(Timer::Persist, now + patience(flow, context.config));
    let Some(lowest) = flow.lowest_missing().filter(|_| !flow.cache.is_empty()) else { return };
    let wired = flow.wired.shortest();
    let long = wired.is_some_and(|wired| wired >= config.flush_from_wired_rtt);
    let flush = long && proof == Proof::Certain;
    let count = if flush { QUEUED_MAX } else { 1 };
    let did = if flush { "link is back: flush" } else { "link is back: lowest segment" };
    rule(context.sink, flow.key, None, ("RESTART", did, lowest.0.into()));
    if flush {
        let window = Box::new(Window::new(flow, QUEUED_MAX as u16, Pipe::UNKNOWN, now));
        go_on(flow, (lowest, count), (lost_before, window), context, now);
    } else {
        resend_lost(flow, (lowest, count), lost_before, (context, now));
        flow.phase = Phase::Waiting { lost_before };
        // One more round trip over the last hop if only a notice says that the link is back.
        let wait = flow.round_trip.smoothed() * 2 + wired.unwrap_or(Duration::ZERO);
        flow.timers.set(Timer::Restart, now + wait.max(SENDER_MOVES_WITHIN));
    }
}

/// Data came from the fixed host: the sender moves. If it repeats, it knows of the losses; one that
/// repeats the lowest segment only, at a time, is helped all the same ([`super::assist`]). If it
/// goes on, duplicate ACKs will follow; with SACK blocks they show every hole, and the normal
/// repair is fast. Without them it would take a round trip for each: the ramp begins at once.
#[inline]
pub(super) fn on_sender(
    flow: &mut Flow,
    (case, start): (Case, Seq),
    context: &mut Context<'_, impl Sink>,
    now: Instant,
) {
    if matches!(flow.phase, Phase::Waiting { .. } | Phase::Ramping { .. }) {
        on_move(flow, (case, start), context, now);
    }
}

#[cold]
fn on_move(
    flow: &mut Flow,
    (case, start): (Case, Seq),
    context: &mut Context<'_, impl Sink>,
    now: Instant,
) {
    let ramping = matches!(flow.phase, Phase::Ramping { .. });
    let repeats = match case {
        Case::New => false,
        _ => !ramping || flow.last_ack.is_some_and(|ack| start.after(ack)),
    };
    if repeats || flow.evidence.has_seen_sack() {
        flow.phase = Phase::Steady;
        flow.timers.stop(Timer::Restart);
    } else if let Phase::Waiting { lost_before } = flow.phase
        && flow.last_ack.is_some_and(|ack| flow.cache.find(ack).is_some())
    {
        flow.timers.stop(Timer::Restart);
        ramp(flow, (lost_before, Pipe::UNKNOWN), context, now);
    }
}

/// The first step of the ramp, which fills the pipe, where that is known.
pub(super) fn ramp(
    flow: &mut Flow,
    (lost_before, pipe): (Instant, Pipe),
    context: &mut Context<'_, impl Sink>,
    now: Instant,
) {
    flow.phase = Phase::Steady;
    let Some(lowest) = flow.lowest_missing() else { return };
    rule(context.sink, flow.key, None, ("RESTART", "ramp", lowest.0.into()));
    let window = Box::new(Window::new(flow, 2, pipe, now));
    go_on(flow, (lowest, 2), (lost_before, window), context, now);
}

/// Sends up to `room` more of the ramp; ACKs clock the rest, if there is a rest.
fn go_on(
    flow: &mut Flow,
    (next, room): (Seq, u32),
    (lost_before, mut window): (Instant, Box<Window>),
    context: &mut Context<'_, impl Sink>,
    now: Instant,
) {
    let waiting = flow.cache.iter().filter(|entry| is_waiting(flow, entry)).count() as u32;
    let count = room.min(QUEUED_MAX.saturating_sub(waiting));
    if count == 0 {
        return;
    }
    let (next, sent) = resend_lost(flow, (next, count), lost_before, (context, now));
    window.on_sent(sent, now);
    let is_done = next.at_or_after(flow.last_seen);
    flow.phase = match is_done {
        true => Phase::Steady,
        false => Phase::Ramping { lost_before, next, window },
    };
}

/// Re-sends up to `count` lost segments from `from` upwards; returns where to go on, and how many.
fn resend_lost(
    flow: &mut Flow,
    (from, count): (Seq, u32),
    lost_before: Instant,
    (context, now): (&mut Context<'_, impl Sink>, Instant),
) -> (Seq, u32) {
    let queued_before = flow.requeued_departed;
    let is_lost = |entry: &Entry| match entry.copy {
        Copy::Queued => false,
        Copy::Requeued => Some(entry.departed_at) < queued_before,
        Copy::Departed | Copy::Elsewhere => !entry.sacked && entry.departed_at <= lost_before,
    };
    let mut index = flow.cache.first_ending_after(from);
    let mut left = count;
    let mut next = from;
    while left > 0
        && let Some(entry) = flow.cache.get_mut(index)
    {
        next = entry.end;
        if is_lost(entry) {
            // What the outage took says nothing about this attempt.
            entry.retransmissions = 0;
            if !resend(flow, index, Occasion::Restart, context, now) {
                break;
            }
            left -= 1;
        }
        index += 1;
    }
    if left < count {
        if !flow.evidence.has_seen_sack() {
            // Some of them may have arrived before.
            let until = now + flow.round_trip.twice_smoothed(DELAYED_ACK);
            flow.evidence.expect_own_duplicates(count - left, until, now);
        }
        flow.episode_end = Some(flow.last_seen);
        arm_round_trip(flow, context.config, now);
    }
    (if left > 0 { flow.last_seen } else { next }, count - left)
}

/// A notice says that the link is gone: nothing is sent any more but a slow probe.
pub(super) fn on_link_down(flow: &mut Flow, config: &Config, now: Instant) {
    flow.is_away = true;
    for timer in [Timer::RoundTrip, Timer::Reordering, Timer::Restart] {
        flow.timers.stop(timer);
    }
    if let Restart::Probe(probe) = config.restart
        && !flow.cache.is_empty()
    {
        flow.phase = Phase::Probing { since: now, waiting_since: None };
        flow.timers.set(Timer::Restart, now + probe.interval_while_down);
    }
}

/// A hint says that the link is back, if it was gone. For a flow whose answers are overdue it
/// takes the place of a probe's answer.
pub(super) fn on_hint(flow: &mut Flow, context: &mut Context<'_, impl Sink>, now: Instant) {
    let departed = flow.cache.front().filter(|entry| entry.copy.has_departed());
    let is_overdue = departed.is_some_and(|entry| {
        let within = flow.round_trip.answered_within();
        flow.round_trip.is_known()
            && entry.departed_at + within <= now
            && flow.mobile_at + within <= now
    });
    if is_overdue && matches!(flow.phase, Phase::Steady | Phase::Probing { .. }) {
        let lost_before = now - flow.round_trip.shortest();
        on_link_back(flow, (Proof::Likely, lost_before), context, now);
    }
}

/// A notice says that the link is back.
pub(super) fn on_link_up(flow: &mut Flow, context: &mut Context<'_, impl Sink>, now: Instant) {
    flow.is_away = false;
    if flow.cache.is_empty() || flow.role == Role::Unsynchronised {
        // Nothing tells yet what has arrived (SNHO-5).
        return;
    }
    flow.disclosure.forgive();
    flow.withheld_since = None;
    flow.timers.set(Timer::Persist, now + patience(flow, context.config));
    on_link_back(flow, (Proof::Certain, now), context, now);
}
