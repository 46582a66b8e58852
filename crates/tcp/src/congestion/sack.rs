//! The windows of RFC 6675: halved once per recovery; what may be sent then follows from the
//! scoreboard's pipe, so nothing is inflated.

use super::{Controller, Repair, Windows};

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

    fn windows(&self) -> &Windows {
        &self.windows
    }

    fn windows_mut(&mut self) -> &mut Windows {
        &mut self.windows
    }
}
