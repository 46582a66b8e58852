//! Each channel against its formula, and against idle time and other packets.

use link::channel::{Config as Channel, arq, bit_error, burst, fade, packet_loss};
use link::{Hop, Limit, Loss, What, hop::Config};
use sansio::{BitRate, Duration, Instant, Priority};

/// What became of packet `number`: when it arrived or would have, and the loss.
type Fates = Vec<(Instant, Option<Loss>)>;

/// 1500 bytes take 6 ms, 40 bytes 0.16 ms.
fn config(channels: Vec<Channel>) -> Config {
    Config { channels, ..Config::clean(BitRate::from_mbps(2), Duration::from_millis(1)) }
}

/// Sends packets of `bytes` at the given instants, with room for each.
fn send(config: &Config, bytes: u32, times: impl Iterator<Item = Instant>) -> Fates {
    let mut hop = Hop::new(config, 11, "down");
    let mut fates: Fates = Vec::new();
    for (number, now) in times.enumerate() {
        hop.enqueue(number, bytes, Priority::Normal, now).expect("room");
        fates.push((now, None));
        settle(&mut hop, &mut fates, now);
    }
    settle(&mut hop, &mut fates, Instant::from_nanos(u64::MAX));
    fates
}

fn settle(hop: &mut Hop<usize>, fates: &mut Fates, now: Instant) {
    while let Some(outcome) = hop.poll(now) {
        match outcome.what {
            What::Arrived(number) => fates[number] = (outcome.at, None),
            What::Lost(number, loss) => fates[number] = (outcome.at, Some(loss)),
            _ => panic!("no departure was asked for"),
        }
    }
}

fn every(gap: Duration, count: u64) -> impl Iterator<Item = Instant> {
    (0..count).map(move |number| Instant::ZERO + gap * number)
}

fn lost_share(fates: &Fates) -> f64 {
    fates.iter().filter(|(_, loss)| loss.is_some()).count() as f64 / fates.len() as f64
}

/// Within four standard deviations of a share of independent trials.
fn assert_share(seen: f64, expected: f64, trials: usize, what: &str) {
    let deviation = (expected * (1.0 - expected) / trials as f64).sqrt();
    assert!((seen - expected).abs() <= 4.0 * deviation, "{what}: {seen}, expected {expected}");
}

const MILLI: Duration = Duration::from_millis(1);
const RATE_1_IN_256_KBIT: f64 = 1.0 / (256.0 * 1024.0);

#[test]
fn base_27_packet_loss_is_that_of_the_bits_with_and_without_idle_time() {
    for (bytes, rate) in [(1500, RATE_1_IN_256_KBIT), (40, 1e-4), (1500, 1e-3)] {
        let expected = 1.0 - libm::pow(1.0 - rate, f64::from(bytes) * 8.0);
        // 1500 bytes at a gap of 6 ms are back to back.
        for gap in [6, 17] {
            let config = config(vec![Channel::BitError(bit_error::Config { rate })]);
            let fates = send(&config, bytes, every(MILLI * gap, 100_000));
            assert_share(lost_share(&fates), expected, fates.len(), "loss");
        }
    }
}

#[test]
fn base_27_loss_does_not_depend_on_mac_efficiency_or_host_cost() {
    let config = Config {
        mac_efficiency: 0.4,
        host_cost: MILLI,
        ..config(vec![Channel::BitError(bit_error::Config { rate: RATE_1_IN_256_KBIT })])
    };
    let fates = send(&config, 1500, every(MILLI * 16, 100_000));
    assert_share(lost_share(&fates), 0.0447, fates.len(), "loss");
}

#[test]
fn base_27_back_to_back_packets_fail_independently() {
    let config = config(vec![Channel::BitError(bit_error::Config { rate: 5e-5 })]);
    let fates = send(&config, 1500, every(MILLI * 6, 100_000));
    let p = lost_share(&fates);
    let pairs = fates.windows(2).filter(|two| two.iter().all(|(_, loss)| loss.is_some())).count();
    assert_share(pairs as f64 / fates.len() as f64, p * p, fates.len(), "two in a row");
}

#[test]
fn base_27_every_bit_counts_once_where_a_nanosecond_holds_many() {
    // One byte takes 0.8 ns.
    let rate = 0.02;
    let config = Config {
        rate: BitRate::from_mbps(10_000),
        queue: Limit::Packets(u32::MAX),
        ..config(vec![Channel::BitError(bit_error::Config { rate })])
    };
    let fates = send(&config, 1, every(Duration::ZERO, 100_000));
    assert_share(lost_share(&fates), 1.0 - libm::pow(1.0 - rate, 8.0), fates.len(), "loss");
}

