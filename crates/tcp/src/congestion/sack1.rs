//! Sack1 (Fall and Floyd 1996, "Simulation-based Comparisons of Tahoe, Reno, and SACK TCP";
//! BASE-5): Reno's windows, and in recovery a counter of packets in the network, the pipe.
//!
//! The rules are those of ns-2's Sack1, whose traces are the oracle: the pipe begins with what is
//! in flight less the three packets that duplicate ACKs say have left; it falls by one with each
//! ACK, by another with a partial one, and rises by one with each packet sent; there is room while
//! it is below cwnd. Unlike RFC 6675 it never looks at the scoreboard to count, and the ACK that
//! ends recovery does not open cwnd. We differ in that ACKs older than the last leave the pipe
//! alone.

use super::{Controller, DUPACK_THRESHOLD, Loss, Repair, Windows};

/// Sack1's windows, and its pipe.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sack1 {
    windows: Windows,
    /// Packets thought to be in the network; below zero if ACKs came of more than were counted.
    pipe: i32,
}

impl Sack1 {
    pub(super) fn new(windows: Windows) -> Self {
        Sack1 { windows, pipe: 0 }
    }

    /// So many packets left the network during recovery.
    pub(crate) fn on_left(&mut self, packets: i32) {
        self.pipe = self.pipe.saturating_sub(packets);
    }

    /// A packet was sent during recovery.
    pub(crate) fn on_sent(&mut self) {
        self.pipe = self.pipe.saturating_add(1);
    }

    /// True while cwnd has room for another packet.
    pub(crate) fn has_room(&self) -> bool {
        i64::from(self.pipe) < i64::from(self.windows.cwnd() / self.windows.mss())
    }
}

impl Controller for Sack1 {
    const REPAIR: Repair = Repair::Pipe;

    fn windows(&self) -> &Windows {
        &self.windows
    }

    fn windows_mut(&mut self) -> &mut Windows {
        &mut self.windows
    }

    fn on_fast_retransmit(&mut self, loss: Loss) {
        self.windows.reduce(loss);
        let packets = loss.flight.div_ceil(self.windows.mss());
        self.pipe = packets as i32 - DUPACK_THRESHOLD as i32;
    }
}
