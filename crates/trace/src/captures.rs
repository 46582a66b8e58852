//! Each machine's packets as a capture: pcapng with nanoseconds, an interface for each side, each
//! packet's identity, by which it is known again in the next machine's capture, and in a comment
//! why a packet was made, what the engine reports of it, and where it was dropped.
//!
//! What a machine sends into a full queue, or what its hop loses, is in its own capture, as it is
//! in that of a host before its network card; who should have received it did not see it.

use crate::{NodeId, Observer, Record, What};
use core::fmt::Write as _;
use sansio::{Cause, Instant, Packet, PacketId, Side, Transport};
use std::collections::BTreeMap;
use std::io::{self, Write};
use wire::pcapng::{Direction, Interface, LinkType, Record as Kept, Writer};
use wire::{datagram, udp};

/// What stands in the comment of a packet that found its hop's queue full.
pub const QUEUE_FULL: &str = "dropped: the queue is full";

/// Writes a capture of each machine.
pub struct Captures<W: Write, F> {
    make: F,
    machines: BTreeMap<NodeId, Machine<W>>,
    failed: Option<io::Error>,
}

/// A machine's capture.
struct Machine<W: Write> {
    writer: Writer<W>,
    interfaces: BTreeMap<Side, Interface>,
    /// The last packet, as long as more may be said of it.
    held: Option<Held>,
    /// What was reported of a packet that comes next.
    reported: Option<(PacketId, String)>,
}

struct Held {
    id: PacketId,
    at: Instant,
    interface: Interface,
    direction: Direction,
    bytes: Vec<u8>,
    comment: String,
}

impl<W: Write, F: FnMut(NodeId) -> io::Result<W>> Captures<W, F> {
    /// Writes each machine's packets to what `make` gives for it.
    pub fn new(make: F) -> Self {
        Captures { make, machines: BTreeMap::new(), failed: None }
    }

    /// Writes the rest.
    ///
    /// # Errors
    /// The first of the underlying writers'.
    pub fn finish(mut self) -> io::Result<()> {
        for (_, mut machine) in std::mem::take(&mut self.machines) {
            machine.write_held()?;
            machine.writer.into_inner()?.flush()?;
        }
        self.failed.map_or(Ok(()), Err)
    }

    fn take(&mut self, record: &Record<'_>) -> io::Result<()> {
        let node = record.node;
        if !self.machines.contains_key(&node) {
            let writer = Writer::new((self.make)(node)?, "lasthop")?;
            let machine =
                Machine { writer, interfaces: BTreeMap::new(), held: None, reported: None };
            self.machines.insert(node, machine);
        }
        let Some(machine) = self.machines.get_mut(&node) else { return Ok(()) };
        match record.what {
            What::Sent { side, packet, .. } => {
                machine.packet(record.at, side, Direction::Outbound, packet)
            }
            What::Arrived { side, packet } => {
                machine.packet(record.at, side, Direction::Inbound, packet)
            }
            What::QueueFull { packet, .. } => {
                machine.remark(packet.id, QUEUE_FULL);
                Ok(())
            }
            What::Discarded { packet, reason } => {
                machine.remark(packet.id, &format!("let go: {reason:?}"));
                Ok(())
            }
            What::Event(event) => {
                let mut words = String::new();
                if let Some(id) = event.packet
                    && crate::text::event_text(&mut words, &event.kind).is_ok()
                {
                    machine.remark(id, &words);
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

impl<W: Write, F: FnMut(NodeId) -> io::Result<W>> Observer for Captures<W, F> {
    const ON: bool = true;

    fn record(&mut self, record: &Record<'_>) {
        if self.failed.is_none() {
            self.failed = self.take(record).err();
        }
    }
}

impl<W: Write> Machine<W> {
    fn packet(
        &mut self,
        at: Instant,
        side: Side,
        direction: Direction,
        packet: &Packet,
    ) -> io::Result<()> {
        self.write_held()?;
        let interface = match self.interfaces.get(&side) {
            Some(interface) => *interface,
            None => {
                let name = format!("side{}", side.0);
                let interface = self.writer.add_interface(&name, LinkType::Ip)?;
                self.interfaces.insert(side, interface);
                interface
            }
        };
        let Some(bytes) = bytes(packet) else { return Ok(()) };
        let mut comment = match packet.cause {
            Cause::Original => String::new(),
            Cause::EndToEndRetransmission => "the sender's retransmission".into(),
            Cause::LocalRetransmission => "local retransmission".into(),
            Cause::Probe => "probe of the agent".into(),
            Cause::AgentAck => "ACK of the agent".into(),
            Cause::Encapsulation => "tunnel".into(),
        };
        if let Some(parent) = packet.parent {
            let _fits = write!(comment, " of packet {parent}");
        }
        let reported = self.reported.take();
        if let Some((_, words)) =
            reported.filter(|(id, _)| *id == packet.id || Some(*id) == packet.parent)
        {
            add(&mut comment, &words);
        }
        self.held = Some(Held { id: packet.id, at, interface, direction, bytes, comment });
        Ok(())
    }

    /// Something is said of a packet: the last one, or one that comes next.
    fn remark(&mut self, id: PacketId, words: &str) {
        match &mut self.held {
            Some(held) if held.id == id => add(&mut held.comment, words),
            _ => match &mut self.reported {
                Some((of, earlier)) if *of == id => add(earlier, words),
                reported => *reported = Some((id, words.to_owned())),
            },
        }
    }

    fn write_held(&mut self) -> io::Result<()> {
        let Some(held) = self.held.take() else { return Ok(()) };
        let record = Kept {
            interface: held.interface,
            at_nanoseconds: held.at.as_nanos(),
            direction: held.direction,
            packet_id: Some(held.id.0.get()),
            comment: &held.comment,
        };
        self.writer.packet(&record, &held.bytes)
    }
}

fn add(comment: &mut String, words: &str) {
    if !comment.is_empty() {
        comment.push_str("; ");
    }
    comment.push_str(words);
}

/// The packet as it stands on the wire; `None` for one that no IP length can say.
fn bytes(packet: &Packet) -> Option<Vec<u8>> {
    let payload = packet.payload.to_bytes()?;
    let mut bytes = Vec::new();
    let emitted = match &packet.transport {
        Transport::Tcp(tcp) => datagram::emit_tcp(&packet.ip, tcp, &payload, &mut bytes),
        Transport::Udp { source_port, destination_port } => {
            let header = udp::Header::new(*source_port, *destination_port);
            datagram::emit_udp(&packet.ip, &header, &payload, &mut bytes)
        }
        Transport::Opaque => datagram::emit(&packet.ip, &payload, &mut bytes),
    };
    emitted.ok().map(|()| bytes)
}
