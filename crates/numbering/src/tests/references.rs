//! Series that refer to tables: codes in the text, ids in counters and scopes, and what is refused.

use std::sync::Arc;

use super::super::testing::{compile, inputs, member, reference, series};
use super::super::*;

/// A letter between organizations, in a project that follows from its originator.
fn letter(definition: &mut SeriesDefinition) {
    definition.template = "{ORIGINATOR}-{RECIPIENT}-{DISCIPLINE}-{SEQ:4}".into();
    definition.unique_within = vec!["project".into(), "type".into()];
    let (project, type_code) = (Some("projects".into()), Some("types".into()));
    definition.references = References { project, type_code, membership: true };
    let of = |table: &str, required: bool, default: Option<&str>| VariableDefinition {
        required,
        reference: Some(table.into()),
        default: default.map(Into::into),
        excluded: Some("-".into()),
        ..VariableDefinition::default()
    };
    definition.variables.insert("ORIGINATOR".into(), of("organizations", true, None));
    definition.variables.insert("RECIPIENT".into(), of("organizations", true, None));
    definition.variables.insert("DISCIPLINE".into(), of("disciplines", false, Some("0")));
    definition.serials[0].counter =
        ["project", "ORIGINATOR", "RECIPIENT", "type", "DISCIPLINE"].map(Into::into).into();
}

pub(super) fn rows() -> Vec<ReferenceRow> {
    vec![
        reference("projects", "1", "LCBP3", true),
        reference("projects", "2", "LCBP3-C2", true),
        reference("projects", "3", "OLD", false),
        reference("organizations", "22", "คคง.", true),
        reference("organizations", "10", "สคฉ.3", true),
        reference("organizations", "42", "ผรม.2", true),
        reference("organizations", "50", "GONE", false),
        reference("types", "6", "T", true),
        reference("types", "7", "U", false),
        reference("disciplines", "5", "TER", true),
    ]
}

pub(super) fn with(rows: Vec<ReferenceRow>, edit: impl FnOnce(&mut SeriesDefinition)) -> Series {
    let memberships = [
        member(("organizations", "22"), ("projects", "2")),
        member(("organizations", "42"), ("projects", "1")),
        member(("organizations", "42"), ("projects", "2")),
        member(("organizations", "42"), ("projects", "3")),
    ];
    let data = Arc::new(ReferenceData::new(rows, memberships));
    let series = series(|definition| {
        letter(definition);
        edit(definition);
    });
    series.with_reference(data)
}

pub(super) fn letters() -> Series {
    with(rows(), |_| ())
}

const KEY: &str = "project_id=2;ORIGINATOR_id=22;RECIPIENT_id=10;type_id=6;DISCIPLINE_id=5";

pub(super) fn sound() -> Inputs {
    let context = [("ORIGINATOR", "คคง."), ("RECIPIENT", "สคฉ.3"), ("DISCIPLINE", "TER")];
    inputs("T", "LCBP3-C2", "2025-12-02", &context)
}

pub(super) fn draft(series: &Series, request: &Inputs) -> Result<Draft, InputError> {
    series.draft(request, testing::NOW)
}

fn first(draft: &Draft) -> (String, String) {
    (draft.partial.fill(&[1]).unwrap(), draft.keys[0].to_string())
}

fn recipient(code: Option<&str>, id: Option<&str>, kind: &str, order: i64) -> Recipient {
    let own = |text: Option<&str>| text.map(str::to_owned);
    Recipient { code: own(code), id: own(id), kind: kind.into(), order }
}

#[test]
fn codes_stand_in_the_text_and_ids_in_counter_and_scope() {
    let draft = draft(&letters(), &sound()).unwrap();
    assert_eq!(first(&draft), ("คคง.-สคฉ.3-TER-0001".into(), KEY.into()));
    assert_eq!(draft.scope, "project_id=2;type_id=6");
}

