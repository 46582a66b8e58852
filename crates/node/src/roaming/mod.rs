//! Hosts that change cells: the machines of a network with a home agent, base stations and mobile
//! hosts, each composed by one function.
//!
//! ```text
//!   fixed hosts ── router, home agent ──┬── base station 0 ~ cell 0 ~ mobile hosts
//!                                       └── base station 1 ~ cell 1 ~
//! ```
//!
//! The simulator joins them by hops. [`address`] says who is who.

pub mod address;
mod arrival;
mod branches;
pub mod host;
mod igmp;
pub mod router;
pub mod station;

pub use branches::Branch;
pub use host::{Attention, RoamingHost};
pub use router::Router;
pub use station::Station;

use crate::composition;
use crate::host::Host;
use crate::movement::{self, Movement};
use crate::plan::{Plan, WIRED_QUEUE_PACKETS};
use crate::scenario::{Case, Handoff, Hosts, Scenario};
use address::HOME_AGENT;
use link::preset::Pair;
use link::{Limit, hop};
use mobility::Keys;
use mobility::agents::{AdvertiserConfig, ListConfig};
use mobility::beacon::{ListenerConfig, Sender};
use mobility::clock::Clock;
use mobility::mobile::Roaming as By;
use mobility::registration::{foreign, home, mobile};
use mobility::{choice, handoff, multicast};
use sansio::{Duration, Instant, Random};
use schemes::stack::{Stack, StackError};
use schemes::{MobileScheme, Scheme};
use std::rc::Rc;
use wire::auth::{Algorithm, Key};

/// Cells, and how hosts move among them.
#[derive(Clone, Debug, PartialEq)]
pub struct Roaming {
    /// Cells, each with a base station.
    pub cells: u16,
    /// How each mobile host moves.
    pub movement: movement::Spec,
    /// How handoffs are made.
    pub style: Style,
    /// What the machines take for them.
    pub pace: Pace,
    /// A registration names the agent before, which then sends after the mobile host what still
    /// comes to it (WINC-BS-4).
    pub names_previous: bool,
    /// Router to each base station, and back.
    pub backhaul: Pair,
    /// How much longer that takes to the base station of each cell, each way; nothing for cells
    /// beyond its end.
    pub farther: Vec<Duration>,
    /// Behind which branch of a tree the base station of each cell lies; of none beyond its end.
    pub branches: Vec<Branch>,
    /// Between the advertisements of an agent, where mobile hosts wait for them or ask for them
    /// (PAR-16).
    pub advertisement_period: Duration,
}

/// How a mobile host's packets find it after it has changed cells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Style {
    /// Mobile IP with greetings: the new base station tells the old one, and a registration the
    /// home agent; what is under way to the old cell is lost (CI-HO-3 to 6).
    #[default]
    Greeting,
    /// The same, and the old base station sends on what it has kept (CI-SMOOTH-2).
    Forwarding,
    /// Registrations alone, and the new agent tells the old one (BASE-12).
    Registration,
    /// The same, and agents are asked for ahead (PRE-2).
    Prefetch,
    /// Base stations nearby buffer a multicast group (MCAST-*).
    Multicast,
    /// Greetings to agents that were asked for ahead, and what a scheme at the old base station
    /// holds unacknowledged follows (CI-SMOOTH-2, PRE-2).
    Smooth,
}

/// How long machines take to act on a handoff.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// Daemons of 1995: 50 ms and 100 ms (PAR-2).
    Strict,
    /// At once.
    Modern,
}

impl Roaming {
    /// The cells of a case, if its hosts change them.
    pub(crate) fn of(scenario: &Scenario, case: &Case) -> Option<Roaming> {
        let movement = match (case.handoff, &scenario.map) {
            (Handoff::Crossings(crossings), _) => movement::Spec::Dwell(crossings.dwell()),
            (Handoff::Walk, Some(map)) => movement::Spec::Path(map.path()),
            (Handoff::None, _) | (Handoff::Walk, None) => return None,
        };
        let style = Style::take_from(&case.scheme).ok().and_then(|(style, _)| style);
        let delay = scenario.wired_delay.0.as_secs_f64() * scenario.backhaul.0;
        let hop = hop::Config {
            queue: Limit::Packets(WIRED_QUEUE_PACKETS),
            ..hop::Config::clean(scenario.wired_rate.0, Duration::from_secs_f64(delay))
        };
        Some(Roaming {
            cells: scenario.cells,
            movement,
            style: style.unwrap_or_default(),
            pace: match scenario.hosts {
                Hosts::Bsd1995 => Pace::Strict,
                Hosts::Modern => Pace::Modern,
            },
            names_previous: true,
            backhaul: Pair::symmetric(hop),
            farther: Vec::new(),
            branches: Vec::new(),
            advertisement_period: Self::ADVERTISEMENT_PERIOD,
        })
    }

