//! The command line as clap reads it. Quantities stay text here; `options` parses them all in one
//! place, with the same messages as for scenario files.

use crate::daemon::args::{Daemon, DoctorArgs, TopArgs};
use clap::{Args, CommandFactory, Parser, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;

/// Keeps TCP fast across a last hop that is lossy and moves.
#[derive(Debug, Parser)]
#[command(name = "lasthop", version, max_term_width = 100)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
    /// No progress on stderr
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
}

/// The command line. The value of an option may begin with `-`, so that `--delay -3ms` is answered
/// by what was expected of a delay.
pub(crate) fn command() -> clap::Command {
    with_any_values(Arguments::command())
}

fn with_any_values(command: clap::Command) -> clap::Command {
    let any = |arg: clap::Arg| {
        let is_option = arg.get_long().is_some() && arg.get_action().takes_values();
        if is_option { arg.allow_hyphen_values(true) } else { arg }
    };
    command.mut_args(any).mut_subcommands(with_any_values)
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// What would each scheme do for this link? A table, a report, a sentence of advice
    Compare(CompareArgs),
    /// Run a scenario and keep each run's records
    Run(RunArgs),
    /// Look at what was kept: the page of a comparison or of one run, with each packet's story and
    /// each handoff's messages, or drawings of it for a paper. Prints where they are
    View(ViewArgs),
    /// Run every combination of a study's axes, with every seed; goes on where it was stopped
    Sweep(SweepArgs),
    /// Prove it on this machine: real kernels, our emulated radio, the real daemon. What a killed
    /// run left behind, `lasthop lab clean` removes
    Lab(LabArgs),
    /// Repeat the papers' experiments: our value beside the published one, and a verdict
    Papers(PapersArgs),
    /// Run an engine between two interfaces, and give orders to one that runs
    #[command(subcommand)]
    Daemon(Daemon),
    /// What a running daemon does, flow by flow: a table that is live
    Top(TopArgs),
    /// What this machine can do, and how to make it do the rest
    Doctor(DoctorArgs),
    /// Write the manual pages
    #[command(hide = true)]
    Man {
        /// Where to
        dir: PathBuf,
    },
    /// Work with scenario files
    #[command(subcommand)]
    Scenario(Scenario),
    /// List the schemes and the senders, and where they run
    Schemes {
        /// One JSON document
        #[arg(long)]
        json: bool,
    },
    /// Measure the program itself
    #[command(subcommand)]
    Bench(Bench),
    /// What a capture tells: stalls and their causes, what can be helped, what a scheme would save
    Assess(AssessArgs),
    /// Hold the TCP model against traces made by others
    #[command(subcommand)]
    Oracle(Oracle),
}

