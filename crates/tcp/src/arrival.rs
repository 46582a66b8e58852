//! Segments in: RFC 9293 section 3.10.7, in its order, with RFC 5961's challenge ACKs.
//!
//! We differ in answering empty segments outside the window at a bounded rate, so that two
//! confused ends never keep each other busy; in accepting an empty segment at the very edge of
//! the window; and in ignoring data on a SYN and the urgent pointer.

use crate::config::ReceiveWindow;
use crate::congestion::{AnyController, SackUse};
use crate::connection::{Endpoint, Opening};
use crate::receiver::{Echo, SHIFT_MAX};
use crate::sender::Fin;
use crate::state::State;
use crate::timers::Timer;
use sansio::{DropReason, Duration, Instant, Packet, Payload, Sink};
use wire::tcp::{Flags, Header};

/// Least time between two answers to segments that need none (RFC 5961, section 7).
const CHALLENGE_INTERVAL: Duration = Duration::from_millis(500);
/// The peer's MSS if it tells none (RFC 9293, 3.7.1).
const MSS_DEFAULT: u16 = 536;
/// Least MSS believed: less would only multiply headers.
const MSS_MIN: u32 = 64;
/// Bytes of the timestamps option with padding.
const TIMESTAMPS_BYTES: u32 = 12;

impl Endpoint {
    /// Takes one packet; returns what became of it.
    #[inline]
    pub(crate) fn on_arrival(
        &mut self,
        packet: &Packet,
        sink: &mut impl Sink,
        now: Instant,
    ) -> DropReason {
        let header = match packet.as_tcp() {
            Some(header) if self.flow.is_reverse_of(packet) => header,
            _ => return DropReason::NoConnection,
        };
        if matches!(packet.payload, Payload::Tunnel(_)) {
            return DropReason::NotAcceptable;
        }
        let reason = match self.state {
            State::Closed => {
                self.refuse(header, packet.payload.len(), sink);
                DropReason::NoConnection
            }
            State::Listen => self.on_listen(header, packet.payload.len(), sink, now),
            State::SynSent => self.on_syn_sent(header, packet.payload.len(), sink, now),
            _ => self.on_segment(header, packet, sink, now),
        };
        if reason != DropReason::Consumed {
            self.statistics.segments_unacceptable += 1;
        }
        reason
    }

    #[inline]
    fn on_segment(
        &mut self,
        header: &Header,
        packet: &Packet,
        sink: &mut impl Sink,
        now: Instant,
    ) -> DropReason {
        let payload_bytes = packet.payload.len();
        let length = header.sequence_length(payload_bytes);
        if !self.receiver.passes_paws(header, now) || !self.receiver.accepts(header.seq, length) {
            self.answer_unacceptable(header, length, sink, now);
            return DropReason::NotAcceptable;
        }
        if header.flags.intersects(Flags::RST.with(Flags::SYN)) {
            return self.on_reset_or_syn(header, sink, now);
        }
        if !header.flags.contains(Flags::ACK) {
            return DropReason::NotAcceptable;
        }
        if self.state == State::SynReceived && !self.complete_handshake(header, sink, now) {
            self.refuse(header, payload_bytes, sink);
            return DropReason::NotAcceptable;
        }
        self.receiver.note_timestamp(header, now);
        if !self.on_ack(header, payload_bytes, sink, now) {
            return DropReason::NotAcceptable;
        }
        if header.options.has_handoff_mark() {
            self.on_handoff_mark(sink, now);
        }
        if self.sender.fin == Fin::Acknowledged {
            self.on_fin_acknowledged(sink, now);
        }
        if payload_bytes > 0 || header.flags.contains(Flags::FIN) {
            if self.state.may_receive() {
                self.receive(header, packet, sink, now);
            } else {
                self.receiver.acknowledge_now();
            }
        }
        self.transmit(sink, now);
        self.acknowledge(sink, now);
        self.receiver.read(now);
        DropReason::Consumed
    }

    #[cold]
    fn on_listen(
        &mut self,
        header: &Header,
        payload_bytes: u32,
        sink: &mut impl Sink,
        now: Instant,
    ) -> DropReason {
        if header.flags.intersects(Flags::RST.with(Flags::ACK)) {
            self.refuse(header, payload_bytes, sink);
            return DropReason::NotAcceptable;
        }
        if !header.flags.contains(Flags::SYN) {
            return DropReason::NotAcceptable;
        }
        self.take_syn(header, now);
        self.enter(State::SynReceived, sink);
        self.send_syn(Flags::SYN.with(Flags::ACK), sink, now);
        DropReason::Consumed
    }

    #[cold]
    fn on_syn_sent(
        &mut self,
        header: &Header,
        payload_bytes: u32,
        sink: &mut impl Sink,
        now: Instant,
    ) -> DropReason {
        let acknowledges = header.flags.contains(Flags::ACK);
        if acknowledges && header.ack != self.sender.max {
            self.refuse(header, payload_bytes, sink);
            return DropReason::NotAcceptable;
        }
        if header.flags.contains(Flags::RST) {
            if acknowledges {
                self.finish(sink);
                return DropReason::Consumed;
            }
            return DropReason::NotAcceptable;
        }
        if !header.flags.contains(Flags::SYN) {
            return DropReason::NotAcceptable;
        }
        self.take_syn(header, now);
        if acknowledges {
            self.establish(header, 0, sink, now);
            self.receiver.acknowledge_now();
            self.transmit(sink, now);
            self.acknowledge(sink, now);
        } else {
            self.enter(State::SynReceived, sink);
            self.send_syn(Flags::SYN.with(Flags::ACK), sink, now);
        }
        DropReason::Consumed
    }

