//! The judge of mobile hosts among cells fails where an invariant is broken, and only there; what
//! handoffs cost is measured by its definitions.

use sansio::{
    Cause, Duration, Event, EventKind, HandoffStage, Instant, Packet, PacketId, Payload, Priority,
    Side, StreamId, Transport,
};
use std::net::IpAddr;
use std::rc::Rc;
use trace::checks::Checks;
use trace::handoffs::{Handoffs, OUT_OF_CELL};
use trace::metrics::{Measures, Meter, TransferSpec};
use trace::{CellChange, NodeId, Observer, Record, Role, What};
use wire::ip::{self, Protocol};
use wire::tcp::{self, Flags, Seq};

const ROLES: [Role; 6] = [
    Role::Router,
    Role::BaseStation,
    Role::BaseStation,
    Role::FixedHost,
    Role::MobileHost,
    Role::MobileHost,
];
const FIXED: NodeId = NodeId(3);
const MOBILE: NodeId = NodeId(4);
const OTHER: NodeId = NodeId(5);

fn station(cell: u32) -> NodeId {
    NodeId(1 + cell)
}

fn address(node: NodeId) -> IpAddr {
    [10, 0, 0, node.0 as u8].into()
}

fn id(number: u64) -> PacketId {
    (1..number).fold(PacketId::FIRST, |id, _| id.next())
}

fn segment(number: u64, (from, to): (NodeId, NodeId), ack: u32, length: u32) -> Packet {
    let ip = ip::Header::new(address(from), address(to), Protocol::TCP);
    let mut header = tcp::Header::new(from.0 as u16, to.0 as u16);
    (header.seq, header.ack, header.flags) = (Seq(1), Seq(ack), Flags::ACK);
    let payload = Payload::Virtual { stream: StreamId(0), offset: 0, length };
    Packet::tcp(id(number), ip, header, payload)
}

fn request(number: u64, from: NodeId) -> Packet {
    Packet {
        transport: Transport::Udp { source_port: 434, destination_port: 434 },
        ..segment(number, (from, NodeId(1)), 0, 0)
    }
}

fn sent(side: u16, packet: &Packet) -> What<'_> {
    What::Sent { side: Side(side), priority: Priority::Normal, packet }
}

fn arrived(side: u16, packet: &Packet) -> What<'_> {
    What::Arrived { side: Side(side), packet }
}

fn stage(stage: HandoffStage, station: u16) -> Event {
    let kind = EventKind::Handoff { stage, station: Some(station) };
    Event { flow: None, packet: None, kind }
}

