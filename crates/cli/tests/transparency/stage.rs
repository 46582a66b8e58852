//! What an exchange is played on: sockets at both hosts, and a log of what their programs saw.
//!
//! A socket belongs to the namespace it was made in, whichever thread uses it; so one thread plays
//! both hosts and the order of their calls is the script's.

use crate::net::{Family, Host, Net};
use anyhow::{Context, Result, bail, ensure};
use live::sys::socket_option;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{AddressFamily, Protocol, SocketFlags, SocketType};
use std::cell::RefCell;
use std::fmt::Write as _;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// No call waits longer.
const WAIT_MAX: Duration = Duration::from_secs(20);

/// A network, and what was seen in it.
pub(crate) struct Stage<'a> {
    pub(crate) net: &'a Net,
    pub(crate) family: Family,
    log: RefCell<Vec<String>>,
}

/// A connection.
#[derive(Debug)]
pub(crate) struct Pair {
    pub(crate) fixed: TcpStream,
    pub(crate) mobile: TcpStream,
}

impl Pair {
    pub(crate) fn at(&self, host: Host) -> &TcpStream {
        if host == Host::Fixed { &self.fixed } else { &self.mobile }
    }
}

/// What this kernel does not have: the exchange cannot be played.
#[derive(Debug)]
pub(crate) struct Lacking(pub(crate) String);

impl std::fmt::Display for Lacking {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl std::error::Error for Lacking {}

/// The result, or that the kernel lacks `what` if the error says so.
pub(crate) fn or_lacking<T>(result: Result<T>, what: &str) -> Result<T> {
    result.map_err(|error| {
        let code = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::raw_os_error);
        let unknown = [Errno::NOPROTOOPT, Errno::PROTONOSUPPORT, Errno::NOENT, Errno::INVAL];
        match code {
            Some(code) if unknown.iter().any(|one| one.raw_os_error() == code) => {
                Lacking(what.to_owned()).into()
            }
            _ => error,
        }
    })
}

