//! The scenario as a file: TOML or JSON, whose keys are the names of the command-line options.
//!
//! A [`Draft`] has what somebody wrote; [`Scenario::complete`] fills in the rest and refuses what
//! contradicts itself. A scenario serialises to a document that parses to the same scenario.

use super::channel::{BitErrors, Loss, Outage, Traffic};
use super::frame_arq::Arq;
use super::handoff::{self, Handoff};
use super::map::Map;
use super::names::{Channel, Departures, Direction, Hosts, Radio, Sender, Served, Switch};
use super::quantity::{Percent, Queue, Rate, Size, Time};
use super::recorded::{Files, Recorded};
use crate::composition::NAMED;
use crate::roaming::Style;
use sansio::Duration;
use schemes::stack::{self, StackError};
use serde::{Deserialize, Serialize};

/// One value, or a list of values: an axis of the comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis<T>(pub Vec<T>);

impl<T: Serialize> Serialize for Axis<T> {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self.0.as_slice() {
            [one] => one.serialize(to),
            many => many.serialize(to),
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Axis<T> {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Visitor<T>(core::marker::PhantomData<T>);
        impl<'de, T: Deserialize<'de>> serde::de::Visitor<'de> for Visitor<T> {
            type Value = Axis<T>;
            fn expecting(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.write_str("a value or a list of values")
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Axis<T>, E> {
                let one = serde::de::value::StrDeserializer::<E>::new(text);
                T::deserialize(one).map(|one| Axis(vec![one]))
            }
            fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<Axis<T>, E> {
                self.visit_str(&number.to_string())
            }
            fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<Axis<T>, E> {
                self.visit_str(&number.to_string())
            }
            fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<Axis<T>, E> {
                self.visit_str(&number.to_string())
            }
            fn visit_bool<E: serde::de::Error>(self, value: bool) -> Result<Axis<T>, E> {
                self.visit_str(if value { "on" } else { "off" })
            }
            fn visit_seq<A: serde::de::SeqAccess<'de>>(
                self,
                mut list: A,
            ) -> Result<Axis<T>, A::Error> {
                let mut values = Vec::new();
                while let Some(value) = list.next_element()? {
                    values.push(value);
                }
                if values.is_empty() {
                    return Err(serde::de::Error::custom(
                        "an empty list; expected at least one value",
                    ));
                }
                Ok(Axis(values))
            }
        }
        from.deserialize_any(Visitor(core::marker::PhantomData))
    }
}

/// What somebody asked for; everything may be missing.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the keys are those of Scenario, documented there")]
pub struct Draft {
    pub title: Option<String>,
    pub radio: Option<Radio>,
    pub rate: Option<Rate>,
    pub delay: Option<Time>,
    pub queue: Option<Queue>,
    pub departures: Option<Departures>,
    pub wired_rate: Option<Rate>,
    pub wired_delay: Option<Time>,
    pub rtt: Option<Time>,
    pub down_capacity: Option<String>,
    pub up_capacity: Option<String>,
    pub down_delay: Option<String>,
    pub up_delay: Option<String>,
    pub down_loss: Option<String>,
    pub up_loss: Option<String>,
    pub trace_step: Option<Time>,
    pub half_duplex: Option<bool>,
    pub arq: Option<Arq>,
    pub mobiles: Option<u32>,
    pub served: Option<Served>,
    #[serde(skip)]
    pub files: Files,
    pub ber: Option<Axis<BitErrors>>,
    pub loss: Option<Axis<Loss>>,
    pub outage: Option<Axis<Outage>>,
    pub handoff: Option<Axis<Handoff>>,
    pub cells: Option<u16>,
    pub channel: Option<Channel>,
    pub backhaul: Option<Percent>,
    pub direction: Option<Axis<Direction>>,
    pub tcp: Option<Axis<Sender>>,
    pub sack: Option<Axis<Switch>>,
    pub schemes: Option<Axis<String>>,
    pub hosts: Option<Hosts>,
    pub mss: Option<Size>,
    pub window: Option<Size>,
    pub traffic: Option<Traffic>,
    pub size: Option<Size>,
    pub duration: Option<Time>,
    pub seeds: Option<u32>,
    pub seed: Option<u64>,
    pub map: Option<Map>,
}

