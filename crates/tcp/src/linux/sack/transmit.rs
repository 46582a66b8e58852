//! What the Linux sender with SACK sends, and when: the part of it that is an [`Endpoint`].

use super::queue::News;
use super::{Ack, LinuxSack, Probe, Resend, State};
use crate::congestion::AnyController;
use crate::connection::Endpoint;
use crate::linux::burst::{Burst, DEVICE_BURSTS, Flight};
use crate::linux::clock::fires_at;
use crate::sender::Fin;
use crate::timers::Timer;
use sansio::{Duration, EventKind, Instant, Sink};
use wire::tcp::{Header, SackBlock, Seq};

/// SACK blocks of one ACK at most (RFC 2018, section 3).
const BLOCKS_MAX: usize = 4;
/// A lone segment's ACK may be delayed by so much: the least RTO (`tcp_rto_min`).
const DELAYED_ACK_MAX: Duration = Duration::from_millis(200);
/// Least time that a probe or the reordering window waits (`TCP_TIMEOUT_MIN`: two jiffies in the
/// kernel's estimate, 2 ms).
const WAIT_MIN: Duration = Duration::from_millis(2);

/// The timers of which one runs.
const TIMERS: [Timer; 3] = [Timer::Retransmission, Timer::LossProbe, Timer::Reordering];

impl Endpoint {
    /// True if this is the sender.
    #[inline]
    pub(crate) fn is_linux_sack(&self) -> bool {
        matches!(self.controller, AnyController::LinuxSack(_))
    }

    #[inline]
    pub(crate) fn linux_sack(&mut self) -> Option<&mut LinuxSack> {
        match &mut self.controller {
            AnyController::LinuxSack(linux) => Some(linux),
            _ => None,
        }
    }

    /// An ACK that is not older than the last; `una` is already moved, from `before`.
    /// `is_duplicate`: it brings neither data nor another window.
    pub(crate) fn on_linux_sack_ack(
        &mut self,
        header: &Header,
        (before, is_duplicate): (Seq, bool),
        sink: &mut impl Sink,
        now: Instant,
    ) {
        let (una, next) = (self.sender.una, self.sender.max);
        let smoothed = self.rtt.smoothed();
        let Some(linux) = self.linux_sack() else { return };
        if linux.shortest.is_none() && !smoothed.is_zero() {
            // The handshake's.
            linux.shortest = Some(smoothed);
        }
        if linux.queue.len() == 0 {
            if split_blocks(header, una, next).0.is_some() {
                linux.probe = None;
            }
            return;
        }
        let high = linux.high;
        let entered = linux.state;
        let in_flight_before = linux.queue.in_flight();
        let mut news = News::default();
        let (dsack, blocks) = split_blocks(header, una, next);
        let dsacks_probe = dsack.is_some_and(|block| linux.is_of_probe(&block));
        let has_dsack = dsack.is_some_and(|block| linux.take_dsack(&block, before));
        let sacked_before = linux.queue.highest_sacked();
        linux.queue.sack(&blocks, high, &mut news);
        linux.queue.acknowledge(una, (high, sacked_before), &mut news);
        linux.note_arrivals(&news, una, now);
        let latest = self.take_round_trips(header, &news, sink, now);
        let ack =
            self.linux_sack_ack(header, (before, is_duplicate), (has_dsack, dsacks_probe), now);
        let ack = Ack { latest, in_flight_before, ..ack };
        let Some(linux) = self.linux_sack() else { return };
        let (resend, found) = linux.on_ack(&ack, &news);
        let has_entered = linux.state == State::Recovery && entered != State::Recovery;
        if has_entered {
            self.statistics.fast_retransmits += 1;
            self.report(sink, || EventKind::FastRetransmit { seq: una });
        }
        if let Some(wait) = found.wait {
            self.set_only(Timer::Reordering, wait + WAIT_MIN, now);
        } else if news.acked > 0 || self.is_later_than_first(&news) {
            self.set_probe_or_timeout(now);
        }
        match resend {
            Resend::Nothing => {}
            Resend::Lost => self.resend_sack_lost(sink, now),
            Resend::NewFirst => {
                let burst = self.send_linux_sack_bursts(DEVICE_BURSTS, sink, now);
                if self.sender.max == next {
                    self.linux_sack().into_iter().for_each(|linux| linux.frto = false);
                }
                if self.sender.max == next || matches!(burst, Burst::Send(_)) {
                    self.resend_sack_lost(sink, now);
                }
            }
        }
        self.report_window(sink);
    }

