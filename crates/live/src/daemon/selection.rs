//! Which packets the daemon takes from the kernel: said once, for the filter in the kernel and for
//! the daemon itself, which must agree to the packet.
//!
//! It takes unfragmented TCP between the mobile prefix and the world beyond, addressed to the base
//! station's device, not to the base station itself, and with hops left: whatever a router has to
//! answer or write into itself (expired, IP options such as record route, fragments to pass on as
//! they are) stays with the kernel. VLAN tags are not looked into: name the VLAN's own device.

use anyhow::{Context, Result, bail, ensure};
use sansio::Side;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use wire::ethernet::{self, EtherType, Mac};

/// A range of addresses: those whose first bits are the network's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    network: IpAddr,
    /// Number of bits that count, at most 32 or 128.
    bits: u8,
}

/// What the daemon takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    /// Where the mobile hosts are.
    pub mobile: Prefix,
    /// The base station's own addresses.
    pub own: Vec<IpAddr>,
    /// The address of the device toward the fixed host.
    pub wired: Mac,
    /// The address of the device toward the mobile host.
    pub radio: Mac,
}

impl Prefix {
    /// True if the address lies within.
    #[inline]
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.network, address) {
            (IpAddr::V4(network), IpAddr::V4(address)) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(self.bits)).unwrap_or(0);
                (network.to_bits() ^ address.to_bits()) & mask == 0
            }
            (IpAddr::V6(network), IpAddr::V6(address)) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(self.bits)).unwrap_or(0);
                (network.to_bits() ^ address.to_bits()) & mask == 0
            }
            _ => false,
        }
    }

    /// The network's address.
    pub fn network(&self) -> IpAddr {
        self.network
    }
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
        ensure!(bits <= most, "{text}: a prefix has at most {most} bits");
        Ok(Prefix { network, bits })
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
}

impl Selection {
    /// True if the daemon takes the frame, which begins with its Ethernet header.
    #[inline]
    pub fn takes(&self, side: Side, frame: &[u8]) -> bool {
        let Ok((link, at)) = ethernet::Header::parse(frame) else { return false };
        let own = if side == Side::RADIO { self.radio } else { self.wired };
        if link.destination != own {
            return false;
        }
        let seen = match link.ether_type {
            EtherType::IPV4 => seen_v4(&frame[at..]),
            EtherType::IPV6 => seen_v6(&frame[at..]),
            _ => None,
        };
        let Some(Seen { source, destination }) = seen else { return false };
        let (inner, outer) =
            if side == Side::RADIO { (source, destination) } else { (destination, source) };
        self.mobile.contains(inner)
            && !self.mobile.contains(outer)
            && !self.own.contains(&destination)
    }

    /// The same for nft(8): the text of a table that drops at ingress what the daemon takes.
    ///
    /// # Errors
    /// If a device's name cannot stand between quotes.
    pub fn table(&self, table: &str, wired: &str, radio: &str) -> Result<String> {
        let mut text = format!("add table netdev {table} {{ flags owner; }}\n");
        let devices = [(Side::WIRED, "wired", wired), (Side::RADIO, "radio", radio)];
        for (side, chain, device) in devices {
            if device.contains(['"', '\n', ' ']) {
                bail!("{device:?} is no name of a device");
            }
            text += &format!(
                "add chain netdev {table} {chain} {{ type filter hook ingress device \"{device}\" \
                 priority -500; policy accept; }}\n\
                 add rule netdev {table} {chain} {} drop\n",
                self.expression(side)
            );
        }
        Ok(text)
    }

    fn expression(&self, side: Side) -> String {
        let v4 = self.mobile.network.is_ipv4();
        let (family, rest) = if v4 {
            // A header without options; fragment flags and offset, but for "don't fragment".
            ("ip", "ip protocol tcp ip hdrlength 5 ip frag-off & 0x3fff == 0 ip ttl > 1")
        } else {
            ("ip6", "ip6 nexthdr tcp ip6 hoplimit > 1")
        };
        let (mac, inner, outer) = match side {
            Side::RADIO => (self.radio, "saddr", "daddr"),
            _ => (self.wired, "daddr", "saddr"),
        };
        let mobile = self.mobile;
        let own: Vec<String> = self
            .own
            .iter()
            .filter(|address| address.is_ipv4() == v4)
            .map(IpAddr::to_string)
            .collect();
        let own = match own.is_empty() {
            true => String::new(),
            false => format!(" {family} daddr != {{ {} }}", own.join(", ")),
        };
        format!(
            "ether daddr {mac} {family} {inner} {mobile} {family} {outer} != {mobile}{own} {rest}"
        )
    }
}

