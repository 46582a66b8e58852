//! What must hold on any link, from arithmetic alone.

use crate::plans::plans;
use link::hop::frame_arq::{self, Retry};
use sansio::Duration;

/// Goodput in bit/s of the first case of a scenario, seed 1.
fn goodput(text: &str) -> f64 {
    let (_, plan) = plans(text).swap_remove(0);
    let outcome = sim::run(&plan, 1, trace::Nothing);
    assert_eq!(outcome.failures, []);
    let transfer = &outcome.measures.transfers[0];
    transfer.delivered_bytes as f64 * 8.0 / transfer.last_delivered_at.as_secs_f64()
}

#[test]
fn a_clean_link_is_filled_to_its_ceiling() {
    // 1460 payload bytes in 1500: 1.9467 Mbit/s of 2. Of the 82 s that 20 MB take, the start costs
    // 0.2 s: the first segment is alone, and its ACK is delayed so long.
    let text = r#"
        rate = "2Mbit/s"
        delay = "1ms"
        wired-rate = "10Mbit/s"
        wired-delay = "1ms"
        hosts = "1995"
        window = "64240B"
        tcp = "reno"
        schemes = "plain"
        size = "20MB"
    "#;
    let share = goodput(text) / (2e6 * 1460.0 / 1500.0);
    assert!((0.997..=1.0).contains(&share), "{share}");
}

#[test]
fn a_window_smaller_than_the_path_holds_limits_to_window_over_round_trip() {
    let text = r#"
        rate = "100Mbit/s"
        delay = "40ms"
        wired-rate = "100Mbit/s"
        wired-delay = "10ms"
        window = "14480B"
        tcp = "reno"
        schemes = "plain"
        size = "2MB"
    "#;
    // 10 segments of 1448 bytes in 100 ms and about 0.24 ms of serialisation.
    let expected = 14_480.0 * 8.0 / 0.1004;
    assert!((goodput(text) / expected - 1.0).abs() < 0.02, "{}", goodput(text));
}

#[test]
fn exp_sn_0_the_radio_of_the_papers_carries_1_6_mbit() {
    let text = r#"
        radio = "wavelan-1995"
        tcp = "reno"
        schemes = "plain"
        size = "10MB"
    "#;
    assert!((goodput(text) / 1.6e6 - 1.0).abs() < 0.03, "{}", goodput(text));
}

/// SNOOP-PERF-1: with no loss, throughput equals plain TCP.
#[test]
fn snoop_perf_1_without_loss_snoop_is_as_if_absent() {
    let with = |scheme: &str| {
        goodput(&format!(
            "rate = \"2Mbit/s\"\nwindow = \"64KiB\"\ntcp = \"reno\"\nsize = \"5MB\"\n\
             schemes = \"{scheme}\""
        ))
    };
    let plain = with("plain");
    for scheme in ["snoop", "snoop-modern"] {
        assert!((with(scheme) / plain - 1.0).abs() < 0.01, "{scheme}");
    }
}

/// SNOOP-GEN-4, EXP-SN-F7-d: with every other packet lost snoop finishes, plain TCP crawls.
#[test]
fn exp_sn_f7_d_snoop_survives_the_loss_of_every_other_packet() {
    let with = |scheme: &str| {
        goodput(&format!(
            "radio = \"wavelan-1995\"\nber = \"1/17Kbit\"\ntcp = \"reno\"\nsize = \"300kB\"\n\
             schemes = \"{scheme}\""
        ))
    };
    let (snoop, plain) = (with("snoop"), with("plain"));
    assert!(snoop > 20.0 * plain, "{snoop} against {plain}");
    assert!(plain < 0.01 * 1.6e6, "{plain}");
}

