//! The windows of RFC 6675: halved once per recovery; what may be sent then follows from the
//! scoreboard's pipe, so nothing is inflated.

use super::{Controller, Loss, Repair, Windows};

/// The windows of a sender with a scoreboard.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sack {
    windows: Windows,
}

impl Sack {
    pub(super) fn new(windows: Windows) -> Self {
        Sack { windows }
    }
}

impl Controller for Sack {
    const REPAIR: Repair = Repair::Scoreboard;

    #[inline]
    fn on_new_ack(&mut self, bytes: u32) {
        self.windows.open(bytes);
    }

    fn on_dupack(&mut self) {}

    fn on_fast_retransmit(&mut self, loss: Loss) {
        self.windows.halve(loss);
        self.windows.deflate();
    }

    fn on_recovered(&mut self) {}

    fn on_timeout(&mut self, loss: Loss) {
        self.windows.halve(loss);
        self.windows.collapse();
    }

    fn on_idle(&mut self) {
        self.windows.restart();
    }

    #[inline]
    fn cwnd(&self) -> u32 {
        self.windows.cwnd()
    }

    fn ssthresh(&self) -> u32 {
        self.windows.ssthresh()
    }
}
