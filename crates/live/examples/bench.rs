//! How much of the kernel's own forwarding is left with a daemon in the path.
//!
//! Three hosts in namespaces, joined by veth: fixed host, base station (a router, then a bridge),
//! mobile host. One bulk
//! transfer down, then a ping-pong of 64 bytes; without a daemon and with each back end, one after
//! the other, several rounds; with offloads off (packets of the MTU) and on (super-packets). All
//! of it shares this machine's processors, so only ratios within one run mean anything. The
//! ping-pong runs on one processor, the daemon included: whether a message has to wake another one
//! is chance otherwise, and costs more than all the rest.
//!
//! ```text
//! cargo run --release -p lasthop-live --example bench -- [--rounds 5] [--seconds 2] [--json FILE]
//! ```
//!
//! `--offloads on` or `off` leaves the other out, `--only TEXT` leaves out the ways whose name does
//! not contain it, for a profile.

use anyhow::{Context, Result, bail, ensure};
use live::daemon::{self, BackEnd, Control, DaemonConfig, Forwarding};
use live::io::inline::Devices;
use live::lab::Program;
use live::lab::agent::{Agent, Line};
use live::lab::network::{FIXED_HOST, MOBILE_HOST, Names};
use live::sys::namespace::{processes, within};
use live::sys::packet_ring::Ring;
use live::sys::packet_socket::Listen;
use live::sys::{monotonic_nanos, offload};
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_setaffinity};
use serde_json::json;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// What forwards, by name.
const ROUTED: [(&str, Way); 5] = [
    ("kernel", Way::Kernel),
    ("kernel, and a ring", Way::Ring),
    ("inline, plain", Way::Daemon("plain", &["--inline"])),
    ("inline, snoop-modern", Way::Daemon("snoop-modern", &["--inline"])),
    ("fast, snoop-modern", Way::Daemon("snoop-modern", &["--fast"])),
];
const BRIDGED: [(&str, Way); 3] = [
    ("bridge: kernel", Way::Kernel),
    ("bridge: inline", Way::Daemon("snoop-modern", &["--bridge", "--inline"])),
    ("bridge: fast", Way::Daemon("snoop-modern", &["--bridge", "--fast"])),
];

#[derive(Clone, Copy, Debug)]
enum Way {
    /// The kernel alone.
    Kernel,
    /// The kernel; a ring shows what passes, and nobody does anything with it: what the fast path
    /// could be at best.
    Ring,
    /// A daemon with a scheme and flags.
    Daemon(&'static str, &'static [&'static str]),
}
/// Bytes per call of the bulk transfer.
const CHUNK: usize = 256 << 10;
/// A bulk transfer is counted after this time.
const WARM_UP: Duration = Duration::from_millis(300);
/// Round trips of the ping-pong.
const ECHOES: usize = 4_000;
const ECHO_BYTES: usize = 64;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match arguments.first().map(String::as_str) {
        Some("daemon") => run_daemon(&arguments[1..]),
        _ => bench(&arguments),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

fn value<'a>(arguments: &'a [String], name: &str) -> Option<&'a str> {
    let place = arguments.iter().position(|argument| argument == name)?;
    arguments.get(place + 1).map(String::as_str)
}

fn run_daemon(arguments: &[String]) -> Result<()> {
    let text = |name: &str| value(arguments, name).context("a value");
    let flag = |name: &str| arguments.iter().any(|argument| argument == name);
    let devices = Devices {
        wired: text("--wired")?.to_owned(),
        radio: text("--radio")?.to_owned(),
        radio_high: None,
    };
    let config = DaemonConfig {
        scheme: text("--scheme")?.to_owned(),
        back_end: if flag("--fast") { BackEnd::Fast } else { BackEnd::Inline },
        control: Control::Standard,
        forwarding: if flag("--bridge") { Forwarding::Bridge } else { Forwarding::Routed },
        ..DaemonConfig::base_station(devices, vec![text("--mobile")?.parse()?])
    };
    daemon::run(&config)
}

/// The network; dropping it takes it down.
struct Network {
    names: Names,
}

impl Network {
    fn build(offloads: bool, forwarding: Forwarding) -> Result<Self> {
        let network = Network { names: Names::new(6) };
        let Names { fixed, base, mobile, .. } = &network.names;
        shell(&format!(
            "set -e
            for n in {fixed} {base} {mobile}; do
                ip netns add $n; ip -n $n link set lo up
                ip netns exec $n sysctl -qw net.ipv4.tcp_rmem='4096 131072 16777216' \
                    net.ipv4.tcp_wmem='4096 131072 16777216' net.ipv4.tcp_no_metrics_save=1
            done
            ip link add net0 netns {fixed} type veth peer name wired netns {base}
            ip link add net0 netns {mobile} type veth peer name radio netns {base}
            for d in wired radio; do ip -n {base} link set $d up; done
            for n in {fixed} {mobile}; do ip -n $n link set net0 up; done"
        ))?;
        let (fixed_via, mobile_via) = match forwarding {
            Forwarding::Routed => {
                shell(&format!(
                    "set -e
                    ip -n {fixed} addr add {FIXED_HOST}/24 dev net0
                    ip -n {mobile} addr add {MOBILE_HOST}/24 dev net0
                    ip -n {base} addr add 10.78.1.254/24 dev wired
                    ip -n {base} addr add 10.78.2.254/24 dev radio
                    ip netns exec {base} sysctl -qw net.ipv4.ip_forward=1"
                ))?;
                ("via 10.78.1.254", "via 10.78.2.254")
            }
            Forwarding::Bridge => {
                shell(&format!(
                    "set -e
                    ip -n {base} link add br0 type bridge
                    for d in wired radio; do ip -n {base} link set $d master br0; done
                    ip -n {base} link set br0 up
                    ip -n {fixed} addr add {FIXED_HOST}/32 dev net0
                    ip -n {mobile} addr add {MOBILE_HOST}/32 dev net0"
                ))?;
                ("dev net0", "dev net0")
            }
        };
        shell(&format!(
            "set -e
            ip -n {fixed} route add default {fixed_via} congctl cubic
            ip -n {mobile} route add default {mobile_via} congctl cubic"
        ))?;
        if !offloads {
            for (name, device) in
                [(fixed, "net0"), (mobile, "net0"), (base, "wired"), (base, "radio")]
            {
                within(name, || offload::switch_off(device))?;
            }
        }
        Ok(network)
    }

