//! `lasthop man`: the manual pages, one for each command, and lasthop.toml(5).

use crate::args;
use crate::error::Error;
use clap_mangen::roff::{Roff, bold, roman};
use std::path::Path;

/// The annotated configuration, which is also what the manual says of it.
const CONFIGURATION: &str = include_str!("../../../dist/lasthop.toml");

/// Writes all pages into a folder.
pub(crate) fn write(folder: &Path) -> Result<(), Error> {
    let attempt = |error: std::io::Error| {
        Error::Machine(format!("write manual pages into {}: {error}", folder.display()))
    };
    std::fs::create_dir_all(folder).map_err(attempt)?;
    clap_mangen::generate_to(args::command(), folder).map_err(attempt)?;
    std::fs::write(folder.join("lasthop.toml.5"), configuration()).map_err(attempt)
}

/// lasthop.toml(5).
fn configuration() -> String {
    let mut page = Roff::new();
    page.control("TH", ["lasthop.toml", "5", "", "lasthop", ""]);
    page.control("SH", ["NAME"]);
    page.text([roman("lasthop.toml - configuration of lasthop daemon gateway and base-station")]);
    page.control("SH", ["SYNOPSIS"]);
    page.text([bold("lasthop daemon gateway --config"), roman(" FILE")]);
    page.control("br", []);
    page.text([bold("lasthop daemon base-station --config"), roman(" FILE")]);
    page.control("SH", ["DESCRIPTION"]);
    page.text([roman(
        "The file is TOML. Unknown keys are refused, and quantities carry their unit: 50Mbit/s, \
         10s. SIGHUP and `lasthop daemon ctl reload` have a running daemon read it again; if \
         something in it is wrong, the daemon says so and keeps what it had. A complete file:",
    )]);
    page.control("PP", []);
    page.control("nf", []);
    for line in CONFIGURATION.lines() {
        page.text([roman(line)]);
    }
    page.control("fi", []);
    page.control("SH", ["SEE ALSO"]);
    page.text([bold("lasthop-daemon-ctl"), roman("(1), "), bold("lasthop-top"), roman("(1)")]);
    page.to_roff()
}
