//! The numbers of a block that were used, as their holder lists them: each is one of the block, and
//! stands once; each document stands once, and has no other number of the series. Writes nothing.

use std::collections::{BTreeMap, HashMap};

use crate::columns::signed;
use crate::dialect::Conn;
use crate::register::lookup;
use crate::reservations::block_texts;
use crate::reservations::sweep::DueIds;
use crate::{
    BlockOutcome, DocumentHas, Entry, Found, HandBack, LedgerError, Question, Reservation,
    UsedFlaw, UsedNumber,
};

/// Documents of one question to the journal.
const DOCUMENTS_PER_SEARCH: usize = 100;

/// A number that was used.
#[derive(Clone, Copy, Debug)]
pub(super) struct Used<'u> {
    pub(super) number: &'u str,
    pub(super) document_id: &'u str,
    /// Its place in the list.
    place: usize,
}

/// The numbers that were used, by their values.
#[derive(Debug)]
pub(super) struct UsedValues<'u>(BTreeMap<i64, Used<'u>>);

/// A flaw, and the place of the number that has it.
pub(super) type Flawed = (usize, UsedFlaw);

impl<'u> UsedValues<'u> {
    /// Those of a list, by the values of a block that they show.
    ///
    /// # Errors
    /// Within the answer: the first number that is wrong.
    pub(super) fn of(
        block: &Reservation,
        list: &'u [UsedNumber],
    ) -> Result<Result<Self, Flawed>, LedgerError> {
        let texts = block_texts::texts_of(&block.entry)?;
        let edge = |text: Option<&(i64, String)>| text.map(|(_, text)| text.clone());
        let (first, last) = (edge(texts.first()), edge(texts.last()));
        let values: HashMap<&str, i64> =
            texts.iter().map(|(value, text)| (text.as_str(), *value)).collect();
        let mut used: BTreeMap<i64, Used<'u>> = BTreeMap::new();
        let mut documents: HashMap<&str, usize> = HashMap::new();
        for (place, UsedNumber { number, document_id }) in list.iter().enumerate() {
            let Some(value) = values.get(number.as_str()) else {
                let (first, last) = (first.unwrap_or_default(), last.unwrap_or_default());
                return Ok(Err((place, UsedFlaw::Outside { first, last })));
            };
            if let Some(earlier) = used.insert(*value, Used { number, document_id, place }) {
                return Ok(Err((place, UsedFlaw::NumberTwice { earlier: earlier.place })));
            }
            if let Some(earlier) = documents.insert(document_id, place) {
                return Ok(Err((place, UsedFlaw::DocumentTwice { earlier })));
            }
        }
        Ok(Ok(UsedValues(used)))
    }

    /// Each with its value, the lowest first.
    pub(super) fn all(&self) -> impl Iterator<Item = (u64, &Used<'u>)> {
        self.0.iter().map(|(value, used)| (value.unsigned_abs(), used))
    }

    /// Their values.
    pub(super) fn values(&self) -> impl Iterator<Item = i64> {
        self.0.keys().copied()
    }

    /// The refusal of a number whose text or value another allocation has.
    pub(super) fn flawed(&self, entry: &Entry) -> BlockOutcome {
        let first = entry.taken.first().map_or(0, |taken| taken.range.first);
        let used = signed(first, "first").ok().and_then(|value| self.0.get(&value));
        let place = used.map_or(0, |used| used.place);
        BlockOutcome::Flawed { place, flaw: UsedFlaw::Collided }
    }
}

/// Whether the documents of a list may have numbers.
pub(super) enum Documents {
    /// None has any.
    Free,
    /// The one at this place has.
    Flawed(usize, UsedFlaw),
    /// Reservations of theirs are over, and must end first.
    Due(DueIds),
}

/// Asks whether a document of the list has a number of the series, be it one of a range, or holds
/// one. The names of all of them are locked.
pub(super) async fn documents(
    conn: &mut Conn,
    block: &Reservation,
    order: &HandBack,
    now_us: i64,
) -> Result<Documents, LedgerError> {
    let record = &block.entry.record;
    let (series_id, user_id, of) = (record.series_id, &record.user_id, &order.documents);
    let question =
        |used: &UsedNumber| Question::of_document(series_id, user_id, &used.document_id, of);
    let questions: Vec<Question> = order.used.iter().map(question).collect();
    let mut due = DueIds::new();
    for (part, questions) in questions.chunks(DOCUMENTS_PER_SEARCH).enumerate() {
        let (found, _) = lookup::answers(conn, questions, now_us).await?;
        for (place, found) in found.into_iter().enumerate() {
            let place = part * DOCUMENTS_PER_SEARCH + place;
            let over = found.reserved().find(|reserved| reserved.is_due()).map(|over| {
                let counter_id = over.entry.taken.first().map(|taken| taken.counter_id);
                (counter_id.unwrap_or_default(), over.id())
            });
            if let Some((counter_id, id)) = over.filter(|_| found.by_document.is_none()) {
                due.entry(counter_id).or_default().insert(id);
            } else if let Some(flaw) = flaw_of(found) {
                return Ok(Documents::Flawed(place, flaw));
            }
        }
    }
    Ok(if due.is_empty() { Documents::Free } else { Documents::Due(due) })
}

/// What keeps a document from having a number.
fn flaw_of(found: Found) -> Option<UsedFlaw> {
    Some(match found.of_document()? {
        DocumentHas::Number(_) | DocumentHas::Assigned(_) => UsedFlaw::Numbered,
        DocumentHas::Reserved(_) => UsedFlaw::DocumentReserved,
        DocumentHas::Archived(file) => UsedFlaw::DocumentArchived { file },
    })
}
