//! BBR, version 1 (Cardwell et al. 2017; draft-cardwell-iccrg-bbr-congestion-control-00), as Linux
//! 6.18 has it (`tcp_bbr.c`).
//!
//! Two things are measured, the bandwidth of the bottleneck and the shortest round trip, and they
//! cannot be measured at once: more in flight than their product shows the one, less the other.
//!
//! ```text
//!   STARTUP ── pipe is full ─▶ DRAIN ── queue is empty ─▶ PROBE_BW ◀─┐
//!      ▲                                                     │       │ 200 ms and a round are over
//!      └── pipe is not full yet ── PROBE_RTT ◀── 10 s without a shorter round trip
//! ```
//!
//! Each mode is a gain on the pace and one on cwnd; PROBE_BW goes through eight of the former. A
//! loss takes cwnd to what is in flight for a round, and back when it is repaired: it says nothing
//! about the two. A policer is found by `policer`.
//!
//! We differ in time that does not come in ticks of 4 ms. Where PROBE_BW begins is drawn from the
//! connection's initial sequence number, which is random.

mod bandwidth;
mod policer;
mod window;

use super::Windows;
use crate::linux::pacing::Pacing;
use crate::linux::rate::Sample;
use bandwidth::{Aggregation, Bandwidth, Gain, MaxFilter};
use policer::{Counters, News, Outcome, Policer};
use sansio::{Duration, Instant, Random};

/// What BBR remembers of one connection. Windows are in segments.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Bbr {
    mode: Mode,
    /// Which gain of the cycle, and since when.
    phase: u8,
    phase_began_at: Instant,
    bandwidth: MaxFilter,
    aggregation: Aggregation,
    policer: Policer,
    round: Round,
    pipe: Pipe,
    shortest: Option<Duration>,
    shortest_at: Instant,
    /// The end of PROBE_RTT, once little enough is in flight, and whether a round has passed.
    probe_ends_at: Option<Instant>,
    probe_has_round: bool,
    /// cwnd before the recovery, the timeout or PROBE_RTT.
    cwnd_before: u32,
    repair: Repair,
    /// No more is sent than arrives: the first round of a recovery.
    conserves: bool,
    /// The application was idle, and nothing has arrived since.
    restarts: bool,
    has_round_trip: bool,
    /// What PROBE_BW's first phase is drawn from.
    seed: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// Twice the pace each round, until the pipe is full.
    Startup,
    /// The queue that left is let run out.
    Drain,
    /// Mostly at the bandwidth; now and then faster, to see whether there is more.
    ProbeBandwidth,
    /// Next to nothing in flight, to see the round trip without a queue.
    ProbeRoundTrip,
}

/// What is being repaired, as the sender's state machine sees it (`tcp_ca_state`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repair {
    Nothing,
    Loss,
    Timeout,
}

/// Round trips, counted by what is delivered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Round {
    count: u32,
    /// The next begins when something arrives that was sent after so much was delivered.
    until: u32,
    begins: bool,
}

/// Whether the pipe is full: three rounds without a quarter more bandwidth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Pipe {
    is_full: bool,
    bandwidth: Bandwidth,
    rounds: u32,
}

/// An ACK, as far as it concerns BBR; counts are segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ack {
    pub(crate) sample: Sample,
    /// Newly delivered, and newly taken for lost.
    pub(crate) acked: u32,
    pub(crate) lost: u32,
    /// Delivered, and taken for lost, since the connection began.
    pub(crate) delivered: u32,
    pub(crate) lost_total: u32,
    /// In flight, before it and now.
    pub(crate) in_flight_before: u32,
    pub(crate) in_flight: u32,
    /// Of the latest segment that arrived, if it can be told; it may be a delayed ACK's.
    pub(crate) round_trip: Option<Duration>,
    pub(crate) may_be_delayed: bool,
    pub(crate) smoothed: Duration,
    pub(crate) repair: Repair,
    /// When something was delivered last.
    pub(crate) delivered_at: Instant,
    pub(crate) now: Instant,
}

