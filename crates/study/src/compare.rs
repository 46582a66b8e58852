//! Every case of a scenario with every seed.

use crate::row::{Row, Sample, World};
use core::sync::atomic::{AtomicBool, Ordering};
use node::host::Application;
use node::plan::{NotSimulated, Transfer};
use node::{Case, Plan, Scenario};
use rayon::prelude::*;
use sim::Outcome;

/// Asks a comparison to end early: runs under way are finished, others are not begun.
#[derive(Debug, Default)]
pub struct Stop(AtomicBool);

impl Stop {
    /// Asks.
    pub fn ask(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// True once asked.
    pub fn is_asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// What came of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// One row per case with at least one finished run.
    pub rows: Vec<Row>,
    /// False if it was asked to stop before all runs were done.
    pub complete: bool,
}

/// A comparison that cannot be begun.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompareError {
    /// A case has no simulation.
    #[error(transparent)]
    NotSimulated(#[from] NotSimulated),
    /// The worker threads could not be started.
    #[error("start {jobs} worker threads: {reason}")]
    Threads {
        /// How many were wanted.
        jobs: usize,
        /// What the system said.
        reason: String,
    },
}

/// Runs every case with every seed on `jobs` threads (0: all cores); the same seeds for every case,
/// so that all meet the same channel. `done` is called after each run, from any thread.
///
/// # Errors
/// Before anything is run: a case that cannot be simulated.
pub fn compare(
    scenario: &Scenario,
    cases: &[Case],
    jobs: usize,
    (stop, done): (&Stop, impl Fn() + Sync),
) -> Result<Comparison, CompareError> {
    let plans: Vec<Plan> =
        cases.iter().map(|case| Plan::new(scenario, case)).collect::<Result<_, _>>()?;
    let seeds: Vec<u64> = (0..u64::from(scenario.seeds)).map(|n| scenario.seed + n).collect();
    let runs: Vec<(usize, u64)> =
        (0..plans.len()).flat_map(|plan| seeds.iter().map(move |seed| (plan, *seed))).collect();
    let jobs = jobs.min(runs.len());
    let pool = rayon::ThreadPoolBuilder::new().num_threads(jobs).build();
    let pool = pool.map_err(|error| CompareError::Threads { jobs, reason: error.to_string() })?;
    let samples: Vec<Option<Sample>> = pool.install(|| {
        let one = |&(plan, seed): &(usize, u64)| {
            if stop.is_asked() {
                return None;
            }
            let sample = sample(&plans[plan], seed);
            done();
            Some(sample)
        };
        runs.par_iter().map(one).collect()
    });
    let complete = samples.iter().all(Option::is_some);
    let mut samples = samples.into_iter();
    let mut row = |(case, plan): (&Case, &Plan)| {
        let samples: Vec<Sample> = samples.by_ref().take(seeds.len()).flatten().collect();
        (!samples.is_empty()).then(|| Row::new(case, plan, World::Sim, samples))
    };
    let rows = cases.iter().zip(&plans).filter_map(&mut row).collect();
    Ok(Comparison { rows, complete })
}

/// One run.
pub(crate) fn sample(plan: &Plan, seed: u64) -> Sample {
    let Outcome { ended_at, finished, measures, failures, .. } =
        sim::run(plan, seed, trace::Nothing);
    let is_sized = |transfer: &Transfer| matches!(transfer.application, Application::Bulk { .. });
    let finished = finished || !plan.transfers.iter().any(is_sized);
    let failures = failures.iter().map(ToString::to_string).collect();
    Sample {
        seed,
        seconds: ended_at.as_secs_f64(),
        finished,
        measures,
        failures,
        radio_late: None,
        radio_mishaps: 0,
    }
}
