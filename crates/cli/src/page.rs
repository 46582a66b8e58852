//! The report of a comparison: advice, table, goodput against error rate, one transfer in time.

use crate::captured::Measured;
use crate::compare::VERSION;
use crate::error::Error;
use crate::kept::Run;
use crate::rundir::unwritable;
use crate::table::{self, Statistic};
use node::scenario::Departures;
use node::{Case, Plan, Scenario};
use report::page::{
    Axis, Lines, Page, Panel, Point, Scale, Section, Series, SeriesKind, Text, TimeSequence, Tone,
};
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use study::{Row, World};
use trace::hash::TraceHash;
use trace::timeline::Timeline;

/// The report of a comparison in the simulator.
pub(crate) fn write(
    path: &Path,
    scenario: &Scenario,
    rows: &[Row],
    advice: &str,
) -> Result<(), Error> {
    let played =
        shown(scenario).iter().map(|case| play(scenario, case)).collect::<Result<Vec<_>, _>>();
    write_played(path, scenario, (rows, advice), &played?)
}

/// The same of runs that were played.
pub(crate) fn write_played(
    path: &Path,
    scenario: &Scenario,
    (rows, advice): (&[Row], &str),
    played: &[Played],
) -> Result<(), Error> {
    let remarks = table::validated(&study::validation(scenario, rows));
    let mut sections = sections(scenario, rows, advice, &remarks);
    sections.extend(graph(scenario, played.iter().map(played_panel).collect()));
    save(path, scenario, sections)
}

/// The page of one run that was kept: what it was, and what happened, other schemes beside it.
pub(crate) fn write_run(path: &Path, run: &Run, played: &[Played]) -> Result<(), Error> {
    let mut said = vec![sentence(run)];
    if played.len() > 1 {
        said.push("Beside it, the other schemes of its scenario under the same channel.".into());
    }
    said.push(format!("The run by itself: {}", run.manifest.command));
    let text = Text { tone: Tone::Note, title: String::new(), paragraphs: said };
    let panels = played.iter().map(played_panel).collect();
    let title = graph_title(&run.scenario, played);
    let graph = Section::TimeSequence(TimeSequence { title, panels });
    save(path, &run.scenario, vec![Section::Text(text), graph])
}

/// The page of one run of the lab: what its captures show, and what the simulator predicts.
pub(crate) fn write_lab_run(path: &Path, run: &Run, measured: &Measured) -> Result<(), Error> {
    let mut said = vec![
        sentence(run),
        "Measured in the lab, and read from the captures of its three machines; what is called \
         predicted is the simulator's, under the same channel."
            .to_owned(),
    ];
    said.extend(measured.remark());
    said.push(format!("The run by itself: {}", run.manifest.command));
    let text = Text { tone: Tone::Note, title: String::new(), paragraphs: said };
    let predictions = predictions(&run.scenario, &measured.timelines)?;
    let panels = lab_panels(&measured.timelines, &predictions);
    let title = measured_title(&run.scenario, measured);
    let graph = Section::TimeSequence(TimeSequence { title, panels });
    save(path, &run.scenario, vec![Section::Text(text), graph])
}

/// Outages or handoffs: one of the two there may be.
fn away(row: &Row) -> &str {
    row.handoff.as_deref().unwrap_or(&row.outage)
}

/// What a run was, and what came of it.
fn sentence(Run { case, manifest, .. }: &Run) -> String {
    format!(
        "{} with the sender {} (SACK {}), {}, bit errors {}, loss {}, outage {}, handoff {}, seed \
         {}: {:.3} Mbit/s over {:.3} s.",
        case.scheme,
        case.sender,
        case.sack,
        case.direction,
        case.ber,
        case.loss,
        case.outage,
        case.handoff,
        manifest.seed,
        manifest.goodput_bps.unwrap_or(f64::NAN) / 1e6,
        manifest.seconds.unwrap_or(f64::NAN),
    )
}

/// What the graph of these runs shows.
pub(crate) fn measured_title(scenario: &Scenario, measured: &Measured) -> String {
    let first = measured.timelines.first();
    let sender = first.map_or("", |(case, _)| case.sender.name());
    title(sender, scenario.seed, measured.timelines.iter().map(|(_, timeline)| timeline))
}

/// A panel for each run of the lab.
pub(crate) fn measured_panels(measured: &Measured) -> Vec<Panel<'_>> {
    lab_panels(&measured.timelines, &[])
}

/// One run of the simulator, recorded.
pub(crate) struct Played {
    pub(crate) case: Case,
    pub(crate) timeline: Timeline,
    /// How long it was.
    pub(crate) seconds: f64,
    /// Hash of its records.
    pub(crate) hash: String,
}

