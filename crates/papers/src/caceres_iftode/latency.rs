//! Figure 9: pauses after crossings without overlap, before and after fast retransmission, with the
//! mobile and with the fixed host as the sender.

use super::{
    FAST, FIXED_FAST, FIXED_PLAIN, MOVING, Motion, PLAIN, Who, case, experiment, pause, per_run,
    point, text,
};
use crate::crossings::Crossing;
use crate::judged::{Judged, Point, criterion};
use crate::paper::Experiment;
use crate::runs::Results;

const FIGURE: &str = "figure 9, section IV-D";
pub(super) const EXACT: &str = "exact-timer";
const QUICK: &str = "quick";

pub(super) const FIGURE_9: [Experiment; 6] = [
    experiment(
        ("EXP-CI-F9-a", FIGURE),
        "mobile host sends, beacon at once: pause of 0.8 s, 0.2 s with fast retransmission",
        &[MOVING, EXACT],
        |results| shortens(results, Motion::Rendezvous0, [(0.7, 0.8, 0.9), (0.15, 0.2, 0.25)]),
    ),
    experiment(
        ("EXP-CI-F9-b", FIGURE),
        "mobile host sends, beacon after 1 s: 2.8 s, 1.2 s",
        &[MOVING, EXACT],
        |results| shortens(results, Motion::Rendezvous1, [(2.6, 2.8, 3.0), (1.1, 1.2, 1.3)]),
    ),
    experiment(
        ("EXP-CI-F9-c", FIGURE),
        "fixed host sends, beacon at once (withheld)",
        &[MOVING],
        |results| withheld(results, Motion::Rendezvous0),
    ),
    experiment(
        ("EXP-CI-F9-d", FIGURE),
        "fixed host sends, beacon after 1 s (withheld)",
        &[MOVING],
        |results| withheld(results, Motion::Rendezvous1),
    ),
    experiment(
        ("EXP-CI-F9-e", FIGURE),
        "before, pauses are shorter when the fixed host sends; after, longer",
        &[MOVING, EXACT],
        signs,
    ),
    experiment(
        ("EXP-CI-F9-f", "section IV-D"),
        "200 to 300 ms remain after the rendezvous; better code should bring 100 ms or less",
        &[MOVING, QUICK],
        residual,
    ),
];

pub(super) const ABSTRACT: Experiment = experiment(
    ("EXP-CI-S-a", "abstract"),
    "pauses of 800 ms and more become 200 ms",
    &[MOVING],
    abstract_claim,
);

/// The mean pause, seconds.
pub(super) fn mean_pause(
    results: &Results,
    study: &str,
    motion: Motion,
    who: Who,
) -> (f64, Option<f64>) {
    per_run(case(results, study, motion, who), pause)
}

fn shortens(results: &Results, motion: Motion, spans: [(f64, f64, f64); 2]) -> Judged {
    let of = |study, who| mean_pause(results, study, motion, who);
    let ours = [of(MOVING, PLAIN), of(MOVING, FAST)];
    let names = ["plain", "fast retransmission"];
    let criteria =
        names.into_iter().zip(ours).zip(spans).map(|((name, ours), (least, _, most))| {
            let what = format!("{name}: {} s ({least} to {most})", text(ours));
            criterion((least..=most).contains(&ours.0), what)
        });
    let mut points: Vec<Point> = names
        .into_iter()
        .zip(ours)
        .zip(spans)
        .map(|((name, ours), (_, theirs, _))| point("pause, s", name, ours, theirs))
        .collect();
    let exact = [of(EXACT, PLAIN), of(EXACT, FAST)];
    points.extend(
        names.into_iter().zip(exact).map(|(name, ours)| point("exact timer, s", name, ours, None)),
    );
    let tolerance = match motion {
        Motion::Rendezvous0 => "0.7 to 0.9, then 0.15 to 0.25 s",
        _ => "2.6 to 3.0, then 1.1 to 1.3 s",
    };
    let (fast, criteria) = (ours[1], criteria.collect());
    Judged::number("s with fast retransmission", fast, (spans[1].1, tolerance), criteria)
        .with_points(points)
        .because(format!(
            "{} s without. With an exact timer of 1 s in place of two ticks, {} s.",
            text(ours[0]),
            text(exact[0])
        ))
}

fn withheld(results: &Results, motion: Motion) -> Judged {
    let of = |who| mean_pause(results, MOVING, motion, who);
    let points = vec![
        point("pause, s", "plain", of(FIXED_PLAIN), None),
        point("pause, s", "fast retransmission", of(FIXED_FAST), None),
    ];
    Judged::without_target("s with fast retransmission", of(FIXED_FAST)).with_points(points)
}

