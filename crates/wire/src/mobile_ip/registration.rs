//! Registration request and reply (RFC 5944, 3.3 and 3.4).

use super::{Extensions, address};
use crate::{Error, bytes::be16, bytes::be64};
use core::fmt;
use core::net::Ipv4Addr;

/// What a mobile node asks of its home agent, in one byte (RFC 5944, 3.3; T: RFC 3024).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(pub u8);

impl Flags {
    /// S: keep the bindings there are.
    pub const SIMULTANEOUS_BINDINGS: Flags = Flags(0x80);
    /// B: tunnel broadcasts, too.
    pub const BROADCAST: Flags = Flags(0x40);
    /// D: the care-of address is the mobile node's own, which ends the tunnel itself.
    pub const CO_LOCATED: Flags = Flags(0x20);
    /// M: minimal encapsulation (RFC 2004).
    pub const MINIMAL_ENCAPSULATION: Flags = Flags(0x10);
    /// G: GRE.
    pub const GRE: Flags = Flags(0x08);
    /// T: reverse tunnelling.
    pub const REVERSE_TUNNEL: Flags = Flags(0x02);

    /// True if all bits of `other` are set.
    pub const fn contains(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }

    /// Both sets of bits.
    pub const fn with(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }
}

/// The lifetime of a registration in seconds that never ends (RFC 5944, 3.3).
pub const LIFETIME_INFINITE_S: u16 = 0xffff;

/// A registration request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// What is asked for.
    pub flags: Flags,
    /// For how many seconds; 0 deregisters, [`LIFETIME_INFINITE_S`] is for ever.
    pub lifetime_s: u16,
    /// The mobile node's home address.
    pub home_address: Ipv4Addr,
    /// Its home agent.
    pub home_agent: Ipv4Addr,
    /// Where the tunnel ends.
    pub care_of_address: Ipv4Addr,
    /// Matches replies with requests and protects against replay (RFC 5944, 5.7): a time in NTP
    /// format, or nonces.
    pub identification: u64,
}

impl Request {
    /// The type in the first byte.
    pub const TYPE: u8 = 1;
    /// Length without extensions, in bytes.
    pub const BYTES: usize = 24;

    /// Reads a whole UDP payload.
    ///
    /// # Errors
    /// [`Error::Truncated`] if it ends early, [`Error::Unsupported`] for another type,
    /// [`Error::Length`] if an extension does.
    pub fn parse(bytes: &[u8]) -> Result<(Self, Extensions<'_>), Error> {
        let (fixed, rest) = split::<{ Self::BYTES }>(bytes, Self::TYPE)?;
        let request = Request {
            flags: Flags(fixed[1]),
            lifetime_s: be16(fixed, 2),
            home_address: address(fixed, 4),
            home_agent: address(fixed, 8),
            care_of_address: address(fixed, 12),
            identification: be64(fixed, 16),
        };
        Ok((request, Extensions::parse(rest)?))
    }

    /// Appends the fixed part.
    pub fn emit(&self, into: &mut Vec<u8>) {
        into.extend_from_slice(&[Self::TYPE, self.flags.0]);
        into.extend_from_slice(&self.lifetime_s.to_be_bytes());
        into.extend_from_slice(&self.home_address.octets());
        into.extend_from_slice(&self.home_agent.octets());
        into.extend_from_slice(&self.care_of_address.octets());
        into.extend_from_slice(&self.identification.to_be_bytes());
    }
}

/// What an agent says to a request (RFC 5944, 3.4 and the registry of code values).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Code(pub u8);

