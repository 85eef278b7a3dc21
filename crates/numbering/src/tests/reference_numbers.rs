//! The built-in series give the reference numbers, text and counter key, and read them back.

use jiff::Timestamp;

use super::super::testing::{self, inputs, series};
use super::super::*;

/// Late evening in UTC, the next day in Bangkok and Taipei.
const NOW: &str = "2025-12-31T18:00:00Z";

fn now() -> Timestamp {
    NOW.parse().unwrap()
}

fn builtin() -> Vec<Series> {
    builtin_series().into_iter().map(|d| Series::compile(d).unwrap()).collect()
}

fn chosen<'s>(series: &'s [Series], inputs: &Inputs) -> &'s Series {
    &series[choose(series, inputs, testing::NOW).unwrap()]
}

/// A reference number.
struct Row {
    request: Inputs,
    value: u64,
    number: &'static str,
    key: String,
    scope: &'static str,
}

fn row(
    request: Inputs,
    value: u64,
    number: &'static str,
    key: impl Into<String>,
    scope: &'static str,
) -> Row {
    Row { request, value, number, key: key.into(), scope }
}

fn order_rows() -> Vec<Row> {
    let order = |code: &str| inputs(code, "", "2024-01-22", &[]);
    vec![
        row(order("SPO"), 1, "SPO-20240122-001", "type=SPO;day=2024-01-22", ""),
        row(order("SPO"), 15, "SPO-20240122-015", "type=SPO;day=2024-01-22", ""),
        row(order("BPO"), 1, "BPO-20240122-001", "type=BPO;day=2024-01-22", ""),
    ]
}

/// A document from คคง. in project LCBP3-C2, with the counter key that all of them share.
fn letter_row(
    type_code: &str,
    recipient: &str,
    value: u64,
    number: &'static str,
    scope: &'static str,
) -> Row {
    let context = [("ORIGINATOR", "คคง."), ("RECIPIENT", recipient)];
    let mut request = inputs(type_code, "LCBP3-C2", "2025-12-02", &context);
    let mut sub_type = "";
    if type_code == "TRANSMITTAL" {
        request.context.insert("SUB_TYPE".into(), "21".into());
        sub_type = "SUB_TYPE=21;";
    }
    let key = format!(
        "project=LCBP3-C2;ORIGINATOR=คคง.;RECIPIENT={recipient};type={type_code};\
         {sub_type}year=2025"
    );
    row(request, value, number, key, scope)
}

fn rows() -> Vec<Row> {
    let mut rows = order_rows();
    for (type_code, recipient, value, number, scope) in [
        ("LETTER", "สคฉ.3", 1, "คคง.-สคฉ.3-0001-2568", "project=LCBP3-C2;type=LETTER"),
        (
            "TRANSMITTAL",
            "สคฉ.3",
            117,
            "คคง.-สคฉ.3-21-0117-2568",
            "project=LCBP3-C2;type=TRANSMITTAL",
        ),
        ("RFI", "สคฉ.3", 42, "คคง.-สคฉ.3-0042-2568", "project=LCBP3-C2;type=RFI"),
        ("MEMO", "ผรม.1", 1, "คคง.-ผรม.1-0001-2568", "project=LCBP3-C2;type=MEMO"),
    ] {
        rows.push(letter_row(type_code, recipient, value, number, scope));
    }
    let context = [("DISCIPLINE", "TER"), ("RFA_TYPE", "RPT"), ("REV", "A")];
    rows.push(row(
        inputs("RFA", "LCBP3-C2", "2025-12-02", &context),
        1,
        "LCBP3-C2-RFA-TER-RPT-0001-A",
        "project=LCBP3-C2;type=RFA;RFA_TYPE=RPT;DISCIPLINE=TER",
        "project=LCBP3-C2;type=RFA",
    ));
    let context = [("ORG_CODE", "TEAM"), ("DISCIPLINE_CODE", "STR")];
    rows.push(row(
        inputs("RFA", "LCBP3", "2025-06-30", &context),
        1,
        "TEAM-RFA-STR-2025-0001",
        "project=LCBP3;ORG_CODE=TEAM;type=RFA;DISCIPLINE_CODE=STR;year=2025",
        "project=LCBP3;type=RFA",
    ));
    rows.extend(expression_rows());
    rows.extend(system_rows());
    rows
}

