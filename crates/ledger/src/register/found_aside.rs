//! Records that are put aside, in the look-ups of people: issued like the rest.

use numerator_runtime::node::NodeId;
use uuid::Uuid;

use crate::dialect::Conn;
use crate::protocol::put_aside::{Aside, named};
use crate::query::query_scalar;
use crate::register::lookup::Origin;
use crate::{
    Entry, JournalFilter, JournalRow, LedgerError, NumberStatus, Position, Record, RowVisibility,
};
use crate::{document_hash, number_hash};

/// The records that the number or the document of a filter names; none without either.
pub(crate) async fn of(conn: &mut Conn, filter: &JournalFilter) -> Result<Vec<Aside>, LedgerError> {
    let mut columns = Vec::new();
    if let Some(number) = &filter.number {
        columns.push(("number_hash", vec![number_hash(number)]));
    } else if let Some(document) = &filter.document_id {
        columns.push(("document_hash", vec![document_hash(document)]));
    }
    named(conn, &columns).await
}

/// Adds the records that match to a page of the journal's rows, in the order of the filter.
/// `behind`: number and scope behind which a list by numbers goes on.
pub(crate) async fn add(
    conn: &mut Conn,
    filter: &JournalFilter,
    (aside, behind): (Vec<Aside>, Option<(String, String)>),
    limit: usize,
    rows: &mut Vec<JournalRow>,
) -> Result<(), LedgerError> {
    for aside in aside {
        if !filter.has_text(&aside.entry.number) || !is_behind(filter, behind.as_ref(), &aside) {
            continue;
        }
        let row = row_of(&mut *conn, aside).await?;
        if filter.matches(&row) && filter.status.is_none_or(|it| it == NumberStatus::Issued) {
            rows.push(row);
        }
    }
    rows.sort_by(|one, other| filter.sort.order(one, other));
    rows.truncate(limit);
    Ok(())
}

/// Adds the records of a document after a position, as far as they are visible, to rows of the
/// journal, oldest first.
pub(crate) async fn add_of(
    conn: &mut Conn,
    document_id: &str,
    after: Option<Position>,
    shown: &RowVisibility,
    rows: &mut Vec<JournalRow>,
) -> Result<(), LedgerError> {
    let aside = named(&mut *conn, &[("document_hash", vec![document_hash(document_id)])]).await?;
    if aside.is_empty() {
        return Ok(());
    }
    for aside in aside {
        let is_of_it = aside.entry.record.document_id.as_deref() == Some(document_id);
        if is_of_it && after.is_none_or(|after| place(&aside.entry) > place_of(after)) {
            let row = row_of(&mut *conn, aside).await?;
            let Record { user_id, project, .. } = &*row.entry.record;
            if shown.has(user_id, &row.series, project.as_deref()) {
                rows.push(row);
            }
        }
    }
    rows.sort_by_key(|row| place(&row.entry));
    Ok(())
}

/// When an entry was issued, and what it took first.
pub(crate) fn place(entry: &Entry) -> (i64, Option<(i64, i64)>) {
    let first = entry
        .taken
        .first()
        .map(|taken| (taken.counter_id, i64::try_from(taken.range.first).unwrap_or(i64::MAX)));
    (entry.record.issued_at_us, first)
}

/// The same of a position.
pub(crate) fn place_of(Position { issued_at_us, of }: Position) -> (i64, Option<(i64, i64)>) {
    (issued_at_us, Some((of.counter_id, of.value)))
}

/// Whether a record is after the place where the list goes on.
fn is_behind(
    filter: &JournalFilter,
    text: Option<&(String, String)>,
    Aside { entry, .. }: &Aside,
) -> bool {
    let Some(after) = filter.after else { return true };
    if let Some((number, scope)) = text {
        return (&entry.number, &entry.record.scope) > (number, scope);
    }
    place(entry) < place_of(after)
}

/// A record as auditors see it. Which node brought it is not kept.
pub(crate) async fn row_of(
    conn: &mut Conn,
    Aside { entry, rejected_at_us }: Aside,
) -> Result<JournalRow, LedgerError> {
    let definition: Option<String> =
        query_scalar("select definition from series_version where series_id = $1 and version = $2")
            .bind(entry.record.series_id)
            .bind(i64::from(entry.record.version))
            .fetch_optional(conn)
            .await?;
    let origin = definition.as_deref().map(Origin::read).transpose()?.unwrap_or_default();
    let Origin { code: series, template, timezone } = origin;
    Ok(JournalRow {
        entry,
        series,
        template,
        timezone,
        node_id: NodeId(Uuid::nil()),
        journaled_at_us: rejected_at_us,
        is_put_aside: true,
    })
}
