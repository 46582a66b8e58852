//! Drills of the sender: congestion, loss, timers, windows.

use crate::drill::Drill;
use sansio::{Cause, Duration, EventKind, PacketRef};
use tcp::config::{IdleRestart, RepeatedFastRetransmit, Rto};
use tcp::{Config, Congestion, Endpoint, HandoffMark, State};
use wire::tcp::Seq;

pub(crate) const RTO: &str = "tcp retransmission";
const PERSIST: &str = "tcp persist";

/// Segments of 1000 bytes, cwnd of one, exact timers.
pub(crate) fn plain(congestion: Congestion) -> Config {
    Config {
        initial_window_segments: 1,
        initial_ssthresh_bytes: 64_000,
        receive_buffer_bytes: 60_000,
        rto: Rto::RFC_6298,
        timeouts_max: 6,
        ..Config::ns2(congestion)
    }
}

pub(crate) fn with_window(congestion: Congestion, segments: u32) -> Config {
    Config { initial_window_segments: segments, ..plain(congestion) }
}

pub(crate) fn timeouts(kind: &EventKind) -> Option<u32> {
    match kind {
        EventKind::Timeout { attempt, .. } => Some(*attempt),
        _ => None,
    }
}

#[test]
fn ci_tcp_2_two_ticks_fire_by_the_phase_of_the_tick() {
    for (phase, fires_ms) in [(0, 990), (300, 690), (489, 501)] {
        let config = Config { rto: Rto::bsd(2), ..plain(Congestion::Tahoe) };
        let mut drill = Drill::client(config, Seq(1_000));
        drill.end = drill.end.with_tick_phase(Duration::from_millis(phase));
        let mut drill = drill.open();
        // The handshake took 10 ms; its sample counts as one tick, so settle the estimate first.
        for byte in 1..40 {
            drill.write(1);
            drill.ack(byte + 1);
        }
        drill.sent();
        drill.write(1);
        drill.sends(&["P. 40:41 ack 1"]);
        drill.fires(RTO, fires_ms);
        drill.sends(&["P. 40:41 ack 1"]);
    }
}

#[test]
fn ci_tcp_3_timeouts_come_after_1_2_4_s_and_the_last_one_ends_the_connection() {
    let mut drill = Drill::connected(plain(Congestion::Tahoe));
    drill.write(1000);
    drill.sends(&["P. 1:1001 ack 1"]);
    for seconds in [1, 2, 4, 8, 16, 32] {
        drill.fires(RTO, seconds * 1000);
        drill.sends(&["P. 1:1001 ack 1"]);
    }
    assert_eq!(drill.events(timeouts), [1, 2, 3, 4, 5, 6]);
    drill.fires(RTO, 60_000);
    drill.sends(&["R. 1001 ack 1"]);
    assert_eq!(drill.end.state(), State::Closed);
    assert_eq!(drill.events(|kind| matches!(kind, EventKind::Limit { .. }).then_some(())).len(), 1);
}

#[test]
fn ci_tcp_4_a_timeout_leaves_one_segment_and_half_the_window() {
    let mut drill = Drill::connected(with_window(Congestion::Tahoe, 32));
    drill.write(64_000);
    assert_eq!(drill.sent().len(), 32);
    drill.fires(RTO, 1000);
    drill.sends(&[". 1:1001 ack 1"]);
    assert_eq!((drill.end.cwnd(), drill.end.ssthresh()), (1000, 16_000));
    drill.fires(RTO, 2000);
    assert_eq!((drill.end.cwnd(), drill.end.ssthresh()), (1000, 2000));
}

#[test]
fn ci_tcp_5_slow_start_then_one_segment_per_round_trip() {
    let mut drill =
        Drill::connected(Config { initial_ssthresh_bytes: 4000, ..plain(Congestion::Tahoe) });
    drill.write(60_000);
    let (mut acked, mut per_round_trip) = (1, Vec::new());
    for _ in 0..6 {
        let sent = drill.sent().len();
        per_round_trip.push(sent);
        drill.after_ms(50);
        for _ in 0..sent {
            acked += 1000;
            drill.ack(acked);
        }
    }
    assert_eq!(per_round_trip, [1, 2, 4, 4, 5, 6]);
}

