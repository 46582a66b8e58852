//! `lasthop lab`.
//!
//! Map: here what is asked and what is shown, [`runs`] (all cases with all seeds, a folder each).

mod runs;

use crate::args::{LabArgs, LabCommand};
use crate::compare::{Judged, print, verdict};
use crate::error::Error;
use crate::output::{errln, outln};
use crate::progress::bar;
use crate::{options, page, rundir, table};
use live::lab::network::MOBILES_MAX;
use live::lab::{self, Lab, Program, RunSetup, Stopped};
use live::{doctor, radio};
use node::plan::NotSimulated;
use node::scenario::{
    Amount, Departures, Direction, Handoff, Hosts, Outage, Served, Size, Switch, Time, Told,
    Traffic,
};
use node::{Case, Plan, Scenario};
use sansio::Duration;
use schemes::stack;
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use study::row::Row;
use study::{Comparison, Stop};

/// Every case in the lab, the simulator's prediction beside it.
pub(crate) fn lab(args: &LabArgs, quiet: bool) -> Result<(), Error> {
    if let Some(LabCommand::Clean) = args.what {
        return clean();
    }
    let scenario = options::scenario(&args.link)?;
    let cases = scenario.cases();
    let setups: Vec<RunSetup> =
        cases.iter().map(|case| setup(&scenario, case, scenario.seed)).collect::<Result<_, _>>()?;
    for setup in &setups {
        let name = setup.sender.name();
        doctor::congestion_control(name).map_err(|error| {
            Error::Machine(format!("--tcp {name}: {error:#}; fix: modprobe tcp_{name}"))
        })?;
    }
    if args.command.is_empty() {
        rundir::prepare(&args.output.out)?;
    }
    lab::prepare().map_err(stopped)?;
    // The last hop is a radio: nothing has to show that first.
    let words = ["daemon", "base-station", "--help-from", "first-packet"];
    let mut arguments: Vec<OsString> = words.map(OsString::from).to_vec();
    if scenario.recorded.down_capacity.is_none() {
        // What departs from the daemon is not what goes onto the air: that is the radio's to say.
        // A recorded capacity is no one rate; then the daemon measures.
        arguments.extend(["--radio-rate", &scenario.rate.to_string()].map(OsString::from));
    }
    let program = Program {
        path: std::env::current_exe().map_err(|error| Error::Machine(error.to_string()))?,
        arguments,
    };
    if !args.command.is_empty() {
        let mut lab = Lab::open(0, program).map_err(stopped)?;
        return command(&mut lab, &setups, &args.command);
    }
    let bar = bar(cases.len() as u64 * u64::from(scenario.seeds), quiet);
    let work = runs::Work {
        program: &program,
        scenario: &scenario,
        cases: &cases,
        out: &args.output.out,
        trace: rundir::Trace { text: args.trace, pcap: args.output.pcap },
        bar: &bar,
    };
    let measured = work.measure(args.output.jobs());
    bar.finish_and_clear();
    let measured = measured?;
    let comparison = with_predictions(&scenario, &cases, measured.rows, measured.complete, args)?;
    let judged = Judged::of(&scenario, &comparison.rows);
    let document = judged.document(&scenario, &comparison.rows);
    rundir::write_summary(&args.output.out, &document)?;
    let mut remarks = table::radio_remarks(&comparison.rows);
    remarks.extend(unmodelled(&scenario, &cases));
    remarks.extend(table::validated(&judged.validation));
    let report = args.output.out.join(rundir::REPORT);
    let shown = page::Lab {
        timelines: &measured.timelines,
        predicted: !args.no_prediction,
        remarks: &remarks,
        runs: &measured.with_packets,
    };
    page::write_lab(&report, &scenario, &comparison.rows, (&judged.advice, &shown))?;
    print(&args.output, &document)?;
    if !args.output.json {
        let remarks: String = remarks.iter().map(|remark| format!("{remark}\n")).collect();
        outln!("\n{remarks}\n{}\n\nReport: {}", judged.advice, report.display());
    }
    verdict(&comparison)
}

/// Puts the simulator's row behind each row of the lab whose sender and scheme have a model.
fn with_predictions(
    scenario: &Scenario,
    cases: &[Case],
    measured: Vec<Option<Row>>,
    complete: bool,
    args: &LabArgs,
) -> Result<Comparison, Error> {
    let has_model = |case: &&Case| Plan::new(scenario, case).is_ok() && !args.no_prediction;
    let modelled: Vec<Case> = cases.iter().filter(has_model).cloned().collect();
    // The daemon does not see the radio's queue.
    let scenario = Scenario { departures: Departures::Device, ..scenario.clone() };
    let predicted =
        study::compare(&scenario, &modelled, args.output.jobs(), (&Stop::default(), || ()));
    let mut predicted = predicted.map_err(Error::usage)?.rows.into_iter();
    let mut rows = Vec::new();
    for (case, row) in cases.iter().zip(measured) {
        let prediction = if modelled.contains(case) { predicted.next() } else { None };
        if let Some(row) = row {
            rows.push(row);
            rows.extend(prediction);
        }
    }
    study::mobiles::hold_against_plain(&mut rows);
    Ok(Comparison { rows, complete })
}

/// A line for cases without a model.
fn unmodelled(scenario: &Scenario, cases: &[Case]) -> Option<String> {
    let mut without: Vec<String> = Vec::new();
    for reason in cases.iter().filter_map(|case| Plan::new(scenario, case).err()) {
        let name = match reason {
            NotSimulated::Sack(sender) => format!("{sender} without SACK"),
            NotSimulated::Hosts(name) => name.to_owned(),
            NotSimulated::Scheme(name) => name,
        };
        if !without.contains(&name) {
            without.push(name);
        }
    }
    let names = without.join(", ");
    let why = "the simulator has no model of it yet";
    (!without.is_empty()).then(|| format!("No prediction for {names}: {why}."))
}

