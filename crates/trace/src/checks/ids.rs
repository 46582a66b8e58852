//! A set of packet identities.

use sansio::PacketId;
use std::collections::VecDeque;

/// Identities are handed out in order, and most of those under way are recent: a window of flags
/// from the lowest one in the set on.
#[derive(Clone, Debug, Default)]
pub(super) struct IdSet {
    /// The identity of the first flag.
    first: u64,
    /// Begins with a true flag, unless empty.
    flags: VecDeque<bool>,
    len: usize,
}

impl IdSet {
    /// Adds an identity; false if it was there.
    #[inline]
    pub(super) fn insert(&mut self, id: PacketId) -> bool {
        let id = id.0.get();
        if self.flags.is_empty() {
            self.first = id;
        }
        while id < self.first {
            self.flags.push_front(false);
            self.first -= 1;
        }
        let index = (id - self.first) as usize;
        if index >= self.flags.len() {
            self.flags.resize(index + 1, false);
        }
        let is_new = !core::mem::replace(&mut self.flags[index], true);
        self.len += usize::from(is_new);
        is_new
    }

    /// Takes an identity out; false if it was not there.
    #[inline]
    pub(super) fn remove(&mut self, id: PacketId) -> bool {
        let Some(index) = id.0.get().checked_sub(self.first) else { return false };
        let Some(flag) = self.flags.get_mut(index as usize) else { return false };
        let was_there = core::mem::replace(flag, false);
        self.len -= usize::from(was_there);
        while self.flags.front() == Some(&false) {
            self.flags.pop_front();
            self.first += 1;
        }
        was_there
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::num::NonZeroU64;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        /// Differential: against a sorted set.
        #[test]
        fn the_set_agrees_with_a_sorted_set(
            steps in prop::collection::vec((1u64..60, any::<bool>()), 1..300)
        ) {
            let (mut set, mut model) = (IdSet::default(), BTreeSet::new());
            for (number, adds) in steps {
                let Some(id) = NonZeroU64::new(number).map(PacketId) else { continue };
                if adds {
                    prop_assert_eq!(set.insert(id), model.insert(id));
                } else {
                    prop_assert_eq!(set.remove(id), model.remove(&id));
                }
                prop_assert_eq!(set.len(), model.len());
            }
        }
    }
}
