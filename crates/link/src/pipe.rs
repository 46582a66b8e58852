//! Packets under way: sent, or being sent, and not yet arrived.

use crate::channel::Loss;
use sansio::Instant;
use std::collections::VecDeque;

/// A packet under way and what will become of it.
#[derive(Clone, Debug)]
pub(crate) struct UnderWay<T> {
    /// When it arrives, or would have arrived.
    pub(crate) at: Instant,
    pub(crate) bytes: u32,
    pub(crate) loss: Option<Loss>,
    pub(crate) item: T,
}

/// Packets under way in the order of their arrival; equal times in the order of sending.
#[derive(Clone, Debug)]
pub(crate) struct Pipe<T>(VecDeque<UnderWay<T>>);

impl<T> Pipe<T> {
    pub(crate) fn new() -> Self {
        Pipe(VecDeque::new())
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// When the next packet arrives.
    #[inline]
    pub(crate) fn next_at(&self) -> Option<Instant> {
        self.0.front().map(|head| head.at)
    }

    /// Puts a packet on its way. Only a channel that reorders makes one overtake others, and then
    /// it passes the few that are being repeated.
    #[inline]
    pub(crate) fn push(&mut self, packet: UnderWay<T>) {
        match self.0.back() {
            Some(last) if last.at > packet.at => self.overtake(packet),
            _ => self.0.push_back(packet),
        }
    }

    #[cold]
    fn overtake(&mut self, packet: UnderWay<T>) {
        let place = self.0.partition_point(|other| other.at <= packet.at);
        self.0.insert(place, packet);
    }

    /// The next packet, if it is due at `now`.
    #[inline]
    pub(crate) fn pop_due(&mut self, now: Instant) -> Option<UnderWay<T>> {
        if self.next_at()? > now {
            return None;
        }
        self.0.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_come_in_the_order_of_arrival_and_of_sending_where_that_is_equal() {
        let mut pipe = Pipe::new();
        for (at, item) in [(10, 'a'), (30, 'b'), (20, 'c'), (20, 'd'), (30, 'e')] {
            pipe.push(UnderWay { at: Instant::from_nanos(at), bytes: 1, loss: None, item });
        }
        assert_eq!(pipe.pop_due(Instant::from_nanos(9)).map(|packet| packet.item), None);
        let order: String = std::iter::from_fn(|| pipe.pop_due(Instant::from_nanos(30)))
            .map(|packet| packet.item)
            .collect();
        assert_eq!(order, "acdbe");
    }
}
