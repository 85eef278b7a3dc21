//! The last date of counters that keep chronology, set back where a wrong date lies in the future.
//! The number with that date stays issued: it no longer prevents earlier dates for others.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::jump::of_series;
use crate::dialect::Conn;
use crate::protocol::chronology::{self, Family};
use crate::query::{query, query_as};
use crate::{ChangeRefusal, ChangeRequest, LedgerError, NewChange};

/// Refuses a change that could not be made now; how many records are dated later.
pub(super) async fn try_out(
    conn: &mut Conn,
    new: &NewChange,
    (family, date): (&str, &str),
    now_us: i64,
) -> Result<i64, LedgerError> {
    let counter = of_series(conn, new).await?;
    let family = Family { series_id: new.series_id, serial: &counter.serial, key: family };
    conn.allow_long_search().await?;
    let last = chronology::lock(conn, family).await?;
    check(conn, family, (last, date), now_us).await.map(|(_, later)| later)
}

/// Sets the date back.
pub(super) async fn make(
    conn: &mut Conn,
    request: &ChangeRequest,
    (family, date): (&str, &str),
    now_us: i64,
) -> Result<(), LedgerError> {
    let ChangeRequest { series_id, ref serial, .. } = *request;
    let family = Family { series_id, serial, key: family };
    conn.allow_long_search().await?;
    // Takes wait for this row, and find the new date in it.
    let last = chronology::lock(conn, family).await?;
    let (last, later) = check(conn, family, (last, date), now_us).await?;
    set_back(conn, family, date).await?;
    query("update change_request set stood_on = $2, dated_later = $3 where change_request_id = $1")
        .bind(request.change_id)
        .bind(last)
        .bind(later)
        .execute(conn)
        .await?;
    Ok(())
}

/// The last date, and how many records are dated later than the wanted one.
async fn check(
    conn: &mut Conn,
    family: Family<'_>,
    (last, date): (Option<String>, &str),
    now_us: i64,
) -> Result<(String, i64), LedgerError> {
    let last = last.filter(|last| !last.is_empty()).ok_or(ChangeRefusal::NoDate)?;
    if *last <= *date {
        return Err(ChangeRefusal::NotEarlier(last).into());
    }
    let (least, later) = beyond(conn, family, (&tomorrow(now_us)?, date)).await?;
    if *date < *least {
        return Err(ChangeRefusal::TooEarly(least).into());
    }
    Ok((last, later))
}

/// Tomorrow in UTC: today somewhere, or tomorrow. Dates up to it are not taken for wrong.
fn tomorrow(now_us: i64) -> Result<String, LedgerError> {
    let today = Timestamp::from_microsecond(now_us).map(|now| now.to_zoned(TimeZone::UTC).date());
    let tomorrow = today.and_then(jiff::civil::Date::tomorrow);
    Ok(tomorrow.map_err(|error| LedgerError::Refused(format!("the clock: {error}")))?.to_string())
}

/// Of a family's numbers, the latest date up to `upto` (empty: none), and how many records are
/// dated after `after`.
async fn beyond(
    conn: &mut Conn,
    family: Family<'_>,
    (upto, after): (&str, &str),
) -> Result<(String, i64), LedgerError> {
    let (from, to) = chronology::periods(family);
    Ok(query_as(
        "select coalesce(max(case when j.document_date <= $6 then j.document_date end), '')
         as latest, count(case when j.document_date > $7 then 1 end) as later
         from counter c join journal_row j on j.counter_id = c.counter_id
         where c.series_id = $1 and c.serial = $2
         and (c.key = $3 or (c.key >= $4 and c.key < $5))",
    )
    .bind(family.series_id)
    .bind(family.serial)
    .bind(family.key)
    .bind(from)
    .bind(to)
    .bind(upto)
    .bind(after)
    .fetch_one(conn)
    .await?)
}

/// Sets the last date of a family back, whose row is locked.
async fn set_back(conn: &mut Conn, family: Family<'_>, date: &str) -> Result<(), LedgerError> {
    query(
        "update chronology set last_date = $4 where series_id = $1 and serial = $2
         and family = $3",
    )
    .bind(family.series_id)
    .bind(family.serial)
    .bind(family.key)
    .bind(date)
    .execute(conn)
    .await?;
    Ok(())
}
