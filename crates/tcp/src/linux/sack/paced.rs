//! BBR in this sender: what it is told, and when what it lets out may leave (`tcp_pacing_check`).

use super::queue::News;
use super::{Ack, Found, LinuxSack, State};
use crate::config::Congestion;
use crate::congestion::bbr::{self, Bbr, Repair};
use crate::connection::Endpoint;
use crate::linux::pacing::Pacing;
use crate::linux::rate::DeliveryRate;
use crate::sender::Fin;
use crate::timers::Timer;
use sansio::{Duration, Instant, Sink};
use wire::tcp::Seq;

/// BBR, what it measures, and what it steers beside cwnd.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Paced {
    bbr: Bbr,
    pub(super) rate: DeliveryRate,
    pub(super) pacing: Pacing,
    /// Segments taken for lost since the connection began (`lost`).
    lost: u32,
}

impl LinuxSack {
    /// So many segments more are taken for lost.
    pub(super) fn count_lost(&mut self, count: u32) {
        if let Some(paced) = &mut self.paced {
            paced.lost = paced.lost.wrapping_add(count);
        }
    }

    /// Tells BBR of a loss, if there is BBR.
    pub(super) fn tell_loss(&mut self) -> bool {
        let cwnd = self.cwnd_segments();
        let Some(paced) = &mut self.paced else { return false };
        paced.bbr.on_loss(cwnd);
        true
    }

    /// Tells BBR that the timer fired.
    pub(super) fn tell_timeout(&mut self) {
        let (delivered, mss) = (self.queue.delivered(), self.windows.mss());
        if let Some(paced) = &mut self.paced {
            paced.bbr.on_timeout((delivered, paced.lost), paced.rate.delivered_at(), mss);
        }
    }

    /// Tells BBR that there was no loss, if there is BBR.
    pub(super) fn tell_mistake(&mut self) -> bool {
        let delivered = self.queue.delivered();
        let Some(paced) = &mut self.paced else { return false };
        paced.bbr.on_mistake((delivered, paced.lost), paced.rate.delivered_at());
        true
    }

    /// BBR sets cwnd and the pace after an ACK.
    pub(super) fn pace(&mut self, ack: &Ack, news: &News, found: Found) {
        let Some(paced) = &mut self.paced else { return };
        let (delivered, in_flight) = (self.queue.delivered(), self.queue.in_flight());
        let shortest = self.shortest.unwrap_or(Duration::ZERO);
        let arrived = (&news.arrived[..], news.acked);
        let sample = paced.rate.on_ack(arrived, delivered, shortest, ack.now);
        let is_runt = news.acked == 1 && ack.una.since(ack.before) < self.windows.mss();
        let is_held_back = paced.bbr.on_ack(
            &bbr::Ack {
                sample,
                acked: news.arrived.len() as u32,
                lost: found.lost,
                delivered,
                lost_total: paced.lost,
                in_flight_before: ack.in_flight_before,
                in_flight,
                round_trip: ack.latest,
                may_be_delayed: is_runt && news.sacked == 0 && sample.delivered == 1,
                smoothed: ack.smoothed,
                repair: match self.state {
                    State::Open | State::Disorder => Repair::Nothing,
                    State::Recovery => Repair::Loss,
                    State::Loss => Repair::Timeout,
                },
                delivered_at: paced.rate.delivered_at(),
                now: ack.now,
            },
            (&mut self.windows, &mut paced.pacing),
        );
        if is_held_back {
            paced.rate.limit(delivered, in_flight);
        }
    }

    /// The application writes: if there was next to nothing to send and the path had room, what is
    /// in flight says little about it (`tcp_rate_check_app_limited`).
    fn note_idle_application(&mut self) {
        let (delivered, in_flight) = (self.queue.delivered(), self.queue.in_flight());
        let is_idle = self.room() > 0 && self.queue.lost() <= self.queue.resent();
        if let Some(paced) = self.paced.as_mut().filter(|_| is_idle) {
            paced.rate.limit(delivered, in_flight);
        }
    }

    /// Something is about to be sent (`CA_EVENT_TX_START`).
    pub(super) fn before_sending(&mut self, smoothed: Duration, now: Instant) {
        let is_first = self.queue.in_flight() == 0;
        if let Some(paced) = self.paced.as_mut().filter(|paced| paced.rate.is_app_limited())
            && is_first
        {
            paced.bbr.on_restart(smoothed, (&mut self.windows, &mut paced.pacing), now);
        }
    }
}

impl Endpoint {
    /// The connection is made: with BBR, pacing begins.
    pub(crate) fn start_pacing(&mut self, now: Instant) {
        let (smoothed, seed) = (self.rtt.smoothed(), self.timestamp_base);
        let is_paced = self.config.congestion == Congestion::Bbr;
        let Some(linux) = self.linux_sack().filter(|_| is_paced) else { return };
        let mut pacing = Pacing::new();
        let bbr = Bbr::new(seed, smoothed, (&linux.windows, &mut pacing), now);
        linux.paced = Some(Box::new(Paced { bbr, rate: DeliveryRate::new(), pacing, lost: 0 }));
    }

    /// The application writes.
    pub(crate) fn note_idle_application(&mut self) {
        let unsent = self.unsent();
        let mss = u64::from(self.sender.mss);
        if let Some(linux) = self.linux_sack().filter(|_| unsent < mss) {
            linux.note_idle_application();
        }
    }

    /// Bytes that were never sent, and the FIN.
    fn unsent(&self) -> u64 {
        let sender = &self.sender;
        let fin = u64::from(sender.fin == Fin::Pending);
        (sender.buffer.len() + fin).saturating_sub(u64::from(sender.max.since(sender.una)))
    }

    /// True if new data has to wait for its time; a timer tells when that has come.
    pub(super) fn new_data_awaits_pace(&mut self, now: Instant) -> bool {
        self.unsent() > 0 && self.awaits_pace(now)
    }

    /// True if the next burst has to wait.
    pub(super) fn awaits_pace(&mut self, now: Instant) -> bool {
        let Some(linux) = self.linux_sack() else { return false };
        let Some(paced) = &linux.paced else { return false };
        let next_at = paced.pacing.next_at();
        if next_at <= now {
            return false;
        }
        if !self.timers.is_armed(Timer::Pacing) {
            self.timers.set(Timer::Pacing, next_at);
        }
        true
    }

    /// A burst of new data left, from `start` on.
    pub(super) fn note_paced(&mut self, start: Seq, now: Instant) {
        let bytes = self.sender.max.since(start);
        let segments = self.statistics.data_segments_sent;
        if let Some(paced) = self.linux_sack().and_then(|linux| linux.paced.as_mut())
            && bytes > 0
        {
            paced.pacing.on_sent(bytes, segments, now);
        }
    }

    /// So much longer a timer runs that waits for an answer: the next burst does not leave before
    /// (`tcp_pacing_delay`).
    pub(super) fn pacing_delay(&mut self, now: Instant) -> Duration {
        let paced = self.linux_sack().and_then(|linux| linux.paced.as_ref());
        paced.map_or(Duration::ZERO, |paced| paced.pacing.wait(now))
    }

    /// The time of the next burst has come (`tcp_tsq_write`).
    pub(crate) fn on_pacing_timer(&mut self, sink: &mut impl Sink, now: Instant) {
        if self.state.may_transmit() {
            self.resend_sack_lost(sink, now);
            self.transmit(sink, now);
        }
    }
}
