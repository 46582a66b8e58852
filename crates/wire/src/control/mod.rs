//! Messages between our own agents: beacons, handoffs (CI-HO-3 to 6), and who forwards or buffers
//! a multicast group (MCAST-11, MCAST-13). The papers give no formats (GAP-2); these are ours.
//!
//! They are UDP payloads to [`PORT`], big-endian, and begin with [`MAGIC`], a version and a type.
//! A beacon ([`Beacon`]) proves nothing and so is a hint only. All others ([`Message`]) are about
//! one mobile host and proved by its key (MOD-10):
//!
//! ```text
//!    0       1       2       3
//!   +-------+-------+-------+-------+
//!   |     magic     |version| type  |
//!   +-------+-------+-------+-------+
//!   |    mobile host (its home)     |
//!   |            sender             |   who is meant is part of what is proved: what is for one
//!   |           receiver            |   base station is nothing to another one
//!   |   security parameter index    |
//!   +                               +
//!   |          generation           |   counts the mobile host's attachments (MOD-10)
//!   +                               +
//!   |            sent at            |   the sender's clock: replay protection
//!   +                               +
//!   |        request number         |   the same in the answer
//!   +-------+-------+-------+-------+
//!   |  body bytes   |  body ...     |
//!   +-------+-------+               +
//!   |    HMAC, its first 16 bytes   |   over all that stands before it
//!   +-------------------------------+
//! ```
//!
//! [`Envelope::parse`] reads the header, for the choice of a key; nobody acts on the body before
//! [`Envelope::open`] has proved it.

mod beacon;
mod body;

pub use beacon::Beacon;
pub use body::{Body, Previous, Received, Role, Status};

use crate::auth::Key;
use crate::mobile_ip::address;
use crate::{Error, bytes::be16, bytes::be32, bytes::be64};
use core::net::Ipv4Addr;

/// The UDP port; ours, from the range for private use (RFC 6335).
pub const PORT: u16 = 51_434;
/// The first two bytes: "LH".
pub const MAGIC: [u8; 2] = *b"LH";
/// The version of all formats here.
pub const VERSION: u8 = 1;

/// What a message is about, beside its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The mobile host, by its home address.
    pub mobile: Ipv4Addr,
    /// Who sends it: a base station, or the mobile host.
    pub sender: Ipv4Addr,
    /// For whom it is.
    pub receiver: Ipv4Addr,
    /// Which of the mobile host's attachments it is about: the time of the attachment by the
    /// mobile host's clock, in nanoseconds, and so growing even over a restart.
    pub generation: u64,
    /// The sender's clock in nanoseconds since 1970, or since the start of a simulated run; grows
    /// with every message.
    pub sent_at: u64,
    /// Chosen by whoever asks; an answer has that of its request.
    pub request: u32,
}

/// A message, its parts readable: it is ours, or it has been proved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// About whom, between whom, when.
    pub header: Header,
    /// What it says.
    pub body: Body,
}

impl Message {
    /// Length up to the body, in bytes.
    pub const HEADER_BYTES: usize = 42;
    /// Length of the authenticator, in bytes: HMAC-SHA-256-128 (RFC 4868), or HMAC-MD5.
    pub const CODE_BYTES: usize = 16;
    /// The longest message, in bytes.
    pub const BYTES_MAX: usize = Self::HEADER_BYTES + Body::BYTES_MAX + Self::CODE_BYTES;

    /// Appends the message, proved by `key`.
    pub fn emit(&self, key: &Key, into: &mut Vec<u8>) {
        let start = into.len();
        let header = &self.header;
        into.extend_from_slice(&MAGIC);
        into.extend_from_slice(&[VERSION, self.body.kind()]);
        for address in [header.mobile, header.sender, header.receiver] {
            into.extend_from_slice(&address.octets());
        }
        into.extend_from_slice(&key.spi().to_be_bytes());
        into.extend_from_slice(&header.generation.to_be_bytes());
        into.extend_from_slice(&header.sent_at.to_be_bytes());
        into.extend_from_slice(&header.request.to_be_bytes());
        let length_at = into.len();
        into.extend_from_slice(&[0, 0]);
        self.body.emit(into);
        let length = (into.len() - length_at - 2) as u16;
        into[length_at..length_at + 2].copy_from_slice(&length.to_be_bytes());
        let code = key.code(&into[start..]).truncated(Self::CODE_BYTES);
        into.extend_from_slice(code.as_bytes());
    }
}

