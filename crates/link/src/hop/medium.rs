//! Stations of several cells on one channel: while one sends, all others wait.
//!
//! As between the two of [`super::half_duplex`], whoever has waited longest for the air sends one
//! packet whenever it becomes free, so that stations that always have something to send take turns.
//! A station may have several hops, to several receivers: its packets go in the order in which they
//! came, as from a device with one queue.
//!
//! ```text
//!   old base station ──old──▶│      │──old──▶│
//!   new base station         │─new─▶│        │─new─▶
//! ```
//!
//! Drivers call [`Medium::settle`] before each call of one of the hops; then no hop decides alone.

use super::Hop;
use sansio::Instant;
use std::collections::VecDeque;

/// One channel, and who shares it.
#[derive(Clone, Debug)]
pub struct Medium {
    stations: Vec<Station>,
    free_at: Instant,
}

#[derive(Clone, Debug)]
struct Station {
    /// The places of its hops among all, and how many packets waited there last.
    hops: Vec<(usize, u32)>,
    /// Where its packets wait, in the order in which they came.
    order: VecDeque<usize>,
    /// The end of its last transmission.
    sent_until: Instant,
}

impl Medium {
    /// For these stations, each with the places of its hops among those that [`Medium::settle`] is
    /// given. Who waited equally long goes in this order.
    pub fn new(stations: impl IntoIterator<Item = Vec<usize>>) -> Self {
        let station = |hops: Vec<usize>| Station {
            hops: hops.into_iter().map(|hop| (hop, 0)).collect(),
            order: VecDeque::new(),
            sent_until: Instant::ZERO,
        };
        let stations = stations.into_iter().map(station).collect();
        Medium { stations, free_at: Instant::ZERO }
    }

    /// Serves all hops of this channel up to `now`. Call it before any call of one of them, with
    /// that call's `now`.
    pub fn settle<T: Clone, H: AsMut<Hop<T>>>(&mut self, hops: &mut [H], now: Instant) {
        // All were free at the same instant when this was called last; what one has sent since, it
        // sent because nobody waited.
        let was_free_at = self.free_at;
        for station in &mut self.stations {
            station.notice(hops, was_free_at);
            self.free_at = self.free_at.max(station.sent_until);
        }
        while self.free_at <= now {
            let waiting = self.stations.iter_mut().filter(|one| !one.order.is_empty());
            let Some(next) = waiting.min_by_key(|one| one.contends_since(hops)) else { break };
            self.free_at = next.send(hops, self.free_at);
        }
        for (hop, waited) in self.stations.iter_mut().flat_map(|one| &mut one.hops) {
            let hop = hops[*hop].as_mut();
            hop.free_at = self.free_at;
            *waited = hop.waiting;
        }
    }
}

impl Station {
    /// What came, and what was sent, since the channel was said to be free at that instant.
    fn notice<T: Clone, H: AsMut<Hop<T>>>(&mut self, hops: &mut [H], was_free_at: Instant) {
        for (place, waited) in &self.hops {
            let hop = hops[*place].as_mut();
            if hop.free_at > was_free_at {
                self.sent_until = hop.free_at;
            }
            self.order.extend((*waited..hop.waiting).map(|_| *place));
        }
    }

    /// Since when it wants the air.
    fn contends_since<T: Clone, H: AsMut<Hop<T>>>(&self, hops: &mut [H]) -> Instant {
        let first = self.order.front().map(|hop| hops[*hop].as_mut().queue.waits_since());
        first.unwrap_or(self.sent_until).max(self.sent_until)
    }

    /// Sends its next packet and returns when the air is free again; or until when it has to wait.
    fn send<T: Clone, H: AsMut<Hop<T>>>(&mut self, hops: &mut [H], start: Instant) -> Instant {
        let hop = self.order[0];
        match hops[hop].as_mut().send_next(start) {
            Ok(free_at) => {
                self.order.pop_front();
                self.sent_until = free_at;
                free_at
            }
            Err(until) => until,
        }
    }
}

impl<T> AsMut<Hop<T>> for Hop<T> {
    fn as_mut(&mut self) -> &mut Hop<T> {
        self
    }
}
