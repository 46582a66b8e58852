//! What is kept of a comparison: `summary.json`, and a folder per run, named by a hash of the run's
//! configuration, with `manifest.json` and, if asked, `trace.txt` and a capture of each machine.
//!
//! A run of the lab has its folder from its beginning: if it is killed, the manifest says that it
//! began and never ended.

use crate::compare::VERSION;
use crate::error::Error;
use node::scenario::{Arq, Channel, Departures, Handoff};
use node::{Case, Plan, Scenario};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::{self, BufWriter, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use study::World;
use study::row::{Checks, Document, Lateness, Row, Sample};
use trace::NodeId;
use trace::captures::Captures;
use trace::hash::TraceHash;
use trace::text::Lines;

/// Which records are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Trace {
    /// One line of text per event.
    pub(crate) text: bool,
    /// Each machine's packets.
    pub(crate) pcap: bool,
}

impl Trace {
    pub(crate) fn is_any(self) -> bool {
        self.text || self.pcap
    }
}

/// The folder of one run.
pub(crate) struct RunFolder<'a> {
    path: PathBuf,
    /// What repeats the run.
    command: String,
    world: World,
    scenario: &'a Scenario,
    case: &'a Case,
    seed: u64,
}

/// How far a run came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum State {
    /// It began; whoever ran it was killed, unless it still runs.
    Begun,
    /// It ended by itself.
    Done,
    /// Something went wrong; the note or the checks say what.
    Failed,
    /// The user ended it.
    Interrupted,
}

/// Everything that makes a run what it is, and what came of it.
#[derive(Serialize)]
struct Manifest<'a> {
    program: &'static str,
    version: &'static str,
    commit: &'static str,
    command: &'a str,
    scenario: &'a Scenario,
    world: World,
    scheme: &'a str,
    tcp: &'static str,
    sack: bool,
    direction: &'static str,
    ber: String,
    loss: String,
    outage: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    handoff: Option<String>,
    seed: u64,
    state: State,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
    #[serde(flatten)]
    outcome: Option<Outcome>,
}

/// What came of a run that ended.
#[derive(Serialize)]
struct Outcome {
    seconds: f64,
    goodput_bps: f64,
    finished: bool,
    checks: Checks,
    #[serde(skip_serializing_if = "Option::is_none")]
    trace_hash: Option<String>,
    #[serde(flatten)]
    lab: Option<LabOutcome>,
}

/// What only real kernels and an emulated radio have to say.
#[derive(Serialize)]
pub(crate) struct LabOutcome {
    /// When the link was away, from and until; no end if the run ended first. Seconds.
    pub(crate) outages_s: Vec<(f64, Option<f64>)>,
    /// The transfers as their two kernels saw them.
    pub(crate) streams: Vec<StreamVerdict>,
    /// How late the radio was.
    pub(crate) radio_late_s: Option<Lateness>,
    /// Frames that the radio lost by no hop's decision.
    pub(crate) radio_mishaps: u64,
    /// The daemon's statistics, if there was one to the end.
    pub(crate) daemon: Option<serde_json::Value>,
    /// Processor time that it took for the run, seconds.
    pub(crate) daemon_cpu_s: Option<f64>,
}

/// A transfer compared byte by byte.
#[derive(Serialize)]
pub(crate) struct StreamVerdict {
    /// Address and port at which it was received, by which captures tell it.
    pub(crate) accepted_at: SocketAddr,
    /// Bytes that the sender's kernel took.
    pub(crate) sent_bytes: u64,
    /// Bytes that the receiver's kernel gave.
    pub(crate) received_bytes: u64,
    /// Whether what was received has the hash of what was sent: `"same"` or `"differs"`.
    pub(crate) sha256: &'static str,
    /// Segments that the sender's kernel says it sent again.
    pub(crate) retransmissions: u32,
    /// Of messages: by how much the machine was late to write one, at most, seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) messages_late_s: Option<f64>,
    /// From the link's return to the first new ACK at the sender, after each outage, seconds.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) stalls_after_outage_s: Vec<f64>,
}

