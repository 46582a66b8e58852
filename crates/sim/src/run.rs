//! One run: a plan and a seed in, an outcome out.

use crate::kernel::Kernel;
use crate::network::{Network, TRIPLE, roles};
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
    let roles = roles(plan.triples);
    let mut checks = Checks::new(roles.clone());
    let idle = [&plan.radio.down, &plan.radio.up].map(idle);
    let mut meter = Meter::new(roles, transfers(plan)).with_idle(idle);
    let network = Network::new(plan, seed);
    let mut kernel = Kernel::new(network, plan.missing(), (&mut checks, &mut meter, observer));
    let ended_at = kernel.run(plan.until());
    let (finished, events, under_way) = (kernel.is_finished(), kernel.events(), kernel.under_way());
    drop(kernel);
    Outcome {
        ended_at,
        finished,
        measures: meter.finish(ended_at),
        failures: checks.finish(under_way, ended_at),
        events,
    }
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

/// The transfers of a run, for whoever measures or plots it.
pub fn transfers(plan: &Plan) -> Vec<TransferSpec> {
    let mut specs = Vec::new();
    for triple in 0..plan.triples {
        let [fixed, base, mobile] = [0, 1, 2].map(|machine| NodeId(triple * TRIPLE + machine));
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
