//! The address of an issuer's keys, asked over HTTP: one request, one bounded answer, in bounded
//! time. Where it leads elsewhere, nobody goes.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use hyper::client::conn::http1;
use hyper::header::{ACCEPT, HOST, USER_AGENT};
use hyper::http::uri::Scheme;
use hyper::{Request, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use rustls::crypto::ring;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

/// Largest answer that is read; sets of keys have a few KiB.
pub(super) const ANSWER_BYTES_MAX: usize = 256 * 1_024;

/// No answer.
#[derive(Debug, Error)]
pub(super) enum AddressError {
    /// It takes too long.
    #[error("no answer within {0:?}")]
    TooLate(Duration),
    /// It cannot be reached.
    #[error("cannot be reached: {0}")]
    Unreached(#[from] std::io::Error),
    /// No HTTP.
    #[error("answers no HTTP: {0}")]
    NoHttp(#[from] hyper::Error),
    /// An answer that is none.
    #[error("answers with status {0}; redirects are not followed: write the address they lead to")]
    Status(StatusCode),
    /// Too long.
    #[error("answers with more than {ANSWER_BYTES_MAX} bytes, or ends in the middle")]
    Body,
}

/// Where to ask.
pub(super) struct Address {
    uri: Uri,
    host: String,
    /// Whom to trust; nothing for plain HTTP, which is on loopback alone.
    tls: Option<TlsConnector>,
}

impl Address {
    /// An address; authorities are the system's, or those in the file that `SSL_CERT_FILE` names.
    pub(super) fn new(uri: &Uri) -> Self {
        let is_encrypted = uri.scheme() != Some(&Scheme::HTTP);
        let tls = is_encrypted.then(|| {
            let mut authorities = RootCertStore::empty();
            let found = rustls_native_certs::load_native_certs();
            authorities.add_parsable_certificates(found.certs);
            connector(authorities)
        });
        let host = uri.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        Address { uri: uri.clone(), host, tls }
    }

    /// What it answers. Safe to drop.
    pub(super) async fn ask(&self, limit: Duration) -> Result<Vec<u8>, AddressError> {
        let asked = timeout(limit, self.connect_and_ask()).await;
        asked.map_err(|_| AddressError::TooLate(limit))?
    }

    async fn connect_and_ask(&self) -> Result<Vec<u8>, AddressError> {
        let port = self.uri.port_u16().unwrap_or(if self.tls.is_some() { 443 } else { 80 });
        let stream = TcpStream::connect((self.host.as_str(), port)).await?;
        match &self.tls {
            None => self.exchange(stream).await,
            Some(connector) => {
                let name = ServerName::try_from(self.host.clone());
                let name = name.map_err(std::io::Error::other)?;
                self.exchange(connector.connect(name, stream).await?).await
            }
        }
    }

    async fn exchange<S>(&self, stream: S) -> Result<Vec<u8>, AddressError>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        // Ends with this call, however that ends.
        let mut connections = JoinSet::new();
        connections.spawn(connection);
        let path = self.uri.path_and_query().map_or("/", |path| path.as_str());
        let host = self.uri.authority().map_or("", |authority| authority.as_str());
        let request = Request::get(path)
            .header(HOST, host)
            .header(ACCEPT, "application/json")
            .header(USER_AGENT, "numerator")
            .body(Body::empty())
            .map_err(std::io::Error::other)?;
        let answer = sender.send_request(request).await?;
        if answer.status() != StatusCode::OK {
            return Err(AddressError::Status(answer.status()));
        }
        let bytes = to_bytes(Body::new(answer.into_body()), ANSWER_BYTES_MAX).await;
        Ok(bytes.map_err(|_| AddressError::Body)?.to_vec())
    }
}

/// Trusts these authorities.
fn connector(authorities: RootCertStore) -> TlsConnector {
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("the provider has the default versions")
        .with_root_certificates(authorities)
        .with_no_client_auth();
    TlsConnector::from(Arc::new(config))
}

#[cfg(test)]
mod tests {
    use rustls::ServerConfig;
    use rustls::pki_types::PrivatePkcs8KeyDer;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;
    use tokio_rustls::TlsAcceptor;

    use super::*;

    #[tokio::test]
    async fn an_encrypted_address_is_asked_only_where_its_certificate_is_trusted() {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("made");
        let certificate = made.cert.der().clone();
        let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()).into();
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(vec![certificate.clone()], key)
            .expect("a pair");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let Ok(mut stream) = acceptor.accept(stream).await else { continue };
                let mut asked = Vec::new();
                while !asked.ends_with(b"\r\n\r\n") {
                    asked.push(stream.read_u8().await.expect("a request"));
                }
                let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}";
                stream.write_all(answer).await.expect("written");
            }
        });
        let uri = format!("https://localhost:{port}/jwks").parse().expect("an address");
        let mut address = Address::new(&uri);
        let limit = Duration::from_secs(60);
        let refused = address.ask(limit).await.expect_err("nobody knows that certificate");
        assert!(matches!(refused, AddressError::Unreached(_)), "{refused}");
        let mut authorities = RootCertStore::empty();
        authorities.add(certificate).expect("a certificate");
        address.tls = Some(connector(authorities));
        assert_eq!(address.ask(limit).await.expect("an answer"), b"{}");
    }
}
