//! The paper's rules, row by row, with the strict preset.

use crate::drill::{Drill, segment, tcp_mut};
use sansio::{Duration, Host, Notice, Priority, Side};
use schemes::snoop::Config;
use schemes::snoop::config::Mark;
use wire::tcp::{Flags, Seq, Timestamps};

/// Segments 0 to 5 passed and are on the air; two are acknowledged after 10 ms; 2000 is next.
pub(crate) fn window() -> Drill {
    let mut drill = Drill::strict();
    drill.segments(0, 6).after_millis(10).ack(1000).ack(2000).quietly();
    drill
}

#[test]
fn snoop_gen_1_both_directions_pass_with_the_four_tuple_unchanged() {
    let mut drill = Drill::strict();
    drill.data(0..1000).expect(&["radio 0..1000"]);
    drill.ack(1000).expect(&["wired ack 1000"]);
    let (down, up) = (drill.last_sent(Side::RADIO), drill.last_sent(Side::WIRED));
    assert_eq!((down.ip.source, down.ip.destination), (up.ip.destination, up.ip.source));
}

#[test]
fn snoop_gen_2_an_ack_made_by_the_agent_repeats_what_the_mobile_said() {
    let mut drill = window();
    drill.data(0..1000).expect(&["wired ack 2000 agent", "SNOOP-DATA-4 0..1000"]);
}

#[test]
fn snoop_gen_3_forgetting_everything_mid_connection_is_harmless() {
    let mut drill = window();
    drill.ack(2000).quietly();
    drill.notice(Notice::Forget);
    assert_eq!((drill.agent.flows(), drill.agent.held_bytes()), (0, 0));
    // Its duplicates now reach the sender, whose retransmission starts state anew.
    drill.ack(2000).ack(2000).expect(&["wired ack 2000", "wired ack 2000"]);
    drill.data(2000..3000).expect(&["radio 2000..3000"]);
    drill.ack(6000).expect(&["wired ack 6000"]);
    drill.data(6000..7000).expect(&["radio 6000..7000"]);
}

#[test]
fn snoop_gen_4_what_the_fixed_host_sends_passes_as_it_came() {
    let mut drill = Drill::strict();
    drill.timestamp = Some(5);
    drill.data_with(0..1000, |packet| tcp_mut(packet).window = 4321);
    let sent = drill.last_sent(Side::RADIO);
    assert_eq!(sent.as_tcp().expect("TCP").window, 4321);
    assert_eq!(sent.parent, None, "the very packet, not a copy");
}

#[test]
fn snoop_st_3_the_same_start_with_another_size_is_not_the_same_packet() {
    let mut drill = window();
    // Bytes 2000 to 3500: all of them cached, though in two segments.
    drill.data(2000..3500).expect(&["radio 2000..3500"]);
    assert!(drill.acted("SNOOP-DATA-3"));
    // Bytes 5000 to 6500: the last 500 are not.
    drill.data(5000..6500).expect(&["radio 5000..6500"]);
    assert!(drill.acted("SNOOP-DATA-5"));
    assert_eq!(drill.agent.held_bytes(), 4500, "overlapping bytes are held once");
}

#[test]
fn snoop_cache_1_the_cache_shares_the_packet_and_copies_nothing() {
    let mut drill = Drill::strict();
    drill.data(0..1000);
    let count = |drill: &Drill| std::rc::Rc::strong_count(&drill.sink.sent[0].2);
    let with_cache = count(&drill);
    drill.ack(1000);
    assert_eq!(count(&drill), with_cache - 1);
}

#[test]
fn snoop_cache_2_a_window_of_64_kb_is_cached_whole() {
    let mut drill = Drill::strict();
    for number in 0..64 {
        drill.data(number * 1024..number * 1024 + 1024);
    }
    assert_eq!(drill.agent.held_bytes(), 64 << 10);
}

