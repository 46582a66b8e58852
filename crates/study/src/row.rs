//! The result schema: one row per case, the same for simulator and lab.

use crate::handoffs::HandoffCost;
use crate::mobiles::Mobiles;
use crate::statistics::{Mean, Quantiles};
use crate::validation::Validation;
use core::fmt;
use node::scenario::{Direction, Handoff, Outage, Sender, Switch};
use node::{Case, Plan, Scenario};
use serde::{Deserialize, Deserializer, Serialize};
use trace::metrics::{Measures, Transfer};

/// Where a row was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum World {
    /// The simulator.
    Sim,
    /// Real kernels.
    Lab,
}

impl World {
    /// The name.
    pub const fn name(self) -> &'static str {
        match self {
            World::Sim => "sim",
            World::Lab => "lab",
        }
    }
}

/// One run of a case.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Its seed.
    pub seed: u64,
    /// How long the run was, seconds.
    pub seconds: f64,
    /// False if a transfer with a size was given up.
    pub finished: bool,
    /// What was measured.
    pub measures: Measures,
    /// What was wrong; nothing in a correct program.
    pub failures: Vec<String>,
    /// How late the emulated radio was; the simulator's is never late.
    pub radio_late: Option<Lateness>,
    /// Frames that the emulated radio lost by no hop's decision: with any, the run is not what was
    /// asked for.
    pub radio_mishaps: u64,
}

/// The time between the instant at which a frame was due and that at which the lab's radio sent it,
/// seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lateness {
    /// Half of the frames were no later.
    pub p50: f64,
    /// 99 of 100 were no later.
    pub p99: f64,
    /// The latest.
    pub max: f64,
    /// False if the radio's thread was scheduled as any other.
    pub real_time: bool,
}

/// A name out of a list that the program has.
pub type Name = &'static str;

/// One case, summarised over its runs. Counts are means per run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The scheme.
    pub scheme: String,
    /// The sender.
    #[serde(deserialize_with = "sender")]
    pub tcp: Name,
    /// Whether the hosts use SACK.
    pub sack: bool,
    /// Which way the data goes.
    #[serde(deserialize_with = "direction")]
    pub direction: Name,
    /// Bit error rate of the last hop.
    pub ber: String,
    /// Losses of the last hop.
    pub loss: String,
    /// Outages of the last hop.
    pub outage: String,
    /// Length of an outage in seconds, if all are of one length.
    pub outage_s: Option<f64>,
    /// Changes of the cell, if there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handoff: Option<String>,
    /// Time without coverage after a crossing, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap_s: Option<f64>,
    /// Simulator or lab.
    pub world: World,
    /// Number of runs.
    pub seeds: usize,
    /// Goodput of all transfers together, bit/s.
    pub goodput_bps: Option<Mean>,
    /// The most that the last hop could deliver, bit/s.
    pub ceiling_bps: f64,
    /// Mean goodput over that.
    pub ceiling_share: Option<f64>,
    /// The longest stall of each run, seconds.
    pub stall_s: Option<Quantiles>,
    /// From the link's return to the first new ACK at the sender, over all outages, seconds.
    pub stall_after_outage_s: Option<Quantiles>,
    /// From the link's return to the next byte delivered, over all outages, seconds.
    pub receiver_stall_after_outage_s: Option<Quantiles>,
    /// From the link's return until 500 kB more are acknowledged, over all outages, seconds.
    pub recovery_after_outage_s: Option<Quantiles>,
    /// What handoffs cost, if there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handoffs: Option<HandoffCost>,
    /// How long messages took, seconds, over all runs; for requests. A message counts from when its
    /// application writes it to when the peer's has all of it; one that is under way at the end
    /// does not.
    pub latency_s: Option<Quantiles>,
    /// What packets with payload waited at the last hop, seconds; see [`trace::metrics`]. Only of
    /// the simulator.
    pub queue_delay_s: Option<QueueDelay>,
    /// Packets that reach the base station from either side, per second of a run.
    pub base_station_packets_per_s: Option<f64>,
    /// Packets that end hosts sent again.
    pub retransmissions_end_to_end: f64,
    /// Packets that the base station sent again, without probes.
    pub retransmissions_local: f64,
    /// Probes of the base station.
    pub probes: f64,
    /// Bytes of those probes over all bytes on the air of the last hop.
    pub probe_air_share: Option<f64>,
    /// Retransmission timeouts of the senders.
    pub timeouts: f64,
    /// Duplicate ACKs that reached the senders.
    pub dupacks: f64,
    /// Bytes on the air of the last hop, both ways, per byte delivered.
    pub air_bytes_per_byte: Option<f64>,
    /// Air time of the last hop, both ways, per byte delivered, seconds: host costs, bits, and
    /// waits for ACKs of a link layer that repeats. Where several mobile hosts share the air, or
    /// frames are repeated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub air_s_per_byte: Option<f64>,
    /// How several mobile hosts at the base station fare, if there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mobiles: Option<Mobiles>,
    /// Most bytes in the base station's caches in any run.
    pub base_station_bytes_max: u64,
    /// How late the lab's radio was, each value that of the run in which it was worst.
    pub radio_late_s: Option<Lateness>,
    /// Frames that the lab's radio lost by no hop's decision, in all runs.
    pub radio_mishaps: u64,
    /// Runs given up before everything was delivered.
    pub unfinished: usize,
    /// `"passed"`, or what failed.
    pub checks: Checks,
    /// The runs, in the order of their seeds.
    #[serde(skip)]
    pub samples: Vec<Sample>,
}

