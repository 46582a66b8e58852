//! The same group's later comparison of mechanisms (1996-97), local network: throughput of each at
//! one bit error in 64 KBytes, with socket buffers of 8 and 32 KB (EXP-SN-W).

use super::{NAME, experiment, not_yet, point, set_mac_efficiency};
use crate::judged::{Criterion, Judged, Point, criterion};
use crate::paper::Experiment;
use crate::runs::{Outcome, Results};
use node::Plan;
use node::scenario::Sender;
use report::figure::{self, Axis, Figure, Form, Series};

const SMALL: &str = "mechanisms-8-kb";
const LARGE: &str = "mechanisms-32-kb";
const WIDE: &str = "mechanisms-wide-area";
const BURSTS: &str = "mechanisms-bursts";

pub(super) const EXPERIMENTS: [Experiment; 3] = [
    experiment(
        ("EXP-SN-W", "table, local network"),
        "order of the mechanisms, and each one's share of the best",
        &[SMALL, LARGE],
        table,
    ),
    experiment(
        ("EXP-SN-W-wide", "table, wide area"),
        "the same in a wide area (withheld)",
        &[WIDE],
        |results| withheld(results, WIDE, "Mbit/s, Snoop with a Reno sender"),
    ),
    experiment(
        ("EXP-SN-W-bursts", "table, burst losses"),
        "Snoop under burst losses (withheld)",
        &[BURSTS],
        |results| withheld(results, BURSTS, "Mbit/s, Snoop with a Reno sender, bursts of 2"),
    ),
];

pub(super) const NOT_YET: [Experiment; 3] = [
    not_yet(
        ("EXP-SN-W-link", "table, local network"),
        "link retransmission: LL 1.20 and 1.20, with SMART 1.29 and 1.29, with SMART and TCP-aware \
         1.37 and 1.39 Mbit/s (8 and 32 KB)",
        "a base station that repeats frames by itself, and SMART's acknowledgments; the radio's \
         own frame ARQ (link::hop::frame_arq) stops and waits, theirs did not",
    ),
    not_yet(
        ("EXP-SN-W-split", "table, local network"),
        "split connection .54 and .60, with SMART 1.30 and 1.30 Mbit/s",
        "a TCP endpoint at the base station",
    ),
    not_yet(
        ("EXP-SN-W-ELN", "table, local network"),
        "end to end: SMART 1.12 and 1.25, explicit loss notification .69 and .93, the same \
         retransmitting .86 and .95 Mbit/s",
        "senders with SMART and with explicit loss notification",
    ),
];

/// Of that comparison: 1.5 Mbit/s of payload over the 2 Mbit/s radio, in packets of 1400 bytes.
pub(super) fn peak(plan: &mut Plan) {
    const PAYLOAD_SHARE_OF_RATE: f64 = 0.75;
    const PACKET_PER_PAYLOAD: f64 = 1400.0 / 1360.0;
    set_mac_efficiency(plan, PAYLOAD_SHARE_OF_RATE * PACKET_PER_PAYLOAD);
}

/// A row of the table that is repeated: its name, scheme and sender, and Mbit/s with 8 and 32 KB.
struct Mechanism {
    name: &'static str,
    scheme: &'static str,
    sender: Sender,
    published: [f64; 2],
}

/// From the best to the worst with 32 KB.
const TABLE: [Mechanism; 4] = [
    Mechanism { name: "snoop", scheme: "snoop", sender: Sender::Reno, published: [1.29, 1.36] },
    Mechanism { name: "SACK", scheme: "plain", sender: Sender::Sack, published: [0.68, 1.12] },
    Mechanism {
        name: "NewReno",
        scheme: "plain",
        sender: Sender::NewReno,
        published: [0.66, 0.89],
    },
    Mechanism { name: "Reno", scheme: "plain", sender: Sender::Reno, published: [0.55, 0.70] },
];

const BUFFERS: [(&str, &str); 2] = [("8 KB", SMALL), ("32 KB", LARGE)];

impl Mechanism {
    fn outcome<'a>(&self, results: &'a Results, study: &str) -> Option<&'a Outcome> {
        let is = |one: &&Outcome| one.is(self.scheme) && one.sends(self.sender);
        results.of(NAME, study).iter().find(is)
    }
}

