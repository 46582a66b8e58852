//! Packets are conserved: each identity is in at most one hop at a time, leaves it exactly once,
//! and a base station sends on, or drops with a reason, everything it gets.

use super::Failures;
use super::ids::IdSet;
use crate::handoffs::is_broadcast;
use crate::{NodeId, Record, Role, What};
use sansio::{Instant, Packet, PacketId, Payload};
use std::collections::BTreeMap;

/// Where every packet is.
#[derive(Clone, Debug, Default)]
pub struct Conservation {
    /// In a hop: queued or on the air.
    under_way: IdSet,
    /// Arrived at a base station, neither sent on nor dropped: the last one to arrive, which most
    /// often goes on at once, and the others. True if a changed copy went on, whose parent it is.
    arrived: Option<(Held, bool)>,
    held: BTreeMap<Held, bool>,
}

/// Where it is, and which.
type Held = (NodeId, PacketId);

impl Conservation {
    pub(super) fn record(&mut self, record: &Record<'_>, role: Role, failures: &mut Failures) {
        let node = record.node;
        let mut fail = |packet: &Packet, what: &str| {
            failures.add("conservation", record.at, node, format!("packet {} {what}", packet.id));
        };
        match record.what {
            What::Sent { packet, .. } => {
                if !self.under_way.insert(packet.id) {
                    fail(packet, "was sent while it is already under way");
                }
                let passed_on = self.let_go((node, packet.id)) || self.enters_tunnel(node, packet);
                if let Some(parent) = packet.parent.filter(|_| !passed_on && role.forwards()) {
                    self.note_copy((node, parent));
                }
                // Messages of its own are no TCP.
                let is_own = packet.parent.is_none() && packet.as_tcp().is_some();
                if role.forwards() && !passed_on && is_own {
                    fail(packet, "was sent by a base station that neither got nor derived it");
                }
            }
            What::Arrived { packet, .. } => {
                // A broadcast leaves its hop with the first who hears it.
                if !self.under_way.remove(packet.id) && !is_broadcast(packet) {
                    fail(packet, "arrived without being under way");
                }
                if role.forwards() {
                    self.held.extend(self.arrived.replace(((node, packet.id), false)));
                }
                if let (Payload::Tunnel(inner), Role::BaseStation) = (&packet.payload, role) {
                    self.held.entry((node, inner.id)).or_insert(false);
                }
            }
            What::Lost { packet, .. } | What::QueueFull { packet, .. } => {
                if !self.under_way.remove(packet.id) {
                    fail(packet, "was lost without being under way");
                }
            }
            What::Discarded { packet, .. } => {
                // Together with what is inside.
                let had = self.let_go((node, packet.id)) || self.enters_tunnel(node, packet);
                if !had && role.forwards() {
                    fail(packet, "was dropped by a base station that did not have it");
                }
            }
            _ => {}
        }
    }

    /// A base station keeps a packet at the end of the run.
    pub(super) fn keep(&mut self, node: NodeId, packet: PacketId) {
        self.let_go((node, packet));
    }

    /// True if a tunnel's datagram carries one that the machine had, or that one's copy.
    fn enters_tunnel(&mut self, node: NodeId, packet: &Packet) -> bool {
        let Payload::Tunnel(inner) = &packet.payload else { return false };
        let parent = inner.parent.is_some_and(|parent| self.let_go((node, parent)));
        self.let_go((node, inner.id)) || parent
    }

    /// A base station has a packet no more; false if it had not.
    #[inline]
    fn let_go(&mut self, packet: Held) -> bool {
        match self.arrived {
            Some((arrived, _)) if arrived == packet => self.arrived.take().is_some(),
            _ => self.held.remove(&packet).is_some(),
        }
    }

    /// A changed copy went on of a packet that a base station has, or has not any more.
    fn note_copy(&mut self, packet: Held) {
        match &mut self.arrived {
            Some((arrived, has_copy)) if *arrived == packet => *has_copy = true,
            _ => {
                if let Some(has_copy) = self.held.get_mut(&packet) {
                    *has_copy = true;
                }
            }
        }
    }

    pub(super) fn finish(&mut self, under_way: usize, now: Instant, failures: &mut Failures) {
        self.held.extend(self.arrived.take());
        for ((node, id), _) in self.held.iter().filter(|(_, has_copy)| !**has_copy) {
            let what = format!("packet {id} arrived and was neither sent on nor dropped");
            failures.add("conservation", now, *node, what);
        }
        if self.under_way.len() != under_way {
            let what = format!(
                "{} packets should be under way, the hops have {under_way}",
                self.under_way.len()
            );
            failures.add("conservation", now, NodeId(0), what);
        }
    }
}
