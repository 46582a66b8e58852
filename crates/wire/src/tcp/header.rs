//! The TCP header (RFC 9293, 3.1).

use super::{Flags, Options, Seq};
use crate::checksum::{Sum, Verdict};
use crate::{Error, bytes::be16, bytes::be32};

/// A TCP header. The checksum is computed on emission and checked on parsing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
    /// Sequence number of the first payload byte, or of the SYN.
    pub seq: Seq,
    /// Next sequence number expected; meaningful with [`Flags::ACK`].
    pub ack: Seq,
    /// Control bits.
    pub flags: Flags,
    /// The window field, not scaled.
    pub window: u16,
    /// Urgent pointer.
    pub urgent: u16,
    /// Options, byte for byte.
    pub options: Options,
}

impl Header {
    /// Length without options, in bytes.
    pub const BASE_BYTES: u32 = 20;
    /// The twelve bits beside the data offset.
    const FLAGS_MASK: u16 = 0x0fff;

    /// A header without options, ports only.
    pub fn new(source_port: u16, destination_port: u16) -> Self {
        Header {
            source_port,
            destination_port,
            seq: Seq(0),
            ack: Seq(0),
            flags: Flags::default(),
            window: 0,
            urgent: 0,
            options: Options::default(),
        }
    }

    /// Length on the wire with options padded to four bytes.
    #[inline]
    pub fn bytes(&self) -> u32 {
        Self::BASE_BYTES + self.options.padded_bytes()
    }

    /// Sequence space taken by a segment with `payload` bytes: SYN and FIN count one each.
    #[inline]
    pub fn sequence_length(&self, payload: u32) -> u32 {
        payload
            + u32::from(self.flags.contains(Flags::SYN))
            + u32::from(self.flags.contains(Flags::FIN))
    }

    /// Reads the header at the start of `segment`, the payload of one whole IP datagram. Returns
    /// it with its length in bytes, where the segment's payload begins.
    ///
    /// # Errors
    /// [`Error::Truncated`] if the header is cut, [`Error::Length`] if the data offset is below
    /// five words, [`Error::TcpOption`] if the options cannot be walked.
    #[inline]
    pub fn parse(segment: &[u8]) -> Result<(Header, usize), Error> {
        const BASE: usize = Header::BASE_BYTES as usize;
        let have = segment.len();
        let (fixed, rest) =
            segment.split_first_chunk::<BASE>().ok_or(Error::Truncated { need: BASE, have })?;
        let length = usize::from(fixed[12] >> 4) * 4;
        let options_length = length
            .checked_sub(BASE)
            .ok_or(Error::Length { field: "TCP data offset", value: length })?;
        let options = rest.get(..options_length).ok_or(Error::Truncated { need: length, have })?;
        let options = Options::from_bytes(options)?;
        options.validate()?;
        let header = Header {
            source_port: be16(fixed, 0),
            destination_port: be16(fixed, 2),
            seq: Seq(be32(fixed, 4)),
            ack: Seq(be32(fixed, 8)),
            flags: Flags(be16(fixed, 12) & Self::FLAGS_MASK),
            window: be16(fixed, 14),
            urgent: be16(fixed, 18),
            options,
        };
        Ok((header, length))
    }

    /// What the checksum of `segment`, which [`Header::parse`] accepted, says. `pseudo_header` is
    /// [`crate::checksum::pseudo_header`] for the segment's length.
    ///
    /// # Panics
    /// If `segment` is shorter than a header.
    #[inline]
    pub fn verdict(segment: &[u8], pseudo_header: Sum) -> Verdict {
        pseudo_header.add_bytes(&segment[..16]).add_bytes(&segment[18..]).verdict(be16(segment, 16))
    }

    /// Appends header and payload, the checksum complete. Options are padded with END to a
    /// multiple of four bytes.
    pub fn emit(&self, pseudo_header: Sum, payload: &[u8], into: &mut Vec<u8>) {
        const BASE: usize = Header::BASE_BYTES as usize;
        let length = self.bytes() as usize;
        let words = (length / 4) as u16;
        let options = self.options.as_bytes();
        let mut header = [0; BASE + Options::BYTES_MAX];
        header[..2].copy_from_slice(&self.source_port.to_be_bytes());
        header[2..4].copy_from_slice(&self.destination_port.to_be_bytes());
        header[4..8].copy_from_slice(&self.seq.0.to_be_bytes());
        header[8..12].copy_from_slice(&self.ack.0.to_be_bytes());
        let offset_and_flags = words << 12 | self.flags.0 & Self::FLAGS_MASK;
        header[12..14].copy_from_slice(&offset_and_flags.to_be_bytes());
        header[14..16].copy_from_slice(&self.window.to_be_bytes());
        header[18..20].copy_from_slice(&self.urgent.to_be_bytes());
        header[BASE..BASE + options.len()].copy_from_slice(options);
        let checksum = pseudo_header.add_bytes(&header[..length]).add_bytes(payload).checksum();
        header[16..18].copy_from_slice(&checksum.to_be_bytes());
        into.extend_from_slice(&header[..length]);
        into.extend_from_slice(payload);
    }
}