/// Documents whose rules are expressions: counted by everything shown but the serial.
fn expression_rows() -> Vec<Row> {
    let contract = |unit| inputs("HT", "", "2024-01-15", &[("单位", unit)]);
    let expense = inputs("BX", "", "2024-01-15", &[]);
    vec![
        row(contract("财务部"), 1, "HT20240115财务部000001", "单位=财务部;day=2024-01-15", ""),
        row(contract("A1"), 999_999, "HT20240115A1999999", "单位=A1;day=2024-01-15", ""),
        row(expense, 42, "BX202401150042", "day=2024-01-15", ""),
    ]
}

/// Exchange serials, on a day without a time.
fn system_rows() -> Vec<Row> {
    let context = [("SYSTEM", "C0001"), ("MODULE", "A01"), ("INSTANCE", "01")];
    let key = "SYSTEM=C0001;MODULE=A01;INSTANCE=01;day=2015-07-10";
    let serial =
        |code, value, number| row(inputs(code, "", "2015-07-10", &context), value, number, key, "");
    vec![
        serial("UNIFIED-SERIAL", 123_456_789, "C0001A0101201507100123456789"),
        serial("SYSTEM-SERIAL", 1, "C0001A010120150710000000000001"),
    ]
}

#[test]
fn serials_between_systems_are_told_apart_by_their_length() {
    let series = builtin();
    let context = [("SYSTEM", "C0001"), ("MODULE", "A01"), ("INSTANCE", "01"), ("TARGET", "P0002")];
    for (code, shown, number) in [
        ("UNIFIED-SERIAL", 3, "C0001A0101201508100000001234"),
        ("SYSTEM-SERIAL", 3, "C0001A010120150810000000001234"),
        ("INTERFACE-SERIAL", 4, "C0001A0101P0002201508102301100000001234"),
    ] {
        let request = inputs(code, "", "2015-08-10T23:01:10+08:00", &context[..shown]);
        let draft = chosen(&series, &request).draft(&request, now()).unwrap();
        assert_eq!(draft.partial.fill(&[1234]).unwrap(), number);
        // The target is shown, and no part of the counter.
        let key = "SYSTEM=C0001;MODULE=A01;INSTANCE=01;day=2015-08-10";
        assert_eq!(draft.keys[0].to_string(), key);
        let readers = series.iter().filter(|series| series.parse(number).is_ok());
        let readers: Vec<&str> = readers.map(|s| s.definition().code.as_str()).collect();
        assert_eq!(readers, [code]);
    }
}

#[test]
fn a_field_of_another_width_or_alphabet_is_refused() {
    let series = builtin();
    for (name, value, slug) in [
        ("SYSTEM", "C001", "value-too-short"),
        ("SYSTEM", "C00001", "value-too-long"),
        ("SYSTEM", "C-001", "wrong-alphabet"),
        ("MODULE", "A0é", "wrong-alphabet"),
        ("INSTANCE", "0A", "wrong-alphabet"),
        ("INSTANCE", "1", "value-too-short"),
        ("TARGET", "系统0001", "wrong-alphabet"),
    ] {
        let context =
            [("SYSTEM", "C0001"), ("MODULE", "A01"), ("INSTANCE", "01"), ("TARGET", "P0002")];
        let mut request = inputs("INTERFACE-SERIAL", "", "2015-08-10T23:01:10+08:00", &context);
        request.context.insert(name.into(), value.into());
        let refused = chosen(&series, &request).draft(&request, now()).unwrap_err();
        assert_eq!((refused.slug(), refused.field()), (slug, format!("context.{name}")));
    }
}

