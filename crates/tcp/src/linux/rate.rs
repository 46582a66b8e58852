//! Delivery rate (draft-cheng-iccrg-delivery-rate-estimation-00; `tcp_rate.c` of Linux 6.18): how
//! fast the network took what was sent over about the last round trip.
//!
//! ```text
//!   first sending       this sending                ACK of it
//!        ├── send phase ────┤                           │
//!        .                  .   delivered since ──▶ n   │
//!   last ACK before it was sent ├──── ACK phase ────────┤
//! ```
//!
//! A sample is the number of segments delivered since that last ACK over the longer of the two
//! phases: a burst that is sent, or acknowledged, at once says nothing about the network. What was
//! sent while the application had too little to send is marked, since it may fall short.

use super::sack::Arrived;
use sansio::{Duration, Instant};
use std::collections::VecDeque;

/// What the sampler remembers of one connection.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DeliveryRate {
    /// Of the segments sent and not acknowledged, in order of sequence.
    stamps: VecDeque<Stamp>,
    /// When the segment was sent that begins the send phase (`first_tx_mstamp`).
    first_sent_at: Instant,
    /// When something was delivered last (`delivered_mstamp`).
    delivered_at: Instant,
    /// The application has too little to send, until more than this is delivered (`app_limited`).
    app_limited_until: Option<u32>,
}

/// What a segment carries.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Stamp {
    /// Of the sampler, when the segment was sent.
    first_sent_at: Instant,
    delivered_at: Instant,
    is_app_limited: bool,
    /// It arrived, and was taken into account.
    is_used: bool,
}

/// What an ACK says about the network's pace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sample {
    /// Segments delivered since `delivered_before`; 0 if nothing that can be told of arrived.
    pub(crate) delivered: u32,
    /// How many had been delivered when the latest segment that arrived was sent.
    pub(crate) delivered_before: u32,
    /// How long that took; `None` if it cannot be told.
    pub(crate) interval: Option<Duration>,
    /// The application had too little to send.
    pub(crate) is_app_limited: bool,
}

impl DeliveryRate {
    /// Before anything was sent.
    pub(crate) fn new() -> Self {
        DeliveryRate {
            stamps: VecDeque::new(),
            first_sent_at: Instant::ZERO,
            delivered_at: Instant::ZERO,
            app_limited_until: None,
        }
    }

    /// When something was delivered last.
    pub(crate) fn delivered_at(&self) -> Instant {
        self.delivered_at
    }

    /// True while the application has too little to send.
    pub(crate) fn is_app_limited(&self) -> bool {
        self.app_limited_until.is_some()
    }

    /// The application has too little to send, or the sender holds itself back: the samples of
    /// what is `in_flight` now, beyond `delivered`, are marked.
    pub(crate) fn limit(&mut self, delivered: u32, in_flight: u32) {
        self.app_limited_until = Some(delivered.wrapping_add(in_flight));
    }

    /// A new segment is sent.
    pub(crate) fn on_sent(&mut self, sent_at: Instant) {
        if self.stamps.is_empty() {
            (self.first_sent_at, self.delivered_at) = (sent_at, sent_at);
        }
        self.stamps.push_back(self.stamp());
    }

    /// The segment at this place is sent again.
    pub(crate) fn on_resent(&mut self, place: usize) {
        let stamp = self.stamp();
        if let Some(kept) = self.stamps.get_mut(place) {
            *kept = stamp;
        }
    }

    /// An ACK told that these arrived, of which the first `acked` are forgotten; `delivered`: all
    /// that ever were. A sample shorter than the `shortest` round trip is none.
    pub(in crate::linux) fn on_ack(
        &mut self,
        (arrived, acked): (&[Arrived], u32),
        delivered: u32,
        shortest: Duration,
        now: Instant,
    ) -> Sample {
        let latest = self.take_latest(arrived);
        self.stamps.drain(..(acked as usize).min(self.stamps.len()));
        let is_past = |until: u32| (delivered.wrapping_sub(until) as i32) > 0;
        self.app_limited_until = self.app_limited_until.filter(|until| !is_past(*until));
        if !arrived.is_empty() {
            self.delivered_at = now;
        }
        let Some((latest, stamp)) = latest else { return Sample::default() };
        let send_phase = latest.sent_at.since(stamp.first_sent_at);
        let ack_phase = now.since(stamp.delivered_at);
        let interval = send_phase.max(ack_phase);
        Sample {
            delivered: delivered.wrapping_sub(latest.delivered_before),
            delivered_before: latest.delivered_before,
            interval: Some(interval).filter(|interval| *interval >= shortest),
            is_app_limited: stamp.is_app_limited,
        }
    }

