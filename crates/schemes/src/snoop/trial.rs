//! Whether losses that do not end are the queue's or the air's (*modern*; ours, not the paper's).
//!
//! A short queue behind the place where departures are seen, or an active queue management that
//! keeps it short (CoDel, RFC 8289), drops what a window too large brings, and no delay tells. If
//! the agent repairs that, the sender never learns, and a third of all packets may be dropped for
//! as long as the flow lasts. The air may lose as much. So the agent tries: it lets the sender know
//! once, and looks at what the smaller window loses.
//!
//! ```text
//!   3 windows in a row lose an eighth or more
//!      └─▶ the sender learns: everything passes
//!             └─▶ the window that it then sends
//!                    ├─▶ loses less: it was the queue; so it is when as much is in flight again
//!                    └─▶ loses as much: it is the air; no trial for 15 s, then for 30, 60 …
//! ```
//!
//! Only with SACK blocks, which show each loss. A sender may reduce its window too little for a
//! clear answer: if it loses a little less, it is told once more. One that begins its smaller
//! window with a burst overruns a short queue all the same: where it was the queue before, it takes
//! as many contrary answers to conclude that it is the air. And where the answers are clear, the
//! sender learns of the first loss as soon as as much is in flight again, as it would alone: to
//! repair it first costs a round trip in which the link falls idle, and then an ACK that sets free
//! a burst. The air loses at smaller windows, too.

use super::aside::Rest;
use sansio::Instant;
use wire::tcp::Seq;

/// One flow's trials.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trial {
    stage: Stage,
    /// Windows in a row that lost an eighth or more.
    dense: u8,
    /// Segments in flight when the queue was overrun last; the most there can be if none is known.
    overrun_at: u16,
    /// How often it was the queue, less how often it was not, up to [`ANSWERS_KEPT`].
    queue_answers: u8,
    /// It was the air: none for a while.
    rest: Rest,
}

#[derive(Clone, Copy, Debug)]
enum Stage {
    Idle,
    /// Everything passes; before, so many of 256 segments were lost.
    Told(u8),
    /// What the sender then sent departed, up to `until`; so many of it are lost so far.
    Watched {
        lost_before: u8,
        until: Seq,
        lost: u8,
    },
}

/// So many windows in a row.
const WINDOWS: u8 = 3;
/// With fewer losses no window counts as losing much.
const LOSSES_MIN: usize = 8;
/// The least share that losses before a trial count as: an eighth.
const SHARE_MIN: u8 = 32;
/// So many answers that it was the queue outweigh others: what a path is like may change.
const ANSWERS_KEPT: u8 = 4;
/// So many are enough to tell the sender of the first loss.
const ANSWERS_CLEAR: u8 = 2;

impl Trial {
    pub(super) const NONE: Trial = Trial {
        stage: Stage::Idle,
        dense: 0,
        overrun_at: u16::MAX,
        queue_answers: 0,
        rest: Rest::NONE,
    };

    pub(super) fn is_idle(&self) -> bool {
        matches!(self.stage, Stage::Idle)
    }

    /// True if the sender is to learn of its losses, or just does.
    pub(super) fn is_told(&self) -> bool {
        matches!(self.stage, Stage::Told(_))
    }

    /// A loss is repaired.
    #[inline]
    pub(super) fn on_repair(&mut self) {
        if let Stage::Watched { lost, .. } = &mut self.stage {
            *lost = lost.saturating_add(1);
        }
    }

    /// A window with losses has arrived: so many were repaired, so many segments are in flight.
    /// There were `before` when the first of them was lost.
    pub(super) fn on_window(&mut self, repaired: u8, flight: usize, before: usize) {
        if before < usize::from(self.overrun_at) * 3 / 4 {
            self.queue_answers = self.queue_answers.saturating_sub(ANSWERS_CLEAR);
        }
        let is_dense = usize::from(repaired) >= LOSSES_MIN.max(flight / 8);
        self.dense = if is_dense { self.dense.saturating_add(1) } else { 0 };
    }

    /// The mobile host has everything up to `ack`. `is_open`: everything passes. All up to
    /// `departed` has departed.
    #[inline]
    pub(super) fn on_new_ack(
        &mut self,
        (ack, departed): (Seq, Seq),
        is_open: bool,
        flight: usize,
        now: Instant,
    ) {
        if !matches!(self.stage, Stage::Idle) {
            self.go_on((ack, departed), is_open, flight, now);
        }
    }

    #[cold]
    fn go_on(&mut self, (ack, departed): (Seq, Seq), is_open: bool, flight: usize, now: Instant) {
        match self.stage {
            Stage::Told(lost_before) if !is_open => {
                self.stage = Stage::Watched { lost_before, until: departed, lost: 0 };
            }
            Stage::Watched { lost_before, until, lost } if ack.at_or_after(until) => {
                self.stage = Stage::Idle;
                self.judge(u16::from(lost_before), u16::from(share(lost, flight)), now);
            }
            _ => {}
        }
    }

    /// The smaller window lost this share instead of that before.
    fn judge(&mut self, before: u16, now_lost: u16, now: Instant) {
        if now_lost * 16 > before * 15 {
            if self.queue_answers == 0 {
                self.rest.begin(now);
                self.overrun_at = u16::MAX;
            }
            self.queue_answers = self.queue_answers.saturating_sub(1);
        } else if now_lost * 4 > before * 3 {
            self.dense = WINDOWS;
        } else {
            self.queue_answers = (self.queue_answers + 1).min(ANSWERS_KEPT);
        }
    }

