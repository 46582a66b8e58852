//! Writes the generated part of docs/handoff-matrix.md and its plot from the summary of
//! studies/handoffs.toml:
//!
//! ```text
//! cargo run --release -p lasthop-report --example handoff_matrix -- results/summary.json docs
//! ```
//!
//! Without a folder the part is printed.

use report::figure::{self, Axis, Figure, Form, Point, Series};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::{env, fs, process};

const BEST: &str = "best";
const PLAIN: &str = "mobile-ip";
const MARKS: [&str; 2] = ["<!-- matrix: begin -->\n", "<!-- matrix: end -->\n"];
const PAGE: &str = "handoff-matrix.md";
const PLOT: &str = "handoff-matrix.svg";
/// As much goodput as this share of another's is as much.
const SAME_GOODPUT: f64 = 0.98;
/// A time as long as another's with this factor and these seconds is as long.
const SAME_TIME: (f64, f64) = (1.1, 0.01);

/// One configuration's summary.
struct Row {
    cell: Cell,
    scheme: String,
    goodput: f64,
    goodput_ci: f64,
    stall: Option<Quantiles>,
    latency: Option<Quantiles>,
    lost: f64,
    messages: f64,
}

#[derive(Clone, Copy)]
struct Quantiles {
    p50: f64,
    p95: f64,
    max: f64,
}

/// Where schemes are compared.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Cell {
    is_bulk: bool,
    rtt_ms: u64,
    /// `overlap` first, then gaps by their length.
    border: (u64, String),
    tcp: String,
}

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let Some(summary) = arguments.first() else {
        eprintln!("expected the summary.json of a sweep of studies/handoffs.toml [and a folder]");
        process::exit(2);
    };
    let done = run(summary, arguments.get(1).map(String::as_str));
    if let Err(error) = done {
        eprintln!("{error}");
        process::exit(2);
    }
}

fn run(summary: &str, folder: Option<&str>) -> Result<(), String> {
    let text = fs::read_to_string(summary).map_err(|error| format!("{summary}: {error}"))?;
    let document: Value =
        serde_json::from_str(&text).map_err(|error| format!("{summary}: {error}"))?;
    let rows = document["rows"].as_array().ok_or(format!("{summary}: expected rows"))?;
    let rows: Option<Vec<Row>> = rows.iter().map(Row::read).collect();
    let rows = rows.ok_or(format!("{summary}: expected rows of a sweep with handoffs"))?;
    let mut cells: BTreeMap<&Cell, Vec<&Row>> = BTreeMap::new();
    rows.iter().for_each(|row| cells.entry(&row.cell).or_default().push(row));
    let part = part(&cells);
    let Some(folder) = folder else {
        print!("{part}");
        return Ok(());
    };
    let page = format!("{folder}/{PAGE}");
    let before = fs::read_to_string(&page).map_err(|error| format!("{page}: {error}"))?;
    let marked = before
        .split_once(MARKS[0])
        .and_then(|(head, rest)| rest.split_once(MARKS[1]).map(|(_, tail)| (head, tail)));
    let (head, tail) = marked.ok_or(format!("{page}: expected the marks of the matrix"))?;
    let text = format!("{head}{}{part}{}{tail}", MARKS[0], MARKS[1]);
    fs::write(&page, text).map_err(|error| format!("{page}: {error}"))?;
    let plot = format!("{folder}/{PLOT}");
    fs::write(&plot, figure::svg(&picture(&cells))).map_err(|error| format!("{plot}: {error}"))
}

impl Row {
    fn read(row: &Value) -> Option<Row> {
        let handoffs = &row["handoffs"];
        let border = row["handoff"].as_str()?.split(',').nth(1)?.to_owned();
        let gap = row["gap_s"].as_f64().map_or(0, |gap| 1 + (gap * 1e3) as u64);
        Some(Row {
            cell: Cell {
                is_bulk: row["traffic"].as_str()? == "bulk",
                rtt_ms: (row["rtt_s"].as_f64()? * 1e3).round() as u64,
                border: (gap, border.replace('=', " ")),
                tcp: row["tcp"].as_str()?.to_owned(),
            },
            scheme: row["scheme"].as_str()?.to_owned(),
            goodput: row["goodput_bps"]["mean"].as_f64()? / 1e6,
            goodput_ci: row["goodput_bps"]["ci95"].as_f64().unwrap_or(0.0) / 1e6,
            stall: Quantiles::read(&handoffs["receiver_stall_s"]),
            latency: Quantiles::read(&handoffs["latency_s"]),
            lost: handoffs["lost"].as_f64()?,
            messages: handoffs["messages"].as_f64()?,
        })
    }

    /// What is compared beside goodput: after bulk data the stall, with requests the latency.
    fn time(&self) -> Option<Quantiles> {
        if self.cell.is_bulk { self.stall } else { self.latency }
    }