/// Channels in time meet each packet as if the others had not been sent.
fn assert_same_fate_without_the_others(channel: Channel) {
    let config = config(vec![channel]);
    let all = send(&config, 1500, every(MILLI * 7, 20_000));
    let some = send(&config, 1500, every(MILLI * 21, 20_000 / 3));
    let lost = some.iter().filter(|(_, loss)| loss.is_some()).count();
    assert!(lost > 100, "{lost} lost");
    for (number, fate) in some.iter().enumerate() {
        assert_eq!(*fate, all[number * 3], "packet {number}");
    }
}

#[test]
fn base_27_bit_errors_stay_where_they_are_whatever_else_is_sent() {
    assert_same_fate_without_the_others(Channel::BitError(bit_error::Config { rate: 1e-5 }));
}

#[test]
fn base_28_fades_stay_where_they_are_whatever_else_is_sent() {
    assert_same_fate_without_the_others(Channel::Fade(fade::Config {
        good: MILLI * 200,
        bad: MILLI * 50,
        loss: 1.0,
    }));
}

#[test]
fn independent_losses_have_their_share() {
    let config = config(vec![Channel::PacketLoss(packet_loss::Config { probability: 0.03 })]);
    let fates = send(&config, 40, every(MILLI, 100_000));
    assert_share(lost_share(&fates), 0.03, fates.len(), "loss");
}

#[test]
fn bursts_have_their_share_and_length() {
    let config = config(vec![Channel::Burst(burst::Config { mean: 0.05, length: 4.0 })]);
    let fates = send(&config, 40, every(MILLI, 400_000));
    let begins = fates.windows(2).filter(|two| two[0].1.is_none() && two[1].1.is_some()).count();
    let share = lost_share(&fates);
    let length = share * fates.len() as f64 / begins as f64;
    assert!((share - 0.05).abs() < 0.004, "share {share}");
    assert!((length - 4.0).abs() < 0.2, "length {length}");
}

#[test]
fn base_28_fades_touch_their_share_of_packets() {
    let (good, bad, loss) = (0.2, 0.05, 0.9);
    let channel = Channel::Fade(fade::Config {
        good: Duration::from_secs_f64(good),
        bad: Duration::from_secs_f64(bad),
        loss,
    });
    let config = config(vec![channel]);
    for (bytes, air) in [(40, 0.16e-3), (1500, 6e-3)] {
        let fates = send(&config, bytes, every(MILLI * 50, 200_000));
        let touched = bad / (good + bad) + good / (good + bad) * (1.0 - libm::exp(-air / good));
        let seen = lost_share(&fates);
        assert!((seen - touched * loss).abs() < 0.006, "{seen}, expected {}", touched * loss);
    }
}

/// A probe of no length every millisecond sees the two states as a Markov chain, whose runs have
/// geometric lengths.
#[test]
fn base_28_fades_and_what_lies_between_last_their_times() {
    let (good, bad, probe) = (0.08, 0.02, 0.001);
    let channel = Channel::Fade(fade::Config {
        good: Duration::from_secs_f64(good),
        bad: Duration::from_secs_f64(bad),
        loss: 1.0,
    });
    let fates = send(&config(vec![channel]), 0, every(MILLI, 2_000_000));
    // exp(-t (1/g + 1/b)) is what is left of the knowledge of the state after t.
    let known = libm::exp(-probe * (1.0 / good + 1.0 / bad));
    let shares = [good / (good + bad), bad / (good + bad)];
    let runs: Vec<&[(Instant, Option<Loss>)]> =
        fates.chunk_by(|a, b| a.1.is_some() == b.1.is_some()).collect();
    for (is_bad, share) in [(false, shares[0]), (true, shares[1])] {
        let stays = share + (1.0 - share) * known;
        let lengths = runs.iter().filter(|run| run[0].1.is_some() == is_bad);
        let lengths: Vec<f64> = lengths.map(|run| run.len() as f64).collect();
        let count = lengths.len() as f64;
        assert!(count > 10_000.0, "{count} runs");
        let mean = lengths.iter().sum::<f64>() / count;
        let expected = 1.0 / (1.0 - stays);
        // A geometric length deviates by sqrt(stays) times its mean.
        let deviation = expected * stays.sqrt() / count.sqrt();
        assert!((mean - expected).abs() < 4.0 * deviation, "{mean}, expected {expected}");
        // And it has no memory: twice as long is to the mean what the mean is to nothing.
        let longer = |than: f64| lengths.iter().filter(|length| **length > than).count();
        let at = expected.round();
        let (once, twice) = (longer(at), longer(2.0 * at));
        let again = libm::pow(stays, at);
        assert_share(once as f64 / count, again, lengths.len(), "longer than the mean");
        assert_share(twice as f64 / once as f64, again, once, "twice as long");
    }
}

fn arq(order: arq::Order) -> Channel {
    Channel::Arq(arq::Config { try_failure: 0.3, retry_time: MILLI * 4, retries_max: 2, order })
}

