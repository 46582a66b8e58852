//! Mobile IPv4 registration (BASE-12): drills of mobile host, foreign agent and home agent.

#[path = "../common.rs"]
mod common;
mod previous_agent;

use common::{
    FIXED, HOME_AGENT, Outbox, at_ms, bytes_of, clock, datagram, key, keys, mobile, random,
    station, with_bytes,
};
use core::net::{IpAddr, Ipv4Addr};
use mobility::clock::Clock;
use mobility::refusal::Refusal;
use mobility::registration::mobile::{Config as MobileConfig, Outcome, Previous, Registrar, Via};
use mobility::registration::{Replay, foreign, home};
use mobility::tunnel;
use proptest::prelude::*;
use sansio::{Engine, Input, Instant, PacketRef, Side};
use wire::auth::{Algorithm, Key};
use wire::mobile_ip::registration::{Code, Flags, Reply, Request};
use wire::mobile_ip::{Authenticator, Message};

/// A home agent, foreign agents 1 and 2, and mobile host 1.
struct World {
    outbox: Outbox,
    home: home::HomeAgent,
    agents: [foreign::Relay; 2],
    registrar: Registrar,
}

fn between(agent: u8) -> Key {
    Key::new(2_000, Algorithm::HmacMd5, &[agent; 16]).expect("a valid key")
}

impl World {
    fn new(replay: Replay) -> Self {
        Self::with(replay, clock(), |_| {})
    }

    fn with(replay: Replay, mobile_clock: Clock, change: impl Fn(&mut foreign::Config)) -> Self {
        let config = home::Config { replay, ..home::Config::new(HOME_AGENT) };
        let mut home = home::HomeAgent::new(config, clock(), random("home agent"));
        for number in 1..=2 {
            home.enroll(mobile(number), key(number), None);
        }
        let agents = [1, 2].map(|number| {
            home.trust(station(number), between(number));
            let mut config = foreign::Config::new(station(number));
            change(&mut config);
            let mut relay = foreign::Relay::new(config, keys(2), clock());
            relay.trust(HOME_AGENT, between(number));
            relay
        });
        let config = MobileConfig { replay, ..MobileConfig::new(mobile(1), HOME_AGENT, key(1)) };
        let registrar = Registrar::new(config, mobile_clock, random("mobile host"));
        World { outbox: Outbox::new(), home, agents, registrar }
    }

    fn via(&self, agent: u8) -> Via {
        Via {
            agent: station(agent),
            care_of: station(agent),
            lifetime_max_s: 300,
            key: Some(key(1)),
        }
    }

    /// The mobile host asks through an agent; returns the request.
    fn ask(&mut self, agent: u8, previous: Option<u8>, now: Instant) -> PacketRef {
        let previous = previous.map(|agent| Previous {
            agent: station(agent),
            key: mobility::key_with(station(agent), &key(1)),
        });
        let via = self.via(agent);
        self.registrar.register(via, previous, &mut self.outbox, now);
        self.outbox.only(Side::NETWORK)
    }

    /// Agent and home agent do their part; returns what the agent sends on the radio, and what to
    /// other agents.
    fn relay(
        &mut self,
        agent: u8,
        request: &PacketRef,
        now: Instant,
    ) -> (Vec<PacketRef>, Vec<PacketRef>) {
        let relay = &mut self.agents[usize::from(agent) - 1];
        relay.on_packet(Side::RADIO, request, &mut self.outbox, now);
        let (mut radio, mut others) = (vec![], vec![]);
        let mut under_way = self.outbox.take();
        while let Some((side, packet)) = under_way.pop() {
            if side == Side::RADIO {
                radio.push(packet);
            } else if packet.ip.destination == IpAddr::V4(HOME_AGENT) {
                let arrival = Input::Arrival { side: Side::NETWORK, packet };
                self.home.handle(arrival, &mut self.outbox, now);
            } else if packet.ip.destination == IpAddr::V4(station(agent)) {
                let relay = &mut self.agents[usize::from(agent) - 1];
                relay.on_packet(Side::WIRED, &packet, &mut self.outbox, now);
            } else {
                others.push(packet);
            }
            under_way.extend(self.outbox.take());
        }
        (radio, others)
    }

