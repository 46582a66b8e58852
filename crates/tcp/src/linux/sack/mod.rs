//! The sender that Linux has today, with SACK: RACK-TLP (RFC 8985), PRR (RFC 6937), F-RTO
//! (RFC 5682, section 3) and mistakes taken back by timestamps (RFC 3522) and D-SACK (RFC 3708), as
//! `net/ipv4/tcp_input.c` of Linux 6.18 puts them together.
//!
//! Losses are told by time alone ([`rack`]): neither three duplicates nor the RFC 6675 rule marks
//! a segment. One timer runs at a time, of three kinds: the retransmission timeout, the loss probe
//! that comes before it, and the end of the reordering window.
//!
//! What is decided is here, on plain values; what becomes of cwnd is in `windows`, what is sent in
//! `transmit`, and when, with BBR, in `paced`. Not modelled: ECN, answers to ACKs older than the
//! last.

mod paced;
mod queue;
mod rack;
mod transmit;
mod windows;

use super::undo::Undo;
use super::usage::{Sent, Usage};
use super::{Resend, State, THRESHOLD_MAX};
use crate::config::Config;
use crate::congestion::{Controller, DUPACK_THRESHOLD, Loss, Repair, Windows};
use crate::linux::prr::Prr;
use paced::Paced;
pub(in crate::linux) use queue::Arrived;
use queue::{News, Queue, Verdict};
use rack::{Circumstances, Rack};
use sansio::{Duration, Instant};
use wire::tcp::{SackBlock, Seq};

/// The state of the sender.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LinuxSack {
    windows: Windows,
    state: State,
    queue: Queue,
    rack: Rack,
    /// What was sent when the state was entered (`high_seq`).
    high: Seq,
    /// How many segments may overtake one (`reordering`), and whether any ever did.
    reordering: u32,
    reorders: bool,
    prr: Prr,
    undo: Undo,
    /// Repetitions of this episode that no D-SACK has shown to be needless (`undo_retrans`);
    /// `None` before the first.
    unexplained: Option<u32>,
    /// A timeout may yet turn out to be a mistake (RFC 5682).
    frto: bool,
    /// Segments sent again, and D-SACKed, since the connection began.
    repetitions: u32,
    dsacked: u32,
    probe: Option<Probe>,
    usage: Usage,
    /// The shortest round trip.
    shortest: Option<Duration>,
    /// Where the last segment ended that was not full.
    runt: Option<Seq>,
    /// BBR, if it takes CUBIC's place.
    paced: Option<Box<Paced>>,
}

/// A tail loss probe under way (RFC 8985, 7.3).
#[derive(Clone, Copy, Debug, PartialEq)]
struct Probe {
    /// The next new number when it was sent (`tlp_high_seq`).
    high: Seq,
    /// It repeated a segment.
    is_repetition: bool,
}

/// An ACK, as far as it concerns the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ack {
    /// The oldest unacknowledged number, this ACK included, and before it.
    una: Seq,
    before: Seq,
    /// The next new number.
    next: Seq,
    /// `una` moved.
    advances: bool,
    /// It brings neither data nor another window, and `una` did not move.
    is_duplicate: bool,
    /// Its first SACK block is a D-SACK of something that was sent again.
    has_dsack: bool,
    /// And it was the probe.
    dsacks_probe: bool,
    /// The timestamp it echoes.
    echo: Option<u32>,
    /// There is something new to send, and the peer's window has room for it.
    can_send_new: bool,
    /// The circumstances, should it show a loss.
    loss: Loss,
    smoothed: Duration,
    /// The round trip of the latest segment that arrived.
    latest: Option<Duration>,
    /// Segments in flight before it.
    in_flight_before: u32,
    now: Instant,
}

/// What looking for losses found, in one ACK.
#[derive(Clone, Copy, Debug, Default)]
struct Found {
    /// Segments newly taken for lost.
    lost: u32,
    /// One of them was under way again.
    lost_again: bool,
    /// Others are lost if they have not come by then.
    wait: Option<Duration>,
}

