//! Fuzz targets: arbitrary bytes against the parsers and the engines.
//!
//! A target is a function of bytes that panics if an invariant breaks. [`wire_datagram`] and
//! [`mobility_message`] take their input as what stands on the wire, [`capture_assess`] as a file
//! of captured packets; [`tcp_endpoint`], [`snoop_agent`] and [`mobility_engines`] take theirs as a
//! script: each byte names a step (a segment, a loss, a timer, a call) and its parameters follow,
//! so that every input means something and a small change of the bytes is a small change of the
//! story.
//!
//! `corpus/` holds an input per file and folder of its target: seeds, and whatever failed once.
//! `tests/corpus.rs` replays all of them and then mutates them for some seconds, with stable Rust
//! alone. The project in `fuzz/` runs the same functions under libFuzzer.

mod capture_assess;
mod mobility_engines;
mod mobility_message;
mod script;
mod snoop_agent;
mod tcp_endpoint;
mod wire_datagram;

pub use capture_assess::capture_assess;
pub use mobility_engines::mobility_engines;
pub use mobility_message::{mobility_key, mobility_message};
pub use snoop_agent::snoop_agent;
pub use tcp_endpoint::tcp_endpoint;
pub use wire_datagram::wire_datagram;

/// A target and its name, which is also its folder in the corpus.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Name.
    pub name: &'static str,
    /// Takes any bytes; panics if an invariant breaks.
    pub run: fn(&[u8]),
}

/// Every target.
pub const TARGETS: [Target; 6] = [
    Target { name: "wire_datagram", run: wire_datagram },
    Target { name: "tcp_endpoint", run: tcp_endpoint },
    Target { name: "snoop_agent", run: snoop_agent },
    Target { name: "capture_assess", run: capture_assess },
    Target { name: "mobility_message", run: mobility_message },
    Target { name: "mobility_engines", run: mobility_engines },
];

impl Target {
    /// The target of this name.
    pub fn named(name: &str) -> Option<Target> {
        TARGETS.into_iter().find(|target| target.name == name)
    }
}
