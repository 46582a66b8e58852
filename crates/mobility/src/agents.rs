//! Agent discovery (RFC 5944, section 2): an agent advertises itself, a mobile host keeps a list of
//! agents and asks for those it will need (PRE-1 to PRE-7, LINK-4).
//!
//! Prefetch: a base station that is heard, too weak yet to hand over to, is asked for its
//! advertisement; so when layer 2 has changed the cell the registration can leave at once.

use crate::beacon::Heard;
use crate::post::{self, v4};
use core::net::Ipv4Addr;
use sansio::{Duration, Instant, Packet, Priority, Side, Sink};
use std::collections::BTreeMap;
use wire::checksum::Checksums;
use wire::icmp;
use wire::mobile_ip::advertisement::{
    self, ADVERTISEMENT, Advertisement, AgentFlags, CODE_MOBILE_ONLY, Extension, MobilityAgent,
    Router, SOLICITATION,
};

/// Parameters of an agent's advertisements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdvertiserConfig {
    /// Its address, which is its care-of address, too.
    pub address: Ipv4Addr,
    /// Bits of its network's prefix.
    pub prefix_bits: u8,
    /// Between advertisements (PAR-16).
    pub period: Duration,
    /// For how long one holds, in seconds.
    pub lifetime_s: u16,
    /// The longest registration, in seconds.
    pub registration_lifetime_s: u16,
    /// At least so long between two answers to solicitations (MOD-14; RFC 1812, 4.3.2.8).
    pub answer_gap: Duration,
}

impl AdvertiserConfig {
    /// A foreign agent at `address` that advertises each second (PAR-16).
    pub fn new(address: Ipv4Addr) -> Self {
        AdvertiserConfig {
            address,
            prefix_bits: 24,
            period: Duration::from_secs(1),
            lifetime_s: 3_600,
            registration_lifetime_s: 300,
            answer_gap: Duration::from_millis(10),
        }
    }
}

/// Advertises one foreign agent on [`Side::RADIO`].
#[derive(Clone, Debug)]
pub struct Advertiser {
    config: AdvertiserConfig,
    sequence: u16,
    next_at: Instant,
    answer_at: Instant,
    is_busy: bool,
}

impl Advertiser {
    /// The first advertisement leaves at `first_at`.
    pub fn new(config: AdvertiserConfig, first_at: Instant) -> Self {
        let answer_at = Instant::ZERO;
        Advertiser { config, sequence: 0, next_at: first_at, answer_at, is_busy: false }
    }

    /// Whether the agent takes no more registrations.
    pub fn set_busy(&mut self, is_busy: bool) {
        self.is_busy = is_busy;
    }

    /// When [`Advertiser::on_timer`] is due.
    pub fn next_at(&self) -> Instant {
        self.next_at
    }

    /// Advertises to all if it is time.
    pub fn on_timer(&mut self, sink: &mut impl Sink, now: Instant) {
        if now >= self.next_at {
            self.next_at = now + self.config.period;
            self.advertise(Ipv4Addr::BROADCAST, sink);
        }
    }

    /// Advertises to all now, beside what is due.
    pub fn send(&mut self, sink: &mut impl Sink) {
        self.advertise(Ipv4Addr::BROADCAST, sink);
    }

    /// Answers a solicitation (PRE-2), to its sender alone. True if the packet was one.
    pub fn on_packet(&mut self, packet: &Packet, sink: &mut impl Sink, now: Instant) -> bool {
        let Some(bytes) = post::icmp_in(packet) else { return false };
        let Ok(message) = icmp::Message::parse(&packet.ip, &bytes, Checksums::Verify) else {
            return false;
        };
        if !advertisement::is_solicitation(&message) {
            return false;
        }
        if now >= self.answer_at
            && let Some(source) = v4(packet.ip.source)
        {
            self.answer_at = now + self.config.answer_gap;
            self.advertise(source, sink);
        }
        true
    }

