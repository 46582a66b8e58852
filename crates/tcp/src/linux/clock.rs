//! When a timer of the Linux kernel fires: at a tick, and later than asked for.
//!
//! A span is rounded up to ticks of 4 ms (`CONFIG_HZ` = 250). The timer then goes into a wheel
//! whose levels get coarser eightfold, and never fires before the end of its slot
//! (`calc_wheel_index`): a timeout of 300 ms may take 340, one of 2.3 s may take 2.56.

use sansio::{Duration, Instant};

/// From tick to tick.
const TICK: Duration = Duration::from_millis(4);
/// Ticks that the finest level reaches; each further level reaches eight times as far.
const REACH: u64 = 63;
const COARSER_BITS: u32 = 3;
const LEVELS_MAX: u32 = 8;

/// When a timer armed at `now` for `span` fires, if the host's clock had counted `phase` ticks at
/// time zero.
pub(super) fn fires_at(span: Duration, phase: u32, now: Instant) -> Instant {
    let phase = u64::from(phase);
    let tick = TICK.as_nanos();
    let ticks = span.as_nanos().div_ceil(tick);
    let expires = phase + now.as_nanos() / tick + ticks;
    let level = (0..LEVELS_MAX).find(|level| ticks < REACH << (level * COARSER_BITS));
    let shift = level.unwrap_or(LEVELS_MAX) * COARSER_BITS;
    let slot = ((expires >> shift) + 1) << shift;
    Instant::from_nanos((slot - phase).saturating_mul(tick))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn short_timers_fire_at_the_tick_after_the_next() {
        for (armed, span, fires) in [(0, 10, 16), (3, 10, 16), (4, 12, 20), (0, 248, 252)] {
            let at = fires_at(MS(span), 7, Instant::ZERO + MS(armed));
            assert_eq!(at, Instant::ZERO + MS(fires), "{span} ms, armed at {armed}");
        }
    }

    #[test]
    fn long_timers_wait_for_the_end_of_their_slot() {
        // 63 ticks are of the second level: slots of 8 ticks, of the third: 64.
        assert_eq!(fires_at(MS(252), 0, Instant::ZERO), Instant::ZERO + MS(256));
        assert_eq!(fires_at(MS(252), 1, Instant::ZERO), Instant::ZERO + MS(284));
        assert_eq!(fires_at(MS(2304), 0, Instant::ZERO), Instant::ZERO + MS(2560));
    }

    #[test]
    fn a_timer_never_fires_early_and_is_late_by_an_eighth_at_most() {
        for millis in (1..20_000).step_by(7) {
            let now = Instant::ZERO + MS(millis % 13);
            let late = fires_at(MS(millis), millis as u32, now).since(now + MS(millis));
            let bound = 8 + millis / 7;
            assert!(late <= MS(bound), "{millis} ms late by {late}");
            assert!(fires_at(MS(millis), millis as u32, now) >= now + MS(millis));
        }
    }
}
