//! A bridge of the kernel's between two hosts, and a daemon on its two ports.

use crate::support;
use live::lab::agent::{Agent, Line};
use live::lab::network::Names;
use live::sys::namespace::within;
use live::sys::offload;
use live::sys::packet_socket::{Head, Leave, Listen, Outgoing, PacketSocket, Prefix};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use sansio::StreamId;
use sha2::{Digest, Sha256};
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use wire::checksum::{Change, update_word};

const FIXED: [&str; 2] = ["10.78.5.1", "fd78::1"];
const MOBILE: [&str; 2] = ["10.78.5.2", "fd78::2"];
pub(crate) const FIXED_MAC: [u8; 6] = [2, 0, 0, 0, 5, 1];
pub(crate) const MOBILE_MAC: [u8; 6] = [2, 0, 0, 0, 5, 2];

/// The network; dropping it takes it down.
pub(crate) struct Bridge {
    names: Names,
}

impl Bridge {
    /// Hosts without offloads, so that each side of the bridge shows whole frames; a bridge that
    /// remembers a station for 5 s.
    pub(crate) fn new() -> Bridge {
        let bridge = Bridge { names: Names::new(9) };
        let Names { fixed, base, mobile, .. } = &bridge.names;
        let mut script = format!(
            "set -e
            for n in {fixed} {base} {mobile}; do ip netns add $n; ip -n $n link set lo up; done
            # Link-local addresses would be looked for when they come, at any time.
            for n in {fixed} {base} {mobile}; do
                ip netns exec $n sysctl -qw net.ipv6.conf.default.addr_gen_mode=1
            done
            ip link add net0 netns {fixed} address 02:00:00:00:05:01 mtu 9000 type veth \
                peer name wired netns {base}
            ip link add net0 netns {mobile} address 02:00:00:00:05:02 mtu 9000 type veth \
                peer name radio netns {base}
            ip -n {base} link add br0 type bridge ageing_time 500
            for d in wired radio; do ip -n {base} link set $d mtu 9000 master br0 up; done
            ip -n {base} link set br0 up
            for n in {fixed} {mobile}; do
                ip -n $n link set net0 up
            done\n"
        );
        for (name, addresses) in [(fixed, FIXED), (mobile, MOBILE)] {
            let [v4, v6] = addresses;
            script += &format!(
                "ip -n {name} addr add {v4}/24 dev net0
                ip -n {name} addr add {v6}/64 dev net0 nodad\n"
            );
        }
        run(&script);
        for (name, device) in [(fixed, "net0"), (mobile, "net0"), (base, "wired"), (base, "radio")]
        {
            within(name, || offload::switch_off(device)).expect("offloads can be switched off");
        }
        bridge
    }

    pub(crate) fn names(&self) -> &Names {
        &self.names
    }

    fn daemon(&self, scheme: &str, more: &[&str]) -> Agent {
        let mobile = MOBILE.join(",");
        let arguments =
            [&["daemon", "--one-radio-device", "--bridge", "--mobile", &mobile], more].concat();
        let program = support::program(&arguments);
        let agent = Agent::start(&program, scheme, &self.names.base, &Line::default());
        agent.unwrap_or_else(|error| panic!("{error:#}"))
    }

    /// Sends this many bytes from the fixed host to the mobile host; they arrive intact.
    fn transfer(&self, to: &str, bytes: u64) {
        self.transfer_while(to, bytes, || {});
    }

    /// The same, while something is done.
    fn transfer_while(&self, to: &str, bytes: u64, act: impl FnOnce()) {
        let to: IpAddr = to.parse().expect("an address");
        let listener = within(&self.names.mobile, || Ok(TcpListener::bind((to, 0))?));
        let listener = listener.expect("a listener");
        let to = SocketAddr::new(to, listener.local_addr().expect("bound").port());
        let fixed = self.names.fixed.clone();
        let sent = std::thread::spawn(move || within(&fixed, || Ok(send(to, bytes)?)));
        let received = std::thread::spawn(move || receive(&listener));
        act();
        let sent = sent.join().expect("no panic").expect("sent");
        assert_eq!(received.join().expect("no panic").expect("received"), sent);
    }
}

