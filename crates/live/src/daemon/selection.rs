//! Which packets the daemon takes from the kernel: said once, for the filter in the kernel and for
//! the daemon itself, which must agree to the packet.
//!
//! It looks at unfragmented TCP between the mobile hosts' prefixes and the world beyond, but for
//! that of the base station itself. A router looks at what is addressed to its device and has hops
//! left: what it has to answer or write into itself (expired, IP options such as record route,
//! fragments to pass on as they are) stays with the kernel. A bridge looks at what one station
//! sends to another.
//!
//! Of that it takes everything ([`Share::Everything`]), or only what it may have to withhold
//! ([`Share::Acks`]): segments from mobile hosts that carry no payload. The kernel then forwards
//! the rest, and the daemon only sees it.
//!
//! Frames with a VLAN tag are the kernel's; to help in a VLAN, name the VLAN's own device.

use anyhow::{Context, Result, bail, ensure};
use sansio::Side;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use wire::ethernet::{self, EtherType, Mac};

/// A range of addresses: those whose first bits are the network's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    /// All bits that do not count are 0.
    network: IpAddr,
    /// Number of bits that count, at most 32 or 128.
    bits: u8,
}

/// What the daemon looks at, and what of it it takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    /// Where the mobile hosts are; IPv4 and IPv6 together.
    pub mobile: Vec<Prefix>,
    /// The base station's own addresses.
    pub own: Vec<IpAddr>,
    /// How frames come here.
    pub place: Place,
    /// How much is taken.
    pub share: Share,
}

/// How the kernel forwards between the two devices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// As a router: hosts send frames to its devices.
    Router {
        /// The address of the device toward the fixed hosts.
        wired: Mac,
        /// The address of the device toward the mobile hosts.
        radio: Mac,
    },
    /// As a bridge: hosts send frames to each other.
    Bridge {
        /// The addresses of this machine's own devices, the bridge's included.
        own: Vec<Mac>,
    },
}

/// How much of what it looks at the daemon takes from the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// All of it.
    Everything,
    /// TCP segments from mobile hosts without payload and IP options: what can be a pure ACK, and
    /// SYN, FIN and RST in their order with them.
    Acks,
}

/// What becomes of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The daemon takes it: the kernel drops it.
    Taken,
    /// The daemon sees it, the kernel forwards it.
    Seen,
    /// The kernel's alone.
    NotOurs,
}

impl Prefix {
    /// True if the address lies within.
    #[inline]
    pub fn contains(&self, address: IpAddr) -> bool {
        masked(address, self.bits) == Some(self.network)
    }

    /// The network's address.
    pub fn network(&self) -> IpAddr {
        self.network
    }

    /// The network's address, and the number of its bits that count.
    pub fn network_and_bits(&self) -> (IpAddr, u8) {
        (self.network, self.bits)
    }

    /// True if all of `other` lies within.
    fn covers(&self, other: &Prefix) -> bool {
        self.bits <= other.bits && self.contains(other.network)
    }
}

/// The first bits of an address; `None` if it has fewer.
#[inline]
fn masked(address: IpAddr, bits: u8) -> Option<IpAddr> {
    Some(match address {
        IpAddr::V4(address) => {
            let rest = 32_u32.checked_sub(bits.into())?;
            let mask = u32::MAX.checked_shl(rest).unwrap_or(0);
            IpAddr::V4((address.to_bits() & mask).into())
        }
        IpAddr::V6(address) => {
            let rest = 128_u32.checked_sub(bits.into())?;
            let mask = u128::MAX.checked_shl(rest).unwrap_or(0);
            IpAddr::V6((address.to_bits() & mask).into())
        }
    })
}

impl FromStr for Prefix {
    type Err = anyhow::Error;

