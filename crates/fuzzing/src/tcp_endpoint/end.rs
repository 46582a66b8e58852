//! One endpoint under observation.
//!
//! The byte of a stream at sequence number S is named by S: in payload by name the offset is S, in
//! real bytes it is the stream's pattern there, everything modulo 2^32. So whoever made a segment,
//! a byte that is delivered at the wrong place shows.

use bytes::Bytes;
use sansio::{
    Deadline, Delivery, DropReason, Duration, Engine, Event, FlowKey, Input, Instant, Packet,
    PacketId, PacketRef, Payload, Priority, Side, Sink, StreamId,
};
use tcp::{Config, Endpoint, Reading, State};
use wire::tcp::{Flags, Seq};

/// The one stream's name.
const STREAM: StreamId = StreamId(9);

/// How a payload is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// By name.
    Name,
    /// As real bytes.
    Bytes,
}

/// `length` bytes of the stream from sequence number `from`.
pub(super) fn stream(from: u64, length: u32, form: Form) -> Payload {
    match form {
        Form::Name => Payload::Virtual { stream: STREAM, offset: from, length },
        Form::Bytes => {
            let bytes = (from..from + u64::from(length)).map(|at| byte(Seq(at as u32)));
            Payload::Bytes(bytes.collect::<Bytes>())
        }
    }
}

fn byte(seq: Seq) -> u8 {
    STREAM.pattern(u64::from(seq.0))
}

/// Panics unless `payload` is the stream at `seq`.
fn check_stream(payload: &Payload, seq: Seq) {
    match payload {
        Payload::Virtual { stream, offset, length } => {
            let right = *stream == STREAM && *offset as u32 == seq.0;
            assert!(right || *length == 0, "byte {offset} of {stream:?} at {seq}");
        }
        Payload::Bytes(bytes) => {
            let wrong = bytes.iter().zip(0..).find(|&(&found, at)| found != byte(seq + at));
            assert_eq!(wrong, None, "a wrong byte at {seq}");
        }
        Payload::Tunnel(_) => panic!("nobody sent a tunnelled datagram"),
    }
}

/// An endpoint and what is known of it.
pub(super) struct End {
    pub(super) endpoint: Endpoint,
    log: Log,
    /// Checked, and not yet on the wire.
    sent: Vec<PacketRef>,
    isn: Seq,
    /// Bytes written.
    pub(super) written: u64,
    /// Bytes delivered or read.
    pub(super) delivered: u64,
    /// The peer's SYN, as this end took it.
    peer_syn: Option<Seq>,
    /// The right edge of the window offered last.
    edge: Option<Seq>,
    /// How far the clock of its machine is ahead of the world's.
    clock_ahead: Duration,
}

impl End {
    pub(super) fn client((config, isn): (Config, Seq), flow: FlowKey) -> Self {
        End::new(Endpoint::client(config, flow, isn), isn)
    }

    pub(super) fn server((config, isn): (Config, Seq), flow: FlowKey) -> Self {
        End::new(Endpoint::server(config, flow, isn), isn)
    }

    fn new(endpoint: Endpoint, isn: Seq) -> Self {
        End {
            endpoint,
            log: Log::default(),
            sent: Vec::new(),
            isn,
            written: 0,
            delivered: 0,
            peer_syn: None,
            edge: None,
            clock_ahead: Duration::ZERO,
        }
    }

    /// True once the peer's SYN came.
    pub(super) fn has_met_peer(&self) -> bool {
        self.peer_syn.is_some()
    }

    /// In the world's time.
    pub(super) fn next_deadline(&self) -> Option<Deadline> {
        let deadline = self.endpoint.next_deadline()?;
        Some(Deadline { at: deadline.at - self.clock_ahead, ..deadline })
    }

    /// What was sent since the last time.
    pub(super) fn sent(&mut self) -> Vec<PacketRef> {
        core::mem::take(&mut self.sent)
    }

    pub(super) fn open(&mut self, now: Instant) {
        self.endpoint.open(&mut self.log, now + self.clock_ahead);
        self.check();
    }

    /// Every second write is of real bytes.
    pub(super) fn write(&mut self, count: u32, now: Instant) {
        let form = if count & 1 == 0 { Form::Name } else { Form::Bytes };
        let first = u64::from((self.isn + 1).0) + self.written;
        let room = self.endpoint.send_space();
        let taken =
            self.endpoint.write(stream(first, count, form), &mut self.log, now + self.clock_ahead);
        assert!(taken <= count && u64::from(taken) <= room);
        self.written += u64::from(taken);
        self.check();
    }

    /// Closes; false if no connection has begun, so that bytes written are never sent.
    pub(super) fn close(&mut self, now: Instant) -> bool {
        let before = self.endpoint.state();
        self.endpoint.close(&mut self.log, now + self.clock_ahead);
        self.check();
        !matches!(before, State::Closed | State::Listen | State::SynSent) || self.has_met_peer()
    }

    pub(super) fn abort(&mut self, now: Instant) {
        self.endpoint.abort(&mut self.log, now + self.clock_ahead);
        assert_eq!(self.endpoint.state(), State::Closed);
        assert_eq!(self.endpoint.next_deadline(), None, "nothing fires when it is over");
        self.check();
    }

    /// Reads up to `count` bytes, if this end's application reads by itself.
    pub(super) fn read(&mut self, count: u64, now: Instant) {
        let mut left = count.min(self.endpoint.readable());
        while left > 0 {
            let payload = self.endpoint.peek(0, u32::try_from(left).unwrap_or(u32::MAX));
            assert!(!payload.is_empty(), "what is readable can be read");
            self.take_delivered(&payload);
            left -= u64::from(payload.len());
            self.endpoint.consume(u64::from(payload.len()), &mut self.log, now + self.clock_ahead);
        }
        self.check();
    }

