//! `lasthop assess`: a capture by anybody, and what it tells.
//!
//! Map: here the file and the streams, [`tables`] (what is printed).

mod tables;

use crate::args::AssessArgs;
use crate::compare::VERSION;
use crate::error::Error;
use crate::output::{self, errln};
use crate::rundir::unwritable;
use ::assess::capture::ReadError;
use ::assess::connection::Place;
use ::assess::summary::Assessment;
use ::assess::{Options, Progress};
use flate2::bufread::MultiGzDecoder;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;
use std::cell::Cell;
use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal, Read};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The document of `--json` and of `assessment.json`.
#[derive(Serialize)]
struct Document<'a> {
    version: &'static str,
    file: String,
    #[serde(flatten)]
    assessment: &'a Assessment,
}

/// Reads the capture and says what it tells.
pub(crate) fn assess(args: &AssessArgs, quiet: bool) -> Result<(), Error> {
    let options = Options { at: args.at.as_deref().map(place).transpose()? };
    let file = args.file.display().to_string();
    if let Some(out) = &args.out {
        std::fs::create_dir_all(out).map_err(|error| unwritable(out, &error))?;
    }
    let (read, size) = open(&args.file)?;
    let read_so_far = Rc::new(Cell::new(0));
    let read = unpacked(Counted { read, count: read_so_far.clone() })
        .map_err(|error| Error::Usage(format!("{file}: {error}")))?;
    let bar = bar(size, quiet);
    let stop = interrupt();
    let progress = |_: Progress| {
        bar.set_position(read_so_far.get());
        !stop.load(Ordering::Relaxed)
    };
    let assessment = ::assess::assess(read, options, progress);
    bar.finish_and_clear();
    let assessment = assessment.map_err(|error| refused(&file, &error))?;
    let document = Document { version: VERSION, file, assessment: &assessment };
    let text = serde_json::to_string_pretty(&document).map_err(Error::usage)? + "\n";
    if let Some(out) = &args.out {
        let path = out.join("assessment.json");
        std::fs::write(&path, &text).map_err(|error| unwritable(&path, &error))?;
    }
    if args.json {
        output::print(format_args!("{text}"));
    } else {
        output::print(format_args!("{}", tables::text(&document.file, &assessment, args)));
    }
    if stop.load(Ordering::Relaxed) { Err(Error::Interrupted) } else { Ok(()) }
}

fn place(name: &str) -> Result<Place, Error> {
    let places = [Place::Sender, Place::Middle, Place::Receiver];
    let found = places.into_iter().find(|place| place.name() == name);
    found.ok_or_else(|| Error::Usage(format!("--at {name}: expected sender, middle or receiver")))
}

/// The file, or standard input; and its size, if it has one.
fn open(path: &Path) -> Result<(Box<dyn Read>, Option<u64>), Error> {
    if path == Path::new("-") {
        return Ok((Box::new(io::stdin()), None));
    }
    let failed = |error: io::Error| Error::Usage(format!("{}: {error}", path.display()));
    let file = File::open(path).map_err(failed)?;
    let meta = file.metadata().map_err(failed)?;
    if meta.is_dir() {
        return Err(Error::Usage(format!("{}: a folder; expected a capture", path.display())));
    }
    Ok((Box::new(file), meta.is_file().then_some(meta.len())))
}

/// The capture itself, if it is gzipped (RFC 1952).
fn unpacked(read: impl Read + 'static) -> io::Result<Box<dyn Read>> {
    const GZIP: [u8; 2] = [0x1f, 0x8b];
    const BUFFER_BYTES: usize = 1 << 18;
    let mut read = BufReader::with_capacity(BUFFER_BYTES, read);
    let is_gzip = read.fill_buf()?.starts_with(&GZIP);
    Ok(if is_gzip { Box::new(MultiGzDecoder::new(read)) } else { Box::new(read) })
}

/// A reader that tells how far it is.
struct Counted<R> {
    read: R,
    count: Rc<Cell<u64>>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.read.read(into)?;
        self.count.set(self.count.get() + read as u64);
        Ok(read)
    }
}

fn refused(file: &str, error: &ReadError) -> Error {
    Error::Usage(format!("{file}: {error}"))
}

/// A bar over the file's bytes; a file that is soon read needs none.
fn bar(size: Option<u64>, quiet: bool) -> ProgressBar {
    const LARGE_BYTES: u64 = 64 << 20;
    let is_long = size.is_none_or(|size| size >= LARGE_BYTES);
    let shown = !quiet && is_long && io::stderr().is_terminal();
    let target = if shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let template = match size {
        Some(_) => "{bar:30} {bytes} of {total_bytes}, {eta} left",
        None => "{spinner} {bytes}",
    };
    let style = ProgressStyle::with_template(template);
    let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::with_draw_target(size, target).with_style(style)
}

/// Set by the first Ctrl-C: what was read until then is assessed. A second one ends at once.
fn interrupt() -> Arc<AtomicBool> {
    let asked = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        let second = signal_hook::flag::register_conditional_shutdown(signal, 130, asked.clone());
        let first = signal_hook::flag::register(signal, asked.clone());
        if second.is_err() || first.is_err() {
            errln!("lasthop: cannot listen for signal {signal}: Ctrl-C ends at once");
        }
    }
    asked
}
