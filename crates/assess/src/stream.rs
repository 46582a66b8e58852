//! One direction of a connection: what its sender sent, as far as it passed here, and what its
//! receiver acknowledged.
//!
//! ```text
//!   sender ──data──▶ place of the capture ──data──▶ receiver
//!                                         ◀──ACK───
//!   never seen here, a hole: lost before     seen here and sent again: lost behind (or too early)
//! ```

use crate::cause::{Evidence, Resumed};
use crate::decode::Segment;
use crate::delay::{RoundTrips, SenderClock};
use crate::sent::{Sent, UnderWay};
use crate::verdicts::{Losses, Verdicts, Way};
use sansio::{Duration, Instant};
use std::collections::VecDeque;
use wire::ip::Ecn;
use wire::tcp::{Flags, Seq};

/// What was counted.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// Segments with payload.
    pub data_packets: u64,
    /// Payload in them, repetitions included.
    pub payload_bytes: u64,
    /// Payload acknowledged since the first ACK that was seen.
    pub acked_bytes: u64,
    /// Segments that had passed here before: lost behind this place, or repeated too early.
    pub again_seen: u64,
    /// Segments that filled a hole late: lost before this place.
    pub again_unseen: u64,
    /// Segments that filled a hole soon: overtaken by others.
    pub reordered: u64,
    /// Segments that the receiver says it got twice (RFC 2883).
    pub unneeded: u64,
    /// Retransmissions of the lowest segment after silence: timeouts, and probes of the tail.
    pub timeouts: u64,
    /// Bytes acknowledged that were never seen here: packets that the capture missed.
    pub missed_bytes: u64,
    /// Segments sent with the window all used.
    pub window_limited: u64,
    /// Retransmissions before which the replayed agent had sent the same bytes.
    pub repaired_before: [u64; crate::sent::SCHEMES],
}

/// One direction.
#[derive(Clone, Debug, Default)]
pub struct Stream {
    /// What was counted.
    pub counts: Counts,
    /// Round trips from here to the receiver.
    pub trips: RoundTrips,
    /// How much longer than the fastest its packets were under way to here.
    pub excess: RoundTrips,
    /// Round trips from here to the sender, by what it echoes; longer where it had nothing to send.
    pub echo_trips: RoundTrips,
    /// Stalls and losses with their causes.
    pub verdicts: Verdicts,
    /// Below it all is acknowledged, and above the other nothing was seen; `None` before anything
    /// was.
    edges: Option<Edges>,
    way: UnderWay,
    holes: Vec<Hole>,
    clock: SenderClock,
    mss: u32,
    mss_offered: Option<u32>,
    window: Window,
    wait: Option<Wait>,
    idle: Option<Idle>,
    losses: Option<Losses>,
    queue_at_dupack: Option<Duration>,
    dupacks: u32,
    marked_at: Option<Instant>,
    hops: u8,
    identifications: Identifications,
    echoes: VecDeque<Echo>,
    /// After the last byte that the sender may send, as far as it knew with its last packet.
    known_edge: Option<Seq>,
    /// What was sent before this may have arrived.
    arrived_until: Instant,
    last_was_full: bool,
}

#[derive(Clone, Copy, Debug)]
struct Edges {
    /// The highest ACK.
    una: Seq,
    /// After the highest byte seen.
    nxt: Seq,
}

/// Sequence numbers that were passed over.
#[derive(Clone, Copy, Debug)]
struct Hole {
    start: Seq,
    end: Seq,
    since: Instant,
    value: Option<u32>,
    queue: Option<Duration>,
}

/// A timestamp of the receiver that the sender will echo.
#[derive(Clone, Copy, Debug)]
struct Echo {
    value: u32,
    at: Instant,
    /// After the last byte that the receiver then took.
    edge: Option<Seq>,
}

/// The receiver's offer.
#[derive(Clone, Copy, Debug, Default)]
struct Window {
    /// The scale of the receiver's SYN.
    scale: Option<u8>,
    /// The last window, scaled; `None` if it is not zero and the scale is not known.
    bytes: Option<u32>,
}

