//! The sender that Linux calls `reno`, without SACK: RFC 6582 as `net/ipv4/tcp_input.c` has it.
//!
//! It is not the NewReno of the RFC, and over a full queue the two differ by tens of percent:
//!
//! * duplicate ACKs are counted as segments that arrived (`sacked_out`), and what may be sent
//!   follows from what is in flight, so cwnd is never inflated;
//! * during a recovery cwnd follows RFC 6937 ([`prr`]). It knows of one loss at a time: when a
//!   queue has lost more than ssthresh segments, the rest count as in flight, nothing may be sent,
//!   and only the timer goes on;
//! * more duplicate ACKs than segments in flight are taken for reordering, and raise the number
//!   that stands for a loss (`tcp_check_reno_reordering`);
//! * a timeout takes all for lost and sends it again in slow start; a loss among that waits for
//!   the next timeout;
//! * timestamps show mistakes, which are taken back ([`undo`]; RFC 3522), and so does F-RTO
//!   (RFC 5682, section 2);
//! * cwnd opens only while it is what limits (RFC 7661);
//! * what may be sent goes out in bursts ([`burst`]).
//!
//! What is decided is here, on plain values; what is sent is in `transmit`. Not modelled: BBR's
//! pacing, ECN, the halving of cwnd during idleness.

mod burst;
mod clock;
pub(crate) mod pacing;
pub(crate) mod prr;
mod queue;
pub(crate) mod rate;
pub(crate) mod sack;
mod transmit;
pub(crate) mod undo;
mod usage;

use crate::config::Config;
use crate::congestion::{Controller, DUPACK_THRESHOLD, Loss, Repair, Windows};
use prr::{Prr, Step};
use queue::{Acked, Queue};
use undo::{Before, Undo};
use wire::tcp::Seq;

/// The state of the sender.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Linux {
    windows: Windows,
    state: State,
    queue: Queue,
    /// Duplicate ACKs, each for a segment that arrived out of order (`sacked_out`).
    arrived: u32,
    /// Duplicate ACKs that stand for a loss (`reordering`).
    threshold: u32,
    /// What was sent when the state was entered (`high_seq`).
    high: Seq,
    prr: Prr,
    undo: Undo,
    /// A timeout may yet turn out to be a mistake (RFC 5682).
    frto: bool,
    use_of_cwnd: Use,
    /// Where the last segment ended that was not full.
    runt: Option<Seq>,
}

/// What the sender believes (`tcp_ca_state`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum State {
    /// Nothing is wrong.
    Open,
    /// Some duplicate ACKs came.
    Disorder,
    /// A loss is being repaired.
    Recovery,
    /// The timer fired.
    Loss,
}

impl State {
    /// True if a timeout finds the window reduced already: it is reduced once, however often the
    /// timer fires on it. `is_open`: not all is acknowledged that was sent when the state was
    /// entered; `is_again`: the timer fired on the same segment before.
    fn has_reduced(self, is_open: bool, is_again: bool) -> bool {
        match self {
            State::Open | State::Disorder => false,
            State::Recovery => is_open,
            State::Loss => is_open && is_again,
        }
    }
}

/// Whether cwnd is what limits the sender (`tcp_cwnd_validate`).
#[derive(Clone, Copy, Debug, PartialEq)]
struct Use {
    is_limited: bool,
    /// The most segments in flight since `until` was set.
    segments_max: u32,
    until: Seq,
}

/// An ACK, as far as it concerns the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ack {
    /// The oldest unacknowledged number, this ACK included.
    una: Seq,
    /// The next new number.
    next: Seq,
    /// It repeats the last one; otherwise it acknowledges something.
    is_duplicate: bool,
    /// The timestamp it echoes.
    echo: Option<u32>,
    /// There is something new to send, and the peer's window has room for it.
    can_send_new: bool,
    /// The circumstances, should it show a loss.
    loss: Loss,
}

/// What an ACK leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Resend {
    Nothing,
    /// What is taken for lost, as cwnd allows.
    Lost,
    /// New data first, to see whether a timeout was a mistake (RFC 5682, 2.1, step 2b).
    NewFirst,
}

/// What one ACK changed, in segments.
#[derive(Clone, Copy, Debug, Default)]
struct Progress {
    delivered: u32,
    newly_lost: u32,
}

/// Largest number of duplicate ACKs that may stand for a loss (`tcp_max_reordering`).
const THRESHOLD_MAX: u32 = 300;

