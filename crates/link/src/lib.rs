//! The emulated hop: rate, delay, queues, error channels, outages.
//!
//! One [`Hop`] is one direction of one link, first-in-first-out within each of two priorities,
//! with computed departures: nothing happens inside it between two calls, so the simulator needs
//! one event per packet and the lab's radio emulator one timer per direction. A full-duplex link
//! is two hops ([`preset::Pair`]); two that share the air have an arbiter
//! ([`hop::half_duplex`]), and so have the hops of several cells on one channel ([`hop::medium`]).
//!
//! ```text
//!            full: back to the caller
//!              ▲
//!   enqueue ───┴─▶ queue (High, Normal) ─▶ air: host cost, bits ─▶ delay ─▶ poll: Arrived, Lost
//!                                          │        │
//!                               Departed ◀─┘        └─ channels and outages decide here
//! ```
//!
//! Map: [`hop`] (the hop and its configuration), [`queue`] (limits, priorities), [`channel`] (what
//! the air does to packets, one file each), [`outage`] (times during which the link is away),
//! [`preset`] (links by name), [`statistics`] (counters).

pub mod channel;
pub mod hop;
pub mod outage;
mod pace;
mod pipe;
pub mod preset;
pub mod queue;
pub mod recorded;
pub mod statistics;

pub use channel::Loss;
pub use hop::{Hop, Outcome, What};
pub use outage::Outages;
pub use queue::Limit;
pub use statistics::Statistics;
