//! Window control at the base station (WINC-BS, WINC-ST).

use crate::drill::{Drill, FIXED, MOBILE, ack, data, host, ms};
use sansio::{Duration, FlowKey, Notice};
use schemes::window::station::{Agent, Config};
use schemes::window::table::State;
use wire::tcp::Flags;

const FLOW: fn() -> FlowKey = || FlowKey { source: host(FIXED, 80), destination: host(MOBILE, 1) };

/// A base station at which the mobile host has registered.
fn registered(config: Config) -> Drill<Agent> {
    let mut drill = Drill::new(Agent::new(config));
    drill.notice(Notice::Registered(MOBILE));
    drill
}

/// The same, and the window of the flow is closed.
fn closed(config: Config) -> Drill<Agent> {
    let mut drill = registered(config);
    drill.radio(&shut(1000)).skip();
    assert_eq!(drill.engine.flow_state(&FLOW()), State::Buf);
    drill
}

/// An ACK that closes the window.
fn shut(number: u32) -> crate::drill::Segment {
    crate::drill::Segment { window: 0, ..ack(number) }
}

#[test]
fn winc_st_1_before_the_registration_everything_passes() {
    let mut drill = Drill::new(Agent::new(Config::strict()));
    drill.radio(&shut(0)).wired(&data(0, 1000)).gives(&["wired ack 0 win 0", "radio 0..1000"]);
    assert_eq!(drill.engine.state(MOBILE), State::Idle);
}

#[test]
fn winc_st_2_a_registration_starts_the_watch_over_windows() {
    let drill = registered(Config::strict());
    assert_eq!(drill.engine.state(MOBILE), State::Mon);
}

#[test]
fn winc_bs_2_and_st_3_after_a_closed_window_the_flows_data_is_held_and_no_other_flows() {
    let mut drill = closed(Config::strict());
    let mut other = data(0, 10);
    other.port = 2;
    drill.wired(&data(1000, 1000)).wired(&other).wired(&ack(7)).wired(&data(2000, 1000));
    drill.gives(&["radio 2: 0..10", "radio ack 7 win 50"]);
    assert_eq!(drill.engine.held_bytes(), 2000);
}

#[test]
fn winc_bs_3_the_mobile_hosts_own_ack_passes_unchanged() {
    let mut drill = registered(Config::strict());
    drill.radio(&shut(1000)).gives(&["wired ack 1000 win 0"]);
    let sent = &drill.sink.sent[0].1;
    assert_eq!((sent.parent, sent.ip.traffic_class), (None, 0b10), "it is the packet itself");
}

#[test]
fn winc_bs_9_and_st_4_with_an_open_window_what_is_held_goes_before_what_follows() {
    let mut drill = closed(Config::strict());
    drill.wired(&data(1000, 1000)).wired(&data(2000, 1000));
    drill.radio(&ack(1000)).wired(&data(3000, 1000));
    let order = ["radio 1000..2000", "radio 2000..3000", "wired ack 1000 win 50"];
    drill.gives(&[order.as_slice(), &["radio 3000..4000"]].concat());
    assert_eq!((drill.engine.flow_state(&FLOW()), drill.engine.held_bytes()), (State::Mon, 0));
}

#[test]
fn winc_bs_6_and_st_5_a_binding_update_sends_what_is_held_through_the_tunnel_in_order() {
    let mut drill = closed(Config::strict());
    drill.wired(&data(1000, 1000)).wired(&data(2000, 1000)).notice(Notice::Moved(MOBILE));
    drill.wired(&data(3000, 1000)).wired(&ack(7));
    let order = ["tunnel 1000..2000", "tunnel 2000..3000", "tunnel 3000..4000"];
    drill.gives(&[order.as_slice(), &["tunnel ack 7 win 50"]].concat());
    assert_eq!(drill.engine.state(MOBILE), State::Tun);
    assert_eq!(drill.engine.statistics().tunnelled, 4);
}

#[test]
fn winc_st_6_a_binding_update_without_a_closed_window_tunnels_what_comes_later() {
    let mut drill = registered(Config::strict());
    drill.notice(Notice::Moved(MOBILE)).wired(&data(0, 1000)).gives(&["tunnel 0..1000"]);
}

#[test]
fn winc_st_7_when_the_binding_expires_everything_passes_again() {
    let mut drill = registered(Config::strict());
    drill.notice(Notice::Moved(MOBILE)).notice(Notice::BindingExpired(MOBILE));
    drill.wired(&data(0, 1000)).gives(&["radio 0..1000"]);
    assert_eq!(drill.engine.state(MOBILE), State::Idle);
}

