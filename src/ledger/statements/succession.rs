//! Series that come after others: none begins anew with what another one has shown (R2.7).

use super::{Conn, reference, versions};
use crate::ledger::{LedgerError, SeriesRefusal, SeriesVersion};
use crate::number;

/// Refuses a series that would begin anew with numbers that another one has issued and shows no
/// longer, being deactivated or changed. What two active series could both show is another check's.
pub(super) async fn must_take_over_nothing(
    conn: &mut Conn,
    version: &SeriesVersion,
) -> Result<(), LedgerError> {
    let others = versions::of_used_others(conn, version.series_id).await?;
    if others.is_empty() {
        return Ok(());
    }
    let reference = reference::read(conn).await?;
    for other in others {
        if number::takes_over(&other.definition, &version.definition, &reference) {
            let refusal = SeriesRefusal::TakesOver {
                code: version.definition.code.clone(),
                other: other.definition.code,
                version: other.version,
            };
            return Err(refusal.into());
        }
    }
    Ok(())
}
