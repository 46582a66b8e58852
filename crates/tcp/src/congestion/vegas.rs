//! Vegas (Brakmo and Peterson 1995, "TCP Vegas: End to End Congestion Avoidance on a Global
//! Internet"; BASE-4): a window that follows the difference between the rate expected and the rate
//! measured, once per round trip.
//!
//! ```text
//!   expected = window / baseRTT      actual = sent in the last round trip / its RTT
//!   (expected - actual) * baseRTT    segments queued on the path, the paper's Diff:
//!        below alpha  +1 a round trip       above beta  -1       between  as it is
//!        above gamma, in slow start         slow start ends
//! ```
//!
//! What the paper leaves open is as in ns-2's Vegas, after the authors' code: the round trip is the
//! mean of those measured in it, the handshake's the first; slow start doubles cwnd every other
//! round trip and ends by an eighth less; baseRTT is the least so far, but a round trip with a
//! single segment sets it anew, since then nothing of ours is queued. A retransmission that
//! duplicate ACKs or the finer timeout start takes a quarter of the window, of a segment lost again
//! a half, and nothing if the segment was sent before the last reduction. We differ from ns-2 in
//! keeping the inflation by duplicate ACKs apart from cwnd, as Reno here does.

use super::{Controller, Loss, Repair, Windows};
use crate::config::{Config, VegasLimits};
use sansio::{Duration, Instant};
use std::collections::VecDeque;
use wire::tcp::Seq;

/// Vegas' windows, and what it measures.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Vegas {
    windows: Windows,
    limits: VegasLimits,
    /// Bytes that duplicate ACKs say have left the network.
    inflation: u32,
    base: Option<Duration>,
    round: Round,
    growth: Growth,
    /// This round trip is one in which slow start doubles.
    doubles: bool,
    /// Segments in flight, in order of sequence.
    sent: VecDeque<Sent>,
    timeout: FineTimeout,
    /// The time and the duplicate ACKs of what is being handled.
    now: Instant,
    dupacks: u32,
    reduced_at: Instant,
    /// ACKs after a retransmission that may show another loss.
    worried: u32,
    /// The last reduction was by the coarse timer.
    timed_out: bool,
}

/// A round trip: from when `until` was next to be sent to when it is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Round {
    until: Seq,
    began_at: Instant,
    /// Round-trip times measured in it.
    sum: Duration,
    samples: u32,
}

/// What a new ACK adds to cwnd in this round trip.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Growth {
    Nothing,
    /// A segment: slow start.
    Segment,
    /// So many 2^-16 bytes: a segment a round trip.
    Share(u64),
}

/// A segment in flight.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Sent {
    end: Seq,
    at: Instant,
    times: u32,
}

/// The finer retransmission timeout: Jacobson's estimate by an exact clock, with two deviations and
/// a sixteenth more.
#[derive(Clone, Copy, Debug, PartialEq)]
struct FineTimeout {
    smoothed_times_8: u64,
    deviation_times_4: u64,
    /// Nanoseconds.
    value: u64,
}

/// Segments in flight of which the time is kept; later ones count as if they were never late.
const SENT_MAX: usize = 1 << 16;
/// ACKs after a retransmission that are looked at (the paper's "first or second").
const WORRIED_ACKS: u32 = 2;
/// Least finer timeout, ns. Without any, on a path that takes no time every duplicate ACK would
/// make a segment late whose repetition brings the next one.
const TIMEOUT_MIN: u64 = 1_000_000;
/// Least window, segments; also that after a timeout.
const WINDOW_MIN: u32 = 2;

impl Vegas {
    pub(super) fn new(config: &Config, windows: Windows) -> Self {
        let round =
            Round { until: Seq(0), began_at: Instant::ZERO, sum: Duration::ZERO, samples: 0 };
        Vegas {
            windows,
            limits: config.vegas,
            inflation: 0,
            base: None,
            round,
            growth: Growth::Nothing,
            doubles: false,
            sent: VecDeque::new(),
            timeout: FineTimeout { smoothed_times_8: 0, deviation_times_4: 0, value: u64::MAX },
            now: Instant::ZERO,
            dupacks: 0,
            reduced_at: Instant::ZERO,
            worried: 0,
            timed_out: false,
        }
    }

