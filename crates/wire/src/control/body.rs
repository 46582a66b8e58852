//! What handoff messages say.

use crate::mobile_ip::address;
use crate::{Error, bytes::be16, bytes::be64};
use core::net::Ipv4Addr;

/// What a message says. The types are numbered in this order, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// Mobile host to new base station: I am in your cell now (CI-HO-3).
    Greeting {
        /// The base stations that may take the mobile host for theirs: the old one, and any that
        /// was greeted and did not answer.
        previous: Previous,
        /// They shall send on what it kept for the mobile host (CI-SMOOTH-2).
        wants_buffer: bool,
        /// For how many seconds the new base station shall serve the mobile host; 0: it leaves.
        lifetime_s: u16,
    },
    /// New base station to mobile host: heard (CI-HO-4).
    GreetingAck {
        /// The answer.
        status: Status,
    },
    /// New base station to the old one: the mobile host has moved to me (CI-HO-4).
    MovedNotice {
        /// Send on what was kept (CI-SMOOTH-2).
        wants_buffer: bool,
        /// For how many seconds to tunnel to the sender.
        lifetime_s: u16,
    },
    /// Old base station to the new one: the route is changed (CI-HO-5).
    HandoffAck {
        /// The answer.
        status: Status,
        /// How many kept packets follow.
        buffered: u16,
    },
    /// New base station to mobile host: routes are consistent (CI-HO-6).
    Completion {
        /// The answer of the old base station.
        status: Status,
    },
    /// Mobile host to a base station: what to do with the packets of its multicast group
    /// (MCAST-11).
    SetRole {
        /// What from now on.
        role: Role,
        /// The group to which the home agent sends (MCAST-2).
        group: Ipv4Addr,
        /// With [`Role::Forward`]: the last packets that the mobile host has received (MCAST-13).
        received: Received,
    },
    /// Base station to mobile host: done.
    RoleAck {
        /// The answer.
        status: Status,
        /// What it does now.
        role: Role,
    },
}

/// What a base station does with the packets of a mobile host's group (MCAST-11).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Role {
    /// Nothing: it leaves the group.
    #[default]
    None = 0,
    /// It keeps the last ones and sends nothing.
    Buffer = 1,
    /// It is the primary: it sends them to the mobile host.
    Forward = 2,
}

impl Role {
    fn parse(byte: u8) -> Result<Role, Error> {
        match byte {
            0 => Ok(Role::None),
            1 => Ok(Role::Buffer),
            2 => Ok(Role::Forward),
            _ => Err(Error::Unsupported { field: "role", value: byte.into() }),
        }
    }
}

/// Addresses of base stations, the newest first; at most four.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Previous {
    addresses: [Option<Ipv4Addr>; Previous::MAX],
}

impl Previous {
    /// The most addresses in a message.
    pub const MAX: usize = 4;

    /// The first four of them.
    pub fn new(newest_first: impl IntoIterator<Item = Ipv4Addr>) -> Self {
        let mut addresses = [None; Self::MAX];
        for (place, address) in addresses.iter_mut().zip(newest_first) {
            *place = Some(address);
        }
        Previous { addresses }
    }

    /// One after the other.
    pub fn iter(&self) -> impl Iterator<Item = Ipv4Addr> {
        self.addresses.into_iter().flatten()
    }
}

/// The answer in an acknowledgment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Status(pub u8);

impl Status {
    /// Done.
    pub const ACCEPTED: Status = Status(0);
    /// The generation is older than one that is known already.
    pub const STALE: Status = Status(1);
    /// No room for another mobile host.
    pub const FULL: Status = Status(2);
    /// The mobile host is not known here.
    pub const UNKNOWN: Status = Status(3);
    /// Nobody answered in time.
    pub const TIMEOUT: Status = Status(4);
}

/// Names of the last packets received, the newest first, at most three (MCAST-13).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// Their IPv4 identifications, as the paper has it.
    Identifications {
        /// The names; those from `count` on are 0.
        ids: [u16; Received::MAX],
        /// How many there are.
        count: u8,
    },
    /// Digests of what they carry, since identifications need not differ today (MOD-15).
    Digests {
        /// The names; those from `count` on are 0.
        ids: [u64; Received::MAX],
        /// How many there are.
        count: u8,
    },
}

impl Received {
    /// The most names in a message.
    pub const MAX: usize = 3;
    /// No packets.
    pub const NONE: Received = Received::Digests { ids: [0; Self::MAX], count: 0 };

    /// The newest identifications, at most three of `newest_first`.
    pub fn identifications(newest_first: impl IntoIterator<Item = u16>) -> Received {
        let (ids, count) = first_three(newest_first);
        Received::Identifications { ids, count }
    }

    /// The newest digests, at most three of `newest_first`.
    pub fn digests(newest_first: impl IntoIterator<Item = u64>) -> Received {
        let (ids, count) = first_three(newest_first);
        Received::Digests { ids, count }
    }

    /// Two bytes (what the names are, how many), then the names.
    fn emit(&self, into: &mut Vec<u8>) {
        match self {
            Received::Identifications { ids, count } => {
                into.extend_from_slice(&[0, *count]);
                let named = &ids[..usize::from(*count).min(Self::MAX)];
                named.iter().for_each(|id| into.extend_from_slice(&id.to_be_bytes()));
            }
            Received::Digests { ids, count } => {
                into.extend_from_slice(&[1, *count]);
                let named = &ids[..usize::from(*count).min(Self::MAX)];
                named.iter().for_each(|id| into.extend_from_slice(&id.to_be_bytes()));
            }
        }
    }

