//! Every refusal, by table: which definition, request, number or file is refused, and what the
//! error names.

use super::super::testing::{compile, inputs, serial, series};
use super::super::*;

/// A variable from its TOML declaration.
fn declared(toml: &str) -> VariableDefinition {
    toml::from_str(toml).unwrap()
}

#[test]
fn a_template_with_a_mistake_is_refused_at_the_token() {
    for (template, position, hint) in [
        ("{SEQ:3}-{ORG}", 9, "{ORIGINATOR} or {RECIPIENT}"),
        ("{SEQ:3}-{TYPE}", 9, "{CORR_TYPE}, {SUB_TYPE} or {RFA_TYPE}"),
        ("{SEQ:3}-{CATEGORY}", 9, "remove it"),
        ("ก-{NOPE}", 3, "PHASE, SNOWFLAKE, CHECK, DISCIPLINE, REV"),
        ("{seq:3}", 1, "unknown token; is SEQ meant?"),
        ("{rev}-{SEQ:3}", 1, "unknown token; is REV meant?"),
        ("{}", 1, "unknown token"),
        ("{SEQ:0}", 1, "1 to 15"),
        ("{SEQ:16}", 1, "1 to 15"),
        ("{SEQ:}", 1, "1 to 15"),
        ("{SEQ:+3}", 1, "1 to 15"),
        (
            "{SEQ:3:OTHER}",
            1,
            "no serial is named \"OTHER\"; this series has one serial: write {SEQ:4}",
        ),
        ("{SEQ:3}{SEQ:3}", 8, "exactly one"),
        ("{SEQ:3}{DATE}", 8, "{DATE:yyyyMMdd}"),
        ("{SEQ:3}{DATE:}", 8, "no date"),
        ("{SEQ:3}{DATE:yyyyMMDD}", 8, "dd"),
        ("{SEQ:3}{DATE:YYYYMMdd}", 8, "write yyyy"),
        ("{SEQ:3}{DATE:YYYY}-{DATE:MM}", 8, "write yyyy"),
        ("{SEQ:3}{DATE:yyyymm}", 8, "the month is MM"),
        ("{SEQ:3}{YEAR:X}", 8, "{YEAR:B.E.}"),
        ("{SEQ:3}{FY:X}", 8, "{FY:B.E.}"),
        ("{SEQ:3}{FY:startROC}", 8, "{FY:start"),
        ("{SEQ:3}{PHASE:2}", 8, "write {PHASE}"),
        ("{SEQ:3}{PREFIX}", 8, "set `prefix`"),
        ("{SEQ:3}{PROJECT:4}", 8, "write {PROJECT}"),
        ("{SEQ:3}{DISCIPLINE:9}", 8, "at most 4"),
        ("{SEQ:3}{DISCIPLINE:x}", 8, "{NAME:n}"),
        ("{SEQ:3}{DISCIPLINE:0}", 8, "{NAME:n}"),
        ("{SEQ:3", 1, "not closed"),
        ("{SEQ:3}}", 8, "`}}` for a brace"),
        ("{SEQ:{3}}", 1, "no `{`"),
        ("a\tb{SEQ:3}", 2, "printable"),
        ("{SEQ:3}\u{301}", 8, "printable"),
        ("e\u{301}{SEQ:3}", 1, "normal form"),
    ] {
        let error = compile(|definition| {
            definition.template = template.into();
            for (name, toml) in [("DISCIPLINE", "width_max = 4"), ("REV", "")] {
                definition.variables.insert(name.into(), declared(toml));
            }
        })
        .unwrap_err();
        let TemplateError::Token { at, .. } = &error else { panic!("{template}: {error}") };
        assert_eq!(at.position, position, "{template}: {error}");
        assert!(error.to_string().contains(hint), "{template}: {error}");
        assert_eq!(error.field(), "template");
    }
}

/// A change to a sound definition.
type Edit = fn(&mut SeriesDefinition);

