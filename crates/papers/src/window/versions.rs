//! Figures 7 to 11, (a) and (b): the conventional version, and that with link state and prefetch.

use super::recovery::{normal, over_senders, restart_s};
use super::{
    HANDOFFS_S, LENGTH_S, SENDERS, VERSIONS, average, experiment, mean, outcome, point, rate,
};
use crate::judged::{Judged, criterion};
use crate::moves::Moves;
use crate::paper::Experiment;
use crate::runs::Results;
use node::scenario::Sender;

const A: usize = 0;
const B: usize = 1;

pub(super) const EXPERIMENTS: [Experiment; 7] = [
    experiment(
        ("EXP-WINC-6", "section 4.3"),
        "(b) interrupts for less time; slow start lasts longer until repeated handoffs lower \
         ssthresh",
        &[VERSIONS],
        prefetch,
    ),
    experiment(
        ("EXP-WINC-7-11a", "figures 7(a) to 11(a)"),
        "throughput of the conventional version (withheld)",
        &[VERSIONS],
        conventional,
    ),
    experiment(
        ("EXP-WINC-10a-1", "section 4.3"),
        "Vegas is the lowest of the conventional versions",
        &[VERSIONS],
        vegas_lowest,
    ),
    experiment(
        ("EXP-WINC-b-1", "section 4.3"),
        "(b): after a handoff Reno is slower than Tahoe",
        &[VERSIONS],
        reno_below_tahoe,
    ),
    experiment(
        ("EXP-WINC-b-2", "section 4.3"),
        "(b): NewReno is near zero for a while (40.8 to 50.6 s), then recovers fast",
        &[VERSIONS],
        newreno_near_zero,
    ),
    experiment(
        ("EXP-WINC-b-3", "section 4.3"),
        "(b): SACK enters congestion avoidance earlier than Tahoe",
        &[VERSIONS],
        sack_earlier,
    ),
    experiment(
        ("EXP-WINC-b-4", "section 4.3"),
        "(b): Vegas does not drop at the first handoff",
        &[VERSIONS],
        vegas_no_drop,
    ),
];

fn prefetch(results: &Results) -> Judged {
    let of = |version| SENDERS.map(|(sender, _)| outcome(results, version, sender));
    let (a, b) = (over_senders(&of(A), restart_s), over_senders(&of(B), restart_s));
    let tahoe = outcome(results, B, Sender::Tahoe);
    let ssthresh = |place: usize| {
        mean(tahoe, |moves| moves.crossings.get(place).map(|one| f64::from(one.least.1))).0
    };
    let (first, last) = (ssthresh(0), ssthresh(2));
    let conventional = mean(outcome(results, A, Sender::Tahoe), |moves| {
        moves.crossings.first().map(|one| f64::from(one.least.1))
    });
    let criteria = vec![
        criterion(b < a, format!("data comes again after {b:.2} s, (a) {a:.2} s")),
        criterion(
            first > conventional.0,
            format!(
                "Tahoe's ssthresh after the first handoff {first:.0} B, (a) {:.0} B",
                conventional.0
            ),
        ),
        criterion(last < first, format!("after the third {last:.0} B, so slow start ends sooner")),
    ];
    let points = [("a", A), ("b", B)].into_iter().flat_map(|(name, version)| {
        SENDERS.map(|(sender, sender_name)| {
            let value = mean(outcome(results, version, sender), restart_s);
            point(&format!("({name}) restart, s"), sender_name, value)
        })
    });
    let points = points.collect();
    Judged::shape(
        "s until data comes again with (b), the mean of five senders",
        (b, None),
        "shorter than (a); ssthresh higher at first, and falling",
        criteria,
    )
    .with_points(points)
}

fn conventional(results: &Results) -> Judged {
    let points = SENDERS.map(|(sender, name)| {
        point("(a), KB/s of 100 s", name, mean(outcome(results, A, sender), average))
    });
    let tahoe = mean(outcome(results, A, Sender::Tahoe), average);
    Judged::without_target("KB/s, Tahoe", tahoe).with_points(points.to_vec())
}

