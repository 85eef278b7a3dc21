//! What the record says of itself, and the tables around it: their agreement is checked without a
//! key, and by readers of the archive.

use std::time::Duration;

use numerator::engine::reconciler::{Stores, VerifyReport, verify};
use numerator::features::archive::{Counted, Folder, check, look_in, unnamed};
use numerator::ledger::{Closing, CounterSpec, Entry, JournalFilter};
use numerator::redis::Keys;

use super::forged::Forge;
use super::sealed::opened;
use super::setup::change;
use super::shelf::{BEFORE_US, Shelf};
use super::world::{World, entry, spec, with};

async fn verified(world: &World) -> VerifyReport {
    let (ledger, clock) = (world.ledger.clone(), world.clock.clone());
    let stores = Stores { ledger, redis: None, keys: Keys::new("nbr"), clock };
    verify(&stores, Duration::ZERO).await.unwrap()
}

/// A change made without a key, and what `verify` reports of it: SERIES and COUNTER are replaced by
/// a series within projects, and its counter.
const BENT: [(&str, &str); 9] = [
    ("update journal set scope = 'project=B' where first_value = 2", "its scope"),
    ("update journal set scope = '' where first_value = 2", "its scope"),
    ("update journal set scope = 'type=A' where first_value = 2", "its scope"),
    (
        "update journal set number = (select number from journal where first_value = 1), \
         mask = (select number from journal where first_value = 1), outline = null, \
         scope = 'project=B' where first_value = 2",
        "has no place for the value",
    ),
    ("update journal set mask = 'S-003', outline = null where first_value = 3", "has no place"),
    ("SEGMENT", "which is no file"),
    ("SEGMENT; FILE 2", "which has 2"),
    ("SEGMENT; FILE 4", "which has 4"),
    ("UNKEYED", "journal_number_once of journal is not there"),
];

pub(super) async fn what_the_record_says_of_itself_must_agree(world: World) {
    let at = world.redis_epoch(Closing::Exact).await;
    let mut within = change("S", "S-{SEQ:3}");
    within.definition.unique_within = vec!["project".into()];
    let saved = world.ledger.series().apply(&[within]).await.unwrap().remove(0);
    // Where the cases' epoch is.
    world.sql("update series set partition = 2").await;
    let spec = CounterSpec { series_id: saved.series_id, ..spec("k") };
    let (id, ..) = world.seed(at, &spec).await;
    let numbered = |value: u64| {
        let of = with(entry(at, id, value), |record| {
            record.series_id = saved.series_id;
            record.type_code = "S".into();
            record.project = Some("A".into());
            record.scope = "project=A".into();
            record.mask = "S-{0:3}".into();
        });
        Entry { number: format!("S-{value:03}"), ..of }
    };
    world.append(&[numbered(1), numbered(2), numbered(3)]).await;
    let report = verified(&world).await;
    assert!(report.is_clean() && report.texts == 3, "{report}");
    assert!(report.to_string().ends_with("ok: every value once"), "{report}");
    let tables = ["journal", "archive_file"].map(str::to_owned);
    let forge = Forge::keep(&world, &tables).await;
    let note = serde_json::json!({
        "file": "journal-1.parquet", "sha256": "ab".repeat(32), "rows": 3, "digest": "00",
    });
    let segment = format!(
        "delete from journal where first_value > 1; update journal set last_value = 3, \
         number = null, scope = null, mask = null, outline = null, rest = null, context = '{note}'"
    );
    let sha256 = if world.ledger.engine() == "sqlite" { "x'" } else { "'\\x" };
    let file = |rows: &str| {
        format!(
            "insert into archive_file (name, sha256, row_count, manifest, before_us, \
             last_issued_us, written_by, written_at_us, ended_at_us) values ('journal-1.parquet', \
             {sha256}{}', {rows}, '', 1, 1, 'u', 1, 1)",
            "ab".repeat(32)
        )
    };
    let unkeyed = if world.ledger.engine() == "sqlite" {
        "pragma writable_schema = on; update sqlite_schema set sql = replace(sql, \
         'constraint journal_number_once unique (number, scope),', '') where name = 'journal'; \
         delete from sqlite_schema where name = 'sqlite_autoindex_journal_1'; \
         pragma writable_schema = reset"
    } else {
        "alter table journal drop constraint journal_number_once"
    };
    let mut unseen = Vec::new();
    for (bent, said) in BENT {
        let sql = bent
            .replace("SEGMENT", &segment)
            .replace("FILE 2", &file("2"))
            .replace("FILE 4", &file("4"))
            .replace("UNKEYED", unkeyed);
        forge.run(&sql).await.unwrap_or_else(|error| panic!("{bent}: {error}"));
        let report = verified(&world).await;
        if report.is_clean() || !report.to_string().contains(said) {
            unseen.push(format!("{bent}: wanted {said:?}\n{report}"));
        }
        // The key comes last: a file of SQLite does not get it back.
        if bent != "UNKEYED" {
            forge.put_rows_back(&tables).await;
        }
    }
    assert!(unseen.is_empty(), "{} unseen:\n{}", unseen.len(), unseen.join("\n"));
}

