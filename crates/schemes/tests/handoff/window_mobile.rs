//! Window control at the mobile host (WINC-MH).

use crate::drill::{Drill, ack, data, ms};
use sansio::{Duration, Notice, Signal};
use schemes::window::mobile::{Agent, Config};
use wire::tcp::{Flags, Timestamps};

const WEAK: Notice = Notice::Signal(Signal::from_db(4));
const GOOD: Notice = Notice::Signal(Signal::from_db(6));

fn receiving(config: Config) -> Drill<Agent> {
    let mut drill = Drill::new(Agent::new(config));
    drill.air(&data(0, 1000)).host(&ack(1000)).skip();
    drill
}

#[test]
fn winc_mh_1_below_the_threshold_every_connection_that_receives_gets_one_closed_window() {
    let mut drill = receiving(Config::strict());
    let (mut other, mut answer) = (data(0, 10), ack(10));
    (other.port, answer.port) = (2, 2);
    let mut sends_only = data(0, 700);
    sends_only.port = 3;
    drill.air(&other).host(&answer).host(&sends_only).skip();
    drill.notice(Notice::Signal(Signal::from_db(5))).gives(&[]);
    drill.notice(WEAK).gives(&["radio ack 1000 win 0", "radio 2: ack 10 win 0"]);
    drill.notice(WEAK).gives(&[]);
    assert_eq!(drill.engine.statistics().closings, 1);
}

#[test]
fn winc_mh_2_the_closing_ack_has_the_hosts_own_number_and_timestamps() {
    let mut drill = receiving(Config::strict());
    let mut answer = ack(1500);
    answer.timestamps = Some(Timestamps { value: 9, echo: 8 });
    drill.air(&data(1000, 500)).host(&answer).skip();
    drill.notice(WEAK).gives(&["radio ack 1500 win 0 ts 9 8"]);
}

#[test]
fn winc_mh_3_the_signal_is_looked_at_every_100_ms_while_the_window_is_closed() {
    let mut drill = receiving(Config::strict());
    drill.notice(WEAK).skip().after(ms(250)).notice(GOOD).gives(&[]);
    drill.after(ms(50) - Duration::from_nanos(1)).gives(&[]);
    drill.after(Duration::from_nanos(1)).gives(&["radio ack 1000 win 50"]);
    assert!(!drill.engine.is_closed());
}

#[test]
fn winc_mh_4_the_window_opens_from_a_higher_threshold_to_what_the_host_offers() {
    for (signal, opens) in [(599, false), (600, true)] {
        let mut drill = receiving(Config::strict());
        drill.notice(WEAK).skip();
        drill.notice(Notice::Signal(Signal::from_centi_db(signal))).after(ms(100));
        drill.gives(if opens { &["radio ack 1000 win 50"] } else { &[] });
    }
}

#[test]
fn mod_6_the_opening_ack_is_repeated_until_data_comes_and_never_twice_the_same() {
    let mut drill = receiving(Config::modern());
    drill.notice(WEAK).skip().notice(GOOD).gives(&["radio ack 1000 win 41"]);
    drill.after(ms(100) - Duration::from_nanos(1)).gives(&[]);
    drill.after(Duration::from_nanos(1)).gives(&["radio ack 1000 win 42"]);
    drill.after(ms(200)).gives(&["radio ack 1000 win 43"]);
    drill.air(&data(1000, 1000)).skip().after(Duration::from_secs(3600)).gives(&[]);
    assert_eq!(drill.engine.statistics().unanswered, 0);
}

#[test]
fn mod_6_an_opening_ack_that_nobody_answers_is_repeated_ten_times() {
    let mut drill = receiving(Config::modern());
    drill.notice(WEAK).skip().notice(GOOD).after(Duration::from_secs(3600));
    let lines: Vec<String> =
        (41..=50).map(|window| format!("radio ack 1000 win {window}")).collect();
    drill.gives(&lines.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(drill.engine.statistics().unanswered, 1);
}

#[test]
fn winc_mh_7_what_is_under_way_reaches_the_host_and_every_answer_says_closed() {
    let mut drill = receiving(Config::modern());
    drill.notice(WEAK).skip();
    drill.air(&data(1000, 1000)).gives(&["host 1000..2000"]);
    drill.host(&ack(2000)).gives(&["radio ack 2000 win 0"]);
    // Data of the host's own says so, too.
    let mut answer = data(0, 300);
    answer.ack = 2000;
    drill.host(&answer).gives(&["radio 0..300"]);
    assert_eq!(drill.last().window, 0);
    drill.notice(GOOD).gives(&["radio ack 2000 win 41"]);
}

#[test]
fn winc_mh_7_segments_that_are_no_offer_of_a_window_pass_as_they_are() {
    let mut drill = receiving(Config::modern());
    drill.notice(WEAK).skip();
    let mut reset = ack(1000);
    reset.flags = Flags::RST.with(Flags::ACK);
    drill.host(&reset).gives(&["radio ack 1000 win 50 rst"]);
    let mut syn = ack(0);
    (syn.flags, syn.port) = (Flags::SYN.with(Flags::ACK), 9);
    drill.host(&syn).gives(&["radio 9: ack 0 win 50 syn"]);
}

#[test]
fn mod_5_a_host_without_room_opens_its_window_itself() {
    let mut drill = receiving(Config::modern());
    let mut full = ack(1000);
    full.window = 0;
    drill.notice(WEAK).skip().host(&full).skip().notice(GOOD).gives(&[]);
    drill.host(&ack(1000)).gives(&["radio ack 1000 win 50"]);
}

#[test]
fn snoop_gen_3_who_is_forgotten_does_not_stay_closed() {
    let mut drill = receiving(Config::modern());
    drill.notice(WEAK).skip().notice(Notice::Forget).gives(&["radio ack 1000 win 41"]);
    assert!(!drill.engine.is_closed());
}
