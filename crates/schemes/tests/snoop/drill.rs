//! Drills: short tests that read like a packet trace. A failing one prints every step so far.

use sansio::{
    Delivery, DropReason, Duration, Engine, Event, EventKind, Host, Input, Instant, Notice, Packet,
    PacketId, PacketRef, Payload, Priority, Side, Sink, StreamId, Transport,
};
use schemes::snoop::{Agent, Config, Statistics};
use std::collections::VecDeque;
use std::ops::Range;
use wire::ip::{self, Protocol};
use wire::tcp::{Flags, Header, SackBlock, Seq, Timestamps};

/// Collects what an engine puts out, one line each.
#[derive(Default)]
pub(crate) struct Recorder {
    pub(crate) sent: Vec<(Side, Priority, PacketRef)>,
    pub(crate) discarded: Vec<(PacketRef, DropReason)>,
    pub(crate) events: Vec<Event>,
    /// Sequence numbers are printed relative to this.
    pub(crate) first: u32,
    pub(crate) lines: Vec<String>,
    ids: u64,
}

impl Sink for Recorder {
    const TRACE: bool = true;

    fn new_id(&mut self) -> PacketId {
        self.ids += 1;
        PacketId(self.ids.try_into().expect("counted from 1"))
    }

    fn send(&mut self, side: Side, priority: Priority, packet: PacketRef) {
        let high = if priority == Priority::High { " high" } else { "" };
        let to = match side {
            Side::RADIO => "radio",
            Side::TUNNEL => "tunnel",
            _ => "wired",
        };
        self.lines.push(format!("{to}{high} {}", self.describe(&packet)));
        self.sent.push((side, priority, packet));
    }

    fn discard(&mut self, packet: PacketRef, reason: DropReason) {
        let DropReason::Rule(rule) = reason else { panic!("dropped for {reason:?}") };
        self.lines.push(format!("{rule} {}", self.describe(&packet)));
        self.discarded.push((packet, reason));
    }

    fn deliver(&mut self, _: Delivery) {
        panic!("an agent on the path delivers nothing");
    }

    fn event(&mut self, event: Event) {
        self.events.push(event);
    }
}

impl Recorder {
    /// `100..200`, `ack 300`, with flags and cause where they are not the usual ones.
    fn describe(&self, packet: &Packet) -> String {
        let Transport::Tcp(tcp) = &packet.transport else { return "not TCP".into() };
        let relative = |seq: Seq| i64::from(seq.0.wrapping_sub(self.first) as i32);
        let mut line = if packet.payload.is_empty() && !tcp.flags.contains(Flags::FIN) {
            format!("ack {}", relative(tcp.ack))
        } else {
            let end = tcp.seq + packet.payload.len();
            format!("{}..{}", relative(tcp.seq), relative(end))
        };
        for block in tcp.options.sack_blocks() {
            line += &format!(" sack {}..{}", relative(block.start), relative(block.end));
        }
        if tcp.flags.contains(Flags::FIN) {
            line += " fin";
        }
        match packet.cause {
            sansio::Cause::LocalRetransmission => line += " local",
            sansio::Cause::Probe => line += " probe",
            sansio::Cause::AgentAck => line += " agent",
            _ => {}
        }
        line
    }
}

/// The addresses of every drill: fixed host and mobile host.
pub(crate) const FIXED: Host =
    Host { address: std::net::IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1)), port: 80 };
pub(crate) const MOBILE: Host =
    Host { address: std::net::IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 1, 2)), port: 5000 };

/// A segment from one host to another, without payload.
pub(crate) fn segment(id: PacketId, from: Host, to: Host, flags: Flags) -> Packet {
    let ip = ip::Header::new(from.address, to.address, Protocol::TCP);
    let mut tcp = Header::new(from.port, to.port);
    tcp.flags = flags;
    tcp.window = 1000;
    Packet::tcp(id, ip, tcp, Payload::EMPTY)
}

/// The header of a TCP packet, for changing it.
pub(crate) fn tcp_mut(packet: &mut Packet) -> &mut Header {
    match &mut packet.transport {
        Transport::Tcp(tcp) => tcp,
        _ => panic!("a TCP packet"),
    }
}

/// An agent, its two neighbours and the air in between, step by step.
pub(crate) struct Drill {
    pub(crate) agent: Agent,
    pub(crate) sink: Recorder,
    pub(crate) now: Instant,
    /// The mobile host's answers and the data carry timestamps, if set: its TSval.
    pub(crate) timestamp: Option<u32>,
    steps: Vec<String>,
    /// Waiting for the air, by priority.
    queues: [VecDeque<PacketRef>; 2],
    /// Packets depart as soon as they are sent.
    departing: bool,
}

impl Drill {
    pub(crate) fn new(config: Config) -> Self {
        Drill::starting_at(config, 1_000)
    }

