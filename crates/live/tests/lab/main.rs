//! The lab, really run: kernels in network namespaces, the emulated radio, the daemon.
//!
//! Needs root or user namespaces; a machine that has neither fails these tests with the doctor's
//! message. Run as a program: with `daemon` as first argument it is the daemon, with `visit` a
//! guest of the lab, with `long-run` a lab that somebody will end; otherwise its arguments select
//! the tests whose name contains one of them.

mod bridge;
mod cases;
mod direct;
mod fast;
mod joining;
mod refusals;
mod several;
mod support;
mod verdicts;
mod vlan;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some("daemon") => return support::daemon(&arguments[1..]),
        Some("visit") => return support::visit(),
        _ => {}
    }
    if let Err(error) = live::lab::prepare() {
        eprintln!("{error:#}");
        return ExitCode::FAILURE;
    }
    if arguments.first().is_some_and(|first| first == "long-run") {
        return support::long_run();
    }
    let wanted: Vec<&String> =
        arguments.iter().filter(|argument| !argument.starts_with('-')).collect();
    let selected = |name: &str| wanted.is_empty() || wanted.iter().any(|part| name.contains(*part));
    let mut failed = 0;
    for (name, test) in cases::ALL.iter().filter(|(name, _)| selected(name)) {
        let clock = live::sys::Clock::starting_now();
        let outcome = std::panic::catch_unwind(test);
        let seconds = clock.now().as_secs_f64();
        match outcome {
            Ok(()) => println!("test {name} ... ok ({seconds:.1} s)"),
            Err(_) => {
                println!("test {name} ... FAILED ({seconds:.1} s)");
                failed += 1;
            }
        }
    }
    if failed > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
