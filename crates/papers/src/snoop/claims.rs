//! What section 7 and the summary claim without a figure, as far as no handoff is needed.

use super::{NAME, at, experiment, figure_7, point, ratio, sweep};
use crate::judged::{Criterion, Judged, Point, criterion};
use crate::paper::Experiment;
use crate::runs::{Outcome, Results};
use node::roaming::KEPT_PACKETS;
use node::scenario::BitErrors;

const SWEEP: &str = figure_7::STUDY;
const LOSSES: &str = "multiple-losses";

pub(super) const EXPERIMENTS: [Experiment; 4] = [
    experiment(("EXP-SN-0", "section 7"), "peak throughput without losses", &[SWEEP], peak),
    experiment(
        ("EXP-SN-S-d", "section 3"),
        "the same throughput as TCP at 10 times higher bit error rates",
        &[SWEEP],
        shift,
    ),
    experiment(
        ("EXP-SN-S-f", "sections 1 and 10"),
        "Snoop is more robust to several losses in one window",
        &[LOSSES],
        several_losses,
    ),
    experiment(
        ("EXP-SN-S-g", "section 8"),
        "few packets are retransmitted both locally and by the sender",
        &[SWEEP],
        overlap,
    ),
];

pub(super) const BUFFER: Experiment = experiment(
    ("EXP-SN-S-i", "section 6"),
    "12 buffered packets are 24 to 72 ms of air",
    &[SWEEP],
    buffered_air,
);

/// Twelve packets of 1500 bytes, and of 500, at the radio's 2 Mbit/s: arithmetic, with the buffer
/// that the base stations have.
fn buffered_air(_: &Results) -> Judged {
    const RADIO_BPS: f64 = 2e6;
    let kept = KEPT_PACKETS as f64;
    let [long, short] = [1500.0, 500.0].map(|bytes| kept * bytes * 8.0 / RADIO_BPS * 1e3);
    let criteria = vec![
        criterion(long == 72.0, format!("{kept} packets of 1500 B: {long} ms (72)")),
        criterion(short == 24.0, format!("{kept} packets of 500 B: {short} ms (24)")),
    ];
    Judged::number("ms, packets of 1500 B", (long, None), (72.0, "exact"), criteria)
}

fn peak(results: &Results) -> Judged {
    const PUBLISHED: f64 = 1.6;
    let outcome = at(sweep(results), "plain", BitErrors::None).expect("the study has no errors");
    let (ours, ci95) = outcome.mbps();
    let off = (ours / PUBLISHED - 1.0) * 100.0;
    let holds = criterion(off.abs() <= 3.0, format!("{off:+.2} % from 1.6 Mbit/s (3 %)"));
    Judged::number("Mbit/s", (ours, ci95), (PUBLISHED, "calibrated to it, +-3 %"), vec![holds])
        .with_points(vec![point("plain", "none".into(), outcome)])
}

/// Throughputs against error rates, falling.
fn curve(outcomes: &[Outcome], scheme: &str) -> Vec<(f64, f64)> {
    let with_errors =
        |one: &&Outcome| one.is(scheme) && matches!(one.case.ber, BitErrors::OneIn(_));
    let points = outcomes.iter().filter(with_errors);
    let mut curve: Vec<(f64, f64)> =
        points.map(|one| (one.case.ber.rate(), one.mbps().0)).collect();
    curve.sort_by(|a, b| a.0.total_cmp(&b.0));
    curve
}

/// The error rate at which a falling curve has this throughput, between its points by the logarithm
/// of the rate.
fn rate_at(curve: &[(f64, f64)], mbps: f64) -> Option<f64> {
    let two = curve.windows(2).find(|two| two[0].1 >= mbps && mbps >= two[1].1)?;
    let share = (two[0].1 - mbps) / (two[0].1 - two[1].1);
    Some(two[0].0 * libm::pow(two[1].0 / two[0].0, share))
}

