//! Fixed host, base station, mobile host and an air that loses: what the agent achieves.
//!
//! The hosts are as simple as can be: a sender with a fixed window and a retransmission timeout,
//! no fast retransmit, and a receiver that acknowledges every segment. So whatever is repaired
//! before the timeout, the agent has repaired.

use crate::drill::{FIXED, MOBILE, segment, tcp_mut};
use sansio::{
    BitRate, Cause, Delivery, DropReason, Duration, Engine, Event, Input, Instant, Notice,
    PacketId, PacketRef, Payload, Priority, Random, Side, Sink, StreamId,
};
use schemes::snoop::{Agent, Config};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use wire::tcp::{Flags, SackBlock, Seq};

const SEGMENT: u32 = 1000;

/// What is known of a transmission when the air decides about it.
struct Transmission {
    /// Number of the data segment; `None` on the way up.
    number: Option<u32>,
    /// How many times it was on the air before.
    copies: u32,
    at: Instant,
}

struct World {
    wired_delay: Duration,
    air_delay: Duration,
    rate: BitRate,
    window: u32,
    segments: u32,
    sack: bool,
    loses: Box<dyn FnMut(&Transmission) -> bool>,
    /// What the base station is told, and when.
    notices: Vec<(Duration, Notice)>,
}

impl World {
    /// 2 Mbit/s and 1 ms to the mobile host, 1 ms to the fixed host, window 44: as in comparisons
    /// with ns-2.
    fn slow() -> Self {
        World {
            wired_delay: Duration::from_millis(1),
            air_delay: Duration::from_millis(1),
            rate: BitRate::from_mbps(2),
            window: 44,
            segments: 2_000,
            sack: true,
            loses: Box::new(|_| false),
            notices: Vec::new(),
        }
    }

    /// 20 Mbit/s, round trip on the air 31 ms.
    fn fast() -> Self {
        World {
            air_delay: Duration::from_millis(15),
            rate: BitRate::from_mbps(20),
            window: 100,
            segments: 20_000,
            ..World::slow()
        }
    }
}

enum Happening {
    AtFixed(PacketRef),
    AtStation(Side, PacketRef),
    AtMobile(PacketRef),
    AirFree,
    SenderTimeout,
    AgentTimer,
    Notice(Notice),
}

#[derive(Default)]
struct Outbox {
    sent: Vec<(Side, Priority, PacketRef)>,
    ids: u64,
}

impl Sink for Outbox {
    const TRACE: bool = false;
    fn new_id(&mut self) -> PacketId {
        self.ids += 1;
        PacketId(self.ids.try_into().expect("counted from 1"))
    }
    fn send(&mut self, side: Side, priority: Priority, packet: PacketRef) {
        self.sent.push((side, priority, packet));
    }
    fn discard(&mut self, _: PacketRef, _: DropReason) {}
    fn deliver(&mut self, _: Delivery) {}
    fn event(&mut self, _: Event) {}
}

/// A run in progress; then its result.
struct Run {
    world: World,
    agent: Agent,
    now: Instant,
    events: BTreeMap<(Instant, u64), Happening>,
    order: u64,
    outbox: Outbox,
    queues: [VecDeque<PacketRef>; 2],
    air_free: bool,
    // Sender.
    next: u32,
    acked: u32,
    timeout: Duration,
    timeout_at: Instant,
    // Receiver.
    received: BTreeSet<u32>,
    expected: u32,
    latest: u32,
    // Results.
    dupacks_at_sender: u32,
    sack_at_sender: u32,
    timeouts: u32,
    acked_at: Vec<Instant>,
    departures: BTreeMap<u32, Vec<Instant>>,
}

fn run(config: Config, world: World) -> Run {
    let mut run = Run {
        world,
        agent: Agent::new(config),
        now: Instant::ZERO,
        events: BTreeMap::new(),
        order: 0,
        outbox: Outbox::default(),
        queues: Default::default(),
        air_free: true,
        next: 0,
        acked: 0,
        timeout: Duration::from_secs(1),
        timeout_at: Instant::ZERO + Duration::from_secs(1),
        received: BTreeSet::new(),
        expected: 0,
        latest: 0,
        dupacks_at_sender: 0,
        sack_at_sender: 0,
        timeouts: 0,
        acked_at: Vec::new(),
        departures: BTreeMap::new(),
    };
    run.after(run.timeout, Happening::SenderTimeout);
    for (delay, notice) in std::mem::take(&mut run.world.notices) {
        run.after(delay, Happening::Notice(notice));
    }
    run.fill_window();
    while run.acked < run.world.segments {
        let ((at, _), happening) = run.events.pop_first().expect("every transfer ends");
        assert!(at < Instant::ZERO + Duration::from_secs(600), "no progress: {} acked", run.acked);
        run.now = at;
        run.happens(happening);
    }
    run
}

