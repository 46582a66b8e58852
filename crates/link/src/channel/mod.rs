//! What the air does to packets: one file for each kind of channel.
//!
//! A channel is asked once for each packet, in the order in which they go on air, and answers with
//! a verdict: lost or not, and what it adds to the delay. Channels that live in time (`bit_error`,
//! `fade`, `recorded`) run on while the link is idle, so every scheme meets the same errors at the
//! same instants; the others count packets.

pub mod arq;
pub mod bit_error;
pub mod burst;
pub mod fade;
pub mod packet_loss;
pub mod recorded;
pub mod runs;

use crate::outage::Interval;
use sansio::{BitRate, Duration, Instant};

/// A channel of a hop. Plain data; values out of range are clamped to the range.
#[derive(Clone, Debug, PartialEq)]
pub enum Config {
    /// Independent bit errors over link time.
    BitError(bit_error::Config),
    /// Independent losses.
    PacketLoss(packet_loss::Config),
    /// Losses in a row, counted in packets.
    Burst(burst::Config),
    /// Losses in a row, in time.
    Fade(fade::Config),
    /// Losses in a row, of measured lengths.
    Runs(runs::Config),
    /// The radio's own repetitions.
    Arq(arq::Config),
    /// The delay as recorded; it replaces the hop's.
    RecordedDelay(recorded::DelayConfig),
    /// Losses as recorded.
    RecordedLoss(recorded::LossConfig),
}

impl Config {
    /// True if it may delay one packet more than another.
    pub(crate) fn delays(&self) -> bool {
        matches!(self, Config::Arq(_) | Config::RecordedDelay(_))
    }
}

/// Why the air lost a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Loss {
    /// The link was away.
    Outage,
    /// A bit error fell into it.
    BitError,
    /// Lost on its own.
    Packet,
    /// Lost in a burst.
    Burst,
    /// Lost in a fade.
    Fade,
    /// The radio gave up repeating it.
    Arq,
    /// Lost in a burst of measured length.
    Run,
    /// Lost when the recording says so.
    Recorded,
}

impl Loss {
    /// All causes.
    pub const ALL: [Loss; 8] = [
        Loss::Outage,
        Loss::BitError,
        Loss::Packet,
        Loss::Burst,
        Loss::Fade,
        Loss::Arq,
        Loss::Run,
        Loss::Recorded,
    ];

    /// The cause in traces and results.
    pub fn name(self) -> &'static str {
        match self {
            Loss::Outage => "outage",
            Loss::BitError => "bit_error",
            Loss::Packet => "packet_loss",
            Loss::Burst => "burst",
            Loss::Fade => "fade",
            Loss::Arq => "arq",
            Loss::Run => "run",
            Loss::Recorded => "recorded",
        }
    }
}

/// A packet on the air.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Air {
    /// From its first bit to its last.
    pub(crate) time: Interval,
    /// Its length, headers included.
    pub(crate) bytes: u32,
}

/// What a channel does to one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Verdict {
    pub(crate) loss: Option<Loss>,
    /// Added to the propagation delay.
    pub(crate) delay: Duration,
}

impl Verdict {
    pub(crate) const PASS: Verdict = Verdict { loss: None, delay: Duration::ZERO };

    fn lost_if(lost: bool, loss: Loss) -> Verdict {
        Verdict { loss: lost.then_some(loss), delay: Duration::ZERO }
    }
}

/// The channels of one hop.
#[derive(Clone, Debug)]
pub(crate) struct Channels(Vec<Channel>);

#[derive(Clone, Debug)]
enum Channel {
    BitError(bit_error::BitError),
    PacketLoss(packet_loss::PacketLoss),
    Burst(burst::Burst),
    Fade(Box<fade::Fade>),
    Runs(Box<runs::Runs>),
    Arq(arq::Arq),
    RecordedDelay(recorded::RecordedDelay),
    RecordedLoss(recorded::RecordedLoss),
}

