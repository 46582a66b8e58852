//! Beacons, thresholds, the choice of a cell, and the list of agents.

mod common;

use common::{Outbox, at_ms, bytes_of, clock, mobile, station};
use core::net::Ipv4Addr;
use mobility::agents::{Advertiser, AdvertiserConfig, AgentList, ListConfig};
use mobility::beacon::{self, Listener, ListenerConfig, Sender};
use mobility::choice::{Chooser, Config, Margin, Reason};
use mobility::signal::{Crossing, Threshold};
use proptest::prelude::*;
use sansio::{Duration, Instant, Sink};
use std::net::IpAddr;
use wire::control::Beacon;

const SECOND: Duration = Duration::from_secs(1);

fn beacon(number: u8) -> Beacon {
    Beacon {
        id: number.into(),
        address: station(number),
        sent_at: 1,
        interval_ms: 1_000,
        sequence: 0,
    }
}

#[test]
fn ci_ho_1_a_beacon_each_second_with_address_and_time() {
    let mut outbox = Outbox::new();
    let mut sender = Sender::new((3, station(1)), SECOND, clock(), at_ms(400));
    let mut times = vec![];
    for ms in (0..5_000).step_by(100) {
        sender.on_timer(&mut outbox, at_ms(ms));
        for (_, packet) in outbox.take() {
            let beacon = beacon::read(&packet).expect("a beacon");
            assert_eq!((beacon.id, beacon.address), (3, station(1)));
            assert_eq!(packet.ip.destination, IpAddr::V4(Ipv4Addr::BROADCAST));
            times.push((ms, beacon.sequence, beacon.sent_at - clock().read(Instant::ZERO)));
        }
    }
    let expected = [0_u16, 1, 2, 3, 4].map(|n| {
        let ms = 400 + 1_000 * u64::from(n);
        (ms, n, ms * 1_000_000)
    });
    assert_eq!(times, expected);
}

#[test]
fn mod_10_a_beacon_in_the_name_of_another_base_station_is_not_heard() {
    let mut outbox = Outbox::new();
    let mut sender = Sender::new((3, station(1)), SECOND, clock(), at_ms(0));
    sender.on_timer(&mut outbox, at_ms(0));
    let (_, packet) = outbox.take().pop().unwrap();
    assert!(beacon::read(&packet).is_some());
    let id = outbox.new_id();
    let forged = packet.rewrite(id, packet.cause, |packet| {
        packet.ip.source = IpAddr::V4(station(2));
    });
    assert_eq!(beacon::read(&forged), None);
}

#[test]
fn ci_ho_2_a_base_station_is_silent_after_three_missed_beacons() {
    let mut listener = Listener::new(ListenerConfig::default());
    assert_eq!(listener.hear(&beacon(1), 80, at_ms(0)), Some(true));
    // The third missed one was due at 3 s; half a period more, so that jitter decides nothing.
    let silent_at = at_ms(3_500);
    assert_eq!(listener.silent_at(station(1)), Some(silent_at));
    assert!(listener.is_audible(station(1), Instant::from_nanos(silent_at.as_nanos() - 1)));
    assert!(!listener.is_audible(station(1), silent_at));
    // It stays in the list for an hour (LINK-3), and is no new one when it comes back.
    assert_eq!(listener.hear(&beacon(1), 80, at_ms(3_599_999)), Some(false));
    assert_eq!(listener.hear(&beacon(1), 80, at_ms(3_599_999 + 3_600_000)), Some(true));
}

#[test]
fn link_2_the_list_has_what_the_paper_s_table_has() {
    let mut listener = Listener::new(ListenerConfig::default());
    listener.hear(&beacon(1), 80, at_ms(10));
    listener.set_rate(station(1), sansio::BitRate::from_mbps(2));
    listener.hear(&beacon(1), 50, at_ms(1_010));
    let heard = listener.get(station(1)).copied().expect("in the list");
    assert_eq!((heard.id, heard.decibels_10, heard.received_at), (1, 50, at_ms(1_010)));
    assert_eq!(heard.until, at_ms(3_601_010));
    assert_eq!(heard.rate, Some(sansio::BitRate::from_mbps(2)));
    assert_eq!(listener.audible(at_ms(1_010)).count(), 1);
}

