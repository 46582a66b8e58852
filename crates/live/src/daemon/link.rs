//! The daemon between its two devices: nothing, looking on, or helping; and waiting for a device
//! that is gone.

use super::choice::Chosen;
use super::config::{BackEnd, DaemonConfig, Forwarding, Mode};
use super::kernel::Kernel;
use super::machine;
use super::path::{DataPath, Plan};
use super::selection::Prefix;
use super::station::{Acting, Departures, Station};
use crate::io::inline::Inline;
use crate::sys::poll::Poll;
use crate::sys::{Clock, device};
use anyhow::{Context, Result};
use sansio::{Notice, Side};
use schemes::Scheme;
use schemes::worth::Measured;
use std::hash::{BuildHasher, Hasher, RandomState};

/// The station and what it is attached to.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) station: Station<Measured<Scheme>>,
    pub(super) attachment: Attachment,
    clock: Clock,
    /// Frames lost at sockets that are closed by now.
    overruns: u64,
    /// True if the engine was told that the radio's carrier is gone, and not that it is back: the
    /// device may be closed and opened again meanwhile.
    is_told_down: bool,
}

/// What packets come through.
#[derive(Debug)]
pub(super) enum Attachment {
    /// Nothing: mode off.
    Off,
    /// Nothing, until a device is there that is missing now.
    Waiting {
        /// Which, and what is the matter.
        why: String,
    },
    /// Open sockets.
    Open(Box<DataPath>),
}

/// Rounds of a station that takes what waits in its sockets, at most.
const DRAIN_TURNS_MAX: u32 = 1_000;

impl Link {
    /// A station that is attached to nothing.
    ///
    /// # Errors
    /// If there are no such devices.
    pub(super) fn new(config: &DaemonConfig, clock: Clock) -> Result<Self> {
        let scheme = scheme(config)?;
        let departures =
            if scheme.wants_departures() { Departures::Reported } else { Departures::Silent };
        // What is planned really, is once there is something to attach to.
        let none = Chosen { name: BackEnd::Inline, reason: "nothing is open".to_owned() };
        let Plan { selection, ways, .. } = Plan::with(config, none)?;
        let classes = config.classes.iter().map(|(name, prefixes)| {
            (name.clone(), prefixes.iter().map(Prefix::network_and_bits).collect())
        });
        let measured = Measured::new(scheme, config.worth.clone(), classes, random());
        let station = Station::new(measured, departures, selection, ways);
        Ok(Link { station, attachment: Attachment::Off, clock, overruns: 0, is_told_down: false })
    }

    /// Does this from now on. No connection suffers: at each instant either the kernel or the
    /// station forwards, or for a moment both.
    ///
    /// # Errors
    /// If devices or rules cannot be had; then the kernel forwards.
    pub(super) fn enter(&mut self, mode: Mode, config: &DaemonConfig) -> Result<()> {
        if mode != Mode::Help {
            self.stop_helping();
        }
        if mode == Mode::Off {
            self.detach(Attachment::Off);
            self.station.forget(self.clock.now());
            return Ok(());
        }
        if !matches!(self.attachment, Attachment::Open(_)) {
            self.attach(config)?;
        }
        if mode == Mode::Help {
            self.help(config)?;
        }
        Ok(())
    }

    /// Opens the sockets, and takes nothing from the kernel.
    fn attach(&mut self, config: &DaemonConfig) -> Result<()> {
        let path = DataPath::open(config, self.clock)?;
        let Plan { selection, ways, .. } = path.plan.clone();
        self.station.select(selection, ways);
        self.act(Acting::Observing);
        self.attachment = Attachment::Open(Box::new(path));
        Ok(())
    }

    /// Takes packets from the kernel.
    fn help(&mut self, config: &DaemonConfig) -> Result<()> {
        let Attachment::Open(path) = &mut self.attachment else { return Ok(()) };
        let station = &mut self.station;
        // What the kernel has forwarded by then is not sent again.
        path.take(config, |io| drain(station, io))?;
        self.act(Acting::Helping);
        Ok(())
    }

    fn act(&mut self, acting: Acting) {
        self.station.act(acting);
        self.station.engine_mut().set_acts(acting == Acting::Helping);
    }

    /// Leaves the packets to the kernel, and sends on what it did not get.
    fn stop_helping(&mut self) {
        let Attachment::Open(open) = &mut self.attachment else { return };
        let station = &mut self.station;
        // A device that is gone is seen at the next turn.
        let sends_on = |io: &mut Inline| drop(station.turn(io));
        if open.leave(sends_on) {
            drain(&mut self.station, &mut open.io);
        }
        self.act(Acting::Observing);
    }

    fn detach(&mut self, next: Attachment) {
        self.overruns = self.overruns();
        self.attachment = next;
    }

    /// Leaves everything to the kernel.
    pub(super) fn close(&mut self) {
        self.stop_helping();
        self.detach(Attachment::Off);
    }

    /// Takes other settings, of devices, hosts or the scheme; a scheme begins anew.
    ///
    /// # Errors
    /// If there are no such devices; then nothing has changed.
    pub(super) fn rebuild(&mut self, config: &DaemonConfig) -> Result<()> {
        let next = Link::new(config, self.clock)?;
        self.close();
        *self = Link { overruns: self.overruns, ..next };
        Ok(())
    }

