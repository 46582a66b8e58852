//! What a scheme's help is worth, measured on the traffic itself (ours; no paper has it).
//!
//! A share of the flows, drawn by lot, is left alone: the control group. It passes as if no agent
//! were here, so that it shows what the others would have without help. If a class of flows gains
//! nothing, or loses, the agent stands aside from it, and helps only as many as it needs to see
//! when that changes.
//!
//! ```text
//!                 ┌─ helped  ── the scheme ──┐
//!   flow ── lot ──┤                          ├─▶ goodput while busy ─▶ class ─▶ verdict
//!                 └─ control ── untouched ───┘                           ▲ │
//!                                                        prefix of the ──┘ ▼
//!                                                        mobile host    whom to help
//! ```
//!
//! Map: `ledger` (what passes in one flow), `class` (samples, and what follows from them).
//! [`Measured`] is an engine around another. While the scheme only looks on, the ledger says what
//! each loss cost beyond what a local repair takes.

mod class;
mod ledger;

pub use class::{ClassReport, Group, Verdict};
pub use ledger::{ControlFlow, FlowReport};

use class::Class;
use core::ops::Range;
use ledger::Ledger;
use sansio::{
    Cause, Deadline, Delivery, DropReason, Duration, Engine, Event, FlowIndex, FlowKey, Input,
    Instant, Notice, Packet, PacketId, PacketRef, Priority, Random, Side, Sink,
};
use std::net::IpAddr;
use wire::tcp::Flags;

/// How help is measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Worth {
    /// The share of flows in the control group, in parts per million, 0 to 500,000; 0 measures
    /// nothing. Where the agent stands aside, the same share is helped.
    pub control_ppm: u32,
    /// Goodput that help may cost a class before the agent stands aside, in parts per million, 0 to
    /// 1,000,000. What is measured to be within it is no harm.
    pub harm_budget_ppm: u32,
    /// Flows measured at most; further ones are helped, and measured not.
    pub flows_max: u32,
    /// A flow without packets for so long is over.
    pub idle: Duration,
}

impl Worth {
    /// Nothing is measured: every flow is helped.
    pub const NONE: Worth =
        Worth { control_ppm: 0, harm_budget_ppm: 0, flows_max: 0, idle: Duration::ZERO };
}

impl Default for Worth {
    /// One in twenty, 5 %, 131072 flows, 60 s.
    fn default() -> Self {
        Worth {
            control_ppm: 50_000,
            harm_budget_ppm: 50_000,
            flows_max: 1 << 17,
            idle: Duration::from_secs(60),
        }
    }
}

/// A scheme, and what its help is worth.
#[derive(Clone, Debug)]
pub struct Measured<E> {
    inner: E,
    worth: Worth,
    /// What the scheme puts out is handed on.
    acts: bool,
    index: FlowIndex,
    ledgers: Vec<Option<Ledger>>,
    free: Vec<u32>,
    recent: u32,
    /// Where the search for flows that are over goes on, and when.
    hand: usize,
    looks_at: Instant,
    lot: Random,
    classes: Vec<(Vec<(IpAddr, u8)>, Class)>,
}

/// Between two looks for flows that are over,
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// and how many of them are looked at.
const LOOKED_AT: usize = 256;

impl<E: Engine> Measured<E> {
    /// A scheme whose help is measured in classes of mobile hosts: by name, with their prefixes.
    /// Who is in none is of the last one, which is called `others`. `key` decides the lots.
    pub fn new(
        inner: E,
        worth: Worth,
        classes: impl IntoIterator<Item = (String, Vec<(IpAddr, u8)>)>,
        key: u64,
    ) -> Self {
        let others = [("others".to_owned(), Vec::new())];
        let classes = classes.into_iter().chain(others);
        Measured {
            inner,
            acts: true,
            index: FlowIndex::new(key),
            ledgers: Vec::new(),
            free: Vec::new(),
            recent: 0,
            hand: 0,
            looks_at: Instant::ZERO,
            lot: Random::new(key, "control group"),
            classes: classes.map(|(name, prefixes)| (prefixes, Class::new(name))).collect(),
            worth,
        }
    }

    /// The scheme.
    pub fn inner(&self) -> &E {
        &self.inner
    }

    /// The scheme.
    pub fn inner_mut(&mut self) -> &mut E {
        &mut self.inner
    }

    /// The scheme acts, or only looks on: then whoever drives it hands nothing on of what it puts
    /// out, and every flow passes untouched. Flows are measured anew.
    pub fn set_acts(&mut self, acts: bool) {
        if acts != self.acts {
            self.acts = acts;
            self.index.clear();
            self.ledgers.clear();
            self.free.clear();
        }
    }

