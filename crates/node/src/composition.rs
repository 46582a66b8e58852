//! Which parts a stack may have, and which go together: the one rule for schemes and for ways to
//! make handoffs.
//!
//! A stack is written `snoop-modern+smooth`. Two schemes go together unless `schemes::stack` says
//! why not; a scheme and a way to make handoffs unless [`CONFLICTS`] does; two of these never.
//! [`NAMED`] stacks have a name of their own.

use crate::roaming::Style;
use schemes::stack::{self, Family, LAYERS, Layer};

/// A part of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// A scheme at a base station, a mobile host, or both.
    Scheme(&'static Layer),
    /// How packets find the host again that has changed cells.
    Handoff(Style),
}

/// Stacks with a name: what it stands for, and why.
pub const NAMED: [(&str, &str, &str); 1] = [(
    "best",
    "snoop-modern+smooth",
    "our combination for handoffs: nothing unacknowledged is lost, no sender has to be told",
)];

/// Schemes that do not go with a way to make handoffs, and why.
pub const CONFLICTS: [(Family, Style, &str); 1] =
    [(Family::WindowStation, Style::Multicast, "in which no base station has a tunnel to another")];

const TWO_WAYS: &str = "one way to make handoffs at a time";

impl Part {
    /// All of them: schemes, then ways to make handoffs.
    pub fn all() -> impl Iterator<Item = Part> {
        let styles = Style::NAMES.iter().map(|(_, style, _)| Part::Handoff(*style));
        LAYERS.iter().map(Part::Scheme).chain(styles)
    }

    /// The part of this name.
    pub fn named(name: &str) -> Option<Part> {
        Part::all().find(|part| part.name() == name)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Part::Scheme(layer) => layer.name,
            Part::Handoff(style) => style.name(),
        }
    }

    /// What it is a kind of: conflicts are between kinds.
    pub fn kind(self) -> &'static str {
        match self {
            Part::Scheme(layer) => layer.family.name(),
            Part::Handoff(style) => style.name(),
        }
    }

    /// Where it stands.
    pub fn place(self) -> &'static str {
        match self {
            Part::Scheme(layer) => layer.place.name(),
            Part::Handoff(_) => "handoffs",
        }
    }

    /// What it does, in one line.
    pub fn what(self) -> &'static str {
        match self {
            Part::Scheme(layer) => layer.what,
            Part::Handoff(style) => {
                let row = Style::NAMES.iter().find(|(_, known, _)| *known == style);
                row.map_or("", |(_, _, what)| what)
            }
        }
    }

    /// True if it runs between real interfaces.
    pub fn is_live(self) -> bool {
        match self {
            Part::Scheme(layer) => layer.worlds.live(),
            Part::Handoff(_) => false,
        }
    }
}

/// Why two parts do not go together; `None` if they do.
pub fn conflict(one: Part, other: Part) -> Option<&'static str> {
    match (one, other) {
        (Part::Scheme(one), Part::Scheme(other)) => stack::conflict(one, other),
        (Part::Handoff(one), Part::Handoff(other)) if one == other => Some("it is the same"),
        (Part::Handoff(_), Part::Handoff(_)) => Some(TWO_WAYS),
        (Part::Scheme(layer), Part::Handoff(style))
        | (Part::Handoff(style), Part::Scheme(layer)) => {
            let row =
                CONFLICTS.iter().find(|(family, way, _)| (*family, *way) == (layer.family, style));
            row.map(|(_, _, reason)| *reason)
        }
    }
}

/// The names in a stack's text, named stacks taken apart.
pub fn expand(text: &str) -> impl Iterator<Item = &str> {
    text.split('+').flat_map(|name| {
        let named = NAMED.iter().find(|(known, ..)| *known == name);
        named.map_or(name, |(_, parts, _)| *parts).split('+')
    })
}

/// The first two parts of a stack that do not go together, and why. Names of no part are passed
/// over.
pub fn first_conflict(text: &str) -> Option<(Part, Part, &'static str)> {
    let parts: Vec<Part> = expand(text).filter_map(Part::named).collect();
    let pairs = (0..parts.len()).flat_map(|place| (0..place).map(move |before| (before, place)));
    let mut pairs = pairs.map(|(before, place)| (parts[before], parts[place]));
    pairs.find_map(|(one, other)| Some((one, other, conflict(one, other)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rule_is_symmetric_and_names_are_unique() {
        let parts: Vec<Part> = Part::all().collect();
        for one in &parts {
            assert_eq!(Part::named(one.name()), Some(*one));
            for other in &parts {
                assert_eq!(conflict(*one, *other), conflict(*other, *one));
            }
            assert!(NAMED.iter().all(|(name, ..)| *name != one.name()));
            assert!(one.what().len() <= 88, "{}: one line", one.name());
        }
    }

    #[test]
    fn two_ways_to_make_handoffs_never_go_together_and_schemes_go_with_all_but_one() {
        let refused = |text: &str| first_conflict(text).expect(text).2;
        for (name, ..) in Style::NAMES {
            for (other, ..) in Style::NAMES {
                refused(&format!("{name}+{other}"));
            }
            for layer in &LAYERS {
                let text = format!("{}+{name}", layer.name);
                let is_apart = text == "window-station+multicast";
                assert_eq!(first_conflict(&text).is_some(), is_apart, "{text}");
            }
        }
        assert_eq!(refused("snoop+forwarding+snoop-modern"), "one agent at a base station");
    }

    #[test]
    fn a_named_stack_stands_for_parts_that_go_together() {
        for (name, parts, _) in NAMED {
            assert_eq!(expand(name).collect::<Vec<_>>(), parts.split('+').collect::<Vec<_>>());
            assert!(expand(name).all(|part| Part::named(part).is_some()), "{name}");
            assert_eq!(first_conflict(name), None);
        }
        assert_eq!(first_conflict("best+multicast").expect("two ways").2, TWO_WAYS);
    }
}
