//! What the mobile host has sent and nobody has acknowledged: of it the oldest segment may be sent
//! again (CI-FRX-2). The first bytes are kept, not the last: one segment is all that is ever sent.

use sansio::{Cause, Packet, PacketRef, Side, Sink, Transport};
use std::collections::VecDeque;
use wire::tcp::{Flags, Seq};

/// Segments in order, the oldest first.
#[derive(Clone, Debug, Default)]
pub(super) struct Kept {
    segments: VecDeque<PacketRef>,
    bytes: u32,
    /// What the fixed host has acknowledged, once it has.
    acknowledged: Option<Seq>,
}

/// First sequence number of a segment with data, and the one after its last byte.
fn range(packet: &Packet) -> Option<(Seq, Seq)> {
    let tcp = packet.as_tcp()?;
    let length = packet.payload.len();
    (length > 0).then(|| (tcp.seq, tcp.seq + length))
}

impl Kept {
    /// Payload bytes.
    pub(super) fn bytes(&self) -> u64 {
        u64::from(self.bytes)
    }

    /// A segment passes.
    pub(super) fn note(&mut self, side: Side, packet: &PacketRef, bytes_max: u32) {
        if side == Side::HOST {
            return self.on_sent(packet, bytes_max);
        }
        let Some(tcp) = packet.as_tcp().filter(|tcp| tcp.flags.contains(Flags::ACK)) else {
            return;
        };
        if self.acknowledged.is_none_or(|seq| tcp.ack.after(seq)) {
            self.acknowledged = Some(tcp.ack);
        }
        while let Some((start, end)) = self.segments.front().and_then(|oldest| range(oldest))
            && end.at_or_before(tcp.ack)
        {
            self.bytes -= end.since(start);
            self.segments.pop_front();
        }
    }

    /// Only what continues the last one: a repetition is kept already, and behind a gap nothing
    /// will be the oldest before it was sent again.
    fn on_sent(&mut self, packet: &PacketRef, bytes_max: u32) {
        let Some((start, end)) = range(packet) else { return };
        let continues = match self.segments.back().and_then(|last| range(last)) {
            Some((_, last)) => start == last,
            None => self.acknowledged.is_none_or(|seq| start.at_or_before(seq) && end.after(seq)),
        };
        let length = packet.payload.len();
        if continues && self.bytes + length <= bytes_max {
            self.bytes += length;
            self.segments.push_back(packet.clone());
        }
    }

    /// A copy of the oldest segment from its first unacknowledged byte on: of a super-packet one
    /// segment.
    pub(super) fn oldest(&self, sink: &mut impl Sink) -> Option<Packet> {
        let oldest = self.segments.front()?;
        let (start, end) = range(oldest)?;
        let from = self.acknowledged.map_or(start, |seq| seq.max(start));
        let length = end.since(from);
        let most = oldest.segment_bytes.map_or(length, |bytes| u32::from(bytes.get()));
        let to = from + length.min(most);
        let id = sink.new_id();
        if (from, to) == (start, end) {
            return Some(oldest.repeat(id, Cause::LocalRetransmission));
        }
        Some(oldest.rewrite(id, Cause::LocalRetransmission, |copy| {
            copy.payload = oldest.payload.slice(from.since(start), to.since(start));
            copy.segment_bytes = None;
            if let Transport::Tcp(tcp) = &mut copy.transport {
                tcp.seq = from;
                if to != end {
                    tcp.flags = tcp.flags.without(Flags::FIN.with(Flags::PSH));
                }
            }
        }))
    }
}
