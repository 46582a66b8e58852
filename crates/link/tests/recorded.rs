//! Recorded channels: what the files may look like, and what the hop makes of them.

use link::channel::{Config as Channel, arq, bit_error, recorded as channel};
use link::outage::{Length, Mode, Planned, Schedule, Spec};
use link::recorded::{Capacity, Delays, Losses, Reader, Recording, Unexpected};
use link::{Hop, Limit, Loss, Outcome, What, hop::Config};
use proptest::prelude::*;
use sansio::{BitRate, Duration, Instant, Priority, Random};
use std::collections::VecDeque;
use std::sync::Arc;

fn read<R: Recording>(text: &str) -> Result<R, Unexpected> {
    let mut reader = Reader::<R>::default();
    for line in text.split_inclusive('\n') {
        reader.line(line.as_bytes())?;
    }
    reader.finish()
}

fn recording<R: Recording>(text: &str) -> Arc<R> {
    Arc::new(read(text).unwrap_or_else(|error| panic!("line {}: {error}", error.line)))
}

/// A rate and a host cost that must not matter, 5 ms of delay.
fn with_capacity(text: &str) -> Config {
    Config {
        capacity: Some(recording(text)),
        host_cost: Duration::from_millis(100),
        mac_efficiency: 0.1,
        queue: Limit::Packets(u32::MAX),
        ..Config::clean(BitRate::from_bps(1), Duration::from_millis(5))
    }
}

