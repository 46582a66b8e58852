//! Which link-layer address leads to which host: learned from the frames that arrive.
//!
//! A frame from a host tells its address, or that of the router it came through, which is also the
//! way back as long as routes are symmetric; where they are not, the configuration says it.
//! Whoever is not known is reached through the kernel's own routing.

use std::collections::BTreeMap;
use std::net::IpAddr;
use wire::ethernet::Mac;

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

    /// Forgets what was learned: the devices are others.
    pub fn forget_learned(&mut self) {
        self.learned.clear();
    }

    /// The next hop toward a host.
    #[inline]
    pub fn find(&self, host: IpAddr) -> Option<Mac> {
        self.configured.get(&host).or_else(|| self.learned.get(&host)).copied()
    }
}
