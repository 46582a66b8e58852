//! What the air does to packets, as people write it: error rates, losses, outages; and the traffic.

use super::quantity::{Percent, QuantityError, Size, Time, as_text, fields, with_unit};
use core::fmt;
use core::str::FromStr;

/// Independent bit errors over link time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum BitErrors {
    /// `none`.
    None,
    /// `1/64Kbit`: one in that many bits; K is 1024 and M is 1024^2 here.
    OneIn(u64),
    /// `ber=1e-6`.
    Rate(f64),
}

/// Lost packets.
#[derive(Clone, Debug, PartialEq)]
pub enum Loss {
    /// `none`.
    None,
    /// `1%`: each packet for itself.
    Independent(Percent),
    /// `burst:mean=1%,length=4`: Gilbert-Elliott per packet.
    Burst {
        /// Share of packets lost in the long run.
        mean: Percent,
        /// Mean number of packets lost in a row, at least 1.
        length: f64,
    },
    /// `fade:good=2s,bad=50ms,loss=90%`: two states in time.
    Fade {
        /// Mean duration of the good state.
        good: Time,
        /// Mean duration of the bad state.
        bad: Time,
        /// Loss probability of a packet in the bad state.
        loss: Percent,
    },
    /// `runs:good=FILE,bad=FILE`: runs of measured lengths, in packets.
    Runs {
        /// The file with the lengths of error-free runs.
        good: String,
        /// The file with the lengths of error bursts.
        bad: String,
    },
}

/// Times during which the link is away.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Outage {
    /// `none`.
    None,
    /// `every=15s,length=300ms`: one in each period, at a time within it drawn from the seed.
    Every {
        /// The period.
        every: Time,
        /// Shortest and longest length; drawn log-uniformly when they differ.
        length: (Time, Time),
        /// Packets wait in the radio's queue instead of being lost.
        hold: bool,
        /// Who is told.
        told: Told,
    },
    /// `at=3s,length=1s`: a single one.
    At {
        /// When it begins.
        at: Time,
        /// Shortest and longest length; drawn log-uniformly when they differ.
        length: (Time, Time),
        /// Packets wait in the radio's queue instead of being lost.
        hold: bool,
        /// Who is told.
        told: Told,
    },
}

/// Who is told of outages.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Told {
    /// Nobody.
    Nobody,
    /// `notified`: base station and mobile host, of begin and end.
    Notified,
    /// `warned=LEAD`: the same, and so long before the begin the mobile host sees that its signal
    /// is getting too weak.
    Warned(Time),
}

/// What the application sends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Traffic {
    /// `bulk`: as much as TCP takes.
    Bulk,
    /// `request:SIZE,every=T`: a message of that size each T.
    Request {
        /// Bytes of one message.
        size: Size,
        /// Time between messages.
        every: Time,
    },
    /// `bulk+request:SIZE,every=T`: both at once, a connection each between the same two hosts, as
    /// when somebody clicks during a download.
    BulkAndRequest {
        /// Bytes of one message.
        size: Size,
        /// Time between messages.
        every: Time,
    },
}

as_text!(BitErrors, Loss, Outage, Traffic);

impl BitErrors {
    /// Probability of an error in one bit.
    pub fn rate(self) -> f64 {
        match self {
            BitErrors::None => 0.0,
            BitErrors::OneIn(bits) => 1.0 / bits as f64,
            BitErrors::Rate(rate) => rate,
        }
    }

    /// Probability that a packet of so many bytes has an error.
    pub fn packet_loss(self, bytes: u32) -> f64 {
        -libm::expm1(f64::from(bytes) * 8.0 * libm::log1p(-self.rate()))
    }
}

