//! The caches of two base stations, one that forwards and one that hears the same (SNHO-3, 4, 8).

use super::super::{Agent, Config};
use super::Role;
use core::net::IpAddr;
use sansio::{
    Delivery, DropReason, Duration, Engine, Event, Host, Input, Instant, Notice, Packet, PacketId,
    PacketRef, Payload, Priority, Random, Side, Sink, StreamId,
};
use std::collections::BTreeSet;
use wire::ip;
use wire::tcp::{Flags, Header, Seq};

const FIXED: Host = Host { address: IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1)), port: 80 };
const MOBILE: Host = Host { address: IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 1, 2)), port: 5000 };
const SEGMENT: u32 = 1_000;
/// Sequence numbers wrap.
const START: Seq = Seq(u32::MAX - 20 * SEGMENT);

/// Counts packets, and keeps what is for the air.
#[derive(Default)]
struct Air {
    ids: u64,
    waiting: Vec<PacketRef>,
}

impl Sink for Air {
    const TRACE: bool = false;

    fn new_id(&mut self) -> PacketId {
        self.ids += 1;
        PacketId(self.ids.try_into().expect("counted from 1"))
    }

    fn send(&mut self, side: Side, _: Priority, packet: PacketRef) {
        self.waiting.extend((side == Side::RADIO).then_some(packet));
    }

    fn discard(&mut self, _: PacketRef, _: DropReason) {}
    fn deliver(&mut self, _: Delivery) {}
    fn event(&mut self, _: Event) {}
}

fn packet((from, to): (Host, Host), change: impl FnOnce(&mut Header), bytes: u32) -> PacketRef {
    let header = ip::Header::new(from.address, to.address, ip::Protocol::TCP);
    let mut tcp = Header::new(from.port, to.port);
    (tcp.flags, tcp.window) = (Flags::ACK, 1000);
    change(&mut tcp);
    let payload = Payload::Virtual { stream: StreamId(1), offset: 0, length: bytes };
    let payload = if bytes == 0 { Payload::EMPTY } else { payload };
    Packet::tcp(PacketId::FIRST, header, tcp, payload).into()
}

fn data(number: u32) -> PacketRef {
    packet((FIXED, MOBILE), |tcp| tcp.seq = START + number * SEGMENT, SEGMENT)
}

fn ack(number: u32) -> PacketRef {
    packet((MOBILE, FIXED), |tcp| tcp.ack = START + number * SEGMENT, 0)
}

/// What one knows of a connection.
#[derive(Debug, PartialEq, Eq)]
struct State {
    role: Role,
    last_ack: Option<Seq>,
    last_seen: Seq,
    expected_dupacks: u32,
    cached: BTreeSet<u32>,
}

/// A base station.
struct Station {
    agent: Agent,
    air: Air,
    now: Instant,
}

impl Station {
    fn new(config: &Config) -> Self {
        Station { agent: Agent::new(config.clone()), air: Air::default(), now: Instant::ZERO }
    }

    fn get(&mut self, side: Side, packet: &PacketRef) {
        self.now += Duration::from_millis(1);
        let input = Input::Arrival { side, packet: packet.clone() };
        self.agent.handle(input, &mut self.air, self.now);
        for packet in core::mem::take(&mut self.air.waiting) {
            self.agent.on_departure(Side::RADIO, &packet, &mut self.air, self.now);
        }
    }

    fn learn(&mut self, notice: Notice) {
        self.agent.handle(Input::Notice(notice), &mut self.air, self.now);
    }

    /// First bytes of what is cached.
    fn cached(&self) -> BTreeSet<u32> {
        let flows = self.agent.flows.iter().flatten();
        flows.flat_map(|flow| flow.cache.iter()).map(|entry| entry.start.since(START)).collect()
    }

    /// What a base station knows of the connection.
    fn state(&self) -> Option<State> {
        let flow = self.agent.flows.iter().flatten().next()?;
        Some(State {
            role: flow.role,
            last_ack: flow.last_ack,
            last_seen: flow.last_seen,
            expected_dupacks: flow.expected_dupacks,
            cached: self.cached(),
        })
    }
}

