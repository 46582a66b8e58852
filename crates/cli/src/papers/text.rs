//! The same for people: in the terminal, as a page, as Markdown.

use super::entry::{self, Entry};
use crate::compare::VERSION;
use crate::output::outln;
use papers::{Paper, Point, Results, Selected, Verdict};
use report::article::{Article, Part};
use report::figure::Figure;
use report::table::{Cell, Column, Emphasis, Kind, Row, Styling, Table};
use std::io::IsTerminal;

/// Prints set-ups, verdicts and reasons to stdout; the values behind each verdict, too, if asked.
pub(crate) fn print(
    selected: &Selected<'_>,
    results: &Results,
    (entries, values): (&[Entry], bool),
) {
    let terminal = std::io::stdout().is_terminal();
    let colour = terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let styling = if colour { Styling::Ansi } else { Styling::Plain };
    for (title, setup) in setups(selected, results) {
        outln!("{title}");
        for (name, value) in setup {
            outln!("  {name:<22} {value}");
        }
        outln!("");
    }
    let judged = || entries.iter().filter(|entry| entry.verdict != Verdict::NotYet);
    let mut tables: Vec<Table> = verdicts(entries).into_iter().collect();
    if values {
        tables.extend(judged().filter(|entry| entry.points.len() > 1).map(points));
    }
    for table in tables {
        outln!("{}\n\n{}", table.caption, table.render(None, styling));
    }
    for entry in judged() {
        let broken = entry.criteria.iter().filter(|one| !one.holds);
        let broken: Vec<&str> = broken.map(|one| one.what.as_str()).collect();
        if !broken.is_empty() {
            outln!("{}: fails: {}", entry.id, broken.join("; "));
        }
        if !entry.reason.is_empty() {
            outln!("{}: {}", entry.id, entry.reason);
        }
    }
    let mut needs = "";
    for entry in entries.iter().filter(|entry| entry.verdict == Verdict::NotYet) {
        if entry.reason != needs {
            outln!("\n{}:", entry.reason);
            needs = &entry.reason;
        }
        outln!("  {:<16} {}", entry.id, entry.title);
    }
}

/// Everything as one text.
pub(crate) fn article(
    selected: &Selected<'_>,
    results: &Results,
    (entries, figures): (&[Entry], &[Figure]),
) -> Article {
    let mut parts = Vec::new();
    for paper in entry::papers(selected) {
        parts.push(Part::Paragraph(format!("{}.", paper.citation)));
    }
    parts.push(Part::Heading("Verdicts".into()));
    parts.extend(verdicts(entries).map(Part::Table));
    parts.push(Part::Heading("Figures".into()));
    parts.extend(figures.iter().cloned().map(Part::Figure));
    for entry in entries.iter().filter(|entry| entry.verdict != Verdict::NotYet) {
        parts.push(Part::Heading(format!("{}: {}", entry.id, entry.title)));
        parts.extend(experiment(entry));
    }
    if let Some(table) = not_yet(entries) {
        parts.push(Part::Heading("Not yet reproducible".into()));
        parts.push(Part::Table(table));
    }
    parts.push(Part::Heading("Set-ups".into()));
    for (title, setup) in setups(selected, results) {
        parts.push(Part::Paragraph(title));
        parts.push(Part::List(setup));
    }
    let arguments = std::env::args().skip(1);
    Article {
        title: "The papers' experiments, repeated".into(),
        command: core::iter::once("lasthop".to_owned())
            .chain(arguments)
            .collect::<Vec<_>>()
            .join(" "),
        version: format!("lasthop {VERSION}, commit {}", env!("LASTHOP_COMMIT")),
        parts,
    }
}

fn experiment(entry: &Entry) -> Vec<Part> {
    let mut facts = vec![
        ("where".to_owned(), entry.source.to_owned()),
        ("ours".to_owned(), format!("{} {}", ours(entry).text, entry.unit)),
    ];
    if let Some(theirs) = entry.theirs {
        facts.push(("published".to_owned(), short(theirs)));
    }
    facts.push(("tolerance".to_owned(), entry.tolerance.to_owned()));
    facts.push(("verdict".to_owned(), entry.verdict.name().to_owned()));
    for one in &entry.criteria {
        let name = if one.holds { "holds" } else { "fails" };
        facts.push((name.to_owned(), one.what.clone()));
    }
    if !entry.calibrated.is_empty() {
        facts.push(("calibrated".to_owned(), entry.calibrated.join("; ")));
    }
    let mut parts = vec![Part::List(facts)];
    if !entry.reason.is_empty() {
        parts.push(Part::Paragraph(entry.reason.clone()));
    }
    if entry.points.len() > 1 {
        parts.push(Part::Table(points(entry)));
    }
    parts
}

