//! A title for scenarios that bring none: what their link is like, in one line.

use super::channel::{BitErrors, Loss, Outage, Told};
use super::document::Scenario;
use super::names::Radio;
use super::quantity::Time;
use core::fmt::Display;

/// The link: rate, round trip of a small packet on empty queues, and what goes wrong on it.
pub(crate) fn of(scenario: &Scenario) -> String {
    let hop = match scenario.radio {
        Radio::Plain => "Last hop".to_owned(),
        radio => format!("{radio} last hop"),
    };
    let hop =
        if scenario.half_duplex { format!("Half-duplex {}", hop.to_lowercase()) } else { hop };
    let recorded = &scenario.recorded;
    let rate = both_ways(&recorded.down_capacity, &recorded.up_capacity, &scenario.rate);
    let round_trip = Time((scenario.delay.0 + scenario.wired_delay.0) * 2);
    let mut title = match (&recorded.down_delay, &recorded.up_delay) {
        (None, None) => format!("{hop} of {rate}, round trip {round_trip}"),
        (down, up) => format!("{hop} of {rate}, delay {}", both_ways(down, up, &scenario.delay)),
    };
    let rates = &scenario.ber.0;
    if let (Some(first), Some(last)) = (rates.first(), rates.last())
        && rates.iter().any(|rate| *rate != BitErrors::None)
    {
        title += &format!("; bit errors {first}");
        if rates.len() > 1 {
            title += &format!(" to {last}");
        }
    }
    if scenario.loss.0.iter().any(|loss| *loss != Loss::None) {
        title += &format!("; loses {}", alternatives(&scenario.loss.0, losses));
    }
    if recorded.down_loss.is_some() || recorded.up_loss.is_some() {
        title += &format!("; loses {}", both_ways(&recorded.down_loss, &recorded.up_loss, &"none"));
    }
    if scenario.outage.0.iter().any(|outage| *outage != Outage::None) {
        title += &format!("; away {}", alternatives(&scenario.outage.0, outages));
    }
    if let Some(map) = &scenario.map {
        title += &format!("; walks past {} base stations", map.stations.len());
    }
    title
}

/// What is recorded in these files, and what stands where there is none.
fn both_ways(down: &Option<String>, up: &Option<String>, otherwise: &dyn Display) -> String {
    let one = |file: &Option<String>| match file {
        Some(file) => file_name(file).to_owned(),
        None => otherwise.to_string(),
    };
    match (down, up) {
        (None, None) => otherwise.to_string(),
        (down, up) if down == up => one(down),
        (down, up) => format!("{} down, {} up", one(down), one(up)),
    }
}

/// The last part of a path.
fn file_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

fn alternatives<T>(values: &[T], text: fn(&T) -> String) -> String {
    values.iter().map(text).collect::<Vec<_>>().join(" or ")
}

fn losses(loss: &Loss) -> String {
    match loss {
        Loss::None => "nothing".to_owned(),
        Loss::Independent(share) => format!("{share} of packets"),
        Loss::Burst { mean, length } => format!("{mean} of packets, {length} in a row"),
        Loss::Fade { good, bad, loss } => {
            format!("{loss} of packets in fades of {bad} every {good}")
        }
        Loss::Runs { good, bad } => {
            format!("runs of {} between {}", file_name(bad), file_name(good))
        }
    }
}

fn outages(outage: &Outage) -> String {
    let text = |when: &dyn Display, length: (Time, Time), hold: bool, told: Told| {
        let (shortest, longest) = length;
        let range = if shortest == longest { String::new() } else { format!(" to {longest}") };
        let hold = if hold { ", packets held" } else { "" };
        let told = match told {
            Told::Nobody => String::new(),
            Told::Notified => ", announced".to_owned(),
            Told::Warned(lead) => format!(", announced {lead} before"),
        };
        format!("{shortest}{range} {when}{hold}{told}")
    };
    match *outage {
        Outage::None => "never".to_owned(),
        Outage::Every { every, length, hold, told } => {
            text(&format_args!("every {every}"), length, hold, told)
        }
        Outage::At { at, length, hold, told } => match at {
            (from, to) if from == to => text(&format_args!("at {from}"), length, hold, told),
            (from, to) => text(&format_args!("between {from} and {to}"), length, hold, told),
        },
    }
}

#[cfg(test)]
mod tests {
    use crate::scenario::parse;
    use crate::{Draft, Scenario};

    fn title(text: &str) -> String {
        let draft: Draft = parse("a.toml", text).expect("a scenario");
        Scenario::complete(draft).expect("it is complete").title
    }

    #[test]
    fn a_title_says_rate_round_trip_and_what_goes_wrong() {
        let link = "rate = \"2Mbit/s\"\ndelay = \"5ms\"\nwired-delay = \"10ms\"\n";
        let with = |more: &str| title(&format!("{link}{more}"));
        assert_eq!(with(""), "Last hop of 2Mbit/s, round trip 30ms");
        assert_eq!(
            with("ber = [\"none\", \"1/1Mbit\", \"1/64Kbit\"]"),
            "Last hop of 2Mbit/s, round trip 30ms; bit errors none to 1/64Kbit"
        );
        assert_eq!(
            with("loss = [\"none\", \"burst:mean=1%,length=4\"]"),
            "Last hop of 2Mbit/s, round trip 30ms; loses nothing or 1% of packets, 4 in a row"
        );
        assert_eq!(
            with("ber = \"1/1Mbit\"\noutage = \"every=15s,length=0.1s..10s,hold,notified\""),
            "Last hop of 2Mbit/s, round trip 30ms; bit errors 1/1Mbit; \
             away 100ms to 10s every 15s, packets held, announced"
        );
        assert_eq!(
            with("loss = \"fade:good=2s,bad=50ms,loss=90%\"\noutage = \"at=2s,length=1s\""),
            "Last hop of 2Mbit/s, round trip 30ms; loses 90% of packets in fades of 50ms every 2s; \
             away 1s at 2s"
        );
    }

    #[test]
    fn a_preset_is_named_and_a_title_that_is_given_stands() {
        assert!(title("half-duplex = true").starts_with("Half-duplex last hop of 2Mbit/s"));
        assert!(title("radio = \"leo\"").starts_with("leo last hop of "));
        assert_eq!(title("title = \"Mine\""), "Mine");
    }
}
