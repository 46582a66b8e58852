//! The IPv4 header (RFC 791), with options and fragment fields kept byte for byte.
//!
//! Options are not interpreted: a datagram that has some passes through the engines untouched.

use crate::checksum::{Checksums, Sum, Verdict};
use crate::ip::{self, Protocol};
use crate::{Error, bytes::be16};
use core::net::{IpAddr, Ipv4Addr};
use core::ops::Range;

/// The option bytes of a header: at most 40, a multiple of four, padding included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options<'a>(&'a [u8]);

impl<'a> Options<'a> {
    /// Room for options: a header of 15 words less the 20 bytes of the fixed part.
    pub const BYTES_MAX: usize = 40;

    /// Takes option bytes as they are.
    ///
    /// # Errors
    /// [`Error::Length`] if there are more than 40 or no multiple of four.
    pub fn new(bytes: &'a [u8]) -> Result<Self, Error> {
        if bytes.len() > Self::BYTES_MAX || !bytes.len().is_multiple_of(4) {
            return Err(Error::Length { field: "IPv4 options", value: bytes.len() });
        }
        Ok(Options(bytes))
    }

    /// The option bytes.
    #[inline]
    pub fn as_bytes(self) -> &'a [u8] {
        self.0
    }
}

/// The flags beside the fragment offset (RFC 791, 3.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(u8);

impl Flags {
    /// Reserved, zero in every header that follows the RFC.
    pub const RESERVED: Flags = Flags(0b100);
    /// Don't fragment.
    pub const DONT_FRAGMENT: Flags = Flags(0b010);
    /// More fragments follow.
    pub const MORE_FRAGMENTS: Flags = Flags(0b001);

    /// True if all bits of `other` are set.
    #[inline]
    pub const fn contains(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }

    /// Both sets of bits.
    #[inline]
    pub const fn with(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }
}

/// An IPv4 header. The checksum is computed on emission and checked on parsing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header<'a> {
    /// DSCP (upper six bits) and ECN (lower two).
    pub traffic_class: u8,
    /// Length of the datagram with this header, in bytes.
    pub total_length: u16,
    /// Identification, common to the fragments of one datagram.
    pub identification: u16,
    /// Flags.
    pub flags: Flags,
    /// Where this fragment's payload begins in the whole one, in units of eight bytes, 0 to 8191.
    pub fragment_offset: u16,
    /// Time to live.
    pub hop_limit: u8,
    /// Upper-layer protocol.
    pub protocol: Protocol,
    /// Source address.
    pub source: Ipv4Addr,
    /// Destination address.
    pub destination: Ipv4Addr,
    /// Options.
    pub options: Options<'a>,
}

impl<'a> Header<'a> {
    /// Length without options, in bytes.
    pub const BASE_BYTES: usize = 20;

    /// Reads the header at the start of `bytes`. What follows may be cut short, as in a datagram
    /// that an ICMP error quotes; [`Header::payload`] is where that matters.
    ///
    /// # Errors
    /// [`Error::Truncated`] if the header is cut, [`Error::Unsupported`] for another version,
    /// [`Error::Length`] if the header length is below five words, [`Error::Checksum`] under
    /// [`Checksums::Verify`].
    pub fn parse(bytes: &'a [u8], checksums: Checksums) -> Result<Self, Error> {
        let header = Self::parse_unverified(bytes)?;
        if checksums == Checksums::Verify && header.verdict(bytes) == Verdict::Wrong {
            return Err(Error::Checksum { protocol: "IPv4" });
        }
        Ok(header)
    }

