//! The home agent: who may register where, and the tunnel to there (RFC 5944, 3.8 and 4; MCAST-1,
//! MCAST-2).

use super::{Replay, end, high, identification, low};
use crate::binding::{Binding, Bindings};
use crate::clock::{Clock, Guard, NotTaken};
use crate::post::{self, v4};
use crate::refusal::{Refusal, Refusals};
use crate::tunnel::{self, Encapsulation, NotTunnelled, Tunnel};
use core::net::{Ipv4Addr, SocketAddrV4};
use sansio::{
    Deadline, DropReason, Duration, Engine, Input, Instant, Packet, PacketRef, Priority, Random,
    Side, Sink, Transport,
};
use std::collections::BTreeMap;
use wire::auth::Key;
use wire::mobile_ip::registration::{Code, Flags, Reply, Request};
use wire::mobile_ip::{Authenticator, Message, PORT};

/// Parameters of a home agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Its address.
    pub address: Ipv4Addr,
    /// The longest registration it gives, in seconds; 0xffff: for ever.
    pub lifetime_max_s: u16,
    /// Mobile hosts that may be away at the same time.
    pub bindings_max: usize,
    /// How replays are told.
    pub replay: Replay,
    /// How far a mobile host's clock may differ.
    pub tolerance: Duration,
    /// How datagrams are tunnelled.
    pub encapsulation: Encapsulation,
    /// The largest datagram on the way to the agents, in bytes.
    pub mtu_bytes: u32,
}

impl Config {
    /// A home agent at `address`: registrations up to 30 min, clocks within 7 s (RFC 5944, 5.7.1),
    /// IP in IP, Ethernet.
    pub fn new(address: Ipv4Addr) -> Self {
        Config {
            address,
            lifetime_max_s: 1_800,
            bindings_max: 100_000,
            replay: Replay::Timestamps,
            tolerance: Guard::TOLERANCE,
            encapsulation: Encapsulation::Ip,
            mtu_bytes: 1_500,
        }
    }
}

/// What the home agent keeps of each mobile host that is its own.
#[derive(Clone, Debug)]
struct Enrolled {
    key: Key,
    guard: Guard,
    /// What the next request has to begin with ([`Replay::Nonces`]).
    nonce: u32,
    /// Where to instead of a care-of address (MCAST-2).
    group: Option<Ipv4Addr>,
}

/// The engine. Its sides are the network ([`Side::NETWORK`]) and the home link
/// ([`HomeAgent::HOME`]), on which it stands for the mobile hosts that are away (MCAST-1).
#[derive(Clone, Debug)]
pub struct HomeAgent {
    config: Config,
    clock: Clock,
    random: Random,
    enrolled: BTreeMap<Ipv4Addr, Enrolled>,
    agents: BTreeMap<Ipv4Addr, Key>,
    bindings: Bindings,
    refusals: Refusals,
}

/// A request as it came, read but not proved.
struct Asked<'a> {
    request: Request,
    message: &'a [u8],
    from: SocketAddrV4,
}

impl HomeAgent {
    /// The side of the home link.
    pub const HOME: Side = Side(1);

    /// A home agent whose clock shows `clock`, and whose nonces come from `random`.
    pub fn new(config: Config, clock: Clock, random: Random) -> Self {
        HomeAgent {
            clock,
            random,
            enrolled: BTreeMap::new(),
            agents: BTreeMap::new(),
            bindings: Bindings::new(config.bindings_max),
            refusals: Refusals::default(),
            config,
        }
    }

    /// Makes a mobile host this agent's own. `group`: its packets go to this multicast group
    /// whenever it is away (MCAST-2).
    pub fn enroll(&mut self, mobile: Ipv4Addr, key: Key, group: Option<Ipv4Addr>) {
        let nonce = self.random.bits() as u32;
        self.enrolled.insert(mobile, Enrolled { key, guard: Guard::default(), nonce, group });
    }

    /// Shares a key with a foreign agent: what it relays has to be proved by that.
    pub fn trust(&mut self, agent: Ipv4Addr, key: Key) {
        self.agents.insert(agent, key);
    }

    /// A mobile host that was registered with this care-of address when the run began.
    pub fn begin(&mut self, mobile: Ipv4Addr, care_of: Ipv4Addr, now: Instant) {
        let group = self.enrolled.get(&mobile).and_then(|enrolled| enrolled.group);
        let binding = Binding {
            care_of: group.unwrap_or(care_of),
            encapsulation: self.config.encapsulation,
            until: end(self.config.lifetime_max_s, now),
        };
        if !self.bindings.set(mobile, binding) {
            debug_assert!(false, "room for all mobile hosts");
        }
    }

