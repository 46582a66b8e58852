//! The kernel's event queue: the earliest first, equal times in the order of setting.
//!
//! A four-ary heap of packed keys whose groups of children lie in one cache line each. Entries are
//! never moved by their owner: who changes his mind sets another one, remembers its time, and
//! passes over the old one when it comes ([`crate::kernel`] keeps those times). Compared with the
//! indexed `sansio::TimerQueue` this saves writing every entry's place. Whoever handles an event
//! usually sets another one: the first entry that is added after one was taken goes into its place
//! and sinks from there, which costs half of a removal and an addition.

use sansio::Instant;

/// Time, then order of setting, then slot.
type Key = u128;

/// Four siblings, one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Group([Key; 4]);

/// Events by time. A slot says whose it is.
#[derive(Clone, Debug)]
pub(crate) struct EventQueue {
    first: Key,
    /// The first entry was taken and its place not filled yet.
    vacant: bool,
    /// Group g holds the children of node g; node 0 is `first`, node n > 0 is the key
    /// (n - 1) % 4 of group (n - 1) / 4. Places beyond the last are [`EMPTY`].
    groups: Vec<Group>,
    /// Places in use, a vacant one included.
    length: usize,
    set_count: u64,
}

const EMPTY: Key = Key::MAX;
const SLOT_BITS: u32 = 24;
const ORDER_BITS: u32 = 64 - SLOT_BITS;

impl EventQueue {
    /// Slots are below this.
    pub(crate) const SLOTS_MAX: u32 = 1 << SLOT_BITS;

    pub(crate) fn new() -> Self {
        EventQueue { first: EMPTY, vacant: false, groups: Vec::new(), length: 0, set_count: 0 }
    }

    /// The earliest entry.
    #[inline]
    pub(crate) fn first(&mut self) -> Option<(u32, Instant)> {
        if self.vacant {
            self.close_up();
        }
        let key = self.first;
        let slot = key as u32 & (Self::SLOTS_MAX - 1);
        (self.length > 0).then(|| (slot, Instant::from_nanos((key >> 64) as u64)))
    }

    /// Takes the earliest entry, the one that [`EventQueue::first`] just named, away.
    #[inline]
    pub(crate) fn take_first(&mut self) {
        debug_assert!(self.length > 0 && !self.vacant, "there is a first entry");
        self.vacant = true;
    }

    /// Adds an entry.
    #[inline]
    pub(crate) fn add(&mut self, slot: u32, at: Instant) {
        let key = self.key(slot, at);
        if self.vacant {
            self.vacant = false;
            self.sink(key);
        } else {
            self.rise(key);
        }
    }

    /// Puts a key at the end and lets it rise to its place.
    fn rise(&mut self, key: Key) {
        let mut node = self.length;
        self.length += 1;
        if node > 0 && (node - 1) / 4 == self.groups.len() {
            self.groups.push(Group([EMPTY; 4]));
        }
        while node > 0 {
            let parent = (node - 1) / 4;
            let above = self.get(parent);
            if above <= key {
                break;
            }
            self.put(node, above);
            node = parent;
        }
        self.put(node, key);
    }

    /// Fills the vacant first place with the last entry.
    fn close_up(&mut self) {
        self.vacant = false;
        self.length -= 1;
        let last = self.get(self.length);
        self.put(self.length, EMPTY);
        if self.length > 0 {
            self.sink(last);
        }
    }

    #[inline]
    fn key(&mut self, slot: u32, at: Instant) -> Key {
        debug_assert!(slot < Self::SLOTS_MAX, "a slot is below 2^24");
        let order = self.set_count & ((1 << ORDER_BITS) - 1);
        self.set_count += 1;
        Key::from(at.as_nanos()) << 64 | Key::from(order << SLOT_BITS) | Key::from(slot)
    }

    /// Lets a key sink from the top to its place.
    #[inline]
    fn sink(&mut self, key: Key) {
        let mut node = 0;
        // By reference: a copy of the group would have to wait for the keys just stored in it.
        while let Some(Group(children)) = self.groups.get(node) {
            let left = usize::from(children[1] < children[0]);
            let right = 2 + usize::from(children[3] < children[2]);
            let least = if children[right] < children[left] { right } else { left };
            let above = children[least];
            if above >= key {
                break;
            }
            self.put(node, above);
            node = node * 4 + 1 + least;
        }
        self.put(node, key);
    }

    #[inline]
    fn get(&self, node: usize) -> Key {
        match node {
            0 => self.first,
            _ => self.groups[(node - 1) / 4].0[(node - 1) % 4],
        }
    }

    #[inline]
    fn put(&mut self, node: usize, key: Key) {
        match node {
            0 => self.first = key,
            _ => self.groups[(node - 1) / 4].0[(node - 1) % 4] = key,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        /// Differential: against a sorted set, under any mix of the three verbs.
        #[test]
        fn the_queue_agrees_with_a_sorted_set(
            steps in prop::collection::vec((0u32..40, 0u64..50, 0u8..5), 1..600)
        ) {
            let mut queue = EventQueue::new();
            let mut model: BTreeSet<(u64, usize, u32)> = BTreeSet::new();
            for (order, (slot, time, verb)) in steps.into_iter().enumerate() {
                let at = Instant::from_nanos(time);
                match verb {
                    0 if queue.first().is_some() => {
                        model.pop_first();
                        queue.take_first();
                    }
                    1 if queue.first().is_some() => {
                        model.pop_first();
                        model.insert((time, order, slot));
                        queue.take_first();
                        queue.add(slot, at);
                    }
                    _ => {
                        model.insert((time, order, slot));
                        queue.add(slot, at);
                    }
                }
                let expected = model.first();
                let expected = expected.map(|(time, _, slot)| (*slot, Instant::from_nanos(*time)));
                prop_assert_eq!(queue.first(), expected);
            }
        }
    }
}
