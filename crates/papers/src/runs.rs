//! Runs the studies that the selected experiments need, each once.

use crate::paper::{Content, Experiment, Paper, Study};
use crate::setup::setup;
use crate::watch::{Watch, Watched};
use node::plan::NotSimulated;
use node::scenario::{BitErrors, Loss, ScenarioError, Sender, SettingError};
use node::{Case, Draft, Plan, Scenario};
use study::replicate::ThreadsError;
use study::statistics::Mean;
use study::{Row, Stop, World, replicate};

/// What can be wrong with a study before anything is run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Its file.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// What its file says.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// One of its cases.
    #[error(transparent)]
    NotSimulated(#[from] NotSimulated),
    /// The machine.
    #[error(transparent)]
    Threads(#[from] ThreadsError),
}

/// All runs of one case.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The case.
    pub case: Case,
    /// What was run.
    pub plan: Plan,
    /// The usual measures, with their intervals.
    pub row: Row,
    /// The papers' own, run by run.
    pub watched: Vec<Watched>,
}

/// Selected experiments, and how many runs they need.
pub struct Selected<'a> {
    experiments: Vec<(&'a Paper, &'a Experiment)>,
    studies: Vec<Prepared<'a>>,
}

/// A study, ready to be run.
struct Prepared<'a> {
    paper: &'a Paper,
    study: &'a Study,
    scenario: Scenario,
    plans: Vec<(Case, Plan)>,
}

/// The outcomes of studies whose every run was done.
pub struct Results {
    studies: Vec<Done>,
}

struct Done {
    paper: &'static str,
    study: &'static str,
    scenario: Scenario,
    outcomes: Vec<Outcome>,
    setup: Vec<(&'static str, String)>,
}

impl<'a> Selected<'a> {
    /// Prepares what these experiments need, with so many seeds if given; each study has a number
    /// of its own otherwise.
    ///
    /// # Errors
    /// If a study cannot be run.
    pub fn new(
        experiments: Vec<(&'a Paper, &'a Experiment)>,
        seeds: Option<u32>,
    ) -> Result<Self, Error> {
        let mut studies: Vec<Prepared<'a>> = Vec::new();
        for (paper, experiment) in &experiments {
            let Content::Judged { studies: names, .. } = experiment.content else { continue };
            for study in paper.studies.iter().filter(|study| names.contains(&study.name)) {
                let known = |one: &Prepared<'_>| (one.paper.name, one.study.name);
                if !studies.iter().any(|one| known(one) == (paper.name, study.name)) {
                    studies.push(prepare(paper, study, seeds)?);
                }
            }
        }
        Ok(Selected { experiments, studies })
    }

    /// The experiments.
    pub fn experiments(&self) -> &[(&'a Paper, &'a Experiment)] {
        &self.experiments
    }

    /// How many runs that takes.
    pub fn runs(&self) -> u64 {
        let runs = |one: &Prepared<'_>| one.plans.len() as u64 * u64::from(one.scenario.seeds);
        self.studies.iter().map(runs).sum()
    }
}

/// Reads a study.
fn prepare<'a>(
    paper: &'a Paper,
    study: &'a Study,
    seeds: Option<u32>,
) -> Result<Prepared<'a>, Error> {
    let mut draft: Draft = node::scenario::parse(study.file, study.text)?;
    draft.seeds = seeds.or(draft.seeds);
    let scenario = Scenario::complete(draft)?;
    let mut plans = Vec::new();
    for case in scenario.cases() {
        let mut plan = Plan::new(&scenario, &case)?;
        (study.adjust)(&mut plan);
        plans.push((case, plan));
    }
    Ok(Prepared { paper, study, scenario, plans })
}

