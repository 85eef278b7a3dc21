//! Whether the token of a management request is in force: checked in the transaction of the
//! request. A process's tokens in memory may be older than a revocation that another one has
//! confirmed.

use sqlx_macros::FromRow;

use crate::dialect::Conn;
use crate::query::{SqlQuery, query};
use crate::{LedgerError, ShownToken, TokenRefusal};

/// Refuses the request of a token that is not in force. Locks its row: a revocation either came
/// earlier, and is seen, or waits until the transaction has ended. So it is checked last, right
/// before the commit: a revocation waits for nothing else.
pub(crate) async fn must_stay_in_force(
    conn: &mut Conn,
    shown: Option<ShownToken>,
    now_us: i64,
) -> Result<(), LedgerError> {
    look(conn, shown, now_us, SqlQuery::for_share).await
}

/// The same without a lock: at the beginning of work that may take long, and for changes of tokens,
/// since all such changes wait for each other.
pub(crate) async fn must_be_in_force(
    conn: &mut Conn,
    shown: Option<ShownToken>,
    now_us: i64,
) -> Result<(), LedgerError> {
    look(conn, shown, now_us, |question| question).await
}

/// What decides whether a token is in force.
#[derive(FromRow)]
struct Force {
    sha256: Vec<u8>,
    expires_at_us: Option<i64>,
    revoked_at_us: Option<i64>,
}

async fn look(
    conn: &mut Conn,
    shown: Option<ShownToken>,
    now_us: i64,
    locked: impl FnOnce(SqlQuery<'static>) -> SqlQuery<'static>,
) -> Result<(), LedgerError> {
    let Some(ShownToken { token_id, sha256 }) = shown else { return Ok(()) };
    let question =
        query("select sha256, expires_at_us, revoked_at_us from token where token_id = $1");
    let row = locked(question.bind(token_id)).typed::<Force>().fetch_optional(conn).await?;
    let force = row.ok_or(TokenRefusal::NotInForce)?;
    let is_present = force.sha256 == sha256;
    let is_over = force.expires_at_us.is_some_and(|at| at <= now_us);
    if is_present && force.revoked_at_us.is_none() && !is_over {
        return Ok(());
    }
    Err(TokenRefusal::NotInForce.into())
}
