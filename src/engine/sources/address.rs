//! One HTTP request to an address of the settings, for one bounded answer in bounded time: the keys
//! of an issuer, the value of a source.
//!
//! Each request has its own connection: the name is resolved once, the addresses found are judged
//! (`reachable`), and only those that pass are connected to. Redirects and the proxies of the
//! environment are never followed.

use std::error::Error;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use hyper::header::{ACCEPT, HeaderMap, HeaderValue};
use hyper::http::uri::Scheme;
use hyper::{StatusCode, Uri};
use numerator_runtime::hosts::is_this_machine;
use reqwest::dns::Resolve;
use reqwest::redirect::Policy;
use reqwest::{Client, RequestBuilder, Url, retry};
use rustls::crypto::ring;
use rustls::{ClientConfig, RootCertStore};
use thiserror::Error;
use tokio::time::timeout;

use super::reachable::{Judged, SystemNames, may_be_asked};

/// Header lines of an answer that are read; an answer with more is no HTTP.
const HEADERS_MAX: usize = 100;

/// Why there is no answer.
#[derive(Debug, Error)]
pub enum AddressError {
    /// The answer takes longer than the limit.
    #[error("no answer within {0:?}")]
    TooLate(Duration),
    /// The address is no URL.
    #[error("is no URL: {0}")]
    NoUrl(String),
    /// No connection can be made: the name, the network or the certificate fails.
    #[error("cannot be reached: {}", cause(.0))]
    Unreached(reqwest::Error),
    /// None of the addresses of its name may be asked; the first of them.
    #[error("stands for {0}, which is never asked under that name (docs/security.md)")]
    Forbidden(IpAddr),
    /// The connection ends without an HTTP answer.
    #[error("answers no HTTP: {}", cause(.0))]
    NoHttp(reqwest::Error),
    /// The status is not 200.
    #[error("answers with status {0}; redirects are not followed: write the address they lead to")]
    Status(StatusCode),
    /// The body exceeds this limit in bytes, or is incomplete.
    #[error("answers with more than {0} bytes, or ends in the middle")]
    Body(usize),
}

impl From<reqwest::Error> for AddressError {
    fn from(error: reqwest::Error) -> Self {
        let forbidden = causes(&error).find_map(|cause| cause.downcast_ref::<AddressError>());
        match forbidden {
            Some(AddressError::Forbidden(ip)) => AddressError::Forbidden(*ip),
            _ if error.is_connect() => AddressError::Unreached(error),
            _ => AddressError::NoHttp(error),
        }
    }
}

/// An error and what caused it, the outermost first.
fn causes<'e>(error: &'e (dyn Error + 'static)) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    std::iter::successors(Some(error), |error| (*error).source())
}

/// The innermost cause: the outer errors name the address, which the log names already.
fn cause(error: &reqwest::Error) -> &(dyn Error + 'static) {
    causes(error).last().unwrap_or(error)
}

/// Whether an answer from an address can be trusted: the connection is encrypted or stays on this
/// machine, no user and password are sent, and the address is none that is never asked.
#[must_use]
pub fn is_trustworthy(uri: &Uri) -> bool {
    let is_local = is_local(uri);
    let has_user = uri.authority().is_some_and(|authority| authority.as_str().contains('@'));
    let is_safe = match uri.scheme() {
        Some(scheme) if *scheme == Scheme::HTTPS => true,
        Some(scheme) => *scheme == Scheme::HTTP && is_local,
        None => false,
    };
    is_safe && !has_user && url_of(uri, is_local).is_ok()
}

/// Whether the host of an address is this machine.
fn is_local(uri: &Uri) -> bool {
    uri.host().is_some_and(is_this_machine)
}

/// An address as it is asked. The host is judged here where it is an IP address: those are not
/// resolved.
fn url_of(uri: &Uri, is_local: bool) -> Result<Url, AddressError> {
    let url =
        Url::parse(&uri.to_string()).map_err(|error| AddressError::NoUrl(error.to_string()))?;
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    match host.parse() {
        Ok(ip) if !may_be_asked(ip, is_local) => Err(AddressError::Forbidden(ip)),
        _ => Ok(url),
    }
}

/// An address of the settings.
pub struct Address {
    url: Url,
    client: Client,
}

