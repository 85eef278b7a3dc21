//! What must hold at the end of reservations, voids and replacements: the answers to their callers
//! are compared with the journal, with the acts that the ledger has, and with the callers' own
//! table.
//!
//! Reads the ledger with plain SQL, not through the code that wrote it.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::Outcome;
use super::accounts;
use super::breaches::Breaches;
use super::check::parse;
use super::gaps::Losses;
use super::holds::{End, Hold, Holding, Span, Told, overlaps};
use super::journal::Row;
use super::kinds::Mark;
use super::orders::Received;
use super::transactions::{OwnRow, OwnTable};
use super::world::World;

/// What became of them, for the report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct LifeCounts {
    /// Reservations that were shown.
    pub(super) reserved: u64,
    /// Of those, the ones that HTTP confirmed.
    pub(super) confirmed: u64,
    /// Those that callers' transactions confirmed.
    pub(super) committed: u64,
    /// Voids that were answered.
    pub(super) voided: u64,
    /// Replacements that were answered.
    pub(super) replaced: u64,
    /// Requests that were repeated after their answer.
    pub(super) repeated: u64,
    /// Commits, voids and replacements that a ledger which went back forgot, as documented.
    pub(super) forgotten: u64,
    /// Numbers whose record was lost when a node and the data of a store were lost together.
    pub(super) lost: u64,
}

/// What the ledger shows of them at the end.
struct Shown<'a> {
    /// Documents and their numbers.
    issued: HashSet<(&'a str, &'a str)>,
    /// Rows of the callers' own table.
    own: Vec<OwnRow>,
    /// How often each number was voided, and replaced.
    voided: BTreeMap<String, u64>,
    replaced: BTreeMap<String, u64>,
    /// When the ledger went back.
    went_back: Vec<Span>,
}

/// Checks everything; violations go to `breaches`.
pub(super) fn judge(
    world: &World,
    told: &Told,
    gapless: &[(Received, i64)],
    (journal, losses): (&[Row], &Losses<'_>),
    breaches: &mut Breaches,
) -> LifeCounts {
    let shift_us = world.turn.shift_us();
    let shown = Shown {
        issued: journal.iter().map(|row| (&*row.document, &*row.number)).collect(),
        own: OwnTable::rows(&world.ledger),
        voided: read_acts(world, "voided"),
        replaced: read_acts(world, "replaced"),
        went_back: losses.done.iter().filter_map(|done| went_back(done, shift_us)).collect(),
    };
    let is_lost = |number: &str| {
        let place = Received::place(number);
        let gap = place.and_then(|(counter, value)| losses.gap_of(counter, value));
        gap.is_some_and(|gap| losses.is_of_double_failure(gap))
    };
    let mut counts = LifeCounts { repeated: told.repeated, ..LifeCounts::default() };
    judge_holds(told, &shown, &is_lost, &mut counts, breaches);
    judge_own_rows(&shown, breaches);
    judge_taken(told, &shown, &is_lost, &mut counts, breaches);
    judge_acts(told, &shown, &mut counts, breaches);
    for overlap in overlaps(holdings(told, gapless, &shown)) {
        breaches.add("DUPLICATE hold", overlap);
    }
    for lapse in told.lapses.iter().filter(|lapse| !shown.forgot(lapse.span)) {
        breaches.add("answer that contradicts an earlier one", lapse.what.clone());
    }
    accounts::judge(world, journal, losses.gaps, breaches);
    let (is_complete, paper) = world.statement();
    if !is_complete {
        breaches.add("the statement is not complete", paper);
    }
    counts
}

/// How often a number had an act.
fn read_acts(world: &World, act: &str) -> BTreeMap<String, u64> {
    let mut acts = BTreeMap::new();
    world.ledger.rows(
        &format!(
            "select number, count(*) from {{}}.life where act = '{act}' group by number \
             order by number"
        ),
        |row| {
            acts.insert(row[0].to_owned(), parse(row[1]));
        },
    );
    acts
}

/// The time of a step in which the ledger went back, by the clock of the machine.
fn went_back(done: &Outcome, shift_us: i64) -> Option<Span> {
    if !done.step.any(Mark::Agreed) && !done.step.any(Mark::Held) {
        return None;
    }
    let from_us = done.injected_at_us - shift_us;
    let took_us = i64::try_from(done.took.as_micros()).unwrap_or(i64::MAX);
    Some(Span { from_us, to_us: from_us.saturating_add(took_us) })
}

impl Shown<'_> {
    /// Whether the ledger may have forgotten what was done in this time.
    fn forgot(&self, span: Span) -> bool {
        self.went_back.iter().any(|went_back| went_back.meets(span))
    }

    fn has(&self, document: &str, number: &str) -> bool {
        self.issued.contains(&(document, number))
    }
}

