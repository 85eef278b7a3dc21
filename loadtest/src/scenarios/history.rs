//! A long journal: numbers are looked up by an index, never by reading all of it; `verify` reads
//! all of it in bounded memory; and what a number adds to it.
//!
//! The plans are those of the statements that the service really sends, as PostgreSQL logs them.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::verified::Verified;
use super::{Bench, send};
use crate::load::{Load, shared};
use crate::pace::Pace;
use crate::report::{Row, Section, figure};
use crate::stage::{Path, Served, Stage};
use crate::work::{Ask, LookUps, Numbers};

/// Connections that look numbers up.
const READERS: usize = 4;

/// Numbers per second for which the journal's growth is given per day, and seconds of a day.
const RATES: [f64; 2] = [100.0, 2_000.0];
const DAY_S: f64 = 86_400.0;

/// Numbers of one commit, about what a service under full load has.
const PER_COMMIT: u64 = 27;

/// The row of another value, by column: they came at 100 a second, every hundredth from another
/// user.
const COLUMNS: [(&str, &str); 8] = [
    ("first_value", "n"),
    ("allocation_id", "decode(md5(n::text), 'hex')"),
    ("number", "replace(number, '000000000001', lpad(n::text, 12, '0'))"),
    ("document_id", "'doc-' || lpad(n::text, 12, '0')"),
    ("digest", "decode(md5('p' || n), 'hex')"),
    ("user_name_id", "case when n % 100 = 0 then $user + n / 100 % 1000 else user_name_id end"),
    ("batch_id", "$batch + n / $commit"),
    ("issued_at_us", "issued_at_us - ($rows - n) * 10000"),
];

pub(super) fn run(bench: &Bench, section: &mut Section) {
    let stage = Stage::start(bench.placement);
    let service = stage.service(Path::Redis, "", &[]);
    send(section, &service, &shared(Numbers::hot(Ask::One)), 1, 1);
    section.breaches.extend(service.await_journal(&stage, 1).err());
    let one = Verified::run(&service.deployment, section);
    let schema = service.schema().to_owned();
    let deployment = service.end();
    fill(&stage, &schema, bench.rows);
    // Before plans are logged: this command reads all.
    let newest = newest(&stage, &schema);
    stage.postgres.sql(
        "load 'auto_explain'; alter role postgres set session_preload_libraries = 'auto_explain'; \
         alter role postgres set auto_explain.log_min_duration = 0",
    );
    // Redis holds the earlier state: as if the rows had been lost meanwhile.
    stage.redis.flushall();
    let service = Served::start(deployment, Some(schema.clone()));
    let work = shared(LookUps::new(bench.rows, newest));
    let load = Load { connections: READERS, ..bench.load(service.address, Pace::Closed) };
    let (measured, ()) = load.run(&work, async {});
    section.judge(&measured);
    #[expect(clippy::cast_precision_loss, reason = "no journal here has 2^53 rows")]
    let rows = bench.rows as f64;
    let parted = figure(rows);
    let by = indexes(&stage, section);
    section.rows.extend([(50.0, by.as_str()), (99.0, "")].map(|(percent, note)| {
        let latency_ms = measured.latencies.percentile_ms(percent);
        Row::new(format!("look-up in {parted} rows, p{percent}"), latency_ms, "ms").note(note)
    }));
    section.rows.extend(growth(&stage, &schema, rows));
    let all = Verified::run(&service.deployment, section);
    let rows = [one.row("1 row"), all.row(&format!("{parted} rows"))];
    section.breaches.extend(rows.iter().filter_map(Row::miss));
    section.rows.extend(rows);
}