impl<'a> Stage<'a> {
    pub(crate) fn new(net: &'a Net, family: Family) -> Stage<'a> {
        Stage { net, family, log: RefCell::default() }
    }

    /// Notes something that has to be the same with the daemon.
    pub(crate) fn say(&self, what: impl Into<String>) {
        self.log.borrow_mut().push(what.into());
    }

    pub(crate) fn into_log(self) -> Vec<String> {
        self.log.into_inner()
    }

    /// A TCP socket at a host.
    pub(crate) fn socket(&self, host: Host) -> Result<OwnedFd> {
        self.socket_of(host, rustix::net::ipproto::TCP)
    }

    /// The same, of a protocol.
    pub(crate) fn socket_of(&self, host: Host, protocol: Protocol) -> Result<OwnedFd> {
        let family = match self.family {
            Family::V4 => AddressFamily::INET,
            Family::V6 => AddressFamily::INET6,
        };
        // A daemon that another thread starts shall not hold it open.
        let (kind, flags) = (SocketType::STREAM, SocketFlags::CLOEXEC);
        let open = || rustix::net::socket_with(family, kind, flags, Some(protocol));
        self.net.at(host, || open().map_err(|error| std::io::Error::from(error).into()))
    }

    /// Starts this program at a host, as one of its helpers; what it says is piped.
    pub(crate) fn helper(&self, host: Host, arguments: &[&str]) -> Result<Child> {
        self.net.at(host, || {
            let mut command = Command::new(std::env::current_exe()?);
            command.args(arguments).stdout(Stdio::piped()).spawn().context("start a helper")
        })
    }

    /// An address of a host.
    pub(crate) fn address(&self, host: Host, port: u16) -> SocketAddr {
        SocketAddr::new(Net::address(host, self.family), port)
    }

    /// A socket that listens at a host; `prepare` sees it before.
    pub(crate) fn listen(
        &self,
        host: Host,
        port: u16,
        prepare: impl Fn(&OwnedFd) -> Result<()>,
    ) -> Result<TcpListener> {
        let socket = self.socket(host)?;
        self.listen_on(host, port, socket, prepare)
    }

    fn listen_on(
        &self,
        host: Host,
        port: u16,
        socket: OwnedFd,
        prepare: impl Fn(&OwnedFd) -> Result<()>,
    ) -> Result<TcpListener> {
        rustix::net::sockopt::set_socket_reuseaddr(&socket, true)?;
        prepare(&socket)?;
        rustix::net::bind(&socket, &self.address(host, port)).context("bind")?;
        rustix::net::listen(&socket, 256).context("listen")?;
        Ok(TcpListener::from(socket))
    }

    /// A connection that `opener` opens; `prepare` sees both sockets before.
    pub(crate) fn connect(
        &self,
        opener: Host,
        prepare: impl Fn(&OwnedFd) -> Result<()>,
    ) -> Result<Pair> {
        self.connect_of(opener, rustix::net::ipproto::TCP, prepare)
    }

    /// The same, of a protocol.
    pub(crate) fn connect_of(
        &self,
        opener: Host,
        protocol: Protocol,
        prepare: impl Fn(&OwnedFd) -> Result<()>,
    ) -> Result<Pair> {
        let acceptor = opener.other();
        let socket = self.socket_of(acceptor, protocol)?;
        let listener = self.listen_on(acceptor, 0, socket, &prepare)?;
        let socket = self.socket_of(opener, protocol)?;
        prepare(&socket)?;
        self.connect_to(&listener, opener, socket)
    }

    /// A connection from a socket to a listener.
    pub(crate) fn connect_to(
        &self,
        listener: &TcpListener,
        opener: Host,
        socket: OwnedFd,
    ) -> Result<Pair> {
        let opened = TcpStream::from(socket);
        bound(&opened)?;
        let to = listener.local_addr().context("look up a port")?;
        rustix::net::connect(&opened, &to).context("connect")?;
        self.accept(listener, opener, opened)
    }

    /// The accepted end of a connection that was opened.
    pub(crate) fn accept(
        &self,
        listener: &TcpListener,
        opener: Host,
        opened: TcpStream,
    ) -> Result<Pair> {
        let accepted = accept(listener)?;
        Ok(match opener {
            Host::Fixed => Pair { fixed: opened, mobile: accepted },
            Host::Mobile => Pair { fixed: accepted, mobile: opened },
        })
    }

    /// An ordinary connection that the fixed host opens.
    pub(crate) fn pair(&self) -> Result<Pair> {
        self.connect(Host::Fixed, |_| Ok(()))
    }

    /// Sends bytes and reads them at the other end, to the last one, compared one by one.
    pub(crate) fn bulk(&self, pair: &Pair, from: Host, bytes: usize) -> Result<()> {
        let (sender, receiver) = (pair.at(from), pair.at(from.other()));
        std::thread::scope(|scope| {
            let sent = scope.spawn(|| write_pattern(sender, 0, bytes));
            let read = read_pattern(receiver, 0, bytes);
            sent.join().expect("the sender does not panic").context("send")?;
            read.with_context(|| format!("receive what {from:?} sends"))
        })?;
        self.say(format!("{from:?} sent {bytes} bytes, all arrived"));
        Ok(())
    }

    /// Both ways at once.
    pub(crate) fn bulk_both(&self, pair: &Pair, bytes: usize) -> Result<()> {
        std::thread::scope(|scope| {
            let down = scope.spawn(|| {
                let received = read_pattern(&pair.mobile, 0, bytes);
                received.context("receive at the mobile host")
            });
            let up = scope.spawn(|| read_pattern(&pair.fixed, 0, bytes).context("receive"));
            let sent = scope.spawn(|| write_pattern(&pair.fixed, 0, bytes));
            write_pattern(&pair.mobile, 0, bytes).context("send from the mobile host")?;
            sent.join().expect("no panic").context("send from the fixed host")?;
            down.join().expect("no panic")?;
            up.join().expect("no panic")
        })?;
        self.say(format!("{bytes} bytes each way, all arrived"));
        Ok(())
    }

    /// Ends both streams, the fixed host's first, and notes that both ends see it.
    pub(crate) fn close(&self, pair: Pair) -> Result<()> {
        for host in Host::BOTH {
            pair.at(host).shutdown(Shutdown::Write).context("end a stream")?;
            self.say(format!("{:?} reads: {}", host.other(), outcome(pair.at(host.other()))));
        }
        Ok(())
    }

    /// Notes what both kernels say of the connection that the path must not change.
    pub(crate) fn facts(&self, pair: &Pair) -> Result<()> {
        for host in Host::BOTH {
            self.say(format!("{host:?}: {}", facts(pair.at(host))?));
        }
        Ok(())
    }
}

/// The accepted end of a connection.
pub(crate) fn accept(listener: &TcpListener) -> Result<TcpStream> {
    let descriptor = rustix::event::PollFd::new(listener, rustix::event::PollFlags::IN);
    let wait = WAIT_MAX.try_into().expect("a short time");
    ensure!(rustix::event::poll(&mut [descriptor], Some(&wait))? == 1, "nobody connected");
    let (accepted, _) = listener.accept().context("accept")?;
    bound(&accepted)?;
    Ok(accepted)
}

/// Bounds every call on a socket.
pub(crate) fn bound(stream: &TcpStream) -> Result<()> {
    stream.set_read_timeout(Some(WAIT_MAX)).context("bound a receive")?;
    stream.set_write_timeout(Some(WAIT_MAX)).context("bound a send")
}

/// What a read of one byte meets.
pub(crate) fn outcome(mut stream: &TcpStream) -> String {
    match stream.read(&mut [0]) {
        Ok(0) => "end of stream".to_owned(),
        Ok(_) => "a byte".to_owned(),
        Err(error) => format!("{:?}", error.kind()),
    }
}

/// The bytes of every stream: this block again and again. Its length is prime.
fn block() -> &'static [u8] {
    static BLOCK: std::sync::OnceLock<Vec<u8>> = std::sync::OnceLock::new();
    BLOCK.get_or_init(|| {
        let mut state = 0x9e37_79b9_u32;
        let next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        };
        std::iter::repeat_with(next).take(65_521).collect()
    })
}

