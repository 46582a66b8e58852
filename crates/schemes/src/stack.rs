//! Which schemes there are, where each stands, and which go together: the one declared table.
//!
//! A stack is written `snoop-modern+fast-retransmit`: at most one engine at the base station and
//! one at the mobile host. Two layers that stand at different places go together unless
//! [`CONFLICTS`] says why not; two at the same place never do, and the table says why for each.

use crate::{MobileScheme, Scheme, fast_retransmit, plain, snoop, window};
use core::fmt;
use fast_retransmit::config::{Receiver, Trigger};

/// One scheme that may be part of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layer {
    /// Its name.
    pub name: &'static str,
    /// What it is a kind of; [`CONFLICTS`] speaks of these.
    pub family: Family,
    /// Where it stands.
    pub place: Place,
    /// Where it runs.
    pub worlds: Worlds,
    /// What it does, in one line.
    pub what: &'static str,
}

/// Schemes of one paper at one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it; the crate's page has them")]
pub enum Family {
    Plain,
    Snoop,
    FastRetransmit,
    WindowMobile,
    WindowStation,
}

impl Family {
    /// Its members' common name.
    pub const fn name(self) -> &'static str {
        match self {
            Family::Plain => "plain",
            Family::Snoop => "snoop",
            Family::FastRetransmit => "fast-retransmit",
            Family::WindowMobile => "window-mobile",
            Family::WindowStation => "window-station",
        }
    }
}

/// Where a layer stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// At the base station, or a gateway above several.
    BaseStation,
    /// At the mobile host, below its TCP.
    MobileHost,
    /// A part at each.
    Both,
}

/// Where a layer runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Worlds {
    /// In the simulator and between real interfaces.
    SimAndLive,
    /// In the simulator.
    Sim,
}

impl Place {
    /// A few words.
    pub const fn name(self) -> &'static str {
        match self {
            Place::BaseStation => "base station",
            Place::MobileHost => "mobile host",
            Place::Both => "both",
        }
    }
}

impl Worlds {
    /// True if it runs between real interfaces.
    pub const fn live(self) -> bool {
        matches!(self, Worlds::SimAndLive)
    }
}

const fn layer(
    name: &'static str,
    (family, place, worlds): (Family, Place, Worlds),
    what: &'static str,
) -> Layer {
    Layer { name, family, place, worlds, what }
}

/// All of them.
pub const LAYERS: [Layer; 8] = {
    const PLAIN: (Family, Place, Worlds) = (Family::Plain, Place::BaseStation, Worlds::SimAndLive);
    const SNOOP: (Family, Place, Worlds) = (Family::Snoop, Place::BaseStation, Worlds::SimAndLive);
    const AT_MOBILE: (Family, Place, Worlds) =
        (Family::FastRetransmit, Place::MobileHost, Worlds::Sim);
    [
        layer("plain", PLAIN, "the base station only forwards"),
        layer(
            "snoop",
            SNOOP,
            "Snoop by the paper: cache, local retransmission, duplicate ACKs suppressed",
        ),
        layer(
            "snoop-modern",
            SNOOP,
            "Snoop for senders and radios of today: SACK, restart after outages",
        ),
        layer(
            "fast-retransmit",
            AT_MOBILE,
            "back on the air, the mobile host repeats its last ACK four times and its oldest data",
        ),
        layer(
            "fast-retransmit-strict",
            AT_MOBILE,
            "the same by the paper: three ACKs, and its own TCP resends in slow start",
        ),
        layer(
            "fast-retransmit-marked",
            AT_MOBILE,
            "the same with one marked ACK, which the fixed host has to understand",
        ),
        layer(
            "window-mobile",
            (Family::WindowMobile, Place::MobileHost, Worlds::Sim),
            "the mobile host closes its window before the signal is too weak",
        ),
        layer(
            "window-station",
            (Family::WindowStation, Place::Both, Worlds::Sim),
            "the same, and the base station holds what still comes",
        ),
    ]
};

