//! `lasthop view`: the page of a comparison or of one run, or drawings for a paper, from what was
//! kept of it. The simulator's runs are not read from traces but played again: the same scenario
//! and seed give the same records, and the manifest says whether they did. The lab's are read from
//! their captures ([`captured`]).

use crate::args::ViewArgs;
use crate::captured::{self, Measured};
use crate::error::Error;
use crate::kept::{self, Comparison, Kept, Run};
use crate::output::{errln, outln};
use crate::page::{self, Played};
use crate::rundir::{self, unwritable};
use node::{Case, Plan, Scenario};
use report::page::Panel;
use report::svg::Plot;
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use study::World;

/// Writes the page, or the drawings asked for, and says where they are.
pub(crate) fn view(args: &ViewArgs) -> Result<(), Error> {
    let kept = Kept::read(&args.dir)?;
    let plots = args.svg.iter().map(|name| plot(name)).collect::<Result<Vec<Plot>, Error>>()?;
    let out = args.out.as_ref().unwrap_or(&args.dir);
    std::fs::create_dir_all(out).map_err(|error| unwritable(out, &error))?;
    let paths = match &kept {
        Kept::Run(run) if run.manifest.world == World::Lab => {
            let measured = captured::of_run(&args.dir, run)?;
            if plots.is_empty() {
                let path = out.join(rundir::REPORT);
                page::write_lab_run(&path, run, &measured)?;
                vec![path]
            } else {
                draw_measured(out, &run.scenario, &measured, &plots)?
            }
        }
        Kept::Comparison(all) if all.rows.iter().any(|row| row.world == World::Lab) => {
            if plots.is_empty() {
                vec![page_of_the_lab(&args.dir, out)?]
            } else {
                let cases = page::shown(&all.scenario);
                let measured = captured::of_comparison(&args.dir, &all.scenario, &cases)?;
                draw_measured(out, &all.scenario, &measured, &plots)?
            }
        }
        _ => simulated(args, &kept, out, &plots)?,
    };
    for path in &paths {
        outln!("{}", path.display());
    }
    match paths.first() {
        Some(path) if args.open => open(path),
        _ => Ok(()),
    }
}

fn plot(name: &str) -> Result<Plot, Error> {
    Plot::ALL.iter().copied().find(|plot| plot.name() == name).ok_or_else(|| {
        let names: Vec<&str> = Plot::ALL.iter().map(|plot| plot.name()).collect();
        Error::Usage(format!("--svg {name}: expected one of {}", names.join(", ")))
    })
}

/// Runs of the simulator, played again.
fn simulated(
    args: &ViewArgs,
    kept: &Kept,
    out: &Path,
    plots: &[Plot],
) -> Result<Vec<PathBuf>, Error> {
    let (scenario, played) = match kept {
        Kept::Run(run) => (&run.scenario, of_run(&args.dir, run)?),
        Kept::Comparison(all) => (&all.scenario, of_comparison(&args.dir, all)?),
    };
    if !plots.is_empty() {
        let panels: Vec<Panel<'_>> = played.iter().map(page::played_panel).collect();
        return draw(out, &page::graph_title(scenario, &played), &panels, plots);
    }
    let path = out.join(rundir::REPORT);
    match kept {
        Kept::Run(run) => page::write_run(&path, run, &played)?,
        Kept::Comparison(all) => {
            page::write_played(&path, scenario, (&all.rows, &all.advice), &played)?;
        }
    }
    Ok(vec![path])
}

/// The page that the lab wrote of all its runs, in `out`.
fn page_of_the_lab(folder: &Path, out: &Path) -> Result<PathBuf, Error> {
    let page = kept::page_of_the_lab(folder)?;
    let wanted = out.join(rundir::REPORT);
    let is_there =
        page.canonicalize().ok().is_some_and(|page| wanted.canonicalize().ok() == Some(page));
    if !is_there {
        std::fs::copy(&page, &wanted).map_err(|error| unwritable(&wanted, &error))?;
    }
    Ok(wanted)
}

/// Drawings of runs of the lab; what is not in them is said.
fn draw_measured(
    out: &Path,
    scenario: &Scenario,
    measured: &Measured,
    plots: &[Plot],
) -> Result<Vec<PathBuf>, Error> {
    if let Some(remark) = measured.remark() {
        errln!("lasthop: {remark}");
    }
    let title = page::measured_title(scenario, measured);
    draw(out, &title, &page::measured_panels(measured), plots)
}

/// The run itself, and beside it every other scheme of its scenario under the same channel.
fn of_run(folder: &Path, run: &Run) -> Result<Vec<Played>, Error> {
    let own = page::play(&run.scenario, &run.case)?;
    check(folder, run, &own)?;
    let mut played = vec![own];
    let others = run.scenario.cases();
    let beside = others.iter().filter(|case| {
        **case != run.case
            && Case { scheme: run.case.scheme.clone(), ..(*case).clone() } == run.case
    });
    for case in beside.filter(|case| Plan::new(&run.scenario, case).is_ok()) {
        played.push(page::play(&run.scenario, case)?);
    }
    Ok(played)
}

fn of_comparison(folder: &Path, all: &Comparison) -> Result<Vec<Played>, Error> {
    let mut played = Vec::new();
    for case in page::shown(&all.scenario) {
        let one = page::play(&all.scenario, &case)?;
        let seed = all.scenario.seed;
        let name = rundir::run_name(World::Sim, &all.scenario, &case, seed);
        let path = folder.join(name);
        // Folders of runs may have been cleaned away; the rows stand for themselves.
        if let Ok(Kept::Run(run)) = Kept::read(&path) {
            check(&path, &run, &one)?;
        }
        played.push(one);
    }
    Ok(played)
}

/// Sees that what was played is what was kept.
fn check(folder: &Path, run: &Run, played: &Played) -> Result<(), Error> {
    let manifest = &run.manifest;
    if let Some(hash) = manifest.trace_hash.as_ref().filter(|hash| **hash != played.hash) {
        let what = format!("trace hash {hash} then, {} now", played.hash);
        return Err(manifest.differs(folder, &what));
    }
    // The last digits of a number may be lost between text and number.
    let seconds = manifest.seconds.unwrap_or(f64::NAN);
    if (seconds - played.seconds).abs() < 1e-9 * seconds.max(1.0) {
        return Ok(());
    }
    Err(manifest.differs(folder, &format!("{seconds} s then, {} s now", played.seconds)))
}

fn draw(
    out: &Path,
    title: &str,
    panels: &[Panel<'_>],
    plots: &[Plot],
) -> Result<Vec<PathBuf>, Error> {
    let mut paths = Vec::new();
    for plot in plots {
        let path = out.join(format!("{}.svg", plot.name()));
        let file = File::create(&path).map_err(|error| unwritable(&path, &error))?;
        report::svg::write(*plot, title, panels, BufWriter::new(file))
            .map_err(|error| unwritable(&path, &error))?;
        paths.push(path);
    }
    Ok(paths)
}

/// Hands a file to the desktop's browser.
fn open(path: &Path) -> Result<(), Error> {
    let started = std::process::Command::new("xdg-open").arg(path).status();
    match started {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(Error::Machine(format!("--open: xdg-open ended with {status}"))),
        Err(error) => Err(Error::Machine(format!(
            "--open: start xdg-open: {error}; open the file above in a browser yourself"
        ))),
    }
}
