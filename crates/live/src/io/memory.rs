//! Packets in memory, on a virtual clock: the daemon loop without a device.

use super::{Arrived, PacketIo};
use crate::daemon::Station;
use crate::sys::packet_socket::Outgoing;
use anyhow::Result;
use bytes::Bytes;
use sansio::{Engine, Instant, Priority, Side};
use std::collections::VecDeque;
use std::io;
use std::net::IpAddr;
use wire::ethernet::Mac;

/// What the base station sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sent {
    /// A frame, virtio prefix first.
    Frame {
        /// When.
        at: Instant,
        /// On which side.
        side: Side,
        /// With which priority.
        priority: Priority,
        /// Its bytes.
        bytes: Bytes,
    },
    /// A datagram, for the kernel to route.
    Routed {
        /// When.
        at: Instant,
        /// Where to.
        destination: IpAddr,
        /// Its bytes.
        bytes: Bytes,
    },
}

/// Arrivals planned beforehand, and what was sent.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    now: Instant,
    arrivals: VecDeque<(Instant, Side, Bytes)>,
    queued: Vec<(Side, Priority, Outgoing)>,
    /// Everything sent, in order.
    pub sent: Vec<Sent>,
    /// Of which stations the kernel's bridge was told, and when.
    pub told: Vec<(Instant, Side, Mac)>,
}

impl Memory {
    /// The address of the device on a side.
    pub fn device(side: Side) -> Mac {
        Mac([2, 0, 0, 0, side.0 as u8, 0xfe])
    }

    /// Plans an arrival, not before those planned already.
    pub fn arrive(&mut self, at: Instant, side: Side, frame: impl Into<Bytes>) {
        debug_assert!(self.arrivals.back().is_none_or(|(last, ..)| *last <= at), "in order");
        self.arrivals.push_back((at, side, frame.into()));
    }

    /// Runs a base station until `until`: time jumps from each arrival or deadline to the next.
    ///
    /// # Errors
    /// As [`Station::turn`].
    pub fn run<E: Engine>(&mut self, station: &mut Station<E>, until: Instant) -> Result<()> {
        loop {
            station.turn(self)?;
            let arrival = self.arrivals.front().map(|(at, ..)| *at);
            let deadline = station.next_deadline();
            let next = [arrival, deadline].into_iter().flatten().min();
            match next.filter(|at| *at <= until) {
                Some(at) => self.now = self.now.max(at),
                None => {
                    self.now = self.now.max(until);
                    return Ok(());
                }
            }
        }
    }
}

impl PacketIo for Memory {
    fn now(&self) -> Instant {
        self.now
    }

    fn receive(&mut self, into: &mut Vec<Arrived>) -> Result<()> {
        while let Some((at, ..)) = self.arrivals.front()
            && *at <= self.now
            && let Some((_, side, frame)) = self.arrivals.pop_front()
        {
            into.push(Arrived { side, frame, at: None });
        }
        Ok(())
    }

    fn mac(&self, side: Side, _: Priority) -> Mac {
        Memory::device(side)
    }

    fn queue(&mut self, side: Side, priority: Priority, _: u32, frame: Outgoing) {
        self.queued.push((side, priority, frame));
    }

    fn flush(&mut self, _: &mut Vec<u32>) -> usize {
        let at = self.now;
        self.sent.extend(self.queued.drain(..).map(|(side, priority, frame)| {
            let bytes = [frame.head.as_bytes(), &frame.rest].concat().into();
            Sent::Frame { at, side, priority, bytes }
        }));
        0
    }

    fn tell_bridge(&mut self, side: Side, station: Mac) {
        self.told.push((self.now, side, station));
    }

    fn route(&mut self, destination: IpAddr, datagram: &[u8]) -> io::Result<()> {
        let bytes = Bytes::copy_from_slice(datagram);
        self.sent.push(Sent::Routed { at: self.now, destination, bytes });
        Ok(())
    }
}
