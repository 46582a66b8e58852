//! What is decided at once while nothing is going on is what is decided anyway.

use super::super::{Agent, Config};
use sansio::{
    Delivery, DropReason, Duration, Engine, Event, FlowKey, Host, Input, Instant, Packet, PacketId,
    PacketRef, Payload, Priority, Random, Side, Sink, StreamId,
};
use std::collections::{BTreeSet, VecDeque};
use wire::ip;
use wire::tcp::{Flags, Header, SackBlock, Seq, Timestamps};

/// All that comes out of an agent, as text; what waits for the air beside it.
#[derive(Default)]
struct Outputs {
    text: Vec<String>,
    waiting: VecDeque<PacketRef>,
    ids: u64,
}

impl Sink for Outputs {
    const TRACE: bool = true;

    fn new_id(&mut self) -> PacketId {
        self.ids += 1;
        PacketId(self.ids.try_into().unwrap())
    }

    fn send(&mut self, side: Side, priority: Priority, packet: PacketRef) {
        self.text.push(format!("{side:?} {priority:?} {packet:?}"));
        if side == Side::RADIO {
            self.waiting.push_back(packet);
        }
    }

    fn discard(&mut self, packet: PacketRef, reason: DropReason) {
        self.text.push(format!("{reason:?} {packet:?}"));
    }

    fn deliver(&mut self, _: Delivery) {}

    fn event(&mut self, event: Event) {
        self.text.push(format!("{event:?}"));
    }
}

/// Bytes of a segment, and sequence numbers that wrap.
const SEGMENT: u32 = 1_000;
const START: Seq = Seq(u32::MAX - 50 * SEGMENT);

/// A sender, a radio that loses, and a mobile host, all by chance.
struct World {
    random: Random,
    sack: bool,
    timestamps: bool,
    now: Instant,
    /// Segments sent, those that arrived, and the first that did not.
    sent: u32,
    arrived: BTreeSet<u32>,
    missing: u32,
    outputs: Outputs,
}

impl World {
    fn segment(&mut self, key: FlowKey, change: impl FnOnce(&mut Header), bytes: u32) -> PacketRef {
        let ip = ip::Header::new(key.source.address, key.destination.address, ip::Protocol::TCP);
        let mut header = Header::new(key.source.port, key.destination.port);
        header.flags = Flags::ACK;
        if self.timestamps {
            let millis = (self.now.as_nanos() / 1_000_000) as u32;
            header.options.push_timestamps(Timestamps { value: millis, echo: millis }).unwrap();
        }
        change(&mut header);
        let payload = Payload::Virtual { stream: StreamId(0), offset: 0, length: bytes };
        Packet::tcp(self.outputs.new_id(), ip, header, payload).into()
    }

    /// The next segment, or an old one once more.
    fn data(&mut self, key: FlowKey) -> Option<Input> {
        let is_old = self.sent > self.missing && self.random.chance(0.1);
        if !is_old && self.sent >= self.missing + 30 {
            return None;
        }
        let number = if is_old { self.missing } else { self.sent };
        self.sent += u32::from(!is_old);
        let packet = self.segment(key, |header| header.seq = START + number * SEGMENT, SEGMENT);
        Some(Input::Arrival { side: Side::WIRED, packet })
    }

    fn ack(&mut self, key: FlowKey) -> Input {
        let (missing, above) = (self.missing, self.arrived.iter().next().copied());
        let block = above.filter(|_| self.sack).map(|first| SackBlock {
            start: START + first * SEGMENT,
            end: START + (first + 1) * SEGMENT,
        });
        let window = if self.random.chance(0.05) { 900 } else { 1_000 };
        let change = |header: &mut Header| {
            (header.ack, header.window) = (START + missing * SEGMENT, window);
            header.options.push_sack(block.as_slice());
        };
        let packet = self.segment(key.reversed(), change, 0);
        Input::Arrival { side: Side::RADIO, packet }
    }

    /// The next packet departs, or its queue drops it, and it arrives, or is lost.
    fn departure(&mut self, agent: &mut Agent) {
        let Some(packet) = self.outputs.waiting.pop_front() else { return };
        if self.random.chance(0.005) {
            return;
        }
        agent.on_departure(Side::RADIO, &packet, &mut self.outputs, self.now);
        let tcp = packet.as_tcp().unwrap();
        if packet.payload.len() == SEGMENT && !self.random.chance(0.02) {
            self.arrived.insert(tcp.seq.since(START) / SEGMENT);
            self.arrived.retain(|number| *number >= self.missing);
            while self.arrived.remove(&self.missing) {
                self.missing += 1;
            }
        }
    }
}

/// All that an agent says and remembers, and how often nothing was going on when an ACK came.
/// `forgetful`: it never knows that.
fn run(config: Config, seed: u64, forgetful: bool) -> (Vec<String>, usize) {
    let host = |last, port| Host { address: [10, 0, 0, last].into(), port };
    let key = FlowKey { source: host(1, 80), destination: host(2, 5_000) };
    let mut agent = Agent::new(config);
    let mut world = World {
        random: Random::new(seed, "quiet"),
        sack: seed.is_multiple_of(2),
        timestamps: seed.is_multiple_of(3),
        now: Instant::ZERO,
        sent: 0,
        arrived: BTreeSet::new(),
        missing: 0,
        outputs: Outputs::default(),
    };
    let mut quiet = 0;
    for _ in 0..1_500 {
        let millis = if world.random.chance(0.003) { 400 } else { world.random.below(4) };
        world.now += Duration::from_millis(millis);
        let is_due = agent.next_at().is_some_and(|at| at <= world.now);
        let input = match world.random.below(3) {
            _ if is_due => Some(Input::Timer),
            0 => world.data(key),
            1 => Some(world.ack(key)),
            _ => None,
        };
        for flow in agent.flows.iter_mut().flatten() {
            flow.is_quiet &= !forgetful;
            quiet += usize::from(flow.is_quiet);
        }
        match input {
            Some(input) => agent.handle(input, &mut world.outputs, world.now),
            None => world.departure(&mut agent),
        }
        world.outputs.text.push(format!("{:?}", agent.next_deadline()));
    }
    for flow in agent.flows.iter_mut().flatten() {
        flow.is_quiet = false;
        world.outputs.text.push(format!("{flow:?}"));
    }
    world.outputs.text.push(format!("{:?} {}", agent.shared, world.missing));
    (world.outputs.text, quiet)
}

#[test]
fn snoop_ack_1_what_is_decided_at_once_is_what_is_decided_anyway() {
    let mut quiet = 0;
    for seed in 0..60 {
        for config in [Config::strict(), Config::modern()] {
            let (at_once, times) = run(config.clone(), seed, false);
            let (anyway, _) = run(config, seed, true);
            let differs = at_once.iter().zip(&anyway).position(|(a, b)| a != b);
            if let Some(line) = differs {
                panic!("seed {seed}, line {line}:\n{}\n{}", at_once[line], anyway[line]);
            }
            assert_eq!(at_once.len(), anyway.len(), "seed {seed}");
            quiet += times;
        }
    }
    assert!(quiet > 10_000, "nothing was going on {quiet} times only");
}
