//! The paper of window control: Onoe, Atsumi, Sato and Mizuno, "An efficient TCP/IP hand-over
//! control scheme for next-generation mobile communication networks" (2003), sections 2 and 4.
//!
//! | of the paper | here |
//! |---|---|
//! | section 4.1, the set-up | `set_up.rs` |
//! | section 2 and Figure 1: what a handoff costs, how long a recovery takes | `recovery.rs` |
//! | Figures 7 to 11, throughput against time | `versions.rs` |
//! | what section 4.3 says of them, version by version | `versions.rs`, `control.rs` |
//! | Figure 12, average throughputs, and what assumed inputs make of them | `figure_12.rs` |
//! | the figures | `plots.rs` |

mod control;
mod figure_12;
mod plots;
mod recovery;
mod set_up;
mod versions;

use crate::judged::{Judged, Point};
use crate::moves::Moves;
use crate::paper::{Content, Experiment, Paper, Study};
use crate::runs::{Outcome, Results};
use node::Plan;
use node::scenario::Sender;
use study::statistics::Mean;

/// The paper.
pub static PAPER: Paper = Paper {
    name: NAME,
    citation: "Y. Onoe, Y. Atsumi, F. Sato, T. Mizuno: An efficient TCP/IP hand-over control \
               scheme for next-generation mobile communication networks (2003)",
    studies: &STUDIES,
    experiments: &EXPERIMENTS,
    figures: plots::figures,
};

const NAME: &str = "window";
const VERSIONS: &str = "versions";

const CALIBRATED: &[&str] =
    &["period of agent advertisements (PAR-16), to the mean restart of 4.768 s (EXP-WINC-3)"];

const SET: &str = "ns-2's hosts of 2000 (ticks of 100 ms, timeouts of 200 ms or more, one \
                   segment at first, a window of 80 000 B, scale 1); base stations 1 and 21 ms \
                   behind branches 69 and 109 ms from the gateway; signal falling for 12 s \
                   before a crossing, 4 dB in the old and 6 dB in the new cell at it; agents \
                   tell each other only where base stations hold data; window control by the \
                   letter, closing below 5 dB, and below 4.2 dB where the base station holds \
                   what still comes";

/// A study with its own name, or under several that differ by what is set.
const fn study(
    (name, file, text): (&'static str, &'static str, &'static str),
    adjust: fn(&mut Plan),
    adjusted: &'static str,
) -> Study {
    Study { name, file, text, adjust, adjusted, calibrated: CALIBRATED }
}

macro_rules! file {
    ($name:expr, $file:literal) => {
        (
            $name,
            concat!("studies/window/", $file, ".toml"),
            include_str!(concat!("../../../../studies/window/", $file, ".toml")),
        )
    };
}

/// Recoveries need no advertisement.
const fn uncalibrated(study: Study) -> Study {
    Study { calibrated: &[], ..study }
}

const FROM_ONE: &str =
    "ns-2's hosts of 2000; ssthresh of two segments at first, a window of 100 000 B";

static STUDIES: [Study; 18] = [
    study(file!(VERSIONS, "versions"), set_up::versions, SET),
    study(file!("sequencer", "sequencer"), set_up::sequencer, SET),
    study(file!("queue-50", "versions"), set_up::short_queue, "queues of 50 packets"),
    study(file!("tree-even", "versions"), set_up::even_tree, "round trips of 400 to 600 ms"),
    study(file!("tree-apart", "versions"), set_up::apart, "no base station on another's way"),
    study(file!("restart-1s", "restart"), set_up::period::<1_000>, "advertised each 1 s"),
    study(file!("restart-2s", "restart"), set_up::period::<2_000>, "advertised each 2 s"),
    study(file!("restart-4s", "restart"), set_up::period::<4_000>, "advertised each 4 s"),
    study(file!("restart-6s", "restart"), set_up::period::<6_000>, "advertised each 6 s"),
    study(file!("restart-8s", "restart"), set_up::period::<8_000>, "advertised each 8 s"),
    study(file!("restart-10s", "restart"), set_up::period::<10_000>, "advertised each 10 s"),
    study(file!("threshold-4.2dB", "threshold"), set_up::threshold::<42>, "closes below 4.2 dB"),
    study(file!("threshold-4.4dB", "threshold"), set_up::threshold::<44>, "closes below 4.4 dB"),
    study(file!("threshold-4.6dB", "threshold"), set_up::threshold::<46>, "closes below 4.6 dB"),
    study(file!("threshold-4.8dB", "threshold"), set_up::threshold::<48>, "closes below 4.8 dB"),
    uncalibrated(study(file!("recovery-400ms", "recovery-400ms"), set_up::recovery, FROM_ONE)),
    uncalibrated(study(file!("recovery-500ms", "recovery-500ms"), set_up::recovery, FROM_ONE)),
    uncalibrated(study(file!("recovery-600ms", "recovery-600ms"), set_up::recovery, FROM_ONE)),
];

const fn experiment(
    (id, source): (&'static str, &'static str),
    title: &'static str,
    studies: &'static [&'static str],
    judge: fn(&Results) -> Judged,
) -> Experiment {
    Experiment { id, title, source, content: Content::Judged { studies, judge } }
}

