//! Data from the mobile host: what the agent tells it of losses on the air (SNOOP-NACK-*).

use crate::drill::{Drill, FIXED, MOBILE, segment, tcp_mut};
use proptest::collection::vec;
use proptest::prelude::*;
use sansio::{Cause, EventKind, Packet, Payload, Side, StreamId};
use schemes::snoop::Config;
use schemes::snoop::config::{Nack, Reach};
use std::ops::Range;
use wire::tcp::{Flags, SackBlock, Seq, Timestamps, kind};

/// A segment of the mobile host.
pub(crate) fn up_with(drill: &mut Drill, range: Range<u32>, change: impl FnOnce(&mut Packet)) {
    drill.ack_with(0, |packet| {
        let (offset, length) = (u64::from(range.start), range.end - range.start);
        packet.payload = Payload::Virtual { stream: StreamId(2), offset, length };
        change(packet);
    });
}

/// Segments of 1000 bytes by their numbers, put at their places.
pub(crate) fn segments(drill: &mut Drill, numbers: impl IntoIterator<Item = u32>) {
    for number in numbers {
        let seq = drill.seq(number * 1000);
        up_with(drill, number * 1000..number * 1000 + 1000, |packet| tcp_mut(packet).seq = seq);
    }
}

/// A segment that ends what an application had written.
pub(crate) fn last_segment(drill: &mut Drill, number: u32) {
    let seq = drill.seq(number * 1000);
    up_with(drill, number * 1000..number * 1000 + 1000, |packet| {
        (tcp_mut(packet).seq, tcp_mut(packet).flags) = (seq, Flags::ACK.with(Flags::PSH));
    });
}

/// An ACK of the fixed host with SACK blocks.
pub(crate) fn fixed_ack(drill: &mut Drill, ack: u32, blocks: &[(u32, u32)]) {
    let id = sansio::Sink::new_id(&mut drill.sink);
    let mut packet = segment(id, FIXED, MOBILE, Flags::ACK);
    let block =
        |&(start, end): &(u32, u32)| SackBlock { start: drill.seq(start), end: drill.seq(end) };
    let blocks: Vec<_> = blocks.iter().map(block).collect();
    (tcp_mut(&mut packet).seq, tcp_mut(&mut packet).ack) = (Seq(7), drill.seq(ack));
    if let Some(value) = drill.timestamp {
        let timestamps = Timestamps { value: value + 7_000, echo: value };
        tcp_mut(&mut packet).options.push_timestamps(timestamps).expect("room");
    }
    tcp_mut(&mut packet).options.push_sack(&blocks);
    drill.arrive(Side::WIRED, packet);
}

/// Both SYNs; each says if SACK is permitted.
pub(crate) fn handshake(drill: &mut Drill, (mobile, fixed): (bool, bool)) {
    for (side, from, to, flags, sack) in [
        (Side::RADIO, MOBILE, FIXED, Flags::SYN, mobile),
        (Side::WIRED, FIXED, MOBILE, Flags::SYN.with(Flags::ACK), fixed),
    ] {
        let id = sansio::Sink::new_id(&mut drill.sink);
        let mut packet = segment(id, from, to, flags);
        if sack {
            tcp_mut(&mut packet).options.push(&[kind::SACK_PERMITTED, 2, 1, 1]).expect("room");
        }
        drill.arrive(side, packet);
    }
}

/// A connection that permits SACK, of which the fixed host has acknowledged segment 0.
fn connected(config: Config) -> Drill {
    let mut drill = Drill::new(config);
    handshake(&mut drill, (true, true));
    segments(&mut drill, [0]);
    fixed_ack(&mut drill, 1000, &[]);
    drill.quietly();
    drill
}

/// The same by the paper, which has seen segments 1 and 3 of the mobile host's.
pub(crate) fn with_a_gap() -> Drill {
    let mut drill = strict();
    segments(&mut drill, [1, 3]);
    drill
}

fn strict() -> Drill {
    connected(Config::strict())
}

