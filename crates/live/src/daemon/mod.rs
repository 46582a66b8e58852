//! The daemon: packet sockets around an unchanged engine, at a base station or above several.
//!
//! The kernel's own forwarding is set up completely, and stays so. On top of it, rules at ingress
//! drop exactly what the daemon takes and sends on itself ([`selection`]); they vanish with the
//! daemon ([`rules`]), so that killing it leaves plain forwarding at once.
//!
//! When it begins to help, the sockets come first, then the rules: for a moment a packet is seen
//! twice, by the daemon and by the kernel, and both send it on. Hosts take that for a harmless
//! duplicate; the other order would lose packets. When it ends to help, the rules go first, then
//! what waits in the sockets is sent on.
//!
//! A bridge's kernel side is a bridge of the kernel's own ([`bridged`]): what the daemon does not
//! take passes there, whatever it is.
//!
//! Limit: both devices have the same MTU, since the daemon sends no "packet too big".
//!
//! Map: [`config`] (what can be set), [`settings`] (the file), [`machine`] (can this machine do
//! it?), `service` (the loop), [`station`] (the loop without its waiting), `link` (modes, and
//! devices that go), [`path`] (sockets and rules), [`selection`] (which packets), [`choice`] (which
//! back end), [`neighbours`] and [`bridged`] (how they go on), [`rules`] (nft), [`kernel`] (what it
//! is set to do), [`ruleset`] (what others have set up); for people: [`control`] (orders and
//! questions), `listing` (flow by flow), [`snapshot`] and [`metrics`] (what happened), `server`
//! (over HTTP), `journal` (the log), `manager` (systemd).

pub mod bridged;
pub mod choice;
pub mod config;
pub mod control;
mod journal;
pub mod kernel;
mod link;
mod listing;
pub mod machine;
mod manager;
pub mod metrics;
pub mod neighbours;
pub mod path;
pub mod rules;
pub mod ruleset;
mod schedule;
pub mod selection;
mod server;
mod service;
pub mod settings;
pub mod snapshot;
pub mod station;

pub use config::{BackEnd, DaemonConfig, Forwarding, Limits, Mode, Place};
pub use control::Control;
pub use selection::Prefix;
pub use service::run;
pub use station::Station;
