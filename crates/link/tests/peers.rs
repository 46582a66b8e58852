//! Several peers behind one hop: whose packet is next, what an outage of one does to the others,
//! and that nothing is lost or sent twice, whatever the driver polls.

use link::channel::{Config as Channel, arq, fade, packet_loss};
use link::hop::{Config, Peer, Sharing, frame_arq, half_duplex::settle};
use link::outage::{Length, Mode, Planned, Schedule, Spec};
use link::{Hop, Limit, Loss, Outcome, What};
use proptest::prelude::*;
use sansio::{BitRate, Duration, Instant, Priority};

/// A packet's peer and number.
type Packet = (usize, u32);

/// 1000 bytes take 1 ms; no delay to speak of.
fn config() -> Config {
    Config {
        queue: Limit::Packets(u32::MAX),
        report_departures: true,
        ..Config::clean(BitRate::from_mbps(8), Duration::from_nanos(1))
    }
}

fn shared(config: &Config, sharing: Sharing, peers: usize) -> Hop<Packet> {
    let peer = |n: usize| Peer { name: format!("{n}.down"), outage_seed: SEEDS[n] };
    let peers: Vec<Peer> = (0..peers).map(peer).collect();
    Hop::shared(config, (1, &peers), sharing, |packet| packet.0)
}

/// Of the outages of each peer; a run's own seed is 1.
const SEEDS: [u64; 8] = [1, 3, 4, 5, 6, 7, 8, 9];

