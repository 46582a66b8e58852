//! What a base station or a mobile host can do for TCP: one folder per paper, none imports another.
//!
//! Map: [`plain`] (a base station that only forwards), [`snoop`] (cache and local retransmission,
//! after the Snoop paper), [`fast_retransmit`] (after a handoff nobody waits for a timeout),
//! [`window`] (before a handoff the window closes). [`Scheme`] is what stands at a base station,
//! [`MobileScheme`] at a mobile host; [`stack`] is the one list of all of them, and says which go
//! together. [`worth`] measures what help is worth, whichever it is. `connections` is what engines
//! at a mobile host share.

mod connections;
pub mod fast_retransmit;
mod mobile;
pub mod plain;
pub mod snoop;
pub mod stack;
pub mod window;
pub mod worth;

pub use mobile::MobileScheme;

use sansio::{BitRate, Deadline, Engine, Input, Instant, Packet, Side, Sink};

/// A base station's scheme.
#[derive(Clone, Debug)]
pub enum Scheme {
    /// Forwards, nothing else.
    Plain(plain::Forwarder),
    /// The Snoop agent, by the paper or as deployed today.
    Snoop(Box<snoop::Agent>),
    /// Window control: what comes while the window is closed is held.
    Window(Box<window::station::Agent>),
}

impl Scheme {
    /// Every scheme that is a base station's alone: its name and what it does, in one line.
    /// [`stack::LAYERS`] has them all.
    pub const NAMES: [(&str, &str); 3] = [
        ("plain", "the base station only forwards"),
        ("snoop", "Snoop by the paper: cache, local retransmission, duplicate ACKs suppressed"),
        ("snoop-modern", "Snoop for senders and radios of today: SACK, restart after outages"),
    ];

    /// The scheme of this name, with its preset's parameters; `None` for an unknown name.
    pub fn named(name: &str) -> Option<Scheme> {
        let snoop = |config| Scheme::Snoop(Box::new(snoop::Agent::new(config)));
        match name {
            "plain" => Some(Scheme::Plain(plain::Forwarder)),
            "snoop" => Some(snoop(snoop::Config::strict())),
            "snoop-modern" => Some(snoop(snoop::Config::modern())),
            _ => None,
        }
    }

    /// True if the driver shall report each packet that departs onto the air
    /// ([`Engine::on_departure`]).
    pub fn wants_departures(&self) -> bool {
        match self {
            Scheme::Plain(_) | Scheme::Window(_) => false,
            Scheme::Snoop(agent) => agent.wants_departures(),
        }
    }

    /// A mobile host that was registered here when the run began.
    pub fn begin(&mut self, mobile: core::net::IpAddr) {
        if let Scheme::Window(agent) = self {
            agent.begin(mobile);
        }
    }

    /// True if what comes through a tunnel from another base station shall arrive on
    /// [`sansio::Side::TUNNEL`], and on the wired side like all else otherwise.
    pub fn wants_tunnel(&self) -> bool {
        matches!(self, Scheme::Window(_))
    }

    /// True if the driver shall report the link layer's verdict on each frame ([`Input::Verdict`]),
    /// where there is one.
    pub fn wants_verdicts(&self) -> bool {
        match self {
            Scheme::Plain(_) | Scheme::Window(_) => false,
            Scheme::Snoop(agent) => agent.wants_verdicts(),
        }
    }

    /// True if it is to hear what comes for mobile hosts that another base station serves
    /// ([`Side::MIRROR`]).
    pub fn hears_others(&self) -> bool {
        matches!(self, Scheme::Snoop(_))
    }

    /// Tells the radio's rate, where somebody knows it: it bounds the air that probes take. Without
    /// it the rate is taken from departures, which says too much where they are not those onto the
    /// air.
    pub fn set_link_rate(&mut self, rate: BitRate) {
        match self {
            Scheme::Plain(_) | Scheme::Window(_) => {}
            Scheme::Snoop(agent) => agent.set_link_rate(rate),
        }
    }

    /// Payload bytes that the scheme holds in the base station's memory.
    pub fn held_bytes(&self) -> u64 {
        match self {
            Scheme::Plain(_) => 0,
            Scheme::Snoop(agent) => agent.held_bytes(),
            Scheme::Window(agent) => agent.held_bytes(),
        }
    }

    /// The most payload bytes that the scheme may hold.
    pub fn held_bytes_max(&self) -> u64 {
        match self {
            Scheme::Plain(_) => 0,
            Scheme::Snoop(agent) => agent.config().cache_bytes_total_max,
            Scheme::Window(agent) => agent.config().held_bytes_max,
        }
    }

    /// Packets that wait with the scheme, sent on to nobody yet.
    pub fn kept(&self) -> impl Iterator<Item = &sansio::PacketRef> {
        let window = match self {
            Scheme::Window(agent) => Some(agent),
            Scheme::Plain(_) | Scheme::Snoop(_) => None,
        };
        window.into_iter().flat_map(|agent| agent.packets())
    }
}

impl Engine for Scheme {
    #[inline]
    fn handle(&mut self, input: Input, sink: &mut impl Sink, now: Instant) {
        match self {
            Scheme::Plain(forwarder) => forwarder.handle(input, sink, now),
            Scheme::Snoop(agent) => agent.handle(input, sink, now),
            Scheme::Window(agent) => agent.handle(input, sink, now),
        }
    }

    #[inline]
    fn on_departure(&mut self, side: Side, packet: &Packet, sink: &mut impl Sink, now: Instant) {
        match self {
            Scheme::Plain(_) | Scheme::Window(_) => {}
            Scheme::Snoop(agent) => agent.on_departure(side, packet, sink, now),
        }
    }

    #[inline]
    fn next_deadline(&self) -> Option<Deadline> {
        match self {
            Scheme::Plain(forwarder) => forwarder.next_deadline(),
            Scheme::Snoop(agent) => agent.next_deadline(),
            Scheme::Window(agent) => agent.next_deadline(),
        }
    }

    #[inline]
    fn next_at(&self) -> Option<Instant> {
        match self {
            Scheme::Plain(_) => None,
            Scheme::Snoop(agent) => agent.next_at(),
            Scheme::Window(agent) => agent.next_at(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_builds_its_scheme_and_no_other_name_does() {
        for (name, line) in Scheme::NAMES {
            assert!(Scheme::named(name).is_some(), "{name}");
            assert!(!line.is_empty(), "{name}");
        }
        assert!(Scheme::named("snoop-strict").is_none());
    }
}
