//! One direction of one link: a queue, the air, a delay.
//!
//! Departures are computed, not simulated. A packet's service begins when the one before it ends
//! (`free_at`), takes the host cost and then its bits at the service rate, and the packet arrives
//! one delay after its last bit. Which packet is next is decided when the air becomes free: high
//! priority first, without preemption (SNOOP-ACK-10). Nothing happens between calls; each call
//! first serves the queue up to its `now`, so late calls change no decision and no instant.
//!
//! ```text
//!   enqueue        free_at            first bit                   last bit              arrival
//!      │───waits─────▶│────host cost─────▶│────bytes * 8 / rate─────▶│────────delay─────────▶│
//!                     next is chosen      Departed                   next is chosen        Arrived
//! ```
//!
//! Instants are whole nanoseconds, rounded down; what is cut off is carried into the next packet
//! (see `pace`), so a busy hop keeps its rate exactly. A packet arrives at least 1 ns after it
//! departs, whatever the rate: nothing travels in no time.

use crate::channel::{self, Air, Channels, Loss};
use crate::outage::{self, Interval, Mode, Outages};
use crate::pace::Pace;
use crate::pipe::{Pipe, UnderWay};
use crate::queue::{Limit, Queue, Waiting};
use crate::statistics::Statistics;
use sansio::{BitRate, Duration, Instant, Priority};
use std::collections::VecDeque;

/// What a hop is like. Plain data.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The nominal rate on the air.
    pub rate: BitRate,
    /// Share of the rate that carries IP packets, above 0 up to 1; the rest is preambles, medium
    /// access, link headers.
    pub mac_efficiency: f64,
    /// What each packet costs before its first bit, whatever its size.
    pub host_cost: Duration,
    /// From the last bit sent to the last bit received.
    pub delay: Duration,
    /// Room for packets of normal priority that wait.
    pub queue: Limit,
    /// Room for packets of high priority that wait.
    pub queue_high: Limit,
    /// What the air does to packets; all of it at once.
    pub channels: Vec<channel::Config>,
    /// When the link is away. Both directions of a link take the same value.
    pub outages: outage::Spec,
    /// True if [`What::Departed`] is wanted. Each packet is then cloned once.
    pub report_departures: bool,
}

/// What happened to a packet, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome<T> {
    /// When.
    pub at: Instant,
    /// What.
    pub what: What<T>,
}

/// What can happen to a packet once it was accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum What<T> {
    /// Its first bit goes on air. Only if [`Config::report_departures`].
    Departed(T),
    /// Its last bit arrived.
    Arrived(T),
    /// It used its air time, and would have arrived now.
    Lost(T, Loss),
}

/// One direction of one link, carrying packets of type `T`.
#[derive(Clone, Debug)]
pub struct Hop<T> {
    pace: Pace,
    host_cost: Duration,
    delay: Duration,
    queue: Queue<T>,
    /// When the air is free for the next packet. Later than the last call's `now` whenever a
    /// packet waits.
    free_at: Instant,
    pipe: Pipe<T>,
    order: channel::arq::Order,
    /// No packet may arrive earlier, if packets stay in order.
    arrived_at: Instant,
    departures: Option<VecDeque<(Instant, T)>>,
    channels: Channels,
    /// Boxed: few hops have outages, and the others' state shall stay small.
    outages: Option<Box<Away>>,
    statistics: Statistics,
}

/// When the link is away, and what becomes of packets then.
#[derive(Clone, Debug)]
struct Away {
    mode: Mode,
    outages: Outages,
}

impl Config {
    /// Linux's default queue length (`txqueuelen` is 1000) is meant for Ethernet; radios and the
    /// papers' machines hold far less.
    const QUEUE_PACKETS: u32 = 100;
    /// Enough for every segment of a 64 KB window at 1460 bytes to be sent again at once.
    const QUEUE_HIGH_PACKETS: u32 = 64;

    /// A clean hop: 100 packets of normal and 64 of high priority may wait.
    pub fn clean(rate: BitRate, delay: Duration) -> Self {
        Config {
            rate,
            mac_efficiency: 1.0,
            host_cost: Duration::ZERO,
            delay,
            queue: Limit::Packets(Self::QUEUE_PACKETS),
            queue_high: Limit::Packets(Self::QUEUE_HIGH_PACKETS),
            channels: Vec::new(),
            outages: outage::Spec::default(),
            report_departures: false,
        }
    }

