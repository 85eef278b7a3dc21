//! Lists of the register: numbers, revisions, and gaps next to the numbers beside them, page by
//! page.
//!
//! A gap is next to the number above it in its counter, or else to the counter's last: where a list
//! has that number, it has the gap. Gaps of counters without a number end the list.

use std::cmp::Ordering;
use std::collections::HashMap;

use serde::Serialize;
use utoipa::ToSchema;

use crate::auth::Identity;
use crate::engine::allocator::Catalog;
use crate::features::lifecycle::standing::lives_of;
use crate::features::register::gap_description::GapTexts;
use crate::features::register::gap_explanation::GapExplanation;
use crate::features::register::gap_rows::{FoundGap, GapRow};
use crate::features::register::kinds::Kinds;
use crate::features::register::periods::Period;
use crate::features::register::rows::{FoundRow, NumberRow};
use crate::ledger::{
    Gap, JournalFilter, JournalRow, LedgerError, Position, RevisedRow, Revision, SearchPace,
    SharedLedger, Sort, ValueOf,
};

/// Which rows a list has, and of which kinds.
#[derive(Clone, Debug)]
pub(crate) struct Listing {
    /// What its numbers match.
    pub(crate) filter: JournalFilter,
    /// What its rows are.
    pub(crate) kinds: Kinds,
    /// Its time as it was asked for, which the filter has as instants.
    pub(crate) period: Period,
}

/// Gaps next to the numbers of a page, after which it ends.
fn gaps_max(pace: SearchPace) -> usize {
    match pace {
        SearchPace::Request => 1_000,
        SearchPace::Export => 10_000,
    }
}

/// A row of a list.
#[derive(Debug)]
pub(crate) enum ListedRow {
    /// A number.
    Number(FoundRow),
    /// A revision, and the number that it is of.
    Revision(Box<Revision>, FoundRow),
    /// A gap.
    Gap(FoundGap),
}

impl ListedRow {
    /// The row as a caller sees it.
    pub(crate) async fn seen_by(
        self,
        ledger: &SharedLedger,
        identity: &Identity,
    ) -> Result<Self, LedgerError> {
        Ok(match self {
            ListedRow::Number(found) => ListedRow::Number(found.seen_by(ledger, identity).await?),
            ListedRow::Revision(revision, found) => {
                ListedRow::Revision(revision, found.seen_by(ledger, identity).await?)
            }
            ListedRow::Gap(gap) => ListedRow::Gap(gap),
        })
    }
}

/// A row of a list as an answer shows it.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum RegisterRow<'a> {
    /// A number or a revision.
    Number(Box<NumberRow<'a>>),
    /// A gap.
    Gap(GapRow<'a>),
}

impl<'a> RegisterRow<'a> {
    /// The answer for rows.
    pub(crate) fn all_of(rows: &'a [ListedRow]) -> Vec<Self> {
        rows.iter().map(Self::of).collect()
    }

    /// The answer for one.
    pub(crate) fn of(row: &'a ListedRow) -> Self {
        match row {
            ListedRow::Number(found) => RegisterRow::Number(Box::new(NumberRow::of(found))),
            ListedRow::Revision(revision, number) => {
                RegisterRow::Number(Box::new(NumberRow::of_revision(revision, number)))
            }
            ListedRow::Gap(gap) => RegisterRow::Gap(GapRow::of(gap)),
        }
    }
}

/// A part of a list.
#[derive(Debug, Default)]
pub(crate) struct Page {
    /// Its rows; gaps come on top of the limit.
    pub(crate) rows: Vec<ListedRow>,
    /// The place behind which the list goes on, if it does not end here.
    pub(crate) last: Option<Position>,
}

/// A row that has a place of its own.
#[derive(Debug)]
enum Placed {
    Number(JournalRow),
    Revision(Box<RevisedRow>),
}

impl Placed {
    fn position(&self) -> Option<Position> {
        match self {
            Placed::Number(row) => Position::of(row),
            Placed::Revision(revised) => Some(revised.position()),
        }
    }

    /// The row of its number.
    fn row(&self) -> &JournalRow {
        match self {
            Placed::Number(row) => row,
            Placed::Revision(revised) => &revised.row,
        }
    }

    /// Number and scope, by which lists may be sorted.
    fn text(&self) -> (&str, &str) {
        match self {
            Placed::Number(row) => (&row.entry.number, &row.entry.record.scope),
            Placed::Revision(revised) => (&revised.revision.number, &revised.scope),
        }
    }

    fn order(&self, other: &Placed, sort: Sort) -> Ordering {
        let place = |placed: &Placed| {
            placed.position().map(|at| (at.issued_at_us, at.of.counter_id, at.of.value))
        };
        match sort {
            Sort::Time => place(other).cmp(&place(self)),
            Sort::Number => self.text().cmp(&other.text()),
        }
    }
}

/// The place of a gap of a counter without a number: behind all that has a time.
fn place_apart(of: ValueOf) -> Position {
    Position { issued_at_us: i64::MIN, of }
}

fn is_apart(position: Position) -> bool {
    position.issued_at_us == i64::MIN
}

/// A page that is being read.
struct PageReading<'a> {
    ledger: &'a SharedLedger,
    catalog: &'a Catalog,
    pace: SearchPace,
    causes: GapExplanation<'a>,
    rows: Vec<ListedRow>,
}

