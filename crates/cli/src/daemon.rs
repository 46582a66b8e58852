//! `lasthop daemon base-station`.

use crate::args::BaseStationArgs;
use crate::error::Error;
use live::daemon::{self, Control, DaemonConfig};
use live::io::inline::Devices;
use node::scenario::{QuantityError, Rate};
use std::path::PathBuf;

pub(crate) fn base_station(args: &BaseStationArgs) -> Result<(), Error> {
    let scheme = node::base_station::compose(&args.scheme);
    let mut scheme = scheme.ok_or_else(|| {
        let known: Vec<&str> = schemes::Scheme::NAMES.iter().map(|(name, _)| *name).collect();
        Error::Usage(format!("--scheme {}: expected {}", args.scheme, known.join(", ")))
    })?;
    if let Some(rate) = &args.radio_rate {
        let rate = rate
            .parse()
            .map_err(|error: QuantityError| Error::Usage(format!("--radio-rate: {error}")))?;
        let Rate(rate) = rate;
        scheme.set_link_rate(rate);
    }
    let mobile =
        args.mobile.parse().map_err(|error| Error::Usage(format!("--mobile: {error:#}")))?;
    let config = DaemonConfig {
        devices: Devices {
            wired: args.wired.clone(),
            radio: args.radio.clone(),
            radio_high: args.radio_high.clone(),
        },
        mobile: vec![mobile],
        forwarding: daemon::Forwarding::Routed,
        back_end: daemon::BackEnd::Inline,
        next_hops: Vec::new(),
        control: match args.control.as_deref() {
            None => Control::Nobody,
            Some("-") => Control::Standard,
            Some(path) => Control::Socket(PathBuf::from(path)),
        },
    };
    daemon::run(&config, scheme).map_err(|error| Error::Machine(format!("{error:#}")))
}
