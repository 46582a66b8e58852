//! Fixed host, base station, mobile host and an air that loses, in a closed loop.
//!
//! The hosts are as simple as can be: a sender with a fixed window and a retransmission timeout
//! or one after Reno, and a receiver that acknowledges every segment. The link's queue lies before
//! the place where departures are seen, as in a simulator, or behind it, as under a daemon that
//! hands packets to a device.

use crate::drill::{FIXED, MOBILE, segment, tcp_mut};
use sansio::{
    BitRate, Cause, Delivery, DropReason, Duration, Engine, Event, Input, Instant, Notice,
    PacketId, PacketRef, Payload, Priority, Random, Side, Sink, StreamId,
};
use schemes::snoop::{Agent, Config};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use wire::tcp::{Flags, SackBlock, Seq, Timestamps};

const SEGMENT: u32 = 1000;

/// What is known of a transmission when the air decides about it.
pub(crate) struct Transmission {
    /// Number of the data segment; `None` on the way up.
    pub(crate) number: Option<u32>,
    /// How many times it was on the air before.
    pub(crate) copies: u32,
    pub(crate) at: Instant,
}

pub(crate) struct World {
    pub(crate) wired_delay: Duration,
    pub(crate) air_delay: Duration,
    pub(crate) rate: BitRate,
    pub(crate) window: u32,
    pub(crate) segments: u32,
    pub(crate) sack: bool,
    pub(crate) sender: Sender,
    pub(crate) queue: Queue,
    pub(crate) loses: Box<dyn FnMut(&Transmission) -> bool>,
    /// What the base station is told, and when.
    pub(crate) notices: Vec<(Duration, Notice)>,
}

impl World {
    /// 2 Mbit/s and 1 ms to the mobile host, 1 ms to the fixed host, window 44: as in comparisons
    /// with ns-2.
    pub(crate) fn slow() -> Self {
        World {
            wired_delay: Duration::from_millis(1),
            air_delay: Duration::from_millis(1),
            rate: BitRate::from_mbps(2),
            window: 44,
            segments: 2_000,
            sack: true,
            sender: Sender::FixedWindow,
            queue: Queue::Seen,
            loses: Box::new(|_| false),
            notices: Vec::new(),
        }
    }

    /// 20 Mbit/s, round trip on the air 31 ms.
    pub(crate) fn fast() -> Self {
        World {
            air_delay: Duration::from_millis(15),
            rate: BitRate::from_mbps(20),
            window: 100,
            segments: 20_000,
            ..World::slow()
        }
    }
}

/// How the fixed host reacts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sender {
    /// One window all the time, no fast retransmit: what is repaired before the timeout, the agent
    /// has repaired.
    FixedWindow,
    /// Slow start, congestion avoidance, fast retransmit and NewReno recovery; no SACK.
    Reno,
}

/// Where the link's queue is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Queue {
    /// Unbounded, and each departure from it is reported.
    Seen,
    /// A departure is reported when the agent sends; then comes room for so many packets of normal
    /// priority.
    Hidden(usize),
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
pub(crate) struct Run {
    pub(crate) world: World,
    pub(crate) agent: Agent,
    pub(crate) now: Instant,
    events: BTreeMap<(Instant, u64), Happening>,
    order: u64,
    outbox: Outbox,
    queues: [VecDeque<PacketRef>; 2],
    air_free: bool,
    // Sender.
    next: u32,
    pub(crate) acked: u32,
    timeout: Duration,
    timeout_at: Instant,
    reno: Reno,
    /// TSecr of the fixed host and of the mobile host.
    echo: [u32; 2],
    // Receiver.
    received: BTreeSet<u32>,
    expected: u32,
    latest: u32,
    // Results.
    pub(crate) dupacks_at_sender: u32,
    pub(crate) sack_at_sender: u32,
    pub(crate) timeouts: u32,
    pub(crate) queue_drops: u32,
    pub(crate) fast_retransmits: u32,
    pub(crate) acked_at: Vec<Instant>,
    pub(crate) departures: BTreeMap<u32, Vec<Instant>>,
}