/// What is seen while something is outstanding and nothing new is acknowledged.
#[derive(Clone, Debug, Default)]
struct Wait {
    since: Instant,
    window_bytes: Option<u32>,
    receiver_packets: u32,
    receiver_at: Instant,
    receiver_silence: Duration,
    dupacks: u32,
    newly_sacked: u32,
    attempts: Vec<Instant>,
    sent: u32,
    missing_here: bool,
    hops: u8,
}

/// Nothing is outstanding.
#[derive(Clone, Copy, Debug)]
struct Idle {
    since: Instant,
    /// The window at its beginning.
    window_bytes: Option<u32>,
    /// When a window smaller than a segment grew.
    opened_at: Option<Instant>,
    /// Packets missing by the sender's IP identifications, if it counts by them.
    missing: Option<u32>,
}

/// The sender's IP identifications, where it counts packets by them.
#[derive(Clone, Copy, Debug, Default)]
struct Identifications {
    next: Option<u16>,
    as_expected: u32,
    others: u32,
}

/// Attempts kept of one stall; a sender gives up after about as many.
const ATTEMPTS_MAX: usize = 16;
/// Holes kept; beyond, the oldest is forgotten.
const HOLES_MAX: usize = 1024;
/// ACKs remembered for the round trip to the sender.
const ECHOES_MAX: usize = 4096;
/// A packet that fills a hole within this time was overtaken, if no timestamps tell.
const REORDERING: Duration = Duration::from_millis(3);
/// A round trip to assume before any is known, with which a stall takes 300 ms.
const ROUND_TRIP_ASSUMED: Duration = Duration::from_millis(133);
/// What a stall takes beyond one and a half round trips.
const STALL_LEAST: Duration = Duration::from_millis(100);
/// Silence of the sender after which a retransmission is for a timer.
const TIMER_LEAST: Duration = Duration::from_millis(150);

impl Stream {
    /// True once any payload was seen.
    pub fn has_data(&self) -> bool {
        self.counts.data_packets > 0
    }

    /// The sender's largest segment so far, in bytes.
    pub fn mss(&self) -> u32 {
        self.mss_offered.filter(|_| self.mss > 0).map_or(self.mss, |offered| offered.min(self.mss))
    }

    /// A packet of the sender, whatever it carries.
    pub fn on_sender(&mut self, segment: &Segment) {
        let missing = self.identifications.missing(segment, self.mss());
        if let Some((idle, missing)) = self.idle.as_mut().zip(missing) {
            idle.missing = Some(idle.missing.unwrap_or(0) + missing);
        }
        if segment.tcp.flags.contains(Flags::SYN) {
            return self.open(segment.range().1);
        }
        let timestamps = segment.tcp.options.timestamps();
        let excess = timestamps.and_then(|it| self.clock.excess(it.value, segment.at));
        if let Some(excess) = excess {
            self.excess.take(excess, true);
        }
        if let Some(echo) = timestamps.map(|it| it.echo) {
            self.on_echo(echo, segment.at);
        }
        if segment.ip.traffic_class & 0b11 == Ecn::CongestionExperienced as u8 {
            self.marked_at = Some(segment.at);
        }
        let (start, end) = segment.range();
        if start != end {
            self.on_data(segment, (start, end), excess);
        }
    }

    /// A packet of the receiver, whatever it carries.
    pub fn on_receiver(&mut self, segment: &Segment) {
        if segment.tcp.flags.contains(Flags::SYN) {
            self.window.scale = Some(segment.tcp.options.window_scale().unwrap_or(0));
            self.mss_offered = segment.tcp.options.mss().map(u32::from);
            return;
        }
        if !segment.tcp.flags.contains(Flags::ACK) || segment.tcp.flags.contains(Flags::RST) {
            return;
        }
        if segment.tcp.flags.contains(Flags::ECE) {
            self.marked_at = Some(segment.at);
        }
        self.remember_echo(segment);
        if let Some(wait) = &mut self.wait {
            let silence = segment.at.since(wait.receiver_at);
            wait.receiver_silence = wait.receiver_silence.max(silence);
            wait.receiver_at = segment.at;
            wait.receiver_packets += 1;
        }
        self.on_ack(segment);
        self.hops = segment.ip.hop_limit;
        self.window.take(segment.tcp.window);
        let is_open = self.window.bytes.is_none_or(|window| window >= self.mss());
        if let Some(idle) = self.idle.as_mut().filter(|_| is_open) {
            idle.opened_at.get_or_insert(segment.at);
        }
    }

