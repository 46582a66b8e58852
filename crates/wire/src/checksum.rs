//! The Internet checksum (RFC 1071), its pseudo-headers (RFC 9293, 3.1; RFC 8200, 8.1) and its
//! incremental update (RFC 1624, equation 3).
//!
//! The ones' complement sum does not depend on byte order (RFC 1071, section 2), so bytes are
//! summed as 32-bit words in the machine's own order, in independent lanes that a compiler turns
//! into vector code; folding and swapping happen once at the end.

use crate::ip;
use core::net::IpAddr;

/// Whether a parser checks the checksums it meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checksums {
    /// Refuse bytes whose checksum is wrong.
    Verify,
    /// Do not look: a frame whose checksum is still to be completed by hardware carries the
    /// pseudo-header's sum only, and a capture at such a sender shows it so.
    Trust,
}

/// What a checksum field says about the bytes it covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The field is the checksum of RFC 1071.
    Right,
    /// The field is 0xffff where RFC 1071 gives 0: the same number in ones' complement, which
    /// senders with the update of RFC 1141 produce (RFC 1624, section 3). Receivers accept it.
    NegativeZero,
    /// The bytes are not those that were sent.
    Wrong,
}

/// A running ones' complement sum of 16-bit words.
///
/// Starts at zero (`Sum::default()`). Every piece added, except the last, has an even length.
/// Exact for up to 2^32 words.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sum(u64);

impl Sum {
    /// Adds bytes; an odd last byte counts as the upper half of a word.
    #[inline]
    #[must_use]
    pub fn add_bytes(self, bytes: &[u8]) -> Sum {
        let (blocks, rest) = bytes.as_chunks::<32>();
        let mut lanes = [0_u64; 8];
        for block in blocks {
            let (words, _) = block.as_chunks::<4>();
            for (lane, word) in lanes.iter_mut().zip(words) {
                *lane += u64::from(u32::from_ne_bytes(*word));
            }
        }
        let (words, tail) = rest.as_chunks::<4>();
        let mut sum = self.0 + lanes.iter().sum::<u64>();
        for word in words {
            sum += u64::from(u32::from_ne_bytes(*word));
        }
        let mut last = [0; 4];
        last[..tail.len()].copy_from_slice(tail);
        Sum(sum + u64::from(u32::from_ne_bytes(last)))
    }

    /// Adds one 16-bit word.
    #[inline]
    #[must_use]
    pub fn add_word(self, word: u16) -> Sum {
        Sum(self.0 + u64::from(word.to_be()))
    }

    /// Adds two words given as one 32-bit number.
    #[inline]
    #[must_use]
    pub fn add_double_word(self, words: u32) -> Sum {
        Sum(self.0 + u64::from(words.to_be()))
    }

    /// The checksum field: the complement of the folded sum. It is 0xffff only if every word
    /// added was zero.
    #[inline]
    #[must_use]
    pub fn checksum(self) -> u16 {
        let mut sum = (self.0 >> 32) + (self.0 & 0xffff_ffff);
        for _ in 0..3 {
            sum = (sum >> 16) + (sum & 0xffff);
        }
        !u16::from_be(sum as u16)
    }

    /// Compares `field`, as it was received, with the checksum of what was added, which leaves
    /// the field itself out.
    #[inline]
    #[must_use]
    pub fn verdict(self, field: u16) -> Verdict {
        match self.checksum() {
            checksum if checksum == field => Verdict::Right,
            0 if field == 0xffff => Verdict::NegativeZero,
            _ => Verdict::Wrong,
        }
    }
}

/// The sum of the pseudo-header of an upper-layer message of `length` bytes under `ip`: IPv4 as in
/// RFC 9293, 3.1, IPv6 as in RFC 8200, 8.1. `ip.protocol` is the upper layer's.
#[inline]
#[must_use]
pub fn pseudo_header(ip: &ip::Header, length: u32) -> Sum {
    let sum = Sum::default().add_word(u16::from(ip.protocol.0)).add_double_word(length);
    add_address(add_address(sum, ip.source), ip.destination)
}

#[inline]
fn add_address(sum: Sum, address: IpAddr) -> Sum {
    match address {
        IpAddr::V4(address) => sum.add_bytes(&address.octets()),
        IpAddr::V6(address) => sum.add_bytes(&address.octets()),
    }
}

/// A field before and after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change<T> {
    /// Its value under the old checksum.
    pub old: T,
    /// Its value under the new one.
    pub new: T,
}

/// The checksum after a 16-bit field changed (RFC 1624, equation 3). Equal to a full computation
/// as long as not every covered word is zero, which no IP header or pseudo-header is.
#[inline]
#[must_use]
pub fn update_word(checksum: u16, change: Change<u16>) -> u16 {
    let sum = Sum::default().add_word(!checksum).add_word(!change.old).add_word(change.new);
    sum.checksum()
}

/// The checksum after a 32-bit field, at an even offset, changed; see [`update_word`].
#[inline]
#[must_use]
pub fn update_double_word(checksum: u16, change: Change<u32>) -> u16 {
    let sum = Sum::default().add_word(!checksum);
    sum.add_double_word(!change.old).add_double_word(change.new).checksum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_rfc_1071_section_3() {
        let sum = Sum::default().add_bytes(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]);
        assert_eq!(sum.checksum(), !0xddf2);
    }

    #[test]
    fn the_example_of_rfc_1624_section_4() {
        // Equation 2 of RFC 1141 gives 0xffff here; the right answer is 0x0000.
        assert_eq!(update_word(0xdd2f, Change { old: 0x5555, new: 0x3285 }), 0x0000);
    }

    #[test]
    fn an_odd_byte_is_the_upper_half_of_a_word() {
        assert_eq!(Sum::default().add_bytes(&[0xab]).checksum(), !0xab00);
        assert_eq!(Sum::default().add_bytes(&[0, 0, 0xab]).checksum(), !0xab00);
    }

    #[test]
    fn the_two_zeros_are_told_apart() {
        let sum = Sum::default().add_bytes(&[0xff, 0xff]);
        assert_eq!(sum.verdict(0), Verdict::Right);
        assert_eq!(sum.verdict(0xffff), Verdict::NegativeZero);
        assert_eq!(sum.verdict(1), Verdict::Wrong);
        let nothing = Sum::default().add_bytes(&[0, 0]);
        assert_eq!(nothing.verdict(0xffff), Verdict::Right);
        assert_eq!(nothing.verdict(0), Verdict::Wrong);
    }
}