/// In the order of the paper.
static EXPERIMENTS: [Experiment; 26] = {
    let [f1a, f1b, one, two, three] = recovery::EXPERIMENTS;
    let [six, a, va, b1, b2, b3, b4] = versions::EXPERIMENTS;
    let [c1, c2, c3, d1, d2, d3, bs10] = control::EXPERIMENTS;
    let [f12a, f12b, f12c, f12d, f12e, f12f, set] = figure_12::EXPERIMENTS;
    [
        f1a, f1b, one, two, three, six, a, va, b1, b2, b3, b4, c1, c2, c3, d1, d2, d3, bs10, f12a,
        f12b, f12c, f12d, f12e, f12f, set,
    ]
};

/// The paper's versions, with the stack of each.
const STACKS: [(&str, &str, &str); 4] = [
    ("a", "conventional", "registration"),
    ("b", "link state and prefetch", "prefetch"),
    ("c", "window control at the mobile host", "window-mobile+prefetch"),
    ("d", "and at the base station", "window-station+prefetch"),
];

/// The senders in the order of Figures 7 to 11.
const SENDERS: [(Sender, &str); 5] = [
    (Sender::Tahoe, "Tahoe"),
    (Sender::Reno, "Reno"),
    (Sender::NewReno, "NewReno"),
    (Sender::Vegas, "Vegas"),
    (Sender::Sack1, "SACK"),
];

/// The outcome of a version, 0 to 3 for (a) to (d), with a sender.
fn outcome(results: &Results, version: usize, sender: Sender) -> &Outcome {
    outcome_of((results, VERSIONS), version, sender)
}

/// The same in another study of all versions and senders.
fn outcome_of<'a>(
    (results, study): (&'a Results, &str),
    version: usize,
    sender: Sender,
) -> &'a Outcome {
    let (_, _, stack) = STACKS[version];
    let is = |one: &&Outcome| one.is(stack) && one.sends(sender);
    results.of(NAME, study).iter().find(is).expect("the study has each version and sender")
}

/// The mean over all runs of a value that a run may not have, and half of its 95 % interval.
fn mean(outcome: &Outcome, of: impl Fn(&Moves) -> Option<f64>) -> (f64, Option<f64>) {
    let values: Vec<f64> = outcome.watched.iter().filter_map(|one| of(&one.moves)).collect();
    Mean::of(&values).map_or((0.0, None), |mean| (mean.mean, mean.ci95))
}

/// KB/s (1000 bytes) delivered from one second of the run to another.
fn rate(moves: &Moves, from: usize, to: usize) -> f64 {
    let bytes = (from..to).map(|second| moves.delivered.get(second).copied().unwrap_or(0));
    bytes.map(f64::from).sum::<f64>() / (to - from).max(1) as f64 / 1e3
}

/// Of a whole run.
fn average(moves: &Moves) -> Option<f64> {
    Some(rate(moves, 0, LENGTH_S))
}

/// The run, and the handoffs in it, in seconds.
const LENGTH_S: usize = 100;
const HANDOFFS_S: [usize; 3] = [40, 60, 80];

fn point(series: &str, at: &str, (ours, ci95): (f64, Option<f64>)) -> Point {
    let (series, at) = (series.to_owned(), at.to_owned());
    Point { series, at, ours, ci95, theirs: None, span: None, on_air: None }
}
