//! cwnd and ssthresh: the arithmetic that Tahoe, Reno and RFC 6675 share (RFC 5681, section 3.1).
//!
//! cwnd carries 16 fractional bits, so that opening it by 1/cwnd of a segment per ACK adds up.

use super::Loss;
use super::cubic::{Cubic, Sample};
use crate::config::{Config, Growth, Halving};
use sansio::{Duration, Instant};
use wire::tcp::Seq;

/// cwnd and ssthresh of one sender.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Windows {
    /// In 2^-16 bytes.
    cwnd: u64,
    /// Bytes.
    ssthresh: u32,
    /// Bytes of a full segment.
    mss: u32,
    initial: u32,
    ssthresh_min: u32,
    halving: Halving,
    growth: Growth,
    /// Bytes acknowledged toward the next segment of cwnd ([`Growth::Counted`]).
    counted: u32,
    /// What opens cwnd beyond ssthresh and says what a loss leaves ([`Growth::Cubic`]).
    cubic: Option<Box<Cubic>>,
}

const FRACTION_BITS: u32 = 16;

/// No window field can offer more (RFC 7323, 2.2), so no larger cwnd means anything.
const CWND_MAX: u32 = 1 << 30;

impl Windows {
    /// As a connection begins, with segments of `mss` bytes.
    pub(crate) fn new(config: &Config, mss: u32) -> Self {
        let initial = config.initial_window_segments.max(1).saturating_mul(mss).min(CWND_MAX);
        Windows {
            cwnd: u64::from(initial) << FRACTION_BITS,
            ssthresh: config.initial_ssthresh_bytes,
            mss,
            initial,
            ssthresh_min: config.ssthresh_min_segments.max(1).saturating_mul(mss),
            halving: config.halving,
            growth: config.growth,
            counted: 0,
            cubic: (config.growth == Growth::Cubic).then(Box::default),
        }
    }

    /// Congestion window, whole bytes.
    #[inline]
    pub(crate) fn cwnd(&self) -> u32 {
        (self.cwnd >> FRACTION_BITS) as u32
    }

    /// Slow start threshold, bytes.
    #[inline]
    pub(crate) fn ssthresh(&self) -> u32 {
        self.ssthresh
    }

    /// Bytes of a full segment.
    #[inline]
    pub(crate) fn mss(&self) -> u32 {
        self.mss
    }

    /// Opens cwnd for an ACK of `bytes` new bytes: by a segment, or by the bytes, below ssthresh
    /// (RFC 5681, equation 2), by 1/cwnd of them above (equation 3; CI-TCP-5).
    #[inline]
    pub(crate) fn open(&mut self, bytes: u32) {
        match self.growth {
            Growth::PerAck if self.cwnd() < self.ssthresh => {
                self.cwnd += u64::from(bytes.min(self.mss)) << FRACTION_BITS;
            }
            Growth::PerAck => self.cwnd += self.avoidance(self.mss),
            Growth::PerByte => {
                let slow_start = bytes.min(self.ssthresh.saturating_sub(self.cwnd()));
                self.cwnd += u64::from(slow_start) << FRACTION_BITS;
                if slow_start < bytes {
                    self.cwnd += self.avoidance(bytes - slow_start);
                }
            }
            Growth::Counted | Growth::Cubic => self.count(bytes),
        }
        self.cwnd = self.cwnd.min(u64::from(CWND_MAX) << FRACTION_BITS);
    }

    /// Slow start by the bytes, then a segment whenever cwnd has been acknowledged.
    fn count(&mut self, bytes: u32) {
        let slow_start = bytes.min(self.ssthresh.saturating_sub(self.cwnd()));
        self.cwnd += u64::from(slow_start) << FRACTION_BITS;
        if slow_start == bytes {
            return;
        }
        if let Some(cubic) = &mut self.cubic {
            let cwnd = (self.cwnd >> FRACTION_BITS) as u32 / self.mss;
            let acked = (bytes - slow_start) / self.mss;
            let grown = if acked > 0 { cubic.grow(cwnd, acked) } else { 0 };
            self.cwnd += (u64::from(grown) * u64::from(self.mss)) << FRACTION_BITS;
            return;
        }
        // Left from a larger cwnd, it counts for one segment at most.
        if self.counted >= self.cwnd() {
            self.counted = 0;
            self.cwnd += u64::from(self.mss) << FRACTION_BITS;
        }
        self.counted = self.counted.saturating_add(bytes - slow_start);
        let segments = self.counted / self.cwnd().max(1);
        self.counted -= segments * self.cwnd();
        self.cwnd += (u64::from(segments) * u64::from(self.mss)) << FRACTION_BITS;
    }

