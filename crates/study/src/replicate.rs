//! One run for each plan and seed, on all cores.

use core::sync::atomic::{AtomicBool, Ordering};
use node::Plan;
use rayon::prelude::*;

/// Asks for an early end: runs under way are finished, others are not begun.
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

/// The worker threads could not be started.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("start {jobs} worker threads: {reason}")]
pub struct ThreadsError {
    /// How many were wanted.
    pub jobs: usize,
    /// What the system said.
    pub reason: String,
}

/// Runs each of these with `one` on `jobs` threads (0: all cores). The results are in the order of
/// the runs, whatever the threads did; `None` for those not begun when `stop` was asked. `done` is
/// called after each run, from any thread.
///
/// # Errors
/// If the threads cannot be started.
pub fn replicate<T: Send>(
    runs: &[(&Plan, u64)],
    jobs: usize,
    (stop, done): (&Stop, impl Fn() + Sync),
    one: impl Fn(&Plan, u64) -> T + Sync,
) -> Result<Vec<Option<T>>, ThreadsError> {
    let jobs = jobs.min(runs.len());
    let pool = rayon::ThreadPoolBuilder::new().num_threads(jobs).build();
    let pool = pool.map_err(|error| ThreadsError { jobs, reason: error.to_string() })?;
    Ok(pool.install(|| {
        let one = |&(plan, seed): &(&Plan, u64)| {
            if stop.is_asked() {
                return None;
            }
            let result = one(plan, seed);
            done();
            Some(result)
        };
        runs.par_iter().map(one).collect()
    }))
}
