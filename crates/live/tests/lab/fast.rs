//! The fast path: the kernel forwards data, a ring shows it, ACKs go through the daemon.

use crate::cases::{DIRECT_BYTES, counted};
use crate::direct::{Direct, Offloads};
use crate::support::{goodput, program, run, setup};
use link::channel::{Config as Channel, packet_loss};
use live::lab::network::Names;
use live::lab::{Amount, Lab};
use live::sys::namespace::within;
use live::sys::packet_ring::{Ring, Tapped};
use live::sys::packet_socket::{Head, Leave, Listen, Outgoing, PacketSocket, Prefix};
use std::process::Command;
use wire::ethernet::EtherType;

pub(crate) fn sees_data_and_takes_acks() {
    for offloads in [Offloads::On, Offloads::Off] {
        let direct = Direct::new(offloads);
        for scheme in ["plain", "snoop-modern"] {
            let (received, bps, statistics) =
                direct.transfer(Some(scheme), DIRECT_BYTES, &["--fast"]);
            println!("  offloads {offloads:?}, {scheme}: {:.2} Gbit/s", bps / 1e9);
            assert_eq!(received.bytes, DIRECT_BYTES);
            assert_eq!(statistics["back_end"]["name"], "fast", "{statistics}");
            let packets = &statistics["packets"];
            assert_eq!(packets["invalid"], 0, "{statistics}");
            let count = |what: &str| packets[what].as_u64().expect("a count");
            let segments = DIRECT_BYTES / 1_448;
            match offloads {
                Offloads::On => assert!(count("seen") < segments / 2, "{statistics}"),
                // Some may have come while the ring was full.
                Offloads::Off => {
                    let overruns = statistics["overruns"].as_u64().expect("a count");
                    assert!(count("seen") + overruns >= segments, "{statistics}");
                }
            }
            assert!(count("taken") > 100, "ACKs: {statistics}");
            // Nothing of what was seen was sent again, but for repairs.
            assert!(count("sent") <= count("taken") + count("made"), "{statistics}");
        }
    }
}

/// The lab, whose radio loses packets, with a daemon on the fast path.
pub(crate) fn repairs_what_the_radio_loses() {
    let lossy = |scheme: &str| {
        let mut setup = setup(scheme);
        let loss = Channel::PacketLoss(packet_loss::Config { probability: 0.01 });
        setup.air.radio.down.channels.push(loss);
        setup.amount = Amount::Size(4_000_000);
        setup
    };
    let mut lab = Lab::open(0, program(&["daemon", "--fast"])).expect("a lab");
    let plain = run(&mut lab, &lossy("plain"));
    for scheme in ["snoop", "snoop-modern"] {
        let snoop = run(&mut lab, &lossy(scheme));
        assert_eq!(snoop.daemon.as_ref().expect("a daemon")["back_end"]["name"], "fast");
        assert!(snoop.measures.lost > 10, "the radio loses packets");
        assert!(counted(&snoop, "retransmissions") > 10, "and the agent repairs them");
        assert!(snoop.measures.retransmissions_local > 10, "as the radio saw, too");
        assert!(goodput(&snoop) > goodput(&plain), "{} {}", goodput(&snoop), goodput(&plain));
    }
}

/// Where the kernel does not forward, the daemon forwards everything, or says what is missing.
pub(crate) fn chosen_by_measurement() {
    let direct = Direct::new(Offloads::Off);
    let chosen = |flag: &str| {
        let (_, _, statistics) = direct.transfer(Some("plain"), 1_000_000, &[flag]);
        let text = |what: &str| statistics["back_end"][what].as_str().expect("text").to_owned();
        println!("  {flag}: {}, {}", text("name"), text("reason"));
        (text("name"), text("reason"))
    };
    let (name, reason) = chosen("--auto");
    let nanos: Vec<u64> = reason.split(' ').filter_map(|word| word.parse().ok()).collect();
    let [tapped, inline] = nanos[..] else { panic!("two measurements: {reason}") };
    assert!(tapped > 0 && inline > 0, "{reason}");
    assert_eq!(name, if tapped * 2 <= inline { "fast" } else { "inline" }, "{reason}");
    assert_eq!(chosen("--inline").1, "as configured");
    let base = &direct.names().base;
    live::lab::network::set(base, "net/ipv4/ip_forward", "0").expect("a setting");
    // Killed, any of them would leave nobody who forwards.
    for flag in ["--auto", "--inline", "--fast"] {
        let refused = direct.start("plain", &[flag]).expect_err("data would get lost");
        let refused = format!("{refused:#}");
        assert!(refused.contains("sysctl -w net.ipv4.ip_forward=1"), "{flag}: {refused}");
    }
}

