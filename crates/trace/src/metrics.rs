//! What a run is measured by: goodput, stalls, retransmissions, air time, memory.
//!
//! Definitions
//! - *goodput*: bytes delivered in order to the application over the time from the opening of the
//!   connection (the start of the run) to the last of them, or to the end of a run with a duration.
//! - *stall*: the longest time in which an unfinished transfer delivers nothing; for requests, the
//!   longest time a message takes.
//! - *stall after an outage*: from the return of the link until the sender gets the first ACK for
//!   new data, and until the receiver delivers the next byte; only where data was outstanding when
//!   the link returned. A link that goes away again before that ends the sample there.
//! - *stall after a handoff*: [`crate::handoffs`] has it.
//! - *latency around a handoff*: of the messages that were under way at a crossing or written
//!   within 1 s after it.
//! - *recovery*: from the return of the link until 500 kB more are acknowledged at the sender.
//! - *air bytes*: everything that used the last hop, both ways, lost or not.
//! - *queue delay*: what a packet with payload takes from the moment at which its machine puts it
//!   into the queue of the last hop until it arrives (or would have, had it not been lost), less
//!   what the idle hop takes for it. So it counts waiting behind others, in the queue and on the
//!   air, waiting for an outage's end and for repetitions of the link layer; a copy that a base
//!   station sends again is a packet of its own.
//! - *packets at the base station*: those that reach it from either side; each is looked at.

mod hosts;
mod last_hop;

use crate::flows::Flows;
use crate::handoffs::{self, Handoffs, Pause, is_broadcast};
use crate::{CellChange, NodeId, Observer, Record, Role, What};
use hosts::Ends;
use last_hop::LastHop;
use sansio::{
    BitRate, Cause, Duration, EventKind, FlowKey, Instant, Packet, Payload, Side, StreamId,
};
use wire::tcp::{Flags, Seq};

/// One transfer of a run.
#[derive(Clone, Copy, Debug)]
pub struct TransferSpec {
    /// The name of its bytes.
    pub stream: StreamId,
    /// Who sends it.
    pub sender: NodeId,
    /// Who receives it.
    pub receiver: NodeId,
    /// The base station between them.
    pub base: NodeId,
    /// Bytes, if it ends by itself.
    pub size: Option<u64>,
    /// For requests: bytes of a message, and the time between two, from the start of the run.
    pub messages: Option<(u64, Duration)>,
}

impl TransferSpec {
    /// True if a link that goes away at a machine is this transfer's: at its base station, or at
    /// one of its hosts where several share a base station.
    pub fn meets(&self, node: NodeId) -> bool {
        [self.base, self.sender, self.receiver].contains(&node)
    }
}

/// What was measured of one transfer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Transfer {
    /// Bytes delivered in order.
    pub delivered_bytes: u64,
    /// When the last of them was delivered.
    pub last_delivered_at: Instant,
    /// True once a sized transfer is complete.
    pub complete: bool,
    /// The longest stall.
    pub stall: Duration,
    /// For each outage: from the link's return to the first new ACK at the sender.
    pub stalls_after_outage: Vec<Duration>,
    /// For each outage: from the link's return to the next byte delivered at the receiver.
    pub receiver_stalls_after_outage: Vec<Duration>,
    /// For each outage: from the link's return until [`RECOVERY_BYTES`] more are acknowledged; only
    /// where that happened before the next outage and the end.
    pub recoveries: Vec<Duration>,
    /// For each crossing with data outstanding, the stall at the sender.
    pub stalls_after_handoff: Vec<Duration>,
    /// And at the receiver.
    pub receiver_stalls_after_handoff: Vec<Duration>,
    /// For requests: how long each message took.
    pub latencies: Vec<Duration>,
    /// Of those, the ones around a handoff; see [the definition](self).
    pub latencies_around_handoff: Vec<Duration>,
}

