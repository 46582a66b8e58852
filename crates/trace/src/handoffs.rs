//! What handoffs cost: how long until packets find the mobile host again, by the papers' three
//! definitions, what is lost on the way, and the messages that make them (INC-22).
//!
//! A *crossing* is when the clock of an experiment sends a host to another cell. Along a path
//! nobody says it: there it is the beginning of a handoff at the mobile host.
//!
//! *Stall after a handoff*: the longest time without a new ACK at the sender, or without the next
//! byte at the receiver, that begins at a crossing or within 2 s after it and before the next one;
//! only where data was outstanding at the crossing. What is under way at a crossing, beyond the
//! air or in the queue of an old cell, still arrives; so the first ACK after it tells nothing.

use crate::by_node::ByNode;
use crate::{CellChange, NodeId, Record, What};
use core::net::{IpAddr, Ipv4Addr};
use sansio::{DropReason, Duration, EventKind, HandoffStage, Instant, Packet, Payload};

/// The handoffs of one run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Handoffs {
    /// Crossings from one cell to another.
    pub crossings: u64,
    /// From each crossing until routes are consistent, at the mobile host (000).
    pub until_consistent: Vec<Duration>,
    /// From each first message of a handoff to the first datagram that arrives through the new
    /// cell (003).
    pub until_first_packet: Vec<Duration>,
    /// From each crossing until the home agent's answer is at the mobile host (004).
    pub until_registered: Vec<Duration>,
    /// TCP segments that were sent into a cell where nobody was, or came to a machine that knew no
    /// way to the mobile host, or none yet.
    pub lost: u64,
    /// Messages of mobility, beacons and advertisements, once for each hop that they were sent on.
    pub messages: u64,
    /// Bytes of those, IP headers included.
    pub message_bytes: u64,
}

/// Where a mobile host's handoff stands.
#[derive(Clone, Copy, Debug, Default)]
struct UnderWay {
    /// From the crossing on; taken by whoever measures from there.
    consistent: Option<Instant>,
    registered: Option<Instant>,
    /// To which cell, once that is known.
    to: Option<u16>,
    /// From the first message on.
    first_packet: Option<Instant>,
}

/// The longest time without progress after a crossing; see [the definition](self).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pause {
    /// The crossing, the last progress since, and the longest time between two.
    since: Option<(Instant, Instant, Duration)>,
}

impl Pause {
    /// A pause that begins later belongs to something else: to the queue, which a sender that lost
    /// nothing soon fills again.
    const WITHIN: Duration = Duration::from_secs(2);

    pub(crate) fn since(crossing: Instant) -> Self {
        Pause { since: Some((crossing, crossing, Duration::ZERO)) }
    }

    /// Something new came.
    pub(crate) fn progress(&mut self, samples: &mut Vec<Duration>, now: Instant) {
        let Some((crossing, last, longest)) = &mut self.since else { return };
        *longest = (*longest).max(now.since(*last));
        *last = now;
        if now > *crossing + Self::WITHIN {
            samples.push(*longest);
            self.since = None;
        }
    }

    /// The next crossing, or the end.
    pub(crate) fn end(&mut self, samples: &mut Vec<Duration>, now: Instant) {
        if let Some((_, last, longest)) = self.since.take() {
            samples.push(longest.max(now.since(last)));
        }
    }
}

/// Measures them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Meter {
    handoffs: Handoffs,
    /// A clock says where hosts go.
    is_driven: bool,
    mobiles: ByNode<UnderWay>,
}

impl Meter {
    pub(crate) fn finish(self) -> Handoffs {
        self.handoffs
    }

    pub(crate) fn record(&mut self, record: &Record<'_>) {
        let now = record.at;
        match record.what {
            What::Cell(CellChange::Crossed { to, .. }) => {
                self.is_driven = true;
                self.on_crossing(record.node, Some(to), now);
            }
            What::Event(event) => {
                if let EventKind::Handoff { stage, station } = event.kind {
                    self.on_stage((record.node, station), stage, now);
                }
            }
            What::Arrived { side, packet } => {
                if let Some(mobile) = self.mobiles.get_mut(&record.node)
                    && mobile.to == Some(side.0)
                    && !is_message(packet)
                    && let Some(since) = mobile.first_packet.take()
                {
                    self.handoffs.until_first_packet.push(now.since(since));
                }
            }
            What::Sent { packet, .. } if is_message(packet) => {
                self.handoffs.messages += 1;
                self.handoffs.message_bytes += u64::from(packet.bytes());
            }
            What::Lost { packet, cause: OUT_OF_CELL, .. } => {
                self.handoffs.lost += u64::from(!is_message(packet));
            }
            What::Discarded { packet, reason: DropReason::Rule(rule) } => {
                let is_homeless = NO_WAY.contains(&rule) && !is_message(packet);
                self.handoffs.lost += u64::from(is_homeless);
            }
            _ => {}
        }
    }

    /// True for the beginning of a handoff that no clock has announced.
    pub(crate) fn is_crossing(&self, what: &What<'_>) -> bool {
        let What::Event(event) = what else { return false };
        let begun = matches!(event.kind, EventKind::Handoff { stage: HandoffStage::Begun, .. });
        begun && !self.is_driven
    }

    fn on_crossing(&mut self, node: NodeId, to: Option<u16>, now: Instant) {
        self.handoffs.crossings += 1;
        let (consistent, registered) = (Some(now), Some(now));
        self.mobiles.insert(node, UnderWay { consistent, registered, to, first_packet: None });
    }

    fn on_stage(
        &mut self,
        (node, station): (NodeId, Option<u16>),
        stage: HandoffStage,
        now: Instant,
    ) {
        if stage == HandoffStage::Begun && !self.is_driven {
            self.on_crossing(node, None, now);
        }
        let Some(mobile) = self.mobiles.get_mut(&node) else { return };
        if stage != HandoffStage::Begun && mobile.to.is_none() {
            mobile.to = station;
        }
        let (since, samples) = match stage {
            HandoffStage::Begun => {
                mobile.first_packet = Some(now);
                return;
            }
            HandoffStage::Complete => {
                (mobile.consistent.take(), &mut self.handoffs.until_consistent)
            }
            HandoffStage::Registered => {
                (mobile.registered.take(), &mut self.handoffs.until_registered)
            }
            HandoffStage::RouteChanged | HandoffStage::Greeted | HandoffStage::Failed => return,
        };
        samples.extend(since.map(|since| now.since(since)));
    }
}

/// The cause of the loss of a packet on the air whose receiver is elsewhere.
pub const OUT_OF_CELL: &str = "out of cell";
/// The reasons of machines that know no way to a mobile host.
pub const NO_WAY: [&str; 3] = ["no such visitor", "not registered", "no route"];

/// True for a beacon and the like: one packet on the air, heard by all in a cell, missed by nobody.
pub(crate) fn is_broadcast(packet: &Packet) -> bool {
    packet.ip.destination == IpAddr::V4(Ipv4Addr::BROADCAST)
}

/// True for what is no TCP, in no tunnel either.
fn is_message(packet: &Packet) -> bool {
    match &packet.payload {
        Payload::Tunnel(inner) => is_message(inner),
        _ => packet.as_tcp().is_none(),
    }
}
