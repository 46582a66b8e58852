//! Timers of many mobile hosts by name: at most one deadline per key, the earliest first.

use sansio::Instant;
use std::collections::{BTreeMap, BTreeSet};

/// What is due when. The keys are an engine's own: which timer of which mobile host.
#[derive(Clone, Debug)]
pub struct Agenda<K> {
    at: BTreeMap<K, Instant>,
    order: BTreeSet<(Instant, K)>,
}

impl<K: Ord + Copy> Agenda<K> {
    /// Nothing is due.
    pub fn new() -> Self {
        Agenda { at: BTreeMap::new(), order: BTreeSet::new() }
    }

    /// Sets or moves a deadline.
    pub fn set(&mut self, key: K, at: Instant) {
        self.clear(key);
        self.at.insert(key, at);
        self.order.insert((at, key));
    }

    /// Takes a deadline away, if there is one.
    pub fn clear(&mut self, key: K) {
        if let Some(at) = self.at.remove(&key) {
            self.order.remove(&(at, key));
        }
    }

    /// When a key is due, if it is.
    pub fn get(&self, key: K) -> Option<Instant> {
        self.at.get(&key).copied()
    }

    /// The earliest deadline.
    pub fn next(&self) -> Option<(K, Instant)> {
        self.order.first().map(|&(at, key)| (key, at))
    }

    /// Removes and returns the earliest one that is due at `now`.
    pub fn pop_due(&mut self, now: Instant) -> Option<K> {
        let (key, at) = self.next()?;
        if at > now {
            return None;
        }
        self.clear(key);
        Some(key)
    }
}

impl<K: Ord + Copy> Default for Agenda<K> {
    fn default() -> Self {
        Self::new()
    }
}
