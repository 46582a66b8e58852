//! What every packet has to obey that reaches a host, checked while an exchange is played.
//!
//! ```text
//!   fixed host ─▶ net0 ┄┄ wired ─▶ box ─▶ radio ┄┄ net0 ─▶ mobile host
//!               arrived   sent             sent    arrived
//! ```
//!
//! Packet sockets see arriving frames only, so what a host sent is seen where it enters the box.
//! What arrived is read before what was sent: all that an arriving ACK can tell of has then been
//! read before it is judged.

use crate::net::{Host, Net};
use anyhow::{Context, Result, ensure};
use live::frame::{NETWORK_AT, Virtio};
use live::sys::namespace;
use live::sys::packet_socket::{Leave, Listen, PacketSocket, Prefix, Received};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use wire::datagram::{self, Checksums, Transport};
use wire::tcp::{self, Flags, Seq};

/// A running watch.
pub(crate) struct Watch {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<Vec<String>>>,
}

/// A packet that left the box has arrived by then.
const ON_ITS_WAY: Duration = Duration::from_millis(50);
/// Between two looks at the sockets.
const LOOK_EVERY: Duration = Duration::from_millis(1);

impl Watch {
    /// Begins; returns when it sees every packet.
    pub(crate) fn start(net: &Net) -> Result<Watch> {
        let open = |namespace: &str, device: &str| {
            let open = || PacketSocket::open(device, Prefix::Virtio, Listen::Tcp, Leave::Direct);
            namespace::within(namespace, open)
        };
        let sent = [(Host::Fixed, "wired"), (Host::Mobile, "radio")];
        let sent = sent.map(|(host, device)| (host, open(net.base(), device)));
        // What passed the box before that arrives before its arrival is judged.
        std::thread::sleep(ON_ITS_WAY);
        let arrived = [(Host::Fixed, "net0"), (Host::Mobile, "net0")];
        let arrived = arrived.map(|(host, device)| (host, open(net.namespace(host), device)));
        let all = |sockets: [(Host, Result<PacketSocket>); 2]| -> Result<Vec<_>> {
            sockets.into_iter().map(|(host, socket)| Ok((host, socket?))).collect()
        };
        let (arrived, sent) = (all(arrived)?, all(sent)?);
        let stop = Arc::new(AtomicBool::new(false));
        let told = stop.clone();
        let thread = std::thread::spawn(move || look(&arrived, &sent, &told));
        Ok(Watch { stop, thread })
    }

    /// Ends; returns what was wrong.
    pub(crate) fn finish(self) -> Result<Vec<String>> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().expect("the watch does not panic")
    }
}

fn look(
    arrived: &[(Host, PacketSocket)],
    sent: &[(Host, PacketSocket)],
    stop: &AtomicBool,
) -> Result<Vec<String>> {
    let (mut rules, mut received) = (Rules::default(), Received::new());
    loop {
        // Read before the last look, so that nothing is missed.
        let last = stop.load(Ordering::Relaxed);
        let mut waiting = Vec::new();
        for (host, socket) in arrived {
            while socket.receive(&mut received).context("watch arrivals")? > 0 {
                waiting.extend(received.frames().map(|frame| (*host, frame.to_vec())));
            }
        }
        for (host, socket) in sent {
            while socket.receive(&mut received).context("watch what is sent")? > 0 {
                received.frames().for_each(|frame| rules.on_sent(*host, frame));
            }
        }
        for (host, frame) in waiting {
            rules.on_arrived(host, &frame);
        }
        if last {
            break;
        }
        std::thread::sleep(LOOK_EVERY);
    }
    let lost: u64 = arrived.iter().chain(sent).map(|(_, socket)| socket.overruns()).sum();
    ensure!(lost == 0, "the watch missed {lost} packets: the machine is too busy to judge");
    Ok(rules.broken)
}

/// Source, destination and their ports.
type Way = (IpAddr, u16, IpAddr, u16);

/// What is known so far, and what was wrong.
#[derive(Debug, Default)]
pub(crate) struct Rules {
    /// The highest ACKs that left a host on a way: of the connection begun last, and of the one
    /// before, whose packets may still arrive.
    acked: BTreeMap<Way, [Option<Seq>; 2]>,
    /// The sequence number of the last SYN.
    begun: BTreeMap<Way, Seq>,
    /// SYN and RST packets that left: way, sequence number, flags, options.
    marks: BTreeSet<(Way, u32, u16, Vec<u8>)>,
    pub(crate) broken: Vec<String>,
}

