//! Handoffs by greeting, and packets kept at the old base station: drills.

mod common;

use common::{
    FIXED, Outbox, at_ms, base_station, body_of, bytes_of, clock, datagram, key, keys, message,
    mobile, station, with_bytes,
};
use mobility::forward::{self, Keeper};
use mobility::handoff::mobile::{Config as MobileConfig, Greeter};
use mobility::handoff::station::{Config as StationConfig, Place};
use mobility::inbox::Inbox;
use mobility::refusal::Refusal;
use mobility::station::{BaseStation, Config};
use proptest::prelude::*;
use sansio::{Duration, Engine, HandoffStage, Input, Instant, Notice, PacketRef, Payload, Side};
use std::net::IpAddr;
use std::rc::Rc;
use wire::auth::{Algorithm, Key};
use wire::control::{Body, Previous, Status};

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

proptest! {
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
