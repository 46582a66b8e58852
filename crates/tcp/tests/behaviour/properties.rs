//! Whatever the path does: exactly the bytes sent arrive, every run ends, and freezing changes
//! nothing.

use crate::pair::{End, Fate, Log, Pair, bulk, flow, ms};
use bytes::Bytes;
use proptest::prelude::*;
use sansio::{
    Duration, Engine, Input, Instant, Packet, PacketId, PacketRef, Payload, Random, Side, StreamId,
};
use tcp::{Config, Congestion, DelayedAck, Endpoint, Reading, State};
use wire::ip::{self, Protocol};
use wire::tcp::{Flags, Header, SackBlock, Seq, Timestamps};

/// A path that loses, repeats and delays at random.
#[derive(Clone, Debug)]
pub(crate) struct Faults {
    pub(crate) seed: u64,
    pub(crate) loss: f64,
    pub(crate) twice: f64,
    pub(crate) late: f64,
}

impl Faults {
    pub(crate) fn judge(&self) -> impl FnMut(End, &Packet) -> Fate + use<> {
        let Faults { seed, loss, twice, late } = self.clone();
        let mut random = Random::new(seed, "faults");
        move |_, _| {
            let drawn = random.unit();
            if drawn < loss {
                Fate::Lost
            } else if drawn < loss + twice {
                Fate::Twice
            } else if drawn < loss + twice + late {
                Fate::Late(Duration::from_nanos(random.below(30_000_000)))
            } else {
                Fate::Arrives
            }
        }
    }
}

pub(crate) fn faults() -> impl Strategy<Value = Faults> {
    (any::<u64>(), 0.0..0.2, 0.0..0.1, 0.0..0.3).prop_map(|(seed, loss, twice, late)| Faults {
        seed,
        loss,
        twice,
        late,
    })
}

pub(crate) fn config() -> impl Strategy<Value = Config> {
    let congestion = prop::sample::select(Congestion::ALL.to_vec());
    let options = (any::<bool>(), any::<bool>(), any::<bool>(), prop::option::of(0u8..15));
    (congestion, 0u8..3, options, 1u32..100_000, 10u16..1500).prop_map(
        |(congestion, preset, (timestamps, sack, limited_transmit, window_scale), buffer, mss)| {
            let config = match preset {
                0 => Config::bsd_1995(congestion),
                1 => Config::modern(congestion),
                _ => Config { delayed_ack: DelayedAck::None, ..Config::modern(congestion) },
            };
            Config {
                timestamps,
                // Without it there is no BBR.
                sack: sack || congestion == Congestion::Bbr,
                limited_transmit,
                window_scale,
                mss,
                receive_buffer_bytes: buffer,
                timeouts_max: 100,
                time_wait: ms(100),
                ..config
            }
        },
    )
}

/// Sequence numbers, many of them just below the wrap (MOD-18).
pub(crate) fn isn() -> impl Strategy<Value = Seq> {
    prop_oneof![any::<u32>(), u32::MAX - 20_000..=u32::MAX].prop_map(Seq)
}

const FOREVER: Instant = Instant::from_nanos(3_000_000_000_000_000);

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 100,
        failure_persistence: None,
        ..Default::default()
    })]

    #[test]
    fn any_pattern_delivers_exactly_the_bytes_sent_and_every_run_ends(
        client in config(), server in config(), client_isn in isn(), server_isn in isn(),
        faults in faults(), down in 0u32..40_000, up in 0u32..40_000,
    ) {
        let mut pair = Pair::with_isn(client, server, client_isn, server_isn);
        pair.open();
        pair.write(bulk(down));
        pair.server_write(bulk(up));
        let mut judge = faults.judge();
        while !pair.client.state().is_synchronized() || !pair.server.state().is_synchronized() {
            let soon = pair.now + ms(50);
            pair.run_until(soon, &mut judge);
        }
        pair.close_both();
        pair.run_until(FOREVER, &mut judge);
        prop_assert_eq!(pair.next_at(), None, "the run ended");
        prop_assert_eq!(Pair::delivered(&pair.server_log), u64::from(down));
        prop_assert_eq!(Pair::delivered(&pair.client_log), u64::from(up));
        prop_assert_eq!(pair.client.state(), State::Closed);
        prop_assert_eq!(pair.server.state(), State::Closed);
    }

    #[test]
    fn freezing_and_restoring_at_any_instants_changes_nothing(
        client in config(), server in config(), faults in faults(), length in 1u32..60_000,
        every in 1usize..20,
    ) {
        let run = |freezes: bool| {
            let mut pair = Pair::with_isn(client, server, Seq(u32::MAX - 9_000), Seq(7));
            pair.open();
            pair.write(bulk(length));
            let mut judge = faults.judge();
            for step in 0..2_000 {
                pair.collect(&mut judge);
                let Some(next) = pair.next_at() else { break };
                pair.now = pair.now.max(next);
                pair.step();
                if freezes && step % every == 0 {
                    pair.freeze_and_restore();
                }
                if step == 300 {
                    pair.close_both();
                }
            }
            (pair.wire, pair.client_log.delivered, pair.server_log.delivered)
        };
        prop_assert_eq!(run(false), run(true));
    }

    #[test]
    fn a_frozen_connection_goes_on_at_another_time_as_if_nothing_had_been(
        client in config(), faults in faults(), length in 1u32..40_000, at in 1u32..200,
        away in 0u64..1_000_000_000_000,
    ) {
        let run = |pause: Duration| {
            let mut pair = Pair::connected(client, client);
            pair.write(bulk(length));
            let mut judge = faults.judge();
            for _ in 0..at {
                pair.collect(&mut judge);
                let Some(next) = pair.next_at() else { break };
                pair.now = pair.now.max(next);
                pair.step();
            }
            pair.collect(&mut judge);
            pair.rest(pause);
            let begun = pair.wire.len();
            pair.run_until(FOREVER, &mut judge);
            let after = pair.wire[begun..].iter().map(|(at, end, packet, _)| {
                (at.since(Instant::ZERO + pause), *end, packet.clone())
            });
            (after.collect::<Vec<_>>(), pair.server_log.delivered)
        };
        prop_assert_eq!(run(Duration::ZERO), run(Duration::from_nanos(away)));
    }

    #[test]
    fn tiny_and_zero_windows_deliver_every_byte(
        config in config(), faults in faults(), buffer in 1u32..3_000, length in 0u32..5_000,
        bite in 1u64..2_000, pause in 1u64..20_000,
    ) {
        let server = Config { reading: Reading::Manual, receive_buffer_bytes: buffer, ..config };
        let mut pair = Pair::connected(config, server);
        pair.write(bulk(length));
        let mut judge = faults.judge();
        let mut read = 0;
        while read < u64::from(length) {
            let end = pair.now + ms(pause);
            pair.run_until(end, &mut judge);
            let piece = pair.server.peek(0, bite as u32);
            if !piece.is_empty() {
                let length = piece.len();
                prop_assert_eq!(
                    piece,
                    Payload::Virtual { stream: StreamId(7), offset: read, length }
                );
                read += u64::from(length);
                pair.server.consume(u64::from(length), &mut pair.server_log, pair.now);
            }
            prop_assert!(pair.server.readable() <= u64::from(buffer));
            prop_assert!(pair.now < FOREVER, "the run ends; {} of {} read", read, length);
        }
        prop_assert_eq!(pair.server.readable(), 0);
    }
}