fn vegas_lowest(results: &Results) -> Judged {
    let of = |sender| mean(outcome(results, A, sender), average);
    let vegas = of(Sender::Vegas);
    let others = SENDERS.iter().filter(|(sender, _)| *sender != Sender::Vegas);
    let criteria = others.map(|(sender, name)| {
        let other = of(*sender).0;
        criterion(vegas.0 < other, format!("Vegas {:.1}, {name} {other:.1} KB/s", vegas.0))
    });
    let criteria = criteria.collect();
    Judged::shape("KB/s, Vegas", vegas, "below the other four", criteria)
}

/// KB/s from the first handoff on.
fn afterwards(moves: &Moves) -> Option<f64> {
    Some(rate(moves, HANDOFFS_S[0], LENGTH_S))
}

fn reno_below_tahoe(results: &Results) -> Judged {
    let [tahoe, reno] =
        [Sender::Tahoe, Sender::Reno].map(|sender| mean(outcome(results, B, sender), afterwards));
    let what = format!("Reno {:.1}, Tahoe {:.1} KB/s after 40 s", reno.0, tahoe.0);
    Judged::shape(
        "KB/s after 40 s, Reno",
        reno,
        "below Tahoe",
        vec![criterion(reno.0 < tahoe.0, what)],
    )
}

/// The longest time in whole seconds, after the first handoff and before the second, with less than
/// a tenth of what was normal.
fn near_zero(moves: &Moves) -> Option<f64> {
    let most = normal(moves) / 10.0;
    let (mut longest, mut current) = (0_u32, 0_u32);
    for second in HANDOFFS_S[0]..HANDOFFS_S[1] {
        current = if rate(moves, second, second + 1) < most { current + 1 } else { 0 };
        longest = longest.max(current);
    }
    Some(f64::from(longest))
}

fn newreno_near_zero(results: &Results) -> Judged {
    const PUBLISHED_S: f64 = 9.8;
    let newreno = outcome(results, B, Sender::NewReno);
    let seconds = mean(newreno, near_zero);
    let (after, _) = mean(newreno, |moves| Some(rate(moves, HANDOFFS_S[1] - 5, HANDOFFS_S[1])));
    let criteria = vec![
        criterion(
            (5.0..=15.0).contains(&seconds.0),
            format!("{:.1} s with less than a tenth of the normal rate (5 to 15)", seconds.0),
        ),
        criterion(after > 40.0, format!("{after:.1} KB/s before the second handoff")),
    ];
    let points = SENDERS.map(|(sender, name)| {
        point("near zero, s", name, mean(outcome(results, B, sender), near_zero))
    });
    Judged::shape("s near zero, NewReno", seconds, "5 to 15 s, then fast", criteria)
        .with_theirs(PUBLISHED_S)
        .with_points(points.to_vec())
}

fn sack_earlier(results: &Results) -> Judged {
    let first = |moves: &Moves| moves.crossings.first().and_then(|one| one.avoidance);
    let of = |sender| mean(outcome(results, B, sender), first);
    let (sack, tahoe) = (of(Sender::Sack1), of(Sender::Tahoe));
    let what = format!("SACK {:.2} s, Tahoe {:.2} s after the first handoff", sack.0, tahoe.0);
    let holds = criterion(sack.0 < tahoe.0, what);
    let points =
        SENDERS.map(|(sender, name)| point("congestion avoidance after, s", name, of(sender)));
    Judged::shape(
        "s until SACK is in congestion avoidance for good",
        sack,
        "earlier than Tahoe",
        vec![holds],
    )
    .with_points(points.to_vec())
}

fn vegas_no_drop(results: &Results) -> Judged {
    const AFTER_S: usize = 5;
    let share = |moves: &Moves| {
        let after = rate(moves, HANDOFFS_S[0], HANDOFFS_S[0] + AFTER_S);
        Some(after / normal(moves))
    };
    let share = mean(outcome(results, B, Sender::Vegas), share);
    let what = format!("{:.2} of the rate before, in the {AFTER_S} s after it (0.9)", share.0);
    let holds = criterion(share.0 >= 0.9, what);
    let unit = "of the rate before the first handoff, Vegas";
    Judged::shape(unit, share, "no drop", vec![holds]).because(
        "Theirs avoids the drop since the delay of their radio grows as the signal falls, so that \
         Vegas sends less before the handoff. Ours has the same delay until the crossing: what is \
         on its way then is lost, few segments, and nothing comes until the registration is there."
            .into(),
    )
}
