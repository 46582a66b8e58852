//! The folder of a sweep: what study it is of, and the records of its finished runs.
//!
//! ```text
//! DIR/study.json              the study and the version of the model; another one is refused
//! DIR/records/all.records     one line per finished run, in the order in which they finished
//! DIR/records/shard-2-of-4.records
//! ```
//!
//! A run is kept by one write of one line at the end of a file that one process has locked. Killed
//! at any moment, the process leaves at most one line without an end, which is cut off when the
//! file is opened again, and which no reader takes for a record.

use super::{MODEL, Matrix, record};
use crate::row::Sample;
use core::fmt;
use core::str::FromStr;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// A folder that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The system refused.
    #[error("{attempt} {}: {error}", path.display())]
    System {
        /// What was tried.
        attempt: &'static str,
        /// With which file.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// It is somebody else's.
    #[error("{}: {difference}", path.display())]
    Other {
        /// The folder.
        path: PathBuf,
        /// In what it differs, and what to do.
        difference: String,
    },
}

/// A part of a sweep: every `of`th run, beginning with run `number`, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// Which part.
    pub number: u64,
    /// Of how many.
    pub of: u64,
}

impl Shard {
    /// More machines than any cluster we know has.
    const OF_MAX: u64 = 100_000;
    /// The whole sweep.
    pub const WHOLE: Shard = Shard { number: 1, of: 1 };

    /// True if a run, from 0, is in this part.
    pub fn has(self, run: u64) -> bool {
        run % self.of == self.number - 1
    }

    /// What its files are called.
    pub fn label(self) -> String {
        if self == Self::WHOLE {
            "all".into()
        } else {
            format!("shard-{}-of-{}", self.number, self.of)
        }
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = "expected I/N with I from 1 to N, as in 2/4";
        let parts = text.split_once('/').and_then(|(number, of)| {
            Some(Shard { number: number.trim().parse().ok()?, of: of.trim().parse().ok()? })
        });
        let shard = parts.filter(|shard| (1..=shard.of).contains(&shard.number));
        let shard = shard.filter(|shard| shard.of <= Self::OF_MAX);
        shard.ok_or_else(|| format!("`{text}` is no shard; {expected}"))
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
    }
}

/// What `study.json` says.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Manifest {
    program: String,
    version: String,
    model: String,
    identity: String,
    runs: u64,
    settings: BTreeMap<String, String>,
}

impl Manifest {
    fn of(matrix: &Matrix) -> Manifest {
        Manifest {
            program: "lasthop sweep".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            model: MODEL.to_owned(),
            identity: matrix.identity(),
            runs: matrix.runs(),
            settings: matrix.study.settings.clone(),
        }
    }

    /// In what another study differs from this one, if it does.
    fn difference(&self, there: &Manifest) -> Option<String> {
        if self.identity == there.identity {
            return None;
        }
        if self.model != there.model {
            return Some(format!(
                "made with model {} of version {}, this program has {} of {}",
                there.model, there.version, self.model, self.version
            ));
        }
        let keys = self.settings.keys().chain(there.settings.keys());
        let absent = || "absent".to_owned();
        let value = |settings: &BTreeMap<String, String>, key| {
            settings.get(key).map_or_else(absent, |value| format!("`{value}`"))
        };
        let sides = |key| (value(&there.settings, key), value(&self.settings, key));
        for key in keys {
            let (theirs, ours) = sides(key);
            if theirs != ours {
                return Some(format!("{key} is {theirs} there and {ours} here"));
            }
        }
        Some("its recorded files had another content".to_owned())
    }
}

const MANIFEST: &str = "study.json";
const RECORDS: &str = "records";
const EXTENSION: &str = "records";

/// Makes the folder of a study, or sees that it is this study's.
///
/// # Errors
/// If it cannot be written, or holds something else.
pub fn prepare(folder: &Path, matrix: &Matrix) -> Result<(), StoreError> {
    let system = |attempt| {
        let path = folder.to_owned();
        move |error| StoreError::System { attempt, path, error }
    };
    check(folder, matrix)?;
    let manifest = folder.join(MANIFEST);
    fs::create_dir_all(folder.join(RECORDS)).map_err(system("write to"))?;
    if !manifest.exists() {
        let text = serde_json::to_string_pretty(&Manifest::of(matrix)).map_err(io::Error::other);
        let written = text.and_then(|text| {
            replace(&manifest, &std::process::id().to_string(), |file| writeln!(file, "{text}"))
        });
        written.map_err(system("write to"))?;
    }
    Ok(())
}

