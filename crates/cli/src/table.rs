//! Rows as a table, for the terminal and the report.
//!
//! A comparison shows means with their intervals: more seeds narrow them. A table with rows of the
//! lab shows medians with the smallest and the largest run, of its predictions, too: one run that
//! the machine disturbed must not move the result.

mod handoffs;

use crate::output;
use node::scenario::Loss;
use report::table::{Cell, Column, Emphasis, Kind, Row as TableRow, Styling, Table};
use std::io::IsTerminal;
use study::statistics::{Mean, Quantiles};
use study::{Lateness, QueueDelay, Row, Sample, Validation, World};

/// Prints rows to stdout, the table's sentence above them.
pub(crate) fn print(rows: &[Row]) {
    let terminal = std::io::stdout().is_terminal();
    let colour = terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let styling = if colour { Styling::Ansi } else { Styling::Plain };
    let table = table(rows);
    output::print(format_args!("{}\n\n{}", table.caption, table.render(None, styling)));
}

/// What stands for the runs of a row.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Statistic {
    Mean,
    Median,
}

impl Statistic {
    /// Medians as soon as a row was measured in the lab.
    pub(crate) fn of(rows: &[Row]) -> Self {
        let measured = rows.iter().any(|row| row.world == World::Lab);
        if measured { Statistic::Median } else { Statistic::Mean }
    }

    fn caption(self, rows: &[Row]) -> String {
        let seeds = match rows.iter().map(|row| row.seeds).max() {
            Some(1) => "one seed".to_owned(),
            seeds => format!("{} seeds", seeds.unwrap_or(0)),
        };
        match self {
            Statistic::Mean => {
                format!("Each scheme under the same channel: means over {seeds}, ± 95 % interval.")
            }
            Statistic::Median => {
                let predicted = rows.iter().any(|row| row.world == World::Sim);
                let sim = if predicted { "; sim is the simulator's prediction" } else { "" };
                format!(
                    "Each scheme under the same channel: medians over {seeds} \
                     (smallest-largest){sim}."
                )
            }
        }
    }

    /// A value of each run: its mean as the row has it, or the median.
    fn over(self, row: &Row, mean: f64, of: fn(&Sample) -> f64) -> Option<f64> {
        match self {
            Statistic::Mean => Some(mean),
            Statistic::Median => {
                let values: Vec<f64> = row.samples.iter().map(of).collect();
                Quantiles::of(&values).map(|quantiles| quantiles.p50)
            }
        }
    }

    /// What stands for these runs, and the interval around it: 95 %, or smallest and largest.
    pub(crate) fn point(self, of: &Mean) -> (f64, Option<(f64, f64)>) {
        match self {
            Statistic::Mean => (of.mean, of.ci95.map(|ci| ((of.mean - ci).max(0.0), of.mean + ci))),
            Statistic::Median => (of.p50, Some((of.min, of.max))),
        }
    }

    /// What the interval is.
    pub(crate) fn interval(self) -> &'static str {
        match self {
            Statistic::Mean => "95 % interval",
            Statistic::Median => "smallest to largest",
        }
    }

    fn goodput(self, row: &Row) -> Cell {
        let Some(goodput) = row.goodput_bps else { return Cell::none() };
        let mbps = |bps: f64| bps / 1e6;
        let value = mbps(self.point(&goodput).0);
        let spread = match (self, goodput.ci95) {
            (Statistic::Mean, Some(ci)) => format!(" ± {:.3}", mbps(ci)),
            (Statistic::Mean, None) => String::new(),
            (Statistic::Median, _) if row.seeds == 1 => String::new(),
            (Statistic::Median, _) => {
                format!(" ({:.3}-{:.3})", mbps(goodput.min), mbps(goodput.max))
            }
        };
        Cell::number(value, format!("{value:.3}{spread}"))
    }

    fn of_ceiling(self, row: &Row) -> Option<f64> {
        match self {
            Statistic::Mean => row.ceiling_share,
            Statistic::Median => {
                let goodput = row.goodput_bps.filter(|_| row.ceiling_bps > 0.0);
                goodput.map(|goodput| goodput.p50 / row.ceiling_bps)
            }
        }
    }
}

