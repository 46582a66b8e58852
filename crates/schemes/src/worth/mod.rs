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
//! [`Measured`] is an engine around another. While it only observes, the scheme sees every packet,
//! but what it does goes nowhere; then the ledger says what each loss cost beyond what a local
//! repair takes.

mod class;
mod ledger;

pub use class::{ClassReport, Group, Verdict};
pub use ledger::FlowReport;

use class::Class;
use ledger::Ledger;
use sansio::{
    Cause, Deadline, Delivery, DropReason, Duration, Engine, Event, FlowIndex, FlowKey, Input,
    Instant, Packet, PacketId, PacketRef, Priority, Random, Side, Sink,
};
use std::net::IpAddr;
use wire::tcp::Flags;

/// How help is measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Worth {
    /// The share of flows in the control group, 0 to 0.5; 0 measures nothing. Where the agent
    /// stands aside, the same share is helped.
    pub control_share: f64,
    /// Goodput that help may cost a class, as a share, before the agent stands aside: 0 to 1. What
    /// is measured to be within it is no harm.
    pub harm_budget: f64,
    /// Flows measured at most; further ones are helped, and measured not.
    pub flows_max: u32,
    /// A flow without packets for so long is over.
    pub idle: Duration,
}

impl Default for Worth {
    /// One in twenty, 5 %, 131072 flows, 60 s.
    fn default() -> Self {
        Worth {
            control_share: 0.05,
            harm_budget: 0.05,
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
    /// The scheme acts; otherwise it is shown everything, and what it does goes nowhere.
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

    /// Lets the scheme act, or only look on. What it knows of the flows is then void.
    pub fn set_acts(&mut self, acts: bool, sink: &mut impl Sink, now: Instant) {
        if acts != self.acts {
            self.acts = acts;
            self.inner.handle(Input::Notice(sansio::Notice::Forget), sink, now);
            self.index.clear();
            self.ledgers.clear();
            self.free.clear();
        }
    }

    /// Changes how help is measured; flows keep their group.
    pub fn set_worth(&mut self, worth: Worth) {
        self.worth = worth;
    }

    /// What was measured of each class.
    pub fn classes(&self) -> impl Iterator<Item = ClassReport> {
        self.classes.iter().map(|(_, class)| class.report())
    }

    /// What was measured of a flow, by the direction of its data.
    pub fn flow(&self, key: &FlowKey) -> Option<FlowReport> {
        let slot = self.index.get(key)?;
        self.ledgers[slot as usize].as_ref().map(Ledger::report)
    }

    /// The ledger of a packet's flow, with data toward the mobile host. One is begun if it has
    /// such data.
    fn ledger(&mut self, side: Side, packet: &Packet, now: Instant) -> Option<u32> {
        let key = FlowKey::of(packet)?;
        let key = if side == Side::WIRED { key } else { key.reversed() };
        let recent = self.ledgers.get(self.recent as usize).and_then(Option::as_ref);
        if recent.is_some_and(|ledger| ledger.key() == &key) {
            return Some(self.recent);
        }
        let slot = match self.index.get(&key) {
            Some(slot) => slot,
            None => self.begin(side, key, packet, now)?,
        };
        self.recent = slot;
        Some(slot)
    }

    fn begin(&mut self, side: Side, key: FlowKey, packet: &Packet, now: Instant) -> Option<u32> {
        let tcp = packet.as_tcp()?;
        let begins = side == Side::WIRED && !packet.payload.is_empty();
        let has_room = self.index.len() < self.worth.flows_max as usize;
        if !begins || !has_room || self.worth.control_share <= 0.0 {
            return None;
        }
        let class = self.class_of(key.destination.address);
        let few = self.lot.chance(self.worth.control_share);
        let group = self.classes[class].1.verdict().group(few);
        let ledger = Ledger::new(key, (class, group), tcp.seq, now);
        let slot = self.free.pop().unwrap_or(self.ledgers.len() as u32);
        match self.ledgers.get_mut(slot as usize) {
            Some(place) => *place = Some(ledger),
            None => self.ledgers.push(Some(ledger)),
        }
        self.index.insert(key, slot);
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
    fn note(&mut self, side: Side, packet: &Packet, now: Instant) -> Option<Group> {
        let tcp = packet.as_tcp()?;
        if tcp.flags.intersects(Flags::SYN.with(Flags::RST)) {
            let key = FlowKey::of(packet)?;
            self.end(&if side == Side::WIRED { key } else { key.reversed() }, now);
            return None;
        }
        let slot = self.ledger(side, packet, now)?;
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
        if self.acts
            && let Some(goodput) = ledger.goodput(now)
        {
            let (_, class) = &mut self.classes[ledger.class()];
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

    /// The scheme looks on: the packet passes as it is, and what the scheme would send is noted.
    fn observe(&mut self, side: Side, packet: PacketRef, sink: &mut impl Sink, now: Instant) {
        let toward = if side == Side::WIRED { Side::RADIO } else { Side::WIRED };
        sink.send(toward, Priority::Normal, packet.clone());
        self.look_on(Input::Arrival { side, packet }, sink, now);
    }

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
        let group = self.note(side, &packet, now);
        if !self.acts {
            return self.observe(side, packet, sink, now);
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

/// Where the packets of a scheme go that only looks on: nowhere. Its events are reported.
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

    fn send(&mut self, side: Side, _: Priority, packet: PacketRef) {
        let is_copy = matches!(packet.cause, Cause::LocalRetransmission | Cause::Probe);
        if side == Side::RADIO
            && is_copy
            && let Some((key, tcp)) = FlowKey::of(&packet).zip(packet.as_tcp())
        {
            self.copies.push((key, tcp.seq + tcp.sequence_length(packet.payload.len())));
        }
    }

    fn discard(&mut self, _: PacketRef, _: DropReason) {}

    fn deliver(&mut self, _: Delivery) {}

    fn event(&mut self, event: Event) {
        self.sink.event(event);
    }
}