/// Connects, sends so many bytes, and returns their hash.
fn send(to: SocketAddr, bytes: u64) -> std::io::Result<[u8; 32]> {
    let mut socket = TcpStream::connect_timeout(&to, Duration::from_secs(5))?;
    let mut hash = Sha256::new();
    let chunk: Vec<u8> = (0..1 << 16).map(|offset| StreamId(9).pattern(offset)).collect();
    let mut left = bytes as usize;
    while left > 0 {
        let part = &chunk[..left.min(chunk.len())];
        socket.write_all(part)?;
        hash.update(part);
        left -= part.len();
    }
    Ok(hash.finalize().into())
}

/// Accepts, and returns the hash of what comes; nobody waits for more than 20 s.
fn receive(listener: &TcpListener) -> std::io::Result<[u8; 32]> {
    let (mut socket, _) = listener.accept()?;
    socket.set_read_timeout(Some(Duration::from_secs(20)))?;
    let mut hash = Sha256::new();
    let mut chunk = vec![0; 1 << 16];
    loop {
        match socket.read(&mut chunk)? {
            0 => return Ok(hash.finalize().into()),
            count => hash.update(&chunk[..count]),
        }
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        let Names { fixed, base, mobile, .. } = &self.names;
        run(&format!("for n in {fixed} {base} {mobile}; do ip netns del $n || true; done"));
    }
}

pub(crate) fn run(script: &str) {
    let status = Command::new("sh").args(["-c", script]).stdin(Stdio::null()).status();
    assert!(status.expect("sh runs").success(), "{script}");
}

/// What tcpdump sees of one direction of a host's device.
pub(crate) struct Capture {
    tcpdump: Child,
    file: PathBuf,
}

impl Capture {
    pub(crate) fn begin(namespace: &str, direction: &str) -> Capture {
        let name = format!("lasthop-{}-{namespace}-{direction}.pcap", std::process::id());
        let file = std::env::temp_dir().join(name);
        let start = || {
            let mut command = Command::new("tcpdump");
            command.args(["-i", "net0", "-n", "-B", "16384", "-Z", "root", "-Q", direction]);
            // Otherwise the kernel keeps what it has captured for a second, which SIGINT cuts off.
            command.args(["-U", "--immediate-mode"]);
            command.arg("-w").arg(&file).stderr(Stdio::piped());
            Ok(command.spawn()?)
        };
        let mut tcpdump = within(namespace, start).expect("tcpdump runs: apt-get install tcpdump");
        // It says that it listens.
        let mut byte = [0];
        let told = tcpdump.stderr.as_mut().expect("a pipe").read(&mut byte);
        assert_eq!(told.expect("it says something"), 1);
        std::thread::sleep(Duration::from_millis(200));
        Capture { tcpdump, file }
    }

    /// The frames of one sender, in order.
    pub(crate) fn end(mut self, source: [u8; 6]) -> Vec<Vec<u8>> {
        let id = self.tcpdump.id().to_string();
        assert!(Command::new("kill").args(["-INT", &id]).status().expect("kill runs").success());
        let mut said = String::new();
        let mut output = self.tcpdump.stderr.take().expect("a pipe");
        output.read_to_string(&mut said).expect("text");
        self.tcpdump.wait().expect("it ends");
        assert!(said.contains("\n0 packets dropped by kernel"), "{said}");
        let bytes = std::fs::read(&self.file).expect("a capture");
        std::fs::remove_file(&self.file).expect("removed");
        // A classic pcap file: 24 bytes, then records with the captured length at 8 of 16 bytes.
        let (mut at, mut frames) = (24, Vec::new());
        while let Some(record) = bytes.get(at..at + 16) {
            let length = u32::from_ne_bytes(record[8..12].try_into().expect("four bytes")) as usize;
            frames.push(bytes[at + 16..at + 16 + length].to_vec());
            at += 16 + length;
        }
        frames.retain(|frame| frame[6..12] == source);
        // What hosts say of their own accord, perhaps before all captures run: neighbour discovery
        // for their own addresses, router solicitations, multicast listener reports.
        let is_own_accord = |frame: &Vec<u8>| {
            frame[..2] == [0x33, 0x33] && frame[12..14] == [0x86, 0xdd] && frame[22..24] == [0; 2]
                || frame[..6] == [0x33, 0x33, 0, 0, 0, 0x16]
                || frame[..6] == [0x33, 0x33, 0, 0, 0, 2]
        };
        frames.retain(|frame| !is_own_accord(frame));
        frames
    }
}

