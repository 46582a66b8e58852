//! The paper's figures drawn.

use super::latency::mean_pause;
use super::pauses::{delay, sweep};
use super::throughput::{PUBLISHED, PUBLISHED_FAST};
use super::{
    FAST, FIXED_FAST, FIXED_PLAIN, MOVING, Motion, NAME, PAPER, PLAIN, Who, case, pause, per_run,
};
use crate::runs::Results;
use report::figure::{Axis, Figure, Form, Point, Series};
use sansio::Duration;
use trace::timeline::Timeline;

/// Those whose studies were run.
pub(super) fn figures(results: &Results) -> Vec<Figure> {
    let mut figures = Vec::new();
    if results.has(&PAPER, MOVING) {
        figures.extend([throughput(results), latency(results), fast_throughput(results)]);
        figures.extend(in_time(results));
        figures.extend(single_handoffs(results));
    }
    if results.has(&PAPER, "rendezvous") {
        figures.push(rendezvous(results));
    }
    figures.sort_by_key(|figure| order(&figure.name));
    figures
}

/// As in the paper: by the number after the F, the claim last.
fn order(name: &str) -> u32 {
    name.trim_start_matches("EXP-CI-F").parse().unwrap_or(u32::MAX)
}

fn bar(place: usize, (y, ci95): (f64, Option<f64>)) -> Point {
    Point { x: place as f64, y, interval: ci95.map(|ci95| (y - ci95, y + ci95)) }
}

fn apart(name: &str, colour: usize, form: Form, points: Vec<Point>) -> Series {
    Series { name: name.into(), colour, form, points }
}

fn axis(label: &str) -> Axis {
    Axis { label: label.into(), places: Vec::new() }
}

fn places(motions: &[Motion]) -> Axis {
    let places = motions.iter().map(|motion| motion.name().to_owned()).collect();
    Axis { label: "how the mobile host moves".into(), places }
}

const BARS: &str = "Filled: our mean with its 95 % interval. Hollow: the published value.";

fn throughput(results: &Results) -> Figure {
    let ours = |who: Who| {
        let motions = Motion::ALL.into_iter().enumerate();
        let one = |(place, motion)| bar(place, case(results, MOVING, motion, who).mbps());
        motions.map(one).collect()
    };
    let published = PUBLISHED.into_iter().enumerate().map(|(place, mbps)| bar(place, (mbps, None)));
    Figure {
        name: "EXP-CI-F2".into(),
        title: "Figure 2: loss of throughput due to motion".into(),
        caption: format!("{BARS} That of overlapping cells from the 6 % of the text."),
        x: places(&Motion::ALL),
        y: axis("throughput of 4 MB, Mbit/s"),
        series: vec![
            apart("mobile host sends, ours", 0, Form::OursApart, ours(PLAIN)),
            apart("published", 0, Form::PublishedApart, published.collect()),
            apart("fixed host sends, ours", 1, Form::OursApart, ours(FIXED_PLAIN)),
        ],
    }
}

fn latency(results: &Results) -> Figure {
    let ours = |who: Who| {
        let motions = Motion::GAPS.into_iter().enumerate();
        motions.map(move |(place, motion)| bar(place, mean_pause(results, MOVING, motion, who)))
    };
    let published = |values: [f64; 2]| {
        let values = values.into_iter().enumerate();
        values.map(|(place, value)| bar(place, (value, None))).collect()
    };
    let series = |name: &str, colour, who| {
        apart(&format!("{name}, ours"), colour, Form::OursApart, ours(who).collect())
    };
    Figure {
        name: "EXP-CI-F9".into(),
        title: "Figure 9: improvements in latency due to fast retransmissions".into(),
        caption: format!("{BARS} Those with the fixed host as the sender are withheld."),
        x: places(&Motion::GAPS),
        y: axis("pause after a crossing, s"),
        series: vec![
            series("mobile host sends", 0, PLAIN),
            apart("published", 0, Form::PublishedApart, published([0.8, 2.8])),
            series("with fast retransmission", 1, FAST),
            apart("published", 1, Form::PublishedApart, published([0.2, 1.2])),
            series("fixed host sends", 2, FIXED_PLAIN),
            series("with fast retransmission", 3, FIXED_FAST),
        ],
    }
}

