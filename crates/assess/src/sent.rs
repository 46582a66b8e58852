//! What a sender has under way, as the place of the capture sees it: segments that passed and are
//! not acknowledged, and the holes between them.

use sansio::Instant;
use std::collections::VecDeque;
use wire::tcp::Seq;

/// Schemes whose agents are replayed.
pub const SCHEMES: usize = 2;

/// A run of sequence numbers that passed here in one packet.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// The first.
    pub start: Seq,
    /// After the last.
    pub end: Seq,
    /// When it passed first.
    pub first_at: Instant,
    /// When it passed last.
    pub last_at: Instant,
    /// How often.
    pub times: u16,
    /// The sender's timestamp on the first, if it has any.
    pub first_value: Option<u32>,
    /// The sender's timestamp on the second.
    pub again_value: Option<u32>,
    /// A SACK block says that it arrived.
    pub sacked: bool,
    /// When each replayed agent sent it again, for the first and the second time.
    pub copies: [[Option<Instant>; 2]; SCHEMES],
}

/// Everything between the ACK and the highest sequence number seen.
#[derive(Clone, Debug, Default)]
pub struct UnderWay {
    /// In order of sequence numbers, without overlap.
    sent: VecDeque<Sent>,
}

/// No more segments of one direction are kept; a window of 64 MiB of full segments is 46 000.
pub const SEGMENTS_MAX: usize = 1 << 16;

impl UnderWay {
    /// True if nothing is under way.
    pub fn is_empty(&self) -> bool {
        self.sent.is_empty()
    }

    /// The lowest.
    pub fn lowest(&self) -> Option<&Sent> {
        self.sent.front()
    }

    /// All, from the lowest.
    pub fn iter(&self) -> impl Iterator<Item = &Sent> {
        self.sent.iter()
    }

    /// Keeps a segment whose sequence numbers no kept one has; false if there is no room.
    pub fn insert(&mut self, sent: Sent) -> bool {
        if self.sent.len() >= SEGMENTS_MAX {
            return false;
        }
        let at = self.first_from(sent.start);
        if at == self.sent.len() {
            self.sent.push_back(sent);
        } else {
            self.sent.insert(at, sent);
        }
        true
    }

    /// The segments that lie in `start..end`; those that reach beyond are split at its ends.
    pub fn within(&mut self, start: Seq, end: Seq) -> impl Iterator<Item = &mut Sent> {
        self.split(start);
        self.split(end);
        let (from, to) = (self.first_from(start), self.first_from(end));
        self.sent.range_mut(from..to.max(from))
    }

    /// Takes out, from the lowest, what lies before `ack`.
    pub fn acknowledge(&mut self, ack: Seq, mut gone: impl FnMut(&Sent)) {
        self.split(ack);
        while let Some(lowest) = self.sent.front().filter(|sent| sent.end.at_or_before(ack)) {
            gone(lowest);
            self.sent.pop_front();
        }
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.sent.clear();
    }

    /// The index of the first segment that begins at or after `seq`.
    fn first_from(&self, seq: Seq) -> usize {
        match self.sent.back() {
            Some(last) if last.start.before(seq) => self.sent.len(),
            _ => self.sent.partition_point(|sent| sent.start.before(seq)),
        }
    }

    /// Makes two segments of the one that has `at` in its middle: a host sends a super-packet and
    /// repeats parts of it.
    fn split(&mut self, at: Seq) {
        let index = self.first_from(at);
        let Some(before) = index.checked_sub(1).and_then(|before| self.sent.get_mut(before)) else {
            return;
        };
        if before.end.after(at) {
            let rest = Sent { start: at, ..*before };
            before.end = at;
            self.sent.insert(index, rest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(start: u32, end: u32) -> Sent {
        Sent {
            start: Seq(start),
            end: Seq(end),
            first_at: Instant::ZERO,
            last_at: Instant::ZERO,
            times: 1,
            first_value: None,
            again_value: None,
            sacked: false,
            copies: [[None; 2]; SCHEMES],
        }
    }

    #[test]
    fn a_repeated_part_splits_a_super_packet_and_an_ack_its_rest() {
        let mut way = UnderWay::default();
        way.insert(sent(u32::MAX - 999, 4_000));
        let again: Vec<u32> =
            way.within(Seq(0), Seq(1_000)).map(|it| it.end.since(it.start)).collect();
        assert_eq!(again, [1_000]);
        assert_eq!(way.iter().count(), 3);
        let mut gone = 0;
        way.acknowledge(Seq(2_000), |it| gone += it.end.since(it.start));
        assert_eq!(gone, 3_000);
        assert_eq!(way.lowest().map(|it| (it.start, it.end)), Some((Seq(2_000), Seq(4_000))));
    }

    #[test]
    fn what_fills_a_hole_stands_in_its_place() {
        let mut way = UnderWay::default();
        way.insert(sent(0, 100));
        way.insert(sent(200, 300));
        way.insert(sent(100, 200));
        let starts: Vec<u32> = way.iter().map(|it| it.start.0).collect();
        assert_eq!(starts, [0, 100, 200]);
    }
}
