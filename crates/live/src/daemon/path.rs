//! The data path: sockets on the devices, and the rules that leave them what they take.

use super::bridged::Bridged;
use super::choice::{self, Chosen};
use super::machine::Machine;
use super::neighbours::{Neighbours, Ways};
use super::rules::{self, Rules};
use super::selection::{Place, Selection, Share};
use super::{BackEnd, DaemonConfig, Forwarding, check};
use crate::io::inline::Inline;
use crate::sys::Clock;
use crate::sys::poll::{Poll, Ready};
use anyhow::Result;
use sansio::Instant;
use std::net::IpAddr;

/// Open sockets, with or without rules; dropping it leaves everything to the kernel.
#[derive(Debug)]
pub struct DataPath {
    /// First of all, so that they go before the sockets do.
    rules: Option<Rules>,
    /// Packets in and out.
    pub io: Inline,
    /// Which of them.
    pub selection: Selection,
    /// The back end, and why.
    pub chosen: Chosen,
    /// The rules' text, for nft.
    table: String,
}

/// Tokens of the poll.
const WIRED: u64 = 0;
const RADIO: u64 = 1;
const RULES: u64 = 2;
/// The first token that is not of the data path.
pub const TOKENS: u64 = 3;

impl DataPath {
    /// Opens the sockets, and takes nothing from the kernel.
    ///
    /// # Errors
    /// If the devices cannot be had, or the kernel does not forward between them as `config` says.
    pub fn open(config: &DaemonConfig, clock: Clock) -> Result<Self> {
        let chosen = choice::choose(config)?;
        let (selection, _) = select(config, chosen.name)?;
        let io = match chosen.name {
            BackEnd::Fast => Inline::open_tapped(&config.devices, clock)?,
            _ => Inline::open(&config.devices, clock)?,
        };
        let table = selection.table(rules::TABLE, &config.devices.wired, &config.devices.radio)?;
        Ok(DataPath { rules: None, io, selection, chosen, table })
    }

    /// Takes packets from the kernel, if it did not.
    ///
    /// # Errors
    /// If the rules cannot be had.
    pub fn take(&mut self) -> Result<()> {
        if self.rules.is_none() {
            self.rules = Some(Rules::install(&self.table)?);
        }
        Ok(())
    }

    /// Takes nothing any more; true if it did.
    pub fn leave(&mut self) -> bool {
        self.rules.take().is_some()
    }

    /// Has `poll` wait for all of it; once for each time it was opened, or took.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn watch(&self, poll: &Poll) -> Result<()> {
        self.io.watch(poll, (WIRED, RADIO))?;
        self.rules.as_ref().map_or(Ok(()), |rules| poll.add(rules, RULES))
    }

    /// Ends what [`DataPath::watch`] began.
    pub fn unwatch(&self, poll: &Poll) {
        self.io.unwatch(poll);
        if let Some(rules) = &self.rules {
            // What is not watched need not be told.
            let _unknown = poll.remove(rules);
        }
    }

    /// When [`DataPath::attend`] is due though nothing wakes anybody.
    pub fn next_at(&self) -> Option<Instant> {
        self.io.next_at()
    }

    /// To be called after each wait, with what was ready.
    ///
    /// # Errors
    /// If a device is gone.
    pub fn attend(&mut self, poll: &Poll, ready: Ready) -> Result<()> {
        self.io.attend(poll, ready, (WIRED, RADIO))
    }
}

/// True if nft has ended, and the rules with it.
pub fn has_lost_its_rules(ready: Ready) -> bool {
    ready.contains(RULES)
}

/// What is taken, and how it goes on, as the machine is now.
///
/// # Errors
/// If there are no such devices, or the kernel does not forward between them as `config` says.
pub fn select(config: &DaemonConfig, back_end: BackEnd) -> Result<(Selection, Ways)> {
    let (wired, radio) = check::devices(config)?;
    let machine = Machine::now()?;
    let (place, ways) = match config.forwarding {
        Forwarding::Routed => {
            let neighbours = Neighbours::configured(config.next_hops.iter().copied());
            let place = Place::Router { wired: wired.mac, radio: radio.mac };
            (place, Ways::Router(neighbours))
        }
        Forwarding::Bridge => {
            let ageing = machine.bridge(&config.devices)?.ageing;
            let own = machine.stations();
            (Place::Bridge { own }, Ways::Bridge(Bridged::new(ageing)))
        }
    };
    let share = match back_end {
        BackEnd::Fast => Share::Acks,
        _ => Share::Everything,
    };
    // Of a family that is not taken no address matters.
    let is_of_mobiles = |own: &IpAddr| {
        config.mobile.iter().any(|prefix| prefix.network().is_ipv4() == own.is_ipv4())
    };
    let own = machine.addresses().into_iter().filter(is_of_mobiles).collect();
    Ok((Selection { mobile: config.mobile.clone(), own, place, share }, ways))
}
