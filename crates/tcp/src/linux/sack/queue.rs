//! The segments sent and not acknowledged, each with its marks (`tcp_skb_cb`'s `sacked`), and how
//! many there are of each mark (`sacked_out`, `lost_out`, `retrans_out`).

use sansio::Instant;
use std::collections::VecDeque;
use wire::tcp::{SackBlock, Seq};

/// Sent segments, in order of sequence.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Queue {
    segments: VecDeque<Segment>,
    sacked: u32,
    lost: u32,
    resent: u32,
    /// Segments delivered since the connection began (`delivered`).
    delivered: u32,
    /// The end of the highest SACKed segment, while one is (`tcp_highest_sack_seq`).
    highest_sacked: Option<Seq>,
}

/// A segment on its way.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Segment {
    pub(super) start: Seq,
    pub(super) end: Seq,
    /// Where its bytes end: one before `end` if there is a FIN.
    data_end: Seq,
    /// The last time.
    pub(super) sent_at: Instant,
    /// What was delivered by then.
    delivered: u32,
    is_sacked: bool,
    is_lost: bool,
    /// It is under way again.
    is_resent: bool,
    /// It was sent more than once, whatever has become of that.
    pub(super) was_resent: bool,
    /// RACK watches it (`tsorted_sent_queue`): not from when RACK took it for lost until it is sent
    /// again. So a mistake that is taken back in between leaves it to the timeout.
    pub(super) is_watched: bool,
}

/// A segment that arrived, as an ACK tells.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::linux) struct Arrived {
    /// Its place in the queue when the ACK came.
    pub(in crate::linux) place: usize,
    pub(in crate::linux) end: Seq,
    pub(in crate::linux) sent_at: Instant,
    pub(in crate::linux) was_resent: bool,
    /// What was delivered when it was sent.
    pub(in crate::linux) delivered_before: u32,
}

impl Arrived {
    /// It was sent later than another; at the same time, it has the higher number.
    pub(in crate::linux) fn is_sent_after(&self, sent_at: Instant, end: Seq) -> bool {
        self.sent_at > sent_at || self.sent_at == sent_at && self.end.after(end)
    }
}

/// What an ACK tells of the queue.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct News {
    /// Segments acknowledged.
    pub(super) acked: u32,
    /// Segments SACKed for the first time.
    pub(super) sacked: u32,
    /// Of the acknowledged ones, one was sent more than once.
    pub(super) is_ambiguous: bool,
    /// First and last sending of those acknowledged that were sent once and not SACKed before.
    pub(super) acked_sent_at: Option<(Instant, Instant)>,
    /// The same of those newly SACKed.
    pub(super) sacked_sent_at: Option<(Instant, Instant)>,
    /// One sent once, from before the state was entered, arrived (`FLAG_ORIG_SACK_ACKED`).
    pub(super) has_original: bool,
    /// The lowest that was sent once and arrived after a higher one.
    pub(super) overtaken: Option<Seq>,
    /// Everything that arrived, in the order in which RACK hears of it.
    pub(super) arrived: Vec<Arrived>,
}

impl Queue {
    /// A new segment was sent, of which the last `fin` units are the FIN.
    pub(super) fn push(&mut self, (start, end): (Seq, Seq), fin: u32, at: Instant) {
        self.segments.push_back(Segment {
            start,
            end,
            data_end: start + (end.since(start) - fin),
            sent_at: at,
            delivered: self.delivered,
            is_sacked: false,
            is_lost: false,
            is_resent: false,
            was_resent: false,
            is_watched: true,
        });
    }

    /// Takes the blocks of an ACK, ascending (`tcp_sacktag_write_queue`): they overtook only what
    /// earlier ACKs told of. `high`: where the state was entered.
    pub(super) fn sack(&mut self, blocks: &[SackBlock], high: Seq, news: &mut News) {
        for block in blocks {
            let first = self.segments.partition_point(|one| one.start.before(block.start));
            for at in first..self.segments.len() {
                if !self.segments[at].is_within(block) {
                    break;
                }
                self.mark_sacked(at, high, news);
            }
        }
    }

