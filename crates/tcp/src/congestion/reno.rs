//! 4.3BSD-Reno (RFC 2581, RFC 5681 section 3.2; BASE-2): fast recovery, which any new ACK ends.
//!
//! The inflation by duplicate ACKs is kept apart from cwnd, so that a timeout during recovery
//! halves the window and not the inflation.

use super::{Controller, DUPACK_THRESHOLD, Loss, Repair, Windows};

/// Reno's windows.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Reno {
    windows: Windows,
    /// Bytes that duplicate ACKs say have left the network.
    inflation: u32,
}

impl Reno {
    pub(super) fn new(windows: Windows) -> Self {
        Reno { windows, inflation: 0 }
    }

    /// Takes up to so many bytes from the inflation.
    pub(super) fn deflate_by(&mut self, bytes: u32) {
        self.inflation = self.inflation.saturating_sub(bytes);
    }
}

impl Controller for Reno {
    const REPAIR: Repair = Repair::FastRecovery;

    fn windows(&self) -> &Windows {
        &self.windows
    }

    fn windows_mut(&mut self) -> &mut Windows {
        &mut self.windows
    }

    fn on_dupack(&mut self) {
        self.inflation = self.inflation.saturating_add(self.windows.mss());
    }

    fn on_fast_retransmit(&mut self, loss: Loss) {
        self.windows.reduce(loss);
        self.inflation = DUPACK_THRESHOLD * self.windows.mss();
    }

    fn on_recovered(&mut self) {
        self.inflation = 0;
    }

    fn on_timeout(&mut self, loss: Loss) {
        self.inflation = 0;
        self.windows.halve(loss);
        self.windows.collapse();
    }

    #[inline]
    fn cwnd(&self) -> u32 {
        self.windows.cwnd().saturating_add(self.inflation)
    }
}
