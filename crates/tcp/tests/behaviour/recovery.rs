//! Drills of the sender's recoveries from loss (BASE-1 to BASE-5), one sender after the other.

use crate::drill::Drill;
use crate::sending::{RTO, with_window};
use sansio::Cause;
use tcp::{Config, Congestion};

#[test]
fn ci_tcp_6_base_1_tahoe_resends_at_the_third_dupack_and_slow_starts() {
    let mut drill = Drill::connected(with_window(Congestion::Tahoe, 8));
    drill.write(20_000);
    assert_eq!(drill.sent().len(), 8);
    drill.acks(1, 2);
    drill.sends(&[]);
    drill.ack(1);
    drill.sends(&[". 1:1001 ack 1"]);
    assert_eq!((drill.end.cwnd(), drill.end.ssthresh()), (1000, 4000));
    drill.acks(1, 4);
    drill.sends(&[]);
    // Segment 3 was lost too: no timeout is needed, it is sent as ACKs arrive.
    drill.ack(2001);
    drill.sends(&[". 2001:3001 ack 1", ". 3001:4001 ack 1"]);
    assert_eq!(drill.end.statistics().timeouts, 0);
}

#[test]
fn base_2_reno_inflates_and_a_new_ack_ends_recovery() {
    let mut drill = Drill::connected(with_window(Congestion::Reno, 8));
    drill.write(20_000);
    drill.sent();
    drill.acks(1, 3);
    drill.sends(&[". 1:1001 ack 1"]);
    assert_eq!((drill.end.cwnd(), drill.end.ssthresh()), (7000, 4000));
    drill.acks(1, 1);
    drill.sends(&[]);
    drill.acks(1, 1);
    drill.sends(&[". 8001:9001 ack 1"]);
    drill.acks(1, 2);
    drill.sends(&[". 9001:10001 ack 1", ". 10001:11001 ack 1"]);
    drill.ack(8001);
    assert_eq!(drill.end.cwnd(), 4250, "ssthresh, and opened once");
    drill.sends(&[". 11001:12001 ack 1"]);
}

#[test]
fn base_2_three_losses_in_a_window_cost_one_retransmission_and_a_timeout() {
    let mut drill = Drill::connected(with_window(Congestion::Reno, 16));
    drill.write(40_000);
    drill.sent();
    // 1, 3 and 5 are lost: thirteen others arrive.
    drill.acks(1, 13);
    assert_eq!(drill.end.ssthresh(), 8000);
    let again = |drill: &mut Drill| {
        let sent = drill.sent();
        sent.iter().filter(|packet| packet.cause == Cause::EndToEndRetransmission).count()
    };
    assert_eq!(again(&mut drill), 1);
    drill.acks(2001, 4);
    assert_eq!(again(&mut drill), 0, "the dupacks are of packets sent before");
    drill.after_ms(1000);
    assert_eq!(drill.end.statistics().timeouts, 1);
    assert_eq!(drill.end.statistics().fast_retransmits, 1);
    assert_eq!(drill.end.ssthresh(), 4000, "halved twice");
}

#[test]
fn base_2_bsd_s_reno_retransmits_fast_again_for_the_second_hole_of_a_window() {
    let bsd = Config::bsd_1995(Congestion::Reno).repeated_fast_retransmit;
    let config = Config { repeated_fast_retransmit: bsd, ..with_window(Congestion::Reno, 16) };
    let mut drill = Drill::connected(config);
    drill.write(40_000);
    drill.sent();
    // 1 and 3 are lost: fourteen others arrive, and six that the inflation lets out.
    drill.acks(1, 14);
    let sent = drill.sent();
    assert_eq!((sent.len(), drill.end.statistics().fast_retransmits), (7, 1));
    drill.acks(2001, 1 + 2);
    drill.sends(&[]);
    drill.acks(2001, 1);
    drill.sends(&[". 2001:3001 ack 1"]);
    assert_eq!((drill.end.cwnd(), drill.end.ssthresh()), (7000, 4000), "halved again");
    drill.ack(22_001);
    assert_eq!(drill.end.statistics().fast_retransmits, 2);
    drill.after_ms(900);
    assert_eq!(drill.end.statistics().timeouts, 0);
}

#[test]
fn base_3_n_losses_in_a_window_take_n_round_trips() {
    let mut drill = Drill::connected(with_window(Congestion::NewReno, 16));
    drill.write(40_000);
    drill.sent();
    // 1, 3, 5 and 7 are lost: twelve others arrive.
    drill.acks(1, 12);
    let again = |drill: &mut Drill| {
        let sent = drill.sent();
        sent.iter().filter(|packet| packet.cause == Cause::EndToEndRetransmission).count()
    };
    assert_eq!(again(&mut drill), 1);
    for acked in [2001, 4001, 6001] {
        drill.after_ms(100);
        drill.ack(acked);
        assert_eq!(again(&mut drill), 1, "a partial ACK, one segment, a round trip");
        drill.acks(acked, 2);
        assert_eq!(again(&mut drill), 0);
    }
    drill.after_ms(100);
    drill.ack(16_001);
    let statistics = drill.end.statistics();
    assert_eq!((statistics.fast_retransmits, statistics.timeouts), (1, 0));
    assert_eq!((drill.end.cwnd(), drill.end.ssthresh()), (8125, 8000), "halved once, and opened");
}

