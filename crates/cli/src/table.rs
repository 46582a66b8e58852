//! Rows as a table, for the terminal and the report.

use report::table::{Cell, Column, Emphasis, Kind, Row as TableRow, Styling, Table};
use std::io::IsTerminal;
use study::Row;
use study::statistics::Quantiles;

/// Prints rows to stdout, as wide as the terminal is.
pub(crate) fn print(rows: &[Row]) {
    let terminal = std::io::stdout().is_terminal();
    let colour = terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let styling = if colour { Styling::Ansi } else { Styling::Plain };
    print!("{}", table(rows).render(None, styling));
}

/// The table of a comparison. Columns in which all rows agree (SACK, direction, channel) and
/// columns without any value are left out.
pub(crate) fn table(rows: &[Row]) -> Table {
    let columns: Vec<ColumnOf> = columns().into_iter().filter(|one| one.is_needed(rows)).collect();
    let mut table = Table {
        caption: "Each scheme under the same channel; means over the seeds, ± 95 % interval."
            .to_owned(),
        columns: columns.iter().map(|one| one.column.clone()).collect(),
        rows: Vec::new(),
    };
    let mut group = 0;
    for (index, row) in rows.iter().enumerate() {
        if index > 0 && !is_same_group(&rows[index - 1], row) {
            group += 1;
        }
        let cells = columns.iter().map(|one| (one.cell)(row)).collect();
        table.rows.push(TableRow { group, cells });
    }
    table
}

fn is_same_group(a: &Row, b: &Row) -> bool {
    let key = |row: &Row| {
        (row.tcp, row.sack, row.direction, row.ber.clone(), row.loss.clone(), row.outage.clone())
    };
    key(a) == key(b)
}

/// A column, how its cells are made, and when it is left out.
struct ColumnOf {
    column: Column,
    cell: fn(&Row) -> Cell,
    needed: Needed,
}

#[derive(Clone, Copy, PartialEq)]
enum Needed {
    Always,
    /// Only if rows differ in it.
    IfDiffers,
    /// Only if a row has a value other than none or zero.
    IfAny,
}

impl ColumnOf {
    fn is_needed(&self, rows: &[Row]) -> bool {
        match self.needed {
            Needed::Always => true,
            Needed::IfDiffers => {
                rows.windows(2).any(|two| (self.cell)(&two[0]).text != (self.cell)(&two[1]).text)
            }
            Needed::IfAny => rows.iter().any(|row| (self.cell)(row).value.is_some_and(|v| v > 0.0)),
        }
    }
}

fn columns() -> Vec<ColumnOf> {
    let mut columns = names();
    columns.extend(experience());
    columns.extend(cost());
    columns
}

fn names() -> Vec<ColumnOf> {
    let name = |name: &str, needed, cell| ColumnOf { column: Column::name(name), cell, needed };
    vec![
        name("tcp", Needed::Always, |row| Cell::text(row.tcp)),
        name("sack", Needed::IfDiffers, |row| Cell::text(if row.sack { "on" } else { "off" })),
        name("direction", Needed::IfDiffers, |row| Cell::text(row.direction)),
        name("bit errors", Needed::IfDiffers, |row| Cell::text(row.ber.clone())),
        name("loss", Needed::IfDiffers, |row| Cell::text(row.loss.clone())),
        name("outage", Needed::IfDiffers, |row| Cell::text(row.outage.clone())),
        name("world", Needed::IfDiffers, |row| Cell::text(world(row))),
        name("scheme", Needed::Always, |row| {
            let emphasis = if row.passed() { Emphasis::None } else { Emphasis::Warning };
            Cell::text(row.scheme.clone()).with(emphasis)
        }),
    ]
}

fn world(row: &Row) -> &'static str {
    match row.world {
        study::World::Sim => "sim",
        study::World::Lab => "lab",
    }
}

