//! Channels as somebody recorded them: files with one value on each line.
//!
//! Capacities have the format of Mahimahi's `mm-link` (Netravali et al., USENIX ATC 2015), delays
//! and losses have a value for each step of time. All repeat from the beginning at their end.
//!
//! Such files are made by others, so reading is strict about values and lenient about the ends of
//! lines: `\r\n`, a byte order mark and spaces around a value are fine, blank lines only at the
//! end. A comment is not part of any of these formats, and is refused. Nothing here reads a file:
//! [`Reader`] is given line after line, and knows the number of each.

pub mod capacity;
pub mod steps;

pub use capacity::Capacity;
pub use steps::{Delays, Losses};

/// A kind of recording.
pub trait Recording: Sized {
    /// What was read so far.
    type Lines: Default;

    /// Takes the value of one line, which is not blank.
    ///
    /// # Errors
    /// What was expected instead.
    fn line(lines: &mut Self::Lines, value: &str) -> Result<(), &'static str>;

    /// All lines were read.
    ///
    /// # Errors
    /// What was expected of the last line, or of a file without any.
    fn finish(lines: Self::Lines) -> Result<Self, &'static str>;
}

/// A line that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: expected {expected}", self.said())]
pub struct Unexpected {
    /// Its number, from 1; 0 for a file without a value.
    pub line: u64,
    /// What it says, shortened.
    pub value: String,
    /// What was expected.
    pub expected: &'static str,
}

impl Unexpected {
    fn said(&self) -> String {
        match (self.line, self.value.as_str()) {
            (0, _) => "it has no value".to_owned(),
            (_, "") => "a blank line".to_owned(),
            (_, value) => format!("`{value}`"),
        }
    }
}

/// Reads a recording, line by line.
#[derive(Debug)]
pub struct Reader<R: Recording> {
    lines: R::Lines,
    /// The last line.
    number: u64,
    /// The last line that is not blank, and what it says.
    last: (u64, String),
}

impl<R: Recording> Default for Reader<R> {
    fn default() -> Self {
        Reader { lines: R::Lines::default(), number: 0, last: (0, String::new()) }
    }
}

impl<R: Recording> Reader<R> {
    /// Takes the next line, with or without its end.
    ///
    /// # Errors
    /// If it is not a line of such a recording.
    pub fn line(&mut self, line: &[u8]) -> Result<(), Unexpected> {
        self.number += 1;
        let line = match line.strip_prefix(b"\xEF\xBB\xBF") {
            Some(rest) if self.number == 1 => rest,
            _ => line,
        };
        let value = line.trim_ascii();
        if value.is_empty() {
            return Ok(());
        }
        let refuse = |line, value: &[u8], expected| {
            Err(Unexpected { line, value: shortened(value), expected })
        };
        if self.last.0 + 1 != self.number {
            return refuse(self.last.0 + 1, b"", "a value; blank lines are fine at the end only");
        }
        let taken = match core::str::from_utf8(value) {
            Ok(text) => R::line(&mut self.lines, text),
            Err(_) => Err("a number in plain text"),
        };
        if let Err(expected) = taken {
            return refuse(self.number, value, expected);
        }
        self.last.0 = self.number;
        self.last.1.clear();
        self.last.1.push_str(core::str::from_utf8(value).unwrap_or_default());
        Ok(())
    }

    /// The recording.
    ///
    /// # Errors
    /// If it has no line, or cannot end with the last one.
    pub fn finish(self) -> Result<R, Unexpected> {
        let (line, value) = self.last;
        R::finish(self.lines).map_err(|expected| Unexpected { line, value, expected })
    }
}

/// The beginning of a value: what stands in a file may be of any length.
fn shortened(value: &[u8]) -> String {
    const CHARACTERS_MAX: usize = 40;
    let text = String::from_utf8_lossy(&value[..value.len().min(4 * CHARACTERS_MAX)]);
    // What a terminal would not show, or would obey.
    let shown = |letter: char| if letter.is_control() { '\u{fffd}' } else { letter };
    let short: String = text.chars().take(CHARACTERS_MAX).map(shown).collect();
    if short.len() < value.len() { format!("{short}…") } else { short }
}

/// A whole number, digits alone.
pub(crate) fn whole_number(text: &str) -> Option<u64> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { text.parse().ok() } else { None }
}
