//! The link's queue lies behind the place where departures are seen: what a daemon meets that hands
//! packets to a device.

use crate::drill::Drill;
use crate::world::{Queue, Sender, World, at_random, first_copies, run};
use sansio::{BitRate, Duration, Instant};
use schemes::snoop::Config;

/// 5 Mbit/s, 5 ms each way on both hops, as a sender without SACK meets it.
fn broadband(queue_packets: usize) -> World {
    World {
        wired_delay: Duration::from_millis(5),
        air_delay: Duration::from_millis(5),
        rate: BitRate::from_mbps(5),
        window: 1_000,
        segments: 3_000,
        sack: false,
        sender: Sender::Reno,
        queue: Queue::Hidden(queue_packets),
        ..World::slow()
    }
}

#[test]
fn without_sack_losses_cost_a_round_trip_of_the_bare_link_each_and_no_timer() {
    let lost = &[100, 103, 106, 107, 110, 114];
    let world = World {
        window: 20,
        sender: Sender::FixedWindow,
        loses: first_copies(lost, 1),
        ..broadband(100)
    };
    let run = run(Config::modern(), world);
    assert_eq!((run.dupacks_at_sender, run.timeouts), (0, 0));
    let statistics = run.agent.statistics();
    assert_eq!((statistics.retransmissions, statistics.timer_retransmissions), (6, 0));
    let copies: Vec<Instant> = lost.iter().map(|number| run.departures[number][1]).collect();
    for pair in copies.windows(2) {
        // 10 ms of delay and, at worst, a segment on the air before the copy and the copy itself.
        let gap = pair[1].since(pair[0]);
        assert!(gap <= Duration::from_millis(10 + 2 * 2), "{gap} between two repairs");
    }
}

#[test]
fn without_sack_what_waits_in_line_is_not_taken_for_overtaken() {
    for loss in [0.01, 0.03] {
        let loses = at_random(loss);
        let world = World { window: 20, sender: Sender::FixedWindow, loses, ..broadband(100) };
        let run = run(Config::modern(), world);
        let statistics = run.agent.statistics();
        let lost = statistics.retransmissions - statistics.unneeded_retransmissions;
        assert!(statistics.unneeded_retransmissions * 10 <= lost, "{statistics:#?}");
        assert_eq!((run.dupacks_at_sender, run.timeouts), (0, 0), "at {loss}");
    }
}

#[test]
fn mod_1_without_sack_a_segment_that_a_repaired_one_overtook_is_resent_when_its_time_is_over() {
    let mut drill = Drill::modern();
    drill.segments(0, 1).after_millis(10).ack(1000).segments(1, 9).after_millis(10).quietly();
    drill.ack(1000).expect(&["radio high 1000..2000 local", "SNOOP-ACK-7 ack 1000"]);
    // 3000 departed 20 ms ago, and the copy overtook it. So far the line has taken 10 ms, with four
    // deviations of 5 ms.
    drill.after_millis(10).ack(3000).expect(&["wired ack 3000"]);
    let due = drill.deadline("snoop reordering").expect("it may still wait in line");
    assert_eq!(due, Instant::ZERO + Duration::from_millis(10 + 10 + 20));
    drill.at(due - Duration::from_nanos(1)).expect(&[]);
    drill.at(due).expect(&["radio high 3000..4000 local"]);
}

#[test]
fn mod_1_without_sack_the_ack_of_the_senders_own_repair_shows_the_next_hole_too() {
    let mut drill = Drill::modern();
    drill.segments(0, 1).after_millis(10).ack(1000);
    // 1000 was lost on the wire, 3000 on the air.
    drill.segments(2, 4).after_millis(10).ack(1000).ack(1000).ack(1000);
    drill.data(1000..2000).after_millis(10).quietly();
    drill.ack(3000).expect(&["wired ack 3000", "radio high 3000..4000 local"]);
}

/// An agent that caches nothing lets everything pass.
fn plain() -> Config {
    Config { cache_segments_max: 0, ..Config::strict() }
}

#[test]
fn a_queue_that_overflows_is_shown_and_no_transfer_is_slower_than_without_agent() {
    for queue_packets in [20, 50, 100, 200] {
        let plain = run(plain(), broadband(queue_packets));
        let modern = run(Config::modern(), broadband(queue_packets));
        assert!(plain.queue_drops > 0 && plain.fast_retransmits > 0, "queue {queue_packets}");
        let (with, without) = (modern.now.as_secs_f64(), plain.now.as_secs_f64());
        assert!(with <= without * 1.05, "queue {queue_packets}: {with} s, without {without} s");
        assert!(
            modern.queue_drops * 4 <= plain.queue_drops * 5,
            "queue {queue_packets}: {} drops, without {}",
            modern.queue_drops,
            plain.queue_drops
        );
    }
}

