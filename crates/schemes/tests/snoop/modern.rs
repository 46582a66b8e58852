//! What today adds to the paper, row by row, with the modern preset.

use crate::drill::{Drill, tcp_mut};
use sansio::{Duration, Instant, Notice, Payload, Side, StreamId};
use schemes::snoop::Config;
use schemes::snoop::config::{Bounds, CopyTimestamps, Departures, SackTowardSender};
use std::num::NonZeroU16;
use wire::ip::Ecn;
use wire::tcp::{Flags, kind};

/// Segments 0 to 9 passed and are on the air; 1000 is acknowledged after 10 ms.
pub(crate) fn window() -> Drill {
    let mut drill = Drill::modern();
    drill.segments(0, 10).after_millis(10).ack(1000).quietly();
    drill
}

pub(crate) fn with_bounds(change: impl FnOnce(&mut Bounds)) -> Config {
    let mut config = Config::modern();
    change(&mut config.bounds);
    config
}

#[test]
fn mod_1_every_hole_that_something_overtook_is_resent_at_once() {
    let mut drill = window();
    drill.sack(1000, &[(7000, 8000), (4000, 5000), (2000, 3000)]).expect(&[
        "MOD-1 ack 1000 sack 7000..8000 sack 4000..5000 sack 2000..3000",
        "radio high 1000..2000 local",
        "radio high 3000..4000 local",
        "radio high 5000..6000 local",
        "radio high 6000..7000 local",
    ]);
}

/// The last segment of a message: nothing comes behind it that would show its loss.
#[test]
fn metp_ll_3_what_the_link_layer_gave_up_is_resent_at_once_and_once() {
    let mut drill = window();
    // Without blocks, nobody would know what the duplicate ACKs behind it show.
    drill.verdict(9000, false).expect(&[]);
    drill.sack(1000, &[(2000, 3000)]).ack(9000).quietly();
    drill.verdict(9000, false).expect(&["radio high 9000..10000 local"]);
    assert!(drill.acted("METP-LL-3"));
    // Given up again: from now on ACKs and timers say what is lost.
    drill.verdict(9000, false).expect(&[]);
    // Acknowledged by TCP in the meantime, or known to have arrived.
    drill.ack(10_000).quietly();
    drill.verdict(9000, false).expect(&[]);
    drill.segments(10, 1).quietly().verdict(10_000, true).expect(&[]);
}

#[test]
fn metp_ll_3_the_papers_agent_asks_for_no_verdict_and_ignores_it() {
    let mut drill = Drill::strict();
    drill.segments(0, 10).after_millis(10).ack(1000).quietly();
    assert!(!drill.agent.wants_verdicts() && Drill::modern().agent.wants_verdicts());
    drill.verdict(9000, false).expect(&[]);
}

#[test]
fn mod_1_a_hole_is_resent_once_until_something_later_shows_that_the_copy_is_lost() {
    let mut drill = window();
    drill
        .sack(1000, &[(2000, 3000)])
        .expect(&["MOD-1 ack 1000 sack 2000..3000", "radio high 1000..2000 local"]);
    // All of these departed before the copy: they prove nothing about it.
    drill.after_millis(1);
    for end in [4000, 5000, 10_000] {
        drill.sack(1000, &[(2000, end)]).expect(&[&format!("MOD-1 ack 1000 sack 2000..{end}")]);
    }
    // This one departs after it.
    drill.segments(10, 1).after_millis(10).quietly();
    drill
        .sack(1000, &[(2000, 11_000)])
        .expect(&["MOD-1 ack 1000 sack 2000..11000", "radio high 1000..2000 local"]);
}

