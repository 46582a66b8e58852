//! Pacing inside TCP: after each burst the sender waits as long as the burst takes at its pacing
//! rate (`tcp_update_skb_after_send`, `tcp_pacing_check` of Linux 6.18).
//!
//! A burst that left late shortens the wait after it, by half at most, so that a timer that is a
//! little late does not slow the sender down.

use sansio::{Duration, Instant};

/// When the next burst may leave, and how large it should be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Pacing {
    /// Bytes per second; 0 before it is known (`sk_pacing_rate`).
    rate: u64,
    /// The next burst may leave then (`tcp_wstamp_ns`).
    next_at: Instant,
}

/// So many segments of a connection leave unpaced.
const SEGMENTS_UNPACED: u64 = 10;
/// A burst holds the pacing rate's bytes in 2^-10 s (`sk_pacing_shift`).
const BURSTS_PER_SECOND: u64 = 1 << 10;
/// None is larger, bytes: `GSO_LEGACY_MAX_SIZE` less the largest headers.
const BURST_BYTES_MAX: u64 = 65_535 - 320;
/// Nor than this, segments.
const BURST_SEGMENTS_MAX: u64 = 127;
/// A slower sender sends segments one by one, a faster one at least two at once, bytes per second
/// (`bbr_min_tso_rate`, 1.2 Mbit/s).
const SINGLE_BELOW: u64 = 1_200_000 / 8;

const NANOS_PER_SECOND: u128 = 1_000_000_000;

impl Pacing {
    /// Before anything was sent.
    pub(crate) fn new() -> Self {
        Pacing { rate: 0, next_at: Instant::ZERO }
    }

    /// Bytes per second.
    pub(crate) fn rate(&self) -> u64 {
        self.rate
    }

    /// Sets the rate, bytes per second.
    pub(crate) fn set_rate(&mut self, rate: u64) {
        self.rate = rate;
    }

    /// The next burst may leave then.
    pub(crate) fn next_at(&self) -> Instant {
        self.next_at
    }

    /// How long the next burst has to wait.
    pub(crate) fn wait(&self, now: Instant) -> Duration {
        self.next_at.since(now)
    }

    /// A burst of so many bytes leaves, up to the segment of this number since the connection
    /// began.
    pub(crate) fn on_sent(&mut self, bytes: u32, segments_sent: u64, now: Instant) {
        let credit = now.since(self.next_at);
        self.next_at = self.next_at.max(now);
        if self.rate > 0 && segments_sent >= SEGMENTS_UNPACED {
            let nanos = u128::from(bytes) * NANOS_PER_SECOND / u128::from(self.rate);
            let gap = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
            self.next_at += gap.saturating_sub(credit.min(gap / 2));
        }
    }

    /// Least segments of a burst (`bbr_min_tso_segs`).
    pub(crate) fn burst_segments_min(&self) -> u32 {
        if self.rate < SINGLE_BELOW { 1 } else { 2 }
    }

    /// Segments of a burst, of `mss` bytes each (`bbr_tso_segs_goal`).
    pub(crate) fn burst_segments(&self, mss: u32) -> u32 {
        let bytes = (self.rate / BURSTS_PER_SECOND).min(BURST_BYTES_MAX);
        let segments = bytes / u64::from(mss.max(1));
        segments.max(u64::from(self.burst_segments_min())).min(BURST_SEGMENTS_MAX) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + MS(millis)
    }

    /// One megabyte per second: 1000 bytes a millisecond.
    fn pacing() -> Pacing {
        Pacing { rate: 1_000_000, next_at: at(5) }
    }

    #[test]
    fn a_burst_waits_for_as_long_as_the_last_one_takes() {
        let mut pacing = pacing();
        assert_eq!(pacing.wait(at(3)), MS(2));
        pacing.on_sent(3000, 100, at(5));
        assert_eq!((pacing.next_at(), pacing.wait(at(8))), (at(8), Duration::ZERO));
    }

    #[test]
    fn a_late_burst_is_made_up_for_by_half_a_gap_at_most() {
        for (late, next) in [(1, 9), (2, 9), (3, 10), (100, 107)] {
            let mut pacing = pacing();
            pacing.on_sent(4000, 100, at(5 + late));
            assert_eq!(pacing.next_at(), at(next), "late by {late} ms");
        }
    }

    #[test]
    fn the_first_ten_segments_are_not_paced() {
        let mut pacing = pacing();
        pacing.on_sent(9000, 9, at(5));
        assert_eq!(pacing.wait(at(5)), Duration::ZERO);
        pacing.on_sent(1000, 10, at(5));
        assert_eq!(pacing.wait(at(5)), MS(1));
    }

    #[test]
    fn bursts_hold_a_millisecond_of_the_rate() {
        for (rate, segments) in [(149_999, 1), (150_000, 2), (10_240_000, 10), (1 << 40, 65)] {
            let pacing = Pacing { rate, ..pacing() };
            assert_eq!(pacing.burst_segments(1000), segments, "{rate} bytes/s");
        }
    }
}
