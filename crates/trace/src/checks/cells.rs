//! Mobile hosts among cells: each gets its own packets only, from one base station once a handoff
//! is complete; nothing goes round; no registration is asked for again and again.

use super::Failures;
use crate::by_node::ByNode;
use crate::{NodeId, Record, Role, What};
use core::net::{IpAddr, Ipv4Addr};
use sansio::{Duration, EventKind, HandoffStage, Instant, Packet, Payload, Side, Transport};
use std::collections::BTreeMap;

/// Who is where.
#[derive(Clone, Debug)]
pub struct Cells {
    /// The cell of each base station.
    stations: BTreeMap<NodeId, u16>,
    /// Who has sent something.
    mobiles: ByNode<Mobile>,
    /// Whose home address it is: as each sends from it.
    owners: BTreeMap<IpAddr, NodeId>,
}

/// What is known of a mobile host.
#[derive(Clone, Copy, Debug)]
struct Mobile {
    home: IpAddr,
    /// The only base station that may forward to it, and since when; none during a handoff.
    served: Option<(u16, Instant)>,
    /// Requests since the last answer or the last change of the cell.
    requests: u32,
    /// Handoffs begun.
    handoffs: u32,
}

/// Tunnels in which a datagram may have been, one after the other: home agent, the base station
/// before, and one more where a host moves on meanwhile;
const TUNNELS_MAX: u32 = 4;
/// and one for each handoff in which what is not acknowledged follows the host, as far as so many.
/// What goes round takes all hops that there are.
const FOLLOWED_MAX: u32 = 32;
/// What hosts begin with (RFC 1700).
const HOP_LIMIT: u32 = 64;
/// What a message to an old base station may take after the mobile host's own side is complete.
const GRACE: Duration = Duration::from_millis(250);
/// RFC 5944, 3.1: the port of registrations.
const REGISTRATION: u16 = 434;
/// Requests without an answer: those of one question, and its renewal.
const REQUESTS_MAX: u32 = 16;

impl Cells {
    /// Of a run with these machines; `None` if it has no cells to change between.
    pub(super) fn new(roles: &[Role]) -> Option<Self> {
        let nodes = (0..).map(NodeId).zip(roles);
        let stations = nodes.filter(|(_, role)| **role == Role::BaseStation).map(|(node, _)| node);
        let stations = stations.zip(0..).collect();
        let (mobiles, owners) = (ByNode::default(), BTreeMap::new());
        roles.contains(&Role::Router).then_some(Cells { stations, mobiles, owners })
    }

    pub(super) fn record(&mut self, record: &Record<'_>, role: Role, failures: &mut Failures) {
        let mut fail = |what: String| failures.add("cells", record.at, record.node, what);
        match record.what {
            What::Sent { packet, .. } if role == Role::MobileHost => {
                let Some(mobile) = self.sender(record.node, packet.ip.source) else { return };
                mobile.requests += u32::from(is_to(packet, REGISTRATION));
                if mobile.requests > REQUESTS_MAX {
                    mobile.requests = 0;
                    fail(format!("{REQUESTS_MAX} registrations asked for, none answered"));
                }
            }
            What::Sent { side: Side::RADIO, packet, .. } if role == Role::BaseStation => {
                let cell = self.stations.get(&record.node).copied();
                let to = packet.ip.destination;
                let is_tcp = packet.as_tcp().is_some();
                let owner = self.owners.get(&to).filter(|_| is_tcp);
                let mobile = owner.and_then(|owner| self.mobiles.get(owner));
                if let (Some(cell), Some((serving, since))) =
                    (cell, mobile.and_then(|it| it.served))
                    && cell != serving
                    && record.at > since + GRACE
                {
                    fail(format!("base station {cell} forwards to {to}, which {serving} serves"));
                }
            }
            What::Arrived { packet, .. } => {
                let inner = innermost(packet);
                if inner.as_tcp().is_some() && Self::tunnels(inner) > self.tunnels_max(inner) {
                    fail(format!("packet {} has gone round", inner.id));
                }
                if role == Role::MobileHost {
                    self.on_host_arrival(record.node, packet, fail);
                }
            }
            What::Event(event) => {
                if let EventKind::Handoff { stage, station } = event.kind {
                    self.on_stage(record, stage, station);
                }
            }
            _ => {}
        }
    }

    /// In how many it has been, at most.
    fn tunnels(datagram: &Packet) -> u32 {
        HOP_LIMIT.saturating_sub(datagram.ip.hop_limit.into())
    }

    /// In how many it may have been.
    fn tunnels_max(&self, datagram: &Packet) -> u32 {
        let owner = self.owners.get(&datagram.ip.destination);
        let handoffs = owner.and_then(|owner| self.mobiles.get(owner)).map_or(0, |it| it.handoffs);
        TUNNELS_MAX + handoffs.min(FOLLOWED_MAX)
    }

    fn on_host_arrival(&mut self, node: NodeId, packet: &Packet, mut fail: impl FnMut(String)) {
        let to = packet.ip.destination;
        if to == IpAddr::V4(Ipv4Addr::BROADCAST) {
            return;
        }
        let is_other_s = match self.mobiles.get_mut(&node) {
            Some(mobile) if mobile.home == to => {
                if is_from(packet, REGISTRATION) {
                    mobile.requests = 0;
                }
                false
            }
            Some(_) => true,
            // Who has sent nothing yet gets the first packet of a connection.
            None => self.owners.contains_key(&to),
        };
        if is_other_s {
            fail(format!("packet {} to {to} arrives at another host", packet.id));
        }
    }

    /// A mobile host that sends from an address; `None` if that is another one's.
    fn sender(&mut self, node: NodeId, source: IpAddr) -> Option<&mut Mobile> {
        if self.mobiles.get(&node).is_none() && *self.owners.entry(source).or_insert(node) == node {
            self.mobiles
                .insert(node, Mobile { home: source, served: None, requests: 0, handoffs: 0 });
        }
        self.mobiles.get_mut(&node)
    }

    fn on_stage(&mut self, record: &Record<'_>, stage: HandoffStage, station: Option<u16>) {
        let Some(mobile) = self.mobiles.get_mut(&record.node) else { return };
        match stage {
            HandoffStage::Begun => {
                (mobile.served, mobile.requests) = (None, 0);
                mobile.handoffs += 1;
            }
            HandoffStage::Complete => {
                mobile.served = station.map(|station| (station, record.at));
            }
            HandoffStage::Failed => mobile.served = None,
            HandoffStage::RouteChanged | HandoffStage::Greeted | HandoffStage::Registered => {}
        }
    }
}

fn innermost(mut packet: &Packet) -> &Packet {
    while let Payload::Tunnel(inner) = &packet.payload {
        packet = inner;
    }
    packet
}

fn is_to(packet: &Packet, port: u16) -> bool {
    matches!(packet.transport, Transport::Udp { destination_port, .. } if destination_port == port)
}

fn is_from(packet: &Packet, port: u16) -> bool {
    matches!(packet.transport, Transport::Udp { source_port, .. } if source_port == port)
}
