//! Handoffs by greeting, packets kept at the old base station, and multicast groups: drills.

mod common;

use common::{
    FIXED, HOME_AGENT, Outbox, at_ms, bytes_of, clock, datagram, key, keys, mobile, station,
    with_bytes,
};
use mobility::forward::{self, Keeper};
use mobility::handoff::mobile::{Config as MobileConfig, Greeter};
use mobility::handoff::station::{Config as StationConfig, Place};
use mobility::inbox::Inbox;
use mobility::mobile::MobileHost;
use mobility::multicast::mobile::{Conductor, Config as ConductorConfig};
use mobility::multicast::{self, Names, digest};
use mobility::refusal::Refusal;
use mobility::station::{BaseStation, Config};
use mobility::tunnel;
use proptest::prelude::*;
use sansio::{
    DropReason, Duration, Engine, HandoffStage, Input, Instant, Notice, PacketRef, Payload, Side,
};
use std::net::{IpAddr, Ipv4Addr};
use std::rc::Rc;
use wire::auth::{Algorithm, Key};
use wire::control::{Body, Envelope, Header, Message, Previous, Received, Role, Status};

/// A base station by its number.
fn base_station(number: u8, change: impl Fn(&mut Config)) -> BaseStation {
    let mut config = Config::modern(number.into(), station(number));
    config.first_beacon_at = at_ms(1_000_000);
    config.advertiser = None;
    change(&mut config);
    BaseStation::new(config, keys(3), clock())
}

/// What a message in a packet says, read with a mobile host's key.
fn body_of(packet: &PacketRef, number: u8) -> Body {
    let bytes = bytes_of(packet);
    Envelope::parse(&bytes).expect("ours").open(&key(number)).expect("proved").body
}

/// Mobile host 1 and base stations 1 and 2; every message arrives at once.
struct World {
    outbox: Outbox,
    greeter: Greeter,
    mobile_clock: mobility::clock::Clock,
    inbox: Inbox,
    stations: [BaseStation; 2],
    /// Messages that the mobile host and base stations have sent: which, and when.
    said: Vec<(&'static str, u64)>,
    stages: Vec<(HandoffStage, u64)>,
    /// Datagrams on the air: base station and identification.
    on_air: Vec<(u8, u16)>,
}

impl World {
    fn new(config: MobileConfig, change: impl Fn(&mut Config)) -> Self {
        World {
            outbox: Outbox::new(),
            greeter: Greeter::new(config, mobile(1), key(1)),
            mobile_clock: clock(),
            inbox: Inbox::new(mobile(1), keys(1)),
            stations: [base_station(1, &change), base_station(2, &change)],
            said: vec![],
            stages: vec![],
            on_air: vec![],
        }
    }

    fn attach(&mut self, to: u8, now: Instant) {
        self.greeter.attach(station(to), &mut self.mobile_clock, &mut self.outbox, now);
        self.settle(now);
    }

    /// Passes on all that was sent until nothing is.
    fn settle(&mut self, now: Instant) {
        loop {
            for notice in core::mem::take(&mut self.outbox.notices) {
                if let Notice::HandoffStage { stage, .. } = notice {
                    self.stages.push((stage, now.as_nanos() / 1_000_000));
                }
            }
            let sent = self.outbox.take();
            if sent.is_empty() {
                return;
            }
            for (side, packet) in sent {
                self.pass(side, packet, now);
            }
        }
    }

    fn pass(&mut self, side: Side, packet: PacketRef, now: Instant) {
        let to = packet.ip.destination;
        if matches!(packet.payload, Payload::Bytes(_)) {
            self.said.push((body_of(&packet, 1).name(), now.as_nanos() / 1_000_000));
        }
        for number in 1..=2 {
            if to == IpAddr::V4(station(number)) {
                let from_mobile = packet.ip.source == IpAddr::V4(mobile(1));
                let side = if from_mobile { Side::RADIO } else { Side::WIRED };
                let input = Input::Arrival { side, packet };
                return self.stations[usize::from(number) - 1].handle(input, &mut self.outbox, now);
            }
        }
        assert_eq!((side, to), (Side::RADIO, IpAddr::V4(mobile(1))));
        let own = self.mobile_clock.read(now);
        if let Some(message) = self.inbox.open(&packet, own) {
            let message = message.expect("proved and new");
            self.greeter.on_message(&message, &mut self.outbox, now);
        }
    }

    /// All timers up to a time, one after the other.
    fn run_until(&mut self, end: Instant) {
        loop {
            let stations = self.stations.iter().filter_map(Engine::next_at);
            let next = stations.chain(self.greeter.next_at()).min();
            let Some(now) = next.filter(|at| *at <= end) else { return self.settle(end) };
            self.greeter.on_timer(&mut self.mobile_clock, &mut self.outbox, now);
            self.settle(now);
            for at in 0..2 {
                self.stations[at].handle(Input::Timer, &mut self.outbox, now);
                self.settle_data(at as u8 + 1, now);
            }
        }
    }