pub(crate) fn over_a_bridge() {
    crate::bridge::survive(&["--fast"]);
}

const TYPE: EtherType = EtherType(0x88b5);

/// A frame of this length that tells its number.
fn frame(number: u32, length: usize) -> Vec<u8> {
    let mut bytes = vec![number as u8; length];
    bytes[12..14].copy_from_slice(&TYPE.0.to_be_bytes());
    bytes[14..18].copy_from_slice(&number.to_be_bytes());
    bytes
}

pub(crate) fn ring() {
    let name = Names::new(8).base;
    let script = format!("ip netns add {name} && ip -n {name} link set lo up");
    assert!(Command::new("sh").args(["-c", &script]).status().expect("sh runs").success());
    let compared = within(&name, || {
        compare();
        Ok(())
    });
    let removed = Command::new("ip").args(["netns", "del", &name]).status();
    compared.expect("it runs");
    assert!(removed.expect("ip runs").success());
}

fn compare() {
    const SLOTS: usize = 16;
    let sizes = (2_048, SLOTS * 2_048);
    let mut ring = Ring::with_slots("lo", Listen::Only(TYPE), sizes).expect("a ring");
    let sender = PacketSocket::open("lo", Prefix::Nothing, Listen::Nothing, Leave::Direct);
    let sender = sender.expect("a socket");
    let send = |frames: &[Vec<u8>]| {
        let frames: Vec<Outgoing> =
            frames.iter().map(|frame| Outgoing::new(Head::EMPTY, frame.clone())).collect();
        sender.send(&frames, &[], |index, error| panic!("frame {index}: {error}"));
    };
    let drained = |ring: &mut Ring| {
        let mut tapped: Vec<Tapped> = Vec::new();
        let count = ring.drain(usize::MAX, |frame| tapped.push(frame));
        assert_eq!(count, tapped.len());
        let times: Vec<u64> = tapped.iter().map(|frame| frame.realtime_nanos).collect();
        assert!(times.is_sorted(), "{times:?}");
        let now = live::sys::realtime_nanos();
        assert!(times.iter().all(|time| now.abs_diff(*time) < 1_000_000_000), "{now} {times:?}");
        // Behind ten bytes that say that nothing is left to do.
        tapped.iter().map(|tapped| tapped.frame[10..].to_vec()).collect::<Vec<_>>()
    };
    // Three times around, frames that fill a slot, nearly nothing, and much more than a slot.
    for round in 0..5 {
        let frames: Vec<Vec<u8>> = (0..10)
            .map(|index| frame(round * 10 + index, [1_514, 60, 20_000, 3_000][index as usize % 4]))
            .collect();
        send(&frames);
        assert_eq!(drained(&mut ring), frames);
    }
    assert_eq!((drained(&mut ring).len(), ring.overruns()), (0, 0));
    // More than it holds: the oldest are there, the rest is counted, and then it goes on.
    let frames: Vec<Vec<u8>> = (0..40).map(|index| frame(index, 100)).collect();
    send(&frames);
    assert_eq!(drained(&mut ring), frames[..SLOTS]);
    assert_eq!(ring.overruns(), 40 - SLOTS as u64);
    send(&frames[..3]);
    assert_eq!(drained(&mut ring), frames[..3]);
}