/// A message written so long after a crossing is around the handoff.
const AROUND_HANDOFF: Duration = Duration::from_secs(1);

/// After so many bytes a connection is taken to have recovered from an outage: a user
/// notices more than the first byte.
pub const RECOVERY_BYTES: u32 = 500_000;

/// What one way of the last hop takes for a packet when nothing else is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Idle {
    /// At this rate its bits are sent.
    pub rate: BitRate,
    /// And what is the same for every packet: host cost and propagation.
    pub fixed: Duration,
}

/// Queue delays of one run; see [the definition](self).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueDelay {
    /// Median over the packets with payload.
    pub p50: Duration,
    /// 99 of 100 had no more.
    pub p99: Duration,
}

/// What was measured of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measures {
    /// The transfers, in the order given.
    pub transfers: Vec<Transfer>,
    /// Packets that end hosts sent again.
    pub retransmissions_end_to_end: u64,
    /// Packets that base stations sent again, probes not counted.
    pub retransmissions_local: u64,
    /// Probes of base stations.
    pub probes: u64,
    /// Bytes of those probes.
    pub probe_bytes: u64,
    /// Retransmission timeouts of end hosts.
    pub timeouts: u64,
    /// Bytes on the air of the last hop.
    pub air_bytes: u64,
    /// For how long the last hop had no air for anything else, both ways: host costs, bits, and
    /// waits for the ACKs of a link layer that repeats. Only where it is asked for.
    pub air_time: Option<Duration>,
    /// Packets that the last hop lost.
    pub lost: u64,
    /// Packets that a full queue refused.
    pub queue_full: u64,
    /// The most a base station kept in its caches.
    pub base_station_bytes_max: u64,
    /// Duplicate ACKs that reached the senders.
    pub dupacks: u64,
    /// Packets that reached base stations, from either side.
    pub base_station_packets: u64,
    /// Queue delay at the last hop; only of a meter that knows the idle hop, and if anything with
    /// payload got there.
    pub queue_delay: Option<QueueDelay>,
    /// What handoffs cost, where there are several cells.
    pub handoffs: Option<Handoffs>,
}

/// Measures a run.
#[derive(Clone, Debug)]
pub struct Meter {
    roles: Vec<Role>,
    specs: Vec<TransferSpec>,
    ends: Ends,
    progress: Vec<Progress>,
    senders: Flows<Sent>,
    measures: Measures,
    handoffs: Option<Box<handoffs::Meter>>,
    last_hop: LastHop,
}

/// Where a transfer stands.
#[derive(Clone, Copy, Debug, Default)]
struct Progress {
    /// The link is back since, and the sender waits for an ACK.
    sender_waits_since: Option<Instant>,
    /// The link is back since, and the receiver waits for data.
    receiver_waits_since: Option<Instant>,
    /// The link is back since, and the sender's highest ACK was that.
    recovers_since: Option<(Instant, Seq)>,
    messages_done: u64,
    /// The mobile host's last crossing.
    crossed_at: Option<Instant>,
    /// The mobile host has crossed: how long the sender has waited for ACKs since.
    sender_pause: Pause,
    /// And the receiver for data.
    receiver_pause: Pause,
}

/// What a host sent on one connection.
#[derive(Clone, Copy, Debug)]
struct Sent {
    /// One past the last byte sent.
    next: Seq,
    /// Highest ACK that came back.
    acknowledged: Option<Seq>,
    /// Which of the transfers it carries, known from its first payload on.
    transfer: Option<usize>,
}

impl Meter {
    /// A meter for these machines and transfers.
    pub fn new(roles: Vec<Role>, specs: Vec<TransferSpec>) -> Self {
        let moves = roles.contains(&Role::Router);
        let stations = roles.iter().filter(|role| **role == Role::BaseStation).count();
        Meter {
            handoffs: moves.then(Box::default),
            // Beside each other they share no air, and few packets are on each.
            last_hop: LastHop::new(if moves { stations } else { 1 }),
            ends: Ends::new(&specs),
            roles,
            progress: vec![Progress::default(); specs.len()],
            measures: Measures {
                transfers: vec![Transfer::default(); specs.len()],
                ..Measures::default()
            },
            specs,
            senders: Flows::new(),
        }
    }