    /// Takes number and options of the peer's SYN.
    fn take_syn(&mut self, header: &Header, now: Instant) {
        let options = &header.options;
        self.receiver.start(header.seq);
        self.receiver.sack = self.config.sack && options.sack_permitted();
        let timestamps = options.timestamps().filter(|_| self.config.timestamps);
        self.receiver.timestamps =
            timestamps.map(|sent| Echo { recent: sent.value, recent_at: now });
        let mut mss = u32::from(options.mss().unwrap_or(MSS_DEFAULT)).max(MSS_MIN);
        mss = mss.min(u32::from(self.config.mss));
        if timestamps.is_some() {
            mss = mss.saturating_sub(TIMESTAMPS_BYTES);
        }
        self.sender.mss = mss.max(1);
        if self.config.receive_window == ReceiveWindow::Tuned {
            self.receiver.start_tuning(self.sender.mss);
        }
        let shifts = self.receiver.shift_wanted(&self.config).zip(options.window_scale());
        self.scales = shifts.is_some();
        if let Some((ours, theirs)) = shifts {
            self.receiver.shift = ours;
            self.sender.window_shift = theirs.min(SHIFT_MAX);
        }
        let mut config = *self.config;
        if self.sender.attempts > 0 {
            // RFC 5681, 3.1: after a lost SYN the initial window is one segment.
            config.initial_window_segments = 1;
        }
        let sack = if self.receiver.sack { SackUse::Agreed } else { SackUse::Refused };
        self.controller = AnyController::new(&config, self.sender.mss, sack);
    }

    /// The peer has our SYN. Its window has `shift`: a SYN's is never scaled.
    fn establish(&mut self, header: &Header, shift: u8, sink: &mut impl Sink, now: Instant) {
        self.sender.una += 1;
        self.sender.attempts = 0;
        self.sender.set_window(header, shift);
        self.timers.stop(Timer::Retransmission);
        let handshake = self.sender.timed.map(|(_, sent_at)| now.since(sent_at));
        self.start_vegas(handshake, now);
        self.measure_round_trip(header, sink, now);
        self.start_pacing(now);
        self.receiver.on_established(now);
        self.enter(State::Established, sink);
        if self.sender.fin == Fin::Pending {
            self.enter(State::FinWait1, sink);
        }
    }

    /// RFC 9293, 3.10.7.4, fifth: an ACK in SYN-RECEIVED; false if it acknowledges anything but
    /// our SYN.
    #[cold]
    fn complete_handshake(&mut self, header: &Header, sink: &mut impl Sink, now: Instant) -> bool {
        let ours = header.ack == self.sender.max;
        if ours {
            self.establish(header, self.sender.window_shift, sink, now);
        }
        ours
    }

    /// RFC 5961, 3.2 and 4.2: only a RST at exactly the next number resets; any other, and any
    /// SYN, is asked about.
    fn on_reset_or_syn(
        &mut self,
        header: &Header,
        sink: &mut impl Sink,
        now: Instant,
    ) -> DropReason {
        if !header.flags.contains(Flags::RST) || header.seq != self.receiver.next {
            self.challenge(sink, now);
            return DropReason::NotAcceptable;
        }
        if self.state == State::SynReceived && self.opening == Opening::Passive {
            self.listen_again(sink);
        } else {
            self.finish(sink);
        }
        DropReason::Consumed
    }

    fn on_fin_acknowledged(&mut self, sink: &mut impl Sink, now: Instant) {
        match self.state {
            State::FinWait1 => self.enter(State::FinWait2, sink),
            State::Closing => self.enter_time_wait(sink, now),
            State::LastAck => self.finish(sink),
            _ => {}
        }
    }

    /// What takes sequence space is answered by an ACK, so that a peer whose ACK was lost gets
    /// another.
    fn answer_unacceptable(
        &mut self,
        header: &Header,
        length: u32,
        sink: &mut impl Sink,
        now: Instant,
    ) {
        if header.flags.contains(Flags::RST) {
            return;
        }
        if length == 0 {
            return self.challenge(sink, now);
        }
        if header.sequence_length(0) < length {
            self.statistics.duplicate_segments_received += 1;
            let next = self.receiver.next;
            self.receiver.note_repetition(header.seq, (header.seq + length).min(next));
        }
        if self.state == State::TimeWait && header.flags.contains(Flags::FIN) {
            self.timers.set(Timer::TimeWait, now + self.config.time_wait);
        }
        self.send_ack(sink, now);
    }

    /// An ACK that asks the peer where it is, at a bounded rate.
    #[cold]
    pub(crate) fn challenge(&mut self, sink: &mut impl Sink, now: Instant) {
        let soon = self.receiver.challenged_at.is_some_and(|at| now.since(at) < CHALLENGE_INTERVAL);
        if !soon {
            self.receiver.challenged_at = Some(now);
            self.send_ack(sink, now);
        }
    }
}