fn shift(results: &Results) -> Judged {
    const WELL_BELOW_PEAK: f64 = 0.9;
    let outcomes = sweep(results);
    let peak = at(outcomes, "plain", BitErrors::None).map_or(0.0, |one| one.mbps().0);
    let snoop = curve(outcomes, "snoop");
    let mut points = Vec::new();
    let mut criteria = Vec::new();
    for (rate, mbps) in curve(outcomes, "plain") {
        // Near the peak both curves are flat; beyond the sweep Snoop's has no such throughput.
        let higher = rate_at(&snoop, mbps).filter(|_| mbps < peak * WELL_BELOW_PEAK);
        let Some(higher) = higher else { continue };
        let ours = higher / rate;
        let at = format!("{rate:.1e}");
        criteria.push(criterion(
            (5.0..=50.0).contains(&ours),
            format!("TCP's {mbps:.3} Mbit/s at {at} is Snoop's at a rate {ours:.1} times higher"),
        ));
        let series = "shift".to_owned();
        points.push(Point { series, at, ours, ci95: None, theirs: None, span: None, on_air: None });
    }
    criteria.push(criterion(!points.is_empty(), format!("{} throughputs compared", points.len())));
    let logs: f64 = points.iter().map(|point| libm::log(point.ours)).sum();
    let mean = libm::exp(logs / points.len().max(1) as f64);
    Judged::shape(
        "times, the mean shift at equal throughput",
        (mean, None),
        "5 to 50 times at each throughput below 90 % of the peak",
        criteria,
    )
    .with_theirs(10.0)
    .with_points(points)
}

fn several_losses(results: &Results) -> Judged {
    let outcomes = results.of(NAME, LOSSES);
    let mut points = Vec::new();
    let mut criteria: Vec<Criterion> = Vec::new();
    let mut least: Option<(f64, Option<f64>)> = None;
    for plain in outcomes.iter().filter(|one| one.is("plain")) {
        let alike = |one: &&Outcome| one.is("snoop") && one.case.loss == plain.case.loss;
        let Some(snoop) = outcomes.iter().find(alike) else { continue };
        let losses = plain.case.loss.to_string();
        points.extend(
            [("snoop", snoop), ("plain", plain)]
                .map(|(name, one)| point(name, losses.clone(), one)),
        );
        let ((with, ci_with), (without, ci_without)) = (snoop.mbps(), plain.mbps());
        let apart = with - ci_with.unwrap_or(0.0) > without + ci_without.unwrap_or(0.0);
        criteria.push(criterion(
            apart && snoop.row.timeouts < plain.row.timeouts,
            format!(
                "{losses}: Snoop {with:.3} Mbit/s and {:.1} timeouts a run, plain {without:.3} and \
                 {:.1}",
                snoop.row.timeouts, plain.row.timeouts
            ),
        ));
        let gain = ratio((with, ci_with), (without, ci_without));
        least = Some(least.filter(|least| least.0 <= gain.0).unwrap_or(gain));
    }
    criteria.push(criterion(!points.is_empty(), format!("{} kinds of losses", points.len() / 2)));
    Judged::shape(
        "times, the least gain",
        least.unwrap_or((0.0, None)),
        "above plain TCP beyond both intervals, with fewer timeouts, at each length of bursts",
        criteria,
    )
    .with_points(points)
}

fn overlap(results: &Results) -> Judged {
    /// The rates at which it is claimed.
    const RATE_MAX: f64 = 4e-6;
    let mut points = Vec::new();
    let mut criteria = Vec::new();
    for one in sweep(results).iter().filter(|one| one.is("snoop")) {
        if one.case.ber == BitErrors::None || one.case.ber.rate() > RATE_MAX {
            continue;
        }
        let both: u64 = one.watched.iter().map(|run| run.resent_by_both).sum();
        let seeds = one.row.seeds as f64;
        let local = one.row.retransmissions_local * seeds;
        let end_to_end = one.row.retransmissions_end_to_end * seeds;
        let ours = both as f64 / (local + end_to_end).max(1.0) * 100.0;
        let at = one.case.ber.to_string();
        criteria.push(criterion(
            ours < 5.0,
            format!("{at}: {both} by both, {local:.0} locally, {end_to_end:.0} by the sender"),
        ));
        let series = "by both".to_owned();
        points.push(Point { series, at, ours, ci95: None, theirs: None, span: None, on_air: None });
    }
    criteria.push(criterion(!points.is_empty(), format!("{} error rates", points.len())));
    let most = points.iter().map(|point| point.ours).fold(0.0, f64::max);
    Judged::shape(
        "% of retransmissions made by both, the most",
        (most, None),
        "< 5 % at rates up to 4e-6",
        criteria,
    )
    .with_points(points)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_of_a_throughput_lies_between_the_points_by_its_logarithm() {
        let curve = [(1e-7, 1.5), (1e-6, 1.0), (1e-5, 0.2)];
        assert_eq!(rate_at(&curve, 1.5), Some(1e-7));
        let middle = rate_at(&curve, 0.6).expect("on the curve");
        assert!((middle / 1e-6 - 10_f64.sqrt()).abs() < 1e-9);
        assert_eq!(rate_at(&curve, 0.1), None);
        assert_eq!(rate_at(&curve, 1.6), None);
    }
}
