//! `data.dir`: whether the service may write there, and the witness that is kept in it; and the
//! files of a SQLite ledger. Writes nothing to find out.

use std::fs::{metadata, read, read_dir};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{StatVfsMountFlags, statvfs};
use uuid::Uuid;

use super::findings::{Findings, Grade};
use super::users::{Deed, User, nearest};

const CHECK: &str = "data.dir";

/// Permissions of all but the owner.
const OTHERS: u32 = 0o077;
const OTHERS_WRITE: u32 = 0o022;
const STICKY: u32 = 0o1000;

/// Less space than this on a disk counts as none.
const ROOM_MIN_BYTES: u64 = 16 * 1024 * 1024;

/// The suffixes of a SQLite ledger's files.
const BESIDE: [&str; 5] = ["", "-wal", "-shm", ".lock", ".mark"];

/// Checks the folder itself.
pub(super) fn look(folder: &Path, user: &User, findings: &mut Findings) {
    let (shown, name) = (folder.display(), user.name());
    let place = nearest(folder);
    if let Err(why) = user.may(Deed::Write, &place) {
        let says = format!("{shown}: the service's user {name} cannot write there: {why}");
        let remedy = format!(
            "make the folder for that user: install -d -o {name} -m 0700 {shown}; without it \
             nobody would notice that the ledger was put back while nothing ran"
        );
        findings.add((CHECK, Grade::SomethingToDo), says, remedy);
    }
    if let Ok(found) = metadata(folder)
        && found.mode() & OTHERS_WRITE != 0
        && found.mode() & STICKY == 0
    {
        let says = format!("{shown}: others may put files there, and take them away");
        findings.add((CHECK, Grade::Hazard), says, format!("chmod 700 {shown}"));
    }
    room(&place, (CHECK, "mount a disk with room there"), findings);
}

/// Whether the file system of a place has room.
fn room(place: &Path, (check, remedy): (&'static str, &str), findings: &mut Findings) {
    let Ok(of) = statvfs(place) else { return };
    let free = of.f_bavail.saturating_mul(of.f_frsize);
    let why = if of.f_flag.contains(StatVfsMountFlags::RDONLY) {
        "is on a file system that takes no writes".to_owned()
    } else if free < ROOM_MIN_BYTES {
        format!("is on a file system with {free} bytes of room")
    } else {
        return;
    };
    findings.add((check, Grade::SomethingToDo), format!("{} {why}", place.display()), remedy);
}

/// Checks the witness of a deployment, or those of all if it is not known; `is_used`: whether the
/// ledger has been served from any place.
pub(super) fn look_at_witness(
    folder: &Path,
    deployment: Option<Uuid>,
    is_used: bool,
    user: &User,
    findings: &mut Findings,
) {
    let witnesses = match deployment {
        Some(id) => vec![folder.join(format!("witness-{}.json", id.simple()))],
        None => all_witnesses(folder),
    };
    let there: Vec<&PathBuf> = witnesses.iter().filter(|path| path.exists()).collect();
    for witness in &there {
        look_at_one(witness, user, findings);
    }
    if there.is_empty() && is_used {
        let says = format!("{}: no witness of this ledger is there", folder.display());
        let remedy = "none on a machine that never served it; else keep the folder on a volume \
                      that outlives the process: without a witness nobody would notice that the \
                      ledger was put back while nothing ran";
        findings.add((CHECK, Grade::Hazard), says, remedy);
    }
    let says = match there.len() {
        0 => format!("{} can be written; no witness is there yet", folder.display()),
        _ => format!("{} can be written, and has the ledger's witness", folder.display()),
    };
    findings.well_unless_found(CHECK, says);
}

fn all_witnesses(folder: &Path) -> Vec<PathBuf> {
    let entries = read_dir(folder).into_iter().flatten().flatten();
    let is_witness = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("witness-") && name.ends_with(".json")
    };
    entries.map(|entry| entry.path()).filter(is_witness).collect()
}

fn look_at_one(witness: &Path, user: &User, findings: &mut Findings) {
    let shown = witness.display();
    if let Err(why) = user.may(Deed::Write, witness) {
        let name = user.name();
        let says = format!("the witness is closed to the service's user {name}: {why}");
        let remedy = format!("chown {name} {shown}, and do not delete it");
        return findings.add((CHECK, Grade::SomethingToDo), says, remedy);
    }
    let Ok(found) = metadata(witness) else { return };
    let owner = found.uid();
    if owner != user.id {
        let says = format!("the witness {shown} belongs to the user {owner}");
        let remedy = format!("chown {} {shown}", user.name());
        findings.add((CHECK, Grade::Hazard), says, remedy);
    }
    if found.mode() & OTHERS != 0 {
        let says = format!("the witness {shown} is open to others ({:04o})", found.mode() & 0o777);
        findings.add((CHECK, Grade::Hazard), says, format!("chmod 600 {shown}"));
    }
    let is_whole = |text: Vec<u8>| serde_json::from_slice::<serde_json::Value>(&text).is_ok();
    if read(witness).is_ok_and(|text| !is_whole(text)) {
        let says = format!("the witness {shown} is damaged");
        let remedy = "where the ledger was not put back, delete it";
        findings.add((CHECK, Grade::SomethingToDo), says, remedy);
    }
}

/// Checks the files of a SQLite ledger.
pub(super) fn look_at_ledger(ledger: &Path, user: &User, findings: &mut Findings) {
    const CHECK: &str = "ledger";
    let folder = ledger.parent().unwrap_or(Path::new("."));
    let name = user.name();
    if let Err(why) = user.may(Deed::Write, &nearest(folder)) {
        let says = format!("the service's user {name} cannot make files beside the ledger: {why}");
        let remedy = format!("give the folder to that user: chown {name} {}", folder.display());
        findings.add((CHECK, Grade::SomethingToDo), says, remedy);
    }
    for ending in BESIDE {
        let mut path = ledger.as_os_str().to_owned();
        path.push(ending);
        let path = PathBuf::from(path);
        if let (true, Err(why)) = (path.exists(), user.may(Deed::Write, &path)) {
            let says = format!("the service's user {name} cannot write to the ledger: {why}");
            let remedy = format!("chown {name} {}, and do not delete it", path.display());
            findings.add((CHECK, Grade::SomethingToDo), says, remedy);
        }
    }
    room(&nearest(folder), (CHECK, "make room"), findings);
}
