//! What happened so far, as others see it: published by the loop, read by whoever asks.

use super::choice::Chosen;
use super::config::{DaemonConfig, Forwarding, Mode};
use super::link::Link;
use super::station::Counters;
use sansio::{Duration, FlowKey, Instant};
use schemes::Scheme;
use schemes::worth::{ClassReport, Measured};
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, Mutex, PoisonError};

/// What happened from the start to `seconds`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Snapshot {
    /// Time since the daemon began.
    pub seconds: f64,
    /// What it does.
    pub mode: Mode,
    /// How packets get from one device to the other.
    pub forwarding: Forwarding,
    /// By which way packets pass the engine, and why; null if none do.
    pub back_end: Option<Chosen>,
    /// What is wrong, for as long as it is.
    pub problem: Option<String>,
    /// Payload bytes that the scheme holds.
    pub held_bytes: u64,
    /// The most that it held at once.
    pub held_bytes_max: u64,
    /// Frames that came faster than they were taken, and were lost.
    pub overruns: u64,
    /// Packets.
    pub packets: Counters,
    /// What the scheme itself counts; null if it counts nothing.
    pub scheme: Value,
    /// What help is worth, by class of mobile hosts.
    pub classes: Vec<Value>,
    /// What the scheme did, by rule.
    pub interventions: Vec<Intervention>,
    /// How long the loop was busy at a time.
    pub turns: Turns,
}

impl Snapshot {
    /// What happened so far.
    pub(super) fn of(
        link: &mut Link,
        counted: &Counted,
        (config, mode): (&DaemonConfig, Mode),
        now: Instant,
    ) -> Snapshot {
        let overruns = link.overruns();
        let measured = link.station.engine();
        let scheme = measured.inner();
        Snapshot {
            seconds: now.as_secs_f64(),
            mode,
            forwarding: config.forwarding,
            back_end: link.back_end(),
            problem: None,
            held_bytes: scheme.held_bytes(),
            held_bytes_max: counted.held_bytes_max,
            overruns,
            packets: link.station.counters(),
            scheme: of_scheme(scheme),
            classes: of_classes(measured),
            interventions: counted.interventions.totals(),
            turns: counted.turns,
        }
    }
}

/// What the loop counts beside the station.
#[derive(Debug, Default)]
pub(super) struct Counted {
    pub(super) held_bytes_max: u64,
    pub(super) interventions: Interventions,
    pub(super) turns: Turns,
    pub(super) overruns: u64,
    pub(super) overrun_at: Option<Instant>,
}

/// How often a rule acted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Intervention {
    /// Its ID in the specification.
    pub rule: &'static str,
    /// What it did.
    pub did: &'static str,
    /// How often.
    pub count: u64,
}

/// How long the loop was busy between two waits: a histogram.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Turns {
    /// Turns no longer than each of [`Turns::BOUNDS_US`], and all longer ones last; not cumulative.
    pub counts: [u64; Turns::BOUNDS_US.len() + 1],
    /// The sum of all, in nanoseconds.
    pub busy_ns: u64,
}

impl Turns {
    /// Upper bounds of the histogram, in microseconds.
    pub const BOUNDS_US: [u64; 8] = [10, 30, 100, 300, 1_000, 3_000, 10_000, 30_000];

    /// Counts a turn.
    #[inline]
    pub fn note(&mut self, busy: Duration) {
        let nanos = busy.as_nanos();
        let place = Self::BOUNDS_US.iter().position(|bound| nanos <= bound * 1_000);
        self.counts[place.unwrap_or(Self::BOUNDS_US.len())] += 1;
        self.busy_ns += nanos;
    }
}

/// Where the latest snapshot is kept.
#[derive(Clone, Debug)]
pub struct Board(Arc<Mutex<Arc<Snapshot>>>);

impl Board {
    /// A board with a first snapshot.
    pub fn new(first: Snapshot) -> Self {
        Board(Arc::new(Mutex::new(Arc::new(first))))
    }

    /// Puts another in its place.
    pub fn publish(&self, snapshot: Snapshot) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(snapshot);
    }

    /// The latest.
    pub fn latest(&self) -> Arc<Snapshot> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// What rules did: in all, and for each flow that has state.
#[derive(Clone, Debug, Default)]
pub(super) struct Interventions {
    all: BTreeMap<(&'static str, &'static str), u64>,
    by_flow: BTreeMap<FlowKey, OfFlow>,
    /// Up to here all were looked at, the last time; `None`: all.
    looked_at: Option<FlowKey>,
}

/// What rules did for one flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OfFlow {
    pub(super) count: u64,
    /// Rule and deed.
    pub(super) last: (&'static str, &'static str),
}

/// Flows with counts at most; beyond it only the totals count.
const FLOWS_COUNTED_MAX: usize = 1 << 16;
/// So many at a time, that packets do not wait for it.
const FLOWS_LOOKED_AT: usize = 1 << 12;

