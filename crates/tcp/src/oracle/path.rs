//! The path of ns-2's `tcpVariants` suite: sender - r1 - k1, with our endpoints at both ends.
//!
//! ```text
//!   sender ── 8 Mb/s, 0 ms ── r1 ── 800 kb/s, 100 ms, 8 packets ── k1, the receiver
//! ```
//!
//! Packet sizes are ns-2's: payload, 40 bytes and 8 per SACK block, whatever options our endpoints
//! use.

use crate::{Config, Endpoint};
use sansio::{
    BitRate, Delivery, DropReason, Duration, Engine, Event, FlowKey, Host, Input, Instant,
    PacketId, PacketRef, Payload, Priority, Side, Sink, StreamId,
};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use wire::tcp::Seq;

/// Payload of a data packet, bytes.
const PAYLOAD_BYTES: u32 = 1000;
const HEADER_BYTES: u32 = 40;
const SACK_BLOCK_BYTES: u32 = 8;
const ACCESS_RATE: BitRate = BitRate::from_mbps(8);
const SLOW_RATE: BitRate = BitRate::from_bps(800_000);
const SLOW_DELAY: Duration = Duration::from_millis(100);
/// Packets in the slow link's queue, the one being sent included.
const QUEUE_PACKETS: usize = 8;
const SYN_AT: Duration = Duration::from_secs(1);
/// Nothing is sent after this.
const END: Duration = Duration::from_secs(6);
const CLIENT_ISN: Seq = Seq(0);

/// A row of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) at: Duration,
    pub(super) kind: RowKind,
    /// In packets; the SYN is 0.
    pub(super) packet: u64,
}

/// What happened on the slow link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RowKind {
    /// A packet is queued at r1 toward k1.
    Data,
    /// A packet is lost before r1's queue.
    Drop,
    /// An ACK is queued at k1 toward r1.
    Ack,
}

/// Runs the sender of `config` over the path with these packets lost once each.
pub(super) fn run(config: Config, drops: &BTreeSet<u64>) -> Vec<Row> {
    let mut path = Path::new(config, drops.clone());
    path.run();
    path.rows
}

/// A link that sends one packet at a time.
struct Link {
    rate: BitRate,
    delay: Duration,
    queue_packets: usize,
    /// When each packet that is queued or being sent is through.
    departures: VecDeque<Instant>,
}

impl Link {
    fn new(rate: BitRate, delay: Duration, queue_packets: usize) -> Self {
        Link { rate, delay, queue_packets, departures: VecDeque::new() }
    }

    /// When a packet queued at `now` arrives; `None` if there is no room.
    fn send(&mut self, bytes: u32, now: Instant) -> Option<Instant> {
        while self.departures.front().is_some_and(|at| *at <= now) {
            self.departures.pop_front();
        }
        if self.departures.len() >= self.queue_packets {
            return None;
        }
        let begins = self.departures.back().copied().unwrap_or(now);
        let departs = begins + self.rate.time_for(bytes);
        self.departures.push_back(departs);
        Some(departs + self.delay)
    }
}

/// Where a packet is next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    R1TowardK1,
    K1,
    R1TowardSender,
    Sender,
}

struct Path {
    sender: Endpoint,
    receiver: Endpoint,
    outbox: Outbox,
    access: [Link; 2],
    slow: [Link; 2],
    drops: BTreeSet<u64>,
    /// By time, then order.
    arrivals: BTreeMap<(Instant, u64), (Place, PacketRef)>,
    order: u64,
    rows: Vec<Row>,
}

impl Path {
    fn new(config: Config, drops: BTreeSet<u64>) -> Self {
        let host = |last| Host { address: [10, 0, 0, last].into(), port: 1 };
        let flow = FlowKey { source: host(1), destination: host(2) };
        let access = || Link::new(ACCESS_RATE, Duration::ZERO, usize::MAX);
        let slow = || Link::new(SLOW_RATE, SLOW_DELAY, QUEUE_PACKETS);
        Path {
            sender: Endpoint::client(config, flow, CLIENT_ISN),
            receiver: Endpoint::server(config, flow.reversed(), Seq(0)),
            outbox: Outbox { next_id: PacketId::FIRST, sent: Vec::new() },
            access: [access(), access()],
            slow: [slow(), slow()],
            drops,
            arrivals: BTreeMap::new(),
            order: 0,
            rows: Vec::new(),
        }
    }

