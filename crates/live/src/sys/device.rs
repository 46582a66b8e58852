//! Network devices and their addresses coming, going and changing: rtnetlink(7) as a descriptor to
//! wait for, and what one device is like now.

use super::offload::{device_ioctl, request};
use super::packet_socket::{Interface, find};
use anyhow::{Context, Result};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, bind, recv, socket_with};

/// Readable when a device of the network namespace has changed, or an address.
#[derive(Debug)]
pub struct Changes(OwnedFd);

/// What a device is like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// Which it is: a device that was made anew has another number.
    pub interface: Interface,
    /// True if it is up and has a carrier.
    pub running: bool,
}

impl Changes {
    /// Begins to listen, in the calling thread's network namespace.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn listen() -> Result<Self> {
        let attempt = "listen to changes of network devices";
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket =
            // NETLINK_ROUTE is protocol 0.
            socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None)
                .context(attempt)?;
        bind(&socket, &SocketAddrNetlink::new(0, RTMGRP_LINK | RTMGRP_ADDRESSES))
            .context(attempt)?;
        Ok(Changes(socket))
    }

    /// Takes all messages; what they say, the devices themselves say better.
    pub fn take(&self) {
        let mut bytes = [0_u8; 8_192];
        // Too many at once is an error, too, and taken with it.
        for _ in 0..MESSAGES_MAX {
            let taken = recv(&self.0, &mut bytes[..], RecvFlags::empty());
            if matches!(taken, Err(rustix::io::Errno::AGAIN)) {
                return;
            }
        }
    }
}

impl AsFd for Changes {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// What the device of this name is like, in the calling thread's network namespace.
///
/// # Errors
/// If there is no such device, or it is not Ethernet.
pub fn state(name: &str) -> Result<State> {
    let interface = find(name)?;
    let mut request = request(name)?;
    device_ioctl(libc::SIOCGIFFLAGS, &mut request)
        .with_context(|| format!("look at the device {name}"))?;
    // SAFETY: SIOCGIFFLAGS filled in the flags.
    let flags = libc::c_int::from(unsafe { request.ifr_ifru.ifru_flags });
    let running = libc::IFF_UP | libc::IFF_RUNNING;
    Ok(State { interface, running: flags & running == running })
}

/// linux/rtnetlink.h.
const RTMGRP_LINK: u32 = 0x1;
/// linux/rtnetlink.h: RTMGRP_IPV4_IFADDR and RTMGRP_IPV6_IFADDR.
const RTMGRP_ADDRESSES: u32 = 0x10 | 0x100;
/// Messages taken at once; more wake the loop again.
const MESSAGES_MAX: usize = 1_000;
