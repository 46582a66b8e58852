//! Poisson bit errors over link time (BASE-27; Snoop paper, section 7).
//!
//! Time is divided into bit slots at the rate at which the hop serves bits, MAC efficiency
//! included, and the gaps between errors are drawn in slots, idle slots too: every scheme meets
//! the same errors at the same instants. A packet occupies exactly its bits (whole IP packet,
//! headers included) from the slot in which it goes on air, and is lost if an error falls into
//! one of them: with probability 1 - (1 - rate)^bits, each packet for itself.
//!
//! A gap is an exponential draw with mean 1 / -ln(1 - rate) slots, rounded down: the geometric
//! distribution of error-free bits.

use super::{Air, Loss, Verdict, probability};
use sansio::{BitRate, Instant, Random};

/// Independent bit errors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// Probability of an error in one bit, 0 to 0.5.
    pub rate: f64,
}

/// From here on no packet would pass anyway.
const RATE_MAX: f64 = 0.5;

#[derive(Clone, Debug)]
pub(super) struct BitError {
    slots_per_second: u64,
    gap_mean: f64,
    /// The slot of the next error.
    error_at: u64,
    /// The first slot after the last packet. Instants are rounded to nanoseconds, so two packets
    /// back to back could otherwise share a slot.
    free_at: u64,
    random: Random,
}

impl BitError {
    pub(super) fn new(config: &Config, rate: BitRate, seed: u64, name: &str) -> Self {
        let error_rate = probability(config.rate).min(RATE_MAX);
        let mut channel = BitError {
            slots_per_second: rate.as_bps(),
            // Infinite without errors: then every gap reaches beyond the end of time.
            gap_mean: -1.0 / libm::log1p(-error_rate),
            error_at: 0,
            free_at: 0,
            random: Random::new(seed, &format!("{name}.bit_error")),
        };
        channel.error_at = channel.draw_gap();
        channel
    }

    pub(super) fn judge(&mut self, air: Air) -> Verdict {
        let begin = self.slot(air.time.start).max(self.free_at);
        let end = begin.saturating_add(u64::from(air.bytes) * 8);
        self.free_at = end;
        self.skip_errors_before(begin);
        let lost = self.error_at < end;
        self.skip_errors_before(end);
        Verdict::lost_if(lost, Loss::BitError)
    }

    #[inline]
    fn skip_errors_before(&mut self, slot: u64) {
        while self.error_at < slot {
            let gap = self.draw_gap();
            self.error_at = self.error_at.saturating_add(1).saturating_add(gap);
        }
    }

    /// Number of good bits before the next error.
    fn draw_gap(&mut self) -> u64 {
        if self.gap_mean.is_infinite() {
            return u64::MAX;
        }
        self.random.exponential(self.gap_mean) as u64
    }

    #[inline]
    fn slot(&self, at: Instant) -> u64 {
        const NANOS_PER_SECOND: u128 = 1_000_000_000;
        let slots =
            u128::from(at.as_nanos()) * u128::from(self.slots_per_second) / NANOS_PER_SECOND;
        u64::try_from(slots).unwrap_or(u64::MAX)
    }
}
