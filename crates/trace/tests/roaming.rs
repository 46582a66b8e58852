//! What is kept of a mobile host among cells: the messages about it alone, hop by hop, what it
//! hears, which way its data goes, its handoffs; and no more than the bounds allow.

use bytes::Bytes;
use sansio::{
    Cause, DropReason, Duration, Event, EventKind, HandoffStage, Instant, Packet, PacketId,
    Payload, Priority, Side, StreamId, Transport,
};
use std::net::{IpAddr, Ipv4Addr};
use std::rc::Rc;
use trace::metrics::TransferSpec;
use trace::roaming::{Course, Roaming, Setting, Via};
use trace::timeline::Timeline;
use trace::{CellChange, NodeId, Observer, Record, What};
use wire::auth::{Algorithm, Key};
use wire::control::{self, Body, Status};
use wire::ip::{self, Protocol};
use wire::mobile_ip::registration::{Flags, Request};
use wire::tcp;

const ROUTER: NodeId = NodeId(0);
const HOST: NodeId = NodeId(5);
const HOME: Ipv4Addr = Ipv4Addr::new(10, 128, 0, 1);
const OTHER: Ipv4Addr = Ipv4Addr::new(10, 128, 0, 2);
const AGENT: Ipv4Addr = Ipv4Addr::new(172, 31, 255, 254);

fn station(cell: u32) -> NodeId {
    NodeId(1 + cell)
}

fn station_address(cell: u8) -> Ipv4Addr {
    Ipv4Addr::new(172, 16, 0, 1 + cell)
}

fn new() -> Roaming {
    Roaming::new(Setting {
        router: ROUTER,
        cells: 3,
        hosts: vec![HOST, NodeId(7)],
        home: HOME,
        group: Ipv4Addr::new(239, 192, 0, 0),
        home_agent: AGENT,
    })
}

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

fn id(number: u64) -> PacketId {
    (1..number).fold(PacketId::FIRST, |id, _| id.next())
}

fn packet(number: u64, (from, to): (Ipv4Addr, Ipv4Addr), port: u16, bytes: Vec<u8>) -> Packet {
    Packet {
        id: id(number),
        parent: None,
        cause: Cause::Original,
        ip: ip::Header::new(IpAddr::V4(from), IpAddr::V4(to), Protocol::UDP),
        transport: Transport::Udp { source_port: port, destination_port: port },
        payload: Payload::Bytes(Bytes::from(bytes)),
        segment_bytes: None,
        frame: None,
    }
}

fn request(number: u64, home: Ipv4Addr) -> Packet {
    let request = Request {
        flags: Flags::default(),
        lifetime_s: 300,
        home_address: home,
        home_agent: AGENT,
        care_of_address: station_address(1),
        identification: 1,
    };
    let mut bytes = Vec::new();
    request.emit(&mut bytes);
    packet(number, (home, station_address(1)), 434, bytes)
}

fn completion(number: u64) -> Packet {
    let key = Key::new(256, Algorithm::HmacSha256, &[1; 16]).expect("a key");
    let header = control::Header {
        mobile: HOME,
        sender: station_address(1),
        receiver: HOME,
        generation: 1,
        sent_at: 1,
        request: 1,
    };
    let body = Body::Completion { status: Status::TIMEOUT };
    let mut bytes = Vec::new();
    control::Message { header, body }.emit(&key, &mut bytes);
    packet(number, (station_address(1), HOME), control::PORT, bytes)
}

fn beacon(number: u64, cell: u8) -> Packet {
    let address = station_address(cell);
    let beacon =
        control::Beacon { id: cell.into(), address, sent_at: 1, interval_ms: 1000, sequence: 0 };
    let mut bytes = Vec::new();
    beacon.emit(&mut bytes);
    packet(number, (address, Ipv4Addr::BROADCAST), control::PORT, bytes)
}

/// Data for the host, tunnelled from a machine to a base station.
fn tunnelled(number: u64, from: Ipv4Addr, cell: u8, home: Ipv4Addr) -> Packet {
    let ip = ip::Header::new([10, 0, 0, 1].into(), IpAddr::V4(home), Protocol::TCP);
    let payload = Payload::Virtual { stream: StreamId(0), offset: 0, length: 100 };
    let inner = Packet::tcp(id(number + 1), ip, tcp::Header::new(1, 2), payload);
    let mut outer = packet(number, (from, station_address(cell)), 0, Vec::new());
    (outer.transport, outer.payload) = (Transport::Opaque, Payload::Tunnel(Rc::new(inner)));
    outer
}

