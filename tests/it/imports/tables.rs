//! Tables of other systems: in SQLite, in PostgreSQL, and in a dump.

use sqlx::Connection as _;
use testkit::postgres::Postgres;

use super::{file, import, imported, problems};
use crate::deployment::Deployment;

/// A counter by type and day, as a database of its own has it.
const BY_DAY: [&str; 2] = [
    "create table document_sequence (sequence_type varchar(10) not null, \
     sequence_date date not null, current_no int, version bigint, \
     primary key (sequence_type, sequence_date))",
    "insert into document_sequence values ('SPO', '2024-01-22', 15, 3), \
     ('BPO', '2024-01-22', 1, 0), ('SPO', '2024-01-23', 0, 0)",
];

const HOURS: &str = "reset = \"hour\"\n";

fn by_day_is_imported(deployment: &Deployment, source: &str) {
    let arguments = [source, "--from-table"];
    let report = imported(deployment, &arguments);
    let counted = (&report["rows"], &report["skipped"], &report["counters_total"]);
    assert_eq!(counted, (&3.into(), &1.into(), &2.into()), "{report}");
    assert_eq!(deployment.verify().1["counters"], 0, "only reported");
    imported(deployment, &["--apply", source, "--from-table"]);
    for (line, number) in [
        (["next", "SPO", "--date", "2024-01-22"], "SPO-20240122-016\n"),
        (["next", "BPO", "--date", "2024-01-22"], "BPO-20240122-002\n"),
        (["next", "SPO", "--date", "2024-01-23"], "SPO-20240123-001\n"),
    ] {
        assert_eq!(deployment.ok(&line), number);
    }
    let (clean, verified) = deployment.verify();
    assert!(clean && verified["totals"]["gaps"] == 2, "{verified}");
    // The numbers may follow their counters, also once these are in use; others may not.
    let list = file(deployment, "numbers.csv", "number,document\nSPO-20240122-007,D7\n");
    let report = imported(deployment, &[&list, "--apply"]);
    assert_eq!(report["counters"][0]["stands_at"], 16, "{report}");
    for number in ["SPO-20240122-007", "SPO-20240122-016"] {
        let list = file(deployment, "others.txt", number);
        let (code, report, _) = import(deployment, &[&list, "--apply"]);
        let refused = problems(&report).iter().any(|(_, kind)| kind == "counter-passed");
        assert!(code == 1 && refused, "{number}: {report}");
    }
    let (clean, verified) = deployment.verify();
    assert!(clean && verified["totals"]["gaps"] == 3, "{verified}");
    // The same tables again change nothing: every counter is already as high.
    let report = imported(deployment, &["--apply", source, "--from-table"]);
    assert_eq!(report["counters"][1]["missing"], 0, "{report}");
    assert_eq!(deployment.ok(&["next", "SPO", "--date", "2024-01-22"]), "SPO-20240122-017\n");
}

#[tokio::test]
async fn counters_by_day_come_from_a_sqlite_file() {
    let deployment = Deployment::embedded();
    let path = deployment.path("orders.db").display().to_string();
    let mut conn =
        sqlx::SqliteConnection::connect(&format!("sqlite:{path}?mode=rwc")).await.unwrap();
    for statement in BY_DAY {
        sqlx::query(statement).execute(&mut conn).await.unwrap();
    }
    conn.close().await.unwrap();
    by_day_is_imported(&deployment, &path);
}

#[test]
fn counters_by_day_come_from_a_postgres_database() {
    let postgres = Postgres::start();
    let deployment = Deployment::new(&postgres.url("numerator"), None);
    deployment.apply_examples();
    let source = postgres.empty_url("orders");
    for statement in BY_DAY {
        postgres.sql(&format!("set search_path = orders; {statement}"));
    }
    by_day_is_imported(&deployment, &source);
}

/// A view in place of a table, whose query never ends.
const ENDLESS: &str = "create view document_sequence as with recursive \
    c(sequence_type, sequence_date, current_no) as (select 'SPO', '2024-01-22', 1 \
    union all select sequence_type, sequence_date, current_no + 1 from c) select * from c";

