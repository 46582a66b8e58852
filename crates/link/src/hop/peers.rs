//! Several peers behind one hop: one transmitter at a time for all of them, a channel and outages
//! of its own for each.
//!
//! ```text
//!            ┌─ peer 0: queue, channel, outages ─┐
//!   packet ──┼─ peer 1                           ├── one air: rate, host cost, frame ARQ ──▶
//!            └─ peer 2                           ┘
//! ```
//!
//! Whose packet is next is said by [`Sharing`]. A peer whose outage holds is passed over until it
//! is back; what is sent to one whose outage loses takes its air time in vain, and no other's. If a
//! link layer repeats frames, the tries that fall into an outage are lost, even if it holds: the
//! frame is on the air already. Packets of one peer stay in order, if its channels keep it.

use super::{Away, Conditions, Hop};
use crate::channel::{self, Air, Channels, Loss};
use crate::hop::Config;
use crate::outage::{Interval, Mode};
use crate::queue::{Limit, Load, Waiting};
use sansio::{BitRate, Instant, Priority};
use std::collections::{BTreeSet, VecDeque};

/// Whose packet is next, and who has to have room for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// One queue for all peers, in the order of arrival, its limits for all together: a base
    /// station that sends to several hosts.
    OneQueue,
    /// Each peer has a queue of its own with the hop's limits, and who has waited longest for the
    /// air is next, one packet each time: hosts that send to a base station, as stations of
    /// IEEE 802.11 do on average (DCF gives each the same chance per frame).
    QueueEach,
}

/// Where the random streams of a peer come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// The name of its channels' streams.
    pub name: String,
    /// The seed of its outages.
    pub outage_seed: u64,
}

/// All peers of a hop.
#[derive(Clone, Debug)]
pub(super) struct Peers<T> {
    sharing: Sharing,
    /// Which peer a packet comes from or goes to.
    of: fn(&T) -> usize,
    each: Vec<Member<T>>,
    /// Room for packets of each priority: one, or one for each peer.
    rooms: Vec<[Load; 2]>,
    limits: [Limit; 2],
    /// The peers that wait, and who is next.
    turns: BTreeSet<Turn>,
    /// Packets that came so far.
    arrivals: u64,
    most: Load,
    refused: u64,
    /// When a packet was queued where none was before, of any peer.
    waits_since: Instant,
    order: channel::arq::Order,
    /// True if an outage makes packets wait.
    holds: bool,
    /// Whoever waits is held at least until then.
    held_until: Instant,
    /// When the last packet came that had to wait: all that could be sent before was sent.
    queued_at: Instant,
}

/// The place of a peer among those that wait: smallest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Turn {
    priority: Priority,
    /// The arrival of its next packet, or since when it contends for the air.
    since: u64,
    peer: usize,
}

#[derive(Clone, Debug)]
struct Member<T> {
    /// By priority; each with the number of its arrival.
    queues: [VecDeque<(u64, Waiting<T>)>; 2],
    channels: Channels,
    outages: Option<Away>,
    /// When a packet was queued where none was before.
    waits_since: Instant,
    /// The end of its last transmission.
    sent_until: Instant,
    /// No packet may arrive earlier, if packets stay in order.
    arrived_at: Instant,
    turn: Option<Turn>,
}

/// Who may send.
enum Choice {
    Peer(usize),
    /// All that wait are held, the first of them until then.
    Held(Instant),
    Nobody,
}