    /// Where the packets of a mobile host go now; `None`: it is at home, or not ours.
    pub fn binding(&self, mobile: Ipv4Addr, now: Instant) -> Option<&Binding> {
        self.bindings.get(mobile, now)
    }

    /// What was refused.
    pub fn refusals(&self) -> &Refusals {
        &self.refusals
    }

    fn on_message(&mut self, packet: &Packet, bytes: &[u8], sink: &mut impl Sink, now: Instant) {
        let Transport::Udp { source_port, .. } = packet.transport else { return };
        let Some(source) = v4(packet.ip.source) else { return };
        let Ok(Message::Request(request, extensions)) = Message::parse(bytes) else {
            return self.refusals.count(Refusal::Malformed, sink);
        };
        if extensions.not_understood().is_some() {
            return self.refusals.count(Refusal::Malformed, sink);
        }
        let from = SocketAddrV4::new(source, source_port);
        let asked = Asked { request, message: bytes, from };
        match self.judge(&asked, sink, now) {
            Ok(code) => self.reply(&asked, code, request.identification, sink, now),
            Err(None) => {}
            Err(Some((code, identification))) => {
                self.reply(&asked, code, identification, sink, now);
            }
        }
    }

    /// Decides on a request (RFC 5944, 3.8.2) and acts on it if it is good. A refusal has a code
    /// and the identification of its reply; nobody replies to a host that is not ours.
    fn judge(
        &mut self,
        asked: &Asked,
        sink: &mut impl Sink,
        now: Instant,
    ) -> Result<Code, Option<(Code, u64)>> {
        let request = &asked.request;
        let refused = |code| Err(Some((code, request.identification)));
        let Some(enrolled) = self.enrolled.get_mut(&request.home_address) else {
            self.refusals.count(Refusal::UnknownMobile, sink);
            return Err(None);
        };
        let Ok((_, extensions)) = Request::parse(asked.message) else { return Err(None) };
        if extensions.verify(Authenticator::MobileHome, &enrolled.key, asked.message).is_err() {
            self.refusals.count(Refusal::NotProved, sink);
            return refused(Code::HOME_MOBILE_FAILED_AUTHENTICATION);
        }
        if let Some(key) = self.agents.get(asked.from.ip())
            && extensions.verify(Authenticator::ForeignHome, key, asked.message).is_err()
        {
            self.refusals.count(Refusal::NotProved, sink);
            return refused(Code::HOME_FOREIGN_FAILED_AUTHENTICATION);
        }
        let own = self.clock.read(now);
        let is_again = self.config.replay == Replay::Timestamps
            && enrolled.guard.is_last(Clock::from_ntp(request.identification, own));
        if is_again {
            // Answered already; if that was lost, the next request has another identification.
            self.refusals.count(Refusal::Replayed, sink);
            return Err(None);
        }
        if let Err((reason, upper)) = check(enrolled, request, own, &self.config) {
            self.refusals.count(reason, sink);
            let answer = identification(upper, low(request.identification));
            return Err(Some((Code::HOME_IDENTIFICATION_MISMATCH, answer)));
        }
        if self.config.replay == Replay::Nonces {
            enrolled.nonce = self.random.bits() as u32;
        }
        if request.home_agent != self.config.address {
            return refused(Code::HOME_UNKNOWN_ADDRESS);
        }
        if request.flags.0 & (Flags::MINIMAL_ENCAPSULATION.0 | Flags::GRE.0) != 0 {
            return refused(Code::HOME_ENCAPSULATION);
        }
        self.bind(request, sink, now).map_or_else(refused, Ok)
    }

    /// Acts on a request that is proved and new.
    fn bind(
        &mut self,
        request: &Request,
        sink: &mut impl Sink,
        now: Instant,
    ) -> Result<Code, Code> {
        let mobile = request.home_address;
        if request.lifetime_s == 0 || request.care_of_address == mobile {
            self.bindings.remove(mobile);
            return Ok(Code::ACCEPTED);
        }
        let lifetime_s = request.lifetime_s.min(self.config.lifetime_max_s);
        let group = self.enrolled.get(&mobile).and_then(|enrolled| enrolled.group);
        let binding = Binding {
            care_of: group.unwrap_or(request.care_of_address),
            encapsulation: self.config.encapsulation,
            until: end(lifetime_s, now),
        };
        if !self.bindings.set(mobile, binding) {
            self.refusals.count(Refusal::Full, sink);
            return Err(Code::HOME_INSUFFICIENT_RESOURCES);
        }
        match request.flags.contains(Flags::SIMULTANEOUS_BINDINGS) {
            true => Ok(Code::ACCEPTED_ONE_BINDING),
            false => Ok(Code::ACCEPTED),
        }
    }

