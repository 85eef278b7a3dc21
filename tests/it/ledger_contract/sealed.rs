//! A record under seal for experiments: a ledger with a key, and three batches in it.

use std::io::Cursor;
use std::sync::Arc;

use numerator::clock::SharedClock;
use numerator::engine::sealing::{AuditKey, Line, Made, make};
use numerator::features::checkpoints::{AuditReport, Kept, Place, Trust, verify};
use numerator::ledger::{At, Bindable, Closing, Entry, LedgerSettings, SharedLedger, open};
use numerator::node::NodeId;

use super::world::{World, connections, entry, range, spec, with};

/// A ledger with a key, and some batches in it.
pub(super) struct Kit {
    pub(super) world: World,
    pub(super) at: At,
    pub(super) key: Arc<AuditKey>,
}

pub(super) fn new_key() -> Arc<AuditKey> {
    Arc::new(AuditKey::read(&AuditKey::make().unwrap()).unwrap())
}

pub(super) async fn opened(world: &World, key: Option<&AuditKey>) -> SharedLedger {
    let settings = LedgerSettings { mac_key: key.map(AuditKey::proof), ..connections(4) };
    open(&world.url, settings, world.clock.clone()).await.unwrap()
}

impl Kit {
    /// The ledger opened with a key, three batches in it.
    pub(super) async fn of(mut world: World) -> Kit {
        let key = new_key();
        world.ledger = opened(&world, Some(&key)).await;
        world.node = NodeId::random();
        world.join(world.node).await;
        let at = world.redis_epoch(Closing::Exact).await;
        let kit = Kit { world, at, key };
        kit.write("k").await;
        kit
    }

    /// Writes three batches: five numbers and a range, one of them with all that a row may have.
    pub(super) async fn write(&self, key: &str) {
        let (world, at) = (&self.world, self.at);
        let (id, ..) = world.seed(at, &spec(key)).await;
        let full = with(entry(at, id, 2), |record| {
            record.idempotency_key = Some(format!("key-{key}"));
            record.project = Some("P".into());
        });
        let named = |mut entry: Entry| {
            entry.number = format!("{key}-{}", entry.taken[0].range.first);
            Arc::make_mut(&mut entry.record).mask = format!("{key}-{{0}}");
            entry
        };
        world.append(&[named(entry(at, id, 1)), named(full), named(entry(at, id, 3))]).await;
        world.append(&[named(range(at, id, 4, 9))]).await;
        world.append(&[named(entry(at, id, 10))]).await;
    }

    /// Gives the numbers a series, as a service would have had one.
    pub(super) async fn name_series(&self) {
        let own_ids = self.own_ids();
        let named = format!(
            "insert into series (series_id, code, partition, active_version) {own_ids} \
             values (7, 'S', 2, 1); \
             insert into series_version (series_id, version, definition, saved_by, reason, \
             saved_at_us) values (7, 1, '{{}}', 'u', 'r', 1)"
        );
        self.world.sql(&named).await;
    }

    /// What an insert with ids of its own says before its values.
    pub(super) fn own_ids(&self) -> &'static str {
        if self.world.ledger.engine() == "sqlite" { "" } else { "overriding system value" }
    }

    pub(super) async fn checkpoint(&self) {
        let clock: SharedClock = self.world.clock.clone();
        let made = make(&self.world.ledger, &clock, "n", &self.key).await.unwrap();
        assert_eq!(made, Made::Whole);
    }

    /// A checkpoint during other writes: what arrives meanwhile is bound by the next.
    pub(super) async fn try_checkpoint(&self) {
        let clock: SharedClock = self.world.clock.clone();
        make(&self.world.ledger, &clock, "n", &self.key).await.unwrap();
    }

    pub(super) async fn report_with(&self, kept: Option<&str>) -> AuditReport {
        let trust = Trust { keys: vec![self.key.public()], from: 1 };
        let kept = kept.map(|lines| Kept::read(Cursor::new(lines.to_owned())).unwrap());
        verify(&self.world.ledger, &trust, kept, &mut || Ok(None), |_, _| ()).await.unwrap()
    }

    pub(super) async fn report(&self) -> AuditReport {
        self.report_with(None).await
    }

    /// What differs, in the order in which it is named.
    pub(super) async fn complaint(&self) -> (Place, String) {
        let report = self.report().await;
        assert!(!report.is_clean(), "nothing is seen:\n{report}");
        (report.findings[0].place, report.to_string())
    }

    pub(super) async fn assert_clean(&self) -> AuditReport {
        let report = self.report().await;
        assert!(report.is_clean(), "{report}");
        report
    }

    pub(super) async fn batches(&self) -> Vec<i64> {
        let all = self
            .world
            .ledger
            .checkpoints()
            .bindable(None, Bindable::Batches, (0, i64::MAX), 100)
            .await
            .unwrap();
        all.into_iter().map(|row| row.id).collect()
    }

    /// The checkpoints as they are kept elsewhere.
    pub(super) async fn lines(&self) -> String {
        let all = self.world.ledger.checkpoints().list(0, 100).await.unwrap();
        let line = |signed| serde_json::to_string(&Line::of(signed)).unwrap() + "\n";
        all.iter().map(line).collect()
    }

    /// Keeps the journal as it is, to restore it.
    pub(super) async fn keep(&self) {
        self.world
            .sql(
                "create table kept as select * from journal; \
                 create table kept_batch as select * from journal_batch; \
                 create table kept_name as select * from journal_name",
            )
            .await;
    }

    pub(super) async fn put_back(&self) {
        let own_ids = match self.world.ledger.engine() {
            "sqlite" => "",
            _ => "overriding system value",
        };
        let put_back = format!(
            "delete from journal; insert into journal select * from kept; \
             delete from journal_batch; \
             insert into journal_batch {own_ids} select * from kept_batch; \
             delete from journal_name; \
             insert into journal_name {own_ids} select * from kept_name"
        );
        self.world.sql(&put_back).await;
    }

    /// Inserts a copy of `k-1` as another number, in another batch.
    pub(super) async fn add_row(&self, batch: &str) {
        let columns = "last_value, step, allocation_id, scope, mask, outline, rest, context, \
                       document_id, idempotency_key, document_day, digest, issued_at_us, \
                       retry_count, path, kind_id, user_name_id, address_name_id";
        let add = format!(
            "insert into journal (counter_id, first_value, number, batch_id, {columns}) \
             select counter_id, 99, 'k-99', {batch}, {columns} from journal where number = 'k-1'"
        );
        self.world.sql(&add).await;
    }
}
