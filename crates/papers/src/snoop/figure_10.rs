//! Figure 10: when the events of a handoff happen, before, during and after a transfer.

use super::table_1::{EACH_10_S, SHORT, WITH_SNOOP, of, outcome};
use super::{NAME, experiment, table_1};
use crate::events::Events;
use crate::judged::{Judged, Point, criterion};
use crate::paper::Experiment;
use crate::runs::{Outcome, Results};
use report::figure::{self, Axis, Figure, Form, Series};
use sansio::Duration;

const BUSY: &str = super::table_1::STUDY;
const IDLE: &str = "figure-10-idle";
const FIGURE: &str = "figure 10";
const TEXT: &str = "section 7";

pub(super) const EXPERIMENTS: [Experiment; 5] = [
    experiment(
        ("EXP-SN-F10-a", FIGURE),
        "time chart of handoff events, idle and during a transfer",
        &[IDLE, BUSY],
        chart,
    ),
    experiment(("EXP-SN-F10-b", TEXT), "idle, a handoff takes 5 to 10 ms", &[IDLE], idle),
    experiment(("EXP-SN-F10-c", TEXT), "under load, 25 to 70 ms", &[BUSY], busy),
    experiment(
        ("EXP-SN-F10-d", TEXT),
        "the variation comes from queueing and the MAC",
        &[BUSY],
        variation,
    ),
    experiment(
        ("EXP-SN-F10-V", "figure 10, as plotted"),
        "gaps after the beacon",
        &[BUSY, SHORT],
        gaps,
    ),
];

pub(super) const CLAIM: Experiment = experiment(
    ("EXP-SN-S-b", "abstract"),
    "handoff latency over 10 times shorter than others",
    &[BUSY],
    against_others,
);

/// An event, its published span in milliseconds after the beacon, and when it is ours.
struct Event {
    name: &'static str,
    published: (f64, f64),
    at: fn(&Events) -> Option<Duration>,
}

/// In the figure's order.
const EVENTS: [Event; 4] = [
    Event { name: "enable new", published: (2.0, 10.0), at: |it| it.enabled },
    Event { name: "disable old", published: (5.0, 25.0), at: |it| it.disabled },
    Event { name: "first from new", published: (3.0, 20.0), at: |it| it.first_from_new },
    Event { name: "last from old", published: (0.0, 40.0), at: |it| it.last_from_old },
];

fn idle_runs(results: &Results) -> &Outcome {
    results.of(NAME, IDLE).first().expect("the study has one case")
}

/// Milliseconds of an event in all handoffs, ascending.
fn times(one: &Outcome, at: impl Fn(&Events) -> Option<Duration>) -> Vec<f64> {
    let handoffs = one.watched.iter().flat_map(|run| &run.handoffs);
    let mut times: Vec<f64> = handoffs.filter_map(at).map(|it| it.as_secs_f64() * 1e3).collect();
    times.sort_by(f64::total_cmp);
    times
}

/// The value below which this share lies; zero of none.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    if sorted.is_empty() { 0.0 } else { study::statistics::quantile(sorted, share) }
}

fn point_of(series: &str, at: &str, times: &[f64], published: Option<(f64, f64)>) -> Point {
    let ours = quantile(times, 0.5);
    let theirs = published.map(|(low, high)| (low + high) / 2.0);
    let (series, at) = (series.to_owned(), at.to_owned());
    Point { series, at, ours, ci95: None, theirs, span: published, on_air: None }
}

fn chart(results: &Results) -> Judged {
    let busy = of(results, WITH_SNOOP, EACH_10_S);
    let mut points = Vec::new();
    for (name, one) in [("idle", idle_runs(results)), ("transfer", busy)] {
        for event in &EVENTS {
            let times = times(one, event.at);
            if !times.is_empty() {
                points.push(point_of(name, event.name, &times, None));
            }
        }
    }
    let handoffs: usize = busy.watched.iter().map(|run| run.handoffs.len()).sum();
    let middle = quantile(&times(busy, |it| it.first_from_new), 0.5);
    let unit = "ms from beacon to first packet from the new base station, median";
    Judged::without_target(unit, (middle, None))
        .with_points(points)
        .because(format!("Medians of {handoffs} handoffs during transfers."))
}

