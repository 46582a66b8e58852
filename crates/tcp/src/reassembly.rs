//! Bytes that arrived beyond a hole, and the SACK blocks that tell of them (RFC 2018, section 4).
//!
//! What came first stays: a later copy of the same bytes never replaces it. The number of pieces
//! is bounded, so that a peer that sends single bytes cannot take more memory than its window.

use sansio::Payload;
use std::collections::VecDeque;
use wire::tcp::{SackBlock, Seq};

/// Received bytes that wait for earlier ones.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Reassembly {
    /// None has been out of order yet: an allocation apart, since most connections never do that.
    held: Option<Box<Held>>,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Held {
    /// In order of sequence, without overlap.
    pieces: VecDeque<Piece>,
    /// Maximal runs of pieces, in order of sequence.
    ranges: Vec<Range>,
    /// Arrivals so far: the age of ranges.
    arrivals: u64,
}

#[derive(Clone, Debug, PartialEq)]
struct Piece {
    seq: Seq,
    payload: Payload,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Range {
    start: Seq,
    end: Seq,
    /// The last arrival that touched it.
    arrival: u64,
}

/// Most SACK blocks of one ACK without timestamps (RFC 2018, 3).
pub(crate) const SACK_BLOCKS_MAX: usize = 4;

impl Reassembly {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.held.as_ref().is_none_or(|held| held.pieces.is_empty())
    }

    /// How many bytes are kept.
    pub(crate) fn bytes(&self) -> u64 {
        let length = |range: &Range| u64::from(range.end.since(range.start));
        self.ranges().iter().map(length).sum()
    }

    /// How many packets are kept, or parts of such.
    #[inline]
    pub(crate) fn packets(&self) -> u32 {
        self.held.as_ref().map_or(0, |held| held.pieces.len() as u32)
    }

    /// The byte after the last one kept.
    pub(crate) fn end(&self) -> Option<Seq> {
        self.ranges().last().map(|range| range.end)
    }

    /// Keeps what is new of a payload; false if that would be more than `pieces_max` pieces.
    pub(crate) fn insert(&mut self, seq: Seq, payload: &Payload, pieces_max: usize) -> bool {
        self.held.get_or_insert_default().insert(seq, payload, pieces_max)
    }

    /// The next in-order bytes if there are any at `next`.
    pub(crate) fn pop(&mut self, next: Seq) -> Option<Payload> {
        self.held.as_mut()?.pop(next)
    }

    /// Up to `room.len()` blocks into `room`: the one of the latest arrival first, then back in
    /// time; returns how many.
    pub(crate) fn blocks(&self, room: &mut [SackBlock]) -> usize {
        let mut count = 0;
        let mut before = u64::MAX;
        for slot in room {
            let older = self.ranges().iter().filter(|range| range.arrival < before);
            let Some(latest) = older.max_by_key(|range| range.arrival) else { break };
            *slot = SackBlock { start: latest.start, end: latest.end };
            before = latest.arrival;
            count += 1;
        }
        count
    }

    fn ranges(&self) -> &[Range] {
        self.held.as_ref().map_or(&[], |held| &held.ranges)
    }
}

impl Held {
    /// Keeps what is new of a payload; false if that would be more than `pieces_max` pieces.
    fn insert(&mut self, seq: Seq, payload: &Payload, pieces_max: usize) -> bool {
        let end = seq + payload.len();
        let first = self.ranges.partition_point(|range| range.end.before(seq));
        let touched = self.ranges[first..].partition_point(|range| range.start.at_or_before(end));
        if self.pieces.len() + touched + 1 > pieces_max {
            return false;
        }
        let mut merged = Range { start: seq, end, arrival: self.arrivals };
        self.arrivals += 1;
        let mut from = seq;
        for index in first..first + touched {
            let range = self.ranges[index];
            if from.before(range.start) {
                self.keep(seq, payload, from, range.start);
            }
            from = from.max(range.end);
            merged.start = merged.start.min(range.start);
            merged.end = merged.end.max(range.end);
        }
        if from.before(end) {
            self.keep(seq, payload, from, end);
        }
        self.ranges.splice(first..first + touched, [merged]);
        true
    }

