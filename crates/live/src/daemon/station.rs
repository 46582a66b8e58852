//! The loop around an engine, without its waiting: frames to packets, packets to frames.
//!
//! ```text
//!   receive ─▶ takes? ─▶ parse ─▶ Engine::handle ─▶ outbox ─▶ write ─▶ queue ... flush
//!                                      ▲                                          │
//!                                      └──────── Engine::on_departure ◀───────────┘
//! ```

use super::neighbours::Neighbours;
use super::selection::Selection;
use crate::frame::{self, Link, NETWORK_AT, Virtio};
use crate::io::PacketIo;
use anyhow::Result;
use bytes::Bytes;
use sansio::{
    Delivery, DropReason, Engine, Event, Input, Instant, Notice, Packet, PacketId, PacketRef,
    Priority, Side, Sink,
};
use serde::Serialize;
use wire::ethernet::Mac;

/// An engine between two sides.
#[derive(Debug)]
pub struct Station<E> {
    engine: E,
    departures: Departures,
    selection: Selection,
    neighbours: Neighbours,
    outbox: Outbox,
    counters: Counters,
    arrived: Vec<(Side, Bytes)>,
    /// What was put up for sending, by token; kept only if departures are reported.
    sent: Vec<Option<PacketRef>>,
    tokens: u32,
    refused: Vec<u32>,
}

/// Whether an engine is told what was handed to the radio's device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Departures {
    /// Each packet, right after.
    Reported,
    /// It does not ask.
    Silent,
}

/// What went through, since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// Frames taken from the kernel.
    pub taken: u64,
    /// Of these, frames with a datagram that a router would discard.
    pub invalid: u64,
    /// Frames seen that are the kernel's.
    pub left_to_kernel: u64,
    /// Packets handed to a device.
    pub sent: u64,
    /// Of these, packets that the engine made.
    pub made: u64,
    /// Packets that the kernel was asked to route, since their next hop was unknown.
    pub routed: u64,
    /// Packets that a device or the kernel refused.
    pub refused: u64,
    /// Packets that the engine let go of.
    pub discarded: u64,
}

impl<E: Engine> Station<E> {
    /// A base station that has met nobody yet.
    pub fn new(
        engine: E,
        departures: Departures,
        selection: Selection,
        neighbours: Neighbours,
    ) -> Self {
        Station {
            engine,
            departures,
            selection,
            neighbours,
            outbox: Outbox { packets: Vec::new(), next_id: PacketId::FIRST, discarded: 0 },
            counters: Counters::default(),
            arrived: Vec::new(),
            sent: Vec::new(),
            tokens: 0,
            refused: Vec::new(),
        }
    }

    /// The engine.
    pub fn engine(&self) -> &E {
        &self.engine
    }

    /// What went through so far.
    pub fn counters(&self) -> Counters {
        Counters { discarded: self.outbox.discarded, ..self.counters }
    }

    /// When [`Station::turn`] is due though nothing arrived.
    pub fn next_deadline(&self) -> Option<Instant> {
        self.engine.next_deadline().map(|deadline| deadline.at)
    }

    /// Handles what has arrived, and the timer if it is due.
    ///
    /// # Errors
    /// If a device is gone.
    pub fn turn(&mut self, io: &mut impl PacketIo) -> Result<()> {
        let mut arrived = core::mem::take(&mut self.arrived);
        io.receive(&mut arrived)?;
        let now = io.now();
        for (side, frame) in arrived.drain(..) {
            self.on_frame(side, frame, io, now);
        }
        self.arrived = arrived;
        if self.next_deadline().is_some_and(|at| at <= now) {
            self.handle(Input::Timer, io, now);
        }
        self.flush(io, now);
        Ok(())
    }

    /// Passes on what became known about the link.
    pub fn notice(&mut self, notice: Notice, io: &mut impl PacketIo) {
        let now = io.now();
        self.handle(Input::Notice(notice), io, now);
        self.flush(io, now);
    }

