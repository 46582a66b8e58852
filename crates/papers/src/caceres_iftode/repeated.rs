//! What lecture notes on the paper (V. N. Padmanabhan) repeat of it: judged as there.

use super::{EXPERIMENTS, MOVING, experiment, latency};
use crate::judged::{Judged, criterion};
use crate::paper::{Content, Experiment};
use crate::runs::Results;

pub(super) const NOTES: Experiment = experiment(
    ("EXP-LN-a", "lecture notes on the paper"),
    "losses of 6, 12 and 31 %, 0.15 s, a pause of 0.8 s, then 0.2 s, 7 and 14 % left",
    &[MOVING, latency::EXACT],
    repeated,
);

/// Where the paper itself has them.
const REPEATED: [&str; 7] = [
    "EXP-CI-F2-b",
    "EXP-CI-F2-c",
    "EXP-CI-F2-d",
    "EXP-CI-F5-a",
    "EXP-CI-F5-b",
    "EXP-CI-F9-a",
    "EXP-CI-F10-c",
];

fn repeated(results: &Results) -> Judged {
    let judged = REPEATED.into_iter().filter_map(|id| {
        let found = EXPERIMENTS.iter().find(|one| one.id == id)?;
        let Content::Judged { judge, .. } = &found.content else { return None };
        Some((id, judge(results)))
    });
    let criteria: Vec<_> = judged
        .map(|(id, judged)| {
            let what = format!("{id}: {:.3} {}", judged.ours, judged.unit);
            criterion(!judged.verdict.contradicts(), what)
        })
        .collect();
    let hold = criteria.iter().filter(|one| one.holds).count();
    let tolerance = "each as in the paper's own experiment";
    Judged::shape("of 7 hold", (hold as f64, None), tolerance, criteria).with_theirs(7.0)
}
