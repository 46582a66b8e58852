//! A radio that repeats what it lost, seen from above: packets come later, sometimes out of order,
//! and rarely not at all (BASE-10, MOD-21).
//!
//! Each try fails with the same probability; each repetition adds one retry time; after the last
//! one the packet is given up. Repetitions take no air time from other packets: this is the
//! parallel repetition of a cellular or satellite radio. Repetitions that take the air, with a
//! verdict for each frame (METP-LL-3), are [`frame_arq`](crate::hop::frame_arq)'s.

use super::{Loss, Verdict, probability};
use sansio::{Duration, Random};

/// A radio's own repetitions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// Probability that one try fails, 0 to 1.
    pub try_failure: f64,
    /// Time that one repetition adds.
    pub retry_time: Duration,
    /// Repetitions after the first try, at most 255; all having failed, the packet is lost. The
    /// residual loss is `try_failure` to the power of this plus one.
    pub retries_max: u32,
    /// Whether the receiving radio restores the order.
    pub order: Order,
}

/// In which order a radio hands packets on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// As sent: what comes after a repeated packet waits for it.
    InOrder,
    /// As they come.
    AsReceived,
}

/// The largest retry limit of IEEE 802.11 (dot11ShortRetryLimit, 1 to 255); it bounds the work
/// for one packet.
const RETRIES_MAX: u32 = 255;

#[derive(Clone, Debug)]
pub(super) struct Arq {
    try_failure: f64,
    retry_time: Duration,
    retries_max: u32,
    random: Random,
}

impl Arq {
    pub(super) fn new(config: &Config, seed: u64, name: &str) -> Self {
        Arq {
            try_failure: probability(config.try_failure),
            retry_time: config.retry_time,
            retries_max: config.retries_max.min(RETRIES_MAX),
            random: Random::new(seed, &format!("{name}.arq")),
        }
    }

    pub(super) fn judge(&mut self) -> Verdict {
        for retries in 0..=self.retries_max {
            if !self.random.chance(self.try_failure) {
                return Verdict { loss: None, delay: self.retry_time * u64::from(retries) };
            }
        }
        Verdict { loss: Some(Loss::Arq), delay: self.retry_time * u64::from(self.retries_max) }
    }
}
