//! Routing netlink, rtnetlink(7): what a bridge knows of its stations, and news of devices.

use anyhow::{Context, Result};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, recv, sendto, socket_with,
};
use std::io;
use wire::ethernet::Mac;

/// Tells the kernel's bridge where stations are.
#[derive(Debug)]
pub struct Stations(OwnedFd);

/// Readable when a device of this network namespace has changed, or an address of one.
#[derive(Debug)]
pub struct DeviceNews(OwnedFd);

fn open(groups: u32) -> Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    // Protocol 0 is NETLINK_ROUTE.
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None)
        .context("open a netlink socket")?;
    bind(&socket, &SocketAddrNetlink::new(0, groups)).context("bind a netlink socket")?;
    Ok(socket)
}

impl Stations {
    /// A way to the kernel of the calling thread's network namespace.
    ///
    /// # Errors
    /// If the process is out of descriptors.
    pub fn open() -> Result<Self> {
        Ok(Stations(open(0)?))
    }

    /// Tells the bridge above the device of this number that a frame of `station` came in on it, as
    /// if the bridge had seen it itself: its entry is as young again (NTF_USE). The kernel is not
    /// asked whether it did.
    ///
    /// # Errors
    /// If the request does not leave.
    pub fn seen(&self, device: u32, station: Mac) -> io::Result<()> {
        let to_kernel = SocketAddrNetlink::new(0, 0);
        sendto(&self.0, &request(device, station), SendFlags::DONTWAIT, &to_kernel)?;
        Ok(())
    }
}

/// struct nlmsghdr, struct ndmsg and one attribute NDA_LLADDR (linux/netlink.h,
/// linux/neighbour.h).
fn request(device: u32, station: Mac) -> Vec<u8> {
    const RTM_NEWNEIGH: u16 = 28;
    const NLM_F_REQUEST: u16 = 1;
    const AF_BRIDGE: u8 = 7;
    const NUD_REACHABLE: u16 = 2;
    const NTF_USE: u8 = 1;
    const NTF_MASTER: u8 = 4;
    const NDA_LLADDR: u16 = 2;
    const BYTES: u32 = 16 + 12 + 12;
    let mut bytes = Vec::with_capacity(BYTES as usize);
    bytes.extend(BYTES.to_ne_bytes());
    bytes.extend(RTM_NEWNEIGH.to_ne_bytes());
    bytes.extend(NLM_F_REQUEST.to_ne_bytes());
    // Sequence number and port: nobody asks for an answer.
    bytes.extend([0; 8]);
    bytes.extend([AF_BRIDGE, 0, 0, 0]);
    bytes.extend(device.to_ne_bytes());
    bytes.extend(NUD_REACHABLE.to_ne_bytes());
    bytes.extend([NTF_USE | NTF_MASTER, 0]);
    bytes.extend(10_u16.to_ne_bytes());
    bytes.extend(NDA_LLADDR.to_ne_bytes());
    bytes.extend(station.0);
    bytes.extend([0; 2]);
    bytes
}

impl DeviceNews {
    /// News from now on.
    ///
    /// # Errors
    /// If the process is out of descriptors.
    pub fn open() -> Result<Self> {
        const RTMGRP_LINK: u32 = 0x1;
        const RTMGRP_IPV4_IFADDR: u32 = 0x10;
        const RTMGRP_IPV6_IFADDR: u32 = 0x100;
        Ok(DeviceNews(open(RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR)?))
    }

    /// Takes what has come; true if there was any.
    pub fn take(&self) -> bool {
        let mut any = false;
        loop {
            match recv(&self.0, &mut [0_u8; 256], RecvFlags::TRUNC) {
                Ok(_) => any = true,
                // Some were lost, so there were some.
                Err(Errno::NOBUFS) => any = true,
                Err(Errno::INTR) => {}
                Err(_) => return any,
            }
        }
    }
}

impl AsFd for DeviceNews {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
