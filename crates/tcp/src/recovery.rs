//! Losses that show without a timeout: duplicate ACKs and SACK blocks.
//!
//! RFC 5681 section 3.2, RFC 6582 section 3.2 (when a recovery may begin), RFC 3042 (limited
//! transmit), RFC 6675 section 5 (recovery with a scoreboard; we differ in leaving out the optional
//! rescue retransmission).

use crate::config::RepeatedFastRetransmit;
use crate::congestion::{AnyController, DUPACK_THRESHOLD, Repair};
use crate::connection::Endpoint;
use crate::timers::Timer;
use sansio::{EventKind, Instant, Sink};
use wire::tcp::{Header, Seq};

/// Whether a loss is being repaired, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Recovery {
    /// None is, or by going back N.
    None,
    /// Fast recovery, which any new ACK ends; for NewReno one that acknowledges all that was sent
    /// when it began.
    Fast,
    /// With a scoreboard, until all that was sent when it began is acknowledged.
    Scoreboard {
        /// Everything below was sent again or SACKed: HighRxt plus one.
        retransmitted: Seq,
    },
}

impl Endpoint {
    /// A duplicate ACK. With a scoreboard only one that brings news of it counts (RFC 6675, 2).
    pub(crate) fn on_dupack(&mut self, header: &Header, sink: &mut impl Sink, now: Instant) {
        self.statistics.dupacks_received += 1;
        if self.is_linux() {
            return self.on_linux_ack(header, true, sink, now);
        }
        if self.is_linux_sack() {
            return self.on_linux_sack_ack(header, (self.sender.una, true), sink, now);
        }
        let news = self.note_sack(header);
        if let AnyController::Sack1(controller) = &mut self.controller
            && self.sender.recovery != Recovery::None
        {
            controller.on_left(1);
        } else if self.uses_scoreboard() && news == 0 {
            return;
        }
        self.sender.dupacks = self.sender.dupacks.saturating_add(1);
        if self.vegas().is_some() {
            return self.on_vegas_dupack(sink, now);
        }
        match self.sender.recovery {
            Recovery::Fast => {
                self.controller.on_dupack();
                self.report_window(sink);
            }
            Recovery::Scoreboard { .. } => {}
            Recovery::None if self.shows_loss() => self.fast_retransmit(sink, now),
            Recovery::None => {}
        }
    }

    /// What a new ACK is to the recovery; `una` is already moved.
    #[inline]
    pub(crate) fn advance_recovery(
        &mut self,
        header: &Header,
        acked: u32,
        sink: &mut impl Sink,
        now: Instant,
    ) {
        if self.is_sack1() && self.sender.recovery == Recovery::None {
            self.sender.scoreboard.clear();
        } else if self.uses_scoreboard() {
            self.advance_scoreboard(header);
        }
        self.sender.dupacks = 0;
        if self.vegas().is_some() {
            self.on_vegas_ack(sink, now);
            return self.report_window(sink);
        }
        if self.sender.recovery == Recovery::None {
            self.controller.on_new_ack(acked);
            return self.report_window(sink);
        }
        self.go_on_recovering(acked, sink, now);
    }

    #[inline(never)]
    fn advance_scoreboard(&mut self, header: &Header) {
        self.sender.scoreboard.advance(self.sender.una);
        self.note_sack(header);
    }

