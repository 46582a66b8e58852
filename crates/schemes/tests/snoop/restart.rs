//! Restart after an outage: probe, ramp, flush (*modern*), told and untold.

use crate::drill::{Drill, MOBILE};
use crate::modern::{window, with_bounds};
use sansio::{Duration, Notice, Priority, Side};
use schemes::snoop::config::Bounds;
use std::net::IpAddr;

/// The wired round trip is long, and four segments have been under way for half a second.
fn silent_on_a_long_path() -> Drill {
    let mut drill = Drill::modern();
    drill.timestamp = Some(1);
    drill.segments(0, 1).after_millis(10).ack(1000).after_millis(50);
    drill.segments(1, 4).after_millis(500).quietly();
    drill
}

#[test]
fn restart_silence_is_answered_by_probes_of_one_byte() {
    let mut drill = window();
    // 60 ms after the ACK, and not before; then every 20 ms, if the air allows: at 2 Mbit/s the
    // share of 0.2 % pays for 41 bytes in 82 ms.
    let due = drill.now + Duration::from_millis(60);
    drill.at(due - Duration::from_nanos(1)).expect(&[]);
    drill.at(due).expect(&["radio high 1000..1001 probe"]);
    drill.after_millis(81).expect(&[]);
    assert_eq!(drill.sink.sent.last().expect("sent").1, Priority::High);
    drill.after_millis(1).expect(&["radio high 1000..1001 probe"]);
}

#[test]
fn restart_the_answer_is_followed_by_the_rest_of_the_segment() {
    let mut drill = window();
    drill.after_millis(500).quietly();
    drill.ack(1001).expect(&["wired ack 1001", "radio high 1001..2000 local"]);
    // The sender repeats: the rest is left to it.
    drill.ack(2000).data(2000..3000).after_millis(29);
    drill.expect(&["wired ack 2000", "radio 2000..3000"]);
}

/// Each answer tells the sender that its timeout was a mistake, and it never tries a shorter one.
#[test]
fn mod_9_a_segment_that_is_too_long_for_its_path_is_left_to_the_sender() {
    let mut drill = window();
    for answered in 1001..=1003 {
        drill.after_millis(1_000).ack(answered).quietly();
    }
    let probes = drill.statistics().probes;
    drill.after_millis(5_000).quietly();
    assert_eq!(drill.statistics().probes, probes);
    // The sender finds a length that passes: all is as before.
    drill.data(1003..1500).after_millis(10).ack(1500).quietly();
    drill.after_millis(1_000).quietly();
    assert!(drill.statistics().probes > probes);
}

#[test]
fn restart_the_agent_ramps_up_if_the_sender_goes_on_and_nothing_shows_the_holes() {
    let mut drill = window();
    drill.after_millis(500).ack(1001).after_millis(10).ack(2000).quietly();
    drill.segments(10, 1).expect(&[
        "radio high 2000..3000 local",
        "radio high 3000..4000 local",
        "radio 10000..11000",
    ]);
    drill.after_millis(10).ack(4000).expect(&[
        "wired ack 4000",
        "radio high 4000..5000 local",
        "radio high 5000..6000 local",
        "radio high 6000..7000 local",
        "radio high 7000..8000 local",
    ]);
}

#[test]
fn restart_sack_blocks_take_the_place_of_the_ramp() {
    let mut drill = window();
    drill.sack(1000, &[(9000, 10_000)]).after_millis(500).ack(1001).quietly();
    drill.segments(10, 1).expect(&["radio 10000..11000"]);
}

#[test]
fn restart_what_sack_has_shown_to_have_arrived_is_not_probed_for() {
    let mut drill = Drill::modern();
    drill.segments(0, 1).ack(1000).quietly();
    // 1000..2000 was lost before it came here: the sender's to repair.
    drill.segments(2, 3).after_millis(5).sack(1000, &[(2000, 5000)]).quietly();
    drill.after_millis(1000).expect(&[]);
    // Above it something may be lost.
    drill.segments(5, 1).quietly();
    drill.after_millis(1000);
    assert!(drill.statistics().probes > 0);
}

#[test]
fn restart_the_agent_ramps_up_if_the_sender_stays_silent() {
    let mut drill = window();
    drill.after_millis(500).ack(1001).quietly();
    drill.after_millis(10).ack(2000).quietly();
    drill.after_millis(10).quietly();
    assert_eq!(drill.statistics().restart_retransmissions, 3, "1, then 2");
    drill.ack(4000);
    drill.expect(&[
        "wired ack 4000",
        "radio high 4000..5000 local",
        "radio high 5000..6000 local",
        "radio high 6000..7000 local",
        "radio high 7000..8000 local",
    ]);
}

