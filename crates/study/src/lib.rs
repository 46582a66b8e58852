//! Many runs: replicates of every case of a scenario on all cores, summarised with 95 % intervals.
//!
//! Map: [`mod@compare`] (all cases, all seeds), [`row`] (the result schema, the same for simulator
//! and lab), [`statistics`] (means, intervals, quantiles), [`mod@advice`] (one sentence with its
//! reason), [`sweep`] (every combination of a study's axes, kept run by run).

pub mod advice;
pub mod compare;
pub mod row;
pub mod statistics;
pub mod sweep;

pub use advice::advice;
pub use compare::{Comparison, Stop, compare};
pub use row::{Lateness, Row, Sample, World};
