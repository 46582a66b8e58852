//! What a time-sequence graph needs: points and spans of one transfer, in stream offsets.

use crate::metrics::TransferSpec;
use crate::{NodeId, Observer, Record, What};
use sansio::{Cause, EventKind, FlowKey, Instant, Packet, Payload, Side};
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

/// The points of one transfer.
#[derive(Clone, Debug)]
pub struct Timeline {
    spec: TransferSpec,
    first: Option<Seq>,
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
        }
    }

    fn on_sent(&mut self, node: NodeId, packet: &Packet, at: Instant) {
        let tcp = packet.as_tcp().filter(|tcp| tcp.flags.contains(Flags::SYN));
        if let Some(tcp) = tcp.filter(|_| node == self.spec.sender) {
            self.first = Some(tcp.seq + 1);
        }
        let Some(offset) = self.end_offset(packet) else { return };
        let points = match packet.cause {
            Cause::EndToEndRetransmission => &mut self.end_to_end,
            Cause::LocalRetransmission => &mut self.local,
            Cause::Probe => &mut self.probes,
            _ if node == self.spec.sender => &mut self.data,
            _ => return,
        };
        let own = node == self.spec.sender || node == self.spec.base;
        let again = node == self.spec.base && packet.cause == Cause::EndToEndRetransmission;
        if own && !again {
            points.push(Point { at, offset });
        }
    }

    fn on_ack(&mut self, packet: &Packet, at: Instant) {
        let (Some(first), Some(tcp)) = (self.first, packet.as_tcp()) else { return };
        let forward = FlowKey::of(packet).is_some() && tcp.flags.contains(Flags::ACK);
        if !forward {
            return;
        }
        // Unwrapped by nearness to the previous ACK.
        let previous = self.acks.last().map_or(0, |point| point.offset);
        let expected = first + previous as u32;
        let moved = tcp.ack.0.wrapping_sub(expected.0) as i32;
        let offset = previous.saturating_add_signed(i64::from(moved));
        self.acks.push(Point { at, offset });
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

    fn record(&mut self, record: &Record<'_>) {
        let (node, at) = (record.node, record.at);
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
            What::LinkDown { .. } if node == self.spec.base => self.outages.push((at, None)),
            What::LinkUp { .. } if node == self.spec.base => {
                if let Some((_, end)) = self.outages.last_mut() {
                    *end = Some(at);
                }
            }
            What::Event(event) if node == self.spec.sender => match event.kind {
                EventKind::Window { cwnd, ssthresh, flight } => {
                    self.windows.push(Window { at, cwnd, ssthresh, flight });
                }
                EventKind::Timeout { .. } => self.timeouts.push(at),
                _ => {}
            },
            _ => {}
        }
    }
}
