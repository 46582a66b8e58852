//! The configuration file: TOML, quantities with their units, unknown keys refused. Every error
//! names the file, the line, what it says, and what was expected.
//!
//! `dist/lasthop.toml` shows and explains every key.

use super::config::{BackEnd, DaemonConfig, Forwarding, Limits, Log, Mode, Place};
use super::control::Control;
use super::selection::Prefix;
use crate::io::inline::Devices;
use node::scenario::{self, Axis, Rate, ScenarioError, Size, Time};
use sansio::Duration;
use schemes::snoop::config::HelpFrom;
use schemes::worth::Worth;
use serde::Deserialize;
use serde::de::Error as _;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use wire::ethernet::Mac;

/// The file as written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Document {
    wired: Device,
    radio: Device,
    radio_high: Option<Device>,
    mobile: Axis<Parsed<Prefix>>,
    #[serde(default)]
    next_hops: BTreeMap<Parsed<IpAddr>, Parsed<HardwareAddress>>,
    scheme: Option<SchemeName>,
    help_from: Option<Begins>,
    #[serde(default)]
    limits: Bounds,
    #[serde(default)]
    worth: Measuring,
    #[serde(default)]
    class: Vec<Class>,
    #[serde(default)]
    schedule: Schedule,
    radio_rate: Option<Rate>,
    mode: Option<Mode>,
    forwarding: Option<Forwarding>,
    back_end: Option<BackEnd>,
    control: Option<PathBuf>,
    #[serde(default)]
    metrics: Metrics,
    #[serde(default)]
    log: Log,
}

