//! Accounts of counters: each value once, with what accounts for it, all of one moment.

use numerator::ledger::{
    AccountRequest, Accounted, Acknowledgement, Closing, CounterAccount, CounterFilter, DatedPart,
    EntryKind, GapReason, KeyCondition, Run, SeenBatches,
};

use super::world::{World, entry, order, range, spec};

/// All counters of the series that cases use.
fn everything() -> AccountRequest {
    AccountRequest {
        filter: CounterFilter { series_id: Some(7), ..CounterFilter::default() },
        counters_max: 10,
        rows_max: 1_000,
        entries_max: 100,
        seen: None,
    }
}

/// The account of the only counter.
async fn account(world: &World) -> CounterAccount {
    match world.ledger.register().accounts(&everything()).await.unwrap() {
        Accounted::Whole(mut all) if all.len() == 1 => all.remove(0),
        other => panic!("{other:?}"),
    }
}

/// What is listed of it in addition to the numbers in the journal.
fn listed(account: &CounterAccount) -> Vec<(EntryKind, i64, i64)> {
    account.entries.iter().map(|entry| (entry.kind, entry.run.first, entry.run.last)).collect()
}

/// The part of the account that is dated on a day, whatever accounts for it.
async fn its_part_is_what_is_dated_in_it(world: &World) {
    for (day, values, kept_aside) in [("2026-01-02", 5, 1), ("2026-01-03", 0, 0)] {
        let of = KeyCondition { series_without: vec![7], ..KeyCondition::default() };
        let dated = DatedPart { of, days: [day.into(), day.into()] };
        let told =
            world.ledger.register().accounts_with_part(&everything(), Some(&dated)).await.unwrap();
        let Accounted::Whole(all) = told else { panic!("{told:?}") };
        let part = all[0].part.as_ref().unwrap();
        assert_eq!((part.values, part.kept_aside), (values, kept_aside), "{day}");
    }
}

pub(super) async fn an_account_has_each_value_once_whatever_stands_for_it(world: World) {
    let open = world.redis_epoch(Closing::Exact).await;
    let (id, ..) = world.seed(open, &spec("k")).await;
    let (first, rejected) = (entry(open, id, 1), entry(open, id, 4));
    world.append(&[first.clone(), range(open, id, 2, 3), entry(open, id, 6)]).await;
    world.ledger.reject(&rejected, "test").await.unwrap();
    let collided = entry(open, id, 2);
    world.ledger.append(world.node, std::slice::from_ref(&collided)).await.unwrap();
    let next = world.redis_epoch(Closing::Exact).await;
    assert!(account(&world).await.is_unsettled, "nobody has looked for what the epoch lost");
    world.seed(next, &spec("k")).await;
    let last = entry(next, id, 8);
    world.append(std::slice::from_ref(&last)).await;
    let told = account(&world).await;
    let expected = [
        (EntryKind::Collision, 2, 2),
        (EntryKind::Rejected, 4, 4),
        (EntryKind::Gap(GapReason::Discarded), 5, 5),
        (EntryKind::Pending, 7, 7),
    ];
    assert_eq!(listed(&told), expected);
    let gaps = [1, 0, 0, 0, 0, 0, 0, 0];
    assert_eq!((told.tally.issued, told.tally.gaps, told.tally.rejected), (5, gaps, 1));
    assert_eq!((told.tally.pending, told.tally.missing, told.tally.twice), (1, 0, 0));
    assert_eq!(told.stretches, [Run { first: 1, last: 8, step: 1 }]);
    assert_eq!((told.values(), told.tally.sum(), told.unexplained), (8, 8, 2));
    let ends = [&told.first, &told.last].map(|end| end.as_ref().unwrap().number.clone().unwrap());
    assert_eq!(ends, [first.number, last.number]);
    assert_eq!((told.rows.bound, told.rows.later, told.rows.keyless), (0, 4, 0));
    assert!(!told.is_sound(), "nobody has explained what came twice");
    its_part_is_what_is_dated_in_it(&world).await;
    for allocation_id in [rejected.record.allocation_id, collided.record.allocation_id] {
        let (user_id, reason) = ("op".into(), "seen to".into());
        let explained = Acknowledgement { allocation_id, user_id, reason };
        world.ledger.audits().acknowledge(&explained).await.unwrap();
    }
    let told = account(&world).await;
    assert!(told.is_sound() && !told.is_settled(), "{told:?}");
    let row = told.entries[1].row.as_ref().unwrap();
    assert_eq!(row.explained, Some(("op".into(), "seen to".into())));
    world.append(&[entry(next, id, 7)]).await;
    let told = account(&world).await;
    assert!(told.is_sound() && told.is_settled(), "{told:?}");

    for (seen, bound) in [
        (SeenBatches { upto: i64::MAX, open: Vec::new() }, 5),
        (SeenBatches { upto: i64::MAX, open: vec![(i64::MIN, i64::MAX)] }, 0),
        (SeenBatches::default(), 0),
    ] {
        let order = AccountRequest { seen: Some(seen), ..everything() };
        let answer = world.ledger.register().accounts(&order).await.unwrap();
        let Accounted::Whole(all) = answer else { panic!() };
        assert_eq!(all[0].rows.bound, bound, "{order:?}");
    }
    let short = AccountRequest { rows_max: 7, ..everything() };
    assert_eq!(world.ledger.register().accounts(&short).await.unwrap(), Accounted::TooManyRows);
    let none = AccountRequest { counters_max: 0, ..everything() };
    assert_eq!(world.ledger.register().accounts(&none).await.unwrap(), Accounted::TooManyCounters);
    let brief = AccountRequest { entries_max: 1, ..everything() };
    let answer = world.ledger.register().accounts(&brief).await.unwrap();
    let Accounted::Whole(all) = answer else { panic!() };
    assert_eq!((all[0].entries.len(), all[0].further_entries), (1, 2));
    assert_eq!(all[0].tally, told.tally, "what is not listed is counted");

    // What was recorded once is not under way.
    world.sql("delete from journal where first_value = 7").await;
    let told = account(&world).await;
    assert_eq!((told.tally.pending, told.gone), (1, 1));
    assert!(!told.is_sound(), "{told:?}");
}