impl<T: Clone> Hop<T> {
    /// A hop that these peers share, at the start of a run; `of` says which of them a packet is
    /// for, or from.
    ///
    /// # Panics
    /// Later, if `of` names a peer that is not among them.
    pub fn shared(
        config: &Config,
        (seed, peers): (u64, &[Peer]),
        sharing: Sharing,
        of: fn(&T) -> usize,
    ) -> Self {
        let mut hop = Hop::new(config, seed, "");
        let slots = match &config.capacity {
            Some(capacity) => capacity.peak(),
            None => config.service_rate(),
        };
        hop.judges = true;
        // One peer's packets may overtake another's that its channel delays.
        hop.order = match config.channels.iter().any(channel::Config::delays) {
            true => channel::arq::Order::AsReceived,
            false => channel::arq::Order::InOrder,
        };
        let opportunities = hop.conditions.as_mut().and_then(|all| all.opportunities.take());
        let frame_arq = hop.conditions.as_ref().and_then(|all| all.frame_arq);
        let peers = Box::new(Peers::new(config, (seed, slots, peers), sharing, of));
        hop.conditions = Some(Box::new(Conditions {
            channels: Channels::new(&[], slots, seed, ""),
            outages: None,
            opportunities,
            frame_arq,
            peers: Some(peers),
            arrived_at: Instant::ZERO,
            lost: [0; Loss::ALL.len()],
        }));
        hop
    }

    /// The peers, if several share the hop.
    #[inline]
    pub(super) fn peers(&self) -> Option<&Peers<T>> {
        self.conditions.as_ref()?.peers.as_deref()
    }

    #[inline]
    fn peers_mut(&mut self) -> Option<&mut Box<Peers<T>>> {
        self.conditions.as_mut()?.peers.as_mut()
    }

    /// Takes a packet, as [`Hop::enqueue`] does, of a hop that was served up to `now`.
    #[cold]
    pub(super) fn enqueue_peer(
        &mut self,
        waiting: Waiting<T>,
        priority: Priority,
        now: Instant,
    ) -> Result<(), T> {
        if self.free_at <= now && !self.is_peer_held(&waiting, now) {
            self.transmit(waiting, now);
            return Ok(());
        }
        let Some(peers) = self.peers_mut() else { return Err(waiting.item) };
        peers.push(waiting, priority, now)?;
        self.waiting += 1;
        self.note_length(now);
        // A free air may have passed it over; then it is known until when.
        self.serve(now);
        Ok(())
    }

    /// Length of the packet that is next on air.
    #[inline]
    pub(super) fn next_bytes(&self) -> Option<u32> {
        self.peers().map_or_else(|| self.queue.next_bytes(), Peers::next_bytes)
    }

    /// When its service begins at the earliest.
    #[inline]
    pub(super) fn next_start(&self) -> Instant {
        self.peers().map_or(self.free_at, |peers| self.free_at.max(peers.held_until))
    }

    /// Sends what was to be sent by `now`.
    pub(super) fn serve_peers(&mut self, now: Instant) {
        while self.free_at <= now {
            let queued_at = self.peers().map_or(now, |peers| peers.queued_at);
            let start = self.free_at.max(queued_at);
            if self.lacks_opportunity(start) {
                continue;
            }
            match self.send_peers_next(start) {
                Ok(_) => {}
                Err(until) if until <= now => self.free_at = until,
                Err(_) => return,
            }
        }
    }

    /// Sends the packet that is next at `start` and returns when the air is free again; or until
    /// when all that wait are held.
    pub(super) fn send_peers_next(&mut self, start: Instant) -> Result<Instant, Instant> {
        let conditions = self.conditions.as_mut();
        let peers = conditions.and_then(|conditions| conditions.peers.take());
        let Some(mut peers) = peers else { return Err(NEVER) };
        let start = start.max(peers.queued_at);
        let choice = peers.choose(|bytes| self.service(bytes, start));
        let next = match choice {
            Choice::Peer(peer) => peers.pop(peer),
            Choice::Held(_) | Choice::Nobody => None,
        };
        if let Some(conditions) = &mut self.conditions {
            conditions.peers = Some(peers);
        }
        let Some(waiting) = next else {
            return Err(if let Choice::Held(until) = choice { until } else { NEVER });
        };
        self.waiting -= 1;
        self.note_length(start);
        self.transmit(waiting, start);
        Ok(self.free_at)
    }

