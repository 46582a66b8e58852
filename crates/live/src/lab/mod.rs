//! The lab: a fixed host, a base station and a mobile host with real kernels in network namespaces,
//! the emulated hops between them, and the real daemon.
//!
//! ```text
//!   lh-*-fh            lh-*-air             lh-*-bs             lh-*-air           lh-*-mh
//!   fixed host ─veth─ [wired hop] ─veth─ base station ═veth═ [radio hop] ─veth─ mobile host
//!   10.78.1.1                   10.78.1.254     10.78.2.254                     10.78.2.1
//! ```
//!
//! Everything the lab makes bears a name that begins with `lh-` and the process's number, lies in
//! namespaces of its own and goes away with them, however the run ends; what a killed run left is
//! removed by the next one ([`network::clean`]). Nothing outside is changed.
//!
//! Map: [`network`] (namespaces, devices, settings), [`setup`] (what a run is), [`transfer`] (bytes
//! between kernels), [`messages`] (how long small ones take), [`agent`] (the daemon's process),
//! [`run`] (one run), [`command`] (somebody else's program in the lab).

pub mod agent;
pub mod command;
pub mod messages;
pub mod network;
pub mod run;
pub mod setup;
pub mod transfer;

pub use agent::Program;
pub use network::{Cleaned, clean};
pub use run::LabRun;
pub use setup::{Amount, Direction, Drill, DrillStep, Messages, RunSetup, Sender, Traffic};

use crate::doctor;
use crate::sys::namespace;
use crate::sys::signals::Signals;
use anyhow::Result;
use network::Network;

/// A network of three hosts, for any number of runs one after the other.
#[derive(Debug)]
pub struct Lab {
    network: Network,
    program: Program,
    signals: Signals,
}

/// Why the lab stopped, where the caller has to tell it from an ordinary error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Stopped {
    /// Ctrl-C or SIGTERM.
    #[error("interrupted")]
    Interrupted,
    /// The machine cannot do it; the doctor's reason.
    #[error("this machine cannot run the lab:\n{0}")]
    Unable(String),
}

/// Makes the process root of a user namespace if it is not root already. To be called before the
/// process has a second thread.
///
/// # Errors
/// [`Stopped::Unable`] if the system allows neither.
pub fn prepare() -> Result<()> {
    namespace::become_root().map_err(|error| Stopped::Unable(format!("{error:#}")).into())
}

impl Lab {
    /// Builds the network. Labs with different `lane`s may stand side by side in one process.
    ///
    /// # Errors
    /// [`Stopped::Unable`] if the machine lacks something; [`Stopped::Interrupted`]; anything that
    /// fails on the way. What was built is then taken down.
    pub fn open(lane: u32, program: Program) -> Result<Self> {
        let missing = doctor::missing_for_lab();
        if !missing.is_empty() {
            return Err(Stopped::Unable(missing).into());
        }
        let signals = Signals::catch()?;
        network::clean()?;
        let network = Network::build(&network::Names::new(lane));
        let network = network.map_err(|error| interrupted_or(&signals, error))?;
        Ok(Lab { network, program, signals })
    }

    /// The network.
    pub fn network(&self) -> &Network {
        &self.network
    }
}

/// An error that follows from Ctrl-C is Ctrl-C.
fn interrupted_or(signals: &Signals, error: anyhow::Error) -> anyhow::Error {
    if signals.caught() { Stopped::Interrupted.into() } else { error }
}
