//! Bounds of the HTTP server, the names under which it may be called, and its certificate.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use ipnet::IpNet;
use serde::Deserializer;
use serde::de::{self, Visitor};

use super::bounds::{Checked, wrong};
use super::{HttpSettings, TlsSettings, layer};

/// How often the files of the certificate are read.
const TLS_RELOAD_PERIOD: Duration = Duration::from_secs(10);
/// Each request may be compared with every name.
const HOSTS_MAX: usize = 100;
/// Each request may be compared with every network.
const PROXIES_MAX: usize = 100;
/// The longest name of the DNS.
const HOST_CHARS_MAX: usize = 253;

/// The HTTP server's names, proxies and certificate, and its bounds.
pub(super) fn http(http: &layer::Http) -> Checked<HttpSettings> {
    Ok(HttpSettings {
        hosts: hosts(&http.hosts)?,
        trusted_proxies: trusted_proxies(&http.trusted_proxies)?,
        forwarded_header: http.forwarded_header,
        tls: tls(http)?,
        connections_max: http.connections_max,
        connections_per_peer_max: http.connections_per_peer_max,
        drain_delay: http.drain_delay.0,
    })
}

/// The networks of proxies, or their single addresses.
fn trusted_proxies(written: &[String]) -> Checked<Vec<IpNet>> {
    if written.len() > PROXIES_MAX {
        return wrong("http.trusted_proxies", format!("lists more than {PROXIES_MAX} networks"));
    }
    let network = |text: &String| {
        let single = text.parse().map(|address: IpAddr| IpNet::from(address));
        match single.or_else(|_| text.parse()) {
            Ok(network) if network.prefix_len() > 0 => Ok(network.trunc()),
            Ok(_) => wrong(
                "http.trusted_proxies",
                format!("{text:?} is every address: anybody could claim any; list the proxies"),
            ),
            Err(_) => wrong(
                "http.trusted_proxies",
                format!(
                    "{text:?} is no address and no network; write \"192.0.2.7\" or \
                         \"10.0.0.0/8\""
                ),
            ),
        }
    };
    written.iter().map(network).collect()
}

/// The certificate and its key: both, or none.
fn tls(http: &layer::Http) -> Checked<Option<TlsSettings>> {
    match (http.tls_certificate.clone(), http.tls_key.clone()) {
        (Some(certificate), Some(key)) => {
            Ok(Some(TlsSettings { certificate, key, reload_period: TLS_RELOAD_PERIOD }))
        }
        (None, None) => Ok(None),
        (Some(_), None) => wrong(
            "http.tls_key",
            "is missing, and http.tls_certificate is set; name the file of its private key".into(),
        ),
        (None, Some(_)) => wrong(
            "http.tls_certificate",
            "is missing, and http.tls_key is set; name the file of the key's certificate".into(),
        ),
    }
}

/// The names under which the service may be called, in addition to those of loopback.
fn hosts(written: &[String]) -> Checked<Vec<String>> {
    if written.len() > HOSTS_MAX {
        return wrong("http.hosts", format!("lists more than {HOSTS_MAX} names"));
    }
    for name in written {
        let inner = name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
        let is_address = inner.is_some_and(|inner| inner.parse::<std::net::Ipv6Addr>().is_ok());
        let is_name = (1..=HOST_CHARS_MAX).contains(&name.len())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte));
        if !is_address && !is_name {
            return wrong(
                "http.hosts",
                format!(
                    "{name:?} is no name of a host; write it as browsers send it, without scheme \
                     and port: \"numbers.example.com\", \"192.0.2.7\" or \"[2001:db8::1]\""
                ),
            );
        }
    }
    Ok(written.to_vec())
}

/// Reads an address with its port; a refusal shows one.
pub(super) fn address<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SocketAddr, D::Error> {
    struct Address;

    impl Visitor<'_> for Address {
        type Value = SocketAddr;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an IP address and a port, such as \"127.0.0.1:8080\"")
        }

        fn visit_str<E: de::Error>(self, text: &str) -> Result<SocketAddr, E> {
            text.parse().map_err(|_| E::invalid_value(de::Unexpected::Str(text), &self))
        }
    }

    deserializer.deserialize_str(Address)
}

/// Reads an address that need not be set.
pub(super) fn some_address<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<SocketAddr>, D::Error> {
    address(deserializer).map(Some)
}
