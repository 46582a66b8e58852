//! What a driver runs: one case of a scenario, with every parameter resolved.

mod schemes;

use crate::cell::addresses;
use crate::host::{Application, Host};
use crate::roaming::{Roaming, stack};
use crate::scenario::{
    Amount, BitErrors, Case, Channel, Departures, Direction, Hosts, Loss, Outage, Queue, Scenario,
    Sender, Served, Size, Switch, Time, Told, Traffic, radio,
};
use ::schemes::stack::FixedHost;
use ::schemes::{Scheme, fast_retransmit, window};
use link::preset::Pair;
use link::{Limit, channel, hop, outage};
use sansio::{Duration, FlowKey, Host as Address, Instant, Random, Signal, StreamId};
use std::rc::Rc;
use tcp::config::{ReceiveWindow, TimerModel};
use tcp::{Config, Endpoint, HandoffMark};
use wire::tcp::Seq;

/// One run, up to its seed.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// How many triples of fixed host, base station and mobile host stand side by side.
    pub triples: u32,
    /// Mobile hosts at each base station, with a fixed host each ([`crate::cell`]). More than one
    /// only if there is one base station.
    pub mobiles: u32,
    /// Which of them the scheme serves.
    pub served: Served,
    /// Fixed host to base station and back.
    pub wired: Pair,
    /// Base station to mobile host and back.
    pub radio: Pair,
    /// How long before an outage the mobile host's signal gets weak; none if it never does.
    pub warned: Option<Duration>,
    /// Cells among which the mobile hosts move; none: each stays at its base station.
    pub roaming: Option<Roaming>,
    /// How those cells divide the air.
    pub channel: Channel,
    /// The schemes at the base station and at the mobile host (`schemes::stack::Stack::named`).
    pub scheme: String,
    /// Parameters of fast retransmission other than those of its preset, if it is among them.
    pub fast_retransmit: Option<fast_retransmit::Config>,
    /// Parameters of window control other than those of its preset, if it is among them.
    pub window: Option<window::Config>,
    /// What the base station is told of departures onto its radio, if its scheme asks.
    pub departures: Departures,
    /// Both hosts' TCP.
    pub tcp: Config,
    /// The transfers of each pair of hosts.
    pub transfers: Vec<Transfer>,
    /// The run ends here at the latest.
    pub until: Duration,
    /// Mean time between instants at which the base station forgets its soft state (SNOOP-GEN-3).
    pub forget_every: Option<Duration>,
}

/// One transfer of a pair of hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Which way.
    pub direction: Way,
    /// What is sent.
    pub application: Application,
}

/// Which way data goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Fixed host to mobile host.
    Down,
    /// Mobile host to fixed host.
    Up,
}

/// A pair of end hosts.
#[derive(Debug)]
pub struct EndHosts {
    /// On the wired side.
    pub fixed: Host,
    /// Behind the radio.
    pub mobile: Host,
}

/// A case that the simulator cannot run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotSimulated {
    /// There is no model of the sender without SACK.
    #[error("sack = off: no model of {0} without SACK; use sack = on")]
    Sack(&'static str),
    /// There was no such sender then.
    #[error("tcp = {0}: hosts of 1995 had no such sender; use hosts = modern")]
    Hosts(&'static str),
    /// The scheme needs a kernel.
    #[error("schemes = {0}: runs in the lab only, which has a kernel to tune")]
    Scheme(String),
}

impl NotSimulated {
    /// The key of a scenario that says otherwise.
    pub fn key(&self) -> &'static str {
        match self {
            NotSimulated::Sack(_) => "sack",
            NotSimulated::Hosts(_) => "tcp",
            NotSimulated::Scheme(_) => "schemes",
        }
    }
}

