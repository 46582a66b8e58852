//! What handoffs cost, over the runs of a case.

use crate::row::Sample;
use crate::statistics::Quantiles;
use sansio::Duration;
use serde::{Deserialize, Serialize};
use trace::handoffs::Handoffs;
use trace::metrics::Transfer;

/// Of one case. Times in seconds, over all handoffs of all runs; counts per handoff.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HandoffCost {
    /// Handoffs in all runs together.
    pub handoffs: u64,
    /// Stalls at the sender ([`trace::handoffs`]).
    pub stall_s: Option<Quantiles>,
    /// Stalls at the receiver.
    pub receiver_stall_s: Option<Quantiles>,
    /// From a crossing until routes are consistent, as the mobile host knows it.
    pub until_consistent_s: Option<Quantiles>,
    /// From a handoff's first message to the first packet through the new cell.
    pub until_first_packet_s: Option<Quantiles>,
    /// From a crossing until the home agent's answer is at the mobile host.
    pub until_registered_s: Option<Quantiles>,
    /// How long messages around a handoff took ([`trace::metrics`]).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_s: Option<Quantiles>,
    /// TCP segments lost.
    pub lost: f64,
    /// Messages of mobility, beacons included, once for each hop.
    pub messages: f64,
    /// Bytes of those.
    pub message_bytes: f64,
}

impl HandoffCost {
    /// Over runs; `None` if none of them had a handoff.
    pub(crate) fn of(samples: &[Sample]) -> Option<HandoffCost> {
        let all = || samples.iter().filter_map(|sample| sample.measures.handoffs.as_ref());
        let total = |count: fn(&Handoffs) -> u64| all().map(count).sum::<u64>();
        let handoffs = total(|one| one.crossings);
        if handoffs == 0 {
            return None;
        }
        let each = |count| total(count) as f64 / handoffs as f64;
        let times = |of: fn(&Handoffs) -> &Vec<Duration>| {
            let seconds: Vec<f64> = all().flat_map(of).map(|time| time.as_secs_f64()).collect();
            Quantiles::of(&seconds)
        };
        let stalls = |of: fn(&Transfer) -> &Vec<Duration>| {
            let transfers = samples.iter().flat_map(|sample| &sample.measures.transfers);
            let seconds: Vec<f64> =
                transfers.flat_map(of).map(|stall| stall.as_secs_f64()).collect();
            Quantiles::of(&seconds)
        };
        Some(HandoffCost {
            handoffs,
            stall_s: stalls(|one| &one.stalls_after_handoff),
            receiver_stall_s: stalls(|one| &one.receiver_stalls_after_handoff),
            until_consistent_s: times(|one| &one.until_consistent),
            until_first_packet_s: times(|one| &one.until_first_packet),
            until_registered_s: times(|one| &one.until_registered),
            latency_s: stalls(|one| &one.latencies_around_handoff),
            lost: each(|one| one.lost),
            messages: each(|one| one.messages),
            message_bytes: each(|one| one.message_bytes),
        })
    }
}
