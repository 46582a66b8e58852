//! Packet sockets on the base station's devices: a ring for what arrives, another socket for what
//! leaves.
//!
//! Frames that come in crowds leave joined ([`super::joining`]). A crowd is what waits when a turn
//! begins; nobody waits for one to form. So a super-packet bursts no more than arrived at once, and
//! where frames come one at a time they leave so.
//!
//! Inline, everything goes through them. With a tap ([`super::tap`]) the kernel forwards, and what
//! comes from the fixed hosts is only looked at.

use super::joining::{self, Limits, SUPER_PACKET_BYTES_MAX};
use super::tap::Tap;
use super::{Arrived, PacketIo};
use crate::sys::Clock;
use crate::sys::netlink::Stations;
use crate::sys::packet_ring::Ring;
use crate::sys::packet_socket::{
    BATCH, Interface, Joined, Leave, Listen, Outgoing, PacketSocket, Prefix,
};
use crate::sys::poll::{Poll, Ready};
use crate::sys::raw_ip::RawIp;
use anyhow::{Context, Result};
use sansio::{BitRate, Duration, Instant, Priority, Side};
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
    from_wired: FromWired,
    from_radio: Ring,
    /// Empty between two calls.
    later: Vec<Arrived>,
    /// Frames that came in crowds, turn after turn: half of them with each turn that finds none.
    behind: usize,
    /// Bytes of a datagram toward the mobile hosts that frames are joined to, at most.
    radio_burst_bytes: usize,
}

/// How frames come from the fixed hosts.
#[derive(Debug)]
enum FromWired {
    /// To be sent on.
    Inline(Ring),
    /// To look at.
    Tapped(Tap),
}

/// A socket and what is put up for it.
#[derive(Debug)]
struct Exit {
    socket: PacketSocket,
    frames: Vec<Outgoing>,
    tokens: Vec<u32>,
    joined: Vec<Joined>,
}

/// A turn that finds so many frames finds a crowd. With fewer little is gained by joining them, and
/// a slow radio's queue keeps its frames one by one.
const CROWD: usize = 16;
/// Frames are joined while the daemon is behind: so many came in crowds, one after the other. A
/// window that a host sends at once is none of that.
const BEHIND: usize = 256;
/// What a super-packet may take of the radio's time, if its rate is known.
const BURST_MAX: Duration = Duration::from_millis(1);

impl Inline {
    /// The priority of what shall overtake others in the device's own queueing: the first band of
    /// Linux's pfifo_fast, and user priority 6 (voice) of its Wi-Fi stack, which reads 256 + n.
    const PRIORITY_HIGH: u32 = 256 + 6;

    /// Opens the sockets in the calling thread's network namespace.
    ///
    /// # Errors
    /// If a device does not exist or packet sockets are not allowed.
    pub fn open(devices: &Devices, clock: Clock) -> Result<Self> {
        let from_wired = FromWired::Inline(Ring::open(&devices.wired, Listen::Tcp)?);
        Self::with(devices, clock, from_wired)
    }

    /// The same; what comes from the fixed hosts is only looked at.
    ///
    /// # Errors
    /// As [`Inline::open`].
    pub fn open_tapped(devices: &Devices, clock: Clock) -> Result<Self> {
        let from_wired = FromWired::Tapped(Tap::open(&devices.wired, clock)?);
        Self::with(devices, clock, from_wired)
    }

    fn with(devices: &Devices, clock: Clock, from_wired: FromWired) -> Result<Self> {
        let open = |device: &str, leave| -> Result<Exit> {
            let socket = PacketSocket::open(device, Prefix::Virtio, Listen::Nothing, leave)?;
            Ok(Exit { socket, frames: Vec::new(), tokens: Vec::new(), joined: Vec::new() })
        };
        // Where both priorities share a device, its queueing has to tell them apart. What leaves
        // straight to a device is lost if it is a super-packet and the device does not cut it.
        let (high, high_priority) = match &devices.radio_high {
            Some(high) => (high, 0),
            None => (&devices.radio, Self::PRIORITY_HIGH),
        };
        Ok(Inline {
            clock,
            wired: open(&devices.wired, Leave::Queued(0))?,
            radio: open(&devices.radio, Leave::Queued(0))?,
            radio_high: open(high, Leave::Queued(high_priority))?,
            kernel: RawIp::open()?,
            bridge: Stations::open()?,
            from_wired,
            from_radio: Ring::open(&devices.radio, Listen::Tcp)?,
            later: Vec::new(),
            behind: 0,
            radio_burst_bytes: SUPER_PACKET_BYTES_MAX,
        })
    }

    /// Joins frames toward the mobile hosts only to what this rate sends within a millisecond.
    pub fn limit_bursts(&mut self, radio_rate: BitRate) {
        let bytes = radio_rate.as_bps() / 8 * BURST_MAX.as_nanos() / 1_000_000_000;
        self.radio_burst_bytes = bytes.min(SUPER_PACKET_BYTES_MAX as u64) as usize;
    }

