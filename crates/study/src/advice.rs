//! One sentence of advice with its reason, from the rows of a comparison.

use crate::row::{Row, Sample, World};
use crate::statistics::{Mean, Quantiles};

/// A gain in goodput below this is not worth a box in the path.
pub const WORTH_IT: f64 = 1.03;
/// A stall this many times shorter is.
const STALL_WORTH_IT: f64 = 1.5;
/// A delay grown by this much is noticed, and said.
const DELAY_NOTICED: f64 = 1.2;
/// A queue delay below this, seconds, is nobody's concern, however it has grown.
const QUEUE_NOTICED_S: f64 = 0.01;

/// How one scheme compares with plain over all cases that have both.
#[derive(Clone, Debug, PartialEq)]
struct Gain<'a> {
    scheme: &'a str,
    /// Geometric mean over the cases of the ratio of goodputs ([`Row::typical_goodput_bps`]).
    goodput: f64,
    /// The smallest and the largest of these ratios.
    range: (f64, f64),
    /// Cases in which the goodput is lower than plain's by more than the 95 % interval of the
    /// paired difference.
    slower: usize,
    cases: usize,
    /// Plain's 95th percentile of the stall after an outage over the scheme's, or after a handoff
    /// at the receiver, the worst case.
    stall: Option<f64>,
    /// TCP segments lost per handoff with the scheme and with plain, means of the cases.
    lost: Option<(f64, f64)>,
    /// The scheme's 99th percentile of the latency of messages over plain's, the worst case.
    latency: Option<f64>,
    /// Its 99th percentile of the queue delay, and plain's of the same sender in the case in which
    /// data waits longest behind it (elsewhere the link may stand idle), in seconds; of all senders
    /// the two furthest apart.
    queue: Option<(f64, f64)>,
}

/// The advice. Where real kernels were measured, they alone are judged: a prediction beside them
/// neither makes nor breaks it.
pub fn advice(rows: &[Row]) -> String {
    let measured = rows.iter().any(|row| row.world == World::Lab);
    let world = if measured { World::Lab } else { World::Sim };
    let rows: Vec<&Row> = rows.iter().filter(|row| row.world == world).collect();
    let mut names: Vec<&str> = Vec::new();
    for row in &rows {
        if !names.contains(&row.scheme.as_str()) && !is_plain(row) {
            names.push(&row.scheme);
        }
    }
    let gains: Vec<Gain<'_>> = names.iter().filter_map(|name| gain(&rows, name)).collect();
    let score = |gain: &Gain<'_>| gain.goodput * gain.stall.unwrap_or(1.0).sqrt();
    let best = gains.iter().max_by(|a, b| score(a).total_cmp(&score(b)));
    let Some(best) = best else {
        return "Nothing to compare: name plain and at least one other scheme.".into();
    };
    let stall_helps = best.stall.is_some_and(|stall| stall >= STALL_WORTH_IT);
    if best.goodput < WORTH_IT && !stall_helps {
        return format!(
            "Leave the path as it is: the best scheme, {}, changes the goodput of plain TCP by \
             {:+.1} % on average.",
            best.scheme,
            // What rounds to nothing has no sign.
            ((best.goodput - 1.0) * 1000.0).round() / 10.0 + 0.0
        );
    }
    sentence(best, stall_helps)
}

fn sentence(best: &Gain<'_>, stall_helps: bool) -> String {
    let mut reason = format!("{:.2} x the goodput of plain TCP", best.goodput);
    if best.cases > 1 {
        let (least, most) = best.range;
        reason =
            format!("{reason} on average ({least:.2} x to {most:.2} x in {} cases)", best.cases);
    }
    if stall_helps && let Some(stall) = best.stall {
        let after = if best.lost.is_some() { "handoffs" } else { "outages" };
        reason = format!("{reason}, stalls after {after} at least {stall:.1} x shorter (p95)");
    }
    if let Some((with, without)) = best.lost.filter(|(with, without)| with < without) {
        reason = format!("{reason}, as a handoff loses {with:.1} segments and not {without:.1}");
    }
    let caution = match best.slower {
        0 => "it was slower in none of the cases".to_owned(),
        1 => "it was slower in one case".to_owned(),
        slower => format!("it was slower in {slower} cases"),
    };
    let harm = harm(best).into_iter().map(|harm| format!("; but {harm}"));
    format!("Use {}: {reason}; {caution}{}.", best.scheme, harm.collect::<String>())
}

