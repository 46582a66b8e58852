//! What the graphs of one transfer need: points and spans in stream offsets, windows, queues, the
//! agent's cache, the state of the link, and the story of each packet.

use crate::handoffs::is_broadcast;
use crate::metrics::TransferSpec;
use crate::roaming::Roaming;
use crate::story::Story;
use crate::{NodeId, Observer, Record, What};
use sansio::{Cause, Event, EventKind, FlowKey, Instant, Packet, Payload, Side};
use std::collections::BTreeMap;
use wire::tcp::{Flags, Seq};

/// One segment or ACK: when, and which bytes of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// When.
    pub at: Instant,
    /// One past the last byte of the segment, or the ACK's offset.
    pub offset: u64,
}

/// A sender's windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// When they changed.
    pub at: Instant,
    /// Congestion window, bytes.
    pub cwnd: u32,
    /// Slow start threshold, bytes.
    pub ssthresh: u32,
    /// Bytes in flight.
    pub flight: u32,
}

/// What waits at one end of the radio for its turn on the air.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// From when on.
    pub at: Instant,
    /// Packets, without the one on the air.
    pub packets: u32,
    /// Their bytes.
    pub bytes: u64,
}

/// What a base station's scheme keeps in its caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cached {
    /// From when on.
    pub at: Instant,
    /// Bytes.
    pub bytes: u64,
}

/// A packet that the radio or its queue lost, with or without payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RadioLoss {
    /// When.
    pub at: Instant,
    /// True if it was on its way to the mobile host.
    pub toward_mobile: bool,
    /// Why: what happened on the air, or [`QUEUE_FULL`].
    pub cause: &'static str,
}

/// The cause of a loss that the air is not to blame for.
pub const QUEUE_FULL: &str = "queue full";

/// One transfer in time.
#[derive(Clone, Debug)]
pub struct Timeline {
    spec: TransferSpec,
    /// The connection, and the sequence number of the stream's first byte.
    first: Option<(FlowKey, Seq)>,
    /// Segments sent for the first time, at the sender.
    pub data: Vec<Point>,
    /// Segments the sender sent again.
    pub end_to_end: Vec<Point>,
    /// Segments the base station sent again.
    pub local: Vec<Point>,
    /// Probes of the base station.
    pub probes: Vec<Point>,
    /// Segments that the last hop or a queue lost.
    pub lost: Vec<Point>,
    /// ACKs that reached the sender.
    pub acks: Vec<Point>,
    /// In-order delivery at the receiver.
    pub delivered: Vec<Point>,
    /// The sender's windows.
    pub windows: Vec<Window>,
    /// The sender's timeouts.
    pub timeouts: Vec<Instant>,
    /// When the link was away; an end is missing if the run ended first.
    pub outages: Vec<(Instant, Option<Instant>)>,
    /// When the air was bad in the direction of the data, where that is known: beginnings and ends.
    pub fades: Vec<(Instant, Instant)>,
    /// Queue of the base station toward the mobile host, of all of several.
    pub queue_down: Vec<Waiting>,
    /// Queue of the mobile host toward the base station.
    pub queue_up: Vec<Waiting>,
    /// The caches of the base station, of all of several, at each change.
    pub cache: Vec<Cached>,
    /// The most that each may hold, bytes; 0 if the scheme has none.
    pub cache_limit: u64,
    /// What the radio lost, all connections and both ways.
    pub radio_losses: Vec<RadioLoss>,
    /// What became of each packet, and why.
    pub story: Story,
    /// Where the mobile host was, if it changes cells.
    pub roaming: Option<Box<Roaming>>,
    /// What waits and what is kept at each of several base stations: packets, bytes, bytes kept.
    stations: BTreeMap<NodeId, (u32, u64, u64)>,
}

impl Timeline {
    /// An empty one.
    pub fn new(spec: TransferSpec) -> Self {
        Timeline {
            spec,
            first: None,
            data: Vec::new(),
            end_to_end: Vec::new(),
            local: Vec::new(),
            probes: Vec::new(),
            lost: Vec::new(),
            acks: Vec::new(),
            delivered: Vec::new(),
            windows: Vec::new(),
            timeouts: Vec::new(),
            outages: Vec::new(),
            fades: Vec::new(),
            queue_down: Vec::new(),
            queue_up: Vec::new(),
            cache: Vec::new(),
            cache_limit: 0,
            radio_losses: Vec::new(),
            story: Story::default(),
            roaming: None,
            stations: BTreeMap::new(),
        }
    }