#[test]
fn rfc_3042_two_dupacks_let_two_new_segments_out() {
    for (limited_transmit, expected) in
        [(false, &[][..]), (true, &[". 4001:5001 ack 1", ". 5001:6001 ack 1"])]
    {
        let config = Config { limited_transmit, ..with_window(Congestion::Reno, 4) };
        let mut drill = Drill::connected(config);
        drill.write(20_000);
        drill.sent();
        drill.acks(1, 2);
        drill.sends(expected);
    }
}

#[test]
fn rfc_2861_cwnd_is_halved_for_each_timeout_of_idleness() {
    for (idle_ms, cwnd) in [(1000, 16), (1001, 8), (2001, 4), (3001, 2), (90_000, 2)] {
        let config =
            Config { idle_restart: IdleRestart::Decay, ..with_window(Congestion::Reno, 2) };
        let mut drill = Drill::connected(config);
        drill.write(14_000);
        for acked in 1..=14 {
            drill.ack(1 + acked * 1000);
        }
        drill.sent();
        assert_eq!(drill.end.cwnd(), 16_000);
        drill.after_ms(idle_ms);
        drill.write(1000);
        assert_eq!(drill.end.cwnd(), cwnd * 1000, "{idle_ms} ms");
    }
}

#[test]
fn rfc_1122_4_2_3_4_less_than_a_segment_waits_while_something_is_unacknowledged() {
    let mut drill = Drill::connected(Config { nagle: true, ..with_window(Congestion::Reno, 8) });
    drill.write(100);
    drill.sends(&["P. 1:101 ack 1"]);
    drill.write(100);
    drill.write(100);
    drill.sends(&[]);
    drill.write(900);
    drill.sends(&[". 101:1101 ack 1"]);
    drill.ack(1101);
    drill.sends(&["P. 1101:1201 ack 1"]);
    drill.write(50);
    drill.close();
    drill.sends(&["FP. 1201:1251 ack 1"]);
}

#[test]
fn mod_17_an_ack_of_many_segments_opens_cwnd_by_one() {
    let mut drill = Drill::connected(with_window(Congestion::Reno, 8));
    drill.write(40_000);
    drill.sent();
    drill.ack(8001);
    assert_eq!(drill.end.cwnd(), 9000);
    assert_eq!(drill.sent().len(), 9);
}

#[test]
fn mod_18_numbers_wrap_in_the_middle_of_recovery() {
    let config = with_window(Congestion::Reno, 8);
    let mut drill = Drill::connected_from(config, Seq(u32::MAX - 3500));
    drill.write(20_000);
    assert_eq!(drill.sent().len(), 8);
    drill.ack(1001);
    drill.sent();
    drill.acks(1001, 3);
    drill.sends(&[". 1001:2001 ack 1"]);
    drill.ack(10_001);
    assert_eq!(drill.end.flight(), 4000);
    assert_eq!(drill.end.statistics().bytes_acknowledged, 10_000);
}

#[test]
fn karn_a_segment_sent_twice_gives_no_sample_and_the_timeout_stays_doubled() {
    let mut drill = Drill::connected(plain(Congestion::Reno));
    drill.write(3000);
    drill.sends(&[". 1:1001 ack 1"]);
    drill.fires(RTO, 1000);
    drill.sent();
    drill.after_ms(100);
    drill.ack(1001);
    assert_eq!(drill.events(|kind| matches!(kind, EventKind::Rtt { .. }).then_some(())), []);
    drill.sends(&[". 1001:2001 ack 1", "P. 2001:3001 ack 1"]);
    drill.fires(RTO, 2000);
}

