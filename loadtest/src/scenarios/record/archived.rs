//! All numbers of a record in an archive: how long that takes, what remains in the ledger, and the
//! cost of checking and searching the archive.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use numerator::clock::{Clock as _, SystemClock};
use numerator::engine::sealing::AuditKey;
use numerator::features::archive::{Folder, Moving, STEP_ROWS, archive};
use numerator::ledger::{LedgerSettings, open};

use super::{Record, bytes};
use crate::report::{Row, Section, figure};
use crate::stage::Sizes;

/// Rows of a file, as in the command.
const FILE_ROWS: u64 = 10_000_000;

/// Archives and measures.
pub(super) fn measure(record: &Record<'_>, key: &Path, section: &mut Section) {
    let folder = record.deployment.path("archive");
    let to = folder.to_str().expect("a path of text");
    let begun = Instant::now();
    match moved(record, key, &folder) {
        Ok(rows) if rows == record.numbers => {}
        moved => section.breaches.push(format!("archive of {} numbers: {moved:?}", record.numbers)),
    }
    let (count, seconds) = (record.count(), begun.elapsed().as_secs_f64());
    let note = format!("{} numbers in {} s", figure(count), figure(seconds));
    section.rows.push(Row::new("archive", count / seconds, "/s").note(note));
    section.rows.extend(what_it_takes(record, &folder));

    let archive = ["--archive", to];
    // Segments are rows under seal too.
    let segments = format!("select count(*) from {}.journal", record.schema);
    let segments: u64 = record.stage.postgres.sql(&segments).parse().expect("a count");
    let compared = record.compare(&archive, record.numbers + segments, section);
    section.rows.push(record.rate("audit verify --archive", &compared));
    let verified = record.command(&["verify", "--json", "--archive", to], section);
    let report = verified.json();
    if report["archive"]["rows"] != record.numbers || report["values"] != record.numbers {
        section.breaches.push(format!("verify of {} archived: {report}", record.numbers));
    }
    section.rows.push(record.rate("verify --archive", &verified));

    let number = format!("L0-0000000-{:012}", record.numbers.div_ceil(2));
    let found = record.command(&["find", "--archive", to, "--number", &number, "--json"], section);
    let numbers = &found.json()["numbers"];
    if numbers[0]["document_number"] != number || numbers[1] != serde_json::Value::Null {
        section.breaches.push(format!("find --archive of {number}: {numbers}"));
    }
    let row = Row::new("find --archive, one number", found.seconds * 1e3, "ms");
    section.rows.push(row.note(found.memory()));
}

/// Moves all numbers to files; returns how many. The command keeps recent numbers, and does not use
/// its own clock for that: the function called here is given the time.
fn moved(record: &Record<'_>, key: &Path, folder: &Path) -> Result<u64, String> {
    let said = |error: &dyn std::fmt::Display| error.to_string();
    let pem = std::fs::read_to_string(key).map_err(|error| said(&error))?;
    let key = AuditKey::read(&pem).map_err(|error| said(&error))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| said(&error))?.block_on(async {
        let clock = Arc::new(SystemClock);
        let settings = LedgerSettings { mac_key: Some(key.proof()), ..LedgerSettings::default() };
        let ledger = open(record.deployment.database_url(), settings, clock.clone()).await;
        let ledger = ledger.map_err(|error| said(&error))?;
        let folder = Folder::open_to_write(folder, uuid::Uuid::nil());
        let folder = folder.map_err(|error| said(&error))?;
        let moving = Moving {
            before_us: SystemClock.now_us(),
            by: "bench",
            key: Some(&key),
            clock,
            file_rows_max: FILE_ROWS,
            step_rows: STEP_ROWS,
            progress: &|_, _| (),
        };
        let moved = archive(&ledger, &folder, &moving).await;
        moved.map(|moved| moved.rows).map_err(|error| format!("{error:#}"))
    })
}

/// The size of an archived number: in its file, and in the ledger once the rest has been released.
fn what_it_takes(record: &Record<'_>, folder: &Path) -> [Row; 2] {
    let files = std::fs::read_dir(folder).map_or(Vec::new(), |files| files.flatten().collect());
    let files =
        files.iter().filter(|file| file.path().extension().is_some_and(|it| it == "parquet"));
    let sizes: Vec<u64> = files.filter_map(|file| Some(file.metadata().ok()?.len())).collect();
    #[expect(clippy::cast_precision_loss, reason = "figures of three digits")]
    let in_files = sizes.iter().sum::<u64>() as f64 / record.count();
    record.stage.postgres.sql("vacuum full");
    let left = Sizes::now(record.stage, &record.schema).since(&record.empty, record.numbers);
    [
        Row::new("an archived number, in its file", in_files, "bytes")
            .note(format!("{} files", sizes.len())),
        bytes("an archived number, in the ledger after vacuum full", &left),
    ]
}
