//! What the sender sends: new, again, or late into a hole.

use super::{Edges, Stream};
use crate::decode::Segment;
use crate::sent::{SCHEMES, Sent};
use crate::verdicts::Losses;
use sansio::{Duration, Instant};
use wire::tcp::Seq;

/// Sequence numbers that were passed over.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hole {
    pub(super) start: Seq,
    pub(super) end: Seq,
    pub(super) since: Instant,
    pub(super) value: Option<u32>,
    pub(super) queue: Option<Duration>,
}

/// Attempts kept of one stall; a sender gives up after about as many.
const ATTEMPTS_MAX: usize = 16;
/// Holes kept; beyond, the oldest is forgotten.
const HOLES_MAX: usize = 1024;
/// A packet that fills a hole within this time was overtaken, if no timestamps tell.
const REORDERING: Duration = Duration::from_millis(3);
/// Silence of the sender after which a retransmission is for a timer.
const TIMER_LEAST: Duration = Duration::from_millis(150);

impl Stream {
    pub(super) fn on_data(
        &mut self,
        segment: &Segment,
        (start, end): (Seq, Seq),
        excess: Option<Duration>,
    ) {
        /// Another connection with the same ports, or bytes out of a broken capture.
        const FAR: u32 = 1 << 30;
        let at = segment.at;
        self.counts.data_packets += u64::from(segment.payload_bytes > 0);
        self.counts.payload_bytes += u64::from(segment.payload_bytes);
        self.note_size(segment.payload_bytes);
        self.verdicts.on_data(at, self.trips.smoothed);
        if let Some(wait) = &mut self.wait {
            wait.sent += 1;
        }
        let edges = self.edges.unwrap_or(Edges { una: start, nxt: start });
        let is_far = start.since(edges.nxt) > FAR && edges.nxt.since(start) > FAR;
        if self.edges.is_none() || is_far {
            self.open(start);
        }
        let Some(Edges { una, nxt }) = self.edges else { return };
        if end.at_or_before(una) {
            self.counts.again_seen += 1;
        } else if start.at_or_after(nxt) {
            self.on_new_data(segment, (start, end), excess);
        } else {
            self.on_old_data(segment, (start, end.min(nxt)));
            if end.after(nxt) {
                self.keep(segment, (nxt, end));
            }
        }
        if let Some(edges) = &mut self.edges {
            edges.nxt = edges.nxt.max(end);
        }
        if self.wait.is_none() && !self.way.is_empty() {
            self.wait = Some(self.begin_wait(at));
        }
    }

    pub(super) fn on_new_data(
        &mut self,
        segment: &Segment,
        (start, end): (Seq, Seq),
        excess: Option<Duration>,
    ) {
        let Some(Edges { una, nxt }) = self.edges else { return };
        if start.after(nxt) {
            let hole = Hole {
                start: nxt,
                end: start,
                since: segment.at,
                value: segment.tcp.options.timestamps().map(|it| it.value),
                queue: excess,
            };
            if self.holes.len() == HOLES_MAX {
                self.holes.remove(0);
            }
            self.holes.push(hole);
        }
        if let Some(idle) = self.idle.take()
            && segment.payload_bytes > 0
            && segment.at.since(idle.since) >= self.threshold()
        {
            self.silence(&idle, segment, start.since(nxt), excess);
        }
        let limit = self.known_edge.or(self.window.bytes.map(|window| una + window));
        let is_limited = limit.is_some_and(|limit| (end + self.mss()).after(limit));
        self.counts.window_limited += u64::from(is_limited);
        self.last_was_full = segment.payload_bytes >= self.mss();
        self.keep(segment, (start, end));
    }

    pub(super) fn keep(&mut self, segment: &Segment, (start, end): (Seq, Seq)) {
        self.way.insert(Sent {
            start,
            end,
            first_at: segment.at,
            last_at: segment.at,
            times: 1,
            first_value: segment.tcp.options.timestamps().map(|it| it.value),
            again_value: None,
            sacked: false,
            copies: Default::default(),
        });
    }