impl Plan {
    /// A transfer that needs this many times as long as an undisturbed one is given up.
    const PATIENCE: u64 = 200;
    /// And never sooner than this.
    const PATIENCE_MIN: Duration = Duration::from_secs(120);
    /// The signal at the mobile host when it has been warned of an outage, and during that.
    pub const SIGNAL_WEAK: Signal = Signal::from_db(0);
    /// And at any other time.
    pub const SIGNAL_GOOD: Signal = Signal::from_db(20);
    /// Bytes of IPv4 and TCP headers without options.
    const HEADER_BYTES: u32 = 40;
    /// Bytes of a timestamps option with its padding.
    const TIMESTAMPS_BYTES: u32 = 12;
    /// The port on which transfers are accepted; one more for each further transfer.
    const PORT: u16 = 5001;

    /// The plan of one case.
    ///
    /// # Errors
    /// If the simulator has no model of the sender, as it is here, or of the scheme.
    pub fn new(scenario: &Scenario, case: &Case) -> Result<Plan, NotSimulated> {
        let is_new = matches!(case.sender, Sender::Cubic | Sender::Linux | Sender::Bbr);
        if is_new && scenario.hosts == Hosts::Bsd1995 {
            return Err(NotSimulated::Hosts(case.sender.name()));
        }
        if case.sender == Sender::Bbr && case.sack == Switch::Off {
            return Err(NotSimulated::Sack(case.sender.name()));
        }
        stack(&case.scheme).map_err(|_| NotSimulated::Scheme(case.scheme.clone()))?;
        Ok(Plan::of_path(scenario, case))
    }

    /// The plan of one case for a lab, whose kernels have senders and schemes of their own: a
    /// scheme without an engine is replaced by plain.
    pub fn for_lab(scenario: &Scenario, case: &Case) -> Plan {
        Plan::of_path(scenario, case)
    }

    fn of_path(scenario: &Scenario, case: &Case) -> Plan {
        let roaming = Roaming::of(scenario, case);
        let scheme = stack(&case.scheme).map(|stack| stack.station);
        let mut radio = radio::pair(scenario.radio);
        let preset = (radio.down.rate, radio.down.queue);
        for hop in [&mut radio.down, &mut radio.up] {
            // A preset's directions may differ; what is said otherwise is said of both.
            if scenario.rate.0 != preset.0 {
                hop.rate = scenario.rate.0;
            }
            if limit(scenario.queue) != preset.1 {
                hop.queue = limit(scenario.queue);
            }
            hop.delay = scenario.delay.0;
            hop.channels.extend(channels(scenario, case));
            hop.outages = outages(case.outage);
            hop.frame_arq = scenario.arq.config().or(hop.frame_arq);
        }
        scenario.record(&mut radio.down, &mut radio.up);
        radio.half_duplex = scenario.half_duplex;
        radio.down.report_departures = scenario.departures == Departures::Air
            && scheme.as_ref().is_ok_and(Scheme::wants_departures);
        // The rest lies behind the router.
        let behind = roaming.as_ref().map_or(Duration::ZERO, |it| it.backhaul.down.delay);
        let wired = hop::Config {
            queue: Limit::Packets(WIRED_QUEUE_PACKETS),
            ..hop::Config::clean(
                scenario.wired_rate.0,
                scenario.wired_delay.0.saturating_sub(behind),
            )
        };
        let mut plan = Plan {
            triples: 1,
            mobiles: scenario.mobiles,
            served: scenario.served,
            wired: Pair::symmetric(wired),
            radio,
            warned: warned(case.outage),
            roaming,
            channel: scenario.channel,
            scheme: if scheme.is_ok() { case.scheme.clone() } else { "plain".to_owned() },
            fast_retransmit: None,
            window: None,
            departures: scenario.departures,
            tcp: hosts_config(scenario, case),
            transfers: transfers(scenario, case.direction),
            until: Duration::ZERO,
            forget_every: None,
        };
        plan.until = plan.patience(scenario);
        plan
    }

    fn patience(&self, scenario: &Scenario) -> Duration {
        match scenario.amount {
            Amount::Duration(duration) => duration.0,
            Amount::Size(size) => {
                let rate = self.payload_bps().max(1.0);
                let bits = size.0 as f64 * 8.0 * f64::from(self.mobiles);
                let ideal = Duration::from_secs_f64(bits / rate);
                (ideal * Self::PATIENCE).max(Self::PATIENCE_MIN)
            }
        }
    }

