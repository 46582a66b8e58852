//! One end of a connection by hand: segments made here, and everything that comes back noted with
//! its time; the other end is a socket of a kernel.
//!
//! Numbers are relative, as such scripts are written: each direction's initial sequence number is
//! 0, so that data begins at 1.

use crate::load::Stopwatch;
use crate::net::{Host, Net};
use crate::stage;
use anyhow::{Context, Result, bail, ensure};
use live::daemon::Forwarding;
use live::frame::{NETWORK_AT, Virtio};
use live::lab::network::{RADIO, WIRED};
use live::sys::packet_socket::{
    Head, Leave, Listen, Outgoing, PacketSocket, Prefix, Received, find,
};
use live::sys::{namespace, socket_option};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};
use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;
use wire::datagram::{self, Checksums, Transport};
use wire::icmp::Message;
use wire::ip::{self, Protocol, Version};
use wire::tcp::{self, Flags, Options, Seq, TcpOption, Timestamps};

pub(super) const ACK: Flags = Flags::ACK;
pub(super) const SYN: Flags = Flags::SYN;
pub(super) const FIN: Flags = Flags(Flags::FIN.0 | Flags::ACK.0);
pub(super) const RST: Flags = Flags::RST;
pub(super) const PSH: Flags = Flags(Flags::PSH.0 | Flags::ACK.0);

/// What the raw end offers in its SYN: segments of 1000 bytes, SACK, a window scale of 7.
pub(super) const USUAL: &[u8] = &[2, 4, 3, 232, 1, 1, 4, 2, 1, 3, 3, 7];
/// The same without SACK.
pub(super) const NO_SACK: &[u8] = &[2, 4, 3, 232, 1, 3, 3, 7];

/// The raw end's initial sequence number.
const OUR_ISN: Seq = Seq(0x7000_0000);
/// Every byte that the raw end sends.
const FILL: u8 = b'r';

/// A segment of the raw end.
#[derive(Clone, Debug)]
pub(super) struct Segment {
    pub(super) flags: Flags,
    pub(super) seq: u32,
    pub(super) bytes: usize,
    pub(super) ack: u32,
    pub(super) window: u16,
    pub(super) urgent: u16,
    pub(super) options: Vec<u8>,
    /// The ECN field of its IP header.
    pub(super) ecn: u8,
}

impl Segment {
    /// Flags, first sequence number, payload bytes, ACK; the window is 1000 (128 kB with
    /// [`USUAL`]).
    pub(super) fn new(flags: Flags, seq: u32, bytes: usize, ack: u32) -> Segment {
        let (window, urgent, options, ecn) = (1_000, 0, Vec::new(), 0);
        Segment { flags, seq, bytes, ack, window, urgent, options, ecn }
    }

    pub(super) fn window(self, window: u16) -> Segment {
        Segment { window, ..self }
    }

    /// More options, byte by byte.
    pub(super) fn options(mut self, options: &[u8]) -> Segment {
        self.options.extend(options);
        self
    }

    /// SACK blocks of the kernel's data, or, relative, D-SACK.
    pub(super) fn sack(self, blocks: &[(u32, u32)], kernel_isn: Seq) -> Segment {
        let mut option = vec![1, 1, 5, 2 + 8 * blocks.len() as u8];
        for (start, end) in blocks {
            option.extend((kernel_isn + *start).0.to_be_bytes());
            option.extend((kernel_isn + *end).0.to_be_bytes());
        }
        self.options(&option)
    }

    pub(super) fn timestamps(self, value: u32, echo: u32) -> Segment {
        let option = [&[1, 1, 8, 10][..], &value.to_be_bytes(), &echo.to_be_bytes()].concat();
        self.options(&option)
    }
}

/// A packet that reached the raw end, or what the socket said.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) at_ms: f64,
    pub(crate) text: String,
    /// The kernel's TSval beyond its first, if it has one: a time, and so not compared as text.
    pub(crate) timestamp: Option<u32>,
    /// Flags, first sequence number, payload bytes and ACK, of a packet.
    pub(crate) segment: Option<(Flags, u32, usize, u32)>,
}

