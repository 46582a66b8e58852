//! `lasthop daemon`: base station and gateway.

use crate::args::BaseStationArgs;
use crate::error::Error;
use live::daemon::{self, Control, DaemonConfig};
use live::io::inline::Devices;
use node::scenario::{QuantityError, Rate};
use std::path::PathBuf;

pub(crate) fn base_station(args: &BaseStationArgs) -> Result<(), Error> {
    let config = of_options(args)?;
    daemon::run(&config).map_err(|error| Error::Machine(format!("{error:#}")))
}

fn of_options(args: &BaseStationArgs) -> Result<DaemonConfig, Error> {
    let known: Vec<&str> = schemes::Scheme::NAMES.iter().map(|(name, _)| *name).collect();
    if !known.contains(&args.scheme.as_str()) {
        let expected = known.join(", ");
        return Err(Error::Usage(format!("--scheme {}: expected {expected}", args.scheme)));
    }
    let rate = |text: &String| {
        let rate = text.parse();
        let wrong = |error: QuantityError| Error::Usage(format!("--radio-rate: {error}"));
        rate.map(|Rate(rate)| rate).map_err(wrong)
    };
    let mobile =
        args.mobile.parse().map_err(|error| Error::Usage(format!("--mobile: {error:#}")))?;
    let devices = Devices {
        wired: args.wired.clone(),
        radio: args.radio.clone(),
        radio_high: args.radio_high.clone(),
    };
    Ok(DaemonConfig {
        scheme: args.scheme.clone(),
        radio_rate: args.radio_rate.as_ref().map(rate).transpose()?,
        control: match args.control.as_deref() {
            None => Control::Nobody,
            Some("-") => Control::Standard,
            Some(path) => Control::Socket(PathBuf::from(path)),
        },
        ..DaemonConfig::base_station(devices, vec![mobile])
    })
}
