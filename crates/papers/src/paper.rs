//! What a paper is made of: studies that are run, experiments that are judged.

use crate::judged::Judged;
use crate::runs::Results;
use node::Plan;
use report::figure::Figure;

/// A paper and what of it is repeated.
pub struct Paper {
    /// Its name here, as in `studies/NAME` and `docs/papers/NAME.md`.
    pub name: &'static str,
    /// Who wrote it, title, year.
    pub citation: &'static str,
    /// What is run.
    pub studies: &'static [Study],
    /// What it says, in its order.
    pub experiments: &'static [Experiment],
    /// Its figures, from whatever results there are.
    pub figures: fn(&Results) -> Vec<Figure>,
}

/// What is run: a scenario, and what no scenario file says.
pub struct Study {
    /// Its name: "figure-7".
    pub name: &'static str,
    /// The scenario's file in the source, for whoever wants to run it alone.
    pub file: &'static str,
    /// What is in it.
    pub text: &'static str,
    /// Sets parameters that a scenario file does not have.
    pub adjust: fn(&mut Plan),
    /// Those parameters in words; empty for none.
    pub adjusted: &'static str,
    /// Inputs that were calibrated to a published output, and to which (RULE-1).
    pub calibrated: &'static [&'static str],
}

/// One statement of a paper.
pub struct Experiment {
    /// Its ID: "EXP-SN-F7-a".
    pub id: &'static str,
    /// What the paper says.
    pub title: &'static str,
    /// Where it says so.
    pub source: &'static str,
    /// How it is repeated, or why not.
    pub content: Content,
}

/// How an experiment is repeated.
pub enum Content {
    /// From the runs of these studies.
    Judged {
        /// Their names.
        studies: &'static [&'static str],
        /// Judges them.
        judge: fn(&Results) -> Judged,
    },
    /// Not yet; what it needs.
    NotYet(&'static str),
}

/// The experiments whose ID begins with one of these; all if there are none. The error is an ID
/// with which none begins.
///
/// # Errors
/// The first ID that selects nothing.
pub fn select<'a>(
    papers: &[&'a Paper],
    ids: &[String],
) -> Result<Vec<(&'a Paper, &'a Experiment)>, String> {
    let all: Vec<(&Paper, &Experiment)> = papers
        .iter()
        .flat_map(|paper| paper.experiments.iter().map(|experiment| (*paper, experiment)))
        .collect();
    let begins = |experiment: &Experiment, id: &String| experiment.id.starts_with(id.as_str());
    if let Some(unknown) = ids.iter().find(|id| !all.iter().any(|(_, one)| begins(one, id))) {
        return Err(unknown.clone());
    }
    let wanted =
        |(_, one): &(&Paper, &Experiment)| ids.is_empty() || ids.iter().any(|id| begins(one, id));
    Ok(all.into_iter().filter(wanted).collect())
}