impl Draft {
    /// Takes every setting that `over` has; what was read of files stays.
    pub fn overlay(&mut self, over: &Draft) {
        /// Every field is named, so that one more does not compile until it is here, too.
        macro_rules! take {
            ($($field:ident),+) => {{
                let Draft { files: _, $($field),+ } = over;
                $(if $field.is_some() { self.$field.clone_from($field); })+
            }};
        }
        take!(
            title,
            radio,
            rate,
            delay,
            queue,
            departures,
            wired_rate,
            wired_delay,
            rtt,
            down_capacity,
            up_capacity,
            down_delay,
            up_delay,
            down_loss,
            up_loss,
            trace_step,
            half_duplex,
            arq,
            mobiles,
            served,
            ber,
            loss,
            outage,
            handoff,
            cells,
            channel,
            backhaul,
            direction,
            tcp,
            sack,
            schemes,
            hosts,
            mss,
            window,
            traffic,
            size,
            duration,
            seeds,
            seed,
            map
        );
    }
}

/// A complete comparison: one path, one kind of hosts, and axes to compare along.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Scenario {
    /// One line for reports; absent, it says what the link is like.
    pub title: String,
    /// Preset of the last hop: MAC efficiency, host cost, local ARQ and what follows unless said.
    pub radio: Radio,
    /// Rate of the last hop, each way; that of a preset stands for the preset's own two.
    pub rate: Rate,
    /// Propagation delay of the last hop, one way.
    pub delay: Time,
    /// Limit of the base station's queue toward the mobile host, and of the mobile host's queue;
    /// that of a preset stands for the preset's own two.
    pub queue: Queue,
    /// What the base station learns of its queue toward the mobile host.
    pub departures: Departures,
    /// Rate of the path between fixed host and base station, each way.
    pub wired_rate: Rate,
    /// Propagation delay between fixed host and base station, one way.
    pub wired_delay: Time,
    /// True if both directions of the last hop share the air.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub half_duplex: bool,
    /// Repetition of lost frames on the air, both ways.
    #[serde(skip_serializing_if = "Arq::is_none")]
    pub arq: Arq,
    /// Mobile hosts at the base station, each with a fixed host and a wired path of its own.
    #[serde(skip_serializing_if = "is_one")]
    pub mobiles: u32,
    /// Which of them the scheme serves.
    #[serde(skip_serializing_if = "is_all")]
    pub served: Served,
    /// Recordings that replace parts of the last hop.
    #[serde(flatten)]
    pub recorded: Recorded,
    /// What is in the files that the scenario names.
    #[serde(skip)]
    pub files: Files,
    /// Axis: bit error rates of the last hop, both ways.
    pub ber: Axis<BitErrors>,
    /// Axis: losses of the last hop, both ways.
    pub loss: Axis<Loss>,
    /// Axis: outages of the last hop, both ways at once.
    pub outage: Axis<Outage>,
    /// Axis: changes of the cell.
    #[serde(skip_serializing_if = "handoff::is_still")]
    pub handoff: Axis<Handoff>,
    /// Cells, each with a base station, where there are handoffs.
    #[serde(skip_serializing_if = "handoff::is_two")]
    pub cells: u16,
    /// Whether the cells share one channel, where there are handoffs.
    #[serde(skip_serializing_if = "handoff::is_per_cell")]
    pub channel: Channel,
    /// Share of the wired delay that lies between the home agent's router and each base station,
    /// where there are handoffs.
    #[serde(skip_serializing_if = "handoff::is_backhaul")]
    pub backhaul: Percent,
    /// Axis: which way the data goes.
    pub direction: Axis<Direction>,
    /// Axis: senders.
    pub tcp: Axis<Sender>,
    /// Axis: SACK; absent, each sender has its own default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sack: Option<Axis<Switch>>,
    /// Axis: schemes.
    pub schemes: Axis<String>,
    /// What the hosts' TCP is like.
    pub hosts: Hosts,
    /// Maximum segment size as announced, without options.
    pub mss: Size,
    /// Receive buffer, the largest window.
    pub window: Size,
    /// What the application sends.
    pub traffic: Traffic,
    /// How much is sent, or for how long.
    #[serde(flatten)]
    pub amount: Amount,
    /// Replicates of each case.
    pub seeds: u32,
    /// The first seed.
    pub seed: u64,
    /// Where base stations stand and hosts walk, if they do; only in a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub map: Option<Map>,
}

/// When a run is over.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Amount {
    /// After so many bytes were delivered.
    Size(Size),
    /// After so much time.
    Duration(Time),
}

/// A setting that makes no sense, alone or beside another.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key} = {value}: expected {expected}")]
pub struct SettingError {
    /// The key, which is also the option's name.
    pub key: &'static str,
    /// Its value.
    pub value: String,
    /// What was expected.
    pub expected: String,
}

