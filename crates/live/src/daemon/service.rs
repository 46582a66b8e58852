//! The daemon's loop: packets first, then time, orders, signals and devices.

use super::config::{DaemonConfig, Level, Mode};
use super::control::{self, Control, Order, Orders, Request};
use super::journal::Journal;
use super::link::{Attachment, Change, Link};
use super::listing::Progress;
use super::manager::Manager;
use super::server::Server;
use super::snapshot::{Board, Counted, Snapshot};
use super::{machine, path, schedule, settings};
use crate::sys::netlink::DeviceNews;
use crate::sys::poll::{Poll, Ready};
use crate::sys::signals::Signals;
use crate::sys::{Clock, process, realtime_nanos};
use anyhow::{Context, Result, ensure};
use sansio::{Duration, Event, EventKind, Instant, Notice, Side};
use schemes::Scheme;
use serde_json::{Value, json};
use std::collections::VecDeque;

/// Runs a daemon until SIGTERM, SIGINT, an order to stop, or the end of its controlling input.
/// SIGHUP has it read its file again; without one its terminal is gone, and it ends.
///
/// # Errors
/// If this machine cannot do what is asked, with the fix, before anything is changed; or if nft
/// ends, and the rules with it.
pub fn run(config: &DaemonConfig) -> Result<()> {
    let problems = machine::problems(config);
    ensure!(problems.is_empty(), "{}", problems.join("\n"));
    process::precise_timers()?;
    process::keep_freed_memory();
    let mut service = Service::begin(config)?;
    let served = service.serve();
    service.end(&served);
    served
}

/// Tokens of the poll.
const SIGNALS: u64 = path::TOKENS;
const ORDERS: u64 = path::TOKENS + 1;
const DEVICES: u64 = path::TOKENS + 2;

/// Between two looks at everything that is not a packet.
const TICK: Duration = Duration::from_secs(1);
/// How long lost frames count as a problem.
const OVERRUN_SHOWN: Duration = Duration::from_secs(10);

#[derive(Debug)]
struct Service {
    /// What is in force; the mode is that of the file.
    config: DaemonConfig,
    /// What is done now.
    mode: Mode,
    link: Link,
    clock: Clock,
    poll: Poll,
    signals: Signals,
    orders: Orders,
    news: DeviceNews,
    journal: Journal,
    manager: Manager,
    board: Board,
    server: Option<Server>,
    counted: Counted,
    /// Who asked for the flows, and how far they were listed; one after the other.
    listings: VecDeque<(Request, Progress)>,
    tick_at: Instant,
    /// When the schedule says that the link is back.
    hint_at: Option<Instant>,
    /// Something changed at devices or addresses since the last tick.
    changed: bool,
    /// What an order or a file asked for and could not be had.
    failure: Option<String>,
    /// What was wrong at the last look.
    problem: Option<String>,
}

/// Whether to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Turn,
    Stop,
}

impl Service {
    fn begin(config: &DaemonConfig) -> Result<Self> {
        let signals = Signals::catch_with_hangup()?;
        let clock = Clock::starting_now();
        let mut link = Link::new(config, clock)?;
        let orders = Orders::open(&config.control)?;
        let news = DeviceNews::open()?;
        let poll = Poll::new()?;
        poll.add(&signals, SIGNALS)?;
        poll.add(orders.descriptor(), ORDERS)?;
        poll.add(&news, DEVICES)?;
        let first = Snapshot::of(&mut link, &Counted::default(), (config, Mode::Off), clock.now());
        let board = Board::new(first);
        let open = |at| Server::open(at, board.clone(), clock);
        let server = config.metrics.map(open).transpose()?;
        let mut service = Service {
            config: config.clone(),
            mode: Mode::Off,
            link,
            clock,
            poll,
            signals,
            orders,
            news,
            journal: Journal::open(config.log),
            manager: Manager::find(),
            board,
            server,
            counted: Counted::default(),
            listings: VecDeque::new(),
            tick_at: Instant::ZERO,
            hint_at: None,
            changed: false,
            failure: None,
            problem: None,
        };
        service.enter(config.mode, "the start")?;
        if config.control == Control::Standard {
            control::say("ready")?;
        }
        service.manager.ready(&service.status());
        Ok(service)
    }