#[test]
fn mod_1_an_ack_that_must_pass_shows_no_blocks_and_is_unchanged_otherwise() {
    let mut drill = Drill::modern();
    drill.timestamp = Some(9);
    drill.segments(0, 10).after_millis(10).ack(1000).quietly();
    drill.sack(2000, &[(3000, 4000)]).expect(&["wired ack 2000", "radio high 2000..3000 local"]);
    let passed = drill.last_sent(Side::WIRED).as_tcp().expect("TCP");
    assert_eq!(passed.options.as_bytes().len(), 12 + 12, "padding, not another length");
    assert_eq!(passed.options.timestamps().expect("kept").value, 9);
    assert_eq!(drill.statistics().sack_hidden, 1);
    // A window update passes in the same way.
    drill.ack_with(2000, |packet| {
        let blocks = [wire::tcp::SackBlock {
            start: wire::tcp::Seq(1000 + 3000),
            end: wire::tcp::Seq(1000 + 4000),
        }];
        tcp_mut(packet).options.push_sack(&blocks);
        tcp_mut(packet).window = 2000;
    });
    drill.expect(&["wired ack 2000"]);
}

#[test]
fn mod_1_blocks_pass_if_the_parameter_says_so() {
    let config = Config { sack_toward_sender: SackTowardSender::Pass, ..Config::modern() };
    let mut drill = Drill::new(config);
    drill.segments(0, 10).after_millis(10).ack(1000).quietly();
    drill.sack(2000, &[(3000, 4000)]);
    drill.expect(&["wired ack 2000 sack 3000..4000", "radio high 2000..3000 local"]);
}

#[test]
fn mod_1_a_hole_that_is_not_cached_is_for_the_sender_to_repair() {
    let mut drill = Drill::modern();
    drill.segments(0, 2).segments(3, 4).after_millis(10).ack(1000).quietly();
    // 2000 was lost on the wire, 1000 on the air: the blocks pass, and 1000 is repaired anyway.
    drill.sack(1000, &[(3000, 4000)]);
    drill.expect(&["wired ack 1000 sack 3000..4000", "radio high 1000..2000 local"]);
    drill.sack(2000, &[(3000, 4000)]).expect(&["wired ack 2000 sack 3000..4000"]);
    // The sender repairs: a marked segment, and all is well after it.
    drill.data(2000..3000).ack(4000).expect(&["radio 2000..3000", "wired ack 4000"]);
}

#[test]
fn mod_1_a_hole_that_the_sender_filled_is_repaired_if_the_air_loses_it_then() {
    let mut drill = Drill::modern();
    drill.segments(0, 2).segments(3, 4).after_millis(10).ack(2000).sack(2000, &[(3000, 7000)]);
    drill.data(2000..3000).segments(7, 1).after_millis(10).quietly();
    // Marked, so its duplicates pass; re-sent all the same.
    drill.sack(2000, &[(3000, 8000)]);
    drill.expect(&["wired ack 2000 sack 3000..8000", "radio high 2000..3000 local"]);
}

#[test]
fn mod_1_no_timer_resends_what_lies_above_a_hole_that_is_not_cached() {
    let mut drill = Drill::modern();
    // 2000 was lost on the wire, 1000 on the air.
    drill.segments(0, 2).segments(3, 4).after_millis(10).ack(1000).ack(1000);
    drill.after_millis(10).ack(2000).quietly();
    assert_eq!(drill.statistics().retransmissions, 1);
    for _ in 0..100 {
        drill.after_millis(10).ack(2000);
    }
    assert_eq!(drill.statistics().retransmissions, 1);
}

#[test]
fn mod_1_the_timer_repeats_the_lowest_hole_that_is_cached() {
    let mut drill = Drill::modern();
    drill.segments(0, 2).segments(3, 4).after_millis(10).ack(1000).quietly();
    // 2000 was lost on the wire; 4000 on the air, and so is its copy.
    drill.ack(2000).after_millis(5).sack(2000, &[(5000, 7000), (3000, 4000)]).expect(&[
        "wired ack 2000",
        "wired ack 2000 sack 5000..7000 sack 3000..4000",
        "radio high 4000..5000 local",
    ]);
    let due = drill.deadline("snoop round trip").expect("armed");
    drill.at(due - Duration::from_nanos(1)).expect(&[]);
    drill.at(due).expect(&["radio high 4000..5000 local"]);
}

#[test]
fn mod_1_without_sack_the_papers_counting_repairs() {
    let mut drill = window();
    drill.ack(1000).expect(&["radio high 1000..2000 local", "SNOOP-ACK-7 ack 1000"]);
    drill.ack(1000).expect(&["SNOOP-ACK-9 ack 1000"]);
}

