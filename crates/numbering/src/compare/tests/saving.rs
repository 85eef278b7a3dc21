//! What is compared when series are saved.

use std::sync::Arc;

use super::super::super::{
    DocumentDate, Documents, LookAlikes, PlausibleDates, Policy, Reset, SeriesDefinition, Style,
    VariableDefinition,
};
use super::super::{
    Ambiguity, EarlierVersion, GiveUp, IssuedVersion, ProofError, prove_issued, prove_saved,
    same_numbers, same_rules,
};
use super::notation::{define, rows};

/// A field, an edit of it, and whether numbers and rules are the same after it.
type Edit = (&'static str, fn(&mut SeriesDefinition), [bool; 2]);

fn a(series: &mut SeriesDefinition) -> &mut VariableDefinition {
    series.variables.get_mut("A").expect("declared")
}

#[test]
fn versions_are_one_where_every_field_that_numbers_come_from_is() {
    const TOLD: [bool; 2] = [true, true];
    const NUMBERED: [bool; 2] = [false, true];
    const CHOSEN: [bool; 2] = [false, false];
    let edits: [Edit; 36] = [
        ("name", |s| s.name = "Other".into(), TOLD),
        ("description", |s| s.description = "Other".into(), TOLD),
        ("policy", |s| s.policy = Policy::Durable, TOLD),
        ("once_per_document", |s| s.once_per_document = Some(true), TOLD),
        ("documents", |s| s.documents = Documents::Project, TOLD),
        ("chronology", |s| s.chronology = true, TOLD),
        ("closed_before", |s| s.closed_before = Some("2025-01-01".into()), TOLD),
        ("document_date", |s| s.document_date = Some(DocumentDate::default()), TOLD),
        ("dates", |s| s.dates = Some(PlausibleDates::default()), TOLD),
        ("look_alikes", |s| s.look_alikes = LookAlikes::Allow, TOLD),
        ("ambiguity_accepted", |s| s.ambiguity_accepted = Some("Since.".into()), TOLD),
        ("label", |s| a(s).label = Some("Other".into()), TOLD),
        ("code", |s| s.code = "b".into(), NUMBERED),
        ("prefix", |s| s.prefix = Some("X".into()), NUMBERED),
        ("template", |s| s.template = "{SEQ:4}".into(), NUMBERED),
        ("timezone", |s| s.timezone = Some("Asia/Bangkok".into()), NUMBERED),
        ("fiscal_year_start", |s| s.fiscal_year_start = Some(9), NUMBERED),
        ("unique_within", |s| s.unique_within = vec!["type".into()], NUMBERED),
        ("start", |s| s.serials[0].start = 2, NUMBERED),
        ("counter", |s| s.serials[0].counter = vec!["type".into()], NUMBERED),
        ("reset", |s| s.serials[0].reset = Reset::Year, NUMBERED),
        ("style", |s| s.serials[0].style = Style::Letters, NUMBERED),
        ("types", |s| s.serves.types = vec!["U".into()], CHOSEN),
        ("projects", |s| s.serves.projects = vec!["P".into()], CHOSEN),
        ("originators", |s| s.serves.originators = vec!["O".into()], CHOSEN),
        ("sub_types", |s| s.serves.sub_types = vec!["S".into()], CHOSEN),
        ("undetermined_types", |s| s.serves.undetermined_types = vec!["X".into()], CHOSEN),
        ("default", |s| s.serves.default = true, CHOSEN),
        ("project table", |s| s.references.project = Some("p".into()), CHOSEN),
        ("type table", |s| s.references.type_code = Some("t".into()), CHOSEN),
        ("membership", |s| s.references.membership = true, CHOSEN),
        ("required", |s| a(s).required = false, CHOSEN),
        ("a default", |s| a(s).default = Some("X".into()), CHOSEN),
        ("a table", |s| a(s).reference = Some("t".into()), CHOSEN),
        ("alphabet", |s| a(s).excluded = Some("-".into()), CHOSEN),
        ("width", |s| a(s).width_max = Some(3), CHOSEN),
    ];
    let before = define("{SEQ:3} A=*");
    for (field, edit, same) in edits {
        let mut after = before.clone();
        edit(&mut after);
        assert_ne!(before, after, "{field}");
        let found = [same_numbers(&before, &after), same_rules(&before, &after)];
        assert_eq!(found, same, "{field}");
    }
}

/// The result for two series, the other of which had an earlier version.
#[test]
fn counters_of_earlier_versions_go_on_beside_other_series() {
    let all = [define("1{SEQ:1}"), define("{SEQ:2} start=50 code=b types=U")];
    let of = |start: &str| {
        let definition = define(&format!("{{SEQ:2}} code=b types=U start={start}"));
        prove_saved(
            &all,
            &Arc::default(),
            |_| true,
            &[EarlierVersion { version: 1, definition }],
            &[],
            &GiveUp::default(),
        )
    };
    assert_eq!(of("20"), Ok(Vec::new()));
    assert!(matches!(of("10"), Err(ProofError::Ambiguity(_))));
}

/// Goal: a save is not refused for a pair that the change does not affect. Method: two series that
/// cannot be distinguished, and a third one that is saved, or has issued what one of them may show.
#[test]
fn only_pairs_of_what_is_saved_or_issued_are_compared() {
    let all =
        [define("{SEQ:3}"), define("{SEQ:3} code=b types=U"), define("C{SEQ:3} code=c types=V")];
    let definition = define("{SEQ:3} code=b types=U counter=type");
    let earlier = [EarlierVersion { version: 1, definition }];
    let saved = |code: &str, issued: &[IssuedVersion]| {
        let found = prove_saved(
            &all,
            &Arc::default(),
            |one| one.code == code,
            &earlier,
            issued,
            &GiveUp::default(),
        );
        found.map_err(|error| error.to_string())
    };
    assert_eq!(saved("c", &[]), Ok(Vec::new()));
    assert!(saved("a", &[]).expect_err("ambiguous").contains("series a and b"));
    let issued = |template: &str| IssuedVersion {
        subject: "b".into(),
        version: 4,
        definition: Arc::new(define(&format!("{template} code=c types=V"))),
        then: None,
    };
    assert_eq!(saved("c", &[issued("D{SEQ:3}")]), Ok(Vec::new()));
    let told = saved("c", &[issued("{SEQ:3}")]).expect_err("issued");
    assert!(told.contains("series c is one of its version 4"), "{told}");
}

/// The result for a series against a version of another that may have issued numbers.
fn beside_issued(
    now: &str,
    issued: &str,
    then: Option<&str>,
    is_active: bool,
) -> Result<(), String> {
    beside_issued_with("", now, issued, then, is_active)
}

fn beside_issued_with(
    tables: &str,
    now: &str,
    issued: &str,
    then: Option<&str>,
    is_active: bool,
) -> Result<(), String> {
    let data = rows(tables);
    let other = define(&format!("{issued} code=b"));
    let version = IssuedVersion {
        subject: "a".into(),
        version: 7,
        definition: Arc::new(other.clone()),
        then: then.map(|then| Arc::new(define(then))),
    };
    let mut active = vec![define(now)];
    active.extend(is_active.then_some(other));
    let saved = prove_saved(
        &active,
        &data,
        |series| series.code == "a",
        &[],
        &[version],
        &GiveUp::default(),
    );
    saved.map(|_| ()).map_err(|error| error.to_string())
}

#[test]
fn what_another_series_may_have_issued_is_not_issued_again() {
    let refused = |found: Result<(), String>| {
        let told = found.expect_err("not proved");
        assert!(
            told.contains("b version 7 (") && told.contains("series b is one of its version 7"),
            "{told}"
        );
    };
    // Of a series that is gone, whatever it served.
    refused(beside_issued("X-{SEQ:3}", "X-{SEQ:3} types=U", None, false));
    assert_eq!(beside_issued("Y-{SEQ:3}", "X-{SEQ:3} types=U", None, false), Ok(()));
    assert_eq!(
        beside_issued("X-{SEQ:3} within=type", "X-{SEQ:3} types=U within=type", None, false),
        Ok(())
    );
    // A rule and a default in use: what this had before the rule existed is issued.
    let (rule, default) = ("{SEQ:3} within=type", "{SEQ:3} types=T,U within=type default=");
    refused(beside_issued(rule, default, None, true));
    assert_eq!(beside_issued(rule, default, Some(rule), true), Ok(()));
    // What a rule gave is not the default's while the rule exists.
    assert_eq!(beside_issued(default, rule, Some(default), true), Ok(()));
    refused(beside_issued(default, rule, Some(default), false));
    // At one time this took what the default would have given, and at another it did not.
    let turn = |then: Option<&str>| IssuedVersion {
        subject: "a".into(),
        version: 7,
        definition: Arc::new(define(&format!("{default} code=b"))),
        then: then.map(|then| Arc::new(define(then))),
    };
    let (now, turns) = ([define(rule)], [turn(Some(rule)), turn(None)]);
    let both = [1, 2].map(|turns_of| {
        prove_issued(&now, &Arc::default(), &turns[..turns_of], &GiveUp::default())
    });
    assert!(matches!(both, [Ok(()), Err(_)]), "{both:?}");
    // By another rule that the series had then.
    refused(beside_issued(rule, default, Some("{SEQ:3} within=type projects=P"), true));
    // A code that its row got later: before that the default numbered the row.
    let (rule, default) = (format!("{rule} tables=type"), format!("{default} tables=type"));
    for (tables, is_proved) in [("T", true), ("T X", true), ("X T", false)] {
        let tables = format!("type 1 {tables};type 2 U");
        let found = beside_issued_with(&tables, &rule, &default, Some(&rule), true);
        assert_eq!(found.is_ok(), is_proved, "{tables}: {found:?}");
    }
    // Counters above those that were issued.
    assert_eq!(beside_issued("{SEQ:3} start=100", "{SEQ:3} types=U max=99", None, false), Ok(()));
    refused(beside_issued("{SEQ:3} start=99", "{SEQ:3} types=U max=99", None, false));
}

#[test]
fn where_earlier_versions_are_not_known_a_start_tells_nothing() {
    let (late, out) = (define("{SEQ:3} start=100"), define("{SEQ:3} code=b types=U max=99"));
    let (subject, definition) = ("a".to_owned(), Arc::new(out));
    let issued = [IssuedVersion { subject, version: 2, definition, then: None }];
    let refused =
        prove_issued(std::slice::from_ref(&late), &Arc::default(), &issued, &GiveUp::default());
    assert!(matches!(refused, Err(ProofError::Ambiguity(_))), "{refused:?}");
    let mut accepted = late;
    accepted.ambiguity_accepted = Some("The first hundred were cancelled.".into());
    let prove = |now: &SeriesDefinition, then: Policy| {
        let mut definition = (*issued[0].definition).clone();
        definition.policy = then;
        let definition = Arc::new(definition);
        let issued = [IssuedVersion { definition, ..issued[0].clone() }];
        let now = std::slice::from_ref(now);
        prove_issued(now, &Arc::default(), &issued, &GiveUp::default())
    };
    assert!(matches!(prove(&accepted, Policy::Gapless), Err(ProofError::Hasty(_))));
    accepted.policy = Policy::Gapless;
    assert!(matches!(prove(&accepted, Policy::Durable), Err(ProofError::Hasty(_))));
    assert_eq!(prove(&accepted, Policy::Gapless), Ok(()));
}

#[test]
fn a_series_that_accepts_an_ambiguity_is_saved_with_it() {
    let mut yearly = define("{SEQ:3} reset=year");
    let reason = "The year is on the letterhead; agreed with audit.".to_owned();
    yearly.ambiguity_accepted = Some(reason.clone());
    yearly.policy = Policy::Gapless;
    let accepted = prove_saved(&[yearly], &Arc::default(), |_| true, &[], &[], &GiveUp::default())
        .expect("accepted");
    assert_eq!((&accepted[0].code, &accepted[0].reason), (&"a".to_owned(), &reason));
    assert!(matches!(accepted[0].ambiguity, Ambiguity::Collision { .. }), "{accepted:?}");
}

/// Goal: what is accepted is refused by the ledger before any request is answered (F43). Method: a
/// series with itself, with another one, with its own earlier version, each pair in all policies.
#[test]
fn an_ambiguity_is_accepted_where_every_series_of_the_pair_is_gapless() {
    let policies = [Policy::Fast, Policy::Durable, Policy::Gapless];
    let of = |line: &str, policy: Policy| SeriesDefinition { policy, ..define(line) };
    for one in policies {
        for other in policies {
            let accepting = |line: &str| SeriesDefinition {
                ambiguity_accepted: Some("Agreed with the auditors.".into()),
                ..of(line, one)
            };
            let prove = |all: &[SeriesDefinition], earlier: &[EarlierVersion]| {
                let asked = |series: &SeriesDefinition| series.code == "a";
                prove_saved(all, &Arc::default(), asked, earlier, &[], &GiveUp::default())
            };
            let turned = ["{SEQ:2}-{A} A=0-9{2} counter=A", "{A}-{SEQ:2} A=0-9{2} counter=A"];
            let earlier = EarlierVersion { version: 1, definition: of(turned[1], other) };
            let found = [
                prove(&[accepting("{SEQ:3}"), of("{SEQ:3} code=b types=U", other)], &[]),
                prove(&[accepting(turned[0])], &[earlier]),
            ];
            let is_gapless = [one, other] == [Policy::Gapless; 2];
            for found in found {
                match found {
                    Ok(accepted) => assert!(is_gapless && accepted.len() == 1, "{one:?} {other:?}"),
                    Err(ProofError::Hasty(hasty)) => {
                        assert!(!is_gapless && hasty.code == "a", "{one:?} {other:?}");
                        assert!(hasty.to_string().contains("`policy = \"gapless\"`"), "{hasty}");
                    }
                    Err(error) => panic!("{one:?} {other:?}: {error}"),
                }
            }
            // A series that needs no acceptance is saved with one, whatever the policies are.
            let apart = [accepting("A{SEQ:3}"), of("B{SEQ:3} code=b types=U", other)];
            assert_eq!(prove(&apart, &[]), Ok(Vec::new()));
        }
        let yearly = SeriesDefinition {
            ambiguity_accepted: Some("Agreed with the auditors.".into()),
            ..of("{SEQ:3} reset=year", one)
        };
        let alone = prove_saved(&[yearly], &Arc::default(), |_| true, &[], &[], &GiveUp::default());
        assert_eq!(alone.is_ok(), one == Policy::Gapless, "{one:?}: {alone:?}");
    }
}

/// An accepted ambiguity hides no other that is not accepted.
#[test]
fn each_pair_of_a_series_that_accepts_an_ambiguity_is_looked_at() {
    let of = |line: &str, policy: Policy| SeriesDefinition { policy, ..define(line) };
    let accepting = SeriesDefinition {
        ambiguity_accepted: Some("Agreed with the auditors.".into()),
        ..of("{SEQ:3}", Policy::Gapless)
    };
    let gapless = of("{SEQ:3} code=b types=U", Policy::Gapless);
    let fast = of("{SEQ:3} code=c types=V", Policy::Fast);
    let asked = |series: &SeriesDefinition| series.code == "a";
    let prove = |all: &[SeriesDefinition]| {
        prove_saved(all, &Arc::default(), asked, &[], &[], &GiveUp::default())
    };
    assert_eq!(prove(&[accepting.clone(), gapless.clone()]).map(|all| all.len()), Ok(1));
    for all in [[&gapless, &fast], [&fast, &gapless]] {
        let all: Vec<_> = std::iter::once(&accepting).chain(all).cloned().collect();
        assert!(matches!(prove(&all), Err(ProofError::Hasty(_))));
    }
}