fn latency(times: &[f64], (low, high): (f64, f64), published: (f64, &'static str)) -> Judged {
    let [p5, middle, p95] = [0.05, 0.5, 0.95].map(|share| quantile(times, share));
    let what = format!("5, 50 and 95 % of {}: {p5:.1}, {middle:.1}, {p95:.1} ms", times.len());
    let holds = criterion(low <= p5 && p95 <= high, what);
    Judged::number("ms, median", (middle, None), published, vec![holds])
}

fn idle(results: &Results) -> Judged {
    let times = times(idle_runs(results), |it| it.answered);
    latency(&times, (0.0, 15.0), (7.5, "<= 15 ms in 95 % of handoffs; 5 to 10 published")).because(
        "From the order to forward until the new base station's answer: nothing else comes from \
         it. No time is set for the daemons; what is measured is the radio's."
            .into(),
    )
}

fn busy(results: &Results) -> Judged {
    let times = times(of(results, WITH_SNOOP, EACH_10_S), |it| it.first_from_new);
    let tolerance = "15 to 100 ms in 90 % of handoffs; 25 to 70 published";
    latency(&times, (15.0, 100.0), (47.5, tolerance)).because(
        "From the order to forward until the first segment from the new base station. Between them \
         lie what is on the air, and the turns of the other base station, which sends on."
            .into(),
    )
}

/// Pearson's coefficient of correlation.
fn correlation(pairs: &[(f64, f64)]) -> f64 {
    let n = pairs.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| pairs.iter().map(of).sum::<f64>() / n;
    let (mean_x, mean_y) = (mean(|it| it.0), mean(|it| it.1));
    let sum = |of: &dyn Fn(f64, f64) -> f64| -> f64 {
        pairs.iter().map(|(x, y)| of(x - mean_x, y - mean_y)).sum()
    };
    let (xy, xx, yy) = (sum(&|x, y| x * y), sum(&|x, _| x * x), sum(&|_, y| y * y));
    xy / (xx * yy).sqrt()
}

fn variation(results: &Results) -> Judged {
    let pair = |it: &Events| Some((f64::from(it.queued), it.last_from_old?.as_secs_f64()));
    let pairs: Vec<(f64, f64)> = table_1::handoffs(results).filter_map(pair).collect();
    let ours = correlation(&pairs);
    let what = format!(
        "{ours:.2} between what waits at the old base station and the time of its last packet, \
         {} handoffs (> 0.5)",
        pairs.len()
    );
    let holds = vec![criterion(ours > 0.5, what)];
    Judged::shape("correlation", (ours, None), "above 0.5 with the length of the queue", holds)
        .because("Over all rows of Table 1: with one each 10 s the queue is always full.".into())
}

fn gaps(results: &Results) -> Judged {
    let busy = of(results, WITH_SNOOP, EACH_10_S);
    let (mut points, mut criteria, mut last) = (Vec::new(), Vec::new(), 0.0);
    for event in &EVENTS {
        let times = times(busy, event.at);
        let (low, high) = event.published;
        let middle = quantile(&times, 0.5);
        let what = format!("{}: median {middle:.1} ms (published {low} to {high})", event.name);
        criteria.push(criterion((low..=high).contains(&middle), what));
        points.push(point_of("transfer", event.name, &times, Some(event.published)));
        last = middle;
    }
    let short = outcome(results, SHORT, (WITH_SNOOP, "every=5s,overlap"));
    let short = short.map(|one| EVENTS.map(|event| (event.name, times(one, event.at))));
    for (name, times) in short.into_iter().flatten() {
        points.push(point_of("transfer, 8 KiB in flight", name, &times, None));
    }
    let unit = "ms until the last packet from the old base station, median";
    Judged::shape(unit, (last, None), "each median within the published span", criteria)
        .with_theirs(20.0)
        .with_points(points)
        .because(
            "Our daemons take no time, so the new base station is told sooner. Its first packet \
             waits for the beacon of the other cell, for answers and for the old one's turn. The \
             last packet from the old one waits behind all others there: with 64 KB in flight, at \
             8 ms a packet, up to 0.35 s, and twice that while both take turns. The published 40 \
             ms are 5 packets: little was in flight. The points have it with 8 KiB."
                .into(),
        )
}

fn against_others(results: &Results) -> Judged {
    /// I-TCP's handoff (EXP-SN-S-e), empty and with 32 KB, and that of Cáceres and Iftode.
    const OTHERS: [(&str, f64); 3] = [("I-TCP", 265.0), ("I-TCP, 32 KB", 1430.0), ("CI", 150.0)];
    let ours = quantile(&times(of(results, WITH_SNOOP, EACH_10_S), |it| it.first_from_new), 0.5);
    let points = OTHERS.map(|(name, theirs)| {
        let at = "published latency over ours".to_owned();
        let ratio = theirs / ours;
        let series = name.to_owned();
        Point { series, at, ours: ratio, ci95: None, theirs: None, span: None, on_air: None }
    });
    let [empty, full, _] = [0, 1, 2].map(|place| OTHERS[place].1 / ours);
    let criteria = vec![
        criterion(empty >= 5.0, format!("{empty:.1} times shorter than I-TCP's 265 ms (>= 5)")),
        criterion(full <= 100.0, format!("{full:.1} times shorter than its 1430 ms (<= 100)")),
    ];
    let tolerance = "5 times or more, against I-TCP's published 265 to 1430 ms";
    Judged::shape("times shorter than I-TCP's least", (empty, None), tolerance, criteria)
        .with_theirs(10.0)
        .with_points(points.into())
}

/// The chart: medians, with what 90 % lie between, beside the published spans.
pub(super) fn figure(results: &Results) -> Option<Figure> {
    results.of(NAME, IDLE).first()?;
    results.scenario(NAME, BUSY)?;
    let busy = of(results, WITH_SNOOP, EACH_10_S);
    let mut series = Vec::new();
    for (colour, (name, one)) in
        [("during a transfer, ours", busy), ("idle, ours", idle_runs(results))]
            .into_iter()
            .enumerate()
    {
        let mut points = Vec::new();
        for (place, event) in EVENTS.iter().enumerate() {
            let times = times(one, event.at);
            if !times.is_empty() {
                let [low, y, high] = [0.05, 0.5, 0.95].map(|share| quantile(&times, share));
                points.push(figure::Point { x: place as f64, y, interval: Some((low, high)) });
            }
        }
        series.push(Series { name: name.into(), colour, form: Form::OursApart, points });
    }
    let published = EVENTS.iter().enumerate().map(|(place, event)| {
        let (low, high) = event.published;
        figure::Point { x: place as f64, y: (low + high) / 2.0, interval: Some((low, high)) }
    });
    series.push(Series {
        name: "published".into(),
        colour: 0,
        form: Form::PublishedApart,
        points: published.collect(),
    });
    Some(Figure {
        name: "EXP-SN-F10".into(),
        title: "Figure 10: events of a handoff, after the beacon".into(),
        caption:
            "Filled: our median, and what 90 % of the handoffs lie between. Hollow: the middle \
                  of the published span."
                .into(),
        x: Axis {
            label: "event".into(),
            places: EVENTS.iter().map(|event| event.name.to_owned()).collect(),
        },
        y: Axis { label: "time after the beacon, ms".into(), places: Vec::new() },
        series,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_correlation_is_one_on_a_line_and_none_across() {
        let line: Vec<(f64, f64)> =
            (0..5).map(|x| (f64::from(x), 3.0 * f64::from(x) - 1.0)).collect();
        assert!((correlation(&line) - 1.0).abs() < 1e-12);
        let square = [(0.0, 0.0), (0.0, 1.0), (1.0, 0.0), (1.0, 1.0)];
        assert!(correlation(&square).abs() < 1e-12);
    }
}
