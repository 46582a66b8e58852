//! The scenario: what is compared, on which path, as people write it.
//!
//! One file serves both worlds. [`Draft`] is what somebody wrote in TOML, JSON or as options;
//! [`Scenario`] is complete; [`Case`] is one row of its table.

pub mod case;
pub mod channel;
pub mod document;
pub mod frame_arq;
pub mod handoff;
pub mod names;
pub mod quantity;
pub(crate) mod radio;
pub mod recorded;
mod title;

pub use case::Case;
pub use channel::{BitErrors, Loss, Outage, Told, Traffic};
pub use document::{Amount, Axis, Draft, Scenario, SettingError};
pub use frame_arq::Arq;
pub use handoff::Handoff;
pub use names::{Channel, Departures, Direction, Hosts, Radio, Sender, Served, Switch};
pub use quantity::{Percent, QuantityError, Queue, Rate, Size, Time};
pub use recorded::{Files, Recorded};

use core::fmt;

/// The lab's honest opponent: plain TCP whose sender has `tcp_rto_max_ms` and `tcp_rto_min_us`
/// tuned. It needs a kernel, so the simulator has no model of it.
pub const PLAIN_TUNED: &str = "plain-tuned";

/// Schemes that need a kernel, each with what it is; the simulator has no model of them.
pub const LAB_ONLY: [(&str, &str); 2] = [
    (PLAIN_TUNED, "plain, with tcp_rto_max_ms=1000 and tcp_rto_min_us=20000 at the sender"),
    ("observe", "plain, with a daemon of snoop-modern that looks on and touches nothing"),
];

/// A scenario that cannot be used: which file, which line, what was expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioError {
    /// The file as named by the user.
    pub file: String,
    /// The line, from 1, if it is about one.
    pub line: Option<usize>,
    /// What is wrong and what was expected.
    pub message: String,
    /// The line itself.
    pub text: Option<String>,
}

impl ScenarioError {
    /// A message about a line of a text, or about all of it.
    pub fn at(file: &str, text: &str, line: Option<usize>, message: String) -> Self {
        let shown = line.and_then(|line| text.lines().nth(line - 1)).map(str::to_owned);
        ScenarioError { file: file.to_owned(), line, message, text: shown }
    }
}

impl core::error::Error for ScenarioError {}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        write!(f, ": {}", self.message)?;
        match &self.text {
            Some(text) => write!(f, "\n    {}", text.trim()),
            None => Ok(()),
        }
    }
}

/// Parses the text of a scenario file: JSON if the name ends in `.json`, TOML otherwise.
///
/// # Errors
/// The first thing that is wrong, with its line.
pub fn parse(file: &str, text: &str) -> Result<Draft, ScenarioError> {
    if file.ends_with(".json") {
        return serde_json::from_str(text).map_err(|error| ScenarioError {
            file: file.to_owned(),
            line: (error.line() > 0).then(|| error.line()),
            message: without_position(&error.to_string()),
            text: text.lines().nth(error.line().saturating_sub(1)).map(str::to_owned),
        });
    }
    toml::from_str(text).map_err(|error| unreadable(file, text, &error))
}

/// What TOML says is wrong with a text, with the line.
pub fn unreadable(file: &str, text: &str, error: &toml::de::Error) -> ScenarioError {
    let line = error.span().map(|span| line_of(text, span.start));
    let message = error.message().replace('\n', " ");
    ScenarioError::at(file, text, line, message)
}

/// The same error, with the line of `text` in which its key stands.
pub fn locate(error: &SettingError, file: &str, text: &str) -> ScenarioError {
    locate_key(error.key, error.to_string(), file, text)
}

/// A message about a key, with the line of `text` in which the key stands.
pub fn locate_key(key: &str, message: String, file: &str, text: &str) -> ScenarioError {
    let is_key = |line: &str| {
        let line = line.trim_start().trim_start_matches('"');
        line.strip_prefix(key).is_some_and(|rest| {
            matches!(rest.trim_start_matches('"').trim_start().chars().next(), Some('=' | ':'))
        })
    };
    let line = text.lines().position(is_key).map(|line| line + 1);
    ScenarioError::at(file, text, line, message)
}

/// The line, from 1, in which a byte of the text stands.
pub fn line_of(text: &str, at: usize) -> usize {
    1 + text.bytes().take(at).filter(|byte| *byte == b'\n').count()
}

/// serde_json's message without the position it appends, which stands in front here.
fn without_position(message: &str) -> String {
    message.rsplit_once(" at line ").map_or(message, |(before, _)| before).to_owned()
}
