//! BBR over a simulated bottleneck: rate, delay and a queue that overflows, or a policer.

use crate::drill::Drill;
use crate::pair::{Log, bulk, flow, ms};
use sansio::{Duration, Engine, EventKind, Input, Instant, Packet, PacketRef, Side};
use std::collections::VecDeque;
use tcp::{Config, Congestion, Endpoint};
use wire::tcp::Seq;

/// Segments of 1000 bytes of payload; timestamps take 12 bytes beside.
fn bbr() -> Config {
    Config { mss: 1012, ..Config::linux(Congestion::Bbr) }
}

/// Bytes that headers take beside 1000 of payload, with the timestamps option.
const HEADER_BYTES: u64 = 52;

/// A path with one bottleneck, from the sender on.
struct Path {
    now: Instant,
    sender: Endpoint,
    receiver: Endpoint,
    sender_log: Log,
    receiver_log: Log,
    /// Bytes per second of the bottleneck.
    rate: u64,
    /// From end to end, without the queue.
    one_way: Duration,
    /// Packets that wait at most.
    queue_max: usize,
    /// A policer's rate in bytes per second, what it may save up, and what it has; packets beyond
    /// are lost before the bottleneck.
    policer: Option<(u64, u64, u64, Instant)>,
    /// Nothing gets through.
    is_out: bool,
    /// The sender is frozen and restored at every step.
    freezes: bool,
    /// The bottleneck is busy with what it has until then.
    busy_until: Instant,
    departures: VecDeque<Instant>,
    to_receiver: VecDeque<(Instant, PacketRef)>,
    to_sender: VecDeque<(Instant, PacketRef)>,
    /// When each packet of data was sent, and its last number.
    sent: Vec<(Instant, Seq)>,
    queue_peak: usize,
    lost: u32,
}

impl Path {
    /// 1000 packets a second of 1052 bytes, a round trip of 40 ms: 40 packets fill it.
    fn new(config: Config) -> Self {
        let mut path = Path {
            now: Instant::ZERO,
            sender: Endpoint::client(config, flow(), Seq(1000)),
            receiver: Endpoint::server(config, flow().reversed(), Seq(5000)),
            sender_log: Log::default(),
            receiver_log: Log::default(),
            rate: 1000 * (1000 + HEADER_BYTES),
            one_way: ms(20),
            queue_max: 200,
            policer: None,
            is_out: false,
            freezes: false,
            busy_until: Instant::ZERO,
            departures: VecDeque::new(),
            to_receiver: VecDeque::new(),
            to_sender: VecDeque::new(),
            sent: Vec::new(),
            queue_peak: 0,
            lost: 0,
        };
        path.sender.open(&mut path.sender_log, path.now);
        path.run_for(ms(100));
        path
    }

    fn write(&mut self, bytes: u32) {
        self.sender.write(bulk(bytes), &mut self.sender_log, self.now);
    }

    fn run_for(&mut self, span: Duration) {
        let end = self.now + span;
        loop {
            self.take_sent();
            let deadlines = [self.sender.next_deadline(), self.receiver.next_deadline()];
            let arrivals = [self.to_receiver.front(), self.to_sender.front()];
            let arrivals = arrivals.into_iter().flatten().map(|(at, _)| *at);
            let timers = deadlines.into_iter().flatten().map(|deadline| deadline.at);
            let Some(next) = arrivals.chain(timers).min().filter(|at| *at <= end) else { break };
            self.now = self.now.max(next);
            self.step();
            if self.freezes {
                self.sender = Endpoint::restore(self.sender.freeze(self.now), self.now);
            }
        }
        self.now = end;
    }