fn show(roaming: &mut Roaming, records: &[(u64, NodeId, What<'_>)]) {
    for &(ms, node, what) in records {
        roaming.record(&Record { at: at(ms), node, what });
    }
}

fn sent(side: u16, packet: &Packet) -> What<'_> {
    What::Sent { side: Side(side), priority: Priority::Normal, packet }
}

fn arrived(side: u16, packet: &Packet) -> What<'_> {
    What::Arrived { side: Side(side), packet }
}

fn stage(stage: HandoffStage, cell: u16) -> Event {
    let kind = EventKind::Handoff { stage, station: Some(cell) };
    Event { flow: None, packet: None, kind }
}

#[test]
fn a_message_about_the_host_is_kept_on_each_hop_with_what_it_says_and_what_became_of_it() {
    let mut roaming = new();
    let (own, relayed, other) = (request(1, HOME), request(2, HOME), request(3, OTHER));
    let (lost, waiting) = (completion(4), completion(5));
    show(
        &mut roaming,
        &[
            (10, HOST, sent(1, &own)),
            (15, station(1), arrived(Side::RADIO.0, &own)),
            (16, station(1), sent(Side::WIRED.0, &relayed)),
            (17, NodeId(7), sent(1, &other)),
            (22, ROUTER, arrived(2, &relayed)),
            (30, station(1), sent(Side::RADIO.0, &lost)),
            (34, station(1), What::Lost { side: Side::RADIO, packet: &lost, cause: "bit_error" }),
            (40, station(1), sent(Side::RADIO.0, &waiting)),
        ],
    );
    let label = |message: &trace::roaming::Message| roaming.labels[message.label as usize].as_str();
    let messages = roaming.messages.iter();
    let told: Vec<_> =
        messages.map(|it| (it.from, it.to, label(it), it.ended_at, it.lost)).collect();
    let (ask, done) = ("registration request, 300 s", "completion (refused: nobody answered)");
    assert_eq!(
        told,
        [
            (HOST, station(1), ask, Some(at(15)), None),
            (station(1), ROUTER, ask, Some(at(22)), None),
            (station(1), HOST, done, Some(at(34)), Some("bit_error")),
            (station(1), HOST, done, None, None),
        ]
    );
    assert!(roaming.complete);
}

/// CI-MOD-3: the clock of an experiment lets the host listen to one cell only.
#[test]
fn ci_mod_3_a_beacon_that_the_host_may_not_listen_to_is_told_apart() {
    let mut roaming = new();
    let (taken, not_taken) = (beacon(1, 0), beacon(2, 1));
    let reason = DropReason::Rule("CI-MOD-3");
    show(
        &mut roaming,
        &[
            (5, HOST, arrived(0, &taken)),
            (6, HOST, arrived(1, &not_taken)),
            (6, HOST, What::Discarded { packet: &not_taken, reason }),
            (7, NodeId(7), arrived(1, &taken)),
        ],
    );
    let heard: Vec<_> = roaming.beacons.iter().map(|it| (it.at, it.cell, it.is_taken)).collect();
    assert_eq!(heard, [(at(5), 0, true), (at(6), 1, false)]);
    assert!(roaming.messages.is_empty());
}

#[test]
fn ways_are_told_apart_by_base_station_and_sender_and_end_with_a_pause() {
    let mut roaming = new();
    let home = tunnelled(1, AGENT, 0, HOME);
    let forwarded = tunnelled(3, station_address(0), 1, HOME);
    let others = tunnelled(5, AGENT, 0, OTHER);
    show(
        &mut roaming,
        &[
            (0, ROUTER, sent(1, &home)),
            (150, ROUTER, sent(1, &home)),
            (160, ROUTER, sent(1, &others)),
            (200, ROUTER, sent(2, &forwarded)),
            (350, ROUTER, sent(1, &home)),
            (551, ROUTER, sent(1, &home)),
        ],
    );
    let ways = roaming.ways.iter();
    let ways: Vec<_> =
        ways.map(|way| (way.cell, way.via, way.from, way.until, way.packets)).collect();
    assert_eq!(
        ways,
        [
            (0, Via::HomeAgent, at(0), at(350), 3),
            (1, Via::BaseStation, at(200), at(200), 1),
            (0, Via::HomeAgent, at(551), at(551), 1),
        ]
    );
}