/// The field that is refused, a word of the reason, and the mistake.
const MISTAKES: [(&str, &str, Edit); 39] = [
    ("code", "empty", |d| d.code.clear()),
    ("code", "letters", |d| d.code = "a b".into()),
    ("code", "at most 64", |d| d.code = "x".repeat(65)),
    ("name", "empty", |d| d.name.clear()),
    ("name", "printable", |d| d.name = "a\nb".into()),
    ("description", "control", |d| d.description = "a\0".into()),
    ("description", "2000", |d| d.description = "a".repeat(2001)),
    ("prefix", "blanks", |d| d.prefix = Some(" P".into())),
    ("template", "empty", |d| d.template.clear()),
    ("template", "at most 512", |d| d.template = "x".repeat(513)),
    ("template", "at least 129", |d| d.template = format!("{}{{SEQ:3}}", "x".repeat(126))),
    ("timezone", "Asia/Bangkok", |d| d.timezone = Some("Asia/Bankok".into())),
    ("serves.types", "document type", |d| d.serves.types.clear()),
    ("serves.types[1]", "twice", |d| d.serves.types.push("T".into())),
    ("serves.types[1]", "printable", |d| d.serves.types.push("T\0".into())),
    ("serves.projects[0]", "empty", |d| d.serves.projects.push(String::new())),
    ("serves.undetermined_types", "serves.types", |d| {
        d.serves.undetermined_types.push("T".into());
    }),
    ("variables.lower", "capital", |d| {
        d.variables.insert("lower".into(), declared(""));
    }),
    ("variables.", "capital", |d| {
        d.variables.insert(String::new(), declared(""));
    }),
    ("variables.PROJECT", "built into", |d| {
        d.variables.insert("PROJECT".into(), declared(""));
    }),
    ("variables.TYPE", "withdrawn; write {CORR_TYPE}, {SUB_TYPE} or {RFA_TYPE}", |d| {
        d.variables.insert("TYPE".into(), declared(""));
    }),
    ("variables.A.required", "default", |d| {
        d.variables.insert("A".into(), declared("required = true\ndefault = 'x'"));
    }),
    ("variables.A.default", "refuses", |d| {
        d.variables.insert("A".into(), declared("alphabet = '0-9'\ndefault = 'x'"));
    }),
    ("variables.A.default", "exactly 2", |d| {
        d.variables.insert("A".into(), declared("default = 'x'"));
        d.template = "{SEQ:3}{A:2}".into();
    }),
    ("variables.A.alphabet", "ranges", |d| {
        d.variables.insert("A".into(), declared("alphabet = 'Z-A'"));
    }),
    ("template", "write `serials = [{ reset = \"none\" }]`", |d| d.serials.clear()),
    ("serials", "at most 8", |d| {
        d.serials = (0..9).map(|i| serial(&format!("S{i}"))).collect();
    }),
    ("serials[1]", "{SEQ:4:LOT}", |d| d.serials.push(serial("LOT"))),
    ("serials[1].name", "twice", |d| d.serials.push(serial("SEQ"))),
    ("serials[0].name", "letters", |d| d.serials[0].name = "a-b".into()),
    ("serials[0].name", "letter", |d| d.serials[0].name = "1".into()),
    ("serials[0].start", "1 to 999", |d| d.serials[0].start = 1000),
    ("serials[0].start", "1 to 999", |d| d.serials[0].start = 0),
    ("fiscal_year_start", "1 to 12", |d| d.fiscal_year_start = Some(0)),
    ("fiscal_year_start", "1 to 12", |d| d.fiscal_year_start = Some(13)),
    ("serials[0].step", "1 to", |d| d.serials[0].step = 0),
    ("serials[0].max", "9007199254740991", |d| d.serials[0].max = Some(NUMBER_MAX + 1)),
    ("serials[0].counter[1]", "unknown dimension \"year\"", |d| {
        d.serials[0].counter = vec!["type".into(), "year".into()];
    }),
    ("unique_within[1]", "twice", |d| d.unique_within = vec!["type".into(), "type".into()]),
];

#[test]
fn a_definition_with_a_mistake_is_refused_at_the_field() {
    for (field, hint, edit) in MISTAKES {
        let error = compile(edit).unwrap_err();
        assert_eq!(error.field(), field, "{error}");
        assert!(error.to_string().contains(hint), "{field}: {error}");
    }
}

