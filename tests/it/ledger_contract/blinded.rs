//! Ways to change the record so that the comparison with its checkpoints would not look there: each
//! is named, with the checkpoints kept elsewhere and the public key given.

use super::forged::Forge;
use super::sealed::Kit;
use super::world::World;

/// A way to blind the comparison.
struct Way {
    /// What is done: ONE, TWO and THREE are the batches, COUNTER the counter of all.
    does: &'static str,
    /// What the report says of it.
    named: &'static str,
}

const fn way(does: &'static str, named: &'static str) -> Way {
    Way { does, named }
}

/// On both engines.
const WAYS: &[Way] = &[
    way(
        "update journal_batch set line_count = 0 where batch_id = ONE; \
         update journal set document_id = 'forged' where number = 'k-1'",
        "batch ONE: its rows are not what was sealed",
    ),
    way(
        "update journal_batch set line_count = 0 where batch_id = ONE; \
         delete from journal where number = 'k-2'; \
         insert into gap (counter_id, first_value, last_value, step, reason, epoch, noted_at_us) \
         values (COUNTER, 2, 2, 1, 'discarded', 1, 1)",
        "batch ONE",
    ),
    way(
        "update journal_batch set line_count = 2 where batch_id = ONE; \
         delete from journal where number = 'k-2'",
        "batch ONE",
    ),
    way(
        "update journal_batch set line_count = -1 where batch_id = ONE; \
         delete from journal where batch_id = ONE",
        "batch ONE",
    ),
    way("update journal_batch set line_count = 7 where batch_id = ONE", "batch ONE"),
    way("update journal_batch set proof = seal where batch_id = ONE", "batch ONE: is not what"),
    way("ROW", "points to batch 777, which is not there"),
    way(
        "update journal set batch_id = 777 where number = 'k-10'",
        "points to batch 777, which is not there",
    ),
    way("BATCH; ROW", "batch -5: has an id below 1"),
    way("ZERO; ROW", "batch 0: has an id below 1"),
    way("EVENT", "event -5: has an id below 1"),
    way("VERSION", "series version -5: has an id below 1"),
    way("CHECKPOINT", "checkpoint -5: has a number below 1"),
    way(
        "delete from journal where counter_id = COUNTER and first_value <= 3; SEGMENT 777",
        "batch ONE: all its rows are gone",
    ),
    way(
        "delete from journal where counter_id = COUNTER and first_value <= 3; BATCH; SEGMENT -5",
        "batch ONE: all its rows are gone",
    ),
    way(
        "delete from journal where counter_id = COUNTER and first_value <= 3; LATE; SEGMENT 777",
        "batch ONE: all its rows are gone",
    ),
    way("LATE; SEGMENT 777", "batch 777"),
    way("update series set code = 'OTHER' where series_id = 7", "series 7: is not what"),
    way("update counter set key = 'other' where counter_id = COUNTER", "counter COUNTER: is not"),
    way("update counter set serial = 'X' where counter_id = COUNTER", "counter COUNTER: is not"),
    way("update counter set series_id = 8 where counter_id = COUNTER", "counter COUNTER: is not"),
    way("delete from counter where counter_id = COUNTER", "counter COUNTER: is gone"),
    way(
        "update series_version set active = 0 where series_version_id = 1",
        "series version 1: is not what",
    ),
];

