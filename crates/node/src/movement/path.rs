//! Along a path through a map: the signal of each base station by the distance to it.
//!
//! The signal-to-noise ratio at a distance d is what it is at one metre, less 10 n log10(d) (path
//! loss with exponent n), plus shadowing: normal with the map's deviation, and correlated over the
//! way as exp(-way / decorrelation) (Gudmundson, Correlation model for shadow fading in mobile
//! radio systems, Electronics Letters 27(23), 1991). A base station reaches a host whose signal is
//! at least [`super::FLOOR`]. Base stations too far away for three deviations to bring them there
//! are not looked at.

use super::{Cell, Change, Decibel, FLOOR};
use sansio::{Duration, Instant, Random};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Metres from a corner of the map.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// To the east.
    pub x: f64,
    /// To the north.
    pub y: f64,
}

/// A base station on a map; its number is its place in [`Map::stations`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Station {
    /// Where it stands.
    pub at: Point,
    /// Its signal-to-noise ratio at one metre, dB.
    pub signal: Decibel,
}

/// Base stations, and how far they reach.
#[derive(Clone, Debug, PartialEq)]
pub struct Map {
    stations: Vec<Station>,
    exponent: f64,
    shadowing: Decibel,
    decorrelation: f64,
    /// How far any of them can reach, metres.
    reach: f64,
    /// The stations of each square whose side is `reach`.
    squares: BTreeMap<(i64, i64), Vec<Cell>>,
}

/// How hosts walk on it.
#[derive(Clone, Debug, PartialEq)]
pub enum Walk {
    /// From point to point, and from the last one back the same way, again and again.
    Points {
        /// At least one.
        points: Vec<Point>,
        /// Metres per second.
        speed: f64,
    },
    /// To points drawn uniformly from a rectangle, one after the other (random waypoint).
    Random {
        /// The corner across from the origin.
        size: Point,
        /// Metres per second.
        speed: f64,
    },
}

/// Hosts on a map.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    /// The map, shared by all.
    pub map: Arc<Map>,
    /// How they walk.
    pub walk: Walk,
    /// How often the signal is looked at.
    pub step: Duration,
    /// By how much another base station has to be stronger for a host to go there (MCAST-10).
    pub hysteresis: Decibel,
}

/// One host's way.
#[derive(Clone, Debug)]
pub struct Path {
    spec: Spec,
    random: Random,
    at: Point,
    /// Where it goes, and for points which one of them that is, and which way.
    target: Point,
    leg: usize,
    backwards: bool,
    /// The base stations near it, by number.
    near: Vec<Near>,
    next: Instant,
    due: VecDeque<Change>,
}

#[derive(Clone, Copy, Debug)]
struct Near {
    cell: Cell,
    shadow: Decibel,
    signal: Decibel,
    reaches: bool,
}

impl Map {
    /// A signal that was lost counts again when it is this much above the floor, dB.
    pub const MARGIN: Decibel = 1.0;

    /// A map.
    ///
    /// * `exponent`: 2 in the open, 3 to 4 among buildings; above 0.
    /// * `shadowing`: standard deviation, dB; not negative.
    /// * `decorrelation`: metres after which shadowing has lost 63 % of its memory; above 0.
    pub fn new(
        stations: Vec<Station>,
        exponent: f64,
        shadowing: Decibel,
        decorrelation: f64,
    ) -> Map {
        let loudest = stations.iter().map(|station| station.signal).fold(f64::MIN, f64::max);
        let reach = libm::pow(10.0, (loudest + 3.0 * shadowing - FLOOR) / (10.0 * exponent));
        let mut map = Map {
            stations,
            exponent,
            shadowing,
            decorrelation,
            reach: reach.clamp(1.0, 1e6),
            squares: BTreeMap::new(),
        };
        for number in 0..map.stations.len() {
            let square = map.square(map.stations[number].at);
            map.squares.entry(square).or_default().push(Cell(number as u16));
        }
        map
    }

    /// The base stations.
    pub fn stations(&self) -> &[Station] {
        &self.stations
    }

    fn square(&self, at: Point) -> (i64, i64) {
        let one = |metres: f64| libm::floor(metres / self.reach) as i64;
        (one(at.x), one(at.y))
    }

    /// The base stations of the squares around a point, by number.
    fn around(&self, at: Point) -> Vec<Cell> {
        let (x, y) = self.square(at);
        let squares = (x - 1..=x + 1).flat_map(|x| (y - 1..=y + 1).map(move |y| (x, y)));
        let mut cells: Vec<Cell> =
            squares.filter_map(|square| self.squares.get(&square)).flatten().copied().collect();
        cells.sort_unstable();
        cells
    }

    /// The signal of a base station at a point without shadowing, dB.
    pub fn mean_signal(&self, cell: Cell, at: Point) -> Decibel {
        let station = &self.stations[usize::from(cell.0)];
        let distance = station.at.distance(at).max(1.0);
        station.signal - 10.0 * self.exponent * libm::log10(distance)
    }
}

