//! `lasthop lab` and `lasthop doctor`.

use crate::args::LabArgs;
use crate::compare::{VERSION, print, verdict};
use crate::error::Error;
use crate::progress::bar;
use crate::{options, page, rundir};
use core::sync::atomic::{AtomicUsize, Ordering};
use live::lab::{self, Lab, LabRun, Program, RunSetup, Stopped};
use live::radio;
use node::scenario::{Amount, Direction, Hosts, PLAIN_TUNED, Switch, Traffic};
use node::{Case, Plan, Scenario};
use sansio::Duration;
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use study::row::{Document, Row, Sample, World};
use study::{Comparison, Stop};

/// Every case in the lab, the simulator's prediction beside it.
pub(crate) fn lab(args: &LabArgs, quiet: bool) -> Result<(), Error> {
    let scenario = options::scenario(&args.link)?;
    let cases = scenario.cases();
    let setups: Vec<RunSetup> =
        cases.iter().map(|case| setup(&scenario, case, scenario.seed)).collect::<Result<_, _>>()?;
    if args.command.is_empty() {
        rundir::prepare(&args.output.out)?;
    }
    lab::prepare().map_err(stopped)?;
    let program = Program {
        path: std::env::current_exe().map_err(|error| Error::Machine(error.to_string()))?,
        // What departs from the daemon is not what goes onto the air: that is the radio's to say.
        arguments: ["daemon", "base-station", "--radio-rate", &scenario.rate.to_string()]
            .map(OsString::from)
            .to_vec(),
    };
    if !args.command.is_empty() {
        let mut lab = Lab::open(0, program).map_err(stopped)?;
        return command(&mut lab, &setups, &args.command);
    }
    let runs = cases.len() as u64 * u64::from(scenario.seeds);
    let bar = bar(runs, quiet);
    let lanes = args.output.jobs.clamp(1, LANES_MAX).min(runs as usize);
    let measured = measure(&program, &scenario, &cases, (lanes, &bar));
    bar.finish_and_clear();
    let comparison = with_predictions(&scenario, &cases, measured?, args)?;
    let advice = study::advice(&comparison.rows);
    let document =
        Document { version: VERSION, scenario: &scenario, rows: &comparison.rows, advice: &advice };
    rundir::write_summary(&args.output.out, &document)?;
    let report = args.output.out.join("report.html");
    page::write_lab(&report, &scenario, &comparison.rows, &advice)?;
    print(&args.output, &document)?;
    if !args.output.json {
        println!("{}\n{advice}\n\nReport: {}", unmodelled(&scenario), report.display());
    }
    verdict(&comparison)
}

/// What was measured, and whether it is all.
struct Measured {
    rows: Vec<Option<Row>>,
    complete: bool,
}

/// Labs side by side at most: they share the machine's cores, and what is late is no longer true.
const LANES_MAX: usize = 16;

/// A run that is done: the number of its case, and what came of it.
type Done = (usize, Sample);

/// All cases with all seeds, the seeds outermost, so that what changes on the machine meets every
/// case; `lanes` networks side by side take one run after the other from the common list.
fn measure(
    program: &Program,
    scenario: &Scenario,
    cases: &[Case],
    (lanes, bar): (usize, &indicatif::ProgressBar),
) -> Result<Measured, Error> {
    let seeds = (0..u64::from(scenario.seeds)).map(|n| scenario.seed + n);
    let runs: Vec<(u64, usize)> =
        seeds.flat_map(|seed| (0..cases.len()).map(move |case| (seed, case))).collect();
    let next = AtomicUsize::new(0);
    let lane = |lane: u32| -> (Vec<Done>, Result<(), Error>) {
        let mut done = Vec::new();
        let ended = run_lane(
            lane,
            program,
            &mut || {
                let &(seed, case) = runs.get(next.fetch_add(1, Ordering::Relaxed))?;
                Some((case, seed, setup(scenario, &cases[case], seed)))
            },
            &mut |case, seed, ran| {
                done.push((case, sample(scenario, seed, ran)));
                bar.inc(1);
            },
        );
        // Whoever is interrupted or cannot go on ends the others, too.
        if ended.is_err() {
            next.store(runs.len(), Ordering::Relaxed);
        }
        (done, ended)
    };
    let ended: Vec<(Vec<Done>, Result<(), Error>)> = std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..lanes as u32).map(|number| scope.spawn(move || lane(number))).collect();
        threads.into_iter().filter_map(|thread| thread.join().ok()).collect()
    });
    let mut samples: Vec<Vec<Sample>> = vec![Vec::new(); cases.len()];
    let mut complete = ended.len() == lanes;
    for (done, result) in ended {
        for (case, sample) in done {
            samples[case].push(sample);
        }
        match result {
            Ok(()) => {}
            Err(Error::Interrupted) => complete = false,
            Err(other) => return Err(other),
        }
    }
    let row = |(case, mut samples): (&Case, Vec<Sample>)| {
        samples.sort_by_key(|sample| sample.seed);
        let plan = Plan::for_lab(scenario, case);
        (!samples.is_empty()).then(|| Row::new(case, &plan, World::Lab, samples))
    };
    Ok(Measured { rows: cases.iter().zip(samples).map(row).collect(), complete })
}

