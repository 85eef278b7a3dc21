//! TLS of `http.listen`: the certificate and its key, read at the start and again when their files
//! change.
//!
//! Clients always get a matching pair: files that cannot be read, or do not belong together, are
//! refused at the start, and later leave the previous pair in force.

use std::io;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{InconsistentKeys, ServerConfig};
use thiserror::Error;
use tokio_rustls::TlsAcceptor;

use crate::config::TlsSettings;
use crate::task::{Task, Ticks};
use crate::telemetry::certificates::{Certificates, Shown};
use crate::telemetry::gauges::ends_of;

/// Others may read a file with this in its mode.
const READABLE_BY_OTHERS: u32 = 0o004;

/// Files that are not a certificate with its key.
#[derive(Debug, Error)]
#[error("{setting}: {path}: {reason}")]
pub struct TlsError {
    /// The setting to blame.
    setting: &'static str,
    /// Its file.
    path: String,
    /// The flaw, and the remedy.
    reason: String,
}

/// The two files, as they were read.
#[derive(PartialEq, Eq)]
struct Files {
    certificate: Vec<u8>,
    key: Vec<u8>,
}

/// The pair that clients are shown.
#[derive(Debug)]
struct InForce(RwLock<Arc<CertifiedKey>>);

impl ResolvesServerCert for InForce {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner)))
    }
}

/// A certificate with its key, as long as the process serves.
pub struct Tls {
    settings: TlsSettings,
    in_force: Arc<InForce>,
    acceptor: TlsAcceptor,
    /// The files that were read last, whether they fitted or not.
    seen: Files,
    /// When the certificate in force ends.
    shown: Shown,
}

impl Tls {
    /// Reads both files. A key that all users may read causes a warning.
    ///
    /// # Errors
    /// A file that cannot be read or holds no such thing, and a key of another certificate.
    pub fn open(settings: &TlsSettings) -> Result<Self, TlsError> {
        let seen = read(settings)?;
        let pair = pair(settings, &seen)?;
        let shown = Shown::new(first_end(&pair).into());
        let in_force = Arc::new(InForce(RwLock::new(Arc::new(pair))));
        warn_of_readers(&settings.key);
        let provider = Arc::new(ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("the provider has the default versions")
            .with_no_client_auth()
            .with_cert_resolver(Arc::<InForce>::clone(&in_force));
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let acceptor = TlsAcceptor::from(Arc::new(config));
        Ok(Tls { settings: settings.clone(), in_force, acceptor, seen, shown })
    }

    /// Whether both files can be read and belong together.
    ///
    /// # Errors
    /// As [`Tls::open`].
    pub fn check(settings: &TlsSettings) -> Result<(), TlsError> {
        pair(settings, &read(settings)?).map(drop)
    }

    /// The acceptor of the server's connections; it follows the files.
    #[must_use]
    pub fn acceptor(&self) -> TlsAcceptor {
        self.acceptor.clone()
    }

    /// Looks at the files once in each `reload_period`, and has the metrics show when what is
    /// in force ends.
    #[must_use]
    pub fn follow(mut self, certificates: &Certificates) -> Task {
        certificates.follow(Arc::clone(&self.shown));
        let period: Duration = self.settings.reload_period;
        Task::start("certificate", move |stop| async move {
            let mut ticks = Ticks::every(period, stop);
            while ticks.next().await {
                let looked = tokio::task::spawn_blocking(move || {
                    self.reload();
                    self
                });
                self = looked.await.expect("looking at two files does not panic");
            }
        })
    }

    /// Reads files that have changed, once for each change.
    fn reload(&mut self) {
        let pair = match read(&self.settings) {
            Ok(files) if files == self.seen => return,
            Ok(files) => {
                let pair = pair(&self.settings, &files);
                self.seen = files;
                pair
            }
            Err(error) => Err(error),
        };
        match pair {
            Ok(pair) => {
                self.shown.store(first_end(&pair), Ordering::Relaxed);
                *self.in_force.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(pair);
                tracing::info!("the certificate of http.listen was read again, and is in force");
                warn_of_readers(&self.settings.key);
            }
            Err(error) => tracing::error!(
                %error,
                "the files of the certificate have changed and are not used; the certificate read \
                 before stays in force"
            ),
        }
    }
}

fn wrong(setting: &'static str, path: &Path, reason: impl Into<String>) -> TlsError {
    TlsError { setting, path: path.display().to_string(), reason: reason.into() }
}

/// The bytes of both files.
fn read(settings: &TlsSettings) -> Result<Files, TlsError> {
    let read = |setting, path: &Path| {
        std::fs::read(path).map_err(|error: io::Error| {
            wrong(setting, path, format!("cannot be read ({error}); name a file in PEM form"))
        })
    };
    Ok(Files {
        certificate: read("http.tls_certificate", &settings.certificate)?,
        key: read("http.tls_key", &settings.key)?,
    })
}

/// The certificate and its key, if they belong together.
fn pair(settings: &TlsSettings, files: &Files) -> Result<CertifiedKey, TlsError> {
    let of_certificate = |reason| wrong("http.tls_certificate", &settings.certificate, reason);
    let of_key = |reason| wrong("http.tls_key", &settings.key, reason);
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&files.certificate).collect();
    let chain = chain.ok().filter(|chain| !chain.is_empty()).ok_or_else(|| {
        of_certificate(
            "holds no certificate; write it in PEM form (BEGIN CERTIFICATE), the server's own \
             first, then those that lead to its authority",
        )
    })?;
    let key = PrivateKeyDer::from_pem_slice(&files.key).map_err(|_| {
        of_key(
            "holds no private key; write it in PEM form (BEGIN PRIVATE KEY), not encrypted: \
             `openssl pkey -in KEY -out NEW`",
        )
    })?;
    let signing = ring::sign::any_supported_type(&key).map_err(|_| {
        of_key("is of a kind that is not supported; use an RSA, ECDSA or Ed25519 key")
    })?;
    let pair = CertifiedKey::new(chain, signing);
    match pair.keys_match() {
        Ok(()) | Err(rustls::Error::InconsistentKeys(InconsistentKeys::Unknown)) => Ok(pair),
        Err(rustls::Error::InconsistentKeys(_)) => Err(of_key(
            "is not the key of the certificate in http.tls_certificate; name the two that were \
             made together",
        )),
        Err(_) => Err(of_certificate("begins with no certificate that can be read; make it anew")),
    }
}

/// When the first certificate of a chain ends, in microseconds of UTC; 0: not known.
fn first_end(pair: &CertifiedKey) -> i64 {
    ends_of(&pair.cert).into_iter().min().unwrap_or_default()
}

fn warn_of_readers(key: &Path) {
    use std::os::unix::fs::MetadataExt as _;
    if std::fs::metadata(key).is_ok_and(|file| file.mode() & READABLE_BY_OTHERS != 0) {
        tracing::warn!(
            key = %key.display(),
            "every user of this machine may read the private key of http.tls_key; chmod o-r"
        );
    }
}

#[cfg(test)]
pub(crate) mod tests;
