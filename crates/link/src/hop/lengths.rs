//! How long a hop's queue is, from when on: for whoever draws it.

use super::Hop;
use sansio::Instant;

/// What waits from an instant on, both priorities together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Length {
    /// When it changed.
    pub at: Instant,
    /// Packets.
    pub packets: u32,
    /// Their bytes.
    pub bytes: u64,
}

impl<T: Clone> Hop<T> {
    /// From now on notes each change of what waits, for [`Hop::poll_length`].
    pub fn note_lengths(&mut self) {
        self.reports.get_or_insert_default().lengths.get_or_insert_default();
    }

    /// The oldest change of what waits that was not yet asked for, as of the last call.
    #[inline]
    pub fn poll_length(&mut self) -> Option<Length> {
        self.reports.as_mut()?.lengths.as_mut()?.pop_front()
    }

    #[inline]
    pub(super) fn note_length(&mut self, at: Instant) {
        if let Some(lengths) = self.reports.as_mut().and_then(|reports| reports.lengths.as_mut()) {
            lengths.push_back(Length { at, packets: self.waiting, bytes: self.queue.bytes() });
        }
    }
}