/// Confirmed numbers are in the journal; those that nobody confirmed are not.
fn judge_holds(
    told: &Told,
    shown: &Shown<'_>,
    is_lost: &dyn Fn(&str) -> bool,
    counts: &mut LifeCounts,
    breaches: &mut Breaches,
) {
    let own: HashSet<&str> = shown.own.iter().map(|row| &*row.id).collect();
    // A document may have been given the number again that it held before.
    let may_have = |hold: &&Hold| !matches!(hold.end, End::Left | End::Cancelled { .. });
    let with_it: HashSet<(&str, &str)> =
        told.holds.iter().filter(may_have).map(|hold| (&*hold.document, &*hold.number)).collect();
    for hold in &told.holds {
        counts.reserved += 1;
        let is_issued = shown.has(&hold.document, &hold.number);
        match hold.end {
            End::Confirmed if is_issued => counts.confirmed += 1,
            End::Confirmed if is_lost(&hold.number) => counts.lost += 1,
            End::Confirmed => {
                breaches.add("confirmed number that is not in the journal", tell(hold));
            }
            // Its number is judged by the callers' own table.
            End::Committed { .. } if own.contains(&*hold.id) => counts.committed += 1,
            End::Committed { sent_us, at_us } => {
                let span = Span { from_us: sent_us, to_us: at_us };
                if shown.forgot(span) {
                    counts.forgotten += 1;
                } else {
                    breaches.add("transaction that committed is gone", tell(hold));
                }
            }
            End::Left | End::Cancelled { .. }
                if is_issued && !with_it.contains(&(&*hold.document, &*hold.number)) =>
            {
                breaches.add("number that nobody confirmed is in the journal", tell(hold));
            }
            End::Left | End::Cancelled { .. } | End::Unknown { .. } => {}
        }
    }
}

/// Each document that a caller's transaction saved has its number, and has it alone.
fn judge_own_rows(shown: &Shown<'_>, breaches: &mut Breaches) {
    let mut saved: HashMap<&str, &str> = HashMap::new();
    for OwnRow { id, document, number } in &shown.own {
        if !shown.has(document, number) {
            let told = format!("{number} for {document}, reservation {id}");
            breaches.add("number of a saved document that is not in the journal", told);
        }
        if let Some(other) = saved.insert(number, id) {
            let told = format!("{number}: reservations {other} and {id}");
            breaches.add("DUPLICATE number in the callers' own table", told);
        }
    }
}

/// Numbers that were taken to be voided, or in the place of void ones, are in the journal.
fn judge_taken(
    told: &Told,
    shown: &Shown<'_>,
    is_lost: &dyn Fn(&str) -> bool,
    counts: &mut LifeCounts,
    breaches: &mut Breaches,
) {
    for taken in told.taken.iter().filter(|taken| !shown.has(&taken.document, &taken.number)) {
        if is_lost(&taken.number) {
            counts.lost += 1;
        } else {
            let told = format!("{} for {}", taken.number, taken.document);
            breaches.add("number that is not in the journal", told);
        }
    }
}

