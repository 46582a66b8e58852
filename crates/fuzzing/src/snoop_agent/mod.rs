//! A Snoop agent between two hosts that say anything, over a link that does anything.
//!
//! A script mixes plausible traffic of a few flows with forged headers, foreign packets, queue
//! drops, late timers and notices. [`Station`] checks after each input: every packet passes once or
//! a rule says why not; nothing is acknowledged toward the fixed host that the mobile host has not
//! acknowledged; what is re-sent is what the sender sent; the caches and the number of flows stay
//! within their limits; timers move on.

mod station;

use crate::script::Script;
use sansio::{Duration, Host, Notice, Packet, Payload, Side, Transport};
use schemes::snoop::Config;
use schemes::snoop::config::{Departures, Mark};
use station::{STREAM, Station};
use std::num::NonZeroU16;
use wire::ip::{self, Protocol};
use wire::tcp::{Flags, Header, Options, SackBlock, Seq, Timestamps};

/// Steps read from a script, at most.
const STEPS_MAX: usize = 600;
/// Timers after the last step.
const TIMERS_AT_END: usize = 60;

/// Runs a script against an agent, *strict* or *modern*.
///
/// # Panics
/// If an invariant breaks.
pub fn snoop_agent(bytes: &[u8]) {
    let mut script = Script::new(bytes);
    let mut world = World {
        station: Station::new(config(&mut script)),
        first: script.one_of([1_000, 0, 0xffff_e000, 0x7fff_f000]),
    };
    for _ in 0..STEPS_MAX {
        if script.is_over() {
            break;
        }
        world.step(&mut script);
    }
    for _ in 0..TIMERS_AT_END {
        world.station.next_timer();
    }
    world.station.check_memory();
}

fn config(script: &mut Script<'_>) -> Config {
    let bits = script.byte();
    let mut config = if bits & 1 == 0 { Config::strict() } else { Config::modern() };
    if bits & 2 != 0 {
        (config.cache_segments_max, config.cache_bytes_max) = (12, 6_000);
    }
    if bits & 4 != 0 {
        config.cache_bytes_total_max = 9_000;
    }
    if bits & 8 != 0 {
        config.flows_max = 2;
    }
    if bits & 16 != 0 {
        config.departures = Departures::AssumedWhenSent;
    }
    if bits & 32 != 0 {
        config.mark = Mark::Uncached;
    }
    if bits & 64 != 0 {
        config.dupack_threshold = 3;
    }
    if bits & 128 != 0 {
        config.retransmissions_max = 2;
    }
    config
}

struct World {
    station: Station,
    /// Where the numbers of every flow begin.
    first: u32,
}

/// Who sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum From {
    Fixed,
    Mobile,
}

impl World {
    fn step(&mut self, script: &mut Script<'_>) {
        let verb = script.byte();
        let flow = (verb >> 4) & 3;
        match verb & 0x0f {
            0..=2 => self.data(flow, script),
            3..=6 => self.ack(flow, script),
            7 => self.station.depart(usize::from(script.byte() & 0x0f) + 1),
            8 => self.station.lose(usize::from(script.byte())),
            9 => self.station.next_timer(),
            10 => {
                let unit = if verb & 0x80 == 0 { 1_000 } else { 200_000 };
                let span = Duration::from_micros(u64::from(script.byte()) * unit);
                self.station.wait(span, verb & 0x40 != 0);
            }
            11 => self.forge(flow, script),
            12 => self.raw(flow, script),
            13 => self.foreign(script),
            14 => {
                let notice = script.one_of([
                    Notice::LinkDown(Side::RADIO),
                    Notice::LinkUp(Side::RADIO),
                    Notice::LinkDown(Side::WIRED),
                    Notice::Forget,
                    Notice::LinkMayBeUp(Side::RADIO),
                    Notice::MobileDown([10, 0, 1, 2].into()),
                    Notice::MobileUp([10, 0, 1, 2].into()),
                ]);
                self.station.notice(notice);
            }
            _ => self.station.verdict(script.byte() & 1 == 0),
        }
    }

    fn seq(&self, relative: u32) -> Seq {
        Seq(self.first.wrapping_add(relative))
    }

    /// Data from the fixed host, in sequence numbers that meet.
    fn data(&mut self, flow: u8, script: &mut Script<'_>) {
        let mut header = header(From::Fixed, flow);
        header.seq = self.seq(u32::from(script.byte()) * 125);
        let shape = script.byte();
        let length = u32::from(shape & 0x0f) * 125;
        if shape & 0x10 != 0 {
            header.flags = header.flags.with(Flags::FIN);
        }
        if shape & 0x20 != 0 {
            let (value, echo) = (script.byte().into(), script.byte().into());
            // There is room: the list is empty.
            let _ = header.options.push_timestamps(Timestamps { value, echo });
        }
        let segment_bytes = if shape & 0x40 != 0 { u16::from(script.byte()) * 25 } else { 0 };
        self.send(From::Fixed, header, length, segment_bytes);
    }

