//! Which runs a study asks for: combinations of its axes, the cases of each, their seeds; and the
//! name of each run.
//!
//! Runs have numbers, seeds varying fastest, then the cases of a combination, then the last axis.
//! Results stand in that order. A configuration is named by a hash of everything that decides its
//! runs (scenario, case, content of recorded files, version of the model), however it was written.

use super::MODEL;
use super::study::Study;
use core::fmt;
use node::scenario::{Axis as Values, Loss, ScenarioError};
use node::{Case, Draft, Plan, Scenario};
use rayon::prelude::*;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// Most runs of a study: an hour and a half at 2,000 a second.
pub const RUNS_MAX: u64 = 10_000_000;

/// The name of a configuration: 128 bit of SHA-256, in hexadecimal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name(pub u128);

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// All runs of a study.
#[derive(Clone, Debug)]
pub struct Matrix {
    /// The study.
    pub study: Study,
    /// The configurations before each combination; at last, all.
    before: Vec<u32>,
    names: Vec<Name>,
    /// The names in their own order, with the number of the configuration.
    by_name: Vec<(Name, u32)>,
    first_seed: u64,
    seeds: u64,
}

/// What runs that differ only in their seed have in common.
#[derive(Clone, Debug)]
pub struct Configuration {
    /// Its number.
    pub number: usize,
    /// Its name.
    pub name: Name,
    /// Path, hosts and traffic.
    pub scenario: Scenario,
    /// Scheme, sender and channel.
    pub case: Case,
    /// What the simulator runs.
    pub plan: Plan,
}

impl Matrix {
    /// Completes every combination of the study and checks it. `contents` has a hash of the content
    /// of each recorded file, by its name.
    ///
    /// # Errors
    /// A combination that contradicts itself or cannot be simulated, one that is there twice, and
    /// too many runs.
    pub fn new(study: Study, contents: &BTreeMap<String, String>) -> Result<Matrix, ScenarioError> {
        let (first_seed, seeds) =
            (study.base.seed.unwrap_or(1), u64::from(study.base.seeds.unwrap_or(10)));
        if first_seed > i64::MAX as u64 - seeds {
            return Err(study.refuse("seed", format!("seed = {first_seed}: expected less")));
        }
        let mut combinations = study.axes.iter().map(|axis| axis.points.len() as u64);
        let combinations = combinations.try_fold(1, u64::checked_mul).unwrap_or(u64::MAX);
        let runs = combinations.saturating_mul(seeds);
        let too_many = |runs: u64| {
            let message = format!("{runs} runs or more; expected at most {RUNS_MAX}");
            Err(study.refuse_all(message))
        };
        if runs > RUNS_MAX {
            return too_many(runs);
        }
        let names: Result<Vec<Vec<Name>>, ScenarioError> = (0..combinations)
            .into_par_iter()
            .map(|combination| names(&study, combination, contents))
            .collect();
        let mut before = vec![0];
        let mut all = Vec::new();
        for names in names? {
            all.extend(names);
            if all.len() as u64 * seeds > RUNS_MAX {
                return too_many(all.len() as u64 * seeds);
            }
            before.push(all.len() as u32);
        }
        let mut by_name: Vec<(Name, u32)> = all.iter().copied().zip(0..).collect();
        by_name.par_sort_unstable();
        let matrix = Matrix { study, before, names: all, by_name, first_seed, seeds };
        match matrix.by_name.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            None => Ok(matrix),
            Some(pair) => {
                let [one, other] = [0, 1].map(|place| matrix.label(pair[place].1 as usize));
                let message = format!("expected different runs; {other} is the same as {one}");
                Err(matrix.study.refuse_all(message))
            }
        }
    }

    /// How many runs there are.
    pub fn runs(&self) -> u64 {
        self.names.len() as u64 * self.seeds
    }

    /// How many configurations there are.
    pub fn configurations(&self) -> usize {
        self.names.len()
    }

    /// The numbers of a configuration's runs.
    pub fn runs_of(&self, configuration: usize) -> core::ops::Range<u64> {
        let first = configuration as u64 * self.seeds;
        first..first + self.seeds
    }

    /// The configuration and the seed of a run.
    pub fn place(&self, run: u64) -> (usize, u64) {
        ((run / self.seeds) as usize, self.first_seed + run % self.seeds)
    }

    /// The number of the run with this name, if it is one of the study.
    pub fn find(&self, name: Name, seed: u64) -> Option<u64> {
        let place = self.by_name.binary_search_by_key(&name, |(name, _)| *name).ok()?;
        let number = seed.checked_sub(self.first_seed).filter(|number| *number < self.seeds)?;
        Some(self.runs_of(self.by_name[place].1 as usize).start + number)
    }

    /// The name of a configuration.
    pub fn name(&self, configuration: usize) -> Name {
        self.names[configuration]
    }

    /// Everything about a configuration.
    pub fn configuration(&self, number: usize) -> Configuration {
        let (combination, place) = self.combination(number);
        let complete = scenario(&self.study, combination).ok().and_then(|scenario| {
            let case = scenario.cases().swap_remove(place);
            let plan = Plan::new(&scenario, &case).ok()?;
            Some((scenario, case, plan))
        });
        let Some((scenario, case, plan)) = complete else {
            unreachable!("Matrix::new has completed every combination")
        };
        Configuration { number, name: self.names[number], scenario, case, plan }
    }

    /// Where a configuration is on the axes, for people.
    pub fn label(&self, number: usize) -> String {
        let (combination, _) = self.combination(number);
        let Case { scheme, sender, sack, direction, ber, loss, outage, handoff } =
            self.configuration(number).case;
        let mut parts: Vec<String> = points(&self.study, combination)
            .flat_map(|(axis, point)| self.study.axes[axis].keys.iter().zip(&point.values))
            .map(|(key, value)| format!("{key}={value}"))
            .collect();
        let case = [
            ("schemes", scheme),
            ("tcp", sender.to_string()),
            ("sack", sack.to_string()),
            ("direction", direction.to_string()),
            ("ber", ber.to_string()),
            ("loss", loss.to_string()),
            ("outage", outage.to_string()),
            ("handoff", handoff.to_string()),
        ];
        // Left out as in a document.
        let case = case.into_iter().filter(|part| *part != ("handoff", "none".to_owned()));
        for (key, value) in case {
            if !self.study.axes.iter().any(|axis| axis.keys.iter().any(|axis| axis == key)) {
                parts.push(format!("{key}={value}"));
            }
        }
        parts.join(" ")
    }

    /// A hash of all names and seeds: two studies with the same one ask for the same runs.
    pub fn identity(&self) -> String {
        let mut hash = Sha256::new();
        hash.update(self.first_seed.to_le_bytes());
        hash.update(self.seeds.to_le_bytes());
        for name in &self.names {
            hash.update(name.0.to_le_bytes());
        }
        Name(first_128_bits(hash)).to_string()
    }

    /// The combination of a configuration, and which of its cases it is.
    fn combination(&self, configuration: usize) -> (u64, usize) {
        let after = self.before.partition_point(|before| *before as usize <= configuration);
        ((after - 1) as u64, configuration - self.before[after - 1] as usize)
    }
}