    /// Sequence numbers begin at `first`; the drill's numbers are relative to it.
    pub(crate) fn starting_at(config: Config, first: u32) -> Self {
        Drill {
            agent: Agent::new(config),
            sink: Recorder { first, ..Recorder::default() },
            now: Instant::ZERO,
            timestamp: None,
            steps: Vec::new(),
            queues: Default::default(),
            departing: true,
        }
    }

    pub(crate) fn strict() -> Self {
        Drill::new(Config::strict())
    }

    pub(crate) fn modern() -> Self {
        Drill::new(Config::modern())
    }

    pub(crate) fn statistics(&self) -> &Statistics {
        self.agent.statistics()
    }

    /// The wire's sequence number for a drill's number.
    pub(crate) fn seq(&self, relative: u32) -> Seq {
        Seq(self.sink.first.wrapping_add(relative))
    }

    /// From now on packets wait for [`Drill::depart`].
    pub(crate) fn hold_the_air(&mut self) -> &mut Self {
        self.departing = false;
        self
    }

    /// Lets `count` waiting packets go onto the air, the high priority first.
    pub(crate) fn depart(&mut self, count: usize) -> &mut Self {
        for _ in 0..count {
            let Some(packet) = self.next_departure() else { break };
            self.step(format!("departs {}", self.sink.describe(&packet)));
            let before = (self.sink.sent.len(), self.sink.lines.len());
            self.agent.on_departure(Side::RADIO, &packet, &mut self.sink, self.now);
            self.follow(before);
        }
        self
    }

    /// The next packet in the normal queue is dropped by it.
    pub(crate) fn queue_drops_one(&mut self) -> &mut Self {
        self.queues[1].pop_front();
        self
    }

    /// The link layer gives up, or acknowledges, the last frame that begins with this number.
    pub(crate) fn verdict(&mut self, start: u32, acknowledged: bool) -> &mut Self {
        let seq = self.seq(start);
        let begins = |packet: &Packet| packet.as_tcp().is_some_and(|tcp| tcp.seq == seq);
        let mut sent = self.sink.sent.iter().rev();
        let found = sent.find(|(on, _, packet)| *on == Side::RADIO && begins(packet));
        let packet = found.expect("it was sent on the radio").2.clone();
        self.step(format!("verdict on {start}: {acknowledged}"));
        self.handle(Input::Verdict { side: Side::RADIO, packet, acknowledged });
        self
    }

    /// The next local retransmission is dropped by its queue.
    pub(crate) fn queue_drops_a_copy(&mut self) -> &mut Self {
        self.queues[0].pop_front();
        self
    }

    /// Time passes; timers fire when they are due.
    pub(crate) fn at(&mut self, at: Instant) -> &mut Self {
        while let Some(deadline) = self.agent.next_deadline()
            && deadline.at <= at
        {
            self.now = self.now.max(deadline.at);
            self.step(format!("timer {}", deadline.timer));
            self.handle(Input::Timer);
            let next = self.agent.next_deadline();
            assert!(next.is_none_or(|next| next.at > deadline.at), "a timer storm: {next:?}");
        }
        self.now = at;
        self
    }

    pub(crate) fn after_millis(&mut self, millis: u64) -> &mut Self {
        self.at(self.now + Duration::from_millis(millis))
    }

    pub(crate) fn notice(&mut self, notice: Notice) -> &mut Self {
        self.step(format!("{notice:?}"));
        self.handle(Input::Notice(notice));
        self
    }

    /// Data from the fixed host.
    pub(crate) fn data(&mut self, range: Range<u32>) -> &mut Self {
        self.data_with(range, |_| {})
    }

    pub(crate) fn data_with(
        &mut self,
        range: Range<u32>,
        change: impl FnOnce(&mut Packet),
    ) -> &mut Self {
        let mut packet = self.data_packet(range);
        change(&mut packet);
        self.arrive(Side::WIRED, packet)
    }

    fn data_packet(&mut self, range: Range<u32>) -> Packet {
        let id = self.sink.new_id();
        let mut packet = segment(id, FIXED, MOBILE, Flags::ACK);
        packet.payload = Payload::Virtual {
            stream: StreamId(1),
            offset: u64::from(range.start),
            length: range.end - range.start,
        };
        tcp_mut(&mut packet).seq = self.seq(range.start);
        if let Some(value) = self.timestamp {
            let timestamps = Timestamps { value: value + 7_000, echo: value };
            tcp_mut(&mut packet).options.push_timestamps(timestamps).expect("room");
        }
        packet
    }

    /// Segments of 1000 bytes that another base station forwards, from number `from`: the packets.
    pub(crate) fn hears(&mut self, from: u32, count: u32) -> Vec<PacketRef> {
        let hear = |number: u32| {
            let packet: PacketRef = self.data_packet(number * 1000..number * 1000 + 1000).into();
            self.arrive(Side::MIRROR, packet.clone());
            packet
        };
        (from..from + count).map(hear).collect()
    }

