//! `lasthop top`: the flows of a running daemon, live or once.

use super::args::{Sort, TopArgs};
use super::ctl::Connection;
use crate::error::Error;
use crate::output::outln;
use crossterm::event::{self, Event, KeyCode, KeyModifiers};
use crossterm::{cursor, execute, queue, style, terminal};
use serde_json::Value;
use std::io::{self, IsTerminal, Write};
use std::time::Duration;

/// Between two looks.
const EVERY: Duration = Duration::from_secs(1);
/// What the keys do.
const KEYS: &str = "q quits, s sorts by another column";
/// The most flows that are asked for.
const FLOWS_MAX: usize = 1_000;

pub(crate) fn top(args: &TopArgs) -> Result<(), Error> {
    let mut connection = Connection::open(&args.control)?;
    if args.once {
        let (width, height) = (usize::MAX, usize::MAX);
        for line in Table::ask(&mut connection)?.lines((args.sort, ""), None, (width, height)) {
            outln!("{line}");
        }
        return Ok(());
    }
    if !io::stdout().is_terminal() {
        return Err(Error::usage("this is no terminal; --once prints one table"));
    }
    let screen = Screen::take().map_err(Error::usage)?;
    let shown = show(&mut connection, args.sort);
    drop(screen);
    shown
}

/// Shows tables until somebody presses q, Escape or Ctrl-C.
fn show(connection: &mut Connection, mut sort: Sort) -> Result<(), Error> {
    let mut before = None;
    loop {
        let table = Table::ask(connection)?;
        loop {
            let (width, height) = terminal::size().map_err(Error::usage)?;
            let room = (usize::from(width), usize::from(height));
            draw(&table.lines((sort, KEYS), before.as_ref(), room)).map_err(Error::usage)?;
            if !event::poll(EVERY).map_err(Error::usage)? {
                break;
            }
            let Event::Key(key) = event::read().map_err(Error::usage)? else { continue };
            let ctrl_c =
                key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
            match key.code {
                KeyCode::Char('q') | KeyCode::Esc => return Ok(()),
                _ if ctrl_c => return Ok(()),
                KeyCode::Char('s') => sort = next(sort),
                _ => {}
            }
        }
        before = Some(table);
    }
}

fn next(sort: Sort) -> Sort {
    match sort {
        Sort::Idle => Sort::Cached,
        Sort::Cached => Sort::Acted,
        Sort::Acted => Sort::Age,
        Sort::Age => Sort::Idle,
    }
}

fn draw(lines: &[String]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    queue!(out, cursor::MoveTo(0, 0))?;
    for (index, line) in lines.iter().enumerate() {
        queue!(out, cursor::MoveTo(0, index as u16), style::Print(line))?;
        queue!(out, terminal::Clear(terminal::ClearType::UntilNewLine))?;
    }
    queue!(out, terminal::Clear(terminal::ClearType::FromCursorDown))?;
    out.flush()
}

/// The terminal as long as it is ours; then it is as it was.
struct Screen;

impl Screen {
    fn take() -> io::Result<Self> {
        terminal::enable_raw_mode()?;
        let screen = Screen;
        execute!(io::stdout(), terminal::EnterAlternateScreen, cursor::Hide)?;
        Ok(screen)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // A terminal that is gone needs nothing back.
        let _restored = execute!(io::stdout(), cursor::Show, terminal::LeaveAlternateScreen);
        let _restored = terminal::disable_raw_mode();
    }
}

/// What a daemon said at one instant.
#[derive(Clone, Debug)]
struct Table {
    totals: Value,
    flows: Vec<Value>,
    flows_total: u64,
}

impl Table {
    fn ask(connection: &mut Connection) -> Result<Self, Error> {
        let totals = connection.ask("stats")?;
        let answer = connection.ask(&format!("flows {FLOWS_MAX}"))?;
        let flows = answer["flows"].as_array().cloned().unwrap_or_default();
        Ok(Table { totals, flows, flows_total: answer["total"].as_u64().unwrap_or(0) })
    }

