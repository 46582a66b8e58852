//! Everything that happened on the emulated hops: each packet once, each happening a few bytes, so
//! that writing it down does not make the radio late. [`super::replay`] tells the story afterwards.

use link::Loss;
use sansio::{Instant, Priority};
use wire::datagram::{Datagram, Transport};
use wire::{ip, tcp};

/// A hop, numbered as in the simulator's triple.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum HopName {
    /// Fixed host to base station.
    WiredDown,
    /// Base station to mobile host.
    RadioDown,
    /// Mobile host to base station.
    RadioUp,
    /// Base station to fixed host.
    WiredUp,
}

/// What can happen to a packet on a hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happened {
    /// Its sender handed it to the hop.
    Sent(Priority),
    /// The hop's queue was full.
    QueueFull,
    /// It reached the other end.
    Arrived,
    /// The hop lost it.
    Lost(Loss),
    /// It never reached the other end, and nobody knows why.
    Missing,
}

/// One happening.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Happening {
    /// When.
    pub at: Instant,
    /// The packet, by its place in [`Log::packets`].
    pub packet: u32,
    /// Where.
    pub hop: HopName,
    /// What.
    pub what: Happened,
}

/// What is kept of a TCP segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The IP header.
    pub ip: ip::Header,
    /// The TCP header.
    pub tcp: tcp::Header,
    /// Bytes of payload.
    pub payload_bytes: u32,
}

/// The log of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Log {
    /// Every packet that entered a hop: a TCP segment, or something else.
    pub packets: Vec<Option<Segment>>,
    /// What happened to them, in order but for losses, which become known late.
    pub happenings: Vec<Happening>,
    /// True if [`Log::PACKETS_MAX`] was reached: what came after is missing.
    pub cut: bool,
}

impl HopName {
    /// All hops.
    pub const ALL: [HopName; 4] =
        [HopName::WiredDown, HopName::RadioDown, HopName::RadioUp, HopName::WiredUp];

    /// True for the last hop.
    pub fn is_radio(self) -> bool {
        matches!(self, HopName::RadioDown | HopName::RadioUp)
    }

    /// True toward the mobile host.
    pub fn is_down(self) -> bool {
        matches!(self, HopName::WiredDown | HopName::RadioDown)
    }

    /// The name of its random streams: that of the simulator's first triple.
    pub fn stream(self) -> &'static str {
        match self {
            HopName::WiredDown => "0.wired.down",
            HopName::RadioDown => "0.radio.down",
            HopName::RadioUp => "0.radio.up",
            HopName::WiredUp => "0.wired.up",
        }
    }
}

impl Log {
    /// Packets of a run at most: about 1 GB of memory.
    pub const PACKETS_MAX: usize = 5_000_000;

    pub(super) fn packet(&mut self, datagram: Option<Datagram>) -> u32 {
        if self.packets.len() >= Self::PACKETS_MAX {
            self.cut = true;
            return u32::MAX;
        }
        let segment = datagram.and_then(|datagram| match datagram.transport {
            Transport::Tcp(tcp) => {
                let payload_bytes = datagram.payload.len() as u32;
                Some(Segment { ip: datagram.ip, tcp, payload_bytes })
            }
            _ => None,
        });
        self.packets.push(segment);
        (self.packets.len() - 1) as u32
    }

    pub(super) fn happened(&mut self, packet: u32, hop: HopName, what: Happened, at: Instant) {
        if packet != u32::MAX {
            self.happenings.push(Happening { at, packet, hop, what });
        }
    }
}
