//! What the sender does when nobody answers: retransmission timeout (RFC 6298, section 5; CI-TCP-3,
//! CI-TCP-4) and persist (RFC 9293, section 3.8.6.1).
//!
//! We differ from RFC 6298 in never lengthening the first timeout of data after a lost SYN (5.7).

use crate::connection::Endpoint;
use crate::recovery::Recovery;
use crate::state::State;
use crate::timers::Timer;
use sansio::{Duration, EventKind, Instant, Sink};
use wire::tcp::Flags;

/// Bounds of the persist timer (Stevens, TCP/IP Illustrated 1, 22.2).
const PERSIST_MIN: Duration = Duration::from_secs(5);
const PERSIST_MAX: Duration = Duration::from_secs(60);
/// Doublings of the persist timer beyond this change nothing.
const PROBES_DOUBLED_MAX: u32 = 6;

impl Endpoint {
    /// The retransmission timer fired (RFC 6298, 5.4 to 5.6; CI-TCP-3, CI-TCP-4).
    pub(crate) fn on_retransmission_timeout(&mut self, sink: &mut impl Sink, now: Instant) {
        self.sender.attempts += 1;
        let attempt = self.sender.attempts;
        if attempt > self.config.timeouts_max {
            return self.give_up(sink, now);
        }
        self.statistics.timeouts += 1;
        let seq = self.sender.una;
        self.report(sink, || EventKind::Timeout { seq, attempt });
        self.rtt.back_off();
        self.sender.timed = None;
        self.sender.timed_out_at = now;
        match self.state {
            State::SynSent => return self.send_syn(Flags::SYN, sink, now),
            State::SynReceived => return self.send_syn(Flags::SYN.with(Flags::ACK), sink, now),
            _ => {}
        }
        if self.is_linux() {
            return self.on_linux_timeout(attempt, sink, now);
        }
        if self.is_linux_sack() {
            return self.on_linux_sack_timeout(attempt, sink, now);
        }
        let loss = self.loss(attempt);
        if let Some(vegas) = self.vegas() {
            vegas.note(0, now);
        }
        self.controller.on_timeout(loss);
        let sender = &mut self.sender;
        sender.dupacks = 0;
        sender.recovery = Recovery::None;
        sender.scoreboard.clear();
        sender.recover = sender.max;
        sender.next = sender.una;
        self.report_window(sink);
        self.transmit(sink, now);
    }

    /// Too many timeouts in a row: the peer is taken for dead.
    fn give_up(&mut self, sink: &mut impl Sink, now: Instant) {
        let value = u64::from(self.config.timeouts_max);
        self.report(sink, || EventKind::Limit { name: "tcp timeouts in a row", value });
        if self.state.is_synchronized() {
            self.send_control(Flags::RST.with(Flags::ACK), sink, now);
        }
        self.finish(sink);
    }

    pub(crate) fn persist_deadline(&self, now: Instant) -> Instant {
        let doubled = 1 << self.sender.probes.min(PROBES_DOUBLED_MAX);
        let span = (self.rtt.timeout() * doubled).clamp(PERSIST_MIN, PERSIST_MAX);
        self.rtt.deadline_after(span, now)
    }

    /// A closed window is probed with what waits first: what the window allows (RFC 9293,
    /// 3.8.6.2.1, case 4), or one byte beyond it, or the FIN (3.8.6.1). The connection stays open
    /// however long that lasts.
    pub(crate) fn on_persist_timeout(&mut self, sink: &mut impl Sink, now: Instant) {
        let idle = self.sender.next == self.sender.una;
        if !idle || !self.state.may_transmit() || !self.sender.has_work() {
            return;
        }
        self.sender.probes = self.sender.probes.saturating_add(1);
        self.statistics.window_probes += 1;
        let una = self.sender.una;
        let wanted = self.sender.buffer.len().min(u64::from(self.segment_room())) as u32;
        let allowed = wanted.min(self.sender.window);
        if allowed > 0 {
            let units = self.send_data(una, allowed, sink, now);
            self.advance(units, now);
            return self.arm(now);
        }
        if self.sender.max == una {
            self.sender.probed = true;
        }
        if wanted > 0 {
            self.send_data(una, 1, sink, now);
            self.sender.timed = None;
        } else {
            self.emit_fin(una, sink, now);
        }
        self.timers.set(Timer::Persist, self.persist_deadline(now));
    }
}
