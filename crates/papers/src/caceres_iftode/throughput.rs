//! Figures 2 and 10: throughput of 4 MB without motion, across overlapping cells, and across cells
//! that do not overlap, with and without fast retransmission; and the same over an Ethernet.

use super::{
    FAST, FIXED_PLAIN, MOVING, Motion, NAME, PLAIN, Who, case, crossings, experiment, mean, paired,
    per_run, point, text,
};
use crate::judged::{Criterion, Judged, Point, criterion};
use crate::paper::Experiment;
use crate::runs::{Outcome, Results};

const FIGURE: &str = "figure 2, section III-A";

pub(super) const FIGURE_2: [Experiment; 7] = [
    experiment(("EXP-CI-F2-a", FIGURE), "throughput without motion", &[MOVING], no_motion),
    experiment(("EXP-CI-F2-b", FIGURE), "overlapping cells cost 6 %", &[MOVING], |results| {
        cost(results, Motion::Overlap, 6.0, (0.0, 10.0), "0 to 10 %; 6 is CPU cost")
    }),
    experiment(
        ("EXP-CI-F2-c", FIGURE),
        "without overlap, the new beacon at once: 12 % lost",
        &[MOVING],
        |results| cost(results, Motion::Rendezvous0, 12.0, (8.0, 16.0), "8 to 16 %"),
    ),
    experiment(
        ("EXP-CI-F2-d", FIGURE),
        "without overlap, the new beacon after 1 s: 31 % lost",
        &[MOVING],
        |results| cost(results, Motion::Rendezvous1, 31.0, (25.0, 37.0), "25 to 37 %"),
    ),
    experiment(
        ("EXP-CI-F2-e", FIGURE),
        "no motion, overlap, 0 s, 1 s: in this order",
        &[MOVING],
        order,
    ),
    experiment(
        ("EXP-CI-F2-f", FIGURE),
        "three handoffs in roughly 24 s, and in roughly 29 s",
        &[MOVING],
        durations,
    ),
    experiment(
        ("EXP-CI-F2-g", "section III-C"),
        "handoffs between overlapping cells lose no packet",
        &[MOVING],
        no_drops,
    ),
];

pub(super) const FIGURE_10: [Experiment; 4] = [
    experiment(
        ("EXP-CI-F10-a", "figure 10"),
        "fast retransmission, beacon at once: 1400 to 1490 kbit/s",
        &[MOVING],
        |results| gain(results, Motion::Rendezvous0, (1.490 / 1.400 - 1.0) * 100.0, (3.0, 10.0)),
    ),
    experiment(
        ("EXP-CI-F10-b", "figure 10"),
        "beacon after 1 s: 1100 to 1380 kbit/s",
        &[MOVING],
        |results| gain(results, Motion::Rendezvous1, (1.380 / 1.100 - 1.0) * 100.0, (18.0, 32.0)),
    ),
    experiment(
        ("EXP-CI-F10-c", "figure 10"),
        "7 % and 14 % of the throughput without motion stay lost",
        &[MOVING],
        residual,
    ),
    experiment(
        ("EXP-CI-F10-d", "figures 2 and 10"),
        "with fast retransmission, beacon at once, about as with overlap",
        &[MOVING],
        near_overlap,
    ),
];

const ETHERNET_STUDY: &str = "ethernet";

pub(super) const ETHERNET: Experiment = experiment(
    ("EXP-CI-S-b", "section V"),
    "no fundamental difference with an Ethernet in place of the radio",
    &[MOVING, ETHERNET_STUDY],
    ethernet,
);

/// Windows that the paper does not give, and the bars that they make.
const WINDOWS: [(&str, &str); 4] = [
    ("8 KB", "window-8-kb"),
    ("16 KB", MOVING),
    ("32 KB", "window-32-kb"),
    ("64 KB", "window-64-kb"),
];

pub(super) const SENSITIVITY: Experiment = experiment(
    ("EXP-CI-window", "not in the paper"),
    "what the window that it does not give decides (CI-TCP-7)",
    &[MOVING, "window-8-kb", "window-32-kb", "window-64-kb"],
    windows,
);

