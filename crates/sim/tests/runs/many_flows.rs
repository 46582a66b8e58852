//! Several flows of one mobile host: an outage takes the host, not a flow.

use crate::plans::plans;
use sansio::Duration;
use trace::metrics::Measures;

/// Runs the only case of a scenario, each of its transfers so many times.
fn run(text: &str, times: usize, seed: u64) -> Measures {
    let (case, mut plan) = plans(text).swap_remove(0);
    plan.transfers = plan.transfers.repeat(times);
    let outcome = sim::run(&plan, seed, trace::Nothing);
    assert_eq!(outcome.failures, [], "{case:?}");
    outcome.measures
}

/// A message's ACK waits behind bulk data for half a second: neither host is away.
#[test]
fn restart_a_message_behind_a_full_queue_is_not_taken_for_an_outage() {
    for wired_delay in ["20ms", "25ms", "30ms"] {
        let text = format!(
            "rate = \"2Mbit/s\"\ndelay = \"5ms\"\nwired-delay = \"{wired_delay}\"\n\
             departures = \"device\"\ntraffic = \"bulk+request:2kB,every=200ms\"\n\
             tcp = \"cubic\"\nschemes = \"snoop-modern\"\nduration = \"10s\""
        );
        assert_eq!(run(&text, 1, 1).probes, 0, "{wired_delay}");
    }
}

/// Sixteen flows share the probes that one may send; the first answer ends the silence of all.
#[test]
fn restart_the_stall_of_many_flows_is_that_of_one() {
    let text = "rate = \"10Mbit/s\"\ndelay = \"10ms\"\nwired-delay = \"10ms\"\n\
                outage = \"every=4s,length=0.5s..2s\"\ntcp = \"cubic\"\n\
                schemes = \"snoop-modern\"\nduration = \"20s\"";
    let stalls = |times| {
        let runs = (1..=4).map(|seed| run(text, times, seed));
        let mut stalls: Vec<Duration> = runs
            .flat_map(|measures| measures.transfers)
            .flat_map(|transfer| transfer.stalls_after_outage)
            .collect();
        stalls.sort_unstable();
        stalls[stalls.len() / 2]
    };
    let [one, many] = [stalls(1), stalls(16)];
    assert!(many < one * 2, "{many:?} instead of {one:?}");
}
