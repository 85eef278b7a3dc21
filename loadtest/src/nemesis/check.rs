//! What must hold at the end: every number that a caller was given is compared with every other one
//! and with the journal, and the gap register with the faults that may explain it.
//!
//! Reads the ledger with plain SQL, not through the code that wrote it.

use std::collections::{BTreeMap, HashSet};

use super::Outcome;
use super::breaches::Breaches;
use super::gaps::{Closings, Losses, judge_gaps, read_closings, read_gaps, step_of, tell_gap};
use super::holds::Told;
use super::journal::{Row, add_archived, read_journal};
use super::kinds::Kind;
use super::life::{self, LifeCounts};
use super::load::Seen;
use super::orders::{LETTERS, LINES, Received};
use super::world::World;

/// Hexadecimal digits of the shortest id that a cause may name.
const ID_DIGITS: usize = 32;

/// What the ledger shows at the end.
#[derive(Debug, Default)]
pub(super) struct Findings {
    /// Rows of the journal with a number.
    pub(super) journal_rows: u64,
    /// Of these, those that moved to files.
    pub(super) archived_rows: u64,
    /// Documents that got a second number after a close at the ceiling, as documented.
    pub(super) second_numbers: u64,
    /// Numbers whose record was lost when a node and the data of a store were lost together.
    pub(super) lost_in_double_failures: u64,
    /// Epochs by how they were closed.
    pub(super) closings: BTreeMap<String, u64>,
    /// Epochs by what began them.
    pub(super) causes: BTreeMap<String, u64>,
    /// Values in gaps, by the only fault of the step and the reason.
    pub(super) gaps: BTreeMap<(Option<Kind>, String), u64>,
    /// What became of reservations, voids and replacements.
    pub(super) life: LifeCounts,
}

/// Checks everything; violations go to `breaches`.
pub(super) fn check(
    world: &World,
    (seen, told): (Seen, &Told),
    done: &[Outcome],
    breaches: &mut Breaches,
) -> Findings {
    let mut named = HashSet::new();
    world.ledger.rows("select name from {}.archive_file order by name", |row| {
        named.insert(row[0].to_owned());
    });
    if let Err(error) = world.archiver().put_aside(&named) {
        breaches.add("the archive cannot be read", error.to_string());
    }
    // First: it also registers the gaps of counters that were not touched since.
    let (is_clean, report) = world.verify();
    if !is_clean {
        breaches.add("verify is not clean", report);
    }
    let (is_as_it_was, report) = world.audit();
    if !is_as_it_was {
        breaches.add("the record is not as it was bound", report);
    }
    let mut findings = Findings::default();
    let closings = read_closings(world, &mut findings);
    let cause = world.ledger.cause();
    let causes =
        format!("select {cause}, count(*) from {{}}.event where kind = 'recovery' group by 1");
    world.ledger.rows(&causes, |row| {
        *findings.causes.entry(without_names(row[0])).or_default() += parse::<u64>(row[1]);
    });
    let gaps = read_gaps(world);
    judge_gaps(&gaps, &closings, done, &mut findings, breaches);
    let mut all = seen.received;
    all.extend(seen.second);
    find_duplicates(&mut all, breaches);
    let mut journal = read_journal(world);
    match world.archiver().rows() {
        Ok(rows) => findings.archived_rows = add_archived(&mut journal, rows),
        Err(error) => breaches.add("the archive cannot be read", error.to_string()),
    }
    findings.journal_rows = journal.len() as u64;
    find_second_numbers(&journal, &closings, &mut findings, breaches);
    let losses = Losses::new(&gaps, &closings, done, &journal);
    for received in not_in_journal(&all, &journal) {
        let gap = losses.gap_of(received.counter, received.first);
        if gap.is_some_and(|gap| losses.is_of_double_failure(gap)) {
            findings.lost_in_double_failures += 1;
        } else {
            let tell_gap = |gap| tell_gap(gap, step_of(gap, &closings, done));
            let gap = gap.map_or_else(|| "in no gap".to_owned(), tell_gap);
            breaches.add("number that is not in the journal", format!("{}; {gap}", tell(received)));
        }
    }
    findings.life = life::judge(world, told, &seen.gapless, (&journal, &losses), breaches);
    findings
}

fn tell(received: &Received) -> String {
    let Received { document, counter, first, last } = *received;
    format!("{} to {last} for document {document}", Received::text(counter, first))
}

pub(super) fn parse<T: std::str::FromStr>(text: &str) -> T {
    text.parse().unwrap_or_else(|_| panic!("the ledger answered {text}, which is no number"))
}

/// A cause without what differs from one recovery to another: ids, and values of settings.
fn without_names(cause: &str) -> String {
    let is_id = |word: &str| {
        word.split(|c: char| !c.is_ascii_hexdigit()).any(|digits| digits.len() >= ID_DIGITS)
    };
    let word = |word| if is_id(word) || word.contains('=') { "..." } else { word };
    cause.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

/// A value that two documents were given.
fn find_duplicates(all: &mut [Received], breaches: &mut Breaches) {
    all.sort_unstable_by_key(|received| (received.counter, received.first, received.document));
    let mut before: Option<Received> = None;
    for received in all {
        if let Some(before) = before
            && before.counter == received.counter
            && before.last >= received.first
            && before.document != received.document
        {
            let (one, two) = (tell(&before), tell(received));
            breaches.add("DUPLICATE number", format!("{one}; {two}"));
        }
        let reaches_farther = before.is_none_or(|before| {
            before.counter != received.counter || before.last <= received.last
        });
        if reaches_farther {
            before = Some(*received);
        }
    }
}

/// What callers were given and the journal lacks in exactly that form, for that document.
fn not_in_journal<'a>(
    all: &'a [Received],
    journal: &[Row],
) -> impl Iterator<Item = &'a Received> + use<'a> {
    let given: HashSet<Received> = journal.iter().filter_map(|row| row.given).collect();
    all.iter().filter(move |received| !given.contains(*received))
}