/// One network, for one run after the other.
fn run_lane(
    lane: u32,
    program: &Program,
    next: &mut dyn FnMut() -> Option<(usize, u64, Result<RunSetup, Error>)>,
    done: &mut dyn FnMut(usize, u64, LabRun),
) -> Result<(), Error> {
    let mut lab = Lab::open(lane, program.clone()).map_err(stopped)?;
    while let Some((case, seed, setup)) = next() {
        let ran = lab.run_one(&setup?, &mut trace::Nothing).map_err(stopped)?;
        done(case, seed, ran);
    }
    Ok(())
}

fn sample(scenario: &Scenario, seed: u64, ran: LabRun) -> Sample {
    let finished = match scenario.amount {
        Amount::Size(_) => ran.measures.transfers.iter().all(|transfer| transfer.complete),
        Amount::Duration(_) => true,
    };
    Sample {
        seed,
        seconds: ran.ended_at.as_secs_f64(),
        finished,
        measures: ran.measures,
        failures: ran.failure.into_iter().collect(),
    }
}

/// Puts the simulator's row behind each row of the lab whose sender and scheme have a model.
fn with_predictions(
    scenario: &Scenario,
    cases: &[Case],
    measured: Measured,
    args: &LabArgs,
) -> Result<Comparison, Error> {
    let has_model = |case: &&Case| Plan::new(scenario, case).is_ok() && !args.no_prediction;
    let modelled: Vec<Case> = cases.iter().filter(has_model).cloned().collect();
    let predicted =
        study::compare(scenario, &modelled, args.output.jobs, (&Stop::default(), || ()));
    let mut predicted = predicted.map_err(Error::usage)?.rows.into_iter();
    let mut rows = Vec::new();
    for (case, row) in cases.iter().zip(measured.rows) {
        let prediction = if modelled.contains(case) { predicted.next() } else { None };
        if let Some(row) = row {
            rows.push(row);
            rows.extend(prediction);
        }
    }
    Ok(Comparison { rows, complete: measured.complete })
}

/// A line for senders and schemes without a model.
fn unmodelled(scenario: &Scenario) -> String {
    let mut without: Vec<&str> = Vec::new();
    for sender in scenario.tcp.0.iter().filter(|sender| sender.simulated().is_none()) {
        without.push(sender.name());
    }
    if scenario.schemes.0.iter().any(|scheme| scheme == PLAIN_TUNED) {
        without.push(PLAIN_TUNED);
    }
    if without.is_empty() {
        String::new()
    } else {
        format!(
            "\nNo prediction for {}: the simulator has no model of it yet.\n",
            without.join(", ")
        )
    }
}

/// Brings the network up as the first case has it and runs somebody else's program.
fn command(lab: &mut Lab, setups: &[RunSetup], command: &[OsString]) -> Result<(), Error> {
    let setup = setups.first().ok_or_else(|| Error::usage("nothing to run"))?;
    let (status, lateness) = lab.run_command(setup, command).map_err(stopped)?;
    eprintln!("lasthop: {lateness}");
    match status.code().or_else(|| status.signal().map(|signal| 128 + signal)) {
        Some(0) => Ok(()),
        code => Err(Error::Passed(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1))),
    }
}

/// A case as the lab takes it.
fn setup(scenario: &Scenario, case: &Case, seed: u64) -> Result<RunSetup, Error> {
    if scenario.traffic != Traffic::Bulk {
        return Err(Error::Usage(
            "--traffic: the lab has bulk traffic only; use -- COMMAND".into(),
        ));
    }
    if scenario.hosts == Hosts::Bsd1995 {
        let message = "--hosts 1995: the lab has this machine's kernel; use hosts = modern";
        return Err(Error::Usage(message.into()));
    }
    let sender = case.sender.in_kernel().and_then(lab::Sender::from_name);
    let sender = sender.ok_or_else(|| {
        let message = "the lab has the kernel's senders: reno, cubic, bbr";
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
        amount: match scenario.amount {
            Amount::Size(size) => lab::Amount::Size(size.0),
            Amount::Duration(duration) => lab::Amount::Duration(duration.0),
        },
        mss: (scenario.mss.0 != 1460).then_some(scenario.mss.0 as u16),
        window_bytes: (Ok(scenario.window) != default_window).then_some(scenario.window.0 as u32),
        patience: plan.until.min(PATIENCE_MAX),
        drill: Vec::new(),
    })
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

/// What the machine can do.
pub(crate) fn doctor(json: bool) -> Result<(), Error> {
    let report = live::doctor::examine();
    if json {
        println!("{}", serde_json::to_string_pretty(&report).map_err(Error::usage)?);
    } else {
        print!("{report}");
    }
    if report.can_run_lab() {
        Ok(())
    } else {
        Err(Error::Machine("this machine cannot run the lab; what to do is above".into()))
    }
}