    /// The next in-order bytes if there are any at `next`.
    fn pop(&mut self, next: Seq) -> Option<Payload> {
        while let Some(piece) = self.pieces.front() {
            if piece.seq.after(next) {
                return None;
            }
            let end = piece.seq + piece.payload.len();
            let Piece { seq, payload } = self.pieces.pop_front()?;
            let read_to = end.max(next);
            self.forget_before(read_to);
            if end.after(next) {
                return Some(match next.since(seq) {
                    0 => payload,
                    old => payload.slice(old, payload.len()),
                });
            }
        }
        None
    }

    fn keep(&mut self, seq: Seq, payload: &Payload, from: Seq, to: Seq) {
        let part = if from == seq && to == seq + payload.len() {
            payload.clone()
        } else {
            payload.slice(from.since(seq), to.since(seq))
        };
        let at = match self.pieces.back() {
            Some(back) if from.before(back.seq) => {
                self.pieces.partition_point(|piece| piece.seq.before(from))
            }
            _ => self.pieces.len(),
        };
        self.pieces.insert(at, Piece { seq: from, payload: part });
    }

    fn forget_before(&mut self, seq: Seq) {
        let gone = self.ranges.partition_point(|range| range.end.at_or_before(seq));
        self.ranges.drain(..gone);
        if let Some(first) = self.ranges.first_mut() {
            first.start = first.start.max(seq);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use proptest::prelude::*;

    fn bytes(text: &'static str) -> Payload {
        Payload::Bytes(Bytes::from_static(text.as_bytes()))
    }

    fn read(reassembly: &mut Reassembly, mut next: Seq) -> String {
        let mut text = String::new();
        while let Some(payload) = reassembly.pop(next) {
            next += payload.len();
            let bytes = payload.to_bytes().expect("no tunnels here");
            text.push_str(core::str::from_utf8(&bytes).expect("text was inserted"));
        }
        text
    }

    #[test]
    fn what_came_first_stays() {
        let mut reassembly = Reassembly::default();
        assert!(reassembly.insert(Seq(3), &bytes("DEF"), 9));
        assert!(reassembly.insert(Seq(1), &bytes("bcdefgh"), 9));
        assert_eq!(read(&mut reassembly, Seq(1)), "bcDEFgh");
        assert!(reassembly.is_empty());
        assert_eq!(reassembly.end(), None);
    }

    #[test]
    fn rfc_2018_4_the_block_of_the_latest_arrival_comes_first() {
        let mut reassembly = Reassembly::default();
        for seq in [10, 30, 50, 11] {
            assert!(reassembly.insert(Seq(seq), &bytes("x"), 9));
        }
        let mut room = [SackBlock::default(); 2];
        assert_eq!(reassembly.blocks(&mut room), 2);
        assert_eq!(room[0], SackBlock { start: Seq(10), end: Seq(12) });
        assert_eq!(room[1], SackBlock { start: Seq(50), end: Seq(51) });
    }

    #[test]
    fn the_number_of_pieces_is_bounded() {
        let mut reassembly = Reassembly::default();
        let kept = (0..100).filter(|n| reassembly.insert(Seq(2 * n + 1), &bytes("x"), 10)).count();
        assert_eq!(kept, 10);
    }

    proptest! {
        /// Any order, any overlaps, across the wrap: the text comes out, and blocks never overlap.
        #[test]
        fn any_cut_of_a_text_reads_back(
            cuts in prop::collection::vec((0usize..26, 1usize..9), 1..60), start in any::<u32>()
        ) {
            const TEXT: &str = "abcdefghijklmnopqrstuvwxyz";
            let mut reassembly = Reassembly::default();
            let mut known = [false; 26];
            for (from, length) in cuts {
                let to = (from + length).min(26);
                known[from..to].fill(true);
                prop_assert!(
                    reassembly.insert(Seq(start) + from as u32, &bytes(&TEXT[from..to]), 100)
                );
                let runs = known.split(|known| !known).filter(|run| !run.is_empty()).count();
                let mut room = [SackBlock::default(); 26];
                prop_assert_eq!(reassembly.blocks(&mut room), runs);
            }
            for at in 0..26 {
                if known[at] && (at == 0 || !known[at - 1]) {
                    let run = known[at..].iter().take_while(|known| **known).count();
                    let read = read(&mut reassembly, Seq(start) + at as u32);
                    prop_assert_eq!(read, &TEXT[at..at + run]);
                }
            }
            prop_assert!(reassembly.is_empty());
        }
    }
}
