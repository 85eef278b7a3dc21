//! The files of an embedded ledger are accessible to their owner only, whatever the umask says.

use std::fs::{Permissions, metadata, set_permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use testkit::eventually::eventually;
use testkit::process::free_port;

const LIMIT: Duration = Duration::from_secs(20);

/// Serves from a folder under a umask that forbids nothing; ready when it returns.
async fn serve(data_dir: &Path) -> Child {
    let address = format!("127.0.0.1:{}", free_port());
    let child = Command::new("sh")
        .args(["-c", "umask 0; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_numerator")])
        .args(["--listen", &address, "serve", "--data-dir"])
        .arg(data_dir)
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    eventually(LIMIT, async || {
        let answer = testkit::get(format!("http://{address}/readyz")).await;
        answer.map(|_| ()).map_err(|error| error.to_string())
    })
    .await;
    child
}

fn mode(path: &Path) -> u32 {
    metadata(path).unwrap().permissions().mode() & 0o777
}

/// Files of the folder whose rights go beyond their owner, and how many files there are.
fn open_to_others(folder: &Path) -> (Vec<String>, usize) {
    let files: Vec<_> = folder.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    let open = files.iter().filter(|path| mode(path) != 0o600);
    (open.map(|path| format!("{} {:o}", path.display(), mode(path))).collect(), files.len())
}

#[tokio::test]
async fn an_embedded_ledger_is_its_owners_alone_whatever_the_umask_says() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("data");
    let mut service = serve(&folder).await;
    let (open, files) = open_to_others(&folder);
    // Database, -wal, -shm, lock and mark; a witness comes with a heartbeat.
    assert!(open.is_empty() && files >= 5, "{open:?} of {files}");
    assert_eq!(mode(&folder), 0o700);
    service.kill().unwrap();
    service.wait().unwrap();
    for entry in folder.read_dir().unwrap() {
        set_permissions(entry.unwrap().path(), Permissions::from_mode(0o644)).unwrap();
    }
    let mut service = serve(&folder).await;
    let ledger = ["", "-wal", "-shm", ".lock", ".mark"];
    let open = ledger.map(|beside| mode(&folder.join(format!("numerator.db{beside}"))));
    assert_eq!(open, [0o600; 5], "what was made before is tightened");
    service.kill().unwrap();
    service.wait().unwrap();
}
