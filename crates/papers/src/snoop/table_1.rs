//! Table 1: throughput with a handoff each t seconds; Figure 9: sequence numbers, one each 10 s;
//! and what section 7 claims of handoffs in general.

use super::{NAME, experiment, point, set_mac_efficiency};
use crate::events::Events;
use crate::judged::{Criterion, Judged, Point, criterion};
use crate::paper::Experiment;
use crate::runs::{Outcome, Results};
use node::Plan;
use report::figure::{self, Axis, Figure, Form, Series};
use trace::timeline::Timeline;

pub(super) const STUDY: &str = "table-1";
pub(super) const SHORT: &str = "table-1-short-queue";
const TABLE: &str = "table 1";

/// The routing alone: the paper isolates the impact of handoff on TCP.
const ROUTING: &str = "multicast";
/// With Snoop at each base station.
pub(super) const WITH_SNOOP: &str = "snoop+multicast";
/// No handoff before the end.
pub(super) const NEVER: &str = "every=1000s,first=900s,overlap";

/// A row: the handoffs, the time between them as printed, Mbit/s and standard deviation.
struct Row {
    handoff: &'static str,
    each: &'static str,
    published: (f64, f64),
}

const fn row(handoff: &'static str, each: &'static str, published: (f64, f64)) -> Row {
    Row { handoff, each, published }
}

const ROWS: [Row; 7] = [
    row("every=1s,overlap", "1 s", (1.42, 0.011)),
    row("every=2s,overlap", "2 s", (1.43, 0.016)),
    row("every=3s,overlap", "3 s", (1.43, 0.012)),
    row("every=5s,overlap", "5 s", (1.43, 0.014)),
    row("every=8s,overlap", "8 s", (1.44, 0.012)),
    row(EACH_10_S, "10 s", (1.43, 0.012)),
    row(NEVER, "never", (1.45, 0.011)),
];
pub(super) const EACH_10_S: &str = "every=10s,overlap";

pub(super) const EXPERIMENTS: [Experiment; 9] = [
    experiment(("EXP-SN-T1-a", TABLE), "throughput with a handoff each 1 s", &[STUDY], |it| {
        judge_row(it, &ROWS[0])
    }),
    experiment(("EXP-SN-T1-b", TABLE), "with one each 2 s", &[STUDY], |it| judge_row(it, &ROWS[1])),
    experiment(("EXP-SN-T1-c", TABLE), "with one each 3 s", &[STUDY], |it| judge_row(it, &ROWS[2])),
    experiment(("EXP-SN-T1-d", TABLE), "with one each 5 s", &[STUDY], |it| judge_row(it, &ROWS[3])),
    experiment(("EXP-SN-T1-e", TABLE), "with one each 8 s", &[STUDY], |it| judge_row(it, &ROWS[4])),
    experiment(("EXP-SN-T1-f", TABLE), "with one each 10 s", &[STUDY], |it| {
        judge_row(it, &ROWS[5])
    }),
    experiment(("EXP-SN-T1-g", TABLE), "with beacons and no handoff", &[STUDY], without_handoffs),
    experiment(
        ("EXP-SN-T1-h", TABLE),
        "even frequent handoffs have very little impact",
        &[STUDY, SHORT],
        frequent_handoffs,
    ),
    experiment(
        ("EXP-SN-F9-a", "figure 9"),
        "a handoff each 10 s interrupts nothing",
        &[STUDY],
        interruptions,
    ),
];

pub(super) const CLAIMS: [Experiment; 2] = [
    experiment(
        ("EXP-SN-S-a", "section 7"),
        "handoff costs Snoop less than 1 %",
        &[STUDY, SHORT],
        cost_to_snoop,
    ),
    experiment(("EXP-SN-S-c", "abstract"), "negligible data loss in handoff", &[STUDY], losses),
];

