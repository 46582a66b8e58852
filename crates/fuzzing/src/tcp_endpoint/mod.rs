//! Two TCP endpoints and a wire that a script plays tricks on.
//!
//! The wire loses, repeats, reorders and forges; clocks run late; the applications write, read,
//! close, abort and freeze whenever they like. [`End`] checks what each end says and delivers.
//! At the end the tricks stop, and both ends have to come to rest; if nothing was forged and no end
//! broke off, everything written must then have arrived.

mod end;

use crate::script::Script;
use end::End;
use sansio::{Deadline, Duration, FlowKey, Host, Instant, PacketId, PacketRef};
use std::collections::VecDeque;
use tcp::config::DelayedAck;
use tcp::{Config, Congestion, Reading};
use wire::tcp::{Flags, Options, Seq};

/// Steps read from a script, at most.
const STEPS_MAX: usize = 400;
/// Bytes that one end writes, at most.
const WRITTEN_MAX: u64 = 20_000;
/// Segments exchanged without a timer once the tricks stop, at most: more is a storm.
const EXCHANGE_MAX: usize = 4_000;
/// Timers after the tricks stop, at most.
const TIMERS_MAX: usize = 400;
/// Timeouts after which an end may have given up for good reason.
const TIMEOUTS_HARMLESS: u64 = 8;

/// Runs a script against two endpoints.
///
/// # Panics
/// If an invariant breaks.
pub fn tcp_endpoint(bytes: &[u8]) {
    let mut script = Script::new(bytes);
    let mut world = World::new(&mut script);
    for _ in 0..STEPS_MAX {
        if script.is_over() {
            break;
        }
        world.step(&mut script);
    }
    world.come_to_rest();
}

/// Two ends, and the segments between them.
struct World {
    now: Instant,
    ends: [End; 2],
    /// Sent by the end of this index, not arrived.
    wire: VecDeque<(usize, PacketRef)>,
    /// The last segment that each end sent: the start of every forgery.
    last: [Option<PacketRef>; 2],
    /// Nothing was forged, and no application broke off.
    is_fair: bool,
    forged: u64,
}