    fn step(&mut self) {
        let now = self.now;
        let is_due = |front: Option<&(Instant, PacketRef)>| front.is_some_and(|(at, _)| *at <= now);
        if is_due(self.to_receiver.front()) {
            let (_, packet) = self.to_receiver.pop_front().expect("it is due");
            let input = Input::Arrival { side: Side::NETWORK, packet };
            self.receiver.handle(input, &mut self.receiver_log, now);
        } else if is_due(self.to_sender.front()) {
            let (_, packet) = self.to_sender.pop_front().expect("it is due");
            let input = Input::Arrival { side: Side::NETWORK, packet };
            self.sender.handle(input, &mut self.sender_log, now);
        } else {
            self.sender.handle(Input::Timer, &mut self.sender_log, now);
            self.receiver.handle(Input::Timer, &mut self.receiver_log, now);
        }
    }

    fn take_sent(&mut self) {
        for packet in core::mem::take(&mut self.sender_log.sent) {
            if !packet.payload.is_empty() {
                let header = packet.as_tcp().expect("TCP");
                self.sent.push((self.now, header.seq + packet.payload.len()));
            }
            let bytes = u64::from(packet.payload.len()) + HEADER_BYTES;
            if self.is_out || !self.passes_policer(bytes) || !self.enqueue(bytes, &packet) {
                self.lost += 1;
            }
        }
        for packet in core::mem::take(&mut self.receiver_log.sent) {
            if !self.is_out {
                self.to_sender.push_back((self.now + self.one_way, packet));
            }
        }
    }

    fn passes_policer(&mut self, bytes: u64) -> bool {
        let now = self.now;
        let Some((rate, most, tokens, at)) = &mut self.policer else { return true };
        let earned = *rate * now.since(*at).as_nanos() / 1_000_000_000;
        if earned > 0 {
            (*tokens, *at) = ((*tokens + earned).min(*most), now);
        }
        let passes = *tokens >= bytes;
        *tokens -= if passes { bytes } else { 0 };
        passes
    }

    fn enqueue(&mut self, bytes: u64, packet: &Packet) -> bool {
        while self.departures.front().is_some_and(|at| *at <= self.now) {
            self.departures.pop_front();
        }
        if self.departures.len() >= self.queue_max {
            return false;
        }
        let takes = Duration::from_nanos(bytes * 1_000_000_000 / self.rate);
        self.busy_until = self.busy_until.max(self.now) + takes;
        self.departures.push_back(self.busy_until);
        self.queue_peak = self.queue_peak.max(self.departures.len());
        self.to_receiver
            .push_back((self.busy_until + self.one_way, PacketRef::new(packet.clone())));
        true
    }

    /// Packets of data sent from `from` for `span`.
    fn sent_within(&self, from: Instant, span: Duration) -> usize {
        let within = |at: Instant| at >= from && at < from + span;
        self.sent.iter().filter(|(at, _)| within(*at)).count()
    }

    /// cwnd in segments at each event that reports it.
    fn windows(&self) -> Vec<u32> {
        let cwnd = |event: &EventKind| match event {
            EventKind::Window { cwnd, .. } => Some(cwnd / 1000),
            _ => None,
        };
        self.sender_log.events.iter().filter_map(cwnd).collect()
    }

    fn delivered(&self) -> u64 {
        self.receiver_log.delivered.iter().map(|payload| u64::from(payload.len())).sum()
    }
}

const WHOLE: u32 = u32::MAX / 2;

#[test]
fn startup_doubles_the_pace_each_round_until_the_pipe_is_full() {
    let mut path = Path { rate: 1 << 40, ..Path::new(bbr()) };
    let start = path.now;
    path.write(WHOLE);
    path.run_for(ms(240));
    let rounds: Vec<usize> = (0..6).map(|n| path.sent_within(start + ms(40 * n), ms(40))).collect();
    for pair in rounds[1..].windows(2) {
        let growth = pair[1] as f64 / pair[0] as f64;
        assert!((1.7..2.4).contains(&growth), "segments sent in each round: {rounds:?}");
    }
}

