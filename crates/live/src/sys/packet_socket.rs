//! Packet sockets, packet(7): whole frames in and out, in batches.
//!
//! Bound to ETH_P_ALL they see a frame before the ingress hook, where a rule can then take it away
//! from the kernel; bound to one protocol they would see it after (measured: the rule would win).

use super::{check, set_buffers, set_option};
use anyhow::{Context, Result, anyhow};
use bytes::{Bytes, BytesMut};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::io;
use wire::ethernet::{EtherType, Mac};

/// A network device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// Its number in this namespace.
    pub index: u32,
    /// Its address.
    pub mac: Mac,
    /// The longest datagram it carries, in bytes.
    pub mtu: u32,
}

/// What stands before the link-layer header in every frame of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prefix {
    /// Nothing.
    Nothing,
    /// The ten bytes of PACKET_VNET_HDR: what is still to be done to the frame, see
    /// [`crate::frame::Virtio`].
    Virtio,
}

/// Whom a socket listens to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listen {
    /// Every frame that arrives.
    All,
    /// Frames without VLAN tag whose IP header says TCP, fragments included; the rest is not copied
    /// to the socket.
    Tcp,
    /// Frames of one type, that reach the kernel's own listeners of this type, too.
    Only(EtherType),
    /// Nobody: the socket only sends.
    Nothing,
}

/// How frames leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leave {
    /// Through the device's queueing discipline, with this SO_PRIORITY.
    Queued(u32),
    /// Straight to the device (PACKET_QDISC_BYPASS).
    Direct,
}

/// An open packet socket on one device.
#[derive(Debug)]
pub struct PacketSocket {
    fd: OwnedFd,
    interface: Interface,
}

/// Frames per system call.
pub const BATCH: usize = 64;
/// Room for the largest frame: a super-packet of 65,535 bytes with its link-layer header.
pub(super) const FRAME_BYTES_MAX: usize = 66_000;
/// Room in the socket's own queues, in bytes.
const QUEUE_BYTES: libc::c_int = 8 << 20;

impl PacketSocket {
    /// Opens a socket on a device of the calling thread's network namespace.
    ///
    /// # Errors
    /// If the device does not exist, or the system refuses a packet socket: CAP_NET_RAW is needed.
    pub fn open(interface: &str, prefix: Prefix, listen: Listen, leave: Leave) -> Result<Self> {
        let socket = Self::unbound(interface, prefix, listen, leave)?;
        socket.bind(listen).with_context(|| format!("open a packet socket on {interface}"))?;
        Ok(socket)
    }

    /// A socket that does not listen yet.
    pub(super) fn unbound(
        interface: &str,
        prefix: Prefix,
        listen: Listen,
        leave: Leave,
    ) -> Result<Self> {
        let attempt = || format!("open a packet socket on {interface}");
        let flags = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: no pointers.
        let fd = check(unsafe { libc::socket(libc::AF_PACKET, flags, 0) }, attempt)?;
        // SAFETY: `fd` was just made and has no other owner.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        let interface = find(interface).with_context(attempt)?;
        let packet = |option| (libc::SOL_PACKET, option);
        let one: libc::c_int = 1;
        set_option(fd.as_fd(), packet(PACKET_IGNORE_OUTGOING), &one).with_context(attempt)?;
        if prefix == Prefix::Virtio {
            set_option(fd.as_fd(), packet(libc::PACKET_VNET_HDR), &one).with_context(attempt)?;
        }
        match leave {
            Leave::Direct => {
                set_option(fd.as_fd(), packet(PACKET_QDISC_BYPASS), &one).with_context(attempt)?;
            }
            Leave::Queued(priority) => {
                set_option(fd.as_fd(), (libc::SOL_SOCKET, libc::SO_PRIORITY), &priority)
                    .with_context(attempt)?;
            }
        }
        set_buffers(fd.as_fd(), QUEUE_BYTES).with_context(attempt)?;
        if listen == Listen::Tcp {
            attach(fd.as_fd(), &TCP_ONLY).with_context(attempt)?;
        }
        Ok(PacketSocket { fd, interface })
    }