    /// One of the two hosts offered no window scale, so neither has one (RFC 7323, 2.2).
    pub fn no_scale(&mut self) {
        self.window.scale = Some(0);
    }

    /// The replayed agent sent these bytes again.
    pub fn on_copy(&mut self, scheme: usize, (start, end): (Seq, Seq), at: Instant) {
        for sent in self.way.within(start, end) {
            match &mut sent.copies[scheme] {
                [first @ None, _] => *first = Some(at),
                [_, second @ None] => *second = Some(at),
                _ => {}
            }
        }
    }

    /// The capture or the connection ends.
    pub fn finish(&mut self, now: Instant, broken: bool) {
        let waiting = self.wait.as_ref().map(|wait| now.since(wait.since));
        if !broken && waiting.is_some_and(|waiting| waiting >= self.threshold()) {
            self.stall(now, None);
        }
        if let Some(losses) = self.losses.take() {
            self.verdicts.on_losses(losses, now);
        }
        let paths = (&mut self.trips, &mut self.echo_trips);
        self.verdicts.finish(paths, &self.excess);
    }

    fn open(&mut self, at: Seq) {
        self.edges = Some(Edges { una: at, nxt: at });
        self.way.clear();
        self.holes.clear();
        self.wait = None;
        self.idle = None;
    }