#[test]
fn restart_a_long_wired_path_gets_the_whole_window_at_once() {
    let mut drill = silent_on_a_long_path();
    drill.ack(1001).expect(&[
        "wired ack 1001",
        "radio high 1001..2000 local",
        "radio high 2000..3000 local",
        "radio high 3000..4000 local",
        "radio high 4000..5000 local",
    ]);
}

#[test]
fn restart_a_pause_without_loss_is_no_reason_to_send_the_window_again() {
    let mut drill = silent_on_a_long_path();
    // A late ACK of a whole segment: one segment at most is sent in vain.
    drill.ack(2000).expect(&["wired ack 2000", "radio high 2000..3000 local"]);
}

#[test]
fn restart_a_notice_silences_the_timers_and_the_next_one_restarts_at_once() {
    let mut drill = window();
    drill.notice(Notice::LinkDown(Side::RADIO)).after_millis(999).expect(&[]);
    drill.after_millis(1).expect(&["radio high 1000..1001 probe"]);
    drill.notice(Notice::LinkUp(Side::RADIO)).expect(&["radio high 1000..2000 local"]);
}

#[test]
fn restart_a_notice_of_this_mobile_host_counts_and_one_of_another_does_not() {
    let other = IpAddr::from([10, 0, 1, 3]);
    let mut drill = window();
    drill.notice(Notice::MobileDown(other)).after_millis(60);
    drill.expect(&["radio high 1000..1001 probe"]);
    let mut drill = window();
    drill.notice(Notice::MobileDown(MOBILE.address)).after_millis(999).expect(&[]);
    drill.notice(Notice::MobileUp(other)).expect(&[]);
    drill.notice(Notice::MobileUp(MOBILE.address)).expect(&["radio high 1000..2000 local"]);
}

#[test]
fn snho_9_nothing_is_sent_into_the_air_of_a_mobile_host_that_has_moved() {
    let mut drill = window();
    drill.notice(Notice::Moved(MOBILE.address)).after_millis(100_000).expect(&[]);
    drill.notice(Notice::MobileUp(MOBILE.address)).after_millis(1_000).expect(&[]);
}

#[test]
fn restart_a_hint_that_the_link_is_back_counts_only_for_who_was_silent() {
    let mut drill = window();
    drill.after_millis(5).notice(Notice::LinkMayBeUp(Side::RADIO)).expect(&[]);
    drill.after_millis(50).notice(Notice::LinkMayBeUp(Side::RADIO));
    drill.expect(&["radio high 1000..2000 local"]);
}

/// What was sent before the outage may come after the notice; later packets end it, if the notice
/// of its end is lost.
#[test]
fn restart_a_packet_sent_before_the_outage_does_not_end_it_and_a_later_one_does() {
    let mut drill = window();
    drill.notice(Notice::LinkDown(Side::RADIO)).after_millis(50).ack(2000);
    drill.expect(&["wired ack 2000"]);
    drill.after_millis(100).ack(3000).expect(&["wired ack 3000", "radio high 3000..4000 local"]);
}

#[test]
fn restart_a_radio_that_holds_packets_gets_no_probes() {
    let mut drill = window();
    drill.hold_the_air().ack(10_000).segments(10, 5).after_millis(5_000).quietly();
    assert_eq!(drill.statistics().probes, 0);
}

/// What the agent sends again itself is no sign of life, but may be answered before it counts as
/// lost.
#[test]
fn restart_own_copies_do_not_put_off_the_first_probe() {
    let mut drill = window();
    let silent_since = drill.now;
    drill.ack(1000).expect(&["radio high 1000..2000 local", "SNOOP-ACK-7 ack 1000"]);
    drill.after_millis(59).quietly();
    assert!(drill.statistics().timer_retransmissions > 0, "repeated in the meantime");
    drill.at(silent_since + Duration::from_millis(60 + 13)).quietly();
    assert_eq!(drill.statistics().probes, 1);
}

/// Probes that nothing may follow would keep the sender from its timeout, a byte at a time.
#[test]
fn restart_without_a_budget_the_sender_is_left_to_its_timeout() {
    let bounds = |bounds: &mut Bounds| {
        bounds.retransmission_percent = 0;
        bounds.retransmission_floor_bytes = 999;
    };
    let mut drill = Drill::new(with_bounds(bounds));
    drill.segments(0, 10).after_millis(10).ack(1000).quietly();
    drill.after_millis(5_000).expect(&[]);
    assert_eq!(drill.statistics().probes, 0);
}
