//! Between frames and packets.
//!
//! ```text
//!   | virtio prefix | Ethernet | IP header | transport | payload |
//!     10 bytes        14         20 or 40
//!   '-------- rewritten on the way out ---' '-- the bytes that came in, shared --'
//! ```
//!
//! The virtio prefix (struct virtio_net_hdr, virtio 1.2, 5.1.6) says what the sending host left to
//! the device: a checksum still to be completed, a super-packet still to be cut. It stays with the
//! frame, so whoever sends the frame again leaves the same work to the next device. What an engine
//! made has no frame: it is written anew, with complete checksums.

use crate::sys::packet_socket::{Head, Outgoing};
use bytes::Bytes;
use core::num::NonZeroU16;
use sansio::{Cause, Frame, Packet, PacketId, Payload, Transport};
use std::rc::Rc;
use wire::checksum::{Change, update_word};
use wire::datagram::{self, Checksums, Datagram, Reason};
use wire::ethernet::{self, EtherType, Mac};
use wire::tcp::{self, Flags};
use wire::{Error, ip, ipv4, ipv6};

/// The prefix of a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Virtio {
    flags: u8,
    kind: u8,
    segment_bytes: u16,
}

impl Virtio {
    /// Length in bytes.
    pub const BYTES: usize = 10;
    /// Nothing is left to do.
    const COMPLETE: [u8; Virtio::BYTES] = [0; Virtio::BYTES];
    pub(crate) const NEEDS_CHECKSUM: u8 = 1;
    const CHECKSUM_VERIFIED: u8 = 2;
    pub(crate) const TCP_V4: u8 = 1;
    pub(crate) const TCP_V6: u8 = 4;
    const WITH_CWR: u8 = 0x80;

    /// Reads the fields that matter here; numbers are in the machine's own byte order.
    pub fn parse(prefix: &[u8; Virtio::BYTES]) -> Virtio {
        let [flags, kind, _, _, low, high, ..] = *prefix;
        Virtio { flags, kind, segment_bytes: u16::from_ne_bytes([low, high]) }
    }

    /// The prefix of a TCP super-packet whose checksum is still to be completed: its `kind`, where
    /// in the frame its headers end and where its TCP header begins, both with the prefix, and
    /// payload bytes of each segment but the last.
    pub(crate) fn super_packet(
        kind: u8,
        (headers, tcp_at): (usize, usize),
        segment_bytes: usize,
    ) -> [u8; Virtio::BYTES] {
        const CHECKSUM_AT: u16 = 16;
        let words = [headers - Self::BYTES, segment_bytes, tcp_at - Self::BYTES];
        let [length, step, start] = words.map(|word| (word as u16).to_ne_bytes());
        let offset = CHECKSUM_AT.to_ne_bytes();
        let mut prefix = [Self::NEEDS_CHECKSUM, kind, 0, 0, 0, 0, 0, 0, 0, 0];
        prefix[2..].copy_from_slice(&[length, step, start, offset].concat());
        prefix
    }

    /// Whether the transport checksum is worth reading: not if it is still to be completed, or was
    /// found right by the device.
    pub fn checksums(self) -> Checksums {
        match self.flags & (Self::NEEDS_CHECKSUM | Self::CHECKSUM_VERIFIED) {
            0 => Checksums::Verify,
            _ => Checksums::Trust,
        }
    }

    /// For a TCP super-packet, payload bytes of each segment but the last.
    pub fn segment_bytes(self) -> Option<NonZeroU16> {
        match self.kind & !Self::WITH_CWR {
            Self::TCP_V4 | Self::TCP_V6 => NonZeroU16::new(self.segment_bytes),
            _ => None,
        }
    }
}

/// Where the IP header begins in a frame with a virtio prefix and an untagged Ethernet header.
pub const NETWORK_AT: usize = Virtio::BYTES + ethernet::Header::BASE_BYTES;

