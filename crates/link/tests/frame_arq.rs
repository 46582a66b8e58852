//! A link layer that repeats frames: when, how often, and what it says.

use link::channel::{Config as Channel, packet_loss};
use link::hop::{Config, frame_arq};
use link::outage::{Length, Mode, Planned, Schedule, Spec};
use link::{Hop, Limit, Loss, What};
use sansio::{BitRate, Duration, Instant, Priority};

/// 1000 bytes take 1 ms; ACKs come 0.5 ms after the frame.
fn config(retry: frame_arq::Retry, loss: f64) -> Config {
    let ack_time = Duration::from_micros(300);
    Config {
        queue: Limit::Packets(u32::MAX),
        frame_arq: Some(frame_arq::Config { retry, ack_time }),
        channels: vec![Channel::PacketLoss(packet_loss::Config { probability: loss })],
        report_departures: true,
        ..Config::clean(BitRate::from_mbps(8), Duration::from_micros(100))
    }
}

/// All that happens to so many packets of 1000 bytes, in milliseconds.
fn outcomes(config: &Config, packets: u32) -> (Vec<(f64, What<u32>)>, Hop<u32>) {
    let mut hop = Hop::new(config, 1, "down");
    for packet in 0..packets {
        hop.enqueue(packet, 1000, Priority::Normal, Instant::ZERO).expect("room");
    }
    let mut all = Vec::new();
    while let Some(now) = hop.next_event() {
        while let Some(outcome) = hop.poll(now) {
            assert_eq!(outcome.at, now, "{outcome:?}");
            all.push((outcome.at.as_nanos() as f64 / 1e6, outcome.what));
        }
    }
    (all, hop)
}

#[test]
fn metp_ll_3_the_verdict_comes_with_the_ack_and_then_the_next_frame_goes() {
    let (all, _) = outcomes(&config(frame_arq::Retry::Persistent, 0.0), 2);
    let expected = [
        (0.0, What::Departed(0)),
        (1.1, What::Arrived(0)),
        (1.5, What::Verdict(0, true)),
        (1.5, What::Departed(1)),
        (2.6, What::Arrived(1)),
        (3.0, What::Verdict(1, true)),
    ];
    assert_eq!(all, expected);
}

#[test]
fn metp_ll_2_what_never_arrives_is_sent_once_and_as_often_as_allowed_and_then_given_up() {
    for retries in [0, 2] {
        let (all, hop) = outcomes(&config(frame_arq::Retry::Limited(retries), 1.0), 1);
        let last = f64::from(retries) * 1.5;
        let expected = [
            (0.0, What::Departed(0)),
            (last + 1.1, What::Lost(0, Loss::Packet)),
            (last + 1.5, What::Verdict(0, false)),
        ];
        assert_eq!(all, expected, "{retries} repetitions");
        assert_eq!(hop.statistics().air_bytes, 1000 * u64::from(retries + 1));
        assert_eq!((hop.statistics().departed, hop.statistics().lost_total()), (1, 1));
    }
}

/// How many packets took how many tries, and how many were given up.
fn tries(retry: frame_arq::Retry, loss: f64, packets: u32) -> (Vec<f64>, f64) {
    let (all, _) = outcomes(&config(retry, loss), packets);
    let (mut counts, mut given_up, mut free_at) = (Vec::new(), 0.0, 0.0);
    for (at, what) in all {
        let What::Verdict(_, acknowledged) = what else { continue };
        let tries: f64 = (at - free_at) / 1.5;
        free_at = at;
        if !acknowledged {
            given_up += 1.0;
            continue;
        }
        let index = tries.round() as usize - 1;
        counts.resize(counts.len().max(index + 1), 0.0);
        counts[index] += 1.0;
    }
    (counts, given_up)
}

#[test]
fn base_10_tries_are_geometric_and_persistence_loses_nothing() {
    let (loss, packets) = (0.3, 50_000);
    let (counts, given_up) = tries(frame_arq::Retry::Persistent, loss, packets);
    assert_eq!(given_up, 0.0);
    let total = f64::from(packets);
    // The first seven, and all that took more, against (1 - p) p^(n - 1).
    let mut chi_square = 0.0;
    let mut more = (total, total);
    for (index, seen) in counts.iter().take(7).enumerate() {
        let expected = total * (1.0 - loss) * libm::pow(loss, index as f64);
        chi_square += (seen - expected) * (seen - expected) / expected;
        more = (more.0 - seen, more.1 - expected);
    }
    chi_square += (more.0 - more.1) * (more.0 - more.1) / more.1;
    // The 99.9 % quantile with 7 degrees of freedom.
    assert!(chi_square < 24.32, "chi-square {chi_square}: {counts:?}");
    let weighted = counts.iter().enumerate().map(|(index, count)| (index + 1) as f64 * count);
    let mean = weighted.sum::<f64>() / total;
    let deviation = (loss / total).sqrt() / (1.0 - loss);
    assert!((mean - 1.0 / (1.0 - loss)).abs() < 4.0 * deviation, "{mean} tries");
}

#[test]
fn base_10_limited_repetition_gives_its_share_up() {
    let (loss, packets) = (0.3, 50_000);
    let (counts, given_up) = tries(frame_arq::Retry::Limited(2), loss, packets);
    assert_eq!(counts.len(), 3, "no more than three tries");
    let (share, expected) = (given_up / f64::from(packets), libm::pow(loss, 3.0));
    let deviation = (expected * (1.0 - expected) / f64::from(packets)).sqrt();
    assert!((share - expected).abs() < 4.0 * deviation, "{share}, expected {expected}");
}

#[test]
fn a_persistent_link_layer_outlasts_an_outage_that_loses_and_waits_for_one_that_holds() {
    let length = Length::fixed(Duration::from_millis(10));
    let start = Instant::from_nanos(500_000);
    // Seven tries are lost from 0 to 9 ms, the eighth begins with the link's return at 10.5 ms.
    for (mode, air_bytes) in [(Mode::Lose, 8000), (Mode::Hold, 1000)] {
        let schedule = Schedule::At(vec![Planned { start, spread: Duration::ZERO, length }]);
        let outages = Spec { schedule, mode, notified: false };
        let config = Config { outages, ..config(frame_arq::Retry::Persistent, 0.0) };
        let (all, hop) = outcomes(&config, 1);
        let arrived = all.iter().find(|(_, what)| *what == What::Arrived(0));
        assert_eq!(arrived.map(|(at, _)| *at), Some(11.6), "{mode:?}: {all:?}");
        assert_eq!(hop.statistics().air_bytes, air_bytes, "{mode:?}");
    }
}
