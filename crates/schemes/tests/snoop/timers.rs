//! The paper's timers, row by row (SNOOP-TMR).

use crate::drill::Drill;
use crate::paper::window;
use sansio::{Duration, Instant, Notice, Side};

#[test]
fn snoop_tmr_2_and_3_the_round_trip_timer_fires_at_twice_the_round_trip_and_not_before() {
    let mut drill = Drill::strict();
    drill.segments(0, 6).after_millis(30).ack(1000).ack(1000).quietly();
    let due = drill.now + Duration::from_millis(60);
    drill.at(due - Duration::from_nanos(1)).expect(&[]);
    drill.at(due).expect(&["radio high 1000..2000 local"]);
    drill.at(due + Duration::from_millis(60)).expect(&["radio high 1000..2000 local"]);
    // A short round trip: never below 40 ms.
    let mut drill = window();
    drill.ack(2000).quietly();
    let due = drill.now + Duration::from_millis(40);
    drill.at(due - Duration::from_nanos(1)).expect(&[]);
    drill.at(due).expect(&["radio high 2000..3000 local"]);
}

#[test]
fn snoop_tmr_4_the_round_trip_timer_runs_in_an_episode_of_recovery_only() {
    let mut drill = window();
    assert_eq!(drill.deadline("snoop round trip"), None);
    drill.ack(2000);
    assert!(drill.deadline("snoop round trip").is_some());
    // A new ACK within the episode starts it anew.
    let now = drill.after_millis(5).ack(3000).now;
    let deadline = drill.deadline("snoop round trip");
    assert_eq!(deadline, Some(now + Duration::from_millis(40)));
    // Newer data does not prolong the episode.
    drill.segments(6, 1).ack(6000);
    assert_eq!(drill.deadline("snoop round trip"), None);
}

#[test]
fn snoop_tmr_5_silence_of_200_ms_resends_the_lowest_and_repeats() {
    let mut drill = window();
    let due = drill.now + Duration::from_millis(200);
    drill.at(due - Duration::from_nanos(1)).expect(&[]);
    drill.at(due).expect(&["radio high 2000..3000 local"]);
    drill.at(due + Duration::from_millis(200)).expect(&["radio high 2000..3000 local"]);
    // Any packet of either host is activity.
    drill.after_millis(100).segments(6, 1).quietly();
    let due = drill.now + Duration::from_millis(200);
    drill.at(due - Duration::from_nanos(1)).expect(&[]);
    drill.at(due).expect(&["radio high 2000..3000 local"]);
}

#[test]
fn snoop_tmr_5_silent_while_the_link_is_known_to_be_down() {
    let mut drill = window();
    drill.notice(Notice::LinkDown(Side::RADIO)).after_millis(5_000).expect(&[]);
    drill.notice(Notice::LinkUp(Side::RADIO)).after_millis(200);
    drill.expect(&["radio high 2000..3000 local"]);
}

#[test]
fn snoop_tmr_2_and_5_both_timers_due_at_once_send_one_copy() {
    let mut drill = Drill::strict();
    drill.segments(0, 3).after_millis(100).ack(1000).ack(1000).quietly();
    // Twice the round trip of 100 ms, and 200 ms of silence.
    let due = drill.now + Duration::from_millis(200);
    drill.at(due - Duration::from_nanos(1)).expect(&[]);
    drill.at(due).expect(&["radio high 1000..2000 local"]);
    assert!(drill.acted("SNOOP-TMR-2") && drill.acted("SNOOP-TMR-5"), "both fired");
}

#[test]
fn snoop_tmr_6_the_persist_timer_expects_no_more_dupacks() {
    let mut drill = window();
    drill.ack(2000).ack_with(3000, |_| {}).ack(3000).quietly();
    drill.after_millis(1).segments(6, 3).quietly();
    // Two duplicates are expected when the persist timer fires; afterwards any is unexpected.
    drill.at(drill.now + Duration::from_millis(200)).quietly();
    drill.ack(3000);
    assert!(drill.acted("SNOOP-TMR-5"));
    drill.expect(&["radio high 3000..4000 local", "SNOOP-ACK-7 ack 3000"]);
}

#[test]
fn snoop_tmr_7_after_ten_retransmissions_dupacks_pass_until_the_sender_resends() {
    let mut drill = window();
    drill.ack(2000).at(Instant::ZERO + Duration::from_secs(5)).quietly();
    assert_eq!(drill.statistics().retransmissions, 10);
    drill.ack(2000).expect(&["wired ack 2000"]);
    drill.data(2000..3000).quietly();
    drill.after_millis(200).expect(&["radio high 2000..3000 local"]);
}
