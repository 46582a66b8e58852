//! Gaps: waiting for an ACK while something is outstanding, and silence while nothing is. What is
//! seen meanwhile becomes the evidence of a stall, if the gap is one.

use super::Stream;
use super::ack::{is_earlier, reports_repeat};
use crate::cause::{Evidence, Resumed};
use crate::decode::Segment;
use sansio::{Duration, Instant};

/// What is seen while something is outstanding and nothing new is acknowledged.
#[derive(Clone, Debug, Default)]
pub(super) struct Wait {
    pub(super) since: Instant,
    pub(super) window_bytes: Option<u32>,
    pub(super) receiver_packets: u32,
    pub(super) receiver_at: Instant,
    pub(super) receiver_silence: Duration,
    pub(super) dupacks: u32,
    pub(super) newly_sacked: u32,
    pub(super) attempts: Vec<Instant>,
    pub(super) sent: u32,
    pub(super) missing_here: bool,
    pub(super) hops: u8,
}

/// Nothing is outstanding.
#[derive(Clone, Copy, Debug)]
pub(super) struct Idle {
    pub(super) since: Instant,
    /// The window at its beginning.
    pub(super) window_bytes: Option<u32>,
    /// When a window smaller than a segment grew.
    pub(super) opened_at: Option<Instant>,
    /// Packets missing by the sender's IP identifications, if it counts by them.
    pub(super) missing: Option<u32>,
}

/// A round trip to assume before any is known, with which a stall takes 300 ms.
const ROUND_TRIP_ASSUMED: Duration = Duration::from_millis(133);
/// What a stall takes beyond one and a half round trips.
const STALL_LEAST: Duration = Duration::from_millis(100);

impl Stream {
    pub(super) fn begin_wait(&self, at: Instant) -> Wait {
        Wait {
            since: at,
            receiver_at: at,
            window_bytes: self.window.bytes,
            hops: self.hops,
            ..Wait::default()
        }
    }

    /// What is a stall of this connection now: the sender answers after the whole round trip.
    pub(super) fn threshold(&self) -> Duration {
        let there = self.trips.smoothed.or(self.trips.floor).unwrap_or(ROUND_TRIP_ASSUMED);
        // What a sender echoes after a pause of its own is no round trip.
        let back = self.to_sender.into_iter().chain(self.echo_trips.floor).min();
        let round_trip = there + back.unwrap_or(Duration::ZERO);
        round_trip + round_trip / 2 + STALL_LEAST
    }

    pub(super) fn was_marked(&self, from: Instant) -> bool {
        let around = self.threshold();
        self.marked_at.is_some_and(|marked| marked + around >= from)
    }

    /// The wait was a stall; `ended_by` is the ACK that ended it.
    pub(super) fn stall(&mut self, until: Instant, ended_by: Option<&Segment>) {
        let Some(wait) = self.wait.clone() else { return };
        let mss = self.mss();
        let lowest = self.way.lowest();
        let echo = ended_by.and_then(|it| it.tcp.options.timestamps()).map(|it| it.echo);
        let again = lowest.and_then(|sent| sent.again_value);
        let first = lowest.and_then(|sent| sent.first_value);
        let answers_original = again != first && is_earlier(echo, again);
        let late = self.way.iter().filter(|it| !it.sacked && it.first_at > self.arrived_until);
        let bytes: u64 = late.map(|it| u64::from(it.end.since(it.start))).sum();
        let una = self.edges.map(|edges| edges.una);
        let evidence = Evidence {
            from: wait.since,
            until,
            outstanding: bytes.div_ceil(u64::from(mss.max(1))) as u32,
            window_bytes: wait.window_bytes,
            mss,
            receiver_packets: wait.receiver_packets,
            receiver_silence: wait.receiver_silence.max(until.since(wait.receiver_at)),
            dupacks: wait.dupacks,
            newly_sacked: wait.newly_sacked,
            sent: wait.sent,
            sent_again: lowest.is_some_and(|sent| sent.times > 1) && !answers_original,
            attempts: wait.attempts,
            answers_original,
            reports_repeat: ended_by.is_some_and(reports_repeat),
            unfinished: ended_by.is_none(),
            missing_here: wait.missing_here || self.holes.iter().any(|it| Some(it.start) == una),
            resumed: None,
            lost_after: 0,
            queue_at_loss: self.losses.as_ref().and_then(|losses| losses.queue),
            marked: self.was_marked(wait.since),
            hops_changed: ended_by.is_some_and(|it| self.hops_differ(wait.hops, it)),
        };
        let copies = lowest.map(|sent| sent.copies).unwrap_or_default();
        self.verdicts.on_stall(evidence, copies, (&self.trips, &self.echo_trips));
    }

    pub(super) fn hops_differ(&self, before: u8, now: &Segment) -> bool {
        before != 0 && now.ip.hop_limit != before
    }

    /// Nothing was outstanding, and the sender goes on.
    pub(super) fn silence(
        &mut self,
        idle: &Idle,
        segment: &Segment,
        hole_bytes: u32,
        excess: Option<Duration>,
    ) {
        let hole = hole_bytes.div_ceil(self.mss().max(1));
        let since = idle.since;
        // A window that was closed for less than half of the time is not why.
        let opened_at = idle.opened_at.unwrap_or(segment.at);
        let was_closed = opened_at.since(since) * 2 >= segment.at.since(since);
        let evidence = Evidence {
            from: since,
            until: segment.at,
            window_bytes: idle.window_bytes.filter(|_| was_closed),
            mss: self.mss(),
            resumed: Some(Resumed {
                missing: idle.missing.max((hole > 0).then_some(hole)),
                excess,
                lonely: segment.payload_bytes == self.mss(),
                was_bulk: self.last_was_full,
            }),
            queue_at_loss: self.excess.recent_floor(),
            marked: self.was_marked(since),
            ..Evidence::default()
        };
        self.verdicts.on_stall(evidence, Default::default(), (&self.trips, &self.echo_trips));
    }
}
