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
//! - *recovery*: from the return of the link until 500 kB more are acknowledged at the sender.
//! - *air bytes*: everything that used the last hop, both ways, lost or not.

use crate::{NodeId, Observer, Record, Role, What};
use sansio::{Cause, Duration, EventKind, FlowKey, Instant, Packet, Payload, Side, StreamId};
use std::collections::BTreeMap;
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
    /// For requests: how long each message took.
    pub latencies: Vec<Duration>,
}

/// After so many bytes a connection is taken to have recovered from an outage: a user
/// notices more than the first byte.
pub const RECOVERY_BYTES: u32 = 500_000;

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
    /// Packets that the last hop lost.
    pub lost: u64,
    /// Packets that a full queue refused.
    pub queue_full: u64,
    /// The most a base station kept in its caches.
    pub base_station_bytes_max: u64,
    /// Duplicate ACKs that reached the senders.
    pub dupacks: u64,
}

/// Measures a run.
#[derive(Clone, Debug)]
pub struct Meter {
    roles: Vec<Role>,
    specs: Vec<TransferSpec>,
    progress: Vec<Progress>,
    senders: BTreeMap<(NodeId, FlowKey), Sent>,
    measures: Measures,
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
}

/// What a host sent on one connection.
#[derive(Clone, Copy, Debug)]
struct Sent {
    /// One past the last byte sent.
    next: Seq,
    /// Highest ACK that came back.
    acknowledged: Option<Seq>,
}

impl Meter {
    /// A meter for these machines and transfers.
    pub fn new(roles: Vec<Role>, specs: Vec<TransferSpec>) -> Self {
        Meter {
            roles,
            progress: vec![Progress::default(); specs.len()],
            measures: Measures {
                transfers: vec![Transfer::default(); specs.len()],
                ..Measures::default()
            },
            specs,
            senders: BTreeMap::new(),
        }
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
        }
        self.measures
    }

    fn on_delivered(&mut self, node: NodeId, payload: &Payload, now: Instant) {
        let Payload::Virtual { stream, length, .. } = payload else { return };
        let here = |spec: &TransferSpec| spec.receiver == node && spec.stream == *stream;
        let Some(index) = self.specs.iter().position(here) else { return };
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
                    transfer.stall = transfer.stall.max(latency);
                    progress.messages_done += 1;
                }
            }
        }
        transfer.last_delivered_at = now;
        transfer.complete |= spec.size.is_some_and(|size| transfer.delivered_bytes >= size);
        let samples = &mut transfer.receiver_stalls_after_outage;
        end_wait(&mut progress.receiver_waits_since, samples, now);
    }

    fn on_sent(&mut self, node: NodeId, packet: &Packet) {
        let base = self.roles.get(node.0 as usize) == Some(&Role::BaseStation);
        match packet.cause {
            // A base station that passes one on does not send it again.
            Cause::EndToEndRetransmission if !base => {
                self.measures.retransmissions_end_to_end += 1;
            }
            Cause::LocalRetransmission => self.measures.retransmissions_local += 1,
            Cause::Probe => {
                self.measures.probes += 1;
                self.measures.probe_bytes += u64::from(packet.bytes());
            }
            _ => {}
        }
        if base {
            return;
        }
        let (Some(flow), Some(tcp)) = (FlowKey::of(packet), packet.as_tcp()) else { return };
        let end = tcp.seq + tcp.sequence_length(packet.payload.len());
        let sent = self.senders.entry((node, flow));
        let sent = sent.or_insert(Sent { next: end, acknowledged: None });
        sent.next = sent.next.max(end);
    }

    fn on_host_arrival(&mut self, node: NodeId, packet: &Packet, now: Instant) {
        let Some(flow) = FlowKey::of(packet) else { return };
        let Some(tcp) = packet.as_tcp().filter(|tcp| tcp.flags.contains(Flags::ACK)) else {
            return;
        };
        let Some(sent) = self.senders.get_mut(&(node, flow.reversed())) else { return };
        if sent.acknowledged.is_some_and(|highest| tcp.ack.at_or_before(highest)) {
            let pure = packet.payload.is_empty() && sent.next.after(tcp.ack);
            let repeats = sent.acknowledged == Some(tcp.ack) && pure;
            self.measures.dupacks += u64::from(repeats);
            return;
        }
        sent.acknowledged = Some(tcp.ack);
        let here = |spec: &TransferSpec| spec.sender == node;
        let Some(index) = self.specs.iter().position(here) else { return };
        let (transfer, progress) = (&mut self.measures.transfers[index], &mut self.progress[index]);
        end_wait(&mut progress.sender_waits_since, &mut transfer.stalls_after_outage, now);
        if let Some((since, from)) = progress.recovers_since
            && tcp.ack.since(from) >= RECOVERY_BYTES
        {
            transfer.recoveries.push(now.since(since));
            progress.recovers_since = None;
        }
    }

    fn on_link_down(&mut self, base: NodeId, now: Instant) {
        for index in 0..self.specs.len() {
            if self.specs[index].base == base {
                let (transfer, progress) =
                    (&mut self.measures.transfers[index], &mut self.progress[index]);
                progress.recovers_since = None;
                end_wait(&mut progress.sender_waits_since, &mut transfer.stalls_after_outage, now);
                let samples = &mut transfer.receiver_stalls_after_outage;
                end_wait(&mut progress.receiver_waits_since, samples, now);
            }
        }
    }

    fn on_link_up(&mut self, base: NodeId, now: Instant) {
        for (index, spec) in self.specs.iter().enumerate() {
            let connections = self.senders.range((spec.sender, LOWEST)..);
            let mut own = connections.take_while(|((node, _), _)| *node == spec.sender);
            let outstanding = own.find_map(|(_, sent)| {
                sent.acknowledged.filter(|acknowledged| sent.next.after(*acknowledged))
            });
            let Some(acknowledged) = outstanding else { continue };
            if spec.base == base && !self.measures.transfers[index].complete {
                let progress = &mut self.progress[index];
                progress.sender_waits_since = Some(now);
                progress.receiver_waits_since = Some(now);
                progress.recovers_since = Some((now, acknowledged));
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

/// Ends a wait that is on, and keeps how long it was.
fn end_wait(since: &mut Option<Instant>, samples: &mut Vec<Duration>, now: Instant) {
    if let Some(since) = since.take() {
        samples.push(now.since(since));
    }
}

/// Sorts before every flow.
const LOWEST: FlowKey = {
    let host =
        sansio::Host { address: core::net::IpAddr::V4(core::net::Ipv4Addr::UNSPECIFIED), port: 0 };
    FlowKey { source: host, destination: host }
};

impl Observer for Meter {
    const ON: bool = true;

    fn record(&mut self, record: &Record<'_>) {
        let (node, now) = (record.node, record.at);
        match record.what {
            What::Sent { packet, .. } => self.on_sent(node, packet),
            What::Arrived { side, packet } => {
                if self.is_air(node, side) {
                    self.measures.air_bytes += u64::from(packet.bytes());
                }
                if self.roles.get(node.0 as usize) != Some(&Role::BaseStation) {
                    self.on_host_arrival(node, packet, now);
                }
            }
            What::Lost { side, packet, .. } => {
                if self.is_air(node, side) {
                    self.measures.air_bytes += u64::from(packet.bytes());
                }
                self.measures.lost += 1;
            }
            What::QueueFull { .. } => self.measures.queue_full += 1,
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
            What::Departed { .. } | What::Discarded { .. } | What::Queued { .. } => {}
        }
    }
}
