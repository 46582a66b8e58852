//! From files and options to a scenario.

use crate::args::LinkArgs;
use crate::error::Error;
use crate::output;
use crate::recordings;
use node::scenario::{self, Axis, QuantityError, SettingError};
use node::{Draft, Scenario};
use std::path::Path;
use std::str::FromStr;

/// The scenario that a command was given: the file's settings, overridden by the options.
pub(crate) fn scenario(args: &LinkArgs) -> Result<Scenario, Error> {
    let (mut draft, source) = match &args.scenario {
        Some(file) => {
            let (mut draft, text) = read(file)?;
            recordings::locate(&mut draft, file.parent().unwrap_or(Path::new("")))?;
            (draft, Some((file.display().to_string(), text)))
        }
        None => (Draft::default(), None),
    };
    overlay(args, &mut draft)?;
    recordings::locate(&mut draft, Path::new(""))?;
    recordings::read(&mut draft)?;
    Scenario::complete(draft).map_err(|error| located(&error, args, source.as_ref()))
}

/// `scenario check`: prints the scenario, complete, as TOML.
pub(crate) fn check(file: &Path) -> Result<(), Error> {
    let args = LinkArgs { scenario: Some(file.to_owned()), ..LinkArgs::default() };
    let scenario = scenario(&args)?;
    let text = toml::to_string(&scenario).map_err(Error::usage)?;
    output::print(format_args!("{text}"));
    Ok(())
}

fn read(file: &Path) -> Result<(Draft, String), Error> {
    let name = file.display().to_string();
    let text = std::fs::read_to_string(file)
        .map_err(|error| Error::Usage(format!("{name}: read the scenario: {error}")))?;
    let draft = scenario::parse(&name, &text).map_err(Error::usage)?;
    Ok((draft, text))
}

/// A contradiction is located in the file if the file has the key and no option overrode it.
fn located(error: &SettingError, args: &LinkArgs, source: Option<&(String, String)>) -> Error {
    match source {
        Some((name, text)) if !overridden(error.key, args) => {
            Error::usage(scenario::locate(error, name, text))
        }
        _ => Error::Usage(format!("--{error}")),
    }
}

fn overridden(key: &str, args: &LinkArgs) -> bool {
    match key {
        "delay" => args.delay.is_some(),
        "wired-delay" => args.wired_delay.is_some(),
        "rtt" => args.rtt.is_some(),
        "half-duplex" => {
            args.half_duplex || args.down_capacity.is_some() || args.up_capacity.is_some()
        }
        "arq" => args.arq.is_some() || args.down_capacity.is_some() || args.up_capacity.is_some(),
        "mobiles" => args.mobiles.is_some() || !args.outage.is_empty(),
        "outage" => !args.outage.is_empty() || !args.handoff.is_empty(),
        "handoff" => !args.handoff.is_empty(),
        "cells" => args.cells.is_some() || !args.handoff.is_empty(),
        "channel" => args.channel.is_some() || args.cells.is_some(),
        "served" => args.served.is_some() || args.mobiles.is_some(),
        "trace-step" => args.trace_step.is_some(),
        "mss" => args.mss.is_some(),
        "window" => args.window.is_some(),
        "seeds" => args.seeds.is_some(),
        "duration" => args.duration.is_some(),
        "traffic" => args.traffic.is_some(),
        "schemes" => !args.schemes.is_empty(),
        "sack" => !args.sack.is_empty(),
        _ => false,
    }
}