    /// True if flows are measured: with a control group, or while nobody is helped.
    fn measures(&self) -> bool {
        self.worth.control_ppm > 0 || !self.acts && self.worth.flows_max > 0
    }

    /// Changes how help is measured; flows keep their group.
    pub fn set_worth(&mut self, worth: Worth) {
        self.worth = worth;
    }

    /// What was measured of each class.
    pub fn classes(&self) -> impl Iterator<Item = ClassReport> {
        self.classes.iter().map(|(_, class)| class.report())
    }

    /// The flows that pass untouched, to compare with, as far as their measurements are in these
    /// places. A flow stays in its place.
    pub fn control_flows(&self, places: Range<usize>) -> impl Iterator<Item = ControlFlow> {
        let end = places.end.min(self.ledgers.len());
        let ledgers = &self.ledgers[places.start.min(end)..end];
        let ledgers = ledgers.iter().flatten().filter(|_| self.acts);
        ledgers.filter(|ledger| ledger.group() == Group::Control).map(Ledger::control_flow)
    }

    /// How many places there are for measurements of flows.
    pub fn places(&self) -> usize {
        self.ledgers.len()
    }

    /// What was measured of a flow, by the direction of its data.
    pub fn flow(&self, key: &FlowKey) -> Option<FlowReport> {
        let slot = self.index.get(key)?;
        self.ledgers[slot as usize].as_ref().map(Ledger::report)
    }

    /// The ledger of a packet's flow, with data toward the mobile host. One is begun if it has
    /// such data.
    fn ledger(
        &mut self,
        side: Side,
        packet: &Packet,
        sink: &mut impl Sink,
        now: Instant,
    ) -> Option<u32> {
        let key = FlowKey::of(packet)?;
        let key = if side == Side::WIRED { key } else { key.reversed() };
        let recent = self.ledgers.get(self.recent as usize).and_then(Option::as_ref);
        if recent.is_some_and(|ledger| ledger.key() == &key) {
            return Some(self.recent);
        }
        let slot = match self.index.get(&key) {
            Some(slot) => slot,
            None => self.begin(side, key, packet, (sink, now))?,
        };
        self.recent = slot;
        Some(slot)
    }

    #[cold]
    fn begin(
        &mut self,
        side: Side,
        key: FlowKey,
        packet: &Packet,
        (sink, now): (&mut impl Sink, Instant),
    ) -> Option<u32> {
        let tcp = packet.as_tcp()?;
        let begins = side == Side::WIRED && !packet.payload.is_empty();
        let has_room = self.index.len() < self.worth.flows_max as usize;
        if !begins || !has_room || !self.measures() {
            return None;
        }
        let class = self.class_of(key.destination.address);
        let few = self.lot.chance(f64::from(self.worth.control_ppm) / 1e6);
        let group = self.classes[class].1.verdict().group(few);
        let ledger = Ledger::new(key, (class, group), tcp.seq, now);
        let slot = self.free.pop().unwrap_or(self.ledgers.len() as u32);
        match self.ledgers.get_mut(slot as usize) {
            Some(place) => *place = Some(ledger),
            None => self.ledgers.push(Some(ledger)),
        }
        self.index.insert(key, slot);
        if self.acts && group == Group::Control {
            // The scheme may know it from before it was measured.
            self.inner.handle(Input::Notice(Notice::ForgetFlow(key)), sink, now);
        }
        Some(slot)
    }

    fn class_of(&self, host: IpAddr) -> usize {
        let holds = |prefixes: &[(IpAddr, u8)]| {
            prefixes.iter().any(|(network, bits)| shares_prefix(*network, host, *bits))
        };
        let found = self.classes.iter().position(|(prefixes, _)| holds(prefixes));
        found.unwrap_or(self.classes.len() - 1)
    }

    /// A packet passes: what it tells of its flow. Returns the flow's group, if it is measured.
    fn note(
        &mut self,
        side: Side,
        packet: &Packet,
        sink: &mut impl Sink,
        now: Instant,
    ) -> Option<Group> {
        let tcp = packet.as_tcp()?;
        if tcp.flags.intersects(Flags::SYN.with(Flags::RST)) {
            let key = FlowKey::of(packet)?;
            self.end(&if side == Side::WIRED { key } else { key.reversed() }, now);
            return None;
        }
        let slot = self.ledger(side, packet, sink, now)?;
        let ledger = self.ledgers[slot as usize].as_mut()?;
        let (group, key) = (ledger.group(), *ledger.key());
        match side {
            Side::WIRED => ledger.on_data(tcp, packet.payload.len(), now),
            _ => ledger.on_ack(tcp, now),
        }
        if ledger.is_over() {
            self.end(&key, now);
        }
        Some(group)
    }