const TCP: u8 = wire::ip::Protocol::TCP.0;
/// The first byte of an IPv4 header of five words: one without options.
const PLAIN_V4: u8 = 0x45;

fn seen_v4(datagram: &[u8]) -> Option<Seen> {
    let header = datagram.first_chunk::<20>()?;
    let fragment = u16::from_be_bytes([header[6], header[7]]) & 0x3fff;
    let (hop_limit, protocol) = (header[8], header[9]);
    let [.., a, b, c, d, e, f, g, h] = *header;
    let taken = header[0] == PLAIN_V4 && protocol == TCP && fragment == 0 && hop_limit > 1;
    taken.then(|| Seen { source: [a, b, c, d].into(), destination: [e, f, g, h].into() })
}

fn seen_v6(datagram: &[u8]) -> Option<Seen> {
    let header = datagram.first_chunk::<40>()?;
    let (next_header, hop_limit) = (header[6], header[7]);
    let address = |at: usize| {
        let octets: [u8; 16] = header[at..at + 16].try_into().expect("sixteen of forty bytes");
        IpAddr::from(octets)
    };
    let taken = next_header == TCP && hop_limit > 1;
    taken.then(|| Seen { source: address(8), destination: address(24) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selection(mobile: &str) -> Selection {
        Selection {
            mobile: mobile.parse().expect("a prefix"),
            own: vec![IpAddr::from([10, 2, 0, 254])],
            wired: Mac([2, 0, 0, 0, 0, 1]),
            radio: Mac([2, 0, 0, 0, 0, 2]),
        }
    }

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
        let text = selection("10.2.0.0/24").table("t", "w0", "r0").expect("device names");
        let rules: Vec<&str> = text.lines().filter(|line| line.starts_with("add rule")).collect();
        assert_eq!(
            rules[0],
            "add rule netdev t wired ether daddr 02:00:00:00:00:01 ip daddr 10.2.0.0/24 \
             ip saddr != 10.2.0.0/24 ip daddr != { 10.2.0.254 } \
             ip protocol tcp ip hdrlength 5 ip frag-off & 0x3fff == 0 ip ttl > 1 drop"
        );
        assert!(rules[1].contains("netdev t radio ether daddr 02:00:00:00:00:02 ip saddr 10.2."));
        let v6 = selection("fd00::/64").table("t", "w0", "r0").expect("device names");
        assert!(v6.contains("ip6 daddr fd00::/64 ip6 saddr != fd00::/64 ip6 nexthdr tcp"));
        assert!(selection("10.2.0.0/24").table("t", "w0\"; flush", "r0").is_err());
    }

    /// An untagged frame with a TCP datagram of the version.
    fn frame(from: &str, to: &str, mac: Mac) -> Vec<u8> {
        let ip = |text: &str| text.parse::<IpAddr>().expect("an address");
        let header = wire::ip::Header::new(ip(from), ip(to), wire::ip::Protocol::TCP);
        let mut bytes = [&mac.0[..], &[0; 6]].concat();
        bytes.extend(if header.source.is_ipv4() { [0x08, 0x00] } else { [0x86, 0xdd] });
        let tcp = wire::tcp::Header::new(1, 2);
        wire::datagram::emit_tcp(&header, &tcp, &[], &mut bytes).expect("it fits");
        bytes
    }

    #[test]
    fn it_takes_what_goes_between_the_mobile_hosts_and_the_world() {
        for (mobile, inner, outer) in
            [("10.2.0.0/24", "10.2.0.9", "10.1.0.9"), ("fd00::/64", "fd00::9", "fd01::9")]
        {
            let selection = selection(mobile);
            let (wired, radio) = (selection.wired, selection.radio);
            assert!(selection.takes(Side::WIRED, &frame(outer, inner, wired)));
            assert!(selection.takes(Side::RADIO, &frame(inner, outer, radio)));
            let others = [
                (Side::WIRED, frame(inner, outer, wired)),
                (Side::RADIO, frame(outer, inner, radio)),
                (Side::RADIO, frame(inner, inner, radio)),
                (Side::WIRED, frame(outer, inner, radio)),
            ];
            for (side, frame) in others {
                assert!(!selection.takes(side, &frame), "{side:?} {frame:?}");
            }
        }
        // Six words of header: the sixth is of options, into which routers may have to write.
        let mut with_options = frame("10.1.0.9", "10.2.0.9", Mac([2, 0, 0, 0, 0, 1]));
        with_options[14] = 0x46;
        assert!(!selection("10.2.0.0/24").takes(Side::WIRED, &with_options));
        let own = frame("10.1.0.9", "10.2.0.254", Mac([2, 0, 0, 0, 0, 1]));
        assert!(!selection("10.2.0.0/24").takes(Side::WIRED, &own));
    }
}