/// On PostgreSQL: a column may lose its condition, and the view is text itself.
const WAYS_OF_POSTGRES: &[Way] = &[
    way(
        "alter table journal_batch alter seal drop not null; \
         update journal_batch set seal = null, proof = null where batch_id = ONE",
        "batch ONE: is not what",
    ),
    way(
        "alter table journal_batch alter line_count drop not null; \
         update journal_batch set line_count = null where batch_id = ONE; \
         update journal set document_id = 'forged' where number = 'k-1'",
        "batch ONE: its rows are not what was sealed",
    ),
    way(
        "alter table journal alter batch_id drop not null; \
         update journal set batch_id = null where number = 'k-1'",
        "points to batch 0, which is not there",
    ),
    way("VIEW", "view journal_row"),
    way("alter table journal disable trigger journal_stays", "trigger journal_stays of journal"),
    way("drop trigger journal_batch_stays on journal_batch", "trigger journal_batch_stays"),
    way(
        "create or replace function must_stay_as_it_is() returns trigger language plpgsql as \
         'begin return coalesce(new, old); end'",
        "function must_stay_as_it_is",
    ),
    way("alter function make_room(bigint, bigint, bigint) security invoker", "function make_room"),
    way("alter table journal drop constraint journal_number_once", "journal_number_once"),
    way("alter table journal drop constraint journal_value_once", "journal_value_once"),
    way("create table more_rows () inherits (journal)", "table journal"),
    way("alter table journal enable row level security", "table journal"),
    way("create rule hides as on insert to journal do instead nothing", "table journal"),
];

/// On SQLite: rows are ordered by their ids.
const WAYS_OF_SQLITE: &[Way] = &[
    way("BELOW", "batch ONE: has a row more"),
    way(
        "update counter set counter_id = 99 where counter_id = COUNTER",
        "counter COUNTER: is gone",
    ),
    way("VIEW", "view journal_row"),
    way("drop trigger checkpoint_stays", "trigger checkpoint_stays"),
    way("drop index journal_value_once", "journal_value_once"),
];

/// The view as it is, except for one document.
const VIEW_OF_POSTGRES: &str = "do $do$ begin execute replace( \
    'create or replace view journal_row as ' || pg_get_viewdef('journal_row'::regclass), \
    'j.document_id,', \
    'case when j.document_id = ''x'' then ''y'' else j.document_id end collate \"C\" \
    as document_id,'); \
    end $do$";
const VIEW_OF_SQLITE: &str = "create table kept_view as select replace(sql, 'j.document_id,', \
    '''forged'' as document_id,') as text from sqlite_schema where name = 'journal_row'; \
    pragma writable_schema = on; update sqlite_schema set sql = (select text from kept_view) \
    where name = 'journal_row'; pragma writable_schema = reset; drop table kept_view";

const COLUMNS: &str = "last_value, step, allocation_id, scope, mask, outline, rest, document_id, \
                       idempotency_key, document_day, digest, issued_at_us, retry_count, path, \
                       kind_id, user_name_id, address_name_id";

/// The counter whose rows are changed.
const TABLES: [&str; 8] = [
    "journal",
    "journal_batch",
    "counter",
    "series",
    "series_version",
    "event",
    "gap",
    "checkpoint",
];

/// An additional batch, with the seal of the third.
fn batch(own: &str, id: &str, proof: &str) -> String {
    format!(
        "insert into journal_batch (batch_id, epoch, journaled_at_us, partition_id, node_id, \
         line_count, seal, proof) {own} select {id}, epoch, journaled_at_us, partition_id, \
         node_id, 1, seal, {proof} from journal_batch where batch_id = THREE"
    )
}

/// A segment of no file, in a batch.
fn segment(batch: &str) -> String {
    let note = serde_json::json!({
        "file": "journal-1.parquet", "sha256": "ab".repeat(32), "rows": 3, "digest": "00",
    });
    format!(
        "insert into journal (counter_id, first_value, context, batch_id, last_value, \
         allocation_id, document_day, issued_at_us, kind_id, user_name_id) \
         select counter_id, FIRST, '{note}', {batch}, LAST, allocation_id, \
         document_day, issued_at_us, kind_id, user_name_id from journal \
         where number = 'k-10'"
    )
}

