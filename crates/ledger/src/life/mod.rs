//! What becomes of a number beside its journal row: void, replaced, corrected, assigned to a
//! document. Rows are only added, and the journal's row stays as it is.
//!
//! A unique key decides who voids a number and who replaces it (L17). A void and a correction hold
//! the counter's row, which an archiver holds too, and the row of the journal, which a revision
//! holds: a number with such an act stays in the journal, and a void one gets no revision.

pub(crate) mod assignments;
pub(crate) mod corrections;
pub(crate) mod registrations;
pub(crate) mod rows;
pub(crate) mod unused;
pub(crate) mod walk;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sqlx_macros::FromRow;

use crate::calls::noun;
use crate::columns::{Word, from_json, read_uuid, to_json};
use crate::counters::table::lock_all;
use crate::dialect::Conn;
use crate::query::{QueryBuilder, query_as};
use crate::store::{Store, commit_alone};
use crate::{
    LedgerError, LifeAct, LifeRow, Linked, NewAct, PassedOver, Replacement, ValueOf,
    VariableChange, Voided,
};

noun!(
    /// What became of numbers, beside their journal rows.
    Life,
    life
);

/// The acts upon numbers, as SQL lists them: the rest is of reservations.
macro_rules! acts_upon_numbers {
    () => {
        "('voided', 'replaced', 'corrected', 'registered', 'assigned')"
    };
}
pub(crate) use acts_upon_numbers;

/// The beginning of every query for whole rows.
const COLUMNS: &str = "select l.life_id, l.act, l.at_us, l.counter_id, l.first_value, l.last_value,
     l.subject, l.other, l.number, l.document_id, l.user_id, l.ip_address, l.reason, l.detail
     from life l ";

impl Word for LifeAct {
    const COLUMN: &'static str = "life.act";
    const WORDS: &'static [(Self, &'static str)] = &[
        (LifeAct::Cancelled, "cancelled"),
        (LifeAct::Expired, "expired"),
        (LifeAct::Lost, "lost"),
        (LifeAct::HandedBack, "handed-back"),
        (LifeAct::Voided, "voided"),
        (LifeAct::Replaced, "replaced"),
        (LifeAct::Corrected, "corrected"),
        (LifeAct::Registered, "registered"),
        (LifeAct::Assigned, "assigned"),
    ];
}

impl LifeAct {
    /// What the column `once` says: a value has the act once at most.
    const fn is_once(self) -> bool {
        matches!(self, LifeAct::Voided | LifeAct::Replaced | LifeAct::Assigned)
    }
}