#[test]
fn a_handoff_begins_at_the_crossing_or_without_a_clock_at_the_first_message() {
    let begun = stage(HandoffStage::Begun, 0);
    let complete = stage(HandoffStage::Complete, 1);
    let events = [(1300, HOST, What::Event(&begun)), (1340, HOST, What::Event(&complete))];
    let course = Course { first: vec![0, 2], ..Course::default() };
    let mut walks = new();
    show(&mut walks, &events);
    walks.with_course(course.clone());
    let all: Vec<_> =
        walks.handoffs().iter().map(|it| (it.from, it.to, it.begin, it.until)).collect();
    assert_eq!(all, [(Some(0), Some(1), at(1300), at(1340))]);
    assert_eq!(walks.served[0], [(at(0), Some(0)), (at(1340), Some(1))]);
    assert_eq!(walks.served[1], [(at(0), Some(2))], "the other host stays");

    let mut driven = new();
    show(&mut driven, &[(1000, HOST, What::Cell(CellChange::Crossed { from: 0, to: 1 }))]);
    show(&mut driven, &events);
    driven.with_course(course);
    let all: Vec<_> = driven.handoffs().iter().map(|it| (it.begin, it.until)).collect();
    assert_eq!(all, [(at(1000), at(1340))]);
}

#[test]
fn gaps_are_what_no_cell_covers() {
    let mut roaming = new();
    let reached = vec![(0, at(0), at(100)), (1, at(80), at(150)), (2, at(170), at(190))];
    roaming.with_course(Course { first: vec![0], reached, ..Course::default() });
    assert_eq!(roaming.gaps(at(200)), [(at(150), at(170)), (at(190), at(200))]);
    assert_eq!(roaming.cells(), [0, 1, 2]);
}

#[test]
fn no_more_is_kept_than_the_bound_and_that_is_said() {
    let mut roaming = new();
    let heard = beacon(1, 0);
    for ms in 0..=Roaming::ENTRIES_MAX as u64 {
        assert!(roaming.complete);
        show(&mut roaming, &[(ms, HOST, arrived(0, &heard))]);
    }
    assert!(!roaming.complete);
    assert_eq!(roaming.beacons.len(), Roaming::ENTRIES_MAX);
}

/// Whichever base station serves the host: what waits at all of them is one queue, and a beacon
/// that nobody hears is no loss.
#[test]
fn a_timeline_among_cells_is_that_of_all_base_stations() {
    let spec = TransferSpec {
        stream: StreamId(0),
        sender: NodeId(4),
        receiver: HOST,
        base: station(0),
        size: None,
        messages: None,
    };
    let mut timeline = Timeline::new(spec).among_cells(new());
    let (unheard, lost) = (beacon(1, 0), completion(2));
    let side = Side::RADIO;
    let waiting = |packets, bytes| What::Queued { side, packets, bytes };
    let cause = trace::handoffs::OUT_OF_CELL;
    for (ms, node, what) in [
        (1, station(0), waiting(3, 300)),
        (2, station(1), waiting(2, 200)),
        (3, station(0), waiting(0, 0)),
        (4, station(2), What::Cached { bytes: 50, limit: 100 }),
        (5, station(1), What::Cached { bytes: 10, limit: 100 }),
        (6, station(0), What::Lost { side, packet: &unheard, cause }),
        (7, station(2), What::Lost { side, packet: &lost, cause }),
        (8, ROUTER, waiting(9, 900)),
    ] {
        timeline.record(&Record { at: at(ms), node, what });
    }
    let queue = timeline.queue_down.iter();
    let queue: Vec<_> = queue.map(|one| (one.at, one.packets, one.bytes)).collect();
    assert_eq!(queue, [(at(1), 3, 300), (at(2), 5, 500), (at(3), 2, 200)]);
    let cache: Vec<_> = timeline.cache.iter().map(|one| one.bytes).collect();
    assert_eq!(cache, [50, 60]);
    let losses: Vec<_> = timeline.radio_losses.iter().map(|loss| loss.at).collect();
    assert_eq!(losses, [at(7)]);
}
