//! Joining and leaving a multicast group (IGMPv2, RFC 2236): the two messages that a base station
//! sends to its router. There are no queries: a role has a lifetime of its own, which ends a
//! membership that nobody renews.

use bytes::Bytes;
use core::net::{IpAddr, Ipv4Addr};
use sansio::{Cause, Packet, PacketRef, Payload, Sink, Transport};
use wire::ip::{self, Protocol};

const IGMP: Protocol = Protocol(2);
/// RFC 2236, 2.1.
const REPORT: u8 = 0x16;
const LEAVE: u8 = 0x17;
/// RFC 2236, 2: type, response time, checksum, group.
const BYTES: usize = 8;

/// A report of membership, or that it has ended (RFC 2236, 3).
pub(super) fn message(
    (from, to): (Ipv4Addr, Ipv4Addr),
    group: Ipv4Addr,
    is_member: bool,
    sink: &mut impl Sink,
) -> PacketRef {
    let mut bytes = [0; BYTES];
    bytes[0] = if is_member { REPORT } else { LEAVE };
    bytes[4..].copy_from_slice(&group.octets());
    let sum = checksum(&bytes).to_be_bytes();
    bytes[2..4].copy_from_slice(&sum);
    let mut ip = ip::Header::new(IpAddr::V4(from), IpAddr::V4(to), IGMP);
    ip.hop_limit = 1;
    let packet = Packet {
        id: sink.new_id(),
        parent: None,
        cause: Cause::Original,
        ip,
        transport: Transport::Opaque,
        payload: Payload::Bytes(Bytes::copy_from_slice(&bytes)),
        segment_bytes: None,
        frame: None,
    };
    sink.place(packet)
}

/// The group that a message is about, and if its sender is a member; `None` for anything else.
pub(super) fn read(packet: &Packet) -> Option<(Ipv4Addr, bool)> {
    if packet.ip.protocol != IGMP {
        return None;
    }
    let Payload::Bytes(bytes) = &packet.payload else { return None };
    let bytes: [u8; BYTES] = bytes.as_ref().try_into().ok()?;
    let [kind, _, _, _, a, b, c, d] = bytes;
    let group = Ipv4Addr::new(a, b, c, d);
    let is_known = matches!(kind, REPORT | LEAVE) && group.is_multicast() && checksum(&bytes) == 0;
    is_known.then_some((group, kind == REPORT))
}

/// RFC 1071.
fn checksum(bytes: &[u8; BYTES]) -> u16 {
    let words = bytes.chunks_exact(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])));
    let sum: u32 = words.sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded & 0xffff) + (folded >> 16)) as u16
}