#[test]
fn mod_14_a_full_list_keeps_whom_it_hears() {
    let config = ListenerConfig { stations_max: 2, ..ListenerConfig::default() };
    let mut listener = Listener::new(config);
    listener.hear(&beacon(1), 80, at_ms(0));
    listener.hear(&beacon(2), 80, at_ms(1_000));
    assert_eq!(listener.hear(&beacon(3), 80, at_ms(1_500)), None);
    assert_eq!(listener.all().count(), 2);
    // Number 1 is silent by now.
    assert_eq!(listener.hear(&beacon(3), 80, at_ms(4_000)), Some(true));
    let left: Vec<u32> = listener.all().map(|heard| heard.id).collect();
    assert_eq!(left, [2, 3]);
}

/// A listener and a chooser that hear the same beacons.
struct Ears {
    listener: Listener,
    chooser: Chooser,
    ms: u64,
}

impl Ears {
    fn new(config: Config) -> Self {
        let listener = Listener::new(ListenerConfig::default());
        Ears { listener, chooser: Chooser::new(config), ms: 0 }
    }

    /// A beacon a millisecond later; the change of the choice.
    fn hear(&mut self, number: u8, decibels_10: i16) -> Option<Reason> {
        self.ms += 1;
        self.listener.hear(&beacon(number), decibels_10, at_ms(self.ms));
        self.chooser.on_beacon(station(number), &self.listener, at_ms(self.ms))
    }
}

#[test]
fn ci_ho_2_a_stronger_beacon_is_taken_at_once_by_the_letter() {
    let mut ears = Ears::new(Config::strict());
    assert_eq!(ears.hear(1, 80), Some(Reason::First));
    assert_eq!(ears.hear(2, 80), None);
    assert_eq!(ears.hear(2, 81), Some(Reason::Stronger));
    assert_eq!(ears.chooser.current(), Some(station(2)));
}

#[test]
fn ci_ho_2_the_first_beacon_after_silence_is_taken_however_weak() {
    for config in [Config::strict(), Config::modern()] {
        let mut ears = Ears::new(config);
        ears.hear(1, 80);
        ears.ms = 3_500;
        assert_eq!(ears.hear(2, 10), Some(Reason::Silent));
    }
}

#[test]
fn mcast_10_within_the_margin_nothing_changes() {
    let mut ears = Ears::new(Config::modern());
    ears.hear(1, 100);
    for _ in 0..100 {
        for (own, other) in [(100, 150), (120, 60), (90, 140)] {
            assert_eq!(ears.hear(1, own), None);
            assert_eq!(ears.hear(2, other), None);
        }
    }
    // Above it: once is not enough, the second beacon confirms, and one between them does not.
    assert_eq!((ears.hear(1, 100), ears.hear(2, 151)), (None, None));
    assert_eq!(ears.hear(2, 150), None);
    assert_eq!(ears.hear(2, 151), None);
    assert_eq!(ears.hear(2, 151), Some(Reason::Stronger));
}

#[test]
fn mcast_10_a_margin_in_parts_of_the_own_signal() {
    let margin = Margin::Percent(10);
    let mut ears = Ears::new(Config { margin, ..Config::strict() });
    ears.hear(1, 200);
    assert_eq!(ears.hear(2, 220), None);
    assert_eq!(ears.hear(2, 221), Some(Reason::Stronger));
}