/// Fall and Floyd 1996: the pipe of ten packets less three falls by one with each duplicate ACK and
/// lets one out when it is below five.
#[test]
fn base_5_sack1_counts_its_pipe_down_before_it_sends() {
    let config = Config { sack: true, ..with_window(Congestion::Sack1, 10) };
    let mut drill = Drill::connected(config);
    drill.write(30_000);
    assert_eq!(drill.sent().len(), 10);
    // 1 and 3 are lost.
    drill.sack(1, &[(1001, 2001)]);
    drill.sack(1, &[(3001, 4001), (1001, 2001)]);
    drill.sends(&[]);
    drill.sack(1, &[(3001, 5001), (1001, 2001)]);
    drill.sends(&[". 1:1001 ack 1"]);
    // Pipe 7; 6; 5.
    drill.sack(1, &[(3001, 6001), (1001, 2001)]);
    drill.sack(1, &[(3001, 7001), (1001, 2001)]);
    drill.sends(&[]);
    // 4: the hole, which makes it 5 again.
    drill.sack(1, &[(3001, 8001), (1001, 2001)]);
    drill.sends(&[". 2001:3001 ack 1"]);
    drill.sack(1, &[(3001, 9001), (1001, 2001)]);
    drill.sends(&[". 10001:11001 ack 1"]);
    drill.sack(1, &[(3001, 10_001), (1001, 2001)]);
    drill.sends(&[". 11001:12001 ack 1"]);
    // A partial ACK takes two.
    drill.sack(2001, &[(3001, 10_001)]);
    drill.sends(&[". 12001:13001 ack 1", ". 13001:14001 ack 1"]);
    drill.ack(10_001);
    assert_eq!(drill.end.cwnd(), 5000, "the ACK that ends recovery does not open it");
    assert_eq!(drill.end.statistics().timeouts, 0);
}

#[test]
fn base_5_more_than_half_of_a_window_lost_ends_sack1_in_a_timeout() {
    let config = Config { sack: true, ..with_window(Congestion::Sack1, 16) };
    let mut drill = Drill::connected(config);
    drill.write(60_000);
    drill.sent();
    // 1 to 10 are lost, 11 to 16 arrive: the pipe of 16 less 3 only falls to 10, above cwnd of 8.
    for arrived in 11..=16 {
        drill.sack(1, &[(10_001, arrived * 1000 + 1)]);
    }
    drill.sends(&[". 1:1001 ack 1"]);
    drill.sack(1001, &[(10_001, 16_001)]);
    // Two less is 8: still no room, and nothing left in the network to answer.
    drill.sends(&[]);
    drill.fires(RTO, 1000);
    assert_eq!(drill.end.statistics().timeouts, 1);
}

#[test]
fn base_5_sack_fills_every_hole_within_a_round_trip() {
    let config = Config { sack: true, ..with_window(Congestion::Sack, 10) };
    let mut drill = Drill::connected(config);
    drill.write(10_000);
    assert_eq!(drill.sent().len(), 10);
    // 1, 3 and 5 are lost.
    drill.sack(1, &[(1001, 2001)]);
    drill.sack(1, &[(3001, 4001), (1001, 2001)]);
    drill.sends(&[]);
    drill.sack(1, &[(5001, 6001), (3001, 4001), (1001, 2001)]);
    drill.sends(&[". 1:1001 ack 1"]);
    drill.sack(1, &[(5001, 7001), (3001, 4001), (1001, 2001)]);
    drill.sends(&[]);
    drill.sack(1, &[(5001, 8001), (3001, 4001), (1001, 2001)]);
    // Now the hole below 5001 counts as lost as well, and the pipe has room for two.
    drill.sends(&[". 2001:3001 ack 1", ". 4001:5001 ack 1"]);
    drill.sack(1, &[(5001, 9001), (3001, 4001), (1001, 2001)]);
    drill.sack(2001, &[(5001, 10_001), (3001, 4001)]);
    drill.sack(4001, &[(5001, 10_001)]);
    drill.ack(10_001);
    drill.sends(&[]);
    assert_eq!(drill.end.statistics().timeouts, 0);
    assert_eq!(drill.end.cwnd(), 5000);
}

#[test]
fn base_5_rfc_2018_8_a_timeout_forgets_the_scoreboard() {
    let config = Config { sack: true, ..with_window(Congestion::Sack, 4) };
    let mut drill = Drill::connected(config);
    drill.write(4000);
    drill.sent();
    drill.sack(1, &[(1001, 3001)]);
    drill.fires(RTO, 1000);
    drill.sends(&[". 1:1001 ack 1"]);
    drill.ack(1001);
    drill.sends(&[". 1001:2001 ack 1", ". 2001:3001 ack 1"]);
}

#[test]
fn base_5_going_back_skips_what_blocks_after_the_timeout_show() {
    let config = Config { sack: true, ..with_window(Congestion::Sack, 4) };
    let mut drill = Drill::connected(config);
    drill.write(4000);
    drill.sent();
    drill.fires(RTO, 1000);
    drill.sends(&[". 1:1001 ack 1"]);
    drill.sack(1001, &[(2001, 3001)]);
    drill.sends(&[". 1001:2001 ack 1", "P. 3001:4001 ack 1"]);
}
