//! Replays every kept input, then mutates them for some seconds.
//!
//! The mutations are the same in every run, as far as time lets them go: 3 s for each target, or
//! `LASTHOP_FUZZ_SECONDS`. An input that breaks an invariant is printed, made shorter, and written
//! to the temporary directory, with the command that replays it. Once the bug is fixed, that file
//! belongs into `corpus/`.

mod captures;
mod messages;
mod mutator;
mod seeds;

use fuzzing::Target;
use mutator::Mutator;
use std::fmt::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

/// Seconds of mutations for each target.
const SECONDS: f64 = 3.0;
/// Attempts to make an input shorter.
const SHORTENINGS_MAX: usize = 3_000;

#[test]
fn every_kept_input_of_wire_datagram_and_its_mutations_hold() {
    replay_and_mutate("wire_datagram");
}

#[test]
fn every_kept_input_of_tcp_endpoint_and_its_mutations_hold() {
    replay_and_mutate("tcp_endpoint");
}

#[test]
fn every_kept_input_of_snoop_agent_and_its_mutations_hold() {
    replay_and_mutate("snoop_agent");
}

#[test]
fn every_kept_input_of_capture_assess_and_its_mutations_hold() {
    replay_and_mutate("capture_assess");
}

#[test]
fn every_kept_input_of_mobility_message_and_its_mutations_hold() {
    replay_and_mutate("mobility_message");
}

#[test]
fn every_kept_input_of_mobility_engines_and_its_mutations_hold() {
    replay_and_mutate("mobility_engines");
}

/// `LASTHOP_WRITE_SEEDS=1` writes them.
#[test]
fn the_corpus_holds_the_seeds_as_they_are_made() {
    let write = std::env::var_os("LASTHOP_WRITE_SEEDS").is_some();
    for target in fuzzing::TARGETS {
        let folder = folder(target);
        for (name, bytes) in seeds::of(target.name) {
            let file = folder.join(format!("seed-{name}"));
            if write {
                std::fs::create_dir_all(&folder).expect("the corpus can be written");
                std::fs::write(&file, &bytes).expect("the corpus can be written");
            }
            let kept = std::fs::read(&file).unwrap_or_default();
            assert_eq!(kept, bytes, "{} is not as it is made", file.display());
        }
    }
}

#[test]
fn an_input_that_breaks_an_invariant_is_found_and_made_short() {
    fn breaks_on_a_seven(bytes: &[u8]) {
        assert!(!bytes.contains(&7), "a seven");
    }
    let target = Target { name: "breaks_on_a_seven", run: breaks_on_a_seven };
    let found = mutate(target, vec![vec![1, 2, 3, 4, 5, 6]], 20.0);
    let short = shortened(target, found.expect("some mutation writes a seven"));
    assert_eq!(short, [7]);
}

fn folder(target: Target) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target.name)
}

fn replay_and_mutate(name: &str) {
    let target = Target::named(name).expect("the target is in the list");
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder(target))
        .expect("the corpus is kept with the sources")
        .map(|entry| entry.expect("the corpus can be read").path())
        .collect();
    files.sort();
    assert!(files.len() >= 5, "a corpus of {} files", files.len());
    let mut inputs = Vec::new();
    for file in files {
        let bytes = std::fs::read(&file).expect("the corpus can be read");
        if fails(target, &bytes) {
            panic!("{} breaks an invariant of {name}; see above", file.display());
        }
        inputs.push(bytes);
    }
    let seconds = std::env::var("LASTHOP_FUZZ_SECONDS").ok();
    let seconds = seconds.and_then(|seconds| seconds.parse().ok()).unwrap_or(SECONDS);
    if let Some(input) = mutate(target, inputs, seconds) {
        report(target, &shortened(target, input));
    }
}

fn fails(target: Target, bytes: &[u8]) -> bool {
    catch_unwind(AssertUnwindSafe(|| (target.run)(bytes))).is_err()
}

/// The first mutation of `inputs` within `seconds` that fails.
#[expect(clippy::disallowed_methods, clippy::disallowed_types, reason = "the run is time-boxed")]
fn mutate(target: Target, inputs: Vec<Vec<u8>>, seconds: f64) -> Option<Vec<u8>> {
    let began = std::time::Instant::now();
    let mut mutator = Mutator::new(target.name, inputs);
    let mut runs = 0_u64;
    while began.elapsed().as_secs_f64() < seconds {
        let input = mutator.next_input();
        runs += 1;
        if fails(target, &input) {
            return Some(input);
        }
    }
    println!("{}: {runs} mutations in {seconds} s", target.name);
    None
}

/// Takes pieces out as long as the rest fails.
fn shortened(target: Target, mut input: Vec<u8>) -> Vec<u8> {
    let mut left = SHORTENINGS_MAX;
    let mut piece = input.len().div_ceil(2);
    while piece > 0 && left > 0 {
        let mut at = 0;
        let before = input.len();
        while at < input.len() && left > 0 {
            left -= 1;
            let mut candidate = input.clone();
            candidate.drain(at..(at + piece).min(input.len()));
            if fails(target, &candidate) {
                input = candidate;
            } else {
                at += piece;
            }
        }
        if piece > 1 || input.len() == before {
            piece /= 2;
        }
    }
    input
}

/// Fails with the input and how to replay it.
fn report(target: Target, input: &[u8]) {
    let mut hex = String::new();
    for byte in input {
        write!(hex, "{byte:02x}").expect("a string grows");
    }
    let file = std::env::temp_dir().join(format!("lasthop-{}.fuzz", target.name));
    let kept = match std::fs::write(&file, input) {
        Ok(()) => format!("it is in {}", file.display()),
        Err(error) => format!("it could not be kept in {}: {error}", file.display()),
    };
    panic!(
        "{} breaks an invariant (see above) on\n  {hex}\n{kept}; replay it with\n  \
         cargo run -p lasthop-fuzzing --example replay -- {} {}",
        target.name,
        target.name,
        file.display()
    );
}
