//! `lasthop`: what each scheme would do for a last hop that is lossy and moves.
//!
//! Data goes to stdout, progress and messages to stderr. Exit codes: 0 done, 1 a check or verdict
//! failed, 2 bad input (nothing was started), 3 the machine cannot do it, 130 interrupted.

mod args;
mod assess;
mod bench;
mod captured;
mod compare;
mod daemon;
mod doctor;
mod error;
mod kept;
mod lab;
mod list;
mod man;
mod options;
mod oracle;
mod output;
mod page;
mod papers;
mod progress;
mod recordings;
mod rundir;
mod sweep;
mod table;
mod view;

use crate::output::errln;
use args::{Arguments, Bench, Command, Oracle, Scenario};
use clap::FromArgMatches;
use error::Error;
use std::process::ExitCode;

fn main() -> ExitCode {
    let matches = args::command().get_matches();
    let arguments = Arguments::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            if let Some(message) = error.message() {
                errln!("lasthop: {message}");
            }
            ExitCode::from(error.code())
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), Error> {
    match &arguments.command {
        Command::Compare(compare) => compare::compare(compare, arguments.quiet),
        Command::Run(run) => compare::run(run, arguments.quiet),
        Command::View(options) => view::view(options),
        Command::Sweep(args) => sweep::sweep(args, arguments.quiet),
        Command::Lab(lab) => lab::lab(lab, arguments.quiet),
        Command::Papers(papers) => papers::papers(papers, arguments.quiet),
        Command::Daemon(daemon) => daemon::daemon(daemon),
        Command::Top(options) => daemon::top::top(options),
        Command::Doctor(options) => doctor::doctor(options),
        Command::Man { dir } => man::write(dir),
        Command::Scenario(Scenario::Check { file }) => options::check(file),
        Command::Schemes { json } => list::schemes(*json),
        Command::Bench(Bench::Sim(options)) => bench::sim(options),
        Command::Bench(Bench::Handoffs(options)) => bench::handoffs(options),
        Command::Assess(assess) => assess::assess(assess, arguments.quiet),
        Command::Oracle(Oracle::Ns2Tcp(options)) => oracle::ns2_tcp(options),
    }
}
