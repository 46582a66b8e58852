//! `lasthop schemes`.

use crate::error::Error;
use crate::output::outln;
use node::composition::{NAMED, Part, conflict};
use node::scenario::{LAB_ONLY, Sender};
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
    /// For a stack with a name: what it stands for.
    #[serde(skip_serializing_if = "Option::is_none")]
    stands_for: Option<&'static str>,
}

pub(crate) fn schemes(json: bool) -> Result<(), Error> {
    let listed: Vec<Listed> = Part::all()
        .map(Listed::of)
        .chain(NAMED.map(Listed::of_named))
        .chain(LAB_ONLY.map(Listed::of_lab))
        .collect();
    if json {
        let text = serde_json::to_string_pretty(&listed).map_err(Error::usage)?;
        outln!("{text}");
        return Ok(());
    }
    outln!("Schemes (--schemes), and ways to make handoffs (beside --handoff)");
    for one in &listed {
        let worlds = match (one.sim, one.live) {
            (true, true) => "sim, live",
            (true, false) => "sim",
            _ => "live",
        };
        outln!("{:<23} {worlds:<10} {:<13} {}", one.name, one.place, one.what);
    }
    outln!("\nStacks (--schemes one+other)");
    for one in listed.iter().filter(|one| !one.stacks_with.is_empty()) {
        outln!("{:<23} with {}", one.name, one.stacks_with.join(", "));
    }
    for (name, parts, _) in NAMED {
        outln!("{name:<23} is {parts}");
    }
    outln!("\nNever together");
    for (one, other, reason) in conflicts() {
        outln!("{one:<23} and {other:<16} {reason}");
    }
    outln!("\nSenders (--tcp)");
    for sender in Sender::ALL {
        let worlds = if sender.in_kernel().is_some() { "sim, live" } else { "sim" };
        outln!("{:<23} {worlds:<10} {}", sender.name(), sender.what());
    }
    Ok(())
}

/// The kinds of parts that do not go together, each pair once, and why.
fn conflicts() -> Vec<(&'static str, &'static str, &'static str)> {
    let parts: Vec<Part> = Part::all().collect();
    let mut found = Vec::new();
    for (place, one) in parts.iter().enumerate() {
        for other in &parts[place + 1..] {
            let row = conflict(*one, *other).map(|why| (one.kind(), other.kind(), why));
            found.extend(row.filter(|row| row.0 != row.1 && !found.contains(row)));
        }
    }
    found
}

impl Listed {
    fn of(part: Part) -> Listed {
        let others = Part::all().filter(|other| conflict(part, *other).is_none());
        // Beside another scheme, plain is what a base station is anyway.
        let others = others.map(Part::name).filter(|other| *other != "plain");
        Listed {
            name: part.name(),
            sim: true,
            live: part.is_live(),
            place: part.place(),
            what: part.what(),
            stacks_with: if part.name() == "plain" { Vec::new() } else { others.collect() },
            stands_for: None,
        }
    }

    fn of_named((name, parts, what): (&'static str, &'static str, &'static str)) -> Listed {
        let stands_for = Some(parts);
        Listed { stands_for, place: "a stack", ..Listed::simulated(name, what) }
    }

    fn of_lab((name, what): (&'static str, &'static str)) -> Listed {
        Listed { sim: false, live: true, ..Listed::simulated(name, what) }
    }

    fn simulated(name: &'static str, what: &'static str) -> Listed {
        let (place, stacks_with, stands_for) = ("", Vec::new(), None);
        Listed { name, sim: true, live: false, place, what, stacks_with, stands_for }
    }
}
