//! How long packets take at a rate, in whole nanoseconds, without drift.
//!
//! A nanosecond is not a whole number of bits at most rates, so each service time is rounded down
//! and what was cut off is carried into the next one: after any number of packets the sum is
//! exact to one nanosecond.

use sansio::{BitRate, Duration};

/// Longest packet that is told apart, in bytes; longer ones take as long as this. It keeps the
/// arithmetic within 64 bits and is far above any datagram.
const PACKET_BYTES_MAX: u64 = 1 << 30;
/// Highest rate that is told apart, in bit/s; for the same reason.
const RATE_BPS_MAX: u64 = 1 << 60;

/// The service rate of a hop and the part of a nanosecond it owes.
#[derive(Clone, Debug)]
pub(crate) struct Pace {
    rate_bps: u64,
    /// In units of 1/`rate_bps` ns, below `rate_bps`.
    remainder: u64,
}

impl Pace {
    pub(crate) fn new(rate: BitRate) -> Self {
        Pace { rate_bps: rate.as_bps().min(RATE_BPS_MAX), remainder: 0 }
    }

    /// The time the next packet would take.
    #[inline]
    pub(crate) fn time_for(&self, bytes: u32) -> Duration {
        Duration::from_nanos(self.owed(bytes) / self.rate_bps)
    }

    /// The time the next packet takes; the rest is owed to the one after it.
    #[inline]
    pub(crate) fn take(&mut self, bytes: u32) -> Duration {
        let owed = self.owed(bytes);
        let nanos = owed / self.rate_bps;
        self.remainder = owed % self.rate_bps;
        Duration::from_nanos(nanos)
    }

    #[inline]
    fn owed(&self, bytes: u32) -> u64 {
        u64::from(bytes).min(PACKET_BYTES_MAX) * 8_000_000_000 + self.remainder
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_thousand_packets_take_exactly_their_bits_over_the_rate() {
        // 1500 bytes at 7 Mbit/s are 1 714 285.714… ns.
        let mut pace = Pace::new(BitRate::from_mbps(7));
        let total: u64 = (0..7_000).map(|_| pace.take(1500).as_nanos()).sum();
        assert_eq!(total, 12_000_000_000);
    }

    #[test]
    fn a_planned_time_is_the_time_taken() {
        let mut pace = Pace::new(BitRate::from_bps(3));
        for bytes in [1, 2, 40, 1500, 1] {
            assert_eq!(pace.time_for(bytes), pace.take(bytes));
        }
    }

    #[test]
    fn absurd_sizes_and_rates_do_not_overflow() {
        for bps in [0, 1, u64::MAX] {
            let mut pace = Pace::new(BitRate::from_bps(bps));
            for _ in 0..3 {
                pace.take(u32::MAX);
            }
        }
    }
}