impl Channels {
    /// The channels of hop `name`, whose bits take their time at `rate`.
    pub(crate) fn new(configs: &[Config], rate: BitRate, seed: u64, name: &str) -> Self {
        let mut channels: Vec<Channel> = Vec::with_capacity(configs.len());
        for (config, name) in named(configs, name) {
            channels.push(match config {
                Config::BitError(config) => {
                    Channel::BitError(bit_error::BitError::new(config, rate, seed, &name))
                }
                Config::PacketLoss(config) => {
                    Channel::PacketLoss(packet_loss::PacketLoss::new(config, seed, &name))
                }
                Config::Burst(config) => Channel::Burst(burst::Burst::new(config, seed, &name)),
                Config::Fade(config) => {
                    Channel::Fade(Box::new(fade::Fade::new(config, seed, &name)))
                }
                Config::Runs(config) => {
                    Channel::Runs(Box::new(runs::Runs::new(config, seed, &name)))
                }
                Config::Arq(config) => Channel::Arq(arq::Arq::new(config, seed, &name)),
                Config::RecordedDelay(config) => {
                    Channel::RecordedDelay(recorded::RecordedDelay::new(config))
                }
                Config::RecordedLoss(config) => {
                    Channel::RecordedLoss(recorded::RecordedLoss::new(config))
                }
            });
        }
        Channels(channels)
    }

    /// What becomes of a packet: every channel is asked, the first that loses it names the cause,
    /// the delays add up.
    pub(crate) fn judge(&mut self, air: Air) -> Verdict {
        let mut verdict = Verdict::PASS;
        for channel in &mut self.0 {
            let one = match channel {
                Channel::BitError(channel) => channel.judge(air),
                Channel::PacketLoss(channel) => channel.judge(),
                Channel::Burst(channel) => channel.judge(),
                Channel::Fade(channel) => channel.judge(air),
                Channel::Runs(channel) => channel.judge(),
                Channel::Arq(channel) => channel.judge(),
                Channel::RecordedDelay(channel) => channel.judge(air),
                Channel::RecordedLoss(channel) => channel.judge(air),
            };
            verdict.loss = verdict.loss.or(one.loss);
            verdict.delay += one.delay;
        }
        verdict
    }
}

/// Each channel with the name of its random streams. A second one of a kind has a stream of its
/// own; adding it moves no other's.
fn named<'a>(configs: &'a [Config], name: &'a str) -> impl Iterator<Item = (&'a Config, String)> {
    configs.iter().enumerate().map(move |(index, config)| {
        let kind = core::mem::discriminant(config);
        let before =
            configs[..index].iter().filter(|other| core::mem::discriminant(*other) == kind);
        let name = match before.count() {
            0 => name.to_owned(),
            before => format!("{name}.{}", before + 1),
        };
        (config, name)
    })
}

/// When the air of hop `name` is bad, of the channels of which that can be said: stretches that
/// begin before `end`, sorted by their beginning.
pub fn fades(configs: &[Config], (seed, name): (u64, &str), end: Instant) -> Vec<Interval> {
    let mut found: Vec<Interval> = named(configs, name)
        .flat_map(|(config, name)| match config {
            Config::Fade(config) => fade::stretches(config, seed, &name, end),
            Config::RecordedLoss(config) => recorded::stretches(config, end),
            _ => Vec::new(),
        })
        .collect();
    found.sort_by_key(|stretch| stretch.start);
    found
}

/// The order in which a hop with these channels delivers.
pub(crate) fn order(configs: &[Config]) -> arq::Order {
    let reorders = |config: &Config| {
        matches!(config, Config::Arq(arq::Config { order: arq::Order::AsReceived, .. }))
    };
    if configs.iter().any(reorders) { arq::Order::AsReceived } else { arq::Order::InOrder }
}

/// The least delay of a hop with these channels, if one of them replaces the hop's own. Of several
/// the first counts, and what the others have above their least is added to it.
pub(crate) fn delay(configs: &[Config]) -> Option<Duration> {
    configs.iter().find_map(|config| match config {
        Config::RecordedDelay(config) => Some(config.delays.shortest()),
        _ => None,
    })
}

/// A probability within 0 to 1; 0 if it is not a number.
fn probability(p: f64) -> f64 {
    if p > 0.0 { p.min(1.0) } else { 0.0 }
}
