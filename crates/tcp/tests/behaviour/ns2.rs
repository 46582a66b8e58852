//! The first outside oracle: ns-2's traces, row for row.

use std::collections::BTreeSet;
use tcp::Congestion;
use tcp::oracle::ns2::{Replay, check};

fn replay(congestion: Congestion, drops: &[u64]) -> Replay {
    let drops = drops.iter().copied().collect::<BTreeSet<_>>();
    Replay { congestion, drops, limited_transmit: false }
}

const ONE_DROP_TAHOE: &str = include_str!("../data/ns2-tcp-variants/onedrop_tahoe.csv");
const TWO_DROPS_TAHOE: &str = include_str!("../data/ns2-tcp-variants/twodrops_tahoe.csv");
const ONE_DROP_RENO: &str = include_str!("../data/ns2-tcp-variants/onedrop_reno.csv");
const TWO_DROPS_RENO: &str = include_str!("../data/ns2-tcp-variants/twodrops_reno.csv");
const ONE_DROP_NEWRENO: &str = include_str!("../data/ns2-tcp-variants/onedrop_newreno.csv");
const TWO_DROPS_NEWRENO: &str = include_str!("../data/ns2-tcp-variants/twodrops_newreno.csv");
const ONE_DROP_SACK1: &str = include_str!("../data/ns2-tcp-variants/onedrop_sack.csv");
const TWO_DROPS_SACK1: &str = include_str!("../data/ns2-tcp-variants/twodrops_sack.csv");

/// A trace made with ns-2 (`SOURCE.md` there).
macro_rules! generated {
    ($name:literal) => {
        include_str!(concat!("../data/ns2-generated/", $name, ".csv"))
    };
}

#[test]
fn base_1_2_3_5_the_senders_of_fall_and_floyd_match_ns2_row_for_row() {
    for (congestion, drops, csv) in [
        (Congestion::Tahoe, &[14][..], ONE_DROP_TAHOE),
        (Congestion::Tahoe, &[14, 28], TWO_DROPS_TAHOE),
        (Congestion::Reno, &[14], ONE_DROP_RENO),
        (Congestion::Reno, &[14, 28], TWO_DROPS_RENO),
        (Congestion::NewReno, &[14], ONE_DROP_NEWRENO),
        (Congestion::NewReno, &[14, 28], TWO_DROPS_NEWRENO),
        (Congestion::Sack1, &[14], ONE_DROP_SACK1),
        (Congestion::Sack1, &[14, 28], TWO_DROPS_SACK1),
        (Congestion::Tahoe, &THREE, generated!("threedrops_tahoe")),
        (Congestion::Reno, &THREE, generated!("threedrops_reno")),
        (Congestion::NewReno, &FOUR, generated!("fourdrops_newreno")),
        (Congestion::Sack1, &FOUR, generated!("fourdrops_sack")),
        (Congestion::Sack1, &[10, 21], generated!("losses_in_a_row_sack")),
        (Congestion::NewReno, &[23, 45], generated!("burst_of_two_newreno")),
    ] {
        matches(&replay(congestion, drops), csv);
    }
}

#[test]
fn rfc_3042_with_limited_transmit_too() {
    for (congestion, drops, csv) in [
        (Congestion::Tahoe, &EIGHT[..], generated!("multiple_SA_tahoe")),
        (Congestion::Reno, &FOUR, generated!("fourdrops_SA_reno")),
        (Congestion::NewReno, &EIGHT, generated!("multiple_SA_newreno")),
        (Congestion::Sack1, &EIGHT, generated!("multiple_SA_sack")),
        (Congestion::NewReno, &[2], generated!("window_of_three_SA_newreno")),
    ] {
        matches(&Replay { limited_transmit: true, ..replay(congestion, drops) }, csv);
    }
}

const THREE: [u64; 3] = [14, 26, 28];
const FOUR: [u64; 4] = [14, 24, 26, 28];
const EIGHT: [u64; 8] = [11, 12, 13, 14, 16, 17, 18, 19];

fn matches(replay: &Replay, csv: &str) {
    let report = check(replay, csv).expect("the trace is well-formed");
    assert!(report.is_match(), "{} {:?}: {report}", replay.congestion, replay.drops);
    assert_eq!(report.matched, csv.matches(",data,").count());
    assert_eq!(report.matched, report.rows);
}

#[test]
fn a_drop_elsewhere_is_a_mismatch() {
    let swapped = ONE_DROP_RENO.replace(",drop,14", ",drop,15");
    let report = check(&replay(Congestion::Reno, &[14]), &swapped).expect("well-formed");
    let mismatch = report.mismatch.expect("another drop is seen");
    assert_eq!((mismatch.event, mismatch.row), ("drop", 1));
}

#[test]
fn a_mismatch_is_shown_with_its_neighbourhood() {
    let csv = ONE_DROP_TAHOE.replace("2.28316,data,30", "2.28416,data,30");
    let report = check(&replay(Congestion::Tahoe, &[14]), &csv).expect("well-formed");
    assert!(report.is_match(), "1 ms is within the tolerance: {report}");
    let csv = ONE_DROP_TAHOE.replace("2.28316,data,30", "2.28417,data,30");
    let report = check(&replay(Congestion::Tahoe, &[14]), &csv).expect("well-formed");
    assert_eq!(report.matched, report.rows - 1);
    let text = report.to_string();
    let expected = "first mismatch: data row 31";
    assert!(text.contains(expected), "{text}");
    assert!(text.contains(">     31  2.28417 30     2.28316 30"), "{text}");
}

#[test]
fn rows_missing_at_the_end_are_a_mismatch() {
    let cut = ONE_DROP_TAHOE.rfind(",data,").expect("there are data rows");
    let end = ONE_DROP_TAHOE[..cut].rfind('\n').expect("rows end in newlines");
    let report = check(&replay(Congestion::Tahoe, &[14]), &ONE_DROP_TAHOE[..end]);
    let report = report.expect("well-formed");
    assert_eq!(report.matched, report.rows);
    assert!(!report.is_match());
}

#[test]
fn a_malformed_line_is_named() {
    for (csv, expected) in [
        ("", "line 1: \"\": expected the header time_s,event,packet"),
        (
            "time_s,event,packet\n1.0,data\n",
            "line 2: \"1.0,data\": expected three fields: time_s,event,packet",
        ),
        ("time_s,event,packet\n1,data,1\nx,data,2\n", "line 3: \"x\": expected a time in seconds"),
        ("time_s,event,packet\n1.0,gone,1\n", "line 2: \"gone\": expected data, drop or ack"),
        ("time_s,event,packet\n1.0,data,-1\n", "line 2: \"-1\": expected a packet number"),
    ] {
        let error = check(&replay(Congestion::Reno, &[]), csv).expect_err("it is malformed");
        assert_eq!(error.to_string(), expected);
    }
}