    fn reply(&mut self, asked: &Asked, code: Code, id: u64, sink: &mut impl Sink, now: Instant) {
        let request = &asked.request;
        let Some(enrolled) = self.enrolled.get(&request.home_address) else { return };
        let is_nonce =
            self.config.replay == Replay::Nonces && code != Code::HOME_MOBILE_FAILED_AUTHENTICATION;
        let id = if is_nonce { identification(enrolled.nonce, low(id)) } else { id };
        let reply = Reply {
            code,
            lifetime_s: request.lifetime_s.min(self.config.lifetime_max_s),
            home_address: request.home_address,
            home_agent: self.config.address,
            identification: id,
        };
        let mut bytes = Vec::with_capacity(128);
        reply.emit(&mut bytes);
        Authenticator::MobileHome.append(&enrolled.key, &mut bytes);
        if let Some(key) = self.agents.get(asked.from.ip()) {
            Authenticator::ForeignHome.append(key, &mut bytes);
        }
        let here = SocketAddrV4::new(self.config.address, PORT);
        let packet = post::udp(here, asked.from, bytes, sink);
        let _ = now;
        sink.send(Side::NETWORK, Priority::Normal, packet);
    }

    /// A datagram for somebody else: into the tunnel if it is for a mobile host that is away.
    fn forward(&mut self, packet: PacketRef, sink: &mut impl Sink, now: Instant) {
        let mobile = v4(packet.ip.destination);
        let Some(mobile) = mobile.filter(|mobile| self.enrolled.contains_key(mobile)) else {
            return sink.send(Side::NETWORK, Priority::Normal, packet);
        };
        let Some(binding) = self.bindings.get(mobile, now) else {
            return sink.send(Self::HOME, Priority::Normal, packet);
        };
        let tunnel = Tunnel {
            from: self.config.address,
            to: binding.care_of,
            encapsulation: binding.encapsulation,
            mtu_bytes: self.config.mtu_bytes,
        };
        match tunnel::enter(&packet, tunnel, sink) {
            Ok(outer) => sink.send(Side::NETWORK, Priority::Normal, outer),
            Err(why) => {
                self.refusals.count(reason_of(&why), sink);
                if let NotTunnelled::TooBig(Some(answer)) = why {
                    sink.send(Side::NETWORK, Priority::Normal, answer);
                }
                sink.discard(packet, DropReason::Rule("MOD-9"));
            }
        }
    }
}

/// Why a datagram did not enter a tunnel, as it is counted.
pub(crate) fn reason_of(why: &NotTunnelled) -> Refusal {
    match why {
        NotTunnelled::Loop | NotTunnelled::HopLimit => Refusal::Loop,
        NotTunnelled::TooBig(_) => Refusal::TooBig,
    }
}

/// True for a request that is new. Of another one, why it is refused, and what its reply's
/// identification begins with (RFC 5944, 5.7).
fn check(
    enrolled: &mut Enrolled,
    request: &Request,
    own: u64,
    config: &Config,
) -> Result<(), (Refusal, u32)> {
    match config.replay {
        Replay::Timestamps => {
            let sent_at = Clock::from_ntp(request.identification, own);
            let taken = enrolled.guard.take(sent_at, own, config.tolerance);
            taken.map_err(|why| {
                let reason = match why {
                    NotTaken::NotLater => Refusal::Replayed,
                    NotTaken::TooFar => Refusal::Clock,
                };
                (reason, high(Clock::to_ntp(own)))
            })
        }
        Replay::Nonces if high(request.identification) == enrolled.nonce => Ok(()),
        Replay::Nonces => Err((Refusal::Replayed, enrolled.nonce)),
    }
}

impl Engine for HomeAgent {
    fn handle(&mut self, input: Input, sink: &mut impl Sink, now: Instant) {
        match input {
            Input::Arrival { packet, .. }
                if v4(packet.ip.destination) == Some(self.config.address) =>
            {
                if tunnel::is_tunnel(&packet) {
                    // The end of a reverse tunnel (RFC 3024).
                    match tunnel::leave(&packet, sink) {
                        Some(inner) => self.forward(inner, sink, now),
                        None => self.refusals.count(Refusal::Malformed, sink),
                    }
                } else if let Some(bytes) = post::udp_to(&packet, PORT) {
                    self.on_message(&packet, &bytes, sink, now);
                }
                sink.discard(packet, DropReason::Consumed);
            }
            Input::Arrival { packet, .. } => self.forward(packet, sink, now),
            Input::Timer => while self.bindings.expire(now).is_some() {},
            _ => {}
        }
    }

    fn next_deadline(&self) -> Option<Deadline> {
        self.bindings.next_at().map(|at| Deadline { at, timer: "binding" })
    }
}
