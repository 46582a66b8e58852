//! What holds whatever comes: random traffic, hostile segments, forgetting at any instant.

use crate::drill::{Drill, FIXED, MOBILE, segment, tcp_mut};
use proptest::collection::vec;
use proptest::prelude::*;
use sansio::{Cause, DropReason, Notice, PacketId, Payload, Side, StreamId, Transport};
use schemes::snoop::Config;
use std::collections::BTreeMap;
use std::num::NonZeroU16;
use wire::tcp::{Flags, Header, Options, SackBlock, Seq};

/// One step; numbers are small so that steps meet.
#[derive(Clone, Debug)]
enum Step {
    Data { start: u32, length: u32, segment_bytes: u16, fin: bool },
    Ack { ack: u32, window: u16, blocks: Vec<(u32, u32)>, payload: bool },
    Depart(usize),
    QueueDrops,
    Millis(u64),
    Notice(Notice),
}

fn step() -> impl Strategy<Value = Step> {
    let notice = prop::sample::select(vec![
        Notice::LinkDown(Side::RADIO),
        Notice::LinkUp(Side::RADIO),
        Notice::LinkMayBeUp(Side::RADIO),
        Notice::MobileDown(MOBILE.address),
        Notice::MobileUp(MOBILE.address),
        Notice::Forget,
    ]);
    prop_oneof![
        8 => (0u32..60, 1u32..5, 0u16..3, prop::bool::weighted(0.02)).prop_map(
            |(start, length, segments, fin)| Step::Data {
                start: start * 250,
                length: length * 250,
                segment_bytes: segments * 250,
                fin,
            }
        ),
        8 => (0u32..60, 1000u16..1002, vec((0u32..60, 1u32..9), 0..4), prop::bool::weighted(0.1))
            .prop_map(|(ack, window, blocks, payload)| Step::Ack {
                ack: ack * 250,
                window,
                blocks: blocks.into_iter().map(|(s, n)| (s * 250, (s + n) * 250)).collect(),
                payload,
            }),
        6 => (1usize..5).prop_map(Step::Depart),
        1 => Just(Step::QueueDrops),
        3 => (1u64..400).prop_map(Step::Millis),
        1 => notice.prop_map(Step::Notice),
    ]
}

fn configs() -> impl Strategy<Value = Config> {
    let small = |config| Config { cache_segments_max: 20, cache_bytes_max: 6_000, ..config };
    prop::sample::select(vec![
        Config::strict(),
        Config::modern(),
        small(Config::strict()),
        small(Config::modern()),
    ])
}

