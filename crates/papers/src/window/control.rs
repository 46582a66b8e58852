//! Figures 7 to 11, (c) and (d): window control at the mobile host, and at the base station, too.

use super::recovery::normal;
use super::set_up::{CLOSE_BELOW, ROUND_TRIPS_MS};
use super::{HANDOFFS_S, NAME, SENDERS, VERSIONS, average, experiment, mean, outcome, point, rate};
use crate::judged::{Judged, Point, criterion};
use crate::moves::{Crossing, Moves};
use crate::paper::Experiment;
use crate::runs::{Outcome, Results};
use node::scenario::Sender;

const A: usize = 0;
const C: usize = 2;
const D: usize = 3;

pub(super) const EXPERIMENTS: [Experiment; 7] = [
    experiment(
        ("EXP-WINC-c-1", "section 4.3"),
        "(c): no loss at a handoff, cwnd and ssthresh kept",
        &[VERSIONS],
        nothing_lost,
    ),
    experiment(
        ("EXP-WINC-c-2", "section 4.3"),
        "(c): each cell's rate is the window of 80 KB in its round trip",
        &[VERSIONS],
        window_limited,
    ),
    experiment(
        ("EXP-WINC-c-3", "section 4.3"),
        "(c): Vegas improves after the third handoff, its baseRTT measured again",
        &[VERSIONS],
        vegas_improves,
    ),
    experiment(
        ("EXP-WINC-d-1", "section 4.3"),
        "(d): less is lost at a handoff than with (c)",
        &[VERSIONS],
        smaller_dip,
    ),
    experiment(
        ("EXP-WINC-d-2", "section 4.3"),
        "(d): the throughput is about halved at the second handoff",
        &[VERSIONS],
        halved,
    ),
    experiment(
        ("EXP-WINC-d-3", "section 4.3"),
        "(d): tunnelled and direct packets interleave, which makes duplicate ACKs",
        &[VERSIONS, "sequencer"],
        interleave,
    ),
    experiment(
        ("EXP-WINC-BS-10", "section 3.2"),
        "where the base station holds data, the window may close at a weaker signal",
        &[VERSIONS, "threshold-4.2dB", "threshold-4.4dB", "threshold-4.6dB", "threshold-4.8dB"],
        threshold,
    ),
];

/// The sum over the crossings of a run.
fn sum(moves: &Moves, of: fn(&Crossing) -> u64) -> Option<f64> {
    Some(moves.crossings.iter().map(of).sum::<u64>() as f64)
}

fn nothing_lost(results: &Results) -> Judged {
    let mut criteria = Vec::new();
    let mut most = 0.0_f64;
    for (sender, name) in SENDERS {
        let one = outcome(results, C, sender);
        let resent = mean(one, |moves| sum(moves, |crossing| crossing.resent)).0;
        let lost = mean(one, |moves| sum(moves, |crossing| crossing.lost)).0;
        let kept = |crossing: &Crossing| crossing.least.1 >= crossing.before.1;
        let runs = one.watched.iter().filter(|one| one.moves.crossings.iter().all(kept)).count();
        most = most.max(resent);
        let what = format!(
            "{name}: {resent:.1} sent again, {lost:.1} lost a run; ssthresh kept in {runs} of {}",
            one.watched.len()
        );
        criteria.push(criterion(resent == 0.0 && lost == 0.0 && runs == one.watched.len(), what));
    }
    Judged::shape("segments sent again a run, the most", (most, None), "none", criteria)
        .with_theirs(0.0)
}

/// The last seconds of each stay in a cell: before each handoff, and before the end.
const STAYS: [(usize, usize); 4] = [(35, 39), (55, 59), (75, 79), (95, 99)];

fn window_limited(results: &Results) -> Judged {
    const WINDOW_KB: f64 = 80.0;
    let tahoe = outcome(results, C, Sender::Tahoe);
    let mut criteria = Vec::new();
    let mut points = Vec::new();
    let mut first = (0.0, None);
    for (place, ((from, to), round_trip)) in STAYS.into_iter().zip(ROUND_TRIPS_MS).enumerate() {
        let ours = mean(tahoe, |moves| Some(rate(moves, from, to)));
        // What the radio and the wires take to send a packet comes on top.
        let limit = WINDOW_KB / (round_trip + SENDING_MS) * 1e3;
        let off = (ours.0 / limit - 1.0) * 100.0;
        let what = format!(
            "cell {place}: {:.1} KB/s, {off:+.1} % from 80 KB in {:.0} ms (5 %)",
            ours.0,
            round_trip + SENDING_MS
        );
        criteria.push(criterion(off.abs() <= 5.0, what));
        points.push(point("Tahoe, KB/s", &format!("{from} to {to} s"), ours));
        first = if place == 0 { ours } else { first };
    }
    Judged::shape("KB/s in the first cell, Tahoe", first, "80 KB a round trip, 5 %", criteria)
        .with_points(points)
}

/// Of a packet of 1040 bytes on the radio and two wires, and of its ACK.
const SENDING_MS: f64 = 7.2;

fn vegas_improves(results: &Results) -> Judged {
    let after = |moves: &Moves| Some(rate(moves, 90, 100));
    let [a, c] = [A, C].map(|version| mean(outcome(results, version, Sender::Vegas), after));
    let before = mean(outcome(results, C, Sender::Vegas), |moves| Some(rate(moves, 70, 79)));
    let criteria = vec![
        criterion(c.0 > before.0, format!("(c): {:.1} KB/s, {:.1} before it", c.0, before.0)),
        criterion(c.0 > a.0, format!("(a): {:.1} KB/s then", a.0)),
    ];
    let tolerance = "above what it was before the third handoff, and above (a)";
    Judged::shape("KB/s from 90 to 100 s, Vegas", c, tolerance, criteria).because(
        "Vegas measures baseRTT anew in a round trip with a single segment, as ns-2's does. After \
         the pause the sender has its whole window at once, so there is no such round trip: \
         baseRTT stays that of the first cell, and each handoff to a farther cell looks like a \
         queue. Theirs says that an empty network is enough; by which rule, it does not say."
            .into(),
    )
}