/// 2885/1000, a little above 2/ln 2: the least that doubles the pace each round.
const HIGH_GAIN: Gain = Gain(256 * 2885 / 1000 + 1);
const DRAIN_GAIN: Gain = Gain(256 * 1000 / 2885);
const CWND_GAIN: Gain = Gain(512);
/// PROBE_BW's gains, each for the shortest round trip: 5/4, 3/4, and 1.
const CYCLE: [Gain; 8] = {
    let mut cycle = [Gain::UNIT; 8];
    cycle[0] = Gain(320);
    cycle[1] = Gain(192);
    cycle
};
/// The cycle begins anywhere but where the queue of a faster phase is let run out.
const FIRST_PHASES: u64 = 7;
/// Segments in flight in PROBE_RTT, and at least (`bbr_cwnd_min_target`).
const CWND_MIN: u32 = 4;
/// A shortest round trip counts for so long (`bbr_min_rtt_win_sec`).
const SHORTEST_LASTS: Duration = Duration::from_secs(10);
/// PROBE_RTT lasts so long, and a round (`bbr_probe_rtt_mode_ms`).
const PROBE_LASTS: Duration = Duration::from_millis(200);
/// A pipe that gives so much more is not full yet (`bbr_full_bw_thresh`).
const MORE: Gain = Gain(320);
const ROUNDS_WITHOUT_MORE: u32 = 3;
/// The round trip before one is known.
const ROUND_TRIP_GUESS: Duration = Duration::from_millis(1);

impl Bbr {
    /// The connection was made; `smoothed`: the round trip so far, zero if none is known.
    pub(crate) fn new(
        seed: u32,
        smoothed: Duration,
        (windows, pacing): (&Windows, &mut Pacing),
        now: Instant,
    ) -> Self {
        let mut bbr = Bbr {
            mode: Mode::Startup,
            phase: 0,
            phase_began_at: Instant::ZERO,
            bandwidth: MaxFilter::default(),
            aggregation: Aggregation::default(),
            policer: Policer::default(),
            round: Round::default(),
            pipe: Pipe::default(),
            shortest: Some(smoothed).filter(|smoothed| !smoothed.is_zero()),
            shortest_at: now,
            probe_ends_at: None,
            probe_has_round: false,
            cwnd_before: 0,
            repair: Repair::Nothing,
            conserves: false,
            restarts: false,
            has_round_trip: false,
            seed,
        };
        bbr.aggregation.restart(now);
        bbr.set_first_rate(smoothed, windows, pacing);
        bbr
    }

    /// An ACK came (`bbr_main`): sets cwnd and the pace. True while PROBE_RTT holds the sender
    /// back.
    pub(crate) fn on_ack(
        &mut self,
        ack: &Ack,
        (windows, pacing): (&mut Windows, &mut Pacing),
    ) -> bool {
        let mss = windows.mss();
        self.update_bandwidth(ack, mss);
        self.update_aggregation(ack, windows.cwnd() / mss);
        self.update_phase(ack, pacing, mss);
        self.check_pipe(ack);
        self.check_drain(ack, windows, pacing);
        let is_held_back = self.update_shortest(ack, windows);
        self.set_rate(self.pacing_gain(), ack.smoothed, windows, pacing);
        self.set_cwnd(ack, windows, pacing);
        is_held_back
    }

    /// A recovery begins, or a probe repaired a loss, with this cwnd: it comes back.
    pub(crate) fn on_loss(&mut self, cwnd: u32) {
        let is_reduced = self.repair != Repair::Nothing || self.mode == Mode::ProbeRoundTrip;
        self.cwnd_before = if is_reduced { self.cwnd_before.max(cwnd) } else { cwnd };
    }

    /// The timer fired (`bbr_set_state`): the pipe may be another.
    pub(crate) fn on_timeout(&mut self, (delivered, lost): (u32, u32), at: Instant, mss: u32) {
        self.repair = Repair::Timeout;
        self.pipe.bandwidth = Bandwidth::default();
        self.round.begins = true;
        let counters = Counters { delivered, lost, at };
        self.ask_policer(counters, (true, false), mss);
    }

    /// There was no loss after all (`bbr_undo_cwnd`).
    pub(crate) fn on_mistake(&mut self, (delivered, lost): (u32, u32), at: Instant) {
        self.pipe.bandwidth = Bandwidth::default();
        self.pipe.rounds = 0;
        self.policer.reset(Counters { delivered, lost, at });
    }

    /// The application was idle and sends again (`CA_EVENT_TX_START`): at the bandwidth, since it
    /// needs no more.
    pub(crate) fn on_restart(
        &mut self,
        smoothed: Duration,
        (windows, pacing): (&mut Windows, &mut Pacing),
        now: Instant,
    ) {
        self.restarts = true;
        self.aggregation.restart(now);
        match self.mode {
            Mode::ProbeBandwidth => self.set_rate(Gain::UNIT, smoothed, windows, pacing),
            Mode::ProbeRoundTrip => self.end_probe_if_over(now, windows),
            Mode::Startup | Mode::Drain => {}
        }
    }

