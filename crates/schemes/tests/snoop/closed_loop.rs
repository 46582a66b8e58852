//! What the agent achieves over an air that loses.

use crate::world::{World, at_random, first_copies, outage, run};
use sansio::{Duration, Instant, Notice, Side};
use schemes::snoop::Config;

#[test]
fn several_losses_per_window_are_repaired_and_no_dupack_reaches_the_fixed_host() {
    for (name, config, sack) in [
        ("strict", Config::strict(), false),
        ("strict, SACK", Config::strict(), true),
        ("modern", Config::modern(), true),
        ("modern without SACK", Config::modern(), false),
    ] {
        let loses = first_copies(&[60, 62, 65, 66, 80, 95], 1);
        let run = run(config, World { loses, sack, ..World::slow() });
        assert_eq!(run.dupacks_at_sender, 0, "{name}");
        assert_eq!(run.timeouts, 0, "{name}");
        assert_eq!(run.agent.statistics().retransmissions, 6, "{name}");
    }
}

#[test]
fn modern_shows_the_sender_no_sack_block_while_it_repairs() {
    let loses = at_random(0.05);
    let run = run(Config::modern(), World { loses, ..World::slow() });
    assert_eq!((run.dupacks_at_sender, run.sack_at_sender, run.timeouts), (0, 0, 0));
}

#[test]
fn modern_repairs_a_lost_retransmission_within_two_local_round_trips() {
    let loses = first_copies(&[500], 3);
    let run = run(Config::modern(), World { loses, ..World::fast() });
    assert_eq!((run.dupacks_at_sender, run.timeouts), (0, 0));
    let copies = &run.departures[&500];
    assert_eq!(copies.len(), 4);
    for pair in copies.windows(2) {
        let gap = pair[1].since(pair[0]);
        assert!(gap <= Duration::from_millis(2 * 31), "{gap} between two copies");
    }
}

#[test]
fn strict_comes_near_the_ceiling_where_round_trips_are_short() {
    for (loss, wanted) in [(0.0, 0.99), (0.01, 0.97), (0.05, 0.97), (0.17, 0.95)] {
        let world = World { loses: at_random(loss), sack: false, ..World::slow() };
        let share = run(Config::strict(), world).goodput_share(loss);
        assert!(share >= wanted, "{share:.3} of the ceiling at {loss}");
    }
}

#[test]
fn modern_repairs_without_sack_too() {
    for loss in [0.05, 0.1] {
        let world = World { loses: at_random(loss), sack: false, segments: 5_000, ..World::fast() };
        let run = run(Config::modern(), world);
        assert_eq!((run.dupacks_at_sender, run.timeouts), (0, 0), "at {loss}");
    }
}

#[test]
fn mod_14_the_sender_learns_of_losses_that_take_too_long_to_repair_one_by_one() {
    // 20 holes per window, 31 ms and more for each.
    let world = || World { loses: at_random(0.2), sack: false, segments: 5_000, ..World::fast() };
    let mut config = Config::modern();
    let bounded = run(config.clone(), world());
    assert!(bounded.dupacks_at_sender > 0);
    config.bounds.episode = Duration::MAX;
    let unbounded = run(config, world());
    assert_eq!(unbounded.dupacks_at_sender, 0);
    assert_eq!((bounded.timeouts, unbounded.timeouts), (0, 0));
}

#[test]
fn modern_comes_near_the_ceiling_at_every_loss_rate() {
    for (loss, wanted) in [(0.0, 0.99), (0.01, 0.97), (0.05, 0.97), (0.17, 0.95), (0.30, 0.90)] {
        let run = run(Config::modern(), World { loses: at_random(loss), ..World::slow() });
        let share = run.goodput_share(loss);
        assert!(share >= wanted, "{share:.3} of the ceiling at {loss}");
    }
}

#[test]
fn modern_restarts_within_a_round_trip_and_45_ms_when_nobody_tells() {
    for millis in [150, 300, 777, 1_100, 2_345, 7_000, 20_000] {
        let (begin, length) = (Duration::from_secs(2), Duration::from_millis(millis));
        let loses = outage(begin, length);
        let run = run(Config::modern(), World { loses, ..World::fast() });
        let end = Instant::ZERO + begin + length;
        let restarted_at = run.acked_at.iter().find(|at| **at > end).expect("it goes on");
        let stall = restarted_at.since(end);
        // The wired hop and a full segment's air time are on top of the local round trip.
        let limit = Duration::from_millis(31 + 45 + 2);
        assert!(stall <= limit, "{stall} after an outage of {length}");
        let probes = run.agent.statistics().probe_bytes as f64 * 8.0;
        let share = probes / (20e6 * length.as_secs_f64());
        assert!(share <= 0.002, "{share} of the air in an outage of {length}");
    }
}

#[test]
fn modern_restarts_within_a_round_trip_when_told() {
    for millis in [100, 1_100, 20_000] {
        let (begin, length) = (Duration::from_secs(2), Duration::from_millis(millis));
        let notices = vec![
            (begin, Notice::LinkDown(Side::RADIO)),
            (begin + length, Notice::LinkUp(Side::RADIO)),
        ];
        let loses = outage(begin, length);
        let run = run(Config::modern(), World { loses, notices, ..World::fast() });
        let end = Instant::ZERO + begin + length;
        let restarted_at = run.acked_at.iter().find(|at| **at > end).expect("it goes on");
        let stall = restarted_at.since(end);
        assert!(stall <= Duration::from_millis(31 + 2), "{stall} after an outage of {length}");
        assert!(run.agent.statistics().probes <= 21, "one per second");
    }
}

#[test]
fn forgetting_all_state_at_any_instant_loses_nothing() {
    for millis in [1_000, 1_003, 1_500, 2_222] {
        let notices = vec![(Duration::from_millis(millis), Notice::Forget)];
        for config in [Config::strict(), Config::modern()] {
            let loses = at_random(0.05);
            let run = run(config, World { loses, notices: notices.clone(), ..World::slow() });
            assert_eq!(run.acked, run.world.segments);
        }
    }
}

#[test]
fn modern_refills_the_window_when_the_sender_stays_silent() {
    // The sender's timeout has backed off to 16 s when the link comes back after 20 s.
    let (begin, length) = (Duration::from_secs(2), Duration::from_secs(20));
    let loses = outage(begin, length);
    let run = run(Config::modern(), World { loses, ..World::fast() });
    let end = Instant::ZERO + begin + length;
    let acked = run.acked_at.iter().filter(|at| **at > end).nth(30).expect("it goes on");
    assert!(acked.since(end) < Duration::from_secs(1), "{}", acked.since(end));
}

#[test]
fn modern_refills_the_window_of_a_sender_without_sack_that_knows_of_no_loss() {
    for millis in [100, 200, 400] {
        let (begin, length) = (Duration::from_secs(2), Duration::from_millis(millis));
        for notices in [
            vec![],
            vec![
                (begin, Notice::LinkDown(Side::RADIO)),
                (begin + length, Notice::LinkUp(Side::RADIO)),
            ],
        ] {
            let loses = outage(begin, length);
            let run = run(Config::modern(), World { loses, notices, sack: false, ..World::fast() });
            let end = Instant::ZERO + begin + length;
            let before = run.acked_at.iter().filter(|at| **at <= end).count();
            // The lost window: 100 segments, doubled each round trip from 2.
            let acked_at = run.acked_at[before + 50];
            assert!(acked_at.since(end) < Duration::from_millis(400), "{}", acked_at.since(end));
            assert_eq!(run.timeouts, 0);
        }
    }
}
