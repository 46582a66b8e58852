//! What a sender is told beside arrivals and losses: departures and verdicts.

use sansio::Instant;
use std::collections::VecDeque;

/// What became of a packet by then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Note {
    Departed,
    /// The link layer acknowledged it, or gave it up.
    Verdict(bool),
}

/// Notes in the order of time. Whoever is told asks before the next packet departs, as a rule: the
/// one note that there is then is kept in place.
#[derive(Clone, Debug)]
pub(super) struct Notes<T> {
    first: Option<(Instant, Note, T)>,
    rest: VecDeque<(Instant, Note, T)>,
}

impl<T> Notes<T> {
    pub(super) fn new() -> Self {
        Notes { first: None, rest: VecDeque::new() }
    }

    /// The next note.
    #[inline]
    pub(super) fn next(&self) -> Option<(Instant, Note)> {
        self.first.as_ref().map(|(at, note, _)| (*at, *note))
    }

    /// Adds a note that is later than all others.
    #[inline]
    pub(super) fn push(&mut self, at: Instant, note: Note, item: T) {
        if self.first.is_none() {
            self.first = Some((at, note, item));
        } else {
            self.push_behind(at, note, item);
        }
    }

    #[cold]
    fn push_behind(&mut self, at: Instant, note: Note, item: T) {
        self.rest.push_back((at, note, item));
    }

    /// Takes the next note.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<(Instant, Note, T)> {
        if self.rest.is_empty() { self.first.take() } else { self.pop_one_of_many() }
    }

    #[cold]
    fn pop_one_of_many(&mut self) -> Option<(Instant, Note, T)> {
        core::mem::replace(&mut self.first, self.rest.pop_front())
    }

    /// When the next verdict is known.
    pub(super) fn next_verdict(&self) -> Option<Instant> {
        let mut notes = self.first.iter().chain(&self.rest);
        notes.find(|(_, note, _)| *note != Note::Departed).map(|(at, ..)| *at)
    }
}
