//! The section `http`.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::issuing;
use crate::config::bounds::{millis, secs};
use crate::config::listening::{address, some_address};
use crate::config::{DurationText, ForwardedHeader};

section! {
    /// `http.*`
    Http {
        /// Where `serve` listens; any address but loopback needs tokens: `auth.mode`.
        #[serde(deserialize_with = "address")]
        listen: SocketAddr = SocketAddr::from((Ipv4Addr::LOCALHOST, 8080)),
            "IP address and port";
        /// Where `/healthz`, `/readyz` and `/metrics` are answered instead, in plain HTTP and
        /// without a token: [a listener for probes](#a-listener-for-probes).
        #[serde(deserialize_with = "some_address")]
        health_listen: Option<SocketAddr> = None, "IP address and port",
            absent "none: at `http.listen`", like "" "\"127.0.0.1:9090\"";
        /// Names that the service answers to in addition to those of loopback:
        /// [names](#names-of-the-service).
        hosts: Vec<String> = Vec::new(),
            "at most 100 names or addresses of at most 253 characters, without scheme and port",
            like "a list of names" "[\"numbers.example.com\"]";
        /// Proxies in front of the service whose header gives the client's address in the journal,
        /// the log and the limits. A proxy must add to the header, not pass on what a client wrote.
        trusted_proxies: Vec<String> = Vec::new(),
            "at most 100 addresses or networks, such as `10.0.0.0/8`",
            like "a list of addresses or networks" "[\"10.0.0.0/8\"]";
        /// The header that all of these proxies write. The other is not read, since a client may
        /// have sent it.
        forwarded_header: ForwardedHeader = ForwardedHeader::XForwardedFor,
            "`x-forwarded-for`, `forwarded`";
        /// The certificate that `http.listen` shows, in PEM form: the server's own first, then
        /// those that lead to its authority. [TLS without a proxy](deploy.md#tls-without-a-proxy).
        tls_certificate: Option<PathBuf> = None, "path", absent "none: plain HTTP",
            like "a path in quotes" "\"/etc/numerator/tls.pem\"";
        /// Its private key in PEM form, not encrypted; set with the certificate, or not at all. A
        /// key that every user of the machine may read is warned of.
        tls_key: Option<PathBuf> = None, "path", absent "none: plain HTTP",
            like "a path in quotes" "\"/etc/numerator/tls.key\"";
        /// Longest time that a request may take, including the arrival of its body. A caller may
        /// [wait less](api.md).
        time_limit: DurationText = DurationText(issuing().time_limit), millis(100)..=secs(3_600);
        /// Connections served at once; more wait to be accepted. Each is an open file: `serve`
        /// raises its limit of them as far as it may, and warns where that is too little.
        connections_max: usize = 10_000, 1..=1_000_000;
        /// Connections of one address (of one /64 network of IPv6); more are closed at once, with a
        /// line in the log. A proxy in front is one address.
        connections_per_peer_max: usize = 2_000, 1..=1_000_000;
        /// How long a process that is asked to stop (SIGTERM) still takes requests while `/readyz`
        /// says 503: [a proxy in front](deploy.md#a-proxy-in-front). A second signal ends the wait.
        drain_delay: DurationText = secs(0), millis(0)..=secs(300);
    }
}
