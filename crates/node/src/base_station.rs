//! The base station: which engines it is stacked from.
//!
//! Simulator and live daemons call this one function, so what was measured in the one world is
//! what runs in the other.

use schemes::Scheme;

/// The base station of a scheme, by the scheme's name; `None` if there is no such scheme.
pub fn compose(scheme: &str) -> Option<Scheme> {
    Scheme::named(scheme)
}
