//! Drills of opening, closing, resetting, and of the receiver.

use crate::drill::{Drill, PEER_ISN};
use sansio::{DropReason, Duration, Engine};
use tcp::{Config, Congestion, DelayedAck, Reading, State};
use wire::tcp::{Flags, SackBlock, Seq, kind};

const SYN_ACK: Flags = Flags::SYN.with(Flags::ACK);
const FIN_ACK: Flags = Flags::FIN.with(Flags::ACK);

fn plain() -> Config {
    Config { receive_buffer_bytes: 60_000, ..Config::ns2(Congestion::Reno) }
}

#[test]
fn a_client_opens_retries_and_is_refused() {
    let mut drill = Drill::client(plain(), Seq(9));
    drill.end.open(&mut drill.log, drill.now);
    drill.sends(&["S 0"]);
    drill.fires("tcp retransmission", 6000);
    drill.sends(&["S 0"]);
    drill.segment(Flags::RST.with(Flags::ACK), 0, 7, 0);
    assert_eq!(drill.end.state(), State::SynSent, "not of our SYN");
    drill.segment(Flags::RST.with(Flags::ACK), 0, 1, 0);
    drill.sends(&[]);
    assert_eq!(drill.end.state(), State::Closed);
}

#[test]
fn a_server_answers_a_syn_and_listens_again_after_a_reset() {
    let mut drill = Drill::server(plain(), Seq(9));
    drill.segment(Flags::ACK, 1, 1, 0);
    drill.sends(&["R 1"]);
    for _ in 0..2 {
        drill.segment(Flags::SYN, 0, 0, 0);
        drill.sends(&["S. 0 ack 1"]);
        assert_eq!(drill.end.state(), State::SynReceived);
        drill.segment(Flags::RST, 1, 0, 0);
        assert_eq!(drill.end.state(), State::Listen);
    }
    drill.segment(Flags::SYN, 0, 0, 0);
    drill.sent();
    drill.segment(Flags::ACK, 1, 5, 0);
    drill.sends(&["R 5"]);
    drill.segment(Flags::ACK, 1, 1, 0);
    assert_eq!(drill.end.state(), State::Established);
}

#[test]
fn simultaneous_open() {
    let mut drill = Drill::client(plain(), Seq(9));
    drill.end.open(&mut drill.log, drill.now);
    drill.segment(Flags::SYN, 0, 0, 0);
    drill.sends(&["S 0", "S. 0 ack 1"]);
    drill.segment(Flags::ACK, 1, 1, 0);
    assert_eq!(drill.end.state(), State::Established);
}

#[test]
fn closing_first_goes_through_fin_wait_and_time_wait() {
    let mut drill = Drill::connected(Config { time_wait: Duration::from_secs(2), ..plain() });
    drill.write(500);
    drill.close();
    drill.sends(&["P. 1:501 ack 1", "F. 501 ack 1"]);
    drill.ack(502);
    assert_eq!(drill.end.state(), State::FinWait2);
    // Half-closed: the peer may still send.
    drill.data(1, 100, 502);
    drill.sends(&[". 502 ack 101"]);
    drill.segment(FIN_ACK, 101, 502, 0);
    drill.sends(&[". 502 ack 102"]);
    assert_eq!(drill.end.state(), State::TimeWait);
    drill.after_ms(1000);
    drill.segment(FIN_ACK, 101, 502, 0);
    drill.sends(&[". 502 ack 102"]);
    drill.fires("tcp time-wait", 2000);
    assert_eq!(drill.end.state(), State::Closed);
    assert!(drill.end.is_at_end());
}

#[test]
fn a_fin_travels_on_the_last_segment_if_it_waits_for_it() {
    let config = Config { initial_window_segments: 1, ..plain() };
    let mut drill = Drill::connected(config);
    drill.write(1500);
    drill.close();
    drill.sends(&[". 1:1001 ack 1"]);
    drill.ack(1001);
    drill.sends(&["FP. 1001:1501 ack 1"]);
    drill.ack(1501);
    assert_eq!(drill.end.state(), State::FinWait1);
    drill.fires("tcp retransmission", 1000);
    drill.sends(&["F. 1501 ack 1"]);
    drill.ack(1502);
    assert_eq!(drill.end.state(), State::FinWait2);
}

#[test]
fn closing_second_ends_without_waiting() {
    let mut drill = Drill::connected(plain());
    drill.segment(FIN_ACK, 1, 1, 0);
    drill.sends(&[". 1 ack 2"]);
    assert_eq!(drill.end.state(), State::CloseWait);
    drill.write(100);
    drill.close();
    drill.sends(&["P. 1:101 ack 2", "F. 101 ack 2"]);
    assert_eq!(drill.end.state(), State::LastAck);
    drill.ack(102);
    drill.segment(Flags::ACK, 2, 102, 0);
    assert_eq!(drill.end.state(), State::Closed);
}

