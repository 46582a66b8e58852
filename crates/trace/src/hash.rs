//! A number for a whole run: two runs with the same records have the same hash.

use crate::{CellChange, Observer, Record, What};
use sansio::{DropReason, EventKind, Packet, Payload, Transport};

/// FNV-1a over the numbers of every record, 64 bit at a time. Lengths of queues are left out: they
/// follow from the rest, and only some observers have them recorded.
#[derive(Clone, Copy, Debug)]
pub struct TraceHash {
    state: u64,
    records: u64,
}

impl Default for TraceHash {
    fn default() -> Self {
        TraceHash { state: 0xCBF2_9CE4_8422_2325, records: 0 }
    }
}

impl TraceHash {
    /// The hash so far.
    pub fn value(&self) -> u64 {
        self.state
    }

    /// Records seen.
    pub fn records(&self) -> u64 {
        self.records
    }

    fn add(&mut self, value: u64) {
        self.state = (self.state ^ value).wrapping_mul(0x0000_0100_0000_01B3);
        self.state ^= self.state >> 29;
    }

    fn add_text(&mut self, text: &str) {
        for byte in text.bytes() {
            self.add(u64::from(byte));
        }
    }

    fn add_payload(&mut self, payload: &Payload) {
        self.add(u64::from(payload.len()));
        if let Payload::Virtual { stream, offset, .. } = payload {
            self.add(u64::from(stream.0));
            self.add(*offset);
        }
    }

    fn add_packet(&mut self, packet: &Packet) {
        self.add(packet.id.0.get());
        self.add(packet.parent.map_or(0, |parent| parent.0.get()));
        self.add(packet.cause as u64);
        if let Transport::Tcp(tcp) = &packet.transport {
            self.add(u64::from(tcp.source_port) << 16 | u64::from(tcp.destination_port));
            self.add(u64::from(tcp.seq.0) << 32 | u64::from(tcp.ack.0));
            self.add(u64::from(tcp.flags.0) << 16 | u64::from(tcp.window));
            for chunk in tcp.options.as_bytes().chunks(8) {
                self.add(chunk.iter().fold(0, |word, byte| word << 8 | u64::from(*byte)));
            }
        }
        self.add_payload(&packet.payload);
    }

    fn add_event(&mut self, event: &EventKind) {
        match *event {
            EventKind::Window { cwnd, ssthresh, flight } => {
                self.add(u64::from(cwnd) << 32 | u64::from(ssthresh));
                self.add(u64::from(flight));
            }
            EventKind::Rtt { sample, smoothed, timeout } => {
                self.add(sample.as_nanos());
                self.add(smoothed.as_nanos());
                self.add(timeout.as_nanos());
            }
            EventKind::Timeout { seq, attempt } => {
                self.add(u64::from(seq.0) << 32 | u64::from(attempt));
            }
            EventKind::FastRetransmit { seq } => self.add(u64::from(seq.0)),
            EventKind::State { from, to } => {
                self.add_text(from);
                self.add_text(to);
            }
            EventKind::Rule { id, did, value } => {
                self.add_text(id);
                self.add_text(did);
                self.add(value);
            }
            EventKind::Limit { name, value } => {
                self.add_text(name);
                self.add(value);
            }
            EventKind::StandAside { reason } => self.add_text(reason),
            EventKind::Handoff { stage, station } => {
                self.add_text(stage.name());
                self.add(station.map_or(u64::MAX, u64::from));
            }
            _ => self.add(u64::MAX),
        }
    }
}

impl Observer for TraceHash {
    const ON: bool = true;

    fn record(&mut self, record: &Record<'_>) {
        if matches!(record.what, What::Queued { .. }) {
            return;
        }
        self.records += 1;
        self.add(record.at.as_nanos());
        self.add(u64::from(record.node.0));
        match record.what {
            What::Sent { side, priority, packet } => {
                self.add(1 << 16 | u64::from(side.0) << 8 | priority as u64);
                self.add_packet(packet);
            }
            What::Departed { side, packet } => {
                self.add(2 << 16 | u64::from(side.0));
                self.add_packet(packet);
            }
            What::Arrived { side, packet } => {
                self.add(3 << 16 | u64::from(side.0));
                self.add_packet(packet);
            }
            What::Lost { side, packet, cause } => {
                self.add(4 << 16 | u64::from(side.0));
                self.add_text(cause);
                self.add_packet(packet);
            }
            What::QueueFull { side, packet } => {
                self.add(5 << 16 | u64::from(side.0));
                self.add_packet(packet);
            }
            What::Discarded { packet, reason } => {
                self.add(6 << 16);
                if let DropReason::Rule(text) | DropReason::Full(text) = reason {
                    self.add_text(text);
                }
                self.add_packet(packet);
            }
            What::Delivered { payload } => {
                self.add(7 << 16);
                self.add_payload(payload);
            }
            What::LinkDown { side } => self.add(8 << 16 | u64::from(side.0)),
            What::LinkUp { side } => self.add(9 << 16 | u64::from(side.0)),
            What::Cached { bytes, .. } => {
                self.add(10 << 16);
                self.add(bytes);
            }
            What::Queued { .. } => {}
            What::Cell(change) => {
                let (kind, from, to) = match change {
                    CellChange::Reached(cell) => (0, 0, cell),
                    CellChange::Lost(cell) => (1, cell, 0),
                    CellChange::Crossed { from, to } => (2, from, to),
                };
                self.add(12 << 16 | kind);
                self.add(u64::from(from) << 16 | u64::from(to));
            }
            What::Event(event) => {
                self.add(11 << 16);
                self.add_event(&event.kind);
            }
        }
    }
}
