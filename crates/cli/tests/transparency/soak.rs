//! Random links, random faults, for as long as wanted: every stream whole, no connection lost.
//!
//! A round is a link of the lab, some streams over it, and things done to the daemon meanwhile; all
//! of it follows from the round's seed, which its line shows. The instants at which kernels send do
//! not, so a seed repeats the choices, not the packets.

use crate::load::{Dice, Load, Stopwatch};
use crate::net::{Family, Host, Net, Path};
use crate::stage::Stage;
use crate::variant::{VARIANTS, Variant};
use anyhow::{Context, Result, bail, ensure};
use link::channel::{Config as Channel, packet_loss};
use link::hop;
use link::outage::{self, Length, Mode, Planned, Schedule};
use link::preset::Pair;
use live::daemon::Forwarding;
use live::lab::agent::Agent;
use live::lab::network::RADIO;
use live::radio;
use node::scenario::Time;
use rustix::fd::OwnedFd;
use rustix::net::sockopt;
use rustix::process::{Pid, Signal, kill_process};
use sansio::{BitRate, Instant as At};
use std::time::Duration;

/// The network's lane: rounds follow each other.
const LANE: u32 = 50;
/// Until a daemon that was asked to has ended.
const ENDS_IN: Duration = Duration::from_secs(2);

/// `soak LENGTH [SEED]`: rounds until the time is over; says how they went.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let [length, seed @ ..] = arguments else { bail!("soak: expected LENGTH, such as 10min") };
    let length: Time = length.parse().with_context(|| format!("soak {length}: as in 10min"))?;
    let length = Duration::from_nanos(length.0.as_nanos());
    let seed: u64 = match seed.first() {
        Some(seed) => seed.parse().with_context(|| format!("soak: the seed {seed}"))?,
        None => 1,
    };
    let (began, mut rounds, mut failed) = (Stopwatch::start(), 0, Vec::new());
    let (mut bytes, mut faults, mut streams) = (0, 0, 0);
    while began.elapsed() < length {
        let seed = seed + rounds;
        rounds += 1;
        match round(seed) {
            Ok(one) => {
                bytes += one.bytes;
                faults += one.faults;
                streams += one.streams;
                println!("{seed} ok {}", one.text);
            }
            Err(error) => {
                println!("{seed} FAILED {error:#}");
                failed.push(seed);
            }
        }
    }
    println!(
        "{rounds} rounds, {streams} streams, {} MB, {faults} faults in {:.0} s: {} rounds failed",
        bytes / 1_000_000,
        began.elapsed().as_secs_f64(),
        failed.len()
    );
    ensure!(failed.is_empty(), "failed, by seed: {failed:?}; to repeat one: soak 1s SEED");
    Ok(())
}

/// A short soak, as a case among others.
pub(crate) fn a_short_soak() {
    run(&["6s".to_owned(), "1".to_owned()]).unwrap_or_else(|error| panic!("{error:#}"));
}

/// How a round went.
struct Round {
    text: String,
    bytes: usize,
    faults: usize,
    streams: usize,
}

/// Something done to the daemon or its devices.
#[derive(Clone, Copy, Debug)]
enum Fault {
    Kill,
    Stop,
    HangUp,
    Forget,
    LinkDown,
    LinkUp,
    DeviceDown,
    OtherMtu,
    /// Off, observing, helping.
    Mode,
    /// Other settings in its file, and a hangup.
    Settings,
    /// Settings that this machine cannot have.
    WrongSettings,
}

const FAULTS: [Fault; 11] = [
    Fault::Kill,
    Fault::Stop,
    Fault::HangUp,
    Fault::Forget,
    Fault::LinkDown,
    Fault::LinkUp,
    Fault::DeviceDown,
    Fault::OtherMtu,
    Fault::Mode,
    Fault::Settings,
    Fault::WrongSettings,
];

