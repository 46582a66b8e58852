//! The kernel's event queue: the earliest first, equal times in the order of setting.
//!
//! ```text
//!            now        horizon                                    window's end
//!   time ─────┼────────────┼──────┬──────┬──────┬── … ──┬──────┬──────┼──────────────▶
//!              run and heap  buckets of 33 us, unsorted lists           beyond: heap
//! ```
//!
//! With many flows a heap of all entries is too large for the processor's nearest cache, and each
//! step down is a miss. So only what is due soon is sorted: later entries wait in lists, one for
//! each span of time, until the horizon passes them. A list is then sorted at once, which takes
//! far less than a heap would, most of all where flows run in step and it is in order already; what
//! is added before the horizon meanwhile is in a small heap. A queue of few entries is all heap.
//! The order is that of the keys, whatever waits where.
//!
//! Entries are never moved by their owner: who changes his mind sets another one, remembers its
//! time, and passes over the old one when it comes ([`crate::kernel`] keeps those times).

mod heap;
mod ring;

use heap::Heap;
use ring::Ring;
use sansio::Instant;

/// Time, then order of setting, then slot.
type Key = u128;

const SLOT_BITS: u32 = 24;
const ORDER_BITS: u32 = 64 - SLOT_BITS;
/// Fewer entries than these are all in the near heap: it stays in the nearest cache.
const FEW: usize = 64;

#[inline]
fn nanos(key: Key) -> u64 {
    (key >> 64) as u64
}

/// Events by time. A slot says whose it is.
#[derive(Clone, Debug)]
pub(crate) struct EventQueue {
    /// Entries of spans that the horizon has passed, the last one first.
    run: Vec<Key>,
    /// The other entries before the horizon; all entries if there are few.
    near: Heap,
    /// Entries from the horizon to the window's end, by spans of time.
    ring: Ring,
    /// Later ones.
    beyond: Heap,
    /// Entries in the ring and beyond it.
    waiting: usize,
    set_count: u64,
}

impl EventQueue {
    /// Slots are below this.
    pub(crate) const SLOTS_MAX: u32 = 1 << SLOT_BITS;

    pub(crate) fn new() -> Self {
        let (near, beyond) = (Heap::new(), Heap::new());
        EventQueue { run: Vec::new(), near, ring: Ring::new(), beyond, waiting: 0, set_count: 0 }
    }

    /// The earliest entry.
    #[inline]
    pub(crate) fn first(&mut self) -> Option<(u32, Instant)> {
        let mut first = self.least();
        while self.waiting > 0 && first.is_none_or(|key| nanos(key) >= self.ring.horizon()) {
            self.advance();
            first = self.least();
        }
        let key = first?;
        Some((key as u32 & (Self::SLOTS_MAX - 1), Instant::from_nanos(nanos(key))))
    }

    /// Takes the earliest entry, the one that [`EventQueue::first`] just named, away.
    #[inline]
    pub(crate) fn take_first(&mut self) {
        match self.run.last() {
            Some(key) if self.near.first().is_none_or(|near| *key < near) => {
                self.run.pop();
            }
            _ => self.near.take_first(),
        }
    }

    /// The least key of those that are sorted.
    #[inline]
    fn least(&mut self) -> Option<Key> {
        let near = self.near.first();
        match self.run.last() {
            Some(key) => Some(near.map_or(*key, |near| near.min(*key))),
            None => near,
        }
    }

    /// Adds an entry.
    #[inline]
    pub(crate) fn add(&mut self, slot: u32, at: Instant) {
        debug_assert!(slot < Self::SLOTS_MAX, "a slot is below 2^24");
        let order = self.set_count & ((1 << ORDER_BITS) - 1);
        self.set_count += 1;
        let key = Key::from(at.as_nanos()) << 64 | Key::from(order << SLOT_BITS) | Key::from(slot);
        let length = self.near.len() + self.run.len() + self.waiting;
        if length < FEW || nanos(key) < self.ring.horizon() {
            return self.near.add(key);
        }
        self.waiting += 1;
        if !self.ring.add(key) {
            self.beyond.add(key);
        }
    }

    /// Moves the horizon past the next span that holds entries, and sorts those.
    fn advance(&mut self) {
        let beyond = self.beyond.first().map(|key| Ring::span(nanos(key)));
        let Some(span) = self.ring.next_span().into_iter().chain(beyond).min() else { return };
        let before = self.run.len();
        self.ring.pass(span, |key| self.run.push(key));
        while let Some(key) = self.beyond.first().filter(|key| Ring::span(nanos(*key)) <= span) {
            self.beyond.take_first();
            self.run.push(key);
        }
        self.waiting -= self.run.len() - before;
        self.run.sort_unstable_by(|a, b| b.cmp(a));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// Times close together, within the ring, and far beyond it.
    fn time() -> impl Strategy<Value = u64> {
        prop_oneof![0u64..50, 0u64..40_000_000, 0u64..2_000_000_000, 0u64..1 << 50]
    }

    proptest! {
        /// Differential: against a sorted set, under any mix of the verbs, as a kernel uses them:
        /// nothing is set for a time before the last one taken.
        #[test]
        fn the_queue_agrees_with_a_sorted_set(
            steps in prop::collection::vec((0u32..40, time(), 0u8..5), 1..2000)
        ) {
            let mut queue = EventQueue::new();
            let mut model: BTreeSet<(u64, usize, u32)> = BTreeSet::new();
            let mut now = 0;
            for (order, (slot, time, verb)) in steps.into_iter().enumerate() {
                if verb < 2 && let Some((taken, _, _)) = model.pop_first() {
                    now = taken;
                    prop_assert!(queue.first().is_some());
                    queue.take_first();
                }
                if verb > 0 {
                    model.insert((now + time, order, slot));
                    queue.add(slot, Instant::from_nanos(now + time));
                }
                if verb != 3 {
                    let first = model.first();
                    let first = first.map(|(time, _, slot)| (*slot, Instant::from_nanos(*time)));
                    prop_assert_eq!(queue.first(), first);
                }
            }
            while let Some((time, _, slot)) = model.pop_first() {
                prop_assert_eq!(queue.first(), Some((slot, Instant::from_nanos(time))));
                queue.take_first();
            }
            prop_assert_eq!(queue.first(), None);
        }
    }
}
