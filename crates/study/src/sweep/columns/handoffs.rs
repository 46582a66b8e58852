//! The columns about mobile hosts that change cells; empty where they stay.

use super::{Column, Group, Run, integer, quantiles, real, text};
use crate::statistics::Quantiles;
use node::scenario::Handoff;
use sansio::Duration;
use trace::handoffs::Handoffs;

pub(super) const COLUMNS: &[Column] = &[
    text(Group::Case, "handoff", "changes of the cell, as in scenarios", |run| {
        let handoff = run.configuration.case.handoff;
        (handoff != Handoff::None).then(|| handoff.to_string())
    }),
    real(
        Group::Case,
        "gap_s",
        "how long nothing reaches after a crossing, s; empty if never",
        |run| run.configuration.case.handoff.gap_s(),
    ),
    integer(Group::Path, "cells", "cells; empty where nobody moves", |run| {
        moves(run).then(|| run.configuration.scenario.cells.into())
    }),
    real(
        Group::Path,
        "backhaul_share",
        "share of the wired delay between router and base stations",
        |run| moves(run).then_some(run.configuration.scenario.backhaul.0),
    ),
    integer(Group::Measure, "handoffs", "crossings from cell to cell", |run| {
        count(run, |one| one.crossings)
    }),
    real(
        Group::Measure,
        "stall_after_handoff_p50_s",
        "longest time without a new ACK at the sender after a crossing, median, s",
        |run| sender_stall(run).map(|stall| stall.p50),
    ),
    real(Group::Measure, "stall_after_handoff_p95_s", "95th percentile of the same, s", |run| {
        sender_stall(run).map(|stall| stall.p95)
    }),
    real(Group::Measure, "stall_after_handoff_max_s", "the longest of them, s", |run| {
        sender_stall(run).map(|stall| stall.max)
    }),
    real(
        Group::Measure,
        "receiver_stall_after_handoff_p50_s",
        "the same without a new byte at the receiver, median, s",
        |run| receiver_stall(run).map(|stall| stall.p50),
    ),
    real(
        Group::Measure,
        "receiver_stall_after_handoff_p95_s",
        "95th percentile of the same, s",
        |run| receiver_stall(run).map(|stall| stall.p95),
    ),
    real(Group::Measure, "receiver_stall_after_handoff_max_s", "the longest of them, s", |run| {
        receiver_stall(run).map(|stall| stall.max)
    }),
    real(
        Group::Measure,
        "until_consistent_p50_s",
        "crossing until both ways lead through the new base station, median, s",
        |run| times(run, |one| &one.until_consistent),
    ),
    real(
        Group::Measure,
        "until_first_packet_p50_s",
        "first message of a handoff to the first packet through the new cell, median, s",
        |run| times(run, |one| &one.until_first_packet),
    ),
    real(
        Group::Measure,
        "until_registered_p50_s",
        "crossing until the home agent's answer is there, median, s",
        |run| times(run, |one| &one.until_registered),
    ),
    real(
        Group::Measure,
        "latency_around_handoff_p50_s",
        "time of messages under way at a crossing or written within 1 s after it, median, s",
        |run| latency(run).map(|latency| latency.p50),
    ),
    real(Group::Measure, "latency_around_handoff_p95_s", "95th percentile of the same, s", |run| {
        latency(run).map(|latency| latency.p95)
    }),
    real(Group::Measure, "latency_around_handoff_max_s", "the longest of them, s", |run| {
        latency(run).map(|latency| latency.max)
    }),
    integer(Group::Measure, "handoff_lost", "TCP segments lost by handoffs", |run| {
        count(run, |one| one.lost)
    }),
    integer(
        Group::Measure,
        "handoff_messages",
        "beacons, registrations, handoff messages, once for each hop",
        |run| count(run, |one| one.messages),
    ),
    integer(Group::Measure, "handoff_message_bytes", "bytes of those", |run| {
        count(run, |one| one.message_bytes)
    }),
];

fn moves(run: Run<'_>) -> bool {
    run.configuration.case.handoff != Handoff::None
}

fn count(run: Run<'_>, of: fn(&Handoffs) -> u64) -> Option<i64> {
    run.sample.measures.handoffs.as_ref().map(|handoffs| of(handoffs) as i64)
}

fn times(run: Run<'_>, of: fn(&Handoffs) -> &Vec<Duration>) -> Option<f64> {
    let times = of(run.sample.measures.handoffs.as_ref()?).iter();
    let seconds: Vec<f64> = times.map(|time| time.as_secs_f64()).collect();
    Quantiles::of(&seconds).map(|times| times.p50)
}

fn sender_stall(run: Run<'_>) -> Option<Quantiles> {
    quantiles(run, |transfer| &transfer.stalls_after_handoff)
}

fn receiver_stall(run: Run<'_>) -> Option<Quantiles> {
    quantiles(run, |transfer| &transfer.receiver_stalls_after_handoff)
}

fn latency(run: Run<'_>) -> Option<Quantiles> {
    quantiles(run, |transfer| &transfer.latencies_around_handoff)
}