    /// A connection down.
    fn connect(&self) -> Result<(TcpStream, TcpStream)> {
        let listener = within(&self.names.mobile, || Ok(TcpListener::bind((MOBILE_HOST, 0))?))?;
        let to = SocketAddr::new(MOBILE_HOST.into(), listener.local_addr()?.port());
        let down =
            within(&self.names.fixed, || Ok(TcpStream::connect_timeout(&to, WARM_UP * 10)?))?;
        Ok((down, listener.accept()?.0))
    }

    /// The daemon's process.
    fn daemon(&self) -> Result<u32> {
        let is_daemon = |process: &u32| {
            let name = std::fs::read_to_string(format!("/proc/{process}/comm"));
            name.is_ok_and(|name| name.trim() != "nft")
        };
        let inside = processes(&self.names.base)?;
        inside.into_iter().find(is_daemon).context("the daemon runs")
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        let Names { fixed, base, mobile, .. } = &self.names;
        let removed = shell(&format!("for n in {fixed} {base} {mobile}; do ip netns del $n; done"));
        if let Err(error) = removed {
            eprintln!("{error:#}");
        }
    }
}

fn shell(script: &str) -> Result<()> {
    let status = Command::new("sh").args(["-c", script]).stdin(Stdio::null()).status();
    ensure!(status.context("run sh")?.success(), "this failed:\n{script}");
    Ok(())
}

/// What one way did in one round.
#[derive(Clone, Copy, Debug, Default)]
struct Measured {
    bits_per_second: f64,
    /// The daemon's processor time for each frame that it met.
    frame_nanos: f64,
    echo_p50_micros: f64,
    echo_p99_micros: f64,
    overruns: f64,
}

/// Bits per second of a bulk transfer that takes this long.
fn bulk(network: &Network, lasting: Duration) -> Result<f64> {
    let (mut down, mut up) = network.connect()?;
    let (stop, received) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let chunk = vec![7; CHUNK];
            while !stop.load(Ordering::Relaxed) {
                if down.write_all(&chunk).is_err() {
                    break;
                }
            }
            let _closed = down.shutdown(std::net::Shutdown::Both);
        });
        scope.spawn(|| {
            let mut chunk = vec![0; CHUNK];
            while let Ok(count @ 1..) = up.read(&mut chunk) {
                received.fetch_add(count as u64, Ordering::Relaxed);
            }
        });
        std::thread::sleep(WARM_UP);
        let (bytes, begun) = (received.load(Ordering::Relaxed), monotonic_nanos());
        std::thread::sleep(lasting);
        let bytes = received.load(Ordering::Relaxed) - bytes;
        let nanos = monotonic_nanos() - begun;
        stop.store(true, Ordering::Relaxed);
        Ok(bytes as f64 * 8e9 / nanos as f64)
    })
}

