//! Rows beside the journal whose numbers it does not have: revisions, and acts such as voids. Looks
//! only.

use std::fmt;

use crate::ledger::{LedgerError, LifeAct, Revision, SharedLedger, StrayAct, ValueOf};

/// The revisions and the acts, at most `limit` of each.
pub(super) async fn find(
    ledger: &SharedLedger,
    limit: u32,
) -> Result<(Vec<Revision>, Vec<StrayAct>), LedgerError> {
    let revisions = ledger.audits().stray_revisions(limit).await?;
    Ok((revisions, ledger.audits().stray_acts(limit).await?))
}

/// A line for each.
pub(super) fn write(
    f: &mut fmt::Formatter<'_>,
    revisions: &[Revision],
    acts: &[StrayAct],
) -> fmt::Result {
    for Revision { number, rev, of, .. } in revisions {
        writeln!(f, "stray revision: {number} (rev {rev}) of {}", place(*of))?;
    }
    for StrayAct { life_id, act, number, of } in acts {
        let number = number.as_deref().unwrap_or("none");
        let what = match (*act, *life_id) {
            (LifeAct::Assigned, 0) => "assignment without its act".to_owned(),
            (LifeAct::Assigned, id) => format!("act {id} of no number or no assignment"),
            (_, id) => format!("act {id} of no number"),
        };
        writeln!(f, "{what}: {number} of {}", place(*of))?;
    }
    Ok(())
}

fn place(of: ValueOf) -> String {
    format!("counter {} value {}", of.counter_id, of.value)
}
