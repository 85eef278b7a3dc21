//! What the ledger knows of documents.

use numerator::ledger::{Closing, Position};

use super::world::{NOW_US, World, entry, seed, with};

pub(super) async fn the_numbers_of_a_document_are_paged_oldest_first(world: World) {
    let open = world.redis_epoch(Closing::Exact).await;
    let (one, ..) = world.seed(open, &seed("one")).await;
    let (other, ..) = world.seed(open, &seed("other")).await;
    let of_document = |counter_id, value, document: &str, age_us: i64| {
        with(entry(open, counter_id, value), |record| {
            record.document_id = Some(document.into());
            record.issued_at_us = NOW_US - age_us;
        })
    };
    // Two at one moment, and journaled in another order than they were asked for.
    let entries = [
        of_document(one, 2, "d", 10),
        of_document(other, 1, "d", 30),
        of_document(one, 1, "d", 30),
        of_document(one, 3, "D", 20),
    ];
    world.append(&entries).await;
    let mut expected = vec![&entries[2], &entries[1], &entries[0]];
    expected.sort_by_key(|entry| (entry.record.issued_at_us, entry.taken[0].counter_id));
    let expected: Vec<_> = expected.into_iter().map(|entry| entry.number.clone()).collect();
    let mut found = Vec::new();
    let mut after = None;
    loop {
        let page = world.ledger.numbers_of("d", after, 2).await.unwrap();
        assert!(page.len() <= 2);
        let Some(last) = page.last() else { break };
        after = Position::of(last);
        found.extend(page.into_iter().map(|row| row.entry.number));
    }
    assert_eq!(found, expected);
    assert_eq!(world.ledger.numbers_of("nobody", None, 2).await.unwrap(), []);
}