    /// A new ACK in the midst of a recovery.
    #[cold]
    fn go_on_recovering(&mut self, acked: u32, sink: &mut impl Sink, now: Instant) {
        let partial = self.sender.una.before(self.sender.recover);
        match &mut self.sender.recovery {
            Recovery::None => {}
            Recovery::Fast if partial && self.controller.repair() == Repair::PartialAcks => {
                self.controller.on_partial_ack(acked);
                self.resend_first(sink, now);
            }
            Recovery::Fast => {
                self.sender.recovery = Recovery::None;
                self.controller.on_recovered();
                self.controller.on_new_ack(acked);
            }
            Recovery::Scoreboard { .. } if self.sender.una.at_or_after(self.sender.recover) => {
                self.sender.recovery = Recovery::None;
                self.controller.on_recovered();
                if self.is_sack1() {
                    self.sender.scoreboard.clear();
                    // The next loss may follow at once.
                    self.sender.recover = self.sender.una + u32::MAX;
                }
            }
            Recovery::Scoreboard { retransmitted } => {
                *retransmitted = retransmitted.max(self.sender.una);
                if let AnyController::Sack1(controller) = &mut self.controller {
                    // The packet sent again has left, and the one that was lost.
                    controller.on_left(2);
                    self.sender.dupacks = DUPACK_THRESHOLD + 1;
                }
            }
        }
        self.report_window(sink);
    }

    /// Bytes beyond cwnd that the first two duplicate ACKs let out (RFC 3042).
    #[inline]
    pub(crate) fn limited_transmit_bytes(&self) -> u32 {
        let sender = &self.sender;
        let early = (1..DUPACK_THRESHOLD).contains(&sender.dupacks);
        if early && self.config.limited_transmit && sender.recovery == Recovery::None {
            sender.dupacks * sender.mss
        } else {
            0
        }
    }

    /// Takes SACK blocks if the sender uses them; returns the bytes newly SACKed.
    #[inline]
    pub(crate) fn note_sack(&mut self, header: &Header) -> u32 {
        if !self.uses_scoreboard() || self.is_blind() {
            return 0;
        }
        let (una, max) = (self.sender.una, self.sender.max);
        self.sender.scoreboard.add(header.options.sack_blocks(), una, max)
    }

    /// Moves `next` past SACKed bytes; returns how many bytes the hole there has.
    pub(crate) fn skip_sacked(&mut self) -> u32 {
        if self.is_sack1() {
            return u32::MAX;
        }
        let sender = &mut self.sender;
        let Some(highest) = sender.scoreboard.highest() else { return u32::MAX };
        match sender.scoreboard.next_hole(sender.next) {
            Some((start, end)) => {
                sender.next = start;
                end.since(start)
            }
            None => {
                sender.next = sender.next.max(highest);
                u32::MAX
            }
        }
    }

    /// Sends while the pipe has room (RFC 6675, 5, step C, and `NextSeg`).
    pub(crate) fn fill_pipe(&mut self, sink: &mut impl Sink, now: Instant) {
        let Recovery::Scoreboard { mut retransmitted } = self.sender.recovery else { return };
        if self.is_sack1() {
            return self.fill_counted_pipe(retransmitted, sink, now);
        }
        let (una, mss) = (self.sender.una, self.sender.mss);
        let lost_edge = self.sender.scoreboard.lost_edge(una, mss);
        let mut pipe = self.sender.scoreboard.pipe(una, self.sender.max, retransmitted, mss);
        loop {
            let room = self.controller.cwnd().saturating_sub(pipe);
            if room < mss {
                break;
            }
            let hole = self.sender.scoreboard.next_hole(retransmitted);
            let lost = hole.filter(|hole| hole.0.before(lost_edge));
            let units = match lost {
                Some(hole) => self.resend_hole(hole, &mut retransmitted, sink, now),
                None => match (self.send_next(room, sink, now), hole) {
                    (0, Some(hole)) => self.resend_hole(hole, &mut retransmitted, sink, now),
                    (units, _) => units,
                },
            };
            if units == 0 {
                break;
            }
            pipe += units;
        }
        self.sender.recovery = Recovery::Scoreboard { retransmitted };
    }

