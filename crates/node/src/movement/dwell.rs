//! From cell to cell by the clock: the host stays in a cell for a time, then crosses into the next
//! one, round and round (CI-MOD-3; METP and the Snoop paper's Table 1 are driven the same way).
//!
//! ```text
//!   overlap         old ═══════════════════════════      both reach all the time,
//!                   new ═══════════════════════════      or with a length as long as that
//!   overlap=T       old ════════════╪═══T═══╡              around the crossing
//!                   new     ╞═══T═══╪═══════════════
//!   gap=G           old ════════════╡                    nothing reaches for G (CI-MOD-4)
//!                   new             │   G   ╞═══════
//!   ahead=T         old ════════════╡                    the new cell is heard before (PRE-2)
//!                   new     ╞═══T═══╪═══════════════
//!                                crossing
//! ```
//!
//! The signal is made to fit: full while the crossing is far, falling in a straight line over
//! [`Spec::fading`] before it, and the new cell's rising the same way, equal at the crossing unless
//! [`Spec::arrives_at`] says otherwise.

use super::{Cell, Change, Decibel};
use sansio::{Duration, Instant, Random};
use std::collections::VecDeque;

/// A host's way from cell to cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spec {
    /// From one crossing to the next; its mean, if it is drawn.
    pub every: Duration,
    /// Standard deviation of that time, normal, each drawn for itself (METP: 0.1 s).
    pub deviation: Duration,
    /// The first crossing; `None`: at a time drawn from the seed, within the first period.
    pub first: Option<Duration>,
    /// Crossings at most.
    pub times: Option<u32>,
    /// What the cells have in common.
    pub border: Border,
    /// From a crossing to the first beacon of the new cell (CI-MOD-5); `None`: whenever its base
    /// station sends its next one.
    pub rendezvous: Option<Duration>,
    /// How long before a crossing the signal begins to fall.
    pub fading: Duration,
    /// The signal of the new cell at a crossing, dB.
    pub arrives_at: Decibel,
}

/// How two neighbouring cells meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Border {
    /// Both reach: always, or for this long before and after a crossing.
    Overlap(Option<Duration>),
    /// Neither reaches for this long, from the crossing on.
    Gap(Duration),
    /// The new one reaches for this long before the crossing, the old one no longer after it.
    Ahead(Duration),
}

/// One host's.
#[derive(Clone, Debug)]
pub struct Dwell {
    spec: Spec,
    cells: u16,
    random: Random,
    /// The cell it is in.
    current: Cell,
    /// The next crossing; `None` after the last.
    crossing: Option<Instant>,
    /// The crossing before.
    crossed: Option<Instant>,
    crossings: u32,
    /// What is known to happen, in the order of time.
    due: VecDeque<(Instant, Change)>,
    reached: Vec<Cell>,
}

impl Spec {
    /// The default of [`Spec::fading`]: at walking pace the last few metres.
    pub const FADING: Duration = Duration::from_secs(2);
    /// The signal in the middle of a cell, dB.
    pub const SIGNAL: Decibel = 20.0;
    /// The signal of both cells at a crossing, dB: a window is closed before it (below 5 dB), an
    /// agent is asked for before it (above 3 dB, PAR-14).
    pub const SIGNAL_AT_CROSSING: Decibel = 4.0;
    /// The signal of a cell that reaches all the time while the host is in another, dB.
    pub const SIGNAL_BESIDE: Decibel = 2.0;

    /// A crossing each `every`, cells that touch.
    pub const fn every(every: Duration) -> Self {
        Spec {
            every,
            deviation: Duration::ZERO,
            first: None,
            times: None,
            border: Border::Gap(Duration::ZERO),
            rendezvous: None,
            fading: Self::FADING,
            arrives_at: Self::SIGNAL_AT_CROSSING,
        }
    }

    /// The least time from a crossing to the next: all that belongs to the one is over before
    /// anything of the other begins.
    pub fn settled(&self) -> Duration {
        let rendezvous = self.rendezvous.unwrap_or(Duration::ZERO);
        let busy = match self.border {
            Border::Overlap(None) => rendezvous,
            // The next cell reaches as long before its crossing.
            Border::Overlap(Some(length)) => length.max(rendezvous) + length,
            Border::Gap(gap) => gap.max(rendezvous),
            Border::Ahead(length) => length + rendezvous,
        };
        busy + Duration::from_nanos(1)
    }
}