    /// True if neither goodput nor time, that quantile of it, is worse than the other's.
    fn holds_against(&self, other: &Row, quantile: Quantile) -> bool {
        let is_slow = self.cell.is_bulk
            && self.goodput < SAME_GOODPUT * other.goodput
            && self.goodput + self.goodput_ci < other.goodput - other.goodput_ci;
        let (factor, seconds) = SAME_TIME;
        let is_late = match (self.time(), other.time()) {
            (Some(own), Some(theirs)) => quantile(&own) > quantile(&theirs) * factor + seconds,
            _ => false,
        };
        !is_slow && !is_late
    }
}

impl Quantiles {
    fn read(value: &Value) -> Option<Quantiles> {
        let read = |name| value[name].as_f64();
        Some(Quantiles { p50: read("p50")?, p95: read("p95")?, max: read("max")? })
    }
}

type Quantile = fn(&Quantiles) -> f64;

const MEDIAN: Quantile = |of| of.p50;
const P95: Quantile = |of| of.p95;

type Cells<'a> = BTreeMap<&'a Cell, Vec<&'a Row>>;

fn named<'a>(rows: &[&'a Row], scheme: &str) -> Option<&'a Row> {
    rows.iter().find(|row| row.scheme == scheme).copied()
}

fn part(cells: &Cells<'_>) -> String {
    let mut out = String::new();
    let held = |quantile| cells.values().filter(|rows| holds(rows, BEST, quantile)).count();
    let _ = writeln!(
        out,
        "In {} of {} cells `{BEST}` wins or ties: no other scheme has more than {:.0} % more \
         goodput beyond both 95 % intervals, or a median stall or latency shorter than its own by \
         more than a tenth and {:.0} ms. With the 95th percentile in place of the median: {}.\n",
        held(MEDIAN),
        cells.len(),
        (1.0 - SAME_GOODPUT) * 100.0,
        SAME_TIME.1 * 1e3,
        held(P95)
    );
    let _ = writeln!(out, "![Stall at the receiver after a handoff, cubic, 50 ms]({PLOT})\n");
    schemes(&mut out, cells);
    lost_cells(&mut out, cells);
    for is_bulk in [true, false] {
        let mut rtts: Vec<u64> =
            cells.keys().filter(|cell| cell.is_bulk == is_bulk).map(|cell| cell.rtt_ms).collect();
        rtts.dedup();
        for rtt_ms in rtts {
            detail(&mut out, cells, (is_bulk, rtt_ms));
        }
    }
    out
}

fn holds(rows: &[&Row], scheme: &str, quantile: Quantile) -> bool {
    let own = named(rows, scheme);
    own.is_some_and(|own| rows.iter().all(|other| own.holds_against(other, quantile)))
}

/// A line for each scheme, over all cells.
fn schemes(out: &mut String, cells: &Cells<'_>) {
    out.push_str(
        "## All schemes\n\nOver all cells, against `mobile-ip`: geometric means; of the stall and \
         the latency, the median of a cell.\n\n\
         | scheme | goodput | least | stall | latency of requests | lost per handoff | messages \
         per handoff | wins or ties |\n|---|---|---|---|---|---|---|---|\n",
    );
    let names = cells.values().next().into_iter().flatten().map(|row| row.scheme.as_str());
    for name in names.collect::<Vec<_>>() {
        let pairs = || {
            let rows = cells.values();
            rows.filter_map(|rows| Some((named(rows, name)?, named(rows, PLAIN)?)))
        };
        let ratios = |of: fn(&Row) -> Option<f64>, is_bulk: bool| -> Vec<f64> {
            let pairs = pairs().filter(|(own, _)| own.cell.is_bulk == is_bulk);
            pairs.filter_map(|(own, plain)| Some(of(own)? / of(plain)?)).collect()
        };
        let goodputs = ratios(|row| Some(row.goodput), true);
        let least = goodputs.iter().copied().fold(f64::INFINITY, f64::min);
        let mean = |of: fn(&Row) -> f64| {
            let values: Vec<f64> = pairs().map(|(own, _)| of(own)).collect();
            values.iter().sum::<f64>() / values.len().max(1) as f64
        };
        let held = cells.values().filter(|rows| holds(rows, name, MEDIAN)).count();
        let _ = writeln!(
            out,
            "| `{name}` | {:.2} x | {least:.2} x | {:.2} x | {:.2} x | {:.0} | {:.0} | {held} \
             of {} |",
            geometric(&goodputs),
            geometric(&ratios(|row| row.stall.map(|stall| stall.p50), true)),
            geometric(&ratios(|row| row.latency.map(|latency| latency.p95), false)),
            mean(|row| row.lost),
            mean(|row| row.messages),
            cells.len()
        );
    }
    out.push('\n');
}

