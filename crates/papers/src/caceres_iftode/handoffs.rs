//! Figures 5 to 8: what happens in single handoffs without overlap.

use super::{
    FAST, FIXED_PLAIN, MOVING, Motion, PLAIN, Who, case, experiment, pause, per_run, percent,
    point, text,
};
use crate::crossings::Crossing;
use crate::judged::{Criterion, Judged, criterion};
use crate::paper::Experiment;
use crate::runs::Results;
use sansio::Duration;

const GREETING: &str = "greeting-answered";

pub(super) const FIGURE_5: [Experiment; 4] = [
    experiment(
        ("EXP-CI-F5-a", "figure 5"),
        "the mobile host's route follows after 0.05 s, the old base station's after 0.15 s",
        &[MOVING],
        routes,
    ),
    experiment(
        ("EXP-CI-F5-b", "figure 5, section III-C"),
        "beacon at once: one timeout, nothing for 0.8 s or more",
        &[MOVING],
        one_timeout,
    ),
    experiment(
        ("EXP-CI-F5-c", "section III-C"),
        "up to one window of packets and related ACKs is lost",
        &[MOVING],
        losses,
    ),
    experiment(
        ("EXP-CI-F5-d", "figure 5, section IV-B"),
        "the retransmission timer is 1 s",
        &[MOVING],
        timer,
    ),
];

pub(super) const FIGURES_6_TO_8: [Experiment; 4] = [
    experiment(
        ("EXP-CI-F6-a", "figure 6, section III-C"),
        "beacon after 1 s: two timeouts in a row",
        &[MOVING],
        two_timeouts,
    ),
    experiment(
        ("EXP-CI-F6-b", "figure 6"),
        "losses and times of one handoff (not readable)",
        &[MOVING],
        events,
    ),
    experiment(
        ("EXP-CI-F7-a", "figure 7, section IV-C"),
        "beacon at once: goes on 50 ms after the handoff, a timeout would come after 650 ms",
        &[MOVING, GREETING],
        |results| resumes(results, Motion::Rendezvous0, (0.55, 0.650, 0.75)),
    ),
    experiment(
        ("EXP-CI-F8-a", "figure 8, section IV-C"),
        "beacon after 1 s: again after 50 ms, a timeout would come after 1650 ms",
        &[MOVING, GREETING],
        |results| resumes(results, Motion::Rendezvous1, (1.5, 1.650, 1.8)),
    ),
];

fn seconds(time: Option<Duration>) -> Option<f64> {
    time.map(|time| time.as_secs_f64())
}

fn routes(results: &Results) -> Judged {
    /// Beacon and greeting may each wait for the packet on the air.
    const AIR: f64 = 0.010;
    /// And the greeting for what its host has queued for the old cell.
    const QUEUE: f64 = 0.030;
    let mut points = Vec::new();
    let mut criteria = Vec::new();
    for (who, name) in [(PLAIN, "mobile host sends, s"), (FIXED_PLAIN, "fixed host sends, s")] {
        let outcome = case(results, MOVING, Motion::Rendezvous0, who);
        let route = per_run(outcome, |crossing| seconds(crossing.route_changed));
        let told = per_run(outcome, |crossing| seconds(crossing.old_told));
        for (what, ours, theirs, most) in [
            ("the mobile host's route", route, 0.05, AIR),
            ("the old base station's", told, 0.15, AIR + QUEUE),
        ] {
            criteria.push(criterion(
                (theirs..=theirs + most).contains(&ours.0),
                format!("{what}, {name}: {} ({theirs} and at most {most} more)", text(ours)),
            ));
            points.push(point(name, what, ours, theirs));
        }
    }
    let (ours, ci95) = (points[1].ours, points[1].ci95);
    Judged::number(
        "s, the old base station's route",
        (ours, ci95),
        (0.15, "inputs, and the messages' way over a busy air"),
        criteria,
    )
    .with_points(points)
    .because(
        "50 and 100 ms are what the daemons take, and inputs. The rest is the air: the beacon \
         waits for the packet on it, and the greeting behind what its host has queued for the old \
         cell."
            .into(),
    )
}

fn one_timeout(results: &Results) -> Judged {
    let outcome = case(results, MOVING, Motion::Rendezvous0, PLAIN);
    let share = percent(outcome, |crossing| crossing.timeouts.len() == 1);
    let ours = per_run(outcome, pause);
    let frozen = percent(outcome, |crossing| pause(crossing).is_some_and(|pause| pause >= 0.8));
    let criteria = vec![
        criterion(share >= 80.0, format!("exactly one timeout at {share:.1} % of crossings (80)")),
        criterion(ours.0 >= 0.8, format!("nothing for {} s in the mean (>= 0.8)", text(ours))),
    ];
    Judged::shape(
        "s without data",
        ours,
        "exactly one timeout at 80 % of crossings, 0.8 s in the mean",
        criteria,
    )
    .with_theirs(0.8)
    .because(format!(
        "{frozen:.0} % of the pauses are 0.8 s or longer: the timer of two ticks fires anywhere \
         from 0.5 to 1 s after it was set."
    ))
}

