//! The TCP header (RFC 9293, 3.1).

use super::{Flags, Options, Seq};

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
}