fn is_refused_unread(deployment: &Deployment, source: &str) {
    let output = deployment.run(&["import", source, "--from-table"]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{output:?}");
    assert!(error.contains("document_sequence: it is no table that holds its rows"), "{error}");
}

#[tokio::test]
async fn a_view_is_refused_and_its_query_is_not_run() {
    let deployment = Deployment::embedded();
    let path = deployment.path("endless.db").display().to_string();
    let url = format!("sqlite:{path}?mode=rwc");
    let mut conn = sqlx::SqliteConnection::connect(&url).await.unwrap();
    sqlx::query(ENDLESS).execute(&mut conn).await.unwrap();
    conn.close().await.unwrap();
    is_refused_unread(&deployment, &path);
    let postgres = Postgres::start();
    let source = postgres.empty_url("endless");
    postgres.sql(&format!("set search_path = endless; {ENDLESS}"));
    is_refused_unread(&deployment, &source);
}

#[test]
fn counters_by_day_are_no_counters_of_months_or_of_ever() {
    let deployment = Deployment::embedded();
    for (code, reset) in [("MONTHS", "reset = \"month\"\n"), ("EVER", ""), ("HOURS", HOURS)] {
        let series = deployment.series_file(code, "{CORR_TYPE}{DATE:yyyyMMddHH}-{SEQ:4}", "");
        let text = std::fs::read_to_string(&series).unwrap() + reset;
        std::fs::write(&series, text).unwrap();
        deployment.apply(&[series]);
    }
    let dump = "INSERT INTO document_sequence (sequence_type, sequence_date, current_no) VALUES \
                ('MONTHS', '2024-01-22', 15), ('EVER', '2024-01-22', 3), \
                ('HOURS', '2024-01-22', 4), ('EVER', '2024-01-23', 0);\n";
    let dump = file(&deployment, "days.sql", dump);
    let (_, report, _) = import(&deployment, &[&dump, "--from-table", "--apply"]);
    assert_eq!(report["skipped"], 1, "{report}");
    let expected =
        [1, 2, 3].map(|row| (format!("document_sequence row {row}"), "not-mapped".to_owned()));
    assert_eq!(problems(&report), expected, "{report}");
    let detail = report["problems"][0]["detail"].as_str().unwrap();
    assert!(detail.contains("series MONTHS does not count by days"), "{detail}");
}

/// The counters of a correspondence system with eight key columns, as `mysqldump` writes them:
/// counters before the tables that they refer to. Letters, and requests for approval: two
/// originators and two years of these meet in one counter, since their number shows neither.
const EIGHT_COLUMNS: &str = "\
-- MySQL dump 10.19  Distrib 10.11-MariaDB\n\
/*!40101 SET NAMES utf8mb4 */;\n\
DROP TABLE IF EXISTS `correspondence_types`;\n\
CREATE TABLE `correspondence_types` (\n\
  `id` int(11) NOT NULL AUTO_INCREMENT,\n\
  `type_code` varchar(50) NOT NULL,\n\
  PRIMARY KEY (`id`)\n\
) ENGINE=InnoDB AUTO_INCREMENT=7 DEFAULT CHARSET=utf8mb4;\n\
INSERT INTO `correspondence_types` VALUES (1,'RFA'),(6,'LETTER');\n\
CREATE TABLE `document_number_counters` (\n\
  `project_id` int(11) NOT NULL,\n\
  `originator_organization_id` int(11) NOT NULL,\n\
  `recipient_organization_id` int(11) DEFAULT NULL,\n\
  `correspondence_type_id` int(11) NOT NULL,\n\
  `sub_type_id` int(11) DEFAULT 0,\n\
  `rfa_type_id` int(11) DEFAULT 0,\n\
  `discipline_id` int(11) DEFAULT 0,\n\
  `current_year` int(11) NOT NULL,\n\
  `version` int(11) NOT NULL DEFAULT 0,\n\
  `last_number` int(11) DEFAULT 0\n\
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COMMENT='ตารางเก็บ Running Number Counters';\n\
INSERT INTO `document_number_counters` VALUES (2,22,10,6,0,0,0,2025,0,7),\
(2,42,NULL,1,0,18,5,2025,0,3),(2,22,NULL,1,0,18,5,2024,0,9),(2,22,11,6,0,0,0,2025,0,4);\n\
CREATE TABLE `organizations` (`id` int, `organization_code` varchar(20), `name` text);\n\
INSERT INTO `organizations` VALUES (10,'สคฉ.3','it\\'s; one'),(22,'คคง.',NULL),(42,'ผรม.2','');\n\
CREATE TABLE `projects` (`id` int, `project_code` varchar(20));\n\
INSERT INTO `projects` VALUES (2,'LCBP3-C2');\n\
-- Dump completed on 2025-12-02 10:00:00\n";

#[test]
fn counters_of_eight_columns_come_from_a_dump_with_the_codes_of_their_ids() {
    let deployment = Deployment::embedded();
    let dump = file(&deployment, "dms.sql", EIGHT_COLUMNS);
    let (code, report, _) = import(&deployment, &[&dump, "--from-table", "--apply"]);
    assert_eq!(code, 1, "{report}");
    let rows = problems(&report).into_iter().map(|(place, kind)| format!("{place} {kind}"));
    let rows: Vec<String> = rows.collect();
    let expected = [2, 3, 4].map(|row| format!("document_number_counters row {row} not-mapped"));
    assert_eq!(rows, expected, "{report}");
    let map = "table,id,code\nrfa_types,18,RPT\ndisciplines,5,TER\norganizations,11,สคฉ.4\n";
    let map = file(&deployment, "codes.csv", map);
    let report = imported(&deployment, &[&dump, "--from-table", "--map", &map, "--apply"]);
    assert_eq!((&report["rows"], &report["counters_total"]), (&4.into(), &3.into()), "{report}");
    let letter = ["next", "LETTER", "--project", "LCBP3-C2", "--date", "2025-12-02", "--set"];
    let letter = |recipient: &str| {
        let recipient = format!("RECIPIENT={recipient}");
        deployment.ok(&[&letter[..], &["ORIGINATOR=คคง.", "--set", &recipient]].concat())
    };
    assert_eq!(letter("สคฉ.3"), "คคง.-สคฉ.3-0008-2568\n");
    assert_eq!(letter("สคฉ.4"), "คคง.-สคฉ.4-0005-2568\n");
    let rfa = ["next", "RFA", "--project", "LCBP3-C2", "--set", "DISCIPLINE=TER"];
    let rfa = [&rfa[..], &["--set", "RFA_TYPE=RPT", "--set", "REV=A"]].concat();
    assert_eq!(deployment.ok(&rfa), "LCBP3-C2-RFA-TER-RPT-0010-A\n");
    deployment.assert_clean();
}

#[test]
fn formats_and_counters_of_five_columns_become_series_and_go_on() {
    let deployment = Deployment::embedded();
    let dump = "\
INSERT INTO document_number_formats (id, project_id, correspondence_type_id, format_template, \
description) VALUES \
(1, 1, 4, '{ORG_CODE}-{TYPE_CODE}-{DISCIPLINE_CODE}-{YEAR}-{SEQ:4}', 'ค่าเริ่มต้น'), \
(2, 1, 5, '{ORG}-{SEQ:4}', NULL);\n\
INSERT INTO document_number_counters (project_id, originator_organization_id, \
correspondence_type_id, discipline_id, current_year, last_number, version, updated_at) VALUES \
(1, 3, 4, 2, 2025, 41, 0, '2025-12-02 10:00:00'), \
(1, 3, 4, 0, 2025, 6, 0, '2025-12-02 10:00:00');\n";
    let dump = file(&deployment, "adr.sql", dump);
    let map = "table,id,code\nprojects,1,P9\norganizations,3,TEAM\ndisciplines,2,STR\n\
               correspondence_types,4,NCR\ncorrespondence_types,5,SI\n";
    let map = file(&deployment, "codes.csv", map);
    let configs = [&*dump, "--from-table", "--configs", "--map", &map];
    let output = deployment.run(&[&["import"], &configs[..]].concat());
    assert_eq!(output.status.code(), Some(1), "the second format uses a token that is withdrawn");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("row 2") && stderr.contains("ORIGINATOR"), "{stderr}");
    // The output is a series file, to be examined, changed and applied.
    let series = String::from_utf8_lossy(&output.stdout);
    let path = deployment.path("formats.toml");
    std::fs::write(&path, &*series).unwrap();
    deployment.apply(&[path]);
    imported(&deployment, &[&dump, "--from-table", "--map", &map, "--apply"]);
    let next = ["next", "NCR", "--project", "P9", "--date", "2025-12-31", "--set", "ORG_CODE=TEAM"];
    let with = [&next[..], &["--set", "DISCIPLINE_CODE=STR"]].concat();
    assert_eq!(deployment.ok(&with), "TEAM-NCR-STR-2025-0042\n");
    assert_eq!(deployment.ok(&next), "TEAM-NCR-0-2025-0007\n");
    deployment.assert_clean();
}

