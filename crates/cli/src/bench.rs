//! `lasthop bench`: the speed of the simulator, one run per call. `sim` has neither records nor
//! checks, `handoffs` all of them.

use crate::args::{BenchHandoffs, BenchSim};
use crate::error::Error;
use crate::options;
use crate::output::outln;
use node::scenario::{self, Amount, Axis, Queue, Scenario, Size};
use node::{Draft, Plan};
use serde::Serialize;

#[derive(Serialize)]
struct Report<'a> {
    flows: u32,
    size_bytes: u64,
    scheme: &'a str,
    tcp: &'a str,
    data_packets: u64,
    cpu_s: f64,
    data_packets_per_cpu_s: f64,
    events: u64,
    ns_per_event: f64,
    peak_rss_bytes: u64,
}

pub(crate) fn sim(args: &BenchSim) -> Result<(), Error> {
    let plan = plan(args)?;
    let size: Size = args.size.parse().map_err(Error::usage)?;
    let before = cpu_s();
    let counts = sim::run::run_bare(&plan, args.seed);
    let cpu_s = cpu_s() - before;
    if !counts.finished {
        let message = format!("not finished after {} of simulated time", plan.until);
        return Err(Error::Failed(Some(message)));
    }
    let report = Report {
        flows: args.flows,
        size_bytes: size.0,
        scheme: &args.scheme,
        tcp: &args.tcp,
        data_packets: counts.data_packets,
        cpu_s,
        data_packets_per_cpu_s: counts.data_packets as f64 / cpu_s,
        events: counts.events,
        ns_per_event: cpu_s * 1e9 / counts.events as f64,
        peak_rss_bytes: peak_rss_bytes(),
    };
    if args.json {
        outln!("{}", serde_json::to_string_pretty(&report).map_err(Error::usage)?);
    } else {
        outln!(
            "{} flows of {} bytes, {}, {}: {} data packets in {:.2} CPU s = {:.2} M per CPU s, \
             {:.1} ns per event, {:.1} MB",
            report.flows,
            report.size_bytes,
            report.scheme,
            report.tcp,
            report.data_packets,
            report.cpu_s,
            report.data_packets_per_cpu_s / 1e6,
            report.ns_per_event,
            report.peak_rss_bytes as f64 / 1e6,
        );
    }
    Ok(())
}

#[derive(Serialize)]
struct HandoffsReport<'a> {
    mobiles: u32,
    cells: u16,
    handoff: String,
    traffic: String,
    scheme: &'a str,
    tcp: &'a str,
    simulated_s: f64,
    handoffs: u64,
    cpu_s: f64,
    real_time_factor: f64,
    events: u64,
    ns_per_event: f64,
    peak_rss_bytes: u64,
    checks: &'static str,
}

pub(crate) fn handoffs(args: &BenchHandoffs) -> Result<(), Error> {
    let scenario = options::scenario(&args.link)?;
    let cases = scenario.cases();
    let [case] = cases.as_slice() else {
        let message = format!("bench handoffs: one run, but there are {} cases", cases.len());
        return Err(Error::Usage(message));
    };
    let plan = Plan::new(&scenario, case).map_err(Error::usage)?;
    if plan.roaming.is_none() {
        let message = "--handoff none: expected one to measure, as in every=8s,gap=100ms";
        return Err(Error::Usage(message.to_owned()));
    }
    let before = cpu_s();
    let outcome = sim::run(&plan, scenario.seed, trace::Nothing);
    let cpu_s = cpu_s() - before;
    let simulated_s = outcome.ended_at.since(sansio::Instant::ZERO).as_secs_f64();
    let report = HandoffsReport {
        mobiles: scenario.mobiles,
        cells: scenario.cells,
        handoff: case.handoff.to_string(),
        traffic: scenario.traffic.to_string(),
        scheme: &case.scheme,
        tcp: case.sender.name(),
        simulated_s,
        handoffs: outcome.measures.handoffs.as_ref().map_or(0, |handoffs| handoffs.crossings),
        cpu_s,
        real_time_factor: simulated_s / cpu_s,
        events: outcome.events,
        ns_per_event: cpu_s * 1e9 / outcome.events as f64,
        peak_rss_bytes: peak_rss_bytes(),
        checks: if outcome.failures.is_empty() { "passed" } else { "failed" },
    };
    if args.json {
        outln!("{}", serde_json::to_string_pretty(&report).map_err(Error::usage)?);
    } else {
        outln!(
            "{} mobile hosts in {} cells, {}, {}: {} handoffs, {:.1} s in {:.2} CPU s = {:.2} x \
             real time, {:.1} ns per event, {:.1} MB",
            report.mobiles,
            report.cells,
            report.handoff,
            report.scheme,
            report.handoffs,
            report.simulated_s,
            report.cpu_s,
            report.real_time_factor,
            report.ns_per_event,
            report.peak_rss_bytes as f64 / 1e6,
        );
    }
    match outcome.failures.first() {
        Some(first) => Err(Error::Failed(Some(format!("an invariant is broken: {first}")))),
        None => Ok(()),
    }
}

/// The scenario that other simulators were measured with: fixed host - 10 Mbit/s, 1 ms - base
/// station - 2 Mbit/s, 1 ms - mobile host, MSS 1460, a window of 44 segments, one ACK per segment.
fn plan(args: &BenchSim) -> Result<Plan, Error> {
    if args.flows == 0 || args.flows > 1_000_000 {
        return Err(Error::Usage(format!("--flows {}: expected 1 to 1000000", args.flows)));
    }
    let text =
        |name: &str, error: scenario::QuantityError| Error::Usage(format!("--{name}: {error}"));
    let parse = |key: &'static str, value: &str| value.parse().map_err(|error| text(key, error));
    let draft = Draft {
        rate: Some(parse("rate", "2Mbit/s")?),
        delay: Some("1ms".parse().map_err(|error| text("delay", error))?),
        wired_rate: Some(parse("wired-rate", "10Mbit/s")?),
        wired_delay: Some("1ms".parse().map_err(|error| text("wired-delay", error))?),
        queue: Some(Queue::Packets(1000)),
        ber: Some(Axis(vec![args.ber.parse().map_err(|error| text("ber", error))?])),
        tcp: Some(Axis(vec![args.tcp.parse().map_err(|error| text("tcp", error))?])),
        schemes: Some(Axis(vec![args.scheme.clone()])),
        hosts: Some(scenario::Hosts::Bsd1995),
        size: Some(args.size.parse().map_err(|error| text("size", error))?),
        ..Draft::default()
    };
    let mut scenario = Scenario::complete(draft).map_err(Error::usage)?;
    scenario.window = Size(44 * 1460);
    debug_assert!(matches!(scenario.amount, Amount::Size(_)), "a bench has a size");
    let cases = scenario.cases();
    let case = cases.first().ok_or_else(|| Error::usage("nothing to run"))?;
    let mut plan = Plan::new(&scenario, case).map_err(Error::usage)?;
    plan.triples = args.flows;
    plan.tcp.delayed_ack = tcp::config::DelayedAck::None;
    Ok(plan)
}

/// CPU time of this process so far, user and system, all threads.
fn cpu_s() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// The most memory this process ever had resident, from /proc/self/status.
fn peak_rss_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}