    /// Freezes it and restores it on a machine whose clock is this far ahead.
    pub(super) fn move_to_another_clock(&mut self, clock_ahead: Duration, now: Instant) {
        let deadline = self.next_deadline();
        let frozen = self.endpoint.freeze(now + self.clock_ahead);
        self.clock_ahead = clock_ahead;
        self.endpoint = Endpoint::restore(frozen, now + clock_ahead);
        assert_eq!(self.next_deadline(), deadline, "time stands still in between");
    }

    pub(super) fn arrive(&mut self, packet: PacketRef, now: Instant) {
        let before = (self.endpoint.state(), self.log.discarded);
        let header = packet.as_tcp().copied();
        let input = Input::Arrival { side: Side::NETWORK, packet };
        self.endpoint.handle(input, &mut self.log, now + self.clock_ahead);
        assert_eq!(self.log.discarded, before.1 + 1, "every packet ends here, once");
        let state = self.endpoint.state();
        let waited = matches!(before.0, State::Listen | State::SynSent);
        if waited && state != before.0 && state != State::Closed {
            self.peer_syn = header.map(|header| header.seq);
            self.edge = None;
            assert_eq!(self.delivered, 0, "no byte before the handshake");
        }
        self.check();
    }

    pub(super) fn fire(&mut self, now: Instant) {
        let before = self.next_deadline();
        self.endpoint.handle(Input::Timer, &mut self.log, now + self.clock_ahead);
        let after = self.next_deadline();
        if before.is_some_and(|deadline| deadline.at <= now) {
            assert!(after.is_none_or(|after| after.at > now), "{before:?}, then {after:?}");
        } else {
            assert_eq!(before, after, "an early call changes nothing");
            assert!(self.log.sent.is_empty(), "an early call sends nothing");
        }
        self.check();
    }

    /// What was put out, and the memory it takes.
    fn check(&mut self) {
        for payload in core::mem::take(&mut self.log.delivered) {
            assert_eq!(self.endpoint.config().reading, Reading::Immediate);
            assert!(!payload.is_empty(), "a delivery is of bytes");
            self.take_delivered(&payload);
        }
        for packet in core::mem::take(&mut self.log.sent) {
            self.check_segment(&packet);
            self.sent.push(packet);
        }
        let config = self.endpoint.config();
        assert!(self.endpoint.readable() <= u64::from(config.receive_buffer_bytes));
        assert!(self.endpoint.unacknowledged() <= config.send_buffer_bytes.min(self.written));
    }

    fn take_delivered(&mut self, payload: &Payload) {
        let Some(syn) = self.peer_syn else { panic!("no byte before the peer's SYN") };
        check_stream(payload, syn + 1 + self.delivered as u32);
        self.delivered += u64::from(payload.len());
    }

    fn check_segment(&mut self, packet: &Packet) {
        let Some(header) = packet.as_tcp() else { panic!("it sends TCP") };
        let config = *self.endpoint.config();
        assert_eq!(FlowKey::of(packet), Some(self.endpoint.flow()));
        assert_eq!(header.options.validate(), Ok(()));
        let length = packet.payload.len();
        assert!(length <= u32::from(config.mss), "{length} bytes at once");
        if header.flags.contains(Flags::RST) {
            return;
        }
        check_stream(&packet.payload, header.seq);
        let end = header.seq + length;
        let written_end = self.isn + 1 + self.written as u32;
        if length > 0 {
            let offset = u64::from(end.since(self.isn + 1));
            assert!(offset <= self.written, "{offset} of {} bytes", self.written);
        }
        if header.flags.contains(Flags::FIN) {
            assert_eq!(end, written_end, "FIN stands at the end");
        }
        if header.flags.contains(Flags::ACK) {
            let Some(syn) = self.peer_syn else { panic!("an ACK of nothing") };
            let received = self.endpoint.statistics().bytes_received;
            let acknowledged = u64::from(header.ack.since(syn + 1));
            assert!(acknowledged <= received + 1, "{acknowledged} of {received} bytes");
            if config.window_scale.is_none() {
                let edge = header.ack + u32::from(header.window);
                let shrinks = self.edge.is_some_and(|before| edge.before(before));
                assert!(!shrinks, "the window's edge went from {:?} to {edge}", self.edge);
                self.edge = Some(edge);
            }
        }
    }
}

/// What an endpoint puts out.
struct Log {
    sent: Vec<PacketRef>,
    delivered: Vec<Payload>,
    discarded: u64,
    next_id: PacketId,
}

impl Default for Log {
    fn default() -> Self {
        Log { sent: Vec::new(), delivered: Vec::new(), discarded: 0, next_id: PacketId::FIRST }
    }
}

impl Sink for Log {
    const TRACE: bool = true;

    fn new_id(&mut self) -> PacketId {
        let id = self.next_id;
        self.next_id = id.next();
        id
    }

    fn send(&mut self, side: Side, _: Priority, packet: PacketRef) {
        assert_eq!(side, Side::NETWORK);
        self.sent.push(packet);
    }

    fn discard(&mut self, _: PacketRef, _: DropReason) {
        self.discarded += 1;
    }

    fn deliver(&mut self, delivery: Delivery) {
        self.delivered.push(delivery.payload);
    }

    fn event(&mut self, _: Event) {}
}
