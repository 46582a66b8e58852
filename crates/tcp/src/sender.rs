//! The sending half: ACKs in, segments out.
//!
//! RFC 9293 sections 3.10.7.4 (ACKs, window updates) and 3.8.6.2.1 (silly windows), RFC 5681,
//! RFC 6298 (when the timer is armed), RFC 1122 section 4.2.3.4 (Nagle), RFC 2861 (idleness).

use crate::buffer::Buffer;
use crate::config::IdleRestart;
use crate::congestion::{AnyController, Loss, Repair};
use crate::connection::Endpoint;
use crate::output::Segment;
use crate::recovery::Recovery;
use crate::scoreboard::Scoreboard;
use crate::timers::Timer;
use sansio::{Cause, Duration, EventKind, Instant, Sink};
use wire::tcp::{Flags, Header, Seq};

/// What the sending half keeps; what every packet needs first.
#[derive(Clone, Debug, PartialEq)]
#[repr(C)]
pub(crate) struct Sender {
    /// Oldest unacknowledged sequence number, SND.UNA.
    pub(crate) una: Seq,
    /// Next to send, SND.NXT; below `max` while going back N.
    pub(crate) next: Seq,
    /// Highest ever sent, plus one.
    pub(crate) max: Seq,
    /// The peer's window, bytes, SND.WND.
    pub(crate) window: u32,
    /// The largest window the peer ever offered.
    window_max: u32,
    /// Segment that last updated the window: its number, SND.WL1, and ACK, SND.WL2.
    window_from: (Seq, Seq),
    /// Payload of a full segment without SACK blocks, bytes.
    pub(crate) mss: u32,
    /// Duplicate ACKs in a row.
    pub(crate) dupacks: u32,
    /// Timeouts in a row without progress.
    pub(crate) attempts: u32,
    /// Probes of the closed window in a row.
    pub(crate) probes: u32,
    pub(crate) recovery: Recovery,
    /// The peer's shift count.
    pub(crate) window_shift: u8,
    pub(crate) fin: Fin,
    /// A probe carried one unit beyond `max`, and it may have been taken.
    pub(crate) probed: bool,
    /// The segment being timed: its end, and when it was sent.
    pub(crate) timed: Option<(Seq, Instant)>,
    pub(crate) last_data_at: Instant,
    /// Where the last burst of several segments ends: there its receiver is asked to hurry.
    pub(crate) burst_end: Option<Seq>,
    /// Written bytes from `una` on.
    pub(crate) buffer: Buffer,
    pub(crate) scoreboard: Scoreboard,
    /// `max` when the last recovery or timeout began (RFC 6582, 3.2).
    pub(crate) recover: Seq,
    /// When the retransmission timer last fired.
    pub(crate) timed_out_at: Instant,
}

/// How far our FIN is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fin {
    /// More may be written.
    Open,
    /// It follows the buffer, sent or not.
    Pending,
    /// The peer has it.
    Acknowledged,
}

impl Sender {
    pub(crate) fn new(initial_seq: Seq, mss: u32) -> Self {
        Sender {
            una: initial_seq,
            next: initial_seq,
            max: initial_seq,
            recover: initial_seq,
            window: 0,
            window_max: 0,
            window_from: (Seq(0), Seq(0)),
            window_shift: 0,
            mss,
            buffer: Buffer::default(),
            fin: Fin::Open,
            probed: false,
            dupacks: 0,
            recovery: Recovery::None,
            scoreboard: Scoreboard::default(),
            timed: None,
            attempts: 0,
            probes: 0,
            last_data_at: Instant::ZERO,
            burst_end: None,
            timed_out_at: Instant::ZERO,
        }
    }

    /// Sequence space sent and not acknowledged.
    #[inline]
    pub(crate) fn flight(&self) -> u32 {
        self.max.since(self.una)
    }

    /// True if bytes or the FIN are not acknowledged, sent or not.
    #[inline]
    pub(crate) fn has_work(&self) -> bool {
        !self.buffer.is_empty() || self.fin == Fin::Pending
    }

    /// Takes the peer's window from a segment.
    pub(crate) fn set_window(&mut self, header: &Header, shift: u8) {
        self.window = u32::from(header.window) << shift;
        self.window_max = self.window_max.max(self.window);
        self.window_from = (header.seq, header.ack);
    }

    /// No old segment updates the window (RFC 9293, 3.10.7.4).
    #[inline]
    fn update_window(&mut self, header: &Header) {
        let (seq, ack) = self.window_from;
        if seq.before(header.seq) || seq == header.seq && ack.at_or_before(header.ack) {
            self.set_window(header, self.window_shift);
        }
    }

