//! Any movement, channel, direction, sender and scheme: every invariant holds, the same each time.

use node::scenario::parse;
use node::{Plan, Scenario};
use proptest::prelude::*;
use trace::hash::TraceHash;

const SCHEMES: [&str; 17] = [
    "best",
    "smooth",
    "snoop",
    "snoop-modern",
    "snoop+multicast",
    "snoop-modern+multicast",
    "snoop+forwarding",
    "snoop-modern+forwarding",
    "snoop-modern+fast-retransmit",
    "plain",
    "multicast",
    "forwarding",
    "prefetch",
    "registration",
    "window-mobile",
    "window-station",
    "window-station+prefetch",
];

/// A street of three cells, of which two may cover a place.
const MAP: &str = "\n[map]\nstations = [\"60m,20m\", \"240m,20m\", \"420m,20m\"]\n\
                   walk = [\"30m,0m\", \"450m,0m\"]\nspeed = \"60m/s\"\nsignal = \"70dB\"\n\
                   path-loss = 3.15\nshadowing = \"4dB\"\n";

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn mobile_hosts_that_change_cells_keep_every_invariant(
        scheme in prop::sample::select(SCHEMES.to_vec()),
        movement in prop::sample::select(vec![
            "handoff = \"every=1s,overlap\"", "handoff = \"every=2s,overlap=300ms\"",
            "handoff = \"every=1s,gap=0ms\"", "handoff = \"every=2s,gap=100ms\"",
            "handoff = \"every=3s,gap=500ms\"", "handoff = \"every=2s,gap=200ms,rendezvous=500ms\"",
            "handoff = \"every=2s,ahead=500ms\"", MAP,
        ]),
        cells in 2_u16..=4,
        mobiles in prop::sample::select(vec![1_u32, 1, 2, 5]),
        is_shared: bool,
        half_duplex: bool,
        losses in prop::sample::select(vec![
            "", "ber = \"1/1Mbit\"", "ber = \"1/256Kbit\"", "loss = \"1%\"",
            "loss = \"burst:mean=2%,length=4\"",
        ]),
        direction in prop::sample::select(vec!["down", "up", "both"]),
        (rate, rtt, queue) in (
            prop::sample::select(vec![2_u32, 10]),
            prop::sample::select(vec![10_u32, 50, 250]),
            prop::sample::select(vec![20_u32, 60, 200]),
        ),
        tcp in prop::sample::select(vec!["cubic", "reno", "newreno", "tahoe", "vegas", "sack"]),
        traffic in prop::sample::select(vec!["bulk", "bulk+request:500B,every=300ms"]),
        seed in 1_u64..1000,
    ) {
        let is_walk = movement == MAP;
        let cells = if is_walk { String::new() } else { format!("cells = {cells}\n{movement}\n") };
        let channel = if is_shared && !is_walk { "channel = \"shared\"\n" } else { "" };
        let text = format!(
            "rate = \"{rate}Mbit/s\"\nrtt = \"{rtt}ms\"\nqueue = \"{queue}p\"\nduration = \"6s\"\n\
             schemes = \"{scheme}\"\ntcp = \"{tcp}\"\ntraffic = \"{traffic}\"\n{losses}\n\
             direction = \"{direction}\"\nhalf-duplex = {half_duplex}\nmobiles = {mobiles}\n\
             {channel}{cells}{}",
            if is_walk { MAP } else { "" }
        );
        let draft = parse("any", &text).expect("a scenario");
        let scenario = Scenario::complete(draft).expect("a complete scenario");
        let plan = Plan::new(&scenario, &scenario.cases()[0]).expect("a plan");
        let mut hash = TraceHash::default();
        let outcome = sim::run(&plan, seed, &mut hash);
        prop_assert_eq!(&outcome.failures, &[]);
        let mut again = TraceHash::default();
        sim::run(&plan, seed, &mut again);
        prop_assert_eq!(hash.value(), again.value(), "same plan, same seed, same records");
    }
}
