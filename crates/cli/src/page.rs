//! The report of a comparison: advice, table, goodput against error rate, one transfer in time.

use crate::compare::VERSION;
use crate::error::Error;
use crate::rundir::unwritable;
use crate::table;
use node::{Case, Plan, Scenario};
use report::page::{
    Axis, Lines, Page, Panel, Point, Scale, Section, Series, SeriesKind, Text, TimeSequence, Tone,
};
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use study::{Row, World};
use trace::timeline::Timeline;

/// The report of a comparison in the simulator.
pub(crate) fn write(
    path: &Path,
    scenario: &Scenario,
    rows: &[Row],
    advice: &str,
) -> Result<(), Error> {
    let timelines = timelines(scenario)?;
    let mut sections = sections(scenario, rows, advice);
    if let Some(((_, first), _)) = timelines.split_first() {
        let panels = timelines
            .iter()
            .map(|(case, timeline)| Panel { scheme: case.scheme.clone(), timeline });
        let panels = panels.collect();
        let (case, _) = &timelines[0];
        let title = format!(
            "One transfer under the same channel: {}, seed {}{}",
            case.sender,
            scenario.seed,
            if first.outages.is_empty() { "" } else { "; the link is away where it is shaded" }
        );
        sections.push(Section::TimeSequence(TimeSequence { title, panels }));
    }
    save(path, scenario, sections)
}

/// The report of the lab: no time-sequence graph yet.
pub(crate) fn write_lab(
    path: &Path,
    scenario: &Scenario,
    rows: &[Row],
    advice: &str,
) -> Result<(), Error> {
    save(path, scenario, sections(scenario, rows, advice))
}

fn sections<'a>(scenario: &Scenario, rows: &[Row], advice: &str) -> Vec<Section<'a>> {
    let advice =
        Text { tone: Tone::Advice, title: String::new(), paragraphs: vec![advice.to_owned()] };
    let mut sections = vec![Section::Text(advice), Section::Table(table::table(rows))];
    for world in [World::Sim, World::Lab] {
        let rows: Vec<&Row> = rows.iter().filter(|row| row.world == world).collect();
        sections.extend(goodput_plots(scenario, &rows).into_iter().map(Section::Lines));
    }
    sections
}

fn save(path: &Path, scenario: &Scenario, sections: Vec<Section<'_>>) -> Result<(), Error> {
    let arguments = std::env::args().skip(1);
    let page = Page {
        title: scenario.title.clone(),
        command: core::iter::once("lasthop".to_owned())
            .chain(arguments)
            .collect::<Vec<_>>()
            .join(" "),
        version: format!("lasthop {VERSION}, commit {}", env!("LASTHOP_COMMIT")),
        sections,
    };
    let file = File::create(path).map_err(|error| unwritable(path, &error))?;
    report::page::write(&page, BufWriter::new(file)).map_err(|error| unwritable(path, &error))
}

/// One run of each scheme in the worst of the first sender's cases, recorded.
fn timelines(scenario: &Scenario) -> Result<Vec<(Case, Timeline)>, Error> {
    let cases = scenario.cases();
    let Some(last) = cases.iter().rfind(|case| case.sender == cases[0].sender) else {
        return Ok(Vec::new());
    };
    let shown = cases
        .iter()
        .filter(|case| Case { scheme: last.scheme.clone(), ..(*case).clone() } == *last);
    let mut timelines = Vec::new();
    for case in shown {
        let plan = Plan::new(scenario, case).map_err(Error::usage)?;
        let Some(spec) = sim::run::transfers(&plan).first().copied() else { continue };
        let mut timeline = Timeline::new(spec);
        sim::run(&plan, scenario.seed, &mut timeline);
        timelines.push((case.clone(), timeline));
    }
    Ok(timelines)
}

/// Goodput against the error rate, one plot per sender, where there is more than one rate.
fn goodput_plots(scenario: &Scenario, rows: &[&Row]) -> Vec<Lines> {
    let rates: Vec<String> = scenario.ber.0.iter().map(ToString::to_string).collect();
    let losses: Vec<String> = scenario.loss.0.iter().map(ToString::to_string).collect();
    let (label, categories, of): (&str, Vec<String>, fn(&Row) -> &str) =
        if rates.len() >= losses.len() {
            ("bit errors", rates, |row| &row.ber)
        } else {
            ("loss", losses, |row| &row.loss)
        };
    let mut senders: Vec<(&str, bool, &str, &str)> = Vec::new();
    for row in rows {
        let sender = (row.tcp, row.sack, row.direction, row.outage.as_str());
        if !senders.contains(&sender) {
            senders.push(sender);
        }
    }
    let mut plots = Vec::new();
    for (tcp, sack, direction, outage) in senders {
        let mine: Vec<&Row> = rows
            .iter()
            .copied()
            .filter(|row| {
                (row.tcp, row.sack, row.direction, row.outage.as_str())
                    == (tcp, sack, direction, outage)
            })
            .collect();
        let lab = mine.first().is_some_and(|row| row.world == World::Lab);
        let world = if lab { " in the lab" } else { "" };
        let sack = if sack { "SACK on" } else { "SACK off" };
        let outage = if outage == "none" { String::new() } else { format!(", outage {outage}") };
        plots.push(Lines {
            title: format!("Goodput{world}, {tcp} ({sack}), {direction}{outage}"),
            x: Axis {
                label: label.to_owned(),
                unit: String::new(),
                scale: Scale::Categories(categories.clone()),
            },
            y: Axis { label: "goodput".into(), unit: "Mbit/s".into(), scale: Scale::Linear },
            series: series(&mine, &categories, of),
        });
    }
    plots
}

fn series(rows: &[&Row], categories: &[String], of: fn(&Row) -> &str) -> Vec<Series> {
    let mut series: Vec<Series> = Vec::new();
    let place = |row: &Row| categories.iter().position(|one| one == of(row));
    for row in rows {
        let (Some(x), Some(goodput)) = (place(row), row.goodput_bps) else { continue };
        let index = series.iter().position(|one| one.scheme == row.scheme);
        let index = index.unwrap_or_else(|| {
            series.push(Series {
                name: row.scheme.clone(),
                scheme: row.scheme.clone(),
                kind: SeriesKind::Measured,
                points: Vec::new(),
            });
            series.len() - 1
        });
        let mbps = |bps: f64| bps / 1e6;
        let interval =
            goodput.ci95.map(|ci| (mbps((goodput.mean - ci).max(0.0)), mbps(goodput.mean + ci)));
        series[index].points.push(Point { x: x as f64, y: mbps(goodput.mean), interval });
    }
    let mut ceiling = Vec::new();
    for row in rows.iter().filter(|row| row.scheme == rows[0].scheme) {
        if let (Some(x), Some(goodput), Some(share)) =
            (place(row), row.goodput_bps, row.ceiling_share)
            && share > 0.0
        {
            ceiling.push(Point { x: x as f64, y: goodput.mean / share / 1e6, interval: None });
        }
    }
    series.push(Series {
        name: "ceiling of the last hop".into(),
        scheme: String::new(),
        kind: SeriesKind::Reference,
        points: ceiling,
    });
    series
}
