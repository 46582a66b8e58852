//! Where a mobile host is: which cells reach it, how strongly, and when it crosses from one to the
//! next.
//!
//! Two ways to move: from cell to cell by the clock ([`dwell`]: the papers' own experiments, which
//! were driven by time), and along a path through a map ([`path`]: path loss and shadowing). A
//! movement decides nothing. Which base station a host registers with is decided by the mobility
//! layer from the beacons it hears; only where an experiment drives the choice by time
//! (CI-MOD-3) does a crossing say what it has to be.

pub mod dwell;
pub mod path;

pub use dwell::Dwell;
pub use path::{Map, Path};

use sansio::Instant;

/// A cell, which is also the number of its base station, from 0 (CI-MOD-2: one each).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cell(pub u16);

/// Signal strength at the mobile host as a signal-to-noise ratio, dB.
pub type Decibel = f64;

/// Below this signal nothing passes, dB.
pub const FLOOR: Decibel = 0.0;

/// What becomes different for a mobile host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// From now on frames pass between it and the cell's base station.
    Reached(Cell),
    /// From now on none do.
    Lost(Cell),
    /// It crosses: the clock of an experiment sends it from one cell to the next.
    Crossed {
        /// The cell it leaves.
        from: Cell,
        /// The cell it goes to.
        to: Cell,
    },
    /// The rendezvous: the base station of this cell sends a beacon now (CI-MOD-5).
    Rendezvous(Cell),
}

/// How mobile hosts move.
#[derive(Clone, Debug, PartialEq)]
pub enum Spec {
    /// By the clock.
    Dwell(dwell::Spec),
    /// Along a path.
    Path(path::Spec),
}

/// One mobile host's movement in one run. Time only goes on: calls come with increasing `now`.
#[derive(Clone, Debug)]
pub enum Movement {
    /// By the clock.
    Dwell(Box<Dwell>),
    /// Along a path.
    Path(Box<Path>),
}

impl Movement {
    /// A mobile host's movement among `cells` cells, in the run with this seed.
    pub fn new(spec: &Spec, cells: u16, (seed, mobile): (u64, u32)) -> Self {
        match spec {
            Spec::Dwell(spec) => Movement::Dwell(Box::new(Dwell::new(spec, cells, (seed, mobile)))),
            Spec::Path(spec) => Movement::Path(Box::new(Path::new(spec, (seed, mobile)))),
        }
    }

    /// The cell to begin in: the strongest.
    pub fn first(&self) -> Cell {
        match self {
            Movement::Dwell(dwell) => dwell.first(),
            Movement::Path(path) => path.first(),
        }
    }

    /// When something changes next; `None` if nothing ever does.
    pub fn next_at(&self) -> Option<Instant> {
        match self {
            Movement::Dwell(dwell) => dwell.next_at(),
            Movement::Path(path) => path.next_at(),
        }
    }

    /// The next change up to `now`; call it until it returns `None`.
    pub fn poll(&mut self, now: Instant) -> Option<Change> {
        match self {
            Movement::Dwell(dwell) => dwell.poll(now),
            Movement::Path(path) => path.poll(now),
        }
    }

    /// True if frames pass between the host and a cell's base station, after all changes so far.
    pub fn reaches(&self, cell: Cell) -> bool {
        match self {
            Movement::Dwell(dwell) => dwell.reaches(cell),
            Movement::Path(path) => path.reaches(cell),
        }
    }

    /// The cells that reach the host, after all changes so far.
    pub fn reached(&self) -> Box<dyn Iterator<Item = Cell> + '_> {
        match self {
            Movement::Dwell(dwell) => Box::new(dwell.reached().iter().copied()),
            Movement::Path(path) => Box::new(path.reached()),
        }
    }

    /// The signal of a cell's base station at the host at `now`; `None` if it is below [`FLOOR`].
    pub fn signal(&self, cell: Cell, now: Instant) -> Option<Decibel> {
        let signal = match self {
            Movement::Dwell(dwell) => dwell.signal(cell, now),
            Movement::Path(path) => path.signal(cell),
        };
        signal.filter(|signal| *signal >= FLOOR && self.reaches(cell))
    }
}
