//! What holds whatever happens, in any order.

use crate::drill::{Drill, MOBILE, Segment, ack, data, describe, ms};
use proptest::prelude::*;
use sansio::{Cause, Notice, PacketId, Side, Signal};
use schemes::window::{mobile, station};
use std::collections::BTreeMap;

/// Something that happens to a base station; `port` names one of three flows.
#[derive(Clone, Debug)]
enum Step {
    Data { through_tunnel: bool, port: u16 },
    Ack { port: u16, window: u16 },
    Notice(u8),
    Time(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let port = 1u16..4;
    let step = prop_oneof![
        4 => (any::<bool>(), port.clone())
            .prop_map(|(through_tunnel, port)| Step::Data { through_tunnel, port }),
        3 => (port, prop_oneof![Just(0u16), Just(50)])
            .prop_map(|(port, window)| Step::Ack { port, window }),
        2 => (0u8..7).prop_map(Step::Notice),
        1 => prop_oneof![0u64..60, Just(31_000)].prop_map(Step::Time),
    ];
    prop::collection::vec(step, 1..120)
}

fn notice(number: u8) -> Notice {
    match number {
        0 | 1 => Notice::Registered(MOBILE),
        2 => Notice::Moved(MOBILE),
        3 => Notice::BindingExpired(MOBILE),
        4 => Notice::Deregistered(MOBILE),
        5 => Notice::TunnelOpened(MOBILE),
        _ => Notice::Forget,
    }
}

proptest! {
    /// WINC-BS: each packet of data leaves once, or is discarded once with a reason, or is held;
    /// those of one flow that came the same way leave in the order in which they came; what is held
    /// stays within its bound.
    #[test]
    fn winc_bs_every_packet_has_one_fate_and_none_overtakes_another(
        steps in steps(),
        with_sequencer in any::<bool>(),
    ) {
        let config = station::Config {
            buffer_bytes_max: 5_000,
            held_bytes_max: 9_000,
            ..if with_sequencer { station::Config::modern() } else { station::Config::strict() }
        };
        let mut drill = Drill::new(station::Agent::new(config));
        let mut came: BTreeMap<PacketId, (u16, bool)> = BTreeMap::new();
        let mut next = [0u32; 4];
        for step in &steps {
            match *step {
                Step::Data { through_tunnel, port } => {
                    let segment = Segment { port, ..data(next[port as usize], 1000) };
                    next[port as usize] += 1000;
                    match through_tunnel {
                        true => drill.tunnel(&segment),
                        false => drill.wired(&segment),
                    };
                    came.insert(drill.arrived(), (port, through_tunnel));
                }
                Step::Ack { port, window } => {
                    drill.radio(&Segment { port, window, ..ack(0) });
                }
                Step::Notice(number) => {
                    drill.notice(notice(number));
                }
                Step::Time(millis) => {
                    drill.after(ms(millis));
                }
            }
            prop_assert!(drill.engine.held_bytes() <= 9_000);
        }
        drill.notice(Notice::Forget);
        prop_assert_eq!(drill.engine.held_bytes(), 0);

        let is_data = |packet: &sansio::Packet| !packet.payload.is_empty();
        let origin = |packet: &sansio::Packet| match came.contains_key(&packet.id) {
            true => packet.id,
            false => packet.parent.expect("a packet passed on has a parent"),
        };
        let sent = drill.sink.sent.iter().map(|(_, packet)| packet).filter(|one| is_data(one));
        let left: Vec<PacketId> = sent.map(|packet| origin(packet)).collect();
        let discarded = drill.sink.discarded.iter().map(|(packet, _)| origin(packet));
        let mut fates: Vec<PacketId> = left.iter().copied().chain(discarded).collect();
        fates.sort();
        prop_assert_eq!(fates, came.keys().copied().collect::<Vec<_>>());
        for flow in 1..4 {
            for way in [false, true] {
                let of_it: Vec<_> =
                    left.iter().filter(|id| came[id] == (flow, way)).collect();
                prop_assert!(of_it.is_sorted(), "flow {} through the tunnel {}", flow, way);
            }
        }
    }

    /// WINC-MH: every packet of either side passes once and in order, with its own bytes; and once
    /// the signal is good, the fixed host's last word is that the window is as the host offers it.
    #[test]
    fn winc_mh_nothing_is_kept_and_no_window_stays_closed(
        steps in prop::collection::vec((0u8..6, 1u16..4, 0u64..300), 1..100),
        is_strict in any::<bool>(),
    ) {
        let config = if is_strict { mobile::Config::strict() } else { mobile::Config::modern() };
        let mut drill = Drill::new(mobile::Agent::new(config));
        let mut passed = Vec::new();
        let mut next = [0u32; 4];
        for &(step, port, millis) in &steps {
            match step {
                0 | 1 => {
                    drill.air(&Segment { port, ..data(next[port as usize], 100) });
                    next[port as usize] += 100;
                    passed.push(drill.arrived());
                }
                2 | 3 => {
                    drill.host(&Segment { port, ..ack(next[port as usize]) });
                    passed.push(drill.arrived());
                }
                4 => {
                    let db = if millis % 2 == 0 { 2 } else { 9 };
                    drill.notice(Notice::Signal(Signal::from_db(db)));
                }
                _ => {
                    drill.after(ms(millis));
                }
            }
        }
        drill.notice(Notice::Signal(Signal::from_db(9))).after(ms(100_000));
        let sent = &drill.sink.sent;
        let own = sent.iter().filter(|(_, packet)| packet.cause != Cause::AgentAck);
        let origin = own.map(|(_, packet)| packet.parent.unwrap_or(packet.id));
        prop_assert_eq!(origin.collect::<Vec<_>>(), passed);
        prop_assert!(drill.sink.discarded.is_empty());
        for port in 1..4 {
            let of_it = |packet: &sansio::Packet| {
                packet.as_tcp().is_some_and(|tcp| tcp.source_port == port)
            };
            let mut said = sent.iter().filter(|(side, one)| *side == Side::RADIO && of_it(one));
            if let Some((_, last)) = said.next_back() {
                let window = last.as_tcp().expect("TCP").window;
                prop_assert!(window > 0, "{}", describe(last));
            }
        }
    }
}
