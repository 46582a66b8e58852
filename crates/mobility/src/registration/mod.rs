//! Mobile IPv4 registration (RFC 5944, section 3): [`mobile`] asks, [`foreign`] relays, [`home`]
//! answers.
//!
//! ```text
//!   mobile host ── request ─▶ foreign agent ── request ─▶ home agent
//!               ◀── reply ──                ◀── reply ──
//!                               │ binding update (WINC-BS-5)
//!                               ▼
//!                        previous foreign agent
//! ```

pub mod foreign;
pub mod home;
pub mod mobile;

use sansio::{Duration, Instant};
use wire::mobile_ip::registration::LIFETIME_INFINITE_S;

/// How replays of registrations are told from new ones (RFC 5944, 5.7).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Replay {
    /// By time: both clocks agree within the tolerance.
    #[default]
    Timestamps,
    /// By numbers that each side has chosen for the other's next message.
    Nonces,
}

/// The half of an identification that a reply copies from its request.
fn low(identification: u64) -> u32 {
    identification as u32
}

/// The half that is the home agent's.
fn high(identification: u64) -> u32 {
    (identification >> 32) as u32
}

fn identification(high: u32, low: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

/// When a registration of so many seconds ends.
fn end(lifetime_s: u16, now: Instant) -> Option<Instant> {
    (lifetime_s != LIFETIME_INFINITE_S).then(|| now + Duration::from_secs(lifetime_s.into()))
}