/// The packet in a frame with a virtio prefix and an untagged Ethernet header; it keeps the frame.
/// A transport header that a host might discard is for hosts to judge: such a packet is opaque.
/// (Linux takes TCP options that cannot be walked, up to where they can.)
///
/// # Errors
/// Whatever a router would discard the datagram for.
pub fn parse(frame: Bytes, id: PacketId) -> Result<Packet, Error> {
    let have = frame.len();
    let truncated = Error::Truncated { need: NETWORK_AT, have };
    let virtio = Virtio::parse(frame.first_chunk().ok_or(truncated)?);
    let bytes = frame.get(NETWORK_AT..).ok_or(truncated)?;
    let parsed = match datagram::parse(bytes, virtio.checksums()) {
        Ok(parsed) => parsed,
        Err(error) => as_a_router(bytes)?.ok_or(error)?,
    };
    let range = NETWORK_AT + parsed.payload.start..NETWORK_AT + parsed.payload.end;
    let transport = match parsed.transport {
        datagram::Transport::Tcp(header) => Transport::Tcp(header),
        datagram::Transport::Udp(header) => Transport::Udp {
            source_port: header.source_port,
            destination_port: header.destination_port,
        },
        datagram::Transport::Opaque(_) => Transport::Opaque,
    };
    Ok(Packet {
        id,
        parent: None,
        cause: Cause::Original,
        ip: parsed.ip,
        transport,
        payload: Payload::Bytes(frame.slice(range)),
        segment_bytes: virtio.segment_bytes(),
        frame: Some(Rc::new(Frame { bytes: frame, network_at: NETWORK_AT as u16 })),
    })
}

/// A datagram as a router sees it, which looks at the IP header only; `None` if there is none that
/// it would forward.
fn as_a_router(bytes: &[u8]) -> Result<Option<Datagram>, Error> {
    let transport = datagram::Transport::Opaque(Reason::OtherProtocol);
    let (ip, payload) = match bytes.first().map(|first| first >> 4) {
        Some(4) => {
            let header = ipv4::Header::parse(bytes, Checksums::Verify)?;
            (ip::Header::from(&header), header.payload(bytes.len())?)
        }
        Some(6) => {
            let header = ipv6::Header::parse(bytes)?;
            (ip::Header::from(&header), header.payload(bytes.len())?)
        }
        _ => return Ok(None),
    };
    Ok(Some(Datagram { ip, transport, payload }))
}

/// The link-layer addresses of a frame that leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// The next hop's.
    pub destination: Mac,
    /// The device's own.
    pub source: Mac,
}

impl Link {
    /// Those of a frame that begins with its Ethernet header; `None` if it is cut.
    pub fn of(frame: &[u8]) -> Option<Link> {
        let (destination, source) = (frame.first_chunk()?, frame.get(6..)?.first_chunk()?);
        Some(Link { destination: Mac(*destination), source: Mac(*source) })
    }
}

/// How a packet goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Onward {
    /// As a router sends it: with these addresses, and one hop fewer left.
    Routed(Link),
    /// As a bridge does: in its frame as it came; with these addresses if it has none.
    Bridged(Link),
}

/// Why a packet cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unwritable {
    /// It was changed, and is not TCP.
    #[error("a packet without its frame is not TCP")]
    NotTcp,
    /// Its parts do not fit together.
    #[error(transparent)]
    Wire(#[from] Error),
}

