//! Delays and losses as somebody recorded them ([`crate::recorded`]).
//!
//! Both are functions of time alone. A packet has the delay, and is lost with the step, of the
//! instant at which its first bit goes on air: it may have waited in the queue before, and the
//! radio knew nothing of it then.
//!
//! The recorded delay replaces the hop's own and keeps the order: a packet behind a slower one
//! arrives no earlier than that.

use super::{Air, Loss, Verdict};
use crate::outage::Interval;
use crate::recorded::{Delays, Losses};
use sansio::{Duration, Instant};
use std::sync::Arc;

/// Recorded delays of a hop.
#[derive(Clone, Debug, PartialEq)]
pub struct DelayConfig {
    /// One for each step.
    pub delays: Arc<Delays>,
    /// The length of a step, at least 1 ns.
    pub step: Duration,
}

/// Recorded losses of a hop.
#[derive(Clone, Debug, PartialEq)]
pub struct LossConfig {
    /// One for each step.
    pub losses: Arc<Losses>,
    /// The length of a step, at least 1 ns.
    pub step: Duration,
}

#[derive(Clone, Debug)]
pub(super) struct RecordedDelay {
    config: DelayConfig,
    /// The hop has this much delay without us.
    shortest: Duration,
    /// When the packet before arrives.
    last_at: Instant,
}

#[derive(Clone, Debug)]
pub(super) struct RecordedLoss(LossConfig);

impl RecordedDelay {
    pub(super) fn new(config: &DelayConfig) -> Self {
        let shortest = config.delays.shortest();
        RecordedDelay { config: config.clone(), shortest, last_at: Instant::ZERO }
    }

    pub(super) fn judge(&mut self, air: Air) -> Verdict {
        let delay = self.config.delays.at(air.time.start, self.config.step);
        self.last_at = self.last_at.max(air.time.end + delay);
        let delay = self.last_at.since(air.time.end).saturating_sub(self.shortest);
        Verdict { loss: None, delay }
    }
}

impl RecordedLoss {
    pub(super) fn new(config: &LossConfig) -> Self {
        RecordedLoss(config.clone())
    }

    pub(super) fn judge(&mut self, air: Air) -> Verdict {
        Verdict::lost_if(self.0.losses.at(air.time.start, self.0.step), Loss::Recorded)
    }
}

/// Of a time of more steps than this no stretches are told: nobody could see them.
const STEPS_SHOWN: u64 = 1_000_000;

/// The stretches that begin before `end` in which everything is lost.
pub(super) fn stretches(LossConfig { losses, step }: &LossConfig, end: Instant) -> Vec<Interval> {
    let step = (*step).max(Duration::from_nanos(1));
    let mut found: Vec<Interval> = Vec::new();
    let mut start = Instant::ZERO;
    if end.as_nanos() / step.as_nanos() > STEPS_SHOWN {
        return found;
    }
    while start < end {
        let next = start + step;
        if losses.at(start, step) {
            match found.last_mut().filter(|last| last.end == start) {
                Some(last) => last.end = next,
                None => found.push(Interval { start, end: next }),
            }
        }
        start = next;
    }
    found
}