    fn linux_sack_ack(
        &self,
        header: &Header,
        (before, is_duplicate): (Seq, bool),
        (has_dsack, dsacks_probe): (bool, bool),
        now: Instant,
    ) -> Ack {
        let una = self.sender.una;
        let sent = self.sender.max.since(una);
        Ack {
            una,
            before,
            next: self.sender.max,
            advances: una.after(before),
            is_duplicate,
            has_dsack,
            dsacks_probe: has_dsack && dsacks_probe,
            echo: self.echoed_timestamp(header),
            can_send_new: u64::from(sent) < self.sender.buffer.len() && sent < self.sender.window,
            loss: self.loss(0),
            smoothed: self.rtt.smoothed(),
            latest: None,
            in_flight_before: 0,
            now,
        }
    }

    /// Round trips of what was sent once, or else by the timestamp (`tcp_ack_update_rtt`); returns
    /// that of the latest segment.
    fn take_round_trips(
        &mut self,
        header: &Header,
        news: &News,
        sink: &mut impl Sink,
        now: Instant,
    ) -> Option<Duration> {
        let since = |(first, last): (Instant, Instant)| (now.since(first), now.since(last));
        let acked = news.acked_sent_at.filter(|_| !news.is_ambiguous).map(since);
        let sacked = news.sacked_sent_at.map(since);
        let by_timestamp = || self.echoed_age(header, now).filter(|_| news.acked > 0);
        let sample = acked.or(sacked).map(|(oldest, _)| oldest).or_else(by_timestamp);
        let latest = sacked.or(acked).map(|(_, latest)| latest).or(sample);
        let bounds = (self.sender.una, self.sender.max);
        let linux = self.linux_sack()?;
        linux.shortest = linux.shortest.into_iter().chain(latest).min();
        linux.windows.on_ack(bounds, latest, now);
        sample.into_iter().for_each(|sample| self.take_sample(sample, sink));
        latest
    }

    /// The newly SACKed were sent before the oldest segment was, so the timeout of that one may
    /// begin anew.
    fn is_later_than_first(&mut self, news: &News) -> bool {
        let Some(linux) = self.linux_sack() else { return false };
        let first = linux.queue.first().map(|first| first.sent_at);
        news.sacked_sent_at.zip(first).is_some_and(|((sacked, _), first)| sacked < first)
    }

    /// The timer fired, or a handoff says so: what is late is taken for lost, and the oldest
    /// segment goes out (`tcp_retransmit_timer`).
    pub(crate) fn on_linux_sack_timeout(
        &mut self,
        attempt: u32,
        sink: &mut impl Sink,
        now: Instant,
    ) {
        let (una, max, loss) = (self.sender.una, self.sender.max, self.loss(0));
        if let Some(linux) = self.linux_sack() {
            linux.windows.on_ack((una, max), None, now);
            linux.enter_loss((una, max), attempt > 1, loss, now);
        }
        self.report_window(sink);
        self.resend_at(0, sink, now);
        self.set_only(Timer::Retransmission, self.rtt.timeout(), now);
    }

    /// The tail of a flight was not answered: one more segment, so that an ACK tells of it
    /// (`tcp_send_loss_probe`).
    pub(crate) fn on_loss_probe(&mut self, sink: &mut impl Sink, now: Instant) {
        let before = self.sender.max;
        let mss = self.sender.mss;
        let Some(linux) = self.linux_sack() else { return };
        if linux.probe.is_none() && linux.queue.len() > 0 {
            let last = linux.queue.len() as usize - 1;
            let is_repetition = self.send_next(mss, sink, now) == 0;
            self.note_paced(before, now);
            if is_repetition {
                // It is not under way again for that, nor to be explained (`__tcp_retransmit_skb`).
                self.repeat_at(last, sink, now);
            }
            let high = self.sender.max;
            if let Some(linux) = self.linux_sack() {
                linux.probe = Some(Probe { high, is_repetition });
                let is_limited = linux.room() == 0;
                linux.note_use(before, high, is_limited);
            }
            self.set_only(Timer::Retransmission, self.rtt.timeout(), now);
        } else {
            self.set_what_is_left(now);
        }
    }

    /// The reordering window is over (`tcp_rack_reo_timeout`).
    pub(crate) fn on_reordering_timeout(&mut self, sink: &mut impl Sink, now: Instant) {
        let (una, next) = (self.sender.una, self.sender.max);
        let given = (self.rtt.smoothed(), self.loss(0));
        let Some(linux) = self.linux_sack() else { return };
        linux.windows.on_ack((una, next), None, now);
        let entered = linux.state;
        if linux.on_window_over(next, given, now) {
            if entered != State::Recovery {
                self.statistics.fast_retransmits += 1;
                self.report(sink, || EventKind::FastRetransmit { seq: una });
            }
            self.resend_sack_lost(sink, now);
            self.report_window(sink);
        }
        if !self.timers.is_armed(Timer::Retransmission) {
            self.set_what_is_left(now);
        }
        self.transmit(sink, now);
    }