    fn serve(&mut self) -> Result<()> {
        while !self.signals.caught() {
            let deadline = self.turn();
            if self.clock.now() >= self.tick_at {
                self.tick()?;
            }
            if self.hint_at.is_some_and(|at| at <= self.clock.now()) {
                self.hint();
            }
            let dues = [deadline, self.hint_at].into_iter().flatten();
            let until = match self.listings.is_empty() {
                true => dues.fold(self.tick_at, Instant::min),
                false => Instant::ZERO,
            };
            let ready = self.poll.wait(Some(self.clock.monotonic_at(until)))?;
            // The kernel forwards again: to go on would send packets twice.
            ensure!(!path::has_lost_its_rules(ready), "nft has ended, and the rules with it");
            self.attend(ready);
            if ready.contains(DEVICES) {
                self.changed |= self.news.take();
                self.look_at_devices()?;
            }
            if ready.contains(SIGNALS) && self.signals.take_hangup() {
                if self.config.file.is_none() {
                    break;
                }
                // Told in the log; the old settings stay.
                let _result = self.reload();
            }
            if ready.contains(ORDERS) && self.obey()? == Next::Stop {
                break;
            }
            self.list();
        }
        Ok(())
    }

    /// The schedule says that the link is back, if it was gone.
    fn hint(&mut self) {
        self.pass_on(Notice::LinkMayBeUp(Side::RADIO));
        self.plan_hint();
    }

    /// Passes on what became known about the link.
    fn pass_on(&mut self, notice: Notice) {
        if let Attachment::Open(open) = &mut self.link.attachment {
            self.link.station.notice(notice, &mut open.io);
            self.note_events(self.clock.now());
        }
    }

    /// Looks at the wall clock, which may have been set, for the next hint.
    fn plan_hint(&mut self) {
        let wait = schedule::until_next(&self.config.back_at, realtime_nanos());
        self.hint_at = wait.map(|wait| self.clock.now() + wait);
    }

    /// Packets and timers; returns when the next timer is due.
    #[inline]
    fn turn(&mut self) -> Option<Instant> {
        let Attachment::Open(path) = &mut self.link.attachment else { return None };
        let began = self.clock.now();
        let station = &mut self.link.station;
        if let Err(error) = station.turn(&mut path.io) {
            self.lose(format!("{error:#}"));
            return None;
        }
        let held = station.engine().inner().held_bytes();
        self.counted.held_bytes_max = self.counted.held_bytes_max.max(held);
        let deadline = [station.next_deadline(), path.next_at()].into_iter().flatten().min();
        self.note_events(began);
        self.counted.turns.note(self.clock.now().since(began));
        deadline
    }

    /// Sees to the sockets.
    #[inline]
    fn attend(&mut self, ready: Ready) {
        if let Attachment::Open(path) = &mut self.link.attachment
            && let Err(error) = path.attend(&self.poll, ready)
        {
            self.lose(format!("{error:#}"));
        }
    }

    /// What the engine reported is counted, and told to who wants to hear it.
    fn note_events(&mut self, now: Instant) {
        for Event { flow, kind, .. } in self.link.station.take_events() {
            let (level, event, rule, did, value) = match kind {
                EventKind::Rule { id, did, value } => {
                    (Level::Debug, "intervention", id, did, value)
                }
                EventKind::StandAside { reason } => {
                    (Level::Info, "left-alone", "stand aside", reason, 0)
                }
                EventKind::Limit { name, value } => (Level::Info, "limit", "limit", name, value),
                _ => continue,
            };
            self.counted.interventions.note(flow, rule, did);
            let mode = self.mode;
            let fields = || {
                vec![
                    ("mode", json!(mode)),
                    ("flow", flow.map_or(Value::Null, |flow| json!(flow.to_string()))),
                    ("rule", json!(rule)),
                    ("did", json!(did)),
                    ("value", json!(value)),
                ]
            };
            self.journal.say_often(level, event, fields, now);
        }
    }