#[test]
fn only_beside_an_id_may_serials_be_left_out() {
    let error = compile(|d| (d.serials, d.template) = (Vec::new(), "A{{SNOWFLAKE}}".into()));
    let error = error.unwrap_err();
    assert!(error.field() == "serials" && error.to_string().contains("empty"), "{error}");
    let error = compile(|d| d.serials.push(serial("SNOWFLAKE"))).unwrap_err();
    assert_eq!(error.field(), "serials[1].name");
    assert!(error.to_string().contains("built into"), "{error}");
}

#[test]
fn a_revision_identifies_no_counter() {
    for scope in [false, true] {
        let error = compile(|definition| {
            definition.variables.insert("REV".into(), declared("required = true"));
            definition.template = "{SEQ:3}{REV}".into();
            let list = match scope {
                true => &mut definition.unique_within,
                false => &mut definition.serials[0].counter,
            };
            list.push("REV".into());
        })
        .unwrap_err();
        assert!(error.to_string().contains("identifies no counter"), "{error}");
    }
}

#[test]
fn a_request_with_a_mistake_is_refused_at_the_field() {
    let series = series(|definition| {
        definition.template = "{PROJECT}{CORR_TYPE}{A}{B:2}{SEQ:3}{DATE:HH}".into();
        definition.serials[0].counter = vec!["C".into()];
        for (name, toml) in [
            ("A", "required = true\nalphabet = 'A-Z'\nwidth_max = 5"),
            ("B", "alphabet = 'A-Z'"),
            ("C", "width_max = 5"),
        ] {
            definition.variables.insert(name.into(), declared(toml));
        }
    });
    let sound = || inputs("T", "P", "", &[("A", "A"), ("B", "BB")]);
    let now = "2024-02-29T12:00:00Z".parse().unwrap();
    assert_eq!(series.draft(&sound(), now).unwrap().keys[0].to_string(), "C=0");
    let set = |name: &str, value: &str| {
        let mut request = sound();
        request.context.insert(name.into(), value.into());
        request
    };
    let without = |name: &str| {
        let mut request = sound();
        request.context.remove(name);
        request
    };
    for (request, slug, field) in [
        (set("X", "1"), "unknown-variable", "context.X"),
        (set("PROJECT", "1"), "unknown-variable", "context.PROJECT"),
        (without("A"), "missing-variable", "context.A"),
        (without("B"), "missing-variable", "context.B"),
        (set("A", ""), "missing-variable", "context.A"),
        (set("C", ""), "missing-variable", "context.C"),
        (set("A", "ABCDEF"), "value-too-long", "context.A"),
        (set("B", "BBB"), "value-too-long", "context.B"),
        (set("B", "B"), "value-too-short", "context.B"),
        (set("C", "123456"), "value-too-long", "context.C"),
        (set("A", "a"), "wrong-alphabet", "context.A"),
        (set("C", "\0"), "wrong-alphabet", "context.C"),
        (set("C", "a\u{7}"), "wrong-alphabet", "context.C"),
        (inputs("T", "", "", &[("A", "A"), ("B", "BB")]), "missing-variable", "project"),
        (Inputs { project: Some(String::new()), ..sound() }, "missing-variable", "project"),
        (Inputs { project: Some("P\n".into()), ..sound() }, "wrong-alphabet", "project"),
        (Inputs { project: Some("P".repeat(65)), ..sound() }, "value-too-long", "project"),
        (Inputs { type_code: String::new(), ..sound() }, "missing-variable", "type"),
        (Inputs { type_code: "T\0".into(), ..sound() }, "wrong-alphabet", "type"),
        (Inputs { date: Some("2023-02-29".into()), ..sound() }, "invalid-date", "date"),
        (Inputs { date: Some(String::new()), ..sound() }, "invalid-date", "date"),
        (Inputs { date: Some("2024-02-28".into()), ..sound() }, "time-required", "date"),
    ] {
        let error = series.draft(&request, now).unwrap_err();
        assert_eq!((error.slug(), error.field().as_str()), (slug, field), "{error}");
    }
}