impl Run {
    fn after(&mut self, delay: Duration, happening: Happening) {
        self.order += 1;
        self.events.insert((self.now + delay, self.order), happening);
    }

    fn happens(&mut self, happening: Happening) {
        match happening {
            Happening::AtFixed(packet) => self.at_fixed(&packet),
            Happening::AtStation(side, packet) => self.agent(Input::Arrival { side, packet }),
            Happening::AtMobile(packet) => self.at_mobile(&packet),
            Happening::Notice(notice) => self.agent(Input::Notice(notice)),
            Happening::AirFree => {
                self.air_free = true;
                self.transmit();
            }
            Happening::AgentTimer => {
                if self.agent.next_deadline().is_some_and(|deadline| deadline.at <= self.now) {
                    self.agent(Input::Timer);
                }
            }
            Happening::SenderTimeout if self.now < self.timeout_at => {
                self.after(self.timeout_at.since(self.now), Happening::SenderTimeout);
            }
            Happening::SenderTimeout => {
                self.timeouts += 1;
                self.timeout = self.timeout * 2;
                self.timeout_at = self.now + self.timeout;
                self.after(self.timeout, Happening::SenderTimeout);
                self.send(self.acked, Cause::EndToEndRetransmission);
            }
        }
    }

    fn agent(&mut self, input: Input) {
        self.agent.handle(input, &mut self.outbox, self.now);
        for (side, priority, packet) in std::mem::take(&mut self.outbox.sent) {
            if side == Side::RADIO {
                self.queues[usize::from(priority == Priority::Normal)].push_back(packet);
            } else {
                self.after(self.world.wired_delay, Happening::AtFixed(packet));
            }
        }
        if let Some(deadline) = self.agent.next_deadline() {
            self.after(deadline.at.since(self.now), Happening::AgentTimer);
        }
        self.transmit();
    }

    /// The air takes the next packet, if it is free.
    fn transmit(&mut self) {
        if !self.air_free {
            return;
        }
        let [high, normal] = &mut self.queues;
        let Some(packet) = high.pop_front().or_else(|| normal.pop_front()) else { return };
        self.air_free = false;
        let number = packet.as_tcp().expect("TCP").seq.0 / SEGMENT;
        let copies = self.departures.entry(number).or_default();
        let transmission =
            Transmission { number: Some(number), copies: copies.len() as u32, at: self.now };
        copies.push(self.now);
        let lost = (self.world.loses)(&transmission);
        let time = self.world.rate.time_for(packet.bytes());
        self.after(time, Happening::AirFree);
        if !lost {
            self.after(time + self.world.air_delay, Happening::AtMobile(packet.clone()));
        }
        self.agent(Input::Departure { side: Side::RADIO, packet });
    }

    fn fill_window(&mut self) {
        while self.next < self.world.segments && self.next < self.acked + self.world.window {
            self.send(self.next, Cause::Original);
            self.next += 1;
        }
    }

    fn send(&mut self, number: u32, cause: Cause) {
        let mut packet = segment(self.outbox.new_id(), FIXED, MOBILE, Flags::ACK);
        packet.cause = cause;
        packet.payload = Payload::Virtual {
            stream: StreamId(1),
            offset: u64::from(number * SEGMENT),
            length: SEGMENT,
        };
        tcp_mut(&mut packet).seq = Seq(number * SEGMENT);
        let arrival = Happening::AtStation(Side::WIRED, packet.into());
        self.after(self.world.wired_delay, arrival);
    }

    fn at_fixed(&mut self, packet: &PacketRef) {
        let tcp = packet.as_tcp().expect("TCP");
        self.sack_at_sender += u32::from(tcp.options.sack_blocks().next().is_some());
        let acked = tcp.ack.0 / SEGMENT;
        if acked > self.acked {
            self.acked = acked;
            self.acked_at.push(self.now);
            self.timeout = Duration::from_secs(1);
            self.timeout_at = self.now + self.timeout;
            self.fill_window();
        } else if tcp.ack.0 == self.acked * SEGMENT {
            self.dupacks_at_sender += 1;
        }
    }

