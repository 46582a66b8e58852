//! What an operator may see of the flows that have state.

use super::Agent;
use super::aside::Reason;
use super::flow::Flow;
use super::mirror::Role;
use super::restart::Phase;
use super::uplink::Uplink;
use core::ops::Range;
use sansio::{Duration, FlowKey, Instant};

/// One direction of one connection, as it is now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowView {
    /// Four-tuple, as its data travels.
    pub key: FlowKey,
    /// Which way its data goes.
    pub heading: Heading,
    /// Since the agent first saw it.
    pub age: Duration,
    /// Since the last packet of either host.
    pub idle: Duration,
    /// What the agent is doing for it, in a few words.
    pub doing: &'static str,
    /// Why the agent leaves it alone, if it does.
    pub left_alone: Option<&'static str>,
    /// Unacknowledged segments in the cache.
    pub cached_segments: u32,
    /// Sequence numbers in them.
    pub cached_bytes: u32,
    /// Smoothed round trip over the last hop, if it was measured.
    pub round_trip: Option<Duration>,
    /// Shortest round trip to the fixed host, if it was measured.
    pub wired_round_trip: Option<Duration>,
}

/// Which way data goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heading {
    /// To the mobile host.
    Down,
    /// From the mobile host.
    Up,
}

impl Agent {
    /// The flows with state whose data goes this way, as far as they are in these places. A flow
    /// stays in its place; others have none.
    pub fn views(
        &self,
        heading: Heading,
        places: Range<usize>,
        now: Instant,
    ) -> impl Iterator<Item = FlowView> {
        let (down, up) = match heading {
            Heading::Down => (places, 0..0),
            Heading::Up => (0..0, places),
        };
        let down = part(&self.flows, down).iter().flatten().map(move |flow| of_flow(flow, now));
        let up = part(self.uplinks.places(), up).iter().flatten();
        down.chain(up.map(move |flow| of_uplink(flow, now)))
    }

    /// How many places there are for flows whose data goes this way.
    pub fn places(&self, heading: Heading) -> usize {
        match heading {
            Heading::Down => self.flows.len(),
            Heading::Up => self.uplinks.places().len(),
        }
    }

    /// True if the flow has state, in either direction of its data.
    pub fn knows(&self, key: &FlowKey) -> bool {
        self.index.get(key).is_some() || self.uplinks.knows(key)
    }
}

fn part<T>(all: &[T], places: Range<usize>) -> &[T] {
    let end = places.end.min(all.len());
    &all[places.start.min(end)..end]
}

fn of_flow(flow: &Flow, now: Instant) -> FlowView {
    let repairing = flow.episode_end.is_some() || flow.withheld_since.is_some();
    let is_indifferent = flow.disclosure.is_sender_indifferent();
    let reason = flow.aside.or(is_indifferent.then_some(Reason::Indifferent));
    let doing = match flow.phase {
        _ if flow.aside.is_some() => "left alone",
        _ if flow.role == Role::Buffers => "buffers: another base station forwards",
        _ if flow.is_away => "waits: the mobile host is out of reach",
        Phase::Steady if is_indifferent => "leaves losses to the sender",
        Phase::Steady if repairing => "repairs",
        Phase::Steady if flow.cache.is_empty() => "idle",
        Phase::Steady => "watches",
        Phase::Probing { .. } => "probes: the link may be gone",
        Phase::Waiting { .. } => "waits for the sender",
        Phase::Ramping { .. } => "restarts",
    };
    FlowView {
        key: flow.key,
        heading: Heading::Down,
        age: now.since(flow.began_at),
        idle: now.since(flow.active_at),
        doing,
        left_alone: reason.map(Reason::text),
        cached_segments: flow.cache.len() as u32,
        cached_bytes: flow.cache.bytes(),
        round_trip: flow.round_trip.is_known().then(|| flow.round_trip.smoothed()),
        wired_round_trip: flow.wired.shortest(),
    }
}

fn of_uplink(flow: &Uplink, now: Instant) -> FlowView {
    FlowView {
        key: flow.key,
        heading: Heading::Up,
        age: now.since(flow.began_at),
        idle: now.since(flow.active_at),
        doing: if flow.aside.is_some() { "left alone" } else { "watches" },
        left_alone: flow.aside.map(super::uplink::Reason::text),
        cached_segments: 0,
        cached_bytes: 0,
        round_trip: flow.air.shortest(),
        wired_round_trip: flow.wired.shortest(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snoop::Config;
    use sansio::Host;

    #[test]
    fn a_view_tells_what_is_known_of_a_flow() {
        let at = |secs| Instant::ZERO + Duration::from_secs(secs);
        let host = |port| Host { address: core::net::IpAddr::from([10, 0, 0, 1]), port };
        let key = FlowKey { source: host(80), destination: host(4_000) };
        let mut flow = Flow::new(key, wire::tcp::Seq(1), &Config::modern(), at(1));
        flow.active_at = at(3);
        let view = of_flow(&flow, at(5));
        assert_eq!((view.age, view.idle), (Duration::from_secs(4), Duration::from_secs(2)));
        assert_eq!((view.doing, view.left_alone, view.round_trip), ("idle", None, None));
        flow.is_away = true;
        assert_eq!(of_flow(&flow, at(5)).doing, "waits: the mobile host is out of reach");
        flow.aside = Some(super::super::aside::Reason::AcksElsewhere);
        let view = of_flow(&flow, at(5));
        assert_eq!(view.doing, "left alone");
        assert_eq!(view.left_alone, Some("no ACK of the mobile host passes here"));
    }
}