impl LinuxSack {
    pub(crate) fn new(config: &Config, mss: u32) -> Self {
        LinuxSack {
            windows: Windows::new(config, mss),
            state: State::Open,
            queue: Queue::default(),
            rack: Rack::default(),
            high: Seq(0),
            reordering: DUPACK_THRESHOLD,
            reorders: false,
            prr: Prr::default(),
            undo: Undo::default(),
            unexplained: None,
            frto: false,
            repetitions: 0,
            dsacked: 0,
            probe: None,
            usage: Usage::new(),
            shortest: None,
            runt: None,
            paced: None,
        }
    }

    fn cwnd_segments(&self) -> u32 {
        self.windows.cwnd() / self.windows.mss()
    }

    fn set_cwnd_segments(&mut self, segments: u32) {
        self.windows.set_cwnd(segments.max(1).saturating_mul(self.windows.mss()));
    }

    /// Segments that cwnd lets out.
    fn room(&self) -> u32 {
        self.cwnd_segments().saturating_sub(self.queue.in_flight())
    }

    /// Tells RACK what arrived, and notes what overtook what.
    fn note_arrivals(&mut self, news: &News, una: Seq, now: Instant) {
        let shortest = self.shortest.unwrap_or(Duration::ZERO);
        news.arrived.iter().for_each(|arrived| self.rack.advance(arrived, shortest, now));
        if let Some(overtaken) = news.overtaken
            && (self.state != State::Loss || self.undo.is_open())
        {
            self.raise_reordering(overtaken, una);
        }
        if let Some(latest) = news.arrived.iter().max_by_key(|arrived| arrived.sent_at) {
            self.rack.update_window(latest.delivered_before, self.queue.delivered());
        }
    }

    /// More arrived before this than was thought possible (`tcp_check_sack_reordering`).
    fn raise_reordering(&mut self, overtaken: Seq, una: Seq) {
        let highest = self.queue.highest_sacked().unwrap_or(una);
        if !overtaken.before(highest) {
            return;
        }
        let segments = highest.since(overtaken).div_ceil(self.windows.mss());
        self.reordering = self.reordering.max(segments.min(THRESHOLD_MAX));
        self.reorders = true;
    }

    /// A D-SACK (`tcp_check_dsack`): true if what it says can be of something sent again, and not
    /// of a repetition by somebody on the path.
    fn take_dsack(&mut self, block: &SackBlock, before: Seq) -> bool {
        let segments = block.end.since(block.start).div_ceil(self.windows.mss()).max(1);
        self.dsacked = self.dsacked.saturating_add(segments);
        if self.dsacked > self.repetitions {
            return false;
        }
        if self.reorders && !self.is_of_probe(block) {
            self.rack.on_dsack();
        }
        let inside = self.queue.on_dsack(block);
        let explained = if block.end.at_or_before(before) { segments } else { inside };
        self.unexplained = self.unexplained.map(|count| count.saturating_sub(explained));
        true
    }

    fn is_of_probe(&self, block: &SackBlock) -> bool {
        self.probe.is_some_and(|probe| probe.is_repetition && probe.high == block.end)
    }

    /// An ACK (`tcp_ack`) that brought this news.
    fn on_ack(&mut self, ack: &Ack, news: &News) -> (Resend, Found) {
        self.end_probe(ack, news);
        let mut found = Found::default();
        let is_doubtful = ack.is_duplicate || ack.has_dsack || news.sacked > 0;
        let resend = match is_doubtful || self.state != State::Open {
            true => self.judge(ack, news, &mut found),
            false => Resend::Nothing,
        };
        self.adjust_cwnd(ack, news, found);
        (resend, found)
    }

