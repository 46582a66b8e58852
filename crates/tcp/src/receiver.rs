//! The receiving half: data in, the window offered, when to acknowledge.
//!
//! RFC 9293 sections 3.8.6.2.2 (silly windows) and 3.8.6.3 (delayed ACKs), RFC 5681 section 4.2
//! (what is acknowledged at once), RFC 7323 (PAWS). We differ in offering the whole buffer
//! whenever it is empty, however little was read.

use crate::buffer::Buffer;
use crate::config::{Config, DelayedAck, Reading, ReceiveWindow};
use crate::connection::Endpoint;
use crate::reassembly::{Reassembly, SACK_BLOCKS_MAX};
use crate::state::State;
use crate::timers::Timer;
use crate::tuning::{self, Tuning, Waiting};
use sansio::{Delivery, Duration, EventKind, Instant, Packet, Payload, Sink};
use wire::tcp::{Flags, Header, SackBlock, Seq, Timestamps};

/// What the receiving half keeps; what every packet needs first.
#[derive(Clone, Debug, PartialEq)]
#[repr(C)]
pub(crate) struct Receiver {
    /// Next expected, RCV.NXT.
    pub(crate) next: Seq,
    /// The highest number ever offered, plus one: RCV.NXT + RCV.WND.
    pub(crate) edge: Seq,
    pub(crate) last_ack_sent: Seq,
    /// Segments since the last ACK.
    unanswered: u32,
    buffer_bytes: u32,
    mss: u32,
    /// Shift count of our window fields.
    pub(crate) shift: u8,
    /// SACK blocks are sent.
    pub(crate) sack: bool,
    tells_repetitions: bool,
    /// In-order bytes go to the application at once ([`Reading::Immediate`]).
    reads_at_once: bool,
    /// The FIN and all before it came.
    pub(crate) finished: bool,
    ack: AckDue,
    /// Where the peer's FIN stands.
    fin: Option<Seq>,
    /// What arrived again, for the next ACK to tell, if such is told.
    dsack: Option<SackBlock>,
    /// Of a Linux receiver.
    tuning: Option<Box<Tuning>>,
    delayed_ack: DelayedAck,
    /// Timestamps are in use; the peer's to echo.
    pub(crate) timestamps: Option<Echo>,
    pub(crate) reassembly: Reassembly,
    /// In-order bytes that were not read; None yet, as ever where they are read at once.
    pub(crate) unread: Option<Box<Buffer>>,
    pub(crate) challenged_at: Option<Instant>,
}

/// The peer's timestamp to echo (RFC 7323, 4.3).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Echo {
    pub(crate) recent: u32,
    pub(crate) recent_at: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum AckDue {
    No,
    Later,
    Now,
}

/// A timestamp older than this says nothing (RFC 7323, 5.5).
const PAWS_AGE_MAX: Duration = Duration::from_secs(24 * 24 * 3600);
/// Pieces kept out of order: one per this many bytes of receive buffer, and some.
const PIECE_BYTES: usize = 128;
const PIECES_MIN: usize = 64;
/// Largest window field without scaling.
const FIELD_MAX: u32 = u16::MAX as u32;
/// Largest shift count (RFC 7323, 2.3).
pub(crate) const SHIFT_MAX: u8 = 14;
/// Largest receive buffer: the window that field and shift can offer.
const BUFFER_MAX: u32 = FIELD_MAX << SHIFT_MAX;

impl Receiver {
    pub(crate) fn new(config: &Config) -> Self {
        let buffer_bytes = config.receive_buffer_bytes.min(BUFFER_MAX);
        Receiver {
            next: Seq(0),
            edge: Seq(0),
            shift: 0,
            sack: false,
            dsack: None,
            tells_repetitions: config.dsack,
            reads_at_once: config.reading == Reading::Immediate,
            delayed_ack: config.delayed_ack,
            timestamps: None,
            unread: None,
            reassembly: Reassembly::default(),
            fin: None,
            finished: false,
            last_ack_sent: Seq(0),
            ack: AckDue::No,
            unanswered: 0,
            challenged_at: None,
            buffer_bytes,
            mss: u32::from(config.mss),
            tuning: None,
        }
    }

    /// The shift count to offer: as configured, but no more than the buffer needs, since each
    /// bit makes the window coarser.
    pub(crate) fn shift_wanted(&self, config: &Config) -> Option<u8> {
        // Linux's shift is for its memory, not for the window that it makes of it.
        let most = match config.receive_window {
            ReceiveWindow::Whole => self.buffer_bytes,
            ReceiveWindow::Tuned => tuning::memory_for(self.buffer_bytes),
        };
        let needed = (0..SHIFT_MAX).find(|shift| most >> shift <= FIELD_MAX);
        config.window_scale.map(|shift| shift.min(needed.unwrap_or(SHIFT_MAX)))
    }

