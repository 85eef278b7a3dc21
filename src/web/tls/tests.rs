//! Pairs of files that fit, and those that do not; connections are in `server/tests`.

use tempfile::TempDir;

use super::*;

/// A folder with a certificate for `localhost` and its key.
pub(crate) struct Pair {
    folder: TempDir,
    /// The certificate, which is its own authority.
    pub(crate) certificate: CertificateDer<'static>,
}

impl Pair {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let certificate = write(folder.path());
        Pair { folder, certificate }
    }

    /// Puts another pair in its place.
    pub(crate) fn renew(&mut self) {
        self.certificate = write(self.folder.path());
    }

    pub(crate) fn settings(&self) -> TlsSettings {
        TlsSettings {
            certificate: self.folder.path().join("certificate.pem"),
            key: self.folder.path().join("key.pem"),
            reload_period: Duration::from_secs(60),
        }
    }
}

fn write(folder: &Path) -> CertificateDer<'static> {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    std::fs::write(folder.join("certificate.pem"), made.cert.pem()).expect("written");
    std::fs::write(folder.join("key.pem"), made.signing_key.serialize_pem()).expect("written");
    made.cert.der().clone()
}

/// The first certificate of the pair in force.
fn shown(tls: &Tls) -> CertificateDer<'static> {
    tls.in_force.0.read().expect("a lock").cert[0].clone()
}

fn refusal(settings: &TlsSettings) -> String {
    Tls::open(settings).err().expect("refused").to_string()
}

#[test]
fn files_that_are_no_pair_are_refused_with_their_setting_and_the_remedy() {
    let (one, other) = (Pair::new(), Pair::new());
    let (certificate, key) = (one.settings().certificate, one.settings().key);
    let of = |certificate: &Path, key: &Path| TlsSettings {
        certificate: certificate.into(),
        key: key.into(),
        ..one.settings()
    };
    let gone = one.folder.path().join("gone.pem");
    for (settings, setting, remedy) in [
        (of(&gone, &key), "http.tls_certificate", "name a file in PEM form"),
        (of(&certificate, &gone), "http.tls_key", "name a file in PEM form"),
        (of(&key, &key), "http.tls_certificate", "BEGIN CERTIFICATE"),
        (of(&certificate, &certificate), "http.tls_key", "BEGIN PRIVATE KEY"),
        (of(&certificate, &other.settings().key), "http.tls_key", "made together"),
    ] {
        let refused = refusal(&settings);
        assert!(refused.starts_with(&format!("{setting}: /")), "{refused}");
        assert!(refused.contains(remedy), "{refused}");
    }
    let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    std::fs::write(&certificate, broken).expect("written");
    assert!(refusal(&one.settings()).starts_with("http.tls_certificate: "));
}

#[test]
fn a_new_pair_comes_into_force_and_a_broken_one_never() {
    let mut pair = Pair::new();
    let mut tls = Tls::open(&pair.settings()).expect("a pair");
    let first = shown(&tls);
    assert_eq!(first, pair.certificate);
    tls.reload();
    assert_eq!(shown(&tls), first, "nothing has changed");
    // Half a change, as when the files are copied one after the other.
    let old_key = std::fs::read(&pair.settings().key).expect("a key");
    pair.renew();
    let new_key = std::fs::read(&pair.settings().key).expect("a key");
    std::fs::write(&pair.settings().key, old_key).expect("written");
    tls.reload();
    assert_eq!(shown(&tls), first, "a certificate without its key");
    std::fs::remove_file(&pair.settings().key).expect("removed");
    tls.reload();
    assert_eq!(shown(&tls), first, "a key that is not there");
    std::fs::write(&pair.settings().key, new_key).expect("written");
    tls.reload();
    assert_eq!(shown(&tls), pair.certificate);
}
