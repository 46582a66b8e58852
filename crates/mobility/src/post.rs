//! Messages into packets and out of them.

use bytes::Bytes;
use core::net::{IpAddr, Ipv4Addr, SocketAddrV4};
use sansio::{Cause, Packet, PacketRef, Payload, Sink, Transport};
use wire::ip::{self, Protocol, Version};
use wire::{control, icmp};

/// The longest message that is read, in bytes: no registration is longer than a link's packet.
const MESSAGE_BYTES_MAX: u32 = 1_500;

fn packet(ip: ip::Header, transport: Transport, bytes: Vec<u8>, sink: &mut impl Sink) -> PacketRef {
    let packet = Packet {
        id: sink.new_id(),
        parent: None,
        cause: Cause::Original,
        ip,
        transport,
        payload: Payload::Bytes(Bytes::from(bytes)),
        segment_bytes: None,
        frame: None,
    };
    sink.place(packet)
}

/// A UDP datagram.
pub(crate) fn udp(
    from: SocketAddrV4,
    to: SocketAddrV4,
    bytes: Vec<u8>,
    sink: &mut impl Sink,
) -> PacketRef {
    let (source, destination) = (IpAddr::V4(*from.ip()), IpAddr::V4(*to.ip()));
    let mut ip = ip::Header::new(source, destination, Protocol::UDP);
    if to.ip().is_broadcast() {
        ip.hop_limit = 1;
    }
    let transport = Transport::Udp { source_port: from.port(), destination_port: to.port() };
    packet(ip, transport, bytes, sink)
}

/// A handoff message, proved.
pub(crate) fn control(
    message: &control::Message,
    key: &wire::auth::Key,
    sink: &mut impl Sink,
) -> PacketRef {
    let mut bytes = Vec::with_capacity(control::Message::BYTES_MAX);
    message.emit(key, &mut bytes);
    let from = SocketAddrV4::new(message.header.sender, control::PORT);
    let to = SocketAddrV4::new(message.header.receiver, control::PORT);
    udp(from, to, bytes, sink)
}

/// An ICMP message.
pub(crate) fn icmp(
    (source, destination): (Ipv4Addr, Ipv4Addr),
    (kind, code): (u8, u8),
    body: &[u8],
    sink: &mut impl Sink,
) -> PacketRef {
    let mut ip = ip::Header::new(IpAddr::V4(source), IpAddr::V4(destination), Protocol::ICMP);
    if destination.is_broadcast() {
        // RFC 5944, 2.1: no router passes it on.
        ip.hop_limit = 1;
    }
    let mut bytes = Vec::with_capacity(icmp::Message::HEADER_BYTES + body.len());
    icmp::Message { version: Version::V4, kind, code, body }.emit(&ip, &mut bytes);
    packet(ip, Transport::Opaque, bytes, sink)
}

/// The message in a UDP datagram to a port.
pub(crate) fn udp_to(packet: &Packet, port: u16) -> Option<Bytes> {
    let Transport::Udp { destination_port, .. } = packet.transport else { return None };
    if destination_port != port {
        return None;
    }
    message(packet)
}

/// The ICMP message in a datagram, checksum included.
pub(crate) fn icmp_in(packet: &Packet) -> Option<Bytes> {
    let is_icmp = packet.ip.protocol == Protocol::ICMP && packet.transport == Transport::Opaque;
    if is_icmp { message(packet) } else { None }
}

fn message(packet: &Packet) -> Option<Bytes> {
    (packet.payload.len() <= MESSAGE_BYTES_MAX).then(|| packet.payload.to_bytes()).flatten()
}

/// An IPv4 address, or none.
pub(crate) fn v4(address: IpAddr) -> Option<Ipv4Addr> {
    match address {
        IpAddr::V4(address) => Some(address),
        IpAddr::V6(_) => None,
    }
}
