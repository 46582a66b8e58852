//! Drills of the sender that Linux has today, with SACK.

use crate::drill::Drill;
use tcp::{Config, Congestion};

const RTO: &str = "tcp retransmission";
const PROBE: &str = "tcp loss probe";
const WINDOW: &str = "tcp reordering window";

/// Segments of 1000 bytes, cwnd of ten, no timestamps. The handshake took 10 ms. Timers fire at
/// ticks of 4 ms, the tick after the next at the earliest.
fn linux() -> Config {
    let mss = 1000;
    Config { mss, timestamps: false, window_scale: None, ..Config::linux(Congestion::Cubic) }
}

/// So many bytes are written, and what cwnd lets out is sent; 10 ms go by.
fn sending(config: Config, bytes: u32) -> Drill {
    let mut drill = Drill::connected(config);
    drill.write(bytes);
    drill.sent();
    drill.after_ms(10);
    drill
}

#[test]
fn rfc_8985_6_2_three_segments_sacked_show_a_loss_at_once() {
    let mut drill = sending(linux(), 20_000);
    drill.sack(1, &[(1001, 2001)]);
    drill.sends(&[". 10001:11001 ack 1"]);
    drill.after_ms(2);
    drill.sack(1, &[(1001, 3001)]);
    drill.sends(&[". 11001:12001 ack 1"]);
    drill.sack(1, &[(1001, 4001)]);
    drill.sends(&[". 1:1001 ack 1"]);
    assert_eq!(drill.end.ssthresh(), 7000, "CUBIC leaves seven tenths");
}

#[test]
fn rfc_8985_6_2_one_segment_sacked_shows_a_loss_after_the_reordering_window() {
    let mut drill = sending(linux(), 20_000);
    drill.sack(1, &[(1001, 2001)]);
    drill.sends(&[". 10001:11001 ack 1"]);
    // A quarter of 10 ms and 2 ms more are two ticks.
    drill.fires(WINDOW, 12);
    drill.sends(&[". 1:1001 ack 1"]);
    assert_eq!(drill.end.ssthresh(), 7000);
}

#[test]
fn rfc_8985_6_2_what_an_ack_takes_was_not_overtaken_by_what_it_sacks() {
    let mut drill = sending(linux(), 20_000);
    // A delayed ACK of the first segment goes out when the third arrives.
    drill.sack(1001, &[(2001, 3001)]);
    drill.sent();
    drill.sack(1001, &[(2001, 5001)]);
    let again = drill.sent();
    let again = again.iter().filter(|packet| packet.cause != sansio::Cause::Original);
    assert_eq!(again.count(), 1, "three segments SACKed, and nothing reordered: lost at once");
}

#[test]
fn rfc_8985_6_2_what_one_ack_sacks_did_not_overtake_each_other() {
    let mut drill = sending(linux(), 20_000);
    // The first ACKs were lost, or their blocks hidden; the latest block comes first (RFC 2018).
    drill.sack(1, &[(5001, 6001), (3001, 4001), (1001, 2001)]);
    let sent = drill.sent();
    let again = sent.iter().filter(|packet| packet.cause != sansio::Cause::Original).count();
    assert!(again >= 1, "three segments SACKed, and nothing reordered: lost at once");
}

#[test]
fn rfc_8985_6_2_a_segment_that_comes_within_the_reordering_window_is_not_lost() {
    let mut drill = sending(linux(), 20_000);
    drill.sack(1, &[(1001, 2001)]);
    drill.sent();
    drill.ack(2001);
    drill.after_ms(12);
    assert!(drill.sent().iter().all(|packet| packet.cause == sansio::Cause::Original));
    assert_eq!(drill.end.ssthresh(), u32::MAX);
}

#[test]
fn rfc_8985_6_2_a_repetition_that_is_lost_is_sent_again_without_a_timeout() {
    let mut drill = sending(linux(), 30_000);
    drill.sack(1, &[(1001, 4001)]);
    drill.sends(&[". 1:1001 ack 1"]);
    // The rest of the flight arrives, and lets out two new segments, which arrive as well.
    drill.sack(1, &[(1001, 10_001)]);
    drill.sent();
    drill.after_ms(11);
    drill.sack(1, &[(1001, 11_001)]);
    let sent = drill.sent();
    let again = sent.iter().filter(|packet| packet.cause != sansio::Cause::Original).count();
    assert_eq!(again, 1, "what was sent after the repetition has arrived");
}

#[test]
fn rfc_8985_7_2_a_flight_without_an_answer_is_probed_with_new_data_once() {
    let mut drill = sending(linux(), 20_000);
    // 22 ms after sending: two round trips and 2 ms more.
    drill.fires(PROBE, 16);
    drill.sends(&[". 10001:11001 ack 1"]);
    drill.fires(RTO, 216);
    drill.sends(&[". 1:1001 ack 1"]);
    assert_eq!((drill.end.cwnd(), drill.end.ssthresh()), (1000, 7000));
}