    /// Once a second.
    fn tick(&mut self) -> Result<()> {
        let now = self.clock.now();
        self.tick_at = now + TICK;
        if matches!(self.link.attachment, Attachment::Waiting { .. }) {
            self.look_at_devices()?;
        }
        // Devices come in crowds; their addresses wait for the tick.
        if std::mem::take(&mut self.changed) {
            match self.link.look_at_addresses(self.mode, &self.config) {
                Ok(Some(false)) => {}
                Ok(None) => self.changed = true,
                Ok(Some(true)) => {
                    self.journal.say(Level::Info, "addresses-changed", &[], now);
                    self.link.watch(&self.poll)?;
                }
                Err(error) => self.lose(format!("{error:#}")),
            }
        }
        let overruns = self.link.overruns();
        if overruns > self.counted.overruns {
            self.counted.overrun_at = Some(now);
        }
        self.counted.overruns = overruns;
        let Link { station, .. } = &self.link;
        if let Scheme::Snoop(agent) = station.engine().inner() {
            self.counted.interventions.forget_some_but(|key| agent.knows(key));
        }
        self.plan_hint();
        self.journal.tell_left_out(now);
        self.look_for_problems(now);
        self.publish(now);
        self.manager.alive();
        Ok(())
    }

    fn look_for_problems(&mut self, now: Instant) {
        let recent = |at: Instant| now.since(at) < OVERRUN_SHOWN;
        let overrun = self.counted.overrun_at.is_some_and(recent);
        let problem = self.link.problem().or_else(|| self.failure.clone()).or_else(|| {
            overrun.then(|| "frames come faster than they are taken, and are lost".to_owned())
        });
        if problem == self.problem {
            return;
        }
        match &problem {
            Some(why) => self.journal.say(Level::Warn, "problem", &[("why", json!(why))], now),
            None => self.journal.say(Level::Info, "well", &[], now),
        }
        self.problem = problem;
        self.manager.status(&self.status());
        self.publish(now);
    }

    fn publish(&mut self, now: Instant) {
        let snapshot = self.snapshot(now);
        self.board.publish(snapshot);
    }

    fn snapshot(&mut self, now: Instant) -> Snapshot {
        let shown = (&self.config, self.mode);
        let snapshot = Snapshot::of(&mut self.link, &self.counted, shown, now);
        Snapshot { problem: self.problem.clone(), ..snapshot }
    }

    fn status(&self) -> String {
        match &self.problem {
            Some(problem) => format!("mode {}; {problem}", self.mode),
            None => format!("mode {}", self.mode),
        }
    }

    /// Changes the mode.
    fn enter(&mut self, mode: Mode, why: &str) -> Result<()> {
        let entered = self.link.enter(mode, &self.config);
        self.link.watch(&self.poll)?;
        let now = self.clock.now();
        match entered {
            Ok(()) => {
                self.mode = mode;
                self.failure = None;
                let fields = [("mode", json!(mode)), ("why", json!(why))];
                self.journal.say(Level::Info, "mode", &fields, now);
            }
            Err(error) => {
                let fields = [("wanted", json!(mode)), ("why", json!(format!("{error:#}")))];
                self.journal.say(Level::Error, "mode-refused", &fields, now);
                self.failure = Some(format!("mode {mode} could not be entered: {error:#}"));
                self.tick_at = now;
                return Err(error);
            }
        }
        self.tick_at = now;
        Ok(())
    }

    fn look_at_devices(&mut self) -> Result<()> {
        let change = self.link.look_at_devices(self.mode, &self.config);
        let now = self.clock.now();
        match change {
            Ok(None) => {}
            Ok(Some(Change::Lost(why))) => {
                self.journal.say(Level::Warn, "device-lost", &[("why", json!(why))], now);
            }
            Ok(Some(Change::Back)) => {
                self.journal.say(Level::Info, "device-back", &[("mode", json!(self.mode))], now);
                self.failure = None;
                self.link.watch(&self.poll)?;
            }
            // The device may have gone again; the next look tells.
            Err(error) => self.link.lose(format!("{error:#}")),
        }
        if let Some(notice) = self.link.news_of_carrier() {
            let fields = [("is", json!(notice == Notice::LinkUp(Side::RADIO)))];
            self.journal.say(Level::Info, "carrier", &fields, now);
            self.pass_on(notice);
        }
        self.look_for_problems(now);
        Ok(())
    }

