//! Recorded channels, as a scenario names them: a file for each direction and each of capacity,
//! delay and loss, and two for a loss in runs of measured lengths.
//!
//! A scenario has names; what is in the files comes beside them ([`Files`]), read by whoever has
//! files.

use super::channel::Loss;
use super::document::{Draft, Scenario, SettingError};
use super::quantity::Time;
use link::channel::runs::Lengths;
use link::channel::{self, recorded, runs};
use link::hop;
use link::recorded::{Capacity, Delays, Losses};
use sansio::Duration;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The recordings of the last hop, by name.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Recorded {
    /// When packets may leave toward the mobile host; replaces the rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub down_capacity: Option<String>,
    /// When packets may leave toward the base station; replaces the rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub up_capacity: Option<String>,
    /// One-way delay toward the mobile host; replaces the propagation delay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub down_delay: Option<String>,
    /// One-way delay toward the base station; replaces the propagation delay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub up_delay: Option<String>,
    /// When packets toward the mobile host are lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub down_loss: Option<String>,
    /// When packets toward the base station are lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub up_loss: Option<String>,
    /// For how long each line of a delay or loss recording stands; 10 ms unless said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace_step: Option<Time>,
}

/// What a file has to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A [`Capacity`].
    Capacity,
    /// [`Delays`].
    Delays,
    /// [`Losses`].
    Losses,
    /// The [`Lengths`] of runs.
    Lengths,
}

/// What was read, by the name of its file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Files {
    /// Files of that kind.
    pub capacities: BTreeMap<String, Arc<Capacity>>,
    /// Files of that kind.
    pub delays: BTreeMap<String, Arc<Delays>>,
    /// Files of that kind.
    pub losses: BTreeMap<String, Arc<Losses>>,
    /// Files of that kind.
    pub lengths: BTreeMap<String, Arc<Lengths>>,
}

impl Files {
    /// True if this file was read as that.
    pub fn has(&self, kind: Kind, name: &str) -> bool {
        match kind {
            Kind::Capacity => self.capacities.contains_key(name),
            Kind::Delays => self.delays.contains_key(name),
            Kind::Losses => self.losses.contains_key(name),
            Kind::Lengths => self.lengths.contains_key(name),
        }
    }

    /// The distributions of a loss in runs.
    pub(crate) fn runs(&self, good: &str, bad: &str) -> runs::Config {
        runs::Config { good: present(&self.lengths, good), bad: present(&self.lengths, bad) }
    }
}

impl Draft {
    /// The names of all files, with the key each stands under.
    pub fn files_mut(&mut self) -> Vec<(&'static str, Kind, &mut String)> {
        let mut named: Vec<(&'static str, Kind, &mut String)> = [
            ("down-capacity", Kind::Capacity, &mut self.down_capacity),
            ("up-capacity", Kind::Capacity, &mut self.up_capacity),
            ("down-delay", Kind::Delays, &mut self.down_delay),
            ("up-delay", Kind::Delays, &mut self.up_delay),
            ("down-loss", Kind::Losses, &mut self.down_loss),
            ("up-loss", Kind::Losses, &mut self.up_loss),
        ]
        .into_iter()
        .filter_map(|(key, kind, name)| Some((key, kind, name.as_mut()?)))
        .collect();
        for loss in self.loss.iter_mut().flat_map(|axis| &mut axis.0) {
            if let Loss::Runs { good, bad } = loss {
                named.extend([good, bad].map(|name| ("loss", Kind::Lengths, name)));
            }
        }
        named
    }

    /// The recordings it names.
    ///
    /// # Errors
    /// If a file was not read, or a setting contradicts it.
    pub(crate) fn recorded(&mut self) -> Result<Recorded, SettingError> {
        let refuse = |key, value: &str, expected: &str| {
            Err(SettingError { key, value: value.to_owned(), expected: expected.to_owned() })
        };
        let files = core::mem::take(&mut self.files);
        for (key, kind, name) in self.files_mut() {
            if !files.has(kind, name) {
                return refuse(key, name, "a file that was read beforehand");
            }
        }
        self.files = files;
        if let Some(step) = self.trace_step
            && step.0.is_zero()
        {
            return refuse("trace-step", &step.to_string(), "more than 0s");
        }
        if let Some(rtt) = self.rtt
            && (self.down_delay.is_some() || self.up_delay.is_some())
        {
            let expected = "wired-delay instead: with a recorded delay no round trip is the same";
            return refuse("rtt", &rtt.to_string(), expected);
        }
        Ok(Recorded {
            down_capacity: self.down_capacity.take(),
            up_capacity: self.up_capacity.take(),
            down_delay: self.down_delay.take(),
            up_delay: self.up_delay.take(),
            down_loss: self.down_loss.take(),
            up_loss: self.up_loss.take(),
            trace_step: self.trace_step,
        })
    }
}

impl Scenario {
    /// Puts what was recorded into the directions of the last hop.
    pub(crate) fn record(&self, down: &mut hop::Config, up: &mut hop::Config) {
        let recorded = &self.recorded;
        let hops = [
            (down, &recorded.down_capacity, &recorded.down_delay, &recorded.down_loss),
            (up, &recorded.up_capacity, &recorded.up_delay, &recorded.up_loss),
        ];
        let step = recorded.trace_step.map_or(Recorded::STEP, |step| step.0);
        for (hop, capacity, delay, loss) in hops {
            if let Some(name) = capacity {
                hop.capacity = Some(present(&self.files.capacities, name));
            }
            if let Some(name) = delay {
                let delays = present(&self.files.delays, name);
                let config = recorded::DelayConfig { delays, step };
                hop.channels.push(channel::Config::RecordedDelay(config));
            }
            if let Some(name) = loss {
                let losses = present(&self.files.losses, name);
                let config = recorded::LossConfig { losses, step };
                hop.channels.push(channel::Config::RecordedLoss(config));
            }
        }
    }
}

impl Recorded {
    const STEP: Duration = Duration::from_millis(10);
}

fn present<T>(files: &BTreeMap<String, Arc<T>>, name: &str) -> Arc<T> {
    let file = files.get(name).cloned();
    file.unwrap_or_else(|| unreachable!("Scenario::complete refuses files that were not read"))
}