    fn mark_sacked(&mut self, at: usize, high: Seq, news: &mut News) {
        let segment = &mut self.segments[at];
        if segment.is_sacked {
            return;
        }
        news.arrived.push(segment.arrived(at));
        let was_lost = core::mem::take(&mut segment.is_lost);
        if segment.is_resent && was_lost {
            segment.is_resent = false;
            self.resent -= 1;
        } else if !segment.was_resent {
            news.note_original(segment, self.highest_sacked, high);
            let sent_at = segment.sent_at;
            news.sacked_sent_at.get_or_insert((sent_at, sent_at)).1 = sent_at;
        }
        self.lost -= u32::from(was_lost);
        segment.is_sacked = true;
        self.sacked += 1;
        self.delivered = self.delivered.wrapping_add(1);
        news.sacked += 1;
        self.highest_sacked =
            Some(self.highest_sacked.map_or(segment.end, |highest| highest.max(segment.end)));
    }

    /// Everything before `una` arrived (`tcp_clean_rtx_queue`). `sacked_before`: the highest SACKed
    /// before this ACK; its own blocks have overtaken nothing that it acknowledges.
    pub(super) fn acknowledge(
        &mut self,
        una: Seq,
        (high, sacked_before): (Seq, Option<Seq>),
        news: &mut News,
    ) {
        while let Some(segment) = self.segments.front().filter(|one| one.end.at_or_before(una)) {
            let place = news.acked as usize;
            news.acked += 1;
            self.resent -= u32::from(segment.is_resent);
            self.lost -= u32::from(segment.is_lost);
            self.sacked -= u32::from(segment.is_sacked);
            news.is_ambiguous |= segment.was_resent;
            if !segment.is_sacked {
                self.delivered = self.delivered.wrapping_add(1);
                news.arrived.push(segment.arrived(place));
                if !segment.was_resent {
                    news.note_original(segment, sacked_before, high);
                    let sent_at = segment.sent_at;
                    news.acked_sent_at.get_or_insert((sent_at, sent_at)).1 = sent_at;
                }
            }
            self.segments.pop_front();
        }
        if let Some(first) = self.segments.front_mut() {
            first.start = first.start.max(una);
        }
        if self.highest_sacked.is_some_and(|highest| highest.at_or_before(una)) {
            self.highest_sacked = None;
        }
    }

    /// Takes segments for lost, in order, for which `is_lost` says so, until it says to stop;
    /// returns how many, and whether one of them was under way again.
    pub(super) fn mark_lost(&mut self, is_lost: impl FnMut(&Segment) -> Verdict) -> (u32, bool) {
        self.mark(Marker::Timeout, is_lost)
    }

    /// The same of those that RACK watches; it then watches them no more.
    pub(super) fn mark_overtaken(
        &mut self,
        is_lost: impl FnMut(&Segment) -> Verdict,
    ) -> (u32, bool) {
        self.mark(Marker::Rack, is_lost)
    }

    fn mark(
        &mut self,
        marker: Marker,
        mut is_lost: impl FnMut(&Segment) -> Verdict,
    ) -> (u32, bool) {
        let (mut count, mut again) = (0, false);
        for segment in &mut self.segments {
            let is_overlooked = marker == Marker::Rack && !segment.is_watched;
            if segment.is_lost && !segment.is_resent || segment.is_sacked || is_overlooked {
                continue;
            }
            match is_lost(segment) {
                Verdict::Lost => {}
                Verdict::Waits => continue,
                Verdict::Stop => break,
            }
            if core::mem::take(&mut segment.is_resent) {
                self.resent -= 1;
                again = true;
            }
            if !segment.is_lost {
                segment.is_lost = true;
                self.lost += 1;
            }
            segment.is_watched &= marker != Marker::Rack;
            count += 1;
        }
        (count, again)
    }

    /// None is taken for lost after all.
    pub(super) fn unmark_lost(&mut self) {
        self.segments.iter_mut().for_each(|segment| segment.is_lost = false);
        self.lost = 0;
    }