#[test]
fn link_1_a_threshold_tells_once_of_each_crossing() {
    let mut threshold = Threshold::new(50, 60);
    let crossings = [49, 59, 60, 55, 50, 49, 55, 59, 60].map(|sample| threshold.sample(sample));
    let (rose, fell) = (Some(Crossing::Rose), Some(Crossing::Fell));
    assert_eq!(crossings, [None, None, rose, None, None, fell, None, None, rose]);
}

/// A mobile host's list and the agent of base station 1.
struct Discovery {
    outbox: Outbox,
    list: AgentList,
    advertiser: Advertiser,
    listener: Listener,
}

impl Discovery {
    fn new(config: ListConfig) -> Self {
        Discovery {
            outbox: Outbox::new(),
            list: AgentList::new(mobile(1), config),
            advertiser: Advertiser::new(AdvertiserConfig::new(station(1)), at_ms(500)),
            listener: Listener::new(ListenerConfig::default()),
        }
    }

    /// A beacon of base station 1; how many solicitations it makes.
    fn hear(&mut self, decibels_10: i16, now: Instant) -> usize {
        self.listener.hear(&beacon(1), decibels_10, now);
        let heard = *self.listener.get(station(1)).expect("just heard");
        self.list.on_beacon(&heard, &mut self.outbox, now);
        self.outbox.sent.len()
    }

    /// The agent answers what was asked.
    fn answer(&mut self, now: Instant) {
        for (_, packet) in self.outbox.take() {
            assert!(self.advertiser.on_packet(&packet, &mut self.outbox, now));
        }
        for (_, packet) in self.outbox.take() {
            assert_eq!(packet.ip.destination, IpAddr::V4(mobile(1)));
            assert_eq!(self.list.on_packet(&packet, now), Some(station(1)));
        }
    }
}

#[test]
fn pre_2_a_weak_base_station_that_is_not_in_the_list_is_asked_once() {
    let mut world = Discovery::new(ListConfig::prefetch());
    assert_eq!(world.hear(30, at_ms(0)), 0, "at the threshold, not above it");
    assert_eq!(world.hear(31, at_ms(1)), 1);
    world.answer(at_ms(2));
    let agent = world.list.agent_of(station(1), at_ms(2)).expect("in the list");
    assert_eq!((agent.care_of, agent.registration_lifetime_s), (station(1), 300));
    assert_eq!(world.hear(90, at_ms(3)), 0);
}

#[test]
fn pre_2_without_an_answer_once_per_second_and_five_times() {
    let mut world = Discovery::new(ListConfig::prefetch());
    let times: Vec<u64> = (0..20_000)
        .step_by(250)
        .filter(|&ms| {
            world.hear(40, at_ms(ms));
            !world.outbox.take().is_empty()
        })
        .collect();
    assert_eq!(times, [0, 1_000, 2_000, 3_000, 4_000]);
}

#[test]
fn pre_4_an_agent_is_asked_for_again_when_its_lifetime_is_over() {
    let mut world = Discovery::new(ListConfig::prefetch());
    world.hear(40, at_ms(0));
    world.answer(at_ms(0));
    let end = at_ms(3_600_000);
    assert!(world.list.agent_of(station(1), Instant::from_nanos(end.as_nanos() - 1)).is_some());
    assert!(world.list.agent_of(station(1), end).is_none());
    assert_eq!(world.hear(40, end), 1);
}

#[test]
fn pre_5_back_and_forth_at_the_edge_asks_once_per_base_station() {
    let mut world = Discovery::new(ListConfig::prefetch());
    let mut solicitations = 0;
    for round in 0..10 {
        for signal in [40, 20, 90, 10] {
            solicitations += world.hear(signal, at_ms(round * 100));
            world.answer(at_ms(round * 100));
        }
    }
    assert_eq!(solicitations, 1);
}

