//! The journal as a drill reads it: with plain SQL, including what was moved to files.

use std::collections::HashSet;

use numerator::ledger::JournalRow;

use super::check::parse;
use super::orders::Received;
use super::world::World;

/// A row of the journal with a number.
pub(super) struct Row {
    /// What a caller must have been given for it; `None` if its text is not a number of the drill.
    pub(super) given: Option<Received>,
    pub(super) document: String,
    pub(super) counter_id: i64,
    pub(super) partition: i64,
    pub(super) epoch: i64,
    pub(super) number: String,
    /// Its first value.
    pub(super) first: u64,
    /// Its last one.
    pub(super) last: u64,
}

impl Row {
    /// The counter, among those of all series, and the first value; `None` if its text is not a
    /// number of the drill.
    pub(super) fn place(&self) -> Option<(u64, u64)> {
        Received::place(&self.number)
    }
}

/// Adds what was moved to files, and returns how many rows that were: a ledger that went back may
/// have some of them again.
pub(super) fn add_archived(journal: &mut Vec<Row>, rows: Vec<JournalRow>) -> u64 {
    let place = |row: &Row| (row.counter_id, row.number.clone(), row.document.clone());
    let mut seen: HashSet<(i64, String, String)> = journal.iter().map(place).collect();
    let mut count = 0;
    for JournalRow { entry, .. } in rows {
        let Some(taken) = entry.taken.first() else { continue };
        let document = entry.record.document_id.clone().unwrap_or_default();
        if !seen.insert((taken.counter_id, entry.number.clone(), document.clone())) {
            continue;
        }
        let (first, last) = (taken.range.first, taken.range.last);
        count += 1;
        journal.push(Row {
            given: Received::of_row(&document, &entry.number, first, last),
            document,
            counter_id: taken.counter_id,
            partition: i64::from(entry.at.partition),
            epoch: i64::try_from(entry.at.epoch).unwrap_or(i64::MAX),
            number: entry.number,
            first,
            last,
        });
    }
    journal.sort_by(|one, other| (&one.document, one.epoch).cmp(&(&other.document, other.epoch)));
    count
}

/// The journal, by document.
pub(super) fn read_journal(world: &World) -> Vec<Row> {
    let mut journal = Vec::new();
    world.ledger.rows(
        "select document_id, counter_id, number, first_value, last_value, partition_id, epoch \
         from {}.journal_row where number is not null order by document_id, epoch",
        |row| {
            journal.push(Row {
                given: Received::of_row(row[0], row[2], parse(row[3]), parse(row[4])),
                document: row[0].to_owned(),
                counter_id: parse(row[1]),
                partition: parse(row[5]),
                epoch: parse(row[6]),
                number: row[2].to_owned(),
                first: parse(row[3]),
                last: parse(row[4]),
            });
        },
    );
    journal
}