/// Frames of every kind, from one host to the other.
fn odd_frames(from: [u8; 6], to: [u8; 6], addresses: (&str, &str)) -> Vec<Vec<u8>> {
    let frame = |to: [u8; 6], rest: &[&[u8]]| [&to[..], &from, &rest.concat()].concat();
    let source: std::net::Ipv4Addr = addresses.0.parse().expect("an address");
    let target: std::net::Ipv4Addr = addresses.1.parse().expect("an address");
    let mut tcp = Vec::new();
    let ip = wire::ip::Header::new(source.into(), target.into(), wire::ip::Protocol::TCP);
    let mut header = wire::tcp::Header::new(7_000, 7_000);
    (header.flags, header.window) = (wire::tcp::Flags::ACK, 100);
    wire::datagram::emit_tcp(&ip, &header, b"tagged", &mut tcp).expect("it fits");
    let mut fragment = tcp.clone();
    // "More fragments" in place of "don't fragment"; the checksum follows (RFC 1624).
    let word = |at: usize| u16::from_be_bytes([tcp[at], tcp[at + 1]]);
    let checksum = update_word(word(10), Change { old: word(6), new: 0x2000 });
    fragment[6..8].copy_from_slice(&[0x20, 0]);
    fragment[10..12].copy_from_slice(&checksum.to_be_bytes());
    vec![
        frame(to, &[&[0x88, 0xb5], &[7; 8_000]]),
        frame(to, &[&[0x81, 0, 0, 5, 8, 0], &tcp]),
        frame(to, &[&[0x81, 0, 0, 6, 8, 0], &tcp]),
        frame(to, &[&[0x81, 0, 0xa0, 0, 8, 0], &tcp]),
        frame(to, &[&[0x88, 0xa8, 0, 9, 0x81, 0, 0, 6, 8, 0], &tcp]),
        frame(to, &[&[8, 0], &fragment]),
        frame([0x01, 0x80, 0xc2, 0, 0, 0], &[&[0, 38, 0x42, 0x42, 3], &[0; 43]]),
        frame([0xff; 6], &[&[0x88, 0xb6], &[1; 46]]),
        frame([0x33, 0x33, 0, 0, 0, 9], &[&[0x88, 0xb6], &[2; 46]]),
    ]
}

/// Everything two hosts may say to each other but for the transfers.
fn chatter(bridge: &Bridge) {
    let Names { fixed, mobile, .. } = &bridge.names;
    for (name, macs, addresses) in [
        (fixed, (FIXED_MAC, MOBILE_MAC), (FIXED[0], MOBILE[0])),
        (mobile, (MOBILE_MAC, FIXED_MAC), (MOBILE[0], FIXED[0])),
    ] {
        // ARP and neighbour discovery, fragments, both versions, multicast; frames with tags.
        run(&format!(
            "ip -n {name} neigh flush dev net0; ip -n {name} route replace 239.0.0.0/8 dev net0"
        ));
        let sent = within(name, || {
            let socket = UdpSocket::bind((addresses.0, 0))?;
            socket.send_to(b"to a group", "239.1.2.3:9")?;
            socket.send_to(&[5; 20_000], (addresses.1, 9))?;
            let socket = UdpSocket::bind("[::]:0")?;
            socket.send_to(&[6; 20_000], (if name == fixed { MOBILE[1] } else { FIXED[1] }, 9))?;
            let socket =
                PacketSocket::open("net0", Prefix::Nothing, Listen::Nothing, Leave::Queued(0))?;
            let frames = odd_frames(macs.0, macs.1, addresses).into_iter();
            let frames: Vec<Outgoing> =
                frames.map(|frame| Outgoing::new(Head::EMPTY, frame)).collect();
            socket.send(&frames, &[], |index, error| panic!("frame {index}: {error}"));
            Ok(())
        });
        sent.expect("sent");
    }
}

