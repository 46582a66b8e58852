//! The event loop.

mod planned;
mod roaming;

use crate::cell::End;
use crate::network::{Machine, NEVER, Network, Node};
use crate::queue::EventQueue;
use link::What as Happened;
use link::hop::Length;
use node::Host;
use node::scenario::Departures;
use sansio::{
    Delivery, DropReason, Engine, Event, Input, Instant, Packet, PacketId, PacketRef, Payload,
    Priority, Side, Sink,
};
use trace::{NodeId, Observer, Record, What};

/// One run under way.
#[derive(Debug)]
pub(crate) struct Kernel<O> {
    nodes: Vec<Node>,
    world: World<O>,
}

/// All but the machines: what a machine's outputs go into.
#[derive(Debug)]
struct World<O> {
    network: Network,
    /// The hop whose event is being handled: its entry is still the first, and is replaced last.
    current: usize,
    queue: EventQueue,
    observer: O,
    next_id: PacketId,
    /// What the machine at hand gave to its radio's device ([`Outbox::told`]).
    handed: Vec<PacketRef>,
    /// Packets that nobody has any more, their memory for the next ones: the last one's is still
    /// in the processor's cache. Never more than there were packets at one time.
    unused: Vec<PacketRef>,
    /// Bytes still to be delivered, per stream; and how many streams still miss some.
    missing: Vec<u64>,
    unfinished: usize,
    events: u64,
}

/// The slots of the queue: hops first, then machines, outages, forgetting, mobile hosts that move.
#[derive(Clone, Copy, Debug)]
enum Slot {
    Wire(usize),
    Machine(NodeId),
    Away(usize),
    Forgetting(usize),
    Moving(u32),
}

impl<O: Observer> Kernel<O> {
    pub(crate) fn new(mut network: Network, missing: Vec<u64>, observer: O) -> Self {
        let nodes = core::mem::take(&mut network.nodes);
        if O::QUEUES {
            network.wires.iter_mut().for_each(|wire| wire.hop.note_lengths());
        }
        let world = World {
            current: usize::MAX,
            network,
            queue: EventQueue::new(),
            observer,
            next_id: PacketId::FIRST,
            handed: Vec::new(),
            unused: Vec::new(),
            unfinished: missing.iter().filter(|bytes| **bytes > 0).count(),
            missing,
            events: 0,
        };
        Kernel { nodes, world }
    }

    /// Starts the hosts, then runs until everything is delivered or time is up; returns when.
    pub(crate) fn run(&mut self, until: Instant) -> Instant {
        let mut now = Instant::ZERO;
        self.start();
        while self.world.unfinished > 0 {
            let Some((slot, at)) = self.world.queue.first().filter(|(_, at)| *at <= until) else {
                return until;
            };
            debug_assert!(at >= now, "time does not run backwards");
            now = at;
            self.world.queue.take_first();
            match self.slot(slot) {
                Slot::Wire(wire) if self.world.network.wires[wire].due == at => {
                    self.on_wire(wire, now)
                }
                Slot::Machine(node) if self.nodes[node.0 as usize].armed == at => {
                    self.on_deadline(node, now);
                }
                Slot::Wire(_) | Slot::Machine(_) => {}
                Slot::Away(index) => self.on_transition(index, now),
                Slot::Forgetting(index) => self.on_forget(index, now),
                Slot::Moving(mobile) => self.on_moving(mobile, now),
            }
        }
        now
    }

    #[inline]
    fn slot(&self, slot: u32) -> Slot {
        let slot = slot as usize;
        let (wires, machines) = (self.world.network.wires.len(), self.nodes.len());
        let away = self.world.network.away.len();
        let forgetting = self.world.network.forgetting.len();
        match slot {
            wire if wire < wires => Slot::Wire(wire),
            machine if machine < wires + machines => {
                Slot::Machine(NodeId((machine - wires) as u32))
            }
            index if index < wires + machines + away => Slot::Away(index - wires - machines),
            index if index < wires + machines + away + forgetting => {
                Slot::Forgetting(index - wires - machines - away)
            }
            index => Slot::Moving((index - wires - machines - away - forgetting) as u32),
        }
    }

