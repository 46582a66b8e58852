//! Where mobile hosts are now: the home agent's bindings (RFC 5944, 1.7), and the binding cache of
//! a previous agent (WINC-ST-7). Bounded; every entry ends with its lifetime.

use crate::agenda::Agenda;
use crate::tunnel::Encapsulation;
use core::net::Ipv4Addr;
use sansio::Instant;
use std::collections::BTreeMap;

/// Where packets for a mobile host are to be tunnelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Binding {
    /// The tunnel's other end.
    pub care_of: Ipv4Addr,
    /// How.
    pub encapsulation: Encapsulation,
    /// Until when; never ends if there is no such time.
    pub until: Option<Instant>,
}

/// Bindings by home address.
#[derive(Clone, Debug)]
pub struct Bindings {
    table: BTreeMap<Ipv4Addr, Binding>,
    ends: Agenda<Ipv4Addr>,
    max: usize,
}

impl Bindings {
    /// None, and room for `max`.
    pub fn new(max: usize) -> Self {
        Bindings { table: BTreeMap::new(), ends: Agenda::new(), max }
    }

    /// Sets or replaces the binding of a mobile host. False if there is no room; then nothing has
    /// changed.
    #[must_use]
    pub fn set(&mut self, mobile: Ipv4Addr, binding: Binding) -> bool {
        if self.table.len() >= self.max && !self.table.contains_key(&mobile) {
            return false;
        }
        match binding.until {
            Some(until) => self.ends.set(mobile, until),
            None => self.ends.clear(mobile),
        }
        self.table.insert(mobile, binding);
        true
    }

    /// Takes a binding away.
    pub fn remove(&mut self, mobile: Ipv4Addr) -> Option<Binding> {
        self.ends.clear(mobile);
        self.table.remove(&mobile)
    }

    /// The binding of a mobile host, unless its lifetime is over.
    pub fn get(&self, mobile: Ipv4Addr, now: Instant) -> Option<&Binding> {
        let binding = self.table.get(&mobile)?;
        binding.until.is_none_or(|until| now < until).then_some(binding)
    }

    /// Removes the binding whose lifetime ended first, if it has.
    pub fn expire(&mut self, now: Instant) -> Option<Ipv4Addr> {
        let mobile = self.ends.pop_due(now)?;
        self.table.remove(&mobile);
        Some(mobile)
    }

    /// When the next one ends.
    pub fn next_at(&self) -> Option<Instant> {
        self.ends.next().map(|(_, at)| at)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }
}
