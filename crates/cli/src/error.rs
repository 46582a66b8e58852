//! What can go wrong, and which exit code says so.

use std::fmt::Display;

/// Why the program ends with something else than 0.
#[derive(Debug)]
pub(crate) enum Error {
    /// A check or a verdict failed; what failed is in the output.
    Failed(Option<String>),
    /// Bad input or usage: nothing was started.
    Usage(String),
    /// The machine cannot do it; why, and the fix.
    Machine(String),
    /// The user interrupted; finished runs are kept.
    Interrupted,
    /// Another program's exit code, passed on.
    Passed(u8),
}

impl Error {
    pub(crate) fn usage(message: impl Display) -> Self {
        Error::Usage(message.to_string())
    }

    pub(crate) fn code(&self) -> u8 {
        match self {
            Error::Failed(_) => 1,
            Error::Usage(_) => 2,
            Error::Machine(_) => 3,
            Error::Interrupted => 130,
            Error::Passed(code) => *code,
        }
    }

    pub(crate) fn message(&self) -> Option<&str> {
        match self {
            Error::Failed(message) => message.as_deref(),
            Error::Usage(message) | Error::Machine(message) => Some(message),
            Error::Passed(_) => None,
            Error::Interrupted => Some("interrupted; finished runs are kept"),
        }
    }
}