/// What the journal grows by, with its indexes.
fn growth(stage: &Stage, schema: &str, rows: f64) -> [Row; 3] {
    let of = format!(
        "from pg_class c join pg_namespace n on n.oid = c.relnamespace \
         where n.nspname = '{schema}' and c.relkind in ('r', 'i') and c.relname like 'journal%'"
    );
    let size = stage.postgres.sql(&format!("select sum(pg_relation_size(c.oid)) {of}"));
    let per_number = size.parse::<f64>().expect("a size") / rows;
    let parts = stage.postgres.sql(&format!(
        "select string_agg(c.relname || ' ' || round(pg_relation_size(c.oid) / {rows}), ', ' \
         order by pg_relation_size(c.oid) desc) {of} and pg_relation_size(c.oid) > {rows}"
    ));
    let [few, many] = RATES.map(|rate| {
        let gb = per_number * rate * DAY_S / 1e9;
        Row::new(format!("journal, a day of {} numbers/s", figure(rate)), gb, "GB")
    });
    let whole = Row::new("journal, one number with its indexes", per_number, "bytes");
    [whole.note(&parts), few, many]
}

/// Writes rows like the first one, and the counter that has taken them.
fn fill(stage: &Stage, schema: &str, rows: u64) {
    let columns = stage.postgres.sql(&format!(
        "select string_agg(column_name, ',' order by ordinal_position) \
         from information_schema.columns \
         where table_schema = '{schema}' and table_name = 'journal'"
    ));
    let user = stage.postgres.sql(&format!(
        "with named as (insert into {schema}.journal_name (name) \
         select 'user-' || i from generate_series(0, 999) i returning name_id) \
         select min(name_id) from named"
    ));
    let batch = stage.postgres.sql(&format!(
        "with batch as (insert into {schema}.journal_batch \
         (epoch, journaled_at_us, partition_id, node_id, line_count, seal) \
         select epoch, journaled_at_us, partition_id, node_id, {PER_COMMIT}, seal \
         from {schema}.journal_batch, \
         generate_series(0, {rows} / {PER_COMMIT}) returning batch_id) \
         select min(batch_id) from batch"
    ));
    let expression = |column: &str| {
        let named = COLUMNS.iter().find(|(name, _)| *name == column);
        let expression = named.map_or(column, |(_, expression)| expression);
        let expression = expression.replace("$rows", &rows.to_string());
        let expression = expression.replace("$user", &user).replace("$batch", &batch);
        expression.replace("$commit", &PER_COMMIT.to_string())
    };
    let values: Vec<String> = columns.split(',').map(expression).collect();
    stage.postgres.sql(&format!(
        "insert into {schema}.journal ({columns}) select {} \
         from {schema}.journal, generate_series(2::bigint, {rows}) n",
        values.join(", ")
    ));
    stage.postgres.sql(&format!(
        "update {schema}.counter set taken = {rows}, ceiling = {rows} + 10, journaled = {rows}"
    ));
    for table in ["journal", "journal_batch", "journal_name"] {
        stage.postgres.sql(&format!("vacuum analyze {schema}.{table}"));
    }
}

/// When the newest number was issued: filling takes time, so it is not now.
fn newest(stage: &Stage, schema: &str) -> Timestamp {
    let text = stage.postgres.sql(&format!("select max(issued_at_us) from {schema}.journal"));
    let newest = text.parse().ok().and_then(|us| Timestamp::from_microsecond(us).ok());
    newest.expect("a time in a journal that was filled")
}

/// The indexes by which the journal was read; a plan that reads all of it is a breach.
fn indexes(stage: &Stage, section: &mut Section) -> String {
    let log = stage.postgres.log();
    let reads_all = |line: &&str| {
        line.contains("Seq Scan on journal ") || line.contains("Seq Scan on journal_batch ")
    };
    if let Some(line) = log.lines().find(reads_all) {
        section.breaches.push(format!("a look-up reads the whole journal: {}", line.trim()));
    }
    let named = |line: &str| -> Option<String> {
        let (_, rest) = line
            .split_once(" using journal_")
            .or_else(|| line.split_once("Bitmap Index Scan on journal_"))?;
        rest.split_whitespace().next().map(|name| format!("journal_{name}"))
    };
    let names: BTreeSet<String> = log.lines().filter_map(named).collect();
    if names.is_empty() {
        section.breaches.push("PostgreSQL has logged no plan of a look-up".to_owned());
    }
    format!("by {}", names.into_iter().collect::<Vec<_>>().join(", "))
}