#[test]
fn rfc_7323_an_echo_of_the_retransmission_ends_the_backing_off() {
    let config = Config { timestamps: true, ..plain(Congestion::Reno) };
    let mut drill = Drill::connected(config);
    drill.write(988 * 3);
    drill.sent();
    drill.fires(RTO, 1000);
    let again = drill.sent();
    let sent = again[0].as_tcp().and_then(|header| header.options.timestamps());
    drill.echo = sent.expect("timestamps were agreed").value;
    drill.after_ms(100);
    drill.ack(989);
    let samples = drill.events(|kind| match kind {
        EventKind::Rtt { sample, .. } => Some(sample.as_millis()),
        _ => None,
    });
    assert_eq!(samples, [100]);
    drill.sent();
    drill.fires(RTO, 1000);
}

#[test]
fn persist_probes_a_closed_window_for_ever_and_the_byte_may_be_taken() {
    let mut drill = Drill::connected(with_window(Congestion::Reno, 4));
    drill.window = 2000;
    drill.ack(1);
    drill.write(3000);
    drill.sends(&[". 1:1001 ack 1", ". 1001:2001 ack 1"]);
    drill.window = 0;
    drill.ack(2001);
    for seconds in [5, 5, 5, 8, 16, 32, 60, 60, 60, 60, 60, 60] {
        drill.fires(PERSIST, seconds * 1000);
        drill.sends(&[". 2001:2002 ack 1"]);
        drill.ack(2001);
    }
    assert_eq!(drill.end.state(), State::Established);
    drill.window = 4000;
    drill.ack(2002);
    drill.sends(&["P. 2002:3001 ack 1"]);
}

#[test]
fn a_lost_window_update_is_found_by_the_next_probe() {
    let mut drill = Drill::connected(plain(Congestion::Reno));
    drill.window = 0;
    drill.ack(1);
    drill.write(500);
    drill.sends(&[]);
    drill.fires(PERSIST, 5000);
    drill.sends(&[". 1:2 ack 1"]);
    drill.window = 1000;
    drill.ack(1);
    drill.sends(&["P. 1:501 ack 1"]);
}

#[test]
fn rfc_9293_3_8_6_2_1_half_of_the_largest_window_is_worth_a_segment_less_waits() {
    let mut drill = Drill::connected(with_window(Congestion::Reno, 4));
    drill.window = 300;
    drill.ack(1);
    drill.write(3000);
    drill.sends(&[]);
    drill.fires(PERSIST, 5000);
    drill.sends(&[". 1:301 ack 1"]);
}

#[test]
fn mod_6_cwnd_restarts_after_idleness_if_so_configured() {
    for (idle_restart, segments) in
        [(IdleRestart::Keep, 9), (IdleRestart::InitialWindow, 4), (IdleRestart::Decay, 6)]
    {
        let config = Config { idle_restart, ..with_window(Congestion::Reno, 4) };
        let mut drill = Drill::connected(config);
        drill.write(9000);
        for acked in 1..=9 {
            drill.ack(1 + acked * 1000);
        }
        drill.sent();
        drill.after_ms(1001);
        drill.write(9000);
        assert_eq!(drill.sent().len(), segments, "{idle_restart:?}");
    }
}

#[test]
fn segments_carry_their_cause_and_ipv4_identifications_count_up() {
    let mut drill = Drill::connected(plain(Congestion::Reno));
    drill.write(1000);
    drill.after_ms(1000);
    let sent = drill.sent();
    assert_eq!(sent[0].cause, Cause::Original);
    assert_eq!(sent[1].cause, Cause::EndToEndRetransmission);
    assert_eq!(sent[0].ip.identification + 1, sent[1].ip.identification);
}

#[test]
fn a_frozen_timer_has_as_long_to_go_as_it_had() {
    let mut drill = Drill::connected(plain(Congestion::Reno));
    drill.write(1000);
    drill.sent();
    drill.after_ms(400);
    let frozen = drill.end.freeze(drill.now);
    assert_eq!(frozen, drill.end.clone().freeze(drill.now));
    drill.now += Duration::from_secs(3600);
    drill.end = Endpoint::restore(frozen, drill.now);
    drill.fires(RTO, 600);
    drill.sends(&["P. 1:1001 ack 1"]);
}