/// What leaves one host arrives at the other, frame by frame and byte by byte: with the daemon
/// taking TCP as without it.
pub(crate) fn frames_pass_a_bridge_unchanged() {
    // Each processor has a queue of its own for what crosses a veth device: on several, frames
    // overtake each other before they reach the daemon, and behind it.
    on_one_processor(unchanged);
}

/// Runs something, and all that it starts, on one processor.
fn on_one_processor(work: impl FnOnce()) {
    let all = sched_getaffinity(None).expect("the processors");
    let mut one = CpuSet::new();
    one.set((0..CpuSet::MAX_CPU).find(|number| all.is_set(*number)).expect("a processor"));
    sched_setaffinity(None, &one).expect("bound");
    let outcome = catch_unwind(AssertUnwindSafe(work));
    sched_setaffinity(None, &all).expect("free");
    outcome.unwrap_or_else(|panic| resume_unwind(panic));
}

fn unchanged() {
    let bridge = Bridge::new();
    let Names { fixed, mobile, .. } = bridge.names.clone();
    let daemon = bridge.daemon("plain", &[]);
    let captures = [
        (Capture::begin(&fixed, "out"), Capture::begin(&mobile, "in"), FIXED_MAC),
        (Capture::begin(&mobile, "out"), Capture::begin(&fixed, "in"), MOBILE_MAC),
    ];
    chatter(&bridge);
    for to in MOBILE {
        bridge.transfer(to, 300_000);
    }
    std::thread::sleep(Duration::from_millis(300));
    let taken = daemon.statistics().expect("statistics")["packets"].clone();
    assert!(taken["taken"].as_u64() > Some(40), "the daemon took the transfers: {taken}");
    assert_eq!((&taken["filtered"], &taken["refused"]), (&0.into(), &0.into()), "{taken}");
    for (out, arriving, source) in captures {
        let (sent, received) = (out.end(source), arriving.end(source));
        println!("  {} frames from {source:02x?}", sent.len());
        assert!(sent.len() > 30, "{} frames", sent.len());
        // What the daemon takes; the rest goes the kernel's way, fragments too.
        let tcp = |frames: &[Vec<u8>]| -> Vec<Vec<u8>> {
            let is_tcp = |frame: &&Vec<u8>| {
                matches!(frame[12..14], [8, 0])
                    && frame[23] == 6
                    && [frame[20] & 0x3f, frame[21]] == [0, 0]
                    || matches!(frame[12..14], [0x86, 0xdd]) && frame[20] == 6
            };
            frames.iter().filter(is_tcp).cloned().collect()
        };
        let sorted = |mut frames: Vec<Vec<u8>>| {
            frames.sort();
            frames
        };
        let (left, came) = (tcp(&sent), tcp(&received));
        let other = left.iter().zip(&came).position(|(left, came)| left != came);
        let (sent, received) = (sorted(sent), sorted(received));
        let missing: Vec<_> = sent.iter().filter(|frame| !received.contains(frame)).collect();
        assert!(missing.is_empty(), "{missing:02x?}");
        assert!(sent == received, "nothing more than once: {} {}", sent.len(), received.len());
        if let Some(at) = other {
            let place = came.iter().position(|frame| *frame == left[at]);
            panic!("TCP in order: number {at} came as number {place:?}: {:02x?}", left[at]);
        }
    }
}

pub(crate) fn transfers_over_a_bridge_survive_the_daemon() {
    survive(&[]);
}

