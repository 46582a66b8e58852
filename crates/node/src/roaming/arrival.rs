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
    /// Direct packets that waited when the tunnel fell silent, and still do: the rest of a window.
    /// After them the round trip is full again, and the radio's queue holds what is left.
    rest: Option<usize>,
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

    /// A mobile host has come whose old base station is told of it.
    pub(super) fn begin(&mut self, mobile: IpAddr, now: Instant) {
        if self.mobiles.get(&mobile).is_none_or(|arrival| arrival.is_over(now)) {
            self.mobiles.insert(mobile, Arrival::new(now));
        }
    }

    /// Its old base station has answered.
    pub(super) fn answered(&mut self, mobile: IpAddr, now: Instant) {
        if let Some(arrival) = self.mobiles.get_mut(&mobile) {
            arrival.answered_at.get_or_insert(now);
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
            rest: None,
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
        if self.tunnelled.is_empty() && self.waits().into_iter().all(|until| until <= now) {
            self.rest.get_or_insert(self.direct.len());
        }
        if self.is_queue_full() {
            if now < self.queue_at + UNHEARD && self.bytes <= BYTES_MAX {
                return None;
            }
            self.in_queue.clear();
        }
        let packet = self.tunnelled.pop_front().or_else(|| {
            let place = self.direct.iter().position(|packet| self.goes_at(packet) <= now);
            let packet = place.and_then(|place| self.direct.remove(place));
            self.rest = self.rest.map(|rest| rest.saturating_sub(usize::from(packet.is_some())));
            packet
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
        self.rest != Some(0) && self.in_queue.len() >= QUEUED_MAX
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

#[cfg(test)]
mod tests {
    use super::*;
    use core::num::NonZeroU64;
    use sansio::{PacketId, Payload, StreamId};
    use wire::{ip, tcp};

    const MOBILE: [u8; 4] = [10, 128, 0, 1];
    const BYTES: u32 = 1000;

    fn ms(at: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(at)
    }

    /// The segment of this number in the stream.
    fn segment(number: u32) -> PacketRef {
        let mut header = tcp::Header::new(80, 5000);
        header.seq = Seq(number * BYTES);
        let addresses = (IpAddr::from([10, 0, 0, 1]), IpAddr::from(MOBILE));
        let ip = ip::Header::new(addresses.0, addresses.1, ip::Protocol::TCP);
        let payload = Payload::Virtual { stream: StreamId(0), offset: 0, length: BYTES };
        let id = PacketId(NonZeroU64::new(u64::from(number) + 1).expect("one or more"));
        PacketRef::new(Packet::tcp(id, ip, header, payload))
    }

    /// A mobile host has come at 0 ms.
    fn arrivals() -> Arrivals {
        let mut arrivals = Arrivals::new(true);
        arrivals.begin(MOBILE.into(), ms(0));
        arrivals
    }

    /// The numbers of all that may go now.
    fn popped(arrivals: &mut Arrivals, now: Instant) -> Vec<u32> {
        let packets = core::iter::from_fn(|| arrivals.pop(now));
        packets.filter_map(|packet| Some(packet.as_tcp()?.seq.0 / BYTES)).collect()
    }

    fn departs(arrivals: &mut Arrivals, number: u32, now: Instant) {
        arrivals.on_departure(&segment(number), now);
    }

    #[test]
    fn ci_smooth_2_what_comes_straight_waits_for_what_was_sent_before_it() {
        let mut arrivals = arrivals();
        assert!(arrivals.push(segment(2), false, ms(1)).is_none());
        assert!(popped(&mut arrivals, ms(1)).is_empty(), "the old base station may have more");
        arrivals.answered(MOBILE.into(), ms(3));
        arrivals.push(segment(0), true, ms(4));
        assert_eq!(popped(&mut arrivals, ms(4)), [0]);
        arrivals.push(segment(3), false, ms(4));
        arrivals.push(segment(1), true, ms(5));
        assert_eq!(popped(&mut arrivals, ms(5)), [1, 2, 3], "the stream has no hole any more");
        assert_eq!(arrivals.bytes(), 0);
    }

    #[test]
    fn ci_smooth_2_nothing_waits_for_a_tunnel_that_brings_nothing() {
        let mut silent = arrivals();
        silent.push(segment(2), false, ms(1));
        assert_eq!(silent.next_at(), Some(ms(0) + LONGEST));
        assert_eq!(popped(&mut silent, ms(0) + LONGEST), [2]);
        let mut answered = arrivals();
        answered.push(segment(2), false, ms(1));
        answered.answered(MOBILE.into(), ms(3));
        assert_eq!(answered.next_at(), Some(ms(3) + FOLLOWS_WITHIN));
        assert_eq!(popped(&mut answered, ms(3) + FOLLOWS_WITHIN), [2]);
        let mut holed = arrivals();
        holed.push(segment(2), false, ms(1));
        holed.push(segment(0), true, ms(4));
        assert_eq!(popped(&mut holed, ms(4)), [0]);
        assert_eq!(popped(&mut holed, ms(4) + DRAINED_AFTER), [2], "segment 1 will not come");
    }

    #[test]
    fn a_window_goes_as_the_radio_takes_it_and_what_comes_later_at_once() {
        let count = 2 * QUEUED_MAX as u32;
        let mut arrivals = arrivals();
        arrivals.answered(MOBILE.into(), ms(1));
        (0..count)
            .for_each(|number| assert!(arrivals.push(segment(number), true, ms(1)).is_none()));
        assert_eq!(popped(&mut arrivals, ms(1)).len(), QUEUED_MAX);
        departs(&mut arrivals, 0, ms(2));
        assert_eq!(popped(&mut arrivals, ms(2)), [QUEUED_MAX as u32]);
        // One departure shows that those before it have left, too.
        departs(&mut arrivals, count / 2, ms(3));
        assert_eq!(popped(&mut arrivals, ms(3)).len(), QUEUED_MAX - 1);
        let mut rest = count..count + 3 * QUEUED_MAX as u32;
        let after = ms(1) + DRAINED_AFTER;
        rest.by_ref().take(5).for_each(|number| drop(arrivals.push(segment(number), false, ms(4))));
        // One is missing in the queue; the others that waited belong to the window.
        assert_eq!(popped(&mut arrivals, ms(4)), [count]);
        assert!(popped(&mut arrivals, after).is_empty());
        departs(&mut arrivals, count - 1, after);
        assert_eq!(popped(&mut arrivals, after).len(), 4);
        let later: Vec<u32> = rest.collect();
        let mut went = Vec::new();
        for &number in &later {
            match arrivals.push(segment(number), false, after) {
                Some(_) => went.push(number),
                None => went.extend(popped(&mut arrivals, after)),
            }
        }
        assert_eq!(went, later, "the radio's queue bounds these");
    }

    #[test]
    fn a_queue_that_says_nothing_is_not_waited_for() {
        let mut arrivals = arrivals();
        (0..40).for_each(|number| assert!(arrivals.push(segment(number), true, ms(1)).is_none()));
        assert_eq!(popped(&mut arrivals, ms(1)).len(), QUEUED_MAX);
        assert_eq!(arrivals.next_at(), Some(ms(1) + UNHEARD));
        assert_eq!(popped(&mut arrivals, ms(1) + UNHEARD).len(), 40 - QUEUED_MAX);
    }

    #[test]
    fn all_that_waits_goes_on_with_a_mobile_host_that_has_moved_again() {
        let mut arrivals = arrivals();
        (0..40).for_each(|number| assert!(arrivals.push(segment(number), true, ms(1)).is_none()));
        arrivals.push(segment(41), false, ms(1));
        popped(&mut arrivals, ms(1));
        assert_eq!(arrivals.end(MOBILE.into()).count(), 41 - QUEUED_MAX);
        assert_eq!((arrivals.bytes(), arrivals.packets().count()), (0, 0));
        assert!(arrivals.push(segment(50), false, ms(2)).is_some());
    }
}
