//! TCP socket options, tcp(7), that `std` does not offer.

use super::{check, set_buffers, set_option};
use anyhow::{Context, Result};
use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use rustix::net::{AddressFamily, SocketType};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream};
use std::time::Duration;

/// What both ends of a transfer agree on before they connect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The congestion control, by the kernel's name.
    pub congestion_control: &'static str,
    /// The largest segment to send and to announce, options counted as payload (TCP_MAXSEG);
    /// `None`: what the path's MTU gives.
    pub mss: Option<u16>,
    /// The receive window in bytes; `None`: the kernel's own tuning.
    pub window_bytes: Option<u32>,
}

/// What the kernel says about a connection's sender (TCP_INFO).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Info {
    /// Segments sent again.
    pub retransmissions: u32,
    /// Retransmission timeouts; 0 on kernels before 6.7, which do not tell.
    pub timeouts: u32,
}

/// A socket with these options, not connected yet.
///
/// # Errors
/// If the kernel lacks the congestion control, or forbids it.
pub fn socket(options: &Options) -> Result<OwnedFd> {
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None)
        .context("open a TCP socket")?;
    let name = options.congestion_control;
    // SAFETY: the pointer and the length describe `name`, which outlives the call.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_CONGESTION,
            name.as_ptr().cast(),
            name.len() as libc::socklen_t,
        )
    };
    check(result, || format!("use the congestion control {name}"))?;
    if let Some(mss) = options.mss {
        let mss = libc::c_int::from(mss);
        set_option(socket.as_fd(), (libc::IPPROTO_TCP, libc::TCP_MAXSEG), &mss)
            .with_context(|| format!("set the largest segment to {mss} bytes"))?;
    }
    if let Some(bytes) = options.window_bytes {
        // Room enough that the clamp, not the memory for packets, is what limits.
        let buffers = libc::c_int::try_from(bytes).unwrap_or(libc::c_int::MAX).saturating_mul(4);
        set_buffers(socket.as_fd(), buffers).context("make room for the receive window")?;
        hold_window(&socket, bytes)?;
    }
    Ok(socket)
}

/// Limits the receive window (TCP_WINDOW_CLAMP). The kernel forgets the limit when it learns how
/// much memory the packets of a connection take (tcp_measure_rcv_mss() since Linux 6.6), so a
/// receiver that wants to keep it says it again while it reads.
///
/// # Errors
/// If the kernel refuses.
pub fn hold_window(socket: &impl AsFd, bytes: u32) -> Result<()> {
    let attempt = || format!("limit the receive window to {bytes} bytes");
    let bytes = libc::c_int::try_from(bytes).with_context(attempt)?;
    let clamp = (libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP);
    set_option(socket.as_fd(), clamp, &bytes).with_context(attempt)
}

/// Accepts connections on an address of the calling thread's network namespace.
///
/// # Errors
/// As [`socket`], or if the address is not there.
pub fn listen(address: SocketAddrV4, options: &Options) -> Result<TcpListener> {
    let socket = socket(options)?;
    rustix::net::bind(&socket, &address).with_context(|| format!("bind to {address}"))?;
    rustix::net::listen(&socket, 1).with_context(|| format!("listen on {address}"))?;
    Ok(TcpListener::from(socket))
}

/// Connects from an address of this host; waits at most `patience`.
///
/// # Errors
/// As [`socket`], or if nobody answers.
pub fn connect(
    from: Ipv4Addr,
    to: SocketAddrV4,
    options: &Options,
    patience: Duration,
) -> Result<TcpStream> {
    let socket = socket(options)?;
    rustix::net::bind(&socket, &SocketAddrV4::new(from, 0))
        .with_context(|| format!("bind to {from}"))?;
    // Linux bounds connect(2) by the socket's send timeout.
    let stream = TcpStream::from(socket);
    stream.set_write_timeout(Some(patience)).context("bound the time to connect")?;
    rustix::net::connect(&stream, &to).with_context(|| format!("connect to {to}"))?;
    Ok(stream)
}

/// Closing the socket from now on resets its connection and forgets what is in its queues.
///
/// # Errors
/// Never on a TCP socket.
pub fn reset_on_close(stream: &TcpStream) -> Result<()> {
    let linger = libc::linger { l_onoff: 1, l_linger: 0 };
    set_option(stream.as_fd(), (libc::SOL_SOCKET, libc::SO_LINGER), &linger)
        .context("have a close reset the connection")
}

/// What the kernel knows about a connection.
///
/// # Errors
/// Never on a TCP socket.
pub fn info(stream: &TcpStream) -> Result<Info> {
    let mut bytes = [0_u8; 512];
    let mut length = bytes.len() as libc::socklen_t;
    // SAFETY: pointer and length describe `bytes`; both outlive the call.
    let result = unsafe {
        libc::getsockopt(
            stream.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            bytes.as_mut_ptr().cast(),
            &mut length,
        )
    };
    check(result, || "ask for TCP_INFO".to_owned())?;
    // What an older kernel did not fill in stays zero.
    let at = |offset: usize, count: usize| {
        bytes[offset..offset + count]
            .iter()
            .rev()
            .fold(0, |value, byte| value << 8 | u32::from(*byte))
    };
    let little_endian = cfg!(target_endian = "little");
    let number = |offset, count| if little_endian { at(offset, count) } else { 0 };
    Ok(Info { retransmissions: number(TOTAL_RETRANS, 4), timeouts: number(TOTAL_RTO, 2) })
}

/// A receive or send that waits no longer than this, so that its caller can look around.
///
/// # Errors
/// Never for a time above zero.
pub fn bound_waits(stream: &TcpStream, wait: Duration) -> Result<()> {
    stream.set_read_timeout(Some(wait)).context("bound a receive")?;
    stream.set_write_timeout(Some(wait)).context("bound a send")
}

/// struct tcp_info of linux/tcp.h: offset of tcpi_total_retrans.
const TOTAL_RETRANS: usize = 100;
/// Offset of tcpi_total_rto, since kernel 6.7.
const TOTAL_RTO: usize = 240;
