//! One direction of a connection: what its sender sent, as far as it passed here, and what its
//! receiver acknowledged.
//!
//! ```text
//!   sender ──data──▶ place of the capture ──data──▶ receiver
//!                                         ◀──ACK───
//!   never seen here, a hole: lost before     seen here and sent again: lost behind (or too early)
//! ```
//!
//! Map: `data` (what the sender sends), `ack` (what the receiver acknowledges), `gap` (waits
//! and silences), `hosts` (window, timestamps, identifications).

mod ack;
mod data;
mod gap;
mod hosts;

use crate::decode::Segment;
use crate::delay::{RoundTrips, SenderClock};
use crate::sent::UnderWay;
use crate::verdicts::{Losses, Verdicts};
use data::Hole;
use gap::{Idle, Wait};
use hosts::{Echo, Identifications, Window};
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
    /// Round trip from here to the sender in the handshake.
    pub to_sender: Option<Duration>,
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
    /// After the sequence number of the FIN.
    fin: Option<Seq>,
}

#[derive(Clone, Copy, Debug)]
struct Edges {
    /// The highest ACK.
    una: Seq,
    /// After the highest byte seen.
    nxt: Seq,
}

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
        if segment.tcp.flags.contains(Flags::FIN) {
            self.fin = Some(end);
        }
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
}