/// Sees that a folder, if there is one, is this study's.
///
/// # Errors
/// If it cannot be read, or holds something else.
pub fn check(folder: &Path, matrix: &Matrix) -> Result<(), StoreError> {
    let other = |difference: String| StoreError::Other { path: folder.to_owned(), difference };
    let text = match fs::read_to_string(folder.join(MANIFEST)) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return if folder.join("summary.json").exists() {
                Err(other(
                    "holds the results of another command; expected a folder of its own".into(),
                ))
            } else {
                Ok(())
            };
        }
        Err(error) => {
            let path = folder.to_owned();
            return Err(StoreError::System { attempt: "read the study in", path, error });
        }
    };
    let there: Manifest = serde_json::from_str(&text)
        .map_err(|error| other(format!("its {MANIFEST} cannot be read: {error}")))?;
    match Manifest::of(matrix).difference(&there) {
        None => Ok(()),
        Some(difference) => Err(other(format!(
            "holds another study: {difference}; expected a new folder (--merge takes the runs \
             that both studies have)"
        ))),
    }
}

/// Waits until no other process writes the results of a folder; they are this one's turn as long as
/// what is returned lives. On a file system without locks nobody waits.
pub(super) fn turn(folder: &Path) -> Option<File> {
    let file = File::open(folder.join(MANIFEST)).ok()?;
    file.lock().ok()?;
    Some(file)
}

/// Writes a file whole or not at all: under another name first, which `label` makes this writer's.
pub(super) fn replace(
    path: &Path,
    label: &str,
    write: impl FnOnce(&mut io::BufWriter<File>) -> io::Result<()>,
) -> io::Result<()> {
    let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    let draft = path.with_file_name(format!(".{name}.{label}"));
    let mut file = io::BufWriter::new(File::create(&draft)?);
    write(&mut file)?;
    file.into_inner().map_err(io::IntoInnerError::into_error)?;
    fs::rename(&draft, path)
}

/// The file to which one process adds the runs that it finishes.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: Mutex<File>,
}

impl Journal {
    /// Opens the journal of a part of the sweep in a prepared folder, and cuts off what a killed
    /// process had begun to write.
    ///
    /// # Errors
    /// If it cannot be written, or another process writes to it.
    pub fn open(folder: &Path, shard: Shard) -> Result<Journal, StoreError> {
        let path = folder.join(RECORDS).join(shard.label()).with_extension(EXTENSION);
        let opened = OpenOptions::new().read(true).append(true).create(true).open(&path);
        let system = |error| StoreError::System { attempt: "write to", path: path.clone(), error };
        let mut file = opened.map_err(system)?;
        match file.try_lock() {
            // A file system without locks: nobody can tell.
            Err(TryLockError::Error(error)) if error.kind() == ErrorKind::Unsupported => {}
            Err(TryLockError::Error(error)) => return Err(system(error)),
            Err(TryLockError::WouldBlock) => {
                let difference = "another lasthop sweep is writing to it".to_owned();
                return Err(StoreError::Other { path, difference });
            }
            Ok(()) => {}
        }
        let end = end_of_last_line(&mut file).map_err(system)?;
        file.set_len(end).map_err(system)?;
        Ok(Journal { path, file: Mutex::new(file) })
    }

    /// Adds records, each a line with its end, by one write.
    ///
    /// # Errors
    /// If the system refuses; nothing more may be added then.
    pub fn add(&self, lines: &str) -> Result<(), StoreError> {
        let mut file = self.file.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        file.write_all(lines.as_bytes()).map_err(|error| StoreError::System {
            attempt: "write to",
            path: self.path.clone(),
            error,
        })
    }
}

