//! CUBIC (RFC 9438) as Linux has it (`tcp_cubic.c`), with HyStart (Ha and Rhee 2011).
//!
//! Beyond ssthresh cwnd follows a cubic function of the time since the last reduction: fast back to
//! the window of then, slowly past it, and never slower than Reno would. Slow start ends before it
//! loses when a train of ACKs gets as long as half a round trip, or when round trips get longer.
//!
//! All in whole segments and in 2^-10 s, as in the kernel. We differ in an exact cube root, and in
//! time that does not come in ticks of 4 ms. Not modelled: the clock that stands still while
//! nothing is in flight.

use sansio::{Duration, Instant};
use wire::tcp::Seq;

/// What CUBIC remembers of one connection. Windows are in segments.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Cubic {
    /// The time of the latest ACK.
    now: Instant,
    /// The window before the last reduction, W_max; 0 after a timeout.
    window_max: u32,
    epoch: Option<Epoch>,
    /// When `acks_per_segment` was last worked out, and for which window.
    worked_out: Option<(u32, Instant)>,
    acks_per_segment: u32,
    /// The shortest round trip since the last timeout.
    delay_min: Option<Duration>,
    /// Segments acknowledged toward the next one of cwnd.
    counted: u32,
    slow_start: SlowStart,
}

/// Congestion avoidance since the last reduction.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Epoch {
    began_at: Instant,
    /// From the begin to the plateau, K, in 2^-10 s.
    to_plateau: u64,
    plateau: u32,
    /// Segments acknowledged toward the next one of `reno`.
    acked: u32,
    /// The window that Reno would have, W_est.
    reno: u32,
}

/// HyStart, of one round trip.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct SlowStart {
    has_ended: bool,
    began_at: Instant,
    /// The last ACK of the train.
    last_at: Instant,
    /// The round ends when more than this is acknowledged.
    until: Option<Seq>,
    delay_min: Option<Duration>,
    samples: u32,
}

/// A round trip that an ACK measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sample {
    /// Of the latest segment it acknowledges or SACKs.
    pub(crate) delay: Duration,
    /// The oldest unacknowledged and the next new number.
    pub(crate) una: Seq,
    pub(crate) next: Seq,
    /// cwnd, segments.
    pub(crate) cwnd: u32,
    /// cwnd is below ssthresh.
    pub(crate) is_slow_start: bool,
}

/// What is left of a window, in 1/1024: beta of RFC 9438, 4.6, is 0.7.
const BETA: u32 = 717;
const BETA_UNIT: u32 = 1024;
/// C of RFC 9438, 4.1, is 0.4: 410/1024 here, per cubic second.
const C: u64 = 410;
/// Fractional bits of a second and of C.
const SECOND_BITS: u32 = 10;
/// What Reno has to receive for a segment, as a part of cwnd in 1/8: (1 + beta) / 3 (1 - beta).
const RENO_EIGHTHS: u32 = 8 * (BETA_UNIT + BETA) / 3 / (BETA_UNIT - BETA);
/// Least number of segments acknowledged for one more of cwnd: half as much again per round trip.
const ACKS_MIN: u32 = 2;
/// Most, before the first loss: 5 % per round trip.
const ACKS_MAX_AT_FIRST: u32 = 20;
/// The function is worked out once per tick of the kernel's clock, and for one window at least so
/// long after the last time.
const TICK: Duration = Duration::from_millis(4);
const SAME_WINDOW: Duration = Duration::from_nanos(1_000_000_000 / 32);
/// Samples this soon after a reduction are of the queue that caused it.
const AFTER_REDUCTION: Duration = Duration::from_secs(1);

/// HyStart begins at this window, segments (`hystart_low_window`).
const HYSTART_WINDOW_MIN: u32 = 16;
/// ACKs this close are of one train (`hystart_ack_delta_us`).
const TRAIN_GAP: Duration = Duration::from_millis(2);
/// What an aggregating link may add to a train (`hystart_ack_delay`).
const TRAIN_SLACK: Duration = Duration::from_millis(1);
/// Samples of a round before its shortest counts.
const SAMPLES_MIN: u32 = 8;
/// A round trip is longer by an eighth of the shortest, within these bounds.
const LONGER_MIN: Duration = Duration::from_millis(4);
const LONGER_MAX: Duration = Duration::from_millis(16);

