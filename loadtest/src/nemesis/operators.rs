//! Faults that people cause: a ledger that is released while a process sleeps, a copy that was
//! released elsewhere, a file that is moved, a clock, rights, locks.

use std::time::{Duration, Instant};

use testkit::postgres::Postgres;
use testkit::service::Deployment;

use super::faults::LAG;
use super::ledger::SCHEMA;
use super::turn::faked;
use super::world::World;

/// How long a ledger that went back may take to be held.
const HELD_LIMIT: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(20);

/// How far a clock is set off: more than half of `sweep.keep`, and more than any bound on clocks.
const AHEAD: &str = "+32d";

impl World {
    /// A process is suspended with numbers that the ledger then loses, and an operator releases the
    /// ledger before the process resumes.
    pub(super) async fn fall_asleep(&mut self, node: usize) {
        self.begin_counters().await;
        let standby = self.standby_that_lags().await;
        self.nodes[node].service.signal("STOP");
        self.promote(standby);
        self.release_once_held().await;
    }

    /// A copy is released on trial, and later put in the ledger's place.
    pub(super) async fn put_branch_back(&mut self) {
        self.begin_counters().await;
        self.rest().await;
        let production = self.ledger.server();
        production.back_up();
        let staging = production.start_on_copy();
        self.release_elsewhere(&staging.url(SCHEMA));
        tokio::time::sleep(LAG).await;
        self.take_data_of(staging);
        self.release_once_held().await;
    }

    fn take_data_of(&mut self, staging: Postgres) {
        self.ledger.server().take_data_of(staging);
    }

    /// The same of a file.
    pub(super) async fn put_branched_file_back(&mut self) {
        self.begin_counters().await;
        self.ledger.file().copy();
        let url = self.ledger.file().url_of_copy();
        self.release_elsewhere(&url);
        self.ledger.file().settle_copy();
        tokio::time::sleep(LAG).await;
        self.ledger.file().put_back();
    }

    /// Releases a copy as a rehearsal does: no node there knows of anything that it lacks.
    fn release_elsewhere(&self, url: &str) {
        let mut rehearsal = Deployment::new(self.turn.program(), url, None);
        rehearsal.extra.clone_from(self.operators_settings());
        let arguments = ["reconcile", "--ledger-restored", "--hold", "--apply", "--margin", "0"];
        rehearsal.ok(&[&arguments[..], &["--without-redis"]].concat());
    }

    /// An operator releases the ledger immediately: it would not continue automatically.
    async fn release_once_held(&mut self) {
        let deadline = Instant::now() + HELD_LIMIT;
        while !self.is_held() && Instant::now() < deadline {
            tokio::time::sleep(POLL).await;
        }
        self.release();
    }

    /// Stops everything in the proper way, and leaves the files next to the ledger's file behind.
    pub(super) fn move_file(&mut self) {
        self.terminate();
        self.ledger.file().move_alone();
    }

    /// Restarts a process with a wrong clock.
    pub(super) fn set_clock_ahead(&mut self, index: usize) {
        self.nodes[index].service.kill();
        self.launch_as(index, faked(AHEAD));
    }

    /// The writer of a batch is refused the right.
    pub(super) fn revoke_journal(&mut self) {
        self.ledger.server().sql(&format!(
            "create function {SCHEMA}.no_right() returns trigger language plpgsql as $$ begin \
             raise exception 'permission denied for table journal_batch' using errcode = '42501'; \
             end $$; \
             create trigger no_right before insert on {SCHEMA}.journal_batch \
             for each statement execute function {SCHEMA}.no_right()"
        ));
    }

    /// The right is granted again.
    pub(super) fn grant_journal(&mut self) {
        self.ledger.server().sql(&format!(
            "drop trigger no_right on {SCHEMA}.journal_batch; drop function {SCHEMA}.no_right()"
        ));
    }

    /// The state during a restore that is not one transaction.
    pub(super) fn take_tables_away(&mut self) {
        self.ledger.server().sql(&format!("alter schema {SCHEMA} rename to away"));
    }

    /// They are there again.
    pub(super) fn bring_tables_back(&mut self) {
        self.ledger.server().sql(&format!("alter schema away rename to {SCHEMA}"));
    }

    /// A session locks the journal for this time.
    pub(super) fn lock_journal(&mut self, hold: Duration) {
        let seconds = hold.as_secs_f64();
        self.ledger.server().sql_behind(&format!(
            "begin; lock table {SCHEMA}.journal in access exclusive mode; \
             select pg_sleep({seconds}); rollback"
        ));
    }
}
