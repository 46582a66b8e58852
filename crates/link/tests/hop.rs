//! Drills of a clean hop: order, instants, limits, departures.

use link::{Hop, Limit, Loss, Outcome, What, hop::Config};
use sansio::{BitRate, Duration, Instant, Priority};

/// 1000 bytes take 1 ms.
fn config() -> Config {
    Config::clean(BitRate::from_mbps(8), Duration::from_millis(5))
}

fn millis(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

fn hop(config: &Config) -> Hop<u32> {
    Hop::new(config, 1, "down")
}

/// All outcomes up to `now`, as (milliseconds, what).
fn drain(hop: &mut Hop<u32>, now: Instant) -> Vec<(f64, What<u32>)> {
    std::iter::from_fn(|| hop.poll(now))
        .map(|Outcome { at, what }| (at.as_nanos() as f64 / 1e6, what))
        .collect()
}

#[test]
fn a_packet_arrives_after_its_bits_and_the_delay_and_not_a_nanosecond_before() {
    let mut hop = hop(&config());
    assert_eq!(hop.next_event(), None);
    assert_eq!(hop.enqueue(7, 1000, Priority::Normal, millis(10)), Ok(()));
    assert_eq!(hop.next_event(), Some(millis(16)));
    assert_eq!(hop.poll(millis(16) - Duration::from_nanos(1)), None);
    assert_eq!(hop.poll(millis(16)), Some(Outcome { at: millis(16), what: What::Arrived(7) }));
    assert_eq!(hop.next_event(), None);
}

#[test]
fn host_cost_and_mac_efficiency_are_part_of_the_service_time() {
    let mut hop = hop(&Config {
        host_cost: Duration::from_millis(2),
        mac_efficiency: 0.5,
        report_departures: true,
        ..config()
    });
    for packet in 1..=2 {
        hop.enqueue(packet, 1000, Priority::Normal, Instant::ZERO).expect("room");
    }
    assert_eq!(hop.next_event(), Some(millis(2)), "the first bit, after the host cost");
    let seen = drain(&mut hop, millis(100));
    let expected = [
        (2.0, What::Departed(1)),
        (6.0, What::Departed(2)),
        (9.0, What::Arrived(1)),
        (13.0, What::Arrived(2)),
    ];
    assert_eq!(seen, expected);
}

#[test]
fn snoop_ack_10_a_high_packet_is_next_on_air_after_the_one_being_sent() {
    let mut hop = hop(&config());
    for packet in 0..11 {
        hop.enqueue(packet, 1000, Priority::Normal, Instant::ZERO).expect("room");
    }
    assert_eq!(hop.queue_packets(), 10);
    let during_the_first = Instant::from_nanos(500_000);
    hop.enqueue(99, 1000, Priority::High, during_the_first).expect("room");
    let order: Vec<_> = drain(&mut hop, millis(100)).into_iter().map(|(_, what)| what).collect();
    let expected: Vec<_> = [0, 99].into_iter().chain(1..11).map(What::Arrived).collect();
    assert_eq!(order, expected);
}

#[test]
fn snoop_ack_10_a_full_normal_queue_does_not_turn_a_high_packet_away() {
    let mut hop =
        hop(&Config { queue: Limit::Packets(2), queue_high: Limit::Packets(1), ..config() });
    for packet in 0..3 {
        assert_eq!(hop.enqueue(packet, 1000, Priority::Normal, Instant::ZERO), Ok(()));
    }
    assert_eq!(hop.enqueue(3, 1000, Priority::Normal, Instant::ZERO), Err(3));
    assert_eq!(hop.enqueue(4, 1000, Priority::High, Instant::ZERO), Ok(()));
    assert_eq!(hop.enqueue(5, 1000, Priority::High, Instant::ZERO), Err(5));
    assert_eq!(hop.statistics().dropped_full, 2);
    assert_eq!(hop.statistics().queue_packets_max, 3);
}

#[test]
fn a_limit_in_packets_counts_those_that_wait_and_room_comes_when_service_begins() {
    let mut hop = hop(&Config { queue: Limit::Packets(1), ..config() });
    let mut send = |packet, now| hop.enqueue(packet, 1000, Priority::Normal, now);
    assert_eq!(send(0, Instant::ZERO), Ok(()), "on air");
    assert_eq!(send(1, Instant::ZERO), Ok(()), "waits");
    assert_eq!(send(2, millis(1) - Duration::from_nanos(1)), Err(2));
    assert_eq!(send(3, millis(1)), Ok(()), "packet 1 is on air");
}

#[test]
fn a_limit_in_bytes_counts_bytes() {
    let mut hop = hop(&Config { queue: Limit::Bytes(1500), ..config() });
    let mut send = |packet, bytes| hop.enqueue(packet, bytes, Priority::Normal, Instant::ZERO);
    assert_eq!(send(0, 1000), Ok(()));
    assert_eq!(send(1, 1000), Ok(()));
    assert_eq!(send(2, 501), Err(2));
    assert_eq!(send(3, 500), Ok(()));
    assert_eq!(hop.queue_bytes(), 1500);
    assert_eq!(hop.statistics().queue_bytes_max, 1500);
}

#[test]
fn a_departure_is_reported_at_the_start_of_transmission_and_not_before() {
    let mut hop = hop(&Config { report_departures: true, ..config() });
    for packet in 0..2 {
        hop.enqueue(packet, 1000, Priority::Normal, Instant::ZERO).expect("room");
    }
    assert_eq!(drain(&mut hop, Instant::ZERO), [(0.0, What::Departed(0))]);
    assert_eq!(hop.next_event(), Some(millis(1)));
    assert_eq!(drain(&mut hop, millis(1) - Duration::from_nanos(1)), []);
    assert_eq!(drain(&mut hop, millis(1)), [(1.0, What::Departed(1))]);
    assert_eq!(hop.next_event(), Some(millis(6)));
}

#[test]
fn departures_may_be_asked_for_after_the_arrivals_and_keep_their_time() {
    let mut hop = hop(&Config { report_departures: true, ..config() });
    for packet in 0..3 {
        hop.enqueue(packet, 1000, Priority::Normal, Instant::ZERO).expect("room");
    }
    let arrivals: Vec<_> = std::iter::from_fn(|| hop.poll_arrival(millis(7))).collect();
    let arrived = |at, packet| Outcome { at: millis(at), what: What::Arrived(packet) };
    assert_eq!(arrivals, [arrived(6, 0), arrived(7, 1)]);
    let departures: Vec<_> = std::iter::from_fn(|| hop.poll_departure(millis(7))).collect();
    assert_eq!(departures, [(millis(0), 0), (millis(1), 1), (millis(2), 2)]);
}

#[test]
fn a_busy_hop_keeps_its_rate_to_the_nanosecond() {
    // 1500 bytes at 1.643836 Mbit/s are 7 299 998.29… ns.
    let config = Config { queue: Limit::Packets(u32::MAX), ..config() };
    let config = Config { rate: BitRate::from_bps(1_643_836), delay: Duration::ZERO, ..config };
    let mut hop = hop(&config);
    let packets = 100_000_u64;
    for packet in 0..packets {
        hop.enqueue(packet as u32, 1500, Priority::Normal, Instant::ZERO).expect("room");
    }
    let last = std::iter::from_fn(|| hop.poll(Instant::from_nanos(u64::MAX >> 1))).last();
    let exact = packets * 12_000 * 1_000_000_000 / 1_643_836;
    assert_eq!(last.expect("an outcome").at, Instant::from_nanos(exact));
    assert_eq!(hop.statistics().busy, Duration::from_nanos(exact));
    assert_eq!(hop.statistics().air_bytes, packets * 1500);
}

#[test]
fn nothing_travels_in_no_time() {
    let config = Config {
        rate: BitRate::from_bps(u64::MAX),
        delay: Duration::ZERO,
        report_departures: true,
        ..config()
    };
    let mut hop = hop(&config);
    hop.enqueue(0, 0, Priority::Normal, millis(1)).expect("room");
    assert_eq!(drain(&mut hop, millis(1)), [(1.0, What::Departed(0))]);
    assert_eq!(hop.next_event(), Some(millis(1) + Duration::from_nanos(1)));
}

#[test]
fn a_clean_hop_counts_and_loses_nothing() {
    let mut hop = hop(&config());
    for packet in 0..50 {
        hop.enqueue(packet, 100, Priority::Normal, Instant::ZERO).expect("room");
    }
    drain(&mut hop, millis(100));
    let statistics = hop.statistics();
    assert_eq!((statistics.enqueued, statistics.departed, statistics.delivered), (50, 50, 50));
    assert_eq!((statistics.delivered_bytes, statistics.lost_total()), (5000, 0));
    assert!(Loss::ALL.into_iter().all(|loss| statistics.lost(loss) == 0));
}

#[test]
fn whoever_asks_is_told_what_waits_from_when_on() {
    let mut hop = hop(&config());
    hop.note_lengths();
    for packet in 1..=3 {
        hop.enqueue(packet, 1000, Priority::Normal, millis(10)).expect("room");
    }
    hop.enqueue(4, 40, Priority::High, millis(10)).expect("room");
    drain(&mut hop, millis(100));
    let lengths: Vec<(u64, u32, u64)> = std::iter::from_fn(|| hop.poll_length())
        .map(|one| (one.at.as_nanos() / 1_000, one.packets, one.bytes))
        .collect();
    let expected = [
        (10_000, 1, 1000),
        (10_000, 2, 2000),
        (10_000, 3, 2040),
        (11_000, 2, 2000),
        (11_040, 1, 1000),
        (12_040, 0, 0),
    ];
    assert_eq!(lengths, expected, "the first never waited, the high one went first");
}
