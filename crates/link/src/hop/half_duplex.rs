//! Two directions that share the air: while one sends, the other waits.
//!
//! Each direction is a hop as ever, and [`settle`] is the arbiter between them: whenever the air
//! becomes free, the direction that has waited longer for it sends one packet. A direction waits
//! from when its first packet was queued, or since it sent last: so two that always have something
//! to send take turns, packet by packet, as stations of IEEE 802.11 do on average (DCF gives each
//! the same chance per frame). Who waited equally long: the base station goes first. There are no
//! collisions; backoff and preambles are in the MAC efficiency and the host cost, as elsewhere.
//!
//! ```text
//!   down ──data──▶│      │──data──▶│      │──data──▶
//!                 │─ack─▶│         │─ack─▶│
//! ```
//!
//! Drivers call [`settle`] before each call of one of the hops; then neither decides alone.

use super::Hop;
use core::cmp::Ordering;
use sansio::Instant;

/// Serves both directions of one air up to `now`. Call it before any call of either hop, with that
/// call's `now`.
pub fn settle<T: Clone>(down: &mut Hop<T>, up: &mut Hop<T>, now: Instant) {
    // Both were free at the same instant when this was called last; what one has sent since, it
    // sent because nobody waited.
    match down.free_at.cmp(&up.free_at) {
        Ordering::Greater => down.sent_until = down.free_at,
        Ordering::Less => up.sent_until = up.free_at,
        Ordering::Equal => {}
    }
    let mut free_at = down.free_at.max(up.free_at);
    while free_at <= now && down.waiting + up.waiting > 0 {
        let up_waited_longer = up.contends_since() < down.contends_since();
        let up_first = up.waiting > 0 && (down.waiting == 0 || up_waited_longer);
        let (first, second) =
            if up_first { (&mut *up, &mut *down) } else { (&mut *down, &mut *up) };
        // Where an outage makes one wait, a shorter packet of the other may still fit before it.
        free_at = match first.send_next(free_at) {
            Ok(free_at) => free_at,
            Err(until) => match second.send_next(free_at) {
                Ok(free_at) => free_at,
                // Who is away is passed over: the air stays free for any other peer.
                Err(other) if down.peers().is_some() && until.min(other) > now => break,
                Err(other) => until.min(other),
            },
        };
    }
    down.free_at = free_at;
    up.free_at = free_at;
}

impl<T: Clone> Hop<T> {
    /// Since when it wants the air.
    fn contends_since(&self) -> Instant {
        if let Some(peers) = self.peers() {
            return peers.contends_since(self.sent_until);
        }
        self.queue.waits_since().max(self.sent_until)
    }

    /// Sends the next packet and returns when the air is free again; or until when it has to wait.
    pub(super) fn send_next(&mut self, start: Instant) -> Result<Instant, Instant> {
        if self.peers().is_some() {
            let sent = self.send_peers_next(start);
            self.sent_until = sent.unwrap_or(self.sent_until);
            return sent;
        }
        let Some(bytes) = self.queue.next_bytes() else { return Err(NEVER) };
        if self.judges && self.pauses(bytes, start) {
            return Err(self.free_at);
        }
        let Some(waiting) = self.queue.pop() else { return Err(NEVER) };
        self.waiting -= 1;
        self.note_length(start);
        self.transmit(waiting, start);
        self.sent_until = self.free_at;
        Ok(self.free_at)
    }
}

const NEVER: Instant = Instant::from_nanos(u64::MAX);
