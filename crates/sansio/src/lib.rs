//! The contract of every engine: what comes in, what goes out, when to be woken.
//!
//! An engine is a value with two verbs ([`Engine`]): it takes one [`Input`] with the time and puts
//! what follows into the caller's [`Sink`]; and it names its next [`Deadline`]. It has no clock, no
//! input or output of its own, no threads and no unseeded randomness, so one engine runs unchanged
//! in the simulator and between real kernels.
//!
//! Map: [`time`] (instants and durations in nanoseconds), [`units`] (bit rates), [`packet`] (one
//! parsed datagram with its identity and story), [`engine`] (the contract), [`event`] (what an
//! engine reports), [`timers`] (one named table for few timers, one indexed queue for many),
//! [`flows`] (look-up by four-tuple), [`random`] (one stream per component).

pub mod engine;
pub mod event;
pub mod flows;
pub mod packet;
pub mod random;
pub mod time;
pub mod timers;
pub mod units;

pub use engine::{
    Deadline, Delivery, DropReason, Engine, Handoff, HandoffStage, Input, Losses, Notice, Priority,
    Side, Sink,
};
pub use event::{Event, EventKind};
pub use flows::{FlowIndex, FlowKey, Host};
pub use packet::{Cause, Frame, Packet, PacketId, PacketRef, Payload, StreamId, Transport};
pub use random::Random;
pub use time::{Duration, Instant};
pub use timers::{TimerQueue, TimerTable};
pub use units::{BitRate, Signal};
