//! ICMP (RFC 792) and ICMPv6 (RFC 4443): messages as bytes, with a typed view of the few that
//! agents read.
//!
//! A [`Message`] keeps what follows the checksum as bytes, so every type survives; [`View`] reads
//! echoes, and the errors that quote the datagram they are about ([`Quoted`]).

use crate::checksum::{Checksums, Sum, Verdict, pseudo_header};
use crate::ip::{self, Protocol, Version};
use crate::tcp::Seq;
use crate::{Error, bytes::be16, bytes::be32, ipv4, ipv6};

/// An ICMP message of either version. The checksum is computed on emission and checked on parsing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// Which version's numbers the type and code are.
    pub version: Version,
    /// The type field.
    pub kind: u8,
    /// The code field.
    pub code: u8,
    /// All that follows the checksum.
    pub body: &'a [u8],
}

impl<'a> Message<'a> {
    /// Length of type, code and checksum, in bytes.
    pub const HEADER_BYTES: usize = 4;

    /// Reads the message that is the whole payload of the datagram under `ip`. A checksum of
    /// 0xffff where 0 is computed is accepted ([`Verdict::NegativeZero`]), and emitted as 0.
    ///
    /// # Errors
    /// [`Error::Truncated`] if the header is cut, [`Error::Checksum`] under [`Checksums::Verify`].
    pub fn parse(ip: &ip::Header, bytes: &'a [u8], checksums: Checksums) -> Result<Self, Error> {
        let (header, body) = bytes
            .split_first_chunk::<{ Message::HEADER_BYTES }>()
            .ok_or(Error::Truncated { need: Self::HEADER_BYTES, have: bytes.len() })?;
        let [kind, code, ..] = *header;
        let message = Message { version: ip.version(), kind, code, body };
        let verdict = message.sum(ip).verdict(be16(header, 2));
        if checksums == Checksums::Verify && verdict == Verdict::Wrong {
            return Err(Error::Checksum { protocol: "ICMP" });
        }
        Ok(message)
    }

    /// Appends the message for a datagram under `ip`, which IPv6 includes in the checksum.
    pub fn emit(&self, ip: &ip::Header, into: &mut Vec<u8>) {
        into.extend_from_slice(&[self.kind, self.code]);
        into.extend_from_slice(&self.sum(ip).checksum().to_be_bytes());
        into.extend_from_slice(self.body);
    }

    /// The sum of everything but the checksum (RFC 792; RFC 4443, 2.3).
    fn sum(&self, ip: &ip::Header) -> Sum {
        let start = match self.version {
            Version::V4 => Sum::default(),
            Version::V6 => {
                let length = (Self::HEADER_BYTES + self.body.len()) as u32;
                pseudo_header(&ip::Header { protocol: Protocol::ICMPV6, ..*ip }, length)
            }
        };
        start.add_bytes(&[self.kind, self.code]).add_bytes(self.body)
    }

    /// The message read by its type; [`View::Other`] too if it is too short for its type.
    pub fn view(&self) -> View<'a> {
        let Some((word, data)) = self.body.split_first_chunk::<4>() else {
            return View::Other;
        };
        let echo = Echo { identifier: be16(word, 0), sequence: be16(word, 2), data };
        match (self.version, self.kind, self.code) {
            (Version::V4, 8, _) | (Version::V6, 128, _) => View::EchoRequest(echo),
            (Version::V4, 0, _) | (Version::V6, 129, _) => View::EchoReply(echo),
            // RFC 1191, section 4: the next hop's MTU, or 0 from a router older than that.
            (Version::V4, 3, 4) => View::TooBig { mtu: u32::from(be16(word, 2)), quoted: data },
            (Version::V6, 2, _) => View::TooBig { mtu: be32(word, 0), quoted: data },
            (Version::V4, 3, code) | (Version::V6, 1, code) => {
                View::Unreachable { code, quoted: data }
            }
            (Version::V4, 11, code) | (Version::V6, 3, code) => {
                View::TimeExceeded { code, quoted: data }
            }
            _ => View::Other,
        }
    }
}