/// The peak with beacons is 1.45 Mbit/s of payload over the 2 Mbit/s radio. One small packet per
/// second takes no tenth of the air (INC-11), so the cost lies in the share of the air that data
/// gets.
pub(super) fn with_beacons(plan: &mut Plan) {
    const PAYLOAD_SHARE_OF_RATE: f64 = 0.725;
    const PACKET_PER_PAYLOAD: f64 = 1500.0 / 1460.0;
    set_mac_efficiency(plan, PAYLOAD_SHARE_OF_RATE * PACKET_PER_PAYLOAD);
}

pub(super) fn of<'a>(results: &'a Results, scheme: &str, handoff: &str) -> &'a Outcome {
    outcome(results, STUDY, (scheme, handoff)).expect("the study has this case")
}

pub(super) fn outcome<'a>(
    results: &'a Results,
    study: &str,
    (scheme, handoff): (&str, &str),
) -> Option<&'a Outcome> {
    let is = |one: &&Outcome| one.is(scheme) && one.case.handoff.to_string() == handoff;
    results.of(NAME, study).iter().find(is)
}

/// The handoffs of all rows, the routing alone.
pub(super) fn handoffs(results: &Results) -> impl Iterator<Item = &Events> {
    let outcomes = ROWS[..6].iter().map(|row| of(results, ROUTING, row.handoff));
    outcomes.flat_map(|one| &one.watched).flat_map(|run| &run.handoffs)
}

/// How far below the throughput without handoffs, percent.
fn loss_percent(one: &Outcome, never: &Outcome) -> f64 {
    (1.0 - one.mbps().0 / never.mbps().0) * 100.0
}

/// Segments at the old base station when a handoff begins, on average.
fn queued(one: &Outcome) -> f64 {
    let handoffs = || one.watched.iter().flat_map(|run| &run.handoffs);
    handoffs().map(|it| f64::from(it.queued)).sum::<f64>() / handoffs().count().max(1) as f64
}

fn points_of(results: &Results, row: &Row) -> Vec<Point> {
    let (published, deviation) = row.published;
    let span = Some((published - deviation, published + deviation));
    let of_scheme = |scheme: &&str| {
        let theirs = (*scheme == ROUTING).then_some(published);
        let span = span.filter(|_| theirs.is_some());
        let ours = point(scheme, row.each.to_owned(), of(results, scheme, row.handoff));
        Point { theirs, span, ..ours }
    };
    [ROUTING, WITH_SNOOP].iter().map(of_scheme).collect()
}

/// Within 4 % of the row without handoffs.
fn little(one: &Outcome, never: &Outcome, what: &str) -> Criterion {
    let below = loss_percent(one, never);
    criterion(below <= 4.0, format!("{what}: {below:.2} % below no handoffs (<= 4 %)"))
}

fn judge_row(results: &Results, row: &Row) -> Judged {
    let [one, never] = [row.handoff, NEVER].map(|handoff| of(results, ROUTING, handoff));
    let holds = little(one, never, row.each);
    let judged = Judged::number(
        "Mbit/s, routing alone",
        one.mbps(),
        (row.published.0, "<= 4 % below ours without handoffs"),
        vec![holds],
    );
    let waiting = queued(one);
    judged.with_points(points_of(results, row)).because(format!(
        "At the beacon {waiting:.1} segments wait at the old base station on average. Those of the \
         twelve newest that wait there are sent by both: each costs 8 ms of the one channel."
    ))
}

fn without_handoffs(results: &Results) -> Judged {
    let row = &ROWS[6];
    let (ours, ci95) = of(results, ROUTING, NEVER).mbps();
    let off = (ours / row.published.0 - 1.0) * 100.0;
    let holds = criterion(off.abs() <= 3.0, format!("{off:+.2} % from 1.45 Mbit/s (3 %)"));
    let theirs = (row.published.0, "calibrated to it, +-3 %");
    Judged::number("Mbit/s", (ours, ci95), theirs, vec![holds]).with_points(points_of(results, row))
}

