//! What the agent never does, whatever comes: bounds of its state and of what it sends, and flows
//! that it leaves alone (MOD-13, MOD-14, MOD-20, MOD-23).

use crate::drill::{Drill, FIXED, MOBILE, segment, tcp_mut};
use crate::modern::{window, with_bounds};
use sansio::{Host, PacketId, Payload, Side, StreamId};
use schemes::snoop::Config;
use schemes::snoop::config::{Bounds, HelpFrom};
use wire::tcp::{Flags, Options, kind};

#[test]
fn mod_13_a_signed_or_multipath_flow_gets_no_ack_made_by_the_agent() {
    for option in [kind::MD5, kind::AUTHENTICATION, kind::MPTCP] {
        let mut drill = window();
        drill.data_with(0..1000, |packet| {
            tcp_mut(packet).options = Options::from_bytes(&[option, 4, 0, 0]).expect("fits");
        });
        drill.expect(&["radio 0..1000"]);
    }
}

#[test]
fn mod_14_agent_acks_are_bounded_per_second_and_the_rest_is_forwarded() {
    let mut drill = Drill::new(with_bounds(|bounds| bounds.agent_acks_per_second = 2));
    drill.segments(0, 3).ack(3000).quietly();
    let (answered, passed) =
        (&["wired ack 3000 agent", "SNOOP-DATA-4 0..1000"], &["radio 0..1000"]);
    drill.data(0..1000).expect(answered).data(0..1000).expect(answered);
    drill.data(0..1000).expect(passed);
    assert!(drill.acted("snoop agent ACKs per second"));
    drill.after_millis(1000).data(0..1000).expect(answered);
}

#[test]
fn mod_14_retransmissions_are_bounded_by_what_was_forwarded() {
    let bounds = |bounds: &mut Bounds| {
        bounds.retransmission_percent = 10;
        bounds.retransmission_floor_bytes = 0;
    };
    let mut drill = Drill::new(with_bounds(bounds));
    drill.segments(0, 10).after_millis(10).ack(0).quietly();
    // 10 % of 10,000 bytes: one segment.
    drill.sack(0, &[(5000, 6000)]);
    assert_eq!(drill.statistics().retransmissions, 1);
    assert!(drill.statistics().retransmissions_refused > 0);
}

#[test]
fn mod_14_forged_duplicates_cannot_make_it_send_more_than_once_per_round_trip() {
    let mut drill = window();
    for _ in 0..1000 {
        drill.ack(1000);
    }
    assert_eq!(drill.statistics().retransmissions, 1);
}

/// Hosts ignore such an ACK (RFC 9293, 3.10.7.4); an agent that took it at its word would answer
/// the sender's repeats with it, and so acknowledge what never arrived.
#[test]
fn snoop_gen_2_an_ack_of_what_never_passed_is_forwarded_and_not_believed() {
    for config in [Config::strict(), Config::modern()] {
        let mut drill = Drill::new(config);
        drill.segments(0, 5).ack(1000).quietly();
        drill.ack(9000).expect(&["wired ack 9000"]);
        drill.data(1000..2000).expect(&["radio 1000..2000"]);
        drill.data(0..1000).expect(&["radio 0..1000"]);
        drill.ack(2000).expect(&["wired ack 2000"]);
        drill.ack(5000).expect(&["wired ack 5000"]);
        // What the mobile host itself has acknowledged is answered again.
        drill.data(0..1000).expect(&["wired ack 5000 agent", "SNOOP-DATA-4 0..1000"]);
    }
}

/// Help from evidence on: of 3000 acknowledged bytes, or of 6 cached segments and 1 repair.
fn cautious() -> Drill {
    let evidence = HelpFrom::Evidence { acknowledged_bytes: 3000, segments: 6, repairs: 1 };
    Drill::new(Config { help_from: evidence, ..Config::modern() })
}

#[test]
fn mod_14_without_evidence_of_a_radio_a_flow_is_left_alone() {
    let mut drill = cautious();
    drill.segments(0, 5).ack(1000).quietly();
    drill.sack(1000, &[(2000, 5000)]).expect(&["wired ack 1000 sack 2000..5000"]);
    drill.ack(0).expect(&["wired ack 0"]);
    drill.data(0..1000).expect(&["radio 0..1000"]);
    drill.after_millis(1000).expect(&[]);
    assert_eq!((drill.agent.held_bytes(), drill.statistics().flows_left_alone), (0, 0));
}

