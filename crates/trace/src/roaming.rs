//! A mobile host among cells in time: which cells reach it and how strongly, what it hears, by
//! which messages its packets find it again, and which way its data goes.
//!
//! Where the host is comes from its movement, which decides nothing ([`Course`]); all else is what
//! the machines did.

use crate::handoffs::is_broadcast;
use crate::{CellChange, NodeId, Observer, Record, What, messages};
use core::net::{IpAddr, Ipv4Addr};
use sansio::{Duration, EventKind, HandoffStage, Instant, Packet, PacketId, Payload, Side};
use std::collections::BTreeMap;

/// The machines of a run with cells, and the mobile host that is looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The router, with the home agent; the base station of cell c is c + 1 numbers after it.
    pub router: NodeId,
    /// Cells.
    pub cells: u16,
    /// Mobile hosts, first the one that is looked at.
    pub hosts: Vec<NodeId>,
    /// The home address of that one.
    pub home: Ipv4Addr,
    /// Its multicast group.
    pub group: Ipv4Addr,
    /// The home agent's address.
    pub home_agent: Ipv4Addr,
}

/// Where the host is in a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Course {
    /// The cell in which each host begins.
    pub first: Vec<u16>,
    /// When which cell reaches the host: its beginning, its end.
    pub reached: Vec<(u16, Instant, Instant)>,
    /// When it was looked how strong the cells are.
    pub sampled_at: Vec<Instant>,
    /// The signal-to-noise ratio of a cell then, in hundredths of a decibel; none where it does
    /// not reach.
    pub signals: BTreeMap<u16, Vec<Option<i32>>>,
}

/// A beacon that the host heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Beacon {
    /// When.
    pub at: Instant,
    /// Of which cell.
    pub cell: u16,
    /// False if the clock of the experiment lets it listen to another cell only (CI-MOD-3).
    pub is_taken: bool,
}

/// A message about the host, on one hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// When it was sent.
    pub sent_at: Instant,
    /// When it arrived or was lost; none if the run ended first.
    pub ended_at: Option<Instant>,
    /// Who sent it.
    pub from: NodeId,
    /// Who was to get it.
    pub to: NodeId,
    /// What it says, a place in [`Roaming::labels`].
    pub label: u32,
    /// Why it was lost, if it was.
    pub lost: Option<&'static str>,
}

/// Who sends the host's data to a base station.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Via {
    /// The home agent.
    HomeAgent,
    /// Another base station.
    BaseStation,
}

/// Data for the host on its way to a base station, without a pause longer than [`Way::PAUSE`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    /// The base station's cell.
    pub cell: u16,
    /// From whom.
    pub via: Via,
    /// The first packet.
    pub from: Instant,
    /// The last one.
    pub until: Instant,
    /// How many.
    pub packets: u64,
}

impl Way {
    /// A longer pause begins a way of its own.
    pub const PAUSE: Duration = Duration::from_millis(200);
}

/// What a mobile host said of a handoff.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stage {
    /// When.
    pub at: Instant,
    /// What.
    pub stage: HandoffStage,
    /// The cell over which its packets leave then.
    pub cell: Option<u16>,
}

/// A handoff of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handoff {
    /// The cell it leaves, if it had one.
    pub from: Option<u16>,
    /// The cell it goes to; none if it got nowhere.
    pub to: Option<u16>,
    /// From the crossing, or along a path from the first message on.
    pub begin: Instant,
    /// Until the last stage before the next handoff.
    pub until: Instant,
}

/// One host among cells.
#[derive(Clone, Debug)]
pub struct Roaming {
    setting: Setting,
    /// Where it is; empty until somebody says it.
    pub course: Course,
    /// Of each host, from when on its packets leave over which cell.
    pub served: Vec<Vec<(Instant, Option<u16>)>>,
    /// Crossings by the clock: from where to where.
    pub crossings: Vec<(Instant, u16, u16)>,
    /// What it hears.
    pub beacons: Vec<Beacon>,
    /// The messages about it.
    pub messages: Vec<Message>,
    /// What they say.
    pub labels: Vec<String>,
    /// What it says of its handoffs.
    pub stages: Vec<Stage>,
    /// Which way data for it goes.
    pub ways: Vec<Way>,
    /// False if there was more than the bounds allow.
    pub complete: bool,
    /// Messages on their way, by packet.
    under_way: BTreeMap<PacketId, usize>,
    /// The newest broadcast of each base station.
    broadcast: BTreeMap<NodeId, (PacketId, Instant)>,
}

impl Roaming {
    /// Hosts whose cells are kept, at most.
    pub const HOSTS_MAX: usize = 8;
    /// Messages that are kept, and as many beacons, ways and stages, at most.
    pub const ENTRIES_MAX: usize = 20_000;