#[test]
fn winc_st_8_a_mobile_host_that_returns_is_served_here_again() {
    let mut drill = closed(Config::strict());
    drill.wired(&data(1000, 1000)).notice(Notice::Moved(MOBILE)).skip();
    drill.notice(Notice::Registered(MOBILE)).wired(&data(2000, 1000));
    drill.gives(&["radio 2000..3000"]);
    drill.radio(&shut(1000)).wired(&data(3000, 1000)).gives(&["wired ack 1000 win 0"]);
}

#[test]
fn winc_st_9_a_renewal_keeps_what_is_held_and_leaving_lets_it_go() {
    let mut drill = closed(Config::strict());
    drill.wired(&data(1000, 1000)).notice(Notice::Registered(MOBILE)).gives(&[]);
    drill.notice(Notice::Deregistered(MOBILE)).gives(&["WINC-ST-9: 1000..2000"]);
    assert_eq!(drill.engine.state(MOBILE), State::Idle);
    assert_eq!(drill.engine.statistics().freed, 1);
}

#[test]
fn winc_st_9_what_is_held_for_a_silent_mobile_host_is_let_go_after_30_s() {
    let mut drill = closed(Config::strict());
    drill.wired(&data(1000, 1000)).after(Duration::from_secs(20)).radio(&shut(1000)).skip();
    drill.after(Duration::from_secs(30) - Duration::from_nanos(1)).gives(&[]);
    drill.after(Duration::from_nanos(1)).gives(&["WINC-ST-9: 1000..2000"]);
    drill.wired(&data(2000, 1000)).gives(&["radio 2000..3000"]);
    assert!(
        drill.engine.held_bytes() == 0 && sansio::Engine::next_deadline(&drill.engine).is_none()
    );
}

#[test]
fn winc_bs_11_beyond_the_buffer_the_newest_is_dropped_and_counted() {
    let mut drill = closed(Config { buffer_bytes_max: 2500, ..Config::strict() });
    drill.wired(&data(1000, 1000)).wired(&data(2000, 1000)).wired(&data(3000, 1000));
    drill.gives(&["window control buffer: 3000..4000"]);
    assert_eq!(drill.engine.statistics().overflowed, 1);
    drill.radio(&ack(1000));
    drill.gives(&["radio 1000..2000", "radio 2000..3000", "wired ack 1000 win 50"]);
}

#[test]
fn winc_bs_11_what_the_sender_repeats_takes_no_room() {
    let mut drill = closed(Config::strict());
    drill.wired(&data(1000, 1000)).wired(&data(1000, 1000)).gives(&["held already: 1000..2000"]);
    assert_eq!((drill.engine.held_bytes(), drill.engine.statistics().repeated), (1000, 1));
}

#[test]
fn winc_bs_2_a_reset_of_the_fixed_host_comes_behind_its_data_and_one_of_the_mobile_ends_all() {
    let mut reset = ack(0);
    reset.flags = Flags::RST.with(Flags::ACK);
    let mut drill = closed(Config::strict());
    drill.wired(&data(1000, 1000)).wired(&reset);
    drill.gives(&["radio 1000..2000", "radio ack 0 win 50 rst"]);
    let mut drill = closed(Config::strict());
    drill.wired(&data(1000, 1000)).radio(&reset);
    drill.gives(&["WINC-ST-9: 1000..2000", "wired ack 0 win 50 rst"]);
}

#[test]
fn winc_bs_12_without_a_sequencer_what_comes_straight_overtakes_the_tunnel() {
    let mut drill = registered(Config::strict());
    drill.notice(Notice::TunnelOpened(MOBILE));
    drill.wired(&data(2000, 1000)).tunnel(&data(1000, 1000));
    drill.gives(&["radio 2000..3000", "radio 1000..2000"]);
}

#[test]
fn winc_bs_12_the_sequencer_waits_until_the_tunnel_has_drained() {
    let mut drill = registered(Config::modern());
    drill.notice(Notice::TunnelOpened(MOBILE)).wired(&data(2000, 1000)).gives(&[]);
    drill.after(ms(30)).tunnel(&data(0, 1000)).after(ms(40)).tunnel(&data(1000, 1000));
    drill.gives(&["radio 0..1000", "radio 1000..2000"]);
    drill.after(ms(50) - Duration::from_nanos(1)).gives(&[]);
    drill.after(Duration::from_nanos(1)).gives(&["radio 2000..3000"]);
    drill.wired(&data(3000, 1000)).gives(&["radio 3000..4000"]);
}

