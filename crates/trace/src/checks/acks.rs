//! Honest ACKs: whatever a base station sends toward the fixed host acknowledges no byte that the
//! mobile host has not acknowledged (SNOOP-GEN-2). Schemes that terminate TCP at the base station
//! break this on purpose and are judged without it.

use super::Failures;
use crate::{NodeId, Record, Role, What};
use sansio::{FlowKey, Packet, Side};
use std::collections::BTreeMap;
use wire::tcp::{Flags, Seq};

/// Highest ACK seen from the mobile host, per base station and connection.
#[derive(Clone, Debug, Default)]
pub struct Acks {
    highest: BTreeMap<(NodeId, FlowKey), Seq>,
}

impl Acks {
    pub(super) fn record(&mut self, record: &Record<'_>, role: Role, failures: &mut Failures) {
        if role != Role::BaseStation {
            return;
        }
        match record.what {
            What::Arrived { side: Side::RADIO, packet } => {
                let Some((flow, ack)) = acknowledgment(packet) else { return };
                let highest = self.highest.entry((record.node, flow)).or_insert(ack);
                *highest = highest.max(ack);
            }
            What::Sent { side: Side::WIRED, packet, .. } => {
                let Some((flow, ack)) = acknowledgment(packet) else { return };
                let honest = self.highest.get(&(record.node, flow));
                if honest.is_none_or(|highest| ack.after(*highest)) {
                    let what = format!("{flow}: ack {ack} sent, the mobile host's is {honest:?}");
                    failures.add("acks", record.at, record.node, what);
                }
            }
            _ => {}
        }
    }
}

fn acknowledgment(packet: &Packet) -> Option<(FlowKey, Seq)> {
    let tcp = packet.as_tcp().filter(|tcp| tcp.flags.contains(Flags::ACK))?;
    Some((FlowKey::of(packet)?, tcp.ack))
}