/// The texts of archived numbers are in no key: nothing proves that each occurs once.
pub(super) async fn verify_says_how_many_texts_it_did_not_compare(world: World) {
    let shelf = Shelf::of(world).await;
    shelf.archive().await;
    let report = verified(&shelf.kit.world).await;
    assert!(report.is_clean() && report.archived == 5, "{report}");
    let said = report.to_string();
    assert!(said.contains("the texts of 5 archived rows were not compared"), "{said}");
    assert!(!said.contains("every value once"), "{said}");
}

/// Segments that no checkpoint binds yet, some of them of rows that none binds either: a process
/// with the key knows their owner, others once a checkpoint covers them, or by the files.
pub(super) async fn who_has_no_key_is_told_what_is_not_known_yet(world: World) {
    let mut shelf = Shelf::of(world).await;
    shelf.kit.checkpoint().await;
    shelf.kit.write("l").await;
    assert_eq!(shelf.archive().await.rows, 10);
    let report = shelf.report(false).await;
    assert!(report.is_clean() && report.rows_archived == 10, "{report}");
    let (keyless, key) = (opened(&shelf.kit.world, None).await, shelf.kit.world.ledger.clone());
    shelf.kit.world.ledger = keyless.clone();
    let report = shelf.report(false).await;
    assert_eq!((report.rows_not_bound_yet, report.findings.len()), (10, 0), "{report}");
    assert!(!report.is_clean() && report.to_string().contains("NOT KNOWN YET"), "{report}");
    let report = shelf.report(true).await;
    assert!(report.is_clean() && report.rows_archived == 0, "{report}");
    shelf.kit.world.ledger = key;
    shelf.kit.checkpoint().await;
    shelf.kit.world.ledger = keyless;
    let report = shelf.report(false).await;
    assert!(report.is_clean() && report.rows_archived == 10, "{report}");
}