/// Keeps a process or the calling thread on one processor.
fn pin(process: Option<u32>) -> Result<()> {
    let mut only = CpuSet::new();
    only.set(0);
    let process = process.and_then(|process| Pid::from_raw(process as i32));
    sched_setaffinity(process, &only).context("stay on one processor")
}

/// Round trips in microseconds, sorted.
fn echo(network: &Network, daemon: Option<u32>) -> Result<Vec<f64>> {
    let (mut near, mut far) = network.connect()?;
    if daemon.is_some() {
        pin(daemon)?;
    }
    near.set_nodelay(true)?;
    far.set_nodelay(true)?;
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let pinned = pin(None);
            let mut message = [0; ECHO_BYTES];
            while far.read_exact(&mut message).is_ok() && far.write_all(&message).is_ok() {}
            pinned
        });
        let near = scope.spawn(move || -> Result<Vec<f64>> {
            pin(None)?;
            let mut times = Vec::with_capacity(ECHOES);
            let mut message = [1; ECHO_BYTES];
            for _ in 0..ECHOES {
                let begun = monotonic_nanos();
                near.write_all(&message)?;
                near.read_exact(&mut message)?;
                times.push((monotonic_nanos() - begun) as f64 / 1e3);
            }
            near.shutdown(std::net::Shutdown::Both)?;
            times.sort_by(f64::total_cmp);
            Ok(times)
        });
        near.join().expect("no panic")
    })
}

/// A ring on the wired device, drained each millisecond as long as this lives.
struct Looking {
    stop: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<Result<()>>>,
}

impl Looking {
    fn begin(base: &str) -> Looking {
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, base) = (stop.clone(), base.to_owned());
        let look = move || {
            within(&base, || {
                let mut ring = Ring::open("wired", Listen::Tcp)?;
                while !stopped.load(Ordering::Relaxed) {
                    ring.drain(usize::MAX, drop);
                    std::thread::sleep(Duration::from_millis(1));
                }
                Ok(())
            })
        };
        Looking { stop, thread: Some(std::thread::spawn(look)) }
    }
}

impl Drop for Looking {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(Err(error)) = self.thread.take().and_then(|thread| thread.join().ok()) {
            eprintln!("{error:#}");
        }
    }
}

fn measure(network: &Network, way: Way, lasting: Duration) -> Result<Measured> {
    let path = std::env::current_exe().context("find this program")?;
    let start = |scheme: &str, flags: &[&str]| {
        let arguments = ["daemon"].iter().chain(flags).map(Into::into).collect();
        let program = Program { path: path.clone(), arguments };
        Agent::start(&program, scheme, &network.names.base, &Line::default())
    };
    let agent = match way {
        Way::Daemon(scheme, flags) => Some(start(scheme, flags)?),
        Way::Kernel | Way::Ring => None,
    };
    let _looking = matches!(way, Way::Ring).then(|| Looking::begin(&network.names.base));
    let processor = || -> Result<f64> {
        let process = network.daemon()?;
        let text = std::fs::read_to_string(format!("/proc/{process}/schedstat"))?;
        Ok(text.split(' ').next().context("a number")?.parse()?)
    };
    let mut measured = Measured::default();
    let before = agent.as_ref().map(|_| processor()).transpose()?;
    measured.bits_per_second = bulk(network, lasting)?;
    if let (Some(agent), Some(before)) = (&agent, before) {
        let nanos = processor()? - before;
        let statistics = agent.statistics()?;
        let count = |what: &str| statistics["packets"][what].as_f64().unwrap_or_default();
        measured.frame_nanos = nanos / (count("taken") + count("seen"));
        measured.overruns = statistics["overruns"].as_f64().unwrap_or_default();
        ensure!(count("invalid") == 0.0, "the daemon met invalid frames: {statistics}");
    }
    let daemon = agent.as_ref().map(|_| network.daemon()).transpose()?;
    let times = echo(network, daemon)?;
    measured.echo_p50_micros = times[times.len() / 2];
    measured.echo_p99_micros = times[times.len() * 99 / 100];
    Ok(measured)
}

