//! One HTTP request to an address of the settings, for one bounded answer in bounded time: the keys
//! of an issuer, the value of a source. Where it leads elsewhere, nobody goes.
//!
//! A name is looked up once, what it stands for is judged (`reachable`), and the very addresses
//! that passed are connected to: whoever answers for the name has no second word.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use hyper::client::conn::http1;
use hyper::header::{ACCEPT, HOST, HeaderMap, USER_AGENT};
use hyper::http::uri::Scheme;
use hyper::{Method, Request, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use numerator_runtime::hosts::is_this_machine;
use rustls::crypto::ring;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, lookup_host};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::reachable::may_be_asked;

/// Addresses of one name that are looked at.
const ADDRESSES_MAX: usize = 16;
/// Names that are looked up at once: nobody can end a look-up of the system, and each has a thread
/// of its own until it does.
const LOOKUPS_MAX: usize = 16;
static LOOKUPS: Semaphore = Semaphore::const_new(LOOKUPS_MAX);

/// No answer.
#[derive(Debug, Error)]
pub enum AddressError {
    /// It takes too long.
    #[error("no answer within {0:?}")]
    TooLate(Duration),
    /// It cannot be reached.
    #[error("cannot be reached: {0}")]
    Unreached(#[from] std::io::Error),
    /// Its name stands for nothing that is asked.
    #[error("stands for {0}, which is never asked under that name (docs/security.md)")]
    Forbidden(IpAddr),
    /// No HTTP.
    #[error("answers no HTTP: {0}")]
    NoHttp(#[from] hyper::Error),
    /// An answer that is none.
    #[error("answers with status {0}; redirects are not followed: write the address they lead to")]
    Status(StatusCode),
    /// Too long.
    #[error("answers with more than {0} bytes, or ends in the middle")]
    Body(usize),
}

/// Whether nobody on the way to an address can answer for it: it is encrypted or on this machine,
/// says no user and password, and is no place that is never asked.
#[must_use]
pub fn is_trustworthy(uri: &Uri) -> bool {
    let Some(host) = uri.host() else { return false };
    let is_local = is_this_machine(host);
    let has_user = uri.authority().is_some_and(|authority| authority.as_str().contains('@'));
    let ip = host.trim_matches(['[', ']']).parse();
    let is_asked = ip.map_or(true, |ip: IpAddr| may_be_asked(ip, is_local));
    let is_safe = match uri.scheme() {
        Some(scheme) if *scheme == Scheme::HTTPS => true,
        Some(scheme) => *scheme == Scheme::HTTP && is_local,
        None => false,
    };
    is_safe && is_asked && !has_user
}

/// Who says in the system's place what a name stands for.
#[cfg(test)]
type Resolver = Box<dyn Fn() -> Vec<SocketAddr> + Send + Sync>;

/// What is sent, and how much may come back.
struct Exchange {
    request: Request<Body>,
    answer_bytes_max: usize,
}

/// Where to ask.
pub struct Address {
    uri: Uri,
    host: String,
    /// Whether its name is this machine's.
    is_local: bool,
    /// Whom to trust; nothing for plain HTTP, which is on loopback alone.
    tls: Option<TlsConnector>,
    #[cfg(test)]
    resolver: Option<Resolver>,
}

impl Address {
    /// An address; authorities are the system's, or those in the file that `SSL_CERT_FILE` names.
    #[must_use]
    pub fn new(uri: &Uri) -> Self {
        let is_encrypted = uri.scheme() != Some(&Scheme::HTTP);
        let tls = is_encrypted.then(|| {
            let mut authorities = RootCertStore::empty();
            let found = rustls_native_certs::load_native_certs();
            authorities.add_parsable_certificates(found.certs);
            connector(authorities)
        });
        let host = uri.host().unwrap_or_default();
        let is_local = is_this_machine(host);
        let host = host.trim_matches(['[', ']']).to_owned();
        Address {
            uri: uri.clone(),
            host,
            is_local,
            tls,
            #[cfg(test)]
            resolver: None,
        }
    }

    /// What it has. Safe to drop.
    ///
    /// # Errors
    /// No answer within the limit, or one that is not 200 or has more bytes.
    pub async fn get(&self, limit: Duration, bytes_max: usize) -> Result<Vec<u8>, AddressError> {
        self.ask(Method::GET, HeaderMap::new(), Body::empty(), limit, bytes_max).await
    }

    /// What it answers to a body. Safe to drop; then nobody knows whether it was heard.
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
        self.ask(Method::POST, headers, Body::from(body), limit, bytes_max).await
    }

    async fn ask(
        &self,
        method: Method,
        headers: HeaderMap,
        body: Body,
        limit: Duration,
        answer_bytes_max: usize,
    ) -> Result<Vec<u8>, AddressError> {
        let path = self.uri.path_and_query().map_or("/", |path| path.as_str());
        let host = self.uri.authority().map_or("", |authority| authority.as_str());
        let request = Request::builder().method(method).uri(path);
        let request = request.header(HOST, host).header(ACCEPT, "application/json");
        let request = request.header(USER_AGENT, "numerator").body(body);
        let mut request = request.map_err(std::io::Error::other)?;
        request.headers_mut().extend(headers);
        let exchange = Exchange { request, answer_bytes_max };
        let asked = timeout(limit, self.connect_and_ask(exchange)).await;
        asked.map_err(|_| AddressError::TooLate(limit))?
    }

    async fn connect_and_ask(&self, exchange: Exchange) -> Result<Vec<u8>, AddressError> {
        let stream = self.connect().await?;
        match &self.tls {
            None => exchange.over(stream).await,
            Some(connector) => {
                let name = ServerName::try_from(self.host.clone());
                let name = name.map_err(std::io::Error::other)?;
                exchange.over(connector.connect(name, stream).await?).await
            }
        }
    }

    /// A connection to the first address that takes one, of those that may be asked.
    async fn connect(&self) -> Result<TcpStream, AddressError> {
        let mut failure = AddressError::Unreached(std::io::ErrorKind::NotFound.into());
        for address in self.resolve().await? {
            if !may_be_asked(address.ip(), self.is_local) {
                failure = AddressError::Forbidden(address.ip());
                continue;
            }
            match TcpStream::connect(address).await {
                Ok(stream) => return Ok(stream),
                Err(error) => failure = error.into(),
            }
        }
        Err(failure)
    }

    /// What its name stands for.
    async fn resolve(&self) -> Result<Vec<SocketAddr>, AddressError> {
        #[cfg(test)]
        if let Some(told) = &self.resolver {
            return Ok(told());
        }
        let port = self.uri.port_u16().unwrap_or(if self.tls.is_some() { 443 } else { 80 });
        let place = LOOKUPS.acquire().await.map_err(std::io::Error::other)?;
        let host = self.host.clone();
        let looking = tokio::spawn(async move {
            let found = lookup_host((host, port)).await;
            drop(place);
            found.map(|found| found.take(ADDRESSES_MAX).collect())
        });
        Ok(looking.await.map_err(std::io::Error::other)??)
    }
}

impl Exchange {
    async fn over<S>(self, stream: S) -> Result<Vec<u8>, AddressError>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        // Ends with this call, however that ends.
        let mut connections = JoinSet::new();
        connections.spawn(connection);
        let answer = sender.send_request(self.request).await?;
        if answer.status() != StatusCode::OK {
            return Err(AddressError::Status(answer.status()));
        }
        let bytes = to_bytes(Body::new(answer.into_body()), self.answer_bytes_max).await;
        Ok(bytes.map_err(|_| AddressError::Body(self.answer_bytes_max))?.to_vec())
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
    use std::sync::Mutex;

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
        let refused = address.get(limit, 2).await.expect_err("nobody knows that certificate");
        assert!(matches!(refused, AddressError::Unreached(_)), "{refused}");
        let mut authorities = RootCertStore::empty();
        authorities.add(certificate).expect("a certificate");
        address.tls = Some(connector(authorities));
        assert_eq!(address.get(limit, 2).await.expect("an answer"), b"{}");
        let long = address.get(limit, 1).await.expect_err("too long");
        assert!(matches!(long, AddressError::Body(1)), "{long}");
    }

    /// Goal: a name that stands for a partner when it is judged and for this machine when it is
    /// connected to leads nowhere else. Method: who answers for it says something else each time,
    /// and would be asked once too often.
    #[tokio::test]
    async fn a_name_is_looked_up_once_and_what_it_stood_for_then_is_connected_to() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let here = listener.local_addr().expect("an address");
        let answers = |mut answers: Vec<Vec<SocketAddr>>| {
            answers.reverse();
            let answers = Mutex::new(answers);
            let told = move || answers.lock().expect("lock").pop().expect("asked once");
            Some(Box::new(told) as Resolver)
        };
        let ask = |host: &str, resolver: Option<Resolver>| {
            let uri = format!("http://{host}/keys").parse().expect("an address");
            let address = Address { resolver, ..Address::new(&uri) };
            async move { address.get(Duration::from_secs(60), 2).await.expect_err("no answer") }
        };
        // Nobody listens there, and the second look-up would lead to who does.
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
            ("ftp://erp.example/", false),
            ("/numbers", false),
        ] {
            let uri: Uri = address.parse().expect("an address");
            assert_eq!(is_trustworthy(&uri), is_right, "{address}");
        }
    }
}
