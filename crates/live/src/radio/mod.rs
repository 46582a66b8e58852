//! The lab's radio, and its wired hop: both emulated on veth pairs, with the simulator's hops.
//!
//! One thread in a network namespace of its own takes every frame between the hosts, gives it to
//! the hop it is on ([`air`]), sends it on when it is due, and writes down what happened ([`log`]),
//! from which [`replay`] makes the records of the simulator; [`sighted`] makes that log again from
//! captures. It runs under SCHED_FIFO where that is allowed, and says how late it was
//! ([`lateness`]).
//!
//! Until the run begins, and for whatever is not IP, frames pass at once.

pub mod air;
pub mod lateness;
pub mod log;
pub mod replay;
pub mod sighted;

pub use air::{Config, Port};
pub use lateness::{Lateness, Scheduling};

use crate::sys::packet_socket::{Head, Leave, Listen, Outgoing, PacketSocket, Prefix, Received};
use crate::sys::poll::Poll;
use crate::sys::{Clock, namespace, process};
use air::Air;
use anyhow::{Context, Result, anyhow, bail};
use bytes::Bytes;
use link::Outages;
use link::outage::State;
use log::Log;
use sansio::{Duration, Instant, Notice, Side};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{self, Receiver, Sender, TryRecvError};
use std::thread::JoinHandle;

/// Who is told that the link went away or came back. Called on the radio's thread.
pub type Told = Box<dyn FnMut(Notice) + Send>;

/// The emulator, running.
#[derive(Debug)]
pub struct Radio {
    orders: Sender<Order>,
    /// A byte here makes the thread look at its orders.
    bell: UnixStream,
    thread: JoinHandle<Result<Report>>,
}

/// What the emulator has to say after a run.
#[derive(Clone, Debug)]
pub struct Report {
    /// What happened.
    pub log: Log,
    /// When the link went away and came back, until the end.
    pub transitions: Vec<(Instant, State)>,
    /// How late it was.
    pub lateness: Lateness,
    /// Frames that found no room in a socket or that a device refused: losses that no hop decided.
    pub mishaps: u64,
}

#[derive(Debug)]
enum Order {
    Begin(Clock),
    Finish,
}

impl Radio {
    /// Starts the emulator in a network namespace; `devices` are its ends of the veth pairs, in
    /// the order of [`Port::ALL`]. Returns when it passes frames.
    ///
    /// # Errors
    /// If the namespace or packet sockets cannot be had.
    pub fn start(
        namespace: &str,
        devices: [String; Port::ALL.len()],
        config: Config,
        told: Option<Told>,
    ) -> Result<Self> {
        let (bell, rings) = UnixStream::pair().context("make a pair of sockets")?;
        rings.set_nonblocking(true).context("make a socket non-blocking")?;
        let (orders, taken) = mpsc::channel();
        let (ready, is_ready) = mpsc::channel();
        let namespace = namespace.to_owned();
        let thread = std::thread::Builder::new()
            .name("radio".to_owned())
            .spawn(move || {
                namespace::enter(&namespace)?;
                let mut emulator = Emulator::open(devices, &config, rings, told)?;
                // Whoever started this thread may have given up; then orders end, too.
                let _listening = ready.send(());
                emulator.run(&taken)?;
                Ok(emulator.report())
            })
            .context("start the radio's thread")?;
        let radio = Radio { orders, bell, thread };
        match is_ready.recv() {
            Ok(()) => Ok(radio),
            Err(_) => match radio.finish() {
                Err(error) => Err(error),
                Ok(_) => bail!("the radio ended before it began"),
            },
        }
    }

    /// The run begins: from now on the hops do what they do, and time zero is that of `clock`.
    ///
    /// # Errors
    /// If the emulator has died.
    pub fn begin(&mut self, clock: Clock) -> Result<()> {
        self.orders.send(Order::Begin(clock)).map_err(|_| anyhow!("the radio has stopped"))?;
        self.ring()
    }

    /// True as long as the emulator runs.
    pub fn is_running(&self) -> bool {
        !self.thread.is_finished()
    }

    /// Ends the run.
    ///
    /// # Errors
    /// Whatever ended the emulator earlier.
    pub fn finish(self) -> Result<Report> {
        // If the thread is gone, its own error tells more.
        let _sent = self.orders.send(Order::Finish);
        let _rung = self.ring();
        match self.thread.join() {
            Ok(report) => report,
            Err(_) => bail!("the radio's thread panicked"),
        }
    }

    fn ring(&self) -> Result<()> {
        rustix::io::write(&self.bell, &[1]).context("wake the radio")?;
        Ok(())
    }
}

/// The thread's own state.
struct Emulator {
    sockets: [PacketSocket; Port::ALL.len()],
    /// Frames about to leave, by port.
    leaving: [Vec<Outgoing>; Port::ALL.len()],
    received: Received,
    poll: Poll,
    rings: UnixStream,
    air: Air,
    clock: Option<Clock>,
    outages: Option<Outages>,
    told: Option<Told>,
    transitions: Vec<(Instant, State)>,
    next_transition: Option<(Instant, State)>,
    late: Vec<Duration>,
    scheduling: Scheduling,
    refused: u64,
}

