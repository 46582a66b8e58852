//! What this machine allows, tried rather than asked, and what to do about the rest.
//!
//! Map: here what lab and daemon need, [`path`] (what defeats a daemon between two devices),
//! [`watch`] (what share of their traffic can be helped).

pub mod path;
pub mod watch;

use crate::sys::packet_socket::{Leave, Listen, PacketSocket, Prefix};
use crate::sys::{monotonic_nanos, namespace, process};
use anyhow::{Context, Result, bail, ensure};
use serde::Serialize;
use std::fmt;
use std::fs;
use std::process::Command;

/// Everything that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// One after the other.
    pub checks: Vec<Check>,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// What.
    pub name: &'static str,
    /// What for.
    pub need: Need,
    /// How it is: a value, or why it is missing.
    pub found: Found,
    /// What to do if it is missing.
    pub fix: String,
}

/// What depends on a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Need {
    /// Without it there is no lab and no daemon.
    Required,
    /// Without it something is less exact, or one row is missing.
    Helpful,
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum Found {
    /// It is there.
    There(String),
    /// It is missing, and why.
    Missing(String),
}

impl Report {
    /// True if nothing required is missing.
    pub fn can_run_lab(&self) -> bool {
        self.checks.iter().all(|check| check.need == Need::Helpful || !check.is_missing())
    }
}

impl Check {
    fn is_missing(&self) -> bool {
        matches!(self.found, Found::Missing(_))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, check) in self.checks.iter().enumerate() {
            let end = if index + 1 < self.checks.len() { "\n" } else { "" };
            write!(f, "{check}{end}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.found, self.need) {
            (Found::There(value), _) => write!(f, "ok       {}: {value}", self.name),
            (Found::Missing(why), Need::Required) => {
                write!(f, "MISSING  {}: {why}\n         fix: {}", self.name, self.fix)
            }
            (Found::Missing(why), Need::Helpful) => {
                write!(f, "missing  {}: {why}\n         fix: {}", self.name, self.fix)
            }
        }
    }
}

/// Looks at everything. Whoever is not root should call [`crate::lab::prepare`] first, which this
/// reports on.
pub fn examine() -> Report {
    use Need::{Helpful, Required};
    let kernel = "a kernel with CONFIG_VETH, CONFIG_PACKET and CONFIG_NF_TABLES_NETDEV";
    let look = |name, need, found: Result<String>, fix: &str| {
        let found = match found {
            Ok(value) => Found::There(value),
            Err(error) => Found::Missing(format!("{error:#}")),
        };
        Check { name, need, found, fix: fix.to_owned() }
    };
    let mut checks = vec![
        look("rights", Required, rights(), "run as root, or allow user namespaces"),
        look("ip", Required, version("ip", "-V"), "apt install iproute2"),
        look("nft", Required, version("nft", "--version"), "apt install nftables"),
    ];
    let scratch = Scratch::make();
    let in_scratch = |work: fn() -> Result<String>| match &scratch {
        Ok(scratch) => namespace::within(&scratch.0, work),
        Err(error) => bail!("needs the network namespace: {error:#}"),
    };
    let made = scratch.as_ref().map(|_| "can be made".to_owned());
    let made = made.map_err(|error| anyhow::anyhow!("{error:#}"));
    checks.extend([
        look("namespaces and veth", Required, made, kernel),
        look("packet sockets with vnet header", Required, in_scratch(packet_sockets), kernel),
        look(
            "nft tables with an owner",
            Required,
            in_scratch(owned_table),
            "Linux 5.12, nft 0.9.9",
        ),
        look("reno", Required, in_scratch(|| congestion_control("reno")), "part of every kernel"),
        look("cubic", Helpful, in_scratch(|| congestion_control("cubic")), "modprobe tcp_cubic"),
        look("bbr", Helpful, in_scratch(|| congestion_control("bbr")), "modprobe tcp_bbr"),
        look("vegas", Helpful, in_scratch(|| congestion_control("vegas")), "modprobe tcp_vegas"),
        look("tcp_rto_max_ms", Helpful, in_scratch(|| setting("tcp_rto_max_ms")), "Linux 6.15"),
        look("tcp_rto_min_us", Helpful, in_scratch(|| setting("tcp_rto_min_us")), "Linux 6.11"),
        look(
            "real-time scheduling",
            Helpful,
            real_time(),
            "run as root: the radio is then punctual on a busy machine, too",
        ),
        look("timers", Helpful, timers(), "a kernel with high-resolution timers"),
    ]);
    Report { checks }
}

