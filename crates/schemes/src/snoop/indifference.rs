//! Senders that losses do not slow (*modern*; ours, not the paper's).
//!
//! BBR sends at the rate at which it was answered last, whatever is lost. To hide losses gains it
//! nothing where it repairs them itself in a round trip, and costs something: each repair ends in
//! an ACK for all that arrived behind the hole, which looks like a faster link. It then sends more
//! than the link carries, and the queue overflows.
//!
//! Such a sender betrays itself. Where a queue is long, it learns of losses, one episode after the
//! other, and has as much in flight as before:
//!
//! ```text
//!   in flight   Reno, CUBIC: ╲╱╱╱╱╲╱╱╱╱     indifferent: ─╲╱─╲╱─╲╱─╲╱─
//!   it learns                ↑    ↑                       ↑  ↑  ↑  ↑
//! ```
//!
//! From half or 0.7 of its window, a sender that reduces it comes back to 0.95 in no less than 0.4
//! round trips for each segment (RFC 5681; RFC 9438, section 4.3), and CUBIC, on longer paths, in
//! no less than 0.41 times the cube root of the window, in seconds (section 4.2): a second from 16.
//! So nobody does it four times within a round trip for each segment, and two seconds.

use sansio::{Duration, Instant};

/// One flow's sender.
#[derive(Clone, Copy, Debug)]
pub(super) struct Indifference {
    /// The first of a row of episodes of which it learned, in milliseconds of the agent's clock,
    /// modulo 2^32.
    first_at_ms: u32,
    /// What was in flight then, in segments,
    first_flight: u16,
    /// and how many there were since, with no less in flight.
    again: u8,
    /// It is indifferent, as far as is known.
    is_certain: bool,
}

/// So many times the sender was as fast as before.
const AGAIN: u8 = 4;
/// Within so long.
const WITHIN: Duration = Duration::from_secs(2);
/// A smaller window tells nothing.
const SEGMENTS_MIN: usize = 16;

impl Indifference {
    pub(super) const UNKNOWN: Indifference =
        Indifference { first_at_ms: 0, first_flight: 0, again: 0, is_certain: false };

    /// True if it is to repair its losses itself.
    #[inline]
    pub(super) fn is_certain(&self) -> bool {
        self.is_certain
    }

    /// The sender learns of losses, with so many segments in flight; a round trip takes so long.
    /// True if that shows that it is indifferent.
    pub(super) fn on_shown(&mut self, flight: usize, round_trip: Duration, now: Instant) -> bool {
        let now_ms = (now.as_nanos() / 1_000_000) as u32;
        let since_first = Duration::from_millis(now_ms.wrapping_sub(self.first_at_ms).into());
        let first = usize::from(self.first_flight);
        let within = WITHIN.min(round_trip * first as u64);
        let is_again = flight >= SEGMENTS_MIN
            && first >= SEGMENTS_MIN
            && flight * 5 >= first * 4
            && since_first < within;
        if !is_again {
            let first_flight = u16::try_from(flight).unwrap_or(u16::MAX);
            (self.first_at_ms, self.first_flight, self.again) = (now_ms, first_flight, 0);
            return false;
        }
        self.again += 1;
        if self.again < AGAIN {
            return false;
        }
        (self.is_certain, self.again) = (true, 0);
        true
    }

    /// It has to show itself again.
    pub(super) fn forget(&mut self) {
        (self.is_certain, self.first_flight) = (false, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUND_TRIP: Duration = Duration::from_millis(20);

    /// What a row of episodes shows, each with its time in ms and what was in flight.
    fn shown(row: impl IntoIterator<Item = (u64, usize)>) -> bool {
        let mut sender = Indifference::UNKNOWN;
        for (at_ms, flight) in row {
            let now = Instant::ZERO + Duration::from_millis(at_ms);
            sender.on_shown(flight, ROUND_TRIP, now);
        }
        sender.is_certain()
    }

    /// As fast as CUBIC may be (RFC 9438): between two losses from 0.7 to all of its window.
    fn cubic(window: u64) -> impl Iterator<Item = (u64, usize)> {
        // The cube root of 0.3 / 0.4 of the window, in seconds.
        let cubic_ms = (1..).find(|ms| ms * ms * ms >= window * 750_000_000).unwrap();
        let friendly_ms = window * 30 / 53 * ROUND_TRIP.as_millis();
        (1..20).map(move |n| (n * friendly_ms.min(cubic_ms), window as usize))
    }

    #[test]
    fn congestion_a_sender_that_is_as_fast_as_before_four_times_is_indifferent() {
        assert!(shown([(500, 160), (600, 150), (700, 170), (800, 140), (900, 150)]));
        assert!(!shown([(500, 160), (600, 150), (700, 170), (800, 140)]), "three times only");
        let slowed_once = [(500, 160), (600, 150), (700, 90), (800, 140), (900, 150)];
        assert!(!shown(slowed_once));
    }

    #[test]
    fn congestion_a_sender_that_reduces_its_window_is_not_indifferent_however_fast_it_grows() {
        for window in [16, 20, 40, 80, 160, 1_000, 10_000] {
            assert!(!shown(cubic(window)), "{window}");
        }
        let reno = (1..20).map(|n| (n * 20 * ROUND_TRIP.as_millis(), 40));
        assert!(!shown(reno));
        // One loss in each round trip, and smaller each time.
        assert!(!shown([(20, 400), (40, 280), (60, 196), (80, 137), (100, 96), (120, 67)]));
        // Too small to tell.
        assert!(!shown((1..20).map(|n| (n * 20, 8))));
    }
}
