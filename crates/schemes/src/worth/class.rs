//! The flows of one class: what those with help have, what those without, and what follows.

use super::Worth;
use super::ledger::FlowReport;
use sansio::Duration;

/// Who gets help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// The scheme sees it, and may act.
    Helped,
    /// It passes untouched, to compare with.
    Control,
}

/// What is known of a class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verdict {
    /// Too little to tell: most are helped.
    #[default]
    Open,
    /// Help is worth something: most are helped.
    Gain,
    /// It makes no difference: the agent stands aside.
    NoGain,
    /// It costs more than the budget: the agent stands aside.
    Harm,
}

/// What was measured of a class.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassReport {
    /// Its name.
    pub name: String,
    /// What follows.
    pub verdict: Verdict,
    /// Flows with help that counted, and without.
    pub flows: [u64; 2],
    /// The geometric mean of their goodput, in bytes per second, with help and without; `None`
    /// without any.
    pub goodput: [Option<f64>; 2],
    /// Goodput with help over goodput without, less one: the bounds within which it is with 95 %
    /// confidence, as of the last look. `None` before it.
    pub gain: Option<(f64, f64)>,
    /// Only while observing, of flows that are over: how often the scheme would have sent a segment
    /// again,
    pub would_repair: u64,
    /// how long flows waited for these beyond a round trip of the last hop,
    pub would_save: Duration,
    /// and how long they were busy.
    pub observed_busy: Duration,
}

/// Sums of logarithms: goodput is a product of many things, and its logarithm nearly normal.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    count: f64,
    sum: f64,
    squares: f64,
}

/// One class.
#[derive(Clone, Debug)]
pub(super) struct Class {
    name: String,
    verdict: Verdict,
    /// Helped, control.
    groups: [Sums; 2],
    gain: Option<(f64, f64)>,
    would_repair: u64,
    would_save: Duration,
    observed_busy: Duration,
    /// Flows of each group since the last look,
    new: [u64; 2],
    /// and how many of each are needed for the next one. To look after each flow would sooner or
    /// later find whatever one looks for.
    next_look: u64,
}

/// Flows of the smaller group at the first look.
const FIRST_LOOK: u64 = 8;
/// Each look takes twice as many new ones as the one before, up to this.
const LOOK_MAX: u64 = 256;
/// Beyond so many, older ones count half: paths change.
const FLOWS_KEPT: f64 = 512.0;
/// What may be gained at most, where help is not worth its while: 1 %.
const GAIN_MIN: f64 = 0.01;
/// 95 % of a normal distribution are within so many standard deviations.
const DEVIATIONS: f64 = 1.96;

impl Verdict {
    /// The group of a flow on which the lot fell, or did not. The lot seldom falls.
    pub(super) fn group(self, lot: bool) -> Group {
        let helps = matches!(self, Verdict::Open | Verdict::Gain);
        if helps != lot { Group::Helped } else { Group::Control }
    }

    /// A word for it.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Open => "open",
            Verdict::Gain => "gain",
            Verdict::NoGain => "no gain",
            Verdict::Harm => "harm",
        }
    }
}

impl Sums {
    fn add(&mut self, value: f64) {
        self.count += 1.0;
        self.sum += value;
        self.squares += value * value;
    }

    fn halve(&mut self) {
        self.count /= 2.0;
        self.sum /= 2.0;
        self.squares /= 2.0;
    }

    fn mean(&self) -> f64 {
        self.sum / self.count
    }

    /// The square of the mean's standard error.
    fn error(&self) -> f64 {
        let variance = (self.squares - self.sum * self.mean()) / (self.count - 1.0);
        variance.max(0.0) / self.count
    }
}

impl Class {
    pub(super) fn new(name: String) -> Self {
        Class {
            name,
            verdict: Verdict::Open,
            groups: [Sums::default(); 2],
            gain: None,
            would_repair: 0,
            would_save: Duration::ZERO,
            observed_busy: Duration::ZERO,
            new: [0; 2],
            next_look: FIRST_LOOK,
        }
    }

    pub(super) fn verdict(&self) -> Verdict {
        self.verdict
    }

    pub(super) fn report(&self) -> ClassReport {
        let mean = |group: &Sums| (group.count > 0.0).then(|| libm::exp(group.mean()));
        let [helped, control] = &self.groups;
        ClassReport {
            name: self.name.clone(),
            verdict: self.verdict,
            flows: [helped.count as u64, control.count as u64],
            goodput: [mean(helped), mean(control)],
            gain: self.gain,
            would_repair: self.would_repair,
            would_save: self.would_save,
            observed_busy: self.observed_busy,
        }
    }