fn show(observer: &mut impl Observer, records: &[(u64, NodeId, What<'_>)]) {
    for &(ms, node, what) in records {
        let at = Instant::ZERO + Duration::from_millis(ms);
        observer.record(&Record { at, node, what });
    }
}

/// What the judge of cells says.
fn failures(records: &[(u64, NodeId, What<'_>)]) -> Vec<String> {
    let mut checks = Checks::new(ROLES.to_vec());
    show(&mut checks, records);
    let all = checks.finish(0, Instant::ZERO + Duration::from_secs(100));
    all.into_iter().filter(|one| one.check == "cells").map(|one| one.what).collect()
}

#[test]
fn mcast_4_once_a_handoff_is_complete_one_base_station_forwards() {
    let (hello, to) = (segment(1, (MOBILE, FIXED), 1, 0), segment(2, (FIXED, MOBILE), 1, 9));
    let complete = stage(HandoffStage::Complete, 1);
    let begun = stage(HandoffStage::Begun, 1);
    let run = |at, cell, next: &Event| {
        failures(&[
            (0, MOBILE, sent(0, &hello)),
            (10, MOBILE, What::Event(&complete)),
            (20, MOBILE, What::Event(next)),
            (at, station(cell), sent(1, &to)),
        ])
    };
    assert_eq!(run(10_000, 1, &complete), [""; 0], "the one that serves");
    assert_eq!(run(260, 0, &complete), [""; 0], "told a moment later");
    assert_eq!(run(10_000, 0, &begun), [""; 0], "while a handoff is under way");
    assert_eq!(run(271, 0, &complete), ["base station 0 forwards to 10.0.0.4, which 1 serves"; 1]);
}

#[test]
fn nothing_arrives_at_another_mobile_host() {
    let (one, two) = (segment(1, (MOBILE, FIXED), 1, 0), segment(2, (OTHER, FIXED), 1, 0));
    let to = segment(3, (FIXED, MOBILE), 1, 9);
    let begin = [(0, MOBILE, sent(0, &one)), (0, OTHER, sent(0, &two))];
    let arrives = |at| failures(&[begin[0], begin[1], (5, at, arrived(0, &to))]);
    assert_eq!(arrives(MOBILE), [""; 0]);
    assert_eq!(arrives(OTHER), ["packet 3 to 10.0.0.4 arrives at another host"]);
}

#[test]
fn what_was_in_too_many_tunnels_goes_round() {
    let begun = stage(HandoffStage::Begun, 1);
    let hello = segment(3, (MOBILE, FIXED), 1, 0);
    let through = |tunnels: u8, handoffs: usize| {
        let mut inner = segment(1, (FIXED, MOBILE), 1, 9);
        inner.ip.hop_limit -= tunnels;
        let mut outer = segment(2, (NodeId(0), station(0)), 0, 0);
        (outer.cause, outer.transport) = (Cause::Encapsulation, Transport::Opaque);
        outer.payload = Payload::Tunnel(Rc::new(inner));
        let mut records = vec![(0, MOBILE, sent(0, &hello))];
        records.extend(vec![(1, MOBILE, What::Event(&begun)); handoffs]);
        records.push((2, station(0), arrived(0, &outer)));
        failures(&records)
    };
    assert_eq!(through(4, 0), [""; 0]);
    assert_eq!(through(5, 0), ["packet 1 has gone round"]);
    assert_eq!(through(6, 2), [""; 0], "it follows the host, once for each handoff");
    assert_eq!(through(7, 2), ["packet 1 has gone round"]);
    assert_eq!(through(37, 1_000), ["packet 1 has gone round"], "whatever the host did");
}

#[test]
fn a_registration_is_answered_or_given_up() {
    let requests: Vec<Packet> = (1..=17).map(|number| request(number, MOBILE)).collect();
    let answer = Packet {
        transport: Transport::Udp { source_port: 434, destination_port: 434 },
        ..segment(90, (NodeId(1), MOBILE), 0, 0)
    };
    let mut records: Vec<_> =
        requests.iter().map(|request| (0, MOBILE, sent(0, request))).collect();
    assert_eq!(failures(&records), ["16 registrations asked for, none answered"]);
    records.insert(8, (0, MOBILE, arrived(0, &answer)));
    assert_eq!(failures(&records), [""; 0]);
}

/// The measures of a transfer toward the mobile host.
fn measured(records: &[(u64, NodeId, What<'_>)]) -> Measures {
    let spec = TransferSpec {
        stream: StreamId(0),
        sender: FIXED,
        receiver: MOBILE,
        base: station(0),
        size: None,
        messages: None,
    };
    let mut meter = Meter::new(ROLES.to_vec(), vec![spec]);
    show(&mut meter, records);
    meter.finish(Instant::ZERO + Duration::from_secs(20))
}

#[test]
fn inc_22_a_handoff_is_timed_by_all_three_definitions() {
    let ms = Duration::from_millis;
    let stages = [HandoffStage::Begun, HandoffStage::Complete, HandoffStage::Registered];
    let [begun, complete, registered] = stages.map(|one| stage(one, 1));
    let (data, beacon) = (segment(1, (FIXED, MOBILE), 1, 9), request(2, NodeId(1)));
    let crossed = What::Cell(CellChange::Crossed { from: 0, to: 1 });
    let lost = What::Lost { side: Side::RADIO, packet: &data, cause: OUT_OF_CELL };
    let measures = measured(&[
        (1_000, MOBILE, crossed),
        (1_010, MOBILE, What::Event(&begun)),
        (1_015, station(0), lost),
        (1_020, MOBILE, arrived(0, &data)),
        (1_030, MOBILE, arrived(1, &beacon)),
        (1_050, MOBILE, arrived(1, &data)),
        (1_070, MOBILE, What::Event(&complete)),
        (1_090, MOBILE, sent(1, &beacon)),
        (1_100, MOBILE, What::Event(&registered)),
    ]);
    let expected = Handoffs {
        crossings: 1,
        until_consistent: vec![ms(70)],
        until_first_packet: vec![ms(40)],
        until_registered: vec![ms(100)],
        lost: 1,
        messages: 1,
        message_bytes: beacon.bytes().into(),
    };
    assert_eq!(measures.handoffs, Some(expected));
}

#[test]
fn a_stall_after_a_handoff_is_the_longest_that_begins_within_five_seconds() {
    let ms = Duration::from_millis;
    let data: Vec<Packet> =
        (1..=9).map(|number| segment(number, (FIXED, MOBILE), 1, 1_000)).collect();
    let acks: Vec<Packet> =
        (0..9).map(|n| segment(10 + n, (MOBILE, FIXED), 1 + n as u32 * 10, 0)).collect();
    let crossed = What::Cell(CellChange::Crossed { from: 0, to: 1 });
    let measures = measured(&[
        (900, FIXED, sent(0, &data[0])),
        (950, FIXED, arrived(0, &acks[0])),
        (1_000, MOBILE, crossed),
        (1_010, FIXED, arrived(0, &acks[1])),
        (1_810, FIXED, arrived(0, &acks[2])),
        (6_000, FIXED, arrived(0, &acks[3])),
        (6_500, FIXED, arrived(0, &acks[4])),
        (19_000, FIXED, arrived(0, &acks[5])),
    ]);
    // From 1.81 s to 6 s; what begins after 6 s is something else.
    assert_eq!(measures.transfers[0].stalls_after_handoff, [ms(4_190)]);
}