impl FromStr for BitErrors {
    type Err = QuantityError;
    fn from_str(text: &str) -> Result<Self, QuantityError> {
        const UNITS: [(&str, f64); 3] = [("bit", 1.0), ("Kbit", 1024.0), ("Mbit", 1024.0 * 1024.0)];
        const BITS_MIN: f64 = 16.0;
        const BITS_MAX: f64 = 1e15;
        let parsed = match text.trim() {
            "none" => Some(BitErrors::None),
            text => match (text.strip_prefix("1/"), text.strip_prefix("ber=")) {
                (Some(bits), _) => with_unit(bits, &UNITS)
                    .filter(|bits| (BITS_MIN..=BITS_MAX).contains(bits))
                    .map(|bits| BitErrors::OneIn(bits as u64)),
                (_, Some(rate)) => with_unit(rate, &[("", 1.0)])
                    .filter(|rate| (1.0 / BITS_MAX..=1.0 / BITS_MIN).contains(rate))
                    .map(BitErrors::Rate),
                _ => None,
            },
        };
        parsed.ok_or_else(|| QuantityError {
            value: text.to_owned(),
            what: "a bit error rate",
            expected: "none, one error in so many bits as in 1/64Kbit or 1/2Mbit (at least 16bit), \
                       or ber=1e-6",
        })
    }
}

impl fmt::Display for BitErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            BitErrors::None => f.write_str("none"),
            BitErrors::OneIn(bits) if bits.is_multiple_of(1 << 20) => {
                write!(f, "1/{}Mbit", bits >> 20)
            }
            BitErrors::OneIn(bits) if bits.is_multiple_of(1 << 10) => {
                write!(f, "1/{}Kbit", bits >> 10)
            }
            BitErrors::OneIn(bits) => write!(f, "1/{bits}bit"),
            BitErrors::Rate(rate) => write!(f, "ber={rate:e}"),
        }
    }
}

impl FromStr for Loss {
    type Err = QuantityError;
    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let parsed = match text.trim() {
            "none" => Some(Loss::None),
            text => match text.split_once(':') {
                Some(("burst", rest)) => parse_burst(rest),
                Some(("fade", rest)) => parse_fade(rest),
                Some(("runs", rest)) => parse_runs(rest),
                Some(_) => None,
                None => text.parse().ok().map(Loss::Independent),
            },
        };
        parsed.ok_or_else(|| QuantityError {
            value: text.to_owned(),
            what: "a loss",
            expected: "none, 1%, burst:mean=1%,length=4 (a length of at least 1 that the mean \
                       allows), fade:good=2s,bad=50ms,loss=90%, or runs:good=FILE,bad=FILE",
        })
    }
}

fn parse_burst(text: &str) -> Option<Loss> {
    const LENGTH_MAX: f64 = 1e6;
    let (mut mean, mut length) = (None, None);
    for (key, value) in fields(text) {
        match key {
            "mean" if mean.is_none() => mean = Some(value.parse::<Percent>().ok()?),
            "length" if length.is_none() => length = Some(with_unit(value, &[("", 1.0)])?),
            _ => return None,
        }
    }
    let (mean, length) = (mean?, length?);
    // The good state must last at least one packet: mean / (1 - mean) <= length.
    let possible = (1.0..=LENGTH_MAX).contains(&length) && mean.0 <= length * (1.0 - mean.0);
    possible.then_some(Loss::Burst { mean, length })
}

fn parse_fade(text: &str) -> Option<Loss> {
    let (mut good, mut bad, mut loss) = (None, None, None);
    for (key, value) in fields(text) {
        match key {
            "good" if good.is_none() => good = Some(value.parse::<Time>().ok()?),
            "bad" if bad.is_none() => bad = Some(value.parse::<Time>().ok()?),
            // All packets of a fade may be lost.
            "loss" if loss.is_none() && value == "100%" => loss = Some(Percent(1.0)),
            "loss" if loss.is_none() => loss = Some(value.parse::<Percent>().ok()?),
            _ => return None,
        }
    }
    let (good, bad, loss) = (good?, bad?, loss?);
    let possible = !good.0.is_zero() && !bad.0.is_zero();
    possible.then_some(Loss::Fade { good, bad, loss })
}