    /// The policer's, or the largest of the last rounds.
    fn bandwidth(&self) -> Bandwidth {
        self.policer.rate().unwrap_or(self.bandwidth.max())
    }

    fn update_bandwidth(&mut self, ack: &Ack, mss: u32) {
        self.round.begins = false;
        let Some(interval) = ack.sample.interval.filter(|interval| !interval.is_zero()) else {
            return;
        };
        let until = self.round.until;
        if ack.sample.delivered_before.wrapping_sub(until) as i32 >= 0 {
            self.round = Round { count: self.round.count + 1, until: ack.delivered, begins: true };
            self.conserves = false;
        }
        let Ack { delivered, lost_total: lost, delivered_at: at, .. } = *ack;
        let flags = (ack.lost > 0, ack.sample.is_app_limited);
        self.ask_policer(Counters { delivered, lost, at }, flags, mss);
        let bandwidth = Bandwidth::of(ack.sample.delivered, interval);
        if !ack.sample.is_app_limited || bandwidth >= self.bandwidth.max() {
            self.bandwidth.add(bandwidth, self.round.count);
        }
    }

    fn ask_policer(
        &mut self,
        counters: Counters,
        (has_loss, is_app_limited): (bool, bool),
        mss: u32,
    ) {
        let outcome = self.policer.on_news(News {
            counters,
            has_loss,
            is_app_limited,
            begins_round: self.round.begins,
            is_cycling: self.mode == Mode::ProbeBandwidth,
            mss,
        });
        if outcome == Outcome::Over {
            self.enter_probe_bandwidth(counters.at);
        }
    }

    fn update_aggregation(&mut self, ack: &Ack, cwnd: u32) {
        let is_sample = ack.sample.interval.is_some_and(|interval| !interval.is_zero());
        if ack.acked > 0 && is_sample {
            let (bandwidth, begins) = (self.bandwidth(), self.round.begins);
            self.aggregation.on_ack((ack.acked, cwnd), begins, bandwidth, ack.delivered_at);
        }
    }

    /// The next phase of PROBE_BW: after the shortest round trip; a faster one not before it has
    /// filled the path or lost, a slower one as soon as its queue is gone.
    fn update_phase(&mut self, ack: &Ack, pacing: &Pacing, mss: u32) {
        if self.mode != Mode::ProbeBandwidth {
            return;
        }
        let lasted = ack.delivered_at.since(self.phase_began_at);
        let is_long = self.shortest.is_some_and(|shortest| lasted > shortest);
        let gain = self.pacing_gain();
        let in_flight = self.in_flight_at_departure(ack.in_flight_before, pacing, mss, ack.now);
        let target = |gain| self.target(self.bandwidth.max(), gain, pacing, mss);
        let is_over = match gain.cmp(&Gain::UNIT) {
            core::cmp::Ordering::Equal => is_long,
            core::cmp::Ordering::Greater => is_long && (ack.lost > 0 || in_flight >= target(gain)),
            core::cmp::Ordering::Less => is_long || in_flight <= target(Gain::UNIT),
        };
        if is_over {
            self.phase = (self.phase + 1) % CYCLE.len() as u8;
            self.phase_began_at = ack.delivered_at;
        }
    }

    fn check_pipe(&mut self, ack: &Ack) {
        if self.pipe.is_full || !self.round.begins || ack.sample.is_app_limited {
            return;
        }
        let bandwidth = self.bandwidth.max();
        if bandwidth >= self.pipe.bandwidth.scaled(MORE) {
            self.pipe = Pipe { bandwidth, ..Pipe::default() };
        } else {
            self.pipe.rounds += 1;
            self.pipe.is_full = self.pipe.rounds >= ROUNDS_WITHOUT_MORE;
        }
    }

    fn check_drain(&mut self, ack: &Ack, windows: &mut Windows, pacing: &Pacing) {
        let mss = windows.mss();
        let target = self.target(self.bandwidth.max(), Gain::UNIT, pacing, mss);
        if self.mode == Mode::Startup && self.pipe.is_full {
            self.mode = Mode::Drain;
            windows.set_ssthresh(target.saturating_mul(mss));
        }
        if self.mode == Mode::Drain
            && self.in_flight_at_departure(ack.in_flight, pacing, mss, ack.now) <= target
        {
            self.enter_probe_bandwidth(ack.delivered_at);
        }
    }

