//! Two hosts with a router between them in network namespaces, and the daemon on the router.

use serde_json::Value;
use sha2::{Digest, Sha256};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Set for a test that has a `/run` of its own.
const ISOLATED: &str = "LASTHOP_TEST_ISOLATED";

/// Runs a test once more with a `/run` of its own: nobody else on this machine then sees its
/// network namespaces, and they vanish with it.
pub(crate) fn isolated(test: &str, body: fn()) {
    if std::env::var_os(ISOLATED).is_some() {
        return body();
    }
    assert!(rustix::process::geteuid().is_root(), "daemons in network namespaces need root");
    let script = "mount -t tmpfs tmpfs /run && exec \"$0\" --exact \"$1\" --nocapture";
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", script]).env(ISOLATED, "1");
    command.arg(std::env::current_exe().expect("the path of this program")).arg(test);
    let output = command.output().expect("unshare runs");
    let said =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(output.status.success() && said[0].contains("1 passed"), "{}\n{}", said[0], said[1]);
}

/// Until something is so; not for ever.
pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..1_000 {
        if is_so() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("waited in vain until {what}");
}

pub(crate) fn sh(script: &str) -> String {
    let output = Command::new("sh").args(["-ec", script]).stdin(Stdio::null()).output();
    let output = output.expect("sh runs");
    let complained = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{script}\n{complained}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// Host, router and mobile host; a folder for files. Dropping it takes all of it down.
pub(crate) struct Net {
    pub(crate) folder: PathBuf,
}

pub(crate) const FIXED: &str = "lh-d-fixed";
pub(crate) const BASE: &str = "lh-d-base";
pub(crate) const MOBILE: &str = "lh-d-mobile";

impl Net {
    pub(crate) fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("lasthop-{}-{name}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder in the temporary directory");
        sh(&format!("for n in {FIXED} {BASE} {MOBILE}; do ip netns add $n; done"));
        let net = Net { folder };
        net.attach(FIXED, "wired", 1);
        net.attach(MOBILE, "radio", 2);
        sh(&format!(
            "ip netns exec {BASE} sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1"
        ));
        net
    }

    /// Joins a host to the router by a device of this name there.
    pub(crate) fn attach(&self, host: &str, device: &str, subnet: u8) {
        sh(&format!(
            "ip link add net0 netns {host} type veth peer name {device} netns {BASE}
            ip -n {host} addr add 10.79.{subnet}.1/24 dev net0
            ip -n {host} addr add fd79:{subnet}::1/64 dev net0 nodad
            ip -n {BASE} addr add 10.79.{subnet}.254/24 dev {device}
            ip -n {BASE} addr add fd79:{subnet}::fe/64 dev {device} nodad
            ip -n {host} link set lo up; ip -n {host} link set net0 up
            ip -n {BASE} link set lo up; ip -n {BASE} link set {device} up
            ip -n {host} route add default via 10.79.{subnet}.254
            ip -n {host} route add default via fd79:{subnet}::fe"
        ));
        // The kernel takes up to a second to notice a carrier.
        let state = || sh(&format!("ip -n {BASE} -br link show dev {device}"));
        wait_until("the link is up", || state().split_whitespace().nth(1) == Some("UP"));
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The configuration, with these lines besides.
    pub(crate) fn configure(&self, lines: &str) -> PathBuf {
        let file = self.file("lasthop.toml");
        let control = self.file("control");
        let text = format!(
            "wired = \"wired\"\nradio = \"radio\"\nmobile = [\"10.79.2.0/24\", \"fd79:2::/64\"]\n\
             worth.control-share = \"0%\"\n\
             control = \"{}\"\n{lines}",
            control.display()
        );
        fs::write(&file, text).expect("written");
        file
    }

    /// A daemon on the router that has taken over. `before` is put before its command.
    pub(crate) fn daemon(&self, before: &[&str], arguments: &[&str]) -> Daemon {
        let log = self.file("log");
        let mut command = Command::new("ip");
        command.args(["netns", "exec", BASE]).args(before).arg(env!("CARGO_BIN_EXE_lasthop"));
        command.args(["daemon", "gateway", "--config"]).arg(self.file("lasthop.toml"));
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(fs::File::create(&log).expect("a file"));
        let child = command.spawn().expect("it starts");
        let mut daemon = Daemon { child, control: self.file("control"), log };
        wait_until("the daemon answers", || {
            let ended = daemon.child.try_wait().expect("it can be looked at");
            assert!(ended.is_none(), "{ended:?}: {}", daemon.log());
            daemon.try_ask("stats").is_some()
        });
        daemon
    }

    /// The tables of nft on the router.
    pub(crate) fn tables(&self) -> String {
        sh(&format!("ip netns exec {BASE} nft list tables"))
    }

    /// What the metrics server on the router says: status code and text.
    pub(crate) fn get(&self, path: &str) -> (u16, String) {
        let said = live::sys::namespace::within(BASE, || {
            let mut client = TcpStream::connect("127.0.0.1:9464")?;
            write!(client, "GET {path} HTTP/1.1\r\nHost: x\r\n\r\n")?;
            let mut said = String::new();
            client.read_to_string(&mut said)?;
            Ok(said)
        });
        let said = said.expect("it answers");
        let (head, body) = said.split_once("\r\n\r\n").expect("a head and a body");
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        (status.expect("a status code"), body.to_owned())
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        let names = [FIXED, BASE, MOBILE].join(" ");
        let script = format!("for n in {names}; do ip netns del $n; done");
        let _removed = Command::new("sh").args(["-c", &script]).status();
        let _removed = fs::remove_dir_all(&self.folder);
    }
}

/// A running daemon; dropping it kills it.
pub(crate) struct Daemon {
    pub(crate) child: Child,
    control: PathBuf,
    log: PathBuf,
}

impl Daemon {
    fn try_ask(&self, order: &str) -> Option<Value> {
        let mut stream = UnixStream::connect(&self.control).ok()?;
        writeln!(stream, "{order}").ok()?;
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).ok()?;
        serde_json::from_str(&line).ok()
    }

    pub(crate) fn ask(&self, order: &str) -> Value {
        let answer = self.try_ask(order);
        answer.unwrap_or_else(|| panic!("{order}: no answer; {}", self.log()))
    }

    /// Gives an order that it carries out.
    pub(crate) fn order(&self, order: &str) {
        let answer = self.ask(order);
        assert_eq!(answer["ok"], true, "{order}: {answer}; {}", self.log());
    }

    pub(crate) fn count(&self, path: &str) -> u64 {
        let statistics = self.ask("stats");
        let value = statistics.pointer(path).and_then(Value::as_u64);
        value.unwrap_or_else(|| panic!("{path} in {statistics}"))
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let process = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(process, signal).expect("it lives");
    }

    /// Asks it to end, and returns its exit code.
    pub(crate) fn stop(&mut self) -> Option<i32> {
        self.signal(rustix::process::Signal::TERM);
        self.child.wait().expect("it ends").code()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _killed = self.child.kill();
        let _status = self.child.wait();
    }
}

