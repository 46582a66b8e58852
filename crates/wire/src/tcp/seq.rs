//! Sequence numbers, modulo 2^32 (RFC 9293, 3.4; MOD-18).

/// A sequence number: a position in the byte stream modulo 2^32 (RFC 9293, 3.4).
///
/// It has no total order, hence no `Ord`: "before" is meant in the half-space of 2^31 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Seq(pub u32);

impl Seq {
    /// True if `self` lies before `other`.
    #[inline]
    pub fn before(self, other: Seq) -> bool {
        (self.0.wrapping_sub(other.0) as i32) < 0
    }

    /// True if `self` is `other` or lies before it.
    #[inline]
    pub fn at_or_before(self, other: Seq) -> bool {
        (self.0.wrapping_sub(other.0) as i32) <= 0
    }

    /// True if `self` lies after `other`.
    #[inline]
    pub fn after(self, other: Seq) -> bool {
        (self.0.wrapping_sub(other.0) as i32) > 0
    }

    /// True if `self` is `other` or lies after it.
    #[inline]
    pub fn at_or_after(self, other: Seq) -> bool {
        (self.0.wrapping_sub(other.0) as i32) >= 0
    }

    /// Bytes from `earlier` to `self`, modulo 2^32.
    #[inline]
    pub fn since(self, earlier: Seq) -> u32 {
        self.0.wrapping_sub(earlier.0)
    }

    /// The later of the two.
    #[inline]
    pub fn max(self, other: Seq) -> Seq {
        if self.before(other) { other } else { self }
    }

    /// The earlier of the two.
    #[inline]
    pub fn min(self, other: Seq) -> Seq {
        if other.before(self) { other } else { self }
    }
}

impl core::ops::Add<u32> for Seq {
    type Output = Seq;
    #[inline]
    fn add(self, bytes: u32) -> Seq {
        Seq(self.0.wrapping_add(bytes))
    }
}

impl core::ops::AddAssign<u32> for Seq {
    #[inline]
    fn add_assign(&mut self, bytes: u32) {
        *self = *self + bytes;
    }
}

impl core::ops::Sub<u32> for Seq {
    type Output = Seq;
    #[inline]
    fn sub(self, bytes: u32) -> Seq {
        Seq(self.0.wrapping_sub(bytes))
    }
}

impl core::fmt::Display for Seq {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.0.fmt(f)
    }
}
