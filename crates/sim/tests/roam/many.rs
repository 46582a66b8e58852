//! More mobile hosts than one base station may have, and what is still kept when a run ends.

use node::scenario::parse;
use node::{Plan, Scenario};

fn plan(text: &str) -> Plan {
    let draft = parse("test", text).expect("a scenario");
    let scenario = Scenario::complete(draft).expect("a complete scenario");
    Plan::new(&scenario, &scenario.cases()[0]).expect("a plan")
}

/// Every invariant holds, hosts cross when they have to, and get their messages.
#[test]
fn thousands_of_mobile_hosts_move_among_many_cells() {
    let plan = plan(
        "rate = \"10Mbit/s\"\nmobiles = 2000\ncells = 100\nhandoff = \"every=4s,gap=100ms\"\n\
         traffic = \"request:500B,every=1s\"\nduration = \"5s\"\ntcp = \"cubic\"\n\
         schemes = \"plain\"",
    );
    let outcome = sim::run(&plan, 1, trace::Nothing);
    assert_eq!(outcome.failures, []);
    let handoffs = outcome.measures.handoffs.expect("there are cells");
    // Each within the first 4 s, and those of the first second once more.
    assert!((2_400..2_600).contains(&handoffs.crossings), "{} crossings", handoffs.crossings);
    let complete = handoffs.until_consistent.len();
    assert!(complete > 2_000, "{complete} handoffs complete");
    // Five messages were written; the last one or two may wait for a beacon after a crossing.
    let transfers = &outcome.measures.transfers;
    assert_eq!(transfers.len(), 2_000);
    assert!(transfers.iter().all(|transfer| transfer.delivered_bytes >= 3 * 500));
}

/// WINC-BS: what waits at a base station for a window, or for a tunnel to drain, is not lost
/// because the run ends.
#[test]
fn winc_bs_what_waits_when_a_run_ends_is_kept() {
    for duration in [11, 12] {
        let plan = plan(&format!(
            "rate = \"10Mbit/s\"\nrtt = \"50ms\"\nmobiles = 200\ncells = 10\n\
             handoff = \"every=3s,gap=100ms\"\ntraffic = \"request:500B,every=1s\"\n\
             duration = \"{duration}s\"\ntcp = \"cubic\"\nschemes = \"window-station\""
        ));
        assert_eq!(sim::run(&plan, 1, trace::Nothing).failures, [], "{duration} s");
    }
}