    /// The connection is open and `first` the first byte to send; the handshake took this long, if
    /// that is known.
    pub(crate) fn start(&mut self, first: Seq, handshake: Option<Duration>, now: Instant) {
        self.now = now;
        self.round = Round { until: first, began_at: now, sum: Duration::ZERO, samples: 0 };
        self.base = handshake;
        if let Some(handshake) = handshake {
            let nanos = handshake.as_nanos();
            // As the first sample, with half of it for the deviation: 1.5 round-trip times.
            self.timeout = FineTimeout {
                smoothed_times_8: nanos * 8,
                deviation_times_4: nanos,
                value: (nanos * 3 / 2).max(TIMEOUT_MIN),
            };
            self.sample(handshake);
        }
    }

    /// This is when the next calls happen, and how many duplicate ACKs there are.
    pub(crate) fn note(&mut self, dupacks: u32, now: Instant) {
        (self.dupacks, self.now) = (dupacks, now);
    }

    /// Bytes up to `end` were sent, new or again.
    pub(crate) fn on_sent(&mut self, end: Seq, now: Instant) {
        let index = self.sent.partition_point(|sent| sent.end.before(end));
        if let Some(sent) = self.sent.get_mut(index) {
            (sent.at, sent.times) = (now, sent.times.saturating_add(1));
        } else if self.sent.len() < SENT_MAX {
            self.sent.push_back(Sent { end, at: now, times: 1 });
        }
    }

    /// Everything below `una` is acknowledged now; `next` is sent next.
    pub(crate) fn on_progress(&mut self, una: Seq, next: Seq) {
        if una.after(self.round.until) {
            self.end_round(una, next);
        }
        let cwnd = self.windows.cwnd();
        let mss = self.windows.mss();
        if self.growth == Growth::Segment && cwnd >= self.windows.ssthresh() {
            self.growth = Growth::Nothing;
        }
        // Not beyond what is used.
        if cwnd <= next.since(una) + (WINDOW_MIN + 1) * mss {
            match self.growth {
                Growth::Nothing => {}
                Growth::Segment => self.windows.set_cwnd(cwnd.saturating_add(mss)),
                Growth::Share(fraction) => self.windows.open_by(fraction),
            }
        }
        self.take_acknowledged(una);
    }

    /// True if what is sent first was sent longer ago than the finer timeout.
    pub(crate) fn is_late(&self) -> bool {
        let first = self.sent.front();
        first.is_some_and(|sent| self.now.since(sent.at).as_nanos() >= self.timeout.value)
    }

    /// True if this new ACK, one of the first two after a retransmission, shows another loss.
    pub(crate) fn shows_another_loss(&mut self) -> bool {
        let is_loss = self.worried > 0 && self.is_late();
        self.worried = if is_loss { self.worried - 1 } else { 0 };
        is_loss
    }

    /// True if duplicate ACKs may be of what was sent before a timeout.
    pub(crate) fn has_timed_out(&self) -> bool {
        self.timed_out
    }

    /// A segment sent again is late again: only the finer timeout grows.
    pub(crate) fn on_late_again(&mut self) {
        self.worried = WORRIED_ACKS;
        self.timeout.back_off(self.times_sent());
    }

    fn times_sent(&self) -> u32 {
        self.sent.front().map_or(1, |sent| sent.times)
    }

    fn end_round(&mut self, una: Seq, next: Seq) {
        let mss = self.windows.mss();
        let sent = next.since(self.round.until);
        let round_trip = match self.round.samples {
            0 => self.now.since(self.round.began_at),
            samples => self.round.sum / u64::from(samples),
        };
        self.round = Round { until: next, began_at: self.now, sum: Duration::ZERO, samples: 0 };
        if round_trip == Duration::ZERO {
            return;
        }
        let base = match self.base {
            Some(base) if round_trip >= base && sent > mss => base,
            _ => round_trip,
        };
        self.base = Some(base);
        let expected = u64::from(next.since(una) + mss);
        let actual =
            u128::from(sent) * u128::from(base.as_nanos()) / u128::from(round_trip.as_nanos());
        let queued = expected.saturating_sub(actual as u64) + u64::from(mss / 2);
        self.judge((queued / u64::from(mss)) as u32);
    }

