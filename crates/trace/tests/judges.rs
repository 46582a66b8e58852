//! Every check fails on a run that breaks its invariant, and passes one that does not; the meter
//! measures what its definitions say.

use sansio::{
    Cause, Duration, FlowKey, Host, Instant, Packet, PacketId, Payload, Priority, Side, StreamId,
    Transport,
};
use trace::checks::Checks;
use trace::metrics::{Measures, Meter, RECOVERY_BYTES, TransferSpec};
use trace::{NodeId, Observer, Record, Role, What};
use wire::ip::{self, Protocol};
use wire::tcp::{self, Flags, SackBlock, Seq};

const FIXED: NodeId = NodeId(0);
const BASE: NodeId = NodeId(1);
const MOBILE: NodeId = NodeId(2);
const ROLES: [Role; 3] = [Role::FixedHost, Role::BaseStation, Role::MobileHost];
const STREAM: StreamId = StreamId(0);

fn ms(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

fn id(number: u64) -> PacketId {
    (1..number).fold(PacketId::FIRST, |id, _| id.next())
}

fn segment(number: u64, key: FlowKey, seq: u32, ack: u32, payload: Payload) -> Packet {
    let ip = ip::Header::new(key.source.address, key.destination.address, Protocol::TCP);
    let mut header = tcp::Header::new(key.source.port, key.destination.port);
    (header.seq, header.ack, header.flags) = (Seq(seq), Seq(ack), Flags::ACK);
    Packet::tcp(id(number), ip, header, payload)
}

fn down() -> FlowKey {
    let host = |last, port| Host { address: [10, 0, 0, last].into(), port };
    FlowKey { source: host(1, 1000), destination: host(2, 2000) }
}

/// A data segment of the stream, whose first byte has sequence number 1.
fn data(number: u64, offset: u32, length: u32) -> Packet {
    let payload = Payload::Virtual { stream: STREAM, offset: offset.into(), length };
    segment(number, down(), offset + 1, 1, payload)
}

fn ack(number: u64, offset: u32) -> Packet {
    segment(number, down().reversed(), 1, offset + 1, Payload::EMPTY)
}

fn sent(side: Side, packet: &Packet) -> What<'_> {
    What::Sent { side, priority: Priority::Normal, packet }
}

fn arrived(side: Side, packet: &Packet) -> What<'_> {
    What::Arrived { side, packet }
}