    /// From the beginning of a packet's service to its last bit. None of it lies within an outage
    /// that holds, so that who is held stays held until its end.
    fn service(&self, bytes: u32, start: Instant) -> Interval {
        Interval { start, end: self.air(bytes, start).end }
    }

    /// True if a packet that meets a free hop has to wait: its peer is away, or others of that peer
    /// wait.
    fn is_peer_held(&mut self, waiting: &Waiting<T>, now: Instant) -> bool {
        if self.lacks_opportunity(now) {
            return true;
        }
        let service = self.service(waiting.bytes, now);
        let Some(peers) = self.peers_mut() else { return false };
        let member = &mut peers.each[(peers.of)(&waiting.item)];
        member.turn.is_some() || member.held_until(service).is_some()
    }
}

impl<T> Peers<T> {
    fn new(
        config: &Config,
        (seed, slots, peers): (u64, BitRate, &[Peer]),
        sharing: Sharing,
        of: fn(&T) -> usize,
    ) -> Self {
        let member = |peer: &Peer| Member {
            queues: [VecDeque::new(), VecDeque::new()],
            channels: Channels::new(&config.channels, slots, seed, &peer.name),
            outages: Away::new(&config.outages, peer.outage_seed),
            waits_since: Instant::ZERO,
            sent_until: Instant::ZERO,
            arrived_at: Instant::ZERO,
            turn: None,
        };
        let rooms = match sharing {
            Sharing::OneQueue => 1,
            Sharing::QueueEach => peers.len(),
        };
        Peers {
            sharing,
            of,
            each: peers.iter().map(member).collect(),
            rooms: vec![[Load::default(); 2]; rooms],
            limits: [config.queue_high, config.queue],
            turns: BTreeSet::new(),
            arrivals: 0,
            most: Load::default(),
            refused: 0,
            waits_since: Instant::ZERO,
            order: channel::order(&config.channels),
            holds: !config.outages.is_never() && config.outages.mode == Mode::Hold,
            held_until: Instant::ZERO,
            queued_at: Instant::ZERO,
        }
    }

    /// What waits, of all together.
    pub(super) fn waiting(&self) -> Load {
        let add = |sum: Load, one: &Load| Load {
            packets: sum.packets + one.packets,
            bytes: sum.bytes + one.bytes,
        };
        self.rooms.as_flattened().iter().fold(Load::default(), add)
    }

    /// The most that waited, and how many packets found no room.
    pub(super) fn counted(&self) -> (Load, u64) {
        (self.most, self.refused)
    }

    /// Since when this direction contends for an air that it shares with the other; as one station,
    /// it sent last until then.
    pub(super) fn contends_since(&self, sent_until: Instant) -> Instant {
        match self.sharing {
            Sharing::OneQueue => self.waits_since.max(sent_until),
            Sharing::QueueEach => {
                self.turns.first().map_or(NEVER, |turn| Instant::from_nanos(turn.since))
            }
        }
    }

    /// Length of the packet that is next on air; if it may be passed over, the least.
    pub(super) fn next_bytes(&self) -> Option<u32> {
        let turn = self.turns.first()?;
        if self.holds {
            return Some(0);
        }
        self.each[turn.peer].head().map(|(_, waiting)| waiting.bytes)
    }

    /// Puts a packet at the end of its peer's queue, or gives it back if there is no room.
    pub(super) fn push(
        &mut self,
        waiting: Waiting<T>,
        priority: Priority,
        now: Instant,
    ) -> Result<(), T> {
        let (peer, lane) = ((self.of)(&waiting.item), priority as usize);
        let with_it = self.room(peer, lane).and(waiting.bytes);
        if !self.limits[lane].holds(with_it) {
            self.refused += 1;
            return Err(waiting.item);
        }
        *self.room(peer, lane) = with_it;
        if self.turns.is_empty() {
            self.waits_since = now;
        }
        self.most = self.most.most(self.waiting());
        self.arrivals += 1;
        (self.held_until, self.queued_at) = (Instant::ZERO, now);
        let member = &mut self.each[peer];
        if member.turn.is_none() {
            member.waits_since = now;
        }
        member.queues[lane].push_back((self.arrivals, waiting));
        self.take_turn(peer);
        Ok(())
    }