fn geometric(ratios: &[f64]) -> f64 {
    let logarithms = ratios.iter().filter(|ratio| **ratio > 0.0).map(|ratio| libm::log(*ratio));
    libm::exp(logarithms.sum::<f64>() / ratios.len().max(1) as f64)
}

/// The cells in which `best` neither wins nor ties.
fn lost_cells(out: &mut String, cells: &Cells<'_>) {
    let _ = writeln!(out, "## Where `{BEST}` does not win\n");
    out.push_str(
        "| traffic | round trip | cells | sender | `best` | ahead | by |\n\
         |---|---|---|---|---|---|---|\n",
    );
    for (cell, rows) in cells {
        let Some(best) = named(rows, BEST) else { continue };
        for other in rows.iter().filter(|other| !best.holds_against(other, MEDIAN)).take(2) {
            let _ = writeln!(
                out,
                "| {} | {} ms | {} | {} | {} | `{}` | {} |",
                if cell.is_bulk { "bulk" } else { "requests" },
                cell.rtt_ms,
                cell.border.1,
                cell.tcp,
                values(best),
                other.scheme,
                values(other)
            );
        }
    }
    out.push('\n');
}

/// Goodput, and median and 95th percentile of stall or latency.
fn values(row: &Row) -> String {
    let time = row
        .time()
        .map_or_else(String::new, |time| format!("{:.0}/{:.0} ms", time.p50 * 1e3, time.p95 * 1e3));
    if row.cell.is_bulk { format!("{:.2} Mbit/s, {time}", row.goodput) } else { time }
}

/// All senders and borders at one round trip: plain, the best of the others, `best`.
fn detail(out: &mut String, cells: &Cells<'_>, (is_bulk, rtt_ms): (bool, u64)) {
    let what = if is_bulk {
        "bulk: goodput, stall at the receiver p50/p95"
    } else {
        "requests: latency around a handoff p50/p95"
    };
    let _ = writeln!(out, "## Round trip {rtt_ms} ms, {what}\n");
    out.push_str(
        "| cells | sender | `mobile-ip` | next | | `best` | |\n|---|---|---|---|---|---|---|\n",
    );
    let here = cells.iter().filter(|(cell, _)| (cell.is_bulk, cell.rtt_ms) == (is_bulk, rtt_ms));
    for (cell, rows) in here {
        let (Some(plain), Some(best)) = (named(rows, PLAIN), named(rows, BEST)) else { continue };
        let others = rows.iter().filter(|row| row.scheme != BEST);
        let key = |row: &Row| match row.time() {
            Some(time) if !is_bulk => -time.p95,
            _ => row.goodput,
        };
        let Some(next) = others.max_by(|a, b| key(a).total_cmp(&key(b))) else { continue };
        let longest = best
            .time()
            .map_or_else(String::new, |time| format!("longest {:.0} ms", time.max * 1e3));
        let _ = writeln!(
            out,
            "| {} | {} | {} | `{}` | {} | {} | {longest} |",
            cell.border.1,
            cell.tcp,
            values(plain),
            next.scheme,
            values(next),
            values(best)
        );
    }
    out.push('\n');
}

/// Median and 95th percentile of the stall over the border of the cells, for today's sender.
fn picture(cells: &Cells<'_>) -> Figure {
    const SHOWN: [&str; 6] = [
        PLAIN,
        "forwarding",
        "fast-retransmit-marked",
        "snoop+multicast",
        "prefetch+window-station",
        BEST,
    ];
    let here: Vec<(&&Cell, &Vec<&Row>)> = cells
        .iter()
        .filter(|(cell, _)| cell.is_bulk && cell.rtt_ms == 50 && cell.tcp == "linux")
        .collect();
    let series = SHOWN.iter().enumerate().map(|(colour, name)| Series {
        name: (*name).to_owned(),
        colour,
        form: Form::OursApart,
        points: (0..)
            .zip(&here)
            .filter_map(|(place, (_, rows))| {
                let stall = named(rows, name)?.stall?;
                let interval = Some((stall.p50, stall.p95));
                Some(Point { x: f64::from(place), y: stall.p50, interval })
            })
            .collect(),
    });
    Figure {
        name: "handoff-matrix".into(),
        title: "Stall at the receiver after a handoff: Linux (cubic), round trip 50 ms".into(),
        caption: "Marks: medians over all handoffs; bars reach to the 95th percentile.".into(),
        x: Axis {
            label: "how two cells meet".into(),
            places: here.iter().map(|(cell, _)| cell.border.1.clone()).collect(),
        },
        y: Axis { label: "stall, s".into(), places: Vec::new() },
        series: series.collect(),
    }
}