/// What the agent told, line by line.
fn told(drill: &Drill) -> Vec<Vec<(u32, u32)>> {
    let own = drill.sink.sent.iter().filter(|(_, _, packet)| packet.cause == Cause::AgentAck);
    own.map(|(side, _, packet)| {
        assert_eq!(*side, Side::RADIO);
        let blocks = packet.as_tcp().expect("TCP").options.sack_blocks();
        let relative = |seq: Seq| seq.since(drill.seq(0));
        blocks.map(|block| (relative(block.start), relative(block.end))).collect()
    })
    .collect()
}

fn stood_aside(drill: &Drill) -> Option<&'static str> {
    drill.sink.events.iter().find_map(|event| match event.kind {
        EventKind::StandAside { reason } => Some(reason),
        _ => None,
    })
}

#[test]
fn snoop_nack_2_three_segments_from_beyond_a_gap_make_one_nack() {
    let mut drill = strict();
    segments(&mut drill, [1, 3, 4]);
    assert!(told(&drill).is_empty());
    drill.quietly();
    segments(&mut drill, [5]);
    drill
        .expect(&["wired 5000..6000", "radio high ack 1000 sack 1001..2000 sack 3000..6000 agent"]);
    segments(&mut drill, [6, 7, 8, 9]);
    assert_eq!(told(&drill).len(), 1, "not again within 40 ms");
}

#[test]
fn snoop_nack_2_forty_milliseconds_of_silence_make_one_too() {
    let mut drill = strict();
    segments(&mut drill, [1, 3]);
    let due = drill.deadline("snoop silence").expect("there is a gap");
    assert_eq!(due.since(drill.now).as_millis(), 40);
    drill.after_millis(39);
    assert!(told(&drill).is_empty());
    drill.after_millis(1);
    assert_eq!(told(&drill), [[(1001, 2000), (3000, 4000)]]);
}

#[test]
fn snoop_nack_2_silence_without_a_gap_is_none_of_our_business() {
    let mut drill = strict();
    segments(&mut drill, [1, 2, 3]);
    drill.after_millis(10_000);
    assert!(told(&drill).is_empty());
}

#[test]
fn snoop_nack_1_the_gaps_told_are_the_losses() {
    let mut drill = strict();
    segments(&mut drill, [1, 3, 5, 6, 7]);
    assert_eq!(told(&drill), [[(1001, 2000), (3000, 4000), (5000, 7000)]], "with segment 6");
    drill.after_millis(40);
    segments(&mut drill, [2, 8, 9, 10]);
    drill.after_millis(40);
    let last = told(&drill).pop().expect("again");
    assert_eq!(last, [(1001, 4000), (5000, 11_000)], "what came is no gap any more");
}

#[test]
fn snoop_nack_3_what_lies_beyond_the_blocks_is_left_out_rather_than_what_lies_between() {
    let blocks = [(2000, 3000), (4000, 5000), (6000, 7000), (8000, 9000)];
    for (timestamp, room) in [(None, 4), (Some(5), 3)] {
        let mut drill = strict();
        drill.timestamp = timestamp;
        fixed_ack(&mut drill, 1000, &[]);
        segments(&mut drill, [2, 4, 6, 8, 10, 11, 12]);
        let told = told(&drill);
        assert_eq!(told[0], blocks[..3], "as much as had come with segment 6");
        assert_eq!(told.len(), room - 2, "one more for the gap that the fourth block shows");
        assert_eq!(told[told.len() - 1], blocks[..room]);
    }
}

#[test]
fn snoop_nack_5_without_sack_on_both_sides_nothing_is_told_and_the_reason_is() {
    for sides in [(true, false), (false, true), (false, false)] {
        let mut drill = Drill::strict();
        handshake(&mut drill, sides);
        segments(&mut drill, [0]);
        fixed_ack(&mut drill, 1000, &[]);
        segments(&mut drill, [2, 3, 4, 5]);
        drill.after_millis(1_000);
        assert!(told(&drill).is_empty());
        assert!(stood_aside(&drill).is_some_and(|reason| reason.contains("not agreed")));
    }
    let mut drill = Drill::strict();
    segments(&mut drill, [0, 2, 3, 4]);
    assert!(stood_aside(&drill).is_some_and(|reason| reason.contains("not seen")));
}

