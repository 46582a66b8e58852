//! Scripts: one end makes its segments by hand, and what the other, a kernel, answers is the same
//! with the daemon in the path, packet by packet, and comes at the same time.
//!
//! Where a script pretends a loss on the way to the mobile host, a daemon that knows of a radio
//! does what it is there for. By default it does not know before a window is acknowledged; so
//! few scripts are answered otherwise, those that say so ([`Script::helped`]). Told to help at once
//! it may answer all of them otherwise. Then the raw end's view has to be legal ([`illegal`]).
//!
//! Map: [`player`] (both ends), [`sending`], [`receiving`], [`states`] (the scripts).

mod player;
mod receiving;
mod sending;
mod states;

use crate::net::{Family, Host, Net, Path};
use crate::variant::{self, AT_ONCE, VARIANTS, Variant};
use anyhow::{Context, Result};
use live::sys::namespace;
use live::sys::offload;
use player::{Player, Seen};
use std::time::Duration;
use wire::tcp::Flags;

/// A script.
#[derive(Clone, Copy)]
pub(crate) struct Script {
    name: &'static str,
    /// True if the daemon has reason to act: something seems to be lost to a mobile host that has
    /// acknowledged a window.
    helped: bool,
    play: fn(&mut Player<'_>) -> Result<()>,
}

impl Script {
    const fn new(name: &'static str, play: fn(&mut Player<'_>) -> Result<()>) -> Script {
        Script { name, helped: false, play }
    }

    const fn helped(self) -> Script {
        Script { helped: true, ..self }
    }
}

/// How much earlier or later a packet may come: where nothing else runs, as `make soak` asks for,
/// and where other tests do.
const TOLERANCE_MS: f64 = 5.0;
const TOLERANCE_BESIDE_OTHERS_MS: f64 = 50.0;
/// A difference that is not seen each time is the machine's, whose processors others use, too.
const TIMES: u32 = 6;
/// Scripts that are played at a time, by different raw ends.
const TRACKS: usize = 6;

pub(crate) fn scripts_are_answered_the_same() {
    let different = played().unwrap_or_else(|error| panic!("{error:#}"));
    assert!(different.is_empty(), "{}", different.join("\n"));
}

fn played() -> Result<Vec<String>> {
    let part = std::env::var("SCRIPT").unwrap_or_default();
    let all = [sending::ALL, receiving::ALL, states::ALL].concat();
    let scripts: Vec<Script> = all.into_iter().filter(|one| one.name.contains(&part)).collect();
    let mut different = Vec::new();
    let chosen: Vec<&Variant> = match variant::all_are_asked_for() {
        true => VARIANTS.iter().chain([&AT_ONCE]).collect(),
        false => vec![&VARIANTS[0]],
    };
    for variant in chosen {
        for raw_at in Host::BOTH {
            let make = |lane| -> Result<Net> {
                let net = Net::with_box(variant.forwarding, lane, &Path::Direct)?;
                player::prepare(&net, raw_at, scripts.len() as u8)?;
                // What leaves is what is sent, segment by segment.
                for host in Host::BOTH {
                    namespace::within(net.namespace(host), || offload::switch_off("net0"))?;
                }
                Ok(net)
            };
            let (off, on) = (make(60)?, make(61)?);
            let _daemon = on.daemon(variant, Family::V4)?;
            different.extend(all_between(&scripts, raw_at, (&off, &on), variant));
        }
    }
    Ok(different)
}

fn all_between(
    scripts: &[Script],
    raw_at: Host,
    (off, on): (&Net, &Net),
    variant: &Variant,
) -> Vec<String> {
    std::thread::scope(|scope| {
        let track = |first: usize| {
            scope.spawn(move || {
                let numbered = scripts.iter().enumerate().skip(first).step_by(TRACKS);
                let one = |(number, script): (usize, &Script)| {
                    // The paper's agent also tells mobile hosts of gaps (SNOOP-NACK-2).
                    let others = [AT_ONCE.name, "snoop"];
                    let may_differ = script.helped || others.contains(&variant.name);
                    let found = compare((script, number as u8), raw_at, (off, on), may_differ);
                    let found = found.unwrap_or_else(|error| Some(format!("{error:#}")))?;
                    Some(format!("{}, raw {raw_at:?}, {}:\n{found}", script.name, variant.name))
                };
                numbered.filter_map(one).collect::<Vec<_>>()
            })
        };
        let tracks: Vec<_> = (0..TRACKS).map(track).collect();
        tracks.into_iter().flat_map(|track| track.join().expect("no panic")).collect()
    })
}