    /// The shortest round trip, and PROBE_RTT when none as short came for ten seconds.
    fn update_shortest(&mut self, ack: &Ack, windows: &mut Windows) -> bool {
        let is_old = ack.now > self.shortest_at + SHORTEST_LASTS;
        if let Some(sample) = ack.round_trip
            && (self.shortest.is_none_or(|shortest| sample < shortest)
                || is_old && !ack.may_be_delayed)
        {
            (self.shortest, self.shortest_at) = (Some(sample), ack.now);
        }
        if is_old && !self.restarts && self.mode != Mode::ProbeRoundTrip {
            self.on_loss(windows.cwnd() / windows.mss());
            self.mode = Mode::ProbeRoundTrip;
            self.probe_ends_at = None;
        }
        let is_held_back = self.mode == Mode::ProbeRoundTrip;
        if is_held_back {
            self.go_on_probing(ack, windows);
        }
        if ack.sample.delivered > 0 {
            self.restarts = false;
        }
        is_held_back
    }

    fn go_on_probing(&mut self, ack: &Ack, windows: &mut Windows) {
        if self.probe_ends_at.is_some() {
            self.probe_has_round |= self.round.begins;
            if self.probe_has_round {
                self.end_probe_if_over(ack.now, windows);
            }
        } else if ack.in_flight <= CWND_MIN {
            self.probe_ends_at = Some(ack.now + PROBE_LASTS);
            self.probe_has_round = false;
            self.round.until = ack.delivered;
        }
    }

    fn end_probe_if_over(&mut self, now: Instant, windows: &mut Windows) {
        if self.probe_ends_at.is_none_or(|ends_at| now <= ends_at) {
            return;
        }
        self.shortest_at = now;
        let cwnd = (windows.cwnd() / windows.mss()).max(self.cwnd_before);
        windows.set_cwnd(cwnd.saturating_mul(windows.mss()));
        match self.pipe.is_full {
            true => self.enter_probe_bandwidth(now),
            false => self.mode = Mode::Startup,
        }
    }

    fn enter_probe_bandwidth(&mut self, now: Instant) {
        self.mode = Mode::ProbeBandwidth;
        let seed = u64::from(self.seed) << u32::BITS | u64::from(self.round.count);
        let drawn = Random::new(seed, "bbr phase").below(FIRST_PHASES) as u8;
        self.phase = (CYCLE.len() as u8 - drawn) % CYCLE.len() as u8;
        self.phase_began_at = now;
    }

    fn pacing_gain(&self) -> Gain {
        match self.mode {
            Mode::Startup => HIGH_GAIN,
            Mode::Drain => DRAIN_GAIN,
            Mode::ProbeBandwidth if self.policer.rate().is_some() => Gain::UNIT,
            Mode::ProbeBandwidth => CYCLE[usize::from(self.phase)],
            Mode::ProbeRoundTrip => Gain::UNIT,
        }
    }

    fn cwnd_gain(&self) -> Gain {
        match self.mode {
            Mode::Startup | Mode::Drain => HIGH_GAIN,
            Mode::ProbeBandwidth => CWND_GAIN,
            Mode::ProbeRoundTrip => Gain::UNIT,
        }
    }

    /// The initial window in a round trip, times the highest gain.
    fn set_first_rate(&mut self, smoothed: Duration, windows: &Windows, pacing: &mut Pacing) {
        self.has_round_trip = !smoothed.is_zero();
        let round_trip = if self.has_round_trip { smoothed } else { ROUND_TRIP_GUESS };
        let bandwidth = Bandwidth::of(windows.cwnd() / windows.mss(), round_trip);
        pacing.set_rate(bandwidth.pacing_rate(windows.mss(), HIGH_GAIN));
    }

    fn set_rate(&mut self, gain: Gain, smoothed: Duration, windows: &Windows, pacing: &mut Pacing) {
        if !self.has_round_trip && !smoothed.is_zero() {
            self.set_first_rate(smoothed, windows, pacing);
        }
        let rate = self.bandwidth().pacing_rate(windows.mss(), gain);
        if self.pipe.is_full || rate > pacing.rate() {
            pacing.set_rate(rate);
        }
    }
}
