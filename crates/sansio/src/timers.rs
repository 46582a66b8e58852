//! Timers: a small named table for one connection, an indexed queue for many flows.

use crate::Instant;

/// `N` timers of one engine, each armed or not. The index is the engine's own enum of timers.
#[derive(Clone, Copy, Debug)]
pub struct TimerTable<const N: usize> {
    at: [u64; N],
}

/// The value of a timer that is not armed; no run lasts 584 years.
const IDLE: u64 = u64::MAX;

impl<const N: usize> TimerTable<N> {
    /// All idle.
    pub const fn new() -> Self {
        TimerTable { at: [IDLE; N] }
    }

    /// Arms or re-arms a timer.
    #[inline]
    pub fn set(&mut self, timer: usize, at: Instant) {
        self.at[timer] = at.as_nanos();
    }

    /// Disarms a timer.
    #[inline]
    pub fn stop(&mut self, timer: usize) {
        self.at[timer] = IDLE;
    }

    /// When a timer fires, if armed.
    #[inline]
    pub fn get(&self, timer: usize) -> Option<Instant> {
        (self.at[timer] != IDLE).then(|| Instant::from_nanos(self.at[timer]))
    }

    /// True if a timer is armed.
    #[inline]
    pub fn is_armed(&self, timer: usize) -> bool {
        self.at[timer] != IDLE
    }

    /// The earliest armed timer.
    #[inline]
    pub fn next(&self) -> Option<(usize, Instant)> {
        let mut best = (0, IDLE);
        for (timer, &at) in self.at.iter().enumerate() {
            if at < best.1 {
                best = (timer, at);
            }
        }
        (best.1 != IDLE).then(|| (best.0, Instant::from_nanos(best.1)))
    }

    /// Disarms and returns the earliest timer that is due at `now`.
    #[inline]
    pub fn pop_due(&mut self, now: Instant) -> Option<usize> {
        let (timer, at) = self.next()?;
        if at > now {
            return None;
        }
        self.stop(timer);
        Some(timer)
    }
}

impl<const N: usize> Default for TimerTable<N> {
    fn default() -> Self {
        Self::new()
    }
}

/// One deadline per slot, for any number of slots, the earliest first; equal times in the order in
/// which they were set. A four-ary heap with the slots' places beside it: setting, moving and
/// clearing a slot's deadline take O(log n), asking for the earliest O(1), and nothing stale is
/// ever kept.
#[derive(Clone, Debug)]
pub struct TimerQueue {
    /// A copy of the heap's first entry, or `NONE`: asked for far more often than changed.
    first: u128,
    /// Time, then order of setting, then slot, packed so that one comparison decides.
    heap: Vec<u128>,
    /// Where each slot's entry stands in `heap`, or `ABSENT`.
    place: Vec<u32>,
    set_count: u64,
}

const ABSENT: u32 = u32::MAX;
const NONE: u128 = u128::MAX;
const ARITY: usize = 4;

impl TimerQueue {
    /// Slots are numbered from 0 up to, not including, this.
    pub const SLOTS_MAX: u32 = 1 << Self::SLOT_BITS;
    const SLOT_BITS: u32 = 24;
    const ORDER_BITS: u32 = 64 - Self::SLOT_BITS;

    /// An empty queue.
    pub fn new() -> Self {
        TimerQueue { first: NONE, heap: Vec::new(), place: Vec::new(), set_count: 0 }
    }

    /// Sets or moves the deadline of a slot.
    ///
    /// # Panics
    /// If `slot` is not below [`TimerQueue::SLOTS_MAX`].
    #[inline]
    pub fn set(&mut self, slot: u32, at: Instant) {
        assert!(slot < Self::SLOTS_MAX, "a slot is below 2^24");
        let order = self.set_count & ((1 << Self::ORDER_BITS) - 1);
        self.set_count += 1;
        let entry = u128::from(at.as_nanos()) << 64
            | u128::from(order << Self::SLOT_BITS)
            | u128::from(slot);
        let index = slot as usize;
        if index >= self.place.len() {
            self.place.resize(index + 1, ABSENT);
        }
        match self.place[index] {
            ABSENT => {
                self.heap.push(entry);
                self.sift_up(self.heap.len() - 1, entry);
            }
            place => {
                let place = place as usize;
                if entry < self.heap[place] {
                    self.sift_up(place, entry);
                } else {
                    self.sift_down(place, entry);
                }
            }
        }
    }

    /// Takes a slot's deadline away, if it has one.
    pub fn clear(&mut self, slot: u32) {
        let Some(&place) = self.place.get(slot as usize) else { return };
        if place == ABSENT {
            return;
        }
        self.place[slot as usize] = ABSENT;
        let place = place as usize;
        let Some(last) = self.heap.pop() else { return };
        if place < self.heap.len() {
            if last < self.heap[place] {
                self.sift_up(place, last);
            } else {
                self.sift_down(place, last);
            }
        } else if self.heap.is_empty() {
            self.first = NONE;
        }
    }

