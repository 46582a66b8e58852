//! A packet socket whose frames come in shared memory, packet(7): PACKET_RX_RING, TPACKET_V2.
//!
//! ```text
//!   kernel, as a frame arrives: copy it into the next free slot ─▶ status USER
//!   drain:  status USER? take the frame ─▶ status KERNEL, next slot; until one is not USER
//! ```
//!
//! The kernel copies a frame before it forwards it, and it does not have to keep a copy of its own
//! for the socket: measured, that is what makes a passive listener cheap. TPACKET_V3 is no faster
//! and shows a frame only when its block is full or a timer of some milliseconds ends; here a frame
//! shows at once.
//!
//! A slot has room for a frame of the device's MTU. A super-packet comes beside the ring, through
//! the socket's queue (PACKET_COPY_THRESH); its slot then only holds its place in the order.

use super::packet_socket::{
    FRAME_BYTES_MAX, Interface, Leave, Listen, PacketSocket, Prefix, take_or_copy,
};
use super::set_option;
use crate::buffers;
use crate::frame::Virtio;
use anyhow::{Context, Result};
use bytes::{Bytes, BytesMut};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd};
use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

/// A ring of frames that arrived on a device.
#[derive(Debug)]
pub struct Ring {
    socket: PacketSocket,
    memory: Memory,
    slot_bytes: usize,
    slots: usize,
    /// The slot that is filled next.
    next: usize,
    /// Frames of which only the beginning came.
    cut: u64,
    /// Room for a frame that comes beside the ring.
    beside: BytesMut,
}

/// A frame that was in the ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tapped {
    /// Its bytes, virtio prefix first.
    pub frame: Bytes,
    /// When it arrived: nanoseconds of CLOCK_REALTIME.
    pub realtime_nanos: u64,
}

/// Memory that the kernel writes to; unmapped when dropped.
#[derive(Debug)]
struct Memory {
    start: NonNull<u8>,
    bytes: usize,
}

/// Memory of a ring.
const RING_BYTES: usize = 8 << 20;
/// The kernel takes memory in pieces of this size.
const BLOCK_BYTES: usize = 1 << 18;
/// What stands before the frame in its slot: slot header, address, alignment, virtio prefix.
const BEFORE_FRAME: usize = 128;

impl Ring {
    /// Begins to listen to frames that arrive on a device of the calling thread's network
    /// namespace.
    ///
    /// # Errors
    /// If the device does not exist, or the system refuses such a socket: CAP_NET_RAW is needed.
    pub fn open(interface: &str, listen: Listen) -> Result<Self> {
        let mtu = super::packet_socket::find(interface)?.mtu as usize;
        let slot_bytes = (mtu + 14 + BEFORE_FRAME).next_power_of_two().min(BLOCK_BYTES);
        Self::with_slots(interface, listen, (slot_bytes, RING_BYTES))
    }

    /// The same with slots and a ring of these sizes in bytes: powers of two, the slots of at least
    /// 256, the ring of at least one slot.
    ///
    /// # Errors
    /// As [`Ring::open`].
    pub fn with_slots(
        interface: &str,
        listen: Listen,
        (slot_bytes, ring_bytes): (usize, usize),
    ) -> Result<Self> {
        let attempt = || format!("open a ring of packets on {interface}");
        let socket = PacketSocket::unbound(interface, Prefix::Virtio, listen, Leave::Direct)?;
        let packet = |option| (libc::SOL_PACKET, option);
        let version = libc::tpacket_versions::TPACKET_V2 as libc::c_int;
        set_option(socket.as_fd(), packet(libc::PACKET_VERSION), &version).with_context(attempt)?;
        let one: libc::c_int = 1;
        set_option(socket.as_fd(), packet(libc::PACKET_COPY_THRESH), &one).with_context(attempt)?;
        let block_bytes = BLOCK_BYTES.min(ring_bytes).max(slot_bytes).max(4096);
        let blocks = ring_bytes.div_ceil(block_bytes);
        let slots = blocks * (block_bytes / slot_bytes);
        let request = libc::tpacket_req {
            tp_block_size: block_bytes as libc::c_uint,
            tp_block_nr: blocks as libc::c_uint,
            tp_frame_size: slot_bytes as libc::c_uint,
            tp_frame_nr: slots as libc::c_uint,
        };
        set_option(socket.as_fd(), packet(libc::PACKET_RX_RING), &request).with_context(attempt)?;
        let memory = Memory::of(&socket, blocks * block_bytes).with_context(attempt)?;
        socket.bind(listen).with_context(attempt)?;
        let beside = BytesMut::with_capacity(FRAME_BYTES_MAX);
        Ok(Ring { socket, memory, slot_bytes, slots, next: 0, cut: 0, beside })
    }

