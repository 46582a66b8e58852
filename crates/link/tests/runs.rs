//! Runs of measured lengths, against the distributions they were drawn from.

use link::channel::{Config as Channel, runs};
use link::recorded::{Reader, Unexpected};
use link::{Hop, Loss, What, hop::Config};
use runs::Lengths;
use sansio::{BitRate, Duration, Instant, Priority};
use std::collections::BTreeMap;
use std::sync::Arc;

fn read(lines: &[&str]) -> Result<Lengths, Unexpected> {
    let mut reader = Reader::<Lengths>::default();
    for line in lines {
        reader.line(line.as_bytes())?;
    }
    reader.finish()
}

fn lengths(lines: &[&str]) -> Arc<Lengths> {
    Arc::new(read(lines).unwrap_or_else(|error| panic!("line {}: {error}", error.line)))
}

/// Which of so many packets are lost, one every 10 ms.
fn losses(config: &runs::Config, seed: u64, count: u64) -> Vec<bool> {
    let hop = Config {
        channels: vec![Channel::Runs(config.clone())],
        ..Config::clean(BitRate::from_mbps(8), Duration::from_millis(1))
    };
    let mut hop: Hop<u64> = Hop::new(&hop, seed, "down");
    let mut lost = vec![false; count as usize];
    for number in 0..count {
        let now = Instant::ZERO + Duration::from_millis(10) * number;
        hop.enqueue(number, 100, Priority::Normal, now).expect("room");
        while let Some(outcome) = hop.poll(now + Duration::from_millis(5)) {
            if let What::Lost(number, loss) = outcome.what {
                assert_eq!(loss, Loss::Run);
                lost[number as usize] = true;
            }
        }
    }
    lost
}

/// The sum of (seen - expected)^2 / expected over the lengths.
fn chi_square(seen: &BTreeMap<usize, u64>, shares: &[(usize, f64)]) -> f64 {
    let total: u64 = seen.values().sum();
    let of = |(length, share): &(usize, f64)| {
        let expected = share * total as f64;
        let seen = seen.get(length).copied().unwrap_or(0) as f64;
        (seen - expected) * (seen - expected) / expected
    };
    shares.iter().map(of).sum()
}

#[test]
fn runs_have_the_lengths_of_the_files() {
    let good = ["1 10", "2 20", "3 5", "10 40", "50 25"];
    let bad = ["1 0.5", "2 0.25", "5 0.25"];
    let config = runs::Config { good: lengths(&good), bad: lengths(&bad) };
    let lost = losses(&config, 3, 400_000);
    let mut seen = [BTreeMap::new(), BTreeMap::new()];
    let runs: Vec<&[bool]> = lost.chunk_by(|a, b| a == b).collect();
    // The first and the last may be cut.
    for run in &runs[1..runs.len() - 1] {
        *seen[usize::from(run[0])].entry(run.len()).or_insert(0_u64) += 1;
    }
    assert!(seen[0].values().sum::<u64>() > 10_000);
    let shares = [
        &[(1, 0.1), (2, 0.2), (3, 0.05), (10, 0.4), (50, 0.25)][..],
        &[(1, 0.5), (2, 0.25), (5, 0.25)],
    ];
    // The 99.9 % quantiles of chi-square with 4 and 2 degrees of freedom.
    for ((seen, shares), limit) in seen.iter().zip(shares).zip([18.47, 13.82]) {
        assert_eq!(seen.len(), shares.len(), "no other lengths: {seen:?}");
        let chi_square = chi_square(seen, shares);
        assert!(chi_square < limit, "chi-square {chi_square}: {seen:?}");
    }
    assert_eq!(config.mean_loss(), 2.25 / (2.25 + 17.15));
    let share = lost.iter().filter(|lost| **lost).count() as f64 / lost.len() as f64;
    assert!((share - config.mean_loss()).abs() < 0.003, "{share}");
}

#[test]
fn a_hop_begins_within_a_run() {
    let config = runs::Config { good: lengths(&["1 1", "9 1"]), bad: lengths(&["2 1"]) };
    let begins: Vec<Vec<bool>> = (0..8000).map(|seed| losses(&config, seed, 10)).collect();
    let share = |count: usize| count as f64 / begins.len() as f64;
    let first = share(begins.iter().filter(|lost| lost[0]).count());
    assert!((first - config.mean_loss()).abs() < 0.02, "{first} begin with a loss");
    // In the long run of nine with 9/10; its rest is 1 to 9 packets alike.
    let clean = |lost: &&Vec<bool>| lost[..9].iter().all(|lost| !lost);
    let whole = share(begins.iter().filter(clean).count());
    let expected = (1.0 - config.mean_loss()) * 0.9 / 9.0;
    assert!((whole - expected).abs() < 0.015, "{whole} begin with nine good ones, {expected}");
}

#[test]
fn bad_distributions_are_refused() {
    for (lines, line) in [
        (&[][..], 0),
        (&["1 0"], 1),
        (&["0 1"], 1),
        (&["1"], 1),
        (&["1 2 3"], 1),
        (&["1 -2"], 1),
        (&["1 nan"], 1),
        (&["1 inf"], 1),
        (&["1.5 2"], 1),
        (&["2 1", "1 1", "2 1"], 3),
        (&["1000000001 1"], 1),
        (&["# length count", "1 1"], 1),
    ] {
        assert_eq!(read(lines).expect_err("refused").line, line, "{lines:?}");
    }
    assert!(read(&["3\t7\r\n", "1 2e-3\n", "\n"]).is_ok());
}
