//! Mobile IP and handoff: how packets find a host that moves. Knows no scheme.
//!
//! ```text
//!   fixed host ── home agent ══ tunnel ══ base station ~ radio ~ mobile host
//!                               tunnel ══ another one  ~
//! ```
//!
//! Three engines are the machines of the papers: [`registration::home::HomeAgent`], [`station::BaseStation`] (a
//! foreign agent in Mobile IP's words) and [`mobile::MobileHost`]. What they are made of:
//!
//! - [`tunnel`]: a datagram in another one, in IP or in UDP.
//! - [`registration`]: Mobile IPv4 (RFC 5944) of mobile host, foreign agent and home agent.
//! - [`binding`]: where a mobile host is now, as the home agent and the previous agent know it.
//! - [`beacon`], [`signal`], [`choice`]: which cells are heard, how well, and which one is taken.
//! - [`agents`]: the list of foreign agents, asked for ahead of the handoff.
//! - [`handoff`]: greeting, moved notice and completion between base stations.
//! - [`forward`]: packets kept at the old base station and sent on.
//! - [`multicast`]: a group for each mobile host, base stations that forward or buffer it.
//! - [`inbox`]: what is checked of every handoff message before it is read.
//! - [`clock`], [`refusal`], [`retry`], [`agenda`]: replay protection, counted refusals, bounded
//!   repetition, timers by name.
//!
//! Nothing here fails: a message that is malformed, not proved, replayed, stale or meant for
//! somebody else changes nothing and is counted ([`refusal::Refusals`]; MOD-10). Every table has a
//! bound and every question is repeated so many times and no more (MOD-14).

pub mod agenda;
pub mod agents;
pub mod beacon;
pub mod binding;
pub mod choice;
pub mod clock;
pub mod forward;
pub mod handoff;
pub mod inbox;
pub mod mobile;
pub mod multicast;
mod post;
pub mod refusal;
pub mod registration;
pub mod retry;
pub mod signal;
pub mod station;
pub mod tunnel;

use core::net::Ipv4Addr;
use std::collections::BTreeMap;
use std::rc::Rc;

/// The key of each mobile host by its home address, shared by all agents of a network.
pub type Keys = Rc<BTreeMap<Ipv4Addr, wire::auth::Key>>;