impl Interventions {
    pub(super) fn note(&mut self, flow: Option<FlowKey>, rule: &'static str, did: &'static str) {
        *self.all.entry((rule, did)).or_default() += 1;
        let Some(flow) = flow else { return };
        let last = (rule, did);
        let room = self.by_flow.len() < FLOWS_COUNTED_MAX;
        match self.by_flow.get_mut(&flow) {
            Some(known) => *known = OfFlow { count: known.count + 1, last },
            None if room => {
                self.by_flow.insert(flow, OfFlow { count: 1, last });
            }
            None => {}
        }
    }

    /// Lets go of flows that the scheme has forgotten: of those few at whom it looks this time.
    pub(super) fn forget_some_but(&mut self, known: impl Fn(&FlowKey) -> bool) {
        let from = self.looked_at.map_or(Bound::Unbounded, Bound::Excluded);
        let next = self.by_flow.range((from, Bound::Unbounded)).map(|(key, _)| *key);
        let keys: Vec<FlowKey> = next.take(FLOWS_LOOKED_AT).collect();
        self.looked_at = keys.get(FLOWS_LOOKED_AT - 1).copied();
        for key in keys.iter().filter(|key| !known(key)) {
            self.by_flow.remove(key);
        }
    }

    pub(super) fn of(&self, flow: &FlowKey) -> Option<OfFlow> {
        self.by_flow.get(flow).copied()
    }

    pub(super) fn totals(&self) -> Vec<Intervention> {
        let all = self.all.iter();
        all.map(|((rule, did), count)| Intervention { rule, did, count: *count }).collect()
    }
}

/// What help is worth to each class, and what it would be worth, as far as the observed flows tell.
pub(super) fn of_classes(measured: &Measured<Scheme>) -> Vec<Value> {
    let class = |class: ClassReport| {
        json!({
            "name": class.name,
            "verdict": class.verdict.name(),
            "flows_helped": class.flows[0],
            "flows_control": class.flows[1],
            "goodput_helped_bps": class.goodput[0].map(|bytes| bytes * 8.0),
            "goodput_control_bps": class.goodput[1].map(|bytes| bytes * 8.0),
            "gain_low": class.gain.map(|(low, _)| low),
            "gain_high": class.gain.map(|(_, high)| high),
            "would_repair": class.would_repair,
            "would_save_s": class.would_save.as_secs_f64(),
            "observed_busy_s": class.observed_busy.as_secs_f64(),
        })
    };
    measured.classes().map(class).collect()
}

/// What the scheme itself counts.
pub(super) fn of_scheme(scheme: &Scheme) -> Value {
    let Scheme::Snoop(agent) = scheme else { return Value::Null };
    let counted = agent.statistics();
    json!({
        "flows": agent.flows(),
        "flows_created": counted.flows_created,
        "flows_left_alone": counted.flows_left_alone,
        "flows_refused": counted.flows_refused,
        "cached": counted.cached,
        "uncached": counted.uncached,
        "sender_retransmissions": counted.sender_retransmissions,
        "agent_acks": counted.agent_acks,
        "dupacks_suppressed": counted.dupacks_suppressed,
        "dupacks_forwarded": counted.dupacks_forwarded,
        "spurious_acks": counted.spurious_acks,
        "retransmissions": counted.retransmissions,
        "retransmitted_bytes": counted.retransmitted_bytes,
        "timer_retransmissions": counted.timer_retransmissions,
        "restart_retransmissions": counted.restart_retransmissions,
        "unneeded_retransmissions": counted.unneeded_retransmissions,
        "retransmissions_refused": counted.retransmissions_refused,
        "probes": counted.probes,
        "probe_bytes": counted.probe_bytes,
        "sack_hidden": counted.sack_hidden,
        "queue_drops_seen": counted.queue_drops_seen,
        "nacks": counted.nacks,
        "nacks_unneeded": counted.nacks_unneeded,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use sansio::Host;
    use std::net::IpAddr;

    #[test]
    fn counts_of_forgotten_flows_go_in_pieces() {
        let flow = |number: u32| {
            let address = IpAddr::from(number.to_be_bytes());
            let host = Host { address, port: 80 };
            FlowKey { source: host, destination: host }
        };
        let mut counted = Interventions::default();
        let flows = 3 * FLOWS_LOOKED_AT as u32 - 5;
        (0..flows).for_each(|number| counted.note(Some(flow(number)), "rule", "did"));
        let is_known = |key: &FlowKey| *key == flow(0) || *key == flow(flows - 1);
        for left in [2 * FLOWS_LOOKED_AT - 4, FLOWS_LOOKED_AT - 4, 2, 2] {
            counted.forget_some_but(is_known);
            assert_eq!(counted.by_flow.len(), left);
        }
        assert!(counted.of(&flow(0)).is_some() && counted.of(&flow(flows - 1)).is_some());
        (1..flows - 1).for_each(|number| counted.note(Some(flow(number)), "rule", "did"));
        (0..3).for_each(|_| counted.forget_some_but(is_known));
        assert_eq!(counted.by_flow.len(), 2, "it begins again");
    }
}
