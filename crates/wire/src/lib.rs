//! Bytes to values and back: Ethernet, ARP, IPv4, IPv6, TCP with every option, UDP, ICMP, Mobile
//! IPv4, the messages between our own agents, pcapng.
//!
//! Nothing here knows time or state. A parser turns bytes into a value that can only be valid, or
//! says why not ([`Error`]); an emitter turns any value into bytes. What a parser accepts, its
//! emitter writes back byte for byte.
//!
//! Map: [`datagram`] (one IP datagram, whole: start here), [`tcp`] (sequence numbers, header,
//! options), [`ip`] (what an engine needs of either version), [`ipv4`], [`ipv6`], [`udp`],
//! [`icmp`], [`ethernet`], [`arp`], [`mobile_ip`] (agent discovery, registration, tunnels),
//! [`control`] (beacons and handoffs between our agents), [`auth`] (keys and HMAC), [`checksum`]
//! (RFC 1071 and its incremental update, RFC 1624), [`pcapng`] (writer).

pub mod arp;
pub mod auth;
mod bytes;
pub mod checksum;
pub mod control;
pub mod datagram;
mod error;
pub mod ethernet;
pub mod icmp;
pub mod ip;
pub mod ipv4;
pub mod ipv6;
pub mod mobile_ip;
pub mod pcapng;
pub mod tcp;
pub mod udp;

pub use error::Error;