    /// `10.0.2.0/24`, `fd00::/64`, or a single address.
    fn from_str(text: &str) -> Result<Self> {
        let attempt = || format!("{text} is not an address prefix such as 10.0.2.0/24");
        let (network, bits) = text.split_once('/').unwrap_or((text, ""));
        let network: IpAddr = network.parse().with_context(attempt)?;
        let most = if network.is_ipv4() { 32 } else { 128 };
        let bits = if bits.is_empty() { most } else { bits.parse().with_context(attempt)? };
        let network = masked(network, bits);
        ensure!(bits <= most, "{text}: a prefix has at most {most} bits");
        Ok(Prefix { network: network.with_context(attempt)?, bits })
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.network, self.bits)
    }
}

/// What the selection looks at.
struct Seen {
    source: IpAddr,
    destination: IpAddr,
    hop_limit: u8,
    /// Nothing follows the TCP header, and no option precedes it.
    is_bare: bool,
}

impl Selection {
    /// What becomes of a frame, which begins with its Ethernet header.
    #[inline]
    pub fn verdict(&self, side: Side, frame: &[u8]) -> Verdict {
        let Some(seen) = self.look(side, frame) else { return Verdict::NotOurs };
        match self.share {
            Share::Everything => Verdict::Taken,
            Share::Acks if side == Side::RADIO && seen.is_bare => Verdict::Taken,
            Share::Acks => Verdict::Seen,
        }
    }

    /// True if the daemon takes the frame.
    #[inline]
    pub fn takes(&self, side: Side, frame: &[u8]) -> bool {
        self.verdict(side, frame) == Verdict::Taken
    }

    #[inline]
    fn look(&self, side: Side, frame: &[u8]) -> Option<Seen> {
        let (link, at) = ethernet::Header::parse(frame).ok()?;
        let seen = match link.ether_type {
            _ if at != ethernet::Header::BASE_BYTES => None,
            EtherType::IPV4 => seen_v4(&frame[at..]),
            EtherType::IPV6 => seen_v6(&frame[at..]),
            _ => None,
        }?;
        let (inner, outer) = match side {
            Side::RADIO => (seen.source, seen.destination),
            _ => (seen.destination, seen.source),
        };
        let is_mobile = |address| self.mobile.iter().any(|prefix| prefix.contains(address));
        let passes_here = match &self.place {
            Place::Router { wired, radio } => {
                let device = if side == Side::RADIO { radio } else { wired };
                link.destination == *device && seen.hop_limit > 1 && !is_mobile(outer)
            }
            Place::Bridge { own } => {
                !link.destination.is_multicast() && !own.contains(&link.destination)
            }
        };
        let ours = passes_here && is_mobile(inner) && !self.own.contains(&seen.destination);
        ours.then_some(seen)
    }

    /// The same for nft(8): the text of a table that drops at ingress what the daemon takes.
    ///
    /// # Errors
    /// If a device's name cannot stand between quotes.
    pub fn table(&self, table: &str, wired: &str, radio: &str) -> Result<String> {
        let mut text = format!("add table netdev {table} {{ flags owner; }}\n");
        if self.share == Share::Acks {
            text += &bare_chains(table);
        }
        let devices = [(Side::WIRED, "wired", wired), (Side::RADIO, "radio", radio)];
        for (side, chain, device) in devices {
            if device.contains(['"', '\n', ' ']) {
                bail!("{device:?} is no name of a device");
            }
            if self.share == Share::Acks && side != Side::RADIO {
                continue;
            }
            text += &format!(
                "add chain netdev {table} {chain} {{ type filter hook ingress device \"{device}\" \
                 priority -500; policy accept; }}\n"
            );
            for family in [&V4, &V6] {
                let Some(expression) = self.expression(side, family) else { continue };
                let verdict = match self.share {
                    Share::Everything => "drop".to_owned(),
                    Share::Acks => format!("{} jump {}", family.short, family.bare_chain),
                };
                text += &format!("add rule netdev {table} {chain} {expression} {verdict}\n");
            }
        }
        Ok(text)
    }

