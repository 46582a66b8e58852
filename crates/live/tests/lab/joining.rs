//! Frames that leave joined: the kernel that cuts them again is the judge.

use live::io::joining::{Limits, SUPER_PACKET_BYTES_MAX, join};
use live::lab::network::Names;
use live::sys::namespace::within;
use live::sys::offload;
use live::sys::packet_ring::Ring;
use live::sys::packet_socket::{Joined, Leave, Listen, Outgoing, PacketSocket, Prefix};
use sansio::{PacketId, Random};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::panic::{UnwindSafe, catch_unwind};
use std::process::Command;
use wire::ethernet::Mac;
use wire::tcp::{self, Flags, Seq};
use wire::{datagram, ip};

/// Where the network begins in a frame with its prefix.
const NETWORK_AT: usize = live::frame::NETWORK_AT;

pub(crate) fn joined_frames_arrive_as_they_came() {
    between("", |Sink { sender, ring }| compare(sender, ring));
}

/// Where frames leave, and where they arrive.
pub(crate) struct Sink<'a> {
    pub(crate) sender: &'a PacketSocket,
    pub(crate) ring: &'a mut Ring,
}

/// Has two machines joined that cut what leaves, and something done between them; `more` is a line
/// of the shell, in which `{near}` is the namespace with the device `out`.
pub(crate) fn between(more: &str, work: impl FnOnce(Sink<'_>) + Send + UnwindSafe) {
    let names = Names::new(8);
    let (near, far) = (&names.base, &names.mobile);
    let script = format!(
        "set -e
        for n in {near} {far}; do ip netns add $n; done
        ip link add out netns {near} type veth peer name in netns {far}
        ip -n {near} link set out up; ip -n {far} link set in up
        {}",
        more.replace("{near}", near)
    );
    let shell = |script: &str| {
        assert!(Command::new("sh").args(["-c", script]).status().expect("sh runs").success());
    };
    shell(&script);
    within(near, || offload::switch_off("out")).expect("offloads can be switched off");
    let sender = within(near, || {
        PacketSocket::open("out", Prefix::Virtio, Listen::Nothing, Leave::Queued(0))
    });
    let sender = sender.expect("a socket");
    let done = catch_unwind(|| {
        within(far, || {
            work(Sink { sender: &sender, ring: &mut Ring::open("in", Listen::Tcp)? });
            Ok(())
        })
    });
    shell(&format!("for n in {near} {far}; do ip netns del $n; done"));
    assert!(matches!(done, Ok(Ok(()))), "{done:?}");
}

fn compare(sender: &PacketSocket, ring: &mut Ring) {
    let (mut joined_in_all, mut largest) = (0, 0);
    for seed in 0..200 {
        let mut random = Random::new(seed, "frames");
        let frames = batch(&mut random);
        let arrived: Vec<Outgoing> = frames.iter().map(|frame| forwarded(frame)).collect();
        let mut joined: Vec<Joined> = Vec::new();
        join(&arrived, Limits { mtu: 1_500, bytes: SUPER_PACKET_BYTES_MAX }, &mut joined);
        joined_in_all += joined.len();
        largest = joined.iter().map(|joined| joined.count).fold(largest, usize::max);
        sender.send(&arrived, &joined, |index, error| panic!("seed {seed}, {index}: {error}"));
        let mut received = Vec::new();
        ring.drain(usize::MAX, |tapped| received.push(tapped.frame[10..].to_vec()));
        let sent: Vec<Vec<u8>> = frames.iter().map(|frame| frame[10..].to_vec()).collect();
        assert_eq!(received.len(), sent.len(), "seed {seed}: {joined:?}");
        for (index, (received, sent)) in received.iter().zip(&sent).enumerate() {
            assert!(received == sent, "seed {seed}, frame {index}:\n{received:02x?}\n{sent:02x?}");
        }
    }
    println!("  {joined_in_all} super-packets, of up to {largest} frames");
    assert!(joined_in_all > 500 && largest > 20, "{joined_in_all} of up to {largest}");
}

/// A frame as the daemon puts it up that bridges it.
pub(crate) fn forwarded(frame: &[u8]) -> Outgoing {
    let link = live::frame::Link::of(&frame[10..]).expect("a frame");
    let packet = live::frame::parse(frame.to_vec().into(), PacketId::FIRST).expect("valid");
    live::frame::write(&packet, live::frame::Onward::Bridged(link)).expect("it can be written")
}

/// Segments of a flow or two, which now and then differ in something.
pub(crate) fn batch(random: &mut Random) -> Vec<Vec<u8>> {
    let mut flows = [0, 1].map(|flow| Flow::new(flow, random));
    let mut frames = Vec::new();
    let mut flow = 0;
    for _ in 0..60 {
        if random.below(20) == 0 {
            flow = 1 - flow;
        }
        frames.push(flows[flow].next(random));
    }
    frames
}

/// Whose next segment is mostly what follows.
struct Flow {
    ip: ip::Header,
    tcp: tcp::Header,
    mss: usize,
    same_identification: bool,
}

impl Flow {
    fn new(number: u8, random: &mut Random) -> Flow {
        let v4 = |last| IpAddr::from(Ipv4Addr::new(10, 78, 9, last));
        let v6 = |last| IpAddr::from(Ipv6Addr::new(0xfd78, 0, 0, 0, 0, 0, 0, u16::from(last)));
        let (from, to) = match random.below(2) {
            0 => (v4(1 + number), v4(9)),
            _ => (v6(1 + number), v6(9)),
        };
        let mut header = tcp::Header::new(5_000 + u16::from(number), 80);
        // Some wrap around.
        header.seq = Seq(u32::MAX - random.below(80_000) as u32);
        header.ack = Seq(random.bits() as u32);
        header.flags = Flags::ACK;
        header.window = 500;
        if random.below(4) > 0 {
            let echo = random.bits() as u32;
            let stamps = tcp::Timestamps { value: 77, echo };
            header.options.push_timestamps(stamps).expect("there is room");
        }
        let mut ip = ip::Header::new(from, to, ip::Protocol::TCP);
        ip.identification = u16::MAX - random.below(60) as u16;
        let mss = [1, 536, 1_400, 1_428][random.below(4) as usize];
        Flow { ip, tcp: header, mss, same_identification: random.below(5) == 0 }
    }

    fn next(&mut self, random: &mut Random) -> Vec<u8> {
        let (mut length, before) = (self.mss, (self.ip, self.tcp));
        match random.below(100) {
            0 => length = 1 + random.below(self.mss as u64) as usize,
            1 => self.tcp.flags = Flags::ACK.with(Flags::PSH),
            2 => self.tcp.flags = Flags::ACK.with(Flags::FIN),
            3 => self.tcp.flags = Flags::ACK.with(Flags::CWR),
            4 => self.tcp.flags = Flags::ACK.with(Flags::ECE),
            5 => self.tcp.flags = Flags::ACK.with(Flags::AE),
            6 => (self.tcp.flags, self.tcp.urgent) = (Flags::ACK.with(Flags::URG), 1),
            7 => self.ip.hop_limit -= 1,
            8 => self.ip.traffic_class ^= 3,
            9 => self.tcp.window += 1,
            10 => self.tcp.seq += 1,
            11 => self.tcp.ack += 1,
            12 => {
                if let Some(stamps) = self.tcp.options.timestamps() {
                    let value = stamps.value + 1;
                    self.tcp.options.set_timestamps(tcp::Timestamps { value, ..stamps });
                }
            }
            13 => length = 0,
            14 => self.ip.identification = self.ip.identification.wrapping_add(5),
            15 => self.tcp.seq += u32::MAX - 4 * self.mss as u32,
            _ => {}
        }
        let mut frame = vec![0; 10];
        frame.extend(Mac([2, 0, 0, 0, 9, 9]).0);
        frame.extend(Mac([2, 0, 0, 0, 9, 1]).0);
        frame.extend(if self.ip.source.is_ipv4() { [8, 0] } else { [0x86, 0xdd] });
        assert_eq!(frame.len(), NETWORK_AT);
        let payload: Vec<u8> = (0..length).map(|_| random.below(256) as u8).collect();
        datagram::emit_tcp(&self.ip, &self.tcp, &payload, &mut frame).expect("it fits");
        self.tcp.seq += length as u32;
        (self.tcp.flags, self.tcp.urgent) = (before.1.flags, 0);
        if !self.same_identification {
            self.ip.identification = self.ip.identification.wrapping_add(1);
        }
        frame
    }
}
