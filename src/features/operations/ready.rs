//! `numerator ready`: whether the service at `http.health_listen`, or if there is none at
//! `http.listen`, can issue numbers, for machines that have no other program to query it. Opens no
//! store.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use axum::body::{Body, to_bytes};
use axum::http::Request;
use axum::http::header::HOST;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::config::Settings;
use crate::terminal::output::print;

/// Longest wait for the answer; the caller has a time-out as well.
const LIMIT: Duration = Duration::from_secs(4);
/// Largest answer that is read, in bytes.
const ANSWER_BYTES_MAX: usize = 64 * 1_024;

/// Queries the service, and prints the answer.
///
/// # Errors
/// No answer, or the answer that no number can be issued.
pub async fn run(settings: &Settings) -> anyhow::Result<()> {
    let asks_plainly = settings.health_listen.is_some() || settings.http.tls.is_none();
    ensure!(
        asks_plainly,
        "http.listen answers under TLS alone (http.tls_certificate), and this command asks in \
         plain HTTP; set http.health_listen"
    );
    let address = reachable(settings.health_listen.unwrap_or(settings.http_listen));
    let asked = timeout(LIMIT, ask(address)).await;
    let (is_ready, text) = asked
        .with_context(|| format!("{address} does not answer within {LIMIT:?}"))?
        .with_context(|| format!("{address} does not answer"))?;
    if !is_ready {
        bail!("{address} cannot issue numbers: {text}");
    }
    print([text])?;
    Ok(())
}

/// The address at which a listening service is reached from the same machine.
fn reachable(listen: SocketAddr) -> SocketAddr {
    let ip = match listen.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, listen.port())
}

/// Whether the service is ready, and its answer.
async fn ask(address: SocketAddr) -> anyhow::Result<(bool, String)> {
    let stream = TcpStream::connect(address).await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    // Ends with its sender.
    tokio::spawn(connection);
    let request = Request::get("/readyz").header(HOST, "localhost").body(Body::empty())?;
    let answer = sender.send_request(request).await?;
    let is_ready = answer.status().is_success();
    let text = to_bytes(Body::new(answer.into_body()), ANSWER_BYTES_MAX).await?;
    Ok((is_ready, String::from_utf8_lossy(&text).into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_that_listens_everywhere_is_asked_on_loopback() {
        for (listen, asked) in [
            ("0.0.0.0:8080", "127.0.0.1:8080"),
            ("[::]:8080", "[::1]:8080"),
            ("192.0.2.7:9", "192.0.2.7:9"),
        ] {
            let listen = listen.parse().expect("an address");
            assert_eq!(reachable(listen).to_string(), asked);
        }
    }
}
