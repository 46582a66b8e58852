//! What the receiver acknowledges: new bytes, blocks beyond a hole, or the same again.

use super::gap::Idle;
use super::{Edges, Stream};
use crate::decode::Segment;
use crate::verdicts::Way;
use sansio::{Duration, Instant};
use wire::tcp::{Flags, Seq};

impl Stream {
    pub(super) fn on_ack(&mut self, segment: &Segment) {
        let ack = segment.tcp.ack;
        let Some(Edges { una, nxt }) = self.edges else { return self.open(ack) };
        if ack.after(nxt) {
            let missed = ack.since(nxt);
            if missed < 1 << 30 {
                self.counts.missed_bytes += u64::from(missed);
            }
            self.open(ack);
            return;
        }
        let newly = self.on_blocks(segment, una, nxt);
        if ack.after(una) {
            return self.on_progress(segment, una);
        }
        let is_duplicate = ack == una
            && segment.payload_bytes == 0
            && !segment.tcp.flags.contains(Flags::FIN)
            && una != nxt
            && (newly.is_some() || self.window.is_same(segment.tcp.window));
        if !is_duplicate {
            return;
        }
        self.dupacks += 1;
        let floor = self.trips.floor.unwrap_or(Duration::ZERO);
        self.arrived_until = self.arrived_until.max(segment.at - floor);
        if let Some(wait) = &mut self.wait {
            wait.dupacks += 1;
        }
        if self.dupacks == 1 {
            // What overtook the lost segment was sent right after it.
            let next = self.way.iter().nth(1).map(|sent| segment.at.since(sent.first_at));
            let floor = self.trips.floor;
            self.queue_at_dupack =
                newly.or(next).zip(floor).map(|(it, floor)| it.saturating_sub(floor));
        }
    }

    /// Marks what SACK blocks show; the round trip of the newest of it.
    pub(super) fn on_blocks(&mut self, segment: &Segment, una: Seq, nxt: Seq) -> Option<Duration> {
        let mut newest: Option<Instant> = None;
        let repeats = usize::from(reports_repeat(segment));
        self.counts.unneeded += repeats as u64;
        for block in segment.tcp.options.sack_blocks().skip(repeats) {
            let inside = block.start.at_or_after(una) && block.end.at_or_before(nxt);
            if !inside || !block.start.before(block.end) {
                continue;
            }
            let mut marked = 0;
            for sent in self.way.within(block.start, block.end).filter(|sent| !sent.sacked) {
                sent.sacked = true;
                marked += 1;
                if sent.times == 1 {
                    newest = newest.max(Some(sent.first_at));
                }
            }
            if let Some(wait) = &mut self.wait {
                wait.newly_sacked += marked;
            }
        }
        self.arrived_until = self.arrived_until.max(newest.unwrap_or(Instant::ZERO));
        let sample = newest.map(|sent_at| segment.at.since(sent_at));
        if let Some(sample) = sample {
            self.trips.take(sample, true);
            self.verdicts.on_sample(sample, newest?, Way::ToReceiver);
        }
        sample
    }

    pub(super) fn on_progress(&mut self, segment: &Segment, una: Seq) {
        let (ack, at) = (segment.tcp.ack, segment.at);
        let waited = self.wait.as_ref().map(|wait| at.since(wait.since));
        if waited.is_some_and(|waited| waited >= self.threshold()) {
            self.stall(at, Some(segment));
        }
        // A FIN takes a sequence number, and is no payload.
        let fin = u32::from(self.fin.is_some_and(|fin| fin.after(una) && fin.at_or_before(ack)));
        self.counts.acked_bytes += u64::from(ack.since(una) - fin);
        self.fill(una, ack);
        let mut covered = 0;
        let mut newest: Option<Instant> = None;
        let mut is_clear = true;
        let mut bytes = 0;
        let mut unneeded = 0;
        let echo = segment.tcp.options.timestamps().map(|it| it.echo);
        self.way.acknowledge(ack, |sent| {
            covered += 1;
            bytes += sent.end.since(sent.start);
            is_clear &= sent.times == 1 && !sent.sacked;
            if sent.times == 1 || is_earlier(echo, sent.again_value) {
                newest = newest.max(Some(sent.first_at));
                unneeded += u64::from(sent.times > 1);
            }
        });
        if let Some(losses) = &mut self.losses {
            losses.packets = losses.packets.saturating_sub(unneeded);
        }
        self.arrived_until = self.arrived_until.max(newest.unwrap_or(Instant::ZERO));
        if let Some(sent_at) = newest.filter(|_| is_clear) {
            // Such an ACK waited for no second segment (RFC 1122, 4.2.3.2).
            const SOON: Duration = Duration::from_millis(10);
            let next = self.way.lowest().map(|next| next.first_at.since(sent_at) < SOON);
            let is_prompt = covered >= 2 || bytes > self.mss() || next.unwrap_or(false);
            let sample = at.since(sent_at);
            self.trips.take(sample, is_prompt);
            self.verdicts.on_sample(sample, sent_at, Way::ToReceiver);
        }
        self.dupacks = 0;
        self.queue_at_dupack = None;
        if let Some(edges) = &mut self.edges {
            edges.una = ack;
        }
        if self.losses.as_ref().is_some_and(|losses| ack.at_or_after(losses.recover))
            && let Some(mut losses) = self.losses.take()
        {
            losses.marked = self.was_marked(losses.from);
            self.verdicts.on_losses(losses, at);
        }
        let all = self.edges.is_none_or(|edges| edges.una == edges.nxt);
        self.window.take(segment.tcp.window);
        let window_bytes = self.window.bytes;
        self.idle = all.then_some(Idle { since: at, window_bytes, opened_at: None, missing: None });
        self.wait = if all { None } else { Some(self.begin_wait(at)) };
        let paths = (&mut self.trips, &mut self.echo_trips);
        self.verdicts.resolve(at, paths, &self.excess);
    }
}

/// True if its first SACK block is a D-SACK (RFC 2883): data that the receiver had already.
pub(super) fn reports_repeat(segment: &Segment) -> bool {
    let first = segment.tcp.options.sack_blocks().next();
    first.is_some_and(|block| block.end.at_or_before(segment.tcp.ack))
}

/// An ACK answers the first transmission if it echoes an earlier timestamp than the second's
/// (RFC 3522).
pub(super) fn is_earlier(echo: Option<u32>, again: Option<u32>) -> bool {
    echo.zip(again).is_some_and(|(echo, again)| Seq(echo).before(Seq(again)))
}
