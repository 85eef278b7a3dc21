//! Documents that projects have by one id, in series that separate them.

use numbering::DocumentsOf;
use numerator::ledger::{Closing, Entry, Found, Question, Record, TakeOutcome, TakeRequest};
use uuid::Uuid;

use super::super::references::{of_rows, row};
use super::super::shelf::Shelf;
use super::super::world::{NOW_US, World, entry, order_of, question, record, spec, with};

ledger_contract! {
    lookups {
        a_projects_document_is_found_in_rows_of_its_codes_alone
        one_transaction_tells_the_documents_of_two_projects_apart
        an_archived_document_of_another_project_keeps_nobody_out
    }
}

fn project(code: &str) -> DocumentsOf {
    DocumentsOf::Project(code.into())
}

fn of_row(id: &str) -> DocumentsOf {
    DocumentsOf::Row { table: "projects".into(), id: id.into() }
}

pub(in crate::ledger_contract) async fn a_projects_document_is_found_in_rows_of_its_codes_alone(
    world: World,
) {
    let rows = [row("1", "P1", true), row("2", "OLD", true)];
    world.ledger.reference().apply(&of_rows("projects", &rows)).await.unwrap();
    let renamed = [row("2", "P2", true)];
    world.ledger.reference().apply(&of_rows("projects", &renamed)).await.unwrap();
    let open = world.redis_epoch(Closing::Exact).await;
    let (counter_id, ..) = world.seed(open, &spec("k")).await;
    let issued = |value: u64, code: Option<&str>| {
        with(entry(open, counter_id, value), |record| {
            record.document_id = Some("d".into());
            record.project = code.map(Into::into);
            record.issued_at_us = NOW_US + i64::try_from(value).unwrap();
        })
    };
    let codes = [None, Some("P1"), Some("OLD"), Some("P2"), Some("OTHER")];
    let known: Vec<Entry> = (1..).zip(codes).map(|(value, code)| issued(value, code)).collect();
    world.append(&known).await;
    let owners = [
        DocumentsOf::NoProject,
        of_row("1"),
        of_row("2"),
        project("OLD"),
        DocumentsOf::Series,
        project("NONE"),
        of_row("9"),
    ];
    let expect = async |places: [Option<&Entry>; 7]| {
        for once_per_document in [false, true] {
            let ask = |documents: &DocumentsOf| Question {
                document_id: Some("d".into()),
                documents: documents.clone(),
                once_per_document,
                ..question(&record("any"))
            };
            let questions: Vec<Question> = owners.iter().map(ask).collect();
            for found in [
                world.ledger.replays(&questions).await.unwrap(),
                world.ledger.ask(open.partition, &questions).await.unwrap(),
            ] {
                let found: Vec<Option<&Entry>> =
                    found.iter().map(|found| found.by_document.as_ref()).collect();
                assert_eq!(found, places, "{once_per_document}");
            }
        }
    };
    let [none, first, former, present, other] = [0, 1, 2, 3, 4].map(|place| Some(&known[place]));
    expect([none, first, present, former, other, None, None]).await;
    // What is set aside is found by the same.
    let aside = issued(6, Some("OLD"));
    world.ledger.reject(&aside, "test").await.unwrap();
    let newest = Some(&aside);
    expect([none, first, newest, newest, newest, None, None]).await;
}

/// An order for the document `one` of a project.
fn order(owner: &DocumentsOf) -> TakeRequest {
    let code = match owner {
        DocumentsOf::Project(code) => Some(code.clone()),
        _ => None,
    };
    let mut order = order_of(Record { project: code, ..record("one") });
    order.question.documents = owner.clone();
    order
}

pub(in crate::ledger_contract) async fn one_transaction_tells_the_documents_of_two_projects_apart(
    world: World,
) {
    let at = world.database_epoch().await;
    let owners = [project("P1"), project("P2"), project("P1"), DocumentsOf::NoProject];
    let outcomes = world.take_again(at, &owners.each_ref().map(order)).await.outcomes;
    let taken = |outcome: &TakeOutcome| match outcome {
        TakeOutcome::Taken(entry) => entry.clone(),
        other => panic!("not taken: {other:?}"),
    };
    let own = [&outcomes[0], &outcomes[1], &outcomes[0], &outcomes[3]].map(taken);
    let found = |entry: &Entry| {
        TakeOutcome::Found(Found { by_document: Some(entry.clone()), ..Found::default() })
    };
    assert_eq!(outcomes[2], found(&own[0]));
    for (owner, own) in owners.iter().zip(&own) {
        let again = world.take_again(at, &[order(owner)]).await.outcomes;
        assert_eq!(again, [found(own)], "{owner:?}");
    }
    world.verify().await;
}

pub(in crate::ledger_contract) async fn an_archived_document_of_another_project_keeps_nobody_out(
    world: World,
) {
    let shelf = Shelf::of(world).await;
    let world = &shelf.kit.world;
    let rows = [row("1", "P1", true), row("2", "P2", true)];
    world.ledger.reference().apply(&of_rows("projects", &rows)).await.unwrap();
    let (late, ..) = world.seed(shelf.kit.at, &spec("late")).await;
    let journaled = with(entry(shelf.kit.at, late, 1), |record| {
        record.counter_keys = vec!["late".into()];
        record.project = Some("P1".into());
    });
    world.append(std::slice::from_ref(&journaled)).await;
    let at = world.database_epoch().await;
    world.take(at, order(&project("P1"))).await;
    let series = "insert into series (series_id, code, partition, active_version) OWN \
                  values (7, 'S', 2, 1); \
                  insert into series_version (series_id, version, definition, saved_by, reason, \
                  saved_at_us) values (7, 1, '{\"code\":\"S\",\"documents\":\"project\"}', 'u', \
                  'r', 1)";
    world.sql(&series.replace("OWN", shelf.own_ids())).await;
    let moved = shelf.archive().await;
    let is_archived = async |documents: DocumentsOf| {
        let mut question = order(&documents).question;
        question.once_per_document = true;
        let found = world.ledger.replays(&[question]).await.unwrap().remove(0);
        assert_eq!((&found.by_key, &found.by_document), (&None, &None));
        let is_archived = found.archived.is_some();
        assert!(!is_archived || found.archived.as_ref() == moved.files.first(), "{found:?}");
        is_archived
    };
    for (documents, archived) in [
        (project("P1"), true),
        (of_row("1"), true),
        (DocumentsOf::Series, true),
        (project("P2"), false),
        (of_row("2"), false),
        (DocumentsOf::NoProject, false),
    ] {
        assert_eq!(is_archived(documents.clone()).await, archived, "{documents:?}");
    }
    // Its owner is named by the project, too.
    let others = with(journaled.clone(), |record| {
        record.allocation_id = Uuid::now_v7();
        record.project = Some("P2".into());
    });
    let appended = world.ledger.append(world.node, &[journaled]).await.unwrap();
    assert_eq!((appended.known, appended.collisions.len()), (1, 0), "{appended:?}");
    let appended = world.ledger.append(world.node, &[others]).await.unwrap();
    assert_eq!((appended.known, appended.collisions.len()), (0, 1), "{appended:?}");
}
