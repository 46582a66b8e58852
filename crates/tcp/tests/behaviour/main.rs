//! The endpoint's behaviour, seen from outside.

mod bbr;
mod drill;
mod handshake;
mod linux;
mod linux_sack;
mod ns2;
mod pair;
mod properties;
mod recovery;
mod sending;
mod smoltcp;
mod transfer;
mod vegas;
