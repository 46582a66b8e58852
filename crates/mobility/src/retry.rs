//! How often a question is repeated, and when it is given up.

use sansio::Duration;

/// A schedule of repetitions: the first wait, doubled up to the longest, so many times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// From the question to its first repetition.
    pub first: Duration,
    /// No wait is longer.
    pub longest: Duration,
    /// Repetitions; after one more wait the question is given up.
    pub repetitions_max: u32,
}

impl Retry {
    /// Handoff messages: three repetitions at 50 ms (PAR-9, MCAST-11).
    pub const CONTROL: Retry = Retry {
        first: Duration::from_millis(50),
        longest: Duration::from_millis(50),
        repetitions_max: 3,
    };
    /// Registrations: at least a second, then twice as long (RFC 5944, 3.6.3).
    pub const REGISTRATION: Retry = Retry {
        first: Duration::from_secs(1),
        longest: Duration::from_secs(16),
        repetitions_max: 5,
    };

    /// The wait after a question was asked so often, from 1.
    pub fn wait(&self, asked: u32) -> Duration {
        let doublings = asked.saturating_sub(1).min(32);
        self.first.saturating_mul(1 << doublings).min(self.longest)
    }

    /// True if a question that was asked so often is given up when its wait is over.
    pub fn is_last(&self, asked: u32) -> bool {
        asked > self.repetitions_max
    }
}