    /// mss * bytes / cwnd in 2^-16 bytes, with 8 of the divisor's fractional bits.
    #[inline]
    pub(crate) fn avoidance(&self, bytes: u32) -> u64 {
        let mss = u64::from(self.mss.min(u32::from(u16::MAX)));
        // 16 bits of mss, 23 of bytes, 24 of the shift: they fit.
        let bytes = u64::from(bytes.min(1 << 23));
        ((mss * bytes) << (FRACTION_BITS + 8)) / (self.cwnd >> 8)
    }

    /// An ACK came, with or without a round trip from `una` to `next` that it measured. CUBIC
    /// alone wants to know.
    pub(crate) fn on_ack(
        &mut self,
        (una, next): (Seq, Seq),
        round_trip: Option<Duration>,
        now: Instant,
    ) {
        let (bytes, ssthresh) = (self.cwnd(), self.ssthresh);
        let cwnd = bytes / self.mss;
        let Some(cubic) = &mut self.cubic else { return };
        cubic.set_now(now);
        let is_slow_start = bytes < ssthresh;
        let sample = |delay| Sample { delay, una, next, cwnd, is_slow_start };
        if round_trip.is_some_and(|delay| cubic.on_sample(sample(delay))) {
            self.ssthresh = bytes;
        }
    }

    /// Sets ssthresh to half of what the configuration says, or to what CUBIC says; returns what a
    /// fast retransmit leaves of cwnd: the same, but in ns-2 without the floor.
    pub(crate) fn halve(&mut self, loss: Loss) -> u32 {
        let cwnd = self.cwnd() / self.mss;
        if let Some(cubic) = &mut self.cubic {
            self.ssthresh = (cubic.reduce(cwnd) * self.mss).max(self.ssthresh_min);
            return self.ssthresh;
        }
        let half = match self.halving {
            Halving::Window | Halving::WindowOnly => {
                let segments = self.cwnd().min(loss.send_window) / 2 / self.mss;
                segments * self.mss
            }
            Halving::Flight | Halving::Cwnd if loss.attempt > 1 => self.ssthresh,
            Halving::Flight => loss.flight / 2,
            Halving::Cwnd => self.cwnd() / self.mss / 2 * self.mss,
        };
        self.ssthresh = half.max(self.ssthresh_min);
        self.counted = 0;
        if self.halving == Halving::WindowOnly { half } else { self.ssthresh }
    }

    /// A loss that a fast retransmit repairs: ssthresh is halved, and cwnd goes there.
    pub(crate) fn reduce(&mut self, loss: Loss) {
        let cwnd = self.halve(loss);
        self.set_cwnd(cwnd);
    }

    /// Opens cwnd by so many 2^-16 bytes.
    pub(crate) fn open_by(&mut self, fraction: u64) {
        self.cwnd = (self.cwnd + fraction).min(u64::from(CWND_MAX) << FRACTION_BITS);
    }

    /// Sets ssthresh, bytes.
    pub(crate) fn set_ssthresh(&mut self, bytes: u32) {
        self.ssthresh = bytes;
    }

    /// Sets cwnd, bytes.
    pub(crate) fn set_cwnd(&mut self, bytes: u32) {
        self.cwnd = u64::from(bytes.min(CWND_MAX)) << FRACTION_BITS;
    }

    /// Goes back to these windows, bytes, unless they are larger by now.
    pub(crate) fn restore(&mut self, cwnd: u32, ssthresh: u32) {
        self.set_cwnd(self.cwnd().max(cwnd));
        self.ssthresh = self.ssthresh.max(ssthresh);
    }

    /// Sets cwnd to ssthresh.
    pub(crate) fn deflate(&mut self) {
        self.set_cwnd(self.ssthresh);
    }

    /// Sets cwnd to one segment: slow start.
    pub(crate) fn collapse(&mut self) {
        self.cubic.iter_mut().for_each(|cubic| cubic.reset());
        self.set_cwnd(self.mss);
    }