/// The names of the checks that fail.
fn failing(records: &[(u64, NodeId, What<'_>)], under_way: usize) -> Vec<&'static str> {
    let mut checks = Checks::new(ROLES.to_vec());
    for &(at, node, what) in records {
        checks.record(&Record { at: ms(at), node, what });
    }
    checks.finish(under_way, ms(1000)).iter().map(|failure| failure.check).collect()
}

#[test]
fn a_byte_delivered_twice_or_skipped_fails_the_stream() {
    let piece = |offset, length| Payload::Virtual { stream: STREAM, offset, length };
    let (first, second, gap) = (piece(0, 10), piece(10, 5), piece(16, 5));
    let delivered = |payload| What::Delivered { payload };
    let good = [(1, MOBILE, delivered(&first)), (2, MOBILE, delivered(&second))];
    assert_eq!(failing(&good, 0), [""; 0]);
    let twice = [(1, MOBILE, delivered(&first)), (2, MOBILE, delivered(&first))];
    assert_eq!(failing(&twice, 0), ["stream"]);
    let skipped = [(1, MOBILE, delivered(&first)), (2, MOBILE, delivered(&gap))];
    assert_eq!(failing(&skipped, 0), ["stream"]);
}

#[test]
fn snoop_gen_2_an_ack_above_the_mobiles_fails() {
    let (honest, higher) = (ack(1, 100), {
        let mut copy = ack(2, 101);
        copy.parent = Some(id(1));
        copy
    });
    let from_mobile =
        [(1, MOBILE, sent(Side::NETWORK, &honest)), (2, BASE, arrived(Side::RADIO, &honest))];
    let good = [&from_mobile[..], &[(3, BASE, sent(Side::WIRED, &honest))]].concat();
    assert_eq!(failing(&good, 1), [""; 0]);
    let bad = [&from_mobile[..], &[(3, BASE, sent(Side::WIRED, &higher))]].concat();
    assert!(failing(&bad, 1).contains(&"acks"));
}

/// An ACK of the base station in the fixed host's name, with a block.
fn nack(number: u64, offset: u32, (start, end): (u32, u32)) -> Packet {
    let mut nack = segment(number, down(), 1, offset + 1, Payload::EMPTY);
    (nack.parent, nack.cause) = (Some(id(1)), Cause::AgentAck);
    if let Transport::Tcp(header) = &mut nack.transport {
        header.options.push_sack(&[SackBlock { start: Seq(start + 1), end: Seq(end + 1) }]);
    }
    nack
}

#[test]
fn snoop_nack_6_an_ack_above_the_fixed_hosts_or_a_block_of_what_never_passed_fails() {
    let said = segment(1, down(), 1, 101, Payload::EMPTY);
    let piece = Payload::Virtual { stream: STREAM, offset: 200, length: 100 };
    let passed = segment(2, down().reversed(), 201, 1, piece);
    let before = [
        (1, FIXED, sent(Side::NETWORK, &said)),
        (2, BASE, arrived(Side::WIRED, &said)),
        (2, MOBILE, sent(Side::NETWORK, &passed)),
        (3, BASE, arrived(Side::RADIO, &passed)),
        (3, BASE, sent(Side::WIRED, &passed)),
        (4, FIXED, arrived(Side::NETWORK, &passed)),
    ];
    let judged = |nack: &Packet| {
        let all = [&before[..], &[(5, BASE, sent(Side::RADIO, nack))]].concat();
        failing(&all, 1).contains(&"acks")
    };
    assert!(!judged(&nack(3, 100, (200, 300))));
    assert!(judged(&nack(3, 101, (200, 300))), "acknowledged too much");
    assert!(judged(&nack(3, 100, (199, 300))), "the byte below never passed");
    assert!(judged(&nack(3, 100, (200, 301))), "nor the one above");
}

#[test]
fn a_packet_that_vanishes_doubles_or_appears_fails_conservation() {
    let packet = data(1, 0, 10);
    let to_base =
        [(1, FIXED, sent(Side::NETWORK, &packet)), (2, BASE, arrived(Side::WIRED, &packet))];
    let forwarded = (3, BASE, sent(Side::RADIO, &packet));
    let good = [&to_base[..], &[forwarded, (4, MOBILE, arrived(Side::NETWORK, &packet))]].concat();
    assert_eq!(failing(&good, 0), [""; 0]);
    assert_eq!(failing(&to_base, 0), ["conservation"], "kept by the base station");
    let under_way = [&to_base[..], &[forwarded]].concat();
    assert_eq!(failing(&under_way, 1), [""; 0]);
    assert_eq!(failing(&under_way, 0), ["conservation"], "vanished on the air");
    let doubled = [&good[..], &[(5, MOBILE, arrived(Side::NETWORK, &packet))]].concat();
    assert_eq!(failing(&doubled, 0), ["conservation"]);
    let invented = data(9, 0, 10);
    let appeared = [(1, BASE, sent(Side::RADIO, &invented))];
    assert_eq!(failing(&appeared, 1), ["conservation"]);
}

#[test]
fn a_cache_above_its_limit_fails() {
    let cached = |bytes| [(1, BASE, What::Cached { bytes, limit: 100 })];
    assert_eq!(failing(&cached(100), 0), [""; 0]);
    assert_eq!(failing(&cached(101), 0), ["caches"]);
}

#[test]
fn one_broken_invariant_does_not_drown_the_report() {
    let cached = What::Cached { bytes: 2, limit: 1 };
    let many = vec![(1, BASE, cached); 1000];
    assert_eq!(failing(&many, 0).len(), 20);
}

fn measured(records: &[(u64, NodeId, What<'_>)], end: u64) -> Measures {
    let spec = TransferSpec {
        stream: STREAM,
        sender: FIXED,
        receiver: MOBILE,
        base: BASE,
        size: Some(3_000_000),
        messages: None,
    };
    let mut meter = Meter::new(ROLES.to_vec(), vec![spec]);
    for &(at, node, what) in records {
        meter.record(&Record { at: ms(at), node, what });
    }
    meter.finish(ms(end))
}

#[test]
fn a_stall_after_an_outage_ends_with_the_first_new_ack_and_recovery_500_kb_later() {
    let segments = [data(1, 0, 1000), data(2, 1000, 600_000)];
    let acks = [ack(3, 500), ack(4, 500), ack(5, 1000), ack(6, 501 + RECOVERY_BYTES)];
    let up = What::LinkUp { side: Side::RADIO };
    let down = What::LinkDown { side: Side::RADIO };
    let piece = Payload::Virtual { stream: STREAM, offset: 0, length: 700 };
    let measures = measured(
        &[
            (1, FIXED, sent(Side::NETWORK, &segments[0])),
            (2, FIXED, sent(Side::NETWORK, &segments[1])),
            (3, FIXED, arrived(Side::NETWORK, &acks[0])),
            (10, BASE, down),
            (100, BASE, up),
            (120, FIXED, arrived(Side::NETWORK, &acks[1])),
            (130, MOBILE, What::Delivered { payload: &piece }),
            (140, FIXED, arrived(Side::NETWORK, &acks[2])),
            (400, FIXED, arrived(Side::NETWORK, &acks[3])),
        ],
        500,
    );
    let transfer = &measures.transfers[0];
    assert_eq!(transfer.stalls_after_outage, [Duration::from_millis(40)]);
    assert_eq!(transfer.receiver_stalls_after_outage, [Duration::from_millis(30)]);
    assert_eq!(transfer.recoveries, [Duration::from_millis(300)]);
    assert_eq!(measures.dupacks, 1);
}

#[test]
fn an_outage_without_outstanding_data_is_no_stall() {
    let segment = data(1, 0, 1000);
    let done = ack(2, 1000);
    let measures = measured(
        &[
            (1, FIXED, sent(Side::NETWORK, &segment)),
            (3, FIXED, arrived(Side::NETWORK, &done)),
            (10, BASE, What::LinkDown { side: Side::RADIO }),
            (100, BASE, What::LinkUp { side: Side::RADIO }),
        ],
        500,
    );
    assert!(measures.transfers[0].stalls_after_outage.is_empty());
}

#[test]
fn who_sent_again_is_told_apart() {
    let mut again = data(1, 0, 1000);
    again.cause = Cause::EndToEndRetransmission;
    let mut local = data(2, 0, 1000);
    (local.cause, local.parent) = (Cause::LocalRetransmission, Some(id(1)));
    let mut probe = data(3, 0, 1);
    (probe.cause, probe.parent) = (Cause::Probe, Some(id(1)));
    let measures = measured(
        &[
            (1, FIXED, sent(Side::NETWORK, &again)),
            (2, BASE, arrived(Side::WIRED, &again)),
            (2, BASE, sent(Side::RADIO, &again)),
            (2, BASE, sent(Side::RADIO, &local)),
            (3, BASE, sent(Side::RADIO, &probe)),
            (4, MOBILE, arrived(Side::NETWORK, &local)),
            (5, BASE, What::Lost { side: Side::RADIO, packet: &probe, cause: "bit_error" }),
        ],
        10,
    );
    assert_eq!(measures.retransmissions_end_to_end, 1);
    assert_eq!((measures.retransmissions_local, measures.probes), (1, 1));
    assert_eq!(measures.air_bytes, 1040 + 41, "lost or not, it used the air");
    assert_eq!(measures.lost, 1);
}
