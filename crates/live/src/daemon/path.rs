//! The data path: sockets on the devices, and the rules that leave them what they take.

use super::bridged::Bridged;
use super::choice::{self, Chosen};
use super::machine::Machine;
use super::neighbours::{Neighbours, Ways};
use super::rules::{self, Rules};
use super::selection::{Place, Selection, Share};
use super::{BackEnd, DaemonConfig, Forwarding};
use crate::io::inline::Inline;
use crate::sys::Clock;
use crate::sys::netlink::DeviceNews;
use crate::sys::poll::{Poll, Ready};
use anyhow::{Context, Result, ensure};
use sansio::{Instant, Side};

/// An open data path; dropping it leaves everything to the kernel.
#[derive(Debug)]
pub struct DataPath {
    /// First of all, so that they go before the sockets do.
    _rules: Rules,
    /// Packets in and out.
    pub io: Inline,
    /// Which of them.
    pub selection: Selection,
    /// Where they go on.
    pub ways: Ways,
    /// The back end, and why.
    pub chosen: Chosen,
    /// Of a bridge's devices.
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
    /// If the devices or the rules cannot be had, or the kernel does not forward between the
    /// devices as `config` says.
    pub fn open(config: &DaemonConfig, clock: Clock, poll: &Poll) -> Result<Self> {
        // From before it is asked how the devices are, so that no change is missed.
        let news = DeviceNews::open()?;
        let machine = Machine::now()?;
        let ageing = match config.forwarding {
            Forwarding::Routed => None,
            Forwarding::Bridge => Some(machine.bridge(&config.devices)?.ageing),
        };
        let chosen = choice::choose(config)?;
        let io = match chosen.name {
            BackEnd::Fast => Inline::open_tapped(&config.devices, clock)?,
            _ => Inline::open(&config.devices, clock)?,
        };
        let (wired, radio) = (io.interface(Side::WIRED), io.interface(Side::RADIO));
        ensure!(
            wired.mtu == radio.mtu,
            "{} has an MTU of {} bytes, {} of {}: set them alike, since nobody here would tell a \
             sender that its packets are too long",
            wired.name,
            wired.mtu,
            radio.name,
            radio.mtu
        );
        let (place, ways) = match ageing {
            None => {
                let neighbours = Neighbours::configured(config.next_hops.iter().copied());
                let place = Place::Router { wired: wired.mac, radio: radio.mac };
                (place, Ways::Router(neighbours))
            }
            Some(ageing) => {
                poll.add(&news, NEWS)?;
                let own = machine.stations();
                (Place::Bridge { own }, Ways::Bridge(Bridged::new(ageing)))
            }
        };
        let share = match chosen.name {
            BackEnd::Fast => Share::Acks,
            _ => Share::Everything,
        };
        let (mobile, own) = (config.mobile.clone(), machine.addresses());
        let selection = Selection { mobile, own, place, share };
        io.watch(poll, (WIRED, RADIO))?;
        let table = selection.table(rules::TABLE, &config.devices.wired, &config.devices.radio)?;
        let rules = Rules::install(&table)?;
        poll.add(&rules, RULES)?;
        Ok(DataPath { _rules: rules, io, selection, ways, chosen, news })
    }

    /// When [`DataPath::attend`] is due though nothing wakes anybody.
    pub fn next_at(&self) -> Option<Instant> {
        self.io.next_at()
    }

    /// To be called after each wait, with the tokens that were ready: sees to the sockets, and that
    /// the kernel still does what the daemon relies on.
    ///
    /// # Errors
    /// If it does not: to go on would send packets twice, or where no bridge would send them. If a
    /// device is gone.
    pub fn attend(&mut self, poll: &Poll, ready: Ready, config: &DaemonConfig) -> Result<()> {
        self.io.attend(poll, ready, (WIRED, RADIO))?;
        ensure!(!ready.contains(RULES), "nft has ended, and the rules with it");
        if ready.contains(NEWS) && self.news.take() {
            Machine::now()?.bridge(&config.devices).context("the bridge has changed")?;
        }
        Ok(())
    }
}
