//! Messages that changed nothing, counted by the reason (MOD-10, MOD-14).

use sansio::{Event, EventKind, Sink};

/// Why a message was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(usize)]
pub enum Refusal {
    /// It cannot be read.
    Malformed,
    /// It is about a mobile host that has no key here, or is not here.
    UnknownMobile,
    /// Its authenticator is missing, of another key, or wrong.
    NotProved,
    /// Its time is not later than that of one before: a replay, a duplicate, or overtaken.
    Replayed,
    /// Its time is too far from this node's clock.
    Clock,
    /// Its generation is older than one that is known.
    Stale,
    /// It is meant for somebody else, or from somebody else than it says.
    Misdirected,
    /// It answers no question of this node.
    Unasked,
    /// A table is full.
    Full,
    /// A tunnel inside too many tunnels, or back to where it came from.
    Loop,
    /// A datagram that does not fit the tunnel.
    TooBig,
}

impl Refusal {
    /// How many there are.
    pub const COUNT: usize = 11;
    const ALL: [Refusal; Self::COUNT] = [
        Self::Malformed,
        Self::UnknownMobile,
        Self::NotProved,
        Self::Replayed,
        Self::Clock,
        Self::Stale,
        Self::Misdirected,
        Self::Unasked,
        Self::Full,
        Self::Loop,
        Self::TooBig,
    ];

    /// In reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::UnknownMobile => "unknown mobile host",
            Self::NotProved => "not proved",
            Self::Replayed => "replayed",
            Self::Clock => "clock",
            Self::Stale => "stale",
            Self::Misdirected => "misdirected",
            Self::Unasked => "unasked",
            Self::Full => "full",
            Self::Loop => "loop",
            Self::TooBig => "too big",
        }
    }
}

/// How many messages were refused, by the reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refusals([u64; Refusal::COUNT]);

impl Refusals {
    /// Counts one and reports it.
    pub fn count(&mut self, reason: Refusal, sink: &mut impl Sink) {
        let count = &mut self.0[reason as usize];
        *count += 1;
        let kind = EventKind::Rule { id: "MOD-10", did: reason.name(), value: *count };
        sink.report(|| Event { flow: None, packet: None, kind });
    }

    /// So many for this reason.
    pub fn of(&self, reason: Refusal) -> u64 {
        self.0[reason as usize]
    }

    /// Every reason with its count.
    pub fn iter(&self) -> impl Iterator<Item = (Refusal, u64)> {
        Refusal::ALL.into_iter().zip(self.0)
    }

    /// All together.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }
}
