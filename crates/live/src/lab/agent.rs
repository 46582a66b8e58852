//! The daemon as a process of its own in the base station's namespace, so that killing it is real.

use super::network;
use crate::sys::namespace;
use anyhow::{Context, Result, bail, ensure};
use sansio::{Notice, Side};
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How to start a daemon. The lab adds `--wired DEVICE --radio DEVICE --radio-high DEVICE --mobile
/// PREFIX --scheme NAME --control -`, where `-` is [`crate::daemon::Control::Standard`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// The executable: the running one, as a rule.
    pub path: PathBuf,
    /// What comes before the lab's arguments.
    pub arguments: Vec<OsString>,
}

/// A running daemon; dropping it ends it.
#[derive(Debug)]
pub struct Agent {
    child: Child,
    line: Line,
    answers: Receiver<String>,
}

/// The way to give orders to whichever daemon runs: it may be killed and started again.
#[derive(Clone, Debug, Default)]
pub struct Line(Arc<Mutex<Option<ChildStdin>>>);

/// How long a daemon may take to begin, and to answer. With a processor of its own, some ms.
const ANSWER_MAX: Duration = Duration::from_secs(30);
/// Looks at a daemon that was asked to end, until it is killed: 1 s.
const FAREWELL_LOOKS: u32 = 500;
/// Between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(2);

impl Line {
    /// Gives an order. Nobody may be there, or be killed at this moment: then it is lost.
    pub fn order(&self, order: &str) {
        let mut line = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(input) = line.as_mut() {
            let _written = input.write_all(format!("{order}\n").as_bytes());
        }
    }

    /// Passes on what became known about the link.
    pub fn notice(&self, notice: Notice) {
        match notice {
            Notice::LinkDown(Side::RADIO) => self.order("link down"),
            Notice::LinkUp(Side::RADIO) => self.order("link up"),
            Notice::Forget => self.order("forget"),
            _ => {}
        }
    }

    fn connect(&self, input: Option<ChildStdin>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = input;
    }
}

impl Agent {
    /// Starts a daemon on the lab's devices for all mobile hosts and waits until it has taken over.
    ///
    /// # Errors
    /// If it does not start; its own message is part of the error.
    pub fn start(program: &Program, scheme: &str, base: &str, line: &Line) -> Result<Self> {
        Agent::start_for(network::MOBILE_PREFIX, program, scheme, (base, line))
    }

    /// The same for the mobile hosts in `prefix` alone.
    ///
    /// # Errors
    /// As [`Agent::start`].
    pub fn start_for(
        prefix: &str,
        program: &Program,
        scheme: &str,
        (base, line): (&str, &Line),
    ) -> Result<Self> {
        let mut program = program.clone();
        let devices = ["--wired", network::WIRED, "--radio", network::RADIO];
        let more = ["--radio-high", network::RADIO_HIGH, "--mobile", prefix];
        let rest = ["--scheme", scheme, "--control", "-"];
        program.arguments.extend(devices.iter().chain(&more).chain(&rest).map(Into::into));
        Agent::spawn(&program, base, line)
    }

    /// Starts a daemon with nothing but the program's own arguments, `--control -` among them, and
    /// waits until it has taken over.
    ///
    /// # Errors
    /// As [`Agent::start`].
    pub fn spawn(program: &Program, base: &str, line: &Line) -> Result<Self> {
        let mut command = Command::new(&program.path);
        command
            .args(&program.arguments)
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let attempt = || format!("start the daemon {}", program.path.display());
        // It ends with its input, so it does not outlive a killed lab.
        let mut child = namespace::within(base, || command.spawn().with_context(attempt))?;
        line.connect(child.stdin.take());
        let output = child.stdout.take().with_context(attempt)?;
        let (said, answers) = mpsc::channel();
        std::thread::spawn(move || {
            for answer in BufReader::new(output).lines().map_while(Result::ok) {
                if said.send(answer).is_err() {
                    return;
                }
            }
        });
        let mut agent = Agent { child, line: line.clone(), answers };
        match agent.answers.recv_timeout(ANSWER_MAX) {
            Ok(answer) => {
                ensure!(answer == "ready", "the daemon said {answer:?} instead of ready");
                Ok(agent)
            }
            Err(RecvTimeoutError::Timeout) => {
                agent.end();
                bail!("the daemon did not begin within {} s", ANSWER_MAX.as_secs());
            }
            Err(RecvTimeoutError::Disconnected) => {
                agent.end();
                bail!("the daemon did not begin: {}", agent.complaint());
            }
        }
    }

    /// Why it ended, if it has.
    pub fn ended(&mut self) -> Option<String> {
        let status = self.child.try_wait().ok()??;
        Some(format!("the daemon ended ({status}): {}", self.complaint()))
    }

    /// The number of its process.
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// The processor time of all its threads so far (`/proc/PID/task/TID/schedstat`, proc(5)).
    ///
    /// # Errors
    /// If it is gone, or the kernel keeps no such statistics.
    pub fn processor_time(&self) -> Result<sansio::Duration> {
        let tasks = format!("/proc/{}/task", self.process());
        let attempt = || format!("read the daemon's processor time below {tasks}");
        let mut nanos = 0;
        for task in std::fs::read_dir(&tasks).with_context(attempt)? {
            let file = task.with_context(attempt)?.path().join("schedstat");
            // A thread may end while it is looked at.
            let Ok(text) = std::fs::read_to_string(&file) else { continue };
            let spent = text.split(' ').next().with_context(attempt)?;
            nanos += spent.parse::<u64>().with_context(attempt)?;
        }
        Ok(sansio::Duration::from_nanos(nanos))
    }

    /// Its statistics.
    ///
    /// # Errors
    /// If it does not answer.
    pub fn statistics(&self) -> Result<serde_json::Value> {
        self.line.order("stats");
        let answer = self.answers.recv_timeout(ANSWER_MAX);
        let answer = answer.context("ask the daemon for its statistics")?;
        serde_json::from_str(&answer).with_context(|| format!("read the statistics {answer:?}"))
    }

    /// SIGKILL: no farewell.
    pub fn kill(mut self) {
        self.end();
    }

    fn end(&mut self) {
        // An error means that it is gone already.
        let _killed = self.child.kill();
        let _status = self.child.wait();
        self.line.connect(None);
    }

    /// What it wrote to its standard error. Only once it has ended.
    fn complaint(&mut self) -> String {
        let mut text = String::new();
        if let Some(mut error) = self.child.stderr.take() {
            let _read = std::io::Read::read_to_string(&mut error, &mut text);
        }
        text.trim().to_owned()
    }
}

impl Drop for Agent {
    /// Lets it take its rules away itself, so that the next run does not meet them.
    fn drop(&mut self) {
        self.line.order("stop");
        for _ in 0..FAREWELL_LOOKS {
            if !matches!(self.child.try_wait(), Ok(None)) {
                break;
            }
            std::thread::sleep(LOOK_EVERY);
        }
        self.end();
    }
}