#[test]
fn base_10_retries_delay_by_a_geometric_number_of_retry_times_and_then_give_up() {
    // Far enough apart that nothing waits for anything.
    let fates = send(&config(vec![arq(arq::Order::InOrder)]), 40, every(MILLI * 20, 100_000));
    let share = |retries: u64, loss: Option<Loss>| {
        let hits = fates.iter().enumerate().filter(|(number, fate)| {
            let sent = Instant::ZERO + MILLI * 20 * *number as u64;
            **fate == (sent + Duration::from_micros(1160) + MILLI * 4 * retries, loss)
        });
        hits.count() as f64 / fates.len() as f64
    };
    let trials = fates.len();
    assert_share(share(0, None), 0.7, trials, "first try");
    assert_share(share(1, None), 0.3 * 0.7, trials, "one retry");
    assert_share(share(2, None), 0.09 * 0.7, trials, "two retries");
    assert_share(share(2, Some(Loss::Arq)), 0.027, trials, "given up");
}

#[test]
fn base_10_packets_behind_a_repeated_one_wait_or_overtake() {
    for (order, overtaking) in [(arq::Order::InOrder, false), (arq::Order::AsReceived, true)] {
        let fates = send(&config(vec![arq(order)]), 40, every(MILLI, 10_000));
        let overtakes = fates.windows(2).any(|two| two[1].0 < two[0].0);
        assert_eq!(overtakes, overtaking, "{order:?}");
        let late = |fate: &(usize, &(Instant, Option<Loss>))| {
            let sent = Instant::ZERO + MILLI * fate.0 as u64;
            fate.1.0.since(sent) > Duration::from_micros(1160)
        };
        let late = fates.iter().enumerate().filter(late).count() as f64 / fates.len() as f64;
        assert!(if overtaking { late < 0.32 } else { late > 0.5 }, "{order:?}: {late} late");
    }
}

#[test]
fn channels_combine_and_do_not_move_each_other() {
    let bits = Channel::BitError(bit_error::Config { rate: 1e-5 });
    let losses = Channel::PacketLoss(packet_loss::Config { probability: 0.1 });
    let times = || every(MILLI * 6, 20_000);
    let alone = [bits.clone(), losses.clone()].map(|one| send(&config(vec![one]), 1500, times()));
    let both = send(&config(vec![losses.clone(), bits]), 1500, times());
    for (number, (_, loss)) in both.iter().enumerate() {
        let expected = alone[1][number].1.or(alone[0][number].1);
        assert_eq!(*loss, expected, "packet {number}; the first in the list names the cause");
    }
    let twice = send(&config(vec![losses.clone(), losses]), 1500, times());
    assert_share(lost_share(&twice), 0.19, twice.len(), "two of a kind are independent");
}

#[test]
fn values_that_make_no_sense_never_fail_and_mean_the_nearest_that_do() {
    let shares = [f64::NAN, -1.0, 0.0].map(|p| (p, 0.0));
    for (p, expected) in shares.into_iter().chain([(1.0, 1.0), (f64::INFINITY, 1.0)]) {
        for channel in [
            Channel::PacketLoss(packet_loss::Config { probability: p }),
            Channel::BitError(bit_error::Config { rate: p }),
            Channel::Arq(arq::Config {
                try_failure: p,
                retry_time: Duration::MAX,
                retries_max: u32::MAX,
                order: arq::Order::AsReceived,
            }),
            Channel::Fade(fade::Config { good: Duration::ZERO, bad: Duration::ZERO, loss: p }),
        ] {
            let fates = send(&config(vec![channel.clone()]), 1500, every(MILLI * 6, 50));
            assert_eq!(lost_share(&fates), expected, "{channel:?}");
        }
    }
    let whole = Channel::Burst(burst::Config { mean: 1.0, length: f64::NAN });
    let fates = send(&config(vec![whole]), 1500, every(MILLI * 6, 100));
    assert_eq!(lost_share(&fates), 0.5, "the good state lasts one packet at least");
}

#[test]
fn base_28_fades_are_told_where_packets_are_lost_and_nowhere_else() {
    let fade = fade::Config { good: MILLI * 40, bad: MILLI * 15, loss: 1.0 };
    let channels = vec![Channel::Fade(fade)];
    let end = Instant::ZERO + Duration::from_secs(20);
    let bad = link::channel::fades(&channels, (11, "down"), end);
    let fates = send(&config(channels), 40, every(MILLI * 10, 2000));
    // 40 bytes take 160 us.
    let touches = |from: Instant, bad: &link::outage::Interval| {
        bad.start < from + Duration::from_micros(160) && from < bad.end
    };
    for (number, (_, loss)) in fates.iter().enumerate() {
        let from = Instant::ZERO + MILLI * 10 * number as u64;
        assert_eq!(loss.is_some(), bad.iter().any(|bad| touches(from, bad)), "packet {number}");
    }
    assert!((0.1..0.5).contains(&lost_share(&fates)));
}
