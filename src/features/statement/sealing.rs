//! The sentences of the paper about the checkpoint that seals its records. Compares no seal with a
//! record: `numerator audit verify` does.

use super::explanations::{
    HOW_TO_CHECK, NOT_SEALED, PARTLY_SEALED, SEALED, WITHOUT_KEY, WRONG_SEAL,
};
use super::messages::say;
use super::paper::SealAnswer;
use crate::engine::sealing::{CheckpointError, Sealing};
use crate::language::Locale;
use crate::ledger::{BoundRows, CounterAccount};

/// The seal of the records.
pub(super) fn seal(
    language: Locale,
    sealing: Option<Result<Sealing, CheckpointError>>,
    accounts: &[CounterAccount],
) -> SealAnswer {
    let rows = accounts.iter().fold(BoundRows::default(), |sum, account| BoundRows {
        bound: sum.bound + account.rows.bound,
        later: sum.later + account.rows.later,
        keyless: sum.keyless + account.rows.keyless,
    });
    let (bound, later) = (rows.bound.to_string(), rows.later.to_string());
    let mut sentences = Vec::new();
    let sealing = match sealing {
        None => Err(NOT_SEALED),
        Some(Err(_)) => Err(WRONG_SEAL),
        Some(Ok(sealing)) => Ok(sealing),
    };
    sentences.push(match &sealing {
        Err(message) => say(language, *message, &[]),
        Ok(_) if rows.later > 0 || rows.keyless > 0 => {
            say(language, PARTLY_SEALED, &[("bound", &bound), ("later", &later)])
        }
        Ok(_) => say(language, SEALED, &[]),
    });
    let sealing = sealing.ok();
    if sealing.is_some() {
        if rows.keyless > 0 {
            let keyless = rows.keyless.to_string();
            sentences.push(say(language, WITHOUT_KEY, &[("keyless", &keyless)]));
        }
        sentences.push(say(language, HOW_TO_CHECK, &[]));
    }
    SealAnswer {
        sealed: sealing.is_some() && rows.later == 0 && rows.keyless == 0,
        checkpoint: sealing.as_ref().map(|it| it.number),
        made_at: sealing.as_ref().map(|it| it.at.clone()),
        sha256: sealing.as_ref().map(|it| it.sha256.clone()),
        public_key: sealing.as_ref().map(|it| it.public_key.to_string()),
        records_sealed: rows.bound,
        records_later: rows.later,
        records_without_key: rows.keyless,
        sentences,
    }
}