    /// Nothing has happened yet.
    pub fn new(mut setting: Setting) -> Self {
        setting.hosts.truncate(Self::HOSTS_MAX);
        let served = vec![Vec::new(); setting.hosts.len()];
        Roaming {
            setting,
            course: Course::default(),
            served,
            crossings: Vec::new(),
            beacons: Vec::new(),
            messages: Vec::new(),
            labels: Vec::new(),
            stages: Vec::new(),
            ways: Vec::new(),
            complete: true,
            under_way: BTreeMap::new(),
            broadcast: BTreeMap::new(),
        }
    }

    /// Says where the hosts were: each was served by the cell in which it began.
    pub fn with_course(&mut self, course: Course) {
        for (served, first) in self.served.iter_mut().zip(&course.first) {
            if served.first().is_none_or(|(at, _)| *at > Instant::ZERO) {
                served.insert(0, (Instant::ZERO, Some(*first)));
            }
            served.dedup_by_key(|(_, cell)| *cell);
        }
        self.course = course;
    }

    /// The machines.
    pub fn setting(&self) -> &Setting {
        &self.setting
    }

    /// The cells that are of any interest: those that reach the host or have a message about it.
    pub fn cells(&self) -> Vec<u16> {
        let reached = self.course.reached.iter().map(|(cell, ..)| *cell);
        let ends = self.messages.iter().flat_map(|message| [message.from, message.to]);
        let served = self.served.iter().flatten().filter_map(|(_, cell)| *cell);
        let asked = ends.filter_map(|node| self.cell_of(node));
        let mut cells: Vec<u16> = reached.chain(asked).chain(served).collect();
        cells.sort_unstable();
        cells.dedup();
        cells
    }

    /// When no cell reaches the host: beginnings and ends.
    pub fn gaps(&self, end: Instant) -> Vec<(Instant, Instant)> {
        let mut spans: Vec<(Instant, Instant)> =
            self.course.reached.iter().map(|(_, from, until)| (*from, *until)).collect();
        spans.sort_unstable();
        let mut gaps = Vec::new();
        let mut covered = Instant::ZERO;
        for (from, until) in spans {
            if from > covered {
                gaps.push((covered, from));
            }
            covered = covered.max(until);
        }
        if covered < end {
            gaps.push((covered, end));
        }
        gaps
    }

    /// The host's handoffs, in the order of time.
    pub fn handoffs(&self) -> Vec<Handoff> {
        let begun = |stage: &&Stage| stage.stage == HandoffStage::Begun;
        let begins: Vec<Instant> = match self.crossings.is_empty() {
            false => self.crossings.iter().map(|(at, ..)| *at).collect(),
            true => self.stages.iter().filter(begun).map(|stage| stage.at).collect(),
        };
        let ends = begins.iter().skip(1).map(Some).chain([None]);
        begins.iter().zip(ends).map(|(begin, next)| self.handoff(*begin, next.copied())).collect()
    }

    fn handoff(&self, begin: Instant, next: Option<Instant>) -> Handoff {
        let within = |stage: &&Stage| stage.at >= begin && next.is_none_or(|next| stage.at < next);
        let stages = self.stages.iter().filter(within);
        let until = stages.clone().map(|stage| stage.at).max().unwrap_or(begin);
        match self.crossings.iter().find(|(at, ..)| *at == begin) {
            Some(&(_, from, to)) => Handoff { from: Some(from), to: Some(to), begin, until },
            None => {
                let served = self.served.first().map_or(&[][..], Vec::as_slice);
                let before = served.iter().rev().find(|(at, _)| *at < begin);
                let to = stages.clone().rev().find_map(|stage| stage.cell);
                Handoff { from: before.and_then(|(_, cell)| *cell), to, begin, until }
            }
        }
    }

    /// The cell of a base station.
    pub fn cell_of(&self, node: NodeId) -> Option<u16> {
        let number = node.0.checked_sub(self.setting.router.0 + 1)?;
        u16::try_from(number).ok().filter(|cell| *cell < self.setting.cells)
    }

    fn station(&self, cell: u16) -> NodeId {
        NodeId(self.setting.router.0 + 1 + u32::from(cell))
    }

    fn host(&self) -> Option<NodeId> {
        self.setting.hosts.first().copied()
    }

    /// Keeps a value unless there are too many.
    fn keep<T>(complete: &mut bool, list: &mut Vec<T>, value: T) {
        if list.len() < Self::ENTRIES_MAX {
            list.push(value);
        } else {
            *complete = false;
        }
    }

    fn on_served(&mut self, node: NodeId, cell: Option<u16>, at: Instant) {
        let Some(place) = self.setting.hosts.iter().position(|host| *host == node) else { return };
        if self.served[place].last().is_none_or(|(_, last)| *last != cell) {
            Self::keep(&mut self.complete, &mut self.served[place], (at, cell));
        }
    }

