//! Mobile IPv4 (RFC 5944): agent discovery over ICMP, registration and binding updates over UDP,
//! tunnels.
//!
//! Map: [`advertisement`] (ICMP router advertisement with its mobility agent extension, router
//! solicitation), [`registration`] (request and reply), [`binding`] (binding update and
//! acknowledge of route optimization), [`extension`] (what may follow any of those: authentication,
//! NAI, notification of the previous foreign agent, unknown ones), [`tunnel`] (IP in IP, IP in
//! UDP). [`Message`] reads whatever comes to the registration port.
//!
//! A message is a fixed part and [`Extensions`], which are bytes whose lengths have been checked.
//! Whoever writes one appends the parts in order, an authenticator after what it covers:
//!
//! ```text
//!   | fixed part | extensions of all nodes before | type, length, SPI | authenticator |
//!   |<---------------- what the authenticator covers --------------->|
//! ```

pub mod advertisement;
pub mod binding;
pub mod extension;
pub mod registration;
pub mod tunnel;

pub use extension::{Authenticator, Extension, Extensions};

use crate::Error;
use core::net::Ipv4Addr;

/// The UDP port of registration (RFC 5944, 3.2), to which tunnels in UDP go, too (RFC 3519).
pub const PORT: u16 = 434;

/// What stands in the UDP payload of a datagram to or from [`PORT`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// A registration request.
    Request(registration::Request, Extensions<'a>),
    /// A registration reply.
    Reply(registration::Reply, Extensions<'a>),
    /// A binding update.
    Update(binding::Update, Extensions<'a>),
    /// A binding acknowledge.
    Acknowledge(binding::Acknowledge, Extensions<'a>),
    /// A datagram tunnelled in UDP.
    Tunnelled(&'a [u8]),
}

impl<'a> Message<'a> {
    /// Reads a whole UDP payload.
    ///
    /// # Errors
    /// [`Error::Truncated`] if it ends early, [`Error::Unsupported`] for another type,
    /// [`Error::Length`] for lengths that contradict each other.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Error> {
        let kind = *bytes.first().ok_or(Error::Truncated { need: 1, have: 0 })?;
        match kind {
            registration::Request::TYPE => {
                registration::Request::parse(bytes).map(|(fixed, rest)| Self::Request(fixed, rest))
            }
            registration::Reply::TYPE => {
                registration::Reply::parse(bytes).map(|(fixed, rest)| Self::Reply(fixed, rest))
            }
            binding::EXPERIMENTAL => match binding::kind(bytes)? {
                binding::Update::TYPE => {
                    binding::Update::parse(bytes).map(|(fixed, rest)| Self::Update(fixed, rest))
                }
                _ => binding::Acknowledge::parse(bytes)
                    .map(|(fixed, rest)| Self::Acknowledge(fixed, rest)),
            },
            tunnel::TUNNEL_DATA => tunnel::in_udp(bytes).map(Self::Tunnelled),
            _ => Err(Error::Unsupported { field: "Mobile IP type", value: u32::from(kind) }),
        }
    }

    /// Appends the message as it was read.
    pub fn emit(&self, into: &mut Vec<u8>) {
        let extensions = match self {
            Message::Request(fixed, extensions) => {
                fixed.emit(into);
                extensions
            }
            Message::Reply(fixed, extensions) => {
                fixed.emit(into);
                extensions
            }
            Message::Update(fixed, extensions) => {
                fixed.emit(into);
                extensions
            }
            Message::Acknowledge(fixed, extensions) => {
                fixed.emit(into);
                extensions
            }
            Message::Tunnelled(datagram) => {
                into.extend_from_slice(&tunnel::TUNNEL_DATA_HEADER);
                return into.extend_from_slice(datagram);
            }
        };
        into.extend_from_slice(extensions.as_bytes());
    }
}

/// The IPv4 address at `at`.
pub(crate) fn address(bytes: &[u8], at: usize) -> Ipv4Addr {
    Ipv4Addr::new(bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3])
}
