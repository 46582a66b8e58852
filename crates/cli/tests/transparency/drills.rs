//! What is done to the daemon while connections go through it: killed, stopped, started, filled.

use crate::load::{Dice, Load, Stopwatch};
use crate::net::{Family, Host, Net, Path};
use crate::stage::Stage;
use crate::variant::{self, USUAL, VARIANTS};
use anyhow::{Context, Result, bail, ensure};
use live::daemon::Forwarding;
use live::lab::agent::{Agent, Line};
use rustix::process::{Pid, Signal, kill_process};
use std::time::Duration;

/// How often the daemon is killed on each kind of box, unless LASTHOP_KILLS says otherwise.
const KILLS: u64 = 6;
/// The longest that a stream may stand still beyond what it does without a daemon: what waits in
/// the daemon's sockets is lost with it, and the air may lose its first two retransmissions. Three
/// timeouts of Linux in a row: 200, 400 and 800 ms, and what the round trip adds.
const EXTRA_STALL_MAX: Duration = Duration::from_millis(1_500);
/// Until the rules of a killed daemon are gone.
const RULES_GONE_IN: Duration = Duration::from_secs(1);

pub(crate) fn number(name: &str, default: u64) -> u64 {
    let read = |text: String| text.parse().unwrap_or_else(|_| panic!("{name}={text}: a number"));
    std::env::var(name).map_or(default, read)
}

/// Until other settings are in force.
const RELOADED_IN: Duration = Duration::from_secs(5);

/// Two streams each way.
fn load(net: &Net) -> Result<Load> {
    let stage = Stage::new(net, Family::V4);
    let pair = |from: Host| Ok((stage.connect(from, |_| Ok(()))?, from));
    let from = [Host::Fixed, Host::Mobile, Host::Fixed, Host::Mobile];
    Load::start(from.into_iter().map(pair).collect::<Result<_>>()?)
}

/// The longest stall of streams that were whole.
fn longest(load: Load) -> Result<Duration> {
    let received = load.finish()?;
    ensure!(received.iter().all(|one| one.bytes > 0), "{received:?}");
    Ok(received.iter().map(|one| one.stall).max().unwrap_or_default())
}

pub(crate) fn killed_at_random_instants() {
    for forwarding in [Forwarding::Routed, Forwarding::Bridge] {
        killed(forwarding).unwrap_or_else(|error| panic!("{forwarding}: {error:#}"));
    }
}

fn killed(forwarding: Forwarding) -> Result<()> {
    let (kills, mut dice) = (number("LASTHOP_KILLS", KILLS), Dice(number("LASTHOP_SEED", 1)));
    let path = Path::lossy(0.01, 1);
    let make = |lane| Net::with_box(forwarding, lane, &path);
    let (net, off) = (make(30)?, make(31)?);
    let variants = variant::on(forwarding);
    let (streams, alone) = (load(&net)?, load(&off)?);
    let mut slowest = Duration::ZERO;
    for number in 0..kills {
        let variant = variants[number as usize % variants.len()];
        let daemon = net.daemon(variant, Family::V4)?;
        if number == 0 {
            let second = variant.start(&net, &Line::default(), Family::V4);
            let second = second.err().context("a second daemon starts beside the first")?;
            ensure!(second.to_string().contains("another daemon runs here"), "{second:#}");
        }
        std::thread::sleep(dice.millis(20, 400));
        if number % 3 == 2 {
            // An upgrade: it is stopped, and the next one started.
            drop(daemon);
            ensure!(net.is_clear()?, "a stopped daemon left rules");
            continue;
        }
        daemon.kill();
        let killed_at = Stopwatch::start();
        while !net.is_clear()? {
            ensure!(killed_at.elapsed() < RULES_GONE_IN, "a killed daemon's rules stay");
        }
        slowest = slowest.max(killed_at.elapsed());
        std::thread::sleep(dice.millis(0, 150));
    }
    let (with, without) = (longest(streams)?, longest(alone)?);
    println!(
        "  {forwarding}: {kills} daemons ended; rules gone within {slowest:?}; longest stall \
         {with:?}, without a daemon {without:?}"
    );
    ensure!(with < without + EXTRA_STALL_MAX, "{with:?}, without a daemon {without:?}");
    Ok(())
}

pub(crate) fn a_router_becomes_a_bridge_under_load() {
    becomes_a_bridge().unwrap_or_else(|error| panic!("{error:#}"));
}

