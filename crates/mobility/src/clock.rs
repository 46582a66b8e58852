//! The time that messages carry, and how replays are told from it (MOD-10; RFC 5944, 5.7.1).
//!
//! Every message has the sender's clock, and every one a later time. A receiver takes a message
//! whose time is near its own and later than that of the last one from the same sender about the
//! same mobile host. So it needs no memory from before its own restart, beyond the tolerance.

use sansio::{Duration, Instant};

/// A node's clock: nanoseconds since 1970, or since the start of a simulated run.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// What it shows at [`Instant::ZERO`].
    zero: u64,
    /// Set forward by so much, from what others told.
    ahead: i64,
    last_stamp: u64,
}

impl Clock {
    /// Seconds from 1900, where NTP begins, to 1970 (RFC 5905, section 6).
    const NTP_TO_UNIX_S: u64 = 2_208_988_800;
    const SECOND: u64 = 1_000_000_000;

    /// A clock that shows `zero` at [`Instant::ZERO`].
    pub fn new(zero: u64) -> Self {
        Clock { zero, ahead: 0, last_stamp: 0 }
    }

    /// What it shows.
    pub fn read(&self, now: Instant) -> u64 {
        self.zero.saturating_add(now.as_nanos()).saturating_add_signed(self.ahead)
    }

    /// A time for a message: what the clock shows, or a nanosecond later than the last one.
    pub fn stamp(&mut self, now: Instant) -> u64 {
        self.last_stamp = self.read(now).max(self.last_stamp.saturating_add(1));
        self.last_stamp
    }

    /// Shows what another one shows, which was set by others.
    pub fn follow(&mut self, other: &Clock) {
        if (self.zero, self.ahead) != (other.zero, other.ahead) {
            (self.zero, self.ahead, self.last_stamp) = (other.zero, other.ahead, 0);
        }
    }

    /// Sets the clock to what a proved answer shows, back if need be: what it stamped before was
    /// too far ahead to be taken.
    pub fn set(&mut self, shown: u64, now: Instant) {
        let own = self.zero.saturating_add(now.as_nanos());
        self.ahead = shown.wrapping_sub(own).cast_signed();
        self.last_stamp = 0;
    }

    /// A time in NTP's format: seconds since 1900 modulo 2^32, and their fraction (RFC 5905,
    /// section 6), as the identification of a registration has it (RFC 5944, 5.7.1).
    pub fn to_ntp(nanos: u64) -> u64 {
        let seconds = (nanos / Self::SECOND).wrapping_add(Self::NTP_TO_UNIX_S);
        // Rounded up, so that `from_ntp` gives back the same nanosecond.
        let fraction = ((nanos % Self::SECOND) << 32).div_ceil(Self::SECOND);
        (seconds << 32).wrapping_add(fraction)
    }

    /// The time nearest to `near`, in nanoseconds, that [`Clock::to_ntp`] writes so.
    pub fn from_ntp(ntp: u64, near: u64) -> u64 {
        let near_s = (near / Self::SECOND).wrapping_add(Self::NTP_TO_UNIX_S);
        let difference = ((ntp >> 32) as u32).wrapping_sub(near_s as u32).cast_signed();
        let seconds = (near / Self::SECOND).saturating_add_signed(i64::from(difference));
        let fraction = ((ntp & 0xffff_ffff) * Self::SECOND) >> 32;
        seconds.saturating_mul(Self::SECOND).saturating_add(fraction)
    }
}

/// Why a time is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotTaken {
    /// Not later than the last one: a replay, a duplicate, or overtaken.
    NotLater,
    /// Too far from the receiver's clock.
    TooFar,
}

/// The last time that was taken of one sender.
#[derive(Clone, Copy, Debug, Default)]
pub struct Guard {
    last: u64,
}

impl Guard {
    /// How far clocks may differ: 7 s, the default of RFC 5944, 5.7.1.
    pub const TOLERANCE: Duration = Duration::from_secs(7);

    /// True for the very time that was taken last: the same message again.
    pub fn is_last(&self, sent_at: u64) -> bool {
        self.last == sent_at
    }

    /// Takes the time of a proved message, or says why not.
    ///
    /// # Errors
    /// [`NotTaken`], and nothing has changed.
    pub fn take(&mut self, sent_at: u64, own: u64, tolerance: Duration) -> Result<(), NotTaken> {
        if sent_at.abs_diff(own) > tolerance.as_nanos() {
            return Err(NotTaken::TooFar);
        }
        if sent_at <= self.last {
            return Err(NotTaken::NotLater);
        }
        self.last = sent_at;
        Ok(())
    }

    /// True if it may be forgotten: whatever it refuses is too far away by now.
    pub fn is_past(&self, own: u64, tolerance: Duration) -> bool {
        own > self.last.saturating_add(tolerance.as_nanos())
    }
}