    fn at_mobile(&mut self, packet: &PacketRef) {
        let seq = packet.as_tcp().expect("TCP").seq.0;
        // A probe's byte is kept as a part of the segment at the left edge.
        let end = seq + packet.payload.len();
        if seq == self.expected {
            self.expected = end;
            while self.received.remove(&(self.expected / SEGMENT))
                && self.expected.is_multiple_of(SEGMENT)
            {
                self.expected += SEGMENT;
            }
        } else if seq > self.expected && packet.payload.len() == SEGMENT {
            self.received.insert(seq / SEGMENT);
            self.latest = seq / SEGMENT;
        }
        let mut ack = segment(self.outbox.new_id(), MOBILE, FIXED, Flags::ACK);
        tcp_mut(&mut ack).ack = Seq(self.expected);
        if self.world.sack {
            tcp_mut(&mut ack).options.push_sack(&self.blocks());
        }
        let transmission = Transmission { number: None, copies: 0, at: self.now };
        if !(self.world.loses)(&transmission) {
            let arrival = Happening::AtStation(Side::RADIO, ack.into());
            self.after(self.world.air_delay, arrival);
        }
    }

    /// Up to three SACK blocks, the one with the latest arrival first (RFC 2018, section 4).
    fn blocks(&self) -> Vec<SackBlock> {
        let mut blocks: Vec<(u32, u32)> = Vec::new();
        for &number in &self.received {
            match blocks.last_mut() {
                Some((_, end)) if *end == number => *end += 1,
                _ => blocks.push((number, number + 1)),
            }
        }
        blocks.sort_by_key(|(start, end)| !(*start..*end).contains(&self.latest));
        let block = |&(start, end): &(u32, u32)| SackBlock {
            start: Seq(start * SEGMENT),
            end: Seq(end * SEGMENT),
        };
        blocks.iter().take(3).map(block).collect()
    }

    fn goodput_share(&self, loss: f64) -> f64 {
        let bits = f64::from(self.world.segments * SEGMENT) * 8.0;
        let ceiling = self.world.rate.as_bps() as f64 * (1.0 - loss) * 1000.0 / 1040.0;
        bits / self.now.as_secs_f64() / ceiling
    }
}

/// Loses the first `copies` copies of each of the numbered segments.
fn first_copies(numbers: &'static [u32], copies: u32) -> Box<dyn FnMut(&Transmission) -> bool> {
    Box::new(move |transmission| {
        transmission.number.is_some_and(|number| numbers.contains(&number))
            && transmission.copies < copies
    })
}

/// Loses each packet on its own with this probability, in both directions.
fn at_random(loss: f64) -> Box<dyn FnMut(&Transmission) -> bool> {
    let mut random = Random::new(1, "air");
    Box::new(move |transmission| transmission.number.is_some() && random.chance(loss))
}

/// Loses everything from `begin` for `length`.
fn outage(begin: Duration, length: Duration) -> Box<dyn FnMut(&Transmission) -> bool> {
    Box::new(move |transmission| {
        let since = transmission.at.since(Instant::ZERO + begin);
        transmission.at >= Instant::ZERO + begin && since < length
    })
}

#[test]
fn several_losses_per_window_are_repaired_and_no_dupack_reaches_the_fixed_host() {
    for (name, config, sack) in [
        ("strict", Config::strict(), false),
        ("strict, SACK", Config::strict(), true),
        ("modern", Config::modern(), true),
        ("modern without SACK", Config::modern(), false),
    ] {
        let loses = first_copies(&[60, 62, 65, 66, 80, 95], 1);
        let run = run(config, World { loses, sack, ..World::slow() });
        assert_eq!(run.dupacks_at_sender, 0, "{name}");
        assert_eq!(run.timeouts, 0, "{name}");
        assert_eq!(run.agent.statistics().retransmissions, 6, "{name}");
    }
}

#[test]
fn modern_shows_the_sender_no_sack_block_while_it_repairs() {
    let loses = at_random(0.05);
    let run = run(Config::modern(), World { loses, ..World::slow() });
    assert_eq!((run.dupacks_at_sender, run.sack_at_sender, run.timeouts), (0, 0, 0));
}

#[test]
fn modern_repairs_a_lost_retransmission_within_two_local_round_trips() {
    let loses = first_copies(&[500], 3);
    let run = run(Config::modern(), World { loses, ..World::fast() });
    assert_eq!((run.dupacks_at_sender, run.timeouts), (0, 0));
    let copies = &run.departures[&500];
    assert_eq!(copies.len(), 4);
    for pair in copies.windows(2) {
        let gap = pair[1].since(pair[0]);
        assert!(gap <= Duration::from_millis(2 * 31), "{gap} between two copies");
    }
}

