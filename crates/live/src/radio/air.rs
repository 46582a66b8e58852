//! Both hops of the lab's network as pure state: frames in with the time, frames out when due, and
//! a log of everything.
//!
//! ```text
//!   Fixed ──wired down──▶ BaseWired   BaseRadio, BaseRadioHigh ──radio down──▶ Mobile
//!         ◀──wired up────             BaseRadio                ◀──radio up────
//! ```
//!
//! The hops have the names, and so the random streams, that they have in the simulator.

use super::log::{Happened, HopName, Log};
use bytes::Bytes;
use link::hop::half_duplex;
use link::preset::Pair;
use link::{Hop, What};
use sansio::{Instant, Priority};
use wire::datagram::{self, Checksums};
use wire::ethernet::{self, EtherType};

/// What the emulated network is like. Plain data.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Fixed host to base station and back.
    pub wired: Pair,
    /// Base station to mobile host and back.
    pub radio: Pair,
    /// From it follow all losses and outages.
    pub seed: u64,
}

/// Where frames enter and leave the emulated network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Port {
    /// The fixed host.
    Fixed,
    /// The base station's side toward the fixed host.
    BaseWired,
    /// The base station's side toward the mobile host.
    BaseRadio,
    /// The same, served first.
    BaseRadioHigh,
    /// The mobile host.
    Mobile,
}

impl Port {
    /// All ports.
    pub const ALL: [Port; 5] =
        [Port::Fixed, Port::BaseWired, Port::BaseRadio, Port::BaseRadioHigh, Port::Mobile];

    /// Where a frame goes that no hop delays.
    pub fn opposite(self) -> Port {
        match self {
            Port::Fixed => Port::BaseWired,
            Port::BaseWired => Port::Fixed,
            Port::BaseRadio | Port::BaseRadioHigh => Port::Mobile,
            Port::Mobile => Port::BaseRadio,
        }
    }
}

/// A frame on a hop.
#[derive(Clone, Debug)]
struct Flying {
    bytes: Bytes,
    packet: u32,
}

/// The hops.
#[derive(Debug)]
pub struct Air {
    hops: [Hop<Flying>; HopName::ALL.len()],
    /// True if both directions of the radio share the air.
    half_duplex: bool,
    log: Log,
}

/// A frame that leaves the emulated network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leaving {
    /// Where.
    pub port: Port,
    /// When it was due; it leaves when [`Air::poll`] is called.
    pub due: Instant,
    /// Its bytes.
    pub bytes: Bytes,
}

impl Air {
    /// Empty hops, at the start of a run.
    pub fn new(config: &Config) -> Self {
        let hops = HopName::ALL.map(|name| {
            let pair = if name.is_radio() { &config.radio } else { &config.wired };
            let mut config_of_hop = if name.is_down() { &pair.down } else { &pair.up }.clone();
            config_of_hop.report_departures = false;
            Hop::new(&config_of_hop, config.seed, name.stream())
        });
        Air { hops, half_duplex: config.radio.half_duplex, log: Log::default() }
    }

    /// Takes a frame at a port. Returns it if it is not IP: such frames pass at once.
    pub fn enter(&mut self, port: Port, frame: &[u8], now: Instant) -> Option<Bytes> {
        let bytes = Bytes::copy_from_slice(frame);
        let Some(datagram_bytes) = datagram_bytes(frame) else { return Some(bytes) };
        let (hop, priority) = match port {
            Port::Fixed => (HopName::WiredDown, Priority::Normal),
            Port::BaseWired => (HopName::WiredUp, Priority::Normal),
            Port::BaseRadio => (HopName::RadioDown, Priority::Normal),
            Port::BaseRadioHigh => (HopName::RadioDown, Priority::High),
            Port::Mobile => (HopName::RadioUp, Priority::Normal),
        };
        let parsed = datagram::parse(&frame[ethernet::Header::BASE_BYTES..], Checksums::Trust);
        let packet = self.log.packet(parsed.ok());
        self.log.happened(packet, hop, Happened::Sent(priority), now);
        let flying = Flying { bytes, packet };
        self.settle(now);
        let entered = self.hops[hop as usize].enqueue(flying, datagram_bytes, priority, now);
        if entered.is_err() {
            self.log.happened(packet, hop, Happened::QueueFull, now);
        }
        None
    }

    /// The next frame that is due at `now`; call it until it returns `None`.
    pub fn poll(&mut self, now: Instant) -> Option<Leaving> {
        self.settle(now);
        for name in HopName::ALL {
            while let Some(outcome) = self.hops[name as usize].poll(now) {
                match outcome.what {
                    What::Arrived(flying) => {
                        self.log.happened(flying.packet, name, Happened::Arrived, now);
                        let port = name.leads_to();
                        return Some(Leaving { port, due: outcome.at, bytes: flying.bytes });
                    }
                    What::Lost(flying, loss) => {
                        let lost = Happened::Lost(loss);
                        self.log.happened(flying.packet, name, lost, outcome.at);
                    }
                    _ => {}
                }
            }
        }
        None
    }

    fn settle(&mut self, now: Instant) {
        if self.half_duplex {
            let [_, down, up, _] = &mut self.hops;
            half_duplex::settle(down, up, now);
        }
    }

    /// When [`Air::poll`] is due.
    pub fn next_event(&self) -> Option<Instant> {
        self.hops.iter().filter_map(Hop::next_event).min()
    }

    /// The end: what happened.
    pub fn into_log(self) -> Log {
        self.log
    }
}

impl HopName {
    fn leads_to(self) -> Port {
        match self {
            HopName::WiredDown => Port::BaseWired,
            HopName::RadioDown => Port::Mobile,
            HopName::RadioUp => Port::BaseRadio,
            HopName::WiredUp => Port::Fixed,
        }
    }
}

/// The length of a frame's IP datagram; `None` if it has none.
fn datagram_bytes(frame: &[u8]) -> Option<u32> {
    let (link, at) = ethernet::Header::parse(frame).ok()?;
    let field = |offset: usize| {
        let bytes = frame.get(at + offset..at + offset + 2)?;
        Some(u32::from(u16::from_be_bytes([bytes[0], bytes[1]])))
    };
    match link.ether_type {
        EtherType::IPV4 => field(2),
        EtherType::IPV6 => Some(field(4)? + wire::ip::Header::V6_BYTES),
        _ => None,
    }
}