impl Dwell {
    pub(super) fn new(spec: &Spec, cells: u16, (seed, mobile): (u64, u32)) -> Self {
        let mut random = Random::new(seed, &format!("{mobile}.movement"));
        let first = spec.first.unwrap_or_else(|| random.uniform_time(Duration::ZERO, spec.every));
        let current = Cell((mobile % u32::from(cells.max(1))) as u16);
        let moves = cells > 1 && spec.times != Some(0);
        let everywhere = spec.border == Border::Overlap(None);
        let reached = if everywhere { (0..cells).map(Cell).collect() } else { vec![current] };
        let mut dwell = Dwell {
            spec: *spec,
            cells: cells.max(1),
            random,
            current,
            crossing: moves.then_some(Instant::ZERO + first),
            crossed: None,
            crossings: 0,
            due: VecDeque::new(),
            reached,
        };
        dwell.plan();
        dwell
    }

    pub(super) fn first(&self) -> Cell {
        self.current
    }

    fn next_cell(&self) -> Cell {
        Cell((self.current.0 + 1) % self.cells)
    }

    /// Enters what the next crossing brings.
    fn plan(&mut self) {
        let Some(at) = self.crossing else { return };
        let (from, to) = (self.current, self.next_cell());
        let mut due = vec![(at, Change::Crossed { from, to })];
        match self.spec.border {
            Border::Overlap(None) => {}
            Border::Overlap(Some(length)) => {
                let begin = at.as_nanos().saturating_sub(length.as_nanos());
                due.push((Instant::from_nanos(begin), Change::Reached(to)));
                due.push((at + length, Change::Lost(from)));
            }
            Border::Gap(gap) => {
                due.push((at, Change::Lost(from)));
                due.push((at + gap, Change::Reached(to)));
            }
            Border::Ahead(length) => {
                let begin = at.as_nanos().saturating_sub(length.as_nanos());
                due.push((Instant::from_nanos(begin), Change::Reached(to)));
                due.push((at, Change::Lost(from)));
            }
        }
        if let Some(rendezvous) = self.spec.rendezvous {
            due.push((at + rendezvous, Change::Rendezvous(to)));
        }
        due.sort_by_key(|(at, _)| *at);
        self.due.extend(due);
    }

    pub(super) fn next_at(&self) -> Option<Instant> {
        self.due.front().map(|(at, _)| *at)
    }

    pub(super) fn poll(&mut self, now: Instant) -> Option<Change> {
        let (at, change) = *self.due.front().filter(|(at, _)| *at <= now)?;
        self.due.pop_front();
        match change {
            Change::Reached(cell) if !self.reaches(cell) => self.reached.push(cell),
            Change::Lost(cell) => self.reached.retain(|other| *other != cell),
            Change::Crossed { to, .. } => self.cross(at, to),
            Change::Reached(_) | Change::Rendezvous(_) => {}
        }
        if self.due.is_empty() {
            self.plan();
        }
        Some(change)
    }

    fn cross(&mut self, at: Instant, to: Cell) {
        self.crossings += 1;
        self.crossed = Some(at);
        self.current = to;
        let goes_on = self.spec.times.is_none_or(|times| self.crossings < times);
        self.crossing = goes_on.then(|| at + self.stay());
    }

    fn stay(&mut self) -> Duration {
        let every = self.spec.every.as_nanos() as f64;
        let stay = self.random.normal(every, self.spec.deviation.as_nanos() as f64);
        Duration::from_nanos(stay.max(0.0) as u64).max(self.spec.settled())
    }

    pub(super) fn reached(&self) -> &[Cell] {
        &self.reached
    }

    pub(super) fn reaches(&self, cell: Cell) -> bool {
        self.reached.contains(&cell)
    }