    fn on_data(&mut self, segment: &Segment, (start, end): (Seq, Seq), excess: Option<Duration>) {
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

    fn on_new_data(
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

    fn keep(&mut self, segment: &Segment, (start, end): (Seq, Seq)) {
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
    fn on_old_data(&mut self, segment: &Segment, (start, end): (Seq, Seq)) {
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
        let mut repaired = [false; crate::sent::SCHEMES];
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
    fn fill(&mut self, start: Seq, end: Seq) {
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
    fn lost(&mut self, segment: &Segment, queue: Option<Duration>, before: bool) {
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

    fn on_ack(&mut self, segment: &Segment) {
        let ack = segment.tcp.ack;
        let Some(Edges { una, nxt }) = self.edges else { return self.open(ack) };
        if ack.after(nxt) {
            let missed = ack.since(nxt);
            if missed < 1 << 30 {
                self.counts.missed_bytes += u64::from(missed);
            }
            self.open(ack);
            return;
        }
        let newly = self.on_blocks(segment, una, nxt);
        if ack.after(una) {
            return self.on_progress(segment, una);
        }
        let is_duplicate = ack == una
            && segment.payload_bytes == 0
            && !segment.tcp.flags.contains(Flags::FIN)
            && una != nxt
            && (newly.is_some() || self.window.is_same(segment.tcp.window));
        if !is_duplicate {
            return;
        }
        self.dupacks += 1;
        let floor = self.trips.floor.unwrap_or(Duration::ZERO);
        self.arrived_until = self.arrived_until.max(segment.at - floor);
        if let Some(wait) = &mut self.wait {
            wait.dupacks += 1;
        }
        if self.dupacks == 1 {
            // What overtook the lost segment was sent right after it.
            let next = self.way.iter().nth(1).map(|sent| segment.at.since(sent.first_at));
            let floor = self.trips.floor;
            self.queue_at_dupack =
                newly.or(next).zip(floor).map(|(it, floor)| it.saturating_sub(floor));
        }
    }

    /// Marks what SACK blocks show; the round trip of the newest of it.
    fn on_blocks(&mut self, segment: &Segment, una: Seq, nxt: Seq) -> Option<Duration> {
        let mut newest: Option<Instant> = None;
        let ack = segment.tcp.ack;
        for (index, block) in segment.tcp.options.sack_blocks().enumerate() {
            let is_dsack = index == 0 && block.end.at_or_before(ack);
            self.counts.unneeded += u64::from(is_dsack);
            let inside = block.start.at_or_after(una) && block.end.at_or_before(nxt);
            if is_dsack || !inside || !block.start.before(block.end) {
                continue;
            }
            let mut marked = 0;
            for sent in self.way.within(block.start, block.end).filter(|sent| !sent.sacked) {
                sent.sacked = true;
                marked += 1;
                if sent.times == 1 {
                    newest = newest.max(Some(sent.first_at));
                }
            }
            if let Some(wait) = &mut self.wait {
                wait.newly_sacked += marked;
            }
        }
        self.arrived_until = self.arrived_until.max(newest.unwrap_or(Instant::ZERO));
        let sample = newest.map(|sent_at| segment.at.since(sent_at));
        if let Some(sample) = sample {
            self.trips.take(sample, true);
            self.verdicts.on_sample(sample, newest?, Way::ToReceiver);
        }
        sample
    }

    fn on_progress(&mut self, segment: &Segment, una: Seq) {
        let (ack, at) = (segment.tcp.ack, segment.at);
        let waited = self.wait.as_ref().map(|wait| at.since(wait.since));
        if waited.is_some_and(|waited| waited >= self.threshold()) {
            self.stall(at, Some(segment));
        }
        self.counts.acked_bytes += u64::from(ack.since(una));
        self.fill(una, ack);
        let mut covered = 0;
        let mut newest: Option<Instant> = None;
        let mut is_clear = true;
        let mut bytes = 0;
        let mut unneeded = 0;
        let echo = segment.tcp.options.timestamps().map(|it| it.echo);
        self.way.acknowledge(ack, |sent| {
            covered += 1;
            bytes += sent.end.since(sent.start);
            is_clear &= sent.times == 1 && !sent.sacked;
            if sent.times == 1 || is_earlier(echo, sent.again_value) {
                newest = newest.max(Some(sent.first_at));
                unneeded += u64::from(sent.times > 1);
            }
        });
        if let Some(losses) = &mut self.losses {
            losses.packets = losses.packets.saturating_sub(unneeded);
        }
        self.arrived_until = self.arrived_until.max(newest.unwrap_or(Instant::ZERO));
        if let Some(sent_at) = newest.filter(|_| is_clear) {
            // Such an ACK waited for no second segment (RFC 1122, 4.2.3.2).
            const SOON: Duration = Duration::from_millis(10);
            let next = self.way.lowest().map(|next| next.first_at.since(sent_at) < SOON);
            let is_prompt = covered >= 2 || bytes > self.mss() || next.unwrap_or(false);
            let sample = at.since(sent_at);
            self.trips.take(sample, is_prompt);
            self.verdicts.on_sample(sample, sent_at, Way::ToReceiver);
        }
        self.dupacks = 0;
        self.queue_at_dupack = None;
        if let Some(edges) = &mut self.edges {
            edges.una = ack;
        }
        if self.losses.as_ref().is_some_and(|losses| ack.at_or_after(losses.recover))
            && let Some(mut losses) = self.losses.take()
        {
            losses.marked = self.was_marked(losses.from);
            self.verdicts.on_losses(losses, at);
        }
        let all = self.edges.is_none_or(|edges| edges.una == edges.nxt);
        self.window.take(segment.tcp.window);
        let window_bytes = self.window.bytes;
        self.idle = all.then_some(Idle { since: at, window_bytes, opened_at: None, missing: None });
        self.wait = if all { None } else { Some(self.begin_wait(at)) };
        let paths = (&mut self.trips, &mut self.echo_trips);
        self.verdicts.resolve(at, paths, &self.excess);
    }

    fn begin_wait(&self, at: Instant) -> Wait {
        Wait {
            since: at,
            receiver_at: at,
            window_bytes: self.window.bytes,
            hops: self.hops,
            ..Wait::default()
        }
    }

    /// What is a stall of this connection now: the sender answers after the whole round trip.
    fn threshold(&self) -> Duration {
        let there = self.trips.smoothed.or(self.trips.floor).unwrap_or(ROUND_TRIP_ASSUMED);
        let round_trip = there + self.echo_trips.floor.unwrap_or(Duration::ZERO);
        round_trip + round_trip / 2 + STALL_LEAST
    }

    fn was_marked(&self, from: Instant) -> bool {
        let around = self.threshold();
        self.marked_at.is_some_and(|marked| marked + around >= from)
    }

    /// The wait was a stall; `ended_by` is the ACK that ended it.
    fn stall(&mut self, until: Instant, ended_by: Option<&Segment>) {
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

    fn hops_differ(&self, before: u8, now: &Segment) -> bool {
        before != 0 && now.ip.hop_limit != before
    }

    /// Nothing was outstanding, and the sender goes on.
    fn silence(
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

    fn note_size(&mut self, payload_bytes: u32) {
        /// Larger ones are super-packets.
        const FRAME_MAX: u32 = 9_000;
        if payload_bytes <= FRAME_MAX {
            self.mss = self.mss.max(payload_bytes);
        }
    }

    fn remember_echo(&mut self, segment: &Segment) {
        let Some(value) = segment.tcp.options.timestamps().map(|it| it.value) else { return };
        let mut window = self.window;
        window.take(segment.tcp.window);
        let edge = window.bytes.map(|bytes| segment.tcp.ack + bytes);
        if let Some(last) = self.echoes.back_mut().filter(|last| last.value == value) {
            last.edge = edge;
            return;
        }
        if self.echoes.len() == ECHOES_MAX {
            self.echoes.pop_front();
        }
        self.echoes.push_back(Echo { value, at: segment.at, edge });
    }

    /// The sender echoes a timestamp of the receiver that passed here before.
    fn on_echo(&mut self, echo: u32, at: Instant) {
        let index = self.echoes.partition_point(|it| Seq(it.value).before(Seq(echo)));
        let Some(&Echo { value, at: passed_at, edge }) = self.echoes.get(index) else { return };
        if value != echo {
            return;
        }
        self.known_edge = edge;
        let sample = at.since(passed_at);
        self.echo_trips.take(sample, true);
        self.verdicts.on_sample(sample, passed_at, Way::ToSender);
        self.echoes.drain(..=index);
    }
}

/// An ACK answers the first transmission if it echoes an earlier timestamp than the second's
/// (RFC 3522).
fn is_earlier(echo: Option<u32>, again: Option<u32>) -> bool {
    echo.zip(again).is_some_and(|(echo, again)| Seq(echo).before(Seq(again)))
}

impl Window {
    fn take(&mut self, field: u16) {
        self.bytes = match (field, self.scale) {
            (0, _) => Some(0),
            (field, Some(scale)) => Some(u32::from(field) << scale.min(14)),
            (_, None) => None,
        };
    }

    fn is_same(&self, field: u16) -> bool {
        let mut other = *self;
        other.take(field);
        other.bytes == self.bytes
    }
}

impl Identifications {
    /// Packets between this one and the one before, if the sender counts its packets.
    fn missing(&mut self, segment: &Segment, mss: u32) -> Option<u32> {
        /// More at once are another counter.
        const MISSING_MAX: u16 = 1 << 14;
        let identification = segment.ip.identification;
        if segment.ip.source.is_ipv6() || segment.tcp.flags.contains(Flags::SYN) {
            return None;
        }
        // A super-packet is counted by its segments.
        let segments = segment.payload_bytes.div_ceil(mss.max(1)).max(1);
        let next = self.next.replace(identification.wrapping_add(segments as u16));
        let missing = identification.wrapping_sub(next?);
        if missing == 0 {
            self.as_expected += 1;
        } else {
            self.others += 1;
        }
        let counts = self.as_expected >= 8 && self.as_expected / 4 >= self.others;
        (counts && missing < MISSING_MAX).then_some(u32::from(missing))
    }
}