    /// The receiver let go of what it had SACKed (RFC 2018, section 8).
    pub(super) fn unmark_sacked(&mut self) {
        self.segments.iter_mut().for_each(|segment| segment.is_sacked = false);
        self.sacked = 0;
        self.highest_sacked = None;
    }

    /// The place of the first segment that is to be sent again, at or after this place.
    pub(super) fn next_to_resend(&self, from: usize) -> Option<usize> {
        if self.resent >= self.lost {
            return None;
        }
        let mut rest = self.segments.iter().enumerate().skip(from);
        rest.find(|(_, segment)| segment.is_lost && !segment.is_resent).map(|(at, _)| at)
    }

    /// Where the segment at this place begins and ends.
    pub(super) fn bounds(&self, at: usize) -> Option<(Seq, Seq)> {
        self.segments.get(at).map(|segment| (segment.start, segment.end))
    }

    /// The segment at this place is under way again.
    pub(super) fn on_resent(&mut self, at: usize) {
        let segment = &mut self.segments[at];
        self.resent += u32::from(!segment.is_resent);
        segment.is_resent = true;
    }

    /// The segment at this place was sent once more.
    pub(super) fn on_repeated(&mut self, at: usize, now: Instant) {
        let segment = &mut self.segments[at];
        segment.sent_at = now;
        segment.delivered = self.delivered;
        segment.was_resent = true;
        segment.is_watched = true;
    }

    /// The repetition of what lies in this block arrived as well (`tcp_sacktag_one`); returns the
    /// number of segments still here that were sent again.
    pub(super) fn on_dsack(&mut self, block: &SackBlock) -> u32 {
        let inside = self.segments.iter_mut().filter(|one| one.is_within(block));
        let mut count = 0;
        for segment in inside.filter(|segment| segment.was_resent) {
            count += 1;
            if segment.is_sacked && core::mem::take(&mut segment.is_resent) {
                self.resent -= 1;
            }
        }
        count
    }

    pub(super) fn first(&self) -> Option<&Segment> {
        self.segments.front()
    }

    /// True if the oldest is SACKed, so the receiver let go of it.
    pub(super) fn is_reneged(&self) -> bool {
        self.first().is_some_and(|first| first.is_sacked)
    }

    /// True if one is under way again, or the oldest ever was (`tcp_any_retrans_done`).
    pub(super) fn has_resent(&self) -> bool {
        self.resent > 0 || self.first().is_some_and(|first| first.was_resent)
    }

    /// Segments sent and not acknowledged (`packets_out`).
    pub(super) fn len(&self) -> u32 {
        self.segments.len() as u32
    }

    pub(super) fn sacked(&self) -> u32 {
        self.sacked
    }

    pub(super) fn lost(&self) -> u32 {
        self.lost
    }

    pub(super) fn resent(&self) -> u32 {
        self.resent
    }

    pub(super) fn delivered(&self) -> u32 {
        self.delivered
    }

    pub(super) fn highest_sacked(&self) -> Option<Seq> {
        self.highest_sacked
    }

    /// Segments in the network, as far as the sender knows (`tcp_packets_in_flight`).
    pub(super) fn in_flight(&self) -> u32 {
        (self.len() + self.resent).saturating_sub(self.sacked + self.lost)
    }
}

/// Who takes segments for lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Marker {
    Rack,
    Timeout,
}

/// Whether a segment is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Lost,
    /// Not yet.
    Waits,
    /// Neither this one nor one after it.
    Stop,
}

impl Segment {
    fn is_within(&self, block: &SackBlock) -> bool {
        self.start.at_or_after(block.start)
            && (self.end.at_or_before(block.end)
                || self.data_end == block.end && self.start.before(block.end))
    }

    fn arrived(&self, place: usize) -> Arrived {
        Arrived {
            place,
            end: self.end,
            sent_at: self.sent_at,
            was_resent: self.was_resent,
            delivered_before: self.delivered,
        }
    }
}

