//! Tunnels: a datagram in another one, in IP (RFC 2003) or in UDP (RFC 3519).
//!
//! What we do beside the RFCs: a datagram that is in too many tunnels already is refused, as RFC
//! 2473, 4.1.1 has it for IPv6; and one that does not fit with its "don't fragment" set is
//! answered by ICMP to its own sender, who knows nothing of the tunnel (RFC 2003, 5.1; MOD-9).
//! One without that flag is let out as it is: to fragment it is left to the driver's IP.

use crate::post;
use bytes::Bytes;
use core::net::{IpAddr, Ipv4Addr};
use sansio::{Cause, Packet, PacketRef, Payload, Sink, Transport};
use wire::checksum::Checksums;
use wire::datagram;
use wire::ip::{self, Protocol};
use wire::mobile_ip::{PORT, tunnel};

/// What stands outside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Encapsulation {
    /// IP in IP (RFC 2003).
    #[default]
    Ip,
    /// IP in UDP, through address translators (RFC 3519).
    Udp,
}

impl Encapsulation {
    /// What it adds to a datagram, in bytes.
    pub const fn overhead_bytes(self) -> u32 {
        match self {
            Encapsulation::Ip => 20,
            Encapsulation::Udp => 32,
        }
    }
}

/// A tunnel's ends and what fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tunnel {
    /// Where it begins: this node.
    pub from: Ipv4Addr,
    /// Where it ends.
    pub to: Ipv4Addr,
    /// How.
    pub encapsulation: Encapsulation,
    /// The largest datagram outside, in bytes.
    pub mtu_bytes: u32,
}

/// Tunnels in tunnels, at most (RFC 2473, 6.6 has four).
pub const DEPTH_MAX: u32 = 4;
/// What an ICMP error quotes after the IP header, in bytes (RFC 792).
const QUOTED_BYTES: usize = 8;

/// Why a datagram did not enter a tunnel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotTunnelled {
    /// It would go round: it comes from the tunnel's end, is meant for one of its ends, or is in
    /// [`DEPTH_MAX`] tunnels already.
    Loop,
    /// Its hops are used up.
    HopLimit,
    /// It does not fit. The answer to its sender, if it may have one.
    TooBig(Option<PacketRef>),
}

/// Puts a datagram into a tunnel: one hop less inside, and outside what RFC 2003, 3.1 says.
///
/// # Errors
/// [`NotTunnelled`].
pub fn enter(
    packet: &PacketRef,
    tunnel: Tunnel,
    sink: &mut impl Sink,
) -> Result<PacketRef, NotTunnelled> {
    let ends = [IpAddr::V4(tunnel.from), IpAddr::V4(tunnel.to)];
    let goes_round = ends.contains(&packet.ip.destination) || packet.ip.source == ends[0];
    if goes_round || ends[0] == ends[1] || depth(packet) >= DEPTH_MAX {
        return Err(NotTunnelled::Loop);
    }
    if packet.ip.hop_limit <= 1 {
        return Err(NotTunnelled::HopLimit);
    }
    let inside_max = tunnel.mtu_bytes.saturating_sub(tunnel.encapsulation.overhead_bytes());
    if packet.ip.dont_fragment && packet.bytes() > inside_max {
        return Err(NotTunnelled::TooBig(too_big(packet, inside_max, tunnel.from, sink)));
    }
    let inner = packet.rewrite(sink.new_id(), packet.cause, |inner| inner.ip.hop_limit -= 1);
    let (protocol, transport) = match tunnel.encapsulation {
        Encapsulation::Ip => (Protocol::IP_IN_IP, Transport::Opaque),
        Encapsulation::Udp => {
            (Protocol::UDP, Transport::Udp { source_port: PORT, destination_port: PORT })
        }
    };
    let outer = ip::Header {
        traffic_class: packet.ip.traffic_class,
        identification: packet.ip.identification,
        dont_fragment: packet.ip.dont_fragment,
        ..ip::Header::new(ends[0], ends[1], protocol)
    };
    let parent = Some(inner.id);
    let inner = sink.place(inner);
    let outer = Packet {
        id: sink.new_id(),
        parent,
        cause: Cause::Encapsulation,
        ip: outer,
        transport,
        payload: Payload::Tunnel(inner),
        segment_bytes: None,
        frame: None,
    };
    Ok(sink.place(outer))
}

/// In how many tunnels a datagram is, at most [`DEPTH_MAX`].
fn depth(packet: &PacketRef) -> u32 {
    let mut depth = 0;
    let mut at = packet.clone();
    while depth < DEPTH_MAX {
        let Payload::Tunnel(inner) = &at.payload else { break };
        let inner = inner.clone();
        (at, depth) = (inner, depth + 1);
    }
    depth
}