#[test]
fn an_error_stays_small_whatever_was_sent() {
    let series = series(|definition| definition.template = "{SEQ:3}".into());
    let huge = "x".repeat(60_000);
    let now = "2024-02-29T12:00:00Z".parse().unwrap();
    for request in [
        inputs("T", "", "", &[(huge.as_str(), "1")]),
        inputs("T", "", &huge, &[]),
        inputs(&huge, "", "", &[]),
    ] {
        let error = series.draft(&request, now).unwrap_err();
        assert!(error.to_string().len() + error.field().len() < 400, "{}", error.slug());
    }
    assert!(
        choose(&[series], &inputs(&huge, "", "", &[]), testing::NOW).unwrap_err().to_string().len()
            < 200
    );
}

#[test]
fn a_number_that_could_grow_too_long_is_refused_before_a_value_is_taken() {
    let series = series(|definition| {
        definition.template = "{A}{B}{SEQ}".into();
        for name in ["A", "B"] {
            definition.variables.insert(name.into(), declared("required = true"));
        }
    });
    let now = "2024-02-29T12:00:00Z".parse().unwrap();
    let draft = |a: usize, b: usize| {
        let context = [("A", "ก".repeat(a)), ("B", "x".repeat(b))];
        let context = context.each_ref().map(|(name, value)| (*name, value.as_str()));
        series.draft(&inputs("T", "", "", &context), now)
    };
    let number = draft(64, 48).unwrap().partial.fill(&[NUMBER_MAX]).unwrap();
    assert_eq!(number.chars().count(), TEXT_CHARS_MAX);
    let error = draft(64, 49).unwrap_err();
    assert_eq!(error, InputError::TextTooLong { chars: 129 });
    assert_eq!(error.slug(), "value-too-long");
}

#[test]
fn a_year_that_the_calendar_cannot_show_is_refused() {
    let now = "2024-02-29T12:00:00Z".parse().unwrap();
    for (template, date, fits) in [
        ("{YEAR:ROC}{SEQ}", "1911-12-31", false),
        ("{YEAR:ROC}{SEQ}", "1912-01-01", true),
        ("{YEAR:B.E.}{SEQ}", "9456-12-31", true),
        ("{YEAR:B.E.}{SEQ}", "9457-01-01", false),
    ] {
        let series = series(|definition| definition.template = template.into());
        let drafted = series.draft(&inputs("T", "", date, &[]), now);
        assert_eq!(drafted.is_ok(), fits, "{template} {date}");
        assert!(drafted.is_ok() || drafted.unwrap_err().slug() == "invalid-date");
    }
}

#[test]
fn text_that_is_no_number_of_the_series_is_refused_where_it_departs() {
    let definitions = builtin_series();
    let of = |code: &str| {
        let definition = definitions.iter().find(|definition| definition.code == code);
        Series::compile(definition.unwrap().clone()).unwrap()
    };
    let long = "A".repeat(129);
    for (code, text, position) in [
        ("SPO", "", 1),
        ("SPO", "BPO-20240122-001", 1),
        ("SPO", "SPO-20241322-001", 9),
        ("SPO", "SPO-20240122-01", 14),
        ("SPO", "SPO-20240122-0015", 17),
        ("SPO", "SPO-20240122-00x", 14),
        ("SPO", "SPO-20240122-๐๐๑", 14),
        ("RFA", "LCBP3-C2-RFI-TER-RPT-0001-A", 27),
    ] {
        match of(code).parse(text) {
            Err(ParseError::Departs { position: found, .. }) => {
                assert_eq!(found, position, "{text}");
            }
            other => panic!("{text}: {other:?}"),
        }
    }
    let says = of("SPO").parse("SPO-20230229-001").expect_err("no such day").to_string();
    assert_eq!(says, "character 5: there is no date 2023 02 29; correct it");
    assert_eq!(of("SPO").parse(&long), Err(ParseError::TooLong));
    assert_eq!(of("SPO").parse(&"A".repeat(1_000_000)), Err(ParseError::TooLong));
}

