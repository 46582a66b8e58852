//! One parsed IP datagram with an identity, a parent and a cause: a packet's story.
//!
//! A packet is handed on by reference count ([`PacketRef`]): moving it moves a pointer, and a cache
//! that keeps it shares it (SNOOP-CACHE-1). Who wants to change one takes a copy
//! ([`Packet::rewrite`]), which also lets go of the frame it arrived in; so a packet that no engine
//! changed leaves as exactly the bytes that came in.

use bytes::{Bytes, BytesMut};
use core::num::{NonZeroU16, NonZeroU64};
use std::rc::Rc;
use wire::{ip, tcp};

/// A packet that several owners may hold.
pub type PacketRef = Rc<Packet>;

/// The identity of one packet in one run; the driver hands them out (`Sink::new_id`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PacketId(pub NonZeroU64);

impl PacketId {
    /// The first identity of a run.
    pub const FIRST: PacketId = PacketId(NonZeroU64::MIN);

    /// The identity after this one.
    #[inline]
    pub fn next(self) -> PacketId {
        PacketId(self.0.saturating_add(1))
    }
}

impl core::fmt::Display for PacketId {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.0.fmt(f)
    }
}

/// Why a packet was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// An end host sent it for the first time (or it arrived from outside, live).
    Original,
    /// An end host sent these bytes again.
    EndToEndRetransmission,
    /// An agent on the path sent these bytes again.
    LocalRetransmission,
    /// An agent asks whether the link is back.
    Probe,
    /// An agent repeats what the mobile has acknowledged.
    AgentAck,
    /// Another packet inside a tunnel.
    Encapsulation,
}

/// A byte stream of one direction of one connection, for payload that exists only as numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub u32);

/// What a datagram carries after its transport header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payload {
    /// Bytes `offset .. offset + length` of a stream, by name only. Slicing keeps the offset, so
    /// that a checker can prove a stream intact; [`Payload::to_bytes`] makes real bytes.
    Virtual {
        /// The stream.
        stream: StreamId,
        /// Offset of the first byte in the stream.
        offset: u64,
        /// Number of bytes.
        length: u32,
    },
    /// Real bytes, shared.
    Bytes(Bytes),
    /// A whole datagram: IP in IP (RFC 2003), or under UDP with the header of a tunnel data message
    /// before it (RFC 3519), which counts as part of the UDP header.
    Tunnel(PacketRef),
}

impl Payload {
    /// No payload.
    pub const EMPTY: Payload = Payload::Virtual { stream: StreamId(0), offset: 0, length: 0 };

    /// Length in bytes.
    #[inline]
    pub fn len(&self) -> u32 {
        match self {
            Payload::Virtual { length, .. } => *length,
            Payload::Bytes(_) | Payload::Tunnel(_) => self.real_len(),
        }
    }

    /// The same of what is more than a number, which is rare in a simulation.
    #[cold]
    fn real_len(&self) -> u32 {
        match self {
            Payload::Virtual { length, .. } => *length,
            Payload::Bytes(bytes) => bytes.len() as u32,
            Payload::Tunnel(packet) => packet.bytes(),
        }
    }

    /// True if there is nothing.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The part from `start` up to `end`, both at most the length.
    ///
    /// # Panics
    /// If the range does not lie within the payload, or a tunnelled datagram is cut.
    pub fn slice(&self, start: u32, end: u32) -> Payload {
        assert!(start <= end && end <= self.len(), "a slice lies within its payload");
        match self {
            Payload::Virtual { stream, offset, .. } => Payload::Virtual {
                stream: *stream,
                offset: offset + u64::from(start),
                length: end - start,
            },
            Payload::Bytes(bytes) => Payload::Bytes(bytes.slice(start as usize..end as usize)),
            Payload::Tunnel(packet) => {
                assert!(start == 0 && end == self.len(), "a tunnelled datagram is never cut");
                Payload::Tunnel(packet.clone())
            }
        }
    }

    /// The payload as real bytes; a virtual one becomes its stream's fixed pattern. `None` for a
    /// tunnelled datagram, which its own encoder writes.
    pub fn to_bytes(&self) -> Option<Bytes> {
        match self {
            Payload::Virtual { stream, offset, length } => {
                let mut bytes = BytesMut::with_capacity(*length as usize);
                bytes.extend((*offset..*offset + u64::from(*length)).map(|at| stream.pattern(at)));
                Some(bytes.freeze())
            }
            Payload::Bytes(bytes) => Some(bytes.clone()),
            Payload::Tunnel(_) => None,
        }
    }
}