    /// Went on to `end`, with new or old bytes.
    #[inline]
    fn advance(&mut self, units: u32) {
        self.next += units;
        self.max = self.max.max(self.next);
    }
}

/// What an ACK is to the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ack {
    /// It acknowledges something for the first time.
    New,
    /// It repeats the last one (RFC 5681, section 2).
    Duplicate,
    /// It repeats the last one with another window, or with data, or nothing is in flight.
    Update,
    /// Older than the last one.
    Old,
    /// It acknowledges what was never sent.
    Impossible,
}

impl Endpoint {
    /// Takes the ACK field of an acceptable segment; false if the segment must go no further.
    #[inline]
    pub(crate) fn on_ack(
        &mut self,
        header: &Header,
        payload_bytes: u32,
        sink: &mut impl Sink,
        now: Instant,
    ) -> bool {
        match self.classify(header, payload_bytes) {
            Ack::New => {
                self.sender.update_window(header);
                self.on_new_ack(header, sink, now);
            }
            Ack::Duplicate => self.on_dupack(header, sink, now),
            Ack::Update => {
                self.sender.update_window(header);
                if self.is_linux_sack() {
                    self.on_linux_sack_ack(header, (self.sender.una, false), sink, now);
                } else if self.uses_scoreboard() && header.options.sack_blocks().next().is_some() {
                    // Whatever else it says, it counts if it brings news (RFC 6675, 2).
                    self.on_dupack(header, sink, now);
                }
            }
            Ack::Old => {}
            Ack::Impossible => {
                self.challenge(sink, now);
                return false;
            }
        }
        true
    }

    #[inline]
    fn classify(&self, header: &Header, payload_bytes: u32) -> Ack {
        let sender = &self.sender;
        if header.ack.after(sender.una) {
            let highest = sender.max + u32::from(sender.probed);
            return if header.ack.at_or_before(highest) { Ack::New } else { Ack::Impossible };
        }
        if header.ack.before(sender.una) {
            return Ack::Old;
        }
        let window = u32::from(header.window) << sender.window_shift;
        let repeats = payload_bytes == 0
            && !header.flags.contains(Flags::FIN)
            && sender.flight() > 0
            && window == sender.window;
        if repeats { Ack::Duplicate } else { Ack::Update }
    }

    #[inline]
    fn on_new_ack(&mut self, header: &Header, sink: &mut impl Sink, now: Instant) {
        let sender = &mut self.sender;
        let before = sender.una;
        let acked = header.ack.since(sender.una);
        sender.una = header.ack;
        sender.next = sender.next.max(header.ack);
        sender.max = sender.max.max(header.ack);
        sender.probed = false;
        sender.attempts = 0;
        let bytes = u64::from(acked).min(sender.buffer.len());
        sender.buffer.take(bytes);
        if u64::from(acked) > bytes {
            sender.fin = Fin::Acknowledged;
        }
        self.statistics.bytes_acknowledged += bytes;
        if self.is_linux_sack() {
            return self.on_linux_sack_ack(header, (before, false), sink, now);
        }
        if self.is_linux() {
            self.on_linux_ack(header, false, sink, now);
        } else {
            self.measure_round_trip(header, sink, now);
            self.advance_recovery(header, acked, sink, now);
        }
        if self.sender.una == self.sender.max {
            self.timers.stop(Timer::Retransmission);
        } else {
            self.timers.set(Timer::Retransmission, self.retransmission_deadline(now));
        }
    }

    /// Karn's rule: a segment that was sent once is timed. After a timeout the echoed timestamp
    /// stands in, if it is of what was sent since: an ACK that was lost leaves an older one.
    #[inline]
    pub(crate) fn measure_round_trip(
        &mut self,
        header: &Header,
        sink: &mut impl Sink,
        now: Instant,
    ) {
        let is_measured = match self.sender.timed {
            Some((end, _)) => header.ack.at_or_after(end),
            None => self.rtt.is_backed_off(),
        };
        if is_measured {
            self.take_measurement(header, sink, now);
        }
    }

    #[inline(never)]
    fn take_measurement(&mut self, header: &Header, sink: &mut impl Sink, now: Instant) {
        let measured = self.sender.timed.take().map(|(_, sent_at)| self.rtt.measure(sent_at, now));
        let Some(sample) = measured.or_else(|| self.echoed_round_trip(header, now)) else { return };
        self.take_sample(sample, sink);
    }