/// Documents with a second number, by their rows in order; only a close at the ceiling between the
/// two excuses it.
fn find_second_numbers(
    journal: &[Row],
    closings: &Closings,
    findings: &mut Findings,
    breaches: &mut Breaches,
) {
    for pair in journal.windows(2).filter(|pair| pair[0].document == pair[1].document) {
        let (from, to) = (&pair[0], &pair[1]);
        let closed = |row: &Row, until: i64| {
            let epochs = (row.partition, row.epoch)..(row.partition, until);
            closings.range(epochs).any(|(_, closing)| closing.is_ceiling)
        };
        let is_excused = match from.partition == to.partition {
            true => closed(from, to.epoch),
            // Of two series in turn: their epochs do not show which number was the first.
            false => closed(from, i64::MAX) || closed(to, i64::MAX),
        };
        if is_excused {
            findings.second_numbers += 1;
        } else {
            let told = format!(
                "document {}: {} in epoch {} of partition {}, {} in epoch {} of partition {}",
                from.document,
                from.number,
                from.epoch,
                from.partition,
                to.number,
                to.epoch,
                to.partition
            );
            breaches.add("second number for one request", told);
        }
    }
}

/// Counters that the load uses.
pub(super) const COUNTERS: u64 = LETTERS.len() as u64 * LINES;

#[cfg(test)]
mod tests {
    use super::super::gaps::Closing;
    use super::*;

    fn received(document: u64, counter: u64, first: u64, last: u64) -> Received {
        Received { document, counter, first, last }
    }

    fn duplicates(mut all: Vec<Received>) -> u64 {
        let mut breaches = Breaches::default();
        find_duplicates(&mut all, &mut breaches);
        breaches.iter().map(|(_, examples)| examples.count).sum()
    }

    #[test]
    fn a_value_given_to_two_documents_is_found() {
        assert_eq!(duplicates(vec![received(1, 1, 5, 5), received(2, 1, 5, 5)]), 1);
        assert_eq!(duplicates(vec![received(1, 1, 5, 9), received(2, 1, 7, 7)]), 1);
        let behind_a_short_one =
            vec![received(1, 1, 1, 9), received(1, 1, 2, 2), received(2, 1, 8, 8)];
        assert_eq!(duplicates(behind_a_short_one), 1);
    }

    /// A row of counter 33 in epoch 2.
    fn row(document: &str, number: &str, first: u64, last: u64) -> Row {
        Row {
            given: Received::of_row(document, number, first, last),
            document: document.to_owned(),
            counter_id: 7,
            partition: 1,
            epoch: 2,
            number: number.to_owned(),
            first,
            last,
        }
    }

    #[test]
    fn a_number_is_in_the_journal_to_the_letter_and_under_its_document_or_it_is_missing() {
        let was_given = [received(5, 33, 42, 44)];
        let missing = |row: Row| not_in_journal(&was_given, &[row]).count();
        assert_eq!(missing(row("d000000000005", "B001-000000042", 42, 44)), 0);
        for other in [
            row("d000000000006", "B001-000000042", 42, 44),
            row("d000000000005", "A001-000000042", 42, 44),
            row("d000000000005", "B001-000000043", 42, 44),
            row("d000000000005", "B001-42", 42, 44),
            row("d000000000005", "B001-000000043", 43, 44),
            row("d000000000005", "B001-000000042", 42, 43),
            row("d000000000005", "A033-000000042", 42, 44),
            row("d000000000005", "", 42, 44),
        ] {
            let told = format!("{} {}", other.document, other.number);
            assert_eq!(missing(other), 1, "{told}");
        }
    }

    #[test]
    fn a_second_number_is_excused_by_a_close_at_the_ceiling_between_the_two_alone() {
        let (first, other) = (row("d1", "B001-000000001", 1, 1), row("d2", "B001-000000002", 2, 2));
        let second = Row { epoch: 4, ..row("d1", "B001-000000009", 9, 9) };
        let judged = |journal: &[Row], closed: Option<(i64, bool)>| {
            let closing =
                |(epoch, is_ceiling)| ((1, epoch), Closing { is_ceiling, closed_at_us: 0 });
            let closings = closed.into_iter().map(closing).collect();
            let (mut findings, mut breaches) = (Findings::default(), Breaches::default());
            find_second_numbers(journal, &closings, &mut findings, &mut breaches);
            (findings.second_numbers, breaches.iter().count())
        };
        let twice = [first, second];
        assert_eq!(judged(&twice, None), (0, 1));
        assert_eq!(judged(&twice, Some((3, false))), (0, 1));
        assert_eq!(judged(&twice, Some((4, true))), (0, 1));
        assert_eq!(judged(&twice, Some((3, true))), (1, 0));
        let [first, _] = twice;
        assert_eq!(judged(&[first, other], None), (0, 0));
    }

    #[test]
    fn a_repeated_answer_and_another_counter_are_no_duplicate() {
        assert_eq!(duplicates(vec![received(1, 1, 5, 5), received(1, 1, 5, 5)]), 0);
        assert_eq!(duplicates(vec![received(1, 1, 5, 5), received(2, 2, 5, 5)]), 0);
        assert_eq!(duplicates(vec![received(1, 1, 5, 9), received(2, 1, 10, 12)]), 0);
    }
}