    /// An ACK from the mobile host, with SACK blocks or data or neither.
    fn ack(&mut self, flow: u8, script: &mut Script<'_>) {
        let mut header = header(From::Mobile, flow);
        header.ack = self.seq(u32::from(script.byte()) * 125);
        let shape = script.byte();
        header.window = 1_000 + u16::from(shape & 1);
        if shape & 2 != 0 {
            let (value, echo) = (script.byte().into(), script.byte().into());
            let _ = header.options.push_timestamps(Timestamps { value, echo });
        }
        let mut blocks = [SackBlock::default(); 3];
        let count = usize::from(shape >> 2 & 3);
        for block in &mut blocks[..count] {
            block.start = self.seq(u32::from(script.byte()) * 125);
            block.end = block.start + u32::from(script.byte() & 0x1f) * 125;
        }
        header.options.push_sack(&blocks[..count]);
        if shape & 0x10 != 0 {
            header.flags = Flags(script.word() & 0x1ff);
        }
        let length = if shape & 0x20 != 0 { 50 } else { 0 };
        self.send(From::Mobile, header, length, 0);
    }

    /// Any numbers, flags and options, whether they can be walked or not.
    fn forge(&mut self, flow: u8, script: &mut Script<'_>) {
        let shape = script.byte();
        let from = if shape & 1 == 0 { From::Fixed } else { From::Mobile };
        let number = |script: &mut Script<'_>| match shape & 2 {
            0 => Seq(script.double_word()),
            _ => self.seq(script.word().into()),
        };
        let (seq, ack) = (number(script), number(script));
        let flags = Flags(script.word() & 0x0fff);
        let count = usize::from(script.byte()) % (Options::BYTES_MAX + 1);
        let options = Options::from_bytes(script.bytes(count)).unwrap_or_default();
        let header = Header { seq, ack, flags, options, ..header(from, flow) };
        let length = if shape & 4 != 0 { script.word().into() } else { 0 };
        let segment_bytes = if shape & 8 != 0 { script.word() } else { 0 };
        self.send(from, header, length, segment_bytes);
    }

    /// A header out of raw bytes, as far as the parser takes them.
    fn raw(&mut self, flow: u8, script: &mut Script<'_>) {
        let shape = script.byte();
        let from = if shape & 1 == 0 { From::Fixed } else { From::Mobile };
        let bytes = script.bytes(20 + usize::from(shape >> 2 & 0x0f) * 4);
        let Ok((parsed, _)) = Header::parse(bytes) else { return };
        let known = header(from, flow);
        let ports = (known.source_port, known.destination_port);
        let parsed = match shape & 2 {
            0 => parsed,
            _ => Header { source_port: ports.0, destination_port: ports.1, ..parsed },
        };
        let length = u32::from(script.byte()) * 8;
        self.send(from, parsed, length, 0);
    }

    /// What is not TCP, or arrives where nothing should.
    fn foreign(&mut self, script: &mut Script<'_>) {
        let side = Side(u16::from(script.byte() % 4));
        let mut packet = self.packet(From::Fixed, header(From::Fixed, 0), u32::from(script.byte()));
        match script.byte() % 3 {
            0 => {
                packet.ip.protocol = Protocol::UDP;
                packet.transport = Transport::Udp { source_port: 53, destination_port: 53 };
            }
            1 => {
                packet.ip.protocol = Protocol::ESP;
                packet.transport = Transport::Opaque;
            }
            _ => {}
        }
        self.station.arrive(side, packet);
    }

    fn send(&mut self, from: From, header: Header, length: u32, segment_bytes: u16) {
        let mut packet = self.packet(from, header, length);
        packet.segment_bytes = NonZeroU16::new(segment_bytes);
        let side = if from == From::Fixed { Side::WIRED } else { Side::RADIO };
        self.station.arrive(side, packet);
    }

    /// The byte at sequence number S is named by S, so that wrong ones show.
    fn packet(&mut self, from: From, header: Header, length: u32) -> Packet {
        let (fixed, mobile) = ([10, 0, 0, 1].into(), [10, 0, 1, 2].into());
        let ip = match from {
            From::Fixed => ip::Header::new(fixed, mobile, Protocol::TCP),
            From::Mobile => ip::Header::new(mobile, fixed, Protocol::TCP),
        };
        let payload = Payload::Virtual { stream: STREAM, offset: header.seq.0.into(), length };
        Packet::tcp(self.station.new_id(), ip, header, payload)
    }
}

/// The header of a plain ACK of a flow.
fn header(from: From, flow: u8) -> Header {
    let fixed = Host { address: [10, 0, 0, 1].into(), port: 80 };
    let mobile = Host { address: [10, 0, 1, 2].into(), port: 5_000 + u16::from(flow) };
    let (source, destination) = match from {
        From::Fixed => (fixed, mobile),
        From::Mobile => (mobile, fixed),
    };
    let plain = Header::new(source.port, destination.port);
    Header { flags: Flags::ACK, window: 1_000, ..plain }
}
