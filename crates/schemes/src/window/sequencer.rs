//! The sequencer that the paper leaves for later (section 4.3; WINC-BS-12): what comes straight to
//! a mobile host's new base station waits until what its old one held has come through the tunnel.

use sansio::{Duration, Instant, PacketRef};
use std::collections::VecDeque;

/// What waits for one mobile host.
#[derive(Clone, Debug)]
pub(super) struct Sequencer {
    held: VecDeque<PacketRef>,
    bytes: u32,
    /// When it gives up, if the tunnel has not opened.
    gives_up_at: Instant,
    /// When it ends in any case.
    ends_by: Instant,
    /// When the tunnel counts as drained, once something came through it.
    drained_at: Option<Instant>,
    /// Its timer's entry.
    pub(super) timer_at: Instant,
}

/// How long it waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waits {
    /// For the tunnel to open, from the first packet that waits. 200 ms.
    pub at_most: Duration,
    /// In all, from the news that it will. 10 s: the life of a binding (PAR-15).
    pub armed: Duration,
    /// Until the tunnel counts as drained, from its opening at the other end or the last packet
    /// that came through it. 50 ms; the paper gives none.
    pub drained_after: Duration,
    /// Payload bytes that wait, at most; with more, nothing waits any longer. 80 000.
    pub bytes_max: u32,
}

impl Sequencer {
    pub(super) fn new(waits: &Waits, now: Instant) -> Self {
        Sequencer {
            held: VecDeque::new(),
            bytes: 0,
            gives_up_at: now + waits.armed,
            ends_by: now + waits.armed,
            drained_at: None,
            timer_at: now + waits.armed,
        }
    }

    /// When nothing waits any longer.
    pub(super) fn ends_at(&self) -> Instant {
        self.drained_at.unwrap_or(self.gives_up_at).min(self.ends_by)
    }

    /// The tunnel is open, or something came through it.
    pub(super) fn on_tunnelled(&mut self, waits: &Waits, now: Instant) {
        self.drained_at = Some(now + waits.drained_after);
    }

    pub(super) fn bytes(&self) -> u32 {
        self.bytes
    }

    pub(super) fn push(&mut self, packet: PacketRef, waits: &Waits, now: Instant) {
        if self.held.is_empty() {
            self.gives_up_at = self.gives_up_at.min(now + waits.at_most);
        }
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
