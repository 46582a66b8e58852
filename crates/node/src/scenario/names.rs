//! The names that scenario files and options use for radios, senders, directions and hosts.

use super::quantity::{QuantityError, as_text};
use core::fmt;
use core::str::FromStr;

/// Declares an enum whose variants have names, with parsing, printing and the list of names.
macro_rules! named {
    ($(#[$doc:meta])* $type:ident, $what:literal, $expected:literal,
     { $($(#[$variant_doc:meta])* $variant:ident = $name:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $type { $($(#[$variant_doc])* $variant),+ }

        impl $type {
            /// All of them, in the order of their listing.
            pub const ALL: &[$type] = &[$($type::$variant),+];

            /// The name.
            pub const fn name(self) -> &'static str {
                match self { $($type::$variant => $name),+ }
            }
        }

        impl FromStr for $type {
            type Err = QuantityError;
            fn from_str(text: &str) -> Result<Self, QuantityError> {
                let text = text.trim();
                let found = Self::ALL.iter().copied().find(|known| known.name() == text);
                found.ok_or_else(|| QuantityError {
                    value: text.to_owned(),
                    what: $what,
                    expected: $expected,
                })
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}

named! {
    /// A preset of the last hop.
    Radio, "a radio", "plain, wavelan-1995, wifi-roam, lte, 5g or leo",
    {
        /// A clean full-duplex link.
        Plain = "plain",
        /// The 2 Mbit/s radio of the papers.
        Wavelan1995 = "wavelan-1995",
        /// Wi-Fi between access points: local ARQ, residual bursts.
        WifiRoam = "wifi-roam",
        /// An LTE cell: repetitions on layer 1, deep queues, handovers that hold.
        Lte = "lte",
        /// A mid-band 5G cell.
        FiveG = "5g",
        /// A low-orbit satellite link that reconfigures every 15 s.
        Leo = "leo",
    }
}

named! {
    /// A TCP sender.
    Sender, "a TCP sender", "tahoe, reno, newreno, sack1, sack, vegas, cubic, linux or bbr",
    {
        /// 4.3BSD-Tahoe.
        Tahoe = "tahoe",
        /// 4.3BSD-Reno on hosts of 1995; on modern hosts and in the lab Linux's `reno`
        /// (`tcp::Config::linux`).
        Reno = "reno",
        /// RFC 6582.
        NewReno = "newreno",
        /// Fall and Floyd's Sack1.
        Sack1 = "sack1",
        /// RFC 6675.
        Sack = "sack",
        /// TCP Vegas.
        Vegas = "vegas",
        /// RFC 9438, as Linux has it.
        Cubic = "cubic",
        /// The sender Linux has today.
        Linux = "linux",
        /// BBR, version 1, as Linux has it.
        Bbr = "bbr",
    }
}

named! {
    /// Which way the bulk of the data goes.
    Direction, "a direction", "down (to the mobile host), up or both",
    {
        /// Fixed host to mobile host.
        Down = "down",
        /// Mobile host to fixed host.
        Up = "up",
        /// One transfer each way at the same time.
        Both = "both",
    }
}

named! {
    /// Whether sender and receiver use selective acknowledgments.
    Switch, "a switch", "on or off",
    {
        /// Used.
        On = "on",
        /// Not used.
        Off = "off",
    }
}

named! {
    /// What the hosts' TCP is like beside its congestion control.
    Hosts, "a kind of host", "modern or 1995",
    {
        /// Timestamps, window scaling, 200 ms minimum RTO, initial window 10.
        Modern = "modern",
        /// 500 ms ticks, 1 s minimum RTO, no options, 200 ms delayed ACKs.
        Bsd1995 = "1995",
    }
}

named! {
    /// What a base station is told of a packet's way onto its radio.
    Departures, "a kind of departure", "air or device",
    {
        /// That it goes onto the air: the station sees the queue before it, as the driver of a
        /// radio does.
        Air = "air",
        /// That it was handed to a device, which has a queue of its own: what waits or is dropped
        /// there stays unknown. So it is with a daemon, and in the lab.
        Device = "device",
    }
}

named! {
    /// How cells divide the air among them.
    Channel, "a channel", "per-cell or shared",
    {
        /// Each cell has its own.
        PerCell = "per-cell",
        /// All have one: while a station sends in one cell, those of all others wait.
        Shared = "shared",
    }
}

named! {
    /// Which of a base station's mobile hosts its scheme serves.
    Served, "a choice of mobile hosts", "all or first",
    {
        /// All.
        All = "all",
        /// The first one; packets of the others are only forwarded. So it shows what they lose.
        First = "first",
    }
}

as_text!(Radio, Sender, Direction, Switch, Hosts, Channel, Departures, Served);

impl Sender {
    /// What it is, in a line.
    pub fn what(self) -> &'static str {
        match self {
            Sender::Tahoe => "fast retransmit, then slow start (4.3BSD-Tahoe)",
            Sender::Reno => "fast recovery (4.3BSD-Reno; on modern hosts Linux's reno)",
            Sender::NewReno => "Reno until the whole window is repaired (RFC 6582)",
            Sender::Sack1 => "SACK with a counted pipe (Fall and Floyd 1996, as in ns-2)",
            Sender::Sack => "SACK with a scoreboard (RFC 6675)",
            Sender::Vegas => "a window by measured rates (Brakmo and Peterson 1995)",
            Sender::Cubic => "today's Linux: CUBIC (RFC 9438), RACK-TLP, PRR",
            Sender::Linux => "the same as cubic",
            Sender::Bbr => "today's Linux with BBR, version 1, which paces (Cardwell et al. 2017)",
        }
    }

    /// The simulator's sender of this name.
    pub fn simulated(self) -> tcp::Congestion {
        match self {
            Sender::Tahoe => tcp::Congestion::Tahoe,
            Sender::Reno => tcp::Congestion::Reno,
            Sender::NewReno => tcp::Congestion::NewReno,
            Sender::Sack1 => tcp::Congestion::Sack1,
            Sender::Vegas => tcp::Congestion::Vegas,
            Sender::Sack => tcp::Congestion::Sack,
            Sender::Cubic | Sender::Linux => tcp::Congestion::Cubic,
            Sender::Bbr => tcp::Congestion::Bbr,
        }
    }

    /// The kernel's congestion control of this name, for the lab.
    pub fn in_kernel(self) -> Option<&'static str> {
        match self {
            Sender::Reno => Some("reno"),
            Sender::Cubic | Sender::Linux => Some("cubic"),
            Sender::Bbr => Some("bbr"),
            Sender::Vegas => Some("vegas"),
            Sender::Tahoe | Sender::NewReno | Sender::Sack1 | Sender::Sack => None,
        }
    }

    /// Whether hosts with this sender use SACK when nobody says so.
    pub fn sack_by_default(self) -> Switch {
        match self {
            Sender::Tahoe | Sender::Reno | Sender::NewReno | Sender::Vegas => Switch::Off,
            Sender::Sack1 | Sender::Sack | Sender::Cubic | Sender::Linux | Sender::Bbr => {
                Switch::On
            }
        }
    }
}
