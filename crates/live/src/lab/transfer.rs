//! Bytes between two kernels: a sender and a receiver, each on a thread in its host's namespace,
//! each with the hash of every byte that went through it.

use crate::sys::namespace;
use crate::sys::tcp_socket::{self, Info, Options};
use anyhow::{Context, Result, bail};
use sansio::{Instant, StreamId};
use sha2::{Digest, Sha256};
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddrV4, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::time::Duration;

/// A host's place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its namespace.
    pub namespace: String,
    /// Its address.
    pub address: Ipv4Addr,
}

/// What went through one end of a transfer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    /// Bytes.
    pub bytes: u64,
    /// Their SHA-256.
    pub hash: [u8; 32],
    /// What the kernel says about the sender; nothing at a receiver.
    pub info: Info,
    /// Of messages: when each was begun, at the sender, or was whole, at the receiver.
    pub messages_at: Vec<Instant>,
    /// The sender's kernel gave the connection up (ETIMEDOUT; tcp(7), tcp_retries2).
    pub gave_up: bool,
}

/// A thread looks this often whether it shall stop.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Between two looks for a connection.
const ACCEPT_EVERY: Duration = Duration::from_millis(2);
/// A connection that is not made in this time never will be.
const CONNECT_MAX: Duration = Duration::from_secs(60);
/// Bytes per call.
pub(super) const CHUNK: usize = 64 << 10;

/// A listener at a receiver's place.
///
/// # Errors
/// If the socket cannot be had.
pub fn listen(place: &Place, options: &Options) -> Result<TcpListener> {
    let address = SocketAddrV4::new(place.address, 0);
    namespace::within(&place.namespace, || tcp_socket::listen(address, options))
}

/// Sends `size` bytes of a stream, or as many as go until told to stop.
///
/// # Errors
/// If the connection fails, but for one that the kernel gives up.
pub fn send(
    from: &Place,
    to: SocketAddrV4,
    (stream, size): (StreamId, Option<u64>),
    options: &Options,
    stop: &AtomicBool,
) -> Result<Passed> {
    namespace::enter(&from.namespace)?;
    let mut socket = connect(from, to, options)?;
    let (mut hash, mut sent, mut gave_up) = (Sha256::new(), 0, false);
    let mut chunk = Vec::with_capacity(CHUNK);
    while size.is_none_or(|size| sent < size) && !stop.load(Ordering::Relaxed) && !gave_up {
        if chunk.is_empty() {
            let end = size.unwrap_or(u64::MAX).min(sent + CHUNK as u64);
            chunk.extend((sent..end).map(|offset| stream.pattern(offset)));
        }
        match socket.write(&chunk) {
            Ok(count) => {
                hash.update(&chunk[..count]);
                chunk.drain(..count);
                sent += count as u64;
            }
            Err(error) if is_wait(error.kind()) => {}
            Err(error) if error.kind() == ErrorKind::TimedOut => gave_up = true,
            // A receiver that is told to stop closes the connection.
            Err(_) if stop.load(Ordering::Relaxed) => break,
            Err(error) => return Err(error).context("send"),
        }
    }
    if !stop.load(Ordering::Relaxed) && !gave_up {
        let ended = socket.shutdown(Shutdown::Write);
        // It may have been told to stop at this moment.
        if !stop.load(Ordering::Relaxed) {
            ended.context("end the stream")?;
        }
    }
    // The receiver says by closing that it has everything.
    while !stop.load(Ordering::Relaxed) && !gave_up {
        match socket.read(&mut [0]) {
            Ok(_) => break,
            Err(error) if is_wait(error.kind()) => {}
            Err(error) if error.kind() == ErrorKind::TimedOut => gave_up = true,
            Err(_) if stop.load(Ordering::Relaxed) => break,
            Err(error) => return Err(error).context("wait for the receiver"),
        }
    }
    let info = tcp_socket::info(&socket)?;
    tcp_socket::reset_on_close(&socket)?;
    let hash = hash.finalize().into();
    Ok(Passed { bytes: sent, hash, info, messages_at: Vec::new(), gave_up })
}

