//! The base station's daemon: packet sockets inline around an unchanged engine.
//!
//! The kernel's own forwarding is set up completely, and stays so. On top of it, rules at ingress
//! drop exactly what the daemon takes and sends on itself ([`selection`]); they vanish with the
//! daemon ([`rules`]), so that killing it leaves plain forwarding at once.
//!
//! At the start the sockets come first, then the rules: for a moment a packet is seen twice, by
//! the daemon and by the kernel, and both send it on. Hosts take that for a harmless duplicate;
//! the other order would lose packets.
//!
//! A bridge's kernel side is a bridge of the kernel's own ([`bridged`]): what the daemon does not
//! take passes there, whatever it is.
//!
//! Limits: both devices have the same MTU, since the daemon sends no "packet too big"; the base
//! station's own addresses are those it had when the daemon began.
//!
//! Map: [`station`] (the loop without its waiting), [`path`] (sockets and rules), [`selection`]
//! (which packets), [`choice`] (which back end), [`neighbours`] and [`bridged`] (how they go on),
//! [`rules`] (nft), [`kernel`] (what it is set to do), [`control`] (notices and statistics while it
//! runs).

pub mod bridged;
pub mod choice;
pub mod control;
pub mod kernel;
pub mod neighbours;
pub mod path;
pub mod rules;
pub mod selection;
pub mod station;

pub use control::Control;
pub use selection::Prefix;
pub use station::Station;

use crate::io::inline::Devices;
use crate::sys::poll::Poll;
use crate::sys::signals::Signals;
use crate::sys::{Clock, process};
use anyhow::Result;
use control::{Order, Orders, Totals};
use path::{DataPath, Plan};
use schemes::Scheme;
use station::Departures;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::net::IpAddr;
use wire::ethernet::Mac;

/// How a daemon runs.
#[derive(Clone, Debug)]
pub struct DaemonConfig {
    /// The base station's devices.
    pub devices: Devices,
    /// Where the mobile hosts are; IPv4 and IPv6 together.
    pub mobile: Vec<Prefix>,
    /// How the kernel forwards between the devices.
    pub forwarding: Forwarding,
    /// How packets come to the daemon.
    pub back_end: BackEnd,
    /// Next hops that need not be learned; a bridge needs none.
    pub next_hops: Vec<(IpAddr, Mac)>,
    /// Who may give it orders.
    pub control: Control,
}

/// How the kernel forwards between the two devices, with a daemon and without.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Forwarding {
    /// It routes.
    #[default]
    Routed,
    /// A bridge of the kernel's joins them, and nothing else.
    Bridge,
}

/// How packets come to the daemon.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum BackEnd {
    /// Whichever costs less, by a measurement at the start.
    #[default]
    Auto,
    /// All of them through the daemon.
    Inline,
    /// The kernel forwards data, which the daemon only looks at; ACKs go through the daemon.
    Fast,
}

/// Tokens of the poll.
const SIGNALS: u64 = path::TOKENS;
const ORDERS: u64 = path::TOKENS + 1;

/// Runs a base station until SIGTERM, SIGINT, or the end of its controlling input.
///
/// # Errors
/// If the devices or the rules cannot be had, or a device vanishes.
pub fn run(config: &DaemonConfig, scheme: Scheme) -> Result<()> {
    let signals = Signals::catch()?;
    process::precise_timers()?;
    process::keep_freed_memory();
    let clock = Clock::starting_now();
    let mut orders = Orders::open(&config.control)?;
    let mut poll = Poll::new()?;
    poll.add(&signals, SIGNALS)?;
    if let Some(descriptor) = orders.descriptor() {
        poll.add(descriptor, ORDERS)?;
    }
    let mut path = DataPath::open(config, clock, &poll)?;
    orders.answer("ready")?;

    let departures =
        if scheme.wants_departures() { Departures::Reported } else { Departures::Silent };
    let Plan { selection, ways, .. } = path.plan.clone();
    let mut station = Station::new(keyed(scheme), departures, selection, ways);
    let mut totals = Totals::default();
    while !signals.caught() {
        station.turn(&mut path.io)?;
        totals.held_bytes_max = totals.held_bytes_max.max(station.engine().held_bytes());
        let until = [station.next_deadline(), path.next_at()].into_iter().flatten().min();
        let ready = poll.wait(until.map(|at| clock.monotonic_at(at)))?;
        path.attend(&poll, ready, config)?;
        if !ready.contains(ORDERS) {
            continue;
        }
        while let Some(order) = orders.next()? {
            match order {
                Order::Notice(notice) => station.notice(notice, &mut path.io),
                Order::Statistics => {
                    totals.overruns += path.io.overruns();
                    orders.answer(&control::statistics(&station, totals, &path))?;
                }
                Order::Stop => return Ok(()),
            }
        }
    }
    Ok(())
}

/// The scheme with a random key for its table of flows, so that nobody outside can choose
/// four-tuples that collide in it.
fn keyed(scheme: Scheme) -> Scheme {
    let key = RandomState::new().build_hasher().finish();
    match scheme {
        Scheme::Snoop(agent) => {
            let config = agent.config().clone();
            Scheme::Snoop(Box::new(schemes::snoop::Agent::with_key(config, key)))
        }
        other => other,
    }
}