#[test]
fn snoop_nack_6_the_ack_is_the_fixed_hosts_newest_and_no_block_begins_at_it() {
    let mut drill = strict();
    segments(&mut drill, 1..6);
    fixed_ack(&mut drill, 4000, &[]);
    fixed_ack(&mut drill, 3000, &[]);
    segments(&mut drill, [7, 8, 9]);
    let nack = drill.last_sent(Side::RADIO).as_tcp().copied().expect("TCP");
    assert_eq!((nack.ack, nack.seq, nack.window), (drill.seq(4000), Seq(7), 1000));
    assert_eq!(told(&drill), [[(4001, 6000), (7000, 10_000)]]);
    // The gap is at the ACK itself.
    fixed_ack(&mut drill, 6000, &[(7000, 8000)]);
    drill.after_millis(50);
    assert_eq!(told(&drill).pop().expect("again"), [(7000, 10_000)]);
}

#[test]
fn mod_4_a_flow_seen_from_its_middle_is_told_nothing_of_before() {
    let mut drill = strict();
    drill.notice(sansio::Notice::Forget);
    handshake(&mut drill, (true, true));
    segments(&mut drill, [20, 22, 23, 24]);
    fixed_ack(&mut drill, 15_000, &[]);
    drill.after_millis(100);
    assert!(told(&drill).is_empty(), "nobody knows what lies between 15000 and 20000");
    fixed_ack(&mut drill, 20_000, &[]);
    segments(&mut drill, [25]);
    assert_eq!(told(&drill), [[(20_001, 21_000), (22_000, 26_000)]]);
}

/// Modern, but of every gap, as strict.
fn anywhere() -> Config {
    let modern = Config::modern();
    Config { nack: Nack { reach: Reach::Anywhere, ..modern.nack }, ..modern }
}

#[test]
fn mod_4_what_is_lost_beyond_the_base_station_ends_the_promises() {
    for (config, ends) in [(Config::strict(), false), (anywhere(), true)] {
        let mut drill = connected(config);
        segments(&mut drill, 1..8);
        for end in [5000, 6000, 7000] {
            assert_eq!(stood_aside(&drill), None);
            fixed_ack(&mut drill, 1000, &[(2000, end)]);
        }
        assert_eq!(stood_aside(&drill).is_some(), ends);
        segments(&mut drill, [9, 10, 11]);
        assert_eq!(told(&drill).is_empty(), ends);
    }
}

#[test]
fn mod_4_duplicates_for_a_gap_of_the_air_are_no_loss_beyond() {
    let mut drill = connected(anywhere());
    segments(&mut drill, [2, 3, 4, 5]);
    for end in [3000, 4000, 5000, 6000] {
        fixed_ack(&mut drill, 1000, &[(2000, end)]);
    }
    // It comes late; what the fixed host said before is still on its way.
    segments(&mut drill, [1]);
    (0..4).for_each(|_| fixed_ack(&mut drill, 1000, &[(2000, 6000)]));
    assert_eq!(stood_aside(&drill), None);
}

#[test]
fn mod_13_mod_20_an_ack_that_only_the_fixed_host_can_make_is_not_made() {
    for option in [kind::MD5, kind::AUTHENTICATION, kind::MPTCP] {
        let mut drill = strict();
        let seq = drill.seq(1000);
        up_with(&mut drill, 1000..2000, |packet| {
            tcp_mut(packet).seq = seq;
            tcp_mut(packet).options.push(&[option, 4, 0, 0]).expect("room");
        });
        segments(&mut drill, [3, 4, 5]);
        assert!(told(&drill).is_empty());
        assert!(stood_aside(&drill).is_some());
    }
}

#[test]
fn mod_14_one_gap_is_told_ten_times_at_most() {
    let mut drill = strict();
    segments(&mut drill, [1, 3]);
    drill.after_millis(10_000);
    assert_eq!(told(&drill).len(), 10);
    assert!(
        drill.deadline("snoop silence").is_none_or(|at| at.since(drill.now).as_millis() > 1000)
    );
}

#[test]
fn modern_tells_of_messages_as_long_as_the_one_before_and_of_nothing_else() {
    let mut drill = connected(Config::modern());
    segments(&mut drill, [1, 3, 4]);
    last_segment(&mut drill, 5);
    assert!(told(&drill).is_empty(), "a long transfer may have begun");
    segments(&mut drill, [2]);
    fixed_ack(&mut drill, 6000, &[]);
    drill.after_millis(101);
    // Six segments, then a pause.
    segments(&mut drill, [6, 8, 9, 10]);
    assert_eq!(told(&drill), [[(6001, 7000), (8000, 11_000)]]);
    segments(&mut drill, [7, 11, 13, 14, 15]);
    assert_eq!(told(&drill).len(), 1, "longer than the message before");
}

