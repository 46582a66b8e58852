//! Somebody else's program in the lab: it runs at the mobile host, and the environment tells it
//! where everything is.

use super::agent::Line;
use super::setup::RunSetup;
use super::{Lab, Stopped, network};
use crate::radio::Lateness;
use crate::sys::Clock;
use crate::sys::namespace;
use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::OsString;
use std::process::{Child, Command, ExitStatus};
use std::time::Duration;

/// Between two looks at the program.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Looks after SIGTERM until SIGKILL: 2 s.
const FAREWELL_LOOKS: u32 = 100;

impl Lab {
    /// Runs a program at the mobile host while the network does what `setup` says, but for its
    /// transfers. Its environment has the addresses `LH_FIXED_HOST`, `LH_MOBILE_HOST` and the
    /// namespaces `LH_NS_FIXED`, `LH_NS_BASE`, `LH_NS_MOBILE`, and `LH_BEGAN_NS`, when the run
    /// began (CLOCK_MONOTONIC, in nanoseconds): outages count from then. Returns how it ended, and
    /// how late the radio was.
    ///
    /// # Errors
    /// [`Stopped::Interrupted`], or whatever kept the program from running.
    pub fn run_command(
        &mut self,
        setup: &RunSetup,
        argv: &[OsString],
    ) -> Result<(ExitStatus, Lateness)> {
        let ran = self.command(setup, argv);
        ran.map_err(|error| super::interrupted_or(&self.signals, error))
    }

    fn command(&mut self, setup: &RunSetup, argv: &[OsString]) -> Result<(ExitStatus, Lateness)> {
        let (program, arguments) = argv.split_first().context("a command to run")?;
        self.apply_settings(setup)?;
        self.network.use_congestion_control(setup.sender.name())?;
        let line = Line::default();
        let mut agent = self.start_agent(setup, &line)?;
        let mut radio = self.start_radio(setup, &line)?;
        let clock = Clock::starting_now();
        radio.begin(clock)?;
        let names = self.network.names();
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env("LH_BEGAN_NS", clock.monotonic_at(sansio::Instant::ZERO).to_string())
            .env("LH_FIXED_HOST", network::FIXED_HOST.to_string())
            .env("LH_MOBILE_HOST", network::MOBILE_HOST.to_string())
            .env("LH_NS_FIXED", &names.fixed)
            .env("LH_NS_BASE", &names.base)
            .env("LH_NS_MOBILE", &names.mobile);
        let attempt = || format!("run {}", program.display());
        let child = namespace::within(&names.mobile, || command.spawn().with_context(attempt))?;
        let mut child = Running(child);
        let status = loop {
            if let Some(status) = child.0.try_wait().with_context(attempt)? {
                break status;
            }
            if self.signals.caught() {
                return Err(Stopped::Interrupted.into());
            }
            ensure!(radio.is_running(), "the radio stopped");
            if let Some(why) = agent.as_mut().and_then(super::agent::Agent::ended) {
                anyhow::bail!(why);
            }
            std::thread::sleep(LOOK_EVERY);
        };
        drop(child);
        Ok((status, radio.finish()?.lateness))
    }
}

/// The program, asked to end when nobody waits for it any more.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        if !matches!(self.0.try_wait(), Ok(None)) {
            return;
        }
        if let Some(process) = Pid::from_raw(self.0.id() as i32) {
            let _asked = kill_process(process, Signal::TERM);
        }
        for _ in 0..FAREWELL_LOOKS {
            if !matches!(self.0.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(LOOK_EVERY);
        }
        let _killed = self.0.kill();
        let _status = self.0.wait();
    }
}
