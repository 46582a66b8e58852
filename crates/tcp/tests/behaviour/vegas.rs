//! Vegas (BASE-4): where its window settles, and what it sends again sooner than others.

use crate::drill::Drill;
use crate::pair::{End, Fate, Pair, bulk, ms};
use proptest::prelude::*;
use sansio::{Cause, Duration, Instant, Packet};
use tcp::config::{IdleRestart, VegasLimits};
use tcp::{Config, Congestion};

/// A path with one bottleneck and a queue without end, judged packet by packet.
#[derive(Clone, Copy, Debug)]
struct Path {
    /// How long a segment takes through the bottleneck.
    service: Duration,
    free_at: Instant,
}

impl Path {
    fn judge(&mut self, now: Instant, end: End, packet: &Packet) -> Fate {
        let is_syn = packet.as_tcp().is_some_and(|header| header.seq == crate::pair::CLIENT_ISN);
        if end == End::Server || packet.payload.is_empty() && !is_syn {
            return Fate::Arrives;
        }
        self.free_at = self.free_at.max(now) + self.service;
        Fate::Late(self.free_at.since(now))
    }
}

struct Run {
    pair: Pair,
    path: Path,
}

impl Run {
    fn new(service_us: u64, delay: Duration) -> Self {
        Self::with(Config::ns2(Congestion::Vegas), service_us, delay)
    }

    fn with(config: Config, service_us: u64, delay: Duration) -> Self {
        let config = Config {
            receive_buffer_bytes: 60_000_000,
            initial_ssthresh_bytes: u32::MAX,
            window_scale: Some(14),
            ..config
        };
        let mut pair = Pair::new(config, config);
        pair.one_way = delay;
        let service = Duration::from_micros(service_us);
        let mut run = Run { pair, path: Path { service, free_at: Instant::ZERO } };
        run.pair.open();
        run
    }

    /// Segments.
    fn cwnd(&self) -> f64 {
        f64::from(self.pair.client.cwnd()) / 1000.0
    }

    fn run_for(&mut self, span: Duration) {
        let end = self.pair.now + span;
        loop {
            let (path, now) = (&mut self.path, self.pair.now);
            self.pair.collect(&mut |end, packet| path.judge(now, end, packet));
            let Some(next) = self.pair.next_at().filter(|at| *at <= end) else { break };
            self.pair.now = now.max(next);
            self.pair.step();
        }
        self.pair.now = end;
    }
}

/// ns-2's cwnd every half second, packets.
fn course(text: &str) -> Vec<f64> {
    text.lines().map(|line| line.parse().expect("a number")).collect()
}

/// The course is the same to the rounding: ours is in bytes, so 0.001 segments, theirs as much.
#[test]
fn base_4_the_window_takes_the_course_of_ns2() {
    for (service_us, delay_us, theirs) in [
        (10_000, 100_720, include_str!("../data/ns2-generated/vegas_800kb_100ms.txt")),
        (10_000, 20_720, include_str!("../data/ns2-generated/vegas_800kb_20ms.txt")),
        (4_000, 50_600, include_str!("../data/ns2-generated/vegas_2mb_50ms.txt")),
        (20_000, 100_920, include_str!("../data/ns2-generated/vegas_400kb_100ms.txt")),
    ] {
        let mut run = Run::new(service_us, Duration::from_micros(delay_us));
        run.pair.write(bulk(1 << 30));
        for (index, theirs) in course(theirs).into_iter().enumerate() {
            run.run_for(ms(500));
            let ours = run.cwnd();
            assert!((ours - theirs).abs() <= 0.002, "{service_us} us, {index}: {ours} {theirs}");
        }
        assert_eq!(run.pair.client.statistics().segments_retransmitted, 0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 40, failure_persistence: None, ..Default::default()
    })]

    /// Diff is rounded to whole segments, and the window holds up to one segment that is not sent:
    /// so the segments queued are within half and one of the band.
    #[test]
    fn base_4_without_loss_the_window_stays_and_the_queue_is_between_alpha_and_beta(
        service_us in 1_000u64..20_000, delay_us in 5_000u64..100_000,
    ) {
        let mut run = Run::new(service_us, Duration::from_micros(delay_us));
        run.pair.write(bulk(1 << 30));
        let round_trip_us = 2 * delay_us + service_us;
        let on_the_path = round_trip_us as f64 / service_us as f64;
        // It opens by a segment in a round trip, those of the queue taking longer.
        let rounds = on_the_path as u64 + 20;
        run.run_for(Duration::from_micros(rounds * (round_trip_us + 4 * service_us)));
        let settled = run.cwnd();
        for _ in 0..20 {
            run.run_for(Duration::from_micros(round_trip_us));
            prop_assert_eq!(run.cwnd(), settled);
        }
        let queued = settled - on_the_path;
        let limits = VegasLimits::ONE_TO_THREE;
        prop_assert!(queued >= f64::from(limits.alpha) - 0.5, "{} queued", queued);
        prop_assert!(queued <= f64::from(limits.beta) + 1.5, "{} queued", queued);
        prop_assert_eq!(run.pair.client.statistics().segments_retransmitted, 0);
    }
}

