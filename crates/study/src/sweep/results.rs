//! What a sweep writes at its end: a table of all finished runs, and a summary per configuration.

use super::columns::{self, Run};
use super::formats::{Format, Table};
use super::store::{self, replace};
use super::{Configuration, Index, MODEL, Matrix, Shard, StoreError};
use crate::row::{Row, Sample, World};
use serde::Serialize;
use serde::ser::SerializeMap;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// What was written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// The files.
    pub files: Vec<PathBuf>,
    /// Runs in them, of this shard or any other.
    pub runs: u64,
    /// Runs of this shard that are not.
    pub missing: u64,
    /// Broken invariants in them, each with the run's name; nothing in a correct program.
    pub failures: u64,
    /// The first of those.
    pub first_failure: Option<String>,
}

/// Name of the summary.
const SUMMARY: &str = "summary.json";

/// Writes `runs.*` in these formats and `summary.json`, each whole or not at all, from all records
/// that the folder has. Shards that share a folder take turns, so that the last leaves all runs.
///
/// # Errors
/// If a record cannot be read or a file cannot be written.
pub fn write(
    folder: &Path,
    matrix: &Matrix,
    formats: &[Format],
    shard: Shard,
) -> Result<Written, StoreError> {
    let _turn = store::turn(folder);
    let index = &Index::read(folder, matrix)?;
    let is_missing = |run: &u64| shard.has(*run) && !index.has(*run);
    let missing = (0..matrix.runs()).filter(is_missing).count() as u64;
    let mut written = Written { missing, ..Written::default() };
    for &format in formats {
        let path = folder.join(format!("runs.{format}"));
        keep(&path, shard, |file| table(file, format, matrix, index))?;
        written.files.push(path);
    }
    let path = folder.join(SUMMARY);
    keep(&path, shard, |file| summary(file, matrix, index, &mut written))?;
    written.files.push(path);
    Ok(written)
}

/// Writes a file; what goes wrong with a record is passed through the writer's own errors.
fn keep(
    path: &Path,
    shard: Shard,
    write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> Result<(), StoreError> {
    let system = |error| StoreError::System { attempt: "write", path: path.to_owned(), error };
    replace(path, &shard.label(), write).map_err(system)
}

fn table(
    file: &mut BufWriter<File>,
    format: Format,
    matrix: &Matrix,
    index: &Index,
) -> io::Result<()> {
    let columns = columns::chosen(matrix.study.metrics.as_deref());
    let mut table = Table::begin(format, file, &columns)?;
    let mut configuration: Option<Configuration> = None;
    for run in index.runs() {
        let (number, _) = matrix.place(run);
        if configuration.as_ref().is_none_or(|last| last.number != number) {
            configuration = Some(matrix.configuration(number));
        }
        let sample = index.sample(run).map_err(io::Error::other)?;
        if let (Some(configuration), Some(sample)) = (&configuration, &sample) {
            let run = Run { configuration, sample };
            let cells: Vec<_> = columns.iter().map(|column| column.cell(run)).collect();
            table.row(&cells)?;
        }
    }
    table.end()
}

fn summary(
    file: &mut BufWriter<File>,
    matrix: &Matrix,
    index: &Index,
    written: &mut Written,
) -> io::Result<()> {
    let head = Head {
        version: env!("CARGO_PKG_VERSION"),
        model: MODEL,
        study: &matrix.study.settings,
        runs: matrix.runs(),
        finished: index.finished(),
    };
    let head = serde_json::to_string(&head)?;
    write!(file, "{},\"rows\":[", head.trim_end_matches('}'))?;
    let mut separator = "\n";
    let mut runs = index.runs().peekable();
    while let Some(&run) = runs.peek() {
        let (number, _) = matrix.place(run);
        let configuration = matrix.configuration(number);
        let mut samples: Vec<Sample> = Vec::new();
        while let Some(run) = runs.next_if(|run| matrix.place(*run).0 == number) {
            samples.extend(index.sample(run).map_err(io::Error::other)?);
        }
        let Configuration { case, plan, .. } = &configuration;
        let row = Row::new(case, plan, World::Sim, samples);
        written.runs += row.samples.len() as u64;
        written.failures += row.checks.0.len() as u64;
        if let Some(failure) = row.checks.0.first() {
            let named = || format!("{}: {failure}", matrix.label(number));
            written.first_failure.get_or_insert_with(named);
        }
        write!(file, "{separator}")?;
        serde_json::to_writer(&mut *file, &SummaryRow::of(&configuration, &row))?;
        separator = ",\n";
    }
    writeln!(file, "\n]}}")
}

/// What stands before the rows.
#[derive(Serialize)]
struct Head<'a> {
    version: &'a str,
    model: &'a str,
    study: &'a BTreeMap<String, String>,
    runs: u64,
    finished: u64,
}

/// A row of `compare --json`, and the columns about the path before it.
#[derive(Serialize)]
struct SummaryRow<'a> {
    #[serde(flatten)]
    path: PathCells<'a>,
    #[serde(flatten)]
    row: &'a Row,
}

struct PathCells<'a>(Option<Run<'a>>);

impl<'a> SummaryRow<'a> {
    fn of(configuration: &'a Configuration, row: &'a Row) -> Self {
        let run = row.samples.first().map(|sample| Run { configuration, sample });
        SummaryRow { path: PathCells(run), row }
    }
}

impl Serialize for PathCells<'_> {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        for (run, column) in
            self.0.iter().flat_map(|run| columns::path().map(move |one| (run, one)))
        {
            map.serialize_entry(column.name, &column.cell(*run))?;
        }
        map.end()
    }
}