/// The box is made a bridge while streams go through it; its daemon is told by its file.
fn becomes_a_bridge() -> Result<()> {
    let net = Net::new(33, &Path::lossy(0.01, 1))?;
    let daemon = net.daemon(&VARIANTS[USUAL], Family::V4)?;
    let streams = load(&net)?;
    std::thread::sleep(Duration::from_millis(300));
    let hang_up = || {
        let process = Pid::from_raw(daemon.process() as i32).context("its number")?;
        kill_process(process, Signal::HUP).context("hang up")
    };
    let taken = || -> Result<u64> {
        let statistics = daemon.statistics()?;
        statistics["packets"]["taken"].as_u64().context("a count")
    };
    for back_end in ["inline", "fast"] {
        if back_end == "inline" {
            net.join()?;
        }
        let lines = format!("back-end = \"{back_end}\"");
        variant::configure(&net, Forwarding::Bridge, &lines)?;
        hang_up()?;
        let asked = Stopwatch::start();
        loop {
            let statistics = daemon.statistics()?;
            let is_so =
                statistics["forwarding"] == "bridge" && statistics["back_end"]["name"] == back_end;
            if is_so {
                break;
            }
            ensure!(asked.elapsed() < RELOADED_IN, "{statistics}");
            std::thread::sleep(Duration::from_millis(10));
        }
        let before = taken()?;
        std::thread::sleep(Duration::from_millis(700));
        ensure!(taken()? > before, "as a bridge, {back_end}, it takes nothing");
    }
    let stall = longest(streams)?;
    println!("  a router became a bridge, then its fast path: longest stall {stall:?}");
    drop(daemon);
    ensure!(net.is_clear()?, "rules are left");
    Ok(())
}

pub(crate) fn limits_are_reached_and_harm_nobody() {
    limits().unwrap_or_else(|error| panic!("{error:#}"));
}

/// More flows and more bytes than the daemon may keep: what is beyond passes, and is counted.
fn limits() -> Result<()> {
    const FLOWS_MAX: u64 = 20;
    let net = Net::new(34, &Path::lossy(0.01, 1))?;
    let lines = format!(
        "back-end = \"inline\"\nhelp-from = \"first-packet\"\nlimits.flows = {FLOWS_MAX}\n\
         limits.cache = \"32KiB\""
    );
    let daemon = VARIANTS[USUAL].start_with(&net, &net.line, &lines)?;
    let stage = Stage::new(&net, Family::V4);
    let pair = |_| Ok((stage.connect(Host::Fixed, |_| Ok(()))?, Host::Fixed));
    let streams = Load::start((0..2 * FLOWS_MAX).map(pair).collect::<Result<_>>()?)?;
    std::thread::sleep(Duration::from_millis(1_500));
    let statistics = daemon.statistics()?;
    let count = |place: &str| {
        statistics.pointer(place).and_then(serde_json::Value::as_u64).context("a count")
    };
    let stall = longest(streams).context("beyond the limits")?;
    let (flows, refused) = (count("/scheme/flows")?, count("/scheme/flows_refused")?);
    let (held, uncached) = (count("/held_bytes_max")?, count("/scheme/uncached")?);
    println!(
        "  {} streams, at most {FLOWS_MAX} flows and 32 KiB: {flows} known, {refused} segments \
         refused; {held} bytes held, {uncached} segments not; longest stall {stall:?}",
        2 * FLOWS_MAX
    );
    ensure!(flows == FLOWS_MAX && refused > 0, "{statistics}");
    ensure!(held <= 32 << 10 && uncached > 0, "{statistics}");
    Ok(())
}

/// Processor time of the daemon, in clock ticks of 10 ms.
pub(crate) fn cpu(daemon: &Agent) -> Result<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", daemon.process()))?;
    // Fields 14 and 15 of proc_pid_stat(5); the second may hold spaces.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split(' ').collect();
    let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<u64>().ok());
    let (Some(user), Some(system)) = (ticks(12), ticks(13)) else { bail!("read {stat:?}") };
    Ok(Duration::from_millis(10 * (user + system)))
}

/// Its resident memory in kilobytes.
pub(crate) fn resident(daemon: &Agent) -> Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", daemon.process()))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.trim().split(' ').next()?.parse().ok());
    number.context("the resident memory in /proc")
}
