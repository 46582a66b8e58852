//! The loop around an engine, without its waiting: frames to packets, packets to frames.
//!
//! ```text
//!   receive ─▶ takes? ─▶ parse ─▶ Engine::handle ─▶ outbox ─▶ write ─▶ queue ... flush
//!                                      ▲                                          │
//!                                      └──────── Engine::on_departure ◀───────────┘
//! ```
//!
//! A station that only looks on hands nothing on and lets the engine believe it did.
//!
//! What the kernel forwards (the fast path) is seen only: the engine gets it as any other packet,
//! and what it sends on of it is left out, since that has left already. It cannot be withheld,
//! changed or answered; each time the engine would have done so is counted.

use super::bridged::Filtering;
use super::neighbours::{Way, Ways};
use super::selection::{Selection, Verdict};
use crate::frame::{self, Link, NETWORK_AT, Onward, Virtio};
use crate::io::{Arrived, PacketIo};
use anyhow::Result;
use sansio::{
    Cause, Delivery, DropReason, Engine, Event, Input, Instant, Notice, Packet, PacketId,
    PacketRef, Priority, Side, Sink,
};
use serde::Serialize;

/// An engine between two sides.
#[derive(Debug)]
pub struct Station<E> {
    engine: E,
    departures: Departures,
    acting: Acting,
    selection: Selection,
    ways: Ways,
    outbox: Outbox,
    counters: Counters,
    arrived: Vec<Arrived>,
    /// The latest time that the engine was told.
    told_at: Instant,
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

/// Whether what an engine puts out is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acting {
    /// Yes: what came in was taken from the kernel.
    Helping,
    /// No: the kernel forwards what came in, and the engine is told that it left.
    Observing,
}

/// What went through, since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// Frames taken from the kernel.
    pub taken: u64,
    /// Frames seen that the kernel forwards (the fast path).
    pub seen: u64,
    /// Of both, frames with a datagram that a router would discard.
    pub invalid: u64,
    /// Of those seen, packets that the engine would have withheld (SNOOP-DATA-4).
    pub forwarded_all_the_same: u64,
    /// Answers to those, left out since the mobile host answers itself.
    pub answers_left_out: u64,
    /// Of those seen, packets that the engine would have changed: data whose ACK shows by SACK
    /// what the agent repairs (MOD-1).
    pub forwarded_unchanged: u64,
    /// Of those taken, frames that a bridge does not pass on.
    pub filtered: u64,
    /// Frames seen that are the kernel's.
    pub left_to_kernel: u64,
    /// Packets handed to a device.
    pub sent: u64,
    /// Of these, packets that the engine made.
    pub made: u64,
    /// Of these, packets that left joined with others, as one super-packet.
    pub joined: u64,
    /// Packets that the kernel was asked to route, since their next hop was unknown.
    pub routed: u64,
    /// Packets that a device or the kernel refused.
    pub refused: u64,
    /// Packets that the engine let go of.
    pub discarded: u64,
    /// Packets that the engine made or changed, and nobody sent: the station only looked on.
    pub withheld: u64,
}

impl<E: Engine> Station<E> {
    /// A base station that has met nobody yet.
    pub fn new(engine: E, departures: Departures, selection: Selection, ways: Ways) -> Self {
        Station {
            engine,
            departures,
            acting: Acting::Helping,
            selection,
            ways,
            outbox: Outbox::new(),
            counters: Counters::default(),
            arrived: Vec::new(),
            told_at: Instant::ZERO,
            sent: Vec::new(),
            tokens: 0,
            refused: Vec::new(),
        }
    }

    /// The engine.
    pub fn engine(&self) -> &E {
        &self.engine
    }

    /// The same, to be told something.
    pub fn engine_mut(&mut self) -> &mut E {
        &mut self.engine
    }

    /// Acts from here on, or only looks on.
    pub fn act(&mut self, acting: Acting) {
        self.acting = acting;
    }

    /// Takes other packets from here on, or from other devices, behind which hosts are to be
    /// learned anew.
    pub fn select(&mut self, selection: Selection, ways: Ways) {
        self.selection = selection;
        self.ways = ways;
    }

    /// Forgets all soft state (SNOOP-GEN-3), in answer to which nothing is sent.
    pub fn forget(&mut self, now: Instant) {
        self.engine.handle(Input::Notice(Notice::Forget), &mut self.outbox, now);
        self.outbox.packets.clear();
    }

    /// Takes what the engine reported in the last turn and since; the next turn begins without.
    pub fn take_events(&mut self) -> impl Iterator<Item = Event> {
        self.outbox.events.drain(..)
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
        self.outbox.events.clear();
        let mut arrived = core::mem::take(&mut self.arrived);
        io.receive(&mut arrived)?;
        let now = io.now();
        for frame in arrived.drain(..) {
            let at = frame.at.unwrap_or(now).max(self.told_at);
            self.told_at = at;
            self.on_frame(frame, io, at);
        }
        self.arrived = arrived;
        if self.next_deadline().is_some_and(|at| at <= now) {
            self.told_at = now;
            self.handle(Input::Timer, io, now);
        }
        self.flush(io, now);
        Ok(())
    }

