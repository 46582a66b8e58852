//! When the agent leaves a flow alone, and why.
//!
//! Leaving alone means to forward and nothing else: no cache, no timers, no ACK withheld. What can
//! never be helped has no state at all: other protocols, encrypted ones, fragments (MOD-13), and
//! flows beyond the limit of flows (MOD-14).

use super::Context;
use super::config::{HelpFrom, StandAside};
use super::flow::Flow;
use super::sack::JUDGED_BATCH;
use super::timers::Timer;
use sansio::{Duration, Event, EventKind, Instant, Sink};

/// Why a flow is left alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// New data keeps coming, yet no ACK passes here: they take another way (MOD-23). It ends with
    /// the first ACK.
    AcksElsewhere,
    /// Most repairs were of segments that had arrived: the radio reorders more than can be told
    /// from loss, or did for a while. It ends after [`REST`], twice as long each time.
    RepairsUnneeded,
    /// Losses do not slow its sender ([`super::indifference`]). The flow is followed, and helped
    /// after an outage. It ends as with needless repairs.
    Indifferent,
    /// Nothing shows yet that the last hop is a radio ([`HelpFrom::Evidence`]).
    NoEvidence,
}

/// The rests of a flow, each twice as long as the one before.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rest {
    /// The end of the latest, in whole seconds of the agent's clock.
    until_s: u32,
    /// How many there were, up to [`RESTS_GROW`].
    count: u8,
}

impl Rest {
    /// None yet.
    pub(super) const NONE: Rest = Rest { until_s: 0, count: 0 };

    pub(super) fn begin(&mut self, now: Instant) {
        let until = now + REST * (1 << self.count);
        self.until_s = u32::try_from(until.as_nanos() / 1_000_000_000).unwrap_or(u32::MAX);
        self.count = (self.count + 1).min(RESTS_GROW);
    }

    pub(super) fn is_over(&self, now: Instant) -> bool {
        now >= Instant::from_nanos(u64::from(self.until_s) * 1_000_000_000)
    }
}

impl Reason {
    pub(super) fn text(self) -> &'static str {
        match self {
            Reason::AcksElsewhere => "no ACK of the mobile host passes here",
            Reason::RepairsUnneeded => "most local retransmissions were not needed",
            Reason::Indifferent => "losses do not slow the sender",
            Reason::NoEvidence => "nothing shows yet that a radio is here",
        }
    }
}

/// New segments without any ACK before the agent concludes that ACKs take another way. A sender
/// that gets no ACKs at all stops after its window; 64 segments are a window of 93 KB.
const SEGMENTS_UNANSWERED: u16 = 64;
/// The time without any ACK that must have passed too: during an outage even a slow sender has
/// reached its retransmission timeout by then, and new data stops.
const TIME_UNANSWERED: Duration = Duration::from_secs(3);

/// The first rest after needless repairs: a satellite network keeps its paths for 15 s, so what one
/// change of paths reordered is over by then.
const REST: Duration = Duration::from_secs(15);
/// How often a rest is twice as long as the one before: up to 64 minutes.
const RESTS_GROW: u8 = 8;

/// True if new data of the flow is to be forwarded and nothing else.
#[inline]
pub(super) fn leaves_alone(
    flow: &mut Flow,
    context: &mut Context<'_, impl Sink>,
    now: Instant,
) -> bool {
    let many_unanswered = flow.segments_unanswered >= SEGMENTS_UNANSWERED;
    (many_unanswered || flow.aside.is_some()) && is_left_alone(flow, context, now)
}

#[cold]
fn is_left_alone(flow: &mut Flow, context: &mut Context<'_, impl Sink>, now: Instant) -> bool {
    if flow.aside == Some(Reason::NoEvidence) && is_evident(flow, context) {
        flow.aside = None;
    }
    if flow.aside == Some(Reason::RepairsUnneeded) && flow.rest.is_over(now) {
        flow.aside = None;
        super::rule(context.sink, flow.key, None, ("MOD-14", "rested; repairs again", 0));
    }
    if flow.aside.is_some() {
        return true;
    }
    let unanswered = flow.segments_unanswered >= SEGMENTS_UNANSWERED
        && now.since(flow.mobile_at) >= TIME_UNANSWERED;
    if unanswered && context.config.stand_aside == StandAside::IfUseless {
        stand_aside(flow, Reason::AcksElsewhere, context);
        return true;
    }
    false
}

/// True if enough is known of the flow, or of the last hop, to help.
fn is_evident(flow: &Flow, context: &Context<'_, impl Sink>) -> bool {
    let HelpFrom::Evidence { acknowledged_bytes, segments, repairs } = context.config.help_from
    else {
        return true;
    };
    let statistics = &context.shared.statistics;
    let needed = statistics.retransmissions.saturating_sub(statistics.unneeded_retransmissions);
    flow.last_ack.is_some_and(|ack| ack.since(flow.start) >= acknowledged_bytes)
        || statistics.cached >= segments && needed >= repairs
}

/// A packet of the mobile host passed: its ACKs do come this way.
#[inline]
pub(super) fn on_mobile_heard(flow: &mut Flow, context: &mut Context<'_, impl Sink>) {
    if flow.aside.is_some() {
        on_mobile_heard_again(flow, context);
    }
}

#[cold]
fn on_mobile_heard_again(flow: &mut Flow, context: &mut Context<'_, impl Sink>) {
    if flow.aside == Some(Reason::AcksElsewhere) {
        flow.aside = None;
        super::rule(context.sink, flow.key, None, ("MOD-23", "ACKs pass here again", 0));
    }
}

/// Looks back at a batch of repairs.
pub(super) fn judge(flow: &mut Flow, context: &mut Context<'_, impl Sink>, now: Instant) {
    let (unneeded, judged) = flow.evidence.unneeded_of_judged();
    let useless = judged >= JUDGED_BATCH && unneeded > judged / 2;
    if useless && context.config.stand_aside == StandAside::IfUseless {
        flow.rest.begin(now);
        stand_aside(flow, Reason::RepairsUnneeded, context);
    }
}

fn stand_aside(flow: &mut Flow, reason: Reason, context: &mut Context<'_, impl Sink>) {
    (flow.aside, flow.is_quiet) = (Some(reason), false);
    flow.cache.clear();
    flow.episode_end = None;
    flow.phase = super::restart::Phase::Steady;
    for timer in [Timer::RoundTrip, Timer::Persist, Timer::Restart, Timer::Reordering] {
        flow.timers.stop(timer);
    }
    report(flow, reason, context);
}

/// Counts and tells that a flow is left alone.
pub(super) fn report(flow: &Flow, reason: Reason, context: &mut Context<'_, impl Sink>) {
    context.shared.statistics.flows_left_alone += 1;
    let key = flow.key;
    context.sink.report(|| Event {
        flow: Some(key),
        packet: None,
        kind: EventKind::StandAside { reason: reason.text() },
    });
}
