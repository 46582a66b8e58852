//! What the papers speak of and no other measure has: idle gaps, packets sent again by two, the
//! share of packets lost on the air; and what happens at crossings ([`crate::crossings`]).

use crate::crossings::{self, Crossing};
use crate::events::{EventWatch, Events};
use crate::moves::{self, Moves};
use node::Plan;
use sansio::{Cause, Duration, Instant, Packet, Payload, Side};
use std::collections::BTreeSet;
use trace::metrics::TransferSpec;
use trace::{Observer, Record, What};

/// The flat regions of a sequence plot: longer than this, the coarse tick of the hosts of 1995.
pub(crate) const IDLE_GAP: Duration = Duration::from_millis(500);

/// Packets of one kind on the air.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Air {
    /// All.
    pub sent: u64,
    /// Of those, lost.
    pub lost: u64,
}

/// What was seen in one run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Watched {
    /// Times of more than 500 ms in which the transfer delivered nothing.
    pub idle_gaps: u64,
    /// Handoffs, where there are any.
    pub handoffs: Vec<Events>,
    /// Segments that the base station and the sender both sent again.
    pub resent_by_both: u64,
    /// Full data packets toward the mobile host.
    pub data: Air,
    /// Packets of 40 bytes from the mobile host: ACKs without options.
    pub acks: Air,
    /// What happened at each crossing of the mobile host.
    pub crossings: Vec<Crossing>,
    /// Of a transfer that does not end: its rate in time, and what happens at crossings.
    pub moves: Moves,
}

/// Watches the first transfer of a run.
pub(crate) struct Watch {
    spec: TransferSpec,
    full_bytes: u32,
    delivered_at: Instant,
    delivered: u64,
    end_to_end: BTreeSet<u64>,
    local: BTreeSet<u64>,
    handoffs: Option<EventWatch>,
    watched: Watched,
    crossings: Option<crossings::Meter>,
    moves: Option<moves::Watch>,
}

impl Watch {
    pub(crate) fn new(plan: &Plan, spec: TransferSpec) -> Watch {
        Watch {
            spec,
            full_bytes: plan.packet_bytes(),
            delivered_at: Instant::ZERO,
            delivered: 0,
            end_to_end: BTreeSet::new(),
            local: BTreeSet::new(),
            handoffs: plan.roaming.as_ref().map(|it| EventWatch::new(spec.receiver, it.cells)),
            watched: Watched::default(),
            crossings: plan.roaming.as_ref().map(|_| crossings::Meter::new(plan, spec)),
            moves: spec.size.is_none().then(|| moves::Watch::new(plan, spec)),
        }
    }

    /// What was seen of a run of so many seconds.
    pub(crate) fn finish(mut self, seconds: f64) -> Watched {
        let is_complete = self.spec.size.is_some_and(|size| self.delivered >= size);
        let waited = seconds - self.delivered_at.as_secs_f64();
        self.watched.idle_gaps += u64::from(!is_complete && waited > IDLE_GAP.as_secs_f64());
        self.watched.moves = self.moves.map(moves::Watch::finish).unwrap_or_default();
        self.watched.resent_by_both = self.local.intersection(&self.end_to_end).count() as u64;
        self.watched.crossings = self.crossings.map(crossings::Meter::finish).unwrap_or_default();
        self.watched.handoffs = self.handoffs.map(EventWatch::finish).unwrap_or_default();
        self.watched
    }

    fn on_air(&mut self, packet: &Packet, toward_mobile: bool, lost: bool) {
        const ACK_BYTES: u32 = 40;
        let air = match (toward_mobile, packet.bytes()) {
            (true, bytes) if bytes == self.full_bytes => &mut self.watched.data,
            (false, ACK_BYTES) => &mut self.watched.acks,
            _ => return,
        };
        air.sent += 1;
        air.lost += u64::from(lost);
    }
}

impl Observer for Watch {
    const ON: bool = true;

    fn record(&mut self, record: &Record<'_>) {
        let (sender, base, receiver) = (self.spec.sender, self.spec.base, self.spec.receiver);
        let node = record.node;
        if let Some(crossings) = &mut self.crossings {
            crossings.record(record);
        }
        if let Some(moves) = &mut self.moves {
            moves.record(record);
        }
        if let Some(handoffs) = &mut self.handoffs {
            handoffs.record(record);
        }
        match record.what {
            What::Sent { packet, .. } => {
                let Payload::Virtual { offset, .. } = packet.payload else { return };
                if node == base && packet.cause == Cause::LocalRetransmission {
                    self.local.insert(offset);
                } else if node == sender && packet.cause == Cause::EndToEndRetransmission {
                    self.end_to_end.insert(offset);
                }
            }
            What::Arrived { packet, .. } if node == receiver => self.on_air(packet, true, false),
            What::Arrived { packet, side: Side::RADIO } if node == base => {
                self.on_air(packet, false, false);
            }
            What::Lost { packet, side: Side::RADIO, .. } if node == base => {
                self.on_air(packet, true, true);
            }
            What::Lost { packet, .. } if node == receiver => self.on_air(packet, false, true),
            What::Delivered { payload } if node == receiver => {
                let gap = record.at.since(self.delivered_at);
                self.watched.idle_gaps += u64::from(gap > IDLE_GAP);
                self.delivered_at = record.at;
                self.delivered += u64::from(payload.len());
            }
            _ => {}
        }
    }
}