/// The length of a file up to and with its last newline.
fn end_of_last_line(file: &mut File) -> io::Result<u64> {
    const STEP: u64 = 64 << 10;
    let mut end = file.seek(SeekFrom::End(0))?;
    while end > 0 {
        let start = end.saturating_sub(STEP);
        file.seek(SeekFrom::Start(start))?;
        let mut bytes = vec![0; (end - start) as usize];
        file.read_exact(&mut bytes)?;
        if let Some(place) = bytes.iter().rposition(|byte| *byte == b'\n') {
            return Ok(start + place as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}

/// Where the record of each finished run stands.
#[derive(Debug, Default)]
pub struct Index {
    files: Vec<(PathBuf, File)>,
    places: BTreeMap<u64, Place>,
    /// Records of runs that the study does not have.
    pub foreign: u64,
    /// Lines that are no whole record: their runs count as not finished.
    pub damaged: u64,
}

#[derive(Clone, Copy, Debug)]
struct Place {
    offset: u64,
    file: u32,
    length: u32,
}

impl Index {
    /// Reads the records of a folder; none if it is not there.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn read(folder: &Path, matrix: &Matrix) -> Result<Index, StoreError> {
        let records = folder.join(RECORDS);
        let system = |path: &Path| {
            let path = path.to_owned();
            move |error| StoreError::System { attempt: "read", path, error }
        };
        let entries = match fs::read_dir(&records) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Index::default()),
            entries => entries.map_err(system(&records))?,
        };
        let paths: io::Result<Vec<PathBuf>> =
            entries.map(|entry| entry.map(|entry| entry.path())).collect();
        let mut paths = paths.map_err(system(&records))?;
        paths.retain(|path| path.extension().is_some_and(|name| name == EXTENSION));
        paths.sort();
        let mut index = Index::default();
        for path in paths {
            let file = File::open(&path).map_err(system(&path))?;
            index.scan(&file, matrix).map_err(system(&path))?;
            index.files.push((path, file));
        }
        Ok(index)
    }

    fn scan(&mut self, file: &File, matrix: &Matrix) -> io::Result<()> {
        let mut reader = BufReader::with_capacity(1 << 20, file);
        let (mut line, mut offset) = (Vec::new(), 0);
        loop {
            line.clear();
            let read = reader.read_until(b'\n', &mut line)?;
            // Without an end: being written just now, or by a process that was killed.
            let Some((b'\n', text)) = line.split_last() else { return Ok(()) };
            match record::name(text) {
                None => self.damaged += 1,
                Some((name, seed)) => match matrix.find(name, seed) {
                    None => self.foreign += 1,
                    Some(run) => {
                        let file = self.files.len() as u32;
                        let place = Place { offset, file, length: text.len() as u32 };
                        self.places.entry(run).or_insert(place);
                    }
                },
            }
            offset += read as u64;
        }
    }

    /// How many runs are finished.
    pub fn finished(&self) -> u64 {
        self.places.len() as u64
    }

    /// True if a run is finished.
    pub fn has(&self, run: u64) -> bool {
        self.places.contains_key(&run)
    }

    /// The finished runs, in order.
    pub fn runs(&self) -> impl Iterator<Item = u64> {
        self.places.keys().copied()
    }

    /// The record of a run, without the newline, if it is finished.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn line(&self, run: u64) -> Result<Option<Vec<u8>>, StoreError> {
        let Some(place) = self.places.get(&run) else { return Ok(None) };
        let (path, file) = &self.files[place.file as usize];
        let mut bytes = vec![0; place.length as usize];
        let mut file: &File = file;
        let read =
            file.seek(SeekFrom::Start(place.offset)).and_then(|_| file.read_exact(&mut bytes));
        let system = |error| StoreError::System { attempt: "read", path: path.clone(), error };
        read.map(|()| Some(bytes)).map_err(system)
    }

    /// What was measured in a run, if it is finished.
    ///
    /// # Errors
    /// If the file cannot be read, or has changed since.
    pub fn sample(&self, run: u64) -> Result<Option<Sample>, StoreError> {
        let Some(line) = self.line(run)? else { return Ok(None) };
        match record::decode(&line) {
            Some(sample) => Ok(Some(sample)),
            None => {
                let path = self.files[self.places[&run].file as usize].0.clone();
                let difference = "a record in it has changed while it was read".to_owned();
                Err(StoreError::Other { path, difference })
            }
        }
    }
}
