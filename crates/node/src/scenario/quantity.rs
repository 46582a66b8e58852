//! Quantities as people write them: a number and its unit (`2Mbit/s`, `300ms`, `1/64Kbit`).
//!
//! Each type parses with [`FromStr`], prints what parses back to the same value, and stands in
//! scenario files as that text. A number without a unit is refused where a unit exists.

use core::fmt;
use core::str::FromStr;
use sansio::{BitRate, Duration};

/// Text that is not the quantity it should be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{value}` is not {what}; expected {expected}")]
pub struct QuantityError {
    /// The text.
    pub value: String,
    /// What it should have been: "a rate".
    pub what: &'static str,
    /// Which forms there are, with an example.
    pub expected: &'static str,
}

/// Serialises a type as its text and parses it back.
macro_rules! as_text {
    ($($name:ty),+) => {$(
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                use $crate::scenario::quantity::Scalar;
                let text = <Scalar as serde::Deserialize>::deserialize(from)?;
                text.0.parse().map_err(serde::de::Error::custom)
            }
        }
    )+};
}
pub(crate) use as_text;

/// Any TOML or JSON scalar as its text, so that `rate = 2` is refused by the rate's own message.
pub(crate) struct Scalar(pub(crate) String);

impl<'de> serde::Deserialize<'de> for Scalar {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = Scalar;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text such as \"2Mbit/s\"")
            }
            fn visit_str<E>(self, text: &str) -> Result<Scalar, E> {
                Ok(Scalar(text.to_owned()))
            }
            fn visit_i64<E>(self, number: i64) -> Result<Scalar, E> {
                Ok(Scalar(number.to_string()))
            }
            fn visit_u64<E>(self, number: u64) -> Result<Scalar, E> {
                Ok(Scalar(number.to_string()))
            }
            fn visit_f64<E>(self, number: f64) -> Result<Scalar, E> {
                Ok(Scalar(number.to_string()))
            }
            fn visit_bool<E>(self, value: bool) -> Result<Scalar, E> {
                Ok(Scalar(value.to_string()))
            }
        }
        from.deserialize_any(Visitor)
    }
}

/// A link rate; `Mbit/s` is 10^6 bit/s. From 1 bit/s to 1 Tbit/s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate(pub BitRate);

/// A span of time, up to a day.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time(pub Duration);

/// A number of bytes; `MB` is 10^6, `MiB` is 2^20. Up to 1 TB.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size(pub u64);

/// A share from 0 to 1, written in per cent.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Percent(pub f64);

/// A queue's limit, in packets or bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queue {
    /// `100p`.
    Packets(u32),
    /// `64KiB`.
    Bytes(u64),
}

as_text!(Rate, Time, Size, Percent, Queue);

const RATES: [(&str, f64); 4] = [("bit/s", 1.0), ("kbit/s", 1e3), ("Mbit/s", 1e6), ("Gbit/s", 1e9)];
const TIMES: [(&str, f64); 5] = [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9), ("min", 60e9)];
const SIZES: [(&str, f64); 8] = [
    ("B", 1.0),
    ("kB", 1e3),
    ("KB", 1e3),
    ("MB", 1e6),
    ("GB", 1e9),
    ("KiB", 1024.0),
    ("MiB", 1_048_576.0),
    ("GiB", 1_073_741_824.0),
];

impl FromStr for Rate {
    type Err = QuantityError;
    fn from_str(text: &str) -> Result<Self, QuantityError> {
        const BPS_MAX: f64 = 1e12;
        let bps = with_unit(text, &RATES).filter(|bps| (1.0..=BPS_MAX).contains(bps));
        bps.map(|bps| Rate(BitRate::from_bps(bps as u64))).ok_or_else(|| QuantityError {
            value: text.to_owned(),
            what: "a rate",
            expected: "1bit/s to 1000Gbit/s with unit bit/s, kbit/s, Mbit/s or Gbit/s, \
                       as in 2Mbit/s",
        })
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Time {
    type Err = QuantityError;
    fn from_str(text: &str) -> Result<Self, QuantityError> {
        const NANOS_MAX: f64 = 86_400e9;
        let nanos = with_unit(text, &TIMES).filter(|nanos| (0.0..=NANOS_MAX).contains(nanos));
        let nanos = nanos.map(|nanos| (nanos + 0.5) as u64);
        nanos.map(|nanos| Time(Duration::from_nanos(nanos))).ok_or_else(|| QuantityError {
            value: text.to_owned(),
            what: "a time",
            expected: "0s to 1440min with unit ns, us, ms, s or min, as in 300ms",
        })
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Size {
    type Err = QuantityError;
    fn from_str(text: &str) -> Result<Self, QuantityError> {
        const BYTES_MAX: f64 = 1e12;
        let bytes = with_unit(text, &SIZES).filter(|bytes| (1.0..=BYTES_MAX).contains(bytes));
        bytes.map(|bytes| Size(bytes as u64)).ok_or_else(|| QuantityError {
            value: text.to_owned(),
            what: "a size",
            expected: "1B to 1000GB with unit B, kB, MB, GB, KiB, MiB or GiB, as in 10MB",
        })
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (bytes, unit) = match self.0 {
            b if b.is_multiple_of(1_000_000_000) => (b / 1_000_000_000, "GB"),
            b if b.is_multiple_of(1_048_576) => (b / 1_048_576, "MiB"),
            b if b.is_multiple_of(1_000_000) => (b / 1_000_000, "MB"),
            b if b.is_multiple_of(1024) => (b / 1024, "KiB"),
            b if b.is_multiple_of(1000) => (b / 1000, "kB"),
            b => (b, "B"),
        };
        write!(f, "{bytes}{unit}")
    }
}

impl FromStr for Percent {
    type Err = QuantityError;
    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let share = with_unit(text, &[("%", 0.01)]).filter(|share| (0.0..1.0).contains(share));
        share.map(Percent).ok_or_else(|| QuantityError {
            value: text.to_owned(),
            what: "a share",
            expected: "0% up to, not including, 100%, as in 1%",
        })
    }
}

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Rounding undoes the division by 100: 0.07 prints as 7, not 7.000000000000001.
        let percent: f64 = format!("{:.10}", self.0 * 100.0).parse().unwrap_or(self.0 * 100.0);
        write!(f, "{percent}%")
    }
}

impl FromStr for Queue {
    type Err = QuantityError;
    fn from_str(text: &str) -> Result<Self, QuantityError> {
        const PACKETS_MAX: f64 = 1e6;
        let packets = with_unit(text, &[("p", 1.0)]);
        let packets = packets.filter(|n| (1.0..=PACKETS_MAX).contains(n) && n.fract() == 0.0);
        if let Some(packets) = packets {
            return Ok(Queue::Packets(packets as u32));
        }
        text.parse().map(|Size(bytes)| Queue::Bytes(bytes)).map_err(|_| QuantityError {
            value: text.to_owned(),
            what: "a queue limit",
            expected: "packets or bytes, as in 100p or 64KiB",
        })
    }
}

impl fmt::Display for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Queue::Packets(packets) => write!(f, "{packets}p"),
            Queue::Bytes(bytes) => Size(*bytes).fmt(f),
        }
    }
}

