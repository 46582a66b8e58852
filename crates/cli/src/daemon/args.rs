//! The options of `lasthop daemon`, `lasthop top` and `lasthop doctor`.

use clap::{Args, Subcommand};
use std::path::PathBuf;

/// Where a daemon that systemd runs takes orders.
pub(crate) const CONTROL: &str = "/run/lasthop/control";

#[derive(Debug, Subcommand)]
pub(crate) enum Daemon {
    /// Repair the last hop of all base stations or access points behind this machine
    Gateway(GatewayArgs),
    /// Repair the last hop behind RADIO for the hosts in PREFIX
    BaseStation(BaseStationArgs),
    /// Give an order to a running daemon, or ask it something; answers with JSON
    Ctl(CtlArgs),
}

#[derive(Debug, Args)]
pub(crate) struct GatewayArgs {
    /// Configuration file (TOML); SIGHUP has the daemon read it again
    #[arg(long, value_name = "FILE")]
    pub(crate) config: PathBuf,
    /// Say whether the file and this machine are fine; change nothing
    #[arg(long)]
    pub(crate) check: bool,
}

#[derive(Debug, Args)]
pub(crate) struct BaseStationArgs {
    /// Configuration file (TOML), in place of the other options; SIGHUP has it read again
    #[arg(long, value_name = "FILE", required_unless_present_all = ["wired", "radio", "mobile"])]
    pub(crate) config: Option<PathBuf>,
    /// Say whether the file and this machine are fine; change nothing
    #[arg(long)]
    pub(crate) check: bool,
    /// Interface toward the fixed hosts
    #[arg(long, value_name = "IF", conflicts_with = "config")]
    pub(crate) wired: Option<String>,
    /// Interface toward the mobile hosts
    #[arg(long, value_name = "IF", conflicts_with = "config")]
    pub(crate) radio: Option<String>,
    /// Another interface toward them whose packets are sent first
    #[arg(long, value_name = "IF", conflicts_with = "config")]
    pub(crate) radio_high: Option<String>,
    /// The mobile hosts' addresses, as in 10.0.2.0/24
    #[arg(long, value_name = "PREFIX", conflicts_with = "config")]
    pub(crate) mobile: Option<String>,
    /// The scheme (default: snoop-modern)
    #[arg(long, conflicts_with = "config")]
    pub(crate) scheme: Option<String>,
    /// Help flows from their first packet, or only once something shows that a radio is there
    #[arg(long, value_enum, default_value_t, conflicts_with = "config")]
    pub(crate) help_from: HelpFrom,
    /// The radio's rate, which bounds probing; measured if not given
    #[arg(long, value_name = "RATE", conflicts_with = "config")]
    pub(crate) radio_rate: Option<String>,
    /// Take orders (see `lasthop daemon ctl --help`) from a socket made here, or from standard
    /// input (-)
    #[arg(long, value_name = "PATH", conflicts_with = "config")]
    pub(crate) control: Option<String>,
}

/// From when on a flow is helped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum HelpFrom {
    /// 14,600 bytes of it are acknowledged, or 8 of 10,000 segments had to be repaired
    #[default]
    Evidence,
    /// Its first packet
    FirstPacket,
}

#[derive(Debug, Args)]
#[command(after_help = "ORDERS
  mode off|observe|help   do this from now on; no connection suffers
  flows [COUNT]           the flows, most recently active first (100)
  stats                   everything that is counted
  reload                  read the configuration file again, as SIGHUP does
  link down, link up      the radio is gone, or back: nobody has to find out by probing
  link maybe-up           if it was gone it is probably back: a schedule says so
  mobile ADDRESS down|up  the same of one mobile host
  forget                  let go of all that is known of flows; none is harmed
  stop                    give everything back and end")]
pub(crate) struct CtlArgs {
    /// The daemon's control socket
    #[arg(long, value_name = "PATH", default_value = CONTROL)]
    pub(crate) control: PathBuf,
    /// The order, as in `mode observe`
    #[arg(required = true, value_name = "ORDER")]
    pub(crate) order: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct TopArgs {
    /// The daemon's control socket
    #[arg(long, value_name = "PATH", default_value = CONTROL)]
    pub(crate) control: PathBuf,
    /// Print one table and end
    #[arg(long)]
    pub(crate) once: bool,
    /// Which flows come first; the key s goes to the next of these
    #[arg(long, value_enum, default_value_t)]
    pub(crate) sort: Sort,
}

/// The order of flows in a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Sort {
    /// The most recently active
    #[default]
    Idle,
    /// Those with the most bytes in the cache
    Cached,
    /// Those for which most was done
    Acted,
    /// The oldest
    Age,
}

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// One JSON document
    #[arg(long)]
    pub(crate) json: bool,
    /// Look at the interfaces of this configuration, too: what defeats a daemon there
    #[arg(long, value_name = "FILE", conflicts_with_all = ["wired", "radio"])]
    pub(crate) config: Option<PathBuf>,
    /// Look at this interface toward the fixed hosts, too
    #[arg(long, value_name = "IF", requires = "radio")]
    pub(crate) wired: Option<String>,
    /// And at this one toward the mobile hosts
    #[arg(long, value_name = "IF", requires = "wired")]
    pub(crate) radio: Option<String>,
    /// Count the traffic of both interfaces for so long, as in 10s, and say what share of it can
    /// be helped; changes nothing
    #[arg(long, value_name = "TIME")]
    pub(crate) watch: Option<String>,
}
