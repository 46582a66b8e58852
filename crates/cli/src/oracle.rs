//! `lasthop oracle ns2-tcp`.

use crate::args::Ns2Tcp;
use crate::error::Error;
use tcp::oracle::ns2;

pub(crate) fn ns2_tcp(args: &Ns2Tcp) -> Result<(), Error> {
    let name = args.file.display().to_string();
    let congestion =
        args.tcp.parse().map_err(|error| Error::Usage(format!("--tcp {}: {error}", args.tcp)))?;
    let text = std::fs::read_to_string(&args.file)
        .map_err(|error| Error::Usage(format!("{name}: read the trace: {error}")))?;
    let replay = ns2::Replay {
        congestion,
        drops: args.drops.iter().copied().collect(),
        limited_transmit: args.limited_transmit,
    };
    let report =
        ns2::check(&replay, &text).map_err(|error| Error::Usage(format!("{name}: {error}")))?;
    println!("{report}");
    if report.is_match() { Ok(()) } else { Err(Error::Failed(None)) }
}
