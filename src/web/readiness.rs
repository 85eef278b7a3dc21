//! What a process says of its readiness: to `/readyz`, and in the problem of one that is not ready.

use serde::Serialize;
use utoipa::ToSchema;

use crate::startup::Readiness;

/// Whether a new document would get its number, and what works.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct Ready {
    /// Whether a new document of some series would get its number now.
    pub(super) ready: bool,
    /// Why not; nothing where it would.
    pub(super) reasons: Vec<ReasonAnswer>,
    /// Partitions in which new documents get numbers, by the path that serves them.
    serving: ServingAnswer,
    /// What works besides.
    works: WorksAnswer,
    /// Whether the ledger answers.
    ledger: LedgerAnswer,
    /// Records handed out and not journaled yet.
    pub(super) journal_lag_records: usize,
    /// How long ago the oldest of them was handed out, in milliseconds.
    journal_lag_ms: u64,
    /// Records for which the journal has space.
    journal_space: usize,
    /// Partitions in which new documents need the ledger for a while, as Redis does not have all
    /// records of earlier ones.
    asking_partitions: usize,
    /// For how long at most, in milliseconds.
    asking_ms: u64,
    /// Tables, keys and rights that the ledger lacks and records wait for; left out where there are
    /// none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    ledger_lacks: Vec<String>,
    /// State of each partition in words.
    pub(super) partitions: Vec<String>,
}

/// A reason against being ready.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct ReasonAnswer {
    /// In a word: the slug of the problem that callers meet, where there is one.
    reason: &'static str,
    /// In a sentence.
    pub(super) detail: String,
}

/// Partitions that can issue, by path.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct ServingAnswer {
    /// Redis takes the numbers.
    redis: usize,
    /// The database takes the numbers.
    database: usize,
}

/// What works whether new documents get numbers or not.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct WorksAnswer {
    /// Partitions in which retries get the numbers that were taken for them.
    replays: usize,
    /// Partitions in which counters in use give numbers to what names no document and no key.
    warm_counters: usize,
    /// Whether a counter can be begun.
    new_counters: bool,
    /// Whether gapless series issue.
    gapless: bool,
}

/// The ledger as this process sees it.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct LedgerAnswer {
    /// Whether it answers.
    answers: bool,
    /// For how long it has not, in milliseconds.
    unanswered_ms: u64,
}

impl Ready {
    pub(super) fn of(readiness: Readiness) -> Self {
        let is_ready = readiness.is_ready();
        let Readiness { reasons, serving, works, .. } = readiness;
        let ms = |time: std::time::Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let reason = |reason: crate::startup::Reason| ReasonAnswer {
            reason: reason.word(),
            detail: reason.to_string(),
        };
        Ready {
            ready: is_ready,
            reasons: reasons.into_iter().map(reason).collect(),
            serving: ServingAnswer { redis: serving.redis, database: serving.database },
            works: WorksAnswer {
                replays: works.replays,
                warm_counters: works.warm_counters,
                new_counters: works.new_counters,
                gapless: works.gapless,
            },
            ledger: LedgerAnswer {
                answers: readiness.ledger_unanswered.is_none(),
                unanswered_ms: readiness.ledger_unanswered.map_or(0, ms),
            },
            ledger_lacks: readiness.ledger_lacks,
            journal_lag_records: readiness.journal_lag_records,
            journal_lag_ms: ms(readiness.journal_lag),
            journal_space: readiness.journal_space,
            asking_partitions: readiness.asking_partitions,
            asking_ms: ms(readiness.asking_for),
            partitions: readiness.partitions,
        }
    }
}