/// A script while it is played.
pub(crate) struct Player<'a> {
    net: &'a Net,
    /// Where the raw end is.
    raw_at: Host,
    link: PacketSocket,
    received: Received,
    to: wire::ethernet::Mac,
    raw: SocketAddr,
    kernel: SocketAddr,
    kernel_isn: Option<Seq>,
    first_timestamp: Option<u32>,
    pub(crate) last_timestamp: u32,
    began: Stopwatch,
    /// How far the script has come, in milliseconds since it began.
    due_ms: f64,
    pub(crate) socket: Option<TcpStream>,
    listener: Option<TcpListener>,
    /// The end of what the raw end sent, as far as a window reaches.
    pub(crate) sent: u32,
    pub(crate) seen: Vec<Seen>,
}

/// No script sends so much within a window.
const FAR: u32 = 1 << 20;
/// What was sent before a call has arrived by then, also through the daemon.
const ARRIVES_MS: u64 = 3;
/// Addresses of raw ends begin here, in the network of the host they stand in for.
const FIRST_RAW: u8 = 100;
const FIRST_PORT: u16 = 9_000;

/// Has what is next find the raw ends at a host, and the host not answer for them.
pub(super) fn prepare(net: &Net, raw_at: Host, count: u8) -> Result<()> {
    let (next, device) = next(net, raw_at);
    let mac = namespace::within(net.namespace(raw_at), || Ok(find("net0")?.mac))?;
    let mac = mac.0.map(|octet| format!("{octet:02x}")).join(":");
    for number in 0..count {
        let raw = raw_address(raw_at, number);
        net.ip(next, &format!("neigh replace {raw} lladdr {mac} dev {device} nud permanent"))?;
        net.ip(net.namespace(raw_at), &format!("route replace blackhole {raw}"))?;
    }
    Ok(())
}

/// What is next to the raw ends at a host, by namespace and device: the box, or, if that bridges,
/// the other host.
fn next(net: &Net, raw_at: Host) -> (&str, &'static str) {
    match (net.forwarding, raw_at) {
        (Forwarding::Bridge, _) => (net.namespace(raw_at.other()), "net0"),
        (Forwarding::Routed, Host::Fixed) => (net.base(), WIRED),
        (Forwarding::Routed, Host::Mobile) => (net.base(), RADIO),
    }
}

fn raw_address(host: Host, number: u8) -> Ipv4Addr {
    let subnet = if host == Host::Fixed { 1 } else { 2 };
    Ipv4Addr::new(10, 78, subnet, FIRST_RAW + number)
}