fn parse_runs(text: &str) -> Option<Loss> {
    let (good, bad) = text.strip_prefix("good=")?.split_once(",bad=")?;
    let is_name = |name: &str| !name.trim().is_empty() && !name.contains(',');
    (is_name(good) && is_name(bad))
        .then(|| Loss::Runs { good: good.trim().to_owned(), bad: bad.trim().to_owned() })
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Loss::None => f.write_str("none"),
            Loss::Independent(share) => share.fmt(f),
            Loss::Burst { mean, length } => write!(f, "burst:mean={mean},length={length}"),
            Loss::Fade { good, bad, loss } => {
                write!(f, "fade:good={good},bad={bad},loss={loss}")
            }
            Loss::Runs { good, bad } => write!(f, "runs:good={good},bad={bad}"),
        }
    }
}

impl FromStr for Outage {
    type Err = QuantityError;
    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let parsed = match text.trim() {
            "none" => Some(Outage::None),
            text => parse_outage(text),
        };
        parsed.ok_or_else(|| QuantityError {
            value: text.to_owned(),
            what: "an outage",
            expected: "none, every=15s,length=300ms[,hold][,notified|,warned=100ms] with a length \
                       or a range such as 0.1s..10s shorter than the period, or at=3s,length=1s",
        })
    }
}

fn parse_outage(text: &str) -> Option<Outage> {
    let (mut every, mut at, mut length) = (None, None, None);
    let (mut hold, mut told) = (false, Told::Nobody);
    for (key, value) in fields(text) {
        match key {
            "every" if every.is_none() => every = Some(value.parse::<Time>().ok()?),
            "at" if at.is_none() => at = Some(value.parse::<Time>().ok()?),
            "length" if length.is_none() => length = Some(parse_range(value)?),
            "hold" if !hold && value.is_empty() => hold = true,
            "notified" if told == Told::Nobody && value.is_empty() => told = Told::Notified,
            "warned" if told == Told::Nobody => told = Told::Warned(value.parse().ok()?),
            _ => return None,
        }
    }
    let length = length?;
    match (every, at) {
        (Some(every), None) => {
            (length.1 < every).then_some(Outage::Every { every, length, hold, told })
        }
        (None, Some(at)) => Some(Outage::At { at, length, hold, told }),
        _ => None,
    }
}

fn parse_range(text: &str) -> Option<(Time, Time)> {
    let (from, to) = text.split_once("..").unwrap_or((text, text));
    let (from, to): (Time, Time) = (from.parse().ok()?, to.parse().ok()?);
    (!from.0.is_zero() && from <= to).then_some((from, to))
}

impl fmt::Display for Outage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, begin, length, hold, told) = match *self {
            Outage::None => return f.write_str("none"),
            Outage::Every { every, length, hold, told } => ("every", every, length, hold, told),
            Outage::At { at, length, hold, told } => ("at", at, length, hold, told),
        };
        write!(f, "{name}={begin},length={}", length.0)?;
        if length.0 != length.1 {
            write!(f, "..{}", length.1)?;
        }
        f.write_str(if hold { ",hold" } else { "" })?;
        match told {
            Told::Nobody => Ok(()),
            Told::Notified => f.write_str(",notified"),
            Told::Warned(lead) => write!(f, ",warned={lead}"),
        }
    }
}

impl FromStr for Traffic {
    type Err = QuantityError;
    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let parsed = match text.trim() {
            "bulk" => Some(Traffic::Bulk),
            text => match text.strip_prefix("bulk+") {
                Some(text) => {
                    messages(text).map(|(size, every)| Traffic::BulkAndRequest { size, every })
                }
                None => messages(text).map(|(size, every)| Traffic::Request { size, every }),
            },
        };
        parsed.ok_or_else(|| QuantityError {
            value: text.to_owned(),
            what: "a kind of traffic",
            expected: "bulk, request:SIZE,every=T as in request:2kB,every=100ms, or both as in \
                       bulk+request:2kB,every=100ms",
        })
    }
}

