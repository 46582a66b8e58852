//! When packets may leave, as recorded: the format and the semantics of Mahimahi's `mm-link`
//! (Netravali et al., USENIX ATC 2015; link_queue.cc).
//!
//! Each line is a millisecond at which 1500 bytes may leave; several lines may name the same one.
//! An opportunity serves whatever waits then, in order: several small packets, or a part of a
//! large one, which leaves with the opportunity that takes its last byte. What is left of it when
//! nothing more waits is lost, as is an opportunity at which nothing waits. At the end the
//! recording repeats, its last millisecond being the next round's zero.
//!
//! Differences: bytes are those of IP packets, where Mahimahi counts its tunnel's 4-byte header
//! and has 1504; instants are whole nanoseconds, so a packet that arrives within a millisecond
//! waits for the next one, and one that arrives at the very instant still goes.

use super::{Recording, whole_number};
use core::fmt;
use sansio::{BitRate, Duration, Instant};
use std::sync::Arc;

/// A recorded capacity.
#[derive(Clone, PartialEq, Eq)]
pub struct Capacity {
    /// In order; the last one is the period, and above zero.
    millis: Vec<u32>,
}

/// Bytes that one opportunity carries.
pub const OPPORTUNITY_BYTES: u32 = 1500;
/// Most opportunities of a recording: 200 MB of memory; 14 hours at 12 Mbit/s.
const OPPORTUNITIES_MAX: usize = 50_000_000;
const NANOS_PER_MILLI: u64 = 1_000_000;
const OPPORTUNITY_BITS: u64 = OPPORTUNITY_BYTES as u64 * 8;

impl fmt::Debug for Capacity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Capacity({} opportunities in {} ms)", self.millis.len(), self.period())
    }
}

impl Recording for Capacity {
    type Lines = Vec<u32>;

    fn line(millis: &mut Vec<u32>, value: &str) -> Result<(), &'static str> {
        let at = whole_number(value).and_then(|at| u32::try_from(at).ok());
        let at = at.ok_or("a millisecond as a whole number, at most 4294967295")?;
        if millis.last().is_some_and(|last| at < *last) {
            return Err("a millisecond no earlier than that of the line before");
        }
        if millis.len() == OPPORTUNITIES_MAX {
            return Err("the end: a recording has at most 50000000 lines");
        }
        millis.push(at);
        Ok(())
    }

    fn finish(mut millis: Vec<u32>) -> Result<Capacity, &'static str> {
        match millis.last() {
            None => Err("at least one line with a millisecond at which a packet may leave"),
            Some(0) => Err("a last millisecond above 0, at which the recording repeats"),
            Some(_) => {
                millis.shrink_to_fit();
                Ok(Capacity { millis })
            }
        }
    }
}

impl Capacity {
    /// Average over a time from the beginning of the recording, repeated as often as needed; over
    /// no time, that of the whole recording.
    pub fn average(&self, over: Duration) -> BitRate {
        let whole = Duration::from_millis(self.period());
        let over = if over.is_zero() { whole } else { over };
        let (rounds, rest) =
            (over.as_millis() / self.period(), (over.as_millis() % self.period()) as u32);
        let in_last_round = match rest {
            // Whole rounds do not have the first instant of the next one.
            0 => 0,
            rest => self.millis.partition_point(|at| *at <= rest),
        };
        let count = u128::from(rounds) * self.millis.len() as u128 + in_last_round as u128;
        let bits_per_second =
            count * u128::from(OPPORTUNITY_BITS) * 1_000_000_000 / u128::from(over.as_nanos());
        BitRate::from_bps(u64::try_from(bits_per_second).unwrap_or(u64::MAX))
    }

    /// The rate of the fullest millisecond.
    pub(crate) fn peak(&self) -> BitRate {
        let fullest = self.millis.chunk_by(|a, b| a == b).map(<[u32]>::len).max().unwrap_or(0);
        let first = self.millis.partition_point(|at| *at == 0);
        let before_last = self.millis.partition_point(|at| u64::from(*at) < self.period());
        let where_rounds_meet = self.millis.len() - before_last + first;
        let count = fullest.max(where_rounds_meet) as u64;
        BitRate::from_bps(count.saturating_mul(OPPORTUNITY_BITS * 1000))
    }

    /// Milliseconds after which it repeats.
    fn period(&self) -> u64 {
        self.millis.last().copied().map_or(1, u64::from)
    }

    fn at(&self, place: Place) -> Instant {
        let millis = place.round * self.period() + u64::from(self.millis[place.index]);
        Instant::from_nanos(millis.saturating_mul(NANOS_PER_MILLI))
    }

