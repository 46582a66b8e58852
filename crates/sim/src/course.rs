//! Where mobile hosts are in a run among cells, for whoever plots it: a movement depends on nothing
//! but the plan and the seed, so that it can be gone through once more.

use crate::roam::Layout;
use node::Plan;
use node::movement::{Cell, Change, Movement};
use node::roaming::address;
use sansio::{Duration, Instant};
use std::collections::BTreeMap;
use trace::roaming::{Course, Roaming, Setting};

/// Looks at the signal, at most: more than a page has pixels.
const SAMPLES_MAX: u64 = 1_500;
/// And not more often than hosts are told it.
const SAMPLE_EVERY: Duration = Duration::from_millis(100);

/// An observer of the first mobile host of a run among cells; `None` if the plan has none.
pub fn roaming(plan: &Plan) -> Option<Roaming> {
    let roaming = plan.roaming.as_ref()?;
    let layout = Layout::of(plan, roaming);
    Some(Roaming::new(Setting {
        router: crate::roam::ROUTER,
        cells: layout.cells,
        hosts: (0..layout.pairs).map(|pair| layout.mobile(pair)).collect(),
        home: address::mobile(0),
        group: address::group(0),
        home_agent: address::HOME_AGENT,
    }))
}

/// Where the first mobile host of a run is until its end, and where all begin.
pub fn course(plan: &Plan, seed: u64, end: Instant) -> Course {
    let mut movements = plan.movements(seed).into_iter();
    let Some(mut movement) = movements.next() else { return Course::default() };
    let others = movements.map(|other| other.first().0);
    let mut course = Course {
        first: [movement.first().0].into_iter().chain(others).collect(),
        ..Course::default()
    };
    let cells = plan.roaming.as_ref().map_or(0, |roaming| roaming.cells);
    let mut coverage = Coverage::default();
    for cell in (0..cells).filter(|cell| movement.reaches(Cell(*cell))) {
        coverage.since.insert(cell, Instant::ZERO);
    }
    let every = (end.since(Instant::ZERO) / SAMPLES_MAX).max(SAMPLE_EVERY);
    let mut now = Instant::ZERO;
    while now <= end {
        coverage.go_on(&mut movement, now);
        let known = course.sampled_at.len();
        course.sampled_at.push(now);
        for cell in coverage.since.keys() {
            let signal = movement.signal(Cell(*cell), now);
            let samples = course.signals.entry(*cell).or_default();
            samples.resize(known, None);
            samples.push(signal.map(|signal| (signal * 100.0) as i32));
        }
        now += every;
    }
    coverage.go_on(&mut movement, end);
    let Coverage { since, over } = coverage;
    course.reached = over;
    course.reached.extend(since.into_iter().map(|(cell, from)| (cell, from, end)));
    for samples in course.signals.values_mut() {
        samples.resize(course.sampled_at.len(), None);
    }
    course
}

/// Which cells reach a host since when, and which did: from when until when.
#[derive(Default)]
struct Coverage {
    since: BTreeMap<u16, Instant>,
    over: Vec<(u16, Instant, Instant)>,
}

impl Coverage {
    /// All that changes up to an instant.
    fn go_on(&mut self, movement: &mut Movement, now: Instant) {
        while let Some(at) = movement.next_at().filter(|at| *at <= now) {
            while let Some(change) = movement.poll(at) {
                match change {
                    Change::Reached(Cell(cell)) => {
                        self.since.entry(cell).or_insert(at);
                    }
                    Change::Lost(Cell(cell)) => {
                        let from = self.since.remove(&cell);
                        self.over.extend(from.map(|from| (cell, from, at)));
                    }
                    Change::Crossed { .. } | Change::Rendezvous(_) => {}
                }
            }
        }
    }
}
