//! One run: the radio, the daemon, the transfers; and what came of it.

use super::agent::{Agent, Line};
use super::messages::{self, Latencies};
use super::network::{self, Names};
use super::setup::{Amount, Direction, Drill, Messages, RunSetup};
use super::transfer::{self, Passed, Place};
use super::{Lab, Stopped};
use crate::radio::replay::{BASE_STATION, FIXED_HOST, MOBILE_HOST, Stream, replay};
use crate::radio::{Lateness, Radio, Report};
use crate::sys::Clock;
use crate::sys::tcp_socket::Options;
use anyhow::{Context, Result};
use link::outage::State;
use sansio::{Duration, Host, Instant, StreamId};
use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr, SocketAddrV4, TcpListener};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread::{Scope, ScopedJoinHandle};
use trace::metrics::{Measures, Meter, TransferSpec};
use trace::{Observer, Role, Until};

/// What came of a run.
#[derive(Clone, Debug)]
pub struct LabRun {
    /// When it ended.
    pub ended_at: Instant,
    /// What was measured. Timeouts are the kernel's own count.
    pub measures: Measures,
    /// The transfers, as their two kernels saw them.
    pub streams: Vec<StreamResult>,
    /// When the link was away; an end is missing if the run ended first.
    pub outages: Vec<(Instant, Option<Instant>)>,
    /// How late the radio was.
    pub lateness: Lateness,
    /// Frames lost in the radio's own sockets and devices, by no hop's decision: with any, the run
    /// is not what was asked for.
    pub mishaps: u64,
    /// The daemon's statistics at the end.
    pub daemon: Option<serde_json::Value>,
    /// Processor time that the daemon took for the run, if it was there all the while.
    pub daemon_processor: Option<Duration>,
    /// Why the run counts as failed; `None` if it does not.
    pub failure: Option<String>,
}

/// One transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamResult {
    /// Where it was received: the port is its connection's alone.
    pub accepted_at: Host,
    /// Bytes that the sender's kernel took.
    pub sent_bytes: u64,
    /// Bytes that the receiver's kernel gave.
    pub received_bytes: u64,
    /// True if the received bytes are, by their SHA-256, those that were sent, from the first on.
    pub intact: bool,
    /// Segments that the sender's kernel says it sent again.
    pub retransmissions: u32,
    /// Of messages: by how much the machine was late to write one, at most.
    pub messages_late: Option<Duration>,
}

/// How often a running transfer is looked after.
const LOOK_EVERY: std::time::Duration = std::time::Duration::from_millis(10);

/// A transfer planned.
struct Planned {
    stream: StreamId,
    sender: Place,
    receiver: Place,
    down: bool,
    what: Load,
}

/// What a transfer carries.
#[derive(Clone, Copy)]
enum Load {
    /// So many bytes, or as many as go.
    Bulk(Option<u64>),
    Messages(Messages),
}

/// What a transfer's threads return.
struct Threads<'scope> {
    sender: ScopedJoinHandle<'scope, Result<Passed>>,
    receiver: ScopedJoinHandle<'scope, Result<Passed>>,
}

/// How a run came to its end.
struct Ending {
    at: Instant,
    failure: Option<String>,
}

impl Lab {
    /// Runs a setup; `observer` is shown the records afterwards, in order of time, up to the end.
    ///
    /// # Errors
    /// [`Stopped::Interrupted`], or whatever kept the run from beginning. A run that began and went
    /// wrong is a [`LabRun`] with a [`LabRun::failure`].
    pub fn run_one<O: Observer>(&mut self, setup: &RunSetup, observer: &mut O) -> Result<LabRun> {
        let ran = self.run(setup, observer);
        ran.map_err(|error| super::interrupted_or(&self.signals, error))
    }

