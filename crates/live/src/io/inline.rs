//! Packet sockets on the base station's devices.
//!
//! Inline, both sockets listen and everything goes through them. With a tap ([`super::tap`]) the
//! kernel forwards, and what comes from the fixed hosts is only looked at.

use super::tap::Tap;
use super::{Arrived, PacketIo};
use crate::sys::Clock;
use crate::sys::netlink::Stations;
use crate::sys::packet_socket::{Leave, Listen, Outgoing, PacketSocket, Prefix, Received};
use crate::sys::poll::Poll;
use crate::sys::raw_ip::RawIp;
use anyhow::{Context, Result};
use sansio::{Instant, Priority, Side};
use std::io;
use std::net::IpAddr;
use wire::ethernet::Mac;

/// The devices of a base station.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Devices {
    /// Toward the fixed host.
    pub wired: String,
    /// Toward the mobile host.
    pub radio: String,
    /// The radio's input for packets of high priority, if it has one of its own.
    pub radio_high: Option<String>,
}

/// Packet sockets, with the real clock.
#[derive(Debug)]
pub struct Inline {
    clock: Clock,
    wired: Exit,
    radio: Exit,
    radio_high: Exit,
    kernel: RawIp,
    bridge: Stations,
    tap: Option<Tap>,
    received: Received,
    /// Empty between two calls.
    later: Vec<Arrived>,
}

/// A socket and what is put up for it.
#[derive(Debug)]
struct Exit {
    socket: PacketSocket,
    frames: Vec<Outgoing>,
    tokens: Vec<u32>,
}

impl Inline {
    /// The priority of what shall overtake others in the device's own queueing: the first band of
    /// Linux's pfifo_fast, and user priority 6 (voice) of its Wi-Fi stack, which reads 256 + n.
    const PRIORITY_HIGH: u32 = 256 + 6;

    /// Opens the sockets in the calling thread's network namespace.
    ///
    /// # Errors
    /// If a device does not exist or packet sockets are not allowed.
    pub fn open(devices: &Devices, clock: Clock) -> Result<Self> {
        Self::with(devices, clock, None)
    }

    /// The same; what comes from the fixed hosts is only looked at.
    ///
    /// # Errors
    /// As [`Inline::open`], or if the kernel has no rings for packet sockets.
    pub fn open_tapped(devices: &Devices, clock: Clock) -> Result<Self> {
        let tap = Tap::open(&devices.wired, clock)?;
        Self::with(devices, clock, Some(tap))
    }

    fn with(devices: &Devices, clock: Clock, tap: Option<Tap>) -> Result<Self> {
        let open = |device: &str, listen, leave| -> Result<Exit> {
            let socket = PacketSocket::open(device, Prefix::Virtio, listen, leave)?;
            Ok(Exit { socket, frames: Vec::new(), tokens: Vec::new() })
        };
        // Where both priorities share a device, its queueing has to tell them apart.
        let (radio_leaves, high, high_leaves) = match &devices.radio_high {
            Some(high) => (Leave::Direct, high, Leave::Direct),
            None => (Leave::Queued(0), &devices.radio, Leave::Queued(Self::PRIORITY_HIGH)),
        };
        let wired_listens = if tap.is_some() { Listen::Nothing } else { Listen::Tcp };
        Ok(Inline {
            clock,
            wired: open(&devices.wired, wired_listens, Leave::Direct)?,
            radio: open(&devices.radio, Listen::Tcp, radio_leaves)?,
            radio_high: open(high, Listen::Nothing, high_leaves)?,
            kernel: RawIp::open()?,
            bridge: Stations::open()?,
            tap,
            received: Received::new(),
            later: Vec::new(),
        })
    }

    /// Frames that found no room in the sockets' queues, since this was last asked.
    pub fn overruns(&mut self) -> u64 {
        let tapped = self.tap.as_mut().map_or(0, Tap::overruns);
        self.wired.socket.overruns() + self.radio.socket.overruns() + tapped
    }