/// Families that do not go together, and why. Symmetric.
pub const CONFLICTS: [(Family, Family, &str); 9] = {
    use Family::*;
    const CLOSED: &str = "behind a closed window nothing is on its way that could be sent again";
    [
        (Plain, Plain, "it is the same"),
        (Plain, Snoop, "plain is a base station without an agent"),
        (Plain, WindowStation, "plain is a base station that holds nothing"),
        (Snoop, Snoop, "one agent at a base station"),
        (Snoop, WindowStation, "what one of them holds, the other takes for lost on the air"),
        (FastRetransmit, FastRetransmit, "one way of asking at a time"),
        (FastRetransmit, WindowMobile, CLOSED),
        (FastRetransmit, WindowStation, CLOSED),
        (WindowMobile, WindowStation, "window-station has it"),
    ]
};

/// Why two layers do not go together; `None` if they do.
pub fn conflict(one: &Layer, other: &Layer) -> Option<&'static str> {
    let pair = (one.family, other.family);
    let row = CONFLICTS.iter().find(|(a, b, _)| pair == (*a, *b) || pair == (*b, *a));
    match row {
        Some((_, _, reason)) => Some(reason),
        None if one.name == other.name => Some("it is the same"),
        None => None,
    }
}

/// What stands at a base station and at its mobile hosts.
#[derive(Clone, Debug)]
pub struct Stack {
    /// At the base station.
    pub station: Scheme,
    /// At each mobile host.
    pub mobile: Option<MobileScheme>,
    /// What the fixed hosts have to understand.
    pub fixed: FixedHost,
}

/// What a stack asks of fixed hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FixedHost {
    /// Nothing.
    Unchanged,
    /// They obey marked ACKs (`wire::tcp::HANDOFF_MARK`; CI-FRX-4).
    ObeysMark,
}

/// A stack that cannot be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StackError {
    /// No layer has this name.
    Unknown(String),
    /// Two layers do not go together.
    Conflict {
        /// The names.
        layers: [&'static str; 2],
        /// Why.
        reason: &'static str,
    },
}

impl fmt::Display for StackError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StackError::Unknown(name) => {
                let names = LAYERS.map(|layer| layer.name).join(", ");
                write!(f, "{name:?} is none of {names}, nor several of them joined by +")
            }
            StackError::Conflict { layers: [one, other], reason } => {
                write!(f, "{one} and {other} do not go together: {reason}")
            }
        }
    }
}

impl core::error::Error for StackError {}

/// The layers that a text names, as in `snoop+fast-retransmit`.
///
/// # Errors
/// The first name that is none, or the first two that do not go together.
pub fn layers(text: &str) -> Result<Vec<&'static Layer>, StackError> {
    let mut chosen: Vec<&'static Layer> = Vec::new();
    for name in text.split('+') {
        let found = LAYERS.iter().find(|layer| layer.name == name);
        let layer = found.ok_or_else(|| StackError::Unknown(name.to_owned()))?;
        for other in &chosen {
            if let Some(reason) = conflict(other, layer) {
                return Err(StackError::Conflict { layers: [other.name, layer.name], reason });
            }
        }
        chosen.push(layer);
    }
    Ok(chosen)
}

impl Stack {
    /// The stack that a text names, each layer with its preset's parameters.
    ///
    /// # Errors
    /// See [`layers`].
    pub fn named(text: &str) -> Result<Stack, StackError> {
        let mut stack = Stack {
            station: Scheme::Plain(plain::Forwarder),
            mobile: None,
            fixed: FixedHost::Unchanged,
        };
        layers(text)?.into_iter().for_each(|layer| stack.add(layer));
        Ok(stack)
    }

    fn add(&mut self, layer: &Layer) {
        let strict = fast_retransmit::Config::strict();
        let modern = fast_retransmit::Config::modern();
        match layer.name {
            "snoop" => self.station = snoop(snoop::Config::strict()),
            "snoop-modern" => self.station = snoop(snoop::Config::modern()),
            "fast-retransmit" => self.mobile = Some(modern.into()),
            "fast-retransmit-strict" => self.mobile = Some(strict.into()),
            "fast-retransmit-marked" => {
                let receiver = Receiver::Marked;
                self.mobile = Some(fast_retransmit::Config { receiver, ..modern }.into());
                self.fixed = FixedHost::ObeysMark;
            }
            "window-mobile" => self.mobile = Some(window::mobile::Config::modern().into()),
            "window-station" => {
                self.station = station(window::station::Config::modern());
                self.mobile = Some(window::mobile::Config::modern().into());
            }
            _ => {}
        }
    }