#[test]
fn the_contract_series_is_the_one_of_its_expression() {
    let json = r#"[
        {"key": "const", "label": "常量", "value": "HT"},
        {"key": "time", "label": "时间", "value": "yyyyMMdd"},
        {"key": "variable", "label": "变量", "value": "单位"},
        {"key": "serial", "label": "流水号", "value": "1(6)"}
    ]"#;
    let series = builtin();
    let contract = series.iter().find(|series| series.definition().code == "HT").unwrap();
    let head = contract.definition().clone();
    let said = Expression::parse(json).unwrap().define(head).unwrap();
    let shipped = contract.definition();
    assert_eq!((&said.template, &said.serials), (&shipped.template, &shipped.serials));
    let of_shipped = Expression::of(contract).expect("what is shipped can be said");
    assert_eq!(of_shipped.define(shipped.clone()).as_ref(), Ok(shipped));
}

#[test]
fn the_reference_numbers_come_out_exactly() {
    let series = builtin();
    for Row { request, value, number, key, scope } in rows() {
        let draft = chosen(&series, &request).draft(&request, now()).unwrap();
        assert_eq!(draft.partial.fill(&[value]).unwrap(), number);
        assert_eq!(draft.keys[0].to_string(), key, "{number}");
        assert_eq!(draft.scope, scope, "{number}");
        assert_eq!(Some(&draft.document_date), request.date.as_ref(), "{number}");
    }
}

#[test]
fn the_reference_numbers_are_read_back() {
    let series = builtin();
    for Row { request, value, number, .. } in rows() {
        let parsed = chosen(&series, &request).parse(number).unwrap();
        assert_eq!(parsed.serials, [ParsedSerial { name: "SEQ".into(), value }]);
        for (name, given) in &request.context {
            assert_eq!(parsed.variables.get(name), Some(given), "{number}");
        }
        let given = request.date.unwrap();
        assert!(parsed.date.is_none_or(|date| given.starts_with(&date)), "{number}");
    }
    let rfa = chosen(&series, &inputs("RFA", "P", "", &[]));
    let parsed = rfa.parse("LCBP3-C2-RFA-TER-RPT-0001-A").unwrap();
    assert_eq!(parsed.variables["PROJECT"], "LCBP3-C2");
    assert_eq!(parsed.variables["CORR_TYPE"], "RFA");
}

#[test]
fn all_twelve_order_types_are_served_under_their_own_prefix() {
    let series = builtin();
    let codes = ["SPO", "BPO", "FSO", "FDO", "DSO", "CO", "ADJ", "IAO", "BPF", "SKR", "SRR", "BRO"];
    for code in codes {
        let request = inputs(code, "", "", &[]);
        let draft = chosen(&series, &request).draft(&request, now()).unwrap();
        // New Year has begun in Taipei.
        assert_eq!(draft.partial.fill(&[7]).unwrap(), format!("{code}-20260101-007"));
        assert_eq!(draft.document_date, "2026-01-01");
    }
    assert_eq!(series.len(), codes.len() + 10);
}

#[test]
fn every_default_type_is_served_and_drawings_are_not() {
    let series = builtin();
    for code in ["RFI", "MEMO", "EMAIL", "MOM", "INSTRUCTION", "NOTICE", "OTHER"] {
        let request = inputs(code, "P", "", &[("ORIGINATOR", "A"), ("RECIPIENT", "B")]);
        let draft = chosen(&series, &request).draft(&request, now()).unwrap();
        // 2026 in Bangkok already: B.E. 2569.
        assert_eq!(draft.partial.fill(&[1]).unwrap(), "A-B-0001-2569");
    }
    let refused = choose(&series, &inputs("DRAWING", "P", "", &[]), testing::NOW);
    assert!(matches!(refused, Err(RuleError::TypeNotConfigured { .. })), "{refused:?}");
    let unknown = choose(&series, &inputs("SONG", "", "", &[]), testing::NOW);
    assert!(matches!(unknown, Err(RuleError::UnknownType { .. })), "{unknown:?}");
}

