//! Binding update and binding acknowledge (Perkins and Johnson, "Route Optimization in Mobile IP",
//! draft-ietf-mobileip-optim, expired), as WINC-BS-5 has the new foreign agent send to the previous
//! one.
//!
//! The draft's types 18 and 19 were later given to the regional registrations of RFC 4857, and so
//! decoders read them. Here the draft's messages stand in a message for experiments (RFC 4064):
//!
//! ```text
//!   | 255 | bytes of what follows | 18 or 19, as the draft has it ... | extensions |
//! ```

use super::extension::PreviousForeignAgent;
use super::registration::{Request, split};
use super::{Extensions, address};
use crate::{Error, bytes::be16, bytes::be64};
use core::net::Ipv4Addr;

/// The first byte of a message for experiments (RFC 4064).
pub const EXPERIMENTAL: u8 = 255;
/// Length of what stands before each message of the draft, in bytes.
const ENVELOPE_BYTES: usize = 2;

/// Which message of the draft stands in a message for experiments, by the draft's type.
pub(super) fn kind(bytes: &[u8]) -> Result<u8, Error> {
    const NEED: usize = ENVELOPE_BYTES + 1;
    let start =
        bytes.first_chunk::<NEED>().ok_or(Error::Truncated { need: NEED, have: bytes.len() })?;
    Ok(start[ENVELOPE_BYTES])
}

/// The fixed part of a message of the draft's type, and what follows it.
fn unwrap<const N: usize>(bytes: &[u8], expected: u8) -> Result<(&[u8; N], &[u8]), Error> {
    kind(bytes)?;
    let (envelope, message) = bytes.split_at(ENVELOPE_BYTES);
    if envelope[0] != EXPERIMENTAL {
        return Err(Error::Unsupported { field: "Mobile IP type", value: envelope[0].into() });
    }
    if usize::from(envelope[1]) != N {
        let value = usize::from(envelope[1]);
        return Err(Error::Length { field: "Mobile IP message for experiments", value });
    }
    split(message, expected)
}

/// The flags of a binding update, in one byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(pub u8);

impl Flags {
    /// A: the sender wants an acknowledge.
    pub const ACKNOWLEDGE: Flags = Flags(0x80);
    /// I: the identification is there, and is to be checked.
    pub const IDENTIFICATION: Flags = Flags(0x40);
    /// M: minimal encapsulation (RFC 2004) may be used.
    pub const MINIMAL_ENCAPSULATION: Flags = Flags(0x20);
    /// G: GRE may be used.
    pub const GRE: Flags = Flags(0x10);

    /// True if all bits of `other` are set.
    pub const fn contains(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }

    /// Both sets of bits.
    pub const fn with(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }
}

/// Where a mobile node is now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Update {
    /// Flags.
    pub flags: Flags,
    /// For how many seconds the binding may be kept; 0 deletes it.
    pub lifetime_s: u16,
    /// The mobile node's home address.
    pub home_address: Ipv4Addr,
    /// Where its packets are to be tunnelled; the home address deletes the binding.
    pub care_of_address: Ipv4Addr,
    /// As in a registration; nothing unless [`Flags::IDENTIFICATION`] is set.
    pub identification: u64,
}

impl Update {
    /// The draft's type, after the envelope.
    pub const TYPE: u8 = 18;
    /// Length without envelope and extensions, in bytes.
    pub const BYTES: usize = 20;

    /// The update that a registration `request` with this `notification` makes the new foreign
    /// agent send to the previous one; its authenticator is the notification's.
    pub fn for_previous_agent(request: &Request, notification: &PreviousForeignAgent) -> Update {
        Update {
            flags: Flags::ACKNOWLEDGE.with(Flags::IDENTIFICATION),
            lifetime_s: notification.lifetime_s,
            home_address: request.home_address,
            care_of_address: notification.care_of_address,
            identification: request.identification,
        }
    }

    /// Reads a whole UDP payload.
    ///
    /// # Errors
    /// [`Error::Truncated`] if it ends early, [`Error::Unsupported`] for another type,
    /// [`Error::Length`] if an extension does.
    pub fn parse(bytes: &[u8]) -> Result<(Self, Extensions<'_>), Error> {
        let (fixed, rest) = unwrap::<{ Self::BYTES }>(bytes, Self::TYPE)?;
        let update = Update {
            flags: Flags(fixed[1]),
            lifetime_s: be16(fixed, 2),
            home_address: address(fixed, 4),
            care_of_address: address(fixed, 8),
            identification: be64(fixed, 12),
        };
        Ok((update, Extensions::parse(rest)?))
    }

    /// Appends the fixed part.
    pub fn emit(&self, into: &mut Vec<u8>) {
        into.extend_from_slice(&[EXPERIMENTAL, Self::BYTES as u8]);
        into.extend_from_slice(&[Self::TYPE, self.flags.0]);
        into.extend_from_slice(&self.lifetime_s.to_be_bytes());
        into.extend_from_slice(&self.home_address.octets());
        into.extend_from_slice(&self.care_of_address.octets());
        into.extend_from_slice(&self.identification.to_be_bytes());
    }
}

/// The answer to a binding update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acknowledge {
    /// Sent as zero.
    pub reserved: u16,
    /// 0: accepted; from 128 on: why not, in the numbers of a home agent's registration reply.
    pub status: u8,
    /// The mobile node's home address.
    pub home_address: Ipv4Addr,
    /// That of the update.
    pub identification: u64,
}

impl Acknowledge {
    /// The draft's type, after the envelope.
    pub const TYPE: u8 = 19;
    /// Length without envelope and extensions, in bytes.
    pub const BYTES: usize = 16;

    /// Reads a whole UDP payload.
    ///
    /// # Errors
    /// As [`Update::parse`].
    pub fn parse(bytes: &[u8]) -> Result<(Self, Extensions<'_>), Error> {
        let (fixed, rest) = unwrap::<{ Self::BYTES }>(bytes, Self::TYPE)?;
        let acknowledge = Acknowledge {
            reserved: be16(fixed, 1),
            status: fixed[3],
            home_address: address(fixed, 4),
            identification: be64(fixed, 8),
        };
        Ok((acknowledge, Extensions::parse(rest)?))
    }

    /// Appends the fixed part.
    pub fn emit(&self, into: &mut Vec<u8>) {
        into.extend_from_slice(&[EXPERIMENTAL, Self::BYTES as u8]);
        into.push(Self::TYPE);
        into.extend_from_slice(&self.reserved.to_be_bytes());
        into.push(self.status);
        into.extend_from_slice(&self.home_address.octets());
        into.extend_from_slice(&self.identification.to_be_bytes());
    }
}
