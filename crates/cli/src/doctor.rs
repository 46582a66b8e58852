//! `lasthop doctor`: what this machine can do, and what defeats a daemon here.

use crate::daemon::args::DoctorArgs;
use crate::error::Error;

/// What the machine can do.
pub(crate) fn doctor(args: &DoctorArgs) -> Result<(), Error> {
    let report = live::doctor::examine();
    if args.json {
        println!("{}", serde_json::to_string_pretty(&report).map_err(Error::usage)?);
    } else {
        print!("{report}");
    }
    if report.can_run_lab() {
        Ok(())
    } else {
        Err(Error::Machine("this machine cannot run the lab; what to do is above".into()))
    }
}