/// The number before one of the units, times what the unit stands for. A space before the unit is
/// allowed; signs, a missing unit and words such as `inf` are not.
pub(crate) fn with_unit(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    let (number, unit) = split_number(text)?;
    let scale = units.iter().find(|(name, _)| *name == unit)?.1;
    Some(number * scale)
}

/// Splits `2.5 Mbit/s` into 2.5 and `Mbit/s`.
fn split_number(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let bytes = text.as_bytes();
    let digits = |from: usize| bytes[from..].iter().take_while(|b| b.is_ascii_digit()).count();
    let mut end = digits(0);
    if bytes.get(end) == Some(&b'.') {
        end += 1 + digits(end + 1);
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let exponent = digits((end + 1 + sign).min(bytes.len()));
        if exponent > 0 {
            end += 1 + sign + exponent;
        }
    }
    let number: f64 = text.get(..end)?.parse().ok()?;
    let unit = text.get(end..)?;
    let unit = unit.strip_prefix(' ').unwrap_or(unit);
    number.is_finite().then_some((number, unit))
}

/// Splits `a=1,b=2,flag` into keys and values; a word without `=` has an empty value.
pub(crate) fn fields(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.split(',').map(|field| match field.split_once('=') {
        Some((key, value)) => (key.trim(), value.trim()),
        None => (field.trim(), ""),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_the_contract_shows_parses() {
        assert_eq!("2Mbit/s".parse(), Ok(Rate(BitRate::from_mbps(2))));
        assert_eq!("2 Mbit/s".parse(), Ok(Rate(BitRate::from_mbps(2))));
        assert_eq!("1.5kbit/s".parse(), Ok(Rate(BitRate::from_bps(1500))));
        assert_eq!("300ms".parse(), Ok(Time(Duration::from_millis(300))));
        assert_eq!("2min".parse(), Ok(Time(Duration::from_secs(120))));
        assert_eq!("10MB".parse(), Ok(Size(10_000_000)));
        assert_eq!("1MiB".parse(), Ok(Size(1 << 20)));
        assert_eq!("100p".parse(), Ok(Queue::Packets(100)));
        assert_eq!("64KiB".parse(), Ok(Queue::Bytes(65536)));
        assert_eq!("1%".parse(), Ok(Percent(0.01)));
    }

    #[test]
    fn what_has_no_unit_or_a_wrong_one_is_refused_with_what_was_expected() {
        for text in
            ["2", "2Mbps", "2mbit/s", "-2Mbit/s", "Mbit/s", "0bit/s", "1e99Gbit/s", "infMbit/s"]
        {
            let error = text.parse::<Rate>().expect_err(text);
            assert!(error.to_string().contains(text) && error.to_string().contains("2Mbit/s"));
        }
        for text in ["5", "5m", "5 seconds", "-1ms", "1e30s", ""] {
            assert!(text.parse::<Time>().is_err(), "{text}");
        }
        for text in ["100%", "-1%", "1", "1 percent", "nan%"] {
            assert!(text.parse::<Percent>().is_err(), "{text}");
        }
        for text in ["0p", "1.5p", "100", "0B"] {
            assert!(text.parse::<Queue>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn printing_and_parsing_return_the_same_value(
            bps in 1u64..1_000_000_000_000,
            nanos in 0u64..86_400_000_000_000,
            bytes in 1u64..1_000_000_000_000,
            permille in 0u32..1000,
        ) {
            let rate = Rate(BitRate::from_bps(bps));
            prop_assert_eq!(rate.to_string().parse(), Ok(rate));
            let time = Time(Duration::from_nanos(nanos));
            prop_assert_eq!(time.to_string().parse(), Ok(time));
            let size = Size(bytes);
            prop_assert_eq!(size.to_string().parse(), Ok(size));
            let share = Percent(f64::from(permille) / 1000.0);
            let back: Percent = share.to_string().parse().expect("a printed share parses");
            prop_assert!((back.0 - share.0).abs() < 1e-12);
        }

        #[test]
        fn no_text_makes_a_parser_panic(text in ".{0,20}") {
            let _ = text.parse::<Rate>();
            let _ = text.parse::<Time>();
            let _ = text.parse::<Size>();
            let _ = text.parse::<Percent>();
            let _ = text.parse::<Queue>();
        }
    }
}