/// A notified outage costs one round trip and no more, whatever its length.
#[test]
fn a_notified_outage_is_over_one_round_trip_after_the_link_is_back() {
    for length in ["100ms", "700ms", "3s", "20s"] {
        let text = format!(
            "rate = \"20Mbit/s\"\ndelay = \"15ms\"\nwired-delay = \"1ms\"\ntcp = \"sack\"\n\
             schemes = \"snoop-modern\"\noutage = \"at=2s,length={length},notified\"\n\
             window = \"64KiB\"\nduration = \"24s\""
        );
        let (_, plan) = plans(&text).swap_remove(0);
        let outcome = sim::run(&plan, 1, trace::Nothing);
        assert_eq!(outcome.failures, []);
        let stalls = &outcome.measures.transfers[0].stalls_after_outage;
        assert_eq!(stalls.len(), 1, "{length}");
        let bound = Duration::from_millis(32 + 20);
        assert!(stalls[0] <= bound, "{length}: {} after the link's return", stalls[0]);
    }
}

#[test]
fn a_half_duplex_link_carries_data_less_the_air_time_of_acks() {
    let with = |more: &str| {
        goodput(&format!(
            "rate = \"2Mbit/s\"\nwindow = \"64KiB\"\ntcp = \"sack\"\nsize = \"10MB\"\n\
             schemes = \"snoop-modern\"\n{more}"
        ))
    };
    // An ACK of 52 bytes for every second segment of 1500.
    let expected = 1500.0 / (1500.0 + 52.0 / 2.0);
    let share = with("half-duplex = true") / with("");
    assert!((share / expected - 1.0).abs() < 0.004, "{share}, expected {expected}");
}

#[test]
fn both_directions_of_a_half_duplex_link_share_its_rate() {
    let text = "rate = \"2Mbit/s\"\nhalf-duplex = true\ndirection = \"both\"\ntcp = \"sack\"\n\
                duration = \"60s\"\nschemes = \"plain\"";
    let (_, plan) = plans(text).swap_remove(0);
    let outcome = sim::run(&plan, 1, trace::Nothing);
    assert_eq!(outcome.failures, []);
    let of = |way: usize| {
        let delivered = outcome.measures.transfers[way].delivered_bytes;
        delivered as f64 * 8.0 / 60.0 / (2e6 * 1448.0 / 1500.0)
    };
    let (down, up) = (of(0), of(1));
    assert!((0.9..1.0).contains(&(down + up)), "{down} and {up}");
    assert!((down - up).abs() < 0.15, "{down} and {up}: stations take turns");
}

#[test]
fn base_10_a_persistent_link_layer_hides_losses_and_takes_its_tries_from_the_rate() {
    let text = "rate = \"2Mbit/s\"\ndelay = \"1ms\"\nloss = \"20%\"\ntcp = \"sack\"\n\
                size = \"5MB\"\nwindow = \"64KiB\"\nschemes = \"snoop-modern\"";
    let (_, mut plan) = plans(text).swap_remove(0);
    let (retry, ack_time) = (Retry::Persistent, Duration::ZERO);
    for hop in [&mut plan.radio.down, &mut plan.radio.up] {
        hop.frame_arq = Some(frame_arq::Config { retry, ack_time });
    }
    let outcome = sim::run(&plan, 1, trace::Nothing);
    assert_eq!(outcome.failures, []);
    assert_eq!(outcome.measures.retransmissions_end_to_end, 0);
    let transfer = &outcome.measures.transfers[0];
    let seconds = transfer.last_delivered_at.as_secs_f64();
    // 1500 bytes take 6 ms, the ACK's way back and forth 2, all of it 1 / 0.8 times.
    let expected = 5e6 / 1448.0 * 0.008 / 0.8;
    assert!((seconds / expected - 1.0).abs() < 0.05, "{seconds} s, expected {expected}");
}

#[test]
fn the_two_directions_of_a_preset_differ_until_somebody_says_otherwise() {
    let rates = |text: &str| {
        let (_, plan) = plans(text).swap_remove(0);
        [plan.radio.down.rate, plan.radio.up.rate].map(|rate| rate.as_bps() / 1_000_000)
    };
    assert_eq!(rates("radio = \"lte\""), [13, 6]);
    assert_eq!(rates("radio = \"lte\"\nrate = \"13Mbit/s\""), [13, 6]);
    assert_eq!(rates("radio = \"lte\"\nrate = \"20Mbit/s\""), [20, 20]);
    assert_eq!(rates("radio = \"leo\"\nqueue = \"50p\""), [100, 10]);
}

