//! Which addresses are asked at all, and the resolver that leaves out the others. The DNS of a name
//! may answer with this machine, with its link, or with the address where a cloud serves the
//! machine's secrets: none of them is a partner, whatever its name. Private networks are asked:
//! systems that give numbers run there.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tokio::net::lookup_host;
use tokio::sync::Semaphore;

use super::address::AddressError;

/// Addresses of one name that are considered.
const ADDRESSES_MAX: usize = 16;
/// Names that are looked up at once: a look-up of the system cannot be ended, and occupies a thread
/// until it ends.
const LOOKUPS_MAX: usize = 16;
static LOOKUPS: Semaphore = Semaphore::const_new(LOOKUPS_MAX);

/// Metadata services of clouds outside of the link-local addresses that most use.
const METADATA: [IpAddr; 5] = [
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
    IpAddr::V6(Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254)),
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    IpAddr::V4(Ipv4Addr::new(168, 63, 129, 16)),
    IpAddr::V4(Ipv4Addr::new(192, 0, 0, 192)),
];

/// Whether an address may be asked, where the settings name this machine (`is_local`) or another
/// one.
pub(super) fn may_be_asked(ip: IpAddr, is_local: bool) -> bool {
    let ip = meant(ip);
    let is_nobody = match ip {
        IpAddr::V4(ip) => {
            // 0.0.0.0/8 is this machine to some systems; from 240.0.0.0 on nothing is assigned.
            ip.octets()[0] == 0 || ip.is_link_local() || ip.is_multicast() || ip.octets()[0] >= 240
        }
        IpAddr::V6(ip) => ip.is_unspecified() || ip.is_unicast_link_local() || ip.is_multicast(),
    };
    !is_nobody && !METADATA.contains(&ip) && ip.is_loopback() == is_local
}

/// The names of the system.
pub(super) struct SystemNames;

impl Resolve for SystemNames {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let permit = LOOKUPS.acquire().await?;
            // A separate task: a request that is dropped must not free the permit of a thread that
            // is still looking.
            let looking = tokio::spawn(async move {
                // The client sets the port.
                let found = lookup_host((name.as_str(), 0)).await;
                drop(permit);
                found.map(|found| found.take(ADDRESSES_MAX).collect::<Vec<_>>())
            });
            Ok(Box::new(looking.await??.into_iter()) as Addrs)
        })
    }
}

/// Those of the addresses of a name that may be asked.
pub(super) struct Judged<R> {
    /// The resolver whose answers are judged.
    pub(super) names: R,
    /// Whether the settings name this machine.
    pub(super) is_local: bool,
}

impl<R: Resolve> Resolve for Judged<R> {
    fn resolve(&self, name: Name) -> Resolving {
        let (found, is_local) = (self.names.resolve(name), self.is_local);
        Box::pin(async move {
            let is_asked = |address: &SocketAddr| may_be_asked(address.ip(), is_local);
            let (asked, refused): (Vec<_>, Vec<_>) = found.await?.partition(is_asked);
            match refused.first() {
                Some(first) if asked.is_empty() => Err(AddressError::Forbidden(first.ip()).into()),
                _ => Ok(Box::new(asked.into_iter()) as Addrs),
            }
        })
    }
}

/// The address that one of IPv6 carries, where it is a way of writing one of IPv4: mapped,
/// compatible, or by way of NAT64 and 6to4.
fn meant(ip: IpAddr) -> IpAddr {
    let IpAddr::V6(v6) = ip else { return ip };
    let low = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        IpAddr::V4(Ipv4Addr::new(a, b, c, d))
    };
    match v6.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => ip,
        [0, 0, 0, 0, 0, 0 | 0xffff, a, b] => low(a, b),
        [0x64, 0xff9b, 0, 0, 0, 0, a, b] => low(a, b),
        [0x2002, a, b, ..] => low(a, b),
        _ => ip,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partners_are_asked_and_neither_this_machine_nor_its_link_nor_its_cloud() {
        for ip in [
            "192.0.2.7",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.0.9",
            "8.8.8.8",
            "2001:db8::1",
            "fd12::1",
            "::ffff:10.1.2.3",
        ] {
            let ip = ip.parse().expect("an address");
            assert!(may_be_asked(ip, false) && !may_be_asked(ip, true), "{ip}");
        }
        for ip in ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"] {
            let ip = ip.parse().expect("an address");
            assert!(!may_be_asked(ip, false) && may_be_asked(ip, true), "{ip}");
        }
        for ip in [
            "169.254.169.254",
            "169.254.0.1",
            "::ffff:169.254.169.254",
            "::169.254.169.254",
            "64:ff9b::a9fe:a9fe",
            "2002:a9fe:a9fe::1",
            "fe80::1",
            "fd00:ec2::254",
            "fd20:ce::254",
            "100.100.100.200",
            "168.63.129.16",
            "192.0.0.192",
            "0.0.0.0",
            "0.1.2.3",
            "::",
            "224.0.0.1",
            "ff02::1",
            "255.255.255.255",
            "240.0.0.1",
            "::ffff:0.0.0.0",
        ] {
            let ip = ip.parse().expect("an address");
            assert!(!may_be_asked(ip, false) && !may_be_asked(ip, true), "{ip}");
        }
    }
}
