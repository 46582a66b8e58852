//! How late the radio was: the time between the instant at which a frame was due and the instant
//! at which it left. An honest emulator says so.

use sansio::Duration;
use serde::Serialize;
use std::fmt;

/// Lateness of a run's frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lateness {
    /// Half of the frames were no later.
    pub p50: Duration,
    /// 99 of 100 were no later.
    pub p99: Duration,
    /// The latest.
    pub max: Duration,
    /// Whether the radio ran in real time.
    pub scheduling: Scheduling,
}

/// How the radio's thread was scheduled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub enum Scheduling {
    /// As any other thread: the system allows no more.
    #[default]
    Ordinary,
    /// SCHED_FIFO.
    RealTime,
}

impl Lateness {
    pub(super) fn of(mut samples: Vec<Duration>, scheduling: Scheduling) -> Self {
        samples.sort_unstable();
        let quantile = |percent: usize| {
            let index = (samples.len() * percent / 100).min(samples.len().saturating_sub(1));
            samples.get(index).copied().unwrap_or_default()
        };
        let max = samples.last().copied().unwrap_or_default();
        Lateness { p50: quantile(50), p99: quantile(99), max, scheduling }
    }
}

impl fmt::Display for Lateness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let micros = |span: Duration| span.as_nanos() / 1_000;
        let (p50, p99, max) = (micros(self.p50), micros(self.p99), micros(self.max));
        write!(f, "radio late by {p50} us (p50), {p99} us (p99), {max} us (max)")?;
        match self.scheduling {
            Scheduling::RealTime => Ok(()),
            Scheduling::Ordinary => write!(f, ", not in real time"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_none_one_and_many() {
        let of = |micros: &[u64]| {
            let samples = micros.iter().map(|micros| Duration::from_micros(*micros)).collect();
            let late = Lateness::of(samples, Scheduling::RealTime);
            [late.p50, late.p99, late.max].map(|span| span.as_nanos() / 1_000)
        };
        assert_eq!(of(&[]), [0, 0, 0]);
        assert_eq!(of(&[7]), [7, 7, 7]);
        let many: Vec<u64> = (1..=1_000).rev().collect();
        assert_eq!(of(&many), [501, 991, 1_000]);
    }
}
