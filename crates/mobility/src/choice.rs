//! Which base station a mobile host takes (CI-HO-2, MCAST-10).
//!
//! It changes when another one is stronger by a margin, so many beacons in a row, or at once when
//! it hears another one after it has lost its own.

use crate::beacon::Listener;
use core::net::Ipv4Addr;
use sansio::Instant;

/// By how much another base station has to be stronger (MCAST-10, PAR-8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Margin {
    /// Tenths of a decibel.
    Decibels10(u16),
    /// Parts of a hundred of the own one's signal to noise.
    Percent(u16),
}

impl Margin {
    /// True if `other` is stronger than `own` by this margin.
    fn is_passed(self, other: i16, own: i16) -> bool {
        let (other, own) = (i64::from(other), i64::from(own));
        match self {
            Margin::Decibels10(margin) => other > own + i64::from(margin),
            Margin::Percent(margin) => (other - own) * 100 > own.abs() * i64::from(margin),
        }
    }
}

/// Parameters of the choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// By how much another one has to be stronger.
    pub margin: Margin,
    /// Further beacons of it that have to say the same.
    pub confirmations: u32,
    /// Weaker ones are not taken, in tenths of a decibel (T_hand, PAR-14).
    pub weakest_decibels_10: i16,
}

impl Config {
    /// To the letter (CI-HO-2): any stronger beacon, at once.
    pub const fn strict() -> Self {
        Config { margin: Margin::Decibels10(0), confirmations: 0, weakest_decibels_10: i16::MIN }
    }

    /// With hysteresis: 5 dB and one confirmation (MCAST-10, PAR-8).
    pub const fn modern() -> Self {
        Config { margin: Margin::Decibels10(50), confirmations: 1, weakest_decibels_10: i16::MIN }
    }
}

/// Why a base station was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// There was none before.
    First,
    /// It is stronger (CI-HO-2 a, MCAST-10).
    Stronger,
    /// The own one is silent (CI-HO-2 b).
    Silent,
}

/// The choice of one mobile host.
#[derive(Clone, Debug)]
pub struct Chooser {
    config: Config,
    current: Option<Ipv4Addr>,
    /// Who was stronger, and in how many of its beacons in a row.
    candidate: Option<(Ipv4Addr, u32)>,
}

impl Chooser {
    /// No base station yet.
    pub fn new(config: Config) -> Self {
        Chooser { config, current: None, candidate: None }
    }

    /// The base station that is taken.
    pub fn current(&self) -> Option<Ipv4Addr> {
        self.current
    }

    /// A beacon of `station` has just entered the list of `heard` ones. Says if the choice has
    /// changed to that base station, and why.
    pub fn on_beacon(
        &mut self,
        station: Ipv4Addr,
        heard: &Listener,
        now: Instant,
    ) -> Option<Reason> {
        let signal = heard.get(station)?.decibels_10;
        if self.current == Some(station) || signal < self.config.weakest_decibels_10 {
            if self.candidate.is_some_and(|(candidate, _)| candidate == station) {
                self.candidate = None;
            }
            return None;
        }
        let reason = match self.current {
            None => Reason::First,
            Some(current) if !heard.is_audible(current, now) => Reason::Silent,
            Some(current) => {
                let own = heard.get(current)?.decibels_10;
                if !self.is_stronger(station, signal, own) {
                    return None;
                }
                Reason::Stronger
            }
        };
        self.take(station);
        Some(reason)
    }

    /// True if `station` was stronger often enough.
    fn is_stronger(&mut self, station: Ipv4Addr, signal: i16, own: i16) -> bool {
        if !self.config.margin.is_passed(signal, own) {
            if self.candidate.is_some_and(|(candidate, _)| candidate == station) {
                self.candidate = None;
            }
            return false;
        }
        let times = match self.candidate {
            Some((candidate, times)) if candidate == station => times + 1,
            _ => 1,
        };
        self.candidate = Some((station, times));
        times > self.config.confirmations
    }

    /// Takes a base station whatever its signal: layer 2 decided (LINK-4), or a script.
    pub fn take(&mut self, station: Ipv4Addr) {
        self.current = Some(station);
        self.candidate = None;
    }

    /// Gives the base station up.
    pub fn release(&mut self) {
        self.current = None;
        self.candidate = None;
    }
}