/// Removes what killed runs left behind, and says what.
fn clean() -> Result<(), Error> {
    let cleaned = lab::clean().map_err(stopped)?;
    for name in &cleaned.removed {
        outln!("removed {name}");
    }
    for same in cleaned.kept.chunk_by(|(_, why), (_, other)| why == other) {
        let (name, why) = &same[0];
        let more = match same.len() - 1 {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        outln!("kept {name}{more}: {why}");
    }
    if cleaned.removed.is_empty() {
        outln!("nothing to remove");
    }
    Ok(())
}

/// Brings the network up as the first case has it and runs somebody else's program.
fn command(lab: &mut Lab, setups: &[RunSetup], command: &[OsString]) -> Result<(), Error> {
    let setup = setups.first().ok_or_else(|| Error::usage("nothing to run"))?;
    let (status, lateness) = lab.run_command(setup, command).map_err(stopped)?;
    errln!("lasthop: {lateness}");
    match status.code().or_else(|| status.signal().map(|signal| 128 + signal)) {
        Some(0) => Ok(()),
        code => Err(Error::Passed(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1))),
    }
}

/// A case as the lab takes it.
pub(crate) fn setup(scenario: &Scenario, case: &Case, seed: u64) -> Result<RunSetup, Error> {
    if scenario.hosts == Hosts::Bsd1995 {
        let message = "--hosts 1995: the lab has this machine's kernel; use hosts = modern";
        return Err(Error::Usage(message.into()));
    }
    if scenario.mobiles > MOBILES_MAX {
        let message = format!("the lab has up to {MOBILES_MAX}; compare more in the simulator");
        return Err(Error::Usage(format!("--mobiles {}: {message}", scenario.mobiles)));
    }
    check_worlds(case)?;
    let sender = case.sender.in_kernel().and_then(lab::Sender::from_name);
    let sender = sender.ok_or_else(|| {
        let message = "not a kernel's; the lab has reno, cubic, linux, bbr and vegas";
        Error::Usage(format!("--tcp {}: {message}", case.sender))
    })?;
    let plan = Plan::for_lab(scenario, case);
    let default_window = Scenario::complete(node::Draft::default()).map(|one| one.window);
    Ok(RunSetup {
        air: radio::Config { wired: plan.wired.clone(), radio: plan.radio.clone(), seed },
        scheme: case.scheme.clone(),
        sender,
        sack: case.sack == Switch::On,
        timestamps: plan.tcp.timestamps,
        direction: match case.direction {
            Direction::Down => lab::Direction::Down,
            Direction::Up => lab::Direction::Up,
            Direction::Both => lab::Direction::Both,
        },
        traffic: traffic(scenario.traffic),
        amount: match scenario.amount {
            Amount::Size(size) => lab::Amount::Size(size.0),
            Amount::Duration(duration) => lab::Amount::Duration(duration.0),
        },
        mobiles: scenario.mobiles,
        serves_first: scenario.served == Served::First,
        mss: (scenario.mss.0 != 1460).then_some(scenario.mss.0 as u16),
        window_bytes: (Ok(scenario.window) != default_window).then_some(scenario.window.0 as u32),
        patience: plan.until.min(PATIENCE_MAX),
        drill: Vec::new(),
    })
}

/// What is simulated only, the lab refuses.
fn check_worlds(case: &Case) -> Result<(), Error> {
    let layers = stack::layers(&case.scheme).unwrap_or_default();
    let is_stack = layers.len() > 1;
    if let Some(layer) = layers.iter().find(|layer| is_stack || !layer.worlds.live()) {
        let message = "runs in the simulator only; the lab has nothing at the mobile host yet";
        let name = if is_stack { &case.scheme } else { layer.name };
        return Err(Error::Usage(format!("--schemes {name}: {message}")));
    }
    if case.handoff != Handoff::None {
        let message = "the lab has one base station; compare in the simulator";
        return Err(Error::Usage(format!("--handoff {}: {message}", case.handoff)));
    }
    if let Outage::Every { told: Told::Warned(_), .. } | Outage::At { told: Told::Warned(_), .. } =
        case.outage
    {
        let message = "nobody in the lab is warned; use notified, or compare in the simulator";
        return Err(Error::Usage(format!("--outage {}: {message}", case.outage)));
    }
    Ok(())
}

fn traffic(traffic: Traffic) -> lab::Traffic {
    let messages = |size: Size, every: Time| lab::Messages { size_bytes: size.0, every: every.0 };
    match traffic {
        Traffic::Bulk => lab::Traffic::Bulk,
        Traffic::Request { size, every } => lab::Traffic::Request(messages(size, every)),
        Traffic::BulkAndRequest { size, every } => {
            lab::Traffic::BulkAndRequest(messages(size, every))
        }
    }
}

/// No run of the lab takes longer: its time is real.
const PATIENCE_MAX: Duration = Duration::from_secs(600);

fn stopped(error: anyhow::Error) -> Error {
    match error.downcast_ref::<Stopped>() {
        Some(Stopped::Interrupted) => Error::Interrupted,
        Some(Stopped::Unable(why)) => Error::Machine(format!("this machine cannot do it:\n{why}")),
        None => Error::Machine(format!("{error:#}")),
    }
}
