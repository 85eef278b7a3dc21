//! Expressions mean what their source says, in both directions, and report what is wrong with them.

use proptest::prelude::*;

use super::super::testing::{definition, inputs, series};
use super::super::{
    Inputs, Overflow, Reset, RuleFormatError, RuleFormats, SerialDefinition, Series,
    SeriesDefinition, Serves, read_series,
};
use super::*;

/// The source's own example.
const CONTRACT: &str = r#"[
    {"key": "const", "label": "常量", "value": "HT"},
    {"key": "time", "label": "时间", "value": "yyyyMMdd"},
    {"key": "variable", "label": "变量", "value": "单位"},
    {"key": "serial", "label": "流水号", "value": "1(6)"}
]"#;

fn defined(json: &str) -> SeriesDefinition {
    Expression::parse(json).expect(json).define(definition()).expect(json)
}

fn refused(json: &str) -> ExpressionError {
    match Expression::parse(json) {
        Ok(expression) => expression.define(definition()).expect_err(json),
        Err(error) => error,
    }
}

/// An expression of elements `key=value`.
fn expression(elements: &[&str]) -> String {
    let element = |text: &&str| {
        let (key, value) = text.split_once('=').expect("key=value");
        serde_json::json!({ "key": key, "value": value })
    };
    serde_json::Value::Array(elements.iter().map(element).collect()).to_string()
}

#[test]
fn the_example_of_the_source_counts_by_unit_and_day() {
    let made = defined(CONTRACT);
    assert_eq!(made.template, "HT{DATE:yyyyMMdd}{单位}{SEQ:6}");
    assert_eq!((made.code.as_str(), &made.serves), ("test", &definition().serves));
    let series = Series::compile(made).expect("sound");
    let request = inputs("T", "", "2024-01-15", &[("单位", "财务部")]);
    let draft = series.draft(&request, crate::testing::NOW).expect("draft");
    assert_eq!(draft.partial.fill(&[1]).expect("fits"), "HT20240115财务部000001");
    assert_eq!(draft.keys[0].to_string(), "单位=财务部;day=2024-01-15");
    assert_eq!(draft.rule_format(), "HT20240115财务部%s");
    let back = Expression::of(&series).expect("it came from one");
    assert_eq!(back, Expression::parse(CONTRACT).expect("sound"));
}

#[test]
fn serials_start_where_they_say_and_are_taken_together() {
    let made = defined(&expression(&["const={P}", "serial=1(3)", "const=/", "serial=100(4)"]));
    assert_eq!(made.template, "{{P}}{SEQ:3}/{SEQ:4:SEQ2}");
    let starts: Vec<(&str, u64)> =
        made.serials.iter().map(|serial| (serial.name.as_str(), serial.start)).collect();
    assert_eq!(starts, [("SEQ", 1), ("SEQ2", 100)]);
    assert!(made.serials.iter().all(|serial| serial.reset == Reset::None));
}

#[test]
fn a_variable_is_named_in_capitals_and_keeps_its_label() {
    let json = r#"[{"key": "variable", "label": "部门", "value": "dept"},
                   {"key": "time", "value": "yyyyMM"}, {"key": "variable", "value": "单位"},
                   {"key": "variable", "value": "dept"}, {"key": "serial", "value": "1(4)"}]"#;
    let made = defined(json);
    assert_eq!(made.template, "{DEPT}{DATE:yyyyMM}{单位}{DEPT}{SEQ:4}");
    assert_eq!(made.variables["DEPT"].label.as_deref(), Some("部门"));
    assert_eq!(made.variables["单位"].label, None);
    assert_eq!(
        (made.serials[0].counter.join(" ").as_str(), made.serials[0].reset),
        ("DEPT 单位", Reset::Month)
    );
    let back = Expression::of(&Series::compile(made).expect("sound")).expect("said");
    let labels: Vec<&str> = back.elements.iter().map(|element| element.label.as_str()).collect();
    assert_eq!(labels, ["部门", "时间", "变量", "部门", "流水号"]);
}

