//! What a transfer does in time, and around each crossing of its mobile host from one cell to the
//! next: what the paper of window control plots and speaks of.

use node::Plan;
use sansio::{Cause, DropReason, EventKind, Instant, Packet, Payload, Side};
use trace::handoffs::NO_WAY;
use trace::metrics::TransferSpec;
use trace::{CellChange, NodeId, Observer, Record, What};

/// A transfer in time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Moves {
    /// Bytes delivered in each second of the run.
    pub delivered: Vec<u32>,
    /// When the sender's cwnd first was 1, 2, 3, ... segments, in seconds.
    pub grown: Vec<f64>,
    /// The crossings.
    pub crossings: Vec<Crossing>,
}

/// One crossing, and what came of it before the next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Crossing {
    /// When, in seconds.
    pub at: f64,
    /// Until the first segment of the transfer came through the new cell, in seconds.
    pub restart: Option<f64>,
    /// The sender's cwnd and ssthresh at the crossing, in bytes.
    pub before: (u32, u32),
    /// The least they were after it, in bytes.
    pub least: (u32, u32),
    /// When the sender last went into congestion avoidance, from slow start or with a reduction, in
    /// seconds after the crossing.
    pub avoidance: Option<f64>,
    /// Segments that the sender sent again.
    pub resent: u64,
    /// The sender's timeouts.
    pub timeouts: u64,
    /// Segments that were lost on their way to the mobile host.
    pub lost: u64,
    /// Duplicate ACKs that came to the sender.
    pub duplicate_acks: u64,
}

/// Watches one transfer toward a mobile host.
pub(crate) struct Watch {
    spec: TransferSpec,
    mss: u32,
    moves: Moves,
    window: (u32, u32),
    /// The cell that the mobile host went to last.
    cell: Option<u16>,
    /// Number and window of the last ACK at the sender.
    ack: Option<(u32, u16)>,
}

impl Watch {
    pub(crate) fn new(plan: &Plan, spec: TransferSpec) -> Watch {
        let mss = u32::from(plan.tcp.mss);
        Watch { spec, mss, moves: Moves::default(), window: (0, 0), cell: None, ack: None }
    }

    pub(crate) fn finish(self) -> Moves {
        self.moves
    }

    fn is_data(&self, packet: &Packet) -> bool {
        matches!(packet.payload, Payload::Virtual { stream, length, .. }
            if length > 0 && stream == self.spec.stream)
    }

    fn on_crossing(&mut self, to: u16, now: Instant) {
        self.cell = Some(to);
        self.moves.crossings.push(Crossing {
            at: now.as_secs_f64(),
            restart: None,
            before: self.window,
            least: self.window,
            avoidance: None,
            resent: 0,
            timeouts: 0,
            lost: 0,
            duplicate_acks: 0,
        });
    }

    fn on_window(&mut self, cwnd: u32, ssthresh: u32, now: Instant) {
        let seconds = now.as_secs_f64();
        let segments = (cwnd / self.mss.max(1)) as usize;
        while self.moves.grown.len() < segments {
            self.moves.grown.push(seconds);
        }
        let (was_below, was) = (self.window.0 < self.window.1, self.window.1);
        if let Some(crossing) = self.moves.crossings.last_mut() {
            let least = crossing.least;
            crossing.least = (least.0.min(cwnd), least.1.min(ssthresh));
            if (was_below || ssthresh < was) && cwnd >= ssthresh {
                crossing.avoidance = Some(seconds - crossing.at);
            }
        }
        self.window = (cwnd, ssthresh);
    }

    fn on_ack(&mut self, packet: &Packet) {
        let Some(tcp) = packet.as_tcp().filter(|_| packet.payload.is_empty()) else { return };
        let ack = Some((tcp.ack.0, tcp.window));
        if let Some(crossing) = self.moves.crossings.last_mut() {
            crossing.duplicate_acks += u64::from(ack == self.ack);
        }
        self.ack = ack;
    }

    fn on_delivered(&mut self, bytes: u32, now: Instant) {
        let second = now.as_secs_f64() as usize;
        if self.moves.delivered.len() <= second {
            self.moves.delivered.resize(second + 1, 0);
        }
        self.moves.delivered[second] += bytes;
    }

    /// What happens to a packet of the transfer.
    fn on_data(&mut self, node: NodeId, what: &What<'_>, now: Instant) {
        let Some(crossing) = self.moves.crossings.last_mut() else { return };
        match what {
            What::Sent { packet, .. } if node == self.spec.sender => {
                crossing.resent += u64::from(packet.cause == Cause::EndToEndRetransmission);
            }
            What::Arrived { side: Side(cell), .. } if node == self.spec.receiver => {
                if self.cell == Some(*cell) {
                    crossing.restart.get_or_insert(now.as_secs_f64() - crossing.at);
                }
            }
            What::Lost { .. } | What::QueueFull { .. } => crossing.lost += 1,
            // What a machine has taken in, or has a copy of, is not lost.
            What::Discarded { reason: DropReason::Full(_), .. } => crossing.lost += 1,
            What::Discarded { reason: DropReason::Rule(rule), .. } => {
                crossing.lost += u64::from(NO_WAY.contains(rule));
            }
            _ => {}
        }
    }
}

impl Observer for Watch {
    const ON: bool = true;

    fn record(&mut self, record: &Record<'_>) {
        let Record { node, at, ref what } = *record;
        match what {
            What::Cell(CellChange::Crossed { to, .. }) => self.on_crossing(*to, at),
            What::Event(event) if node == self.spec.sender => match event.kind {
                EventKind::Window { cwnd, ssthresh, .. } => self.on_window(cwnd, ssthresh, at),
                EventKind::Timeout { .. } => {
                    if let Some(crossing) = self.moves.crossings.last_mut() {
                        crossing.timeouts += 1;
                    }
                }
                _ => {}
            },
            What::Delivered { payload } if node == self.spec.receiver => {
                self.on_delivered(payload.len(), at);
            }
            What::Arrived { packet, .. } if node == self.spec.sender => self.on_ack(packet),
            What::Sent { packet, .. }
            | What::Arrived { packet, .. }
            | What::Lost { packet, .. }
            | What::QueueFull { packet, .. }
            | What::Discarded { packet, .. }
                if self.is_data(packet) =>
            {
                self.on_data(node, what, at);
            }
            _ => {}
        }
    }
}
