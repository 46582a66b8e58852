//! Caceres and Iftode, "Improving the performance of reliable transport protocols in mobile
//! computing environments" (1995): what crossings cost a transfer, and what a fast retransmission
//! after them saves.
//!
//! | of the paper | here |
//! |---|---|
//! | Figures 2 and 10, throughput; section V, Ethernet in place of the radio | `throughput.rs` |
//! | Figures 3 and 4, pauses and windows; section III-E, longer rendezvous | `pauses.rs` |
//! | Figures 5 to 8, single handoffs | `handoffs.rs` |
//! | Figure 9, pauses with and without fast retransmission | `latency.rs` |
//! | what lecture notes repeat of it | `repeated.rs` |
//! | the figures drawn | `plots.rs` |

mod handoffs;
mod latency;
mod pauses;
mod plots;
mod repeated;
mod throughput;

use crate::crossings::Crossing;
use crate::judged::{Judged, Point};
use crate::paper::{Content, Experiment, Paper, Study};
use crate::runs::{Outcome, Results};
use node::Plan;
use node::movement::dwell::Border;
use node::roaming::Pace;
use node::scenario::{Direction, Handoff};
use sansio::Duration;
use schemes::fast_retransmit::Config;
use schemes::fast_retransmit::config::Trigger;
use study::statistics::Mean;
use tcp::config::TimerModel;

/// The paper.
pub static PAPER: Paper = Paper {
    name: NAME,
    citation: "R. Caceres, L. Iftode: Improving the performance of reliable transport protocols \
               in mobile computing environments. IEEE Journal on Selected Areas in \
               Communications 13 (1995)",
    studies: &STUDIES,
    experiments: &EXPERIMENTS,
    figures: plots::figures,
};

const NAME: &str = "caceres-iftode";
/// Figures 2 to 10.
const MOVING: &str = "moving";

/// What is set to an output of the paper, one for each of its figures (RULE-1).
const CALIBRATED: &[&str] = &[
    "MAC efficiency, to the peak of 1.6 Mbit/s (EXP-CI-F2-a)",
    "50 ms for a greeting and 100 ms for the notice to the old base station (EXP-CI-F5-a)",
    "50 ms from the completion to the mobile host's TCP (EXP-CI-F7-a)",
];

/// A study, and what it sets beside its file.
macro_rules! study {
    ($name:literal) => {
        study!($name, $name, daemon, DAEMON)
    };
    ($name:literal, $file:literal, $adjust:expr, $adjusted:expr) => {
        Study {
            name: $name,
            file: concat!("studies/caceres-iftode/", $file, ".toml"),
            text: include_str!(concat!("../../../../studies/caceres-iftode/", $file, ".toml")),
            adjust: $adjust,
            adjusted: $adjusted,
            calibrated: CALIBRATED,
        }
    };
}

const DAEMON: &str = "the mobile host takes 50 ms to tell its TCP of a completion (CI-FRX-9)";

static STUDIES: [Study; 9] = [
    study!("moving"),
    study!("rendezvous"),
    study!("ethernet"),
    study!(
        "exact-timer",
        "handoffs",
        |plan| {
            daemon(plan);
            plan.tcp.rto.model = TimerModel::Ideal { granularity: Duration::ZERO };
        },
        "an exact retransmission timer of 1 s at least, no ticks; 50 ms as elsewhere"
    ),
    study!(
        "greeting-answered",
        "handoffs",
        |plan| tell(plan, Trigger::GreetingAcknowledged),
        "TCP is told when the greeting is answered, as the text says (INC-3); 50 ms as elsewhere"
    ),
    study!(
        "quick",
        "handoffs",
        |plan| {
            if let Some(roaming) = &mut plan.roaming {
                roaming.pace = Pace::Modern;
            }
        },
        "no machine takes any time for a message of a handoff"
    ),
    study!("window-8-kb", "handoffs", |plan| window(plan, 8 << 10), "a window of 8 KB"),
    study!("window-32-kb", "handoffs", |plan| window(plan, 32 << 10), "a window of 32 KB"),
    study!("window-64-kb", "handoffs", |plan| window(plan, 65_535), "a window of 64 KB"),
];

/// The mobile host's daemon tells TCP late.
fn daemon(plan: &mut Plan) {
    tell(plan, Trigger::Complete);
}

fn tell(plan: &mut Plan, trigger: Trigger) {
    let delay = Duration::from_millis(50);
    plan.fast_retransmit = Some(Config { delay, trigger, ..Config::strict() });
}

fn window(plan: &mut Plan, bytes: u32) {
    daemon(plan);
    plan.tcp.receive_buffer_bytes = bytes;
}

const fn experiment(
    (id, source): (&'static str, &'static str),
    title: &'static str,
    studies: &'static [&'static str],
    judge: fn(&Results) -> Judged,
) -> Experiment {
    Experiment { id, title, source, content: Content::Judged { studies, judge } }
}

const fn not_yet(
    (id, source): (&'static str, &'static str),
    title: &'static str,
    needs: &'static str,
) -> Experiment {
    Experiment { id, title, source, content: Content::NotYet(needs) }
}

