//! A call to the ledger: on whose connections, how long, and how it is counted. What it does stands
//! in `statements`.

use std::pin::pin;
use std::sync::Arc;

use tokio::time::Instant;

use crate::connections::Share;
use crate::patience::Patience;
use crate::store::Store;
use crate::{Ledger, LedgerError};

/// Kind of a call, as its users may watch it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    share: Share,
    patience: Patience,
    /// Its name in the metrics; `None`: it is not counted.
    kind: Option<&'static str>,
}

/// A few statements, on the connections that all calls share.
pub(crate) const CALL: Call =
    Call { share: Share::Common, patience: Patience::Call, kind: Some("other") };

/// Work that may search through all values of a counter, or write to all counters.
pub(crate) const SEARCH: Call = Call { patience: Patience::Search, ..CALL };

/// Work that reads the whole journal.
pub(crate) const WALK: Call = Call { patience: Patience::Walk, ..CALL };

impl Call {
    /// The same on others' connections.
    pub(crate) const fn of(self, share: Share) -> Self {
        Call { share, ..self }
    }

    /// The same, watched apart.
    pub(crate) const fn named(self, kind: &'static str) -> Self {
        Call { kind: Some(kind), ..self }
    }

    /// The same, asked again and again by itself: nobody watches it.
    pub(crate) const fn uncounted(self) -> Self {
        Call { kind: None, ..self }
    }
}

impl Ledger {
    /// Works on the engine's connections of now, within a call's time, and counts it.
    ///
    /// # Errors
    /// Those of the work; `Unreachable` after its time, when it may have written all the same.
    pub(crate) async fn call<T>(
        &self,
        Call { share, patience, kind }: Call,
        work: impl AsyncFnOnce(&Store) -> Result<T, LedgerError>,
    ) -> Result<T, LedgerError> {
        let store = self.0.store(share);
        let started = Instant::now();
        // Boxed: what a call keeps between its statements is no part of its callers.
        let outcome = Box::pin(self.within(&store, patience, work(&store))).await;
        if matches!(outcome, Err(LedgerError::Fault(_))) {
            store.faults().notify_one();
        }
        if let Some(kind) = kind {
            let failure = outcome.as_ref().err().map(LedgerError::reason);
            let took = started.elapsed();
            store.meter.count(kind, took, failure);
            store.troubles.note(kind, outcome.as_ref().err());
            if matches!(patience, Patience::Call) {
                store.slow.note(kind, took, outcome.as_ref().err());
            }
        }
        outcome
    }

    /// Whether the ledger lets somebody in at this moment. One try: the connections that calls use
    /// wait longer between two.
    pub async fn knock(&self) -> bool {
        self.0.knock().await
    }

    async fn within<T>(
        &self,
        store: &Arc<Store>,
        patience: Patience,
        work: impl Future<Output = Result<T, LedgerError>>,
    ) -> Result<T, LedgerError> {
        let mut work = pin!(work);
        tokio::select! {
            biased;
            result = &mut work => {
                if result.as_ref().is_err_and(LedgerError::is_of_outgrown_statement) {
                    self.0.give_up(store, "the schema has changed");
                }
                result
            }
            () = self.0.is_late(store, patience) => {
                // Before the work is dropped: its connection must not go back to a living pool.
                self.0.give_up(store, "the ledger does not answer");
                let cause = "no answer in time".to_owned();
                Err(LedgerError::Unreachable { cause, maybe_written: true })
            }
        }
    }
}