    /// True if the sender is to learn of its losses now.
    pub(super) fn begins(&mut self, repaired: u8, flight: usize, now: Instant) -> bool {
        if !matches!(self.stage, Stage::Idle) || !self.rest.is_over(now) {
            return false;
        }
        let is_overrun = flight >= usize::from(self.overrun_at) * 7 / 8
            && (self.queue_answers >= ANSWERS_CLEAR
                || usize::from(repaired) >= LOSSES_MIN.max(flight / 16));
        if self.dense < WINDOWS && !is_overrun {
            return false;
        }
        self.stage = Stage::Told(share(repaired, flight).max(SHARE_MIN));
        self.overrun_at = u16::try_from(flight).unwrap_or(u16::MAX);
        self.dense = 0;
        true
    }

    /// An outage came between.
    pub(super) fn forgive(&mut self) {
        (self.stage, self.dense) = (Stage::Idle, 0);
    }
}

/// What part of a flight is lost, in 256ths.
fn share(lost: u8, flight: usize) -> u8 {
    u8::try_from(usize::from(lost) * 256 / flight.max(1)).unwrap_or(u8::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLIGHT: usize = 100;

    fn at(seconds: u64) -> Instant {
        Instant::from_nanos(seconds * 1_000_000_000)
    }

    /// Three windows of 100 segments lose 30; then the sender is told.
    fn told(now: Instant) -> Trial {
        let mut trial = Trial::NONE;
        for window in 0..3 {
            assert!(!trial.begins(30, FLIGHT, now), "after {window} windows");
            trial.on_window(30, FLIGHT, FLIGHT);
        }
        assert!(trial.begins(30, FLIGHT, now));
        trial
    }

    /// The window that follows loses so many.
    fn watch(trial: &mut Trial, lost: usize, now: Instant) {
        trial.on_new_ack((Seq(100), Seq(200)), false, FLIGHT, now);
        for _ in 0..lost {
            trial.on_repair();
        }
        trial.on_new_ack((Seq(199), Seq(300)), false, FLIGHT, now);
        assert!(!trial.begins(30, FLIGHT, now), "it has not arrived yet");
        trial.on_new_ack((Seq(200), Seq(300)), false, FLIGHT, now);
    }

    #[test]
    fn congestion_losses_that_a_smaller_window_has_too_are_the_airs() {
        let mut trial = told(at(1));
        watch(&mut trial, 30, at(1));
        for second in 2..16 {
            trial.on_window(30, FLIGHT, FLIGHT);
            assert!(!trial.begins(30, FLIGHT, at(second)), "at {second} s");
        }
        assert!(trial.begins(30, FLIGHT, at(16)));
        watch(&mut trial, 30, at(16));
        (0..3).for_each(|_| trial.on_window(30, FLIGHT, FLIGHT));
        assert!(!trial.begins(30, FLIGHT, at(45)), "twice as long");
        assert!(trial.begins(30, FLIGHT, at(46)));
    }

    #[test]
    fn congestion_losses_that_a_smaller_window_has_not_are_the_queues_and_are_told_again_at_once() {
        let mut trial = told(at(1));
        watch(&mut trial, 2, at(1));
        assert!(!trial.begins(10, 80, at(2)), "less than before is in flight");
        assert!(!trial.begins(5, 90, at(2)), "few are lost");
        assert!(trial.begins(10, 90, at(2)));
    }

    /// The queue was overrun with 100 segments in flight, and so often a smaller window lost none.
    fn overrun(times: usize) -> Trial {
        let mut trial = told(at(1));
        watch(&mut trial, 0, at(1));
        for _ in 1..times {
            assert!(trial.begins(30, FLIGHT, at(1)));
            watch(&mut trial, 0, at(1));
        }
        trial
    }

    #[test]
    fn congestion_after_clear_answers_the_sender_learns_of_the_first_loss_of_as_large_a_window() {
        assert!(!overrun(1).begins(0, FLIGHT, at(2)), "one answer");
        let mut trial = overrun(2);
        assert!(!trial.begins(0, FLIGHT * 7 / 8 - 1, at(2)), "less is in flight");
        trial.on_window(1, 10, FLIGHT * 3 / 4);
        assert!(trial.begins(0, FLIGHT, at(2)));
        let mut trial = overrun(2);
        trial.on_window(1, 10, FLIGHT * 3 / 4 - 1);
        assert!(!trial.begins(0, FLIGHT, at(2)), "a smaller window lost, too");
    }

    #[test]
    fn congestion_clear_answers_outweigh_as_many_contrary_ones() {
        let mut trial = overrun(2);
        for _ in 0..3 {
            assert!(trial.begins(30, FLIGHT, at(2)));
            watch(&mut trial, 100, at(2));
        }
        assert!(!trial.begins(30, FLIGHT, at(2)), "it is the air");
    }

    #[test]
    fn congestion_a_little_less_is_no_answer_and_the_sender_is_told_once_more() {
        let mut trial = told(at(1));
        watch(&mut trial, 25, at(1));
        assert!(trial.begins(25, 70, at(1)));
    }

    #[test]
    fn congestion_an_outage_or_a_window_with_few_losses_begins_the_count_anew() {
        for is_outage in [false, true] {
            let mut trial = Trial::NONE;
            (0..2).for_each(|_| trial.on_window(30, FLIGHT, FLIGHT));
            if is_outage {
                trial.forgive();
            } else {
                trial.on_window(4, FLIGHT, FLIGHT);
            }
            (0..2).for_each(|_| trial.on_window(30, FLIGHT, FLIGHT));
            assert!(!trial.begins(30, FLIGHT, at(1)));
        }
    }
}
