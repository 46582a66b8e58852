//! Thousands of flows at once, and half-open ones beside them.
//!
//! Each end of a flow is an open file, of which a process may have only so many. So the mobile
//! hosts' ends are in a process of their own: this program, run as `answer`.

use crate::drills::{cpu, number, resident};
use crate::load::Stopwatch;
use crate::net::{Family, Host, Net, Path};
use crate::stage::{Stage, accept, bound, read_pattern, write_pattern};
use crate::variant::VARIANTS;
use anyhow::{Context, Result, ensure};
use live::lab::agent::Agent;
use rustix::net::sockopt;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Child;

/// Rounds before the flood; one more follows it.
const ROUNDS: usize = 3;
/// Bytes to each mobile host in a round, and back.
const DOWN: usize = 200;
const UP: usize = 100;
/// Files of a process beside its sockets.
const OTHER_FILES: usize = 100;

pub(crate) fn many_flows_and_half_open_ones() {
    many().unwrap_or_else(|error| panic!("{error:#}"));
}

/// Paced small messages on many connections, then a flood of SYNs that nobody answers.
fn many() -> Result<()> {
    let flows = number("LASTHOP_FLOWS", 1_000) as usize;
    let half_open = number("LASTHOP_HALF_OPEN", 10_000);
    open_files(flows)?;
    let net = Net::new(32, &Path::Direct)?;
    let daemon = net.daemon(&VARIANTS[0], Family::V4)?;
    let mut answers = Answers::start(&net, flows)?;
    let fixed: Vec<TcpStream> = net.at(Host::Fixed, || {
        let connect = |_| {
            let stream = TcpStream::connect(answers.address).context("connect")?;
            stream.set_nodelay(true)?;
            bound(&stream)?;
            Ok(stream)
        };
        (0..flows).map(connect).collect()
    })?;
    let (cpu_before, began) = (cpu(&daemon)?, Stopwatch::start());
    for round in 0..ROUNDS {
        message_all(&fixed, round)?;
    }
    let took = began.elapsed();
    let (known, bytes) = held(&daemon)?;
    ensure!(known >= flows as u64, "the daemon knows {known} of {flows} flows");
    let used = cpu(&daemon)? - cpu_before;
    println!(
        "  {flows} flows: {took:?}, daemon {used:?} of CPU, {bytes} bytes held, {} kB resident",
        resident(&daemon)?
    );
    crate::hostile::flood_of_syns(&net, half_open)?;
    message_all(&fixed, ROUNDS)?;
    let (known, bytes) = held(&daemon)?;
    ensure!(known >= flows as u64, "after the flood the daemon knows {known} of {flows} flows");
    answers.finish()?;
    let memory = resident(&daemon)?;
    println!(
        "  and {half_open} half-open: {known} flows known, {bytes} bytes held, {memory} kB resident"
    );
    ensure!(memory < 512 << 10, "{memory} kB");
    Ok(())
}

/// A message to every mobile host, then the answer of each.
fn message_all(fixed: &[TcpStream], round: usize) -> Result<()> {
    fixed.iter().try_for_each(|stream| write_pattern(stream, round * DOWN, DOWN))?;
    fixed.iter().try_for_each(|stream| read_pattern(stream, round * UP, UP))
}

/// How many flows the daemon knows, and the most bytes that it held.
fn held(daemon: &Agent) -> Result<(u64, u64)> {
    let statistics = daemon.statistics()?;
    let count = |value: &serde_json::Value| value.as_u64().context("a count");
    Ok((count(&statistics["scheme"]["flows"])?, count(&statistics["held_bytes_max"])?))
}

/// Allows this program to have so many sockets open.
fn open_files(sockets: usize) -> Result<()> {
    let wanted = (sockets + OTHER_FILES) as u64;
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= wanted) {
        return Ok(());
    }
    let maximum = limit.maximum.map(|maximum| maximum.max(wanted));
    setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum })
        .with_context(|| format!("have {wanted} files open: ulimit -n {wanted}"))
}

/// The process with the mobile hosts' ends.
struct Answers {
    process: Child,
    address: SocketAddr,
}

impl Answers {
    /// Starts it; it listens when this returns.
    fn start(net: &Net, flows: usize) -> Result<Answers> {
        let stage = Stage::new(net, Family::V4);
        let address = stage.address(Host::Mobile, 7_100);
        let arguments = ["answer", &address.to_string(), &flows.to_string()];
        let mut process = stage.helper(Host::Mobile, &arguments)?;
        let said = process.stdout.take().context("its output")?;
        let answers = Answers { process, address };
        let mut line = String::new();
        BufReader::new(said).read_line(&mut line).context("wait until they listen")?;
        ensure!(line == LISTENING, "the mobile hosts said {line:?}");
        Ok(answers)
    }

    /// Waits until every mobile host has had every message, all of them right.
    fn finish(&mut self) -> Result<()> {
        let status = self.process.wait().context("wait for the mobile hosts")?;
        ensure!(status.success(), "the mobile hosts: {status}");
        Ok(())
    }
}

impl Drop for Answers {
    fn drop(&mut self) {
        // It has ended already unless something failed.
        let _ended = self.process.kill();
        let _status = self.process.wait();
    }
}

const LISTENING: &str = "listening\n";

/// The process itself: accepts so many connections, reads each message and answers it.
pub(crate) fn answer(arguments: &[String]) -> Result<()> {
    let [address, flows] = arguments else { anyhow::bail!("usage: answer ADDRESS FLOWS") };
    let flows = flows.parse().context("FLOWS: a number")?;
    open_files(flows)?;
    let listener = TcpListener::bind(address).with_context(|| format!("listen at {address}"))?;
    print!("{LISTENING}");
    let mobile = (0..flows).map(|_| accept(&listener)).collect::<Result<Vec<TcpStream>>>()?;
    mobile.iter().try_for_each(|stream| sockopt::set_tcp_nodelay(stream, true))?;
    for round in 0..=ROUNDS {
        for stream in &mobile {
            read_pattern(stream, round * DOWN, DOWN)?;
            write_pattern(stream, round * UP, UP)?;
        }
    }
    Ok(())
}