fn millis(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

/// Follows every event of a hop up to an instant, as the simulator does.
fn follow(hop: &mut Hop<Packet>, until: Instant) -> Vec<Outcome<Packet>> {
    let mut outcomes = Vec::new();
    while let Some(now) = hop.next_event().filter(|now| *now <= until) {
        let before = outcomes.len();
        outcomes.extend(std::iter::from_fn(|| hop.poll(now)));
        for outcome in &outcomes[before..] {
            assert_eq!(outcome.at, now, "found at its instant: {outcome:?}");
        }
        assert_ne!(hop.next_event(), Some(now), "a poll leaves nothing due");
    }
    outcomes
}

/// First bits on the air, in milliseconds.
fn departures(outcomes: &[Outcome<Packet>]) -> Vec<(f64, Packet)> {
    let departure = |outcome: &Outcome<Packet>| match outcome.what {
        What::Departed(packet) => Some((outcome.at.as_nanos() as f64 / 1e6, packet)),
        _ => None,
    };
    outcomes.iter().filter_map(departure).collect()
}

const END: Instant = Instant::from_nanos(3_600_000_000_000);

/// Three packets for peer 0, then one for each of two others, all at once.
fn backlog(sharing: Sharing) -> Vec<Packet> {
    let mut hop = shared(&config(), sharing, 3);
    for packet in [(0, 0), (0, 1), (0, 2), (1, 3), (2, 4)] {
        hop.enqueue(packet, 1000, Priority::Normal, Instant::ZERO).expect("room");
    }
    let outcomes = follow(&mut hop, END);
    departures(&outcomes).into_iter().map(|(_, packet)| packet).collect()
}

#[test]
fn one_queue_serves_in_the_order_of_arrival_and_queues_of_their_own_in_turns() {
    assert_eq!(backlog(Sharing::OneQueue), [(0, 0), (0, 1), (0, 2), (1, 3), (2, 4)]);
    assert_eq!(backlog(Sharing::QueueEach), [(0, 0), (1, 3), (2, 4), (0, 1), (0, 2)]);
}

#[test]
fn high_priority_goes_first_whosever_it_is() {
    let mut hop = shared(&config(), Sharing::OneQueue, 2);
    for (packet, priority) in
        [((0, 0), Priority::Normal), ((0, 1), Priority::Normal), ((1, 2), Priority::High)]
    {
        hop.enqueue(packet, 1000, priority, Instant::ZERO).expect("room");
    }
    let outcomes = follow(&mut hop, END);
    assert_eq!(departures(&outcomes), [(0.0, (0, 0)), (1.0, (1, 2)), (2.0, (0, 1))]);
}

#[test]
fn one_queue_has_room_for_all_together_and_queues_of_their_own_for_each() {
    for (sharing, accepted) in [(Sharing::OneQueue, 3), (Sharing::QueueEach, 5)] {
        for queue in [Limit::Packets(2), Limit::Bytes(2000)] {
            let mut hop = shared(&Config { queue, ..config() }, sharing, 2);
            let all = [(0, 0), (0, 1), (0, 2), (0, 3), (1, 4), (1, 5), (1, 6)];
            let mut enter =
                |packet| hop.enqueue(packet, 1000, Priority::Normal, Instant::ZERO).is_ok();
            assert_eq!(all.into_iter().filter(|packet| enter(*packet)).count(), accepted);
            assert_eq!(hop.statistics().dropped_full as usize, all.len() - accepted);
            assert_eq!(hop.queue_bytes() as usize, (accepted - 1) * 1000);
        }
    }
}

/// Peer 0 away for longer than peer 1, and until when: lengths are drawn from their seeds.
fn one_is_away(mode: Mode) -> (Config, u64) {
    let length = Length { shortest: Duration::from_millis(1), longest: Duration::from_millis(10) };
    let planned = Planned { start: Instant::ZERO, spread: Duration::ZERO, length };
    let outages = Spec { schedule: Schedule::At(vec![planned]), mode, notified: false };
    let end = |seed| {
        let all = link::Outages::new(&outages, seed);
        all.next_transition(Instant::ZERO).map_or(0, |(at, _)| at.as_nanos())
    };
    let ends = [end(SEEDS[0]), end(SEEDS[1])];
    assert!(ends[0] > ends[1] + 100, "the seeds of this test: {ends:?}");
    (Config { outages: outages.clone(), ..config() }, ends[0])
}

#[test]
fn base_26_who_is_away_is_passed_over_and_nobody_else_waits() {
    for sharing in [Sharing::OneQueue, Sharing::QueueEach] {
        let (config, back_at) = one_is_away(Mode::Hold);
        let mut hop = shared(&config, sharing, 2);
        let now = Instant::from_nanos(back_at - 10);
        hop.enqueue((0, 0), 1000, Priority::High, now).expect("room");
        hop.enqueue((1, 1), 1000, Priority::Normal, now).expect("room");
        hop.enqueue((0, 2), 1000, Priority::Normal, now).expect("room");
        let outcomes = follow(&mut hop, END);
        let order: Vec<Packet> = departures(&outcomes).iter().map(|one| one.1).collect();
        assert_eq!(order, [(1, 1), (0, 0), (0, 2)], "{sharing:?}");
        let first = outcomes.iter().find(|outcome| matches!(outcome.what, What::Arrived((1, 1))));
        assert!(first.is_some(), "{outcomes:?}");
        // Alone, the one that is away starts with its return, and not before.
        let mut hop = shared(&config, sharing, 2);
        hop.enqueue((0, 0), 1000, Priority::Normal, now).expect("room");
        assert_eq!(hop.next_event().map(Instant::as_nanos), Some(back_at));
        let departed = departures(&follow(&mut hop, END));
        assert_eq!(departed, [(back_at as f64 / 1e6, (0, 0))]);
    }
}

#[test]
fn what_is_sent_to_one_that_is_away_takes_its_own_air_and_no_more() {
    let (config, back_at) = one_is_away(Mode::Lose);
    let mut hop = shared(&config, Sharing::OneQueue, 2);
    let now = Instant::from_nanos(back_at - 10);
    hop.enqueue((0, 0), 1000, Priority::Normal, now).expect("room");
    hop.enqueue((1, 1), 1000, Priority::Normal, now).expect("room");
    let outcomes = follow(&mut hop, END);
    let fates: Vec<&What<Packet>> = outcomes.iter().map(|outcome| &outcome.what).collect();
    assert!(fates.contains(&&What::Lost((0, 0), Loss::Outage)), "{fates:?}");
    assert!(fates.contains(&&What::Arrived((1, 1))), "{fates:?}");
    assert_eq!(hop.statistics().busy, Duration::from_millis(2));
}

#[test]
fn a_packet_that_its_channel_delays_holds_up_its_own_peer_only() {
    let late = |try_failure| {
        Channel::Arq(arq::Config {
            try_failure,
            retry_time: Duration::from_millis(50),
            retries_max: 3,
            order: arq::Order::InOrder,
        })
    };
    let config = Config { channels: vec![late(0.5)], ..config() };
    let mut hop = shared(&config, Sharing::OneQueue, 2);
    for number in 0..40 {
        hop.enqueue((number as usize % 2, number), 1000, Priority::Normal, millis(0))
            .expect("room");
    }
    let outcomes = follow(&mut hop, END);
    let arrived = |peer: Option<usize>| {
        let of = move |outcome: &Outcome<Packet>| match outcome.what {
            What::Arrived(packet) if peer.is_none_or(|peer| packet.0 == peer) => Some(packet.1),
            _ => None,
        };
        outcomes.iter().filter_map(of).collect::<Vec<u32>>()
    };
    assert!(arrived(Some(0)).is_sorted() && arrived(Some(1)).is_sorted());
    assert!(!arrived(None).is_sorted(), "one overtakes the other");
}

/// Both directions of an air that several hosts share, and what came of them.
#[derive(Clone)]
struct Radio {
    hops: [Hop<Packet>; 2],
    outcomes: [Vec<Outcome<Packet>>; 2],
    half_duplex: bool,
}

impl Radio {
    fn new(config: &Config, peers: usize, half_duplex: bool) -> Self {
        let hops = [Sharing::OneQueue, Sharing::QueueEach];
        let hops = hops.map(|sharing| shared(config, sharing, peers));
        Radio { hops, outcomes: [Vec::new(), Vec::new()], half_duplex }
    }

    fn settle(&mut self, now: Instant) {
        if self.half_duplex {
            let [down, up] = &mut self.hops;
            settle(down, up, now);
        }
    }

    fn send(&mut self, way: usize, packet: Packet, bytes: u32, now: Instant) {
        self.settle(now);
        self.hops[way].enqueue(packet, bytes, Priority::Normal, now).expect("room");
    }

    fn poll(&mut self, way: usize, now: Instant) {
        self.settle(now);
        self.outcomes[way].extend(std::iter::from_fn(|| self.hops[way].poll(now)));
    }

    fn follow(&mut self, until: Instant) {
        loop {
            let next = |way: usize| self.hops[way].next_event().map(|at| (at, way));
            let Some((now, way)) = [next(0), next(1)].into_iter().flatten().min() else { return };
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
}

type Traffic = Vec<(usize, usize, u64, u32, bool)>;

fn traffic() -> impl Strategy<Value = Traffic> {
    let gap = prop_oneof![3 => Just(0), 3 => (0_u64..6).prop_map(|half| half * 500_000),
        2 => 0_u64..9_000_000];
    let bytes = prop_oneof![Just(1000_u32), Just(500), Just(40), 1_u32..3000];
    prop::collection::vec((0_usize..2, 0_usize..8, gap, bytes, any::<bool>()), 1..80)
}

fn air() -> impl Strategy<Value = Config> {
    let channel = prop_oneof![
        Just(Channel::PacketLoss(packet_loss::Config { probability: 0.2 })),
        Just(Channel::Fade(fade::Config {
            good: Duration::from_millis(20),
            bad: Duration::from_millis(5),
            loss: 0.7,
        })),
        Just(Channel::Arq(arq::Config {
            try_failure: 0.3,
            retry_time: Duration::from_millis(3),
            retries_max: 2,
            order: arq::Order::InOrder,
        })),
    ];
    let length = Length { shortest: Duration::from_millis(1), longest: Duration::from_millis(15) };
    let schedule = prop_oneof![
        Just(Schedule::Never),
        Just(Schedule::Every { every: Duration::from_millis(30), length }),
    ];
    let mode = prop_oneof![Just(Mode::Lose), Just(Mode::Hold)];
    let cost = prop_oneof![Just(0_u64), Just(500_000)];
    let arq = prop_oneof![
        3 => Just(None),
        1 => Just(Some(frame_arq::Config {
            retry: frame_arq::Retry::Limited(2),
            ack_time: Duration::from_micros(300),
        })),
    ];
    (prop::collection::vec(channel, 0..2), schedule, mode, cost, arq).prop_map(
        |(channels, schedule, mode, cost, frame_arq)| Config {
            channels,
            outages: Spec { schedule, mode, notified: false },
            host_cost: Duration::from_nanos(cost),
            frame_arq,
            ..config()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2048))]

    /// Each packet once, one on the air at a time, each peer's in order, whatever the driver polls.
    #[test]
    fn peers_share_the_air_packet_by_packet(
        config in air(),
        traffic in traffic(),
        peers in 1_usize..9,
        half_duplex: bool,
    ) {
        let mut lazy = Radio::new(&config, peers, half_duplex);
        let mut eager = lazy.clone();
        let mut now = Instant::ZERO;
        for (number, &(way, peer, gap, bytes, polls)) in traffic.iter().enumerate() {
            now += Duration::from_nanos(gap);
            let packet = (peer % peers, number as u32);
            eager.follow(now);
            eager.send(way, packet, bytes, now);
            if polls {
                lazy.poll(1 - way, now);
            }
            lazy.send(way, packet, bytes, now);
        }
        eager.follow(END);
        lazy.poll(1, END);
        lazy.poll(0, END);
        prop_assert_eq!(&lazy.outcomes, &eager.outcomes);
        let mut departed: Vec<(Instant, usize)> = Vec::new();
        for way in 0..2 {
            let of = |wanted: fn(&What<Packet>) -> Option<Packet>| -> Vec<(Instant, Packet)> {
                let one = |one: &Outcome<Packet>| wanted(&one.what).map(|packet| (one.at, packet));
                lazy.outcomes[way].iter().filter_map(one).collect()
            };
            let mut left = of(|what| match what {
                What::Arrived(packet) | What::Lost(packet, _) => Some(*packet),
                _ => None,
            });
            for peer in 0..peers {
                let own = left.iter().filter(|(_, packet)| packet.0 == peer);
                prop_assert!(own.map(|(_, packet)| packet.1).is_sorted(), "peer {peer} in order");
            }
            left.sort_by_key(|(_, packet)| packet.1);
            let sent = (0_u32..).zip(&traffic).filter(|(_, one)| one.0 == way);
            let sent: Vec<u32> = sent.map(|(number, _)| number).collect();
            let left: Vec<u32> = left.into_iter().map(|(_, packet)| packet.1).collect();
            prop_assert_eq!(left, sent, "each packet leaves the hop once");
            let mut first_bits = of(|what| match what {
                What::Departed(packet) => Some(*packet),
                _ => None,
            });
            first_bits.sort();
            let air = |at: &(Instant, Packet)| (at.0, at.1.1 as usize);
            if half_duplex {
                departed.extend(first_bits.iter().map(air));
            } else {
                one_at_a_time(&first_bits.iter().map(air).collect::<Vec<_>>(), &config, &traffic)?;
            }
        }
        departed.sort();
        one_at_a_time(&departed, &config, &traffic)?;
    }

    /// A hop with one peer is a hop.
    #[test]
    fn one_peer_is_as_good_as_none(config in air(), traffic in traffic()) {
        let mut config = config;
        let holds = config.outages.mode == Mode::Hold;
        if holds {
            // Where an outage holds they differ: peers begin anew with each packet that comes, so
            // that it may be served before the outage; they are not served within its end; and
            // frames that are on the air are repeated.
            (config.frame_arq, config.host_cost) = (None, Duration::ZERO);
        }
        for sharing in [Sharing::OneQueue, Sharing::QueueEach] {
            let mut alone = Hop::new(&config, 1, "0.down");
            let mut one = shared(&config, sharing, 1);
            let mut now = Instant::ZERO;
            for (number, &(_, _, gap, bytes, high)) in (0..).zip(&traffic) {
                now += Duration::from_nanos(gap);
                let priority = if high && !holds { Priority::High } else { Priority::Normal };
                let entered = [&mut alone, &mut one].map(|hop| {
                    hop.enqueue((0, number), bytes, priority, now).is_ok()
                });
                prop_assert_eq!(entered[0], entered[1]);
                prop_assert_eq!(alone.queue_packets(), one.queue_packets());
                prop_assert_eq!(alone.queue_bytes(), one.queue_bytes());
            }
            prop_assert_eq!(follow(&mut alone, END), follow(&mut one, END));
            prop_assert_eq!(alone.statistics(), one.statistics());
        }
    }
}

/// Between two first bits there is room for all bits of the first packet.
fn one_at_a_time(
    departed: &[(Instant, usize)],
    config: &Config,
    traffic: &Traffic,
) -> Result<(), TestCaseError> {
    for two in departed.windows(2) {
        let bits = Duration::from_nanos(u64::from(traffic[two[0].1].3) * 1000);
        let apart = two[1].0.since(two[0].0);
        prop_assert!(apart >= bits + config.host_cost, "{two:?}");
    }
    Ok(())
}