#[test]
fn winc_bs_12_the_sequencer_waits_200_ms_at_most_and_no_longer_than_there_is_room() {
    let mut drill = registered(Config::modern());
    drill.notice(Notice::TunnelOpened(MOBILE)).wired(&data(2000, 1000));
    drill.after(ms(200) - Duration::from_nanos(1)).gives(&[]);
    drill.after(Duration::from_nanos(1)).gives(&["radio 2000..3000"]);

    let mut drill = registered(Config::modern());
    drill.notice(Notice::TunnelOpened(MOBILE));
    drill.wired(&data(0, 50_000)).gives(&[]);
    drill.wired(&data(50_000, 50_000)).gives(&["radio 0..50000", "radio 50000..100000"]);
}

#[test]
fn winc_bs_12_an_open_tunnel_is_waited_for_until_it_has_drained_however_long_that_takes() {
    let mut drill = registered(Config::modern());
    drill.notice(Notice::TunnelOpened(MOBILE)).wired(&data(9000, 1000)).skip();
    drill.after(ms(190)).tunnel(&data(0, 1000)).after(ms(40)).tunnel(&data(1000, 1000));
    drill.after(ms(40)).tunnel(&data(2000, 1000));
    drill.gives(&["radio 0..1000", "radio 1000..2000", "radio 2000..3000"]);
    drill.after(ms(50) - Duration::from_nanos(1)).gives(&[]);
    drill.after(Duration::from_nanos(1)).gives(&["radio 9000..10000"]);
}

#[test]
fn winc_bs_12_a_tunnel_that_has_opened_and_brings_nothing_is_waited_for_50_ms() {
    let mut drill = registered(Config::modern());
    drill.notice(Notice::TunnelOpened(MOBILE)).wired(&data(0, 1000)).after(ms(20));
    drill.notice(Notice::TunnelOpened(MOBILE)).gives(&[]);
    drill.after(ms(50) - Duration::from_nanos(1)).gives(&[]);
    drill.after(Duration::from_nanos(1)).gives(&["radio 0..1000"]);
}

#[test]
fn winc_bs_12_what_waits_follows_a_mobile_host_that_moves_on() {
    let mut drill = registered(Config::modern());
    drill.notice(Notice::TunnelOpened(MOBILE)).wired(&data(2000, 1000)).radio(&shut(0)).skip();
    drill.tunnel(&data(1000, 1000)).notice(Notice::Moved(MOBILE));
    drill.gives(&["tunnel 1000..2000", "tunnel 2000..3000"]);
}

#[test]
fn winc_st_5_a_ring_of_bindings_ends_with_the_hop_limit() {
    let mut drill = registered(Config::strict());
    drill.notice(Notice::Moved(MOBILE)).tunnel(&data(0, 1000)).gives(&["tunnel 0..1000"]);
    let mut packet = (*drill.sink.sent[0].1).clone();
    let limit = packet.ip.hop_limit;
    for _ in 1..limit {
        drill.arrives_raw(sansio::Side::TUNNEL, packet);
        packet = (*drill.sink.sent.last().expect("passed on").1).clone();
    }
    assert_eq!(packet.ip.hop_limit, 1);
    drill.skip().arrives_raw(sansio::Side::TUNNEL, packet).gives(&["hop limit: 0..1000"]);
}

#[test]
fn mod_14_flows_and_mobile_hosts_beyond_the_limits_pass() {
    let config = Config { flows_max: 1, mobiles_max: 1, ..Config::strict() };
    let mut drill = closed(config);
    let (mut other, mut segment) = (shut(0), data(0, 10));
    (other.port, segment.port) = (2, 2);
    drill.radio(&other).skip().wired(&segment).gives(&["radio 2: 0..10"]);
    drill.notice(Notice::Registered(FIXED));
    assert_eq!(drill.engine.state(FIXED), State::Idle);
}

#[test]
fn snoop_gen_3_forgetting_lets_what_is_held_go_to_the_mobile_host() {
    let mut drill = closed(Config::modern());
    drill.wired(&data(1000, 1000)).notice(Notice::Forget).gives(&["radio 1000..2000"]);
    assert_eq!((drill.engine.held_bytes(), drill.engine.state(MOBILE)), (0, State::Idle));
}