    /// The whole exchange; what the mobile host learns.
    fn register(&mut self, agent: u8, previous: Option<u8>, now: Instant) -> Option<Outcome> {
        let mut request = self.ask(agent, previous, now);
        for _ in 0..4 {
            let (replies, _) = self.relay(agent, &request, now);
            for reply in replies {
                let outcome = self.registrar.on_packet(&reply, &mut self.outbox, now);
                if outcome.is_some() {
                    return outcome;
                }
            }
            match self.outbox.take().pop() {
                Some((_, again)) => request = again,
                None => return None,
            }
        }
        None
    }

    fn care_of(&self, now: Instant) -> Option<Ipv4Addr> {
        self.home.binding(mobile(1), now).map(|binding| binding.care_of)
    }
}

#[test]
fn base_12_a_registration_makes_the_home_agent_tunnel() {
    let mut world = World::new(Replay::Timestamps);
    assert_eq!(world.register(1, None, at_ms(0)), Some(Outcome::Accepted));
    assert_eq!(world.care_of(at_ms(0)), Some(station(1)));
    assert!(world.agents[0].has(mobile(1), at_ms(0)));
    let packet = datagram((FIXED, mobile(1)), 1, 100, &mut world.outbox);
    let arrival = Input::Arrival { side: Side::NETWORK, packet };
    world.home.handle(arrival, &mut world.outbox, at_ms(1));
    let outer = world.outbox.only(Side::NETWORK);
    assert_eq!(outer.ip.destination, IpAddr::V4(station(1)));
    let inner = tunnel::leave(&outer, &mut world.outbox).expect("a tunnel");
    assert_eq!(inner.ip.destination, IpAddr::V4(mobile(1)));
    // Another mobile host of ours is at home, and who is not ours is only passed on.
    for (to, side) in [(mobile(2), home::HomeAgent::HOME), (FIXED, Side::NETWORK)] {
        let packet = datagram((station(9), to), 1, 100, &mut world.outbox);
        let arrival = Input::Arrival { side: Side::NETWORK, packet };
        world.home.handle(arrival, &mut world.outbox, at_ms(1));
        assert_eq!(world.outbox.only(side).ip.destination, IpAddr::V4(to));
    }
}

#[test]
fn a_binding_ends_with_its_lifetime_and_not_before() {
    let mut world = World::new(Replay::Timestamps);
    world.register(1, None, at_ms(0));
    let end = at_ms(300_000);
    let before = Instant::from_nanos(end.as_nanos() - 1);
    assert_eq!(world.care_of(before), Some(station(1)));
    assert_eq!(world.care_of(end), None);
    assert_eq!(world.home.next_deadline().map(|deadline| deadline.at), Some(end));
    world.home.handle(Input::Timer, &mut world.outbox, end);
    assert_eq!(world.home.next_deadline(), None);
    assert!(world.agents[0].has(mobile(1), before) && !world.agents[0].has(mobile(1), end));
}

#[test]
fn a_registration_is_renewed_when_three_quarters_are_over() {
    let mut world = World::new(Replay::Timestamps);
    world.register(1, None, at_ms(0));
    assert_eq!(world.registrar.next_at(), Some(at_ms(225_000)));
    world.registrar.on_timer(&mut world.outbox, at_ms(225_000));
    let request = world.outbox.only(Side::NETWORK);
    let (replies, _) = world.relay(1, &request, at_ms(225_000));
    let outcome = world.registrar.on_packet(&replies[0], &mut world.outbox, at_ms(225_000));
    assert_eq!(outcome, Some(Outcome::Accepted));
    assert_eq!(world.care_of(at_ms(524_999)), Some(station(1)));
}

