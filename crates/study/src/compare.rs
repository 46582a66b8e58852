//! Every case of a scenario with every seed.

use crate::mobiles;
use crate::replicate::{Stop, ThreadsError, replicate};
use crate::row::{Row, Sample, World};
use node::host::Application;
use node::plan::{NotSimulated, Transfer};
use node::{Case, Plan, Scenario};
use sim::Outcome;
use trace::Observer;

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
    #[error(transparent)]
    Threads(#[from] ThreadsError),
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
    let runs: Vec<(&Plan, u64)> =
        plans.iter().flat_map(|plan| seeds.iter().map(move |seed| (plan, *seed))).collect();
    let one = |plan: &Plan, seed| sample(plan, seed, trace::Nothing);
    let samples: Vec<Option<Sample>> = replicate(&runs, jobs, (stop, done), one)?;
    let complete = samples.iter().all(Option::is_some);
    let mut samples = samples.into_iter();
    let mut row = |(case, plan): (&Case, &Plan)| {
        let samples: Vec<Sample> = samples.by_ref().take(seeds.len()).flatten().collect();
        (!samples.is_empty()).then(|| Row::new(case, plan, World::Sim, samples))
    };
    let mut rows: Vec<Row> = cases.iter().zip(&plans).filter_map(&mut row).collect();
    mobiles::hold_against_plain(&mut rows);
    Ok(Comparison { rows, complete })
}

/// One run; `observer` sees its records.
pub fn sample<O: Observer>(plan: &Plan, seed: u64, observer: O) -> Sample {
    let Outcome { ended_at, finished, measures, failures, .. } = sim::run(plan, seed, observer);
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