    /// The table as lines that fit into a room of so many columns and lines. What it says of time
    /// is since `before`; `keys` is what somebody may press.
    fn lines(
        &self,
        (sort, keys): (Sort, &str),
        before: Option<&Table>,
        (width, height): (usize, usize),
    ) -> Vec<String> {
        let mut flows: Vec<&Value> = self.flows.iter().collect();
        let number = |flow: &Value, key: &str| flow[key].as_f64().unwrap_or(0.0);
        let by = |key: &'static str, sign: f64| {
            move |a: &&Value, b: &&Value| {
                (sign * number(a, key)).total_cmp(&(sign * number(b, key)))
            }
        };
        match sort {
            Sort::Idle => flows.sort_by(by("idle_s", 1.0)),
            Sort::Cached => flows.sort_by(by("cached_bytes", -1.0)),
            Sort::Acted => flows.sort_by(by("interventions", -1.0)),
            Sort::Age => flows.sort_by(by("age_s", -1.0)),
        }
        let mut lines = self.head(before);
        lines.extend(self.totals["classes"].as_array().into_iter().flatten().filter_map(of_class));
        lines.push(keys.to_owned());
        lines.push(row([
            "FROM",
            "TO",
            "AGE",
            "IDLE",
            "CACHED",
            "HOP RTT",
            "WIRED RTT",
            "ACTED",
            "DOING",
        ]));
        let room = height.saturating_sub(lines.len());
        lines.extend(flows.into_iter().take(room).map(of_flow));
        let cut = |line: String| line.chars().take(width).collect();
        lines.into_iter().map(cut).collect()
    }

    fn head(&self, before: Option<&Table>) -> Vec<String> {
        let Table { totals, flows_total, .. } = self;
        let count = |path: &str| totals.pointer(path).and_then(Value::as_u64).unwrap_or(0);
        let acted = |table: &Table| -> u64 {
            let all = table.totals["interventions"].as_array().into_iter().flatten();
            all.filter_map(|one| one["count"].as_u64()).sum()
        };
        let per_second = before.map_or(String::new(), |before| {
            let seconds = |table: &Table| table.totals["seconds"].as_f64().unwrap_or(0.0);
            let span = (seconds(self) - seconds(before)).max(f64::EPSILON);
            format!(" ({:.0}/s)", acted(self).saturating_sub(acted(before)) as f64 / span)
        });
        let problem = totals["problem"].as_str().map_or(String::new(), |it| format!("; {it}"));
        vec![
            format!(
                "lasthop: mode {}, up {}{problem}",
                totals["mode"].as_str().unwrap_or("?"),
                time(totals["seconds"].as_f64().unwrap_or(0.0)),
            ),
            format!(
                "{flows_total} flows, {} cached, {} actions{per_second}, {} re-sent here, {} \
                 duplicate ACKs withheld, {} frames lost",
                bytes(count("/held_bytes")),
                acted(self),
                count("/scheme/retransmissions"),
                count("/scheme/dupacks_suppressed"),
                count("/overruns"),
            ),
        ]
    }
}

/// What help is worth to a class, if anything is known of it.
fn of_class(class: &Value) -> Option<String> {
    let number = |key: &str| class[key].as_f64().unwrap_or(0.0);
    let name = class["name"].as_str().unwrap_or("?");
    if number("would_repair") > 0.0 {
        return Some(format!(
            "class {name}: observed {} repairs that flows waited for, at most {} of {} busy saved",
            number("would_repair"),
            time(number("would_save_s")),
            time(number("observed_busy_s")),
        ));
    }
    let flows = [number("flows_helped"), number("flows_control")];
    if flows == [0.0; 2] {
        return None;
    }
    let gain = match (class["gain_low"].as_f64(), class["gain_high"].as_f64()) {
        (Some(low), Some(high)) => format!("gain {:+.0} % to {:+.0} %", low * 1e2, high * 1e2),
        _ => "too few to tell".to_owned(),
    };
    let verdict = class["verdict"].as_str().unwrap_or("?");
    Some(format!(
        "class {name}: {verdict}; {gain}, of {} flows with help and {} without",
        flows[0], flows[1]
    ))
}

fn of_flow(flow: &Value) -> String {
    let text = |key: &str| flow[key].as_str().unwrap_or("").to_owned();
    let span = |key: &str| flow[key].as_f64().map_or_else(|| "-".to_owned(), time);
    let doing = match flow["left_alone"].as_str() {
        Some(why) => format!("left alone: {why}"),
        None => text("doing"),
    };
    row([
        &text("from"),
        &text("to"),
        &span("age_s"),
        &span("idle_s"),
        &bytes(flow["cached_bytes"].as_u64().unwrap_or(0)),
        &span("round_trip_s"),
        &span("wired_round_trip_s"),
        &flow["interventions"].to_string(),
        &doing,
    ])
}