/// The poll's token of the bell; the ports' are their numbers.
const BELL: u64 = Port::ALL.len() as u64;

impl Emulator {
    fn open(
        devices: [String; Port::ALL.len()],
        config: &Config,
        rings: UnixStream,
        told: Option<Told>,
    ) -> Result<Self> {
        let mut sockets = Vec::with_capacity(devices.len());
        for device in &devices {
            let socket = PacketSocket::open(device, Prefix::Nothing, Listen::All, Leave::Direct)?;
            sockets.push(socket);
        }
        let poll = Poll::new()?;
        for (socket, token) in sockets.iter().zip(0..) {
            poll.add(socket, token)?;
        }
        poll.add(&rings, BELL)?;
        process::precise_timers()?;
        let scheduling = match process::real_time() {
            Ok(()) => Scheduling::RealTime,
            Err(_) => Scheduling::Ordinary,
        };
        let outages = &config.radio.down.outages;
        let outages = (!outages.is_never()).then(|| Outages::new(outages, config.seed));
        let told = told.filter(|_| config.radio.down.outages.notified);
        let sockets = sockets.try_into().map_err(|_| anyhow!("a socket for each port"))?;
        Ok(Emulator {
            sockets,
            leaving: Default::default(),
            received: Received::new(),
            poll,
            rings,
            air: Air::new(config),
            clock: None,
            outages,
            told,
            transitions: Vec::new(),
            next_transition: None,
            late: Vec::new(),
            scheduling,
            refused: 0,
        })
    }

    fn run(&mut self, orders: &Receiver<Order>) -> Result<()> {
        loop {
            let next = [self.air.next_event(), self.next_transition.map(|(at, _)| at)];
            let next = next.into_iter().flatten().min();
            let until = self.clock.zip(next).map(|(clock, at)| clock.monotonic_at(at));
            let ready = self.poll.wait(until)?;
            if ready.contains(BELL) {
                while rustix::io::read(&self.rings, &mut [0_u8; 16]).is_ok_and(|count| count > 0) {}
                loop {
                    match orders.try_recv() {
                        Ok(Order::Begin(clock)) => self.begin(clock),
                        Err(TryRecvError::Empty) => break,
                        // Who gave orders may be gone: a closed bell would ring for ever.
                        Ok(Order::Finish) | Err(TryRecvError::Disconnected) => return Ok(()),
                    }
                }
            }
            self.on_transitions();
            for port in Port::ALL {
                if ready.contains(port as u64) {
                    self.take(port)?;
                }
            }
            self.send_due();
        }
    }

    fn begin(&mut self, clock: Clock) {
        self.clock = Some(clock);
        if let Some(outages) = &self.outages {
            if outages.state(Instant::ZERO) == State::Down {
                self.next_transition = Some((Instant::ZERO, State::Down));
            } else {
                self.next_transition = outages.next_transition(Instant::ZERO);
            }
        }
    }

    fn on_transitions(&mut self) {
        let (Some(clock), Some(outages)) = (self.clock, &self.outages) else { return };
        let now = clock.now();
        while let Some((at, state)) = self.next_transition.filter(|(at, _)| *at <= now) {
            if let Some(told) = &mut self.told {
                told(match state {
                    State::Down => Notice::LinkDown(Side::RADIO),
                    State::Up => Notice::LinkUp(Side::RADIO),
                });
            }
            self.transitions.push((at, state));
            self.next_transition = outages.next_transition(at);
        }
    }

    /// Takes what arrived at a port.
    fn take(&mut self, port: Port) -> Result<()> {
        let socket = &self.sockets[port as usize];
        socket
            .receive(&mut self.received)
            .with_context(|| format!("receive from {}", socket.interface().name))?;
        for frame in self.received.frames() {
            let passes = match self.clock {
                Some(clock) => self.air.enter(port, frame, clock.now()),
                None => Some(Bytes::copy_from_slice(frame)),
            };
            if let Some(rest) = passes {
                self.leaving[port.opposite() as usize].push(Outgoing::new(Head::EMPTY, rest));
            }
        }
        Ok(())
    }

    fn send_due(&mut self) {
        if let Some(clock) = self.clock {
            let now = clock.now();
            while let Some(leaving) = self.air.poll(now) {
                let frame = Outgoing::new(Head::EMPTY, leaving.bytes);
                self.leaving[leaving.port as usize].push(frame);
                if self.late.len() < Log::PACKETS_MAX {
                    self.late.push(now.since(leaving.due));
                }
            }
        }
        for (socket, frames) in self.sockets.iter().zip(&mut self.leaving) {
            socket.send(frames, &[], |_, _| self.refused += 1);
            frames.clear();
        }
    }

    fn report(self) -> Report {
        let overruns = self.sockets.iter().map(PacketSocket::overruns).sum::<u64>();
        Report {
            log: self.air.into_log(),
            transitions: self.transitions,
            lateness: Lateness::of(self.late, self.scheduling),
            mishaps: self.refused + overruns,
        }
    }
}