/// The set-up of each study; of those after the first what differs from it.
fn setups(selected: &Selected<'_>, results: &Results) -> Vec<(String, Vec<(String, String)>)> {
    let mut setups = Vec::new();
    let mut first: Option<(&str, &[(&'static str, String)])> = None;
    for paper in entry::papers(selected) {
        for study in ran(paper, results) {
            let setup = results.setup(paper, study);
            let known = first.map_or(&[][..], |(_, setup)| setup);
            let title = match first {
                None => format!("Set-up of {}/{study}:", paper.name),
                Some((first, _)) => {
                    format!("Set-up of {}/{study}, as {first} but for:", paper.name)
                }
            };
            let new = setup.iter().filter(|one| !known.contains(one));
            let new = new.map(|(name, value)| ((*name).to_owned(), value.clone()));
            setups.push((title, new.collect()));
            first = first.or(Some((study, setup)));
        }
    }
    setups
}

fn ran<'a>(paper: &'a Paper, results: &'a Results) -> impl Iterator<Item = &'static str> + 'a {
    paper.studies.iter().map(|study| study.name).filter(|study| results.has(paper, study))
}

fn verdicts(entries: &[Entry]) -> Option<Table> {
    let judged = entries.iter().filter(|entry| entry.verdict != Verdict::NotYet);
    let row = |entry: &Entry| Row {
        cells: vec![
            Cell::text(entry.id),
            Cell::text(entry.verdict.name()).with(emphasis(entry.verdict)),
            ours(entry),
            entry.theirs.map_or_else(Cell::none, |theirs| Cell::number(theirs, short(theirs))),
            Cell::text(entry.unit),
            Cell::text(entry.tolerance),
        ],
        ..Row::default()
    };
    let mut table = Table {
        caption: "Ours and the published: means, ± 95 % interval.".into(),
        columns: vec![
            Column::name("experiment"),
            Column::name("verdict"),
            Column::value("ours", "", Kind::Value),
            Column::value("published", "", Kind::Value),
            Column::name("what it is"),
            Column::name("tolerance"),
        ],
        rows: judged.map(row).collect(),
    };
    // A row that begins another figure stands apart in the terminal.
    let group = |row: &Row| row.cells[0].text.split('-').nth(2).unwrap_or("").to_owned();
    for index in 1..table.rows.len() {
        let apart = group(&table.rows[index - 1]) != group(&table.rows[index]);
        table.rows[index].group = table.rows[index - 1].group + u32::from(apart);
    }
    (!table.rows.is_empty()).then_some(table)
}

fn emphasis(verdict: Verdict) -> Emphasis {
    match verdict {
        Verdict::Within | Verdict::Holds => Emphasis::Best,
        Verdict::Outside | Verdict::Fails => Emphasis::Warning,
        Verdict::NoTarget | Verdict::NotYet => Emphasis::Muted,
    }
}

fn not_yet(entries: &[Entry]) -> Option<Table> {
    let waiting = entries.iter().filter(|entry| entry.verdict == Verdict::NotYet);
    let rows = waiting.map(|entry| Row {
        cells: [entry.id, entry.title, entry.reason.trim_start_matches(NEEDS)]
            .map(Cell::text)
            .to_vec(),
        ..Row::default()
    });
    let rows: Vec<Row> = rows.collect();
    let columns = ["experiment", "what the paper says", "needs"].map(Column::name).to_vec();
    let caption = "Not yet reproducible, and why.".into();
    (!rows.is_empty()).then_some(Table { caption, columns, rows })
}

const NEEDS: &str = "not yet reproducible: needs ";

fn points(entry: &Entry) -> Table {
    let any = |of: fn(&Point) -> bool| entry.points.iter().any(of);
    let mut columns = vec![Column::name("curve"), Column::name("at")];
    columns.push(Column::value("ours", "", Kind::Value));
    let (theirs, span) = (any(|one| one.theirs.is_some()), any(|one| one.span.is_some()));
    let on_air = any(|one| one.on_air.is_some());
    let more = [(theirs, "published"), (span, "published span"), (on_air, "on the air")];
    for (_, name) in more.iter().filter(|(wanted, _)| *wanted) {
        columns.push(Column::value(name, "", Kind::Value));
    }
    let row = |point: &Point| {
        let number =
            |value: Option<f64>| value.map_or_else(Cell::none, |v| Cell::number(v, short(v)));
        let mut cells = vec![Cell::text(&point.series), Cell::text(&point.at)];
        cells.push(Cell::number(point.ours, with_interval(point.ours, point.ci95)));
        if theirs {
            cells.push(number(point.theirs));
        }
        if span {
            let span = point.span.map(|(low, high)| format!("{}-{}", short(low), short(high)));
            cells.push(span.map_or_else(Cell::none, Cell::text));
        }
        if on_air {
            cells.push(number(point.on_air));
        }
        Row { cells, ..Row::default() }
    };
    let rows = entry.points.iter().map(row).collect();
    Table { caption: format!("Values of {}.", entry.id), columns, rows }
}

fn ours(entry: &Entry) -> Cell {
    let cell = |ours| Cell::number(ours, with_interval(ours, entry.ci95));
    entry.ours.map_or_else(Cell::none, cell)
}

fn with_interval(value: f64, ci95: Option<f64>) -> String {
    match ci95 {
        Some(ci95) => format!("{} ± {}", short(value), short(ci95)),
        None => short(value),
    }
}

/// Three decimals below ten, fewer above.
fn short(value: f64) -> String {
    let digits = match value.abs() {
        size if size < 10.0 => 3,
        size if size < 100.0 => 2,
        _ => 1,
    };
    format!("{value:.digits$}")
}