#[test]
fn losses_on_the_air_are_hidden_where_they_would_cost_goodput() {
    for (loss, wanted) in [(0.003, 0.95), (0.01, 0.95), (0.03, 0.9)] {
        // No slow start beyond what the path and the queue hold.
        let world = || World { window: 60, loses: at_random(loss), ..broadband(100) };
        let (plain, modern) = (run(plain(), world()), run(Config::modern(), world()));
        let (with, without) = (modern.goodput_share(loss), plain.goodput_share(loss));
        assert!(with >= wanted && with >= without, "{with:.3}, without {without:.3}, at {loss}");
    }
}

/// 1000 was lost on the wire, so that the sender learns of it and repeats it; 3, 5, 6 and 8 on the
/// air. The sender without SACK would need a round trip for each.
fn recovering() -> Drill {
    let mut drill = Drill::modern();
    drill.timestamp = Some(5);
    drill.segments(0, 1).after_millis(10).ack(1000).after_millis(30);
    drill.segments(2, 8).after_millis(10).ack(1000).ack(1000).ack(1000).ack(1000);
    drill.after_millis(30).data(1000..2000).after_millis(10).quietly();
    drill.timestamp = Some(6);
    drill.ack(3000);
    drill
}

#[test]
fn mod_1_without_sack_the_agent_helps_through_a_recovery_of_many_holes() {
    let mut drill = recovering();
    drill.expect(&["wired ack 3000", "radio high 3000..4000 local", "radio high 4000..5000 local"]);
    drill.after_millis(10).ack(5000).expect(&[
        "wired ack 5000",
        "radio high 5000..6000 local",
        "radio high 6000..7000 local",
        "radio high 7000..8000 local",
        "radio high 8000..9000 local",
    ]);
    // The mobile host had 4 and 7 before: it answers their copies by duplicates.
    drill.ack(5000).expect(&["MOD-1 ack 5000"]);
    drill.after_millis(10).ack(6000).expect(&["wired ack 6000", "radio high 9000..10000 local"]);
    drill.ack(8000).ack(8000).expect(&["wired ack 8000", "MOD-1 ack 8000"]);
}

#[test]
fn mod_1_what_the_agent_sends_again_fills_the_pipe_and_no_more() {
    let mut drill = Drill::modern();
    drill.timestamp = Some(5);
    drill.segments(0, 1).after_millis(10).ack(1000).after_millis(30);
    // Of 400 every second one is lost; a window takes 40 ms, of which the last hop has 10.
    drill.segments(2, 400).after_millis(10);
    for _ in 0..200 {
        drill.ack(1000);
    }
    drill.after_millis(30).data(1000..2000).after_millis(10).quietly();
    drill.timestamp = Some(6);
    let pipe = 200 * 10 / (10 + 30);
    let mut most = 0;
    for arrived in (3..400).step_by(2) {
        // A copy that fills a hole is acknowledged together with the segment behind it.
        drill.ack(arrived * 1000).after_millis(1);
        let sent = drill.statistics().retransmissions;
        most = most.max(sent.saturating_sub(u64::from(arrived) - 3));
    }
    assert!(most > pipe / 2 && most <= pipe + pipe / 4, "{most} under way, {pipe} fit");
}

#[test]
fn snoop_data_4_a_repeat_that_crosses_its_ack_needs_no_other() {
    let mut drill = recovering();
    drill.quietly();
    // Sent before that ACK came.
    drill.timestamp = Some(5);
    // The ACK of 3000 has been under way for less than the wired round trip of 30 ms.
    drill.after_millis(29).data(2000..3000).expect(&["SNOOP-DATA-4 2000..3000"]);
    drill.after_millis(1).quietly().data(2000..3000);
    drill.expect(&["wired ack 3000 agent", "SNOOP-DATA-4 2000..3000"]);
}

/// Segments 0 to 49 departed; the first 20 are acknowledged, each after a longer wait.
fn long_queue() -> Drill {
    let mut drill = Drill::modern();
    drill.segments(0, 50);
    for number in 0..20 {
        drill.after_millis(10).ack(number * 1000 + 1000);
    }
    drill.quietly();
    drill
}

#[test]
fn congestion_is_shown_by_duplicates_and_blocks_until_all_that_was_sent_has_arrived() {
    let mut drill = long_queue();
    drill.ack(20_000).expect(&["wired ack 20000"]);
    assert_eq!(drill.statistics().episodes_shown, 1);
    drill.sack(20_000, &[(21_000, 22_000)]).expect(&["wired ack 20000 sack 21000..22000"]);
    drill.sack(21_000, &[(22_000, 23_000)]).expect(&["wired ack 21000 sack 22000..23000"]);
    // Neither a timer nor the sender's repeat makes the agent repair something else.
    drill.after_millis(50).data(20_000..21_000).ack(49_000).quietly();
    drill.sack(49_000, &[(49_500, 50_000)]).expect(&["wired ack 49000 sack 49500..50000"]);
    drill.ack(50_000).quietly();
    assert_eq!(drill.statistics().retransmissions, 0);
}