    /// Payload bytes of a full segment.
    pub fn segment_bytes(&self) -> u32 {
        let options = if self.tcp.timestamps { Self::TIMESTAMPS_BYTES } else { 0 };
        u32::from(self.tcp.mss) - options
    }

    /// Bytes of a full packet on the air, IP header included.
    pub fn packet_bytes(&self) -> u32 {
        u32::from(self.tcp.mss) + Self::HEADER_BYTES
    }

    /// What the slowest hop on the way of any data carries as payload, bit/s, without errors.
    fn payload_bps(&self) -> f64 {
        let share = f64::from(self.segment_bytes()) / f64::from(self.packet_bytes());
        let radio = self.data_hops().map(hop::Config::service_rate).min();
        let wired = self.wired.down.service_rate();
        radio.map_or(wired, |radio| radio.min(wired)).as_bps() as f64 * share
    }

    /// The most that the last hop can deliver, bit/s: rate x MAC efficiency x (1 - packet error
    /// rate of a full packet) x payload / packet size, of all directions that carry data together;
    /// if they share the air, of one. A link layer that waits for ACKs leaves the share of the air
    /// in which it sends full packets. Where something is recorded, its average over a run of that
    /// length takes its place; over none, that of the whole recording.
    pub fn ceiling_bps(&self, case: &Case, over: Duration) -> f64 {
        let share = f64::from(self.segment_bytes()) / f64::from(self.packet_bytes());
        let intact = 1.0 - case.ber.packet_loss(self.packet_bytes());
        let one = |hop: &hop::Config| {
            let rate = match &hop.capacity {
                Some(capacity) => capacity.average(over),
                None => hop.service_rate(),
            };
            let arrives = intact * (1.0 - mean(case, hop)) * (1.0 - recorded_loss(hop, over));
            rate.as_bps() as f64 * share * arrives * self.sending_share(hop)
        };
        let (sum, ways) = (self.data_hops().map(one).sum::<f64>(), self.data_hops().count());
        if self.radio.half_duplex { sum / ways.max(1) as f64 } else { sum }
    }

    /// Share of the air in which a link layer that waits for ACKs sends full packets.
    fn sending_share(&self, hop: &hop::Config) -> f64 {
        let Some(arq) = hop.frame_arq else { return 1.0 };
        let sends = hop.service_rate().time_for(self.packet_bytes()).as_secs_f64();
        sends / (sends + (hop.delay * 2 + arq.ack_time).as_secs_f64())
    }

    /// The directions of the last hop that carry data.
    fn data_hops(&self) -> impl Iterator<Item = &hop::Config> {
        let carries = |way| self.transfers.iter().any(|transfer| transfer.direction == way);
        let down = carries(Way::Down).then_some(&self.radio.down);
        down.into_iter().chain(carries(Way::Up).then_some(&self.radio.up))
    }

    /// One pair of end hosts, whose TCP is `tcp`, a copy of [`Plan::tcp`] for all of them. Initial
    /// sequence numbers and tick phases follow from the seed.
    pub fn hosts(&self, tcp: &Rc<Config>, pair: u32, seed: u64) -> EndHosts {
        let mut random = Random::new(seed, &format!("{pair}.hosts"));
        let (fixed_address, mobile_address) = addresses(pair);
        let mut fixed = Host::default();
        let mut mobile = Host::default();
        let phases = [(); 2].map(|()| tick_phase(tcp, &mut random));
        for (index, transfer) in self.transfers.iter().enumerate() {
            let stream = StreamId(pair * self.transfers.len() as u32 + index as u32);
            let port = Self::PORT + index as u16;
            let (sender, receiver, from, to, sends, receives) = match transfer.direction {
                Way::Down => {
                    (fixed_address, mobile_address, &mut fixed, &mut mobile, phases[0], phases[1])
                }
                Way::Up => {
                    (mobile_address, fixed_address, &mut mobile, &mut fixed, phases[1], phases[0])
                }
            };
            let flow = FlowKey {
                source: Address { address: sender, port: port + 32_768 },
                destination: Address { address: receiver, port },
            };
            let [first, second] = [(); 2].map(|()| Seq(random.bits() as u32));
            let client = Endpoint::client(tcp.clone(), flow, first).with_tick_phase(sends);
            let server = Endpoint::server(tcp.clone(), flow.reversed(), second);
            from.connect(client, transfer.application, stream);
            to.listen(server.with_tick_phase(receives));
        }
        EndHosts { fixed, mobile }
    }