#[test]
fn snoop_cache_3_above_the_mark_only_older_data_is_cached() {
    let mut drill = Drill::strict();
    drill.ack(0).segments(0, 10).segments(11, 86).quietly();
    assert_eq!(drill.agent.held_bytes(), 96_000, "three quarters of 128 segments");
    drill.segments(97, 1).expect(&["radio 97000..98000"]);
    assert_eq!(drill.agent.held_bytes(), 96_000, "newer data is forwarded uncached");
    assert!(drill.acted("snoop cache segments"));
    drill.data(10_000..11_000).expect(&["radio 10000..11000"]);
    assert_eq!(drill.agent.held_bytes(), 97_000, "the old hole is cached");
}

#[test]
fn snoop_cache_2_a_fin_without_data_counts_toward_the_limits_like_a_byte() {
    let flow = Config { cache_bytes_max: 2000, cache_mark_percent: 100, ..Config::strict() };
    let total = Config { cache_bytes_total_max: 2000, ..Config::strict() };
    for (config, name) in [(flow, "snoop cache bytes"), (total, "snoop cache bytes of all flows")] {
        let mut drill = Drill::new(config);
        let fin = Flags::ACK.with(Flags::FIN);
        drill.segments(0, 2).data_with(2000..2000, |packet| tcp_mut(packet).flags = fin);
        drill.expect(&["radio 0..1000", "radio 1000..2000", "radio 2000..2000 fin"]);
        assert_eq!(drill.agent.held_bytes(), 2000);
        assert!(drill.acted(name), "{name}");
    }
}

#[test]
fn snoop_data_1_a_jump_over_a_gap_is_new_data() {
    let mut drill = Drill::strict();
    drill.segments(0, 1).segments(4, 1).expect(&["radio 0..1000", "radio 4000..5000"]);
    assert!(!drill.acted("SNOOP-DATA-5"));
    assert_eq!(drill.agent.held_bytes(), 2000);
}

#[test]
fn snoop_data_2_one_segment_at_a_time_is_timed_from_its_departure() {
    let mut drill = Drill::strict();
    drill.hold_the_air().segments(0, 3).after_millis(50).depart(3).after_millis(30);
    // 30 ms from the departure: the round-trip timer will wait 60 ms.
    drill.ack(1000).ack(1000).quietly();
    let armed_at = drill.now;
    drill.depart(1);
    let deadline = drill.deadline("snoop round trip");
    assert_eq!(deadline, Some(armed_at + Duration::from_millis(60)));
}

#[test]
fn snoop_data_3_a_cached_unacknowledged_repeat_passes_and_is_not_answered() {
    let mut drill = window();
    drill.data(2000..3000).expect(&["radio 2000..3000"]);
}

#[test]
fn snoop_data_4_the_answer_has_the_mobiles_last_words() {
    let mut drill = Drill::strict();
    drill.timestamp = Some(100);
    drill.segments(0, 2).ack_with(1000, |packet| {
        tcp_mut(packet).window = 555;
        tcp_mut(packet).seq = Seq(99);
    });
    drill.timestamp = Some(140);
    drill.data(0..1000).quietly();
    let answer = drill.last_sent(Side::WIRED);
    let tcp = answer.as_tcp().expect("TCP");
    assert_eq!((tcp.seq, tcp.window, tcp.flags), (Seq(99), 555, Flags::ACK));
    assert_eq!(tcp.options.timestamps(), Some(Timestamps { value: 100, echo: 7140 }), "MOD-3");
    assert_eq!(answer.ip.source, crate::drill::MOBILE.address);
}

#[test]
fn snoop_data_4_keep_alives_are_for_the_mobile_to_answer() {
    let mut drill = window();
    drill.data(1999..2000).expect(&["radio 1999..2000"]);
}

#[test]
fn snoop_data_5_a_late_hole_is_forwarded_cached_and_marked() {
    let mut drill = Drill::strict();
    drill.segments(0, 1).segments(2, 2).ack(1000).quietly();
    drill.data(1000..2000).expect(&["radio 1000..2000"]);
    // Marked: its duplicates pass (SNOOP-ACK-6).
    drill.ack(1000).expect(&["wired ack 1000"]);
    assert_eq!(drill.agent.held_bytes(), 3000);
}

