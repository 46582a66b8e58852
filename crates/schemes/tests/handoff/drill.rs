//! Drills: short tests that read like a packet trace. A failing one prints every step so far.

use sansio::{
    Delivery, DropReason, Duration, Engine, Event, Host, Input, Instant, Notice, Packet, PacketId,
    PacketRef, Payload, Priority, Side, Sink, StreamId, Transport,
};
use std::net::{IpAddr, Ipv4Addr};
use wire::ip::{self, Protocol};
use wire::tcp::{Flags, Header, SackBlock, Seq, Timestamps};

pub(crate) const FIXED: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
pub(crate) const MOBILE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 1, 2));
/// Both hosts' sequence numbers begin just before the wrap (MOD-18); drills count from there.
const FIRST: u32 = u32::MAX - 1500;

/// What an engine puts out, one line each.
#[derive(Default)]
pub(crate) struct Recorder {
    pub(crate) sent: Vec<(Side, PacketRef)>,
    pub(crate) discarded: Vec<(PacketRef, DropReason)>,
    lines: Vec<String>,
    ids: u64,
}

impl Sink for Recorder {
    const TRACE: bool = true;

    fn new_id(&mut self) -> PacketId {
        self.ids += 1;
        PacketId(self.ids.try_into().expect("counted from 1"))
    }

    fn send(&mut self, side: Side, _: Priority, packet: PacketRef) {
        let to = match (side, packet.ip.source == MOBILE) {
            (Side::TUNNEL, _) => "tunnel",
            (Side::RADIO, _) => "radio",
            (_, true) => "wired",
            (_, false) => "host",
        };
        self.lines.push(format!("{to} {}", describe(&packet)));
        self.sent.push((side, packet));
    }

    fn discard(&mut self, packet: PacketRef, reason: DropReason) {
        let why = match reason {
            DropReason::Rule(rule) => rule,
            DropReason::Full(limit) => limit,
            other => panic!("discarded for {other:?}"),
        };
        self.lines.push(format!("{why}: {}", describe(&packet)));
        self.discarded.push((packet, reason));
    }

    fn deliver(&mut self, _: Delivery) {
        panic!("an agent on the path delivers nothing");
    }

    fn event(&mut self, _: Event) {}
}

/// `100..200` with data, `ack 300 win 50` without; a port other than 1, SACK blocks, timestamps and
/// flags where there are any.
pub(crate) fn describe(packet: &Packet) -> String {
    let Some(tcp) = packet.as_tcp() else { return "not TCP".into() };
    let relative = |seq: Seq| i64::from(seq.0.wrapping_sub(FIRST) as i32);
    let mut line = if packet.payload.is_empty() {
        format!("ack {} win {}", relative(tcp.ack), tcp.window)
    } else {
        format!("{}..{}", relative(tcp.seq), relative(tcp.seq + packet.payload.len()))
    };
    for block in tcp.options.sack_blocks() {
        line += &format!(" sack {}..{}", relative(block.start), relative(block.end));
    }
    if let Some(stamps) = tcp.options.timestamps() {
        line += &format!(" ts {} {}", stamps.value, stamps.echo);
    }
    for (flag, name) in [(Flags::SYN, " syn"), (Flags::FIN, " fin"), (Flags::RST, " rst")] {
        line += if tcp.flags.contains(flag) { name } else { "" };
    }
    line += if tcp.options.has_handoff_mark() { " marked" } else { "" };
    match if packet.ip.source == MOBILE { tcp.source_port } else { tcp.destination_port } {
        1 => line,
        port => format!("{port}: {line}"),
    }
}

/// A segment between the two hosts; without `data` an ACK alone.
#[derive(Clone)]
pub(crate) struct Segment {
    /// The mobile host's port.
    pub(crate) port: u16,
    pub(crate) seq: u32,
    pub(crate) data: u32,
    pub(crate) ack: u32,
    pub(crate) window: u16,
    pub(crate) flags: Flags,
    pub(crate) timestamps: Option<Timestamps>,
    pub(crate) sack: Vec<(u32, u32)>,
    pub(crate) option: Vec<u8>,
}

/// An ACK alone.
pub(crate) fn ack(ack: u32) -> Segment {
    Segment {
        port: 1,
        seq: 0,
        data: 0,
        ack,
        window: 50,
        flags: Flags::ACK,
        timestamps: None,
        sack: Vec::new(),
        option: Vec::new(),
    }
}

/// `length` bytes from `seq` on.
pub(crate) fn data(seq: u32, length: u32) -> Segment {
    Segment { seq, data: length, ..ack(0) }
}