    /// Bytes that each stream of the run has to deliver before it is over; a run with a duration
    /// has one that never is. Nobody waits for messages beside a transfer that ends.
    pub fn missing(&self) -> Vec<u64> {
        let is_sized = |one: &Transfer| matches!(one.application, Application::Bulk { .. });
        let ends = self.transfers.iter().any(is_sized);
        let one = self.transfers.iter().map(|transfer| match transfer.application {
            Application::Bulk { size } => size,
            Application::Request { .. } if ends => 0,
            Application::Endless | Application::Request { .. } => u64::MAX,
        });
        (0..self.pairs()).flat_map(|_| one.clone()).collect()
    }

    /// When a run is over at the latest.
    pub fn until(&self) -> Instant {
        Instant::ZERO + self.until
    }
}

/// Room at the ends of the wired path: it is not what is studied, so it drops only what a window
/// of hundreds of segments would.
pub(crate) const WIRED_QUEUE_PACKETS: u32 = 1000;

fn transfers(scenario: &Scenario, direction: Direction) -> Vec<Transfer> {
    let bulk = match scenario.amount {
        Amount::Size(size) => Application::Bulk { size: size.0 },
        Amount::Duration(_) => Application::Endless,
    };
    let messages = |size: Size, every: Time| Application::Request { size: size.0, every: every.0 };
    let applications = match scenario.traffic {
        Traffic::Bulk => vec![bulk],
        Traffic::Request { size, every } => vec![messages(size, every)],
        Traffic::BulkAndRequest { size, every } => vec![bulk, messages(size, every)],
    };
    let ways: &[Way] = match direction {
        Direction::Down => &[Way::Down],
        Direction::Up => &[Way::Up],
        Direction::Both => &[Way::Down, Way::Up],
    };
    let one = |application| ways.iter().map(move |&direction| Transfer { direction, application });
    applications.into_iter().flat_map(one).collect()
}

fn hosts_config(scenario: &Scenario, case: &Case) -> Config {
    let is_marked = stack(&case.scheme).is_ok_and(|stack| stack.fixed == FixedHost::ObeysMark);
    let congestion = case.sender.simulated();
    let sack = case.sack == Switch::On;
    let congestion = match (case.sender, sack, scenario.hosts) {
        (Sender::Reno, _, Hosts::Modern) => tcp::Congestion::LinuxReno,
        // Reno's windows with SACK's recovery is what RFC 6675 describes.
        (Sender::Reno | Sender::NewReno, true, _) => tcp::Congestion::Sack,
        _ => congestion,
    };
    let mut config = match scenario.hosts {
        Hosts::Bsd1995 => Config::bsd_1995(congestion),
        Hosts::Modern => Config::linux(congestion),
    };
    config.sack = sack;
    config.handoff_mark = if is_marked { HandoffMark::Obeyed } else { HandoffMark::Ignored };
    config.mss = scenario.mss.0 as u16;
    config.receive_buffer_bytes = scenario.window.0 as u32;
    if scenario.window != Scenario::WINDOW_MODERN {
        // A kernel that is told its window does not tune it.
        config.receive_window = ReceiveWindow::Whole;
    }
    if config.receive_window == ReceiveWindow::Whole {
        config.window_scale = config.window_scale.map(|_| scale_for(config.receive_buffer_bytes));
    } else {
        // As much as the endpoint finds that its buffer needs.
        config.window_scale = config.window_scale.map(|_| WINDOW_SCALE_MAX);
    }
    config
}

