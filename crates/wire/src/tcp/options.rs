//! TCP options (RFC 9293, 3.1; RFC 7323; RFC 2018).
//!
//! [`Options`] keeps all of them as bytes and in order, with padding and unknown kinds, and reads
//! or writes the known ones in place.

use super::Seq;
use crate::{Error, bytes::be32};

/// Option kinds (IANA "TCP Option Kind Numbers").
pub mod kind {
    /// End of option list.
    pub const END: u8 = 0;
    /// No operation.
    pub const NOP: u8 = 1;
    /// Maximum segment size, RFC 9293.
    pub const MSS: u8 = 2;
    /// Window scale, RFC 7323.
    pub const WINDOW_SCALE: u8 = 3;
    /// SACK permitted, RFC 2018.
    pub const SACK_PERMITTED: u8 = 4;
    /// SACK blocks, RFC 2018.
    pub const SACK: u8 = 5;
    /// Timestamps, RFC 7323.
    pub const TIMESTAMPS: u8 = 8;
    /// MD5 signature, RFC 2385.
    pub const MD5: u8 = 19;
    /// TCP-AO, RFC 5925.
    pub const AUTHENTICATION: u8 = 29;
    /// Multipath TCP, RFC 8684.
    pub const MPTCP: u8 = 30;
    /// Fast Open cookie, RFC 7413.
    pub const FAST_OPEN: u8 = 34;
    /// Accurate ECN order 0, RFC 9768.
    pub const ACCURATE_ECN_0: u8 = 172;
    /// Accurate ECN order 1, RFC 9768.
    pub const ACCURATE_ECN_1: u8 = 174;
    /// Experimental, RFC 4727 and RFC 6994.
    pub const EXPERIMENT_1: u8 = 253;
    /// Experimental, RFC 4727 and RFC 6994.
    pub const EXPERIMENT_2: u8 = 254;
}

/// The mark of an ACK that a mobile host sends when a handoff is over (CI-FRX-4): the experimental
/// option of RFC 6994 with an identifier of our own, which nobody has registered, and no data.
pub const HANDOFF_MARK: [u8; 4] = [kind::EXPERIMENT_1, 4, b'L', b'H'];

/// Timestamps option (RFC 7323, 3.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Timestamps {
    /// TSval: the sender's clock.
    pub value: u32,
    /// TSecr: the peer's clock, echoed.
    pub echo: u32,
}

/// A SACK block: bytes from `start` up to, not including, `end` (RFC 2018).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SackBlock {
    /// First byte received.
    pub start: Seq,
    /// First byte not received.
    pub end: Seq,
}

/// One option of a list, as [`Options::iter`] meets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TcpOption<'a> {
    /// Padding.
    Nop,
    /// Maximum segment size in bytes.
    Mss(u16),
    /// Shift count as sent; values above 14 count as 14 (RFC 7323, 2.3), which is the reader's job.
    WindowScale(u8),
    /// SACK may be used.
    SackPermitted,
    /// The blocks' bytes: a whole number of blocks.
    Sack(SackBlocks<'a>),
    /// Timestamps.
    Timestamps(Timestamps),
    /// Any other option, or a known kind with an unusual length: its data without kind and length.
    Unknown {
        /// Option kind.
        kind: u8,
        /// Data.
        data: &'a [u8],
    },
}

/// SACK blocks in the order sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SackBlocks<'a>(&'a [u8]);

impl Iterator for SackBlocks<'_> {
    type Item = SackBlock;

    #[inline]
    fn next(&mut self) -> Option<SackBlock> {
        let (block, rest) = self.0.split_first_chunk::<8>()?;
        self.0 = rest;
        Some(SackBlock { start: Seq(be32(block, 0)), end: Seq(be32(block, 4)) })
    }
}

/// The option bytes of one header, at most 40, unparsed and in order.
#[derive(Clone, Copy)]
pub struct Options {
    length: u8,
    bytes: [u8; Options::BYTES_MAX],
}

impl Options {
    /// Room for options: a data offset of 15 words less the 20 bytes of the header.
    pub const BYTES_MAX: usize = 40;
    /// What stands before the timestamps when they are the only option: NOP NOP kind length.
    const ALIGNED_TIMESTAMPS: [u8; 4] = [kind::NOP, kind::NOP, kind::TIMESTAMPS, 10];

