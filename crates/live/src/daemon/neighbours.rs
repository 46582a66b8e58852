//! How packets go on from here: to the next hop of a router, or as a bridge has seen it.
//!
//! A router's next hops are learned from the frames that arrive. A frame from a host tells its
//! address, or that of the router it came through, which is also the way back as long as routes are
//! symmetric; where they are not, the configuration says it. Whoever is not known is reached
//! through the kernel's own routing.

use super::bridged::{Bridged, Filtering};
use crate::frame::{Link, Onward, Virtio};
use sansio::{Instant, Packet, Side};
use std::collections::BTreeMap;
use std::net::IpAddr;
use wire::ethernet::Mac;

/// The ways on.
#[derive(Clone, Debug)]
pub enum Ways {
    /// A router's.
    Router(Neighbours),
    /// A bridge's.
    Bridge(Bridged),
}

/// How one packet goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// In a frame.
    Known(Onward),
    /// Only the kernel's routing knows.
    Kernel,
    /// Nobody knows.
    Unknown,
}

impl Ways {
    /// Takes note of where a packet came from; returns what a bridge does with it.
    #[inline]
    pub fn learn(&mut self, side: Side, link: Link, packet: &Packet, now: Instant) -> Filtering {
        match self {
            Ways::Router(neighbours) => {
                neighbours.learn(packet.ip.source, link.source);
                Filtering::Passes
            }
            Ways::Bridge(bridged) => {
                let hosts = (packet.ip.source, packet.ip.destination);
                bridged.learn(side, link, hosts, now)
            }
        }
    }

    /// True if the kernel's bridge is to be told that a frame of this station was taken from it.
    #[inline]
    pub fn is_to_be_told(&mut self, station: Mac, now: Instant) -> bool {
        match self {
            Ways::Router(_) => false,
            Ways::Bridge(bridged) => bridged.is_to_be_told(station, now),
        }
    }

    /// The way of a packet that leaves by the device with this address.
    #[inline]
    pub fn of(&mut self, packet: &Packet, device: Mac) -> Way {
        match self {
            Ways::Router(neighbours) => match neighbours.find(packet.ip.destination) {
                Some(destination) => {
                    Way::Known(Onward::Routed(Link { destination, source: device }))
                }
                None => Way::Kernel,
            },
            Ways::Bridge(bridged) => {
                let own = packet
                    .frame
                    .as_ref()
                    .and_then(|frame| Link::of(frame.bytes.get(Virtio::BYTES..)?));
                let link = own.or_else(|| bridged.link(packet.ip.source, packet.ip.destination));
                link.map_or(Way::Unknown, |link| Way::Known(Onward::Bridged(link)))
            }
        }
    }
}

/// Next hops by address of the host.
#[derive(Clone, Debug, Default)]
pub struct Neighbours {
    configured: BTreeMap<IpAddr, Mac>,
    learned: BTreeMap<IpAddr, Mac>,
}

impl Neighbours {
    /// Learned hosts at most; further ones are left to the kernel's routing.
    pub const LEARNED_MAX: usize = 1 << 16;

    /// Nobody but these, which no frame changes.
    pub fn configured(hosts: impl IntoIterator<Item = (IpAddr, Mac)>) -> Self {
        Neighbours { configured: hosts.into_iter().collect(), learned: BTreeMap::new() }
    }

    /// Takes note that a frame from this host came from there.
    #[inline]
    pub fn learn(&mut self, host: IpAddr, from: Mac) {
        let room = self.learned.len() < Self::LEARNED_MAX && !from.is_multicast();
        match self.learned.get_mut(&host) {
            Some(known) => *known = from,
            None if room => {
                self.learned.insert(host, from);
            }
            None => {}
        }
    }

    /// The next hop toward a host.
    #[inline]
    pub fn find(&self, host: IpAddr) -> Option<Mac> {
        self.configured.get(&host).or_else(|| self.learned.get(&host)).copied()
    }
}