/// What stands after `request:`.
fn messages(text: &str) -> Option<(Size, Time)> {
    let (size, every) = text.strip_prefix("request:")?.split_once(',')?;
    let (size, every): (Size, Time) =
        (size.parse().ok()?, every.strip_prefix("every=")?.parse().ok()?);
    (size.0 > 0 && !every.0.is_zero()).then_some((size, every))
}

impl fmt::Display for Traffic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Traffic::Bulk => f.write_str("bulk"),
            Traffic::Request { size, every } => write!(f, "request:{size},every={every}"),
            Traffic::BulkAndRequest { size, every } => {
                write!(f, "bulk+request:{size},every={every}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// EXP-SN-F7-f: the loss of a packet follows from the bit error rate.
    #[test]
    fn exp_sn_f7_f_packet_loss_of_the_papers_error_rates() {
        let loss = |text: &str, bytes| {
            let errors: BitErrors = text.parse().expect("an error rate");
            (errors.packet_loss(bytes) * 1e4).round() / 1e2
        };
        assert_eq!(loss("1/2Mbit", 1500), 0.57);
        assert_eq!(loss("1/256Kbit", 1500), 4.47);
        assert_eq!(loss("1/32Kbit", 1500), 30.66);
        assert_eq!(loss("1/256Kbit", 40), 0.12);
    }

    #[test]
    fn what_the_contract_shows_parses_and_prints_as_it_was() {
        for text in ["none", "1/64Kbit", "1/2Mbit", "1/1000bit", "ber=1e-6"] {
            assert_eq!(text.parse::<BitErrors>().expect(text).to_string(), text);
        }
        for text in [
            "none",
            "1%",
            "burst:mean=1%,length=4",
            "fade:good=2s,bad=50ms,loss=90%",
            "runs:good=a b.txt,bad=/c/d.txt",
        ] {
            assert_eq!(text.parse::<Loss>().expect(text).to_string(), text);
        }
        for text in [
            "none",
            "every=15s,length=300ms",
            "every=15s,length=300ms,hold,notified",
            "every=30s,length=100ms..10s,notified",
            "at=3s,length=1s",
        ] {
            assert_eq!(text.parse::<Outage>().expect(text).to_string(), text);
        }
        for text in ["bulk", "request:2kB,every=100ms", "bulk+request:2kB,every=100ms"] {
            assert_eq!(text.parse::<Traffic>().expect(text).to_string(), text);
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for text in ["1e-6", "1/64", "1/0Kbit", "2/64Kbit", "1/64kbit", "ber=2", "ber=-1e-6"] {
            assert!(text.parse::<BitErrors>().is_err(), "{text}");
        }
        for text in [
            "1",
            "100%",
            "burst:mean=1%",
            "burst:mean=1%,length=0.5",
            "burst:mean=90%,length=2",
            "burst:mean=1%,length=4,length=5",
            "fade:good=2s",
            "fade:good=0s,bad=1s,loss=1%",
            "runs:good=a",
            "runs:bad=a,good=b",
            "runs:good=a,bad=",
            "runs:good=a,bad=b,bad=c",
            "fog",
        ] {
            assert!(text.parse::<Loss>().is_err(), "{text}");
        }
        for text in [
            "every=15s",
            "every=1s,length=2s",
            "every=15s,length=2s..1s",
            "every=15s,length=0s",
            "every=15s,at=1s,length=1s",
            "every=15s,length=1s,hold=1",
            "every=15s,length=1s,often",
        ] {
            assert!(text.parse::<Outage>().is_err(), "{text}");
        }
        for text in [
            "request:2kB",
            "request:2kB,every=0s",
            "request:0B,every=1s",
            "request:every=1s",
            "bulk+",
            "bulk+bulk",
            "request:2kB,every=1s+bulk",
            "web",
        ] {
            assert!(text.parse::<Traffic>().is_err(), "{text}");
        }
    }
}
