//! What becomes of cwnd: by CUBIC or Reno and PRR, unless BBR takes their place (`paced`).

use super::queue::News;
use super::{Ack, Found, LinuxSack, State};
use crate::congestion::{DUPACK_THRESHOLD, Loss};
use crate::linux::prr::{Prr, Step};
use crate::linux::undo::Before;
use wire::tcp::Seq;

impl LinuxSack {
    /// What an undo restores (`tcp_init_undo`). Half of a window that was reduced before is no
    /// threshold to go back to (`tcp_current_ssthresh`).
    pub(super) fn remember(&mut self) {
        let cwnd = self.windows.cwnd();
        let ssthresh = self.windows.ssthresh().max(cwnd / 2 + cwnd / 4);
        self.undo.begin(Before { cwnd, ssthresh });
        let probes = u32::from(self.probe.is_some_and(|probe| probe.is_repetition));
        self.unexplained = Some(self.queue.resent() + probes).filter(|count| *count > 0);
    }

    /// `tcp_init_cwnd_reduction`.
    pub(super) fn reduce(&mut self, next: Seq, loss: Loss) {
        self.high = next;
        self.probe = None;
        self.prr = Prr::new(self.cwnd_segments());
        self.halve(loss);
    }

    /// `tcp_undo_cwnd_reduction`.
    pub(super) fn restore(&mut self) {
        if let Some(before) = self.undo.take()
            && !self.tell_mistake()
        {
            self.windows.restore(before.cwnd, before.ssthresh);
        }
        self.rack.has_news = true;
    }

    /// cwnd after an ACK (`tcp_cong_control`).
    pub(super) fn adjust_cwnd(&mut self, ack: &Ack, news: &News, found: Found) {
        if self.paced.is_some() {
            return self.pace(ack, news, found);
        }
        let delivered = news.arrived.len() as u32;
        if self.state == State::Recovery {
            let is_clean = ack.advances && found.lost == 0;
            self.reduce_in_step(delivered, is_clean);
            return;
        }
        // With much reordering new SACKs are progress, too (`tcp_may_raise_cwnd`).
        let progresses = news.acked > 0 || self.reordering > DUPACK_THRESHOLD && news.sacked > 0;
        let is_slow_start = self.windows.cwnd() < self.windows.ssthresh();
        if progresses && self.usage.may_open(self.cwnd_segments(), is_slow_start) {
            self.windows.open(delivered * self.windows.mss());
        }
    }

    pub(super) fn reduce_in_step(&mut self, delivered: u32, is_clean: bool) {
        if delivered > 0 {
            let in_flight = self.queue.in_flight();
            let ssthresh = self.windows.ssthresh() / self.windows.mss();
            let count = self.prr.on_ack(Step { delivered, in_flight, ssthresh, is_clean });
            self.set_cwnd_segments(in_flight + count);
        }
    }

    /// ssthresh after a loss (`ssthresh` of `tcp_congestion_ops`).
    pub(super) fn halve(&mut self, loss: Loss) {
        if !self.tell_loss() {
            self.windows.halve(loss);
        }
    }

    /// cwnd at the end of a reduction (`tcp_end_cwnd_reduction`).
    pub(super) fn end_reduction(&mut self) {
        if self.paced.is_none() {
            self.windows.deflate();
        }
    }
}
