//! All numbers of a record in an archive: how long that takes, what is left in the ledger, and what
//! it takes to check and to look into the archive.

use std::path::Path;

use harness::process::faketime;
use numerator::clock::{Clock as _, SystemClock};

use super::{Record, bytes};
use crate::report::{Row, Section};
use crate::scenarios::command::Ended;
use crate::stage::Sizes;

/// How much later than everybody else whoever archives lives: what is young stays in the ledger.
const LATER: &str = "+3d";

/// Archives and measures. Where nobody can live later, that is all there is to say.
pub(super) fn measure(record: &Record<'_>, section: &mut Section) {
    let Some(library) = faketime() else {
        let why = "what is young is not archived, and libfaketime is not on this machine: install \
                   the Debian package faketime";
        section.rows.push(Row::new("archived", 0.0, "numbers").note(why));
        return;
    };
    let folder = record.deployment.path("archive");
    let to = folder.to_str().expect("a path of text");
    let moved = archive(record, &library, to, section);
    section.rows.push(moved);
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
    if numbers[0]["generated_number"] != number || numbers[1] != serde_json::Value::Null {
        section.breaches.push(format!("find --archive of {number}: {numbers}"));
    }
    let row = Row::new("find --archive, one number", found.seconds * 1e3, "ms");
    section.rows.push(row.note(found.memory()));
}

/// Moves all numbers to files.
fn archive(record: &Record<'_>, library: &Path, to: &str, section: &mut Section) -> Row {
    let later = [
        ("LD_PRELOAD", library.to_str().expect("a path of text")),
        ("FAKETIME", LATER),
        ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
    ];
    let before = SystemClock.now().to_string();
    let arguments = ["archive", "--before", &before, "--to", to, "--json"];
    let ended = Ended::run(&record.deployment, &later, &arguments, section);
    let moved = ended.json();
    if moved["rows"] != record.numbers {
        section.breaches.push(format!("archive of {} numbers: {moved}", record.numbers));
    }
    record.rate("archive", &ended)
}

/// What an archived number takes: in its file, and in the ledger once the rest has been given back.
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