#[test]
fn base_4_a_longer_path_keeps_the_window_low_until_a_pause_lets_base_rtt_be_measured_anew() {
    // A pause of one round-trip time and more ends with one segment, which finds the path empty.
    let config = Config {
        idle_restart: IdleRestart::InitialWindow,
        initial_window_segments: 1,
        ..Config::ns2(Congestion::Vegas)
    };
    let mut run = Run::with(config, 10_000, ms(50));
    run.pair.write(bulk(3_000_000));
    run.run_for(ms(20_000));
    // 11 segments are on the path.
    assert!((12.0..=15.0).contains(&run.cwnd()), "{}", run.cwnd());
    run.pair.one_way = ms(150);
    run.run_for(ms(30_000));
    // 31 would be; but of w segments Diff takes w * (1 - 110 / 310) for queued, at most beta and a
    // half of them.
    assert!(run.cwnd() <= 3.5 / (1.0 - 110.0 / 310.0) + 1.0, "{}", run.cwnd());
    run.run_for(ms(200_000));
    assert_eq!(run.pair.client.unacknowledged(), 0, "a pause");
    run.pair.write(bulk(3_000_000));
    run.run_for(ms(25_000));
    assert!((32.0..=35.0).contains(&run.cwnd()), "{}", run.cwnd());
}

/// The handshake takes 10 ms, so the finer timeout is 15 ms.
fn drill(segments: u32) -> Drill {
    let config = Config {
        initial_window_segments: segments,
        initial_ssthresh_bytes: 2_000,
        receive_buffer_bytes: 60_000,
        ..Config::ns2(Congestion::Vegas)
    };
    let mut drill = Drill::connected(config);
    drill.write(30_000);
    assert_eq!(drill.sent().len(), segments as usize);
    drill
}

#[test]
fn base_4_one_dupack_is_enough_for_a_segment_older_than_the_finer_timeout() {
    let mut drill = drill(8);
    drill.until(drill.now + Duration::from_nanos(14_999_999));
    drill.ack(1);
    drill.sends(&[]);
    drill.until(drill.now + Duration::from_nanos(1));
    drill.ack(1);
    drill.sends(&[". 1:1001 ack 1"]);
    assert_eq!(drill.end.cwnd(), 6_000 + 2_000, "a quarter less, and the two dupacks");
    assert_eq!(drill.end.statistics().fast_retransmits, 1);
}

#[test]
fn base_4_three_dupacks_are_enough_for_a_younger_one() {
    let mut drill = drill(8);
    drill.acks(1, 2);
    drill.sends(&[]);
    drill.ack(1);
    drill.sends(&[". 1:1001 ack 1", ". 8001:9001 ack 1"]);
    assert_eq!(drill.end.cwnd(), 6_000 + 3_000);
    drill.ack(1);
    drill.sends(&[". 9001:10001 ack 1"]);
}

#[test]
fn base_4_the_first_two_acks_after_a_retransmission_look_for_the_next_loss() {
    for (waits_ms, resent) in [(40, 1), (0, 0)] {
        let mut drill = drill(8);
        drill.acks(1, 3);
        drill.sends(&[". 1:1001 ack 1", ". 8001:9001 ack 1"]);
        drill.after_ms(waits_ms);
        drill.ack(1001);
        let sent = drill.sent();
        let again = sent.iter().filter(|packet| packet.cause == Cause::EndToEndRetransmission);
        assert_eq!(again.count(), resent, "2 and 4 are lost too");
        assert_eq!(drill.end.cwnd() / 1000, 6, "losses of one window reduce it once");
        drill.ack(3001);
        let sent = drill.sent();
        let again = sent.iter().filter(|packet| packet.cause == Cause::EndToEndRetransmission);
        assert_eq!(again.count(), resent);
        assert_eq!(drill.end.cwnd() / 1000, 6);
    }
}

#[test]
fn base_4_a_timeout_begins_with_two_segments_and_halves_ssthresh() {
    let mut drill = drill(8);
    drill.fires("tcp retransmission", 1000);
    drill.sends(&[". 1:1001 ack 1", ". 1001:2001 ack 1"]);
    assert_eq!((drill.end.cwnd(), drill.end.ssthresh()), (2_000, 4_000));
    // Duplicate ACKs of what was sent before it are no loss, however late.
    drill.after_ms(500);
    drill.acks(1, 4);
    drill.sends(&[]);
}