impl Cubic {
    /// An ACK came.
    pub(crate) fn set_now(&mut self, now: Instant) {
        self.now = now;
    }

    /// A round trip was measured; true if slow start is to end here.
    pub(crate) fn on_sample(&mut self, sample: Sample) -> bool {
        let is_soon = |epoch: Epoch| self.now.since(epoch.began_at) < AFTER_REDUCTION;
        if self.epoch.is_some_and(is_soon) {
            return false;
        }
        let delay_min = self.delay_min.map_or(sample.delay, |least| least.min(sample.delay));
        self.delay_min = Some(delay_min);
        !self.slow_start.has_ended
            && sample.is_slow_start
            && self.slow_start.on_sample(sample, delay_min, self.now)
    }

    /// ssthresh after a loss, with this cwnd (RFC 9438, 4.6 and 4.7).
    pub(crate) fn reduce(&mut self, cwnd: u32) -> u32 {
        self.epoch = None;
        self.counted = 0;
        // It fell short of the last window, so somebody else needs room.
        let is_short = cwnd < self.window_max;
        self.window_max = match is_short {
            true => share(cwnd, BETA_UNIT + BETA, 2 * BETA_UNIT),
            false => cwnd,
        };
        share(cwnd, BETA, BETA_UNIT)
    }

    /// The timer fired: nothing that was learned holds.
    pub(crate) fn reset(&mut self) {
        let slow_start = SlowStart { began_at: self.now, last_at: self.now, ..Default::default() };
        *self = Cubic { now: self.now, slow_start, ..Default::default() };
    }

    /// Segments that cwnd grows by beyond ssthresh when `acked` of them are acknowledged.
    pub(crate) fn grow(&mut self, cwnd: u32, acked: u32) -> u32 {
        let needed = self.needed(cwnd, acked);
        let mut grown = 0;
        // Left from a larger window, it counts for one segment at most.
        if self.counted >= needed {
            self.counted = 0;
            grown += 1;
        }
        self.counted += acked;
        grown += self.counted / needed;
        self.counted %= needed;
        grown
    }

    /// How many segments acknowledged open cwnd by one (`bictcp_update`).
    fn needed(&mut self, cwnd: u32, acked: u32) -> u32 {
        let now = self.now;
        if let Some(epoch) = &mut self.epoch {
            epoch.acked = epoch.acked.saturating_add(acked);
        }
        let is_known = self
            .worked_out
            .is_some_and(|(window, at)| window == cwnd && now.since(at) <= SAME_WINDOW);
        if is_known && self.epoch.is_some() {
            return self.acks_per_segment;
        }
        let is_fresh = self.worked_out.is_some_and(|(_, at)| now.since(at) < TICK);
        let window_max = self.window_max;
        let began = self.epoch.is_none();
        let epoch = self.epoch.get_or_insert_with(|| Epoch::new(cwnd, window_max, acked, now));
        if began || !is_fresh {
            self.worked_out = Some((cwnd, now));
            let age = now.since(epoch.began_at) + self.delay_min.unwrap_or(Duration::ZERO);
            let target = epoch.target(age);
            self.acks_per_segment = match target > cwnd {
                true => cwnd / (target - cwnd),
                false => cwnd.saturating_mul(100),
            };
            if window_max == 0 {
                self.acks_per_segment = self.acks_per_segment.min(ACKS_MAX_AT_FIRST);
            }
        }
        if let Some(needed) = epoch.reno_needed(cwnd) {
            self.acks_per_segment = self.acks_per_segment.min(needed);
        }
        self.acks_per_segment = self.acks_per_segment.max(ACKS_MIN);
        self.acks_per_segment
    }
}

