//! Any hop, any traffic: packets are conserved and stay in order, and neither late nor frequent
//! polling changes what happens.

use link::channel::{
    Config as Channel, arq, bit_error, burst, fade, packet_loss, recorded as channel_recorded, runs,
};
use link::hop::frame_arq;
use link::outage::{Length, Mode, Schedule, Spec};
use link::recorded::{Capacity, Reader, Recording};
use link::{Hop, Limit, Outcome, Statistics, What, hop::Config};
use proptest::prelude::*;
use sansio::{BitRate, Duration, Instant, Priority};
use std::sync::Arc;

/// One packet, and the times at which the lazy driver looks in between.
#[derive(Clone, Debug)]
struct Step {
    gap: Duration,
    bytes: u32,
    priority: Priority,
    polls_first: bool,
}

/// All that came of it.
#[derive(Debug, PartialEq)]
struct Record {
    refused: Vec<u32>,
    outcomes: Vec<Outcome<u32>>,
    statistics: Statistics,
}

const END: Instant = Instant::from_nanos(3_600_000_000_000);

/// Polls only where the steps say so.
fn run_lazily(config: &Config, seed: u64, steps: &[Step]) -> Record {
    let mut hop = Hop::new(config, seed, "down");
    let (mut outcomes, mut refused, mut now) = (Vec::new(), Vec::new(), Instant::ZERO);
    for (number, step) in steps.iter().enumerate() {
        now += step.gap;
        if step.polls_first {
            outcomes.extend(std::iter::from_fn(|| hop.poll(now)));
        }
        refused.extend(hop.enqueue(number as u32, step.bytes, step.priority, now).err());
    }
    outcomes.extend(std::iter::from_fn(|| hop.poll(END)));
    Record { refused, outcomes, statistics: hop.statistics() }
}

/// Polls at every event, as the simulator does, and proves that each outcome comes at its instant.
fn run_eagerly(config: &Config, seed: u64, steps: &[Step]) -> Record {
    let mut hop = Hop::new(config, seed, "down");
    let (mut outcomes, mut refused, mut now) = (Vec::new(), Vec::new(), Instant::ZERO);
    for (number, step) in steps.iter().enumerate() {
        let next = now + step.gap;
        follow(&mut hop, &mut outcomes, now, next);
        now = next;
        refused.extend(hop.enqueue(number as u32, step.bytes, step.priority, now).err());
    }
    follow(&mut hop, &mut outcomes, now, END);
    assert_eq!(hop.next_event(), None, "nothing is left");
    Record { refused, outcomes, statistics: hop.statistics() }
}

fn follow(hop: &mut Hop<u32>, outcomes: &mut Vec<Outcome<u32>>, from: Instant, to: Instant) {
    let mut last = from;
    while let Some(now) = hop.next_event().filter(|at| *at <= to) {
        assert!(now >= last, "events do not lie in the past");
        last = now;
        let before = outcomes.len();
        outcomes.extend(std::iter::from_fn(|| hop.poll(now)));
        for outcome in &outcomes[before..] {
            assert_eq!(outcome.at, now, "found at its instant: {outcome:?}");
        }
        assert_ne!(hop.next_event(), Some(now), "a poll to the end leaves nothing due");
    }
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    // Gaps in whole and half transmission times, so that ties happen.
    let gap = prop_oneof![
        3 => Just(0),
        3 => (0_u64..6).prop_map(|half| half * 500_000),
        2 => 0_u64..20_000_000,
    ];
    let bytes = prop_oneof![Just(1000_u32), Just(500), Just(40), 0_u32..3000];
    let step = (gap, bytes, prop::bool::weighted(0.2), any::<bool>()).prop_map(
        |(gap, bytes, is_high, polls_first)| Step {
            gap: Duration::from_nanos(gap),
            bytes,
            priority: if is_high { Priority::High } else { Priority::Normal },
            polls_first,
        },
    );
    prop::collection::vec(step, 1..80)
}