/// How much more a value is when the fixed host sends, and half of the 95 % interval, ms.
fn longer(
    results: &Results,
    (study, motion): (&str, Motion),
    [fixed, mobile]: [Who; 2],
    value: fn(&Crossing) -> Option<f64>,
) -> (f64, Option<f64>) {
    let of = |who| per_run(case(results, study, motion, who), value);
    let ((fixed, ci_fixed), (mobile, ci_mobile)) = (of(fixed), of(mobile));
    let ci95 = ci_fixed.zip(ci_mobile).map(|(a, b)| (a * a + b * b).sqrt() * 1e3);
    ((fixed - mobile) * 1e3, ci95)
}

fn signs(results: &Results) -> Judged {
    let (plain, fast) = ([FIXED_PLAIN, PLAIN], [FIXED_FAST, FAST]);
    let resent = |crossing: &Crossing| crossing.sent_after_complete.map(|at| at.as_secs_f64());
    let since = |crossing: &Crossing| {
        let (sent, complete) = crossing.sent_after_complete.zip(crossing.complete)?;
        Some(sent.as_secs_f64() - complete.as_secs_f64())
    };
    let fires = |crossing: &Crossing| crossing.timeouts.first().map(|at| at.as_secs_f64());
    let mut criteria = Vec::new();
    let mut points = Vec::new();
    for motion in Motion::GAPS {
        let name = motion.name();
        let before = longer(results, (EXACT, motion), plain, fires);
        let after = longer(results, (MOVING, motion), fast, resent);
        criteria.push(criterion(
            before.0 < 0.0,
            format!("{name}, plain: the timeout comes {} ms later (< 0)", text(before)),
        ));
        criteria.push(criterion(
            after.0 > 0.0,
            format!("{name}, fast retransmission: it goes out {} ms later (> 0)", text(after)),
        ));
        for (series, value) in [
            ("plain, first timeout, exact timer, ms", before),
            ("plain, pause, ticks, ms", longer(results, (MOVING, motion), plain, pause)),
            ("fast retransmission sent, ms", after),
            ("the same, since the completion, ms", longer(results, (MOVING, motion), fast, since)),
            ("fast retransmission, pause, ms", longer(results, (MOVING, motion), fast, pause)),
        ] {
            points.push(point(series, name, value, None));
        }
    }
    let ours = longer(results, (MOVING, Motion::Rendezvous0), fast, resent);
    let own = longer(results, (MOVING, Motion::Rendezvous0), fast, since);
    Judged::shape(
        "ms later when the fixed host sends, beacon at once, fast retransmission",
        ours,
        "the timeout before it earlier, the fast retransmission later",
        criteria,
    )
    .with_points(points)
    .because(format!(
        "All values: when the fixed host sends, less those when the mobile host does. With ticks \
         their phases hide the difference before; an exact timer shows what is left of it in the \
         mean. A sender of BSD sets its timer again with each ACK, so the last ACK before the \
         crossing counts, not when the lost packets were sent; with a beacon at once ACKs that \
         come by the new cell count, too. After it, the fixed host does wait for the ACKs on their \
         way: its fast retransmission is {} ms later, since the completion. But its handoff is \
         over sooner, for the greeting of a mobile host that sends waits behind its own data.",
        text(own)
    ))
}

fn residual(results: &Results) -> Judged {
    let mut criteria = Vec::new();
    let mut points = Vec::new();
    for (motion, delay) in Motion::GAPS.into_iter().zip([0.0, 1.0]) {
        let beyond = |study| {
            let (pause, ci95) = mean_pause(results, study, motion, FAST);
            ((pause - delay) * 1e3, ci95.map(|ci95| ci95 * 1e3))
        };
        let (ours, quick) = (beyond(MOVING), beyond(QUICK));
        let name = motion.name();
        criteria.push(criterion(
            (200.0..=300.0).contains(&ours.0),
            format!("{name}: {} ms after the rendezvous (200 to 300)", text(ours)),
        ));
        criteria.push(criterion(
            quick.0 <= 100.0,
            format!("{name}, no machine takes time: {} ms (<= 100)", text(quick)),
        ));
        points.push(point("ms after the rendezvous", name, ours, None));
        points.push(point("no machine takes time, ms", name, quick, None));
    }
    let ours = (points[0].ours, points[0].ci95);
    Judged::number("ms, beacon at once", ours, (200.0, "200 to 300 ms; at most 100"), criteria)
        .with_points(points)
}

fn abstract_claim(results: &Results) -> Judged {
    let [before, after] =
        [PLAIN, FAST].map(|who| mean_pause(results, MOVING, Motion::Rendezvous0, who));
    let criteria = vec![
        criterion(
            (0.7..=0.9).contains(&before.0),
            format!("{} s before (0.7 to 0.9)", text(before)),
        ),
        criterion(
            (0.15..=0.25).contains(&after.0),
            format!("{} s after (0.15 to 0.25)", text(after)),
        ),
    ];
    Judged::number("s after", after, (0.2, "as EXP-CI-F9-a"), criteria)
}
