//! The round-trip time of the last hop (Snoop paper, section 6; SNOOP-TMR-1).
//!
//! From the departure of a segment onto the air to the ACK that the mobile host sends for it. The
//! mean is the paper's; the deviation is ours (as in RFC 6298, section 2) and used by *modern*
//! only.

use sansio::{Duration, Instant};

/// Smoothed round-trip time, its deviation and minimum; all zero before the first sample.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RoundTrip {
    smoothed: Duration,
    deviation: Duration,
    /// The shortest sample of the current and of the previous span.
    shortest: [Duration; 2],
    /// The longest smoothed time of the same spans.
    longest: [Duration; 2],
    span_ends_at: Instant,
}

/// After this long a shortest sample is replaced, so that a change of the path is noticed.
const SHORTEST_SPAN: Duration = Duration::from_secs(10);

/// The time to wait for an ACK as long as nothing is known: that of the paper's persist timer
/// (SNOOP-TMR-5).
const UNKNOWN: Duration = Duration::from_millis(200);

impl RoundTrip {
    /// Takes a sample: weight 1/4, so that shifts do (paper, section 6).
    #[inline]
    pub(super) fn sample(&mut self, sample: Duration, now: Instant) {
        let nanos = sample.as_nanos();
        if self.smoothed.is_zero() {
            self.smoothed = Duration::from_nanos(nanos.max(1));
            self.deviation = Duration::from_nanos(nanos / 2);
            self.shortest = [sample; 2];
            self.longest = [sample; 2];
            self.span_ends_at = now + SHORTEST_SPAN;
            return;
        }
        let old = self.smoothed.as_nanos();
        let off = old.abs_diff(nanos);
        let deviation = self.deviation.as_nanos();
        self.deviation = Duration::from_nanos(deviation - (deviation >> 2) + (off >> 2));
        self.smoothed = Duration::from_nanos((old - (old >> 2) + (nanos >> 2)).max(1));
        if now > self.span_ends_at {
            self.shortest = [sample, self.shortest[0]];
            self.longest = [self.smoothed, self.longest[0]];
            self.span_ends_at = now + SHORTEST_SPAN;
        } else {
            self.shortest[0] = self.shortest[0].min(sample);
            self.longest[0] = self.longest[0].max(self.smoothed);
        }
    }

    /// Smoothed round-trip time; zero before the first sample.
    pub(super) fn smoothed(&self) -> Duration {
        self.smoothed
    }

    /// By how much a sample may exceed the smoothed time: four deviations (RFC 6298, section 2), or
    /// a quarter of the smoothed time if that is more.
    pub(super) fn margin(&self) -> Duration {
        (self.deviation * 4).max(self.smoothed / 4)
    }

    /// What departed longer ago is answered or lost.
    pub(super) fn answered_within(&self) -> Duration {
        self.smoothed + self.margin()
    }

    /// The shortest one of the last 10 to 20 s; zero before the first sample.
    pub(super) fn shortest(&self) -> Duration {
        self.shortest[0].min(self.shortest[1])
    }

    /// The queue that segments met lately between departure and air: the smoothed time beyond the
    /// shortest. Where samples are rare, the smoothed time remembers shorter ones than the last
    /// 20 s have.
    pub(super) fn queue(&self) -> Duration {
        self.smoothed.saturating_sub(self.shortest())
    }

    /// The longest such queue of the last 10 to 20 s.
    pub(super) fn longest_queue(&self) -> Duration {
        self.longest[0].max(self.longest[1]).saturating_sub(self.shortest())
    }

    /// The paper's time to wait for an ACK: twice the smoothed time, at least `floor`
    /// (SNOOP-TMR-2, SNOOP-TMR-3).
    pub(super) fn twice_smoothed(&self, floor: Duration) -> Duration {
        (self.smoothed * 2).max(floor)
    }

    /// True if there was a sample.
    pub(super) fn is_known(&self) -> bool {
        !self.smoothed.is_zero()
    }

    /// The same, but no less than four deviations above the mean, and 200 ms before the first
    /// sample: what is repeated sooner than it can be answered gives none.
    pub(super) fn with_deviation(&self, floor: Duration) -> Duration {
        if !self.is_known() {
            return floor.max(UNKNOWN);
        }
        self.twice_smoothed(floor).max(self.smoothed + self.deviation * 4)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snoop_tmr_1_weights_are_three_quarters_and_one_quarter() {
        let mut rtt = RoundTrip::default();
        for (sample, smoothed) in [(100, 100), (100, 100), (200, 125)] {
            rtt.sample(Duration::from_millis(sample), Instant::ZERO);
            assert_eq!(rtt.smoothed(), Duration::from_millis(smoothed));
        }
    }

    #[test]
    fn snoop_tmr_3_never_below_the_floor() {
        let mut rtt = RoundTrip::default();
        let floor = Duration::from_millis(40);
        assert_eq!(rtt.twice_smoothed(floor), floor);
        rtt.sample(Duration::from_millis(4), Instant::ZERO);
        assert_eq!(rtt.twice_smoothed(floor), floor);
        rtt.sample(Duration::from_millis(400), Instant::ZERO);
        assert_eq!(rtt.twice_smoothed(floor), Duration::from_millis(206));
    }

    #[test]
    fn the_shortest_sample_is_forgotten_after_two_spans() {
        let mut rtt = RoundTrip::default();
        rtt.sample(Duration::from_millis(1), Instant::ZERO);
        for second in [1, 11, 12, 22, 23] {
            let now = Instant::ZERO + Duration::from_secs(second);
            rtt.sample(Duration::from_millis(9), now);
        }
        assert_eq!(rtt.shortest(), Duration::from_millis(9));
        assert!(rtt.smoothed() < rtt.shortest(), "it remembers longer");
        assert_eq!(rtt.queue(), Duration::ZERO);
    }
}
