//! Honest ACKs: whatever a base station sends toward a host acknowledges no byte that the other
//! host has not acknowledged (SNOOP-GEN-2 toward the fixed host, SNOOP-NACK-6 toward the mobile
//! host), and an ACK of its own says of no byte that it arrived which has not passed it (MOD-4).
//! Schemes that terminate TCP at the base station break this on purpose and are judged without it.

use super::Failures;
use crate::flows::Flows;
use crate::{NodeId, Record, Role, What};
use sansio::{Cause, FlowKey, Packet, Payload, Side};
use wire::tcp::{Flags, Seq};

/// What passed each base station, per flow.
#[derive(Clone, Debug)]
pub struct Acks {
    /// Highest ACK that a host sent, by the flow of the ACK.
    highest: Flows<Seq>,
    /// What went on to the fixed host and lies above its ACK, by the flow of the data.
    passed: Flows<Ranges>,
}

/// Ranges of sequence numbers in order, neither overlapping nor touching.
type Ranges = Vec<(Seq, Seq)>;

impl Acks {
    pub(super) fn new() -> Self {
        Acks { highest: Flows::new(), passed: Flows::new() }
    }

    pub(super) fn record(&mut self, record: &Record<'_>, role: Role, failures: &mut Failures) {
        if role != Role::BaseStation {
            return;
        }
        let node = record.node;
        match record.what {
            What::Arrived { packet, side } => {
                let mut packet = packet;
                while let Payload::Tunnel(inner) = &packet.payload {
                    packet = inner;
                }
                let Some((flow, ack)) = acknowledgment(packet) else { return };
                let highest = self.highest.get_or_insert(node, &flow, ack);
                *highest = highest.max(ack);
                if side == Side::WIRED
                    && let Some(passed) = self.passed.get_mut(node, &flow.reversed())
                {
                    passed.retain(|range| range.1.after(ack));
                }
            }
            What::Sent { side, packet, .. } => {
                if side == Side::WIRED {
                    self.note_passed(node, packet);
                }
                let Some((flow, ack)) = acknowledgment(packet) else { return };
                let is_own = packet.cause == Cause::AgentAck;
                // What is repeated toward the mobile host may come from before it was observed.
                let needs_one = side == Side::WIRED || is_own;
                let honest = self.highest.get_mut(node, &flow);
                if honest.as_ref().map_or(needs_one, |highest| ack.after(**highest)) {
                    let what = format!("{flow}: ack {ack} sent, the host's is {honest:?}");
                    failures.add("acks", record.at, node, what);
                }
                if side == Side::RADIO && is_own {
                    self.check_blocks(record, (flow, packet), failures);
                }
            }
            _ => {}
        }
    }

    /// Data goes on to the fixed host.
    fn note_passed(&mut self, node: NodeId, packet: &Packet) {
        let Some((flow, tcp)) = FlowKey::of(packet).zip(packet.as_tcp()) else { return };
        if tcp.flags.contains(Flags::SYN) {
            self.passed.remove(node, &flow);
        } else if !packet.payload.is_empty() || tcp.flags.contains(Flags::FIN) {
            let end = tcp.seq + tcp.sequence_length(packet.payload.len());
            add(self.passed.get_or_insert(node, &flow, Vec::new()), (tcp.seq, end));
        }
    }

    fn check_blocks(
        &mut self,
        record: &Record<'_>,
        (flow, packet): (FlowKey, &Packet),
        failures: &mut Failures,
    ) {
        let Some(tcp) = packet.as_tcp() else { return };
        let passed = self.passed.get_mut(record.node, &flow.reversed());
        for block in tcp.options.sack_blocks() {
            let holds = |range: &(Seq, Seq)| {
                range.0.at_or_before(block.start) && block.end.at_or_before(range.1)
            };
            if !passed.as_ref().is_some_and(|ranges| ranges.iter().any(holds)) {
                let what = format!("{flow}: {}..{} never passed", block.start, block.end);
                failures.add("acks", record.at, record.node, what);
            }
        }
    }
}

fn acknowledgment(packet: &Packet) -> Option<(FlowKey, Seq)> {
    let tcp = packet.as_tcp().filter(|tcp| tcp.flags.contains(Flags::ACK))?;
    Some((FlowKey::of(packet)?, tcp.ack))
}

fn add(ranges: &mut Ranges, (start, end): (Seq, Seq)) {
    let first = ranges.partition_point(|range| range.1.before(start));
    let touched = ranges[first..].partition_point(|range| range.0.at_or_before(end));
    let old = &ranges[first..first + touched];
    let merged = match (old.first(), old.last()) {
        (Some(low), Some(high)) => (low.0.min(start), high.1.max(end)),
        _ => (start, end),
    };
    ranges.splice(first..first + touched, [merged]);
}
