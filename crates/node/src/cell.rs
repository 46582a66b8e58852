//! Several mobile hosts at one base station: who has which address, and what each of them meets.
//!
//! All share the air: toward them the base station has one drop-tail queue, in the order of arrival
//! whosever a packet is; toward it each has its own, and who has waited longest is next. Each has
//! its own errors and outages, from streams of its own; the first one's are those of a mobile host
//! that is alone.

use crate::plan::{Plan, Way};
use core::net::{IpAddr, Ipv4Addr};
use link::hop::{Hop, Peer, Sharing};
use sansio::{Packet, PacketRef, Random};

/// Most mobile hosts at one base station.
pub const MOBILES_MAX: u32 = 1024;

impl Plan {
    /// Pairs of a fixed and a mobile host.
    pub fn pairs(&self) -> u32 {
        self.triples * self.mobiles
    }

    /// One way of the last hop, which all mobile hosts of a base station share.
    pub fn shared_hop(&self, way: Way, seed: u64) -> Hop<PacketRef> {
        let (config, sharing, of, name): (_, _, fn(&PacketRef) -> usize, _) = match way {
            Way::Down => (&self.radio.down, Sharing::OneQueue, |packet| receiver(packet), "down"),
            Way::Up => (&self.radio.up, Sharing::QueueEach, |packet| sender(packet), "up"),
        };
        let peer = |mobile| Peer {
            name: format!("{mobile}.radio.{name}"),
            outage_seed: outage_seed(seed, mobile),
        };
        let peers: Vec<Peer> = (0..self.mobiles).map(peer).collect();
        Hop::shared(config, (seed, &peers), sharing, of)
    }
}

/// The seed of a mobile host's outages.
pub fn outage_seed(seed: u64, mobile: u32) -> u64 {
    match mobile {
        0 => seed,
        other => Random::new(seed, &format!("{other}.outages")).bits(),
    }
}

/// The pair to which a packet goes, or that it comes from: its number among those that share a base
/// station. Packets of others count as the first one's.
pub fn receiver(packet: &Packet) -> usize {
    pair_of(packet.ip.destination)
}

/// See [`receiver`].
pub fn sender(packet: &Packet) -> usize {
    pair_of(packet.ip.source)
}

/// Private addresses that leave room for two million pairs: of the fixed and of the mobile host.
pub(crate) fn addresses(pair: u32) -> (IpAddr, IpAddr) {
    let at =
        |network: [u8; 4]| IpAddr::V4(Ipv4Addr::from_bits(u32::from_be_bytes(network) + pair + 1));
    (at([10, 0, 0, 0]), at([10, 128, 0, 0]))
}

/// The address of the mobile host of a pair.
pub fn mobile_address(pair: u32) -> IpAddr {
    addresses(pair).1
}

fn pair_of(address: IpAddr) -> usize {
    match address {
        IpAddr::V4(address) => (address.to_bits() & HOST_BITS).saturating_sub(1) as usize,
        IpAddr::V6(_) => 0,
    }
}

/// What tells two hosts of a network apart.
const HOST_BITS: u32 = (1 << 23) - 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_tells_its_pair() {
        for pair in [0, 1, 7, MOBILES_MAX - 1, 1_000_000] {
            let (fixed, mobile) = addresses(pair);
            assert_ne!(fixed, mobile);
            assert_eq!([fixed, mobile].map(pair_of), [pair as usize; 2]);
        }
    }
}
