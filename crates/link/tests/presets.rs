//! The presets are what they say.

use link::channel::Config as Channel;
use link::outage::{Mode, Spec};
use link::preset::{Pair, Preset};
use link::{Hop, What};
use sansio::{Instant, Priority};

#[test]
fn inc_20_wavelan_carries_1_6_mbit_of_tcp_payload() {
    const PACKETS: u64 = 1_000;
    let mut hop: Hop<u64> = Hop::new(&Preset::Wavelan1995.pair().down, 1, "down");
    let mut now = Instant::ZERO;
    let mut arrivals = Vec::new();
    for packet in 0..PACKETS {
        hop.enqueue(packet, 1500, Priority::Normal, now).expect("one in the queue at most");
        if packet > 0 {
            now = hop.next_event().expect("a packet under way");
            arrivals.extend(std::iter::from_fn(|| hop.poll(now)).map(|outcome| outcome.at));
        }
    }
    let (first, last) = (arrivals[0], arrivals[arrivals.len() - 1]);
    let payload_bits = (arrivals.len() as f64 - 1.0) * 1460.0 * 8.0;
    let rate = payload_bits / last.since(first).as_secs_f64();
    assert!((rate / 1.6e6 - 1.0).abs() < 1e-6, "{rate} bit/s");
}

#[test]
fn names_are_unique_and_found() {
    for preset in Preset::ALL {
        assert_eq!(Preset::from_name(preset.name()), Some(preset));
    }
    assert_eq!(Preset::from_name("carrier-pigeon"), None);
}

#[test]
fn every_preset_delivers_most_packets_and_only_the_lossy_ones_lose() {
    for preset in Preset::ALL {
        let Pair { down, up, .. } = preset.pair();
        assert_eq!(down.outages, up.outages, "one schedule for both directions");
        let loses = |channel: &Channel| match channel {
            // Fewer than one in ten million.
            Channel::Arq(arq) => {
                libm::pow(arq.try_failure, f64::from(arq.retries_max) + 1.0) > 1e-7
            }
            _ => true,
        };
        let is_away = down.outages != Spec::default() && down.outages.mode == Mode::Lose;
        let is_lossy = down.channels.iter().any(loses) || is_away;
        for (config, name) in [(down, "down"), (up, "up")] {
            let mut hop: Hop<u32> = Hop::new(&config, 1, name);
            let mut arrived = 0;
            for packet in 0..20_000 {
                let now = Instant::from_nanos(u64::from(packet) * 10_000_000);
                hop.enqueue(packet, 1500, Priority::Normal, now).expect("an idle hop has room");
                while let Some(outcome) = hop.poll(now) {
                    arrived += u32::from(matches!(outcome.what, What::Arrived(_)));
                }
            }
            let lost = hop.statistics().lost_total();
            assert!(arrived > 19_000, "{} {name}: {arrived}", preset.name());
            assert_eq!(lost > 0, is_lossy, "{} {name}: {lost} lost", preset.name());
        }
    }
}
