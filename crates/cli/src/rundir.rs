//! What is kept of a comparison: `summary.json`, and a folder per run, named by a hash of the run's
//! configuration, with `manifest.json` and, if asked, `trace.txt`.

use crate::compare::VERSION;
use crate::error::Error;
use node::{Case, Plan, Scenario};
use serde::Serialize;
use std::fs;
use std::io::Write;
use std::path::Path;
use study::row::{Document, Row, Sample};

/// Whether records are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trace {
    /// No.
    None,
    /// One line of text per event.
    Text,
}

/// Everything that makes a run what it is, and what came of it.
#[derive(Serialize)]
struct Manifest<'a> {
    program: &'static str,
    version: &'static str,
    commit: &'static str,
    command: String,
    scenario: &'a Scenario,
    scheme: &'a str,
    tcp: &'a str,
    sack: bool,
    direction: &'a str,
    ber: &'a str,
    loss: &'a str,
    outage: &'a str,
    seed: u64,
    seconds: f64,
    goodput_bps: f64,
    finished: bool,
    checks: study::row::Checks,
    #[serde(skip_serializing_if = "Option::is_none")]
    trace_hash: Option<String>,
}

/// Makes the output folder and sees that it can be written, before anything is run.
pub(crate) fn prepare(out: &Path) -> Result<(), Error> {
    let attempt = fs::create_dir_all(out).and_then(|()| {
        let probe = out.join(".lasthop-writable");
        fs::write(&probe, b"")?;
        fs::remove_file(&probe)
    });
    attempt.map_err(|error| {
        Error::Usage(format!("--out {}: cannot write there: {error}", out.display()))
    })
}

pub(crate) fn write_summary(out: &Path, document: &Document<'_>) -> Result<(), Error> {
    write_json(&out.join("summary.json"), document)
}

/// A folder for each run of the rows.
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
            write_run(out, scenario, case, row, sample, trace)?;
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
}

fn write_run(
    out: &Path,
    scenario: &Scenario,
    case: &Case,
    row: &Row,
    sample: &Sample,
    trace: Trace,
) -> Result<(), Error> {
    let dir = out.join(name(scenario, case, sample.seed));
    fs::create_dir_all(&dir).map_err(|error| unwritable(&dir, &error))?;
    let trace_hash = match trace {
        Trace::None => None,
        Trace::Text => Some(write_trace(&dir, scenario, case, sample.seed)?),
    };
    let manifest = Manifest {
        program: "lasthop",
        version: VERSION,
        commit: env!("LASTHOP_COMMIT"),
        command: repeat(scenario, case, sample.seed),
        scenario,
        scheme: &row.scheme,
        tcp: row.tcp,
        sack: row.sack,
        direction: row.direction,
        ber: &row.ber,
        loss: &row.loss,
        outage: &row.outage,
        seed: sample.seed,
        seconds: sample.seconds,
        goodput_bps: sample.goodput_bps(),
        finished: sample.finished,
        checks: study::row::Checks(sample.failures.clone()),
        trace_hash,
    };
    write_json(&dir.join("manifest.json"), &manifest)
}

/// Runs the case once more, which gives the same records, and writes them.
fn write_trace(dir: &Path, scenario: &Scenario, case: &Case, seed: u64) -> Result<String, Error> {
    let plan = Plan::new(scenario, case).map_err(Error::usage)?;
    let path = dir.join("trace.txt");
    let file = fs::File::create(&path).map_err(|error| unwritable(&path, &error))?;
    let mut file = std::io::BufWriter::new(file);
    let mut failed = writeln!(
        file,
        "# {}\n# seed {seed}, version {VERSION}, commit {}\n{}",
        repeat(scenario, case, seed),
        env!("LASTHOP_COMMIT"),
        trace::text::COLUMNS
    )
    .err();
    let mut hash = trace::hash::TraceHash::default();
    let lines = trace::text::Lines::new(|line: &str| {
        if failed.is_none() {
            failed = writeln!(file, "{line}").err();
        }
    });
    sim::run(&plan, seed, (lines, &mut hash));
    match failed.or_else(|| file.flush().err()) {
        Some(error) => Err(unwritable(&path, &error)),
        None => Ok(format!("{:016x}", hash.value())),
    }
}

/// The command that repeats one run.
fn repeat(scenario: &Scenario, case: &Case, seed: u64) -> String {
    let amount = match scenario.amount {
        node::scenario::Amount::Size(size) => format!("--size {size}"),
        node::scenario::Amount::Duration(duration) => format!("--duration {duration}"),
    };
    format!(
        "lasthop run --trace --radio {} --rate {} --delay {} --queue {} --wired-rate {} \
         --wired-delay {} --hosts {} --mss {} --window {} --traffic {} {amount} --tcp {} \
         --sack {} --direction {} --ber {} --loss {} --outage {} --schemes {} --seed {seed} \
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
        case.loss,
        case.outage,
        case.scheme,
    )
}

/// The name of a run's folder: scheme, sender, seed, and a hash of all the rest.
fn name(scenario: &Scenario, case: &Case, seed: u64) -> String {
    let hash =
        repeat(scenario, case, seed).bytes().fold(0xCBF2_9CE4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3)
        });
    format!("run-{}-{}-{seed}-{hash:016x}", case.scheme, case.sender)
}

fn write_json(path: &Path, value: &impl Serialize) -> Result<(), Error> {
    let text = serde_json::to_string_pretty(value).map_err(Error::usage)?;
    fs::write(path, text + "\n").map_err(|error| unwritable(path, &error))
}

pub(crate) fn unwritable(path: &Path, error: &std::io::Error) -> Error {
    Error::Usage(format!("write {}: {error}", path.display()))
}