impl Code {
    /// Accepted.
    pub const ACCEPTED: Code = Code(0);
    /// Accepted, but simultaneous bindings are not supported.
    pub const ACCEPTED_ONE_BINDING: Code = Code(1);
    /// The foreign agent lacks resources.
    pub const FOREIGN_INSUFFICIENT_RESOURCES: Code = Code(66);
    /// The mobile node's authenticator is wrong to the foreign agent.
    pub const FOREIGN_MOBILE_FAILED_AUTHENTICATION: Code = Code(67);
    /// The home agent's authenticator is wrong to the foreign agent.
    pub const FOREIGN_HOME_FAILED_AUTHENTICATION: Code = Code(68);
    /// The lifetime asked for is longer than the foreign agent gives; its own is in the reply.
    pub const FOREIGN_LIFETIME_TOO_LONG: Code = Code(69);
    /// The foreign agent cannot read the request.
    pub const FOREIGN_POORLY_FORMED_REQUEST: Code = Code(70);
    /// The foreign agent cannot read the reply.
    pub const FOREIGN_POORLY_FORMED_REPLY: Code = Code(71);
    /// The foreign agent has no such encapsulation.
    pub const FOREIGN_ENCAPSULATION: Code = Code(72);
    /// The care-of address is not the foreign agent's.
    pub const FOREIGN_INVALID_CARE_OF_ADDRESS: Code = Code(77);
    /// The home agent did not answer the foreign agent in time.
    pub const FOREIGN_REGISTRATION_TIMEOUT: Code = Code(78);
    /// The home agent refuses.
    pub const HOME_ADMINISTRATIVELY_PROHIBITED: Code = Code(129);
    /// The home agent lacks resources.
    pub const HOME_INSUFFICIENT_RESOURCES: Code = Code(130);
    /// The mobile node's authenticator is wrong.
    pub const HOME_MOBILE_FAILED_AUTHENTICATION: Code = Code(131);
    /// The foreign agent's authenticator is wrong.
    pub const HOME_FOREIGN_FAILED_AUTHENTICATION: Code = Code(132);
    /// The identification is not what the home agent expects: its own is in the reply.
    pub const HOME_IDENTIFICATION_MISMATCH: Code = Code(133);
    /// The home agent cannot read the request.
    pub const HOME_POORLY_FORMED_REQUEST: Code = Code(134);
    /// The home agent's address in the request is not this one; the right one is in the reply.
    pub const HOME_UNKNOWN_ADDRESS: Code = Code(136);
    /// The home agent has no such encapsulation.
    pub const HOME_ENCAPSULATION: Code = Code(139);

    /// True if the registration stands.
    pub const fn is_accepted(self) -> bool {
        self.0 <= 1
    }

    /// True if a foreign agent said so itself (64 to 127).
    pub const fn is_foreign_agents(self) -> bool {
        self.0 >= 64 && self.0 < 128
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A registration reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The answer.
    pub code: Code,
    /// For how many seconds; of a refusal for its length, the longest that is given.
    pub lifetime_s: u16,
    /// The mobile node's home address.
    pub home_address: Ipv4Addr,
    /// Its home agent.
    pub home_agent: Ipv4Addr,
    /// Derived from that of the request (RFC 5944, 5.7).
    pub identification: u64,
}

impl Reply {
    /// The type in the first byte.
    pub const TYPE: u8 = 3;
    /// Length without extensions, in bytes.
    pub const BYTES: usize = 20;

    /// Reads a whole UDP payload.
    ///
    /// # Errors
    /// As [`Request::parse`].
    pub fn parse(bytes: &[u8]) -> Result<(Self, Extensions<'_>), Error> {
        let (fixed, rest) = split::<{ Self::BYTES }>(bytes, Self::TYPE)?;
        let reply = Reply {
            code: Code(fixed[1]),
            lifetime_s: be16(fixed, 2),
            home_address: address(fixed, 4),
            home_agent: address(fixed, 8),
            identification: be64(fixed, 12),
        };
        Ok((reply, Extensions::parse(rest)?))
    }

    /// Appends the fixed part.
    pub fn emit(&self, into: &mut Vec<u8>) {
        into.extend_from_slice(&[Self::TYPE, self.code.0]);
        into.extend_from_slice(&self.lifetime_s.to_be_bytes());
        into.extend_from_slice(&self.home_address.octets());
        into.extend_from_slice(&self.home_agent.octets());
        into.extend_from_slice(&self.identification.to_be_bytes());
    }
}

/// The fixed part of a message of this type, and what follows it.
pub(super) fn split<const N: usize>(bytes: &[u8], kind: u8) -> Result<(&[u8; N], &[u8]), Error> {
    let (fixed, rest) =
        bytes.split_first_chunk::<N>().ok_or(Error::Truncated { need: N, have: bytes.len() })?;
    if fixed[0] != kind {
        return Err(Error::Unsupported { field: "Mobile IP type", value: u32::from(fixed[0]) });
    }
    Ok((fixed, rest))
}