    fn parse(bytes: &[u8]) -> Result<Received, Error> {
        let wrong = Error::Length { field: "names of received packets", value: bytes.len() };
        let ([what, count], names) = bytes.split_first_chunk::<2>().ok_or(wrong)?;
        let named = usize::from(*count);
        let size = match what {
            0 => 2,
            1 => 8,
            _ => {
                let field = "kind of packet names";
                return Err(Error::Unsupported { field, value: u32::from(*what) });
            }
        };
        if named > Self::MAX || names.len() != named * size {
            return Err(wrong);
        }
        Ok(match what {
            0 => Received::identifications(names.chunks(2).map(|name| be16(name, 0))),
            _ => Received::digests(names.chunks(8).map(|name| be64(name, 0))),
        })
    }
}

fn first_three<T: Copy + Default>(names: impl IntoIterator<Item = T>) -> ([T; Received::MAX], u8) {
    let mut ids = [T::default(); Received::MAX];
    let mut count = 0;
    for (place, name) in ids.iter_mut().zip(names) {
        *place = name;
        count += 1;
    }
    (ids, count)
}

impl Body {
    /// The types there are.
    pub(super) const KINDS: core::ops::RangeInclusive<u8> = 1..=7;
    /// The longest body in bytes: a role with three digests.
    pub const BYTES_MAX: usize = 5 + 2 + 8 * Received::MAX;

    /// The type's number.
    pub(super) fn kind(&self) -> u8 {
        match self {
            Body::Greeting { .. } => 1,
            Body::GreetingAck { .. } => 2,
            Body::MovedNotice { .. } => 3,
            Body::HandoffAck { .. } => 4,
            Body::Completion { .. } => 5,
            Body::SetRole { .. } => 6,
            Body::RoleAck { .. } => 7,
        }
    }

    /// The type in words, for reports.
    pub const fn name(&self) -> &'static str {
        match self {
            Body::Greeting { .. } => "greeting",
            Body::GreetingAck { .. } => "greeting ack",
            Body::MovedNotice { .. } => "moved notice",
            Body::HandoffAck { .. } => "handoff ack",
            Body::Completion { .. } => "completion",
            Body::SetRole { .. } => "set role",
            Body::RoleAck { .. } => "role ack",
        }
    }

    pub(super) fn emit(&self, into: &mut Vec<u8>) {
        match *self {
            Body::Greeting { previous, wants_buffer, lifetime_s } => {
                into.push(u8::from(wants_buffer));
                into.extend_from_slice(&lifetime_s.to_be_bytes());
                previous.iter().for_each(|address| into.extend_from_slice(&address.octets()));
            }
            Body::MovedNotice { wants_buffer, lifetime_s } => {
                into.push(u8::from(wants_buffer));
                into.extend_from_slice(&lifetime_s.to_be_bytes());
            }
            Body::HandoffAck { status, buffered } => {
                into.push(status.0);
                into.extend_from_slice(&buffered.to_be_bytes());
            }
            Body::GreetingAck { status } | Body::Completion { status } => into.push(status.0),
            Body::SetRole { role, group, received } => {
                into.push(role as u8);
                into.extend_from_slice(&group.octets());
                received.emit(into);
            }
            Body::RoleAck { status, role } => into.extend_from_slice(&[status.0, role as u8]),
        }
    }

    /// Reads the body of a type.
    pub(super) fn parse(kind: u8, bytes: &[u8]) -> Result<Body, Error> {
        let wrong = Error::Length { field: "body of a handoff message", value: bytes.len() };
        match (kind, bytes) {
            (1, [flag, _, _, addresses @ ..]) => {
                let (addresses, []) = addresses.as_chunks::<4>() else { return Err(wrong) };
                if addresses.len() > Previous::MAX {
                    return Err(wrong);
                }
                Ok(Body::Greeting {
                    previous: Previous::new(addresses.iter().map(|octets| address(octets, 0))),
                    wants_buffer: truth(*flag)?,
                    lifetime_s: be16(bytes, 1),
                })
            }
            (2, [status]) => Ok(Body::GreetingAck { status: Status(*status) }),
            (3, [flag, _, _]) => {
                Ok(Body::MovedNotice { wants_buffer: truth(*flag)?, lifetime_s: be16(bytes, 1) })
            }
            (4, [status, _, _]) => {
                Ok(Body::HandoffAck { status: Status(*status), buffered: be16(bytes, 1) })
            }
            (5, [status]) => Ok(Body::Completion { status: Status(*status) }),
            (6, [role, _, _, _, _, received @ ..]) => Ok(Body::SetRole {
                role: Role::parse(*role)?,
                group: address(bytes, 1),
                received: Received::parse(received)?,
            }),
            (7, [status, role]) => {
                Ok(Body::RoleAck { status: Status(*status), role: Role::parse(*role)? })
            }
            _ => Err(wrong),
        }
    }
}

fn truth(byte: u8) -> Result<bool, Error> {
    match byte {
        0 | 1 => Ok(byte == 1),
        _ => Err(Error::Unsupported { field: "flag", value: byte.into() }),
    }
}
