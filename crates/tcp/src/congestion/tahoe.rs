//! 4.3BSD-Tahoe (Jacobson 1988; CI-TCP-4, CI-TCP-5, CI-TCP-6): every loss is answered by slow start
//! from one segment.
//!
//! We go back to the hole and send everything again, as ns-2 and BASE-1 have it; 4.3BSD-Tahoe sent
//! one segment and then went on where it had been.

use super::{Controller, Loss, Repair, Windows};

/// Tahoe's windows.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tahoe {
    windows: Windows,
}

impl Tahoe {
    pub(super) fn new(windows: Windows) -> Self {
        Tahoe { windows }
    }
}

impl Controller for Tahoe {
    const REPAIR: Repair = Repair::GoBackN;

    #[inline]
    fn on_new_ack(&mut self, bytes: u32) {
        self.windows.open(bytes);
    }

    fn on_dupack(&mut self) {}

    fn on_fast_retransmit(&mut self, loss: Loss) {
        self.windows.halve(loss);
        self.windows.collapse();
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