pub(super) async fn a_hole_and_an_overlap_that_cancel_out_are_both_named(world: World) {
    let at = world.database_epoch().await;
    for document in ["a", "b", "c", "d", "e", "f"] {
        world.take(at, order(document)).await;
    }
    let told = account(&world).await;
    assert!(told.is_sound() && told.is_settled() && told.entries.is_empty(), "{told:?}");
    world
        .sql(
            "delete from journal where first_value = 3; \
             update journal set last_value = 5 where first_value = 4",
        )
        .await;
    let told = account(&world).await;
    assert_eq!(listed(&told), [(EntryKind::Missing, 3, 3), (EntryKind::Twice, 5, 5)]);
    assert_eq!((told.tally.issued, told.values(), told.tally.sum()), (6, 6, 6));
    assert!(!told.is_sound());
}

pub(super) async fn rows_in_the_archive_stand_for_their_values(world: World) {
    let at = world.database_epoch().await;
    for document in ["a", "b", "c", "d", "e"] {
        world.take(at, order(document)).await;
    }
    // The word is not known to every version's check.
    let archive = |first: i64, last: i64| {
        let any = if world.ledger.engine() == "sqlite" {
            "pragma ignore_check_constraints = on"
        } else {
            "alter table journal drop constraint if exists journal_path_known"
        };
        format!(
            "{any}; delete from journal where first_value > {first} and first_value <= {last}; \
             update journal set last_value = {last}, path = 'archived', number = null, \
             scope = null, mask = null, outline = null, document_id = null, \
             context = '{{\"file\":\"{first}.parquet\",\"rows\":3,\"sha256\":\"00\"}}' \
             where first_value = {first}"
        )
    };
    world.sql(&archive(2, 4)).await;
    let told = account(&world).await;
    assert!(told.is_sound(), "{told:?}");
    assert_eq!((told.tally.issued, told.tally.archived), (5, 3));
    assert_eq!(told.files, ["2.parquet"]);
    assert_eq!(told.first.unwrap().number.as_deref(), Some("a-001"));
    world.sql(&archive(1, 4)).await;
    let told = account(&world).await;
    let first = told.first.as_ref().unwrap();
    assert_eq!((first.number.as_deref(), first.file.as_deref()), (None, Some("1.parquet")));
    assert!(told.is_sound(), "{told:?}");
}

/// Goal: counter, journal and gaps of an account belong together. Method: numbers are taken all the
/// while on the path on which none is ever under way; read statement by statement, a row would be
/// above its counter's value.
pub(super) async fn an_account_is_of_one_moment(world: World) {
    let at = world.database_epoch().await;
    world.take(at, order("first")).await;
    let taking = async {
        for number in 0..40 {
            world.take(at, order(&format!("d{number}"))).await;
        }
    };
    let reading = async {
        for _ in 0..40 {
            let told = account(&world).await;
            assert!(told.is_sound() && told.is_settled(), "{told:?}");
        }
    };
    tokio::join!(taking, reading);
}
