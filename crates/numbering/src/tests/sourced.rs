//! Values that a source gives: what can be combined with them, and where numbers show them.

use super::super::testing::{inputs, serial, series};
use super::super::*;

/// A number that is made of what a source gives.
fn definition(edit: impl FnOnce(&mut SeriesDefinition)) -> SeriesDefinition {
    let text = "[[series]]\ncode = \"X\"\nname = \"X\"\npolicy = \"gapless\"\n\
                template = \"HT{ERP}\"\nserves = { types = [\"T\"] }\n\
                [series.variables.ERP]\nsource = \"erp\"\nalphabet = \"0-9\"\nwidth_max = 5\n";
    let mut definition = read_series(text).expect("a series").remove(0);
    edit(&mut definition);
    definition
}

fn sourced(edit: impl FnOnce(&mut SeriesDefinition)) -> Series {
    Series::compile(definition(edit)).expect("compiles")
}

fn variable(definition: &mut SeriesDefinition) -> &mut VariableDefinition {
    definition.variables.get_mut("ERP").expect("declared")
}

#[test]
fn what_a_source_gives_stands_in_the_number_and_takes_a_hidden_value_of_each_day() {
    let (series, now) = (sourced(|_| {}), testing::NOW);
    let sourced = SourcedVariable { variable: "ERP", source: "erp" };
    assert_eq!((series.sourced(), series.serials()[0].name.as_str()), (Some(sourced), "EXTERNAL"));
    let request = inputs("T", "", "2025-12-02", &[]);
    let asked = series.draft(&request, now).expect("draft");
    // Whatever comes is no longer than what was checked.
    assert_eq!(asked.partial.fill(&[1]).expect("fits"), "HT00000");
    assert_eq!((asked.resolved, asked.keys[0].to_string()), (None, "day=2025-12-02".into()));
    let answered = series.draft_answered(&request, "4711", now).expect("draft");
    assert_eq!(answered.partial.fill(&[1]).expect("fits"), "HT4711");
    assert_eq!((answered.keys, answered.scope), (asked.keys, asked.scope));
    let parsed = series.parse("HT4711").expect("reads back");
    assert_eq!((parsed.variables["ERP"].as_str(), parsed.serials.len()), ("4711", 0));
    assert!(series.draft(&series.sample(now), now).is_ok());
    let again = serde_json::to_value(series.definition()).expect("JSON");
    assert!(again.get("serials").is_none(), "{again}");
}

#[test]
fn a_request_brings_no_value_of_a_source_and_a_source_no_value_that_does_not_suit() {
    let series = sourced(|_| {});
    let brought = inputs("T", "", "2025-12-02", &[("ERP", "1")]);
    let error = series.draft(&brought, testing::NOW).expect_err("brought");
    let told = "context.ERP: its value comes from the source erp; leave it out";
    assert_eq!((error.slug(), error.to_string().as_str()), ("invalid-field", told));
    let request = inputs("T", "", "2025-12-02", &[]);
    for (value, slug) in [
        ("", "missing-variable"),
        ("47a", "wrong-alphabet"),
        ("123456", "value-too-long"),
        ("1\n", "wrong-alphabet"),
    ] {
        let error = series.draft_answered(&request, value, testing::NOW).expect_err(value);
        assert_eq!((error.slug(), error.field().as_str()), (slug, "context.ERP"), "{value:?}");
    }
    let free = sourced(|d| {
        d.template = "{ERP}-HT".into();
        variable(d).alphabet = None;
    });
    for value in ["=1", "+1", "\u{410}CME"] {
        let error = free.draft_answered(&request, value, testing::NOW).expect_err(value);
        assert_eq!(error.slug(), "wrong-alphabet", "{value}");
    }
    // What was issued elsewhere shows its value, and so does what is in the journal.
    assert!(series.draft_issued(&brought, testing::NOW).is_ok());
    let labelled = sourced(|d| {
        d.template = "HT{ERP}-{REV}".into();
        variable(d).alphabet = Some("/".into());
        let label = VariableDefinition { default: Some("A".into()), ..Default::default() };
        d.variables.insert("REV".into(), label);
    });
    assert!(labelled.draft(&request, testing::NOW).is_ok(), "a stand-in of whatever it takes");
    let issued = inputs("T", "", "2025-12-02", &[("ERP", "//")]);
    let original = Original { inputs: &issued, values: &[7], number: "HT//-A" };
    assert_eq!(labelled.revise(&original, "B").expect("revised").number, "HT//-B");
}