#[test]
fn ids_codes_recipients_and_a_derived_project_make_one_draft() {
    let series = letters();
    let expected = draft(&series, &sound()).unwrap();
    let ids = [("originator_id", "22"), ("recipient_id", "10"), ("discipline_id", "5")];
    let by_id = Inputs {
        type_id: Some("6".into()),
        project_id: Some("2".into()),
        ..inputs("", "", "2025-12-02", &ids)
    };
    let mut by_recipients = sound();
    by_recipients.project = None;
    by_recipients.context.remove("RECIPIENT");
    by_recipients.recipients = vec![
        recipient(Some("ผรม.2"), None, "TO", 2),
        recipient(Some("GONE"), None, "CC", 0),
        recipient(None, Some("10"), "TO", 1),
        recipient(Some("ผรม.2"), None, "TO", 1),
    ];
    for request in [by_id, by_recipients] {
        let drafted = draft(&series, &request).unwrap();
        assert_eq!((first(&drafted), &drafted.scope), (first(&expected), &expected.scope));
        let resolved = drafted.resolved.unwrap();
        assert_eq!(Some(&resolved), expected.resolved.as_ref(), "the journal has codes alone");
        assert_eq!(resolved, sound());
    }
}

#[test]
fn none_is_0_in_text_and_counter() {
    let series = letters();
    let key = KEY.replace("DISCIPLINE_id=5", "DISCIPLINE_id=0");
    for (name, value) in [("DISCIPLINE", Some("0")), ("discipline_id", Some("0")), ("", None)] {
        let mut request = sound();
        request.context.remove("DISCIPLINE");
        request.context.extend(value.map(|value| (name.to_owned(), value.to_owned())));
        let drafted = draft(&series, &request).unwrap();
        assert_eq!(first(&drafted), ("คคง.-สคฉ.3-0-0001".into(), key.clone()), "{name}");
    }
}

#[test]
fn an_originator_is_one_whatever_a_series_calls_it() {
    let any = with(rows(), |_| ());
    let named = with(rows(), |definition| {
        let originator = definition.variables.remove("ORIGINATOR").unwrap();
        definition.variables.insert("ORG_CODE".into(), originator);
        definition.template = definition.template.replace("ORIGINATOR", "ORG_CODE");
        definition.serials[0].counter[1] = "ORG_CODE".into();
        definition.serves.projects = vec!["LCBP3-C2".into()];
    });
    // By code or by id, the project that follows from it is that of the second series.
    for originator in [("ORIGINATOR", "คคง."), ("originator_id", "22"), ("org_id", "22")] {
        let request = inputs("T", "", "2025-12-02", &[originator, ("RECIPIENT", "สคฉ.3")]);
        assert_eq!(choose([&any, &named], &request, testing::NOW), Ok(1), "{originator:?}");
    }
}

#[test]
fn a_project_that_follows_from_a_default_is_one_that_the_series_serves() {
    let series = with(rows(), |definition| {
        let mut originator = definition.variables["ORIGINATOR"].clone();
        definition.variables.insert("ORG_CODE".into(), originator.clone());
        (originator.required, originator.default) = (false, Some("คคง.".into()));
        definition.variables.insert("ORIGINATOR".into(), originator);
        definition.serves.projects = vec!["LCBP3".into()];
    });
    let request = inputs("T", "", "2025-12-02", &[("ORG_CODE", "คคง."), ("RECIPIENT", "สคฉ.3")]);
    let refused = draft(&series, &request).unwrap_err();
    assert_eq!((refused.slug(), &*refused.field()), ("invalid-field", "project"));
    assert!(refused.to_string().contains("LCBP3-C2, not served; name it"), "{refused}");
}

#[test]
fn a_renamed_code_goes_on_with_its_counter_and_its_former_code_still_means_it() {
    let mut renamed = rows();
    let at = renamed.iter().position(|row| row.code == "คคง.").unwrap();
    renamed[at].former_codes = vec!["คคง.".into()];
    renamed[at].code = "คคง.ใหม่".into();
    let series = with(renamed, |definition| {
        definition.serves.originators = vec!["คคง.".into()];
    });
    let drafted = draft(&series, &sound()).unwrap();
    assert_eq!(first(&drafted), ("คคง.ใหม่-สคฉ.3-TER-0001".into(), KEY.into()));
    assert_eq!(
        choose([&series], &sound(), testing::NOW),
        Ok(0),
        "a rule written with the former code holds"
    );
    let key = CounterKey::parse(KEY).unwrap();
    for number in ["คคง.-สคฉ.3-TER-0007", "คคง.ใหม่-สคฉ.3-TER-0007"]
    {
        let origins = series.origins(&series.parse(number).unwrap());
        assert!(origins.contains(&key), "{number}: {origins:?}");
    }
}

