//! Across a handoff: the cache of a base station that buffers, and what becomes of it (SNHO-*).

use crate::drill::{Drill, MOBILE};
use sansio::{Duration, Notice, Side};
use schemes::snoop::{Config, Heading};

const REGISTERED: Notice = Notice::Registered(MOBILE.address);
const BUFFERING: Notice = Notice::Buffering(MOBILE.address);

/// It has heard segments 0 to `count`, and forwards now.
fn promoted(config: Config, count: u32) -> Drill {
    let mut drill = Drill::new(config);
    drill.hears(0, count);
    drill.notice(REGISTERED).notice(Notice::MobileUp(MOBILE.address)).expect(&[]);
    drill
}

fn both() -> [Config; 2] {
    [Config::strict(), Config::modern()]
}

#[test]
fn snho_1_what_was_heard_repairs_a_loss_after_the_handoff() {
    let mut drill = promoted(Config::strict(), 4);
    drill.ack(1000).expect(&["wired ack 1000"]);
    drill.ack(1000).expect(&["radio high 1000..2000 local", "SNOOP-ACK-7 ack 1000"]);
}

#[test]
fn snho_2_a_base_station_that_buffers_is_silent() {
    for config in both() {
        let mut drill = Drill::new(config);
        drill.hears(0, 5);
        assert_eq!(drill.agent.held_bytes(), 5000);
        drill.after_millis(100_000).expect(&[]);
        let notices = [
            Notice::LinkDown(Side::RADIO),
            Notice::LinkUp(Side::RADIO),
            Notice::LinkMayBeUp(Side::RADIO),
            Notice::MobileDown(MOBILE.address),
            Notice::MobileUp(MOBILE.address),
        ];
        for notice in notices {
            drill.notice(notice).after_millis(5_000).expect(&[]);
        }
        // An ACK that has gone ahead of the order to forward passes and frees nothing.
        drill.ack(1000).expect(&["wired ack 1000"]);
        drill.ack(1000).ack(1000).expect(&["wired ack 1000"; 2]);
        assert_eq!(drill.agent.held_bytes(), 5000);
        assert!(drill.deadline("snoop idle").is_some(), "nothing else runs");
    }
}

#[test]
fn snho_3_the_oldest_makes_room_until_it_forwards_and_the_newest_does_after() {
    // The mark is at six segments.
    let small = Config { cache_segments_max: 8, ..Config::strict() };
    let mut drill = promoted(small, 10);
    assert_eq!(drill.agent.held_bytes(), 6000);
    // Nothing tells yet what has arrived.
    drill.segments(10, 1).expect(&["radio 10000..11000"]);
    assert_eq!(drill.agent.held_bytes(), 6000);
    drill.ack(4000).ack(4000).expect(&["wired ack 4000"; 2]);
    assert!(drill.acted("SNOOP-ACK-5"), "the oldest are gone");
    // From here on what is above the mark is not cached, and the oldest stays.
    drill.ack(5000).segments(11, 1).expect(&["wired ack 5000", "radio 11000..12000"]);
    assert_eq!(drill.agent.held_bytes(), 6000);
    drill.ack(5000).expect(&["radio high 5000..6000 local", "SNOOP-ACK-7 ack 5000"]);
    // What had departed after it, wherever: segments 6 to 11, of which one caused the ACK before.
    for _ in 0..5 {
        drill.ack(5000).expect(&["SNOOP-ACK-9 ack 5000"]);
    }
    drill.ack(5000).expect(&["radio high 5000..6000 local", "SNOOP-ACK-7 ack 5000"]);
}

#[test]
fn snho_5_the_first_ack_frees_what_has_arrived() {
    for config in both() {
        let mut drill = promoted(config, 6);
        drill.ack(4000).expect(&["wired ack 4000"]);
        assert_eq!(drill.agent.held_bytes(), 2000);
    }
}

#[test]
fn snho_5_the_first_ack_is_a_new_one_though_it_repeats_what_was_known() {
    let mut drill = Drill::strict();
    drill.segments(0, 4).after_millis(10).ack(2000).quietly();
    drill.notice(BUFFERING);
    drill.hears(4, 1);
    drill.notice(REGISTERED).expect(&[]);
    drill.ack(2000).expect(&["wired ack 2000"]);
    drill.ack(2000).expect(&["radio high 2000..3000 local", "SNOOP-ACK-7 ack 2000"]);
}

#[test]
fn snho_5_what_another_base_station_sent_is_no_sample_of_the_round_trip() {
    for config in both() {
        let mut drill = promoted(config, 4);
        drill.after_millis(300).quietly();
        drill.ack(4000);
        let view = drill.agent.views(Heading::Down, 0..1, drill.now).next().expect("a flow");
        assert_eq!((view.round_trip, view.cached_segments), (None, 0));
    }
}

#[test]
fn snho_6_duplicates_of_what_was_not_heard_reach_the_sender() {
    let mut drill = Drill::strict();
    drill.hears(0, 2);
    drill.hears(3, 2);
    drill.notice(REGISTERED);
    drill.ack(2000).ack(2000).ack(2000).expect(&["wired ack 2000"; 3]);
    drill.data(2000..3000).expect(&["radio 2000..3000"]);
    drill.ack(5000).expect(&["wired ack 5000"]);
    assert_eq!(drill.agent.held_bytes(), 0);
}