    /// The earliest deadline and its slot.
    #[inline]
    pub fn next(&self) -> Option<(u32, Instant)> {
        (self.first != NONE).then(|| (slot_of(self.first), instant_of(self.first)))
    }

    /// The earliest deadline.
    #[inline]
    pub fn next_at(&self) -> Option<Instant> {
        let nanos = (self.first >> 64) as u64;
        (nanos != IDLE).then(|| Instant::from_nanos(nanos))
    }

    /// When a slot is due, if it has a deadline.
    #[inline]
    pub fn get(&self, slot: u32) -> Option<Instant> {
        let place = *self.place.get(slot as usize)?;
        (place != ABSENT).then(|| instant_of(self.heap[place as usize]))
    }

    /// Removes and returns the earliest slot that is due at `now`.
    #[inline]
    pub fn pop_due(&mut self, now: Instant) -> Option<u32> {
        let (slot, at) = self.next()?;
        if at > now {
            return None;
        }
        self.clear(slot);
        Some(slot)
    }

    /// Number of slots that have a deadline.
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// True if no slot has a deadline.
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    #[inline]
    fn put(&mut self, place: usize, entry: u128) {
        if place == 0 {
            self.first = entry;
        }
        self.heap[place] = entry;
        self.place[slot_of(entry) as usize] = place as u32;
    }

    #[inline]
    fn sift_up(&mut self, mut place: usize, entry: u128) {
        while place > 0 {
            let parent = (place - 1) / ARITY;
            if self.heap[parent] <= entry {
                break;
            }
            self.put(place, self.heap[parent]);
            place = parent;
        }
        self.put(place, entry);
    }

    #[inline]
    fn sift_down(&mut self, mut place: usize, entry: u128) {
        loop {
            let first = place * ARITY + 1;
            let Some(children) = self.heap.get(first..(first + ARITY).min(self.heap.len())) else {
                break;
            };
            let mut least = (0, u128::MAX);
            for (offset, &child) in children.iter().enumerate() {
                if child < least.1 {
                    least = (offset, child);
                }
            }
            if least.1 >= entry {
                break;
            }
            self.put(place, least.1);
            place = first + least.0;
        }
        self.put(place, entry);
    }
}

impl Default for TimerQueue {
    fn default() -> Self {
        Self::new()
    }
}

#[inline]
fn slot_of(entry: u128) -> u32 {
    entry as u32 & (TimerQueue::SLOTS_MAX - 1)
}

#[inline]
fn instant_of(entry: u128) -> Instant {
    Instant::from_nanos((entry >> 64) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn at(nanos: u64) -> Instant {
        Instant::from_nanos(nanos)
    }

    #[test]
    fn equal_times_come_in_the_order_they_were_set() {
        let mut queue = TimerQueue::new();
        for slot in [5, 1, 9, 0] {
            queue.set(slot, at(10));
        }
        queue.set(1, at(10));
        let order: Vec<_> = core::iter::from_fn(|| queue.pop_due(at(10))).collect();
        assert_eq!(order, [5, 9, 0, 1]);
    }

    #[test]
    fn a_table_fires_nothing_a_nanosecond_early() {
        let mut table = TimerTable::<3>::new();
        table.set(1, at(100));
        assert_eq!(table.pop_due(at(99)), None);
        assert_eq!(table.pop_due(at(100)), Some(1));
        assert_eq!(table.next(), None);
    }

    proptest! {
        /// Differential: against a sorted map, under any mix of set, clear and pop.
        #[test]
        fn the_queue_agrees_with_a_sorted_map(
            steps in prop::collection::vec((0u32..40, 0u64..50, 0u8..4), 1..400)
        ) {
            let mut queue = TimerQueue::new();
            let mut model: BTreeMap<(u64, u64), u32> = BTreeMap::new();
            for (order, (slot, time, verb)) in steps.into_iter().enumerate() {
                match verb {
                    0 => {
                        queue.clear(slot);
                        model.retain(|_, other| *other != slot);
                    }
                    1 => {
                        let due = model.first_key_value().filter(|((at, _), _)| *at <= time);
                        let due = due.map(|(key, slot)| (*key, *slot));
                        prop_assert_eq!(queue.pop_due(at(time)), due.map(|(_, slot)| slot));
                        if let Some((key, _)) = due {
                            model.remove(&key);
                        }
                    }
                    _ => {
                        queue.set(slot, at(time));
                        model.retain(|_, other| *other != slot);
                        model.insert((time, order as u64), slot);
                    }
                }
                let expected = model.first_key_value().map(|((time, _), slot)| (*slot, at(*time)));
                prop_assert_eq!(queue.next(), expected);
                prop_assert_eq!(queue.len(), model.len());
            }
        }
    }
}