#[test]
fn startup_is_paced_from_the_initial_window_on() {
    let mut path = Path::new(bbr());
    let start = path.now;
    path.write(WHOLE);
    assert_eq!(path.sender_log.sent.len(), 10);
    path.run_for(ms(39));
    assert_eq!(path.sent_within(start, ms(39)), 10, "cwnd of ten");
    path.run_for(ms(40));
    let instants: Vec<Instant> = path.sent[10..].iter().map(|(at, _)| *at).collect();
    let together = instants.chunk_by(|one, other| one == other).map(<[_]>::len).max();
    assert!(together <= Some(4), "bursts of a millisecond's rate, not a window: {together:?}");
}

#[test]
fn drain_empties_the_queue_that_startup_left_and_the_pace_is_the_bandwidth() {
    let mut path = Path::new(bbr());
    path.write(WHOLE);
    path.run_for(ms(1000));
    assert!(path.queue_peak > 40, "startup filled the queue: {}", path.queue_peak);
    assert!(path.sender.ssthresh() < 80_000, "DRAIN began: ssthresh {}", path.sender.ssthresh());
    path.queue_peak = 0;
    path.run_for(ms(3000));
    assert!(path.queue_peak <= 40, "a phase of 5/4 leaves a quarter: {}", path.queue_peak);
    let from = path.now - ms(2000);
    let rate = path.sent_within(from, ms(2000)) as f64 / 2.0;
    assert!((950.0..1010.0).contains(&rate), "{rate} segments a second of 1000");
}

#[test]
fn probe_bandwidth_goes_through_its_cycle_once_in_eight_round_trips() {
    let mut path = Path::new(bbr());
    path.write(WHOLE);
    path.run_for(ms(1500));
    let begin = path.now;
    path.run_for(ms(3200));
    // The pace of each round trip, in segments of 40.
    let paces: Vec<usize> = (0..80).map(|n| path.sent_within(begin + ms(40 * n), ms(40))).collect();
    // A phase may straddle two of these spans.
    let fast: Vec<usize> = (0..80).filter(|n| paces[*n] >= 43).collect();
    let phases: Vec<usize> = fast.chunk_by(|one, next| next - one == 1).map(|run| run[0]).collect();
    assert!(phases.windows(2).all(|pair| (8..=10).contains(&(pair[1] - pair[0]))), "{paces:?}");
    assert!((8..=10).contains(&phases.len()), "{paces:?}");
    for begin in phases.iter().filter(|begin| **begin < 76) {
        assert!(paces[begin + 1..begin + 4].iter().any(|pace| *pace <= 38), "{paces:?}");
    }
}

#[test]
fn probe_rtt_leaves_four_segments_in_flight_for_200_ms_every_ten_seconds() {
    let mut path = Path::new(bbr());
    path.write(WHOLE);
    let mut quiet = Vec::new();
    for n in 0..320 {
        let from = path.now;
        path.run_for(ms(100));
        if path.sent_within(from, ms(100)) <= 12 {
            quiet.push(n);
        }
    }
    // Four segments a round trip of 40 ms are ten in 100 ms.
    let begins: Vec<i32> = quiet.chunk_by(|one, next| next - one == 1).map(|run| run[0]).collect();
    assert!((2..=3).contains(&begins.len()), "{quiet:?}");
    assert!(begins.windows(2).all(|pair| (100..=106).contains(&(pair[1] - pair[0]))), "{quiet:?}");
    assert!(path.windows().contains(&4), "PROBE_RTT's cwnd");
    assert!(path.sender.cwnd() > 40_000, "and back");
}

