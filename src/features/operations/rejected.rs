//! `numerator reconcile --rejected`: takes records into the journal that the ledger refused and
//! keeps aside, once the cause is gone. Shows what there is; writes only with `--apply`. Safe to
//! repeat, and while services run.

use anyhow::bail;
use serde::Serialize;
use uuid::Uuid;

use crate::config::Settings;
use crate::features::operations::reconcile::ReconcileArgs;
use crate::ledger::{JournaledAgain, LedgerError, PutAside, SharedLedger};
use crate::startup::Service;
use crate::terminal::output::{print, print_json};
use crate::terminal::session::{note_act, open_ledger, operator, with_service};
use crate::terminal::words::moment;

/// Records read in one statement.
const PAGE_RECORDS: u32 = 500;

/// The findings, and what was done.
#[derive(Debug, Serialize)]
struct RejectedAnswer {
    applied: bool,
    /// Oldest first.
    records: Vec<RejectedRecord>,
}

/// One record.
#[derive(Debug, Serialize)]
struct RejectedRecord {
    allocation_id: Uuid,
    /// None if this version cannot read the record.
    number: Option<String>,
    document_id: Option<String>,
    rejected_at: String,
    /// Why the ledger refused it.
    reason: String,
    /// The user who has explained it, if any.
    acknowledged_by: Option<String>,
    /// `waits` if nothing is applied; else `journaled`, `known`, `collided`, `gone`, `refused`.
    result: &'static str,
    /// Why the ledger refuses it still.
    #[serde(skip_serializing_if = "Option::is_none")]
    refused_for: Option<String>,
}

impl RejectedRecord {
    fn of(aside: PutAside) -> Self {
        let entry = aside.entry.as_ref();
        RejectedRecord {
            allocation_id: aside.allocation_id,
            number: entry.map(|entry| entry.number.clone()),
            document_id: entry.and_then(|entry| entry.record.document_id.clone()),
            rejected_at: moment(aside.rejected_at_us),
            reason: aside.reason,
            acknowledged_by: aside.acknowledged_by,
            result: "waits",
            refused_for: None,
        }
    }

    /// Whether it still needs attention.
    fn is_open(&self) -> bool {
        matches!(self.result, "refused" | "collided")
    }

    fn line(&self) -> String {
        let number = self.number.as_deref().unwrap_or("a record that cannot be read");
        let document = self.document_id.as_deref().map_or(String::new(), |id| format!(" of {id}"));
        let why = self.refused_for.as_ref().unwrap_or(&self.reason);
        format!("{}: {number}{document}, allocation {}: {why}", self.result, self.allocation_id)
    }
}

/// Runs, and prints the findings and what was done.
///
/// # Errors
/// A ledger that cannot be reached; records that it still refuses, or that collide.
pub(crate) async fn run(settings: &Settings, args: &ReconcileArgs) -> anyhow::Result<()> {
    let (records, failed) = match args.apply {
        true => {
            let work = async |service: &Service| {
                let (records, failed) = apply(service).await?;
                let detail = serde_json::json!({
                    "rejected": true, "records": records.len(),
                    "open": records.iter().filter(|record| record.is_open()).count(),
                    "failed": failed.as_ref().map(LedgerError::to_string),
                });
                note_act(&service.ledger, "reconciled", detail).await;
                Ok((records, failed))
            };
            with_service(settings, work).await?
        }
        false => (all(&open_ledger(settings).await?).await?, None),
    };
    let answer = RejectedAnswer { applied: args.apply, records };
    if args.json {
        print_json(&answer)?;
    } else {
        print(answer.lines())?;
    }
    if let Some(error) = failed {
        return Err(error.into());
    }
    let open = answer.records.iter().filter(|record| record.is_open()).count();
    if open > 0 {
        bail!("{open} records are not in the journal; each line says why");
    }
    Ok(())
}

/// Takes each into the journal. Ends if the ledger fails for another cause: the records before are
/// reported.
async fn apply(service: &Service) -> anyhow::Result<(Vec<RejectedRecord>, Option<LedgerError>)> {
    let (node, by) = (service.context.membership.node(), operator());
    let mut records = all(&service.ledger).await?;
    for record in &mut records {
        let done = service.ledger.journal_put_aside(node, record.allocation_id, &by).await;
        record.result = match done {
            Ok(JournaledAgain::Journaled) => "journaled",
            Ok(JournaledAgain::Known) => "known",
            Ok(JournaledAgain::Collided) => "collided",
            Ok(JournaledAgain::Gone) => "gone",
            Err(LedgerError::Unfit(why) | LedgerError::Refused(why)) => {
                record.refused_for = Some(why);
                "refused"
            }
            Err(error) => return Ok((records, Some(error))),
        };
    }
    Ok((records, None))
}

async fn all(ledger: &SharedLedger) -> anyhow::Result<Vec<RejectedRecord>> {
    let (mut records, mut after) = (Vec::new(), 0);
    loop {
        let page = ledger.put_aside(after, PAGE_RECORDS).await?;
        let Some(last) = page.last() else { return Ok(records) };
        after = last.id;
        records.extend(page.into_iter().map(RejectedRecord::of));
    }
}

impl RejectedAnswer {
    /// The same for people.
    fn lines(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.records.iter().map(RejectedRecord::line).collect();
        match (self.records.len(), self.applied) {
            (0, _) => lines.push("no record is put aside".into()),
            (_, false) => lines.push("nothing was changed; --apply journals them again".into()),
            (count, true) => lines.push(format!("{count} records")),
        }
        lines
    }
}
