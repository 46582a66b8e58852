//! What one run of the lab is. Plain data.

use crate::radio;
use sansio::Duration;

/// One run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunSetup {
    /// The hops and their seed.
    pub air: radio::Config,
    /// The scheme at the base station: one that the daemon knows, [`RunSetup::OBSERVE`], or
    /// [`RunSetup::PLAIN`] or [`RunSetup::PLAIN_TUNED`], which need none.
    pub scheme: String,
    /// The senders' congestion control.
    pub sender: Sender,
    /// True if the hosts use SACK.
    pub sack: bool,
    /// True if the hosts use timestamps.
    pub timestamps: bool,
    /// Which way the data goes.
    pub direction: Direction,
    /// What it is.
    pub traffic: Traffic,
    /// How much of the bulk data, or for how long.
    pub amount: Amount,
    /// Mobile hosts, up to [`super::network::MOBILES_MAX`], each with transfers of its own. They
    /// share the radio with its queue, its losses and its outages.
    pub mobiles: u32,
    /// True if the daemon serves the first of them alone.
    pub serves_first: bool,
    /// The largest segment, TCP options counted as payload; `None`: what an MTU of 1500 gives.
    pub mss: Option<u16>,
    /// The receive window in bytes; `None`: the kernel's own tuning.
    pub window_bytes: Option<u32>,
    /// A transfer of a given size is given up after this time.
    pub patience: Duration,
    /// What is done to the daemon on the way, in order of time.
    pub drill: Vec<DrillStep>,
}

impl RunSetup {
    /// Forwarding by the kernel, no daemon.
    pub const PLAIN: &str = "plain";
    /// The same, with the two settings that make a Linux sender patient no longer than a second:
    /// `tcp_rto_max_ms` = 1000, its minimum, and `tcp_rto_min_us` = 20000, at the senders.
    pub const PLAIN_TUNED: &str = "plain-tuned";
    /// A daemon that looks on: what it costs to have one, and that it changes nothing.
    pub const OBSERVE: &str = "observe";
    /// The scheme of a daemon that looks on.
    const OBSERVER: &str = "snoop-modern";

    /// The scheme of the daemon, if one runs.
    pub fn daemon_scheme(&self) -> Option<&str> {
        match self.scheme.as_str() {
            Self::PLAIN | Self::PLAIN_TUNED => None,
            Self::OBSERVE => Some(Self::OBSERVER),
            scheme => Some(scheme),
        }
    }
}

/// A congestion control of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sender {
    /// NewReno (tcp_cong.c).
    Reno,
    /// CUBIC, RFC 9438.
    Cubic,
    /// BBR version 1.
    Bbr,
    /// Linux's own Vegas (tcp_vegas.c), a module that few kernels have.
    Vegas,
}

impl Sender {
    /// All of them.
    pub const ALL: [Sender; 4] = [Sender::Reno, Sender::Cubic, Sender::Bbr, Sender::Vegas];

    /// The kernel's name.
    pub fn name(self) -> &'static str {
        match self {
            Sender::Reno => "reno",
            Sender::Cubic => "cubic",
            Sender::Bbr => "bbr",
            Sender::Vegas => "vegas",
        }
    }

    /// The sender of this name.
    pub fn from_name(name: &str) -> Option<Sender> {
        Sender::ALL.into_iter().find(|sender| sender.name() == name)
    }
}

/// Which way the data goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Fixed host to mobile host.
    Down,
    /// Mobile host to fixed host.
    Up,
    /// A transfer each way, at once.
    Both,
}

/// What applications send, each on a connection of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Traffic {
    /// Bulk data.
    Bulk,
    /// Messages.
    Request(Messages),
    /// Both at once.
    BulkAndRequest(Messages),
}

/// Messages of one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Messages {
    /// Bytes of each, above 0.
    pub size_bytes: u64,
    /// One is written so often, the first when the run begins.
    pub every: Duration,
}

impl Traffic {
    /// The connections each way, in the simulator's order: `None` for bulk data.
    pub fn connections(self) -> impl Iterator<Item = Option<Messages>> {
        let (bulk, messages) = match self {
            Traffic::Bulk => (true, None),
            Traffic::Request(messages) => (false, Some(messages)),
            Traffic::BulkAndRequest(messages) => (true, Some(messages)),
        };
        bulk.then_some(None).into_iter().chain(messages.map(Some))
    }
}

/// How much is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// This many bytes.
    Size(u64),
    /// As much as goes through in this time.
    Duration(Duration),
}

/// Something done to the daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DrillStep {
    /// When, since the start of the run.
    pub at: Duration,
    /// What.
    pub what: Drill,
}

/// What can be done to the daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drill {
    /// SIGKILL.
    Kill,
    /// A new one.
    Restart,
}
