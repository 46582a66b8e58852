//! A mobile host that sends falls silent: the fixed host's last ACK again (*modern*).

use crate::drill::{Drill, MOBILE, tcp_mut};
use crate::nack::{fixed_ack, handshake, last_segment, segments, up_with};
use sansio::{Duration, Notice, Payload, Side};
use schemes::snoop::Config;
use wire::tcp::{Flags, SackBlock, Seq, kind};

/// Twenty segments have come within 19 ms, the fixed host has acknowledged those before `acked`.
fn sending(config: Config, acked: u32) -> Drill {
    let mut drill = Drill::new(config);
    handshake(&mut drill, (true, true));
    for number in 0..20 {
        segments(&mut drill, [number]);
        drill.after_millis(1);
    }
    fixed_ack(&mut drill, acked, &[]);
    drill.quietly();
    drill
}

fn modern() -> Drill {
    sending(Config::modern(), 20_000)
}

/// The last segment ended what an application had written.
fn modern_written() -> Drill {
    let mut drill = modern();
    last_segment(&mut drill, 20);
    fixed_ack(&mut drill, 21_000, &[]);
    drill.quietly();
    drill
}

/// When ACKs of ours were sent in the next `millis`, in ms from now.
fn repeats(drill: &mut Drill, millis: u64) -> Vec<u64> {
    let mut at = Vec::new();
    for milli in 1..=millis {
        let before = drill.sink.sent.len();
        drill.after_millis(1);
        at.extend(drill.sink.sent[before..].iter().map(|_| milli));
    }
    at
}

#[test]
fn restart_the_last_ack_is_repeated_when_a_mobile_host_that_sends_falls_silent() {
    let mut drill = modern();
    drill.after_millis(59).expect(&[]);
    drill.after_millis(1).expect(&["radio high ack 20000 agent"]);
    let ack = drill.last_sent(Side::RADIO).as_tcp().copied().expect("TCP");
    assert_eq!((ack.seq, ack.window, ack.flags), (Seq(7), 1000, Flags::ACK));
    // 20 kB in 0.1 s: at least 1.6 Mbit/s, of which 0.2 % pay for 72 bytes in 180 ms.
    drill.after_millis(179).expect(&[]);
    drill.after_millis(1).expect(&["radio high ack 20000 agent"]);
    assert!(drill.acted("RESTART"));
    assert_eq!(drill.statistics().probes, 2);
}

#[test]
fn restart_the_ack_repeats_timestamps_and_says_nothing_else() {
    let mut drill = Drill::modern();
    drill.timestamp = Some(40);
    handshake(&mut drill, (true, true));
    segments(&mut drill, 0..20);
    fixed_ack(&mut drill, 20_000, &[]);
    let original = drill.last_sent(Side::RADIO).as_tcp().copied().expect("TCP");
    drill.after_millis(100);
    let repeat = drill.last_sent(Side::RADIO).as_tcp().copied().expect("TCP");
    assert_eq!(repeat, original);
    assert_eq!(drill.statistics().probes, 1);
}

#[test]
fn restart_who_sends_more_after_the_ack_has_received_it() {
    let mut drill = modern();
    drill.after_millis(30);
    segments(&mut drill, [20]);
    drill.quietly().after_millis(5_000).expect(&[]);
    // Its ACK is one that may be lost.
    fixed_ack(&mut drill, 21_000, &[]);
    drill.quietly().after_millis(60).expect(&["radio high ack 21000 agent"]);
}

#[test]
fn restart_silence_ends_when_the_mobile_host_is_heard() {
    let mut drill = modern();
    drill.after_millis(500);
    segments(&mut drill, [20]);
    drill.quietly().after_millis(5_000).expect(&[]);
}

/// It has answered with data of its own, which the mobile host acknowledges: it was received.
#[test]
fn restart_an_ack_of_what_the_fixed_host_sent_shows_that_its_own_arrived() {
    let mut drill = modern();
    drill.data_with(7..107, |packet| {
        (tcp_mut(packet).seq, tcp_mut(packet).ack) = (Seq(7), Seq(21_000));
    });
    drill.after_millis(20).ack_with(0, |packet| tcp_mut(packet).ack = Seq(107));
    drill.quietly().after_millis(5_000).expect(&[]);
}

#[test]
fn restart_few_bytes_and_none_acknowledged_are_left_to_the_sender() {
    let mut drill = Drill::modern();
    handshake(&mut drill, (true, true));
    segments(&mut drill, 0..14);
    fixed_ack(&mut drill, 14_000, &[]);
    drill.quietly().after_millis(5_000).expect(&[]);
    let mut drill = Drill::modern();
    handshake(&mut drill, (true, true));
    segments(&mut drill, 0..20);
    drill.quietly().after_millis(5_000).expect(&[]);
    // The paper knows nothing of the kind.
    let mut drill = sending(Config::strict(), 20_000);
    drill.after_millis(5_000).expect(&[]);
}

/// Its own timeout is the faster way: it repairs a hole for each round trip.
#[test]
fn restart_a_sender_without_sack_is_left_to_its_timeout() {
    let mut drill = Drill::modern();
    handshake(&mut drill, (true, false));
    segments(&mut drill, 0..20);
    fixed_ack(&mut drill, 20_000, &[]);
    drill.quietly().after_millis(5_000).expect(&[]);
}

