//! The papers' machines, stacked from engines; and the scenario they stand in.
//!
//! Map: [`scenario`] (what people write), [`plan`] (what a driver runs: one case of a scenario,
//! everything resolved), [`host`] (an end host: endpoints and applications), [`mobile_host`] (the
//! same behind an engine), [`base_station`] (the one function that composes a base station, which
//! both drivers call), [`cell`] (several mobile hosts at one), [`movement`] (where a mobile host
//! is), [`roaming`] (the machines of a network in which it changes cells), [`composition`] (which
//! parts a stack of schemes may have).

pub mod base_station;
pub mod cell;
pub mod composition;
mod divert;
pub mod host;
pub mod mobile_host;
pub mod movement;
pub mod plan;
pub mod roaming;
pub mod scenario;

pub use host::Host;
pub use mobile_host::MobileHost;
pub use plan::Plan;
pub use scenario::{Case, Draft, Scenario};
