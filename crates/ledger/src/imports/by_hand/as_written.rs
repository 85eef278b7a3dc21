//! What a number that is kept as written needs besides a registration: that no series could render
//! it, before its transaction and until its commit, and a place in the counter of such numbers.
//! Writes nothing.

use std::borrow::Cow;

use crate::columns::unsigned;
use crate::dialect::Conn;
use crate::series::as_written::{self, TextLook};
use crate::series::kept::KeptStamp;
use crate::store::Store;
use crate::{AS_WRITTEN_MAX, LedgerError, NARROWED_AS_WRITTEN_MAX, NumberByHand, Registering};

/// What was looked at before the transaction of a registration.
pub(super) enum Looked {
    /// Nothing stands in its way: with the look of a number as written.
    Ready(Option<KeptStamp>),
    /// A series could render it.
    Refused(Registering),
}

/// Looks for a series that could render a number which is to be kept as written. Compares texts: in
/// no transaction.
pub(super) async fn look(store: &Store, new: &NumberByHand) -> Result<Looked, LedgerError> {
    if !new.is_as_written {
        return Ok(Looked::Ready(None));
    }
    Ok(match as_written::look(store, &new.number).await? {
        TextLook::Unread(stamp) => Looked::Ready(Some(stamp)),
        TextLook::ReadBy { code, version } => {
            Looked::Refused(Registering::Readable { code, version })
        }
    })
}

/// Keeps what was looked at as it is until the commit; says where there are too many such numbers,
/// and where the ledger may have forgotten some number.
///
/// # Errors
/// `LockTimeout` where series or reference data are being saved, or were since: worth a retry.
pub(super) async fn must_stand(
    conn: &mut Conn,
    new: &NumberByHand,
    looked: Option<KeptStamp>,
) -> Result<Option<Registering>, LedgerError> {
    let Some(looked) = looked else { return Ok(None) };
    as_written::must_stand(conn, looked).await?;
    // Of whichever partition: another process may remember the text as a number's.
    if let Some(held) = as_written::held_partition(conn).await? {
        return Ok(Some(Registering::Held(held)));
    }
    let most = i64::from(AS_WRITTEN_MAX);
    if as_written::count(conn, None, most).await? >= most {
        return Ok(Some(Registering::TooManyAsWritten { is_share: false }));
    }
    if !new.is_narrowed {
        return Ok(None);
    }
    let (registrar, most) = (&*new.order.record.user_id, i64::from(NARROWED_AS_WRITTEN_MAX));
    let is_full = as_written::count(conn, Some(registrar), most).await? >= most;
    Ok(is_full.then_some(Registering::TooManyAsWritten { is_share: true }))
}

/// The number with its value: of one that is kept as written the place after `base`, above which
/// its locked counter goes on.
pub(super) fn placed(new: &NumberByHand, base: i64) -> Result<Cow<'_, NumberByHand>, LedgerError> {
    if !new.is_as_written {
        return Ok(Cow::Borrowed(new));
    }
    let value = unsigned(base.saturating_add(1), "counter.taken")?;
    Ok(Cow::Owned(NumberByHand { value, ..new.clone() }))
}