#[test]
fn snoop_data_6_the_senders_retransmission_restarts_the_count_and_marks() {
    let mut drill = window();
    drill.ack(2000).data(2000..3000).quietly();
    drill.ack(2000).expect(&["wired ack 2000"]);
    // With the paper's narrower text a cached repeat is not marked.
    let mut drill = Drill::new(Config { mark: Mark::Uncached, ..Config::strict() });
    drill.segments(0, 6).after_millis(10).ack(2000).data(2000..3000).quietly();
    drill.ack(2000).expect(&["radio high 2000..3000 local", "SNOOP-ACK-7 ack 2000"]);
}

#[test]
fn snoop_data_8_syn_and_rst_end_the_state_and_fin_takes_a_sequence_number() {
    let mut drill = window();
    drill.data_with(6000..6500, |packet| tcp_mut(packet).flags = Flags::ACK.with(Flags::FIN));
    assert_eq!(drill.agent.held_bytes(), 4501);
    drill.ack(6500);
    assert_eq!(drill.agent.held_bytes(), 501, "all but the FIN is not enough");
    drill.ack(6501);
    assert_eq!(drill.agent.flows(), 0);
    for flags in [Flags::SYN, Flags::RST] {
        let mut drill = window();
        drill.data_with(0..0, |packet| tcp_mut(packet).flags = flags).expect(&["radio ack -1000"]);
        assert_eq!(drill.agent.flows(), 0, "{flags}");
    }
}

#[test]
fn snoop_ack_1_a_new_ack_frees_what_it_covers_and_passes() {
    let mut drill = Drill::strict();
    drill.segments(0, 3).quietly();
    drill.ack(2000).expect(&["wired ack 2000"]);
    assert_eq!(drill.agent.held_bytes(), 1000);
    drill.ack(2500).expect(&["wired ack 2500"]);
    assert_eq!(drill.agent.held_bytes(), 1000, "a partly acknowledged segment stays");
}

#[test]
fn snoop_ack_2_no_sample_from_a_window_with_a_retransmission() {
    let mut drill = Drill::strict();
    drill.segments(0, 3).after_millis(100).data(0..1000).ack(1000);
    // No sample: the round-trip timer waits for its floor of 40 ms, not 200.
    drill.ack(1000);
    let deadline = drill.deadline("snoop round trip");
    assert_eq!(deadline, Some(drill.now + Duration::from_millis(40)));
}

#[test]
fn snoop_ack_3_an_old_pure_ack_is_discarded_and_nothing_else_of_that_age() {
    let mut drill = window();
    drill.ack(1000).expect(&["SNOOP-ACK-3 ack 1000"]);
    drill.ack_with(1000, |packet| tcp_mut(packet).window = 999).expect(&["wired ack 1000"]);
    let fin = Flags::ACK.with(Flags::FIN);
    drill.ack_with(1000, |packet| tcp_mut(packet).flags = fin).expect(&["wired -923..-923 fin"]);
}

#[test]
fn snoop_ack_4_only_a_bare_repeat_with_data_outstanding_is_a_duplicate() {
    let mut drill = window();
    drill.ack_with(2000, |packet| tcp_mut(packet).window = 999).expect(&["wired ack 2000"]);
    drill.ack_with(2000, |packet| {
        tcp_mut(packet).window = 999;
        packet.payload =
            sansio::Payload::Virtual { stream: sansio::StreamId(2), offset: 0, length: 10 };
    });
    drill.expect(&["wired -923..-913"]);
    drill.ack_with(6000, |_| {}).ack(6000).expect(&["wired ack 6000", "wired ack 6000"]);
}

#[test]
fn snoop_ack_5_a_duplicate_for_a_segment_not_cached_passes() {
    let mut drill = Drill::strict();
    drill.segments(0, 1).segments(2, 3).ack(1000).quietly();
    drill.ack(1000).ack(1000).ack(1000).expect(&["wired ack 1000"; 3]);
}

#[test]
fn snoop_ack_6_a_duplicate_for_a_retransmitted_segment_passes() {
    let mut drill = window();
    drill.data(2000..3000).quietly();
    drill.ack(2000).ack(2000).expect(&["wired ack 2000"; 2]);
}

