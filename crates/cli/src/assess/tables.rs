//! An assessment as text: tables in the style of the other commands, sentences between them.

use crate::args::AssessArgs;
use ::assess::cause::Cause;
use ::assess::decode::Class;
use ::assess::summary::{Assessment, CauseTotal, ConnectionSummary};
use report::table::{Cell, Column, Kind, Row, Styling, Table};
use std::fmt::Write;
use std::io::IsTerminal;

/// Stalls listed below the tables.
const STALLS_LISTED: usize = 10;

/// Everything, as it is printed.
pub(crate) fn text(file: &str, of: &Assessment, args: &AssessArgs) -> String {
    let terminal = std::io::stdout().is_terminal();
    let colour = terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let styling = if colour { Styling::Ansi } else { Styling::Plain };
    let show = |table: &Table| format!("{}\n\n{}\n", table.caption, table.render(None, styling));
    let mut text = format!("{}\n\n", heading(file, of, args));
    text += &show(&traffic(of));
    if of.connections.is_empty() {
        text += "No TCP connection with payload.\n";
        return text;
    }
    text += &show(&causes(of));
    text += &show(&connections(of, args.top));
    text += &stalls(of);
    text += &show(&schemes(of));
    for scheme in of.schemes.chunk_by(|a, b| a.reason == b.reason) {
        let names: Vec<&str> = scheme.iter().map(|it| it.scheme).collect();
        let _fits =
            writeln!(text, "{}: as wide as it is because {}.", names.join(", "), scheme[0].reason);
    }
    for remark in &of.remarks {
        let _fits = writeln!(text, "{remark}");
    }
    text
}

fn heading(file: &str, of: &Assessment, args: &AssessArgs) -> String {
    let capture = &of.capture;
    let place = match (of.place, &args.at) {
        (Some(place), None) => format!("taken at the {} (inferred)", place.name()),
        (Some(place), Some(_)) => format!("taken at the {}", place.name()),
        (None, _) => "taken at a place that nothing tells; say --at".into(),
    };
    let interfaces = match capture.interfaces {
        1 => String::new(),
        many => format!(", {many} interfaces"),
    };
    let snapped = match capture.snapped_packets {
        0 => String::new(),
        some => format!(", {some} packets cut short by the capture"),
    };
    format!(
        "{file}: {} packets, {} MB, {:.3} s{interfaces}{snapped}; {place}.",
        capture.packets,
        megabytes(capture.bytes),
        capture.duration_s
    )
}

fn traffic(of: &Assessment) -> Table {
    let rows = of.traffic.iter().map(|it| {
        row(vec![
            Cell::text(it.class.name()),
            number(it.packets as f64, 0),
            Cell::text(megabytes(it.bytes)),
            if it.class == Class::SeenTwice { Cell::none() } else { number(it.share * 100.0, 1) },
        ])
    });
    let columns = vec![
        Column::name("traffic"),
        value("packets", ""),
        value("bytes", "MB"),
        value("share", "%"),
    ];
    let share = of.helpable_share * 100.0;
    let caption =
        format!("{share:.1} % of the bytes can be helped: TCP, readable, both directions seen.");
    Table { caption, columns, rows: rows.collect() }
}

fn causes(of: &Assessment) -> Table {
    let total: f64 = of.causes.iter().map(|it| it.stalled_s).sum();
    let rows = of.causes.iter().filter(|it| it.stalls + it.packets_lost > 0).map(|it| {
        let share = (total > 0.0).then(|| it.stalled_s / total * 100.0);
        row(vec![
            Cell::text(it.cause.name()),
            number(it.stalls as f64, 0),
            number(it.stalled_s, 3),
            share.map_or_else(Cell::none, |share| number(share, 1)),
            number(it.packets_lost as f64, 0),
        ])
    });
    let rows: Vec<Row> = rows.collect();
    let columns = vec![
        Column::name("cause"),
        value("stalls", ""),
        value("stalled", "s"),
        value("of stalled", "%"),
        value("packets lost", ""),
    ];
    let caption = match rows.is_empty() {
        true => "No stalls and no losses.".into(),
        false => "Why connections stood still, and why packets were lost:".into(),
    };
    let columns = if rows.is_empty() { Vec::new() } else { columns };
    Table { caption, columns, rows }
}