fn median(rounds: &[Measured], of: impl Fn(&Measured) -> f64) -> f64 {
    let mut values: Vec<f64> = rounds.iter().map(of).collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn bench(arguments: &[String]) -> Result<()> {
    let rounds: usize = value(arguments, "--rounds").unwrap_or("5").parse().context("--rounds")?;
    let seconds: f64 = value(arguments, "--seconds").unwrap_or("2").parse().context("--seconds")?;
    const OPTIONS: [&str; 5] = ["--rounds", "--seconds", "--json", "--only", "--offloads"];
    for option in arguments.iter().step_by(2) {
        ensure!(OPTIONS.contains(&option.as_str()), "{option}: expected {}", OPTIONS.join(", "));
    }
    if !(1..=100).contains(&rounds) || !(0.1..=60.0).contains(&seconds) {
        bail!("expected --rounds 1 to 100 and --seconds 0.1 to 60");
    }
    let lasting = Duration::from_secs_f64(seconds);
    live::lab::prepare()?;
    let only = value(arguments, "--only").unwrap_or_default();
    let mut rows = Vec::new();
    for offloads in [false, true] {
        if value(arguments, "--offloads").is_some_and(|wanted| (wanted == "on") != offloads) {
            continue;
        }
        let title = if offloads { "offloads on" } else { "packets of the MTU" };
        println!("\n{title}, medians of {rounds} rounds of {seconds} s\n");
        println!(
            "{:<22} {:>8} {:>10} {:>12} {:>10} {:>10} {:>9}",
            "", "Gbit/s", "of kernel", "ns per frame", "echo p50", "echo p99", "overruns"
        );
        for (forwarding, ways) in
            [(Forwarding::Routed, &ROUTED[..]), (Forwarding::Bridge, &BRIDGED)]
        {
            let ways: Vec<_> = ways.iter().filter(|(name, _)| name.contains(only)).collect();
            if ways.is_empty() {
                continue;
            }
            let network = Network::build(offloads, forwarding)?;
            let mut all = vec![Vec::new(); ways.len()];
            for _ in 0..rounds {
                for ((_, way), measured) in ways.iter().zip(&mut all) {
                    measured.push(measure(&network, *way, lasting)?);
                }
            }
            let kernel = median(&all[0], |measured| measured.bits_per_second);
            for ((name, _), measured) in ways.iter().zip(&all) {
                rows.push(row(name, measured, (offloads, kernel)));
            }
        }
    }
    ensure!(!rows.is_empty(), "no way's name contains {only:?}");
    if let Some(file) = value(arguments, "--json") {
        let text = serde_json::to_string_pretty(&json!({
            "rounds": rounds,
            "seconds": seconds,
            "rows": rows,
        }))?;
        std::fs::write(file, text + "\n").with_context(|| format!("write {file}"))?;
    }
    Ok(())
}

/// Prints a way's medians, and returns them.
fn row(name: &str, rounds: &[Measured], (offloads, kernel): (bool, f64)) -> serde_json::Value {
    let of = |get: fn(&Measured) -> f64| median(rounds, get);
    let bits_per_second = of(|measured| measured.bits_per_second);
    let frame_nanos = of(|measured| measured.frame_nanos);
    let (p50, p99) = (of(|one| one.echo_p50_micros), of(|one| one.echo_p99_micros));
    let overruns = of(|one| one.overruns);
    let ratio = bits_per_second / kernel;
    println!(
        "{name:<22} {:>8.2} {ratio:>10.2} {frame_nanos:>12.0} {p50:>7.1} us {p99:>7.1} us \
         {overruns:>9.0}",
        bits_per_second / 1e9
    );
    json!({
        "offloads": offloads,
        "way": name,
        "bits_per_second": bits_per_second,
        "of_kernel": ratio,
        "frame_nanos": frame_nanos,
        "echo_p50_micros": p50,
        "echo_p99_micros": p99,
        "overruns": overruns,
        "rounds_bits_per_second":
            rounds.iter().map(|one| one.bits_per_second).collect::<Vec<f64>>(),
    })
}