/// As published, Mbit/s; the bar of overlapping cells from the 6 % of the text.
pub(super) const PUBLISHED: [f64; 4] = [1.600, 1.504, 1.400, 1.100];
/// With fast retransmission: Figure 10.
pub(super) const PUBLISHED_FAST: [f64; 2] = [1.490, 1.380];

fn bar(outcome: &Outcome, series: &str, motion: Motion, theirs: impl Into<Option<f64>>) -> Point {
    let on_air = Some(outcome.on_air_mbps());
    Point { on_air, ..point(series, motion.name(), outcome.mbps(), theirs) }
}

fn no_motion(results: &Results) -> Judged {
    let outcome = case(results, MOVING, Motion::None, PLAIN);
    let theirs = PUBLISHED[0];
    let off = (outcome.mbps().0 / theirs - 1.0) * 100.0;
    let holds = criterion(off.abs() <= 3.0, format!("{off:+.2} % from 1.6 Mbit/s (3 %)"));
    let points = Motion::ALL.into_iter().zip(PUBLISHED).flat_map(|(motion, theirs)| {
        let of = |who: Who| case(results, MOVING, motion, who);
        [
            bar(of(PLAIN), "mobile host sends", motion, theirs),
            bar(of(FIXED_PLAIN), "fixed host sends", motion, None),
        ]
    });
    Judged::number("Mbit/s", outcome.mbps(), (theirs, "calibrated to it, +-3 %"), vec![holds])
        .with_points(points.collect())
        .because(
            "The preset is calibrated to 1.6 Mbit/s with ACKs that cost no air. Here all share one \
             medium, and the ACKs' share of it is what is missing."
                .into(),
        )
}

/// Share of the throughput without motion that is lost, percent.
fn lost(results: &Results, motion: Motion, who: Who) -> (f64, Option<f64>) {
    let (still, moving) =
        (case(results, MOVING, Motion::None, PLAIN), case(results, MOVING, motion, who));
    paired(still, moving, |still, moving| (1.0 - moving / still) * 100.0)
}

fn cost(
    results: &Results,
    motion: Motion,
    theirs: f64,
    (least, most): (f64, f64),
    tolerance: &'static str,
) -> Judged {
    let ours = lost(results, motion, PLAIN);
    let outcome = case(results, MOVING, motion, PLAIN);
    let what = format!("{} % of the throughput lost ({least} to {most})", text(ours));
    let holds = criterion((least..=most).contains(&ours.0), what);
    let place = Motion::ALL.iter().position(|one| *one == motion).unwrap_or(0);
    let count = per_run_crossings(outcome);
    let other = lost(results, motion, FIXED_PLAIN);
    let reason = match motion {
        Motion::Overlap => {
            "Theirs is the cost of encapsulating and forwarding in daemons on a 50 MHz processor, \
             which nothing here has; ours is the air that messages of handoffs take."
                .to_owned()
        }
        _ => {
            format!("{count:.2} crossings a run. {} % lost when the fixed host sends.", text(other))
        }
    };
    Judged::number("% of the throughput lost", ours, (theirs, tolerance), vec![holds])
        .with_points(vec![
            bar(outcome, "mobile host sends, Mbit/s", motion, PUBLISHED[place]),
            bar(
                case(results, MOVING, motion, FIXED_PLAIN),
                "fixed host sends, Mbit/s",
                motion,
                None,
            ),
        ])
        .because(reason)
}

/// Crossings that a run has.
fn per_run_crossings(outcome: &Outcome) -> f64 {
    mean(outcome.watched.iter().map(|watched| watched.crossings.len() as f64)).0
}

