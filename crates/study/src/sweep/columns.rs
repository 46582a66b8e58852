//! The schema of the results: one row per run, the same columns in CSV, JSON and Parquet.
//!
//! `docs/results.md` shows the table that [`documentation`] makes; a test holds them together.
//! Columns that `compare --json` has, too, have its names.

mod handoffs;

use super::Configuration;
use crate::mobiles;
use crate::row::{Checks, Sample, World, outage_s};
use crate::statistics::Quantiles;
use node::scenario::{Amount, Switch};
use sansio::Duration;
use serde::Serialize;

/// A row: one finished run.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// What it has in common with other seeds.
    pub configuration: &'a Configuration,
    /// What was measured.
    pub sample: &'a Sample,
}

/// A column.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Its name; the unit is last in it.
    pub name: &'static str,
    /// What it says, and when it says nothing.
    pub meaning: &'static str,
    /// What it is about.
    pub group: Group,
    /// Its values.
    pub values: Values,
}

/// What a column is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Which run it is.
    Run,
    /// The case, named as in the rows of `compare --json`.
    Case,
    /// Path, hosts and traffic.
    Path,
    /// What was measured; a study's `metrics` choose among these.
    Measure,
}

/// How a column gets its value from a run; `None` is an empty field.
#[derive(Clone, Copy, Debug)]
pub enum Values {
    /// Text.
    Text(fn(Run<'_>) -> Option<String>),
    /// Whole numbers.
    Integer(fn(Run<'_>) -> Option<i64>),
    /// Numbers.
    Real(fn(Run<'_>) -> Option<f64>),
    /// True or false.
    Boolean(fn(Run<'_>) -> Option<bool>),
}

/// A value.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Cell {
    /// Nothing to say.
    Empty,
    /// Text.
    Text(String),
    /// A whole number.
    Integer(i64),
    /// A number, always finite.
    Real(f64),
    /// True or false.
    Boolean(bool),
}

impl Column {
    /// The value for a run.
    pub fn cell(&self, run: Run<'_>) -> Cell {
        match self.values {
            Values::Text(value) => value(run).map_or(Cell::Empty, Cell::Text),
            Values::Integer(value) => value(run).map_or(Cell::Empty, Cell::Integer),
            Values::Boolean(value) => value(run).map_or(Cell::Empty, Cell::Boolean),
            Values::Real(value) => {
                value(run).filter(|value| value.is_finite()).map_or(Cell::Empty, Cell::Real)
            }
        }
    }

    /// The name of its type in documents.
    fn kind(&self) -> &'static str {
        match self.values {
            Values::Text(_) => "text",
            Values::Integer(_) => "integer",
            Values::Real(_) => "real",
            Values::Boolean(_) => "boolean",
        }
    }
}

/// The columns of a study that chose these measures, or of one that chose none: all.
pub fn chosen(metrics: Option<&[String]>) -> Vec<&'static Column> {
    let is_chosen = |column: &&Column| {
        column.group != Group::Measure
            || metrics.is_none_or(|names| names.iter().any(|name| name == column.name))
    };
    all().filter(is_chosen).collect()
}

/// The columns that a study can choose.
pub fn measures() -> impl Iterator<Item = &'static Column> {
    all().filter(|column| column.group == Group::Measure)
}

/// The columns about path, hosts and traffic.
pub fn path() -> impl Iterator<Item = &'static Column> {
    all().filter(|column| column.group == Group::Path)
}

/// The table of all columns, in Markdown.
pub fn documentation() -> String {
    let mut text = String::from("| column | type | meaning |\n|---|---|---|\n");
    for column in all() {
        text += &format!("| `{}` | {} | {} |\n", column.name, column.kind(), column.meaning);
    }
    text
}

/// All of them, in the order of the files: measures last.
fn all() -> impl Iterator<Item = &'static Column> {
    let those = |are_measures: bool| {
        let columns = COLUMNS.iter().chain(handoffs::COLUMNS);
        columns.filter(move |column| (column.group == Group::Measure) == are_measures)
    };
    those(false).chain(those(true))
}

const COLUMNS: &[Column] = &[
    text(Group::Run, "run", "name of the run: configuration, `-`, seed", |run| {
        Some(format!("{}-{}", run.configuration.name, run.sample.seed))
    }),
    integer(Group::Run, "seed", "seed of every random stream", |run| Some(run.sample.seed as i64)),
    text(
        Group::Path,
        "configuration",
        "hash of everything that decides the run but its seed",
        |run| Some(run.configuration.name.to_string()),
    ),
    text(Group::Case, "world", "where it ran: `sim`", |_| Some(World::Sim.name().to_owned())),
    text(Group::Case, "scheme", "what the base station does", |run| {
        Some(run.configuration.case.scheme.clone())
    }),
    text(Group::Case, "tcp", "the sender", |run| Some(run.configuration.case.sender.to_string())),
    boolean(Group::Case, "sack", "whether the hosts use SACK", |run| {
        Some(run.configuration.case.sack == Switch::On)
    }),
    text(Group::Case, "direction", "which way the data goes: `down`, `up` or `both`", |run| {
        Some(run.configuration.case.direction.to_string())
    }),
    text(Group::Case, "ber", "bit errors of the last hop, as in scenarios", |run| {
        Some(run.configuration.case.ber.to_string())
    }),
    text(Group::Case, "loss", "losses of the last hop, as in scenarios", |run| {
        Some(run.configuration.case.loss.to_string())
    }),
    text(Group::Case, "outage", "outages of the last hop, as in scenarios", |run| {
        Some(run.configuration.case.outage.to_string())
    }),
    real(Group::Case, "outage_s", "length of an outage, s; empty without, or if drawn", |run| {
        outage_s(run.configuration.case.outage)
    }),
    real(Group::Path, "bit_error_rate", "`ber` as a number, errors per bit", |run| {
        Some(run.configuration.case.ber.rate())
    }),
    text(Group::Path, "radio", "preset of the last hop", |run| {
        Some(run.configuration.scenario.radio.to_string())
    }),
    integer(Group::Path, "rate_bps", "rate of the last hop, bit/s", |run| {
        Some(run.configuration.scenario.rate.0.as_bps() as i64)
    }),
    real(Group::Path, "delay_s", "propagation delay of the last hop, one way, s", |run| {
        Some(run.configuration.scenario.delay.0.as_secs_f64())
    }),
    text(Group::Path, "queue", "queue of the last hop, each way: packets (`p`) or bytes", |run| {
        Some(run.configuration.scenario.queue.to_string())
    }),
    text(Group::Path, "departures", "what the base station is told of: `air` or `device`", |run| {
        Some(run.configuration.scenario.departures.to_string())
    }),
    integer(Group::Path, "wired_rate_bps", "rate behind the base station, bit/s", |run| {
        Some(run.configuration.scenario.wired_rate.0.as_bps() as i64)
    }),
    real(Group::Path, "wired_delay_s", "propagation delay of it, one way, s", |run| {
        Some(run.configuration.scenario.wired_delay.0.as_secs_f64())
    }),
    real(Group::Path, "rtt_s", "both delays, there and back, s; empty if recorded", rtt_s),
    boolean(Group::Path, "half_duplex", "whether both directions share the air", |run| {
        Some(run.configuration.scenario.half_duplex)
    }),
    text(Group::Path, "arq", "repetition of lost frames, as in scenarios", |run| {
        Some(run.configuration.scenario.arq.to_string())
    }),
    integer(Group::Path, "mobiles", "mobile hosts at the base station", |run| {
        Some(run.configuration.scenario.mobiles.into())
    }),
    text(Group::Path, "served", "which of them the scheme serves: `all` or `first`", |run| {
        Some(run.configuration.scenario.served.to_string())
    }),
    text(
        Group::Path,
        "down_capacity",
        "file of the recorded capacity down; empty without",
        |run| run.configuration.scenario.recorded.down_capacity.clone(),
    ),
    text(Group::Path, "up_capacity", "the same up", |run| {
        run.configuration.scenario.recorded.up_capacity.clone()
    }),
    text(Group::Path, "down_delay", "file of the recorded delay down; empty without", |run| {
        run.configuration.scenario.recorded.down_delay.clone()
    }),
    text(Group::Path, "up_delay", "the same up", |run| {
        run.configuration.scenario.recorded.up_delay.clone()
    }),
    text(Group::Path, "down_loss", "file of the recorded losses down; empty without", |run| {
        run.configuration.scenario.recorded.down_loss.clone()
    }),
    text(Group::Path, "up_loss", "the same up", |run| {
        run.configuration.scenario.recorded.up_loss.clone()
    }),
    real(Group::Path, "trace_step_s", "step of recordings, s; empty unless said", |run| {
        run.configuration.scenario.recorded.trace_step.map(|step| step.0.as_secs_f64())
    }),
    text(Group::Path, "hosts", "what the hosts' TCP is like: `modern` or `1995`", |run| {
        Some(run.configuration.scenario.hosts.to_string())
    }),
    integer(Group::Path, "mss_bytes", "maximum segment size, bytes", |run| {
        Some(run.configuration.scenario.mss.0 as i64)
    }),
    integer(Group::Path, "window_bytes", "receive buffer, bytes", |run| {
        Some(run.configuration.scenario.window.0 as i64)
    }),
    text(Group::Path, "traffic", "`bulk`, or requests as in scenarios", |run| {
        Some(run.configuration.scenario.traffic.to_string())
    }),
    integer(
        Group::Path,
        "size_bytes",
        "bytes of a transfer; empty if the run has a duration",
        |run| match run.configuration.scenario.amount {
            Amount::Size(size) => Some(size.0 as i64),
            Amount::Duration(_) => None,
        },
    ),
    real(Group::Path, "duration_s", "length asked for, s; empty if transfers have a size", |run| {
        match run.configuration.scenario.amount {
            Amount::Size(_) => None,
            Amount::Duration(duration) => Some(duration.0.as_secs_f64()),
        }
    }),
    real(Group::Measure, "seconds", "length of the run, simulated s", |run| {
        Some(run.sample.seconds)
    }),
    boolean(Group::Measure, "finished", "false if a transfer with a size was given up", |run| {
        Some(run.sample.finished)
    }),
    integer(Group::Measure, "delivered_bytes", "bytes delivered in order, all transfers", |run| {
        let transfers = run.sample.measures.transfers.iter();
        Some(transfers.map(|transfer| transfer.delivered_bytes).sum::<u64>() as i64)
    }),
    real(Group::Measure, "goodput_bps", "those over the time to the last of them, bit/s", |run| {
        Some(run.sample.goodput_bps())
    }),
    real(Group::Measure, "ceiling_bps", "the most the last hop could deliver, bit/s", |run| {
        Some(ceiling_bps(run))
    }),
    real(Group::Measure, "ceiling_share", "goodput over the ceiling; empty if that is 0", |run| {
        Some(run.sample.goodput_bps() / ceiling_bps(run))
    }),
    real(
        Group::Measure,
        "stall_s",
        "longest time in which a transfer delivers nothing, s",
        |run| Some(run.sample.stall_s()),
    ),
    integer(Group::Measure, "outages_stalled", "outages after which a sender waited", |run| {
        Some(run.sample.stalls_after_outage_s().count() as i64)
    }),
    real(
        Group::Measure,
        "stall_after_outage_p50_s",
        "link's return to the first new ACK at the sender, median over those outages, s; empty \
         without",
        |run| stall_after_outage(run).map(|stall| stall.p50),
    ),
    real(Group::Measure, "stall_after_outage_p95_s", "95th percentile of the same, s", |run| {
        stall_after_outage(run).map(|stall| stall.p95)
    }),
    real(Group::Measure, "stall_after_outage_max_s", "the longest of them, s", |run| {
        stall_after_outage(run).map(|stall| stall.max)
    }),
    real(
        Group::Measure,
        "receiver_stall_after_outage_p50_s",
        "link's return to the next byte delivered, median, s; empty without",
        |run| receiver_stall(run).map(|stall| stall.p50),
    ),
    real(Group::Measure, "receiver_stall_after_outage_max_s", "the longest of them, s", |run| {
        receiver_stall(run).map(|stall| stall.max)
    }),
    real(
        Group::Measure,
        "recovery_after_outage_p50_s",
        "link's return until 500 kB more are acknowledged, median, s; empty if never",
        |run| recovery(run).map(|recovery| recovery.p50),
    ),
    real(Group::Measure, "recovery_after_outage_max_s", "the longest of them, s", |run| {
        recovery(run).map(|recovery| recovery.max)
    }),
    integer(Group::Measure, "messages", "messages delivered; for requests", |run| {
        let transfers = run.sample.measures.transfers.iter();
        Some(transfers.map(|transfer| transfer.latencies.len()).sum::<usize>() as i64)
    }),
    real(
        Group::Measure,
        "latency_p50_s",
        "time a message takes, median, s; empty without",
        |run| latency(run).map(|latency| latency.p50),
    ),
    real(Group::Measure, "latency_p95_s", "95th percentile of the same, s", |run| {
        latency(run).map(|latency| latency.p95)
    }),
    real(Group::Measure, "latency_max_s", "the longest of them, s", |run| {
        latency(run).map(|latency| latency.max)
    }),
    real(
        Group::Measure,
        "queue_delay_p50_s",
        "wait of data for the last hop, median, s; empty without",
        |run| run.sample.measures.queue_delay.map(|delay| delay.p50.as_secs_f64()),
    ),
    real(Group::Measure, "queue_delay_p99_s", "99th percentile of the same, s", |run| {
        run.sample.measures.queue_delay.map(|delay| delay.p99.as_secs_f64())
    }),
    integer(
        Group::Measure,
        "base_station_packets",
        "packets that reached the base station, from either side",
        |run| Some(run.sample.measures.base_station_packets as i64),
    ),
    integer(Group::Measure, "retransmissions_end_to_end", "packets that hosts sent again", |run| {
        Some(run.sample.measures.retransmissions_end_to_end as i64)
    }),
    integer(
        Group::Measure,
        "retransmissions_local",
        "packets that the base station sent again, without probes",
        |run| Some(run.sample.measures.retransmissions_local as i64),
    ),
    integer(Group::Measure, "probes", "probes of the base station", |run| {
        Some(run.sample.measures.probes as i64)
    }),
    real(Group::Measure, "probe_air_share", "bytes of those over all bytes on the air", |run| {
        Some(run.sample.measures.probe_bytes as f64 / run.sample.measures.air_bytes as f64)
    }),
    integer(Group::Measure, "timeouts", "retransmission timeouts of the senders", |run| {
        Some(run.sample.measures.timeouts as i64)
    }),
    integer(Group::Measure, "dupacks", "duplicate ACKs that reached the senders", |run| {
        Some(run.sample.measures.dupacks as i64)
    }),
    integer(Group::Measure, "air_bytes", "bytes on the air of the last hop, both ways", |run| {
        Some(run.sample.measures.air_bytes as i64)
    }),
    real(Group::Measure, "air_bytes_per_byte", "those per byte delivered; empty without", |run| {
        Some(run.sample.air_bytes_per_byte())
    }),
    real(
        Group::Measure,
        "air_s_per_byte",
        "air time per byte, s; only with `arq` or several mobile hosts",
        |run| run.sample.air_s_per_byte(),
    ),
    real(Group::Measure, "jain", "Jain's index of the mobile hosts' goodputs; 1 if one", |run| {
        mobiles::jain(&mobiles::goodputs(run.sample, run.configuration.plan.transfers.len()))
    }),
    integer(Group::Measure, "lost_packets", "packets that the last hop lost", |run| {
        Some(run.sample.measures.lost as i64)
    }),
    integer(Group::Measure, "queue_full_packets", "packets that a full queue refused", |run| {
        Some(run.sample.measures.queue_full as i64)
    }),
    integer(
        Group::Measure,
        "base_station_bytes_max",
        "most bytes in the base station's caches",
        |run| Some(run.sample.measures.base_station_bytes_max as i64),
    ),
    text(Group::Measure, "checks", "`passed`, or the invariants that were broken", |run| {
        Some(Checks(run.sample.failures.clone()).to_string())
    }),
];

fn ceiling_bps(run: Run<'_>) -> f64 {
    let Configuration { plan, case, .. } = run.configuration;
    plan.ceiling_bps(case, Duration::from_secs_f64(run.sample.seconds))
}

fn rtt_s(run: Run<'_>) -> Option<f64> {
    let scenario = &run.configuration.scenario;
    let recorded = &scenario.recorded;
    let is_recorded = recorded.down_delay.is_some() || recorded.up_delay.is_some();
    (!is_recorded).then(|| ((scenario.delay.0 + scenario.wired_delay.0) * 2).as_secs_f64())
}

fn stall_after_outage(run: Run<'_>) -> Option<Quantiles> {
    Quantiles::of(&run.sample.stalls_after_outage_s().collect::<Vec<f64>>())
}

/// Quantiles of times of all transfers of a run.
fn quantiles(
    run: Run<'_>,
    times: fn(&trace::metrics::Transfer) -> &[Duration],
) -> Option<Quantiles> {
    let times = run.sample.measures.transfers.iter().flat_map(times);
    Quantiles::of(&times.map(|time| time.as_secs_f64()).collect::<Vec<f64>>())
}

fn receiver_stall(run: Run<'_>) -> Option<Quantiles> {
    quantiles(run, |transfer| &transfer.receiver_stalls_after_outage)
}

fn recovery(run: Run<'_>) -> Option<Quantiles> {
    quantiles(run, |transfer| &transfer.recoveries)
}

fn latency(run: Run<'_>) -> Option<Quantiles> {
    quantiles(run, |transfer| &transfer.latencies)
}

type Text = fn(Run<'_>) -> Option<String>;
type Integer = fn(Run<'_>) -> Option<i64>;
type Real = fn(Run<'_>) -> Option<f64>;
type Boolean = fn(Run<'_>) -> Option<bool>;

const fn text(group: Group, name: &'static str, meaning: &'static str, value: Text) -> Column {
    Column { name, meaning, group, values: Values::Text(value) }
}

const fn integer(
    group: Group,
    name: &'static str,
    meaning: &'static str,
    value: Integer,
) -> Column {
    Column { name, meaning, group, values: Values::Integer(value) }
}

const fn real(group: Group, name: &'static str, meaning: &'static str, value: Real) -> Column {
    Column { name, meaning, group, values: Values::Real(value) }
}

const fn boolean(
    group: Group,
    name: &'static str,
    meaning: &'static str,
    value: Boolean,
) -> Column {
    Column { name, meaning, group, values: Values::Boolean(value) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where the results are documented, and what surrounds the table.
    const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/results.md");
    const MARKS: [&str; 2] = ["<!-- columns: begin -->\n", "<!-- columns: end -->\n"];

    #[test]
    fn the_documented_columns_are_those_that_are_written() {
        let document = std::fs::read_to_string(DOCUMENT).expect("docs/results.md");
        let after = document.split_once(MARKS[0]).expect("the table begins").1;
        let shown = after.split_once(MARKS[1]).expect("the table ends").0;
        let expected = documentation();
        assert!(shown == expected, "docs/results.md should have between its marks:\n{expected}");
    }

    #[test]
    fn names_are_unique_and_measures_can_be_chosen() {
        let mut names: Vec<&str> = all().map(|column| column.name).collect();
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
        let chosen = chosen(Some(&["stall_s".to_owned()]));
        let measures = chosen.iter().filter(|column| column.group == Group::Measure);
        assert_eq!(measures.map(|column| column.name).collect::<Vec<_>>(), ["stall_s"]);
        assert!(chosen.iter().any(|column| column.name == "rtt_s"));
    }
}