#[test]
fn serials_of_rules_find_their_counters_by_the_text_around_them() {
    let deployment = Deployment::embedded();
    let series = deployment.path("rules.toml");
    let text = "[[series]]\ncode = \"BX\"\nname = \"報銷單\"\nprefix = \"BX\"\n\
                template = \"{PREFIX}{DATE:yyyyMMdd}{SEQ:6}\"\ntimezone = \"Asia/Shanghai\"\n\
                serves = { types = [\"bill-1\"] }\n\
                serials = [{ counter = [\"type\"], reset = \"day\" }]\n";
    std::fs::write(&series, text).unwrap();
    deployment.apply(&[series]);
    let dump = "\
INSERT INTO com_no_config (id, bill_type_id, rule_type, rule_value, is_deleted) VALUES \
('r1','bill-1',0,'[{\"key\":\"const\",\"label\":\"常量\",\"value\":\"BX\"}]',2), \
('r2','bill-2',0,'[]',1);\n\
INSERT INTO com_no_serial (id, rule_id, rule_format, serial_no, is_deleted) VALUES \
('1','r1','BX20240115%s',117,2), ('2','r2','XX%s',5,2), ('3','r1','BX20240116%s',4,1), \
('4','r1','BX20240117%s',99999999999999999999,2), ('5','r1','ZZ20240117%s',3,2), \
('6','r1','BX%s-%s',3,2), ('7','r9','BX20240118%s',3,2);\n";
    let dump = file(&deployment, "rules.sql", dump);
    let (code, report, _) = import(&deployment, &[&dump, "--from-table"]);
    assert_eq!((code, &report["skipped"], &report["rows"]), (1, &1.into(), &7.into()), "{report}");
    let told = |row: u64, kind: &str| (format!("com_no_serial row {row}"), kind.to_owned());
    let expected =
        [told(4, "value"), told(5, "not-read"), told(6, "not-read"), told(7, "not-mapped")];
    assert_eq!(problems(&report), expected, "{report}");
    let large = report["problems"][0]["detail"].as_str().unwrap();
    assert!(large.contains("9007199254740991"), "{large}");
    // Deleted rows have issued numbers too; of them only what cannot be read is left out.
    let sound = "INSERT INTO com_no_config (id, bill_type_id, is_deleted) VALUES \
                 ('r1','bill-1',2), ('r2','bill-1',1), ('r3','bill-9',1);\n\
                 INSERT INTO com_no_serial (id, rule_id, rule_format, serial_no, is_deleted) \
                 VALUES ('1','r1','BX20240115%s',117,2), ('2','r1','BX20240115%s',118,1), \
                 ('3','r2','BX20240116%s',4,2), ('4','r3','ZZ%s',5,2), ('5','r1','ZZ%s',5,1);\n";
    let sound = file(&deployment, "sound.sql", sound);
    let report = imported(&deployment, &[&sound, "--from-table", "--apply"]);
    assert_eq!((&report["skipped"], &report["counters_total"]), (&2.into(), &2.into()), "{report}");
    assert_eq!(deployment.ok(&["next", "bill-1", "--date", "2024-01-15"]), "BX20240115000119\n");
    assert_eq!(deployment.ok(&["next", "bill-1", "--date", "2024-01-16"]), "BX20240116000005\n");
    deployment.assert_clean();
}

