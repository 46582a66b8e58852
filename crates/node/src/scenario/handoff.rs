//! When mobile hosts change cells, as people write it.

use super::channel::Outage;
use super::document::{Axis, Scenario, SettingError};
use super::map::Map;
use super::names::{Channel, Served};
use super::quantity::{Percent, QuantityError, Time, as_text, fields};
use crate::cell;
use crate::composition;
use crate::movement::dwell;
use crate::roaming::Style;
use crate::roaming::address::{self, STATIONS_MAX};
use core::fmt;
use core::str::FromStr;

/// Changes of the cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Handoff {
    /// `none`: each mobile host stays where it is.
    None,
    /// By the clock.
    Crossings(Crossings),
    /// `walk`: along the way through the scenario's map.
    Walk,
}

/// Crossings by the clock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Crossings {
    /// When.
    pub when: When,
    /// How the cells meet.
    pub border: Border,
    /// `rendezvous=1s`: from a crossing to the new cell's first beacon; without it, whenever that
    /// is due.
    pub rendezvous: Option<Time>,
}

/// The times of crossings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum When {
    /// `every=8s[,sd=0.1s][,first=40s][,times=3]`.
    Every {
        /// From one crossing to the next.
        every: Time,
        /// Standard deviation of that; normal.
        deviation: Option<Time>,
        /// The first one; without it, drawn from the seed within the first period.
        first: Option<Time>,
        /// How many.
        times: Option<u32>,
    },
    /// `at=3s`: a single one.
    At(Time),
}

/// How two cells meet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Border {
    /// `overlap`: both reach all the time.
    Overlap,
    /// `overlap=1s`: both reach so long before and after a crossing.
    OverlapFor(Time),
    /// `gap=0.5s`: none reaches so long after a crossing.
    Gap(Time),
    /// `ahead=2s`: the new one reaches so long before a crossing, the old one not after it.
    Ahead(Time),
}

as_text!(Handoff);

impl Handoff {
    /// True if all cells reach all the time.
    fn is_everywhere(&self) -> bool {
        matches!(self, Handoff::Crossings(Crossings { border: Border::Overlap, .. }))
    }

    /// For how long nothing reaches after a crossing, in seconds; `None` if something always does.
    pub fn gap_s(&self) -> Option<f64> {
        match self {
            Handoff::Crossings(Crossings { border: Border::Gap(gap), .. }) => {
                Some(gap.0.as_secs_f64())
            }
            _ => None,
        }
    }
}

impl Crossings {
    /// As the movement has them.
    pub fn dwell(&self) -> dwell::Spec {
        let border = match self.border {
            Border::Overlap => dwell::Border::Overlap(None),
            Border::OverlapFor(length) => dwell::Border::Overlap(Some(length.0)),
            Border::Gap(gap) => dwell::Border::Gap(gap.0),
            Border::Ahead(length) => dwell::Border::Ahead(length.0),
        };
        let rendezvous = self.rendezvous.map(|time| time.0);
        match self.when {
            When::Every { every, deviation, first, times } => dwell::Spec {
                deviation: deviation.map_or(sansio::Duration::ZERO, |time| time.0),
                first: first.map(|time| time.0),
                times,
                border,
                rendezvous,
                ..dwell::Spec::every(every.0)
            },
            When::At(at) => dwell::Spec {
                first: Some(at.0),
                times: Some(1),
                border,
                rendezvous,
                ..dwell::Spec::every(at.0)
            },
        }
    }

    /// True if each handoff is over before the next one, and no beacon is heard where none reaches.
    fn makes_sense(&self) -> bool {
        let spec = self.dwell();
        let fits = match self.when {
            When::Every { every, deviation, first, times } => {
                let varies = deviation.is_some_and(|deviation| deviation.0 * 3 >= every.0);
                let starts = first.is_none_or(|first| !first.0.is_zero());
                spec.settled() < every.0 && !varies && starts && times != Some(0)
            }
            When::At(at) => !at.0.is_zero(),
        };
        let early = match (self.border, self.rendezvous) {
            (Border::Gap(gap), Some(rendezvous)) => rendezvous < gap,
            (Border::OverlapFor(length) | Border::Ahead(length), _) => length.0.is_zero(),
            _ => false,
        };
        fits && !early
    }
}