    /// Passes on what became known about the link.
    pub fn notice(&mut self, notice: Notice, io: &mut impl PacketIo) {
        let now = io.now();
        self.told_at = now;
        self.handle(Input::Notice(notice), io, now);
        self.flush(io, now);
    }

    fn on_frame(&mut self, arrived: Arrived, io: &mut impl PacketIo, now: Instant) {
        let Arrived { side, frame, .. } = arrived;
        let link = frame.get(Virtio::BYTES..).unwrap_or_default();
        let verdict = self.selection.verdict(side, link);
        match verdict {
            Verdict::Taken => self.counters.taken += 1,
            Verdict::Seen => self.counters.seen += 1,
            Verdict::NotOurs => {
                self.counters.left_to_kernel += 1;
                return;
            }
        }
        debug_assert!(link.len() > NETWORK_AT - Virtio::BYTES, "a selected frame has IP");
        let addresses = Link::of(link);
        let packet = frame::parse(frame, self.outbox.new_id());
        let (Ok(packet), Some(addresses)) = (packet, addresses) else {
            self.counters.invalid += 1;
            return;
        };
        if verdict == Verdict::Seen {
            self.ways.learn(side, addresses, &packet, now);
            self.on_seen(side, packet.into(), io, now);
            return;
        }
        let filtering = self.ways.learn(side, addresses, &packet, now);
        let is_taken = self.acting == Acting::Helping;
        if is_taken && self.ways.is_to_be_told(addresses.source, now) {
            io.tell_bridge(side, addresses.source);
        }
        match filtering {
            Filtering::Passes => {
                self.handle(Input::Arrival { side, packet: packet.into() }, io, now)
            }
            Filtering::Filtered => self.counters.filtered += 1,
        }
    }

    /// A packet that the kernel forwards: what the engine does with it has happened already.
    fn on_seen(&mut self, side: Side, packet: PacketRef, io: &mut impl PacketIo, now: Instant) {
        let withheld = self.outbox.discarded;
        let arrival = Input::Arrival { side, packet: packet.clone() };
        self.engine.handle(arrival, &mut self.outbox, now);
        let is_withheld = self.outbox.discarded > withheld;
        self.outbox.discarded = withheld;
        self.counters.forwarded_all_the_same += u64::from(is_withheld);
        let counters = &mut self.counters;
        self.outbox.packets.retain(|(_, _, sent)| {
            if PacketRef::ptr_eq(sent, &packet) {
                return false;
            }
            let of_this = sent.parent == Some(packet.id);
            let changed = of_this && sent.cause == Cause::Original;
            // Whom the packet reaches all the same answers it.
            let answer = of_this && is_withheld && sent.cause == Cause::AgentAck;
            counters.forwarded_unchanged += u64::from(changed);
            counters.answers_left_out += u64::from(answer);
            !changed && !answer
        });
        if side == Side::WIRED && self.departures == Departures::Reported {
            self.engine.on_departure(Side::RADIO, &packet, &mut self.outbox, now);
        }
        self.put_up(io);
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
        if self.acting == Acting::Observing {
            self.counters.withheld += u64::from(packet.frame.is_none());
            return self.on_left(side, packet);
        }
        let onward = match self.ways.of(packet, io.mac(side, priority)) {
            Way::Known(onward) => onward,
            Way::Kernel => return self.route(side, packet, io),
            Way::Unknown => {
                self.counters.refused += 1;
                return;
            }
        };
        if packet.frame.is_some() || packet.segment_bytes.is_none() {
            self.queue((side, priority), packet, onward, io);
        } else {
            for segment in frame::segments(packet) {
                self.queue((side, priority), &segment.into(), onward, io);
            }
        }
    }

    fn queue(
        &mut self,
        (side, priority): (Side, Priority),
        packet: &PacketRef,
        onward: Onward,
        io: &mut impl PacketIo,
    ) {
        match frame::write(packet, onward) {
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
        self.counters.sent += 1;
        self.on_left(side, packet);
    }

    fn on_left(&mut self, side: Side, packet: &PacketRef) {
        self.tokens += 1;
        if self.departures == Departures::Reported {
            self.sent.push((side == Side::RADIO).then(|| packet.clone()));
        }
    }

    /// Hands everything to the devices, then tells the engine what left; until nothing follows
    /// from that any more.
    fn flush(&mut self, io: &mut impl PacketIo, now: Instant) {
        while self.tokens > 0 {
            self.counters.joined += io.flush(&mut self.refused) as u64;
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
    /// Reported since the last turn began.
    events: Vec<Event>,
}

impl Outbox {
    fn new() -> Self {
        Outbox { packets: Vec::new(), next_id: PacketId::FIRST, discarded: 0, events: Vec::new() }
    }
}

impl Sink for Outbox {
    /// An engine reports interventions, of which there are few beside packets.
    const TRACE: bool = true;

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

    fn event(&mut self, event: Event) {
        self.events.push(event);
    }
}