fn row([from, to, age, idle, cached, hop, wired, acted, doing]: [&str; 9]) -> String {
    format!(
        "{from:<24} {to:<24} {age:>7} {idle:>7} {cached:>8} {hop:>8} {wired:>9} {acted:>7}  {doing}"
    )
}

/// A span of time, three figures or so.
fn time(seconds: f64) -> String {
    match seconds {
        s if s < 1e-3 => format!("{:.0}us", s * 1e6),
        s if s < 1.0 => format!("{:.0}ms", s * 1e3),
        s if s < 100.0 => format!("{s:.1}s"),
        s if s < 7_200.0 => format!("{:.0}min", s / 60.0),
        s => format!("{:.0}h", s / 3_600.0),
    }
}

/// A number of bytes, three figures or so.
fn bytes(count: u64) -> String {
    match count {
        0..1_000 => format!("{count}B"),
        1_000..1_000_000 => format!("{:.1}kB", count as f64 / 1e3),
        _ => format!("{:.1}MB", count as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn flow(port: u16, idle: f64, cached: u64) -> Value {
        json!({
            "from": "10.1.0.1:80", "to": format!("10.2.0.1:{port}"), "age_s": 75.0, "idle_s": idle,
            "doing": "watches", "left_alone": null, "cached_bytes": cached,
            "round_trip_s": 0.0123, "wired_round_trip_s": null, "interventions": 4,
        })
    }

    #[test]
    fn worth_a_class_has_a_line_once_something_is_known() {
        let class = |helped: u32, gain: Option<f64>| {
            json!({
                "name": "trains", "verdict": "gain", "flows_helped": helped, "flows_control": 9,
                "gain_low": gain, "gain_high": gain.map(|gain| gain + 0.2),
            })
        };
        let line = of_class(&class(40, Some(0.123))).expect("a line");
        let expected = "class trains: gain; gain +12 % to +32 %, of 40 flows with help and 9";
        assert!(line.starts_with(expected), "{line}");
        assert!(of_class(&class(40, None)).expect("a line").contains("too few to tell"));
        assert_eq!(of_class(&json!({ "name": "others", "verdict": "open" })), None);
        let seen = json!({
            "name": "others", "would_repair": 12, "would_save_s": 3.4, "observed_busy_s": 60.0,
        });
        assert!(of_class(&seen).expect("a line").contains("12 repairs"));
    }

    #[test]
    fn a_table_sorts_and_fits() {
        let counted = |count: u64, seconds: f64| {
            json!({
                "mode": "help", "seconds": seconds, "problem": null, "held_bytes": 2_500,
                "overruns": 0, "interventions": [{ "rule": "MOD-1", "did": "x", "count": count }],
                "scheme": { "retransmissions": 7, "dupacks_suppressed": 8 },
            })
        };
        let flows = vec![flow(1, 0.2, 10), flow(2, 0.1, 5), flow(3, 9.0, 99)];
        let before = Table { totals: counted(4, 10.0), flows: flows.clone(), flows_total: 3 };
        let table = Table { totals: counted(10, 12.0), ..before.clone() };
        let lines = table.lines((Sort::Idle, KEYS), Some(&before), (200, 50));
        assert_eq!(lines.len(), 7);
        assert!(lines[0].starts_with("lasthop: mode help, up 12.0s"), "{}", lines[0]);
        assert!(lines[1].contains("3 flows, 2.5kB cached, 10 actions (3/s), 7 re-sent"));
        let ports = |lines: &[String]| -> Vec<char> {
            let shown = lines.iter().filter_map(|line| line.split("10.2.0.1:").nth(1));
            shown.filter_map(|rest| rest.chars().next()).collect()
        };
        assert_eq!(ports(&lines), ['2', '1', '3']);
        assert_eq!(ports(&table.lines((Sort::Cached, ""), None, (200, 50))), ['3', '1', '2']);
        assert!(lines[4].contains("12ms"), "{}", lines[4]);
        let small = table.lines((Sort::Idle, ""), None, (40, 5));
        assert_eq!(small.len(), 5);
        assert!(small.iter().all(|line| line.chars().count() <= 40));
    }
}
