//! Two drop-tail queues, the high one served first (SNOOP-ACK-10).
//!
//! A limit counts the packets that wait, not the one that is being sent, as Linux's `pfifo` and
//! `bfifo` do (net/sched/sch_fifo.c). ns-2's `DropTail` with limit n is `Packets(n - 1)` here. The
//! high queue has a limit of its own, so that a local retransmission is never turned away by a
//! queue full of the very packets it must overtake.

use sansio::Priority;
use std::collections::VecDeque;

/// How much a queue holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// This many packets.
    Packets(u32),
    /// Packets of this many bytes together.
    Bytes(u64),
}

impl Limit {
    /// True if so many packets, of so many bytes together, are not too many.
    #[inline]
    pub(crate) fn holds(self, packets: usize, bytes: u64) -> bool {
        match self {
            Limit::Packets(packets_max) => packets <= packets_max as usize,
            Limit::Bytes(bytes_max) => bytes <= bytes_max,
        }
    }
}

/// A packet that waits.
#[derive(Clone, Debug)]
pub(crate) struct Waiting<T> {
    pub(crate) item: T,
    pub(crate) bytes: u32,
}

/// Both queues of a hop.
#[derive(Clone, Debug)]
pub(crate) struct Queue<T> {
    high: Lane<T>,
    normal: Lane<T>,
}

impl<T> Queue<T> {
    pub(crate) fn new(normal: Limit, high: Limit) -> Self {
        Queue { high: Lane::new(high), normal: Lane::new(normal) }
    }

    /// Puts a packet at the end of its queue, or gives it back if there is no room.
    #[inline]
    pub(crate) fn push(&mut self, waiting: Waiting<T>, priority: Priority) -> Result<(), T> {
        match priority {
            Priority::High => self.high.push(waiting),
            Priority::Normal => self.normal.push(waiting),
        }
    }

    /// Length in bytes of the packet that is next on air.
    #[inline]
    pub(crate) fn next_bytes(&self) -> Option<u32> {
        let lane = if self.high.packets.is_empty() { &self.normal } else { &self.high };
        lane.packets.front().map(|waiting| waiting.bytes)
    }

    /// Takes the packet that is next on air.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Waiting<T>> {
        let lane = if self.high.packets.is_empty() { &mut self.normal } else { &mut self.high };
        lane.pop()
    }

    #[inline]
    pub(crate) fn bytes(&self) -> u64 {
        self.normal.bytes + self.high.bytes
    }
}

#[derive(Clone, Debug)]
struct Lane<T> {
    packets: VecDeque<Waiting<T>>,
    bytes: u64,
    limit: Limit,
}

impl<T> Lane<T> {
    fn new(limit: Limit) -> Self {
        Lane { packets: VecDeque::new(), bytes: 0, limit }
    }

    #[inline]
    fn push(&mut self, waiting: Waiting<T>) -> Result<(), T> {
        let bytes = self.bytes + u64::from(waiting.bytes);
        if !self.limit.holds(self.packets.len() + 1, bytes) {
            return Err(waiting.item);
        }
        self.bytes = bytes;
        self.packets.push_back(waiting);
        Ok(())
    }

    #[inline]
    fn pop(&mut self) -> Option<Waiting<T>> {
        let waiting = self.packets.pop_front()?;
        self.bytes -= u64::from(waiting.bytes);
        Some(waiting)
    }
}
