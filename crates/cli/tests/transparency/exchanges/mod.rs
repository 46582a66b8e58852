//! The exchanges: legal and peculiar. Each is a program of socket calls at both hosts that notes
//! what the applications see; the notes must be the same with the daemon and without.
//!
//! Map: [`options`] (what is negotiated), [`streams`] (bytes and windows), [`endings`] (FIN, RST,
//! ports again), [`waiting`] (keep-alives, timeouts, unreachable hosts), [`path`] (MTU, ECN, IP).

mod endings;
mod options;
mod path;
mod streams;
mod waiting;

pub(crate) use endings::close;

use crate::net::Family;
use crate::stage::Stage;
use anyhow::Result;

/// An exchange.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exchange {
    pub(crate) name: &'static str,
    /// Settings of both hosts, by path below `/proc/sys`.
    pub(crate) settings: &'static [(&'static str, &'static str)],
    pub(crate) family: Family,
    /// True if the outcome does not depend on the time that packets take: it is played on a path
    /// that loses some, too.
    pub(crate) on_loss: bool,
    pub(crate) handler: Handler,
    pub(crate) play: fn(&Stage<'_>) -> Result<()>,
}

/// Who has to handle the packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Handler {
    /// The daemon, which takes part, or all this shows nothing.
    Daemon,
    /// The kernel of the box: the daemon leaves them.
    Kernel,
    /// The same if the box is a router, and not if it is a bridge.
    Router,
    /// The daemon if the box is a router; through a bridge none comes.
    NobodyOnABridge,
}

impl Exchange {
    /// With default settings over IPv4, on every path.
    const fn new(name: &'static str, play: fn(&Stage<'_>) -> Result<()>) -> Exchange {
        Exchange {
            name,
            settings: &[],
            family: Family::V4,
            on_loss: true,
            handler: Handler::Daemon,
            play,
        }
    }

    const fn with(mut self, settings: &'static [(&'static str, &'static str)]) -> Exchange {
        self.settings = settings;
        self
    }

    const fn v6(mut self) -> Exchange {
        self.family = Family::V6;
        self
    }

    const fn handled_by(mut self, handler: Handler) -> Exchange {
        self.handler = handler;
        self
    }

    /// Not on the path that loses packets.
    const fn clean_only(mut self) -> Exchange {
        self.on_loss = false;
        self
    }
}

/// All exchanges, those that wait long first.
pub(crate) fn all() -> impl Iterator<Item = Exchange> {
    [path::ALL, waiting::ALL, streams::ALL, options::ALL, endings::ALL].concat().into_iter()
}
