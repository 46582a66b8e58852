//! From a captured packet to a TCP segment, or to the class of traffic that it is.
//!
//! Only headers are read: a capture may keep no more of a packet. Lengths come from the IP header,
//! or, where a host captured a super-packet that has none, from the capture. Checksums are not
//! looked at: a host's own packets are captured before its network card computes them.

use crate::capture::{Captured, LinkType};
use sansio::Instant;
use serde::Serialize;
use wire::checksum::Checksums;
use wire::ethernet::{self, EtherType};
use wire::ip::{self, Protocol};
use wire::{ipv4, ipv6, tcp};

/// What a packet is, as far as help for it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// TCP, both directions seen, readable: it can be helped.
    Tcp,
    /// TCP of a connection of which one direction was seen.
    TcpOneSided,
    /// A fragment of a TCP datagram.
    TcpFragment,
    /// TCP under IP options or extension headers, which an engine passes on as it is.
    TcpUnderOptions,
    /// TCP of which the capture does not hold the header, or a header that is none.
    TcpUnreadable,
    /// UDP, port 443: QUIC.
    Quic,
    /// Other UDP.
    Udp,
    /// IPsec ESP, or WireGuard's like: encrypted as a whole.
    Esp,
    /// Datagrams inside others: IP in IP, GRE.
    Tunnel,
    /// Other IP.
    OtherIp,
    /// No IP: ARP and the like, or what cannot be read.
    NotIp,
    /// The same packet once more: a host that forwards it saw it on two interfaces.
    SeenTwice,
}

impl Class {
    /// What it is, in words.
    pub fn name(self) -> &'static str {
        match self {
            Class::Tcp => "TCP, both directions seen",
            Class::TcpOneSided => "TCP, one direction seen",
            Class::TcpFragment => "TCP, fragments",
            Class::TcpUnderOptions => "TCP under IP options",
            Class::TcpUnreadable => "TCP, header not captured",
            Class::Quic => "QUIC (UDP 443)",
            Class::Udp => "other UDP",
            Class::Esp => "IPsec",
            Class::Tunnel => "tunnels",
            Class::OtherIp => "other IP",
            Class::NotIp => "not IP",
            Class::SeenTwice => "seen on a second interface",
        }
    }
}

/// A TCP segment as it was seen.
#[derive(Clone, Copy, Debug)]
pub struct Segment {
    /// When.
    pub at: Instant,
    /// On which interface.
    pub interface: u32,
    /// The IP header.
    pub ip: ip::Header,
    /// The TCP header.
    pub tcp: tcp::Header,
    /// Bytes of payload, captured or not; more than a network carries for a super-packet.
    pub payload_bytes: u32,
}

impl Segment {
    /// The sequence numbers it takes.
    pub fn range(&self) -> (tcp::Seq, tcp::Seq) {
        (self.tcp.seq, self.tcp.seq + self.tcp.sequence_length(self.payload_bytes))
    }
}

/// A packet, as far as it could be read.
#[derive(Clone, Copy, Debug)]
pub enum Decoded {
    /// A TCP segment.
    Tcp(Segment),
    /// Anything else.
    Other(Class),
}

/// Reads a packet; second, its bytes from the IP header on, or all where there is none.
pub fn decode(packet: &Captured<'_>) -> (Decoded, u32) {
    let Some(network_at) = network(packet) else {
        return (Decoded::Other(Class::NotIp), packet.wire_bytes);
    };
    let bytes = packet.bytes.get(network_at..).unwrap_or(&[]);
    let wire_bytes = packet.wire_bytes.saturating_sub(network_at as u32);
    let decoded = match bytes.first().map(|first| first >> 4) {
        Some(4) => datagram_v4(packet, bytes, wire_bytes),
        Some(6) => datagram_v6(packet, bytes, wire_bytes),
        _ => Decoded::Other(Class::NotIp),
    };
    (decoded, wire_bytes)
}

/// Where the IP header begins, if there is one (the registry of link types).
fn network(packet: &Captured<'_>) -> Option<usize> {
    const NULL: LinkType = LinkType(0);
    const ETHERNET: LinkType = LinkType(1);
    /// LINKTYPE_RAW, and DLT_RAW as some systems write it.
    const RAW: [LinkType; 3] = [LinkType(101), LinkType(12), LinkType(14)];
    const LOOP: LinkType = LinkType(108);
    const COOKED_V1: LinkType = LinkType(113);
    const IPV4: LinkType = LinkType(228);
    const IPV6: LinkType = LinkType(229);
    const COOKED_V2: LinkType = LinkType(276);
    let bytes = packet.bytes;
    let protocol = |at: usize| bytes.get(at..at + 2).map(|it| u16::from_be_bytes([it[0], it[1]]));
    let cooked = |at, length| after_tags(bytes, EtherType(protocol(at)?), length);
    match packet.link {
        NULL | LOOP => Some(4),
        ETHERNET => {
            let (header, length) = ethernet::Header::parse(bytes).ok()?;
            after_tags(bytes, header.ether_type, length)
        }
        COOKED_V1 => cooked(14, 16),
        COOKED_V2 => cooked(0, 20),
        link if RAW.contains(&link) || link == IPV4 || link == IPV6 => Some(0),
        _ => None,
    }
}

