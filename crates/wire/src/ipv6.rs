//! The IPv6 header (RFC 8200) and the walk along its extension headers to the upper layer.
//!
//! Extension headers are stepped over, not interpreted: a datagram that has some passes through
//! the engines untouched.

use crate::ip::{self, Protocol};
use crate::{Error, bytes::be16};
use core::net::{IpAddr, Ipv6Addr};
use core::ops::Range;

/// The fixed IPv6 header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// DSCP (upper six bits) and ECN (lower two).
    pub traffic_class: u8,
    /// Flow label, 20 bits (RFC 6437).
    pub flow_label: u32,
    /// Length of all that follows this header, in bytes.
    pub payload_length: u16,
    /// What follows this header: an upper layer or an extension header.
    pub next_header: Protocol,
    /// Hop limit.
    pub hop_limit: u8,
    /// Source address.
    pub source: Ipv6Addr,
    /// Destination address.
    pub destination: Ipv6Addr,
}

impl Header {
    /// Length on the wire, in bytes.
    pub const BYTES: usize = 40;

    /// Reads the header at the start of `bytes`. What follows may be cut short, as in a datagram
    /// that an ICMP error quotes; [`Header::payload`] is where that matters.
    ///
    /// # Errors
    /// [`Error::Truncated`] if the header is cut, [`Error::Unsupported`] for another version.
    #[inline]
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        let fixed = bytes
            .first_chunk::<{ Self::BYTES }>()
            .ok_or(Error::Truncated { need: Self::BYTES, have: bytes.len() })?;
        let [first, second, third, fourth, ..] = *fixed;
        if first >> 4 != 6 {
            return Err(Error::Unsupported { field: "IP version", value: u32::from(first >> 4) });
        }
        let mut source = [0; 16];
        let mut destination = [0; 16];
        source.copy_from_slice(&fixed[8..24]);
        destination.copy_from_slice(&fixed[24..40]);
        Ok(Header {
            traffic_class: first << 4 | second >> 4,
            flow_label: u32::from_be_bytes([0, second & 0xf, third, fourth]),
            payload_length: be16(fixed, 4),
            next_header: Protocol(fixed[6]),
            hop_limit: fixed[7],
            source: Ipv6Addr::from(source),
            destination: Ipv6Addr::from(destination),
        })
    }

    /// Where the payload, extension headers included, stands in a buffer that begins with this
    /// header and holds `have` bytes. Bytes after it are the link's padding. A payload length of
    /// zero means none: jumbograms (RFC 2675) are not supported.
    ///
    /// # Errors
    /// [`Error::Truncated`] if the buffer ends before the payload does.
    #[inline]
    pub fn payload(&self, have: usize) -> Result<Range<usize>, Error> {
        let need = Self::BYTES + usize::from(self.payload_length);
        if need > have {
            return Err(Error::Truncated { need, have });
        }
        Ok(Self::BYTES..need)
    }

    /// Appends the header.
    pub fn emit(&self, into: &mut Vec<u8>) {
        let first =
            6 << 28 | u32::from(self.traffic_class) << 20 | self.flow_label & ip::FLOW_LABEL_MAX;
        let mut fixed = [0; Self::BYTES];
        fixed[..4].copy_from_slice(&first.to_be_bytes());
        fixed[4..6].copy_from_slice(&self.payload_length.to_be_bytes());
        fixed[6] = self.next_header.0;
        fixed[7] = self.hop_limit;
        fixed[8..24].copy_from_slice(&self.source.octets());
        fixed[24..].copy_from_slice(&self.destination.octets());
        into.extend_from_slice(&fixed);
    }
}

impl From<&Header> for ip::Header {
    #[inline]
    fn from(header: &Header) -> ip::Header {
        ip::Header {
            source: IpAddr::V6(header.source),
            destination: IpAddr::V6(header.destination),
            protocol: header.next_header,
            hop_limit: header.hop_limit,
            traffic_class: header.traffic_class,
            identification: 0,
            dont_fragment: true,
            flow_label: header.flow_label,
        }
    }
}

