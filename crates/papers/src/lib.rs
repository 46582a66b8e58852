//! Every experiment of the papers that can be repeated: its set-up, our value with its interval,
//! the published value with its tolerance, the verdict, and the reason where they part.
//!
//! One folder per paper, in it one file per figure or table: `snoop/figure_7.rs` is Figure 7 of the
//! Snoop paper. What is run is data: `studies/snoop/figure-7.toml`, a scenario like any other,
//! which `lasthop compare` runs, too. What stands here is how its runs are judged, and the few
//! parameters that no scenario file has.
//!
//! ```text
//!   studies/*.toml ──▶ runs ──▶ Results ──judge──▶ Judged ──▶ table, JSON, page, docs/papers
//!                                  └──────▶ figures (ours, and the published points beside them)
//! ```
//!
//! Rules of the house: nothing is tuned to a published number except the inputs that a study names
//! as calibrated; an experiment that cannot be repeated yet is listed with what it needs; a value
//! that was not published has no target.

pub mod caceres_iftode;
mod crossings;
mod events;
mod judged;
mod moves;
mod paper;
mod runs;
mod setup;
pub mod snoop;
mod watch;
pub mod window;

pub use crossings::Crossing;
pub use events::Events;
pub use judged::{Criterion, Judged, Point, Verdict};
pub use moves::Moves;
pub use paper::{Content, Experiment, Paper, Study, select};
pub use runs::{Error, Outcome, Results, Selected, run};
pub use setup::setup;
pub use watch::{Air, Watched};

/// The papers, in the order of their listing.
pub static PAPERS: [&Paper; 3] = [&snoop::PAPER, &caceres_iftode::PAPER, &window::PAPER];
