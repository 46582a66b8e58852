//! The data path: sockets on the devices, and the rules that leave them what they take.

use super::bridged::Bridged;
use super::choice::{self, Chosen};
use super::kernel::Kernel;
use super::neighbours::{Neighbours, Ways};
use super::rules::{self, Rules};
use super::selection::{Place, Selection, Share};
use super::{BackEnd, DaemonConfig, Forwarding};
use crate::io::inline::Inline;
use crate::sys::Clock;
use crate::sys::netlink::DeviceNews;
use crate::sys::packet_socket::{self, Interface};
use crate::sys::poll::{Poll, Ready};
use anyhow::{Context, Result, ensure};
use sansio::Instant;

/// What a daemon will do on this machine as it is now.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The back end, and why.
    pub chosen: Chosen,
    /// Which packets it looks at and takes.
    pub selection: Selection,
    /// How they go on.
    pub ways: Ways,
}

impl Plan {
    /// Looks at the machine, and changes nothing.
    ///
    /// # Errors
    /// If the devices cannot be had, or the kernel does not forward between them as `config` says.
    pub fn of(config: &DaemonConfig) -> Result<Self> {
        let kernel = Kernel::now()?;
        let ageing = match config.forwarding {
            Forwarding::Routed => None,
            Forwarding::Bridge => Some(kernel.bridge(&config.devices)?.ageing),
        };
        let wired = packet_socket::find(&config.devices.wired)?;
        let radio = packet_socket::find(&config.devices.radio)?;
        check_mtus(&wired, &radio)?;
        let chosen = choice::choose(config)?;
        let (place, ways) = match ageing {
            None => {
                let neighbours = Neighbours::configured(config.next_hops.iter().copied());
                let place = Place::Router { wired: wired.mac, radio: radio.mac };
                (place, Ways::Router(neighbours))
            }
            Some(ageing) => {
                let own = kernel.stations();
                (Place::Bridge { own }, Ways::Bridge(Bridged::new(ageing)))
            }
        };
        let share = match chosen.name {
            BackEnd::Fast => Share::Acks,
            _ => Share::Everything,
        };
        let (mobile, own) = (config.mobile.clone(), kernel.addresses());
        Ok(Plan { chosen, selection: Selection { mobile, own, place, share }, ways })
    }

    /// Opens the sockets; nothing is taken from the kernel yet.
    ///
    /// # Errors
    /// If a device is gone or packet sockets are not allowed.
    pub fn sockets(&self, config: &DaemonConfig, clock: Clock) -> Result<Inline> {
        match self.chosen.name {
            BackEnd::Fast => Inline::open_tapped(&config.devices, clock),
            _ => Inline::open(&config.devices, clock),
        }
    }

    /// Has the kernel leave to the daemon what it takes.
    ///
    /// # Errors
    /// If nft is missing or refuses, or another daemon's table is there.
    pub fn rules(&self, config: &DaemonConfig) -> Result<Rules> {
        let (wired, radio) = (&config.devices.wired, &config.devices.radio);
        Rules::install(&self.selection.table(rules::TABLE, wired, radio)?)
    }
}

fn check_mtus(wired: &Interface, radio: &Interface) -> Result<()> {
    ensure!(
        wired.mtu == radio.mtu,
        "{} has an MTU of {} bytes, {} of {}: set them alike, since nobody here would tell a \
         sender that its packets are too long",
        wired.name,
        wired.mtu,
        radio.name,
        radio.mtu
    );
    Ok(())
}

/// An open data path; dropping it leaves everything to the kernel.
#[derive(Debug)]
pub struct DataPath {
    /// First of all, so that they go before the sockets do.
    _rules: Rules,
    /// Packets in and out.
    pub io: Inline,
    /// What was planned.
    pub plan: Plan,
    news: DeviceNews,
}

/// Tokens of the poll.
const WIRED: u64 = 0;
const RADIO: u64 = 1;
const RULES: u64 = 2;
const NEWS: u64 = 3;
/// The first token that is not of the data path.
pub const TOKENS: u64 = 4;

impl DataPath {
    /// Opens the sockets, then installs the rules, and has `poll` wait for all of them.
    ///
    /// # Errors
    /// As those of [`Plan`].
    pub fn open(config: &DaemonConfig, clock: Clock, poll: &Poll) -> Result<Self> {
        // From before the devices are looked at, so that no change is missed.
        let news = DeviceNews::open()?;
        let plan = Plan::of(config)?;
        let io = plan.sockets(config, clock)?;
        io.watch(poll, (WIRED, RADIO))?;
        if config.forwarding == Forwarding::Bridge {
            poll.add(&news, NEWS)?;
        }
        let rules = plan.rules(config)?;
        poll.add(&rules, RULES)?;
        Ok(DataPath { _rules: rules, io, plan, news })
    }

    /// When [`DataPath::attend`] is due though nothing wakes anybody.
    pub fn next_at(&self) -> Option<Instant> {
        self.io.next_at()
    }

    /// To be called after each wait, with what was ready: sees to the sockets, and that the kernel
    /// still does what the daemon relies on.
    ///
    /// # Errors
    /// If it does not: to go on would send packets twice, or where no bridge would send them. If a
    /// device is gone.
    pub fn attend(&mut self, poll: &Poll, ready: Ready, config: &DaemonConfig) -> Result<()> {
        self.io.attend(poll, ready, (WIRED, RADIO))?;
        ensure!(!ready.contains(RULES), "nft has ended, and the rules with it");
        if ready.contains(NEWS) && self.news.take() {
            Kernel::now()?.bridge(&config.devices).context("the bridge has changed")?;
        }
        Ok(())
    }
}
