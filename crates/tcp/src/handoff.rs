//! What a mobile host's TCP does when told that a handoff is complete (Caceres and Iftode 1995,
//! section IV-C; CI-FRX).
//!
//! As sender it runs its fast retransmit at once, as receiver it repeats its last ACK, so that an
//! unmodified sender does; or the peer tells a sender by a marked ACK. Who tells whom, and when, is
//! not decided here.

use crate::config::HandoffMark;
use crate::connection::Endpoint;
use crate::recovery::Recovery;
use crate::timers::Timer;
use sansio::{EventKind, Instant, Sink};

impl Endpoint {
    /// Sends the oldest unacknowledged segment again, halves the window and begins slow start from
    /// one segment, whatever the sender (CI-FRX-2). Nothing happens if nothing is in flight
    /// (CI-FRX-6).
    pub fn fast_retransmit_on_handoff(&mut self, sink: &mut impl Sink, now: Instant) {
        self.resend_after_handoff(sink, self.local(now));
    }

    /// The peer says that its handoff is over, if this end listens to that (CI-FRX-4).
    #[cold]
    pub(crate) fn on_handoff_mark(&mut self, sink: &mut impl Sink, now: Instant) {
        if self.config.handoff_mark == HandoffMark::Obeyed {
            self.resend_after_handoff(sink, now);
        }
    }

    fn resend_after_handoff(&mut self, sink: &mut impl Sink, now: Instant) {
        if !self.state.may_transmit() || self.sender.flight() == 0 {
            return;
        }
        let seq = self.sender.una;
        let loss = self.loss(0);
        self.statistics.fast_retransmits += 1;
        self.report(sink, || EventKind::FastRetransmit { seq });
        if self.is_linux() {
            return self.on_linux_timeout(1, sink, now);
        }
        if self.is_linux_sack() {
            return self.on_linux_sack_timeout(1, sink, now);
        }
        if let Some(vegas) = self.vegas() {
            vegas.note(0, now);
        }
        self.controller.on_timeout(loss);
        self.controller.collapse();
        self.sender.recovery = Recovery::None;
        self.sender.recover = self.sender.max;
        self.sender.timed = None;
        self.sender.dupacks = 0;
        self.sender.next = seq;
        self.timers.set(Timer::Retransmission, self.rtt.deadline(now));
        self.report_window(sink);
        self.transmit(sink, now);
    }

    /// Sends `copies` identical ACKs without data (CI-FRX-5), if the connection is open.
    pub fn repeat_ack(&mut self, copies: u32, sink: &mut impl Sink, now: Instant) {
        let now = self.local(now);
        if self.state.is_synchronized() {
            (0..copies).for_each(|_| self.send_ack(sink, now));
        }
    }
}