/// What is different each time, if anything is.
fn compare(
    (script, number): (&Script, u8),
    raw_at: Host,
    (off, on): (&Net, &Net),
    may_differ: bool,
) -> Result<Option<String>> {
    let mut last = None;
    for time in 0..TIMES {
        // A machine that is busy now may be less so later.
        std::thread::sleep(Duration::from_millis(100) * time);
        let (without, with) = std::thread::scope(|scope| {
            let off = scope.spawn(|| once(script, (number, time), raw_at, off));
            let with = once(script, (number, time), raw_at, on);
            (off.join().expect("no panic"), with)
        });
        let found = match (without.context("without a daemon"), with.context("with it")) {
            (Ok((without, _)), Ok((with, sent))) => {
                let Some(found) = difference(&without, &with) else { return Ok(None) };
                let why = illegal(&without, &with, sent);
                if may_differ && why.is_none() {
                    println!("  {}, raw {raw_at:?}: other packets, all legal", script.name);
                    return Ok(None);
                }
                format!("{}{found}", why.unwrap_or_default())
            }
            (Err(error), _) | (_, Err(error)) => format!("{error:#}"),
        };
        last = Some(found);
    }
    Ok(last)
}

/// What the raw end saw, and how far it sent.
fn once(script: &Script, number: (u8, u32), raw_at: Host, net: &Net) -> Result<(Vec<Seen>, u32)> {
    let mut player = Player::new(net, raw_at, number)?;
    let played = (script.play)(&mut player);
    let (seen, sent) = (std::mem::take(&mut player.seen), player.sent);
    // Nothing of it shall be met by the next.
    player.end()?;
    played.with_context(|| format!("{}: {}", script.name, shown(&seen)))?;
    Ok((seen, sent))
}

fn shown(seen: &[Seen]) -> String {
    let line = |one: &Seen| format!("    {:8.1} {}\n", one.at_ms, one.text);
    seen.iter().map(line).collect()
}

/// The first packet or call that is another, or comes at another time.
fn difference(without: &[Seen], with: &[Seen]) -> Option<String> {
    let tolerance = match variant::all_are_asked_for() {
        true => TOLERANCE_MS,
        false => TOLERANCE_BESIDE_OTHERS_MS,
    };
    let is_same = |(a, b): (&Seen, &Seen)| {
        let near = |a: f64, b: f64| (a - b).abs() <= tolerance;
        let stamp = |one: &Seen| f64::from(one.timestamp.unwrap_or(0));
        a.text == b.text && near(a.at_ms, b.at_ms) && near(stamp(a), stamp(b))
    };
    let first = without.iter().zip(with).position(|pair| !is_same(pair));
    let first = first.or((without.len() != with.len()).then(|| without.len().min(with.len())))?;
    Some(format!(
        "  from number {first} on:\n  without\n{}  with\n{}",
        shown(&without[first..]),
        shown(&with[first..])
    ))
}

/// What a raw end may not see though the daemon helps it: ACKs of what it did not send itself,
/// other SYNs and resets.
fn illegal(without: &[Seen], with: &[Seen], sent: u32) -> Option<&'static str> {
    let segments = |seen: &[Seen]| -> Vec<(Flags, u32, usize, u32)> {
        seen.iter().filter_map(|one| one.segment).collect()
    };
    let (without, with) = (segments(without), segments(with));
    let acked =
        |segments: &[(Flags, u32, usize, u32)]| segments.iter().map(|(_, _, _, ack)| *ack).max();
    let marks = |segments: &[(Flags, u32, usize, u32)]| -> Vec<(u16, u32)> {
        let marked = segments.iter().filter(|one| one.0.intersects(Flags::SYN.with(Flags::RST)));
        marked.map(|(flags, seq, ..)| (flags.0, *seq)).collect()
    };
    if acked(&with) > Some(sent) {
        Some("  an ACK of what was not sent\n")
    } else if marks(&with) != marks(&without) {
        Some("  other SYNs or resets\n")
    } else {
        None
    }
}
