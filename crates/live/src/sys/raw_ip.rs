//! Raw IP sockets, raw(7): whole datagrams out, routed by the kernel. The way out for datagrams
//! whose next hop nobody has learned yet.

use super::check;
use anyhow::Result;
use rustix::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::io;
use std::net::IpAddr;

/// Sends datagrams with their own IP header.
#[derive(Debug)]
pub struct RawIp {
    v4: OwnedFd,
    /// Missing where the kernel has no IPv6.
    v6: Option<OwnedFd>,
}

impl RawIp {
    /// Opens the sockets in the calling thread's network namespace.
    ///
    /// # Errors
    /// If the system refuses a raw IPv4 socket: CAP_NET_RAW is needed.
    pub fn open() -> Result<Self> {
        let open = |family| {
            let flags = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
            // SAFETY: no pointers.
            let fd = unsafe { libc::socket(family, flags, libc::IPPROTO_RAW) };
            let fd = check(fd, || "open a raw IP socket".to_owned())?;
            // SAFETY: `fd` was just made and has no other owner.
            anyhow::Ok(unsafe { OwnedFd::from_raw_fd(fd) })
        };
        Ok(RawIp { v4: open(libc::AF_INET)?, v6: open(libc::AF_INET6).ok() })
    }

    /// Sends a whole datagram to where its header says.
    ///
    /// # Errors
    /// Whatever sendto(2) says: no route, or longer than the device's MTU.
    pub fn send(&self, destination: IpAddr, datagram: &[u8]) -> io::Result<()> {
        let socket = match destination {
            IpAddr::V4(_) => &self.v4,
            IpAddr::V6(_) => self.v6.as_ref().ok_or(io::ErrorKind::Unsupported)?,
        };
        // SAFETY: all zero is a valid sockaddr_storage.
        let mut address: libc::sockaddr_storage = unsafe { std::mem::zeroed() };
        let length = match destination {
            IpAddr::V4(destination) => {
                // SAFETY: sockaddr_storage has room and alignment for every socket address.
                let address: &mut libc::sockaddr_in =
                    unsafe { &mut *std::ptr::from_mut(&mut address).cast() };
                address.sin_family = libc::AF_INET as u16;
                address.sin_addr.s_addr = destination.to_bits().to_be();
                size_of::<libc::sockaddr_in>()
            }
            IpAddr::V6(destination) => {
                // SAFETY: as above.
                let address: &mut libc::sockaddr_in6 =
                    unsafe { &mut *std::ptr::from_mut(&mut address).cast() };
                address.sin6_family = libc::AF_INET6 as u16;
                address.sin6_addr.s6_addr = destination.octets();
                size_of::<libc::sockaddr_in6>()
            }
        };
        // SAFETY: both pointers and lengths describe values that outlive the call.
        let sent = unsafe {
            libc::sendto(
                socket.as_raw_fd(),
                datagram.as_ptr().cast(),
                datagram.len(),
                0,
                std::ptr::from_ref(&address).cast(),
                length as libc::socklen_t,
            )
        };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}