    /// Data of `count` segments of 1000 bytes, from segment number `from`.
    pub(crate) fn segments(&mut self, from: u32, count: u32) -> &mut Self {
        for number in from..from + count {
            self.data(number * 1000..number * 1000 + 1000);
        }
        self
    }

    /// A pure ACK from the mobile host.
    pub(crate) fn ack(&mut self, ack: u32) -> &mut Self {
        self.ack_with(ack, |_| {})
    }

    /// The same with SACK blocks.
    pub(crate) fn sack(&mut self, ack: u32, blocks: &[(u32, u32)]) -> &mut Self {
        let blocks: Vec<_> = blocks
            .iter()
            .map(|&(start, end)| SackBlock { start: self.seq(start), end: self.seq(end) })
            .collect();
        self.ack_with(ack, |packet| {
            tcp_mut(packet).options.push_sack(&blocks);
        })
    }

    pub(crate) fn ack_with(&mut self, ack: u32, change: impl FnOnce(&mut Packet)) -> &mut Self {
        let id = self.sink.new_id();
        let mut packet = segment(id, MOBILE, FIXED, Flags::ACK);
        tcp_mut(&mut packet).ack = self.seq(ack);
        tcp_mut(&mut packet).seq = Seq(77);
        if let Some(value) = self.timestamp {
            let timestamps = Timestamps { value, echo: value + 7_000 };
            tcp_mut(&mut packet).options.push_timestamps(timestamps).expect("room");
        }
        change(&mut packet);
        self.arrive(Side::RADIO, packet)
    }

    pub(crate) fn arrive(&mut self, side: Side, packet: impl Into<PacketRef>) -> &mut Self {
        let packet = packet.into();
        let from = match side {
            Side::WIRED => "wired",
            Side::RADIO => "radio",
            _ => "elsewhere",
        };
        self.step(format!("from {from}: {}", self.sink.describe(&packet)));
        self.handle(Input::Arrival { side, packet });
        self
    }

    /// Forgets what was put out so far.
    pub(crate) fn quietly(&mut self) -> &mut Self {
        self.sink.lines.clear();
        self
    }

    /// What was put out since the last look, line by line.
    #[track_caller]
    pub(crate) fn expect(&mut self, expected: &[&str]) -> &mut Self {
        let actual = std::mem::take(&mut self.sink.lines);
        assert!(
            actual == expected,
            "all steps so far:\n  {}\nexpected {expected:#?}\nactual   {actual:#?}",
            self.steps.join("\n  ")
        );
        self
    }

    /// The last packet sent on a side.
    pub(crate) fn last_sent(&self, side: Side) -> &Packet {
        let found = self.sink.sent.iter().rev().find(|(on, _, _)| *on == side);
        &found.expect("something was sent there").2
    }

    /// True if a rule acted, by its ID.
    pub(crate) fn acted(&self, wanted: &str) -> bool {
        self.sink.events.iter().any(|event| match event.kind {
            EventKind::Rule { id, .. } => id == wanted,
            EventKind::Limit { name, .. } => name == wanted,
            _ => false,
        })
    }

    /// True if any timer runs: each flow has one.
    pub(crate) fn agent_has_timers(&self) -> bool {
        self.agent.next_deadline().is_some()
    }

    /// When the earliest timer is due, if it is the one of this name.
    pub(crate) fn deadline(&self, timer: &str) -> Option<Instant> {
        self.agent.next_deadline().filter(|next| next.timer == timer).map(|next| next.at)
    }

    fn next_departure(&mut self) -> Option<PacketRef> {
        let [high, normal] = &mut self.queues;
        high.pop_front().or_else(|| normal.pop_front())
    }

    fn step(&mut self, step: String) {
        self.steps.push(format!("{} {step}", self.now));
    }

    fn handle(&mut self, input: Input) {
        let before = (self.sink.sent.len(), self.sink.lines.len());
        self.agent.handle(input, &mut self.sink, self.now);
        self.follow(before);
    }

    /// What follows from what the agent was told: packets and lines from these on.
    fn follow(&mut self, before: (usize, usize)) {
        for line in &self.sink.lines[before.1..] {
            self.steps.push(format!("  -> {line}"));
        }
        for (side, priority, packet) in &self.sink.sent[before.0..] {
            if *side == Side::RADIO {
                self.queues[usize::from(*priority == Priority::Normal)].push_back(packet.clone());
            }
        }
        while self.departing
            && let Some(packet) = self.next_departure()
        {
            self.agent.on_departure(Side::RADIO, &packet, &mut self.sink, self.now);
        }
    }
}