impl Life<'_> {
    /// Voids a journaled number. Its value never returns. Safe to repeat.
    ///
    /// # Errors
    /// `LockTimeout` where a counter is held: worth a retry.
    pub async fn void(self, new: &NewAct) -> Result<Voided, LedgerError> {
        self.write(async |store| {
            let mut tx = store.begin().await?;
            let Some(journaled) = lock(&mut *tx, new).await? else { return Ok(Voided::Gone) };
            // A row that is refused would use up an id.
            if let Some(known) = once(&mut *tx, new.of, LifeAct::Voided).await? {
                return Ok(Voided::Known(known));
            }
            let assigned = once(&mut *tx, new.of, LifeAct::Assigned).await?;
            let document_id = assigned.map_or(journaled.document_id, |row| row.document_id);
            let act = Act { document_id, ..Act::of(LifeAct::Voided, new) };
            let written = insert(store, &mut *tx, act).await?;
            let Some(row) = written else {
                let known = once(&mut *tx, new.of, LifeAct::Voided).await?;
                return known.map(Voided::Known).ok_or_else(vanished);
            };
            commit_alone(store, tx).await?;
            Ok(Voided::Written(row))
        })
        .await
    }

    /// Links a void number to the one that stands in its place. Safe to repeat.
    pub async fn replace(
        self,
        new: &NewAct,
        replacement: &Replacement,
    ) -> Result<Linked, LedgerError> {
        self.write(async |store| {
            let mut tx = store.begin().await?;
            // A void is never taken back: no lock is needed behind it.
            let Some(voided) = once(&mut *tx, new.of, LifeAct::Voided).await? else {
                return Ok(Linked::NotVoided);
            };
            let detail = Detail { number: Some(replacement.number.clone()), ..Detail::default() };
            let act = Act {
                other: Some(replacement.allocation_id.as_bytes().to_vec()),
                document_id: voided.document_id,
                detail: Some(detail),
                ..Act::of(LifeAct::Replaced, new)
            };
            let written = insert(store, &mut *tx, act).await?;
            let Some(row) = written else {
                let known = once(&mut *tx, new.of, LifeAct::Replaced).await?;
                let known = known.ok_or_else(vanished)?;
                let is_same = known.other == Some(replacement.allocation_id);
                return Ok(if is_same { Linked::Written(known) } else { Linked::Other(known) });
            };
            commit_alone(store, tx).await?;
            Ok(Linked::Written(row))
        })
        .await
    }

    /// That a number is void, its replacement, and to which document it is assigned, as far as
    /// there are any: one look-up by a key.
    pub async fn standing_of(self, of: ValueOf) -> Result<Standing, LedgerError> {
        self.read(async |reader| {
            let mut query = QueryBuilder::new(COLUMNS);
            query.push("where l.counter_id = ").push_bind(of.counter_id);
            query.push(" and l.first_value = ").push_bind(of.value);
            query.push(" and l.once in ('voided', 'replaced', 'assigned') limit 3");
            let rows: Vec<LifeRow> = query.build().typed::<ActRow>().fetch_all_into(reader).await?;
            let mut standing = Standing::default();
            for row in rows {
                match row.act {
                    LifeAct::Voided => standing.voided = Some(row),
                    LifeAct::Assigned => standing.assigned = Some(row),
                    _ => standing.replaced = Some(row),
                }
            }
            Ok(standing)
        })
        .await
    }
}

/// Whether a number is void, replaced, and assigned to a document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// Since when it is void.
    pub voided: Option<LifeRow>,
    /// What stands in its place.
    pub replaced: Option<LifeRow>,
    /// Of a number within a range: to which document it is assigned.
    pub assigned: Option<LifeRow>,
}

/// A row of the journal that an act is about.
#[derive(FromRow)]
struct Journaled {
    last_value: i64,
    document_id: Option<String>,
    context: Option<String>,
}

/// Locks the counter and the journal's row of a number; none where the journal has no such row any
/// more. The counter comes first, as everywhere.
async fn lock(conn: &mut Conn, new: &NewAct) -> Result<Option<Journaled>, LedgerError> {
    lock_all(conn, &[new.of.counter_id]).await?;
    let row: Option<Journaled> = query_as(
        "select coalesce(last_value, first_value) as last_value, document_id, context from journal
         where counter_id = $1 and first_value = $2 and allocation_id = $3 and number is not null",
    )
    .for_update()
    .bind(new.of.counter_id)
    .bind(new.row_first)
    .bind(new.allocation_id.as_bytes().as_slice())
    .fetch_optional(conn)
    .await?;
    Ok(row.filter(|row| (new.row_first..=row.last_value).contains(&new.of.value)))
}

/// The act of a number that a value has once at most, if it has it.
pub(crate) async fn once(
    conn: &mut Conn,
    of: ValueOf,
    act: LifeAct,
) -> Result<Option<LifeRow>, LedgerError> {
    let mut query = QueryBuilder::new(COLUMNS);
    query.push("where l.counter_id = ").push_bind(of.counter_id);
    query.push(" and l.first_value = ").push_bind(of.value);
    query.push(" and l.once = ").push_bind(act.word());
    query.build().typed::<ActRow>().fetch_optional_into(conn).await
}

