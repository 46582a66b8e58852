//! Multicast handoff (MCAST-1 to MCAST-19; "Improving reliable transport and handoff performance in
//! cellular wireless networks", sections 4 and 6).
//!
//! The home agent sends what is for a mobile host to a group. The base stations near the mobile
//! host are members; one forwards, the others keep the last packets. The mobile host says who does
//! what ([`mobile`]) and which packets it has, so that the new one ([`station`]) sends those that
//! are missing.
//!
//! We differ: the old base station ends only when the new one has begun (MCAST-12), and a role ends
//! by itself unless it is renewed, so that a lost message leaves no second primary for long.

pub mod mobile;
pub mod station;

use core::net::IpAddr;
use sansio::{Packet, Transport};

/// By what packets are told apart (MOD-15).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Names {
    /// By the IPv4 identification, as in the paper.
    Identification,
    /// By a digest of addresses, protocol, ports and either TCP's sequence number or the first
    /// bytes, since an identification may be the same for all today (RFC 6864).
    #[default]
    Digest,
}

/// Payload bytes in a digest (MOD-15).
const DIGEST_BYTES: u32 = 16;

/// The digest of a datagram: the same before and after a tunnel, and for the same bytes sent again.
pub fn digest(packet: &Packet) -> u64 {
    let mut hash = Fnv::default();
    for address in [packet.ip.source, packet.ip.destination] {
        match address {
            IpAddr::V4(address) => hash.add(&address.octets()),
            IpAddr::V6(address) => hash.add(&address.octets()),
        }
    }
    hash.add(&[packet.ip.protocol.0]);
    hash.add(&packet.ip.identification.to_be_bytes());
    hash.add(&packet.payload.len().to_be_bytes());
    match &packet.transport {
        Transport::Tcp(tcp) => {
            hash.add(&tcp.source_port.to_be_bytes());
            hash.add(&tcp.destination_port.to_be_bytes());
            hash.add(&tcp.seq.0.to_be_bytes());
            return hash.0;
        }
        Transport::Udp { source_port, destination_port } => {
            hash.add(&source_port.to_be_bytes());
            hash.add(&destination_port.to_be_bytes());
        }
        Transport::Opaque => {}
    }
    if !matches!(packet.payload, sansio::Payload::Tunnel(_)) {
        let start = packet.payload.slice(0, packet.payload.len().min(DIGEST_BYTES));
        hash.add(start.to_bytes().as_deref().unwrap_or_default());
    }
    hash.0
}

/// FNV-1a, 64 bits. It need not withstand an attack: whoever could choose digests has the key.
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Fnv(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}