#[test]
fn snoop_ack_7_first_dupack_retransmits_ahead_of_the_queue() {
    window().ack(2000).expect(&["radio high 2000..3000 local", "SNOOP-ACK-7 ack 2000"]);
}

#[test]
fn snoop_ack_8_and_9_as_many_dupacks_are_expected_as_departed_after_the_lost_one() {
    // 3000, 4000 and 5000 departed after 2000: three duplicates, the first is the trigger.
    let mut drill = window();
    drill.ack(2000).quietly();
    drill.ack(2000).ack(2000).expect(&["SNOOP-ACK-9 ack 2000"; 2]);
    // One more: the retransmission is lost, too.
    drill.ack(2000).expect(&["radio high 2000..3000 local", "SNOOP-ACK-7 ack 2000"]);
}

#[test]
fn snoop_ack_8_segments_that_have_not_departed_do_not_count() {
    let mut drill = Drill::strict();
    drill.hold_the_air().segments(0, 8).depart(4).after_millis(10).ack(1000).quietly();
    // 1000 is lost; 2000 and 3000 departed after it; 4000 to 7000 wait.
    drill.ack(1000).expect(&["radio high 1000..2000 local", "SNOOP-ACK-7 ack 1000"]);
    drill.depart(1).ack(1000).expect(&["SNOOP-ACK-9 ack 1000"]);
    drill.depart(1).ack(1000).expect(&["radio high 1000..2000 local", "SNOOP-ACK-7 ack 1000"]);
}

#[test]
fn snoop_ack_8_segments_that_are_not_cached_count() {
    let mut drill = Drill::new(Config { cache_segments_max: 4, ..Config::strict() });
    drill.segments(0, 6).after_millis(10).ack(1000).quietly();
    drill.ack(1000).quietly();
    drill.ack(1000).ack(1000).ack(1000).expect(&["SNOOP-ACK-9 ack 1000"; 3]);
}

#[test]
fn snoop_ack_10_the_retransmission_is_next_on_the_air() {
    let mut drill = Drill::strict();
    drill.segments(0, 4).hold_the_air().segments(4, 10).after_millis(10).ack(1000).quietly();
    drill.ack(1000);
    assert_eq!(drill.sink.sent.last().expect("sent").1, Priority::High);
    let before = drill.statistics().retransmissions;
    drill.depart(1).ack(1000).quietly();
    assert_eq!(before, 1);
}

#[test]
fn snoop_ack_11_a_second_hole_starts_a_fresh_episode() {
    let mut drill = window();
    drill.ack(2000).ack(2000).quietly();
    // The ACK stops at a second hole: forwarded, and the next duplicate is unexpected again.
    drill.ack(4000).expect(&["wired ack 4000"]);
    drill.ack(4000).expect(&["radio high 4000..5000 local", "SNOOP-ACK-7 ack 4000"]);
}

#[test]
fn snoop_perf_1_without_loss_nothing_is_added_and_nothing_held_back() {
    let mut drill = Drill::strict();
    for number in 0..1000 {
        drill.segments(number, 1).after_millis(1).ack(number * 1000 + 1000);
        let (data, ack) = (number * 1000, number * 1000 + 1000);
        drill.expect(&[&format!("radio {data}..{ack}"), &format!("wired ack {ack}")]);
    }
    assert_eq!(drill.statistics().retransmissions, 0);
    assert_eq!(drill.agent.held_bytes(), 0);
}

#[test]
fn snho_5_the_first_ack_seen_is_a_new_one() {
    let mut drill = Drill::strict();
    drill.segments(3, 3).quietly();
    drill.ack(5000).expect(&["wired ack 5000"]);
    assert_eq!(drill.agent.held_bytes(), 1000);
    drill.ack(5000).expect(&["radio high 5000..6000 local", "SNOOP-ACK-7 ack 5000"]);
}

#[test]
fn mod_18_sequence_numbers_wrap() {
    let mut drill = Drill::starting_at(Config::strict(), u32::MAX - 2_500);
    drill.segments(0, 6).after_millis(10).ack(1000).ack(2000).quietly();
    drill.ack(2000).expect(&["radio high 2000..3000 local", "SNOOP-ACK-7 ack 2000"]);
    drill.ack(1000).expect(&["SNOOP-ACK-3 ack 1000"]);
    drill.ack(6000).expect(&["wired ack 6000"]);
    assert_eq!(drill.agent.held_bytes(), 0);
    drill.data(1000..2000).expect(&["wired ack 6000 agent", "SNOOP-DATA-4 1000..2000"]);
}