/// From when on flows are helped.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Begins {
    Evidence,
    FirstPacket,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Bounds {
    flows: Option<std::num::NonZeroU32>,
    cache: Option<Size>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Measuring {
    control_share: Option<Share<50>>,
    harm_budget: Option<Share<100>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Class {
    name: String,
    mobile: Axis<Parsed<Prefix>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Schedule {
    back_at: Option<Axis<WithinMinute>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Metrics {
    listen: Option<Parsed<SocketAddr>>,
}

/// Reads a configuration file.
///
/// # Errors
/// If it cannot be read, or the first thing that is wrong in it.
pub fn read(file: &Path, place: Place) -> Result<DaemonConfig, ScenarioError> {
    let name = file.display().to_string();
    let text = std::fs::read_to_string(file)
        .map_err(|error| ScenarioError::at(&name, "", None, format!("cannot be read: {error}")))?;
    let config = parse(&name, &text, place)?;
    Ok(DaemonConfig { file: Some(file.to_owned()), ..config })
}

/// Parses the text of a configuration file. `file` is its name in messages.
///
/// # Errors
/// The first thing that is wrong.
pub fn parse(file: &str, text: &str, place: Place) -> Result<DaemonConfig, ScenarioError> {
    let document: Document =
        toml::from_str(text).map_err(|error| scenario::unreadable(file, text, &error))?;
    let Document { wired, radio, radio_high, .. } = document;
    let config = DaemonConfig {
        place,
        devices: Devices { wired: wired.0, radio: radio.0, radio_high: radio_high.map(|it| it.0) },
        mobile: document.mobile.0.into_iter().map(|prefix| prefix.0).collect(),
        next_hops: document.next_hops.into_iter().map(|(host, hop)| (host.0, hop.0.0)).collect(),
        scheme: document.scheme.map_or_else(|| "snoop-modern".to_owned(), |scheme| scheme.0),
        help_from: match document.help_from {
            None | Some(Begins::Evidence) => HelpFrom::EVIDENCE,
            Some(Begins::FirstPacket) => HelpFrom::FirstPacket,
        },
        limits: Limits {
            flows: document.limits.flows.map(Into::into),
            cache_bytes: document.limits.cache.map(|Size(bytes)| bytes),
        },
        worth: Worth {
            control_ppm: share_or(document.worth.control_share, Worth::default().control_ppm),
            harm_budget_ppm: share_or(document.worth.harm_budget, Worth::default().harm_budget_ppm),
            ..Worth::default()
        },
        classes: document.class.into_iter().map(Class::named).collect(),
        back_at: document
            .schedule
            .back_at
            .map_or_else(Vec::new, |times| times.0.into_iter().map(|time| time.0).collect()),
        radio_rate: document.radio_rate.map(|Rate(rate)| rate),
        // Who says nothing changes nothing.
        mode: document.mode.unwrap_or(Mode::Observe),
        forwarding: document.forwarding.unwrap_or(Forwarding::Routed),
        back_end: document.back_end.unwrap_or(BackEnd::Auto),
        control: match document.control {
            None => Control::Nobody,
            Some(path) if path.as_os_str() == "-" => Control::Standard,
            Some(path) => Control::Socket(path),
        },
        metrics: document.metrics.listen.map(|listen| listen.0),
        log: document.log,
        file: None,
    };
    match contradiction(&config) {
        Some((key, message)) => Err(scenario::locate_key(key, message, file, text)),
        None => Ok(config),
    }
}

/// The first setting that cannot stand beside the others, and what was expected.
fn contradiction(config: &DaemonConfig) -> Option<(&'static str, String)> {
    let Devices { wired, radio, radio_high } = &config.devices;
    if wired == radio {
        let expected = "expected another device than wired: packets go from one to the other";
        return Some(("radio", format!("radio = {radio}: {expected}")));
    }
    if let Some(high) = radio_high {
        if config.place == Place::Gateway {
            let expected = "expected none at a gateway: the radio's queues are behind the next \
                            device; leave the line out, or run `daemon base-station`";
            return Some(("radio-high", format!("radio-high = {high}: {expected}")));
        }
        if high == wired {
            let expected = "expected a device toward the mobile hosts, not wired";
            return Some(("radio-high", format!("radio-high = {high}: {expected}")));
        }
    }
    let named = |name: &str| config.classes.iter().filter(|(other, _)| other == name).count();
    for (name, _) in &config.classes {
        if name.is_empty() || name == "others" || named(name) > 1 {
            let expected = "a name of its own for each class, and none called `others`, which \
                            are all that are in no class";
            return Some(("name", format!("class name `{name}`: expected {expected}")));
        }
    }
    None
}

/// A value that is written as text and parsed by its type.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Parsed<T>(T);

impl<'de, T: Described> Deserialize<'de> for Parsed<T> {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        let wrong = |_| D::Error::custom(format!("`{text}` is not {}", T::EXPECTED));
        text.parse().map(Parsed).map_err(wrong)
    }
}

/// A share, such as `5%`, up to so many percent; in parts per million.
struct Share<const PERCENT_MAX: u32>(u32);

impl<'de, const PERCENT_MAX: u32> Deserialize<'de> for Share<PERCENT_MAX> {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        let percent = text.strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
        match percent.filter(|percent| (0.0..=f64::from(PERCENT_MAX)).contains(percent)) {
            Some(percent) => Ok(Share((percent * 1e4).round() as u32)),
            None => Err(D::Error::custom(format!(
                "`{text}` is not a share; expected one from 0% to {PERCENT_MAX}%"
            ))),
        }
    }
}

fn share_or<const PERCENT_MAX: u32>(share: Option<Share<PERCENT_MAX>>, otherwise: u32) -> u32 {
    share.map_or(otherwise, |share| share.0)
}

impl Class {
    fn named(self) -> (String, Vec<Prefix>) {
        (self.name, self.mobile.0.into_iter().map(|prefix| prefix.0).collect())
    }
}

/// A time within a minute, such as `12.1s`.
struct WithinMinute(Duration);

impl<'de> Deserialize<'de> for WithinMinute {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let Time(time) = Time::deserialize(from)?;
        match time < Duration::from_secs(60) {
            true => Ok(WithinMinute(time)),
            false => Err(D::Error::custom(format!(
                "`{}s` is not within a minute; expected 0s to 59.999s",
                time.as_secs_f64()
            ))),
        }
    }
}

/// What parses from text, and what was expected if it does not.
trait Described: FromStr {
    const EXPECTED: &'static str;
}

impl Described for Prefix {
    const EXPECTED: &'static str =
        "an address prefix; expected one such as 10.0.2.0/24 or 2001:db8:2::/64";
}

impl Described for IpAddr {
    const EXPECTED: &'static str = "an address; expected one such as 10.0.2.9 or 2001:db8:2::9";
}

impl Described for SocketAddr {
    const EXPECTED: &'static str =
        "an address with a port; expected one such as 127.0.0.1:9464 or [::1]:9464";
}

impl Described for HardwareAddress {
    const EXPECTED: &'static str = "a link-layer address; expected one such as 02:00:00:00:00:01";
}

/// The address of an Ethernet device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct HardwareAddress(Mac);

impl FromStr for HardwareAddress {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let octet = |part: &str| match part.len() {
            2 => u8::from_str_radix(part, 16).map_err(|_| ()),
            _ => Err(()),
        };
        let octets: Vec<u8> = text.split(':').map(octet).collect::<Result<_, _>>()?;
        let octets: [u8; 6] = octets.try_into().map_err(|_| ())?;
        let mac = Mac(octets);
        if mac.is_multicast() { Err(()) } else { Ok(HardwareAddress(mac)) }
    }
}