    fn run<O: Observer>(&mut self, setup: &RunSetup, observer: &mut O) -> Result<LabRun> {
        self.network.house(setup.mobiles)?;
        let names = self.network.names().clone();
        self.apply_settings(setup)?;
        let line = Line::default();
        let mut agent = self.start_agent(setup, &line)?;
        let mut radio = self.start_radio(setup, &line)?;
        let plans = plans(setup, &names);
        let options = options(setup);
        let mut listeners = Vec::new();
        for plan in &plans {
            listeners.push(transfer::listen(&plan.receiver, &options)?);
        }
        let stop = AtomicBool::new(false);
        let (done, all_done) = mpsc::channel();
        let before = agent.as_ref().map(Agent::processor_time).transpose()?;
        let started = agent.as_ref().map(Agent::process);
        let clock = Clock::starting_now();
        radio.begin(clock)?;
        let (ending, passed) = std::thread::scope(|scope| {
            let mut threads = Vec::new();
            for (plan, listener) in plans.iter().zip(&listeners) {
                let common = Common { options: &options, clock, stop: &stop };
                threads.push(start(scope, plan, listener, common, &done)?);
            }
            // Without bulk data nothing ends the run before its time.
            let until_the_end = (!plans.iter().any(Planned::is_bulk)).then_some(done);
            let machines = (&mut agent, &line, &radio);
            let ending = self.look_after(setup, clock, (&all_done, &stop), machines);
            drop(until_the_end);
            stop.store(true, Ordering::Relaxed);
            let passed: Vec<_> = threads.into_iter().map(join).collect();
            anyhow::Ok((ending?, passed))
        })?;
        let report = radio.finish()?;
        let daemon = match agent.as_ref().map(Agent::statistics).transpose() {
            // A daemon that has ended says no more; that it has is the failure.
            Err(_) if ending.failure.is_some() => None,
            statistics => statistics?,
        };
        // One that has ended, or that is another, does not tell.
        let now = agent.as_ref().filter(|agent| Some(agent.process()) == started);
        let now = now.and_then(|agent| agent.processor_time().ok());
        let processor = now.zip(before).map(|(now, before)| now.saturating_sub(before));
        drop(agent);
        let streams = streams(&plans, &listeners)?;
        let finished = (ending, passed, report, (daemon, processor));
        Ok(result(setup, &streams, finished, observer))
    }

    pub(super) fn apply_settings(&self, setup: &RunSetup) -> Result<()> {
        let names = self.network.names();
        let switch = |on: bool| if on { "1" } else { "0" };
        for host in [&names.fixed, &names.mobile] {
            network::set(host, "net/ipv4/tcp_sack", switch(setup.sack))?;
            network::set(host, "net/ipv4/tcp_timestamps", switch(setup.timestamps))?;
            // Kernels before 6.11 (rto_min) and 6.15 (rto_max) have no such settings.
            let tuned = setup.scheme == RunSetup::PLAIN_TUNED;
            for (setting, ordinary, value) in TUNED {
                match network::set(host, setting, if tuned { value } else { ordinary }) {
                    Err(error) if tuned => return Err(error.context(setup.scheme.clone())),
                    _ => {}
                }
            }
        }
        Ok(())
    }

    pub(super) fn start_agent(&self, setup: &RunSetup, line: &Line) -> Result<Option<Agent>> {
        let base = &self.network.names().base;
        let prefix = match setup.serves_first {
            true => network::FIRST_MOBILE,
            false => network::MOBILE_PREFIX,
        };
        let start = |scheme: &str| Agent::start_for(prefix, &self.program, scheme, (base, line));
        let agent = setup.daemon_scheme().map(start).transpose()?;
        if let Some(agent) = agent.as_ref().filter(|_| setup.scheme == RunSetup::OBSERVE) {
            line.order("mode observe");
            // While one leaves the packets to the kernel, both may forward some. Its answer comes
            // when that is over.
            agent.statistics()?;
        }
        Ok(agent)
    }

    pub(super) fn start_radio(&self, setup: &RunSetup, line: &Line) -> Result<Radio> {
        let air = &self.network.names().air;
        let line = line.clone();
        let told = Box::new(move |notice| line.notice(notice));
        Radio::start(air, self.network.air_devices(), setup.air.clone(), Some(told))
    }

    /// Waits for the end of the transfers, and does what the drill says on the way.
    fn look_after(
        &self,
        setup: &RunSetup,
        clock: Clock,
        (all_done, stop): (&Receiver<()>, &AtomicBool),
        (agent, line, radio): (&mut Option<Agent>, &Line, &Radio),
    ) -> Result<Ending> {
        let mut drill: VecDeque<_> = setup.drill.iter().collect();
        let (limit, sized) = match setup.amount {
            Amount::Size(_) => (setup.patience, true),
            Amount::Duration(duration) => (duration, false),
        };
        loop {
            let received = all_done.recv_timeout(LOOK_EVERY);
            let now = clock.now();
            let failed = |why: String| Ok(Ending { at: now, failure: Some(why) });
            if self.signals.caught() {
                return Err(Stopped::Interrupted.into());
            }
            // A thread that cannot go on has stopped them all, and says why.
            let is_over = matches!(received, Err(RecvTimeoutError::Disconnected));
            if is_over || stop.load(Ordering::Relaxed) {
                return Ok(Ending { at: now, failure: None });
            }
            if now >= Instant::ZERO + limit {
                let late = sized.then(|| format!("not complete after {limit}"));
                return Ok(Ending { at: now, failure: late });
            }
            if !radio.is_running() {
                return failed("the radio stopped".to_owned());
            }
            if let Some(why) = agent.as_mut().and_then(Agent::ended) {
                return failed(why);
            }
            while let Some(step) = drill.front().filter(|step| Instant::ZERO + step.at <= now) {
                match step.what {
                    Drill::Kill => {
                        if let Some(agent) = agent.take() {
                            agent.kill();
                        }
                    }
                    Drill::Restart => *agent = self.start_agent(setup, line)?,
                }
                drill.pop_front();
            }
        }
    }
}

