//! What a network with several cells adds: packets on the air that reach nobody, broadcasts, and
//! mobile hosts that move.

use super::{Happened, Kernel, Outbox, Slot, tell_handed};
use crate::network::Machine;
use crate::roam::{Leads, is_broadcast};
use link::Outcome;
use node::movement::{Cell, Change};
use node::plan::Way;
use node::roaming::address;
use node::scenario::Departures;
use sansio::{Engine, Input, Instant, Notice, PacketId, PacketRef, Side, Signal};
use trace::handoffs::OUT_OF_CELL;
use trace::{CellChange, NodeId, Observer, What};

impl<O: Observer> Kernel<O> {
    /// Something happened on a hop of a network with cells.
    #[cold]
    pub(super) fn on_roaming_outcome(
        &mut self,
        wire: usize,
        outcome: Outcome<PacketRef>,
        now: Instant,
    ) {
        let (from, to) = self.world.network.ends_of(wire, &outcome.what);
        let Some(roam) = self.world.network.roam() else { return };
        let leads = roam.layout.leads(wire);
        match outcome.what {
            Happened::Arrived(packet) => {
                let is_reached = match leads {
                    Leads::Radio(Way::Down, cell) if is_broadcast(&packet) => {
                        return self.on_broadcast(cell, packet, now);
                    }
                    Leads::Radio(Way::Down, cell) => roam.reaches(to.0, cell),
                    Leads::Radio(Way::Up, cell) => roam.reaches(from.0, cell),
                    Leads::Backhaul(..) | Leads::Wired(..) => true,
                };
                if is_reached {
                    let what = What::Arrived { side: to.1, packet: &packet };
                    self.world.record(to.0, outcome.at, what);
                    self.handle(to.0, Input::Arrival { side: to.1, packet }, now);
                } else {
                    let what = What::Lost { side: from.1, packet: &packet, cause: OUT_OF_CELL };
                    self.world.record(from.0, outcome.at, what);
                    self.world.release(packet);
                }
            }
            Happened::Departed(packet) => {
                if let Machine::Cellular(cellular) = &mut self.nodes[from.0.0 as usize].machine {
                    self.world.tell_departure(&mut cellular.station, from, packet, outcome.at);
                }
            }
            Happened::Lost(packet, loss) => {
                let what = What::Lost { side: from.1, packet: &packet, cause: loss.name() };
                self.world.record(from.0, outcome.at, what);
                self.world.release(packet);
            }
            Happened::Verdict(packet, _) => self.world.release(packet),
            _ => {}
        }
    }

    /// A packet for all who are in a cell.
    fn on_broadcast(&mut self, cell: u16, packet: PacketRef, now: Instant) {
        let Some(roam) = self.world.network.roam() else { return };
        let layout = roam.layout;
        let members = roam.members(cell).to_vec();
        if members.is_empty() {
            let what = What::Lost { side: Side::RADIO, packet: &packet, cause: OUT_OF_CELL };
            self.world.record(layout.station(cell), now, what);
        }
        for mobile in members {
            let node = layout.mobile(mobile);
            if let Some(signal) = self.signal(mobile, cell, now) {
                let station = address::station(cell).into();
                let decibels_10 = (signal.as_centi_db() / 10) as i16;
                let notice = Notice::Heard { station, decibels_10 };
                self.handle(node, Input::Notice(notice), now);
            }
            let (side, packet) = (Side(cell), packet.clone());
            self.world.record(node, now, What::Arrived { side, packet: &packet });
            self.handle(node, Input::Arrival { side, packet }, now);
        }
        self.world.release(packet);
    }

    /// How strong a cell's base station is at a mobile host.
    fn signal(&self, mobile: u32, cell: u16, now: Instant) -> Option<Signal> {
        let movement = self.world.network.roam()?.movements.get(mobile as usize)?;
        let decibel = movement.signal(Cell(cell), now)?;
        Some(Signal::from_centi_db((decibel * 100.0) as i32))
    }

    /// A router, a base station of several, or a mobile host that moves.
    #[cold]
    pub(super) fn handle_roaming(&mut self, node: NodeId, input: Input, now: Instant) {
        let world = &mut self.world;
        let mut outbox = Outbox { world, node, now, told: false };
        match &mut self.nodes[node.0 as usize].machine {
            Machine::Router(router) => router.handle(input, &mut outbox, now),
            Machine::Roaming(host) => host.handle(input, &mut outbox, now),
            Machine::Cellular(cellular) => {
                let station = &mut cellular.station;
                if cellular.departures == Some(Departures::Air) {
                    world.tell_departures(station, node, now);
                }
                let told = cellular.departures == Some(Departures::Device);
                let mut outbox = Outbox { world, node, now, told };
                station.handle(input, &mut outbox, now);
                if told {
                    tell_handed(station, &mut outbox, now);
                }
                if O::ON {
                    let (bytes, limit) = station.held_bytes();
                    self.world.record(node, now, What::Cached { bytes, limit });
                }
            }
            Machine::Host(_) | Machine::Mobile(_) | Machine::Base(_) => {}
        }
    }