/// A host's ticks began at a time of its own (open point A3).
fn tick_phase(config: &Config, random: &mut Random) -> Duration {
    match config.rto.model {
        TimerModel::Ideal { .. } => Duration::ZERO,
        TimerModel::Ticks { tick } => random.uniform_time(Duration::ZERO, tick),
    }
}

/// Largest shift count (RFC 7323, 2.3).
const WINDOW_SCALE_MAX: u8 = 14;

/// The smallest shift count that can say this window.
fn scale_for(window_bytes: u32) -> u8 {
    (0..=14).find(|shift| window_bytes >> shift <= u32::from(u16::MAX)).unwrap_or(14)
}

fn limit(queue: Queue) -> Limit {
    match queue {
        Queue::Packets(packets) => Limit::Packets(packets),
        Queue::Bytes(bytes) => Limit::Bytes(bytes),
    }
}

fn channels(scenario: &Scenario, case: &Case) -> Vec<channel::Config> {
    let mut channels = Vec::new();
    if case.ber != BitErrors::None {
        let rate = case.ber.rate();
        channels.push(channel::Config::BitError(channel::bit_error::Config { rate }));
    }
    match case.loss {
        Loss::None => {}
        Loss::Independent(share) => {
            let config = channel::packet_loss::Config { probability: share.0 };
            channels.push(channel::Config::PacketLoss(config));
        }
        Loss::Burst { mean, length } => {
            let config = channel::burst::Config { mean: mean.0, length };
            channels.push(channel::Config::Burst(config));
        }
        Loss::Fade { good, bad, loss } => {
            let config = channel::fade::Config { good: good.0, bad: bad.0, loss: loss.0 };
            channels.push(channel::Config::Fade(config));
        }
        Loss::Runs { ref good, ref bad } => {
            channels.push(channel::Config::Runs(scenario.files.runs(good, bad)));
        }
    }
    channels
}

fn warned(outage: Outage) -> Option<Duration> {
    match outage {
        Outage::Every { told: Told::Warned(lead), .. }
        | Outage::At { told: Told::Warned(lead), .. } => Some(lead.0),
        _ => None,
    }
}

fn outages(outage: Outage) -> outage::Spec {
    let length = |(shortest, longest): (crate::scenario::Time, crate::scenario::Time)| {
        outage::Length { shortest: shortest.0, longest: longest.0 }
    };
    let mode = |hold| if hold { outage::Mode::Hold } else { outage::Mode::Lose };
    match outage {
        Outage::None => outage::Spec::default(),
        Outage::Every { every, length: range, hold, told } => outage::Spec {
            schedule: outage::Schedule::Every { every: every.0, length: length(range) },
            mode: mode(hold),
            notified: told != Told::Nobody,
        },
        Outage::At { at, length: range, hold, told } => {
            let planned = outage::Planned {
                start: Instant::ZERO + at.0.0,
                spread: at.1.0.saturating_sub(at.0.0),
                length: length(range),
            };
            outage::Spec {
                schedule: outage::Schedule::At(vec![planned]),
                mode: mode(hold),
                notified: told != Told::Nobody,
            }
        }
    }
}

/// Long-run share of packets that a case's loss takes from a hop.
fn mean(case: &Case, hop: &hop::Config) -> f64 {
    match case.loss {
        Loss::None => 0.0,
        Loss::Independent(share) => share.0,
        Loss::Burst { mean, .. } => mean.0,
        Loss::Fade { good, bad, loss } => {
            let (good, bad) = (good.0.as_secs_f64(), bad.0.as_secs_f64());
            loss.0 * bad / (good + bad)
        }
        Loss::Runs { .. } => {
            let means = hop.channels.iter().filter_map(|channel| match channel {
                channel::Config::Runs(config) => Some(config.mean_loss()),
                _ => None,
            });
            means.sum()
        }
    }
}

/// Share of a time in which a recording loses everything.
fn recorded_loss(hop: &hop::Config, over: Duration) -> f64 {
    let shares = hop.channels.iter().filter_map(|channel| match channel {
        channel::Config::RecordedLoss(config) => Some(config.losses.share(over, config.step)),
        _ => None,
    });
    shares.sum()
}
