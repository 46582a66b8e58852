//! What runs without a device: the daemon's loop on a virtual clock, frames, the emulated hops and
//! what is read from their log.

mod common;
mod daemon_loop;
mod frames;
mod hops;
mod ways;
