//! The advice judges what was measured; a prediction beside it changes nothing.

use node::scenario::Axis;
use node::{Case, Draft, Plan, Scenario};
use sansio::Instant;
use study::handoffs::HandoffCost;
use study::statistics::Quantiles;
use study::{QueueDelay, Row, Sample, World, advice};
use trace::metrics::{Measures, Transfer};

/// A row whose runs deliver a megabyte in these times.
fn row(scheme: &str, world: World, seconds: &[f64]) -> Row {
    let schemes = Some(Axis(vec![scheme.to_owned()]));
    let scenario = Scenario::complete(Draft { schemes, ..Draft::default() }).expect("complete");
    let case: &Case = &scenario.cases()[0];
    let sample = |(seed, seconds): (usize, &f64)| {
        let transfer = Transfer {
            delivered_bytes: 1_000_000,
            last_delivered_at: Instant::from_nanos((seconds * 1e9) as u64),
            complete: true,
            ..Transfer::default()
        };
        Sample {
            seed: seed as u64,
            seconds: *seconds,
            finished: true,
            measures: Measures { transfers: vec![transfer], ..Measures::default() },
            failures: Vec::new(),
            radio_late: None,
            radio_mishaps: 0,
        }
    };
    let samples = seconds.iter().enumerate().map(sample).collect();
    Row::new(case, &Plan::for_lab(&scenario, case), world, samples)
}

const SLOW: [f64; 3] = [8.0, 8.2, 8.4];
const FAST: [f64; 3] = [4.0, 4.1, 4.2];

#[test]
fn a_prediction_beside_a_measurement_neither_makes_nor_breaks_the_advice() {
    let helps = [row("plain", World::Lab, &SLOW), row("snoop", World::Lab, &FAST)];
    let alone = advice(&helps);
    assert!(alone.starts_with("Use snoop: 2.00 x") && !alone.contains("cases)"), "{alone}");
    let against = [row("plain", World::Sim, &FAST), row("snoop", World::Sim, &SLOW)];
    let [plain, snoop] = helps;
    let [no_plain, no_snoop] = against;
    assert_eq!(advice(&[plain, no_plain, snoop, no_snoop]), alone);

    let does_not = [row("plain", World::Lab, &FAST), row("snoop", World::Lab, &FAST)];
    let alone = advice(&does_not);
    assert!(alone.starts_with("Leave the path as it is"), "{alone}");
    assert!(alone.contains("by +0.0 %"), "{alone}");
    let hardly = [row("plain", World::Lab, &[4.0]), row("snoop", World::Lab, &[4.0001])];
    assert!(advice(&hardly).contains("by +0.0 %"), "{}", advice(&hardly));
    let praise = [row("plain", World::Sim, &SLOW), row("snoop-modern", World::Sim, &FAST)];
    let all: Vec<Row> = does_not.into_iter().chain(praise).collect();
    assert_eq!(advice(&all), alone);
}

#[test]
fn predictions_alone_are_judged_by_their_means_and_measurements_by_their_medians() {
    // One of three runs was disturbed: the mean of the goodputs moves, the median does not.
    let disturbed = [4.0, 4.0, 40.0];
    for (world, expected) in [(World::Sim, "1.40 x"), (World::Lab, "2.00 x")] {
        let rows = [row("plain", world, &[8.0, 8.0, 8.0]), row("snoop", world, &disturbed)];
        let text = advice(&rows);
        assert!(text.contains(expected), "{world:?}: {text}");
    }
}

#[test]
fn who_wins_goodput_and_makes_others_wait_is_told_so() {
    let with = |scheme, seconds: &[f64], latency: f64, queue: f64| {
        let mut row = row(scheme, World::Sim, seconds);
        row.latency_s = Quantiles::of(&[latency]);
        row.queue_delay_s = Some(QueueDelay { p50: queue / 2.0, p99: queue });
        row
    };
    let plain = with("plain", &SLOW, 0.1, 0.05);
    let told = advice(&[plain.clone(), with("snoop", &FAST, 0.25, 0.15)]);
    let harm = "; but messages take up to 2.5 x as long (p99); but data waits up to 150 ms at the \
                last hop (p99), behind plain TCP 50 ms.";
    assert!(told.starts_with("Use snoop: 2.00 x") && told.ends_with(harm), "{told}");
    let harmless = advice(&[plain.clone(), with("snoop", &FAST, 0.11, 0.055)]);
    assert!(harmless.ends_with("it was slower in none of the cases."), "{harmless}");
    let short = with("plain", &SLOW, 0.1, 0.001);
    let tiny = advice(&[short, with("snoop", &FAST, 0.1, 0.009)]);
    assert!(!tiny.contains("waits"), "9 ms are nobody's concern: {tiny}");
    // Errors starve plain TCP, and nothing waits behind it; where it fills the link, as long.
    let starved = {
        let mut rows = [with("plain", &SLOW, 0.1, 0.004), with("snoop", &FAST, 0.1, 0.055)];
        rows.iter_mut().for_each(|row| row.ber = "1/64Kbit".into());
        rows
    };
    let filled = [plain, with("snoop", &FAST, 0.1, 0.055)];
    let alone = advice(&starved);
    assert!(alone.ends_with("waits up to 55 ms at the last hop (p99), behind plain TCP 4 ms."));
    let both: Vec<Row> = filled.into_iter().chain(starved).collect();
    assert!(!advice(&both).contains("waits"), "{}", advice(&both));
}

#[test]
fn after_handoffs_the_advice_names_stalls_losses_and_harm() {
    let with = |scheme, seconds: &[f64], stall: f64, lost: f64| {
        let mut row = row("plain", World::Sim, seconds);
        row.scheme = String::from(scheme);
        row.handoffs = Some(HandoffCost {
            handoffs: 3,
            stall_s: None,
            receiver_stall_s: Quantiles::of(&[stall]),
            until_consistent_s: None,
            until_first_packet_s: None,
            until_registered_s: None,
            latency_s: None,
            lost,
            messages: 40.0,
            message_bytes: 4_000.0,
        });
        row
    };
    let plain = with("mobile-ip", &SLOW, 0.4, 80.0);
    let told = advice(&[plain.clone(), with("forwarding", &FAST, 0.1, 2.5)]);
    let reason = "stalls after handoffs at least 4.0 x shorter (p95), as a handoff loses 2.5 \
                  segments and not 80.0; it was slower in none of the cases.";
    assert!(told.starts_with("Use forwarding: 2.00 x") && told.ends_with(reason), "{told}");
    let told = advice(&[plain.clone(), with("multicast", &FAST, 0.8, 90.0)]);
    assert!(told.ends_with("; but stalls may be 2.0 x as long (p95)."), "{told}");
    assert!(!told.contains("loses"), "{told}");
    let told = advice(&[plain, with("multicast", &SLOW, 0.39, 80.0)]);
    assert!(told.starts_with("Leave the path as it is"), "{told}");
}