#[test]
fn a_question_is_repeated_ever_more_slowly_and_then_given_up() {
    let mut world = World::new(Replay::Timestamps);
    let mut identifications = vec![bytes_of(&world.ask(1, None, at_ms(0)))[16..24].to_vec()];
    let mut waits = vec![];
    let mut now = at_ms(0);
    loop {
        let due = world.registrar.next_at().expect("a question is open");
        let early = Instant::from_nanos(due.as_nanos() - 1);
        assert_eq!(world.registrar.on_timer(&mut world.outbox, early), None);
        assert!(world.outbox.sent.is_empty(), "nothing a nanosecond early");
        waits.push(due.since(now).as_millis());
        now = due;
        if let Some(outcome) = world.registrar.on_timer(&mut world.outbox, now) {
            assert_eq!(outcome, Outcome::GivenUp);
            break;
        }
        identifications.push(bytes_of(&world.outbox.only(Side::NETWORK))[16..24].to_vec());
    }
    assert_eq!(waits, [1_000, 2_000, 4_000, 8_000, 16_000, 16_000]);
    assert!(!world.registrar.is_asking() && world.registrar.next_at().is_none());
    // RFC 5944, 3.6.3: each with an identification of its own, and later than the one before.
    assert!(identifications.is_sorted() && identifications.windows(2).all(|two| two[0] != two[1]));
}

#[test]
fn a_clock_that_is_an_hour_off_is_set_by_the_home_agent() {
    for zero in [1_700_003_600_000_000_000, 1_699_996_400_000_000_000] {
        let mut world = World::with(Replay::Timestamps, Clock::new(zero), |_| {});
        assert_eq!(world.register(1, None, at_ms(0)), Some(Outcome::Accepted));
        assert_eq!(world.home.refusals().of(Refusal::Clock), 1);
        // From then on at once.
        assert_eq!(world.register(1, None, at_ms(10_000)), Some(Outcome::Accepted));
        assert_eq!(world.home.refusals().total(), 1);
    }
}

#[test]
fn with_nonces_the_first_request_learns_the_number_and_a_replay_has_no_effect() {
    let mut world = World::new(Replay::Nonces);
    assert_eq!(world.register(1, None, at_ms(0)), Some(Outcome::Accepted));
    assert_eq!(world.home.refusals().of(Refusal::Replayed), 1, "the first one knew no number");
    let request = world.ask(1, None, at_ms(1_000));
    let mut reached = vec![];
    world.agents[0].on_packet(Side::RADIO, &request, &mut world.outbox, at_ms(1_000));
    for (_, packet) in world.outbox.take() {
        let arrival = Input::Arrival { side: Side::NETWORK, packet: packet.clone() };
        world.home.handle(arrival, &mut world.outbox, at_ms(1_000));
        reached.push(packet);
    }
    assert_eq!(world.home.refusals().of(Refusal::Replayed), 1);
    for packet in reached {
        let arrival = Input::Arrival { side: Side::NETWORK, packet };
        world.home.handle(arrival, &mut world.outbox, at_ms(2_000));
    }
    assert_eq!(world.home.refusals().of(Refusal::Replayed), 2);
}

#[test]
fn a_deregistration_takes_the_binding_away() {
    let mut world = World::new(Replay::Timestamps);
    world.register(1, None, at_ms(0));
    let via = world.via(1);
    world.registrar.deregister(via, &mut world.outbox, at_ms(1_000));
    let request = world.outbox.only(Side::NETWORK);
    let (replies, _) = world.relay(1, &request, at_ms(1_000));
    let outcome = world.registrar.on_packet(&replies[0], &mut world.outbox, at_ms(1_000));
    assert_eq!(outcome, Some(Outcome::Accepted));
    assert_eq!(world.care_of(at_ms(1_000)), None);
    assert!(!world.agents[0].has(mobile(1), at_ms(1_000)));
    assert_eq!((world.registrar.registered(at_ms(1_000)), world.registrar.next_at()), (None, None));
}

/// A request made by hand and proved by a key, as it would reach the home agent from agent 9,
/// which shares no key with it.
fn by_hand(home_address: Ipv4Addr, proved_by: &Key, at: u64, outbox: &mut Outbox) -> PacketRef {
    let request = Request {
        flags: Flags::default(),
        lifetime_s: 60,
        home_address,
        home_agent: HOME_AGENT,
        care_of_address: station(9),
        identification: Clock::to_ntp(1_700_000_000_000_000_000 + at),
    };
    let mut bytes = vec![];
    request.emit(&mut bytes);
    Authenticator::MobileHome.append(proved_by, &mut bytes);
    let packet = datagram((station(9), HOME_AGENT), 1, 0, outbox);
    let id = sansio::Sink::new_id(outbox);
    std::rc::Rc::new(packet.rewrite(id, sansio::Cause::Original, |packet| {
        packet.transport = sansio::Transport::Udp { source_port: 434, destination_port: 434 };
        packet.payload = sansio::Payload::Bytes(bytes.into());
    }))
}