/// A number is void for good once that was answered, and has one number in its place.
fn judge_acts(told: &Told, shown: &Shown<'_>, counts: &mut LifeCounts, breaches: &mut Breaches) {
    let (mut voided, mut replaced) = (HashMap::new(), HashMap::new());
    for void in &told.voids {
        counts.voided += 1;
        // The latest of several: an earlier one may be forgotten.
        voided.insert(&*void.number, void.span);
    }
    for link in &told.links {
        counts.replaced += 1;
        if let Some((by, span)) = replaced.insert(&*link.number, (&*link.by, link.span))
            && by != link.by
            && !shown.forgot(Span { from_us: span.from_us, to_us: link.span.to_us })
        {
            let told = format!("{}: {by} and {}", link.number, link.by);
            breaches.add("two numbers in the place of one", told);
        }
    }
    let spans: HashMap<&str, Span> =
        replaced.into_iter().map(|(number, (_, span))| (number, span)).collect();
    for (what, answered, acts) in [
        ("void that was answered is gone", voided, &shown.voided),
        ("replacement that was answered is gone", spans, &shown.replaced),
    ] {
        for (number, span) in answered {
            match acts.get(number) {
                Some(_) => {}
                None if shown.forgot(span) => counts.forgotten += 1,
                None => breaches.add(what, number),
            }
        }
    }
    for (number, count) in shown.voided.iter().chain(&shown.replaced).filter(|(_, n)| **n > 1) {
        breaches.add("act that a number has once", format!("{number}: {count} times"));
    }
}

/// Everything that is certain of who held which number when.
fn holdings(told: &Told, gapless: &[(Received, i64)], shown: &Shown<'_>) -> Vec<Holding> {
    let held =
        told.holds.iter().filter_map(|hold| hold.holding(shown.has(&hold.document, &hold.number)));
    let taken = told.taken.iter().filter_map(|taken| {
        Holding::of(&taken.number, taken.document.clone(), taken.at_us..i64::MAX)
    });
    let plain = gapless.iter().flat_map(|(received, at_us)| {
        let Received { document, counter, first, last } = *received;
        let time = *at_us..i64::MAX;
        (first..=last).map(move |value| {
            Holding::at((counter, value), format!("d{document:012}"), time.clone())
        })
    });
    held.chain(taken).chain(plain).collect()
}

fn tell(hold: &Hold) -> String {
    let Hold { id, document, number, shown_us, expires_us, end } = hold;
    format!("{number} for {document}, reservation {id}, {shown_us} to {expires_us}: {end:?}")
}

#[cfg(test)]
mod tests {
    use super::super::holds::{LinkTold, VoidTold};
    use super::*;

    const NUMBER: &str = "D007-000000042";
    const OTHER: &str = "D007-000000043";

    fn span(from_us: i64, to_us: i64) -> Span {
        Span { from_us, to_us }
    }

    fn hold(end: End) -> Hold {
        let (id, document) = ("id of r1".to_owned(), "r1".to_owned());
        Hold { id, document, number: NUMBER.to_owned(), shown_us: 10, expires_us: 100, end }
    }

