//! The Snoop paper: Balakrishnan, Seshan, Katz, "Improving reliable transport and handoff
//! performance in cellular wireless networks" (1995), section 7; and the same group's later
//! comparison of mechanisms (1996-97).
//!
//! | of the paper | here |
//! |---|---|
//! | section 7, peak without losses | `claims.rs` |
//! | Figure 7, throughput against bit errors | `figure_7.rs` |
//! | Figure 8, sequence numbers against time | `figure_8.rs` |
//! | what the text claims without a figure | `claims.rs` |
//! | the later comparison of mechanisms | `mechanisms.rs` |
//! | Table 1, Figure 9, what is said of handoffs | `table_1.rs` |
//! | Figure 10, events of a handoff | `figure_10.rs` |
//! | Figure 11, Snoop and handoffs | `figure_11.rs` |
//! | what cannot be repeated yet | `handoff.rs` |

mod claims;
mod figure_10;
mod figure_11;
mod figure_7;
mod figure_8;
mod handoff;
mod mechanisms;
mod table_1;

use crate::judged::Point;
use crate::paper::{Content, Experiment, Paper, Study};
use crate::runs::{Outcome, Results};
use node::Plan;
use node::scenario::BitErrors;
use report::figure::Figure;

/// The paper.
pub static PAPER: Paper = Paper {
    name: NAME,
    citation: "H. Balakrishnan, S. Seshan, R. H. Katz: Improving reliable transport and handoff \
               performance in cellular wireless networks. ACM Wireless Networks 1 (1995)",
    studies: &STUDIES,
    experiments: &EXPERIMENTS,
    figures,
};

const NAME: &str = "snoop";

/// The preset is calibrated to one output of section 7, the peak (PAR-18, INC-20).
const CALIBRATED: &[&str] = &["MAC efficiency, to the peak of 1.6 Mbit/s (EXP-SN-0)"];

/// A study whose file says everything.
macro_rules! study {
    ($name:literal) => {
        Study {
            name: $name,
            file: concat!("studies/snoop/", $name, ".toml"),
            text: include_str!(concat!("../../../../studies/snoop/", $name, ".toml")),
            adjust: |_| {},
            adjusted: "",
            calibrated: CALIBRATED,
        }
    };
}

static STUDIES: [Study; 12] = [
    study!("figure-7"),
    Study {
        adjust: figure_7::careful,
        adjusted: "no fast retransmit for what was sent before the last loss",
        ..study!("figure-7-careful")
    },
    study!("multiple-losses"),
    with_beacons(study!("table-1")),
    with_beacons(study!("table-1-short-queue")),
    with_beacons(study!("figure-10-idle")),
    with_beacons(study!("figure-11")),
    with_beacons(study!("figure-11-short-queue")),
    later(study!("mechanisms-8-kb")),
    later(study!("mechanisms-32-kb")),
    later(study!("mechanisms-wide-area")),
    later(study!("mechanisms-bursts")),
];

/// The peak with beacons.
const fn with_beacons(study: Study) -> Study {
    Study {
        adjust: table_1::with_beacons,
        adjusted: "MAC efficiency for the peak with beacons",
        calibrated: &["MAC efficiency, to the peak of 1.45 Mbit/s with beacons (EXP-SN-T1-g)"],
        ..study
    }
}

/// The later comparison's own peak.
const fn later(study: Study) -> Study {
    Study {
        adjust: mechanisms::peak,
        adjusted: "MAC efficiency for the peak of that comparison",
        calibrated: &["MAC efficiency, to the peak of 1.5 Mbit/s of that comparison"],
        ..study
    }
}

const fn experiment(
    (id, source): (&'static str, &'static str),
    title: &'static str,
    studies: &'static [&'static str],
    judge: fn(&Results) -> crate::Judged,
) -> Experiment {
    Experiment { id, title, source, content: Content::Judged { studies, judge } }
}

const fn not_yet(
    (id, source): (&'static str, &'static str),
    title: &'static str,
    needs: &'static str,
) -> Experiment {
    Experiment { id, title, source, content: Content::NotYet(needs) }
}

/// In the order of the paper; those that cannot be repeated yet stand where they belong.
static EXPERIMENTS: [Experiment; 45] = {
    let [zero, d, f, g] = claims::EXPERIMENTS;
    let [a7, b7, c7, d7, e7, f7, v7] = figure_7::EXPERIMENTS;
    let [a8, b8, c8] = figure_8::EXPERIMENTS;
    let [t1a, t1b, t1c, t1d, t1e, t1f, t1g, t1h, f9a] = table_1::EXPERIMENTS;
    let [f10a, f10b, f10c, f10d, f10v] = figure_10::EXPERIMENTS;
    let [f11a, f11b, f11c] = figure_11::EXPERIMENTS;
    let ([sa, sc], sb) = (table_1::CLAIMS, figure_10::CLAIM);
    let ([se, sh, sj, sk], si) = (handoff::CLAIMS, claims::BUFFER);
    let [w, ww, wb] = mechanisms::EXPERIMENTS;
    let [l, s, v] = mechanisms::NOT_YET;
    [
        zero, a7, b7, c7, d7, e7, f7, v7, a8, b8, c8, t1a, t1b, t1c, t1d, t1e, t1f, t1g, t1h, f9a,
        f10a, f10b, f10c, f10d, f10v, f11a, f11b, f11c, sa, sb, sc, d, se, f, g, sh, si, sj, sk, w,
        ww, wb, l, s, v,
    ]
};

fn figures(results: &Results) -> Vec<Figure> {
    let figures = [
        figure_7::figure,
        figure_7::speed_up_figure,
        figure_8::figure,
        table_1::figure,
        table_1::sequence_figure,
        figure_10::figure,
        figure_11::figure,
        mechanisms::figure,
    ];
    figures.into_iter().filter_map(|figure| figure(results)).collect()
}

/// The outcomes of Figure 7's study, which other experiments look at, too.
fn sweep(results: &Results) -> &[Outcome] {
    results.of(NAME, figure_7::STUDY)
}

fn at<'a>(outcomes: &'a [Outcome], scheme: &str, ber: BitErrors) -> Option<&'a Outcome> {
    outcomes.iter().find(|one| one.is(scheme) && one.meets(ber))
}

fn point(series: &str, at: String, outcome: &Outcome) -> Point {
    let (ours, ci95) = outcome.mbps();
    let on_air = Some(outcome.on_air_mbps());
    Point { series: series.to_owned(), at, ours, ci95, theirs: None, span: None, on_air }
}

/// The ratio of two means, and half of its 95 % interval to first order.
fn ratio((a, ci_a): (f64, Option<f64>), (b, ci_b): (f64, Option<f64>)) -> (f64, Option<f64>) {
    let relative = |value: f64, ci: Option<f64>| ci.map(|ci| ci / value);
    let ratio = a / b;
    let both = relative(a, ci_a).zip(relative(b, ci_b));
    (ratio, both.map(|(a, b)| ratio * (a * a + b * b).sqrt()))
}

fn set_mac_efficiency(plan: &mut Plan, efficiency: f64) {
    plan.radio.down.mac_efficiency = efficiency;
    plan.radio.up.mac_efficiency = efficiency;
}
