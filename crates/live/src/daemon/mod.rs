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
//! Limits: both devices have the same MTU, since the daemon sends no "packet too big"; the base
//! station's own addresses are those it had when the daemon began.
//!
//! Map: [`station`] (the loop without its waiting), [`selection`] (which packets), [`neighbours`]
//! (next hops), [`rules`] (nft), [`control`] (notices and statistics while it runs).

pub mod control;
pub mod neighbours;
pub mod rules;
pub mod selection;
pub mod station;

pub use control::Control;
pub use selection::Prefix;
pub use station::Station;

use crate::io::PacketIo;
use crate::io::inline::{Devices, Inline};
use crate::sys::poll::Poll;
use crate::sys::signals::Signals;
use crate::sys::{Clock, process};
use anyhow::{Context, Result, ensure};
use control::{Order, Orders, Totals};
use neighbours::Neighbours;
use rules::Rules;
use sansio::Side;
use schemes::Scheme;
use selection::{Place, Selection, Share};
use station::Departures;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::net::IpAddr;
use std::process::Command;
use wire::ethernet::Mac;

/// How a daemon runs.
#[derive(Clone, Debug)]
pub struct DaemonConfig {
    /// The base station's devices.
    pub devices: Devices,
    /// Where the mobile hosts are; IPv4 and IPv6 together.
    pub mobile: Vec<Prefix>,
    /// Next hops that need not be learned.
    pub next_hops: Vec<(IpAddr, Mac)>,
    /// Who may give it orders.
    pub control: Control,
}

/// Tokens of the poll.
const WIRED: u64 = 0;
const RADIO: u64 = 1;
const SIGNALS: u64 = 2;
const ORDERS: u64 = 3;
const RULES: u64 = 4;

/// Runs a base station until SIGTERM, SIGINT, or the end of its controlling input.
///
/// # Errors
/// If the devices or the rules cannot be had, or a device vanishes.
pub fn run(config: &DaemonConfig, scheme: Scheme) -> Result<()> {
    let signals = Signals::catch()?;
    process::precise_timers()?;
    process::keep_freed_memory();
    let clock = Clock::starting_now();
    let mut io = Inline::open(&config.devices, clock)?;
    let (wired, radio) = (io.socket(Side::WIRED).interface(), io.socket(Side::RADIO).interface());
    ensure!(
        wired.mtu == radio.mtu,
        "{} has an MTU of {} bytes, {} of {}: set them alike, since nobody here would tell a \
         sender that its packets are too long",
        wired.name,
        wired.mtu,
        radio.name,
        radio.mtu
    );
    let selection = Selection {
        mobile: config.mobile.clone(),
        own: own_addresses()?,
        place: Place::Router { wired: wired.mac, radio: radio.mac },
        share: Share::Everything,
    };
    let mut orders = Orders::open(&config.control)?;
    let mut poll = Poll::new()?;
    poll.add(io.socket(Side::WIRED), WIRED)?;
    poll.add(io.socket(Side::RADIO), RADIO)?;
    poll.add(&signals, SIGNALS)?;
    if let Some(descriptor) = orders.descriptor() {
        poll.add(descriptor, ORDERS)?;
    }
    let rules = selection.table(rules::TABLE, &config.devices.wired, &config.devices.radio)?;
    let rules = Rules::install(&rules)?;
    poll.add(&rules, RULES)?;
    orders.answer("ready")?;

    let departures =
        if scheme.wants_departures() { Departures::Reported } else { Departures::Silent };
    let neighbours = Neighbours::configured(config.next_hops.iter().copied());
    let mut station = Station::new(keyed(scheme), departures, selection, neighbours);
    let mut totals = Totals::default();
    while !signals.caught() {
        station.turn(&mut io)?;
        totals.held_bytes_max = totals.held_bytes_max.max(station.engine().held_bytes());
        let until = station.next_deadline().map(|at| clock.monotonic_at(at));
        let ready = poll.wait(until)?;
        // The kernel forwards again: to go on would send every packet twice.
        ensure!(!ready.contains(&RULES), "nft has ended, and the rules with it");
        if !ready.contains(&ORDERS) {
            continue;
        }
        while let Some(order) = orders.next()? {
            match order {
                Order::Notice(notice) => station.notice(notice, &mut io),
                Order::Statistics => {
                    totals.overruns += io.overruns();
                    orders.answer(&control::statistics(&station, totals, io.now()))?;
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

/// The addresses of all devices of this network namespace.
fn own_addresses() -> Result<Vec<IpAddr>> {
    let output =
        Command::new("ip").args(["-json", "address", "show"]).output().context("run ip address")?;
    let devices: Vec<serde_json::Value> =
        serde_json::from_slice(&output.stdout).context("read what ip address says")?;
    let addresses = devices.iter().filter_map(|device| device["addr_info"].as_array()).flatten();
    Ok(addresses.filter_map(|address| address["local"].as_str()?.parse().ok()).collect())
}
