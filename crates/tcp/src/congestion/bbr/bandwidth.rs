//! Bandwidth in BBR's units, the largest of the last rounds, and what ACKs that come in bunches
//! bring beyond it.

use sansio::{Duration, Instant};

/// Segments per microsecond, in 2^-24, as in the kernel (`BW_SCALE`): 1500-byte segments from
/// 0.7 kbit/s on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Bandwidth(u64);

/// A factor, in 1/256 (`BBR_SCALE`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Gain(pub(super) u32);

const BANDWIDTH_BITS: u32 = 24;
const GAIN_BITS: u32 = 8;
/// Pace so much below the bandwidth, percent, lest a queue stay (`bbr_pacing_margin_percent`).
const MARGIN_PERCENT: u128 = 1;

impl Gain {
    pub(super) const UNIT: Gain = Gain(1 << GAIN_BITS);
}

impl Bandwidth {
    /// So many segments in this time; none if that is below a microsecond.
    pub(super) fn of(segments: u32, interval: Duration) -> Bandwidth {
        let micros = interval.as_nanos() / 1000;
        let scaled = u64::from(segments) << BANDWIDTH_BITS;
        Bandwidth(scaled.checked_div(micros).unwrap_or(0))
    }

    /// Whole segments of this time.
    pub(super) fn segments_in(self, time: Duration) -> u32 {
        let micros = u128::from(time.as_nanos() / 1000);
        u32::try_from((u128::from(self.0) * micros) >> BANDWIDTH_BITS).unwrap_or(u32::MAX)
    }

    /// Segments that fill a path of this round trip, times the gain, rounded up.
    pub(super) fn product(self, round_trip: Duration, gain: Gain) -> u32 {
        let micros = u128::from(round_trip.as_nanos() / 1000);
        let scaled = (u128::from(self.0) * micros * u128::from(gain.0)) >> GAIN_BITS;
        u32::try_from(scaled.div_ceil(1 << BANDWIDTH_BITS)).unwrap_or(u32::MAX)
    }

    /// Times the gain.
    pub(super) fn scaled(self, gain: Gain) -> Bandwidth {
        Bandwidth(((u128::from(self.0) * u128::from(gain.0)) >> GAIN_BITS) as u64)
    }

    /// Between two.
    pub(super) fn mean(self, other: Bandwidth) -> Bandwidth {
        Bandwidth((self.0 + other.0) / 2)
    }

    pub(super) fn abs_diff(self, other: Bandwidth) -> Bandwidth {
        Bandwidth(self.0.abs_diff(other.0))
    }

    /// The pace for segments of `mss` bytes, bytes per second, a little below it.
    pub(super) fn pacing_rate(self, mss: u32, gain: Gain) -> u64 {
        let scaled = (u128::from(self.0) * u128::from(mss) * u128::from(gain.0)) >> GAIN_BITS;
        let rate = (scaled * (1_000_000 / 100 * (100 - MARGIN_PERCENT))) >> BANDWIDTH_BITS;
        u64::try_from(rate).unwrap_or(u64::MAX)
    }
}

/// The largest bandwidth of the last rounds: the best three, each later than the one before
/// (Nichols' windowed filter; `win_minmax.c`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct MaxFilter {
    best: [Dated; 3],
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Dated {
    round: u32,
    bandwidth: Bandwidth,
}

/// Rounds that a sample counts (`bbr_bw_rtts`): a cycle of gains and two more.
const ROUNDS: u32 = 10;

impl MaxFilter {
    pub(super) fn max(&self) -> Bandwidth {
        self.best[0].bandwidth
    }

    /// A sample of this round.
    pub(super) fn add(&mut self, bandwidth: Bandwidth, round: u32) {
        let new = Dated { round, bandwidth };
        let age = |of: Dated| round.wrapping_sub(of.round);
        if bandwidth >= self.best[0].bandwidth || age(self.best[2]) > ROUNDS {
            self.best = [new; 3];
            return;
        }
        if bandwidth >= self.best[1].bandwidth {
            self.best = [self.best[0], new, new];
        } else if bandwidth >= self.best[2].bandwidth {
            self.best[2] = new;
        }
        let [first, second, third] = self.best;
        if age(first) > ROUNDS {
            self.best = match age(second) > ROUNDS {
                true => [third, new, new],
                false => [second, third, new],
            };
        } else if second.round == first.round && age(first) > ROUNDS / 4 {
            // A quarter of the window without a second best: the newest is.
            self.best = [first, new, new];
        } else if third.round == second.round && age(first) > ROUNDS / 2 {
            self.best[2] = new;
        }
    }
}

