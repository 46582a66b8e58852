//! How well the simulator's senders were held against the kernel's.
//!
//! `bench/validate.sh` runs random scenarios in both worlds and writes `data/validation.toml`,
//! which is part of the program, and docs/validation.md, which has every scenario. Measured is one
//! download between modern hosts; another direction, other hosts or other traffic are not
//! validated.

use crate::row::{Name, Row, World};
use core::fmt;
use node::Scenario;
use node::scenario::{Direction, Hosts, Sender, Switch, Traffic};
use serde::{Deserialize, Serialize};

/// What `bench/validate.sh` found.
const MEASURED: &str = include_str!("../data/validation.toml");

/// What both worlds said of a sender.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Held {
    /// Release of the kernel.
    pub kernel: String,
    /// The day of the last measurement, as in 2026-11-22.
    pub date: String,
    /// The simulator's commit.
    pub build: String,
    /// Random scenarios, each with every scheme.
    pub scenarios: u32,
    /// Median over scenarios and schemes of the error of the simulator's goodput, %.
    pub median_error_percent: f64,
    /// 95th percentile of the same, %.
    pub p95_error_percent: f64,
    /// Scenarios in which the scheme that the simulator prefers was, in the lab, less than
    /// [`crate::advice::WORTH_IT`] behind the best.
    pub winners_right: u32,
}

/// A sender of a comparison, and how well its model is known.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Validation {
    /// The sender.
    pub tcp: Name,
    /// Whether its hosts use SACK.
    pub sack: bool,
    /// Which way its data goes.
    pub direction: Name,
    /// Absent: it was not held against the kernel's, or not as it is used here.
    pub held: Option<Held>,
    /// It was, but only with bulk data toward the mobile host, between modern hosts.
    pub held_otherwise: bool,
}

/// The file.
#[derive(Deserialize)]
struct Measured {
    #[serde(default)]
    sender: Vec<MeasuredSender>,
}

#[derive(Deserialize)]
struct MeasuredSender {
    tcp: Sender,
    sack: Switch,
    #[serde(flatten)]
    held: Held,
}

/// The senders of the simulator's rows, in their order.
pub fn validation(scenario: &Scenario, rows: &[Row]) -> Vec<Validation> {
    let measured = measured(MEASURED);
    let like_lab = scenario.hosts == Hosts::Modern && scenario.traffic == Traffic::Bulk;
    let mut senders: Vec<Validation> = Vec::new();
    for row in rows.iter().filter(|row| row.world == World::Sim) {
        let is_same = |one: &Validation| {
            (one.tcp, one.sack, one.direction) == (row.tcp, row.sack, row.direction)
        };
        if senders.iter().any(is_same) {
            continue;
        }
        let is_row = |one: &&MeasuredSender| {
            // `linux` is `cubic`.
            let model = row.tcp.parse().map(Sender::simulated);
            Ok(one.tcp.simulated()) == model && (one.sack == Switch::On) == row.sack
        };
        let like_lab = like_lab && row.direction == Direction::Down.name();
        let known = measured.iter().find(is_row);
        let held = known.filter(|_| like_lab).map(|one| one.held.clone());
        let held_otherwise = known.is_some() && !like_lab;
        let (tcp, sack, direction) = (row.tcp, row.sack, row.direction);
        senders.push(Validation { tcp, sack, direction, held, held_otherwise });
    }
    senders
}

fn measured(text: &str) -> Vec<MeasuredSender> {
    let parsed: Result<Measured, _> = toml::from_str(text);
    parsed.expect("the file of the program is that of its tests").sender
}

impl fmt::Display for Validation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.tcp)?;
        if !self.sack {
            write!(f, ", SACK off")?;
        }
        if self.direction != Direction::Down.name() {
            write!(f, ", {}", self.direction)?;
        }
        let Some(held) = &self.held else {
            let only = match self.held_otherwise {
                true => " for this: only bulk data down, between modern hosts, was",
                false => "",
            };
            return write!(f, ": not validated{only}.");
        };
        write!(
            f,
            ": held against Linux {} in {} scenarios: median error {:.1} %, p95 {:.1} %, winner \
             right in {} of {} (docs/validation.md).",
            held.series(),
            held.scenarios,
            held.median_error_percent,
            held.p95_error_percent,
            held.winners_right,
            held.scenarios
        )
    }
}

