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

#[test]
fn tahoe_and_reno_match_ns2_row_for_row() {
    for (congestion, drops, csv) in [
        (Congestion::Tahoe, &[14][..], ONE_DROP_TAHOE),
        (Congestion::Tahoe, &[14, 28], TWO_DROPS_TAHOE),
        (Congestion::Reno, &[14], ONE_DROP_RENO),
        (Congestion::Reno, &[14, 28], TWO_DROPS_RENO),
    ] {
        let report = check(&replay(congestion, drops), csv).expect("the trace is well-formed");
        assert!(report.is_match(), "{congestion} {drops:?}: {report}");
        assert_eq!(report.matched, csv.matches(",data,").count());
        assert_eq!(report.matched, report.rows);
    }
}
