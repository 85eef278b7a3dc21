//! Tables of a system that writes rule expressions, and names its counters by the text around their
//! serials.

use serde_json::Value;

use super::{file, import, imported, problems};
use crate::deployment::Deployment;

/// A rule of a type: text, day, unit, serial.
fn rule(id: &str, bill_type: &str, text: &str, serial: &str) -> String {
    let element = |key: &str, value: &str| {
        format!(
            "{{\\\"key\\\":\\\"{key}\\\",\\\"label\\\":\\\"\\\",\\\"value\\\":\\\"{value}\\\"}}"
        )
    };
    let elements = [
        element("const", text),
        element("time", "yyyyMMdd"),
        element("variable", "单位"),
        element("serial", serial),
    ];
    let elements = elements.join(",");
    format!(
        "INSERT INTO com_no_config (id, bill_type_id, rule_type, rule_value, is_deleted) VALUES \
         ('{id}','{bill_type}',0,'[{elements}]',2);\n"
    )
}

/// Counters of a rule: the text around the serial, and its value.
fn serials(rule: &str, rows: &[(&str, u64)]) -> String {
    let row = |(index, (text, value)): (usize, &(&str, u64))| {
        format!(
            "INSERT INTO com_no_serial (id, rule_id, rule_format, serial_no, is_deleted) VALUES \
             ('{rule}-{index}','{rule}','{text}',{value},2);\n"
        )
    };
    rows.iter().enumerate().map(row).collect()
}

fn detail(report: &Value, index: usize) -> &str {
    report["problems"][index]["detail"].as_str().unwrap()
}

/// Goal: the text around a serial names exactly one counter, whatever is next to the serial.
/// Method: rules of `--configs` have a variable directly before it; units that end in digits, and
/// serials of other widths than six.
#[test]
fn the_text_around_a_serial_tells_where_its_unit_ends() {
    let deployment = Deployment::embedded();
    let four = rule("r1", "HT-4", "HT", "1(4)")
        + &serials(
            "r1",
            &[("HT20240115财务部%s", 12), ("HT202401151%s", 7), ("HT20240115单0%s", 3)],
        );
    let six = rule("r2", "HQ-6", "HQ", "1(6)")
        + &serials("r2", &[("HQ2024011510010%s", 55), ("HQ202401151%s", 999_999)]);
    let percent = rule("r3", "HP-3", "50%", "1(3)") + &serials("r3", &[("50%%20240115A%%%s", 8)]);
    let dump = file(&deployment, "rules.sql", &(four + &six + &percent));
    deployment.ok(&["import", &dump, "--from-table", "--configs", "--apply"]);
    let report = imported(&deployment, &[&dump, "--from-table", "--apply"]);
    let key = |counter: &Value| counter["counter_key"].as_str().unwrap().to_owned();
    let keys: Vec<String> = report["counters"].as_array().unwrap().iter().map(key).collect();
    let expected = ["1", "单0", "财务部", "A%", "1", "10010"];
    let mut expected: Vec<String> =
        expected.iter().map(|unit| format!("单位={unit};day=2024-01-15")).collect();
    expected.sort();
    let mut sorted = keys;
    sorted.sort();
    assert_eq!(sorted, expected, "{report}");
    for (bill_type, unit, number) in [
        ("HT-4", "财务部", "HT20240115财务部0013"),
        ("HT-4", "1", "HT2024011510008"),
        ("HT-4", "单0", "HT20240115单00004"),
        ("HQ-6", "10010", "HQ2024011510010000056"),
        ("HP-3", "A%", "50%20240115A%009"),
    ] {
        let unit = format!("单位={unit}");
        let next = ["next", bill_type, "--date", "2024-01-15", "--set", &unit];
        assert_eq!(deployment.ok(&next), format!("{number}\n"));
    }
    deployment.assert_clean();
}