/// The frame in which a packet leaves. If it still has the frame it came in, that one: but for the
/// link-layer header and the hop limit behind a router, unchanged behind a bridge. Otherwise it is
/// written anew; a super-packet is then to be cut first ([`segments`]).
///
/// # Errors
/// See [`Unwritable`].
pub fn write(packet: &Packet, onward: Onward) -> Result<Outgoing, Unwritable> {
    let mut head = Head::EMPTY;
    let (Onward::Routed(link) | Onward::Bridged(link)) = onward;
    match &packet.frame {
        Some(frame) if usize::from(frame.network_at) == NETWORK_AT => {
            let mut prefix = Virtio::COMPLETE;
            prefix.copy_from_slice(&frame.bytes[..Virtio::BYTES]);
            prefix[0] &= Virtio::NEEDS_CHECKSUM;
            head.push(&prefix);
            let rest = match onward {
                Onward::Routed(_) => {
                    push_link(&mut head, link, packet);
                    push_ip(&mut head, &frame.bytes)
                }
                Onward::Bridged(_) => Virtio::BYTES,
            };
            let rest = frame.bytes.slice(rest..);
            Ok(Outgoing { headers: headers(packet, head, &rest), head, rest })
        }
        _ => {
            head.push(&Virtio::COMPLETE);
            push_link(&mut head, link, packet);
            let rest = match onward {
                Onward::Routed(_) => datagram(packet)?,
                Onward::Bridged(_) => emit(packet, &packet.ip)?,
            };
            Ok(Outgoing { headers: headers(packet, head, &rest), head, rest: rest.into() })
        }
    }
}

/// Bytes of the headers of a frame with a TCP segment; 0 if it is none.
fn headers(packet: &Packet, head: Head, rest: &[u8]) -> u8 {
    let bytes = head.as_bytes().len() + rest.len();
    let headers = bytes.saturating_sub(packet.payload.len() as usize);
    match packet.transport {
        Transport::Tcp(_) => u8::try_from(headers).unwrap_or(0),
        _ => 0,
    }
}

/// The packet as a datagram one hop on, checksums complete: for the kernel to route.
///
/// # Errors
/// See [`Unwritable`].
pub fn datagram(packet: &Packet) -> Result<Vec<u8>, Unwritable> {
    match (&packet.transport, &packet.frame) {
        (Transport::Tcp(_), _) => {
            let hop_limit = packet.ip.hop_limit.saturating_sub(1);
            emit(packet, &ip::Header { hop_limit, ..packet.ip })
        }
        (_, Some(frame)) => {
            let mut head = Head::EMPTY;
            let rest = push_ip(&mut head, &frame.bytes);
            Ok([head.as_bytes(), &frame.bytes[rest..]].concat())
        }
        (_, None) => Err(Unwritable::NotTcp),
    }
}

/// A TCP datagram with this IP header, checksums complete.
fn emit(packet: &Packet, ip: &ip::Header) -> Result<Vec<u8>, Unwritable> {
    let Transport::Tcp(header) = &packet.transport else { return Err(Unwritable::NotTcp) };
    let payload = packet.payload.to_bytes().ok_or(Unwritable::NotTcp)?;
    let mut bytes = Vec::with_capacity(packet.bytes() as usize);
    datagram::emit_tcp(ip, header, &payload, &mut bytes)?;
    Ok(bytes)
}

/// The segments of a TCP super-packet, as its sender's device would have cut them; the packet
/// itself if it is a single one.
pub fn segments(packet: &Packet) -> impl Iterator<Item = Packet> {
    let step = packet.segment_bytes.map_or(u32::MAX, |bytes| u32::from(bytes.get()));
    let count = packet.segments();
    (0..count).map(move |index| {
        let start = index * step.min(packet.payload.len());
        let end = start.saturating_add(step).min(packet.payload.len());
        let mut segment = packet.clone();
        segment.segment_bytes = None;
        segment.frame = if count == 1 { packet.frame.clone() } else { None };
        segment.payload = packet.payload.slice(start, end);
        if let Transport::Tcp(header) = &mut segment.transport {
            *header = cut(header, start, index + 1 == count);
        }
        segment.ip.identification = packet.ip.identification.wrapping_add(index as u16);
        segment
    })
}

fn cut(header: &tcp::Header, start: u32, last: bool) -> tcp::Header {
    let mut flags = header.flags;
    if !last {
        flags = flags.without(Flags::FIN.with(Flags::PSH));
    }
    if start > 0 {
        flags = flags.without(Flags::CWR);
    }
    tcp::Header { seq: header.seq + start, flags, ..*header }
}

