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
//!
//! With a recorded capacity ([`crate::recorded::capacity`]) there is no rate: the next packet is
//! chosen when there is an opportunity to send, and departs with the one that takes its last byte.

mod config;
pub mod frame_arq;
pub mod half_duplex;
mod lengths;
pub mod medium;
mod notes;
mod pauses;
mod peers;

pub use config::Config;
pub use lengths::Length;
pub use peers::{Peer, Sharing};

use crate::channel::{self, Air, Channels, Loss};
use crate::outage::{Interval, Mode, Outages, Spec};
use crate::pace::Pace;
use crate::pipe::{Pipe, UnderWay};
use crate::queue::{Queue, Waiting};
use crate::recorded::capacity::Opportunities;
use crate::statistics::Statistics;
use frame_arq::FrameArq;
use notes::{Note, Notes};
use sansio::{BitRate, Duration, Instant, Priority};
use std::collections::VecDeque;

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
    /// The link layer's verdict, once for each packet (METP-LL-3): true if it was acknowledged,
    /// false if it was given up. Only with [`Config::frame_arq`].
    Verdict(T, bool),
}

/// One direction of one link, carrying packets of type `T`.
///
/// With many hops in a simulation each event finds its hop out of the processor's cache. Therefore
/// what a packet needs when it arrives comes first and, with a word of its driver before it, fills
/// one cache line, and what it needs when it is sent the next; `repr(C)` keeps the order. What only
/// some hops have is an allocation apart.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Hop<T> {
    /// When the air is free for the next packet. Later than the last call's `now` whenever a
    /// packet waits.
    free_at: Instant,
    delivered_bytes: u64,
    /// Packets that wait, in either queue.
    waiting: u32,
    order: channel::arq::Order,
    /// There are conditions.
    judges: bool,
    reports_departures: bool,
    /// There is a link layer that repeats.
    repeats: bool,
    pipe: Pipe<T>,

    pace: Pace,
    host_cost: Duration,
    delay: Duration,
    served: Served,

    queue: Queue<T>,
    conditions: Option<Box<Conditions<T>>>,
    /// None before the first one.
    reports: Option<Box<Reports<T>>>,
    /// The end of the last transmission, if the air is shared.
    sent_until: Instant,
}

/// Who has a say in what becomes of packets, and what was said.
#[derive(Clone, Debug)]
struct Conditions<T> {
    channels: Channels,
    outages: Option<Away>,
    opportunities: Option<Opportunities>,
    frame_arq: Option<FrameArq>,
    /// Each peer's queue, channels and outages, in place of the hop's; see [`Hop::shared`].
    peers: Option<Box<peers::Peers<T>>>,
    /// No packet may arrive earlier, if packets stay in order.
    arrived_at: Instant,
    /// Packets lost, by cause.
    lost: [u64; Loss::ALL.len()],
}

/// What a sender is told beside arrivals and losses, and whoever watches the queue.
#[derive(Clone, Debug)]
struct Reports<T> {
    /// Departures if they are reported, and verdicts; in the order of time.
    notes: Notes<T>,
    /// What waited when, for [`Hop::poll_length`]; `None` unless somebody asks.
    lengths: Option<VecDeque<Length>>,
}

/// What every packet counts when it is sent.
#[derive(Clone, Debug, Default)]
struct Served {
    /// Packets whose service has begun.
    departed: u64,
    air_bytes: u64,
    busy: Duration,
}

/// When the link is away, and what becomes of packets then.
#[derive(Clone, Debug)]
struct Away {
    mode: Mode,
    outages: Outages,
}

impl Away {
    fn new(spec: &Spec, seed: u64) -> Option<Away> {
        (!spec.is_never()).then(|| Away { mode: spec.mode, outages: Outages::new(spec, seed) })
    }
}

