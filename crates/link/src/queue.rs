//! Two drop-tail queues, the high one served first (SNOOP-ACK-10): one line in which packets of
//! high priority stand before all others.
//!
//! A limit counts the packets that wait, not the one that is being sent, as Linux's `pfifo` and
//! `bfifo` do (net/sched/sch_fifo.c). ns-2's `DropTail` with limit n is `Packets(n - 1)` here. The
//! high queue has a limit of its own, so that a local retransmission is never turned away by a
//! queue full of the very packets it must overtake.

use sansio::{Instant, Priority};
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
    pub(crate) fn holds(self, load: Load) -> bool {
        match self {
            Limit::Packets(packets_max) => load.packets <= packets_max,
            Limit::Bytes(bytes_max) => load.bytes <= bytes_max,
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
    normal: Limit,
    high: Limit,
    /// None has waited yet: an allocation apart, since at most hops of a path none ever does.
    line: Option<Box<Line<T>>>,
}

/// What waits, and what waited.
#[derive(Clone, Debug)]
struct Line<T> {
    /// Those of high priority first.
    packets: VecDeque<Waiting<T>>,
    high: Load,
    normal: Load,
    /// When a packet was queued where none was before.
    waits_since: Instant,
    most: Load,
    refused: u64,
}

/// Packets, and their bytes together.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Load {
    pub(crate) packets: u32,
    pub(crate) bytes: u64,
}

impl Load {
    /// With a packet of so many bytes.
    #[inline]
    pub(crate) fn and(self, bytes: u32) -> Load {
        Load { packets: self.packets + 1, bytes: self.bytes + u64::from(bytes) }
    }

    /// The larger of both, in each respect.
    #[inline]
    pub(crate) fn most(self, other: Load) -> Load {
        Load { packets: self.packets.max(other.packets), bytes: self.bytes.max(other.bytes) }
    }
}

impl<T> Queue<T> {
    pub(crate) fn new(normal: Limit, high: Limit) -> Self {
        Queue { normal, high, line: None }
    }

    /// Puts a packet at the end of its queue, or gives it back if there is no room.
    #[inline]
    pub(crate) fn push(
        &mut self,
        waiting: Waiting<T>,
        priority: Priority,
        now: Instant,
    ) -> Result<(), T> {
        let limit = match priority {
            Priority::High => self.high,
            Priority::Normal => self.normal,
        };
        let line = self.line.get_or_insert_with(|| Box::new(Line::new()));
        line.push(waiting, (priority, limit), now)
    }

    /// Length in bytes of the packet that is next on air.
    #[inline]
    pub(crate) fn next_bytes(&self) -> Option<u32> {
        self.line.as_ref()?.packets.front().map(|waiting| waiting.bytes)
    }

    /// Takes the packet that is next on air.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Waiting<T>> {
        let line = self.line.as_mut()?;
        let waiting = line.packets.pop_front()?;
        let load = if line.high.packets > 0 { &mut line.high } else { &mut line.normal };
        load.packets -= 1;
        load.bytes -= u64::from(waiting.bytes);
        Some(waiting)
    }

    #[inline]
    pub(crate) fn bytes(&self) -> u64 {
        self.line.as_ref().map_or(0, |line| line.load().bytes)
    }

    /// When the first packet was queued of those that wait, or waited last.
    pub(crate) fn waits_since(&self) -> Instant {
        self.line.as_ref().map_or(Instant::ZERO, |line| line.waits_since)
    }

    /// Most packets, and most bytes, that waited at once, both priorities together.
    pub(crate) fn most(&self) -> Load {
        self.line.as_ref().map_or(Load::default(), |line| line.most)
    }

    /// Packets given back.
    pub(crate) fn refused(&self) -> u64 {
        self.line.as_ref().map_or(0, |line| line.refused)
    }
}

impl<T> Line<T> {
    fn new() -> Self {
        Line {
            packets: VecDeque::new(),
            high: Load::default(),
            normal: Load::default(),
            waits_since: Instant::ZERO,
            most: Load::default(),
            refused: 0,
        }
    }

    #[inline]
    fn push(
        &mut self,
        waiting: Waiting<T>,
        (priority, limit): (Priority, Limit),
        now: Instant,
    ) -> Result<(), T> {
        let load = match priority {
            Priority::High => &mut self.high,
            Priority::Normal => &mut self.normal,
        };
        let with_it = load.and(waiting.bytes);
        if !limit.holds(with_it) {
            self.refused += 1;
            return Err(waiting.item);
        }
        *load = with_it;
        if self.packets.is_empty() {
            self.waits_since = now;
        }
        match priority {
            Priority::Normal => self.packets.push_back(waiting),
            // Few are ahead of it, and only those are moved.
            Priority::High => self.packets.insert(self.high.packets as usize - 1, waiting),
        }
        self.most = self.most.most(self.load());
        Ok(())
    }

    /// Both priorities together.
    #[inline]
    fn load(&self) -> Load {
        let (high, normal) = (self.high, self.normal);
        Load { packets: high.packets + normal.packets, bytes: high.bytes + normal.bytes }
    }
}