fn flags() -> impl Strategy<Value = Flags> {
    prop_oneof![
        4 => Just(Flags::ACK),
        1 => Just(Flags::ACK.with(Flags::FIN)),
        1 => Just(Flags::SYN),
        1 => Just(Flags::SYN.with(Flags::ACK)),
        1 => (0u16..0x200).prop_map(Flags),
    ]
}

/// A segment near the numbers in use, with any flags, options and payload; its payload is zeros,
/// which the stream's pattern is not.
#[derive(Clone, Debug)]
struct Hostile {
    seq: i32,
    ack: i32,
    flags: Flags,
    window: u16,
    length: u16,
    timestamps: Option<(u32, u32)>,
    blocks: Vec<(i32, i32)>,
    wait: u64,
}

fn hostile() -> impl Strategy<Value = Hostile> {
    let near = || prop_oneof![-3_000i32..70_000, any::<i32>(), Just(1), Just(0)];
    let options =
        (prop::option::of(any::<(u32, u32)>()), prop::collection::vec((near(), near()), 0..4));
    let numbers = (near(), near(), any::<u16>(), 0u16..3_000, 0u64..3_000_000_000);
    (numbers, flags(), options).prop_map(
        |((seq, ack, window, length, wait), flags, (timestamps, blocks))| Hostile {
            seq,
            ack,
            flags,
            window,
            length,
            timestamps,
            blocks,
            wait,
        },
    )
}

impl Hostile {
    fn packet(&self, theirs: Seq, ours: Seq) -> PacketRef {
        let from = flow().reversed();
        let mut header = Header::new(from.source.port, from.destination.port);
        header.seq = theirs + self.seq as u32;
        header.ack = ours + self.ack as u32;
        header.flags = self.flags;
        header.window = self.window;
        if let Some((value, echo)) = self.timestamps {
            header.options.push_timestamps(Timestamps { value, echo }).expect("12 of 40 bytes");
        }
        let blocks: Vec<_> = self
            .blocks
            .iter()
            .map(|(start, end)| SackBlock { start: ours + *start as u32, end: ours + *end as u32 })
            .collect();
        header.options.push_sack(&blocks);
        let ip = ip::Header::new(from.source.address, from.destination.address, Protocol::TCP);
        let payload = Payload::Bytes(Bytes::from(vec![0; usize::from(self.length)]));
        PacketRef::new(Packet::tcp(PacketId::FIRST, ip, header, payload))
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

    /// Segments by somebody who guesses: no panic, bounded memory, bounded answers.
    #[test]
    fn hostile_segments_do_no_harm(
        config in config(),
        segments in prop::collection::vec(hostile(), 1..80),
        listens in any::<bool>(),
    ) {
        let (ours, theirs) = (Seq(u32::MAX - 500), Seq(u32::MAX - 2_000));
        let mut log = Log::default();
        let mut now = Instant::ZERO;
        let mut end = if listens {
            Endpoint::server(config, flow(), ours)
        } else {
            Endpoint::client(config, flow(), ours)
        };
        end.open(&mut log, now);
        end.write(bulk(100_000), &mut log, now);
        for (index, segment) in segments.iter().enumerate() {
            now += Duration::from_nanos(segment.wait);
            let packet = segment.packet(theirs, ours);
            end.handle(Input::Arrival { side: Side::NETWORK, packet }, &mut log, now);
            end.handle(Input::Timer, &mut log, now);
            if index == 40 {
                end.close(&mut log, now);
            }
            prop_assert!(end.next_deadline().is_none_or(|deadline| deadline.at > now));
        }
        let delivered: u64 = log.delivered.iter().map(|payload| u64::from(payload.len())).sum();
        let offered: u64 = segments.iter().map(|segment| u64::from(segment.length)).sum();
        prop_assert!(delivered <= offered);
    }
}
