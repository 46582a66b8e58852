//! `lasthop oracle ns2-tcp`.

use crate::args::Ns2Tcp;
use crate::error::Error;
use crate::output::outln;
use tcp::Congestion;
use tcp::oracle::ns2;

pub(crate) fn ns2_tcp(args: &Ns2Tcp) -> Result<(), Error> {
    let name = args.file.display().to_string();
    let congestion = match args.tcp.as_str() {
        // The suite's name for it; there is no RFC 6675 in ns-2.
        "sack" => Congestion::Sack1,
        name => name.parse().map_err(|error| Error::Usage(format!("--tcp {name}: {error}")))?,
    };
    let text = std::fs::read_to_string(&args.file)
        .map_err(|error| Error::Usage(format!("{name}: read the trace: {error}")))?;
    let replay = ns2::Replay {
        congestion,
        drops: args.drops.iter().copied().collect(),
        limited_transmit: args.limited_transmit,
    };
    let report =
        ns2::check(&replay, &text).map_err(|error| Error::Usage(format!("{name}: {error}")))?;
    outln!("{report}");
    if report.is_match() { Ok(()) } else { Err(Error::Failed(None)) }
}
