//! What the Linux sender sends, and when: the part of it that is an [`Endpoint`].

use super::burst::{Burst, DEVICE_BURSTS, Flight};
use super::clock::fires_at;
use super::{Ack, Linux, Resend, State};
use crate::congestion::AnyController;
use crate::connection::Endpoint;
use crate::timers::Timer;
use sansio::{EventKind, Instant, Sink};
use wire::tcp::{Header, Seq};

impl Endpoint {
    /// True if this is the sender.
    #[inline]
    pub(crate) fn is_linux(&self) -> bool {
        matches!(self.controller, AnyController::Linux(_))
    }

    /// Its state.
    #[inline]
    pub(crate) fn linux(&mut self) -> Option<&mut Linux> {
        match &mut self.controller {
            AnyController::Linux(linux) => Some(linux),
            _ => None,
        }
    }

    /// When the retransmission timer fires that is armed now: Linux's does at a tick of its own.
    #[inline]
    pub(crate) fn retransmission_deadline(&self, now: Instant) -> Instant {
        match self.is_linux() {
            true => fires_at(self.rtt.timeout(), self.timestamp_base, now),
            false => self.rtt.deadline(now),
        }
    }

    /// An ACK of something new, or a duplicate one; `una` is already moved.
    pub(crate) fn on_linux_ack(
        &mut self,
        header: &Header,
        is_duplicate: bool,
        sink: &mut impl Sink,
        now: Instant,
    ) {
        let una = self.sender.una;
        let sent = self.sender.max.since(una);
        let ack = Ack {
            una,
            next: self.sender.max,
            is_duplicate,
            echo: self.echoed_timestamp(header),
            can_send_new: u64::from(sent) < self.sender.buffer.len() && sent < self.sender.window,
            loss: self.loss(0),
        };
        let Some(linux) = self.linux() else { return };
        let before = linux.state;
        let acked = linux.queue.acknowledge(una);
        let sample = acked.first_sent_at.map(|at| now.since(at));
        if acked.segments > 0 {
            // A segment sent twice is timed by its timestamp (RFC 7323, 4; `tcp_ack_update_rtt`).
            let sample = sample.or_else(|| self.echoed_age(header, now));
            sample.into_iter().for_each(|sample| self.take_sample(sample, sink));
        }
        let Some(linux) = self.linux() else { return };
        let resend = linux.on_ack(&ack, acked);
        if linux.state == State::Recovery && before != State::Recovery {
            self.statistics.fast_retransmits += 1;
            self.report(sink, || EventKind::FastRetransmit { seq: una });
        }
        match resend {
            Resend::Nothing => {}
            Resend::Lost => self.resend_lost(sink, now),
            Resend::NewFirst => {
                let burst = self.send_linux_bursts(DEVICE_BURSTS, sink, now);
                if self.sender.max == ack.next {
                    self.linux().into_iter().for_each(|linux| linux.frto = false);
                }
                if self.sender.max == ack.next || matches!(burst, Burst::Send(_)) {
                    self.resend_lost(sink, now);
                }
            }
        }
        self.report_window(sink);
    }

    /// The timer fired, or a handoff says so: all is taken for lost, and one segment goes out.
    pub(crate) fn on_linux_timeout(&mut self, attempt: u32, sink: &mut impl Sink, now: Instant) {
        let (una, max, loss) = (self.sender.una, self.sender.max, self.loss(0));
        if let Some(linux) = self.linux() {
            linux.enter_loss(una, max, attempt > 1, loss);
        }
        self.report_window(sink);
        self.resend_lost(sink, now);
        self.transmit(sink, now);
    }

    /// Sends again what is taken for lost, as cwnd allows (`tcp_xmit_retransmit_queue`).
    fn resend_lost(&mut self, sink: &mut impl Sink, now: Instant) {
        loop {
            let una = self.sender.una;
            let timestamp = self.timestamp(now);
            let Some(linux) = self.linux() else { return };
            let Some((start, end)) = linux.queue.next_to_resend() else { return };
            if linux.room() == 0 {
                return;
            }
            linux.queue.on_resent();
            linux.undo.on_resent(timestamp);
            if linux.state == State::Recovery {
                linux.prr.on_sent();
            }
            let start = start.unwrap_or(una).max(una);
            self.resend(start, end.since(start), sink, now);
            if start == una {
                self.timers.set(Timer::Retransmission, self.retransmission_deadline(now));
            }
        }
    }

    /// Sends at most so many bursts of new data; returns what came of the last.
    fn send_linux_bursts(&mut self, most: u32, sink: &mut impl Sink, now: Instant) -> Burst {
        let mut burst = Burst::Nothing;
        for _ in 0..most {
            let una = self.sender.una;
            let Some(flight) = self.linux().map(|linux| linux.flight(una)) else { break };
            burst = self.send_burst(flight, sink, now);
            if !matches!(burst, Burst::Send(_)) {
                break;
            }
        }
        burst
    }

    /// Sends new data as cwnd allows (`tcp_write_xmit`).
    pub(crate) fn transmit_linux(&mut self, sink: &mut impl Sink, now: Instant) {
        let before = self.sender.max;
        let waits = u64::from(self.sender.flight()) < self.sender.buffer.len();
        let burst = self.send_linux_bursts(u32::MAX, sink, now);
        let (una, max) = (self.sender.una, self.sender.max);
        if waits && let Some(linux) = self.linux() {
            linux.note_use(una, max, (max != before, burst == Burst::AwaitAck));
        }
    }
}

impl Linux {
    fn flight(&self, una: Seq) -> Flight {
        Flight {
            room: self.room(),
            segments: self.queue.len(),
            oldest_sent_at: self.queue.first_sent_at(),
            is_repairing: self.state >= State::Recovery,
            has_runt: self.runt.is_some_and(|end| end.after(una)),
            shortest: None,
            pacing: None,
        }
    }

    /// A new segment was sent, up to `end`.
    pub(crate) fn on_sent(&mut self, end: Seq, units: u32, now: Instant) {
        self.queue.push(end, now);
        if units < self.windows.mss() {
            self.runt = Some(end);
        }
        if self.state == State::Recovery {
            self.prr.on_sent();
        }
    }
}
