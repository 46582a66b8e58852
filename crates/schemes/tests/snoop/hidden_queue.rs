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
        let world = World { window: 40, sender: Sender::FixedWindow, loses, ..broadband(100) };
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