impl News {
    /// A segment that was sent once arrived.
    fn note_original(&mut self, segment: &Segment, highest_sacked: Option<Seq>, high: Seq) {
        self.has_original |= segment.end.at_or_before(high);
        if highest_sacked.is_some_and(|highest| segment.start.before(highest)) {
            let lowest = self.overtaken.map_or(segment.start, |lowest| lowest.min(segment.start));
            self.overtaken = Some(lowest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(segments: u32) -> Queue {
        let mut queue = Queue::default();
        for n in 0..segments {
            let bounds = (Seq(n * 10), Seq(n * 10 + 10));
            queue.push(bounds, 0, Instant::from_nanos(u64::from(n)));
        }
        queue
    }

    fn block(start: u32, end: u32) -> SackBlock {
        SackBlock { start: Seq(start), end: Seq(end) }
    }

    fn marks(queue: &Queue) -> [u32; 4] {
        [queue.len(), queue.sacked(), queue.lost(), queue.resent()]
    }

    #[test]
    fn blocks_mark_whole_segments_once() {
        let mut queue = queue(5);
        let mut news = News::default();
        queue.sack(&[block(25, 50), block(10, 20), block(10, 20)], Seq(50), &mut news);
        assert_eq!((news.sacked, marks(&queue)), (3, [5, 3, 0, 0]), "segments 1, 3 and 4");
        assert_eq!(news.overtaken, Some(Seq(10)), "3 and 4 were known before 1");
        queue.acknowledge(Seq(25), (Seq(50), None), &mut news);
        assert_eq!((news.acked, marks(&queue)), (2, [3, 2, 0, 0]));
        assert_eq!(queue.first().map(|first| first.start), Some(Seq(25)));
    }

    #[test]
    fn a_segment_sent_again_can_be_lost_again() {
        let mut queue = queue(3);
        assert_eq!(queue.mark_lost(|_| Verdict::Lost), (3, false));
        let at = queue.next_to_resend(0).expect("all are lost");
        assert_eq!(queue.bounds(at), Some((Seq(0), Seq(10))));
        queue.on_resent(at);
        queue.on_repeated(at, Instant::from_nanos(9));
        assert_eq!((marks(&queue), queue.in_flight()), ([3, 0, 3, 1], 1));
        assert_eq!(queue.mark_lost(|_| Verdict::Lost), (1, true));
        assert_eq!((marks(&queue), queue.in_flight()), ([3, 0, 3, 0], 0));
        queue.on_resent(0);
        queue.on_repeated(0, Instant::from_nanos(10));
        let mut news = News::default();
        queue.acknowledge(Seq(20), (Seq(30), None), &mut news);
        assert_eq!((news.is_ambiguous, marks(&queue)), (true, [1, 0, 1, 0]));
    }

    #[test]
    fn a_fin_needs_no_block() {
        let mut queue = Queue::default();
        queue.push((Seq(0), Seq(10)), 0, Instant::ZERO);
        queue.push((Seq(10), Seq(21)), 1, Instant::ZERO);
        let mut news = News::default();
        queue.sack(&[block(10, 20)], Seq(21), &mut news);
        assert_eq!(news.sacked, 1);
    }

    /// Linux takes what RACK has marked off its list (`tcp_rack_detect_loss`), and an undo does not
    /// put it back (`tcp_undo_cwnd_reduction`).
    #[test]
    fn rack_finds_again_what_it_took_for_lost_only_once_that_is_sent_again() {
        let mut timed_out = queue(1);
        let mut queue = queue(3);
        assert_eq!(queue.mark_overtaken(|_| Verdict::Lost), (3, false));
        queue.unmark_lost();
        assert_eq!(queue.mark_overtaken(|_| Verdict::Lost), (0, false));
        queue.on_repeated(1, Instant::from_nanos(9));
        assert_eq!(queue.mark_overtaken(|_| Verdict::Lost), (1, false));
        assert_eq!(queue.mark_lost(|_| Verdict::Lost), (2, false), "a timeout finds them all");
        timed_out.mark_lost(|_| Verdict::Lost);
        timed_out.unmark_lost();
        assert_eq!(timed_out.mark_overtaken(|_| Verdict::Lost), (1, false));
    }
}