/// The point of each axis in a combination, the last axis varying fastest.
fn points(
    study: &Study,
    combination: u64,
) -> impl Iterator<Item = (usize, &super::study::Point)> + use<'_> {
    let mut weight: u64 = study.axes.iter().map(|axis| axis.points.len() as u64).product();
    study.axes.iter().enumerate().map(move |(number, axis)| {
        weight /= axis.points.len() as u64;
        (number, &axis.points[(combination / weight) as usize % axis.points.len()])
    })
}

fn scenario(study: &Study, combination: u64) -> Result<Scenario, ScenarioError> {
    let mut draft: Draft = study.base.clone();
    for (_, point) in points(study, combination) {
        draft.overlay(&point.setting);
    }
    Scenario::complete(draft).map_err(|error| study.refuse(error.key, error.to_string()))
}

/// The names of a combination's configurations.
fn names(
    study: &Study,
    combination: u64,
    contents: &BTreeMap<String, String>,
) -> Result<Vec<Name>, ScenarioError> {
    let scenario = scenario(study, combination)?;
    let mut names = Vec::new();
    for case in scenario.cases() {
        Plan::new(&scenario, &case)
            .map_err(|error| study.refuse(error.key(), error.to_string()))?;
        names.push(name(&scenario, case, contents));
    }
    Ok(names)
}

fn name(scenario: &Scenario, case: Case, contents: &BTreeMap<String, String>) -> Name {
    let content = |name: &mut String| {
        if let Some(content) = contents.get(name) {
            name.clone_from(content);
        }
    };
    let Case { scheme, sender, sack, direction, ber, mut loss, outage, handoff } = case;
    if let Loss::Runs { good, bad } = &mut loss {
        [good, bad].into_iter().for_each(content);
    }
    let mut one = Scenario {
        title: String::new(),
        schemes: Values(vec![scheme]),
        tcp: Values(vec![sender]),
        sack: Some(Values(vec![sack])),
        direction: Values(vec![direction]),
        ber: Values(vec![ber]),
        loss: Values(vec![loss]),
        outage: Values(vec![outage]),
        handoff: Values(vec![handoff]),
        seeds: 1,
        seed: 0,
        ..scenario.clone()
    };
    let recorded = &mut one.recorded;
    let files = [
        &mut recorded.down_capacity,
        &mut recorded.up_capacity,
        &mut recorded.down_delay,
        &mut recorded.up_delay,
        &mut recorded.down_loss,
        &mut recorded.up_loss,
    ];
    files.into_iter().flatten().for_each(content);
    let text = serde_json::to_string(&one);
    let text = text.unwrap_or_else(|error| unreachable!("a scenario serialises: {error}"));
    Name(first_128_bits(Sha256::new().chain_update(MODEL).chain_update(text)))
}

fn first_128_bits(hash: Sha256) -> u128 {
    let bytes = hash.finalize();
    bytes.iter().take(16).fold(0, |number, byte| number << 8 | u128::from(*byte))
}
