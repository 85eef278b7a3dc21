//! The standby that other tests promote does what they rely on: it follows, it lags when it is made
//! to, and once promoted it has lost exactly what it never received.

use testkit::postgres::{Postgres, STANDBY};

/// What a server shows of the numbers that the test wrote.
fn numbers(server: &Postgres) -> String {
    server.sql("select string_agg(number::text, ' ' order by number) from issued")
}

#[test]
fn a_standby_follows_lags_when_told_and_is_promoted_without_the_last_commits() {
    let mut primary = Postgres::start();
    primary.sql("create table issued (number bigint)");
    let standby = primary.start_standby();
    primary.sql("insert into issued values (1)");
    standby.catch_up(&primary);
    assert_eq!(numbers(&standby), "1");
    let shown = "select application_name, sync_state from pg_stat_replication";
    assert_eq!(primary.sql(shown), format!("{STANDBY}|async"));

    standby.fall_behind();
    primary.sql("insert into issued values (2)");
    assert_eq!(numbers(&standby), "1");
    standby.catch_up(&primary);
    assert_eq!(numbers(&standby), "1 2");

    standby.fall_behind();
    primary.sql("insert into issued values (3)");
    primary.kill();
    standby.promote();
    assert_eq!(numbers(&standby), "1 2");
    standby.sql("insert into issued values (4)");
    let timeline = "select left(pg_walfile_name(pg_current_wal_insert_lsn()), 8)";
    assert_eq!(standby.sql(timeline), "00000002");

    primary.restart();
    assert_eq!((numbers(&primary), primary.sql(timeline)), ("1 2 3".into(), "00000001".into()));
}
