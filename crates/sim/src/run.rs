//! One run: a plan and a seed in, an outcome out.

use crate::kernel::Kernel;
use crate::network::{Network, machines, roles};
use link::Statistics;
use link::outage::Interval;
use node::Plan;
use node::host::Application;
use node::plan::Way;
use sansio::{Duration, Instant, StreamId};
use trace::checks::{Checks, Failure};
use trace::metrics::{Idle, Measures, Meter, TransferSpec};
use trace::{NodeId, Observer};

/// What came of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// When it ended.
    pub ended_at: Instant,
    /// True if every transfer with a size was delivered.
    pub finished: bool,
    /// What was measured.
    pub measures: Measures,
    /// Broken invariants; none in a correct program.
    pub failures: Vec<Failure>,
    /// Events that the kernel handled.
    pub events: u64,
}

/// What a bare run counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// When it ended.
    pub ended_at: Instant,
    /// True if every transfer with a size was delivered.
    pub finished: bool,
    /// Events that the kernel handled.
    pub events: u64,
    /// Segments with payload that the end hosts sent, retransmissions included.
    pub data_packets: u64,
}

/// Runs a plan: every invariant is checked, everything is measured; `observer` sees the records.
pub fn run<O: Observer>(plan: &Plan, seed: u64, observer: O) -> Outcome {
    let roles = roles(plan);
    let mut checks = Checks::new(roles.clone());
    let idle = [&plan.radio.down, &plan.radio.up].map(idle);
    let mut meter = Meter::new(roles, transfers(plan)).with_idle(idle);
    let network = Network::new(plan, seed);
    let mut kernel = Kernel::new(network, plan.missing(), (&mut checks, &mut meter, observer));
    let ended_at = kernel.run(plan.until());
    let (finished, events, under_way) = (kernel.is_finished(), kernel.events(), kernel.under_way());
    let air = air(plan, kernel.radio());
    let kept = kernel.kept();
    drop(kernel);
    kept.into_iter().for_each(|(node, packet)| checks.keep(node, packet));
    let mut measures = meter.finish(ended_at);
    if let Some(Air { bytes, time }) = air {
        (measures.air_bytes, measures.air_time) = (bytes, Some(time));
    }
    Outcome { ended_at, finished, measures, failures: checks.finish(under_way, ended_at), events }
}

/// What the last hop took of its air.
struct Air {
    bytes: u64,
    time: Duration,
}

/// What the hops of the last hop counted, where records do not say it: several mobile hosts share
/// the air, or the link layer repeats frames.
fn air(plan: &Plan, hops: impl Iterator<Item = Statistics>) -> Option<Air> {
    let repeats = plan.radio.down.frame_arq.is_some() || plan.radio.up.frame_arq.is_some();
    (repeats || plan.mobiles > 1).then(|| {
        hops.fold(Air { bytes: 0, time: Duration::ZERO }, |air, hop| Air {
            bytes: air.bytes + hop.air_bytes,
            time: air.time + hop.busy,
        })
    })
}

/// What one way of the last hop takes for a packet when nothing else is there.
fn idle(hop: &link::hop::Config) -> Idle {
    let (rate, fixed) = hop.unloaded();
    Idle { rate, fixed }
}

/// Runs a plan and only counts: no records, no checks. For measuring speed.
pub fn run_bare(plan: &Plan, seed: u64) -> Counts {
    let network = Network::new(plan, seed);
    let mut kernel = Kernel::new(network, plan.missing(), trace::Nothing);
    let ended_at = kernel.run(plan.until());
    let endpoints = kernel.hosts().flat_map(node::Host::endpoints);
    let data_packets = endpoints.map(|endpoint| endpoint.statistics().data_segments_sent).sum();
    Counts { ended_at, finished: kernel.is_finished(), events: kernel.events(), data_packets }
}

/// The machine that is a cell's base station, in a run with cells.
pub fn station(cell: u16) -> NodeId {
    crate::roam::station(cell)
}

/// When the air of the first pair is bad in a direction, before `end`: fades, and recorded losses.
pub fn fades(plan: &Plan, seed: u64, way: Way, end: Instant) -> Vec<Interval> {
    let (config, name) = match way {
        Way::Down => (&plan.radio.down, "0.radio.down"),
        Way::Up => (&plan.radio.up, "0.radio.up"),
    };
    link::channel::fades(&config.channels, (seed, name), end)
}

/// The transfers of a run, for whoever measures or plots it.
pub fn transfers(plan: &Plan) -> Vec<TransferSpec> {
    let mut specs = Vec::new();
    for pair in 0..plan.pairs() {
        let [fixed, base, mobile] = machines(plan, pair);
        for transfer in &plan.transfers {
            let (sender, receiver) = match transfer.direction {
                Way::Down => (fixed, mobile),
                Way::Up => (mobile, fixed),
            };
            let (size, messages): (Option<u64>, Option<(u64, Duration)>) =
                match transfer.application {
                    Application::Bulk { size } => (Some(size), None),
                    Application::Endless => (None, None),
                    Application::Request { size, every } => (None, Some((size, every))),
                };
            let stream = StreamId(specs.len() as u32);
            specs.push(TransferSpec { stream, sender, receiver, base, size, messages });
        }
    }
    specs
}