/// Runs a case with the scenario's first seed.
pub(crate) fn play(scenario: &Scenario, case: &Case) -> Result<Played, Error> {
    let plan = Plan::new(scenario, case).map_err(Error::usage)?;
    let spec = sim::run::transfers(&plan).first().copied();
    let spec = spec.ok_or_else(|| Error::usage("the scenario has no transfer to show"))?;
    let (mut timeline, mut hash) = (Timeline::new(spec), TraceHash::default());
    if let Some(roaming) = sim::course::roaming(&plan) {
        timeline = timeline.among_cells(roaming);
    }
    let outcome = sim::run(&plan, scenario.seed, (&mut timeline, &mut hash));
    if let Some(transfer) = plan.transfers.first() {
        let bad = sim::run::fades(&plan, scenario.seed, transfer.direction, outcome.ended_at);
        timeline.fades = bad.iter().map(|stretch| (stretch.start, stretch.end)).collect();
    }
    if let Some(roaming) = &mut timeline.roaming {
        roaming.with_course(sim::course::course(&plan, scenario.seed, outcome.ended_at));
    }
    let (seconds, hash) = (outcome.ended_at.as_secs_f64(), format!("{:016x}", hash.value()));
    Ok(Played { case: case.clone(), timeline, seconds, hash })
}

/// A panel for a run.
pub(crate) fn played_panel(played: &Played) -> Panel<'_> {
    panel(&played.case, "", &played.timeline)
}

/// What the graph of these runs shows.
pub(crate) fn graph_title(scenario: &Scenario, played: &[Played]) -> String {
    let sender = played.first().map(|one| one.case.sender);
    let name = sender.map_or("", node::scenario::Sender::name);
    title(name, scenario.seed, played.iter().map(|one| &one.timeline))
}

fn title<'a>(sender: &str, seed: u64, timelines: impl Iterator<Item = &'a Timeline>) -> String {
    let (mut away, mut bad) = (false, false);
    for timeline in timelines {
        away |= !timeline.outages.is_empty();
        bad |= !timeline.fades.is_empty();
    }
    let shaded = match (away, bad) {
        (true, true) => "; the link is away (grey) or bad (amber) where shaded",
        (true, false) => "; the link is away where it is shaded",
        (false, true) => "; the link is bad where it is shaded",
        (false, false) => "",
    };
    format!("One transfer under the same channel: {sender}, seed {seed}{shaded}")
}

/// What the report of the lab has besides its rows.
pub(crate) struct Lab<'a> {
    /// What the radio saw of the cases of [`shown`].
    pub(crate) timelines: &'a [(Case, Timeline)],
    /// Whether predictions stand beside.
    pub(crate) predicted: bool,
    /// Sentences below the table.
    pub(crate) remarks: &'a [String],
    /// The folders of runs whose packets were kept.
    pub(crate) runs: &'a [PathBuf],
}

/// The report of the lab: what the radio saw of one transfer beside what the simulator predicts.
pub(crate) fn write_lab(
    path: &Path,
    scenario: &Scenario,
    rows: &[Row],
    (advice, lab): (&str, &Lab<'_>),
) -> Result<(), Error> {
    let mut sections = sections(scenario, rows, advice, lab.remarks);
    let predictions = match lab.predicted {
        true => predictions(scenario, lab.timelines)?,
        false => Vec::new(),
    };
    sections.extend(graph(scenario, lab_panels(lab.timelines, &predictions)));
    sections.push(runs_kept(lab.runs));
    save(path, scenario, sections)
}

/// What the simulator makes of these cases, where it has a model.
fn predictions(scenario: &Scenario, measured: &[(Case, Timeline)]) -> Result<Vec<Played>, Error> {
    // The daemon does not see the radio's queue.
    let scenario = Scenario { departures: Departures::Device, ..scenario.clone() };
    let cases = measured.iter().map(|(case, _)| case);
    let modelled = cases.filter(|case| Plan::new(&scenario, case).is_ok());
    modelled.map(|case| play(&scenario, case)).collect()
}

/// Runs of the lab, each before its prediction.
fn lab_panels<'a>(measured: &'a [(Case, Timeline)], predictions: &'a [Played]) -> Vec<Panel<'a>> {
    let (mut pairs, mut single) = (Vec::new(), Vec::new());
    for (case, timeline) in measured {
        let measured = panel(case, ", lab", timeline);
        match predictions.iter().find(|played| played.case == *case) {
            Some(Played { timeline, .. }) => {
                pairs.extend([measured, panel(case, ", predicted", timeline)]);
            }
            None => single.push(measured),
        }
    }
    // What has a prediction comes first, so that two columns hold each beside its own.
    pairs.into_iter().chain(single).collect()
}

/// How single runs can be looked at.
fn runs_kept(runs: &[PathBuf]) -> Section<'static> {
    let view = |run: &PathBuf| format!("lasthop view {}", run.display());
    let paragraphs = match runs {
        [] => vec![
            "Packets of single runs were not kept. With --pcap they are, and `lasthop view` shows \
             each run by itself."
                .to_owned(),
        ],
        runs => {
            let more = runs.len().saturating_sub(RUNS_NAMED_MAX);
            let more = (more > 0).then(|| format!("and {more} more, beside them"));
            let named = runs.iter().take(RUNS_NAMED_MAX).map(view);
            let intro = "Each run by itself, the other schemes under the same channel beside it:";
            [intro.to_owned()].into_iter().chain(named).chain(more).collect()
        }
    };
    Section::Text(Text { tone: Tone::Note, title: "Single runs".to_owned(), paragraphs })
}

