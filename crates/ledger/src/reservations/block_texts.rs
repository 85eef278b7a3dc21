//! The texts of the numbers of live blocks: the first one's is in the block's own row, and the
//! further ones are rows of `block_number`, which go with the block. Reads no number back.

use std::collections::BTreeMap;

use numbering::PartialNumber;

use crate::columns::{signed, unsigned};
use crate::dialect::Conn;
use crate::query::QueryBuilder;
use crate::reservations::table;
use crate::{Entry, LedgerError, number_hash};

/// Texts per statement: each binds at most five values, and the engine with the least takes 32,766.
const TEXTS_PER_STATEMENT: usize = 1_000;

/// The numbers of a reservation, each with its value, the lowest first.
///
/// # Errors
/// `Refused` where a value has no text: nothing may be committed.
pub(crate) fn texts_of(entry: &Entry) -> Result<Vec<(i64, String)>, LedgerError> {
    let values = values_of(entry)?;
    if let [only] = values[..] {
        return Ok(vec![(only, entry.number.clone())]);
    }
    let refused = |why: String| LedgerError::Refused(format!("mask: {why}"));
    let partial =
        PartialNumber::parse(&entry.record.mask).map_err(|error| refused(error.to_string()))?;
    let text_of = |value: i64| -> Result<(i64, String), LedgerError> {
        let text = partial.fill(&[unsigned(value, "value")?]);
        Ok((value, text.map_err(|error| refused(error.to_string()))?))
    };
    values.into_iter().map(text_of).collect()
}

/// The values of a reservation, the lowest first.
///
/// # Errors
/// `Fault` where it has none.
pub(crate) fn values_of(entry: &Entry) -> Result<Vec<i64>, LedgerError> {
    let none = || LedgerError::Fault("reservation.raw holds no value".into());
    let range = &entry.taken.first().ok_or_else(none)?.range;
    let step = usize::try_from(range.step).unwrap_or(usize::MAX).max(1);
    let values = (range.first..=range.last).step_by(step);
    values.map(|value| signed(value, "value")).collect()
}

/// Texts of a block that is about to be made and that others have.
#[derive(Debug, Default)]
pub(crate) struct MetTexts {
    /// Each by its value.
    pub(crate) texts: BTreeMap<i64, String>,
    /// The allocation, or the reservation, that has one of them.
    pub(crate) other: Vec<u8>,
}

/// The texts of a block that is about to be made that are in the journal, or reserved; none of a
/// single number, whose text is looked for with its value.
pub(crate) async fn met(conn: &mut Conn, entry: &Entry) -> Result<Option<MetTexts>, LedgerError> {
    let texts = texts_of(entry)?;
    if texts.len() < 2 {
        return Ok(None);
    }
    let scope = &entry.record.scope;
    let mut others: Vec<(String, Vec<u8>)> = Vec::new();
    for part in texts.chunks(TEXTS_PER_STATEMENT) {
        let mut query =
            QueryBuilder::new("select number, allocation_id from journal where scope = ");
        query.push_bind(scope.clone()).push(" and number in (");
        for (place, (_, text)) in part.iter().enumerate() {
            query.push(if place == 0 { "" } else { ", " }).push_bind(text.clone());
        }
        query.push(")");
        let journaled: Vec<(String, Vec<u8>)> =
            query.build().once().typed().fetch_all(&mut *conn).await?;
        others.extend(journaled);
    }
    let hashes = texts.iter().map(|(_, text)| number_hash(text)).collect();
    let named = table::named(conn, hashes).await?.into_iter();
    others.extend(named.filter(|(_, of, _)| of == scope).map(|(number, _, id)| (number, id)));
    let mut met = MetTexts::default();
    for (value, text) in texts {
        if let Some((_, other)) = others.iter().find(|(number, _)| *number == text) {
            met.other.clone_from(other);
            met.texts.insert(value, text);
        }
    }
    Ok(Some(met).filter(|met| !met.texts.is_empty()))
}

/// Writes the texts of the further numbers of a block that was just made; false where another one
/// has a text: nothing of the block may be committed.
pub(crate) async fn insert(conn: &mut Conn, entry: &Entry) -> Result<bool, LedgerError> {
    let texts = further(entry)?;
    let id = entry.record.allocation_id;
    let mut written = 0;
    for part in texts.chunks(TEXTS_PER_STATEMENT) {
        let mut query = QueryBuilder::new(
            "insert into block_number (reservation_id, value, number, scope, number_hash) ",
        );
        query.push_values(part, |mut row, (value, text)| {
            row.push_bind(id.as_bytes().to_vec()).push_bind(*value).push_bind(text.clone());
            row.push_bind(entry.record.scope.clone()).push_bind(number_hash(text));
        });
        query.push(" on conflict do nothing");
        written += query.build().once().execute(&mut *conn).await?.rows_affected();
    }
    Ok(written == texts.len() as u64)
}

/// The numbers of a reservation but for the first: none of a single number.
fn further(entry: &Entry) -> Result<Vec<(i64, String)>, LedgerError> {
    Ok(texts_of(entry)?.split_off(1))
}

/// Adds the statement that finds the reservations of a text, blocks among them.
pub(crate) fn push_holders(query: &mut QueryBuilder<'_>, number: &str) {
    for (place, table) in ["reservation", "block_number"].into_iter().enumerate() {
        query.push(if place == 0 { "" } else { " union " });
        query.push("select reservation_id from ").push(table).push(" where number_hash = ");
        query.push_bind(number_hash(number)).push(" and number = ");
        query.push_bind(number.to_owned());
    }
}