/// What gets worse while goodput or stalls get better.
fn harm(gain: &Gain<'_>) -> Vec<String> {
    let mut harm = Vec::new();
    if let Some(stall) = gain.stall.filter(|ratio| ratio * DELAY_NOTICED <= 1.0) {
        harm.push(format!("stalls may be {:.1} x as long (p95)", 1.0 / stall));
    }
    if let Some(latency) = gain.latency.filter(|ratio| *ratio >= DELAY_NOTICED) {
        harm.push(format!("messages take up to {latency:.1} x as long (p99)"));
    }
    if let Some((with, without)) =
        gain.queue.filter(|(with, without)| *with >= without * DELAY_NOTICED)
    {
        harm.push(format!(
            "data waits up to {:.0} ms at the last hop (p99), behind plain TCP {:.0} ms",
            with * 1e3,
            without * 1e3
        ));
    }
    harm
}

fn gain<'a>(rows: &[&Row], scheme: &'a str) -> Option<Gain<'a>> {
    let mut gain = Gain {
        scheme,
        goodput: 0.0,
        range: (f64::INFINITY, 0.0),
        slower: 0,
        cases: 0,
        stall: None,
        lost: None,
        latency: None,
        queue: None,
    };
    let mut product = 1.0;
    for plain in rows.iter().filter(|row| is_plain(row)) {
        let same = |row: &&&Row| row.scheme == scheme && is_same_case(row, plain);
        let Some(row) = rows.iter().find(same) else { continue };
        let goodputs = (row.typical_goodput_bps(), plain.typical_goodput_bps());
        let (Some(with), Some(without)) = goodputs else { continue };
        // A transfer that never gets a byte through would make the ratio infinite.
        let ratio = with / without.max(1.0);
        product *= ratio;
        gain.cases += 1;
        gain.range = (gain.range.0.min(ratio), gain.range.1.max(ratio));
        gain.slower += usize::from(is_slower(&row.samples, &plain.samples));
        if let (Some(with), Some(without)) = (&row.handoffs, &plain.handoffs) {
            let (own, theirs) = gain.lost.unwrap_or_default();
            gain.lost = Some((own + with.lost, theirs + without.lost));
        }
        if let (Some(with), Some(without)) = (stall(row), stall(plain)) {
            let ratio = without.p95 / with.p95.max(1e-3);
            gain.stall = Some(gain.stall.map_or(ratio, |stall: f64| stall.min(ratio)));
        }
        if let (Some(with), Some(without)) = (row.latency_s, plain.latency_s) {
            let ratio = with.p99 / without.p99.max(1e-3);
            gain.latency = Some(gain.latency.map_or(ratio, |latency: f64| latency.max(ratio)));
        }
        if let Some(with) = row.queue_delay_s.filter(|with| with.p99 >= QUEUE_NOTICED_S) {
            let without = longest_wait(rows, plain);
            let worst = gain.queue.filter(|worst| worst.0 / worst.1 >= with.p99 / without);
            gain.queue = worst.or(Some((with.p99, without)));
        }
    }
    let cases = gain.cases as f64;
    gain.lost = gain.lost.map(|(with, without)| (with / cases, without / cases));
    gain.goodput = libm::pow(product, 1.0 / cases);
    (gain.cases > 0).then_some(gain)
}

/// True for a base station that only forwards, however hosts change cells without help: the one
/// that others are held against.
fn is_plain(row: &Row) -> bool {
    row.scheme == "plain" || row.scheme == "mobile-ip"
}

/// Stalls after handoffs, if there are cells, or else after outages.
fn stall(row: &Row) -> Option<Quantiles> {
    let after_handoff = row.handoffs.as_ref().and_then(|handoffs| handoffs.receiver_stall_s);
    after_handoff.or(row.stall_after_outage_s)
}

/// The longest 99th percentile of plain's queue delay with this sender in any case, at least 1 ms.
fn longest_wait(rows: &[&Row], plain: &Row) -> f64 {
    let same = |row: &&&Row| {
        row.scheme == plain.scheme
            && row.tcp == plain.tcp
            && row.sack == plain.sack
            && row.direction == plain.direction
    };
    let waits = rows.iter().filter(same).filter_map(|row| Some(row.queue_delay_s?.p99));
    waits.fold(1e-3, f64::max)
}

fn is_same_case(row: &Row, plain: &Row) -> bool {
    row.tcp == plain.tcp
        && row.sack == plain.sack
        && row.direction == plain.direction
        && row.ber == plain.ber
        && row.loss == plain.loss
        && row.outage == plain.outage
        && row.handoff == plain.handoff
}

/// True if the paired differences of goodput are below zero by more than their 95 % interval.
fn is_slower(with: &[Sample], without: &[Sample]) -> bool {
    let pairs = with.iter().filter_map(|a| {
        let b = without.iter().find(|b| b.seed == a.seed)?;
        Some(a.goodput_bps() - b.goodput_bps())
    });
    let differences: Vec<f64> = pairs.collect();
    match Mean::of(&differences) {
        Some(Mean { mean, ci95: Some(ci95), .. }) => mean + ci95 < 0.0,
        Some(Mean { mean, ci95: None, .. }) => mean < 0.0,
        None => false,
    }
}
