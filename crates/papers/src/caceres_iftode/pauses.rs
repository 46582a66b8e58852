//! Figures 3 and 4: sequence number and congestion window stand still after a crossing; and how
//! pauses grow with the rendezvous delay (section III-E).

use super::{
    FIXED_PLAIN, MOVING, Motion, NAME, PLAIN, case, crossings, experiment, mean, pause, per_run,
    percent, point, text,
};
use crate::crossings::Crossing;
use crate::judged::{Judged, criterion};
use crate::paper::Experiment;
use crate::runs::{Outcome, Results};
use node::scenario::Handoff;

const SWEEP: &str = "rendezvous";
const EXACT: &str = "exact-timer";

pub(super) const FIGURES: [Experiment; 4] = [
    experiment(
        ("EXP-CI-F3-a", "figure 3, section III-B"),
        "beacon after 1 s: nothing new for about 3 s",
        &[MOVING, EXACT],
        three_seconds,
    ),
    experiment(
        ("EXP-CI-F3-b", "figure 3, section III-B"),
        "3 s are typical for a beacon after 1 s, 1 s for one at once",
        &[MOVING],
        typical,
    ),
    experiment(
        ("EXP-CI-F4-a", "figure 4, section III-D"),
        "at a crossing cwnd stops growing, later drops to its minimum, and grows again",
        &[MOVING],
        window,
    ),
    experiment(
        ("EXP-CI-F4-b", "section III-D"),
        "slow start throttles for about 1 s, then 1.6 Mbit/s are back",
        &[MOVING],
        regrowth,
    ),
];

pub(super) const CLAIMS: [Experiment; 2] = [
    experiment(
        ("EXP-CI-P-a", "section III-E"),
        "pauses go on for 650 ms to several seconds after the handoff",
        &[MOVING],
        after_handoff,
    ),
    experiment(
        ("EXP-CI-P-b", "section III-E"),
        "pauses grow exponentially with the rendezvous delay",
        &[SWEEP],
        exponential,
    ),
];

/// After crossings with so many timeouts.
fn with(count: usize, value: fn(&Crossing) -> Option<f64>) -> impl Fn(&Crossing) -> Option<f64> {
    move |crossing| value(crossing).filter(|_| crossing.timeouts.len() == count)
}

/// How long the sequence number stands still, seconds.
fn silence(crossing: &Crossing) -> Option<f64> {
    crossing.resumed.map(|_| crossing.silent.as_secs_f64())
}

fn three_seconds(results: &Results) -> Judged {
    let motion = Motion::Rendezvous1;
    let [up, down] = [PLAIN, FIXED_PLAIN].map(|who| case(results, MOVING, motion, who));
    let exact = case(results, EXACT, motion, PLAIN);
    let [two, fixed, exact_two] =
        [up, down, exact].map(|outcome| per_run(outcome, with(2, silence)));
    let holds = (2.8..=3.2).contains(&two.0);
    let what = format!("{} s with two timeouts (2.8 to 3.2)", text(two));
    let one = percent(up, |crossing| crossing.timeouts.len() == 1);
    let points = vec![
        point("no new data, mobile host sends, s", "two timeouts", two, 3.0),
        point("no new data, fixed host sends, s", "two timeouts", fixed, None),
        point("no new data, exact timer, s", "two timeouts", exact_two, None),
        point("until data gets through, s", "two timeouts", per_run(up, with(2, pause)), None),
    ];
    Judged::number("s", two, (3.0, "2.8 to 3.2 s with two timeouts"), vec![criterion(holds, what)])
        .with_points(points)
        .because(format!(
            "A timer of two ticks of 500 ms fires 0.5 to 1 s after it was set, and again 2 s \
             later; then the lost window is sent again before anything new. {one:.1} % of \
             crossings have one timeout, as the last one of figure 3: our estimator keeps \
             nanoseconds, in which a round trip of 80 ms never makes three ticks; \
             BSD's rounded ticks now and then did."
        ))
}