impl Epoch {
    fn new(cwnd: u32, window_max: u32, acked: u32, now: Instant) -> Self {
        let below = u64::from(window_max.saturating_sub(cwnd));
        // RFC 9438, equation 2, K = cbrt((W_max - cwnd) / C), in 2^-10 s.
        let to_plateau = cube_root((below << (4 * SECOND_BITS)) / C);
        Epoch { began_at: now, to_plateau, plateau: window_max.max(cwnd), acked, reno: cwnd }
    }

    /// RFC 9438, equation 1: W(t) = C (t - K)^3 + W_max.
    fn target(&self, age: Duration) -> u32 {
        let age = (u128::from(age.as_nanos()) << SECOND_BITS) / 1_000_000_000;
        let age = u64::try_from(age).unwrap_or(u64::MAX).min(AGE_MAX);
        let away = age.abs_diff(self.to_plateau);
        let delta = (u128::from(C) * u128::from(away).pow(3)) >> (4 * SECOND_BITS);
        let delta = u32::try_from(delta).unwrap_or(u32::MAX);
        match age < self.to_plateau {
            true => self.plateau.saturating_sub(delta),
            false => self.plateau.saturating_add(delta),
        }
    }

    /// Acknowledged segments for one more, if Reno's window is the larger one (RFC 9438, 4.3).
    fn reno_needed(&mut self, cwnd: u32) -> Option<u32> {
        let for_one = (u64::from(cwnd) * u64::from(RENO_EIGHTHS) / 8).max(1);
        let more = u64::from(self.acked).saturating_sub(1) / for_one;
        self.acked -= (more * for_one) as u32;
        self.reno = self.reno.saturating_add(more as u32);
        (self.reno > cwnd).then(|| cwnd / (self.reno - cwnd))
    }
}

/// No epoch is older, in 2^-10 s: the cube has to fit.
const AGE_MAX: u64 = 1 << 36;

impl SlowStart {
    /// True if slow start ends here (`hystart_update`).
    fn on_sample(&mut self, sample: Sample, delay_min: Duration, now: Instant) -> bool {
        let Sample { delay, una, next, cwnd, .. } = sample;
        if self.until.is_none_or(|until| una.after(until)) {
            *self = SlowStart { until: Some(next), ..Default::default() };
            (self.began_at, self.last_at) = (now, now);
        }
        if cwnd < HYSTART_WINDOW_MIN {
            return false;
        }
        if now.since(self.last_at) <= TRAIN_GAP {
            self.last_at = now;
            let train = now.since(self.began_at);
            self.has_ended |= train > (delay_min + TRAIN_SLACK) / 2;
        }
        let shortest = self.delay_min.map_or(delay, |least| least.min(delay));
        self.delay_min = Some(shortest);
        if self.samples < SAMPLES_MIN {
            self.samples += 1;
        } else {
            let longer = (delay_min / 8).max(LONGER_MIN).min(LONGER_MAX);
            self.has_ended |= shortest > delay_min + longer;
        }
        self.has_ended
    }
}

/// `whole` times `part` / `unit`, rounded down.
fn share(whole: u32, part: u32, unit: u32) -> u32 {
    (u64::from(whole) * u64::from(part) / u64::from(unit)) as u32
}