#[test]
fn a_revision_shows_the_codes_of_its_original_whatever_was_renamed_since() {
    let labelled = |rows| {
        with(rows, |definition| {
            definition.template.push_str("-{REV}");
            definition.variables.insert("REV".into(), VariableDefinition::default());
        })
    };
    let mut request = sound();
    request.context.insert("REV".into(), "A".into());
    let issued = draft(&labelled(rows()), &request).unwrap().resolved.unwrap();
    let (number, values) = ("คคง.-สคฉ.3-TER-0007-A", &[7][..]);
    let original = Original { inputs: &issued, values, number };
    // A stored version is compiled without its tables.
    for rows in [rows(), Vec::new()] {
        let revised = labelled(rows).revise(&original, "B").unwrap();
        assert_eq!(revised.number, "คคง.-สคฉ.3-TER-0007-B");
    }
}

#[test]
fn a_number_leads_to_its_counter_by_the_codes_that_it_shows() {
    let series = with(rows(), |definition| {
        definition.template = "{PROJECT}/{CORR_TYPE}/{ORIGINATOR}-{RECIPIENT}-{SEQ:4}".into();
        definition.variables.remove("DISCIPLINE");
        definition.serials[0].counter.pop();
    });
    let mut request = sound();
    request.context.remove("DISCIPLINE");
    let drafted = draft(&series, &request).unwrap();
    let number = drafted.partial.fill(&[12]).unwrap();
    assert_eq!(number, "LCBP3-C2/T/คคง.-สคฉ.3-0012");
    assert_eq!(series.origins(&series.parse(&number).unwrap()), drafted.keys);
}

#[test]
fn what_the_tables_do_not_have_or_have_as_inactive_is_refused_by_its_field() {
    let series = letters();
    let set = |name: &str, value: &str| {
        let mut request = sound();
        request.context.remove(&name.trim_end_matches("_id").to_uppercase());
        request.context.insert(name.into(), value.into());
        request
    };
    let project = |code: &str| Inputs { project: Some(code.into()), ..sound() };
    let to = |recipients: Vec<Recipient>| {
        let mut request = sound();
        request.context.remove("RECIPIENT");
        Inputs { recipients, ..request }
    };
    let mut of_several = set("ORIGINATOR", "ผรม.2");
    of_several.project = None;
    let mut of_none = set("ORIGINATOR", "สคฉ.3");
    of_none.project = None;
    let mut twice = set("ORIGINATOR", "คคง.");
    twice.context.insert("originator_id".into(), "22".into());
    for (request, slug, field) in [
        (set("ORIGINATOR", "คคง"), "unknown-reference", "context.ORIGINATOR"),
        (set("ORIGINATOR", "0"), "unknown-reference", "context.ORIGINATOR"),
        (set("originator_id", "99"), "unknown-reference", "context.originator_id"),
        (set("RECIPIENT", "GONE"), "inactive-reference", "context.RECIPIENT"),
        (set("RECIPIENT", ""), "missing-variable", "context.RECIPIENT"),
        (set("planet_id", "1"), "unknown-variable", "context.planet_id"),
        (project("NOWHERE"), "unknown-reference", "project"),
        (project("OLD"), "inactive-reference", "project"),
        (project("LCBP3"), "not-a-member", "context.ORIGINATOR"),
        (Inputs { project_id: Some("2".into()), ..sound() }, "invalid-field", "project_id"),
        (Inputs { type_code: "U".into(), ..sound() }, "inactive-reference", "type"),
        (of_several, "project-ambiguous", "project"),
        (of_none, "not-a-member", "context.ORIGINATOR"),
        (twice, "invalid-field", "context.originator_id"),
        (
            to(vec![recipient(Some("สคฉ.3"), None, "CC", 0)]),
            "missing-variable",
            "recipients[kind=TO]",
        ),
        (to(vec![recipient(Some("?"), None, "TO", 0)]), "unknown-reference", "recipients[0].code"),
        (to(vec![recipient(None, None, "TO", 0)]), "invalid-field", "recipients[0]"),
        (
            Inputs { recipients: vec![recipient(Some("สคฉ.3"), None, "TO", 0)], ..sound() },
            "invalid-field",
            "recipients",
        ),
    ] {
        let refused = draft(&series, &request).expect_err(field);
        assert_eq!((refused.slug(), &*refused.field()), (slug, field), "{refused}");
    }
}