fn typical(results: &Results) -> Judged {
    let mut criteria = Vec::new();
    let mut points = Vec::new();
    let [zero, one] = Motion::GAPS.map(|motion| case(results, MOVING, motion, PLAIN));
    for (outcome, motion, count) in [(zero, "rendezvous 0 s", 1), (one, "rendezvous 1 s", 2)] {
        let share = percent(outcome, |crossing| crossing.timeouts.len() == count);
        criteria.push(criterion(
            share > 50.0,
            format!("{motion}: {share:.1} % have {count} timeout(s) (typical: > 50)"),
        ));
        for timeouts in 0..=3 {
            let share = percent(outcome, |crossing| crossing.timeouts.len() == timeouts);
            let at = format!("{timeouts} timeouts");
            points.push(point(&format!("{motion}, % of crossings"), &at, (share, None), None));
        }
    }
    let [short, long] = [per_run(zero, pause), per_run(one, pause)];
    criteria.push(criterion(
        short.0 < long.0,
        format!("pauses of {} s, and of {} s", text(short), text(long)),
    ));
    points.push(point("pause, s", "rendezvous 0 s", short, 1.0));
    points.push(point("pause, s", "rendezvous 1 s", long, 3.0));
    Judged::shape("s, beacon after 1 s", long, "one timeout typical at 0 s, two at 1 s", criteria)
        .with_theirs(3.0)
        .with_points(points)
}

fn window(results: &Results) -> Judged {
    let outcome = case(results, MOVING, Motion::Rendezvous1, PLAIN);
    let mss = outcome.plan.segment_bytes();
    let [still, drops, grows] = [
        percent(outcome, |crossing| {
            // One ACK may have been under way.
            let grown = crossing.cwnd.at_timeout.saturating_sub(crossing.cwnd.before);
            !crossing.timeouts.is_empty() && grown <= mss
        }),
        percent(outcome, |crossing| crossing.cwnd.least == mss),
        percent(outcome, |crossing| crossing.cwnd.last > 2 * mss),
    ];
    let every = |share: f64, what: &str| {
        criterion(share >= 95.0, format!("{what} at {share:.1} % of crossings (95)"))
    };
    let criteria = vec![
        every(still, "until the first timeout it grows by a segment at most"),
        every(drops, "it drops to one segment"),
        every(grows, "by the next crossing or the end it is above two segments"),
    ];
    Judged::shape(
        "% drop to one segment",
        (drops, None),
        "all three at 95 % of crossings",
        criteria,
    )
}

fn regrowth(results: &Results) -> Judged {
    let regrown = |crossing: &Crossing| crossing.regrown.map(|time| time.as_secs_f64());
    let mut criteria = Vec::new();
    let mut points = Vec::new();
    let mut first = None;
    let opened = |motion| {
        let outcome = case(results, MOVING, motion, PLAIN);
        per_run(outcome, |crossing| crossing.opened.map(|time| time.as_secs_f64()))
    };
    for motion in Motion::GAPS {
        points.push(point(
            "until cwnd is as large as the window, s",
            motion.name(),
            opened(motion),
            None,
        ));
        for (who, name) in [(PLAIN, "mobile host sends, s"), (FIXED_PLAIN, "fixed host sends, s")] {
            let outcome = case(results, MOVING, motion, who);
            let ours = per_run(outcome, regrown);
            if who == PLAIN {
                first.get_or_insert(ours);
                let measured = percent(outcome, |crossing| crossing.regrown.is_some());
                let what = format!(
                    "{}: {} s (0.5 to 1.5), at the {measured:.0} % of crossings after which the \
                     transfer lasts long enough",
                    motion.name(),
                    text(ours)
                );
                criteria.push(criterion((0.5..=1.5).contains(&ours.0), what));
            }
            points.push(point(name, motion.name(), ours, 1.0));
        }
    }
    Judged::shape(
        "s until 95 % of the peak, beacon at once",
        first.unwrap_or((0.0, None)),
        "0.5 to 1.5 s",
        criteria,
    )
    .with_theirs(1.0)
    .with_points(points)
    .because(format!(
        "The path holds two packets, 7.4 ms of air each and 3 ms for all the rest, so slow start \
         fills it with its second round trip; there is nothing to throttle. What takes its time is \
         the window itself: {} s after data gets through again, {} after two timeouts, it is as \
         large as the receiver's, as before the crossing. For the throughput to take as long, a \
         round trip of their small windows must have been far longer than ours.",
        text(opened(Motion::Rendezvous0)),
        text(opened(Motion::Rendezvous1))
    ))
}

