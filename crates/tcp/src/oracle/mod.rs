//! Outside oracles: our endpoints against what other implementations did.

pub mod ns2;
mod path;