/// Queue delay at the last hop: means over the runs of what each has.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct QueueDelay {
    /// Median of a run.
    pub p50: f64,
    /// 99th percentile of a run.
    pub p99: f64,
}

/// The verdict of a row's runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checks(pub Vec<String>);

impl fmt::Display for Checks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&if self.0.is_empty() { "passed".to_owned() } else { self.0.join("; ") })
    }
}

impl Serialize for Checks {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        if self.0.is_empty() { to.serialize_str("passed") } else { self.0.serialize(to) }
    }
}

impl<'de> Deserialize<'de> for Checks {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Verdict {
            Failures(Vec<String>),
            Passed(String),
        }
        match Verdict::deserialize(from)? {
            Verdict::Failures(failures) => Ok(Checks(failures)),
            Verdict::Passed(word) if word == "passed" => Ok(Checks(Vec::new())),
            Verdict::Passed(word) => Err(serde::de::Error::custom(format!("a verdict of {word}"))),
        }
    }
}

fn sender<'de, D: Deserializer<'de>>(from: D) -> Result<Name, D::Error> {
    let name = String::deserialize(from)?;
    name.parse::<Sender>().map(Sender::name).map_err(serde::de::Error::custom)
}

fn direction<'de, D: Deserializer<'de>>(from: D) -> Result<Name, D::Error> {
    let name = String::deserialize(from)?;
    name.parse::<Direction>().map(Direction::name).map_err(serde::de::Error::custom)
}

impl Sample {
    /// Goodput of all transfers together, bit/s.
    pub fn goodput_bps(&self) -> f64 {
        let transfers = &self.measures.transfers;
        // Those with a size are complete together; messages beside them never are.
        let complete = self.finished && transfers.iter().any(|transfer| transfer.complete);
        goodput_bps(transfers, complete, self.seconds)
    }

    /// Bytes on the air of the last hop, both ways, per byte delivered; not finite if none was.
    pub fn air_bytes_per_byte(&self) -> f64 {
        let transfers = self.measures.transfers.iter();
        let delivered: u64 = transfers.map(|transfer| transfer.delivered_bytes).sum();
        self.measures.air_bytes as f64 / delivered as f64
    }

    /// Air time of the last hop, both ways, per byte delivered, seconds; if it was measured.
    pub fn air_s_per_byte(&self) -> Option<f64> {
        let transfers = self.measures.transfers.iter();
        let delivered: u64 = transfers.map(|transfer| transfer.delivered_bytes).sum();
        let air = self.measures.air_time.filter(|_| delivered > 0)?;
        Some(air.as_secs_f64() / delivered as f64)
    }

    /// The longest stall of any transfer, seconds.
    pub fn stall_s(&self) -> f64 {
        let stalls = self.measures.transfers.iter().map(|transfer| transfer.stall);
        stalls.max().map_or(0.0, |stall| stall.as_secs_f64())
    }

    /// Queue delay of the run, seconds.
    fn queue_delay_s(&self) -> Option<QueueDelay> {
        let delay = self.measures.queue_delay?;
        Some(QueueDelay { p50: delay.p50.as_secs_f64(), p99: delay.p99.as_secs_f64() })
    }

