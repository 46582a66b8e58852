//! Agent discovery: ICMP router advertisement and solicitation (RFC 1256) with the extensions of
//! RFC 5944, section 2.1.

use super::address;
use crate::ip::Version;
use crate::{Error, bytes::be16, bytes::be32, icmp};
use core::net::Ipv4Addr;

/// ICMP type of an advertisement.
pub const ADVERTISEMENT: u8 = 9;
/// ICMP type of a solicitation.
pub const SOLICITATION: u8 = 10;
/// Code of an advertisement by an agent that routes for mobile nodes only (RFC 5944, 2.1).
pub const CODE_MOBILE_ONLY: u8 = 16;

/// Words of 32 bits in each entry (RFC 1256).
const ENTRY_WORDS: u8 = 2;

/// A router that an advertisement lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Router {
    /// Its address.
    pub address: Ipv4Addr,
    /// The higher the better; `i32::MIN` is no default router.
    pub preference: i32,
}

/// An advertisement: what follows the ICMP checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Advertisement<'a> {
    /// ICMP code: 0, or [`CODE_MOBILE_ONLY`].
    pub code: u8,
    /// For how many seconds it holds.
    pub lifetime_s: u16,
    /// Address and preference of each router.
    pub routers: &'a [[u8; 8]],
    /// What the agent says of itself; lengths have been checked.
    extensions: &'a [u8],
}

/// One extension of an advertisement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extension<'a> {
    /// A byte of padding, type 0.
    Padding,
    /// Mobility agent advertisement, type 16.
    MobilityAgent(MobilityAgent<'a>),
    /// The prefix length in bits of each listed router's network, type 19.
    PrefixLengths(&'a [u8]),
    /// Any other one, to be skipped.
    Other {
        /// Its type.
        kind: u8,
        /// Its value.
        data: &'a [u8],
    },
}

/// What a mobility agent offers (RFC 5944, 2.1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MobilityAgent<'a> {
    /// Counts advertisements; after 0xffff comes 256, so that below 256 tells of a restart
    /// (RFC 5944, 2.3.2).
    pub sequence: u16,
    /// The longest registration it accepts, in seconds; 0xffff is for ever.
    pub registration_lifetime_s: u16,
    /// What it is and can do.
    pub flags: AgentFlags,
    /// Its care-of addresses.
    pub care_of: &'a [[u8; 4]],
}

/// The flags of an agent's advertisement (RFC 5944, 2.1.1; T: RFC 3024; U: RFC 3519).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AgentFlags(pub u16);

impl AgentFlags {
    /// R: registration is required.
    pub const REGISTRATION_REQUIRED: AgentFlags = AgentFlags(0x8000);
    /// B: busy, no more registrations.
    pub const BUSY: AgentFlags = AgentFlags(0x4000);
    /// H: home agent.
    pub const HOME_AGENT: AgentFlags = AgentFlags(0x2000);
    /// F: foreign agent.
    pub const FOREIGN_AGENT: AgentFlags = AgentFlags(0x1000);
    /// T: reverse tunnelling.
    pub const REVERSE_TUNNEL: AgentFlags = AgentFlags(0x0100);
    /// U: tunnels in UDP.
    pub const UDP_TUNNEL: AgentFlags = AgentFlags(0x0080);

    /// True if all bits of `other` are set.
    pub const fn contains(self, other: AgentFlags) -> bool {
        self.0 & other.0 == other.0
    }

    /// Both sets of bits.
    pub const fn with(self, other: AgentFlags) -> AgentFlags {
        AgentFlags(self.0 | other.0)
    }
}

impl<'a> Advertisement<'a> {
    /// Reads an ICMP message.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if it is no advertisement or has entries of another size,
    /// [`Error::Truncated`] if it or an extension ends early, [`Error::Length`] if an extension is
    /// too short for its type.
    pub fn parse(message: &icmp::Message<'a>) -> Result<Self, Error> {
        if (message.version, message.kind) != (Version::V4, ADVERTISEMENT) {
            return Err(Error::Unsupported { field: "ICMP type", value: message.kind.into() });
        }
        let have = message.body.len();
        let (fixed, rest) =
            message.body.split_first_chunk::<4>().ok_or(Error::Truncated { need: 4, have })?;
        let [count, words, ..] = *fixed;
        if words != ENTRY_WORDS {
            let field = "words in an entry of a router advertisement";
            return Err(Error::Unsupported { field, value: words.into() });
        }
        let bytes = usize::from(count) * 8;
        let (entries, extensions) =
            rest.split_at_checked(bytes).ok_or(Error::Truncated { need: 4 + bytes, have })?;
        let mut unchecked = extensions;
        while !unchecked.is_empty() {
            let (_, length) = Extension::parse(unchecked)?;
            unchecked = &unchecked[length..];
        }
        let (code, lifetime_s) = (message.code, be16(fixed, 2));
        Ok(Advertisement { code, lifetime_s, routers: entries.as_chunks().0, extensions })
    }