    pub(super) fn signal(&self, cell: Cell, now: Instant) -> Option<Decibel> {
        // How near a crossing is: 1 at it, 0 where it does not show.
        let fading = self.spec.fading.as_nanos().max(1) as f64;
        let near = |at: Instant| {
            let apart = at.since(now).max(now.since(at)).as_nanos() as f64;
            (1.0 - apart / fading).max(0.0)
        };
        let ahead = self.crossing.map_or(0.0, near);
        let behind = self.crossed.map_or(0.0, near);
        let (full, middle, beside) = (Spec::SIGNAL, Spec::SIGNAL_AT_CROSSING, Spec::SIGNAL_BESIDE);
        let new = self.spec.arrives_at;
        if cell == self.current {
            return Some(full - ((full - middle) * ahead).max((full - new) * behind));
        }
        // To which it goes, or from which it comes.
        let before = Cell((self.current.0 + self.cells - 1) % self.cells);
        let toward = if cell == self.next_cell() { ahead } else { 0.0 };
        let away = if cell == before { behind } else { 0.0 };
        Some(beside + ((new - beside) * toward).max((middle - beside) * away))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all(spec: &Spec, cells: u16, until: Duration) -> Vec<(u64, Change)> {
        let mut dwell = Dwell::new(spec, cells, (1, 0));
        let mut all = Vec::new();
        while let Some(at) = dwell.next_at().filter(|at| *at <= Instant::ZERO + until) {
            let change = dwell.poll(at).expect("what is due happens");
            all.push((at.since(Instant::ZERO).as_millis(), change));
        }
        all
    }

    /// CI-MOD-3, CI-MOD-4, CI-MOD-5: crossings by the clock, nothing passes in a gap, and the first
    /// beacon comes when it has to.
    #[test]
    fn ci_mod_4_a_gap_is_between_old_and_new() {
        let spec = Spec {
            first: Some(Duration::from_secs(8)),
            border: Border::Gap(Duration::from_millis(500)),
            rendezvous: Some(Duration::from_secs(1)),
            ..Spec::every(Duration::from_secs(8))
        };
        let (a, b) = (Cell(0), Cell(1));
        let crossing = |at, from, to| {
            [
                (at, Change::Crossed { from, to }),
                (at, Change::Lost(from)),
                (at + 500, Change::Reached(to)),
                (at + 1000, Change::Rendezvous(to)),
            ]
        };
        let wanted = [crossing(8_000, a, b), crossing(16_000, b, a)].concat();
        assert_eq!(all(&spec, 2, Duration::from_secs(20)), wanted);
    }

    #[test]
    fn ci_mod_4_overlapping_cells_both_reach() {
        let spec = Spec { border: Border::Overlap(None), ..Spec::every(Duration::from_secs(8)) };
        let dwell = Dwell::new(&spec, 2, (1, 0));
        assert!(dwell.reaches(Cell(0)) && dwell.reaches(Cell(1)));
        let changes = all(&spec, 2, Duration::from_secs(30));
        assert!(changes.len() >= 3);
        assert!(changes.iter().all(|(_, change)| matches!(change, Change::Crossed { .. })));
    }

    #[test]
    fn signals_are_equal_at_a_crossing_and_apart_before() {
        let spec = Spec {
            first: Some(Duration::from_secs(8)),
            border: Border::Overlap(None),
            ..Spec::every(Duration::from_secs(8))
        };
        let dwell = Dwell::new(&spec, 3, (1, 0));
        let at = |ms: u64, cell| {
            let signal = dwell.signal(Cell(cell), Instant::ZERO + Duration::from_millis(ms));
            signal.expect("it is heard")
        };
        assert_eq!(at(8_000, 0), at(8_000, 1));
        assert_eq!([at(1_000, 0), at(1_000, 1)], [Spec::SIGNAL, Spec::SIGNAL_BESIDE]);
        assert!(at(7_000, 0) > at(7_500, 0) && at(7_000, 1) < at(7_500, 1));
        assert_eq!(at(7_999, 2), Spec::SIGNAL_BESIDE);
    }

    #[test]
    fn one_cell_or_no_times_never_changes() {
        let spec = Spec::every(Duration::from_secs(1));
        assert_eq!(Dwell::new(&spec, 1, (1, 0)).next_at(), None);
        assert_eq!(Dwell::new(&Spec { times: Some(0), ..spec }, 2, (1, 0)).next_at(), None);
    }

    proptest! {
        /// Whatever is drawn: time does not go back, who is lost was reached, a host is reached by
        /// at most two cells, and as many crossings happen as were asked for.
        #[test]
        fn changes_make_sense(
            every in 200_u64..5_000,
            deviation in 0_u64..2_000,
            border in 0..3,
            length in 0_u64..100,
            rendezvous in proptest::option::of(0_u64..100),
            cells in 2_u16..5,
            seed: u64,
        ) {
            let length = Duration::from_millis(length);
            let border = match border {
                0 => Border::Overlap(None),
                1 => Border::Overlap(Some(length)),
                _ => Border::Gap(length),
            };
            let spec = Spec {
                deviation: Duration::from_millis(deviation),
                times: Some(20),
                border,
                rendezvous: rendezvous.map(Duration::from_millis),
                ..Spec::every(Duration::from_millis(every))
            };
            let mut dwell = Dwell::new(&spec, cells, (seed, 0));
            let (mut now, mut crossings, mut at_cell) = (Instant::ZERO, 0, dwell.first());
            while let Some(at) = dwell.next_at() {
                prop_assert!(at >= now);
                now = at;
                match dwell.poll(at).expect("it is due") {
                    Change::Crossed { from, to } => {
                        prop_assert_eq!(from, at_cell);
                        prop_assert_ne!(from, to);
                        at_cell = to;
                        crossings += 1;
                    }
                    Change::Reached(cell) => prop_assert!(dwell.reaches(cell)),
                    Change::Lost(cell) => prop_assert!(!dwell.reaches(cell)),
                    Change::Rendezvous(cell) => prop_assert_eq!(cell, at_cell),
                }
                if border != Border::Overlap(None) {
                    prop_assert!(dwell.reached.len() <= 2);
                }
            }
            prop_assert_eq!(crossings, 20);
            prop_assert!(dwell.reaches(at_cell));
        }
    }
}