fn table(results: &Results) -> Judged {
    const SHARE: f64 = 0.15;
    let mut points = Vec::new();
    let mut criteria: Vec<Criterion> = Vec::new();
    let mut farthest = 0.0_f64;
    for (column, (buffer, study)) in BUFFERS.into_iter().enumerate() {
        let rows: Vec<(&Mechanism, &Outcome)> = TABLE
            .iter()
            .map(|row| (row, row.outcome(results, study).expect("the study has each mechanism")))
            .collect();
        let best = rows.iter().map(|(_, outcome)| outcome.mbps().0).fold(0.0, f64::max);
        let their_best = TABLE.iter().map(|row| row.published[column]).fold(0.0, f64::max);
        for two in rows.windows(2) {
            let [a, b] = [two[0].1.mbps().0, two[1].1.mbps().0];
            let (first, second) = (two[0].0.name, two[1].0.name);
            let what = format!("{buffer}: {first} {a:.3} above {second} {b:.3}");
            criteria.push(criterion(a > b, what));
        }
        for (row, outcome) in rows {
            let theirs = row.published[column];
            let (share, their_share) = (outcome.mbps().0 / best, theirs / their_best);
            let apart = share - their_share;
            farthest = if apart.abs() > farthest.abs() { apart } else { farthest };
            let what = format!(
                "{buffer}: {} has {share:.3} of the best, published {their_share:.3}",
                row.name
            );
            criteria.push(criterion(apart.abs() <= SHARE, what));
            let theirs = Some(theirs);
            points.push(Point { theirs, ..point(row.name, buffer.to_owned(), outcome) });
        }
    }
    Judged::shape(
        "of the best, the farthest from the published share",
        (farthest, None),
        "same order; each share of the best within 0.15",
        criteria,
    )
    .with_points(points)
    .because(
        "Four of the twelve rows: EXP-SN-W-link, -split and -ELN say what the others need. The \
         best of these four is the measure on both sides. SACK is RFC 6675's sender. \
         Absolute values are not judged; Snoop's are higher for the reason of EXP-SN-F7-V."
            .into(),
    )
}

fn withheld(results: &Results, study: &str, unit: &'static str) -> Judged {
    let outcomes = results.of(NAME, study);
    let name = |one: &Outcome| format!("{}, {}", one.case.scheme, one.case.sender.name());
    let place = |one: &Outcome| match &one.case.loss {
        node::scenario::Loss::None => one.case.ber.to_string(),
        loss => loss.to_string(),
    };
    let points = outcomes.iter().map(|one| point(&name(one), place(one), one));
    let points: Vec<Point> = points.collect();
    let first = outcomes.iter().find(|one| one.is("snoop"));
    let value = first.map_or((0.0, None), Outcome::mbps);
    Judged::without_target(unit, value).with_points(points)
}

/// The table as a figure.
pub(super) fn figure(results: &Results) -> Option<Figure> {
    let mut series = Vec::new();
    for (column, (buffer, study)) in BUFFERS.into_iter().enumerate() {
        let mut ours = Vec::new();
        let mut published = Vec::new();
        for (place, row) in TABLE.iter().enumerate() {
            let (y, ci95) = row.outcome(results, study)?.mbps();
            let x = place as f64;
            ours.push(figure::Point { x, y, interval: ci95.map(|ci| (y - ci, y + ci)) });
            published.push(figure::Point { x, y: row.published[column], interval: None });
        }
        let one = |name, form, points| Series { name, colour: column, form, points };
        series.push(one(format!("{buffer}, ours"), Form::OursApart, ours));
        series.push(one(format!("{buffer}, published"), Form::PublishedApart, published));
    }
    Some(Figure {
        name: "EXP-SN-W".into(),
        title: "Comparison of mechanisms (1996-97), one bit error in 64 KBytes".into(),
        caption: "Filled: our mean with its 95 % interval. Hollow: the published value. Socket \
                  buffers of 8 and 32 KB."
            .into(),
        x: Axis {
            label: "mechanism".into(),
            places: TABLE.iter().map(|row| row.name.to_owned()).collect(),
        },
        y: Axis { label: "throughput, Mbit/s".into(), places: Vec::new() },
        series,
    })
}