/// "Fragmentation needed" to the sender of a datagram (RFC 792, RFC 1191); none for an ICMP error's
/// own sake, which is not told apart from other ICMP.
fn too_big(
    packet: &Packet,
    mtu_bytes: u32,
    from: Ipv4Addr,
    sink: &mut impl Sink,
) -> Option<PacketRef> {
    let sender = post::v4(packet.ip.source).filter(|_| packet.ip.protocol != Protocol::ICMP)?;
    let whole = to_bytes(packet)?;
    let quoted = &whole[..whole.len().min(packet.ip.bytes() as usize + QUOTED_BYTES)];
    let mtu = (mtu_bytes.min(u32::from(u16::MAX)) as u16).to_be_bytes();
    let body = [&[0, 0, mtu[0], mtu[1]][..], quoted].concat();
    Some(post::icmp((from, sender), (3, 4), &body, sink))
}

/// True for a datagram that is a tunnel's, whichever end it goes to.
pub fn is_tunnel(packet: &Packet) -> bool {
    let is_udp = matches!(packet.transport, Transport::Udp { destination_port: PORT, .. });
    let begins = |payload: &Bytes| payload.starts_with(&tunnel::TUNNEL_DATA_HEADER[..1]);
    match &packet.payload {
        Payload::Tunnel(_) => packet.ip.protocol == Protocol::IP_IN_IP || is_udp,
        Payload::Bytes(payload) => {
            packet.ip.protocol == Protocol::IP_IN_IP || is_udp && begins(payload)
        }
        Payload::Virtual { .. } => false,
    }
}

/// The datagram that comes out at a tunnel's end; `None` if there is no whole one inside.
/// Congestion that was marked outside is marked inside (RFC 6040, 4.2).
pub fn leave(packet: &Packet, sink: &mut impl Sink) -> Option<PacketRef> {
    let inner = match &packet.payload {
        Payload::Tunnel(inner) => inner.clone(),
        Payload::Bytes(payload) => {
            let bytes = match packet.transport {
                Transport::Udp { .. } => tunnel::in_udp(payload),
                _ => tunnel::in_ip(payload),
            };
            let bytes = payload.slice_ref(bytes.ok()?);
            let inner = from_bytes(bytes, packet, sink)?;
            sink.place(inner)
        }
        Payload::Virtual { .. } => return None,
    };
    match (packet.ip.ecn(), inner.ip.ecn()) {
        (ip::Ecn::CongestionExperienced, ip::Ecn::Capable0 | ip::Ecn::Capable1) => {
            let marked = inner.rewrite(sink.new_id(), inner.cause, |inner| {
                inner.ip.traffic_class |= ip::Ecn::CongestionExperienced as u8;
            });
            Some(sink.place(marked))
        }
        // RFC 6040: it would hide a mark from a sender that cannot see it otherwise.
        (ip::Ecn::CongestionExperienced, ip::Ecn::NotCapable) => None,
        _ => Some(inner),
    }
}

/// The datagram in the bytes that came out of a tunnel.
fn from_bytes(bytes: Bytes, outer: &Packet, sink: &mut impl Sink) -> Option<Packet> {
    let parsed = datagram::parse(&bytes, Checksums::Trust).ok()?;
    let transport = match parsed.transport {
        datagram::Transport::Tcp(header) => Transport::Tcp(header),
        datagram::Transport::Udp(header) => Transport::Udp {
            source_port: header.source_port,
            destination_port: header.destination_port,
        },
        // An IPv4 header that a packet does not hold whole cannot be written again.
        datagram::Transport::Opaque(datagram::Reason::OtherProtocol) => Transport::Opaque,
        datagram::Transport::Opaque(_) => return None,
    };
    Some(Packet {
        id: sink.new_id(),
        parent: Some(outer.id),
        cause: Cause::Original,
        ip: parsed.ip,
        transport,
        payload: Payload::Bytes(bytes.slice(parsed.payload)),
        segment_bytes: None,
        frame: None,
    })
}

/// A datagram as it stands on the wire, tunnels and all; `None` if it does not fit its length
/// fields.
pub fn to_bytes(packet: &Packet) -> Option<Vec<u8>> {
    let payload = match (&packet.payload, &packet.transport) {
        (Payload::Tunnel(inner), Transport::Udp { .. }) => {
            [&tunnel::TUNNEL_DATA_HEADER[..], &to_bytes(inner)?].concat()
        }
        (Payload::Tunnel(inner), _) => to_bytes(inner)?,
        (payload, _) => payload.to_bytes()?.to_vec(),
    };
    let mut bytes = Vec::with_capacity(packet.bytes() as usize);
    match &packet.transport {
        Transport::Tcp(tcp) => datagram::emit_tcp(&packet.ip, tcp, &payload, &mut bytes),
        Transport::Udp { source_port, destination_port } => {
            let udp = wire::udp::Header::new(*source_port, *destination_port);
            datagram::emit_udp(&packet.ip, &udp, &payload, &mut bytes)
        }
        Transport::Opaque => datagram::emit(&packet.ip, &payload, &mut bytes),
    }
    .ok()?;
    Some(bytes)
}
