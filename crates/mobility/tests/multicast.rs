//! Handoffs by multicast groups: drills.

mod common;

use common::{
    FIXED, HOME_AGENT, Outbox, at_ms, base_station, body_of, bytes_of, clock, datagram, key,
    message, mobile, station,
};
use mobility::mobile::MobileHost;
use mobility::multicast::mobile::{Conductor, Config as ConductorConfig};
use mobility::multicast::{self, Names, digest};
use mobility::refusal::Refusal;
use mobility::station::BaseStation;
use mobility::tunnel;
use proptest::prelude::*;
use sansio::{DropReason, Engine, HandoffStage, Input, Instant, Notice, PacketRef, Payload, Side};
use std::net::{IpAddr, Ipv4Addr};
use std::rc::Rc;
use wire::control::{Body, Envelope, Header, Message, Received, Role, Status};

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
}

/// The group's digest is the default; the paper's identification is there for its experiments.
#[test]
fn mcast_13_names_are_digests_unless_the_paper_is_followed() {
    assert_eq!(ConductorConfig::new(mobile(1), key(1), GROUP).names, Names::Digest);
    assert_eq!(multicast::station::Config::strict(station(1)).packets_max, 12);
}
