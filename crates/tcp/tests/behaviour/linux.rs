//! Drills of the sender that Linux calls `reno`, without SACK.

use crate::drill::Drill;
use tcp::{Config, Congestion};

const RTO: &str = "tcp retransmission";

/// Segments of 1000 bytes, cwnd of ten, no timestamps: the handshake took 10 ms, so the timer
/// fires after 210, at a tick of 4 ms of the kernel's.
fn linux() -> Config {
    let mss = 1000;
    Config {
        mss,
        timestamps: false,
        window_scale: None,
        sack: false,
        ..Config::linux(Congestion::LinuxReno)
    }
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
    drill.fires(RTO, 214);
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
    drill.fires(RTO, 214);
    drill.sends(&[". 1:1001 ack 1"]);
    drill.ack(1001);
    drill.sends(&[". 10001:11001 ack 1", "P. 11001:12001 ack 1"]);
    assert_eq!(drill.end.cwnd(), 2000);
    drill.ack(2001);
    assert!(drill.end.cwnd() >= 10_000, "cwnd {}", drill.end.cwnd());
    assert!(drill.sent().iter().all(|packet| packet.cause == sansio::Cause::Original));
}

#[test]
fn rfc_5682_a_duplicate_ack_after_the_timeout_shows_that_it_was_right() {
    let mut drill = sending(linux());
    drill.sent();
    drill.fires(RTO, 214);
    drill.ack(1001);
    drill.sent();
    drill.ack(1001);
    drill.sends(&[". 1001:2001 ack 1"]);
    assert_eq!((drill.end.cwnd(), drill.end.ssthresh()), (2000, 5000));
}

#[test]
fn tcp_tso_should_defer_what_is_less_than_a_pair_waits_for_an_ack_that_is_due() {
    let mut drill = Drill::connected(linux());
    drill.window = 10_000;
    drill.write(40_000);
    drill.sent();
    drill.after_ms(10);
    // The peer's window is what limits. Nothing was sent for 10 ms, so one segment goes out.
    drill.ack(1001);
    drill.sends(&[". 10001:11001 ack 1"]);
    drill.ack(2001);
    drill.sends(&[]);
    drill.ack(3001);
    drill.sends(&[". 11001:12001 ack 1", "P. 12001:13001 ack 1"]);
    drill.ack(4001);
    drill.sends(&[]);
    drill.after_ms(2);
    drill.ack(4001);
    drill.sends(&[". 13001:14001 ack 1"]);
}

#[test]
fn tcp_minshall_check_a_window_is_filled_to_its_end_behind_a_full_segment_only() {
    let mut drill = Drill::connected(linux());
    drill.window = 10_400;
    drill.write(40_000);
    drill.sent();
    drill.after_ms(10);
    drill.ack(1001);
    drill.sends(&[". 10001:11001 ack 1", "P. 11001:11401 ack 1"]);
    // With 400 bytes under way no second runt follows; 600 bytes never go alone.
    drill.after_ms(2);
    drill.window = 11_000;
    drill.ack(2001);
    drill.sends(&[". 11401:12401 ack 1"]);
    drill.after_ms(2);
    drill.ack(2001);
    drill.sends(&[]);
}

#[test]
fn tcp_tsq_write_a_full_device_lets_what_is_lost_go_before_what_is_new() {
    let mut drill = Drill::connected(linux());
    drill.write(60_000);
    drill.sent();
    drill.fires(RTO, 214);
    drill.sent();
    // Seven of ten arrived: cwnd is eight, ssthresh five, and three are lost.
    drill.ack(7001);
    let sent = drill.sent();
    let again = sent.iter().map(|packet| packet.cause == sansio::Cause::EndToEndRetransmission);
    let again: Vec<bool> = again.collect();
    assert_eq!(again[..5], [false, false, false, false, true], "two pairs, then the lost");
}
