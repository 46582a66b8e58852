//! `lasthop papers`: the papers' experiments, ours beside the published values.

mod entry;
mod text;

use crate::args::PapersArgs;
use crate::error::Error;
use crate::output::{self, outln};
use crate::progress::{Interrupt, bar};
use crate::rundir::unwritable;
use ::papers::{Content, PAPERS, Selected};
use entry::Entry;
use std::fs;
use std::path::Path;
use study::Stop;

const PAGE: &str = "papers.html";
const DOCUMENT: &str = "papers.json";

/// Runs what was asked for, judges it, prints it and writes it down.
pub(crate) fn papers(args: &PapersArgs, quiet: bool) -> Result<(), Error> {
    let experiments = papers::select(&PAPERS, &args.ids).map_err(|unknown| {
        Error::Usage(format!(
            "{unknown}: no experiment's ID begins so; `lasthop papers --list` has them all"
        ))
    })?;
    if args.list {
        return list(&experiments, args.json);
    }
    let selected = Selected::new(experiments, args.seeds).map_err(Error::usage)?;
    prepare(&args.out)?;
    let interrupt = Interrupt::listen();
    let stop = Stop::default();
    let bar = bar(selected.runs(), quiet);
    let results = interrupt.while_running(&stop, || {
        papers::run(&selected, args.jobs.map_or(0, usize::from), (&stop, || bar.inc(1)))
    });
    bar.finish_and_clear();
    let results = results.map_err(Error::usage)?;

    let entries = entry::all(&selected, &results);
    let figures: Vec<_> =
        entry::papers(&selected).into_iter().flat_map(|paper| (paper.figures)(&results)).collect();
    let json = serde_json::to_string_pretty(&entries).map_err(Error::usage)?;
    write(args, DOCUMENT, &json)?;
    for figure in &figures {
        write(args, &format!("{}.svg", figure.name), &report::figure::svg(figure))?;
    }
    let article = text::article(&selected, &results, (&entries, &figures));
    write(args, PAGE, &report::article::html(&article))?;
    if args.json {
        outln!("{json}");
    } else if args.markdown {
        output::print(format_args!("{}", report::article::markdown(&article.parts)));
    } else {
        text::print(&selected, &results, (&entries, !args.ids.is_empty()));
        outln!("\nPage and figures: {}", args.out.join(PAGE).display());
    }
    verdict(&entries, &results.failures(), stop.is_asked())
}

/// What there is.
fn list(
    experiments: &[(&'static papers::Paper, &'static papers::Experiment)],
    json: bool,
) -> Result<(), Error> {
    #[derive(serde::Serialize)]
    struct Listed {
        id: &'static str,
        title: &'static str,
        source: &'static str,
        needs: Option<&'static str>,
    }
    let listed = experiments.iter().map(|(_, one)| Listed {
        id: one.id,
        title: one.title,
        source: one.source,
        needs: match one.content {
            Content::Judged { .. } => None,
            Content::NotYet(needs) => Some(needs),
        },
    });
    let listed: Vec<Listed> = listed.collect();
    if json {
        outln!("{}", serde_json::to_string_pretty(&listed).map_err(Error::usage)?);
        return Ok(());
    }
    for one in listed {
        outln!("{:<16} {} ({})", one.id, one.title, one.source);
        if let Some(needs) = one.needs {
            outln!("{:<16} not yet: needs {needs}", "");
        }
    }
    Ok(())
}

/// Finds out before anything is run whether its results can be kept.
fn prepare(out: &Path) -> Result<(), Error> {
    let attempt = fs::create_dir_all(out).and_then(|()| {
        fs::write(out.join(DOCUMENT), b"")?;
        fs::remove_file(out.join(DOCUMENT))
    });
    attempt.map_err(|error| {
        Error::Usage(format!("--out {}: cannot write there: {error}", out.display()))
    })
}

fn write(args: &PapersArgs, name: &str, text: &str) -> Result<(), Error> {
    let path = args.out.join(name);
    fs::write(&path, text).map_err(|error| unwritable(&path, &error))
}

fn verdict(
    entries: &[Entry],
    broken_invariants: &[String],
    interrupted: bool,
) -> Result<(), Error> {
    if interrupted {
        return Err(Error::Interrupted);
    }
    if let Some(first) = broken_invariants.first() {
        let count = broken_invariants.len();
        return Err(Error::Failed(Some(format!("{count} invariants broken; first: {first}"))));
    }
    let contradicting = entries.iter().filter(|entry| entry.verdict.contradicts());
    let ids: Vec<&str> = contradicting.map(|entry| entry.id).collect();
    if ids.is_empty() {
        return Ok(());
    }
    let message = format!("not as published: {}; the reasons are beside them", ids.join(", "));
    Err(Error::Failed(Some(message)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::papers::Verdict;

    fn entry(id: &'static str, verdict: Verdict) -> Entry {
        Entry { verdict, ..Entry::waiting((id, "", ""), String::new()) }
    }

    #[test]
    fn only_a_contradiction_fails() {
        let fine = [Verdict::Within, Verdict::Holds, Verdict::NoTarget, Verdict::NotYet];
        let fine = fine.map(|verdict| entry("EXP-A", verdict));
        assert!(verdict(&fine, &[], false).is_ok());
        for contradiction in [Verdict::Outside, Verdict::Fails] {
            let entries = [entry("EXP-A", Verdict::Within), entry("EXP-B", contradiction)];
            let error = verdict(&entries, &[], false).expect_err("it contradicts");
            assert_eq!(error.code(), 1);
            assert!(error.message().is_some_and(|message| message.contains("EXP-B")));
            let error = verdict(&entries, &[], true).expect_err("interrupted first");
            assert_eq!(error.code(), 130);
        }
        let error = verdict(&fine, &["seed 3: bytes lost".into()], false);
        assert_eq!(error.expect_err("an invariant").code(), 1);
    }
}