/// Setting, the kernel's default, what [`RunSetup::PLAIN_TUNED`] sets.
const TUNED: [(&str, &str, &str); 2] =
    [("net/ipv4/tcp_rto_max_ms", "120000", "1000"), ("net/ipv4/tcp_rto_min_us", "200000", "20000")];

fn plans(setup: &RunSetup, names: &Names) -> Vec<Planned> {
    let fixed = || Place { namespace: names.fixed.clone(), address: network::FIXED_HOST };
    let mobile =
        |number| Place { namespace: names.mobile.clone(), address: network::mobile_host(number) };
    let plan = |(stream, (what, down, number)): (u32, (Load, bool, u32))| {
        let mobile = mobile(number);
        let (sender, receiver) = if down { (fixed(), mobile) } else { (mobile, fixed()) };
        Planned { stream: StreamId(stream), sender, receiver, down, what }
    };
    (0..).zip(loads(setup)).map(plan).collect()
}

/// The transfers in the order of the simulator's: what each carries, whether down, and whose of
/// the mobile hosts it is.
fn loads(setup: &RunSetup) -> Vec<(Load, bool, u32)> {
    let ways: &[bool] = match setup.direction {
        Direction::Down => &[true],
        Direction::Up => &[false],
        Direction::Both => &[true, false],
    };
    let bulk = Load::Bulk(match setup.amount {
        Amount::Size(size) => Some(size),
        Amount::Duration(_) => None,
    });
    let loads = setup.traffic.connections().map(|messages| messages.map_or(bulk, Load::Messages));
    let loads: Vec<Load> = loads.collect();
    let of_mobile = |number: u32| {
        let ways = loads.iter().flat_map(|load| ways.iter().map(move |down| (*load, *down)));
        ways.map(move |(load, down)| (load, down, number))
    };
    (0..setup.mobiles).flat_map(of_mobile).collect()
}

impl Planned {
    fn is_bulk(&self) -> bool {
        matches!(self.what, Load::Bulk(_))
    }
}

fn options(setup: &RunSetup) -> Options {
    Options {
        congestion_control: setup.sender.name(),
        mss: setup.mss,
        window_bytes: setup.window_bytes,
    }
}

/// What all threads of a run share.
#[derive(Clone, Copy)]
struct Common<'scope> {
    options: &'scope Options,
    clock: Clock,
    stop: &'scope AtomicBool,
}

/// Starts both threads of a transfer; the receiver of bulk data says when it is `done`.
fn start<'scope>(
    scope: &'scope Scope<'scope, '_>,
    plan: &'scope Planned,
    listener: &'scope TcpListener,
    Common { options, clock, stop }: Common<'scope>,
    done: &mpsc::Sender<()>,
) -> Result<Threads<'scope>> {
    let to = match listener.local_addr().context("look up a listener's port")? {
        SocketAddr::V4(address) => address,
        SocketAddr::V6(address) => SocketAddrV4::new(plan.receiver.address, address.port()),
    };
    // Nothing more will come of an end that failed: the other one need not wait for it.
    let or_stop = move |passed: Result<Passed>| {
        if !passed.as_ref().is_ok_and(|passed| !passed.gave_up) {
            stop.store(true, Ordering::Relaxed);
        }
        passed
    };
    let window = options.window_bytes;
    Ok(match plan.what {
        Load::Bulk(size) => {
            let done = done.clone();
            let receive = move || transfer::receive(listener, (size, window), &done, stop);
            let what = (plan.stream, size);
            let send = move || or_stop(transfer::send(&plan.sender, to, what, options, stop));
            Threads { receiver: scope.spawn(receive), sender: scope.spawn(send) }
        }
        Load::Messages(messages) => {
            let receive =
                move || or_stop(messages::receive(listener, (messages, window), clock, stop));
            let (what, how) = ((plan.stream, messages), (options, clock));
            let send = move || or_stop(messages::send(&plan.sender, to, what, how, stop));
            Threads { receiver: scope.spawn(receive), sender: scope.spawn(send) }
        }
    })
}

fn join(threads: Threads<'_>) -> Result<(Passed, Passed)> {
    let joined = |thread: ScopedJoinHandle<'_, Result<Passed>>| match thread.join() {
        Ok(passed) => passed,
        Err(panic) => std::panic::resume_unwind(panic),
    };
    let (sent, received) = (joined(threads.sender), joined(threads.receiver));
    Ok((sent?, received?))
}