    /// Has `poll` wait for frames: with this token from the fixed hosts, with that from the mobile
    /// hosts.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn watch(&self, poll: &Poll, (wired, radio): (u64, u64)) -> Result<()> {
        match &self.tap {
            Some(tap) => poll.add_once(tap, wired)?,
            None => poll.add(&self.wired.socket, wired)?,
        }
        poll.add(&self.radio.socket, radio)
    }

    /// To be called after each wait; `wired_is_ready`: the token of [`Inline::watch`] was there.
    ///
    /// # Errors
    /// If the device toward the fixed hosts is gone, or the system refuses.
    pub fn attend(&mut self, poll: &Poll, wired: u64, wired_is_ready: bool) -> Result<()> {
        let Some(tap) = &mut self.tap else { return Ok(()) };
        tap.attend(poll, wired, wired_is_ready)
    }

    /// When a turn is due though nothing wakes anybody.
    pub fn next_at(&self) -> Option<Instant> {
        self.tap.as_ref().and_then(Tap::next_at)
    }

    /// The socket of a side.
    pub fn socket(&self, side: Side) -> &PacketSocket {
        if side == Side::RADIO { &self.radio.socket } else { &self.wired.socket }
    }

    fn exit(&mut self, side: Side, priority: Priority) -> &mut Exit {
        match (side, priority) {
            (Side::RADIO, Priority::High) => &mut self.radio_high,
            (Side::RADIO, Priority::Normal) => &mut self.radio,
            _ => &mut self.wired,
        }
    }
}

/// Takes a batch of frames from a socket.
fn receive(
    side: Side,
    socket: &PacketSocket,
    received: &mut Received,
    into: &mut Vec<Arrived>,
) -> Result<()> {
    match socket.receive(received) {
        Ok(_) => {}
        // The device went down; it may come back.
        Err(error) if error.raw_os_error() == Some(libc::ENETDOWN) => return Ok(()),
        Err(error) => {
            let name = &socket.interface().name;
            return Err(error).with_context(|| format!("receive from {name}"));
        }
    }
    into.extend(received.take().map(|frame| Arrived { side, frame, at: None }));
    Ok(())
}

impl PacketIo for Inline {
    fn now(&self) -> Instant {
        self.clock.now()
    }

    fn receive(&mut self, into: &mut Vec<Arrived>) -> Result<()> {
        match &mut self.tap {
            None => {
                receive(Side::WIRED, &self.wired.socket, &mut self.received, into)?;
                receive(Side::RADIO, &self.radio.socket, &mut self.received, into)
            }
            Some(tap) => {
                // What these acknowledge was in the ring before they arrived, so it is drained now.
                receive(Side::RADIO, &self.radio.socket, &mut self.received, &mut self.later)?;
                if !self.later.is_empty() {
                    tap.drain();
                }
                tap.take(into);
                into.append(&mut self.later);
                Ok(())
            }
        }
    }

    fn mac(&self, side: Side, priority: Priority) -> Mac {
        let exit = match (side, priority) {
            (Side::RADIO, Priority::High) => &self.radio_high,
            (Side::RADIO, Priority::Normal) => &self.radio,
            _ => &self.wired,
        };
        exit.socket.interface().mac
    }

    fn queue(&mut self, side: Side, priority: Priority, token: u32, frame: Outgoing) {
        let exit = self.exit(side, priority);
        exit.frames.push(frame);
        exit.tokens.push(token);
    }

    fn flush(&mut self, refused: &mut Vec<u32>) {
        for exit in [&mut self.radio_high, &mut self.radio, &mut self.wired] {
            let Exit { socket, frames, tokens } = exit;
            socket.send(frames, |index, _| refused.push(tokens[index]));
            frames.clear();
            tokens.clear();
        }
    }

    fn tell_bridge(&mut self, side: Side, station: Mac) {
        let device = self.socket(side).interface().index;
        // It is told again in a minute.
        let _told = self.bridge.seen(device, station);
    }

    fn route(&mut self, destination: IpAddr, datagram: &[u8]) -> io::Result<()> {
        self.kernel.send(destination, datagram)
    }
}
