//! ARP for IPv4 over Ethernet (RFC 826), requests and replies.

use crate::ethernet::{EtherType, Mac};
use crate::{Error, bytes::be16};
use core::net::Ipv4Addr;

/// What an ARP packet asks or says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Who has the target address?
    Request,
    /// The sender's addresses, as asked for.
    Reply,
}

/// An ARP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Request or reply.
    pub operation: Operation,
    /// MAC address of the sender.
    pub sender_mac: Mac,
    /// IPv4 address of the sender.
    pub sender: Ipv4Addr,
    /// MAC address of the target; without meaning in a request.
    pub target_mac: Mac,
    /// IPv4 address of the target.
    pub target: Ipv4Addr,
}

impl Packet {
    /// Length on the wire, in bytes.
    pub const BYTES: usize = 28;
    /// Hardware type, protocol type and their address lengths: Ethernet and IPv4.
    const ETHERNET_AND_IPV4: [u8; 6] = [0, 1, 8, 0, 6, 4];

    /// Reads the packet at the start of `bytes`; what follows is the link's padding.
    ///
    /// # Errors
    /// [`Error::Truncated`] if it is cut, [`Error::Unsupported`] if it is not about IPv4 over
    /// Ethernet or neither request nor reply.
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        let packet = bytes
            .first_chunk::<{ Self::BYTES }>()
            .ok_or(Error::Truncated { need: Self::BYTES, have: bytes.len() })?;
        let fields = [
            ("ARP hardware type", u32::from(be16(packet, 0)), 1),
            ("ARP protocol type", u32::from(be16(packet, 2)), u32::from(EtherType::IPV4.0)),
            ("ARP hardware address length", u32::from(packet[4]), 6),
            ("ARP protocol address length", u32::from(packet[5]), 4),
        ];
        for (field, value, expected) in fields {
            if value != expected {
                return Err(Error::Unsupported { field, value });
            }
        }
        let operation = match be16(packet, 6) {
            1 => Operation::Request,
            2 => Operation::Reply,
            other => {
                return Err(Error::Unsupported { field: "ARP operation", value: u32::from(other) });
            }
        };
        let (sender_mac, sender) = addresses(packet, 8);
        let (target_mac, target) = addresses(packet, 18);
        Ok(Packet { operation, sender_mac, sender, target_mac, target })
    }

    /// Appends the packet, without padding.
    pub fn emit(&self, into: &mut Vec<u8>) {
        let operation: u16 = match self.operation {
            Operation::Request => 1,
            Operation::Reply => 2,
        };
        into.extend_from_slice(&Self::ETHERNET_AND_IPV4);
        into.extend_from_slice(&operation.to_be_bytes());
        into.extend_from_slice(&self.sender_mac.0);
        into.extend_from_slice(&self.sender.octets());
        into.extend_from_slice(&self.target_mac.0);
        into.extend_from_slice(&self.target.octets());
    }
}

/// The pair of addresses at `at`.
fn addresses(packet: &[u8; Packet::BYTES], at: usize) -> (Mac, Ipv4Addr) {
    let mut mac = [0; 6];
    let mut address = [0; 4];
    mac.copy_from_slice(&packet[at..at + 6]);
    address.copy_from_slice(&packet[at + 6..at + 10]);
    (Mac(mac), Ipv4Addr::from(address))
}
