//! Orders to a running daemon, one line each: `link down`, `link up`, `forget`, `stats`, `stop`.
//!
//! `stats` is answered with one line of JSON. Whoever starts the daemon may use its standard input
//! and output: then the daemon writes `ready` when it has taken over, and ends when its input
//! does. On a socket, each line is a datagram and is answered to where it came from.

use super::path::DataPath;
use super::station::Station;
use crate::io::PacketIo;
use anyhow::{Context, Result};
use rustix::fd::{AsFd, BorrowedFd};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use sansio::{Notice, Side};
use schemes::Scheme;
use std::collections::VecDeque;
use std::io::{self, Write};
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::PathBuf;

/// Where orders come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Control {
    /// Nowhere.
    Nobody,
    /// Standard input.
    Standard,
    /// A Unix datagram socket made at this path.
    Socket(PathBuf),
}

/// An order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// To pass on to the engine.
    Notice(Notice),
    /// Say what happened so far.
    Statistics,
    /// End.
    Stop,
}

impl Order {
    /// The order of a line; `None` if it is none.
    pub fn parse(line: &str) -> Option<Order> {
        match line.trim() {
            "link down" => Some(Order::Notice(Notice::LinkDown(Side::RADIO))),
            "link up" => Some(Order::Notice(Notice::LinkUp(Side::RADIO))),
            "forget" => Some(Order::Notice(Notice::Forget)),
            "stats" => Some(Order::Statistics),
            "stop" => Some(Order::Stop),
            _ => None,
        }
    }
}

/// The source of orders.
#[derive(Debug)]
pub(super) struct Orders {
    source: Source,
    /// Read, not yet taken.
    waiting: VecDeque<Order>,
}

#[derive(Debug)]
enum Source {
    Nobody,
    Standard { input: io::Stdin, line: Vec<u8> },
    Socket { socket: UnixDatagram, path: PathBuf, last: Option<SocketAddr> },
}

/// An order is short.
const LINE_BYTES_MAX: usize = 256;

impl Orders {
    pub(super) fn open(control: &Control) -> Result<Self> {
        let source = match control {
            Control::Nobody => Source::Nobody,
            Control::Standard => {
                let input = io::stdin();
                let flags = fcntl_getfl(&input).context("look at the standard input")?;
                fcntl_setfl(&input, flags | OFlags::NONBLOCK)
                    .context("make the standard input non-blocking")?;
                Source::Standard { input, line: Vec::new() }
            }
            Control::Socket(path) => {
                let attempt = || format!("make the control socket {}", path.display());
                // A killed daemon leaves its socket behind; a running one still answers.
                let answers =
                    UnixDatagram::unbound().is_ok_and(|probe| probe.connect(path).is_ok());
                if !answers && path.exists() {
                    std::fs::remove_file(path).with_context(attempt)?;
                }
                let socket = UnixDatagram::bind(path).with_context(attempt)?;
                socket.set_nonblocking(true).with_context(attempt)?;
                Source::Socket { socket, path: path.clone(), last: None }
            }
        };
        Ok(Orders { source, waiting: VecDeque::new() })
    }

    pub(super) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        match &self.source {
            Source::Nobody => None,
            Source::Standard { input, .. } => Some(input.as_fd()),
            Source::Socket { socket, .. } => Some(socket.as_fd()),
        }
    }

    /// The next order that has come; `None` if none waits.
    pub(super) fn next(&mut self) -> Result<Option<Order>> {
        if let Some(order) = self.waiting.pop_front() {
            return Ok(Some(order));
        }
        let mut bytes = [0; LINE_BYTES_MAX];
        match &mut self.source {
            Source::Nobody => {}
            Source::Standard { input, line } => match rustix::io::read(&*input, &mut bytes) {
                Ok(0) => self.waiting.push_back(Order::Stop),
                Ok(count) => {
                    for byte in &bytes[..count] {
                        if *byte == b'\n' {
                            let text = String::from_utf8_lossy(line);
                            self.waiting.extend(Order::parse(&text));
                            line.clear();
                        } else if line.len() < LINE_BYTES_MAX {
                            line.push(*byte);
                        }
                    }
                }
                Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error).context("read orders"),
            },
            Source::Socket { socket, last, .. } => match socket.recv_from(&mut bytes) {
                Ok((count, from)) => {
                    let text = String::from_utf8_lossy(&bytes[..count]);
                    self.waiting.extend(Order::parse(&text));
                    *last = Some(from);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error).context("read orders"),
            },
        }
        Ok(self.waiting.pop_front())
    }

    /// Writes a line to whoever gave the last order.
    pub(super) fn answer(&mut self, line: &str) -> Result<()> {
        match &self.source {
            Source::Nobody => Ok(()),
            Source::Standard { .. } => {
                let mut output = io::stdout().lock();
                writeln!(output, "{line}").and_then(|()| output.flush()).context("answer")
            }
            Source::Socket { socket, last, .. } => {
                // Who has no address, or is gone, wants no answer.
                if let Some(path) = last.as_ref().and_then(SocketAddr::as_pathname) {
                    let _answered = socket.send_to(line.as_bytes(), path);
                }
                Ok(())
            }
        }
    }
}

