//! What stands at a mobile host, between its TCP and the air.

use crate::{fast_retransmit, window};
use sansio::{Deadline, Duration, Engine, Input, Instant, Notice, Sink};

/// A mobile host's scheme: an engine with `Side::HOST` toward the host's TCP and `Side::RADIO`
/// toward its base station.
#[derive(Clone, Debug)]
pub enum MobileScheme {
    /// Fast retransmission after a handoff.
    FastRetransmit(Box<fast_retransmit::Agent>),
    /// Window control.
    Window(Box<window::mobile::Agent>),
}

impl MobileScheme {
    /// True if the mobile host's own TCP is to be told of this notice as well: every endpoint then
    /// sends its oldest segment again (CI-FRX-2).
    pub fn asks_own_tcp(&self, notice: &Notice) -> bool {
        match self {
            MobileScheme::FastRetransmit(agent) => agent.asks_own_tcp(notice),
            MobileScheme::Window(_) => false,
        }
    }

    /// How long the machine takes to give a notice to it.
    pub fn told_after(&self) -> Duration {
        match self {
            MobileScheme::FastRetransmit(agent) => agent.config().delay,
            MobileScheme::Window(_) => Duration::ZERO,
        }
    }
}

impl From<fast_retransmit::Config> for MobileScheme {
    fn from(config: fast_retransmit::Config) -> Self {
        MobileScheme::FastRetransmit(Box::new(fast_retransmit::Agent::new(config)))
    }
}

impl From<window::mobile::Config> for MobileScheme {
    fn from(config: window::mobile::Config) -> Self {
        MobileScheme::Window(Box::new(window::mobile::Agent::new(config)))
    }
}

impl Engine for MobileScheme {
    #[inline]
    fn handle(&mut self, input: Input, sink: &mut impl Sink, now: Instant) {
        match self {
            MobileScheme::FastRetransmit(agent) => agent.handle(input, sink, now),
            MobileScheme::Window(agent) => agent.handle(input, sink, now),
        }
    }

    #[inline]
    fn next_deadline(&self) -> Option<Deadline> {
        match self {
            MobileScheme::FastRetransmit(agent) => agent.next_deadline(),
            MobileScheme::Window(agent) => agent.next_deadline(),
        }
    }
}
