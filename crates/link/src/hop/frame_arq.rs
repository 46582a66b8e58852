//! A link layer that repeats lost frames on the air, one at a time, and says what became of each
//! (BASE-10, METP-LL-3).
//!
//! Stop and wait: after the last bit of a frame the sender waits for its ACK, two delays and the
//! time that the ACK takes. If the channels or an outage lost the frame there is none, and it is
//! sent again; after the last repetition it is given up. All of that takes the air from whatever
//! waits, unlike [`channel::arq`], and every try meets the channels of its own
//! time. With losses of probability p, each try for itself, a packet takes 1 / (1 - p) tries on
//! average if all are repeated until they arrive; with n repetitions p^(n + 1) are given up.
//! ACKs are not lost, so what is given up did not arrive.
//!
//! ```text
//!   │──frame──▶│──delay──▶ lost              │──frame──▶│──delay──▶ arrives  │ next frame
//!              │──────────wait──────────────▶│          │──────────wait─────▶│ Verdict
//! ```

use super::Hop;
use super::notes::Note;
use crate::channel::{self, Air};
use crate::outage::Interval;
use sansio::{Duration, Instant};

/// A link layer that repeats frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// How often.
    pub retry: Retry,
    /// What an ACK takes beside the delay both ways: its bits, and the gaps before and after.
    pub ack_time: Duration,
}

/// When a frame is given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// Practically never: after 100,000 repetitions, which bounds the work for one frame.
    Persistent,
    /// After so many repetitions, at most 100,000.
    Limited(u32),
}

const RETRIES_MAX: u32 = 100_000;

#[derive(Clone, Copy, Debug)]
pub(super) struct FrameArq {
    retries_max: u32,
    /// From a frame's last bit until its ACK is there, or should be.
    wait: Duration,
}

impl FrameArq {
    pub(super) fn new(config: Config, delay: Duration) -> Self {
        let retries_max = match config.retry {
            Retry::Persistent => RETRIES_MAX,
            Retry::Limited(retries) => retries.min(RETRIES_MAX),
        };
        // At least 1 ns, as everything that travels: a verdict comes after the arrival.
        let wait = (delay * 2 + config.ack_time).max(delay + Duration::from_nanos(2));
        FrameArq { retries_max, wait }
    }
}

impl<T: Clone> Hop<T> {
    /// Sends a frame until it arrives or is given up; the delay of the verdict is from the end of
    /// the first try.
    pub(super) fn repeat(&mut self, first: Air, item: &T) -> channel::Verdict {
        let arq = self.conditions.as_ref().and_then(|conditions| conditions.frame_arq);
        let Some(arq) = arq else { return self.judge(first, item) };
        let length = first.time.end.since(first.time.start);
        let mut air = first;
        let mut verdict = self.judge(air, item);
        for _ in 0..arq.retries_max {
            if verdict.loss.is_none() {
                break;
            }
            let mut start = air.time.end + arq.wait;
            while self.pauses(air.bytes, start) {
                start = self.free_at;
            }
            air.time = Interval { start, end: start + length };
            self.served.air_bytes += u64::from(air.bytes);
            self.served.busy += length + arq.wait;
            verdict = self.judge(air, item);
        }
        self.free_at = air.time.end + arq.wait;
        self.served.busy += arq.wait;
        self.note(self.free_at, Note::Verdict(verdict.loss.is_none()), item.clone());
        verdict.delay += air.time.end.since(first.time.end);
        verdict
    }

    /// When the next verdict is known, at the earliest. Where the delay varies, that of a packet
    /// that still waits may come before the arrival of one that was sent.
    pub(super) fn next_verdict(&self) -> Option<Instant> {
        let known = self.reports.as_ref().and_then(|reports| reports.notes.next_verdict());
        let arq = self.conditions.as_ref().and_then(|conditions| conditions.frame_arq);
        let waiting = self.next_bytes().zip(arq).map(|(bytes, arq)| {
            self.next_start() + self.host_cost + self.pace.time_for(bytes) + arq.wait
        });
        known.into_iter().chain(waiting).min()
    }
}
