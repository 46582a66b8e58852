//! One experiment as `papers --json` prints it.

use papers::{Content, Criterion, Experiment, Judged, Paper, Point, Results, Selected, Verdict};
use serde::Serialize;
use std::collections::BTreeMap;

/// An experiment, its set-up, ours, theirs, the verdict.
#[derive(Serialize)]
pub(crate) struct Entry {
    pub(crate) id: &'static str,
    pub(crate) title: &'static str,
    pub(crate) source: &'static str,
    /// By study.
    pub(crate) setup: BTreeMap<&'static str, BTreeMap<&'static str, String>>,
    pub(crate) ours: Option<f64>,
    pub(crate) ci95: Option<f64>,
    /// What `ours` is.
    pub(crate) unit: &'static str,
    pub(crate) theirs: Option<f64>,
    pub(crate) tolerance: &'static str,
    pub(crate) verdict: Verdict,
    pub(crate) criteria: Vec<Criterion>,
    pub(crate) points: Vec<Point>,
    pub(crate) calibrated: Vec<&'static str>,
    pub(crate) reason: String,
}

/// Every selected experiment whose runs are done, and those that cannot be repeated yet.
pub(crate) fn all(selected: &Selected<'_>, results: &Results) -> Vec<Entry> {
    let experiments = selected.experiments().iter();
    experiments.filter_map(|(paper, experiment)| of(paper, experiment, results)).collect()
}

/// The papers that were selected from.
pub(crate) fn papers<'a>(selected: &Selected<'a>) -> Vec<&'a Paper> {
    let mut papers: Vec<&Paper> = Vec::new();
    for (paper, _) in selected.experiments() {
        if !papers.iter().any(|known| known.name == paper.name) {
            papers.push(paper);
        }
    }
    papers
}

impl Entry {
    /// One that cannot be repeated yet.
    pub(crate) fn waiting(
        (id, title, source): (&'static str, &'static str, &'static str),
        reason: String,
    ) -> Entry {
        Entry {
            id,
            title,
            source,
            setup: BTreeMap::new(),
            ours: None,
            ci95: None,
            unit: "",
            theirs: None,
            tolerance: "",
            verdict: Verdict::NotYet,
            criteria: Vec::new(),
            points: Vec::new(),
            calibrated: Vec::new(),
            reason,
        }
    }
}

fn of(paper: &Paper, experiment: &Experiment, results: &Results) -> Option<Entry> {
    let names = (experiment.id, experiment.title, experiment.source);
    let (studies, judge) = match experiment.content {
        Content::NotYet(needs) => {
            return Some(Entry::waiting(names, format!("not yet reproducible: needs {needs}")));
        }
        Content::Judged { studies, judge } => (studies, judge),
    };
    let mut entry = Entry::waiting(names, String::new());
    if !studies.iter().all(|name| results.has(paper, name)) {
        return None;
    }
    for study in paper.studies.iter().filter(|study| studies.contains(&study.name)) {
        let setup = results.setup(paper, study.name).iter().cloned();
        entry.setup.insert(study.name, setup.collect());
        let new = study.calibrated.iter().filter(|one| !entry.calibrated.contains(one));
        let new: Vec<&str> = new.copied().collect();
        entry.calibrated.extend(new);
    }
    let Judged { verdict, ours, ci95, unit, theirs, tolerance, criteria, points, reason } =
        judge(results);
    let ours = Some(ours);
    Some(Entry { verdict, ours, ci95, unit, theirs, tolerance, criteria, points, reason, ..entry })
}
