//! The views for people with SQL, on each engine.

use sqlx::{AssertSqlSafe, Row as _};
use testkit::postgres::Postgres;
use testkit::redis::Redis;

use crate::deployment::Deployment;

/// The rows of a query whose columns are all text.
async fn rows(url: &str, query: &str) -> Vec<Vec<Option<String>>> {
    let text = AssertSqlSafe(query.to_owned());
    macro_rules! fetch {
        ($pool:ty, $row:ty) => {{
            let pool = <$pool>::connect(url).await.unwrap();
            let rows = sqlx::query(text).fetch_all(&pool).await.unwrap();
            pool.close().await;
            let cells = |row: &$row| (0..row.len()).map(|at| row.get(at)).collect();
            rows.iter().map(cells).collect()
        }};
    }
    if url.starts_with("sqlite:") {
        fetch!(sqlx::SqlitePool, sqlx::sqlite::SqliteRow)
    } else {
        fetch!(sqlx::PgPool, sqlx::postgres::PgRow)
    }
}

/// The same as lines, `-` for nothing.
async fn lines(deployment: &Deployment, query: &str) -> Vec<String> {
    let line = |cells: Vec<Option<String>>| {
        let cells: Vec<String> = cells.into_iter().map(|cell| cell.unwrap_or("-".into())).collect();
        cells.join(" | ")
    };
    rows(deployment.database_url(), query).await.into_iter().map(line).collect()
}

/// Columns as text, by their names.
fn select(columns: &str, rest: &str) -> String {
    let cast = |name: &str| format!("cast({name} as text)");
    let columns: Vec<String> = columns.split_whitespace().map(cast).collect();
    format!("select {} from {rest}", columns.join(", "))
}

/// Numbers of the sources' own series.
fn number(deployment: &Deployment) {
    deployment.apply_examples();
    deployment.ok(&["next", "SPO", "--date", "2024-01-22"]);
    deployment.ok(&["next", "SPO", "--date", "2024-01-22", "--count", "14"]);
    deployment.ok(&["next", "BX", "--date", "2024-01-15"]);
    let parties = ["--set", "ORIGINATOR=คคง.", "--set", "RECIPIENT=สคฉ.3"];
    let letter = ["next", "LETTER", "--date", "2025-12-02", "--project", "LCBP3-C2"];
    deployment.ok(&[&letter[..], &parties].concat());
    let list = deployment.path("list.csv");
    // From before the epoch of clocks.
    let rows = "SPO-20240123-002,D7,1969-12-31T23:59:58.250000Z,ann\n";
    std::fs::write(&list, format!("number,document_id,issued_at,user\n{rows}")).unwrap();
    deployment.ok(&["import", &list.display().to_string(), "--apply"]);
    deployment.ok(&["series", "deactivate", "SPO", "--reason", "a test"]);
}

fn deployments<'a>(postgres: &'a Postgres, redis: &'a Redis, schema: &str) -> [Deployment; 2] {
    [Deployment::embedded(), Deployment::new(&postgres.url(schema), Some(&redis.url()))]
}

