//! What a warning before an outage is worth with window control: the table of
//! `docs/window-control.md`.
//!
//! One download at 10 Mbit/s, round trip 50 ms; an outage of 1 s at 30 instants, of which the mobile
//! host is warned some time before. For each scheme the timeouts of all 30 runs, the segments that
//! the fixed host sent again in a run (median), the largest time without a byte in order of a run
//! (median, ms), and the kB that 10 s delivered (median).

use node::scenario::parse;
use node::{Plan, Scenario};
use trace::Nothing;

const SCHEMES: [&str; 4] = ["plain", "window-mobile", "window-station", "snoop-modern"];
const LEADS: [&str; 4] = ["10ms", "50ms", "100ms", "200ms"];
const INSTANTS: u32 = 30;

fn main() {
    let old = "hosts = \"1995\"\ntcp = [\"tahoe\", \"reno\", \"newreno\", \"vegas\", \"sack\"]";
    for hosts in [old, "tcp = [\"cubic\", \"bbr\"]"] {
        for case in scenario(hosts, LEADS[0], 5000, SCHEMES[0]).cases() {
            for lead in LEADS {
                print!("{:<8} {lead:>6}", case.sender.name());
                for scheme in SCHEMES {
                    print!("{:>28}", cell(hosts, lead, scheme, case.sender.name()));
                }
                println!();
            }
        }
    }
}

fn scenario(hosts: &str, lead: &str, at: u32, scheme: &str) -> Scenario {
    let text = format!(
        "rate = \"10Mbit/s\"\ndelay = \"5ms\"\nwired-delay = \"20ms\"\nqueue = \"100p\"\n{hosts}\n\
         outage = \"at={at}ms,length=1s,warned={lead}\"\nschemes = \"{scheme}\"\nduration = \"10s\""
    );
    let draft = parse("example", &text).expect("a scenario");
    Scenario::complete(draft).expect("a complete scenario")
}

fn cell(hosts: &str, lead: &str, scheme: &str, sender: &str) -> String {
    let (mut timeouts, mut again) = (0, Vec::new());
    let (mut stalls, mut delivered) = (Vec::new(), Vec::new());
    for step in 0..INSTANTS {
        let scenario = scenario(hosts, lead, 5000 + step * 37, scheme);
        let cases = scenario.cases();
        let case = cases.iter().find(|case| case.sender.name() == sender).expect("a sender");
        let plan = Plan::new(&scenario, case).expect("a plan");
        let outcome = sim::run(&plan, u64::from(step) + 1, Nothing);
        assert_eq!(outcome.failures, [], "{scheme}");
        let measures = outcome.measures;
        timeouts += measures.timeouts;
        again.push(measures.retransmissions_end_to_end);
        stalls.push(measures.transfers[0].stall.as_nanos() / 1_000_000);
        delivered.push(measures.transfers[0].delivered_bytes / 1000);
    }
    let [again, stall, delivered] = [again, stalls, delivered].map(median);
    format!("{timeouts}/{again}/{stall}/{delivered}")
}

fn median(mut values: Vec<u64>) -> u64 {
    values.sort_unstable();
    values[values.len() / 2]
}