    /// Takes option bytes as they are, valid or not; see [`Options::validate`].
    ///
    /// # Errors
    /// [`Error::Length`] if there are more than 40.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        let mut options = Options::default();
        let room = options.bytes.get_mut(..bytes.len());
        let room = room.ok_or(Error::Length { field: "TCP options", value: bytes.len() })?;
        room.copy_from_slice(bytes);
        options.length = bytes.len() as u8;
        Ok(options)
    }

    /// The option bytes.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }

    /// True if there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Length padded to a multiple of four, as it stands on the wire.
    #[inline]
    pub fn padded_bytes(&self) -> u32 {
        (u32::from(self.length) + 3) & !3
    }

    /// Walks the list; ends at END, at the end of the bytes, or at an option with a bad length.
    pub fn iter(&self) -> Iter<'_> {
        Iter { rest: self.as_bytes() }
    }

    /// Checks that every option's length lies within the list.
    ///
    /// # Errors
    /// [`Error::TcpOption`] for the first one that does not.
    #[inline]
    pub fn validate(&self) -> Result<(), Error> {
        if self.is_only_aligned_timestamps() { Ok(()) } else { self.walk() }
    }

    /// The one list that nearly every segment of an established connection carries.
    #[inline]
    fn is_only_aligned_timestamps(&self) -> bool {
        self.length == 12 && self.bytes[..4] == Self::ALIGNED_TIMESTAMPS
    }

    fn walk(&self) -> Result<(), Error> {
        let mut rest = self.as_bytes();
        while let Some((&kind, after)) = rest.split_first() {
            rest = match kind {
                kind::END => return Ok(()),
                kind::NOP => after,
                _ => {
                    let length = after.first().copied().unwrap_or(0);
                    let fits = length >= 2 && usize::from(length) <= rest.len();
                    if !fits {
                        return Err(Error::TcpOption { kind, length });
                    }
                    &rest[usize::from(length)..]
                }
            };
        }
        Ok(())
    }

    /// The timestamps, if present.
    #[inline(always)]
    pub fn timestamps(&self) -> Option<Timestamps> {
        if self.length >= 12 && self.bytes[..4] == Self::ALIGNED_TIMESTAMPS {
            let (value, echo) = (be32(&self.bytes, 4), be32(&self.bytes, 8));
            return Some(Timestamps { value, echo });
        }
        if self.length == 0 { None } else { self.find_timestamps() }
    }

    #[cold]
    fn find_timestamps(&self) -> Option<Timestamps> {
        self.iter().find_map(|option| match option {
            TcpOption::Timestamps(timestamps) => Some(timestamps),
            _ => None,
        })
    }

    /// The SACK blocks; an empty iterator if there are none.
    #[inline]
    pub fn sack_blocks(&self) -> SackBlocks<'_> {
        if self.length == 0 || self.is_only_aligned_timestamps() {
            return SackBlocks(&[]);
        }
        self.find_sack_blocks()
    }

    #[inline(never)]
    fn find_sack_blocks(&self) -> SackBlocks<'_> {
        let found = self.iter().find_map(|option| match option {
            TcpOption::Sack(blocks) => Some(blocks),
            _ => None,
        });
        found.unwrap_or(SackBlocks(&[]))
    }

    /// The maximum segment size, if present.
    pub fn mss(&self) -> Option<u16> {
        self.iter().find_map(|option| match option {
            TcpOption::Mss(mss) => Some(mss),
            _ => None,
        })
    }

    /// The window scale as sent, if present.
    pub fn window_scale(&self) -> Option<u8> {
        self.iter().find_map(|option| match option {
            TcpOption::WindowScale(shift) => Some(shift),
            _ => None,
        })
    }

    /// True if SACK is permitted.
    pub fn sack_permitted(&self) -> bool {
        self.iter().any(|option| option == TcpOption::SackPermitted)
    }

    /// True if the segment is marked ([`HANDOFF_MARK`]).
    #[inline]
    pub fn has_handoff_mark(&self) -> bool {
        let is_usual = self.length == 0 || self.is_only_aligned_timestamps();
        !is_usual && self.find_handoff_mark()
    }

    #[cold]
    fn find_handoff_mark(&self) -> bool {
        let [kind, _, first, second] = HANDOFF_MARK;
        let mark = TcpOption::Unknown { kind, data: &[first, second] };
        self.iter().any(|option| option == mark)
    }

    /// Writes new timestamp values into the option where it stands; false if there is none.
    pub fn set_timestamps(&mut self, timestamps: Timestamps) -> bool {
        let length = usize::from(self.length);
        let mut at = 0;
        while at < length {
            let step = match self.bytes[at] {
                kind::END => return false,
                kind::NOP => 1,
                kind::TIMESTAMPS if at + 10 <= length && self.bytes[at + 1] == 10 => {
                    self.bytes[at + 2..at + 6].copy_from_slice(&timestamps.value.to_be_bytes());
                    self.bytes[at + 6..at + 10].copy_from_slice(&timestamps.echo.to_be_bytes());
                    return true;
                }
                _ if at + 1 < length && self.bytes[at + 1] >= 2 => usize::from(self.bytes[at + 1]),
                _ => return false,
            };
            at += step;
        }
        false
    }

    /// Appends NOP NOP timestamps, 12 bytes.
    ///
    /// # Errors
    /// [`Error::Length`] if there is no room.
    #[inline]
    pub fn push_timestamps(&mut self, timestamps: Timestamps) -> Result<(), Error> {
        let mut bytes = [0; 12];
        bytes[..4].copy_from_slice(&Self::ALIGNED_TIMESTAMPS);
        bytes[4..8].copy_from_slice(&timestamps.value.to_be_bytes());
        bytes[8..].copy_from_slice(&timestamps.echo.to_be_bytes());
        self.push(&bytes)
    }

    /// Appends NOP NOP and as many of the blocks as fit, at most four; returns how many.
    pub fn push_sack(&mut self, blocks: &[SackBlock]) -> usize {
        let room = Self::BYTES_MAX - usize::from(self.length);
        let count = blocks.len().min(room.saturating_sub(4) / 8);
        if count == 0 {
            return 0;
        }
        let mut bytes = [kind::NOP; Self::BYTES_MAX];
        bytes[2] = kind::SACK;
        bytes[3] = (2 + 8 * count) as u8;
        for (block, room) in blocks[..count].iter().zip(bytes[4..].chunks_exact_mut(8)) {
            room[..4].copy_from_slice(&block.start.0.to_be_bytes());
            room[4..].copy_from_slice(&block.end.0.to_be_bytes());
        }
        let pushed = self.push(&bytes[..4 + 8 * count]);
        debug_assert!(pushed.is_ok(), "the room was measured");
        count
    }

    /// Appends one option (or padding) given as bytes, kind and length included.
    ///
    /// # Errors
    /// [`Error::Length`] if there is no room.
    #[inline]
    pub fn push(&mut self, option: &[u8]) -> Result<(), Error> {
        let start = usize::from(self.length);
        let room = self.bytes.get_mut(start..start + option.len());
        let room = room.ok_or(Error::Length { field: "TCP options", value: option.len() })?;
        room.copy_from_slice(option);
        self.length += option.len() as u8;
        Ok(())
    }
}