/// From the end of the handoff until data gets through again, seconds.
fn beyond(crossing: &Crossing) -> Option<f64> {
    let (resumed, complete) = crossing.resumed.zip(crossing.complete)?;
    Some(resumed.as_secs_f64() - complete.as_secs_f64())
}

fn after_handoff(results: &Results) -> Judged {
    let ours = Motion::GAPS.map(|motion| per_run(case(results, MOVING, motion, PLAIN), beyond));
    let least = crossings(case(results, MOVING, Motion::Rendezvous0, PLAIN))
        .filter_map(beyond)
        .fold(f64::INFINITY, f64::min);
    let criteria = Motion::GAPS.into_iter().zip(ours).map(|(motion, ours)| {
        criterion(ours.0 >= 0.6, format!("{}: {} s (>= 0.6)", motion.name(), text(ours)))
    });
    let points = Motion::GAPS.into_iter().zip(ours).zip([Some(0.65), Some(1.65)]);
    let points = points.map(|((motion, ours), theirs)| {
        point("after the completion, s", motion.name(), ours, theirs)
    });
    Judged::shape("s, beacon at once", ours[0], ">= 0.6 s in the mean", criteria.collect())
        .with_theirs(0.65)
        .with_points(points.collect())
        .because(format!(
            "The shortest is {least:.2} s: a timer of two ticks may fire after one and a moment."
        ))
}

/// The rendezvous delay of a case of the sweep, seconds.
pub(super) fn delay(outcome: &Outcome) -> f64 {
    match outcome.case.handoff {
        Handoff::Crossings(crossings) => {
            crossings.rendezvous.map_or(0.0, |delay| delay.0.as_secs_f64())
        }
        Handoff::None | Handoff::Walk => 0.0,
    }
}

/// The sweep with one scheme, from the shortest delay to the longest.
pub(super) fn sweep<'a>(results: &'a Results, scheme: &str) -> Vec<&'a Outcome> {
    let mut outcomes: Vec<&Outcome> =
        results.of(NAME, SWEEP).iter().filter(|one| one.is(scheme)).collect();
    outcomes.sort_by(|a, b| delay(a).total_cmp(&delay(b)));
    outcomes
}

fn exponential(results: &Results) -> Judged {
    let plain = sweep(results, PLAIN.1);
    let all = || plain.iter().flat_map(|outcome| crossings(outcome));
    let after =
        |count: usize| mean(all().filter(|one| one.timeouts.len() == count).filter_map(pause));
    let steps: Vec<f64> = (1..4).map(|count| after(count + 1).0 - after(count).0).collect();
    let mut criteria = Vec::new();
    for two in steps.windows(2) {
        let ratio = two[1] / two[0];
        criteria.push(criterion(
            (ratio - 2.0).abs() <= 0.3,
            format!(
                "a step of {:.2} s after one of {:.2}: {ratio:.2} times (2, 15 %)",
                two[1], two[0]
            ),
        ));
    }
    let pauses: Vec<f64> = plain.iter().map(|outcome| per_run(outcome, pause).0).collect();
    criteria.push(criterion(
        pauses.is_sorted(),
        format!(
            "the mean pause never falls as the delay grows, to {:.2} s",
            pauses[pauses.len() - 1]
        ),
    ));
    let mut points = Vec::new();
    for outcome in &plain {
        let at = format!("rendezvous {} s", delay(outcome));
        points.push(point("pause, s", &at, per_run(outcome, pause), None));
    }
    for count in 1..=4 {
        points.push(point("pause, s", &format!("{count} timeouts"), after(count), None));
    }
    Judged::shape(
        "times the step before, the last step",
        (steps[2] / steps[1], None),
        "steps double as timeouts add up; never shorter for a longer delay",
        criteria,
    )
    .with_theirs(2.0)
    .with_points(points)
}
