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
    /// True if the packets are such that a router has to handle itself: the daemon leaves them.
    pub(crate) of_the_kernel: bool,
    pub(crate) play: fn(&Stage<'_>) -> Result<()>,
}

impl Exchange {
    /// With default settings over IPv4, on every path.
    const fn new(name: &'static str, play: fn(&Stage<'_>) -> Result<()>) -> Exchange {
        let settings = &[];
        Exchange { name, settings, family: Family::V4, on_loss: true, of_the_kernel: false, play }
    }

    const fn with(mut self, settings: &'static [(&'static str, &'static str)]) -> Exchange {
        self.settings = settings;
        self
    }

    const fn v6(mut self) -> Exchange {
        // The lab's hops have no IPv6 addresses.
        (self.family, self.on_loss) = (Family::V6, false);
        self
    }

    const fn of_the_kernel(mut self) -> Exchange {
        self.of_the_kernel = true;
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
