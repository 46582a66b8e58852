//! Whole runs: the same seed, soft state, and what must hold from arithmetic alone.

mod departures;
mod determinism;
mod handoff_schemes;
mod many_flows;
mod mobiles;
mod physics;
mod plans;
mod short_queues;
mod soft_state;
mod stories;
mod tahoe;
mod uplink;