#[test]
fn closing_at_once_goes_through_closing() {
    let mut drill = Drill::connected(plain());
    drill.close();
    drill.segment(FIN_ACK, 1, 1, 0);
    drill.sends(&["F. 1 ack 1", ". 2 ack 2"]);
    assert_eq!(drill.end.state(), State::Closing);
    drill.segment(Flags::ACK, 2, 2, 0);
    assert_eq!(drill.end.state(), State::TimeWait);
}

#[test]
fn rfc_5961_only_the_exact_number_resets_and_a_syn_is_asked_about() {
    let mut drill = Drill::connected(plain());
    drill.segment(Flags::RST, 500, 0, 0);
    drill.sends(&[". 1 ack 1"]);
    drill.after_ms(500);
    drill.segment(SYN_ACK, 700, 1, 0);
    drill.sends(&[". 1 ack 1"]);
    drill.segment(Flags::RST, 99_999, 0, 0);
    drill.sends(&[]);
    assert_eq!(drill.end.state(), State::Established);
    drill.segment(Flags::RST, 1, 0, 0);
    assert_eq!(drill.end.state(), State::Closed);
    drill.data(1, 10, 1);
    drill.sends(&["R 1"]);
}

#[test]
fn an_abort_tells_the_peer_and_stops_everything() {
    let mut drill = Drill::connected(plain());
    drill.write(5000);
    drill.sent();
    drill.end.abort(&mut drill.log, drill.now);
    drill.sends(&["R. 2001 ack 1"]);
    assert!(drill.end.next_deadline().is_none());
    assert_eq!(drill.end.state(), State::Closed);
}

#[test]
fn empty_segments_outside_the_window_are_answered_at_a_bounded_rate() {
    let mut drill = Drill::connected(plain());
    for _ in 0..10 {
        drill.segment(Flags::ACK, 100_000, 1, 0);
    }
    drill.sends(&[". 1 ack 1"]);
    drill.ack(5_000);
    drill.sends(&[]);
    drill.after_ms(500);
    drill.ack(5_000);
    drill.sends(&[". 1 ack 1"]);
    assert!(drill.log.dropped.contains(&DropReason::NotAcceptable));
}

#[test]
fn every_second_segment_is_acknowledged_or_a_lone_one_later() {
    let delayed_ack = DelayedAck::Within(Duration::from_millis(200));
    let mut drill = Drill::connected(Config { delayed_ack, ..plain() });
    drill.data(1, 100, 1);
    drill.data(101, 100, 1);
    drill.sends(&[". 1 ack 201"]);
    drill.data(201, 100, 1);
    drill.fires("tcp delayed ack", 200);
    drill.sends(&[". 1 ack 301"]);
    // Beyond a hole, and filling it: at once (RFC 5681, 4.2).
    drill.data(401, 100, 1);
    drill.sends(&[". 1 ack 301"]);
    drill.data(301, 100, 1);
    drill.sends(&[". 1 ack 501"]);
    drill.data(501, 100, 1);
    drill.write(50);
    drill.sends(&["P. 1:51 ack 601"]);
    assert!(drill.end.next_deadline().is_none_or(|deadline| deadline.timer != "tcp delayed ack"));
}

#[test]
fn overlaps_and_old_bytes_are_cut_off() {
    let mut drill = Drill::connected(plain());
    drill.data(1, 100, 1);
    drill.data(51, 100, 1);
    drill.data(1, 100, 1);
    drill.sends(&[". 1 ack 101", ". 1 ack 151", ". 1 ack 151"]);
    let delivered: Vec<u32> = drill.log.delivered.iter().map(|payload| payload.len()).collect();
    assert_eq!(delivered, [100, 50]);
    assert_eq!(drill.end.statistics().duplicate_segments_received, 1);
}

#[test]
fn sack_blocks_report_what_is_beyond_the_hole() {
    let mut drill = Drill::connected(Config { sack: true, ..plain() });
    drill.data(101, 100, 1);
    drill.data(301, 100, 1);
    let sent = drill.sent();
    let blocks: Vec<SackBlock> = sent[1].as_tcp().expect("TCP").options.sack_blocks().collect();
    let block = |start, end| SackBlock { start: PEER_ISN + start, end: PEER_ISN + end };
    assert_eq!(blocks, [block(301, 401), block(101, 201)]);
}

