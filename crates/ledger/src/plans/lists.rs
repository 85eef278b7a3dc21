//! The list queries, each as its callers ask it, on a ledger with as many rows as make a plan
//! worth while.

use std::sync::Arc;

use numerator_runtime::clock::ManualClock;
use testkit::postgres::Postgres;
use uuid::Uuid;

use super::{EXPLAINED, Explained};
use crate::query::QueryBuilder;
use crate::store::commit;
use crate::{
    Bindable, ChainQuery, CounterFilter, Deployment, EventFilter, GapFilter, JournalFilter, Ledger,
    LedgerError, LedgerSettings, Migrate, SearchPace, Sort, ValueOf, ValueRuns, open,
};

/// When the last row was issued.
const NOW_US: i64 = 1_700_000_000_000_000;

/// Rows of the journal: more than a look through all of them is worth.
const ROWS: i64 = 100_000;

/// Values of each counter.
const VALUES: i64 = 1_000;

fn settings() -> LedgerSettings {
    LedgerSettings { migrate: Migrate::Auto, connections_max: 2, ..LedgerSettings::default() }
}

/// What fills a ledger, one statement each. `{bytes}` is the engine's type of bytes, `{day}` a day
/// by `n`.
const FILL: [&str; 7] = [
    "insert into journal_name (name) select 'user-' || n from n where n <= 200",
    "insert into journal_kind (series_id, version, type_code, project)
     select n, 1, 'T' || n, 'P' || n from n where n <= 20",
    "insert into journal_batch (epoch, journaled_at_us, partition_id, line_count, node_id, seal)
     select 1, {now} - n, 1, 300, cast('0123456789abcdef' as {bytes}), cast('x' as {bytes})
     from n where n <= 100",
    "insert into counter (series_id, serial, key, partition_id, epoch, origin, start_value, taken,
     ceiling, step, journaled, seeded_by, seeded_at_us)
     select n % 20 + 1, 'seq', 'year=' || n, 1, 1, 0, 0, 300, 300, 1, 300,
     cast('0123456789abcdef' as {bytes}), {now} from n where n <= 100",
    "insert into journal (counter_id, first_value, batch_id, issued_at_us, kind_id, user_name_id,
     document_day, allocation_id, number, scope, outline, document_id, idempotency_key)
     select n / {values} + 1, n % {values} + 1, n % 100 + 1, {now} - ({rows} - n) * 60000000,
     n % 20 + 1, n % 200 + 1, {day}, cast('0123456789abcdef' as {bytes}), 'A-' || n,
     'all', '2{0}', 'D-' || n, 'K-' || n from n where n < {rows}",
    "insert into gap (counter_id, first_value, last_value, step, reason, epoch, noted_at_us)
     select n, 1000, 1001, 1, 'discarded', 1, {now} from n where n <= 50",
    "insert into event (at_us, kind, detail) select {now} - n, 'node-started', '{}' from n
     where n <= 1000",
];

async fn fill(ledger: &Ledger) -> Result<(), LedgerError> {
    let deployment = Deployment { deployment_id: Uuid::nil(), partitions: 4, prefix: "nbr".into() };
    ledger.deployment(&deployment).await?;
    let (bytes, day) = match ledger.engine() {
        "sqlite" => ("blob", "date('2024-01-01', '+' || (n % 300) || ' days')"),
        _ => ("bytea", "date '2024-01-01' + cast(n % 300 as integer)"),
    };
    ledger
        .write(async |store| {
            let mut tx = store.begin().await?;
            for text in FILL {
                let text = text
                    .replace("{bytes}", bytes)
                    .replace("{day}", day)
                    .replace("{now}", &NOW_US.to_string())
                    .replace("{rows}", &ROWS.to_string())
                    .replace("{values}", &VALUES.to_string());
                let (head, rest) = text.split_once(" select ").expect("an insert that selects");
                let numbers = format!(
                    "{head} with recursive n (n) as (select cast(1 as bigint) union all \
                     select n + 1 from n where n < {ROWS}) select {rest}"
                );
                QueryBuilder::new(&numbers).build().once().execute(&mut *tx).await?;
            }
            commit(tx).await
        })
        .await
}

/// Fails where a list reads the whole journal, or runs no statement at all.
async fn must_be_led<T>(
    explained: &Arc<Explained>,
    name: &str,
    list: impl Future<Output = Result<T, LedgerError>>,
) {
    EXPLAINED.scope(Arc::clone(explained), list).await.unwrap_or_else(|e| panic!("{name}: {e}"));
    assert!(explained.count() > 0, "{name}: no statement was explained");
    let whole = explained.whole_journals();
    assert!(whole.is_empty(), "{name} reads the whole journal:\n{}", whole.join("\n\n"));
}

fn find(change: impl FnOnce(&mut JournalFilter)) -> JournalFilter {
    let mut filter = JournalFilter { limit: 50, ..JournalFilter::default() };
    change(&mut filter);
    filter
}