/// The observer that writes a trace: lines of text, their hash, captures.
pub(crate) type Recorder<'a> =
    (Option<Lines<Box<dyn FnMut(&str) + 'a>>>, &'a mut TraceHash, Option<&'a mut PcapFiles>);
type PcapFiles = Captures<BufWriter<fs::File>, MakeFile>;
type MakeFile = Box<dyn FnMut(NodeId) -> io::Result<BufWriter<fs::File>>>;

impl<'a> RunFolder<'a> {
    /// Makes the folder. A trace of an earlier run is removed.
    pub(crate) fn make(
        out: &Path,
        world: World,
        (scenario, case, seed): (&'a Scenario, &'a Case, u64),
    ) -> Result<Self, Error> {
        let command = repeat(world, scenario, case, seed);
        let path = out.join(name(&command, world, case, seed));
        match fs::create_dir(&path) {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                let captures = (0..3).map(|number| capture_name(NodeId(number)));
                for earlier in captures.chain(["trace.txt".to_owned()]) {
                    let _earlier = fs::remove_file(path.join(earlier));
                }
            }
            Err(error) => return Err(unwritable(&path, &error)),
        }
        Ok(RunFolder { path, command, world, scenario, case, seed })
    }

    /// Says in the folder that the run has not ended: it has just begun, or never will end.
    pub(crate) fn not_ended(&self, state: State, note: String) -> Result<(), Error> {
        self.write(state, Some(note), None)
    }

    /// Writes what came of the run.
    pub(crate) fn ended(
        &self,
        sample: &Sample,
        trace_hash: Option<String>,
        lab: Option<LabOutcome>,
    ) -> Result<(), Error> {
        let outcome = Outcome {
            seconds: sample.seconds,
            goodput_bps: sample.goodput_bps(),
            finished: sample.finished,
            checks: Checks(sample.failures.clone()),
            trace_hash,
            lab,
        };
        let state = if sample.failures.is_empty() { State::Done } else { State::Failed };
        self.write(state, None, Some(outcome))
    }

    /// Runs something whose records are kept; returns their hash beside its result.
    pub(crate) fn traced<T>(
        &self,
        trace: Trace,
        run: impl FnOnce(Recorder<'_>) -> T,
    ) -> Result<(T, String), Error> {
        let path = self.path.join("trace.txt");
        let mut text = if trace.text { Some(self.text(&path)?) } else { None };
        let mut failed: Option<io::Error> = None;
        let mut captures = trace.pcap.then(|| self.captures());
        let mut hash = TraceHash::default();
        let lines = text.as_mut().map(|file| {
            let take: Box<dyn FnMut(&str)> = Box::new(|line: &str| {
                if failed.is_none() {
                    failed = writeln!(file, "{line}").err();
                }
            });
            Lines::new(take)
        });
        let result = run((lines, &mut hash, captures.as_mut()));
        if let Some(captures) = captures {
            captures.finish().map_err(|error| unwritable(&self.path, &error))?;
        }
        match failed.or_else(|| text.and_then(|mut file| file.flush().err())) {
            Some(error) => Err(unwritable(&path, &error)),
            None => Ok((result, format!("{:016x}", hash.value()))),
        }
    }

    /// The file of lines, with its head.
    fn text(&self, path: &Path) -> Result<BufWriter<fs::File>, Error> {
        let begin = || {
            let mut file = BufWriter::new(fs::File::create(path)?);
            writeln!(
                file,
                "# {}\n# seed {}, version {VERSION}, commit {}\n{}",
                self.command,
                self.seed,
                env!("LASTHOP_COMMIT"),
                trace::text::COLUMNS
            )?;
            Ok(file)
        };
        begin().map_err(|error| unwritable(path, &error))
    }

    /// A file of packets for each machine.
    fn captures(&self) -> PcapFiles {
        let folder = self.path.clone();
        Captures::new(Box::new(move |machine| {
            fs::File::create(folder.join(capture_name(machine))).map(BufWriter::new)
        }))
    }

    fn write(
        &self,
        state: State,
        note: Option<String>,
        outcome: Option<Outcome>,
    ) -> Result<(), Error> {
        let case = self.case;
        let manifest = Manifest {
            program: "lasthop",
            version: VERSION,
            commit: env!("LASTHOP_COMMIT"),
            command: &self.command,
            scenario: self.scenario,
            world: self.world,
            scheme: &case.scheme,
            tcp: case.sender.name(),
            sack: case.sack == node::scenario::Switch::On,
            direction: case.direction.name(),
            ber: case.ber.to_string(),
            loss: case.loss.to_string(),
            outage: case.outage.to_string(),
            handoff: (case.handoff != Handoff::None).then(|| case.handoff.to_string()),
            seed: self.seed,
            state,
            note,
            outcome,
        };
        write_json(&self.path.join(MANIFEST), &manifest)
    }
}

/// The name of a machine's capture.
pub(crate) fn capture_name(NodeId(number): NodeId) -> String {
    // One base station: its first pair of hosts, then the others.
    let (machine, pair) = match number {
        0 => ("fixed-host", 0),
        1 => ("base-station", 0),
        host if host % 2 == 0 => ("mobile-host", host / 2 - 1),
        host => ("fixed-host", host / 2),
    };
    let pair = if pair == 0 { String::new() } else { format!("-{}", pair + 1) };
    format!("{machine}{pair}.pcapng")
}

/// Makes the output folder and sees that it can be written, before anything is run. Results of an
/// earlier comparison are removed: if this one is killed, they would pass for its own.
pub(crate) fn prepare(out: &Path) -> Result<(), Error> {
    let attempt = fs::create_dir_all(out).and_then(|()| {
        for file in [".lasthop-writable", SUMMARY, REPORT] {
            fs::write(out.join(file), b"")?;
            fs::remove_file(out.join(file))?;
        }
        Ok(())
    });
    attempt.map_err(|error| {
        Error::Usage(format!("--out {}: cannot write there: {error}", out.display()))
    })
}

/// The document of the whole comparison.
pub(crate) const SUMMARY: &str = "summary.json";
/// The document of one run, in its folder.
pub(crate) const MANIFEST: &str = "manifest.json";
/// The page.
pub(crate) const REPORT: &str = "report.html";

pub(crate) fn write_summary(out: &Path, document: &Document<'_>) -> Result<(), Error> {
    write_json(&out.join(SUMMARY), document)
}

/// A folder for each run of the simulator's rows.
pub(crate) fn write_runs(
    out: &Path,
    scenario: &Scenario,
    rows: &[Row],
    trace: Trace,
) -> Result<(), Error> {
    let cases = scenario.cases();
    for row in rows {
        let Some(case) = cases.iter().find(|case| is_row_of(case, row)) else { continue };
        for sample in &row.samples {
            let folder = RunFolder::make(out, World::Sim, (scenario, case, sample.seed))?;
            let trace_hash = if trace.is_any() {
                // Once more, which gives the same records.
                let plan = Plan::new(scenario, case).map_err(Error::usage)?;
                let run = |recorder: Recorder<'_>| sim::run(&plan, sample.seed, recorder);
                Some(folder.traced(trace, run)?.1)
            } else {
                None
            };
            folder.ended(sample, trace_hash, None)?;
        }
    }
    Ok(())
}

fn is_row_of(case: &Case, row: &Row) -> bool {
    row.scheme == case.scheme
        && row.tcp == case.sender.name()
        && row.sack == (case.sack == node::scenario::Switch::On)
        && row.direction == case.direction.name()
        && row.ber == case.ber.to_string()
        && row.loss == case.loss.to_string()
        && row.outage == case.outage.to_string()
        && row.handoff.as_deref().unwrap_or("none") == case.handoff.to_string()
}

/// The command that repeats one run.
fn repeat(world: World, scenario: &Scenario, case: &Case, seed: u64) -> String {
    let command = match world {
        World::Sim => match scenario.departures {
            Departures::Air => "run --trace",
            Departures::Device => "run --trace --departures device",
        },
        World::Lab => "lab --no-prediction --trace",
    };
    let amount = match scenario.amount {
        node::scenario::Amount::Size(size) => format!("--size {size}"),
        node::scenario::Amount::Duration(duration) => format!("--duration {duration}"),
    };
    format!(
        "lasthop {command} --radio {} --rate {} --delay {} --queue {} --wired-rate {} \
         --wired-delay {} --hosts {} --mss {} --window {} --traffic {} {amount} --tcp {} \
         --sack {} --direction {} --ber {} --loss {} --outage {}{} --schemes {} --seed {seed} \
         --seeds 1",
        scenario.radio,
        scenario.rate,
        scenario.delay,
        scenario.queue,
        scenario.wired_rate,
        scenario.wired_delay,
        scenario.hosts,
        scenario.mss,
        scenario.window,
        scenario.traffic,
        case.sender,
        case.sack,
        case.direction,
        case.ber,
        quoted(&case.loss.to_string()),
        case.outage,
        hop_options(scenario, case),
        case.scheme,
    )
}

/// The options that not every last hop has, each after a space.
fn hop_options(scenario: &Scenario, case: &Case) -> String {
    let recorded = &scenario.recorded;
    let step = recorded.trace_step.map(|step| step.to_string());
    let arq = (scenario.arq != Arq::None).then(|| scenario.arq.to_string());
    let several = scenario.mobiles > 1;
    let mobiles = several.then(|| scenario.mobiles.to_string());
    let served = several.then(|| scenario.served.to_string());
    let moves = case.handoff != Handoff::None;
    let handoff = moves.then(|| case.handoff.to_string());
    let cells = moves.then(|| scenario.cells.to_string());
    let is_shared = moves && scenario.channel == Channel::Shared;
    let channel = is_shared.then(|| scenario.channel.to_string());
    let backhaul = moves.then(|| scenario.backhaul.to_string());
    let options = [
        ("down-capacity", &recorded.down_capacity),
        ("up-capacity", &recorded.up_capacity),
        ("down-delay", &recorded.down_delay),
        ("up-delay", &recorded.up_delay),
        ("down-loss", &recorded.down_loss),
        ("up-loss", &recorded.up_loss),
        ("trace-step", &step),
        ("arq", &arq),
        ("handoff", &handoff),
        ("cells", &cells),
        ("channel", &channel),
        ("backhaul", &backhaul),
        ("mobiles", &mobiles),
        ("served", &served),
    ];
    let half_duplex = if scenario.half_duplex { " --half-duplex" } else { "" };
    let named = options.iter().filter_map(|(name, value)| {
        value.as_ref().map(|value| format!(" --{name} {}", quoted(value)))
    });
    named.chain([half_duplex.to_owned()]).collect()
}

/// A word for a shell: names of files may have anything in them.
fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || "-_./:=,%@+".contains(letter);
    if word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// The name of a run's folder.
pub(crate) fn run_name(world: World, scenario: &Scenario, case: &Case, seed: u64) -> String {
    name(&repeat(world, scenario, case, seed), world, case, seed)
}

/// The name of a run's folder: scheme, sender, seed, and a hash of all the rest.
fn name(command: &str, world: World, case: &Case, seed: u64) -> String {
    let hash = command.bytes().fold(0xCBF2_9CE4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3)
    });
    let kind = match world {
        World::Sim => "run",
        World::Lab => "lab",
    };
    format!("{kind}-{}-{}-{seed}-{hash:016x}", case.scheme, case.sender)
}

fn write_json(path: &Path, value: &impl Serialize) -> Result<(), Error> {
    let text = serde_json::to_string_pretty(value).map_err(Error::usage)?;
    fs::write(path, text + "\n").map_err(|error| unwritable(path, &error))
}

pub(crate) fn unwritable(path: &Path, error: &std::io::Error) -> Error {
    Error::Usage(format!("write {}: {error}", path.display()))
}