    /// Halves cwnd so many times, not below the initial window (RFC 2861, 3.1).
    pub(crate) fn decay(&mut self, times: u32) {
        let cwnd = self.cwnd();
        self.ssthresh = self.ssthresh.max(cwnd / 4 * 3);
        let halved = cwnd.checked_shr(times).unwrap_or(0);
        self.set_cwnd(halved.max(cwnd.min(self.initial)));
    }

    /// Sets cwnd to the initial window if it was larger (RFC 5681, 4.1).
    pub(crate) fn restart(&mut self) {
        self.cwnd = self.cwnd.min(u64::from(self.initial) << FRACTION_BITS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Congestion;

    fn windows() -> Windows {
        Windows::new(&Config::ns2(Congestion::Reno), 1000)
    }

    #[test]
    fn ci_tcp_5_cwnd_doubles_per_round_trip_then_grows_by_one_segment() {
        let mut windows = windows();
        for expected in [4, 8, 16] {
            for _ in 0..windows.cwnd() / 1000 {
                windows.open(1000);
            }
            assert_eq!(windows.cwnd(), expected * 1000);
        }
        windows.ssthresh = 16_000;
        for _ in 0..16 {
            windows.open(1000);
        }
        // Sixteen steps of 1/cwnd fall a little short of one, as in ns-2.
        assert!((16_960..17_000).contains(&windows.cwnd()), "{}", windows.cwnd());
    }

    #[test]
    fn rfc_3465_delayed_acks_do_not_slow_a_sender_that_counts_bytes() {
        let mut windows = windows();
        windows.growth = Growth::PerByte;
        windows.open(2000);
        assert_eq!(windows.cwnd(), 4000, "doubled by one ACK for two segments");
        windows.ssthresh = 16_000;
        windows.open(20_000);
        let beyond = windows.cwnd() - 16_000;
        assert!((490..=510).contains(&beyond), "8000 bytes beyond ssthresh are half a segment");
    }

    #[test]
    fn ci_tcp_4_halving_repeatedly_ends_at_the_floor() {
        let mut windows = windows();
        windows.cwnd = 32_000 << FRACTION_BITS;
        let loss = Loss { flight: 32_000, send_window: 64_000, attempt: 1 };
        windows.halve(loss);
        windows.collapse();
        assert_eq!((windows.ssthresh(), windows.cwnd()), (16_000, 1000));
        windows.halve(Loss { attempt: 2, ..loss });
        assert_eq!(windows.ssthresh(), 2000);
    }

    #[test]
    fn rfc_2861_ssthresh_remembers_three_quarters_of_a_window_that_decays() {
        let mut windows = windows();
        (windows.cwnd, windows.ssthresh) = (16_000 << FRACTION_BITS, 4000);
        windows.decay(1);
        assert_eq!((windows.cwnd(), windows.ssthresh()), (8000, 12_000));
        windows.decay(1);
        assert_eq!((windows.cwnd(), windows.ssthresh()), (4000, 12_000));
        windows.decay(40);
        assert_eq!(windows.cwnd(), 2000, "the initial window");
    }

    #[test]
    fn rfc_5681_a_timeout_that_repeats_leaves_ssthresh() {
        let mut windows = windows();
        windows.halving = Halving::Flight;
        let loss = Loss { flight: 32_000, send_window: 64_000, attempt: 1 };
        windows.halve(loss);
        windows.halve(Loss { flight: 1000, attempt: 2, ..loss });
        assert_eq!(windows.ssthresh(), 16_000);
    }

    #[test]
    fn linux_halves_cwnd_whatever_is_in_flight() {
        let mut windows = windows();
        windows.halving = Halving::Cwnd;
        windows.cwnd = 20_000 << FRACTION_BITS;
        let loss = Loss { flight: 900_000, send_window: 1 << 20, attempt: 1 };
        windows.halve(loss);
        windows.collapse();
        assert_eq!(windows.ssthresh(), 10_000);
        windows.halve(Loss { attempt: 2, ..loss });
        assert_eq!(windows.ssthresh(), 10_000);
    }

    #[test]
    fn odd_windows_halve_to_whole_segments() {
        let mut windows = windows();
        windows.cwnd = 15_900 << FRACTION_BITS;
        windows.halve(Loss { flight: 15_000, send_window: 28_000, attempt: 0 });
        assert_eq!(windows.ssthresh(), 7000);
    }
}