#[test]
fn a_mistake_names_the_element_the_field_and_the_remedy() {
    for (elements, place, remedy) in [
        (vec!["konst=A", "serial=1(3)"], "[0].key", "write const, time, variable or serial"),
        (vec!["serial=1(3)", "const=a\u{200b}"], "[1].value", "character 2"),
        (vec!["serial=1(3)", "const=\u{301}"], "[1].value", "remove the character"),
        (vec!["time=yyyyMMDD", "serial=1(3)"], "[0].value", "dd"),
        (vec!["time=YYYY", "serial=1(3)"], "[0].value", "yyyy"),
        (vec!["time=yyyy", "time=mm", "serial=1(3)"], "[1].value", "the month is MM"),
        (vec!["time=yyyy'{'", "serial=1(3)"], "[0].value", "const element"),
        (vec!["serial=1(3)", "time=MM"], "[1].value", "show yyyyMM"),
        (vec!["serial=1(3)", "time=yyyy", "time=dd"], "[2].value", "yyyyMMdd"),
        (vec!["variable=a b", "serial=1(3)"], "[0].value", "capital letters"),
        (vec!["variable=project", "serial=1(3)"], "[0].value", "choose another"),
        (vec!["variable=Rev", "serial=1(3)"], "[0].value", "REV identifies no counter"),
        (vec!["serial=1(3)", "variable=A", "variable=a"], "[2].value", "element [1]"),
        (vec!["serial=1"], "[0].value", "1(6)"),
        (vec!["serial=0(6)"], "[0].value", "1(6)"),
        (vec!["serial=01(6)"], "[0].value", "1(6)"),
        (vec!["serial=1(06)"], "[0].value", "1(6)"),
        (vec!["serial=1(16)"], "[0].value", "1 to 15 digits"),
        (vec!["serial=1000(3)"], "[0].value", "a start that fits"),
        (vec!["serial=1（6）"], "[0].value", "1(6)"),
        (vec!["serial=1(1)"; 9], "[8].value", "at most 8"),
    ] {
        let error = refused(&expression(&elements)).to_string();
        assert!(error.starts_with(&format!("{place}: ")), "{elements:?}: {error}");
        assert!(error.contains(remedy), "{elements:?}: {error}");
    }
}

