//! Thin wrappers around the system calls that `std` and `rustix` do not offer: all of this
//! project's unsafe code. Each error names what was attempted.
//!
//! Map: [`device`] (what one device is like), [`packet_socket`] (packet(7), frames in and out in
//! batches), `sending` (how they leave), [`packet_ring`] (frames in shared memory), [`raw_ip`]
//! (raw(7), the kernel routes), [`poll`] (epoll and a timerfd), [`namespace`] (network and user
//! namespaces), [`netlink`] (a bridge's stations, news of devices), [`offload`] (ethtool),
//! [`tcp_socket`] (tcp(7)), [`socket_option`] (any option, as bytes), [`process`] (priority, timer
//! slack, death of the parent), [`signals`] (Ctrl-C, SIGTERM, SIGHUP).

pub mod device;
pub mod namespace;
pub mod netlink;
pub mod offload;
pub mod packet_ring;
pub mod packet_socket;
pub mod poll;
pub mod process;
pub mod raw_ip;
mod sending;
pub mod signals;
pub mod socket_option;
pub mod tcp_socket;

use anyhow::{Context, Result};
use sansio::Instant;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Nanoseconds of CLOCK_MONOTONIC, which is one and the same for all processes and namespaces.
pub fn monotonic_nanos() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Nanoseconds of CLOCK_REALTIME, by which the kernel says when a frame arrived.
pub fn realtime_nanos() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The clock of a run: time since its zero.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    zero: u64,
}

impl Clock {
    /// A clock whose zero is now.
    pub fn starting_now() -> Self {
        Clock { zero: monotonic_nanos() }
    }

    /// Time since zero.
    pub fn now(self) -> Instant {
        Instant::from_nanos(monotonic_nanos().saturating_sub(self.zero))
    }

    /// The CLOCK_MONOTONIC reading, in nanoseconds, that an instant of this clock stands for.
    pub fn monotonic_at(self, at: Instant) -> u64 {
        self.zero.saturating_add(at.as_nanos())
    }
}

/// A system call's result, or its error with what was attempted.
fn check(result: libc::c_int, attempt: impl FnOnce() -> String) -> Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()).with_context(attempt) } else { Ok(result) }
}

/// setsockopt(2) with a plain value.
fn set_option<T: Copy>(
    socket: BorrowedFd<'_>,
    (level, option): (libc::c_int, libc::c_int),
    value: &T,
) -> io::Result<()> {
    // SAFETY: the pointer and the length describe `value`, which outlives the call.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            option,
            std::ptr::from_ref(value).cast(),
            size_of::<T>() as libc::socklen_t,
        )
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Sets a socket's buffer in both directions: beyond the system's limit if that is allowed, up to
/// it otherwise.
fn set_buffers(socket: BorrowedFd<'_>, bytes: libc::c_int) -> io::Result<()> {
    for (force, plain) in
        [(libc::SO_RCVBUFFORCE, libc::SO_RCVBUF), (libc::SO_SNDBUFFORCE, libc::SO_SNDBUF)]
    {
        if set_option(socket, (libc::SOL_SOCKET, force), &bytes).is_err() {
            set_option(socket, (libc::SOL_SOCKET, plain), &bytes)?;
        }
    }
    Ok(())
}
