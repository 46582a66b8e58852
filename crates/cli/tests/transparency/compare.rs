//! Every exchange with the daemon and without, in two networks side by side; the notes compared.

use crate::exchanges::{self, Exchange, Handler};
use crate::load::Stopwatch;
use crate::net::{Host, Net, Path};
use crate::stage::{Lacking, Stage};
use crate::variant::{self, AT_ONCE, USUAL, VARIANTS, Variant};
use crate::watch::Watch;
use anyhow::{Context, Result, ensure};
use live::daemon::Forwarding;
use live::lab::agent::Agent;
use std::collections::BTreeMap;

/// How an exchange went.
enum Played {
    /// What the hosts saw, and what the watch found wrong.
    Notes(Vec<String>, Vec<String>),
    Lacking(String),
}

/// Directly joined devices, offloads on.
pub(crate) fn on_a_clean_path() {
    on(&Path::Direct, |_| true);
}

/// The lab's radio, which loses one packet in a hundred each way.
pub(crate) fn on_a_lossy_path() {
    on(&Path::lossy(0.01, 1), |exchange| exchange.on_loss);
}

/// One of them by name, for who looks for the reason of a failure: `EXCHANGE=sendfile`.
fn is_chosen(exchange: &Exchange) -> bool {
    std::env::var("EXCHANGE").map_or(true, |part| exchange.name.contains(&part))
}

/// What takes longer, in seconds, is told of each variant.
const LONG_S: f64 = 4.0;
/// Exchanges that are played at a time, each in networks of its own.
const TRACKS: u32 = 4;

fn on(path: &Path, fits: impl Fn(&Exchange) -> bool) {
    let exchanges: Vec<Exchange> =
        exchanges::all().filter(|one| fits(one) && is_chosen(one)).collect();
    assert!(!exchanges.is_empty(), "no exchange is chosen");
    let different: Vec<String> = std::thread::scope(|scope| {
        let track = |number: u32| {
            let mine = exchanges.iter().skip(number as usize).step_by(TRACKS as usize);
            scope.spawn(move || play_all(path, number, mine.collect()))
        };
        let tracks: Vec<_> = (0..TRACKS).map(track).collect();
        let played = tracks.into_iter().map(|track| track.join().expect("no panic"));
        played
            .flat_map(|result| result.unwrap_or_else(|error| vec![format!("{error:#}")]))
            .collect()
    });
    assert!(different.is_empty(), "{}", different.join("\n"));
}

/// The networks of a track, each made when it is needed first: without a daemon, and one for each
/// variant.
struct Nets<'a> {
    path: &'a Path,
    lane: u32,
    made: BTreeMap<String, Net>,
}

impl Nets<'_> {
    fn make(&mut self, name: &str, forwarding: Forwarding) -> Result<()> {
        if !self.made.contains_key(name) {
            let lane = self.lane + self.made.len() as u32;
            let net = Net::with_box(forwarding, lane, self.path)?;
            self.made.insert(name.to_owned(), net);
        }
        Ok(())
    }
}

/// The variants in which an exchange of a track is played: the usual ones, and one of the others in
/// turn, unless all are asked for. Then there is also one that helps from the first packet on: most
/// exchanges end before they have shown that help is safe.
fn chosen(track: u32) -> Vec<&'static Variant> {
    if variant::all_are_asked_for() {
        return VARIANTS.iter().chain([&AT_ONCE]).collect();
    }
    let (usual, others) = VARIANTS.split_at(USUAL);
    usual.iter().chain([&others[track as usize % others.len()]]).collect()
}

/// Plays exchanges one after the other; returns what was not as it has to be.
fn play_all(path: &Path, track: u32, exchanges: Vec<&Exchange>) -> Result<Vec<String>> {
    let mut nets = Nets { path, lane: 20 + track * 10, made: BTreeMap::new() };
    let mut different = Vec::new();
    for exchange in exchanges {
        let began = Stopwatch::start();
        let variants = chosen(track);
        for variant in &variants {
            nets.make(&variant.forwarding.to_string(), variant.forwarding)?;
            nets.make(variant.name, variant.forwarding)?;
        }
        let played = play_side_by_side(&nets, &variants, exchange);
        let without = |variant: &Variant| &played[&variant.forwarding.to_string()];
        for variant in variants {
            let (without, with) = (without(variant), &played[variant.name]);
            different.extend(difference(exchange, variant, without, with));
        }
        match &played[&Forwarding::Routed.to_string()] {
            Ok(Played::Lacking(what)) => {
                println!("  {}: not on this kernel: {what}", exchange.name);
            }
            _ => println!("  {} ({:.1} s)", exchange.name, began.elapsed().as_secs_f64()),
        }
    }
    Ok(different)
}