/// In the order of the paper.
static EXPERIMENTS: [Experiment; 37] = {
    let [a2, b2, c2, d2, e2, f2, g2] = throughput::FIGURE_2;
    let [a3, b3, a4, b4] = pauses::FIGURES;
    let [a5, b5, c5, d5] = handoffs::FIGURE_5;
    let [a6, b6, a7, a8] = handoffs::FIGURES_6_TO_8;
    let [pa, pb] = pauses::CLAIMS;
    let [a9, b9, c9, d9, e9, f9] = latency::FIGURE_9;
    let [a10, b10, c10, d10] = throughput::FIGURE_10;
    let pc = not_yet(
        ("EXP-CI-P-c", "section III-E"),
        "users judge response bad above 100 to 200 ms",
        "nothing: a yardstick, not a result",
    );
    let sc = not_yet(
        ("EXP-CI-S-c", "section V"),
        "WaveLAN captures over 99 % of packets indoors; bit errors of radio and fibre",
        "nothing: inputs of others, not results",
    );
    [
        a2,
        b2,
        c2,
        d2,
        e2,
        f2,
        g2,
        a3,
        b3,
        a4,
        b4,
        a5,
        b5,
        c5,
        d5,
        a6,
        b6,
        pa,
        pb,
        pc,
        a7,
        a8,
        a9,
        b9,
        c9,
        d9,
        e9,
        f9,
        a10,
        b10,
        c10,
        d10,
        latency::ABSTRACT,
        throughput::ETHERNET,
        sc,
        throughput::SENSITIVITY,
        repeated::NOTES,
    ]
};

/// How the mobile host moves: the four bars of Figure 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Motion {
    None,
    Overlap,
    /// No overlap, the new cell's beacon at once.
    Rendezvous0,
    /// And after 1 s.
    Rendezvous1,
}

impl Motion {
    const ALL: [Motion; 4] =
        [Motion::None, Motion::Overlap, Motion::Rendezvous0, Motion::Rendezvous1];
    const GAPS: [Motion; 2] = [Motion::Rendezvous0, Motion::Rendezvous1];

    fn name(self) -> &'static str {
        match self {
            Motion::None => "no motion",
            Motion::Overlap => "overlap",
            Motion::Rendezvous0 => "rendezvous 0 s",
            Motion::Rendezvous1 => "rendezvous 1 s",
        }
    }

    /// Of a case of [`MOVING`] or `handoffs`; a crossing after the end of a run is none.
    fn of(handoff: &Handoff) -> Motion {
        let Handoff::Crossings(crossings) = handoff else { return Motion::None };
        let spec = crossings.dwell();
        match (spec.times, spec.border, spec.rendezvous) {
            (Some(1), ..) => Motion::None,
            (_, Border::Overlap(_) | Border::Ahead(_), _) => Motion::Overlap,
            (_, Border::Gap(_), Some(delay)) if delay.is_zero() => Motion::Rendezvous0,
            (_, Border::Gap(_), _) => Motion::Rendezvous1,
        }
    }
}

/// Who sends, and what stands at the mobile host.
type Who = (Direction, &'static str);

const PLAIN: Who = (Direction::Up, "plain");
const FAST: Who = (Direction::Up, "fast-retransmit-strict");
const FIXED_PLAIN: Who = (Direction::Down, "plain");
const FIXED_FAST: Who = (Direction::Down, "fast-retransmit-strict");

/// The runs of one case.
fn case<'a>(
    results: &'a Results,
    study: &str,
    motion: Motion,
    (direction, scheme): Who,
) -> &'a Outcome {
    let is = |one: &&Outcome| {
        Motion::of(&one.case.handoff) == motion && one.case.direction == direction && one.is(scheme)
    };
    results.of(NAME, study).iter().find(is).expect("the study has this case")
}

/// Mean over runs, each with the mean over its crossings, and half of its 95 % interval.
fn per_run(outcome: &Outcome, value: impl Fn(&Crossing) -> Option<f64>) -> (f64, Option<f64>) {
    let run = |crossings: &[Crossing]| {
        let values: Vec<f64> = crossings.iter().filter_map(&value).collect();
        Mean::of(&values).map(|mean| mean.mean)
    };
    mean(outcome.watched.iter().filter_map(|watched| run(&watched.crossings)))
}

fn mean(values: impl Iterator<Item = f64>) -> (f64, Option<f64>) {
    let values: Vec<f64> = values.collect();
    Mean::of(&values).map_or((0.0, None), |mean| (mean.mean, mean.ci95))
}

/// The same of each seed in two cases.
fn paired(a: &Outcome, b: &Outcome, value: impl Fn(f64, f64) -> f64) -> (f64, Option<f64>) {
    let goodput = |outcome: &Outcome| -> Vec<f64> {
        outcome.row.samples.iter().map(study::Sample::goodput_bps).collect()
    };
    mean(goodput(a).into_iter().zip(goodput(b)).map(|(a, b)| value(a, b)))
}

/// All crossings of all runs after which the transfer went on.
fn crossings(outcome: &Outcome) -> impl Iterator<Item = &Crossing> {
    let all = outcome.watched.iter().flat_map(|watched| &watched.crossings);
    all.filter(|crossing| crossing.resumed.is_some())
}

/// How many of a hundred crossings.
fn percent(outcome: &Outcome, holds: impl Fn(&Crossing) -> bool) -> f64 {
    let (mut all, mut held) = (0_u32, 0_u32);
    for crossing in crossings(outcome) {
        all += 1;
        held += u32::from(holds(crossing));
    }
    f64::from(held) / f64::from(all.max(1)) * 100.0
}

/// The pause, seconds.
fn pause(crossing: &Crossing) -> Option<f64> {
    crossing.resumed.map(|resumed| resumed.as_secs_f64())
}

/// A value of no throughput.
fn point(
    series: &str,
    at: &str,
    (ours, ci95): (f64, Option<f64>),
    theirs: impl Into<Option<f64>>,
) -> Point {
    let (series, at, theirs) = (series.to_owned(), at.to_owned(), theirs.into());
    Point { series, at, ours, ci95, theirs, span: None, on_air: None }
}

/// "0.856 ± 0.012".
fn text((value, ci95): (f64, Option<f64>)) -> String {
    ci95.map_or_else(|| format!("{value:.3}"), |ci95| format!("{value:.3} ± {ci95:.3}"))
}
