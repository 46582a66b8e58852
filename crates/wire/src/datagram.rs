//! One IP datagram, whole: the two verbs that every live driver and every capture needs.
//!
//! [`parse`] never rejects what a router should forward: a datagram that engines cannot work on is
//! [`Transport::Opaque`] with the [`Reason`]. An [`Error`] means that a host would discard it.
//! Whatever comes back as TCP or UDP from a parser that verified the checksums is written back
//! byte for byte by [`emit_tcp`] or [`emit_udp`].
//!
//! ```text
//!   bytes: | IP header | TCP or UDP header | payload | padding of the link |
//!          ^ 0                             ^ payload.start
//!                                                    ^ payload.end = length of the datagram
//! ```

use crate::checksum::{Sum, Verdict, pseudo_header};
use crate::ip::{self, Protocol};
use crate::{Error, ipv4, ipv6, tcp, udp};
use core::net::IpAddr;
use core::ops::Range;

pub use crate::checksum::Checksums;

/// A parsed datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// The IP header.
    pub ip: ip::Header,
    /// The transport header.
    pub transport: Transport,
    /// Where the payload stands in the bytes that were parsed: what follows the transport header,
    /// or the whole IP header if the transport is opaque. Its end is the length of the datagram.
    pub payload: Range<usize>,
}

/// What follows the IP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// TCP.
    Tcp(tcp::Header),
    /// UDP.
    Udp(udp::Header),
    /// Something to pass on as it is. The IP header beside it is for information: it does not hold
    /// everything that was on the wire.
    Opaque(Reason),
}

/// Why a datagram is passed on as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// A fragment of a larger datagram, the first one included.
    Fragment,
    /// An IPv4 header with options.
    IpOptions,
    /// IPv6 extension headers; the header's protocol names the first.
    ExtensionHeaders,
    /// Neither TCP nor UDP.
    OtherProtocol,
    /// The reserved flag of IPv4 is set (RFC 791, 3.1).
    ReservedFlag,
    /// IP payload after the end of the UDP datagram, as UDP options are (RFC 9868).
    UdpSurplus,
    /// A checksum of 0xffff where 0 is computed: right, but our emitter would write the other one
    /// ([`Verdict::NegativeZero`]).
    NegativeZeroChecksum,
}

/// Parses the IP datagram at the start of `bytes`, version 4 or 6.
///
/// `bytes` may be longer than the datagram, since links pad short frames; it must not be shorter.
/// [`Checksums::Trust`] leaves every checksum unread, that of IPv4 included. A TCP option list
/// that cannot be walked is an error: RFC 9293, 3.1 suggests to reset such a connection.
///
/// # Errors
/// [`Error::Truncated`] if `bytes` end before a header or an announced length does,
/// [`Error::Unsupported`] for another IP version, [`Error::Length`] if a header or total length is
/// below its minimum, [`Error::TcpOption`] and [`Error::Checksum`] as their names say.
pub fn parse(bytes: &[u8], checksums: Checksums) -> Result<Datagram, Error> {
    let version = bytes.first().ok_or(Error::Truncated { need: 1, have: 0 })? >> 4;
    match version {
        4 => parse_v4(bytes, checksums),
        6 => parse_v6(bytes, checksums),
        _ => Err(Error::Unsupported { field: "IP version", value: u32::from(version) }),
    }
}

fn parse_v4(bytes: &[u8], checksums: Checksums) -> Result<Datagram, Error> {
    let header = ipv4::Header::parse_unverified(bytes)?;
    let verdict = match checksums {
        Checksums::Verify => header.verdict(bytes),
        Checksums::Trust => Verdict::Right,
    };
    if verdict == Verdict::Wrong {
        return Err(Error::Checksum { protocol: "IPv4" });
    }
    let payload = header.payload(bytes.len())?;
    let ip = ip::Header::from(&header);
    let reason = if header.is_fragment() {
        Reason::Fragment
    } else if !header.options.as_bytes().is_empty() {
        Reason::IpOptions
    } else if header.flags.contains(ipv4::Flags::RESERVED) {
        Reason::ReservedFlag
    } else if verdict == Verdict::NegativeZero {
        Reason::NegativeZeroChecksum
    } else {
        return parse_transport(ip, bytes, payload, checksums);
    };
    Ok(Datagram { ip, transport: Transport::Opaque(reason), payload })
}

fn parse_v6(bytes: &[u8], checksums: Checksums) -> Result<Datagram, Error> {
    let header = ipv6::Header::parse(bytes)?;
    let payload = header.payload(bytes.len())?;
    let ip = ip::Header::from(&header);
    if !ipv6::is_extension(header.next_header) {
        return parse_transport(ip, bytes, payload, checksums);
    }
    let upper = ipv6::upper_layer(header.next_header, &bytes[payload.clone()])?;
    let reason = match upper.fragment {
        Some(_) => Reason::Fragment,
        None => Reason::ExtensionHeaders,
    };
    Ok(Datagram { ip, transport: Transport::Opaque(reason), payload })
}

/// Reads the transport header at the start of `payload`, which lies within `bytes`.
#[inline]
fn parse_transport(
    ip: ip::Header,
    bytes: &[u8],
    payload: Range<usize>,
    checksums: Checksums,
) -> Result<Datagram, Error> {
    let message = &bytes[payload.clone()];
    let sum = pseudo_header(&ip, message.len() as u32);
    let (transport, header_bytes) = match ip.protocol {
        Protocol::TCP => parse_tcp(message, sum, checksums)?,
        Protocol::UDP => parse_udp(message, sum, checksums)?,
        _ => (Transport::Opaque(Reason::OtherProtocol), 0),
    };
    Ok(Datagram { ip, transport, payload: payload.start + header_bytes..payload.end })
}

