//! Figure 8: sequence numbers at the mobile host against time, at one bit error in 256 Kbit.

use super::{NAME, at, experiment, sweep};
use crate::judged::{Judged, Point, criterion};
use crate::paper::Experiment;
use crate::runs::{Outcome, Results};
use node::scenario::BitErrors;
use report::figure::{self, Axis, Figure, Form, Series};
use trace::timeline::Timeline;

const STUDY: &str = super::figure_7::STUDY;

pub(super) const EXPERIMENTS: [Experiment; 3] = [
    experiment(
        ("EXP-SN-F8-a", "figure 8"),
        "throughput of that run with Snoop (withheld)",
        &[STUDY],
        |results| throughput(results, "snoop"),
    ),
    experiment(
        ("EXP-SN-F8-b", "figure 8"),
        "throughput of that run without Snoop (withheld)",
        &[STUDY],
        |results| throughput(results, "plain"),
    ),
    experiment(
        ("EXP-SN-F8-c", "figure 8"),
        "TCP's curve has flat regions, Snoop's is steady",
        &[STUDY],
        flat_regions,
    ),
];

/// 3.8e-6 by the caption, 3.9e-6 by the text (INC-5).
const RATE: BitErrors = BitErrors::OneIn(256 << 10);

fn of<'a>(results: &'a Results, scheme: &str) -> Option<&'a Outcome> {
    at(sweep(results), scheme, RATE)
}

fn throughput(results: &Results, scheme: &str) -> Judged {
    let outcome = of(results, scheme).expect("the study has this rate");
    Judged::without_target("Mbit/s", outcome.mbps()).with_points(vec![super::point(
        scheme,
        "1/256Kbit".into(),
        outcome,
    )])
}

fn flat_regions(results: &Results) -> Judged {
    const MANY: f64 = 10.0;
    let gaps = ["plain", "snoop"].map(|scheme| {
        let outcome = of(results, scheme).expect("the study has this rate");
        outcome.mean_watched(|one| one.idle_gaps)
    });
    let [(plain, ci_plain), (snoop, ci_snoop)] = gaps;
    let criteria = vec![
        criterion(plain >= MANY, format!("plain TCP is idle {plain:.1} times a run (many: >= 10)")),
        criterion(snoop < 0.5, format!("Snoop is idle {snoop:.2} times a run (about 0: < 0.5)")),
    ];
    let point = |series: &str, ours, ci95| Point {
        series: series.into(),
        at: "1/256Kbit".into(),
        ours,
        ci95,
        theirs: None,
        span: None,
        on_air: None,
    };
    Judged::shape(
        "idle gaps of more than 0.5 s a run, plain TCP",
        (plain, ci_plain),
        "TCP many, Snoop about none",
        criteria,
    )
    .with_points(vec![point("plain", plain, ci_plain), point("snoop", snoop, ci_snoop)])
}

/// The first seed's two runs, one point for each of so many parts of the transfer.
pub(super) fn figure(results: &Results) -> Option<Figure> {
    const PARTS: usize = 1000;
    let seed = results.scenario(NAME, STUDY)?.seed;
    let mut series = Vec::new();
    for (colour, (scheme, name)) in
        [("snoop", "snoop, ours"), ("plain", "regular TCP, ours")].into_iter().enumerate()
    {
        let plan = &of(results, scheme)?.plan;
        let mut timeline = Timeline::new(sim::run::transfers(plan).first().copied()?);
        sim::run(plan, seed, &mut timeline);
        let delivered = &timeline.delivered;
        let step = delivered.len().div_ceil(PARTS).max(1);
        let kept = delivered.iter().step_by(step).chain(delivered.last());
        let points = kept.map(|point| figure::Point {
            x: point.at.as_secs_f64(),
            y: point.offset as f64 / 1e6,
            interval: None,
        });
        series.push(Series {
            name: name.into(),
            colour,
            form: Form::Line,
            points: points.collect(),
        });
    }
    Some(Figure {
        name: "EXP-SN-F8".into(),
        title: "Figure 8: sequence numbers at the mobile host, one bit error in 256 Kbit".into(),
        caption: format!(
            "One transfer of 10 MB each, seed {seed}. The published figure has no values in the \
             text; its axes end at 1.2e7 and 350 s."
        ),
        x: Axis { label: "time, s".into(), places: Vec::new() },
        y: Axis { label: "received in order, MB".into(), places: Vec::new() },
        series,
    })
}