/// A file of another ledger in the folder, one with the name of ours, and ours with a manifest
/// without a signature.
pub(super) async fn a_file_that_the_ledger_does_not_name_is_a_finding(world: World) {
    let url = format!("sqlite:{}", tempfile::tempdir().unwrap().keep().join("other.db").display());
    let (shelf, other) = (Shelf::of(world).await, Shelf::of(World::open(&url).await).await);
    let (ledger, key) = (&shelf.kit.world.ledger, shelf.kit.key.public());
    shelf.kit.checkpoint().await;
    shelf.archive().await;
    other.kit.write("mallory").await;
    other.archive().await;
    let folder = Folder::open(shelf.path()).unwrap();
    let numbers = async |trusted: &[numerator::engine::sealing::PublicKey]| {
        let counted = Counted::of(ledger, &folder, trusted).await.unwrap();
        let filter = JournalFilter { limit: 100, ..JournalFilter::default() };
        let (found, _) = look_in(&folder, &counted, &filter, None).unwrap();
        let numbers: Vec<String> = found.into_iter().map(|it| it.row.entry.number).collect();
        (numbers, counted)
    };
    let (ours, _) = numbers(&[key]).await;
    assert_eq!(ours.len(), 5, "{ours:?}");
    assert_eq!(unnamed(ledger, &folder).await.unwrap(), Vec::<String>::new());
    let theirs = other.files(".parquet").remove(0);
    let name = theirs.file_name().unwrap().to_str().unwrap().to_owned();
    for suffix in ["", ".manifest.json"] {
        let from = theirs.with_file_name(format!("{name}{suffix}"));
        std::fs::copy(from, shelf.path().join(format!("{name}{suffix}"))).unwrap();
    }
    for trusted in [&[][..], &[key]] {
        let (found, counted) = numbers(trusted).await;
        assert_eq!((found, counted.others), (ours.clone(), vec![name.clone()]));
        let checked = check(ledger, &folder, trusted).await.unwrap();
        assert!(checked.findings[0].contains("the ledger does not name it"), "{checked:?}");
    }
    assert_eq!(unnamed(ledger, &folder).await.unwrap(), std::slice::from_ref(&name));
    // A trusted key vouches for a file that this ledger has forgotten.
    let (found, _) = numbers(&[other.kit.key.public()]).await;
    assert_eq!(found.len(), 10 + 5, "{found:?}");
    // Ours is replaced by theirs, under our name.
    let own = shelf.files(".parquet").into_iter().find(|file| !file.ends_with(&name)).unwrap();
    let own_name = own.file_name().unwrap().to_str().unwrap().to_owned();
    let whole = std::fs::read(&theirs).unwrap();
    std::fs::write(&own, &whole).unwrap();
    let manifest = shelf.path().join(format!("{own_name}.manifest.json"));
    let said = std::fs::read_to_string(theirs.with_file_name(format!("{name}.manifest.json")));
    let mut said: serde_json::Value = serde_json::from_str(&said.unwrap()).unwrap();
    said["manifest"] = said["manifest"].as_str().unwrap().replace(&name, &own_name).into();
    let signed = said.to_string();
    for unsigned in [false, true] {
        let text = if unsigned {
            serde_json::json!({ "manifest": said["manifest"] }).to_string()
        } else {
            signed.clone()
        };
        std::fs::write(&manifest, text).unwrap();
        let (found, counted) = numbers(&[key]).await;
        assert_eq!((found.len(), counted.replaced), (0, vec![own_name.clone()]));
    }
}

/// Writers, a service that signs, and an archiver continue while the record is compared again and
/// again.
pub(super) async fn beside_writers_and_archivers_nothing_false_is_found(world: World) {
    const COMPARISONS: u32 = 12;
    let shelf = std::sync::Arc::new(Shelf::of(world).await);
    shelf.kit.checkpoint().await;
    let is_over = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let (own, over) = (shelf.clone(), is_over.clone());
    let writer = tokio::spawn(async move {
        let mut written = 0;
        while !over.load(std::sync::atomic::Ordering::Relaxed) {
            own.kit.write(&format!("w{written}")).await;
            if written % 3 == 0 {
                own.kit.try_checkpoint().await;
            }
            written += 1;
        }
        written
    });
    let (own, over) = (shelf.clone(), is_over.clone());
    let archiver = tokio::spawn(async move {
        let mut moved = 0;
        while !over.load(std::sync::atomic::Ordering::Relaxed) {
            // Writers lock counters, and one that has just begun is not there yet.
            moved += own.try_archive(BEFORE_US).await.map_or(0, |moved| moved.rows);
        }
        moved
    });
    let mut said = Vec::new();
    for round in 0..COMPARISONS {
        let report = shelf.report(false).await;
        if !report.is_clean() {
            said.push(format!("{round}: {report}"));
        }
    }
    is_over.store(true, std::sync::atomic::Ordering::Relaxed);
    let (written, moved) = (writer.await.unwrap(), archiver.await.unwrap());
    assert!(
        said.is_empty(),
        "beside {written} writes and {moved} moved rows:\n{}",
        said.join("\n")
    );
    assert!(written > 3 && moved > 10, "{written} writes, {moved} rows moved");
    shelf.kit.try_checkpoint().await;
    let report = shelf.report(true).await;
    assert!(report.is_clean() && report.rows_archived == 0, "{report}");
}