fn push_link(head: &mut Head, link: Link, packet: &Packet) {
    let ether_type = if packet.ip.source.is_ipv4() { EtherType::IPV4 } else { EtherType::IPV6 };
    head.push(&link.destination.0);
    head.push(&link.source.0);
    head.push(&ether_type.0.to_be_bytes());
}

/// Appends the fixed part of a frame's IP header with the hop limit one less; returns where what
/// follows begins in the frame. The frame was parsed, so the header is complete.
fn push_ip(head: &mut Head, frame: &Bytes) -> usize {
    const V4: usize = ip::Header::V4_BYTES as usize;
    const V6: usize = ip::Header::V6_BYTES as usize;
    if frame[NETWORK_AT] >> 4 == 4 {
        let mut header = [0; V4];
        header.copy_from_slice(&frame[NETWORK_AT..NETWORK_AT + V4]);
        // Time to live and protocol are one word of the checksum (RFC 791, 3.1).
        let old = u16::from_be_bytes([header[8], header[9]]);
        header[8] = header[8].saturating_sub(1);
        let new = u16::from_be_bytes([header[8], header[9]]);
        let checksum = u16::from_be_bytes([header[10], header[11]]);
        let checksum = update_word(checksum, Change { old, new });
        header[10..12].copy_from_slice(&checksum.to_be_bytes());
        head.push(&header);
        NETWORK_AT + V4
    } else {
        let mut header = [0; V6];
        header.copy_from_slice(&frame[NETWORK_AT..NETWORK_AT + V6]);
        header[7] = header[7].saturating_sub(1);
        head.push(&header);
        NETWORK_AT + V6
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{IpAddr, Ipv6Addr};

    #[test]
    fn an_ipv6_packet_leaves_one_hop_on_and_otherwise_unchanged() {
        let address = |last| IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, last));
        let ip = ip::Header::new(address(1), address(2), ip::Protocol::TCP);
        let mut bytes = vec![0; NETWORK_AT];
        let tcp = tcp::Header::new(1, 2);
        datagram::emit_tcp(&ip, &tcp, b"hello", &mut bytes).expect("it fits");
        let packet = parse(bytes.clone().into(), PacketId::FIRST).expect("it is valid");
        let link = Link { destination: Mac([2; 6]), source: Mac([4; 6]) };
        let onward = Onward::Routed(link);
        let left = write(&packet, onward).expect("it can be written");
        let left = [left.head.as_bytes(), &left.rest].concat();
        let mut expected = bytes;
        expected[10..16].copy_from_slice(&[2; 6]);
        expected[16..22].copy_from_slice(&[4; 6]);
        expected[22..24].copy_from_slice(&[0x86, 0xdd]);
        expected[NETWORK_AT + 7] -= 1;
        assert_eq!(left, expected);
        let anew = packet.rewrite(PacketId::FIRST, Cause::Original, |_| {});
        let anew = write(&anew, onward).expect("it can be written");
        assert_eq!([anew.head.as_bytes(), &anew.rest].concat(), expected);
    }

    #[test]
    fn behind_a_bridge_a_packet_leaves_as_it_came_or_with_the_same_hop_limit() {
        let address = |last| IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, last));
        let ip = ip::Header::new(address(1), address(2), ip::Protocol::TCP);
        let link = Link { destination: Mac([2; 6]), source: Mac([4; 6]) };
        let mut bytes = vec![0; Virtio::BYTES];
        bytes.extend([[2; 6], [4; 6]].concat());
        bytes.extend([0x86, 0xdd]);
        datagram::emit_tcp(&ip, &tcp::Header::new(1, 2), b"hello", &mut bytes).expect("it fits");
        let packet = parse(bytes.clone().into(), PacketId::FIRST).expect("it is valid");
        assert_eq!(Link::of(&bytes[Virtio::BYTES..]), Some(link));
        let anew = packet.rewrite(PacketId::FIRST, Cause::Original, |_| {});
        for packet in [packet, anew] {
            let left = write(&packet, Onward::Bridged(link)).expect("it can be written");
            assert_eq!([left.head.as_bytes(), &left.rest].concat(), bytes);
        }
    }
}