impl Linux {
    pub(crate) fn new(config: &Config, mss: u32) -> Self {
        Linux {
            windows: Windows::new(config, mss),
            state: State::Open,
            queue: Queue::default(),
            arrived: 0,
            threshold: DUPACK_THRESHOLD,
            high: Seq(0),
            prr: Prr::default(),
            undo: Undo::default(),
            frto: false,
            use_of_cwnd: Use { is_limited: false, segments_max: 0, until: Seq(0) },
            runt: None,
        }
    }

    /// Segments in the network, as far as the sender knows (`tcp_packets_in_flight`).
    fn in_flight(&self) -> u32 {
        let left = self.arrived + self.queue.lost();
        (self.queue.len() + self.queue.resent()).saturating_sub(left)
    }

    fn cwnd_segments(&self) -> u32 {
        self.windows.cwnd() / self.windows.mss()
    }

    fn set_cwnd_segments(&mut self, segments: u32) {
        self.windows.set_cwnd(segments.max(1) * self.windows.mss());
    }

    /// Segments that cwnd lets out.
    fn room(&self) -> u32 {
        self.cwnd_segments().saturating_sub(self.in_flight())
    }

    /// An ACK (`tcp_ack`); `acked` is what it took from the queue.
    fn on_ack(&mut self, ack: &Ack, acked: Acked) -> Resend {
        let mut progress = Progress::default();
        if acked.segments > 0 {
            progress.delivered += self.eat_arrived(acked.segments);
        }
        let resend = if ack.is_duplicate || self.state != State::Open {
            self.judge(ack, acked, &mut progress)
        } else {
            Resend::Nothing
        };
        self.adjust_cwnd(ack, acked, progress);
        resend
    }

    /// One of the segments acknowledged filled the hole, the others had arrived before
    /// (`tcp_remove_reno_sacks`); returns how many are news.
    fn eat_arrived(&mut self, segments: u32) -> u32 {
        let news = segments.saturating_sub(self.arrived).max(1);
        self.arrived = self.arrived.saturating_sub(segments - 1);
        self.raise_threshold(segments);
        news
    }

    /// A duplicate ACK (`tcp_add_reno_sack`).
    fn add_arrived(&mut self, ack: &Ack, progress: &mut Progress) {
        if ack.is_duplicate {
            let before = self.arrived;
            self.arrived += 1;
            self.raise_threshold(0);
            progress.delivered += self.arrived.saturating_sub(before);
        }
    }

    /// More arrived than was sent: the network reorders (`tcp_check_reno_reordering`).
    fn raise_threshold(&mut self, acked: u32) {
        let holes = self.queue.lost().max(1).min(self.queue.len());
        let most = self.queue.len() - holes;
        if self.arrived > most {
            self.arrived = most;
            self.threshold = (self.queue.len() + acked).min(THRESHOLD_MAX);
        }
    }

    /// An ACK in doubt (`tcp_fastretrans_alert`): first whether the state is over, then what the
    /// ACK means in it.
    fn judge(&mut self, ack: &Ack, acked: Acked, progress: &mut Progress) -> Resend {
        let is_past = ack.una.at_or_after(self.high);
        match self.state {
            State::Open => self.undo.forget_resent(),
            State::Recovery if is_past => {
                self.arrived = 0;
                if !self.recovered(ack) {
                    return Resend::Nothing;
                }
                if self.undo.is_open() {
                    self.windows.deflate();
                }
            }
            _ => {}
        }
        match self.state {
            State::Recovery => self.go_on_recovering(ack, acked, progress),
            State::Loss => match self.go_on_after_timeout(ack, acked, progress) {
                resend if self.state == State::Open => self.watch(ack, resend, progress),
                resend => resend,
            },
            State::Open | State::Disorder => self.watch(ack, Resend::Nothing, progress),
        }
    }

    /// Neither repairing nor after a timeout: is this a loss?
    fn watch(&mut self, ack: &Ack, resend: Resend, progress: &mut Progress) -> Resend {
        if !ack.is_duplicate {
            self.arrived = 0;
        }
        self.add_arrived(ack, progress);
        if self.shows_loss(progress) {
            self.enter_recovery(ack);
            return Resend::Lost;
        }
        if !self.queue.has_resent() {
            self.undo.forget_resent();
        }
        self.keep_open(ack);
        resend
    }

    /// True if the oldest segment is lost; marks it (`tcp_newreno_mark_lost`).
    fn shows_loss(&mut self, progress: &mut Progress) -> bool {
        if self.arrived >= self.threshold {
            progress.newly_lost += u32::from(self.queue.mark_first_lost());
        }
        self.queue.lost() > 0
    }

    fn keep_open(&mut self, ack: &Ack) {
        let quiet = self.arrived + self.queue.lost() == 0 && !self.queue.has_resent();
        let state = if quiet { State::Open } else { State::Disorder };
        if self.state != state {
            self.state = state;
            self.high = ack.next;
        }
    }

