//! RACK (RFC 8985, section 6.2): a segment is lost when one sent later has arrived and it is late
//! by more than the network reorders (`tcp_recovery.c`).
//!
//! The reordering window is none while three duplicates stand for a loss and nothing was ever
//! reordered; after that a quarter of the shortest round trip, one more for each round trip in
//! which a D-SACK showed a repetition to be needless, at most the smoothed round trip.

use super::queue::{Arrived, Segment, Verdict};
use sansio::{Duration, Instant};
use wire::tcp::Seq;

/// What RACK remembers of one connection.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Rack {
    /// The latest sending that arrived, and where its segment ends.
    newest: Option<(Instant, Seq)>,
    /// How long that took.
    round_trip: Duration,
    /// Something arrived since losses were looked for.
    pub(super) has_news: bool,
    /// Quarters of the shortest round trip, at most 255.
    steps: u8,
    /// Recoveries before it is one again.
    persist: u8,
    dsack_seen: bool,
    /// What was delivered when it last grew.
    delivered: u32,
}

/// Recoveries that a longer window lasts (`TCP_RACK_RECOVERY_THRESH`).
const PERSIST_RECOVERIES: u8 = 16;

/// What the reordering window depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Circumstances {
    /// Segments were ever overtaken.
    pub(super) reorders: bool,
    /// In recovery, or so many are SACKed that it is one.
    pub(super) is_urgent: bool,
    pub(super) shortest: Duration,
    pub(super) smoothed: Duration,
}

impl Default for Rack {
    fn default() -> Self {
        Rack {
            newest: None,
            round_trip: Duration::ZERO,
            has_news: false,
            steps: 1,
            persist: 0,
            dsack_seen: false,
            delivered: 0,
        }
    }
}

impl Rack {
    /// A segment arrived (`tcp_rack_advance`). If it was sent again and arrived in less than the
    /// shortest round trip, it was the first sending.
    pub(super) fn advance(&mut self, arrived: &Arrived, shortest: Duration, now: Instant) {
        let round_trip = now.since(arrived.sent_at);
        if arrived.was_resent && round_trip < shortest {
            return;
        }
        self.has_news = true;
        self.round_trip = round_trip;
        if self.newest.is_none_or(|newest| is_later((arrived.sent_at, arrived.end), newest)) {
            self.newest = Some((arrived.sent_at, arrived.end));
        }
    }

    /// A D-SACK came: something was sent again needlessly.
    pub(super) fn on_dsack(&mut self) {
        self.dsack_seen = true;
    }

    /// Once per ACK (`tcp_rack_update_reo_wnd`). `before`: what was delivered when the segment
    /// that arrived last was sent.
    pub(super) fn update_window(&mut self, before: u32, delivered: u32) {
        if (before.wrapping_sub(self.delivered) as i32) < 0 {
            self.dsack_seen = false;
        }
        if core::mem::take(&mut self.dsack_seen) {
            self.steps = self.steps.saturating_add(1);
            self.delivered = delivered;
            self.persist = PERSIST_RECOVERIES;
        } else if self.persist == 0 {
            self.steps = 1;
        }
    }

    /// A recovery ended, rightly begun.
    pub(super) fn on_recovered(&mut self) {
        self.persist = self.persist.saturating_sub(1);
    }

    /// A recovery was a mistake, as D-SACKs show.
    pub(super) fn on_mistake(&mut self) {
        self.persist = (self.persist + 1).min(PERSIST_RECOVERIES);
    }

    /// How much later than others a segment may come (`tcp_rack_reo_wnd`).
    pub(super) fn window(&self, given: Circumstances) -> Duration {
        if !given.reorders && given.is_urgent {
            return Duration::ZERO;
        }
        (given.shortest / 4 * u64::from(self.steps)).min(given.smoothed)
    }

    /// Whether this segment is lost; the longest time to wait for one that may yet come grows in
    /// `wait` (`tcp_rack_detect_loss`).
    pub(super) fn judge(
        &self,
        segment: &Segment,
        window: Duration,
        wait: &mut Duration,
        now: Instant,
    ) -> Verdict {
        let Some(newest) = self.newest else { return Verdict::Stop };
        if !is_later(newest, (segment.sent_at, segment.end)) {
            // What was sent once was sent in order of sequence.
            return if segment.was_resent { Verdict::Waits } else { Verdict::Stop };
        }
        let left = self.time_left(segment, window, now);
        if left.is_zero() {
            return Verdict::Lost;
        }
        *wait = (*wait).max(left);
        Verdict::Waits
    }

    /// How long a segment may yet take (`tcp_rack_skb_timeout`); zero if it is late.
    pub(super) fn time_left(&self, segment: &Segment, window: Duration, now: Instant) -> Duration {
        (self.round_trip + window).saturating_sub(now.since(segment.sent_at))
    }
}

/// Which of two was sent later; at the same time, that with the higher number.
fn is_later(one: (Instant, Seq), other: (Instant, Seq)) -> bool {
    one.0 > other.0 || one.0 == other.0 && one.1.after(other.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn arrived(sent: u64, was_resent: bool) -> Arrived {
        let sent_at = Instant::ZERO + MS(sent);
        Arrived { place: 0, end: Seq(100), sent_at, was_resent, delivered_before: 0 }
    }

    #[test]
    fn rfc_8985_6_2_2_an_arrival_too_early_for_the_repetition_says_nothing() {
        let mut rack = Rack::default();
        rack.advance(&arrived(100, true), MS(40), Instant::ZERO + MS(139));
        assert!(!rack.has_news);
        rack.advance(&arrived(100, true), MS(40), Instant::ZERO + MS(140));
        assert!(rack.has_news && rack.round_trip == MS(40));
    }

    #[test]
    fn rfc_8985_6_2_4_the_window_opens_once_the_network_reorders() {
        let rack = Rack::default();
        let given = |reorders, is_urgent| Circumstances {
            reorders,
            is_urgent,
            shortest: MS(40),
            smoothed: MS(60),
        };
        assert_eq!(rack.window(given(false, true)), Duration::ZERO);
        assert_eq!(rack.window(given(false, false)), MS(10));
        assert_eq!(rack.window(given(true, true)), MS(10));
        let wide = Rack { steps: 7, ..rack };
        assert_eq!(wide.window(given(true, true)), MS(60), "at most the smoothed round trip");
    }

    #[test]
    fn rfc_8985_6_2_4_a_dsack_widens_once_per_round_trip_for_sixteen_recoveries() {
        let mut rack = Rack::default();
        rack.on_dsack();
        rack.update_window(5, 20);
        rack.on_dsack();
        rack.update_window(19, 25);
        assert_eq!(rack.steps, 2, "that was sent before the first");
        (0..PERSIST_RECOVERIES).for_each(|_| rack.on_recovered());
        rack.update_window(30, 40);
        assert_eq!(rack.steps, 1);
    }
}
