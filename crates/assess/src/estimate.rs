//! What a replayed agent would have saved of a stall: bounds, not a point.
//!
//! The replay is open-loop. The agent sees the packets of the capture and acts on its timers, but
//! nobody answers what it sends, and the sender goes on as it did without it. So a stall ends, at
//! best, one local round trip after the agent's first copy of the segment that everybody waits for.
//! What that would have changed afterwards (a window not cut in half, a timeout not backed off) is
//! in no bound.
//!
//! | cause | at most | at least |
//! |---|---|---|
//! | radio | the agent's first copy arrives | only its second one does |
//! | outage, handoff | the path was back after the last attempt that failed | nothing |
//! | congestion, unknown | as for radio | nothing: the queue may drop the copy, too |
//! | nothing lost, application, receiver | nothing | nothing |
//!
//! After an outage with losses nobody saw when the path came back: at the latest with the attempt
//! that was answered. Where only the ACKs were lost, the copy brings a new one as the attempt did.

use crate::cause::{Cause, Evidence, Path};
use crate::sent::SCHEMES;
use sansio::{Duration, Instant};

/// When each agent sent the segment again, for the first and the second time.
pub type Copies = [[Option<Instant>; 2]; SCHEMES];

/// Time saved, at least and at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Saved {
    /// At least.
    pub lower: Duration,
    /// At most.
    pub upper: Duration,
    /// Stalls in which the agent sent the segment again before the sender's repair arrived.
    pub acted: u64,
}

impl Saved {
    /// Adds another stall's.
    pub fn add(&mut self, other: &Saved) {
        self.lower += other.lower;
        self.upper += other.upper;
        self.acted += other.acted;
    }
}

/// What copies at these times save of a stall.
pub fn saved(
    cause: Cause,
    seen: &Evidence,
    [first, second]: [Option<Instant>; 2],
    path: &Path,
) -> Saved {
    let Some(first) = first.filter(|first| *first < seen.until) else { return Saved::default() };
    let round_trip = path.floor_before.unwrap_or(Duration::ZERO);
    // A copy may be older than the stall: then everybody waited for something else before.
    let left_after = |copy: Instant| seen.until.since(copy.max(seen.from) + round_trip);
    let failed = match seen.attempts.split_last() {
        // The last attempt is the one that was answered.
        Some((_, failed)) if !seen.unfinished => failed.last().copied(),
        _ => seen.attempts.last().copied(),
    };
    let back = failed.map_or(first, |failed| failed.max(first));
    let second = second.unwrap_or(first + round_trip * 2);
    let (lower, upper) = match cause {
        _ if seen.answers_original && !seen.reports_repeat => (Duration::ZERO, Duration::ZERO),
        Cause::Application | Cause::Receiver => (Duration::ZERO, Duration::ZERO),
        Cause::Radio => (left_after(second), left_after(first)),
        Cause::Outage | Cause::Handoff | Cause::Congestion | Cause::Unknown => {
            (Duration::ZERO, left_after(back))
        }
    };
    Saved { lower, upper, acted: 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    /// The path was away from 1000 ms on; the sender tried in vain at 1300 ms and with success at
    /// 1900 ms. The agent had sent the segment again at 1100 and 1200 ms.
    fn saved_of(cause: Cause, seen: Evidence) -> [u64; 2] {
        let attempts = vec![at(1300), at(1900)];
        let seen = Evidence { from: at(1000), until: at(1920), attempts, ..seen };
        let path = Path { floor_before: Some(Duration::from_millis(20)), ..Path::default() };
        let saved = saved(cause, &seen, [Some(at(1100)), Some(at(1200))], &path);
        [saved.lower, saved.upper].map(|time| time.as_nanos() / 1_000_000)
    }

    #[test]
    fn after_an_outage_no_more_is_saved_than_since_the_last_attempt_that_failed() {
        assert_eq!(saved_of(Cause::Outage, Evidence::default()), [0, 600]);
        assert_eq!(saved_of(Cause::Radio, Evidence::default()), [700, 800]);
        assert_eq!(saved_of(Cause::Application, Evidence::default()), [0, 0]);
    }

    #[test]
    fn where_only_acks_were_lost_a_copy_brings_one_and_where_all_was_held_none() {
        let held = || Evidence { answers_original: true, ..Evidence::default() };
        assert_eq!(saved_of(Cause::Outage, held()), [0, 0]);
        let acks_lost = Evidence { reports_repeat: true, ..held() };
        assert_eq!(saved_of(Cause::Outage, acks_lost), [0, 600]);
    }
}