    /// What is looked at on a side, for one version of IP; `None` if there are no such mobile
    /// hosts.
    fn expression(&self, side: Side, family: &Family) -> Option<String> {
        let Family { name, ether_type, .. } = family;
        let of_family = |prefix: &&Prefix| prefix.network.is_ipv4() == family.is_v4;
        let mobile: Vec<Prefix> = self.mobile.iter().filter(of_family).copied().collect();
        let mobile = set(outermost(&mobile).iter())?;
        let own = self.own.iter().filter(|address| address.is_ipv4() == family.is_v4);
        let own = set(own).map(|own| format!(" {name} daddr != {own}")).unwrap_or_default();
        let (inner, outer) =
            if side == Side::RADIO { ("saddr", "daddr") } else { ("daddr", "saddr") };
        let (link, beyond, hops) = match &self.place {
            Place::Router { wired, radio } => {
                let device = if side == Side::RADIO { radio } else { wired };
                let beyond = format!(" {name} {outer} != {mobile}");
                (format!("ether daddr {device}"), beyond, format!(" {name} {} > 1", family.hops))
            }
            Place::Bridge { own } => {
                let own = set(own.iter()).map(|own| format!(" ether daddr != {own}"));
                let one = "ether daddr & 01:00:00:00:00:00 == 00:00:00:00:00:00";
                (format!("{one}{}", own.unwrap_or_default()), String::new(), String::new())
            }
        };
        // The type at its place in the frame: a VLAN tag stands there if there is one.
        Some(format!(
            "{link} ether type {ether_type} {name} {inner} {mobile}{beyond}{own} {}{hops}",
            family.tcp
        ))
    }
}

/// What nft calls things in one version of IP.
struct Family {
    is_v4: bool,
    name: &'static str,
    ether_type: &'static str,
    /// Unfragmented TCP, behind a complete IP header.
    tcp: &'static str,
    hops: &'static str,
    /// No longer than 60 bytes of TCP.
    short: &'static str,
    bare_chain: &'static str,
    /// Bytes of the IP header that its length counts.
    header_bytes: u32,
}

const V4: Family = Family {
    is_v4: true,
    name: "ip",
    ether_type: "ip",
    // No options, into which routers may have to write; fragment flags and offset, but for "don't
    // fragment".
    tcp: "meta length >= 20 ip version 4 ip hdrlength 5 ip protocol tcp ip frag-off & 0x3fff == 0",
    hops: "ttl",
    short: "ip version 4 ip hdrlength 5 ip length <= 80",
    bare_chain: "bare",
    header_bytes: 20,
};

const V6: Family = Family {
    is_v4: false,
    name: "ip6",
    ether_type: "ip6",
    tcp: "meta length >= 40 ip6 nexthdr tcp",
    hops: "hoplimit",
    short: "ip6 length <= 60",
    bare_chain: "bare6",
    header_bytes: 0,
};

/// Words of a TCP header, the likeliest first: timestamps alone, none, with SACK blocks.
const TCP_HEADER_WORDS: [u32; 11] = [8, 5, 11, 13, 15, 10, 6, 7, 9, 12, 14];

/// Chains that drop segments in which nothing follows the TCP header.
fn bare_chains(table: &str) -> String {
    let mut text = String::new();
    for Family { name, bare_chain, header_bytes, .. } in [&V4, &V6] {
        text += &format!("add chain netdev {table} {bare_chain}\n");
        for words in TCP_HEADER_WORDS {
            let bytes = header_bytes + 4 * words;
            text += &format!(
                "add rule netdev {table} {bare_chain} {name} length {bytes} tcp doff {words} drop\n"
            );
        }
    }
    text
}

/// The prefixes that lie in no other: nft wants the elements of a set disjoint.
fn outermost(prefixes: &[Prefix]) -> Vec<Prefix> {
    let mut kept: Vec<Prefix> = Vec::new();
    for prefix in prefixes {
        if !kept.iter().any(|other| other.covers(prefix)) {
            kept.retain(|other| !prefix.covers(other));
            kept.push(*prefix);
        }
    }
    kept
}

