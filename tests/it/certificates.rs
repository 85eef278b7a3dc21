//! The program under TLS: what it refuses at its start, and what answers in plain HTTP beside it.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Output;

use harness::process::free_port;

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
    assert!(!deployment.path(harness::service::SQLITE_FILE).exists(), "nothing was set up");
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
