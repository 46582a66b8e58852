//! `lasthop sweep`: all runs of a study, as far as they are not finished yet, and their results.

use crate::args::SweepArgs;
use crate::error::Error;
use crate::output::{errln, outln};
use crate::progress::{Interrupt, Progress};
use crate::recordings;
use node::scenario::recorded::Files;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::io::{BufWriter, ErrorKind, Write};
use std::path::Path;
use study::Stop;
use study::sweep::{self, Format, Index, Journal, Matrix, Shard, StoreError, Study};

pub(crate) fn sweep(args: &SweepArgs, quiet: bool) -> Result<(), Error> {
    let shard = match &args.shard {
        Some(text) => text.parse().map_err(|error| Error::Usage(format!("--shard: {error}")))?,
        None => Shard::WHOLE,
    };
    let formats = formats(&args.format)?;
    for folder in &args.merge {
        if !folder.join("records").is_dir() {
            let folder = folder.display();
            return Err(Error::Usage(format!("--merge {folder}: expected the folder of a sweep")));
        }
    }
    let matrix = matrix(&args.study)?;
    if args.list {
        return list(args, &matrix, shard);
    }
    let Some(out) = &args.out else { return Err(Error::usage("--out: expected a folder")) };
    let unusable = |error: StoreError| Error::Usage(format!("--out: {error}"));
    sweep::store::prepare(out, &matrix).map_err(unusable)?;
    let journal = Journal::open(out, shard).map_err(unusable)?;
    let mut index = Index::read(out, &matrix).map_err(unusable)?;
    if index.damaged > 0 {
        errln!("lasthop: {} damaged records are not used", index.damaged);
    }
    if !args.merge.is_empty() {
        merge(args, &matrix, &journal, &index, quiet)?;
        index = Index::read(out, &matrix).map_err(unusable)?;
    }
    let is_missing = |run: &u64| shard.has(*run) && !index.has(*run);
    let missing: Vec<u64> = (0..matrix.runs()).filter(is_missing).collect();
    drop(index);
    let interrupt = Interrupt::listen();
    let stop = Stop::default();
    let progress = Progress::new(missing.len() as u64, quiet);
    let jobs = args.jobs.map_or(0, usize::from);
    let executed = interrupt.while_running(&stop, || {
        let done = || progress.inc();
        sweep::execute(&matrix, &missing, jobs, &journal, (&stop, done))
    });
    progress.finish();
    executed.map_err(|error| Error::Machine(format!("{error}; finished runs are kept")))?;
    let written = sweep::results::write(out, &matrix, &formats, shard);
    let written = written.map_err(|error| Error::Machine(error.to_string()))?;
    report(&matrix, shard, &written, missing.len() as u64);
    if written.missing > 0 {
        return Err(Error::Interrupted);
    }
    match written.first_failure {
        None => Ok(()),
        Some(first) => {
            let count = written.failures;
            Err(Error::Failed(Some(format!("{count} invariants broken; first: {first}"))))
        }
    }
}

/// The runs of a study file, with the recordings it names.
fn matrix(path: &Path) -> Result<Matrix, Error> {
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path)
        .map_err(|error| Error::Usage(format!("{name}: read the study: {error}")))?;
    let mut study = Study::parse(&name, &text).map_err(Error::usage)?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let (mut files, mut contents) = (Files::default(), BTreeMap::new());
    for draft in study.drafts_mut() {
        recordings::locate(draft, folder)?;
        draft.files = files;
        recordings::read(draft)?;
        files = core::mem::take(&mut draft.files);
        for (key, _, name) in draft.files_mut() {
            if !contents.contains_key(name) {
                let bytes = std::fs::read(&*name)
                    .map_err(|error| Error::Usage(format!("{key} = {name}: {error}")))?;
                let hash = Sha256::digest(bytes);
                let text: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
                contents.insert(name.clone(), text);
            }
        }
    }
    study.base.files = files;
    Matrix::new(study, &contents).map_err(Error::usage)
}

fn formats(names: &[String]) -> Result<Vec<Format>, Error> {
    let parsed = names.iter().map(|name| name.parse());
    let mut formats: Vec<Format> = parsed
        .collect::<Result<_, String>>()
        .map_err(|error| Error::Usage(format!("--format: {error}")))?;
    if formats.is_empty() {
        formats.extend(Format::BUILT.iter().filter(|format| **format != Format::Json));
    }
    formats.sort_unstable();
    formats.dedup();
    Ok(formats)
}

/// Copies what other folders have of the study.
fn merge(
    args: &SweepArgs,
    matrix: &Matrix,
    journal: &Journal,
    index: &Index,
    quiet: bool,
) -> Result<(), Error> {
    for folder in &args.merge {
        let unusable = |error: StoreError| Error::Usage(format!("--merge: {error}"));
        let theirs = Index::read(folder, matrix).map_err(unusable)?;
        let mut taken = 0;
        for run in theirs.runs().filter(|run| !index.has(*run)) {
            if let Some(line) = theirs.line(run).map_err(unusable)? {
                let line = String::from_utf8_lossy(&line);
                let kept = journal.add(&format!("{line}\n"));
                kept.map_err(|error| Error::Machine(error.to_string()))?;
                taken += 1;
            }
        }
        if !quiet || theirs.foreign > 0 {
            let (folder, foreign) = (folder.display(), theirs.foreign);
            errln!(
                "lasthop: {folder}: took {taken} runs; {foreign} are not of this study, or of \
                 another version of the model"
            );
        }
    }
    Ok(())
}

/// Prints how many runs there are, and a line for each: its name, whether it is finished, and what
/// it is.
fn list(args: &SweepArgs, matrix: &Matrix, shard: Shard) -> Result<(), Error> {
    let mut index = Index::default();
    if let Some(out) = &args.out {
        let unusable = |error: StoreError| Error::Usage(format!("--out: {error}"));
        sweep::store::check(out, matrix).map_err(unusable)?;
        index = Index::read(out, matrix).map_err(unusable)?;
    }
    let runs = || (0..matrix.runs()).filter(|run| shard.has(*run));
    let finished = runs().filter(|run| index.has(*run)).count();
    let (count, configurations) = (runs().count(), matrix.configurations());
    let print = || -> std::io::Result<()> {
        let mut to = BufWriter::new(std::io::stdout().lock());
        let (all, part) = (matrix.runs(), shard.of > 1);
        let part = if part { format!(" in shard {shard} of {all}") } else { String::new() };
        writeln!(to, "{count} runs{part}: {configurations} configurations, {finished} finished")?;
        let mut label = (usize::MAX, String::new());
        for run in runs() {
            let (number, seed) = matrix.place(run);
            if label.0 != number {
                label = (number, matrix.label(number));
            }
            let state = if index.has(run) { "finished" } else { "missing " };
            writeln!(to, "{}-{seed} {state} {} seed={seed}", matrix.name(number), label.1)?;
        }
        to.flush()
    };
    match print() {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Error::Machine(error.to_string()))
        }
        _ => Ok(()),
    }
}

fn report(matrix: &Matrix, shard: Shard, written: &sweep::Written, were_missing: u64) {
    let ran = were_missing - written.missing;
    let whole = matrix.runs();
    let of = if shard.of > 1 { format!(" by shard {shard}") } else { String::new() };
    outln!("{} of {whole} runs are finished, {ran} of them now{of}", written.runs);
    for file in &written.files {
        outln!("{}", file.display());
    }
}
