//! What SACK blocks say of the bytes in flight (RFC 6675).
//!
//! The RFC speaks of octets; here they are ranges. `IsLost` is monotone (if a byte is lost, so is
//! every byte below it that is not SACKed), so it is one edge, found from the three highest ranges.

use crate::congestion::DUPACK_THRESHOLD;
use wire::tcp::{SackBlock, Seq};

/// The SACKed ranges above the cumulative ACK.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Scoreboard {
    /// In order of sequence, neither overlapping nor touching.
    ranges: Vec<(Seq, Seq)>,
}

/// Most ranges kept; a peer that reports more has its lowest ones kept.
const RANGES_MAX: usize = 4096;

impl Scoreboard {
    /// Forgets all (RFC 2018, section 8: after a timeout the receiver may have let go of it).
    pub(crate) fn clear(&mut self) {
        self.ranges.clear();
    }

    /// Takes the blocks of an ACK; blocks outside `una..max` are ignored, those that begin below
    /// are D-SACKs or stale. Returns the bytes newly SACKed.
    pub(crate) fn add(
        &mut self,
        blocks: impl Iterator<Item = SackBlock>,
        una: Seq,
        max: Seq,
    ) -> u32 {
        let mut news = 0;
        for SackBlock { start, end } in blocks {
            let sane = start.before(end) && start.at_or_after(una) && end.at_or_before(max);
            if sane {
                news += self.add_range(start, end);
            }
        }
        news
    }

    /// The cumulative ACK went on to `una`.
    #[inline]
    pub(crate) fn advance(&mut self, una: Seq) {
        if self.ranges.is_empty() {
            return;
        }
        let gone = self.ranges.partition_point(|range| range.1.at_or_before(una));
        self.ranges.drain(..gone);
        if let Some(first) = self.ranges.first_mut() {
            first.0 = first.0.max(una);
        }
    }

    /// SACKed bytes below `seq`.
    pub(crate) fn sacked_before(&self, seq: Seq) -> u32 {
        let below = self.ranges.iter().take_while(|range| range.0.before(seq));
        below.map(|range| range.1.min(seq).since(range.0)).sum()
    }

    /// The end of the highest range.
    pub(crate) fn highest(&self) -> Option<Seq> {
        self.ranges.last().map(|range| range.1)
    }

    /// `IsLost`: every byte below this that is not SACKed is lost.
    pub(crate) fn lost_edge(&self, una: Seq, mss: u32) -> Seq {
        let mut above = 0;
        for (count, range) in self.ranges.iter().rev().enumerate() {
            above += range.1.since(range.0);
            if count as u32 + 1 >= DUPACK_THRESHOLD || above > (DUPACK_THRESHOLD - 1) * mss {
                return range.0;
            }
        }
        una
    }

    /// `SetPipe`: bytes thought to be in the network, of those from `una` to `max`, if those below
    /// `retransmitted` were sent again in this recovery.
    pub(crate) fn pipe(&self, una: Seq, max: Seq, retransmitted: Seq, mss: u32) -> u32 {
        let lost_edge = self.lost_edge(una, mss);
        let sacked = self.ranges.iter().rev().take_while(|range| range.0.at_or_after(lost_edge));
        let sacked: u32 = sacked.map(|range| range.1.since(range.0)).sum();
        let not_lost = max.since(lost_edge) - sacked;
        let again = match retransmitted.after(una) {
            true => retransmitted.since(una) - self.sacked_before(retransmitted),
            false => 0,
        };
        not_lost + again
    }

    /// The first hole at or after `from`, up to the next range; `None` above the highest.
    pub(crate) fn next_hole(&self, from: Seq) -> Option<(Seq, Seq)> {
        let index = self.ranges.partition_point(|range| range.1.at_or_before(from));
        let range = self.ranges.get(index)?;
        if from.before(range.0) {
            return Some((from, range.0));
        }
        self.ranges.get(index + 1).map(|next| (range.1, next.0))
    }