/// The messages that agents read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View<'a> {
    /// Echo request.
    EchoRequest(Echo<'a>),
    /// Echo reply.
    EchoReply(Echo<'a>),
    /// Destination unreachable, except for "fragmentation needed".
    Unreachable {
        /// Why, in the numbers of the message's version.
        code: u8,
        /// The start of the datagram; see [`Quoted::parse`].
        quoted: &'a [u8],
    },
    /// Packet too big (RFC 4443), or destination unreachable with "fragmentation needed"
    /// (RFC 792, RFC 1191).
    TooBig {
        /// MTU of the next hop in bytes; 0 if the router does not say.
        mtu: u32,
        /// The start of the datagram; see [`Quoted::parse`].
        quoted: &'a [u8],
    },
    /// Time exceeded.
    TimeExceeded {
        /// 0 in transit, 1 in reassembly.
        code: u8,
        /// The start of the datagram; see [`Quoted::parse`].
        quoted: &'a [u8],
    },
    /// Anything else.
    Other,
}

/// An echo request or reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Echo<'a> {
    /// Identifier.
    pub identifier: u16,
    /// Sequence number.
    pub sequence: u16,
    /// Data, to be returned.
    pub data: &'a [u8],
}

/// The datagram an ICMP error is about, as far as the error quotes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quoted<'a> {
    /// Its IP header; the protocol is the upper layer's.
    pub ip: ip::Header,
    /// The start of its upper-layer message, at least 8 bytes of it under RFC 792; empty for a
    /// fragment other than the first.
    pub transport: &'a [u8],
}

impl<'a> Quoted<'a> {
    /// Reads what an error quotes. Checksums are not looked at: routers have changed the header.
    ///
    /// # Errors
    /// As the headers' own parsers, if the IP headers are cut or malformed.
    pub fn parse(quoted: &'a [u8]) -> Result<Self, Error> {
        let version = quoted.first().ok_or(Error::Truncated { need: 1, have: 0 })? >> 4;
        if version == 6 {
            return Self::parse_v6(quoted);
        }
        let header = ipv4::Header::parse(quoted, Checksums::Trust)?;
        let whole = header.payload(usize::from(u16::MAX))?;
        let transport = match header.fragment_offset {
            0 => &quoted[whole.start..whole.end.min(quoted.len())],
            _ => &[],
        };
        Ok(Quoted { ip: ip::Header::from(&header), transport })
    }

    fn parse_v6(quoted: &'a [u8]) -> Result<Self, Error> {
        let header = ipv6::Header::parse(quoted)?;
        let end = quoted.len().min(ipv6::Header::BYTES + usize::from(header.payload_length));
        let payload = &quoted[ipv6::Header::BYTES..end];
        let upper = ipv6::upper_layer(header.next_header, payload)?;
        let transport = match upper.fragment {
            Some(fragment) if fragment.offset != 0 => &[],
            _ => &payload[upper.at..],
        };
        let ip = ip::Header { protocol: upper.protocol, ..ip::Header::from(&header) };
        Ok(Quoted { ip, transport })
    }

    /// Source and destination port, if the datagram is TCP or UDP and they are quoted.
    pub fn ports(&self) -> Option<(u16, u16)> {
        let has_ports = matches!(self.ip.protocol, Protocol::TCP | Protocol::UDP);
        let ports = self.transport.first_chunk::<4>().filter(|_| has_ports)?;
        Some((be16(ports, 0), be16(ports, 2)))
    }

    /// The sequence number, if the datagram is TCP and it is quoted.
    pub fn seq(&self) -> Option<Seq> {
        let start = self.transport.first_chunk::<8>();
        start.filter(|_| self.ip.protocol == Protocol::TCP).map(|start| Seq(be32(start, 4)))
    }
}
