//! The address of a client behind proxies. Only proxies of the settings are trusted, and of the
//! header that they pass on only the entries that they added themselves: it is read from its end.

use std::net::IpAddr;
use std::sync::Arc;

use axum::http::HeaderMap;
use ipnet::IpNet;

use super::header_lists::{entries, split, split_from_end};
use crate::config::ForwardedHeader;

/// Trusted proxies.
pub(crate) struct Proxies {
    networks: Vec<IpNet>,
    header: ForwardedHeader,
}

impl Proxies {
    /// Those of the settings.
    pub(crate) fn new(networks: Vec<IpNet>, header: ForwardedHeader) -> Self {
        Proxies { networks, header }
    }

    /// The address of the client behind a peer: the last one in the header that is not of a trusted
    /// proxy. Entries before it may be of any origin. If an entry is not an address, the one after
    /// it is all that is known.
    pub(crate) fn client(&self, peer: Arc<str>, headers: &HeaderMap) -> Arc<str> {
        if self.networks.is_empty() {
            return peer;
        }
        let Some(mut known) = peer.parse().ok().filter(|address| self.trusts(*address)) else {
            return peer;
        };
        let name = match self.header {
            ForwardedHeader::XForwardedFor => "x-forwarded-for",
            ForwardedHeader::Forwarded => "forwarded",
        };
        // Whatever a client wrote, a proxy added the entries after it.
        for line in headers.get_all(name).iter().rev() {
            let is_over = match self.header {
                ForwardedHeader::XForwardedFor => self.follow(&mut known, entries(line).rev()),
                ForwardedHeader::Forwarded => {
                    let nodes = split_from_end(line.as_bytes(), b',').map(node);
                    self.follow(&mut known, nodes)
                }
            };
            if is_over {
                break;
            }
        }
        known.to_string().into()
    }

    /// Follows nodes, the last one first, as far as trusted proxies name them; returns whether to
    /// stop.
    fn follow<'h>(&self, known: &mut IpAddr, nodes: impl Iterator<Item = &'h [u8]>) -> bool {
        for node in nodes {
            let Some(address) = address(node) else { return true };
            *known = address;
            if !self.trusts(address) {
                return true;
            }
        }
        false
    }

    fn trusts(&self, address: IpAddr) -> bool {
        self.networks.iter().any(|network| network.contains(&address))
    }
}

/// The node that an entry of the standard header is for; empty if it names none.
fn node(entry: &[u8]) -> &[u8] {
    let mut pairs = split(entry, b';').filter_map(|pair| {
        let at = pair.iter().position(|byte| *byte == b'=')?;
        let (name, value) = (pair[..at].trim_ascii(), &pair[at + 1..]);
        name.eq_ignore_ascii_case(b"for").then_some(value.trim_ascii())
    });
    let value = pairs.next().unwrap_or_default();
    let quoted = value.strip_prefix(b"\"").and_then(|value| value.strip_suffix(b"\""));
    quoted.unwrap_or(value)
}

/// The address of a node; a port after it is left out.
fn address(node: &[u8]) -> Option<IpAddr> {
    let node = std::str::from_utf8(node).ok()?;
    let bare = match node.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?.0,
        None if node.matches(':').count() == 1 => node.split_once(':')?.0,
        None => node,
    };
    bare.parse::<IpAddr>().ok().map(|address| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn client(header: ForwardedHeader, peer: &str, lines: &[&str]) -> String {
        let networks = ["10.0.0.0/8", "2001:db8::/32"].map(|text| text.parse().expect("network"));
        let mut headers = HeaderMap::new();
        let name = match header {
            ForwardedHeader::XForwardedFor => "x-forwarded-for",
            ForwardedHeader::Forwarded => "forwarded",
        };
        for line in lines {
            // As one byte each: a value need not be text.
            let byte = |sign: char| u8::try_from(u32::from(sign)).expect("one byte");
            let bytes: Vec<u8> = line.chars().map(byte).collect();
            headers.append(name, HeaderValue::from_bytes(&bytes).expect("a value"));
        }
        Proxies::new(networks.into(), header).client(peer.into(), &headers).to_string()
    }

    #[test]
    fn only_what_a_trusted_proxy_added_is_believed() {
        let of = |peer, lines: &[&str]| client(ForwardedHeader::XForwardedFor, peer, lines);
        assert_eq!(of("198.51.100.1", &["203.0.113.9"]), "198.51.100.1", "no proxy of ours");
        assert_eq!(of("10.0.0.1", &["203.0.113.9"]), "203.0.113.9");
        assert_eq!(of("10.0.0.1", &["1.1.1.1, 203.0.113.9, 10.0.0.2"]), "203.0.113.9");
        assert_eq!(of("10.0.0.1", &["1.1.1.1", "203.0.113.9"]), "203.0.113.9", "lines are one");
        assert_eq!(of("10.0.0.1", &["203.0.113.9:443"]), "203.0.113.9");
        assert_eq!(of("10.0.0.1", &["203.0.113.9, nobody"]), "10.0.0.1", "no address");
        assert_eq!(of("10.0.0.1", &[]), "10.0.0.1");
        assert_eq!(of("10.0.0.1", &["\u{ff}, 203.0.113.9"]), "203.0.113.9", "a client's byte");
        assert_eq!(of("10.0.0.1", &["\u{ff}", "\u{80},203.0.113.9,10.0.0.2"]), "203.0.113.9");
        assert_eq!(of("10.0.0.1", &["203.0.113.9, \u{ff}"]), "10.0.0.1", "no address");
        assert_eq!(of("10.0.0.1", &["203.0.113.9,"]), "10.0.0.1", "nor is nothing");
        assert_eq!(of("10.0.0.1", &["10.0.0.9, 10.0.0.8"]), "10.0.0.9", "all are ours");
    }

    #[test]
    fn the_standard_header_is_read_where_the_settings_say_so_and_the_other_then_is_not() {
        let of = |lines: &[&str]| client(ForwardedHeader::Forwarded, "10.0.0.1", lines);
        assert_eq!(of(&["for=1.1.1.1, for=203.0.113.9;proto=https"]), "203.0.113.9");
        assert_eq!(of(&["for=\"[2001:db9::7]:99\""]), "2001:db9::7");
        assert_eq!(of(&["For=\"[2001:db8::7]\", by=10.0.0.3"]), "10.0.0.1");
        assert_eq!(of(&["for=_hidden"]), "10.0.0.1");
        assert_eq!(of(&["for=\u{ff}, for=203.0.113.9"]), "203.0.113.9");
        assert_eq!(of(&["for=\"x, for=203.0.113.9"]), "203.0.113.9", "a quotation left open");
        assert_eq!(of(&["x=\", for=\"[2001:db9::7]\""]), "2001:db9::7");
        assert_eq!(of(&["for=203.0.113.9;by=\"a, b;for=1.1.1.1\""]), "203.0.113.9");
        let other = client(ForwardedHeader::XForwardedFor, "10.0.0.1", &["for=203.0.113.9"]);
        assert_eq!(other, "10.0.0.1");
    }
}
