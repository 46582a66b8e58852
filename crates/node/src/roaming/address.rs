//! Who has which address in a network with cells. Hosts have those of their pair
//! ([`crate::cell`]); a mobile host's is its home address.

use core::net::{IpAddr, Ipv4Addr};

/// The router's own address, which is the home agent's.
pub const HOME_AGENT: Ipv4Addr = Ipv4Addr::new(172, 31, 255, 254);
/// Base station 0 has the address after this one.
const STATIONS: u32 = Ipv4Addr::new(172, 16, 0, 0).to_bits();
/// Fixed hosts are below, mobile hosts from here on (`crate::cell`).
const MOBILES: u32 = Ipv4Addr::new(10, 128, 0, 0).to_bits();
const MOBILES_END: u32 = Ipv4Addr::new(10, 255, 255, 255).to_bits();
/// The group of mobile host 0 (MCAST-2); organization-local scope (RFC 2365).
const GROUPS: u32 = Ipv4Addr::new(239, 192, 0, 0).to_bits();
/// Base stations at most: [`sansio::Side`] tells them apart at the router, which has another one.
pub const STATIONS_MAX: u16 = u16::MAX;
/// Mobile hosts among cells at most: as many as there are groups of organization-local scope
/// (RFC 2365, 239.192.0.0/14).
pub const MOBILES_MAX: u32 = 1 << 18;

/// The address of a base station.
pub fn station(number: u16) -> Ipv4Addr {
    Ipv4Addr::from_bits(STATIONS + u32::from(number) + 1)
}

/// Which base station has this address.
pub fn station_number(address: IpAddr) -> Option<u16> {
    let IpAddr::V4(address) = address else { return None };
    let number = address.to_bits().checked_sub(STATIONS + 1)?;
    u16::try_from(number).ok().filter(|number| *number < STATIONS_MAX)
}

/// The home address of a mobile host.
pub fn mobile(number: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(MOBILES + number + 1)
}

/// Which mobile host has this home address.
pub fn mobile_number(address: IpAddr) -> Option<u32> {
    let IpAddr::V4(address) = address else { return None };
    let bits = address.to_bits();
    (MOBILES < bits && bits <= MOBILES_END).then(|| bits - MOBILES - 1)
}

/// The multicast group of a mobile host.
pub fn group(number: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(GROUPS + number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::mobile_address;

    #[test]
    fn an_address_tells_whose_it_is() {
        for number in [0, 1, MOBILES_MAX - 1] {
            assert_eq!(mobile_address(number), IpAddr::V4(mobile(number)));
            assert_eq!(mobile_number(mobile_address(number)), Some(number));
            assert_eq!(station_number(mobile_address(number)), None);
            assert_eq!(group(number).octets()[..2], [239, 192 + (number >> 16) as u8]);
        }
        for number in [0, 1, 255, STATIONS_MAX - 1] {
            assert_eq!(station_number(station(number).into()), Some(number));
            assert_eq!(mobile_number(station(number).into()), None);
        }
        assert_eq!(station_number(HOME_AGENT.into()), None);
    }
}
