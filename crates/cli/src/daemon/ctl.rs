//! `lasthop daemon ctl`: a line to a running daemon, a line of JSON back.

use super::args::CtlArgs;
use crate::error::Error;
use crate::output::outln;
use live::daemon::control::Order;
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A connection to a daemon.
pub(crate) struct Connection {
    path: PathBuf,
    lines: BufReader<UnixStream>,
}

/// How long a daemon may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

impl Connection {
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        let connect = || -> std::io::Result<UnixStream> {
            let stream = UnixStream::connect(path)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            stream.set_write_timeout(Some(PATIENCE))?;
            Ok(stream)
        };
        let lines = BufReader::new(connect().map_err(|error| {
            Error::Machine(format!(
                "{}: no daemon takes orders there: {error}; is it running, with control = that \
                 path in its configuration, and may you open it? --control names another",
                path.display()
            ))
        })?);
        Ok(Connection { path: path.to_owned(), lines })
    }

    /// Gives an order, or asks, and returns the answer.
    pub(crate) fn ask(&mut self, order: &str) -> Result<Value, Error> {
        let lost = |what: &dyn std::fmt::Display| {
            Error::Machine(format!("{}: the daemon does not answer: {what}", self.path.display()))
        };
        let mut line = String::new();
        let asked = writeln!(self.lines.get_mut(), "{order}")
            .and_then(|()| self.lines.read_line(&mut line));
        match asked {
            Ok(0) => return Err(lost(&"it has ended")),
            Ok(_) => {}
            Err(error) => return Err(lost(&error)),
        }
        let answer: Value = serde_json::from_str(&line).map_err(|error| lost(&error))?;
        match answer["error"].as_str() {
            Some(refused) => Err(Error::Failed(Some(format!("the daemon refuses: {refused}")))),
            None => Ok(answer),
        }
    }
}

pub(crate) fn ctl(args: &CtlArgs) -> Result<(), Error> {
    let order = args.order.join(" ");
    Order::parse(&order).map_err(|error| Error::Usage(format!("{error:#}")))?;
    let answer = Connection::open(&args.control)?.ask(&order)?;
    outln!("{answer}");
    Ok(())
}
