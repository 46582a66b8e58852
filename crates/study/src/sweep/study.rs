//! The study file: a scenario, and the axes along which it is varied.
//!
//! ```toml
//! rate = "2Mbit/s"                  # any key of a scenario
//! schemes = ["plain", "snoop-modern"]
//! seeds = 20
//! metrics = ["goodput_bps"]         # of what was measured, only this; absent, everything
//!
//! [axes]                            # every value of one with every value of the others
//! ber = ["none", "1/1Mbit"]
//! rtt = ["20ms", "100ms"]
//!
//! [[axes.together]]                 # the first values together, then the second ones
//! wired-rate = ["10Mbit/s", "100Mbit/s"]
//! queue = ["20p", "200p"]
//! ```

use super::columns;
use node::Draft;
use node::scenario::{ScenarioError, line_of, locate_key, unreadable};
use serde::Deserialize;
use std::collections::BTreeMap;
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

/// A study as it was written.
#[derive(Clone, Debug)]
pub struct Study {
    /// What all runs have in common.
    pub base: Draft,
    /// What varies, in the order of the file.
    pub axes: Vec<Axis>,
    /// The measures that were asked for, if not all.
    pub metrics: Option<Vec<String>>,
    /// Every setting as it was written: what tells one study from another.
    pub settings: BTreeMap<String, String>,
    file: String,
    text: String,
}

/// An axis: one key that varies, or several that vary together.
#[derive(Clone, Debug)]
pub struct Axis {
    /// The keys.
    pub keys: Vec<String>,
    /// Their values.
    pub points: Vec<Point>,
}

/// One place on an axis.
#[derive(Clone, Debug, Default)]
pub struct Point {
    /// A value for each key, as written.
    pub values: Vec<String>,
    /// What they set.
    pub setting: Draft,
}

/// Keys that are no axes, and what to write instead.
const NO_AXES: [(&str, &str); 3] = [
    ("seeds", "expected seeds = N above [axes]: every combination has the same seeds"),
    ("seed", "expected seeds = N and seed = FIRST above [axes]"),
    ("title", "a title changes no run; expected it above [axes]"),
];
/// The table whose keys vary together.
const TOGETHER: &str = "together";

impl Study {
    /// Reads the text of a study file.
    ///
    /// # Errors
    /// The first thing that is wrong, with its line.
    pub fn parse(file: &str, text: &str) -> Result<Study, ScenarioError> {
        let source = Source { file, text };
        let mut table = DeTable::parse(text).map_err(|error| source.unreadable(&error))?;
        let mut settings = BTreeMap::new();
        flatten("", table.get_ref(), &mut settings);
        let axes = table.get_mut().remove("axes");
        let metrics = table.get_mut().remove("metrics");
        let fixed: Vec<String> =
            table.get_ref().keys().map(|key| key.get_ref().to_string()).collect();
        let base = Draft::deserialize(toml::Deserializer::from(table));
        let base = base.map_err(|error| source.unreadable(&error))?;
        let axes = axes.map_or(Ok(Vec::new()), |axes| source.axes(&axes))?;
        for key in axes.iter().flat_map(|axis| &axis.keys) {
            if fixed.contains(key) {
                let message = format!("{key} stands under [axes], too; expected one of the two");
                return Err(locate_key(key, message, file, text));
            }
        }
        let metrics = metrics.map(|metrics| source.metrics(&metrics)).transpose()?;
        Ok(Study { base, axes, metrics, settings, file: file.to_owned(), text: text.to_owned() })
    }

    /// Every part of the study that may name files.
    pub fn drafts_mut(&mut self) -> impl Iterator<Item = &mut Draft> {
        let points = self.axes.iter_mut().flat_map(|axis| &mut axis.points);
        [&mut self.base].into_iter().chain(points.map(|point| &mut point.setting))
    }

    /// A message about a key, with its line.
    pub(super) fn refuse(&self, key: &str, message: String) -> ScenarioError {
        locate_key(key, message, &self.file, &self.text)
    }

    /// A message about the whole file.
    pub(super) fn refuse_all(&self, message: String) -> ScenarioError {
        ScenarioError::at(&self.file, &self.text, None, message)
    }
}

/// The text that messages are about.
struct Source<'a> {
    file: &'a str,
    text: &'a str,
}