fn connections(of: &Assessment, top: usize) -> Table {
    let shown = of.connections.iter().take(top);
    let rows = shown.map(|it| {
        let resent = it.retransmissions;
        row(vec![
            Cell::text(format!("{} > {}", it.sender, it.receiver)),
            Cell::text(it.place.map_or("-", |place| place.name())),
            number(it.duration_s, 3),
            Cell::text(megabytes(it.payload_bytes)),
            milliseconds(it.handshake_s),
            it.rtt_to_receiver_s.map_or_else(Cell::none, |rtt| {
                Cell::text(format!(
                    "{:.1}/{:.1}/{:.1}",
                    rtt.min * 1e3,
                    rtt.p50 * 1e3,
                    rtt.p95 * 1e3
                ))
            }),
            Cell::text(format!("{}/{}", resent.seen_before, resent.not_seen_before)),
            number(resent.after_silence as f64, 0),
            number(it.causes.iter().map(|it| it.stalls).sum::<u64>() as f64, 0),
            number(it.stalled_s, 3),
            Cell::text(it.trouble.map_or("-", Cause::name)),
        ])
    });
    let columns = vec![
        Column::name("connection"),
        Column::name("at"),
        value("lasted", "s"),
        value("payload", "MB"),
        value("handshake", "ms"),
        value("to receiver min/p50/p95", "ms"),
        value("resent seen/unseen", ""),
        value("timeouts", ""),
        value("stalls", ""),
        value("stalled", "s"),
        Column::name("trouble"),
    ];
    let all = of.connections.len();
    let which =
        if all > top { format!("{top} of {all} connections") } else { "Connections".into() };
    let caption = format!(
        "{which}, those stalled longest first; resent: had passed here before, or had not."
    );
    Table { caption, columns, rows: rows.collect() }
}

fn stalls(of: &Assessment) -> String {
    let of_all =
        of.connections.iter().flat_map(|it| it.stalls.iter().map(move |stall| (it, stall)));
    let mut stalls: Vec<_> = of_all.collect();
    if stalls.is_empty() {
        return String::new();
    }
    let all: u64 = of.causes.iter().map(|it: &CauseTotal| it.stalls).sum();
    stalls.sort_by(|(_, a), (_, b)| b.length_s.total_cmp(&a.length_s));
    stalls.truncate(STALLS_LISTED);
    stalls.sort_by(|(_, a), (_, b)| a.from_s.total_cmp(&b.from_s));
    let mut text = match all as usize > stalls.len() {
        true => format!("The {} longest of {all} stalls:\n\n", stalls.len()),
        false => "The stalls:\n\n".to_owned(),
    };
    let several = of.connections.len() > 1;
    for (connection, stall) in stalls {
        let whose = |it: &ConnectionSummary| format!(" ({} > {})", it.sender, it.receiver);
        let whose = if several { whose(connection) } else { String::new() };
        let _fits = writeln!(
            text,
            "{:>10.3} s  {:>8.3} s  {:<11}  {}{whose}",
            stall.from_s,
            stall.length_s,
            stall.cause.name(),
            stall.evidence
        );
    }
    text + "\n"
}

fn schemes(of: &Assessment) -> Table {
    let stalled: f64 = of.causes.iter().map(|it| it.stalled_s).sum();
    let rows = of.schemes.iter().map(|it| {
        row(vec![
            Cell::text(it.scheme),
            Cell::text(format!("{:.3}-{:.3}", it.saved_s_min, it.saved_s_max)),
            number(stalled, 3),
            number(it.stalls_acted as f64, 0),
            Cell::text(format!("{} of {}", it.retransmissions_before, it.retransmissions)),
        ])
    });
    let columns = vec![
        Column::name("scheme"),
        value("stall time saved", "s"),
        value("of", "s"),
        value("stalls acted in", ""),
        value("resent before the sender", ""),
    ];
    let caption = "What an agent at this place would have saved, at least and at most:".into();
    Table { caption, columns, rows: rows.collect() }
}

fn row(cells: Vec<Cell>) -> Row {
    Row { group: 0, class: 0, cells }
}

fn value(name: &str, unit: &str) -> Column {
    Column::value(name, unit, Kind::Value)
}

fn number(value: f64, digits: usize) -> Cell {
    Cell::number(value, format!("{value:.digits$}"))
}

fn milliseconds(seconds: Option<f64>) -> Cell {
    seconds.map_or_else(Cell::none, |seconds| number(seconds * 1e3, 1))
}

fn megabytes(bytes: u64) -> String {
    let digits = if bytes < 100_000 { 6 } else { 3 };
    format!("{:.digits$}", bytes as f64 / 1e6)
}