    /// Measures queue delays, too, against the last hop when it is idle: toward the mobile host,
    /// and back.
    pub fn with_idle(mut self, idle: [Idle; 2]) -> Self {
        self.last_hop.idle = Some(idle);
        self
    }

    /// True once every transfer with a size is complete; never for a run without sized transfers.
    pub fn is_complete(&self) -> bool {
        let sized = self.specs.iter().zip(&self.measures.transfers);
        let mut sized = sized.filter(|(spec, _)| spec.size.is_some()).peekable();
        sized.peek().is_some() && sized.all(|(_, transfer)| transfer.complete)
    }

    /// The measures of a run that ended at `now`.
    pub fn finish(mut self, now: Instant) -> Measures {
        for (index, spec) in self.specs.iter().enumerate() {
            let (transfer, progress) =
                (&mut self.measures.transfers[index], &mut self.progress[index]);
            if transfer.complete {
                continue;
            }
            let since = match spec.messages {
                Some((_, every)) => Instant::ZERO + every * progress.messages_done,
                None => transfer.last_delivered_at,
            };
            transfer.stall = transfer.stall.max(now.since(since));
            end_wait(&mut progress.sender_waits_since, &mut transfer.stalls_after_outage, now);
            let samples = &mut transfer.receiver_stalls_after_outage;
            end_wait(&mut progress.receiver_waits_since, samples, now);
            progress.end_handoff(transfer, now);
        }
        self.measures.handoffs = self.handoffs.map(|handoffs| handoffs.finish());
        self.measures.queue_delay = self.last_hop.finish();
        self.measures
    }

    /// The transfer of a stream; most are numbered as they stand.
    fn transfer_of(&self, stream: StreamId) -> Option<usize> {
        let is = |spec: &TransferSpec| spec.stream == stream;
        let index = stream.0 as usize;
        if self.specs.get(index).is_some_and(is) {
            Some(index)
        } else {
            self.specs.iter().position(is)
        }
    }

    fn on_delivered(&mut self, node: NodeId, payload: &Payload, now: Instant) {
        let Payload::Virtual { stream, length, .. } = payload else { return };
        let index = self.transfer_of(*stream);
        let Some(index) = index.filter(|index| self.specs[*index].receiver == node) else { return };
        let (spec, transfer) = (&self.specs[index], &mut self.measures.transfers[index]);
        let progress = &mut self.progress[index];
        transfer.delivered_bytes += u64::from(*length);
        match spec.messages {
            None => {
                let gap = now.since(transfer.last_delivered_at);
                transfer.stall = transfer.stall.max(gap);
            }
            Some((size, every)) => {
                while (progress.messages_done + 1) * size <= transfer.delivered_bytes {
                    let written_at = Instant::ZERO + every * progress.messages_done;
                    let latency = now.since(written_at);
                    transfer.latencies.push(latency);
                    if progress.crossed_at.is_some_and(|at| written_at < at + AROUND_HANDOFF) {
                        transfer.latencies_around_handoff.push(latency);
                    }
                    transfer.stall = transfer.stall.max(latency);
                    progress.messages_done += 1;
                }
            }
        }
        transfer.last_delivered_at = now;
        transfer.complete |= spec.size.is_some_and(|size| transfer.delivered_bytes >= size);
        let samples = &mut transfer.receiver_stalls_after_outage;
        end_wait(&mut progress.receiver_waits_since, samples, now);
        progress.receiver_pause.progress(&mut transfer.receiver_stalls_after_handoff, now);
    }

