//! All cases of the lab with all seeds, and the folder of each run.

use super::{setup, stopped};
use crate::error::Error;
use crate::page;
use crate::rundir::{self, LabOutcome, Recorder, RunFolder, State, StreamVerdict, Trace};
use core::sync::atomic::{AtomicUsize, Ordering};
use indicatif::ProgressBar;
use live::lab::run::StreamResult;
use live::lab::{Lab, LabRun, Program};
use live::radio::{self, Scheduling};
use node::{Case, Plan, Scenario};
use sansio::Instant;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use study::row::{Lateness, Row, Sample, World};
use trace::metrics::{Transfer, TransferSpec};
use trace::timeline::Timeline;

/// What is to be run, and where its records go.
pub(super) struct Work<'a> {
    pub(super) program: &'a Program,
    pub(super) scenario: &'a Scenario,
    pub(super) cases: &'a [Case],
    pub(super) out: &'a Path,
    pub(super) trace: Trace,
    pub(super) bar: &'a ProgressBar,
}

/// What was measured, and whether it is all.
pub(super) struct Measured {
    /// One per case; none if it was not run.
    pub(super) rows: Vec<Option<Row>>,
    /// The first run of each case that the report shows in time.
    pub(super) timelines: Vec<(Case, Timeline)>,
    pub(super) complete: bool,
    /// The folders of runs whose packets were kept.
    pub(super) with_packets: Vec<PathBuf>,
}

/// A run that is done.
struct Done {
    /// The number of its case.
    case: usize,
    sample: Sample,
    timeline: Option<Timeline>,
}

/// Labs side by side at most: they share the machine's cores, and what is late is no longer true.
/// So many only where runs mostly wait, as in long outages.
const LANES_MAX: usize = 32;
/// So many begin at once. Each further one begins a second after the one before, so that runs that
/// mostly wait do not all send at the same time.
const LANES_AT_ONCE: u32 = 8;
/// Looks in a second whether there is still something to begin.
const LOOKS: u32 = 20;

