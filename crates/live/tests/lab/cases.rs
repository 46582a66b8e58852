//! The cases.

use crate::direct::{Direct, Offloads};
use crate::support::{goodput, lab, run, run_shown, setup};
use link::channel::{Config as Channel, packet_loss};
use link::outage::{self, Length, Mode, Planned, Schedule};
use live::lab::{Amount, Drill, DrillStep, LabRun, Messages, RunSetup, Traffic};
use sansio::{Duration, Instant, Side};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use trace::{Observer, Record, What};

/// A case.
pub(crate) type Case = (&'static str, fn());

/// All of them, in this order.
pub(crate) const ALL: &[Case] = &[
    ("a_plain_transfer_arrives_intact", a_plain_transfer_arrives_intact),
    ("snoop_with_one_percent_loss_is_at_least_as_fast_as_plain", snoop_with_loss),
    ("a_killed_daemon_leaves_the_transfer_going", a_killed_daemon_leaves_the_transfer_going),
    ("a_restarted_daemon_picks_the_flow_up", a_restarted_daemon_picks_the_flow_up),
    ("a_notified_outage_ends_within_a_round_trip", a_notified_outage),
    ("an_outage_that_nobody_announces_ends_soon_after", an_outage_that_nobody_announces),
    ("both_directions_at_once_for_a_duration", both_directions),
    ("messages_take_a_one_way_delay_at_least", messages),
    ("messages_beside_a_transfer_end_with_it", messages_beside_a_transfer),
    ("two_labs_stand_side_by_side", two_labs_stand_side_by_side),
    ("super_packets_with_open_checksums_pass_the_daemon", super_packets),
    ("joined_frames_arrive_as_they_came", crate::joining::joined_frames_arrive_as_they_came),
    (
        "frames_that_find_no_room",
        crate::refusals::frames_that_find_no_room_are_refused_and_none_comes_twice,
    ),
    ("super_packets_leave_by_a_device_that_does_not_cut_them", super_packets_are_cut),
    ("a_daemon_that_loses_its_rules_ends", a_daemon_that_loses_its_rules_ends),
    ("other_protocols_are_the_kernels", other_protocols_are_the_kernels),
    ("tuned_settings_hold_for_one_run_only", tuned_settings_hold_for_one_run_only),
    ("a_link_that_holds_packets_loses_none_of_them", a_link_that_holds_packets),
    ("a_command_runs_at_the_mobile_host", a_command_runs_at_the_mobile_host),
    ("a_transfer_that_cannot_end_is_given_up_and_says_so", a_transfer_that_cannot_end),
    ("ctrl_c_ends_a_run_and_leaves_nothing", ctrl_c_ends_a_run_and_leaves_nothing),
    ("a_killed_lab_leaves_nothing_running_and_is_cleaned_up", a_killed_lab_is_cleaned_up),
    ("leftovers_of_a_killed_run_are_removed", leftovers_are_removed),
    ("nft_and_the_daemon_agree_to_the_packet", crate::verdicts::nft_and_the_daemon_agree),
    ("frames_pass_a_bridge_unchanged", crate::bridge::frames_pass_a_bridge_unchanged),
    ("tagged_frames_are_left_alone", crate::vlan::tagged_frames_are_left_alone),
    ("transfers_over_a_bridge_survive", crate::bridge::transfers_over_a_bridge_survive_the_daemon),
    ("a_bridge_remembers", crate::bridge::a_bridge_remembers_stations_whose_frames_are_taken),
    ("a_third_port_is_waited_out", crate::bridge::a_third_port_is_waited_out),
    ("the_fast_path_sees_data_and_takes_acks", crate::fast::sees_data_and_takes_acks),
    ("the_fast_path_repairs_what_the_radio_loses", crate::fast::repairs_what_the_radio_loses),
    ("the_back_end_is_chosen_by_measurement", crate::fast::chosen_by_measurement),
    ("the_fast_path_over_a_bridge_survives_kills", crate::fast::over_a_bridge),
    ("neighbours_share_the_radio_and_the_first_is_served", crate::several::the_first_is_served),
    ("a_daemon_that_looks_on_touches_nothing", crate::several::a_daemon_that_looks_on),
    ("a_ring_gives_frames_in_order_and_counts_what_it_loses", crate::fast::ring),
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
    let mut silence = Silence::default();
    let setup = long("snoop-modern", &[(2_000, Drill::Kill)]);
    let run = run_shown(&mut lab(), &setup, &mut silence);
    let transfer = &run.measures.transfers[0];
    assert!(transfer.last_delivered_at > Instant::from_nanos(3_000_000_000), "{transfer:?}");
    assert!(transfer.stall < Duration::from_secs(1), "{}", transfer.stall);
    assert!(run.daemon.is_none());
    println!("  longest silence on the radio: {}", silence.longest);
    assert!(silence.longest < Duration::from_millis(500), "{}", silence.longest);
}

/// The longest time without a packet from the base station, after the first second.
#[derive(Default)]
struct Silence {
    last: Instant,
    longest: Duration,
}

impl Observer for Silence {
    const ON: bool = true;

    fn record(&mut self, record: &Record<'_>) {
        if let What::Sent { side: Side::RADIO, .. } = record.what {
            if self.last > Instant::from_nanos(1_000_000_000) {
                self.longest = self.longest.max(record.at.since(self.last));
            }
            self.last = record.at;
        }
    }
}

fn a_restarted_daemon_picks_the_flow_up() {
    let drill = [(1_500, Drill::Kill), (2_500, Drill::Restart)];
    let run = run(&mut lab(), &long("snoop-modern", &drill));
    assert!(counted(&run, "cached") > 500, "{:?}", run.daemon);
    assert!(run.measures.transfers[0].stall < Duration::from_secs(1));
}

/// One outage of 1.1 s that loses packets; returns the run and its stall.
fn outage(scheme: &str, notified: bool) -> (LabRun, Duration) {
    let mut setup = setup(scheme);
    let start = Instant::from_nanos(800_000_000);
    let length = Length::fixed(Duration::from_millis(1_100));
    let planned = Planned { start, spread: Duration::ZERO, length };
    let schedule = Schedule::At(vec![planned]);
    let outage = outage::Spec { schedule, mode: Mode::Lose, notified };
    setup.air.radio = setup.air.radio.with_outages(&outage);
    let run = run(&mut lab(), &setup);
    let stalls = run.measures.transfers[0].stalls_after_outage.clone();
    println!("  stall after the outage: {stalls:?}");
    assert_eq!(stalls.len(), 1, "{stalls:?}");
    (run, stalls[0])
}

fn an_outage_that_nobody_announces() {
    let (run, stall) = outage("snoop-modern", false);
    assert!(counted(&run, "probes") > 10, "{:?}", run.daemon);
    // A round trip of 20 ms, up to 20 ms until the next probe, and some patience.
    assert!(stall < Duration::from_millis(150), "{stall}");
}

fn a_notified_outage() {
    let (run, stall) = outage("snoop-modern", true);
    // The way to the mobile host and back, and on to the sender: 20 ms, and a packet's time.
    assert!(stall < Duration::from_millis(60), "{stall}");
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

/// 500 bytes ten times a second.
const SMALL: Messages = Messages { size_bytes: 500, every: Duration::from_millis(100) };

fn messages() {
    let mut setup = setup("plain");
    setup.traffic = Traffic::Request(SMALL);
    setup.amount = Amount::Duration(Duration::from_millis(1_050));
    setup.direction = live::lab::Direction::Up;
    let run = run(&mut lab(), &setup);
    let transfer = &run.measures.transfers[0];
    assert_eq!(transfer.latencies.len(), 11, "one each tenth: {transfer:?}");
    // Twice 5 ms, and 552 bytes at 10 Mbit/s.
    let least = Duration::from_micros(10_441);
    assert!(transfer.latencies.iter().all(|latency| *latency >= least), "{transfer:?}");
    assert_eq!(Some(&transfer.stall), transfer.latencies.iter().max());
    let round_trip = Duration::from_millis(20);
    assert!(transfer.latencies[0] >= least + round_trip, "its connection first: {transfer:?}");
    assert_eq!(run.streams[0].sent_bytes, 11 * 500);
    println!("  {:?}, late by {:?}", transfer.latencies, run.streams[0].messages_late);
}

fn messages_beside_a_transfer() {
    let mut setup = setup("plain");
    setup.traffic = Traffic::BulkAndRequest(SMALL);
    setup.amount = Amount::Size(500_000);
    let run = run_shown(&mut lab(), &setup, &mut trace::Nothing);
    let [bulk, messages] = &run.measures.transfers[..] else { panic!("{run:?}") };
    assert!(bulk.complete && bulk.latencies.is_empty() && !messages.complete);
    let tenths = run.ended_at.as_nanos() / SMALL.every.as_nanos();
    assert!(messages.latencies.len() as u64 <= tenths + 1 && messages.latencies.len() > 2);
}

fn two_labs_stand_side_by_side() {
    std::thread::scope(|scope| {
        for lane in 0..2 {
            scope.spawn(move || {
                let mut setup = setup("snoop");
                setup.amount = Amount::Size(500_000);
                run(&mut crate::support::lab_in(lane), &setup)
            });
        }
    });
}

fn super_packets() {
    for offloads in [Offloads::On, Offloads::Off] {
        let direct = Direct::new(offloads);
        for scheme in [None, Some("plain"), Some("snoop-modern")] {
            let (received, bps, statistics) = direct.transfer(scheme, DIRECT_BYTES, &[]);
            assert_eq!(received.bytes, DIRECT_BYTES);
            println!("  offloads {offloads:?}, {scheme:?}: {:.2} Gbit/s", bps / 1e9);
            if scheme.is_some() {
                let packets = &statistics["packets"];
                assert_eq!(packets["invalid"], 0, "{statistics}");
                let taken = packets["taken"].as_u64().expect("a count");
                let segments = DIRECT_BYTES / 1_448;
                match offloads {
                    Offloads::On => assert!(taken < segments, "super-packets: {statistics}"),
                    Offloads::Off => assert!(taken >= segments, "{statistics}"),
                }
            }
        }
    }
}

/// Uploads that the radio's device has joined, by a wired device without segmentation offload.
fn super_packets_are_cut() {
    let direct = Direct::new(Offloads::On);
    live::sys::namespace::within(&direct.names().base, || live::sys::offload::switch_off("wired"))
        .expect("offloads can be switched off");
    let (agent, _) = direct.daemon();
    let sent = direct.upload(20_000_000).unwrap_or_else(|error| panic!("{error:#}"));
    let packets = agent.statistics().expect("statistics")["packets"].clone();
    let taken = packets["taken"].as_u64().expect("a count");
    assert!(taken < sent / 1_448, "super-packets: {packets}");
    assert_eq!(packets["refused"], 0, "{packets}");
}

fn a_daemon_that_loses_its_rules_ends() {
    let direct = Direct::new(Offloads::On);
    let (mut agent, nft) = direct.daemon();
    assert!(Command::new("kill").args(["-KILL", &nft]).status().expect("kill runs").success());
    let mut ended = None;
    for _ in 0..100 {
        ended = agent.ended();
        if ended.is_some() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let ended = ended.expect("it does not send every packet twice");
    assert!(ended.contains("nft has ended"), "{ended}");
}

fn other_protocols_are_the_kernels() {
    let direct = Direct::new(Offloads::On);
    let (agent, _) = direct.daemon();
    assert_eq!(direct.datagrams(20), 20);
    let statistics = agent.statistics().expect("statistics");
    assert_eq!(statistics["packets"]["left_to_kernel"], 0, "not even seen: {statistics}");
}

pub(crate) const DIRECT_BYTES: u64 = 200_000_000;

fn tuned_settings_hold_for_one_run_only() {
    let mut lab = lab();
    let fixed = lab.network().names().fixed.clone();
    let setting = |name: &str| {
        let read = || Ok(std::fs::read_to_string(format!("/proc/sys/net/ipv4/{name}"))?);
        let value = live::sys::namespace::within(&fixed, read).expect("a setting");
        value.trim().parse::<u32>().expect("a number")
    };
    let small = |scheme: &str| {
        let mut setup = setup(scheme);
        setup.amount = Amount::Size(200_000);
        setup.sack = false;
        setup
    };
    run(&mut lab, &small("plain-tuned"));
    assert_eq!((setting("tcp_rto_max_ms"), setting("tcp_rto_min_us")), (1_000, 20_000));
    assert_eq!(setting("tcp_sack"), 0);
    run(&mut lab, &RunSetup { sack: true, ..small("plain") });
    assert_eq!((setting("tcp_rto_max_ms"), setting("tcp_rto_min_us")), (120_000, 200_000));
    assert_eq!(setting("tcp_sack"), 1);
}

fn a_link_that_holds_packets() {
    let mut setup = setup("plain");
    let start = Instant::from_nanos(500_000_000);
    let length = Length::fixed(Duration::from_millis(150));
    let planned = Planned { start, spread: Duration::ZERO, length };
    let schedule = Schedule::At(vec![planned]);
    let outage = outage::Spec { schedule, mode: Mode::Hold, notified: false };
    setup.air.radio = setup.air.radio.with_outages(&outage);
    setup.window_bytes = Some(60_000);
    let run = run(&mut lab(), &setup);
    assert_eq!((run.measures.lost, run.measures.queue_full), (0, 0));
    let transfer = &run.measures.transfers[0];
    assert!(transfer.stall >= Duration::from_millis(150), "{transfer:?}");
    assert_eq!(transfer.receiver_stalls_after_outage.len(), 1, "{transfer:?}");
}

fn a_command_runs_at_the_mobile_host() {
    let program = crate::support::program(&["visit"]);
    let argv = [vec![program.path.into_os_string()], program.arguments].concat();
    let (status, _) = lab().run_command(&setup("plain"), &argv).expect("it runs");
    assert_eq!(status.code(), Some(crate::support::VISITED.into()));
}

fn a_transfer_that_cannot_end() {
    let mut setup = setup("plain");
    setup.patience = Duration::from_millis(300);
    let run = lab().run_one(&setup, &mut trace::Nothing).expect("a run that failed is a run");
    assert_eq!(run.failure.as_deref(), Some("not complete after 300ms"));
    assert!(run.streams[0].received_bytes < 1_000_000);
}

/// A lab in a process of its own, in the middle of a run.
fn running_lab() -> Child {
    let program = crate::support::program(&["long-run"]);
    let mut command = Command::new(program.path);
    let mut child = command.args(program.arguments).stdout(Stdio::piped()).spawn().expect("runs");
    let mut line = String::new();
    let output = child.stdout.as_mut().expect("a pipe");
    BufReader::new(output).read_line(&mut line).expect("it says something");
    assert_eq!(line, "running\n");
    std::thread::sleep(std::time::Duration::from_millis(700));
    child
}

fn ctrl_c_ends_a_run_and_leaves_nothing() {
    let mut child = running_lab();
    let own = format!("lh-{}-", child.id());
    assert_eq!(namespaces(&own).len(), 4);
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(killed.expect("kill runs").success());
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
    assert_eq!(namespaces(&own), [""; 0]);
}

fn a_killed_lab_is_cleaned_up() {
    let mut child = running_lab();
    let own = format!("lh-{}-", child.id());
    let base = format!("{own}bs");
    let inside = || {
        let output = Command::new("ip").args(["netns", "pids", &base]).output();
        String::from_utf8_lossy(&output.expect("ip runs").stdout).lines().count()
    };
    assert_eq!(inside(), 2, "the daemon and its nft");
    child.kill().expect("it can be killed");
    child.wait().expect("it ends");
    for _ in 0..100 {
        if inside() == 0 {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    assert_eq!(inside(), 0, "the daemon ends with its input, nft with the daemon");
    let removed = live::lab::clean().expect("clean").removed;
    assert!(removed.contains(&base), "{removed:?}");
    assert_eq!(namespaces(&own), [""; 0]);
}

fn leftovers_are_removed() {
    // No process has this number: it is above every possible one.
    let name = "lh-9999999-fh";
    let made = Command::new("ip").args(["netns", "add", name]).status();
    assert!(made.expect("ip runs").success());
    let own = lab();
    assert!(!Path::new("/run/netns").join(name).exists(), "the lab removed it on opening");
    let fixed = &own.network().names().fixed;
    let cleaned = live::lab::clean().expect("clean");
    assert!(!cleaned.removed.contains(fixed), "ours is in use");
    assert!(cleaned.kept.iter().any(|(name, _)| name == fixed), "{cleaned:?}");
    assert!(Path::new("/run/netns").join(fixed).exists());
}

pub(crate) fn counted(run: &LabRun, what: &str) -> u64 {
    let daemon = run.daemon.as_ref().expect("a daemon ran to the end");
    daemon["scheme"][what].as_u64().unwrap_or_else(|| panic!("{what} in {daemon}"))
}

fn nothing_is_left_behind() {
    let names = {
        let lab = lab();
        let names = lab.network().names().clone();
        assert!(names.all().iter().all(|name| Path::new("/run/netns").join(name).exists()));
        names
    };
    assert!(names.all().iter().all(|name| !Path::new("/run/netns").join(name).exists()));
    assert!(names.all().iter().all(|name| name.starts_with("lh-")));
}

/// The namespaces whose names begin so; other labs may run beside this one.
fn namespaces(own: &str) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir("/run/netns") else { return Vec::new() };
    let names = entries.map(|entry| entry.expect("an entry").file_name());
    let names = names.map(|name| name.to_string_lossy().into_owned());
    names.filter(|name| name.starts_with(own)).collect()
}
