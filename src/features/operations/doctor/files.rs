//! The files that settings name: whether the service's user may read them, whether others may,
//! their content, and when certificates end.

use std::fs::metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use jiff::Timestamp;

use super::findings::{Findings, Grade};
use super::users::{Deed, User};
use crate::config::{NamedFile, Settings};
use crate::telemetry::gauges::ends_in;
use crate::web::Tls;

/// Others may read a file with this in its mode.
const READABLE_BY_OTHERS: u32 = 0o004;

/// A certificate that ends sooner should have been renewed; the alert has the same limit.
const CERTIFICATE_DAYS_MIN: i64 = 14;

const DAY_US: i64 = 86_400_000_000;

/// Checks all of them.
pub(super) fn look(
    settings: &Settings,
    settings_file: Option<&Path>,
    user: &User,
    now_us: i64,
    findings: &mut Findings,
) {
    let mut files = settings.files();
    files.extend(settings_file.map(|path| NamedFile {
        named_by: "settings file".into(),
        path: path.into(),
        is_secret: false,
    }));
    for file in &files {
        look_at(file, user, findings);
    }
    let is_mine = |path: &Path| std::fs::File::open(path).is_ok();
    if let Some(tls) = &settings.http.tls
        && is_mine(&tls.certificate)
        && is_mine(&tls.key)
        && let Err(error) = Tls::check(tls)
    {
        findings.add(("files", Grade::SomethingToDo), error.to_string(), "replace both together");
    }
    if settings.audit.key_file().is_none_or(is_mine)
        && let Err(error) = settings.audit.read_key()
    {
        let remedy = "name a key that `numerator audit keygen` made";
        findings.add(("files", Grade::SomethingToDo), format!("{error:#}"), remedy);
    }
    let count = files.len();
    findings.well_unless_found("files", format!("{count} are readable to {}", user.name()));
    certificates(settings, now_us, findings);
}

fn look_at(NamedFile { named_by, path, is_secret }: &NamedFile, user: &User, found: &mut Findings) {
    if let Err(why) = user.may(Deed::Read, path) {
        let name = user.name();
        if *is_secret && user.may_be_handed(path) {
            let path = path.display();
            let says = format!("{named_by}: root alone may read {path}, and the user {name} not");
            let remedy = format!(
                "nothing, where the service is handed it (LoadCredential= of systemd); else chown \
                 {name} {path}"
            );
            return found.add(("files", Grade::Hazard), says, remedy);
        }
        let path = path.display();
        let says = format!("{named_by}: the service's user {name} cannot read it: {why}");
        let remedy = match path.to_string().is_empty() || why.contains("No such file") {
            true => format!("name a file that is there, in {named_by}"),
            false => format!(
                "give the file to that user (chown {name} {path}), and open the folders above it, \
                 or hand it over (LoadCredential= of systemd)"
            ),
        };
        return found.add(("files", Grade::SomethingToDo), says, remedy);
    }
    let is_open = |mode: u32| mode & READABLE_BY_OTHERS != 0;
    if *is_secret && metadata(path).is_ok_and(|file| is_open(file.mode())) {
        let path = path.display();
        let says = format!("{named_by}: every user of this machine may read {path}");
        found.add(("files", Grade::Hazard), says, format!("chmod o-r {path}"));
    }
}

fn certificates(settings: &Settings, now_us: i64, findings: &mut Findings) {
    const CHECK: &str = "certificates";
    for file in settings.certificates() {
        let (named_by, path) = (file.named_by, file.path.display());
        let ends = match ends_in(&file.path) {
            Ok(ends) => ends.into_iter(),
            // Whether the service's user may read it was checked before.
            Err(error) => {
                let says = format!("{named_by}: {path}: {error}");
                let remedy = "name a file of certificates in PEM form, and run this as who may \
                              read it";
                findings.add((CHECK, Grade::SomethingToDo), says, remedy);
                continue;
            }
        };
        let end_us = if file.is_of_authorities() { ends.max() } else { ends.min() };
        let end_us = end_us.expect("a file that can be read has one");
        let day = Timestamp::from_microsecond(end_us).unwrap_or_default().strftime("%Y-%m-%d");
        let left = (end_us - now_us).div_euclid(DAY_US);
        let says = match left {
            ..0 => format!("{named_by}: {path} ended on {day}"),
            _ => format!("{named_by}: {path} ends on {day}, in {left} days"),
        };
        if left < CERTIFICATE_DAYS_MIN {
            findings.add((CHECK, Grade::SomethingToDo), says, "renew it into the same file");
        } else {
            findings.well(CHECK, says);
        }
    }
}