    /// PAR-16.
    pub const ADVERTISEMENT_PERIOD: Duration = Duration::from_secs(1);

    /// Router to the base station of a cell, and back.
    pub fn backhaul_of(&self, cell: u16) -> Pair {
        let mut pair = self.backhaul.clone();
        if let Some(more) = self.farther.get(usize::from(cell)) {
            pair.down.delay += *more;
            pair.up.delay += *more;
        }
        pair
    }
}

impl Style {
    /// All of them, by the names that stand in a stack of schemes, with a line each.
    pub const NAMES: [(&str, Style, &str); 6] = [
        (
            "mobile-ip",
            Style::Greeting,
            "Mobile IP; the old base station learns where its host went",
        ),
        (
            "forwarding",
            Style::Forwarding,
            "the same, and it sends on what it sent into the old cell last",
        ),
        (
            "registration",
            Style::Registration,
            "Mobile IP by registrations alone: the host waits for an advertisement",
        ),
        ("prefetch", Style::Prefetch, "the same, and agents are asked for before they are needed"),
        (
            "multicast",
            Style::Multicast,
            "base stations nearby join the host's group and keep its newest packets",
        ),
        (
            "smooth",
            Style::Smooth,
            "forwarding with prefetch; of what snoop has cached only the unacknowledged follows",
        ),
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        let row = Self::NAMES.iter().find(|(_, style, _)| *style == self);
        row.map_or("mobile-ip", |(name, ..)| name)
    }

    /// Takes the styles out of a stack's text: the style, if there is one, and what is left,
    /// `plain` if nothing is.
    ///
    /// # Errors
    /// The second one's name, if there are two.
    pub fn take_from(text: &str) -> Result<(Option<Style>, String), String> {
        let mut style = None;
        let mut rest: Vec<&str> = Vec::new();
        for name in composition::expand(text) {
            match Self::NAMES.iter().find(|(known, ..)| *known == name) {
                Some(_) if style.is_some() => return Err(name.to_owned()),
                Some((_, found, _)) => style = Some(*found),
                None => rest.push(name),
            }
        }
        let rest = if rest.is_empty() { "plain".to_owned() } else { rest.join("+") };
        Ok((style, rest))
    }
}

/// The schemes of a stack's text, whatever way it has to make handoffs.
///
/// # Errors
/// See [`Stack::named`].
pub(crate) fn stack(scheme: &str) -> Result<Stack, StackError> {
    let (style, rest) = Style::take_from(scheme).unwrap_or_else(|_| (None, scheme.to_owned()));
    let stack = Stack::named(&rest)?;
    Ok(if style == Some(Style::Smooth) { stack.that_follows() } else { stack })
}

/// Packets that a base station keeps for each mobile host that is near (MCAST-6).
pub const KEPT_PACKETS: usize = multicast::station::Config::strict(HOME_AGENT).packets_max;

/// What all machines of one run have in common.
#[derive(Clone, Debug)]
pub struct Agents {
    style: Style,
    pace: Pace,
    advertisement_period: Duration,
    names_previous: bool,
    branches: Vec<Branch>,
    keys: Keys,
    clock: Clock,
    choice: choice::Config,
    seed: u64,
}

impl Agents {
    /// What clocks show when a run begins, nanoseconds since 1970: nothing depends on it.
    const BEGIN: u64 = 1_700_000_000_000_000_000;
    /// The signal of the cell in which a mobile host begins, in tenths of a decibel.
    const BEGIN_DECIBELS_10: i16 = 200;
    /// Room for a tunnel's header on the backhaul, so that full packets are not too big for it.
    const MTU_BYTES: u32 = 9_000;