#[test]
fn json_of_another_shape_is_refused() {
    let long = "x".repeat(EXPRESSION_BYTES_MAX + 1);
    let many = expression(&["serial=1(3)"; 65]);
    let wide = expression(&["serial=1(3)", &format!("const={}", "x".repeat(129))]);
    for (json, expected) in [
        ("", "line 1, column 0: no JSON"),
        ("[\n1,", "line 2, column 2: no JSON"),
        ("{}", "write an array"),
        (r#"{"elements": {}}"#, "write an array"),
        ("[]", "write an array"),
        ("[1]", "write an array"),
        (&many, "write an array of 1 to 64"),
        (&long, "the expression has 65537 bytes"),
        (&wide, "[1].value: has 129 characters, at most 128"),
        (r#"[{"key": "const"}]"#, "[0].value: is missing"),
        (r#"[{"value": "A"}]"#, "[0].key: is missing"),
        (r#"[{"key": "const", "value": ""}]"#, "[0].value: is missing"),
        (r#"[{"key": "serial", "value": 1}]"#, "[0].value: is no text"),
        (r#"[{"key": "const", "value": "A", "labell": ""}]"#, "[0].labell: unknown field"),
        (r#"[{"key": "const", "value": "A", "label": "\n"}]"#, "[0].label: character 1"),
        (r#"[{"key": "const", "value": "A", "label": 5}]"#, "[0].label: is no text"),
        (r#"[{"key": "const", "value": "A"}]"#, "no element is a serial"),
    ] {
        let error = refused(json).to_string();
        assert!(error.starts_with(expected), "{expected}: {error}");
    }
    let error = refused(
        &expression(&["const=x", "time=yyyyMMdd", "serial=1(3)"]).replace('x', &"x".repeat(128)),
    );
    assert!(matches!(error, ExpressionError::Series(_)), "{error}");
}

#[test]
fn what_no_expression_holds_is_named() {
    type Edit = fn(&mut SeriesDefinition);
    let cases: [(Edit, &str, &str); 16] = [
        (
            |d| {
                d.template = "{SEQ:3:LOT}".into();
                d.serials[0].name = "LOT".into();
            },
            "serials[0].name",
            "SEQ",
        ),
        (|d| d.template = "{PROJECT}{SEQ:3}".into(), "template", "{PROJECT}"),
        (|d| d.template = "{CORR_TYPE}{SEQ:3}".into(), "template", "{CORR_TYPE}"),
        (|d| d.template = "{YEAR:B.E.}{SEQ:3}".into(), "template", "another era"),
        (|d| d.template = "{FY}{SEQ:3}".into(), "template", "{FY}"),
        (|d| d.template = "{SEQ}".into(), "template", "without a width"),
        (|d| d.serials[0].overflow = Overflow::Widen, "template", "widens"),
        (|d| d.template = "{YEAR}{SEQ:3}".into(), "serials[0].reset", "finest"),
        (|d| d.template = "{DATE:HH}{SEQ:3}".into(), "serials[0].reset", "time of day"),
        (|d| d.serials[0].reset = Reset::Day, "serials[0].reset", "finest"),
        (|d| d.serials[0].step = 2, "serials[0]", "start and its digits"),
        (|d| d.serials[0].max = Some(500), "serials[0]", "start and its digits"),
        (|d| d.template = "{A}{B}{SEQ:3}".into(), "serials[0].counter", "first serial: A, B"),
        (|d| d.template = "{A:2}{B}{SEQ:3}".into(), "variables.A", "width"),
        (|d| d.template = "{REV}{SEQ:3}".into(), "serials[0].reset", "REV"),
        (
            |d| {
                d.template = "{SEQ:3:SEQ2}{SEQ:3}".into();
                let second = SerialDefinition { name: "SEQ2".into(), ..Default::default() };
                d.serials.push(second);
            },
            "serials",
            "another order",
        ),
    ];
    for (edit, field, what) in cases {
        let series = series(|definition| {
            edit(definition);
            for name in ["A", "B", "REV"] {
                if definition.template.contains(&format!("{{{name}")) {
                    definition.variables.entry(name.into()).or_default();
                }
            }
        });
        let error = Expression::of(&series).expect_err(field);
        assert_eq!(error.field, field, "{error}");
        assert!(error.to_string().contains(what), "{error}");
    }
}

/// A rule that counts by an organization that its numbers do not show.
const HIDING: &str = r#"{
    "elements": [
        {"key": "variable", "label": "部门", "value": "单位"},
        {"key": "serial", "label": "流水号", "value": "1(4)"}
    ],
    "hidden_dimensions": ["project", "BRANCH"],
    "variables": {"BRANCH": {"required": true}, "单位": {"required": false, "width_max": 10}}
}"#;

#[test]
fn an_expression_counts_by_what_it_does_not_show_and_narrows_its_variables() {
    let made = defined(HIDING);
    assert_eq!(made.serials[0].counter, ["单位", "project", "BRANCH"]);
    assert_eq!((made.template.as_str(), made.variables.len()), ("{单位}{SEQ:4}", 2));
    let unit = &made.variables["单位"];
    assert_eq!(
        (unit.label.as_deref(), unit.width_max, unit.required),
        (Some("部门"), Some(10), true)
    );
    let back = Expression::of(&Series::compile(made.clone()).expect("sound")).expect("said");
    assert_eq!(Some(&back), Expression::parse(HIDING).ok().as_ref());
    let said = serde_json::to_string(&back).expect("JSON");
    assert_eq!(defined(&said), made, "{said}");
    let rest = "unique_within = [\"BRANCH\"]\n[series.variables.BRANCH]\nwidth = 3\n";
    let file = read_series(&file(HIDING, rest)).expect("sound");
    assert_eq!(file[0].variables["BRANCH"].width, Some(3), "a file narrows it further");
    assert_eq!(file[0].serials, made.serials);
}

#[test]
fn what_stands_beside_the_elements_is_refused_with_its_field() {
    for (from, to, expected) in [
        ("hidden_dimensions", "hidden", "beside `elements`: unknown field `hidden`"),
        ("width_max", "widest", "`variables.单位.widest`: unknown field `widest`"),
        (r#"["project", "BRANCH"]"#, r#""project""#, "write a list: [\"project\"]"),
        (r#""project", "BRANCH""#, r#""project", "UNIT""#, "serials[0].counter"),
        (r#""project", "BRANCH""#, r#""project", "单位""#, "serials[0].counter"),
        (r#""project", "BRANCH""#, r#""BRANCH", "BRANCH""#, "serials[0].counter"),
        ("\"width_max\": 10", "\"width_max\": 0", "variables.单位"),
    ] {
        let error = refused(&HIDING.replace(from, to)).to_string();
        assert!(error.contains(expected), "{to}: {error}");
    }
}

#[test]
fn a_prefix_and_a_year_are_said_in_other_words() {
    let series = series(|definition| {
        definition.prefix = Some("SPO".into());
        definition.template = "{PREFIX}-{YEAR}{DATE:MM}-{SEQ:3}".into();
        definition.serials[0].reset = Reset::Month;
    });
    let said = Expression::of(&series).expect("said");
    let values: Vec<&str> = said.elements.iter().map(|element| element.value.as_str()).collect();
    assert_eq!(values, ["SPO-", "yyyyMM", "-", "1(3)"]);
}

/// A date-time: an expression may count by the second.
const DATE_TIME: &str = "20[0-9]{2}-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])\
                         T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]Z";

/// The constant, time, variable and serial elements that a random expression is made of.
fn element() -> impl Strategy<Value = String> {
    prop_oneof![
        "const=[A-Z{}%. 常ก-]{1,4}",
        prop_oneof![
            Just("yyyy"),
            Just("yy"),
            Just("MM"),
            Just("dd"),
            Just("yyyyMM"),
            Just("yyyyMMdd"),
            Just("yyyy-MM-dd"),
            Just("yyyy'年'MM"),
            Just("yyyyDDD"),
            Just("HH"),
            Just("HHmm"),
            Just("yyyyMMddHHmmss"),
            Just("YYYYww"),
            Just("yyyyQ"),
            Just("Q"),
        ]
        .prop_map(|pattern| format!("time={pattern}")),
        "variable=(A|b|单位|部门1)",
        "serial=[1-9][0-9]{0,2}\\([3-9]\\)",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// An expression, the series that it represents, and the expression of that series are the same
    /// numbers and the same counters.
    #[test]
    fn an_expression_survives_its_definition(
        elements in prop::collection::vec(element(), 1..7),
        date in DATE_TIME,
    ) {
        let elements: Vec<&str> = elements.iter().map(String::as_str).collect();
        let parsed = Expression::parse(&expression(&elements)).expect("the shape is right");
        let Ok(first) = parsed.define(definition()) else { return Ok(()) };
        let first = Series::compile(first).expect("was compiled");
        let said = Expression::of(&first).expect("it came from one");
        let second = said.define(definition()).expect("it came from a series");
        let second = Series::compile(second).expect("was compiled");
        prop_assert_eq!(&Expression::of(&second).expect("said"), &said);
        let names = first.definition().variables.keys();
        let context = names.map(|name| (name.clone(), format!("{name}7"))).collect();
        let request = Inputs { date: Some(date), context, ..inputs("T", "", "", &[]) };
        let draft = |series: &Series| series.draft(&request, crate::testing::NOW);
        prop_assert_eq!(draft(&first), draft(&second));
        prop_assert_eq!(first.serials(), second.serials());
    }

    /// What a draft calls its constant part names the draft's counter.
    #[test]
    fn a_constant_part_names_its_counter(
        elements in prop::collection::vec(element(), 1..7),
        date in DATE_TIME,
    ) {
        let elements: Vec<&str> = elements.iter().map(String::as_str).collect();
        let parsed = Expression::parse(&expression(&elements)).expect("the shape is right");
        let Ok(made) = parsed.define(definition()) else { return Ok(()) };
        let series = Series::compile(made).expect("was compiled");
        let names = series.definition().variables.keys();
        let context = names.map(|name| (name.clone(), "x".into())).collect();
        let request = Inputs { date: Some(date), context, ..inputs("T", "", "", &[]) };
        let draft = series.draft(&request, crate::testing::NOW).expect("short enough");
        match RuleFormats::of(&series).expect("compiles").counter_key(&draft.rule_format()) {
            Ok(key) => prop_assert_eq!(&key, &draft.keys[0]),
            Err(RuleFormatError::Ambiguous) => {}
            Err(other) => prop_assert!(false, "{}: {other}", draft.rule_format()),
        }
    }
}

/// A series file whose series defines its numbers by an expression.
fn file(expression: &str, rest: &str) -> String {
    format!(
        "[[series]]\ncode = \"HT\"\nname = \"合同\"\ntimezone = \"Asia/Shanghai\"\n\
         serves = {{ types = [\"HT\"] }}\nexpression = '''\n{expression}'''\n{rest}"
    )
}

/// A variable with a label of its own.
const LABELLED: &str = r#"[
  {"key": "const", "value": "HT"},
  {"key": "time", "value": "yyyyMMdd"},
  {"key": "variable", "label": "部门", "value": "单位"},
  {"key": "serial", "value": "1(6)"}
]"#;

#[test]
fn a_series_file_may_hold_an_expression_and_is_what_it_says() {
    let read = read_series(&file(LABELLED, "")).expect("sound").remove(0);
    let said = Expression::parse(LABELLED).expect("sound");
    let head = SeriesDefinition {
        code: "HT".into(),
        name: "合同".into(),
        timezone: Some("Asia/Shanghai".into()),
        serves: Serves { types: vec!["HT".into()], ..Serves::default() },
        ..SeriesDefinition::default()
    };
    assert_eq!(read, said.define(head).expect("sound"));
    assert_eq!(read.template, "HT{DATE:yyyyMMdd}{单位}{SEQ:6}");
    let series = Series::compile(read.clone()).expect("compiles");
    assert_eq!(Expression::of(&series), Ok(said), "and the way back");
    assert_eq!(read.variables["单位"].width, None, "alone it takes any value");
    let narrow = "[series.variables.\"单位\"]\nalphabet = \"A-Z\"\nwidth = 4\n";
    let narrowed = read_series(&file(LABELLED, narrow)).expect("sound").remove(0);
    let variable = &narrowed.variables["单位"];
    assert_eq!((variable.required, variable.width), (true, Some(4)));
    assert_eq!(variable.label.as_deref(), Some("部门"));
    assert_eq!(narrowed.serials, read.serials);
}

#[test]
fn an_expression_in_a_series_file_is_refused_with_its_place() {
    for (text, expected) in [
        (file("[]", ""), "line 6, column 14: series HT: expression: write an array of 1 to 64"),
        (file("{", ""), "line 6, column 14: series HT: expression: line 1, column"),
        (file(r#"[{"key": "const", "value": "A"}]"#, ""), "no element is a serial"),
        (file(LABELLED, "template = \"{SEQ}\""), "`expression` says the template; write one"),
        (file(LABELLED, "[[series.serials]]\n"), "`expression` says the serials; write one"),
        (file(LABELLED, "[series.variables.\"单位\"]\nwidth = 0"), "variables.单位"),
        ("[[series]]\nexpression = 1\n".into(), "line 2, column 14: `expression` is a string"),
    ] {
        let error = read_series(&text).expect_err(&text).to_string();
        assert!(error.contains(expected), "{error}");
    }
}
