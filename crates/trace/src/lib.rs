//! What happened in a run, one [`Record`] per event, the same from the simulator and from the live
//! daemons; and who listens: [`checks`] judge a run, [`metrics`] measure it, [`timeline`] keeps
//! what plots need, [`handoffs`] what they cost, [`roaming`] where a mobile host was and by which
//! [`messages`] it was found, [`story`] what became of each packet, [`hash`] says whether two runs
//! were the same.
//!
//! An [`Observer`] is a type parameter of the driver: with [`Nothing`], no record is even made.

mod by_node;
pub mod captures;
pub mod checks;
mod flows;
pub mod handoffs;
pub mod hash;
pub mod messages;
pub mod metrics;
mod record;
pub mod roaming;
pub mod story;
pub mod text;
pub mod timeline;

pub use record::{CellChange, NodeId, Nothing, Observer, Record, Role, Until, What};