#[test]
fn paws_lets_go_of_old_timestamps_except_on_a_reset() {
    let mut drill = Drill::connected(Config { timestamps: true, ..plain() });
    drill.clock = Some(5_010);
    drill.data(1, 100, 1);
    drill.sends(&[". 1 ack 101"]);
    drill.clock = Some(5_009);
    drill.data(101, 100, 1);
    drill.sends(&[". 1 ack 101"]);
    drill.clock = None;
    drill.data(101, 100, 1);
    assert_eq!(drill.end.statistics().bytes_received, 100);
    // The clock wraps: 2^31 and more ahead is behind.
    drill.clock = Some(5_010 + (1 << 31) - 1);
    drill.data(101, 100, 1);
    assert_eq!(drill.end.statistics().bytes_received, 200);
    drill.clock = Some(1);
    drill.segment(Flags::RST, 201, 0, 0);
    assert_eq!(drill.end.state(), State::Closed);
}

#[test]
fn paws_forgets_a_timestamp_after_24_days() {
    let mut drill = Drill::connected(Config { timestamps: true, ..plain() });
    drill.after_ms(24 * 24 * 3600 * 1000);
    drill.clock = Some(1);
    drill.data(1, 100, 1);
    assert_eq!(drill.end.statistics().bytes_received, 0);
    drill.until(drill.now + Duration::from_nanos(1));
    drill.data(1, 100, 1);
    assert_eq!(drill.end.statistics().bytes_received, 100);
}

#[test]
fn window_scaling_applies_after_the_handshake_and_only_if_both_offer_it() {
    let config = Config { window_scale: Some(14), receive_buffer_bytes: 1 << 20, ..plain() };
    let mut drill = Drill::server(config, Seq(9));
    let mut syn = drill.header(Flags::SYN, 0, 0);
    syn.options.push(&[kind::MSS, 4, 3, 232]).expect("room");
    let plain_syn = syn;
    syn.options.push(&[kind::WINDOW_SCALE, 3, 3]).expect("room");
    drill.inject(syn, 0);
    let answer = drill.sent();
    let header = answer[0].as_tcp().expect("TCP");
    assert_eq!(header.options.window_scale(), Some(5), "no coarser than the buffer needs");
    assert_eq!(header.window, 65_535, "never scaled on a SYN");
    drill.window = 500;
    drill.ack(1);
    drill.data(1, 100, 1);
    drill.write(20_000);
    let sent = drill.sent();
    assert_eq!(sent[0].as_tcp().expect("TCP").window, 1 << (20 - 5));
    // The peer's field of 500 means 4000 bytes, which cwnd reaches from two segments.
    drill.segment(Flags::ACK, 101, 2001, 0);
    assert_eq!(drill.end.flight(), 3000);
    drill.segment(Flags::ACK, 101, 5001, 0);
    assert_eq!((drill.end.flight(), drill.end.cwnd()), (4000, 4000));
    drill.segment(Flags::ACK, 101, 6001, 0);
    assert_eq!((drill.end.flight(), drill.end.cwnd()), (4000, 5000));

    let mut drill = Drill::server(config, Seq(9));
    drill.inject(plain_syn, 0);
    let answer = drill.sent();
    assert_eq!(answer[0].as_tcp().expect("TCP").options.window_scale(), None);
}

#[test]
fn a_window_that_is_not_read_closes_and_reading_tells_the_peer() {
    let config = Config { reading: Reading::Manual, receive_buffer_bytes: 2000, ..plain() };
    let mut drill = Drill::connected(config);
    let window = |drill: &mut Drill| {
        let sent = drill.sent();
        sent.last().and_then(|packet| packet.as_tcp()).map(|header| header.window)
    };
    drill.data(1, 1000, 1);
    assert_eq!(window(&mut drill), Some(1000));
    drill.data(1001, 1000, 1);
    assert_eq!(window(&mut drill), Some(0));
    drill.data(2001, 1, 1);
    assert_eq!(window(&mut drill), Some(0), "a probe is answered and its byte not taken");
    assert_eq!(drill.end.peek(500, 9999).len(), 1500, "peeking frees nothing");
    drill.end.consume(999, &mut drill.log, drill.now);
    assert_eq!(window(&mut drill), None, "too little to tell");
    drill.end.consume(1, &mut drill.log, drill.now);
    assert_eq!(window(&mut drill), Some(1000));
    assert_eq!(drill.end.readable(), 1000);
}

#[test]
fn the_send_buffer_takes_what_it_has_room_for() {
    let mut drill = Drill::connected(Config { send_buffer_bytes: 3000, ..plain() });
    drill.write(5000);
    assert_eq!((drill.end.unacknowledged(), drill.end.send_space()), (3000, 0));
    drill.ack(1001);
    assert_eq!(drill.end.send_space(), 1000);
}
