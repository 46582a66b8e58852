//! A link layer that repeats lost frames, as people write it.

use super::quantity::{QuantityError, Time, as_text, fields};
use core::fmt;
use core::str::FromStr;
use link::hop::frame_arq::{self, Retry};
use sansio::Duration;

/// Whether the last hop's link layer repeats lost frames (BASE-10, METP-LL-2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Arq {
    /// `none`: what the radio's preset has, which is none that takes the air.
    #[default]
    None,
    /// `frames:retries=7,ack=300us`: stop and wait, each frame in its turn.
    Frames {
        /// After so many repetitions a frame is given up; `None` (`retries=forever`): practically
        /// never.
        retries: Option<u32>,
        /// What an ACK takes beside the delay both ways; 0 unless said.
        ack: Time,
    },
}

as_text!(Arq);

impl Arq {
    /// Repetitions: at most the largest retry limit of IEEE 802.11 (dot11ShortRetryLimit).
    const RETRIES_MAX: u32 = 255;
    /// ACKs: none that takes longer makes sense.
    const ACK_MAX: Duration = Duration::from_secs(1);

    /// True if there is none.
    pub(crate) fn is_none(&self) -> bool {
        *self == Arq::None
    }

    /// As a hop has it.
    pub(crate) fn config(self) -> Option<frame_arq::Config> {
        let Arq::Frames { retries, ack } = self else { return None };
        let retry = retries.map_or(Retry::Persistent, Retry::Limited);
        Some(frame_arq::Config { retry, ack_time: ack.0 })
    }
}

impl FromStr for Arq {
    type Err = QuantityError;
    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let parsed = match text.trim() {
            "none" => Some(Arq::None),
            text => text.strip_prefix("frames:").and_then(parse_frames),
        };
        parsed.ok_or_else(|| QuantityError {
            value: text.to_owned(),
            what: "a link layer that repeats",
            expected: "none, or frames:retries=7[,ack=300us] with 0 to 255 repetitions or \
                       retries=forever, and an ACK of at most 1s",
        })
    }
}

fn parse_frames(text: &str) -> Option<Arq> {
    let (mut retries, mut ack) = (None, None);
    for (key, value) in fields(text) {
        match key {
            "retries" if retries.is_none() && value == "forever" => retries = Some(None),
            "retries" if retries.is_none() => retries = Some(Some(value.parse::<u32>().ok()?)),
            "ack" if ack.is_none() => ack = Some(value.parse::<Time>().ok()?),
            _ => return None,
        }
    }
    let (retries, ack) = (retries?, ack.unwrap_or(Time(Duration::ZERO)));
    let possible = retries.is_none_or(|retries| retries <= Arq::RETRIES_MAX);
    (possible && ack.0 <= Arq::ACK_MAX).then_some(Arq::Frames { retries, ack })
}

impl fmt::Display for Arq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Arq::Frames { retries, ack } = *self else { return f.write_str("none") };
        match retries {
            Some(retries) => write!(f, "frames:retries={retries}")?,
            None => f.write_str("frames:retries=forever")?,
        }
        if ack.0.is_zero() { Ok(()) } else { write!(f, ",ack={ack}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_parses_and_prints_as_it_was() {
        for text in
            ["none", "frames:retries=7,ack=300us", "frames:retries=0", "frames:retries=forever"]
        {
            assert_eq!(text.parse::<Arq>().expect(text).to_string(), text);
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for text in [
            "frames",
            "frames:",
            "frames:ack=1us",
            "frames:retries=256",
            "frames:retries=-1",
            "frames:retries=7,retries=8",
            "frames:retries=7,ack=2s",
            "frames:retries=7,ack=300",
            "frames:retries=7,window=2",
            "7",
        ] {
            let error = text.parse::<Arq>().expect_err(text);
            assert!(error.to_string().contains("frames:retries=7"), "{error}");
        }
    }
}
