//! Serves metrics and health over HTTP/1.1 (RFC 9112), in a thread of its own that reads what the
//! loop has published and never asks it for anything.

use super::metrics;
use super::snapshot::Board;
use crate::sys::Clock;
use anyhow::{Context, Result};
use sansio::Instant;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A running server; dropping it ends it.
#[derive(Debug)]
pub(super) struct Server {
    at: SocketAddr,
    stop: Arc<AtomicBool>,
}

/// How long a client may take for its request, and for the answer.
const PATIENCE: Duration = Duration::from_secs(1);
/// The longest request that is read.
const REQUEST_BYTES_MAX: u64 = 8_192;

impl Server {
    /// Begins to listen.
    ///
    /// # Errors
    /// If the address is taken, or not one of this machine's.
    pub(super) fn open(at: SocketAddr, board: Board, clock: Clock) -> Result<Self> {
        let listener = bind(at)?;
        let at = listener.local_addr().unwrap_or(at);
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        std::thread::spawn(move || {
            for client in listener.incoming() {
                if stopped.load(Ordering::SeqCst) {
                    return;
                }
                if let Ok(client) = client {
                    // Who left, or took too long, gets nothing.
                    let _answered = serve(&client, &board, clock);
                }
            }
        });
        Ok(Server { at, stop })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        let _woken = TcpStream::connect_timeout(&self.at, PATIENCE);
    }
}

/// Takes the address.
///
/// # Errors
/// If it is taken, or not one of this machine's.
pub(super) fn bind(at: SocketAddr) -> Result<TcpListener> {
    TcpListener::bind(at).with_context(|| {
        format!("metrics.listen = {at}: choose another port, or an address of this machine")
    })
}

fn serve(client: &TcpStream, board: &Board, clock: Clock) -> io::Result<()> {
    client.set_read_timeout(Some(PATIENCE))?;
    client.set_write_timeout(Some(PATIENCE))?;
    let mut lines = BufReader::new(client.take(REQUEST_BYTES_MAX));
    let mut request = String::new();
    lines.read_line(&mut request)?;
    let began = clock.now();
    // The headers say nothing that is needed; they are read so that the answer is not a reset.
    let mut header = String::new();
    while lines.read_line(&mut header)? > 2 && clock.now().since(began).as_nanos() < SECOND_NS {
        header.clear();
    }
    let mut words = request.split_whitespace();
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let (status, kind, body) = answer(method, path, board, clock.now());
    let reason = if status == 200 { "OK" } else { "Error" };
    let head = format!(
        "HTTP/1.1 {status} {reason}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n",
        body.len()
    );
    let body = if method == "HEAD" { "" } else { &body };
    (&*client).write_all(format!("{head}{body}").as_bytes())
}

/// A second.
const SECOND_NS: u64 = 1_000_000_000;

fn answer(method: &str, path: &str, board: &Board, now: Instant) -> (u16, &'static str, String) {
    const PLAIN: &str = "text/plain; charset=utf-8";
    if !matches!(method, "GET" | "HEAD") {
        return (405, PLAIN, "expected GET or HEAD\n".into());
    }
    let snapshot = board.latest();
    match path.split('?').next().unwrap_or_default() {
        "/metrics" => {
            let kind = "text/plain; version=0.0.4; charset=utf-8";
            (200, kind, metrics::text(&snapshot))
        }
        "/health" => {
            let (status, text) = metrics::health(&snapshot, now.as_secs_f64() - snapshot.seconds);
            (status, PLAIN, text)
        }
        _ => (404, PLAIN, "there are /metrics and /health\n".into()),
    }
}