impl<'a> Player<'a> {
    /// The raw end is at `raw_at`; its number tells it from others that play at the same time, the
    /// time from those before.
    pub(super) fn new(net: &'a Net, raw_at: Host, (number, time): (u8, u32)) -> Result<Player<'a>> {
        let (next, device) = next(net, raw_at);
        let to = namespace::within(next, || Ok(find(device)?.mac))?;
        let open = || PacketSocket::open("net0", Prefix::Virtio, Listen::Tcp, Leave::Direct);
        let link = net.at(raw_at, open)?;
        let port = FIRST_PORT + u16::from(number) + 256 * time as u16;
        let kernel = Net::address(raw_at.other(), crate::net::Family::V4);
        Ok(Player {
            net,
            raw_at,
            link,
            received: Received::new(),
            to,
            raw: (raw_address(raw_at, number), port).into(),
            kernel: (kernel, port).into(),
            kernel_isn: None,
            first_timestamp: None,
            last_timestamp: 0,
            began: Stopwatch::start(),
            due_ms: 0.0,
            socket: None,
            listener: None,
            sent: 0,
            seen: Vec::new(),
        })
    }

    /// The kernel's initial sequence number.
    pub(super) fn isn(&self) -> Seq {
        self.kernel_isn.unwrap_or(Seq(0))
    }

    // What the kernel's program does.

    fn kernel_socket(&self) -> Result<rustix::fd::OwnedFd> {
        let (kind, flags) = (SocketType::STREAM, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK);
        let open = || Ok(rustix::net::socket_with(AddressFamily::INET, kind, flags, None)?);
        let socket = self.net.at(self.raw_at.other(), open)?;
        sockopt::set_socket_reuseaddr(&socket, true)?;
        sockopt::set_tcp_nodelay(&socket, true)?;
        rustix::net::bind(&socket, &self.kernel).context("bind")?;
        Ok(socket)
    }

    /// A socket that listens; `prepare` sees it before.
    pub(super) fn listen(
        &mut self,
        prepare: impl FnOnce(&rustix::fd::OwnedFd) -> Result<()>,
    ) -> Result<()> {
        let socket = self.kernel_socket()?;
        prepare(&socket)?;
        rustix::net::listen(&socket, 8).context("listen")?;
        self.listener = Some(socket.into());
        Ok(())
    }

    /// A socket that begins to connect.
    pub(super) fn connect(
        &mut self,
        prepare: impl FnOnce(&rustix::fd::OwnedFd) -> Result<()>,
    ) -> Result<()> {
        let socket = self.kernel_socket()?;
        prepare(&socket)?;
        match rustix::net::connect(&socket, &self.raw) {
            Ok(()) | Err(rustix::io::Errno::INPROGRESS) => {}
            Err(error) => bail!("connect: {error}"),
        }
        self.socket = Some(socket.into());
        Ok(())
    }

    /// Takes the connection that the listener has.
    pub(super) fn accept(&mut self) -> Result<()> {
        let listener = self.listener.as_ref().context("nobody listens")?;
        let (socket, _) = listener.accept().context("accept")?;
        socket.set_nonblocking(true)?;
        sockopt::set_tcp_nodelay(&socket, true)?;
        self.socket = Some(socket);
        Ok(())
    }

    pub(super) fn write(&mut self, bytes: usize) -> Result<()> {
        self.pass(ARRIVES_MS)?;
        let result = self.stream()?.write(&stage::bytes(bytes));
        self.say(format!("write({bytes}): {result:?}"));
        Ok(())
    }

    pub(super) fn read(&mut self) -> Result<()> {
        self.pass(ARRIVES_MS)?;
        let mut buffer = vec![0; 256 << 10];
        let result = self.stream()?.read(&mut buffer);
        if let Ok(count) = result {
            let wrong = buffer[..count].iter().any(|byte| *byte != FILL);
            ensure!(!wrong, "a byte was read that the raw end did not send");
        }
        self.say(format!("read: {:?}", result.map_err(|error| error.kind())));
        Ok(())
    }

    pub(super) fn shutdown(&mut self) -> Result<()> {
        self.pass(ARRIVES_MS)?;
        let result = self.stream()?.shutdown(Shutdown::Write);
        self.say(format!("shutdown: {result:?}"));
        Ok(())
    }

    pub(super) fn close(&mut self) -> Result<()> {
        self.pass(ARRIVES_MS)?;
        self.socket = None;
        self.listener = None;
        self.say("close".to_owned());
        Ok(())
    }

    pub(super) fn option(&mut self, level: i32, option: i32, value: u32) -> Result<()> {
        socket_option::set(self.stream()?, level, option, &value.to_ne_bytes())
    }

    fn stream(&mut self) -> Result<&mut TcpStream> {
        self.socket.as_mut().context("there is no connection")
    }

    /// The connection's state and its pending error.
    pub(super) fn state(&mut self) -> Result<()> {
        self.pass(ARRIVES_MS)?;
        let socket = self.stream()?;
        let error = socket.take_error()?.map(|error| error.kind());
        let info = stage::info(socket)?;
        // tcpi_state, tcpi_ca_state, tcpi_backoff; then tcpi_unacked, tcpi_sacked, tcpi_lost,
        // tcpi_retrans, tcpi_total_retrans by their offsets in struct tcp_info.
        let number = |at: usize| u32::from_ne_bytes(info[at..at + 4].try_into().expect("four"));
        let counts = [24, 28, 32, 36, 100].map(number);
        let (cwnd, state, congestion, backoff) = (number(80), info[0], info[1], info[4]);
        self.say(format!(
            "state {state}, ca {congestion}, backoff {backoff}, cwnd {cwnd}, unacked sacked lost \
             retrans total {counts:?}, error {error:?}"
        ));
        Ok(())
    }

    fn say(&mut self, text: String) {
        let at_ms = self.now_ms();
        self.seen.push(Seen { at_ms, text, timestamp: None, segment: None });
    }

    // What the raw end does.

    pub(super) fn send(&mut self, segment: Segment) -> Result<()> {
        let Segment { flags, seq, bytes, ack, window, urgent, options, ecn } = segment;
        let more = bytes as u32 + u32::from(flags.intersects(SYN.with(Flags::FIN)));
        let end = seq.wrapping_add(more);
        if end < FAR {
            self.sent = self.sent.max(end);
        }
        let mut header = tcp::Header::new(self.raw.port(), self.kernel.port());
        (header.seq, header.flags) = (OUR_ISN + seq, flags);
        header.ack = if flags.contains(ACK) { self.isn() + ack } else { Seq(0) };
        (header.window, header.urgent) = (window, urgent);
        header.options = Options::from_bytes(&options)?;
        let mut ip = ip::Header::new(self.raw.ip(), self.kernel.ip(), Protocol::TCP);
        ip.traffic_class = ecn;
        let mut datagram = Vec::new();
        datagram::emit_tcp(&ip, &header, &vec![FILL; bytes], &mut datagram)?;
        self.transmit(datagram)
    }

    /// An ACK without data.
    pub(super) fn ack(&mut self, seq: u32, ack: u32) -> Result<()> {
        self.send(Segment::new(ACK, seq, 0, ack))
    }

    /// An ACK with SACK blocks.
    pub(super) fn sack(&mut self, seq: u32, ack: u32, blocks: &[(u32, u32)]) -> Result<()> {
        let isn = self.isn();
        self.send(Segment::new(ACK, seq, 0, ack).sack(blocks, isn))
    }

    /// An error about a segment of the kernel's, as from a router behind the raw end.
    pub(super) fn icmp(&mut self, (kind, code): (u8, u8), word: u32, quoted: u32) -> Result<()> {
        let mut about = tcp::Header::new(self.kernel.port(), self.raw.port());
        about.seq = self.isn() + quoted;
        let ip = ip::Header::new(self.kernel.ip(), self.raw.ip(), Protocol::TCP);
        let mut body = word.to_be_bytes().to_vec();
        datagram::emit_tcp(&ip, &about, &[], &mut body)?;
        body.truncate(4 + 28);
        let mut ip = ip::Header::new(self.raw.ip(), self.kernel.ip(), Protocol(1));
        ip.dont_fragment = false;
        let mut message = Vec::new();
        Message { version: Version::V4, kind, code, body: &body }.emit(&ip, &mut message);
        let mut datagram = Vec::new();
        datagram::emit(&ip, &message, &mut datagram)?;
        self.transmit(datagram)
    }

    fn transmit(&mut self, datagram: Vec<u8>) -> Result<()> {
        self.gather(Duration::ZERO)?;
        let mut head = Head::EMPTY;
        head.push(&[0; Virtio::BYTES]);
        head.push(&self.to.0);
        head.push(&self.link.interface().mac.0);
        head.push(&[8, 0]);
        let mut refused = None;
        let frame = Outgoing::new(head, datagram);
        self.link.send(&[frame], &[], |_, error| refused = Some(error));
        refused.map_or(Ok(()), |error| Err(error).context("send a segment"))
    }

    // Time.

    fn now_ms(&self) -> f64 {
        self.began.elapsed().as_secs_f64() * 1e3
    }

    /// Notes what comes for so long. What took long before makes it shorter.
    pub(super) fn pass(&mut self, millis: u64) -> Result<()> {
        self.due_ms += millis as f64;
        loop {
            let left = self.due_ms - self.now_ms();
            if left <= 0.0 {
                return self.gather(Duration::ZERO);
            }
            self.gather(Duration::from_secs_f64(left / 1e3))?;
        }
    }

    fn gather(&mut self, wait: Duration) -> Result<()> {
        let wait = wait.try_into().context("a short time")?;
        poll(&mut [PollFd::new(&self.link, PollFlags::IN)], Some(&wait))?;
        let mut received = std::mem::take(&mut self.received);
        while self.link.receive(&mut received)? > 0 {
            for frame in received.frames() {
                self.note(frame);
            }
        }
        self.received = received;
        Ok(())
    }

    fn note(&mut self, frame: &[u8]) {
        let at = frame.get(NETWORK_AT..).unwrap_or_default();
        let Ok(datagram) = datagram::parse(at, Checksums::Trust) else { return };
        let Transport::Tcp(header) = datagram.transport else { return };
        let ours = (self.kernel, self.raw);
        let from = SocketAddr::new(datagram.ip.source, header.source_port);
        if (from, SocketAddr::new(datagram.ip.destination, header.destination_port)) != ours {
            return;
        }
        if header.flags.contains(SYN) {
            self.kernel_isn = Some(header.seq);
        }
        let isn = self.isn();
        let seq = header.seq.0.wrapping_sub(isn.0);
        let acked = header.flags.contains(ACK).then(|| header.ack.0.wrapping_sub(OUR_ISN.0));
        let bytes = datagram.payload.len();
        let mut text = format!("{:?} {seq} +{bytes}", header.flags);
        let ack = acked.unwrap_or(0);
        let _infallible = write!(
            text,
            " ack {ack} win {} urg {} ecn {}",
            header.window,
            header.urgent,
            datagram.ip.traffic_class & 3
        );
        let mut timestamp = None;
        for option in header.options.iter() {
            match option {
                TcpOption::Timestamps(Timestamps { value, echo }) => {
                    let first = *self.first_timestamp.get_or_insert(value);
                    self.last_timestamp = value;
                    timestamp = Some(value.wrapping_sub(first));
                    let _infallible = write!(text, " ecr {echo}");
                }
                TcpOption::Sack(blocks) => {
                    for block in blocks {
                        let relative = |seq: Seq| seq.0.wrapping_sub(OUR_ISN.0);
                        let (start, end) = (relative(block.start), relative(block.end));
                        let _infallible = write!(text, " sack {start}-{end}");
                    }
                }
                // Cookies of Fast Open are each kernel's own.
                TcpOption::Unknown { kind: 34, data } => {
                    let _infallible = write!(text, " cookie of {}", data.len());
                }
                TcpOption::Nop => {}
                other => {
                    let _infallible = write!(text, " {other:?}");
                }
            }
        }
        let segment = Some((header.flags, seq, bytes, ack));
        let at_ms = self.now_ms();
        self.seen.push(Seen { at_ms, text, timestamp, segment });
    }

    /// Has both ends forget the connection.
    pub(super) fn end(mut self) -> Result<()> {
        if let Some(socket) = self.socket.take() {
            sockopt::set_socket_linger(&socket, Some(Duration::ZERO))?;
        }
        self.listener = None;
        self.pass(5)
    }

    // What most scripts begin with.

    /// The raw end opens; the socket accepts.
    pub(super) fn opened(&mut self, options: &[u8]) -> Result<()> {
        self.listen(|_| Ok(()))?;
        self.send(Segment::new(SYN, 0, 0, 0).options(options))?;
        self.pass(20)?;
        ensure!(self.kernel_isn.is_some(), "no SYN came back: {:?}", self.seen);
        self.ack(1, 1)?;
        self.pass(10)?;
        self.accept()
    }

    /// The socket opens; the raw end answers.
    pub(super) fn answered(&mut self, options: &[u8]) -> Result<()> {
        self.connect(|_| Ok(()))?;
        self.pass(20)?;
        ensure!(self.kernel_isn.is_some(), "no SYN came: {:?}", self.seen);
        self.send(Segment::new(SYN.with(ACK), 0, 0, 1).options(options).window(60_000))?;
        self.pass(20)
    }
}
