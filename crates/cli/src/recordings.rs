//! Recorded channels: the files that a scenario names, found and read before anything starts.

use crate::error::Error;
use link::recorded::{Reader, Recording};
use node::Draft;
use node::scenario::{ScenarioError, recorded::Kind};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;

/// No value of any recording is that long; what is longer is shown as far as it goes.
const LINE_BYTES_MAX: u64 = 4096;

/// Makes the names of files absolute, so that what is printed can be used from anywhere; relative
/// ones begin at `folder`.
pub(crate) fn locate(draft: &mut Draft, folder: &Path) -> Result<(), Error> {
    for (key, _, name) in draft.files_mut() {
        let path = std::path::absolute(folder.join(&*name))
            .map_err(|error| Error::Usage(format!("{key} = {name}: {error}")))?;
        let text = path.to_str().ok_or_else(|| {
            Error::Usage(format!("{key} = {}: expected a path in UTF-8", path.display()))
        })?;
        *name = text.to_owned();
    }
    Ok(())
}

/// Reads them, each once.
pub(crate) fn read(draft: &mut Draft) -> Result<(), Error> {
    let mut files = core::mem::take(&mut draft.files);
    for (key, kind, name) in draft.files_mut() {
        if files.has(kind, name) {
            continue;
        }
        let name = name.clone();
        match kind {
            Kind::Capacity => files.capacities.insert(name.clone(), one(key, &name)?).is_some(),
            Kind::Delays => files.delays.insert(name.clone(), one(key, &name)?).is_some(),
            Kind::Losses => files.losses.insert(name.clone(), one(key, &name)?).is_some(),
            Kind::Lengths => files.lengths.insert(name.clone(), one(key, &name)?).is_some(),
        };
    }
    draft.files = files;
    Ok(())
}

fn one<R: Recording>(key: &str, name: &str) -> Result<Arc<R>, Error> {
    let unreadable = |error| Error::Usage(format!("--{key} {name}: read the recording: {error}"));
    let mut file = BufReader::new(File::open(name).map_err(unreadable)?);
    let mut reader = Reader::<R>::default();
    let mut line = Vec::new();
    let refused = |error: link::recorded::Unexpected| {
        Error::usage(ScenarioError {
            file: name.to_owned(),
            line: (error.line > 0).then_some(error.line as usize),
            message: error.to_string(),
            text: None,
        })
    };
    loop {
        line.clear();
        let read = file.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line);
        if read.map_err(unreadable)? == 0 {
            break;
        }
        reader.line(&line).map_err(refused)?;
    }
    reader.finish().map(Arc::new).map_err(refused)
}
