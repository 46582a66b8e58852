//! The ways to run the daemon: everything here has to leave connections as they are.

use crate::net::{Family, MOBILE_PREFIX_V6, Net};
use anyhow::{Context, Result};
use live::daemon::Forwarding;
use live::lab::Program;
use live::lab::agent::{Agent, Line};
use live::lab::network::{MOBILE_PREFIX, RADIO, RADIO_HIGH, WIRED};
use std::ffi::OsString;

/// A way to run the daemon.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Variant {
    pub(crate) name: &'static str,
    /// The network it needs.
    pub(crate) forwarding: Forwarding,
    run: Run,
}

#[derive(Clone, Copy, Debug)]
enum Run {
    /// `daemon base-station` with this scheme, for hosts of one version of IP.
    Options(&'static str),
    /// `daemon gateway` with a file that has these lines besides, for hosts of both.
    File(&'static str),
}

/// The first of [`VARIANTS`]: what is tested in these only.
pub(crate) const USUAL: usize = 2;

/// All of them.
pub(crate) const VARIANTS: &[Variant] = &[
    Variant::routed("snoop-modern", Run::Options("snoop-modern")),
    Variant::routed("snoop", Run::Options("snoop")),
    Variant::routed("a gateway", Run::File("back-end = \"inline\"")),
    Variant::routed("a gateway, fast path", Run::File("back-end = \"fast\"")),
    Variant::bridge("a bridge", Run::File("back-end = \"inline\"")),
    Variant::bridge("a bridge, fast path", Run::File("back-end = \"fast\"")),
];

/// With help from the first packet on.
pub(crate) const AT_ONCE: Variant = Variant::routed(
    "helping at once",
    Run::File("back-end = \"inline\"\nhelp-from = \"first-packet\""),
);

/// Those that run on such a network.
pub(crate) fn on(forwarding: Forwarding) -> Vec<&'static Variant> {
    VARIANTS.iter().filter(|one| one.forwarding == forwarding).collect()
}

/// True if LASTHOP_VARIANTS=all asks for every test in every variant.
pub(crate) fn all_are_asked_for() -> bool {
    std::env::var_os("LASTHOP_VARIANTS").is_some_and(|value| value == "all")
}

impl Variant {
    const fn routed(name: &'static str, run: Run) -> Variant {
        Variant { name, forwarding: Forwarding::Routed, run }
    }

    const fn bridge(name: &'static str, run: Run) -> Variant {
        Variant { name, forwarding: Forwarding::Bridge, run }
    }

    /// True if its settings can be read again.
    pub(crate) fn has_file(&self) -> bool {
        matches!(self.run, Run::File(_))
    }

    /// Starts it in the box; orders reach it by `line`.
    pub(crate) fn start(&self, net: &Net, line: &Line, family: Family) -> Result<Agent> {
        let scheme = match self.run {
            Run::Options(scheme) => scheme,
            Run::File(lines) => return self.start_with(net, line, lines),
        };
        let mobile = if family == Family::V4 { MOBILE_PREFIX } else { MOBILE_PREFIX_V6 };
        let mut words = vec!["daemon", "base-station", "--wired", WIRED, "--radio", RADIO];
        if net.has_high_device() {
            words.extend(["--radio-high", RADIO_HIGH]);
        }
        words.extend(["--mobile", mobile, "--control", "-", "--scheme", scheme]);
        spawn(net, line, words.into_iter().map(Into::into).collect())
    }

    /// Starts a gateway on such a network with these lines in its file.
    pub(crate) fn start_with(&self, net: &Net, line: &Line, lines: &str) -> Result<Agent> {
        self.configure(net, lines)?;
        let words = ["daemon", "gateway", "--config"].map(OsString::from);
        spawn(net, line, words.into_iter().chain([net.file().into()]).collect())
    }

    /// Writes its file, with these lines besides.
    pub(crate) fn configure(&self, net: &Net, lines: &str) -> Result<()> {
        configure(net, self.forwarding, lines)
    }
}

fn spawn(net: &Net, line: &Line, arguments: Vec<OsString>) -> Result<Agent> {
    let program = Program { path: env!("CARGO_BIN_EXE_lasthop").into(), arguments };
    Agent::spawn(&program, net.base(), line)
}

/// Writes the file of a gateway that helps, with these lines besides. Nobody is left without help
/// by lot.
pub(crate) fn configure(net: &Net, forwarding: Forwarding, lines: &str) -> Result<()> {
    let text = format!(
        "wired = \"{WIRED}\"\nradio = \"{RADIO}\"\nmode = \"help\"\ncontrol = \"-\"\n\
         mobile = [\"{MOBILE_PREFIX}\", \"{MOBILE_PREFIX_V6}\"]\nworth.control-share = \"0%\"\n\
         forwarding = \"{forwarding}\"\n{lines}\n"
    );
    std::fs::write(net.file(), text).context("write the daemon's file")
}