#[test]
fn a_timeout_keeps_the_model_so_that_the_rate_is_back_in_a_round_or_two() {
    let mut path = Path::new(bbr());
    path.write(WHOLE);
    path.run_for(ms(3000));
    path.is_out = true;
    path.run_for(ms(1500));
    path.is_out = false;
    assert!(path.sender.statistics().timeouts > 0);
    assert!(path.sender.cwnd() < 8_000, "cwnd {}", path.sender.cwnd());
    let before = path.delivered();
    path.run_for(ms(2000));
    let rate = (path.delivered() - before) as f64 / 2.0e3;
    assert!(rate > 500.0, "{rate} segments a second of 1000, the wait for the timer included");
    assert!(path.sender.cwnd() > 60_000, "cwnd came back: {}", path.sender.cwnd());
}

#[test]
fn loss_does_not_lower_the_pace() {
    let mut path = Path::new(bbr());
    path.write(WHOLE);
    path.run_for(ms(2000));
    let before = path.delivered();
    for _ in 0..40 {
        path.is_out = true;
        path.run_for(ms(2));
        path.is_out = false;
        path.run_for(ms(98));
    }
    let rate = (path.delivered() - before) as f64 / 4.0e3;
    assert!(rate > 850.0, "{rate} segments a second of 1000 with 2 % lost");
}

#[test]
fn an_application_with_little_to_send_does_not_lower_the_bandwidth() {
    let mut path = Path::new(bbr());
    path.write(3_000_000);
    path.run_for(ms(4000));
    assert_eq!(path.delivered(), 3_000_000);
    // Ten segments a round trip, for longer than the ten rounds that a sample counts.
    for _ in 0..100 {
        path.write(10_000);
        path.run_for(ms(40));
    }
    path.write(WHOLE);
    let from = path.now;
    path.run_for(ms(80));
    let sent = path.sent_within(from, ms(80));
    assert!(sent > 70, "{sent} segments in two round trips of 40");
}

#[test]
fn a_policer_is_found_and_its_rate_is_used() {
    let mut path = Path::new(bbr());
    path.rate *= 10;
    path.queue_max = 1000;
    // A tenth of the bottleneck, and tokens for a quarter of a second.
    let rate = 1_052_000;
    path.policer = Some((rate, rate / 4, rate / 4, path.now));
    path.write(WHOLE);
    path.run_for(ms(4000));
    let (before, lost) = (path.sent.len(), path.lost);
    path.run_for(ms(1000));
    let share = f64::from(path.lost - lost) / (path.sent.len() - before) as f64;
    assert!(share < 0.05, "{share} of what is sent is lost");
}

#[test]
fn a_sender_that_is_frozen_at_every_step_sends_the_same() {
    let run = |freezes| {
        let mut path = Path { freezes, queue_max: 30, ..Path::new(bbr()) };
        path.write(2_000_000);
        path.run_for(ms(3000));
        path.write(2_000_000);
        path.run_for(ms(10_000));
        let delivered = path.delivered();
        (path.sent, delivered, path.lost)
    };
    let (sent, delivered, lost) = run(false);
    assert!(delivered == 4_000_000 && lost > 0, "{delivered} delivered, {lost} lost");
    assert!((sent, delivered, lost) == run(true));
}

#[test]
fn timers_wait_for_the_pace() {
    let mut drill = Drill::connected(Config { timestamps: false, mss: 1000, ..bbr() });
    drill.write(40_000);
    assert_eq!(drill.sent().len(), 10);
    drill.after_ms(10);
    drill.ack(2001);
    // cwnd lets out four; 10 ms and ten segments, times 2.885 and 0.99, are 2.85 a millisecond.
    assert_eq!(drill.sent().len(), 2);
    let deadline = drill.end.next_deadline().expect("armed");
    assert_eq!(deadline.timer, "tcp pacing");
    let wait = deadline.at.since(drill.now);
    assert!(wait > Duration::from_micros(300) && wait < Duration::from_micros(750), "{wait}");
    drill.until(Instant::from_nanos(deadline.at.as_nanos() - 1));
    assert_eq!(drill.sent().len(), 0);
    drill.until(deadline.at);
    assert_eq!(drill.sent().len(), 2);
}
