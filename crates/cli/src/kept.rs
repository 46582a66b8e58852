//! What was kept of a comparison or of one run, read back: manifests and summaries, and what is
//! wrong with a folder that has none, is half-written, or comes from another program.

use crate::compare::VERSION;
use crate::error::Error;
use crate::recordings;
use crate::rundir::{MANIFEST, REPORT, SUMMARY, State};
use node::scenario;
use node::{Case, Scenario};
use serde::Deserialize;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use study::{Row, World};

/// What a folder holds.
pub(crate) enum Kept {
    /// One run.
    Run(Box<Run>),
    /// A comparison with all its rows.
    Comparison(Box<Comparison>),
}

/// One run that ended.
pub(crate) struct Run {
    pub(crate) scenario: Scenario,
    pub(crate) case: Case,
    pub(crate) manifest: Manifest,
}

/// All of `summary.json`.
pub(crate) struct Comparison {
    pub(crate) scenario: Scenario,
    pub(crate) rows: Vec<Row>,
    pub(crate) advice: String,
}

/// What of a manifest says which run it was, and how it went.
#[derive(Deserialize)]
pub(crate) struct Manifest {
    version: String,
    commit: String,
    pub(crate) command: String,
    scenario: serde_json::Value,
    pub(crate) world: World,
    pub(crate) scheme: String,
    tcp: String,
    sack: bool,
    direction: String,
    ber: String,
    loss: String,
    outage: String,
    #[serde(default)]
    handoff: Option<String>,
    pub(crate) seed: u64,
    state: State,
    note: Option<String>,
    pub(crate) seconds: Option<f64>,
    pub(crate) goodput_bps: Option<f64>,
    pub(crate) trace_hash: Option<String>,
    /// Of the lab: the transfers.
    #[serde(default)]
    pub(crate) streams: Vec<Received>,
    /// Of the lab: when the link was away, from and until, seconds.
    #[serde(default)]
    pub(crate) outages_s: Vec<(f64, Option<f64>)>,
}

/// Where a transfer of the lab was received.
#[derive(Deserialize)]
pub(crate) struct Received {
    pub(crate) accepted_at: Option<SocketAddr>,
}

#[derive(Deserialize)]
struct Summary {
    version: String,
    scenario: serde_json::Value,
    rows: serde_json::Value,
    advice: String,
}

/// What every manifest of every version has.
#[derive(Deserialize)]
struct Versioned {
    #[serde(default)]
    program: Option<String>,
    version: String,
}

impl Kept {
    /// Reads what a folder holds.
    ///
    /// # Errors
    /// In a sentence that says what the folder is instead, and what to do.
    pub(crate) fn read(folder: &Path) -> Result<Kept, Error> {
        let shown = folder.display();
        if !folder.is_dir() {
            let what = if folder.exists() { "this is a file" } else { "there is no such folder" };
            return Err(Error::Usage(format!(
                "{shown}: {what}; expected a folder that `lasthop compare`, `run` or `lab` wrote"
            )));
        }
        if let Some(manifest) = read::<Manifest>(&folder.join(MANIFEST))? {
            return Run::new(folder, manifest).map(|run| Kept::Run(Box::new(run)));
        }
        if let Some(summary) = read::<Summary>(&folder.join(SUMMARY))? {
            return Comparison::new(folder, summary).map(|all| Kept::Comparison(Box::new(all)));
        }
        let runs = runs_in(folder);
        let example = runs.first().map(|run| run.display().to_string());
        Err(Error::Usage(match example {
            Some(example) => format!(
                "{shown}: half-written: {} run folders and no {SUMMARY}, so the comparison never \
                 ended; look at one of its runs: lasthop view {example}",
                runs.len()
            ),
            None if folder.join("trace.txt").exists() => format!(
                "{shown}: half-written: a trace and no {MANIFEST}; whoever ran it was killed, or \
                 still runs it"
            ),
            None => format!(
                "{shown}: no run directory: it has neither {MANIFEST} (one run) nor {SUMMARY} (a \
                 comparison)"
            ),
        }))
    }
}