    /// Passes messages on, and notes the datagrams that base station `from` sends on the air.
    fn settle_data(&mut self, from: u8, now: Instant) {
        let (data, rest): (Vec<_>, Vec<_>) = self.outbox.take().into_iter().partition(|sent| {
            sent.0 == Side::RADIO && matches!(sent.1.payload, Payload::Virtual { .. })
        });
        self.outbox.sent = rest;
        self.on_air.extend(data.iter().map(|(_, packet)| (from, packet.ip.identification)));
        for (_, packet) in self.outbox.take() {
            let side = Side::WIRED;
            let to = (1..=2).find(|number| packet.ip.destination == IpAddr::V4(station(*number)));
            match to {
                Some(to) if matches!(packet.payload, Payload::Tunnel(_)) => {
                    let input = Input::Arrival { side, packet };
                    let at = usize::from(to) - 1;
                    self.stations[at].handle(input, &mut self.outbox, now);
                    self.settle_data(to, now);
                }
                _ => {
                    self.pass(if to.is_some() { side } else { Side::RADIO }, packet, now);
                    for number in 1..=2 {
                        if !self.outbox.sent.is_empty() {
                            self.settle_data(number, now);
                        }
                    }
                }
            }
        }
    }

    /// A datagram for the mobile host arrives at a base station from the wire.
    fn datagram(&mut self, at: u8, identification: u16, now: Instant) {
        let packet = datagram((FIXED, mobile(1)), identification, 500, &mut self.outbox);
        let input = Input::Arrival { side: Side::WIRED, packet };
        self.stations[usize::from(at) - 1].handle(input, &mut self.outbox, now);
        self.settle_data(at, now);
    }
}

#[test]
fn ci_ho_3_to_6_and_7_in_the_paper_s_order_and_time() {
    let strict = |config: &mut Config| {
        config.handoff = StationConfig::strict(config.address);
        config.keeper = None;
    };
    let mut world = World::new(MobileConfig::strict(), strict);
    world.attach(1, at_ms(0));
    world.run_until(at_ms(1_000));
    (world.said, world.stages) = (vec![], vec![]);
    world.attach(2, at_ms(2_000));
    world.run_until(at_ms(3_000));
    // CI-HO-7: the mobile host's route after 50 ms, the old base station's after 150 ms. It greets
    // again meanwhile, for it does not know how long base stations take.
    let route = world.stages.iter().find(|(stage, _)| *stage == HandoffStage::RouteChanged);
    assert_eq!(route, Some(&(HandoffStage::RouteChanged, 2_050)));
    let first = |name| world.said.iter().find(|(said, _)| *said == name).map(|(_, ms)| *ms);
    assert_eq!((first("greeting"), first("greeting ack")), (Some(2_050), Some(2_050)));
    assert_eq!((first("moved notice"), first("handoff ack")), (Some(2_150), Some(2_150)));
    assert_eq!(first("completion"), Some(2_150));
    let stages: Vec<_> = world.stages.iter().map(|(stage, _)| *stage).collect();
    use HandoffStage::{Begun, Complete, Greeted, RouteChanged};
    assert_eq!(stages, [Begun, RouteChanged, Greeted, Complete]);
    assert_eq!(
        world.stations[0].handover().place(mobile(1), at_ms(3_000)),
        Some(Place::Gone(station(2)))
    );
    assert_eq!(world.stations[1].handover().place(mobile(1), at_ms(3_000)), Some(Place::Here));
}

#[test]
fn ci_ho_5_after_the_notice_the_old_base_station_forwards_and_for_10_s() {
    let mut world = World::new(MobileConfig::modern(), |config| config.keeper = None);
    world.attach(1, at_ms(0));
    world.datagram(1, 1, at_ms(10));
    world.attach(2, at_ms(1_000));
    world.datagram(1, 2, at_ms(1_010));
    assert_eq!(world.on_air, [(1, 1), (2, 2)]);
    world.datagram(1, 3, at_ms(10_999));
    world.datagram(1, 4, at_ms(11_000));
    assert_eq!(world.on_air, [(1, 1), (2, 2), (2, 3)], "not a moment longer than 10 s");
}

#[test]
fn a_mobile_host_that_stays_greets_again_before_its_lifetime_ends() {
    let mut world = World::new(MobileConfig::modern(), |_| {});
    world.attach(1, at_ms(0));
    world.said.clear();
    world.run_until(at_ms(224_999));
    assert_eq!(world.said, []);
    world.run_until(at_ms(999_000));
    assert_eq!(world.said[0], ("greeting", 225_000));
    assert_eq!(world.said.iter().filter(|(said, _)| *said == "greeting").count(), 4);
    let place = |world: &World, ms| world.stations[0].handover().place(mobile(1), at_ms(ms));
    assert_eq!(place(&world, 1_199_999), Some(Place::Here));
    assert_eq!(place(&world, 1_200_000), None);
    assert!(!world.stages.iter().any(|(_, ms)| *ms > 0), "no handoff: {:?}", world.stages);
}

#[test]
fn ci_smooth_2_what_was_kept_goes_after_the_mobile_host_in_order() {
    let mut world = World::new(MobileConfig::modern(), |_| {});
    world.attach(1, at_ms(0));
    for identification in 1..=5 {
        world.datagram(1, identification, at_ms(990 + u64::from(identification)));
    }
    world.on_air.clear();
    world.greeter.attach(station(2), &mut world.mobile_clock, &mut world.outbox, at_ms(1_000));
    let (_, greeting) = world.outbox.take().remove(0);
    let input = Input::Arrival { side: Side::RADIO, packet: greeting };
    world.stations[1].handle(input, &mut world.outbox, at_ms(1_000));
    world.settle_data(2, at_ms(1_000));
    assert_eq!(world.on_air, [(2, 1), (2, 2), (2, 3), (2, 4), (2, 5)]);
    assert_eq!(world.stations[0].keeper().map(Keeper::bytes), Some(0));
    assert_eq!(world.stations[1].keeper().map(Keeper::bytes), Some(0), "kept once, not again");
}

#[test]
fn ci_smooth_2_the_oldest_make_room_and_nothing_is_kept_for_too_long() {
    let mut outbox = Outbox::new();
    let config = forward::Config {
        bytes_max: 1_600,
        bytes_total_max: 2_200,
        keep: Duration::from_millis(100),
    };
    let mut keeper = Keeper::new(config);
    // 528 bytes each with its headers.
    for identification in 1..=4 {
        let packet = datagram((FIXED, mobile(1)), identification, 500, &mut outbox);
        keeper.keep(mobile(1), &packet, at_ms(u64::from(identification) * 10));
    }
    assert_eq!((keeper.count(mobile(1), at_ms(40)), keeper.bytes()), (3, 1_584));
    let other = datagram((FIXED, mobile(2)), 9, 500, &mut outbox);
    keeper.keep(mobile(2), &other, at_ms(40));
    keeper.keep(mobile(2), &other, at_ms(40));
    assert_eq!((keeper.bytes(), keeper.turned_away()), (2_112, 1), "the total has a bound");
    let large = datagram((FIXED, mobile(1)), 9, 1_600, &mut outbox);
    keeper.keep(mobile(1), &large, at_ms(40));
    assert_eq!(keeper.turned_away(), 2);
    let ids = |packets: Vec<PacketRef>| -> Vec<u16> {
        packets.iter().map(|packet| packet.ip.identification).collect()
    };
    // Number 2 was sent at 20 ms: 100 ms later it is still kept, a nanosecond more and it is not.
    assert_eq!(keeper.count(mobile(1), at_ms(120)), 3);
    assert_eq!(keeper.count(mobile(1), Instant::from_nanos(120_000_001)), 2);
    assert_eq!(ids(keeper.take(mobile(1), at_ms(121))), [3, 4]);
    assert_eq!(keeper.bytes(), 528);
}

#[test]
fn an_old_base_station_that_does_not_answer_is_asked_four_times() {
    let mut world = World::new(MobileConfig::modern(), |_| {});
    world.attach(1, at_ms(0));
    world.greeter.attach(station(2), &mut world.mobile_clock, &mut world.outbox, at_ms(1_000));
    let (_, greeting) = world.outbox.take().remove(0);
    let input = Input::Arrival { side: Side::RADIO, packet: greeting };
    world.stations[1].handle(input, &mut world.outbox, at_ms(1_000));
    let mut notices = vec![];
    let mut last = None;
    for ms in 1_000..1_400 {
        world.stations[1].handle(Input::Timer, &mut world.outbox, at_ms(ms));
        for (side, packet) in world.outbox.take() {
            match body_of(&packet, 1) {
                Body::MovedNotice { .. } => notices.push((ms, side)),
                body => last = Some((ms, body)),
            }
        }
    }
    let wired = Side::WIRED;
    assert_eq!(notices, [(1_000, wired), (1_050, wired), (1_100, wired), (1_150, wired)]);
    assert_eq!(last, Some((1_200, Body::Completion { status: Status::TIMEOUT })));
}

#[test]
fn a_base_station_that_never_answers_is_given_up() {
    let mut outbox = Outbox::new();
    let mut clock = clock();
    let mut greeter = Greeter::new(MobileConfig::modern(), mobile(1), key(1));
    greeter.attach(station(1), &mut clock, &mut outbox, at_ms(0));
    for ms in 0..300 {
        greeter.on_timer(&mut clock, &mut outbox, at_ms(ms));
    }
    assert_eq!(outbox.take().len(), 4);
    assert!(!greeter.is_under_way() && greeter.attached().is_none());
    let failed = Notice::HandoffStage { mobile: mobile(1).into(), stage: HandoffStage::Failed };
    assert_eq!(outbox.notices.last(), Some(&failed));
}

/// A proved message about mobile host 1, as a packet.
fn message(
    (sender, receiver): (Ipv4Addr, Ipv4Addr),
    (generation, sent_ms): (u64, u64),
    body: Body,
    proved_by: &Key,
    outbox: &mut Outbox,
) -> PacketRef {
    let sent_at = clock().read(at_ms(sent_ms));
    let header = Header { mobile: mobile(1), sender, receiver, generation, sent_at, request: 1 };
    let mut bytes = vec![];
    Message { header, body }.emit(proved_by, &mut bytes);
    let packet = datagram((sender, receiver), 0, 0, outbox);
    let id = sansio::Sink::new_id(outbox);
    let port = wire::control::PORT;
    Rc::new(packet.rewrite(id, packet.cause, |packet| {
        packet.transport = sansio::Transport::Udp { source_port: port, destination_port: port };
        packet.payload = Payload::Bytes(bytes.into());
    }))
}

fn notice() -> Body {
    Body::MovedNotice { wants_buffer: true, lifetime_s: 10 }
}

/// Base station 1 with mobile host 1, and what was refused there.
struct Target {
    outbox: Outbox,
    station: BaseStation,
}

impl Target {
    fn new() -> Self {
        let mut outbox = Outbox::new();
        let mut target = base_station(1, |_| {});
        let greeting =
            Body::Greeting { previous: Previous::default(), wants_buffer: true, lifetime_s: 300 };
        let ends = (mobile(1), station(1));
        let packet = message(ends, (100, 1_000), greeting, &key(1), &mut outbox);
        let input = Input::Arrival { side: Side::RADIO, packet };
        target.handle(input, &mut outbox, at_ms(1_000));
        outbox.take();
        Target { outbox, station: target }
    }