    /// How many bytes are in order and were not read.
    #[inline]
    pub(crate) fn unread_bytes(&self) -> u64 {
        self.unread.as_ref().map_or(0, |unread| unread.len())
    }

    fn pieces_max(&self) -> usize {
        self.buffer_bytes as usize / PIECE_BYTES + PIECES_MIN
    }

    /// Begins after the peer's SYN.
    pub(crate) fn start(&mut self, syn: Seq) {
        self.next = syn + 1;
        self.edge = self.next;
        self.last_ack_sent = self.next;
    }

    /// From here on the window is tuned; segments have at most `mss` bytes.
    pub(crate) fn start_tuning(&mut self, mss: u32) {
        self.tuning = Some(Box::new(Tuning::new(mss, self.buffer_bytes, self.sack)));
    }

    /// The handshake is over.
    pub(crate) fn on_established(&mut self, now: Instant) {
        self.tuning.iter_mut().for_each(|tuning| tuning.start(now));
    }

    /// The application of a Linux receiver reads all that is in order, once that is acknowledged.
    #[inline]
    pub(crate) fn read(&mut self, now: Instant) {
        let span = self.waiting().span;
        self.tuning.iter_mut().for_each(|tuning| tuning.read(span, now));
    }

    /// What waits beyond a hole.
    #[inline]
    fn waiting(&self) -> Waiting {
        let span = self.reassembly.end().map_or(0, |end| end.since(self.next));
        Waiting { packets: self.reassembly.packets(), span }
    }

    pub(crate) fn forget_holes(&mut self) {
        self.reassembly = Reassembly::default();
    }

    /// True if some of `seq .. seq + length` is wanted (RFC 9293, 3.10.7.4), or it is empty and
    /// within the window or at its edge, where a peer that has used up its window acknowledges.
    #[inline]
    pub(crate) fn accepts(&self, seq: Seq, length: u32) -> bool {
        if seq == self.next {
            return true;
        }
        match length {
            0 => seq.after(self.next) && seq.at_or_before(self.edge),
            _ => (seq + length).after(self.next) && seq.before(self.edge),
        }
    }

    /// True if the peer's timestamp is not older than one seen before (PAWS).
    #[inline]
    pub(crate) fn passes_paws(&self, header: &Header, now: Instant) -> bool {
        let Some(echo) = &self.timestamps else { return true };
        if header.flags.contains(Flags::RST) {
            return true;
        }
        match header.options.timestamps() {
            // A segment without the option is let go (RFC 7323, 3.2).
            None => false,
            Some(sent) => {
                let old = Seq(sent.value).before(Seq(echo.recent));
                !old || now.since(echo.recent_at) > PAWS_AGE_MAX
            }
        }
    }

    /// Remembers the timestamp of a segment that begins at or before the last ACK sent.
    #[inline]
    pub(crate) fn note_timestamp(&mut self, header: &Header, now: Instant) {
        let Some(echo) = &mut self.timestamps else { return };
        let Some(Timestamps { value, .. }) = header.options.timestamps() else { return };
        if header.seq.at_or_before(self.last_ack_sent) {
            *echo = Echo { recent: value, recent_at: now };
        }
    }

    /// The window field of the next segment; what it offers is never taken back.
    #[inline]
    pub(crate) fn offer_window(&mut self) -> u16 {
        let edge = self.edge_wanted();
        let window = match edge.after(self.edge) && !self.is_silly(edge) {
            true => edge.since(self.next),
            false => self.edge.since(self.next),
        };
        // Linux rounds up, so that nothing is scaled away (`__tcp_select_window`).
        let coarse = (1 << self.shift) - 1;
        let rounded = if self.tuning.is_some() { window + coarse } else { window };
        let field = (rounded >> self.shift).min(FIELD_MAX);
        self.edge = self.edge.max(self.next + (field << self.shift));
        field as u16
    }

    /// True if reading has opened the window far enough to tell the peer.
    pub(crate) fn should_tell_window(&self) -> bool {
        let edge = self.edge_wanted();
        let step = (2 * self.mss).min(self.buffer_bytes / 2).max(1);
        edge.after(self.edge) && edge.since(self.edge) >= step
    }

