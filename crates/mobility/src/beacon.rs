//! Beacons: a base station sends them (CI-HO-1, MCAST-7), a mobile host lists which it hears
//! (LINK-2, MCAST-9).
//!
//! A beacon is a hint (MOD-10): it can make a mobile host ask a base station that is not there,
//! and no more.

use crate::clock::Clock;
use crate::post::{self, v4};
use core::net::{Ipv4Addr, SocketAddrV4};
use sansio::{BitRate, Duration, Instant, Packet, Priority, Side, Sink};
use std::collections::BTreeMap;
use wire::control::{Beacon, PORT};

/// Sends the beacons of one base station on [`Side::RADIO`].
#[derive(Clone, Debug)]
pub struct Sender {
    id: u32,
    address: Ipv4Addr,
    interval: Duration,
    clock: Clock,
    sequence: u16,
    next_at: Instant,
}

impl Sender {
    /// One beacon per second (CI-HO-1, MCAST-7).
    pub const INTERVAL: Duration = Duration::from_secs(1);

    /// The first one at `first_at`, then one each `interval`: 1 ms to 65 s.
    pub fn new(
        (id, address): (u32, Ipv4Addr),
        interval: Duration,
        clock: Clock,
        first_at: Instant,
    ) -> Self {
        let interval = interval.clamp(Duration::from_millis(1), Duration::from_millis(65_535));
        Sender { id, address, interval, clock, sequence: 0, next_at: first_at }
    }

    /// When [`Sender::on_timer`] is due.
    pub fn next_at(&self) -> Instant {
        self.next_at
    }

    /// Sends a beacon if it is time. Those that were missed are not made up for.
    pub fn on_timer(&mut self, sink: &mut impl Sink, now: Instant) {
        if now < self.next_at {
            return;
        }
        self.send(sink, now);
        let late = now.since(self.next_at).as_nanos() / self.interval.as_nanos();
        self.next_at += self.interval * (late + 1);
    }

    /// Sends a beacon now, whatever is due.
    pub fn send(&mut self, sink: &mut impl Sink, now: Instant) {
        let beacon = Beacon {
            id: self.id,
            address: self.address,
            sent_at: self.clock.stamp(now),
            interval_ms: self.interval.as_millis() as u16,
            sequence: self.sequence,
        };
        self.sequence = self.sequence.wrapping_add(1);
        let mut bytes = Vec::with_capacity(Beacon::BYTES);
        beacon.emit(&mut bytes);
        let to = SocketAddrV4::new(Ipv4Addr::BROADCAST, PORT);
        let packet = post::udp(SocketAddrV4::new(self.address, PORT), to, bytes, sink);
        sink.send(Side::RADIO, Priority::Normal, packet);
    }
}

/// The beacon in a packet; `None` if there is none, or one by somebody else than it says.
pub fn read(packet: &Packet) -> Option<Beacon> {
    let bytes = post::udp_to(packet, PORT)?;
    let beacon = Beacon::parse(&bytes).ok()?;
    (v4(packet.ip.source) == Some(beacon.address)).then_some(beacon)
}

/// A base station in the list (LINK-2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heard {
    /// Its id.
    pub id: u32,
    /// Its address.
    pub address: Ipv4Addr,
    /// When it was heard last.
    pub received_at: Instant,
    /// Until when it stays in the list.
    pub until: Instant,
    /// Its radio's rate, if the driver knows it.
    pub rate: Option<BitRate>,
    /// Signal to noise of the last beacon, in tenths of a decibel.
    pub decibels_10: i16,
    /// Between its beacons.
    pub interval: Duration,
}

/// Parameters of the list of base stations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListenerConfig {
    /// Beacons in a row that must be missed until a base station counts as silent (PAR-1).
    pub missed_max: u32,
    /// How long a base station stays in the list after its last beacon (LINK-3).
    pub lifetime: Duration,
    /// Base stations in the list, at most.
    pub stations_max: usize,
}

impl Default for ListenerConfig {
    /// Three missed (PAR-1), one hour (LINK-3), 64 base stations.
    fn default() -> Self {
        let lifetime = Duration::from_secs(3_600);
        ListenerConfig { missed_max: 3, lifetime, stations_max: 64 }
    }
}

/// The list of base stations that were heard.
#[derive(Clone, Debug)]
pub struct Listener {
    config: ListenerConfig,
    stations: BTreeMap<Ipv4Addr, Heard>,
}

impl Listener {
    /// Nothing heard yet.
    pub fn new(config: ListenerConfig) -> Self {
        Listener { config, stations: BTreeMap::new() }
    }

    /// Takes a beacon and how strong it came. In a full list it takes the place of the base station
    /// that was heard longest ago, if that is silent; otherwise it is left out, and the answer is
    /// `None`. True: the base station is new.
    pub fn hear(&mut self, beacon: &Beacon, decibels_10: i16, now: Instant) -> Option<bool> {
        self.stations.retain(|_, heard| now < heard.until);
        let is_new = !self.stations.contains_key(&beacon.address);
        if is_new && self.stations.len() >= self.config.stations_max {
            let oldest = self.stations.values().min_by_key(|heard| heard.received_at)?;
            if self.is_audible(oldest.address, now) {
                return None;
            }
            let oldest = oldest.address;
            self.stations.remove(&oldest);
        }
        let rate = self.stations.get(&beacon.address).and_then(|heard| heard.rate);
        let heard = Heard {
            id: beacon.id,
            address: beacon.address,
            received_at: now,
            until: now + self.config.lifetime,
            rate,
            decibels_10,
            interval: Duration::from_millis(beacon.interval_ms.into()),
        };
        self.stations.insert(beacon.address, heard);
        Some(is_new)
    }

    /// Tells the rate of a base station's radio.
    pub fn set_rate(&mut self, station: Ipv4Addr, rate: BitRate) {
        if let Some(heard) = self.stations.get_mut(&station) {
            heard.rate = Some(rate);
        }
    }

    /// True if a base station is in the list and not silent.
    pub fn is_audible(&self, station: Ipv4Addr, now: Instant) -> bool {
        self.silent_at(station).is_some_and(|silent_at| now < silent_at)
    }

    /// When a base station in the list counts as silent unless it is heard: in the middle between
    /// the last beacon that may be missed and the next, so that no jitter decides.
    pub fn silent_at(&self, station: Ipv4Addr) -> Option<Instant> {
        let heard = self.stations.get(&station)?;
        let periods = u64::from(self.config.missed_max) * 2 + 1;
        Some(heard.received_at + heard.interval * periods / 2)
    }

    /// The base stations that are in the list and heard now.
    pub fn audible(&self, now: Instant) -> impl Iterator<Item = &Heard> {
        self.stations.values().filter(move |heard| self.is_audible(heard.address, now))
    }

    /// The whole list, silent ones included, by address.
    pub fn all(&self) -> impl Iterator<Item = &Heard> {
        self.stations.values()
    }

    /// What is known of a base station.
    pub fn get(&self, station: Ipv4Addr) -> Option<&Heard> {
        self.stations.get(&station)
    }
}
