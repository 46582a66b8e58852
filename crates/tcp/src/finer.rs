//! Vegas' finer retransmissions (Brakmo and Peterson 1995, section 3.1): any duplicate ACK, and the
//! first two new ACKs after a retransmission, look at how long ago the first segment in flight was
//! sent. If that is longer than a timeout by an exact clock, it is sent again without waiting for
//! the third duplicate ACK.

use crate::congestion::{AnyController, Controller, DUPACK_THRESHOLD, Vegas};
use crate::connection::Endpoint;
use crate::recovery::Recovery;
use crate::timers::Timer;
use sansio::{Duration, Instant, Sink};

impl Endpoint {
    pub(crate) fn vegas(&mut self) -> Option<&mut Vegas> {
        match &mut self.controller {
            AnyController::Vegas(vegas) => Some(vegas),
            _ => None,
        }
    }

    /// The handshake is over, after this long if that is known.
    pub(crate) fn start_vegas(&mut self, handshake: Option<Duration>, now: Instant) {
        let first = self.sender.una;
        if let Some(vegas) = self.vegas() {
            vegas.start(first, handshake, now);
        }
    }

    /// A duplicate ACK, which is counted already.
    pub(crate) fn on_vegas_dupack(&mut self, sink: &mut impl Sink, now: Instant) {
        let dupacks = self.sender.dupacks;
        let is_past = self.sender.una.after(self.sender.recover);
        let Some(vegas) = self.vegas() else { return };
        vegas.note(dupacks, now);
        let is_late = vegas.is_late();
        let is_fresh = is_past || !vegas.has_timed_out();
        match self.sender.recovery {
            Recovery::None if is_fresh && (is_late || dupacks == DUPACK_THRESHOLD) => {
                self.fast_retransmit(sink, now);
                self.sender.dupacks = DUPACK_THRESHOLD;
            }
            Recovery::None => {}
            _ if is_late => {
                if let Some(vegas) = self.vegas() {
                    vegas.on_late_again();
                }
                self.timers.set(Timer::Retransmission, self.rtt.deadline(now));
                self.resend_first(sink, now);
            }
            _ => {
                self.controller.on_dupack();
                self.report_window(sink);
            }
        }
    }

    /// A new ACK; `una` is already moved.
    #[inline(never)]
    pub(crate) fn on_vegas_ack(&mut self, sink: &mut impl Sink, now: Instant) {
        let (una, next) = (self.sender.una, self.sender.next);
        let in_flight = self.sender.flight() > 0;
        let was_recovering = self.sender.recovery != Recovery::None;
        self.sender.recovery = Recovery::None;
        let Some(vegas) = self.vegas() else { return };
        vegas.note(0, now);
        if was_recovering {
            vegas.on_recovered();
        }
        vegas.on_progress(una, next);
        if in_flight && vegas.shows_another_loss() {
            self.sender.recovery = Recovery::Fast;
            self.sender.dupacks = DUPACK_THRESHOLD;
            self.resend_first(sink, now);
        }
    }
}