fn channel() -> impl Strategy<Value = Channel> {
    let order = prop_oneof![Just(arq::Order::InOrder), Just(arq::Order::AsReceived)];
    prop_oneof![
        Just(Channel::BitError(bit_error::Config { rate: 1e-5 })),
        Just(Channel::PacketLoss(packet_loss::Config { probability: 0.2 })),
        Just(Channel::Burst(burst::Config { mean: 0.2, length: 3.0 })),
        Just(Channel::Fade(fade::Config {
            good: Duration::from_millis(20),
            bad: Duration::from_millis(5),
            loss: 0.7,
        })),
        order.prop_map(|order| Channel::Arq(arq::Config {
            try_failure: 0.3,
            retry_time: Duration::from_micros(1500),
            retries_max: 3,
            order,
        })),
    ]
}

fn recording<R: Recording>(lines: &str) -> Arc<R> {
    let mut reader = Reader::<R>::default();
    for line in lines.split(' ') {
        reader.line(line.replace(':', " ").as_bytes()).expect("a line");
    }
    Arc::new(reader.finish().expect("a recording"))
}

fn recorded_channel() -> impl Strategy<Value = Channel> {
    let step = Duration::from_millis(3);
    prop_oneof![
        Just(Channel::RecordedDelay(channel_recorded::DelayConfig {
            delays: recording("9000000 100 2500001 0 7000000"),
            step,
        })),
        Just(Channel::RecordedLoss(channel_recorded::LossConfig {
            losses: recording("0 0 1 0 1 1"),
            step,
        })),
        Just(Channel::Runs(runs::Config { good: recording("1:2 5:1"), bad: recording("1:1 3:1") })),
    ]
}

fn link_layer() -> impl Strategy<Value = Option<frame_arq::Config>> {
    let retry = prop_oneof![
        (0_u32..4).prop_map(frame_arq::Retry::Limited),
        Just(frame_arq::Retry::Limited(60)),
    ];
    let some = retry.prop_map(|retry| frame_arq::Config { retry, ack_time: Duration::ZERO });
    prop_oneof![3 => Just(None), 1 => some.prop_map(Some)]
}

fn capacity() -> impl Strategy<Value = Option<Arc<Capacity>>> {
    let lines = prop_oneof![Just("0 1 1 1 4"), Just("7"), Just("2 2 3 20 20"), Just("1")];
    prop_oneof![Just(None), lines.prop_map(|lines| Some(recording(lines)))]
}

fn outages() -> impl Strategy<Value = Spec> {
    let length = Length { shortest: Duration::from_millis(1), longest: Duration::from_millis(15) };
    let schedule = prop_oneof![
        Just(Schedule::Never),
        Just(Schedule::Every { every: Duration::from_millis(30), length }),
    ];
    (schedule, prop_oneof![Just(Mode::Lose), Just(Mode::Hold)]).prop_map(|(schedule, mode)| Spec {
        schedule,
        mode,
        notified: false,
    })
}

fn config() -> impl Strategy<Value = Config> {
    let limit =
        prop_oneof![(0_u32..20).prop_map(Limit::Packets), (0_u64..20_000).prop_map(Limit::Bytes),];
    let timing = (
        prop_oneof![Just(8_000_000_u64), Just(7_000_000), Just(1_643_836), Just(40_000_000_000)],
        prop_oneof![Just(0_u64), Just(1_000_000), Just(300_001)],
        prop_oneof![Just(0_u64), Just(500_000)],
    );
    (
        timing,
        (limit.clone(), limit),
        prop::collection::vec(prop_oneof![2 => channel(), 1 => recorded_channel()], 0..3),
        (capacity(), outages(), link_layer()),
        any::<bool>(),
    )
        .prop_map(|((bps, delay, cost), (queue, queue_high), channels, times, report)| {
            let (capacity, outages, frame_arq) = times;
            Config {
                capacity,
                frame_arq,
                host_cost: Duration::from_nanos(cost),
                queue,
                queue_high,
                channels,
                outages,
                report_departures: report,
                ..Config::clean(BitRate::from_bps(bps), Duration::from_nanos(delay))
            }
        })
}