    /// [`Header::parse`] without a look at the checksum.
    #[inline]
    pub(crate) fn parse_unverified(bytes: &'a [u8]) -> Result<Self, Error> {
        let (fixed, rest) = bytes
            .split_first_chunk::<{ Header::BASE_BYTES }>()
            .ok_or(Error::Truncated { need: Self::BASE_BYTES, have: bytes.len() })?;
        let (version, words) = (fixed[0] >> 4, fixed[0] & 0xf);
        if version != 4 {
            return Err(Error::Unsupported { field: "IP version", value: u32::from(version) });
        }
        let length = usize::from(words) * 4;
        let options_length = length
            .checked_sub(Self::BASE_BYTES)
            .ok_or(Error::Length { field: "IPv4 header length", value: length })?;
        let options = rest
            .get(..options_length)
            .ok_or(Error::Truncated { need: length, have: bytes.len() })?;
        let fragment = be16(fixed, 6);
        Ok(Header {
            traffic_class: fixed[1],
            total_length: be16(fixed, 2),
            identification: be16(fixed, 4),
            flags: Flags((fragment >> 13) as u8),
            fragment_offset: fragment & 0x1fff,
            hop_limit: fixed[8],
            protocol: Protocol(fixed[9]),
            source: Ipv4Addr::new(fixed[12], fixed[13], fixed[14], fixed[15]),
            destination: Ipv4Addr::new(fixed[16], fixed[17], fixed[18], fixed[19]),
            options: Options(options),
        })
    }

    /// What the checksum in `bytes`, from which this header was parsed, says.
    #[inline]
    pub(crate) fn verdict(&self, bytes: &[u8]) -> Verdict {
        let sum = Sum::default().add_bytes(&bytes[..10]).add_bytes(&bytes[12..self.bytes()]);
        sum.verdict(be16(bytes, 10))
    }

    /// Length on the wire with options, in bytes.
    #[inline]
    pub fn bytes(&self) -> usize {
        Self::BASE_BYTES + self.options.0.len()
    }

    /// True for every fragment of a larger datagram, the first and the last included.
    #[inline]
    pub fn is_fragment(&self) -> bool {
        self.fragment_offset != 0 || self.flags.contains(Flags::MORE_FRAGMENTS)
    }

    /// Where the payload stands in a buffer that begins with this header and holds `have` bytes.
    /// Bytes after the total length are the link's padding and do not belong to the datagram.
    ///
    /// # Errors
    /// [`Error::Truncated`] if the buffer ends before the total length,
    /// [`Error::Length`] if the total length is below the header's.
    #[inline]
    pub fn payload(&self, have: usize) -> Result<Range<usize>, Error> {
        let total = usize::from(self.total_length);
        if total < self.bytes() {
            return Err(Error::Length { field: "IPv4 total length", value: total });
        }
        if total > have {
            return Err(Error::Truncated { need: total, have });
        }
        Ok(self.bytes()..total)
    }

    /// Appends the header, its checksum complete.
    pub fn emit(&self, into: &mut Vec<u8>) {
        let start = into.len();
        let mut fixed = [0; Self::BASE_BYTES];
        let fragment = u16::from(self.flags.0) << 13 | self.fragment_offset & 0x1fff;
        fixed[0] = 0x40 | (self.bytes() / 4) as u8;
        fixed[1] = self.traffic_class;
        fixed[2..4].copy_from_slice(&self.total_length.to_be_bytes());
        fixed[4..6].copy_from_slice(&self.identification.to_be_bytes());
        fixed[6..8].copy_from_slice(&fragment.to_be_bytes());
        fixed[8] = self.hop_limit;
        fixed[9] = self.protocol.0;
        fixed[12..16].copy_from_slice(&self.source.octets());
        fixed[16..20].copy_from_slice(&self.destination.octets());
        into.extend_from_slice(&fixed);
        into.extend_from_slice(self.options.0);
        let checksum = Sum::default().add_bytes(&into[start..]).checksum();
        into[start + 10..start + 12].copy_from_slice(&checksum.to_be_bytes());
    }
}

impl From<&Header<'_>> for ip::Header {
    #[inline]
    fn from(header: &Header<'_>) -> ip::Header {
        ip::Header {
            source: IpAddr::V4(header.source),
            destination: IpAddr::V4(header.destination),
            protocol: header.protocol,
            hop_limit: header.hop_limit,
            traffic_class: header.traffic_class,
            identification: header.identification,
            dont_fragment: header.flags.contains(Flags::DONT_FRAGMENT),
            flow_label: 0,
        }
    }
}
