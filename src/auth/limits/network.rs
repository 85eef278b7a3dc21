//! What counts as one address, where connections or requests are counted by it.

use std::net::{IpAddr, Ipv6Addr};

/// Bits of an IPv6 address that identify its network: a machine has all addresses of one.
const NETWORK_BITS: u32 = 64;

/// What counts as one address with this one: itself, or its network in IPv6.
#[must_use]
pub fn network_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => {
            let mask = u128::MAX << (Ipv6Addr::BITS - NETWORK_BITS);
            Ipv6Addr::from_bits(address.to_bits() & mask).into()
        }
    }
}
