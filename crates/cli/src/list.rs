//! `lasthop schemes`.

use crate::error::Error;
use node::roaming::Style;
use node::scenario::{LAB_ONLY, Sender};
use schemes::stack::{self, CONFLICTS, LAYERS, Layer};
use serde::Serialize;

#[derive(Serialize)]
struct Listed {
    name: &'static str,
    sim: bool,
    live: bool,
    place: &'static str,
    what: &'static str,
    /// What may stand beside it, as in `snoop+fast-retransmit`.
    stacks_with: Vec<&'static str>,
}

pub(crate) fn schemes(json: bool) -> Result<(), Error> {
    let mut listed: Vec<Listed> = LAYERS.iter().map(Listed::of).collect();
    listed.extend(LAB_ONLY.map(|(name, what)| Listed {
        name,
        sim: false,
        live: true,
        place: "",
        what,
        stacks_with: Vec::new(),
    }));
    if json {
        let text = serde_json::to_string_pretty(&listed).map_err(Error::usage)?;
        println!("{text}");
        return Ok(());
    }
    println!("Schemes (--schemes)");
    for one in &listed {
        let worlds = match (one.sim, one.live) {
            (true, true) => "sim, live",
            (true, false) => "sim",
            _ => "live",
        };
        println!("{:<23} {worlds:<10} {:<13} {}", one.name, one.place, one.what);
    }
    println!("\nStacks (--schemes one+other)");
    for one in listed.iter().filter(|one| !one.stacks_with.is_empty()) {
        println!("{:<23} with {}", one.name, one.stacks_with.join(", "));
    }
    println!("\nHandoffs, in the simulator (--schemes one, or stack+one, beside --handoff)");
    for (name, _, what) in Style::NAMES {
        println!("{name:<23} {what}");
    }
    println!("\nNever together");
    for (one, other, reason) in CONFLICTS.iter().filter(|(one, other, _)| one != other) {
        println!("{:<23} and {:<16} {reason}", one.name(), other.name());
    }
    println!("\nSenders (--tcp)");
    for sender in Sender::ALL {
        let worlds = if sender.in_kernel().is_some() { "sim, live" } else { "sim" };
        println!("{:<23} {worlds:<10} {}", sender.name(), sender.what());
    }
    Ok(())
}

impl Listed {
    fn of(layer: &Layer) -> Listed {
        let others = LAYERS.iter().filter(|other| stack::conflict(layer, other).is_none());
        // Beside a mobile host's scheme, plain is what a base station is anyway.
        let others = others.map(|other| other.name).filter(|other| *other != "plain");
        Listed {
            name: layer.name,
            sim: true,
            live: layer.worlds.live(),
            place: layer.place.name(),
            what: layer.what,
            stacks_with: if layer.name == "plain" { Vec::new() } else { others.collect() },
        }
    }
}