    fn give(&mut self, side: Side, packet: PacketRef, ms: u64) {
        self.station.handle(Input::Arrival { side, packet }, &mut self.outbox, at_ms(ms));
    }

    #[track_caller]
    fn expect_untouched(&mut self) {
        let place = self.station.handover().place(mobile(1), at_ms(2_000));
        assert_eq!(place, Some(Place::Here));
        assert!(
            !self
                .outbox
                .sent
                .iter()
                .any(|(_, packet)| { matches!(packet.payload, Payload::Tunnel(_)) })
        );
    }
}

#[test]
fn mod_10_forged_replayed_stale_cross_mobile_and_truncated_notices_move_nobody() {
    let mut target = Target::new();
    let from_2 = (station(2), station(1));
    // Forged, by a stranger and by another mobile host that has a key of its own.
    let stranger = Key::new(1_000, Algorithm::HmacSha256, &[99; 16]).unwrap();
    for wrong in [&stranger, &key(2)] {
        let packet = message(from_2, (200, 2_000), notice(), wrong, &mut target.outbox);
        target.give(Side::WIRED, packet, 2_000);
    }
    assert_eq!(target.station.refused(Refusal::NotProved), 2);
    // By somebody else than it says; for somebody else; from the radio.
    let packet = message(from_2, (200, 2_000), notice(), &key(1), &mut target.outbox);
    let id = sansio::Sink::new_id(&mut target.outbox);
    let spoofed = Rc::new(packet.rewrite(id, packet.cause, |packet| {
        packet.ip.source = station(3).into();
    }));
    let for_2 = (station(3), station(2));
    let other = message(for_2, (200, 2_000), notice(), &key(1), &mut target.outbox);
    let id = sansio::Sink::new_id(&mut target.outbox);
    let other = Rc::new(other.rewrite(id, other.cause, |packet| {
        packet.ip.destination = station(1).into();
    }));
    target.give(Side::WIRED, spoofed, 2_000);
    target.give(Side::WIRED, other, 2_000);
    let early = message(from_2, (200, 1_999), notice(), &key(1), &mut target.outbox);
    target.give(Side::RADIO, early, 2_000);
    assert_eq!(target.station.refused(Refusal::Misdirected), 3);
    // From an older attachment, and with a clock that is off by more than 7 s.
    let older = message(from_2, (99, 2_000), notice(), &key(1), &mut target.outbox);
    target.give(Side::WIRED, older, 2_000);
    assert_eq!(target.station.refused(Refusal::Stale), 1);
    let off = message(from_2, (200, 9_001), notice(), &key(1), &mut target.outbox);
    target.give(Side::WIRED, off, 2_000);
    assert_eq!(target.station.refused(Refusal::Clock), 1);
    // Truncated, and each byte changed.
    let whole = bytes_of(&packet);
    let mut refused = 0;
    for at in 0..whole.len() {
        let mut changed = whole.to_vec();
        changed[at] ^= 1;
        for bytes in [changed, whole[..at].to_vec()] {
            let wrong = with_bytes(&packet, bytes, &mut target.outbox);
            target.give(Side::WIRED, wrong, 2_000);
            refused += 1;
        }
    }
    let counted: u64 = [Refusal::Malformed, Refusal::NotProved, Refusal::UnknownMobile]
        .map(|reason| target.station.refused(reason))
        .iter()
        .sum();
    let misdirected = target.station.refused(Refusal::Misdirected) - 3;
    assert_eq!(counted - 2 + misdirected, refused, "each is counted");
    target.expect_untouched();
    // The good one moves it, once; the same again is a replay.
    let good = message(from_2, (200, 2_001), notice(), &key(1), &mut target.outbox);
    target.give(Side::WIRED, good.clone(), 2_001);
    let place = target.station.handover().place(mobile(1), at_ms(2_001));
    assert_eq!(place, Some(Place::Gone(station(2))));
    let answers = target.outbox.take().len();
    target.give(Side::WIRED, good, 2_002);
    assert_eq!((answers > 0, target.outbox.take().len()), (true, 0));
    assert_eq!(target.station.refused(Refusal::Replayed), 1);
}

#[test]
fn mod_14_a_base_station_that_is_full_says_so() {
    let mut outbox = Outbox::new();
    let mut target = base_station(1, |config| config.handoff.visitors_max = 0);
    let greeting =
        Body::Greeting { previous: Previous::default(), wants_buffer: false, lifetime_s: 300 };
    let ends = (mobile(1), station(1));
    let packet = message(ends, (100, 1_000), greeting, &key(1), &mut outbox);
    target.handle(Input::Arrival { side: Side::RADIO, packet }, &mut outbox, at_ms(1_000));
    let answer = outbox.only(Side::RADIO);
    assert_eq!(body_of(&answer, 1), Body::GreetingAck { status: Status::FULL });
    assert_eq!(target.refused(Refusal::Full), 1);
}

const GROUP: Ipv4Addr = Ipv4Addr::new(239, 1, 0, 1);

/// Base station 1 in the group of mobile host 1.
struct Member {
    outbox: Outbox,
    station: BaseStation,
    /// What engines beside it heard.
    mirrored: Vec<(Side, PacketRef)>,
    ms: u64,
}

impl Member {
    fn new(frees_up_to_newest: bool) -> Self {
        let station = base_station(1, |config| {
            config.multicast.frees_up_to_newest = frees_up_to_newest;
        });
        Member { outbox: Outbox::new(), station, mirrored: vec![], ms: 1_000 }
    }

