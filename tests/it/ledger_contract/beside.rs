//! Batches that are partly in the archive: what a comparison without the files cannot know, and
//! reports as unknown; and what it names nevertheless.

use super::forged::Forge;
use super::shelf::{BEFORE_US, Shelf};
use super::world::{World, entry, spec, with};

/// A record under seal, two batches of which lack two rows each: they are in the archive. The third
/// number of either is young and stayed, and so is a batch of two.
struct Parted {
    shelf: Shelf,
    forge: Forge,
    /// The counter of the young numbers, 1 and 2 in the batches that lack rows, 3 and 4 in the one
    /// that lacks none.
    young: i64,
    /// The batches, the whole one last.
    batches: [i64; 3],
}

const TABLES: [&str; 3] = ["journal", "journal_batch", "archive_file"];

impl Parted {
    async fn of(world: World) -> Self {
        let shelf = Shelf::of(world).await;
        let (world, at) = (&shelf.kit.world, shelf.kit.at);
        let (old, ..) = world.seed(at, &spec("old")).await;
        let (young, ..) = world.seed(at, &spec("young")).await;
        let late = |value| with(entry(at, young, value), |record| record.issued_at_us = BEFORE_US);
        for (first, value) in [(1, 1), (3, 2)] {
            let old = [first, first + 1].map(|value| entry(at, old, value));
            world.append(&[&old[..], &[late(value)]].concat()).await;
        }
        world.append(&[late(3), late(4)]).await;
        let batches = shelf.kit.batches().await[3..].try_into().unwrap();
        shelf.kit.checkpoint().await;
        assert_eq!(shelf.archive().await.rows, 9);
        shelf.kit.checkpoint().await;
        let forge = Forge::keep(&shelf.kit.world, &TABLES.map(str::to_owned)).await;
        Parted { shelf, forge, young, batches }
    }

    /// Does something that the ledger refuses.
    async fn forge(&self, sql: &str) {
        let [one, two, whole] = self.batches.map(|id| id.to_string());
        let sql = sql.replace("YOUNG", &self.young.to_string()).replace("ONE", &one);
        self.forge.run(&sql.replace("TWO", &two).replace("WHOLE", &whole)).await.unwrap();
    }

    async fn put_back(&self) {
        self.forge.put_rows_back(&TABLES.map(str::to_owned)).await;
    }
}

/// What is done to the rows that stayed: without the files it cannot be detected, and the report
/// gives their number; with them the batch is named.
pub(super) async fn rows_beside_the_archive_are_not_called_compared(world: World) {
    let parted = Parted::of(world).await;
    let shelf = &parted.shelf;
    let without = shelf.report(false).await;
    let whole = shelf.report(true).await;
    let said = serde_json::to_value(&without).unwrap();
    assert!(without.is_clean() && whole.is_clean(), "{without}\n{whole}");
    assert!(!without.to_string().contains("all is as it was bound"), "{without}");
    assert!(whole.to_string().ends_with("all is as it was bound"), "{whole}");
    let beside = [&said["rows_beside_archive"], &said["batches_beside_archive"]];
    assert_eq!(beside, [&serde_json::json!(2); 2], "{without}");
    assert_eq!(whole.rows, without.rows + 9 + 2, "{without}\n{whole}");
    let here = "where counter_id = YOUNG and first_value = 1";
    for change in [
        format!("update journal set document_id = 'forged' {here}"),
        format!("update journal set number = 'forged' {here}"),
        format!("update journal set user_name_id = address_name_id {here}"),
        format!("update journal set first_value = 99, batch_id = TWO {here}"),
    ] {
        parted.forge(&change).await;
        let report = shelf.report(false).await.to_string();
        let is_told = report.contains("2 rows of ") && report.contains("not in the journal were");
        assert!(is_told && !report.contains("all is as it was bound"), "{change}:\n{report}");
        let report = shelf.report(true).await;
        assert!(report.to_string().contains("NOT AS IT WAS: batch"), "{change}:\n{report}");
        parted.put_back().await;
    }
    // More or fewer rows than segments account for are named without them.
    for change in ["delete from journal", "update journal set batch_id = WHOLE"] {
        parted.forge(&format!("{change} {here}")).await;
        let report = shelf.report(false).await;
        assert!(!report.is_clean(), "{change}:\n{report}");
        parted.put_back().await;
    }
    assert!(shelf.report(true).await.is_clean());
}

