//! What follows a mobile host to its new base station waits there: for its turn, and for room in
//! the radio's queue.
//!
//! ```text
//!   by tunnel from the old base station ─┐
//!                                        ├─ in order ─ few at a time ─▶ scheme, radio
//!   straight from the home agent ────────┘
//! ```
//!
//! What comes straight has overtaken what comes by the old base station. It waits until that one
//! has answered and its tunnel is quiet, or until it continues a stream of which the tunnel brought
//! the part before; WINC-BS-12's sequencer waits for the tunnel alone. And a window of data comes
//! at once from a base station that has kept it: a drop-tail queue would lose the end of it, and
//! the sender would take that for congestion.

use core::net::IpAddr;
use sansio::{Duration, FlowKey, Instant, Packet, PacketId, PacketRef};
use std::collections::{BTreeMap, VecDeque};
use wire::tcp::Seq;

/// After the old base station's answer what it kept follows at once; nothing for so long, and there
/// was nothing.
const FOLLOWS_WITHIN: Duration = Duration::from_millis(2);
/// Where data is missing, the tunnel may still bring it so long after its last packet
/// (as WINC-BS-12).
const DRAINED_AFTER: Duration = Duration::from_millis(50);
/// Nothing waits for the tunnel longer than this (WINC-BS-12).
const LONGEST: Duration = Duration::from_millis(200);
/// Packets of a mobile host in the radio's queue at a time, while others wait: two round trips over
/// the air at 100 Mbit/s, or what local retransmissions may be there (`snoop`).
const QUEUED_MAX: usize = 32;
/// A queue of which nothing was heard for so long has lost what was sent into it.
const UNHEARD: Duration = Duration::from_millis(100);
/// Bytes that wait for one mobile host, at most: beyond, all go at once. The largest window of a
/// Linux host (`tcp_rmem`), as in `snoop`.
const BYTES_MAX: u64 = 6 << 20;

/// All that waits at one base station.
#[derive(Clone, Debug)]
pub(super) struct Arrivals {
    mobiles: BTreeMap<IpAddr, Arrival>,
    /// The driver tells what leaves the radio's queue.
    hears_departures: bool,
    bytes: u64,
}

/// Of one mobile host.
#[derive(Clone, Debug)]
struct Arrival {
    since: Instant,
    /// The old base station has answered.
    answered_at: Option<Instant>,
    /// The last packet through the tunnel.
    tunnelled_at: Instant,
    tunnelled: VecDeque<PacketRef>,
    direct: VecDeque<PacketRef>,
    /// How far the tunnel brought each stream.
    streams: BTreeMap<FlowKey, Seq>,
    in_queue: VecDeque<PacketId>,
    /// The last packet went into the queue, or left it.
    queue_at: Instant,
    bytes: u64,
}

impl Arrivals {
    pub(super) fn new(hears_departures: bool) -> Self {
        Arrivals { mobiles: BTreeMap::new(), hears_departures, bytes: 0 }
    }

    /// A mobile host has come whose old base station is told of it, or that one has answered
    /// ([`sansio::Notice::TunnelOpened`]).
    pub(super) fn opened(&mut self, mobile: IpAddr, now: Instant) {
        match self.mobiles.get_mut(&mobile) {
            Some(arrival) if !arrival.is_over(now) => {
                arrival.answered_at.get_or_insert(now);
            }
            _ => {
                self.mobiles.insert(mobile, Arrival::new(now));
            }
        }
    }

    /// A packet for a mobile host; given back if it need not wait.
    pub(super) fn push(
        &mut self,
        packet: PacketRef,
        is_tunnelled: bool,
        now: Instant,
    ) -> Option<PacketRef> {
        let mobile = packet.ip.destination;
        let Some(arrival) = self.mobiles.get_mut(&mobile) else { return Some(packet) };
        if arrival.is_over(now) {
            self.mobiles.remove(&mobile);
            return Some(packet);
        }
        let bytes = u64::from(packet.bytes());
        arrival.bytes += bytes;
        self.bytes += bytes;
        if is_tunnelled {
            arrival.tunnelled_at = now;
            arrival.tunnelled.push_back(packet);
        } else {
            arrival.direct.push_back(packet);
        }
        None
    }

    /// The next packet that may go.
    pub(super) fn pop(&mut self, now: Instant) -> Option<PacketRef> {
        let hears_departures = self.hears_departures;
        let packet = self.mobiles.values_mut().find_map(|one| one.pop(hears_departures, now))?;
        self.bytes -= u64::from(packet.bytes());
        Some(packet)
    }

