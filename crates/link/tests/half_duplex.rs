//! Two directions on one air: who goes when, and that nothing is lost or changed by it.

use link::channel::{Config as Channel, fade, packet_loss};
use link::hop::{Config, half_duplex::settle};
use link::outage::{Length, Mode, Planned, Schedule, Spec};
use link::{Hop, Limit, Outcome, Statistics, What};
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

fn millis(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

/// Both directions and what came of them.
struct Radio {
    hops: [Hop<u32>; 2],
    outcomes: [Vec<Outcome<u32>>; 2],
}

const DOWN: usize = 0;
const UP: usize = 1;

impl Radio {
    fn new(config: &Config) -> Self {
        let hops = [Hop::new(config, 1, "down"), Hop::new(config, 1, "up")];
        Radio { hops, outcomes: [Vec::new(), Vec::new()] }
    }

    fn settle(&mut self, now: Instant) {
        let [down, up] = &mut self.hops;
        settle(down, up, now);
    }

    fn send(&mut self, way: usize, packet: u32, bytes: u32, now: Instant) {
        self.settle(now);
        self.hops[way].enqueue(packet, bytes, Priority::Normal, now).expect("room");
    }

    fn poll(&mut self, way: usize, now: Instant) {
        self.settle(now);
        self.outcomes[way].extend(std::iter::from_fn(|| self.hops[way].poll(now)));
    }

    /// Follows every event up to an instant, as the simulator does.
    fn follow(&mut self, until: Instant) {
        loop {
            let next = |way: usize| self.hops[way].next_event().map(|at| (at, way));
            let Some((now, way)) = [next(DOWN), next(UP)].into_iter().flatten().min() else {
                return;
            };
            if now > until {
                return;
            }
            let before = self.outcomes[way].len();
            self.poll(way, now);
            for outcome in &self.outcomes[way][before..] {
                assert_eq!(outcome.at, now, "found at its instant: {outcome:?}");
            }
            assert_ne!(self.hops[way].next_event(), Some(now), "a poll leaves nothing due");
        }
    }

    /// First bits on the air: milliseconds, direction, packet; in order of time.
    fn departures(&self) -> Vec<(f64, usize, u32)> {
        let mut all: Vec<(f64, usize, u32)> = Vec::new();
        for way in [DOWN, UP] {
            all.extend(self.outcomes[way].iter().filter_map(|outcome| match outcome.what {
                What::Departed(packet) => Some((outcome.at.as_nanos() as f64 / 1e6, way, packet)),
                _ => None,
            }));
        }
        all.sort_by(|a, b| a.0.total_cmp(&b.0));
        all
    }
}

const END: Instant = Instant::from_nanos(3_600_000_000_000);

#[test]
fn an_ack_waits_for_the_packet_on_the_air_and_then_has_its_turn() {
    let mut radio = Radio::new(&config());
    for packet in 0..3 {
        radio.send(DOWN, packet, 1000, Instant::ZERO);
    }
    radio.send(UP, 9, 100, Instant::from_nanos(300_000));
    radio.follow(END);
    let expected = [(0.0, DOWN, 0), (1.0, UP, 9), (1.1, DOWN, 1), (2.1, DOWN, 2)];
    assert_eq!(radio.departures(), expected, "the sender of packet 0 waits since 1 ms");
}

#[test]
fn two_that_always_have_something_to_send_take_turns() {
    let mut radio = Radio::new(&config());
    for packet in 0..500 {
        radio.send(DOWN, packet, 1000, Instant::ZERO);
    }
    for packet in 0..500 {
        radio.send(UP, packet, 250, Instant::ZERO);
    }
    radio.follow(END);
    let ways: Vec<usize> = radio.departures().iter().map(|departure| departure.1).collect();
    assert_eq!(ways, [DOWN, UP].repeat(500));
    assert_eq!(radio.departures()[998].0, 499.0 * 1.25);
}

#[test]
fn who_has_just_sent_lets_the_other_go_that_came_in_the_meantime() {
    let mut radio = Radio::new(&config());
    radio.send(UP, 0, 1000, Instant::ZERO);
    radio.send(UP, 1, 1000, Instant::from_nanos(1));
    radio.send(DOWN, 2, 1000, millis(1) - Duration::from_nanos(1));
    radio.follow(END);
    assert_eq!(radio.departures(), [(0.0, UP, 0), (1.0, DOWN, 2), (2.0, UP, 1)]);
}

#[test]
fn nobody_sends_while_an_outage_holds_but_what_still_fits_goes() {
    let length = Length::fixed(Duration::from_millis(10));
    let outages = Spec {
        schedule: Schedule::At(vec![Planned { start: millis(2), spread: Duration::ZERO, length }]),
        mode: Mode::Hold,
        notified: false,
    };
    let mut radio = Radio::new(&Config { outages, ..config() });
    radio.send(DOWN, 0, 1000, Instant::ZERO);
    radio.send(DOWN, 1, 1500, Instant::ZERO);
    radio.send(UP, 2, 500, Instant::from_nanos(500_000));
    radio.send(UP, 3, 500, Instant::from_nanos(500_000));
    radio.send(UP, 4, 500, Instant::from_nanos(500_000));
    radio.follow(END);
    let expected = [(0.0, DOWN, 0), (1.0, UP, 2), (1.5, UP, 3), (12.0, DOWN, 1), (13.5, UP, 4)];
    assert_eq!(radio.departures(), expected);
}

fn traffic() -> impl Strategy<Value = Vec<(usize, u64, u32, bool)>> {
    let gap = prop_oneof![3 => Just(0), 3 => (0_u64..6).prop_map(|half| half * 500_000),
        2 => 0_u64..9_000_000];
    let bytes = prop_oneof![Just(1000_u32), Just(500), Just(40), 1_u32..3000];
    prop::collection::vec((0_usize..2, gap, bytes, any::<bool>()), 1..80)
}

fn air() -> impl Strategy<Value = Config> {
    let channel = prop_oneof![
        Just(Channel::PacketLoss(packet_loss::Config { probability: 0.2 })),
        Just(Channel::Fade(fade::Config {
            good: Duration::from_millis(20),
            bad: Duration::from_millis(5),
            loss: 0.7,
        })),
    ];
    let length = Length { shortest: Duration::from_millis(1), longest: Duration::from_millis(15) };
    let schedule = prop_oneof![
        Just(Schedule::Never),
        Just(Schedule::Every { every: Duration::from_millis(30), length }),
    ];
    let mode = prop_oneof![Just(Mode::Lose), Just(Mode::Hold)];
    let cost = prop_oneof![Just(0_u64), Just(500_000)];
    (prop::collection::vec(channel, 0..2), schedule, mode, cost).prop_map(
        |(channels, schedule, mode, cost)| Config {
            channels,
            outages: Spec { schedule, mode, notified: false },
            host_cost: Duration::from_nanos(cost),
            ..config()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// One packet on the air at a time, each once, whatever the driver polls in between.
    #[test]
    fn the_air_carries_one_packet_at_a_time(config in air(), traffic in traffic()) {
        let (mut lazy, mut eager) = (Radio::new(&config), Radio::new(&config));
        let mut now = Instant::ZERO;
        for (number, (way, gap, bytes, polls)) in traffic.iter().enumerate() {
            now += Duration::from_nanos(*gap);
            eager.follow(now);
            eager.send(*way, number as u32, *bytes, now);
            if *polls {
                lazy.poll(1 - *way, now);
            }
            lazy.send(*way, number as u32, *bytes, now);
        }
        eager.follow(END);
        lazy.poll(UP, END);
        lazy.poll(DOWN, END);
        prop_assert_eq!(&lazy.outcomes, &eager.outcomes);
        for way in [DOWN, UP] {
            let Statistics { enqueued, departed, delivered, .. } = lazy.hops[way].statistics();
            let lost = lazy.hops[way].statistics().lost_total();
            prop_assert_eq!((enqueued, departed), (delivered + lost, delivered + lost));
        }
        let departures = lazy.departures();
        prop_assert_eq!(departures.len(), traffic.len());
        for two in departures.windows(2) {
            let nanos = f64::from(traffic[two[0].2 as usize].2) * 1000.0;
            let cost = config.host_cost.as_nanos() as f64;
            prop_assert!(two[1].0 - two[0].0 >= (nanos + cost) / 1e6 - 1e-6, "{two:?}");
        }
    }
}
