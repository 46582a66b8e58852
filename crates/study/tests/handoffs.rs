//! The short form of the comparison of handoffs: in each of its cells `best` delivers as much as
//! any other, and does not stall longer than Mobile IP.

use std::collections::BTreeMap;
use study::sweep::{Matrix, Study};
use study::{Row, World, compare};

const STUDY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../studies/handoffs-quick.toml");

#[test]
fn best_delivers_as_much_as_any_other_in_the_short_comparison() {
    let text = std::fs::read_to_string(STUDY).expect("the study");
    let study = Study::parse("handoffs-quick.toml", &text).expect("a study");
    let matrix = Matrix::new(study, &BTreeMap::new()).expect("its runs");
    let mut cells: BTreeMap<String, Vec<Row>> = BTreeMap::new();
    for number in 0..matrix.configurations() {
        let configuration = matrix.configuration(number);
        let seeds = matrix.runs_of(number).map(|run| matrix.place(run).1);
        let (case, plan) = (&configuration.case, &configuration.plan);
        let samples = seeds.map(|seed| compare::sample(plan, seed, trace::Nothing)).collect();
        let row = Row::new(case, plan, World::Sim, samples);
        assert!(row.passed(), "{}: {}", matrix.label(number), row.checks);
        cells.entry(format!("{} {}", case.sender, case.handoff)).or_default().push(row);
    }
    assert_eq!(cells.len(), 4);
    for (cell, rows) in &cells {
        let (best, others): (Vec<&Row>, Vec<&Row>) =
            rows.iter().partition(|row| row.scheme == "best");
        let goodput = |row: &Row| row.typical_goodput_bps().expect("goodput");
        let stall = |row: &Row| {
            let handoffs = row.handoffs.as_ref().and_then(|it| it.receiver_stall_s);
            handoffs.expect("stalls").p95
        };
        for other in others {
            let scheme = &other.scheme;
            let (own, theirs) = (goodput(best[0]), goodput(other));
            assert!(own >= 0.98 * theirs, "{cell}, {scheme}: goodput {own} of {theirs}");
            if other.scheme != "mobile-ip" {
                continue;
            }
            let (own, theirs) = (stall(best[0]), stall(other));
            assert!(own <= 1.1 * theirs + 0.01, "{cell}, {scheme}: stall {own} of {theirs}");
        }
    }
}