impl Held {
    /// The kernel's first two numbers.
    fn series(&self) -> String {
        self.kernel.split('.').take(2).collect::<Vec<_>>().join(".")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advice::WORTH_IT;
    use crate::statistics::Quantiles;
    use node::scenario::Axis;
    use node::{Draft, Plan};

    const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/validation.md");

    /// A table row: the goodput of each scheme in both worlds.
    struct Shown(Vec<(f64, f64)>);

    impl Shown {
        fn errors(&self) -> impl Iterator<Item = f64> {
            self.0.iter().map(|(lab, sim)| 100.0 * (sim / lab - 1.0).abs())
        }

        fn is_right(&self) -> bool {
            let best = self.0.iter().map(|one| one.0).fold(0.0, f64::max);
            let preferred = self.0.iter().max_by(|a, b| a.1.total_cmp(&b.1)).expect("schemes");
            best < WORTH_IT * preferred.0
        }
    }

    /// The rows of a sender on the page.
    fn shown(page: &str, tcp: &str, sack: &str) -> Vec<Shown> {
        let heading = format!("## {tcp}, SACK {sack}\n");
        let section = page.split_once(&heading).expect("the sender has a section").1;
        let section = section.split("\n## ").next().expect("a section has an end");
        let rows = section.lines().filter(|line| line.starts_with("| ")).skip(1);
        let goodputs = |line: &str| {
            let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
            let number = |cell: &str| cell.parse::<f64>().expect("a goodput");
            // Six cells say which scenario it is; then come three for each scheme.
            Shown((6..15).step_by(3).map(|n| (number(cells[n]), number(cells[n + 1]))).collect())
        };
        rows.map(goodputs).collect()
    }

    #[test]
    fn the_figures_of_the_program_are_those_of_the_page() {
        let page = std::fs::read_to_string(PAGE).expect("docs/validation.md");
        for MeasuredSender { tcp, sack, held } in measured(MEASURED) {
            let rows = shown(&page, tcp.name(), sack.name());
            let name = format!("{tcp}, SACK {sack}");
            assert_eq!(rows.len(), held.scenarios as usize, "{name}: scenarios");
            let errors: Vec<f64> = rows.iter().flat_map(Shown::errors).collect();
            let errors = Quantiles::of(&errors).expect("rows");
            for (shown, own) in
                [(errors.p50, held.median_error_percent), (errors.p95, held.p95_error_percent)]
            {
                assert!((shown - own).abs() < 0.051, "{name}: {own} %, but the page has {shown}");
            }
            let right = rows.iter().filter(|row| row.is_right()).count();
            assert_eq!(right, held.winners_right as usize, "{name}: winners");
        }
    }

    /// A row of the simulator without any run.
    fn row(tcp: Sender, sack: Switch, direction: Direction) -> (Scenario, Row) {
        let (tcp, sack) = (Some(Axis(vec![tcp])), Some(Axis(vec![sack])));
        let direction = Some(Axis(vec![direction]));
        let draft = Draft { tcp, sack, direction, ..Draft::default() };
        let scenario = Scenario::complete(draft).expect("complete");
        let case = &scenario.cases()[0];
        let row = Row::new(case, &Plan::for_lab(&scenario, case), World::Sim, Vec::new());
        (scenario, row)
    }

    fn held() -> Held {
        Held {
            kernel: "6.18.44-generic".into(),
            date: "2026-11-22".into(),
            build: "1234567".into(),
            scenarios: 64,
            median_error_percent: 3.2,
            p95_error_percent: 14.0,
            winners_right: 60,
        }
    }

    #[test]
    fn a_sender_says_how_it_was_held_or_that_it_was_not() {
        let (tcp, direction) = ("cubic", "down");
        let known =
            Validation { tcp, sack: true, direction, held: Some(held()), held_otherwise: false };
        assert_eq!(
            known.to_string(),
            "cubic: held against Linux 6.18 in 64 scenarios: median error 3.2 %, p95 14.0 %, \
             winner right in 60 of 64 (docs/validation.md)."
        );
        let unknown = Validation {
            tcp: "reno",
            sack: false,
            direction: "up",
            held: None,
            held_otherwise: false,
        };
        assert_eq!(unknown.to_string(), "reno, SACK off, up: not validated.");
        let otherwise = Validation { held_otherwise: true, ..unknown };
        let words = "reno, SACK off, up: not validated for this: only bulk data down, between \
                     modern hosts, was.";
        assert_eq!(otherwise.to_string(), words);
    }

    #[test]
    fn only_what_the_lab_measured_is_validated() {
        let is_held = |(scenario, row): (Scenario, Row)| {
            let senders = validation(&scenario, &[row.clone(), row]);
            assert_eq!(senders.len(), 1, "each sender once");
            senders[0].held.is_some()
        };
        for MeasuredSender { tcp, sack, .. } in measured(MEASURED) {
            assert!(is_held(row(tcp, sack, Direction::Down)));
            assert!(!is_held(row(tcp, sack, Direction::Up)));
            let (mut scenario, row) = row(tcp, sack, Direction::Down);
            scenario.hosts = Hosts::Bsd1995;
            assert!(!is_held((scenario, row)));
        }
        let cubic = is_held(row(Sender::Cubic, Switch::On, Direction::Down));
        assert_eq!(is_held(row(Sender::Linux, Switch::On, Direction::Down)), cubic);
        assert!(!is_held(row(Sender::NewReno, Switch::On, Direction::Down)));
    }
}