/// The table of a comparison. Columns in which all rows agree (SACK, direction, channel) and
/// columns without any value are left out.
pub(crate) fn table(rows: &[Row]) -> Table {
    let statistic = Statistic::of(rows);
    let columns = columns(statistic).into_iter();
    let columns: Vec<ColumnOf> = columns.filter(|one| one.is_needed(rows)).collect();
    let mut table = Table {
        caption: statistic.caption(rows),
        columns: columns.iter().map(|one| one.column.clone()).collect(),
        rows: Vec::new(),
    };
    let mut group = 0;
    for (index, row) in rows.iter().enumerate() {
        if index > 0 && !is_same_group(&rows[index - 1], row) {
            group += 1;
        }
        let cells = columns.iter().map(|one| (one.cell)(row, statistic)).collect();
        table.rows.push(TableRow { group, class: row.world as u32, cells });
    }
    table
}

/// The losses of a row; measured runs by the names of their files, without folders.
fn loss(row: &Row) -> String {
    match row.loss.parse() {
        Ok(Loss::Runs { good, bad }) => {
            let name = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
            Loss::Runs { good: name(&good), bad: name(&bad) }.to_string()
        }
        _ => row.loss.clone(),
    }
}

fn is_same_group(a: &Row, b: &Row) -> bool {
    let key = |row: &Row| {
        (row.tcp, row.sack, row.direction, row.ber.clone(), row.loss.clone(), row.outage.clone())
    };
    key(a) == key(b) && a.handoff == b.handoff
}

/// A column, how its cells are made, and when it is left out.
struct ColumnOf {
    column: Column,
    cell: fn(&Row, Statistic) -> Cell,
    needed: Needed,
}

#[derive(Clone, Copy, PartialEq)]
enum Needed {
    Always,
    /// Only if rows differ in it.
    IfDiffers,
    /// Only if a row has a value other than none or zero.
    IfAny,
    /// Only if a row has a value.
    IfKnown,
    /// Only if the largest value is a fifth above the smallest.
    IfSpread,
}

impl ColumnOf {
    fn is_needed(&self, rows: &[Row]) -> bool {
        // The median of what happened in few runs is none: the mean says that it happened.
        let cell = |row| (self.cell)(row, Statistic::Mean);
        match self.needed {
            Needed::Always => true,
            Needed::IfDiffers => {
                rows.windows(2).any(|two| cell(&two[0]).text != cell(&two[1]).text)
            }
            Needed::IfSpread => {
                let values = || rows.iter().filter_map(|row| cell(row).value);
                values().fold(0.0, f64::max) > 1.2 * values().fold(f64::INFINITY, f64::min)
            }
            Needed::IfKnown => rows.iter().any(|row| cell(row).value.is_some()),
            Needed::IfAny => rows.iter().any(|row| cell(row).value.is_some_and(|v| v > 0.0)),
        }
    }
}

fn columns(statistic: Statistic) -> Vec<ColumnOf> {
    let mut columns = names();
    columns.extend(experience(statistic));
    columns.extend(handoffs::columns());
    columns.extend(neighbours());
    columns.extend(cost());
    columns
}

fn names() -> Vec<ColumnOf> {
    let name = |name: &str, needed, cell| ColumnOf { column: Column::name(name), cell, needed };
    vec![
        name("tcp", Needed::Always, |row, _| Cell::text(row.tcp)),
        name("sack", Needed::IfDiffers, |row, _| Cell::text(if row.sack { "on" } else { "off" })),
        name("direction", Needed::IfDiffers, |row, _| Cell::text(row.direction)),
        name("bit errors", Needed::IfDiffers, |row, _| Cell::text(row.ber.clone())),
        name("loss", Needed::IfDiffers, |row, _| Cell::text(loss(row))),
        name("outage", Needed::IfDiffers, |row, _| Cell::text(row.outage.clone())),
        name("handoff", Needed::IfDiffers, |row, _| Cell::text(handoff(row))),
        name("world", Needed::IfDiffers, |row, _| Cell::text(world(row))),
        name("scheme", Needed::Always, |row, _| {
            let emphasis = if row.passed() { Emphasis::None } else { Emphasis::Warning };
            Cell::text(row.scheme.clone()).with(emphasis)
        }),
    ]
}

fn handoff(row: &Row) -> &str {
    row.handoff.as_deref().unwrap_or("none")
}

fn world(row: &Row) -> &'static str {
    match row.world {
        World::Sim => "sim",
        World::Lab => "lab",
    }
}

/// A column of values: name and unit, what is best, what it means, when it is shown, its cell.
fn value(
    (name, unit): (&str, &str),
    kind: Kind,
    explanation: &str,
    needed: Needed,
    cell: fn(&Row, Statistic) -> Cell,
) -> ColumnOf {
    ColumnOf { column: Column::value(name, unit, kind).explained(explanation), cell, needed }
}