    fn number(&self, slot: Slot) -> u32 {
        let (wires, machines) = (self.world.network.wires.len(), self.nodes.len());
        let number = match slot {
            Slot::Wire(wire) => wire,
            Slot::Machine(node) => wires + node.0 as usize,
            Slot::Away(index) => wires + machines + index,
            Slot::Forgetting(index) => wires + machines + self.world.network.away.len() + index,
            Slot::Moving(mobile) => {
                let (away, forgetting) =
                    (self.world.network.away.len(), self.world.network.forgetting.len());
                wires + machines + away + forgetting + mobile as usize
            }
        };
        number as u32
    }

    /// Something happened on a hop: everything that did so by now.
    #[inline]
    fn on_wire(&mut self, wire: usize, now: Instant) {
        self.world.events += 1;
        self.world.current = wire;
        let next = loop {
            self.world.network.settle(wire, now);
            let hop = &mut self.world.network.wires[wire].hop;
            let outcome = if O::ON { hop.poll(now) } else { hop.poll_arrival(now) };
            let nothing = outcome.is_none();
            if let Some(outcome) = outcome {
                self.on_outcome(wire, outcome, now);
            }
            let next = self.world.next_event(wire);
            if nothing || next > now {
                break next;
            }
        };
        self.world.record_lengths(wire);
        self.world.current = usize::MAX;
        self.world.network.wires[wire].due = next;
        if next != NEVER {
            self.world.queue.add(wire as u32, next);
        }
    }

    #[inline]
    fn on_outcome(&mut self, wire: usize, outcome: link::Outcome<PacketRef>, now: Instant) {
        if self.world.network.roam().is_some() {
            return self.on_roaming_outcome(wire, outcome, now);
        }
        let (from, to) = self.world.network.ends_of(wire, &outcome.what);
        match outcome.what {
            Happened::Arrived(packet) => {
                let what = What::Arrived { side: to.1, packet: &packet };
                self.world.record(to.0, outcome.at, what);
                self.handle(to.0, Input::Arrival { side: to.1, packet }, now);
            }
            Happened::Departed(packet) => {
                if let Machine::Base(base) = &mut self.nodes[from.0.0 as usize].machine {
                    self.world.tell_departure(&mut base.scheme, from, packet, outcome.at);
                }
            }
            Happened::Verdict(packet, acknowledged) => {
                self.on_verdict(from, (packet, acknowledged), now);
            }
            Happened::Lost(packet, loss) => {
                let what = What::Lost { side: from.1, packet: &packet, cause: loss.name() };
                self.world.record(from.0, outcome.at, what);
                self.world.release(packet);
            }
            _ => {}
        }
    }

    #[cold]
    fn on_verdict(
        &mut self,
        (node, side): (NodeId, Side),
        (packet, acknowledged): (PacketRef, bool),
        now: Instant,
    ) {
        match &self.nodes[node.0 as usize].machine {
            Machine::Base(base) if base.scheme.wants_verdicts() => {
                self.handle(node, Input::Verdict { side, packet, acknowledged }, now);
            }
            _ => self.world.release(packet),
        }
    }

    fn on_deadline(&mut self, node: NodeId, now: Instant) {
        self.world.events += 1;
        let index = node.0 as usize;
        let entry = &mut self.nodes[index];
        entry.armed = NEVER;
        let due = entry.machine.next_at().is_some_and(|at| at <= now);
        if due {
            self.handle(node, Input::Timer, now);
        } else {
            self.rearm(node);
        }
    }

    /// Gives a machine one input and sees to its next deadline.
    #[inline]
    fn handle(&mut self, node: NodeId, input: Input, now: Instant) {
        let world = &mut self.world;
        match &mut self.nodes[node.0 as usize].machine {
            Machine::Host(host) => {
                host.handle(input, &mut Outbox { world, node, now, told: false }, now);
            }
            Machine::Base(base) => {
                if base.departures == Some(Departures::Air) {
                    world.tell_departures(&mut base.scheme, node, now);
                }
                let told = base.departures == Some(Departures::Device);
                let mut outbox = Outbox { world, node, now, told };
                if base.bypasses(&input) {
                    schemes::plain::Forwarder.handle(input, &mut outbox, now);
                } else {
                    base.scheme.handle(input, &mut outbox, now);
                }
                if told {
                    tell_handed(&mut base.scheme, &mut outbox, now);
                }
                if O::ON {
                    let scheme = &base.scheme;
                    let (bytes, limit) = (scheme.held_bytes(), scheme.held_bytes_max());
                    self.world.record(node, now, What::Cached { bytes, limit });
                }
            }
            Machine::Mobile(mobile) => {
                mobile.handle(input, &mut Outbox { world, node, now, told: false }, now);
            }
            _ => self.handle_roaming(node, input, now),
        }
        self.rearm(node);
    }

