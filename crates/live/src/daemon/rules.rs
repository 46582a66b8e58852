//! The ingress rules that take packets from the kernel, and vanish with the daemon.
//!
//! They stand in a table with `flags owner`: the kernel removes it with the netlink socket of the
//! process that made it. That process is an `nft -i` which reads from a pipe of ours. If the
//! daemon is killed, nft dies with it (PR_SET_PDEATHSIG) or reads the end of its input, and plain
//! forwarding is back.

use crate::sys::Clock;
use crate::sys::process::dies_with_parent;
use anyhow::{Context, Result, bail, ensure};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use sansio::{Duration, Instant};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};

/// Installed rules; dropping them removes them.
#[derive(Debug)]
pub struct Rules {
    nft: Child,
    input: Option<ChildStdin>,
    /// Readable once nft has ended.
    ended: OwnedFd,
}

/// The table's name.
pub const TABLE: &str = "lasthop";
/// How long nft may take to install the rules.
const INSTALL_MAX: Duration = Duration::from_secs(3);
/// How long the rules of a killed daemon may take to go away.
const VANISH_MAX: Duration = Duration::from_secs(1);
/// Between two looks.
const LOOK_EVERY: std::time::Duration = std::time::Duration::from_millis(5);

impl Rules {
    /// Installs `text`, a list of nft commands that makes [`TABLE`], in the calling thread's
    /// network namespace; returns when the kernel has all of it. `at_last` is called right before
    /// the rules themselves, when table and chains are there.
    ///
    /// # Errors
    /// If nft is missing or refuses, or another daemon's table is there.
    pub fn install(text: &str, at_last: impl FnOnce()) -> Result<Self> {
        let clock = Clock::starting_now();
        // The rules of a daemon that was just killed go away in this moment.
        while list()?.is_some() {
            let in_time = clock.now() < Instant::ZERO + VANISH_MAX;
            ensure!(in_time, "the table {TABLE} is there: another daemon runs here");
            std::thread::sleep(LOOK_EVERY);
        }
        let mut command = Command::new("nft");
        command.arg("-i").stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut nft = dies_with_parent(command.process_group(0)).spawn().context("start nft")?;
        let input = nft.stdin.take();
        let process = Pid::from_child(&nft);
        let ended = pidfd_open(process, PidfdFlags::empty()).context("watch nft")?;
        let mut rules = Rules { nft, input, ended };
        let is_rule = |line: &&str| line.starts_with("add rule");
        let frame: Vec<&str> = text.lines().filter(|line| !is_rule(line)).collect();
        let chains = frame.iter().filter(|line| line.starts_with("add chain")).count();
        rules.say(&frame.join("\n"))?;
        rules.await_lines(text, chains, |line| line.trim_start().starts_with("chain "))?;
        at_last();
        let drops = text.lines().filter(|line| line.ends_with("drop")).count();
        rules.say(&text.lines().filter(is_rule).collect::<Vec<_>>().join("\n"))?;
        rules.await_lines(text, drops, |line| line.trim_end().ends_with("drop"))?;
        Ok(rules)
    }

    /// Removes the rules; `meanwhile` is called again and again until they are gone.
    pub fn withdraw(mut self, mut meanwhile: impl FnMut()) {
        // The end of its input ends nft, and with it the table.
        drop(self.input.take());
        let clock = Clock::starting_now();
        while clock.now() < Instant::ZERO + VANISH_MAX && matches!(self.nft.try_wait(), Ok(None)) {
            meanwhile();
        }
    }

    /// Gives nft lines to carry out.
    fn say(&mut self, lines: &str) -> Result<()> {
        let input = self.input.as_mut().context("write to nft")?;
        writeln!(input, "{lines}").context("write the rules to nft")?;
        input.flush().context("write the rules to nft")
    }

    /// Waits until the table has so many lines of a kind.
    fn await_lines(&mut self, text: &str, count: usize, is_one: fn(&str) -> bool) -> Result<()> {
        let clock = Clock::starting_now();
        loop {
            let installed = list()?.unwrap_or_default();
            if installed.lines().filter(|line| is_one(line)).count() >= count {
                return Ok(());
            }
            if let Some(status) = self.nft.try_wait().context("look after nft")? {
                bail!("nft -i ended ({status}) before the rules were installed:\n{text}");
            }
            let in_time = clock.now() < Instant::ZERO + INSTALL_MAX;
            ensure!(in_time, "nft did not install the rules:\n{text}{installed}");
            std::thread::sleep(LOOK_EVERY);
        }
    }
}

impl AsFd for Rules {
    /// Readable once the rules are gone, because nft has ended before the daemon.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ended.as_fd()
    }
}

impl Drop for Rules {
    fn drop(&mut self) {
        // The end of its input ends nft, and with it the table.
        drop(self.input.take());
        let _status = self.nft.wait();
    }
}

/// The table as nft lists it; `None` if there is none.
fn list() -> Result<Option<String>> {
    let output = Command::new("nft")
        .args(["list", "table", "netdev", TABLE])
        .output()
        .context("run nft list table")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(output.status.success().then_some(text))
}
