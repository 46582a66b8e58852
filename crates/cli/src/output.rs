//! What the program prints. A reader may have enough and go (`lasthop compare | head`): that ends
//! the program like a finished one. Where nothing can be written (a full disk), it says so.

use std::fmt::Arguments;
use std::io::{ErrorKind, Write};
use std::process::exit;

/// As `println!`, to stdout.
macro_rules! outln {
    ($($text:tt)*) => {
        $crate::output::line(format_args!($($text)*))
    };
}

/// As `eprintln!`, to stderr.
macro_rules! errln {
    ($($text:tt)*) => {
        $crate::output::remark(format_args!($($text)*))
    };
}

pub(crate) use {errln, outln};

/// Prints a line to stdout.
pub(crate) fn line(text: Arguments<'_>) {
    print(format_args!("{text}\n"));
}

/// Prints to stdout what ends its lines itself.
pub(crate) fn print(text: Arguments<'_>) {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_fmt(text).and_then(|()| stdout.flush()) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::BrokenPipe => exit(0),
        Err(error) => {
            remark(format_args!("lasthop: cannot write to stdout: {error}"));
            exit(3);
        }
    }
}

/// Prints a line to stderr. Nobody is left to be told of a failure.
pub(crate) fn remark(text: Arguments<'_>) {
    let _ = writeln!(std::io::stderr(), "{text}");
}
