//! The cache of one flow: references to unacknowledged segments by byte range (Snoop paper,
//! section 6; SNOOP-ST-2, SNOOP-ST-3, SNOOP-CACHE-1).
//!
//! ```text
//!   last ack                                         last seen
//!      │ ┌───────┐┌───────┐         ┌───────┐┌─────────┐ │
//!      ▼ │ entry ││ entry │ (hole)  │ entry ││  entry  │ ▼        byte sequence ─▶
//!        └───────┘└───────┘         └───────┘└─────────┘
//! ```
//!
//! Entries are disjoint and sorted; new data joins at the back and acknowledged data leaves at the
//! front. An entry is one segment: a super-packet is several entries that share one packet, so that
//! each segment is counted and re-sent by itself (MOD-7). Sizes need not repeat when a sender cuts
//! its stream anew, therefore "cached" means that the whole range is covered.

use sansio::{Instant, PacketRef};
use std::collections::VecDeque;
use wire::tcp::Seq;

/// One unacknowledged segment.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// The packet that carries it, shared with whoever forwards it.
    pub(super) packet: PacketRef,
    /// When the newest copy went onto the air, or, as long as it is requeued, into its queue.
    pub(super) departed_at: Instant,
    /// First byte.
    pub(super) start: Seq,
    /// Byte after the last; a FIN counts one.
    pub(super) end: Seq,
    /// Place in the order in which the flow's cached segments were sent into the normal queue.
    pub(super) sent_order: u32,
    /// How many segments of the flow had departed when the newest copy had.
    pub(super) departed_order: u32,
    /// Where the newest copy is.
    pub(super) copy: Copy,
    /// Local retransmissions since the sender last sent it (SNOOP-TMR-7).
    pub(super) retransmissions: u8,
    /// The sender sent it more than once (SNOOP-DATA-5, SNOOP-DATA-6).
    pub(super) sender_retransmitted: bool,
    /// The agent sent it again before the sender's latest repeat: which arrived, nobody knows.
    pub(super) was_resent: bool,
    /// The mobile host has it, by a SACK block.
    pub(super) sacked: bool,
    /// It is all of its packet, which no other agent made: when that departs, this does.
    pub(super) is_whole: bool,
}

/// Where the newest copy of a segment is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Copy {
    /// As the sender sent it, in the link's normal queue.
    Queued,
    /// Re-sent by the agent, in the queue of local retransmissions.
    Requeued,
    /// On the air, or past it.
    Departed,
    /// Heard, and never sent here: another base station has sent it (SNHO-1).
    Elsewhere,
}

impl Copy {
    /// True if it is on some air, or past it.
    #[inline]
    pub(super) fn has_departed(self) -> bool {
        matches!(self, Copy::Departed | Copy::Elsewhere)
    }
}

impl Entry {
    /// Length in sequence numbers.
    pub(super) fn length(&self) -> u32 {
        self.end.since(self.start)
    }

    /// True if more than one copy of it was ever sent.
    #[inline]
    pub(super) fn was_repeated(&self) -> bool {
        self.retransmissions > 0 || self.sender_retransmitted
    }

    /// True if its newest copy is the sender's, in line, and one of the agent's went ahead of the
    /// line before.
    pub(super) fn may_have_gone_ahead(&self) -> bool {
        self.was_resent && self.retransmissions == 0
    }

    /// True if one copy of it was ever sent, has departed, and no SACK block has covered it.
    #[inline]
    pub(super) fn is_on_its_way(&self) -> bool {
        self.copy == Copy::Departed && !self.was_repeated() && !self.sacked
    }

    /// Takes the sender's own repeat as what is sent again, if that holds all of it and little
    /// else: an echo of the older TSval would tell the sender that its repeat was a mistake, and it
    /// would take back what it did about the loss (Eifel; RFC 3522).
    pub(super) fn renew(&mut self, packet: &PacketRef, range: (Seq, Seq)) {
        let segment = packet.segment_bytes.map_or(u32::MAX, |bytes| bytes.get().into());
        let is_whole = range.0.at_or_before(self.start) && range.1.at_or_after(self.end);
        if !is_whole || self.length() > segment {
            return;
        }
        let before = core::mem::replace(&mut self.packet, packet.clone());
        if self.is_sliver() {
            self.packet = before;
        } else {
            self.is_whole = false;
        }
    }

    /// True if it is less than half of the segment it was cut from.
    fn is_sliver(&self) -> bool {
        let whole = match self.packet.segment_bytes {
            Some(bytes) => self.packet.payload.len().min(bytes.get().into()),
            None => self.packet.payload.len(),
        };
        self.length() * 2 < whole
    }
}

/// Entries sorted by sequence number, none overlapping another.
#[derive(Clone, Debug, Default)]
pub(super) struct Cache {
    entries: VecDeque<Entry>,
    bytes: u32,
}

impl Cache {
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Sequence numbers covered.
    pub(super) fn bytes(&self) -> u32 {
        self.bytes
    }

    pub(super) fn front(&self) -> Option<&Entry> {
        self.entries.front()
    }

    pub(super) fn get(&self, index: usize) -> Option<&Entry> {
        self.entries.get(index)
    }