    fn after(&self, Place { round, index, .. }: Place) -> Place {
        let (round, index) =
            if index + 1 < self.millis.len() { (round, index + 1) } else { (round + 1, 0) };
        Place { round, index, bytes_left: OPPORTUNITY_BYTES }
    }

    /// The first opportunity at `at` or later.
    fn first_from(&self, at: Instant) -> Place {
        let millis = at.as_nanos().div_ceil(NANOS_PER_MILLI);
        let (mut round, mut rest) = (millis / self.period(), millis % self.period());
        if rest == 0 && round > 0 {
            // The last opportunity of a round is at the instant at which the next one begins.
            (round, rest) = (round - 1, self.period());
        }
        let index = self.millis.partition_point(|at| u64::from(*at) < rest);
        Place { round, index, bytes_left: OPPORTUNITY_BYTES }
    }
}

/// An opportunity, and what is left of it.
#[derive(Clone, Copy, Debug)]
struct Place {
    round: u64,
    index: usize,
    /// At least 1.
    bytes_left: u32,
}

/// The opportunities of a hop that were not used yet.
#[derive(Clone, Debug)]
pub(crate) struct Opportunities {
    capacity: Arc<Capacity>,
    next: Place,
}

impl Opportunities {
    pub(crate) fn new(capacity: &Arc<Capacity>) -> Self {
        let next = Place { round: 0, index: 0, bytes_left: OPPORTUNITY_BYTES };
        Opportunities { capacity: Arc::clone(capacity), next }
    }

    /// When the next byte may leave: now, or later. What is earlier is lost.
    pub(crate) fn next_from(&mut self, now: Instant) -> Instant {
        let next_at = self.capacity.at(self.next);
        if next_at >= now {
            return next_at;
        }
        self.next = self.capacity.first_from(now);
        self.capacity.at(self.next)
    }

    /// When the last of so many bytes would leave.
    pub(crate) fn peek(&self, bytes: u32) -> Instant {
        self.run(bytes).1
    }

    /// Uses so many bytes; returns when the last one leaves.
    pub(crate) fn take(&mut self, bytes: u32) -> Instant {
        let (next, at) = self.run(bytes);
        self.next = next;
        at
    }

    fn run(&self, mut bytes: u32) -> (Place, Instant) {
        let mut place = self.next;
        loop {
            let here = self.capacity.at(place);
            if bytes < place.bytes_left {
                place.bytes_left -= bytes;
                return (place, here);
            }
            bytes -= place.bytes_left;
            place = self.capacity.after(place);
            if bytes == 0 {
                return (place, here);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorded::Reader;

    fn capacity(lines: &[u32]) -> Arc<Capacity> {
        let mut reader = Reader::<Capacity>::default();
        for line in lines {
            reader.line(line.to_string().as_bytes()).expect("a millisecond");
        }
        Arc::new(reader.finish().expect("a recording"))
    }

    fn millis(millis: u64) -> Instant {
        Instant::from_nanos(millis * NANOS_PER_MILLI)
    }

    #[test]
    fn opportunities_come_in_order_and_repeat_after_the_last() {
        let mut all = Opportunities::new(&capacity(&[0, 3, 3, 5]));
        let seen: Vec<Instant> = (0..10).map(|_| all.take(1500)).collect();
        assert_eq!(seen, [0, 3, 3, 5, 5, 8, 8, 10, 10, 13].map(millis));
    }

    /// Against a list of all opportunities.
    #[test]
    fn what_is_skipped_is_what_lies_before() {
        for lines in [&[0, 3, 3, 5][..], &[5], &[1, 2], &[0, 0, 7, 7]] {
            let capacity = capacity(lines);
            let mut listed = Opportunities::new(&capacity);
            let all: Vec<Instant> = (0..200).map(|_| listed.take(1500)).collect();
            for nanos in (0..40_000_000).step_by(250_000) {
                let now = Instant::from_nanos(nanos);
                let mut cursor = Opportunities::new(&capacity);
                let later = all.iter().filter(|at| **at >= now).take(20);
                assert_eq!(Some(cursor.next_from(now)).as_ref(), later.clone().next());
                for at in later {
                    assert_eq!(cursor.take(1500), *at, "{lines:?} from {now}");
                }
            }
        }
    }

    #[test]
    fn averages_count_what_lies_in_the_time() {
        let capacity = capacity(&[1, 2, 10]);
        let mbps = |millis| capacity.average(Duration::from_millis(millis)).as_bps() as f64 / 1e6;
        assert_eq!(mbps(0), 3.6);
        assert_eq!(mbps(10), 3.6);
        assert_eq!(mbps(1), 12.0);
        assert_eq!(mbps(5), 2.0 * 12.0 / 5.0);
        assert_eq!(mbps(12), 5.0);
        assert_eq!(capacity.peak(), BitRate::from_mbps(12));
    }
}