    fn add_range(&mut self, start: Seq, end: Seq) -> u32 {
        let first = self.ranges.partition_point(|range| range.1.before(start));
        let touched = self.ranges[first..].partition_point(|range| range.0.at_or_before(end));
        let old = &self.ranges[first..first + touched];
        let known: u32 = old.iter().map(|range| range.1.since(range.0)).sum();
        let merged = match (old.first(), old.last()) {
            (Some(low), Some(high)) => (low.0.min(start), high.1.max(end)),
            _ if self.ranges.len() >= RANGES_MAX => return 0,
            _ => (start, end),
        };
        self.ranges.splice(first..first + touched, [merged]);
        merged.1.since(merged.0) - known
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MSS: u32 = 10;

    fn with(ranges: &[(u32, u32)], base: u32) -> Scoreboard {
        let mut board = Scoreboard::default();
        for &(start, end) in ranges {
            board.add_range(Seq(base) + start, Seq(base) + end);
        }
        board
    }

    #[test]
    fn rfc_6675_4_is_lost_by_three_ranges_or_more_than_two_segments() {
        let edge = |ranges: &[(u32, u32)]| with(ranges, 0).lost_edge(Seq(0), MSS).0;
        assert_eq!(edge(&[(10, 20), (30, 40)]), 0, "two ranges, two segments: not lost");
        assert_eq!(edge(&[(10, 20), (30, 40), (50, 55)]), 10, "three ranges");
        assert_eq!(edge(&[(10, 31)]), 10, "more than two segments");
        assert_eq!(edge(&[(10, 20), (30, 40), (50, 71)]), 50, "the highest that suffices");
    }

    #[test]
    fn a_hole_ends_where_sacked_bytes_begin() {
        let board = with(&[(10, 20), (30, 40)], u32::MAX - 15);
        let base = Seq(u32::MAX - 15);
        assert_eq!(board.next_hole(base), Some((base, base + 10)));
        assert_eq!(board.next_hole(base + 12), Some((base + 20, base + 30)));
        assert_eq!(board.next_hole(base + 30), None);
    }

    #[test]
    fn blocks_outside_the_flight_are_ignored() {
        let mut board = Scoreboard::default();
        let blocks = [(5, 15), (15, 25), (20, 10), (95, 105)];
        let blocks = blocks.map(|(start, end)| SackBlock { start: Seq(start), end: Seq(end) });
        assert_eq!(board.add(blocks.into_iter(), Seq(10), Seq(100)), 10);
        assert_eq!(board, with(&[(15, 25)], 0));
    }

    proptest! {
        /// Differential: against the RFC's definitions, octet by octet.
        #[test]
        fn the_pipe_agrees_with_the_rfc_octet_by_octet(
            blocks in prop::collection::vec((0u32..100, 1u32..25), 0..12),
            una in 0u32..50, high in 0u32..100, base in any::<u32>()
        ) {
            let (una, max) = (una, 100);
            let mut board = Scoreboard::default();
            let mut sacked = [false; 100];
            for (start, length) in blocks {
                let end = (start + length).min(100);
                let block = SackBlock { start: Seq(base) + start, end: Seq(base) + end };
                let before = sacked;
                sacked[start as usize..end as usize].fill(true);
                let news = board.add(core::iter::once(block), Seq(base), Seq(base) + max);
                let changed = (0..100).filter(|&at| sacked[at] != before[at]).count();
                prop_assert_eq!(news as usize, changed);
            }
            board.advance(Seq(base) + una);
            sacked[..una as usize].fill(false);
            let is_lost = |at: usize| {
                let above = &sacked[at..];
                let bytes = above.iter().filter(|sacked| **sacked).count();
                let runs = above.split(|sacked| !sacked).filter(|run| !run.is_empty()).count();
                runs >= 3 || bytes > 20
            };
            let high = high.max(una);
            let flight = (una..max).filter(|at| !sacked[*at as usize]);
            let pipe: u32 = flight
                .map(|at| u32::from(!is_lost(at as usize)) + u32::from(at < high))
                .sum();
            let retransmitted = Seq(base) + high;
            prop_assert_eq!(
                board.pipe(Seq(base) + una, Seq(base) + max, retransmitted, MSS), pipe
            );
        }
    }
}
