//! The sequencer that the paper leaves for later (section 4.3; WINC-BS-12): what comes straight to
//! a mobile host's new base station waits until what its old one held has come through the tunnel.

use sansio::{Duration, Instant, PacketRef};
use std::collections::VecDeque;

/// What waits for one mobile host.
#[derive(Clone, Debug)]
pub(super) struct Sequencer {
    held: VecDeque<PacketRef>,
    bytes: u32,
    /// When it gives up.
    gives_up_at: Instant,
    /// When the tunnel counts as drained, once something came through it.
    drained_at: Option<Instant>,
    /// Its timer's entry.
    pub(super) timer_at: Instant,
}

/// How long it waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waits {
    /// In all, from the opening of the tunnel. 200 ms.
    pub at_most: Duration,
    /// Until the tunnel counts as drained, from the last packet that came through it. 50 ms; the
    /// paper gives none.
    pub drained_after: Duration,
    /// Payload bytes that wait, at most; with more, nothing waits any longer. 80 000.
    pub bytes_max: u32,
}

impl Sequencer {
    pub(super) fn new(waits: &Waits, now: Instant) -> Self {
        Sequencer {
            held: VecDeque::new(),
            bytes: 0,
            gives_up_at: now + waits.at_most,
            drained_at: None,
            timer_at: now + waits.at_most,
        }
    }

    /// When nothing waits any longer.
    pub(super) fn ends_at(&self) -> Instant {
        self.drained_at.map_or(self.gives_up_at, |at| at.min(self.gives_up_at))
    }

    /// Something came through the tunnel.
    pub(super) fn on_tunnelled(&mut self, waits: &Waits, now: Instant) {
        self.drained_at = Some(now + waits.drained_after);
    }

    pub(super) fn bytes(&self) -> u32 {
        self.bytes
    }

    pub(super) fn push(&mut self, packet: PacketRef) {
        self.bytes += packet.payload.len();
        self.held.push_back(packet);
    }

    /// What waited, first come first.
    pub(super) fn into_packets(self) -> VecDeque<PacketRef> {
        self.held
    }

    /// The same, which stay.
    pub(super) fn packets(&self) -> impl Iterator<Item = &PacketRef> {
        self.held.iter()
    }
}