/// The statements for the short names of the ways.
fn written_out(kit: &Kit, does: &str) -> String {
    let own = kit.own_ids();
    let row = format!(
        "insert into journal (counter_id, first_value, number, context, batch_id, {COLUMNS}) \
         select counter_id, 99, 'k-99', context, BATCH_OF_ROW, {COLUMNS} from journal \
         where number = 'k-10'"
    );
    let row = row.replace(
        "BATCH_OF_ROW",
        match does {
            _ if does.starts_with("BATCH") => "-5",
            _ if does.starts_with("ZERO") => "0",
            _ => "777",
        },
    );
    let segment = |of| {
        let spot = if does.starts_with("delete") { ("1", "3") } else { ("50", "52") };
        segment(of).replace("FIRST", spot.0).replace("LAST", spot.1)
    };
    let view =
        if kit.world.ledger.engine() == "sqlite" { VIEW_OF_SQLITE } else { VIEW_OF_POSTGRES };
    does.replace("SEGMENT 777", &segment("777"))
        .replace("SEGMENT -5", &segment("-5"))
        .replace("BATCH", &batch(own, "-5", "proof"))
        .replace("ZERO", &batch(own, "0", "proof"))
        .replace("LATE", &batch(own, "777", "null"))
        .replace("ROW", &row)
        .replace(
            "EVENT",
            &format!(
                "insert into event (event_id, at_us, kind, detail) {own} \
                 values (-5, 1, 'x', '{{}}')"
            ),
        )
        .replace(
            "VERSION",
            &format!(
                "insert into series_version (series_version_id, series_id, version, definition, \
                 saved_by, reason, saved_at_us) {own} values (-5, 7, 9, '{{}}', 'u', 'r', 1)"
            ),
        )
        .replace(
            "CHECKPOINT",
            "insert into checkpoint (checkpoint_no, body, public_key, signature) \
             select -5, body, public_key, signature from checkpoint",
        )
        .replace(
            "BELOW",
            &format!(
                "insert into journal (rowid, counter_id, first_value, number, context, batch_id, \
                 {COLUMNS}) select -5, counter_id, 99, 'k-99', context, ONE, {COLUMNS} \
                 from journal where number = 'k-10'"
            ),
        )
        .replace("VIEW", view)
}

pub(super) async fn whatever_would_blind_the_comparison_is_named(world: World) {
    let kit = Kit::of(world).await;
    kit.name_series().await;
    kit.checkpoint().await;
    let [one, two, three] = kit.batches().await[..] else { panic!("three batches") };
    let ids = [("ONE", one), ("TWO", two), ("THREE", three), ("COUNTER", 1)];
    let fill = |text: &str| {
        ids.iter().fold(text.to_owned(), |all, (it, id)| all.replace(it, &id.to_string()))
    };
    let of_engine = match kit.world.ledger.engine() {
        "sqlite" => WAYS_OF_SQLITE,
        _ => WAYS_OF_POSTGRES,
    };
    let kept = kit.lines().await;
    let tables = TABLES.map(str::to_owned);
    let forge = Forge::keep(&kit.world, &tables).await;
    let mut unseen = Vec::new();
    for Way { does, named } in WAYS.iter().chain(of_engine) {
        if let Err(error) = forge.run(&fill(&written_out(&kit, does))).await {
            unseen.push(format!("{does}: {error}"));
            continue;
        }
        let report = kit.report_with(Some(&kept)).await;
        if report.is_clean() || !report.to_string().contains(&fill(named)) {
            unseen.push(format!("{does}: wanted {:?}\n{report}", fill(named)));
        }
        forge.put_objects_back().await;
        forge.put_rows_back(&tables).await;
    }
    assert!(unseen.is_empty(), "{} unseen:\n{}", unseen.len(), unseen.join("\n"));
    let report = kit.report_with(Some(&kept)).await;
    assert!(report.is_clean(), "{report}");
}

/// A migration that changes the basis of the record changes the list, too: the message has its
/// lines.
pub(super) async fn what_the_migrations_make_is_what_is_compared(world: World) {
    let deviations = world.ledger.audits().schema_deviations().await.unwrap();
    let lines = world.ledger.audits().schema_lines().await.unwrap();
    let list: String =
        lines.iter().map(|(name, digest)| format!("    ({name:?}, {digest:?}),\n")).collect();
    let is_whole = lines.iter().all(|(name, _)| world.ledger.audits().names_schema(name));
    assert!(
        deviations.is_empty() && is_whole,
        "crates/ledger/src/definitions/list.rs must say of {}:\n{list}",
        world.ledger.engine()
    );
}