#[test]
fn mod_1_a_segment_that_the_queue_dropped_is_congestion_and_the_sender_learns_of_it() {
    let mut drill = Drill::modern();
    drill.segments(0, 2).after_millis(10).ack(1000).hold_the_air().segments(2, 4).quietly();
    drill.depart(1).queue_drops_one().depart(1).after_millis(10).ack(3000).quietly();
    assert_eq!(drill.statistics().queue_drops_seen, 1);
    drill.sack(3000, &[(4000, 5000)]).expect(&["wired ack 3000 sack 4000..5000"]);
}

#[test]
fn mod_1_a_repair_that_was_not_needed_grants_later_ones_more_time() {
    let mut drill = window();
    drill.sack(1000, &[(2000, 3000)]).quietly();
    // The original arrives 1 ms after the copy was sent: a reordering radio.
    drill.after_millis(1).sack(3000, &[]).quietly();
    assert_eq!(drill.statistics().unneeded_retransmissions, 1);
    drill.sack(3000, &[(4000, 5000)]).expect(&["MOD-1 ack 3000 sack 4000..5000"]);
    let due = drill.deadline("snoop reordering").expect("a quarter of the round trip more");
    assert_eq!(due, drill.now + Duration::from_micros(2_500));
    drill.at(due - Duration::from_nanos(1)).expect(&[]);
    drill.at(due).expect(&["radio high 3000..4000 local"]);
}

/// A whole window comes late, as when a satellite network changes its paths, `rounds` times: each
/// repair finds its segment arrived.
fn reorder_windows(drill: &mut Drill, first: u32, rounds: u32) {
    for round in 0..rounds {
        let (start, end) = ((first + round * 40) * 1000, (first + round * 40 + 40) * 1000);
        drill.segments(first + round * 40, 40).after_millis(10);
        let repairs = drill.statistics().retransmissions;
        drill.sack(start, &[(end - 1000, end)]).quietly();
        for _ in 0..40 {
            if drill.statistics().retransmissions == repairs {
                drill.after_millis(1).quietly();
            }
        }
        drill.after_millis(1).ack(end).after_millis(10).quietly();
    }
}

#[test]
fn mod_14_needless_repairs_are_followed_by_a_rest_longer_each_time() {
    let mut drill = Drill::modern();
    drill.segments(0, 1).after_millis(10).ack(1000).quietly();
    reorder_windows(&mut drill, 1, 3);
    assert_eq!(drill.statistics().flows_left_alone, 1);
    let repairs = drill.statistics().retransmissions;
    reorder_windows(&mut drill, 121, 2);
    assert_eq!(drill.statistics().retransmissions, repairs, "it rests");
    // Rested: what is lost is repaired again.
    drill.after_millis(15_000).segments(201, 3).after_millis(10);
    drill.sack(201_000, &[(202_000, 204_000)]).after_millis(24).ack(204_000).quietly();
    assert_eq!(drill.statistics().retransmissions, repairs + 1);
    reorder_windows(&mut drill, 204, 3);
    assert_eq!(drill.statistics().flows_left_alone, 2);
    let repairs = drill.statistics().retransmissions;
    drill.after_millis(15_000);
    reorder_windows(&mut drill, 324, 2);
    assert_eq!(drill.statistics().retransmissions, repairs, "30 s the second time");
}

