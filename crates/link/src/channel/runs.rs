//! Losses in a row as somebody measured them: error-free runs and error bursts, counted in
//! packets, of lengths drawn in turn from two empirical distributions, each for itself (the
//! run-length model of a semi-Markov channel; for WaveLAN Nguyen, Katz, Noble and Satyanarayanan,
//! "A trace-based approach for modeling wireless channel behavior", WSC 1996, fitted both).
//!
//! With mean lengths g and b, the share of packets lost is b / (g + b). The hop begins within a
//! run: in a burst with just that probability, and in a run of length n with a probability
//! proportional to n times that of the length, at any of its packets alike.
//!
//! Each line of a file is `LENGTH COUNT` or `LENGTH PROBABILITY`, in any order, each length once.

use super::{Loss, Verdict};
use crate::recorded::{Recording, whole_number};
use core::fmt;
use sansio::Random;
use std::collections::BTreeMap;
use std::sync::Arc;

/// How long runs are.
#[derive(Clone, PartialEq)]
pub struct Lengths {
    lengths: Vec<u32>,
    /// The weights of all lengths up to here.
    weights: Vec<f64>,
    /// The same, of weight times length.
    packets: Vec<f64>,
}

/// Both kinds of runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Packets between losses.
    pub good: Arc<Lengths>,
    /// Packets lost in a row.
    pub bad: Arc<Lengths>,
}

/// The longest run.
const LENGTH_MAX: u64 = 1_000_000_000;
/// Most lengths of a distribution.
const LINES_MAX: usize = 1_000_000;
/// The largest count; a million of them are far from where sums lose their units.
const WEIGHT_MAX: f64 = 1e9;

#[derive(Clone, Debug)]
pub(super) struct Runs {
    config: Config,
    is_bad: bool,
    /// Packets left of this run, at least 1.
    left: u32,
    random: Random,
}

impl fmt::Debug for Lengths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Lengths({}, mean {})", self.lengths.len(), self.mean())
    }
}

impl Recording for Lengths {
    type Lines = BTreeMap<u32, f64>;

    fn line(lines: &mut BTreeMap<u32, f64>, value: &str) -> Result<(), &'static str> {
        const EXPECTED: &str = "LENGTH COUNT or LENGTH PROBABILITY: packets in a row as a whole \
                                number from 1 to 1000000000, a space, a number from 0 to 1e9";
        let mut words = value.split_ascii_whitespace();
        let (Some(length), Some(weight), None) = (words.next(), words.next(), words.next()) else {
            return Err(EXPECTED);
        };
        let length = whole_number(length).filter(|length| (1..=LENGTH_MAX).contains(length));
        let weight = weight.parse().ok().filter(|weight| (0.0..=WEIGHT_MAX).contains(weight));
        let (Some(length), Some(weight)) = (length, weight) else { return Err(EXPECTED) };
        if lines.len() == LINES_MAX {
            return Err("the end: a distribution has at most 1000000 lines");
        }
        match lines.insert(length as u32, weight) {
            None => Ok(()),
            Some(_) => Err("a length that no line before has"),
        }
    }

    fn finish(lines: BTreeMap<u32, f64>) -> Result<Lengths, &'static str> {
        let mut all = Lengths { lengths: Vec::new(), weights: Vec::new(), packets: Vec::new() };
        let (mut weight, mut packets) = (0.0, 0.0);
        for (length, share) in lines.into_iter().filter(|(_, share)| *share > 0.0) {
            weight += share;
            packets += share * f64::from(length);
            all.lengths.push(length);
            all.weights.push(weight);
            all.packets.push(packets);
        }
        let any = !all.lengths.is_empty();
        any.then_some(all).ok_or("at least one line LENGTH COUNT with a count above 0")
    }
}

impl Lengths {
    /// Mean length in packets.
    pub fn mean(&self) -> f64 {
        total(&self.packets) / total(&self.weights)
    }

    fn draw(&self, random: &mut Random) -> u32 {
        self.lengths[place(&self.weights, random)]
    }

    /// What is left of the run in which a packet taken at random lies, itself included.
    fn draw_rest(&self, random: &mut Random) -> u32 {
        let length = self.lengths[place(&self.packets, random)];
        1 + random.below(u64::from(length)) as u32
    }
}

impl Config {
    /// Share of packets lost in the long run.
    pub fn mean_loss(&self) -> f64 {
        self.bad.mean() / (self.good.mean() + self.bad.mean())
    }
}

impl Runs {
    pub(super) fn new(config: &Config, seed: u64, name: &str) -> Self {
        let mut random = Random::new(seed, &format!("{name}.runs"));
        let is_bad = random.chance(config.mean_loss());
        let run = if is_bad { &config.bad } else { &config.good };
        let left = run.draw_rest(&mut random);
        Runs { config: config.clone(), is_bad, left, random }
    }

    pub(super) fn judge(&mut self) -> Verdict {
        let verdict = Verdict::lost_if(self.is_bad, Loss::Run);
        self.left -= 1;
        if self.left == 0 {
            self.is_bad = !self.is_bad;
            let run = if self.is_bad { &self.config.bad } else { &self.config.good };
            self.left = run.draw(&mut self.random);
        }
        verdict
    }
}

fn total(cumulated: &[f64]) -> f64 {
    cumulated.last().copied().unwrap_or_default()
}

/// An index, with a probability proportional to its part of the total.
fn place(cumulated: &[f64], random: &mut Random) -> usize {
    let drawn = random.unit() * total(cumulated);
    let place = cumulated.partition_point(|upto| *upto <= drawn);
    place.min(cumulated.len() - 1)
}