impl Source<'_> {
    fn unreadable(&self, error: &toml::de::Error) -> ScenarioError {
        unreadable(self.file, self.text, error)
    }

    fn refuse<T>(&self, what: &Spanned<T>, message: impl Into<String>) -> ScenarioError {
        let line = line_of(self.text, what.span().start);
        ScenarioError::at(self.file, self.text, Some(line), message.into())
    }

    fn axes(&self, axes: &Spanned<DeValue<'_>>) -> Result<Vec<Axis>, ScenarioError> {
        let expected = "expected a table, as in [axes] with ber = [\"none\", \"1/1Mbit\"] below it";
        let Some(table) = axes.get_ref().as_table() else {
            return Err(self.refuse(axes, format!("axes: {expected}")));
        };
        let mut found: Vec<(usize, Axis)> = Vec::new();
        for (key, value) in table {
            if key.get_ref() != TOGETHER {
                found.push((key.span().start, self.axis(&[(key, value)])?));
                continue;
            }
            let groups = value.get_ref().as_array().into_iter().flatten();
            let mut groups = groups.filter_map(|group| group.get_ref().as_table()).peekable();
            if groups.peek().is_none() {
                return Err(self.refuse(key, "together: expected a table [[axes.together]]"));
            }
            for group in groups {
                let mut keys: Vec<_> = group.iter().collect();
                keys.sort_by_key(|(key, _)| key.span().start);
                let Some((first, _)) = keys.first() else {
                    return Err(self.refuse(key, "together: expected at least one key in it"));
                };
                found.push((first.span().start, self.axis(&keys)?));
            }
        }
        found.sort_by_key(|(start, _)| *start);
        let axes: Vec<Axis> = found.into_iter().map(|(_, axis)| axis).collect();
        let mut seen = Vec::new();
        for key in axes.iter().flat_map(|axis| &axis.keys) {
            if seen.contains(&key) {
                let message = format!("{key} is an axis twice");
                return Err(locate_key(key, message, self.file, self.text));
            }
            seen.push(key);
        }
        Ok(axes)
    }

    fn axis(&self, keys: &[(&Key<'_>, &Value<'_>)]) -> Result<Axis, ScenarioError> {
        let mut points: Vec<Point> = Vec::new();
        for (place, (key, value)) in keys.iter().enumerate() {
            let name = key.get_ref();
            if let Some((_, instead)) = NO_AXES.iter().find(|(no, _)| no == name) {
                return Err(self.refuse(key, format!("{name} is no axis; {instead}")));
            }
            // A key that no scenario has is answered as in a scenario, whatever its values are.
            let settings = self.values(key, value);
            let Some(list) = value.get_ref().as_array() else {
                settings?;
                let expected = "a list of values; a single one stands above [axes]";
                return Err(self.refuse(value, format!("axes.{name}: expected {expected}")));
            };
            let settings = settings?;
            if place == 0 {
                points = settings.iter().map(|_| Point::default()).collect();
            }
            if settings.len() != points.len() {
                let (ours, others) = (settings.len(), points.len());
                let message = format!(
                    "axes.{name} has {ours} values; expected {others}, as {} beside it has",
                    keys[0].0.get_ref()
                );
                return Err(self.refuse(key, message));
            }
            for ((point, setting), value) in points.iter_mut().zip(settings).zip(list) {
                point.setting.overlay(&setting);
                point.values.push(written(value.get_ref()));
            }
        }
        let keys = keys.iter().map(|(key, _)| key.get_ref().to_string()).collect();
        Ok(Axis { keys, points })
    }

    /// What each value of a list sets. A list of lists, which a scenario knows, is none here.
    fn values(&self, key: &Key<'_>, value: &Value<'_>) -> Result<Vec<Draft>, ScenarioError> {
        let one = |value: &Value<'_>| {
            let mut table = DeTable::new();
            table.insert(key.clone(), value.clone());
            let table = Spanned::new(value.span(), table);
            let draft = Draft::deserialize(toml::Deserializer::from(table));
            draft.map_err(|error| match error.span() {
                Some(_) => self.unreadable(&error),
                None => self.refuse(key, error.message().to_owned()),
            })
        };
        let Some(list) = value.get_ref().as_array() else { return one(value).map(|one| vec![one]) };
        if list.is_empty() {
            let name = key.get_ref();
            let message = format!("axes.{name}: an empty list; expected at least one value");
            return Err(self.refuse(value, message));
        }
        let mut settings = Vec::new();
        for value in list {
            if value.get_ref().is_array() {
                let name = key.get_ref();
                let message = format!("axes.{name}: expected single values in the list");
                return Err(self.refuse(value, message));
            }
            settings.push(one(value)?);
        }
        Ok(settings)
    }

    fn metrics(&self, metrics: &Spanned<DeValue<'_>>) -> Result<Vec<String>, ScenarioError> {
        let known: Vec<&str> = columns::measures().map(|column| column.name).collect();
        let list = metrics.get_ref().as_array().filter(|list| !list.is_empty());
        let Some(list) = list else {
            let message = format!("metrics: expected a list of {}", known.join(", "));
            return Err(self.refuse(metrics, message));
        };
        let mut names = Vec::new();
        for one in list {
            match one.get_ref().as_str().filter(|name| known.contains(name)) {
                Some(name) => names.push(name.to_owned()),
                None => {
                    let name = written(one.get_ref());
                    let message = format!("metrics: `{name}`; expected {}", known.join(", "));
                    return Err(self.refuse(one, message));
                }
            }
        }
        Ok(names)
    }
}

type Key<'a> = Spanned<DeString<'a>>;
type Value<'a> = Spanned<DeValue<'a>>;

/// All settings below a table, by their path; without those that change no run.
fn flatten(path: &str, table: &DeTable<'_>, settings: &mut BTreeMap<String, String>) {
    for (key, value) in table {
        let key = key.get_ref();
        let path = if path.is_empty() { key.to_string() } else { format!("{path}.{key}") };
        if path == "title" || path == "metrics" {
            continue;
        }
        match value.get_ref() {
            DeValue::Table(table) => flatten(&path, table, settings),
            DeValue::Array(list) if list.iter().any(|one| one.get_ref().is_table()) => {
                for (number, one) in list.iter().enumerate() {
                    let path = format!("{path}.{}", number + 1);
                    if let Some(table) = one.get_ref().as_table() {
                        flatten(&path, table, settings);
                    }
                }
            }
            value => {
                settings.insert(path, written(value));
            }
        }
    }
}

/// A value as people write it, without quotes.
fn written(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => text.to_string(),
        DeValue::Integer(number) => number.as_str().to_owned(),
        DeValue::Float(number) => number.as_str().to_owned(),
        DeValue::Boolean(value) => value.to_string(),
        DeValue::Datetime(time) => time.to_string(),
        DeValue::Array(list) => {
            let values: Vec<String> = list.iter().map(|one| written(one.get_ref())).collect();
            values.join(", ")
        }
        DeValue::Table(_) => "a table".to_owned(),
    }
}
