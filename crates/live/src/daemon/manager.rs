//! What the daemon tells whoever manages it: sd_notify(3), a datagram to the socket named by
//! `NOTIFY_SOCKET`. Nobody may be there, then nothing is said.

use crate::sys::monotonic_nanos;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// The way to a service manager.
#[derive(Debug)]
pub(super) struct Manager {
    socket: Option<(UnixDatagram, SocketAddr)>,
    watchdog: bool,
}

impl Manager {
    /// Looks whether somebody listens.
    pub(super) fn find() -> Self {
        let socket = std::env::var("NOTIFY_SOCKET").ok().and_then(|name| {
            let address = match name.strip_prefix('@') {
                Some(name) => SocketAddr::from_abstract_name(name),
                None => SocketAddr::from_pathname(&name),
            };
            let socket = UnixDatagram::unbound().ok()?;
            // A manager that does not read holds up no packets.
            socket.set_nonblocking(true).ok()?;
            Some((socket, address.ok()?))
        });
        // Systemd wants to hear twice in this time; the loop comes round once a second.
        let watchdog = std::env::var_os("WATCHDOG_USEC").is_some();
        Manager { socket, watchdog }
    }

    fn say(&self, text: &str) {
        if let Some((socket, address)) = &self.socket {
            // A manager that does not listen cannot be told so.
            let _sent = socket.send_to_addr(text.as_bytes(), address);
        }
    }

    pub(super) fn ready(&self, status: &str) {
        self.say(&format!("READY=1\nSTATUS={status}"));
    }

    pub(super) fn status(&self, status: &str) {
        self.say(&format!("STATUS={status}"));
    }

    pub(super) fn reloading(&self) {
        self.say(&format!("RELOADING=1\nMONOTONIC_USEC={}", monotonic_nanos() / 1_000));
    }

    pub(super) fn stopping(&self) {
        self.say("STOPPING=1");
    }

    pub(super) fn alive(&self) {
        if self.watchdog {
            self.say("WATCHDOG=1");
        }
    }
}