/// What ACKs that come in bunches bring beyond the bandwidth, and for which cwnd has to make room
/// (`bbr_update_ack_aggregation`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Aggregation {
    /// The largest excess of this window and of the one before, segments.
    extra: [u32; 2],
    /// Rounds of this window.
    rounds: u32,
    epoch_at: Instant,
    /// Segments acknowledged since.
    epoch_acked: u32,
}

/// Rounds of a window (`bbr_extra_acked_win_rtts`).
const WINDOW_ROUNDS: u32 = 5;
/// An epoch of so many segments is too old (`bbr_ack_epoch_acked_reset_thresh`).
const EPOCH_ACKED_MAX: u32 = 1 << 20;
/// An excess counts as far as the bandwidth brings it in so long (`bbr_extra_acked_max_us`).
const EXTRA_MAX: Duration = Duration::from_millis(100);

impl Aggregation {
    /// A new epoch begins.
    pub(super) fn restart(&mut self, now: Instant) {
        (self.epoch_at, self.epoch_acked) = (now, 0);
    }

    /// Segments that cwnd should allow beyond the path's.
    pub(super) fn extra(&self, bandwidth: Bandwidth) -> u32 {
        self.extra[0].max(self.extra[1]).min(bandwidth.segments_in(EXTRA_MAX))
    }

    /// An ACK brought so many segments.
    pub(super) fn on_ack(
        &mut self,
        (acked, cwnd): (u32, u32),
        begins_round: bool,
        bandwidth: Bandwidth,
        delivered_at: Instant,
    ) {
        self.rounds += u32::from(begins_round);
        if self.rounds >= WINDOW_ROUNDS {
            self.rounds = 0;
            self.extra = [0, self.extra[0]];
        }
        let mut expected = bandwidth.segments_in(delivered_at.since(self.epoch_at));
        if self.epoch_acked <= expected || self.epoch_acked + acked >= EPOCH_ACKED_MAX {
            self.restart(delivered_at);
            expected = 0;
        }
        self.epoch_acked = (self.epoch_acked + acked).min(EPOCH_ACKED_MAX - 1);
        let extra = self.epoch_acked.saturating_sub(expected).min(cwnd);
        self.extra[0] = self.extra[0].max(extra);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    /// One segment a millisecond.
    fn per_ms(segments: u32) -> Bandwidth {
        Bandwidth::of(segments, MS(1))
    }

    #[test]
    fn the_pace_is_one_percent_below_the_bandwidth() {
        // 10 segments of 1000 bytes a millisecond are 10^7 bytes a second.
        let rate = per_ms(10).pacing_rate(1000, Gain::UNIT);
        assert!((9_899_000..=9_900_000).contains(&rate), "{rate}");
        assert_eq!(per_ms(10).product(MS(40), Gain(512)), 800);
    }

    #[test]
    fn the_largest_sample_counts_for_ten_rounds() {
        let mut filter = MaxFilter::default();
        filter.add(per_ms(9), 0);
        for round in 1..=10 {
            filter.add(per_ms(5), round);
            assert_eq!(filter.max(), per_ms(9), "round {round}");
        }
        filter.add(per_ms(5), 11);
        assert_eq!(filter.max(), per_ms(5));
    }

    #[test]
    fn the_second_best_follows_when_the_best_is_too_old() {
        let mut filter = MaxFilter::default();
        let samples = [(9, 0), (7, 4), (6, 8), (5, 9), (5, 11)];
        samples.into_iter().for_each(|(segments, round)| filter.add(per_ms(segments), round));
        assert_eq!(filter.max(), per_ms(7));
        filter.add(per_ms(5), 15);
        assert_eq!(filter.max(), per_ms(6));
    }

    #[test]
    fn a_bunch_of_acks_is_room_for_five_to_ten_rounds() {
        let mut aggregation = Aggregation::default();
        let at = |millis| Instant::ZERO + MS(millis);
        // 10 segments at once every 11 ms, where one a millisecond is expected.
        aggregation.restart(at(0));
        let mut now = 0;
        for _ in 0..3 {
            now += 11;
            aggregation.on_ack((10, 100), true, per_ms(1), at(now));
        }
        // Two more rounds of that window, and five of the next.
        for (rounds, expected) in [(0, 10), (6, 10), (1, 1)] {
            for _ in 0..rounds {
                now += 1000;
                aggregation.on_ack((1, 100), true, per_ms(1), at(now));
            }
            assert_eq!(aggregation.extra(per_ms(1)), expected);
        }
    }
}
