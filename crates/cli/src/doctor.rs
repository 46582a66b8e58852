//! `lasthop doctor`: what this machine can do, what defeats a daemon between two devices, and what
//! share of their traffic it could help.

use crate::daemon;
use crate::daemon::args::DoctorArgs;
use crate::error::Error;
use crate::output::outln;
use live::daemon::Place;
use live::doctor::path::{self, Finding, Judgement};
use live::doctor::watch::{self, Traffic};
use node::scenario::{QuantityError, Time};

/// What the machine can do.
pub(crate) fn doctor(args: &DoctorArgs) -> Result<(), Error> {
    let devices = devices(args)?;
    let span = match (&args.watch, &devices) {
        (Some(_), None) => {
            return Err(Error::usage(
                "--watch: expected --wired and --radio, or --config, beside it",
            ));
        }
        (Some(text), _) => {
            let wrong = |error: QuantityError| Error::Usage(format!("--watch: {error}"));
            Some(text.parse::<Time>().map_err(wrong)?.0)
        }
        (None, _) => None,
    };
    let report = live::doctor::examine();
    let findings: Vec<Finding> =
        devices.iter().flat_map(|(wired, radio)| path::examine(wired, radio)).collect();
    let traffic: Option<Traffic> = match (&devices, span) {
        (Some((wired, radio)), Some(span)) => {
            let counted = watch::watch(wired, radio, span);
            Some(counted.map_err(|error| Error::Machine(format!("{error:#}")))?)
        }
        _ => None,
    };
    if args.json {
        let mut document = serde_json::to_value(&report).map_err(Error::usage)?;
        if devices.is_some() {
            document["path"] = serde_json::to_value(&findings).map_err(Error::usage)?;
            document["traffic"] = serde_json::to_value(&traffic).map_err(Error::usage)?;
        }
        outln!("{}", serde_json::to_string_pretty(&document).map_err(Error::usage)?);
    } else {
        outln!("{report}");
        findings.iter().for_each(|finding| outln!("{finding}"));
        traffic.iter().for_each(|traffic| outln!("{traffic}"));
    }
    if findings.iter().any(|finding| finding.judgement == Judgement::Defeats) {
        return Err(Error::Failed(Some("a daemon can do nothing here; why is above".into())));
    }
    if report.can_run_lab() {
        Ok(())
    } else {
        Err(Error::Machine("this machine cannot run the lab; what to do is above".into()))
    }
}

/// The two devices, if some were named.
fn devices(args: &DoctorArgs) -> Result<Option<(String, String)>, Error> {
    if let Some(file) = &args.config {
        // What only a gateway refuses does not matter here.
        let config = daemon::of_file(file, Place::BaseStation)?;
        return Ok(Some((config.devices.wired, config.devices.radio)));
    }
    Ok(args.wired.clone().zip(args.radio.clone()))
}
