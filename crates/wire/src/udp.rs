//! The UDP header (RFC 768; RFC 8200, 8.1 for IPv6).
//!
//! A checksum field of zero means that the sender computed none. RFC 768 allows that over IPv4;
//! over IPv6 tunnels may do it (RFC 6935), and boxes on the path must let it pass (RFC 6936,
//! section 5). [`Checksum`] keeps which it was, so what was parsed is emitted byte for byte.

use crate::checksum::{Sum, Verdict};
use crate::{Error, bytes::be16};

/// Whether a datagram is covered by a checksum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Checksum {
    /// The field is the checksum; a computed zero is sent as 0xffff (RFC 768).
    #[default]
    Present,
    /// The field is zero: none was computed.
    Absent,
}

/// A UDP header. The length follows from the payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
    /// Whether there is a checksum.
    pub checksum: Checksum,
}

impl Header {
    /// Length on the wire, in bytes.
    pub const BYTES: usize = 8;

    /// A header with a checksum.
    pub fn new(source_port: u16, destination_port: u16) -> Self {
        Header { source_port, destination_port, checksum: Checksum::Present }
    }

    /// Reads the header at the start of `datagram`, the payload of one whole IP datagram. Returns
    /// it with the length field, which counts header and data and is at most `datagram.len()`.
    /// IP payload beyond it is surplus (RFC 9868).
    ///
    /// # Errors
    /// [`Error::Truncated`] if the header or the length it announces is cut, [`Error::Length`] if
    /// that length is below eight.
    #[inline]
    pub fn parse(datagram: &[u8]) -> Result<(Self, usize), Error> {
        let have = datagram.len();
        let header = datagram
            .first_chunk::<{ Self::BYTES }>()
            .ok_or(Error::Truncated { need: Self::BYTES, have })?;
        let length = usize::from(be16(header, 4));
        if length < Self::BYTES {
            return Err(Error::Length { field: "UDP length", value: length });
        }
        if length > have {
            return Err(Error::Truncated { need: length, have });
        }
        let checksum = if be16(header, 6) == 0 { Checksum::Absent } else { Checksum::Present };
        let (source_port, destination_port) = (be16(header, 0), be16(header, 2));
        Ok((Header { source_port, destination_port, checksum }, length))
    }

    /// What the checksum of `datagram`, from which this header was parsed, says; `datagram` ends
    /// where the length field says. `pseudo_header` is [`crate::checksum::pseudo_header`] for that
    /// length.
    #[inline]
    pub fn verdict(&self, datagram: &[u8], pseudo_header: Sum) -> Verdict {
        let field = be16(datagram, 6);
        if field == 0 {
            return Verdict::Right;
        }
        let sum = pseudo_header.add_bytes(&datagram[..6]).add_bytes(&datagram[8..]);
        if nonzero(sum.checksum()) == field { Verdict::Right } else { Verdict::Wrong }
    }

    /// Appends header and payload.
    ///
    /// # Errors
    /// [`Error::Length`] if they exceed 65535 bytes; then nothing is appended.
    pub fn emit(
        &self,
        pseudo_header: Sum,
        payload: &[u8],
        into: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let value = Self::BYTES + payload.len();
        let length =
            u16::try_from(value).map_err(|_| Error::Length { field: "UDP length", value })?;
        let mut header = [0; Self::BYTES];
        header[..2].copy_from_slice(&self.source_port.to_be_bytes());
        header[2..4].copy_from_slice(&self.destination_port.to_be_bytes());
        header[4..6].copy_from_slice(&length.to_be_bytes());
        if self.checksum == Checksum::Present {
            let checksum = nonzero(pseudo_header.add_bytes(&header).add_bytes(payload).checksum());
            header[6..].copy_from_slice(&checksum.to_be_bytes());
        }
        into.extend_from_slice(&header);
        into.extend_from_slice(payload);
        Ok(())
    }
}

/// A computed checksum as it is sent: zero would mean "none" (RFC 768).
#[inline]
fn nonzero(checksum: u16) -> u16 {
    if checksum == 0 { 0xffff } else { checksum }
}