#[test]
fn pre_7_without_prefetch_the_advertisement_is_waited_for() {
    let mut world = Discovery::new(ListConfig::wait());
    assert_eq!(world.hear(90, at_ms(0)), 0);
    world.advertiser.on_timer(&mut world.outbox, at_ms(499));
    assert!(world.outbox.sent.is_empty());
    world.advertiser.on_timer(&mut world.outbox, at_ms(500));
    let (_, packet) = world.outbox.take().pop().unwrap();
    assert_eq!(packet.ip.destination, IpAddr::V4(Ipv4Addr::BROADCAST));
    assert_eq!(world.list.on_packet(&packet, at_ms(501)), Some(station(1)));
    assert_eq!(world.advertiser.next_at(), at_ms(1_500));
}

#[test]
fn pre_7_and_link_4_who_waits_uses_no_agent_that_was_heard_before_the_cell_was_entered() {
    for (config, is_used) in [(ListConfig::wait(), false), (ListConfig::remember(), true)] {
        let mut world = Discovery::new(config);
        world.advertiser.on_timer(&mut world.outbox, at_ms(500));
        let (_, packet) = world.outbox.take().pop().unwrap();
        world.list.on_packet(&packet, at_ms(500));
        let entered = |at| world.list.agent_to_use(station(1), at_ms(at), at_ms(600)).is_some();
        assert!(entered(500), "heard as it was entered");
        assert_eq!(entered(501), is_used);
        let mut outbox = Outbox::new();
        let asked = world.list.clone().on_entered(station(2), &mut outbox, at_ms(600));
        assert!(!asked && outbox.sent.is_empty(), "nobody is asked without prefetch");
    }
    let mut world = Discovery::new(ListConfig::prefetch());
    assert!(world.list.on_entered(station(2), &mut world.outbox, at_ms(600)));
}

#[test]
fn mod_14_solicitations_are_answered_no_faster_than_the_gap() {
    let mut world = Discovery::new(ListConfig::prefetch());
    world.hear(40, at_ms(0));
    let (_, solicitation) = world.outbox.take().pop().unwrap();
    for ms in 0..100 {
        assert!(world.advertiser.on_packet(&solicitation, &mut world.outbox, at_ms(ms)));
    }
    assert_eq!(world.outbox.take().len(), 10);
}

#[test]
fn an_agent_that_is_busy_says_so_and_its_count_skips_below_256_after_65535() {
    let mut world = Discovery::new(ListConfig::wait());
    world.advertiser.set_busy(true);
    let mut sequences = vec![];
    for at in 0..65_538 {
        let now = at_ms(500 + at * 1_000);
        world.advertiser.on_timer(&mut world.outbox, now);
        let (_, packet) = world.outbox.take().pop().unwrap();
        world.list.on_packet(&packet, now);
        let agent = world.list.agent_of(station(1), now).unwrap();
        assert!(agent.is_busy);
        sequences.push(agent.sequence);
    }
    assert_eq!(sequences[65_534..], [65_534, 65_535, 256, 257]);
}

proptest! {
    /// MOD-24: any bytes where an advertisement should be; the list stays within its bound.
    #[test]
    fn mod_24_any_advertisement(bytes in prop::collection::vec(any::<u8>(), 0..60), at: u8) {
        let mut world = Discovery::new(ListConfig { agents_max: 2, ..ListConfig::prefetch() });
        for number in 0..5 {
            world.advertiser =
                Advertiser::new(AdvertiserConfig::new(station(number)), Instant::ZERO);
            world.advertiser.on_timer(&mut world.outbox, at_ms(0));
        }
        for (_, packet) in world.outbox.take() {
            world.list.on_packet(&packet, at_ms(0));
            let mut changed = bytes_of(&packet).to_vec();
            let at = usize::from(at) % changed.len();
            changed.splice(at.., bytes.clone());
            let changed = common::with_bytes(&packet, changed, &mut world.outbox);
            world.list.on_packet(&changed, at_ms(0));
        }
        let known = (0..=255).filter(|&number| {
            world.list.agent_of(station(number), at_ms(0)).is_some()
        });
        prop_assert!(known.count() <= 2);
    }
}
