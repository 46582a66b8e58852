//! What may follow the fixed part of a message: type, length, value (RFC 5944, 1.8 to 1.10 and
//! 3.5), in the order in which it was added.
//!
//! A receiver skips what it does not know if the type is 128 or above, and drops the whole message
//! otherwise ([`Extensions::not_understood`]). Types 36 to 38 have the long format, a subtype and
//! a length of 16 bits (RFC 5944, 1.9; RFC 4721; RFC 3115); all others a length of 8 bits.

use super::address;
use crate::auth::Key;
use crate::{Error, bytes::be16, bytes::be32};
use core::net::Ipv4Addr;

/// Types of extensions.
mod kind {
    pub(super) const LONG: core::ops::RangeInclusive<u8> = 36..=38;
    pub(super) const PREVIOUS_FOREIGN_AGENT: u8 = 96;
    pub(super) const SKIPPABLE_MIN: u8 = 128;
    pub(super) const NAI: u8 = 131;
}

/// Between which two nodes an authenticator proves who sent a message. The value is the
/// extension's type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Authenticator {
    /// Mobile node and home agent; in every registration (RFC 5944, 3.5.2).
    MobileHome = 32,
    /// Mobile node and foreign agent (RFC 5944, 3.5.3).
    MobileForeign = 33,
    /// Foreign agent and home agent (RFC 5944, 3.5.4).
    ForeignHome = 34,
    /// Of binding updates (draft-ietf-mobileip-optim).
    RouteOptimization = 35,
}

impl Authenticator {
    const ALL: [Authenticator; 4] =
        [Self::MobileHome, Self::MobileForeign, Self::ForeignHome, Self::RouteOptimization];

    /// In errors and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::MobileHome => "mobile-home",
            Self::MobileForeign => "mobile-foreign",
            Self::ForeignHome => "foreign-home",
            Self::RouteOptimization => "route optimization",
        }
    }

    /// Appends the extension to `message`, a UDP payload with all that it has to cover.
    pub fn append(self, key: &Key, message: &mut Vec<u8>) {
        message.extend_from_slice(&[self as u8, (4 + key.algorithm().bytes()) as u8]);
        message.extend_from_slice(&key.spi().to_be_bytes());
        let code = key.code(message);
        message.extend_from_slice(code.as_bytes());
    }
}

/// One extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extension<'a> {
    /// Proof of who sent what stands before it.
    Authentication {
        /// Between whom.
        between: Authenticator,
        /// Which key (security parameter index).
        spi: u32,
        /// The message authentication code.
        code: &'a [u8],
    },
    /// The previous foreign agent is to be told.
    PreviousForeignAgent(PreviousForeignAgent<'a>),
    /// The mobile node's network access identifier (RFC 2794).
    Nai(&'a [u8]),
    /// Any other one with a short length.
    Other {
        /// Its type.
        kind: u8,
        /// Its value.
        data: &'a [u8],
    },
    /// Any other one with a long length.
    OtherLong {
        /// Its type: 36 to 38.
        kind: u8,
        /// Its subtype.
        subtype: u8,
        /// Its value.
        data: &'a [u8],
    },
}

/// In a registration request: the foreign agent is to send a binding update to the previous one
/// (WINC-BS-4; draft-ietf-mobileip-optim, previous foreign agent notification). The mobile node
/// makes the authenticator itself, since the new foreign agent does not share the previous one's
/// key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PreviousForeignAgent<'a> {
    /// For how many seconds the previous one shall tunnel; 0: it shall only forget the mobile node.
    pub lifetime_s: u16,
    /// The previous foreign agent.
    pub previous_agent: Ipv4Addr,
    /// Where it shall tunnel to.
    pub care_of_address: Ipv4Addr,
    /// Which key the mobile node shares with the previous agent.
    pub spi: u32,
    /// The code of the binding update that the new foreign agent is to send.
    pub code: &'a [u8],
}

impl PreviousForeignAgent<'_> {
    /// Length of the value without the code, in bytes.
    const BASE_BYTES: usize = 14;
}

impl<'a> Extension<'a> {
    /// The extension at the start of `bytes`, and its length in bytes.
    fn parse(bytes: &'a [u8]) -> Result<(Self, usize), Error> {
        let need = |need: usize| Error::Truncated { need, have: bytes.len() };
        let [kind, length, ..] = *bytes else { return Err(need(2)) };
        if kind::LONG.contains(&kind) {
            let header = bytes.first_chunk::<4>().ok_or(need(4))?;
            let end = 4 + usize::from(be16(header, 2));
            let data = bytes.get(4..end).ok_or(need(end))?;
            return Ok((Extension::OtherLong { kind, subtype: length, data }, end));
        }
        let end = 2 + usize::from(length);
        let data = bytes.get(2..end).ok_or(need(end))?;
        Ok((Self::short(kind, data)?, end))
    }