#[tokio::test(flavor = "multi_thread")]
async fn the_view_numbers_shows_each_number_with_its_times_as_times() {
    let (postgres, redis) = (Postgres::start(), Redis::start());
    for deployment in deployments(&postgres, &redis, "numbers") {
        number(&deployment);
        let columns = "number series type project document_id document_date value last_value \
                       user_id path status";
        let found = lines(&deployment, &select(columns, "numbers order by number")).await;
        let by = "local";
        let expected = [
            "BX202401150001 | BX | BX | - | - | 2024-01-15 | 1 | 1".to_owned(),
            "SPO-20240122-001 | SPO | SPO | - | - | 2024-01-22 | 1 | 1".to_owned(),
            "SPO-20240122-002 | SPO | SPO | - | - | 2024-01-22 | 2 | 15".to_owned(),
            "SPO-20240123-002 | SPO | SPO | - | D7 | 2024-01-23 | 2 | 2".to_owned(),
            "คคง.-สคฉ.3-0001-2568 | LETTER | LETTER | LCBP3-C2 | - | 2025-12-02 | 1 | 1".to_owned(),
        ];
        assert_eq!(found.len(), expected.len(), "{found:?}");
        for (found, expected) in found.iter().zip(&expected) {
            let imported = found.contains("D7");
            let (user, path) = if imported { ("ann", "imported") } else { (by, "") };
            assert!(found.starts_with(expected) && found.contains(user), "{found}");
            assert!(found.contains(path) && found.ends_with("| issued"), "{found}");
        }
        let columns = "issued_at issued_at_us journaled_at counter_key serial step config_id \
                       config_version template retry_count allocation_id idempotency_key \
                       ip_address context counter_id";
        let one = select(columns, "numbers where document_id = 'D7'");
        let one = lines(&deployment, &one).await.remove(0);
        let (at, rest) = one.split_once(" | ").unwrap();
        let is_sqlite = deployment.database_url().starts_with("sqlite");
        let expected =
            if is_sqlite { "1969-12-31T23:59:58.250Z" } else { "1969-12-31 23:59:58.25+00" };
        assert_eq!(at, expected);
        assert!(rest.starts_with("-1750000 | "), "{rest}");
        assert!(rest.contains("type=SPO;day=2024-01-23 | SEQ | 1 | "), "{rest}");
        assert!(rest.contains("{PREFIX}-{DATE:yyyyMMdd}-{SEQ:3}"), "{rest}");
        if !is_sqlite {
            let kind = "select pg_typeof(issued_at)::text, pg_typeof(document_date)::text \
                        from numbers limit 1";
            assert_eq!(lines(&deployment, kind).await, ["timestamp with time zone | date"]);
        }
        let reason = "typed on a wrong form";
        deployment.ok(&["void", "BX202401150001", "--reason", reason, "--replace"]);
        deployment.ok(&["void", "SPO-20240123-002", "--reason", reason]);
        let became = select("number status void_reason replaced_by", "numbers");
        let became = format!("{became} where voided_at is not null and voided_by <> '' order by 1");
        let expected = [
            format!("BX202401150001 | replaced | {reason} | BX202401150002"),
            format!("SPO-20240123-002 | voided | {reason} | -"),
        ];
        assert_eq!(lines(&deployment, &became).await, expected);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn views_under_the_names_of_the_sources_show_their_columns() {
    let (postgres, redis) = (Postgres::start(), Redis::start());
    for deployment in deployments(&postgres, &redis, "sources") {
        number(&deployment);
        let days = select(
            "sequence_type sequence_date current_no",
            "document_sequence order by sequence_date",
        );
        let expected = ["SPO | 2024-01-22 | 15", "SPO | 2024-01-23 | 2"];
        assert_eq!(lines(&deployment, &days).await, expected);
        let formats = select("rule_format serial_no is_deleted", "com_no_serial order by id");
        let expected = [
            "SPO-20240122-%s | 15 | 1",
            "BX20240115%s | 1 | 2",
            "คคง.-สคฉ.3-%s-2568 | 1 | 2",
            "SPO-20240123-%s | 2 | 1",
        ];
        assert_eq!(lines(&deployment, &formats).await, expected);
        let id = "select cast(count(*) as text) from com_no_serial s join counter c \
                  on cast(c.counter_id as text) = s.id and cast(c.series_id as text) = s.rule_id \
                  where s.update_time >= s.create_time";
        assert_eq!(lines(&deployment, id).await, ["4"]);
        let counters = select(
            "project_id originator_organization_id recipient_organization_id \
             correspondence_type_id sub_type_id rfa_type_id discipline_id current_year last_number",
            "document_number_counters",
        );
        let expected = ["LCBP3-C2 | คคง. | สคฉ.3 | LETTER | 0 | 0 | 0 | 2025 | 1"];
        assert_eq!(lines(&deployment, &counters).await, expected);
        let audit = select(
            "document_id generated_number counter_key template_used user_id retry_count",
            "document_number_audit where document_id is not null",
        );
        let expected = "D7 | SPO-20240123-002 | type=SPO;day=2024-01-23 | \
                        {PREFIX}-{DATE:yyyyMMdd}-{SEQ:3} | ann | 0";
        assert_eq!(lines(&deployment, &audit).await, [expected]);
        let last = "select cast(count(*) as text) from document_number_audit \
                    where ip_address is null and timestamp > '2026-01-01'";
        assert_eq!(lines(&deployment, last).await, ["4"]);
    }
}

/// Goal: keys that hold the signs of their own form are taken apart correctly. Method: a value with
/// each of them.
#[tokio::test(flavor = "multi_thread")]
async fn views_read_keys_whose_values_hold_the_signs_of_keys() {
    let (postgres, redis) = (Postgres::start(), Redis::start());
    let series = "
[[series]]
code = 'ODD'
name = 'Odd'
template = '{PROJECT}/{SEQ:3}'
serves = { types = ['ODD'] }
serials = [{ counter = ['project', 'type'] }]
";
    for deployment in deployments(&postgres, &redis, "odd") {
        let file = deployment.path("odd.toml");
        std::fs::write(&file, series).unwrap();
        deployment.apply(&[file]);
        let odd = r#"a\;type=b\\"{0}%s'"#;
        deployment.ok(&["next", "ODD", "--project", odd]);
        let query = select("project_id correspondence_type_id", "document_number_counters");
        assert_eq!(lines(&deployment, &query).await, [format!("{odd} | ODD")]);
        let query = select("rule_format", "com_no_serial");
        assert_eq!(lines(&deployment, &query).await, [format!("{}/%s", odd.replace('%', "%%"))]);
        assert_eq!(lines(&deployment, &select("year", "counter_row")).await, ["-"]);
    }
}

/// Goal: a foreign table next to the ledger is kept. Method: the table exists before the schema.
#[tokio::test(flavor = "multi_thread")]
async fn a_table_that_has_the_name_of_a_view_stays_as_it_is() {
    let postgres = Postgres::start();
    let deployment = Deployment::new(&postgres.empty_url("beside"), None);
    let make = "create table beside.document_sequence (sequence_type text); \
                insert into beside.document_sequence values ('mine')";
    let pool = sqlx::PgPool::connect(deployment.database_url()).await.unwrap();
    sqlx::raw_sql(make).execute(&pool).await.unwrap();
    number(&deployment);
    let mine = lines(&deployment, "select sequence_type from document_sequence").await;
    assert_eq!(mine, ["mine"]);
    let others = lines(&deployment, "select cast(count(*) as text) from com_no_serial").await;
    assert_eq!(others, ["4"]);
}
