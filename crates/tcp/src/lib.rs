//! A TCP endpoint on byte sequence numbers, with the papers' senders.
//!
//! [`Endpoint`] is one end of one connection, an engine on `Side::NETWORK`: handshake, FIN, RST,
//! simultaneous open and half-close (RFC 9293), window scaling, timestamps and PAWS (RFC 7323),
//! SACK (RFC 2018, RFC 6675), limited transmit (RFC 3042), delayed ACKs, zero windows and persist,
//! Karn and RFC 6298 or BSD's ticks, Nagle's algorithm (RFC 1122), challenge ACKs (RFC 5961). It is
//! told everything by a [`Config`] and freezes at any instant into a [`Frozen`].
//!
//! Not built: urgent data, ECN, data on a SYN, keep-alive.
//!
//! Map: [`config`] (parameters and presets), `connection` (what is called from outside), `arrival`
//! (segments in), `sender`, `recovery` and `timeouts` (what is sent, and when again), `receiver`
//! and `reassembly` (what came), `output` (packets), `rtt`, `scoreboard`, `buffer`, `timers`,
//! [`state`], `congestion` (one per sender), `finer` (when Vegas sends again), `linux` (the
//! sender that Linux calls `reno`, and today's with SACK, state machines of their own), `tuning`
//! (its receiver), `frozen`, `handoff` (what a mobile host is told), [`oracle`] (replay of ns-2's
//! traces).

mod arrival;
mod buffer;
pub mod config;
mod congestion;
mod connection;
mod finer;
mod frozen;
mod handoff;
mod linux;
pub mod oracle;
mod output;
mod reassembly;
mod receiver;
mod recovery;
mod rtt;
mod scoreboard;
mod sender;
pub mod state;
mod statistics;
mod timeouts;
mod timers;
mod tuning;

pub use config::{Config, Congestion, DelayedAck, HandoffMark, Reading};
pub use connection::Endpoint;
pub use frozen::Frozen;
pub use state::State;
pub use statistics::Statistics;