    /// The rate at which the bits of IP packets are served: nominal rate times MAC efficiency, to
    /// the nearest bit per second.
    pub fn service_rate(&self) -> BitRate {
        let share = self.mac_efficiency;
        if share > 0.0 && share < 1.0 {
            BitRate::from_bps((self.rate.as_bps() as f64 * share + 0.5) as u64)
        } else {
            self.rate
        }
    }
}

impl<T: Clone> Hop<T> {
    /// A hop at the start of a run. Its random streams follow from the seed and its name; its
    /// outages from the seed alone.
    pub fn new(config: &Config, seed: u64, name: &str) -> Self {
        let rate = config.service_rate();
        let outages = &config.outages;
        Hop {
            pace: Pace::new(rate),
            host_cost: config.host_cost,
            delay: config.delay,
            queue: Queue::new(config.queue, config.queue_high),
            free_at: Instant::ZERO,
            pipe: Pipe::new(),
            order: channel::order(&config.channels),
            arrived_at: Instant::ZERO,
            departures: config.report_departures.then(VecDeque::new),
            channels: Channels::new(&config.channels, rate, seed, name),
            outages: (!outages.is_never()).then(|| {
                Box::new(Away { mode: outages.mode, outages: Outages::new(outages, seed) })
            }),
            statistics: Statistics::default(),
        }
    }

    /// Takes a packet of so many bytes (whole IP packet), or gives it back if its queue is full.
    /// `now` never decreases from call to call.
    ///
    /// # Errors
    /// The packet itself, if it does not fit; it is counted in [`Statistics::dropped_full`].
    #[inline]
    pub fn enqueue(
        &mut self,
        item: T,
        bytes: u32,
        priority: Priority,
        now: Instant,
    ) -> Result<(), T> {
        self.serve(now);
        // After serving, a free hop has nothing waiting.
        if self.free_at <= now && !self.pauses(bytes, now) {
            self.statistics.enqueued += 1;
            self.transmit(Waiting { item, bytes }, now);
            return Ok(());
        }
        match self.queue.push(Waiting { item, bytes }, priority) {
            Ok(()) => {
                let statistics = &mut self.statistics;
                statistics.enqueued += 1;
                statistics.queue_packets_max =
                    statistics.queue_packets_max.max(self.queue.packets());
                statistics.queue_bytes_max = statistics.queue_bytes_max.max(self.queue.bytes());
                Ok(())
            }
            Err(item) => {
                self.statistics.dropped_full += 1;
                Err(item)
            }
        }
    }

    /// When to call [`Hop::poll`] next; `None` if nothing is under way. Never later than the next
    /// outcome. Earlier only if a waiting packet will be held by an outage or delayed by an ARQ
    /// channel; then the call finds nothing and a later time is named.
    #[inline]
    pub fn next_event(&self) -> Option<Instant> {
        let mut next = self.pipe.next_at();
        // Whatever is under way in order arrives before what waits.
        if (next.is_none() || self.order == channel::arq::Order::AsReceived)
            && let Some(waiting_bytes) = self.queue.next_bytes()
        {
            let arrival = self.arrival(self.free_at, self.pace.time_for(waiting_bytes));
            next = Some(next.map_or(arrival, |next| next.min(arrival)));
        }
        match &self.departures {
            Some(departures) => self.next_event_or_departure(next, departures),
            None => next,
        }
    }

    /// The next thing that happened up to `now`, in the order of time; call it until it returns
    /// `None`. `now` never decreases from call to call.
    #[inline]
    pub fn poll(&mut self, now: Instant) -> Option<Outcome<T>> {
        self.serve(now);
        if self.departures.is_some()
            && let Some(departed) = self.pop_departure(now)
        {
            return Some(departed);
        }
        let UnderWay { at, bytes, loss, item } = self.pipe.pop_due(now)?;
        let what = match loss {
            None => {
                self.statistics.delivered += 1;
                self.statistics.delivered_bytes += u64::from(bytes);
                What::Arrived(item)
            }
            Some(loss) => {
                self.statistics.count_lost(loss);
                What::Lost(item, loss)
            }
        };
        Some(Outcome { at, what })
    }