/// What a user of the link notices.
fn experience(statistic: Statistic) -> Vec<ColumnOf> {
    use Kind::{HighestIsBest, LowestIsBest, Value};
    use Needed::{Always, IfAny, IfSpread};
    let goodput = "bytes delivered in order over the time it took";
    let share = "of what the last hop can deliver at this error rate";
    let stall = "longest time of a run in which nothing was delivered";
    let after = "from the link's return to the first new ACK at the sender";
    let (goodput_of, share_of) = match statistic {
        Statistic::Mean => (("goodput", "Mbit/s"), "of ceiling"),
        Statistic::Median => (("goodput p50", "Mbit/s (min-max)"), "of ceiling p50"),
    };
    let recovery = "from the link's return until 500 kB more are acknowledged";
    let queue = "what data waits at the last hop, means over the runs";
    vec![
        value(goodput_of, HighestIsBest, goodput, Always, |row, by| by.goodput(row)),
        value((share_of, "%"), HighestIsBest, share, Always, |row, by| {
            number(by.of_ceiling(row).map(|share| share * 100.0), 1)
        }),
        value(("stall p50/max", "s"), LowestIsBest, stall, Always, |row, _| pair(row.stall_s)),
        value(("after outage p50/p95/max", "s"), LowestIsBest, after, IfAny, |row, _| {
            triple(row.stall_after_outage_s)
        }),
        value(("to 500 kB p50/p95/max", "s"), LowestIsBest, recovery, IfAny, |row, _| {
            triple(row.recovery_after_outage_s)
        }),
        value(
            ("latency p50/p99/max", "s"),
            LowestIsBest,
            "time a message takes, from application to application",
            IfAny,
            |row, _| latency_cell(row.latency_s),
        ),
        // A queue is short, too, where the link stands idle: none is better than another.
        value(("queue p50/p99", "ms"), Value, queue, IfSpread, |row, _| {
            queue_delay(row.queue_delay_s)
        }),
    ]
}

/// How several mobile hosts at one base station share it.
fn neighbours() -> Vec<ColumnOf> {
    use Kind::{HighestIsBest, LowestIsBest};
    use Needed::IfKnown;
    let jain = "Jain's index of the mobile hosts' goodputs: 1 if all get the same";
    let goodput = "goodput of each mobile host but the first, mean";
    let change = "what those gain (+) or lose (-) against plain with the same seeds";
    let latency = "time a message takes at those mobile hosts";
    vec![
        value(("Jain", ""), HighestIsBest, jain, IfKnown, |row, _| {
            number(row.mobiles.as_ref().and_then(|one| one.jain).map(|jain| jain.mean), 3)
        }),
        value(("neighbours", "Mbit/s"), HighestIsBest, goodput, IfKnown, |row, _| {
            let goodput = row.mobiles.as_ref().and_then(|one| one.neighbour_bps);
            number(goodput.map(|goodput| goodput.mean / 1e6), 3)
        }),
        value(("against plain", "%"), HighestIsBest, change, IfKnown, |row, _| {
            let change = row.mobiles.as_ref().and_then(|mobiles| mobiles.neighbour_change);
            change.map_or_else(Cell::none, |change| {
                let ci = change.ci95.map_or(String::new(), |ci| format!(" ± {:.1}", ci * 100.0));
                Cell::number(change.mean * 100.0, format!("{:+.1}{ci}", change.mean * 100.0))
            })
        }),
        value(("their latency p50/p99/max", "s"), LowestIsBest, latency, IfKnown, |row, _| {
            latency_cell(row.mobiles.as_ref().and_then(|mobiles| mobiles.neighbour_latency_s))
        }),
    ]
}