/// Runs everything on `jobs` threads (0: all cores). What was asked to stop leaves out the studies
/// that it interrupted.
///
/// # Errors
/// If the threads cannot be started.
pub fn run(
    selected: &Selected<'_>,
    jobs: usize,
    (stop, done): (&Stop, impl Fn() + Sync),
) -> Result<Results, Error> {
    let mut runs: Vec<(&Plan, u64)> = Vec::new();
    for one in &selected.studies {
        let seeds = one.scenario.seed..one.scenario.seed + u64::from(one.scenario.seeds);
        let plans = one.plans.iter();
        runs.extend(plans.flat_map(|(_, plan)| seeds.clone().map(move |seed| (plan, seed))));
    }
    let samples = replicate(&runs, jobs, (stop, done), |plan, seed| {
        let transfers = sim::run::transfers(plan);
        let mut watch = transfers.first().map(|spec| Watch::new(plan, *spec));
        let sample = study::compare::sample(plan, seed, watch.as_mut());
        let watched = watch.map(|watch| watch.finish(sample.seconds));
        (sample, watched.unwrap_or_default())
    })?;
    let mut samples = samples.into_iter();
    let mut studies = Vec::new();
    for one in &selected.studies {
        let mut outcomes = Vec::new();
        let mut is_complete = true;
        for (case, plan) in &one.plans {
            let seeds = one.scenario.seeds as usize;
            let (of_case, watched): (Vec<_>, Vec<_>) =
                samples.by_ref().take(seeds).flatten().unzip();
            is_complete &= of_case.len() == seeds;
            let row = Row::new(case, plan, World::Sim, of_case);
            outcomes.push(Outcome { case: case.clone(), plan: plan.clone(), row, watched });
        }
        if is_complete {
            let setup = setup(one.study, &one.scenario, &outcomes);
            let (paper, study) = (one.paper.name, one.study.name);
            studies.push(Done { paper, study, scenario: one.scenario.clone(), outcomes, setup });
        }
    }
    Ok(Results { studies })
}

impl Results {
    /// True if all runs of a study were done.
    pub fn has(&self, paper: &Paper, study: &str) -> bool {
        self.done(paper.name, study).is_some()
    }

    /// The set-up of a study.
    pub fn setup(&self, paper: &Paper, study: &str) -> &[(&'static str, String)] {
        self.done(paper.name, study).map_or(&[], |done| &done.setup)
    }

    /// The scenario of a study.
    pub fn scenario(&self, paper: &str, study: &str) -> Option<&Scenario> {
        self.done(paper, study).map(|done| &done.scenario)
    }

    /// Every invariant that was broken in any run.
    pub fn failures(&self) -> Vec<String> {
        let outcomes = self.studies.iter().flat_map(|done| &done.outcomes);
        outcomes.flat_map(|one| one.row.checks.0.iter().cloned()).collect()
    }

    /// The outcomes of a study; none if it was not run.
    pub fn of(&self, paper: &str, study: &str) -> &[Outcome] {
        self.done(paper, study).map_or(&[], |done| &done.outcomes)
    }

    fn done(&self, paper: &str, study: &str) -> Option<&Done> {
        self.studies.iter().find(|done| (done.paper, done.study) == (paper, study))
    }
}

impl Outcome {
    /// True for this scheme.
    pub(crate) fn is(&self, scheme: &str) -> bool {
        self.case.scheme == scheme
    }

    /// True for this sender.
    pub(crate) fn sends(&self, sender: Sender) -> bool {
        self.case.sender == sender
    }

    /// True for this rate of bit errors and no other losses.
    pub(crate) fn meets(&self, ber: BitErrors) -> bool {
        self.case.ber == ber && self.case.loss == Loss::None
    }

    /// Goodput, Mbit/s, and half of its 95 % interval.
    pub(crate) fn mbps(&self) -> (f64, Option<f64>) {
        self.row
            .goodput_bps
            .map_or((0.0, None), |mean| (mean.mean / 1e6, mean.ci95.map(|ci| ci / 1e6)))
    }

    /// Standard deviation of the goodput over runs, Mbit/s.
    pub(crate) fn deviation_mbps(&self) -> f64 {
        let values: Vec<f64> = self.row.samples.iter().map(|one| one.goodput_bps() / 1e6).collect();
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
        (squares / (n - 1.0).max(1.0)).sqrt()
    }

    /// Everything on the air over the time of the run, Mbit/s.
    pub(crate) fn on_air_mbps(&self) -> f64 {
        let rate = |one: &study::Sample| one.measures.air_bytes as f64 * 8.0 / one.seconds / 1e6;
        let rates: Vec<f64> = self.row.samples.iter().map(rate).collect();
        Mean::of(&rates).map_or(0.0, |mean| mean.mean)
    }

    /// The mean of a count of each run, and half of its 95 % interval.
    pub(crate) fn mean_watched(&self, of: fn(&Watched) -> u64) -> (f64, Option<f64>) {
        let values: Vec<f64> = self.watched.iter().map(|one| of(one) as f64).collect();
        Mean::of(&values).map_or((0.0, None), |mean| (mean.mean, mean.ci95))
    }
}