    fn on_sent(&mut self, node: NodeId, packet: &Packet) {
        let forwards = self.roles.get(node.0 as usize).is_some_and(|role| role.forwards());
        match packet.cause {
            // Who passes one on does not send it again.
            Cause::EndToEndRetransmission if !forwards => {
                self.measures.retransmissions_end_to_end += 1;
            }
            Cause::LocalRetransmission => self.measures.retransmissions_local += 1,
            Cause::Probe => {
                self.measures.probes += 1;
                self.measures.probe_bytes += u64::from(packet.bytes());
            }
            _ => {}
        }
        if forwards {
            return;
        }
        let (Some(flow), Some(tcp)) = (FlowKey::of(packet), packet.as_tcp()) else { return };
        let end = tcp.seq + tcp.sequence_length(packet.payload.len());
        let transfer = match packet.payload {
            Payload::Virtual { stream, length, .. } if length > 0 => self.transfer_of(stream),
            _ => None,
        };
        let first = Sent { next: end, acknowledged: None, transfer: None };
        let sent = self.senders.get_or_insert(node, &flow, first);
        sent.next = sent.next.max(end);
        sent.transfer = sent.transfer.or(transfer);
    }

    fn on_host_arrival(&mut self, node: NodeId, packet: &Packet, now: Instant) {
        let Some(flow) = FlowKey::of(packet) else { return };
        let Some(tcp) = packet.as_tcp().filter(|tcp| tcp.flags.contains(Flags::ACK)) else {
            return;
        };
        let Some(sent) = self.senders.get_mut(node, &flow.reversed()) else { return };
        if sent.acknowledged.is_some_and(|highest| tcp.ack.at_or_before(highest)) {
            let pure = packet.payload.is_empty() && sent.next.after(tcp.ack);
            let repeats = sent.acknowledged == Some(tcp.ack) && pure;
            self.measures.dupacks += u64::from(repeats);
            return;
        }
        sent.acknowledged = Some(tcp.ack);
        let sent_here = |index: &usize| self.specs[*index].sender == node;
        let index = sent.transfer.or_else(|| self.ends.of(node).find(sent_here));
        let Some(index) = index else { return };
        let (transfer, progress) = (&mut self.measures.transfers[index], &mut self.progress[index]);
        end_wait(&mut progress.sender_waits_since, &mut transfer.stalls_after_outage, now);
        progress.sender_pause.progress(&mut transfer.stalls_after_handoff, now);
        if let Some((since, from)) = progress.recovers_since
            && tcp.ack.since(from) >= RECOVERY_BYTES
        {
            transfer.recoveries.push(now.since(since));
            progress.recovers_since = None;
        }
    }

    fn on_link_down(&mut self, node: NodeId, now: Instant) {
        for index in 0..self.specs.len() {
            if self.specs[index].meets(node) {
                let (transfer, progress) =
                    (&mut self.measures.transfers[index], &mut self.progress[index]);
                progress.recovers_since = None;
                end_wait(&mut progress.sender_waits_since, &mut transfer.stalls_after_outage, now);
                let samples = &mut transfer.receiver_stalls_after_outage;
                end_wait(&mut progress.receiver_waits_since, samples, now);
            }
        }
    }

    fn on_link_up(&mut self, node: NodeId, now: Instant) {
        for (index, spec) in self.specs.iter().enumerate() {
            let outstanding = outstanding(&self.senders, spec.sender, index);
            let Some(acknowledged) = outstanding else { continue };
            if spec.meets(node) && !self.measures.transfers[index].complete {
                let progress = &mut self.progress[index];
                progress.sender_waits_since = Some(now);
                progress.receiver_waits_since = Some(now);
                progress.recovers_since = Some((now, acknowledged));
            }
        }
    }