/// A row that the unique key found and the next statement did not: nothing removes rows.
fn vanished() -> LedgerError {
    LedgerError::Conflict("life: a row has just vanished".into())
}

/// A row to write.
struct Act<'a> {
    act: LifeAct,
    new: &'a NewAct,
    other: Option<Vec<u8>>,
    document_id: Option<String>,
    detail: Option<Detail>,
}

impl<'a> Act<'a> {
    fn of(act: LifeAct, new: &'a NewAct) -> Self {
        Act { act, new, other: None, document_id: None, detail: None }
    }
}

/// The column `detail` of an act upon a number. Other acts say other things in it.
#[derive(Default, Serialize, Deserialize)]
struct Detail {
    /// The variables that were corrected.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    changes: BTreeMap<String, VariableChange>,
    /// The replacement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    number: Option<String>,
    /// What a number by hand has passed over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    passed_over: Option<PassedOver>,
}

/// The number that a link's column `detail` names.
pub(crate) fn replacement(detail: &str) -> Result<String, LedgerError> {
    let detail: Detail = from_json(detail, "life.detail")?;
    Ok(detail.number.unwrap_or_default())
}

/// Writes an act; none where the value has it already.
async fn insert(
    store: &Store,
    conn: &mut Conn,
    act: Act<'_>,
) -> Result<Option<LifeRow>, LedgerError> {
    let Act { act, new, other, document_id, detail } = act;
    let detail = detail.map(|detail| to_json(&detail, "life.detail")).transpose()?;
    let once = act.is_once().then(|| act.word());
    query_as::<ActRow>(
        "insert into life (act, at_us, counter_id, first_value, last_value, subject, other, number,
         document_id, user_id, ip_address, reason, detail, once)
         values ($1, $2, $3, $4, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
         on conflict do nothing returning life_id, act, at_us, counter_id, first_value, last_value,
         subject, other, number, document_id, user_id, ip_address, reason, detail",
    )
    .bind(act.word())
    .bind(store.clock.now_us())
    .bind(new.of.counter_id)
    .bind(new.of.value)
    .bind(new.allocation_id.as_bytes().as_slice())
    .bind(other)
    .bind(&new.number)
    .bind(document_id)
    .bind(&new.user_id)
    .bind(&new.ip_address)
    .bind(&new.reason)
    .bind(detail)
    .bind(once)
    .fetch_optional_into(conn)
    .await
}

/// The columns of a row, as [`COLUMNS`] names them.
#[derive(FromRow)]
struct ActRow {
    life_id: i64,
    act: String,
    at_us: i64,
    counter_id: i64,
    first_value: i64,
    last_value: i64,
    subject: Vec<u8>,
    other: Option<Vec<u8>>,
    number: Option<String>,
    document_id: Option<String>,
    user_id: String,
    ip_address: Option<String>,
    reason: Option<String>,
    detail: Option<String>,
}

impl TryFrom<ActRow> for LifeRow {
    type Error = LedgerError;

    fn try_from(row: ActRow) -> Result<Self, LedgerError> {
        let other = row.other.map(|other| read_uuid(&other, "life.other")).transpose()?;
        let detail = row.detail.as_deref().map(|text| from_json(text, "life.detail"));
        let Detail { changes, number, passed_over } = detail.transpose()?.unwrap_or_default();
        Ok(LifeRow {
            life_id: row.life_id,
            act: LifeAct::read(&row.act)?,
            at_us: row.at_us,
            of: ValueOf { counter_id: row.counter_id, value: row.first_value },
            last: row.last_value,
            subject: read_uuid(&row.subject, "life.subject")?,
            other,
            number: row.number,
            document_id: row.document_id,
            user_id: row.user_id,
            ip_address: row.ip_address,
            reason: row.reason,
            changes,
            replacement: number,
            passed_over,
        })
    }
}
