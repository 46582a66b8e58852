//! A walk through a map, as people write it in a scenario file: where base stations stand, how far
//! they reach, where mobile hosts go.
//!
//! ```toml
//! [map]
//! stations = ["50m,15m", "200m,15m"]
//! walk = ["20m,0m", "230m,0m"]
//! speed = "10m/s"
//! signal = "70dB"
//! ```

use super::document::SettingError;
use super::quantity::{QuantityError, as_text, with_unit};
use crate::movement::path::{self, Point, Station, Walk};
use crate::movement::{Cell, FLOOR};
use core::fmt;
use core::str::FromStr;
use sansio::Duration;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The table `[map]` of a scenario. Hosts walk from place to place, and back the same way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Map {
    /// Where the base stations stand, that of cell 0 first: 2 to 4096.
    pub stations: Vec<Place>,
    /// Where hosts go, from the first place on: at least two different ones.
    pub walk: Vec<Place>,
    /// How fast.
    pub speed: Speed,
    /// Signal-to-noise ratio of each base station at one metre.
    pub signal: Decibels,
    /// Path loss exponent: 2 in the open, 3 to 4 among buildings.
    #[serde(default = "Exponent::streets")]
    pub path_loss: Exponent,
    /// Standard deviation of the shadowing; none unless said.
    #[serde(default)]
    pub shadowing: Decibels,
    /// Metres after which shadowing has lost 63 % of its memory.
    #[serde(default = "Metres::decorrelation")]
    pub decorrelation: Metres,
    /// By how much another base station has to be stronger before a host goes there (MCAST-10).
    #[serde(default = "Decibels::hysteresis")]
    pub hysteresis: Decibels,
}

/// A place on the map: metres to the east and to the north of its corner.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Place(pub Point);

/// A length, up to 1000 km.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Metres(pub f64);

/// A speed in metres per second, above 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Speed(pub f64);

/// A ratio of powers, 0 to 200 dB.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Decibels(pub f64);

/// A path loss exponent, 1 to 8.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Exponent(pub f64);

as_text!(Place, Metres, Speed, Decibels, Exponent);

impl Exponent {
    fn streets() -> Self {
        Exponent(3.0)
    }
}

impl Metres {
    /// Among buildings; in the open it is much more.
    fn decorrelation() -> Self {
        Metres(20.0)
    }
}

impl Decibels {
    /// PAR-8.
    fn hysteresis() -> Self {
        Decibels(5.0)
    }
}

impl Map {
    /// How often the signal is looked at.
    const STEP: Duration = Duration::from_millis(100);
    /// More base stations have no addresses.
    const STATIONS: core::ops::RangeInclusive<usize> =
        2..=crate::roaming::address::STATIONS_MAX as usize;

    /// As the movement has it.
    pub fn path(&self) -> path::Spec {
        let station = |place: &Place| Station { at: place.0, signal: self.signal.0 };
        let stations = self.stations.iter().map(station).collect();
        let (exponent, shadowing) = (self.path_loss.0, self.shadowing.0);
        let map = path::Map::new(stations, exponent, shadowing, self.decorrelation.0);
        let points = self.walk.iter().map(|place| place.0).collect();
        let walk = Walk::Points { points, speed: self.speed.0 };
        path::Spec { map: Arc::new(map), walk, step: Self::STEP, hysteresis: self.hysteresis.0 }
    }

    /// Sees that hosts move, begin in a cell, and that there is no cell that they never reach.
    pub(super) fn check(&self) -> Result<(), SettingError> {
        let refuse =
            |key, value: String, expected: String| Err(SettingError { key, value, expected });
        if !Self::STATIONS.contains(&self.stations.len()) {
            let value = format!("{} places", self.stations.len());
            return refuse("stations", value, "2 to 4096 places".into());
        }
        let [first, ..] = self.walk.as_slice() else {
            return refuse("walk", "[]".into(), "at least two different places".into());
        };
        if self.walk.iter().all(|place| place == first) {
            let expected = "at least two different places: a host that stays has no handoffs";
            return refuse("walk", first.to_string(), expected.into());
        }
        let map = self.path().map;
        let needed = FLOOR + path::Map::MARGIN;
        for (number, station) in (0..).zip(&self.stations) {
            let nearest = self.nearest_to(station.0);
            let signal = map.mean_signal(Cell(number), nearest);
            if signal < needed {
                let expected = format!(
                    "a place that covers the walk somewhere: at {}, where hosts come nearest, \
                     the signal is {signal:.1} dB, and they need {needed} dB",
                    Place(nearest)
                );
                return refuse("stations", station.to_string(), expected);
            }
        }
        let strongest = (0..self.stations.len())
            .map(|number| map.mean_signal(Cell(number as u16), first.0))
            .fold(f64::MIN, f64::max);
        if strongest < needed {
            let expected = format!(
                "a beginning in a cell: the strongest signal there is {strongest:.1} dB, and \
                 hosts need {needed} dB"
            );
            return refuse("walk", first.to_string(), expected);
        }
        Ok(())
    }

