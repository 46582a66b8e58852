//! Taking back a reduction that no loss called for (Eifel: RFC 3522 detects, RFC 4015 responds).
//!
//! An ACK of new data that echoes a timestamp from before the first retransmission was caused by
//! the original segment, which was late and not lost. Linux asks so at each ACK of a recovery and
//! after a timeout (`tcp_may_undo`), and then restores both windows. A base station that resends
//! the frame it holds delivers the original's timestamp, so it makes the sender find out.

/// What a recovery or a timeout changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Undo {
    /// The windows to restore, until they are or the next episode begins.
    windows: Option<Before>,
    /// Our timestamp clock at the first retransmission of the episode.
    first_resent: Option<u32>,
}

/// The windows before, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Before {
    pub(crate) cwnd: u32,
    pub(crate) ssthresh: u32,
}

impl Undo {
    /// An episode begins; these were the windows.
    pub(crate) fn begin(&mut self, before: Before) {
        self.windows = Some(before);
    }

    /// A segment was sent again when our timestamp clock said `timestamp`.
    pub(crate) fn on_resent(&mut self, timestamp: u32) {
        self.first_resent.get_or_insert(timestamp);
    }

    /// Nothing that was sent again is under way.
    pub(crate) fn forget_resent(&mut self) {
        self.first_resent = None;
    }

    /// True while there is a reduction that could be taken back.
    pub(crate) fn is_open(&self) -> bool {
        self.windows.is_some()
    }

    /// True if an ACK that echoes this timestamp shows the reduction to be a mistake. `is_within`:
    /// it acknowledges less than all that was sent when the episode began.
    pub(crate) fn is_mistake(&self, echo: Option<u32>, is_within: bool) -> bool {
        let late = match (self.first_resent, echo) {
            (Some(resent), Some(echo)) => (echo.wrapping_sub(resent) as i32) < 0,
            (Some(_), None) => false,
            // Nothing was sent again, and yet something new arrived.
            (None, _) => is_within,
        };
        self.is_open() && late
    }

    /// The windows to restore; once.
    pub(crate) fn take(&mut self) -> Option<Before> {
        self.windows.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc_3522_an_echo_from_before_the_retransmission_shows_a_mistake() {
        let mut undo = Undo::default();
        let before = Before { cwnd: 20, ssthresh: 30 };
        assert!(!undo.is_mistake(Some(99), true), "no episode");
        undo.begin(before);
        undo.on_resent(100);
        undo.on_resent(200);
        assert!(!undo.is_mistake(Some(100), true) && !undo.is_mistake(None, true));
        assert!(undo.is_mistake(Some(99), true));
        assert_eq!((undo.take(), undo.take()), (Some(before), None));
    }

    #[test]
    fn the_timestamp_clock_wraps() {
        let mut undo = Undo::default();
        undo.begin(Before { cwnd: 1, ssthresh: 1 });
        undo.on_resent(5);
        assert!(undo.is_mistake(Some(u32::MAX), true));
    }
}