    fn advertise(&mut self, to: Ipv4Addr, sink: &mut impl Sink) {
        let foreign = AgentFlags::FOREIGN_AGENT.with(AgentFlags::REGISTRATION_REQUIRED);
        let agent = MobilityAgent {
            sequence: self.sequence,
            registration_lifetime_s: self.config.registration_lifetime_s,
            flags: if self.is_busy { foreign.with(AgentFlags::BUSY) } else { foreign },
            care_of: &[self.config.address.octets()],
        };
        // RFC 5944, 2.3.2: below 256 only after a restart.
        self.sequence = self.sequence.checked_add(1).unwrap_or(256);
        let router = Router { address: self.config.address, preference: 0 };
        let lengths = [self.config.prefix_bits];
        let extensions = [Extension::MobilityAgent(agent), Extension::PrefixLengths(&lengths)];
        let Ok(body) = advertisement::body(self.config.lifetime_s, &[router], &extensions) else {
            return;
        };
        let ends = (self.config.address, to);
        let packet = post::icmp(ends, (ADVERTISEMENT, CODE_MOBILE_ONLY), &body, sink);
        sink.send(Side::RADIO, Priority::Normal, packet);
    }
}

/// An agent in the list (PRE-3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Agent {
    /// Its address, by which its base station's beacons are known, too.
    pub address: Ipv4Addr,
    /// Its care-of address.
    pub care_of: Ipv4Addr,
    /// When it was heard last.
    pub received_at: Instant,
    /// Until when it stays in the list.
    pub until: Instant,
    /// The longest registration it gives, in seconds.
    pub registration_lifetime_s: u16,
    /// It takes no more registrations.
    pub is_busy: bool,
    /// Counts its advertisements.
    pub sequence: u16,
}

/// Parameters of the list of agents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListConfig {
    /// Agents of base stations stronger than this are asked for, in tenths of a decibel; `None`:
    /// nobody is asked, advertisements are waited for (PRE-7).
    pub solicit_above_decibels_10: Option<i16>,
    /// An agent that is in the list is registered through at once (LINK-4). Otherwise its next
    /// advertisement is waited for in each cell anew, as Mobile IP alone does (PRE-7).
    pub uses_known: bool,
    /// Between two solicitations of the same agent (PRE-2).
    pub retry: Duration,
    /// Solicitations of one agent without an answer, at most.
    pub solicitations_max: u32,
    /// Agents in the list, and base stations asked, at most.
    pub agents_max: usize,
}

impl ListConfig {
    /// Asks from 3 dB on (PAR-14), once per second, five times.
    pub const fn prefetch() -> Self {
        ListConfig {
            solicit_above_decibels_10: Some(30),
            uses_known: true,
            retry: Duration::from_secs(1),
            solicitations_max: 5,
            agents_max: 64,
        }
    }

    /// Asks nobody, and remembers whom it has heard: where greetings say that a cell has changed,
    /// registrations only follow.
    pub const fn remember() -> Self {
        ListConfig { solicit_above_decibels_10: None, ..Self::prefetch() }
    }

    /// Asks nobody, and waits for an advertisement in each cell (PRE-7).
    pub const fn wait() -> Self {
        ListConfig { uses_known: false, ..Self::remember() }
    }
}

/// The agents that one mobile host knows.
#[derive(Clone, Debug)]
pub struct AgentList {
    config: ListConfig,
    home_address: Ipv4Addr,
    agents: BTreeMap<Ipv4Addr, Agent>,
    /// How often a base station was asked, and when next.
    asked: BTreeMap<Ipv4Addr, (u32, Instant)>,
}

impl AgentList {
    /// Knows nobody.
    pub fn new(home_address: Ipv4Addr, config: ListConfig) -> Self {
        AgentList { config, home_address, agents: BTreeMap::new(), asked: BTreeMap::new() }
    }

    /// The agent of a base station, if it is in the list (LINK-4).
    pub fn agent_of(&self, station: Ipv4Addr, now: Instant) -> Option<&Agent> {
        self.agents.get(&station).filter(|agent| now < agent.until)
    }