    /// An ACK in doubt (`tcp_fastretrans_alert`): first whether the state is over, then what the
    /// ACK means in it.
    fn judge(&mut self, ack: &Ack, news: &News, found: &mut Found) -> Resend {
        if self.state == State::Open {
            self.undo.forget_resent();
        } else if self.state == State::Recovery && ack.una.at_or_after(self.high) {
            self.recovered(ack);
            if self.undo.is_open() {
                self.end_reduction();
            }
        }
        match self.state {
            State::Recovery => self.go_on_recovering(ack, found),
            State::Loss => {
                let resend = self.go_on_after_timeout(ack, news);
                self.find_losses(ack, found);
                match self.state == State::Open || found.lost_again {
                    true => self.watch(ack, found),
                    false => resend,
                }
            }
            State::Open | State::Disorder => self.watch(ack, found),
        }
    }

    /// Neither repairing nor after a timeout: is this a loss?
    fn watch(&mut self, ack: &Ack, found: &mut Found) -> Resend {
        if self.state <= State::Disorder {
            self.undo_needless();
        }
        self.find_losses(ack, found);
        if self.queue.lost() > 0 {
            self.enter_recovery(ack.next, ack.loss);
            return Resend::Lost;
        }
        self.keep_open(ack.next);
        Resend::Nothing
    }

    fn keep_open(&mut self, next: Seq) {
        let has_resent = self.queue.has_resent();
        if !has_resent {
            self.undo.forget_resent();
        }
        let quiet = self.queue.sacked() + self.queue.lost() == 0 && !has_resent;
        let state = if quiet { State::Open } else { State::Disorder };
        if self.state != state {
            self.state = state;
            self.high = next;
        }
    }

    /// Asks RACK, if it has heard anything new (`tcp_rack_mark_lost`).
    fn find_losses(&mut self, ack: &Ack, found: &mut Found) {
        if core::mem::take(&mut self.rack.has_news) {
            let more = self.detect(ack.smoothed, ack.now);
            found.lost += more.lost;
            found.lost_again |= more.lost_again;
            found.wait = more.wait;
        }
    }

    /// Takes for lost what is late (`tcp_rack_detect_loss`).
    fn detect(&mut self, smoothed: Duration, now: Instant) -> Found {
        let window = self.rack.window(Circumstances {
            reorders: self.reorders,
            is_urgent: self.state >= State::Recovery || self.queue.sacked() >= self.reordering,
            shortest: self.shortest.unwrap_or(Duration::ZERO),
            smoothed,
        });
        let mut wait = Duration::ZERO;
        let rack = &self.rack;
        let (lost, lost_again) =
            self.queue.mark_overtaken(|segment| rack.judge(segment, window, &mut wait, now));
        self.count_lost(lost);
        Found { lost, lost_again, wait: (!wait.is_zero()).then_some(wait) }
    }

    fn enter_recovery(&mut self, next: Seq, loss: Loss) {
        if !self.queue.has_resent() {
            self.undo.forget_resent();
        }
        self.remember();
        self.reduce(next, loss);
        self.state = State::Recovery;
    }

    /// In recovery, before its end.
    fn go_on_recovering(&mut self, ack: &Ack, found: &mut Found) -> Resend {
        // The hole was filled by what was late, not by what was sent again
        // (`tcp_try_undo_partial`).
        if ack.advances && self.undo.is_mistake(ack.echo, true) {
            self.raise_reordering(ack.before, ack.una);
            if self.queue.resent() > 0 {
                return Resend::Nothing;
            }
            self.queue.unmark_lost();
            self.restore();
            self.keep_open(ack.next);
        }
        if self.undo_needless() {
            self.keep_open(ack.next);
        }
        self.find_losses(ack, found);
        if self.state != State::Recovery {
            if self.queue.lost() == 0 {
                return Resend::Nothing;
            }
            self.enter_recovery(ack.next, ack.loss);
        }
        Resend::Lost
    }

    /// After a timeout, before its end (`tcp_process_loss`).
    fn go_on_after_timeout(&mut self, ack: &Ack, news: &News) -> Resend {
        let is_past = ack.una.at_or_after(self.high);
        if ack.advances && self.is_mistake(ack.echo) || self.frto && news.has_original {
            self.queue.unmark_lost();
            self.restore();
            self.state = State::Open;
            return Resend::Nothing;
        }
        if self.frto {
            if ack.next.after(self.high) {
                self.frto = news.sacked == 0 && !ack.is_duplicate;
            } else if ack.advances && !is_past {
                self.high = ack.next;
                self.frto = ack.can_send_new;
                if self.frto {
                    return Resend::NewFirst;
                }
            }
        }
        if is_past {
            self.recovered(ack);
            return Resend::Nothing;
        }
        Resend::Lost
    }

