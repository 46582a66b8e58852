//! `lasthop compare` and `lasthop run`.

use crate::args::{CompareArgs, LinkArgs, OutputArgs, RunArgs};
use crate::error::Error;
use crate::output::outln;
use crate::progress::{Interrupt, bar};
use crate::{options, page, rundir, table};
use node::{Plan, Scenario};
use study::row::Document;
use study::{Comparison, Row, Stop, Validation};

pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What is said of rows: the advice, and how far the models of their senders can be trusted.
pub(crate) struct Judged {
    pub(crate) advice: String,
    pub(crate) validation: Vec<Validation>,
}

impl Judged {
    pub(crate) fn of(scenario: &Scenario, rows: &[Row]) -> Self {
        Judged { advice: study::advice(rows), validation: study::validation(scenario, rows) }
    }

    /// The rows of a scenario with what is said of them.
    pub(crate) fn document<'a>(&'a self, scenario: &'a Scenario, rows: &'a [Row]) -> Document<'a> {
        let Judged { advice, validation } = self;
        Document { version: VERSION, scenario, rows, advice, validation }
    }
}

/// A table of every scheme on this link, a report, and a sentence of advice.
pub(crate) fn compare(args: &CompareArgs, quiet: bool) -> Result<(), Error> {
    let (scenario, comparison) = measure(&args.link, &args.output, false, quiet)?;
    let judged = Judged::of(&scenario, &comparison.rows);
    let document = judged.document(&scenario, &comparison.rows);
    let report = args.output.out.join(rundir::REPORT);
    rundir::write_summary(&args.output.out, &document)?;
    page::write(&report, &scenario, &comparison.rows, &judged.advice)?;
    print(&args.output, &document)?;
    if !args.output.json {
        let validated = table::validated(&judged.validation).join("\n");
        outln!("\n{}\n\n{validated}\n\nReport: {}", judged.advice, report.display());
    }
    verdict(&comparison)
}

/// Every case with every seed; a folder per run, with its records if asked.
pub(crate) fn run(args: &RunArgs, quiet: bool) -> Result<(), Error> {
    let (scenario, comparison) = measure(&args.link, &args.output, args.trace, quiet)?;
    let judged = Judged::of(&scenario, &comparison.rows);
    let document = judged.document(&scenario, &comparison.rows);
    rundir::write_summary(&args.output.out, &document)?;
    print(&args.output, &document)?;
    if !args.output.json {
        let validated = table::validated(&judged.validation).join("\n");
        outln!("\n{validated}\n\nRuns: {}", args.output.out.display());
    }
    verdict(&comparison)
}

fn measure(
    link: &LinkArgs,
    output: &OutputArgs,
    text: bool,
    quiet: bool,
) -> Result<(Scenario, Comparison), Error> {
    let scenario = options::scenario(link)?;
    let cases = scenario.cases();
    for case in &cases {
        Plan::new(&scenario, case).map_err(Error::usage)?;
    }
    rundir::prepare(&output.out)?;
    let interrupt = Interrupt::listen();
    let stop = Stop::default();
    let bar = bar(cases.len() as u64 * u64::from(scenario.seeds), quiet);
    let comparison = interrupt.while_running(&stop, || {
        study::compare(&scenario, &cases, output.jobs(), (&stop, || bar.inc(1)))
    });
    bar.finish_and_clear();
    let comparison = comparison.map_err(Error::usage)?;
    let trace = rundir::Trace { text, pcap: output.pcap };
    rundir::write_runs(&output.out, &scenario, &comparison.rows, trace)?;
    Ok((scenario, comparison))
}

pub(crate) fn print(output: &OutputArgs, document: &Document<'_>) -> Result<(), Error> {
    if output.json {
        let text = serde_json::to_string_pretty(document).map_err(Error::usage)?;
        outln!("{text}");
    } else {
        table::print(document.rows);
    }
    Ok(())
}

pub(crate) fn verdict(comparison: &Comparison) -> Result<(), Error> {
    if !comparison.complete {
        return Err(Error::Interrupted);
    }
    let failed: Vec<&String> = comparison.rows.iter().flat_map(|row| &row.checks.0).collect();
    match failed.first() {
        None => Ok(()),
        Some(first) => {
            Err(Error::Failed(Some(format!("{} invariants broken; first: {first}", failed.len()))))
        }
    }
}
