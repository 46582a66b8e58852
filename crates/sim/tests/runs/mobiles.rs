//! Several mobile hosts at one base station: they share the air, and nothing else.

use crate::plans::plans;
use node::Plan;
use proptest::prelude::*;
use sansio::{Cause, EventKind, Instant};
use std::collections::BTreeMap;
use trace::hash::TraceHash;
use trace::{NodeId, Observer, Record, What};

fn plan(text: &str) -> Plan {
    plans(text).swap_remove(0).1
}

/// What of the rate of a link is payload.
const PAYLOAD: f64 = 1448.0 / 1500.0;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Every invariant holds, every byte arrives once, and no more than the air carries; the same
    /// whether anybody watches.
    #[test]
    fn any_number_of_mobile_hosts_keeps_every_invariant(
        mobiles in 1_u32..=8,
        half_duplex: bool,
        channel in prop::sample::select(vec![
            "", "ber = \"1/1Mbit\"", "loss = \"fade:good=500ms,bad=30ms,loss=90%\"",
            "outage = \"every=2s,length=50ms..500ms\"", "radio = \"lte\"",
            "outage = \"every=2s,length=50ms..500ms,hold\"\nloss = \"1%\"",
            "loss = \"10%\"\narq = \"frames:retries=3,ack=100us\"",
            "outage = \"every=1s,length=50ms..200ms,hold\"\narq = \"frames:retries=5\"",
        ]),
        direction in prop::sample::select(vec!["down", "up", "both"]),
        scheme in prop::sample::select(vec!["plain", "snoop", "snoop-modern"]),
        tcp in prop::sample::select(vec!["reno", "sack", "cubic"]),
        served in prop::sample::select(vec!["all", "first"]),
        traffic in prop::sample::select(vec!["bulk", "bulk+request:500B,every=500ms"]),
        seed in 1_u64..1000,
    ) {
        let served = if mobiles > 1 { served } else { "all" };
        let plan = plan(&format!(
            "rate = \"4Mbit/s\"\ndelay = \"2ms\"\nqueue = \"40p\"\nsize = \"100kB\"\n{channel}\n\
             mobiles = {mobiles}\nserved = \"{served}\"\nhalf-duplex = {half_duplex}\n\
             direction = \"{direction}\"\nschemes = \"{scheme}\"\ntcp = \"{tcp}\"\n\
             traffic = \"{traffic}\""
        ));
        let mut hash = TraceHash::default();
        let outcome = sim::run(&plan, seed, &mut hash);
        prop_assert_eq!(&outcome.failures, &[]);
        prop_assert!(outcome.finished);
        let mut again = TraceHash::default();
        sim::run(&plan, seed, &mut again);
        prop_assert_eq!(hash.value(), again.value(), "same plan, same seed, same records");
        let bare = sim::run::run_bare(&plan, seed);
        prop_assert_eq!((bare.ended_at, bare.finished), (outcome.ended_at, true));
        let transfers = &outcome.measures.transfers;
        prop_assert_eq!(transfers.len(), plan.transfers.len() * mobiles as usize);
        let bulk = transfers.iter().filter(|transfer| transfer.complete);
        let ways = if direction == "both" { 2 } else { 1 };
        prop_assert_eq!(bulk.clone().count() as u32, mobiles * ways);
        prop_assert!(bulk.clone().all(|transfer| transfer.delivered_bytes == 100_000));
        let delivered: u64 = transfers.iter().map(|transfer| transfer.delivered_bytes).sum();
        let rate_of = |hop: &link::hop::Config| hop.service_rate().as_bps() as f64;
        let rates = [&plan.radio.down, &plan.radio.up].map(rate_of);
        let rate = match (direction, half_duplex) {
            ("both", false) => rates[0] + rates[1],
            ("both", true) => rates[0].max(rates[1]),
            ("up", _) => rates[1],
            _ => rates[0],
        };
        let seconds = outcome.ended_at.as_secs_f64();
        let goodput = delivered as f64 * 8.0 / seconds;
        prop_assert!(goodput <= rate * PAYLOAD, "{goodput} of {rate}");
    }
}

fn delivered(plan: &Plan, seed: u64) -> Vec<f64> {
    let outcome = sim::run(plan, seed, trace::Nothing);
    assert_eq!(outcome.failures, []);
    outcome.measures.transfers.iter().map(|one| one.delivered_bytes as f64).collect()
}

/// With a window each and one queue in the order of arrival, each has as many packets in the loop
/// as the others; so none is more than a window ahead. Uplinks take turns, packet by packet.
#[test]
fn equal_windows_share_the_air_to_within_a_window() {
    for (direction, half_duplex) in [("down", false), ("down", true), ("up", false), ("up", true)] {
        let plan = plan(&format!(
            "rate = \"5Mbit/s\"\nqueue = \"1000p\"\nwindow = \"28960B\"\nduration = \"20s\"\n\
             tcp = \"sack\"\nschemes = \"plain\"\nmobiles = 4\ndirection = \"{direction}\"\n\
             half-duplex = {half_duplex}"
        ));
        let delivered = delivered(&plan, 1);
        let (least, most) = (
            delivered.iter().copied().fold(f64::INFINITY, f64::min),
            delivered.iter().copied().fold(0.0, f64::max),
        );
        assert!(most - least <= 28_960.0, "{direction} {half_duplex}: {delivered:?}");
        let share = delivered.iter().sum::<f64>() * 8.0 / 20.0 / (5e6 * PAYLOAD);
        let least = if half_duplex { 0.85 } else { 0.98 };
        assert!((least..=1.0).contains(&share), "{direction} {half_duplex}: {share} of the air");
    }
}

