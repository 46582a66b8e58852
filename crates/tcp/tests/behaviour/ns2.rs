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

#[test]
fn tahoe_reno_and_newreno_match_ns2_row_for_row() {
    for (congestion, drops, csv) in [
        (Congestion::Tahoe, &[14][..], ONE_DROP_TAHOE),
        (Congestion::Tahoe, &[14, 28], TWO_DROPS_TAHOE),
        (Congestion::Reno, &[14], ONE_DROP_RENO),
        (Congestion::Reno, &[14, 28], TWO_DROPS_RENO),
        (Congestion::NewReno, &[14], ONE_DROP_NEWRENO),
        (Congestion::NewReno, &[14, 28], TWO_DROPS_NEWRENO),
    ] {
        let report = check(&replay(congestion, drops), csv).expect("the trace is well-formed");
        assert!(report.is_match(), "{congestion} {drops:?}: {report}");
        assert_eq!(report.matched, csv.matches(",data,").count());
        assert_eq!(report.matched, report.rows);
    }
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