#[test]
fn restart_blocks_of_the_fixed_host_show_sack_where_the_handshake_was_not_seen() {
    for blocks in [&[][..], &[(18_000, 19_000)]] {
        let mut drill = Drill::modern();
        segments(&mut drill, 0..20);
        fixed_ack(&mut drill, 17_000, blocks);
        fixed_ack(&mut drill, 20_000, &[]);
        drill.quietly().after_millis(60);
        match blocks.is_empty() {
            true => drill.expect(&[]),
            false => drill.expect(&["radio high ack 20000 agent"]),
        };
    }
}

#[test]
fn mod_13_an_ack_that_only_the_fixed_host_can_make_is_not_repeated() {
    let mut drill = Drill::modern();
    handshake(&mut drill, (true, true));
    for number in 0..20 {
        let seq = drill.seq(number * 1000);
        up_with(&mut drill, number * 1000..number * 1000 + 1000, |packet| {
            tcp_mut(packet).seq = seq;
            tcp_mut(packet).options.push(&[kind::AUTHENTICATION, 4, 1, 1]).expect("room");
        });
    }
    fixed_ack(&mut drill, 20_000, &[]);
    drill.quietly().after_millis(5_000).expect(&[]);
}

#[test]
fn restart_pauses_grow_with_the_silence_sooner_after_the_end_of_what_was_written() {
    let config = |drill: &mut Drill| drill.agent.set_link_rate(sansio::BitRate::from_mbps(100));
    let mut drill = modern();
    config(&mut drill);
    let going_on = repeats(&mut drill, 60_000);
    let pauses: Vec<u64> = going_on.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!((going_on[0], pauses[0]), (60, 20));
    assert!((57..=60).contains(pauses.last().expect("many")), "{pauses:?}");
    let mut drill = modern_written();
    config(&mut drill);
    let written = repeats(&mut drill, 60_000);
    let pauses: Vec<u64> = written.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!((written[0], pauses[0]), (60, 20));
    assert!((1_700..=1_900).contains(pauses.last().expect("many")), "{pauses:?}");
    assert!(written.len() * 8 < going_on.len(), "{} {}", written.len(), going_on.len());
}

#[test]
fn restart_a_notice_of_the_links_return_repeats_what_it_may_have_taken_at_once() {
    for (down, up) in [
        (Notice::LinkDown(Side::RADIO), Notice::LinkUp(Side::RADIO)),
        (Notice::MobileDown(MOBILE.address), Notice::MobileUp(MOBILE.address)),
    ] {
        let mut drill = sending(Config::modern(), 19_000);
        drill.notice(down).after_millis(10);
        fixed_ack(&mut drill, 20_000, &[]);
        drill.quietly().after_millis(300).quietly();
        drill.notice(up).expect(&["radio high ack 20000 agent"]);
        // What had passed long before has arrived.
        let mut drill = modern();
        drill.after_millis(40).notice(down).notice(up).expect(&[]);
    }
    let mut drill = modern();
    drill.after_millis(100).quietly();
    drill.notice(Notice::LinkMayBeUp(Side::RADIO)).expect(&["radio high ack 20000 agent"]);
}

#[test]
fn restart_a_notice_of_one_mobile_host_is_none_of_another() {
    let mut drill = Drill::modern();
    let other = std::net::IpAddr::from([10, 0, 1, 9]);
    drill.ack_with(0, |packet| {
        packet.payload = Payload::Virtual { stream: sansio::StreamId(3), offset: 0, length: 1000 };
        packet.ip.source = other;
    });
    handshake(&mut drill, (true, true));
    segments(&mut drill, 0..20);
    drill.notice(Notice::MobileDown(MOBILE.address));
    fixed_ack(&mut drill, 20_000, &[]);
    drill.after_millis(10).quietly();
    drill.notice(Notice::MobileUp(other)).expect(&[]);
    drill.notice(Notice::MobileUp(MOBILE.address)).expect(&["radio high ack 20000 agent"]);
}

#[test]
fn restart_while_a_notice_says_that_the_link_is_down_acks_are_rare() {
    let mut drill = modern();
    drill.agent.set_link_rate(sansio::BitRate::from_mbps(100));
    drill.notice(Notice::LinkDown(Side::RADIO));
    let at = repeats(&mut drill, 10_000);
    assert!((9..=10).contains(&at.len()), "{at:?}");
}

/// Two connections of one host: the first that is heard wakes the other.
#[test]
fn restart_the_first_packet_of_a_host_wakes_its_other_flows() {
    let mut drill = modern();
    for number in 0..20 {
        drill.ack_with(0, |packet| {
            packet.payload =
                Payload::Virtual { stream: sansio::StreamId(3), offset: 0, length: 1000 };
            (tcp_mut(packet).source_port, tcp_mut(packet).seq) = (6000, Seq(number * 1000));
        });
    }
    let id = sansio::Sink::new_id(&mut drill.sink);
    let mut ack = crate::drill::segment(id, crate::drill::FIXED, MOBILE, Flags::ACK);
    (tcp_mut(&mut ack).destination_port, tcp_mut(&mut ack).ack) = (6000, Seq(20_000));
    let block = SackBlock { start: Seq(20_500), end: Seq(21_000) };
    tcp_mut(&mut ack).options.push_sack(&[block]);
    drill.arrive(Side::WIRED, ack);
    drill.after_millis(2_000).quietly();
    segments(&mut drill, [20]);
    drill.expect(&["wired 20000..21000", "radio high ack 19000 agent"]);
    assert_eq!(drill.last_sent(Side::RADIO).as_tcp().expect("TCP").destination_port, 6000);
    assert_eq!(drill.now.since(sansio::Instant::ZERO), Duration::from_millis(2_020));
}
