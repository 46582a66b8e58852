//! Round-trip time and retransmission timeout (RFC 6298; Jacobson 1988), exact or in BSD's ticks.
//!
//! One segment is timed at a time, and none that was sent twice (Karn; RFC 6298, 3). A timeout
//! doubles the timeout, and the doubling lasts until the next sample (RFC 6298, 5.5 and 5.7).
//! We differ from BSD in keeping nanoseconds where it keeps ticks; a sample is whole ticks all the
//! same.

use crate::config::{Config, Rto, Spread, TimerModel};
use sansio::{Duration, Instant};
use std::rc::Rc;
use wire::tcp::Seq;

/// The estimator of one connection.
#[derive(Clone, Debug, PartialEq)]
#[repr(C)]
pub(crate) struct RoundTrip {
    /// Before backing off.
    timeout: Duration,
    /// Doublings since the last sample.
    backoff: u8,
    sampled: bool,
    /// The round trip ends when this is acknowledged.
    round_until: Seq,
    /// Of it the rule, [`Config::rto`].
    config: Rc<Config>,
    /// How long before time zero the last tick was ([`TimerModel::Ticks`]).
    pub(crate) tick_phase: Duration,
    /// Eight times the smoothed round-trip time, ns; no sample yet while `timeout` is initial.
    smoothed_times_8: u64,
    /// Four times the mean deviation, ns.
    deviation_times_4: u64,
    /// Its peak, and the peak of this round trip, ns ([`Spread::Peak`]).
    peak: u64,
    round_peak: u64,
}

/// Doublings beyond this change nothing, whatever the bounds.
const BACKOFF_MAX: u8 = 16;

impl RoundTrip {
    pub(crate) fn new(config: Rc<Config>) -> Self {
        RoundTrip {
            timeout: config.rto.initial,
            config,
            tick_phase: Duration::ZERO,
            smoothed_times_8: 0,
            deviation_times_4: 0,
            peak: 0,
            round_peak: 0,
            round_until: Seq(0),
            backoff: 0,
            sampled: false,
        }
    }

    #[inline]
    fn rule(&self) -> &Rto {
        &self.config.rto
    }

    /// Takes a sample of a segment that was sent once; it also ends the backing off. `una` and
    /// `next`: the oldest unacknowledged and the next new number.
    pub(crate) fn on_sample(&mut self, sample: Duration, una: Seq, next: Seq) {
        let sample = sample.as_nanos();
        if self.sampled {
            let smoothed = self.smoothed_times_8 / 8;
            let error = sample.abs_diff(smoothed);
            let is_shorter = sample < smoothed;
            self.smoothed_times_8 = self.smoothed_times_8 - smoothed + sample;
            let quarter = self.deviation_times_4 / 4;
            self.deviation_times_4 = match self.rule().spread {
                Spread::Peak if is_shorter && error > quarter => {
                    self.deviation_times_4 + (error - quarter) / 8
                }
                _ => self.deviation_times_4 - quarter + error,
            };
        } else {
            self.sampled = true;
            self.smoothed_times_8 = sample * 8;
            self.deviation_times_4 = sample * 2;
            self.round_peak = self.rule().minimum.as_nanos();
            self.round_until = next;
        }
        self.backoff = 0;
        self.timeout = match self.rule().spread {
            Spread::Mean => self.timeout_by_mean(),
            Spread::Peak => self.timeout_by_peak(una, next),
        };
    }

    fn timeout_by_mean(&self) -> Duration {
        let least = match self.rule().model {
            TimerModel::Ideal { granularity } => granularity.as_nanos(),
            TimerModel::Ticks { .. } => 0,
        };
        let spread = self.deviation_times_4 * u64::from(self.rule().deviations) / 4;
        let timeout = Duration::from_nanos(self.smoothed_times_8 / 8 + spread.max(least));
        timeout.max(self.rule().minimum).min(self.rule().maximum)
    }

    fn timeout_by_peak(&mut self, una: Seq, next: Seq) -> Duration {
        self.round_peak = self.round_peak.max(self.deviation_times_4);
        self.peak = self.peak.max(self.round_peak);
        if una.after(self.round_until) {
            self.peak -= (self.peak - self.round_peak) / 4;
            self.round_until = next;
            self.round_peak = self.rule().minimum.as_nanos();
        }
        Duration::from_nanos(self.smoothed_times_8 / 8 + self.peak).min(self.rule().maximum)
    }

    /// The timer fired (RFC 6298, 5.5).
    pub(crate) fn back_off(&mut self) {
        self.backoff = (self.backoff + 1).min(BACKOFF_MAX);
    }

    /// True if no sample came since the last timeout.
    #[inline]
    pub(crate) fn is_backed_off(&self) -> bool {
        self.backoff > 0
    }

    /// The smoothed round-trip time; zero before the first sample.
    pub(crate) fn smoothed(&self) -> Duration {
        Duration::from_nanos(self.smoothed_times_8 / 8)
    }

    /// The retransmission timeout, backed off.
    #[inline]
    pub(crate) fn timeout(&self) -> Duration {
        (self.timeout * (1 << self.backoff)).min(self.rule().maximum)
    }

    /// When a retransmission timer armed at `now` fires.
    #[inline]
    pub(crate) fn deadline(&self, now: Instant) -> Instant {
        self.deadline_after(self.timeout(), now)
    }

    /// When a timer armed at `now` for `span` fires.
    #[inline]
    pub(crate) fn deadline_after(&self, span: Duration, now: Instant) -> Instant {
        match self.rule().model {
            TimerModel::Ideal { .. } => now + span,
            TimerModel::Ticks { tick } => {
                let (tick, phase) = (tick.as_nanos().max(1), self.tick_phase);
                let due = ticks_until(now, tick, phase) + span.as_nanos().div_ceil(tick);
                Instant::from_nanos(due * tick) - phase
            }
        }
    }