    /// The device.
    pub fn interface(&self) -> &Interface {
        self.socket.interface()
    }

    /// Takes the frames that wait, in order, at most so many; returns how many. Without that bound
    /// every frame that had arrived before the call is among them, unless it found no room.
    pub fn drain(&mut self, most: usize, mut take: impl FnMut(Tapped)) -> usize {
        let mut count = 0;
        // Once around at most: whoever comes later was not there before the call.
        while count < self.slots.min(most) {
            let slot = self.memory.slot(self.next, self.slot_bytes);
            // SAFETY: the status is the first word of the slot, which is aligned to 16 bytes; the
            // kernel and this process access it as a whole.
            let status = unsafe { AtomicU32::from_ptr(slot.cast::<u32>().as_ptr()) };
            let seen = status.load(Ordering::Acquire);
            if seen & libc::TP_STATUS_USER == 0 {
                break;
            }
            // SAFETY: as long as its status is USER, the kernel leaves the slot alone; it begins
            // with this header, which has no invalid values.
            let header = unsafe { slot.cast::<libc::tpacket2_hdr>().read() };
            let start = usize::from(header.tp_mac) - Virtio::BYTES;
            let length = Virtio::BYTES + header.tp_snaplen as usize;
            assert!(start + length <= self.slot_bytes, "the kernel stays within its slot");
            let realtime_nanos =
                u64::from(header.tp_sec) * 1_000_000_000 + u64::from(header.tp_nsec);
            let frame = if seen & libc::TP_STATUS_COPY != 0 {
                self.whole()
            } else if header.tp_snaplen < header.tp_len {
                None
            } else {
                // SAFETY: within the slot, as just asserted, and left alone by the kernel.
                let bytes = unsafe { std::slice::from_raw_parts(slot.as_ptr().add(start), length) };
                Some(buffers::copy(bytes))
            };
            status.store(libc::TP_STATUS_KERNEL, Ordering::Release);
            self.next = (self.next + 1) % self.slots;
            count += 1;
            match frame {
                Some(frame) => take(Tapped { frame, realtime_nanos }),
                None => self.cut += 1,
            }
        }
        count
    }

    /// The frame beside the ring that is the next in order.
    fn whole(&mut self) -> Option<Bytes> {
        self.beside.clear();
        let room = self.beside.spare_capacity_mut();
        // SAFETY: pointer and length describe the buffer's room, which outlives the call.
        let length = unsafe {
            libc::recv(
                self.socket.as_fd().as_raw_fd(),
                room.as_mut_ptr().cast(),
                room.len(),
                libc::MSG_DONTWAIT,
            )
        };
        let length = usize::try_from(length).ok()?.min(self.beside.capacity());
        // SAFETY: the kernel wrote this many bytes, within the buffer's room.
        unsafe { self.beside.set_len(length) };
        Some(take_or_copy(&mut self.beside))
    }

    /// What has happened to the device, such as that it is gone or down; it is told once.
    ///
    /// # Errors
    /// That.
    pub fn check(&self) -> io::Result<()> {
        Ok(rustix::net::sockopt::socket_error(&self.socket).unwrap_or(Ok(()))?)
    }

    /// Frames that found no room, or of which only the beginning did, since this was last asked.
    pub fn overruns(&mut self) -> u64 {
        self.socket.overruns() + std::mem::take(&mut self.cut)
    }
}

impl AsFd for Ring {
    /// Readable while a frame waits.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Memory {
    fn of(socket: &PacketSocket, bytes: usize) -> io::Result<Self> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let fd = socket.as_fd().as_raw_fd();
        // SAFETY: a new mapping, placed by the kernel; it is unmapped in `drop` only.
        let start =
            unsafe { libc::mmap(std::ptr::null_mut(), bytes, protection, libc::MAP_SHARED, fd, 0) };
        let memory = match NonNull::new(start.cast::<u8>()) {
            Some(start_of) if start != libc::MAP_FAILED => Memory { start: start_of, bytes },
            _ => return Err(io::Error::last_os_error()),
        };
        // Nobody but this process reads it: the programs that it starts do not get it.
        // SAFETY: the mapping just made, and only its inheritance changes.
        match unsafe { libc::madvise(start, bytes, libc::MADV_DONTFORK) } {
            0 => Ok(memory),
            _ => Err(io::Error::last_os_error()),
        }
    }

    fn slot(&self, index: usize, slot_bytes: usize) -> NonNull<u8> {
        let at = index * slot_bytes;
        assert!(at + slot_bytes <= self.bytes, "a slot lies within the ring");
        // SAFETY: within the mapping, as just asserted.
        unsafe { self.start.add(at) }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: this is the mapping that `of` made; nothing borrows from it any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}