impl Address {
    /// An address, and a client for it. The certificate authorities are the system's, or those in
    /// the file that `SSL_CERT_FILE` names. Nothing is sent yet.
    ///
    /// # Errors
    /// An address that is no URL or is never asked, or a client that cannot be built.
    pub fn new(uri: &Uri) -> Result<Self, AddressError> {
        let mut authorities = RootCertStore::empty();
        // Plain HTTP, which stays on this machine, needs none.
        if uri.scheme() != Some(&Scheme::HTTP) {
            authorities.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
        Self::with(uri, authorities, SystemNames)
    }

    fn with(
        uri: &Uri,
        authorities: RootCertStore,
        names: impl Resolve + 'static,
    ) -> Result<Self, AddressError> {
        let is_local = is_local(uri);
        let tls = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("the provider has the default versions")
            .with_root_certificates(authorities)
            .with_no_client_auth();
        let accept = (ACCEPT, HeaderValue::from_static("application/json"));
        let client = Client::builder()
            .tls_backend_preconfigured(tls)
            .dns_resolver(Judged { names, is_local })
            .no_proxy()
            .redirect(Policy::none())
            .retry(retry::never())
            .pool_max_idle_per_host(0)
            .http1_only()
            .http1_max_headers(HEADERS_MAX)
            .user_agent("numerator")
            .default_headers(HeaderMap::from_iter([accept]))
            .build()?;
        Ok(Address { url: url_of(uri, is_local)?, client })
    }

    /// The answer to a GET: its body, of at most `bytes_max` bytes, within `limit`. Safe to drop.
    ///
    /// # Errors
    /// No answer within the limit, or one that is not 200 or has more bytes.
    pub async fn get(&self, limit: Duration, bytes_max: usize) -> Result<Vec<u8>, AddressError> {
        ask(self.client.get(self.url.clone()), limit, bytes_max).await
    }

    /// The answer to a body, as that of [`Address::get`]. Safe to drop; whether the request arrived
    /// is unknown then.
    ///
    /// # Errors
    /// As [`Address::get`].
    pub async fn post(
        &self,
        headers: HeaderMap,
        body: String,
        limit: Duration,
        bytes_max: usize,
    ) -> Result<Vec<u8>, AddressError> {
        let request = self.client.post(self.url.clone()).headers(headers).body(body);
        ask(request, limit, bytes_max).await
    }
}

/// Sends a request; the limit covers the look-up, the connection and the whole answer.
async fn ask(
    request: RequestBuilder,
    limit: Duration,
    bytes_max: usize,
) -> Result<Vec<u8>, AddressError> {
    let asked = timeout(limit, async {
        let answer = request.send().await?;
        if answer.status() != StatusCode::OK {
            return Err(AddressError::Status(answer.status()));
        }
        let bytes = to_bytes(Body::new(reqwest::Body::from(answer)), bytes_max).await;
        Ok(bytes.map_err(|_| AddressError::Body(bytes_max))?.to_vec())
    });
    asked.await.map_err(|_| AddressError::TooLate(limit))?
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::sync::Mutex;

    use reqwest::dns::{Addrs, Name, Resolving};
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
        let address = Address::new(&uri).expect("an address");
        let limit = Duration::from_secs(60);
        let refused = address.get(limit, 2).await.expect_err("nobody knows that certificate");
        assert!(matches!(refused, AddressError::Unreached(_)), "{refused}");
        let mut authorities = RootCertStore::empty();
        authorities.add(certificate).expect("a certificate");
        let address = Address::with(&uri, authorities, SystemNames).expect("an address");
        assert_eq!(address.get(limit, 2).await.expect("an answer"), b"{}");
        let long = address.get(limit, 1).await.expect_err("too long");
        assert!(matches!(long, AddressError::Body(1)), "{long}");
    }

    /// Answers look-ups in turn, and panics at one too many.
    struct Answers(Mutex<Vec<Vec<SocketAddr>>>);

    impl Resolve for Answers {
        fn resolve(&self, _: Name) -> Resolving {
            let found = self.0.lock().expect("lock").pop().expect("asked once");
            Box::pin(async { Ok(Box::new(found.into_iter()) as Addrs) })
        }
    }

    /// Goal: a name that resolves to a partner when it is judged and to this machine when it is
    /// connected to leads nowhere else. Method: the resolver answers differently each time, and
    /// panics at one look-up too many.
    #[tokio::test]
    async fn a_name_is_looked_up_once_and_what_it_stood_for_then_is_connected_to() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let here = listener.local_addr().expect("an address");
        let answers = |mut answers: Vec<Vec<SocketAddr>>| {
            answers.reverse();
            Answers(Mutex::new(answers))
        };
        let ask = |host: &str, names: Answers| {
            let uri = format!("http://{host}/keys").parse().expect("an address");
            let address = Address::with(&uri, RootCertStore::empty(), names).expect("an address");
            async move { address.get(Duration::from_secs(60), 2).await.expect_err("no answer") }
        };
        // No server listens there, and the second look-up would lead to one that does.
        let nobody = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let gone = nobody.local_addr().expect("an address");
        drop(nobody);
        let refused = ask("localhost", answers(vec![vec![gone], vec![here]])).await;
        assert!(matches!(refused, AddressError::Unreached(_)), "{refused}");
        for (host, told) in [
            ("erp.example", here),
            ("erp.example", "169.254.169.254:80".parse().expect("an address")),
            ("erp.example", "[::ffff:169.254.169.254]:80".parse().expect("an address")),
            ("localhost", "192.0.2.1:80".parse().expect("an address")),
        ] {
            let refused = ask(host, answers(vec![vec![told]])).await;
            assert!(matches!(refused, AddressError::Forbidden(_)), "{host} {told}: {refused}");
        }
        assert!(timeout(Duration::ZERO, listener.accept()).await.is_err(), "nobody came");
    }

    #[test]
    fn an_address_is_trusted_by_its_encryption_or_this_machine() {
        for (address, is_right) in [
            ("https://erp.example/numbers", true),
            ("https://10.0.0.7:8443/numbers", true),
            ("http://127.0.0.1:8080/numbers", true),
            ("http://[::1]/numbers", true),
            ("http://localhost/numbers", true),
            ("http://erp.example/numbers", false),
            ("http://10.0.0.7/numbers", false),
            ("https://user:secret@erp.example/", false),
            ("https://169.254.169.254/latest", false),
            ("https://[fd00:ec2::254]/latest", false),
            ("https://[::ffff:169.254.169.254]/", false),
            ("https://0.0.0.0/", false),
            // Other ways of writing 169.254.169.254 and 127.0.0.1, and of no address.
            ("https://2852039166/", false),
            ("https://127.1/", false),
            ("https://1.2.3.999/", false),
            ("ftp://erp.example/", false),
            ("/numbers", false),
        ] {
            let uri: Uri = address.parse().expect("an address");
            assert_eq!(is_trustworthy(&uri), is_right, "{address}");
        }
    }
}
