//! How much a Linux sender sends at once: what one millisecond of its rate holds, and at least two
//! segments (`tcp_tso_autosize`). Less waits for the next ACK if that is due at any moment
//! (`tcp_tso_should_defer`), so that a sender that its window holds back sends pairs, not runts.
//!
//! The peer's window is filled to its last byte only behind a full segment, and only while no
//! other runt is under way (`tcp_snd_wnd_test`, `tcp_mss_split_point`; Minshall's variant of
//! Nagle's algorithm, `tcp_minshall_check`).

use super::pacing::Pacing;
use crate::connection::Endpoint;
use crate::sender::Fin;
use sansio::{Duration, Instant, Sink};

/// What a sender with its own account of the flight knows about it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flight {
    /// Segments that cwnd lets out.
    pub(super) room: u32,
    /// Segments sent and not acknowledged.
    pub(super) segments: u32,
    /// When the oldest of them was sent; none if nothing is under way.
    pub(super) oldest_sent_at: Option<Instant>,
    /// A loss is being repaired: nothing waits.
    pub(super) is_repairing: bool,
    /// Less than a segment was sent and is not acknowledged.
    pub(super) has_runt: bool,
    /// The shortest round trip, if one is known.
    pub(super) shortest: Option<Duration>,
    /// The pace, if there is one beside what cwnd makes of it.
    pub(super) pacing: Option<Pacing>,
}

/// What may go out next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Burst {
    /// So many bytes.
    Send(u32),
    /// As much as cwnd allows is too little to send before the next ACK.
    AwaitAck,
    /// Nothing, by the peer's window or for want of data or of cwnd.
    Nothing,
}

/// No burst is smaller (`tcp_min_tso_segs`), segments.
const SEGMENTS_MIN: u32 = 2;
/// None is larger (`GSO_LEGACY_MAX_SIZE`), bytes.
const BYTES_MAX: u64 = 65_536;
/// A burst holds the pacing rate's bytes in 2^-10 s (`sk_pacing_shift`).
const BURSTS_PER_SECOND: u64 = 1 << 10;
/// On short paths more: `BYTES_MAX`, halved for each so many of the shortest round trip
/// (`tcp_tso_rtt_log` = 9).
const HALVED_EACH: Duration = Duration::from_micros(512);
/// This part of the window is worth a burst (`tcp_tso_win_divisor`).
const WINDOW_PART: u32 = 3;
/// A sender that has been silent for longer, or whose ACK is later, sends what it may.
const WAIT_MAX: Duration = Duration::from_millis(1);

/// Bursts in the device at once (`tcp_small_queue_check`). When it has taken them, what is lost
/// goes before what is new (`tcp_tsq_write`).
pub(super) const DEVICE_BURSTS: u32 = 2;

impl Endpoint {
    /// Sends the next burst, if both windows let one out.
    pub(super) fn send_burst(
        &mut self,
        flight: Flight,
        sink: &mut impl Sink,
        now: Instant,
    ) -> Burst {
        let burst = self.next_burst(&flight, now);
        if let Burst::Send(bytes) = burst {
            if bytes > self.sender.mss {
                self.sender.burst_end = Some(self.sender.next + bytes);
            }
            let mut left = bytes;
            while left > 0 {
                match self.send_next(left, sink, now) {
                    0 => return Burst::Nothing,
                    units => left = left.saturating_sub(units),
                }
            }
        }
        burst
    }

    fn next_burst(&self, flight: &Flight, now: Instant) -> Burst {
        let sender = &self.sender;
        let mss = sender.mss;
        let sent = sender.next.since(sender.una);
        let by_peer = sender.window.saturating_sub(sent);
        let unsent = sender.buffer.len().saturating_sub(u64::from(sent));
        let unsent = u32::try_from(unsent).unwrap_or(u32::MAX);
        if flight.room == 0 || by_peer < mss.min(unsent.max(1)) {
            return Burst::Nothing;
        }
        if unsent <= mss {
            return Burst::Send(unsent.max(1));
        }
        let segments_max = self.burst_segments(flight);
        let by_cwnd = flight.room.saturating_mul(mss);
        let is_enough = by_peer.min(by_cwnd) >= segments_max.saturating_mul(mss);
        if !is_enough && self.is_worth_waiting(flight, by_peer.min(by_cwnd), unsent, now) {
            return if by_cwnd < by_peer { Burst::AwaitAck } else { Burst::Nothing };
        }
        let most = flight.room.min(segments_max).saturating_mul(mss);
        let bytes = by_peer.min(unsent).min(most);
        let is_runt_by_peer = bytes == by_peer && bytes < unsent;
        let runt = if is_runt_by_peer && flight.has_runt { bytes % mss } else { 0 };
        Burst::Send(bytes - runt)
    }

    /// Segments of a burst.
    fn burst_segments(&self, flight: &Flight) -> u32 {
        let mss = u64::from(self.sender.mss.max(1));
        let (rate, segments_min) = match flight.pacing {
            Some(pacing) => (pacing.rate(), pacing.burst_segments_min()),
            None => (self.pace_of_window(flight, mss), SEGMENTS_MIN),
        };
        let by_rate = rate / BURSTS_PER_SECOND;
        let halvings = |trip: Duration| trip.as_nanos() / HALVED_EACH.as_nanos();
        let by_trip = flight.shortest.map(halvings).filter(|halvings| *halvings < 32);
        let by_trip = by_trip.map_or(0, |halvings| BYTES_MAX >> halvings);
        let bytes = by_rate.saturating_add(by_trip).min(BYTES_MAX);
        ((bytes / mss) as u32).max(segments_min)
    }

    /// What cwnd makes of the pace, bytes per second (`tcp_update_pacing_rate`).
    fn pace_of_window(&self, flight: &Flight, mss: u64) -> u64 {
        let cwnd = u64::from(self.controller.cwnd());
        let in_slow_start = cwnd < u64::from(self.controller.ssthresh()) / 2;
        let window = cwnd.max(u64::from(flight.segments) * mss);
        let faster = if in_slow_start { window * 2 } else { window * 6 / 5 };
        let smoothed = self.rtt.smoothed().as_nanos().max(1);
        let rate = u128::from(faster) * 1_000_000_000 / u128::from(smoothed);
        u64::try_from(rate).unwrap_or(u64::MAX)
    }

    /// True if an ACK is about to let out more than these bytes.
    fn is_worth_waiting(&self, flight: &Flight, limit: u32, unsent: u32, now: Instant) -> bool {
        let sender = &self.sender;
        let window = sender.window.min(self.controller.cwnd());
        let is_all = unsent < limit && sender.fin == Fin::Pending;
        if flight.is_repairing || is_all || limit >= window / WINDOW_PART {
            return false;
        }
        let Some(oldest) = flight.oldest_sent_at else { return false };
        let smoothed = self.rtt.smoothed();
        let patience = WAIT_MAX.min(smoothed / 2);
        let last_at = flight.pacing.map_or(sender.last_data_at, |pacing| pacing.next_at());
        now.since(last_at) <= WAIT_MAX && oldest + smoothed <= now + patience
    }
}