impl Run {
    fn new(folder: &Path, manifest: Manifest) -> Result<Run, Error> {
        let refuse = |why: String| Error::Usage(format!("{}: {why}", folder.display()));
        let note = manifest.note.as_deref().unwrap_or("nobody noted why");
        match manifest.state {
            State::Done => {}
            State::Failed if manifest.seconds.is_some() => {}
            State::Begun => return Err(refuse(format!("half-written: {note}"))),
            State::Interrupted => return Err(refuse("the user ended this run early".into())),
            State::Failed => return Err(refuse(format!("this run failed: {note}"))),
        }
        let mut scenario = scenario_of(&manifest.scenario, folder)?;
        scenario.seed = manifest.seed;
        let is_this = |case: &&Case| {
            case.scheme == manifest.scheme
                && case.sender.name() == manifest.tcp
                && (case.sack == scenario::Switch::On) == manifest.sack
                && case.direction.name() == manifest.direction
                && case.ber.to_string() == manifest.ber
                && case.loss.to_string() == manifest.loss
                && case.outage.to_string() == manifest.outage
                && case.handoff.to_string() == manifest.handoff.as_deref().unwrap_or("none")
        };
        let case = scenario.cases().iter().find(is_this).cloned();
        let case = case.ok_or_else(|| {
            refuse(format!("{MANIFEST} names a case that its own scenario does not have"))
        })?;
        Ok(Run { scenario, case, manifest })
    }
}

impl Comparison {
    fn new(folder: &Path, summary: Summary) -> Result<Comparison, Error> {
        debug_assert_eq!(summary.version, VERSION, "`read` has looked");
        let scenario = scenario_of(&summary.scenario, folder)?;
        let rows = serde_json::from_value(summary.rows).map_err(|error| {
            Error::Usage(format!("{}: rows: {error}", folder.join(SUMMARY).display()))
        })?;
        Ok(Comparison { scenario, rows, advice: summary.advice })
    }
}

impl Manifest {
    /// Why playing the run again gave something else.
    pub(crate) fn differs(&self, folder: &Path, what: &str) -> Error {
        let Manifest { version, commit, .. } = self;
        Error::Usage(format!(
            "{}: kept by version {version}, commit {commit}; this one (version {VERSION}, commit \
             {}) plays the run differently ({what}), so it cannot show what happened then. Run it \
             again: {}",
            folder.display(),
            env!("LASTHOP_COMMIT"),
            self.command
        ))
    }
}

/// A file of ours; `None` if there is no such file.
fn read<T: for<'de> Deserialize<'de>>(path: &Path) -> Result<Option<T>, Error> {
    let shown = path.display();
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::Usage(format!("{shown}: read it: {error}"))),
    };
    let value: serde_json::Value = serde_json::from_str(&text).map_err(|error| {
        let what = if error.is_eof() { "half-written" } else { "no JSON" };
        Error::Usage(format!("{shown}: {what}: {error}"))
    })?;
    let foreign = || Error::Usage(format!("{shown}: not of this program: it names no version"));
    let versioned = Versioned::deserialize(&value).map_err(|_| foreign())?;
    if versioned.program.is_some_and(|program| program != "lasthop") {
        return Err(foreign());
    }
    if versioned.version != VERSION {
        return Err(Error::Usage(format!(
            "{shown}: written by version {}, this is {VERSION}; use that version, or run it again",
            versioned.version
        )));
    }
    T::deserialize(&value).map(Some).map_err(|error| Error::Usage(format!("{shown}: {error}")))
}

/// The scenario as it was, its recordings read again.
fn scenario_of(value: &serde_json::Value, folder: &Path) -> Result<Scenario, Error> {
    let name = folder.join("scenario.json").display().to_string();
    let mut draft = scenario::parse(&name, &value.to_string()).map_err(Error::usage)?;
    recordings::read(&mut draft)?;
    Scenario::complete(draft).map_err(|error| Error::Usage(format!("{name}: {error}")))
}

/// Folders of runs, in the order of their names.
fn runs_in(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut runs: Vec<PathBuf> =
        entries.map(|entry| entry.path()).filter(|path| path.join(MANIFEST).is_file()).collect();
    runs.sort();
    runs
}

/// The page that the lab wrote when it ran; its runs took real time and cannot be played again.
pub(crate) fn page_of_the_lab(folder: &Path) -> Result<PathBuf, Error> {
    let page = folder.join(REPORT);
    if page.is_file() {
        return Ok(page);
    }
    let example = runs_in(folder).first().map(|run| run.display().to_string());
    let example = example.map(|run| format!(", or look at one of its runs: lasthop view {run}"));
    Err(Error::Usage(format!(
        "{}: runs of real kernels cannot be played again, and the {REPORT} that the lab wrote of \
         them is gone: run the lab again{}",
        folder.display(),
        example.unwrap_or_default()
    )))
}