#[test]
fn congestion_is_no_reason_to_let_the_sender_repair_its_own_repairs() {
    let mut drill = long_queue();
    drill.sack(20_000, &[(21_000, 22_000)]).data(20_000..21_000).segments(50, 1).quietly();
    drill.after_millis(5).sack(20_000, &[(21_000, 51_000)]);
    drill.expect(&["wired ack 20000 sack 21000..51000", "radio high 20000..21000 local"]);
}

#[test]
fn a_short_queue_is_no_congestion() {
    let mut drill = Drill::modern();
    for number in 0..20 {
        drill.segments(number, 1).after_millis(10 + u64::from(number)).ack(number * 1000 + 1000);
    }
    drill.segments(20, 3).after_millis(30).quietly();
    drill.ack(20_000).expect(&["radio high 20000..21000 local", "SNOOP-ACK-7 ack 20000"]);
}

#[test]
fn the_queue_of_a_burst_is_no_congestion() {
    let mut drill = Drill::modern();
    for number in 0..20 {
        drill.segments(number, 1).after_millis(10).ack(number * 1000 + 1000);
    }
    // Ten segments at once, in front of an idle air; the empty path takes 50 + 10 ms.
    drill.segments(20, 10);
    for number in 20..27 {
        drill.after_millis(10).ack(number * 1000 + 1000);
    }
    drill.quietly();
    drill.after_millis(10).sack(27_000, &[(28_000, 29_000)]);
    drill.expect(&["MOD-1 ack 27000 sack 28000..29000", "radio high 27000..28000 local"]);
    assert_eq!(drill.statistics().episodes_shown, 0);
}

/// Segments take 10 ms, the empty path 50 + 10 ms. The last of 8 that came at once has waited
/// 70 ms, longer than any; all up to it arrived, and more are under way.
fn growing_queue() -> Drill {
    let mut drill = Drill::modern();
    for number in 0..20 {
        drill.segments(number, 1).after_millis(10).ack(number * 1000 + 1000);
    }
    drill.segments(20, 30);
    for number in 20..28 {
        drill.after_millis(10).ack(number * 1000 + 1000);
    }
    drill.quietly();
    drill
}

#[test]
fn mod_1_slow_start_that_overruns_a_queue_is_told_before_a_copy_is_under_way() {
    let mut drill = growing_queue();
    let hidden = &["MOD-1 ack 28000 sack 29000..30000"];
    drill.after_millis(10).sack(28_000, &[(29_000, 30_000)]).expect(hidden);
    drill.after_millis(10).sack(28_000, &[(31_000, 32_000), (29_000, 30_000)]).quietly();
    assert_eq!(drill.statistics().episodes_shown, 0);
    drill.after_millis(10).sack(28_000, &[(33_000, 34_000), (31_000, 32_000), (29_000, 30_000)]);
    assert_eq!((drill.statistics().episodes_shown, drill.statistics().retransmissions), (1, 0));
}

#[test]
fn mod_1_a_loss_on_the_air_is_repaired_as_soon_as_few_holes_tell_so() {
    let mut drill = growing_queue();
    drill.after_millis(10).sack(28_000, &[(29_000, 30_000)]).quietly();
    for end in [31_000, 32_000] {
        drill.after_millis(10).sack(28_000, &[(29_000, end)]).quietly();
    }
    assert_eq!(drill.statistics().retransmissions, 0, "it may be the first hole of many");
    drill.after_millis(10).sack(28_000, &[(29_000, 33_000)]).quietly();
    assert_eq!((drill.statistics().episodes_shown, drill.statistics().retransmissions), (0, 1));
}

#[test]
fn mod_1_if_nothing_more_tells_a_repair_waits_no_longer_than_an_answer_takes() {
    let mut drill = growing_queue();
    drill.after_millis(10).sack(28_000, &[(29_000, 30_000)]).quietly();
    drill.after_millis(200).quietly();
    assert_eq!((drill.statistics().episodes_shown, drill.statistics().retransmissions), (0, 1));
}

/// Segments take 10 ms. The wire lost 20 to 24, which the sender repeats 210 ms after the begin;
/// the air lost 26, of which a local copy left after them. It is 211 ms.
fn repeats_in_line() -> Drill {
    let mut drill = Drill::modern();
    for number in 0..20 {
        drill.segments(number, 1).after_millis(10).ack(number * 1000 + 1000);
    }
    drill.segments(25, 4).after_millis(10).sack(20_000, &[(25_000, 26_000)]);
    for number in 20..25 {
        drill.data(number * 1000..number * 1000 + 1000);
    }
    drill.after_millis(1).sack(20_000, &[(27_000, 29_000), (25_000, 26_000)]).quietly();
    assert_eq!(drill.statistics().retransmissions, 1);
    drill
}