fn give(world: &mut World, packet: PacketRef, now: Instant) -> Option<Code> {
    let arrival = Input::Arrival { side: Side::NETWORK, packet };
    world.home.handle(arrival, &mut world.outbox, now);
    let (_, reply) = world.outbox.take().pop()?;
    let bytes = bytes_of(&reply);
    let Ok(Message::Reply(reply, _)) = Message::parse(&bytes) else { panic!("{bytes:?}") };
    Some(reply.code)
}

#[test]
fn mod_10_forged_replayed_stale_cross_mobile_and_truncated_requests_change_nothing() {
    let mut world = World::new(Replay::Timestamps);
    world.register(1, None, at_ms(1_000));
    let now = at_ms(2_000);
    let good = by_hand(mobile(1), &key(1), 1_500_000_000, &mut world.outbox);
    // Forged: another key with the same name. Cross-mobile: the key of another mobile host.
    let forger = Key::new(1_000, Algorithm::HmacSha256, &[99; 16]).unwrap();
    for wrong in [&forger, &key(2)] {
        let packet = by_hand(mobile(1), wrong, 1_500_000_000, &mut world.outbox);
        let code = give(&mut world, packet, now);
        assert_eq!(code, Some(Code::HOME_MOBILE_FAILED_AUTHENTICATION));
    }
    assert_eq!(world.home.refusals().of(Refusal::NotProved), 2);
    // Stale, by a second more than the tolerance, and from as far ahead.
    for at in [0, 10_001_000_000] {
        let packet = by_hand(mobile(1), &key(1), at, &mut world.outbox);
        let late = at_ms(if at == 0 { 7_001 } else { 3_000 });
        let code = give(&mut world, packet, late);
        assert_eq!(code, Some(Code::HOME_IDENTIFICATION_MISMATCH));
    }
    assert_eq!(world.home.refusals().of(Refusal::Clock), 2);
    // Older than the registration that stands.
    let older = by_hand(mobile(1), &key(1), 900_000_000, &mut world.outbox);
    assert_eq!(give(&mut world, older, now), Some(Code::HOME_IDENTIFICATION_MISMATCH));
    // A mobile host that is not ours gets no answer at all.
    let stranger = by_hand(mobile(77), &key(1), 1_500_000_000, &mut world.outbox);
    assert_eq!(give(&mut world, stranger, now), None);
    assert_eq!(world.home.refusals().of(Refusal::UnknownMobile), 1);
    // Truncated.
    let whole = bytes_of(&good);
    for end in 0..whole.len() {
        let cut = with_bytes(&good, whole[..end].to_vec(), &mut world.outbox);
        let code = give(&mut world, cut, now);
        assert!(code.is_none_or(|code| !code.is_accepted()), "cut to {end}");
        assert_eq!(world.care_of(now), Some(station(1)), "cut to {end}");
    }
    assert_eq!(world.home.refusals().of(Refusal::Replayed), 1);
    // The good one works, once.
    assert_eq!(give(&mut world, good.clone(), now), Some(Code::ACCEPTED));
    assert_eq!(world.care_of(now), Some(station(9)));
    assert_eq!(give(&mut world, good, now), None, "the same again gets no answer");
    assert_eq!(world.home.refusals().of(Refusal::Replayed), 2);
}