/// 1500 bytes take 6 ms at 2 Mbit/s: of a window of 20 segments, the last waits for 19 others less
/// what the rest of the path holds.
#[test]
fn data_waits_at_the_last_hop_for_the_window_before_it() {
    let with = |window: &str, queue: &str| {
        let text = format!(
            "rate = \"2Mbit/s\"\ndelay = \"5ms\"\nwired-delay = \"5ms\"\ntcp = \"sack\"\n\
             size = \"4MB\"\nschemes = \"plain\"\nwindow = \"{window}\"\nqueue = \"{queue}\""
        );
        let (_, plan) = plans(&text).swap_remove(0);
        let outcome = sim::run(&plan, 1, trace::Nothing);
        assert_eq!(outcome.failures, []);
        outcome.measures.queue_delay.expect("data crossed the hop").p99.as_secs_f64()
    };
    // Two segments of 1448 bytes fit into the round trip of 20 ms and do not wait for the rest,
    // but for each other: sent together by one ACK.
    let short = with("2896B", "100p");
    assert!(short <= 0.0061, "{short}");
    let long = with("28960B", "100p");
    let expected = (20.0 - 0.020 / 0.006) * 0.006;
    assert!((long - expected).abs() <= 0.012, "{long}, expected {expected}");
    // A queue of 5 bounds it, whatever the window: 5 packets before it, one on the air.
    let bounded = with("64KiB", "5p");
    assert!(bounded <= 0.0361, "{bounded}");
}

/// A message beside a download waits behind the download's queue; alone it does not.
#[test]
fn a_click_during_a_download_waits_for_the_queue() {
    let p50 = |traffic: &str, queue: &str| {
        let text = format!(
            "rate = \"2Mbit/s\"\ndelay = \"5ms\"\nwired-delay = \"5ms\"\ntcp = \"sack\"\n\
             duration = \"30s\"\nschemes = [\"plain\", \"snoop-modern\"]\nqueue = \"{queue}\"\n\
             window = \"256KiB\"\ntraffic = \"{traffic}\""
        );
        plans(&text)
            .iter()
            .map(|(case, plan)| {
                let outcome = sim::run(plan, 1, trace::Nothing);
                assert_eq!(outcome.failures, [], "{case:?}");
                let mut latencies =
                    outcome.measures.transfers.last().expect("one").latencies.clone();
                assert!(latencies.len() > 100, "{case:?}: {}", latencies.len());
                latencies.sort();
                latencies[latencies.len() / 2].as_secs_f64()
            })
            .fold(0.0, f64::max)
    };
    // 552 bytes take 2.2 ms on the air, less than 0.1 on the wire, and 10 ms to propagate.
    let alone = p50("request:500B,every=200ms", "50p");
    assert!((alone - 0.0123).abs() < 0.0005, "{alone}");
    let (long, short) =
        (p50("bulk+request:500B,every=200ms", "50p"), p50("bulk+request:500B,every=200ms", "10p"));
    assert!(long > 0.1 && long < 0.32, "behind at most 51 packets of 6 ms: {long}");
    assert!(short < 0.08, "behind at most 11: {short}");
}

/// A transfer with a size ends the run, whatever messages are beside it.
#[test]
fn messages_beside_a_transfer_do_not_keep_it_from_ending() {
    let text = "traffic = \"bulk+request:500B,every=100ms\"\nsize = \"1MB\"\ntcp = \"sack\"\n\
                schemes = \"plain\"";
    let (_, plan) = plans(text).swap_remove(0);
    let outcome = sim::run(&plan, 1, trace::Nothing);
    let [bulk, messages] = outcome.measures.transfers.as_slice() else { panic!("two transfers") };
    assert!(outcome.finished && bulk.complete && !messages.complete);
    assert_eq!(bulk.last_delivered_at, outcome.ended_at);
    assert!((20..60).contains(&messages.latencies.len()), "one each 100 ms of 4 to 6 s");
}
