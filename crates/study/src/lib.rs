//! Many runs: replicates of every case of a scenario on all cores, summarised with 95 % intervals.
//!
//! Map: [`mod@replicate`] (many runs on all cores), [`mod@compare`] (all cases, all seeds),
//! [`sweep`] (every combination of a study's axes, kept run by run), [`row`] (the result schema,
//! the same for simulator and lab), [`mobiles`] (several at one base station), [`statistics`]
//! (means, intervals, quantiles), [`mod@advice`] (one sentence with its reason), [`mod@validation`]
//! (how well senders were held against the kernel's).

pub mod advice;
pub mod compare;
pub mod handoffs;
pub mod mobiles;
pub mod replicate;
pub mod row;
pub mod statistics;
pub mod sweep;
pub mod validation;

pub use advice::advice;
pub use compare::{Comparison, compare};
pub use replicate::{Stop, replicate};
pub use row::{Lateness, QueueDelay, Row, Sample, World};
pub use validation::{Validation, validation};
