//! Sweeps: every combination of a study's axes with every seed, each run kept under the hash of its
//! complete configuration.
//!
//! Map: [`study`] (the file), [`matrix`] (which runs it asks for, and their names), [`record`] (one
//! finished run as a line of text), [`store`] (the folder that holds them), [`mod@execute`] (runs
//! what is missing), [`columns`] (the schema of the results), [`results`] (what is written at the
//! end), [`formats`] (CSV, JSON and Parquet).
//!
//! What a run is named by decides what can be done with it: a sweep goes on where it was stopped,
//! any number of shards share the work, and their records are put together, because a name says
//! the same everywhere and a record holds nothing but what was measured.

pub mod columns;
pub mod execute;
pub mod formats;
pub mod matrix;
pub mod record;
pub mod results;
pub mod store;
pub mod study;

pub use execute::execute;
pub use formats::Format;
pub use matrix::{Configuration, Matrix, Name};
pub use results::Written;
pub use store::{Index, Journal, Shard, StoreError};
pub use study::Study;

/// The version of the model: a hash of the sources of everything that a run is made of. Two
/// programs with the same one give the same runs.
pub const MODEL: &str = env!("LASTHOP_MODEL");