    fn on_sent(&mut self, (node, side): (NodeId, Side), packet: &Packet, at: Instant) {
        let is_host = self.setting.hosts.contains(&node);
        if packet.as_tcp().is_some() {
            if is_host {
                self.on_served(node, Some(side.0), at);
            }
            return;
        }
        if is_broadcast(packet) {
            self.broadcast.insert(node, (packet.id, at));
        } else if let Payload::Tunnel(_) = packet.payload {
            if node == self.setting.router && side.0 > 0 {
                self.on_tunnelled(side.0 - 1, packet, at);
            }
        } else if let Some(label) = self.label(packet, node) {
            let to = match self.cell_of(node) {
                Some(_) if side == Side::RADIO => self.host(),
                Some(_) => Some(self.setting.router),
                None if node == self.setting.router => {
                    side.0.checked_sub(1).map(|cell| self.station(cell))
                }
                None => is_host.then(|| self.station(side.0)),
            };
            let Some(to) = to else { return };
            let new = Message { sent_at: at, ended_at: None, from: node, to, label, lost: None };
            self.under_way.insert(packet.id, self.messages.len());
            Self::keep(&mut self.complete, &mut self.messages, new);
        }
    }

    /// Data for the host leaves the router.
    fn on_tunnelled(&mut self, cell: u16, packet: &Packet, at: Instant) {
        let mut inner = packet;
        while let Payload::Tunnel(within) = &inner.payload {
            inner = within;
        }
        if inner.ip.destination != IpAddr::V4(self.setting.home) || inner.as_tcp().is_none() {
            return;
        }
        let is_home = packet.ip.source == IpAddr::V4(self.setting.home_agent);
        let via = if is_home { Via::HomeAgent } else { Via::BaseStation };
        let known = self.ways.iter_mut().rev().take(4 * usize::from(self.setting.cells));
        let same = known.into_iter().find(|way| (way.cell, way.via) == (cell, via));
        match same.filter(|way| at <= way.until + Way::PAUSE) {
            Some(way) => (way.until, way.packets) = (at, way.packets + 1),
            None => {
                let new = Way { cell, via, from: at, until: at, packets: 1 };
                Self::keep(&mut self.complete, &mut self.ways, new);
            }
        }
    }

    /// The place of what a message about the host says; `node` sends or hears it.
    fn label(&mut self, packet: &Packet, node: NodeId) -> Option<u32> {
        let said = messages::read(packet)?;
        let (home, group) = (self.setting.home, self.setting.group);
        let is_meant = match said.about {
            Some(about) => about == home || about == group,
            None => Some(node) == self.host() || packet.ip.destination == IpAddr::V4(home),
        };
        if !is_meant {
            return None;
        }
        let place = self.labels.iter().position(|label| *label == said.what);
        let place = place.unwrap_or_else(|| {
            self.labels.push(said.what);
            self.labels.len() - 1
        });
        Some(place as u32)
    }

    fn on_end(&mut self, packet: &Packet, lost: Option<&'static str>, at: Instant) {
        let place = self.under_way.remove(&packet.id);
        if let Some(message) = place.and_then(|place| self.messages.get_mut(place)) {
            (message.ended_at, message.lost) = (Some(at), lost);
        }
    }

    /// The host hears what all in a cell hear.
    fn on_broadcast(&mut self, node: NodeId, cell: u16, packet: &Packet, at: Instant) {
        if let Some(label) = self.label(packet, node) {
            let from = self.station(cell);
            let sent = self.broadcast.get(&from).filter(|(id, _)| *id == packet.id);
            let sent_at = sent.map_or(at, |(_, at)| *at);
            let ended_at = Some(at);
            let new = Message { sent_at, ended_at, from, to: node, label, lost: None };
            Self::keep(&mut self.complete, &mut self.messages, new);
        } else {
            let beacon = Beacon { at, cell, is_taken: true };
            Self::keep(&mut self.complete, &mut self.beacons, beacon);
        }
    }
}

impl Observer for Roaming {
    const ON: bool = true;

    fn record(&mut self, record: &Record<'_>) {
        let Record { node, at, what } = *record;
        let is_host = Some(node) == self.host();
        match what {
            What::Sent { side, packet, .. } => self.on_sent((node, side), packet, at),
            What::Arrived { side, packet } if is_broadcast(packet) => {
                if is_host {
                    self.on_broadcast(node, side.0, packet, at);
                }
            }
            What::Arrived { packet, .. } => self.on_end(packet, None, at),
            What::Lost { packet, cause, .. } => self.on_end(packet, Some(cause), at),
            What::QueueFull { packet, .. } => self.on_end(packet, Some("queue full"), at),
            What::Discarded { packet, reason: sansio::DropReason::Rule("CI-MOD-3") }
                if is_host && is_broadcast(packet) =>
            {
                if let Some(beacon) = self.beacons.last_mut().filter(|beacon| beacon.at == at) {
                    beacon.is_taken = false;
                }
            }
            What::Cell(CellChange::Crossed { from, to }) if is_host => {
                Self::keep(&mut self.complete, &mut self.crossings, (at, from, to));
            }
            What::Event(event) => {
                let EventKind::Handoff { stage, station: cell } = event.kind else { return };
                if is_host {
                    let stage = Stage { at, stage, cell };
                    Self::keep(&mut self.complete, &mut self.stages, stage);
                }
                self.on_served(node, cell, at);
            }
            _ => {}
        }
    }
}
