//! Runs what is missing of a sweep, on all cores, and keeps each run as it finishes.

use super::{Configuration, Journal, Matrix, StoreError, record};
use crate::compare::sample;
use crate::replicate::Stop;
use rayon::prelude::*;

/// A sweep that ended before its time.
#[derive(Debug, thiserror::Error)]
pub enum ExecuteError {
    /// A run could not be kept.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The worker threads could not be started.
    #[error("start {jobs} worker threads: {reason}")]
    Threads {
        /// How many were wanted.
        jobs: usize,
        /// What the system said.
        reason: String,
    },
}

/// Runs these runs on `jobs` threads (0: all cores) until asked to stop. `done` is called after
/// each run that is kept, from any thread.
///
/// # Errors
/// If a run cannot be kept; those under way are finished, no other is begun.
pub fn execute(
    matrix: &Matrix,
    runs: &[u64],
    jobs: usize,
    journal: &Journal,
    (stop, done): (&Stop, impl Fn() + Sync),
) -> Result<(), ExecuteError> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(jobs.min(runs.len())).build();
    let pool = pool.map_err(|error| ExecuteError::Threads { jobs, reason: error.to_string() })?;
    let one = |last: &mut Option<Configuration>, &run: &u64| -> Result<(), StoreError> {
        if stop.is_asked() {
            return Ok(());
        }
        let (number, seed) = matrix.place(run);
        // Neighbours differ in their seeds alone.
        if last.as_ref().is_none_or(|last| last.number != number) {
            *last = Some(matrix.configuration(number));
        }
        if let Some(configuration) = last {
            let sample = sample(&configuration.plan, seed, trace::Nothing);
            journal.add(&record::encode(configuration.name, &sample))?;
            done();
        }
        Ok(())
    };
    pool.install(|| runs.par_iter().try_for_each_init(|| None, one))?;
    Ok(())
}
