//! What the flows of one mobile host tell of each other (*modern*; ours, not the paper's).
//!
//! An outage takes the mobile host, not one of its flows. So silence of a flow whose host answers
//! others is none: its ACK waits behind their data, or its last segment is lost. And the first
//! packet of a host that was silent ends the silence of all its flows, of which each sends few
//! probes if all together may use no more than a share of the air.
//!
//! Nothing here is touched for each packet: the flows of a host form a ring, and who wants to know
//! goes round it.

use super::flow::Flow;
use super::mirror::Role;
use super::{Agent, Fate, restart};
use sansio::{Duration, FlowIndex, FlowKey, Host, Instant, Sink};
use std::net::{IpAddr, Ipv4Addr};

/// The mobile hosts with flows.
#[derive(Clone, Debug)]
pub(super) struct Hosts {
    /// By address.
    index: FlowIndex,
    hosts: Vec<MobileHost>,
    free: Vec<u32>,
    /// By the flow's slot.
    places: Vec<Place>,
    /// How many of them are silent: out of reach, or with a flow that began to probe since the host
    /// was heard.
    silent: u32,
    /// The radio is down, since then.
    down_since: Option<Instant>,
}

#[derive(Clone, Copy, Debug)]
struct MobileHost {
    /// The slot of one of its flows; [`NOBODY`] if the place is free.
    first: u32,
    is_silent: bool,
    /// A notice said that it is out of reach, then.
    away_since: Option<Instant>,
}

/// A flow's place in the ring of its host's flows: their slots.
#[derive(Clone, Copy, Debug)]
struct Place {
    host: u32,
    previous: u32,
    next: u32,
}

const NOBODY: u32 = u32::MAX;
/// Other flows that are asked at most.
const ASKED_MAX: usize = 64;

impl Hosts {
    pub(super) fn with_key(key: u64) -> Self {
        Hosts {
            index: FlowIndex::new(key),
            hosts: Vec::new(),
            free: Vec::new(),
            places: Vec::new(),
            silent: 0,
            down_since: None,
        }
    }

    /// The flow at `slot` joins the others of its host. True if that is known to be out of reach.
    pub(super) fn join(&mut self, slot: u32, address: IpAddr) -> bool {
        let address = by_address(address);
        let place = match self.index.get(&address) {
            Some(host) => {
                let previous = self.hosts[host as usize].first;
                Place { host, previous, next: self.places[previous as usize].next }
            }
            None => {
                let away_since = self.down_since;
                let is_silent = away_since.is_some();
                self.silent += u32::from(is_silent);
                let new = MobileHost { first: slot, is_silent, away_since };
                let host = self.free.pop().unwrap_or(self.hosts.len() as u32);
                match self.hosts.get_mut(host as usize) {
                    Some(place) => *place = new,
                    None => self.hosts.push(new),
                }
                self.index.insert(address, host);
                Place { host, previous: slot, next: slot }
            }
        };
        match self.places.get_mut(slot as usize) {
            Some(at) => *at = place,
            // Slots are given out one after the other.
            None => self.places.push(place),
        }
        self.places[place.previous as usize].next = slot;
        self.places[place.next as usize].previous = slot;
        self.hosts[place.host as usize].away_since.is_some()
    }

    /// The flow at `slot` is forgotten; its host has this address.
    pub(super) fn leave(&mut self, slot: u32, address: IpAddr) {
        let Place { host, previous, next } = self.places[slot as usize];
        let of = &mut self.hosts[host as usize];
        if next != slot {
            of.first = next;
            self.places[previous as usize].next = next;
            self.places[next as usize].previous = previous;
            return;
        }
        self.silent -= u32::from(core::mem::take(&mut of.is_silent));
        of.first = NOBODY;
        self.index.remove(&by_address(address));
        self.free.push(host);
    }

    pub(super) fn clear(&mut self) {
        self.index.clear();
        self.hosts.clear();
        self.free.clear();
        self.places.clear();
        (self.silent, self.down_since) = (0, None);
    }

    /// True if a host may have been silent.
    #[inline]
    pub(super) fn any_silent(&self) -> bool {
        self.silent > 0
    }

    /// The flow at `slot` begins to probe.
    pub(super) fn on_probing(&mut self, slot: u32) {
        let of = &mut self.hosts[self.places[slot as usize].host as usize];
        self.silent += u32::from(!core::mem::replace(&mut of.is_silent, true));
    }

