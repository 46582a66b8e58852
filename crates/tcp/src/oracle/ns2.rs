//! Replays a trace of ns-2's validation suite `tcpVariants` and compares packet by packet.
//!
//! The trace is CSV, `time_s,event,packet`: `data` = queued at r1 toward the receiver, `drop` =
//! lost before that queue, `ack` = queued at the receiver toward r1. Our data rows must be the same
//! packets in the same order, each within 1 ms; so must the drops, which shows that the trace was
//! made with the drops that were asked for.

use super::path::{self, Row, RowKind};
use crate::config::{Config, Congestion};
use core::fmt;
use sansio::Duration;
use std::collections::BTreeSet;

/// How far apart the times of a row may be.
pub const TOLERANCE: Duration = Duration::from_millis(1);

/// Rows printed before and after the first mismatch.
const NEIGHBOURS: usize = 5;

/// What to replay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replay {
    /// The sender.
    pub congestion: Congestion,
    /// Packets lost once each, numbered from 1 (0 is the SYN).
    pub drops: BTreeSet<u64>,
    /// With RFC 3042.
    pub limited_transmit: bool,
}

/// A line of a trace that is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadRow {
    /// Line number, from 1.
    pub line: usize,
    /// What stands there.
    pub value: String,
    /// What should.
    pub expected: &'static str,
}

impl fmt::Display for BadRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {:?}: expected {}", self.line, self.value, self.expected)
    }
}

impl core::error::Error for BadRow {}

/// How far our packets are theirs. Its `Display` is what a user reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Rows of data packets that match.
    pub matched: usize,
    /// Rows of data packets in the trace.
    pub rows: usize,
    /// The first row, of either trace, that does not match.
    pub mismatch: Option<Mismatch>,
}

impl Report {
    /// True if every row matches and we sent nothing more.
    pub fn is_match(&self) -> bool {
        self.mismatch.is_none()
    }
}

/// Where two traces part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// `data` or `drop`.
    pub event: &'static str,
    /// Number of the row among those of its event, from 1.
    pub row: usize,
    /// The rows around: number, theirs, ours; each a time and a packet.
    pub neighbourhood: Vec<(usize, Option<Sent>, Option<Sent>)>,
}

/// A packet of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Since the start of the run.
    pub at: Duration,
    /// Its number.
    pub packet: u64,
}

/// Runs our endpoints over the suite's path and compares with `csv`.
///
/// # Errors
/// [`BadRow`] for the first line that is not a row of a trace.
pub fn check(replay: &Replay, csv: &str) -> Result<Report, BadRow> {
    let theirs = parse(csv)?;
    let limited_transmit = replay.limited_transmit;
    let config = Config { limited_transmit, ..Config::ns2(replay.congestion) };
    let ours = path::run(config, &replay.drops);
    let data = compare("data", &only(&theirs, RowKind::Data), &only(&ours, RowKind::Data));
    let drop = compare("drop", &only(&theirs, RowKind::Drop), &only(&ours, RowKind::Drop));
    let rows = theirs.iter().filter(|row| row.kind == RowKind::Data).count();
    Ok(Report { matched: data.0, rows, mismatch: data.1.or(drop.1) })
}

fn only(rows: &[Row], kind: RowKind) -> Vec<Sent> {
    let rows = rows.iter().filter(|row| row.kind == kind);
    rows.map(|row| Sent { at: row.at, packet: row.packet }).collect()
}

fn compare(event: &'static str, theirs: &[Sent], ours: &[Sent]) -> (usize, Option<Mismatch>) {
    let same = |(a, b): (&Sent, &Sent)| {
        let apart = a.at.as_nanos().abs_diff(b.at.as_nanos());
        a.packet == b.packet && apart <= TOLERANCE.as_nanos()
    };
    let matched = theirs.iter().zip(ours).filter(|pair| same(*pair)).count();
    let first = theirs.iter().zip(ours).take_while(|pair| same(*pair)).count();
    if first == theirs.len() && first == ours.len() {
        return (matched, None);
    }
    let around = first.saturating_sub(NEIGHBOURS)..first + NEIGHBOURS + 1;
    let neighbourhood = around
        .map(|index| (index + 1, theirs.get(index).copied(), ours.get(index).copied()))
        .filter(|(_, theirs, ours)| theirs.is_some() || ours.is_some())
        .collect();
    (matched, Some(Mismatch { event, row: first + 1, neighbourhood }))
}

/// Reads a trace: a header line, then rows.
fn parse(csv: &str) -> Result<Vec<Row>, BadRow> {
    const HEADER: &str = "time_s,event,packet";
    let mut lines = csv.lines().enumerate().map(|(index, line)| (index + 1, line.trim_end()));
    let header = lines.next().map_or("", |(_, line)| line);
    if header != HEADER {
        return Err(bad(1, header, "the header time_s,event,packet"));
    }
    lines.filter(|(_, line)| !line.is_empty()).map(|(line, text)| parse_row(line, text)).collect()
}

fn parse_row(line: usize, text: &str) -> Result<Row, BadRow> {
    let fields: Vec<&str> = text.split(',').collect();
    let [time, event, packet] = fields[..] else {
        return Err(bad(line, text, "three fields: time_s,event,packet"));
    };
    let seconds: f64 = time.parse().map_err(|_| bad(line, time, "a time in seconds"))?;
    if !(0.0..1e9).contains(&seconds) {
        return Err(bad(line, time, "a time in seconds"));
    }
    let kind = match event {
        "data" => RowKind::Data,
        "drop" => RowKind::Drop,
        "ack" => RowKind::Ack,
        _ => return Err(bad(line, event, "data, drop or ack")),
    };
    let packet = packet.parse().map_err(|_| bad(line, packet, "a packet number"))?;
    Ok(Row { at: Duration::from_secs_f64(seconds), kind, packet })
}

fn bad(line: usize, value: &str, expected: &'static str) -> BadRow {
    BadRow { line, value: value.to_owned(), expected }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} rows match", self.matched, self.rows)?;
        self.mismatch.iter().try_for_each(|mismatch| write!(f, "\n{mismatch}"))
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "first mismatch: {} row {}", self.event, self.row)?;
        write!(f, "     row      theirs          ours")?;
        for (row, theirs, ours) in &self.neighbourhood {
            let mark = if *row == self.row { '>' } else { ' ' };
            write!(f, "\n{mark} {row:>6}  {}  {}", Cell(*theirs), Cell(*ours))?;
        }
        Ok(())
    }
}

/// One side of a row: time and packet, or a dash.
struct Cell(Option<Sent>);

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(Sent { at, packet }) => write!(f, "{:.5} {packet:<5}", at.as_secs_f64()),
            None => write!(f, "{:<13}", "-"),
        }
    }
}
