//! `lasthop schemes`.

use crate::error::Error;
use node::scenario::{PLAIN_TUNED, Sender};
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
    listed.push(Listed {
        name: PLAIN_TUNED,
        sim: false,
        live: true,
        place: "fixed host",
        what: "plain, with tcp_rto_max_ms=1000 and tcp_rto_min_us=20000 at the sender",
        stacks_with: Vec::new(),
    });
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