/// Mobile IP: a base station begins with nothing, in the midst of a connection.
#[test]
fn snho_6_a_cache_that_begins_empty_leaves_to_the_sender_what_it_never_had() {
    for config in both() {
        let mut drill = Drill::new(config);
        drill.notice(REGISTERED).segments(5, 3).quietly();
        drill.ack(3000).ack(3000).ack(3000).expect(&["wired ack 3000"; 3]);
        drill.data(3000..4000).data(4000..5000).expect(&["radio 3000..4000", "radio 4000..5000"]);
        drill.after_millis(10).ack(5000).ack(5000);
        assert!(drill.sink.lines.contains(&"radio high 5000..6000 local".into()), "it has that");
    }
}

#[test]
fn snho_9_an_old_primary_stops_at_once_and_its_cache_stays() {
    for config in both() {
        let mut drill = Drill::new(config);
        drill.segments(0, 6).after_millis(10).ack(2000).ack(2000).quietly();
        drill.notice(BUFFERING).after_millis(100_000).expect(&[]);
        assert_eq!(drill.agent.held_bytes(), 4000);
        assert!(drill.deadline("snoop idle").is_some(), "nothing else runs");
        drill.notice(Notice::Moved(MOBILE.address));
        assert_eq!((drill.agent.flows(), drill.agent_has_timers()), (0, false));
    }
}

/// What is told of data from the mobile host goes into the same air.
#[test]
fn snho_9_an_old_primary_tells_a_mobile_host_no_more_what_it_lacks_of_its_data() {
    for notice in [BUFFERING, Notice::Moved(MOBILE.address)] {
        let mut drill = crate::nack::with_a_gap();
        assert!(drill.deadline("snoop silence").is_some(), "a gap is known");
        drill.quietly().notice(notice).after_millis(100_000).expect(&[]);
    }
}

#[test]
fn snho_1_what_the_group_kept_is_no_repeat_of_the_senders() {
    for told_first in [true, false] {
        let mut drill = Drill::strict();
        let kept = drill.hears(0, 4);
        if told_first {
            drill.notice(REGISTERED);
        }
        drill.arrive(Side::WIRED, kept[2].clone()).arrive(Side::WIRED, kept[3].clone());
        drill.expect(&["radio 2000..3000", "radio 3000..4000"]);
        assert!(!drill.acted("SNOOP-DATA-3"));
        drill.after_millis(10).ack(2000).ack(2000);
        drill.expect(&["wired ack 2000", "radio high 2000..3000 local", "SNOOP-ACK-7 ack 2000"]);
        // The same bytes in another packet are: the sender's timer has expired.
        drill.data(2000..3000).expect(&["radio 2000..3000"]);
        assert!(drill.acted("SNOOP-DATA-3"));
    }
}

#[test]
fn snho_1_what_the_sender_repeats_elsewhere_is_marked_here_too() {
    let mut drill = Drill::strict();
    drill.hears(0, 3);
    drill.hears(1, 1);
    drill.notice(REGISTERED).ack(1000).ack(1000).expect(&["wired ack 1000"; 2]);
    assert!(drill.acted("SNOOP-ACK-6"));
}

/// Until it is synchronised, silence is answered as ever: by the lowest of the cache.
#[test]
fn snho_5_silence_after_the_handoff_asks_for_the_first_ack() {
    let mut drill = promoted(Config::strict(), 3);
    drill.after_millis(199).expect(&[]);
    drill.after_millis(1).expect(&["radio high 0..1000 local"]);
    let mut drill = promoted(Config::modern(), 3);
    drill.after_millis(199).expect(&[]);
    drill.after_millis(1).expect(&["radio high 0..1 probe"]);
}

/// Modern: what the old base station sent first and has not arrived is lost if what it sent later
/// has; what overtakes it here proves nothing, since the old queue may hold it.
#[test]
fn snho_5_modern_repairs_what_its_like_has_overtaken() {
    let mut drill = promoted(Config::modern(), 6);
    drill.sack(1000, &[(3000, 4000)]);
    drill.expect(&["wired ack 1000", "radio high 1000..2000 local", "radio high 2000..3000 local"]);
}

#[test]
fn snho_5_modern_waits_for_the_old_queue() {
    let mut drill = Drill::modern();
    let kept = drill.hears(0, 4);
    drill.notice(REGISTERED).arrive(Side::WIRED, kept[3].clone()).expect(&["radio 3000..4000"]);
    drill.after_millis(5).sack(1000, &[(3000, 4000)]).expect(&["wired ack 1000"]);
    // The old one has brought segment 1, so it is still at it: 40 ms from then.
    drill.after_millis(10).sack(2000, &[(3000, 4000)]).expect(&["wired ack 2000"]);
    let end = drill.now + Duration::from_millis(40);
    drill.at(end - Duration::from_nanos(1)).expect(&[]);
    drill.at(end).expect(&["radio high 2000..3000 local"]);
}