fn filters() -> Vec<(&'static str, JournalFilter)> {
    vec![
        ("newest numbers", find(|_| {})),
        ("a number", find(|it| it.number = Some("A-77".into()))),
        ("numbers that begin so", find(|it| it.number_prefix = Some("A-777".into()))),
        ("numbers in their order", find(|it| it.sort = Sort::Number)),
        ("a document", find(|it| it.document_id = Some("D-77".into()))),
        ("a user", find(|it| it.user_id = Some("user-7".into()))),
        ("a time", find(|it| (it.from_us, it.until_us) = (Some(NOW_US - 9_000_000_000), None))),
        ("a series", find(|it| it.series_id = Some(7))),
        ("a type", find(|it| it.type_code = Some("T7".into()))),
        ("a project", find(|it| it.project = Some("P7".into()))),
    ]
}

async fn no_list_reads_the_whole_journal(ledger: &Ledger) {
    let of = &Explained::of(ledger.engine());
    for (name, filter) in filters() {
        must_be_led(of, name, ledger.register().find(&filter)).await;
        must_be_led(of, name, ledger.register().find_revised(&filter, SearchPace::Request)).await;
    }
    let register = ledger.register();
    must_be_led(of, "numbers of a document", register.numbers_of("D-77", None, 50)).await;
    must_be_led(of, "a row", register.row_of(7, 77)).await;
    must_be_led(of, "revisions of a text", register.revisions_named("A-77", 50)).await;
    must_be_led(of, "gaps", register.gaps(&GapFilter::default())).await;
    let of_series = GapFilter { series_id: Some(7), ..GapFilter::default() };
    must_be_led(of, "gaps of a series", register.gaps(&of_series)).await;
    let (number, pace) = (ValueOf { counter_id: 7, value: 77 }, SearchPace::Request);
    must_be_led(of, "gaps beside numbers", register.gaps_beside(&[number], 50, pace)).await;
    let all = find(|_| {});
    must_be_led(of, "gaps alone", register.gaps_without_numbers(&all, None, pace)).await;
    must_be_led(of, "collisions", register.collisions(50)).await;
    let audits = ledger.audits();
    must_be_led(of, "holes", audits.holes(7, 0, VALUES, 50)).await;
    let behind = ValueOf { counter_id: 7, value: 7 };
    must_be_led(of, "written rows", audits.written(behind, 8, false, 50)).await;
    must_be_led(of, "holders", audits.holders(&[("A-77".into(), "all".into())])).await;
    must_be_led(of, "stray revisions", audits.stray_revisions(50)).await;
    must_be_led(of, "records of nobody", audits.nobodys(50)).await;
    let counters = ledger.counters();
    must_be_led(of, "counters", counters.list(&CounterFilter::default())).await;
    let of_series = CounterFilter { series_id: Some(7), ..CounterFilter::default() };
    must_be_led(of, "counters of a series", counters.list(&of_series)).await;
    for runs in [ValueRuns::Issued, ValueRuns::Gaps] {
        must_be_led(of, "counters of a value", counters.holding(runs, (7, "seq"), &[], 77)).await;
    }
    must_be_led(of, "all counters", counters.page(0, 50)).await;
    must_be_led(of, "events", ledger.events().find(&EventFilter::default())).await;
    must_be_led(of, "newest events", ledger.events().list(50)).await;
    must_be_led(of, "changes", ledger.approvals().list(None, false, 50)).await;
    must_be_led(of, "tokens", ledger.tokens().list("", 50)).await;
    let chain = ChainQuery { unified_serial: "U-7".into(), after: None, limit: 50 };
    must_be_led(of, "a chain of serials", ledger.exchange().chain(&chain)).await;
    must_be_led(of, "files of the archive", ledger.archive().files(0, 50)).await;
    must_be_led(of, "files of a number", ledger.archive().of_number("A-77")).await;
    must_be_led(of, "files of a document", ledger.archive().of_document("D-77")).await;
    must_be_led(of, "checkpoints", ledger.checkpoints().list(0, 50)).await;
    let batches = ledger.checkpoints().bindable(None, Bindable::Batches, (0, 100), 50);
    must_be_led(of, "what a checkpoint binds", batches).await;
}

#[tokio::test]
async fn no_list_on_sqlite_reads_the_whole_journal() {
    let folder = tempfile::tempdir().expect("folder");
    let url = format!("sqlite:{}", folder.path().join("ledger.db").display());
    let ledger = open(&url, settings(), Arc::new(ManualClock::at(NOW_US))).await.expect("open");
    fill(&ledger).await.expect("filled");
    no_list_reads_the_whole_journal(&ledger).await;
    ledger.close().await;
}

#[tokio::test]
async fn no_list_on_postgres_reads_the_whole_journal() {
    let server = Postgres::start();
    let url = server.empty_url("plans");
    let ledger = open(&url, settings(), Arc::new(ManualClock::at(NOW_US))).await.expect("open");
    fill(&ledger).await.expect("filled");
    server.sql("analyze");
    no_list_reads_the_whole_journal(&ledger).await;
    ledger.close().await;
}