fn fast_throughput(results: &Results) -> Figure {
    let ours = |who: Who| {
        let motions = Motion::GAPS.into_iter().enumerate();
        motions.map(move |(place, motion)| bar(place, case(results, MOVING, motion, who).mbps()))
    };
    let published = |values: [f64; 2]| {
        let values = values.into_iter().enumerate();
        values.map(|(place, value)| bar(place, (value, None))).collect()
    };
    Figure {
        name: "EXP-CI-F10".into(),
        title: "Figure 10: improvements in throughput due to fast retransmissions".into(),
        caption: BARS.into(),
        x: places(&Motion::GAPS),
        y: axis("throughput of 4 MB, Mbit/s"),
        series: vec![
            apart("plain, ours", 0, Form::OursApart, ours(PLAIN).collect()),
            apart("published", 0, Form::PublishedApart, published([PUBLISHED[2], PUBLISHED[3]])),
            apart("fast retransmission, ours", 1, Form::OursApart, ours(FAST).collect()),
            apart("published", 1, Form::PublishedApart, published(PUBLISHED_FAST)),
        ],
    }
}

fn rendezvous(results: &Results) -> Figure {
    let series = |name: &str, colour, scheme| {
        let points = sweep(results, scheme).into_iter().map(|outcome| {
            let (y, ci95) = per_run(outcome, pause);
            Point { x: delay(outcome), y, interval: ci95.map(|ci95| (y - ci95, y + ci95)) }
        });
        Series { name: name.into(), colour, form: Form::Ours, points: points.collect() }
    };
    Figure {
        name: "EXP-CI-P-b".into(),
        title: "Section III-E: pauses against the rendezvous delay".into(),
        caption: "Our mean of one crossing with its 95 % interval; the paper has no such figure."
            .into(),
        x: axis("rendezvous delay, s"),
        y: axis("pause after the crossing, s"),
        series: vec![series("plain", 0, PLAIN.1), series("fast retransmission", 1, FAST.1)],
    }
}

/// One run of a case.
fn timeline(results: &Results, motion: Motion, who: Who) -> Option<(u64, Timeline)> {
    let seed = results.scenario(NAME, MOVING)?.seed;
    let plan = &case(results, MOVING, motion, who).plan;
    let mut timeline = Timeline::new(sim::run::transfers(plan).first().copied()?);
    sim::run(plan, seed, &mut timeline);
    Some((seed, timeline))
}

/// Figures 3 and 4: one transfer across cells with a beacon after 1 s.
fn in_time(results: &Results) -> Vec<Figure> {
    let motion = Motion::Rendezvous1;
    let Some((seed, timeline)) = timeline(results, motion, PLAIN) else { return Vec::new() };
    let run = &case(results, MOVING, motion, PLAIN).watched[0];
    let crossings: Vec<f64> = run.crossings.iter().map(|one| one.at.as_secs_f64()).collect();
    let line = |name: &str, points: Vec<(f64, f64)>| Series {
        name: name.into(),
        colour: 0,
        form: Form::Line,
        points: steps(points),
    };
    let marks = Series {
        name: "cell boundary crossings".into(),
        colour: 1,
        form: Form::OursApart,
        points: crossings.iter().map(|x| Point { x: *x, y: 0.0, interval: None }).collect(),
    };
    let sent = timeline.data.iter().step_by(10);
    let sent = sent.map(|point| (point.at.as_secs_f64(), point.offset as f64 / f64::from(1 << 20)));
    let windows = timeline.windows.iter();
    let windows = windows.map(|one| (one.at.as_secs_f64(), f64::from(one.cwnd) / 1024.0));
    let what = format!("One transfer, seed {seed}, the new cell's beacon 1 s after each crossing.");
    let figure = |name: &str, title: &str, y, one| Figure {
        name: name.into(),
        title: title.into(),
        caption: what.clone(),
        x: axis("time, s"),
        y: axis(y),
        series: vec![one, marks.clone()],
    };
    vec![
        figure(
            "EXP-CI-F3",
            "Figure 3: TCP sequence number across cell boundaries",
            "sent for the first time, MB",
            line("sequence number", sent.collect()),
        ),
        figure(
            "EXP-CI-F4",
            "Figure 4: TCP congestion window across cell boundaries",
            "congestion window, KB",
            line("congestion window", windows.collect()),
        ),
    ]
}

