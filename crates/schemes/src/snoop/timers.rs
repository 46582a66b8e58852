//! The timers of a flow (Snoop paper, section 6; SNOOP-TMR-*).
//!
//! Each flow has one place in the agent's queue, for the earliest of its timers. The persist and
//! idle timers are lazy: a packet only notes the time, and a timer that fires too early is set
//! again; so no packet costs a heap operation. Nothing acts early.

use super::cache::{Copy, Entry};
use super::config::{Config, Repair, Restart};
use super::flow::Flow;
use super::resend::{Occasion, resend};
use super::{Context, Fate, assist, repair, restart, rule};
use sansio::{Duration, Instant, Sink, TimerTable};

/// When each fires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub(super) enum Timer {
    /// No new ACK for twice the round trip of the last hop since the last local retransmission of a
    /// recovery episode (SNOOP-TMR-2 to 4).
    RoundTrip = 0,
    /// Unacknowledged data in the cache and silence (SNOOP-TMR-5).
    Persist = 1,
    /// The next probe, or the end of the wait for the sender (*modern*).
    Restart = 2,
    /// A segment that others overtook has had its allowance for reordering (*modern*).
    Reordering = 3,
    /// Nothing was heard of the flow for so long that it is forgotten.
    Idle = 4,
}

/// Number of timers.
const COUNT: usize = 5;

/// By index: the name in a `Deadline`.
pub(super) const NAMES: [&str; COUNT] =
    ["snoop round trip", "snoop persist", "snoop restart", "snoop reordering", "snoop idle"];

/// The timers of one flow, and whether one was touched since the agent last looked.
#[derive(Clone, Debug)]
#[repr(C)]
pub(super) struct Timers {
    touched: bool,
    table: TimerTable<COUNT>,
}

impl Timers {
    pub(super) fn new() -> Self {
        Timers { table: TimerTable::new(), touched: false }
    }

    /// Arms or re-arms a timer.
    pub(super) fn set(&mut self, timer: Timer, at: Instant) {
        self.table.set(timer as usize, at);
        self.touched = true;
    }

    /// Disarms a timer.
    pub(super) fn stop(&mut self, timer: Timer) {
        self.table.stop(timer as usize);
        self.touched = true;
    }

    #[inline]
    pub(super) fn is_armed(&self, timer: Timer) -> bool {
        self.table.is_armed(timer as usize)
    }

    /// The earliest timer: its index and when.
    #[inline]
    pub(super) fn next(&self) -> Option<(usize, Instant)> {
        self.table.next()
    }

    /// True if a timer was touched since the last call.
    #[inline]
    pub(super) fn take_touched(&mut self) -> bool {
        core::mem::take(&mut self.touched)
    }

    fn pop_due(&mut self, now: Instant) -> Option<usize> {
        self.touched = true;
        self.table.pop_due(now)
    }
}

/// Time to wait for an ACK before a local retransmission is repeated.
pub(super) fn round_trip_timeout(flow: &Flow, config: &Config) -> Duration {
    match config.repair {
        Repair::Counted => flow.round_trip.twice_smoothed(config.round_trip_floor),
        Repair::Evidence => flow.round_trip.with_deviation(config.round_trip_floor),
    }
}

/// Starts the round-trip timer anew.
pub(super) fn arm_round_trip(flow: &mut Flow, config: &Config, now: Instant) {
    let at = now + round_trip_timeout(flow, config);
    flow.timers.set(Timer::RoundTrip, at);
}

/// Lets every timer of the flow fire that is due. Two may want the same segment at once: it is sent
/// once.
pub(super) fn fire(flow: &mut Flow, context: &mut Context<'_, impl Sink>, now: Instant) -> Fate {
    let (mut wanted, mut fate) = (None, Fate::Keep);
    while let Some(due) = flow.timers.pop_due(now) {
        match due {
            due if due == Timer::RoundTrip as usize => {
                wanted = on_round_trip(flow, context, now).or(wanted);
            }
            due if due == Timer::Persist as usize => match on_persist(flow, context, now) {
                Found::Nothing => {}
                Found::Missing(index) => wanted = Some(index),
                Found::Silence => fate = Fate::Silent,
            },
            due if due == Timer::Restart as usize => restart::on_timer(flow, context, now),
            due if due == Timer::Reordering as usize => repair::on_reordering(flow, context, now),
            _ => {
                let at = flow.active_at + context.config.flow_idle;
                if at <= now {
                    return Fate::Forget;
                }
                flow.timers.set(Timer::Idle, at);
            }
        }
    }
    if let Some(index) = wanted {
        resend(flow, index, Occasion::Timer, context, now);
    }
    fate
}

