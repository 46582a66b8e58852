//! What a hop counts.

use crate::channel::Loss;
use sansio::Duration;

/// Counters of one hop since it was made. A packet counts as sent, and its service as busy time,
/// when its service begins; since a hop is served only when it is touched, all counters are those
/// of the last call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Packets accepted.
    pub enqueued: u64,
    /// Packets refused because their queue was full.
    pub dropped_full: u64,
    /// Packets whose service has begun.
    pub departed: u64,
    /// Their bytes: all the air carried, lost packets included.
    pub air_bytes: u64,
    /// Time spent serving packets, host cost included.
    pub busy: Duration,
    /// Packets that arrived.
    pub delivered: u64,
    /// Their bytes.
    pub delivered_bytes: u64,
    /// Most packets that waited at once, both priorities together.
    pub queue_packets_max: u32,
    /// Most bytes that waited at once, both priorities together.
    pub queue_bytes_max: u64,
    pub(crate) lost: [u64; Loss::ALL.len()],
}

impl Statistics {
    /// Packets lost to this cause.
    pub fn lost(&self, loss: Loss) -> u64 {
        self.lost[loss as usize]
    }

    /// Packets lost on the air, all causes together.
    pub fn lost_total(&self) -> u64 {
        self.lost.iter().sum()
    }
}
