//! A drill: one endpoint, a peer played by hand, and a trace that reads like tcpdump's.
//!
//! Numbers are relative to the initial ones. `sends` takes everything sent since it was last
//! called: flags, first and last number, acknowledgment. A drill that fails prints its steps.

use crate::pair::{Log, flow};
use sansio::{
    Duration, Engine, EventKind, Input, Instant, Packet, PacketId, PacketRef, Payload, Side,
    StreamId,
};
use tcp::{Config, Endpoint};
use wire::ip::{self, Protocol};
use wire::tcp::{Flags, HANDOFF_MARK, Header, SackBlock, Seq, Timestamps, kind};

pub(crate) struct Drill {
    pub(crate) end: Endpoint,
    pub(crate) log: Log,
    pub(crate) now: Instant,
    isn: Seq,
    steps: Vec<String>,
    events_seen: usize,
    /// The peer's window field.
    pub(crate) window: u16,
    /// The peer's timestamp clock, if it has one; it echoes `echo`.
    pub(crate) clock: Option<u32>,
    pub(crate) echo: u32,
}

/// The peer's initial sequence number.
pub(crate) const PEER_ISN: Seq = Seq(u32::MAX - 100);

impl Drill {
    /// A client whose peer answers with MSS and whatever options ours has.
    pub(crate) fn connected(config: Config) -> Self {
        Self::connected_from(config, Seq(1_000))
    }

    pub(crate) fn connected_from(config: Config, isn: Seq) -> Self {
        Drill::client(config, isn).open()
    }

    /// It opens, and its peer answers.
    pub(crate) fn open(mut self) -> Self {
        let config = *self.end.config();
        self.end.open(&mut self.log, self.now);
        assert_eq!(self.log.sent.len(), 1, "a SYN");
        self.after_ms(10);
        if config.timestamps {
            self.clock = Some(5_000);
        }
        let mut header = self.header(Flags::SYN.with(Flags::ACK), 0, 1);
        let [high, low] = config.mss.to_be_bytes();
        header.options.push(&[kind::MSS, 4, high, low]).expect("room");
        if config.sack {
            header.options.push(&[kind::SACK_PERMITTED, 2]).expect("room");
        }
        if config.window_scale.is_some() {
            header.options.push(&[kind::NOP, kind::WINDOW_SCALE, 3, 2]).expect("room");
        }
        self.inject(header, 0);
        self.log.sent.clear();
        self.log.events.clear();
        self
    }

    pub(crate) fn client(config: Config, isn: Seq) -> Self {
        Self::of(Endpoint::client(config, flow(), isn), isn)
    }

    pub(crate) fn server(config: Config, isn: Seq) -> Self {
        Self::of(Endpoint::server(config, flow(), isn), isn)
    }

    fn of(end: Endpoint, isn: Seq) -> Self {
        Drill {
            end,
            log: Log::default(),
            now: Instant::ZERO + Duration::from_secs(10),
            isn,
            steps: Vec::new(),
            events_seen: 0,
            window: 65_535,
            clock: None,
            echo: 0,
        }
    }

    pub(crate) fn write(&mut self, length: u32) {
        let offset = self.end.unacknowledged();
        let payload = Payload::Virtual { stream: StreamId(7), offset, length };
        self.end.write(payload, &mut self.log, self.now);
        self.step(format!("write {length}"));
    }

    pub(crate) fn close(&mut self) {
        self.end.close(&mut self.log, self.now);
        self.step("close".into());
    }

    /// Lets time pass and timers fire when they are due.
    pub(crate) fn after_ms(&mut self, millis: u64) {
        self.until(self.now + Duration::from_millis(millis));
    }

    pub(crate) fn until(&mut self, end: Instant) {
        while let Some(deadline) = self.end.next_deadline().filter(|deadline| deadline.at <= end) {
            self.now = self.now.max(deadline.at);
            self.end.handle(Input::Timer, &mut self.log, self.now);
        }
        self.now = end;
    }

    /// The next timer must have this name and fire `millis` from now: nothing happens a nanosecond
    /// before.
    pub(crate) fn fires(&mut self, timer: &str, millis: u64) {
        let at = self.now + Duration::from_millis(millis);
        let deadline = self.end.next_deadline();
        let deadline = deadline.unwrap_or_else(|| self.fail(&format!("{timer} is armed"), &"idle"));
        if (deadline.timer, deadline.at) != (timer, at) {
            self.fail(&format!("{timer} at {at}"), &deadline);
        }
        self.sends(&[]);
        self.now = Instant::from_nanos(at.as_nanos() - 1);
        self.end.handle(Input::Timer, &mut self.log, self.now);
        self.sends(&[]);
        self.now = at;
        self.end.handle(Input::Timer, &mut self.log, self.now);
        self.step(format!("{timer} fires"));
    }

