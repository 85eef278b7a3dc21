//! What the database refuses: what caused it, and what happens to what is set aside.

use numerator::ledger::{
    Closing, CounterSpec, Entry, JournalFilter, JournaledAgain, LedgerError, TakeOutcome,
};

use super::world::{LOCK_WAIT, World, entry, order, question, range, spec, with};

impl World {
    /// Makes the database refuse inserts into a table under a condition, as a constraint does.
    pub(super) async fn refuse(&self, table: &str, condition: &str) {
        if self.ledger.engine() == "sqlite" {
            self.plain_sql(&format!(
                "create trigger broken before insert on {table} when {condition} \
                 begin select raise(abort, 'broken'); end"
            ))
            .await;
        } else {
            self.plain_sql(&format!(
                "create or replace function broken() returns trigger language plpgsql as $$ \
                 begin raise exception 'broken' using errcode = '23514'; end $$; \
                 create trigger broken before insert on {table} for each row when ({condition}) \
                 execute function broken()"
            ))
            .await;
        }
    }

    /// Makes it accept them again.
    pub(super) async fn allow(&self, table: &str) {
        let of_table = if self.ledger.engine() == "sqlite" { "" } else { table };
        let on = if of_table.is_empty() { "" } else { " on " };
        self.plain_sql(&format!("drop trigger broken{on}{of_table}")).await;
    }

    async fn plain_sql(&self, sql: &str) {
        let sql = sqlx::AssertSqlSafe(sql.to_owned());
        if self.ledger.engine() == "sqlite" {
            let pool = sqlx::SqlitePool::connect(&self.url).await.unwrap();
            sqlx::raw_sql(sql).execute(&pool).await.unwrap();
        } else {
            let pool = sqlx::PgPool::connect(&self.url).await.unwrap();
            sqlx::raw_sql(sql).execute(&pool).await.unwrap();
        }
    }

    async fn totals(&self) -> (u64, u64) {
        let totals = self.ledger.register().totals().await.unwrap();
        (totals.journal, totals.rejected)
    }
}

/// An entry for a document, with a key.
fn of_document(entry: Entry, document: &str) -> Entry {
    with(entry, |record| {
        record.document_id = Some(document.into());
        record.idempotency_key = Some(format!("key of {document}"));
    })
}

pub(super) async fn a_record_is_to_blame_only_where_a_plain_one_is_taken(world: World) {
    let open = world.redis_epoch(Closing::Exact).await;
    let (id, ..) = world.seed(open, &spec("k")).await;
    let append = async |entries: &[Entry]| world.ledger.append(world.node, entries).await;
    let again = async |entries: &[Entry]| world.ledger.journal_again(world.node, entries).await;
    let bad = of_document(entry(open, id, 1), "bad");
    for (table, every) in [
        ("journal", "new.counter_id > 0"),
        ("journal_batch", "new.batch_id > 0"),
        ("journal_kind", "new.version >= 0"),
        ("journal_name", "new.name <> ''"),
    ] {
        world.refuse(table, every).await;
        for refused in
            [append(std::slice::from_ref(&bad)).await, again(std::slice::from_ref(&bad)).await]
        {
            let error = refused.expect_err(table);
            assert!(matches!(error, LedgerError::Fault(_)) && error.retry_useful(), "{error}");
        }
        world.allow(table).await;
    }
    world.refuse("journal", "new.document_id = 'bad'").await;
    let both = [bad.clone(), entry(open, id, 2)];
    let error = append(&both).await.expect_err("one of them");
    assert!(matches!(error, LedgerError::Unfit(_)), "{error}");
    for refused in
        [append(std::slice::from_ref(&bad)).await, again(std::slice::from_ref(&bad)).await]
    {
        let error = refused.expect_err("it alone");
        assert!(matches!(error, LedgerError::Refused(_)), "{error}");
    }
    let adopted = world.ledger.adopt(open, world.node, std::slice::from_ref(&bad), false).await;
    assert!(matches!(adopted, Err(LedgerError::Refused(_))), "{adopted:?}");
    assert_eq!(world.totals().await, (0, 0), "nothing of the proof stays");
    assert_eq!(world.ledger.counters().page(0, 10).await.unwrap().len(), 1, "nor a counter of it");
    world.allow("journal").await;
    world.append(&both).await;
    world.verify().await;
}

pub(super) async fn a_table_that_is_missing_is_nobodys_fault(world: World) {
    let open = world.redis_epoch(Closing::Exact).await;
    let (id, ..) = world.seed(open, &spec("k")).await;
    assert_eq!(world.ledger.lacks().await.unwrap(), []);
    for table in ["journal_batch", "journal_name", "counter"] {
        world.plain_sql(&format!("alter table {table} rename to away")).await;
        let lacks = world.ledger.lacks().await.unwrap();
        let missing = format!("table {table} is missing");
        assert!(lacks.iter().any(|lack| lack.to_string().contains(&missing)), "{lacks:?}");
        for refused in [
            world.ledger.append(world.node, &[entry(open, id, 1)]).await,
            world.ledger.journal_again(world.node, &[entry(open, id, 1)]).await,
        ] {
            let error = refused.expect_err(table);
            assert!(matches!(error, LedgerError::Fault(_)), "{error}");
        }
        world.plain_sql(&format!("alter table away rename to {table}")).await;
    }
    world.append(&[entry(open, id, 1)]).await;
}

