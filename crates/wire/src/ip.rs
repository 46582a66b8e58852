//! What an engine needs to know of an IP header, whichever the version.
//!
//! The full headers, with IPv4 options and IPv6 extension headers, are [`crate::ipv4`] and
//! [`crate::ipv6`]; a datagram that has those passes through the engines untouched.

use core::net::IpAddr;

/// The upper-layer protocol number (IANA "Protocol Numbers").
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Protocol(pub u8);

impl Protocol {
    /// ICMP, RFC 792.
    pub const ICMP: Protocol = Protocol(1);
    /// IP in IP, RFC 2003.
    pub const IP_IN_IP: Protocol = Protocol(4);
    /// TCP, RFC 9293.
    pub const TCP: Protocol = Protocol(6);
    /// UDP, RFC 768.
    pub const UDP: Protocol = Protocol(17);
    /// IPsec ESP, RFC 4303.
    pub const ESP: Protocol = Protocol(50);
    /// ICMPv6, RFC 4443.
    pub const ICMPV6: Protocol = Protocol(58);
}

/// The ECN codepoint, RFC 3168 section 5.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Ecn {
    /// The transport does not speak ECN.
    #[default]
    NotCapable = 0b00,
    /// ECT(1).
    Capable1 = 0b01,
    /// ECT(0).
    Capable0 = 0b10,
    /// Congestion experienced.
    CongestionExperienced = 0b11,
}

/// The fields of an IPv4 or IPv6 header that engines read and that a new datagram needs.
/// The version follows from the addresses, which are of one family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Source address.
    pub source: IpAddr,
    /// Destination address, of the same family.
    pub destination: IpAddr,
    /// Upper-layer protocol.
    pub protocol: Protocol,
    /// Time to live or hop limit.
    pub hop_limit: u8,
    /// DSCP (upper six bits) and ECN (lower two).
    pub traffic_class: u8,
    /// IPv4 identification; 0 for IPv6.
    pub identification: u16,
    /// IPv4 "don't fragment"; true for IPv6.
    pub dont_fragment: bool,
    /// IPv6 flow label, 0 to [`FLOW_LABEL_MAX`]; 0 for IPv4. A packet sent again keeps it, since
    /// routers choose among equal paths by it (RFC 6438).
    pub flow_label: u32,
}

/// The largest flow label: 20 bits (RFC 6437).
pub const FLOW_LABEL_MAX: u32 = 0xf_ffff;

/// The version of the Internet Protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// IPv4, RFC 791.
    V4,
    /// IPv6, RFC 8200.
    V6,
}

impl Header {
    /// Length of the IPv4 header without options, in bytes.
    pub const V4_BYTES: u32 = 20;
    /// Length of the IPv6 header without extension headers, in bytes.
    pub const V6_BYTES: u32 = 40;

    /// A header as a host of today sends it: hop limit 64, no fragmentation, no marks.
    pub fn new(source: IpAddr, destination: IpAddr, protocol: Protocol) -> Self {
        debug_assert_eq!(source.is_ipv4(), destination.is_ipv4(), "addresses of one family");
        Header {
            source,
            destination,
            protocol,
            hop_limit: 64,
            traffic_class: 0,
            identification: 0,
            dont_fragment: true,
            flow_label: 0,
        }
    }

    /// The version, which follows from the addresses.
    #[inline]
    pub fn version(&self) -> Version {
        if self.source.is_ipv4() { Version::V4 } else { Version::V6 }
    }

    /// The ECN codepoint.
    pub fn ecn(&self) -> Ecn {
        match self.traffic_class & 0b11 {
            0b00 => Ecn::NotCapable,
            0b01 => Ecn::Capable1,
            0b10 => Ecn::Capable0,
            _ => Ecn::CongestionExperienced,
        }
    }

    /// Length of this header on the wire, in bytes.
    pub fn bytes(&self) -> u32 {
        if self.source.is_ipv4() { Self::V4_BYTES } else { Self::V6_BYTES }
    }
}
