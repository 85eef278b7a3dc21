//! The program under TLS: what it refuses at its start, and what also answers in plain HTTP.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Output;
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, ClientConnection, RootCertStore};
use testkit::process::free_port;
use testkit::service::Service;

use crate::deployment::Deployment;

/// Writes a certificate for this machine and its key into the deployment's folder.
fn pair(deployment: &Deployment, name: &str) -> (PathBuf, PathBuf) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let (certificate, key) =
        (deployment.path(&format!("{name}.pem")), deployment.path(&format!("{name}.key")));
    std::fs::write(&certificate, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o644)).unwrap();
    (certificate, key)
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The answer under TLS to a request for a number, with these header lines.
fn take(service: &Service, certificate: &str, headers: &str) -> String {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(certificate).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let client = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = "localhost".try_into().unwrap();
    let mut client = ClientConnection::new(Arc::new(client), name).unwrap();
    let mut stream = TcpStream::connect(service.url.trim_start_matches("http://")).unwrap();
    let mut stream = rustls::Stream::new(&mut client, &mut stream);
    let body = "{\"type\":\"SPO\",\"date\":\"2024-01-22\"}";
    let length = body.len();
    let request = format!(
        "POST /api/v1/documents/d1/generate-number HTTP/1.1\r\n{headers}connection: close\r\n\
         content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn under_tls_numbers_are_issued_by_the_same_rules_and_plain_http_gets_none() {
    let mut deployment = Deployment::embedded();
    let (certificate, key) = pair(&deployment, "one");
    let [certificate, key] = [certificate, key].map(|path| path.display().to_string());
    let health = format!("127.0.0.1:{}", free_port());
    deployment.http = format!(
        "tls_certificate = \"{certificate}\"\ntls_key = \"{key}\"\n\
         health_listen = \"{health}\"\n"
    );
    let service = deployment.serve();
    for (headers, slug) in [
        ("host: evil.example\r\n", "host-not-allowed"),
        ("host: localhost\r\norigin: https://evil.example\r\n", "cross-site"),
    ] {
        let refused = take(&service, &certificate, headers);
        assert!(refused.starts_with("HTTP/1.1 403") && refused.contains(slug), "{refused}");
    }
    let page = "host: localhost\r\norigin: https://localhost:8443\r\n";
    let issued = take(&service, &certificate, page);
    assert!(issued.starts_with("HTTP/1.1 201") && issued.contains("SPO-20240122-001"), "{issued}");

    let mut plain = TcpStream::connect(service.url.trim_start_matches("http://")).unwrap();
    plain
        .write_all(b"GET /api/v1/document-numbering/configs HTTP/1.1\r\nhost: localhost\r\n\r\n")
        .unwrap();
    let mut received = Vec::new();
    plain.read_to_end(&mut received).unwrap();
    assert!(!received.starts_with(b"HTTP"), "{received:?}");
}

#[test]
fn a_key_of_another_certificate_ends_the_program_at_its_start_and_leaves_no_trace() {
    let mut deployment = Deployment::embedded();
    let ((certificate, _), (_, key)) = (pair(&deployment, "one"), pair(&deployment, "other"));
    let [certificate, key] = [certificate, key].map(|path| path.display().to_string());
    deployment.http = format!("tls_certificate = \"{certificate}\"\ntls_key = \"{key}\"\n");
    let refused = deployment.run(&["serve", "--listen", "127.0.0.1:0"]);
    assert!(!refused.status.success());
    let said = said(&refused);
    assert!(said.contains(&format!("http.tls_key: {key}: is not the key of")), "{said}");
    assert!(!deployment.path(testkit::service::SQLITE_FILE).exists(), "nothing was set up");
}

#[test]
fn under_tls_probes_ask_in_plain_http_at_their_own_listener() {
    let mut deployment = Deployment::embedded();
    let (certificate, key) = pair(&deployment, "one");
    let [certificate, key] = [certificate, key].map(|path| path.display().to_string());
    let tls = format!("tls_certificate = \"{certificate}\"\ntls_key = \"{key}\"\n");
    deployment.http = tls.clone();
    let refused = said(&deployment.run(&["ready"]));
    assert!(refused.contains("set http.health_listen"), "{refused}");
    let health = format!("127.0.0.1:{}", free_port());
    deployment.http = format!("{tls}health_listen = \"{health}\"\n");
    // It is waited for at its health listener.
    let service = deployment.serve();
    assert!(deployment.ok(&["ready"]).contains("\"ready\":true"));
    assert!(service.log().contains("every user of this machine may read"), "{}", service.log());
    assert!(service.terminate());
}
