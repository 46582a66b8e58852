//! Delays as a capture shows them: round trips from here to one end and back, and how much longer
//! than ever a packet was under way to here, which the sender's timestamps tell (RFC 7323).

use sansio::{Duration, Instant};

/// Round-trip times of one path, from the place of the capture to the receiver and back.
#[derive(Clone, Debug, Default)]
pub struct RoundTrips {
    /// The shortest since the path is what it is.
    pub floor: Option<Duration>,
    /// The last one.
    pub last: Option<Duration>,
    /// Smoothed as RFC 6298 has it, gain 1/8.
    pub smoothed: Option<Duration>,
    /// The shortest of the last few.
    recent: [Duration; Self::RECENT],
    count: u64,
    histogram: Histogram,
}

impl RoundTrips {
    const RECENT: usize = 16;

    /// Takes a sample. One that a delayed ACK may have made longer (`is_prompt` false) counts for
    /// the floor alone.
    pub fn take(&mut self, sample: Duration, is_prompt: bool) {
        self.floor = Some(self.floor.map_or(sample, |floor| floor.min(sample)));
        if !is_prompt {
            return;
        }
        self.last = Some(sample);
        self.smoothed = Some(match self.smoothed {
            None => sample,
            Some(smoothed) => (smoothed * 7 + sample) / 8,
        });
        self.recent[(self.count % Self::RECENT as u64) as usize] = sample;
        self.count += 1;
        self.histogram.add(sample);
    }

    /// Samples of ACKs that nothing delayed.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The shortest of the last 16 samples.
    pub fn recent_floor(&self) -> Option<Duration> {
        let kept = (self.count as usize).min(Self::RECENT);
        self.recent[..kept].iter().min().copied()
    }

    /// The time below which this share of the samples lies.
    pub fn quantile(&self, share: f64) -> Option<Duration> {
        self.histogram.quantile(share)
    }

    /// The path is another one: what is known of the old one no longer holds.
    pub fn begin_path(&mut self, floor: Duration) {
        *self = RoundTrips { floor: Some(floor), smoothed: Some(floor), ..RoundTrips::default() };
    }
}

/// Times in buckets a sixteenth of an octave wide, from a microsecond to two minutes.
#[derive(Clone, Debug, Default)]
struct Histogram {
    counts: Vec<u32>,
    total: u64,
}

impl Histogram {
    const PER_OCTAVE: u64 = 16;
    const OCTAVES: u64 = 27;

    fn add(&mut self, sample: Duration) {
        let micros = (sample.as_nanos() / 1_000).max(1);
        let octave = u64::from(micros.ilog2());
        let within = ((micros * Self::PER_OCTAVE) >> octave) - Self::PER_OCTAVE;
        let bucket = (octave * Self::PER_OCTAVE + within) as usize;
        let buckets = (Self::OCTAVES * Self::PER_OCTAVE) as usize;
        if self.counts.len() <= bucket {
            self.counts.resize(bucket.min(buckets - 1) + 1, 0);
        }
        let last = self.counts.len() - 1;
        self.counts[bucket.min(last)] += 1;
        self.total += 1;
    }

    /// The lower bound of the bucket.
    fn quantile(&self, share: f64) -> Option<Duration> {
        let wanted = (self.total as f64 * share) as u64;
        let mut seen = 0;
        let bucket = self.counts.iter().position(|count| {
            seen += u64::from(*count);
            seen > wanted.min(self.total.saturating_sub(1))
        })?;
        let (octave, within) = (bucket as u64 / Self::PER_OCTAVE, bucket as u64 % Self::PER_OCTAVE);
        let micros = ((Self::PER_OCTAVE + within) << octave) / Self::PER_OCTAVE;
        Some(Duration::from_micros(micros))
    }
}

/// A sender's timestamp clock against the capture's: the one-way delay beyond the shortest.
#[derive(Clone, Debug, Default)]
pub struct SenderClock {
    first: Option<(u32, Instant)>,
    tick_nanos: Option<u64>,
    /// Time of capture less time of sending, at its least; from the first packet on.
    floor_nanos: i64,
}

impl SenderClock {
    /// Ticks that hosts use: microseconds, 1 ms (Linux), 4 ms, 10 ms, 100 ms, half a second.
    const TICKS_NANOS: [u64; 6] =
        [1_000, 1_000_000, 4_000_000, 10_000_000, 100_000_000, 500_000_000];
    /// No sooner than this can the tick be told.
    const LEAST: Duration = Duration::from_millis(50);

    /// How much longer than the fastest packet so far this one was under way to here; `None` until
    /// the clock's tick is known. True to a tick.
    pub fn excess(&mut self, value: u32, at: Instant) -> Option<Duration> {
        let (first, first_at) = *self.first.get_or_insert((value, at));
        let ticks = u64::from(value.wrapping_sub(first));
        let elapsed = at.since(first_at);
        if ticks > u64::from(u32::MAX / 2) {
            return None;
        }
        if self.tick_nanos.is_none() && elapsed >= Self::LEAST && ticks > 0 {
            self.tick_nanos = Self::nearest(elapsed.as_nanos() / ticks);
        }
        let tick = self.tick_nanos?;
        let relative = elapsed.as_nanos() as i64 - (ticks * tick) as i64;
        self.floor_nanos = self.floor_nanos.min(relative);
        Some(Duration::from_nanos((relative - self.floor_nanos) as u64))
    }

    /// Nanoseconds for each tick, once known.
    pub fn tick_nanos(&self) -> Option<u64> {
        self.tick_nanos
    }

    /// The known tick within a factor of two.
    fn nearest(nanos: u64) -> Option<u64> {
        Self::TICKS_NANOS.into_iter().find(|tick| nanos >= tick / 2 && nanos < tick * 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_is_right_within_a_sixteenth_of_an_octave() {
        let mut trips = RoundTrips::default();
        for millis in 1..=1000 {
            trips.take(Duration::from_millis(millis), true);
        }
        let p98 = trips.quantile(0.98).expect("samples").as_secs_f64();
        assert!((0.93..=0.981).contains(&p98), "{p98}");
        assert_eq!(trips.floor, Some(Duration::from_millis(1)));
        assert_eq!(trips.recent_floor(), Some(Duration::from_millis(985)));
    }

    #[test]
    fn a_packet_held_for_a_second_was_under_way_for_a_second_more() {
        let mut clock = SenderClock::default();
        let at = |millis: u64| Instant::from_nanos(1_000_000 * millis);
        for millis in 0..200 {
            clock.excess(7_000 + millis as u32, at(millis));
        }
        assert_eq!(clock.tick_nanos(), Some(1_000_000));
        let held = clock.excess(7_200, at(1_200)).expect("the tick is known");
        assert_eq!(held, Duration::from_millis(1_000));
    }
}