impl Work<'_> {
    /// All cases with all seeds, the seeds outermost, so that what changes on the machine meets
    /// every case; up to `jobs` networks side by side take one run after the other from the common
    /// list.
    pub(super) fn measure(&self, jobs: usize) -> Result<Measured, Error> {
        let seeds = (0..u64::from(self.scenario.seeds)).map(|n| self.scenario.seed + n);
        let runs: Vec<(usize, u64)> =
            seeds.flat_map(|seed| (0..self.cases.len()).map(move |case| (case, seed))).collect();
        let lanes = jobs.clamp(1, LANES_MAX).min(runs.len());
        let next = AtomicUsize::new(0);
        let lane = |number: u32| {
            for _ in 0..(number + 1).saturating_sub(LANES_AT_ONCE) * LOOKS {
                if next.load(Ordering::Relaxed) >= runs.len() {
                    break;
                }
                std::thread::sleep(Duration::from_secs(1) / LOOKS);
            }
            let mut done = Vec::new();
            let mut take = || runs.get(next.fetch_add(1, Ordering::Relaxed)).copied();
            let ended = self.lane(number, &mut take, &mut done);
            // Whoever is interrupted or cannot go on ends the others, too.
            if ended.is_err() {
                next.store(runs.len(), Ordering::Relaxed);
            }
            (done, ended)
        };
        let ended: Vec<(Vec<Done>, Result<(), Error>)> = std::thread::scope(|scope| {
            let lane = &lane;
            let threads: Vec<_> =
                (0..lanes as u32).map(|number| scope.spawn(move || lane(number))).collect();
            threads.into_iter().filter_map(|thread| thread.join().ok()).collect()
        });
        let complete = ended.len() == lanes && ended.iter().all(|(_, result)| result.is_ok());
        let mut all = Vec::new();
        for (done, result) in ended {
            all.extend(done);
            match result {
                Ok(()) | Err(Error::Interrupted) => {}
                Err(other) => return Err(other),
            }
        }
        Ok(self.summary(all, complete))
    }

    fn summary(&self, mut done: Vec<Done>, complete: bool) -> Measured {
        done.sort_by_key(|run| (run.case, run.sample.seed));
        let mut samples: Vec<Vec<Sample>> = vec![Vec::new(); self.cases.len()];
        let (mut timelines, mut with_packets) = (Vec::new(), Vec::new());
        for Done { case, sample, timeline } in done {
            if self.trace.pcap {
                let case = &self.cases[case];
                let name = rundir::run_name(World::Lab, self.scenario, case, sample.seed);
                with_packets.push((sample.seed, self.out.join(name)));
            }
            samples[case].push(sample);
            timelines.extend(timeline.map(|timeline| (self.cases[case].clone(), timeline)));
        }
        let row = |(case, samples): (&Case, Vec<Sample>)| {
            let plan = Plan::for_lab(self.scenario, case);
            (!samples.is_empty()).then(|| Row::new(case, &plan, World::Lab, samples))
        };
        let rows = self.cases.iter().zip(samples).map(row).collect();
        // The first seed of every case before the second.
        with_packets.sort_by_key(|(seed, _)| *seed);
        let with_packets = with_packets.into_iter().map(|(_, folder)| folder).collect();
        Measured { rows, timelines, complete, with_packets }
    }

    /// One network, for one run after the other.
    fn lane(
        &self,
        number: u32,
        take: &mut dyn FnMut() -> Option<(usize, u64)>,
        done: &mut Vec<Done>,
    ) -> Result<(), Error> {
        let mut lab = Lab::open(number, self.program.clone()).map_err(stopped)?;
        while let Some((case, seed)) = take() {
            done.push(self.run(&mut lab, case, seed)?);
            self.bar.inc(1);
        }
        Ok(())
    }

    fn run(&self, lab: &mut Lab, number: usize, seed: u64) -> Result<Done, Error> {
        let case = &self.cases[number];
        let setup = setup(self.scenario, case, seed)?;
        let folder = RunFolder::make(self.out, World::Lab, (self.scenario, case, seed))?;
        let process = std::process::id();
        let note = format!("it never ended: killed, unless process {process} still runs it");
        folder.not_ended(State::Begun, note)?;
        let shown = seed == self.scenario.seed && page::shown(self.scenario).contains(case);
        let specs = live::lab::run::transfers(&setup);
        let mut timeline = specs.first().copied().filter(|_| shown).map(Timeline::new);
        let (ran, trace_hash) = if self.trace.is_any() {
            let run = |recorder: Recorder<'_>| lab.run_one(&setup, &mut (recorder, &mut timeline));
            let (ran, hash) = folder.traced(self.trace, run)?;
            (ran, Some(hash))
        } else {
            (lab.run_one(&setup, &mut timeline), None)
        };
        let ran = match ran.map_err(stopped) {
            Ok(ran) => ran,
            Err(error) => {
                let interrupted = matches!(error, Error::Interrupted);
                let state = if interrupted { State::Interrupted } else { State::Failed };
                let why = error.message().unwrap_or("interrupted").to_owned();
                folder.not_ended(state, why)?;
                return Err(error);
            }
        };
        let (sample, outcome) = Self::sample(seed, &specs, ran);
        folder.ended(&sample, trace_hash, Some(outcome))?;
        Ok(Done { case: number, sample, timeline })
    }

    /// A run as the rows take it, and what only its folder keeps.
    fn sample(seed: u64, specs: &[TransferSpec], ran: LabRun) -> (Sample, LabOutcome) {
        let mut transfers = specs.iter().zip(&ran.measures.transfers);
        let finished = transfers.all(|(spec, one)| spec.size.is_none() || one.complete);
        let radio_late = Some(lateness(&ran.lateness));
        let verdict = |(stream, measured): (&StreamResult, &Transfer)| StreamVerdict {
            accepted_at: SocketAddr::new(stream.accepted_at.address, stream.accepted_at.port),
            sent_bytes: stream.sent_bytes,
            received_bytes: stream.received_bytes,
            sha256: if stream.intact { "same" } else { "differs" },
            retransmissions: stream.retransmissions,
            messages_late_s: stream.messages_late.map(sansio::Duration::as_secs_f64),
            stalls_after_outage_s: measured
                .stalls_after_outage
                .iter()
                .map(|stall| stall.as_secs_f64())
                .collect(),
        };
        let outage = |(from, until): &(Instant, Option<Instant>)| {
            (from.as_secs_f64(), until.map(Instant::as_secs_f64))
        };
        let outcome = LabOutcome {
            outages_s: ran.outages.iter().map(outage).collect(),
            streams: ran.streams.iter().zip(&ran.measures.transfers).map(verdict).collect(),
            radio_late_s: radio_late,
            radio_mishaps: ran.mishaps,
            daemon: ran.daemon,
            daemon_cpu_s: ran.daemon_processor.map(sansio::Duration::as_secs_f64),
        };
        let sample = Sample {
            seed,
            seconds: ran.ended_at.as_secs_f64(),
            finished,
            measures: ran.measures,
            failures: ran.failure.into_iter().collect(),
            radio_late,
            radio_mishaps: ran.mishaps,
        };
        (sample, outcome)
    }
}

fn lateness(of: &radio::Lateness) -> Lateness {
    Lateness {
        p50: of.p50.as_secs_f64(),
        p99: of.p99.as_secs_f64(),
        max: of.max.as_secs_f64(),
        real_time: of.scheduling == Scheduling::RealTime,
    }
}