/// A number is removed from a batch that is whole, and a segment put in its place that claims to be
/// of a batch that lacks rows: the sum of what is missing stays what it was.
pub(super) async fn a_segment_pays_only_in_a_batch_that_is_whole(world: World) {
    let parted = Parted::of(world).await;
    let shelf = &parted.shelf;
    let note = serde_json::json!({
        "file": "journal-9.parquet", "sha256": "cd".repeat(32), "rows": 1, "digest": "00",
    });
    let quoted = if shelf.kit.world.ledger.engine() == "sqlite" { "x'" } else { "'\\x" };
    for batch in ["ONE", "TWO", "(select max(batch_id) + 1 from journal_batch)"] {
        let erased = format!(
            "insert into journal (counter_id, first_value, last_value, allocation_id, context, \
             document_day, issued_at_us, kind_id, user_name_id, batch_id) \
             select counter_id, 104, 104, {quoted}{}', '{note}', document_day, issued_at_us, \
             kind_id, user_name_id, {batch} from journal \
             where counter_id = YOUNG and first_value = 4; \
             delete from journal where counter_id = YOUNG and first_value = 4; \
             update journal set first_value = 4, last_value = null \
             where counter_id = YOUNG and first_value = 104; \
             insert into archive_file (name, sha256, row_count, manifest, before_us, \
             last_issued_us, written_by, written_at_us, ended_at_us) \
             values ('journal-9.parquet', {quoted}{}', 1, '', 1, 1, 'u', 1, 1)",
            "cd".repeat(16),
            "cd".repeat(32)
        );
        parted.forge(&erased).await;
        for is_with_archive in [false, true] {
            let report = shelf.report(is_with_archive).await;
            let named = format!("counter {} value 4", parted.young);
            let is_named = report.to_string().contains(&named);
            assert!(!report.is_clean() && is_named, "{batch}, {is_with_archive}:\n{report}");
        }
        parted.put_back().await;
    }
    assert!(shelf.report(true).await.is_clean());
}

/// Segments after the checkpoint that the comparison begins with cover rows of batches before it:
/// they account for none of those after it.
pub(super) async fn who_begins_later_misses_no_row_beside_an_archive(world: World) {
    let shelf = Shelf::of(world).await;
    let (kit, world) = (&shelf.kit, &shelf.kit.world);
    let (id, ..) = world.seed(kit.at, &spec("both")).await;
    world.append(&[1, 2].map(|value| entry(kit.at, id, value))).await;
    kit.checkpoint().await;
    shelf.archive().await;
    kit.write("l").await;
    kit.checkpoint().await;
    for is_with_archive in [false, true] {
        let report = shelf.report_from(2, is_with_archive).await;
        assert!(report.is_clean(), "{is_with_archive}:\n{report}");
    }
    let forge = Forge::keep(world, &["journal".to_owned()]).await;
    for gone in ["number = 'l-1'", "number = 'l-4'", "number like 'l-%'"] {
        forge.run(&format!("delete from journal where {gone}")).await.unwrap();
        let without = shelf.report_from(2, false).await;
        let is_told = without.to_string().contains("NOT KNOWN");
        assert!(!without.is_clean() && is_told, "{gone}:\n{without}");
        let report = shelf.report_from(2, true).await;
        assert!(report.to_string().contains("NOT AS IT WAS: batch"), "{gone}:\n{report}");
        forge.put_rows_back(&["journal".to_owned()]).await;
    }
}

/// One segment has rows of batches on both sides of the checkpoint that is begun with.
pub(super) async fn a_segment_on_both_sides_of_a_checkpoint_is_no_finding(world: World) {
    let shelf = Shelf::of(world).await;
    let (kit, world) = (&shelf.kit, &shelf.kit.world);
    let (id, ..) = world.seed(kit.at, &spec("both")).await;
    world.append(&[1, 2].map(|value| entry(kit.at, id, value))).await;
    kit.checkpoint().await;
    world.append(&[3, 4].map(|value| entry(kit.at, id, value))).await;
    kit.checkpoint().await;
    assert_eq!(shelf.archive().await.rows, 9);
    kit.checkpoint().await;
    let whole = shelf.report_from(2, true).await;
    assert!(whole.is_clean() && whole.rows_archived == 0, "{whole}");
    let without = shelf.report_from(2, false).await;
    let said = serde_json::to_value(&without).unwrap();
    assert!(!without.is_clean() && without.to_string().contains("NOT KNOWN"), "{without}");
    assert_eq!((&said["rows_not_told"], without.findings.len()), (&2.into(), 0), "{without}");
}
