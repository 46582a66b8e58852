//! The deterministic simulator: one run of one plan with one seed.
//!
//! Events are keyed by (time, order of setting) in whole nanoseconds. Each hop and each machine
//! has one valid entry in the queue, so a link costs one event per packet that crosses it. Same
//! plan, same seed: the same records, on any machine.
//!
//! Map: [`mod@run`] (one run from plan to outcome), [`kernel`] (the event loop), [`network`] (hops
//! and machines and how they are joined), `cell` (several mobile hosts at one base station), `roam`
//! (several cells), [`course`] (where hosts were among them). No threads, no files, no clock.

mod cell;
pub mod course;
pub mod kernel;
pub mod network;
mod queue;
mod roam;
pub mod run;

pub use run::{Outcome, run};