    /// A packet has left the radio's queue; those before it have, too, or were lost there.
    pub(super) fn on_departure(&mut self, packet: &Packet, now: Instant) {
        let Some(arrival) = self.mobiles.get_mut(&packet.ip.destination) else { return };
        if let Some(place) = arrival.in_queue.iter().position(|id| *id == packet.id) {
            arrival.in_queue.drain(..=place);
            arrival.queue_at = arrival.queue_at.max(now);
        }
    }

    /// A mobile host has moved on: all that waited for it.
    pub(super) fn end(&mut self, mobile: IpAddr) -> impl Iterator<Item = PacketRef> + use<> {
        let arrival = self.mobiles.remove(&mobile);
        self.bytes -= arrival.as_ref().map_or(0, |arrival| arrival.bytes);
        arrival.into_iter().flat_map(|one| one.tunnelled.into_iter().chain(one.direct))
    }

    /// When something that waits for the tunnel may go without it.
    pub(super) fn next_at(&self) -> Option<Instant> {
        self.mobiles.values().filter_map(Arrival::next_at).min()
    }

    /// Bytes that wait.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// All that waits.
    pub(super) fn packets(&self) -> impl Iterator<Item = &PacketRef> {
        self.mobiles.values().flat_map(|one| one.tunnelled.iter().chain(&one.direct))
    }
}

impl Arrival {
    fn new(now: Instant) -> Self {
        Arrival {
            since: now,
            answered_at: None,
            tunnelled_at: now,
            tunnelled: VecDeque::new(),
            direct: VecDeque::new(),
            streams: BTreeMap::new(),
            in_queue: VecDeque::new(),
            queue_at: now,
            bytes: 0,
        }
    }

    /// Nothing waits, and nothing that comes will have to.
    fn is_over(&self, now: Instant) -> bool {
        let is_empty = self.tunnelled.is_empty() && self.direct.is_empty();
        is_empty && self.waits().into_iter().all(|until| until <= now)
    }

    /// Until when direct packets wait: those of streams that the tunnel has not brought, and those
    /// beyond a gap.
    fn waits(&self) -> [Instant; 2] {
        let longest = self.since + LONGEST;
        let quiet = self.answered_at.map(|at| at.max(self.tunnelled_at) + FOLLOWS_WITHIN);
        [quiet.unwrap_or(longest), self.tunnelled_at + DRAINED_AFTER].map(|at| at.min(longest))
    }

    /// Nothing is waited for but the tunnel, and a queue that says nothing: all else is an input.
    fn next_at(&self) -> Option<Instant> {
        let is_waiting = !self.tunnelled.is_empty() || !self.direct.is_empty();
        if is_waiting && self.is_queue_full() {
            return Some(self.queue_at + UNHEARD);
        }
        let packets = self.tunnelled.is_empty().then_some(&self.direct).into_iter().flatten();
        packets.map(|packet| self.goes_at(packet)).min()
    }

    fn pop(&mut self, hears_departures: bool, now: Instant) -> Option<PacketRef> {
        if self.is_queue_full() {
            if now < self.queue_at + UNHEARD && self.bytes <= BYTES_MAX {
                return None;
            }
            self.in_queue.clear();
        }
        let packet = self.tunnelled.pop_front().or_else(|| {
            let place = self.direct.iter().position(|packet| self.goes_at(packet) <= now);
            place.and_then(|place| self.direct.remove(place))
        })?;
        self.bytes -= u64::from(packet.bytes());
        if hears_departures {
            self.in_queue.push_back(packet.id);
            self.queue_at = now;
        }
        if let Some((key, (_, end))) = stream(&packet) {
            let reached = self.streams.entry(key).or_insert(end);
            *reached = (*reached).max(end);
        }
        Some(packet)
    }

    /// The radio's queue holds as much as it should; it is empty for who hears of no departures.
    fn is_queue_full(&self) -> bool {
        self.in_queue.len() >= QUEUED_MAX
    }

    /// When a direct packet waits for the tunnel no longer.
    fn goes_at(&self, packet: &Packet) -> Instant {
        let Some((key, (start, _))) = stream(packet) else { return self.since };
        let [quiet, drained] = self.waits();
        match self.streams.get(&key) {
            Some(reached) if start.at_or_before(*reached) => self.since,
            Some(_) => drained,
            None => quiet,
        }
    }
}

/// The stream of a packet with data, and which part of it that is.
fn stream(packet: &Packet) -> Option<(FlowKey, (Seq, Seq))> {
    let tcp = packet.as_tcp()?;
    let length = tcp.sequence_length(packet.payload.len());
    (length > 0).then_some((FlowKey::of(packet)?, (tcp.seq, tcp.seq + length)))
}