    /// A flow is over: it counts, if it was long enough to tell something.
    fn end(&mut self, key: &FlowKey, now: Instant) {
        let Some(slot) = self.index.remove(key) else { return };
        self.free.push(slot);
        let Some(ledger) = self.ledgers[slot as usize].take() else { return };
        let (_, class) = &mut self.classes[ledger.class()];
        if !self.acts {
            class.observed(&ledger.report());
        } else if let Some(goodput) = ledger.goodput(now) {
            class.add(ledger.group(), goodput, &self.worth);
        }
    }

    /// Some flows are looked at, going round: who is idle is over.
    fn look_for_idle(&mut self, now: Instant) {
        self.looks_at = now + LOOK_EVERY;
        for _ in 0..LOOKED_AT.min(self.ledgers.len()) {
            self.hand = (self.hand + 1) % self.ledgers.len();
            if let Some(ledger) = &self.ledgers[self.hand]
                && ledger.is_idle(self.worth.idle, now)
            {
                let key = *ledger.key();
                self.end(&key, now);
            }
        }
    }

    /// The scheme looks on: what it would send again is noted.
    fn look_on(&mut self, input: Input, sink: &mut impl Sink, now: Instant) {
        let mut notes = Notes { sink, copies: Vec::new() };
        self.inner.handle(input, &mut notes, now);
        for (key, end) in notes.copies {
            let slot = self.index.get(&key);
            if let Some(ledger) = slot.and_then(|slot| self.ledgers[slot as usize].as_mut()) {
                ledger.on_copy(end, now);
            }
        }
    }
}

/// True if the first `bits` bits of two addresses of one family are the same.
fn shares_prefix(a: IpAddr, b: IpAddr, bits: u8) -> bool {
    let differ = match (a, b) {
        (IpAddr::V4(a), IpAddr::V4(b)) => (a.to_bits() ^ b.to_bits()).leading_zeros(),
        (IpAddr::V6(a), IpAddr::V6(b)) => (a.to_bits() ^ b.to_bits()).leading_zeros(),
        _ => return false,
    };
    differ >= u32::from(bits)
}

impl<E: Engine> Engine for Measured<E> {
    fn handle(&mut self, input: Input, sink: &mut impl Sink, now: Instant) {
        if now >= self.looks_at {
            self.look_for_idle(now);
        }
        let Input::Arrival { side, packet } = input else {
            return match self.acts {
                true => self.inner.handle(input, sink, now),
                false => self.look_on(input, sink, now),
            };
        };
        let group = if self.measures() { self.note(side, &packet, sink, now) } else { None };
        if !self.acts {
            return self.look_on(Input::Arrival { side, packet }, sink, now);
        }
        if group == Some(Group::Control) {
            let toward = if side == Side::WIRED { Side::RADIO } else { Side::WIRED };
            return sink.send(toward, Priority::Normal, packet);
        }
        self.inner.handle(Input::Arrival { side, packet }, sink, now);
    }

    fn on_departure(&mut self, side: Side, packet: &Packet, sink: &mut impl Sink, now: Instant) {
        self.inner.on_departure(side, packet, sink, now);
    }

    fn next_deadline(&self) -> Option<Deadline> {
        self.inner.next_deadline()
    }

    fn next_at(&self) -> Option<Instant> {
        self.inner.next_at()
    }
}

/// What a scheme sends that only looks on.
struct Notes<'a, S> {
    sink: &'a mut S,
    /// Flow and end of what it would have sent again.
    copies: Vec<(FlowKey, wire::tcp::Seq)>,
}

impl<S: Sink> Sink for Notes<'_, S> {
    const TRACE: bool = S::TRACE;

    fn new_id(&mut self) -> PacketId {
        self.sink.new_id()
    }

    fn send(&mut self, side: Side, priority: Priority, packet: PacketRef) {
        let is_copy = matches!(packet.cause, Cause::LocalRetransmission | Cause::Probe);
        if side == Side::RADIO
            && is_copy
            && let Some((key, tcp)) = FlowKey::of(&packet).zip(packet.as_tcp())
        {
            self.copies.push((key, tcp.seq + tcp.sequence_length(packet.payload.len())));
        }
        self.sink.send(side, priority, packet);
    }

    fn discard(&mut self, packet: PacketRef, reason: DropReason) {
        self.sink.discard(packet, reason);
    }

    fn deliver(&mut self, delivery: Delivery) {
        self.sink.deliver(delivery);
    }

    fn event(&mut self, event: Event) {
        self.sink.event(event);
    }
}