    /// A round-trip time was measured.
    #[inline]
    pub(crate) fn take_sample(&mut self, sample: Duration, sink: &mut impl Sink) {
        self.rtt.on_sample(sample, self.sender.una, self.sender.max);
        let (smoothed, timeout) = (self.rtt.smoothed(), self.rtt.timeout());
        self.report(sink, || EventKind::Rtt { sample, smoothed, timeout });
    }

    /// The circumstances of a loss, for the controller.
    pub(crate) fn loss(&self, attempt: u32) -> Loss {
        Loss { flight: self.sender.flight(), send_window: self.sender.window, attempt }
    }

    pub(crate) fn report_window(&self, sink: &mut impl Sink) {
        self.report(sink, || EventKind::Window {
            cwnd: self.controller.cwnd(),
            ssthresh: self.controller.ssthresh(),
            flight: self.sender.flight(),
        });
    }

    /// Sends what may be sent.
    #[inline]
    pub(crate) fn transmit(&mut self, sink: &mut impl Sink, now: Instant) {
        if !self.sender.has_work() || !self.state.may_transmit() {
            return;
        }
        if self.sender.una == self.sender.max {
            self.restart_if_idle(now);
        }
        match self.sender.recovery {
            Recovery::Scoreboard { .. } => self.fill_pipe(sink, now),
            Recovery::None | Recovery::Fast if self.is_linux() => {
                self.transmit_linux(sink, now);
            }
            Recovery::None | Recovery::Fast if self.is_linux_sack() => {
                self.transmit_linux_sack(sink, now);
            }
            Recovery::None => while self.send_next(self.cwnd_left(), sink, now) > 0 {},
            Recovery::Fast => {
                let burst = match self.controller.repair() {
                    Repair::PartialAcks => self.config.recovery_burst_max,
                    _ => u32::MAX,
                };
                (0..burst).take_while(|_| self.send_next(self.cwnd_left(), sink, now) > 0).count();
            }
        }
        self.arm(now);
    }

    fn restart_if_idle(&mut self, now: Instant) {
        let idle = now.since(self.sender.last_data_at) > self.rtt.timeout();
        match self.config.idle_restart {
            IdleRestart::InitialWindow if idle => self.controller.on_idle(),
            IdleRestart::Decay if idle => {
                let span = now.since(self.sender.last_data_at).as_nanos();
                let timeouts = span / self.rtt.timeout().as_nanos().max(1);
                self.controller.decay(timeouts.min(u64::from(u32::BITS)) as u32);
            }
            _ => {}
        }
    }

    /// Bytes that cwnd leaves for `next` on.
    #[inline]
    fn cwnd_left(&self) -> u32 {
        let sender = &self.sender;
        let mut in_network = sender.next.since(sender.una);
        if sender.next != sender.max && !self.is_sack1() {
            in_network -= sender.scoreboard.sacked_before(sender.next);
        }
        let limited = self.limited_transmit_bytes();
        self.controller.cwnd().saturating_add(limited).saturating_sub(in_network)
    }

    /// Sends the next segment, new or going back N, if both windows allow it; returns the sequence
    /// space it took.
    #[inline]
    pub(crate) fn send_next(&mut self, by_cwnd: u32, sink: &mut impl Sink, now: Instant) -> u32 {
        let hole = match self.sender.next == self.sender.max {
            true => u32::MAX,
            false => self.skip_sacked(),
        };
        let sender = &self.sender;
        let sent = sender.next.since(sender.una);
        let by_peer = sender.window.saturating_sub(sent);
        let unsent = sender.buffer.len().saturating_sub(u64::from(sent));
        if unsent == 0 {
            let turn = sender.fin == Fin::Pending && u64::from(sent) == sender.buffer.len();
            return if turn && by_peer > 0 { self.send_fin(sink, now) } else { 0 };
        }
        let wanted = unsent.min(u64::from(self.segment_room().min(hole))) as u32;
        if self.config.nagle && self.waits_for_more(wanted) {
            return 0;
        }
        let length = if wanted <= by_cwnd && wanted <= by_peer {
            wanted
        } else if by_peer < wanted && by_peer <= by_cwnd && by_peer > 0 {
            // Only the peer's window is small: half of its largest is worth a segment, less waits
            // for an ACK or the persist timer (RFC 9293, 3.8.6.2.1).
            let is_worth = match &self.controller {
                // The burst was measured to fill the window.
                AnyController::Linux(_) | AnyController::LinuxSack(_) => by_cwnd == by_peer,
                _ => by_peer >= sender.window_max / 2,
            };
            if !is_worth {
                return 0;
            }
            by_peer
        } else {
            return 0;
        };
        let units = self.send_data(self.sender.next, length, sink, now);
        self.advance(units, now);
        units
    }

