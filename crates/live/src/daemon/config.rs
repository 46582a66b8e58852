//! How a daemon runs: everything that a configuration file or the command line can say.

use super::control::Control;
use super::selection::Prefix;
use crate::io::inline::Devices;
use sansio::{BitRate, Duration};
use schemes::snoop::config::HelpFrom;
use schemes::worth::Worth;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use wire::ethernet::Mac;

/// Everything a daemon has to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DaemonConfig {
    /// Where it stands.
    pub place: Place,
    /// Its devices.
    pub devices: Devices,
    /// Where the mobile hosts are; at least one prefix.
    pub mobile: Vec<Prefix>,
    /// Next hops that need not be learned.
    pub next_hops: Vec<(IpAddr, Mac)>,
    /// The scheme, by one of the names in `schemes::Scheme::NAMES`.
    pub scheme: String,
    /// From when on a flow is helped.
    pub help_from: HelpFrom,
    /// How much it may keep.
    pub limits: Limits,
    /// How it is measured what help is worth.
    pub worth: Worth,
    /// Classes of mobile hosts for which that is measured, by name; others are one of their own.
    pub classes: Vec<(String, Vec<Prefix>)>,
    /// Where in each minute (UTC) a schedule says that the link is back, if it was gone.
    pub back_at: Vec<Duration>,
    /// The radio's rate, which bounds probing; measured if not known.
    pub radio_rate: Option<BitRate>,
    /// What it does at the start.
    pub mode: Mode,
    /// How packets get from one device to the other.
    pub forwarding: Forwarding,
    /// By which way packets pass the engine.
    pub back_end: BackEnd,
    /// Who may give it orders.
    pub control: Control,
    /// Where metrics and health are served over HTTP, if anywhere.
    pub metrics: Option<SocketAddr>,
    /// What it says, and how.
    pub log: Log,
    /// The file this came from, to be read again on SIGHUP.
    pub file: Option<PathBuf>,
}

impl DaemonConfig {
    /// A base station that helps, with everything else as if nobody had said anything.
    pub fn base_station(devices: Devices, mobile: Vec<Prefix>) -> Self {
        DaemonConfig {
            place: Place::BaseStation,
            devices,
            mobile,
            next_hops: Vec::new(),
            scheme: "snoop-modern".to_owned(),
            help_from: HelpFrom::FirstPacket,
            limits: Limits::default(),
            worth: Worth::NONE,
            classes: Vec::new(),
            back_at: Vec::new(),
            radio_rate: None,
            mode: Mode::Help,
            forwarding: Forwarding::Routed,
            back_end: BackEnd::Auto,
            control: Control::Nobody,
            metrics: None,
            log: Log::default(),
            file: None,
        }
    }

    /// True if packets pass the same way with the same scheme.
    pub(super) fn has_path_of(&self, other: &DaemonConfig) -> bool {
        let rest = |config: &DaemonConfig| DaemonConfig {
            mode: Mode::Off,
            control: Control::Nobody,
            metrics: None,
            log: Log::default(),
            ..config.clone()
        };
        rest(self) == rest(other)
    }
}

/// How much a daemon may keep; `None` is the scheme's own limit. What is beyond passes untouched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Flows, 131,072 by default; at least 1.
    pub flows: Option<u32>,
    /// Payload bytes of all flows, 1 GiB by default.
    pub cache_bytes: Option<u64>,
}

/// Where a daemon stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In the path above base stations or access points: the radio's queue is theirs.
    Gateway,
    /// Where the radio is attached.
    BaseStation,
}

/// What a daemon does with the packets between the hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Nothing; the kernel forwards.
    Off,
    /// Looks on and counts what it would have done; the kernel forwards.
    Observe,
    /// Takes them from the kernel, and repairs the last hop.
    Help,
}

/// How packets get from one device to the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Forwarding {
    /// The machine is a router.
    Routed,
    /// The machine is a transparent bridge of both devices.
    Bridge,
}

/// By which way packets pass the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BackEnd {
    /// The best that this machine can do.
    Auto,
    /// Packet sockets, both ways through the engine.
    Inline,
    /// The kernel forwards data, the engine has copies of it and the ACKs inline.
    Fast,
}

/// What a daemon says on its standard error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Log {
    /// The least important that is said.
    pub level: Level,
    /// How a line looks.
    pub format: Format,
}

/// How important something is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// It cannot go on.
    Error,
    /// It goes on, but somebody should look.
    Warn,
    /// What an operator wants to find later: modes, reloads, devices, flows left alone.
    #[default]
    Info,
    /// Each intervention, with its reason.
    Debug,
}

/// How a line of the log looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// `level=info event=mode mode=help`
    #[default]
    Text,
    /// One JSON object.
    Json,
}

/// Prints a value as configuration files write it.
macro_rules! shown_as {
    ($($kind:ident { $($variant:ident => $text:literal),+ })+) => {$(
        impl fmt::Display for $kind {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $($kind::$variant => $text),+ })
            }
        }
    )+};
}
shown_as! {
    Place { Gateway => "gateway", BaseStation => "base-station" }
    Mode { Off => "off", Observe => "observe", Help => "help" }
    Forwarding { Routed => "routed", Bridge => "bridge" }
    BackEnd { Auto => "auto", Inline => "inline", Fast => "fast" }
    Level { Error => "error", Warn => "warn", Info => "info", Debug => "debug" }
}

impl Mode {
    /// Every mode.
    pub const ALL: [Mode; 3] = [Mode::Off, Mode::Observe, Mode::Help];

    /// The mode of this name.
    pub fn named(name: &str) -> Option<Mode> {
        Mode::ALL.into_iter().find(|mode| mode.to_string() == name)
    }
}
