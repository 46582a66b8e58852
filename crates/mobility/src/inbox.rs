//! What every receiver of handoff messages checks before it reads one (MOD-10): that it is meant
//! for this node, comes from whom it says, is proved by the key of the mobile host it is about, and
//! is new.
//!
//! Clocks have to agree within the tolerance. A mobile host's is set by its registrations; those of
//! base stations by whatever sets the clocks of machines.

use crate::Keys;
use crate::clock::{Guard, NotTaken};
use crate::post::{self, v4};
use crate::refusal::Refusal;
use core::net::Ipv4Addr;
use sansio::{Duration, Packet};
use std::collections::BTreeMap;
use wire::control::{Envelope, Message, PORT};

/// The checks of one node.
#[derive(Clone, Debug)]
pub struct Inbox {
    own: Ipv4Addr,
    keys: Keys,
    tolerance: Duration,
    /// The last time taken of each sender about each mobile host.
    guards: BTreeMap<(Ipv4Addr, Ipv4Addr), Guard>,
    guards_max: usize,
}

impl Inbox {
    /// Pairs of mobile host and sender that are remembered, at most.
    pub const GUARDS_MAX: usize = 10_000;

    /// For the node with this address.
    pub fn new(own: Ipv4Addr, keys: Keys) -> Self {
        let (tolerance, guards_max) = (Guard::TOLERANCE, Self::GUARDS_MAX);
        Inbox { own, keys, tolerance, guards: BTreeMap::new(), guards_max }
    }

    /// The address of the node.
    pub fn own(&self) -> Ipv4Addr {
        self.own
    }

    /// The keys of all mobile hosts.
    pub fn keys(&self) -> &Keys {
        &self.keys
    }

    /// The message in a packet; `None` if it is no datagram for handoff messages. `own_time` is
    /// what this node's clock shows.
    pub fn open(&mut self, packet: &Packet, own_time: u64) -> Option<Result<Message, Refusal>> {
        let bytes = post::udp_to(packet, PORT)?;
        Some(self.read(packet, &bytes, own_time))
    }

    fn read(&mut self, packet: &Packet, bytes: &[u8], own_time: u64) -> Result<Message, Refusal> {
        let envelope = Envelope::parse(bytes).map_err(|_| Refusal::Malformed)?;
        let header = envelope.header;
        let is_from = v4(packet.ip.source) == Some(header.sender) && header.sender != self.own;
        if header.receiver != self.own || !is_from {
            return Err(Refusal::Misdirected);
        }
        let key = self.keys.get(&header.mobile).ok_or(Refusal::UnknownMobile)?;
        let message = envelope.open(key).map_err(|error| match error {
            wire::Error::SecurityIndex { .. } | wire::Error::Authenticator { .. } => {
                Refusal::NotProved
            }
            _ => Refusal::Malformed,
        })?;
        let pair = (header.mobile, header.sender);
        if self.guards.len() >= self.guards_max && !self.guards.contains_key(&pair) {
            let tolerance = self.tolerance;
            self.guards.retain(|_, guard| !guard.is_past(own_time, tolerance));
            if self.guards.len() >= self.guards_max {
                return Err(Refusal::Full);
            }
        }
        let guard = self.guards.entry(pair).or_default();
        guard.take(header.sent_at, own_time, self.tolerance).map_err(|why| match why {
            NotTaken::NotLater => Refusal::Replayed,
            NotTaken::TooFar => Refusal::Clock,
        })?;
        Ok(message)
    }
}