impl FromStr for Handoff {
    type Err = QuantityError;
    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let parsed = match text.trim() {
            "none" => Some(Handoff::None),
            "walk" => Some(Handoff::Walk),
            text => parse(text).filter(Crossings::makes_sense).map(Handoff::Crossings),
        };
        parsed.ok_or_else(|| QuantityError {
            value: text.to_owned(),
            what: "a handoff",
            expected: "none, or every=8s[,sd=0.1s][,first=40s][,times=3] or at=3s with one of \
                       overlap, overlap=1s, gap=0.5s, ahead=2s, and [,rendezvous=1s] no shorter \
                       than the gap; all of it over before the next; or walk beside a table [map] \
                       in a file",
        })
    }
}

fn parse(text: &str) -> Option<Crossings> {
    let (mut every, mut at, mut deviation, mut first) = (None, None, None, None);
    let (mut times, mut border, mut rendezvous) = (None, None, None);
    for (key, value) in fields(text) {
        let time = || value.parse::<Time>().ok();
        match key {
            "every" if every.is_none() => every = Some(time()?),
            "at" if at.is_none() => at = Some(time()?),
            "sd" if deviation.is_none() => deviation = Some(time()?),
            "first" if first.is_none() => first = Some(time()?),
            "times" if times.is_none() => times = Some(value.parse().ok()?),
            "overlap" if border.is_none() && value.is_empty() => border = Some(Border::Overlap),
            "overlap" if border.is_none() => border = Some(Border::OverlapFor(time()?)),
            "gap" if border.is_none() => border = Some(Border::Gap(time()?)),
            "ahead" if border.is_none() => border = Some(Border::Ahead(time()?)),
            "rendezvous" if rendezvous.is_none() => rendezvous = Some(time()?),
            _ => return None,
        }
    }
    let when = match (every, at) {
        (Some(every), None) => When::Every { every, deviation, first, times },
        (None, Some(at)) if deviation.is_none() && first.is_none() && times.is_none() => {
            When::At(at)
        }
        _ => return None,
    };
    Some(Crossings { when, border: border?, rendezvous })
}

impl fmt::Display for Handoff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Handoff::None => f.write_str("none"),
            Handoff::Crossings(crossings) => crossings.fmt(f),
            Handoff::Walk => f.write_str("walk"),
        }
    }
}

impl fmt::Display for Crossings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.when {
            When::At(at) => write!(f, "at={at}")?,
            When::Every { every, deviation, first, times } => {
                write!(f, "every={every}")?;
                deviation.map_or(Ok(()), |deviation| write!(f, ",sd={deviation}"))?;
                first.map_or(Ok(()), |first| write!(f, ",first={first}"))?;
                times.map_or(Ok(()), |times| write!(f, ",times={times}"))?;
            }
        }
        match self.border {
            Border::Overlap => f.write_str(",overlap")?,
            Border::OverlapFor(length) => write!(f, ",overlap={length}")?,
            Border::Gap(gap) => write!(f, ",gap={gap}")?,
            Border::Ahead(length) => write!(f, ",ahead={length}")?,
        }
        self.rendezvous.map_or(Ok(()), |rendezvous| write!(f, ",rendezvous={rendezvous}"))
    }
}

impl Scenario {
    /// How many mobile hosts there may be.
    pub(super) fn check_mobiles(&self) -> Result<(), SettingError> {
        let moves = self.handoff.0.iter().all(|handoff| *handoff != Handoff::None);
        let (max, expected) = match moves {
            true => (address::MOBILES_MAX, "1 to 262144 beside a handoff"),
            false => (cell::MOBILES_MAX, "1 to 1024 where all share one base station"),
        };
        if (1..=max).contains(&self.mobiles) {
            return Ok(());
        }
        let (value, expected) = (self.mobiles.to_string(), expected.to_owned());
        Err(SettingError { key: "mobiles", value, expected })
    }