/// The first bytes of the pattern.
pub(crate) fn bytes(count: usize) -> Vec<u8> {
    block().iter().copied().cycle().take(count).collect()
}

/// The bytes of a stream from `at` on, as far as the block goes.
fn pattern(at: usize, bytes: usize) -> &'static [u8] {
    let block = block();
    let start = at % block.len();
    &block[start..block.len().min(start + bytes)]
}

/// Writes the bytes `at..at + bytes` of the pattern.
pub(crate) fn write_pattern(mut stream: &TcpStream, at: usize, bytes: usize) -> Result<()> {
    let mut done = 0;
    while done < bytes {
        done += stream.write(pattern(at + done, bytes - done)).context("write")?;
    }
    Ok(())
}

/// Reads the bytes `at..at + bytes` of the pattern and sees that they are these.
pub(crate) fn read_pattern(stream: &TcpStream, at: usize, bytes: usize) -> Result<()> {
    let mut done = 0;
    while done < bytes {
        let read = read_some(stream, at + done, bytes - done);
        done += read.with_context(|| format!("after {done} of {bytes} bytes"))?;
    }
    Ok(())
}

/// Reads what there is of the pattern's bytes from `at` on, up to so many; waits for the first.
pub(crate) fn read_some(mut stream: &TcpStream, at: usize, most: usize) -> Result<usize> {
    let mut buffer = vec![0; most.min(64 << 10)];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => bail!("the stream ends"),
            Ok(count) => {
                check_pattern(at, &buffer[..count])?;
                return Ok(count);
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error).context("read"),
        }
    }
}

/// Sees that these are the pattern's bytes from `at` on.
pub(crate) fn check_pattern(at: usize, bytes: &[u8]) -> Result<()> {
    let mut done = 0;
    while done < bytes.len() {
        let expected = pattern(at + done, bytes.len() - done);
        let got = &bytes[done..done + expected.len()];
        if let Some(wrong) = got.iter().zip(expected).position(|(got, expected)| got != expected) {
            bail!("byte {} of the stream is not the one that was sent", at + done + wrong);
        }
        done += expected.len();
    }
    Ok(())
}

/// IPPROTO_TCP of linux/in.h.
pub(crate) const TCP: i32 = 6;
/// TCP_INFO of linux/tcp.h.
const TCP_INFO: i32 = 11;

/// struct tcp_info of linux/tcp.h, as far as the kernel fills it in.
pub(crate) fn info(stream: &TcpStream) -> Result<Vec<u8>> {
    socket_option::get(stream, TCP, TCP_INFO, (&[], 512))
}

/// What must not change: state, options, scales, segment sizes, path MTU, what ECN has seen.
fn facts(stream: &TcpStream) -> Result<String> {
    let info = info(stream)?;
    let number = |at: usize| {
        let bytes = info.get(at..at + 4).and_then(|bytes| bytes.first_chunk());
        bytes.map_or(0, |bytes| u32::from_ne_bytes(*bytes))
    };
    let mut text = String::new();
    // Offsets in struct tcp_info.
    let (state, options, scales) = (info[0], info[5], info[6]);
    write!(text, "state {state}, options {options:#x}, scales {scales:#x}")?;
    for (name, at) in [("snd_mss", 16), ("pmtu", 60), ("advmss", 84)] {
        write!(text, ", {name} {}", number(at))?;
    }
    // tcpi_delivered_ce: its number depends on timing, that there are any does not.
    write!(text, ", CE seen {}", number(196) > 0)?;
    Ok(text)
}