    fn pop(&mut self, peer: usize) -> Option<Waiting<T>> {
        let lane = usize::from(self.each[peer].queues[0].is_empty());
        let (_, waiting) = self.each[peer].queues[lane].pop_front()?;
        let room = self.room(peer, lane);
        room.packets -= 1;
        room.bytes -= u64::from(waiting.bytes);
        Some(waiting)
    }

    fn room(&mut self, peer: usize, lane: usize) -> &mut Load {
        let index = match self.sharing {
            Sharing::OneQueue => 0,
            Sharing::QueueEach => peer,
        };
        &mut self.rooms[index][lane]
    }

    /// Enters a peer among those that wait, at its place; or takes it out.
    fn take_turn(&mut self, peer: usize) {
        let member = &mut self.each[peer];
        let priority = match member.queues[0].is_empty() {
            true => Priority::Normal,
            false => Priority::High,
        };
        let turn = member.head().map(|(arrival, _)| match self.sharing {
            Sharing::OneQueue => Turn { priority, since: *arrival, peer },
            Sharing::QueueEach => {
                let since = member.waits_since.max(member.sent_until).as_nanos();
                Turn { priority: Priority::Normal, since, peer }
            }
        });
        if turn != member.turn {
            if let Some(old) = core::mem::replace(&mut member.turn, turn) {
                self.turns.remove(&old);
            }
            self.turns.extend(turn);
        }
    }

    /// Who sends next; `service` says when a packet of so many bytes would be served.
    fn choose(&mut self, service: impl Fn(u32) -> Interval) -> Choice {
        let mut until: Option<Instant> = None;
        for turn in &self.turns {
            let member = &mut self.each[turn.peer];
            let Some((_, waiting)) = member.head() else { continue };
            let Some(end) = member.held_until(service(waiting.bytes)) else {
                self.held_until = Instant::ZERO;
                return Choice::Peer(turn.peer);
            };
            until = Some(until.map_or(end, |until| until.min(end)));
        }
        match until {
            Some(until) => {
                self.held_until = until;
                Choice::Held(until)
            }
            None => Choice::Nobody,
        }
    }

    /// An outage goes before the channels as the cause; the channels see the packet all the same.
    pub(super) fn judge(&mut self, air: Air, item: &T) -> channel::Verdict {
        let member = &mut self.each[(self.of)(item)];
        let mut verdict = member.channels.judge(air);
        let away = member.outages.as_mut();
        if away.is_some_and(|away| away.outages.covers(air.time).is_some()) {
            verdict.loss = Some(Loss::Outage);
        }
        verdict
    }

    /// A packet went onto the air, which is free again at `free_at`; returns when it arrives if it
    /// would by itself at `at`.
    pub(super) fn on_sent(&mut self, item: &T, at: Instant, free_at: Instant) -> Instant {
        let peer = (self.of)(item);
        let in_order = self.order == channel::arq::Order::InOrder;
        self.held_until = Instant::ZERO;
        let member = &mut self.each[peer];
        member.sent_until = free_at;
        let at = if in_order { at.max(member.arrived_at) } else { at };
        member.arrived_at = at;
        self.take_turn(peer);
        at
    }
}

impl<T> Member<T> {
    /// The packet that is next on air.
    fn head(&self) -> Option<&(u64, Waiting<T>)> {
        self.queues[0].front().or(self.queues[1].front())
    }

    /// The end of the outage that makes a packet wait.
    fn held_until(&mut self, service: Interval) -> Option<Instant> {
        let away = self.outages.as_mut().filter(|away| away.mode == Mode::Hold)?;
        away.outages.covers(service).map(|outage| outage.end)
    }
}

const NEVER: Instant = Instant::from_nanos(u64::MAX);
