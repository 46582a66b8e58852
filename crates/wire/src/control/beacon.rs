//! Beacons (CI-HO-1, MCAST-7, PRE-1).

use super::{MAGIC, VERSION, begins_as_ours};
use crate::mobile_ip::address;
use crate::{Error, bytes::be16, bytes::be32, bytes::be64};
use core::net::Ipv4Addr;

/// What a base station broadcasts in its cell. It proves nothing: whoever acts on it asks the base
/// station by messages that do.
///
/// ```text
///   | magic | version | 0 | id (4) | address (4) | sent at (8) | interval (2) | sequence (2) |
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Beacon {
    /// The base station's id (PRE-1).
    pub id: u32,
    /// The base station's address, to which handoff messages go (MCAST-7).
    pub address: Ipv4Addr,
    /// The base station's clock in nanoseconds, as in [`super::Header::sent_at`] (MCAST-7).
    pub sent_at: u64,
    /// Milliseconds until the next one; at least 1.
    pub interval_ms: u16,
    /// Counts beacons, modulo 2^16.
    pub sequence: u16,
}

impl Beacon {
    /// The type in the fourth byte.
    pub const KIND: u8 = 0;
    /// Length in bytes.
    pub const BYTES: usize = 24;

    /// Reads a whole UDP payload.
    ///
    /// # Errors
    /// [`Error::Truncated`] or [`Error::Length`] if it is not exactly as long as a beacon,
    /// [`Error::Unsupported`] if it does not begin as one or its interval is 0.
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        let have = bytes.len();
        let (fixed, rest) = bytes
            .split_first_chunk::<{ Self::BYTES }>()
            .ok_or(Error::Truncated { need: Self::BYTES, have })?;
        let kind = begins_as_ours(fixed)?;
        if kind != Self::KIND {
            return Err(Error::Unsupported { field: "type of a beacon", value: kind.into() });
        }
        if !rest.is_empty() {
            return Err(Error::Length { field: "beacon", value: have });
        }
        let interval_ms = be16(fixed, 20);
        if interval_ms == 0 {
            return Err(Error::Unsupported { field: "interval of beacons", value: 0 });
        }
        Ok(Beacon {
            id: be32(fixed, 4),
            address: address(fixed, 8),
            sent_at: be64(fixed, 12),
            interval_ms,
            sequence: be16(fixed, 22),
        })
    }

    /// Appends the beacon. An interval of 0 is written as 1.
    pub fn emit(&self, into: &mut Vec<u8>) {
        into.extend_from_slice(&MAGIC);
        into.extend_from_slice(&[VERSION, Self::KIND]);
        into.extend_from_slice(&self.id.to_be_bytes());
        into.extend_from_slice(&self.address.octets());
        into.extend_from_slice(&self.sent_at.to_be_bytes());
        into.extend_from_slice(&self.interval_ms.max(1).to_be_bytes());
        into.extend_from_slice(&self.sequence.to_be_bytes());
    }
}