/// A set of nft's; `None` if it would be empty.
fn set<T: fmt::Display>(elements: impl Iterator<Item = T>) -> Option<String> {
    let elements: Vec<String> = elements.map(|element| element.to_string()).collect();
    (!elements.is_empty()).then(|| format!("{{ {} }}", elements.join(", ")))
}

const TCP: u8 = wire::ip::Protocol::TCP.0;
/// The first byte of an IPv4 header without options.
const PLAIN_V4: u8 = 0x45;

fn seen_v4(datagram: &[u8]) -> Option<Seen> {
    let header = datagram.first_chunk::<20>()?;
    let fragment = u16_at(header, 6) & 0x3fff;
    let (hop_limit, protocol) = (header[8], header[9]);
    let [.., a, b, c, d, e, f, g, h] = *header;
    let is_bare = is_bare(&datagram[20..], u16_at(header, 2).checked_sub(20));
    let (source, destination) = ([a, b, c, d].into(), [e, f, g, h].into());
    let is_tcp = header[0] == PLAIN_V4 && protocol == TCP && fragment == 0;
    is_tcp.then_some(Seen { source, destination, hop_limit, is_bare })
}

fn seen_v6(datagram: &[u8]) -> Option<Seen> {
    let header = datagram.first_chunk::<40>()?;
    let (next_header, hop_limit) = (header[6], header[7]);
    let address = |at: usize| {
        let octets: [u8; 16] = header[at..at + 16].try_into().expect("sixteen of forty bytes");
        IpAddr::from(octets)
    };
    let is_bare = header[0] >> 4 == 6 && is_bare(&datagram[40..], Some(u16_at(header, 4)));
    let (source, destination) = (address(8), address(24));
    (next_header == TCP).then_some(Seen { source, destination, hop_limit, is_bare })
}

