//! Several mobile hosts at one base station: how they share its air, and what a scheme takes from a
//! neighbour or gives to it.
//!
//! - *Jain's index* of n goodputs x: (sum x)^2 / (n sum x^2); 1 if all are equal, 1/n if one has
//!   everything (Jain, Chiu and Hawe, DEC-TR-301, 1984).
//! - *neighbours*: all mobile hosts but the first. A scheme that serves the first alone
//!   (`served = first`) harms them if they get less than they would beside a base station that
//!   only forwards, with the same seeds.

use crate::row::{Row, Sample, goodput_bps};
use crate::statistics::{Mean, Quantiles};
use serde::{Deserialize, Serialize};
use trace::metrics::Transfer;

/// How several mobile hosts at one base station fare.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Mobiles {
    /// Goodput of each mobile host, bit/s, in their order: means over the runs.
    pub goodput_bps: Vec<f64>,
    /// Jain's index of their goodputs, of each run.
    pub jain: Option<Mean>,
    /// Goodput of a neighbour, bit/s: the mean over all of them, of each run.
    pub neighbour_bps: Option<Mean>,
    /// That over what it is with `plain` and the same seed, less 1: below 0 they lose. None for
    /// `plain`, and where it was not run.
    pub neighbour_change: Option<Mean>,
    /// How long the neighbours' messages took, seconds, over all runs; for requests.
    pub neighbour_latency_s: Option<Quantiles>,
}

impl Mobiles {
    /// Of runs in which each mobile host has so many transfers; `None` if there is only one host.
    pub(crate) fn of(samples: &[Sample], transfers: usize) -> Option<Mobiles> {
        let goodputs: Vec<Vec<f64>> =
            samples.iter().map(|sample| goodputs(sample, transfers)).collect();
        let mobiles = goodputs.first().map_or(0, Vec::len);
        if mobiles < 2 {
            return None;
        }
        let mean = |mobile: usize| {
            goodputs.iter().map(|run| run[mobile]).sum::<f64>() / goodputs.len() as f64
        };
        let neighbours = samples.iter().flat_map(|run| &run.measures.transfers[transfers..]);
        let latencies = neighbours.flat_map(|transfer: &Transfer| &transfer.latencies);
        let latencies: Vec<f64> = latencies.map(|latency| latency.as_secs_f64()).collect();
        let jains: Vec<f64> = goodputs.iter().filter_map(|run| jain(run)).collect();
        let neighbours: Vec<f64> = goodputs.iter().map(|run| neighbour(run)).collect();
        Some(Mobiles {
            goodput_bps: (0..mobiles).map(mean).collect(),
            jain: Mean::of(&jains),
            neighbour_bps: Mean::of(&neighbours),
            neighbour_change: None,
            neighbour_latency_s: Quantiles::of(&latencies),
        })
    }
}

/// Goodput of each mobile host in a run, bit/s; each has so many transfers.
pub fn goodputs(sample: &Sample, transfers: usize) -> Vec<f64> {
    let own = sample.measures.transfers.chunks(transfers.max(1));
    own.map(|own| goodput_bps(own, own.iter().any(|one| one.complete), sample.seconds)).collect()
}

/// Jain's index; `None` if nobody got anything.
pub fn jain(goodputs: &[f64]) -> Option<f64> {
    let sum: f64 = goodputs.iter().sum();
    let squares: f64 = goodputs.iter().map(|one| one * one).sum();
    (squares > 0.0).then(|| sum * sum / (goodputs.len() as f64 * squares))
}

fn neighbour(goodputs: &[f64]) -> f64 {
    goodputs[1..].iter().sum::<f64>() / (goodputs.len() - 1) as f64
}

/// Sets [`Mobiles::neighbour_change`] in each row beside whose scheme `plain` was run.
pub fn hold_against_plain(rows: &mut [Row]) {
    let changes: Vec<Option<Mean>> = rows.iter().map(|row| change(row, rows)).collect();
    for (row, change) in rows.iter_mut().zip(changes) {
        if let Some(mobiles) = &mut row.mobiles {
            mobiles.neighbour_change = change;
        }
    }
}

fn change(row: &Row, rows: &[Row]) -> Option<Mean> {
    let mobiles = row.mobiles.as_ref()?.goodput_bps.len();
    let plain = rows.iter().find(|plain| plain.scheme == "plain" && plain.is_beside(row))?;
    if row.scheme == plain.scheme {
        return None;
    }
    let neighbour =
        |run: &Sample| neighbour(&goodputs(run, run.measures.transfers.len() / mobiles));
    let one = |sample: &Sample| {
        let before = plain.samples.iter().find(|plain| plain.seed == sample.seed)?;
        let [before, now] = [before, sample].map(neighbour);
        (before > 0.0).then(|| now / before - 1.0)
    };
    Mean::of(&row.samples.iter().filter_map(one).collect::<Vec<f64>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jains_index_is_one_for_equals_and_one_over_n_if_one_has_everything() {
        assert_eq!(jain(&[3.0; 7]), Some(1.0));
        assert_eq!(jain(&[5.0, 0.0, 0.0, 0.0]), Some(0.25));
        // (1 + 2 + 3)^2 / (3 * 14).
        assert_eq!(jain(&[1.0, 2.0, 3.0]), Some(36.0 / 42.0));
        assert_eq!(jain(&[0.0, 0.0]), None);
    }
}
