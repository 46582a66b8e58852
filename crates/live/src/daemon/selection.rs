//! Which packets the daemon takes from the kernel: said once, for the filter in the kernel and for
//! the daemon itself, which must agree to the packet.
//!
//! It takes unfragmented TCP between the mobile prefix and the world beyond, addressed to the base
//! station's device, not to the base station itself, and with hops left: whatever a router has to
//! answer itself (expired, fragments to pass on as they are) stays with the kernel. VLAN tags are
//! not looked into: name the VLAN's own device.

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
            // 5 words of header and more; fragment flags and offset, but for "don't fragment".
            ("ip", "ip protocol tcp ip frag-off & 0x3fff == 0 ip ttl > 1")
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

fn seen_v4(datagram: &[u8]) -> Option<Seen> {
    let header = datagram.first_chunk::<20>()?;
    let fragment = u16::from_be_bytes([header[6], header[7]]) & 0x3fff;
    let (hop_limit, protocol) = (header[8], header[9]);
    let [.., a, b, c, d, e, f, g, h] = *header;
    let taken = protocol == TCP && fragment == 0 && hop_limit > 1;
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