    /// A flow is over that was only observed.
    pub(super) fn observed(&mut self, flow: &FlowReport) {
        self.would_repair += flow.would_repair;
        self.would_save += flow.would_save;
        self.observed_busy += flow.busy;
    }

    /// A flow is over; it had this goodput.
    pub(super) fn add(&mut self, group: Group, goodput: f64, worth: &Worth) {
        self.groups[group as usize].add(libm::log(goodput));
        self.new[group as usize] += 1;
        if self.new.iter().all(|new| *new >= self.next_look) {
            self.look(worth);
        }
        for group in &mut self.groups {
            if group.count > FLOWS_KEPT {
                group.halve();
            }
        }
    }

    /// Looks at what was measured so far.
    fn look(&mut self, worth: &Worth) {
        let [helped, control] = &self.groups;
        let difference = helped.mean() - control.mean();
        let margin = DEVIATIONS * libm::sqrt(helped.error() + control.error());
        let [low, high] = [difference - margin, difference + margin].map(libm::expm1);
        self.gain = Some((low, high));
        let before = self.verdict;
        self.verdict = if low > 0.0 {
            Verdict::Gain
        } else if high < 0.0 && libm::expm1(difference) < -f64::from(worth.harm_budget_ppm) / 1e6 {
            Verdict::Harm
        } else if high < GAIN_MIN {
            Verdict::NoGain
        } else {
            self.verdict
        };
        self.new = [0; 2];
        self.next_look = (self.next_look * 2).min(LOOK_MAX);
        if self.verdict != before && before != Verdict::Open {
            // What was measured before speaks of a path that is no more.
            self.groups = [Sums::default(); 2];
            self.next_look = FIRST_LOOK;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sansio::Random;

    /// A class whose flows with help have `gain` times what those without have, which scatters by
    /// a factor of about two; `count` of each.
    fn measured(gain: f64, count: usize, seed: u64) -> Class {
        let mut class = Class::new("test".into());
        let mut random = Random::new(seed, "test");
        for _ in 0..count {
            for (group, gain) in [(Group::Helped, gain), (Group::Control, 1.0)] {
                let scatter: f64 = (0..12).map(|_| random.unit()).sum::<f64>() - 6.0;
                let goodput = 1e6 * gain * libm::exp(0.7 * scatter);
                class.add(group, goodput, &Worth::default());
            }
        }
        class
    }

    #[test]
    fn worth_a_class_that_gains_is_helped_and_one_that_is_harmed_is_not() {
        for seed in 0..20 {
            assert_eq!(measured(2.0, 64, seed).verdict(), Verdict::Gain, "seed {seed}");
            assert_eq!(measured(0.5, 64, seed).verdict(), Verdict::Harm, "seed {seed}");
        }
    }

    #[test]
    fn worth_equal_groups_are_seldom_taken_for_harmed() {
        let harmed = (0..400).filter(|seed| measured(1.0, 64, *seed).verdict() == Verdict::Harm);
        // Four looks of 2.5 % each, and they are not independent.
        let harmed = harmed.count();
        assert!(harmed <= 40, "{harmed} of 400");
    }

    #[test]
    fn worth_harm_within_the_budget_is_none() {
        let worth = Worth { harm_budget_ppm: 200_000, ..Worth::default() };
        let mut class = Class::new("test".into());
        for step in 0..16 {
            let scatter = 1.0 + f64::from(step % 2) / 1000.0;
            class.add(Group::Helped, 0.9e6 * scatter, &worth);
            class.add(Group::Control, 1e6 * scatter, &worth);
        }
        assert_eq!(class.verdict(), Verdict::NoGain);
        assert_eq!(class.verdict().group(false), Group::Control, "but nor is it a gain");
    }

    #[test]
    fn worth_a_class_that_comes_to_gain_is_helped_again() {
        let mut class = measured(0.5, 64, 1);
        assert_eq!(class.verdict(), Verdict::Harm);
        for step in 0..600 {
            let scatter = 1.0 + f64::from(step % 7) / 10.0;
            class.add(Group::Helped, 2e6 * scatter, &Worth::default());
            class.add(Group::Control, 1e6 * scatter, &Worth::default());
        }
        assert_eq!(class.verdict(), Verdict::Gain);
        let report = class.report();
        let (low, high) = report.gain.expect("it was looked at");
        assert!(low > 0.5 && high < 1.5, "{report:?}");
    }
}