#[test]
fn missing_discipline_sub_type_and_rfa_type_count_as_0() {
    let series = builtin();
    let request = inputs("RFA", "P", "", &[("REV", "A")]);
    let draft = chosen(&series, &request).draft(&request, now()).unwrap();
    assert_eq!(draft.keys[0].to_string(), "project=P;type=RFA;RFA_TYPE=0;DISCIPLINE=0");
    assert_eq!(draft.partial.fill(&[1]).unwrap(), "P-RFA-0-0-0001-A");
}

#[test]
fn an_rfa_takes_no_recipient_and_a_letter_needs_one() {
    let series = builtin();
    let request = inputs("RFA", "P", "", &[("REV", "A"), ("RECIPIENT", "B")]);
    let refused = chosen(&series, &request).draft(&request, now()).unwrap_err();
    assert_eq!((refused.slug(), refused.field()), ("unknown-variable", "context.RECIPIENT".into()));
    let request = inputs("LETTER", "P", "", &[("ORIGINATOR", "B")]);
    let refused = chosen(&series, &request).draft(&request, now()).unwrap_err();
    assert_eq!((refused.slug(), refused.field()), ("missing-variable", "context.RECIPIENT".into()));
}

#[test]
fn the_year_of_the_counter_and_of_the_text_turn_together_in_bangkok() {
    let series = builtin();
    let request = inputs("LETTER", "P", "", &[("ORIGINATOR", "A"), ("RECIPIENT", "B")]);
    let letter = chosen(&series, &request);
    for (now, year, shown) in
        [("2025-12-31T16:59:59.999Z", "2025", "2568"), ("2025-12-31T17:00:00Z", "2026", "2569")]
    {
        let draft = letter.draft(&request, now.parse().unwrap()).unwrap();
        assert!(draft.keys[0].to_string().ends_with(&format!("year={year}")), "{now}");
        assert_eq!(draft.partial.fill(&[1]).unwrap(), format!("A-B-0001-{shown}"));
    }
}

#[test]
fn the_fiscal_year_of_the_counter_and_of_the_text_turn_together() {
    let series = series(|definition| {
        definition.template = "{FY:B.E.}/{FY:start}-{SEQ:3}".into();
        definition.timezone = Some("Asia/Bangkok".into());
        definition.fiscal_year_start = Some(10);
        definition.serials[0].reset = Reset::FiscalYear;
    });
    for (date, key, number) in [
        ("2025-09-30T23:59:59+07:00", "fiscal-year=2025", "2568/2024-001"),
        ("2025-09-30T17:00:00Z", "fiscal-year=2026", "2569/2025-001"),
    ] {
        let draft = series.draft(&inputs("T", "", date, &[]), now()).unwrap();
        assert_eq!(draft.keys[0].to_string(), key);
        assert_eq!(draft.partial.fill(&[1]).unwrap(), number);
        assert_eq!(series.origins(&series.parse(number).unwrap()), draft.keys);
    }
}

#[test]
fn a_definition_survives_json_and_toml() {
    for definition in builtin_series() {
        let json = serde_json::to_string(&definition).unwrap();
        assert_eq!(serde_json::from_str::<SeriesDefinition>(&json).unwrap(), definition);
        let toml = toml::to_string(&definition).unwrap();
        assert_eq!(toml::from_str::<SeriesDefinition>(&toml).unwrap(), definition);
    }
}

#[test]
fn the_largest_value_is_the_smallest_of_its_bounds() {
    for (template, declared, max) in [
        ("{SEQ:3}", None, 999),
        ("{SEQ:3}", Some(500), 500),
        ("{SEQ:3}", Some(5000), 999),
        ("{SEQ:15}", None, 999_999_999_999_999),
        ("{SEQ}", None, NUMBER_MAX),
        ("{SEQ}", Some(7), 7),
    ] {
        let series = series(|definition| {
            definition.template = template.into();
            definition.serials[0].max = declared;
        });
        assert_eq!(series.serials()[0].max, max, "{template} {declared:?}");
    }
}
