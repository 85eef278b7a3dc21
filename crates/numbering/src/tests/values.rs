//! Variables that declare their values: a value that is not among them is refused, with the nearest
//! one named; issued numbers are read as before.

use super::super::testing::{NOW, inputs};
use super::super::*;

/// A series that shows and counts by a supplier of these values.
fn file(values: &str, more: &str) -> String {
    format!(
        "[[series]]\ncode = \"S\"\nname = \"S\"\ntemplate = \"{{SUPPLIER}}-{{SEQ:3}}\"\n\
         serves = {{ types = [\"T\"] }}\nserials = [{{ counter = [\"SUPPLIER\"] }}]\n\
         [series.variables.SUPPLIER]\nexcluded = \"-\"\n{more}\nvalues = {values}\n"
    )
}

fn read(values: &str) -> Series {
    let definition = read_series(&file(values, "")).expect("a series file").remove(0);
    Series::compile(definition).expect("a series")
}

fn ask(series: &Series, supplier: &str) -> Result<Draft, InputError> {
    series.draft(&inputs("T", "", "2025-06-30", &[("SUPPLIER", supplier)]), NOW)
}

#[test]
fn a_value_that_is_not_declared_is_refused_with_the_nearest() {
    let series = read(r#"["ACME", "BOLT", "ทำ", "e\u0301t\u00e9"]"#);
    for value in ["ACME", "BOLT", "ทำ", "\u{e9}te\u{301}"] {
        ask(&series, value).expect(value);
    }
    for (value, nearest) in [("ACMEE", "ACME"), ("acme", "ACME"), ("BLOT", "BOLT"), ("ท", "ทำ")]
    {
        let refused = ask(&series, value).unwrap_err();
        assert_eq!((refused.slug(), &*refused.field()), ("unknown-value", "context.SUPPLIER"));
        let told = refused.to_string();
        assert!(
            told.contains(value) && told.contains(&format!("nearest is {nearest:?}")),
            "{told}"
        );
    }
    // A made-up request of a preview is one that the series takes.
    let sample = series.sample(NOW);
    assert_eq!(sample.context["SUPPLIER"], "ACME");
    series.draft(&sample, NOW).expect("a sample");
}

#[test]
fn declared_values_may_look_like_others_since_an_administrator_wrote_them() {
    let cyrillic = "\u{410}\u{421}\u{41c}\u{415}";
    ask(&read(&format!("[\"{cyrillic}\"]")), cyrillic).expect("declared");
    assert_eq!(ask(&read("[\"ACME\"]"), cyrillic).unwrap_err().slug(), "unknown-value");
}

#[test]
fn what_is_out_already_is_read_and_revised_whatever_the_values_become() {
    let (before, after) = (read(r#"["ACME", "BOLT"]"#), read(r#"["BOLT", "CORE"]"#));
    check_change(&before, &after).expect("no counter is another one");
    assert!(same_numbers(before.definition(), after.definition()), "it is not proved again");
    assert_eq!(after.parse("ACME-007").expect("read").variables["SUPPLIER"], "ACME");
    let old = inputs("T", "", "2025-06-30", &[("SUPPLIER", "ACME")]);
    draft::partial_number(&after, &old, NOW).expect("it is out already");
    ask(&after, "ACME").expect_err("and gets no more of them");
}

#[test]
fn a_revision_gets_a_declared_label() {
    let text = file(r#"["A", "B"]"#, "")
        .replace("SUPPLIER", "REV")
        .replace("{REV}-{SEQ:3}", "{SEQ:3}-{REV}");
    let text = text.replace("counter = [\"REV\"]", "counter = [\"type\"]");
    let series = Series::compile(read_series(&text).expect("file").remove(0)).expect("series");
    let request = inputs("T", "", "2025-06-30", &[("REV", "A")]);
    let original = Original { number: "001-A", inputs: &request, values: &[1] };
    assert_eq!(series.revise(&original, "B").expect("declared").number, "001-B");
    let refused = series.revise(&original, "C").unwrap_err().to_string();
    assert!(refused.contains("rev") && refused.contains("nearest is"), "{refused}");
}

#[test]
fn a_list_that_says_nothing_sensible_is_refused_by_its_field() {
    let many: Vec<String> = (0..1001).map(|at| format!("\"V{at}\"")).collect();
    let many = format!("[{}]", many.join(","));
    for (values, more, field, says) in [
        ("[]", "", "variables.SUPPLIER.values", "at least one"),
        (&*many, "", "variables.SUPPLIER.values", "at most 1000"),
        (r#"["A", "A"]"#, "", "variables.SUPPLIER.values[1]", "twice"),
        (r#"["\u00e9", "e\u0301"]"#, "", "variables.SUPPLIER.values[1]", "twice"),
        (r#"["A", ""]"#, "", "variables.SUPPLIER.values[1]", "at least one"),
        (r#"["A-B"]"#, "", "variables.SUPPLIER.values[0]", "not allowed"),
        (r#"["ABC"]"#, "width = 2", "variables.SUPPLIER.values[0]", "at most 2"),
        (r#"["A"]"#, "default = \"B\"", "variables.SUPPLIER.default", "nearest is \"A\""),
        (r#"["A"]"#, "reference = \"suppliers\"", "variables.SUPPLIER.values", "reference"),
    ] {
        let error = read_series(&file(values, more)).expect_err(field).to_string();
        assert!(error.contains(field) && error.contains(says), "{field} {says}: {error}");
    }
}

#[test]
fn declared_values_stand_beside_the_elements_of_an_expression() {
    let text = file(r#"["A"]"#, "required = true").replace("excluded = \"-\"\n", "");
    let series = Series::compile(read_series(&text).expect("file").remove(0)).expect("series");
    let said = Expression::of(&series).expect("said");
    let again = said.define(series.definition().clone()).expect("sound");
    assert_eq!(
        again.variables["SUPPLIER"].values,
        series.definition().variables["SUPPLIER"].values
    );
}
