//! Packets kept at a base station after they were sent to a mobile host, to be sent on when it has
//! moved (CI-SMOOTH-2). The base station does not know which of them arrived; so the mobile host
//! gets some twice, and none is lost if the bound is the radio's rate times the longest handoff.

use core::net::Ipv4Addr;
use sansio::{Duration, Instant, PacketRef};
use std::collections::{BTreeMap, VecDeque};

/// Bounds of what is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Bytes for each mobile host, IP headers included.
    pub bytes_max: u32,
    /// Bytes for all mobile hosts.
    pub bytes_total_max: u64,
    /// No packet is kept for longer.
    pub keep: Duration,
}

impl Default for Config {
    /// What 2 Mbit/s bring in 250 ms for each, 64 MiB for all, none older than a second.
    fn default() -> Self {
        let keep = Duration::from_secs(1);
        Config { bytes_max: 62_500, bytes_total_max: 64 << 20, keep }
    }
}

/// What one base station keeps.
#[derive(Clone, Debug)]
pub struct Keeper {
    config: Config,
    rings: BTreeMap<Ipv4Addr, Ring>,
    bytes: u64,
    turned_away: u64,
}

/// The packets of one mobile host, the oldest first.
#[derive(Clone, Debug, Default)]
struct Ring {
    packets: VecDeque<(Instant, PacketRef)>,
    bytes: u32,
}

impl Keeper {
    /// Keeps nothing yet.
    pub fn new(config: Config) -> Self {
        Keeper { config, rings: BTreeMap::new(), bytes: 0, turned_away: 0 }
    }

    /// Keeps a packet that was sent to a mobile host. The oldest ones make room; one that is too
    /// large for the bounds alone is not kept.
    pub fn keep(&mut self, mobile: Ipv4Addr, packet: &PacketRef, now: Instant) {
        let size = packet.bytes();
        if size > self.config.bytes_max {
            self.turned_away += 1;
            return;
        }
        let ring = self.rings.entry(mobile).or_default();
        while ring.packets.front().is_some_and(|(sent_at, _)| {
            ring.bytes + size > self.config.bytes_max || now.since(*sent_at) > self.config.keep
        }) {
            self.bytes -= ring.pop();
        }
        if self.bytes + u64::from(size) > self.config.bytes_total_max {
            self.turned_away += 1;
            return;
        }
        ring.packets.push_back((now, packet.clone()));
        ring.bytes += size;
        self.bytes += u64::from(size);
    }

    /// How many packets would be taken now.
    pub fn count(&self, mobile: Ipv4Addr, now: Instant) -> usize {
        let packets = self.rings.get(&mobile).map(|ring| &ring.packets);
        let is_fresh = |(sent_at, _): &&(Instant, _)| now.since(*sent_at) <= self.config.keep;
        packets.into_iter().flatten().filter(is_fresh).count()
    }

    /// Takes what is kept for a mobile host, the oldest first; nothing stays.
    pub fn take(&mut self, mobile: Ipv4Addr, now: Instant) -> Vec<PacketRef> {
        let Some(ring) = self.rings.remove(&mobile) else { return Vec::new() };
        self.bytes -= u64::from(ring.bytes);
        let keep = self.config.keep;
        let is_fresh = |(sent_at, _): &(Instant, _)| now.since(*sent_at) <= keep;
        ring.packets.into_iter().filter(is_fresh).map(|(_, packet)| packet).collect()
    }

    /// Bytes kept for all mobile hosts.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The most that may be kept.
    pub fn bytes_max(&self) -> u64 {
        self.config.bytes_total_max
    }

    /// Packets that were not kept because of a bound.
    pub fn turned_away(&self) -> u64 {
        self.turned_away
    }
}

impl Ring {
    /// Lets the oldest packet go; its size.
    fn pop(&mut self) -> u64 {
        let Some((_, packet)) = self.packets.pop_front() else { return 0 };
        let size = packet.bytes();
        self.bytes -= size;
        u64::from(size)
    }
}