impl Rules {
    /// A frame that left `host`.
    pub(crate) fn on_sent(&mut self, _: Host, frame: &[u8]) {
        let Some((way, header)) = read(frame) else { return };
        let repeated = || self.begun.get(&way) == Some(&header.seq);
        if header.flags.contains(Flags::SYN) && !repeated() {
            self.begun.insert(way, header.seq);
            let [last, _] = self.acked.remove(&way).unwrap_or_default();
            self.acked.insert(way, [None, last]);
        }
        if header.flags.intersects(Flags::SYN.with(Flags::RST)) {
            self.marks.insert(mark(way, &header));
        }
        if header.flags.contains(Flags::ACK) {
            let [highest, _] = self.acked.entry(way).or_default();
            *highest = Some(highest.map_or(header.ack, |known| known.max(header.ack)));
        }
    }

    /// A frame that reached `host`.
    pub(crate) fn on_arrived(&mut self, host: Host, frame: &[u8]) {
        let Some((way, header)) = read(frame) else { return };
        if header.flags.intersects(Flags::SYN.with(Flags::RST))
            && !self.marks.contains(&mark(way, &header))
        {
            self.broken.push(format!("{host:?} got a SYN or RST nobody sent: {way:?} {header:?}"));
        }
        if !header.flags.contains(Flags::ACK) || header.flags.contains(Flags::RST) {
            return;
        }
        // Of a connection that is older than the watch nothing is known.
        let Some(known) = self.acked.get(&way) else { return };
        if !known.iter().flatten().any(|highest| header.ack.at_or_before(*highest)) {
            self.broken.push(format!(
                "{host:?} got an ACK of {}, above {known:?} (SNOOP-GEN-2): {way:?}",
                header.ack.0
            ));
        }
    }
}

fn mark(way: Way, header: &tcp::Header) -> (Way, u32, u16, Vec<u8>) {
    (way, header.seq.0, header.flags.0, header.options.as_bytes().to_vec())
}

fn read(frame: &[u8]) -> Option<(Way, tcp::Header)> {
    let datagram = datagram::parse(frame.get(NETWORK_AT..)?, Checksums::Trust).ok()?;
    let Transport::Tcp(header) = datagram.transport else { return None };
    let (from, to) = (datagram.ip.source, datagram.ip.destination);
    Some(((from, header.source_port, to, header.destination_port), header))
}

/// The watch itself finds what it is there to find.
pub(crate) fn the_watch_finds_a_forged_ack_and_a_changed_syn() {
    let frame = |flags: Flags, ack: u32| {
        let mut header = tcp::Header::new(80, 4_000);
        (header.flags, header.ack) = (flags, Seq(ack));
        let (from, to) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
        let ip = wire::ip::Header::new(from, to, wire::ip::Protocol::TCP);
        let mut bytes = vec![0; NETWORK_AT];
        assert_eq!(NETWORK_AT, Virtio::BYTES + 14);
        datagram::emit_tcp(&ip, &header, &[], &mut bytes).expect("it fits");
        bytes
    };
    let mut rules = Rules::default();
    let syn = frame(Flags::SYN, 0);
    rules.on_sent(Host::Fixed, &syn);
    rules.on_arrived(Host::Mobile, &syn);
    rules.on_sent(Host::Fixed, &frame(Flags::ACK, u32::MAX));
    rules.on_arrived(Host::Mobile, &frame(Flags::ACK, u32::MAX));
    rules.on_arrived(Host::Mobile, &frame(Flags::ACK, u32::MAX - 5));
    assert!(rules.broken.is_empty(), "{:?}", rules.broken);
    rules.on_arrived(Host::Mobile, &frame(Flags::ACK, 3));
    rules.on_arrived(Host::Mobile, &frame(Flags::SYN.with(Flags::ECE), 0));
    rules.on_arrived(Host::Mobile, &frame(Flags::RST, 0));
    assert_eq!(rules.broken.len(), 3, "{:?}", rules.broken);
}