/// Does the step; `at_most` steps of time are enough for every timer to show itself.
fn apply(drill: &mut Drill, step: &Step) {
    match step.clone() {
        Step::Data { start, length, segment_bytes, fin } => {
            drill.data_with(start..start + length, |packet| {
                packet.segment_bytes = NonZeroU16::new(segment_bytes);
                if fin {
                    tcp_mut(packet).flags = Flags::ACK.with(Flags::FIN);
                }
            });
        }
        Step::Ack { ack, window, blocks, payload } => {
            let blocks: Vec<_> = blocks
                .iter()
                .map(|&(start, end)| SackBlock { start: drill.seq(start), end: drill.seq(end) })
                .collect();
            drill.ack_with(ack, |packet| {
                tcp_mut(packet).window = window;
                tcp_mut(packet).options.push_sack(&blocks);
                if payload {
                    packet.payload =
                        Payload::Virtual { stream: StreamId(2), offset: 0, length: 10 };
                }
            });
        }
        Step::Depart(count) => {
            drill.depart(count);
        }
        Step::QueueDrops => {
            drill.queue_drops_one();
        }
        Step::Millis(millis) => {
            drill.after_millis(millis);
        }
        Step::Notice(notice) => {
            drill.notice(notice);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// SNOOP-GEN-2: nothing is acknowledged that the mobile host has not acknowledged.
    /// Timers always move on (the drill asserts it), and the caches stay within their limits.
    #[test]
    fn acks_are_honest_and_caches_bounded(
        config in configs(),
        first in prop::sample::select(vec![0, 1_000, u32::MAX - 5_000]),
        steps in vec(step(), 1..150),
    ) {
        let bytes_max = u64::from(config.cache_bytes_max);
        let mut drill = Drill::starting_at(config, first);
        drill.hold_the_air();
        let (mut highest, mut seen) = (None::<u32>, 0);
        for step in &steps {
            if let Step::Ack { ack, .. } = step {
                highest = highest.max(Some(*ack));
            }
            apply(&mut drill, step);
            for (side, _, packet) in &drill.sink.sent[seen..] {
                if *side == Side::WIRED {
                    let ack = packet.as_tcp().expect("TCP").ack;
                    let relative = ack.since(drill.seq(0));
                    prop_assert!(Some(relative) <= highest, "{relative} after {highest:?}");
                }
            }
            seen = drill.sink.sent.len();
            prop_assert!(drill.agent.held_bytes() <= bytes_max, "FIN included");
        }
    }

    /// Each packet passes once, unless a rule let it go; and only pure ACKs and acknowledged
    /// repeats are ever let go.
    #[test]
    fn every_packet_passes_once_or_a_rule_says_why_not(
        config in configs(),
        steps in vec(step(), 1..150),
    ) {
        let mut drill = Drill::new(config);
        drill.hold_the_air();
        for step in &steps {
            apply(&mut drill, step);
        }
        let mut passed: BTreeMap<PacketId, u32> = BTreeMap::new();
        for (side, _, packet) in &drill.sink.sent {
            let origin = match (packet.cause, packet.parent) {
                (Cause::Original, Some(rewritten)) => rewritten,
                (Cause::Original, None) => packet.id,
                _ => continue,
            };
            *passed.entry(origin).or_default() += 1;
            if packet.cause == Cause::Original && *side == Side::RADIO {
                prop_assert!(packet.parent.is_none(), "data passes as it came");
            }
        }
        prop_assert!(passed.values().all(|times| *times == 1));
        for (packet, reason) in &drill.sink.discarded {
            prop_assert!(!passed.contains_key(&packet.id));
            let consumed = *reason == DropReason::Rule("SNOOP-DATA-4");
            let pure = packet.payload.is_empty()
                && packet.as_tcp().is_some_and(|tcp| tcp.flags == Flags::ACK);
            prop_assert!(consumed || pure, "{reason:?}");
        }
        let arrived = steps
            .iter()
            .filter(|step| matches!(step, Step::Data { .. } | Step::Ack { .. }))
            .count();
        prop_assert_eq!(passed.len() + drill.sink.discarded.len(), arrived);
    }

    /// A local retransmission or probe carries the bytes that the sender put at its place.
    #[test]
    fn retransmitted_bytes_are_the_senders(config in configs(), steps in vec(step(), 1..150)) {
        let mut drill = Drill::new(config);
        drill.hold_the_air();
        for step in &steps {
            apply(&mut drill, step);
        }
        for (_, _, packet) in &drill.sink.sent {
            if !matches!(packet.cause, Cause::LocalRetransmission | Cause::Probe) {
                continue;
            }
            let start = packet.as_tcp().expect("TCP").seq.since(drill.seq(0));
            let Payload::Virtual { stream, offset, .. } = packet.payload else {
                panic!("virtual payload stays virtual")
            };
            if !packet.payload.is_empty() {
                prop_assert_eq!((stream, offset), (StreamId(1), u64::from(start)));
            }
            prop_assert!(packet.segment_bytes.is_none() || packet.segments() <= 1);
        }
    }

    /// Whatever a segment says, the agent lives, and passes it on or says which rule let it go.
    #[test]
    fn hostile_segments_do_no_harm(
        config in configs(),
        segments in vec(hostile(), 1..100),
    ) {
        let mut drill = Drill::new(config);
        drill.segments(0, 5);
        for (number, (down, header, length, millis)) in segments.into_iter().enumerate() {
            let (from, to) = if down { (FIXED, MOBILE) } else { (MOBILE, FIXED) };
            let id = PacketId(((1 << 40) + number as u64).try_into().expect("not zero"));
            let mut packet = segment(id, from, to, Flags::ACK);
            let ports = Header { source_port: from.port, destination_port: to.port, ..header };
            packet.transport = Transport::Tcp(ports);
            packet.payload = Payload::Virtual { stream: StreamId(1), offset: 0, length };
            let before = drill.sink.sent.len() + drill.sink.discarded.len();
            drill.arrive(if down { Side::WIRED } else { Side::RADIO }, packet);
            prop_assert!(drill.sink.sent.len() + drill.sink.discarded.len() > before);
            drill.after_millis(millis);
        }
    }
}

fn hostile() -> impl Strategy<Value = (bool, Header, u32, u64)> {
    let near = prop_oneof![any::<u32>(), 0u32..8_000];
    let flags = prop_oneof![
        4 => Just(Flags::ACK),
        1 => (0u16..0x200).prop_map(Flags),
    ];
    let options = vec(prop_oneof![any::<u8>(), Just(5), Just(8), Just(10), Just(1)], 0..40);
    (any::<bool>(), near.clone(), near, flags, options, 0u32..3_000, 0u64..300).prop_map(
        |(down, seq, ack, flags, options, length, millis)| {
            let options = Options::from_bytes(&options).expect("at most 40 bytes");
            let header =
                Header { seq: Seq(seq), ack: Seq(ack), flags, options, ..Header::new(0, 0) };
            (down, header, length, millis)
        },
    )
}