impl StreamId {
    /// The byte that stands at `offset` of this stream wherever virtual payload becomes real.
    /// Neighbouring offsets, offsets 2^8 and 2^32 apart and other streams give other bytes in
    /// 255 of 256 cases.
    #[inline]
    pub fn pattern(self, offset: u64) -> u8 {
        let mixed = (offset + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15)
            ^ u64::from(self.0).wrapping_mul(0xC2B2_AE3D_27D4_EB4F);
        (mixed.wrapping_mul(0xD6E8_FEB8_6659_FD93) >> 56) as u8
    }
}

/// The transport header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transport {
    /// TCP, every option kept.
    Tcp(tcp::Header),
    /// UDP: source and destination port.
    Udp {
        /// Source port.
        source_port: u16,
        /// Destination port.
        destination_port: u16,
    },
    /// Anything an engine only passes on: another protocol, a fragment, a header with IP options.
    /// The payload is all that follows the IP header.
    Opaque,
}

/// The bytes in which a live packet arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The driver's own prefix, the link-layer header, then the datagram.
    pub bytes: Bytes,
    /// Where the IP header begins in `bytes`.
    pub network_at: u16,
}

/// One IP datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Its identity.
    pub id: PacketId,
    /// The packet it repeats or carries.
    pub parent: Option<PacketId>,
    /// Why it was made.
    pub cause: Cause,
    /// The IP header.
    pub ip: ip::Header,
    /// The transport header.
    pub transport: Transport,
    /// What it carries.
    pub payload: Payload,
    /// For a super-packet (GSO, GRO): payload bytes of each segment but the last.
    pub segment_bytes: Option<NonZeroU16>,
    /// The frame it arrived in, as long as nobody changed the packet; `None` in the simulator.
    pub frame: Option<Rc<Frame>>,
}

impl Packet {
    /// Length of the UDP header, in bytes.
    const UDP_BYTES: u32 = 8;
    /// Length of what stands before a datagram tunnelled in UDP, in bytes (RFC 3519, 3.3).
    const TUNNEL_DATA_BYTES: u32 = 4;

    /// An original TCP segment.
    pub fn tcp(id: PacketId, ip: ip::Header, tcp: tcp::Header, payload: Payload) -> Packet {
        Packet {
            id,
            parent: None,
            cause: Cause::Original,
            ip,
            transport: Transport::Tcp(tcp),
            payload,
            segment_bytes: None,
            frame: None,
        }
    }

    /// Length of the datagram in bytes: IP header, transport header, payload. For a super-packet,
    /// the length of the one large datagram.
    #[inline]
    pub fn bytes(&self) -> u32 {
        let transport = match &self.transport {
            Transport::Tcp(tcp) => tcp.bytes(),
            Transport::Udp { .. } if matches!(self.payload, Payload::Tunnel(_)) => {
                Self::UDP_BYTES + Self::TUNNEL_DATA_BYTES
            }
            Transport::Udp { .. } => Self::UDP_BYTES,
            Transport::Opaque => 0,
        };
        self.ip.bytes() + transport + self.payload.len()
    }

    /// The TCP header, if it is a TCP segment.
    #[inline]
    pub fn as_tcp(&self) -> Option<&tcp::Header> {
        match &self.transport {
            Transport::Tcp(tcp) => Some(tcp),
            _ => None,
        }
    }

    /// Number of segments: 1, or more for a super-packet.
    #[inline]
    pub fn segments(&self) -> u32 {
        self.segment_bytes.map_or(1, |size| self.segments_of(size))
    }

    #[cold]
    fn segments_of(&self, size: NonZeroU16) -> u32 {
        self.payload.len().div_ceil(u32::from(size.get())).max(1)
    }

    /// A copy with another identity, this packet as parent, and `change` applied; the frame is let
    /// go, since the bytes are no longer those that came in.
    pub fn rewrite(&self, id: PacketId, cause: Cause, change: impl FnOnce(&mut Packet)) -> Packet {
        let mut copy = Packet { id, parent: Some(self.id), cause, frame: None, ..self.clone() };
        change(&mut copy);
        copy
    }

    /// The same bytes sent again: another identity, this packet as parent, the frame kept.
    pub fn repeat(&self, id: PacketId, cause: Cause) -> Packet {
        Packet { id, parent: Some(self.id), cause, ..self.clone() }
    }
}