    /// The routers that it lists.
    pub fn routers(&self) -> impl Iterator<Item = Router> {
        self.routers.iter().map(|entry| Router {
            address: address(entry, 0),
            preference: be32(entry, 4).cast_signed(),
        })
    }

    /// Its extensions, one after the other.
    pub fn extensions(&self) -> impl Iterator<Item = Extension<'a>> {
        let mut rest = self.extensions;
        core::iter::from_fn(move || {
            let (extension, length) = Extension::parse(rest).ok()?;
            rest = &rest[length..];
            Some(extension)
        })
    }

    /// What the mobility agent says of itself; `None` of any other router.
    pub fn agent(&self) -> Option<MobilityAgent<'a>> {
        self.extensions().find_map(|extension| match extension {
            Extension::MobilityAgent(agent) => Some(agent),
            _ => None,
        })
    }

    /// The ICMP body as it was read.
    pub fn body(&self) -> Vec<u8> {
        let mut body = vec![self.routers.len() as u8, ENTRY_WORDS];
        body.extend_from_slice(&self.lifetime_s.to_be_bytes());
        body.extend_from_slice(self.routers.as_flattened());
        body.extend_from_slice(self.extensions);
        body
    }
}

/// The ICMP body of an advertisement.
///
/// # Errors
/// [`Error::Length`] for more than 255 routers or an extension that does not fit its length field.
pub fn body(
    lifetime_s: u16,
    routers: &[Router],
    extensions: &[Extension],
) -> Result<Vec<u8>, Error> {
    let value = routers.len();
    let count = u8::try_from(value).map_err(|_| Error::Length { field: "routers", value })?;
    let mut body = vec![count, ENTRY_WORDS];
    body.extend_from_slice(&lifetime_s.to_be_bytes());
    for router in routers {
        body.extend_from_slice(&router.address.octets());
        body.extend_from_slice(&router.preference.to_be_bytes());
    }
    for extension in extensions {
        extension.emit(&mut body)?;
    }
    Ok(body)
}

/// The body of a solicitation: four reserved bytes.
pub const SOLICITATION_BODY: [u8; 4] = [0; 4];

/// True if an ICMP message asks for advertisements (RFC 1256, section 3).
pub fn is_solicitation(message: &icmp::Message) -> bool {
    let what = (message.version, message.kind, message.code);
    what == (Version::V4, SOLICITATION, 0) && message.body.len() >= SOLICITATION_BODY.len()
}

impl<'a> Extension<'a> {
    const PADDING: u8 = 0;
    const MOBILITY_AGENT: u8 = 16;
    const PREFIX_LENGTHS: u8 = 19;

    /// The extension at the start of `bytes`, and its length in bytes.
    fn parse(bytes: &'a [u8]) -> Result<(Self, usize), Error> {
        let have = bytes.len();
        let kind = *bytes.first().ok_or(Error::Truncated { need: 1, have })?;
        if kind == Self::PADDING {
            return Ok((Extension::Padding, 1));
        }
        let length = *bytes.get(1).ok_or(Error::Truncated { need: 2, have })?;
        let end = 2 + usize::from(length);
        let data = bytes.get(2..end).ok_or(Error::Truncated { need: end, have })?;
        let extension = match kind {
            Self::MOBILITY_AGENT => Self::mobility_agent(data)?,
            Self::PREFIX_LENGTHS => Extension::PrefixLengths(data),
            _ => Extension::Other { kind, data },
        };
        Ok((extension, end))
    }

    fn mobility_agent(data: &'a [u8]) -> Result<Self, Error> {
        let wrong = Error::Length { field: "mobility agent extension", value: data.len() };
        let (fixed, addresses) = data.split_first_chunk::<6>().ok_or(wrong)?;
        let (care_of, []) = addresses.as_chunks() else { return Err(wrong) };
        Ok(Extension::MobilityAgent(MobilityAgent {
            sequence: be16(fixed, 0),
            registration_lifetime_s: be16(fixed, 2),
            flags: AgentFlags(be16(fixed, 4)),
            care_of,
        }))
    }

    fn emit(&self, into: &mut Vec<u8>) -> Result<(), Error> {
        let fits = |value: usize| {
            u8::try_from(value).map_err(|_| Error::Length { field: "extension", value })
        };
        match *self {
            Extension::Padding => into.push(Self::PADDING),
            Extension::MobilityAgent(agent) => {
                let length = fits(6 + 4 * agent.care_of.len())?;
                into.extend_from_slice(&[Self::MOBILITY_AGENT, length]);
                into.extend_from_slice(&agent.sequence.to_be_bytes());
                into.extend_from_slice(&agent.registration_lifetime_s.to_be_bytes());
                into.extend_from_slice(&agent.flags.0.to_be_bytes());
                into.extend_from_slice(agent.care_of.as_flattened());
            }
            Extension::PrefixLengths(lengths) => {
                into.extend_from_slice(&[Self::PREFIX_LENGTHS, fits(lengths.len())?]);
                into.extend_from_slice(lengths);
            }
            Extension::Other { kind, data } => {
                into.extend_from_slice(&[kind, fits(data.len())?]);
                into.extend_from_slice(data);
            }
        }
        Ok(())
    }
}
