//! What waits in the last hop, and for how long; see the [definition](super) of queue delay.

use super::{Idle, QueueDelay};
use sansio::{Duration, Instant, Packet, PacketId};
use std::collections::VecDeque;

/// Packets with payload in the last hops of a run.
#[derive(Clone, Debug)]
pub(super) struct LastHop {
    /// When it is idle, toward the mobile host and back; nothing is measured without.
    pub(super) idle: Option<[Idle; 2]>,
    /// In the order in which they entered, which is almost that in which they leave: since when,
    /// and what they would take if it were idle. As many lists as there are base stations, or a
    /// little more, and each packet in that of its identity.
    inside: Vec<VecDeque<(PacketId, Instant, Duration)>>,
    delays: Vec<Duration>,
}

impl LastHop {
    /// Of so many base stations.
    pub(super) fn new(stations: usize) -> Self {
        let lists = stations.max(1).next_power_of_two();
        LastHop { idle: None, inside: vec![VecDeque::new(); lists], delays: Vec::new() }
    }

    fn list(&mut self, id: PacketId) -> &mut VecDeque<(PacketId, Instant, Duration)> {
        let mask = self.inside.len() as u64 - 1;
        &mut self.inside[(id.0.get() & mask) as usize]
    }

    /// It is put into the queue.
    pub(super) fn enter(&mut self, packet: &Packet, is_down: bool, now: Instant) {
        let Some([down, up]) = self.idle.filter(|_| !packet.payload.is_empty()) else { return };
        let idle = if is_down { down } else { up };
        let alone = idle.rate.time_for(packet.bytes()) + idle.fixed;
        self.list(packet.id).push_back((packet.id, now, alone));
    }

    /// It arrived, or was lost on the air.
    pub(super) fn leave(&mut self, packet: &Packet, now: Instant) {
        let inside = self.list(packet.id);
        let place = inside.iter().position(|(id, ..)| *id == packet.id);
        if let Some((_, since, alone)) = place.and_then(|place| inside.remove(place)) {
            self.delays.push(now.since(since).saturating_sub(alone));
        }
    }

    /// The queue was full. It is the last that entered.
    pub(super) fn refuse(&mut self, packet: &Packet) {
        let inside = self.list(packet.id);
        if inside.back().is_some_and(|(id, ..)| *id == packet.id) {
            inside.pop_back();
        }
    }

    pub(super) fn finish(&mut self) -> Option<QueueDelay> {
        let mut quantile = |percent: usize| {
            let last = self.delays.len().checked_sub(1)?;
            let place = (last * percent).div_ceil(100);
            Some(*self.delays.select_nth_unstable(place).1)
        };
        let pair = quantile(50).zip(quantile(99));
        pair.map(|(p50, p99)| QueueDelay { p50, p99 })
    }
}