    /// Sends again what is taken for lost, as cwnd allows (`tcp_xmit_retransmit_queue`).
    pub(super) fn resend_sack_lost(&mut self, sink: &mut impl Sink, now: Instant) {
        let mut from = 0;
        loop {
            let Some(linux) = self.linux_sack() else { return };
            if linux.room() == 0 {
                return;
            }
            let Some(at) = linux.queue.next_to_resend(from) else { return };
            if self.awaits_pace(now) {
                return;
            }
            from = at + 1;
            let Some(linux) = self.linux_sack() else { return };
            if linux.state == State::Recovery {
                linux.prr.on_sent();
            }
            self.resend_at(at, sink, now);
            if at == 0 && !self.timers.is_armed(Timer::Reordering) {
                self.set_only(Timer::Retransmission, self.rtt.timeout(), now);
            }
        }
    }

    /// Sends the segment at this place of the queue again (`tcp_retransmit_skb`).
    fn resend_at(&mut self, at: usize, sink: &mut impl Sink, now: Instant) {
        let timestamp = self.timestamp(now);
        let Some(linux) = self.linux_sack().filter(|linux| linux.queue.bounds(at).is_some()) else {
            return;
        };
        linux.queue.on_resent(at);
        linux.undo.on_resent(timestamp);
        linux.unexplained = Some(linux.unexplained.unwrap_or(0) + 1);
        self.repeat_at(at, sink, now);
    }

    /// The sending alone.
    fn repeat_at(&mut self, at: usize, sink: &mut impl Sink, now: Instant) {
        let smoothed = self.rtt.smoothed();
        let Some(linux) = self.linux_sack() else { return };
        let Some((start, end)) = linux.queue.bounds(at) else { return };
        linux.before_sending(smoothed, now);
        linux.queue.on_repeated(at, now);
        linux.repetitions += 1;
        self.resend(start, end.since(start), sink, now);
        let segments = self.statistics.data_segments_sent;
        if let Some(paced) = self.linux_sack().and_then(|linux| linux.paced.as_mut()) {
            paced.rate.on_resent(at);
            paced.pacing.on_sent(end.since(start), segments, now);
        }
    }

    /// Sends at most so many bursts of new data; returns what came of the last.
    fn send_linux_sack_bursts(&mut self, most: u32, sink: &mut impl Sink, now: Instant) -> Burst {
        let mut burst = Burst::Nothing;
        for _ in 0..most {
            if self.new_data_awaits_pace(now) {
                return Burst::Nothing;
            }
            let (una, start, smoothed) = (self.sender.una, self.sender.max, self.rtt.smoothed());
            let Some(linux) = self.linux_sack() else { break };
            let flight = linux.flight(una);
            linux.before_sending(smoothed, now);
            burst = self.send_burst(flight, sink, now);
            self.note_paced(start, now);
            if !matches!(burst, Burst::Send(_)) {
                break;
            }
        }
        burst
    }

    /// Sends new data as cwnd allows (`tcp_write_xmit`).
    pub(crate) fn transmit_linux_sack(&mut self, sink: &mut impl Sink, now: Instant) {
        let (before, was_idle) = (self.sender.max, self.sender.flight() == 0);
        let waits = u64::from(self.sender.flight()) < self.sender.buffer.len();
        let burst = self.send_linux_sack_bursts(u32::MAX, sink, now);
        let (una, max) = (self.sender.una, self.sender.max);
        let Some(linux) = self.linux_sack().filter(|_| waits || max != before) else { return };
        let is_limited = burst == Burst::AwaitAck || linux.room() == 0;
        if max != before || is_limited {
            linux.note_use(una, max, is_limited);
        }
        if max != before && !self.set_probe(false, now) && was_idle {
            self.set_only(Timer::Retransmission, self.rtt.timeout(), now);
        }
    }

    /// The timer after an ACK of something (`tcp_set_xmit_timer`).
    fn set_probe_or_timeout(&mut self, now: Instant) {
        if self.sender.flight() == 0 {
            TIMERS.into_iter().for_each(|timer| self.timers.stop(timer));
        } else if !self.set_probe(true, now) {
            self.set_timeout_of_first(now);
        }
    }