/// A re-sent copy that did not depart for so long after the one before was dropped by its queue.
const COPY_DROPPED_AFTER: Duration = Duration::from_secs(1);

/// An ACK may be delayed for so long while segments keep coming: the paper's floor (SNOOP-TMR-3).
pub(super) const DELAYED_ACK: Duration = Duration::from_millis(40);

/// SNOOP-TMR-2: the lowest segment once more. Ours: the lowest that the mobile host is known to
/// lack; if that is not cached, the sender repairs it, and a timer here would send in vain. Returns
/// the place in the cache of what is to be sent.
fn on_round_trip(
    flow: &mut Flow,
    context: &mut Context<'_, impl Sink>,
    now: Instant,
) -> Option<usize> {
    if flow.is_away {
        return None;
    }
    let index = match context.config.repair {
        Repair::Counted => Some(0),
        Repair::Evidence => repair::lowest_lacking(flow),
    };
    let Some((index, entry)) = index.and_then(|index| flow.cache.get(index).map(|e| (index, e)))
    else {
        // The next new ACK arms the timer again, if the episode goes on.
        if flow.cache.is_empty() {
            flow.episode_end = None;
        }
        return None;
    };
    let seq = entry.start;
    if repair::is_left_to_the_sender(flow, entry) {
        arm_round_trip(flow, context.config, now);
        return None;
    }
    if entry.retransmissions >= context.config.retransmissions_max {
        // SNOOP-TMR-7: its duplicate ACKs pass from here on.
        flow.episode_end = None;
        rule(context.sink, flow.key, None, ("SNOOP-TMR-7", "local effort ended", seq.0.into()));
        return None;
    }
    if context.config.repair == Repair::Evidence {
        let due = repeat_due(flow, entry, context.config, now)?;
        if due > now {
            flow.timers.set(Timer::RoundTrip, due);
            return None;
        }
        if assist::on_hole(flow, context, now) {
            return None;
        }
    }
    rule(context.sink, flow.key, None, ("SNOOP-TMR-2", "round-trip timer", seq.0.into()));
    arm_round_trip(flow, context.config, now);
    Some(index)
}

/// When the timer may repeat a segment; `None` if something else will tell. Ours counts from the
/// departure of the newest copy: several holes may be re-sent at once, and the last of them waits
/// for the others. A copy that never departs was dropped.
fn repeat_due(flow: &Flow, entry: &Entry, config: &Config, now: Instant) -> Option<Instant> {
    let mut timeout = round_trip_timeout(flow, config);
    if entry.retransmissions == 0 {
        // Not re-sent yet: SACK blocks will tell if it is lost. Without them the timer has to, but
        // the ACK of a segment before a hole may be a delayed one.
        if flow.evidence.has_seen_sack() {
            return None;
        }
        timeout = timeout.max(DELAYED_ACK);
    }
    let since = match entry.copy {
        Copy::Departed | Copy::Elsewhere => entry.departed_at,
        Copy::Queued => now,
        Copy::Requeued => entry.departed_at + COPY_DROPPED_AFTER,
    };
    Some(since + timeout)
}

/// What the persist timer found.
enum Found {
    Nothing,
    /// The segment at this place in the cache is to be sent.
    Missing(usize),
    /// Nothing is heard of the mobile host (*modern*).
    Silence,
}

/// SNOOP-TMR-5 and SNOOP-TMR-6: silence while the cache holds something.
fn on_persist(flow: &mut Flow, context: &mut Context<'_, impl Sink>, now: Instant) -> Found {
    let Some(entry) = flow.cache.front() else {
        // Idle: the next data arms the timer again.
        flow.cache.shrink();
        return Found::Nothing;
    };
    if flow.phase.is_probing() {
        // The restart timer has taken over; the link's return arms this one again.
        return Found::Nothing;
    }
    let seq = entry.start;
    let used_up = entry.retransmissions >= context.config.retransmissions_max;
    let due = restart::acts_at(flow, context.config, now);
    if due > now {
        flow.timers.set(Timer::Persist, due);
        return Found::Nothing;
    }
    flow.timers.set(Timer::Persist, now + restart::patience(flow, context.config));
    if flow.is_away {
        return Found::Nothing;
    }
    match context.config.restart {
        Restart::Persist => {
            // Any ACK above the last one is a new one again, any other one unexpected.
            flow.expected_dupacks = 0;
            if used_up {
                return Found::Nothing;
            }
            rule(context.sink, flow.key, None, ("SNOOP-TMR-5", "persist timer", seq.0.into()));
            Found::Missing(0)
        }
        Restart::Probe(_) => Found::Silence,
    }
}