impl Scenario {
    /// Segment sizes: at least RFC 1122's 536 less generous options, at most a jumbo frame.
    const MSS_BYTES: core::ops::RangeInclusive<u64> = 88..=8960;
    /// The window of modern hosts when nobody says otherwise; their kernels then tune it.
    pub const WINDOW_MODERN: Size = Size(6 << 20);
    /// Windows: a segment at least, at most what RFC 7323 can express.
    const WINDOW_BYTES_MAX: u64 = 1 << 30;
    /// Longest one-way delay that makes sense: 10 s.
    const DELAY_MAX: Duration = Duration::from_secs(10);
    /// Most replicates of one case.
    const SEEDS_MAX: u32 = 1_000_000;

    /// Fills in what the draft leaves open and checks the whole.
    ///
    /// # Errors
    /// The first setting that contradicts itself or another one.
    pub fn complete(mut draft: Draft) -> Result<Scenario, SettingError> {
        let recorded = draft.recorded()?;
        let radio = draft.radio.unwrap_or(Radio::Plain);
        let preset = super::radio::defaults(radio);
        let hosts = draft.hosts.unwrap_or(preset.hosts);
        let delay = draft.delay.unwrap_or(preset.delay);
        let wired_delay = match (draft.rtt, draft.wired_delay) {
            (Some(_), Some(wired)) => {
                return Err(SettingError {
                    key: "wired-delay",
                    value: wired.to_string(),
                    expected: "either rtt or wired-delay, not both".into(),
                });
            }
            (Some(rtt), None) => wired_delay_for(rtt, delay)?,
            (None, wired) => wired.unwrap_or(preset.wired_delay),
        };
        let amount = match (draft.size, draft.duration) {
            (Some(_), Some(duration)) => {
                return Err(SettingError {
                    key: "duration",
                    value: duration.to_string(),
                    expected: "either size or duration, not both".into(),
                });
            }
            (None, Some(duration)) => Amount::Duration(duration),
            (size, None) => Amount::Size(size.unwrap_or(Size(10_000_000))),
        };
        let window = draft.window.unwrap_or(match hosts {
            // 64 KB is the most a window without scaling can say (003, section 7).
            Hosts::Bsd1995 => Size(65_535),
            Hosts::Modern => Self::WINDOW_MODERN,
        });
        let still = if draft.map.is_some() { Handoff::Walk } else { Handoff::None };
        let mut scenario = Scenario {
            title: String::new(),
            radio,
            rate: draft.rate.unwrap_or(preset.rate),
            delay,
            queue: draft.queue.unwrap_or(preset.queue),
            departures: draft.departures.unwrap_or(Departures::Air),
            wired_rate: draft.wired_rate.unwrap_or(preset.wired_rate),
            wired_delay,
            half_duplex: draft.half_duplex.unwrap_or(false),
            arq: draft.arq.unwrap_or_default(),
            mobiles: draft.mobiles.unwrap_or(1),
            served: draft.served.unwrap_or(Served::All),
            recorded,
            files: draft.files,
            ber: draft.ber.unwrap_or_else(|| Axis(vec![BitErrors::None])),
            loss: draft.loss.unwrap_or_else(|| Axis(vec![Loss::None])),
            outage: draft.outage.unwrap_or_else(|| Axis(vec![preset.outage])),
            handoff: draft.handoff.unwrap_or_else(|| Axis(vec![still])),
            cells: handoff::cells(draft.cells, draft.map.as_ref())?,
            channel: draft.channel.unwrap_or(Channel::PerCell),
            backhaul: draft.backhaul.unwrap_or(handoff::BACKHAUL),
            direction: draft.direction.unwrap_or_else(|| Axis(vec![Direction::Down])),
            tcp: draft.tcp.unwrap_or_else(|| Axis(vec![Sender::Reno, Sender::Sack])),
            sack: draft.sack,
            schemes: draft.schemes.unwrap_or_else(default_schemes),
            hosts,
            mss: draft.mss.unwrap_or(Size(1460)),
            window,
            traffic: draft.traffic.unwrap_or(Traffic::Bulk),
            amount,
            seeds: draft.seeds.unwrap_or(10),
            seed: draft.seed.unwrap_or(1),
            map: draft.map,
        };
        scenario.title = draft.title.unwrap_or_else(|| super::title::of(&scenario));
        scenario.check()?;
        Ok(scenario)
    }

