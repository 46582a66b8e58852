//! The radio's log once more, from captures of the three machines: what the radio wrote down is
//! gone with its run, what its machines saw was kept.
//!
//! Each capture says which packet it saw and when, sent or received; together they say on which
//! hop it was and when it arrived. Two things they do not say:
//!
//! - *why a packet was lost*: it was sent and never received ([`Happened::Missing`]);
//! - *when*: a hop does not overtake, so not before the packet that was sent ahead of it arrived;
//!   otherwise after the shortest time in which that hop delivered anything.
//!
//! What was sent shortly before the end and not received may still have been under way.

use super::log::{Happened, Happening, HopName, Log, Segment};
use super::replay::{FIXED_HOST, MOBILE_HOST};
use crate::lab::network;
use sansio::{Duration, Instant, Priority};
use std::collections::BTreeMap;
use std::net::IpAddr;
use trace::NodeId;

/// A packet as a machine saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sighting {
    /// Which machine.
    pub machine: NodeId,
    /// When.
    pub at: Instant,
    /// The packet's number, the same at both ends of a hop.
    pub packet: u64,
    /// The packet.
    pub segment: Segment,
    /// What happened to it there.
    pub what: Seen,
}

/// What a machine saw happen to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// It was sent.
    Sent,
    /// It was sent, and found its hop's queue full.
    QueueFull,
    /// It was received.
    Received,
}

/// The log that these sightings are of.
pub fn log(mut sightings: Vec<Sighting>) -> Log {
    // What a base station receives and passes on in one instant it receives first.
    sightings.sort_by_key(|sighting| (sighting.at, sighting.what != Seen::Received));
    let mut log = Log::default();
    let mut hops: [Hop; HopName::ALL.len()] = Default::default();
    let mut numbers = BTreeMap::new();
    for sighting in &sightings {
        let hop = sighting.hop();
        let mut happened = |packet, what| {
            log.happenings.push(Happening { at: sighting.at, packet, hop, what });
        };
        if sighting.what == Seen::Received {
            // What was received and never sent is of no hop.
            if let Some(packet) = numbers.remove(&(hop as u8, sighting.packet)) {
                happened(packet, Happened::Arrived);
                hops[hop as usize].on_arrival(packet, sighting.at);
            }
            continue;
        }
        let packet = log.packets.len() as u32;
        if log.packets.len() >= Log::PACKETS_MAX {
            log.cut = true;
            break;
        }
        log.packets.push(Some(sighting.segment));
        happened(packet, Happened::Sent(Priority::Normal));
        if sighting.what == Seen::QueueFull {
            happened(packet, Happened::QueueFull);
        } else {
            numbers.insert((hop as u8, sighting.packet), packet);
            hops[hop as usize].sent.push(Sent { packet, at: sighting.at, arrived_at: None });
        }
    }
    let end = sightings.last().map_or(Instant::ZERO, |sighting| sighting.at);
    for (hop, name) in hops.iter().zip(HopName::ALL) {
        let missing = hop.missing(end).map(|(packet, at)| {
            let what = Happened::Missing;
            Happening { at, packet, hop: name, what }
        });
        log.happenings.extend(missing);
    }
    log
}

impl Sighting {
    /// On which hop the packet was.
    fn hop(&self) -> HopName {
        let down = self.segment.ip.destination == IpAddr::V4(network::MOBILE_HOST);
        let sent = self.what != Seen::Received;
        match (self.machine, sent) {
            (FIXED_HOST, true) => HopName::WiredDown,
            (FIXED_HOST, false) => HopName::WiredUp,
            (MOBILE_HOST, true) => HopName::RadioUp,
            (MOBILE_HOST, false) => HopName::RadioDown,
            (_, true) if down => HopName::RadioDown,
            (_, true) => HopName::WiredUp,
            (_, false) if down => HopName::WiredDown,
            (_, false) => HopName::RadioUp,
        }
    }
}

/// What went into a hop, in order.
#[derive(Clone, Debug, Default)]
struct Hop {
    sent: Vec<Sent>,
}

#[derive(Clone, Copy, Debug)]
struct Sent {
    packet: u32,
    at: Instant,
    arrived_at: Option<Instant>,
}