fn order(results: &Results) -> Judged {
    let mut criteria = Vec::new();
    let mut least: Option<(f64, Option<f64>)> = None;
    for (who, name) in [(PLAIN, "mobile host sends"), (FIXED_PLAIN, "fixed host sends")] {
        for two in Motion::ALL.windows(2) {
            let [a, b] = [two[0], two[1]].map(|motion| case(results, MOVING, motion, who));
            let ahead = paired(a, b, |a, b| (a - b) / 1e3);
            criteria.push(criterion(
                ahead.0 > ahead.1.unwrap_or(0.0),
                format!(
                    "{name}: {} is {} kbit/s above {}, seed by seed",
                    two[0].name(),
                    text(ahead),
                    two[1].name()
                ),
            ));
            if who == PLAIN && least.is_none_or(|least| ahead.0 < least.0) {
                least = Some(ahead);
            }
        }
    }
    let ours = least.unwrap_or((0.0, None));
    Judged::shape(
        "kbit/s, the least lead over the next",
        ours,
        "each above the next beyond the 95 % interval of the difference",
        criteria,
    )
    .because(
        "Overlap costs no packet and no pause here, so its lead is small: the air of a few \
         messages, and of the data that goes round by the old base station. With a channel for \
         each cell, a host that is in two at once has the air of both, and overlap would be \
         faster than no motion."
            .into(),
    )
}

fn durations(results: &Results) -> Judged {
    let of = |motion| {
        let samples = &case(results, MOVING, motion, PLAIN).row.samples;
        mean(samples.iter().map(|sample| sample.seconds))
    };
    let pairs = [(Motion::Rendezvous0, 24.0), (Motion::Rendezvous1, 29.0)];
    let criteria: Vec<Criterion> = pairs
        .into_iter()
        .map(|(motion, _)| {
            let (seconds, ci95) = of(motion);
            let what = format!("{}: {} s (23 to 31)", motion.name(), text((seconds, ci95)));
            criterion((23.0..=31.0).contains(&seconds), what)
        })
        .collect();
    let points =
        pairs.map(|(motion, theirs)| point("duration, s", motion.name(), of(motion), theirs));
    Judged::number(
        "s, beacon after 1 s",
        of(Motion::Rendezvous1),
        (29.0, "4 MiB in 23 to 31 s (INC-4)"),
        criteria,
    )
    .with_points(points.to_vec())
    .because("A Mbyte is 2^20 bytes here; with 10^6 both would be 5 % shorter.".into())
}

fn no_drops(results: &Results) -> Judged {
    let mut criteria = Vec::new();
    let mut all = 0;
    for (who, name) in [(PLAIN, "mobile host sends"), (FIXED_PLAIN, "fixed host sends")] {
        let outcome = case(results, MOVING, Motion::Overlap, who);
        let lost = |sample: &study::Sample| sample.measures.lost + sample.measures.queue_full;
        let lost: u64 = outcome.row.samples.iter().map(lost).sum();
        let count = crossings(outcome).count();
        all += lost;
        criteria
            .push(criterion(lost == 0, format!("{name}: {lost} packets in {count} handoffs (0)")));
    }
    Judged::shape("packets lost", (all as f64, None), "none", criteria).with_theirs(0.0)
}

fn gain(results: &Results, motion: Motion, theirs: f64, (least, most): (f64, f64)) -> Judged {
    let of = |who| case(results, MOVING, motion, who);
    let ours = paired(of(FAST), of(PLAIN), |fast, plain| (fast / plain - 1.0) * 100.0);
    let what = format!("{} % faster ({least} to {most})", text(ours));
    let holds = criterion((least..=most).contains(&ours.0), what);
    let place = usize::from(motion == Motion::Rendezvous1);
    let points = vec![
        bar(of(PLAIN), "plain, Mbit/s", motion, PUBLISHED[2 + place]),
        bar(of(FAST), "fast retransmission, Mbit/s", motion, PUBLISHED_FAST[place]),
    ];
    let tolerance = if place == 0 { "+3 to +10 %" } else { "+18 to +32 %" };
    Judged::number("% more throughput", ours, (theirs, tolerance), vec![holds]).with_points(points)
}