/// What it takes.
fn cost() -> Vec<ColumnOf> {
    use Kind::{LowestIsBest, Value};
    use Needed::{Always, IfAny, IfKnown};
    let end_to_end = "packets that the sender sent again, per run";
    let local = "packets that the base station sent again, per run";
    let probes = "probes of the base station, per run";
    let share = "bytes of probes over all bytes on the air, in all runs";
    let timeouts = "retransmission timeouts of the sender, per run";
    let air = "everything on the air of the last hop, both ways";
    let air_time = "time of the air per byte delivered: bits, host costs, waits for frames' ACKs";
    let packets = "packets that reach the base station from either side, per second";
    let given_up =
        "runs that did not deliver everything in 200 times the time, or whose sender gave up";
    vec![
        value(("resent end to end", ""), Value, end_to_end, Always, |row, by| {
            let of = |run: &Sample| run.measures.retransmissions_end_to_end as f64;
            number(by.over(row, row.retransmissions_end_to_end, of), 1)
        }),
        value(("locally", ""), Value, local, IfAny, |row, by| {
            let of = |run: &Sample| run.measures.retransmissions_local as f64;
            number(by.over(row, row.retransmissions_local, of), 1)
        }),
        value(("probes", ""), Value, probes, IfAny, |row, by| {
            number(by.over(row, row.probes, |run| run.measures.probes as f64), 1)
        }),
        value(("probes of air", "%"), Value, share, IfAny, |row, _| {
            number(row.probe_air_share.map(|share| share * 100.0), 3)
        }),
        value(("timeouts", ""), LowestIsBest, timeouts, Always, |row, by| {
            number(by.over(row, row.timeouts, |run| run.measures.timeouts as f64), 1)
        }),
        value(("air bytes per byte", ""), LowestIsBest, air, Always, |row, by| {
            let of = Sample::air_bytes_per_byte;
            number(row.air_bytes_per_byte.and_then(|mean| by.over(row, mean, of)), 3)
        }),
        value(("air time", "us/byte"), LowestIsBest, air_time, IfKnown, |row, _| {
            number(row.air_s_per_byte.map(|seconds| seconds * 1e6), 3)
        }),
        value(("packets handled", "/s"), Value, packets, IfAny, |row, _| small_packets(row)),
        value(("base station", "KiB"), Value, "most bytes in its caches", IfAny, |row, _| {
            number(Some(row.base_station_bytes_max as f64 / 1024.0), 0)
        }),
        value(("given up", "runs"), Value, given_up, IfAny, |row, _| {
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

fn latency_cell(quantiles: Option<Quantiles>) -> Cell {
    quantiles.map_or_else(Cell::none, |q| {
        Cell::number(q.p99, format!("{:.3}/{:.3}/{:.3}", q.p50, q.p99, q.max))
    })
}

fn queue_delay(delay: Option<QueueDelay>) -> Cell {
    delay.map_or_else(Cell::none, |delay| {
        let ms = |seconds: f64| seconds * 1e3;
        Cell::number(ms(delay.p99), format!("{:.1}/{:.1}", ms(delay.p50), ms(delay.p99)))
    })
}

/// Shown where packets are small: a base station's work is by the packet.
fn small_packets(row: &Row) -> Cell {
    number(row.base_station_packets_per_s.filter(|_| row.latency_s.is_some()), 0)
}

fn triple(quantiles: Option<Quantiles>) -> Cell {
    quantiles.map_or_else(Cell::none, |q| {
        Cell::number(q.p95, format!("{:.3}/{:.3}/{:.3}", q.p50, q.p95, q.max))
    })
}

/// A sentence for each sender: how well its model is known.
pub(crate) fn validated(senders: &[Validation]) -> Vec<String> {
    senders.iter().map(|sender| format!("Model of {sender}")).collect()
}

/// Sentences about how honest the lab's radio was in these rows; none for the simulator's.
pub(crate) fn radio_remarks(rows: &[Row]) -> Vec<String> {
    let mut remarks = Vec::new();
    let late = |row: &&Row| row.radio_late_s.map_or(0.0, |late| late.max);
    let measured = rows.iter().filter(|row| row.radio_late_s.is_some());
    if let Some(latest) = measured.max_by(|a, b| late(a).total_cmp(&late(b))) {
        let worst = |of: fn(Lateness) -> f64| {
            let values = rows.iter().filter_map(|row| row.radio_late_s.map(of));
            values.fold(0.0, f64::max) * 1e6
        };
        let all_real_time = rows.iter().all(|row| row.radio_late_s.is_none_or(|l| l.real_time));
        remarks.push(format!(
            "Radio late, in the worst run, by {:.0} us (p50), {:.0} us (p99), {:.0} us \
             (max: {}){}.",
            worst(|late| late.p50),
            worst(|late| late.p99),
            worst(|late| late.max),
            named(latest, rows),
            if all_real_time { "" } else { ", not in real time" },
        ));
    }
    for row in rows.iter().filter(|row| row.radio_mishaps > 0) {
        let (lost, name) = (row.radio_mishaps, named(row, rows));
        remarks.push(format!(
            "Radio overrun: {lost} frames lost by no hop's decision in {name}; lower --jobs or \
             --rate."
        ));
    }
    remarks
}

/// A row in a sentence: its sender, its scheme, and the channel where rows differ in it.
fn named(row: &Row, rows: &[Row]) -> String {
    let axes: [fn(&Row) -> &str; 4] = [|row| &row.ber, |row| &row.loss, |row| &row.outage, handoff];
    let differs = |of: &&fn(&Row) -> &str| rows.iter().any(|other| of(other) != of(row));
    let channel = axes.iter().filter(differs).map(|of| of(row));
    let parts = [row.tcp, row.scheme.as_str()].into_iter().chain(channel);
    parts.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use node::scenario::Axis;
    use node::{Draft, Plan, Scenario};
    use sansio::Instant;
    use trace::metrics::{Measures, Transfer};

    /// A row whose runs deliver a megabyte in these times.
    fn row(scheme: &str, world: World, seconds: [f64; 3]) -> Row {
        let schemes = Some(Axis(vec![scheme.to_owned()]));
        let scenario = Scenario::complete(Draft { schemes, ..Draft::default() }).expect("complete");
        let sample = |(seed, seconds): (usize, f64)| {
            let late = Lateness { p50: 2e-6, p99: 3e-5, max: 1e-3 * seconds, real_time: true };
            Sample {
                seed: seed as u64,
                seconds,
                finished: true,
                measures: Measures {
                    transfers: vec![Transfer {
                        delivered_bytes: 1_000_000,
                        last_delivered_at: Instant::from_nanos((seconds * 1e9) as u64),
                        complete: true,
                        ..Transfer::default()
                    }],
                    probes: seed as u64,
                    probe_bytes: 53 * seed as u64,
                    air_bytes: 1_060_000,
                    ..Measures::default()
                },
                failures: Vec::new(),
                radio_late: (world == World::Lab).then_some(late),
                radio_mishaps: 0,
            }
        };
        let samples = seconds.into_iter().enumerate().map(sample).collect();
        let case = &scenario.cases()[0];
        Row::new(case, &Plan::for_lab(&scenario, case), world, samples)
    }

    fn cells(table: &Table, column: &str) -> Vec<String> {
        let index = table.columns.iter().position(|one| one.name == column).expect("a column");
        table.rows.iter().map(|row| row.cells[index].text.clone()).collect()
    }

    #[test]
    fn the_lab_shows_medians_of_its_predictions_too_and_a_comparison_means() {
        let disturbed = [4.0, 4.0, 40.0];
        let predicted = row("plain", World::Sim, disturbed);
        let rows = [row("plain", World::Lab, disturbed), predicted.clone()];
        let lab = table(&rows);
        assert_eq!(cells(&lab, "goodput p50"), ["2.000 (0.200-2.000)"; 2]);
        assert_eq!(cells(&lab, "probes"), ["1.0"; 2]);
        // 159 bytes of 3 180 000.
        assert_eq!(cells(&lab, "probes of air"), ["0.005"; 2]);
        assert!(lab.caption.contains("medians over 3 seeds (smallest-largest); sim is"));
        let alone = table(&[predicted]);
        assert_eq!(cells(&alone, "goodput"), ["1.400 ± 2.582"]);
        assert!(alone.caption.contains("means over 3 seeds, ± 95 %"));
    }

    #[test]
    fn a_prediction_takes_no_mark_from_a_measurement() {
        let lab = |scheme, seconds| row(scheme, World::Lab, [seconds; 3]);
        let sim = |scheme, seconds| row(scheme, World::Sim, [seconds; 3]);
        let rows = [lab("plain", 8.0), sim("plain", 2.0), lab("snoop", 4.0), sim("snoop", 3.0)];
        let table = table(&rows);
        let goodput = table.columns.iter().position(|one| one.name == "goodput p50");
        let goodput = goodput.expect("a column");
        let best: Vec<bool> =
            table.emphasis().iter().map(|row| row[goodput] == Emphasis::Best).collect();
        assert_eq!(best, [false, true, true, false]);
        let groups: Vec<u32> = table.rows.iter().map(|row| row.group).collect();
        assert_eq!(groups, [0; 4], "they stand together all the same");
    }

    #[test]
    fn the_remark_on_the_radio_has_the_worst_of_all_runs() {
        let mut rows = [row("plain", World::Lab, [1.0; 3]), row("snoop", World::Lab, [2.0; 3])];
        let expected = "Radio late, in the worst run, by 2 us (p50), 30 us (p99), 2000 us \
                        (max: reno snoop).";
        assert_eq!(radio_remarks(&rows), [expected]);
        rows[0].radio_mishaps = 7;
        assert!(radio_remarks(&rows)[1].starts_with("Radio overrun: 7 frames"));
        assert!(radio_remarks(&[row("plain", World::Sim, [1.0; 3])]).is_empty());
    }
}
