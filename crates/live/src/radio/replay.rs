//! From the radio's log to the records of the simulator, so that the same meters and plots read
//! both.
//!
//! The radio sees every packet on both hops, and no more. So two things are inferred:
//!
//! - *causes*: a host repeats what it sent before; a base station makes what did not enter it. A
//!   packet is recognised by addresses, ports, sequence number, length and IP identification, which
//!   a repeated one shares with its original, so copies are counted.
//! - *delivery in order*: when the last byte before a gap arrives at the receiver's host, or at the
//!   latest when the receiver acknowledges it. ACKs alone would tell up to 40 ms late, as long as
//!   Linux delays them.

use super::Report;
use super::log::{Happened, Happening, HopName, Segment};
use link::outage::State;
use sansio::{Cause, FlowKey, Host, Instant, Packet, PacketId, Payload, Side, StreamId};
use std::collections::BTreeMap;
use trace::{NodeId, Observer, Record, What};
use wire::tcp::{Flags, Seq};

/// The machines of the lab, numbered as in the simulator's first triple.
pub const FIXED_HOST: NodeId = NodeId(0);
/// The base station.
pub const BASE_STATION: NodeId = NodeId(1);
/// The mobile host.
pub const MOBILE_HOST: NodeId = NodeId(2);

/// The cause of a loss of which only the loss is known.
pub const MISSING: &str = "it never arrived";

/// A transfer to follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream {
    /// The name of its bytes.
    pub stream: StreamId,
    /// Who sends it.
    pub sender: NodeId,
    /// Who receives it.
    pub receiver: NodeId,
    /// Where it is received: the port tells the connection, since each is used once.
    pub accepted_at: Host,
}

/// Shows the records of a run, in order of time, to an observer.
pub fn replay<O: Observer>(report: &Report, streams: &[Stream], observer: &mut O) {
    let mut happenings = report.log.happenings.clone();
    happenings.sort_by_key(|happening| happening.at);
    let mut transitions = report.transitions.iter().copied().peekable();
    let mut teller = Teller {
        observer,
        followed: streams.iter().map(|stream| Followed::new(*stream)).collect(),
        inside: BTreeMap::new(),
        told: vec![None; report.log.packets.len()],
    };
    for happening in &happenings {
        while let Some((at, state)) = transitions.next_if(|(at, _)| *at <= happening.at) {
            teller.transition(at, state);
        }
        if let Some(segment) = &report.log.packets[happening.packet as usize] {
            teller.tell(happening, segment);
        }
    }
    for (at, state) in transitions {
        teller.transition(at, state);
    }
}

/// A transfer under way.
#[derive(Clone, Debug)]
struct Followed {
    stream: Stream,
    /// Sequence number of its first byte.
    first: Option<Seq>,
    /// Bytes that the sender has sent.
    sent: u64,
    /// Bytes delivered in order.
    delivered: u64,
    /// Bytes that arrived beyond a gap: from, up to.
    beyond: BTreeMap<u64, u64>,
}

/// By what a packet is known again on the other side of the base station.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Mark {
    flow: FlowKey,
    seq: u32,
    payload_bytes: u32,
    identification: u16,
}

struct Teller<'a, O> {
    observer: &'a mut O,
    followed: Vec<Followed>,
    /// Packets that entered the base station and did not leave it yet: cause, identity, copies.
    inside: BTreeMap<Mark, (Cause, PacketId, u32)>,
    /// The packets that were sent, as they are shown.
    told: Vec<Option<Box<Packet>>>,
}

impl Followed {
    fn new(stream: Stream) -> Self {
        Followed { stream, first: None, sent: 0, delivered: 0, beyond: BTreeMap::new() }
    }

    /// Bytes arrive; returns up to where there is no gap now.
    fn arrive(&mut self, from: u64, upto: u64) -> u64 {
        let end = self.beyond.entry(from).or_insert(upto);
        *end = upto.max(*end);
        let mut whole = self.delivered;
        while let Some((&from, &upto)) = self.beyond.first_key_value() {
            if from > whole {
                break;
            }
            whole = whole.max(upto);
            self.beyond.pop_first();
        }
        whole
    }

    /// The offset of a sequence number, by nearness to `near`.
    fn offset(&self, seq: Seq, near: u64) -> Option<u64> {
        let expected = self.first? + near as u32;
        let moved = seq.0.wrapping_sub(expected.0) as i32;
        near.checked_add_signed(i64::from(moved))
    }
}

impl HopName {
    fn sender(self) -> (NodeId, Side) {
        match self {
            HopName::WiredDown => (FIXED_HOST, Side::NETWORK),
            HopName::RadioDown => (BASE_STATION, Side::RADIO),
            HopName::RadioUp => (MOBILE_HOST, Side::NETWORK),
            HopName::WiredUp => (BASE_STATION, Side::WIRED),
        }
    }

    fn receiver(self) -> (NodeId, Side) {
        match self {
            HopName::WiredDown => (BASE_STATION, Side::WIRED),
            HopName::RadioDown => (MOBILE_HOST, Side::NETWORK),
            HopName::RadioUp => (BASE_STATION, Side::RADIO),
            HopName::WiredUp => (FIXED_HOST, Side::NETWORK),
        }
    }
}