#[test]
fn ci_frx_2_a_handoff_makes_every_sender_resend_and_slow_start() {
    for congestion in Congestion::ALL {
        let mut drill = Drill::connected(with_window(congestion, 8));
        drill.end.fast_retransmit_on_handoff(&mut drill.log, drill.now);
        drill.sends(&[]);
        drill.write(20_000);
        drill.sent();
        drill.after_ms(600);
        drill.end.fast_retransmit_on_handoff(&mut drill.log, drill.now);
        drill.sends(&[". 1:1001 ack 1"]);
        assert_eq!((drill.end.cwnd(), drill.end.ssthresh()), (1000, 4000));
        // Linux's timer fires at a tick of the kernel's.
        let is_linux =
            matches!(congestion, Congestion::LinuxReno | Congestion::Cubic | Congestion::Bbr);
        drill.fires(RTO, if is_linux { 1006 } else { 1000 });
    }
}

#[test]
fn ci_frx_4_a_marked_ack_makes_a_sender_that_knows_the_mark_resend_and_no_other() {
    for congestion in Congestion::ALL {
        for (handoff_mark, times) in [(HandoffMark::Obeyed, 1), (HandoffMark::Ignored, 0)] {
            let config = Config { handoff_mark, ..with_window(congestion, 8) };
            let mut drill = Drill::connected(config);
            drill.write(20_000);
            drill.sent();
            drill.marked_ack(1);
            let is_first =
                |packet: &PacketRef| packet.as_tcp().is_some_and(|tcp| tcp.seq == Seq(1_001));
            let again = drill.sent().iter().filter(|packet| is_first(packet)).count();
            assert_eq!(again, times, "{congestion} and a mark {handoff_mark:?}");
        }
        // With nothing in flight it says nothing.
        let config = Config { handoff_mark: HandoffMark::Obeyed, ..with_window(congestion, 8) };
        let mut drill = Drill::connected(config);
        drill.marked_ack(1);
        drill.sends(&[]);
    }
}

#[test]
fn ci_frx_5_repeated_acks_are_identical_and_trigger_a_sender_that_has_timed_out() {
    let mut receiver = Drill::connected(plain(Congestion::Tahoe));
    receiver.data(1, 1000, 1);
    receiver.sent();
    receiver.end.repeat_ack(3, &mut receiver.log, receiver.now);
    receiver.sends(&[". 1 ack 1001"; 3]);

    let config = Config {
        repeated_fast_retransmit: RepeatedFastRetransmit::Allowed,
        ..with_window(Congestion::Tahoe, 8)
    };
    for (config, resent) in [(config, 1), (with_window(Congestion::Tahoe, 8), 0)] {
        let mut sender = Drill::connected(config);
        sender.write(8000);
        sender.after_ms(1000);
        sender.sent();
        sender.acks(1, 3);
        assert_eq!(sender.sent().len(), resent);
    }
}

/// A receiver whose memory changes tells of a hole and of another window in one ACK.
#[test]
fn rfc_6675_2_an_ack_that_brings_news_counts_whatever_window_it_offers() {
    for congestion in [Congestion::Sack, Congestion::Sack1] {
        let config = Config { sack: true, ..with_window(congestion, 10) };
        let mut drill = Drill::connected(config);
        drill.write(30_000);
        assert_eq!(drill.sent().len(), 10);
        for arrived in 2..=4 {
            drill.window -= 1000;
            drill.sack(1, &[(1001, arrived * 1000 + 1)]);
        }
        drill.sends(&[". 1:1001 ack 1"]);
        assert_eq!(drill.end.statistics().fast_retransmits, 1, "{congestion:?}");
    }
}