    /// Of a mobile host that changes cells: any of their base stations may serve it, so that
    /// what waits and what is kept is that of all of them together.
    pub fn among_cells(mut self, roaming: Roaming) -> Self {
        self.roaming = Some(Box::new(roaming));
        self
    }

    /// True for the base station, and for each of several.
    fn is_base(&self, node: NodeId) -> bool {
        match &self.roaming {
            Some(roaming) => roaming.cell_of(node).is_some(),
            None => node == self.spec.base,
        }
    }

    /// Which machine sends the stream.
    pub fn sender(&self) -> NodeId {
        self.spec.sender
    }

    /// Which machine receives it.
    pub fn receiver(&self) -> NodeId {
        self.spec.receiver
    }

    fn on_sent(&mut self, node: NodeId, packet: &Packet, at: Instant) {
        // Who sends a stream opened its connection; a SYN with an ACK answers another one.
        let opens = |flags: Flags| flags.contains(Flags::SYN) && !flags.contains(Flags::ACK);
        let tcp = packet.as_tcp().filter(|tcp| opens(tcp.flags));
        if let Some(tcp) = tcp.filter(|_| node == self.spec.sender) {
            self.first = FlowKey::of(packet).map(|flow| (flow, tcp.seq + 1));
        }
        let Some(offset) = self.end_offset(packet) else { return };
        // A host may open several connections; the one that carries the stream is meant.
        if let Some(tcp) = packet.as_tcp().filter(|_| node == self.spec.sender) {
            let begin = (offset - u64::from(packet.payload.len())) as u32;
            self.first = FlowKey::of(packet).map(|flow| (flow, Seq(tcp.seq.0.wrapping_sub(begin))));
        }
        let is_base = self.is_base(node);
        let points = match packet.cause {
            Cause::EndToEndRetransmission => &mut self.end_to_end,
            Cause::LocalRetransmission => &mut self.local,
            Cause::Probe => &mut self.probes,
            _ if node == self.spec.sender => &mut self.data,
            _ => return,
        };
        let own = node == self.spec.sender || is_base;
        let again = is_base && packet.cause == Cause::EndToEndRetransmission;
        if own && !again {
            points.push(Point { at, offset });
        }
    }

    fn on_ack(&mut self, packet: &Packet, at: Instant) {
        if let Some(offset) = self.ack_offset(packet) {
            self.acks.push(Point { at, offset });
        }
    }

    /// Up to where an ACK of this transfer acknowledges.
    fn ack_offset(&self, packet: &Packet) -> Option<u64> {
        let tcp = packet.as_tcp().filter(|tcp| tcp.flags.contains(Flags::ACK))?;
        let (flow, _) = self.first?;
        (FlowKey::of(packet)?.reversed() == flow).then(|| self.offset_of(tcp.ack.0))?
    }

    /// The offset of a sequence number of this transfer, by nearness to the previous ACK.
    fn offset_of(&self, seq: u32) -> Option<u64> {
        let previous = self.acks.last().map_or(0, |point| point.offset);
        let expected = self.first?.1 + previous as u32;
        let moved = seq.wrapping_sub(expected.0) as i32;
        Some(previous.saturating_add_signed(i64::from(moved)))
    }

    /// Remembers what becomes of a packet that carries bytes of this transfer. That it reached the
    /// base station shows in its being passed on.
    fn tell(&mut self, packet: &Packet, record: &Record<'_>) {
        let Some(end) = self.end_offset(packet) else { return };
        // The router above several base stations only passes on.
        if self.roaming.as_ref().is_some_and(|it| it.setting().router == record.node) {
            return;
        }
        match record.what {
            What::Sent { .. } => {
                self.story.on_segment(packet, end - u64::from(packet.payload.len()));
            }
            What::Arrived { .. } if self.is_base(record.node) => return,
            _ => {}
        }
        self.story.on_packet(&record.what, record.node, record.at);
    }

    fn on_event(&mut self, event: &Event, node: NodeId, at: Instant) {
        let sender = self.spec.sender;
        let of_another = event.flow.zip(self.first).is_some_and(|(flow, first)| flow != first.0);
        if (node != sender && !self.is_base(node)) || of_another {
            return;
        }
        if node == sender {
            match event.kind {
                EventKind::Window { cwnd, ssthresh, flight } => {
                    self.windows.push(Window { at, cwnd, ssthresh, flight });
                }
                EventKind::Timeout { .. } => self.timeouts.push(at),
                _ => {}
            }
        }
        let mut story = core::mem::take(&mut self.story);
        story.on_event(event, |seq| self.offset_of(seq), (node, at));
        self.story = story;
    }