    /// Every segment acknowledges.
    #[inline]
    pub(crate) fn on_ack_sent(&mut self) {
        self.last_ack_sent = self.next;
        self.ack = AckDue::No;
        self.unanswered = 0;
        self.dsack = None;
        if let Some(tuning) = &mut self.tuning {
            tuning.on_ack_sent();
        }
    }

    pub(crate) fn acknowledge_now(&mut self) {
        self.ack = AckDue::Now;
    }

    /// Up to `room.len()` SACK blocks; returns how many. What arrived again comes first, once
    /// (RFC 2883, 4).
    #[inline]
    pub(crate) fn sack_blocks(&self, room: &mut [SackBlock]) -> usize {
        if !self.sack {
            return 0;
        }
        room.iter_mut().zip(self.dsack).for_each(|(first, again)| *first = again);
        let count = usize::from(self.dsack.is_some());
        match self.reassembly.is_empty() {
            true => count,
            false => count + self.reassembly.blocks(&mut room[count..]),
        }
    }

    /// True if the next ACK has SACK blocks.
    #[inline]
    pub(crate) fn has_sack_blocks(&self) -> bool {
        !self.reassembly.is_empty() || self.dsack.is_some()
    }

    /// These bytes arrived again.
    pub(crate) fn note_repetition(&mut self, start: Seq, end: Seq) {
        if self.sack && self.tells_repetitions && start.before(end) {
            self.dsack = Some(SackBlock { start, end });
        }
    }

    /// Most blocks beside the other options of a segment.
    pub(crate) fn sack_blocks_max(&self) -> usize {
        if self.timestamps.is_some() { SACK_BLOCKS_MAX - 1 } else { SACK_BLOCKS_MAX }
    }

    #[inline]
    fn is_quick(&self) -> bool {
        self.tuning.as_ref().is_some_and(|tuning| tuning.is_quick())
    }

    #[inline]
    fn edge_wanted(&self) -> Seq {
        let free = u64::from(self.buffer_bytes).saturating_sub(self.unread_bytes()) as u32;
        let Some(tuning) = &self.tuning else { return self.next + free };
        self.next + free.min(tuning.window(self.waiting(), self.shift))
    }

    /// RFC 9293, 3.8.6.2.2, for a buffer that is not empty.
    #[inline]
    fn is_silly(&self, edge: Seq) -> bool {
        let step = self.mss.min(self.buffer_bytes / 2);
        self.unread_bytes() > 0 && edge.since(self.edge) < step
    }
}

impl Endpoint {
    /// Takes the data and FIN of an acceptable segment.
    #[inline]
    pub(crate) fn receive(
        &mut self,
        header: &Header,
        packet: &Packet,
        sink: &mut impl Sink,
        now: Instant,
    ) {
        let has_fin = header.flags.contains(Flags::FIN);
        let length = packet.payload.len();
        self.tune(header, length, now);
        let receiver = &mut self.receiver;
        let end = header.seq + length;
        let in_order = header.seq == receiver.next
            && end.at_or_before(receiver.edge)
            && receiver.reassembly.is_empty()
            && receiver.fin.is_none();
        if in_order && !has_fin {
            self.accept(packet.payload.clone(), sink);
            let is_pushed = header.flags.contains(Flags::PSH) || length < self.sender.mss;
            self.delay_ack(packet.segments(), is_pushed, now);
            return;
        }
        self.receive_slowly(header, &packet.payload, sink);
        if self.receiver.fin == Some(self.receiver.next) && !self.receiver.finished {
            self.receiver.next += 1;
            self.receiver.finished = true;
            self.on_fin(sink, now);
        }
    }