impl Hop {
    fn on_arrival(&mut self, packet: u32, at: Instant) {
        let place = self.sent.binary_search_by_key(&packet, |sent| sent.packet);
        if let Some(sent) = place.ok().and_then(|place| self.sent.get_mut(place)) {
            sent.arrived_at = Some(at);
        }
    }

    /// What did not arrive, and when it was lost.
    fn missing(&self, end: Instant) -> impl Iterator<Item = (u32, Instant)> {
        let times = || self.sent.iter().filter_map(|sent| Some(sent.arrived_at?.since(sent.at)));
        let shortest = times().min().unwrap_or(Duration::ZERO);
        let longest = times().max().unwrap_or(Duration::ZERO);
        let overtaken = self.sent.iter().rposition(|sent| sent.arrived_at.is_some());
        let mut free_at = Instant::ZERO;
        self.sent.iter().enumerate().filter_map(move |(place, sent)| {
            let gone_at = free_at.max(sent.at + shortest);
            free_at = sent.arrived_at.unwrap_or(gone_at).max(free_at);
            let over = overtaken.is_some_and(|last| place < last) || sent.at + longest < end;
            (sent.arrived_at.is_none() && over).then_some((sent.packet, gone_at.min(end)))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::replay::BASE_STATION;
    use super::*;
    use wire::ip::{self, Protocol};
    use wire::tcp;

    fn ms(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn seen(machine: NodeId, what: Seen, packet: u64, at: u64) -> Sighting {
        let addresses = [network::FIXED_HOST, network::MOBILE_HOST].map(IpAddr::V4);
        let segment = Segment {
            ip: ip::Header::new(addresses[0], addresses[1], Protocol::TCP),
            tcp: tcp::Header::new(1, 2),
            payload_bytes: 100,
        };
        Sighting { machine, at: ms(at), packet, segment, what }
    }

    fn on_radio(log: &Log) -> Vec<(u32, Happened, u64)> {
        let mut all = log.happenings.clone();
        all.sort_by_key(|one| one.at);
        let radio = all.into_iter().filter(|one| one.hop == HopName::RadioDown);
        radio.map(|one| (one.packet, one.what, one.at.as_nanos() / 1_000_000)).collect()
    }

    #[test]
    fn what_was_sent_and_never_received_is_missing_no_sooner_than_its_place_in_the_queue() {
        let sent = |packet, at| seen(BASE_STATION, Seen::Sent, packet, at);
        let received = |packet, at| seen(MOBILE_HOST, Seen::Received, packet, at);
        let log = log(vec![
            received(7, 15),
            received(9, 30),
            // A fourth is refused, a fifth is lost on an idle hop, the last is under way.
            sent(7, 0),
            sent(8, 1),
            sent(9, 2),
            seen(BASE_STATION, Seen::QueueFull, 10, 3),
            sent(11, 100),
            sent(12, 190),
            seen(FIXED_HOST, Seen::Sent, 13, 200),
        ]);
        let normal = Happened::Sent(Priority::Normal);
        let expected = [
            (0, normal, 0),
            (1, normal, 1),
            (2, normal, 2),
            (3, normal, 3),
            (3, Happened::QueueFull, 3),
            (0, Happened::Arrived, 15),
            (1, Happened::Missing, 16),
            (2, Happened::Arrived, 30),
            (4, normal, 100),
            (4, Happened::Missing, 115),
            (5, normal, 190),
        ];
        assert_eq!(on_radio(&log), expected);
        assert_eq!(log.happenings.iter().filter(|one| one.hop == HopName::WiredDown).count(), 1);
        assert!(!log.cut);
    }

    #[test]
    fn hops_follow_from_machine_and_direction_and_what_nobody_sent_is_left_out() {
        let hop = |machine, what| seen(machine, what, 1, 0).hop();
        assert_eq!(hop(FIXED_HOST, Seen::Sent), HopName::WiredDown);
        assert_eq!(hop(BASE_STATION, Seen::Received), HopName::WiredDown);
        assert_eq!(hop(BASE_STATION, Seen::QueueFull), HopName::RadioDown);
        assert_eq!(hop(MOBILE_HOST, Seen::Received), HopName::RadioDown);
        let log = log(vec![seen(MOBILE_HOST, Seen::Received, 1, 5)]);
        assert!(log.packets.is_empty() && log.happenings.is_empty());
    }
}