#[test]
fn mod_2_and_mod_12_acks_that_say_something_else_pass() {
    type Change = (&'static str, fn(&mut wire::tcp::Header));
    let changes: [Change; 7] = [
        ("ECE", |tcp| tcp.flags = Flags::ACK.with(Flags::ECE)),
        ("AE", |tcp| tcp.flags = Flags::ACK.with(Flags::AE)),
        ("URG", |tcp| tcp.flags = Flags::ACK.with(Flags::URG)),
        ("window", |tcp| tcp.window += 1),
        ("MPTCP", |tcp| tcp.options.push(&[kind::MPTCP, 4, 0x20, 0]).expect("room")),
        ("unknown", |tcp| tcp.options.push(&[kind::EXPERIMENT_1, 4, 1, 2]).expect("room")),
        ("AccECN", |tcp| tcp.options.push(&[kind::ACCURATE_ECN_0, 2]).expect("room")),
    ];
    for (what, change) in changes {
        let mut drill = window();
        drill.ack_with(1000, |packet| change(tcp_mut(packet)));
        let passed = drill.last_sent(Side::WIRED).as_tcp().expect("TCP").ack;
        assert_eq!(drill.statistics().dupacks_suppressed, 0, "{what}");
        assert_eq!(passed, drill.seq(1000), "{what}");
    }
}

#[test]
fn mod_3_and_mod_12_a_local_retransmission_repeats_timestamps_and_ecn_bits() {
    let mut drill = Drill::modern();
    drill.timestamp = Some(5);
    drill.data_with(0..1000, |packet| packet.ip.traffic_class = Ecn::Capable0 as u8);
    drill.segments(1, 3).after_millis(10).ack(0);
    drill.timestamp = Some(90);
    drill.sack(0, &[(1000, 2000)]);
    let copy = drill.last_sent(Side::RADIO).clone();
    let original = drill.sink.sent[0].2.clone();
    assert_eq!(copy.as_tcp(), original.as_tcp());
    assert_eq!((copy.ip, &copy.payload), (original.ip, &original.payload));
    assert_eq!(copy.parent, Some(original.id));
}

/// MOD-3, "a PAWS-enforcing peer accepts all": once the sender has repaired a hole, the mobile host
/// discards whatever is older than that repair (RFC 7323, section 5.3).
#[test]
fn mod_3_a_copy_is_no_older_than_what_the_mobile_host_last_echoed() {
    let value = |drill: &Drill| {
        let tcp = drill.last_sent(Side::RADIO).as_tcp().expect("TCP");
        tcp.options.timestamps().expect("has timestamps").value
    };
    let repaired = |config| {
        let mut drill = Drill::new(config);
        drill.timestamp = Some(5);
        drill.segments(0, 1).after_millis(10).ack(1000).segments(2, 4).after_millis(10);
        drill.ack(1000).ack(1000).ack(1000);
        // 1000 was lost on the wire, 3000 on the air; 1000 comes with a newer TSval.
        drill.timestamp = Some(90);
        drill.data(1000..2000).after_millis(10).quietly();
        drill.ack(3000).expect(&["wired ack 3000", "radio high 3000..4000 local"]);
        drill
    };
    assert_eq!(value(&repaired(Config::modern())), 7090);
    let as_sent = Config { copy_timestamps: CopyTimestamps::AsSent, ..Config::modern() };
    assert_eq!(value(&repaired(as_sent)), 7005);
}

#[test]
fn mod_3_an_echo_that_the_sender_never_sent_changes_no_copy() {
    let mut drill = Drill::modern();
    drill.timestamp = Some(5);
    drill.segments(0, 5).after_millis(10).ack(1000).quietly();
    drill.timestamp = Some(1 << 20);
    drill.ack(1000).expect(&["radio high 1000..2000 local", "SNOOP-ACK-7 ack 1000"]);
    let copy = drill.last_sent(Side::RADIO).as_tcp().expect("TCP");
    assert_eq!(copy.options.timestamps().expect("has timestamps").value, 7005);
}

/// RFC 3522: an echo of the older TSval would say that the sender's own repeat was a mistake.
#[test]
fn mod_3_what_the_sender_repeated_is_sent_again_as_it_repeated_it() {
    let value_after = |config| {
        let mut drill = Drill::new(config);
        drill.timestamp = Some(5);
        drill.segments(0, 5).after_millis(10).ack(1000).quietly();
        drill.timestamp = Some(90);
        drill.data(1000..2000).after_millis(400).quietly();
        let again = drill.sink.sent.iter().rev().find_map(|(side, _, packet)| {
            let is_ours = packet.cause != sansio::Cause::Original && *side == Side::RADIO;
            is_ours.then(|| packet.as_tcp()?.options.timestamps()).flatten()
        });
        again.expect("a probe, or the persist timer's copy").value
    };
    assert_eq!(value_after(Config::modern()), 7090);
    assert_eq!(value_after(Config::strict()), 7005, "as it came");
}

/// A hundred holes at once, as an outage leaves them: no queue holds as many.
#[test]
fn mod_1_holes_are_repaired_a_few_at_a_time_and_what_the_queue_drops_once_more() {
    let mut drill = Drill::modern();
    drill.segments(0, 120).after_millis(10).ack(10_000).hold_the_air().quietly();
    drill.sack(10_000, &[(119_000, 120_000)]).quietly();
    assert_eq!(drill.statistics().retransmissions, 32);
    drill.queue_drops_a_copy().depart(2).after_millis(10);
    drill.sack(10_000, &[(11_000, 13_000), (119_000, 120_000)]);
    let suppressed = "MOD-1 ack 10000 sack 11000..13000 sack 119000..120000";
    let two = ["radio high 42000..43000 local", "radio high 43000..44000 local"];
    drill.expect(&[suppressed, two[0], two[1]]);
    // Those go, too, and so the first cannot be waiting any more.
    drill.depart(31).after_millis(10);
    drill.sack(10_000, &[(11_000, 14_000), (119_000, 120_000)]);
    assert_eq!(drill.sink.lines[1], "radio high 10000..11000 local");
    assert_eq!(drill.statistics().retransmissions, 34 + 32);
}

#[test]
fn mod_5_without_a_scale_every_change_of_the_window_field_is_an_update() {
    let mut drill = window();
    drill.ack_with(1000, |packet| tcp_mut(packet).window = 1001).expect(&["wired ack 1000"]);
}

/// The SYNs of both hosts pass, with these scales; then as [`window`].
fn with_scales(fixed: u8, mobile: u8) -> Drill {
    let mut drill = Drill::modern();
    let scale = |packet: &mut sansio::Packet, flags, shift| {
        tcp_mut(packet).flags = flags;
        let option = [kind::WINDOW_SCALE, 3, shift, kind::NOP];
        tcp_mut(packet).options.push(&option).expect("room");
    };
    drill.ack_with(0, |packet| scale(packet, Flags::SYN, mobile));
    drill.data_with(0..0, |packet| scale(packet, Flags::SYN.with(Flags::ACK), fixed));
    drill.segments(0, 10).after_millis(10).ack(1000).quietly();
    drill
}

#[test]
fn mod_5_with_a_scale_only_a_window_that_allows_more_or_closes_is_an_update() {
    let duplicate = &["radio high 1000..2000 local", "SNOOP-ACK-7 ack 1000"];
    let mut drill = with_scales(0, 7);
    // A smaller one takes nothing back: a duplicate like any other.
    drill.ack_with(1000, |packet| tcp_mut(packet).window = 999).expect(duplicate);
    // 80 KB, as far as ever: nothing new. One unit more is; and so is a window that closes.
    drill.ack_with(1000, |packet| tcp_mut(packet).window = 1000);
    drill.expect(&["SNOOP-ACK-9 ack 1000"]);
    drill.ack_with(1000, |packet| tcp_mut(packet).window = 1001).expect(&["wired ack 1000"]);
    drill.ack_with(1000, |packet| tcp_mut(packet).window = 0).expect(&["wired ack 1000"]);
}

#[test]
fn mod_5_windows_are_judged_in_bytes_by_their_right_edge() {
    let mut drill = with_scales(0, 7);
    // 1000 + 1000 * 128 was allowed; now 2000 + 990 * 128, which is 280 less.
    drill.ack_with(2000, |packet| tcp_mut(packet).window = 990).expect(&["wired ack 2000"]);
    // 2 units of 128 bytes stay within what was allowed before; a third goes beyond.
    drill.ack_with(2000, |packet| tcp_mut(packet).window = 992);
    drill.expect(&["radio high 2000..3000 local", "SNOOP-ACK-7 ack 2000"]);
    drill.ack_with(2000, |packet| tcp_mut(packet).window = 993).expect(&["wired ack 2000"]);
}

#[test]
fn mod_5_a_flow_picked_up_on_the_way_has_no_scale_and_its_windows_are_not_interpreted() {
    let mut drill = with_scales(0, 7);
    drill.notice(Notice::Forget).segments(10, 10).after_millis(10).ack(11_000).quietly();
    drill.ack_with(11_000, |packet| tcp_mut(packet).window = 999).expect(&["wired ack 11000"]);
}

#[test]
fn mod_7_only_the_missing_segments_of_a_super_packet_are_resent() {
    let mut drill = Drill::modern();
    let fin = Flags::ACK.with(Flags::PSH).with(Flags::FIN);
    drill.data_with(0..5500, |packet| {
        packet.segment_bytes = NonZeroU16::new(1000);
        tcp_mut(packet).flags = fin;
    });
    drill.after_millis(10).ack(1000).quietly();
    drill.sack(1000, &[(2000, 3000), (4000, 5000)]).expect(&[
        "MOD-1 ack 1000 sack 2000..3000 sack 4000..5000",
        "radio high 1000..2000 local",
        "radio high 3000..4000 local",
    ]);
    let copy = drill.last_sent(Side::RADIO);
    assert_eq!(copy.as_tcp().expect("TCP").flags, Flags::ACK, "PSH and FIN are the last one's");
    assert_eq!(copy.segment_bytes, None);
    let stream = Payload::Virtual { stream: StreamId(1), offset: 3000, length: 1000 };
    assert_eq!(copy.payload, stream);
    drill.ack(5000).after_millis(200).quietly();
    assert_eq!(drill.statistics().cached, 6, "counted by segment");
}

/// A round trip that is not known yet is not zero.
#[test]
fn snoop_tmr_2_before_the_first_sample_nothing_is_overtaken_or_repeated_within_200_ms() {
    let mut drill = Drill::modern();
    drill.segments(0, 5).after_millis(10).ack(0).quietly();
    drill.ack(0).expect(&["radio high 0..1000 local", "SNOOP-ACK-7 ack 0"]);
    drill.after_millis(10).ack(1000).expect(&["wired ack 1000"]);
    drill.after_millis(199).expect(&[]);
    drill.after_millis(1).quietly();
    assert_eq!(drill.statistics().timer_retransmissions, 1);
}

#[test]
fn departures_may_be_assumed_where_nobody_reports_them() {
    let config = Config { departures: Departures::AssumedWhenSent, ..Config::modern() };
    let mut drill = Drill::new(config);
    assert!(!drill.agent.wants_departures());
    drill.hold_the_air().segments(0, 5).after_millis(10).ack(1000).quietly();
    drill.sack(1000, &[(3000, 4000)]).expect(&[
        "MOD-1 ack 1000 sack 3000..4000",
        "radio high 1000..2000 local",
        "radio high 2000..3000 local",
    ]);
}

#[test]
fn an_idle_flow_is_forgotten_after_its_time() {
    let mut drill = Drill::modern();
    drill.segments(0, 1).ack(1000);
    let due = Instant::ZERO + Duration::from_secs(300);
    drill.at(due - Duration::from_nanos(1));
    assert_eq!(drill.agent.flows(), 1);
    drill.at(due);
    assert_eq!(drill.agent.flows(), 0);
}

/// MOD-17: an ACK for every second or eighth segment, or one ACK for many, only means fewer
/// duplicates than could come: the hole is repaired by the first that shows it, and the expected
/// number never leaves an ACK withheld that says something new.
#[test]
fn mod_17_thinned_acks_show_a_hole_as_well() {
    for every in [1, 2, 8] {
        let mut drill = window();
        let first = [(2000, 2000 + 1000 * every)];
        let shown = format!("MOD-1 ack 1000 sack 2000..{}", 2000 + 1000 * every);
        drill.sack(1000, &first).expect(&[&shown, "radio high 1000..2000 local"]);
        drill.after_millis(5).ack(10_000).expect(&["wired ack 10000"]);
        assert_eq!(drill.agent.held_bytes(), 0);
    }
}