    /// The point of the walk that is nearest to another one.
    fn nearest_to(&self, other: Point) -> Point {
        let legs = self.walk.windows(2).map(|leg| on_leg(leg[0].0, leg[1].0, other));
        let far = |point: &Point| libm::hypot(point.x - other.x, point.y - other.y);
        legs.min_by(|one, two| far(one).total_cmp(&far(two))).unwrap_or(other)
    }
}

/// The point between two that is nearest to a third.
fn on_leg(from: Point, to: Point, other: Point) -> Point {
    let (dx, dy) = (to.x - from.x, to.y - from.y);
    let length = (dx * dx + dy * dy).max(f64::MIN_POSITIVE);
    let share = ((other.x - from.x) * dx + (other.y - from.y) * dy) / length;
    let share = share.clamp(0.0, 1.0);
    Point { x: from.x + share * dx, y: from.y + share * dy }
}

const METRES: [(&str, f64); 2] = [("m", 1.0), ("km", 1e3)];
const METRES_MAX: f64 = 1e6;

fn metres(text: &str) -> Option<f64> {
    with_unit(text, &METRES).filter(|metres| (0.0..=METRES_MAX).contains(metres))
}

impl FromStr for Place {
    type Err = QuantityError;
    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let place = text
            .split_once(',')
            .and_then(|(x, y)| Some(Place(Point { x: metres(x)?, y: metres(y)? })));
        place.ok_or_else(|| QuantityError {
            value: text.to_owned(),
            what: "a place",
            expected: "its distance to the east and to the north of the map's corner, each 0m to \
                       1000km, as in 120m,15m",
        })
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}m,{}m", self.0.x, self.0.y)
    }
}

impl FromStr for Metres {
    type Err = QuantityError;
    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let length = metres(text).filter(|metres| *metres > 0.0).map(Metres);
        length.ok_or_else(|| QuantityError {
            value: text.to_owned(),
            what: "a length",
            expected: "more than 0m, up to 1000km, as in 20m",
        })
    }
}

impl fmt::Display for Metres {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}m", self.0)
    }
}

impl FromStr for Speed {
    type Err = QuantityError;
    fn from_str(text: &str) -> Result<Self, QuantityError> {
        const UNITS: [(&str, f64); 2] = [("m/s", 1.0), ("km/h", 1.0 / 3.6)];
        const FASTEST: f64 = 1_000.0;
        let speed = with_unit(text, &UNITS).filter(|speed| *speed > 0.0 && *speed <= FASTEST);
        speed.map(Speed).ok_or_else(|| QuantityError {
            value: text.to_owned(),
            what: "a speed",
            expected: "more than 0m/s, up to 1000m/s with unit m/s or km/h, as in 1.5m/s",
        })
    }
}

impl fmt::Display for Speed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}m/s", self.0)
    }
}

impl FromStr for Decibels {
    type Err = QuantityError;
    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let ratio = with_unit(text, &[("dB", 1.0)]).filter(|ratio| (0.0..=200.0).contains(ratio));
        ratio.map(Decibels).ok_or_else(|| QuantityError {
            value: text.to_owned(),
            what: "a ratio of powers",
            expected: "0dB to 200dB, as in 70dB",
        })
    }
}

impl fmt::Display for Decibels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}dB", self.0)
    }
}

impl FromStr for Exponent {
    type Err = QuantityError;
    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let exponent = text.trim().parse().ok().filter(|exponent| (1.0..=8.0).contains(exponent));
        exponent.map(Exponent).ok_or_else(|| QuantityError {
            value: text.to_owned(),
            what: "a path loss exponent",
            expected: "a number from 1 to 8, as in 3.5",
        })
    }
}

