//! Delays and losses as recorded: a value for each step of time, repeated at the end.

use super::{Recording, whole_number};
use core::fmt;
use sansio::{Duration, Instant};

/// Recorded delays: on each line the one-way delay in nanoseconds.
#[derive(Clone, PartialEq, Eq)]
pub struct Delays(Vec<Duration>);

/// Recorded losses: on each line 1 if every packet of the step is lost, otherwise 0.
#[derive(Clone, PartialEq, Eq)]
pub struct Losses(Vec<bool>);

/// Most steps of a recording: at 10 ms more than a day.
const STEPS_MAX: usize = 10_000_000;
/// Longest delay that makes sense.
const DELAY_MAX: Duration = Duration::from_secs(10);

impl fmt::Debug for Delays {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Delays({} steps)", self.0.len())
    }
}

impl fmt::Debug for Losses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Losses({} steps)", self.0.len())
    }
}

impl Recording for Delays {
    type Lines = Vec<Duration>;

    fn line(steps: &mut Vec<Duration>, value: &str) -> Result<(), &'static str> {
        let delay = whole_number(value).map(Duration::from_nanos);
        let delay = delay.filter(|delay| *delay <= DELAY_MAX);
        push(steps, delay.ok_or("nanoseconds as a whole number, at most 10000000000 (10 s)")?)
    }

    fn finish(mut steps: Vec<Duration>) -> Result<Delays, &'static str> {
        steps.shrink_to_fit();
        if steps.is_empty() { Err("at least one line with a delay") } else { Ok(Delays(steps)) }
    }
}

impl Recording for Losses {
    type Lines = Vec<bool>;

    fn line(steps: &mut Vec<bool>, value: &str) -> Result<(), &'static str> {
        match value {
            "0" => push(steps, false),
            "1" => push(steps, true),
            _ => Err("0 or 1"),
        }
    }

    fn finish(mut steps: Vec<bool>) -> Result<Losses, &'static str> {
        steps.shrink_to_fit();
        if steps.is_empty() { Err("at least one line with 0 or 1") } else { Ok(Losses(steps)) }
    }
}

impl Delays {
    /// The shortest one.
    pub fn shortest(&self) -> Duration {
        self.0.iter().copied().min().unwrap_or_default()
    }

    /// The delay of a packet that goes on air at `at`.
    pub(crate) fn at(&self, at: Instant, step: Duration) -> Duration {
        self.0[index(at, step, self.0.len())]
    }
}

impl Losses {
    /// Share of a time from the beginning of the recording, in whole steps, in which packets are
    /// lost; over no time, that of the whole recording.
    pub fn share(&self, over: Duration, step: Duration) -> f64 {
        let lost = |steps: &[bool]| steps.iter().filter(|lost| **lost).count() as u64;
        let count = self.0.len() as u64;
        let steps = match over.as_nanos().div_ceil(step.as_nanos().max(1)) {
            0 => count,
            steps => steps,
        };
        let rest = &self.0[..(steps % count) as usize];
        ((steps / count) as f64 * lost(&self.0) as f64 + lost(rest) as f64) / steps as f64
    }

    /// Whether a packet that goes on air at `at` is lost.
    pub(crate) fn at(&self, at: Instant, step: Duration) -> bool {
        self.0[index(at, step, self.0.len())]
    }
}

fn push<T>(steps: &mut Vec<T>, value: T) -> Result<(), &'static str> {
    if steps.len() == STEPS_MAX {
        return Err("the end: a recording has at most 10000000 lines");
    }
    steps.push(value);
    Ok(())
}

fn index(at: Instant, step: Duration, count: usize) -> usize {
    (at.as_nanos() / step.as_nanos().max(1) % count as u64) as usize
}