    /// Looks whether the devices are those that were opened, or there again; says what changed.
    ///
    /// # Errors
    /// If rules cannot be had though the devices are there.
    pub(super) fn look_at_devices(
        &mut self,
        mode: Mode,
        config: &DaemonConfig,
    ) -> Result<Option<Change>> {
        match &self.attachment {
            Attachment::Off => Ok(None),
            Attachment::Open(open) => {
                let why = [Side::WIRED, Side::RADIO].into_iter().find_map(|side| {
                    let known = open.io.interface(side);
                    match device::state(&known.name) {
                        Ok(state) if state.interface == *known => None,
                        Ok(_) => Some(format!("{} has become another device", known.name)),
                        Err(_) => Some(format!("{} is gone", known.name)),
                    }
                });
                let why = why.or_else(|| unbridged(config));
                Ok(why.map(|why| {
                    self.lose(why.clone());
                    Change::Lost(why)
                }))
            }
            Attachment::Waiting { .. } => {
                let missing = machine::devices(config).err().map(|error| format!("{error:#}"));
                if let Some(why) = missing.or_else(|| unbridged(config)) {
                    self.attachment = Attachment::Waiting { why };
                    return Ok(None);
                }
                self.enter(mode, config)?;
                Ok(Some(Change::Back))
            }
        }
    }

    /// Looks whether the machine has other addresses than when the devices were opened: packets to
    /// itself are not taken. True if it has; then the rules are others, too. `None` if that could
    /// not be told, since too much changes at this moment.
    ///
    /// # Errors
    /// If devices or rules cannot be had.
    pub(super) fn look_at_addresses(
        &mut self,
        mode: Mode,
        config: &DaemonConfig,
    ) -> Result<Option<bool>> {
        let Attachment::Open(path) = &self.attachment else { return Ok(Some(false)) };
        let Ok(now) = Plan::with(config, path.plan.chosen.clone()) else { return Ok(None) };
        if now.selection == path.plan.selection {
            return Ok(Some(false));
        }
        self.close();
        self.enter(mode, config)?;
        Ok(Some(true))
    }

    /// What the radio's device tells of its link since the last look: its carrier is gone, or back.
    pub(super) fn news_of_carrier(&mut self) -> Option<Notice> {
        let Attachment::Open(open) = &self.attachment else { return None };
        let state = device::state(&open.io.interface(Side::RADIO).name).ok()?;
        if self.is_told_down != state.running {
            return None;
        }
        self.is_told_down = !state.running;
        Some(match state.running {
            true => Notice::LinkUp(Side::RADIO),
            false => Notice::LinkDown(Side::RADIO),
        })
    }

    /// A device failed: leaves everything to the kernel until it is there again.
    pub(super) fn lose(&mut self, why: String) {
        self.detach(Attachment::Waiting { why });
    }

    /// What is wrong with the devices, if anything is.
    pub(super) fn problem(&self) -> Option<String> {
        match &self.attachment {
            Attachment::Off => None,
            Attachment::Waiting { why } => Some(why.clone()),
            Attachment::Open(open) => [Side::WIRED, Side::RADIO].into_iter().find_map(|side| {
                let name = &open.io.interface(side).name;
                let running = device::state(name).is_ok_and(|state| state.running);
                (!running).then(|| format!("{name} is down"))
            }),
        }
    }

    /// The back end, if sockets are open.
    pub(super) fn back_end(&self) -> Option<Chosen> {
        match &self.attachment {
            Attachment::Open(path) => Some(path.plan.chosen.clone()),
            _ => None,
        }
    }

    /// Has `poll` wait for what is open now.
    ///
    /// # Errors
    /// If the system refuses.
    pub(super) fn watch(&self, poll: &Poll) -> Result<()> {
        let Attachment::Open(path) = &self.attachment else { return Ok(()) };
        // What is watched already is not watched twice.
        path.unwatch(poll);
        path.watch(poll)
    }

    /// Frames lost so far because they came faster than they were taken.
    pub(super) fn overruns(&mut self) -> u64 {
        if let Attachment::Open(open) = &mut self.attachment {
            self.overruns += open.io.overruns();
        }
        self.overruns
    }
}

/// Takes all that waits in the sockets.
fn drain(station: &mut Station<Measured<Scheme>>, io: &mut Inline) {
    for _ in 0..DRAIN_TURNS_MAX {
        let seen = |station: &Station<Measured<Scheme>>| {
            let counted = station.counters();
            counted.taken + counted.seen + counted.left_to_kernel
        };
        let before = seen(station);
        // A device that is gone has nothing more to say.
        if station.turn(io).is_err() || seen(station) == before {
            return;
        }
    }
}

/// Why the kernel does not bridge the devices, if it should and does not.
fn unbridged(config: &DaemonConfig) -> Option<String> {
    let bridged = || Kernel::now()?.bridge(&config.devices);
    let is_asked = config.forwarding == Forwarding::Bridge;
    is_asked.then(bridged)?.err().map(|error| format!("{error:#}"))
}

/// What became of the devices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// One is gone.
    Lost(String),
    /// All are there again.
    Back,
}

/// The scheme, with a random key for its table of flows, so that nobody outside can choose
/// four-tuples that collide in it.
fn scheme(config: &DaemonConfig) -> Result<Scheme> {
    let named = node::base_station::compose(&config.scheme);
    let mut scheme =
        named.with_context(|| format!("scheme = {}: no such scheme", config.scheme))?;
    if let Scheme::Snoop(agent) = scheme {
        let preset = agent.config().clone();
        let agent = schemes::snoop::Config {
            help_from: config.help_from,
            flows_max: config.limits.flows.unwrap_or(preset.flows_max),
            cache_bytes_total_max: config
                .limits
                .cache_bytes
                .unwrap_or(preset.cache_bytes_total_max),
            ..preset
        };
        scheme = Scheme::Snoop(Box::new(schemes::snoop::Agent::with_key(agent, random())));
    }
    if let Some(rate) = config.radio_rate {
        scheme.set_link_rate(rate);
    }
    Ok(scheme)
}

fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}
