//! The segments sent and not acknowledged, with the marks that Linux gives them (`tcp_sock`'s
//! `packets_out`, `lost_out`, `retrans_out`).
//!
//! Without SACK every mark is set from the front on, so a mark is a count: the first `lost`
//! segments are taken for lost, the first `resent` of them have been sent again since.

use sansio::Instant;
use std::collections::VecDeque;
use wire::tcp::Seq;

/// Sent segments, the oldest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Queue {
    segments: VecDeque<Sent>,
    lost: u32,
    resent: u32,
    /// Sent again at least once, whatever has become of the mark since.
    ever_resent: u32,
}

/// A segment on its way.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Sent {
    end: Seq,
    /// For the first time.
    at: Instant,
}

/// What an ACK took from the queue.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Acked {
    /// Whole segments.
    pub(super) segments: u32,
    /// One of them was sent more than once, so nobody knows which sending was acknowledged.
    pub(super) ambiguous: bool,
    /// When the oldest of them was sent, if that is not ambiguous.
    pub(super) first_sent_at: Option<Instant>,
    /// Where the oldest of them ended.
    pub(super) first_end: Option<Seq>,
}

impl Queue {
    /// A new segment was sent, up to `end`.
    pub(super) fn push(&mut self, end: Seq, at: Instant) {
        self.segments.push_back(Sent { end, at });
    }

    /// Everything before `una` arrived.
    pub(super) fn acknowledge(&mut self, una: Seq) -> Acked {
        let ambiguous = self.ever_resent > 0;
        let mut acked = Acked::default();
        while let Some(sent) = self.segments.front().filter(|sent| sent.end.at_or_before(una)) {
            if acked.segments == 0 {
                acked.first_end = Some(sent.end);
                acked.first_sent_at = (!ambiguous).then_some(sent.at);
            }
            acked.segments += 1;
            self.segments.pop_front();
        }
        acked.ambiguous = ambiguous && acked.segments > 0;
        for mark in [&mut self.lost, &mut self.resent, &mut self.ever_resent] {
            *mark = mark.saturating_sub(acked.segments);
        }
        acked
    }

    /// The oldest segment is taken for lost; false if it already was, or if there is none.
    pub(super) fn mark_first_lost(&mut self) -> bool {
        let fresh = self.lost == 0 && !self.segments.is_empty();
        self.lost += u32::from(fresh);
        fresh
    }

    /// All segments are taken for lost, also those sent again.
    pub(super) fn mark_all_lost(&mut self) {
        self.lost = self.len();
        self.resent = 0;
    }

    /// None is taken for lost after all.
    pub(super) fn unmark_lost(&mut self) {
        self.lost = 0;
    }

    /// Where the segment that is to be sent again next ends; `None` if there is none.
    pub(super) fn next_to_resend(&self) -> Option<(Option<Seq>, Seq)> {
        if self.resent >= self.lost {
            return None;
        }
        let at = self.resent as usize;
        let start = at.checked_sub(1).and_then(|before| self.segments.get(before));
        self.segments.get(at).map(|sent| (start.map(|sent| sent.end), sent.end))
    }

    /// The segment that was next to be sent again has been.
    pub(super) fn on_resent(&mut self) {
        self.resent += 1;
        self.ever_resent = self.ever_resent.max(self.resent);
    }

    /// True if a segment still here was ever sent again (`tcp_any_retrans_done`).
    pub(super) fn has_resent(&self) -> bool {
        self.ever_resent > 0
    }

    /// When the oldest segment was first sent.
    pub(super) fn first_sent_at(&self) -> Option<Instant> {
        self.segments.front().map(|sent| sent.at)
    }

    /// Segments sent and not acknowledged.
    pub(super) fn len(&self) -> u32 {
        self.segments.len() as u32
    }

    /// Segments taken for lost.
    pub(super) fn lost(&self) -> u32 {
        self.lost
    }

    /// Segments sent again and under way.
    pub(super) fn resent(&self) -> u32 {
        self.resent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(segments: u32) -> Queue {
        let mut queue = Queue::default();
        (1..=segments).for_each(|end| queue.push(Seq(end * 10), Instant::from_nanos(end.into())));
        queue
    }

    #[test]
    fn an_ack_takes_whole_segments_and_their_marks() {
        let mut queue = queue(5);
        assert!(queue.mark_first_lost() && !queue.mark_first_lost());
        assert_eq!(queue.next_to_resend(), Some((None, Seq(10))));
        queue.on_resent();
        assert_eq!((queue.next_to_resend(), queue.has_resent()), (None, true));
        let acked = queue.acknowledge(Seq(25));
        assert_eq!((acked.segments, acked.ambiguous, acked.first_sent_at), (2, true, None));
        assert_eq!((queue.len(), queue.lost(), queue.resent()), (3, 0, 0));
        let acked = queue.acknowledge(Seq(30));
        assert_eq!(acked.first_sent_at, Some(Instant::from_nanos(3)));
        assert!(!queue.has_resent());
    }

    #[test]
    fn all_lost_is_sent_again_from_the_front() {
        let mut queue = queue(3);
        queue.mark_first_lost();
        queue.on_resent();
        queue.mark_all_lost();
        assert_eq!((queue.lost(), queue.resent()), (3, 0));
        queue.on_resent();
        assert_eq!(queue.next_to_resend(), Some((Some(Seq(10)), Seq(20))));
        queue.unmark_lost();
        assert_eq!((queue.next_to_resend(), queue.resent()), (None, 1), "it is still under way");
    }
}