    /// The same with Sack1's pipe: first every hole, then new data. The duplicate ACK that began
    /// the recovery lets nothing more out.
    fn fill_counted_pipe(&mut self, mut retransmitted: Seq, sink: &mut impl Sink, now: Instant) {
        if self.sender.dupacks == DUPACK_THRESHOLD {
            return;
        }
        while let AnyController::Sack1(controller) = &self.controller
            && controller.has_room()
        {
            let units = match self.sender.scoreboard.next_hole(retransmitted) {
                Some(hole) => self.resend_hole(hole, &mut retransmitted, sink, now),
                None => self.send_next(u32::MAX, sink, now),
            };
            if units == 0 {
                break;
            }
            if let AnyController::Sack1(controller) = &mut self.controller {
                controller.on_sent();
            }
        }
        self.sender.recovery = Recovery::Scoreboard { retransmitted };
    }

    fn resend_hole(
        &mut self,
        (start, end): (Seq, Seq),
        retransmitted: &mut Seq,
        sink: &mut impl Sink,
        now: Instant,
    ) -> u32 {
        let length = end.since(start).min(self.segment_room());
        let units = self.resend(start, length, sink, now);
        *retransmitted = start + units;
        units
    }

    /// True if the duplicate ACKs so far stand for a loss that no recovery has met.
    fn shows_loss(&self) -> bool {
        let sender = &self.sender;
        let enough = if self.uses_scoreboard() && !self.is_sack1() {
            let lost_edge = sender.scoreboard.lost_edge(sender.una, sender.mss);
            sender.dupacks >= DUPACK_THRESHOLD || lost_edge.after(sender.una)
        } else {
            sender.dupacks == DUPACK_THRESHOLD
        };
        let fresh = match self.config.repeated_fast_retransmit {
            RepeatedFastRetransmit::Careful => sender.una.after(sender.recover),
            RepeatedFastRetransmit::Allowed => true,
        };
        enough && fresh
    }

    /// The first loss of a window (RFC 5681, 3.2; CI-TCP-6).
    pub(crate) fn fast_retransmit(&mut self, sink: &mut impl Sink, now: Instant) {
        let seq = self.sender.una;
        let loss = self.loss(0);
        self.statistics.fast_retransmits += 1;
        self.report(sink, || EventKind::FastRetransmit { seq });
        self.sender.recover = self.sender.max;
        self.sender.timed = None;
        self.controller.on_fast_retransmit(loss);
        self.timers.set(Timer::Retransmission, self.rtt.deadline(now));
        match self.controller.repair() {
            // Linux never comes here: its own state machine begins its recoveries.
            Repair::GoBackN | Repair::Linux => self.sender.next = seq,
            Repair::FastRecovery | Repair::PartialAcks => {
                self.sender.recovery = Recovery::Fast;
                self.resend_first(sink, now);
            }
            Repair::Scoreboard | Repair::Pipe => {
                let units = self.resend_first(sink, now);
                self.sender.recovery = Recovery::Scoreboard { retransmitted: seq + units };
            }
        }
        self.report_window(sink);
    }

    /// Sends the oldest unacknowledged segment again.
    pub(crate) fn resend_first(&mut self, sink: &mut impl Sink, now: Instant) -> u32 {
        let una = self.sender.una;
        let hole =
            self.sender.scoreboard.next_hole(una).map_or(u32::MAX, |(_, end)| end.since(una));
        let length = self.segment_room().min(self.sender.flight()).min(hole);
        self.resend(una, length, sink, now)
    }

    pub(crate) fn uses_scoreboard(&self) -> bool {
        matches!(self.controller, AnyController::Sack(_) | AnyController::Sack1(_))
    }

    /// Sack1, unlike RFC 6675, looks at the scoreboard during recovery only: after a timeout it
    /// goes back over everything.
    pub(crate) fn is_sack1(&self) -> bool {
        matches!(self.controller, AnyController::Sack1(_))
    }

    /// Sack1 takes no note of duplicate ACKs from a timeout to the next new ACK.
    fn is_blind(&self) -> bool {
        self.is_sack1() && self.sender.attempts > 0
    }
}