#[test]
fn what_does_not_go_together_with_a_source_is_refused_with_a_remedy() {
    type Edit = fn(&mut SeriesDefinition);
    let cases: [(Edit, &str, &str); 13] = [
        (|d| d.policy = Policy::Fast, "variables.ERP.source", "set `policy = \"gapless\"`"),
        (|d| d.policy = Policy::Durable, "variables.ERP.source", "set `policy = \"gapless\"`"),
        (|d| variable(d).source = Some("http://x".into()), "variables.ERP.source", "no name"),
        (|d| variable(d).required = true, "variables.ERP.source", "contradicts `required`"),
        (|d| variable(d).default = Some("1".into()), "variables.ERP.source", "`default`"),
        (|d| variable(d).values = Some(vec!["1".into()]), "variables.ERP.source", "`values`"),
        (|d| variable(d).reference = Some("t".into()), "variables.ERP.source", "`reference`"),
        (|d| d.unique_within = vec!["ERP".into()], "unique_within", "remove it there"),
        (
            |d| {
                d.template = "HT{ERP}-{SEQ:3}".into();
                d.serials = vec![SerialDefinition { counter: vec!["ERP".into()], ..serial("SEQ") }];
            },
            "serials[0].counter",
            "remove it there",
        ),
        (
            |d| {
                let erp = d.variables["ERP"].clone();
                d.variables.insert("SAP".into(), erp);
                d.template = "HT{ERP}-{SAP}".into();
            },
            "variables.SAP.source",
            "keep one",
        ),
        (
            |d| {
                d.template = "HT-{SEQ:3}".into();
                d.serials = vec![serial("SEQ")];
            },
            "variables.ERP.source",
            "no token",
        ),
        (
            |d| {
                let erp = d.variables.remove("ERP").expect("declared");
                d.variables.insert("SUB_TYPE".into(), erp);
                d.template = "HT{SUB_TYPE}".into();
            },
            "variables.SUB_TYPE.source",
            "another name",
        ),
        (
            |d| {
                d.template = "HT{ERP}-{SEQ:3:EXTERNAL}".into();
                d.serials = vec![serial("EXTERNAL")];
            },
            "serials[0].name",
            "built into the language",
        ),
    ];
    for (edit, field, remedy) in cases {
        let error = Series::compile(definition(edit)).expect_err(remedy);
        let told = error.to_string();
        assert!(error.field() == field && told.contains(remedy), "{field} {remedy}: {told}");
    }
    let series = sourced(|d| d.template = "{ERP}-{CHECK:luhn}".into());
    let request = inputs("T", "", "2025-12-02", &[]);
    let checked = series.draft_answered(&request, "79927", testing::NOW).expect("draft");
    let number = checked.partial.fill(&[1]).expect("fits");
    assert!(number.starts_with("79927-") && series.parse(&number).is_ok(), "{number}");
}

#[test]
fn a_used_series_gets_and_loses_its_source_only_behind_another_text() {
    let asked = sourced(|_| {});
    assert_eq!(check_change(&asked, &asked), Ok(()));
    let counted = |template: &str| series(|d| d.template = template.into());
    let counters = Err(ChangeError::Counters { field: "serials[0]".into() });
    assert_eq!(check_change(&asked, &counted("HT{SEQ:4}")), counters);
    assert_eq!(check_change(&counted("HT{SEQ:4}"), &asked), counters);
    assert_eq!(check_change(&asked, &counted("B{SEQ:4}")), Ok(()));
}
