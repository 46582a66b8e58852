//! The judges of a run: each watches one invariant, all of them in every run.
//!
//! | check | invariant | source |
//! |---|---|---|
//! | [`stream`] | applications get each byte once, in order, of the right stream | RFC 9293 |
//! | [`acks`] | no ACK toward a host above what the other sent | SNOOP-GEN-2, SNOOP-NACK-6 |
//! | [`acks`] | no SACK block of a base station of what never passed it | MOD-4 |
//! | [`conservation`] | every packet sent is received, lost, refused or still under way, once | - |
//! | [`caches`] | a base station keeps no more than it may | SNOOP-CACHE-2, MOD-14 |
//! | [`cells`] | one base station serves a mobile host; nothing goes elsewhere or round | MCAST-4 |

pub mod acks;
pub mod caches;
pub mod cells;
pub mod conservation;
mod ids;
pub mod stream;

use crate::{NodeId, Observer, Record, Role};
use core::fmt;
use sansio::{Instant, PacketId};

/// A broken invariant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Which check.
    pub check: &'static str,
    /// When.
    pub at: Instant,
    /// Where.
    pub node: NodeId,
    /// What was wrong.
    pub what: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: at {} at node {}: {}", self.check, self.at, self.node.0, self.what)
    }
}

/// All checks of one run.
#[derive(Clone, Debug)]
pub struct Checks {
    roles: Vec<Role>,
    stream: stream::Stream,
    acks: acks::Acks,
    conservation: conservation::Conservation,
    caches: caches::Caches,
    cells: Option<Box<cells::Cells>>,
    failures: Failures,
}

/// What was found; the first ones only, since one broken invariant breaks on every packet.
#[derive(Clone, Debug, Default)]
pub struct Failures {
    first: Vec<Failure>,
    count: u64,
}

impl Failures {
    /// Kept in full; the others are counted.
    const KEPT_MAX: usize = 20;

    fn add(&mut self, check: &'static str, at: Instant, node: NodeId, what: String) {
        self.count += 1;
        if self.first.len() < Self::KEPT_MAX {
            self.first.push(Failure { check, at, node, what });
        }
    }
}

impl Checks {
    /// Checks for a run with these machines; a node's number is its index.
    pub fn new(roles: Vec<Role>) -> Self {
        Checks {
            cells: cells::Cells::new(&roles).map(Box::new),
            roles,
            stream: stream::Stream::default(),
            acks: acks::Acks::new(),
            conservation: conservation::Conservation::default(),
            caches: caches::Caches,
            failures: Failures::default(),
        }
    }

    /// Before the end: a packet is kept at a base station, for a mobile host that may come.
    pub fn keep(&mut self, node: NodeId, packet: PacketId) {
        self.conservation.keep(node, packet);
    }

    /// Ends the run at `now` with `under_way` packets left in the hops' queues and on the air;
    /// returns what was found (the first 20) in order of time.
    pub fn finish(mut self, under_way: usize, now: Instant) -> Vec<Failure> {
        self.conservation.finish(under_way, now, &mut self.failures);
        let unlisted = self.failures.count - self.failures.first.len() as u64;
        if unlisted > 0
            && let Some(last) = self.failures.first.last_mut()
        {
            last.what.push_str(&format!(" (and {unlisted} more failures)"));
        }
        self.failures.first
    }
}

impl Observer for Checks {
    const ON: bool = true;

    fn record(&mut self, record: &Record<'_>) {
        let Some(&role) = self.roles.get(record.node.0 as usize) else {
            let what = "a record from a machine that is not part of the run".into();
            self.failures.add("topology", record.at, record.node, what);
            return;
        };
        self.stream.record(record, &mut self.failures);
        self.acks.record(record, role, &mut self.failures);
        self.conservation.record(record, role, &mut self.failures);
        self.caches.record(record, &mut self.failures);
        if let Some(cells) = &mut self.cells {
            cells.record(record, role, &mut self.failures);
        }
    }
}
