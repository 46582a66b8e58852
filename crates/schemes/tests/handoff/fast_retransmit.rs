//! Fast retransmission after a handoff (CI-FRX).

use crate::drill::{Drill, ack, data};
use sansio::{Duration, Handoff, Losses, Notice, Side};
use schemes::fast_retransmit::config::{Receiver, Trigger};
use schemes::fast_retransmit::{Agent, Config};
use schemes::stack::Stack;
use wire::tcp::{Flags, Timestamps};

const COMPLETE: Notice = Notice::Handoff(Handoff::Complete, Losses::Possible);
const GREETED: Notice = Notice::Handoff(Handoff::GreetingAcknowledged, Losses::Possible);

/// A mobile host that has received 2000 bytes and acknowledged them.
fn receiving(config: Config) -> Drill<Agent> {
    let mut drill = Drill::new(Agent::new(config));
    drill.air(&data(0, 1000)).air(&data(1000, 1000)).host(&ack(2000)).skip();
    drill
}

/// A mobile host that has sent three segments of 1000 bytes.
fn sending(config: Config) -> Drill<Agent> {
    let mut drill = Drill::new(Agent::new(config));
    drill.air(&ack(0));
    (0..3).for_each(|number| {
        drill.host(&data(number * 1000, 1000));
    });
    drill.skip();
    drill
}

#[test]
fn ci_frx_1_the_notice_of_choice_sets_it_off_once_and_no_other_does() {
    let triggers = [
        (Trigger::Complete, COMPLETE),
        (Trigger::GreetingAcknowledged, GREETED),
        (Trigger::LinkUp, Notice::LinkUp(Side::RADIO)),
    ];
    for (trigger, _) in triggers {
        for (other, notice) in triggers {
            let mut drill = receiving(Config { trigger, ..Config::strict() });
            drill.notice(notice);
            let wanted = if trigger == other { 3 } else { 0 };
            assert_eq!(drill.sink.sent.len(), 3 + wanted, "{trigger:?} and {notice:?}");
        }
    }
}

#[test]
fn ci_frx_2_the_oldest_unacknowledged_segment_goes_out_again() {
    let mut drill = sending(Config::modern());
    drill.notice(COMPLETE).gives(&["radio 0..1000"]);
    drill.air(&ack(1000)).skip().notice(COMPLETE).gives(&["radio 1000..2000"]);
    // From the first byte that is missing on.
    drill.air(&ack(1400)).skip().notice(COMPLETE).gives(&["radio 1400..2000"]);
    assert_eq!(drill.engine.statistics().copies, 3);
}

#[test]
fn ci_frx_2_a_tcp_that_can_be_told_is_told_and_no_copy_is_made() {
    let mut drill = sending(Config::strict());
    assert!(drill.engine.asks_own_tcp(&COMPLETE));
    assert!(!drill.engine.asks_own_tcp(&GREETED));
    assert!(!Agent::new(Config::modern()).asks_own_tcp(&COMPLETE));
    drill.notice(COMPLETE).gives(&[]);
}

#[test]
fn ci_frx_2_of_a_super_packet_one_segment_goes_out() {
    let config = Config { kept_bytes_max: 100_000, ..Config::modern() };
    let mut drill = Drill::new(Agent::new(config));
    drill.air(&ack(0)).host(&data(0, 10)).air(&ack(10)).skip();
    let mut large = (*drill.sink.sent[1].1).clone();
    large.payload =
        sansio::Payload::Virtual { stream: sansio::StreamId(0), offset: 10, length: 30_000 };
    large.segment_bytes = core::num::NonZeroU16::new(1448);
    if let sansio::Transport::Tcp(tcp) = &mut large.transport {
        tcp.seq += 10;
    }
    drill.arrives_raw(Side::HOST, large).skip();
    drill.notice(COMPLETE).gives(&["radio 10..1458"]);
}

#[test]
fn ci_frx_4_form_a_is_one_marked_ack_with_the_number_of_the_next_byte() {
    let mut drill = receiving(Config { receiver: Receiver::Marked, ..Config::modern() });
    drill.notice(COMPLETE).gives(&["radio ack 2000 win 50 marked"]);
}

#[test]
fn ci_frx_5_form_b_is_three_or_four_identical_acks_without_data() {
    for (config, count) in [(Config::strict(), 3), (Config::modern(), 4)] {
        let mut drill = receiving(config);
        drill.notice(COMPLETE).gives(&vec!["radio ack 2000 win 50"; count]);
        let headers: Vec<_> = drill.sink.sent.iter().rev().take(count + 1).collect();
        // The last is the host's own.
        assert!(headers.windows(2).all(|pair| pair[0].1.as_tcp() == pair[1].1.as_tcp()));
    }
}

#[test]
fn ci_frx_5_copies_are_acks_of_what_the_host_said_last_even_if_that_was_data() {
    let mut drill = receiving(Config::strict());
    let mut answer = data(0, 300);
    (answer.ack, answer.window) = (2000, 40);
    drill.host(&answer).skip().notice(COMPLETE).gives(&["radio ack 2000 win 40"; 3]);
    assert_eq!(drill.last().flags, Flags::ACK);
    let copy = drill.sink.sent.last().expect("a copy").1.clone();
    assert_eq!(copy.ip.traffic_class & 0b11, 0, "an ACK alone is not ECT");
    assert_eq!(copy.as_tcp().map(|tcp| tcp.seq), Some(drill.last().seq));
}

