//! Building packets: headers, options, identities.

use crate::connection::Endpoint;
use crate::timers::Timer;
use sansio::{Cause, Duration, FlowKey, Instant, Packet, Payload, Priority, Side, Sink, Transport};
use wire::ip::{self, Protocol};
use wire::tcp::{Flags, Header, Options, SackBlock, Seq, Timestamps, kind};

/// One segment to send.
pub(crate) struct Segment {
    pub(crate) seq: Seq,
    pub(crate) flags: Flags,
    pub(crate) payload: Payload,
    pub(crate) cause: Cause,
}

/// One tick of the timestamp clock (RFC 7323, 5.4: 1 ms to 1 s).
const TIMESTAMP_TICK: Duration = Duration::from_millis(1);

impl Endpoint {
    /// Sends a segment of an open connection; it carries every ACK that was due.
    #[inline]
    pub(crate) fn emit(&mut self, segment: Segment, sink: &mut impl Sink, now: Instant) {
        let window = self.receiver.offer_window();
        let ack = self.receiver.next;
        let mut options = Options::default();
        if let Some(echo) = &self.receiver.timestamps {
            let value = self.timestamp(now);
            let pushed = options.push_timestamps(Timestamps { value, echo: echo.recent });
            debug_assert!(pushed.is_ok(), "there are no other options");
        }
        if self.receiver.has_sack_blocks() {
            self.push_sack(&mut options);
        }
        self.receiver.on_ack_sent();
        self.timers.stop(Timer::DelayedAck);
        let Segment { seq, flags, payload, cause } = segment;
        // In one expression: a header changed field by field costs more to move than to make.
        let header = Header { seq, ack, flags, window, options, ..self.header() };
        self.post(header, payload, cause, sink);
    }

    /// A pure ACK. Its number is the highest sent, so that it is in order whatever is being sent
    /// again.
    #[inline]
    pub(crate) fn send_ack(&mut self, sink: &mut impl Sink, now: Instant) {
        self.send_control(Flags::ACK, sink, now);
    }

    /// A segment without data at the highest number sent.
    pub(crate) fn send_control(&mut self, flags: Flags, sink: &mut impl Sink, now: Instant) {
        self.statistics.control_segments_sent += 1;
        let seq = self.sender.max;
        let segment = Segment { seq, flags, payload: Payload::EMPTY, cause: Cause::Original };
        self.emit(segment, sink, now);
    }

    /// SYN or SYN, ACK, with the options offered or agreed; first or again.
    pub(crate) fn send_syn(&mut self, flags: Flags, sink: &mut impl Sink, now: Instant) {
        let answers = flags.contains(Flags::ACK);
        let again = self.sender.attempts > 0;
        let mut header = Header { seq: self.sender.una, flags, ..self.header() };
        let sender = &mut self.sender;
        sender.max = sender.una + 1;
        sender.next = sender.max;
        sender.timed = (!again).then_some((sender.max, now));
        self.push_syn_options(&mut header, answers, now);
        if answers {
            header.ack = self.receiver.next;
        }
        let shift = core::mem::take(&mut self.receiver.shift);
        header.window = self.receiver.offer_window();
        self.receiver.shift = shift;
        self.timers.set(Timer::Retransmission, self.rtt.deadline(now));
        self.statistics.control_segments_sent += 1;
        let cause = if again { Cause::EndToEndRetransmission } else { Cause::Original };
        self.post(header, Payload::EMPTY, cause, sink);
    }

    /// Answers a segment of no connection (RFC 9293, 3.10.7.1).
    pub(crate) fn refuse(&mut self, header: &Header, payload_bytes: u32, sink: &mut impl Sink) {
        if header.flags.contains(Flags::RST) {
            return;
        }
        let mut reset = self.header();
        if header.flags.contains(Flags::ACK) {
            reset.flags = Flags::RST;
            reset.seq = header.ack;
        } else {
            reset.flags = Flags::RST.with(Flags::ACK);
            reset.ack = header.seq + header.sequence_length(payload_bytes);
        }
        self.statistics.control_segments_sent += 1;
        self.post(reset, Payload::EMPTY, Cause::Original, sink);
    }

    /// Payload of a full segment beside the SACK blocks that are due (RFC 6691).
    #[inline]
    pub(crate) fn segment_room(&self) -> u32 {
        if !self.receiver.has_sack_blocks() {
            return self.sender.mss;
        }
        let mut blocks = [SackBlock::default(); 4];
        let count = self.receiver.sack_blocks(&mut blocks[..self.sack_blocks_max()]);
        let bytes = if count == 0 { 0 } else { 4 + 8 * count as u32 };
        self.sender.mss.saturating_sub(bytes).max(1)
    }