    /// A ledger that has this number for `r1`, or none, and went back from 1,000 to 2,000.
    fn shown(issued: Option<&'static str>) -> Shown<'static> {
        Shown {
            issued: issued.map(|number| ("r1", number)).into_iter().collect(),
            own: Vec::new(),
            voided: BTreeMap::new(),
            replaced: BTreeMap::new(),
            went_back: vec![span(1_000, 2_000)],
        }
    }

    fn count(breaches: &Breaches) -> u64 {
        breaches.iter().map(|(_, examples)| examples.count).sum()
    }

    fn held(end: End, shown: &Shown<'_>, is_lost: bool) -> (LifeCounts, u64) {
        let told = Told { holds: vec![hold(end)], ..Told::default() };
        let (mut counts, mut breaches) = (LifeCounts::default(), Breaches::default());
        judge_holds(&told, shown, &|_| is_lost, &mut counts, &mut breaches);
        (counts, count(&breaches))
    }

    #[test]
    fn a_confirmed_number_is_in_the_journal_for_its_document_and_an_unconfirmed_one_is_not() {
        for (end, issued, wanted) in [
            (End::Confirmed, Some(NUMBER), 0),
            (End::Confirmed, None, 1),
            (End::Confirmed, Some(OTHER), 1),
            (End::Left, Some(NUMBER), 1),
            (End::Left, None, 0),
            (End::Cancelled { sent_us: 50 }, Some(NUMBER), 1),
            (End::Unknown { until_us: 100 }, Some(NUMBER), 0),
            (End::Unknown { until_us: 100 }, None, 0),
        ] {
            assert_eq!(held(end, &shown(issued), false).1, wanted, "{end:?} {issued:?}");
        }
        let (counts, breaches) = held(End::Confirmed, &shown(None), true);
        assert_eq!((counts.lost, breaches), (1, 0));
    }

    #[test]
    fn a_commit_is_gone_only_where_the_ledger_went_back_in_its_time() {
        let commit = |sent_us| End::Committed { sent_us, at_us: sent_us + 10 };
        assert_eq!(held(commit(500), &shown(None), false).1, 1);
        let (counts, breaches) = held(commit(1_500), &shown(None), false);
        assert_eq!((counts.forgotten, breaches), (1, 0));
        let (document, number) = ("r1".to_owned(), NUMBER.to_owned());
        let row = OwnRow { id: "id of r1".to_owned(), document, number };
        let saved = Shown { own: vec![row.clone()], ..shown(Some(NUMBER)) };
        assert_eq!(held(commit(500), &saved, false).1, 0);
        let judged = |shown: &Shown<'_>| {
            let mut breaches = Breaches::default();
            judge_own_rows(shown, &mut breaches);
            count(&breaches)
        };
        assert_eq!(judged(&saved), 0);
        assert_eq!(judged(&Shown { own: vec![row.clone()], ..shown(Some(OTHER)) }), 1);
        let second = OwnRow { id: "id of another".to_owned(), ..row.clone() };
        assert_eq!(judged(&Shown { own: vec![row, second], ..shown(Some(NUMBER)) }), 1);
    }

    fn acts(told: &Told, shown: &Shown<'_>) -> (u64, u64) {
        let (mut counts, mut breaches) = (LifeCounts::default(), Breaches::default());
        judge_acts(told, shown, &mut counts, &mut breaches);
        (counts.forgotten, count(&breaches))
    }

    #[test]
    fn a_void_that_was_answered_stays() {
        let void = |from_us| {
            let void = VoidTold { number: NUMBER.to_owned(), span: span(from_us, from_us + 10) };
            Told { voids: vec![void], ..Told::default() }
        };
        let once = BTreeMap::from([(NUMBER.to_owned(), 1)]);
        assert_eq!(acts(&void(10), &Shown { voided: once, ..shown(None) }), (0, 0));
        assert_eq!(acts(&void(10), &shown(None)), (0, 1));
        assert_eq!(acts(&void(1_500), &shown(None)), (1, 0));
        let twice = BTreeMap::from([(NUMBER.to_owned(), 2)]);
        assert_eq!(acts(&void(10), &Shown { voided: twice, ..shown(None) }), (0, 1));
    }

    #[test]
    fn a_void_number_has_one_number_in_its_place() {
        let link = |by: &str, from_us| LinkTold {
            number: NUMBER.to_owned(),
            by: by.to_owned(),
            span: span(from_us, from_us + 10),
        };
        let once = BTreeMap::from([(NUMBER.to_owned(), 1)]);
        let shown = Shown { replaced: once, ..shown(None) };
        let linked = |links| acts(&Told { links, ..Told::default() }, &shown);
        assert_eq!(linked(vec![link(OTHER, 10), link(OTHER, 20)]), (0, 0));
        assert_eq!(linked(vec![link(OTHER, 10), link("D007-000000044", 20)]), (0, 1));
        assert_eq!(linked(vec![link(OTHER, 1_500), link("D007-000000044", 1_600)]), (0, 0));
    }
}