impl Drop for Orders {
    fn drop(&mut self) {
        if let Source::Socket { path, .. } = &self.source {
            let _removed = std::fs::remove_file(path);
        }
    }
}

/// What the loop counts beside the station.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Totals {
    /// The most payload bytes that the scheme held at once.
    pub(super) held_bytes_max: u64,
    /// Frames that came faster than they were taken, and were lost.
    pub(super) overruns: u64,
}

/// What happened so far, as one line of JSON.
pub(super) fn statistics(station: &Station<Scheme>, totals: Totals, path: &DataPath) -> String {
    serde_json::json!({
        "seconds": path.io.now().as_secs_f64(),
        "back_end": path.plan.chosen,
        "held_bytes": station.engine().held_bytes(),
        "held_bytes_max": totals.held_bytes_max,
        "overruns": totals.overruns,
        "packets": station.counters(),
        "scheme": of_scheme(station.engine()),
    })
    .to_string()
}

/// What the scheme itself counts.
fn of_scheme(scheme: &Scheme) -> serde_json::Value {
    let Scheme::Snoop(agent) = scheme else { return serde_json::Value::Null };
    let counted = agent.statistics();
    serde_json::json!({
        "flows": agent.flows(),
        "flows_created": counted.flows_created,
        "flows_left_alone": counted.flows_left_alone,
        "flows_refused": counted.flows_refused,
        "cached": counted.cached,
        "uncached": counted.uncached,
        "sender_retransmissions": counted.sender_retransmissions,
        "agent_acks": counted.agent_acks,
        "dupacks_suppressed": counted.dupacks_suppressed,
        "dupacks_forwarded": counted.dupacks_forwarded,
        "spurious_acks": counted.spurious_acks,
        "retransmissions": counted.retransmissions,
        "retransmitted_bytes": counted.retransmitted_bytes,
        "timer_retransmissions": counted.timer_retransmissions,
        "restart_retransmissions": counted.restart_retransmissions,
        "unneeded_retransmissions": counted.unneeded_retransmissions,
        "retransmissions_refused": counted.retransmissions_refused,
        "probes": counted.probes,
        "probe_bytes": counted.probe_bytes,
        "sack_hidden": counted.sack_hidden,
        "queue_drops_seen": counted.queue_drops_seen,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_gives_orders_and_gets_answers() {
        let directory = std::env::temp_dir();
        let path = |name: &str| directory.join(format!("lasthop-{}-{name}", std::process::id()));
        let (control, client) = (path("control"), path("client"));
        // A killed daemon left its socket here.
        drop(UnixDatagram::bind(&control).expect("a socket"));
        let mut orders = Orders::open(&Control::Socket(control.clone())).expect("it takes over");
        assert!(Orders::open(&Control::Socket(control.clone())).is_err(), "somebody answers there");
        assert_eq!(orders.next().expect("no error"), None);
        let socket = UnixDatagram::bind(&client).expect("a socket");
        for line in ["link up\n", "rubbish", "stats"] {
            socket.send_to(line.as_bytes(), &control).expect("sent");
        }
        let up = Order::Notice(Notice::LinkUp(Side::RADIO));
        let mut taken = Vec::new();
        for _ in 0..3 {
            taken.extend(orders.next().expect("no error"));
        }
        assert_eq!(taken, [up, Order::Statistics]);
        orders.answer("{}").expect("an answer");
        let mut answer = [0; 8];
        assert_eq!(socket.recv(&mut answer).expect("an answer"), 2);
        drop(orders);
        assert!(!control.exists(), "it is removed");
        std::fs::remove_file(client).expect("removed");
    }

    #[test]
    fn orders_are_read_and_anything_else_is_none() {
        let down = Order::Notice(Notice::LinkDown(Side::RADIO));
        assert_eq!(Order::parse("link down\n"), Some(down));
        assert_eq!(Order::parse("  stats "), Some(Order::Statistics));
        for nothing in ["", "link", "link  down", "LINK DOWN", "stop now"] {
            assert_eq!(Order::parse(nothing), None, "{nothing}");
        }
    }
}