    /// Bytes below the highest seen: again, or late.
    pub(super) fn on_old_data(&mut self, segment: &Segment, (start, end): (Seq, Seq)) {
        let at = segment.at;
        let value = segment.tcp.options.timestamps().map(|it| it.value);
        let una = self.edges.map_or(start, |edges| edges.una);
        let holes = self.holes.iter().filter(|it| it.start.before(end) && it.end.after(start));
        if let Some(hole) = holes.copied().next() {
            let soon = match (value, hole.value) {
                (Some(value), Some(revealed)) if value != revealed => {
                    Seq(value).before(Seq(revealed))
                }
                _ => at.since(hole.since) < REORDERING,
            };
            if let Some(wait) = &mut self.wait {
                wait.missing_here |= hole.start.at_or_before(una);
            }
            self.fill(start, end);
            self.keep(segment, (start.max(hole.start), end.min(hole.end)));
            if soon {
                self.counts.reordered += 1;
            } else {
                self.counts.again_unseen += 1;
                self.lost(segment, hole.queue, true);
            }
            return;
        }
        self.counts.again_seen += 1;
        let mut repaired = [false; SCHEMES];
        let mut last_at = None;
        let mut first_at = at;
        for sent in self.way.within(start, end) {
            last_at = Some(sent.last_at);
            first_at = first_at.min(sent.first_at);
            sent.times = sent.times.saturating_add(1);
            sent.last_at = at;
            sent.again_value = sent.again_value.or(value);
            for (repaired, copies) in repaired.iter_mut().zip(&sent.copies) {
                *repaired |= copies[0].is_some();
            }
        }
        for (count, repaired) in self.counts.repaired_before.iter_mut().zip(repaired) {
            *count += u64::from(repaired);
        }
        let is_lowest = start.at_or_before(una);
        if let Some(wait) = self.wait.as_mut().filter(|_| is_lowest) {
            if wait.attempts.len() < ATTEMPTS_MAX {
                wait.attempts.push(at);
            }
            let is_timer = last_at.is_some_and(|last| at.since(last) >= TIMER_LEAST);
            self.counts.timeouts += u64::from(is_timer);
        }
        self.verdicts.on_lost(first_at);
        let beyond = self.trips.last.zip(self.trips.floor).map(|(last, floor)| last - floor);
        self.lost(segment, self.queue_at_dupack.or(beyond), false);
    }

    /// Takes `start..end` out of the holes.
    pub(super) fn fill(&mut self, start: Seq, end: Seq) {
        let mut rest = Vec::new();
        for hole in self.holes.drain(..) {
            if hole.end.at_or_before(start) || hole.start.at_or_after(end) {
                rest.push(hole);
                continue;
            }
            if hole.start.before(start) {
                rest.push(Hole { end: start, ..hole });
            }
            if hole.end.after(end) {
                rest.push(Hole { start: end, ..hole });
            }
        }
        self.holes = rest;
    }

    /// A retransmission: the losses of one flight belong together.
    pub(super) fn lost(&mut self, segment: &Segment, queue: Option<Duration>, before: bool) {
        let nxt = self.edges.map_or(segment.tcp.seq, |edges| edges.nxt);
        let packets = segment.payload_bytes.div_ceil(self.mss().max(1)).max(1);
        let losses = self.losses.get_or_insert(Losses {
            from: segment.at,
            until: segment.at,
            recover: nxt,
            packets: 0,
            queue,
            marked: false,
            before,
        });
        losses.until = segment.at;
        losses.packets += u64::from(packets);
    }

    pub(super) fn note_size(&mut self, payload_bytes: u32) {
        /// Larger ones are super-packets.
        const FRAME_MAX: u32 = 9_000;
        if payload_bytes <= FRAME_MAX {
            self.mss = self.mss.max(payload_bytes);
        }
    }
}