    fn run(&mut self) {
        let begin = Instant::ZERO + SYN_AT;
        let everything = Payload::Virtual { stream: StreamId(0), offset: 0, length: u32::MAX };
        self.sender.write(everything, &mut self.outbox, begin);
        self.sender.open(&mut self.outbox, begin);
        self.collect_from_sender(begin);
        while let Some(now) = self.next_at().filter(|at| *at <= Instant::ZERO + END) {
            if let Some(arrival) = self.arrivals.first_entry().filter(|e| e.key().0 == now) {
                let (place, packet) = arrival.remove();
                self.on_arrival(place, packet, now);
            } else {
                self.sender.handle(Input::Timer, &mut self.outbox, now);
                self.collect_from_sender(now);
                self.receiver.handle(Input::Timer, &mut self.outbox, now);
                self.collect_from_receiver(now);
            }
        }
    }

    fn next_at(&self) -> Option<Instant> {
        let timers = [self.sender.next_deadline(), self.receiver.next_deadline()];
        let timers = timers.into_iter().flatten().map(|deadline| deadline.at);
        self.arrivals.keys().map(|key| key.0).take(1).chain(timers).min()
    }

    fn on_arrival(&mut self, place: Place, packet: PacketRef, now: Instant) {
        match place {
            Place::R1TowardK1 => self.queue_data(packet, now),
            Place::K1 => {
                let input = Input::Arrival { side: Side::NETWORK, packet };
                self.receiver.handle(input, &mut self.outbox, now);
                self.collect_from_receiver(now);
            }
            Place::R1TowardSender => {
                let arrives = self.access[1].send(bytes(&packet), now);
                self.put(arrives, Place::Sender, packet);
            }
            Place::Sender => {
                let input = Input::Arrival { side: Side::NETWORK, packet };
                self.sender.handle(input, &mut self.outbox, now);
                self.collect_from_sender(now);
            }
        }
    }

    fn queue_data(&mut self, packet: PacketRef, now: Instant) {
        let header = packet.as_tcp().map(|header| header.seq.since(CLIENT_ISN)).unwrap_or(0);
        let number = u64::from(header.div_ceil(PAYLOAD_BYTES));
        let arrives = match self.drops.remove(&number) {
            true => None,
            false => self.slow[0].send(bytes(&packet), now),
        };
        let kind = if arrives.is_some() { RowKind::Data } else { RowKind::Drop };
        self.row(kind, number, now);
        self.put(arrives, Place::K1, packet);
    }

    fn collect_from_sender(&mut self, now: Instant) {
        for packet in core::mem::take(&mut self.outbox.sent) {
            // ns-2's handshake has no third packet.
            let bare = packet.payload.is_empty() && now > Instant::ZERO + SYN_AT;
            if !bare {
                let arrives = self.access[0].send(bytes(&packet), now);
                self.put(arrives, Place::R1TowardK1, packet);
            }
        }
    }

    fn collect_from_receiver(&mut self, now: Instant) {
        for packet in core::mem::take(&mut self.outbox.sent) {
            let ack = packet.as_tcp().map(|header| header.ack.since(CLIENT_ISN)).unwrap_or(0);
            let number = u64::from((ack.saturating_sub(1)) / PAYLOAD_BYTES);
            self.row(RowKind::Ack, number, now);
            let arrives = self.slow[1].send(bytes(&packet), now);
            self.put(arrives, Place::R1TowardSender, packet);
        }
    }

    fn put(&mut self, arrives: Option<Instant>, place: Place, packet: PacketRef) {
        if let Some(at) = arrives {
            self.arrivals.insert((at, self.order), (place, packet));
            self.order += 1;
        }
    }

    fn row(&mut self, kind: RowKind, packet: u64, now: Instant) {
        self.rows.push(Row { at: now.since(Instant::ZERO), kind, packet });
    }
}

fn bytes(packet: &PacketRef) -> u32 {
    let blocks = packet.as_tcp().map_or(0, |header| header.options.sack_blocks().count() as u32);
    packet.payload.len() + HEADER_BYTES + SACK_BLOCK_BYTES * blocks
}

/// Keeps what an endpoint sends.
struct Outbox {
    next_id: PacketId,
    sent: Vec<PacketRef>,
}

impl Sink for Outbox {
    const TRACE: bool = false;

    fn new_id(&mut self) -> PacketId {
        let id = self.next_id;
        self.next_id = id.next();
        id
    }

    fn send(&mut self, _: Side, _: Priority, packet: PacketRef) {
        self.sent.push(packet);
    }

    fn discard(&mut self, _: PacketRef, _: DropReason) {}

    fn deliver(&mut self, _: Delivery) {}

    fn event(&mut self, _: Event) {}
}