#[test]
fn a_rule_becomes_a_series_that_continues_its_serials() {
    let deployment = Deployment::embedded();
    let dump = "\
INSERT INTO com_no_config (id, bill_type_id, rule_type, rule_value, is_deleted) VALUES \
('r1','HT-1',0,'[{\\\"key\\\":\\\"const\\\",\\\"label\\\":\\\"常量\\\",\\\"value\\\":\\\"HT\\\"},\
{\\\"key\\\":\\\"time\\\",\\\"label\\\":\\\"时间\\\",\\\"value\\\":\\\"yyyyMMdd\\\"},\
{\\\"key\\\":\\\"variable\\\",\\\"label\\\":\\\"变量\\\",\\\"value\\\":\\\"单位\\\"},\
{\\\"key\\\":\\\"serial\\\",\\\"label\\\":\\\"流水号\\\",\\\"value\\\":\\\"1(6)\\\"}]',2), \
('r2','X',0,'[',1);\n\
INSERT INTO com_no_serial (id, rule_id, rule_format, serial_no, is_deleted) VALUES \
('1','r1','HT20240115甲%s',117,2), ('2','r1','HT20240115乙%s',3,2);\n";
    let dump = file(&deployment, "rules.sql", dump);
    deployment.ok(&["import", &dump, "--from-table", "--configs", "--apply"]);
    let report = imported(&deployment, &[&dump, "--from-table", "--apply"]);
    assert_eq!(report["counters_total"], 2, "{report}");
    let next = |unit: &str| {
        let unit = format!("单位={unit}");
        deployment.ok(&["next", "HT-1", "--date", "2024-01-15", "--set", &unit])
    };
    assert_eq!(next("甲"), "HT20240115甲000118\n");
    assert_eq!(next("乙"), "HT20240115乙000004\n");
    deployment.assert_clean();
}

#[test]
fn a_source_without_such_tables_is_refused() {
    let deployment = Deployment::embedded();
    let dump = file(&deployment, "other.sql", "INSERT INTO customers VALUES (1);\n");
    for (source, told) in [
        (&*dump, "document_sequence"),
        ("mysql://localhost/x", "mysqldump"),
        ("/nowhere/dump.sql", "/nowhere/dump.sql"),
    ] {
        let (code, _, stderr) = import(&deployment, &[source, "--from-table"]);
        assert!(code == 1 && stderr.contains(told), "{stderr}");
    }
}
