//! Congestion control: one small trait, one file per sender.
//!
//! The endpoint says what happened, the controller answers one question: how large is cwnd. How a
//! loss is repaired follows from the sender too ([`Repair`]), but repairing is the endpoint's work,
//! so that these files hold only what makes Tahoe Tahoe and Reno Reno.

pub(crate) mod bbr;
mod cubic;
mod newreno;
mod reno;
mod sack;
mod sack1;
mod tahoe;
mod vegas;
mod windows;

pub(crate) use vegas::Vegas;
pub(crate) use windows::Windows;

use crate::config::{Config, Congestion};
use crate::linux::Linux;
use crate::linux::sack::LinuxSack;
use newreno::NewReno;
use reno::Reno;
use sack::Sack;
use sack1::Sack1;
use tahoe::Tahoe;

/// Duplicate ACKs that stand for a loss (RFC 5681, 3.2; CI-TCP-6).
pub(crate) const DUPACK_THRESHOLD: u32 = 3;

/// A sender's windows, told what happens.
pub(crate) trait Controller {
    /// How this sender repairs what duplicate ACKs show.
    const REPAIR: Repair;

    /// [`Controller::REPAIR`], of a value.
    fn repair(&self) -> Repair {
        Self::REPAIR
    }

    /// Its windows.
    fn windows(&self) -> &Windows;

    /// Its windows, to change.
    fn windows_mut(&mut self) -> &mut Windows;

    /// An ACK outside recovery acknowledged this many bytes for the first time.
    #[inline]
    fn on_new_ack(&mut self, bytes: u32) {
        self.windows_mut().open(bytes);
    }

    /// Another duplicate ACK came during fast recovery.
    fn on_dupack(&mut self) {}

    /// Duplicate ACKs or SACK blocks show a loss; fast retransmit follows.
    fn on_fast_retransmit(&mut self, loss: Loss) {
        self.windows_mut().reduce(loss);
    }

    /// The ACK came that ends recovery.
    fn on_recovered(&mut self) {}

    /// The retransmission timer fired.
    fn on_timeout(&mut self, loss: Loss) {
        self.windows_mut().halve(loss);
        self.windows_mut().collapse();
    }

    /// Nothing was sent for a retransmission timeout.
    fn on_idle(&mut self) {
        self.windows_mut().restart();
    }

    /// How much may be in flight, bytes; at least one segment.
    #[inline]
    fn cwnd(&self) -> u32 {
        self.windows().cwnd()
    }

    /// Slow start threshold, bytes.
    fn ssthresh(&self) -> u32 {
        self.windows().ssthresh()
    }
}

/// How a sender repairs a loss that it sees without a timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repair {
    /// It goes back to the hole and sends everything again from there.
    GoBackN,
    /// It sends the one segment again and goes on sending new ones (RFC 5681, 3.2).
    FastRecovery,
    /// The same, and each partial ACK makes it send the next one again (RFC 6582).
    PartialAcks,
    /// It fills the holes that SACK blocks show (RFC 6675).
    Scoreboard,
    /// The same, by a counter of packets (Fall and Floyd 1996).
    Pipe,
    /// It has a state machine of its own ([`crate::linux`]).
    Linux,
}

/// The circumstances of a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Loss {
    /// Bytes sent and not acknowledged.
    pub flight: u32,
    /// The peer's window, bytes.
    pub send_window: u32,
    /// Which timeout in a row of the same segment, from 1; 0 for a fast retransmit.
    pub attempt: u32,
}

/// The controller of one endpoint: a closed set of types, so that calls are direct.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum AnyController {
    Tahoe(Tahoe),
    Reno(Reno),
    NewReno(NewReno),
    /// It is large.
    Vegas(Box<Vegas>),
    Sack1(Sack1),
    Sack(Sack),
    // Boxed since they are large.
    Linux(Box<Linux>),
    LinuxSack(Box<LinuxSack>),
}

/// The same call on whichever controller it is.
macro_rules! each {
    ($self:ident, $controller:ident => $call:expr) => {
        match $self {
            AnyController::Tahoe($controller) => $call,
            AnyController::Reno($controller) => $call,
            AnyController::NewReno($controller) => $call,
            AnyController::Vegas($controller) => $call,
            AnyController::Sack1($controller) => $call,
            AnyController::Sack($controller) => $call,
            AnyController::Linux($controller) => $call,
            AnyController::LinuxSack($controller) => $call,
        }
    };
}

impl AnyController {
    /// The configured controller; without SACK blocks, the senders that need them are Reno.
    pub(crate) fn new(config: &Config, mss: u32, sack: SackUse) -> Self {
        let windows = Windows::new(config, mss);
        match (config.congestion, sack) {
            (Congestion::Tahoe, _) => AnyController::Tahoe(Tahoe::new(windows)),
            (Congestion::Sack1, SackUse::Agreed) => AnyController::Sack1(Sack1::new(windows)),
            (Congestion::Sack, SackUse::Agreed) => AnyController::Sack(Sack::new(windows)),
            (Congestion::Vegas, _) => AnyController::Vegas(Box::new(Vegas::new(config, windows))),
            (Congestion::NewReno, _) => AnyController::NewReno(NewReno::new(config, windows)),
            (Congestion::LinuxReno | Congestion::Cubic | Congestion::Bbr, SackUse::Agreed) => {
                AnyController::LinuxSack(Box::new(LinuxSack::new(config, mss)))
            }
            (Congestion::LinuxReno | Congestion::Cubic | Congestion::Bbr, _) => {
                AnyController::Linux(Box::new(Linux::new(config, mss)))
            }
            (Congestion::Reno | Congestion::Sack1 | Congestion::Sack, _) => {
                AnyController::Reno(Reno::new(windows))
            }
        }
    }

    /// A partial ACK came, which only some senders know.
    pub(crate) fn on_partial_ack(&mut self, bytes: u32) {
        if let AnyController::NewReno(controller) = self {
            controller.on_partial_ack(bytes);
        }
    }

    pub(crate) fn repair(&self) -> Repair {
        each!(self, controller => controller.repair())
    }

    #[inline]
    pub(crate) fn on_new_ack(&mut self, bytes: u32) {
        each!(self, controller => controller.on_new_ack(bytes));
    }

    pub(crate) fn on_dupack(&mut self) {
        each!(self, controller => controller.on_dupack());
    }

    pub(crate) fn on_fast_retransmit(&mut self, loss: Loss) {
        each!(self, controller => controller.on_fast_retransmit(loss));
    }

    pub(crate) fn on_recovered(&mut self) {
        each!(self, controller => controller.on_recovered());
    }

    pub(crate) fn on_timeout(&mut self, loss: Loss) {
        each!(self, controller => controller.on_timeout(loss));
    }

    /// Nothing was sent for so many retransmission timeouts (RFC 2861).
    pub(crate) fn decay(&mut self, timeouts: u32) {
        each!(self, controller => controller.windows_mut().decay(timeouts));
    }

    /// Slow start from one segment.
    pub(crate) fn collapse(&mut self) {
        each!(self, controller => controller.windows_mut().collapse());
    }

    pub(crate) fn on_idle(&mut self) {
        each!(self, controller => controller.on_idle());
    }

    #[inline]
    pub(crate) fn cwnd(&self) -> u32 {
        each!(self, controller => controller.cwnd())
    }

    pub(crate) fn ssthresh(&self) -> u32 {
        each!(self, controller => controller.ssthresh())
    }
}

/// Whether both ends agreed on SACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SackUse {
    Agreed,
    Refused,
}
