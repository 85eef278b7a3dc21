//! All source systems on one ledger: the series that ship, with the configurations and counters
//! that each brings along.

use testkit::postgres::Postgres;

use super::{file, imported};
use crate::deployment::Deployment;

/// Orders, with a counter for each type and day.
const ORDERS: &str = "\
INSERT INTO document_sequence (sequence_type, sequence_date, current_no) VALUES \
('SPO', '2024-01-22', 14);\n";

/// A rule of text, unit and serial, without a day, and one of its counters.
const RULES: &str = "\
INSERT INTO com_no_config (id, bill_type_id, rule_type, rule_value, is_deleted) VALUES \
('r1', 'QJ', 0, '[{\\\"key\\\":\\\"const\\\",\\\"label\\\":\\\"常量\\\",\\\"value\\\":\\\"QJ\\\"},\
{\\\"key\\\":\\\"variable\\\",\\\"label\\\":\\\"变量\\\",\\\"value\\\":\\\"单位\\\"},\
{\\\"key\\\":\\\"serial\\\",\\\"label\\\":\\\"流水号\\\",\\\"value\\\":\\\"1(6)\\\"}]', 2);\n\
INSERT INTO com_no_serial (id, rule_id, rule_format, serial_no, is_deleted) VALUES \
('s1', 'r1', 'QJ财务部%s', 41, 2);\n";

/// Counters of correspondence with eight key columns: a letter to an office whose code holds what
/// separates the parts.
const LETTERS: &str = "\
INSERT INTO projects (id, project_code) VALUES (2, 'LCBP3-C2');\n\
INSERT INTO organizations (id, organization_code) VALUES (22, 'คคง.'), (51, 'สคฉ.3-01');\n\
INSERT INTO correspondence_types (id, type_code) VALUES (6, 'LETTER');\n\
INSERT INTO document_number_counters (project_id, originator_organization_id, \
recipient_organization_id, correspondence_type_id, sub_type_id, rfa_type_id, discipline_id, \
current_year, last_number) VALUES (2, 22, 51, 6, 0, 0, 0, 2025, 7);\n";

/// The format of requests for approval of one project, and its counters with five key columns.
const FORMATS: &str = "\
INSERT INTO projects (id, project_code) VALUES (1, 'LCBP3');\n\
INSERT INTO organizations (id, organization_code) VALUES (3, 'TEAM'), (51, 'สคฉ.3-01');\n\
INSERT INTO correspondence_types (id, type_code) VALUES (1, 'RFA'), (9, 'NCR');\n\
INSERT INTO disciplines (id, discipline_code) VALUES (2, 'STR');\n\
INSERT INTO document_number_formats (id, project_id, correspondence_type_id, format_template, \
description) VALUES \
(1, 1, 1, '{ORG_CODE}-{TYPE_CODE}-{DISCIPLINE_CODE}-{YEAR}-{SEQ:4}', 'RFA'), \
(2, 1, 9, '{ORG_CODE}-{TYPE_CODE}-{DISCIPLINE_CODE}-{YEAR}-{SEQ:4}', 'NCR');\n\
INSERT INTO document_number_counters (project_id, originator_organization_id, \
correspondence_type_id, discipline_id, current_year, last_number) VALUES \
(1, 3, 1, 2, 2025, 7), (1, 51, 9, 2, 2025, 3);\n";

/// Moves all sources in, in the order of the page on moving in, and takes a number of each.
fn all_move_in(deployment: &Deployment) {
    deployment.apply_examples();
    for (name, dump, has_configs) in [
        ("orders.sql", ORDERS, false),
        ("rules.sql", RULES, true),
        ("letters.sql", LETTERS, false),
        ("formats.sql", FORMATS, true),
    ] {
        let dump = file(deployment, name, dump);
        // A second time it brings nothing, and refuses nothing.
        for _ in 0..2 {
            if has_configs {
                deployment.ok(&["import", &dump, "--from-table", "--configs", "--apply"]);
            }
            imported(deployment, &[&dump, "--from-table", "--apply"]);
        }
    }
    let serials = ["SYSTEM=C0001", "MODULE=A01", "INSTANCE=01"];
    let letter = ["ORIGINATOR=คคง.", "RECIPIENT=สคฉ.3-01"];
    let cases: [(&str, &str, &str, &[&str], &str); 8] = [
        ("SPO", "", "2024-01-22", &[], "SPO-20240122-015"),
        ("QJ", "", "2024-01-22", &["单位=财务部"], "QJ财务部000042"),
        ("HT", "", "2024-01-22", &["单位=财务部"], "HT20240122财务部000001"),
        ("LETTER", "LCBP3-C2", "2025-12-02", &letter, "คคง.-สคฉ.3-01-0008-2568"),
        ("MEMO", "LCBP3-C2", "2025-12-02", &letter, "คคง.-สคฉ.3-01-0001-2568"),
        ("UNIFIED-SERIAL", "", "2015-07-10", &serials, "C0001A0101201507100000000001"),
        (
            "RFA",
            "LCBP3",
            "2025-12-02",
            &["ORG_CODE=TEAM", "DISCIPLINE_CODE=STR"],
            "TEAM-RFA-STR-2025-0008",
        ),
        (
            "NCR",
            "LCBP3",
            "2025-12-02",
            &["ORG_CODE=สคฉ.3-01", "DISCIPLINE_CODE=STR"],
            "สคฉ.3-01-NCR-STR-2025-0004",
        ),
    ];
    for (type_code, project, date, variables, number) in cases {
        let mut line = vec!["next", type_code, "--date", date];
        if !project.is_empty() {
            line.extend(["--project", project]);
        }
        line.extend(variables.iter().flat_map(|variable| ["--set", *variable]));
        assert_eq!(deployment.ok(&line), format!("{number}\n"));
    }
    deployment.assert_clean();
    // What ships can be applied as a whole again, now that everything is in use.
    deployment.apply_examples();
}

#[test]
fn all_sources_move_into_one_ledger_on_sqlite() {
    all_move_in(&Deployment::embedded());
}

#[test]
fn all_sources_move_into_one_ledger_on_postgres() {
    let postgres = Postgres::start();
    all_move_in(&Deployment::new(&postgres.url("numerator"), None));
}