fn losses(results: &Results) -> Judged {
    let mut criteria: Vec<Criterion> = Vec::new();
    let mut points = Vec::new();
    for (who, name) in [(PLAIN, "mobile host sends"), (FIXED_PLAIN, "fixed host sends")] {
        for motion in Motion::GAPS {
            let outcome = case(results, MOVING, motion, who);
            let mss = outcome.plan.segment_bytes();
            let window = outcome.plan.tcp.receive_buffer_bytes / mss;
            let fits = percent(outcome, |crossing| {
                let resent = crossing.timeouts.len() as u32;
                crossing.lost_data <= window + resent && crossing.lost_acks <= window
            });
            let what = format!(
                "{name}, {}: at {fits:.1} % of crossings a window of {window} segments at most, \
                 and those that timeouts sent (100)",
                motion.name()
            );
            criteria.push(criterion(fits >= 100.0, what));
            let of = |value: fn(&Crossing) -> u32| {
                per_run(outcome, |crossing| Some(f64::from(value(crossing))))
            };
            let at = motion.name();
            points.push(point(&format!("{name}, segments"), at, of(|one| one.lost_data), None));
            points.push(point(&format!("{name}, ACKs"), at, of(|one| one.lost_acks), None));
        }
    }
    let ours = (points[0].ours, points[0].ci95);
    Judged::shape("segments lost, beacon at once", ours, "a window at most", criteria)
        .with_points(points)
}

fn timer(results: &Results) -> Judged {
    let outcome = case(results, MOVING, Motion::Rendezvous0, PLAIN);
    let ours = per_run(outcome, |crossing| Some(crossing.rto.as_secs_f64()));
    let first = |crossing: &Crossing| seconds(crossing.timeouts.first().copied());
    let fires = per_run(outcome, first);
    let what = format!("{} s at the crossing (1 s, one tick of 0.5 s)", text(ours));
    let holds = criterion((ours.0 - 1.0).abs() <= 0.5, what);
    Judged::number("s", ours, (1.0, "1.0 s +- one tick"), vec![holds]).because(format!(
        "Set to two ticks it fires {} s after the crossing, at a phase of its host's clock.",
        text(fires)
    ))
}

fn two_timeouts(results: &Results) -> Judged {
    let outcome = case(results, MOVING, Motion::Rendezvous1, PLAIN);
    let share = percent(outcome, |crossing| crossing.timeouts.len() == 2);
    let what = format!("exactly two timeouts at {share:.1} % of crossings (80)");
    Judged::shape(
        "% of crossings with two timeouts",
        (share, None),
        "exactly two at 80 % of crossings",
        vec![criterion(share >= 80.0, what)],
    )
}

fn events(results: &Results) -> Judged {
    let outcome = case(results, MOVING, Motion::Rendezvous1, PLAIN);
    let nth =
        |place: usize| move |crossing: &Crossing| seconds(crossing.timeouts.get(place).copied());
    let of = |value: fn(&Crossing) -> Option<Duration>| {
        per_run(outcome, |crossing| seconds(value(crossing)))
    };
    let count =
        |value: fn(&Crossing) -> u32| per_run(outcome, |crossing| Some(f64::from(value(crossing))));
    let resumed = of(|one| one.resumed);
    let points = vec![
        point("s after the crossing", "the mobile host's route", of(|one| one.route_changed), None),
        point("s after the crossing", "the old base station's", of(|one| one.old_told), None),
        point("s after the crossing", "completion", of(|one| one.complete), None),
        point("s after the crossing", "first timeout", per_run(outcome, nth(0)), None),
        point("s after the crossing", "second timeout", per_run(outcome, nth(1)), None),
        point("s after the crossing", "data again", resumed, None),
        point("lost", "segments", count(|one| one.lost_data), None),
        point("lost", "ACKs", count(|one| one.lost_acks), None),
    ];
    Judged::without_target("s until data gets through again", resumed)
        .with_points(points)
        .because("Kind F: the figure's values are not in the text.".into())
}

/// From the completion on, seconds.
fn since_complete(crossing: &Crossing, at: Option<Duration>) -> Option<f64> {
    let (at, complete) = at.zip(crossing.complete)?;
    Some(at.as_secs_f64() - complete.as_secs_f64())
}

fn resumes(results: &Results, motion: Motion, (least, theirs, most): (f64, f64, f64)) -> Judged {
    let goes_on = |study: &str, who: Who| {
        let outcome = case(results, study, motion, who);
        per_run(outcome, |one| since_complete(one, one.resumed).map(|time| time * 1e3))
    };
    let fast = goes_on(MOVING, FAST);
    let plain = case(results, MOVING, motion, PLAIN);
    let late = |one: &Crossing| {
        one.complete.is_some_and(|complete| one.timeouts.iter().any(|timeout| *timeout > complete))
    };
    let timeout = per_run(plain, |one| {
        let next = one.timeouts.iter().find(|at| Some(**at) > one.complete).copied();
        since_complete(one, next)
    });
    let criteria = vec![
        criterion(
            (30.0..=80.0).contains(&fast.0),
            format!("goes on {} ms after the completion (30 to 80)", text(fast)),
        ),
        criterion(
            (least..=most).contains(&timeout.0),
            format!("a timeout {} s after it ({least} to {most})", text(timeout)),
        ),
    ];
    let answered = goes_on(GREETING, FAST);
    let points = vec![
        point("fast retransmission, ms after the completion", motion.name(), fast, 50.0),
        point("timeout without it, s after the completion", motion.name(), timeout, theirs),
        point("told when the greeting is answered, ms", motion.name(), answered, None),
    ];
    Judged::number(
        "ms after the completion",
        fast,
        (50.0, "30 to 80 ms; the timeout as its span says"),
        criteria,
    )
    .with_points(points)
    .because(format!(
        "50 ms are an input here, and a packet's way is added. The timeout comes after the \
         completion at {:.0} % of crossings. Told when the greeting is answered, as the text says, \
         the mobile host goes on {} ms after the completion: what it sends gets through, but the \
         ACK still goes to the old base station and is lost, and so it waits for a timeout after \
         all.",
        percent(plain, late),
        text(answered)
    ))
}
