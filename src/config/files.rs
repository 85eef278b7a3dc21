//! The files that settings name and the service reads: which they are, and which of them are secret
//! or expire. Reads none of them.

use std::path::{Path, PathBuf};

use crate::telemetry::certificates::CertificateFile;

use super::{JwtAlgorithm, JwtKeys, SeriesSource, Settings};
use crate::ledger::postgres_files;

/// The variable that names the file of authorities for Redis, sources and issuers.
const AUTHORITIES: &str = "SSL_CERT_FILE";

/// A file or folder that the service reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedFile {
    /// The origin of its name: a setting, a parameter of `database.url`, a variable.
    pub named_by: String,
    /// Its path.
    pub path: PathBuf,
    /// Whether only its owner should read it.
    pub is_secret: bool,
}

impl CertificateFile {
    /// Whether one of them is enough: each is an authority on its own.
    #[must_use]
    pub fn is_of_authorities(&self) -> bool {
        self.of.ends_with("authority")
    }
}

impl Settings {
    /// The files that the service reads, but for the settings file and those in `data.dir`.
    #[must_use]
    pub fn files(&self) -> Vec<NamedFile> {
        let mut files = Vec::new();
        let mut add = |named_by: &str, path: &Path, is_secret| {
            files.push(NamedFile { named_by: named_by.to_owned(), path: path.into(), is_secret });
        };
        if let Some(tls) = &self.http.tls {
            add("http.tls_certificate", &tls.certificate, false);
            add("http.tls_key", &tls.key, true);
        }
        if let Some(path) = self.audit.key_file() {
            add("audit.key", path, true);
        }
        if let Some(jwt) = &self.auth_jwt
            && let JwtKeys::File(path) | JwtKeys::SetFile(path) = &jwt.keys
        {
            let is_shared = jwt.algorithms.contains(&JwtAlgorithm::HS256);
            add(jwt.keys.setting(), path, is_shared);
        }
        for source in &self.external {
            if let Some(path) = &source.token_file {
                add(&format!("external.{}.token_file", source.name), path, true);
            }
        }
        for source in &self.series_load {
            if let SeriesSource::Path(path) = source {
                add("series.load", path, false);
            }
        }
        for (parameter, path) in postgres_files(&self.database_url) {
            add(&format!("{parameter} of database.url"), &path, parameter == "sslkey");
        }
        if let Some(path) = authorities() {
            add(AUTHORITIES, &path, false);
        }
        files
    }

    /// Those among them that hold certificates, which expire.
    #[must_use]
    pub fn certificates(&self) -> Vec<CertificateFile> {
        let of_database = postgres_files(&self.database_url);
        let find = |wanted: &str| {
            of_database.iter().find(|(parameter, _)| *parameter == wanted).map(|it| it.1.clone())
        };
        let server = self.http.tls.as_ref().map(|tls| tls.certificate.clone());
        [
            ("server", "http.tls_certificate", server),
            ("database-authority", "sslrootcert of database.url", find("sslrootcert")),
            ("database-client", "sslcert of database.url", find("sslcert")),
            ("authority", AUTHORITIES, authorities()),
        ]
        .into_iter()
        .filter_map(|(of, named_by, path)| Some(CertificateFile { of, named_by, path: path? }))
        .collect()
    }
}

fn authorities() -> Option<PathBuf> {
    std::env::var_os(AUTHORITIES).filter(|path| !path.is_empty()).map(PathBuf::from)
}
