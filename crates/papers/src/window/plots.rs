//! The figures in the paper's form: throughput against time for each sender (Figures 1 and 7 to
//! 11), the congestion window beside it, averages (Figure 12); and the restart against the period
//! of advertisements.

use super::figure_12::of_version;
use super::recovery::{PERIODS, over_senders, restart_s};
use super::{LENGTH_S, NAME, SENDERS, STACKS, VERSIONS, outcome, rate};
use crate::runs::{Outcome, Results};
use report::figure::{Axis, Figure, Form, Point, Series};
use trace::timeline::Timeline;

pub(super) fn figures(results: &Results) -> Vec<Figure> {
    let mut figures = Vec::new();
    if !results.of(NAME, VERSIONS).is_empty() {
        for (place, (_, name)) in SENDERS.into_iter().enumerate() {
            figures.push(throughput(results, place, name));
            figures.push(windows(results, place, name));
        }
        figures.push(averages(results));
    }
    figures.extend(restart(results));
    figures
}

fn time() -> Axis {
    Axis { label: "time, s".into(), places: Vec::new() }
}

fn value(label: &str) -> Axis {
    Axis { label: label.into(), places: Vec::new() }
}

fn series(version: usize, points: Vec<Point>) -> Series {
    let (letter, what, _) = STACKS[version];
    Series { name: format!("({letter}) {what}"), colour: version, form: Form::Line, points }
}

fn throughput(results: &Results, place: usize, name: &str) -> Figure {
    let curve = |version| {
        let runs = &outcome(results, version, SENDERS[place].0).watched;
        let point = |second: usize| {
            let sum: f64 = runs.iter().map(|one| rate(&one.moves, second, second + 1)).sum();
            Point { x: second as f64 + 0.5, y: sum / runs.len().max(1) as f64, interval: None }
        };
        series(version, (0..LENGTH_S).map(point).collect())
    };
    Figure {
        name: format!("EXP-WINC-F{}", place + 7),
        title: format!("Figure {}: throughput of {name}", place + 7),
        caption: "Received in order in each second, the mean of all seeds. Handoffs at 40, 60 and \
                  80 s. The published figure has no values in the text."
            .into(),
        x: time(),
        y: value("throughput, KB/s"),
        series: (0..STACKS.len()).map(curve).collect(),
    }
}

/// The first seed's run, played again.
fn windows(results: &Results, place: usize, name: &str) -> Figure {
    const STEP_S: f64 = 0.25;
    let seed = results.scenario(NAME, VERSIONS).map_or(1, |scenario| scenario.seed);
    let curve = |version| {
        let plan = &outcome(results, version, SENDERS[place].0).plan;
        let mut points: Vec<Point> = Vec::new();
        let Some(spec) = sim::run::transfers(plan).first().copied() else {
            return series(version, points);
        };
        let mut timeline = Timeline::new(spec);
        sim::run(plan, seed, &mut timeline);
        let mut next = 0.0;
        for window in &timeline.windows {
            let x = window.at.as_secs_f64();
            // What falls is drawn when it does, what grows each step.
            let y = f64::from(window.cwnd) / 1e3;
            if x >= next || points.last().is_some_and(|last| y < last.y - 2.0) {
                points.push(Point { x, y, interval: None });
                next = x + STEP_S;
            }
        }
        series(version, points)
    };
    Figure {
        name: format!("EXP-WINC-F{}-cwnd", place + 7),
        title: format!("Congestion window of {name}"),
        caption: format!(
            "Seed {seed}. As Figure 1 has it for Tahoe without control; the published figure has \
             no values in the text. The window offered is 80 KB."
        ),
        x: time(),
        y: value("cwnd, KB"),
        series: (0..STACKS.len()).map(curve).collect(),
    }
}

fn averages(results: &Results) -> Figure {
    let one = |version| {
        let values = of_version(results, version).into_iter().enumerate();
        let point = |(place, (y, ci95)): (usize, (f64, Option<f64>))| Point {
            x: place as f64,
            y,
            interval: ci95.map(|ci| (y - ci, y + ci)),
        };
        Series { form: Form::OursApart, ..series(version, values.map(point).collect()) }
    };
    Figure {
        name: "EXP-WINC-F12".into(),
        title: "Figure 12: average throughput of each sender and version".into(),
        caption: "Our mean of 100 s with its 95 % interval. The published figure has no values in \
                  the text; its average gains are +48.6, +79.1 and +157.5 %."
            .into(),
        x: Axis {
            label: "sender".into(),
            places: SENDERS.iter().map(|(_, name)| (*name).to_owned()).collect(),
        },
        y: value("throughput, KB/s"),
        series: (0..STACKS.len()).map(one).collect(),
    }
}

fn restart(results: &Results) -> Option<Figure> {
    let mut points = Vec::new();
    for (study, x) in PERIODS {
        let outcomes: Vec<&Outcome> = results.of(NAME, study).iter().collect();
        if outcomes.is_empty() {
            return None;
        }
        points.push(Point { x, y: over_senders(&outcomes, restart_s), interval: None });
    }
    let at = |x| Point { x, y: PUBLISHED_S, interval: None };
    let line =
        |name: &str, colour, form, points| Series { name: name.into(), colour, form, points };
    Some(Figure {
        name: "EXP-WINC-3".into(),
        title: "Restart after a handoff, conventional version".into(),
        caption: "From the crossing to the first segment through the new cell, the mean of five \
                  senders. The published mean is a line, for its period is not known."
            .into(),
        x: value("period of agent advertisements, s"),
        y: value("restart, s"),
        series: vec![
            line("ours", 0, Form::Ours, points),
            line("published", 1, Form::Line, vec![at(0.0), at(10.0)]),
        ],
    })
}

const PUBLISHED_S: f64 = 4.768;
