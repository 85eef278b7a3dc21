//! The chain of a unified serial (R8.4): the serials issued under it, from the journal, and what
//! happened to serials that carried it.

use numbering::ExchangeKind;

use super::{CALL, Conn, Row, Store, query};
use crate::Ledger;
use crate::columns::unsigned_small;
use crate::{ChainQuery, LedgerError, Link, LinkName, LinkPlace};

impl Ledger {
    /// The links of a unified serial's chain, oldest first. Sorts the whole chain for each page.
    pub async fn chain(&self, query: &ChainQuery) -> Result<Vec<Link>, LedgerError> {
        self.call(CALL, async |store| chain(store, query).await).await
    }
}

/// See [`crate::Ledger::chain`].
pub(super) async fn chain(store: &Store, asked: &ChainQuery) -> Result<Vec<Link>, LedgerError> {
    let mut conn = store.reader.acquire().await?;
    let mut links = issued(&mut *conn, asked).await?;
    links.extend(events(&mut *conn, asked).await?);
    links.sort_by(|a, b| a.place.cmp(&b.place));
    links.truncate(asked.limit as usize);
    Ok(links)
}

/// Serials issued under the unified serial, and that itself: their document ids begin with it.
async fn issued(conn: &mut Conn, asked: &ChainQuery) -> Result<Vec<Link>, LedgerError> {
    // Of the links of one time, issued serials come first: after an event there is none left.
    let (at_us, number) = match &asked.after {
        None => (i64::MIN, None),
        Some(LinkPlace { at_us, name: LinkName::Issued(number) }) => (*at_us, Some(number)),
        Some(LinkPlace { at_us, name: LinkName::Event(_) }) => (at_us.saturating_add(1), None),
    };
    let [unified, system, interface] = ExchangeKind::ALL.map(ExchangeKind::type_code);
    let serial = &asked.unified_serial;
    let rows = query(
        "select number, document_id, user_id, ip_address, issued_at_us from (\
         select number, document_id, user_id, ip_address, issued_at_us from journal_row \
         where number = $1 and type_code = $2 \
         union all \
         select number, document_id, user_id, ip_address, issued_at_us from journal_row \
         where document_id >= $3 and document_id < $4 and number is not null \
         and type_code in ($5, $6)) as issued \
         where issued_at_us > $7 or (issued_at_us = $7 and number > $8) \
         order by issued_at_us, number limit $9",
    )
    .bind(serial)
    .bind(unified)
    .bind(format!("{serial}/"))
    // The character that follows the stroke.
    .bind(format!("{serial}0"))
    .bind(system)
    .bind(interface)
    .bind(at_us)
    .bind(number.map_or("", String::as_str))
    .bind(i64::from(asked.limit))
    .fetch_all(conn)
    .await?;
    rows.iter().map(issued_link).collect()
}

fn issued_link(row: &Row) -> Result<Link, LedgerError> {
    let serial: String = row.try_get("number")?;
    let name = LinkName::Issued(serial.clone());
    Ok(Link {
        place: LinkPlace { at_us: row.try_get("issued_at_us")?, name },
        serial,
        event: "issued".into(),
        attempt: None,
        document_id: row.try_get("document_id")?,
        user_id: row.try_get("user_id")?,
        ip_address: row.try_get("ip_address")?,
        reason: None,
    })
}

/// What happened to serials that carried the unified serial.
async fn events(conn: &mut Conn, asked: &ChainQuery) -> Result<Vec<Link>, LedgerError> {
    let (at_us, event_id) = match &asked.after {
        None => (i64::MIN, 0),
        Some(LinkPlace { at_us, name: LinkName::Issued(_) }) => (*at_us, 0),
        Some(LinkPlace { at_us, name: LinkName::Event(event_id) }) => (*at_us, *event_id),
    };
    let rows = query(
        "select serial_event_id, serial, kind, attempt, at_us, user_id, ip_address, reason \
         from serial_event where unified_serial = $1 and at_us >= $2 \
         and (at_us > $2 or serial_event_id > $3) order by at_us, serial_event_id limit $4",
    )
    .bind(&asked.unified_serial)
    .bind(at_us)
    .bind(event_id)
    .bind(i64::from(asked.limit))
    .fetch_all(conn)
    .await?;
    rows.iter().map(event_link).collect()
}

fn event_link(row: &Row) -> Result<Link, LedgerError> {
    let attempt: Option<i32> = row.try_get("attempt")?;
    let attempt = attempt.map(|attempt| unsigned_small(attempt, "serial_event.attempt"));
    let name = LinkName::Event(row.try_get("serial_event_id")?);
    Ok(Link {
        place: LinkPlace { at_us: row.try_get("at_us")?, name },
        serial: row.try_get("serial")?,
        event: row.try_get("kind")?,
        attempt: attempt.transpose()?,
        document_id: None,
        user_id: row.try_get("user_id")?,
        ip_address: row.try_get("ip_address")?,
        reason: row.try_get("reason")?,
    })
}
