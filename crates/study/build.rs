//! Hashes the sources of everything that a simulated run is made of: the version of the model. A
//! comment changes it, too: rather a run too many than a result of another program.

use std::fs;
use std::path::{Path, PathBuf};

/// The simulator and its parts. Where they are not beside this crate (published ones are not), the
/// version of the package says which they were.
const CRATES: [&str; 8] = ["wire", "sansio", "tcp", "schemes", "link", "trace", "node", "sim"];

fn main() {
    let mut sources = Vec::new();
    for name in CRATES {
        let folder = Path::new("..").join(name).join("src");
        println!("cargo::rerun-if-changed={}", folder.display());
        collect(&folder, &mut sources);
    }
    sources.sort();
    let mut hash = fnv(0xCBF2_9CE4_8422_2325, env!("CARGO_PKG_VERSION").as_bytes());
    for source in sources {
        hash = fnv(hash, source.to_string_lossy().as_bytes());
        hash = fnv(hash, &fs::read(&source).unwrap_or_default());
    }
    println!("cargo::rustc-env=LASTHOP_MODEL={hash:016x}");
}

fn collect(folder: &Path, sources: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, sources);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            sources.push(path);
        }
    }
}

fn fnv(hash: u64, bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(hash, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01B3))
}