#[test]
fn a_text_around_a_serial_that_names_no_counter_is_a_problem_with_its_reason() {
    let deployment = Deployment::embedded();
    let series = deployment.path("rules.toml");
    let two = "serials = [{ name = \"SEQ\" }, { name = \"RUN\" }]\n";
    let day = "serials = [{ reset = \"day\" }]\npolicy = \"gapless\"\n\
               ambiguity_accepted = \"No day was shown there either.\"\n";
    let of = |code: &str, template: &str, rest: &str| {
        format!(
            "[[series]]\ncode = \"{code}\"\nname = \"{code}\"\ntemplate = \"{template}\"\n\
             serves = {{ types = [\"{code}\"] }}\n{rest}"
        )
    };
    let text = of("TWO", "T{SEQ:2}-{SEQ:2:RUN}", two) + &of("DAY", "D{DATE:yyyyMM}-{SEQ:4}", day);
    std::fs::write(&series, text).unwrap();
    deployment.apply(&[series]);
    let rules = "INSERT INTO com_no_config (id, bill_type_id) VALUES ('r1','TWO'),('r2','DAY');\n";
    let dump = rules.to_owned()
        + &serials("r1", &[("T%s-%s", 7)])
        + &serials(
            "r2",
            &[("D202401-%s", 3), ("D202401-%d", 3), ("D202401-%s", 0), ("D2024%s", 3)],
        );
    let dump = file(&deployment, "rules.sql", &dump);
    let (code, report, _) = import(&deployment, &[&dump, "--from-table", "--apply"]);
    assert_eq!((code, &report["skipped"]), (1, &1.into()), "{report}");
    let told = |row: u64, kind: &str| (format!("com_no_serial row {row}"), kind.to_owned());
    let expected =
        [told(1, "not-mapped"), told(2, "not-mapped"), told(3, "not-read"), told(5, "not-read")];
    assert_eq!(problems(&report), expected, "{report}");
    assert!(detail(&report, 0).contains("several serials"), "{report}");
    assert!(detail(&report, 1).contains("only 2024-01"), "{report}");
    assert!(detail(&report, 2).contains("character 9"), "{report}");
    assert!(detail(&report, 3).contains("character 6"), "{report}");
}

#[test]
fn configurations_never_replace_a_series_and_no_type_gets_two() {
    let deployment = Deployment::embedded();
    deployment.apply_examples();
    let version = || {
        let listed = deployment.ok(&["series", "versions", "HT", "--json"]);
        serde_json::from_str::<Value>(&listed).unwrap().to_string()
    };
    let before = version();
    let told = |dump: &str, apply: &[&str]| {
        let source = file(&deployment, "rules.sql", dump);
        let arguments = [&[&*source, "--from-table", "--configs"][..], apply].concat();
        let (code, answer, stderr) = import(&deployment, &arguments);
        let kinds: Vec<_> = match answer["problems"].as_array() {
            Some(_) => problems(&answer),
            None => panic!("{stderr}"),
        };
        (code, answer["applied"].as_bool().unwrap(), kinds)
    };
    // The type has the code of an active series, which numbers otherwise.
    let other = rule("r1", "HT", "合同", "1(4)") + &rule("r2", "NEW-1", "新", "1(4)");
    let taken = |row: u64, kind: &str| (format!("com_no_config row {row}"), kind.to_owned());
    assert_eq!(told(&other, &["--apply"]), (1, false, vec![taken(1, "series-taken")]));
    assert_eq!(version(), before);
    assert!(!deployment.run(&["series", "show", "NEW-1"]).status.success(), "all or nothing");
    // One type, two rules; a third says the same as the first.
    let twice = [rule("r1", "NEW-1", "新", "1(4)"), rule("r2", "NEW-1", "新", "1(6)")].concat();
    let same = rule("r3", "NEW-1", "新", "1(4)");
    for apply in [&[][..], &["--apply"]] {
        let (code, applied, kinds) = told(&(twice.clone() + &same), apply);
        assert_eq!((code, applied, kinds), (1, false, vec![taken(2, "twice")]));
    }
    assert!(!deployment.run(&["series", "show", "NEW-1"]).status.success());
    // The same series again stays as it is.
    let sound = rule("r1", "NEW-1", "新", "1(4)") + &same;
    for _ in 0..2 {
        assert_eq!(told(&sound, &["--apply"]), (0, true, vec![]));
        let shown = deployment.ok(&["series", "versions", "NEW-1", "--json"]);
        let versions: Value = serde_json::from_str(&shown).unwrap();
        assert_eq!(versions.as_array().map(Vec::len), Some(1), "{versions}");
    }
}
