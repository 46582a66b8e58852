//! The cases.

use crate::support::{goodput, lab, run, setup};
use link::channel::{Config as Channel, packet_loss};
use link::outage::{self, Length, Mode, Planned, Schedule};
use live::lab::{Amount, Drill, DrillStep, LabRun, RunSetup};
use sansio::{Duration, Instant};
use std::path::Path;

/// A case.
pub(crate) type Case = (&'static str, fn());

/// All of them, in this order.
pub(crate) const ALL: &[Case] = &[
    ("a_plain_transfer_arrives_intact", a_plain_transfer_arrives_intact),
    ("snoop_with_one_percent_loss_is_at_least_as_fast_as_plain", snoop_with_loss),
    ("a_killed_daemon_leaves_the_transfer_going", a_killed_daemon_leaves_the_transfer_going),
    ("a_restarted_daemon_picks_the_flow_up", a_restarted_daemon_picks_the_flow_up),
    ("a_notified_outage_ends_within_a_round_trip", a_notified_outage),
    ("both_directions_at_once_for_a_duration", both_directions),
    ("leftovers_of_a_killed_run_are_removed", leftovers_are_removed),
    ("nothing_is_left_behind", nothing_is_left_behind),
];

fn a_plain_transfer_arrives_intact() {
    let mut lab = lab();
    let run = run(&mut lab, &setup("plain"));
    assert!(goodput(&run) > 7e6, "of 9.5 Mbit/s at best: {}", goodput(&run));
    assert_eq!(run.measures.transfers[0].delivered_bytes, 2_000_000, "as the radio saw it");
    assert!(run.daemon.is_none());
}

fn snoop_with_loss() {
    let lossy = |scheme: &str| {
        let mut setup = setup(scheme);
        let loss = Channel::PacketLoss(packet_loss::Config { probability: 0.01 });
        setup.air.radio.down.channels.push(loss);
        setup
    };
    let mut lab = lab();
    let plain = run(&mut lab, &lossy("plain"));
    let snoop = run(&mut lab, &lossy("snoop-modern"));
    assert!(plain.measures.lost > 5 && snoop.measures.lost > 5, "the radio loses packets");
    assert!(counted(&snoop, "retransmissions") > 0, "{:?}", snoop.daemon);
    assert!(snoop.measures.retransmissions_local > 0, "the radio sees them, too");
    assert!(goodput(&snoop) >= goodput(&plain));
}

/// 6 MB, so that there is a middle.
fn long(scheme: &str, drill: &[(u64, Drill)]) -> RunSetup {
    let mut setup = setup(scheme);
    setup.amount = Amount::Size(6_000_000);
    let step = |&(millis, what): &_| DrillStep { at: Duration::from_millis(millis), what };
    setup.drill = drill.iter().map(step).collect();
    setup
}

fn a_killed_daemon_leaves_the_transfer_going() {
    let run = run(&mut lab(), &long("snoop-modern", &[(2_000, Drill::Kill)]));
    let transfer = &run.measures.transfers[0];
    assert!(transfer.last_delivered_at > Instant::from_nanos(3_000_000_000), "{transfer:?}");
    assert!(transfer.stall < Duration::from_secs(1), "{}", transfer.stall);
    assert!(run.daemon.is_none());
}

fn a_restarted_daemon_picks_the_flow_up() {
    let drill = [(1_500, Drill::Kill), (2_500, Drill::Restart)];
    let run = run(&mut lab(), &long("snoop-modern", &drill));
    assert!(counted(&run, "cached") > 500, "{:?}", run.daemon);
    assert!(run.measures.transfers[0].stall < Duration::from_secs(1));
}

fn a_notified_outage() {
    let mut setup = setup("snoop-modern");
    let outage = outage::Spec {
        schedule: Schedule::At(vec![Planned {
            start: Instant::from_nanos(800_000_000),
            length: Length::fixed(Duration::from_millis(1_100)),
        }]),
        mode: Mode::Lose,
        notified: true,
    };
    setup.air.radio = setup.air.radio.with_outages(&outage);
    let run = run(&mut lab(), &setup);
    let stalls = &run.measures.transfers[0].stalls_after_outage;
    assert_eq!(stalls.len(), 1, "{stalls:?}");
    // The way to the mobile host and back, and on to the sender: 20 ms, and a packet's time.
    assert!(stalls[0] < Duration::from_millis(60), "{stalls:?}");
    assert!(counted(&run, "restart_retransmissions") > 0, "{:?}", run.daemon);
}

fn both_directions() {
    let mut setup = setup("snoop-modern");
    setup.direction = live::lab::Direction::Both;
    setup.amount = Amount::Duration(Duration::from_secs(1));
    let run = run(&mut lab(), &setup);
    assert_eq!(run.streams.len(), 2);
    for (stream, transfer) in run.streams.iter().zip(&run.measures.transfers) {
        assert!(stream.received_bytes > 300_000, "{stream:?}");
        assert!(transfer.delivered_bytes > 300_000, "{transfer:?}");
    }
}

fn leftovers_are_removed() {
    // No process has this number: it is above every possible one.
    let name = "lh-9999999-fh";
    let made = std::process::Command::new("ip").args(["netns", "add", name]).status();
    assert!(made.expect("ip runs").success());
    let own = lab();
    assert!(!Path::new("/run/netns").join(name).exists(), "the lab removed it on opening");
    let fixed = &own.network().names().fixed;
    assert!(!live::lab::clean().expect("clean").contains(fixed), "ours is in use");
    assert!(Path::new("/run/netns").join(fixed).exists());
}

fn counted(run: &LabRun, what: &str) -> u64 {
    let daemon = run.daemon.as_ref().expect("a daemon ran to the end");
    daemon["scheme"][what].as_u64().unwrap_or_else(|| panic!("{what} in {daemon}"))
}

fn nothing_is_left_behind() {
    let before = namespaces();
    let names = {
        let lab = lab();
        let names = lab.network().names().clone();
        assert!(names.all().iter().all(|name| Path::new("/run/netns").join(name).exists()));
        names
    };
    assert_eq!(namespaces(), before);
    assert!(names.all().iter().all(|name| name.starts_with("lh-")));
}

fn namespaces() -> Vec<String> {
    let Ok(entries) = std::fs::read_dir("/run/netns") else { return Vec::new() };
    let names = entries.map(|entry| entry.expect("an entry").file_name());
    let mut names: Vec<String> = names.map(|name| name.to_string_lossy().into_owned()).collect();
    names.sort();
    names
}