/// The largest number whose cube is at most `cube`.
fn cube_root(cube: u64) -> u64 {
    let mut root = 0_u64;
    for bit in (0..22).rev() {
        let next = root | 1 << bit;
        if u128::from(next).pow(3) <= u128::from(cube) {
            root = next;
        }
    }
    root
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + MS(millis)
    }

    /// cwnd after so many seconds with this round trip, beginning as a reduction from `before`
    /// leaves it.
    fn cwnd_after(seconds: u64, before: u32, round_trip: u64) -> u32 {
        let mut cubic = Cubic { delay_min: Some(MS(round_trip)), ..Default::default() };
        let mut cwnd = cubic.reduce(before);
        let mut now = 0;
        while now < seconds * 1000 {
            cubic.set_now(at(now));
            let in_flight = cwnd;
            for _ in 0..in_flight {
                cwnd += cubic.grow(cwnd, 1);
            }
            now += round_trip;
        }
        cwnd
    }

    #[test]
    fn rfc_9438_4_6_a_loss_leaves_seven_tenths() {
        assert_eq!(Cubic::default().reduce(1000), 700);
    }

    #[test]
    fn rfc_9438_4_7_a_window_that_fell_short_aims_lower() {
        let mut cubic = Cubic::default();
        cubic.reduce(1000);
        assert_eq!(cubic.window_max, 1000);
        cubic.reduce(900);
        assert_eq!(cubic.window_max, 765, "900 * (1 + 0.7) / 2");
    }

    #[test]
    fn rfc_9438_4_2_the_window_is_back_after_k_seconds() {
        // K = cbrt(1000 * 0.3 / 0.4) = 9.09 s.
        let epoch = Epoch::new(700, 1000, 0, at(0));
        assert!((9_080..9_100).contains(&(epoch.to_plateau * 1000 / 1024)), "{epoch:?}");
        // W(t) = 0.4 (t - K)^3 + 1000.
        for (seconds, expected) in [(0, 700), (5, 973), (9, 1000), (14, 1047)] {
            let target = epoch.target(Duration::from_secs(seconds));
            assert!(target.abs_diff(expected) <= 1, "{seconds} s: {target}, not {expected}");
        }
    }

    #[test]
    fn rfc_9438_4_4_cwnd_follows_the_function() {
        for (seconds, expected) in [(5, 973), (9, 1000), (14, 1047)] {
            let cwnd = cwnd_after(seconds, 1000, 100);
            assert!(cwnd.abs_diff(expected) <= 8, "{seconds} s: {cwnd}, not {expected}");
        }
    }

    #[test]
    fn rfc_9438_4_3_with_short_round_trips_it_is_as_fast_as_reno() {
        // 3 (1 - 0.7) / (1 + 0.7) = 0.529 segments per round trip: 100 in 2 s at 10 ms each.
        let cwnd = cwnd_after(2, 100, 10);
        assert!((160..=180).contains(&cwnd), "{cwnd}");
    }

    #[test]
    fn hystart_ends_slow_start_when_a_train_is_half_a_round_trip() {
        let mut cubic = Cubic::default();
        let sample = |una| Sample {
            delay: MS(40),
            una: Seq(una),
            next: Seq(1000),
            cwnd: 20,
            is_slow_start: true,
        };
        let ended = (0..100).find(|&millis| {
            cubic.set_now(at(millis));
            cubic.on_sample(sample(1))
        });
        assert_eq!(ended, Some(21), "(40 + 1) / 2 ms is passed");
        let mut cubic = Cubic::default();
        let ended = (0..50).find(|&step| {
            cubic.set_now(at(step * 3));
            cubic.on_sample(sample(1))
        });
        assert_eq!(ended, None, "ACKs 3 ms apart are no train");
    }

    #[test]
    fn hystart_ends_slow_start_when_round_trips_get_longer() {
        for (longer, expected) in [(4, None), (5, Some(8))] {
            let mut cubic = Cubic::default();
            let sample = |una, delay| Sample {
                delay: MS(delay),
                una: Seq(una),
                next: Seq(una + 1),
                cwnd: 20,
                is_slow_start: true,
            };
            cubic.set_now(at(0));
            assert!(!cubic.on_sample(sample(1, 20)));
            let ended = (0..20).find(|&step| {
                cubic.set_now(at(100 + step * 3));
                let una = if step == 0 { 3 } else { 4 };
                cubic.on_sample(sample(una, 20 + longer))
            });
            assert_eq!(ended, expected, "longer by {longer} ms");
        }
    }

    #[test]
    fn the_cube_root_is_exact() {
        for root in [0, 1, 2, 1023, 9_309, (1 << 21) - 1] {
            assert_eq!(cube_root(root * root * root), root);
            assert_eq!(cube_root((root + 1).pow(3) - 1), root);
        }
    }
}
