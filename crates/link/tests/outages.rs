//! Outages: what they do to packets, to the nanosecond, and when they are.

use link::channel::{Config as Channel, packet_loss};
use link::outage::{Interval, Length, Mode, Planned, Schedule, Spec, State};
use link::{Hop, Limit, Loss, Outages, Outcome, What, hop::Config};
use proptest::prelude::*;
use sansio::{BitRate, Duration, Instant, Priority};

const NANO: Duration = Duration::from_nanos(1);

fn millis(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

fn at(start: u64, length: u64) -> Planned {
    let length = Length::fixed(Duration::from_millis(length));
    Planned { start: millis(start), spread: Duration::ZERO, length }
}

/// 1000 bytes take 1 ms; away from 10 ms to 20 ms.
fn config(mode: Mode) -> Config {
    Config {
        outages: Spec { schedule: Schedule::At(vec![at(10, 10)]), mode, notified: false },
        ..Config::clean(BitRate::from_mbps(8), Duration::from_millis(5))
    }
}

/// When and how a packet of 1 ms that is sent at `start` ends.
fn fate(mode: Mode, start: Instant) -> Outcome<u32> {
    let mut hop = Hop::new(&config(mode), 1, "down");
    hop.enqueue(0, 1000, Priority::Normal, start).expect("room");
    hop.poll(millis(1000)).expect("an outcome")
}

#[test]
fn losing_takes_exactly_the_packets_whose_air_time_touches_the_outage() {
    let arrived =
        |start: Instant| Outcome { at: start + Duration::from_millis(6), what: What::Arrived(0) };
    let lost = |start: Instant| Outcome {
        at: start + Duration::from_millis(6),
        what: What::Lost(0, Loss::Outage),
    };
    for (start, outcome) in [
        (millis(9), arrived(millis(9))),
        (millis(9) + NANO, lost(millis(9) + NANO)),
        (millis(20) - NANO, lost(millis(20) - NANO)),
        (millis(20), arrived(millis(20))),
    ] {
        assert_eq!(fate(Mode::Lose, start), outcome, "sent at {start}");
    }
}

/// A planned outage begins in any phase of its spread, and is as long as without one.
#[test]
fn a_spread_moves_the_beginning_and_nothing_else() {
    let length =
        Length { shortest: Duration::from_millis(100), longest: Duration::from_millis(10_000) };
    let interval = |seed: u64, spread: Duration| {
        let schedule = Schedule::At(vec![Planned { start: millis(2_000), spread, length }]);
        let outages = Outages::new(&Spec { schedule, ..Spec::default() }, seed);
        let (start, state) = outages.next_transition(Instant::ZERO).expect("it goes away");
        assert_eq!(state, State::Down);
        let (end, _) = outages.next_transition(start).expect("it comes back");
        Interval { start, end }
    };
    let mut quarters = [0; 4];
    for seed in 0..400 {
        let fixed = interval(seed, Duration::ZERO);
        let moved = interval(seed, Duration::from_millis(1_000));
        assert_eq!(fixed.start, millis(2_000));
        assert_eq!(moved.end.since(moved.start), fixed.end.since(fixed.start), "seed {seed}");
        let phase = moved.start.since(fixed.start).as_nanos();
        quarters[(phase * 4 / 1_000_000_001) as usize] += 1;
    }
    // 100 each, with a standard deviation of 9.
    assert!(quarters.iter().all(|count| (65..=135).contains(count)), "{quarters:?}");
}

#[test]
fn an_outage_goes_before_a_channel_as_the_cause_of_a_loss() {
    let all = packet_loss::Config { probability: 1.0 };
    let channels = vec![Channel::PacketLoss(all)];
    let mut hop = Hop::new(&Config { channels, ..config(Mode::Lose) }, 1, "down");
    hop.enqueue(0, 1000, Priority::Normal, millis(8)).expect("room");
    hop.enqueue(1, 1000, Priority::Normal, millis(10)).expect("room");
    let causes: Vec<_> =
        std::iter::from_fn(|| hop.poll(millis(100))).map(|outcome| outcome.what).collect();
    assert_eq!(causes, [What::Lost(0, Loss::Packet), What::Lost(1, Loss::Outage)]);
    assert_eq!((hop.statistics().lost(Loss::Packet), hop.statistics().lost(Loss::Outage)), (1, 1));
}

#[test]
fn holding_moves_exactly_the_transmissions_that_would_touch_the_outage_to_its_end() {
    for (start, begins) in [
        (millis(9), millis(9)),
        (millis(9) + NANO, millis(20)),
        (millis(20) - NANO, millis(20)),
        (millis(20), millis(20)),
    ] {
        let at = begins + Duration::from_millis(6);
        assert_eq!(fate(Mode::Hold, start), Outcome { at, what: What::Arrived(0) });
    }
}

#[test]
fn holding_fills_the_limited_queue_and_then_flushes_it_high_first() {
    let mut hop = Hop::new(&Config { queue: Limit::Packets(2), ..config(Mode::Hold) }, 1, "down");
    for (packet, expected) in [(0, Ok(())), (1, Ok(())), (2, Err(2))] {
        assert_eq!(hop.enqueue(packet, 1000, Priority::Normal, millis(12)), expected);
    }
    assert_eq!(hop.enqueue(3, 1000, Priority::High, millis(19)), Ok(()));
    assert_eq!(hop.next_event(), Some(millis(26)));
    let flushed: Vec<_> = std::iter::from_fn(|| hop.poll(millis(100))).collect();
    let expected = [(26, 3), (27, 0), (28, 1)]
        .map(|(at, packet)| Outcome { at: millis(at), what: What::Arrived(packet) });
    assert_eq!(flushed, expected);
}

#[test]
fn a_packet_longer_than_every_gap_is_held_for_ever_and_no_call_hangs() {
    let every = Schedule::Every {
        every: Duration::from_millis(2),
        length: Length::fixed(Duration::from_micros(1900)),
    };
    let outages = Spec { schedule: every, mode: Mode::Hold, notified: false };
    let mut hop = Hop::new(&Config { outages, ..config(Mode::Hold) }, 1, "down");
    hop.enqueue(0, 1000, Priority::Normal, Instant::ZERO).expect("room");
    let mut now = Instant::ZERO;
    for _ in 0..100 {
        assert_eq!(hop.poll(now), None);
        let next = hop.next_event().expect("it still waits");
        assert!(next > now, "time goes on");
        now = next;
    }
}

#[test]
fn planned_outages_are_joined_where_they_overlap() {
    let schedule = Schedule::At(vec![at(30, 5), at(10, 10), at(15, 10), at(25, 1), at(50, 0)]);
    let outages = Outages::new(&Spec { schedule, ..Spec::default() }, 1);
    let mut seen = Vec::new();
    let mut now = Instant::ZERO;
    while let Some((at, state)) = outages.next_transition(now) {
        seen.push((at, state));
        now = at;
    }
    let expected = [
        (millis(10), State::Down),
        (millis(26), State::Up),
        (millis(30), State::Down),
        (millis(35), State::Up),
    ];
    assert_eq!(seen, expected);
}

#[test]
fn an_outage_of_time_zero_is_seen_and_no_outages_are_none() {
    let schedule = Schedule::At(vec![at(0, 1)]);
    let outages = Outages::new(&Spec { schedule, ..Spec::default() }, 1);
    assert_eq!(outages.state(Instant::ZERO), State::Down);
    assert_eq!(outages.next_transition(Instant::ZERO), Some((millis(1), State::Up)));
    assert_eq!(outages.state(millis(1)), State::Up);
    assert_eq!(outages.next_transition(millis(1)), None);
    let never = Outages::new(&Spec::default(), 1);
    assert_eq!(never.next_transition(Instant::ZERO), None);
}

/// The first `count` outages of a run.
fn intervals(outages: &Outages, count: usize) -> Vec<Interval> {
    let mut now = Instant::ZERO;
    let mut found = Vec::new();
    while found.len() < count {
        let (start, down) = outages.next_transition(now).expect("another outage");
        let (end, up) = outages.next_transition(start).expect("its end");
        assert_eq!((down, up), (State::Down, State::Up));
        found.push(Interval { start, end });
        now = end;
    }
    found
}

#[test]
fn lengths_are_log_uniform_and_starts_uniform() {
    let (every, length) = (
        Duration::from_secs(30),
        Length { shortest: Duration::from_millis(100), longest: Duration::from_secs(10) },
    );
    let schedule = Schedule::Every { every, length };
    let outages = Outages::new(&Spec { schedule, ..Spec::default() }, 5);
    let found = intervals(&outages, 4_000);
    let length = |one: &Interval| one.end.since(one.start);
    let place = |(period, one): (usize, &Interval)| {
        let begin = Instant::ZERO + every * period as u64;
        one.start.since(begin).as_secs_f64() / (every - length(one)).as_secs_f64()
    };
    let share = |hits: usize| hits as f64 / found.len() as f64;
    let below_1_s = share(found.iter().filter(|one| length(one) < Duration::from_secs(1)).count());
    let first_quarter = share(found.iter().enumerate().filter(|one| place(*one) < 0.25).count());
    assert!((below_1_s - 0.5).abs() < 0.03, "below the geometric mean: {below_1_s}");
    assert!((first_quarter - 0.25).abs() < 0.03, "in the first quarter: {first_quarter}");
}

#[test]
fn both_directions_meet_the_same_outages() {
    let schedule = Schedule::Every {
        every: Duration::from_millis(100),
        length: Length { shortest: Duration::from_millis(1), longest: Duration::from_millis(50) },
    };
    let outages = Spec { schedule, ..Spec::default() };
    let lost = |name| {
        let config = Config { outages: outages.clone(), ..config(Mode::Lose) };
        let mut hop = Hop::new(&config, 3, name);
        for packet in 0..1000 {
            hop.enqueue(packet, 1000, Priority::Normal, millis(packet * 2)).expect("room");
        }
        std::iter::from_fn(|| hop.poll(millis(10_000)))
            .filter(|outcome| matches!(outcome.what, What::Lost(..)))
            .map(|outcome| outcome.at)
            .collect::<Vec<_>>()
    };
    assert!(lost("down").len() > 20);
    assert_eq!(lost("down"), lost("up"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Each period has one outage, within it, of a permitted length.
    #[test]
    fn each_period_has_its_outage(
        every in 2_u64..1_000,
        shortest in 1_u64..1_200,
        extra in 0_u64..500,
        seed: u64,
    ) {
        let nanos = Duration::from_nanos;
        let length = Length { shortest: nanos(shortest), longest: nanos(shortest + extra) };
        let schedule = Schedule::Every { every: nanos(every), length };
        let outages = Outages::new(&Spec { schedule, ..Spec::default() }, seed);
        if outages.state(Instant::ZERO) == State::Down {
            return Ok(()); // The walk below begins with a transition to Down.
        }
        for (period, one) in intervals(&outages, 20).iter().enumerate() {
            let begin = period as u64 * every;
            let length = one.end.since(one.start).as_nanos();
            prop_assert!(one.start.as_nanos() >= begin);
            prop_assert!(one.end.as_nanos() < begin + every);
            prop_assert!(length >= shortest.min(every - 1));
            prop_assert!(length <= (shortest + extra).min(every - 1));
        }
    }

    /// `covers`, which remembers, agrees with `state`, which does not, in any order of questions.
    #[test]
    fn covers_agrees_with_the_state_of_each_nanosecond(
        questions in prop::collection::vec((0_u64..500, 0_u64..60), 1..60),
        planned in prop::option::of(prop::collection::vec((0_u64..500, 0_u64..40), 0..6)),
        seed: u64,
    ) {
        let nanos = Instant::from_nanos;
        let schedule = match planned {
            Some(planned) => Schedule::At(planned.into_iter().map(|(start, length)| Planned {
                start: nanos(start),
                spread: Duration::ZERO,
                length: Length::fixed(Duration::from_nanos(length)),
            }).collect()),
            None => Schedule::Every {
                every: Duration::from_nanos(50),
                length: Length {
                    shortest: Duration::from_nanos(1),
                    longest: Duration::from_nanos(40),
                },
            },
        };
        let mut outages = Outages::new(&Spec { schedule, ..Spec::default() }, seed);
        for (start, length) in questions {
            let air = Interval { start: nanos(start), end: nanos(start + length) };
            let down = (start..start + length.max(1))
                .any(|at| outages.state(nanos(at)) == State::Down);
            prop_assert_eq!(outages.covers(air).is_some(), down, "{:?}", air);
        }
    }
}