/// No page names more runs.
const RUNS_NAMED_MAX: usize = 12;

fn panel<'a>(case: &Case, world: &str, timeline: &'a Timeline) -> Panel<'a> {
    Panel { scheme: case.scheme.clone(), name: format!("{}{world}", case.scheme), timeline }
}

fn graph<'a>(scenario: &Scenario, panels: Vec<Panel<'a>>) -> Option<Section<'a>> {
    panels.first()?;
    let sender = shown(scenario).first()?.sender.name();
    let title = title(sender, scenario.seed, panels.iter().map(|panel| panel.timeline));
    Some(Section::TimeSequence(TimeSequence { title, panels }))
}

fn sections<'a>(
    scenario: &Scenario,
    rows: &[Row],
    advice: &str,
    remarks: &[String],
) -> Vec<Section<'a>> {
    let text = |tone, paragraphs| Section::Text(Text { tone, title: String::new(), paragraphs });
    let mut sections = vec![text(Tone::Advice, vec![advice.to_owned()])];
    sections.push(Section::Table(table::table(rows)));
    if !remarks.is_empty() {
        sections.push(text(Tone::Note, remarks.to_vec()));
    }
    let statistic = Statistic::of(rows);
    for world in [World::Lab, World::Sim] {
        let rows: Vec<&Row> = rows.iter().filter(|row| row.world == world).collect();
        let plots = goodput_plots(scenario, &rows, statistic);
        sections.extend(plots.into_iter().map(Section::Lines));
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

/// The cases that are shown in time: each scheme in the last, and so worst, of the first sender's.
pub(crate) fn shown(scenario: &Scenario) -> Vec<Case> {
    let cases = scenario.cases();
    let Some(last) = cases.iter().rfind(|case| case.sender == cases[0].sender) else {
        return Vec::new();
    };
    let alike = |case: &&Case| Case { scheme: last.scheme.clone(), ..(*case).clone() } == *last;
    cases.iter().filter(alike).cloned().collect()
}

/// Goodput against the error rate, one plot per sender, where there is more than one rate.
fn goodput_plots(scenario: &Scenario, rows: &[&Row], statistic: Statistic) -> Vec<Lines> {
    let rates: Vec<String> = scenario.ber.0.iter().map(ToString::to_string).collect();
    let losses: Vec<String> = scenario.loss.0.iter().map(ToString::to_string).collect();
    let (label, categories, of): (&str, Vec<String>, fn(&Row) -> &str) =
        if rates.len() >= losses.len() {
            ("bit errors", rates, |row| &row.ber)
        } else {
            ("loss", losses, |row| &row.loss)
        };
    if categories.len() < 2 {
        return Vec::new();
    }
    let mut senders: Vec<(&str, bool, &str, &str)> = Vec::new();
    for row in rows {
        let sender = (row.tcp, row.sack, row.direction, away(row));
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
                (row.tcp, row.sack, row.direction, away(row)) == (tcp, sack, direction, outage)
            })
            .collect();
        let world = match (mine.first().map(|row| row.world), statistic) {
            (Some(World::Lab), _) => " in the lab",
            (_, Statistic::Median) => " predicted",
            (_, Statistic::Mean) => "",
        };
        let sack = if sack { "SACK on" } else { "SACK off" };
        let is_outage = mine.iter().all(|row| row.handoff.is_none());
        let outage = match outage {
            "none" => String::new(),
            outage if is_outage => format!(", outage {outage}"),
            handoff => format!(", handoff {handoff}"),
        };
        plots.push(Lines {
            title: format!("Goodput{world}, {tcp} ({sack}), {direction}{outage}"),
            x: Axis {
                label: label.to_owned(),
                unit: String::new(),
                scale: Scale::Categories(categories.clone()),
            },
            y: Axis { label: "goodput".into(), unit: "Mbit/s".into(), scale: Scale::Linear },
            interval: statistic.interval().to_owned(),
            series: series(&mine, &categories, (of, statistic)),
        });
    }
    plots
}

fn series(
    rows: &[&Row],
    categories: &[String],
    (of, statistic): (fn(&Row) -> &str, Statistic),
) -> Vec<Series> {
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
        let (value, interval) = statistic.point(&goodput);
        let interval = interval.map(|(low, high)| (mbps(low), mbps(high)));
        series[index].points.push(Point { x: x as f64, y: mbps(value), interval });
    }
    let mut ceiling = Vec::new();
    for row in rows.iter().filter(|row| row.scheme == rows[0].scheme) {
        if let Some(x) = place(row) {
            ceiling.push(Point { x: x as f64, y: row.ceiling_bps / 1e6, interval: None });
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
