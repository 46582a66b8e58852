//! `lasthop schemes`.

use crate::error::Error;
use node::scenario::{LAB_ONLY, Sender};
use schemes::Scheme;
use serde::Serialize;

#[derive(Serialize)]
struct Listed {
    name: &'static str,
    sim: bool,
    live: bool,
    what: &'static str,
}

pub(crate) fn schemes(json: bool) -> Result<(), Error> {
    let engines = Scheme::NAMES.iter();
    let mut listed: Vec<Listed> =
        engines.map(|&(name, what)| Listed { name, sim: true, live: true, what }).collect();
    listed.extend(LAB_ONLY.map(|(name, what)| Listed { name, sim: false, live: true, what }));
    if json {
        let text = serde_json::to_string_pretty(&listed).map_err(Error::usage)?;
        println!("{text}");
        return Ok(());
    }
    println!("Schemes (--schemes)");
    for one in listed {
        let worlds = if one.sim { "sim, live" } else { "live" };
        println!("{:<14} {worlds:<10} {}", one.name, one.what);
    }
    println!("\nSenders (--tcp)");
    for sender in Sender::ALL {
        let worlds = if sender.in_kernel().is_some() { "sim, live" } else { "sim" };
        println!("{:<14} {worlds:<10} {}", sender.name(), sender.what());
    }
    Ok(())
}