/// Transfers over a bridge whose daemon, with these flags, is killed or begins on the way.
pub(crate) fn survive(flags: &[&str]) {
    let bridge = Bridge::new();
    for to in MOBILE {
        let agent = bridge.daemon("snoop-modern", flags);
        bridge.transfer_while(to, 60_000_000, || {
            std::thread::sleep(Duration::from_millis(150));
            let statistics = agent.statistics().expect("statistics");
            assert!(statistics["scheme"]["cached"].as_u64() > Some(100), "{statistics}");
            agent.kill();
        });
    }
    // And with one that comes in the middle.
    bridge.transfer_while(MOBILE[0], 60_000_000, || {
        std::thread::sleep(Duration::from_millis(50));
        drop(bridge.daemon("snoop-modern", flags));
    });
}

/// The bridge's own table knows the stations whose frames it never sees.
pub(crate) fn a_bridge_remembers_stations_whose_frames_are_taken() {
    let bridge = Bridge::new();
    let Names { fixed, base, mobile, .. } = &bridge.names;
    run(&format!(
        "for n in {fixed} {mobile}; do
            ip netns exec $n sysctl -qw net.ipv6.conf.net0.disable_ipv6=1
        done
        ip -n {fixed} neigh replace {} lladdr 02:00:00:00:05:02 dev net0 nud permanent
        ip -n {mobile} neigh replace {} lladdr 02:00:00:00:05:01 dev net0 nud permanent",
        MOBILE[0], FIXED[0]
    ));
    // Only TCP, all of it taken, for longer than the bridge remembers.
    let known = || {
        let output = Command::new("ip")
            .args(["netns", "exec", base, "bridge", "fdb", "show", "br", "br0"])
            .output();
        let text = String::from_utf8(output.expect("bridge runs").stdout).expect("text");
        let ports = [("02:00:00:00:05:01", "wired"), ("02:00:00:00:05:02", "radio")];
        ports.map(|(mac, port)| text.contains(&format!("{mac} dev {port} master br0")))
    };
    let mut looks = 0..150;
    while known() != [false; 2] {
        assert!(looks.next().is_some(), "forgotten some time after 5 s");
        std::thread::sleep(Duration::from_millis(100));
    }
    let _daemon = bridge.daemon("plain", &[]);
    let to: SocketAddr = (MOBILE[0].parse::<IpAddr>().expect("an address"), 7_001).into();
    let listener = within(mobile, || Ok(TcpListener::bind(to)?)).expect("a listener");
    let mut socket = within(fixed, || Ok(TcpStream::connect(to)?)).expect("connected");
    let (mut other, _) = listener.accept().expect("accepted");
    for _ in 0..80 {
        socket.write_all(b"x").expect("sent");
        other.read_exact(&mut [0]).expect("received");
        assert_eq!(known(), [true; 2]);
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Under a bridge of three the daemon leaves everything to the kernel, and helps again when it is
/// one of two.
pub(crate) fn a_third_port_is_waited_out() {
    let bridge = Bridge::new();
    let agent = bridge.daemon("plain", &[]);
    let base = &bridge.names.base;
    let takes = |wanted: bool| {
        let tables = || {
            let arguments = ["netns", "exec", base, "nft", "list", "tables"];
            let output = Command::new("ip").args(arguments).output().expect("ip runs");
            String::from_utf8_lossy(&output.stdout).contains("netdev lasthop")
        };
        let problem = || agent.statistics().expect("it answers")["problem"].to_string();
        for _ in 0..500 {
            if tables() == wanted && problem().contains("third port") != wanted {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("taken from the kernel: not {wanted}; {}", problem());
    };
    takes(true);
    run(&format!("ip -n {base} link add third master br0 type veth peer name other"));
    takes(false);
    bridge.transfer(MOBILE[0], 1_000_000);
    run(&format!("ip -n {base} link del third"));
    takes(true);
    bridge.transfer(MOBILE[0], 1_000_000);
}
