//! Data from the mobile host: what its base station tells it of losses on the air (SNOOP-NACK-*).

use crate::plans::plans;
use link::channel::{self, arq, packet_loss};
use node::Plan;
use sansio::{Cause, Duration, Instant, Side};
use sim::Outcome;
use std::collections::BTreeMap;
use trace::{NodeId, Observer, Record, What};

const BASE: NodeId = NodeId(1);
const MOBILE: NodeId = NodeId(2);

/// Counts NACKs, and notes when what the air took was sent again.
#[derive(Default)]
struct Watch {
    nacks: u32,
    /// Sequence numbers lost on the air and not sent again, and when they were lost.
    lost: BTreeMap<u32, Instant>,
    /// From a loss to the next sending.
    repaired_after: Vec<Duration>,
}

impl Observer for &mut Watch {
    const ON: bool = true;

    fn record(&mut self, record: &Record<'_>) {
        match record.what {
            What::Sent { side: Side::RADIO, packet, .. } if record.node == BASE => {
                self.nacks += u32::from(packet.cause == Cause::AgentAck);
            }
            What::Lost { packet, .. } if record.node == MOBILE && !packet.payload.is_empty() => {
                let seq = packet.as_tcp().map_or(0, |tcp| tcp.seq.0);
                self.lost.entry(seq).or_insert(record.at);
            }
            What::Sent { packet, .. } if record.node == MOBILE => {
                let Some(tcp) = packet.as_tcp() else { return };
                if let Some(lost_at) = self.lost.remove(&tcp.seq.0) {
                    self.repaired_after.push(record.at.since(lost_at));
                }
            }
            _ => {}
        }
    }
}

fn watched(plan: &Plan, seed: u64) -> (Outcome, Watch) {
    let mut watch = Watch::default();
    let outcome = sim::run(plan, seed, &mut watch);
    assert_eq!(outcome.failures, [], "{} seed {seed}", plan.scheme);
    assert!(outcome.finished, "{} seed {seed}: every byte arrives", plan.scheme);
    (outcome, watch)
}

/// 1 % are lost beyond the base station.
fn lose_beyond(plan: &mut Plan) {
    let config = packet_loss::Config { probability: 0.01 };
    plan.wired.up.channels.push(channel::Config::PacketLoss(config));
}

/// The radio repeats on its own, and hands on as it receives.
fn reorder(plan: &mut Plan) {
    plan.radio.up.channels.push(channel::Config::Arq(arq::Config {
        try_failure: 0.1,
        retry_time: Duration::from_millis(4),
        retries_max: 3,
        order: arq::Order::AsReceived,
    }));
}

#[test]
fn snoop_nack_6_losses_on_both_sides_and_reordering_harm_no_transfer() {
    let text = r#"
        rate = "5Mbit/s"
        delay = "3ms"
        queue = "40p"
        wired-rate = "50Mbit/s"
        wired-delay = "30ms"
        ber = "1/512Kbit"
        outage = ["none", "every=2s,length=50ms..800ms"]
        tcp = ["reno", "sack", "linux"]
        direction = ["up", "both"]
        schemes = ["snoop", "snoop-modern"]
        size = "300kB"
    "#;
    let mut nacks = BTreeMap::new();
    for (case, plan) in plans(text) {
        for harm in 0..4 {
            let mut plan = plan.clone();
            if harm & 1 > 0 {
                lose_beyond(&mut plan);
            }
            if harm & 2 > 0 {
                reorder(&mut plan);
            }
            plan.forget_every = (harm == 3).then_some(Duration::from_millis(300));
            let (_, watch) = watched(&plan, 1);
            *nacks.entry(case.scheme.clone()).or_insert(0) += watch.nacks;
        }
    }
    assert!(nacks["snoop"] > 100, "{nacks:?}");
}

#[test]
fn mod_4_what_is_lost_beyond_what_was_told_costs_a_timeout_at_most() {
    let text = r#"
        rate = "10Mbit/s"
        delay = "2ms"
        wired-rate = "100Mbit/s"
        wired-delay = "48ms"
        ber = "1/512Kbit"
        tcp = ["sack", "linux"]
        direction = "up"
        schemes = ["plain", "snoop"]
        size = "1MB"
    "#;
    for (case, mut plan) in plans(text) {
        lose_beyond(&mut plan);
        for seed in 1..=8 {
            let (outcome, _) = watched(&plan, seed);
            let (stall, timeouts) =
                (outcome.measures.transfers[0].stall, outcome.measures.timeouts);
            // 0.3 s, backed off twice: 0.3 + 0.6 + 1.2 s.
            assert!(stall < Duration::from_millis(2_100), "{case:?} seed {seed}: {stall}");
            assert!(timeouts <= 5, "{case:?} seed {seed}: no storm of {timeouts}");
        }
    }
}

#[test]
fn snoop_nack_4_the_repetition_leaves_long_before_the_fixed_host_could_ask() {
    let text = r#"
        rate = "10Mbit/s"
        delay = "2ms"
        wired-rate = "100Mbit/s"
        wired-delay = "248ms"
        ber = "1/1Mbit"
        tcp = ["sack", "linux"]
        direction = "up"
        schemes = ["plain", "snoop"]
        size = "1MB"
    "#;
    for (case, plan) in plans(text) {
        let (_, watch) = watched(&plan, 1);
        let mut after = watch.repaired_after;
        after.sort();
        let median = after[after.len() / 2];
        match case.scheme.as_str() {
            "plain" => assert!(median > Duration::from_millis(490), "{median}"),
            _ => assert!(median < Duration::from_millis(100), "{median}"),
        }
    }
}

#[test]
fn modern_gets_messages_through_sooner() {
    let text = r#"
        rate = "10Mbit/s"
        delay = "2ms"
        wired-rate = "100Mbit/s"
        wired-delay = "148ms"
        ber = "1/256Kbit"
        tcp = ["sack", "linux"]
        direction = "up"
        traffic = "request:60kB,every=4s"
        duration = "60s"
        schemes = ["plain", "snoop-modern"]
    "#;
    let mut means = BTreeMap::new();
    for (case, plan) in plans(text) {
        let mut all = Vec::new();
        for seed in 1..=10 {
            let outcome = sim::run(&plan, seed, trace::Nothing);
            assert_eq!(outcome.failures, []);
            all.extend(outcome.measures.transfers[0].latencies.clone());
        }
        let sum: u64 = all.iter().map(|latency| latency.as_millis()).sum();
        means.insert((case.sender.to_string(), case.scheme), sum / all.len() as u64);
    }
    for tcp in ["sack", "linux"] {
        let [plain, modern] =
            ["plain", "snoop-modern"].map(|scheme| means[&(tcp.to_string(), scheme.to_string())]);
        assert!(modern * 100 < plain * 97, "{tcp}: {modern} ms, plain {plain} ms");
    }
}