impl Point {
    fn distance(self, other: Point) -> f64 {
        libm::hypot(self.x - other.x, self.y - other.y)
    }

    fn toward(self, other: Point, metres: f64) -> Point {
        let distance = self.distance(other);
        if distance <= metres {
            return other;
        }
        let share = metres / distance;
        Point { x: self.x + (other.x - self.x) * share, y: self.y + (other.y - self.y) * share }
    }
}

impl Walk {
    fn speed(&self) -> f64 {
        match self {
            Walk::Points { speed, .. } | Walk::Random { speed, .. } => *speed,
        }
    }
}

impl Path {
    pub(super) fn new(spec: &Spec, (seed, mobile): (u64, u32)) -> Self {
        let mut random = Random::new(seed, &format!("{mobile}.movement"));
        let at = match &spec.walk {
            Walk::Points { points, .. } => points[0],
            Walk::Random { size, .. } => drawn(*size, &mut random),
        };
        // Hosts are not looked at all at once.
        let next = Instant::ZERO + random.uniform_time(Duration::ZERO, spec.step);
        let mut path = Path {
            spec: spec.clone(),
            random,
            at,
            target: at,
            leg: 0,
            backwards: false,
            near: Vec::new(),
            next,
            due: VecDeque::new(),
        };
        path.look(0.0);
        // How it begins is no change.
        path.due.clear();
        path
    }

    pub(super) fn first(&self) -> Cell {
        let strongest = |near: &&Near, other: &&Near| near.signal.total_cmp(&other.signal);
        self.near.iter().max_by(strongest).map_or(Cell(0), |near| near.cell)
    }

    pub(super) fn next_at(&self) -> Option<Instant> {
        Some(self.next)
    }

    pub(super) fn poll(&mut self, now: Instant) -> Option<Change> {
        while self.due.is_empty() && self.next <= now {
            self.next += self.spec.step;
            let metres = self.spec.walk.speed() * self.spec.step.as_secs_f64();
            self.walk(metres);
            self.look(metres);
        }
        self.due.pop_front()
    }

    fn walk(&mut self, metres: f64) {
        let mut left = metres;
        // A host that stands still, or all of whose points are one, ends here, too.
        for _ in 0..=LEGS_PER_STEP {
            let distance = self.at.distance(self.target);
            self.at = self.at.toward(self.target, left);
            if distance > left {
                return;
            }
            left -= distance;
            self.target = self.next_target();
        }
    }

    fn next_target(&mut self) -> Point {
        match &self.spec.walk {
            Walk::Random { size, .. } => drawn(*size, &mut self.random),
            Walk::Points { points, .. } => {
                let last = points.len() - 1;
                if self.leg == last {
                    self.backwards = true;
                } else if self.leg == 0 {
                    self.backwards = false;
                }
                self.leg = match self.backwards {
                    true => self.leg.saturating_sub(1),
                    false => (self.leg + 1).min(last),
                };
                points[self.leg]
            }
        }
    }

    /// Looks at the signals after so many metres.
    fn look(&mut self, metres: f64) {
        let map = self.spec.map.clone();
        let keeps = libm::exp(-metres / map.decorrelation);
        let fresh = map.shadowing * libm::sqrt(1.0 - keeps * keeps);
        let before = core::mem::take(&mut self.near);
        for cell in map.around(self.at) {
            let known = before.iter().find(|near| near.cell == cell);
            let shadow = match known {
                Some(near) => near.shadow * keeps + self.random.normal(0.0, fresh),
                None => self.random.normal(0.0, map.shadowing),
            };
            let signal = map.mean_signal(cell, self.at) + shadow;
            let reached = known.is_some_and(|near| near.reaches);
            let reaches = signal >= if reached { FLOOR } else { FLOOR + Map::MARGIN };
            match (reached, reaches) {
                (false, true) => self.due.push_back(Change::Reached(cell)),
                (true, false) => self.due.push_back(Change::Lost(cell)),
                _ => {}
            }
            self.near.push(Near { cell, shadow, signal, reaches });
        }
        let gone = |near: &&Near| near.reaches && self.near.iter().all(|now| now.cell != near.cell);
        self.due.extend(before.iter().filter(gone).map(|near| Change::Lost(near.cell)));
    }

    pub(super) fn reached(&self) -> impl Iterator<Item = Cell> {
        self.near.iter().filter(|near| near.reaches).map(|near| near.cell)
    }

    pub(super) fn reaches(&self, cell: Cell) -> bool {
        self.near.iter().any(|near| near.cell == cell && near.reaches)
    }

    pub(super) fn signal(&self, cell: Cell) -> Option<Decibel> {
        self.near.iter().find(|near| near.cell == cell).map(|near| near.signal)
    }