/// True if `length` bytes of TCP, all of them there, are a header and nothing else.
fn is_bare(tcp: &[u8], length: Option<u16>) -> bool {
    let words = tcp.get(12).map_or(0, |byte| u16::from(byte >> 4));
    words >= 5 && length == Some(4 * words) && tcp.len() >= usize::from(4 * words)
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selection(mobile: &[&str]) -> Selection {
        Selection {
            mobile: mobile.iter().map(|prefix| prefix.parse().expect("a prefix")).collect(),
            own: vec![IpAddr::from([10, 2, 0, 254])],
            place: Place::Router { wired: WIRED, radio: RADIO },
            share: Share::Everything,
        }
    }

    const WIRED: Mac = Mac([2, 0, 0, 0, 0, 1]);
    const RADIO: Mac = Mac([2, 0, 0, 0, 0, 2]);

    #[test]
    fn a_prefix_contains_its_own_and_nobody_elses() {
        let contains = |prefix: &str, address: &str| {
            let prefix: Prefix = prefix.parse().expect("a prefix");
            prefix.contains(address.parse().expect("an address"))
        };
        assert!(contains("10.2.0.0/24", "10.2.0.255"));
        assert!(!contains("10.2.0.0/24", "10.2.1.0"));
        assert!(contains("0.0.0.0/0", "255.1.2.3"));
        assert!(!contains("0.0.0.0/0", "::1"));
        assert!(contains("10.2.0.7", "10.2.0.7"));
        assert!(contains("fd00::/64", "fd00::1") && !contains("fd00::/64", "fd00:0:0:1::1"));
        for wrong in ["10.2.0.0/33", "fd00::/129", "10.2.0/24", "", "10.2.0.0/x"] {
            assert!(wrong.parse::<Prefix>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_table_says_to_nft_what_the_daemon_takes() {
        let rules = |selection: &Selection| -> Vec<String> {
            let text = selection.table("t", "w0", "r0").expect("device names");
            let rules = text.lines().filter_map(|line| line.strip_prefix("add rule netdev t "));
            rules.map(str::to_owned).collect()
        };
        let both = selection(&["10.2.0.0/24", "10.2.0.128/25", "fd00::1/64", "10.2.0.0/24"]);
        let rules = rules(&both);
        assert_eq!(rules.len(), 4, "two devices, two versions of IP");
        assert_eq!(
            rules[0],
            "wired ether daddr 02:00:00:00:00:01 ether type ip ip daddr { 10.2.0.0/24 } \
             ip saddr != { 10.2.0.0/24 } ip daddr != { 10.2.0.254 } \
             meta length >= 20 ip version 4 ip hdrlength 5 ip protocol tcp \
             ip frag-off & 0x3fff == 0 \
             ip ttl > 1 drop"
        );
        assert_eq!(
            rules[3],
            "radio ether daddr 02:00:00:00:00:02 ether type ip6 ip6 saddr { fd00::/64 } \
             ip6 daddr != { fd00::/64 } meta length >= 40 ip6 nexthdr tcp ip6 hoplimit > 1 drop"
        );
        assert!(both.table("t", "w0\"; flush", "r0").is_err());
    }

    /// An untagged frame with a TCP datagram of the version.
    fn frame(from: &str, to: &str, mac: Mac) -> Vec<u8> {
        with_payload(from, to, mac, &[])
    }

    fn with_payload(from: &str, to: &str, mac: Mac, payload: &[u8]) -> Vec<u8> {
        let ip = |text: &str| text.parse::<IpAddr>().expect("an address");
        let header = wire::ip::Header::new(ip(from), ip(to), wire::ip::Protocol::TCP);
        let mut bytes = [&mac.0[..], &[0; 6]].concat();
        bytes.extend(if header.source.is_ipv4() { [0x08, 0x00] } else { [0x86, 0xdd] });
        let tcp = wire::tcp::Header::new(1, 2);
        wire::datagram::emit_tcp(&header, &tcp, payload, &mut bytes).expect("it fits");
        bytes
    }

    #[test]
    fn it_takes_what_goes_between_the_mobile_hosts_and_the_world() {
        let selection = selection(&["10.2.0.0/24", "10.3.0.0/24", "fd00::/64"]);
        let pairs = [("10.2.0.9", "10.1.0.9"), ("10.3.0.9", "10.1.0.9"), ("fd00::9", "fd01::9")];
        for (inner, outer) in pairs {
            assert!(selection.takes(Side::WIRED, &frame(outer, inner, WIRED)));
            assert!(selection.takes(Side::RADIO, &frame(inner, outer, RADIO)));
            let others = [
                (Side::WIRED, frame(inner, outer, WIRED)),
                (Side::RADIO, frame(outer, inner, RADIO)),
                (Side::RADIO, frame(inner, inner, RADIO)),
                (Side::WIRED, frame(outer, inner, RADIO)),
            ];
            for (side, frame) in others {
                assert!(!selection.takes(side, &frame), "{side:?} {frame:?}");
            }
        }
        let mut with_options = frame("10.1.0.9", "10.2.0.9", WIRED);
        with_options[14] = 0x46;
        assert!(!selection.takes(Side::WIRED, &with_options));
        let own = frame("10.1.0.9", "10.2.0.254", WIRED);
        assert!(!selection.takes(Side::WIRED, &own));
        let between_mobiles = frame("10.3.0.9", "10.2.0.9", WIRED);
        assert!(!selection.takes(Side::WIRED, &between_mobiles));
    }

    #[test]
    fn with_the_fast_path_it_takes_bare_segments_of_mobile_hosts_only() {
        let mut selection = selection(&["10.2.0.0/24", "fd00::/64"]);
        selection.share = Share::Acks;
        for (inner, outer) in [("10.2.0.9", "10.1.0.9"), ("fd00::9", "fd01::9")] {
            let from_mobile = frame(inner, outer, RADIO);
            assert_eq!(selection.verdict(Side::RADIO, &from_mobile), Verdict::Taken);
            let to_mobile = frame(outer, inner, WIRED);
            assert_eq!(selection.verdict(Side::WIRED, &to_mobile), Verdict::Seen);
            let data = with_payload(inner, outer, RADIO, b"x");
            assert_eq!(selection.verdict(Side::RADIO, &data), Verdict::Seen);
        }
    }
}