impl Segment {
    fn packet(&self, id: PacketId, from: IpAddr) -> Packet {
        let (to, ports) = match from == MOBILE {
            true => (FIXED, (self.port, 80)),
            false => (MOBILE, (80, self.port)),
        };
        let mut tcp = Header::new(ports.0, ports.1);
        tcp.seq = Seq(FIRST.wrapping_add(self.seq));
        tcp.ack = Seq(FIRST.wrapping_add(self.ack));
        (tcp.window, tcp.flags) = (self.window, self.flags);
        if let Some(timestamps) = self.timestamps {
            tcp.options.push_timestamps(timestamps).expect("room");
        }
        let at = |relative: u32| Seq(FIRST.wrapping_add(relative));
        let block = |&(start, end): &(u32, u32)| SackBlock { start: at(start), end: at(end) };
        tcp.options.push_sack(&self.sack.iter().map(block).collect::<Vec<_>>());
        tcp.options.push(&self.option).expect("room");
        let payload = Payload::Virtual {
            stream: StreamId(0),
            offset: u64::from(self.seq),
            length: self.data,
        };
        let mut ip = ip::Header::new(from, to, Protocol::TCP);
        ip.traffic_class = 0b10;
        Packet::tcp(id, ip, tcp, payload)
    }
}

/// An engine and its neighbours.
pub(crate) struct Drill<E> {
    pub(crate) engine: E,
    pub(crate) sink: Recorder,
    pub(crate) now: Instant,
    steps: Vec<String>,
    arrived: PacketId,
}

impl<E: Engine> Drill<E> {
    pub(crate) fn new(engine: E) -> Self {
        let (sink, steps) = (Recorder::default(), Vec::new());
        Drill { engine, sink, now: Instant::ZERO, steps, arrived: PacketId::FIRST }
    }

    /// A segment arrives on a side; the mobile host sent it if it comes from there.
    pub(crate) fn arrives(&mut self, side: Side, from: IpAddr, segment: &Segment) -> &mut Self {
        let packet = PacketRef::new(segment.packet(self.sink.new_id(), from));
        self.arrived = packet.id;
        self.steps.push(format!("{} {side:?} {}", self.now, describe(&packet)));
        self.input(Input::Arrival { side, packet })
    }

    /// The last segment that arrived.
    pub(crate) fn arrived(&self) -> PacketId {
        self.arrived
    }

    pub(crate) fn arrives_raw(&mut self, side: Side, packet: Packet) -> &mut Self {
        self.input(Input::Arrival { side, packet: PacketRef::new(packet) })
    }

    /// An engine at a mobile host: from that host's TCP.
    pub(crate) fn host(&mut self, segment: &Segment) -> &mut Self {
        self.arrives(Side::HOST, MOBILE, segment)
    }

    /// And from the air.
    pub(crate) fn air(&mut self, segment: &Segment) -> &mut Self {
        self.arrives(Side::RADIO, FIXED, segment)
    }

    /// An engine at a base station: from the fixed host.
    pub(crate) fn wired(&mut self, segment: &Segment) -> &mut Self {
        self.arrives(Side::WIRED, FIXED, segment)
    }

    /// From the mobile host.
    pub(crate) fn radio(&mut self, segment: &Segment) -> &mut Self {
        self.arrives(Side::RADIO, MOBILE, segment)
    }

    /// Out of a tunnel.
    pub(crate) fn tunnel(&mut self, segment: &Segment) -> &mut Self {
        self.arrives(Side::TUNNEL, FIXED, segment)
    }

    pub(crate) fn notice(&mut self, notice: Notice) -> &mut Self {
        self.steps.push(format!("{} {notice:?}", self.now));
        self.input(Input::Notice(notice))
    }

    /// Time passes; timers fire when they are due.
    pub(crate) fn after(&mut self, span: Duration) -> &mut Self {
        let end = self.now + span;
        while let Some(deadline) = self.engine.next_deadline().filter(|one| one.at <= end) {
            self.now = self.now.max(deadline.at);
            self.steps.push(format!("{} {}", self.now, deadline.timer));
            self.input(Input::Timer);
        }
        self.now = end;
        self
    }

    fn input(&mut self, input: Input) -> &mut Self {
        let before = self.sink.lines.len();
        self.engine.handle(input, &mut self.sink, self.now);
        self.steps.extend(self.sink.lines[before..].iter().map(|line| format!("    {line}")));
        self
    }

    /// What came out since it was asked last, in order.
    #[track_caller]
    pub(crate) fn gives(&mut self, wanted: &[&str]) -> &mut Self {
        let lines = std::mem::take(&mut self.sink.lines);
        assert_eq!(lines, wanted, "\n{}\n", self.steps.join("\n"));
        self
    }

    /// Forgets what came out.
    pub(crate) fn skip(&mut self) -> &mut Self {
        self.sink.lines.clear();
        self
    }

    /// The TCP header of the last packet out.
    pub(crate) fn last(&self) -> Header {
        match &self.sink.sent.last().expect("something came out").1.transport {
            Transport::Tcp(tcp) => *tcp,
            other => panic!("{other:?}"),
        }
    }
}

pub(crate) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(crate) fn host(address: IpAddr, port: u16) -> Host {
    Host { address, port }
}