    /// The agent through which to register in a cell that was entered at `since`: as it is in the
    /// list, or only if it was heard since then (PRE-7).
    pub fn agent_to_use(&self, station: Ipv4Addr, since: Instant, now: Instant) -> Option<&Agent> {
        let is_new = |agent: &&Agent| self.config.uses_known || agent.received_at >= since;
        self.agent_of(station, now).filter(is_new)
    }

    /// Asks for the agent of a base station whose cell was entered before it was known, whatever
    /// its signal; nobody if nobody is to be asked.
    pub fn on_entered(&mut self, station: Ipv4Addr, sink: &mut impl Sink, now: Instant) -> bool {
        self.config.solicit_above_decibels_10.is_some() && self.solicit(station, sink, now)
    }

    /// An agent that was known when the run began, with this longest registration in seconds.
    pub fn begin(&mut self, address: Ipv4Addr, registration_lifetime_s: u16, now: Instant) {
        let until = now + Duration::from_secs(AdvertiserConfig::new(address).lifetime_s.into());
        let agent = Agent {
            address,
            care_of: address,
            received_at: now,
            until,
            registration_lifetime_s,
            is_busy: false,
            sequence: 0,
        };
        self.agents.insert(address, agent);
    }

    /// A beacon was heard: asks its base station for the agent if that is not in the list and the
    /// beacon is strong enough (PRE-2). True if a solicitation left.
    pub fn on_beacon(&mut self, heard: &Heard, sink: &mut impl Sink, now: Instant) -> bool {
        let above = self.config.solicit_above_decibels_10;
        if above.is_none_or(|above| heard.decibels_10 <= above) {
            return false;
        }
        self.solicit(heard.address, sink, now)
    }

    /// Asks a base station for its agent unless that is in the list, or was asked for just now or
    /// too often.
    pub fn solicit(&mut self, station: Ipv4Addr, sink: &mut impl Sink, now: Instant) -> bool {
        self.purge(now);
        if self.agents.contains_key(&station) {
            return false;
        }
        let (times, next_at) = self.asked.get(&station).copied().unwrap_or((0, now));
        let is_full = self.asked.len() >= self.config.agents_max && times == 0;
        if now < next_at || times >= self.config.solicitations_max || is_full {
            return false;
        }
        self.asked.insert(station, (times + 1, now + self.config.retry));
        let body = &advertisement::SOLICITATION_BODY;
        let packet = post::icmp((self.home_address, station), (SOLICITATION, 0), body, sink);
        sink.send(Side::NETWORK, Priority::Normal, packet);
        true
    }

    /// Forgets how often a base station was asked: it has been out of reach.
    pub fn forget_asked(&mut self, station: Ipv4Addr) {
        self.asked.remove(&station);
    }

    /// Takes an advertisement into the list; says of whom. One that is no foreign agent's, or that
    /// does not come from the agent itself, is nothing.
    pub fn on_packet(&mut self, packet: &Packet, now: Instant) -> Option<Ipv4Addr> {
        let bytes = post::icmp_in(packet)?;
        let message = icmp::Message::parse(&packet.ip, &bytes, Checksums::Verify).ok()?;
        let read = Advertisement::parse(&message).ok()?;
        let agent = read.agent()?;
        let address = v4(packet.ip.source)?;
        let care_of = Ipv4Addr::from(*agent.care_of.first()?);
        if !agent.flags.contains(AgentFlags::FOREIGN_AGENT) {
            return None;
        }
        self.purge(now);
        if self.agents.len() >= self.config.agents_max && !self.agents.contains_key(&address) {
            let oldest = self.agents.values().min_by_key(|agent| agent.received_at)?.address;
            self.agents.remove(&oldest);
        }
        self.asked.remove(&address);
        let entry = Agent {
            address,
            care_of,
            received_at: now,
            until: now + Duration::from_secs(read.lifetime_s.into()),
            registration_lifetime_s: agent.registration_lifetime_s,
            is_busy: agent.flags.contains(AgentFlags::BUSY),
            sequence: agent.sequence,
        };
        self.agents.insert(address, entry);
        Some(address)
    }

    /// Drops those whose lifetime is over (PRE-4).
    fn purge(&mut self, now: Instant) {
        self.agents.retain(|_, agent| now < agent.until);
    }
}