/// The transport, and how much of `segment` is its header.
#[inline]
fn parse_tcp(
    segment: &[u8],
    pseudo_header: Sum,
    checksums: Checksums,
) -> Result<(Transport, usize), Error> {
    let (header, header_bytes) = tcp::Header::parse(segment)?;
    let verdict = match checksums {
        Checksums::Verify => tcp::Header::verdict(segment, pseudo_header),
        Checksums::Trust => Verdict::Right,
    };
    match verdict {
        Verdict::Right => Ok((Transport::Tcp(header), header_bytes)),
        Verdict::NegativeZero => Ok((Transport::Opaque(Reason::NegativeZeroChecksum), 0)),
        Verdict::Wrong => Err(Error::Checksum { protocol: "TCP" }),
    }
}

/// The transport, and how much of `message` is its header.
#[inline]
fn parse_udp(
    message: &[u8],
    pseudo_header: Sum,
    checksums: Checksums,
) -> Result<(Transport, usize), Error> {
    let (header, length) = udp::Header::parse(message)?;
    if length < message.len() {
        return Ok((Transport::Opaque(Reason::UdpSurplus), 0));
    }
    let verify = checksums == Checksums::Verify;
    if verify && header.verdict(message, pseudo_header) == Verdict::Wrong {
        return Err(Error::Checksum { protocol: "UDP" });
    }
    Ok((Transport::Udp(header), udp::Header::BYTES))
}

/// Appends a TCP segment in an IP datagram, lengths and checksums complete. The protocol is TCP,
/// whatever `ip` says.
///
/// # Errors
/// [`Error::Length`] if the datagram would not fit its length field, as a super-packet may not;
/// [`Error::Unsupported`] if the addresses are of two families. Then nothing is appended.
pub fn emit_tcp(
    ip: &ip::Header,
    tcp: &tcp::Header,
    payload: &[u8],
    into: &mut Vec<u8>,
) -> Result<(), Error> {
    let ip = ip::Header { protocol: Protocol::TCP, ..*ip };
    let length = tcp.bytes() as usize + payload.len();
    emit_ip(&ip, length, into)?;
    tcp.emit(pseudo_header(&ip, length as u32), payload, into);
    Ok(())
}

/// Appends a UDP datagram in an IP datagram, lengths and checksums complete (the UDP checksum
/// zero if the header says [`udp::Checksum::Absent`]). The protocol is UDP, whatever `ip` says.
///
/// # Errors
/// As [`emit_tcp`].
pub fn emit_udp(
    ip: &ip::Header,
    udp: &udp::Header,
    payload: &[u8],
    into: &mut Vec<u8>,
) -> Result<(), Error> {
    let ip = ip::Header { protocol: Protocol::UDP, ..*ip };
    let length = udp::Header::BYTES + payload.len();
    // Where the IP length fits, the UDP length, which is smaller or equal, fits too.
    emit_ip(&ip, length, into)?;
    udp.emit(pseudo_header(&ip, length as u32), payload, into)
}

/// Appends any other upper-layer message, complete as it stands in `message` (ICMP, or a whole
/// datagram under IP in IP), in an IP datagram of `ip.protocol`.
///
/// # Errors
/// As [`emit_tcp`].
pub fn emit(ip: &ip::Header, message: &[u8], into: &mut Vec<u8>) -> Result<(), Error> {
    emit_ip(ip, message.len(), into)?;
    into.extend_from_slice(message);
    Ok(())
}

/// Appends the IP header of a datagram with `payload_bytes` after it.
///
/// # Errors
/// As [`emit_tcp`].
pub fn emit_ip(ip: &ip::Header, payload_bytes: usize, into: &mut Vec<u8>) -> Result<(), Error> {
    let header_bytes = ip.bytes() as usize;
    let value = match ip.source {
        IpAddr::V4(_) => header_bytes + payload_bytes,
        IpAddr::V6(_) => payload_bytes,
    };
    let length = u16::try_from(value).map_err(|_| Error::Length { field: "IP length", value })?;
    into.reserve(header_bytes + payload_bytes);
    match (ip.source, ip.destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let flags = match ip.dont_fragment {
                true => ipv4::Flags::DONT_FRAGMENT,
                false => ipv4::Flags::default(),
            };
            let header = ipv4::Header {
                traffic_class: ip.traffic_class,
                total_length: length,
                identification: ip.identification,
                flags,
                fragment_offset: 0,
                hop_limit: ip.hop_limit,
                protocol: ip.protocol,
                source,
                destination,
                options: ipv4::Options::default(),
            };
            header.emit(into);
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            let header = ipv6::Header {
                traffic_class: ip.traffic_class,
                flow_label: ip.flow_label,
                payload_length: length,
                next_header: ip.protocol,
                hop_limit: ip.hop_limit,
                source,
                destination,
            };
            header.emit(into);
        }
        (_, IpAddr::V4(_)) => {
            return Err(Error::Unsupported { field: "IP version of the destination", value: 4 });
        }
        (_, IpAddr::V6(_)) => {
            return Err(Error::Unsupported { field: "IP version of the destination", value: 6 });
        }
    }
    Ok(())
}