impl<O: Observer> Teller<'_, O> {
    fn tell(&mut self, happening: &Happening, segment: &Segment) {
        let Happening { at, packet: number, hop, what } = *happening;
        let index = number as usize;
        if let Happened::Sent(_) = what {
            self.told[index] = self.packet(number, hop, segment).map(Box::new);
        }
        let Some(packet) = self.told[index].take() else { return };
        let ((sender, from), (receiver, to)) = (hop.sender(), hop.receiver());
        let packet_ref = &*packet;
        let (node, shown) = match what {
            Happened::Sent(priority) => {
                (sender, What::Sent { side: from, priority, packet: packet_ref })
            }
            Happened::QueueFull => (sender, What::QueueFull { side: from, packet: packet_ref }),
            Happened::Arrived => (receiver, What::Arrived { side: to, packet: packet_ref }),
            Happened::Lost(loss) => {
                (sender, What::Lost { side: from, packet: packet_ref, cause: loss.name() })
            }
            Happened::Missing => {
                (sender, What::Lost { side: from, packet: packet_ref, cause: MISSING })
            }
        };
        self.observer.record(&Record { at, node, what: shown });
        match what {
            Happened::Sent(_) => {
                self.on_ack(sender, segment, at);
                self.told[index] = Some(packet);
            }
            Happened::Arrived if receiver == BASE_STATION => {
                let mark = mark(&packet, segment);
                let inside = self.inside.entry(mark).or_insert((packet.cause, packet.id, 0));
                inside.2 += 1;
            }
            Happened::Arrived => self.on_data(receiver, &packet, at),
            _ => {}
        }
    }

    /// The packet as it is shown; `None` if it belongs to no transfer.
    fn packet(&mut self, number: u32, hop: HopName, segment: &Segment) -> Option<Packet> {
        let id = PacketId(core::num::NonZeroU64::MIN.saturating_add(u64::from(number)));
        let mut packet = Packet::tcp(id, segment.ip, segment.tcp, Payload::EMPTY);
        let flow = FlowKey::of(&packet)?;
        let to = |followed: &Followed| followed.stream.accepted_at;
        let data = self.followed.iter().position(|one| to(one) == flow.destination);
        let acks = self.followed.iter().position(|one| to(one) == flow.source);
        let followed = &mut self.followed[data.or(acks)?];
        let bytes = segment.payload_bytes;
        let mut cause = Cause::Original;
        if data.is_some() {
            let tcp = &segment.tcp;
            let from_host = hop.sender().0 == followed.stream.sender;
            if from_host && tcp.flags.contains(Flags::SYN) {
                followed.first = Some(tcp.seq + 1);
            }
            if bytes > 0 {
                let offset = followed.offset(tcp.seq, followed.sent)?;
                let stream = followed.stream.stream;
                packet.payload = Payload::Virtual { stream, offset, length: bytes };
                if from_host {
                    let end = offset + u64::from(bytes);
                    if end <= followed.sent {
                        cause = Cause::EndToEndRetransmission;
                    }
                    followed.sent = followed.sent.max(end);
                }
            }
        }
        packet.cause = cause;
        if hop.sender().0 == BASE_STATION {
            (packet.cause, packet.parent) = self.leave(&packet, segment);
        }
        Some(packet)
    }

    /// A packet leaves the base station: one that entered it, or one that it made.
    fn leave(&mut self, packet: &Packet, segment: &Segment) -> (Cause, Option<PacketId>) {
        let mark = mark(packet, segment);
        if let Some((cause, id, copies)) = self.inside.get_mut(&mark) {
            let story = (*cause, Some(*id));
            *copies -= 1;
            if *copies == 0 {
                self.inside.remove(&mark);
            }
            return story;
        }
        let cause = match segment.payload_bytes {
            0 => Cause::AgentAck,
            1 => Cause::Probe,
            _ => Cause::LocalRetransmission,
        };
        (cause, None)
    }

    /// Data arrives at an end host.
    fn on_data(&mut self, node: NodeId, packet: &Packet, at: Instant) {
        let Payload::Virtual { stream, offset, length } = packet.payload else { return };
        let here = |one: &Followed| one.stream.receiver == node && one.stream.stream == stream;
        let Some(index) = self.followed.iter().position(here) else { return };
        if length > 0 {
            let whole = self.followed[index].arrive(offset, offset + u64::from(length));
            self.deliver(index, whole, at);
        }
    }

    /// What the receiver acknowledges when it sends this was delivered.
    fn on_ack(&mut self, node: NodeId, segment: &Segment, at: Instant) {
        let source = Host { address: segment.ip.source, port: segment.tcp.source_port };
        let answers =
            |one: &Followed| one.stream.receiver == node && one.stream.accepted_at == source;
        let Some(index) = self.followed.iter().position(answers) else { return };
        let followed = &self.followed[index];
        if !segment.tcp.flags.contains(Flags::ACK) {
            return;
        }
        if let Some(upto) = followed.offset(segment.tcp.ack, followed.delivered) {
            // The sender's FIN counts one beyond its last byte.
            self.deliver(index, upto.min(followed.sent), at);
        }
    }

    fn deliver(&mut self, index: usize, upto: u64, at: Instant) {
        let followed = &mut self.followed[index];
        let offset = followed.delivered;
        if upto > offset {
            followed.delivered = upto;
            let length = (upto - offset) as u32;
            let payload = Payload::Virtual { stream: followed.stream.stream, offset, length };
            let what = What::Delivered { payload: &payload };
            self.observer.record(&Record { at, node: followed.stream.receiver, what });
        }
    }

    fn transition(&mut self, at: Instant, state: State) {
        let side = Side::RADIO;
        let what = match state {
            State::Down => What::LinkDown { side },
            State::Up => What::LinkUp { side },
        };
        self.observer.record(&Record { at, node: BASE_STATION, what });
    }
}

fn mark(packet: &Packet, segment: &Segment) -> Mark {
    let host = |address, port| Host { address, port };
    let flow = FlowKey {
        source: host(packet.ip.source, segment.tcp.source_port),
        destination: host(packet.ip.destination, segment.tcp.destination_port),
    };
    Mark {
        flow,
        seq: segment.tcp.seq.0,
        payload_bytes: segment.payload_bytes,
        identification: segment.ip.identification,
    }
}