    fn short(kind: u8, data: &'a [u8]) -> Result<Self, Error> {
        let too_short = Error::Length { field: "Mobile IP extension", value: data.len() };
        let between = Authenticator::ALL.into_iter().find(|between| *between as u8 == kind);
        if let Some(between) = between {
            let (spi, code) = data.split_first_chunk::<4>().ok_or(too_short)?;
            return Ok(Extension::Authentication { between, spi: be32(spi, 0), code });
        }
        Ok(match kind {
            kind::PREVIOUS_FOREIGN_AGENT => {
                const BASE: usize = PreviousForeignAgent::BASE_BYTES;
                let (base, code) = data.split_first_chunk::<BASE>().ok_or(too_short)?;
                Extension::PreviousForeignAgent(PreviousForeignAgent {
                    lifetime_s: be16(base, 0),
                    previous_agent: address(base, 2),
                    care_of_address: address(base, 6),
                    spi: be32(base, 10),
                    code,
                })
            }
            kind::NAI => Extension::Nai(data),
            _ => Extension::Other { kind, data },
        })
    }

    /// Appends the extension.
    ///
    /// # Errors
    /// [`Error::Length`] if the value does not fit its length field; then nothing is appended.
    pub fn emit(&self, into: &mut Vec<u8>) -> Result<(), Error> {
        match *self {
            Extension::Authentication { between, spi, code } => {
                emit_short(between as u8, &[&spi.to_be_bytes(), code], into)
            }
            Extension::PreviousForeignAgent(notification) => emit_short(
                kind::PREVIOUS_FOREIGN_AGENT,
                &[
                    &notification.lifetime_s.to_be_bytes(),
                    &notification.previous_agent.octets(),
                    &notification.care_of_address.octets(),
                    &notification.spi.to_be_bytes(),
                    notification.code,
                ],
                into,
            ),
            Extension::Nai(name) => emit_short(kind::NAI, &[name], into),
            Extension::Other { kind, data } => emit_short(kind, &[data], into),
            Extension::OtherLong { kind, subtype, data } => {
                let value = data.len();
                let length = u16::try_from(value)
                    .map_err(|_| Error::Length { field: "Mobile IP extension", value })?;
                into.extend_from_slice(&[kind, subtype]);
                into.extend_from_slice(&length.to_be_bytes());
                into.extend_from_slice(data);
                Ok(())
            }
        }
    }

    /// The type, if nothing here knows it and a receiver must not skip it.
    fn not_understood(&self) -> Option<u8> {
        match *self {
            Extension::Other { kind, .. } | Extension::OtherLong { kind, .. } => {
                (kind < kind::SKIPPABLE_MIN).then_some(kind)
            }
            _ => None,
        }
    }
}

fn emit_short(kind: u8, parts: &[&[u8]], into: &mut Vec<u8>) -> Result<(), Error> {
    let value = parts.iter().map(|part| part.len()).sum();
    let length =
        u8::try_from(value).map_err(|_| Error::Length { field: "Mobile IP extension", value })?;
    into.extend_from_slice(&[kind, length]);
    parts.iter().for_each(|part| into.extend_from_slice(part));
    Ok(())
}

/// All extensions of a message; their lengths have been checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extensions<'a>(&'a [u8]);

impl<'a> Extensions<'a> {
    /// Checks the lengths of what follows a message's fixed part.
    ///
    /// # Errors
    /// [`Error::Truncated`] if one runs past the end, [`Error::Length`] if one is too short for its
    /// type.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Error> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let (_, length) = Extension::parse(rest)?;
            rest = &rest[length..];
        }
        Ok(Extensions(bytes))
    }

    /// Their bytes.
    pub fn as_bytes(self) -> &'a [u8] {
        self.0
    }

    /// One after the other.
    pub fn iter(self) -> impl Iterator<Item = Extension<'a>> {
        self.places().map(|(_, extension)| extension)
    }

    /// Each with the place where it begins.
    fn places(self) -> impl Iterator<Item = (usize, Extension<'a>)> {
        let mut at = 0;
        core::iter::from_fn(move || {
            let (extension, length) = Extension::parse(&self.0[at..]).ok()?;
            at += length;
            Some((at - length, extension))
        })
    }

    /// The type of the first extension for which the message has to be dropped.
    pub fn not_understood(self) -> Option<u8> {
        self.iter().find_map(|extension| extension.not_understood())
    }

    /// Checks the first authenticator of a kind. `message` is the whole UDP payload of which these
    /// are the extensions. Returns the extensions that it covers.
    ///
    /// # Errors
    /// [`Error::NotAuthenticated`] if there is none, [`Error::SecurityIndex`] if it names another
    /// key, [`Error::Authenticator`] if it is wrong.
    pub fn verify(
        self,
        expected: Authenticator,
        key: &Key,
        message: &[u8],
    ) -> Result<Extensions<'a>, Error> {
        let found = self.places().find_map(|(at, extension)| match extension {
            Extension::Authentication { between, spi, code } if between == expected => {
                Some((at, spi, code))
            }
            _ => None,
        });
        let authenticator = expected.name();
        let (at, spi, code) = found.ok_or(Error::NotAuthenticated { authenticator })?;
        if spi != key.spi() {
            return Err(Error::SecurityIndex { spi });
        }
        const HEADER_BYTES: usize = 6;
        let covered = (message.len().checked_sub(self.0.len()))
            .and_then(|start| message.get(..start + at + HEADER_BYTES));
        if !covered.is_some_and(|covered| key.code(covered).is(code)) {
            return Err(Error::Authenticator { authenticator });
        }
        Ok(Extensions(&self.0[..at]))
    }
}