#[test]
fn mod_14_acknowledged_data_is_evidence_for_its_flow_and_repairs_are_for_all() {
    let mut drill = cautious();
    drill.segments(0, 3).ack(2999).segments(3, 1).quietly();
    assert_eq!(drill.agent.held_bytes(), 0);
    drill.ack(4000).segments(4, 6).after_millis(10).quietly();
    assert_eq!(drill.agent.held_bytes(), 6000);
    drill.sack(4000, &[(5000, 10_000)]);
    drill.expect(&["MOD-1 ack 4000 sack 5000..10000", "radio high 4000..5000 local"]);
    drill.after_millis(10).ack(10_000).quietly();
    let held = |drill: &mut Drill, port| {
        let mut data = segment(PacketId::FIRST, FIXED, Host { port, ..MOBILE }, Flags::ACK);
        data.payload = Payload::Virtual { stream: StreamId(1), offset: 0, length: 100 };
        tcp_mut(&mut data).seq = drill.seq(0);
        drill.arrive(Side::WIRED, data);
        drill.agent.held_bytes()
    };
    assert_eq!(held(&mut drill, 7), 100, "of another flow, from its first packet on");
    assert_eq!(held(&mut cautious(), 7), 0);
}

#[test]
fn mod_14_strangers_do_not_drive_out_active_flows() {
    let config = Config { flows_max: 4, ..Config::modern() };
    let mut drill = Drill::new(config);
    let data = |drill: &Drill, port| {
        let mut data = segment(PacketId::FIRST, FIXED, Host { port, ..MOBILE }, Flags::ACK);
        data.payload = Payload::Virtual { stream: StreamId(1), offset: 0, length: 100 };
        tcp_mut(&mut data).seq = drill.seq(0);
        data
    };
    for port in 0..1000 {
        let packet = data(&drill, port);
        drill.arrive(Side::WIRED, packet);
    }
    assert_eq!((drill.agent.flows(), drill.statistics().flows_refused), (4, 996));
    assert!(drill.acted("snoop flows"));
    // Port 0 stays active; after the limit of idleness the others yield.
    for _ in 0..11 {
        let packet = data(&drill, 0);
        drill.after_millis(1000).arrive(Side::WIRED, packet);
    }
    for port in 2000..2003 {
        let packet = data(&drill, port);
        drill.arrive(Side::WIRED, packet);
    }
    assert_eq!((drill.agent.flows(), drill.statistics().flows_refused), (4, 996));
    assert_eq!(drill.statistics().flows_created, 7);
}

#[test]
fn mod_14_half_open_connections_get_no_state() {
    let mut drill = Drill::modern();
    drill.data_with(0..0, |packet| tcp_mut(packet).flags = Flags::SYN);
    drill.data_with(1..1, |_| {});
    assert_eq!(drill.agent.flows(), 0);
}

#[test]
fn mod_14_the_caches_of_all_flows_together_are_bounded() {
    let mut drill = Drill::new(Config { cache_bytes_total_max: 2500, ..Config::modern() });
    drill.segments(0, 5).quietly();
    assert_eq!(drill.agent.held_bytes(), 2000);
    assert!(drill.acted("snoop cache bytes of all flows"));
}

#[test]
fn mod_14_dupacks_pass_after_the_patience_ends() {
    let mut drill = window();
    drill.sack(1000, &[(2000, 3000)]).quietly();
    drill.after_millis(201).quietly();
    drill.sack(1000, &[(2000, 3000)]);
    assert_eq!(drill.last_sent(Side::WIRED).as_tcp().expect("TCP").ack, drill.seq(1000));
    assert_eq!(drill.statistics().dupacks_forwarded, 1);
}

#[test]
fn mod_20_data_in_a_syn_passes_without_state() {
    let mut drill = Drill::modern();
    drill.data_with(0..100, |packet| tcp_mut(packet).flags = Flags::SYN).expect(&["radio 0..100"]);
    assert_eq!(drill.agent.flows(), 0);
}

#[test]
fn mod_23_a_flow_whose_acks_are_never_seen_is_left_alone_until_they_are() {
    let mut drill = Drill::modern();
    for number in 0..64 {
        drill.segments(number, 1).after_millis(50);
    }
    assert_eq!(drill.statistics().flows_left_alone, 1);
    assert_eq!(drill.agent.held_bytes(), 0);
    let probes = drill.statistics().probes;
    drill.segments(64, 1).after_millis(1000).quietly();
    assert_eq!(drill.statistics().probes, probes);
    drill.ack(1000).segments(65, 1);
    assert_eq!(drill.agent.held_bytes(), 1000);
}