    /// Arms the probe, if there may be one: after two round trips, and never later than the
    /// timeout (`tcp_schedule_loss_probe`; RFC 8985, 7.2).
    fn set_probe(&mut self, is_progress: bool, now: Instant) -> bool {
        let smoothed = self.rtt.smoothed();
        let timeout = match is_progress {
            true => self.rtt.timeout(),
            false => self.timeout_of_first(now),
        };
        let Some(linux) = self.linux_sack() else { return false };
        if linux.state != State::Open || linux.queue.len() == 0 || smoothed.is_zero() {
            return false;
        }
        let margin = if linux.queue.len() == 1 { DELAYED_ACK_MAX } else { WAIT_MIN };
        let wait = smoothed * 2 + margin;
        // A timeout that is over already is left to the probe.
        let wait = if timeout.is_zero() { wait } else { wait.min(timeout) };
        self.set_only(Timer::LossProbe, wait, now);
        true
    }

    /// The timeout, from when the oldest segment was sent if another timer has been running
    /// (`tcp_rearm_rto`).
    fn set_timeout_of_first(&mut self, now: Instant) {
        let other = [Timer::LossProbe, Timer::Reordering];
        match other.into_iter().any(|timer| self.timers.is_armed(timer)) {
            true => self.set_what_is_left(now),
            false => self.set_only(Timer::Retransmission, self.rtt.timeout(), now),
        }
    }

    /// Another timer was running, or has just fired: it has used up part of the timeout.
    fn set_what_is_left(&mut self, now: Instant) {
        let left = self.timeout_of_first(now);
        self.set_only(Timer::Retransmission, left, now);
    }

    /// How long until the oldest segment has been under way for a timeout
    /// (`tcp_rto_delta_us`).
    fn timeout_of_first(&mut self, now: Instant) -> Duration {
        let timeout = self.rtt.timeout();
        let Some(linux) = self.linux_sack() else { return timeout };
        let first = linux.queue.first();
        first.map_or(timeout, |first| timeout.saturating_sub(now.since(first.sent_at)))
    }

    /// Arms this one of the three timers for this span, in the kernel's ticks, which began when
    /// the timestamp clock did.
    fn set_only(&mut self, timer: Timer, span: Duration, now: Instant) {
        let span = match timer {
            Timer::Reordering => span,
            _ => span + self.pacing_delay(now),
        };
        let at = fires_at(span, self.timestamp_base, now);
        TIMERS
            .into_iter()
            .filter(|other| *other != timer)
            .for_each(|other| self.timers.stop(other));
        self.timers.set(timer, at);
    }

    /// A new segment was sent, up to `end`.
    pub(crate) fn on_linux_sack_sent(&mut self, (start, end): (Seq, Seq), now: Instant) {
        let last_byte = self.sender.una + self.sender.buffer.len() as u32;
        let fin = u32::from(self.sender.fin == Fin::Pending && end.after(last_byte));
        let Some(linux) = self.linux_sack() else { return };
        if let Some(paced) = &mut linux.paced {
            paced.rate.on_sent(now);
        }
        linux.queue.push((start, end), fin, now);
        if end.since(start) < linux.windows.mss() {
            linux.runt = Some(end);
        }
        if linux.state == State::Recovery {
            linux.prr.on_sent();
        }
    }
}

/// The D-SACK of an ACK (RFC 2883), and its other blocks that can be, ascending: as they come, the
/// latest first, they would look as if the network reordered.
fn split_blocks(header: &Header, una: Seq, next: Seq) -> (Option<SackBlock>, Vec<SackBlock>) {
    let blocks: Vec<SackBlock> = header.options.sack_blocks().take(BLOCKS_MAX).collect();
    let mut rest = blocks.iter();
    let is_inside = |inner: &SackBlock, outer: &SackBlock| {
        inner.start.at_or_after(outer.start) && inner.end.at_or_before(outer.end)
    };
    let dsack = blocks.first().copied().filter(|first| {
        first.start.before(first.end)
            && (first.start.before(una)
                || blocks.get(1).is_some_and(|second| is_inside(first, second)))
    });
    if dsack.is_some() {
        rest.next();
    }
    let can_be = |block: &&SackBlock| {
        block.start.before(block.end)
            && block.start.at_or_after(una)
            && block.end.at_or_before(next)
    };
    let mut others: Vec<SackBlock> = rest.filter(can_be).copied().collect();
    others.sort_by_key(|block| block.start.since(una));
    (dsack, others)
}

impl LinuxSack {
    fn flight(&self, una: Seq) -> Flight {
        Flight {
            room: self.room(),
            segments: self.queue.len(),
            oldest_sent_at: self.queue.first().map(|first| first.sent_at),
            is_repairing: self.state >= State::Recovery,
            has_runt: self.runt.is_some_and(|end| end.after(una)),
            shortest: self.shortest,
            pacing: self.paced.as_ref().map(|paced| paced.pacing),
        }
    }
}