impl World {
    fn new(script: &mut Script<'_>) -> Self {
        let flow = FlowKey {
            source: Host { address: [10, 0, 0, 1].into(), port: 40_000 },
            destination: Host { address: [10, 0, 0, 2].into(), port: 80 },
        };
        let isn = |script: &mut Script<'_>| {
            let number = script.byte();
            Seq(if number < 128 {
                u32::from(number) << 24
            } else {
                u32::from(number).wrapping_neg()
            })
        };
        let client = (config(script), isn(script));
        let server = (config(script), isn(script));
        World {
            now: Instant::from_nanos(0),
            ends: [End::client(client, flow), End::server(server, flow.reversed())],
            wire: VecDeque::new(),
            last: [None, None],
            is_fair: true,
            forged: 0,
        }
    }

    fn step(&mut self, script: &mut Script<'_>) {
        let verb = script.byte();
        let from = usize::from(verb >> 7);
        match verb & 0x0f {
            0..=2 => self.arrive(0),
            3 => self.arrive(usize::from(script.byte())),
            4 => {
                self.wire.pop_front();
            }
            5 => {
                if let Some(front) = self.wire.front().cloned() {
                    self.wire.push_back(front);
                }
            }
            6 | 7 => self.next_timer(),
            8 => {
                // Time passes and nobody looks: timers may fire late.
                self.now += Duration::from_millis(u64::from(script.byte()));
                if verb & 0x40 != 0 {
                    self.fire();
                }
            }
            9 | 10 => self.write(from, script.word()),
            11 => self.call(from, script.byte()),
            12 => {
                let hours = Duration::from_secs(3_600) * u64::from(script.byte());
                self.ends[from].move_to_another_clock(hours, self.now);
            }
            13 => {
                let count = script.word();
                self.ends[from].read(count.into(), self.now);
            }
            _ => self.forge(from, script),
        }
        self.collect();
    }

    /// One segment of the wire arrives.
    fn arrive(&mut self, index: usize) {
        let index = index % self.wire.len().max(1);
        if let Some((from, packet)) = self.wire.remove(index) {
            self.ends[1 - from].arrive(packet, self.now);
        }
    }

    fn write(&mut self, end: usize, count: u16) {
        let left = WRITTEN_MAX - self.ends[end].written;
        let count = u64::from(count & 0x3fff).min(left);
        self.ends[end].write(count as u32, self.now);
    }

    fn call(&mut self, end: usize, verb: u8) {
        let now = self.now;
        match verb % 8 {
            0..=3 => self.ends[end].open(now),
            4..=6 => self.is_fair &= self.ends[end].close(now),
            _ => {
                self.is_fair = false;
                self.ends[end].abort(now);
            }
        }
    }

    /// A segment like the last one of `from`, with numbers of somebody else's choice.
    fn forge(&mut self, from: usize, script: &mut Script<'_>) {
        let Some(model) = &self.last[from] else { return };
        let Some(mut header) = model.as_tcp().copied() else { return };
        let what = script.byte();
        let near = |number: Seq, script: &mut Script<'_>| match what & 0x80 {
            0 => number + i32::from(script.word() as i16) as u32,
            _ => Seq(script.double_word()),
        };
        if what & 1 != 0 {
            header.seq = near(header.seq, script);
        }
        if what & 2 != 0 {
            header.ack = near(header.ack, script);
        }
        if what & 4 != 0 {
            header.flags = Flags(script.word() & 0x1ff);
        }
        if what & 8 != 0 {
            header.window = script.word();
        }
        if what & 16 != 0 {
            let count = usize::from(script.byte()) % (Options::BYTES_MAX + 1);
            header.options = Options::from_bytes(script.bytes(count)).unwrap_or_default();
        }
        let length = if what & 32 != 0 { u32::from(script.word() & 0x0fff) } else { 0 };
        let form = if what & 64 != 0 { end::Form::Bytes } else { end::Form::Name };
        self.forged += 1;
        self.is_fair = false;
        let id = PacketId((u64::MAX - self.forged).try_into().unwrap_or(PacketId::FIRST.0));
        let packet = model.rewrite(id, model.cause, |copy| {
            let first = header.sequence_length(0) - u32::from(header.flags.contains(Flags::FIN));
            copy.payload = end::stream(u64::from((header.seq + first).0), length, form);
            copy.transport = sansio::Transport::Tcp(header);
        });
        self.ends[1 - from].arrive(packet.into(), self.now);
    }

    fn next_deadline(&self) -> Option<Deadline> {
        Deadline::earlier(self.ends[0].next_deadline(), self.ends[1].next_deadline())
    }

    /// Time goes on to the next deadline.
    fn next_timer(&mut self) {
        if let Some(deadline) = self.next_deadline() {
            self.now = self.now.max(deadline.at);
        }
        self.fire();
    }

    fn fire(&mut self) {
        for end in &mut self.ends {
            end.fire(self.now);
        }
    }

    fn collect(&mut self) {
        for (from, end) in self.ends.iter_mut().enumerate() {
            for packet in end.sent() {
                self.last[from] = Some(packet.clone());
                self.wire.push_back((from, packet));
            }
        }
    }

    fn come_to_rest(&mut self) {
        let timeouts = self.ends.iter().map(|end| end.endpoint.statistics().timeouts).max();
        let may_give_up = timeouts.is_some_and(|timeouts| timeouts > TIMEOUTS_HARMLESS);
        self.run_fairly();
        if !self.is_fair || may_give_up || !self.ends.iter().all(End::has_met_peer) {
            return;
        }
        for end in &mut self.ends {
            end.close(self.now);
        }
        self.collect();
        self.run_fairly();
        let [client, server] = &self.ends;
        assert!(self.next_deadline().is_none(), "the connection ends");
        assert_eq!(server.delivered, client.written, "all that the client wrote arrived");
        assert_eq!(client.delivered, server.written, "all that the server wrote arrived");
    }

    /// Everything arrives, in order and at once; readers read; time goes from timer to timer.
    fn run_fairly(&mut self) {
        for _ in 0..TIMERS_MAX {
            for exchanged in 0.. {
                assert!(exchanged < EXCHANGE_MAX, "a storm of segments");
                for end in &mut self.ends {
                    end.read(u64::MAX, self.now);
                }
                self.collect();
                if self.wire.is_empty() {
                    break;
                }
                self.arrive(0);
                self.collect();
            }
            if self.next_deadline().is_none() {
                return;
            }
            self.next_timer();
            self.collect();
        }
        assert!(!self.is_fair, "two fair ends come to rest");
    }
}

fn config(script: &mut Script<'_>) -> Config {
    let congestion = script.one_of(Congestion::ALL);
    let preset = script.one_of([Config::bsd_1995, Config::modern, Config::ns2]);
    let config = preset(congestion);
    let bits = script.byte();
    let toggled = |bit: u8, normal: bool| normal ^ (bits & bit != 0);
    Config {
        mss: if bits & 1 != 0 { script.one_of([64, 100, 536, 1460]) } else { config.mss },
        receive_buffer_bytes: match bits & 2 {
            0 => config.receive_buffer_bytes,
            _ => script.one_of([600, 2_048, 65_535, 300_000]),
        },
        send_buffer_bytes: if bits & 4 != 0 { 3_000 } else { config.send_buffer_bytes },
        window_scale: if bits & 8 != 0 { None } else { config.window_scale },
        timestamps: toggled(16, config.timestamps),
        sack: toggled(32, config.sack),
        delayed_ack: if bits & 64 != 0 { DelayedAck::None } else { config.delayed_ack },
        reading: if bits & 128 != 0 { Reading::Manual } else { Reading::Immediate },
        ..config
    }
}
