//! The deterministic simulator: one run of one plan with one seed.
//!
//! Events are keyed by (time, order of setting) in whole nanoseconds, in the indexed queue that
//! engines use for their own timers: each hop and each machine has one entry, which moves. So
//! nothing stale is ever kept, and a link costs one event per packet that crosses it. Same plan,
//! same seed: the same records, on any machine.
//!
//! Map: [`run`] (one run from plan to outcome), [`kernel`] (the event loop), [`network`] (hops and
//! machines and how they are joined). No threads, no files, no clock.

pub mod kernel;
pub mod network;
pub mod run;

pub use run::{Outcome, run};
