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
///
/// Most hops have one at a time, which is kept in place: the others are an allocation away.
#[derive(Clone, Debug)]
#[repr(C)]
pub(crate) struct Pipe<T> {
    /// The next packet.
    first: Option<UnderWay<T>>,
    /// How many follow it, so that nobody looks there in vain.
    others: usize,
    #[expect(clippy::box_collection, reason = "a hop has better use for the room beside it")]
    rest: Option<Box<VecDeque<UnderWay<T>>>>,
}

impl<T> Pipe<T> {
    pub(crate) fn new() -> Self {
        Pipe { first: None, others: 0, rest: None }
    }

    pub(crate) fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.others
    }

    /// When the next packet arrives.
    #[inline]
    pub(crate) fn next_at(&self) -> Option<Instant> {
        self.first.as_ref().map(|first| first.at)
    }

    /// Puts a packet on its way, which `loss` says will be lost.
    #[inline]
    pub(crate) fn push(&mut self, at: Instant, bytes: u32, loss: Option<Loss>, item: T) {
        // Made where it stays, not before: a copy would have to wait for what was just stored.
        match self.first {
            None => self.first = Some(UnderWay { at, bytes, loss, item }),
            Some(_) => self.push_behind(UnderWay { at, bytes, loss, item }),
        }
    }

    /// Only a channel that reorders makes a packet overtake others, and then it passes the few that
    /// are being repeated.
    #[inline(never)]
    fn push_behind(&mut self, packet: UnderWay<T>) {
        let Some(first) = &mut self.first else { return };
        self.others += 1;
        let rest = self.rest.get_or_insert_default();
        if packet.at < first.at {
            rest.push_front(core::mem::replace(first, packet));
            return;
        }
        match rest.back() {
            Some(last) if last.at > packet.at => overtake(rest, packet),
            _ => rest.push_back(packet),
        }
    }

    /// The next packet, if it is due at `now`.
    #[inline]
    pub(crate) fn pop_due(&mut self, now: Instant) -> Option<UnderWay<T>> {
        if self.next_at()? > now {
            return None;
        }
        if self.others == 0 {
            return self.first.take();
        }
        self.others -= 1;
        let next = self.rest.as_mut().and_then(|rest| rest.pop_front());
        core::mem::replace(&mut self.first, next)
    }
}

#[cold]
fn overtake<T>(rest: &mut VecDeque<UnderWay<T>>, packet: UnderWay<T>) {
    let place = rest.partition_point(|other| other.at <= packet.at);
    rest.insert(place, packet);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_come_in_the_order_of_arrival_and_of_sending_where_that_is_equal() {
        let mut pipe = Pipe::new();
        let sent = [(20, 'c'), (20, 'd'), (10, 'a'), (10, 'b'), (30, 'f'), (20, 'e'), (30, 'g')];
        for (at, item) in sent {
            pipe.push(Instant::from_nanos(at), 1, None, item);
        }
        assert_eq!(pipe.pop_due(Instant::from_nanos(9)).map(|packet| packet.item), None);
        let order: String = std::iter::from_fn(|| pipe.pop_due(Instant::from_nanos(30)))
            .map(|packet| packet.item)
            .collect();
        assert_eq!(order, "abcdefg");
        assert_eq!(pipe.len(), 0);
    }
}