    /// The round-trip time by the timestamp that an ACK echoes, if that was sent after the last
    /// timeout.
    pub(crate) fn echoed_round_trip(&self, header: &Header, now: Instant) -> Option<Duration> {
        let ticks = self.timestamp(now).wrapping_sub(self.echoed_timestamp(header)?);
        let ticks_since_timeout =
            self.timestamp(now).wrapping_sub(self.timestamp(self.sender.timed_out_at));
        (ticks <= ticks_since_timeout).then(|| TIMESTAMP_TICK * u64::from(ticks))
    }

    /// How old the timestamp is that an ACK echoes, at least one tick.
    pub(crate) fn echoed_age(&self, header: &Header, now: Instant) -> Option<Duration> {
        let ticks = self.timestamp(now).wrapping_sub(self.echoed_timestamp(header)?).max(1);
        (ticks < 1 << 31).then(|| TIMESTAMP_TICK * u64::from(ticks))
    }

    /// The timestamp that an ACK echoes.
    pub(crate) fn echoed_timestamp(&self, header: &Header) -> Option<u32> {
        self.receiver.timestamps?;
        header.options.timestamps().map(|timestamps| timestamps.echo)
    }

    /// Our timestamp clock; it begins at a number of the connection's own, and its ticks at an
    /// instant of the host's own.
    #[inline]
    pub(crate) fn timestamp(&self, now: Instant) -> u32 {
        let phase = u64::from(self.timestamp_base % 1000) * TIMESTAMP_TICK.as_nanos() / 1000;
        let ticks = now.as_nanos().saturating_add(phase) / TIMESTAMP_TICK.as_nanos();
        (ticks as u32).wrapping_add(self.timestamp_base)
    }

    fn sack_blocks_max(&self) -> usize {
        self.receiver.sack_blocks_max().min(self.config.sack_blocks_max)
    }

    fn push_sack(&self, options: &mut Options) {
        let mut blocks = [SackBlock::default(); 4];
        let room = &mut blocks[..self.sack_blocks_max()];
        let count = self.receiver.sack_blocks(room);
        options.push_sack(&room[..count]);
    }

    fn push_syn_options(&self, header: &mut Header, answers: bool, now: Instant) {
        let config = &self.config;
        let receiver = &self.receiver;
        header.options = Default::default();
        let [high, low] = config.mss.to_be_bytes();
        let mut pushed = header.options.push(&[kind::MSS, 4, high, low]);
        if config.sack && (!answers || receiver.sack) {
            let option = [kind::NOP, kind::NOP, kind::SACK_PERMITTED, 2];
            pushed = pushed.and(header.options.push(&option));
        }
        if config.timestamps && (!answers || receiver.timestamps.is_some()) {
            let echo = receiver.timestamps.map_or(0, |echo| echo.recent);
            let value = self.timestamp(now);
            pushed = pushed.and(header.options.push_timestamps(Timestamps { value, echo }));
        }
        if let Some(shift) = receiver.shift_wanted(config)
            && (!answers || self.scales)
        {
            let option = [kind::NOP, kind::WINDOW_SCALE, 3, shift];
            pushed = pushed.and(header.options.push(&option));
        }
        debug_assert!(pushed.is_ok(), "4 + 4 + 12 + 4 bytes fit into 40");
    }

    /// A header with our ports.
    #[inline]
    fn header(&self) -> Header {
        Header::new(self.flow.source.port, self.flow.destination.port)
    }

    #[inline]
    fn post(&mut self, header: Header, payload: Payload, cause: Cause, sink: &mut impl Sink) {
        let identification = self.next_identification();
        let FlowKey { source, destination } = self.flow;
        let ip = ip::Header::new(source.address, destination.address, Protocol::TCP);
        let packet = Packet {
            id: sink.new_id(),
            parent: None,
            cause,
            ip: ip::Header { identification, ..ip },
            transport: Transport::Tcp(header),
            payload,
            segment_bytes: None,
            frame: None,
        };
        let packet = sink.place(packet);
        sink.send(Side::NETWORK, Priority::Normal, packet);
    }

    /// IPv4 identifications count up (SNHO and MCAST rows tell packets apart by them).
    #[inline]
    fn next_identification(&mut self) -> u16 {
        if self.flow.source.address.is_ipv6() {
            return 0;
        }
        self.identification = self.identification.wrapping_add(1);
        self.identification
    }
}