    /// Begins to listen.
    pub(super) fn bind(&self, listen: Listen) -> io::Result<()> {
        let protocol = match listen {
            Listen::All | Listen::Tcp => (libc::ETH_P_ALL as u16).to_be(),
            Listen::Only(ether_type) => ether_type.0.to_be(),
            Listen::Nothing => 0,
        };
        // SAFETY: all zero is a valid sockaddr_ll.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = protocol;
        address.sll_ifindex = self.interface.index as libc::c_int;
        // SAFETY: the pointer and the length describe `address`, which outlives the call.
        let result = unsafe {
            libc::bind(
                self.fd.as_raw_fd(),
                std::ptr::from_ref(&address).cast(),
                size_of::<libc::sockaddr_ll>() as libc::socklen_t,
            )
        };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// The device.
    pub fn interface(&self) -> &Interface {
        &self.interface
    }

    /// Frames that found no room in the socket's queue, since this was last asked; 0 if the kernel
    /// does not say.
    pub fn overruns(&self) -> u64 {
        // struct tpacket_stats of linux/if_packet.h: packets, drops.
        let mut counted = [0_u32; 2];
        let mut length = size_of_val(&counted) as libc::socklen_t;
        // SAFETY: pointer and length describe `counted`; both outlive the call.
        let result = unsafe {
            libc::getsockopt(
                self.fd.as_raw_fd(),
                libc::SOL_PACKET,
                PACKET_STATISTICS,
                std::ptr::from_mut(&mut counted).cast(),
                &mut length,
            )
        };
        if result < 0 { 0 } else { u64::from(counted[1]) }
    }

    /// Takes the frames that wait, at most [`BATCH`]; returns how many there were.
    ///
    /// # Errors
    /// Whatever recvmmsg(2) says, but for an empty queue.
    pub fn receive(&self, into: &mut Received) -> io::Result<usize> {
        into.count = 0;
        let nothing = libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };
        let mut pieces = [nothing; BATCH];
        // SAFETY: all zero is a valid mmsghdr.
        let mut messages: [libc::mmsghdr; BATCH] = unsafe { std::mem::zeroed() };
        let slots = messages.iter_mut().zip(&mut pieces).zip(&mut into.buffers);
        for ((message, piece), buffer) in slots {
            buffer.clear();
            let room = buffer.spare_capacity_mut();
            *piece = libc::iovec { iov_base: room.as_mut_ptr().cast(), iov_len: room.len() };
            message.msg_hdr.msg_iov = piece;
            message.msg_hdr.msg_iovlen = 1;
        }
        // SAFETY: every message points to one iovec, which describes the room of one buffer;
        // `messages`, `pieces` and `into` outlive the call and are not otherwise used in it.
        let count = unsafe {
            libc::recvmmsg(
                self.fd.as_raw_fd(),
                messages.as_mut_ptr(),
                BATCH as libc::c_uint,
                libc::MSG_DONTWAIT,
                std::ptr::null_mut(),
            )
        };
        if count < 0 {
            let error = io::Error::last_os_error();
            return if error.kind() == io::ErrorKind::WouldBlock { Ok(0) } else { Err(error) };
        }
        into.count = count as usize;
        for (buffer, message) in into.buffers.iter_mut().zip(&messages[..into.count]) {
            let length = (message.msg_len as usize).min(buffer.capacity());
            // SAFETY: the kernel wrote this many bytes, within the buffer's room.
            unsafe { buffer.set_len(length) };
        }
        Ok(into.count)
    }
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Buffers for one batch of arriving frames.
#[derive(Debug)]
pub struct Received {
    buffers: Vec<BytesMut>,
    count: usize,
}

impl Received {
    /// Empty buffers.
    pub fn new() -> Self {
        let buffers = (0..BATCH).map(|_| BytesMut::with_capacity(FRAME_BYTES_MAX)).collect();
        Received { buffers, count: 0 }
    }

    /// The frames of the last batch, in order.
    pub fn frames(&self) -> impl Iterator<Item = &[u8]> {
        self.buffers[..self.count].iter().map(|buffer| &buffer[..])
    }

    /// Takes the frames of the last batch, in order.
    pub fn take(&mut self) -> impl Iterator<Item = Bytes> {
        let count = std::mem::take(&mut self.count);
        self.buffers[..count].iter_mut().map(take_or_copy)
    }
}

/// The frame in a buffer of [`FRAME_BYTES_MAX`]. A small one is copied into memory of its own size,
/// so that whoever keeps it keeps no more than it counts; one that fills more than half of its
/// buffer takes the buffer along.
pub(super) fn take_or_copy(buffer: &mut BytesMut) -> Bytes {
    if buffer.len() <= FRAME_BYTES_MAX / 2 {
        return Bytes::copy_from_slice(buffer);
    }
    std::mem::replace(buffer, BytesMut::with_capacity(FRAME_BYTES_MAX)).freeze()
}

impl Default for Received {
    fn default() -> Self {
        Self::new()
    }
}

/// A frame to send: a head of its own, then bytes that it shares with others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// What was rewritten: prefix, link-layer header, IP header.
    pub head: Head,
    /// All that follows.
    pub rest: Bytes,
    /// Bytes of the headers of a TCP segment with a right checksum, the prefix included; 0 if it
    /// is none, or nobody knows.
    pub headers: u8,
}

impl Outgoing {
    /// A frame of which nothing more is known.
    pub fn new(head: Head, rest: impl Into<Bytes>) -> Self {
        Outgoing { head, rest: rest.into(), headers: 0 }
    }
}

/// Consecutive frames that leave as one super-packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Joined {
    /// The index of the first.
    pub first: usize,
    /// How many; at most [`JOINED_MAX`].
    pub count: usize,
    /// Bytes of the headers of each, that are left out.
    pub headers: usize,
    /// What stands in their place.
    pub head: Head,
}

/// Frames in a super-packet at most.
pub const JOINED_MAX: usize = 64;

