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
/// one cache line, and what it needs when it is sent the next; `repr(C)` keeps the order.
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
    /// Channels, outages, opportunities or a link layer have a say.
    judges: bool,
    reports_departures: bool,
    /// There is a link layer that repeats.
    repeats: bool,
    pipe: Pipe<T>,

    pace: Pace,
    host_cost: Duration,
    delay: Duration,
    served: Served,

    /// No packet may arrive earlier, if packets stay in order.
    arrived_at: Instant,
    /// Departures if they are reported, and verdicts; in the order of time.
    notes: VecDeque<(Instant, Note, T)>,

    queue: Queue<T>,
    /// The other counters; a packet that waits counts here. See [`Hop::statistics`].
    rare: Rare,
    channels: Channels,
    outages: Option<Box<Away>>,
    /// Each peer's queue, channels and outages, in place of the hop's; see [`Hop::shared`].
    peers: Option<Box<peers::Peers<T>>>,
    opportunities: Option<Box<Opportunities>>,
    frame_arq: Option<frame_arq::FrameArq>,
    shared: half_duplex::Shared,
    /// What waited when, for [`Hop::poll_length`]; `None` unless somebody asks.
    lengths: Option<VecDeque<Length>>,
}

/// What a sender is told beside arrivals and losses.
#[derive(Clone, Copy, Debug)]
enum Note {
    Departed,
    Verdict(bool),
}

/// What every packet counts when it is sent.
#[derive(Clone, Debug, Default)]
struct Served {
    /// Packets whose service has begun.
    departed: u64,
    air_bytes: u64,
    busy: Duration,
}

/// What few packets count.
#[derive(Clone, Debug, Default)]
struct Rare {
    dropped_full: u64,
    queue_bytes_max: u64,
    queue_packets_max: u32,
    /// None was lost yet.
    lost: Option<Box<[u64; Loss::ALL.len()]>>,
}

/// When the link is away, and what becomes of packets then.
#[derive(Clone, Debug)]
struct Away {
    mode: Mode,
    outages: Outages,
}