    /// For so many mobile hosts, each with a key of its own.
    pub fn new(roaming: &Roaming, mobiles: u32, seed: u64) -> Self {
        let keys = (0..mobiles).map(|number| (address::mobile(number), key(number)));
        Agents {
            style: roaming.style,
            pace: roaming.pace,
            advertisement_period: roaming.advertisement_period,
            names_previous: roaming.names_previous,
            branches: roaming.branches.clone(),
            keys: Rc::new(keys.collect()),
            clock: Clock::new(Self::BEGIN),
            choice: choice_of(&roaming.movement),
            seed,
        }
    }

    /// The router: knows where `first` says that each mobile host begins.
    pub fn router(&self, first: impl IntoIterator<Item = (u32, u16)>) -> Router {
        let is_group = self.style == Style::Multicast;
        // A group is left by its members, not by its lifetime (RFC 5944, 3.3: 0xffff is for ever).
        let lifetime_max_s = if is_group { u16::MAX } else { 1_800 };
        let bindings_max = self.keys.len();
        let mtu_bytes = Self::MTU_BYTES;
        let config = home::Config {
            lifetime_max_s,
            bindings_max,
            mtu_bytes,
            ..home::Config::new(HOME_AGENT)
        };
        let random = Random::new(self.seed, "router");
        let mut home = home::HomeAgent::new(config, self.clock, random);
        for (number, (mobile, key)) in (0..).zip(self.keys.iter()) {
            home.enroll(*mobile, key.clone(), is_group.then(|| address::group(number)));
        }
        let mut members = Vec::new();
        for (number, cell) in first {
            home.begin(address::mobile(number), address::station(cell), Instant::ZERO);
            members.push((address::group(number), cell));
        }
        let mut router = Router::new(home, &self.branches);
        for (group, cell) in members.into_iter().filter(|_| is_group) {
            router.set_member(group, cell, true);
        }
        router
    }

    /// A base station with these mobile hosts in its cell, and this scheme.
    pub fn station(&self, number: u16, mut scheme: Scheme, begin: &[u32]) -> Station {
        let address = address::station(number);
        let id = u32::from(number);
        let mut random = Random::new(self.seed, &format!("station.{number}.beacon"));
        let strict = mobility::station::Config::strict(id, address);
        let modern = mobility::station::Config::modern(id, address);
        let config = match self.pace {
            Pace::Strict => strict,
            Pace::Modern => modern,
        };
        // Snoop's cache is the better buffer.
        let keeps = match self.style {
            Style::Smooth => !matches!(scheme, Scheme::Snoop(_)),
            style => style == Style::Forwarding,
        };
        // Who registers alone is told by advertisements, which are no beacons of its radio.
        let is_alone = matches!(self.style, Style::Registration | Style::Prefetch);
        let first_advertisement_at = is_alone.then(|| {
            let mut random = Random::new(self.seed, &format!("station.{number}.advertisement"));
            Instant::ZERO + random.uniform_time(Duration::ZERO, self.advertisement_period)
        });
        let period = self.advertisement_period;
        let alone = AdvertiserConfig { period, ..AdvertiserConfig::new(address) };
        let visitors = self.keys.len();
        let config = mobility::station::Config {
            first_beacon_at: Instant::ZERO + random.uniform_time(Duration::ZERO, Sender::INTERVAL),
            keeper: keeps.then_some(modern.keeper).flatten(),
            advertiser: if is_alone { Some(alone) } else { config.advertiser },
            first_advertisement_at,
            mtu_bytes: Self::MTU_BYTES,
            handoff: handoff::station::Config { visitors_max: visitors, ..config.handoff },
            foreign: foreign::Config {
                visitors_max: config.foreign.visitors_max.max(visitors),
                ..config.foreign
            },
            multicast: multicast::station::Config { mobiles_max: visitors, ..config.multicast },
            ..config
        };
        let mut station =
            mobility::station::BaseStation::new(config, self.keys.clone(), self.clock);
        for &mobile in begin {
            let home = address::mobile(mobile);
            station.begin(home, &self.roaming(mobile), Instant::ZERO);
            scheme.begin(home.into());
        }
        let station = Station::new(address, station, scheme);
        if self.style == Style::Smooth { station.with_arrivals() } else { station }
    }

