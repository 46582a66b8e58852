//! The Ethernet header (IEEE 802.3, type interpretation) with VLAN tags stepped over
//! (IEEE 802.1Q), so that a driver knows where the network header begins.

use crate::{Error, bytes::be16};

/// A MAC address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mac(pub [u8; 6]);

impl Mac {
    /// All stations.
    pub const BROADCAST: Mac = Mac([0xff; 6]);

    /// True for a group of stations, broadcast included.
    #[inline]
    pub fn is_multicast(self) -> bool {
        self.0[0] & 1 == 1
    }
}

impl core::fmt::Display for Mac {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

/// What a frame carries (IANA "IEEE 802 Numbers"); below 0x0600 it is the length of an LLC frame,
/// which nothing here reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EtherType(pub u16);

impl EtherType {
    /// IPv4, RFC 894.
    pub const IPV4: EtherType = EtherType(0x0800);
    /// ARP, RFC 826.
    pub const ARP: EtherType = EtherType(0x0806);
    /// VLAN tag, IEEE 802.1Q.
    pub const VLAN: EtherType = EtherType(0x8100);
    /// IPv6, RFC 2464.
    pub const IPV6: EtherType = EtherType(0x86dd);
    /// Service VLAN tag, IEEE 802.1ad.
    pub const SERVICE_VLAN: EtherType = EtherType(0x88a8);
}

/// The VLAN tags of a frame, byte for byte; none by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tags<'a>(&'a [u8]);

impl<'a> Tags<'a> {
    /// Tags stepped over at most: a service tag and a customer tag. A third one is met as the
    /// frame's [`EtherType`].
    pub const COUNT_MAX: usize = 2;
    /// Length of one tag, in bytes.
    const TAG_BYTES: usize = 4;

    /// The tags' bytes, EtherType first.
    #[inline]
    pub fn as_bytes(self) -> &'a [u8] {
        self.0
    }
}

/// An Ethernet header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header<'a> {
    /// Destination.
    pub destination: Mac,
    /// Source.
    pub source: Mac,
    /// VLAN tags.
    pub tags: Tags<'a>,
    /// What follows.
    pub ether_type: EtherType,
}

impl<'a> Header<'a> {
    /// Length without tags, in bytes.
    pub const BASE_BYTES: usize = 14;

    /// Reads the header at the start of `frame`. Returns it with its length in bytes, where the
    /// network header begins.
    ///
    /// # Errors
    /// [`Error::Truncated`] if the header or a tag is cut.
    #[inline]
    pub fn parse(frame: &'a [u8]) -> Result<(Self, usize), Error> {
        const TAGS_AT: usize = 12;
        let have = frame.len();
        let mut length = Self::BASE_BYTES;
        let base = frame
            .first_chunk::<{ Header::BASE_BYTES }>()
            .ok_or(Error::Truncated { need: length, have })?;
        let mut ether_type = EtherType(be16(base, TAGS_AT));
        for _ in 0..Tags::COUNT_MAX {
            if ether_type != EtherType::VLAN && ether_type != EtherType::SERVICE_VLAN {
                break;
            }
            length += Tags::TAG_BYTES;
            if have < length {
                return Err(Error::Truncated { need: length, have });
            }
            ether_type = EtherType(be16(frame, length - 2));
        }
        let [d0, d1, d2, d3, d4, d5, s0, s1, s2, s3, s4, s5, ..] = *base;
        let header = Header {
            destination: Mac([d0, d1, d2, d3, d4, d5]),
            source: Mac([s0, s1, s2, s3, s4, s5]),
            tags: Tags(&frame[TAGS_AT..length - 2]),
            ether_type,
        };
        Ok((header, length))
    }

    /// Appends the header.
    pub fn emit(&self, into: &mut Vec<u8>) {
        into.extend_from_slice(&self.destination.0);
        into.extend_from_slice(&self.source.0);
        into.extend_from_slice(self.tags.0);
        into.extend_from_slice(&self.ether_type.0.to_be_bytes());
    }
}
