//! What became of each packet of one transfer, and why: the raw material of a packet's story.
//!
//! A story is told by bytes, not by packets: bytes of the stream that were lost are carried by
//! other packets later, from the sender or from the base station. So a [`Segment`] knows which
//! bytes it carries, and a [`Step`] which packet or which bytes it is about.

use crate::{NodeId, What};
use sansio::{Cause, DropReason, EventKind, Instant, Packet, PacketId};

/// A packet that carries bytes of the transfer: which, and why there is such a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Its identity.
    pub id: PacketId,
    /// The packet it repeats.
    pub parent: Option<PacketId>,
    /// Why it was made.
    pub cause: Cause,
    /// Offset of its first byte in the stream.
    pub offset: u64,
    /// Bytes that it carries.
    pub length: u32,
}

/// One thing that happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// When.
    pub at: Instant,
    /// At which machine; of a hop, the one that sends into it.
    pub node: NodeId,
    /// The packet it happened to.
    pub packet: Option<PacketId>,
    /// Without a packet: the byte of the stream that it is about.
    pub offset: Option<u64>,
    /// What.
    pub deed: Deed,
    /// More about it, a place in [`Story::texts`]: a rule and what it did, a cause, a reason.
    pub text: Option<u32>,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    /// A machine sent the packet into a hop's queue.
    Sent,
    /// It went onto the air.
    Departed,
    /// It reached a machine.
    Arrived,
    /// The hop lost it.
    Lost,
    /// The hop's queue was full.
    QueueFull,
    /// An engine let it go.
    Discarded,
    /// A rule of the scheme acted.
    Rule,
    /// The sender's retransmission timer fired.
    Timeout,
    /// The sender began to retransmit on duplicate ACKs or SACK blocks.
    FastRetransmit,
}

/// Packets and steps in the order of time.
#[derive(Clone, Debug, Default)]
pub struct Story {
    /// The packets, by identity.
    pub segments: Vec<Segment>,
    /// What happened to them.
    pub steps: Vec<Step>,
    /// What steps refer to.
    pub texts: Vec<String>,
    /// The words of `texts`, to find them again.
    known: Vec<(&'static str, &'static str)>,
}

/// Rules whose number is a count or a size, not a sequence number.
const COUNTING: [&str; 3] = ["SNOOP-ACK-8", "MOD-14", "MOD-23"];

impl Story {
    /// A packet is seen at its sender; forwarded ones are known already.
    pub(crate) fn on_segment(&mut self, packet: &Packet, offset: u64) {
        // Identities are handed out in the order in which packets are made.
        if self.segments.last().is_some_and(|last| packet.id <= last.id) {
            return;
        }
        let Packet { id, parent, cause, .. } = *packet;
        self.segments.push(Segment { id, parent, cause, offset, length: packet.payload.len() });
    }

    /// Something happened to a packet of the transfer.
    pub(crate) fn on_packet(&mut self, what: &What<'_>, node: NodeId, at: Instant) {
        let (packet, deed, text) = match *what {
            What::Sent { packet, .. } => (packet, Deed::Sent, None),
            What::Departed { packet, .. } => (packet, Deed::Departed, None),
            What::Arrived { packet, .. } => (packet, Deed::Arrived, None),
            What::Lost { packet, cause, .. } => (packet, Deed::Lost, Some(cause)),
            What::QueueFull { packet, .. } => (packet, Deed::QueueFull, None),
            What::Discarded { packet, reason: DropReason::Rule(text) | DropReason::Full(text) } => {
                (packet, Deed::Discarded, Some(text))
            }
            _ => return,
        };
        let text = text.map(|text| self.text(text, ""));
        let packet = Some(packet.id);
        self.steps.push(Step { at, node, packet, offset: None, deed, text });
    }

    /// An engine's report; `offset` turns a sequence number of the transfer into an offset.
    pub(crate) fn on_event(
        &mut self,
        event: &sansio::Event,
        offset: impl Fn(u32) -> Option<u64>,
        (node, at): (NodeId, Instant),
    ) {
        let (deed, seq, text) = match event.kind {
            EventKind::Rule { id, did, value } => {
                let seq = (!COUNTING.contains(&id)).then_some(value as u32);
                (Deed::Rule, seq, Some(self.text(id, did)))
            }
            EventKind::Timeout { seq, .. } => (Deed::Timeout, Some(seq.0), None),
            EventKind::FastRetransmit { seq } => (Deed::FastRetransmit, Some(seq.0), None),
            _ => return,
        };
        let offset = seq.and_then(offset);
        self.steps.push(Step { at, node, packet: event.packet, offset, deed, text });
    }

    fn text(&mut self, id: &'static str, did: &'static str) -> u32 {
        let place = self.known.iter().position(|known| *known == (id, did));
        let place = place.unwrap_or_else(|| {
            self.known.push((id, did));
            self.texts.push(if did.is_empty() { id.to_owned() } else { format!("{id}: {did}") });
            self.known.len() - 1
        });
        place as u32
    }
}