    /// Anything but the next bytes alone: parts are old, beyond the window or a hole, or there is
    /// a FIN. All of that is acknowledged at once (RFC 5681, 4.2).
    fn receive_slowly(&mut self, header: &Header, payload: &Payload, sink: &mut impl Sink) {
        let receiver = &mut self.receiver;
        receiver.ack = AckDue::Now;
        let limit = receiver.fin.unwrap_or(receiver.edge).min(receiver.edge);
        let end = header.seq + payload.len();
        let start = header.seq.max(receiver.next);
        let stop = end.min(limit);
        if header.flags.contains(Flags::FIN) && receiver.fin.is_none() {
            let highest = receiver.reassembly.end().unwrap_or(receiver.next);
            let believable = end.at_or_after(highest) && end.at_or_before(receiver.edge);
            if believable {
                receiver.fin = Some(end);
            }
        }
        if !start.before(stop) {
            if !payload.is_empty() {
                self.statistics.duplicate_segments_received += 1;
                receiver.tuning.iter_mut().for_each(|tuning| tuning.on_repetition());
                receiver.note_repetition(header.seq, end);
            }
            return;
        }
        let fresh = payload.slice(start.since(header.seq), stop.since(header.seq));
        if start.after(receiver.next) {
            self.statistics.out_of_order_segments_received += 1;
            let pieces_max = receiver.pieces_max();
            let held = receiver.tells_repetitions.then(|| receiver.reassembly.bytes());
            let is_kept = receiver.reassembly.insert(start, &fresh, pieces_max);
            if is_kept && held == Some(receiver.reassembly.bytes()) {
                receiver.note_repetition(start, stop);
            }
            let waiting = receiver.waiting();
            receiver.tuning.iter_mut().for_each(|tuning| tuning.on_out_of_order(waiting));
            if !is_kept {
                let value = pieces_max as u64;
                self.report(sink, || EventKind::Limit { name: "tcp pieces out of order", value });
            }
            return;
        }
        self.accept(fresh, sink);
        while let Some(payload) = self.receiver.reassembly.pop(self.receiver.next) {
            let bytes = payload.len();
            self.receiver.tuning.iter_mut().for_each(|tuning| tuning.on_joined(bytes));
            self.accept(payload, sink);
        }
    }

    /// Takes the next bytes in order.
    #[inline]
    fn accept(&mut self, payload: Payload, sink: &mut impl Sink) {
        let length = payload.len();
        self.receiver.next += length;
        self.statistics.bytes_received += u64::from(length);
        if self.receiver.reads_at_once {
            sink.deliver(Delivery { payload });
        } else {
            self.receiver.unread.get_or_insert_default().push(payload);
        }
    }

    /// What a segment of data tells a Linux receiver.
    #[inline]
    fn tune(&mut self, header: &Header, length: u32, now: Instant) {
        if self.receiver.tuning.is_none() {
            return;
        }
        let pause = self.rtt.timeout();
        let echo = self.echoed_timestamp(header).zip(self.echoed_age(header, now));
        let receiver = &mut self.receiver;
        let Some(tuning) = &mut receiver.tuning else { return };
        tuning.on_data(pause, now);
        if let Some((echo, age)) = echo.filter(|_| length >= self.sender.mss) {
            tuning.on_echo(echo, age);
        }
        let end = header.seq + length;
        if header.seq.at_or_before(receiver.next) && end.after(receiver.next) {
            tuning.on_in_order(end.since(receiver.next), receiver.reassembly.packets());
        }
    }

    /// `is_pushed`: it ends what the peer had to send at once. A Linux receiver that sends no data
    /// itself acknowledges such a segment when it is read (`tcp_cleanup_rbuf`).
    #[inline]
    fn delay_ack(&mut self, segments: u32, is_pushed: bool, now: Instant) {
        let is_one_way = self.statistics.data_segments_sent == 0;
        let receiver = &mut self.receiver;
        receiver.unanswered += segments;
        let hurries = receiver.is_quick() || receiver.tuning.is_some() && is_pushed && is_one_way;
        match receiver.delayed_ack {
            DelayedAck::Within(span) if receiver.unanswered < 2 && !hurries => {
                receiver.ack = AckDue::Later;
                if !self.timers.is_armed(Timer::DelayedAck) {
                    self.timers.set(Timer::DelayedAck, now + span);
                }
            }
            DelayedAck::None | DelayedAck::Within(_) => receiver.ack = AckDue::Now,
        }
    }

    /// Sends an ACK if one is due and no other segment has carried it.
    #[inline]
    pub(crate) fn acknowledge(&mut self, sink: &mut impl Sink, now: Instant) {
        if self.receiver.ack == AckDue::Now {
            self.send_ack(sink, now);
        }
    }

    /// The peer's FIN is in order (RFC 9293, 3.10.7.4, eighth).
    fn on_fin(&mut self, sink: &mut impl Sink, now: Instant) {
        match self.state {
            State::Established => self.enter(State::CloseWait, sink),
            State::FinWait1 => self.enter(State::Closing, sink),
            State::FinWait2 => self.enter_time_wait(sink, now),
            _ => {}
        }
    }

    pub(crate) fn enter_time_wait(&mut self, sink: &mut impl Sink, now: Instant) {
        self.enter(State::TimeWait, sink);
        self.timers.stop(Timer::Retransmission);
        self.timers.stop(Timer::Persist);
        self.timers.set(Timer::TimeWait, now + self.config.time_wait);
    }
}