    /// Enters a machine's deadline if it is earlier than what is entered. A later one waits until
    /// the entered one comes: a retransmission timer moves with every ACK, its entry does not.
    #[inline]
    fn rearm(&mut self, node: NodeId) {
        let entry = &mut self.nodes[node.0 as usize];
        let Some(at) = entry.machine.next_at() else { return };
        if at < entry.armed {
            entry.armed = at;
            let number = self.number(Slot::Machine(node));
            self.world.queue.add(number, at);
        }
    }

    /// What the radios' hops counted.
    pub(crate) fn radio(&self) -> impl Iterator<Item = link::Statistics> {
        self.world.network.radio().map(|wire| wire.hop.statistics())
    }

    /// Packets in the hops' queues and on the air.
    pub(crate) fn under_way(&self) -> usize {
        self.world.network.wires.iter().map(|wire| under_way(&wire.hop.statistics())).sum()
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.world.unfinished == 0
    }

    /// Events so far.
    pub(crate) fn events(&self) -> u64 {
        self.world.events
    }

    /// The end hosts.
    pub(crate) fn hosts(&self) -> impl Iterator<Item = &Host> {
        self.nodes.iter().filter_map(|node| match &node.machine {
            Machine::Host(host) => Some(host),
            Machine::Mobile(mobile) => Some(mobile.host()),
            Machine::Roaming(mobile) => Some(mobile.host()),
            Machine::Base(_) | Machine::Router(_) | Machine::Cellular(_) => None,
        })
    }
}

/// Packets that a hop accepted and has not given back.
fn under_way(statistics: &link::Statistics) -> usize {
    (statistics.enqueued - statistics.delivered - statistics.lost_total()) as usize
}

impl Machine {
    #[inline]
    fn next_at(&self) -> Option<Instant> {
        match self {
            Machine::Host(host) => host.next_at(),
            Machine::Mobile(mobile) => mobile.next_at(),
            Machine::Base(base) => base.scheme.next_at(),
            Machine::Router(router) => router.next_at(),
            Machine::Cellular(cellular) => cellular.station.next_at(),
            Machine::Roaming(mobile) => mobile.next_at(),
        }
    }
}

impl<O: Observer> World<O> {
    #[inline]
    fn record(&mut self, node: NodeId, at: Instant, what: What<'_>) {
        if O::ON {
            self.observer.record(&Record { at, node, what });
        }
    }

    /// Tells a base station what departed onto its radio by now. It learns of it before anything
    /// else is told, so that nobody sees a difference if the kernel does not stop at departures.
    #[inline]
    fn tell_departures(&mut self, scheme: &mut impl Engine, base: NodeId, now: Instant) {
        let wire = self.network.radio_of(base);
        self.network.settle(wire, now);
        while let Some((at, packet)) = self.network.wires[wire].hop.poll_departure(now) {
            self.tell_departure(scheme, (base, Side::RADIO), packet, at);
        }
    }

    #[inline]
    fn tell_departure(
        &mut self,
        scheme: &mut impl Engine,
        (node, side): End,
        packet: PacketRef,
        at: Instant,
    ) {
        self.record(node, at, What::Departed { side, packet: &packet });
        let mut outbox = Outbox { world: self, node, now: at, told: false };
        scheme.on_departure(side, &packet, &mut outbox, at);
    }

    /// What waited on a hop since it was last asked.
    #[inline]
    fn record_lengths(&mut self, wire: usize) {
        if O::QUEUES {
            let Some((node, side)) = self.network.queues_at(wire) else { return };
            while let Some(Length { at, packets, bytes }) =
                self.network.wires[wire].hop.poll_length()
            {
                self.record(node, at, What::Queued { side, packets, bytes });
            }
        }
    }

    #[inline(always)]
    fn release(&mut self, packet: PacketRef) {
        if PacketRef::strong_count(&packet) == 1 {
            self.unused.push(packet);
        }
    }

    /// When a hop has to be polled next. Only an observer needs departures at their instant.
    #[inline]
    fn next_event(&self, wire: usize) -> Instant {
        let hop = &self.network.wires[wire].hop;
        let next = if O::ON { hop.next_event() } else { hop.next_arrival() };
        next.unwrap_or(NEVER)
    }

