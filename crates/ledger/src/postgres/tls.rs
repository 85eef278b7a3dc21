//! The trust of a connection to PostgreSQL. Beyond this machine only a server whose certificate is
//! verified, unless the URL says otherwise explicitly: a server that answers in its place receives
//! the password.

use std::path::PathBuf;
use std::str::FromStr;

use numerator_runtime::hosts::is_this_machine;
use sqlx::ConnectOptions as _;
use sqlx::postgres::{PgConnectOptions, PgSslMode};

/// Parameters of a URL that say how a connection is encrypted,
const MODES: [&str; 2] = ["sslmode", "ssl-mode"];
/// and whose signature under a certificate is accepted.
const ROOTS: [&str; 3] = ["sslrootcert", "ssl-root-cert", "ssl-ca"];

/// The connection options for the database that a URL names: where it has no `sslmode`, a server
/// beyond this machine must show a certificate of its name (`verify-full`).
///
/// # Errors
/// What is wrong with the URL, or that its settings of certificates would be ignored.
pub fn postgres_options(url: &str) -> Result<PgConnectOptions, String> {
    let options = PgConnectOptions::from_str(url).map_err(|error| error.to_string())?;
    let names = |wanted: &[&str]| parameters(url).any(|name| wanted.contains(&name));
    let verifies = |mode| matches!(mode, PgSslMode::VerifyCa | PgSslMode::VerifyFull);
    match (names(&MODES), names(&ROOTS)) {
        (true, true) if !verifies(options.get_ssl_mode()) => Err(
            "sslrootcert verifies nothing with this sslmode; write sslmode=verify-full, or leave \
             sslrootcert out"
                .into(),
        ),
        (true, _) => Ok(options),
        (false, false) if is_here(&options) => Ok(options),
        (false, _) => Ok(options.ssl_mode(PgSslMode::VerifyFull)),
    }
}

/// Files that a connection to the database of a URL reads, by the parameter that names each; none
/// of one that is no URL of PostgreSQL.
#[must_use]
pub fn postgres_files(url: &str) -> Vec<(&'static str, PathBuf)> {
    let Ok(options) = postgres_options(url) else { return Vec::new() };
    // The options include those from the environment.
    let named = options.to_url_lossy();
    let file = |parameter: &'static str| {
        let value = named.query_pairs().find(|(name, _)| name == parameter)?.1;
        // The library writes a file so, and not the text of one.
        let path = value.strip_prefix("file: ").unwrap_or(&value);
        (!value.contains("-----BEGIN")).then(|| (parameter, PathBuf::from(path)))
    };
    [ROOTS[0], "sslcert", "sslkey"].into_iter().filter_map(file).collect()
}

/// Whether the server is on this machine: behind a socket of its files, or of loopback.
fn is_here(options: &PgConnectOptions) -> bool {
    let host = options.get_host();
    options.get_socket().is_some() || host.starts_with('/') || is_this_machine(host)
}

/// Names of the parameters of a URL.
fn parameters(url: &str) -> impl Iterator<Item = &str> {
    let (_, parameters) = url.split_once('?').unwrap_or_default();
    parameters.split('&').map(|parameter| parameter.split('=').next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(url: &str) -> String {
        match postgres_options(url) {
            Ok(options) => format!("{:?}", options.get_ssl_mode()),
            Err(error) => error,
        }
    }

    #[test]
    fn beyond_this_machine_a_certificate_is_verified_unless_the_url_says_otherwise_by_name() {
        for host in ["db", "10.0.0.1", "[2001:db8::1]:5432", "0.0.0.0", "localhost.example"] {
            let url = format!("postgres://clerk:secret@{host}/numbers");
            assert_eq!(mode(&url), "VerifyFull", "{host}");
            assert_eq!(mode(&format!("{url}?application_name=sslmode")), "VerifyFull");
            assert_eq!(mode(&format!("{url}?sslmode=disable")), "Disable");
            assert_eq!(mode(&format!("{url}?a=b&ssl-mode=require")), "Require");
            assert_eq!(mode(&format!("{url}?sslrootcert=/ca.pem")), "VerifyFull");
        }
        assert_eq!(mode("postgres://localhost/numbers?host=db"), "VerifyFull");
        assert_eq!(mode("postgres://localhost/numbers?hostaddr=10.0.0.1"), "VerifyFull");
    }

    #[test]
    fn the_files_of_a_url_are_known_by_the_parameters_that_name_them() {
        let url = "postgres://db/n?sslcert=%2Fa%20b%2Fc.pem&ssl-ca=/ca.pem&sslkey=/c.key";
        let files = postgres_files(url);
        let files: Vec<String> =
            files.iter().map(|(name, path)| format!("{name}={}", path.display())).collect();
        assert_eq!(files, ["sslrootcert=/ca.pem", "sslcert=/a b/c.pem", "sslkey=/c.key"]);
        assert!(postgres_files("postgres://db/n").is_empty() && postgres_files("x").is_empty());
    }

    #[test]
    fn on_this_machine_nothing_is_asked_that_was_not_asked_before() {
        for host in ["localhost", "127.0.0.1:5432", "[::1]", "%2Fvar%2Frun%2Fpostgresql"] {
            assert_eq!(mode(&format!("postgres://clerk@{host}/numbers")), "Prefer", "{host}");
        }
        assert_eq!(mode("postgres://clerk@db/numbers?host=/var/run/postgresql"), "Prefer");
        assert_eq!(mode("postgres://localhost/numbers?sslrootcert=/ca.pem"), "VerifyFull");
    }

    #[test]
    fn a_certificate_to_verify_with_beside_a_mode_that_verifies_nothing_is_refused() {
        for mode_named in ["disable", "allow", "prefer", "require"] {
            let url = format!("postgres://db/numbers?sslrootcert=/ca.pem&sslmode={mode_named}");
            assert!(mode(&url).contains("sslmode=verify-full"), "{mode_named}");
        }
        assert_eq!(mode("postgres://db/n?sslmode=verify-ca&sslrootcert=/ca.pem"), "VerifyCa");
    }
}