    /// The same where what a base station still holds for a mobile host may follow it through a
    /// tunnel: Snoop's cache then does.
    pub fn that_follows(self) -> Stack {
        let station = match self.station {
            Scheme::Snoop(agent) => {
                let when_moved = snoop::config::WhenMoved::Follow;
                snoop(snoop::Config { when_moved, ..agent.config().clone() })
            }
            other => other,
        };
        Stack { station, ..self }
    }

    /// The same where there is one base station: nobody registers, and instead of the end of a
    /// handoff the return of the link sets things off.
    pub fn without_handoffs(self) -> Stack {
        let mobile = self.mobile.map(|mobile| match mobile {
            MobileScheme::FastRetransmit(agent) => {
                fast_retransmit::Config { trigger: Trigger::LinkUp, ..*agent.config() }.into()
            }
            other => other,
        });
        let station = match self.station {
            Scheme::Window(agent) => {
                let unregistered = window::table::State::Mon;
                station(window::station::Config { unregistered, ..*agent.config() })
            }
            other => other,
        };
        Stack { station, mobile, ..self }
    }
}

fn snoop(config: snoop::Config) -> Scheme {
    Scheme::Snoop(Box::new(snoop::Agent::new(config)))
}

fn station(config: window::station::Config) -> Scheme {
    Scheme::Window(Box::new(window::station::Agent::new(config)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stands_at(layer: &Layer, place: Place) -> bool {
        layer.place == place || layer.place == Place::Both
    }

    #[test]
    fn two_layers_at_one_place_never_go_together_and_the_table_says_why() {
        for one in &LAYERS {
            for other in &LAYERS {
                let shares = [Place::BaseStation, Place::MobileHost]
                    .into_iter()
                    .any(|place| stands_at(one, place) && stands_at(other, place));
                let reason = conflict(one, other);
                assert_eq!(reason, conflict(other, one));
                assert!(!shares || reason.is_some(), "{} and {}", one.name, other.name);
            }
        }
    }

    #[test]
    fn every_layer_builds_engines_where_it_stands_and_nowhere_else() {
        for layer in &LAYERS {
            let stack = Stack::named(layer.name).expect(layer.name);
            let is_plain = matches!(stack.station, Scheme::Plain(_));
            assert_eq!(stack.mobile.is_some(), stands_at(layer, Place::MobileHost));
            let stands = stands_at(layer, Place::BaseStation) && layer.family != Family::Plain;
            assert_eq!(!is_plain, stands, "{}", layer.name);
            assert!(layer.what.len() <= 88, "{}: one line", layer.name);
        }
    }

    #[test]
    fn every_scheme_that_is_a_base_stations_alone_is_a_layer_with_the_same_line() {
        for (name, what) in Scheme::NAMES {
            let layer = LAYERS.iter().find(|layer| layer.name == name).expect(name);
            assert_eq!((layer.place, layer.what), (Place::BaseStation, what));
            assert!(layer.worlds.live());
        }
    }

    #[test]
    fn a_stack_that_cannot_be_says_why() {
        let error = |text| Stack::named(text).expect_err(text).to_string();
        assert!(error("snoop+window-station").contains("do not go together: what one of them"));
        assert!(error("snoop+snoop").contains("one agent"));
        assert!(error("snoop+split").starts_with("\"split\" is none of plain, snoop,"));
        assert!(error("").starts_with("\"\" is none of"));
        let stack = Stack::named("snoop-modern+fast-retransmit").expect("they stack");
        assert!(stack.mobile.is_some() && matches!(stack.station, Scheme::Snoop(_)));
    }
}