#[test]
fn mod_10_forged_replies_change_nothing_at_the_mobile_host() {
    let mut world = World::new(Replay::Timestamps);
    let request = world.ask(1, None, at_ms(0));
    let (replies, _) = world.relay(1, &request, at_ms(0));
    let good = bytes_of(&replies[0]);
    let mut forged = vec![];
    // A bit of each byte; any change is found by one of the authenticators, or is no answer.
    for at in 0..good.len() - 38 {
        let mut bytes = good.to_vec();
        bytes[at] ^= 0x10;
        forged.push(bytes);
    }
    let identification = u64::from_be_bytes(good[12..20].try_into().unwrap());
    let mut bare = vec![];
    let code = Code::FOREIGN_INSUFFICIENT_RESOURCES;
    Reply { code, lifetime_s: 0, home_address: mobile(1), home_agent: HOME_AGENT, identification }
        .emit(&mut bare);
    forged.push(bare);
    let count = forged.len() as u64;
    for bytes in forged {
        let packet = with_bytes(&replies[0], bytes, &mut world.outbox);
        let outcome = world.registrar.on_packet(&packet, &mut world.outbox, at_ms(1));
        assert_eq!(outcome, None);
        assert!(world.outbox.sent.is_empty());
    }
    assert_eq!(world.registrar.refusals().total(), count, "each is counted");
    let outcome = world.registrar.on_packet(&replies[0], &mut world.outbox, at_ms(1));
    assert_eq!(outcome, Some(Outcome::Accepted));
    // Once more: nobody asked.
    assert_eq!(world.registrar.on_packet(&replies[0], &mut world.outbox, at_ms(2)), None);
    assert_eq!(world.registrar.refusals().of(Refusal::Unasked), 1);
}

/// The lower half of a time is a fraction of a second, which requests one second apart have in
/// common.
#[test]
fn mod_10_a_late_answer_to_a_request_of_exactly_a_second_ago_is_refused() {
    let mut world = World::new(Replay::Timestamps);
    let first = world.ask(1, None, at_ms(0));
    let (late, _) = world.relay(1, &first, at_ms(900));
    let _second = world.ask(2, None, at_ms(1_000));
    assert_eq!(world.registrar.on_packet(&late[0], &mut world.outbox, at_ms(1_002)), None);
    assert_eq!(world.registrar.refusals().of(Refusal::Replayed), 1);
    assert!(world.registrar.is_asking(), "the second agent is yet to answer");
}

#[test]
fn a_foreign_agent_gives_no_longer_registration_than_its_own() {
    let mut world = World::with(Replay::Timestamps, clock(), |config| config.lifetime_max_s = 40);
    assert_eq!(world.register(1, None, at_ms(0)), Some(Outcome::Accepted));
    assert_eq!(world.care_of(at_ms(39_999)), Some(station(1)));
    assert_eq!(world.care_of(at_ms(40_000)), None);
}

#[test]
fn mod_14_a_foreign_agent_that_is_full_says_so() {
    let mut world = World::with(Replay::Timestamps, clock(), |config| config.visitors_max = 0);
    let refused = Outcome::Refused(Code::FOREIGN_INSUFFICIENT_RESOURCES);
    assert_eq!(world.register(1, None, at_ms(0)), Some(refused));
    assert_eq!(world.agents[0].refusals().of(Refusal::Full), 1);
    assert_eq!(world.care_of(at_ms(0)), None);
}

#[test]
fn a_foreign_agent_answers_for_a_home_agent_that_does_not() {
    let mut world = World::new(Replay::Timestamps);
    let request = world.ask(1, None, at_ms(0));
    world.agents[0].on_packet(Side::RADIO, &request, &mut world.outbox, at_ms(0));
    world.outbox.take();
    let due = world.agents[0].next_deadline().expect("it waits");
    assert_eq!((due.at, due.timer), (at_ms(7_000), "registration"));
    world.agents[0].on_timer(&mut world.outbox, at_ms(6_999));
    assert!(world.outbox.sent.is_empty());
    world.agents[0].on_timer(&mut world.outbox, due.at);
    let bytes = bytes_of(&world.outbox.only(Side::RADIO));
    let Ok(Message::Reply(reply, _)) = Message::parse(&bytes) else { panic!("a reply") };
    assert_eq!(reply.code, Code::FOREIGN_REGISTRATION_TIMEOUT);
}

proptest! {
    /// The identification of a registration is a time, and which one is known within 68 years.
    #[test]
    fn a_time_survives_the_format_of_ntp(
        nanos in 0..4_000_000_000_000_000_000_u64, off in -2_000_000_000_i64..2_000_000_000,
    ) {
        let near = nanos.saturating_add_signed(off * 1_000_000_000);
        prop_assume!(near > 0 && near < 6_000_000_000_000_000_000);
        prop_assert_eq!(Clock::from_ntp(Clock::to_ntp(nanos), near), nanos);
    }
}