/// Sends from the fixed to the mobile host while `meanwhile` runs; both ends must agree on every
/// byte. Returns how many there were.
pub(crate) fn transfer(to: IpAddr, meanwhile: impl FnOnce()) -> u64 {
    let listener = live::sys::namespace::within(MOBILE, || Ok(TcpListener::bind((to, 0))?));
    let listener = listener.expect("a listener");
    let to = listener.local_addr().expect("bound");
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let sender = scope
            .spawn(|| live::sys::namespace::within(FIXED, || Ok(send(to, &done)?)).expect("sent"));
        let receiver = scope.spawn(|| receive(&listener).expect("received"));
        // Ends the transfer though `meanwhile` may panic.
        let end = End(&done);
        meanwhile();
        drop(end);
        let (sent, received) = (sender.join(), receiver.join());
        let (sent, received) = (sent.expect("no panic"), received.expect("no panic"));
        assert_eq!(sent, received, "bytes and their hash");
        assert!(sent.0 > 0);
        sent.0
    })
}

struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

fn send(to: SocketAddr, done: &AtomicBool) -> std::io::Result<(u64, [u8; 32])> {
    let mut stream = TcpStream::connect_timeout(&to, Duration::from_secs(5))?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    stream.set_write_timeout(Some(Duration::from_secs(10)))?;
    let (mut hash, mut bytes) = (Sha256::new(), 0_u64);
    while !done.load(Ordering::SeqCst) {
        let chunk: Vec<u8> = (bytes..bytes + CHUNK).map(|at| (at % 251) as u8).collect();
        stream.write_all(&chunk)?;
        hash.update(&chunk);
        bytes += CHUNK;
        // About 200 Mbit/s: there is work for everybody, and time.
        std::thread::sleep(Duration::from_millis(1));
    }
    stream.shutdown(std::net::Shutdown::Write)?;
    stream.read_exact(&mut [0])?;
    Ok((bytes, hash.finalize().into()))
}

fn receive(listener: &TcpListener) -> std::io::Result<(u64, [u8; 32])> {
    let mut stream = accept(listener)?;
    let (mut hash, mut bytes) = (Sha256::new(), 0);
    let mut chunk = vec![0; 1 << 16];
    loop {
        match stream.read(&mut chunk)? {
            0 => break,
            count => {
                hash.update(&chunk[..count]);
                bytes += count as u64;
            }
        }
    }
    stream.write_all(b"!")?;
    Ok((bytes, hash.finalize().into()))
}

/// A connection; not waited for for ever.
fn accept(listener: &TcpListener) -> std::io::Result<TcpStream> {
    listener.set_nonblocking(true)?;
    for _ in 0..1_000 {
        match listener.accept() {
            Ok((stream, _)) => {
                stream.set_nonblocking(false)?;
                stream.set_read_timeout(Some(Duration::from_secs(10)))?;
                return Ok(stream);
            }
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                std::thread::sleep(Duration::from_millis(10));
            }
            Err(error) => return Err(error),
        }
    }
    Err(std::io::ErrorKind::TimedOut.into())
}

const CHUNK: u64 = 1 << 15;
