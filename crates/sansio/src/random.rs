//! One random stream per component, derived from (seed, component name).
//!
//! Inserting a component never shifts another one's draws, and schemes that are compared under the
//! same seed meet the same channel.

use crate::Duration;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// A deterministic random stream, the same on every platform.
#[derive(Clone, Debug)]
pub struct Random(ChaCha8Rng);

impl Random {
    /// The stream of component `name` in the run with this seed.
    pub fn new(seed: u64, name: &str) -> Self {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        let mut generator = ChaCha8Rng::from_seed(key);
        generator.set_stream(fnv1a(name));
        Random(generator)
    }

    /// 64 random bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Uniform in [0, 1), 53 bits.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
    }

    /// True with probability `p`.
    #[inline]
    pub fn chance(&mut self, p: f64) -> bool {
        self.unit() < p
    }

    /// Uniform in `0..bound`; 0 if `bound` is 0. The bias is below `bound` / 2^64.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }

    /// Exponentially distributed with this mean.
    #[inline]
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -libm::log(1.0 - self.unit()) * mean
    }

    /// A time, exponentially distributed with this mean.
    #[inline]
    pub fn exponential_time(&mut self, mean: Duration) -> Duration {
        Duration::from_nanos(self.exponential(mean.as_nanos() as f64) as u64)
    }

    /// Normally distributed (Box and Muller).
    pub fn normal(&mut self, mean: f64, deviation: f64) -> f64 {
        let (radius, angle) = (1.0 - self.unit(), self.unit());
        let radius = libm::sqrt(-2.0 * libm::log(radius));
        mean + deviation * radius * libm::cos(2.0 * core::f64::consts::PI * angle)
    }

    /// A time, uniform in `from..to`.
    pub fn uniform_time(&mut self, from: Duration, to: Duration) -> Duration {
        from + Duration::from_nanos(self.below(to.saturating_sub(from).as_nanos()))
    }

    /// A time whose logarithm is uniform between those of `from` and `to`, both above zero.
    pub fn log_uniform_time(&mut self, from: Duration, to: Duration) -> Duration {
        let (low, high) = (from.as_nanos().max(1) as f64, to.as_nanos().max(1) as f64);
        Duration::from_nanos((low * libm::pow(high / low, self.unit())) as u64)
    }
}

/// FNV-1a, 64 bit: the number of a stream's name.
fn fnv1a(name: &str) -> u64 {
    name.bytes().fold(0xCBF2_9CE4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_draws_of_a_stream_never_change() {
        let mut stream = Random::new(1, "hop.down");
        let drawn: Vec<u64> = (0..4).map(|_| stream.bits()).collect();
        assert_eq!(drawn, GOLDEN);
    }

    #[test]
    fn streams_differ_by_name_and_by_seed() {
        let first = |seed, name| Random::new(seed, name).bits();
        assert_ne!(first(1, "a"), first(1, "b"));
        assert_ne!(first(1, "a"), first(2, "a"));
    }

    #[test]
    fn moments_of_the_distributions() {
        let mut random = Random::new(7, "moments");
        let n = 200_000;
        let mean = (0..n).map(|_| random.exponential(3.0)).sum::<f64>() / f64::from(n);
        assert!((mean - 3.0).abs() < 0.03, "exponential mean {mean}");
        let hits = (0..n).filter(|_| random.chance(0.25)).count() as f64 / f64::from(n);
        assert!((hits - 0.25).abs() < 0.005, "chance {hits}");
        let drawn: Vec<f64> = (0..n).map(|_| random.normal(2.0, 0.5)).collect();
        let mean = drawn.iter().sum::<f64>() / f64::from(n);
        let variance = drawn.iter().map(|one| (one - mean) * (one - mean)).sum::<f64>();
        let deviation = (variance / f64::from(n)).sqrt();
        assert!((mean - 2.0).abs() < 0.005, "normal mean {mean}");
        assert!((deviation - 0.5).abs() < 0.005, "normal deviation {deviation}");
        let below = (0..n).map(|_| random.below(10) as f64).sum::<f64>() / f64::from(n);
        assert!((below - 4.5).abs() < 0.03, "below {below}");
        let (from, to) = (Duration::from_millis(100), Duration::from_secs(10));
        let median = {
            let mut drawn: Vec<_> =
                (0..10_001).map(|_| random.log_uniform_time(from, to)).collect();
            drawn.sort();
            drawn[5_000].as_secs_f64()
        };
        assert!((median - 1.0).abs() < 0.1, "log-uniform median {median}");
    }

    const GOLDEN: [u64; 4] =
        [4757667111540869114, 1787201161441426092, 17079650651316357474, 6721586300269673600];
}