/// Receives until the stream ends, `size` bytes are there, or it is told to stop, with a window of
/// at most `window_bytes`. Says so by `done` as soon as it has everything.
///
/// # Errors
/// If the connection fails.
pub fn receive(
    listener: &TcpListener,
    (size, window_bytes): (Option<u64>, Option<u32>),
    done: &Sender<()>,
    stop: &AtomicBool,
) -> Result<Passed> {
    let passed = read_all(listener, (size, window_bytes), stop, |_| {})?;
    // Nobody may be listening any more.
    let _told = done.send(());
    Ok(passed)
}

/// Accepts a connection and reads until the stream ends, `size` bytes are there, or it is told to
/// stop. `note` hears at once of each read, with the number of bytes so far.
///
/// # Errors
/// If the connection fails.
pub(super) fn read_all(
    listener: &TcpListener,
    (size, window_bytes): (Option<u64>, Option<u32>),
    stop: &AtomicBool,
    mut note: impl FnMut(u64),
) -> Result<Passed> {
    let Some(mut socket) = accept(listener, stop)? else { return Ok(Passed::default()) };
    let mut hash = Sha256::new();
    let mut received = 0;
    let mut chunk = vec![0; CHUNK];
    while size.is_none_or(|size| received < size) {
        match socket.read(&mut chunk) {
            Ok(0) => break,
            Ok(count) => {
                received += count as u64;
                note(received);
                hash.update(&chunk[..count]);
                if let Some(bytes) = window_bytes {
                    tcp_socket::hold_window(&socket, bytes)?;
                }
            }
            Err(error) if is_wait(error.kind()) => {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
            }
            // A sender that is told to stop resets the connection.
            Err(_) if stop.load(Ordering::Relaxed) => break,
            Err(error) => return Err(error).context("receive"),
        }
    }
    Ok(Passed { bytes: received, hash: hash.finalize().into(), ..Passed::default() })
}

/// The hash of a stream's first bytes.
pub fn hash_of(stream: StreamId, bytes: u64) -> [u8; 32] {
    let mut hash = Sha256::new();
    let mut chunk = Vec::with_capacity(CHUNK);
    let mut at = 0;
    while at < bytes {
        let end = bytes.min(at + CHUNK as u64);
        chunk.clear();
        chunk.extend((at..end).map(|offset| stream.pattern(offset)));
        hash.update(&chunk);
        at = end;
    }
    hash.finalize().into()
}

/// A connection whose sender and receiver look around while they wait.
pub(super) fn connect(from: &Place, to: SocketAddrV4, options: &Options) -> Result<TcpStream> {
    let socket = tcp_socket::connect(from.address, to, options, CONNECT_MAX)?;
    tcp_socket::bound_waits(&socket, LOOK_EVERY)?;
    Ok(socket)
}

/// The same at the other end; none if it shall stop before there is one.
pub(super) fn accept(listener: &TcpListener, stop: &AtomicBool) -> Result<Option<TcpStream>> {
    listener.set_nonblocking(true).context("make a listener non-blocking")?;
    loop {
        match listener.accept() {
            Ok((socket, _)) => {
                socket.set_nonblocking(false).context("make a socket blocking")?;
                tcp_socket::bound_waits(&socket, LOOK_EVERY)?;
                return Ok(Some(socket));
            }
            Err(error) if is_wait(error.kind()) => {
                if stop.load(Ordering::Relaxed) {
                    return Ok(None);
                }
                std::thread::sleep(ACCEPT_EVERY);
            }
            Err(error) => bail!("accept a connection: {error}"),
        }
    }
}

pub(super) fn is_wait(kind: ErrorKind) -> bool {
    // What `bound_waits` ends is WouldBlock; TimedOut is the end of the connection.
    matches!(kind, ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