    fn enter_recovery(&mut self, ack: &Ack) {
        if !self.queue.has_resent() {
            self.undo.forget_resent();
        }
        self.remember();
        self.high = ack.next;
        self.prr = Prr::new(self.cwnd_segments());
        self.windows.halve(ack.loss);
        self.state = State::Recovery;
    }

    /// What an undo restores. Half of a window that was reduced before is no threshold to go back
    /// to (`tcp_current_ssthresh`).
    fn remember(&mut self) {
        let cwnd = self.windows.cwnd();
        let ssthresh = self.windows.ssthresh().max(cwnd / 2 + cwnd / 4);
        self.undo.begin(Before { cwnd, ssthresh });
    }

    /// In recovery, before its end: a partial ACK shows the next loss (RFC 6582, 3.2), or that
    /// there was none.
    fn go_on_recovering(&mut self, ack: &Ack, acked: Acked, progress: &mut Progress) -> Resend {
        if ack.is_duplicate {
            self.add_arrived(ack, progress);
            return Resend::Lost;
        }
        if !self.undo.is_mistake(ack.echo, ack.una.before(self.high)) {
            progress.newly_lost += u32::from(self.queue.mark_first_lost());
            return Resend::Lost;
        }
        // As far as the segment was late, others overtook it (`tcp_check_sack_reordering`).
        let others = if self.arrived > 0 { self.queue.len() } else { 0 };
        self.threshold = self.threshold.max((acked.segments + others).min(THRESHOLD_MAX));
        if self.queue.resent() > 0 {
            return Resend::Nothing;
        }
        if !self.queue.has_resent() {
            self.undo.forget_resent();
        }
        self.take_back();
        self.keep_open(ack);
        if !self.shows_loss(progress) {
            return Resend::Nothing;
        }
        self.enter_recovery(ack);
        Resend::Lost
    }

    /// After a timeout, before its end (`tcp_process_loss`).
    fn go_on_after_timeout(&mut self, ack: &Ack, acked: Acked, progress: &mut Progress) -> Resend {
        let is_past = ack.una.at_or_after(self.high);
        let is_late = self.undo.is_mistake(ack.echo, !is_past);
        if !ack.is_duplicate && is_late {
            self.take_back();
            self.hold_at_high(ack);
            return Resend::Nothing;
        }
        if self.frto
            && let Some(resend) = self.probe_for_mistake(ack, acked, is_past)
        {
            return resend;
        }
        if is_past {
            self.recovered(ack);
            return Resend::Nothing;
        }
        let sent_new = ack.next.after(self.high);
        if sent_new && ack.is_duplicate {
            self.add_arrived(ack, progress);
        } else if !ack.is_duplicate {
            self.arrived = 0;
        }
        Resend::Lost
    }

    /// F-RTO (RFC 5682, 2.1); `None` if it has nothing to say about this ACK.
    fn probe_for_mistake(&mut self, ack: &Ack, acked: Acked, is_past: bool) -> Option<Resend> {
        let is_original =
            !acked.ambiguous && acked.first_end.is_some_and(|end| end.at_or_before(self.high));
        if is_original {
            self.take_back();
            if !self.hold_at_high(ack) {
                self.state = State::Open;
            }
            return Some(Resend::Nothing);
        }
        if ack.next.after(self.high) {
            self.frto &= !ack.is_duplicate;
        } else if !ack.is_duplicate && !is_past {
            self.high = ack.next;
            self.frto = ack.can_send_new;
            return self.frto.then_some(Resend::NewFirst);
        }
        None
    }

    /// All that was sent when the state was entered is acknowledged. False if the state is held
    /// until something above is, so that duplicate ACKs of what was sent twice start nothing
    /// (RFC 6582, 3.2; `tcp_try_undo_recovery`).
    fn recovered(&mut self, ack: &Ack) -> bool {
        if self.undo.is_mistake(ack.echo, false) {
            self.restore();
        }
        let is_held = self.hold_at_high(ack);
        if !is_held {
            self.state = State::Open;
        }
        !is_held
    }

    fn hold_at_high(&mut self, ack: &Ack) -> bool {
        let is_held = ack.una == self.high;
        if is_held && !self.queue.has_resent() {
            self.undo.forget_resent();
        }
        is_held
    }

    /// No segment was lost after all.
    fn take_back(&mut self) {
        self.queue.unmark_lost();
        self.restore();
    }

    fn restore(&mut self) {
        if let Some(before) = self.undo.take() {
            self.windows.restore(before.cwnd, before.ssthresh);
        }
    }