fn frequent_handoffs(results: &Results) -> Judged {
    let each_1_s = ROWS[0].handoff;
    let [often, never] = [each_1_s, NEVER].map(|handoff| of(results, ROUTING, handoff));
    let short = |handoff| outcome(results, SHORT, (ROUTING, handoff)).expect("the study has it");
    let [short_often, short_never] = [each_1_s, NEVER].map(short);
    let criteria = vec![little(often, never, "64 KB in flight at most, each 1 s")];
    let mut points = Vec::new();
    for row in &ROWS {
        for scheme in [ROUTING, WITH_SNOOP] {
            let one = outcome(results, SHORT, (scheme, row.handoff));
            let point = |one| point(&format!("{scheme}, 8 KiB"), row.each.to_owned(), one);
            points.extend(one.map(point));
        }
    }
    Judged::shape(
        "% below no handoffs with one each 1 s",
        (loss_percent(often, never), None),
        "<= 4 % with one each 1 s",
        criteria,
    )
    .with_theirs(2.1)
    .with_points(points)
    .because(format!(
        "What waits at the old base station is sent by both. With 64 KB in flight {:.1} segments \
         do, and all twelve kept are sent again: 0.1 s of air. With 8 KiB {:.1} do, and the loss \
         is {:.2} %. The published 2.1 % are the air of 3 packets, and in 40 ms, the longest \
         that the old base station's last packet took (EXP-SN-F10-V), 5 are sent: theirs had \
         a short queue.",
        queued(often),
        queued(short_often),
        loss_percent(short_often, short_never),
    ))
}

fn interruptions(results: &Results) -> Judged {
    const LIMIT_MS: f64 = 150.0;
    let mut criteria = Vec::new();
    let mut longest = 0.0_f64;
    for scheme in [ROUTING, WITH_SNOOP] {
        let stalls = of(results, scheme, EACH_10_S).row.handoffs.as_ref();
        let most = stalls.and_then(|it| it.receiver_stall_s).map_or(f64::NAN, |it| it.max * 1e3);
        longest = longest.max(most);
        let what = format!("{scheme}: {most:.0} ms without a byte at the receiver (< 150 ms)");
        criteria.push(criterion(most < LIMIT_MS, what));
    }
    let tolerance = "no time above 150 ms without a delivery within 5 s after a crossing";
    Judged::shape("ms, the longest interruption", (longest, None), tolerance, criteria)
        .with_points(vec![point(ROUTING, "10 s".into(), of(results, ROUTING, EACH_10_S))])
        .because("The published throughput of that run is about 1.4 Mbit/s.".into())
}

fn cost_to_snoop(results: &Results) -> Judged {
    let never = of(results, WITH_SNOOP, NEVER);
    let mut criteria = Vec::new();
    let mut worst = 0.0_f64;
    for row in &ROWS[..6] {
        let one = of(results, WITH_SNOOP, row.handoff);
        worst = worst.max(loss_percent(one, never));
        criteria.push(little(one, never, row.each));
    }
    let one = of(results, WITH_SNOOP, ROWS[0].handoff);
    let handoffs: usize = one.watched.iter().map(|run| run.handoffs.len()).sum();
    let local = one.row.retransmissions_local * one.row.seeds as f64 / handoffs.max(1) as f64;
    let short = |handoff| outcome(results, SHORT, (WITH_SNOOP, handoff)).expect("the study has it");
    let short = loss_percent(short(ROWS[0].handoff), short(NEVER));
    Judged::shape(
        "% below no handoffs, the most",
        (worst, None),
        "<= 4 % at each time between handoffs (Table 1 has up to 2.1 %; INC-10)",
        criteria,
    )
    .with_theirs(1.0)
    .because(format!(
        "To the letter Snoop answers each duplicate ACK that it does not expect with the lowest \
         cached segment. What both base stations send, and what the new one's kept packets \
         overtake in the old one's queue, makes duplicate ACKs though nothing is lost: {local:.1} \
         local retransmissions for each handoff where there is one each second. With 8 KiB in \
         flight instead of 64 KB, and so a short queue, one each second costs {short:.2} %. \
         snoop-modern waits until the old queue is empty and repeats nothing."
    ))
}