    /// The round-trip time of a segment sent at `sent_at` and acknowledged at `now`, as this host
    /// can measure it.
    pub(crate) fn measure(&self, sent_at: Instant, now: Instant) -> Duration {
        match self.rule().model {
            TimerModel::Ideal { .. } => now.since(sent_at),
            TimerModel::Ticks { tick } => {
                let (tick, phase) = (tick.as_nanos().max(1), self.tick_phase);
                let ticks = ticks_until(now, tick, phase) - ticks_until(sent_at, tick, phase);
                // BSD starts its count at 1 and takes the 1 off again except for the first sample.
                let ticks = if self.sampled { ticks } else { ticks + 1 };
                Duration::from_nanos(ticks * tick)
            }
        }
    }
}

/// Ticks that have passed by `now`.
#[inline]
fn ticks_until(now: Instant, tick: u64, phase: Duration) -> u64 {
    (now + phase).as_nanos() / tick
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Congestion;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn sample(rtt: &mut RoundTrip, sample: Duration) {
        rtt.on_sample(sample, Seq(1), Seq(1));
    }

    fn by(rto: Rto) -> RoundTrip {
        RoundTrip::new(Rc::new(Config { rto, ..Config::modern(Congestion::Reno) }))
    }

    fn ideal(deviations: u32, minimum: Duration) -> RoundTrip {
        by(Rto { deviations, minimum, ..Rto::RFC_6298 })
    }

    #[test]
    fn rfc_6298_2_numbers() {
        let mut rtt = ideal(4, Duration::ZERO);
        assert_eq!(rtt.timeout(), MS(1000), "2.1: 1 s before the first sample");
        sample(&mut rtt, MS(100));
        assert_eq!(rtt.timeout(), MS(300), "2.2: R + 4 R/2");
        sample(&mut rtt, MS(180));
        // 2.3: rttvar = 3/4 50 + 1/4 80 = 57.5, srtt = 7/8 100 + 1/8 180 = 110.
        assert_eq!((rtt.smoothed(), rtt.timeout()), (MS(110), MS(340)));
    }

    #[test]
    fn rfc_6298_granularity_is_the_least_spread() {
        let mut rtt = ideal(4, Duration::ZERO);
        for _ in 0..200 {
            sample(&mut rtt, MS(10));
        }
        assert_eq!(rtt.timeout(), MS(11));
    }

    #[test]
    fn ci_tcp_1_tahoe_adds_two_deviations() {
        let mut rtt = ideal(2, Duration::ZERO);
        sample(&mut rtt, MS(100));
        assert_eq!(rtt.timeout(), MS(200));
    }

    #[test]
    fn ci_tcp_3_backing_off_doubles_up_to_the_maximum_and_a_sample_ends_it() {
        let mut rtt = by(Rto::bsd(2));
        sample(&mut rtt, Duration::ZERO);
        let mut seconds = Vec::new();
        for _ in 0..8 {
            seconds.push(rtt.timeout().as_nanos() / 1_000_000_000);
            rtt.back_off();
        }
        assert_eq!(seconds, [1, 2, 4, 8, 16, 32, 64, 64]);
        sample(&mut rtt, Duration::ZERO);
        assert_eq!(rtt.timeout(), MS(1000));
    }

    #[test]
    fn ci_tcp_2_two_ticks_last_half_a_second_to_a_second() {
        for (phase, armed_at, fires_at) in
            [(0, 0, 1000), (0, 1, 1000), (0, 499, 1000), (0, 500, 1500), (200, 0, 800)]
        {
            let mut rtt = by(Rto::bsd(2));
            rtt.tick_phase = MS(phase);
            sample(&mut rtt, Duration::ZERO);
            let armed_at = Instant::ZERO + MS(armed_at);
            assert_eq!(rtt.deadline(armed_at), Instant::ZERO + MS(fires_at));
        }
    }

    #[test]
    fn ticks_measure_the_ticks_between() {
        let mut rtt = by(Rto::bsd(4));
        let at = |millis| Instant::ZERO + MS(millis);
        assert_eq!(rtt.measure(at(10), at(20)), MS(500), "the first sample is never zero");
        sample(&mut rtt, MS(500));
        assert_eq!(rtt.measure(at(10), at(20)), Duration::ZERO);
        assert_eq!(rtt.measure(at(499), at(500)), MS(500));
    }

    #[test]
    fn linux_bounds_the_spread_and_lets_its_peak_fall_slowly() {
        let mut rtt = by(Rto { minimum: MS(200), spread: Spread::Peak, ..Rto::RFC_6298 });
        rtt.on_sample(MS(40), Seq(1), Seq(100));
        assert_eq!(rtt.timeout(), MS(240), "200 ms and the mean, not 200 ms in all");
        rtt.on_sample(MS(440), Seq(50), Seq(100));
        // srtt = 90; deviation = 80 - 20 + 400 = 460, at once.
        assert_eq!(rtt.timeout(), MS(90 + 460));
        rtt.on_sample(MS(90), Seq(60), Seq(100));
        assert_eq!(rtt.timeout(), MS(90 + 460), "its peak stays for the round trip");
        rtt.on_sample(MS(90), Seq(101), Seq(200));
        assert_eq!(rtt.timeout(), MS(90 + 460), "which ends here");
        // The deviation loses a quarter with each: 345, 258.75, 194.0625, so 200 is the least.
        rtt.on_sample(MS(90), Seq(201), Seq(300));
        let expected = 90_000_000 + 460_000_000 - (460_000_000 - 200_000_000) / 4;
        assert_eq!(rtt.timeout(), Duration::from_nanos(expected));
    }
}