impl Listing {
    /// A page of at most the filter's `limit` numbers and revisions, with the gaps next to them; of
    /// fewer, where very many gaps are next to these.
    ///
    /// # Errors
    /// As [`crate::ledger::Register::find`]; `Refused` where too many gaps are next to one number.
    pub(crate) async fn page(
        &self,
        ledger: &SharedLedger,
        catalog: &Catalog,
        pace: SearchPace,
    ) -> Result<Page, LedgerError> {
        let (causes, rows) = (GapExplanation::of(ledger), Vec::new());
        let mut page = PageReading { ledger, catalog, pace, causes, rows };
        if self.filter.after.is_some_and(is_apart) {
            // Else the place was invented.
            let last = match self.has_gaps_apart() {
                true => self.read_gaps_apart(&mut page).await?,
                false => None,
            };
            return Ok(Page { rows: page.rows, last });
        }
        let mut placed = self.placed(ledger, pace).await?;
        let is_full = placed.len() >= self.filter.limit as usize;
        let (mut gaps, whole) = self.gaps_beside(ledger, &placed, pace).await?;
        let is_cut = whole < placed.len();
        placed.truncate(whole);
        let last = placed.last().filter(|_| is_full || is_cut).and_then(Placed::position);
        let journaled: Vec<&JournalRow> = placed.iter().map(Placed::row).collect();
        let lives = lives_of(ledger, &journaled).await?;
        for (placed, life) in placed.into_iter().zip(lives) {
            match placed {
                Placed::Revision(revised) => {
                    let RevisedRow { revision, row, .. } = *revised;
                    let number = FoundRow { life, ..FoundRow::of(row) };
                    page.rows.push(ListedRow::Revision(Box::new(revision), number));
                }
                Placed::Number(row) => {
                    let of = ValueOf::number(&row);
                    let beside = of.and_then(|of| gaps.remove(&of)).unwrap_or_default();
                    let found = FoundRow { life, ..FoundRow::of(row) };
                    self.read_number(&mut page, found, beside).await?;
                }
            }
        }
        if last.is_some() || !self.has_gaps_apart() {
            return Ok(Page { rows: page.rows, last });
        }
        let last = self.read_gaps_apart(&mut page).await?;
        Ok(Page { rows: page.rows, last })
    }

    /// Adds a number with the gaps next to it, from the lowest on.
    async fn read_number(
        &self,
        page: &mut PageReading<'_>,
        found: FoundRow,
        beside: Vec<Gap>,
    ) -> Result<(), LedgerError> {
        let entry = &found.row.entry;
        let first = entry.taken.first().map_or(0, |taken| taken.range.first);
        let beside = beside.into_iter().map(|gap| (GapTexts::beside(entry, &gap), gap));
        let (mut above, mut below): (Vec<_>, Vec<_>) =
            beside.partition(|(_, gap)| gap.span.first > first);
        let (before, behind) = match self.filter.sort {
            Sort::Number => (below, above),
            Sort::Time => {
                above.reverse();
                below.reverse();
                (above, below)
            }
        };
        self.describe(page, before).await?;
        if self.kinds.numbers {
            page.rows.push(ListedRow::Number(found));
        }
        self.describe(page, behind).await
    }