    /// Packets that wait, both priorities together, as of the last call.
    pub fn queue_packets(&self) -> u32 {
        self.queue.packets()
    }

    /// Bytes that wait, both priorities together, as of the last call.
    pub fn queue_bytes(&self) -> u64 {
        self.queue.bytes()
    }

    /// The counters, as of the last call.
    pub fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// Sends what was to be sent by `now`, this instant included.
    #[inline]
    fn serve(&mut self, now: Instant) {
        while self.free_at <= now {
            let Some(bytes) = self.queue.next_bytes() else { return };
            let start = self.free_at;
            if self.pauses(bytes, start) {
                continue;
            }
            let Some(waiting) = self.queue.pop() else { return };
            self.transmit(waiting, start);
        }
    }

    /// True if an outage that holds makes a transmission from `start` wait; the air is then free
    /// at the outage's end, when the next packet is chosen anew.
    #[inline]
    fn pauses(&mut self, bytes: u32, start: Instant) -> bool {
        let Some(away) = self.outages.as_mut().filter(|away| away.mode == Mode::Hold) else {
            return false;
        };
        let first_bit_at = start + self.host_cost;
        let air = Interval { start: first_bit_at, end: first_bit_at + self.pace.time_for(bytes) };
        let Some(outage) = away.outages.covers(air) else { return false };
        self.free_at = outage.end;
        true
    }

    #[inline]
    fn transmit(&mut self, waiting: Waiting<T>, start: Instant) {
        let Waiting { item, bytes } = waiting;
        let time = self.pace.take(bytes);
        let first_bit_at = start + self.host_cost;
        self.free_at = first_bit_at + time;
        self.statistics.departed += 1;
        self.statistics.air_bytes += u64::from(bytes);
        self.statistics.busy += self.host_cost + time;

        let mut at = self.arrival(start, time);
        let mut loss = None;
        if self.outages.is_some() || !self.channels.is_empty() {
            let time = Interval { start: first_bit_at, end: self.free_at };
            let verdict = self.judge(Air { time, bytes });
            at += verdict.delay;
            loss = verdict.loss;
        }
        if self.order == channel::arq::Order::InOrder {
            at = at.max(self.arrived_at);
            self.arrived_at = at;
        }
        if let Some(departures) = &mut self.departures {
            departures.push_back((first_bit_at, item.clone()));
        }
        self.pipe.push(UnderWay { at, bytes, loss, item });
    }

    /// When a packet arrives whose service begins at `start`, if no channel delays it.
    #[inline]
    fn arrival(&self, start: Instant, time: Duration) -> Instant {
        start + self.host_cost + (time + self.delay).max(Duration::from_nanos(1))
    }

    /// An outage goes before the channels as the cause; the channels see the packet all the same,
    /// so that their errors stay where they are.
    fn judge(&mut self, air: Air) -> channel::Verdict {
        let mut verdict = self.channels.judge(air);
        if let Some(away) = self.outages.as_mut().filter(|away| away.mode == Mode::Lose)
            && away.outages.covers(air.time).is_some()
        {
            verdict.loss = Some(Loss::Outage);
        }
        verdict
    }

    fn next_event_or_departure(
        &self,
        next: Option<Instant>,
        departures: &VecDeque<(Instant, T)>,
    ) -> Option<Instant> {
        let departure = match departures.front() {
            Some((at, _)) => *at,
            None if !self.queue.is_empty() => self.free_at + self.host_cost,
            None => return next,
        };
        Some(next.map_or(departure, |next| next.min(departure)))
    }

    /// The next departure, unless an arrival comes first. At the same instant arrivals go first:
    /// what departs then may follow from them.
    fn pop_departure(&mut self, now: Instant) -> Option<Outcome<T>> {
        let departures = self.departures.as_mut()?;
        let at = departures.front()?.0;
        if at > now || self.pipe.next_at().is_some_and(|arrival| arrival <= at) {
            return None;
        }
        let (at, item) = departures.pop_front()?;
        Some(Outcome { at, what: What::Departed(item) })
    }
}
