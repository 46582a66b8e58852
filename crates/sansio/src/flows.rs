//! Finding a connection by its four-tuple.

use crate::{Packet, Transport};
use core::hash::{BuildHasher, Hash, Hasher};
use core::net::IpAddr;
use wire::ip::Protocol;

/// An address and a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Host {
    /// Address.
    pub address: IpAddr,
    /// Port.
    pub port: u16,
}

/// One direction of a TCP connection: from whom, to whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FlowKey {
    /// Where its packets come from.
    pub source: Host,
    /// Where they go.
    pub destination: Host,
}

impl FlowKey {
    /// The direction in which a TCP segment travels; `None` for anything else.
    #[inline]
    pub fn of(packet: &Packet) -> Option<FlowKey> {
        let Transport::Tcp(tcp) = &packet.transport else { return None };
        debug_assert_eq!(packet.ip.protocol, Protocol::TCP, "a TCP header under protocol 6");
        Some(FlowKey {
            source: Host { address: packet.ip.source, port: tcp.source_port },
            destination: Host { address: packet.ip.destination, port: tcp.destination_port },
        })
    }

    /// True if [`FlowKey::of`] a packet is this one; none is made for the comparison.
    #[inline]
    pub fn is_of(&self, packet: &Packet) -> bool {
        let Transport::Tcp(tcp) = &packet.transport else { return false };
        let ip = &packet.ip;
        self.joins((&ip.source, tcp.source_port), (&ip.destination, tcp.destination_port))
    }

    /// True if the other direction is that of a packet.
    #[inline]
    pub fn is_reverse_of(&self, packet: &Packet) -> bool {
        let Transport::Tcp(tcp) = &packet.transport else { return false };
        let ip = &packet.ip;
        self.joins((&ip.destination, tcp.destination_port), (&ip.source, tcp.source_port))
    }

    /// True if it leads from the one to the other.
    #[inline(always)]
    fn joins(&self, from: (&IpAddr, u16), to: (&IpAddr, u16)) -> bool {
        self.source.port == from.1
            && self.destination.port == to.1
            && is_same(&self.source.address, from.0)
            && is_same(&self.destination.address, to.0)
    }

    /// The other direction.
    #[inline]
    pub fn reversed(self) -> FlowKey {
        FlowKey { source: self.destination, destination: self.source }
    }
}

#[inline(always)]
fn is_same(own: &IpAddr, other: &IpAddr) -> bool {
    match (own, other) {
        (IpAddr::V4(own), IpAddr::V4(other)) => own == other,
        _ => is_same_of_any(own, other),
    }
}

/// Of any family; out of the way of the one that nearly all have.
#[cold]
fn is_same_of_any(own: &IpAddr, other: &IpAddr) -> bool {
    own == other
}

impl core::fmt::Display for Host {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self.address {
            IpAddr::V4(address) => write!(f, "{address}:{}", self.port),
            IpAddr::V6(address) => write!(f, "[{address}]:{}", self.port),
        }
    }
}

impl core::fmt::Display for FlowKey {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{} > {}", self.source, self.destination)
    }
}

impl Hash for FlowKey {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        let ports = u32::from(self.source.port) << 16 | u32::from(self.destination.port);
        match (self.source.address, self.destination.address) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                state.write_u64(
                    u64::from(source.to_bits()) << 32 | u64::from(destination.to_bits()),
                );
            }
            (source, destination) => {
                for address in [source, destination] {
                    let bits = match address {
                        IpAddr::V4(address) => address.to_ipv6_mapped().to_bits(),
                        IpAddr::V6(address) => address.to_bits(),
                    };
                    state.write_u64((bits >> 64) as u64);
                    state.write_u64(bits as u64);
                }
            }
        }
        state.write_u64(u64::from(ports));
    }
}

/// From four-tuple to slot number. It offers look-ups only: no iteration, whose order would depend
/// on the hash.
#[derive(Clone, Debug)]
pub struct FlowIndex {
    slots: Slots,
}

#[expect(clippy::disallowed_types, reason = "only look-ups; iteration is not offered")]
type Slots = std::collections::HashMap<FlowKey, u32, Keyed>;

impl FlowIndex {
    /// An empty index. A daemon passes a random `key`, so that nobody outside can choose
    /// four-tuples that collide; the simulator passes a fixed one.
    pub fn new(key: u64) -> Self {
        FlowIndex { slots: Slots::with_hasher(Keyed(key)) }
    }

    /// The slot of a flow.
    #[inline]
    pub fn get(&self, flow: &FlowKey) -> Option<u32> {
        self.slots.get(flow).copied()
    }

    /// Sets the slot of a flow; returns the previous one.
    pub fn insert(&mut self, flow: FlowKey, slot: u32) -> Option<u32> {
        self.slots.insert(flow, slot)
    }

    /// Forgets a flow; returns its slot.
    pub fn remove(&mut self, flow: &FlowKey) -> Option<u32> {
        self.slots.remove(flow)
    }

    /// Number of flows.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.slots.clear();
    }
}

/// Hash state from a key.
#[derive(Clone, Copy, Debug)]
struct Keyed(u64);

impl BuildHasher for Keyed {
    type Hasher = Folded;
    #[inline]
    fn build_hasher(&self) -> Folded {
        Folded(self.0 ^ 0x243F_6A88_85A3_08D3)
    }
}

/// Folded 64x64 to 128-bit multiplication: every input bit reaches every output bit.
#[derive(Clone, Copy, Debug)]
struct Folded(u64);

impl Hasher for Folded {
    #[inline]
    fn write_u64(&mut self, value: u64) {
        let product = u128::from(self.0 ^ value) * 0x9E37_79B9_7F4A_7C15;
        self.0 = (product as u64) ^ (product >> 64) as u64 ^ value.rotate_left(32);
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PacketId, Payload};
    use wire::{ip, tcp};

    #[test]
    fn a_packet_is_of_the_key_that_is_made_from_it_and_of_no_other() {
        let host = |address: &str, port| Host { address: address.parse().unwrap(), port };
        let hosts = [
            host("10.0.0.1", 80),
            host("10.0.0.1", 81),
            host("10.0.0.2", 80),
            host("::ffff:10.0.0.1", 80),
            host("fd00::1", 80),
        ];
        let pairs = hosts.iter().flat_map(|a| hosts.iter().map(|b| (*a, *b)));
        let pairs = pairs.filter(|(a, b)| a.address.is_ipv4() == b.address.is_ipv4());
        let keys: Vec<_> =
            pairs.map(|(source, destination)| FlowKey { source, destination }).collect();
        for &of in &keys {
            let ip = ip::Header::new(of.source.address, of.destination.address, Protocol::TCP);
            let tcp = tcp::Header::new(of.source.port, of.destination.port);
            let packet = Packet::tcp(PacketId::FIRST, ip, tcp, Payload::EMPTY);
            assert_eq!(FlowKey::of(&packet), Some(of));
            for key in &keys {
                assert_eq!(key.is_of(&packet), *key == of, "{key} and a packet {of}");
                assert_eq!(key.is_reverse_of(&packet), key.reversed() == of, "{key}, {of}");
            }
        }
    }
}
