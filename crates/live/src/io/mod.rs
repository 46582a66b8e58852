//! Where a base station's packets come from and go to: packet sockets on real devices
//! ([`inline`], [`tap`]; [`joining`]), or memory with a virtual clock ([`memory`]), in which the
//! whole daemon loop runs deterministically.

pub mod inline;
pub mod joining;
pub mod memory;
pub mod tap;

use crate::sys::packet_socket::Outgoing;
use anyhow::Result;
use bytes::Bytes;
use sansio::{Instant, Priority, Side};
use std::io;
use std::net::IpAddr;
use wire::ethernet::Mac;

/// A frame that arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrived {
    /// On which side.
    pub side: Side,
    /// Its bytes, virtio prefix first.
    pub frame: Bytes,
    /// When; `None`: just now.
    pub at: Option<Instant>,
}

/// Packet input and output of a base station, with its clock. Frames carry the virtio prefix
/// ([`crate::frame`]).
pub trait PacketIo {
    /// Time since the daemon began.
    fn now(&self) -> Instant;

    /// Appends frames that arrived, in order on each side; a bounded number, so that one call
    /// never takes long. What the fixed hosts had sent by the time of an ACK comes before it.
    ///
    /// # Errors
    /// If a device is gone.
    fn receive(&mut self, into: &mut Vec<Arrived>) -> Result<()>;

    /// The address of the device by which such packets leave.
    fn mac(&self, side: Side, priority: Priority) -> Mac;

    /// Puts a frame up for sending; `token` is the caller's name for it.
    fn queue(&mut self, side: Side, priority: Priority, token: u32, frame: Outgoing);

    /// Hands all frames put up to their devices; appends the tokens of those that were refused.
    /// Returns how many left joined with others.
    fn flush(&mut self, refused: &mut Vec<u32>) -> usize;

    /// Tells the kernel's bridge that a frame of this station was taken from it on this side.
    fn tell_bridge(&mut self, side: Side, station: Mac);

    /// Has the kernel route a datagram.
    ///
    /// # Errors
    /// If it has no route, or the datagram does not fit the device's MTU.
    fn route(&mut self, destination: IpAddr, datagram: &[u8]) -> io::Result<()>;
}
