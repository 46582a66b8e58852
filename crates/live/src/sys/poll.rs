//! Waiting: epoll(7) with one timerfd, armed at absolute times of CLOCK_MONOTONIC.

use anyhow::{Context, Result};
use rustix::event::epoll;
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

/// Waits for descriptors and for one instant.
#[derive(Debug)]
pub struct Poll {
    epoll: OwnedFd,
    timer: OwnedFd,
    armed: Option<u64>,
}

/// The tokens of the descriptors that were ready.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ready {
    ready: u64,
    failed: u64,
}

impl Ready {
    /// True if the token is among them.
    pub fn contains(self, token: u64) -> bool {
        self.ready & 1 << token != 0
    }

    /// True if something is wrong with this one, such as that a socket's device is gone.
    pub fn has_failed(self, token: u64) -> bool {
        self.failed & 1 << token != 0
    }
}

/// The timer's own token; descriptors use smaller ones.
const TIMER: u64 = 63;
/// Descriptors reported per wait.
const READY_MAX: usize = 16;

impl Poll {
    /// Nothing to wait for yet.
    ///
    /// # Errors
    /// If the process is out of descriptors.
    pub fn new() -> Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).context("make an epoll instance")?;
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags).context("make a timer")?;
        let poll = Poll { epoll, timer, armed: None };
        // Told once for each time that it expires, so that nobody has to read it.
        let (data, flags) = (epoll::EventData::new_u64(TIMER), epoll::EventFlags::IN);
        epoll::add(&poll.epoll, &poll.timer, data, flags | epoll::EventFlags::ET)
            .context("watch the timer")?;
        Ok(poll)
    }

    /// Waits for this descriptor, too, to become readable. Tokens are the caller's, below 63.
    ///
    /// # Errors
    /// If epoll cannot watch such a descriptor, such as a plain file.
    pub fn add(&self, descriptor: impl AsFd, token: u64) -> Result<()> {
        let data = epoll::EventData::new_u64(token);
        epoll::add(&self.epoll, descriptor, data, epoll::EventFlags::IN)
            .with_context(|| format!("watch descriptor {token}"))
    }

    /// Watches a descriptor no longer.
    ///
    /// # Errors
    /// If it was not watched.
    pub fn remove(&self, descriptor: impl AsFd) -> Result<()> {
        epoll::delete(&self.epoll, descriptor).context("watch a descriptor no longer")
    }

    /// Waits until a descriptor is readable or CLOCK_MONOTONIC shows `until` nanoseconds, and
    /// returns the tokens of what is ready. A signal ends the wait early.
    ///
    /// # Errors
    /// If the system refuses to wait.
    pub fn wait(&mut self, until: Option<u64>) -> Result<Ready> {
        self.arm(until)?;
        let mut ready = Ready::default();
        let mut events = [const { std::mem::MaybeUninit::uninit() }; READY_MAX];
        match epoll::wait(&self.epoll, &mut events, None) {
            Ok((events, _)) => {
                for event in events.iter() {
                    let token = event.data.u64();
                    if token == TIMER {
                        self.armed = None;
                    } else {
                        let wrong = epoll::EventFlags::ERR | epoll::EventFlags::HUP;
                        let flags = event.flags;
                        let failed = flags.intersects(wrong);
                        ready.ready |= 1 << token;
                        ready.failed |= u64::from(failed) << token;
                    }
                }
            }
            Err(Errno::INTR) => {}
            Err(error) => return Err(error).context("wait for packets"),
        }
        Ok(ready)
    }

    fn arm(&mut self, until: Option<u64>) -> Result<()> {
        if self.armed == until {
            return Ok(());
        }
        // All zero disarms, so an instant of zero is rounded up.
        let nanos = until.map_or(0, |at| at.clamp(1, i64::MAX as u64));
        let value = Timespec {
            tv_sec: (nanos / 1_000_000_000) as i64,
            tv_nsec: (nanos % 1_000_000_000) as i64,
        };
        let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: value };
        timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &once).context("arm the timer")?;
        self.armed = until;
        Ok(())
    }
}
