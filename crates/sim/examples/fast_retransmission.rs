//! How long a mobile host waits for data after an outage of which it knows the end, by what it then
//! tells the fixed host: the tables of `docs/fast-retransmission.md`.
//!
//! One download at 10 Mbit/s; outages of three lengths at 30 instants each, nobody moves. Median and
//! largest time from the return of the link to the next byte in order, ms. Arguments: the one-way
//! delay of the wire and of the radio, and the lengths of the outages.

use node::scenario::{Switch, parse};
use node::{Case, Plan, Scenario};
use sansio::Duration;
use schemes::fast_retransmit::Config;
use schemes::fast_retransmit::config::{Receiver, Trigger};
use trace::Nothing;

/// Name, schemes, and how the mobile host tells.
const FORMS: [(&str, &str, Option<Receiver>); 8] = [
    ("plain", "plain", None),
    ("3 ACKs", "fast-retransmit", Some(Receiver::Repeated(3))),
    ("4 ACKs", "fast-retransmit", Some(Receiver::Repeated(4))),
    ("4, D-SACK", "fast-retransmit", Some(Receiver::RepeatedWithBlock(4))),
    ("0, open", "fast-retransmit", Some(Receiver::ClosedAndOpened)),
    ("marked", "fast-retransmit-marked", Some(Receiver::Marked)),
    ("snoop-m", "snoop-modern", None),
    ("snoop-m+4", "snoop-modern+fast-retransmit", Some(Receiver::Repeated(4))),
];

/// Instants of the outage.
const INSTANTS: u32 = 30;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let wired = arguments.next().unwrap_or_else(|| "20ms".to_owned());
    let radio = arguments.next().unwrap_or_else(|| "5ms".to_owned());
    let lengths: Vec<String> = arguments.collect();
    let lengths = match lengths.is_empty() {
        true => ["100ms", "500ms", "2s"].map(String::from).to_vec(),
        false => lengths,
    };
    println!("one way {wired} over the wire, {radio} over the air; median/largest, ms");
    for length in &lengths {
        println!("\noutage of {length}");
        print!("{:<20}", "");
        FORMS.iter().for_each(|(name, ..)| print!("{name:>13}"));
        println!();
        let old = "hosts = \"1995\"\ntcp = [\"tahoe\", \"reno\", \"newreno\", \"vegas\", \"sack\"]";
        let new = "tcp = [\"reno\", \"cubic\", \"bbr\"]\nsack = [\"off\", \"on\"]";
        for (era, hosts) in [("1995", old), ("now", new)] {
            rows(era, &|at, scheme| scenario(hosts, (&wired, &radio, length), at, scheme));
        }
    }
}

fn scenario(
    hosts: &str,
    (wired, radio, length): (&str, &str, &str),
    at: u32,
    scheme: &str,
) -> Scenario {
    let text = format!(
        "rate = \"10Mbit/s\"\ndelay = \"{radio}\"\nwired-delay = \"{wired}\"\n{hosts}\n\
         outage = \"at={at}ms,length={length},notified\"\nschemes = \"{scheme}\"\nduration = \"10s\""
    );
    let draft = parse("example", &text).expect("a scenario");
    Scenario::complete(draft).expect("a complete scenario")
}

/// A row for each sender that has a model.
fn rows(era: &str, scenario: &impl Fn(u32, &str) -> Scenario) {
    let first = scenario(5000, "plain");
    for case in first.cases().iter().filter(|case| Plan::new(&first, case).is_ok()) {
        let sack = if case.sack == Switch::On { "SACK" } else { "-" };
        print!("{era:<6}{:<9}{sack:<5}", case.sender.name());
        for (_, scheme, receiver) in FORMS {
            let mut waits: Vec<Duration> = (0..INSTANTS)
                .flat_map(|step| waits(&scenario(5000 + step * 37, scheme), case, receiver, step))
                .collect();
            waits.sort();
            let ms = |wait: Option<&Duration>| wait.map_or(0.0, |wait| wait.as_secs_f64() * 1e3);
            let (median, most) = (waits.get(waits.len() / 2), waits.last());
            print!("{:>13}", format!("{:.0}/{:.0}", ms(median), ms(most)));
        }
        println!();
    }
}

/// What one run waited.
fn waits(scenario: &Scenario, like: &Case, receiver: Option<Receiver>, step: u32) -> Vec<Duration> {
    let cases = scenario.cases();
    let same = |one: &&Case| (one.sender, one.sack) == (like.sender, like.sack);
    let case = cases.iter().find(same).expect("every scheme has the same senders");
    let mut plan = Plan::new(scenario, case).expect("plain has a plan, too");
    plan.fast_retransmit =
        receiver.map(|receiver| Config { receiver, trigger: Trigger::LinkUp, ..Config::modern() });
    let outcome = sim::run(&plan, u64::from(step) + 1, Nothing);
    assert_eq!(outcome.failures, [], "{}", case.scheme);
    outcome.measures.transfers[0].receiver_stalls_after_outage.clone()
}