    /// The numbers and revisions of the page.
    async fn placed(
        &self,
        ledger: &SharedLedger,
        pace: SearchPace,
    ) -> Result<Vec<Placed>, LedgerError> {
        let (register, filter) = (ledger.register(), &self.filter);
        let mut placed = Vec::new();
        if self.kinds.numbers || self.kinds.gaps {
            let rows = register.list(filter, pace).await?;
            placed.extend(rows.into_iter().map(Placed::Number));
        }
        if self.kinds.revisions {
            let mut of_page = filter.clone();
            // A page that is full of numbers has no revision from before its last one.
            let last = placed.last().filter(|_| placed.len() >= filter.limit as usize);
            let last_us = last.and_then(Placed::position).map(|at| at.issued_at_us);
            if filter.sort == Sort::Time {
                of_page.from_us = filter.from_us.max(last_us);
            }
            let rows = register.find_revised(&of_page, pace).await?;
            placed.extend(rows.into_iter().map(|row| Placed::Revision(Box::new(row))));
            placed.sort_by(|one, other| one.order(other, filter.sort));
            placed.truncate(filter.limit as usize);
        }
        Ok(placed)
    }

    /// The gaps next to the numbers of a page, those of one number from the lowest on, and how many
    /// of its rows have all that are next to them.
    async fn gaps_beside(
        &self,
        ledger: &SharedLedger,
        placed: &[Placed],
        pace: SearchPace,
    ) -> Result<(HashMap<ValueOf, Vec<Gap>>, usize), LedgerError> {
        let mut beside: HashMap<ValueOf, Vec<Gap>> = HashMap::new();
        if !self.kinds.gaps {
            return Ok((beside, placed.len()));
        }
        // A record that is put aside is no row of the journal, which gaps are placed by.
        let number = |(index, placed): (usize, &Placed)| match placed {
            Placed::Number(row) if !row.is_put_aside => Some((index, ValueOf::number(row)?)),
            _ => None,
        };
        let (places, numbers): (Vec<usize>, Vec<ValueOf>) =
            placed.iter().enumerate().filter_map(number).unzip();
        let found = ledger.register().gaps_beside(&numbers, gaps_max(pace), pace).await?;
        for (of, gap) in found.gaps {
            beside.entry(of).or_default().push(gap);
        }
        Ok((beside, places.get(found.numbers).copied().unwrap_or(placed.len())))
    }

    /// Whether the list ends with gaps of counters without a number: nothing but the series and the
    /// time can be said of them.
    fn has_gaps_apart(&self) -> bool {
        let filter = JournalFilter { series_id: None, ..self.filter.clone() };
        let is_by_text = filter.number_prefix.is_some() || filter.number_part.is_some();
        self.kinds.gaps && !is_by_text && !filter.looks_at_rows()
    }

    /// Adds a page of these; the place behind which there may be more.
    async fn read_gaps_apart(
        &self,
        page: &mut PageReading<'_>,
    ) -> Result<Option<Position>, LedgerError> {
        let after = self.filter.after.filter(|after| is_apart(*after)).map(|after| after.of);
        let register = page.ledger.register();
        let gaps = register.gaps_without_numbers(&self.filter, after, page.pace).await?;
        let is_full = gaps.len() >= self.filter.limit as usize;
        let last = gaps.last().filter(|_| is_full).map(|gap| {
            let value = i64::try_from(gap.span.first).unwrap_or(i64::MAX);
            place_apart(ValueOf { counter_id: gap.counter_id, value })
        });
        let wanted = |gap: &Gap| self.filter.is_within(gap.series_id, gap.noted_at_us);
        let gaps = gaps.into_iter().filter(wanted).map(|gap| (GapTexts::default(), gap));
        self.describe(page, gaps.collect()).await?;
        Ok(last)
    }

    /// Adds the rows of gaps, as far as a filter by text has them.
    async fn describe(
        &self,
        page: &mut PageReading<'_>,
        gaps: Vec<(GapTexts, Gap)>,
    ) -> Result<(), LedgerError> {
        let is_by_text = self.filter.number_prefix.is_some() || self.filter.number_part.is_some();
        for (texts, gap) in gaps {
            let mut shown = texts.first.iter().chain(&texts.last);
            if !is_by_text || shown.any(|text| self.filter.has_text(text)) {
                let found = FoundGap::of(page.catalog, &mut page.causes, texts, gap).await?;
                page.rows.push(ListedRow::Gap(found));
            }
        }
        Ok(())
    }
}