pub(crate) fn run(config: Config, world: World) -> Run {
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
        reno: Reno::default(),
        echo: [0; 2],
        received: BTreeSet::new(),
        expected: 0,
        latest: 0,
        dupacks_at_sender: 0,
        sack_at_sender: 0,
        timeouts: 0,
        queue_drops: 0,
        fast_retransmits: 0,
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

/// The TSval of a packet.
fn timestamp(packet: &PacketRef) -> u32 {
    packet.as_tcp().and_then(|tcp| tcp.options.timestamps()).expect("all carry one").value
}

/// A sender after Reno, counting in segments.
struct Reno {
    window: u32,
    threshold: u32,
    credit: u32,
    dupacks: u32,
    recover: Option<u32>,
}

impl Default for Reno {
    fn default() -> Self {
        Reno { window: 10, threshold: u32::MAX, credit: 0, dupacks: 0, recover: None }
    }
}

impl Reno {
    fn after_timeout(flight: u32) -> Self {
        Reno { window: 1, threshold: (flight / 2).max(2), ..Reno::default() }
    }
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
                if self.world.sender == Sender::Reno {
                    self.reno = Reno::after_timeout(self.next - self.acked);
                    self.next = self.acked + 1;
                }
            }
        }
    }

    fn agent(&mut self, input: Input) {
        self.agent.handle(input, &mut self.outbox, self.now);
        self.follow();
    }

    fn departure(&mut self, packet: &PacketRef) {
        self.agent.on_departure(Side::RADIO, packet, &mut self.outbox, self.now);
        self.follow();
    }

    /// What follows from what the agent was told.
    fn follow(&mut self) {
        for (side, priority, packet) in std::mem::take(&mut self.outbox.sent) {
            if side == Side::RADIO {
                self.enqueue(priority, packet);
            } else {
                self.after(self.world.wired_delay, Happening::AtFixed(packet));
            }
        }
        if let Some(deadline) = self.agent.next_deadline() {
            self.after(deadline.at.since(self.now), Happening::AgentTimer);
        }
        self.transmit();
    }

    fn enqueue(&mut self, priority: Priority, packet: PacketRef) {
        let queue = &mut self.queues[usize::from(priority == Priority::Normal)];
        let Queue::Hidden(room) = self.world.queue else { return queue.push_back(packet) };
        if priority == Priority::High || queue.len() < room {
            queue.push_back(packet.clone());
        } else {
            self.queue_drops += 1;
        }
        self.departure(&packet);
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
        if self.world.queue == Queue::Seen {
            self.departure(&packet);
        }
    }

    fn fill_window(&mut self) {
        let window = match self.world.sender {
            Sender::FixedWindow => self.world.window,
            Sender::Reno => self.reno.window.min(self.world.window),
        };
        while self.next < self.world.segments && self.next < self.acked + window {
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
        let timestamps = Timestamps { value: self.clock(), echo: self.echo[0] };
        tcp_mut(&mut packet).options.push_timestamps(timestamps).expect("room");
        let arrival = Happening::AtStation(Side::WIRED, packet.into());
        self.after(self.world.wired_delay, arrival);
    }

    fn at_fixed(&mut self, packet: &PacketRef) {
        let tcp = packet.as_tcp().expect("TCP");
        self.sack_at_sender += u32::from(tcp.options.sack_blocks().next().is_some());
        self.echo[0] = timestamp(packet);
        let acked = tcp.ack.0 / SEGMENT;
        if acked > self.acked {
            self.on_reno_ack(acked);
            self.acked = acked;
            self.acked_at.push(self.now);
            self.timeout = Duration::from_secs(1);
            self.timeout_at = self.now + self.timeout;
            self.next = self.next.max(acked);
            if self.reno.recover.is_some() && self.world.sender == Sender::Reno {
                // A partial ACK: the next hole (RFC 6582, section 3.2).
                self.send(self.acked, Cause::EndToEndRetransmission);
            }
            self.fill_window();
        } else if tcp.ack.0 == self.acked * SEGMENT {
            self.dupacks_at_sender += 1;
            self.on_reno_dupack();
        }
    }

    fn on_reno_ack(&mut self, acked: u32) {
        let new = acked - self.acked;
        let reno = &mut self.reno;
        reno.dupacks = 0;
        match reno.recover {
            Some(recover) if acked >= recover => {
                reno.recover = None;
                reno.window = reno.threshold;
            }
            Some(_) => reno.window = reno.window.saturating_sub(new).max(1) + 1,
            None if reno.window < reno.threshold => reno.window += new,
            None => {
                reno.credit += new;
                if reno.credit >= reno.window {
                    reno.credit = 0;
                    reno.window += 1;
                }
            }
        }
    }

    fn on_reno_dupack(&mut self) {
        if self.world.sender != Sender::Reno {
            return;
        }
        let flight = self.next - self.acked;
        let reno = &mut self.reno;
        reno.dupacks += 1;
        if reno.recover.is_some() {
            reno.window += 1;
            self.fill_window();
        } else if reno.dupacks == 3 {
            reno.recover = Some(self.next);
            reno.threshold = (flight / 2).max(2);
            reno.window = reno.threshold + 3;
            self.fast_retransmits += 1;
            self.send(self.acked, Cause::EndToEndRetransmission);
        }
    }

    fn at_mobile(&mut self, packet: &PacketRef) {
        let seq = packet.as_tcp().expect("TCP").seq.0;
        // A probe's byte is kept as a part of the segment at the left edge.
        let end = seq + packet.payload.len();
        if seq == self.expected {
            self.echo[1] = timestamp(packet);
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
        let timestamps = Timestamps { value: self.clock(), echo: self.echo[1] };
        tcp_mut(&mut ack).options.push_timestamps(timestamps).expect("room");
        if self.world.sack {
            tcp_mut(&mut ack).options.push_sack(&self.blocks());
        }
        let transmission = Transmission { number: None, copies: 0, at: self.now };
        if !(self.world.loses)(&transmission) {
            let arrival = Happening::AtStation(Side::RADIO, ack.into());
            self.after(self.world.air_delay, arrival);
        }
    }

    /// Milliseconds, as Linux counts.
    fn clock(&self) -> u32 {
        (self.now.as_nanos() / 1_000_000) as u32
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

    pub(crate) fn goodput_share(&self, loss: f64) -> f64 {
        let bits = f64::from(self.world.segments * SEGMENT) * 8.0;
        let ceiling = self.world.rate.as_bps() as f64 * (1.0 - loss) * 1000.0 / 1052.0;
        bits / self.now.as_secs_f64() / ceiling
    }
}

/// Loses the first `copies` copies of each of the numbered segments.
pub(crate) fn first_copies(
    numbers: &'static [u32],
    copies: u32,
) -> Box<dyn FnMut(&Transmission) -> bool> {
    Box::new(move |transmission| {
        transmission.number.is_some_and(|number| numbers.contains(&number))
            && transmission.copies < copies
    })
}

/// Loses each packet on its own with this probability, in both directions.
pub(crate) fn at_random(loss: f64) -> Box<dyn FnMut(&Transmission) -> bool> {
    let mut random = Random::new(1, "air");
    Box::new(move |transmission| transmission.number.is_some() && random.chance(loss))
}

/// Loses everything from `begin` for `length`.
pub(crate) fn outage(begin: Duration, length: Duration) -> Box<dyn FnMut(&Transmission) -> bool> {
    Box::new(move |transmission| {
        let since = transmission.at.since(Instant::ZERO + begin);
        transmission.at >= Instant::ZERO + begin && since < length
    })
}