    pub(super) fn get_mut(&mut self, index: usize) -> Option<&mut Entry> {
        self.entries.get_mut(index)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Entry> {
        self.entries.iter_mut()
    }

    /// Index of the first entry that ends after `seq`.
    #[inline]
    pub(super) fn first_ending_after(&self, seq: Seq) -> usize {
        let Some(front) = self.entries.front() else { return 0 };
        if front.end.after(seq) {
            return 0;
        }
        // Segments of a bulk flow have one size: the place can be computed.
        let guess = (seq.since(front.start) / front.length().max(1)) as usize;
        match self.entries.get(guess) {
            Some(entry) if entry.start == seq => guess,
            _ => self.entries.partition_point(|entry| entry.end.at_or_before(seq)),
        }
    }

    /// Index of the entry that holds the byte `seq`.
    #[inline]
    pub(super) fn find(&self, seq: Seq) -> Option<usize> {
        let index = self.first_ending_after(seq);
        self.entries.get(index).filter(|entry| entry.start.at_or_before(seq)).map(|_| index)
    }

    /// The entry of `sent_order`, in a cache that was filled in order; otherwise any or none.
    #[inline]
    pub(super) fn sent_as(&mut self, sent_order: u32) -> Option<&mut Entry> {
        let front = self.entries.front()?;
        let index = sent_order.wrapping_sub(front.sent_order) as usize;
        self.entries.get_mut(index)
    }

    /// Index of the entry that starts at `start`, if it is the one of `sent_order` in a cache that
    /// was filled in order; otherwise as [`Cache::first_ending_after`].
    pub(super) fn first_departing(&self, start: Seq, sent_order: u32) -> usize {
        let Some(front) = self.entries.front() else { return 0 };
        let guess = sent_order.wrapping_sub(front.sent_order) as usize;
        match self.entries.get(guess) {
            Some(entry) if entry.start == start => guess,
            _ => self.first_ending_after(start),
        }
    }

    /// True if every byte from `start` up to `end` is cached.
    #[cold]
    pub(super) fn covers(&self, start: Seq, end: Seq) -> bool {
        let mut at = start;
        for entry in self.entries.range(self.first_ending_after(start)..) {
            if entry.start.after(at) {
                return false;
            }
            at = entry.end;
            if at.at_or_after(end) {
                return true;
            }
        }
        false
    }

    /// Adds the newest data: nothing cached lies at or after its start.
    ///
    /// It is made where it stays, not before: a copy would have to wait for what was just stored.
    #[inline]
    pub(super) fn push(&mut self, entry: impl FnOnce() -> Entry) {
        if self.entries.len() == self.entries.capacity() {
            return self.push_growing(entry());
        }
        let entry = entry();
        debug_assert!(self.entries.back().is_none_or(|last| last.end.at_or_before(entry.start)));
        self.bytes += entry.length();
        self.entries.push_back(entry);
    }

    #[cold]
    fn push_growing(&mut self, entry: Entry) {
        self.bytes += entry.length();
        self.entries.push_back(entry);
    }

    /// Adds a segment anywhere; it takes the place of what it overlaps. What is left of an
    /// overlapped one stays only if it is no sliver: a few bytes would hold a whole packet, and
    /// memory is counted by the bytes (MOD-14).
    pub(super) fn insert(&mut self, entry: Entry) {
        let mut index = self.first_ending_after(entry.start);
        while let Some(other) = self.entries.get(index) {
            if other.start.at_or_after(entry.end) {
                break;
            }
            let Some(other) = self.entries.remove(index) else { break };
            self.bytes -= other.length();
            let other = Entry { is_whole: false, ..other };
            let left = Entry { end: other.end.min(entry.start), ..other.clone() };
            let right = Entry { start: other.start.max(entry.end), ..other };
            for rest in [left, right] {
                if rest.start.before(rest.end) && !rest.is_sliver() {
                    self.bytes += rest.length();
                    self.entries.insert(index, rest);
                    index += 1;
                }
            }
        }
        let index = self.first_ending_after(entry.start);
        self.bytes += entry.length();
        self.entries.insert(index, entry);
    }

    /// Takes out the lowest entry if all of it lies below `ack` (SNOOP-ACK-1: a partly acknowledged
    /// one stays), once `look` has seen it. Returns its packet.
    #[inline]
    pub(super) fn pop_acknowledged(
        &mut self,
        ack: Seq,
        look: impl FnOnce(&Entry),
    ) -> Option<PacketRef> {
        let front = self.entries.front()?;
        if front.end.after(ack) {
            return None;
        }
        look(front);
        self.pop()
    }

    /// Takes out the lowest entry; returns its packet.
    #[inline(always)]
    pub(super) fn pop(&mut self) -> Option<PacketRef> {
        let entry = self.entries.pop_front()?;
        self.bytes -= entry.length();
        Some(entry.packet)
    }

    /// Takes out the entry that came first; returns its packet. All came in sequence but what the
    /// sender sent again.
    pub(super) fn pop_oldest(&mut self) -> Option<PacketRef> {
        let first_sent_once = self.entries.iter().position(|entry| !entry.sender_retransmitted);
        let newest = self.entries.back()?.sent_order;
        let age = |index: &usize| newest.wrapping_sub(self.entries[*index].sent_order) as i32;
        let among = 0..=first_sent_once.unwrap_or(self.entries.len() - 1);
        let entry = among.max_by_key(age).and_then(|index| self.entries.remove(index))?;
        self.bytes -= entry.length();
        Some(entry.packet)
    }

    /// Takes out the entries for which `keep` is false; returns how many.
    pub(super) fn retain(&mut self, keep: impl FnMut(&Entry) -> bool) -> usize {
        let before = self.entries.len();
        self.entries.retain(keep);
        self.bytes = self.entries.iter().map(Entry::length).sum();
        before - self.entries.len()
    }

    /// Drops everything and the memory it took.
    pub(super) fn clear(&mut self) {
        *self = Cache::default();
    }

    /// Gives unused memory back.
    pub(super) fn shrink(&mut self) {
        self.entries.shrink_to_fit();
    }
}