    /// Packets that reach the base station, per second.
    fn base_station_packets_per_s(&self) -> f64 {
        self.measures.base_station_packets as f64 / self.seconds.max(1e-9)
    }

    /// Stalls after outages as the sender sees them, seconds.
    pub fn stalls_after_outage_s(&self) -> impl Iterator<Item = f64> {
        let transfers = self.measures.transfers.iter();
        transfers.flat_map(|one| &one.stalls_after_outage).map(|stall| stall.as_secs_f64())
    }
}

/// Goodput of transfers together, bit/s: until the last byte if they are complete, otherwise over
/// the whole run.
pub(crate) fn goodput_bps(transfers: &[Transfer], complete: bool, run_s: f64) -> f64 {
    let bytes: u64 = transfers.iter().map(|transfer| transfer.delivered_bytes).sum();
    let last = transfers.iter().map(|transfer| transfer.last_delivered_at).max();
    let seconds = match last {
        Some(last) if complete => last.as_secs_f64(),
        _ => run_s,
    };
    if seconds > 0.0 { bytes as f64 * 8.0 / seconds } else { 0.0 }
}

impl Row {
    /// Summarises the runs of a case. `plan` gives the ceiling; a lab row whose scheme has no
    /// engine has the plan of one that has.
    pub fn new(case: &Case, plan: &Plan, world: World, samples: Vec<Sample>) -> Row {
        let over = |value: fn(&Sample) -> f64| -> Vec<f64> { samples.iter().map(value).collect() };
        let per_run = |count: fn(&Measures) -> u64| {
            let total: u64 = samples.iter().map(|sample| count(&sample.measures)).sum();
            total as f64 / samples.len().max(1) as f64
        };
        let flows = || samples.iter().flat_map(|sample| &sample.measures.transfers);
        let seconds = |stall: &sansio::Duration| stall.as_secs_f64();
        let after: Vec<f64> = samples.iter().flat_map(Sample::stalls_after_outage_s).collect();
        let receiver: Vec<f64> =
            flows().flat_map(|one| &one.receiver_stalls_after_outage).map(seconds).collect();
        let recoveries: Vec<f64> = flows().flat_map(|one| &one.recoveries).map(seconds).collect();
        let latencies: Vec<f64> = flows().flat_map(|one| &one.latencies).map(seconds).collect();
        let delivered: u64 = flows().map(|one| one.delivered_bytes).sum();
        let air: u64 = samples.iter().map(|sample| sample.measures.air_bytes).sum();
        let probes: u64 = samples.iter().map(|sample| sample.measures.probe_bytes).sum();
        let goodput_bps = Mean::of(&over(Sample::goodput_bps));
        let ceiling = |sample: &Sample| {
            plan.ceiling_bps(case, sansio::Duration::from_secs_f64(sample.seconds))
        };
        let ceiling_bps = match samples.as_slice() {
            [] => plan.ceiling_bps(case, sansio::Duration::ZERO),
            samples => samples.iter().map(ceiling).sum::<f64>() / samples.len() as f64,
        };
        Row {
            scheme: case.scheme.clone(),
            tcp: case.sender.name(),
            sack: case.sack == Switch::On,
            direction: case.direction.name(),
            ber: case.ber.to_string(),
            loss: case.loss.to_string(),
            outage: case.outage.to_string(),
            outage_s: outage_s(case.outage),
            handoff: (case.handoff != Handoff::None).then(|| case.handoff.to_string()),
            gap_s: case.handoff.gap_s(),
            world,
            seeds: samples.len(),
            ceiling_bps,
            // A recording may let nothing through.
            ceiling_share: goodput_bps
                .filter(|_| ceiling_bps > 0.0)
                .map(|goodput| goodput.mean / ceiling_bps),
            goodput_bps,
            stall_s: Quantiles::of(&over(Sample::stall_s)),
            stall_after_outage_s: Quantiles::of(&after),
            receiver_stall_after_outage_s: Quantiles::of(&receiver),
            recovery_after_outage_s: Quantiles::of(&recoveries),
            handoffs: HandoffCost::of(&samples),
            latency_s: Quantiles::of(&latencies),
            queue_delay_s: mean_delay(&samples),
            base_station_packets_per_s: Mean::of(&over(Sample::base_station_packets_per_s))
                .map(|packets| packets.mean)
                .filter(|packets| *packets > 0.0),
            retransmissions_end_to_end: per_run(|one| one.retransmissions_end_to_end),
            retransmissions_local: per_run(|one| one.retransmissions_local),
            probes: per_run(|one| one.probes),
            probe_air_share: (air > 0).then(|| probes as f64 / air as f64),
            timeouts: per_run(|one| one.timeouts),
            dupacks: per_run(|one| one.dupacks),
            air_bytes_per_byte: (delivered > 0).then(|| air as f64 / delivered as f64),
            air_s_per_byte: air_time(&samples)
                .filter(|_| delivered > 0)
                .map(|air| air / delivered as f64),
            mobiles: Mobiles::of(&samples, plan.transfers.len()),
            base_station_bytes_max: bytes_max(&samples),
            radio_late_s: samples.iter().filter_map(|sample| sample.radio_late).reduce(worst),
            radio_mishaps: samples.iter().map(|sample| sample.radio_mishaps).sum(),
            unfinished: samples.iter().filter(|sample| !sample.finished).count(),
            checks: Checks(samples.iter().flat_map(failures).collect()),
            samples,
        }
    }

