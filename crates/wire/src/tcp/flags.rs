//! The control bits of a TCP header (RFC 9293, 3.1; RFC 3168; RFC 9768).

/// The control bits, with AE of Accurate ECN (RFC 9293, 3.1; RFC 3168; RFC 9768) and the three
/// reserved bits above it. The upper four bits are always 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flags(pub u16);

impl Flags {
    /// No more data from the sender.
    pub const FIN: Flags = Flags(0x001);
    /// Synchronise sequence numbers.
    pub const SYN: Flags = Flags(0x002);
    /// Reset the connection.
    pub const RST: Flags = Flags(0x004);
    /// Push.
    pub const PSH: Flags = Flags(0x008);
    /// The acknowledgment number is valid.
    pub const ACK: Flags = Flags(0x010);
    /// The urgent pointer is valid.
    pub const URG: Flags = Flags(0x020);
    /// ECN echo.
    pub const ECE: Flags = Flags(0x040);
    /// Congestion window reduced.
    pub const CWR: Flags = Flags(0x080);
    /// Accurate ECN (formerly NS).
    pub const AE: Flags = Flags(0x100);

    /// True if all bits of `other` are set.
    #[inline]
    pub const fn contains(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }

    /// True if any bit of `other` is set.
    #[inline]
    pub const fn intersects(self, other: Flags) -> bool {
        self.0 & other.0 != 0
    }

    /// Both sets of bits.
    #[inline]
    pub const fn with(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }

    /// The bits of `self` that are not in `other`.
    #[inline]
    pub const fn without(self, other: Flags) -> Flags {
        Flags(self.0 & !other.0)
    }
}

impl core::fmt::Display for Flags {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        const LETTERS: [(Flags, char); 9] = [
            (Flags::SYN, 'S'),
            (Flags::FIN, 'F'),
            (Flags::RST, 'R'),
            (Flags::PSH, 'P'),
            (Flags::ACK, '.'),
            (Flags::URG, 'U'),
            (Flags::ECE, 'E'),
            (Flags::CWR, 'W'),
            (Flags::AE, 'e'),
        ];
        for (flag, letter) in LETTERS {
            if self.contains(flag) {
                write!(f, "{letter}")?;
            }
        }
        Ok(())
    }
}