    /// cwnd after an ACK (`tcp_cong_control`).
    fn adjust_cwnd(&mut self, ack: &Ack, acked: Acked, progress: Progress) {
        let Progress { delivered, newly_lost } = progress;
        if self.state == State::Recovery {
            if delivered > 0 {
                let in_flight = self.in_flight();
                let ssthresh = self.windows.ssthresh() / self.windows.mss();
                let is_clean = !ack.is_duplicate && newly_lost == 0;
                let count = self.prr.on_ack(Step { delivered, in_flight, ssthresh, is_clean });
                self.set_cwnd_segments(in_flight + count);
            }
        } else if acked.segments > 0 && self.is_cwnd_limited() {
            self.windows.open(delivered * self.windows.mss());
        }
    }

    /// In slow start, half of cwnd in use is enough (`tcp_is_cwnd_limited`).
    fn is_cwnd_limited(&self) -> bool {
        let in_slow_start = self.windows.cwnd() < self.windows.ssthresh();
        let Use { is_limited, segments_max, .. } = self.use_of_cwnd;
        is_limited || in_slow_start && self.cwnd_segments() < 2 * segments_max
    }

    /// What could be sent has been, up to `next` (`tcp_cwnd_validate`).
    fn note_use(&mut self, una: Seq, next: Seq, (has_sent, awaits_ack): (bool, bool)) {
        let is_limited = awaits_ack || self.room() == 0;
        let Use { is_limited: was_limited, segments_max, until } = self.use_of_cwnd;
        let is_more = !was_limited && self.queue.len() > segments_max;
        if (has_sent || is_limited) && (una.at_or_after(until) || is_limited || is_more) {
            self.use_of_cwnd = Use { is_limited, segments_max: self.queue.len(), until: next };
        }
    }

    /// The timer fired, `is_again`: on the same segment as before (`tcp_enter_loss`).
    fn enter_loss(&mut self, una: Seq, next: Seq, is_again: bool, loss: Loss) {
        let is_new = self.state < State::Recovery;
        self.arrived = 0;
        self.queue.mark_all_lost();
        if !self.state.has_reduced(self.high.after(una), is_again) {
            self.remember();
            self.windows.halve(loss);
        }
        self.windows.collapse();
        self.state = State::Loss;
        self.high = next;
        self.frto = is_new || is_again;
    }
}

impl Controller for Linux {
    const REPAIR: Repair = Repair::Linux;

    fn windows(&self) -> &Windows {
        &self.windows
    }

    fn windows_mut(&mut self) -> &mut Windows {
        &mut self.windows
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Congestion;
    use sansio::Instant;

    const MSS: u32 = 1000;

    /// So many segments are under way.
    fn linux(segments: u32) -> Linux {
        let mut linux = Linux::new(&Config::linux(Congestion::LinuxReno), MSS);
        (1..=segments).for_each(|end| linux.on_sent(Seq(end * MSS), MSS, Instant::ZERO));
        linux
    }

    fn ack(una: u32, next: u32, is_duplicate: bool) -> Ack {
        let loss = Loss { flight: 0, send_window: 0, attempt: 0 };
        let (una, next) = (Seq(una * MSS), Seq(next * MSS));
        Ack { una, next, is_duplicate, echo: None, can_send_new: false, loss }
    }

    #[test]
    fn more_duplicate_acks_than_segments_raise_the_threshold() {
        let mut linux = linux(6);
        (0..5).for_each(|_| {
            linux.on_ack(&ack(0, 6, true), Acked::default());
        });
        assert_eq!((linux.state, linux.arrived, linux.threshold), (State::Recovery, 5, 3));
        linux.on_ack(&ack(0, 6, true), Acked::default());
        assert_eq!((linux.arrived, linux.threshold), (5, 6), "one of six is lost");
    }

    #[test]
    fn rfc_7661_cwnd_opens_only_while_it_limits() {
        let mut linux = linux(4);
        linux.note_use(Seq(0), Seq(4 * MSS), (true, false));
        for una in 1..=4 {
            let acked = linux.queue.acknowledge(Seq(una * MSS));
            linux.on_ack(&ack(una, 4, false), acked);
        }
        assert_eq!(linux.cwnd_segments(), 10, "ten may be sent, four were");
        (5..=24).for_each(|end| linux.on_sent(Seq(end * MSS), MSS, Instant::ZERO));
        linux.note_use(Seq(4 * MSS), Seq(24 * MSS), (true, false));
        let acked = linux.queue.acknowledge(Seq(6 * MSS));
        linux.on_ack(&ack(6, 24, false), acked);
        assert_eq!(linux.cwnd_segments(), 12);
    }
}