    fn set(&mut self, role: Role, generation: u64, received: Received) -> Body {
        self.set_from(Side::RADIO, role, generation, received).expect("an answer")
    }

    /// The same by a message on this side; the answer leaves there, too.
    fn set_from(
        &mut self,
        side: Side,
        role: Role,
        generation: u64,
        received: Received,
    ) -> Option<Body> {
        self.ms += 1;
        let body = Body::SetRole { role, group: GROUP, received };
        let ends = (mobile(1), station(1));
        let packet = message(ends, (generation, self.ms), body, &key(1), &mut self.outbox);
        let input = Input::Arrival { side, packet };
        self.station.handle(input, &mut self.outbox, at_ms(self.ms));
        let answered = self.outbox.sent.first().is_some_and(|(on, _)| *on == side);
        answered.then(|| body_of(&self.outbox.sent.remove(0).1, 1))
    }

    /// A datagram by the group's tunnel.
    fn datagram(&mut self, identification: u16) {
        let inner = datagram((FIXED, mobile(1)), identification, 100, &mut self.outbox);
        let tunnel = tunnel::Tunnel {
            from: HOME_AGENT,
            to: GROUP,
            encapsulation: tunnel::Encapsulation::Ip,
            mtu_bytes: 1_500,
        };
        let packet = tunnel::enter(&inner, tunnel, &mut self.outbox).expect("it fits");
        let input = Input::Arrival { side: Side::WIRED, packet };
        self.station.handle(input, &mut self.outbox, at_ms(self.ms));
        let is_mirrored = |(side, _): &(Side, PacketRef)| *side == Side::MIRROR;
        self.mirrored.extend(self.outbox.sent.extract_if(.., |sent| is_mirrored(sent)));
    }

