//! Copies of a server's data folder: a backup, a second server on it, and either one put in the
//! place of the data of now.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use super::{Postgres, give_to_server, run};
use crate::process::free_port;

impl Postgres {
    /// Copies the data folder of the stopped server, as a backup would, and starts it again. An
    /// earlier backup is removed.
    pub fn back_up(&mut self) {
        self.kill();
        let (data, copy) = (self.folder.path().join("data"), self.folder.path().join("copy"));
        if copy.exists() {
            fs::remove_dir_all(&copy).unwrap();
        }
        run(Command::new("cp").arg("-a").arg(&data).arg(&copy));
        self.run();
    }

    /// Puts the copy in the place of the data folder, and starts the server on it.
    pub fn restore(&mut self) {
        self.kill();
        let (data, copy) = (self.folder.path().join("data"), self.folder.path().join("copy"));
        fs::remove_dir_all(&data).unwrap();
        run(Command::new("cp").arg("-a").arg(&copy).arg(&data));
        self.run();
    }

    /// Starts a second server on the last backup of this one.
    pub fn start_on_copy(&self) -> Self {
        let folder = tempfile::Builder::new().prefix("numerator-copy-").tempdir().unwrap();
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
        let (copy, data) = (self.folder.path().join("copy"), folder.path().join("data"));
        run(Command::new("cp").arg("-a").arg(copy).arg(data));
        give_to_server(folder.path());
        let settings = self.settings;
        let mut server = Postgres { process: None, folder, port: free_port(), settings };
        server.run();
        server
    }

    /// Continues with the data of another server, which ends.
    pub fn take_data_of(&mut self, mut other: Postgres) {
        other.kill();
        self.kill();
        let [mine, theirs] = [&*self, &other].map(|server| server.folder.path().join("data"));
        fs::remove_dir_all(&mine).unwrap();
        run(Command::new("cp").arg("-a").arg(theirs).arg(mine));
        self.run();
    }
}
