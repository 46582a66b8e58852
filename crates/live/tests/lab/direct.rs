//! Three hosts joined directly, offloads on: what the daemon meets where no radio is emulated.
//! Super-packets of up to 64 KB, checksums left to devices that never complete them.

use crate::support;
use live::lab::agent::{Agent, Line};
use live::lab::network::{FIXED_HOST, MOBILE_HOST, Names};
use live::lab::transfer::{self, Passed, Place};
use live::sys::Clock;
use live::sys::namespace::within;
use live::sys::tcp_socket::Options;
use sansio::StreamId;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream, UdpSocket};
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::sync::mpsc;

/// The network; dropping it takes it down.
pub(crate) struct Direct {
    names: Names,
}

/// Whether the hosts' devices segment and complete checksums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Offloads {
    On,
    Off,
}

impl Direct {
    pub(crate) fn new(offloads: Offloads) -> Direct {
        let direct = Direct { names: Names::new(7) };
        let Names { fixed, base, mobile, .. } = &direct.names;
        let script = format!(
            "set -e
            for n in {fixed} {base} {mobile}; do ip netns add $n; ip -n $n link set lo up; done
            ip link add net0 netns {fixed} type veth peer name wired netns {base}
            ip link add net0 netns {mobile} type veth peer name radio netns {base}
            ip -n {fixed} addr add {FIXED_HOST}/24 dev net0
            ip -n {mobile} addr add {MOBILE_HOST}/24 dev net0
            ip -n {base} addr add 10.78.1.254/24 dev wired
            ip -n {base} addr add 10.78.2.254/24 dev radio
            for d in wired radio; do ip -n {base} link set $d up; done
            ip -n {fixed} link set net0 up; ip -n {mobile} link set net0 up
            ip -n {fixed} route add default via 10.78.1.254
            ip -n {mobile} route add default via 10.78.2.254
            ip netns exec {base} sysctl -qw net.ipv4.ip_forward=1"
        );
        run(&script);
        if offloads == Offloads::Off {
            for (name, device) in
                [(fixed, "net0"), (mobile, "net0"), (base, "wired"), (base, "radio")]
            {
                let off = || live::sys::offload::switch_off(device);
                live::sys::namespace::within(name, off).expect("offloads can be switched off");
            }
        }
        direct
    }

    /// Sends this many bytes down with a daemon of the scheme, if one is named; returns what the
    /// receiver got, bits per second, and the daemon's statistics.
    pub(crate) fn transfer(
        &self,
        scheme: Option<&str>,
        size: u64,
        flags: &[&str],
    ) -> (Passed, f64, serde_json::Value) {
        let start = |scheme| self.start(scheme, flags).unwrap_or_else(|error| panic!("{error:#}"));
        let agent = scheme.map(start);
        let options = Options { congestion_control: "cubic", mss: None, window_bytes: None };
        let place = |name: &str, address| Place { namespace: name.to_owned(), address };
        let sender = place(&self.names.fixed, FIXED_HOST);
        let receiver = place(&self.names.mobile, MOBILE_HOST);
        let listener = transfer::listen(&receiver, &options).expect("a listener");
        let Ok(SocketAddr::V4(to)) = listener.local_addr() else { panic!("an IPv4 listener") };
        let to = SocketAddrV4::new(MOBILE_HOST, to.port());
        let (stop, (done, _heard)) = (AtomicBool::new(false), mpsc::channel());
        let clock = Clock::starting_now();
        let (sent, received) = std::thread::scope(|scope| {
            let send = || transfer::send(&sender, to, (StreamId(0), Some(size)), &options, &stop);
            let sent = scope.spawn(send);
            let received = transfer::receive(&listener, (Some(size), None), &done, &stop);
            (sent.join().expect("no panic").expect("sent"), received.expect("received"))
        });
        let bps = received.bytes as f64 * 8.0 / clock.now().as_secs_f64();
        assert_eq!((received.bytes, received.hash), (sent.bytes, sent.hash));
        let statistics = agent.map(|agent| agent.statistics().expect("statistics"));
        (received, bps, statistics.unwrap_or_default())
    }
}

impl Direct {
    pub(crate) fn names(&self) -> &Names {
        &self.names
    }

    /// A daemon of a scheme, with these flags.
    pub(crate) fn start(&self, scheme: &str, flags: &[&str]) -> anyhow::Result<Agent> {
        let program = support::program(&[&["daemon", "--one-radio-device"], flags].concat());
        Agent::start(&program, scheme, &self.names.base, &Line::default())
    }

    /// A daemon that forwards, and the number of its nft.
    pub(crate) fn daemon(&self) -> (Agent, String) {
        let agent = self.start("plain", &[]).unwrap_or_else(|error| panic!("{error:#}"));
        let inside = Command::new("ip").args(["netns", "pids", &self.names.base]).output();
        let inside = String::from_utf8(inside.expect("ip runs").stdout).expect("numbers");
        let name = |process: &str| std::fs::read_to_string(format!("/proc/{process}/comm"));
        let nft = inside.lines().find(|process| name(process).is_ok_and(|name| name == "nft\n"));
        (agent, nft.expect("an nft holds the rules").to_owned())
    }

    /// Sends this many bytes up, within 10 s; returns how many arrived.
    pub(crate) fn upload(&self, size: usize) -> anyhow::Result<u64> {
        let Names { fixed, mobile, .. } = &self.names;
        let listener = within(fixed, || Ok(TcpListener::bind((FIXED_HOST, 0))?))?;
        let to = listener.local_addr()?;
        let mut sender = within(mobile, || Ok(TcpStream::connect(to)?))?;
        let (mut receiver, _) = listener.accept()?;
        let limit = Some(std::time::Duration::from_secs(10));
        sender.set_write_timeout(limit)?;
        receiver.set_read_timeout(limit)?;
        std::thread::scope(|scope| {
            let sent = scope.spawn(move || sender.write_all(&vec![1; size]));
            let begun = Clock::starting_now();
            let (mut received, mut chunk) = (0, vec![0; 1 << 16]);
            while received < size {
                match receiver.read(&mut chunk)? {
                    0 => anyhow::bail!("the connection ended after {received} bytes"),
                    count => received += count,
                }
                let took = begun.now().as_secs_f64();
                anyhow::ensure!(took < 10.0, "{received} bytes within {took} s");
            }
            sent.join().expect("no panic")?;
            Ok(received as u64)
        })
    }

    /// Sends a few UDP datagrams down, which the kernel forwards; returns how many arrived.
    pub(crate) fn datagrams(&self, count: usize) -> usize {
        let bound = |namespace: &str, address: Ipv4Addr| {
            let bind = || Ok(UdpSocket::bind((address, 0))?);
            live::sys::namespace::within(namespace, bind).expect("a socket")
        };
        let from = bound(&self.names.fixed, FIXED_HOST);
        let to = bound(&self.names.mobile, MOBILE_HOST);
        to.set_read_timeout(Some(std::time::Duration::from_millis(500))).expect("a timeout");
        for _ in 0..count {
            from.send_to(b"datagram", to.local_addr().expect("bound")).expect("sent");
        }
        (0..count).filter(|_| to.recv(&mut [0; 16]).is_ok()).count()
    }
}

impl Drop for Direct {
    fn drop(&mut self) {
        let Names { fixed, base, mobile, .. } = &self.names;
        run(&format!("for n in {fixed} {base} {mobile}; do ip netns del $n || true; done"));
    }
}

fn run(script: &str) {
    let status = Command::new("sh").args(["-c", script]).stdin(Stdio::null()).status();
    assert!(status.expect("sh runs").success(), "{script}");
}