#[test]
fn a_number_with_two_readings_is_refused_and_a_repeated_value_decides() {
    let ambiguous = |template: &str| {
        series(|definition| {
            definition.template = template.into();
            for name in ["A", "B"] {
                definition.variables.insert(name.into(), declared("required = true"));
            }
        })
    };
    let says = ambiguous("{A}{B}{SEQ:1}").parse("xyz1").expect_err("two readings").to_string();
    assert!(says.starts_with("character 1: where A of 1 to 64 characters ends"), "{says}");
    assert!(ambiguous("{A}{B}{SEQ:1}").parse("xy1").is_ok());
    let repeated = ambiguous("{A}-{B}-{A}-{SEQ:1}").parse("x-y-z-x-y-1").unwrap();
    assert_eq!((&*repeated.variables["A"], &*repeated.variables["B"]), ("x-y", "z"));
    let says = ambiguous("{A}-{A}-{SEQ:1}").parse("x-y-1").expect_err("two values").to_string();
    assert!(says.starts_with("character 3: A of 1 to 64 characters was \"x\" before;"), "{says}");
}

#[test]
fn the_worst_template_and_text_are_refused_within_bounds() {
    let series = series(|definition| {
        definition.template = "{A}{B}".repeat(40) + "{SEQ}";
        for name in ["A", "B"] {
            definition.variables.insert(name.into(), declared("required = true"));
        }
    });
    // The limit on steps, not on time, ends it: the outcome is the same on any machine.
    assert!(matches!(series.parse(&"1".repeat(128)), Err(ParseError::Ambiguous { .. })));
}

#[test]
fn a_series_file_with_a_mistake_is_refused_at_line_and_column() {
    let sound = "[[series]]\ncode = \"a\"\nname = \"A\"\ntemplate = \"X-{SEQ:3}\"\n\
                 serves = { types = [\"T\"] }\nserials = [{ step = 1 }]\n";
    assert_eq!(read_series(sound).unwrap().len(), 1);
    for (from, to, line, column, hint) in [
        ("X-{SEQ:3}", "X-{NOPE}{SEQ:3}", 4, 15, "unknown token"),
        ("\"X-{SEQ:3}\"", "'ก-{SEQ:3}{ORG}'", 4, 22, "deprecated"),
        ("X-{SEQ:3}", "X\\u002d{NOPE}", 4, 12, "unknown token"),
        ("step = 1", "step = 0", 6, 21, "allowed are 1"),
        ("step = 1", "step = \"1\"", 6, 21, "series a: `serials[0].step` must be a whole number"),
        ("step = 1", "stepp = 1", 6, 14, "unknown field `stepp`; did you mean `step`?"),
        ("types = [\"T\"]", "types = []", 5, 20, "document type"),
        ("code = \"a\"", "code = \"a", 2, 10, ""),
        ("name = \"A\"\n", "", 1, 1, "series a: `name` is missing; write name = \"Invoices\""),
        ("code = \"a\"\n", "", 1, 1, ": `code` is missing; write"),
        ("[[series]]", "[series]", 1, 1, "write [[series]], in two brackets"),
        ("[\"T\"]", "\"T\"", 5, 20, "write a list: [\"T\"]"),
        (
            "{ types = [\"T\"] }",
            "[{ type = \"T\" }]",
            5,
            10,
            "write one table without the brackets",
        ),
        ("\"a\"", "\u{201c}a\u{201d}", 2, 8, "write straight quotation marks"),
        ("name = \"A\"", "name = \"A\"\ntimezone = \"Mars\"", 4, 12, "IANA"),
    ] {
        let text = sound.replace(from, to);
        assert_ne!(text, sound, "{from}");
        let error = read_series(&text).unwrap_err().to_string();
        let place = format!("line {line}, column {column}: ");
        assert!(error.starts_with(&place), "{to}: {error}");
        assert!(error.contains(hint), "{to}: {error}");
    }
    let twice = read_series(&format!("{sound}{sound}")).unwrap_err().to_string();
    assert!(twice.starts_with("line 8, column 8: series a stands"), "{twice}");
    assert!(read_series("").unwrap_err().to_string().contains("series"));
    assert!(read_series("series = []").unwrap_err().to_string().contains("no series"));
    let large = "#".repeat(1024 * 1024 + 1);
    assert!(matches!(read_series(&large), Err(SeriesFileError::TooLarge { .. })));
}