fn streams(plans: &[Planned], listeners: &[TcpListener]) -> Result<Vec<Stream>> {
    let mut streams = Vec::new();
    for (plan, listener) in plans.iter().zip(listeners) {
        let port = listener.local_addr().context("look up a listener's port")?.port();
        let (sender, receiver) =
            if plan.down { (FIXED_HOST, MOBILE_HOST) } else { (MOBILE_HOST, FIXED_HOST) };
        let accepted_at = Host { address: IpAddr::V4(plan.receiver.address), port };
        streams.push(Stream { stream: plan.stream, sender, receiver, accepted_at });
    }
    Ok(streams)
}

/// The transfers of a setup, for whoever measures or plots its records.
pub fn transfers(setup: &RunSetup) -> Vec<TransferSpec> {
    let spec = |(stream, (load, down, _)): (u32, (Load, bool, u32))| {
        let (sender, receiver) =
            if down { (FIXED_HOST, MOBILE_HOST) } else { (MOBILE_HOST, FIXED_HOST) };
        let (size, messages) = match load {
            Load::Bulk(size) => (size, None),
            Load::Messages(of) => (None, Some((of.size_bytes, of.every))),
        };
        let (stream, base) = (StreamId(stream), BASE_STATION);
        TransferSpec { stream, sender, receiver, base, size, messages }
    };
    (0..).zip(loads(setup)).map(spec).collect()
}

/// The machines' roles, by number.
pub fn roles() -> Vec<Role> {
    vec![Role::FixedHost, Role::BaseStation, Role::MobileHost]
}

type Finished =
    (Ending, Vec<Result<(Passed, Passed)>>, Report, (Option<serde_json::Value>, Option<Duration>));

fn result<O: Observer>(
    setup: &RunSetup,
    streams: &[Stream],
    (ending, passed, report, (daemon, daemon_processor)): Finished,
    observer: &mut O,
) -> LabRun {
    let specs = transfers(setup);
    let mut meter = Meter::new(roles(), specs.clone());
    replay(&report, streams, &mut Until(ending.at, (&mut meter, observer)));
    let mut measures = meter.finish(ending.at);
    let mut failure = ending.failure;
    let mut results = Vec::new();
    for (index, (passed, stream)) in passed.into_iter().zip(streams).enumerate() {
        let (sent, received) = match passed {
            Ok(passed) => passed,
            Err(error) => {
                failure.get_or_insert(format!("{error:#}"));
                continue;
            }
        };
        measures.timeouts += u64::from(sent.info.timeouts);
        let whole = sent.bytes == received.bytes;
        let intact = match whole {
            true => sent.hash == received.hash,
            false => transfer::hash_of(stream.stream, received.bytes) == received.hash,
        };
        if !intact {
            failure.get_or_insert("the bytes received are not those sent".to_owned());
        }
        let latencies = specs[index].messages.map(|(_, every)| {
            Latencies::of(every, &sent.messages_at, &received.messages_at, ending.at)
        });
        let messages_late = latencies.as_ref().map(|latencies| latencies.late);
        if let Some(of) = latencies {
            // The radio sees packets; only the applications know when they wrote and read.
            let transfer = &mut measures.transfers[index];
            (transfer.latencies, transfer.stall) = (of.of_messages, of.longest);
        }
        results.push(StreamResult {
            accepted_at: stream.accepted_at,
            sent_bytes: sent.bytes,
            received_bytes: received.bytes,
            intact,
            retransmissions: sent.info.retransmissions,
            messages_late,
        });
    }
    if report.log.cut {
        failure.get_or_insert("the radio's log was full".to_owned());
    }
    let held = daemon.as_ref().and_then(|daemon| daemon["held_bytes_max"].as_u64());
    measures.base_station_bytes_max = held.unwrap_or(0);
    LabRun {
        ended_at: ending.at,
        measures,
        streams: results,
        outages: outages(&report.transitions, ending.at),
        lateness: report.lateness,
        mishaps: report.mishaps,
        daemon,
        daemon_processor,
        failure,
    }
}

/// The outages of a run that ended at `now`.
fn outages(transitions: &[(Instant, State)], now: Instant) -> Vec<(Instant, Option<Instant>)> {
    let mut outages: Vec<(Instant, Option<Instant>)> = Vec::new();
    for (at, state) in transitions.iter().filter(|(at, _)| *at <= now) {
        match (state, outages.last_mut()) {
            (State::Down, _) => outages.push((*at, None)),
            (State::Up, Some((_, end))) => *end = Some(*at),
            (State::Up, None) => {}
        }
    }
    outages
}
