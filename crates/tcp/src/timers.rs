//! The timers of one connection.

use sansio::{Instant, TimerTable};

/// What time can do to a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timer {
    /// The oldest unacknowledged segment is taken for lost (RFC 6298, 5).
    Retransmission = 0,
    /// A closed window is probed (RFC 9293, 3.8.6.1).
    Persist = 1,
    /// A lone segment is acknowledged (RFC 9293, 3.8.6.3).
    DelayedAck = 2,
    /// TIME-WAIT is over (RFC 9293, 3.4.2).
    TimeWait = 3,
    /// A flight whose tail was not answered is probed (RFC 8985, 7.2).
    LossProbe = 4,
    /// What others have overtaken is taken for lost (RFC 8985, 6.2, step 5).
    Reordering = 5,
    /// A burst that had to wait for its time may leave (`linux::pacing`).
    Pacing = 6,
}

impl Timer {
    const ALL: [Timer; 7] = [
        Timer::Retransmission,
        Timer::Persist,
        Timer::DelayedAck,
        Timer::TimeWait,
        Timer::LossProbe,
        Timer::Reordering,
        Timer::Pacing,
    ];

    /// The name in deadlines.
    #[inline]
    pub(crate) fn name(self) -> &'static str {
        match self {
            Timer::Retransmission => "tcp retransmission",
            Timer::Persist => "tcp persist",
            Timer::DelayedAck => "tcp delayed ack",
            Timer::TimeWait => "tcp time-wait",
            Timer::LossProbe => "tcp loss probe",
            Timer::Reordering => "tcp reordering window",
            Timer::Pacing => "tcp pacing",
        }
    }
}

/// A deadline for each timer, in the connection's own time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Timers(TimerTable<{ Timer::ALL.len() }>);

impl Timers {
    #[inline]
    pub(crate) fn set(&mut self, timer: Timer, at: Instant) {
        self.0.set(timer as usize, at);
    }

    #[inline]
    pub(crate) fn stop(&mut self, timer: Timer) {
        self.0.stop(timer as usize);
    }

    #[inline]
    pub(crate) fn is_armed(&self, timer: Timer) -> bool {
        self.0.is_armed(timer as usize)
    }

    #[inline]
    pub(crate) fn next(&self) -> Option<(Timer, Instant)> {
        self.0.next().map(|(timer, at)| (Timer::ALL[timer], at))
    }

    #[inline]
    pub(crate) fn pop_due(&mut self, now: Instant) -> Option<Timer> {
        self.0.pop_due(now).map(|timer| Timer::ALL[timer])
    }
}

impl PartialEq for Timers {
    fn eq(&self, other: &Self) -> bool {
        Timer::ALL
            .into_iter()
            .all(|timer| self.0.get(timer as usize) == other.0.get(timer as usize))
    }
}