    /// All that was sent when the state was entered is acknowledged (`tcp_try_undo_recovery`).
    fn recovered(&mut self, ack: &Ack) {
        if self.is_mistake(ack.echo) {
            self.restore();
        } else {
            self.rack.on_recovered();
        }
        self.state = State::Open;
    }

    /// The reduction was one (`tcp_may_undo`).
    fn is_mistake(&self, echo: Option<u32>) -> bool {
        self.undo.is_open() && self.unexplained == Some(0) || self.undo.is_mistake(echo, true)
    }

    /// D-SACKs showed every repetition to be needless (`tcp_try_undo_dsack`).
    fn undo_needless(&mut self) -> bool {
        let is_mistake = self.undo.is_open() && self.unexplained == Some(0);
        if is_mistake {
            self.rack.on_mistake();
            self.restore();
        }
        is_mistake
    }

    /// Whether the probe has been answered, and whether there was a loss that it repaired
    /// (`tcp_process_tlp_ack`).
    fn end_probe(&mut self, ack: &Ack, news: &News) {
        let Some(probe) = self.probe.filter(|probe| ack.una.at_or_after(probe.high)) else {
            return;
        };
        let is_silent = ack.is_duplicate && news.sacked == 0;
        if !probe.is_repetition || ack.dsacks_probe || ack.una == probe.high && is_silent {
            self.probe = None;
        } else if ack.una.after(probe.high) {
            self.reduce(ack.next, ack.loss);
            self.end_reduction();
            self.keep_open(ack.next);
        }
    }

    /// The reordering window is over (`tcp_rack_reo_timeout`); true if something is lost.
    fn on_window_over(
        &mut self,
        next: Seq,
        (smoothed, loss): (Duration, Loss),
        now: Instant,
    ) -> bool {
        if self.detect(smoothed, now).lost == 0 {
            return false;
        }
        if self.state != State::Recovery {
            self.enter_recovery(next, loss);
            if self.paced.is_none() {
                self.reduce_in_step(1, false);
            }
        }
        true
    }

    /// The timer fired, `is_again`: on the same segment as before (`tcp_enter_loss`).
    fn enter_loss(&mut self, (una, next): (Seq, Seq), is_again: bool, loss: Loss, now: Instant) {
        let is_new = self.state < State::Recovery;
        if self.queue.is_reneged() {
            self.queue.unmark_sacked();
        }
        let rack = &self.rack;
        let mut is_first = true;
        let (lost, _) = self.queue.mark_lost(|segment| {
            let is_late = rack.time_left(segment, Duration::ZERO, now).is_zero();
            if core::mem::take(&mut is_first) || is_late { Verdict::Lost } else { Verdict::Waits }
        });
        self.count_lost(lost);
        if !self.state.has_reduced(self.high.after(una), is_again) {
            self.remember();
            self.halve(loss);
        }
        self.windows.collapse();
        self.set_cwnd_segments(self.queue.in_flight() + 1);
        self.tell_timeout();
        if is_new && self.queue.sacked() >= DUPACK_THRESHOLD {
            self.reordering = DUPACK_THRESHOLD;
        }
        self.state = State::Loss;
        self.high = next;
        self.probe = None;
        self.frto = is_new || is_again;
    }

    /// What could be sent has been.
    fn note_use(&mut self, una: Seq, next: Seq, is_limited: bool) {
        self.usage.note(Sent { is_limited, segments: self.queue.len(), una, next });
    }
}

impl Controller for LinuxSack {
    const REPAIR: Repair = Repair::Linux;

    fn windows(&self) -> &Windows {
        &self.windows
    }

    fn windows_mut(&mut self) -> &mut Windows {
        &mut self.windows
    }
}