fn overlay(args: &LinkArgs, draft: &mut Draft) -> Result<(), Error> {
    set("radio", &args.radio, &mut draft.radio)?;
    set("rate", &args.rate, &mut draft.rate)?;
    set("delay", &args.delay, &mut draft.delay)?;
    set("queue", &args.queue, &mut draft.queue)?;
    set("departures", &args.departures, &mut draft.departures)?;
    set("wired-rate", &args.wired_rate, &mut draft.wired_rate)?;
    set("wired-delay", &args.wired_delay, &mut draft.wired_delay)?;
    set("rtt", &args.rtt, &mut draft.rtt)?;
    if args.rtt.is_some() {
        draft.wired_delay = None;
        set("wired-delay", &args.wired_delay, &mut draft.wired_delay)?;
    } else if args.wired_delay.is_some() {
        draft.rtt = None;
    }
    for (name, text) in [
        (&args.down_capacity, &mut draft.down_capacity),
        (&args.up_capacity, &mut draft.up_capacity),
        (&args.down_delay, &mut draft.down_delay),
        (&args.up_delay, &mut draft.up_delay),
        (&args.down_loss, &mut draft.down_loss),
        (&args.up_loss, &mut draft.up_loss),
    ] {
        if name.is_some() {
            text.clone_from(name);
        }
    }
    draft.half_duplex = args.half_duplex.then_some(true).or(draft.half_duplex);
    set("arq", &args.arq, &mut draft.arq)?;
    draft.mobiles = args.mobiles.or(draft.mobiles);
    set("served", &args.served, &mut draft.served)?;
    set("trace-step", &args.trace_step, &mut draft.trace_step)?;
    set_list("ber", &args.ber, &mut draft.ber)?;
    set_list("loss", &args.loss, &mut draft.loss)?;
    set_list("outage", &args.outage, &mut draft.outage)?;
    set_list("handoff", &args.handoff, &mut draft.handoff)?;
    draft.cells = args.cells.or(draft.cells);
    set("channel", &args.channel, &mut draft.channel)?;
    set("backhaul", &args.backhaul, &mut draft.backhaul)?;
    set_list("direction", &args.direction, &mut draft.direction)?;
    set_list("tcp", &args.tcp, &mut draft.tcp)?;
    set_list("sack", &args.sack, &mut draft.sack)?;
    set("hosts", &args.hosts, &mut draft.hosts)?;
    set("mss", &args.mss, &mut draft.mss)?;
    set("window", &args.window, &mut draft.window)?;
    set("traffic", &args.traffic, &mut draft.traffic)?;
    if args.size.is_some() || args.duration.is_some() {
        (draft.size, draft.duration) = (None, None);
    }
    set("size", &args.size, &mut draft.size)?;
    set("duration", &args.duration, &mut draft.duration)?;
    if !args.schemes.is_empty() {
        let names = args.schemes.iter().flat_map(|list| list.split(','));
        draft.schemes = Some(Axis(names.map(|name| name.trim().to_owned()).collect()));
    }
    draft.seeds = args.seeds.or(draft.seeds);
    draft.seed = args.seed.or(draft.seed);
    Ok(())
}

fn set<T>(name: &str, text: &Option<String>, to: &mut Option<T>) -> Result<(), Error>
where
    T: FromStr<Err = QuantityError>,
{
    if let Some(text) = text {
        *to = Some(text.parse().map_err(|error| Error::Usage(format!("--{name}: {error}")))?);
    }
    Ok(())
}

fn set_list<T>(name: &str, lists: &[String], to: &mut Option<Axis<T>>) -> Result<(), Error>
where
    T: FromStr<Err = QuantityError>,
{
    let mut values = Vec::new();
    for list in lists {
        let parsed = parse_list(list);
        values.extend(parsed.map_err(|error| Error::Usage(format!("--{name}: {error}")))?);
    }
    if !values.is_empty() {
        *to = Some(Axis(values));
    }
    Ok(())
}

/// Splits a list at its commas. A value may have commas of its own (`burst:mean=1%,length=4`), so
/// each value is the longest text that parses.
fn parse_list<T>(list: &str) -> Result<Vec<T>, QuantityError>
where
    T: FromStr<Err = QuantityError>,
{
    let pieces: Vec<&str> = list.split(',').collect();
    let mut values = Vec::new();
    let mut from = 0;
    while from < pieces.len() {
        let ends = (from + 1..=pieces.len()).rev();
        let longest = ends.filter_map(|end| Some((end, pieces[from..end].join(",").parse().ok()?)));
        let Some((end, value)) = longest.into_iter().next() else {
            // The message names what the user meant as one value, up to the next comma that ends
            // something parsable at its right, or all of it.
            return Err(match pieces[from..].join(",").parse::<T>() {
                Err(error) => error,
                Ok(_) => unreachable!("it did not parse a moment ago"),
            });
        };
        values.push(value);
        from = end;
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use node::scenario::{BitErrors, Loss, Outage};

    #[test]
    fn lists_split_at_commas_that_part_values() {
        let losses: Vec<Loss> = parse_list("none,burst:mean=1%,length=4,3%").expect("a list");
        assert_eq!(losses.len(), 3);
        let outages: Vec<Outage> =
            parse_list("every=15s,length=300ms,hold,every=9s,length=1s").expect("a list");
        assert_eq!(outages.len(), 2);
        let rates: Vec<BitErrors> = parse_list("none,1/1Mbit,1/256Kbit").expect("a list");
        assert_eq!(rates.len(), 3);
    }

    #[test]
    fn a_bad_value_in_a_list_is_named() {
        let error = parse_list::<BitErrors>("none,1/1mbit").expect_err("a wrong unit");
        assert!(error.to_string().contains("1/1mbit"), "{error}");
    }
}