impl<T: Clone> Hop<T> {
    /// A hop at the start of a run. Its random streams follow from the seed and its name; its
    /// outages from the seed alone.
    pub fn new(config: &Config, seed: u64, name: &str) -> Self {
        // Where packets leave at recorded instants, what is predicted from the rate alone must not
        // be late, and no two of them may share a bit slot.
        let (rate, slots, host_cost) = match &config.capacity {
            Some(capacity) => (BitRate::from_bps(u64::MAX), capacity.peak(), Duration::ZERO),
            None => (config.service_rate(), config.service_rate(), config.host_cost),
        };
        let opportunities = config.capacity.as_ref().map(Opportunities::new);
        let delay = channel::delay(&config.channels).unwrap_or(config.delay);
        let frame_arq = config.frame_arq.filter(|_| opportunities.is_none());
        let frame_arq = frame_arq.map(|arq| FrameArq::new(arq, delay));
        let away = Away::new(&config.outages, seed);
        let repeats = frame_arq.is_some();
        let judges =
            away.is_some() || opportunities.is_some() || repeats || !config.channels.is_empty();
        let conditions = judges.then(|| {
            Box::new(Conditions {
                channels: Channels::new(&config.channels, slots, seed, name),
                outages: away,
                opportunities,
                frame_arq,
                peers: None,
                arrived_at: Instant::ZERO,
                lost: [0; Loss::ALL.len()],
            })
        });
        Hop {
            free_at: Instant::ZERO,
            delivered_bytes: 0,
            pace: Pace::new(rate),
            host_cost,
            delay,
            waiting: 0,
            order: channel::order(&config.channels),
            judges,
            reports_departures: config.report_departures,
            repeats,
            pipe: Pipe::new(),
            served: Served::default(),
            queue: Queue::new(config.queue, config.queue_high),
            conditions,
            reports: None,
            sent_until: Instant::ZERO,
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
        if self.judges && self.peers().is_some() {
            return self.enqueue_peer(Waiting { item, bytes }, priority, now);
        }
        // After serving, a free hop has nothing waiting.
        if self.free_at <= now && !(self.judges && self.pauses(bytes, now)) {
            self.transmit(Waiting { item, bytes }, now);
            return Ok(());
        }
        self.queue.push(Waiting { item, bytes }, priority, now)?;
        self.waiting += 1;
        self.note_length(now);
        Ok(())
    }

    /// When to call [`Hop::poll`] next; `None` if nothing is under way. Never later than the next
    /// outcome. Earlier only if a waiting packet will be held by an outage or delayed by an ARQ
    /// channel; then the call finds nothing and a later time is named.
    pub fn next_event(&self) -> Option<Instant> {
        let next = self.next_arrival();
        let departure = match self.next_note() {
            _ if !self.reports_departures => return next,
            Some((at, _)) => at,
            None if self.waiting > 0 => self.next_start() + self.host_cost,
            None => return next,
        };
        Some(next.map_or(departure, |next| next.min(departure)))
    }

    /// As [`Hop::next_event`], for a caller that need not hear of departures at once: with
    /// [`Hop::poll_departure`] they come later, with their own time.
    #[inline]
    pub fn next_arrival(&self) -> Option<Instant> {
        let mut next = self.pipe.next_at();
        if self.judges {
            return self.next_judged(next);
        }
        // Whatever is under way in order arrives before what waits.
        if self.waiting > 0
            && next.is_none()
            && let Some(waiting_bytes) = self.queue.next_bytes()
        {
            next = Some(self.arrival(self.free_at, self.pace.time_for(waiting_bytes)));
        }
        next
    }

    /// The same where channels may delay, peers share the hop, or frames are repeated.
    fn next_judged(&self, mut next: Option<Instant>) -> Option<Instant> {
        if self.waiting > 0
            && (next.is_none() || self.order == channel::arq::Order::AsReceived)
            && let Some(waiting_bytes) = self.next_bytes()
        {
            let arrival = self.arrival(self.next_start(), self.pace.time_for(waiting_bytes));
            next = Some(next.map_or(arrival, |next| next.min(arrival)));
        }
        if self.repeats {
            return self.next_verdict().into_iter().chain(next).min();
        }
        next
    }

    /// The next thing that happened up to `now`, in the order of time; call it until it returns
    /// `None`. `now` never decreases from call to call.
    pub fn poll(&mut self, now: Instant) -> Option<Outcome<T>> {
        self.serve(now);
        self.poll_note(now).or_else(|| self.pop_arrival(now))
    }

    /// The same without mere departures, for a caller that asks for them before they matter to it
    /// ([`Hop::poll_departure`]). Where frames are repeated, they come all the same.
    #[inline]
    pub fn poll_arrival(&mut self, now: Instant) -> Option<Outcome<T>> {
        self.serve(now);
        if self.repeats
            && let Some(outcome) = self.poll_note(now)
        {
            return Some(outcome);
        }
        self.pop_arrival(now)
    }

    fn poll_note(&mut self, now: Instant) -> Option<Outcome<T>> {
        let (at, note, item) = self.pop_note(now)?;
        let what = match note {
            Note::Departed => What::Departed(item),
            Note::Verdict(acknowledged) => What::Verdict(item, acknowledged),
        };
        Some(Outcome { at, what })
    }

    #[inline]
    fn pop_arrival(&mut self, now: Instant) -> Option<Outcome<T>> {
        let UnderWay { at, bytes, loss, item } = self.pipe.pop_due(now)?;
        let what = match loss {
            None => {
                self.delivered_bytes += u64::from(bytes);
                What::Arrived(item)
            }
            Some(loss) => {
                if let Some(conditions) = &mut self.conditions {
                    conditions.lost[loss as usize] += 1;
                }
                What::Lost(item, loss)
            }
        };
        Some(Outcome { at, what })
    }

    /// The next packet that departed up to `now`, and when, unless one arrives before it departs.
    #[inline]
    pub fn poll_departure(&mut self, now: Instant) -> Option<(Instant, T)> {
        self.serve(now);
        // A verdict is no mere note: it waits for the poll of its instant, and what departs after
        // it waits behind it.
        match self.next_note()? {
            (_, Note::Departed) => self.pop_note(now).map(|(at, _, item)| (at, item)),
            (_, Note::Verdict(_)) => None,
        }
    }

    /// Packets that wait, both priorities together, as of the last call.
    pub fn queue_packets(&self) -> u32 {
        self.waiting
    }

    /// Bytes that wait, both priorities together, as of the last call.
    pub fn queue_bytes(&self) -> u64 {
        self.peers().map_or_else(|| self.queue.bytes(), |peers| peers.waiting().bytes)
    }

    /// The counters, as of the last call.
    pub fn statistics(&self) -> Statistics {
        let Served { departed, air_bytes, busy } = self.served;
        let lost =
            self.conditions.as_ref().map_or([0; Loss::ALL.len()], |conditions| conditions.lost);
        let (most, dropped_full) = match self.peers() {
            Some(peers) => peers.counted(),
            None => (self.queue.most(), self.queue.refused()),
        };
        let under_way = self.pipe.len() as u64;
        Statistics {
            enqueued: departed + u64::from(self.waiting),
            dropped_full,
            departed,
            air_bytes,
            busy,
            delivered: departed - under_way - lost.iter().sum::<u64>(),
            delivered_bytes: self.delivered_bytes,
            queue_packets_max: most.packets,
            queue_bytes_max: most.bytes,
            lost,
        }
    }

    /// Sends what was to be sent by `now`, this instant included.
    #[inline]
    fn serve(&mut self, now: Instant) {
        if self.free_at <= now && self.waiting > 0 {
            self.serve_waiting(now);
        }
    }

    fn serve_waiting(&mut self, now: Instant) {
        if self.judges && self.peers().is_some() {
            return self.serve_peers(now);
        }
        while self.free_at <= now {
            let Some(bytes) = self.queue.next_bytes() else { return };
            let start = self.free_at;
            if self.judges && self.pauses(bytes, start) {
                continue;
            }
            let Some(waiting) = self.queue.pop() else { return };
            self.waiting -= 1;
            self.note_length(start);
            self.transmit(waiting, start);
        }
    }

    #[inline]
    fn transmit(&mut self, waiting: Waiting<T>, start: Instant) {
        let Waiting { item, bytes } = waiting;
        // Asked first, because it is at hand and the conditions are not.
        let time = if self.judges { self.take_time(bytes, start) } else { self.pace.take(bytes) };
        let first_bit_at = start + self.host_cost;
        self.free_at = first_bit_at + time;
        self.served.departed += 1;
        self.served.air_bytes += u64::from(bytes);
        self.served.busy += self.host_cost + time;

        let mut at = self.arrival(start, time);
        let mut loss = None;
        if self.reports_departures {
            self.note(first_bit_at, Note::Departed, item.clone());
        }
        if self.judges {
            let time = Interval { start: first_bit_at, end: self.free_at };
            let air = Air { time, bytes };
            let verdict =
                if self.repeats { self.repeat(air, &item) } else { self.judge(air, &item) };
            at = self.in_order(&item, at + verdict.delay);
            loss = verdict.loss;
        }
        self.pipe.push(at, bytes, loss, item);
    }

    /// The time that a packet takes.
    #[inline]
    fn take_time(&mut self, bytes: u32, start: Instant) -> Duration {
        match self.conditions.as_mut().and_then(|conditions| conditions.opportunities.as_mut()) {
            Some(opportunities) => opportunities.take(bytes).since(start),
            None => self.pace.take(bytes),
        }
    }

    /// When a packet that would arrive at `at` does, if none may overtake another.
    #[inline]
    fn in_order(&mut self, item: &T, mut at: Instant) -> Instant {
        let Some(conditions) = &mut self.conditions else { return at };
        if let Some(peers) = &mut conditions.peers {
            return peers.on_sent(item, at, self.free_at);
        }
        if self.order == channel::arq::Order::InOrder {
            at = at.max(conditions.arrived_at);
            conditions.arrived_at = at;
        }
        at
    }

    /// When a packet arrives whose service begins at `start`, if no channel delays it.
    #[inline]
    fn arrival(&self, start: Instant, time: Duration) -> Instant {
        start + self.host_cost + (time + self.delay).max(Duration::from_nanos(1))
    }

    /// An outage goes before the channels as the cause; the channels see the packet all the same,
    /// so that their errors stay where they are.
    fn judge(&mut self, air: Air, item: &T) -> channel::Verdict {
        let Some(conditions) = &mut self.conditions else { return channel::Verdict::PASS };
        if let Some(peers) = &mut conditions.peers {
            return peers.judge(air, item);
        }
        let mut verdict = conditions.channels.judge(air);
        if let Some(away) = conditions.outages.as_mut().filter(|away| away.mode == Mode::Lose)
            && away.outages.covers(air.time).is_some()
        {
            verdict.loss = Some(Loss::Outage);
        }
        verdict
    }

    #[inline]
    fn note(&mut self, at: Instant, note: Note, item: T) {
        self.reports.get_or_insert_default().notes.push(at, note, item);
    }

    #[inline]
    fn next_note(&self) -> Option<(Instant, Note)> {
        self.reports.as_ref()?.notes.next()
    }

    /// The next departure or verdict, unless an arrival comes first. At the same instant arrivals
    /// go first: what departs then may follow from them.
    #[inline]
    fn pop_note(&mut self, now: Instant) -> Option<(Instant, Note, T)> {
        let notes = &mut self.reports.as_mut()?.notes;
        let (at, _) = notes.next()?;
        if at > now || self.pipe.next_at().is_some_and(|arrival| arrival <= at) {
            return None;
        }
        notes.pop()
    }
}

impl<T> Default for Reports<T> {
    fn default() -> Self {
        Reports { notes: Notes::new(), lengths: None }
    }
}