#[test]
fn mod_1_the_line_takes_as_long_as_for_the_latest_in_it() {
    let mut drill = repeats_in_line();
    // The line has grown; the copy's ACK is as late.
    drill.after_millis(29).sack(21_000, &[(27_000, 29_000), (25_000, 26_000)]);
    drill.after_millis(1).quietly().sack(21_000, &[(25_000, 29_000)]).quietly();
    let due = drill.deadline("snoop reordering").expect("21 to 24 may still wait in line");
    // 30 ms, and a quarter of the smoothed time: of 10 ms and, the latest, 11.
    let margin = Duration::from_nanos((10_000_000 * 3 + 11_000_000) / 4 / 4);
    assert_eq!(due, Instant::ZERO + Duration::from_millis(210 + 30) + margin);
    drill.at(due - Duration::from_nanos(1)).expect(&[]);
    drill.at(due).quietly();
    assert_eq!(drill.statistics().retransmissions, 1 + 4);
}

#[test]
fn mod_1_what_answers_a_copy_that_went_ahead_of_a_repeat_proves_nothing_of_the_line() {
    let mut drill = repeats_in_line();
    // The sender repeats 26, too, behind 20 to 24. The line has grown; the copy was in none.
    drill.after_millis(1).data(26_000..27_000).after_millis(11);
    drill.sack(20_000, &[(25_000, 29_000)]).quietly();
    assert_eq!(drill.statistics().retransmissions, 1);
    drill.after_millis(6).ack(29_000).quietly();
    assert_eq!(drill.statistics().unneeded_retransmissions, 0);
}

#[test]
fn mod_1_a_late_driver_reads_all_acks_before_time_tells_of_losses() {
    let mut drill = repeats_in_line();
    // All of these came while nobody looked.
    drill.after_millis(29).sack(20_000, &[(25_000, 29_000)]).ack(22_000).ack(29_000).quietly();
    assert_eq!(drill.statistics().retransmissions, 1);
}

/// Segments take 10 ms, and so many are acknowledged; then 60 go at once, and the lowest is lost.
fn window_with_a_hole() -> Drill {
    let mut drill = Drill::modern();
    for number in 0..20 {
        drill.segments(number, 1).after_millis(10).ack(number * 1000 + 1000);
    }
    drill.segments(20, 60).after_millis(10).quietly();
    drill.ack(20_000).expect(&["radio high 20000..21000 local", "SNOOP-ACK-7 ack 20000"]);
    drill
}

#[test]
fn without_sack_the_sender_learns_of_many_losses_as_soon_as_their_duplicates_are_missing() {
    let mut drill = window_with_a_hole();
    // 40 of the 59 behind it arrive, then its copy: 19 are missing, and others are on their way.
    for _ in 1..40 {
        drill.ack(20_000);
    }
    drill.segments(80, 10).after_millis(10).quietly().ack(21_000).expect(&["wired ack 21000"]);
    drill.ack(21_000).expect(&["wired ack 21000"]);
    assert_eq!(drill.statistics().episodes_shown, 1);
}

#[test]
fn without_sack_few_losses_are_hidden_however_few_duplicates_are_to_come() {
    let mut drill = window_with_a_hole();
    for _ in 1..56 {
        drill.ack(20_000);
    }
    drill.segments(80, 10).after_millis(10).quietly().ack(21_000);
    drill.expect(&["wired ack 21000", "radio high 21000..22000 local"]);
    assert_eq!(drill.statistics().episodes_shown, 0);
}

#[test]
fn without_sack_the_sender_is_not_told_by_duplicates_that_cannot_come() {
    let mut drill = window_with_a_hole();
    for _ in 1..40 {
        drill.ack(20_000);
    }
    // Nothing is on its way but the copy.
    drill.after_millis(10).quietly().ack(21_000);
    drill.expect(&["wired ack 21000", "radio high 21000..22000 local"]);
}

#[test]
fn without_sack_a_window_that_the_cache_cannot_hold_is_left_to_the_senders_timeout() {
    for (segments, probes) in [(8, 1), (12, 0)] {
        let config = Config { cache_bytes_max: 8_000, cache_mark_percent: 100, ..Config::modern() };
        let mut drill = Drill::new(config);
        drill.segments(0, 1).after_millis(10).ack(1000).segments(1, segments).quietly();
        drill.after_millis(75).quietly();
        assert_eq!(drill.statistics().probes, probes, "{segments} segments");
    }
}