    /// The goodput that stands for the runs, bit/s: the mean in the simulator, whose intervals are
    /// narrowed by more seeds; the median in the lab, where one run disturbed by the machine must
    /// not move the result.
    pub fn typical_goodput_bps(&self) -> Option<f64> {
        self.goodput_bps.map(|goodput| match self.world {
            World::Sim => goodput.mean,
            World::Lab => goodput.p50,
        })
    }

    /// True if only the scheme may differ.
    pub(crate) fn is_beside(&self, other: &Row) -> bool {
        let key = |row: &Row| (row.tcp, row.sack, row.direction, row.world);
        let channel = |row: &Row| {
            let handoff = row.handoff.clone().unwrap_or_default();
            [row.ber.clone(), row.loss.clone(), row.outage.clone(), handoff]
        };
        key(self) == key(other) && channel(self) == channel(other)
    }

    /// True if every invariant held in every run.
    pub fn passed(&self) -> bool {
        self.checks.0.is_empty()
    }
}

/// Air time of all runs, if it was measured, seconds.
fn air_time(samples: &[Sample]) -> Option<f64> {
    let times = samples.iter().map(|sample| sample.measures.air_time);
    times.map(|time| time.map(|time| time.as_secs_f64())).sum()
}

fn mean_delay(samples: &[Sample]) -> Option<QueueDelay> {
    let delays: Vec<QueueDelay> = samples.iter().filter_map(Sample::queue_delay_s).collect();
    let mean = |of: fn(&QueueDelay) -> f64| Mean::of(&delays.iter().map(of).collect::<Vec<_>>());
    let (p50, p99) = mean(|delay| delay.p50).zip(mean(|delay| delay.p99))?;
    Some(QueueDelay { p50: p50.mean, p99: p99.mean })
}

/// The worse of two runs in each respect.
fn worst(a: Lateness, b: Lateness) -> Lateness {
    Lateness {
        p50: a.p50.max(b.p50),
        p99: a.p99.max(b.p99),
        max: a.max.max(b.max),
        real_time: a.real_time && b.real_time,
    }
}

fn failures(sample: &Sample) -> impl Iterator<Item = String> {
    sample.failures.iter().map(|failure| format!("seed {}: {failure}", sample.seed))
}

/// The most that a base station kept in any run.
fn bytes_max(samples: &[Sample]) -> u64 {
    let most = samples.iter().map(|sample| sample.measures.base_station_bytes_max);
    most.max().unwrap_or(0)
}

/// The length of an outage in seconds, if all are of one length.
pub(crate) fn outage_s(outage: Outage) -> Option<f64> {
    match outage {
        Outage::None => None,
        Outage::Every { length: (shortest, longest), .. }
        | Outage::At { length: (shortest, longest), .. } => {
            (shortest == longest).then(|| shortest.0.as_secs_f64())
        }
    }
}

/// Everything of one comparison: the document that `compare --json` and `lab --json` print.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Document<'a> {
    /// Version of the program.
    pub version: &'a str,
    /// The scenario, complete; it can be fed back.
    pub scenario: &'a Scenario,
    /// The rows.
    pub rows: &'a [Row],
    /// One sentence.
    pub advice: &'a str,
    /// How well the models of the simulated senders are known.
    pub validation: &'a [Validation],
}