/// A message as it came, not proved yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Envelope<'a> {
    /// What it says of itself.
    pub header: Header,
    /// Which key it says it is proved by.
    pub spi: u32,
    kind: u8,
    bytes: &'a [u8],
}

impl<'a> Envelope<'a> {
    const NAME: &'static str = "handoff message";

    /// Reads the header of a whole UDP payload and checks its lengths.
    ///
    /// # Errors
    /// [`Error::Truncated`] if it ends early, [`Error::Unsupported`] if it does not begin as ours
    /// do or its type is unknown, [`Error::Length`] if it is longer than it says.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Error> {
        let have = bytes.len();
        let fixed = bytes
            .first_chunk::<{ Message::HEADER_BYTES }>()
            .ok_or(Error::Truncated { need: Message::HEADER_BYTES, have })?;
        let kind = begins_as_ours(fixed)?;
        if !Body::KINDS.contains(&kind) {
            return Err(Error::Unsupported {
                field: "type of a handoff message",
                value: kind.into(),
            });
        }
        let body_bytes = usize::from(be16(fixed, 40));
        let need = Message::HEADER_BYTES + body_bytes + Message::CODE_BYTES;
        if have < need {
            return Err(Error::Truncated { need, have });
        }
        if have > need {
            return Err(Error::Length { field: Self::NAME, value: have });
        }
        let header = Header {
            mobile: address(fixed, 4),
            sender: address(fixed, 8),
            receiver: address(fixed, 12),
            generation: be64(fixed, 20),
            sent_at: be64(fixed, 28),
            request: be32(fixed, 36),
        };
        Ok(Envelope { header, spi: be32(fixed, 16), kind, bytes })
    }

    /// The message, if `key` proves it.
    ///
    /// # Errors
    /// [`Error::SecurityIndex`] if it names another key, [`Error::Authenticator`] if it is not
    /// proved; of a proved one [`Error::Length`] and [`Error::Unsupported`] if the body makes no
    /// sense.
    pub fn open(&self, key: &Key) -> Result<Message, Error> {
        if self.spi != key.spi() {
            return Err(Error::SecurityIndex { spi: self.spi });
        }
        let (covered, code) = self.bytes.split_at(self.bytes.len() - Message::CODE_BYTES);
        if !key.code(covered).truncated(Message::CODE_BYTES).is(code) {
            return Err(Error::Authenticator { authenticator: Self::NAME });
        }
        let body = Body::parse(self.kind, &covered[Message::HEADER_BYTES..])?;
        Ok(Message { header: self.header, body })
    }

    /// What it says, proved by nobody: for those who only show messages.
    ///
    /// # Errors
    /// [`Error::Length`] and [`Error::Unsupported`] if the body makes no sense.
    pub fn unproved(&self) -> Result<Body, Error> {
        let end = self.bytes.len() - Message::CODE_BYTES;
        Body::parse(self.kind, &self.bytes[Message::HEADER_BYTES..end])
    }
}

/// The type of bytes that begin with magic and version.
fn begins_as_ours(bytes: &[u8]) -> Result<u8, Error> {
    let start = bytes.first_chunk::<4>().ok_or(Error::Truncated { need: 4, have: bytes.len() })?;
    if start[..2] != MAGIC {
        return Err(Error::Unsupported { field: "magic", value: be16(start, 0).into() });
    }
    if start[2] != VERSION {
        return Err(Error::Unsupported { field: "version", value: start[2].into() });
    }
    Ok(start[3])
}
