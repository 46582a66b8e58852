//! Never worse than off: whatever hosts do to each other, they see the same with the daemon in the
//! path and without; nothing that anybody throws at it harms a connection; and it can be killed,
//! stopped, started and starved at any time.
//!
//! Needs what the lab needs: root, or user namespaces; fails without. Run as a program its
//! arguments select the cases whose name contains one of them. `soak LENGTH SEED` goes on with
//! random links and faults for so long (`make soak`). `answer` and `close` are helpers.
//!
//! Map: [`net`] (hosts and paths), [`variant`] (ways to run the daemon), [`stage`] (sockets and
//! notes), [`watch`] (what every packet obeys), [`exchanges`] (the table), [`compare`] (with and
//! without), [`scripts`] (one end by hand), [`hostile`] (packets that mean no good), [`drills`]
//! (kills, limits), [`crowd`] (thousands of flows), [`load`] (streams), [`soak`].

mod compare;
mod crowd;
mod drills;
mod exchanges;
mod hostile;
mod load;
mod net;
mod scripts;
mod soak;
mod stage;
mod variant;
mod watch;

use std::process::ExitCode;

/// A case.
type Case = (&'static str, fn());

const ALL: &[Case] = &[
    (
        "the_watch_finds_a_forged_ack_and_a_changed_syn",
        watch::the_watch_finds_a_forged_ack_and_a_changed_syn,
    ),
    ("exchanges_are_the_same_with_the_daemon", compare::on_a_clean_path),
    ("exchanges_are_the_same_on_a_path_that_loses_packets", compare::on_a_lossy_path),
    ("scripts_are_answered_the_same", scripts::scripts_are_answered_the_same),
    ("hostile_packets_harm_nobody", hostile::hostile_packets_harm_nobody),
    ("a_daemon_killed_at_random_instants_harms_no_stream", drills::killed_at_random_instants),
    ("a_router_becomes_a_bridge_under_load", drills::a_router_becomes_a_bridge_under_load),
    ("a_short_soak_harms_no_stream", soak::a_short_soak),
    ("limits_are_reached_and_harm_nobody", drills::limits_are_reached_and_harm_nobody),
    ("many_flows_and_half_open_ones_are_carried", crowd::many_flows_and_half_open_ones),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    // Helpers of this program's own, in its network already.
    match &arguments[..] {
        [first, rest @ ..] if first == "answer" => return end(crowd::answer(rest)),
        [first, rest @ ..] if first == "close" => return end(exchanges::close(rest)),
        _ => {}
    }
    if let Err(error) = live::lab::prepare() {
        return end(Err(error));
    }
    let missing = live::doctor::missing_for_lab();
    if !missing.is_empty() {
        eprintln!("this machine cannot run these tests:\n{missing}");
        return ExitCode::FAILURE;
    }
    match &arguments[..] {
        [first, rest @ ..] if first == "soak" => end(soak::run(rest)),
        _ => cases(&arguments),
    }
}

fn end(outcome: anyhow::Result<()>) -> ExitCode {
    let Err(error) = outcome else { return ExitCode::SUCCESS };
    eprintln!("{error:#}");
    ExitCode::FAILURE
}

/// Runs the cases that the arguments select.
fn cases(arguments: &[String]) -> ExitCode {
    let wanted: Vec<&String> =
        arguments.iter().filter(|argument| !argument.starts_with('-')).collect();
    let selected = |name: &str| wanted.is_empty() || wanted.iter().any(|part| name.contains(*part));
    let mut failed = 0;
    for (name, test) in ALL.iter().filter(|(name, _)| selected(name)) {
        let began = load::Stopwatch::start();
        let outcome = std::panic::catch_unwind(test);
        let (said, more) = if outcome.is_ok() { ("ok", 0) } else { ("FAILED", 1) };
        println!("test {name} ... {said} ({:.1} s)", began.elapsed().as_secs_f64());
        failed += more;
    }
    if failed > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