    /// A packet of this host came: the slots of its flows, if it was silent before. If it was out
    /// of reach, this is no news before `not_before` has passed since then.
    fn on_heard(&mut self, address: IpAddr, not_before: Duration, now: Instant) -> Vec<u32> {
        let Some(host) = self.index.get(&by_address(address)) else { return Vec::new() };
        let of = &mut self.hosts[host as usize];
        let is_late = of.away_since.is_some_and(|since| now.since(since) < not_before);
        if is_late || !core::mem::take(&mut of.is_silent) {
            return Vec::new();
        }
        of.away_since = None;
        self.silent -= 1;
        self.flows_of(host)
    }

    /// A notice: this host is out of reach, or back. The slots of its flows.
    pub(super) fn set_away(&mut self, address: IpAddr, since: Option<Instant>) -> Vec<u32> {
        let Some(host) = self.index.get(&by_address(address)) else { return Vec::new() };
        self.set(host, since);
        self.flows_of(host)
    }

    /// The slots of a host's flows.
    pub(super) fn slots_of(&self, address: IpAddr) -> Vec<u32> {
        let host = self.index.get(&by_address(address));
        host.map_or_else(Vec::new, |host| self.flows_of(host))
    }

    /// A notice: all are, and who is yet to come, too. The slots of all flows.
    pub(super) fn set_all_away(&mut self, since: Option<Instant>) -> Vec<u32> {
        self.down_since = since;
        let mut slots = Vec::new();
        for host in 0..self.hosts.len() as u32 {
            if self.hosts[host as usize].first != NOBODY {
                self.set(host, since);
                slots.extend(self.flows_of(host));
            }
        }
        slots.sort_unstable();
        slots
    }

    fn set(&mut self, host: u32, since: Option<Instant>) {
        let of = &mut self.hosts[host as usize];
        of.away_since = since;
        let was_silent = core::mem::replace(&mut of.is_silent, since.is_some());
        self.silent += u32::from(of.is_silent);
        self.silent -= u32::from(was_silent);
    }

    /// The slots of all flows of a host.
    fn flows_of(&self, host: u32) -> Vec<u32> {
        let first = self.hosts[host as usize].first;
        core::iter::once(first).chain(self.others(first)).collect()
    }

    /// How long segments of the host's other flows take to be answered, the longest, if the host
    /// was heard on one of them since `since`.
    pub(super) fn answers_others_within(
        &self,
        slot: u32,
        flows: &[Option<Flow>],
        since: Instant,
    ) -> Option<Duration> {
        self.others(slot)
            .take(ASKED_MAX)
            .filter_map(|slot| flows[slot as usize].as_ref())
            .filter(|flow| flow.mobile_at >= since && flow.round_trip.is_known())
            .map(|flow| flow.round_trip.answered_within())
            .max()
    }

    /// The slots of the other flows of the same host.
    fn others(&self, slot: u32) -> impl Iterator<Item = u32> {
        let next = move |at: &u32| Some(self.places[*at as usize].next);
        core::iter::successors(next(&slot), next).take_while(move |at| *at != slot)
    }
}

impl Agent {
    /// The host is heard: no flow of it goes on probing.
    #[cold]
    pub(super) fn on_host_heard(&mut self, address: IpAddr, sink: &mut impl Sink, now: Instant) {
        let under_way = restart::still_under_way(&self.config);
        for slot in self.hosts.on_heard(address, under_way, now) {
            self.with_flow(slot, sink, |flow, context| {
                flow.is_away = false;
                restart::on_mobile_heard(flow, context, now);
                Fate::Keep
            });
        }
        let context = (&*self.config, &mut self.shared, &mut *sink);
        self.uplinks.on_host_back(address, context, now);
    }

    /// The link is probably back, for flows on which nothing was heard.
    pub(super) fn on_hint(&mut self, sink: &mut impl Sink, now: Instant) {
        for slot in 0..self.flows.len() as u32 {
            self.with_flow(slot, sink, |flow, context| {
                if flow.role != Role::Buffers {
                    restart::on_hint(flow, context, now);
                }
                Fate::Keep
            });
        }
    }

    /// A flow is silent. That of a host that answers others waits for as long as they do.
    #[cold]
    pub(super) fn on_silence(&mut self, slot: u32, sink: &mut impl Sink, now: Instant) {
        let since = now - self.config.persist;
        let others = self.hosts.answers_others_within(slot, &self.flows, since);
        self.with_flow(slot, sink, |flow, context| {
            restart::on_silence(flow, others, context, now);
            Fate::Keep
        });
        let flow = self.flows.get(slot as usize).and_then(Option::as_ref);
        if flow.is_some_and(|flow| flow.phase.is_probing()) {
            self.hosts.on_probing(slot);
        }
    }
}

