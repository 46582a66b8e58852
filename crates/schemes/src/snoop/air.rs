//! What all flows share of the air: the link's rate as departures show it, and the bound on probes.

use super::config::Probe;
use sansio::{BitRate, Duration, Instant};

/// Rate estimate and probe budget of one radio link.
#[derive(Clone, Debug)]
pub(super) struct Air {
    /// The last departure: when, how many bytes. The end of time before the first one, so that no
    /// time has passed since.
    last_at: Instant,
    last_bytes: u32,
    /// The fastest departure of the current and of the previous span.
    fastest: [Pace; 2],
    span_ends_at: Instant,
    span_departures: u64,
    /// When the probes sent so far will have used up no more than their share.
    balanced_at: Instant,
}

/// So many bytes took so long.
#[derive(Clone, Copy, Debug)]
struct Pace {
    bytes: u32,
    nanos: u64,
}

impl Pace {
    /// Slower than any other: none is known.
    const NONE: Pace = Pace { bytes: 0, nanos: 1 };

    #[inline]
    fn is_faster_than(self, other: Pace) -> bool {
        u128::from(self.bytes) * u128::from(other.nanos)
            > u128::from(other.bytes) * u128::from(self.nanos)
    }
}

/// After this long the fastest departure is replaced, so that a slower link is noticed,
const SPAN: Duration = Duration::from_secs(10);
/// and after so many departures: the few packets of an outage say nothing about the rate.
const SPAN_DEPARTURES: u64 = 1_000;

impl Air {
    /// Nothing has departed.
    pub(super) fn new() -> Self {
        Air {
            last_at: Instant::from_nanos(u64::MAX),
            last_bytes: 0,
            fastest: [Pace::NONE; 2],
            span_ends_at: Instant::ZERO + SPAN,
            span_departures: 0,
            balanced_at: Instant::ZERO,
        }
    }

    /// A packet of `bytes` bytes begins to go onto the air. Two departures are never closer than
    /// the first takes; so the fastest pair shows the link's rate, and no pair overstates it.
    #[inline]
    pub(super) fn on_departure(&mut self, bytes: u32, now: Instant) {
        let nanos = now.since(self.last_at).as_nanos();
        let pace = Pace { bytes: self.last_bytes, nanos };
        (self.last_at, self.last_bytes) = (now, bytes);
        if nanos == 0 {
            return;
        }
        self.span_departures += 1;
        if now > self.span_ends_at && self.span_departures > SPAN_DEPARTURES {
            self.fastest = [pace, self.fastest[0]];
            (self.span_ends_at, self.span_departures) = (now + SPAN, 0);
        } else if pace.is_faster_than(self.fastest[0]) {
            self.fastest[0] = pace;
        }
    }

    /// The link's rate.
    pub(super) fn rate(&self, probe: &Probe) -> BitRate {
        let [a, b] = self.fastest;
        let seen = Some(if b.is_faster_than(a) { b } else { a }).filter(|pace| pace.bytes > 0);
        let seen = seen.map(|pace| {
            let bps = u128::from(pace.bytes) * 8_000_000_000 / u128::from(pace.nanos);
            BitRate::from_bps(u64::try_from(bps).unwrap_or(u64::MAX))
        });
        probe.link_rate.or(seen).unwrap_or(probe.link_rate_assumed)
    }

    /// True if a probe of `bytes` bytes may be sent now on a link of this rate; it is then booked.
    /// Over any time the probes take their share of the air at most, plus one probe.
    pub(super) fn admit(&mut self, bytes: u32, rate: BitRate, probe: &Probe, now: Instant) -> bool {
        if self.balanced_at > now {
            return false;
        }
        let air_time = rate.time_for(bytes);
        self.balanced_at = now + air_time * 1_000_000 / u64::from(probe.air_share_ppm.max(1));
        true
    }

    /// When the next probe may be sent.
    pub(super) fn admits_at(&self) -> Instant {
        self.balanced_at
    }
}

#[cfg(test)]
mod tests {
    use super::super::config::{Config, Restart};
    use super::*;

    fn probe() -> Probe {
        match Config::modern().restart {
            Restart::Probe(probe) => probe,
            Restart::Persist => unreachable!("the modern preset probes"),
        }
    }

    #[test]
    fn the_rate_is_that_of_the_fastest_pair_of_departures() {
        let mut air = Air::new();
        assert_eq!(air.rate(&probe()), BitRate::from_mbps(2));
        // 1500 bytes at 20 Mbit/s take 600 us; the second gap is idle time.
        for (micros, bytes) in [(0, 1500), (600, 1500), (9_600, 40)] {
            air.on_departure(bytes, Instant::ZERO + Duration::from_micros(micros));
        }
        assert_eq!(air.rate(&probe()), BitRate::from_mbps(20));
    }

    #[test]
    fn probes_take_their_share_of_the_air_and_no_more() {
        let mut air = Air::new();
        let (rate, config) = (BitRate::from_mbps(20), probe());
        let sent = (0..1_000_000)
            .map(|micro| Instant::ZERO + Duration::from_micros(micro))
            .filter(|at| air.admit(53, rate, &config, *at))
            .count();
        // 0.2 % of 20 Mbit/s for one second are 5000 bytes: 94 probes of 53 bytes, and one.
        assert!((94..=95).contains(&sent), "{sent}");
    }
}