/// A NACK after an outage makes BBR take the way to the base station for the whole path.
#[test]
fn modern_neither_an_outage_nor_the_end_of_a_long_transfer_makes_what_follows_a_message() {
    for (segments_before, is_written) in [(6, false), (70, true)] {
        let mut drill = connected(Config::modern());
        segments(&mut drill, 1..segments_before - 1);
        match is_written {
            true => last_segment(&mut drill, segments_before - 1),
            false => segments(&mut drill, [segments_before - 1]),
        }
        fixed_ack(&mut drill, segments_before * 1000, &[]);
        drill.after_millis(101);
        segments(&mut drill, [1, 3, 4, 5].map(|of| segments_before + of - 1));
        assert!(told(&drill).concat().is_empty());
    }
}

#[test]
fn modern_radios_that_only_reorder_are_told_no_more() {
    let mut drill = connected(anywhere());
    for round in 0..20 {
        let first = 1 + round * 5;
        // The first comes late, and then once more, since it was asked for.
        segments(&mut drill, [first + 1, first + 2, first + 3, first + 4, first, first]);
        drill.after_millis(100);
    }
    assert!(stood_aside(&drill).is_some_and(|reason| reason.contains("without being asked")));
    assert!(told(&drill).len() < 20);
}

#[test]
fn a_flow_from_the_mobile_host_ends_with_its_fin_or_a_reset() {
    let mut drill = strict();
    let seq = drill.seq(1000);
    up_with(&mut drill, 1000..2000, |packet| {
        (tcp_mut(packet).seq, tcp_mut(packet).flags) = (seq, Flags::ACK.with(Flags::FIN));
    });
    assert!(drill.agent_has_timers());
    fixed_ack(&mut drill, 2001, &[]);
    assert!(!drill.agent_has_timers());
    let mut drill = strict();
    assert!(drill.agent_has_timers());
    let id = sansio::Sink::new_id(&mut drill.sink);
    drill.arrive(Side::WIRED, segment(id, FIXED, MOBILE, Flags::RST));
    assert!(!drill.agent_has_timers());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// MOD-4, SNOOP-NACK-6: whatever is lost, reordered or forged, no block covers what has not
    /// passed, the ACK is the fixed host's newest, and everything passes unchanged.
    #[test]
    fn nacks_are_honest(
        is_strict in any::<bool>(),
        first in prop::sample::select(vec![0, 1_000, u32::MAX - 20_000]),
        steps in vec((0u32..40, 0u32..3, 0u64..60), 1..200),
    ) {
        let config = if is_strict { Config::strict() } else { anywhere() };
        let mut drill = Drill::starting_at(config, first);
        handshake(&mut drill, (true, true));
        let mut passed = [false; 41_000];
        let (mut newest, mut seen) = (None::<u32>, 0);
        for (number, what, millis) in steps {
            match what {
                0 => {
                    let ack = number * 1000;
                    fixed_ack(&mut drill, ack, &[(ack + 1000, ack + 2000)]);
                    newest = newest.max(Some(ack));
                }
                _ => {
                    segments(&mut drill, [number]);
                    passed[number as usize * 1000..][..1000].fill(true);
                }
            }
            drill.after_millis(millis);
            for (_, _, packet) in &drill.sink.sent[seen..] {
                if packet.cause != Cause::AgentAck {
                    continue;
                }
                let tcp = packet.as_tcp().expect("TCP");
                prop_assert!(Some(tcp.ack.since(drill.seq(0))) <= newest);
                for block in tcp.options.sack_blocks() {
                    prop_assert!(block.start.after(tcp.ack));
                    let at = |seq: Seq| seq.since(drill.seq(0)) as usize;
                    let covered = &passed[at(block.start)..at(block.end)];
                    prop_assert!(covered.iter().all(|passed| *passed));
                }
            }
            seen = drill.sink.sent.len();
        }
        prop_assert!(drill.sink.discarded.is_empty());
    }
}