/// Steps over VLAN tags (those that the Ethernet header left, and those of cooked captures) and a
/// PPPoE session header (RFC 2516).
fn after_tags(bytes: &[u8], ether_type: EtherType, mut at: usize) -> Option<usize> {
    const PPPOE_SESSION: EtherType = EtherType(0x8864);
    const TAGS_MAX: usize = 4;
    let mut ether_type = ether_type;
    for _ in 0..TAGS_MAX {
        match ether_type {
            EtherType::IPV4 | EtherType::IPV6 => return Some(at),
            EtherType::VLAN | EtherType::SERVICE_VLAN => {
                let next = bytes.get(at + 2..at + 4)?;
                ether_type = EtherType(u16::from_be_bytes([next[0], next[1]]));
                at += 4;
            }
            PPPOE_SESSION => {
                ether_type = match bytes.get(at + 6..at + 8)? {
                    [0x00, 0x21] => EtherType::IPV4,
                    [0x00, 0x57] => EtherType::IPV6,
                    _ => return None,
                };
                at += 8;
            }
            _ => return None,
        }
    }
    None
}

fn datagram_v4(packet: &Captured<'_>, bytes: &[u8], wire_bytes: u32) -> Decoded {
    let Ok(header) = ipv4::Header::parse(bytes, Checksums::Trust) else {
        return Decoded::Other(Class::NotIp);
    };
    let header_bytes = (ipv4::Header::BASE_BYTES + header.options.as_bytes().len()) as u32;
    // A super-packet longer than the field can say has zero there.
    let total = match u32::from(header.total_length) {
        0 => wire_bytes,
        total => total,
    };
    let upper = Upper {
        protocol: header.protocol,
        is_fragment: header.is_fragment(),
        has_options: header_bytes > ip::Header::V4_BYTES,
        bytes: bytes.get(header_bytes as usize..).unwrap_or(&[]),
        wire_bytes: total.saturating_sub(header_bytes),
    };
    upper.read(packet, ip::Header::from(&header))
}

fn datagram_v6(packet: &Captured<'_>, bytes: &[u8], wire_bytes: u32) -> Decoded {
    let Ok(header) = ipv6::Header::parse(bytes) else { return Decoded::Other(Class::NotIp) };
    let rest = &bytes[ipv6::Header::BYTES..];
    let total = match u32::from(header.payload_length) {
        0 => wire_bytes.saturating_sub(ipv6::Header::BYTES as u32),
        total => total,
    };
    let Ok(walked) = ipv6::upper_layer(header.next_header, rest) else {
        return Decoded::Other(Class::OtherIp);
    };
    let upper = Upper {
        protocol: walked.protocol,
        is_fragment: walked.fragment.is_some(),
        has_options: walked.at > 0,
        bytes: rest.get(walked.at..).unwrap_or(&[]),
        wire_bytes: total.saturating_sub(walked.at as u32),
    };
    upper.read(packet, ip::Header::from(&header))
}

/// What follows the IP header.
struct Upper<'a> {
    protocol: Protocol,
    is_fragment: bool,
    has_options: bool,
    /// Captured.
    bytes: &'a [u8],
    wire_bytes: u32,
}

impl Upper<'_> {
    fn read(&self, packet: &Captured<'_>, ip: ip::Header) -> Decoded {
        const GRE: Protocol = Protocol(47);
        const AUTHENTICATION: Protocol = Protocol(51);
        const IPV6_IN_IP: Protocol = Protocol(41);
        let class = match self.protocol {
            Protocol::TCP if self.is_fragment => Class::TcpFragment,
            Protocol::TCP if self.has_options => Class::TcpUnderOptions,
            Protocol::TCP => match tcp::Header::parse(self.bytes) {
                Ok((tcp, header_bytes)) => {
                    return Decoded::Tcp(Segment {
                        at: packet.at,
                        interface: packet.interface,
                        ip,
                        tcp,
                        payload_bytes: self.wire_bytes.saturating_sub(header_bytes as u32),
                    });
                }
                Err(_) => Class::TcpUnreadable,
            },
            Protocol::UDP => self.udp(),
            Protocol::ESP | AUTHENTICATION => Class::Esp,
            Protocol::IP_IN_IP | IPV6_IN_IP | GRE => Class::Tunnel,
            _ => Class::OtherIp,
        };
        Decoded::Other(class)
    }

    fn udp(&self) -> Class {
        const HTTPS: [u8; 2] = 443_u16.to_be_bytes();
        /// IPsec through address translation (RFC 3948).
        const ESP_IN_UDP: [u8; 2] = 4500_u16.to_be_bytes();
        let Some(ports) = self.bytes.first_chunk::<4>().filter(|_| !self.is_fragment) else {
            return Class::Udp;
        };
        let has = |port: [u8; 2]| ports[..2] == port || ports[2..] == port;
        match () {
            () if has(HTTPS) => Class::Quic,
            () if has(ESP_IN_UDP) => Class::Esp,
            () => Class::Udp,
        }
    }
}