    /// So many segments of ours are queued on the path, rounded.
    fn judge(&mut self, queued: u32) {
        let (cwnd, mss) = (self.windows.cwnd(), self.windows.mss());
        let least = WINDOW_MIN * mss;
        self.growth = Growth::Nothing;
        if cwnd < self.windows.ssthresh() {
            self.doubles = !self.doubles;
            if self.doubles && queued > self.limits.gamma {
                self.windows.set_ssthresh(least);
                self.windows.set_cwnd((cwnd - cwnd / 8).max(least));
            } else if self.doubles {
                self.growth = Growth::Segment;
            }
        } else if queued > self.limits.beta {
            self.windows.set_cwnd(cwnd.saturating_sub(mss).max(least));
        } else if queued < self.limits.alpha {
            self.growth = Growth::Share(self.windows.avoidance(mss));
        }
    }

    /// Forgets segments below `una`; the last of them is a sample if it was sent once.
    fn take_acknowledged(&mut self, una: Seq) {
        let mut last = None;
        while let Some(sent) = self.sent.front().copied()
            && sent.end.at_or_before(una)
        {
            last = Some(sent);
            self.sent.pop_front();
        }
        if let Some(Sent { at, times: 1, .. }) = last {
            let sample = self.now.since(at);
            self.sample(sample);
            self.timeout.take(sample);
            if sample > Duration::ZERO && self.base.is_none_or(|base| sample < base) {
                self.base = Some(sample);
            }
        }
    }

    fn sample(&mut self, sample: Duration) {
        self.round.sum += sample;
        self.round.samples += 1;
    }
}

impl Controller for Vegas {
    const REPAIR: Repair = Repair::FastRecovery;

    fn windows(&self) -> &Windows {
        &self.windows
    }

    fn windows_mut(&mut self) -> &mut Windows {
        &mut self.windows
    }

    /// [`Vegas::on_progress`] is told more.
    fn on_new_ack(&mut self, _: u32) {}

    fn on_dupack(&mut self) {
        self.inflation = self.inflation.saturating_add(self.windows.mss());
    }

    fn on_fast_retransmit(&mut self, loss: Loss) {
        self.timed_out = false;
        self.worried = WORRIED_ACKS;
        let times = self.times_sent();
        self.timeout.back_off(times);
        if self.sent.front().is_some_and(|sent| sent.at <= self.reduced_at) {
            return;
        }
        let mss = self.windows.mss();
        let window = self.windows.cwnd().min(loss.send_window) / mss;
        let left = match (window, times) {
            (0..=3, _) => WINDOW_MIN,
            (_, 0..=1) => window - window / 4,
            _ => window / 2,
        };
        self.windows.set_cwnd(left * mss);
        self.inflation = self.dupacks.saturating_mul(mss);
        self.reduced_at = self.now;
    }

    fn on_recovered(&mut self) {
        self.inflation = 0;
        // Slow start is over.
        self.windows.set_ssthresh(WINDOW_MIN * self.windows.mss());
    }

    fn on_timeout(&mut self, loss: Loss) {
        self.inflation = 0;
        self.windows.halve(loss);
        self.windows.set_cwnd(WINDOW_MIN * self.windows.mss());
        self.reduced_at = self.now;
        self.timed_out = true;
    }

    fn cwnd(&self) -> u32 {
        self.windows.cwnd().saturating_add(self.inflation)
    }
}

impl FineTimeout {
    fn take(&mut self, sample: Duration) {
        let sample = sample.as_nanos();
        if self.value == u64::MAX {
            (self.smoothed_times_8, self.deviation_times_4) = (sample * 8, sample);
        }
        let smoothed = self.smoothed_times_8 / 8;
        self.smoothed_times_8 = self.smoothed_times_8 - smoothed + sample;
        let error = sample.abs_diff(smoothed);
        self.deviation_times_4 = self.deviation_times_4 - self.deviation_times_4 / 4 + error;
        let value = self.smoothed_times_8 / 8 + self.deviation_times_4 / 2;
        self.value = (value + value / 16).max(TIMEOUT_MIN);
    }

    /// The segment it is of was sent so many times before.
    fn back_off(&mut self, times: u32) {
        let more = if times > 1 { self.value } else { self.value / 8 };
        self.value = self.value.saturating_add(more);
    }
}
