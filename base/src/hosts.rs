//! Which hosts are this machine itself: what is said to them, nobody on a network hears.

use std::net::IpAddr;

/// Whether a host, as a URL names it, is this machine: `localhost`, or an address of its loopback.
#[must_use]
pub fn is_this_machine(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let is_loopback = |address: IpAddr| address.is_loopback();
    bare.eq_ignore_ascii_case("localhost") || bare.parse().is_ok_and(is_loopback)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_is_this_machine() {
        for host in ["localhost", "LOCALHOST", "127.0.0.1", "127.9.9.9", "::1", "[::1]"] {
            assert!(is_this_machine(host), "{host}");
        }
        for host in ["", "redis", "localhost.example", "0.0.0.0", "::", "10.0.0.1", "127.1"] {
            assert!(!is_this_machine(host), "{host}");
        }
    }
}