/// A value stands until the next one.
fn steps(points: Vec<(f64, f64)>) -> Vec<Point> {
    let mut steps: Vec<Point> = Vec::new();
    for (x, y) in points {
        let last = steps.last().map_or(y, |last| last.y);
        steps.extend([last, y].map(|y| Point { x, y, interval: None }));
    }
    steps
}

/// Figures 5 to 8: the first crossing of a run, from just before it until data flows again.
fn single_handoffs(results: &Results) -> Vec<Figure> {
    let rows = [
        ("EXP-CI-F5", "Figure 5: a handoff, the new beacon at once", Motion::Rendezvous0, PLAIN),
        ("EXP-CI-F6", "Figure 6: a handoff, the new beacon after 1 s", Motion::Rendezvous1, PLAIN),
        ("EXP-CI-F7", "Figure 7: the same as 5, fast retransmission", Motion::Rendezvous0, FAST),
        ("EXP-CI-F8", "Figure 8: the same as 6, fast retransmission", Motion::Rendezvous1, FAST),
    ];
    let figures = rows.into_iter().filter_map(|(name, title, motion, who)| {
        single_handoff(results, (name, title), motion, who)
    });
    figures.collect()
}

fn single_handoff(
    results: &Results,
    (name, title): (&str, &str),
    motion: Motion,
    who: Who,
) -> Option<Figure> {
    const BEFORE: f64 = 0.1;
    const AFTER: f64 = 0.2;
    let (seed, timeline) = timeline(results, motion, who)?;
    let crossing = case(results, MOVING, motion, who).watched[0].crossings.first()?;
    let (begin, resumed) = (crossing.at.as_secs_f64() - BEFORE, pause(crossing)?);
    let end = begin + BEFORE + resumed + AFTER;
    let first = timeline.data.iter().find(|one| one.at.as_secs_f64() >= begin)?.offset;
    let points = |of: &[trace::timeline::Point]| -> Vec<Point> {
        let all = of.iter().map(|one| (one.at.as_secs_f64(), one.offset));
        let shown = all.filter(|(at, offset)| (begin..=end).contains(at) && *offset >= first);
        let kb = |offset: u64| (offset - first) as f64 / 1024.0;
        shown.map(|(at, offset)| Point { x: at - begin, y: kb(offset), interval: None }).collect()
    };
    let moment = |at: f64| Point { x: at + BEFORE, y: 0.0, interval: None };
    let stages = [Some(Duration::ZERO), crossing.route_changed, crossing.old_told];
    let stages = stages.into_iter().flatten().map(|at| moment(at.as_secs_f64()));
    let one = |name: &str, colour, form, points| Series { name: name.into(), colour, form, points };
    Some(Figure {
        name: name.into(),
        title: title.into(),
        caption: format!(
            "Seed {seed}, {BEFORE} s before its first crossing until {AFTER} s after data gets \
             through again. Marks at the bottom: the crossing, the mobile host's new route, the \
             old base station's."
        ),
        x: axis("time, s"),
        y: axis("sequence number, KB"),
        series: vec![
            one("sent", 0, Form::OursApart, points(&timeline.data)),
            one("sent again", 1, Form::OursApart, points(&timeline.end_to_end)),
            one("lost", 3, Form::PublishedApart, points(&timeline.lost)),
            one("ACKs", 2, Form::OursApart, points(&timeline.acks)),
            one("crossing, routes", 4, Form::OursApart, stages.collect()),
        ],
    })
}