#[test]
fn flows_do_not_share_their_counts() {
    let mut drill = window();
    drill.ack(2000).quietly();
    // Another connection's first duplicate is unexpected, whatever the first one's count is.
    let other = Host { port: 6000, ..crate::drill::MOBILE };
    let id = sansio::PacketId::FIRST;
    for number in 0..3_u32 {
        let mut data = segment(id, crate::drill::FIXED, other, Flags::ACK);
        tcp_mut(&mut data).seq = drill.seq(number * 1000);
        data.payload =
            sansio::Payload::Virtual { stream: sansio::StreamId(3), offset: 0, length: 1000 };
        drill.arrive(Side::WIRED, data);
    }
    let mut ack = segment(id, other, crate::drill::FIXED, Flags::ACK);
    tcp_mut(&mut ack).ack = drill.seq(1000);
    drill.arrive(Side::RADIO, ack.clone()).quietly();
    drill.arrive(Side::RADIO, ack);
    drill.expect(&["radio high 1000..2000 local", "SNOOP-ACK-7 ack 1000"]);
}

#[test]
fn snoop_st_3_a_repeat_that_displaces_acknowledged_bytes_leaves_none_of_them_in_the_cache() {
    let mut drill = Drill::strict();
    drill.data(0..2000).ack(1500).data(100..2100).quietly();
    assert_eq!(drill.agent.held_bytes(), 2000, "one segment");
    drill.after_millis(200).expect(&["radio high 1500..2100 local"]);
}

#[test]
fn a_four_tuple_used_again_far_away_starts_anew() {
    let mut drill = Drill::strict();
    drill.segments(0, 2).ack(1000).quietly();
    for jump in 1..4_u32 {
        let start = jump * (1 << 30) + jump * 5_000;
        drill.data(start..start + 1000).expect(&[&format!(
            "radio {}..{}",
            i64::from(start as i32),
            i64::from((start + 1000) as i32)
        )]);
        assert_eq!(drill.agent.held_bytes(), 1000, "nothing of the old connection");
    }
}

#[test]
fn snoop_st_1_a_flow_begins_with_its_first_data_or_in_mid_stream_and_ends_with_it() {
    let mut drill = Drill::strict();
    // A pure ACK makes no state; data in mid-stream does.
    drill.ack(5000).expect(&["wired ack 5000"]);
    assert_eq!(drill.agent.flows(), 0);
    drill.segments(5, 3).after_millis(10).quietly();
    assert_eq!((drill.agent.flows(), drill.agent.held_bytes()), (1, 3000));
    // Highest sequence seen and last ACK: a duplicate of the lowest is now a duplicate.
    drill.ack(5000).quietly();
    drill.ack(5000).expect(&["radio high 5000..6000 local", "SNOOP-ACK-7 ack 5000"]);
}

#[test]
fn snoop_st_2_an_entry_counts_its_local_retransmissions_and_is_marked_by_the_senders() {
    let mut drill = window();
    // Counted: after the limit its duplicates pass (SNOOP-TMR-7).
    for _ in 0..200 {
        drill.after_millis(50).ack(2000).quietly();
    }
    drill.ack(2000).expect(&["wired ack 2000"]);
    // Marked: the same at once, though nothing was re-sent since.
    let mut drill = window();
    drill.ack(2000).data(2000..3000).quietly();
    drill.ack(2000).expect(&["wired ack 2000"]);
}

#[test]
fn snoop_data_7_how_far_behind_an_old_packet_is_makes_no_difference() {
    for behind in [1, 2, 5] {
        let mut drill = Drill::strict();
        let next = 1 + behind;
        drill.segments(0, 1).segments(2, next).ack(1000).quietly();
        drill.data(1000..2000).expect(&["radio 1000..2000"]);
        drill.ack(1000).expect(&["wired ack 1000"]);
    }
}