    fn on_frame(&mut self, side: Side, bytes: Bytes, io: &mut impl PacketIo, now: Instant) {
        let link = bytes.get(Virtio::BYTES..);
        let Some(link) = link.filter(|link| self.selection.takes(side, link)) else {
            self.counters.left_to_kernel += 1;
            return;
        };
        self.counters.taken += 1;
        let from = link[6..12].first_chunk().map(|octets| Mac(*octets));
        debug_assert!(link.len() > NETWORK_AT - Virtio::BYTES, "a selected frame has IP");
        match frame::parse(bytes, self.outbox.new_id()) {
            Ok(packet) => {
                if let Some(from) = from {
                    self.neighbours.learn(packet.ip.source, from);
                }
                self.handle(Input::Arrival { side, packet: packet.into() }, io, now);
            }
            Err(_) => self.counters.invalid += 1,
        }
    }

    /// One input, and everything that follows from it put up for sending.
    fn handle(&mut self, input: Input, io: &mut impl PacketIo, now: Instant) {
        self.engine.handle(input, &mut self.outbox, now);
        self.put_up(io);
    }

    /// What an engine puts out is put up for sending.
    fn put_up(&mut self, io: &mut impl PacketIo) {
        let mut packets = core::mem::take(&mut self.outbox.packets);
        for (side, priority, packet) in packets.drain(..) {
            self.send(side, priority, &packet, io);
        }
        self.outbox.packets = packets;
    }

    fn send(&mut self, side: Side, priority: Priority, packet: &PacketRef, io: &mut impl PacketIo) {
        self.counters.made += u64::from(packet.frame.is_none());
        let Some(destination) = self.neighbours.find(packet.ip.destination) else {
            self.route(side, packet, io);
            return;
        };
        let link = Link { destination, source: io.mac(side, priority) };
        if packet.frame.is_some() || packet.segment_bytes.is_none() {
            self.queue(side, priority, packet, link, io);
        } else {
            for segment in frame::segments(packet) {
                self.queue(side, priority, &segment.into(), link, io);
            }
        }
    }

    fn queue(
        &mut self,
        side: Side,
        priority: Priority,
        packet: &PacketRef,
        link: Link,
        io: &mut impl PacketIo,
    ) {
        match frame::write(packet, link) {
            Ok(frame) => {
                io.queue(side, priority, self.tokens, frame);
                self.on_sent(side, packet);
            }
            Err(_) => self.counters.refused += 1,
        }
    }

    /// Nobody knows the next hop but the kernel, perhaps.
    fn route(&mut self, side: Side, packet: &Packet, io: &mut impl PacketIo) {
        for segment in frame::segments(packet) {
            let routed = frame::datagram(&segment)
                .is_ok_and(|bytes| io.route(segment.ip.destination, &bytes).is_ok());
            if routed {
                self.counters.routed += 1;
                self.on_sent(side, &segment.into());
            } else {
                self.counters.refused += 1;
            }
        }
    }

    fn on_sent(&mut self, side: Side, packet: &PacketRef) {
        self.tokens += 1;
        self.counters.sent += 1;
        if self.departures == Departures::Reported {
            self.sent.push((side == Side::RADIO).then(|| packet.clone()));
        }
    }

    /// Hands everything to the devices, then tells the engine what left; until nothing follows
    /// from that any more.
    fn flush(&mut self, io: &mut impl PacketIo, now: Instant) {
        while self.tokens > 0 {
            io.flush(&mut self.refused);
            self.tokens = 0;
            let mut sent = core::mem::take(&mut self.sent);
            for token in self.refused.drain(..) {
                self.counters.refused += 1;
                self.counters.sent -= 1;
                if let Some(packet) = sent.get_mut(token as usize) {
                    *packet = None;
                }
            }
            for packet in sent.drain(..).flatten() {
                self.engine.on_departure(Side::RADIO, &packet, &mut self.outbox, now);
            }
            self.put_up(io);
            if self.sent.is_empty() {
                self.sent = sent;
            }
        }
    }
}

/// What an engine puts out.
#[derive(Debug)]
struct Outbox {
    packets: Vec<(Side, Priority, PacketRef)>,
    next_id: PacketId,
    discarded: u64,
}

impl Sink for Outbox {
    const TRACE: bool = false;

    #[inline]
    fn new_id(&mut self) -> PacketId {
        let id = self.next_id;
        self.next_id = id.next();
        id
    }

    #[inline]
    fn send(&mut self, side: Side, priority: Priority, packet: PacketRef) {
        self.packets.push((side, priority, packet));
    }

    fn discard(&mut self, _: PacketRef, _: DropReason) {
        self.discarded += 1;
    }

    fn deliver(&mut self, _: Delivery) {}

    fn event(&mut self, _: Event) {}
}