    /// The peer acknowledges up to `ack`.
    pub(crate) fn ack(&mut self, ack: u32) {
        let header = self.header(Flags::ACK, 1, ack);
        self.inject(header, 0);
    }

    /// The same ACK several times.
    pub(crate) fn acks(&mut self, ack: u32, times: usize) {
        (0..times).for_each(|_| self.ack(ack));
    }

    /// An ACK with the mark of a mobile host whose handoff is over.
    pub(crate) fn marked_ack(&mut self, ack: u32) {
        let mut header = self.header(Flags::ACK, 1, ack);
        header.options.push(&HANDOFF_MARK).expect("room");
        self.inject(header, 0);
    }

    /// An ACK with SACK blocks, the most recent first.
    pub(crate) fn sack(&mut self, ack: u32, blocks: &[(u32, u32)]) {
        let mut header = self.header(Flags::ACK, 1, ack);
        let blocks: Vec<_> = blocks
            .iter()
            .map(|(start, end)| SackBlock { start: self.isn + *start, end: self.isn + *end })
            .collect();
        header.options.push_sack(&blocks);
        self.inject(header, 0);
    }

    /// The peer sends `length` bytes from `seq`.
    pub(crate) fn data(&mut self, seq: u32, length: u32, ack: u32) {
        let header = self.header(Flags::ACK, seq, ack);
        self.inject(header, length);
    }

    pub(crate) fn segment(&mut self, flags: Flags, seq: u32, ack: u32, length: u32) {
        let header = self.header(flags, seq, ack);
        self.inject(header, length);
    }

    pub(crate) fn header(&self, flags: Flags, seq: u32, ack: u32) -> Header {
        let from = flow().reversed();
        let mut header = Header::new(from.source.port, from.destination.port);
        header.seq = PEER_ISN + seq;
        header.ack = self.isn + ack;
        header.flags = flags;
        header.window = self.window;
        if let Some(value) = self.clock {
            let timestamps = Timestamps { value, echo: self.echo };
            header.options.push_timestamps(timestamps).expect("room");
        }
        header
    }

    pub(crate) fn inject(&mut self, header: Header, length: u32) {
        let (seq, ack) = (header.seq.since(PEER_ISN), header.ack.since(self.isn));
        self.step(format!("peer: {} {seq}({length}) ack {ack}", header.flags));
        let from = flow().reversed();
        let ip = ip::Header::new(from.source.address, from.destination.address, Protocol::TCP);
        let offset = u64::from(seq.wrapping_sub(1));
        let payload = Payload::Virtual { stream: StreamId(7), offset, length };
        let packet = PacketRef::new(Packet::tcp(PacketId::FIRST, ip, header, payload));
        self.end.handle(Input::Arrival { side: Side::NETWORK, packet }, &mut self.log, self.now);
    }

    /// Everything sent since the last call is this.
    pub(crate) fn sends(&mut self, expected: &[&str]) {
        let sent: Vec<PacketRef> = self.log.sent.drain(..).collect();
        let actual: Vec<String> = sent.iter().map(|packet| self.show(packet)).collect();
        if actual != expected {
            self.fail(&expected, &actual);
        }
        actual.into_iter().for_each(|line| self.step(format!("  us: {line}")));
    }

    /// Everything sent since the last call, as it is.
    pub(crate) fn sent(&mut self) -> Vec<PacketRef> {
        self.log.sent.drain(..).collect()
    }

    /// Events since the last call that `pick` picks.
    pub(crate) fn events<T>(&mut self, pick: impl Fn(&EventKind) -> Option<T>) -> Vec<T> {
        let picked = self.log.events[self.events_seen..].iter().filter_map(pick).collect();
        self.events_seen = self.log.events.len();
        picked
    }

    pub(crate) fn fail(&self, expected: &dyn core::fmt::Debug, actual: &dyn core::fmt::Debug) -> ! {
        let steps = self.steps.join("\n  ");
        panic!("\n  {steps}\nexpected {expected:#?}\nactual   {actual:#?}");
    }

    fn show(&self, packet: &Packet) -> String {
        let header = packet.as_tcp().expect("an endpoint sends TCP");
        let length = packet.payload.len();
        let seq = header.seq.since(self.isn);
        let ack = header.ack.since(PEER_ISN);
        match (length, header.flags.contains(Flags::ACK)) {
            (0, true) => format!("{} {seq} ack {ack}", header.flags),
            (0, false) => format!("{} {seq}", header.flags),
            _ => format!("{} {seq}:{} ack {ack}", header.flags, seq + length),
        }
    }

    fn step(&mut self, what: String) {
        self.steps.push(format!("{} {what}", self.now));
    }
}
