//! Means with 95 % intervals, and quantiles.

use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, StudentsT};

/// The mean of a sample, its median beside it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Mean {
    /// Arithmetic mean.
    pub mean: f64,
    /// Half the width of the 95 % confidence interval (Student's t); none for a single value.
    pub ci95: Option<f64>,
    /// The smallest value.
    pub min: f64,
    /// The largest value.
    pub max: f64,
    /// Median.
    pub p50: f64,
}

/// Quantiles of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Quantiles {
    /// Median.
    pub p50: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
    /// The largest value.
    pub max: f64,
}

impl Mean {
    /// The mean of these values; `None` if there are none.
    pub fn of(values: &[f64]) -> Option<Mean> {
        let Quantiles { p50, max, .. } = Quantiles::of(values)?;
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
        let ci95 = (values.len() > 1).then(|| {
            let deviation = (squares / (n - 1.0)).sqrt();
            student_975(n - 1.0) * deviation / n.sqrt()
        });
        let min = values.iter().copied().fold(f64::INFINITY, f64::min);
        Some(Mean { mean, ci95, min, max, p50 })
    }
}

impl Quantiles {
    /// The quantiles of these values; `None` if there are none.
    pub fn of(values: &[f64]) -> Option<Quantiles> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let max = *sorted.last()?;
        let [p50, p95, p99] = [0.5, 0.95, 0.99].map(|p| quantile(&sorted, p));
        Some(Quantiles { p50, p95, p99, max })
    }
}

/// The quantile of a sorted, non-empty sample: linear between the two nearest values (R's type 7).
pub fn quantile(sorted: &[f64], p: f64) -> f64 {
    let place = p * (sorted.len() - 1) as f64;
    let (below, above) = (place.floor() as usize, place.ceil() as usize);
    sorted[below] + (sorted[above] - sorted[below]) * (place - below as f64)
}

/// The 97.5th percentile of Student's t distribution.
fn student_975(freedom: f64) -> f64 {
    match StudentsT::new(0.0, 1.0, freedom) {
        Ok(distribution) => distribution.inverse_cdf(0.975),
        Err(_) => f64::NAN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_has_students_interval() {
        // t(0.975, 9) = 2.262157; the sample 1..=10 has mean 5.5 and deviation 3.027650.
        let values: Vec<f64> = (1..=10).map(f64::from).collect();
        let mean = Mean::of(&values).expect("a sample");
        assert_eq!((mean.mean, mean.min, mean.max, mean.p50), (5.5, 1.0, 10.0, 5.5));
        let expected = 2.262_157 * 3.027_650 / 10_f64.sqrt();
        assert!((mean.ci95.expect("ten values") - expected).abs() < 1e-4);
        assert_eq!(Mean::of(&[9.0, 2.0, 1.0]).expect("a sample").p50, 2.0);
        assert_eq!(Mean::of(&[3.0]).expect("a sample").ci95, None);
        assert_eq!(Mean::of(&[]), None);
    }

    #[test]
    fn quantiles_lie_between_the_nearest_values() {
        let values: Vec<f64> = (0..=100).rev().map(f64::from).collect();
        let quantiles = Quantiles::of(&values).expect("a sample");
        let Quantiles { p50, p95, p99, max } = quantiles;
        assert_eq!((p50, p95, p99, max), (50.0, 95.0, 99.0, 100.0));
        assert_eq!(Quantiles::of(&[1.0, 2.0]).expect("a sample").p50, 1.5);
        assert_eq!(Quantiles::of(&[]), None);
    }
}