    /// What the radio's two hops lose, refuse and keep waiting.
    fn on_radio(&mut self, record: &Record<'_>) {
        let Record { node, at, what } = *record;
        let (What::Lost { side, .. } | What::QueueFull { side, .. } | What::Queued { side, .. }) =
            what
        else {
            return;
        };
        // Machines are numbered from the wired side on.
        let toward_mobile = side == Side::RADIO && self.is_base(node);
        let from_mobile = node == self.spec.sender.max(self.spec.receiver);
        if !toward_mobile && !from_mobile {
            return;
        }
        let cause = match what {
            // Nobody misses a beacon where nobody is.
            What::Lost { packet, .. } if is_broadcast(packet) => return,
            What::Lost { cause, .. } => cause,
            What::Queued { packets, bytes, .. } if toward_mobile => {
                return self.on_waiting(node, (packets, bytes), at);
            }
            What::Queued { packets, bytes, .. } => {
                return self.queue_up.push(Waiting { at, packets, bytes });
            }
            _ => QUEUE_FULL,
        };
        self.radio_losses.push(RadioLoss { at, toward_mobile, cause });
    }

    fn on_waiting(&mut self, node: NodeId, (packets, bytes): (u32, u64), at: Instant) {
        let station = self.stations.entry(node).or_default();
        (station.0, station.1) = (packets, bytes);
        let packets = self.stations.values().map(|station| station.0).sum();
        let bytes = self.stations.values().map(|station| station.1).sum();
        self.queue_down.push(Waiting { at, packets, bytes });
    }

    fn on_cached(&mut self, node: NodeId, (bytes, limit): (u64, u64), at: Instant) {
        self.cache_limit = limit;
        self.stations.entry(node).or_default().2 = bytes;
        let bytes = self.stations.values().map(|station| station.2).sum();
        if self.cache.last().map_or(0, |last| last.bytes) != bytes {
            self.cache.push(Cached { at, bytes });
        }
    }

    /// The offset after the segment's last byte, if it carries bytes of this transfer.
    fn end_offset(&self, packet: &Packet) -> Option<u64> {
        match packet.payload {
            Payload::Virtual { stream, offset, length }
                if length > 0 && stream == self.spec.stream =>
            {
                Some(offset + u64::from(length))
            }
            _ => None,
        }
    }
}

impl Observer for Timeline {
    const ON: bool = true;
    const QUEUES: bool = true;

    fn record(&mut self, record: &Record<'_>) {
        let (node, at) = (record.node, record.at);
        if let Some(roaming) = &mut self.roaming {
            roaming.record(record);
        }
        self.on_radio(record);
        match record.what {
            What::Sent { packet, .. }
            | What::Departed { packet, .. }
            | What::Arrived { packet, .. }
            | What::Lost { packet, .. }
            | What::QueueFull { packet, .. }
            | What::Discarded { packet, .. } => self.tell(packet, record),
            What::Event(event) => self.on_event(event, node, at),
            What::Cached { bytes, limit } if self.is_base(node) => {
                self.on_cached(node, (bytes, limit), at);
            }
            _ => {}
        }
        match record.what {
            What::Sent { packet, .. } => self.on_sent(node, packet, at),
            What::Lost { packet, .. } | What::QueueFull { packet, .. } => {
                if let Some(offset) = self.end_offset(packet) {
                    self.lost.push(Point { at, offset });
                }
            }
            What::Arrived { packet, side: Side::NETWORK } if node == self.spec.sender => {
                self.on_ack(packet, at);
            }
            What::Delivered { payload: Payload::Virtual { stream, offset, length } }
                if node == self.spec.receiver && *stream == self.spec.stream =>
            {
                self.delivered.push(Point { at, offset: offset + u64::from(*length) });
            }
            What::LinkDown { .. } if self.spec.meets(node) => self.outages.push((at, None)),
            What::LinkUp { .. } if self.spec.meets(node) => {
                if let Some((_, end)) = self.outages.last_mut() {
                    *end = Some(at);
                }
            }
            _ => {}
        }
    }
}