fn round(seed: u64) -> Result<Round> {
    let mut dice = Dice(seed);
    let (config, link) = random_link(&mut dice, seed);
    let variant = &VARIANTS[dice.below(VARIANTS.len() as u64) as usize];
    let sack = dice.of(&["1", "1", "0"]);
    let family = dice.of(&[Family::V4, Family::V4, Family::V6]);
    let net = Net::with_box(variant.forwarding, LANE, &Path::Radio(Box::new(config)))?;
    for host in Host::BOTH {
        net.set(host, "net/ipv4/tcp_sack", sack)?;
    }
    let mut daemon = net.daemon(variant, family)?;
    let count = 1 + dice.below(4) as usize;
    let (mut pairs, mut senders) = (Vec::new(), Vec::new());
    for _ in 0..count {
        let from = dice.of(&[Host::Fixed, Host::Fixed, Host::Mobile]);
        let sender = dice.of(&["cubic", "bbr", "reno"]);
        let prepare = |socket: &OwnedFd| Ok(sockopt::set_tcp_congestion(socket, sender)?);
        let stage = Stage::new(&net, family);
        pairs.push((stage.connect(from, prepare).context("connect")?, from));
        senders.push(sender);
    }
    let load = Load::start(pairs)?;
    let mut done = Vec::new();
    for _ in 0..3 + dice.below(8) {
        std::thread::sleep(dice.millis(50, 900));
        let fault = dice.of(&FAULTS);
        done.push(fault);
        daemon = inflict(fault, &net, (variant, family, daemon), &mut dice)
            .with_context(|| format!("after {done:?}, {link}"))?;
    }
    let attempt = || format!("{}, {family:?}, after {done:?}, {link}", variant.name);
    let received = load.finish().with_context(attempt)?;
    drop(daemon);
    ensure!(net.is_clear()?, "rules are left after {done:?}");
    let bytes = received.iter().map(|one| one.bytes).sum();
    let stall = received.iter().map(|one| one.stall).max().unwrap_or_default();
    let text = format!(
        "{}, {family:?}, {link}, SACK {sack}, {senders:?}, {bytes} bytes, longest stall \
         {stall:.1?}, {done:?}",
        variant.name
    );
    Ok(Round { text, bytes, faults: done.len(), streams: count })
}

/// A hop of 1 to 40 Mbit/s with losses up to 5 % and some outages, and a line for people.
fn random_link(dice: &mut Dice, seed: u64) -> (radio::Config, String) {
    let span = |millis: u64| sansio::Duration::from_millis(millis);
    let (rate, delay) = (dice.of(&[1, 2, 5, 10, 20, 40]), dice.of(&[1, 5, 20, 60]));
    let (loss, queue) = (dice.of(&[0, 0, 1, 10, 50]), dice.of(&[20, 100, 400]));
    let wired_delay = dice.of(&[1, 10, 40]);
    let mut air = hop::Config::clean(BitRate::from_mbps(rate), span(delay));
    air.queue = link::Limit::Packets(queue);
    let probability = loss as f64 / 1_000.0;
    air.channels.push(Channel::PacketLoss(packet_loss::Config { probability }));
    let count = dice.below(4);
    let mut start = 0;
    let planned: Vec<Planned> = (0..count)
        .map(|_| {
            let length = 50 + dice.below(900);
            start += 200 + dice.below(1_500);
            let start_at = At::from_nanos(start * 1_000_000);
            start += length;
            Planned { start: start_at, spread: span(0), length: Length::fixed(span(length)) }
        })
        .collect();
    let (mode, notified) = (dice.of(&[Mode::Lose, Mode::Hold]), dice.below(2) == 0);
    let outages = outage::Spec { schedule: Schedule::At(planned), mode, notified };
    let wired = hop::Config::clean(BitRate::from_mbps(100), span(wired_delay));
    let radio = Pair::symmetric(air).with_outages(&outages);
    let text = format!(
        "{rate} Mbit/s {delay}+{wired_delay} ms, queue {queue}, loss {:.1} %, {count} outages \
         ({mode:?}, notified {notified})",
        loss as f64 / 10.0
    );
    (radio::Config { wired: Pair::symmetric(wired), radio, seed }, text)
}