/// The first bytes of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    bytes: [u8; Head::BYTES_MAX],
    length: u8,
}

impl Head {
    /// Room for the virtio prefix, Ethernet, the IP header of either version and a TCP header.
    pub const BYTES_MAX: usize = 10 + 14 + 40 + 60;

    /// No bytes.
    pub const EMPTY: Head = Head { bytes: [0; Head::BYTES_MAX], length: 0 };

    /// Appends bytes.
    ///
    /// # Panics
    /// If there are more than [`Head::BYTES_MAX`] in all.
    #[inline]
    pub fn push(&mut self, bytes: &[u8]) {
        let start = usize::from(self.length);
        self.bytes[start..start + bytes.len()].copy_from_slice(bytes);
        self.length += bytes.len() as u8;
    }

    /// The bytes.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

/// A device of the calling thread's network namespace, by name.
///
/// # Errors
/// If there is no such device.
pub fn find(name: &str) -> Result<Interface> {
    let attempt = || format!("look up the device {name}");
    let text = std::ffi::CString::new(name).with_context(attempt)?;
    // SAFETY: `text` ends in NUL and outlives the call.
    let index = unsafe { libc::if_nametoindex(text.as_ptr()) };
    if index == 0 {
        return Err(io::Error::last_os_error()).with_context(attempt);
    }
    let mut request = super::offload::request(name)?;
    super::offload::device_ioctl(libc::SIOCGIFHWADDR, &mut request).with_context(attempt)?;
    // SAFETY: SIOCGIFHWADDR filled in the hardware address.
    let address = unsafe { request.ifr_ifru.ifru_hwaddr };
    // Frames of the loopback device have an Ethernet header, too.
    if ![libc::ARPHRD_ETHER, libc::ARPHRD_LOOPBACK].contains(&address.sa_family) {
        return Err(anyhow!("its link type is {}, not Ethernet", address.sa_family))
            .with_context(attempt);
    }
    super::offload::device_ioctl(libc::SIOCGIFMTU, &mut request).with_context(attempt)?;
    // SAFETY: SIOCGIFMTU filled in the MTU, which is positive.
    let mtu = unsafe { request.ifr_ifru.ifru_mtu } as u32;
    let octets = address.sa_data.first_chunk::<6>().expect("a hardware address has 14 bytes");
    Ok(Interface { name: name.to_owned(), index, mac: Mac(octets.map(|octet| octet as u8)), mtu })
}

/// Has the kernel drop, for this socket only, what a classic BPF program returns 0 for.
fn attach(socket: BorrowedFd<'_>, program: &[libc::sock_filter]) -> io::Result<()> {
    let filter = libc::sock_fprog {
        len: program.len() as libc::c_ushort,
        filter: program.as_ptr().cast_mut(),
    };
    // The kernel copies the program within the call.
    set_option(socket, (libc::SOL_SOCKET, libc::SO_ATTACH_FILTER), &filter)
}

/// Classic BPF on an Ethernet frame: no VLAN tag (the kernel has taken it out of the frame by
/// then), EtherType IPv4 and protocol TCP, or IPv6 and next header TCP.
const TCP_ONLY: [libc::sock_filter; 11] = {
    const LOAD_WORD: u16 = 0x20;
    const LOAD_HALF: u16 = 0x28;
    const LOAD_BYTE: u16 = 0x30;
    const JUMP_IF_EQUAL: u16 = 0x15;
    const RETURN: u16 = 0x06;
    const fn step(code: u16, k: u32, (jt, jf): (u8, u8)) -> libc::sock_filter {
        libc::sock_filter { code, jt, jf, k }
    }
    // Jumps count from the next step; the last two steps are "no" and "yes".
    [
        step(LOAD_WORD, VLAN_TAG_PRESENT, (0, 0)),
        step(JUMP_IF_EQUAL, 0, (0, 7)),
        step(LOAD_HALF, 12, (0, 0)),
        step(JUMP_IF_EQUAL, 0x0800, (0, 2)),
        step(LOAD_BYTE, 14 + 9, (0, 0)),
        step(JUMP_IF_EQUAL, 6, (4, 3)),
        step(JUMP_IF_EQUAL, 0x86dd, (0, 2)),
        step(LOAD_BYTE, 14 + 6, (0, 0)),
        step(JUMP_IF_EQUAL, 6, (1, 0)),
        step(RETURN, 0, (0, 0)),
        step(RETURN, u32::MAX, (0, 0)),
    ]
};

/// linux/filter.h: SKF_AD_OFF + SKF_AD_VLAN_TAG_PRESENT.
const VLAN_TAG_PRESENT: u32 = (-0x1000_i32 + 48) as u32;
/// linux/if_packet.h; not in every libc.
const PACKET_IGNORE_OUTGOING: libc::c_int = 23;
/// linux/if_packet.h.
const PACKET_STATISTICS: libc::c_int = 6;
/// linux/if_packet.h.
const PACKET_QDISC_BYPASS: libc::c_int = 20;