impl fmt::Display for Exponent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use crate::scenario::{self, Handoff};
    use crate::{Draft, Plan, Scenario};

    const STREET: &str = "duration = \"30s\"\n[map]\n\
        stations = [\n  \"50m,15m\",\n  \"200m,15m\",\n]\n\
        walk = [\"20m,0m\", \"230m,0m\"]\nspeed = \"36km/h\"\nsignal = \"75dB\"\n";

    /// What is said of a scenario, with the line.
    fn refused(text: &str) -> String {
        match scenario::parse("a.toml", text) {
            Err(error) => error.to_string(),
            Ok(draft) => {
                let error = Scenario::complete(draft).expect_err(text);
                scenario::locate(&error, "a.toml", text).to_string()
            }
        }
    }

    fn with(from: &str, to: &str) -> String {
        assert!(STREET.contains(from), "{from}");
        refused(&STREET.replacen(from, to, 1))
    }

    #[test]
    fn a_map_makes_hosts_walk_and_prints_as_it_was() {
        let draft: Draft = scenario::parse("a.toml", STREET).expect("a scenario");
        let scenario = Scenario::complete(draft).expect("it is complete");
        assert_eq!(scenario.handoff.0, [Handoff::Walk]);
        assert_eq!(scenario.cells, 2);
        let map = scenario.map.as_ref().expect("a map");
        assert_eq!(map.speed.to_string(), "10m/s");
        assert_eq!(map.hysteresis.to_string(), "5dB");
        let text = toml::to_string(&scenario).expect("a document");
        let again: Draft = scenario::parse("b.toml", &text).expect("what was printed");
        assert_eq!(Scenario::complete(again).expect("complete"), scenario);
        let json = serde_json::to_string(&scenario).expect("a document");
        let again: Draft = scenario::parse("b.json", &json).expect("what was printed");
        assert_eq!(Scenario::complete(again).expect("complete"), scenario);
        let plan = Plan::new(&scenario, &scenario.cases()[0]).expect("a plan");
        assert_eq!(plan.movements(1)[0].first(), crate::movement::Cell(0), "the nearest one");
    }

    #[test]
    fn cells_that_never_cover_a_host_are_refused_with_line_and_signal() {
        let said = with("\"200m,15m\"", "\"2000m,15m\"");
        assert!(said.starts_with("a.toml:5: stations = 2000m,15m: expected a place"), "{said}");
        assert!(
            said.contains("at 230m,0m, where hosts come nearest, the signal is -22."),
            "{said}"
        );
        let said = with("\"20m,0m\"", "\"20m,900m\"");
        assert!(said.starts_with("a.toml:7: walk = 20m,900m: expected a beginning"), "{said}");
    }

    #[test]
    fn movements_that_contradict_each_other_are_refused() {
        let said = with("duration", "handoff = \"every=8s,overlap\"\nduration");
        assert!(said.starts_with("a.toml:1: handoff = every=8s,overlap: expected walk"), "{said}");
        let said = with("duration", "cells = 3\nduration");
        assert!(said.starts_with("a.toml:1: cells = 3: expected 2, as many as"), "{said}");
        let said = with("\"230m,0m\"", "\"20m,0m\"");
        assert!(said.contains("a.toml:7: walk = 20m,0m: expected at least two"), "{said}");
        let said = refused("handoff = \"walk\"\n");
        assert!(said.starts_with("a.toml:1: handoff = walk: expected a table [map]"), "{said}");
        let said = with("duration", "handoff = \"none\"\nduration");
        assert!(said.starts_with("a.toml:1: handoff = none: expected walk"), "{said}");
    }

    #[test]
    fn bad_numbers_and_unknown_keys_of_a_map_are_refused_with_their_line() {
        for (from, to, line, expected) in [
            ("\"50m,15m\"", "\"-50m,15m\"", 4, "0m to 1000km"),
            ("\"200m,15m\"", "\"200m\"", 5, "as in 120m,15m"),
            ("\"200m,15m\"", "\"200,15\"", 5, "as in 120m,15m"),
            ("\"36km/h\"", "\"0m/s\"", 8, "more than 0m/s"),
            ("\"75dB\"", "\"-75dB\"", 9, "0dB to 200dB"),
            ("\"75dB\"", "75", 9, "0dB to 200dB"),
            ("signal", "path-loss = 9\nsignal", 9, "1 to 8"),
            ("signal", "decorrelation = \"0m\"\nsignal", 9, "more than 0m"),
            ("signal", "strength = \"3dB\"\nsignal", 9, "unknown field `strength`"),
        ] {
            let said = with(from, to);
            assert!(said.starts_with(&format!("a.toml:{line}: ")), "{to}: {said}");
            assert!(said.contains(expected), "{to}: {said}");
        }
        assert!(with("speed = \"36km/h\"\n", "").contains("missing field `speed`"));
    }
}