pub(super) async fn what_is_put_aside_was_issued(world: World) {
    let open = world.redis_epoch(Closing::Exact).await;
    let wide = |key| CounterSpec { headroom: 100, ..spec(key) };
    let (id, ..) = world.seed(open, &wide("k")).await;
    let (other, ..) = world.seed(open, &wide("other")).await;
    let mut aside = of_document(range(open, id, 1, 2), "doc");
    aside.number = "same-003".into();
    world.ledger.reject(&aside, "test").await.unwrap();
    // Each kind of question alone.
    let mut by_document = question(&aside.record);
    by_document.idempotency_key = None;
    let mut by_key = question(&aside.record);
    by_key.document_id = None;
    let mut stranger = by_key.clone();
    stranger.user_id = "somebody else".into();
    let questions = [by_document, by_key, stranger];
    for found in [
        world.ledger.replays(&questions).await.unwrap(),
        world.ledger.ask(open.partition, &questions).await.unwrap(),
    ] {
        assert_eq!(found[0].by_document.as_ref(), Some(&aside));
        assert_eq!(found[1].by_key.as_ref(), Some(&aside));
        assert_eq!(found[2], numerator::ledger::Found::default(), "only its own keys");
    }
    // People.
    let filter = |number: &str| JournalFilter {
        number: Some(number.to_owned()),
        ..JournalFilter::default()
    };
    let found = world.ledger.register().find(&filter(&aside.number)).await.unwrap();
    assert_eq!((found.len(), &found[0].entry, found[0].is_put_aside), (1, &aside, true));
    let of_document = JournalFilter { document_id: Some("doc".into()), ..JournalFilter::default() };
    assert_eq!(world.ledger.register().find(&of_document).await.unwrap(), found);
    assert_eq!(world.ledger.register().find(&JournalFilter::default()).await.unwrap(), found);
    assert_eq!(world.ledger.register().find(&filter("other")).await.unwrap(), []);
    assert_eq!(world.ledger.register().row_of(id, 2).await.unwrap().as_ref(), found.first());
    // A second number with its text, a second one with its values.
    let mut same_text = with(entry(open, other, 1), |record| {
        record.counter_keys = vec!["other".into()];
        record.scope.clone_from(&aside.record.scope);
    });
    same_text.number.clone_from(&aside.number);
    let same_value = entry(open, id, 2);
    let twice = [same_text, same_value];
    let appended = world.ledger.append(world.node, &twice).await.unwrap();
    let ids: Vec<_> = twice.iter().map(|entry| entry.record.allocation_id).collect();
    assert_eq!((appended.written, &appended.collisions), (0, &ids));
    // The same allocation is known.
    let appended = world.ledger.append(world.node, std::slice::from_ref(&aside)).await.unwrap();
    assert_eq!((appended.written, appended.known), (0, 1));
    // The database path: its own number for the document, and no number with its text.
    let database = world.database_epoch().await;
    let asked = [order("doc")];
    let taken = world.ledger.take(database, world.node, &asked, LOCK_WAIT).await.unwrap();
    let TakeOutcome::Found(found) = &taken.outcomes[0] else { panic!("{taken:?}") };
    assert_eq!(found.by_document.as_ref(), Some(&aside));
    let equal = [order("same")];
    let taken = world.ledger.take(database, world.node, &equal, LOCK_WAIT).await.unwrap();
    assert!(matches!(taken.outcomes[0], TakeOutcome::Collided { .. }), "{taken:?}");
    let next = world.take(database, order("next")).await;
    assert_eq!(next.taken[0].range.first, 4, "3 is spent");
    world.verify().await;
}

pub(super) async fn what_is_put_aside_is_journaled_again_once(world: World) {
    let open = world.redis_epoch(Closing::Exact).await;
    let (id, ..) = world.seed(open, &spec("k")).await;
    world.append(&[entry(open, id, 1)]).await;
    let bad = of_document(range(open, id, 2, 3), "bad");
    world.ledger.reject(&bad, "for a test").await.unwrap();
    let counter = async || world.ledger.counters().get(7, "SEQ", "k").await.unwrap().unwrap();
    let before = counter().await;
    let allocation_id = bad.record.allocation_id;
    let again = async || world.ledger.journal_put_aside(world.node, allocation_id, "me").await;
    let listed = world.ledger.put_aside(0, 10).await.unwrap();
    assert_eq!((listed.len(), listed[0].entry.as_ref()), (1, Some(&bad)));
    // The cause still exists.
    world.refuse("journal", "new.document_id = 'bad'").await;
    let error = again().await.expect_err("refused");
    assert!(matches!(error, LedgerError::Unfit(_)), "{error}");
    assert_eq!(world.totals().await, (1, 1), "it stays where it is");
    world.allow("journal").await;
    assert_eq!(again().await.unwrap(), JournaledAgain::Journaled);
    assert_eq!(world.totals().await, (2, 0));
    assert_eq!(counter().await, before, "it is counted once");
    assert_eq!(world.ledger.register().row_of(id, 3).await.unwrap().unwrap().entry, bad);
    assert_eq!(again().await.unwrap(), JournaledAgain::Gone);
    let event = world.ledger.events().list(1).await.unwrap().remove(0);
    assert_eq!((&*event.kind, &event.detail["by"]), ("journaled-again", &"me".into()));
    assert_eq!(event.detail["refused_for"], "for a test");
    world.verify().await;
    world.redis_epoch(Closing::Exact).await;
    world.ledger.settle(id).await.unwrap();
    assert_eq!(world.gaps(id).await, []);
    assert_eq!(world.ledger.unsettled(10).await.unwrap(), []);
}
