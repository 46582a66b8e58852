//! Drills of the sender that Linux calls `reno`, without SACK.

use crate::drill::Drill;
use tcp::{Config, Congestion};

const RTO: &str = "tcp retransmission";

/// Segments of 1000 bytes, cwnd of ten, no timestamps: the handshake took 10 ms, so the timer
/// fires after 210.
fn linux() -> Config {
    let mss = 1000;
    Config { mss, timestamps: false, window_scale: None, ..Config::linux(Congestion::LinuxReno) }
}

/// Ten segments are under way and ten wait.
fn sending(config: Config) -> Drill {
    let mut drill = Drill::connected(config);
    drill.write(20_000);
    drill
}

#[test]
fn rfc_6937_a_recovery_sends_one_segment_for_two_that_arrive() {
    let mut drill = sending(linux());
    drill.sent();
    drill.acks(1, 2);
    drill.sends(&[". 10001:11001 ack 1", ". 11001:12001 ack 1"]);
    drill.ack(1);
    drill.sends(&[". 1:1001 ack 1"]);
    drill.ack(1);
    drill.sends(&[]);
    drill.ack(1);
    drill.sends(&[". 12001:13001 ack 1"]);
    drill.acks(1, 2);
    drill.sends(&[". 13001:14001 ack 1"]);
    // All that was sent when the loss showed: cwnd is ssthresh once something above is, too.
    drill.ack(12_001);
    drill.ack(13_001);
    assert_eq!((drill.end.cwnd(), drill.end.ssthresh()), (5000, 5000));
}

#[test]
fn a_recovery_that_has_lost_more_than_ssthresh_waits_for_the_timer() {
    let mut drill = sending(linux());
    drill.sent();
    // Segments 2 to 4 arrived, and 1 when sent again: 5 to 12 are lost, more than ssthresh.
    drill.acks(1, 3);
    drill.sent();
    drill.ack(4001);
    drill.sends(&[]);
    drill.fires(RTO, 210);
    drill.sends(&[". 4001:5001 ack 1"]);
    assert_eq!((drill.end.cwnd(), drill.end.ssthresh()), (1000, 5000), "halved once");
    drill.ack(5001);
    drill.sends(&[". 5001:6001 ack 1", ". 6001:7001 ack 1"]);
}

#[test]
fn rfc_3522_an_echo_from_before_the_retransmission_takes_the_reduction_back() {
    for is_late in [true, false] {
        let mut drill = sending(Config { mss: 1012, timestamps: true, ..linux() });
        let stamp = |drill: &mut Drill| {
            let packet = drill.sent().pop().expect("something was sent");
            packet.as_tcp().and_then(|header| header.options.timestamps()).expect("TS").value
        };
        drill.echo = stamp(&mut drill);
        drill.after_ms(30);
        drill.acks(1, 3);
        assert_eq!(drill.end.ssthresh(), 5000);
        let resent = stamp(&mut drill);
        drill.echo = if is_late { drill.echo } else { resent };
        drill.ack(1001);
        if is_late {
            assert!(drill.end.cwnd() >= 10_000 && drill.end.ssthresh() == u32::MAX);
            assert!(drill.sent().iter().all(|packet| packet.cause == sansio::Cause::Original));
        } else {
            assert!(drill.end.cwnd() < 10_000 && drill.end.ssthresh() == 5000);
        }
    }
}

#[test]
fn rfc_5682_an_original_that_arrives_after_the_timeout_takes_it_back() {
    let mut drill = sending(linux());
    drill.sent();
    drill.fires(RTO, 210);
    drill.sends(&[". 1:1001 ack 1"]);
    drill.ack(1001);
    drill.sends(&[". 10001:11001 ack 1", ". 11001:12001 ack 1"]);
    assert_eq!(drill.end.cwnd(), 2000);
    drill.ack(2001);
    assert!(drill.end.cwnd() >= 10_000, "cwnd {}", drill.end.cwnd());
    assert!(drill.sent().iter().all(|packet| packet.cause == sansio::Cause::Original));
}

#[test]
fn rfc_5682_a_duplicate_ack_after_the_timeout_shows_that_it_was_right() {
    let mut drill = sending(linux());
    drill.sent();
    drill.fires(RTO, 210);
    drill.ack(1001);
    drill.sent();
    drill.ack(1001);
    drill.sends(&[". 1001:2001 ack 1"]);
    assert_eq!((drill.end.cwnd(), drill.end.ssthresh()), (2000, 5000));
}