/// Does it, and sees that a daemon runs afterwards.
fn inflict(
    fault: Fault,
    net: &Net,
    (variant, family, mut daemon): (&Variant, Family, Agent),
    dice: &mut Dice,
) -> Result<Agent> {
    if let Some(why) = daemon.ended() {
        bail!("{why}");
    }
    match fault {
        Fault::Forget => net.line.order("forget"),
        Fault::LinkDown => net.line.order("link down"),
        Fault::LinkUp => net.line.order("link up"),
        Fault::Kill => {
            daemon.kill();
            std::thread::sleep(dice.millis(0, 300));
            return net.daemon(variant, family);
        }
        Fault::Stop => {
            drop(daemon);
            std::thread::sleep(dice.millis(0, 300));
            return net.daemon(variant, family);
        }
        Fault::HangUp => return hang_up(net, (variant, family, daemon)),
        Fault::Mode => net.line.order(dice.of(&["mode off", "mode observe", "mode help"])),
        Fault::Settings | Fault::WrongSettings if !variant.has_file() => {}
        Fault::Settings => reload_others(net, (variant, &daemon), dice)?,
        Fault::WrongSettings => reload_wrong(net, (variant, &mut daemon))?,
        Fault::DeviceDown => {
            net.ip(net.base(), &format!("link set {RADIO} down"))?;
            std::thread::sleep(dice.millis(50, 500));
            net.ip(net.base(), &format!("link set {RADIO} up"))?;
        }
        Fault::OtherMtu => {
            // A daemon that finds devices with different MTUs refuses to start, and says why.
            daemon.kill();
            net.ip(net.base(), &format!("link set {RADIO} mtu 1400"))?;
            let refused = net.daemon(variant, family).err();
            net.ip(net.base(), &format!("link set {RADIO} mtu 1500"))?;
            let refused = refused.context("it starts between devices with different MTUs")?;
            ensure!(refused.to_string().contains("set them alike"), "{refused:#}");
            return net.daemon(variant, family);
        }
    }
    Ok(daemon)
}

/// It reads its configuration again, or ends and leaves nothing.
fn hang_up(net: &Net, (variant, family, mut daemon): (&Variant, Family, Agent)) -> Result<Agent> {
    signal(&daemon, Signal::HUP)?;
    if variant.has_file() {
        std::thread::sleep(Duration::from_millis(200));
        return Ok(daemon);
    }
    let asked = Stopwatch::start();
    while daemon.ended().is_none() {
        ensure!(asked.elapsed() < ENDS_IN, "without a file it does not end after SIGHUP");
        std::thread::sleep(Duration::from_millis(20));
    }
    while !net.is_clear()? {
        ensure!(asked.elapsed() < ENDS_IN, "its rules stay after SIGHUP");
    }
    drop(daemon);
    net.daemon(variant, family)
}

fn signal(daemon: &Agent, signal: Signal) -> Result<()> {
    let process = Pid::from_raw(daemon.process() as i32).context("its number")?;
    kill_process(process, signal).context("send a signal")
}

/// Waits until its statistics say so.
fn await_statistics(
    daemon: &Agent,
    what: &str,
    is_so: impl Fn(&serde_json::Value) -> bool,
) -> Result<()> {
    let asked = Stopwatch::start();
    loop {
        let statistics = daemon.statistics()?;
        if is_so(&statistics) {
            return Ok(());
        }
        ensure!(asked.elapsed() < ENDS_IN, "not {what} after SIGHUP: {statistics}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Another back end, scheme and mobile hosts, which are those of before and more.
fn reload_others(net: &Net, (variant, daemon): (&Variant, &Agent), dice: &mut Dice) -> Result<()> {
    let (back_end, scheme) = (dice.of(&["inline", "fast"]), dice.of(&["snoop", "snoop-modern"]));
    let rate = dice.below(1_000);
    let lines = format!(
        "back-end = \"{back_end}\"\nscheme = \"{scheme}\"\nradio-rate = \"{}Mbit/s\"\n\
         next-hops = {{ \"10.78.2.77\" = \"02:00:00:00:00:{:02x}\" }}",
        1 + rate,
        rate % 256
    );
    // What is read again later is this, too.
    variant.configure(net, &lines)?;
    signal(daemon, Signal::HUP)?;
    // A device that is down, or an order, may have it open nothing.
    await_statistics(daemon, back_end, |statistics| {
        let name = &statistics["back_end"]["name"];
        name.is_null() || name == back_end
    })
}

/// The other way to forward, which this box is not set up for: refused, and nothing changes.
fn reload_wrong(net: &Net, (variant, daemon): (&Variant, &mut Agent)) -> Result<()> {
    let before = std::fs::read_to_string(net.file()).context("read its file")?;
    let wrong = match variant.forwarding {
        Forwarding::Routed => before.replace("= \"routed\"", "= \"bridge\""),
        Forwarding::Bridge => before.replace("wired = \"wired\"", "wired = \"lo\""),
    };
    std::fs::write(net.file(), &wrong).context("write its file")?;
    signal(daemon, Signal::HUP)?;
    std::thread::sleep(Duration::from_millis(150));
    if let Some(why) = daemon.ended() {
        bail!("settings that cannot be had end it: {why}");
    }
    let statistics = daemon.statistics()?;
    let forwarding = variant.forwarding.to_string();
    ensure!(statistics["forwarding"] == forwarding, "a refused file changes it: {statistics}");
    std::fs::write(net.file(), before).context("write its file")
}