/// Plays an exchange in variants, and in their networks without a daemon; by name of the network.
fn play_side_by_side(
    nets: &Nets<'_>,
    variants: &[&'static Variant],
    exchange: &Exchange,
) -> BTreeMap<String, Result<Played>> {
    let mut plays: BTreeMap<String, Option<&'static Variant>> = BTreeMap::new();
    for variant in variants {
        plays.insert(variant.forwarding.to_string(), None);
        plays.insert(variant.name.to_owned(), Some(variant));
    }
    std::thread::scope(|scope| {
        let each = |(name, variant): (String, Option<&'static Variant>)| {
            let net = &nets.made[&name];
            let thread = scope.spawn(move || play(net, variant, exchange));
            (name, thread)
        };
        let threads: Vec<_> = plays.into_iter().map(each).collect();
        let ended = threads.into_iter();
        ended.map(|(name, thread)| (name, thread.join().expect("no panic"))).collect()
    })
}

/// What is not as it has to be; nothing if all is.
fn difference(
    exchange: &Exchange,
    variant: &Variant,
    without: &Result<Played>,
    with: &Result<Played>,
) -> Option<String> {
    let name = format!("{} with {}", exchange.name, variant.name);
    match (without, with) {
        (Ok(Played::Lacking(_)), Ok(Played::Lacking(_))) => None,
        (Ok(Played::Notes(off, wrong_off)), Ok(Played::Notes(on, wrong_on))) => {
            if off != on {
                Some(format!("{name}:\n  without {off:#?}\n  with {on:#?}"))
            } else if !wrong_off.is_empty() || !wrong_on.is_empty() {
                Some(format!("{name}: without {wrong_off:#?}, with {wrong_on:#?}"))
            } else {
                None
            }
        }
        (Err(error), _) => Some(format!("{name}: without a daemon: {error:#}")),
        (_, Err(error)) => Some(format!("{name}: {error:#}")),
        _ => Some(format!("{name}: this kernel has it in one of two networks only")),
    }
}

fn play(net: &Net, variant: Option<&Variant>, exchange: &Exchange) -> Result<Played> {
    let daemon: Option<Agent> =
        variant.map(|variant| net.daemon(variant, exchange.family)).transpose()?;
    let mut before = Vec::new();
    for (setting, value) in exchange.settings {
        for host in Host::BOTH {
            before.push((host, *setting, net.set(host, setting, value)?));
        }
    }
    let watch = Watch::start(net)?;
    let stage = Stage::new(net, exchange.family);
    let began = Stopwatch::start();
    let played = (exchange.play)(&stage);
    let took = began.elapsed().as_secs_f64();
    if took > LONG_S {
        let name = variant.map_or("no daemon", |variant| variant.name);
        println!("  {} with {name}: {took:.1} s", exchange.name);
    }
    let wrong = watch.finish();
    for (host, setting, value) in before {
        net.set(host, setting, &value)?;
    }
    if let Err(error) = played {
        return match error.downcast_ref::<Lacking>() {
            Some(what) => Ok(Played::Lacking(what.to_string())),
            None => Err(error).with_context(|| format!("so far {:?}", stage.into_log())),
        };
    }
    if let Some(daemon) = daemon {
        let statistics = daemon.statistics()?;
        let count = |whose: &str| statistics["packets"][whose].as_u64().context("a count");
        let is_bridge = net.forwarding == Forwarding::Bridge;
        let (whose, counted) = match exchange.handler {
            Handler::NobodyOnABridge if is_bridge => ("nothing", 1),
            Handler::Kernel => ("left_to_kernel", count("left_to_kernel")?),
            Handler::Router if !is_bridge => ("left_to_kernel", count("left_to_kernel")?),
            _ => ("taken or seen", count("taken")? + count("seen")?),
        };
        ensure!(counted > 0, "no packet is counted as {whose}: {statistics}");
    }
    Ok(Played::Notes(stage.into_log(), wrong?))
}
