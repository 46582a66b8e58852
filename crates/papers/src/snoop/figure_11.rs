//! Figure 11: throughput against bit errors with Snoop and a handoff each 5 s.

use super::table_1::NEVER;
use super::{NAME, experiment, point};
use crate::judged::{Judged, criterion};
use crate::paper::Experiment;
use crate::runs::{Outcome, Results};
use report::figure::{self, Axis, Figure, Form, Series};

const STUDY: &str = "figure-11";
const SHORT: &str = "figure-11-short-queue";
const FIGURE: &str = "figure 11";
const EACH_5_S: &str = "every=5s,overlap";
/// Up to here the paper has the peak.
const RATE_LOW: f64 = 1e-6;

pub(super) const EXPERIMENTS: [Experiment; 3] = [
    experiment(
        ("EXP-SN-F11-a", FIGURE),
        "throughput against bit errors, a handoff each 5 s",
        &[STUDY, SHORT],
        curve,
    ),
    experiment(
        ("EXP-SN-F11-b", FIGURE),
        "below 1e-6 near the peak of 1.45 Mbit/s",
        &[STUDY, SHORT],
        near_the_peak,
    ),
    experiment(
        ("EXP-SN-F11-c", FIGURE),
        "above it as without handoff",
        &[STUDY, SHORT],
        as_without,
    ),
];

/// With handoffs, and without, from no errors to the most.
fn pairs<'a>(results: &'a Results, study: &str) -> Vec<(&'a Outcome, &'a Outcome)> {
    let outcomes = || results.of(NAME, study).iter();
    let with = outcomes().filter(|one| one.case.handoff.to_string() == EACH_5_S);
    let pair = |with: &'a Outcome| {
        let is_other = |one: &&Outcome| one.case.handoff.to_string() == NEVER;
        let without = outcomes().filter(is_other).find(|one| one.meets(with.case.ber));
        without.map(|without| (with, without))
    };
    with.filter_map(pair).collect()
}

/// Throughput with handoffs, percent above that of another run.
fn above(one: &Outcome, other: f64) -> f64 {
    (one.mbps().0 / other - 1.0) * 100.0
}

/// What a short queue at the old base station changes: how far below no handoff, the most.
fn with_short_queue(results: &Results) -> String {
    let pairs = pairs(results, SHORT);
    let below = pairs.iter().map(|(with, without)| -above(with, without.mbps().0));
    let most = below.fold(f64::NEG_INFINITY, f64::max);
    format!(
        "To the letter Snoop repeats what waits in the old base station's queue (EXP-SN-S-a). With \
         8 KiB in flight instead of 64 KB handoffs cost {most:.2} % at most at any of the rates \
         that were run."
    )
}

fn curve(results: &Results) -> Judged {
    let mut points = Vec::new();
    for (study, flight) in [(STUDY, ""), (SHORT, ", 8 KiB")] {
        for (with, without) in pairs(results, study) {
            for (name, one) in [("each 5 s", with), ("no handoff", without)] {
                points.push(point(&format!("{name}{flight}"), one.case.ber.to_string(), one));
            }
        }
    }
    let pairs = pairs(results, STUDY);
    let first = pairs.first().map_or((0.0, None), |(with, _)| with.mbps());
    Judged::without_target("Mbit/s without errors", first).with_points(points)
}

fn near_the_peak(results: &Results) -> Judged {
    const SHARE: f64 = 0.95;
    let pairs = pairs(results, STUDY);
    let peak = pairs.first().map_or(0.0, |(_, without)| without.mbps().0);
    let low = pairs.iter().filter(|(with, _)| with.case.ber.rate() < RATE_LOW);
    let mut criteria = Vec::new();
    let mut least = (f64::INFINITY, None);
    for (with, _) in low {
        let (ours, ci95) = with.mbps();
        let share = ours / peak;
        let what = format!("{}: {ours:.3} Mbit/s, {share:.3} of the peak (>= 0.95)", with.case.ber);
        criteria.push(criterion(share >= SHARE, what));
        least = if ours < least.0 { (ours, ci95) } else { least };
    }
    let tolerance = ">= 95 % of the peak without handoffs and errors";
    Judged::shape("Mbit/s, the least below 1e-6", least, tolerance, criteria)
        .with_theirs(1.45)
        .because(with_short_queue(results))
}

fn as_without(results: &Results) -> Judged {
    let pairs = pairs(results, STUDY);
    let high = pairs.iter().filter(|(with, _)| with.case.ber.rate() >= RATE_LOW);
    let mut criteria = Vec::new();
    let mut farthest = 0.0_f64;
    for (with, without) in high {
        let apart = above(with, without.mbps().0);
        farthest = if apart.abs() > farthest.abs() { apart } else { farthest };
        let what = format!("{}: {apart:+.1} % (within 5 %)", with.case.ber);
        criteria.push(criterion(apart.abs() <= 5.0, what));
    }
    let unit = "% above no handoff, the farthest";
    Judged::shape(unit, (farthest, None), "within 5 % at each rate of 1e-6 or more", criteria)
        .because(with_short_queue(results))
}

/// The curve.
pub(super) fn figure(results: &Results) -> Option<Figure> {
    results.scenario(NAME, STUDY)?;
    let mut pairs = pairs(results, STUDY);
    // As the published axis: from the most errors to none.
    pairs.reverse();
    let of = |one: &Outcome, place: usize| {
        let (y, ci95) = one.mbps();
        figure::Point { x: place as f64, y, interval: ci95.map(|ci| (y - ci, y + ci)) }
    };
    let with = pairs.iter().enumerate().map(|(place, (with, _))| of(with, place)).collect();
    let without = pairs.iter().enumerate().map(|(place, (_, it))| of(it, place)).collect();
    let place = |(with, _): &(&Outcome, &Outcome)| with.case.ber.to_string();
    let one =
        |name: &str, colour, points| Series { name: name.into(), colour, form: Form::Ours, points };
    Some(Figure {
        name: "EXP-SN-F11".into(),
        title: "Figure 11: Snoop with a handoff each 5 s, throughput against bit errors".into(),
        caption: "Our means with their 95 % intervals. The published figure has no values in the \
                  text."
            .into(),
        x: Axis { label: "bit errors".into(), places: pairs.iter().map(place).collect() },
        y: Axis { label: "throughput, Mbit/s".into(), places: Vec::new() },
        series: vec![one("a handoff each 5 s", 0, with), one("no handoff", 1, without)],
    })
}