#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    #[command(flatten)]
    pub(crate) link: LinkArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) link: LinkArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    /// Write every event of each run as text (trace.txt)
    #[arg(long)]
    pub(crate) trace: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ViewArgs {
    /// What `compare`, `run` or `lab` wrote: the whole folder, or the folder of one run in it
    pub(crate) dir: PathBuf,
    /// Instead of the page, one SVG file for each of these: sequence, windows, queue, cache, link,
    /// signal, handoff
    #[arg(long, value_name = "PLOT", value_delimiter = ',')]
    pub(crate) svg: Vec<String>,
    /// Where to write, instead of into DIR
    #[arg(long, value_name = "FOLDER")]
    pub(crate) out: Option<PathBuf>,
    /// Show it in the desktop's browser
    #[arg(long)]
    pub(crate) open: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PapersArgs {
    /// Experiments, by the beginning of their IDs, as in EXP-SN-F7 (default: all)
    #[arg(value_name = "ID")]
    pub(crate) ids: Vec<String>,
    /// Say what there is, and what cannot be repeated yet; run nothing
    #[arg(long)]
    pub(crate) list: bool,
    /// Runs of each case, at least 2 (default: what each study says, 30 or more)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=1_000_000))]
    pub(crate) seeds: Option<u32>,
    /// Threads (default: all cores)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=JOBS_MAX))]
    pub(crate) jobs: Option<u16>,
    /// One JSON document on stdout instead of the table
    #[arg(long, conflicts_with = "markdown")]
    pub(crate) json: bool,
    /// Everything as Markdown on stdout instead of the table
    #[arg(long)]
    pub(crate) markdown: bool,
    /// Where papers.html, papers.json and a figure each as SVG go
    #[arg(long, value_name = "DIR", default_value = "lasthop-out/papers")]
    pub(crate) out: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct SweepArgs {
    /// Study file (TOML): a scenario, and lists of values in its table `axes`
    pub(crate) study: PathBuf,
    /// Where runs and results go; a sweep that was stopped goes on here
    #[arg(long, value_name = "DIR", required_unless_present = "list")]
    pub(crate) out: Option<PathBuf>,
    /// Only every Nth run, beginning with the Ith, as in 2/4; shards may share a folder
    #[arg(long, value_name = "I/N")]
    pub(crate) shard: Option<String>,
    /// Take what this folder of a sweep has of the study, before anything is run; can be repeated
    #[arg(long, value_name = "DIR")]
    pub(crate) merge: Vec<PathBuf>,
    /// Threads (default: all cores)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=JOBS_MAX))]
    pub(crate) jobs: Option<u16>,
    /// Tables of runs to write: parquet, csv, json (default: parquet, if built in, and csv)
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) format: Vec<String>,
    /// Run nothing: print how many runs there are, and which
    #[arg(long)]
    pub(crate) list: bool,
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, disable_help_subcommand = true)]
pub(crate) struct LabArgs {
    #[command(subcommand)]
    pub(crate) what: Option<LabCommand>,
    #[command(flatten)]
    pub(crate) link: LinkArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    /// No prediction of the simulator beside the rows
    #[arg(long)]
    pub(crate) no_prediction: bool,
    /// Write every packet that the radio saw in each run as text (trace.txt)
    #[arg(long)]
    pub(crate) trace: bool,
    /// Run this at the mobile host while the network is up, instead of transfers
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum LabCommand {
    /// Remove the network namespaces (lh-*) of killed runs whose processes are gone, and say which;
    /// those of a run that lives are never touched. Every `lasthop lab` does so when it begins
    Clean,
}

/// The link, the hosts, what to compare. Every option is also a key of scenario files.
#[derive(Debug, Default, Args)]
pub(crate) struct LinkArgs {
    /// Scenario file (TOML or JSON); options override it
    pub(crate) scenario: Option<PathBuf>,
    /// Preset of the last hop: plain, wavelan-1995, wifi-roam, lte, 5g, leo
    #[arg(long, value_name = "PRESET", help_heading = "Path")]
    pub(crate) radio: Option<String>,
    /// Rate of the last hop, as in 2Mbit/s
    #[arg(long, help_heading = "Path")]
    pub(crate) rate: Option<String>,
    /// One-way delay of the last hop, as in 5ms
    #[arg(long, help_heading = "Path")]
    pub(crate) delay: Option<String>,
    /// Queue of the last hop, as in 100p or 64KiB
    #[arg(long, help_heading = "Path")]
    pub(crate) queue: Option<String>,
    /// Both directions of the last hop share the air: ACKs cost air time, too
    #[arg(long, help_heading = "Path")]
    pub(crate) half_duplex: bool,
    /// The link layer repeats lost frames, as in frames:retries=7,ack=300us: stop and wait, each
    /// frame until its ACK (two delays and what the ACK takes) or its last repetition;
    /// retries=forever for no last one, or none
    #[arg(long, value_name = "ARQ", help_heading = "Path")]
    pub(crate) arq: Option<String>,
    /// Mobile hosts at the base station, 1 to 1024 (default 1), or among all cells, up to 262144:
    /// they share the air, one packet at a time, and the base station's queue; each has errors and
    /// outages, a fixed host and traffic of its own (in the lab, where there are up to 200, they
    /// share the radio's). With more than one the table says how they share
    #[arg(long, value_name = "N", help_heading = "Path")]
    pub(crate) mobiles: Option<u32>,
    /// Which of them the scheme serves: all, or only the first, which shows what that costs its
    /// neighbours
    #[arg(long, value_name = "all|first", help_heading = "Path")]
    pub(crate) served: Option<String>,
    /// What a simulated base station is told of: packets going onto the air, or only to its device
    /// (in the lab always device)
    #[arg(long, value_name = "air|device", help_heading = "Path")]
    pub(crate) departures: Option<String>,
    /// Rate between fixed host and base station
    #[arg(long, value_name = "RATE", help_heading = "Path")]
    pub(crate) wired_rate: Option<String>,
    /// One-way delay between fixed host and base station
    #[arg(long, value_name = "DELAY", help_heading = "Path")]
    pub(crate) wired_delay: Option<String>,
    /// Sets the wired delay so that the unloaded round trip is this
    #[arg(long, help_heading = "Path")]
    pub(crate) rtt: Option<String>,
    /// Bit error rates, as in none,1/1Mbit,1/64Kbit or ber=1e-6
    #[arg(long, value_name = "LIST", help_heading = "Channel")]
    pub(crate) ber: Vec<String>,
    /// Losses, as in 1% or burst:mean=1%,length=4 or fade:good=2s,bad=50ms,loss=90% or
    /// runs:good=FILE,bad=FILE (on each line a LENGTH in packets and its COUNT or PROBABILITY)
    #[arg(long, value_name = "LIST", help_heading = "Channel")]
    pub(crate) loss: Vec<String>,
    /// Outages, as in every=15s,length=300ms or every=15s,length=0.1s..10s,hold,notified; with
    /// warned=100ms in place of notified the mobile host knows of each so long before it begins
    #[arg(long, value_name = "LIST", help_heading = "Channel")]
    pub(crate) outage: Vec<String>,
    /// Mobile hosts change cells, as in every=8s,overlap or every=8s,gap=0.5s,rendezvous=1s, with
    /// sd=0.1s, first=40s, times=3, overlap=1s or at=3s: a gap is a time without coverage after a
    /// crossing, the rendezvous is the first beacon after one. In a scenario file with a table
    /// map, walk (in the simulator only)
    #[arg(long, value_name = "LIST", help_heading = "Path")]
    pub(crate) handoff: Vec<String>,
    /// Cells among which they move, in a ring, 2 to 65535 (default 2)
    #[arg(long, value_name = "N", help_heading = "Path")]
    pub(crate) cells: Option<u16>,
    /// Whether each cell has a channel of its own (per-cell, the default) or all share one, on
    /// which one station sends at a time (up to 16 cells)
    #[arg(long, value_name = "per-cell|shared", help_heading = "Path")]
    pub(crate) channel: Option<String>,
    /// Share of the wired delay between the home agent and each base station (default 50%)
    #[arg(long, value_name = "SHARE", help_heading = "Path")]
    pub(crate) backhaul: Option<String>,
    /// Recorded capacity toward the mobile host, in place of the rate: on each line the millisecond
    /// at which 1500 bytes may leave, as Mahimahi has it; repeated at its end
    #[arg(long, value_name = "FILE", help_heading = "Recorded channel")]
    pub(crate) down_capacity: Option<String>,
    /// The same toward the base station
    #[arg(long, value_name = "FILE", help_heading = "Recorded channel")]
    pub(crate) up_capacity: Option<String>,
    /// Recorded delay toward the mobile host, in place of --delay: on each line, for each step, the
    /// nanoseconds one way; repeated at its end
    #[arg(long, value_name = "FILE", help_heading = "Recorded channel")]
    pub(crate) down_delay: Option<String>,
    /// The same toward the base station
    #[arg(long, value_name = "FILE", help_heading = "Recorded channel")]
    pub(crate) up_delay: Option<String>,
    /// Recorded losses toward the mobile host: on each line, for each step, 1 if every packet that
    /// goes on air is lost, otherwise 0; repeated at its end
    #[arg(long, value_name = "FILE", help_heading = "Recorded channel")]
    pub(crate) down_loss: Option<String>,
    /// The same toward the base station
    #[arg(long, value_name = "FILE", help_heading = "Recorded channel")]
    pub(crate) up_loss: Option<String>,
    /// The step of recorded delays and losses (default 10ms)
    #[arg(long, value_name = "TIME", help_heading = "Recorded channel")]
    pub(crate) trace_step: Option<String>,
    /// down, up, both
    #[arg(long, value_name = "LIST", help_heading = "Hosts")]
    pub(crate) direction: Vec<String>,
    /// Senders; `lasthop schemes` lists them
    #[arg(long, value_name = "LIST", help_heading = "Hosts")]
    pub(crate) tcp: Vec<String>,
    /// on, off
    #[arg(long, value_name = "LIST", help_heading = "Hosts")]
    pub(crate) sack: Vec<String>,
    /// modern or 1995 (500 ms ticks, no options)
    #[arg(long, value_name = "KIND", help_heading = "Hosts")]
    pub(crate) hosts: Option<String>,
    /// Maximum segment size, as in 1460B
    #[arg(long, help_heading = "Hosts")]
    pub(crate) mss: Option<String>,
    /// Receive buffer, as in 64KiB
    #[arg(long, help_heading = "Hosts")]
    pub(crate) window: Option<String>,
    /// Schemes; `lasthop schemes` lists them, and which go together, as in snoop+fast-retransmit
    #[arg(long, value_name = "LIST", help_heading = "Comparison")]
    pub(crate) schemes: Vec<String>,
    /// bulk, or request:SIZE,every=T, or both at once: bulk+request:SIZE,every=T
    #[arg(long, help_heading = "Comparison")]
    pub(crate) traffic: Option<String>,
    /// Bytes of a bulk transfer, as in 10MB
    #[arg(long, help_heading = "Comparison", conflicts_with = "duration")]
    pub(crate) size: Option<String>,
    /// Length of a run, as in 30s
    #[arg(long, help_heading = "Comparison")]
    pub(crate) duration: Option<String>,
    /// Runs of each case (default 10)
    #[arg(long, value_name = "N", help_heading = "Comparison")]
    pub(crate) seeds: Option<u32>,
    /// First seed (default 1)
    #[arg(long, value_name = "S", help_heading = "Comparison")]
    pub(crate) seed: Option<u64>,
}

/// More threads than any machine we know has cores.
const JOBS_MAX: i64 = 1024;

#[derive(Debug, Args)]
pub(crate) struct OutputArgs {
    /// Threads (default: all cores)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=JOBS_MAX))]
    pub(crate) jobs: Option<u16>,
    /// One JSON document on stdout instead of the table
    #[arg(long)]
    pub(crate) json: bool,
    /// Where report.html, summary.json and one folder per run go
    #[arg(long, value_name = "DIR", default_value = "lasthop-out")]
    pub(crate) out: PathBuf,
    /// Write each machine's packets of each run as pcapng (fixed-host, base-station, mobile-host)
    #[arg(long)]
    pub(crate) pcap: bool,
}

impl OutputArgs {
    /// How many threads; 0: one for each core.
    pub(crate) fn jobs(&self) -> usize {
        self.jobs.map_or(0, usize::from)
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Scenario {
    /// Parse a scenario, print it complete, or say what is wrong and where
    Check {
        /// The file
        file: PathBuf,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Bench {
    /// One run of the simulator: independent fixed host - base station - mobile triples
    Sim(BenchSim),
    /// One run of mobile hosts that change cells, as `run` makes it: checked and measured
    Handoffs(Box<BenchHandoffs>),
}

#[derive(Debug, Args)]
pub(crate) struct BenchSim {
    /// Number of triples
    #[arg(long, default_value_t = 1)]
    pub(crate) flows: u32,
    /// Bytes of each flow
    #[arg(long, default_value = "100MB")]
    pub(crate) size: String,
    /// The scheme
    #[arg(long, default_value = "plain")]
    pub(crate) scheme: String,
    /// The sender
    #[arg(long, default_value = "reno")]
    pub(crate) tcp: String,
    /// Bit errors on the last hop
    #[arg(long, default_value = "none")]
    pub(crate) ber: String,
    /// Seed
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// One JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct BenchHandoffs {
    #[command(flatten)]
    pub(crate) link: LinkArgs,
    /// One JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct AssessArgs {
    /// The capture: pcap or pcapng, also gzipped; - for standard input
    pub(crate) file: PathBuf,
    /// Where it was taken: sender (the host that sends most), middle, receiver; inferred if not
    /// given
    #[arg(long, value_name = "PLACE")]
    pub(crate) at: Option<String>,
    /// Connections shown in the table
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(crate) top: usize,
    /// One JSON document on stdout instead of the tables
    #[arg(long)]
    pub(crate) json: bool,
    /// Also write assessment.json there
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Oracle {
    /// Compare with a trace of ns-2's TCP validation suite, packet by packet
    Ns2Tcp(Ns2Tcp),
}

#[derive(Debug, Args)]
pub(crate) struct Ns2Tcp {
    /// The sender: tahoe, reno, newreno or sack1, which the suite calls sack
    #[arg(long)]
    pub(crate) tcp: String,
    /// Numbers of the packets that are lost once each, as in 14,28
    #[arg(long, value_delimiter = ',', required = true)]
    pub(crate) drops: Vec<u64>,
    /// Limited transmit (RFC 3042)
    #[arg(long)]
    pub(crate) limited_transmit: bool,
    /// The trace: time_s,event,packet
    pub(crate) file: PathBuf,
}