fn residual(results: &Results) -> Judged {
    const POINTS: f64 = 4.0;
    let published = PUBLISHED_FAST.map(|mbps| (1.0 - mbps / PUBLISHED[0]) * 100.0);
    let pairs = Motion::GAPS.into_iter().zip(published);
    let mut criteria = Vec::new();
    let mut points = Vec::new();
    for (motion, theirs) in pairs {
        let ours = lost(results, motion, FAST);
        let off = ours.0 - theirs;
        criteria.push(criterion(
            off.abs() <= POINTS,
            format!("{}: {} %, {off:+.1} points from {theirs:.1} (4)", motion.name(), text(ours)),
        ));
        points.push(point("lost, %", motion.name(), ours, theirs));
    }
    let cells = lost(results, Motion::Overlap, PLAIN);
    let first = lost(results, Motion::Rendezvous0, FAST);
    Judged::number(
        "% lost, beacon at once",
        first,
        (published[0], "7 and 14 %, +-4 points"),
        criteria,
    )
    .with_points(points)
    .because(format!(
        "Beside the pauses, 6 % are lost by any motion in the paper, most of it in its daemons; \
         here {} % (EXP-CI-F2-b).",
        text(cells)
    ))
}

fn near_overlap(results: &Results) -> Judged {
    let fast = case(results, MOVING, Motion::Rendezvous0, FAST);
    let overlap = case(results, MOVING, Motion::Overlap, PLAIN);
    let ours = paired(fast, overlap, |fast, overlap| fast / overlap);
    let holds =
        criterion((ours.0 - 1.0).abs() <= 0.03, format!("{} of it (within 3 %)", text(ours)));
    Judged::number(
        "of the throughput with overlap",
        ours,
        (1.490 / 1.504, "within 3 % of each other"),
        vec![holds],
    )
}

fn ethernet(results: &Results) -> Judged {
    let mut criteria = Vec::new();
    let mut points = Vec::new();
    let mut most = 0.0_f64;
    let rows = Motion::ALL.map(|motion| (motion, PLAIN)).into_iter();
    for (motion, who) in rows.chain(Motion::GAPS.map(|motion| (motion, FAST))) {
        let [radio, wire] = [MOVING, ETHERNET_STUDY].map(|study| case(results, study, motion, who));
        let off = (wire.mbps().0 / radio.mbps().0 - 1.0) * 100.0;
        let name = format!("{}, {}", who.1, motion.name());
        criteria.push(criterion(off.abs() <= 5.0, format!("{name}: {off:+.2} % (5)")));
        points.push(point(who.1, motion.name(), wire.mbps(), radio.mbps().0));
        most = if off.abs() > most.abs() { off } else { most };
    }
    Judged::shape(
        "% apart, the most",
        (most, None),
        "each throughput within 5 % of the radio's",
        criteria,
    )
    .with_points(points)
    .because(
        "In the table of values \"published\" is our own over the radio. A medium is a rate, a \
         delay and an air for one packet at a time here, so at one rate little is left to differ."
            .into(),
    )
}

fn windows(results: &Results) -> Judged {
    let mut points = Vec::new();
    for (motion, theirs) in Motion::GAPS.into_iter().zip([PUBLISHED[2], PUBLISHED[3]]) {
        for (window, study) in WINDOWS {
            let of = |who| case(results, study, motion, who);
            let at = format!("{}, {window}", motion.name());
            points.push(point("plain, Mbit/s", &at, of(PLAIN).mbps(), theirs));
            let fast = PUBLISHED_FAST[usize::from(motion == Motion::Rendezvous1)];
            points.push(point("fast retransmission, Mbit/s", &at, of(FAST).mbps(), fast));
            points.push(point("plain, pause s", &at, per_run(of(PLAIN), super::pause), None));
            points.push(point("fast, pause s", &at, per_run(of(FAST), super::pause), None));
        }
    }
    let chosen = results.scenario(NAME, MOVING).map_or(0, |scenario| scenario.window.0);
    Judged::without_target(
        "Mbit/s, plain, beacon at once",
        case(results, MOVING, Motion::Rendezvous0, PLAIN).mbps(),
    )
    .with_points(points)
    .because(format!("All other experiments have a window of {} KB.", chosen >> 10))
}
