//! The fast path's ear: what the fixed hosts send, while the kernel forwards it.
//!
//! ```text
//!   idle ── a frame ─▶ listening ── an ACK, or each millisecond ─▶ the ring is drained
//!     ▲                    │
//!     └── 1 ms of nothing ─┘
//! ```
//!
//! To be woken for each data packet would cost more than to look at it. So only the first one
//! wakes; then the ring is drained before ACKs are handled, which are what needs to know, and once
//! a millisecond besides. Each frame carries the time at which it arrived.

use super::Arrived;
use crate::sys::Clock;
use crate::sys::packet_ring::Ring;
use crate::sys::packet_socket::Listen;
use crate::sys::poll::Poll;
use crate::sys::realtime_nanos;
use anyhow::Result;
use rustix::fd::{AsFd, BorrowedFd};
use sansio::{Duration, Instant, Side};

/// Frames on one device, only looked at.
#[derive(Debug)]
pub struct Tap {
    ring: Ring,
    clock: Clock,
    state: State,
    /// Taken from the ring.
    waiting: Vec<Arrived>,
    /// Frames since the clock last had the ring drained.
    recent: usize,
}

/// Who has the ring drained, but for ACKs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The next frame.
    Idle,
    /// The clock, at this instant.
    Listening(Instant),
}

/// The ring is drained so often at least. It holds 4096 frames, so it has room for 4 million in a
/// second.
const DRAINED_EVERY: Duration = Duration::from_millis(1);

impl Tap {
    /// Begins to listen to TCP on a device.
    ///
    /// # Errors
    /// If the device does not exist, or the kernel has no rings for packet sockets.
    pub fn open(device: &str, clock: Clock) -> Result<Self> {
        let ring = Ring::open(device, Listen::Tcp)?;
        Ok(Tap { ring, clock, state: State::Idle, waiting: Vec::new(), recent: 0 })
    }

    /// To be called after each wait; `is_ready`: the ring's token was there.
    pub(super) fn attend(&mut self, poll: &Poll, token: u64, is_ready: bool) -> Result<()> {
        if is_ready {
            // Nobody shall be woken again, not even in vain.
            poll.remove(&self.ring)?;
            self.state = State::Listening(self.clock.now() + DRAINED_EVERY);
        }
        let now = self.clock.now();
        if matches!(self.state, State::Listening(due_at) if due_at <= now) {
            self.drain();
            self.state = match std::mem::take(&mut self.recent) {
                0 => State::Idle,
                _ => State::Listening(now + DRAINED_EVERY),
            };
            if self.state == State::Idle {
                // It is watched already if `watch` was called meanwhile, as when the mode changes.
                let _unknown = poll.remove(&self.ring);
                // A frame that is in the ring by now wakes at once.
                poll.add(&self.ring, token)?;
            }
        }
        Ok(())
    }

    pub(super) fn ring(&self) -> &Ring {
        &self.ring
    }

    /// When [`Tap::attend`] is due though nothing wakes anybody.
    pub(super) fn next_at(&self) -> Option<Instant> {
        match self.state {
            State::Idle => None,
            State::Listening(due_at) => Some(due_at),
        }
    }

    /// Takes every frame that has arrived by now, unless it found no room.
    pub(super) fn drain(&mut self) {
        // Realtime may be set at any time, so each time it is compared anew.
        let (now, realtime) = (self.clock.now(), realtime_nanos());
        let waiting = &mut self.waiting;
        self.recent += self.ring.drain(usize::MAX, |tapped| {
            let age = Duration::from_nanos(realtime.saturating_sub(tapped.realtime_nanos));
            let at = Some(now - age);
            waiting.push(Arrived { side: Side::WIRED, frame: tapped.frame, at });
        });
    }

    /// What was drained, in order.
    pub(super) fn take(&mut self, into: &mut Vec<Arrived>) {
        into.append(&mut self.waiting);
    }

    /// Frames that found no room, since this was last asked.
    pub(super) fn overruns(&mut self) -> u64 {
        self.ring.overruns()
    }
}

impl AsFd for Tap {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ring.as_fd()
    }
}