#[test]
fn several_projects_are_listed_and_inactive_ones_are_not() {
    let mut request = sound();
    request.project = None;
    request.context.insert("ORIGINATOR".into(), "ผรม.2".into());
    let refused = draft(&letters(), &request).unwrap_err().to_string();
    assert!(refused.contains("LCBP3, LCBP3-C2;"), "{refused}");
}

#[test]
fn a_series_refuses_everything_until_its_tables_have_rows() {
    let refused = draft(&with(Vec::new(), |_| ()), &sound()).unwrap_err();
    assert_eq!(refused.slug(), "unknown-reference");
    assert!(refused.to_string().contains("numerator reference import"), "{refused}");
}

#[test]
fn recipients_work_without_tables_and_are_refused_where_the_number_shows_none() {
    let plain = series(|definition| {
        definition.template = "{RECIPIENT}-{SEQ:4}".into();
        definition.variables.insert("RECIPIENT".into(), VariableDefinition::default());
    });
    let to = |one: Recipient| Inputs { recipients: vec![one], ..inputs("T", "", "", &[]) };
    let drafted = draft(&plain, &to(recipient(Some("A"), None, "TO", 0))).unwrap();
    assert_eq!(drafted.partial.fill(&[1]).unwrap(), "A-0001");
    let refused = draft(&plain, &to(recipient(None, Some("1"), "TO", 0))).unwrap_err();
    assert_eq!(refused.slug(), "invalid-field");
    let none = series(|_| ());
    let refused = draft(&none, &to(recipient(Some("A"), None, "TO", 0))).unwrap_err();
    assert_eq!(refused.slug(), "unknown-variable");
    let id = Inputs { project_id: Some("1".into()), ..inputs("T", "", "", &[]) };
    let refused = draft(&none, &id).unwrap_err();
    assert_eq!((refused.slug(), &*refused.field()), ("invalid-field", "project_id"));
}

#[test]
fn a_phase_stays_when_ids_become_codes() {
    let series = with(rows(), |definition| {
        definition.template = "{PHASE}-{SEQ:4}".into();
        definition.serials[0].reset = Reset::Phase;
    });
    let request = Inputs { phase: Some("P2".into()), ..sound() };
    let draft = series.draft(&request, testing::NOW).unwrap();
    assert_eq!(draft.partial.fill(&[7]).unwrap(), "P2-0007");
    assert_eq!(draft.keys[0].to_string(), format!("{KEY};phase=P2"));
}

#[test]
fn a_series_that_would_name_its_counters_otherwise_says_so() {
    let before = letters().definition().clone();
    let edited = |edit: fn(&mut SeriesDefinition)| {
        let mut after = before.clone();
        edit(&mut after);
        after.refers_otherwise_than(&before)
    };
    assert_eq!(edited(|definition| definition.name = "Other".into()), None);
    assert_eq!(edited(|definition| definition.references.membership = false), None);
    let project = edited(|definition| definition.references.project = None);
    assert_eq!(project.as_deref(), Some("references.project"));
    let recipient = edited(|definition| {
        definition.variables.get_mut("RECIPIENT").unwrap().reference = Some("people".into());
    });
    assert_eq!(recipient.as_deref(), Some("variables.RECIPIENT.reference"));
}

#[test]
fn tables_are_named_like_fields_and_memberships_need_both_of_theirs() {
    for (edit, field) in [
        (
            (|definition| definition.references.project = Some("Projects".into()))
                as fn(&mut SeriesDefinition),
            "references.project",
        ),
        (|definition| definition.references.project = None, "references.membership"),
        (
            |definition| {
                definition.variables.get_mut("ORIGINATOR").unwrap().reference = None;
            },
            "references.membership",
        ),
        (
            |definition| {
                definition.variables.get_mut("DISCIPLINE").unwrap().reference = Some("a b".into());
            },
            "variables.DISCIPLINE.reference",
        ),
    ] {
        let refused = compile(|definition| {
            letter(definition);
            edit(definition);
        });
        assert_eq!(refused.expect_err(field).field(), field);
    }
}