    /// What cannot be beside mobile hosts that change cells.
    pub(super) fn check_handoffs(&self) -> Result<(), SettingError> {
        let refuse = |key, value: &dyn core::fmt::Display, expected: &str| {
            Err(SettingError { key, value: value.to_string(), expected: expected.into() })
        };
        let Some(handoff) = self.handoff.0.iter().find(|handoff| **handoff != Handoff::None) else {
            if self.map.is_some() {
                return refuse("handoff", &Handoff::None, "walk, or no table [map] beside it");
            }
            if self.cells != CELLS {
                return refuse("cells", &self.cells, "a handoff beside it, as in every=8s,overlap");
            }
            if self.channel == Channel::Shared {
                return refuse(
                    "channel",
                    &self.channel,
                    "a handoff beside it, as in every=8s,gap=0s",
                );
            }
            return Ok(());
        };
        self.check_walk()?;
        if !(2..=STATIONS_MAX).contains(&self.cells) {
            return refuse("cells", &self.cells, "2 to 65535 beside a handoff");
        }
        let everywhere = self.handoff.0.iter().find(|handoff| handoff.is_everywhere());
        if let Some(handoff) = everywhere
            && u64::from(self.mobiles) * u64::from(self.cells) > REACHED_MAX
        {
            let expected = format!(
                "overlap=1s or gap=0.1s beside {} mobiles in {} cells, all of which would reach \
                 everybody: {REACHED_MAX} such pairs at most",
                self.mobiles, self.cells
            );
            return refuse("handoff", handoff, &expected);
        }
        if self.channel == Channel::Shared && self.cells > SHARED_CELLS_MAX {
            let expected = format!("per-cell beside cells = {}: 16 share one at most", self.cells);
            return refuse("channel", &self.channel, &expected);
        }
        let recorded = &self.recorded;
        let capacity = recorded.down_capacity.is_some() || recorded.up_capacity.is_some();
        if self.channel == Channel::Shared && capacity {
            let expected = "per-cell beside a recorded capacity: what other cells took is in it";
            return refuse("channel", &self.channel, expected);
        }
        let outage = self.outage.0.iter().find(|outage| **outage != Outage::None);
        if let Some(outage) = outage {
            let expected = format!("none beside handoff = {handoff}");
            return refuse("outage", outage, &expected);
        }
        if !self.arq.is_none() {
            return refuse("arq", &self.arq, "none beside a handoff: whose frame would it repeat");
        }
        if self.served == Served::First {
            return refuse("served", &self.served, "all beside a handoff");
        }
        Ok(())
    }

    /// Hosts move by the clock or through a map.
    fn check_walk(&self) -> Result<(), SettingError> {
        let is_contrary = |handoff: &&Handoff| match handoff {
            Handoff::None => false,
            Handoff::Crossings(_) => self.map.is_some(),
            Handoff::Walk => self.map.is_none(),
        };
        if let Some(handoff) = self.handoff.0.iter().find(is_contrary) {
            let expected = match handoff {
                Handoff::Walk => {
                    "a table [map] beside it, in a scenario file: where base stations stand and \
                     hosts walk"
                }
                _ => "walk, or no table [map] beside it: hosts move by the clock or through a map",
            };
            let value = handoff.to_string();
            return Err(SettingError { key: "handoff", value, expected: expected.to_owned() });
        }
        self.map.as_ref().map_or(Ok(()), Map::check)
    }
}

/// Pairs of a cell and a mobile host that it reaches, at most: every beacon comes to each.
const REACHED_MAX: u64 = 1 << 22;

/// A stack's layers without the way in which it makes handoffs.
pub(super) fn without_style(scheme: &str, moves: bool) -> Result<String, SettingError> {
    let expected = match Style::take_from(scheme) {
        Ok((Some(_), _)) if !moves => "a handoff beside it, as in every=8s,overlap".to_owned(),
        taken => match (composition::first_conflict(scheme), taken) {
            (Some((one, other, reason)), _) => {
                format!("no {} beside {}: {reason}", one.name(), other.name())
            }
            (None, Ok((_, layers))) => return Ok(layers),
            (None, Err(style)) => format!("{style} once"),
        },
    };
    Err(SettingError { key: "schemes", value: scheme.to_owned(), expected })
}