#[test]
fn ci_frx_6_nothing_is_sent_if_nothing_is_outstanding_or_came_lately() {
    let mut drill = sending(Config::modern());
    drill.air(&ack(3000)).skip().notice(COMPLETE).gives(&[]);
    let mut drill = receiving(Config::modern());
    let limit = Duration::from_secs(10);
    drill.after(limit).notice(COMPLETE).gives(&["radio ack 2000 win 50"; 4]);
    drill.after(Duration::from_nanos(1)).notice(COMPLETE).gives(&[]);
}

#[test]
fn ci_frx_7_every_open_connection_is_signalled_and_none_that_was_reset() {
    let mut drill = receiving(Config::strict());
    for port in [2, 3, 4] {
        let (mut segment, mut answer) = (data(0, 500), ack(500));
        (segment.port, answer.port) = (port, port);
        drill.air(&segment).host(&answer);
    }
    let mut reset = ack(500);
    (reset.port, reset.flags) = (3, Flags::RST.with(Flags::ACK));
    drill.air(&reset).skip().notice(COMPLETE);
    let lines = ["radio ack 2000 win 50", "radio 2: ack 500 win 50", "radio 4: ack 500 win 50"];
    let lines: Vec<&str> = lines.into_iter().flat_map(|line| [line; 3]).collect();
    drill.gives(&lines);
}

#[test]
fn ci_frx_8_a_handoff_that_loses_nothing_sets_nothing_off() {
    for config in [Config::strict(), Config::modern()] {
        let mut drill = receiving(config);
        drill.notice(Notice::Handoff(Handoff::GreetingAcknowledged, Losses::None));
        drill.notice(Notice::Handoff(Handoff::Complete, Losses::None)).gives(&[]);
        assert_eq!(drill.engine.statistics().lossless, 1);
    }
}

#[test]
fn ci_frx_10_the_base_station_only_forwards() {
    for name in ["fast-retransmit", "fast-retransmit-strict", "fast-retransmit-marked"] {
        let stack = Stack::named(name).expect(name);
        assert!(matches!(stack.station, schemes::Scheme::Plain(_)));
        assert!(stack.mobile.is_some());
    }
}

#[test]
fn mod_3_copies_have_the_timestamps_of_the_last_ack_and_only_blocks_above_it() {
    let mut drill = Drill::new(Agent::new(Config::modern()));
    let mut answer = ack(1000);
    answer.timestamps = Some(Timestamps { value: 77, echo: 33 });
    // The first block tells of a duplicate (RFC 2883), which is told once.
    answer.sack = vec![(0, 500), (2000, 3000)];
    drill.air(&data(0, 1000)).host(&answer).skip();
    drill.notice(COMPLETE).gives(&["radio ack 1000 win 50 sack 2000..3000 ts 77 33"; 4]);
}

#[test]
fn mod_13_no_ack_is_made_for_a_host_that_signs_its_segments() {
    let mut drill = Drill::new(Agent::new(Config::modern()));
    let mut answer = ack(1000);
    answer.option = [[19, 18].as_slice(), &[0; 16]].concat();
    drill.air(&data(0, 1000)).host(&answer).skip();
    drill.notice(COMPLETE).gives(&[]);
}

#[test]
fn mod_14_a_flood_takes_no_more_than_its_places_and_displaces_nobody_who_is_active() {
    let config = Config { connections_max: 8, ..Config::modern() };
    let mut drill = receiving(config);
    for port in 2..2000 {
        let mut segment = data(0, 1);
        segment.port = port;
        drill.air(&segment);
    }
    assert_eq!(drill.engine.connections(), 8);
    assert_eq!(drill.sink.sent.len(), 3 + 1998, "all pass");
    drill.skip().notice(COMPLETE).gives(&["radio ack 2000 win 50"; 4]);
    // After a minute of silence a place is free again.
    let mut segment = data(0, 1);
    segment.port = 5000;
    drill.after(Duration::from_secs(60));
    (0..8).for_each(|_| {
        drill.air(&segment);
    });
    assert_eq!(drill.engine.connections(), 8);
}

#[test]
fn mod_14_what_is_kept_is_bounded_and_the_oldest_stays() {
    let config = Config { kept_bytes_max: 2500, ..Config::modern() };
    let mut drill = sending(config);
    assert_eq!(drill.engine.held_bytes(), 2000);
    drill.notice(COMPLETE).gives(&["radio 0..1000"]);
    // What was not kept cannot be sent.
    drill.air(&ack(2000)).skip().notice(COMPLETE).gives(&[]);
    // What was sent again is the oldest, and kept.
    drill.host(&data(2000, 1000)).skip().notice(COMPLETE).gives(&["radio 2000..3000"]);
}

#[test]
fn snoop_gen_3_forgetting_all_state_harms_nobody() {
    let mut drill = receiving(Config::modern());
    drill.notice(Notice::Forget).notice(COMPLETE).gives(&[]);
    assert_eq!(drill.engine.connections(), 0);
}