/// The name of a network device.
struct Device(String);

impl<'de> Deserialize<'de> for Device {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let name = String::deserialize(from)?;
        let fits = (1..=DEVICE_BYTES_MAX).contains(&name.len());
        let allowed = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'/' | b'"' | b'\\');
        if fits && name.bytes().all(allowed) {
            return Ok(Device(name));
        }
        Err(D::Error::custom(format!(
            "`{name}` is not the name of a network device; expected up to {DEVICE_BYTES_MAX} \
             letters and digits, as `ip link` lists them"
        )))
    }
}

/// IFNAMSIZ of linux/if.h, less the end mark.
const DEVICE_BYTES_MAX: usize = 15;

/// The name of a scheme.
struct SchemeName(String);

impl<'de> Deserialize<'de> for SchemeName {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let name = String::deserialize(from)?;
        let known: Vec<&str> = schemes::Scheme::NAMES.iter().map(|(name, _)| *name).collect();
        if known.contains(&name.as_str()) {
            return Ok(SchemeName(name));
        }
        Err(D::Error::custom(format!("`{name}` is not a scheme; expected {}", known.join(", "))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAST: &str = "wired = \"eth0\"\nradio = \"eth1\"\nmobile = \"10.0.2.0/24\"\n";

    fn refused(place: Place, text: &str) -> String {
        parse("f.toml", text, place).expect_err("it is refused").to_string()
    }

    #[test]
    fn who_says_nothing_observes() {
        let config = parse("f.toml", LEAST, Place::Gateway).expect("it is complete");
        assert_eq!((config.mode, config.scheme.as_str()), (Mode::Observe, "snoop-modern"));
        assert_eq!((config.control, config.metrics), (Control::Nobody, None));
        assert_eq!(config.mobile, ["10.0.2.0/24".parse().expect("a prefix")]);
    }

    #[test]
    fn every_setting_arrives() {
        let text = format!(
            "{LEAST}radio-high = \"eth2\"\nscheme = \"plain\"\nradio-rate = \"50Mbit/s\"\n\
             mode = \"help\"\nforwarding = \"routed\"\nback-end = \"inline\"\n\
             control = \"/run/c\"\nnext-hops = {{ \"10.0.2.9\" = \"02:00:00:00:00:0a\" }}\n\
             [metrics]\nlisten = \"[::1]:9464\"\n[log]\nlevel = \"debug\"\nformat = \"json\"\n"
        );
        let config = parse("f.toml", &text, Place::BaseStation).expect("it is complete");
        assert_eq!(config.devices.radio_high.as_deref(), Some("eth2"));
        assert_eq!(config.radio_rate, Some(sansio::BitRate::from_mbps(50)));
        assert_eq!((config.mode, config.back_end), (Mode::Help, BackEnd::Inline));
        let hop = (IpAddr::from([10, 0, 2, 9]), Mac([2, 0, 0, 0, 0, 10]));
        assert_eq!(config.next_hops, [hop]);
        assert_eq!(config.metrics, Some("[::1]:9464".parse().expect("an address")));
        assert_eq!(config.log.level, super::super::config::Level::Debug);
    }

    #[test]
    fn limits_and_when_help_begins_arrive() {
        let config = parse("f.toml", LEAST, Place::Gateway).expect("it is complete");
        assert_eq!((config.help_from, config.limits), (HelpFrom::EVIDENCE, Limits::default()));
        let text = format!(
            "{LEAST}control = \"-\"\nhelp-from = \"first-packet\"\n[limits]\nflows = 40\n\
             cache = \"64KiB\"\n"
        );
        let config = parse("f.toml", &text, Place::Gateway).expect("it is complete");
        let limits = Limits { flows: Some(40), cache_bytes: Some(65_536) };
        assert_eq!((config.help_from, config.limits), (HelpFrom::FirstPacket, limits));
        assert_eq!(config.control, Control::Standard);
        let none = refused(Place::Gateway, &format!("{LEAST}limits.flows = 0\n"));
        assert!(none.contains("f.toml:4") && none.contains("expected a nonzero u32"), "{none}");
    }

    #[test]
    fn classes_shares_and_schedules_arrive() {
        let text = format!(
            "{LEAST}[worth]\ncontrol-share = \"2.5%\"\nharm-budget = \"0%\"\n[schedule]\n\
             back-at = [\"12.15s\", \"27.15s\"]\n[[class]]\nname = \"trains\"\n\
             mobile = [\"10.0.2.0/26\", \"fd00::/64\"]\n"
        );
        let config = parse("f.toml", &text, Place::Gateway).expect("it is complete");
        assert_eq!((config.worth.control_ppm, config.worth.harm_budget_ppm), (25_000, 0));
        assert_eq!(config.back_at, [12_150, 27_150].map(Duration::from_millis));
        assert_eq!((config.classes[0].0.as_str(), config.classes[0].1.len()), ("trains", 2));
        let twice = format!("{text}[[class]]\nname = \"trains\"\nmobile = \"10.0.9.0/24\"\n");
        assert!(refused(Place::Gateway, &twice).contains("class name `trains`: expected"));
    }

    #[test]
    fn errors_name_the_line_the_value_and_what_was_expected() {
        let cases = [
            ("mobile = \"10.0.2.0/33\"", "`10.0.2.0/33` is not an address prefix"),
            ("moblie = \"10.0.2.0/24\"", "unknown field `moblie`"),
            ("radio-rate = 50", "`50` is not a rate; expected"),
            ("radio-rate = \"50Mbit\"", "`50Mbit` is not a rate; expected"),
            ("mode = \"on\"", "unknown variant `on`, expected one of `off`, `observe`, `help`"),
            ("scheme = \"snop\"", "`snop` is not a scheme; expected plain, snoop, snoop-modern"),
            ("metrics.listen = \"9464\"", "`9464` is not an address with a port"),
            ("log.level = \"loud\"", "unknown variant `loud`"),
            ("next-hops = { \"10.0.2.9\" = \"2:0\" }", "`2:0` is not a link-layer address"),
            ("worth.control-share = \"60%\"", "`60%` is not a share; expected one from 0% to 50%"),
            ("worth.harm-budget = 5", "invalid type: integer `5`, expected a string"),
            ("schedule.back-at = \"60s\"", "`60s` is not within a minute"),
            ("forwarding = \"bridged\"", "expected `routed` or `bridge`"),
            ("back-end = \"faster\"", "expected one of `auto`, `inline`, `fast`"),
            ("radio-high = \"eth3\"", "expected none at a gateway"),
        ];
        let least: Vec<&str> = LEAST.lines().filter(|line| !line.starts_with("mobile")).collect();
        for (line, message) in cases {
            let mobile = if line.starts_with("mo") && !line.starts_with("mode") {
                ""
            } else {
                "mobile = \"10.0.2.0/24\""
            };
            let text = format!("{}\n{mobile}\n{line}\n", least.join("\n"));
            let said = refused(Place::Gateway, &text);
            assert!(said.starts_with("f.toml:4: "), "{line}: {said}");
            assert!(said.contains(message), "{line}: {said}");
            assert!(said.ends_with(line), "{line}: {said}");
        }
        let same = LEAST.replace("eth1", "eth0");
        assert!(refused(Place::Gateway, &same).starts_with("f.toml:2: radio = eth0: expected"));
        assert!(refused(Place::Gateway, "wired = \"eth0\"").contains("missing field"));
    }
}
