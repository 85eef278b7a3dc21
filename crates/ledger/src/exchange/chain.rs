//! The chain of a unified serial: the serials issued under it, from the journal, and what happened
//! to serials that carried it.

use numbering::ExchangeKind;
use sqlx_macros::FromRow;

use crate::calls::CALL;
use crate::columns::unsigned_small;
use crate::dialect::Conn;
use crate::query::QueryBuilder;
use crate::register::shown;
use crate::store::Store;
use crate::{ChainQuery, Exchange, LedgerError, Link, LinkName, LinkPlace, RowVisibility};

impl Exchange<'_> {
    /// The links of a unified serial's chain, oldest first. Sorts the whole chain for each page.
    pub async fn chain(self, query: &ChainQuery) -> Result<Vec<Link>, LedgerError> {
        self.chain_shown(query, &RowVisibility::Everything).await
    }

    /// The same for the links that the caller may see.
    pub async fn chain_shown(
        self,
        query: &ChainQuery,
        shown: &RowVisibility,
    ) -> Result<Vec<Link>, LedgerError> {
        self.call(CALL, async |store| chain(store, query, shown).await).await
    }
}

/// See [`crate::Exchange::chain_shown`].
async fn chain(
    store: &Store,
    asked: &ChainQuery,
    shown: &RowVisibility,
) -> Result<Vec<Link>, LedgerError> {
    let mut conn = store.reader.acquire().await?;
    let mut links = issued(&mut *conn, asked, shown).await?;
    links.extend(events(&mut *conn, asked, shown).await?);
    links.sort_by(|a, b| a.place.cmp(&b.place));
    links.truncate(asked.limit as usize);
    Ok(links)
}

/// Serials issued under the unified serial, and that itself: their document ids begin with it.
async fn issued(
    conn: &mut Conn,
    asked: &ChainQuery,
    shown: &RowVisibility,
) -> Result<Vec<Link>, LedgerError> {
    // Of the links of one time, issued serials come first: after an event none is left.
    let (at_us, number) = match &asked.after {
        None => (i64::MIN, None),
        Some(LinkPlace { at_us, name: LinkName::Issued(number) }) => (*at_us, Some(number)),
        Some(LinkPlace { at_us, name: LinkName::Event(_) }) => (at_us.saturating_add(1), None),
    };
    let [unified, system, interface] = ExchangeKind::ALL.map(ExchangeKind::type_code);
    let serial = &asked.unified_serial;
    let columns = "select j.number, j.document_id, j.user_id, j.ip_address, j.issued_at_us
                   from journal_row j where ";
    let mut query =
        QueryBuilder::new("select number, document_id, user_id, ip_address, issued_at_us from (");
    query.push(columns).push("j.number = ").push_bind(serial.clone());
    query.push(" and j.type_code = ").push_bind(unified);
    shown::push_rows(&mut query, "j", shown);
    query.push(" union all ").push(columns);
    query.push("j.document_id >= ").push_bind(format!("{serial}/"));
    // The character that follows the stroke.
    query.push(" and j.document_id < ").push_bind(format!("{serial}0"));
    query.push(" and j.number is not null and j.type_code in (").push_bind(system);
    query.push(", ").push_bind(interface).push(")");
    shown::push_rows(&mut query, "j", shown);
    query.push(") as issued where issued_at_us > ").push_bind(at_us);
    query.push(" or (issued_at_us = ").push_bind(at_us).push(" and number > ");
    query.push_bind(number.map_or("", String::as_str));
    query.push(") order by issued_at_us, number limit ").push_bind(i64::from(asked.limit));
    let rows: Vec<IssuedRow> = query.build().typed().fetch_all(conn).await?;
    Ok(rows.into_iter().map(Link::from).collect())
}

/// An issued serial.
#[derive(FromRow)]
struct IssuedRow {
    number: String,
    document_id: Option<String>,
    user_id: String,
    ip_address: Option<String>,
    issued_at_us: i64,
}

impl From<IssuedRow> for Link {
    fn from(row: IssuedRow) -> Self {
        let name = LinkName::Issued(row.number.clone());
        Link {
            place: LinkPlace { at_us: row.issued_at_us, name },
            serial: row.number,
            event: "issued".into(),
            attempt: None,
            document_id: row.document_id,
            user_id: row.user_id,
            ip_address: row.ip_address,
            reason: None,
        }
    }
}

/// The events of serials that carried the unified serial.
async fn events(
    conn: &mut Conn,
    asked: &ChainQuery,
    shown: &RowVisibility,
) -> Result<Vec<Link>, LedgerError> {
    let (at_us, event_id) = match &asked.after {
        None => (i64::MIN, 0),
        Some(LinkPlace { at_us, name: LinkName::Issued(_) }) => (*at_us, 0),
        Some(LinkPlace { at_us, name: LinkName::Event(event_id) }) => (*at_us, *event_id),
    };
    let mut query = QueryBuilder::new(
        "select e.serial_event_id, e.serial, e.kind, e.attempt, e.at_us, e.user_id, e.ip_address,
         e.reason from serial_event e where e.unified_serial = ",
    );
    query.push_bind(asked.unified_serial.clone());
    query.push(" and e.at_us >= ").push_bind(at_us);
    query.push(" and (e.at_us > ").push_bind(at_us);
    query.push(" or e.serial_event_id > ").push_bind(event_id).push(")");
    shown::push_serial_events(&mut query, "e", shown);
    query.push(" order by e.at_us, e.serial_event_id limit ").push_bind(i64::from(asked.limit));
    query.build().typed::<SerialEventRow>().fetch_all_into(conn).await
}

/// An event of a serial.
#[derive(FromRow)]
struct SerialEventRow {
    serial_event_id: i64,
    serial: String,
    kind: String,
    attempt: Option<i32>,
    at_us: i64,
    user_id: String,
    ip_address: Option<String>,
    reason: Option<String>,
}

impl TryFrom<SerialEventRow> for Link {
    type Error = LedgerError;

    fn try_from(row: SerialEventRow) -> Result<Self, LedgerError> {
        let attempt = row.attempt.map(|attempt| unsigned_small(attempt, "serial_event.attempt"));
        Ok(Link {
            place: LinkPlace { at_us: row.at_us, name: LinkName::Event(row.serial_event_id) },
            serial: row.serial,
            event: row.kind,
            attempt: attempt.transpose()?,
            document_id: None,
            user_id: row.user_id,
            ip_address: row.ip_address,
            reason: row.reason,
        })
    }
}
