//! Quantities with their unit in the type.

use crate::Duration;
use core::fmt;

/// Bits per second; `Mbit/s` is 10^6.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BitRate(u64);

impl BitRate {
    /// A rate in bits per second; at least 1.
    pub const fn from_bps(bps: u64) -> Self {
        BitRate(if bps == 0 { 1 } else { bps })
    }

    /// A rate in units of 10^6 bits per second.
    pub const fn from_mbps(mbps: u64) -> Self {
        BitRate::from_bps(mbps * 1_000_000)
    }

    /// Bits per second.
    #[inline]
    pub const fn as_bps(self) -> u64 {
        self.0
    }

    /// How long `bytes` bytes take, rounded down to the nanosecond.
    #[inline]
    pub fn time_for(self, bytes: u32) -> Duration {
        Duration::from_nanos(u64::from(bytes) * 8_000_000_000 / self.0)
    }

    /// This rate times `share`, a number from 0 to 1; at least 1 bit/s.
    pub fn scaled(self, share: f64) -> BitRate {
        BitRate::from_bps((self.0 as f64 * share) as u64)
    }
}

/// Strength of a signal as a signal-to-noise ratio, in steps of 0.01 dB.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Signal(i32);

impl Signal {
    /// A ratio in whole decibels.
    pub const fn from_db(db: i16) -> Self {
        Signal(db as i32 * 100)
    }

    /// A ratio in hundredths of a decibel.
    pub const fn from_centi_db(centi_db: i32) -> Self {
        Signal(centi_db)
    }

    /// Hundredths of a decibel.
    pub const fn as_centi_db(self) -> i32 {
        self.0
    }
}

impl fmt::Display for BitRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            bps if bps.is_multiple_of(1_000_000_000) => write!(f, "{}Gbit/s", bps / 1_000_000_000),
            bps if bps.is_multiple_of(1_000_000) => write!(f, "{}Mbit/s", bps / 1_000_000),
            bps if bps.is_multiple_of(1_000) => write!(f, "{}kbit/s", bps / 1_000),
            bps => write!(f, "{bps}bit/s"),
        }
    }
}