fn millis(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

/// Sends packets (millisecond, bytes); when each one leaves, in milliseconds: 5 before it arrives.
fn departures(config: &Config, packets: &[(u64, u32)]) -> Vec<f64> {
    let mut hop: Hop<usize> = Hop::new(config, 1, "down");
    for (number, (at, bytes)) in packets.iter().enumerate() {
        hop.enqueue(number, *bytes, Priority::Normal, millis(*at)).expect("room");
    }
    let all = std::iter::from_fn(|| hop.poll(Instant::from_nanos(u64::MAX >> 1)));
    all.map(|outcome| outcome.at.as_nanos() as f64 / 1e6 - 5.0).collect()
}

#[test]
fn a_packet_leaves_at_the_next_opportunity_and_one_of_the_very_instant_is_its_own() {
    let config = with_capacity("0\n10\n20\n20\n");
    assert_eq!(departures(&config, &[(0, 1500)]), [0.0]);
    assert_eq!(departures(&config, &[(1, 1500)]), [10.0]);
    assert_eq!(departures(&config, &[(10, 1500), (10, 1500)]), [10.0, 20.0]);
    assert_eq!(departures(&config, &[(11, 1500), (11, 1500), (11, 1500)]), [20.0, 20.0, 20.0]);
    assert_eq!(departures(&config, &[(21, 1500)]), [30.0], "the second round");
}

#[test]
fn small_packets_share_an_opportunity_and_large_ones_span_several() {
    let config = with_capacity("10\n20\n30\n40\n");
    let sent = [(1, 600), (1, 600), (1, 600), (1, 1500)];
    assert_eq!(departures(&config, &sent), [10.0, 10.0, 20.0, 30.0]);
    assert_eq!(departures(&config, &[(1, 4500)]), [30.0]);
    assert_eq!(departures(&config, &[(1, 4501)]), [40.0]);
}

#[test]
fn what_is_left_of_an_opportunity_is_lost_when_nothing_waits_for_it() {
    let config = with_capacity("10\n20\n30\n");
    assert_eq!(departures(&config, &[(1, 40), (11, 40)]), [10.0, 20.0]);
    assert_eq!(departures(&config, &[(1, 40), (10, 40)]), [10.0, 10.0], "this one was in time");
}

#[test]
fn snoop_ack_10_the_packet_is_chosen_when_there_is_an_opportunity() {
    let mut hop: Hop<u32> = Hop::new(&with_capacity("10\n20\n"), 1, "down");
    hop.enqueue(1, 1500, Priority::Normal, millis(1)).expect("room");
    hop.enqueue(2, 1500, Priority::High, millis(9)).expect("room");
    assert_eq!(hop.queue_packets(), 2, "both wait");
    let order: Vec<_> = std::iter::from_fn(|| hop.poll(millis(100))).collect();
    let expected = [(15, 2), (25, 1)];
    let expected = expected.map(|(at, n)| Outcome { at: millis(at), what: What::Arrived(n) });
    assert_eq!(order, expected);
}

#[test]
fn an_outage_that_holds_lets_opportunities_pass() {
    let length = Length::fixed(Duration::from_millis(14));
    let outages = Spec {
        schedule: Schedule::At(vec![Planned { start: millis(8), spread: Duration::ZERO, length }]),
        mode: Mode::Hold,
        notified: false,
    };
    let config = Config { outages, ..with_capacity("10\n20\n30\n") };
    assert_eq!(departures(&config, &[(1, 1500)]), [30.0]);
}

/// The loop of Mahimahi's link_queue.cc, in its own words as far as they fit: every opportunity of
/// the schedule is burned in its turn, by whatever waits.
fn mahimahi(schedule: &[u64], packets: &[(u64, u32)], until: u64) -> Vec<f64> {
    let mut waiting: VecDeque<(usize, u32)> = VecDeque::new();
    let (mut left_at, mut arrived, mut base) = (vec![0.0; packets.len()], 0, 0);
    loop {
        for at in schedule.iter().map(|at| at + base) {
            if at > until {
                return left_at;
            }
            while arrived < packets.len() && packets[arrived].0 <= at {
                waiting.push_back((arrived, packets[arrived].1));
                arrived += 1;
            }
            let mut bytes_left = 1500;
            while bytes_left > 0 {
                let Some((packet, in_transit)) = waiting.front_mut() else { break };
                let sent = bytes_left.min(*in_transit);
                *in_transit -= sent;
                bytes_left -= sent;
                if *in_transit == 0 {
                    left_at[*packet] = at as f64;
                    waiting.pop_front();
                }
            }
        }
        base += schedule.last().expect("a schedule has an opportunity");
    }
}

#[test]
fn random_schedules_and_packets_are_served_as_mahimahi_does() {
    let mut random = Random::new(5, "mahimahi");
    for _ in 0..300 {
        let mut at = 0;
        let mut schedule: Vec<u64> = Vec::new();
        for _ in 0..1 + random.below(20) {
            at += random.below(4) * random.below(4);
            schedule.push(at);
        }
        *schedule.last_mut().expect("one at least") += 1;
        let mut at = 0;
        let mut packets = Vec::new();
        for _ in 0..60 {
            at += random.below(3) * random.below(5);
            packets.push((at, 1 + random.below(3000) as u32));
        }
        let lines: String = schedule.iter().map(|at| format!("{at}\n")).collect();
        let expected = mahimahi(&schedule, &packets, 1_000_000);
        assert_eq!(departures(&with_capacity(&lines), &packets), expected, "{schedule:?}");
    }
}

#[test]
fn a_busy_hop_carries_exactly_what_was_recorded() {
    let config = with_capacity("1\n1\n2\n7\n");
    let left = departures(&config, &vec![(0, 1500); 4000]);
    assert_eq!(left.last(), Some(&7000.0));
    assert_eq!(config.service_rate(), BitRate::from_bps(4 * 12_000 * 1000 / 7));
}

#[test]
fn base_27_bit_errors_have_their_share_at_a_recorded_capacity() {
    let errors = Channel::BitError(bit_error::Config { rate: 1.0 / 65536.0 });
    let config = Config { channels: vec![errors], ..with_capacity("1\n1\n1\n3\n") };
    let mut hop: Hop<u32> = Hop::new(&config, 1, "down");
    for number in 0..100_000 {
        hop.enqueue(number, 1500, Priority::Normal, Instant::ZERO).expect("room");
    }
    while hop.poll(Instant::from_nanos(u64::MAX >> 1)).is_some() {}
    let share = hop.statistics().lost(Loss::BitError) as f64 / 1e5;
    let expected = 1.0 - libm::pow(1.0 - 1.0 / 65536.0, 12_000.0);
    let deviation = (expected * (1.0 - expected) / 1e5).sqrt();
    assert!((share - expected).abs() < 4.0 * deviation, "{share}, expected {expected}");
}

fn delays(text: &str) -> Channel {
    let step = Duration::from_millis(10);
    Channel::RecordedDelay(channel::DelayConfig { delays: recording(text), step })
}

/// 1000 bytes take 1 ms; 77 ms of delay that a recording replaces.
fn with(channels: Vec<Channel>) -> Config {
    Config { channels, ..Config::clean(BitRate::from_mbps(8), Duration::from_millis(77)) }
}

fn fates(config: &Config, every: u64, count: u64) -> Vec<(f64, Option<Loss>)> {
    let mut hop: Hop<u64> = Hop::new(config, 1, "down");
    for number in 0..count {
        hop.enqueue(number, 1000, Priority::Normal, millis(number * every)).expect("room");
    }
    let mut fates = vec![(0.0, None); count as usize];
    while let Some(Outcome { at, what }) = hop.poll(Instant::from_nanos(u64::MAX >> 1)) {
        let (number, loss) = match what {
            What::Arrived(number) => (number, None),
            What::Lost(number, loss) => (number, Some(loss)),
            other => panic!("{other:?}"),
        };
        fates[number as usize] = (at.as_nanos() as f64 / 1e6, loss);
    }
    fates
}

#[test]
fn a_recorded_delay_replaces_the_hops_own_and_repeats() {
    let at = fates(&with(vec![delays("30000000\n20000000\n1500000\n")]), 50, 5);
    // Steps 0, 5, 10, 15, 20 are lines 1, 3, 2, 1, 3.
    let expected = [31.0, 52.5, 121.0, 181.0, 202.5].map(|at| (at, None));
    assert_eq!(at, expected);
}

#[test]
fn a_recorded_delay_keeps_the_order_where_it_falls_steeply() {
    let at = fates(&with(vec![delays("30000000\n1000000\n")]), 5, 6);
    assert_eq!(at, [31.0, 36.0, 36.0, 36.0, 51.0, 56.0].map(|at| (at, None)));
    let reordering = Channel::Arq(arq::Config {
        try_failure: 0.0,
        retry_time: Duration::ZERO,
        retries_max: 0,
        order: arq::Order::AsReceived,
    });
    assert_eq!(fates(&with(vec![delays("30000000\n1000000\n"), reordering]), 5, 6), at);
}

#[test]
fn recorded_losses_take_every_packet_of_their_step_and_no_other() {
    let step = Duration::from_millis(10);
    let losses = recording("0\n1\n1\n0\n0\n");
    let config = with(vec![Channel::RecordedLoss(channel::LossConfig { losses, step })]);
    for (number, (_, loss)) in fates(&config, 5, 1000).into_iter().enumerate() {
        let is_lost = [1, 2].contains(&(number / 2 % 5));
        assert_eq!(loss, is_lost.then_some(Loss::Recorded), "packet {number}");
    }
}

#[test]
fn shares_of_losses_are_those_of_the_time() {
    let step = Duration::from_millis(10);
    let losses = recording::<Losses>("0\n1\n1\n0\n");
    let share = |millis| losses.share(Duration::from_millis(millis), step);
    assert_eq!([share(0), share(40), share(20), share(60)], [0.5, 0.5, 0.5, 0.5]);
    assert_eq!(share(30), 2.0 / 3.0);
    assert_eq!(share(80_010), 4000.0 / 8001.0);
}

#[test]
fn files_made_elsewhere_are_read() {
    let plain = read::<Capacity>("0\n5\n5\n").expect("a recording");
    for text in
        ["0\r\n5\r\n5\r\n", "0\n5\n5", "0\n5\n5\n\n\r\n \n", "\u{feff}0\n 5\n5\t\n", "00\n5\n5"]
    {
        assert_eq!(read::<Capacity>(text).as_ref(), Ok(&plain), "{text:?}");
    }
}

#[test]
fn bad_files_are_refused_with_line_value_and_what_was_expected() {
    let refused = |line, value: &str, expected: &str, result: Result<(), Unexpected>| {
        let error = result.expect_err(value);
        assert_eq!((error.line, error.value.as_str()), (line, value));
        assert!(error.to_string().contains(expected), "{error}");
    };
    let capacity = |text: &str| read::<Capacity>(text).map(|_| ());
    refused(0, "", "at least one line", capacity(""));
    refused(0, "", "at least one line", capacity("\n\n"));
    refused(2, "0", "above 0", capacity("0\n0\n"));
    refused(3, "4", "no earlier", capacity("0\n5\n4\n"));
    refused(2, "", "blank lines", capacity("0\n\n5\n"));
    refused(1, "# Verizon", "whole number", capacity("# Verizon\n5\n"));
    let number = "whole number, at most 4294967295";
    for value in ["-1", "1.5", "1e3", "+1", "5 5", "0x10", "4294967296", "99999999999999999999999"]
    {
        refused(2, value, number, capacity(&format!("0\n{value}\n9\n")));
    }
    let long = "9".repeat(100_000);
    refused(1, &format!("{}…", "9".repeat(40)), number, capacity(&long));
    let delays = |text: &str| read::<Delays>(text).map(|_| ());
    refused(2, "10000000001", "10 s", delays("10000000000\n10000000001\n"));
    refused(1, "20ms", "nanoseconds", delays("20ms\n"));
    refused(0, "", "a delay", delays(""));
    let losses = |text: &str| read::<Losses>(text).map(|_| ());
    refused(2, "0.5", "0 or 1", losses("0\n0.5\n"));
    refused(0, "", "0 or 1", losses("\r\n"));
    let mut reader = Reader::<Capacity>::default();
    refused(1, "\u{fffd}\u{fffd}1", "plain text", reader.line(b"\xff\xfe1\n"));
}

proptest! {
    #[test]
    fn no_bytes_make_a_reader_panic(text in "[0-9 .#e\\-\r\n\u{feff}a]{0,60}", bytes: Vec<u8>) {
        for text in [text.as_bytes(), &bytes] {
            let mut readers = (
                Reader::<Capacity>::default(),
                Reader::<Delays>::default(),
                Reader::<Losses>::default(),
                Reader::<link::channel::runs::Lengths>::default(),
            );
            for line in text.split_inclusive(|byte| *byte == b'\n') {
                let _ = readers.0.line(line);
                let _ = readers.1.line(line);
                let _ = readers.2.line(line);
                let _ = readers.3.line(line);
            }
            let _ = (readers.1.finish(), readers.2.finish(), readers.3.finish());
            if let Ok(capacity) = readers.0.finish() {
                let config = Config {
                    capacity: Some(Arc::new(capacity)),
                    ..Config::clean(BitRate::from_bps(1), Duration::ZERO)
                };
                let mut hop: Hop<()> = Hop::new(&config, 1, "down");
                hop.enqueue((), 4000, Priority::Normal, millis(77)).expect("room");
                prop_assert!(hop.poll(Instant::from_nanos(u64::MAX)).is_some());
            }
        }
    }
}

#[test]
fn recorded_losses_are_told_as_stretches_of_their_steps() {
    let losses = recording::<Losses>("0\n1\n1\n0\n");
    let channels =
        [Channel::RecordedLoss(channel::LossConfig { losses, step: Duration::from_millis(10) })];
    let told = |until| {
        let bad = link::channel::fades(&channels, (1, "down"), millis(until));
        bad.iter().map(|bad| (bad.start, bad.end)).collect::<Vec<_>>()
    };
    assert_eq!(told(10), []);
    assert_eq!(told(60), [(millis(10), millis(30)), (millis(50), millis(60))]);
    assert_eq!(told(90)[1..], [(millis(50), millis(70))]);
}