    /// Frames that found no room in the rings, since this was last asked.
    pub fn overruns(&mut self) -> u64 {
        let from_wired = match &mut self.from_wired {
            FromWired::Inline(ring) => ring.overruns(),
            FromWired::Tapped(tap) => tap.overruns(),
        };
        from_wired + self.from_radio.overruns()
    }

    /// Has `poll` wait for frames: with the first token from the fixed hosts, with the second from
    /// the mobile hosts.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn watch(&self, poll: &Poll, (wired, radio): (u64, u64)) -> Result<()> {
        match &self.from_wired {
            FromWired::Inline(ring) => poll.add(ring, wired)?,
            FromWired::Tapped(tap) => poll.add(tap, wired)?,
        }
        poll.add(&self.from_radio, radio)
    }

    /// Ends what [`Inline::watch`] began.
    pub fn unwatch(&self, poll: &Poll) {
        // What is not watched need not be told.
        let _unknown = match &self.from_wired {
            FromWired::Inline(ring) => poll.remove(ring),
            FromWired::Tapped(tap) => poll.remove(tap),
        };
        let _unknown = poll.remove(&self.from_radio);
    }

    /// To be called after each wait, with what was ready and the tokens of [`Inline::watch`].
    ///
    /// # Errors
    /// If a device is gone, or the system refuses.
    pub fn attend(&mut self, poll: &Poll, ready: Ready, (wired, radio): (u64, u64)) -> Result<()> {
        if ready.has_failed(radio) {
            check(&self.from_radio)?;
        }
        let ring = match &self.from_wired {
            FromWired::Inline(ring) => ring,
            FromWired::Tapped(tap) => tap.ring(),
        };
        if ready.has_failed(wired) {
            check(ring)?;
        }
        match &mut self.from_wired {
            FromWired::Inline(_) => Ok(()),
            FromWired::Tapped(tap) => tap.attend(poll, wired, ready.contains(wired)),
        }
    }

    /// When a turn is due though nothing wakes anybody.
    pub fn next_at(&self) -> Option<Instant> {
        match &self.from_wired {
            FromWired::Inline(_) => None,
            FromWired::Tapped(tap) => tap.next_at(),
        }
    }

    /// The device of a side.
    pub fn interface(&self, side: Side) -> &Interface {
        let exit = if side == Side::RADIO { &self.radio } else { &self.wired };
        exit.socket.interface()
    }

    fn exit(&mut self, side: Side, priority: Priority) -> &mut Exit {
        match (side, priority) {
            (Side::RADIO, Priority::High) => &mut self.radio_high,
            (Side::RADIO, Priority::Normal) => &mut self.radio,
            _ => &mut self.wired,
        }
    }
}

/// Takes a batch of frames from a ring.
fn take(side: Side, ring: &mut Ring, into: &mut Vec<Arrived>) {
    ring.drain(BATCH, |tapped| into.push(Arrived { side, frame: tapped.frame, at: None }));
}

/// What has happened to a ring's device.
fn check(ring: &Ring) -> Result<()> {
    match ring.check() {
        // The device went down; it may come back.
        Err(error) if error.raw_os_error() == Some(libc::ENETDOWN) => Ok(()),
        checked => checked.with_context(|| format!("receive from {}", ring.interface().name)),
    }
}

impl PacketIo for Inline {
    fn now(&self) -> Instant {
        self.clock.now()
    }

    fn receive(&mut self, into: &mut Vec<Arrived>) -> Result<()> {
        match &mut self.from_wired {
            FromWired::Inline(ring) => {
                take(Side::WIRED, ring, into);
                take(Side::RADIO, &mut self.from_radio, into);
            }
            FromWired::Tapped(tap) => {
                // What these acknowledge was in the ring before they arrived, so it is drained now.
                take(Side::RADIO, &mut self.from_radio, &mut self.later);
                if !self.later.is_empty() {
                    tap.drain();
                }
                tap.take(into);
                into.append(&mut self.later);
            }
        }
        let arrived = into.len();
        self.behind = match arrived >= CROWD {
            true => (self.behind + arrived).min(4 * BEHIND),
            false => self.behind / 2,
        };
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

    fn flush(&mut self, refused: &mut Vec<u32>) -> usize {
        let mut left_joined = 0;
        let is_behind = self.behind >= BEHIND;
        let radio = self.radio_burst_bytes;
        for (exit, bytes) in [
            (&mut self.radio_high, radio),
            (&mut self.radio, radio),
            (&mut self.wired, SUPER_PACKET_BYTES_MAX),
        ] {
            let Exit { socket, frames, tokens, joined } = exit;
            if is_behind {
                let mtu = socket.interface().mtu as usize;
                joining::join(frames, Limits { mtu, bytes }, joined);
            }
            left_joined += socket.send(frames, joined, |index, _| refused.push(tokens[index]));
            frames.clear();
            tokens.clear();
            joined.clear();
        }
        left_joined
    }

    fn tell_bridge(&mut self, side: Side, station: Mac) {
        let device = self.interface(side).index;
        // It is told again in a minute.
        let _told = self.bridge.seen(device, station);
    }

    fn route(&mut self, destination: IpAddr, datagram: &[u8]) -> io::Result<()> {
        self.kernel.send(destination, datagram)
    }
}