    /// The identifications of what is on the air since the last time.
    fn on_air(&mut self) -> Vec<u16> {
        let sent = self.outbox.take().into_iter();
        let sent = sent.filter(|(side, _)| *side == Side::RADIO);
        sent.map(|(_, packet)| packet.ip.identification).collect()
    }
}

fn ids(newest_first: &[u16]) -> Received {
    Received::identifications(newest_first.iter().copied())
}

#[test]
fn mcast_5_and_6_a_buffering_base_station_is_silent_and_keeps_the_last_twelve() {
    let mut member = Member::new(true);
    let ack = member.set(Role::Buffer, 1, Received::NONE);
    assert_eq!(ack, Body::RoleAck { status: Status::ACCEPTED, role: Role::Buffer });
    let joined = Notice::Group { group: GROUP.into(), is_member: true };
    assert_eq!(member.outbox.notices, [joined]);
    for identification in 1..=13 {
        member.datagram(identification);
    }
    assert_eq!(member.on_air(), []);
    assert_eq!(member.station.member().kept(mobile(1)), 12);
    // MCAST-15: no name is found, so all are sent; the first one has made room for the 13th.
    member.set(Role::Forward, 2, ids(&[99]));
    assert_eq!(member.on_air(), (2..=13).collect::<Vec<_>>());
    member.datagram(14);
    assert_eq!(member.on_air(), [14]);
}

/// SNHO-1: the engine beside mobility hears what is kept, the very packet; SNHO-9: and learns who
/// forwards.
#[test]
fn snho_1_and_9_other_engines_hear_what_is_kept_and_learn_who_forwards() {
    let mut member = Member::new(true);
    member.set(Role::Forward, 1, Received::NONE);
    member.datagram(1);
    assert_eq!((member.on_air(), member.mirrored.len()), (vec![1], 0));
    member.set(Role::Buffer, 2, Received::NONE);
    member.datagram(2);
    assert_eq!((member.on_air(), member.mirrored.len()), (vec![], 1));
    let heard = member.mirrored[0].1.clone();
    assert!(member.station.member().packets().any(|kept| Rc::ptr_eq(kept, &heard)));
    member.set(Role::Forward, 3, Received::NONE);
    assert_eq!(member.on_air(), [2]);
    member.set(Role::Buffer, 4, Received::NONE);
    member.set(Role::None, 5, Received::NONE);
    let of_mobile = |notice: &&Notice| !matches!(notice, Notice::Group { .. });
    let told: Vec<Notice> = member.outbox.notices.iter().filter(of_mobile).copied().collect();
    let mobile = mobile(1).into();
    let (here, near) = (Notice::Registered(mobile), Notice::Buffering(mobile));
    assert_eq!(told, [here, near, here, near, Notice::Moved(mobile)]);
}

/// MCAST-12: an old primary that is not heard is told by the wired network; to forward is only for
/// whom it hears.
#[test]
fn mcast_12_a_role_may_be_taken_by_the_wired_network_and_not_given() {
    let mut member = Member::new(true);
    member.set(Role::Forward, 1, Received::NONE);
    let ack = member.set_from(Side::WIRED, Role::Buffer, 2, Received::NONE);
    assert_eq!(ack, Some(Body::RoleAck { status: Status::ACCEPTED, role: Role::Buffer }));
    assert_eq!(member.set_from(Side::WIRED, Role::Forward, 3, Received::NONE), None);
    assert_eq!(member.station.member().role(mobile(1)), Role::Buffer);
    assert_eq!(member.station.refused(Refusal::Misdirected), 1);
}

/// Conservation: nothing that was kept vanishes.
#[test]
fn mcast_11_what_was_kept_is_let_go_with_the_role() {
    let mut member = Member::new(true);
    member.set(Role::Buffer, 1, Received::NONE);
    (1..=3).for_each(|identification| member.datagram(identification));
    let before = member.outbox.dropped.len();
    member.set(Role::None, 2, Received::NONE);
    let reasons = member.outbox.dropped[before..].iter().map(|(_, reason)| *reason);
    let let_go = reasons.filter(|reason| *reason == DropReason::Rule("MCAST-11")).count();
    assert_eq!(let_go, 3);
}

#[test]
fn mcast_14_what_arrived_before_the_newest_name_is_freed() {
    // Names 7, 5, 3 of 1 to 8: by the paper up to the newest; today only what cannot be missing.
    for (frees_up_to_newest, expected) in [(true, vec![8]), (false, vec![4, 6, 8])] {
        let mut member = Member::new(frees_up_to_newest);
        member.set(Role::Buffer, 1, Received::NONE);
        (1..=8).for_each(|identification| member.datagram(identification));
        member.set(Role::Forward, 2, ids(&[7, 5, 3]));
        assert_eq!(member.on_air(), expected);
    }
}

#[test]
fn mod_15_with_identifications_of_zero_digests_lose_nothing() {
    let mut outbox = Outbox::new();
    let of = |offset: u64, outbox: &mut Outbox| {
        let packet = datagram((FIXED, mobile(1)), 0, 100, outbox);
        let id = sansio::Sink::new_id(outbox);
        packet.rewrite(id, packet.cause, |packet| {
            let stream = sansio::StreamId(1);
            packet.payload = Payload::Virtual { stream, offset, length: 100 };
        })
    };
    let digests: Vec<u64> = (0..1_000).map(|at| digest(&of(at * 100, &mut outbox))).collect();
    let mut sorted = digests.clone();
    sorted.sort_unstable();
    sorted.dedup();
    assert_eq!(sorted.len(), 1_000, "no two alike");
    // The same before and after a tunnel.
    let packet = Rc::new(of(300, &mut outbox));
    let tunnel = tunnel::Tunnel {
        from: HOME_AGENT,
        to: GROUP,
        encapsulation: tunnel::Encapsulation::Ip,
        mtu_bytes: 1_500,
    };
    let outer = tunnel::enter(&packet, tunnel, &mut outbox).unwrap();
    let inner = tunnel::leave(&outer, &mut outbox).unwrap();
    assert_eq!(digest(&inner), digests[3]);
}

#[test]
fn mcast_11_a_role_that_is_not_renewed_ends_by_itself() {
    let mut member = Member::new(true);
    member.set(Role::Forward, 1, Received::NONE);
    let end = at_ms(member.ms + 3_500);
    let early = Instant::from_nanos(end.as_nanos() - 1);
    member.station.handle(Input::Timer, &mut member.outbox, early);
    assert_eq!(member.station.member().role(mobile(1)), Role::Forward);
    member.station.handle(Input::Timer, &mut member.outbox, end);
    assert_eq!(member.station.member().role(mobile(1)), Role::None);
    let left = Notice::Group { group: GROUP.into(), is_member: false };
    assert!(member.outbox.notices.ends_with(&[left, Notice::Moved(mobile(1).into())]));
}

/// Nobody else knows of what is kept for a role.
#[test]
fn mcast_11_what_is_kept_for_a_role_that_ends_is_dropped_with_a_reason() {
    let mut member = Member::new(true);
    member.set(Role::Buffer, 1, Received::NONE);
    for identification in 1..=3 {
        member.datagram(identification);
    }
    assert_eq!(member.station.member().kept(mobile(1)), 3);
    let before = member.outbox.dropped.len();
    member.station.handle(Input::Timer, &mut member.outbox, at_ms(member.ms + 3_500));
    assert_eq!(member.station.member().kept(mobile(1)), 0);
    let dropped = &member.outbox.dropped[before..];
    let reasons: Vec<sansio::DropReason> = dropped.iter().map(|(_, reason)| *reason).collect();
    assert_eq!(reasons, [sansio::DropReason::Rule("MCAST-11"); 3]);
}

#[test]
fn mod_10_an_older_generation_gives_no_role_and_a_foreign_group_no_packets() {
    let mut member = Member::new(true);
    member.set(Role::Buffer, 5, Received::NONE);
    let ack = member.set(Role::Forward, 4, Received::NONE);
    assert_eq!(ack, Body::RoleAck { status: Status::STALE, role: Role::Buffer });
    assert_eq!(member.station.refused(Refusal::Stale), 1);
    // By another mobile host's group: nothing is kept, nothing is sent.
    let inner = datagram((FIXED, mobile(1)), 1, 100, &mut member.outbox);
    let tunnel = tunnel::Tunnel {
        from: HOME_AGENT,
        to: Ipv4Addr::new(239, 1, 0, 2),
        encapsulation: tunnel::Encapsulation::Ip,
        mtu_bytes: 1_500,
    };
    let packet = tunnel::enter(&inner, tunnel, &mut member.outbox).unwrap();
    let input = Input::Arrival { side: Side::WIRED, packet };
    member.station.handle(input, &mut member.outbox, at_ms(member.ms));
    assert_eq!((member.on_air(), member.station.member().kept(mobile(1))), (vec![], 0));
    assert_eq!(member.station.refused(Refusal::UnknownMobile), 1);
}

/// The messages that a conductor has sent: to which base station, and what.
fn orders(outbox: &mut Outbox) -> Vec<(Ipv4Addr, Role, usize)> {
    let read = |packet: &PacketRef| {
        let bytes = bytes_of(packet);
        let message = Envelope::parse(&bytes).unwrap().open(&key(1)).unwrap();
        let Body::SetRole { role, received, .. } = message.body else { panic!("{message:?}") };
        let names = match received {
            Received::Identifications { count, .. } | Received::Digests { count, .. } => count,
        };
        (message.header.receiver, role, usize::from(names))
    };
    outbox.take().iter().map(|(_, packet)| read(packet)).collect()
}

#[test]
fn mcast_11_and_13_only_what_differs_is_ordered_and_the_new_primary_gets_three_names() {
    let mut outbox = Outbox::new();
    let mut clock = clock();
    let config = ConductorConfig::new(mobile(1), key(1), GROUP);
    let names = Names::Identification;
    let mut conductor = Conductor::new(ConductorConfig { names, buffering_max: 1, ..config });
    for identification in 1..=5 {
        let packet = datagram((FIXED, mobile(1)), identification, 100, &mut outbox);
        conductor.on_datagram(&packet);
    }
    let others = [station(2), station(3)];
    conductor.decide(station(1), others, &mut clock, &mut outbox, at_ms(0));
    let expected = [(station(1), Role::Forward, 3), (station(2), Role::Buffer, 0)];
    assert_eq!(orders(&mut outbox), expected, "the third would be one too many");
    // Asked already: nothing new to say, before the answer and after it.
    conductor.decide(station(1), others, &mut clock, &mut outbox, at_ms(1));
    assert_eq!(orders(&mut outbox), []);
}

#[test]
fn mcast_12_the_old_primary_ends_only_when_the_new_one_has_begun() {
    let mut outbox = Outbox::new();
    let mut clock = clock();
    let mut conductor = Conductor::new(ConductorConfig::new(mobile(1), key(1), GROUP));
    let answer = |conductor: &mut Conductor, outbox: &mut Outbox, clock: &mut _, from, role| {
        let (_, packet) = outbox
            .sent
            .iter()
            .find(|(_, packet)| packet.ip.destination == IpAddr::V4(from))
            .cloned()
            .expect("it was asked");
        let bytes = bytes_of(&packet);
        let header = Envelope::parse(&bytes).unwrap().header;
        let header = Header { sender: from, receiver: mobile(1), ..header };
        let body = Body::RoleAck { status: Status::ACCEPTED, role };
        outbox.sent.retain(|(_, other)| other.id != packet.id);
        conductor.on_message(&Message { header, body }, clock, outbox, at_ms(5));
    };
    conductor.decide(station(1), [], &mut clock, &mut outbox, at_ms(0));
    answer(&mut conductor, &mut outbox, &mut clock, station(1), Role::Forward);
    outbox.take();
    outbox.notices.clear();
    conductor.decide(station(2), [station(1)], &mut clock, &mut outbox, at_ms(10));
    assert_eq!(orders(&mut outbox), [(station(2), Role::Forward, 0)], "number 1 goes on");
    // Nobody heard it; asked again, and then it answers.
    conductor.on_timer(&mut clock, &mut outbox, at_ms(60));
    answer(&mut conductor, &mut outbox, &mut clock, station(2), Role::Forward);
    let told = outbox.sent.clone();
    assert_eq!(told[0].0, MobileHost::ROUTE, "it may not be heard any more");
    assert_eq!(orders(&mut outbox), [(station(1), Role::Buffer, 0)]);
    let stages = |outbox: &Outbox| -> Vec<HandoffStage> {
        let stage = |notice: &Notice| match notice {
            Notice::HandoffStage { stage, .. } => Some(*stage),
            _ => None,
        };
        outbox.notices.iter().filter_map(stage).collect()
    };
    assert_eq!(stages(&outbox), [HandoffStage::Begun, HandoffStage::Greeted]);
    outbox.sent = told;
    answer(&mut conductor, &mut outbox, &mut clock, station(1), Role::Buffer);
    assert_eq!(stages(&outbox).last(), Some(&HandoffStage::Complete));
}

#[test]
fn mcast_11_a_new_primary_that_never_answers_leaves_the_old_one() {
    let mut outbox = Outbox::new();
    let mut clock = clock();
    let mut conductor = Conductor::new(ConductorConfig::new(mobile(1), key(1), GROUP));
    conductor.decide(station(1), [], &mut clock, &mut outbox, at_ms(0));
    outbox.take();
    conductor.decide(station(2), [], &mut clock, &mut outbox, at_ms(1_000));
    for ms in 1_000..1_300 {
        conductor.on_timer(&mut clock, &mut outbox, at_ms(ms));
    }
    let to_2 = orders(&mut outbox).iter().filter(|(to, ..)| *to == station(2)).count();
    assert_eq!((to_2, conductor.primary()), (4, Some(station(1))));
}

proptest! {
    /// MCAST-14: by either rule nothing that the mobile host may miss is freed, if it got what it
    /// names in order; by the modern one even if it did not.
    #[test]
    fn mcast_14_nothing_that_may_be_missing_is_freed(
        kept in 0..14_u16, received in prop::collection::vec(1..=14_u16, 0..3), is_strict: bool,
    ) {
        let mut member = Member::new(is_strict);
        member.set(Role::Buffer, 1, Received::NONE);
        (1..=kept).for_each(|identification| member.datagram(identification));
        member.set(Role::Forward, 2, ids(&received));
        let on_air = member.on_air();
        prop_assert!(on_air.is_sorted());
        let first = kept.saturating_sub(12) + 1;
        let named = received.iter().filter(|id| (first..=kept).contains(id));
        let bound = if is_strict { named.max() } else { named.min() }.copied().unwrap_or(0);
        for id in first..=kept {
            let is_freed = id <= bound || received.contains(&id);
            prop_assert_eq!(on_air.contains(&id), !is_freed);
        }
    }

    /// MOD-24: any bytes to a base station's port for handoff messages.
    #[test]
    fn mod_24_any_handoff_message(
        bytes in prop::collection::vec(any::<u8>(), 0..120), is_radio: bool,
    ) {
        let mut target = Target::new();
        let ends = (station(2), station(1));
        let packet = message(ends, (200, 2_000), notice(), &key(1), &mut target.outbox);
        let side = if is_radio { Side::RADIO } else { Side::WIRED };
        let mut ours = bytes.clone();
        ours.splice(..ours.len().min(4), *b"LH\x01\x03");
        for bytes in [bytes, ours] {
            let wrong = with_bytes(&packet, bytes, &mut target.outbox);
            target.give(side, wrong, 2_000);
        }
        target.expect_untouched();
    }
}

/// The group's digest is the default; the paper's identification is there for its experiments.
#[test]
fn mcast_13_names_are_digests_unless_the_paper_is_followed() {
    assert_eq!(ConductorConfig::new(mobile(1), key(1), GROUP).names, Names::Digest);
    assert_eq!(multicast::station::Config::strict(station(1)).packets_max, 12);
}
