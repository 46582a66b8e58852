//! `lasthop daemon` and `lasthop top`.
//!
//! Map: here what a daemon is started with, [`ctl`] (orders to one that runs), [`top`] (its flows).

pub(crate) mod args;
pub(crate) mod ctl;
pub(crate) mod top;

use crate::error::Error;
use crate::output::{errln, outln};
use args::{BaseStationArgs, Daemon};
use live::daemon::{self, BackEnd, Control, DaemonConfig, Place, machine, settings};
use live::io::inline::Devices;
use node::scenario::{QuantityError, Rate};
use schemes::snoop::config::HelpFrom;
use std::path::{Path, PathBuf};

pub(crate) fn daemon(command: &Daemon) -> Result<(), Error> {
    let (config, is_check) = match command {
        Daemon::Gateway(args) => (of_file(&args.config, Place::Gateway)?, args.check),
        Daemon::BaseStation(args) => match &args.config {
            Some(file) => (of_file(file, Place::BaseStation)?, args.check),
            None => (of_options(args)?, args.check),
        },
        Daemon::Ctl(args) => return ctl::ctl(args),
    };
    if is_check {
        return say_whether_fine(&config);
    }
    daemon::run(&config).map_err(|error| Error::Machine(format!("{error:#}")))
}

pub(crate) fn of_file(file: &Path, place: Place) -> Result<DaemonConfig, Error> {
    settings::read(file, place).map_err(Error::usage)
}

/// Whether the machine can do it; changes nothing.
fn say_whether_fine(config: &DaemonConfig) -> Result<(), Error> {
    let (problems, remarks) = machine::survey(config);
    for remark in &remarks {
        errln!("lasthop: mind: {remark}");
    }
    if !problems.is_empty() {
        return Err(Error::Machine(problems.join("\n")));
    }
    let Devices { wired, radio, .. } = &config.devices;
    outln!("fine: {} between {wired} and {radio}, mode {}", config.place, config.mode);
    Ok(())
}

fn of_options(args: &BaseStationArgs) -> Result<DaemonConfig, Error> {
    let scheme = args.scheme.clone().unwrap_or_else(|| "snoop-modern".to_owned());
    let known: Vec<&str> = schemes::Scheme::NAMES.iter().map(|(name, _)| *name).collect();
    if !known.contains(&scheme.as_str()) {
        return Err(Error::Usage(format!("--scheme {scheme}: expected {}", known.join(", "))));
    }
    let rate = |text: &String| {
        let rate = text.parse();
        let wrong = |error: QuantityError| Error::Usage(format!("--radio-rate: {error}"));
        rate.map(|Rate(rate)| rate).map_err(wrong)
    };
    let (Some(wired), Some(radio), Some(mobile)) = (&args.wired, &args.radio, &args.mobile) else {
        return Err(Error::usage("expected --config, or --wired, --radio and --mobile"));
    };
    let mobile = mobile.parse().map_err(|error| Error::Usage(format!("--mobile: {error:#}")))?;
    let devices =
        Devices { wired: wired.clone(), radio: radio.clone(), radio_high: args.radio_high.clone() };
    Ok(DaemonConfig {
        scheme,
        radio_rate: args.radio_rate.as_ref().map(rate).transpose()?,
        control: match args.control.as_deref() {
            None => Control::Nobody,
            Some("-") => Control::Standard,
            Some(path) => Control::Socket(PathBuf::from(path)),
        },
        help_from: match args.help_from {
            args::HelpFrom::Evidence => HelpFrom::EVIDENCE,
            args::HelpFrom::FirstPacket => HelpFrom::FirstPacket,
        },
        // The lab's figures are those of the engine with every packet in its hands.
        back_end: BackEnd::Inline,
        ..DaemonConfig::base_station(devices, vec![mobile])
    })
}