impl Default for Options {
    #[inline]
    fn default() -> Self {
        Options { length: 0, bytes: [0; Self::BYTES_MAX] }
    }
}

impl PartialEq for Options {
    fn eq(&self, other: &Self) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for Options {}

impl core::fmt::Debug for Options {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// Iterator over the options of one header.
pub struct Iter<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Iter<'a> {
    type Item = TcpOption<'a>;

    fn next(&mut self) -> Option<TcpOption<'a>> {
        let (&kind, after) = self.rest.split_first()?;
        match kind {
            kind::END => {
                self.rest = &[];
                None
            }
            kind::NOP => {
                self.rest = after;
                Some(TcpOption::Nop)
            }
            _ => {
                let length = usize::from(*after.first()?);
                let Some(data) = self.rest.get(2..length) else {
                    self.rest = &[];
                    return None;
                };
                self.rest = &self.rest[length..];
                Some(classify(kind, data))
            }
        }
    }
}

fn classify(kind: u8, data: &[u8]) -> TcpOption<'_> {
    match (kind, data) {
        (kind::MSS, &[high, low]) => TcpOption::Mss(u16::from_be_bytes([high, low])),
        (kind::WINDOW_SCALE, &[shift]) => TcpOption::WindowScale(shift),
        (kind::SACK_PERMITTED, &[]) => TcpOption::SackPermitted,
        (kind::SACK, data) if !data.is_empty() && data.len().is_multiple_of(8) => {
            TcpOption::Sack(SackBlocks(data))
        }
        (kind::TIMESTAMPS, data) if data.len() == 8 => {
            TcpOption::Timestamps(Timestamps { value: be32(data, 0), echo: be32(data, 4) })
        }
        _ => TcpOption::Unknown { kind, data },
    }
}