    fn check(&self) -> Result<(), SettingError> {
        let refuse = |key, value: &dyn core::fmt::Display, expected: &str| {
            Err(SettingError { key, value: value.to_string(), expected: expected.into() })
        };
        for (key, delay) in [("delay", self.delay), ("wired-delay", self.wired_delay)] {
            if delay.0 > Self::DELAY_MAX {
                return refuse(key, &delay, "at most 10s one way");
            }
        }
        if !Self::MSS_BYTES.contains(&self.mss.0) {
            return refuse("mss", &self.mss, "88B to 8960B");
        }
        if self.window.0 < self.mss.0 || self.window.0 > Self::WINDOW_BYTES_MAX {
            return refuse("window", &self.window, "at least one segment (mss), at most 1GiB");
        }
        if self.hosts == Hosts::Bsd1995 && self.window.0 > 65_535 {
            return refuse("window", &self.window, "at most 65535B for hosts of 1995");
        }
        if !(1..=Self::SEEDS_MAX).contains(&self.seeds) {
            return refuse("seeds", &self.seeds, "1 to 1000000");
        }
        let recorded = &self.recorded;
        if self.half_duplex && (recorded.down_capacity.is_some() || recorded.up_capacity.is_some())
        {
            let expected = "no recorded capacity beside it: what the other direction took is in it";
            return refuse("half-duplex", &true, expected);
        }
        self.check_cell()?;
        self.check_handoffs()?;
        if let Amount::Duration(duration) = self.amount
            && duration.0.is_zero()
        {
            return refuse("duration", &duration, "more than 0s");
        }
        if let (Traffic::Request { every, .. }, Amount::Size(size)) = (self.traffic, self.amount) {
            let value = format!("request …, every={every}, size={size}");
            return refuse(
                "traffic",
                &value,
                "a duration beside requests, as in duration = \"30s\"",
            );
        }
        self.check_names()
    }

    /// What cannot be beside several mobile hosts or a link layer that repeats.
    fn check_cell(&self) -> Result<(), SettingError> {
        let refuse = |key, value: &dyn core::fmt::Display, expected: &str| {
            Err(SettingError { key, value: value.to_string(), expected: expected.into() })
        };
        let recorded = &self.recorded;
        let capacity = recorded.down_capacity.is_some() || recorded.up_capacity.is_some();
        self.check_mobiles()?;
        if self.mobiles == 1 && self.served == Served::First {
            return refuse("served", &self.served, "all, or more than one of mobiles beside it");
        }
        if !self.arq.is_none() && capacity {
            let expected = "none beside a recorded capacity, which is what a link layer left over";
            return refuse("arq", &self.arq, expected);
        }
        Ok(())
    }

    fn check_names(&self) -> Result<(), SettingError> {
        let moves = self.handoff.0.iter().any(|handoff| *handoff != Handoff::None);
        for scheme in &self.schemes.0 {
            let layers = handoff::without_style(scheme, moves)?;
            let expected = match stack::layers(&layers) {
                Ok(_) => continue,
                Err(_) if super::LAB_ONLY.iter().any(|(name, _)| name == scheme) => continue,
                Err(StackError::Unknown(_)) => {
                    let known = stack::LAYERS.map(|layer| layer.name).join(", ");
                    let styles = Style::NAMES.map(|(name, ..)| name).join(", ");
                    let named = NAMED.map(|(name, ..)| name).join(" or ");
                    let in_lab = super::LAB_ONLY.map(|(name, _)| name).join(" or ");
                    format!(
                        "{known}, several of those joined by +, beside a handoff with one of \
                         {styles}, or {named}; or {in_lab}"
                    )
                }
                Err(StackError::Conflict { layers: [one, other], reason }) => {
                    format!("no {one} beside {other}: {reason}")
                }
            };
            return Err(SettingError { key: "schemes", value: scheme.clone(), expected });
        }
        let only_off = self.sack.as_ref().is_some_and(|sack| !sack.0.contains(&Switch::On));
        if only_off && let Some(sender) = self.tcp.0.iter().find(|sender| sender.needs_sack()) {
            return Err(SettingError {
                key: "sack",
                value: "off".into(),
                expected: format!("on, which tcp = {sender} needs"),
            });
        }
        Ok(())
    }
}

/// Left out of a document: what it was before there could be several.
fn is_one(mobiles: &u32) -> bool {
    *mobiles == 1
}

fn is_all(served: &Served) -> bool {
    *served == Served::All
}

/// The wired delay that makes the unloaded round trip of a small packet `rtt`.
fn wired_delay_for(rtt: Time, delay: Time) -> Result<Time, SettingError> {
    if rtt.0 < delay.0 * 2 {
        return Err(SettingError {
            key: "rtt",
            value: rtt.to_string(),
            expected: format!("at least twice the delay of the last hop, {}", Time(delay.0 * 2)),
        });
    }
    Ok(Time((rtt.0 - delay.0 * 2) / 2))
}

fn default_schemes() -> Axis<String> {
    Axis(["plain", "snoop", "snoop-modern"].map(String::from).to_vec())
}
