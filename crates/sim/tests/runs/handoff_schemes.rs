//! Fast retransmission and window control where they run now: one cell whose link goes and comes
//! back, and a mobile host that knows of it.

use crate::plans::plans;
use sansio::Duration;
use schemes::fast_retransmit::Config;
use schemes::fast_retransmit::config::Trigger;
use sim::Outcome;
use trace::Nothing;

/// 10 Mbit/s, round trip 50 ms, one download.
const PATH: &str = r#"
    rate = "10Mbit/s"
    delay = "5ms"
    wired-delay = "20ms"
    duration = "9s"
"#;
const ROUND_TRIP: Duration = Duration::from_millis(50);

fn run(tcp: &str, outage: &str, scheme: &str) -> Outcome {
    run_with(1, tcp, outage, scheme)
}

fn run_with(seed: u64, tcp: &str, outage: &str, scheme: &str) -> Outcome {
    let text = format!("{PATH}\n{tcp}\noutage = \"{outage}\"\nschemes = \"{scheme}\"");
    let (_, plan) = plans(&text).swap_remove(0);
    let outcome = sim::run(&plan, seed, Nothing);
    assert_eq!(outcome.failures, [], "{text}");
    outcome
}

/// From the return of the link to the next byte in order, the longest of 8 seeds: hosts of 1995
/// have ticks that began at a time of their own.
fn wait(tcp: &str, outage: &str, scheme: &str) -> Duration {
    let one = |seed| {
        let outcome = run_with(seed, tcp, outage, scheme);
        let waits = &outcome.measures.transfers[0].receiver_stalls_after_outage;
        assert_eq!(waits.len(), 1, "{tcp} {outage} {scheme}");
        waits[0]
    };
    (1..=8).map(one).max().expect("eight of them")
}

#[test]
fn ci_frx_9_senders_of_1995_go_on_after_a_round_trip_instead_of_a_timeout() {
    for sender in ["tahoe", "reno", "newreno", "vegas"] {
        let tcp = format!("hosts = \"1995\"\ntcp = \"{sender}\"");
        let outage = "at=5s,length=500ms,notified";
        let plain = wait(&tcp, outage, "plain");
        assert!(plain > ROUND_TRIP * 4, "{sender}: {plain} with plain");
        for scheme in ["fast-retransmit", "fast-retransmit-marked"] {
            let wait = wait(&tcp, outage, scheme);
            assert!(wait <= ROUND_TRIP + ROUND_TRIP / 4, "{sender}: {wait} with {scheme}");
        }
        // Three copies are two duplicates if the ACK before them was lost (A2).
        let strict = wait(&tcp, outage, "fast-retransmit-strict");
        assert!(strict <= ROUND_TRIP * 2 + ROUND_TRIP / 4, "{sender}: {strict}");
    }
}

#[test]
fn ci_frx_2_a_mobile_host_that_sends_goes_on_without_a_timeout() {
    for scheme in ["fast-retransmit", "fast-retransmit-strict"] {
        let tcp = "hosts = \"1995\"\ntcp = \"tahoe\"\ndirection = \"up\"";
        let outage = "at=5s,length=500ms,notified";
        let (plain, wait) = (wait(tcp, outage, "plain"), wait(tcp, outage, scheme));
        // What was acknowledged into the outage may be the oldest: its repetition is answered, and
        // then come new bytes, and what is missing by duplicate ACKs.
        let most = ROUND_TRIP * 3;
        assert!(plain > ROUND_TRIP * 4 && wait <= most, "{plain}, {scheme}: {wait}");
    }
}

#[test]
fn mod_16_repeated_acks_say_nothing_to_a_linux_sender_and_a_mark_does() {
    let outage = "at=5s,length=2s,notified";
    for (tcp, most) in [
        // It takes ACKs without blocks for late ones as long as its timer backs off.
        ("tcp = \"cubic\"\nsack = \"off\"", None),
        // The first copy acknowledges what the outage kept from it; then comes a round trip more.
        ("tcp = \"cubic\"\nsack = \"on\"", Some(ROUND_TRIP * 9 / 4)),
        ("tcp = \"bbr\"", Some(ROUND_TRIP * 9 / 4)),
    ] {
        let plain = wait(tcp, outage, "plain");
        let repeated = wait(tcp, outage, "fast-retransmit");
        match most {
            None => assert!(repeated * 10 > plain * 9, "{tcp}: {repeated} of {plain}"),
            Some(most) => assert!(repeated <= most, "{tcp}: {repeated}"),
        }
        let marked = wait(tcp, outage, "fast-retransmit-marked");
        assert!(marked <= ROUND_TRIP + ROUND_TRIP / 4, "{tcp}: {marked} with a mark");
    }
}