    fn lose(&mut self, why: String) {
        let now = self.clock.now();
        self.journal.say(Level::Warn, "device-lost", &[("why", json!(why))], now);
        self.link.lose(why);
        self.tick_at = now;
    }

    /// Takes the orders that have come.
    fn obey(&mut self) -> Result<Next> {
        while let Some(request) = self.orders.next() {
            let order = request.order;
            let done = || Ok(json!({ "ok": true }).to_string());
            let answer = match order {
                Order::Notice(notice) => {
                    self.pass_on(notice);
                    done()
                }
                Order::Mode(mode) => self.enter(mode, "an order").and_then(|()| done()),
                Order::Reload => self.reload().and_then(|()| done()),
                Order::Statistics => {
                    let now = self.clock.now();
                    serde_json::to_string(&self.snapshot(now)).context("write the statistics")
                }
                Order::Flows(_) => {
                    self.listings.push_back((request, Progress::default()));
                    continue;
                }
                Order::Stop => done(),
            };
            request.answer(answer);
            if order == Order::Stop {
                return Ok(Next::Stop);
            }
        }
        Ok(Next::Turn)
    }

    /// Looks up some of the flows that somebody asked for.
    fn list(&mut self) {
        let Some((request, mut progress)) = self.listings.pop_front() else { return };
        let now = self.clock.now();
        let engine = self.link.station.engine();
        match progress.next(engine, &self.counted.interventions, now) {
            Some(rows) => {
                if request.list(rows) {
                    self.listings.push_front((request, progress));
                }
            }
            None => request.end_list(now),
        }
    }

    /// Reads the configuration file again. What is wrong is told, and the old settings stay.
    fn reload(&mut self) -> Result<()> {
        self.manager.reloading();
        let result = self.try_reload();
        let now = self.clock.now();
        match &result {
            Ok(()) => self.journal.say(Level::Info, "reloaded", &[], now),
            Err(error) => {
                let why =
                    [("why", json!(format!("{error:#}"))), ("settings", json!("the old ones"))];
                self.journal.say(Level::Error, "reload-refused", &why, now);
            }
        }
        self.manager.ready(&self.status());
        result
    }

    fn try_reload(&mut self) -> Result<()> {
        let file = self.config.file.as_ref();
        let file =
            file.context("no configuration file was given: there is nothing to read again")?;
        let next = settings::read(file, self.config.place)?;
        // What may fail comes first.
        let (board, clock) = (&self.board, self.clock);
        let open = |at| Server::open(at, board.clone(), clock);
        let server = match next.metrics == self.config.metrics {
            true => None,
            false => Some(next.metrics.map(open).transpose()?),
        };
        let orders = match next.control == self.config.control {
            true => None,
            false => Some(Orders::open(&next.control)?),
        };
        let rebuilt = !self.config.has_path_of(&next);
        if rebuilt {
            self.link.rebuild(&next)?;
        }
        let mode = if next.mode == self.config.mode { self.mode } else { next.mode };
        self.journal.set(next.log);
        self.config = next;
        if let Some(server) = server {
            self.server = server;
        }
        if let Some(orders) = orders {
            self.poll.add(orders.descriptor(), ORDERS)?;
            self.orders = orders;
        }
        if rebuilt {
            self.mode = Mode::Off;
        }
        if mode == self.mode { Ok(()) } else { self.enter(mode, "the file") }
    }

    /// Gives everything back.
    fn end(&mut self, served: &Result<()>) {
        self.manager.stopping();
        self.link.close();
        let now = self.clock.now();
        match served {
            Ok(()) => self.journal.say(Level::Info, "stopped", &[], now),
            Err(error) => {
                let why = [("why", json!(format!("{error:#}")))];
                self.journal.say(Level::Error, "stopped", &why, now);
            }
        }
    }
}