    /// A mobile host goes from one cell to another.
    fn on_crossing(&mut self, node: NodeId, now: Instant) {
        for index in self.ends.of(node) {
            let transfer = &mut self.measures.transfers[index];
            if transfer.complete {
                continue;
            }
            let progress = &mut self.progress[index];
            progress.crossed_at = Some(now);
            progress.end_handoff(transfer, now);
            if outstanding(&self.senders, self.specs[index].sender, index).is_some() {
                progress.sender_pause = Pause::since(now);
                progress.receiver_pause = Pause::since(now);
            }
        }
    }

    fn is_air(&self, node: NodeId, side: Side) -> bool {
        match self.roles.get(node.0 as usize) {
            Some(Role::BaseStation) => side == Side::RADIO,
            Some(Role::MobileHost) => true,
            _ => false,
        }
    }
}

/// The highest ACK of a transfer's sender, if data is outstanding.
fn outstanding(senders: &Flows<Sent>, sender: NodeId, index: usize) -> Option<Seq> {
    senders.of(sender).find_map(|sent| {
        if sent.transfer.is_some_and(|transfer| transfer != index) {
            return None;
        }
        sent.acknowledged.filter(|acknowledged| sent.next.after(*acknowledged))
    })
}

impl Progress {
    /// What waits for the end of a handoff waits no longer.
    fn end_handoff(&mut self, transfer: &mut Transfer, now: Instant) {
        self.sender_pause.end(&mut transfer.stalls_after_handoff, now);
        self.receiver_pause.end(&mut transfer.receiver_stalls_after_handoff, now);
    }
}

/// Ends a wait that is on, and keeps how long it was.
fn end_wait(since: &mut Option<Instant>, samples: &mut Vec<Duration>, now: Instant) {
    if let Some(since) = since.take() {
        samples.push(now.since(since));
    }
}

impl Observer for Meter {
    const ON: bool = true;

    fn record(&mut self, record: &Record<'_>) {
        let (node, now) = (record.node, record.at);
        if self.handoffs.as_ref().is_some_and(|handoffs| handoffs.is_crossing(&record.what)) {
            self.on_crossing(node, now);
        }
        if let Some(handoffs) = &mut self.handoffs {
            handoffs.record(record);
        }
        match record.what {
            What::Sent { side, packet, .. } => {
                self.on_sent(node, packet);
                if self.is_air(node, side) {
                    let is_down = self.roles.get(node.0 as usize) == Some(&Role::BaseStation);
                    self.last_hop.enter(packet, is_down, now);
                }
            }
            What::Arrived { side, packet } => {
                if self.is_air(node, side) {
                    self.measures.air_bytes += u64::from(packet.bytes());
                    self.last_hop.leave(packet, now);
                }
                match self.roles.get(node.0 as usize) {
                    Some(Role::BaseStation) => self.measures.base_station_packets += 1,
                    Some(Role::Router) => {}
                    _ => self.on_host_arrival(node, packet, now),
                }
            }
            What::Lost { side, packet, .. } => {
                if self.is_air(node, side) {
                    self.measures.air_bytes += u64::from(packet.bytes());
                    self.last_hop.leave(packet, now);
                }
                self.measures.lost += u64::from(!is_broadcast(packet));
            }
            What::QueueFull { packet, .. } => {
                self.last_hop.refuse(packet);
                self.measures.queue_full += 1;
            }
            What::Delivered { payload } => self.on_delivered(node, payload, now),
            What::LinkDown { .. } => self.on_link_down(node, now),
            What::LinkUp { .. } => self.on_link_up(node, now),
            What::Cached { bytes, .. } => {
                let most = &mut self.measures.base_station_bytes_max;
                *most = (*most).max(bytes);
            }
            What::Event(event) => {
                let timeout = matches!(event.kind, EventKind::Timeout { .. });
                self.measures.timeouts += u64::from(timeout);
            }
            What::Cell(CellChange::Crossed { .. }) => self.on_crossing(node, now),
            What::Departed { .. }
            | What::Discarded { .. }
            | What::Queued { .. }
            | What::Cell(_) => {}
        }
    }
}