/// A column of values: name and unit, what is best, what it means, when it is shown, its cell.
fn value(
    (name, unit): (&str, &str),
    kind: Kind,
    explanation: &str,
    needed: Needed,
    cell: fn(&Row) -> Cell,
) -> ColumnOf {
    ColumnOf { column: Column::value(name, unit, kind).explained(explanation), cell, needed }
}

/// What a user of the link notices.
fn experience() -> Vec<ColumnOf> {
    use Kind::{HighestIsBest, LowestIsBest};
    use Needed::{Always, IfAny};
    let goodput = "bytes delivered in order over the time it took";
    let share = "of what the last hop can deliver at this error rate";
    let stall = "longest time of a run in which nothing was delivered";
    let after = "from the link's return to the first new ACK at the sender";
    let recovery = "from the link's return until 500 kB more are acknowledged";
    vec![
        value(("goodput", "Mbit/s"), HighestIsBest, goodput, Always, |row| {
            let Some(goodput) = row.goodput_bps else { return Cell::none() };
            let mbps = goodput.mean / 1e6;
            let interval = goodput.ci95.map_or(String::new(), |ci| format!(" ± {:.3}", ci / 1e6));
            Cell::number(mbps, format!("{mbps:.3}{interval}"))
        }),
        value(("of ceiling", "%"), HighestIsBest, share, Always, |row| {
            number(row.ceiling_share.map(|share| share * 100.0), 1)
        }),
        value(("stall p50/max", "s"), LowestIsBest, stall, Always, |row| pair(row.stall_s)),
        value(("after outage p50/p95/max", "s"), LowestIsBest, after, IfAny, |row| {
            triple(row.stall_after_outage_s)
        }),
        value(("to 500 kB p50/p95/max", "s"), LowestIsBest, recovery, IfAny, |row| {
            triple(row.recovery_after_outage_s)
        }),
        value(("latency p50/p95/max", "s"), LowestIsBest, "time a message takes", IfAny, |row| {
            triple(row.latency_s)
        }),
    ]
}

/// What it takes.
fn cost() -> Vec<ColumnOf> {
    use Kind::{LowestIsBest, Value};
    use Needed::{Always, IfAny};
    let end_to_end = "packets that the sender sent again, per run";
    let local = "packets that the base station sent again, per run";
    let timeouts = "retransmission timeouts of the sender, per run";
    let air = "everything on the air of the last hop, both ways";
    let given_up = "runs that did not deliver everything in 200 times the time";
    vec![
        value(("resent end to end", ""), Value, end_to_end, Always, |row| {
            number(Some(row.retransmissions_end_to_end), 1)
        }),
        value(("locally", ""), Value, local, IfAny, |row| {
            number(Some(row.retransmissions_local), 1)
        }),
        value(("probes", ""), Value, "probes of the base station, per run", IfAny, |row| {
            number(Some(row.probes), 1)
        }),
        value(("timeouts", ""), LowestIsBest, timeouts, Always, |row| {
            number(Some(row.timeouts), 1)
        }),
        value(("air bytes per byte", ""), LowestIsBest, air, Always, |row| {
            number(row.air_bytes_per_byte, 3)
        }),
        value(("base station", "KiB"), Value, "most bytes in its caches", IfAny, |row| {
            number(Some(row.base_station_bytes_max as f64 / 1024.0), 0)
        }),
        value(("given up", "runs"), Value, given_up, IfAny, |row| {
            number(Some(row.unfinished as f64), 0)
        }),
    ]
}

fn number(value: Option<f64>, digits: usize) -> Cell {
    value.map_or_else(Cell::none, |value| Cell::number(value, format!("{value:.digits$}")))
}

fn pair(quantiles: Option<Quantiles>) -> Cell {
    quantiles.map_or_else(Cell::none, |q| Cell::number(q.max, format!("{:.2}/{:.2}", q.p50, q.max)))
}

fn triple(quantiles: Option<Quantiles>) -> Cell {
    quantiles.map_or_else(Cell::none, |q| {
        Cell::number(q.p95, format!("{:.3}/{:.3}/{:.3}", q.p50, q.p95, q.max))
    })
}
