//! A plan from options, for the tests of this crate.

use node::scenario::parse;
use node::{Case, Plan, Scenario};

/// The scenario of a TOML text.
fn scenario(text: &str) -> Scenario {
    let draft = parse("test.toml", text).unwrap_or_else(|error| panic!("{error}"));
    Scenario::complete(draft).unwrap_or_else(|error| panic!("{error}"))
}

/// The plans of all cases of a scenario.
pub(crate) fn plans(text: &str) -> Vec<(Case, Plan)> {
    let scenario = scenario(text);
    let plan = |case: Case| {
        let plan = Plan::new(&scenario, &case).unwrap_or_else(|error| panic!("{error}"));
        (case, plan)
    };
    scenario.cases().into_iter().map(plan).collect()
}

/// A lossy, flickering link, every scheme, both kinds of sender, both directions.
pub(crate) const ROUGH: &str = r#"
    rate = "5Mbit/s"
    delay = "3ms"
    queue = "40p"
    wired-rate = "50Mbit/s"
    wired-delay = "8ms"
    ber = "1/512Kbit"
    outage = ["every=2s,length=50ms..800ms", "every=2s,length=50ms..800ms,hold,notified"]
    tcp = ["tahoe", "reno", "vegas", "sack1", "sack"]
    direction = ["down", "both"]
    schemes = ["plain", "snoop", "snoop-modern"]
    size = "400kB"
"#;