    /// True if a segment of so many new bytes should be longer first (Nagle).
    fn waits_for_more(&self, wanted: u32) -> bool {
        let sender = &self.sender;
        let is_new = sender.next == sender.max && sender.flight() > 0;
        is_new && wanted < self.segment_room() && sender.fin == Fin::Open
    }

    /// So many units were sent from `next` on.
    #[inline]
    pub(crate) fn advance(&mut self, units: u32, now: Instant) {
        let start = self.sender.next;
        self.sender.advance(units);
        let end = self.sender.max;
        if self.is_linux_sack() {
            return self.on_linux_sack_sent((start, end), now);
        }
        if let Some(linux) = self.linux() {
            linux.on_sent(end, units, now);
        }
    }

    /// Sends one segment of data at `seq`, with the FIN if it ends there; returns the sequence
    /// space it took, which may fall short of `length`.
    #[inline]
    pub(crate) fn send_data(
        &mut self,
        seq: Seq,
        length: u32,
        sink: &mut impl Sink,
        now: Instant,
    ) -> u32 {
        let sender = &mut self.sender;
        let offset = seq.since(sender.una);
        let payload = sender.buffer.slice(u64::from(offset), length);
        let length = payload.len();
        let is_last = u64::from(offset) + u64::from(length) == sender.buffer.len();
        let has_fin = is_last && sender.fin == Fin::Pending && offset + length < sender.window;
        let end = seq + length;
        let pushes = is_last || sender.burst_end == Some(end);
        let flags = match (has_fin, pushes) {
            (true, _) => Flags::ACK.with(Flags::PSH).with(Flags::FIN),
            (false, true) => Flags::ACK.with(Flags::PSH),
            (false, false) => Flags::ACK,
        };
        let cause = if end.at_or_before(sender.max) {
            self.statistics.segments_retransmitted += 1;
            self.statistics.bytes_retransmitted += u64::from(length);
            sender.timed = None;
            Cause::EndToEndRetransmission
        } else {
            if sender.timed.is_none() && seq == sender.max {
                sender.timed = Some((end, now));
            }
            Cause::Original
        };
        sender.last_data_at = now;
        self.statistics.data_segments_sent += 1;
        self.statistics.bytes_sent += u64::from(length);
        self.emit(Segment { seq, flags, payload, cause }, sink, now);
        if let AnyController::Vegas(vegas) = &mut self.controller {
            vegas.on_sent(end, now);
        }
        length + u32::from(has_fin)
    }

    /// Arms the retransmission timer if something is in flight; if nothing is but something waits,
    /// the persist timer.
    #[inline]
    pub(crate) fn arm(&mut self, now: Instant) {
        if self.sender.next != self.sender.una {
            let timers = [Timer::Retransmission, Timer::LossProbe, Timer::Reordering];
            if !timers.into_iter().any(|timer| self.timers.is_armed(timer)) {
                self.timers.set(Timer::Retransmission, self.retransmission_deadline(now));
            }
            self.timers.stop(Timer::Persist);
            self.sender.probes = 0;
        } else if self.sender.has_work() {
            self.timers.stop(Timer::Retransmission);
            if !self.timers.is_armed(Timer::Persist) {
                self.timers.set(Timer::Persist, self.persist_deadline(now));
            }
        }
    }

    /// Sends the FIN as the next unit.
    pub(crate) fn send_fin(&mut self, sink: &mut impl Sink, now: Instant) -> u32 {
        self.emit_fin(self.sender.next, sink, now);
        self.advance(1, now);
        1
    }

    pub(crate) fn emit_fin(&mut self, seq: Seq, sink: &mut impl Sink, now: Instant) {
        let cause = match seq.before(self.sender.max) {
            true => Cause::EndToEndRetransmission,
            false => Cause::Original,
        };
        let flags = Flags::FIN.with(Flags::ACK);
        self.emit(Segment { seq, flags, payload: sansio::Payload::EMPTY, cause }, sink, now);
    }

    /// Sends again what was sent at `seq`: data, or the FIN alone; returns the sequence space.
    pub(crate) fn resend(
        &mut self,
        seq: Seq,
        length: u32,
        sink: &mut impl Sink,
        now: Instant,
    ) -> u32 {
        let offset = u64::from(seq.since(self.sender.una));
        if offset < self.sender.buffer.len() {
            let units = self.send_data(seq, length, sink, now);
            let end = seq + units;
            if end.after(self.sender.next) {
                // The FIN went with it for the first time: its ACK is one of something sent.
                self.advance(end.since(self.sender.next), now);
            }
            return units;
        }
        self.sender.timed = None;
        self.emit_fin(seq, sink, now);
        1
    }
}