#[test]
fn snho_3_what_came_first_goes_first_and_not_what_is_lowest() {
    // Four segments.
    let config = Config { cache_segments_max: 4, cache_mark_percent: 100, ..Config::strict() };
    let mut station = Station::new(&config);
    let thousands = |station: &Station| -> Vec<u32> {
        station.cached().iter().map(|start| start / SEGMENT).collect()
    };
    for number in [0, 1, 3, 4] {
        station.get(Side::MIRROR, &data(number));
    }
    // The sender fills the hole, and repeats what is there.
    station.get(Side::MIRROR, &data(2));
    assert_eq!(thousands(&station), [1, 2, 3, 4]);
    station.get(Side::MIRROR, &data(3));
    for (number, expected) in [(5, [2, 3, 4, 5]), (6, [2, 3, 5, 6]), (7, [3, 5, 6, 7])] {
        station.get(Side::MIRROR, &data(number));
        assert_eq!(thousands(&station), expected);
    }
    for (number, expected) in [(8, [5, 6, 7, 8]), (9, [6, 7, 8, 9])] {
        station.get(Side::MIRROR, &data(number));
        assert_eq!(thousands(&station), expected);
    }
    assert_eq!(station.agent.held_bytes(), 4 * u64::from(SEGMENT));
}

#[test]
fn snho_3_the_total_of_all_flows_bounds_what_is_heard_too() {
    let config = Config { cache_bytes_total_max: 2_500, ..Config::strict() };
    let mut station = Station::new(&config);
    (0..5).for_each(|number| station.get(Side::MIRROR, &data(number)));
    assert_eq!(station.cached(), BTreeSet::from([3 * SEGMENT, 4 * SEGMENT]));
}

/// What waits for the air is reckoned from these counts.
#[test]
fn snoop_data_3_a_segment_that_is_sent_again_counts_once_more() {
    for (side, config) in [Side::WIRED, Side::MIRROR]
        .into_iter()
        .flat_map(|side| [Config::strict(), Config::modern()].map(|config| (side, config)))
    {
        let mut station = Station::new(&config);
        for (number, sent) in [(0, 1), (1, 2), (0, 3), (1, 4)] {
            station.get(side, &data(number));
            let flow = station.agent.flows.iter().flatten().next().expect("a flow");
            assert_eq!(flow.sent, sent);
        }
    }
}

/// A sender with at most `window` segments unacknowledged; each step is a segment or an ACK.
struct Sender {
    random: Random,
    window: u32,
    sent: u32,
    acked: u32,
}

impl Sender {
    fn step(&mut self) -> (Side, PacketRef) {
        let may_send = self.sent - self.acked < self.window;
        if self.sent == self.acked || may_send && self.random.chance(0.5) {
            self.sent += 1;
            return (Side::WIRED, data(self.sent - 1));
        }
        self.acked += 1 + self.random.below((self.sent - self.acked).into()) as u32;
        (Side::RADIO, ack(self.acked))
    }
}

#[test]
fn snho_4_and_8_the_mirror_holds_all_that_the_primary_does_and_is_the_same_ten_packets_later() {
    for config in [Config::strict(), Config::modern()] {
        for seed in 0..200 {
            let random = Random::new(seed, "sender");
            let mut sender = Sender { random, window: 20, sent: 0, acked: 0 };
            let [mut primary, mut mirror] = [Station::new(&config), Station::new(&config)];
            for _ in 0..100 + seed {
                let (side, packet) = sender.step();
                primary.get(side, &packet);
                if side == Side::WIRED {
                    mirror.get(Side::MIRROR, &packet);
                }
                assert!(primary.cached().is_subset(&mirror.cached()), "seed {seed}");
            }
            mirror.learn(Notice::Registered(MOBILE.address));
            let is_same = (0..10).any(|_| {
                let (side, packet) = sender.step();
                primary.get(side, &packet);
                mirror.get(side, &packet);
                primary.state() == mirror.state()
            });
            assert!(is_same, "seed {seed}: {:?} and {:?}", primary.state(), mirror.state());
        }
    }
}
