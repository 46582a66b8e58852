//! Stations of several cells on one channel: who goes when, and that nothing is lost or changed.

use link::hop::{Config, medium::Medium};
use link::{Hop, Limit, Outcome, What};
use proptest::prelude::*;
use sansio::{BitRate, Duration, Instant, Priority};

/// 1000 bytes take 1 ms; no delay to speak of.
fn config() -> Config {
    Config {
        queue: Limit::Packets(u32::MAX),
        report_departures: true,
        ..Config::clean(BitRate::from_mbps(8), Duration::from_nanos(1))
    }
}

/// Two base stations, and a mobile host with a hop to each.
const OLD: usize = 0;
const NEW: usize = 1;
const TO_OLD: usize = 2;
const TO_NEW: usize = 3;
const HOPS: usize = 4;

struct Radio {
    medium: Medium,
    hops: Vec<Hop<u32>>,
    outcomes: [Vec<Outcome<u32>>; HOPS],
}

impl Radio {
    fn new() -> Self {
        let hops = (0..HOPS).map(|hop| Hop::new(&config(), 1, &hop.to_string())).collect();
        let medium = Medium::new([vec![OLD], vec![NEW], vec![TO_OLD, TO_NEW]]);
        Radio { medium, hops, outcomes: Default::default() }
    }

    fn send(&mut self, hop: usize, packet: u32, bytes: u32, now: Instant) {
        self.medium.settle(&mut self.hops, now);
        self.hops[hop].enqueue(packet, bytes, Priority::Normal, now).expect("room");
    }

    fn poll(&mut self, hop: usize, now: Instant) {
        self.medium.settle(&mut self.hops, now);
        self.outcomes[hop].extend(std::iter::from_fn(|| self.hops[hop].poll(now)));
    }

    /// Follows every event up to an instant, as the simulator does.
    fn follow(&mut self, until: Instant) {
        loop {
            let next = |hop: usize| self.hops[hop].next_event().map(|at| (at, hop));
            let Some((now, hop)) = (0..HOPS).filter_map(next).min() else { return };
            if now > until {
                return;
            }
            let before = self.outcomes[hop].len();
            self.poll(hop, now);
            for outcome in &self.outcomes[hop][before..] {
                assert_eq!(outcome.at, now, "found at its instant: {outcome:?}");
            }
            assert_ne!(self.hops[hop].next_event(), Some(now), "a poll leaves nothing due");
        }
    }

    /// First bits on the air: microseconds, hop, packet; in order of time.
    fn departures(&self) -> Vec<(u64, usize, u32)> {
        let of = |hop: usize| {
            self.outcomes[hop].iter().filter_map(move |outcome| match outcome.what {
                What::Departed(packet) => Some((outcome.at.as_nanos() / 1000, hop, packet)),
                _ => None,
            })
        };
        let mut all: Vec<_> = (0..HOPS).flat_map(of).collect();
        all.sort_unstable();
        all
    }
}

const END: Instant = Instant::from_nanos(3_600_000_000_000);

#[test]
fn base_stations_that_always_have_something_to_send_take_turns() {
    let mut radio = Radio::new();
    for packet in 0..3 {
        radio.send(OLD, packet, 1000, Instant::ZERO);
    }
    for packet in 10..12 {
        radio.send(NEW, packet, 1000, Instant::from_nanos(1));
    }
    radio.follow(END);
    let expected = [(0, OLD, 0), (1000, NEW, 10), (2000, OLD, 1), (3000, NEW, 11), (4000, OLD, 2)];
    assert_eq!(radio.departures(), expected);
}

/// A mobile host that has changed cells sends what it queued for the old base station first.
#[test]
fn a_station_with_two_hops_sends_in_the_order_in_which_its_packets_came() {
    let mut radio = Radio::new();
    for packet in 0..3 {
        radio.send(TO_OLD, packet, 1000, Instant::ZERO);
    }
    radio.send(TO_NEW, 3, 1000, Instant::from_nanos(1));
    radio.send(TO_OLD, 4, 1000, Instant::from_nanos(2));
    radio.send(OLD, 9, 500, Instant::from_nanos(3));
    radio.follow(END);
    let expected = [
        (0, TO_OLD, 0),
        (1000, OLD, 9),
        (1500, TO_OLD, 1),
        (2500, TO_OLD, 2),
        (3500, TO_NEW, 3),
        (4500, TO_OLD, 4),
    ];
    assert_eq!(radio.departures(), expected);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// One packet on the air at a time, each once, the air never free while one waits, whatever the
    /// driver polls in between.
    #[test]
    fn the_channel_carries_one_packet_at_a_time(
        traffic in prop::collection::vec(
            (0..HOPS, prop_oneof![Just(0_u64), 0_u64..4_000_000], 40_u32..3000, 0..=HOPS),
            1..80,
        ),
    ) {
        let (mut lazy, mut eager) = (Radio::new(), Radio::new());
        let mut now = Instant::ZERO;
        let mut came = Vec::new();
        for (number, (hop, gap, bytes, polls)) in traffic.iter().enumerate() {
            now += Duration::from_nanos(*gap);
            eager.follow(now);
            eager.send(*hop, number as u32, *bytes, now);
            if *polls < HOPS {
                lazy.poll(*polls, now);
            }
            lazy.send(*hop, number as u32, *bytes, now);
            came.push(now.as_nanos() / 1000);
        }
        eager.follow(END);
        (0..HOPS).for_each(|hop| lazy.poll(hop, END));
        prop_assert_eq!(&lazy.outcomes, &eager.outcomes);
        let departures = lazy.departures();
        prop_assert_eq!(departures.len(), traffic.len());
        let mut free_at = 0;
        for (at, _, packet) in &departures {
            prop_assert!(*at + 1 >= free_at, "{departures:?}");
            let waited = departures.iter().any(|(later, _, other)| {
                later >= at && came[*other as usize] + 1 < *at
            });
            prop_assert!(*at <= free_at + 1 || !waited, "idle before {at} us: {departures:?}");
            free_at = *at + u64::from(traffic[*packet as usize].2);
        }
        let up = departures.iter().filter(|(_, hop, _)| [TO_OLD, TO_NEW].contains(hop));
        let up: Vec<u32> = up.map(|(_, _, packet)| *packet).collect();
        prop_assert!(up.is_sorted(), "the mobile host's packets keep their order: {up:?}");
    }
}
