//! A standby of a PostgreSQL server: it follows, lags on request, and is promoted.
//!
//! No wait here is for a fixed time: a lagging standby has exactly what it had.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use super::{Postgres, command_as_server, give_to_server, run, wait_until};
use crate::process::free_port;

/// The name of a standby: `synchronous_standby_names` may name it.
pub const STANDBY: &str = "standby";

impl Postgres {
    /// Starts a standby of this server on its own port, and waits until it follows. It is
    /// asynchronous until this server's `synchronous_standby_names` names [`STANDBY`].
    pub fn start_standby(&self) -> Self {
        let folder = tempfile::Builder::new().prefix("numerator-standby-").tempdir().unwrap();
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
        give_to_server(folder.path());
        let mut backup = command_as_server("pg_basebackup");
        backup.args(["--checkpoint=fast", "--no-sync", "--write-recovery-conf", "--pgdata"]);
        backup.arg(folder.path().join("data")).arg(format!("--dbname={}", self.as_primary()));
        run(&mut backup);
        let settings = self.settings;
        let mut standby = Postgres { process: None, folder, port: free_port(), settings };
        standby.run();
        standby.wait_until_streaming();
        standby
    }

    /// Makes a standby receive nothing more: it does not have the later commits of its primary, and
    /// would not have them after a promotion.
    pub fn fall_behind(&self) {
        self.follow("");
        let receives = || self.sql("select count(*) from pg_stat_wal_receiver") != "0";
        wait_until(|| !receives(), "the standby goes on receiving");
    }

    /// Makes a standby follow this primary again, and waits until it has caught up.
    pub fn catch_up(&self, primary: &Postgres) {
        self.follow(&primary.as_primary());
        self.wait_until_streaming();
        let end = primary.sql("select pg_current_wal_flush_lsn()");
        let shows = format!("select pg_last_wal_replay_lsn() >= '{end}'::pg_lsn");
        wait_until(|| self.sql(&shows) == "t", "the standby does not catch up");
    }

    /// Makes a standby a primary of a new timeline with all that it has received; it takes writes
    /// when this returns. The old primary is not informed: it goes on until it is killed.
    pub fn promote(&self) {
        assert_eq!(self.sql("select pg_promote()"), "t", "{}", self.log());
    }

    /// How a standby finds this server.
    fn as_primary(&self) -> String {
        format!("host=127.0.0.1 port={} user=postgres application_name={STANDBY}", self.port)
    }

    fn follow(&self, primary: &str) {
        self.sql(&format!("alter system set primary_conninfo = '{primary}'"));
        self.sql("select pg_reload_conf()");
    }

    fn wait_until_streaming(&self) {
        let status = "select status from pg_stat_wal_receiver";
        wait_until(|| self.sql(status) == "streaming", "the standby does not follow");
    }
}