/// A key for the address alone.
fn by_address(address: IpAddr) -> FlowKey {
    let nobody = Host { address: IpAddr::V4(Ipv4Addr::UNSPECIFIED), port: 0 };
    FlowKey { source: nobody, destination: Host { address, port: 0 } }
}

#[cfg(test)]
mod tests {
    use super::super::config::Config;
    use super::*;
    use wire::tcp::Seq;

    fn address(host: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, host])
    }

    fn heard(hosts: &mut Hosts, host: u8) -> Vec<u32> {
        hosts.on_heard(address(host), Duration::ZERO, Instant::ZERO)
    }

    /// Flows of two hosts, which take turns.
    fn two_hosts(count: u32) -> Hosts {
        let mut hosts = Hosts::with_key(1);
        for slot in 0..count {
            hosts.join(slot, address((slot % 2) as u8));
        }
        hosts
    }

    #[test]
    fn restart_the_first_packet_of_a_silent_host_wakes_its_flows_once_and_nobody_elses() {
        let mut hosts = two_hosts(7);
        assert!(!hosts.any_silent());
        for slot in [2, 4] {
            hosts.on_probing(slot);
        }
        assert!(heard(&mut hosts, 1).is_empty());
        assert!(heard(&mut hosts, 9).is_empty(), "a stranger");
        hosts.leave(0, address(0));
        assert!(hosts.any_silent());
        let mut woken = heard(&mut hosts, 0);
        woken.sort_unstable();
        assert_eq!(woken, [2, 4, 6]);
        assert!(!hosts.any_silent());
        assert!(heard(&mut hosts, 0).is_empty());
    }

    #[test]
    fn a_host_whose_last_flow_left_is_forgotten_and_may_come_back() {
        let mut hosts = two_hosts(4);
        hosts.on_probing(1);
        for slot in [1, 3] {
            hosts.leave(slot, address(1));
        }
        assert!(!hosts.any_silent(), "nobody is left who could answer");
        hosts.join(3, address(7));
        hosts.on_probing(3);
        assert_eq!(heard(&mut hosts, 7), [3]);
        assert_eq!(hosts.hosts.len(), 2, "places are used again");
    }

    #[test]
    fn restart_a_host_out_of_reach_is_back_with_a_notice_or_its_first_packet_sent_since() {
        let mut hosts = two_hosts(4);
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        assert_eq!(hosts.set_away(address(0), Some(at(0))), [0, 2]);
        assert!(hosts.join(4, address(0)), "a new flow of it");
        assert!(!hosts.join(5, address(1)));
        let until = Duration::from_millis(100);
        assert!(hosts.on_heard(address(0), until, at(99)).is_empty(), "sent before");
        assert_eq!(hosts.on_heard(address(0), until, at(100)).len(), 3);
        assert!(!hosts.any_silent());
        assert_eq!(hosts.set_all_away(Some(at(200))), [0, 1, 2, 3, 4, 5]);
        assert!(hosts.join(6, address(9)), "nobody is in reach");
        assert_eq!(hosts.set_all_away(None), [0, 1, 2, 3, 4, 5, 6]);
        assert!(!hosts.any_silent());
    }

    #[test]
    fn restart_a_host_answers_if_another_flow_was_heard_since() {
        let hosts = two_hosts(4);
        let end = |port| Host { address: address(200), port };
        let key = FlowKey { source: end(80), destination: end(81) };
        let flow = Flow::new(key, Seq(0), &Config::modern(), Instant::ZERO);
        let mut flows = vec![Some(flow); 4];
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        let other = flows[2].as_mut().expect("a flow");
        other.round_trip.sample(Duration::from_millis(40), at(50));
        other.mobile_at = at(50);
        let within = other.round_trip.answered_within();
        assert_eq!(hosts.answers_others_within(0, &flows, at(50)), Some(within));
        assert_eq!(hosts.answers_others_within(0, &flows, at(51)), None);
        assert_eq!(hosts.answers_others_within(2, &flows, at(50)), None, "not by itself");
        assert_eq!(hosts.answers_others_within(1, &flows, at(0)), None, "another host");
    }
}