/// Extension headers (IANA "IPv6 Extension Header Types") that have a next header of their own.
mod extension {
    use crate::ip::Protocol;

    pub(super) const HOP_BY_HOP: Protocol = Protocol(0);
    pub(super) const ROUTING: Protocol = Protocol(43);
    pub(super) const FRAGMENT: Protocol = Protocol(44);
    pub(super) const AUTHENTICATION: Protocol = Protocol(51);
    pub(super) const DESTINATION: Protocol = Protocol(60);
    pub(super) const MOBILITY: Protocol = Protocol(135);
    pub(super) const HOST_IDENTITY: Protocol = Protocol(139);
    pub(super) const SHIM6: Protocol = Protocol(140);
}

/// True if `protocol` is an extension header with a next header of its own. ESP (RFC 4303) is not:
/// what follows it is encrypted.
#[inline]
pub fn is_extension(protocol: Protocol) -> bool {
    matches!(
        protocol,
        extension::HOP_BY_HOP
            | extension::ROUTING
            | extension::FRAGMENT
            | extension::AUTHENTICATION
            | extension::DESTINATION
            | extension::MOBILITY
            | extension::HOST_IDENTITY
            | extension::SHIM6
    )
}

/// The fragment header (RFC 8200, 4.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// Where this fragment begins in the fragmentable part, in units of eight bytes, 0 to 8191.
    pub offset: u16,
    /// Whether this is the last fragment.
    pub position: Position,
    /// Identification, common to the fragments of one datagram.
    pub identification: u32,
}

/// Whether more fragments follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    /// The last fragment, or an atomic one (RFC 6946).
    Last,
    /// More follow.
    MoreFollow,
}

/// Where the extension headers end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UpperLayer {
    /// What stands there: an upper-layer protocol, or ESP, or "no next header" (59).
    pub protocol: Protocol,
    /// Where it begins in the payload: the extension headers are the bytes before it.
    pub at: usize,
    /// The fragment header, if there is one. In any fragment but the first, what stands at
    /// [`UpperLayer::at`] is the middle of a message.
    pub fragment: Option<Fragment>,
}

/// Walks the extension headers at the start of `payload`, the first of which is `next_header`.
/// Ends at a fragment header whose offset is not zero, since no further header follows it.
///
/// # Errors
/// [`Error::Truncated`] if an extension header runs past the payload.
pub fn upper_layer(next_header: Protocol, payload: &[u8]) -> Result<UpperLayer, Error> {
    let mut upper = UpperLayer { protocol: next_header, at: 0, fragment: None };
    while is_extension(upper.protocol) {
        let have = payload.len();
        let header = &payload[upper.at..];
        let cut = Error::Truncated { need: upper.at + 8, have };
        let (head, _) = header.split_first_chunk::<8>().ok_or(cut)?;
        let length = match upper.protocol {
            extension::FRAGMENT => 8,
            // Counted in words of four bytes, less two (RFC 4302, 2.2).
            extension::AUTHENTICATION => (usize::from(head[1]) + 2) * 4,
            // Counted in units of eight bytes, less the first (RFC 8200, 4).
            _ => (usize::from(head[1]) + 1) * 8,
        };
        if header.len() < length {
            return Err(Error::Truncated { need: upper.at + length, have });
        }
        let fragment = (upper.protocol == extension::FRAGMENT).then(|| parse_fragment(head));
        upper.protocol = Protocol(head[0]);
        upper.at += length;
        upper.fragment = fragment.or(upper.fragment);
        if fragment.is_some_and(|fragment| fragment.offset != 0) {
            break;
        }
    }
    Ok(upper)
}

fn parse_fragment(header: &[u8; 8]) -> Fragment {
    let place = be16(header, 2);
    Fragment {
        offset: place >> 3,
        position: if place & 1 == 0 { Position::Last } else { Position::MoreFollow },
        identification: u32::from_be_bytes([header[4], header[5], header[6], header[7]]),
    }
}