    /// Enters a hop's next event where it changed.
    #[inline]
    fn rearm_wire(&mut self, wire: usize) {
        if wire == self.current {
            return;
        }
        let next = self.next_event(wire);
        let due = &mut self.network.wires[wire].due;
        if *due != next {
            *due = next;
            if next != NEVER {
                self.queue.add(wire as u32, next);
            }
        }
    }
}

/// Where a machine's outputs go.
struct Outbox<'a, O> {
    world: &'a mut World<O>,
    node: NodeId,
    now: Instant,
    /// It is told of what it gives to its radio's device as if that departed.
    told: bool,
}

/// Tells a scheme what its device has taken; the device does not say what it then drops. Like the
/// daemon, only once all outputs are under way.
#[cold]
fn tell_handed<O: Observer>(scheme: &mut impl Engine, outbox: &mut Outbox<'_, O>, now: Instant) {
    let mut index = 0;
    while let Some(packet) = outbox.world.handed.get(index).cloned() {
        scheme.on_departure(Side::RADIO, &packet, outbox, now);
        index += 1;
    }
    outbox.world.handed.clear();
}

impl<O: Observer> Sink for Outbox<'_, O> {
    const TRACE: bool = O::ON;

    #[inline]
    fn new_id(&mut self) -> PacketId {
        let id = self.world.next_id;
        self.world.next_id = id.next();
        id
    }

    #[inline]
    fn place(&mut self, packet: Packet) -> PacketRef {
        if let Some(mut place) = self.world.unused.pop()
            && let Some(room) = PacketRef::get_mut(&mut place)
        {
            *room = packet;
            return place;
        }
        PacketRef::new(packet)
    }

    #[inline]
    fn send(&mut self, side: Side, priority: Priority, packet: PacketRef) {
        let wire = self.world.network.wire_of(self.node, side, &packet);
        self.world.record(self.node, self.now, What::Sent { side, priority, packet: &packet });
        if self.told && side == Side::RADIO {
            self.world.handed.push(packet.clone());
        }
        let bytes = packet.bytes();
        self.world.network.settle(wire, self.now);
        let refused = self.world.network.wires[wire].hop.enqueue(packet, bytes, priority, self.now);
        if let Err(packet) = refused {
            let what = What::QueueFull { side, packet: &packet };
            self.world.record(self.node, self.now, what);
            self.world.release(packet);
        }
        self.world.record_lengths(wire);
        self.world.rearm_wire(wire);
    }

    #[inline]
    fn discard(&mut self, packet: PacketRef, reason: DropReason) {
        self.world.record(self.node, self.now, What::Discarded { packet: &packet, reason });
        self.world.release(packet);
    }

    #[inline(always)]
    fn release(&mut self, packet: PacketRef) {
        self.world.release(packet);
    }

    #[inline]
    fn deliver(&mut self, delivery: Delivery) {
        self.world.record(self.node, self.now, What::Delivered { payload: &delivery.payload });
        let Payload::Virtual { stream, length, .. } = delivery.payload else { return };
        let Some(missing) = self.world.missing.get_mut(stream.0 as usize) else { return };
        if *missing > 0 {
            *missing = missing.saturating_sub(u64::from(length));
            self.world.unfinished -= usize::from(*missing == 0);
        }
    }

    #[inline]
    fn event(&mut self, event: Event) {
        self.world.record(self.node, self.now, What::Event(&event));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use node::scenario::{Axis, Scenario};
    use node::{Draft, Plan};

    /// A megabyte is 700 packets and as many ACKs; no more than a window of each exists at a time.
    #[test]
    fn the_memory_of_packets_that_were_let_go_serves_the_next_ones() {
        for scheme in ["plain", "snoop"] {
            let schemes = Some(Axis(vec![scheme.to_owned()]));
            let size = "1MB".parse().ok();
            let scenario = Scenario::complete(Draft { size, schemes, ..Draft::default() }).unwrap();
            let plan = Plan::new(&scenario, &scenario.cases()[0]).unwrap();
            let mut kernel = Kernel::new(Network::new(&plan, 1), plan.missing(), trace::Nothing);
            kernel.run(plan.until());
            assert!(kernel.is_finished());
            let unused = &kernel.world.unused;
            assert!((1..200).contains(&unused.len()), "{scheme}: {} unused", unused.len());
            assert!(unused.iter().all(|packet| PacketRef::strong_count(packet) == 1));
        }
    }
}