/// KB that the five seconds around each handoff lack of the normal rate, the mean of the three.
fn missing(moves: &Moves) -> Option<f64> {
    let dips = HANDOFFS_S.map(|at| {
        let before = rate(moves, at - 6, at - 1);
        (before - rate(moves, at - 1, at + 4)) * 5.0
    });
    Some(dips.iter().sum::<f64>() / dips.len() as f64)
}

fn smaller_dip(results: &Results) -> Judged {
    let mut criteria = Vec::new();
    let mut points = Vec::new();
    for (sender, name) in SENDERS {
        let [c, d] = [C, D].map(|version| mean(outcome(results, version, sender), missing));
        criteria.push(criterion(d.0 < c.0, format!("{name}: (d) {:.0} KB, (c) {:.0}", d.0, c.0)));
        points.push(point("(c), KB missing a handoff", name, c));
        points.push(point("(d), KB missing a handoff", name, d));
    }
    let tahoe = mean(outcome(results, D, Sender::Tahoe), missing);
    Judged::shape("KB missing a handoff, (d), Tahoe", tahoe, "less than with (c)", criteria)
        .with_points(points)
}

fn halved(results: &Results) -> Judged {
    const AFTER_S: usize = 5;
    let at = HANDOFFS_S[1];
    let share = |moves: &Moves| {
        let seconds = (at..at + AFTER_S).map(|second| rate(moves, second, second + 1));
        Some(seconds.fold(f64::MAX, f64::min) / rate(moves, at - 6, at - 1))
    };
    let points = SENDERS.map(|(sender, name)| {
        point("worst second of five, share", name, mean(outcome(results, D, sender), share))
    });
    let each = |point: &Point| {
        let what = format!("{}: {:.2} of the rate before (0.35 to 0.7)", point.at, point.ours);
        criterion((0.35..=0.7).contains(&point.ours), what)
    };
    let tahoe = mean(outcome(results, D, Sender::Tahoe), share);
    let unit = "of the rate before, the worst second, Tahoe";
    Judged::shape(unit, tahoe, "0.35 to 0.7, each sender", points.iter().map(each).collect())
        .with_theirs(0.5)
        .with_points(points.to_vec())
        .because(
            "Duplicate ACKs by reordering take Tahoe back to a window of one segment; the others \
             halve it."
                .to_owned(),
        )
}

fn interleave(results: &Results) -> Judged {
    let of = |outcome: &Outcome| mean(outcome, |moves| sum(moves, |one| one.duplicate_acks));
    let mut criteria = Vec::new();
    let mut points = Vec::new();
    for (sender, name) in SENDERS {
        let without = of(outcome(results, D, sender));
        let sequencer = results.of(NAME, "sequencer").iter().find(|one| one.sends(sender));
        let with = of(sequencer.expect("the study has each sender"));
        let what = format!("{name}: {:.1} a run, {:.1} with the sequencer", without.0, with.0);
        criteria.push(criterion(without.0 > 0.0 && with.0 < without.0 / 10.0, what));
        points.push(point("duplicate ACKs", name, without));
        points.push(point("with the sequencer", name, with));
    }
    let tahoe = of(outcome(results, D, Sender::Tahoe));
    let tolerance = "some, and less than a tenth of them with the sequencer";
    Judged::shape("duplicate ACKs a run, Tahoe", tahoe, tolerance, criteria).with_points(points)
}

fn threshold(results: &Results) -> Judged {
    const STUDIES: [(&str, f64); 4] = [
        ("threshold-4.2dB", 4.2),
        ("threshold-4.4dB", 4.4),
        ("threshold-4.6dB", 4.6),
        ("threshold-4.8dB", 4.8),
    ];
    let mut points = Vec::new();
    let mut lowest = [CLOSE_BELOW[0]; 2];
    for (place, version) in [C, D].into_iter().enumerate() {
        let (name, _, stack) = super::STACKS[version];
        for (study, decibels) in STUDIES.into_iter().rev() {
            let outcome = results.of(NAME, study).iter().find(|one| one.is(stack));
            let outcome = outcome.expect("the study has both");
            let lost = mean(outcome, |moves| sum(moves, |one| one.lost));
            if lost.0 == 0.0 && lowest[place] <= decibels + 0.25 {
                lowest[place] = decibels;
            }
            let at = format!("closes below {decibels} dB");
            points.push(point(&format!("({name}), segments lost a run"), &at, lost));
            points.push(point(&format!("({name}), KB/s"), &at, mean(outcome, average)));
        }
    }
    let [c, d] = lowest;
    let what = format!("lowest threshold without loss: (d) {d:.1} dB, (c) {c:.1} dB");
    let normal = mean(outcome(results, C, Sender::Reno), |moves| Some(normal(moves))).0;
    Judged::shape(
        "dB, the lowest without loss, (d)",
        (d, None),
        "lower than (c)'s",
        vec![criterion(d < c, what)],
    )
    .with_points(points)
    .because(format!(
        "Reno, {normal:.0} KB/s between handoffs. The signal falls by 1.3 dB a second and is told \
         each 100 ms: (c) has to close a round trip before the crossing, (d) as long as the \
         radio's queue takes."
    ))
}