/// What the lab needs and the machine lacks, as text; empty if nothing.
pub fn missing_for_lab() -> String {
    let report = examine();
    let missing = report
        .checks
        .into_iter()
        .filter(|check| check.need == Need::Required && check.is_missing())
        .collect();
    Report { checks: missing }.to_string()
}

/// A namespace with a veth pair, for trying things.
struct Scratch(String);

impl Scratch {
    fn make() -> Result<Self> {
        // Two labs of one process may ask at the same time.
        let (process, nanos) = (std::process::id(), monotonic_nanos());
        let scratch = Scratch(format!("lh-{process}-doctor-{nanos}"));
        let name = &scratch.0;
        run("ip", &["netns", "add", name])?;
        let pair = ["link", "add", DEVICE, "type", "veth", "peer", "name", "try1"];
        run("ip", &[&["-n", name][..], &pair].concat())?;
        run("ip", &["-n", name, "link", "set", DEVICE, "up"])?;
        Ok(scratch)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _removed = run("ip", &["netns", "delete", &self.0]);
    }
}

const DEVICE: &str = "try0";

fn rights() -> Result<String> {
    if !process::is_root() {
        match namespace::restriction() {
            Some(setting) => bail!("not root, and {setting} forbids user namespaces"),
            None => bail!("not root"),
        }
    }
    let map = fs::read_to_string("/proc/self/uid_map").context("read the user mapping")?;
    let whole = map.split_whitespace().eq(["0", "0", "4294967295"]);
    Ok(if whole { "root" } else { "root of a user namespace" }.to_owned())
}

fn version(program: &str, option: &str) -> Result<String> {
    let said = run(program, &[option])?;
    Ok(said.lines().next().unwrap_or_default().to_owned())
}

fn packet_sockets() -> Result<String> {
    PacketSocket::open(DEVICE, Prefix::Virtio, Listen::All, Leave::Direct)?;
    Ok("open".to_owned())
}

fn owned_table() -> Result<String> {
    let text = format!(
        "add table netdev try {{ flags owner; }}; add chain netdev try in {{ type filter hook \
         ingress device \"{DEVICE}\" priority -500; }}; list table netdev try"
    );
    let listed = run("nft", &[&text])?;
    ensure!(listed.contains("owner"), "nft does not know owners: {listed}");
    Ok("vanish with their owner".to_owned())
}

/// Looks for a congestion control in this machine's kernel.
///
/// # Errors
/// If the kernel does not have it, or its module is not loaded.
pub fn congestion_control(name: &str) -> Result<String> {
    let file = "/proc/sys/net/ipv4/tcp_available_congestion_control";
    let available = fs::read_to_string(file).context("list the congestion controls")?;
    let available = available.trim();
    ensure!(available.split_whitespace().any(|one| one == name), "the kernel has {available}");
    Ok("available".to_owned())
}

fn setting(name: &str) -> Result<String> {
    let file = format!("/proc/sys/net/ipv4/{name}");
    let value = fs::read_to_string(&file).with_context(|| format!("read net.ipv4.{name}"))?;
    Ok(value.trim().to_owned())
}

fn real_time() -> Result<String> {
    let thread = std::thread::spawn(process::real_time);
    match thread.join() {
        Ok(result) => result.map(|()| "SCHED_FIFO".to_owned()),
        Err(_) => bail!("the thread that tried panicked"),
    }
}

/// How late the system wakes a thread, at best.
fn timers() -> Result<String> {
    const TRIES: u32 = 20;
    const SPAN: std::time::Duration = std::time::Duration::from_micros(200);
    let thread = std::thread::spawn(|| {
        process::precise_timers()?;
        let late = (0..TRIES).map(|_| {
            let before = monotonic_nanos();
            std::thread::sleep(SPAN);
            monotonic_nanos() - before - SPAN.as_nanos() as u64
        });
        late.min().context("sleep")
    });
    match thread.join() {
        Ok(late) => {
            let micros = late? / 1_000;
            ensure!(micros < 1_000, "the system wakes a thread {micros} us late at best");
            Ok(format!("{micros} us late at best"))
        }
        Err(_) => bail!("the thread that tried panicked"),
    }
}

fn run(program: &str, arguments: &[&str]) -> Result<String> {
    let attempt = || format!("run {program}");
    let output = Command::new(program).args(arguments).output().with_context(attempt)?;
    let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let complained = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    ensure!(output.status.success(), "{program} {}: {complained}", arguments.join(" "));
    Ok(said)
}
