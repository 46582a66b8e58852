//! What a bridge knows: where stations are, and which link-layer header leads from one host to
//! another. Learned from the frames that pass, as a bridge does (IEEE 802.1D, 7.8).
//!
//! The kernel's bridge does not see the frames that the daemon takes. Its own table would forget
//! their senders (after 300 s by default) and send what is for them to every port; so it is told of
//! a station at its first frame, and again as long as there are frames, five times in that time.

use crate::frame::Link;
use sansio::{Duration, Instant, Side};
use std::collections::BTreeMap;
use std::net::IpAddr;
use wire::ethernet::Mac;

/// Stations and paths, as far as frames have shown them.
#[derive(Clone, Debug)]
pub struct Bridged {
    /// A station is forgotten so long after its last frame.
    ageing: Duration,
    stations: Recent<Mac, Station>,
    /// The link-layer header from one host to another: not that of the other way turned around,
    /// since routers that share an address send from one of their own (RFC 9568, 7.3).
    paths: Recent<(IpAddr, IpAddr), Link>,
}

#[derive(Clone, Copy, Debug)]
struct Station {
    side: Side,
    seen_at: Instant,
    /// When the kernel was told.
    told_at: Option<Instant>,
}

/// What a bridge does with a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filtering {
    /// It goes on.
    Passes,
    /// Its destination is where it came from, or its source is no station.
    Filtered,
}

/// The kernel is told of a station so often before it would forget it.
const TOLD_TIMES: u64 = 5;

impl Bridged {
    /// A bridge that knows nobody yet, and remembers a station for `ageing` without a frame of it.
    pub fn new(ageing: Duration) -> Self {
        Bridged { ageing, stations: Recent::default(), paths: Recent::default() }
    }

    /// Takes note of a frame between two hosts; returns what a bridge does with it.
    #[inline]
    pub fn learn(
        &mut self,
        side: Side,
        link: Link,
        (source, destination): (IpAddr, IpAddr),
        now: Instant,
    ) -> Filtering {
        if link.source.is_multicast() {
            return Filtering::Filtered;
        }
        match self.stations.get(&link.source) {
            Some(station) if station.side == side => station.seen_at = now,
            _ => self.stations.insert(link.source, Station { side, seen_at: now, told_at: None }),
        }
        match self.paths.get(&(source, destination)) {
            Some(known) => *known = link,
            None => self.paths.insert((source, destination), link),
        }
        let ageing = self.ageing;
        let is_here =
            |station: &mut Station| station.side == side && now.since(station.seen_at) < ageing;
        match self.stations.get(&link.destination).is_some_and(is_here) {
            true => Filtering::Filtered,
            false => Filtering::Passes,
        }
    }

    /// True if the kernel is to be told of a station now; it then counts as told.
    #[inline]
    pub fn is_to_be_told(&mut self, station: Mac, now: Instant) -> bool {
        let every = self.ageing / TOLD_TIMES;
        let Some(station) = self.stations.get(&station) else { return false };
        if station.told_at.is_some_and(|told_at| now.since(told_at) < every) {
            return false;
        }
        station.told_at = Some(now);
        true
    }

    /// The link-layer header of the last frame from one host to another.
    pub fn link(&mut self, source: IpAddr, destination: IpAddr) -> Option<Link> {
        self.paths.get(&(source, destination)).copied()
    }
}

/// A map of bounded size that forgets what was not asked for.
#[derive(Clone, Debug)]
struct Recent<K, V> {
    current: BTreeMap<K, V>,
    previous: BTreeMap<K, V>,
}

impl<K, V> Default for Recent<K, V> {
    fn default() -> Self {
        Recent { current: BTreeMap::new(), previous: BTreeMap::new() }
    }
}

impl<K: Ord + Copy, V: Copy> Recent<K, V> {
    /// In all, at most twice as many.
    const CURRENT_MAX: usize = 1 << 15;

    #[inline]
    fn get(&mut self, key: &K) -> Option<&mut V> {
        if let Some(value) = self.previous.remove(key) {
            self.insert(*key, value);
        }
        self.current.get_mut(key)
    }

    fn insert(&mut self, key: K, value: V) {
        if self.current.len() >= Self::CURRENT_MAX {
            self.previous = core::mem::take(&mut self.current);
        }
        self.current.insert(key, value);
        self.previous.remove(&key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Mac = Mac([2, 0, 0, 0, 0, 0xa]);
    const B: Mac = Mac([2, 0, 0, 0, 0, 0xb]);
    const HOSTS: (IpAddr, IpAddr) = (
        IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1)),
        IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 2)),
    );

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    #[test]
    fn a_frame_whose_destination_is_where_it_came_from_is_filtered() {
        let mut bridged = Bridged::new(Duration::from_secs(300));
        let (to_b, to_a) = (Link { destination: B, source: A }, Link { destination: A, source: B });
        assert_eq!(bridged.learn(Side::WIRED, to_b, HOSTS, at(0)), Filtering::Passes);
        let back = (HOSTS.1, HOSTS.0);
        assert_eq!(bridged.learn(Side::WIRED, to_a, back, at(1)), Filtering::Filtered);
        // It moves to the other side, and is found there at once.
        assert_eq!(bridged.learn(Side::RADIO, to_a, back, at(2)), Filtering::Passes);
        assert_eq!(bridged.learn(Side::WIRED, to_b, HOSTS, at(3)), Filtering::Passes);
        // Not heard of for 300 s: it may be anywhere.
        let last = Instant::from_nanos(at(302).as_nanos() - 1);
        assert_eq!(bridged.learn(Side::RADIO, to_b, HOSTS, last), Filtering::Filtered);
        assert_eq!(bridged.learn(Side::RADIO, to_b, HOSTS, at(302)), Filtering::Passes);
        let group = Link { destination: A, source: Mac([1; 6]) };
        assert_eq!(bridged.learn(Side::RADIO, group, HOSTS, at(302)), Filtering::Filtered);
        assert_eq!(bridged.link(back.0, back.1), Some(to_a));
    }

    #[test]
    fn the_kernel_is_told_of_a_station_at_once_every_minute_and_when_it_moves() {
        let mut bridged = Bridged::new(Duration::from_secs(300));
        let link = Link { destination: B, source: A };
        assert!(!bridged.is_to_be_told(A, at(0)), "nothing is known of it");
        let mut told = Vec::new();
        for second in 0..130 {
            let side = if second < 100 { Side::RADIO } else { Side::WIRED };
            bridged.learn(side, link, HOSTS, at(second));
            if bridged.is_to_be_told(A, at(second)) {
                told.push(second);
            }
        }
        assert_eq!(told, [0, 60, 100]);
    }

    #[test]
    fn a_full_map_forgets_what_was_not_asked_for() {
        let mut map = Recent::default();
        let most = Recent::<u32, u32>::CURRENT_MAX as u32;
        for number in 0..most * 4 {
            map.insert(number, number);
            assert_eq!(map.get(&7).copied(), (number >= 7).then_some(7), "asked for every time");
        }
        assert!(map.get(&8).is_none());
        assert!(map.current.len() + map.previous.len() <= 2 * most as usize);
    }
}
