//! When the events of a handoff by multicast happen, counted from the beacon that began it (Snoop
//! paper, Figure 10).
//!
//! ```text
//!   beacon ── enable new ── first packet from the new one ─▶
//!          └── answer ── disable old ── last packet from the old one ─▶
//! ```

use node::roaming::address::station_number;
use sansio::{DropReason, Duration, EventKind, HandoffStage, Instant, Packet, Side, Transport};
use trace::{CellChange, NodeId, Record, What};

/// One handoff; `None` for what did not happen before the next one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Events {
    /// The order to forward is at the new base station.
    pub enabled: Option<Duration>,
    /// Its answer is at the mobile host.
    pub answered: Option<Duration>,
    /// The order to forward no more is at the old base station.
    pub disabled: Option<Duration>,
    /// The first segment from the new base station is at the mobile host.
    pub first_from_new: Option<Duration>,
    /// The last segment from the old one is.
    pub last_from_old: Option<Duration>,
    /// Segments that waited at the old base station when the beacon came, or were on the air.
    pub queued: u32,
}

/// Watches the handoffs of the first mobile host.
#[derive(Debug)]
pub(crate) struct EventWatch {
    mobile: NodeId,
    /// Segments between each base station and the mobile host, by the station's number.
    waiting: Vec<u32>,
    /// From where to where the clock has sent it.
    cells: (u16, u16),
    /// Since when, from and to which cell.
    under_way: Option<(Instant, (u16, u16), Events)>,
    done: Vec<Events>,
}

impl EventWatch {
    pub(crate) fn new(mobile: NodeId, cells: u16) -> Self {
        let waiting = vec![0; usize::from(cells)];
        EventWatch { mobile, waiting, cells: (0, 0), under_way: None, done: Vec::new() }
    }

    /// All handoffs that began.
    pub(crate) fn finish(mut self) -> Vec<Events> {
        self.done.extend(self.under_way.map(|(.., events)| events));
        self.done
    }

    pub(crate) fn record(&mut self, record: &Record<'_>) {
        let now = record.at;
        match record.what {
            What::Cell(CellChange::Crossed { from, to }) if record.node == self.mobile => {
                self.cells = (from, to);
            }
            What::Event(event) if record.node == self.mobile => {
                if let EventKind::Handoff { stage, .. } = event.kind {
                    self.on_stage(stage, now);
                }
            }
            What::Sent { side: Side::RADIO, packet, .. } if packet.as_tcp().is_some() => {
                self.count(record.node, |waiting| waiting + 1);
            }
            What::Lost { side: Side::RADIO, packet, .. }
            | What::QueueFull { side: Side::RADIO, packet }
                if packet.as_tcp().is_some() =>
            {
                self.count(record.node, |waiting| waiting.saturating_sub(1));
            }
            What::Arrived { side: Side(cell), packet } if record.node == self.mobile => {
                if packet.as_tcp().is_some() {
                    self.count(sim::run::station(cell), |waiting| waiting.saturating_sub(1));
                    self.on_segment(cell, now);
                }
            }
            What::Discarded { packet, reason: DropReason::Consumed } => {
                self.on_order(packet, record.node, now);
            }
            _ => {}
        }
    }

    /// Segments toward the mobile host that a base station has sent; none of any other machine.
    fn count(&mut self, node: NodeId, change: impl FnOnce(u32) -> u32) {
        let stations = (0..).map(sim::run::station).zip(&mut self.waiting);
        if let Some((_, waiting)) = stations.into_iter().find(|(station, _)| *station == node) {
            *waiting = change(*waiting);
        }
    }

    fn on_stage(&mut self, stage: HandoffStage, now: Instant) {
        match (stage, &mut self.under_way) {
            (HandoffStage::Begun, under_way) => {
                self.done.extend(under_way.map(|(.., events)| events));
                let queued = self.waiting[usize::from(self.cells.0)];
                *under_way = Some((now, self.cells, Events { queued, ..Events::default() }));
            }
            (HandoffStage::Greeted, Some((since, _, events))) => {
                events.answered = Some(now.since(*since));
            }
            _ => {}
        }
    }

    fn on_segment(&mut self, cell: u16, now: Instant) {
        let Some((since, (old, new), events)) = &mut self.under_way else { return };
        if cell == *new {
            events.first_from_new.get_or_insert(now.since(*since));
        } else if cell == *old && self.cells == (*old, *new) {
            events.last_from_old = Some(now.since(*since));
        }
    }

    /// A base station has taken in a message of the mobile host's: the first one to each is it.
    fn on_order(&mut self, packet: &Packet, node: NodeId, now: Instant) {
        let Some((since, (old, new), events)) = &mut self.under_way else { return };
        let Some(number) = station_number(packet.ip.destination) else { return };
        let is_order =
            matches!(packet.transport, Transport::Udp { .. }) && node == sim::run::station(number);
        if is_order && number == *new {
            events.enabled.get_or_insert(now.since(*since));
        } else if is_order && number == *old {
            events.disabled.get_or_insert(now.since(*since));
        }
    }
}