fn losses(results: &Results) -> Judged {
    let mut criteria = Vec::new();
    let mut worst = 0.0_f64;
    for row in &ROWS[..6] {
        let one = of(results, ROUTING, row.handoff);
        let lost = one.row.samples.iter().filter_map(|run| run.measures.handoffs.as_ref());
        let lost: u64 = lost.map(|handoffs| handoffs.lost).sum();
        let sent: u64 = one.watched.iter().map(|run| run.data.sent).sum();
        let percent = lost as f64 / sent.max(1) as f64 * 100.0;
        worst = worst.max(percent);
        let what = format!("{}: {lost} of {sent} packets (< 0.5 %)", row.each);
        criteria.push(criterion(percent < 0.5, what));
    }
    let unit = "% of packets lost in handoffs, the most";
    Judged::shape(unit, (worst, None), "< 0.5 % of packets", criteria)
}

/// Table 1 as a figure.
pub(super) fn figure(results: &Results) -> Option<Figure> {
    results.scenario(NAME, STUDY)?;
    let mut series = Vec::new();
    for (colour, (scheme, name)) in
        [(ROUTING, "routing alone"), (WITH_SNOOP, "with Snoop")].into_iter().enumerate()
    {
        for (study, of_study) in [(STUDY, ""), (SHORT, ", 8 KiB in flight")] {
            let mut points = Vec::new();
            for (place, row) in ROWS.iter().enumerate() {
                let Some(one) = outcome(results, study, (scheme, row.handoff)) else { continue };
                let (y, ci95) = one.mbps();
                let interval = ci95.map(|ci| (y - ci, y + ci));
                points.push(figure::Point { x: place as f64, y, interval });
            }
            let colour = if study == SHORT { colour + 2 } else { colour };
            let name = format!("{name}{of_study}, ours");
            series.push(Series { name, colour, form: Form::Ours, points });
        }
    }
    let published = ROWS.iter().enumerate().map(|(place, row)| {
        let (y, deviation) = row.published;
        figure::Point { x: place as f64, y, interval: Some((y - deviation, y + deviation)) }
    });
    series.push(Series {
        name: "published".into(),
        colour: 0,
        form: Form::Published,
        points: published.collect(),
    });
    Some(Figure {
        name: "EXP-SN-T1".into(),
        title: "Table 1: throughput against the time between handoffs".into(),
        caption: "Filled: our mean with its 95 % interval. Hollow: the published mean, and its \
                  standard deviation."
            .into(),
        x: Axis {
            label: "time between handoffs".into(),
            places: ROWS.iter().map(|row| row.each.to_owned()).collect(),
        },
        y: Axis { label: "throughput, Mbit/s".into(), places: Vec::new() },
        series,
    })
}

/// The first seed's two runs, one point for each of so many parts of the transfer.
pub(super) fn sequence_figure(results: &Results) -> Option<Figure> {
    const PARTS: usize = 1000;
    let seed = results.scenario(NAME, STUDY)?.seed;
    let mut series = Vec::new();
    for (colour, scheme) in [ROUTING, WITH_SNOOP].into_iter().enumerate() {
        let plan = &outcome(results, STUDY, (scheme, EACH_10_S))?.plan;
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
        let name = format!("{scheme}, ours");
        series.push(Series { name, colour, form: Form::Line, points: points.collect() });
    }
    Some(Figure {
        name: "EXP-SN-F9".into(),
        title: "Figure 9: sequence numbers at the mobile host, a handoff each 10 s".into(),
        caption: format!("One transfer of 10 MB each, seed {seed}; no bit errors."),
        x: Axis { label: "time, s".into(), places: Vec::new() },
        y: Axis { label: "received in order, MB".into(), places: Vec::new() },
        series,
    })
}