fn keeps_order(config: &Config) -> bool {
    !config.channels.iter().any(|channel| {
        matches!(channel, Channel::Arq(arq::Config { order: arq::Order::AsReceived, .. }))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn neither_late_nor_frequent_polling_changes_anything(
        config in config(), seed: u64, steps in steps()
    ) {
        prop_assert_eq!(run_lazily(&config, seed, &steps), run_eagerly(&config, seed, &steps));
    }

    #[test]
    fn the_same_seed_gives_the_same_run(config in config(), seed: u64, steps in steps()) {
        prop_assert_eq!(run_lazily(&config, seed, &steps), run_lazily(&config, seed, &steps));
    }

    /// Every packet is refused, arrives or is lost, once; each that was accepted departs before.
    #[test]
    fn packets_are_conserved(config in config(), seed: u64, steps in steps()) {
        let record = run_lazily(&config, seed, &steps);
        let mut ends = vec![0; steps.len()];
        let mut departures = vec![0; steps.len()];
        let mut verdicts = vec![0; steps.len()];
        for number in &record.refused {
            ends[*number as usize] += 1;
        }
        for Outcome { what, .. } in &record.outcomes {
            match what {
                What::Departed(number) => {
                    prop_assert_eq!(ends[*number as usize], 0);
                    departures[*number as usize] += 1;
                }
                What::Arrived(number) | What::Lost(number, _) => ends[*number as usize] += 1,
                What::Verdict(number, _) => {
                    prop_assert!(!config.report_departures || departures[*number as usize] == 1);
                    verdicts[*number as usize] += 1;
                }
                other => prop_assert!(false, "{:?}", other),
            }
        }
        prop_assert!(ends.iter().all(|count| *count == 1), "{:?}", ends);
        let departed: usize = departures.iter().sum();
        let accepted = steps.len() - record.refused.len();
        prop_assert_eq!(departed, if config.report_departures { accepted } else { 0 });
        let has_link_layer = config.frame_arq.is_some() && config.capacity.is_none();
        prop_assert!(verdicts.iter().all(|count| *count <= 1), "METP-LL-3: {:?}", verdicts);
        let told: usize = verdicts.iter().sum();
        prop_assert_eq!(told, if has_link_layer { accepted } else { 0 });
        let Statistics { enqueued, dropped_full, delivered, .. } = record.statistics;
        prop_assert_eq!(enqueued, accepted as u64);
        prop_assert_eq!(dropped_full, record.refused.len() as u64);
        prop_assert_eq!(delivered + record.statistics.lost_total(), enqueued);
        let bytes: u64 = steps.iter().map(|step| u64::from(step.bytes)).sum();
        prop_assert!(record.statistics.delivered_bytes <= record.statistics.air_bytes);
        prop_assert!(record.statistics.air_bytes <= bytes || has_link_layer);
    }

    /// Outcomes come in the order of time, and within a priority in the order of sending.
    #[test]
    fn packets_of_one_priority_stay_in_order(config in config(), seed: u64, steps in steps()) {
        let record = run_lazily(&config, seed, &steps);
        prop_assert!(record.outcomes.is_sorted_by_key(|outcome| outcome.at));
        let steps = &steps;
        for priority in [Priority::High, Priority::Normal] {
            let of = |departed: bool| record.outcomes.iter().filter_map(move |outcome| {
                let (number, departs) = match outcome.what {
                    What::Departed(number) => (number, true),
                    What::Arrived(number) | What::Lost(number, _) => (number, false),
                    _ => return None,
                };
                let fits = departs == departed && steps[number as usize].priority == priority;
                fits.then_some(number)
            });
            prop_assert!(of(true).is_sorted());
            prop_assert!(of(false).is_sorted() || !keeps_order(&config));
        }
    }
}