/// Each mobile host's losses are its own, and all are alike: one-way analysis of variance over 20
/// seeds does not tell four hosts apart. The 99.9 % quantile of F with 3 and 60 degrees of freedom
/// is 6.17, with our 76 a little less.
#[test]
fn hosts_that_lose_alike_share_alike() {
    const SEEDS: usize = 20;
    let plan = plan(
        "rate = \"4Mbit/s\"\nloss = \"1%\"\nduration = \"15s\"\ntcp = \"sack\"\nmobiles = 4\n\
         schemes = \"plain\"",
    );
    let runs: Vec<Vec<f64>> = (1..=SEEDS as u64).map(|seed| delivered(&plan, seed)).collect();
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let of = |mobile: usize| runs.iter().map(|run| run[mobile]).collect::<Vec<f64>>();
    let hosts: Vec<Vec<f64>> = (0..4).map(of).collect();
    let means: Vec<f64> = hosts.iter().map(|host| mean(host)).collect();
    let all = mean(&means);
    let between = means.iter().map(|one| (one - all) * (one - all)).sum::<f64>() * SEEDS as f64;
    let squares = |(host, mean): (&Vec<f64>, &f64)| {
        host.iter().map(|one| (one - mean) * (one - mean)).sum::<f64>()
    };
    let within: f64 = hosts.iter().zip(&means).map(squares).sum();
    let f = (between / 3.0) / (within / (4 * (SEEDS - 1)) as f64);
    assert!(f < 6.17, "F {f}: {means:?}");
    assert!(
        runs.iter().all(|run| run[0] != run[1] || run[1] != run[2]),
        "each has losses of its own"
    );
}

/// When each machine's link is away, and what is delivered to the others meanwhile.
#[derive(Default)]
struct Absences {
    away: BTreeMap<NodeId, Vec<(Instant, Instant)>>,
    delivered: Vec<(Instant, NodeId)>,
}

impl Observer for &mut Absences {
    const ON: bool = true;

    fn record(&mut self, record: &Record<'_>) {
        let (at, node) = (record.at, record.node);
        match record.what {
            What::LinkDown { .. } => self.away.entry(node).or_default().push((at, at)),
            What::LinkUp { .. } => {
                if let Some(last) = self.away.entry(node).or_default().last_mut() {
                    last.1 = at;
                }
            }
            What::Delivered { .. } => self.delivered.push((at, node)),
            _ => {}
        }
    }
}

#[test]
fn who_is_away_gets_nothing_and_the_others_go_on() {
    for mode in ["", ",hold"] {
        let plan = plan(&format!(
            "rate = \"4Mbit/s\"\ndelay = \"1ms\"\nduration = \"30s\"\ntcp = \"sack\"\nmobiles = 3\n\
             schemes = \"plain\"\noutage = \"every=3s,length=500ms{mode}\""
        ));
        let mut seen = Absences::default();
        let outcome = sim::run(&plan, 1, &mut seen);
        assert_eq!(outcome.failures, []);
        let hosts: Vec<NodeId> = seen.away.keys().copied().collect();
        assert_eq!(hosts, [NodeId(2), NodeId(4), NodeId(6)], "the mobile hosts");
        let begins = |host| seen.away[&host].iter().map(|one| one.0).collect::<Vec<_>>();
        assert_ne!(begins(hosts[0]), begins(hosts[1]), "each at times of its own");
        let (mut own, mut others, mut spans) = (0, 0, 0);
        for (host, away) in &seen.away {
            // What was on the air still arrives, and what was lost is not there yet.
            let settled = sansio::Duration::from_millis(20);
            for (from, to) in away.iter().filter(|(from, to)| from < to) {
                let is_during = |at: &Instant| (*from + settled..*to).contains(at);
                let during = seen.delivered.iter().filter(|(at, _)| is_during(at));
                let of_own = during.clone().filter(|(_, node)| node == host).count();
                own += of_own;
                others += usize::from(during.count() - of_own > 10);
                spans += 1;
            }
        }
        assert_eq!(own, 0, "{mode}");
        assert!(spans >= 27 && others * 10 >= spans * 8, "{mode}: {others} of {spans}");
        let stalls = outcome.measures.transfers.iter().map(|one| one.stalls_after_outage.len());
        assert!(stalls.clone().all(|stalls| (5..=10).contains(&stalls)), "each host's own outages");
    }
}

/// To whom copies go, and how often the link layer's verdict was the reason.
#[derive(Default)]
struct Copies {
    receivers: BTreeMap<usize, u64>,
    given_up: u64,
}