    /// The latest sending of those that arrived; the next send phase begins there.
    fn take_latest(&mut self, arrived: &[Arrived]) -> Option<(Arrived, Stamp)> {
        let mut latest: Option<(Arrived, Stamp)> = None;
        for one in arrived {
            let Some(stamp) = self.stamps.get_mut(one.place) else { continue };
            if core::mem::replace(&mut stamp.is_used, true) {
                continue;
            }
            let first_sent_at = self.first_sent_at;
            if latest.is_none_or(|(last, _)| one.is_sent_after(first_sent_at, last.end)) {
                self.first_sent_at = one.sent_at;
                latest = Some((*one, *stamp));
            }
        }
        latest
    }

    fn stamp(&self) -> Stamp {
        Stamp {
            first_sent_at: self.first_sent_at,
            delivered_at: self.delivered_at,
            is_app_limited: self.is_app_limited(),
            is_used: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::tcp::Seq;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + MS(millis)
    }

    fn arrived(place: usize, sent: u64, delivered_before: u32) -> Arrived {
        let end = Seq(1000 * (place as u32 + 1));
        Arrived { place, end, sent_at: at(sent), was_resent: false, delivered_before }
    }

    /// Four segments, sent at 0, 2, 4 and 6 ms.
    fn four() -> DeliveryRate {
        let mut rate = DeliveryRate::new();
        (0..4).for_each(|n| rate.on_sent(at(2 * n)));
        rate
    }

    #[test]
    fn the_longer_phase_counts() {
        // All ACKs at once at 20 ms, the send phase hidden behind them.
        let mut rate = four();
        let all: Vec<_> = (0..4).map(|n| arrived(n, 2 * n as u64, 0)).collect();
        let sample = rate.on_ack((&all, 4), 4, MS(5), at(20));
        assert_eq!((sample.delivered, sample.interval), (4, Some(MS(20))), "ACK phase: 0 to 20 ms");
        // The next four were sent over 30 ms and are acknowledged within 10.
        (0..4).for_each(|n| rate.on_sent(at(20 + 10 * n)));
        rate.stamps.iter_mut().for_each(|stamp| stamp.delivered_at = at(45));
        let all: Vec<_> = (0..4).map(|n| arrived(n, 20 + 10 * n as u64, 4)).collect();
        let sample = rate.on_ack((&all, 4), 8, MS(5), at(55));
        assert_eq!((sample.delivered, sample.interval), (4, Some(MS(30))), "sent from 20 to 50 ms");
    }

    #[test]
    fn a_sample_shorter_than_the_shortest_round_trip_is_none() {
        for (shortest, interval) in [(20, Some(MS(20))), (21, None)] {
            let mut rate = four();
            let sample = rate.on_ack((&[arrived(0, 0, 0)], 1), 1, MS(shortest), at(20));
            assert_eq!((sample.delivered, sample.interval), (1, interval));
        }
    }

    #[test]
    fn what_was_sacked_says_nothing_when_it_is_acknowledged() {
        let mut rate = four();
        rate.on_ack((&[arrived(2, 4, 0)], 0), 1, MS(5), at(20));
        let sample = rate.on_ack((&[arrived(2, 4, 0)], 0), 1, MS(5), at(25));
        assert_eq!(sample, Sample::default());
    }

    #[test]
    fn the_mark_of_a_limited_application_ends_when_its_data_is_delivered() {
        let mut rate = DeliveryRate::new();
        rate.limit(0, 2);
        (0..4).for_each(|_| rate.on_sent(at(0)));
        let sample = rate.on_ack((&[arrived(0, 0, 0), arrived(1, 0, 0)], 2), 2, MS(5), at(10));
        assert!(sample.is_app_limited && rate.is_app_limited(), "not more than two");
        let sample = rate.on_ack((&[arrived(0, 0, 0)], 1), 3, MS(5), at(11));
        assert!(sample.is_app_limited, "it was sent so");
        assert!(!rate.is_app_limited());
    }
}
