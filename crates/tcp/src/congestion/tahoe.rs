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

    fn windows(&self) -> &Windows {
        &self.windows
    }

    fn windows_mut(&mut self) -> &mut Windows {
        &mut self.windows
    }

    fn on_fast_retransmit(&mut self, loss: Loss) {
        self.on_timeout(loss);
    }
}