impl Observer for &mut Copies {
    const ON: bool = true;

    fn record(&mut self, record: &Record<'_>) {
        match record.what {
            What::Sent { packet, .. } if packet.cause == Cause::LocalRetransmission => {
                *self.receivers.entry(node::cell::receiver(packet)).or_default() += 1;
            }
            What::Event(event) => {
                self.given_up +=
                    u64::from(matches!(event.kind, EventKind::Rule { id: "METP-LL-3", .. }));
            }
            _ => {}
        }
    }
}

fn copies(text: &str) -> Copies {
    let mut copies = Copies::default();
    let outcome = sim::run(&plan(text), 1, &mut copies);
    assert_eq!((outcome.failures.as_slice(), outcome.finished), (&[][..], true));
    copies
}

#[test]
fn a_scheme_that_serves_the_first_repairs_nothing_for_the_others() {
    for scheme in ["snoop", "snoop-modern"] {
        let text = format!(
            "mobiles = 3\nloss = \"2%\"\nsize = \"500kB\"\ntcp = \"sack\"\nschemes = \"{scheme}\""
        );
        let all = copies(&text).receivers;
        assert_eq!(all.keys().copied().collect::<Vec<_>>(), [0, 1, 2], "{scheme}");
        let first = copies(&format!("{text}\nserved = \"first\"")).receivers;
        assert_eq!(first.keys().copied().collect::<Vec<_>>(), [0], "{scheme}");
    }
}

#[test]
fn metp_ll_3_an_engine_that_asks_is_told_what_the_link_layer_gave_up() {
    let text = |scheme: &str, arq: &str| {
        format!("loss = \"20%\"\nsize = \"1MB\"\ntcp = \"sack\"\nschemes = \"{scheme}\"\n{arq}")
    };
    let arq = "arq = \"frames:retries=1\"";
    let modern = copies(&text("snoop-modern", arq));
    // 700 segments, each given up with 4 %: 28, with a deviation of 5.
    assert!((8..60).contains(&modern.given_up), "{}", modern.given_up);
    assert_eq!(copies(&text("snoop-modern", "")).given_up, 0, "no link layer, no verdict");
    assert_eq!(copies(&text("snoop", arq)).given_up, 0, "the paper's agent asks for none");
}

/// What the hop counts, and not the records, says what repetitions cost.
#[test]
fn repetitions_count_as_air() {
    let air = |arq: &str| {
        let text = format!(
            "rate = \"2Mbit/s\"\ndelay = \"1ms\"\nloss = \"20%\"\nsize = \"2MB\"\ntcp = \"sack\"\n\
             window = \"64KiB\"\nschemes = \"plain\"\n{arq}"
        );
        let plan = plan(&text);
        let measures = sim::run(&plan, 1, trace::Nothing).measures;
        (measures.air_bytes as f64 / 2e6, measures.air_time.map(|time| time.as_secs_f64()))
    };
    assert_eq!(air("").1, None);
    let (bytes, time) = air("arq = \"frames:retries=forever\"");
    // Each segment of 1448 bytes in 1500, half as many ACKs of 52, all of it 1 / 0.8 times.
    let expected = (1500.0 + 52.0 / 2.0) / 1448.0 / 0.8;
    assert!((bytes / expected - 1.0).abs() < 0.03, "{bytes}, expected {expected}");
    // At 2 Mbit/s, and two delays of waiting for each try.
    let (tries, time) = (2e6 / 1448.0 * 1.5 / 0.8, time.expect("it is counted"));
    let expected = bytes * 2e6 * 8.0 / 2e6 + tries * 0.002;
    assert!((time / expected - 1.0).abs() < 0.03, "{time} s, expected {expected}");
}

/// A notice is of one mobile host: it restarts that one at once, and no other is kept waiting.
#[test]
fn restart_notices_of_several_mobile_hosts_restart_each_at_once() {
    let text = |notified: &str| {
        format!(
            "rate = \"20Mbit/s\"\ndelay = \"10ms\"\nwired-delay = \"5ms\"\nmobiles = 4\n\
             outage = \"every=5s,length=0.5s..2s{notified}\"\ntcp = \"cubic\"\n\
             schemes = \"snoop-modern\"\nduration = \"20s\""
        )
    };
    let stalls = |notified| {
        let outcome = sim::run(&plan(&text(notified)), 1, trace::Nothing);
        assert_eq!(outcome.failures, [], "{notified}");
        let transfers = outcome.measures.transfers.into_iter();
        let mut stalls: Vec<_> = transfers.flat_map(|of| of.stalls_after_outage).collect();
        stalls.sort_unstable();
        stalls
    };
    let [told, untold] = [stalls(",notified"), stalls("")];
    assert!(told.len() >= 12, "four hosts, three outages each: {told:?}");
    // A round trip of the last hop, and the queue that others keep full meanwhile.
    assert!(told.last() < untold.last(), "{told:?}, {untold:?}");
    assert!(told[told.len() / 2] < sansio::Duration::from_millis(40), "{told:?}");
}
