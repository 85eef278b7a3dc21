//! The section `http` as it is written.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::issuing;
use crate::config::listening::{address, some_address};
use crate::config::{DurationText, ForwardedHeader};

section! {
    /// `http.*`
    Http {
        /// Address and port; another address than loopback needs tokens.
        #[serde(deserialize_with = "address")]
        listen: SocketAddr = SocketAddr::from((Ipv4Addr::LOCALHOST, 8080)),
        /// Where only `/healthz`, `/readyz` and `/metrics` are answered too.
        #[serde(deserialize_with = "some_address")]
        health_listen: Option<SocketAddr> = None,
        /// Names under which the service may be asked, beside those of loopback.
        hosts: Vec<String> = Vec::new(),
        /// Proxies whose word on the address of a client is taken.
        trusted_proxies: Vec<String> = Vec::new(),
        /// The header in which they say it.
        forwarded_header: ForwardedHeader = ForwardedHeader::XForwardedFor,
        /// The certificate to show at `listen`; without one, requests come in plain HTTP.
        tls_certificate: Option<PathBuf> = None,
        /// Its private key.
        tls_key: Option<PathBuf> = None,
        /// How often both files are looked at.
        tls_reload_period: DurationText = DurationText(Duration::from_secs(60)),
        /// Longest time that a request may take, and its body to arrive.
        time_limit: DurationText = DurationText(issuing().time_limit),
        /// Largest body of a request that is no batch.
        body_max_bytes: usize = 65_536,
        /// Largest body of a batch.
        batch_body_max_bytes: usize = 1_048_576,
        /// All bodies together that arrive or are handled.
        bodies_max_bytes: usize = 67_108_864,
        /// All answers together that wait for their readers.
        answers_max_bytes: usize = 67_108_864,
        /// How long a connection may be idle, or take to send a header.
        header_read_timeout: DurationText = DurationText(Duration::from_secs(10)),
        /// Connections served at once; more wait to be accepted.
        connections_max: usize = 10_000,
        /// Connections of one address; more are closed at once.
        connections_per_peer_max: usize = 2_000,
        /// After this long an answer is its connection's last.
        connection_age_max: DurationText = DurationText(Duration::from_secs(600)),
        /// How long a process that is asked to stop still takes requests.
        drain_delay: DurationText = DurationText(Duration::ZERO),
        /// How long a client may read nothing of its answer.
        write_timeout: DurationText = DurationText(Duration::from_secs(30)),
        /// A request that takes longer gets a warning of its own.
        slow_after: DurationText = DurationText(Duration::from_secs(1)),
    }
}
