//! Losses in a row, counted in packets: the two-state model of Gilbert (Bell System Technical
//! Journal 39, 1960), with no loss in the good state and nothing but loss in the bad one.
//!
//! With mean loss m and mean burst length L packets: the bad state is left after a packet with
//! probability 1/L and entered with m / (L (1 - m)), so that the share of bad packets is m.

use super::{Loss, Verdict, probability};
use sansio::Random;

/// Losses in a row, counted in packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// Share of packets lost in the long run, 0 to `length` / (`length` + 1): the good state
    /// lasts one packet at least.
    pub mean: f64,
    /// Mean number of packets lost in a row, at least 1.
    pub length: f64,
}

#[derive(Clone, Debug)]
pub(super) struct Burst {
    enter: f64,
    leave: f64,
    is_bad: bool,
    random: Random,
}

impl Burst {
    pub(super) fn new(config: &Config, seed: u64, name: &str) -> Self {
        let length = if config.length > 1.0 { config.length } else { 1.0 };
        let mean = probability(config.mean).min(length / (length + 1.0));
        let leave = 1.0 / length;
        let mut random = Random::new(seed, &format!("{name}.burst"));
        let is_bad = random.chance(mean);
        Burst { enter: probability(mean * leave / (1.0 - mean)), leave, is_bad, random }
    }

    #[inline]
    pub(super) fn judge(&mut self) -> Verdict {
        let verdict = Verdict::lost_if(self.is_bad, Loss::Burst);
        let change = if self.is_bad { self.leave } else { self.enter };
        self.is_bad ^= self.random.chance(change);
        verdict
    }
}
