//! Which hosts are this machine itself: traffic to them does not cross a network.

use std::net::{IpAddr, Ipv6Addr};

/// Whether a host, as a URL names it, is this machine: `localhost`, or a loopback address.
#[must_use]
pub fn is_this_machine(host: &str) -> bool {
    match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        Some(address) => address.parse().is_ok_and(|address: Ipv6Addr| address.is_loopback()),
        None => {
            host.eq_ignore_ascii_case("localhost")
                || host.parse().is_ok_and(|address: IpAddr| address.is_loopback())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_is_this_machine() {
        for host in ["localhost", "LOCALHOST", "127.0.0.1", "127.9.9.9", "::1", "[::1]"] {
            assert!(is_this_machine(host), "{host}");
        }
        for host in ["[127.0.0.1]", "[localhost]", "[[::1]]", "[::1", "::1]"] {
            assert!(!is_this_machine(host), "{host}: only an address of IPv6 has brackets");
        }
        for host in ["", "redis", "localhost.example", "0.0.0.0", "::", "10.0.0.1", "127.1"] {
            assert!(!is_this_machine(host), "{host}");
        }
    }
}
