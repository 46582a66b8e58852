//! A verdict and what it rests on.

use serde::Serialize;

/// Whether ours agrees with what was published.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Verdict {
    /// A number, within its tolerance.
    #[serde(rename = "within")]
    Within,
    /// A number, outside its tolerance.
    #[serde(rename = "outside")]
    Outside,
    /// Nothing was published: ours stands alone.
    #[serde(rename = "no target")]
    NoTarget,
    /// An order, a ratio, the presence of an effect: as published.
    #[serde(rename = "shape holds")]
    Holds,
    /// The same, not as published.
    #[serde(rename = "shape fails")]
    Fails,
    /// Something it needs is not there yet.
    #[serde(rename = "not yet")]
    NotYet,
}

impl Verdict {
    /// As printed.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Within => "within",
            Verdict::Outside => "outside",
            Verdict::NoTarget => "no target",
            Verdict::Holds => "shape holds",
            Verdict::Fails => "shape fails",
            Verdict::NotYet => "not yet",
        }
    }

    /// True if ours contradicts the paper.
    pub fn contradicts(self) -> bool {
        matches!(self, Verdict::Outside | Verdict::Fails)
    }
}

/// One condition of a verdict.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Criterion {
    /// What must hold, with our number in it.
    pub what: String,
    /// Whether it does.
    pub holds: bool,
}

/// One of our values beside the published one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Point {
    /// Which curve or row.
    pub series: String,
    /// Where on it.
    pub at: String,
    /// Ours.
    pub ours: f64,
    /// Half the width of its 95 % interval.
    pub ci95: Option<f64>,
    /// The published one.
    pub theirs: Option<f64>,
    /// Its published span.
    pub span: Option<(f64, f64)>,
    /// Everything on the air of the last hop, both ways, over the same time, where that makes sense
    /// (RULE-5): same unit.
    pub on_air: Option<f64>,
}

/// What came of an experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// The verdict.
    pub verdict: Verdict,
    /// The number that decides, or the most telling of several.
    pub ours: f64,
    /// Half the width of its 95 % interval.
    pub ci95: Option<f64>,
    /// What it is, and its unit: "Mbit/s", "times, at 1/64Kbit".
    pub unit: &'static str,
    /// The same number as published.
    pub theirs: Option<f64>,
    /// How far apart they may be, or what must hold.
    pub tolerance: &'static str,
    /// The conditions of the verdict.
    pub criteria: Vec<Criterion>,
    /// The values behind it.
    pub points: Vec<Point>,
    /// Why ours differs, or what is to be known; empty for nothing.
    pub reason: String,
}

impl Judged {
    /// A number with no published value.
    pub(crate) fn without_target(unit: &'static str, (ours, ci95): (f64, Option<f64>)) -> Judged {
        Judged {
            verdict: Verdict::NoTarget,
            ours,
            ci95,
            unit,
            theirs: None,
            tolerance: "none published",
            criteria: Vec::new(),
            points: Vec::new(),
            reason: String::new(),
        }
    }

    /// A shape: it holds if every condition does.
    pub(crate) fn shape(
        unit: &'static str,
        (ours, ci95): (f64, Option<f64>),
        tolerance: &'static str,
        criteria: Vec<Criterion>,
    ) -> Judged {
        let holds = criteria.iter().all(|one| one.holds);
        let verdict = if holds { Verdict::Holds } else { Verdict::Fails };
        Judged { verdict, tolerance, criteria, ..Judged::without_target(unit, (ours, ci95)) }
    }

    /// A number: within its tolerance if every condition holds.
    pub(crate) fn number(
        unit: &'static str,
        (ours, ci95): (f64, Option<f64>),
        (theirs, tolerance): (f64, &'static str),
        criteria: Vec<Criterion>,
    ) -> Judged {
        let holds = criteria.iter().all(|one| one.holds);
        let verdict = if holds { Verdict::Within } else { Verdict::Outside };
        let theirs = Some(theirs);
        Judged {
            verdict,
            theirs,
            tolerance,
            criteria,
            ..Judged::without_target(unit, (ours, ci95))
        }
    }

    pub(crate) fn with_theirs(self, theirs: f64) -> Judged {
        Judged { theirs: Some(theirs), ..self }
    }

    pub(crate) fn with_points(self, points: Vec<Point>) -> Judged {
        Judged { points, ..self }
    }

    pub(crate) fn because(self, reason: String) -> Judged {
        Judged { reason, ..self }
    }
}

/// A condition.
pub(crate) fn criterion(holds: bool, what: String) -> Criterion {
    Criterion { what, holds }
}