    /// What base stations keep for mobile hosts that have come or may (MCAST-5), or whose window is
    /// closed (WINC-BS), and what is on its way between the router and them.
    pub(crate) fn kept(&self) -> Vec<(NodeId, PacketId)> {
        let mut kept = Vec::new();
        for (node, entry) in (0..).map(NodeId).zip(&self.nodes) {
            match &entry.machine {
                Machine::Cellular(cellular) => {
                    let station = &cellular.station;
                    let packets = station.waiting().chain(station.scheme().kept());
                    kept.extend(packets.map(|packet| (node, packet.id)));
                }
                Machine::Router(router) => {
                    kept.extend(router.held().map(|packet| (node, packet)));
                }
                _ => {}
            }
        }
        kept
    }

    /// A mobile host moves, or is told its signal.
    pub(super) fn on_moving(&mut self, mobile: u32, now: Instant) {
        self.world.events += 1;
        while let Some(roam) = self.world.network.roam_mut()
            && let Some(change) = roam.movements[mobile as usize].poll(now)
        {
            self.on_change(mobile, change, now);
        }
        self.tell_signal(mobile, now);
        self.plan_moving(mobile, now);
    }

    fn on_change(&mut self, mobile: u32, change: Change, now: Instant) {
        let Some(roam) = self.world.network.roam_mut() else { return };
        let node = roam.layout.mobile(mobile);
        let (station, is_heard) = (|cell| roam.layout.station(cell), !roam.has_rendezvous);
        // Layer 2 joins a cell when both are so: the host has gone there, and it reaches.
        let mut joins = None;
        let change = match change {
            Change::Reached(Cell(cell)) => {
                roam.set_member(cell, mobile, true);
                joins = Some(cell);
                self.nodes[node.0 as usize].machine.set_reached(cell, true);
                CellChange::Reached(cell)
            }
            Change::Lost(Cell(cell)) => {
                roam.set_member(cell, mobile, false);
                self.nodes[node.0 as usize].machine.set_reached(cell, false);
                CellChange::Lost(cell)
            }
            Change::Crossed { from: Cell(from), to: Cell(to) } => {
                joins = roam.movements[mobile as usize].reaches(Cell(to)).then_some(to);
                if let Machine::Roaming(host) = &mut self.nodes[node.0 as usize].machine {
                    host.cross(to, is_heard);
                }
                CellChange::Crossed { from, to }
            }
            Change::Rendezvous(Cell(cell)) => {
                let station = station(cell);
                if let Machine::Roaming(host) = &mut self.nodes[node.0 as usize].machine {
                    host.meet(cell);
                }
                self.join(node, cell, now);
                return self.send_beacon(station, now);
            }
        };
        self.world.record(node, now, What::Cell(change));
        if let Some(cell) = joins.filter(|_| is_heard) {
            self.join(node, cell, now);
        }
    }

    /// A cell's frames reach a mobile host that may have gone there (LINK-4).
    fn join(&mut self, node: NodeId, cell: u16, now: Instant) {
        if let Machine::Roaming(host) = &mut self.nodes[node.0 as usize].machine {
            let world = &mut self.world;
            let mut outbox = Outbox { world, node, now, told: false };
            host.join(cell, &mut outbox, now);
        }
        self.rearm(node);
    }

    /// A base station sends a beacon at this instant (CI-MOD-5).
    fn send_beacon(&mut self, station: NodeId, now: Instant) {
        if let Machine::Cellular(cellular) = &mut self.nodes[station.0 as usize].machine {
            let world = &mut self.world;
            let mut outbox = Outbox { world, node: station, now, told: false };
            cellular.station.beacon(&mut outbox, now);
        }
        self.rearm(station);
    }

    /// Tells a mobile host how strong its own base station is, if it asks for that.
    fn tell_signal(&mut self, mobile: u32, now: Instant) {
        let Some(roam) = self.world.network.roam() else { return };
        let is_due =
            roam.signal_every.is_some_and(|every| now.as_nanos().is_multiple_of(every.as_nanos()));
        let node = roam.layout.mobile(mobile);
        let Machine::Roaming(host) = &self.nodes[node.0 as usize].machine else { return };
        if let Some(cell) = host.attached().filter(|_| is_due) {
            let signal = self.signal(mobile, cell, now).unwrap_or(Signal::from_db(0));
            self.handle(node, Input::Notice(Notice::Signal(signal)), now);
        }
    }

    pub(super) fn plan_moving(&mut self, mobile: u32, now: Instant) {
        let Some(roam) = self.world.network.roam() else { return };
        let moves_at = roam.movements[mobile as usize].next_at();
        let told_at = roam.signal_every.map(|every| {
            let rounds = now.as_nanos() / every.as_nanos() + 1;
            Instant::from_nanos(rounds * every.as_nanos())
        });
        let next = [moves_at, told_at].into_iter().flatten().min();
        if let Some(at) = next {
            let number = self.number(Slot::Moving(mobile));
            self.world.queue.add(number, at);
        }
    }
}
