//! Packet sockets on the base station's devices.

use super::PacketIo;
use crate::sys::Clock;
use crate::sys::netlink::Stations;
use crate::sys::packet_socket::{Leave, Listen, Outgoing, PacketSocket, Prefix, Received};
use crate::sys::raw_ip::RawIp;
use anyhow::{Context, Result};
use bytes::Bytes;
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
    received: Received,
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
        let open = |device: &str, listen, leave| -> Result<Exit> {
            let socket = PacketSocket::open(device, Prefix::Virtio, listen, leave)?;
            Ok(Exit { socket, frames: Vec::new(), tokens: Vec::new() })
        };
        // Where both priorities share a device, its queueing has to tell them apart.
        let (radio_leaves, high, high_leaves) = match &devices.radio_high {
            Some(high) => (Leave::Direct, high, Leave::Direct),
            None => (Leave::Queued(0), &devices.radio, Leave::Queued(Self::PRIORITY_HIGH)),
        };
        Ok(Inline {
            clock,
            wired: open(&devices.wired, Listen::Tcp, Leave::Direct)?,
            radio: open(&devices.radio, Listen::Tcp, radio_leaves)?,
            radio_high: open(high, Listen::Nothing, high_leaves)?,
            kernel: RawIp::open()?,
            bridge: Stations::open()?,
            received: Received::new(),
        })
    }

    /// Frames that found no room in the sockets' queues, since this was last asked.
    pub fn overruns(&self) -> u64 {
        self.wired.socket.overruns() + self.radio.socket.overruns()
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

impl PacketIo for Inline {
    fn now(&self) -> Instant {
        self.clock.now()
    }

    fn receive(&mut self, into: &mut Vec<(Side, Bytes)>) -> Result<()> {
        for (side, exit) in [(Side::WIRED, &self.wired), (Side::RADIO, &self.radio)] {
            let socket = &exit.socket;
            match socket.receive(&mut self.received) {
                Ok(_) => {}
                // The device went down; it may come back.
                Err(error) if error.raw_os_error() == Some(libc::ENETDOWN) => continue,
                Err(error) => {
                    let name = &socket.interface().name;
                    return Err(error).with_context(|| format!("receive from {name}"));
                }
            }
            into.extend(self.received.take().map(|frame| (side, frame)));
        }
        Ok(())
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