    /// A mobile host that begins in a cell. `is_driven`: the clock of an experiment says where it
    /// goes (CI-MOD-3).
    pub fn mobile(
        &self,
        (number, first): (u32, u16),
        (host, engine): (Host, Option<MobileScheme>),
        is_driven: bool,
    ) -> RoamingHost {
        let own = address::mobile(number);
        let list = match self.style {
            Style::Prefetch | Style::Smooth => ListConfig::prefetch(),
            Style::Registration => ListConfig::wait(),
            Style::Greeting | Style::Forwarding | Style::Multicast => ListConfig::remember(),
        };
        let registration = mobile::Config::new(own, HOME_AGENT, key(number));
        let config = mobility::mobile::Config {
            own,
            key: key(number),
            roaming: self.roaming(number),
            registers_after_greeting: self.pace == Pace::Strict,
            names_previous: self.names_previous,
            registration: (self.style != Style::Multicast).then_some((registration, list)),
            listener: ListenerConfig::default(),
            choice: self.choice,
        };
        let random = Random::new(self.seed, &format!("{number}.mobility"));
        let mut engine_of = mobility::mobile::MobileHost::new(config, self.clock, random);
        let station = (address::station(first), u32::from(first));
        engine_of.begin(station, Self::BEGIN_DECIBELS_10, Instant::ZERO);
        // Base stations that are to buffer have to be heard while another one serves.
        let attention = match (is_driven, self.style) {
            (false, _) => Attention::All,
            (true, Style::Multicast | Style::Smooth) => Attention::Follows(first),
            (true, Style::Registration | Style::Prefetch) => Attention::Joins(first),
            (true, Style::Greeting | Style::Forwarding) => Attention::Only(Some(first)),
        };
        let host = RoamingHost::new(host, engine, engine_of, attention);
        if self.style == Style::Smooth { host.with_lost_cells() } else { host }
    }

    fn roaming(&self, number: u32) -> By {
        let greeting = match self.pace {
            Pace::Strict => handoff::mobile::Config::strict(),
            Pace::Modern => handoff::mobile::Config::modern(),
        };
        let wants_buffer = matches!(self.style, Style::Forwarding | Style::Smooth);
        match self.style {
            Style::Greeting | Style::Forwarding | Style::Smooth => {
                By::Greeting(handoff::mobile::Config { wants_buffer, ..greeting })
            }
            Style::Registration | Style::Prefetch => By::MobileIp,
            Style::Multicast => By::Multicast(multicast::mobile::Config::new(
                address::mobile(number),
                key(number),
                address::group(number),
            )),
        }
    }
}

/// Along a path the signal chooses the base station; where the clock does, no signal changes it.
fn choice_of(movement: &movement::Spec) -> choice::Config {
    match movement {
        movement::Spec::Path(spec) => {
            let margin = choice::Margin::Decibels10((spec.hysteresis * 10.0) as u16);
            choice::Config { margin, ..choice::Config::modern() }
        }
        movement::Spec::Dwell(_) => {
            let margin = choice::Margin::Decibels10(u16::MAX);
            choice::Config { margin, ..choice::Config::strict() }
        }
    }
}

/// A mobile host's key. Its secret is its number: in a simulation nobody forges.
fn key(number: u32) -> Key {
    let mut secret = [0; 16];
    secret[..4].copy_from_slice(&number.to_be_bytes());
    Key::new(KEY_SPI, Algorithm::HmacSha256, &secret)
        .unwrap_or_else(|_| unreachable!("16 bytes are a secret"))
}

/// RFC 5944, 1.6: below 256 they are reserved.
const KEY_SPI: u32 = 256;

impl Plan {
    /// How each mobile host moves; none if nobody does.
    pub fn movements(&self, seed: u64) -> Vec<Movement> {
        let Some(roaming) = &self.roaming else { return Vec::new() };
        let movement = |mobile| Movement::new(&roaming.movement, roaming.cells, (seed, mobile));
        (0..self.mobiles).map(movement).collect()
    }
}