#[test]
fn strict_comes_near_the_ceiling_where_round_trips_are_short() {
    for (loss, wanted) in [(0.0, 0.99), (0.01, 0.97), (0.05, 0.97), (0.17, 0.95)] {
        let world = World { loses: at_random(loss), sack: false, ..World::slow() };
        let share = run(Config::strict(), world).goodput_share(loss);
        assert!(share >= wanted, "{share:.3} of the ceiling at {loss}");
    }
}

#[test]
fn modern_repairs_without_sack_too() {
    for loss in [0.05, 0.1, 0.2] {
        let world = World { loses: at_random(loss), sack: false, segments: 5_000, ..World::fast() };
        let run = run(Config::modern(), world);
        assert_eq!((run.dupacks_at_sender, run.timeouts), (0, 0), "at {loss}");
    }
}

#[test]
fn modern_comes_near_the_ceiling_at_every_loss_rate() {
    for (loss, wanted) in [(0.0, 0.99), (0.01, 0.97), (0.05, 0.97), (0.17, 0.95), (0.30, 0.90)] {
        let run = run(Config::modern(), World { loses: at_random(loss), ..World::slow() });
        let share = run.goodput_share(loss);
        assert!(share >= wanted, "{share:.3} of the ceiling at {loss}");
    }
}

#[test]
fn modern_restarts_within_a_round_trip_and_45_ms_when_nobody_tells() {
    for millis in [150, 300, 777, 1_100, 2_345, 7_000, 20_000] {
        let (begin, length) = (Duration::from_secs(2), Duration::from_millis(millis));
        let loses = outage(begin, length);
        let run = run(Config::modern(), World { loses, ..World::fast() });
        let end = Instant::ZERO + begin + length;
        let restarted_at = run.acked_at.iter().find(|at| **at > end).expect("it goes on");
        let stall = restarted_at.since(end);
        // The wired hop and a full segment's air time are on top of the local round trip.
        let limit = Duration::from_millis(31 + 45 + 2);
        assert!(stall <= limit, "{stall} after an outage of {length}");
        let probes = run.agent.statistics().probe_bytes as f64 * 8.0;
        let share = probes / (20e6 * length.as_secs_f64());
        assert!(share <= 0.002, "{share} of the air in an outage of {length}");
    }
}

#[test]
fn modern_restarts_within_a_round_trip_when_told() {
    for millis in [100, 1_100, 20_000] {
        let (begin, length) = (Duration::from_secs(2), Duration::from_millis(millis));
        let notices = vec![
            (begin, Notice::LinkDown(Side::RADIO)),
            (begin + length, Notice::LinkUp(Side::RADIO)),
        ];
        let loses = outage(begin, length);
        let run = run(Config::modern(), World { loses, notices, ..World::fast() });
        let end = Instant::ZERO + begin + length;
        let restarted_at = run.acked_at.iter().find(|at| **at > end).expect("it goes on");
        let stall = restarted_at.since(end);
        assert!(stall <= Duration::from_millis(31 + 2), "{stall} after an outage of {length}");
        assert!(run.agent.statistics().probes <= 21, "one per second");
    }
}

#[test]
fn forgetting_all_state_at_any_instant_loses_nothing() {
    for millis in [1_000, 1_003, 1_500, 2_222] {
        let notices = vec![(Duration::from_millis(millis), Notice::Forget)];
        for config in [Config::strict(), Config::modern()] {
            let loses = at_random(0.05);
            let run = run(config, World { loses, notices: notices.clone(), ..World::slow() });
            assert_eq!(run.acked, run.world.segments);
        }
    }
}

#[test]
fn modern_refills_the_window_when_the_sender_stays_silent() {
    // The sender's timeout has backed off to 16 s when the link comes back after 20 s.
    let (begin, length) = (Duration::from_secs(2), Duration::from_secs(20));
    let loses = outage(begin, length);
    let run = run(Config::modern(), World { loses, ..World::fast() });
    let end = Instant::ZERO + begin + length;
    let acked = run.acked_at.iter().filter(|at| **at > end).nth(30).expect("it goes on");
    assert!(acked.since(end) < Duration::from_secs(1), "{}", acked.since(end));
}