#[test]
fn rfc_8985_7_2_while_a_probe_is_out_another_leaves_what_is_left_of_the_timeout() {
    let mut drill = sending(linux(), 20_000);
    drill.fires(PROBE, 16);
    drill.sends(&[". 10001:11001 ack 1"]);
    drill.after_ms(100);
    // The oldest left was sent 126 ms ago; the timeout is 224.5 ms now, two round trips are 49 ms.
    drill.ack(2001);
    drill.sent();
    drill.fires(PROBE, 56);
    drill.fires(RTO, 48);
    drill.sends(&[". 2001:3001 ack 1"]);
}

#[test]
fn rfc_8985_7_3_without_new_data_the_last_segment_is_the_probe() {
    let mut drill = sending(linux(), 3000);
    drill.fires(PROBE, 16);
    drill.sends(&["P. 2001:3001 ack 1"]);
    drill.after_ms(10);
    drill.sack(1, &[(2001, 3001)]);
    drill.sends(&[". 1:1001 ack 1"]);
}

/// The kernel's probe is no retransmission to its account: with one loss and one probe there would
/// be nothing left to repair.
#[test]
fn rfc_8985_7_3_a_probe_that_repeats_and_arrives_lets_the_one_loss_be_repaired_at_once() {
    let mut drill = sending(linux(), 2000);
    drill.fires(PROBE, 16);
    drill.sends(&["P. 1001:2001 ack 1"]);
    drill.after_ms(10);
    drill.sack(1, &[(1001, 2001)]);
    drill.sends(&[". 1:1001 ack 1"]);
}

#[test]
fn rfc_8985_7_4_a_loss_that_the_probe_repaired_counts_as_one() {
    for (is_needless, ssthresh) in [(false, 7000), (true, u32::MAX)] {
        let mut drill = sending(linux(), 3000);
        drill.fires(PROBE, 16);
        drill.sent();
        drill.ack(3001);
        if is_needless {
            drill.sack(3001, &[(2001, 3001)]);
        }
        drill.write(1000);
        drill.sends(&["P. 3001:4001 ack 1"]);
        drill.ack(4001);
        assert_eq!(drill.end.ssthresh(), ssthresh, "D-SACK: {is_needless}");
    }
}

#[test]
fn rfc_5682_3_an_original_sacked_after_the_timeout_takes_it_back() {
    let mut drill = sending(linux(), 20_000);
    drill.fires(PROBE, 16);
    drill.sent();
    drill.fires(RTO, 216);
    drill.sends(&[". 1:1001 ack 1"]);
    drill.sack(1, &[(1001, 2001)]);
    assert_eq!((drill.end.cwnd(), drill.end.ssthresh()), (10_000, u32::MAX));
}

#[test]
fn rfc_3708_d_sacks_of_all_that_was_sent_again_take_the_reduction_back() {
    let mut drill = sending(linux(), 20_000);
    drill.sack(1, &[(1001, 4001)]);
    drill.sends(&[". 1:1001 ack 1"]);
    drill.sack(4001, &[(1, 1001)]);
    assert!(drill.end.cwnd() >= 10_000, "cwnd {}", drill.end.cwnd());
    assert_eq!(drill.end.ssthresh(), u32::MAX);
}

#[test]
fn rfc_3522_an_echo_from_before_the_repetition_takes_the_reduction_back() {
    for is_late in [true, false] {
        let mut drill = Drill::connected(Config { mss: 1012, timestamps: true, ..linux() });
        drill.write(20_000);
        let stamp = |drill: &mut Drill| {
            let packet = drill.sent().pop().expect("something was sent");
            packet.as_tcp().and_then(|header| header.options.timestamps()).expect("TS").value
        };
        drill.echo = stamp(&mut drill);
        drill.after_ms(12);
        drill.sack(1, &[(1001, 4001)]);
        assert_eq!(drill.end.ssthresh(), 7000);
        let resent = stamp(&mut drill);
        drill.echo = if is_late { drill.echo } else { resent };
        drill.ack(4001);
        assert_eq!(drill.end.ssthresh() == u32::MAX, is_late);
    }
}

#[test]
fn rfc_2883_a_segment_that_arrives_twice_is_told_once() {
    let mut drill = Drill::connected(linux());
    let blocks = |drill: &mut Drill| {
        let packet = drill.sent().pop().expect("an ACK");
        let header = packet.as_tcp().expect("TCP");
        header.options.sack_blocks().map(|block| block.end.since(block.start)).collect::<Vec<_>>()
    };
    drill.data(1, 1000, 1);
    assert_eq!(blocks(&mut drill), []);
    drill.data(1, 1000, 1);
    assert_eq!(blocks(&mut drill), [1000]);
    drill.data(2001, 500, 1);
    assert_eq!(blocks(&mut drill), [500]);
    drill.data(2001, 500, 1);
    assert_eq!(blocks(&mut drill), [500, 500], "the repetition, and what waits");
}