#[test]
fn winc_mh_6_warned_a_queue_and_a_round_trip_before_nothing_is_lost() {
    for tcp in ["tahoe", "reno", "newreno", "sack"] {
        let tcp = format!("hosts = \"1995\"\ntcp = \"{tcp}\"");
        let outage = "at=5s,length=1s,warned=100ms";
        let plain = run(&tcp, outage, "plain").measures;
        assert!(plain.timeouts > 0 && plain.retransmissions_end_to_end > 0, "{tcp}");
        let closed = run(&tcp, outage, "window-mobile").measures;
        assert_eq!((closed.timeouts, closed.retransmissions_end_to_end), (0, 0), "{tcp}");
        assert!(closed.transfers[0].delivered_bytes > plain.transfers[0].delivered_bytes);
    }
}

#[test]
fn winc_mh_5_warned_too_late_data_is_lost_and_winc_bs_10_a_base_station_still_has_it() {
    let tcp = "hosts = \"1995\"\ntcp = \"reno\"";
    let outage = "at=5s,length=1s,warned=10ms";
    assert!(run(tcp, outage, "window-mobile").measures.lost > 0);
    let (alone, with) = (wait(tcp, outage, "window-mobile"), wait(tcp, outage, "window-station"));
    assert!(with < alone && with < ROUND_TRIP / 2, "{with} of {alone}");
}

#[test]
fn every_stack_keeps_every_invariant_under_outages_both_ways() {
    for scheme in [
        "fast-retransmit",
        "fast-retransmit-strict",
        "snoop+fast-retransmit",
        "snoop-modern+fast-retransmit-marked",
        "snoop+window-mobile",
        "snoop-modern+window-mobile",
        "window-station",
    ] {
        for (told, mobiles) in [("notified", 1), ("warned=80ms", 1), ("warned=2s,hold", 3)] {
            let text = format!(
                "rate = \"5Mbit/s\"\ndelay = \"3ms\"\nqueue = \"40p\"\nber = \"1/512Kbit\"\n\
                 outage = \"every=2s,length=50ms..800ms,{told}\"\nmobiles = {mobiles}\n\
                 tcp = [\"tahoe\", \"sack\", \"cubic\"]\ndirection = [\"down\", \"both\"]\n\
                 schemes = \"{scheme}\"\nsize = \"300kB\""
            );
            for (case, plan) in plans(&text) {
                let outcome = sim::run(&plan, 3, Nothing);
                assert_eq!(outcome.failures, [], "{scheme} {told} {:?}", case.sender);
                assert!(outcome.finished, "{scheme} {told} {:?}", case.sender);
            }
        }
    }
}

/// A machine that takes its time to tell TCP goes on later by just that time.
#[test]
fn ci_frx_9_a_slow_machine_adds_its_time() {
    let tcp = "hosts = \"1995\"\ntcp = \"tahoe\"\ndirection = \"up\"";
    let text = format!(
        "{PATH}\n{tcp}\noutage = \"at=5s,length=100ms,notified\"\n\
         schemes = \"fast-retransmit-strict\""
    );
    let wait = |delay| {
        let (_, mut plan) = plans(&text).swap_remove(0);
        let trigger = Trigger::LinkUp;
        plan.fast_retransmit = Some(Config { delay, trigger, ..Config::strict() });
        let outcome = sim::run(&plan, 1, Nothing);
        assert_eq!(outcome.failures, []);
        outcome.measures.transfers[0].receiver_stalls_after_outage[0]
    };
    let slow = Duration::from_millis(50);
    assert_eq!(wait(slow), wait(Duration::ZERO) + slow);
}