    /// Where the host is.
    pub fn position(&self) -> Point {
        self.at
    }
}

/// Legs that one step may finish; more are walked in the next.
const LEGS_PER_STEP: usize = 8;

fn drawn(size: Point, random: &mut Random) -> Point {
    Point { x: size.x * random.unit(), y: size.y * random.unit() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn street(shadowing: Decibel) -> Arc<Map> {
        let station = |x| Station { at: Point { x, y: 10.0 }, signal: 60.0 };
        Arc::new(Map::new(vec![station(0.0), station(100.0), station(200.0)], 3.0, shadowing, 20.0))
    }

    fn walk(shadowing: Decibel, seed: u64) -> Path {
        let points = [0.0, 200.0].map(|x| Point { x, y: 0.0 }).to_vec();
        let walk = Walk::Points { points, speed: 10.0 };
        let step = Duration::from_millis(100);
        Path::new(&Spec { map: street(shadowing), walk, step, hysteresis: 5.0 }, (seed, 0))
    }

    /// 60 dB at one metre and exponent 3: 0 dB at 100 m, 30 dB at 10 m.
    #[test]
    fn the_signal_falls_with_distance() {
        let map = street(0.0);
        let at = |x| map.mean_signal(Cell(0), Point { x, y: 10.0 });
        assert!((at(10.0) - 30.0).abs() < 1e-9);
        assert!(at(100.0).abs() < 1e-9);
        let above = map.mean_signal(Cell(0), Point { x: 0.0, y: 9.5 });
        assert_eq!(above, 60.0, "no nearer than a metre");
    }

    #[test]
    fn a_walk_goes_through_the_cells_in_order_and_back() {
        let mut path = walk(0.0, 1);
        assert_eq!(path.first(), Cell(0));
        let (mut now, mut strongest) = (Instant::ZERO, vec![Cell(0)]);
        for _ in 0..400 {
            now = path.next_at().expect("it walks on");
            while path.poll(now).is_some() {}
            let first = path.first();
            if strongest.last() != Some(&first) {
                strongest.push(first);
            }
        }
        assert_eq!(strongest, [0, 1, 2, 1, 0].map(Cell));
        assert_eq!(now.since(Instant::ZERO).as_millis() / 1000, 39, "400 looks, 100 ms apart");
    }

    #[test]
    fn changes_agree_with_what_reaches() {
        for seed in 0..20 {
            let mut path = walk(6.0, seed);
            let mut reached: Vec<Cell> =
                (0..3).map(Cell).filter(|cell| path.reaches(*cell)).collect();
            for _ in 0..2_000 {
                let now = path.next_at().expect("it walks on");
                while let Some(change) = path.poll(now) {
                    match change {
                        Change::Reached(cell) => reached.push(cell),
                        Change::Lost(cell) => reached.retain(|other| *other != cell),
                        other => panic!("{other:?} on a path"),
                    }
                }
                reached.sort_unstable();
                let now: Vec<Cell> = (0..3).map(Cell).filter(|cell| path.reaches(*cell)).collect();
                assert_eq!(reached, now);
            }
        }
    }

    /// The shadowing's deviation is the map's, and neighbouring looks are alike.
    #[test]
    fn shadowing_has_its_deviation_and_its_memory() {
        let map = street(6.0);
        let mut path = walk(6.0, 3);
        let (mut shadows, mut products) = (Vec::new(), Vec::new());
        for _ in 0..200_000 {
            let now = path.next_at().expect("it walks on");
            while path.poll(now).is_some() {}
            if let Some(signal) = path.signal(Cell(1)) {
                let shadow = signal - map.mean_signal(Cell(1), path.position());
                if let Some(last) = shadows.last() {
                    products.push(shadow * last);
                }
                shadows.push(shadow);
            }
        }
        let mean = |all: &[f64]| all.iter().sum::<f64>() / all.len() as f64;
        let variance = mean(&shadows.iter().map(|one| one * one).collect::<Vec<_>>());
        assert!((variance.sqrt() - 6.0).abs() < 0.3, "deviation {}", variance.sqrt());
        // One metre further: exp(-1 / 20).
        let correlation = mean(&products) / variance;
        assert!((correlation - 0.951).abs() < 0.01, "correlation {correlation}");
    }

    #[test]
    fn whoever_stands_still_stays() {
        let points = vec![Point { x: 1.0, y: 1.0 }];
        let walk = Walk::Points { points, speed: 1.0 };
        let step = Duration::from_secs(1);
        let mut path = Path::new(&Spec { map: street(0.0), walk, step, hysteresis: 5.0 }, (1, 0));
        assert_eq!(path.poll(Instant::ZERO + Duration::from_secs(100)), None);
        assert_eq!(path.position(), Point { x: 1.0, y: 1.0 });
    }
}