/// The cells that there are: those of the map, if there is one.
pub(super) fn cells(said: Option<u16>, map: Option<&Map>) -> Result<u16, SettingError> {
    let Some(map) = map else { return Ok(said.unwrap_or(CELLS)) };
    let stations = map.stations.len();
    match said.filter(|said| usize::from(*said) != stations) {
        Some(said) => {
            let expected = format!("{stations}, as many as the map has stations, or nothing");
            Err(SettingError { key: "cells", value: said.to_string(), expected })
        }
        // More than there are addresses are refused with the map.
        None => Ok(stations.try_into().unwrap_or(u16::MAX)),
    }
}

/// Cells, unless said otherwise.
pub(super) const CELLS: u16 = 2;
/// Cells on one channel at most: so many are near enough to hear each other.
pub(super) const SHARED_CELLS_MAX: u16 = 16;
/// Half of the wired delay, unless said otherwise.
pub(super) const BACKHAUL: Percent = Percent(0.5);

/// Left out of a document: what was not there before there were handoffs.
pub(super) fn is_still(handoff: &Axis<Handoff>) -> bool {
    handoff.0 == [Handoff::None]
}

pub(super) fn is_two(cells: &u16) -> bool {
    *cells == CELLS
}

pub(super) fn is_per_cell(channel: &Channel) -> bool {
    *channel == Channel::PerCell
}

pub(super) fn is_backhaul(share: &Percent) -> bool {
    *share == BACKHAUL
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_contract_shows_parses_and_prints_as_it_was() {
        for text in [
            "none",
            "walk",
            "every=8s,overlap",
            "every=8s,overlap=1s",
            "every=8s,ahead=2s",
            "every=8s,gap=500ms",
            "every=8s,gap=500ms,rendezvous=1s",
            "every=8s,sd=100ms,first=40s,times=3,gap=0s,rendezvous=0s",
            "at=3s,gap=100ms",
        ] {
            assert_eq!(text.parse::<Handoff>().expect(text).to_string(), text);
        }
    }

    #[test]
    fn a_way_to_make_handoffs_is_refused_where_it_cannot_be() {
        let expected = |scheme, moves| without_style(scheme, moves).expect_err(scheme).expected;
        assert!(expected("multicast", false).starts_with("a handoff beside it"));
        assert!(
            expected("multicast+prefetch", true).ends_with("one way to make handoffs at a time")
        );
        assert!(expected("window-station+multicast", true).starts_with("no window-station"));
        let layers = |scheme| without_style(scheme, true).expect(scheme);
        assert_eq!(layers("prefetch"), "plain");
        assert_eq!(layers("snoop+multicast+fast-retransmit"), "snoop+fast-retransmit");
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for text in [
            "often",
            "every=8s",
            "gap=1s",
            "every=8s,gap=8s",
            "every=8s,gap=1s,overlap",
            "every=8s,overlap=4s",
            "every=8s,overlap=0s",
            "every=8s,ahead=0s",
            "every=8s,ahead=8s",
            "every=8s,ahead=1s,gap=1s",
            "every=8s,gap=1s,rendezvous=0.5s",
            "every=8s,gap=0s,rendezvous=8s",
            "every=0s,overlap",
            "every=8s,overlap,times=0",
            "every=8s,overlap,first=0s",
            "every=8s,sd=4s,overlap",
            "every=8s,at=1s,overlap",
            "at=1s,times=2,overlap",
            "every=8s,overlap,gap",
        ] {
            assert!(text.parse::<Handoff>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_shared_channel_needs_a_few_cells_and_a_rate() {
        let complete = |text: &str| {
            let draft = super::super::parse("test", text).expect("keys and values are known");
            Scenario::complete(draft)
        };
        let moves = "handoff = \"every=8s,overlap\"\nchannel = \"shared\"\n";
        let scenario = complete(&format!("{moves}cells = 16")).expect("16 cells");
        assert_eq!(scenario.channel, Channel::Shared);
        for (text, expected) in [
            ("channel = \"shared\"", "a handoff beside it"),
            (&format!("{moves}cells = 17"), "per-cell beside cells = 17"),
        ] {
            let error = complete(text).expect_err(text);
            assert_eq!(error.key, "channel");
            assert!(error.expected.starts_with(expected), "{error}");
        }
        assert!("own".parse::<Channel>().is_err());
    }
}