impl Away {
    fn new(spec: &Spec, seed: u64) -> Option<Box<Away>> {
        let away = || Box::new(Away { mode: spec.mode, outages: Outages::new(spec, seed) });
        (!spec.is_never()).then(away)
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
        let opportunities =
            config.capacity.as_ref().map(|capacity| Box::new(Opportunities::new(capacity)));
        let delay = channel::delay(&config.channels).unwrap_or(config.delay);
        let frame_arq = config.frame_arq.filter(|_| opportunities.is_none());
        let frame_arq = frame_arq.map(|arq| frame_arq::FrameArq::new(arq, delay));
        let away = Away::new(&config.outages, seed);
        Hop {
            free_at: Instant::ZERO,
            delivered_bytes: 0,
            arrived_at: Instant::ZERO,
            pace: Pace::new(rate),
            host_cost,
            delay,
            waiting: 0,
            order: channel::order(&config.channels),
            judges: away.is_some()
                || opportunities.is_some()
                || frame_arq.is_some()
                || !config.channels.is_empty(),
            reports_departures: config.report_departures,
            repeats: frame_arq.is_some(),
            pipe: Pipe::new(),
            served: Served::default(),
            queue: Queue::new(config.queue, config.queue_high),
            notes: VecDeque::new(),
            channels: Channels::new(&config.channels, slots, seed, name),
            outages: away,
            peers: None,
            opportunities,
            frame_arq,
            shared: half_duplex::Shared::default(),
            lengths: None,
            rare: Rare::default(),
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
        if self.judges && self.peers.is_some() {
            return self.enqueue_peer(Waiting { item, bytes }, priority, now);
        }
        if self.free_at <= now && !(self.judges && self.pauses(bytes, now)) {
            self.transmit(Waiting { item, bytes }, now);
            return Ok(());
        }
        let queued = self.queue.push(Waiting { item, bytes }, priority);
        match queued {
            Ok(()) => {
                if self.waiting == 0 {
                    self.shared.waits_since = now;
                }
                self.waiting += 1;
                self.note_length(now);
                let rare = &mut self.rare;
                rare.queue_packets_max = rare.queue_packets_max.max(self.waiting);
                rare.queue_bytes_max = rare.queue_bytes_max.max(self.queue.bytes());
            }
            Err(_) => self.rare.dropped_full += 1,
        }
        queued
    }

    /// When to call [`Hop::poll`] next; `None` if nothing is under way. Never later than the next
    /// outcome. Earlier only if a waiting packet will be held by an outage or delayed by an ARQ
    /// channel; then the call finds nothing and a later time is named.
    pub fn next_event(&self) -> Option<Instant> {
        let next = self.next_arrival();
        let departure = match self.notes.front() {
            _ if !self.reports_departures => return next,
            Some((at, ..)) => *at,
            None if self.waiting > 0 => self.next_start() + self.host_cost,
            None => return next,
        };
        Some(next.map_or(departure, |next| next.min(departure)))
    }

    /// As [`Hop::next_event`], for a caller that need not hear of departures at once: polled then,
    /// they come before the arrival, with their own time. [`Hop::poll_departure`] asks for them.
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
    #[inline]
    pub fn poll(&mut self, now: Instant) -> Option<Outcome<T>> {
        self.serve(now);
        if (self.reports_departures || self.repeats)
            && let Some((at, note, item)) = self.pop_note(now)
        {
            let what = match note {
                Note::Departed => What::Departed(item),
                Note::Verdict(acknowledged) => What::Verdict(item, acknowledged),
            };
            return Some(Outcome { at, what });
        }
        let UnderWay { at, bytes, loss, item } = self.pipe.pop_due(now)?;
        let what = match loss {
            None => {
                self.delivered_bytes += u64::from(bytes);
                What::Arrived(item)
            }
            Some(loss) => {
                self.rare.lost.get_or_insert_default()[loss as usize] += 1;
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
        match self.notes.front()? {
            (_, Note::Departed, _) => self.pop_note(now).map(|(at, _, item)| (at, item)),
            (_, Note::Verdict(_), _) => None,
        }
    }

    /// Packets that wait, both priorities together, as of the last call.
    pub fn queue_packets(&self) -> u32 {
        self.waiting
    }

    /// Bytes that wait, both priorities together, as of the last call.
    pub fn queue_bytes(&self) -> u64 {
        self.peers.as_ref().map_or(self.queue.bytes(), |peers| peers.bytes())
    }

    /// The counters, as of the last call.
    pub fn statistics(&self) -> Statistics {
        let Served { departed, air_bytes, busy } = self.served;
        let lost = self.rare.lost.as_deref().copied().unwrap_or_default();
        let under_way = self.pipe.len() as u64;
        Statistics {
            enqueued: departed + u64::from(self.waiting),
            dropped_full: self.rare.dropped_full,
            departed,
            air_bytes,
            busy,
            delivered: departed - under_way - lost.iter().sum::<u64>(),
            delivered_bytes: self.delivered_bytes,
            queue_packets_max: self.rare.queue_packets_max,
            queue_bytes_max: self.rare.queue_bytes_max,
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
        if self.peers.is_some() {
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

    /// True if a transmission from `start` has to wait for an opportunity, or for the end of an
    /// outage that holds; the air is free then, and the next packet is chosen anew.
    fn pauses(&mut self, bytes: u32, start: Instant) -> bool {
        if self.lacks_opportunity(start) {
            return true;
        }
        if self.outages.is_none() {
            return false;
        }
        let air = self.air(bytes, start);
        let away = self.outages.as_mut().filter(|away| away.mode == Mode::Hold);
        let Some(outage) = away.and_then(|away| away.outages.covers(air)) else { return false };
        self.free_at = outage.end;
        true
    }

    /// True if a recorded capacity lets nothing leave at `start`; the air is free when it does.
    fn lacks_opportunity(&mut self, start: Instant) -> bool {
        let Some(opportunities) = &mut self.opportunities else { return false };
        let next_at = opportunities.next_from(start);
        let lacks = next_at > start;
        if lacks {
            self.free_at = next_at;
        }
        lacks
    }

    /// From first to last bit of a transmission whose service would begin at `start`.
    fn air(&self, bytes: u32, start: Instant) -> Interval {
        let first_bit_at = start + self.host_cost;
        let end = match &self.opportunities {
            Some(opportunities) => opportunities.peek(bytes),
            None => first_bit_at + self.pace.time_for(bytes),
        };
        Interval { start: first_bit_at, end }
    }

    #[inline]
    fn transmit(&mut self, waiting: Waiting<T>, start: Instant) {
        let Waiting { item, bytes } = waiting;
        // Asked first, because it is at hand and the opportunities are not.
        let time = if self.judges
            && let Some(opportunities) = &mut self.opportunities
        {
            opportunities.take(bytes).since(start)
        } else {
            self.pace.take(bytes)
        };
        let first_bit_at = start + self.host_cost;
        self.free_at = first_bit_at + time;
        self.served.departed += 1;
        self.served.air_bytes += u64::from(bytes);
        self.served.busy += self.host_cost + time;

        let mut at = self.arrival(start, time);
        let mut loss = None;
        if self.reports_departures {
            self.notes.push_back((first_bit_at, Note::Departed, item.clone()));
        }
        if self.judges {
            let time = Interval { start: first_bit_at, end: self.free_at };
            let air = Air { time, bytes };
            let verdict =
                if self.repeats { self.repeat(air, &item) } else { self.judge(air, &item) };
            at += verdict.delay;
            loss = verdict.loss;
        }
        // Nothing else delays a packet beyond the one after it.
        if self.judges {
            at = self.in_order(&item, at);
        }
        self.pipe.push(UnderWay { at, bytes, loss, item });
    }

    /// When a packet that was sent arrives that would by itself at `at`.
    fn in_order(&mut self, item: &T, at: Instant) -> Instant {
        if let Some(peers) = &mut self.peers {
            return peers.on_sent(item, at, self.free_at);
        }
        if self.order == channel::arq::Order::InOrder {
            self.arrived_at = at.max(self.arrived_at);
            return self.arrived_at;
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
        if let Some(peers) = &mut self.peers {
            return peers.judge(air, item);
        }
        let mut verdict = self.channels.judge(air);
        if let Some(away) = self.outages.as_mut().filter(|away| away.mode == Mode::Lose)
            && away.outages.covers(air.time).is_some()
        {
            verdict.loss = Some(Loss::Outage);
        }
        verdict
    }

    /// The next departure or verdict, unless an arrival comes first. At the same instant arrivals
    /// go first: what departs then may follow from them.
    fn pop_note(&mut self, now: Instant) -> Option<(Instant, Note, T)> {
        let at = self.notes.front()?.0;
        if at > now || self.pipe.next_at().is_some_and(|arrival| arrival <= at) {
            return None;
        }
        self.notes.pop_front()
    }
}
