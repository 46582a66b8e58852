//! The data path: sockets on the devices, and the rules that leave them what they take.

use super::bridged::Bridged;
use super::machine::Machine;
use super::neighbours::{Neighbours, Ways};
use super::rules::{self, Rules};
use super::selection::{Place, Selection, Share};
use super::{DaemonConfig, Forwarding};
use crate::io::inline::Inline;
use crate::sys::Clock;
use crate::sys::netlink::DeviceNews;
use crate::sys::poll::Poll;
use anyhow::{Context, Result, ensure};
use sansio::Side;

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
        let io = Inline::open(&config.devices, clock)?;
        let (wired, radio) =
            (io.socket(Side::WIRED).interface(), io.socket(Side::RADIO).interface());
        ensure!(
            wired.mtu == radio.mtu,
            "{} has an MTU of {} bytes, {} of {}: set them alike, since nobody here would tell a \
             sender that its packets are too long",
            wired.name,
            wired.mtu,
            radio.name,
            radio.mtu
        );
        let (place, ways) = match config.forwarding {
            Forwarding::Routed => {
                let neighbours = Neighbours::configured(config.next_hops.iter().copied());
                let place = Place::Router { wired: wired.mac, radio: radio.mac };
                (place, Ways::Router(neighbours))
            }
            Forwarding::Bridge => {
                let ageing = machine.bridge(&config.devices)?.ageing;
                poll.add(&news, NEWS)?;
                let own = machine.stations();
                (Place::Bridge { own }, Ways::Bridge(Bridged::new(ageing)))
            }
        };
        let selection = Selection {
            mobile: config.mobile.clone(),
            own: machine.addresses(),
            place,
            share: Share::Everything,
        };
        poll.add(io.socket(Side::WIRED), WIRED)?;
        poll.add(io.socket(Side::RADIO), RADIO)?;
        let table = selection.table(rules::TABLE, &config.devices.wired, &config.devices.radio)?;
        let rules = Rules::install(&table)?;
        poll.add(&rules, RULES)?;
        Ok(DataPath { _rules: rules, io, selection, ways, news })
    }

    /// Sees to it that the kernel still does what the daemon relies on.
    ///
    /// # Errors
    /// If it does not: to go on would send packets twice, or where no bridge would send them.
    pub fn check(&mut self, ready: &[u64], config: &DaemonConfig) -> Result<()> {
        ensure!(!ready.contains(&RULES), "nft has ended, and the rules with it");
        if ready.contains(&NEWS) && self.news.take() {
            Machine::now()?.bridge(&config.devices).context("the bridge has changed")?;
        }
        Ok(())
    }
}
